"""Slow, obvious answers to compare the library with. Nothing here is fast, and nothing here uses slimsvm.

The problem and its dual (sections are those of the mathematical reference on slack norms):

    primal   min_{f,b}  1/2 |f|^2 + Phi(xi),    xi = 1 - y (f + b),  only its positive part under inequality
    dual     max_a      y'a - 1/2 a'(K + diag ridge) a
             s.t.       sum a = 0,  lower <= a <= upper,  sum side*a <= total

with signed duals a = y * alpha and f = K a.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np

CLARABEL = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "max_iter": 500}
LOOSER = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9, "max_iter": 500}


# --- Kernels, one pair of rows at a time as they are written in textbooks -----------------------------------


def _squared_distances(X, Z):
    return ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2)


def _manhattan(X, Z):
    return np.abs(X[:, None, :] - Z[None, :, :]).sum(axis=2)


KERNELS = {
    "linear": lambda X, Z, gamma, coef0, degree: X @ Z.T,
    "poly": lambda X, Z, gamma, coef0, degree: (gamma * (X @ Z.T) + coef0) ** degree,
    "rbf": lambda X, Z, gamma, coef0, degree: np.exp(-gamma * _squared_distances(X, Z)),
    "sigmoid": lambda X, Z, gamma, coef0, degree: np.tanh(gamma * (X @ Z.T) + coef0),
    "laplacian": lambda X, Z, gamma, coef0, degree: np.exp(-gamma * _manhattan(X, Z)),
}


def kernel_matrix(name, X, Z, gamma=1.0, coef0=0.0, degree=3):
    """The matrix k(x_i, z_j) in float64."""
    X, Z = (np.asarray(A.toarray() if hasattr(A, "toarray") else A, dtype=np.float64) for A in (X, Z))
    return KERNELS[name](X, Z, gamma, coef0, degree)


# --- Slack measures: one entry for each class in slimsvm.slacks.ALL -----------------------------------------


@dataclass(frozen=True)
class Measure:
    """Phi in numpy and in cvxpy, and its dual set (table of section 1)."""

    value: object  # (C, xi) -> float
    expression: object  # (C, xi) -> cvxpy expression
    bound: object  # C -> largest |alpha|
    ridge: object  # C -> diagonal added to K


MEASURES = {
    # C |xi|_1: |alpha_i| <= C_i
    "OneNorm": Measure(
        lambda C, xi: float(np.sum(C * np.abs(xi))),
        lambda C, xi: cp.sum(cp.multiply(C, cp.abs(xi))),
        lambda C: C,
        np.zeros_like,
    ),
    # C/2 |xi|_2^2: no bound, ridge 1/C_i
    "SquaredTwoNorm": Measure(
        lambda C, xi: float(np.sum(C * xi**2) / 2),
        lambda C, xi: cp.sum_squares(cp.multiply(np.sqrt(C / 2), xi)),
        lambda C: np.full_like(C, np.inf),
        lambda C: 1 / C,
    ),
}


def measure(slack) -> Measure:
    """The reference for a slack object; a slack without one cannot be tested, and that is an error."""
    return MEASURES[type(slack).__name__]


def dual_set(slack, y, C, constraint):
    """lower, upper and ridge of the signed duals: alpha >= 0 only under inequality."""
    bound, ridge = measure(slack).bound(C), measure(slack).ridge(C)
    if constraint == "equality":
        return -bound, bound, ridge
    return np.where(y > 0, 0.0, -bound), np.where(y > 0, bound, 0.0), ridge


def slacks(y, f, b, constraint):
    """xi = 1 - y (f + b), or its positive part."""
    xi = 1 - y * (f + b)
    return xi if constraint == "equality" else np.maximum(xi, 0)


def loss(slack, y, C, f, b, constraint):
    """Phi for given decision values."""
    return measure(slack).value(C, slacks(y, f, b, constraint))


# --- The two optimisation problems --------------------------------------------------------------------------


@dataclass(frozen=True)
class Optimum:
    """Signed duals (or None), f without bias, the optimal value, and the interval of optimal biases."""

    a: np.ndarray | None
    f: np.ndarray
    value: float
    bias: tuple[float, float] | None = None


def square_root(K):
    """L with L L' = K; eigenvalues that rounding made negative count as zero."""
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    assert values[0] > -1e-7 * max(values[-1], 1e-300), "the reference needs a positive semidefinite kernel"
    kept = values > 1e-14 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def optimize(problem):
    """Clarabel's optimal value; where rounding keeps it from 1e-11 (huge C), from 1e-9."""
    try:
        return problem.solve(solver=cp.CLARABEL, **CLARABEL)
    except cp.SolverError:
        return problem.solve(solver=cp.CLARABEL, **LOOSER)


