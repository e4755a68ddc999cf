"""Interior point method for linear models in m dimensions with a hinge-like loss.

The dual is ``max q'alpha - 1/2 |w|^2 - 1/2 sum(ridge alpha^2)`` with ``w = sum y alpha p``, ``y'alpha = 0`` and
``0 <= alpha <= upper``. Margins are ``y f = q - ridge alpha + s - xi`` with s, xi >= 0, whose multipliers are alpha
and ``upper - alpha``. Labels have q = 1. A row with a target t appears twice, with y = 1 and q = t - epsilon, and
with y = -1 and q = -(t + epsilon). Newton's equations reduce to the m + 1 unknowns (w, b) with a weight on each row:
the same sums over blocks of rows as in Newton's method for a smooth loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from ...linalg.array_api import namespace
from ...linalg.arrays import Array
from ...linalg.matrix import dot
from ...problem.losses import gap_floor, reads_targets, smooth_surrogate
from ...rows.labels import RowLabels
from ...rows.memory import DenseFeatures, row_blocks
from ...rows.protocol import FeatureSource
from ..mehrotra import PrimalDualPoint, Towards, advanced, complementarity
from .equations import from_rows, from_sums
from .newton import newton
from .passes import weighted_gram

MAX_FEATURE_BYTES = 2.0**30  # of features kept in memory


def sided(loss: Any, Y: Array, C: Array) -> tuple[Array, Array, Array]:
    """Signs y, margins q and costs of the one-sided losses whose sum is the given loss."""
    if not reads_targets(loss):
        return Y, np.ones(len(Y)), C
    y = np.repeat([1.0, -1.0], len(Y))
    return y, y * np.tile(Y, 2) - loss.epsilon, np.tile(C, 2)


def beyond(loss: Any, F: Array, Y: Array) -> Array:
    """Distance of decision values beyond the corner of the loss; negative where they cost nothing."""
    return namespace(F).abs(Y - F) - loss.epsilon if reads_targets(loss) else 1 - Y * F


@dataclass
class CappedIterate(PrimalDualPoint):
    """A point or a step where ``upper`` is finite. ``room`` is ``upper - alpha``, stored because it may be tiny."""

    w: Array
    bias: float
    f: Array
    alpha: Array
    s: Array
    xi: Array
    room: Array

    def pairs(self) -> tuple[tuple[Array, Array], ...]:
        return (self.alpha, self.s), (self.room, self.xi)


@dataclass
class UncappedIterate(CappedIterate):
    """A point or a step where alpha has no upper bound: xi is zero and room infinite."""

    def pairs(self) -> tuple[tuple[Array, Array], ...]:
        return ((self.alpha, self.s),)


class Members:
    """A subset of the rows; its features are in memory or, where they are too large, computed block by block."""

    def __init__(self, rows: FeatureSource, numbers: Array, known: Array | None = None):
        self.rows, self.numbers = rows, numbers
        self.shape = len(numbers), rows.shape[1]
        n, m = self.shape
        self.kept = rows.features(numbers) if known is None and 8 * n * m <= MAX_FEATURE_BYTES else known

    @classmethod
    def each(cls, rows: FeatureSource, numbers: list[Array]) -> Iterator[Members]:
        """One `Members` for each array of row numbers; where they fit in memory, all features are fetched at once."""
        together = np.unique(np.concatenate(numbers))
        if len(numbers) == 1 or 8 * len(together) * rows.shape[1] > MAX_FEATURE_BYTES:
            yield from (cls(rows, mine) for mine in numbers)
            return
        P = rows.features(together)
        yield from (cls(rows, mine, P[np.searchsorted(together, mine)]) for mine in numbers)

    def both(self, u: Array) -> Array:
        """The identity: each row appears once, unlike in `Twice`."""
        return u

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Slices of the positions, with the features of their rows."""
        n, m = self.shape
        for some in row_blocks(n, 8 * m):
            yield some, self.rows.features(self.numbers[some]) if self.kept is None else self.kept[some]

    def moments(self, u: Array) -> Array:
        """``[P 1]'u``."""
        return np.append(sum(dot(u[some], P) for some, P in self.blocks()), u.sum())

    def equations(self, u: Array, h: Array) -> tuple[Array, Array]:
        """``[P 1]'u`` and ``[P 1]' diag(h) [P 1]``."""
        m = self.shape[1]
        pull, gram = np.zeros(m), np.zeros((m + 1, m + 1))
        for some, P in self.blocks():
            pull += dot(u[some], P)
            gram += weighted_gram(P, h[some])
        return np.append(pull, u.sum()), gram

    def values(self, v: Array) -> Array:
        """``[P 1] v``."""
        return np.concatenate([dot(P, v[:-1]) for _, P in self.blocks()]) + v[-1]


