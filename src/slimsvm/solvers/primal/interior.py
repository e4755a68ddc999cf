"""Interior point for a linear machine in m dimensions.

The dual is ``max q'alpha - 1/2 |w|^2 - 1/2 sum(ridge alpha^2)`` with ``w = sum y alpha p``, ``y'alpha = 0`` and
``0 <= alpha <= upper``. Margins are ``y f = q - ridge alpha + s - xi`` with s, xi >= 0, whose multipliers are alpha
and ``upper - alpha``. Labels have q = 1. A row with a target t stands here twice, with y = 1 and q = t - epsilon, and
with y = -1 and q = -(t + epsilon). Newton's equations reduce to the m + 1 unknowns (w, b) with a weight on each row:
the same sums over blocks of rows as in Newton's method for a smooth loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from ...data.dataset import RowRange
from ...linalg.array_api import namespace, to_numpy
from ...linalg.arrays import Array
from ...linalg.matrix import dot
from ...problem.losses import gap_floor, reads_targets, smooth_surrogate, with_rounded_corners
from ...rows.labels import RowLabels
from ...rows.memory import DenseFeatures, row_blocks
from ...rows.protocol import Block, FeatureSource
from ..mehrotra import PrimalDualPoint, Towards, advanced, complementarity
from .equations import from_rows, from_sums
from .newton import coarse, newton
from .passes import DOWN, DOWN_GAIN, SUMS, UP, UP_GAIN, CertificateSums, weighted_gram

Found = tuple[Array, tuple[Array, Array], int]  # weights (1 x features + 1), rows and their signed duals, steps
MEMORY = 2.0**30  # bytes that features of some rows may take

ROUNDING = 0.03  # of the hinge's corner, where rows are screened
NARROWER = 0.25 ** np.arange(6)  # of it, where that leaves too many rows
MOST_CLOSE = 0.7  # of the rows: beyond it screening saves nothing
MOST_BYTES = {False: 2.0**28, True: 2.0**24}  # of the features of all rows that are close; fewer where rows are apart


def sided(loss: Any, Y: Array, C: Array) -> tuple[Array, Array, Array]:
    """Sides y, margins q and costs of the one-sided losses that a loss of labels or targets is the sum of."""
    if not reads_targets(loss):
        return Y, np.ones(len(Y)), C
    y = np.repeat([1.0, -1.0], len(Y))
    return y, y * np.tile(Y, 2) - loss.epsilon, np.tile(C, 2)


def beyond(loss: Any, F: Array, Y: Array) -> Array:
    """How far values are beyond the corner of a loss, where they begin to cost; negative where they cost nothing."""
    return namespace(F).abs(Y - F) - loss.epsilon if reads_targets(loss) else 1 - Y * F


@dataclass
class CappedIterate(PrimalDualPoint):
    """A point, or a step. ``room`` is ``upper - alpha``, kept apart because it may be tiny beside both."""

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
    """Where nothing caps alpha: xi is zero and room infinite."""

    def pairs(self) -> tuple[tuple[Array, Array], ...]:
        return ((self.alpha, self.s),)


class Members:
    """Some rows of a home, their features in memory, or computed block by block where they are too many."""

    def __init__(self, rows: FeatureSource, numbers: Array, known: Array | None = None):
        self.rows, self.numbers = rows, numbers
        self.shape = len(numbers), rows.shape[1]
        n, m = self.shape
        self.kept = rows.features(numbers) if known is None and 8 * n * m <= MEMORY else known

    @classmethod
    def each(cls, rows: FeatureSource, numbers: list[Array]) -> Iterator[Members]:
        """Several such, one after the other; rows that are to be fetched come together."""
        together = np.unique(np.concatenate(numbers))
        if len(numbers) == 1 or 8 * len(together) * rows.shape[1] > MEMORY:
            yield from (cls(rows, mine) for mine in numbers)
            return
        P = rows.features(together)
        yield from (cls(rows, mine, P[np.searchsorted(together, mine)]) for mine in numbers)

    def both(self, u: Array) -> Array:
        """A row is here once, see `Twice`."""
        return u

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Slices of the numbers, and features."""
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
    """The same rows once more behind them: each for either of its two one-sided losses."""

    def __init__(self, rows: Members):
        self.rows = rows
        self.shape = 2 * rows.shape[0], rows.shape[1]

    def both(self, u: Array) -> Array:
        """The sum over both places of a row."""
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
    """One machine over rows with labels or targets Y and costs C.

    ``fixed`` is the sum of ``a [p 1]`` over further rows whose signed duals a are known, ``constant`` what these add to
    the dual, and ``mass`` the sum of their sizes.
    ``careful``: every step's equations are solved from the rows instead of sums over them, at several times the cost.
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
        # A row whose weight would drown the others' in the Newton matrix is held back; refinement makes up for it.
        squares = sum(float(np.einsum("ij,ij->", P, P, dtype=np.float64)) for _, P in self.rows.blocks())
        self.most = (1e26 if careful else 1e13) / squares if squares > 0 else np.inf

    def solve(self, tol: float, max_iter: int, near: Array | None = None) -> tuple[Array, Array, int]:
        """Weights (the bias last), signed duals and iterations, from weights near the solution if they are known."""
        now, used = self.start(near, max_iter)
        best, best_gap, mark, mark_at = now, np.inf, (np.inf, np.inf), 0
        for iteration in range(max_iter - used + 1):
            distances = self.ridge + now.s / now.alpha + now.xi / now.room
            h = np.minimum(1 / distances, self.most)
            moments, gram = self.rows.equations(self.y * now.alpha, h)
            moments += self.fixed
            gap = self.gap(now, moments)
            if gap < best_gap:
                best, best_gap = now, gap
            # Products that are still larger than the gap may hide it: then their decrease is progress too.
            products = 2 * len(self.y) * complementarity(now)
            hidden = self.careful and 0.1 * tol * max(self.primal(now), self.least) < products < 0.9 * mark[1]
            if gap < 0.9 * mark[0] or hidden:
                mark, mark_at = (min(gap, mark[0]), products), iteration
            if gap <= 0.5 * tol or iteration > mark_at + 8:  # solved, or rounding allows no more
                break
            if iteration == max_iter - used:  # no step is left, only the look at the last one
                break
            towards = self.equations(now, moments, gram, h, distances)
            after = None if towards is None else advanced(now, towards)
            if after is None:
                break
            now = after
        duals = self.y * best.alpha
        return (
            np.append(best.w, best.bias),
            self.rows.both(duals) if reads_targets(self.loss) else duals,
            used + iteration,
        )

    def start(self, near: Array | None, max_iter: int) -> tuple[CappedIterate, int]:
        """Near the solution for a squared loss, or the one given, and well inside; and the steps that it took."""
        y, C = self.y, self.C
        used = 0
        if near is None:
            start = newton(self._home(), smooth_surrogate(self.loss), tol=1e-3, max_iter=min(10, max_iter))
            near, used = start.V[0], int(start.n_iter[0])
        f = self.rows.values(near)
        short = self.q - y * f
        value = 0.5 * float(dot(near[:-1], near[:-1])) + float(dot(C, np.maximum(short, 0)))
        spread = max(float(np.abs(short).mean()), 1e-3)
        mu = max(value / (2 * len(y)), 0.5 * spread * float(C.mean()))
        alpha, room = self.central(short, mu)
        return self.point(near[:-1], float(near[-1]), f, alpha, mu / alpha, mu / room, room), used

    def _home(self) -> FeatureSource:
        """These rows as a home of their own, in which a smooth loss gives the start."""
        P = self.members.kept
        P = np.vstack([block for _, block in self.members.blocks()]) if P is None else P
        return DenseFeatures(P, RowLabels(self.Y[:, None], self.costs[:, None]))

    def central(self, short: Array, mu: float) -> tuple[Array, Array]:
        """Alpha and room with ``short = ridge alpha - mu / alpha + mu / room``: all costs start equally far in."""
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

    def primal(self, now: CappedIterate) -> float:
        """The objective."""
        value = float(self.loss.value(now.f[: len(self.Y), None], self.Y[:, None], self.costs[:, None])[0])
        linear = self.constant - float(dot(self.fixed[:-1], now.w) + self.fixed[-1] * now.bias)
        return 0.5 * float(dot(now.w, now.w)) + value + linear

    def gap(self, now: CappedIterate, moments: Array) -> float:
        """Gap relative to the primal value, which is never negative, or how far the duals are from summing to zero."""
        primal = self.primal(now)
        dual = (
            self.constant
            + float(dot(self.q, now.alpha))
            - 0.5 * float(dot(moments[:-1], moments[:-1]) + dot(self.ridge, now.alpha**2))
        )
        return max(
            abs(primal - dual) / max(primal, self.least), abs(float(moments[-1])) / (self.mass + float(now.alpha.sum()))
        )

    def equations(self, now: CappedIterate, moments: Array, H: Array, h: Array, distances: Array) -> Towards | None:
        """Newton's equations; None if rounding has made them useless."""
        m = len(now.w)
        own = np.append(np.ones(m), 1e-14 * float(h.sum()))
        H[np.arange(m + 1), np.arange(m + 1)] += own
        weighted = ((P, h[some]) for some, P in self.rows.blocks())
        solver = from_rows(weighted, own) if self.careful else from_sums(H, 0.0)
        if solver is None:
            return None
        y = self.y
        residual = moments - np.append(now.w, 0.0)

        def towards(targets: Sequence[Array | float], rounds: int) -> CappedIterate:
            """To ``alpha s = near`` and ``room xi = far``."""
            near, far = (*targets, 0.0)[:2]
            goal = near / now.alpha - far / now.room + self.q - y * now.f - self.ridge * now.alpha
            v, df, da = np.zeros(m + 1), np.zeros(len(y)), np.zeros(len(y))
            for _ in range(rounds):
                rest = goal - y * df - distances * da
                right = residual + self.rows.moments(y * (da + h * rest))
                right[:m] -= v[:m]
                add = solver(right)
                add_f = self.rows.values(add)
                da = da + h * (rest - y * add_f)
                v, df = v + add, df + add_f
            ds, dx = (near - now.s * da) / now.alpha - now.s, (far + now.xi * da) / now.room - now.xi
            return self.point(v[:m], float(v[m]), df, da, ds, dx, -da)

        return towards


