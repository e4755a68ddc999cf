"""Interior point for a linear machine in m dimensions: Mehrotra's predictor and corrector.

The dual is ``max sum(alpha) - 1/2 |w|^2 - 1/2 sum(ridge alpha^2)`` with ``w = sum y alpha p``, ``y'alpha = 0`` and
``0 <= alpha <= upper``. Margins are ``y f = 1 - ridge alpha + s - xi`` with s, xi >= 0, whose multipliers are alpha
and ``upper - alpha``. Newton's equations reduce to the m + 1 unknowns (w, b) with a weight on each row: the same
sums over blocks of rows as in Newton's method for a smooth loss.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.special import expit

from ..formulation import Array
from ..parts.losses import HuberHinge, Loss, SquaredHinge
from .equations import from_rows, from_sums
from .newton import newton
from .passes import Features, sums, times

Start = tuple[Array, Array] | None  # weights and bias near the solution

TINY = np.finfo(float).tiny
ROUNDING = 0.03  # of the hinge's corner, where rows are screened


@dataclass
class Iterate:
    """A point, or a step between points. ``room`` is ``upper - alpha``, kept apart because it may be tiny beside both.

    Where nothing caps alpha, xi is zero and room infinite.
    """

    w: Array
    bias: float
    f: Array
    alpha: Array
    s: Array
    xi: Array
    room: Array

    def moved(self, t: float, step: Iterate) -> Iterate:
        """This point after t times a step."""
        parts: list[Any] = [getattr(self, f.name) + t * getattr(step, f.name) for f in fields(self)]
        return Iterate(*parts)


class InteriorPoint:
    """One machine over ``features`` with labels y (+-1) and costs C.

    ``fixed`` is the sum of ``C y [p 1]`` over further rows whose duals are known to be C, and ``constant`` their sum.
    ``careful``: every step's equations are solved from the rows instead of sums over them, at several times the cost.
    """

    def __init__(
        self,
        features: Features,
        y: Array,
        C: Array,
        loss: Loss,
        fixed: Array | None = None,
        constant: float = 0,
        careful: bool = False,
    ):
        self.features, self.y, self.C, self.loss = features, y, C, loss
        self.fixed, self.constant = np.zeros(features.shape[1] + 1) if fixed is None else fixed, constant
        self.ridge, self.upper = loss.dual_box(C)
        self.capped = bool(np.isfinite(self.upper[0]))
        self.careful = careful
        # A row whose weight would drown the others' in the Newton matrix is held back; refinement makes up for it.
        squares = sum(float(np.einsum("ij,ij->", P, P, dtype=np.float64)) for _, P in features.blocks())
        self.most = (1e26 if careful else 1e13) / squares if squares > 0 else np.inf

    def solve(
        self, tol: float, max_iter: int, near: tuple[Array, Array] | None = None
    ) -> tuple[Array, float, Array, int]:
        """Weights, bias, duals alpha and iterations, from weights and bias near the solution if they are known."""
        now, used = self.start(near, max_iter)
        best, best_gap, mark, mark_at = now, np.inf, (np.inf, np.inf), 0
        for iteration in range(max_iter - used + 1):
            distances = self.ridge + now.s / now.alpha + now.xi / now.room
            h = np.minimum(1 / distances, self.most)
            sum_of_rows, grams = sums(self.features, (self.y * now.alpha)[:, None], h[:, None])
            moments = sum_of_rows[:, 0] + self.fixed
            gap = self.gap(now, moments)
            if gap < best_gap:
                best, best_gap = now, gap
            # Products that are still larger than the gap may hide it: then their decrease is progress too.
            products = 2 * len(self.y) * self.complementarity(now)
            hidden = self.careful and 0.1 * tol * self.primal(now) < products < 0.9 * mark[1]
            if gap < 0.9 * mark[0] or hidden:
                mark, mark_at = (min(gap, mark[0]), products), iteration
            if gap <= 0.5 * tol or iteration > mark_at + 8:  # solved, or rounding allows no more
                break
            if iteration == max_iter - used:  # no step is left, only the look at the last one
                break
            assert grams is not None
            step = self.step(now, moments, grams[0], h, distances)
            if step is None:
                break
            now = now.moved(min(1.0, 0.995 * self.longest(now, step)), step)
        return best.w, best.bias, best.alpha, used + iteration

    def start(self, near: tuple[Array, Array] | None, max_iter: int) -> tuple[Iterate, int]:
        """Near the squared hinge's solution, or the one given, and well inside; and the steps that it took."""
        y, C = self.y, self.C
        used = 0
        if near is None:
            rough = newton(self.features, y[:, None], C[:, None], SquaredHinge(), tol=1e-3, max_iter=min(10, max_iter))
            w, bias, f, used = rough.w, rough.bias, rough.F[:, 0], int(rough.n_iter[0])
        else:
            w, bias = near
            f = times(self.features, w, bias)[:, 0]
        short = 1 - y * f
        value = 0.5 * float((w**2).sum()) + float(C @ np.maximum(short, 0))
        spread = max(float(np.abs(short).mean()), 1e-3)
        mu = max(value / (2 * len(y)), 0.5 * spread * float(C.mean()))
        alpha, room = self.central(short, mu)
        return Iterate(w[:, 0], float(bias[0]), f, alpha, mu / alpha, mu / room, room), used

    def central(self, short: Array, mu: float) -> tuple[Array, Array]:
        """Alpha and room with ``short = ridge alpha - mu / alpha + mu / room``: all costs start equally far in."""
        C, ridge = self.upper, self.ridge
        if not self.capped:
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

    def step(self, now: Iterate, moments: Array, H: Array, h: Array, distances: Array) -> Iterate | None:
        """Predictor, then corrector; None if rounding has made the equations useless."""
        m = len(now.w)
        own = np.append(np.ones(m), 1e-14 * float(h.sum()))
        H[np.arange(m + 1), np.arange(m + 1)] += own
        solver = from_rows(self.features, h, own) if self.careful else from_sums(H, 0.0)
        if solver is None:
            return None
        y = self.y
        residual = moments - np.append(now.w, 0.0)

        def towards(near: Array | float, far: Array | float, rounds: int) -> Iterate:
            """Newton's step to ``alpha s = near`` and ``room xi = far``; rounds after the first are refinement."""
            goal = near / now.alpha - far / now.room + 1 - y * now.f - self.ridge * now.alpha
            wb, df, da = np.zeros(m + 1), np.zeros(len(y)), np.zeros(len(y))
            for _ in range(rounds):
                rest = goal - y * df - distances * da
                right = residual + sums(self.features, (y * (da + h * rest))[:, None])[0][:, 0]
                right[:m] -= wb[:m]
                add = solver(right)
                add_f = times(self.features, add[:m, None], add[m:])[:, 0]
                da = da + h * (rest - y * add_f)
                wb, df = wb + add, df + add_f
            ds, dx = (near - now.s * da) / now.alpha - now.s, (far + now.xi * da) / now.room - now.xi
            return Iterate(wb[:m], float(wb[m]), df, da, ds, dx, -da)

        mu = self.complementarity(now)
        probe = towards(0.0, 0.0, rounds=1)
        after = self.complementarity(now.moved(self.longest(now, probe), probe))
        centre = mu * (after / mu) ** 3
        step = towards(centre - probe.alpha * probe.s, centre + probe.alpha * probe.xi, rounds=2)
        return step if np.isfinite(step.alpha).all() and np.isfinite(step.w).all() else None

    def complementarity(self, now: Iterate) -> float:
        """Mean product of the margins' parts and their multipliers."""
        products = float(now.alpha @ now.s) + (float(now.room @ now.xi) if self.capped else 0.0)
        return max(products, TINY) / (len(self.y) * (1 + self.capped))

    def longest(self, now: Iterate, step: Iterate) -> float:
        """How far the step may go before a positive part is zero, at most 1."""
        parts = [(now.alpha, step.alpha), (now.s, step.s)]
        if self.capped:
            parts += [(now.room, step.room), (now.xi, step.xi)]
        return 1 / max(1.0, *(float((-change / part).max()) for part, change in parts))


