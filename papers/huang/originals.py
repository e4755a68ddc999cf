"""Machines as the paper had them, where the library's own differ: slow, short, and only for comparisons."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import expit, log_expit
from sklearn.metrics.pairwise import rbf_kernel

from slimsvm.linalg.arrays import Array
from slimsvm.problem.formulation import INEQUALITY
from slimsvm.problem.losses import Hinge
from slimsvm.problem.regularizers import KernelNorm
from slimsvm.problem.slacks import OneNorm
from slimsvm.solvers.sparse.candidate_space import KernelColumns
from slimsvm.solvers.sparse.reweighting import solve_round


class TippingRVM:
    """Tipping's first relevance vector machine (2001): all columns to begin with, precisions re-estimated together.

    As in his program: precisions start at 1 / n^2, a column is gone beyond 1e9, and the last round is the one in which
    no logarithm of a precision moves by more than 1e-3. His gives up where the Hessian is ill-conditioned; here a ridge
    of rounding's size lets it go on.
    """

    def __init__(self, gamma: float, max_iter: int = 1000):
        self.gamma, self.max_iter = gamma, max_iter

    def fit(self, X: Array, y: Array) -> TippingRVM:
        columns = np.column_stack([np.ones(len(X)), rbf_kernel(X, gamma=self.gamma)])
        target = (y > 0).astype(float)
        kept, w = np.arange(columns.shape[1]), np.zeros(columns.shape[1])
        precision = np.full(columns.shape[1], 1.0 / len(X) ** 2)
        for _ in range(self.max_iter):
            keep = precision < 1e9
            kept, w, precision = kept[keep], w[keep], precision[keep]
            w, variance = _most_probable(columns[:, kept], target, precision, w)
            last = precision
            precision = np.maximum(1 - precision * variance, 1e-300) / np.maximum(w**2, 1e-300)
            if np.abs(np.log(precision / last)).max(initial=0.0) < 1e-3:
                break
        self.support_ = kept[kept > 0] - 1
        self._Z, self._w = X[self.support_], w[kept > 0]
        self._bias = float(w[kept == 0].sum())
        return self

    def decision_function(self, X: Array) -> Array:
        if not len(self._w):
            return np.full(len(X), self._bias)
        return rbf_kernel(X, self._Z, gamma=self.gamma) @ self._w + self._bias

    def predict(self, X: Array) -> Array:
        return np.where(self.decision_function(X) > 0, 1, -1)


def _most_probable(P: Array, target: Array, precision: Array, w: Array) -> tuple[Array, Array]:
    """Newton steps, halved while they lead uphill; the weights and their variances."""

    def value(at: Array) -> float:
        f = P @ at
        return -float(target @ log_expit(f) + (1 - target) @ log_expit(-f)) + 0.5 * float(precision @ at**2)

    now = value(w)
    for _ in range(25):
        p = expit(P @ w)
        gradient = P.T @ (target - p) - precision * w
        hessian = (P.T * (p * (1 - p))) @ P + np.diag(precision)
        # A ridge of rounding's size: copies of a row would leave the matrix singular.
        hessian[np.diag_indices_from(hessian)] += 1e-12 * hessian.diagonal().max(initial=0.0)
        factor = cholesky(hessian, lower=True)
        if np.abs(gradient).max(initial=0.0) < 1e-6 * len(target):
            break
        step = solve_triangular(factor.T, solve_triangular(factor, gradient, lower=True), lower=False)
        size = 1.0
        while size > 2**-8 and (tried := value(w + size * step)) > now:
            size /= 2
        if size <= 2**-8:
            break
        w, now = w + size * step, tried
    inverse = solve_triangular(factor, np.eye(len(factor)), lower=True)
    return w, np.einsum("ij,ij->j", inverse, inverse)


class EveryCopy:
    """The L0 machine of the paper's algorithm, in which each copy of a row is a candidate of its own.

    Copies keep equal coefficients, so they are one candidate here, with as many times the penalty: the sum c_j of the
    coefficients of m_j copies costs ``C_alpha m_j log |c_j / m_j|``, and all of them are counted. Without copies it is
    `LpSVC`.
    """

    def __init__(self, C: float, C_alpha: float, gamma: float, eps: float = 1e-4, max_iter: int = 100):
        self.C, self.C_alpha, self.gamma, self.eps, self.max_iter = C, C_alpha, gamma, eps, max_iter

    def fit(self, X: Array, y: Array) -> EveryCopy:
        Z, copies = np.unique(X, axis=0, return_counts=True)
        rows, counts = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
        X, y, C = rows[:, :-1], rows[:, -1], self.C * counts
        space = KernelColumns(np.arange(len(Z)), rbf_kernel(X, Z, gamma=self.gamma), rbf_kernel(Z, gamma=self.gamma))
        c, last = copies.astype(float), None
        self.history_ = [int(copies.sum())]
        for _ in range(self.max_iter):
            m = copies[space.candidates]
            at = space.coordinates(self.C_alpha * m / c**2, KernelNorm())
            start = None if last is None else (at.weights(c), last.bias)
            last = solve_round(at, y, C, Hinge(), start, last, 1e-9)
            before, c = c, at.coef(last.w)
            settled = np.abs(c - before).max() < self.eps * m.min()
            keep = np.flatnonzero(np.abs(c) >= self.eps * m)
            c, space = c[keep], space.take(keep)
            self.history_.append(int(copies[space.candidates].sum()))
            if not len(keep) or (settled and len(keep) == len(m)):
                break
        kept = space.candidates
        self._Z, self._c, self._bias = Z[kept], c, OneNorm().bias(y - space.columns @ c, y, C, INEQUALITY)
        self.n_vectors_ = int(copies[kept].sum())
        self.n_distinct_ = len(kept)
        return self

    def decision_function(self, X: Array) -> Array:
        if not len(self._c):
            return np.full(len(X), self._bias)
        return rbf_kernel(X, self._Z, gamma=self.gamma) @ self._c + self._bias

    def predict(self, X: Array) -> Array:
        return np.where(self.decision_function(X) > 0, 1, -1)