def direct(
    rows: FeatureSource, which: Array, members: Array, loss: Any, tol: float, max_iter: int, near: Array | None = None
) -> Found:
    """All rows at once."""
    return _at_once(rows, which, members, loss, tol, max_iter, near)


def careful(
    rows: FeatureSource, which: Array, members: Array, loss: Any, tol: float, max_iter: int, near: Array | None = None
) -> Found:
    """All rows at once, for costs and features so large that sums of squares lose the digits that matter."""
    return _at_once(rows, which, members, loss, tol, max_iter, near, careful=True)


def _at_once(
    rows: FeatureSource,
    which: Array,
    members: Array,
    loss: Any,
    tol: float,
    max_iter: int,
    near: Array | None,
    careful: bool = False,
) -> Found:
    mine = Members(rows, members)
    Y, C = rows.labels.of(members, which)
    machine = InteriorPoint(mine, Y[:, 0], C[:, 0], loss, careful=careful)
    v, duals, used = machine.solve(tol, max_iter, None if near is None else near[0])
    return v[None], (members, duals), used


def screened(
    rows: FeatureSource, which: Array, sizes: Array, loss: Any, tol: float, max_iter: int, near: Array | None = None
) -> tuple[list[Found | None], Array]:
    """The hinge with many rows: most are far from the margin, and it is clear which bound their duals end at.

    A rounded hinge, cheap to solve, gives decision values near the hinge's. Interior points are spent on the rows
    around the margin only; all rows are then looked at again, and those that were taken for far but changed sides
    come in. All outputs share the looks at the rows. None where most of an output's rows (``sizes``) are close; and the
    steps of each output.
    """
    m = rows.shape[1]
    V, used = _rounded(rows, loss, which, max_iter) if near is None else (near.copy(), np.zeros(len(which), dtype=int))
    found: list[Found | None] = [None] * len(which)
    nearest, width = _nearest(rows, loss, which, V, 8 * m)
    if near is None and width < ROUNDING:
        V, more = _narrowed(rows, loss, which, V, width, max_iter)
        used += more
        nearest, width = _nearest(rows, loss, which, V, 8 * m)
    reach = np.maximum(nearest, 2 * width)
    close = _within(rows, loss, which, V, reach)
    left = np.arange(len(which))
    while True:
        left = np.array([k for k in left if 0 < len(close[k]) < MOST_CLOSE * sizes[k]], dtype=int)
        if not len(left):
            return found, used
        mine, before = [close[k] for k in left], V[left]
        # Duals of the close rows are what is looked for: without them, the others' sums are what is fixed.
        unknown = [(some, np.zeros(len(some))) for some in mine]
        (far,) = rows.total(CertificateSums(loss), which[left], before, unknown, np.zeros(len(left)), 0.0)
        for k, sums, some in zip(left.tolist(), far, Members.each(rows, mine), strict=True):
            fixed = np.append(sums[SUMS : SUMS + m] + sums[SUMS + m :], sums[UP] - sums[DOWN])
            Y, C = rows.labels.of(close[k], which[[k]])
            gain, mass = float(sums[UP_GAIN] + sums[DOWN_GAIN]), float(sums[UP] + sums[DOWN])
            reduced = InteriorPoint(some, Y[:, 0], C[:, 0], loss, fixed, gain, mass)
            V[k], duals, steps = reduced.solve(tol, max_iter - int(used[k]), V[k])
            used[k] += steps
            found[k] = V[[k]], (close[k], duals), int(used[k])
        crossed, farthest = _crossed(rows, loss, which[left], before, V[left], mine)
        again = np.array([k for k, some in enumerate(crossed) if len(some) and used[left[k]] < max_iter], dtype=int)
        if not len(again):
            return found, used
        for k in again:
            o = left[k]
            found[o] = None
            if len(crossed[k]) > len(close[o]) and reach[o] < 2 * ROUNDING:  # too few rows have led it astray
                V[o], reach[o] = before[k], 4 * reach[o]
            else:
                close[o], reach[o] = np.union1d(close[o], crossed[k]), 2 * farthest[k]
        o = left[again]
        for k, more in zip(o, _within(rows, loss, which[o], V[o], reach[o]), strict=True):
            close[k] = np.union1d(close[k], more)
        left = left[again]


