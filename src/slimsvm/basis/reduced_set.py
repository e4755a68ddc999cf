"""Reduced sets: the expansion over few vectors nearest to a given one in the kernel's space (Burges; Schoelkopf).

For functions ``f_o = sum_i a_oi k(x_i, .)`` with shared vectors Z, minimise

    D(Z) = sum_o min_beta  |f_o - sum_j beta_j k(z_j, .)|^2 + epsilon |beta|^2
         = sum_o |f_o|^2 - v_o'(k(Z, Z) + epsilon)^-1 v_o,    v_o = k(Z, X) a_o.

D(Z) / 2 is the objective of `learning` with constant duals, which gives its value and gradient. Initial vectors are
rows selected one by one, each the one that explains most of the remaining ``|f_o|^2``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..linalg.arrays import Array
from ..linalg.matrix import dot, is_positive_definite
from ..problem.bases import INDEPENDENCE, dense
from ..problem.formulation import Kernel
from ..problem.kernels import Base
from ..problem.regularizers import KernelNorm, Regularizer, inverse_root
from ..rows.labels import RowLabels
from .learning import Callback, LearnedVectors, Objective, centre_rows, initial, jitter_duplicates, minimize

REDUCED_SET_FLOAT64_ROWS = 20_000  # with more rows vectors are moved in float32
GROWTH_STAGES, STAGE_ITERATIONS = 8, 15
# Very few vectors have many local minima: short runs start from random rows, and the best of them continue.
MAX_RESTART_VECTORS, N_RESTARTS, N_CONTINUED_RESTARTS = 8, 30, 4
MAX_RESTART_WORK = 2e8  # kernel values of all restarts times number of inputs


class DistanceObjective(Objective):
    """D(Z) / 2 and its gradient, both divided by the sum of ``|f_o|^2 / 2``."""

    def __init__(
        self,
        kernel: Any,
        X: Any,
        coef: Array,
        squared_norm: float,
        regularizer: Regularizer,
        count: int,
        threads: int = 1,
    ):
        self.Y = np.ascontiguousarray(coef.T)
        super().__init__(kernel, X, RowLabels(self.Y, np.ones((1, 1))), None, regularizer, count, False, threads)
        self.total_cost = 0.5 * squared_norm

    def solve(self, K: Array, Kz: Array) -> tuple[float, Array, Array]:
        """D / 2, the coefficients of the f_o, and those over the vectors (vectors x outputs)."""
        T = self.regularizer.whitening(Kz)
        w = dot(T.T, dot(K.T, self.Y.astype(K.dtype, copy=False), self.threads))
        self.weights = np.hstack([w.T, np.zeros((w.shape[1], 1))])
        return self.total_cost - 0.5 * float((w**2).sum()), self.Y, dot(T, w)

    def best_rows(self, kernel: Any, count: int, given: Array, rng: np.random.Generator) -> Array:
        return greedy_rows(kernel, self.X, self.Y.T, count, given=given, threads=self.threads)


def has_norm(kernel: Kernel, X: Any) -> bool:
    """Whether the kernel is positive semidefinite; if this is not known, whether it is so on a sample of the rows."""
    if kernel.positive_semidefinite:
        return True
    sample = X[:: max(1, X.shape[0] // 200)]
    K = np.asarray(kernel(sample, sample), dtype=np.float64)
    return is_positive_definite(0.5 * (K + K.T), 1e-6 * float(np.abs(K).max(initial=0.0)))


@dataclass(frozen=True)
class AtRows(Base):
    """The kernel ``sum_i k(x, x_i) k(x_i, z)``: its norm is that of function values at the rows x_i, for any k."""

    kernel: Kernel
    rows: Any

    def __call__(self, X: Any, Z: Any, out: Array | None = None, threads: int = 1) -> Array:
        K = dot(self.kernel(X, self.rows, threads=threads), self.kernel(self.rows, Z, threads=threads), threads)
        if out is None:
            return K
        out[...] = K
        return out

    def diagonal(self, X: Any) -> Array:
        return (self.kernel(X, self.rows) ** 2).sum(axis=1)


def function_values(kernel: Kernel, X: Any, coef: Array, threads: int = 1) -> Array:
    """``f_o(x_i)`` of all outputs (rows x outputs) at the rows of their expansion."""
    return kernel.decision(X, X, np.ascontiguousarray(coef), np.zeros(len(coef)), threads)


def greedy_rows(
    kernel: Kernel, X: Any, coef: Array, count: int, F: Array | None = None, given: Any = None, threads: int = 1
) -> Array:
    """Select rows one by one; each one reduces the distance to the functions most (orthogonal matching pursuit).

    Let q be the normalised part of k(x, .) outside the span of the selected rows. Then an output gains
    ``<f_o, q>^2 = r_o(x)^2 / |part of x|^2``, where r_o is the residual of f_o. ``F`` are the values of the functions,
    if known."""
    residuals = np.array(function_values(kernel, X, coef, threads) if F is None else F, dtype=np.float64)
    sizes = np.asarray(kernel.diagonal(X), dtype=np.float64)
    rest = sizes.copy()
    m = 0 if given is None else len(given)
    Q = np.zeros((m + count, len(rest)))
    if m:
        T = inverse_root(kernel(given, given))
        m = T.shape[1]
        Q[:m] = dot(kernel(X, given, threads=threads), T, threads).T
        residuals -= dot(Q[:m].T, dot(Q[:m], coef.T))
        rest -= np.einsum("ij,ij->j", Q[:m], Q[:m])
    rows: list[int] = []
    while len(rows) < count:
        independent = rest > INDEPENDENCE * np.abs(sizes)
        if not independent.any():
            break
        gains = np.divide((residuals**2).sum(axis=1), rest, out=np.full(len(rest), -1.0), where=independent)
        p = int(gains.argmax())
        column = kernel(X, X[[p]], threads=threads)[:, 0]
        Q[m] = (column - dot(Q[:m, p], Q[:m])) / np.sqrt(rest[p])
        residuals -= np.outer(Q[m], residuals[p] / np.sqrt(rest[p]))
        rest = rest - Q[m] ** 2
        rest[p] = 0
        m += 1
        rows.append(p)
    return np.array(rows, dtype=np.int64)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # line searches may try vectors where numbers overflow
def reduced_set(
    kernel: Any,
    X: Any,
    coef: Array,
    count: int,
    rng: np.random.Generator,
    max_iter: int = 100,
    regularizer: Regularizer | None = None,
    threads: int = 1,
    callback: Callback | None = None,
    restarts: bool = True,
) -> LearnedVectors:
    """Approximate the functions of ``coef`` (outputs x rows) by at most ``count`` vectors with optimal coefficients.

    For differentiable kernels the set grows in stages: greedy rows for the residual are added, then all vectors move.
    (Moving them only at the end gives far worse minima.) ``value`` is the squared distance relative to the squared
    norm, over all outputs. ``restarts``: very few vectors also start from random rows."""
    centre, X = centre_rows(kernel, X, REDUCED_SET_FLOAT64_ROWS)
    F = function_values(kernel, X, coef, threads)
    squared_norm = max(float(np.einsum("io,oi->", F, coef)), np.finfo(float).tiny)
    regularizer = (KernelNorm() if regularizer is None else regularizer).among(kernel, X, True)
    moves = kernel.differentiable and max_iter > 0
    greedy = kernel if has_norm(kernel, X) else AtRows(kernel, X)
    F = F if greedy is kernel else function_values(greedy, X, coef, threads)
    Z, n_iter = np.empty((0, X.shape[1])), 0
    sizes = sorted({-(-count * stage // GROWTH_STAGES) for stage in range(1, GROWTH_STAGES + 1)}) if moves else [count]
    for size in sizes:
        rows = greedy_rows(greedy, X, coef, size - len(Z), F, Z if len(Z) else None, threads)
        Z = np.vstack([Z, dense(X[rows])])
        objective = DistanceObjective(kernel, X, coef, squared_norm, regularizer, len(Z), threads)
        last = size == count or len(Z) < size
        iterations = (max_iter if last else min(STAGE_ITERATIONS, max_iter)) if moves else 0
        start = jitter_duplicates(Z, kernel, X, rng) if moves else Z
        best = minimize(objective, initial(start), rng, iterations, callback)
        Z, n_iter = best.vectors, n_iter + best.n_iter
        if last:  # fewer vectors than ``count`` may represent the functions exactly
            break
    if restarts and moves and len(Z) <= MAX_RESTART_VECTORS:
        best = min([best, *_restarted(objective, rng, max_iter, callback)], key=lambda run: run.value)
    return replace(best, vectors=best.vectors + centre, n_iter=n_iter)


def _restarted(
    objective: DistanceObjective, rng: np.random.Generator, max_iter: int, callback: Callback | None
) -> list[LearnedVectors]:
    """Start short runs from random rows and continue the best of them to the end."""
    kernel, X, count = objective.kernel, objective.X, objective.count
    n_runs = min(N_RESTARTS, int(MAX_RESTART_WORK / (STAGE_ITERATIONS * X.shape[0] * X.shape[1] * count)))
    runs = []
    for _ in range(n_runs):
        Z = jitter_duplicates(dense(X[rng.permutation(X.shape[0])[:count]]), kernel, X, rng)
        runs.append(minimize(objective, initial(Z), rng, min(STAGE_ITERATIONS, max_iter)))
    best = sorted(runs, key=lambda run: run.value)[:N_CONTINUED_RESTARTS]
    return [minimize(objective, initial(run.vectors), rng, max_iter, callback) for run in best]
