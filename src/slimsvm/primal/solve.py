"""Linear machines in m dimensions: the solver of everything that has a basis.

With features P (n x m), one machine for each output,

    min_{w,b}  1/2 |w|^2 + sum_i loss(p_i.w + b, y_i).

Smooth losses are solved by Newton's method, the hinge by interior points; both end with a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..certificate import balanced, relative_gap
from ..formulation import Array
from ..parts.losses import Loss
from .interior import solve_interior
from .newton import newton
from .passes import Features, sums, times


@dataclass(frozen=True)
class LinearSolution:
    """Weights (m x outputs) and biases, signed duals (n x outputs), and the certificate of each output."""

    w: Array
    bias: Array
    duals: Array
    objective: Array  # of the primal
    gap: Array  # (primal - dual) / dual
    n_iter: Array


def solve(
    features: Features,
    Y: Array,
    C: Array,
    loss: Any,
    start: tuple[Array, Array] | None = None,
    tol: float = 1e-9,
    max_iter: int = 100,
) -> LinearSolution:
    """One machine for each column of Y (+-1, or 0 where C is 0), to a relative duality gap of ``tol``."""
    if not loss.smooth:
        w, bias, A, n_iter = solve_interior(features, Y, C, loss, tol, max_iter)
        return certified(features, Y, C, loss, w, bias, A, n_iter)
    n_iter = np.zeros(Y.shape[1], dtype=int)
    interior = False
    # Newton's method stops on what is left to gain; the gap, which bounds it, may need a step or two more.
    for accuracy in tol * np.array([1.0, 1e-3, 1e-6, 1e-9]):
        left = max_iter - int(n_iter.max())
        state = newton(features, Y, C, loss, start, accuracy, min(left, 50))
        n_iter += state.n_iter
        left = max_iter - int(n_iter.max())
        if not state.converged.all() and not interior and left > 0:
            # Few rows in error and many features: Newton's method wanders from one set of rows to the next.
            interior = True
            w, bias, _, more = solve_interior(features, Y, C, loss, 1e-3 * tol, left)
            n_iter += more
            state = newton(features, Y, C, loss, (w, bias), accuracy, max(1, left - int(more.max())))
            n_iter += state.n_iter
        start = state.w, state.bias
        solution = certified(features, Y, C, loss, *start, loss.duals(state.F, Y, C), n_iter)
        if (solution.gap <= tol).all() or n_iter.max() >= max_iter:
            break
    return solution


def certified(
    features: Features, Y: Array, C: Array, loss: Loss, w: Array, bias: Array, A: Array, n_iter: Array
) -> LinearSolution:
    """The solution with its duality gap; the duals are first made feasible: they sum to zero."""
    A = balanced(A)
    moments, _ = sums(features, A, exact=True)
    dual = loss.conjugate(A, Y, C) - 0.5 * (moments[:-1] ** 2).sum(axis=0)
    primal = 0.5 * (w**2).sum(axis=0) + loss.value(times(features, w, bias, exact=True), Y, C)
    return LinearSolution(w, bias, A, primal, relative_gap(primal, dual), n_iter)