def direct(
    features: Features, y: Array, C: Array, loss: Loss, tol: float, max_iter: int, near: Start = None
) -> tuple[Array, float, Array, int]:
    """All rows at once."""
    return InteriorPoint(features, y, C, loss).solve(tol, max_iter, near)


def careful(
    features: Features, y: Array, C: Array, loss: Loss, tol: float, max_iter: int, near: Start = None
) -> tuple[Array, float, Array, int]:
    """All rows at once, for costs and features so large that sums of squares lose the digits that matter."""
    return InteriorPoint(features, y, C, loss, careful=True).solve(tol, max_iter, near)


def screened(
    features: Features, y: Array, C: Array, loss: Loss, tol: float, max_iter: int, near: Start = None
) -> tuple[Array, float, Array, int]:
    """The hinge with many rows: most are far from the margin, and it is clear which bound their duals end at.

    A rounded hinge, cheap to solve, gives decision values near the hinge's. Interior points are spent on the rows
    around the margin only; all rows are then looked at again, and those that were taken for far but changed sides
    come in.
    """
    n, m = features.shape
    w, bias, total = _rounded(features, y, C, max_iter) if near is None else (*near, 0)
    short = 1 - y * times(features, w, bias)[:, 0]
    width = float(np.partition(np.abs(short), 8 * m)[8 * m])
    close = np.abs(short) <= max(width, 2 * ROUNDING)
    while 0 < np.count_nonzero(close) < 0.7 * n:
        above = ~close & (short > 0)
        rows = np.flatnonzero(close)
        fixed = sums(features, np.where(above, C * y, 0.0)[:, None])[0][:, 0]
        reduced = InteriorPoint(features.take(rows), y[rows], C[rows], loss, fixed, float(C[above].sum()))
        new_w, new_bias, alpha, used = reduced.solve(tol, max_iter - total, (w, bias))
        total += used
        w, bias = new_w[:, None], np.array([new_bias])
        short = 1 - y * times(features, w, bias)[:, 0]
        crossed = ~close & ((short > 0) != above)
        if not crossed.any() or total >= max_iter:
            duals = np.where(above, C, 0.0)
            duals[rows] = alpha
            return new_w, new_bias, duals, total
        close |= np.abs(short) <= 2 * float(np.abs(short[crossed]).max())
        close |= crossed
    new_w, new_bias, duals, used = direct(features, y, C, loss, tol, max_iter - total)
    return new_w, new_bias, duals, total + used


