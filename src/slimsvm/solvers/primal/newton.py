"""Newton's method for linear models in m dimensions with a smooth loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...linalg.array_api import asarray_like, to_numpy
from ...linalg.arrays import Array
from ...problem.losses import SmoothLoss, quadratic_pieces
from ...rows.protocol import FeatureSource, LinearWeights
from .equations import from_rows, from_sums
from .passes import Equations, Line

# Slopes that are accepted: without a line search, as a share of the slope at its start; after one, as a share of the
# predicted gain. The core, whose rows are in memory, uses 0.1 and 2e-3: measured on 240 problems, as many steps and as
# accurate, but 9 % more passes over the rows.
FLAT_ENOUGH, LINE_SEARCH_TOL = 0.2, 2e-2
COARSE_ROWS, COARSE_ROWS_PER_FEATURE = (
    20_000,
    500,
)  # sampled from remote rows for the first steps
FLOAT32_SUM_ROUNDING = 1e-6  # relative, of sums over features in float32
# Stop after 3 steps in a row that predicted a relative gain of 1e-3 or more and gained nothing, or whose line search
# failed.
MAX_STEPS_WITHOUT_GAIN, MIN_PREDICTED_GAIN = 3, 1e-3


@dataclass(frozen=True)
class NewtonState(LinearWeights):
    """Weights (outputs x features + 1, the bias last), steps taken, and which outputs are solved."""

    V: Array
    n_iter: Array
    converged: Array


def newton(
    rows: FeatureSource,
    loss: SmoothLoss,
    start: Array | None = None,
    tol: float = 1e-9,
    max_iter: int = 200,
    which: Array | None = None,
) -> NewtonState:
    """Newton's method with an exact line search, outputs (``which``, or all) side by side.

    It ends when half the squared Newton decrement, an estimate of the remaining decrease, is at most ``tol`` times the
    objective. (The norm of a float32 gradient may never get small.)
    """
    which = np.arange(rows.labels.outputs) if which is None else which
    m, outputs = rows.shape[1], len(which)
    V = np.zeros((outputs, m + 1)) if start is None else np.array(start, dtype=np.float64)
    # Where no row has curvature the bias is not determined: a tiny ridge fixes it.
    trifle = 1e-12 * rows.labels.totals[which]
    pieces = quadratic_pieces(loss)
    in_core = None if pieces is None else rows.newton(pieces, which, V, trifle, tol, max_iter)
    if in_core is not None:
        return NewtonState(*in_core)
    if rows.is_remote and start is None:
        V = newton(coarse_sample(rows), loss, None, 1e-3, max_iter, which).V
    own = np.hstack([np.ones((outputs, m)), trifle[:, None]])
    n_iter = np.zeros(outputs, dtype=int)
    converged = np.zeros(outputs, dtype=bool)
    last_gain, without_gain = np.full(outputs, np.inf), np.zeros(outputs, dtype=int)
    o = np.arange(outputs)  # outputs that are not finished
    at = NewtonPoint.of(rows, loss, which, V)
    for _ in range(max_iter):
        each = zip(which[o], at.V, at.grams, own[o], at.gradient, strict=True)
        steps = np.stack([_step(rows, loss, *one) for one in each])
        gain = -0.5 * (steps * at.gradient).sum(axis=1)
        fine = np.isfinite(gain)  # else numbers overflow, and the output stays as it is
        objective = at.objective
        # Below 1e-6 each step should square the relative gain; if not, only rounding errors are left.
        stuck = (gain > 0.5 * last_gain[o]) & (gain < 1e-6 * objective)
        last_gain[o] = gain
        moving = (gain > tol * objective) & ~stuck
        last = fine & ~moving
        V[o[last]] += steps[last]  # a full step: convergence is quadratic here
        n_iter[o[fine]] += 1
        converged[o[last]] = True
        o = o[moving]
        if not len(o):
            break
        before, gain = at.take(moving), gain[moving]
        at, placed = before.moved(rows, loss, which[o], steps[moving], gain)
        V[o] = at.V
        gained = (at.objective < before.objective) | (gain < MIN_PREDICTED_GAIN * before.objective)
        without_gain[o] = np.where(gained & placed, 0, without_gain[o] + 1)
        going = without_gain[o] < MAX_STEPS_WITHOUT_GAIN
        o, at = o[going], at.take(going)
        if not len(o):
            break
    return NewtonState(V, n_iter, converged)


def coarse_sample(rows: FeatureSource) -> FeatureSource:
    """A small sample of remote rows, in memory: steps on it cost less than passes over all rows."""
    n, m = rows.shape
    return rows.subsampled(max(1, n // max(COARSE_ROWS, COARSE_ROWS_PER_FEATURE * m)))


@dataclass(frozen=True)
class NewtonPoint:
    """Outputs at weights V: losses, gradients of the objectives, second derivatives of the losses."""

    V: Array
    value: Array
    gradient: Array
    grams: Array

    @classmethod
    def of(cls, rows: FeatureSource, loss: Any, which: Array, V: Array) -> NewtonPoint:
        """The point at weights V, in one pass over the rows."""
        value, moments, grams = rows.total(Equations(loss), which, V)
        gradient = V - moments
        gradient[:, -1] = -moments[:, -1]
        return cls(V.copy(), value, gradient, grams)

    @property
    def objective(self) -> Array:
        """``1/2 |w|^2`` plus the losses."""
        return 0.5 * (self.V[:, :-1] ** 2).sum(axis=1) + self.value

    def take(self, o: Array) -> NewtonPoint:
        """Some of the outputs."""
        return NewtonPoint(self.V[o], self.value[o], self.gradient[o], self.grams[o])

    def moved(
        self, rows: FeatureSource, loss: Any, which: Array, steps: Array, gain: Array
    ) -> tuple[NewtonPoint, Array]:
        """The minimum along Newton's steps, whose predicted gain is ``gain``, and for which outputs it was found.

        The full step, nearly always good enough, is tried first, with all that the next step needs.
        """
        whole = NewtonPoint.of(rows, loss, which, self.V + steps)
        flat = np.abs((whole.gradient * steps).sum(axis=1)) <= FLAT_ENOUGH * 2 * gain
        # From where there is no curvature a step may be far too long, and the slope at its end small by chance.
        lower = whole.objective <= (1 + FLOAT32_SUM_ROUNDING) * self.objective
        left = np.flatnonzero(~(flat & lower))
        placed = np.ones(len(which), dtype=bool)
        if not len(left):
            return whole, placed
        t, placed[left] = line_search(rows, loss, which[left], self.V[left], steps[left], gain[left])
        other = NewtonPoint.of(rows, loss, which[left], self.V[left] + t[:, None] * steps[left])
        for mine, new in ((whole.V, other.V), (whole.value, other.value), (whole.gradient, other.gradient)):
            mine[left] = new
        whole.grams[left] = other.grams
        return whole, placed


def _step(rows: FeatureSource, loss: Any, output: int, v: Array, gram: Array, own: Array, gradient: Array) -> Array:
    """Newton's step of one output; NaN where its equations are lost to rounding."""
    gram[np.arange(len(own)), np.arange(len(own))] += own
    solver = from_sums(gram) or from_rows(_weighted(rows, loss, np.array([output]), v[None]), own)
    return np.full(len(own), np.nan) if solver is None else -solver(gradient)


