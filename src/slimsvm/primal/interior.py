"""Interior point for a linear machine in m dimensions.

The dual is ``max sum(alpha) - 1/2 |w|^2 - 1/2 sum(ridge alpha^2)`` with ``w = sum y alpha p``, ``y'alpha = 0`` and
``0 <= alpha <= upper``. Margins are ``y f = 1 - ridge alpha + s - xi`` with s, xi >= 0, whose multipliers are alpha
and ``upper - alpha``. Newton's equations reduce to the m + 1 unknowns (w, b) with a weight on each row: the same
sums over blocks of rows as in Newton's method for a smooth loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from ..formulation import Array
from ..parts.losses import HuberHinge, Loss, SquaredHinge
from ..rows.labels import RowLabels
from ..rows.memory import Given, row_blocks
from ..rows.seam import Block, Home
from .equations import from_rows, from_sums
from .mehrotra import Point, Towards, advanced, mean_product
from .newton import coarse, newton
from .passes import DOWN, DOWN_GAIN, SUMS, UP, UP_GAIN, Evidence, weighted_gram

Found = tuple[Array, tuple[Array, Array], int]  # weights (1 x features + 1), rows and their signed duals, steps
MEMORY = 2.0**30  # bytes that features of some rows may take

TINY = np.finfo(float).tiny
ROUNDING = 0.03  # of the hinge's corner, where rows are screened


@dataclass
class Iterate(Point):
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
class Uncapped(Iterate):
    """Where nothing caps alpha: xi is zero and room infinite."""

    def pairs(self) -> tuple[tuple[Array, Array], ...]:
        return ((self.alpha, self.s),)


class Members:
    """Some rows of a home, their features in memory, or computed block by block where they are too many."""

    def __init__(self, rows: Home, numbers: Array):
        self.rows, self.numbers = rows, numbers
        self.shape = len(numbers), rows.shape[1]
        n, m = self.shape
        self.kept = rows.features(numbers) if 8 * n * m <= MEMORY else None

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Slices of the numbers, and features."""
        n, m = self.shape
        for some in row_blocks(n, 8 * m):
            yield some, self.rows.features(self.numbers[some]) if self.kept is None else self.kept[some]

    def moments(self, u: Array) -> Array:
        """``[P 1]'u``."""
        return np.append(sum(u[some] @ P for some, P in self.blocks()), u.sum())

    def equations(self, u: Array, h: Array) -> tuple[Array, Array]:
        """``[P 1]'u`` and ``[P 1]' diag(h) [P 1]``."""
        m = self.shape[1]
        pull, gram = np.zeros(m), np.zeros((m + 1, m + 1))
        for some, P in self.blocks():
            pull += u[some] @ P
            gram += weighted_gram(P, h[some])
        return np.append(pull, u.sum()), gram

    def values(self, v: Array) -> Array:
        """``[P 1] v``."""
        return np.concatenate([P @ v[:-1] for _, P in self.blocks()]) + v[-1]