def _seen(block: Block, loss: Any, which: Array, *weights: Array) -> tuple[Array, list[tuple[Array, Array]]]:
    """Which rows of a block take part in each output, and with each of several weights how far they are beyond the
    corner, and which way they pull."""
    Y, C = block.labels(which)
    o = len(which)
    values = block.values(np.tile(which, len(weights)), namespace(Y).concat(weights, axis=0))
    each = (values[:, k * o : (k + 1) * o] for k in range(len(weights)))
    return C > 0, [(beyond(loss, F, Y), namespace(F).sign(loss.duals(F, Y, C))) for F in each]


def _nearest(rows: FeatureSource, loss: Any, which: Array, V: Array, count: int) -> tuple[Array, float]:
    """How far from the margin of each output so many of its rows are; and a width of the corner, the usual one or a
    part of it, that leaves few enough rows of all outputs at twice the width."""
    nearest = [np.empty(0)] * len(which)
    within = np.zeros(len(NARROWER))
    for distances, counts in rows.map_blocks(_distances, loss, which, V, count):
        nearest = [_least(np.concatenate(both), count) for both in zip(nearest, distances, strict=True)]
        within += counts
    few = within * 8 * rows.shape[1] <= MOST_BYTES[rows.is_remote]
    width = ROUNDING * NARROWER[int(few.argmax()) if few.any() else -1]
    return np.array([some.max(initial=0.0) for some in nearest]), width


