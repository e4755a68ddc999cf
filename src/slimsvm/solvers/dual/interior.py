"""An interior point method for the whole problem, ball included: for few rows with numbers of very different size.

Under a cap or a ball each dual is one part ``x >= 0`` for each sign that it may have, otherwise one part between its
bounds; ``a = sum(sign * x)``. In a ball of the metric Q each dual is one part, too. The conditions of optimality are

    sign (K a + b - y) + ridge x + theta + xi - z + w = 0,    xi = mu scale (scale x)**(power - 1),    sum(a) = 0,
    (x - lower) z = (upper - x) w = (total - sum(x)) theta = (1 - norm(scale x)) mu = 0.

With a metric, K is replaced by K + mu Q, and xi = 0.
Newton's method follows the points where those products are equal, while they fall to zero. The slacks xi of the ball
are unknowns of their own and their equation is linear in logarithms: then powers near 1 are as easy as large ones.
Rooms under cap and ball are unknowns, too, which the steps make true. Each step factorises one matrix of all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from ...linalg.arrays import Array
from ...linalg.matrix import cho_solve, dot, jittered_cholesky
from ...problem.formulation import FeasibleSet
from ..certificate import balanced

MOST_STEPS = 120
GROWTH = 5.0  # of a slack in one step, as a multiple of it
NEARLY = 0.995  # of the way to the nearest bound
TINY = 1e-300


def solutions(K: Array, y: Array, feasible: FeasibleSet) -> Iterator[tuple[Array, float]]:
    """Feasible duals, better and better, and the sum of the products: the gap where all else is met.

    Two for each step, the first with what has vanished left out. A factorisation that fails ends them.
    """
    path = NewtonSystem(K, y, feasible)
    states = path.states()
    try:
        while True:
            with np.errstate(all="ignore"):  # what is not finite ends the path
                before, state = next(states)
                left = path.sum_of_products(state)
            for x in (path.settled(before, state), state.x):
                duals = balanced(path.duals(x))
                if duals.any() and np.isfinite(duals).all():
                    yield min(1.0, feasible.share(duals)) * duals, left
    except (np.linalg.LinAlgError, StopIteration):
        return


@dataclass
class InteriorState:
    """Parts, multipliers of their bounds, slacks, bias; multiplier and room of cap and ball. Also a change of these."""

    x: Array
    z: Array
    w: Array
    xi: Array
    bias: float
    theta: float
    room: float
    mu: float
    depth: float

    def moved(self, change: InteriorState, share: float) -> InteriorState:
        """This state after a share of the change."""
        moved = InteriorState(*(getattr(self, f.name) + share * getattr(change, f.name) for f in fields(self)))
        fall = np.minimum(share * change.xi / np.maximum(self.xi, TINY), 0.0)
        moved.xi = np.where(fall < 0, self.xi * np.exp(fall), moved.xi)
        return moved


class NewtonSystem:
    """The equations of one problem and their Newton steps."""

    def __init__(self, K: Array, y: Array, feasible: FeasibleSet):
        n = len(y)
        self.K, self.y = K, y
        self.total, self.power = feasible.total, feasible.power
        self.capped, self.ball = feasible.total < np.inf, feasible.radius < np.inf
        self.metric = None if feasible.metric is None else feasible.metric / feasible.radius**2
        if self.capped or (self.ball and self.metric is None):
            plus, minus = np.flatnonzero(feasible.upper > 0), np.flatnonzero(feasible.lower < 0)
            self.row = np.concatenate([plus, minus])
            self.sign = np.repeat([1.0, -1.0], [len(plus), len(minus)])
            self.lower, self.upper = (
                np.zeros(len(self.row)),
                np.concatenate([feasible.upper[plus], -feasible.lower[minus]]),
            )
        else:
            self.row, self.sign, self.lower, self.upper = np.arange(n), np.ones(n), feasible.lower, feasible.upper
        # Places of the two parts of rows that have both.
        self.pairs = np.intersect1d(self.row[self.sign > 0], self.row[self.sign < 0], return_indices=True)[1:]
        self.pairs[1][:] += int((self.sign > 0).sum())
        self.below, self.above = self.lower > -np.inf, self.upper < np.inf  # which bounds there are
        self.ridge = np.broadcast_to(np.asarray(feasible.ridge, dtype=np.float64), n)[self.row]
        stretch = np.broadcast_to(np.asarray(feasible.stretch, dtype=np.float64), n)[self.row]
        p_norm_ball = self.ball and self.metric is None
        self.scale = stretch ** (1 / self.power) / feasible.radius if p_norm_ball else np.zeros(len(self.row))

    def states(self) -> Iterator[tuple[InteriorState, InteriorState]]:
        """Pairs of a state and the next one."""
        s, stuck = self.start(), 0
        for _ in range(MOST_STEPS):
            step = InteriorNewton(self, s)
            nu = self.mean_product(s)
            ahead = step.change(0.0)
            most = step.share(ahead)
            # The further a step to the end gets, the less of it goes to the middle (Mehrotra's rule).
            reached = self.mean_product(s.moved(ahead, most)) / max(nu, TINY)
            change = step.change(nu * float(np.clip(reached**3, 1e-4, 1.0)), ahead if most > 0.1 else None)
            share = NEARLY * step.share(change)
            if share < 0.1:
                central = step.change(0.8 * nu)
                if NEARLY * step.share(central) > share:
                    change, share = central, NEARLY * step.share(central)
            before, s = s, self.moved(s, change, share, nu)
            stuck = stuck + 1 if share < 1e-3 else 0
            if stuck == 10 or not all(np.isfinite(getattr(s, f.name)).all() for f in fields(s)):
                return
            yield before, s

    def moved(self, s: InteriorState, change: InteriorState, share: float, nu: float) -> InteriorState:
        """After a share of the step, or less of it where products would grow."""
        for _ in range(20):
            after = s.moved(change, share)
            if self.mean_product(after) <= 1.5 * nu:
                break
            share *= 0.5
        return after

    def start(self) -> InteriorState:
        """Sums in balance and halfway to the bounds; all products equal."""
        reach = np.minimum(np.maximum(self.upper, -self.lower), self.total)
        if self.scale.any():
            reach = np.minimum(reach, 1 / self.scale)
        reach = np.minimum(reach, 1 / np.maximum(self.ridge, TINY))
        way = np.where(self.lower == 0, 1.0, np.where(self.upper == 0, -1.0, self.y[self.row]))
        # Of the two parts of a dual, the one against its class is the smaller.
        x = reach * way * np.where(self.sign * way * self.y[self.row] > 0, 0.5, 0.25)
        side = self.sign * x > 0
        up, down = np.abs(x[side]).sum(), np.abs(x[~side]).sum()
        x *= np.where(side, min(up, down) / up, min(up, down) / down)
        x *= 0.5 / max(0.5, np.abs(x).sum() / self.total, self.norm(x) if self.ball else 0.0)
        off = np.abs(self.sign * (dot(self.K, self.duals(x)) - self.y)[self.row] + self.ridge * x)
        nu = float(dot(np.abs(x), np.maximum(off, 1.0))) / len(x)
        z, w, xi = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
        z[self.below] = nu / (x - self.lower)[self.below]
        w[self.above] = nu / (self.upper - x)[self.above]
        theta, room, mu, depth = 0.0, 1.0, 0.0, 1.0
        if self.capped:
            room = self.total - float(x.sum())
            theta = nu / room
        if self.ball:
            depth = 1 - self.norm(x)
            mu = nu / depth
            xi = mu * self.slope(x) if self.metric is None else xi
        return InteriorState(x, z, w, xi, 0.0, theta, room, mu, depth)

    def by_row(self, values: Array) -> Array:
        """Sums over the parts of each row."""
        return np.bincount(self.row, values, minlength=len(self.y))

    def duals(self, x: Array) -> Array:
        """Signed duals."""
        return self.by_row(self.sign * x)

    def norm(self, x: Array) -> float:
        """Of the ball, as a share of its radius."""
        if self.metric is not None:
            return float(np.sqrt(dot(dot(x, self.metric), x)))
        v = self.scale * np.abs(x)
        most = float(v.max())
        return most * float(((v / most) ** self.power).sum()) ** (1 / self.power)

    def slope(self, x: Array) -> Array:
        """The gradient of ``norm**power / power``."""
        return self.scale * (self.scale * x) ** (self.power - 1) if self.metric is None else dot(self.metric, x)

    def sum_of_products(self, s: InteriorState) -> float:
        """Of those that fall to zero together."""
        below, above = self.below, self.above
        total = dot((s.x - self.lower)[below], s.z[below]) + dot((self.upper - s.x)[above], s.w[above])
        return float(total) + s.room * s.theta + s.depth * s.mu

    def mean_product(self, s: InteriorState) -> float:
        """What they would be if they were equal."""
        return self.sum_of_products(s) / max(1, self.below.sum() + self.above.sum() + self.capped + self.ball)

    def settled(self, before: InteriorState, s: InteriorState) -> Array:
        """Parts that fall to a bound faster than the bound's multiplier does are put there."""
        falls = np.zeros((2, len(s.x)), dtype=bool)
        low, high = self.below, self.above
        falls[0, low] = (s.x - self.lower)[low] * before.z[low] < 0.5 * (before.x - self.lower)[low] * s.z[low]
        falls[1, high] = (self.upper - s.x)[high] * before.w[high] < 0.5 * (self.upper - before.x)[high] * s.w[high]
        x = np.where(falls[0], self.lower, np.where(falls[1], self.upper, s.x))
        # What that does to the sum is taken from the other parts of the heavier side.
        off = float(dot(self.sign, x))
        free = ~falls.any(axis=0) & (self.sign * x * off > 0)
        mass = float(np.abs(x[free]).sum())
        return np.where(free, x * (1 - abs(off) / mass), x) if mass > abs(off) else x