def _rounded(features: Features, y: Array, C: Array, max_iter: int) -> tuple[Array, Array, int]:
    """The solution for a hinge with a rounded corner: roughly on an eighth of the rows, then in steps on all."""
    some = np.arange(0, features.shape[0], 8)
    part, label, cost = features.take(some), y[some, None], 8 * C[some, None]
    most = min(20, max_iter)
    state = newton(part, label, cost, SquaredHinge(), tol=1e-3, max_iter=most)
    for width in (0.5, ROUNDING):
        state = newton(part, label, cost, HuberHinge(width), (state.w, state.bias), tol=1e-3, max_iter=most)
    start, most = (state.w, state.bias), min(10, max_iter)
    state = newton(features, y[:, None], C[:, None], HuberHinge(ROUNDING), start, tol=1e-5, max_iter=most)
    return state.w, state.bias, int(state.n_iter[0])


def solve_interior(
    features: Features,
    Y: Array,
    C: Array,
    loss: Loss,
    tol: float,
    max_iter: int,
    start: Start = None,
    method: Any = None,
) -> tuple[Array, ...]:
    """Weights, biases, signed duals and iterations, one output at a time over the rows that take part in it."""
    n, m = features.shape
    outputs = Y.shape[1]
    w, bias, A = np.zeros((m, outputs)), np.zeros(outputs), np.zeros((n, outputs))
    n_iter = np.zeros(outputs, dtype=int)
    for o in range(outputs):
        rows = np.flatnonzero(C[:, o])
        mine = features if len(rows) == n else features.take(rows)
        solver = method or (screened if len(rows) > 20 * m + 4000 and not loss.smooth else direct)
        near = None if start is None else (start[0][:, [o]], start[1][[o]])
        w[:, o], bias[o], alpha, n_iter[o] = solver(mine, Y[rows, o], C[rows, o], loss, tol, max_iter, near)
        A[rows, o] = Y[rows, o] * alpha
    return w, bias, A, n_iter
