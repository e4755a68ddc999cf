"""Slow, obvious answers to compare the library with. Nothing here is fast, and no formula uses slimsvm.

The problem and its dual (sections are those of the mathematical reference on slack norms):

    primal   min_{f,b}  1/2 |f|^2 + C phi(xi),  xi = 1 - y (f + b),  only its positive part under inequality
    dual     max_a      y'a - 1/2 a'(K + diag ridge) a
             s.t.       sum a = 0,  lower <= a <= upper,  sum side*a <= total

with signed duals a = y * alpha and f = K a.
"""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from scipy.optimize import nnls

import kernel_table
from slack_table import entry_of, factor

CLARABEL = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "max_iter": 500}
LOOSER = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9, "max_iter": 500}


def kernel_matrix(name, X, Z, **params):
    """The matrix k(x_i, z_j) in float64, as textbooks have it."""
    X, Z = (np.asarray(A.toarray() if hasattr(A, "toarray") else A, dtype=np.float64) for A in (X, Z))
    return kernel_table.matrix(name, X, Z, **params)


# --- Slack norms --------------------------------------------------------------------------------------------


def ones(y, weights):
    return np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)


def slacks(y, f, b, constraint):
    """xi = 1 - y (f + b), or its positive part."""
    xi = 1 - y * (f + b)
    return xi if constraint == "equality" else np.maximum(xi, 0)


def loss(slack, y, C, f, b, constraint, weights=None):
    """C phi for given decision values. Slacks may be larger than they need be: where that pays, they are."""
    xi = slacks(y, f, b, constraint)
    if constraint == "inequality" and type(slack).__name__ == "Mahalanobis":
        xi = xi + nnls(factor(slack), -factor(slack) @ xi)[0]
    return C * entry_of(slack).value(slack, xi, ones(y, weights))


def overshoot(slack, y, a, C, constraint, weights=None):
    """How far the signed duals are outside their set: 0 if they are inside."""
    alpha = y * a
    beyond = [
        np.max(size.value / (C * limit)) - 1 for size, limit in entry_of(slack).sizes(slack, alpha, ones(y, weights))
    ]
    return max(0.0, *beyond, *([-alpha.min()] if constraint == "inequality" else []), 0.0)


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


def solve_primal(K, y, slack, C, constraint, weights=None) -> Optimum:
    """The primal, with f = L w and |f|^2 = |w|^2."""
    L = square_root(K)
    w, b, xi = cp.Variable(L.shape[1]), cp.Variable(), cp.Variable(len(y))
    margin = 1 - cp.multiply(y, L @ w + b)
    constraints = [xi == margin] if constraint == "equality" else [xi >= margin, xi >= 0]
    objective = cp.sum_squares(w) / 2 + C * entry_of(slack).expression(slack, xi, ones(y, weights))
    value = optimize(cp.Problem(cp.Minimize(objective), constraints))
    return Optimum(None, L @ w.value, value)


def solve(K, y, slack, C, constraint, weights=None) -> Optimum:
    """The optimum of one machine, by its dual."""
    w = ones(y, weights)
    L = square_root(K)
    alpha = cp.Variable(len(y))
    a = cp.multiply(y, alpha)
    limits = [y @ alpha == 0] + [size / C <= limit for size, limit in entry_of(slack).sizes(slack, alpha, w)]
    limits += [alpha >= 0] if constraint == "inequality" else []
    ridge = entry_of(slack).ridge(C, w)
    objective = cp.sum(alpha) - cp.sum_squares(L.T @ a) / 2 - cp.sum_squares(cp.multiply(np.sqrt(ridge / 2), alpha))
    value = optimize(cp.Problem(cp.Maximize(objective), limits))
    f = L @ (L.T @ a.value)
    low, high, _ = best_bias(lambda b: loss(slack, y, C, f, b, constraint, weights), y - f)
    return Optimum(a.value, f, value, (low, high))


# --- Certificate and bias (section 1.3) ---------------------------------------------------------------------


def certificate(K, y, a, b, slack, C, constraint, weights=None):
    """Primal value, dual value and relative gap of any feasible a and any b."""
    f = K @ a
    norm = a @ f
    primal = norm / 2 + loss(slack, y, C, f, b, constraint, weights)
    dual = y @ a - norm / 2 - (entry_of(slack).ridge(C, ones(y, weights)) * a**2).sum() / 2
    return primal, dual, (primal - dual) / abs(dual)


def best_bias(loss_of_b, residuals):
    """The interval of minimisers of a convex function of b, by brute force.

    The minimum lies between the smallest and the largest residual y - f: thirds are thrown away until nothing
    is left. The ends are where the value rises measurably above the least one.
    """
    low, high = float(np.min(residuals)) - 1, float(np.max(residuals)) + 1
    at, least = min(((float(r), loss_of_b(r)) for r in residuals), key=lambda pair: pair[1])
    left, right = low, high
    for _ in range(100):
        first, second = left + (right - left) / 3, right - (right - left) / 3
        if loss_of_b(first) <= loss_of_b(second):
            right = second
        else:
            left = first
    if loss_of_b(left) < least:
        at, least = left, loss_of_b(left)
    level = least + 1e-14 * (1 + abs(least))

    def edge(inside, outside):
        for _ in range(70):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if loss_of_b(middle) <= level else (inside, middle)
        return inside

    return edge(at, low), edge(at, high), least