class InteriorPoint:
    """One machine over rows with labels y (+-1) and costs C.

    ``fixed`` is the sum of ``C y [p 1]`` over further rows whose duals are known to be C, and ``constant`` their sum.
    ``careful``: every step's equations are solved from the rows instead of sums over them, at several times the cost.
    """

    def __init__(
        self,
        rows: Members,
        y: Array,
        C: Array,
        loss: Loss,
        fixed: Array | None = None,
        constant: float = 0,
        careful: bool = False,
    ):
        self.rows, self.y, self.C, self.loss = rows, y, C, loss
        self.fixed, self.constant = np.zeros(rows.shape[1] + 1) if fixed is None else fixed, constant
        self.ridge, self.upper = loss.dual_box(C)
        self.point = Iterate if np.isfinite(self.upper[0]) else Uncapped
        self.careful = careful
        # A row whose weight would drown the others' in the Newton matrix is held back; refinement makes up for it.
        squares = sum(float(np.einsum("ij,ij->", P, P, dtype=np.float64)) for _, P in rows.blocks())
        self.most = (1e26 if careful else 1e13) / squares if squares > 0 else np.inf

    def solve(self, tol: float, max_iter: int, near: Array | None = None) -> tuple[Array, Array, int]:
        """Weights (the bias last), duals alpha and iterations, from weights near the solution if they are known."""
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
            products = 2 * len(self.y) * mean_product(now)
            hidden = self.careful and 0.1 * tol * self.primal(now) < products < 0.9 * mark[1]
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
        return np.append(best.w, best.bias), best.alpha, used + iteration

    def start(self, near: Array | None, max_iter: int) -> tuple[Iterate, int]:
        """Near the squared hinge's solution, or the one given, and well inside; and the steps that it took."""
        y, C = self.y, self.C
        used = 0
        if near is None:
            start = newton(self._home(), SquaredHinge(), tol=1e-3, max_iter=min(10, max_iter))
            near, used = start.V[0], int(start.n_iter[0])
        f = self.rows.values(near)
        short = 1 - y * f
        value = 0.5 * float(near[:-1] @ near[:-1]) + float(C @ np.maximum(short, 0))
        spread = max(float(np.abs(short).mean()), 1e-3)
        mu = max(value / (2 * len(y)), 0.5 * spread * float(C.mean()))
        alpha, room = self.central(short, mu)
        return self.point(near[:-1], float(near[-1]), f, alpha, mu / alpha, mu / room, room), used

    def _home(self) -> Home:
        """These rows as a home of their own, in which a smooth loss gives the start."""
        P = self.rows.kept
        P = np.vstack([block for _, block in self.rows.blocks()]) if P is None else P
        return Given(P, RowLabels(self.y[:, None], self.C[:, None]))

    def central(self, short: Array, mu: float) -> tuple[Array, Array]:
        """Alpha and room with ``short = ridge alpha - mu / alpha + mu / room``: all costs start equally far in."""
        C, ridge = self.upper, self.ridge
        if self.point is Uncapped:
            root = np.sqrt(short**2 + 4 * ridge * mu)
            return np.where(short > 0, (short + root) / (2 * ridge), 2 * mu / (root - short)), C

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

    def primal(self, now: Iterate) -> float:
        """The objective."""
        value = float(self.loss.value(now.f[:, None], self.y[:, None], self.C[:, None])[0])
        linear = self.constant - float(self.fixed[:-1] @ now.w + self.fixed[-1] * now.bias)
        return 0.5 * float(now.w @ now.w) + value + linear

    def gap(self, now: Iterate, moments: Array) -> float:
        """Gap relative to the primal value, which is never negative, or how far the duals are from summing to zero."""
        primal = self.primal(now)
        dual = (
            self.constant
            + float(now.alpha.sum())
            - 0.5 * float(moments[:-1] @ moments[:-1] + self.ridge @ now.alpha**2)
        )
        return max(
            abs(primal - dual) / max(primal, TINY), abs(float(moments[-1])) / (self.constant + float(now.alpha.sum()))
        )

    def equations(self, now: Iterate, moments: Array, H: Array, h: Array, distances: Array) -> Towards | None:
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

        def towards(targets: Sequence[Array | float], rounds: int) -> Iterate:
            """To ``alpha s = near`` and ``room xi = far``."""
            near, far = (*targets, 0.0)[:2]
            goal = near / now.alpha - far / now.room + 1 - y * now.f - self.ridge * now.alpha
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
    rows: Home, which: Array, members: Array, loss: Loss, tol: float, max_iter: int, near: Array | None = None
) -> Found:
    """All rows at once."""
    return _at_once(rows, which, members, loss, tol, max_iter, near)


def careful(
    rows: Home, which: Array, members: Array, loss: Loss, tol: float, max_iter: int, near: Array | None = None
) -> Found:
    """All rows at once, for costs and features so large that sums of squares lose the digits that matter."""
    return _at_once(rows, which, members, loss, tol, max_iter, near, careful=True)


def _at_once(
    rows: Home,
    which: Array,
    members: Array,
    loss: Loss,
    tol: float,
    max_iter: int,
    near: Array | None,
    careful: bool = False,
) -> Found:
    mine = Members(rows, members)
    Y, C = rows.labels.of(members, which)
    machine = InteriorPoint(mine, Y[:, 0], C[:, 0], loss, careful=careful)
    v, alpha, used = machine.solve(tol, max_iter, None if near is None else near[0])
    return v[None], (members, Y[:, 0] * alpha), used


def screened(
    rows: Home, which: Array, members: Array, loss: Loss, tol: float, max_iter: int, near: Array | None = None
) -> Found:
    """The hinge with many rows: most are far from the margin, and it is clear which bound their duals end at.

    A rounded hinge, cheap to solve, gives decision values near the hinge's. Interior points are spent on the rows
    around the margin only; all rows are then looked at again, and those that were taken for far but changed sides
    come in.
    """
    m = rows.shape[1]
    V, total = _rounded(rows, which, max_iter) if near is None else (near, 0)
    close = _closest(rows, which, V, 8 * m)
    while 0 < len(close) < 0.7 * len(members):
        # Duals of the close rows are what is looked for: without them, the others' sums are what is fixed.
        (far,) = rows.total(Evidence(loss), which, V, [(close, np.zeros(len(close)))], np.zeros(1), 0.0)
        fixed = np.append(far[0, SUMS : SUMS + m] + far[0, SUMS + m :], far[0, UP] - far[0, DOWN])
        Y, C = rows.labels.of(close, which)
        constant = float(far[0, UP_GAIN] + far[0, DOWN_GAIN])
        reduced = InteriorPoint(Members(rows, close), Y[:, 0], C[:, 0], loss, fixed, constant)
        v, alpha, used = reduced.solve(tol, max_iter - total, V[0])
        total += used
        before, V = V, v[None]
        crossed, farthest = _crossed(rows, which, before, V, close)
        if not len(crossed) or total >= max_iter:
            return V, (close, Y[:, 0] * alpha), total
        close = np.union1d(np.union1d(close, crossed), _within(rows, which, V, 2 * farthest))
    V, known, used = direct(rows, which, members, loss, tol, max_iter - total)
    return V, known, total + used