def solve_dual(K, linear, lower, upper, ridge, side=None, total=np.inf) -> Optimum:
    """The dual QP by Clarabel; `linear` is y, or its doubled form."""
    L = square_root(K)
    a = cp.Variable(len(linear))
    objective = linear @ a - cp.sum_squares(L.T @ a) / 2 - cp.sum_squares(cp.multiply(np.sqrt(ridge / 2), a))
    constraints = [cp.sum(a) == 0]
    finite = np.isfinite(lower), np.isfinite(upper)
    constraints += [a[finite[0]] >= lower[finite[0]]] if finite[0].any() else []
    constraints += [a[finite[1]] <= upper[finite[1]]] if finite[1].any() else []
    constraints += [side @ a <= total] if np.isfinite(total) else []
    value = optimize(cp.Problem(cp.Maximize(objective), constraints))
    return Optimum(a.value, L @ (L.T @ a.value), value)


def solve_primal(K, y, slack, C, constraint) -> Optimum:
    """The primal, with f = L w and |f|^2 = |w|^2."""
    L = square_root(K)
    w, b, xi = cp.Variable(L.shape[1]), cp.Variable(), cp.Variable(len(y))
    margin = 1 - cp.multiply(y, L @ w + b)
    constraints = [xi == margin] if constraint == "equality" else [xi >= margin, xi >= 0]
    objective = cp.sum_squares(w) / 2 + measure(slack).expression(C, xi)
    value = optimize(cp.Problem(cp.Minimize(objective), constraints))
    return Optimum(None, L @ w.value, value)


def solve(K, y, slack, C, constraint) -> Optimum:
    """The optimum of one machine, by its dual."""
    C = np.broadcast_to(np.asarray(C, dtype=np.float64), y.shape)
    found = solve_dual(K, y, *dual_set(slack, y, C, constraint))
    low, high, _ = best_bias(lambda b: loss(slack, y, C, found.f, b, constraint), y - found.f)
    return replace(found, bias=(low, high))


# --- Certificate and bias (section 1.3) ---------------------------------------------------------------------


def certificate(K, y, a, b, slack, C, constraint):
    """Primal value, dual value and relative gap of any feasible a and any b."""
    f = K @ a
    norm = a @ f
    primal = norm / 2 + loss(slack, y, C, f, b, constraint)
    dual = y @ a - norm / 2 - (measure(slack).ridge(C) * a**2).sum() / 2
    return primal, dual, (primal - dual) / abs(dual)


def best_bias(loss_of_b, residuals):
    """The interval of minimisers of a convex function of b, by brute force.

    The minimum lies between the smallest and the largest residual y - f: thirds are thrown away until nothing
    is left. The ends are where the value rises measurably above the least one.
    """
    low, high = float(np.min(residuals)) - 1, float(np.max(residuals)) + 1
    at, least = min(((float(r), loss_of_b(r)) for r in residuals), key=lambda pair: pair[1])
    left, right = low, high
    for _ in range(200):
        first, second = left + (right - left) / 3, right - (right - left) / 3
        if loss_of_b(first) <= loss_of_b(second):
            right = second
        else:
            left = first
    if loss_of_b(left) < least:
        at, least = left, loss_of_b(left)
    level = least + 1e-14 * (1 + abs(least))

    def edge(inside, outside):
        for _ in range(200):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if loss_of_b(middle) <= level else (inside, middle)
        return inside

    return edge(at, low), edge(at, high), least