class Twice:
    """All rows twice, one copy after the other: one for each of their two one-sided losses."""

    def __init__(self, rows: Members):
        self.rows = rows
        self.shape = 2 * rows.shape[0], rows.shape[1]

    def both(self, u: Array) -> Array:
        """Sum over the two copies of each row."""
        return u[: len(u) // 2] + u[len(u) // 2 :]

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        for first in (0, self.rows.shape[0]):
            for some, P in self.rows.blocks():
                yield slice(first + some.start, first + some.stop), P

    def moments(self, u: Array) -> Array:
        return self.rows.moments(self.both(u))

    def equations(self, u: Array, h: Array) -> tuple[Array, Array]:
        return self.rows.equations(self.both(u), self.both(h))

    def values(self, v: Array) -> Array:
        return np.tile(self.rows.values(v), 2)


class InteriorPoint:
    """The problem over rows with labels or targets Y and costs C.

    ``fixed`` is the sum of ``a [p 1]`` over further rows whose signed duals a are known, ``constant`` their part of the
    dual value, and ``mass`` the sum of ``|a|``.
    ``careful``: factorise the rows instead of sums over them in every step, at several times the cost.
    """

    def __init__(
        self,
        rows: Members,
        Y: Array,
        C: Array,
        loss: Any,
        fixed: Array | None = None,
        constant: float = 0,
        mass: float = 0,
        careful: bool = False,
    ):
        self.members, self.Y, self.costs, self.loss = rows, Y, C, loss
        self.y, self.q, self.C = sided(loss, Y, C)
        self.rows: Any = Twice(rows) if reads_targets(loss) else rows
        self.fixed, self.constant = np.zeros(rows.shape[1] + 1) if fixed is None else fixed, constant
        self.mass = mass
        self.ridge, self.upper = loss.dual_box(self.C)
        self.least = max(gap_floor(loss, float(C.sum())), np.finfo(float).tiny)
        self.point = CappedIterate if np.isfinite(self.upper[0]) else UncappedIterate
        self.careful = careful
        # Cap the weights of rows that would swamp the others in the Newton matrix; refinement makes up for it.
        squares = sum(float(np.einsum("ij,ij->", P, P, dtype=np.float64)) for _, P in self.rows.blocks())
        self.most = (1e26 if careful else 1e13) / squares if squares > 0 else np.inf

    def solve(self, tol: float, max_iter: int, near: Array | None = None) -> tuple[Array, Array, int]:
        """Weights (the bias last), signed duals and number of iterations; ``near`` are weights to start from."""
        iterate, used = self.start(near, max_iter)
        best, best_gap, mark, mark_at = iterate, np.inf, (np.inf, np.inf), 0
        for iteration in range(max_iter - used + 1):
            distances = self.ridge + iterate.s / iterate.alpha + iterate.xi / iterate.room
            h = np.minimum(1 / distances, self.most)
            moments, gram = self.rows.equations(self.y * iterate.alpha, h)
            moments += self.fixed
            gap = self.gap(iterate, moments)
            if gap < best_gap:
                best, best_gap = iterate, gap
            # Complementarity products above the gap may hide progress: then a decrease of these counts, too.
            products = 2 * len(self.y) * complementarity(iterate)
            hidden = self.careful and 0.1 * tol * max(self.primal(iterate), self.least) < products < 0.9 * mark[1]
            if gap < 0.9 * mark[0] or hidden:
                mark, mark_at = (min(gap, mark[0]), products), iteration
            if gap <= 0.5 * tol or iteration > mark_at + 8:  # solved, or rounding allows no more
                break
            if iteration == max_iter - used:  # the last point is evaluated, without a further step
                break
            towards = self.equations(iterate, moments, gram, h, distances)
            after = None if towards is None else advanced(iterate, towards)
            if after is None:
                break
            iterate = after
        duals = self.y * best.alpha
        return (
            np.append(best.w, best.bias),
            self.rows.both(duals) if reads_targets(self.loss) else duals,
            used + iteration,
        )

    def start(self, near: Array | None, max_iter: int) -> tuple[CappedIterate, int]:
        """The first point, well inside the bounds, at ``near`` or the solution for a squared loss; and its steps."""
        y, C = self.y, self.C
        used = 0
        if near is None:
            start = newton(self._as_rows(), smooth_surrogate(self.loss), tol=1e-3, max_iter=min(10, max_iter))
            near, used = start.V[0], int(start.n_iter[0])
        f = self.rows.values(near)
        short = self.q - y * f
        value = 0.5 * float(dot(near[:-1], near[:-1])) + float(dot(C, np.maximum(short, 0)))
        spread = max(float(np.abs(short).mean()), 1e-3)
        mu = max(value / (2 * len(y)), 0.5 * spread * float(C.mean()))
        alpha, room = self.central(short, mu)
        return self.point(near[:-1], float(near[-1]), f, alpha, mu / alpha, mu / room, room), used

    def _as_rows(self) -> FeatureSource:
        """The rows of this problem as a `FeatureSource`, to solve for a smooth loss."""
        P = self.members.kept
        P = np.vstack([block for _, block in self.members.blocks()]) if P is None else P
        return DenseFeatures(P, RowLabels(self.Y[:, None], self.costs[:, None]))

    def central(self, short: Array, mu: float) -> tuple[Array, Array]:
        """Alpha and room with ``short = ridge alpha - mu / alpha + mu / room``: all products start at mu."""
        C, ridge = self.upper, self.ridge
        if self.point is UncappedIterate:
            far = np.sqrt(short**2 + 4 * ridge * mu) + np.abs(short)
            return np.where(short > 0, far / (2 * ridge), 2 * mu / far), C

        def part(q: Array) -> Array:
            """The solution between 0 and C without a ridge."""
            rise = q * C - 2 * mu
            root = np.hypot(q * C, 2 * mu)
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(rise > 0, (rise + root) / (2 * q), 2 * mu * C / (root - rise))

        if not ridge.any():
            return part(short), part(-short)
        low, high = np.full(len(C), -300.0), np.full(len(C), 300.0)  # of log(alpha / room)
        for _ in range(60):
            middle = 0.5 * (low + high)
            alpha, room = C * expit(middle), C * expit(-middle)
            above = ridge * alpha - mu / alpha + mu / room > short
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return alpha, room

    def primal(self, iterate: CappedIterate) -> float:
        """The primal objective."""
        value = float(self.loss.value(iterate.f[: len(self.Y), None], self.Y[:, None], self.costs[:, None])[0])
        linear = self.constant - float(dot(self.fixed[:-1], iterate.w) + self.fixed[-1] * iterate.bias)
        return 0.5 * float(dot(iterate.w, iterate.w)) + value + linear

    def gap(self, iterate: CappedIterate, moments: Array) -> float:
        """The larger of the gap relative to the primal value and of the relative sum of the duals (ideally 0)."""
        primal = self.primal(iterate)
        dual = (
            self.constant
            + float(dot(self.q, iterate.alpha))
            - 0.5 * float(dot(moments[:-1], moments[:-1]) + dot(self.ridge, iterate.alpha**2))
        )
        return max(
            abs(primal - dual) / max(primal, self.least),
            abs(float(moments[-1])) / (self.mass + float(iterate.alpha.sum())),
        )

    def equations(self, iterate: CappedIterate, moments: Array, H: Array, h: Array, distances: Array) -> Towards | None:
        """A solver of Newton's equations; None if rounding has made them useless."""
        m = len(iterate.w)
        own = np.append(np.ones(m), 1e-14 * float(h.sum()))
        H[np.arange(m + 1), np.arange(m + 1)] += own
        weighted = ((P, h[some]) for some, P in self.rows.blocks())
        solver = from_rows(weighted, own) if self.careful else from_sums(H, 0.0)
        if solver is None:
            return None
        y = self.y
        residual = moments - np.append(iterate.w, 0.0)

        def towards(targets: Sequence[Array | float], rounds: int) -> CappedIterate:
            """The step to ``alpha s = near`` and ``room xi = far``."""
            near, far = (*targets, 0.0)[:2]
            goal = near / iterate.alpha - far / iterate.room + self.q - y * iterate.f - self.ridge * iterate.alpha
            v, df, da = np.zeros(m + 1), np.zeros(len(y)), np.zeros(len(y))
            for _ in range(rounds):
                rest = goal - y * df - distances * da
                right = residual + self.rows.moments(y * (da + h * rest))
                right[:m] -= v[:m]
                add = solver(right)
                add_f = self.rows.values(add)
                da = da + h * (rest - y * add_f)
                v, df = v + add, df + add_f
            ds, dx = (
                (near - iterate.s * da) / iterate.alpha - iterate.s,
                (far + iterate.xi * da) / iterate.room - iterate.xi,
            )
            return self.point(v[:m], float(v[m]), df, da, ds, dx, -da)

        return towards
