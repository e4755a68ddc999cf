"""Linear machines in m dimensions: the solver of everything that has a basis.

With features P (n x m), one machine for each output,

    min_{w,b}  1/2 |w|^2 + sum_i loss(p_i.w + b, y_i).

Smooth losses are solved by Newton's method, the hinge by interior points near the margin; both end with a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...linalg.arrays import Array
from ...rows.protocol import FeatureSource, LinearWeights
from ..certificate import of_rows
from .interior import careful, solve_interior
from .newton import newton
from .passes import Known


@dataclass(frozen=True)
class LinearSolution(LinearWeights):
    """Weights (outputs x features + 1, the bias last), and the certificate of each output.

    ``known`` are signed duals that decision values do not tell, by rows; of a smooth loss there may be none.
    """

    V: Array
    known: tuple[tuple[Array, Array], ...]
    objective: Array  # of the primal
    gap: Array  # (primal - dual) / dual
    n_iter: Array

    def or_better(self, other: LinearSolution) -> LinearSolution:
        """The better of both for each output; ``other`` came after this one and counts its steps too."""
        late = other.gap < self.gap
        late |= ~np.isfinite(self.gap) & (other.objective <= self.objective)
        known = tuple(b if new else a for new, a, b in zip(late, self.known, other.known, strict=True))
        chosen = {name: np.where(late, getattr(other, name), getattr(self, name)) for name in ("objective", "gap")}
        return LinearSolution(np.where(late[:, None], other.V, self.V), known, **chosen, n_iter=other.n_iter)


NOTHING = (np.empty(0, dtype=np.int64), np.empty(0))


def solve(
    rows: FeatureSource,
    loss: Any,
    start: Array | None = None,
    tol: float = 1e-9,
    max_iter: int = 100,
    need: float | None = None,
    which: Array | None = None,
) -> LinearSolution:
    """The machines of some outputs (None: all) to a relative duality gap of ``tol``.

    ``max_iter`` bounds the steps of all methods together. Dearer methods are tried only where the gap is above
    ``need`` (None: ``tol``).
    """
    need = tol if need is None else need
    which = np.arange(rows.labels.outputs) if which is None else which
    start = start if start is not None and np.isfinite(start).all() else None
    found = _smooth(rows, loss, which, start, tol, max_iter) if loss.smooth else None
    # Interior points have duals of their own, where a smooth loss takes differences from 1 that may be below rounding.
    for method in (careful,) if loss.smooth else (None, careful):
        left = max_iter if found is None else max_iter - int(found.n_iter.max())
        if found is not None and ((found.gap <= need).all() or left <= 0 or not hasattr(loss, "dual_box")):
            break
        o = np.arange(len(which)) if found is None else np.flatnonzero(found.gap > need)
        found = _interior(rows, loss, which, start, tol, left, o, found, method)
    assert found is not None
    return found


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
    """Some of the outputs by interior points, if that is better than before."""
    near = None if start is None else start[o]
    V, known, n_iter = solve_interior(rows, loss, which[o], tol, max_iter, near, method)
    if before is None:
        return certified(rows, loss, which, V, known, n_iter)
    mine = certified(rows, loss, which[o], V, known, before.n_iter[o] + n_iter)
    merged = replace(before, V=before.V.copy(), objective=before.objective.copy(), gap=before.gap.copy())
    merged.V[o], merged.objective[o], merged.gap[o] = mine.V, mine.objective, mine.gap
    duals = list(before.known)
    steps = before.n_iter.copy()
    for k, place in enumerate(o):
        duals[place], steps[place] = mine.known[k], mine.n_iter[k]
    return before.or_better(replace(merged, known=tuple(duals), n_iter=steps))


def _smooth(
    rows: FeatureSource, loss: Any, which: Array, start: Array | None, tol: float, max_iter: int
) -> LinearSolution:
    """Newton's method stops on what is left to gain; the gap, which bounds it, may need a step or two more."""
    best: LinearSolution | None = None
    n_iter = np.zeros(len(which), dtype=int)
    for accuracy in tol * np.array([1.0, 1e-3, 1e-6, 1e-9]):
        left = max_iter - int(n_iter.max())
        state = newton(rows, loss, start, accuracy, min(left, 30), which)
        n_iter, start = n_iter + state.n_iter, state.V
        found = certified(rows, loss, which, state.V, (), n_iter)
        stuck = best is not None and not (found.gap < 0.5 * best.gap).any()
        best = found if best is None else best.or_better(found)
        # Few rows in error and many features: Newton's method may wander from one set of rows to the next.
        if (best.gap <= tol).all() or stuck or n_iter.max() >= max_iter or not state.converged.all():
            break
    assert best is not None
    return best


def certified(rows: FeatureSource, loss: Any, which: Array, V: Array, known: Known, n_iter: Array) -> LinearSolution:
    """The solution with its duality gap."""
    objective, gap = of_rows(rows, loss, which, V, known=known, proof=False)
    return LinearSolution(V, tuple(known) or (NOTHING,) * len(V), objective, gap, n_iter)
