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
from .interior import careful, solve_interior
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

    def or_better(self, other: LinearSolution) -> LinearSolution:
        """The better of both for each output; ``other`` came after this one and counts its steps too."""
        late = other.gap < self.gap
        late |= ~np.isfinite(self.gap) & (other.objective <= self.objective)

        def chosen(name: str) -> Array:
            return np.where(late, getattr(other, name), getattr(self, name))

        return LinearSolution(
            chosen("w"), chosen("bias"), chosen("duals"), chosen("objective"), chosen("gap"), n_iter=other.n_iter
        )


def solve(
    features: Features,
    Y: Array,
    C: Array,
    loss: Any,
    start: tuple[Array, Array] | None = None,
    tol: float = 1e-9,
    max_iter: int = 100,
    need: float | None = None,
) -> LinearSolution:
    """One machine for each column of Y (+-1, or 0 where C is 0), to a relative duality gap of ``tol``.

    ``max_iter`` bounds the steps of all methods together. Dearer methods are tried only where the gap is above
    ``need`` (None: ``tol``).
    """
    need = tol if need is None else need
    start = start if start is not None and all(np.isfinite(part).all() for part in start) else None
    found = _smooth(features, Y, C, loss, start, tol, max_iter) if loss.smooth else None
    # Interior points have duals of their own, where a smooth loss takes differences from 1 that may be below rounding.
    for method in (careful,) if loss.smooth else (None, careful):
        left = max_iter if found is None else max_iter - int(found.n_iter.max())
        if found is not None and ((found.gap <= need).all() or left <= 0 or not hasattr(loss, "dual_box")):
            break
        o = np.arange(Y.shape[1]) if found is None else np.flatnonzero(found.gap > need)
        found = _interior(features, Y, C, loss, start, tol, left, o, found, method)
    assert found is not None
    return found


def _interior(
    features: Features,
    Y: Array,
    C: Array,
    loss: Any,
    start: tuple[Array, Array] | None,
    tol: float,
    max_iter: int,
    o: Array,
    before: LinearSolution | None,
    method: Any,
) -> LinearSolution:
    """Outputs ``o`` by interior points, if that is better than before."""
    near = None if start is None else (start[0][:, o], start[1][o])
    w, bias, A, n_iter = solve_interior(features, Y[:, o], C[:, o], loss, tol, max_iter, near, method)
    if before is None:
        return certified(features, Y, C, loss, w, bias, A, n_iter)
    all_w, all_bias, all_A, steps = (part.copy() for part in (before.w, before.bias, before.duals, before.n_iter))
    all_w[:, o], all_bias[o], all_A[:, o] = w, bias, A
    steps[o] += n_iter
    return before.or_better(certified(features, Y, C, loss, all_w, all_bias, all_A, steps))


def _smooth(
    features: Features, Y: Array, C: Array, loss: Any, start: tuple[Array, Array] | None, tol: float, max_iter: int
) -> LinearSolution:
    """Newton's method stops on what is left to gain; the gap, which bounds it, may need a step or two more."""
    best: LinearSolution | None = None
    n_iter = np.zeros(Y.shape[1], dtype=int)
    for accuracy in tol * np.array([1.0, 1e-3, 1e-6, 1e-9]):
        left = max_iter - int(n_iter.max())
        state = newton(features, Y, C, loss, start, accuracy, min(left, 30))
        n_iter = n_iter + state.n_iter
        start = state.w, state.bias
        found = certified(features, Y, C, loss, state.w, state.bias, loss.duals(state.F, Y, C), n_iter)
        stuck = best is not None and not (found.gap < 0.5 * best.gap).any()
        best = found if best is None else best.or_better(found)
        # Few rows in error and many features: Newton's method may wander from one set of rows to the next.
        if (best.gap <= tol).all() or stuck or n_iter.max() >= max_iter or not state.converged.all():
            break
    assert best is not None
    return best


def certified(
    features: Features, Y: Array, C: Array, loss: Loss, w: Array, bias: Array, A: Array, n_iter: Array
) -> LinearSolution:
    """The solution with its duality gap; the duals are first made feasible: they sum to zero."""
    A = balanced(A)
    moments, _ = sums(features, A, exact=True)
    dual = loss.conjugate(A, Y, C) - 0.5 * (moments[:-1] ** 2).sum(axis=0)
    primal = 0.5 * (w**2).sum(axis=0) + loss.value(times(features, w, bias, exact=True), Y, C)
    return LinearSolution(w, bias, A, primal, relative_gap(primal, dual), n_iter)