def _weighted(rows: FeatureSource, loss: Any, which: Array, V: Array) -> Any:
    """Features and curvatures of one output, a block at a time."""
    for block in rows.blocks():
        there = block.labels(which)
        sent = asarray_like(there[0], V, there[0].dtype)
        yield to_numpy(block.features()), to_numpy(loss.curvature(block.values(which, sent), *there)[:, 0])


def line_search(rows: FeatureSource, loss: Any, which: Array, V: Array, D: Array, gain: Array) -> tuple[Array, Array]:
    """The t that minimises ``1/2 |w + t d|^2 + loss(V + t D)`` for each output, the root of its derivative; and whether
    it was found.

    The derivative increases from ``-2 gain`` at t = 0; a hundredth of that is accepted. Each pass evaluates three t;
    the next three are Newton's steps from both ends of the bracket and the secant between them.
    """
    accuracy = LINE_SEARCH_TOL * gain
    slope, bend = (V[:, :-1] * D[:, :-1]).sum(axis=1)[:, None], (D[:, :-1] ** 2).sum(axis=1)[:, None]
    work, outputs = Line(loss), len(which)
    t = np.tile([0.5, 1.0, 2.0], (outputs, 1))
    best, missed = np.ones(outputs), np.full(outputs, np.inf)
    low, high = np.zeros((outputs, 3)), np.full((outputs, 3), np.inf)  # ends of the bracket: t, both derivatives
    low[:, 1] = -2 * gain
    open_ = np.arange(outputs)
    for tried in range(25):
        first, second = rows.total(work, which[open_], V[open_], D[open_], t[open_])
        derivative, second = slope[open_] + t[open_] * bend[open_] + first, second + bend[open_]
        for k in range(3):
            at = np.stack([t[open_, k], derivative[:, k], second[:, k]], axis=1)
            size = np.abs(at[:, 1])
            better = size < missed[open_]
            best[open_[better]], missed[open_[better]] = at[better, 0], size[better]
            below, above = (at[:, 1] <= 0) & (at[:, 0] >= low[open_, 0]), (at[:, 1] >= 0) & (at[:, 0] <= high[open_, 0])
            low[open_[below]], high[open_[above]] = at[below], at[above]
        open_ = np.flatnonzero(missed > accuracy)
        if not len(open_):
            break
        t[open_] = _next_places(low[open_], high[open_], bool(tried % 2))
    return best, missed <= accuracy


def _next_places(low: Array, high: Array, halved: bool) -> Array:
    """Three t inside each bracket; ``halved``: the midpoint instead of the secant, so that the bracket surely shrinks.

    Where the loss is linear, a step may be too long by orders of magnitude: wide brackets are split geometrically.
    """
    a, b = low[:, 0], high[:, 0]
    wide = ~np.isfinite(b)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        from_low, from_high = a - low[:, 1] / low[:, 2], b - high[:, 1] / high[:, 2]
        secant = a - low[:, 1] * (b - a) / (high[:, 1] - low[:, 1])
    t = np.stack([from_low, from_high, np.full_like(a, np.nan) if halved else secant], axis=1)
    end = np.where(wide, 64 * np.maximum(a, 1.0), b)
    begin = np.maximum(np.maximum(a, 2.0**-12 * end), np.finfo(float).tiny)
    parts = np.array([0.25, 0.75, 0.5])
    ratio, span = (end / begin)[:, None], (end - a)[:, None]
    inside = np.where(ratio > 4, begin[:, None] * ratio**parts, a[:, None] + span * parts)
    return np.where((t > a[:, None]) & (t < b[:, None]), t, inside)