class InteriorNewton:
    """Newton steps from one state: one factorisation for any number of them."""

    def __init__(self, path: NewtonSystem, s: InteriorState):
        self.path, self.s = path, s
        self.down = np.where(path.below, s.x - path.lower, 1.0)
        self.up = np.where(path.above, path.upper - s.x, 1.0)
        self.D = path.ridge + (s.xi * (path.power - 1) + s.z) / self.down + s.w / self.up
        self.W = path.by_row(1 / self.D)
        self.K = path.K if path.metric is None else path.K + s.mu * path.metric
        self.factor = jittered_cholesky(self.K + np.diag(1 / self.W))
        one, other = path.pairs
        self.stiff = np.zeros(len(s.x), dtype=bool)
        self.stiff[np.where(self.D[one] > self.D[other], one, other)] = True
        pulls = [path.sign]  # of bias, cap and ball on each part
        rows = [path.sign]  # gradients of sum, cap and ball
        if path.capped:
            pulls.append(np.ones_like(s.x))
            rows.append(np.ones_like(s.x))
        if path.ball:
            slope = path.slope(s.x)
            pulls.append(s.mu * slope if path.metric is not None else s.xi)
            rows.append(slope / path.norm(s.x) ** (path.power - 1))
        self.rows = np.array(rows)
        self.answers = np.array([self.answer(-pull) for pull in pulls])

    def answer(self, h: Array) -> Array:
        """dx where ``sign * (K da) + D dx = h``."""
        path = self.path
        mean = path.by_row(path.sign * h / self.D) / self.W
        da = cho_solve(self.factor, mean)
        # The stiffer part of a row from its own equation, the other one from da: a small D would magnify rounding.
        x = np.where(self.stiff, (h - path.sign * dot(self.K, da)[path.row]) / self.D, 0.0)
        return np.where(self.stiff, x, path.sign * (da - path.duals(x))[path.row])

    def change(self, centre: float, ahead: InteriorState | None = None) -> InteriorState:
        """Towards products equal to ``centre``; ``ahead`` is an estimate of the step, for terms of second order."""
        path, s = self.path, self.s
        d = ahead or InteriorState(*(0.0 * getattr(s, f.name) for f in fields(s)))
        z = np.where(path.below, (centre - d.x * d.z) / self.down - s.z, 0.0)
        w = np.where(path.above, (centre + d.x * d.w) / self.up - s.w, 0.0)
        a = path.duals(s.x)
        short = path.sign * (path.y - dot(self.K, a) - s.bias)[path.row]
        h = short - path.ridge * s.x - s.theta - s.xi + s.z - s.w + z - w
        right, own = [-float(a.sum())], [0.0]
        room = depth = 0.0
        off: Array | float = 0.0
        if path.capped:
            room = (centre - d.room * d.theta) / s.theta - s.room
            right.append(path.total - float(s.x.sum()) - s.room - room)
            own.append(-s.room / s.theta)
        if path.ball:
            if path.metric is None:
                off = np.log(s.xi) - np.log(s.mu * path.scale) - (path.power - 1) * np.log(path.scale * s.x)
                h = h + s.xi * off
            depth = (centre - d.depth * d.mu) / s.mu - s.depth
            right.append(1 - path.norm(s.x) - s.depth - depth)
            own.append(-s.depth)
        x = self.answer(h)
        found = _solve(dot(self.rows, self.answers.T) + np.diag(own), np.array(right) - dot(self.rows, x))
        x = x + dot(found, self.answers)
        theta = float(found[1]) if path.capped else 0.0
        growth = float(found[-1]) if path.ball else 0.0  # of the logarithm of mu
        return InteriorState(
            x,
            z - s.z / self.down * x,
            w + s.w / self.up * x,
            s.xi * (growth + (path.power - 1) * x / self.down - off),
            float(found[0]),
            theta,
            room - s.room / s.theta * theta if path.capped else 0.0,
            s.mu * growth,
            depth - s.depth * growth,
        )

    def share(self, d: InteriorState) -> float:
        """How much of the step keeps everything positive, and slacks that tell from growing too fast to be followed."""
        path, s = self.path, self.s
        ratios = [(d.x / self.down)[path.below], (-d.x / self.up)[path.above]]
        ratios += [(d.z / np.maximum(s.z, TINY))[path.below], (d.w / np.maximum(s.w, TINY))[path.above]]
        if path.capped:
            ratios.append(np.array([d.theta / s.theta, d.room / s.room]))
        if path.ball:
            ratios.append(np.array([d.mu / s.mu, d.depth / s.depth]))
            ratios.append(-(d.xi / s.xi / GROWTH)[s.xi > 0.01 * s.z])
        return 1 / max(1.0, -float(np.concatenate(ratios).min(initial=0.0)))


def _solve(A: Array, b: Array) -> Array:
    """A few equations whose sizes differ."""
    sizes = np.abs(A).max(axis=1)
    return np.linalg.solve(A / sizes[:, None], b / sizes)