def _least(values: Array, count: int) -> Array:
    """One more than so many of the smallest; brought here."""
    if values.shape[0] <= count:
        return to_numpy(values)
    if isinstance(values, np.ndarray):
        return np.partition(values, count)[: count + 1]
    return to_numpy(namespace(values).sort(values)[: count + 1])


def _distances(block: Block, loss: Any, which: Array, V: Array, count: int) -> tuple[list[Array], Array]:
    """From the margin of each output, those of the closest rows; and how many rows are within each of some widths."""
    member, ((short, _),) = _seen(block, loss, which, V)
    xp = namespace(short)
    far = [xp.abs(short[:, k][member[:, k]]) for k in range(len(which))]
    within = [sum(int(xp.count_nonzero(some <= 2 * ROUNDING * part)) for some in far) for part in NARROWER.tolist()]
    return [_least(some, count) for some in far], np.array(within)


def _within(rows: FeatureSource, loss: Any, which: Array, V: Array, widths: Array) -> list[Array]:
    """Rows at most so far from the margin of each output."""
    return _joined(rows.map_blocks(_rows_within, loss, which, V, widths))


def _joined(found: Iterator[list[Array]]) -> list[Array]:
    """For each output what its blocks say."""
    return [np.concatenate(parts) for parts in zip(*found, strict=True)]