def _shorts(block: Block, which: Array, V: Array) -> tuple[Array, Array]:
    """Row numbers of an output's rows in a block, and ``1 - y f`` with each of the weights V."""
    Y, C = block.labels(which)
    mine = np.flatnonzero(C[:, 0])
    F = block.values(np.repeat(which, len(V)), V)
    return block.first + mine, 1 - Y[mine] * F[mine]


def _closest(rows: Home, which: Array, V: Array, count: int) -> Array:
    """Rows on the margin, as far as the corner was rounded, or so many of the closest."""
    nearest = np.empty(0)
    for found in rows.gathered(_distances, which, V, count):
        nearest = np.concatenate([nearest, found])
        if len(nearest) > count:
            nearest = np.partition(nearest, count)[: count + 1]
    return _within(rows, which, V, max(float(nearest.max(initial=0.0)), 2 * ROUNDING))


def _distances(block: Block, which: Array, V: Array, count: int) -> Array:
    """From the margin, those of the closest rows."""
    far = np.abs(_shorts(block, which, V)[1][:, 0])
    return np.partition(far, count)[: count + 1] if len(far) > count else far


def _within(rows: Home, which: Array, V: Array, width: float) -> Array:
    """Rows at most so far from the margin."""
    return np.concatenate(list(rows.gathered(_rows_within, which, V, width)))


def _rows_within(block: Block, which: Array, V: Array, width: float) -> Array:
    some, short = _shorts(block, which, V)
    return some[np.abs(short[:, 0]) <= width]


def _crossed(rows: Home, which: Array, before: Array, after: Array, close: Array) -> tuple[Array, float]:
    """Rows, other than those close, that have changed sides; and how far the farthest is from the margin now."""
    found = list(rows.gathered(_rows_crossed, which, np.vstack([before, after]), close))
    return np.concatenate([some for some, _ in found]), max(far for _, far in found)


def _rows_crossed(block: Block, which: Array, V: Array, close: Array) -> tuple[Array, float]:
    some, short = _shorts(block, which, V)
    changed = ((short[:, 0] > 0) != (short[:, 1] > 0)) & ~np.isin(some, close)
    return some[changed], float(np.abs(short[changed, 1]).max(initial=0.0))


def _rounded(rows: Home, which: Array, max_iter: int) -> tuple[Array, int]:
    """The solution for a hinge with a rounded corner: roughly on an eighth of the rows, then in steps on all."""
    part, most = coarse(rows) if rows.apart else rows.thinned(8), min(20, max_iter)
    state = newton(part, SquaredHinge(), tol=1e-3, max_iter=most, which=which)
    for width in (0.5, ROUNDING):
        state = newton(part, HuberHinge(width), state.V, tol=1e-3, max_iter=most, which=which)
    state = newton(rows, HuberHinge(ROUNDING), state.V, tol=1e-5, max_iter=min(10, max_iter), which=which)
    return state.V, int(state.n_iter[0])


def solve_interior(
    rows: Home,
    loss: Loss,
    which: Array,
    tol: float,
    max_iter: int,
    start: Array | None = None,
    method: Any = None,
) -> tuple[Array, list[tuple[Array, Array]], Array]:
    """Weights, known duals and iterations, one output at a time over the rows that take part in it."""
    n, m = rows.shape
    V, known, n_iter = np.zeros((len(which), m + 1)), [], np.zeros(len(which), dtype=int)
    for k, o in enumerate(which):
        part = rows.labels.members(o)
        members = np.arange(n) if part is None else part
        solver = method or (screened if len(members) > 20 * m + 4000 and not loss.smooth else direct)
        near = None if start is None else start[[k]]
        V[[k]], duals, n_iter[k] = solver(rows, np.array([o]), members, loss, tol, max_iter, near)
        known.append(duals)
    return V, known, n_iter
