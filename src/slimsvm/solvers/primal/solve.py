"""Solver of linear models in m dimensions, for all models over given vectors.

With features P (n x m), one problem for each output,

    min_{w,b}  1/2 |w|^2 + sum_i loss(p_i.w + b, y_i).

Smooth losses are solved by Newton's method, the hinge by an interior point method on rows near the margin; both end
with a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...linalg.arrays import Array
from ...rows.protocol import FeatureSource, LinearWeights
from ..certificate import certify_rows
from .interior import careful, solve_interior
from .newton import newton
from .passes import KnownDuals


@dataclass(frozen=True)
class LinearSolution(LinearWeights):
    """Weights (outputs x features + 1, the bias last), and the certificate of each output.

    ``known_duals`` are row numbers and signed duals for each output, where decision values do not determine the duals;
    a smooth loss may have none.
    """

    V: Array
    known_duals: tuple[tuple[Array, Array], ...]
    objective: Array  # of the primal
    gap: Array  # (primal - dual) / dual
    n_iter: Array

    def or_better(self, other: LinearSolution) -> LinearSolution:
        """For each output the solution with the smaller gap; ``n_iter`` is that of ``other``, the later one."""
        late = other.gap < self.gap
        late |= ~np.isfinite(self.gap) & (other.objective <= self.objective)
        known_duals = tuple(
            b if new else a for new, a, b in zip(late, self.known_duals, other.known_duals, strict=True)
        )
        V = np.where(late[:, None], other.V, self.V)
        objective, gap = np.where(late, other.objective, self.objective), np.where(late, other.gap, self.gap)
        return LinearSolution(V, known_duals, objective, gap, other.n_iter)


NO_DUALS = (np.empty(0, dtype=np.int64), np.empty(0))


def solve(
    rows: FeatureSource,
    loss: Any,
    start: Array | None = None,
    tol: float = 1e-9,
    max_iter: int = 100,
    need: float | None = None,
    which: Array | None = None,
) -> LinearSolution:
    """Solve the problems of the outputs ``which`` (None: all) to a relative duality gap of ``tol``.

    ``max_iter`` bounds the steps of all methods together. More expensive methods are tried only where the gap is above
    ``need`` (None: ``tol``).
    """
    need = tol if need is None else need
    which = np.arange(rows.labels.outputs) if which is None else which
    start = start if start is not None and np.isfinite(start).all() else None
    solution = _smooth(rows, loss, which, start, tol, max_iter) if loss.smooth else None
    # Interior points have duals as variables; a smooth loss has them from ``1 - y f``, which may be below rounding.
    for method in (careful,) if loss.smooth else (None, careful):
        left = max_iter if solution is None else max_iter - int(solution.n_iter.max())
        if solution is not None and ((solution.gap <= need).all() or left <= 0 or not hasattr(loss, "dual_box")):
            break
        o = np.arange(len(which)) if solution is None else np.flatnonzero(solution.gap > need)
        solution = _interior(rows, loss, which, start, tol, left, o, solution, method)
    assert solution is not None
    return solution


def _interior(
    rows: FeatureSource,
    loss: Any,
    which: Array,
    start: Array | None,
    tol: float,
    max_iter: int,
    o: Array,
    before: LinearSolution | None,
    method: Any,
) -> LinearSolution:
    """Solve the outputs ``o`` by interior points, and keep the results that are better than ``before``."""
    near = None if start is None else start[o]
    V, known_duals, n_iter = solve_interior(rows, loss, which[o], tol, max_iter, near, method)
    if before is None:
        return certified(rows, loss, which, V, known_duals, n_iter)
    improved = certified(rows, loss, which[o], V, known_duals, before.n_iter[o] + n_iter)
    merged = replace(before, V=before.V.copy(), objective=before.objective.copy(), gap=before.gap.copy())
    merged.V[o], merged.objective[o], merged.gap[o] = improved.V, improved.objective, improved.gap
    duals = list(before.known_duals)
    steps = before.n_iter.copy()
    for k, place in enumerate(o):
        duals[place], steps[place] = improved.known_duals[k], improved.n_iter[k]
    return before.or_better(replace(merged, known_duals=tuple(duals), n_iter=steps))


def _smooth(
    rows: FeatureSource, loss: Any, which: Array, start: Array | None, tol: float, max_iter: int
) -> LinearSolution:
    """Newton's method with ever smaller tolerances for the estimated gain, until the duality gap is small enough."""
    best: LinearSolution | None = None
    n_iter = np.zeros(len(which), dtype=int)
    for accuracy in tol * np.array([1.0, 1e-3, 1e-6, 1e-9]):
        left = max_iter - int(n_iter.max())
        state = newton(rows, loss, start, accuracy, min(left, 30), which)
        n_iter, start = n_iter + state.n_iter, state.V
        solution = certified(rows, loss, which, state.V, (), n_iter)
        stuck = best is not None and not (solution.gap < 0.5 * best.gap).any()
        best = solution if best is None else best.or_better(solution)
        # With few rows in error and many features, Newton's method may cycle through sets of active rows.
        if (best.gap <= tol).all() or stuck or n_iter.max() >= max_iter or not state.converged.all():
            break
    assert best is not None
    return best


def certified(
    rows: FeatureSource, loss: Any, which: Array, V: Array, known_duals: KnownDuals, n_iter: Array
) -> LinearSolution:
    """The solution with its duality gap."""
    proof = certify_rows(rows, loss, which, V, known_duals=known_duals, rounding=False)
    return LinearSolution(V, tuple(known_duals) or (NO_DUALS,) * len(V), proof.primal, proof.gap, n_iter)