def _rows_within(block: Block, loss: Any, which: Array, V: Array, widths: Array) -> list[Array]:
    member, ((short, _),) = _seen(block, loss, which, V)
    xp = namespace(short)
    near = member & (xp.abs(short) <= widths)
    return [block.first + to_numpy(xp.nonzero(near[:, k])[0]) for k in range(len(which))]


def _crossed(
    rows: FeatureSource, loss: Any, which: Array, before: Array, after: Array, close: list[Array]
) -> tuple[list[Array], Array]:
    """For each output rows, other than those close, that have changed sides; and how far the farthest is from the
    margin now."""
    found = list(rows.map_blocks(_rows_crossed, loss, which, before, after, close))
    return _joined(some for some, _ in found), np.max([far for _, far in found], axis=0)


def _rows_crossed(
    block: Block, loss: Any, which: Array, before: Array, after: Array, close: list[Array]
) -> tuple[list[Array], Array]:
    member, ((_, was), (far_now, now)) = _seen(block, loss, which, before, after)
    xp = namespace(now)
    changed = member & (was != now)
    found, farthest = [], np.zeros(len(which))
    for k, known in enumerate(close):
        rows = block.first + to_numpy(xp.nonzero(changed[:, k])[0])
        far = np.abs(to_numpy(far_now[:, k][changed[:, k]]))
        others = ~np.isin(rows, known)
        found.append(rows[others])
        farthest[k] = far[others].max(initial=0.0)
    return found, farthest


def _rounded(rows: FeatureSource, loss: Any, which: Array, max_iter: int) -> tuple[Array, Array]:
    """The solutions for a loss with rounded corners: roughly on an eighth of the rows, then in steps on all."""
    part, most = coarse(rows) if rows.is_remote else rows.subsampled(8), min(20, max_iter)
    state = newton(part, smooth_surrogate(loss), tol=1e-3, max_iter=most, which=which)
    for width in (0.5, ROUNDING):
        state = newton(part, with_rounded_corners(loss, width), state.V, tol=1e-3, max_iter=most, which=which)
    state = newton(
        rows, with_rounded_corners(loss, ROUNDING), state.V, tol=1e-5, max_iter=min(10, max_iter), which=which
    )
    return state.V, state.n_iter


def _narrowed(
    rows: FeatureSource, loss: Any, which: Array, V: Array, width: float, max_iter: int
) -> tuple[Array, Array]:
    """The solutions for a narrower corner, from those for the usual one; and the steps."""
    used = np.zeros(len(which), dtype=int)
    for part in NARROWER[1:]:
        if part * ROUNDING < width:
            break
        state = newton(
            rows, with_rounded_corners(loss, part * ROUNDING), V, tol=1e-5, max_iter=min(10, max_iter), which=which
        )
        V, used = state.V, used + state.n_iter
    return V, used


def solve_interior(
    rows: FeatureSource,
    loss: Any,
    which: Array,
    tol: float,
    max_iter: int,
    start: Array | None = None,
    method: Any = None,
) -> tuple[Array, list[tuple[Array, Array]], Array]:
    """Weights, known duals and iterations: outputs of many rows together, others one at a time over their rows."""
    n, m = rows.shape
    labels = rows.labels
    members = [RowRange(n) if part is None else part for part in map(labels.members, which)]
    sizes = np.array([len(part) for part in members])
    found: list[Found | None] = [None] * len(which)
    used = np.zeros(len(which), dtype=int)
    many = np.flatnonzero(sizes > 20 * m + 4000) if method is None and not loss.smooth else np.arange(0)
    if len(many):
        near = None if start is None else start[many]
        some, used[many] = screened(rows, which[many], sizes[many], loss, tol, max_iter, near)
        for k, one in zip(many.tolist(), some, strict=True):
            found[k] = one
    for k, one in enumerate(found):
        if one is None:
            near = None if start is None or used[k] else start[[k]]
            left = max_iter - int(used[k])
            V, known, steps = (method or direct)(rows, which[[k]], np.asarray(members[k]), loss, tol, left, near)
            found[k] = V, known, int(used[k]) + steps
    V, known, n_iter = zip(*(one for one in found if one is not None), strict=True)
    return np.vstack(V), list(known), np.array(n_iter)
