"""Slow, obvious answers for the Lp-norm machine and the relevance vector machine. Nothing here uses slimsvm.

J(a, b) = 1/2 a'R a + sum_i C_i (1 - y_i ((K a)_i + b))_+ + penalty(a),     R = K or the identity
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from scipy.optimize import lsq_linear
from scipy.special import expit

import reference


def penalty(a, p, C_alpha):
    """At p = 0 of the coefficients that are not zero."""
    if p == 0:
        return C_alpha * np.log(np.abs(a[a != 0])).sum()
    return C_alpha * (np.abs(a).max() if p == np.inf else (np.abs(a) ** p).sum() / p)


def objective(K, y, C, a, b, p, C_alpha, variant):
    """J itself, in long double."""
    K, C, a = (np.asarray(x, dtype=np.longdouble) for x in (K, C, a))
    quadratic = a @ K @ a if variant == "exact" else a @ a
    return quadratic / 2 + (C * np.maximum(1 - y * (K @ a + b), 0)).sum() + penalty(a, p, C_alpha)


def convex_optimum(K, y, C, p, C_alpha, variant):
    """The least J, its coefficients and bias for p >= 1, by Clarabel."""
    L = reference.square_root(K)
    a, b = cp.Variable(len(y)), cp.Variable()
    quadratic = cp.sum_squares(L.T @ a) if variant == "exact" else cp.sum_squares(a)
    norm = cp.norm(a, "inf") if p == np.inf else cp.sum(cp.power(cp.abs(a), p)) / p if p > 1 else cp.norm1(a)
    hinge = cp.sum(cp.multiply(C, cp.pos(1 - cp.multiply(y, L @ (L.T @ a) + b))))
    value = reference.optimize(cp.Problem(cp.Minimize(quadratic / 2 + hinge + C_alpha * norm)))
    return value, a.value, b.value


def ridge_optimum(K, R, y):
    """The least ``1/2 a'R a`` plus hinge of cost 1, by Clarabel."""
    L = reference.square_root(R)
    a, b = cp.Variable(len(R)), cp.Variable()
    hinge = cp.sum(cp.pos(1 - cp.multiply(y, K @ a + b)))
    return reference.optimize(cp.Problem(cp.Minimize(cp.sum_squares(L.T @ a) / 2 + hinge)))


def theorem_1(K, y, C, ridge, variant):
    """Coefficients and value of one round by its dual (Theorem 1): a quadratic ``1/2 a'(R + diag(ridge)) a``."""
    R = (K if variant == "exact" else np.eye(len(y))) + np.diag(ridge)
    inner = K @ np.linalg.solve(R, K)
    zero = np.zeros(len(y))
    found = reference.solve_dual((inner + inner.T) / 2, y, np.where(y > 0, zero, -C), np.where(y > 0, C, zero), zero)
    return np.linalg.solve(R, K @ found.a), found.value


def stationarity(K, y, C, a, b, p, C_alpha, variant):
    """How far J is from stationary in the coefficients that are not zero: the least over the duals that are allowed.

    A row short of the margin has the dual C, a row beyond it 0; on the margin any dual between is one.
    """
    kept = np.flatnonzero(a)
    margin = y * (K @ a + b)
    on = np.flatnonzero(np.abs(margin - 1) < 1e-6)
    u = np.where(margin < 1 - 1e-6, y * C, 0.0)
    smooth = ((K @ a) if variant == "exact" else a)[kept] + C_alpha * np.sign(a[kept]) * np.abs(a[kept]) ** (p - 1)
    right = np.append(smooth - K[kept] @ u, -u.sum())
    if not len(on):
        return np.abs(right).max()
    A = np.vstack([K[np.ix_(kept, on)], np.ones(len(on))]) * y[on]
    found = lsq_linear(A, right, (0, C[on]), tol=1e-14, max_iter=1000)
    return np.abs(A @ found.x - right).max()


def log_evidence(Phi, t, weight, alpha, start=None):
    """Laplace's approximation at given precisions, in plain Newton steps."""
    w = np.zeros(Phi.shape[1]) if start is None else start
    sign = 1 - 2 * t

    def value(w):
        return -weight @ np.logaddexp(0, sign * (Phi @ w)) - alpha @ w**2 / 2

    for _ in range(200):
        error = expit(sign * (Phi @ w))
        gradient = -Phi.T @ (weight * sign * error) - alpha * w
        H = Phi.T @ ((weight * error * expit(-sign * (Phi @ w)))[:, None] * Phi) + np.diag(alpha)
        step = np.linalg.solve(H, gradient)
        if step @ gradient < 1e-22 * (1 + abs(value(w))):
            break
        while value(w + step) < value(w) and np.abs(step).max() > 1e-14:
            step = step / 2
        w = w + step
    return value(w) + np.log(alpha).sum() / 2 - np.linalg.slogdet(H)[1] / 2, w
