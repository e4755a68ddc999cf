"""Interior point method for small, badly scaled dual problems: boxes, given sums, caps and balls.

    min_x  1/2 a'K a - linear'x + 1/2 sum(ridge x^2)    s.t.  lower <= x <= upper,  G x = sums,
                                                              sum(x) <= total,  norm(x) <= 1

Each row has one variable or two; the dual of a row is ``a = sum(sign x)`` over its variables. Under a cap or a p-norm
ball, each variable is the size of the positive or the negative part of a dual, ``x >= 0``. G has a row for ``sum(a)``
and, where the sums of both sides are given, one for their difference, so that large sums that cancel lose no digits.
The optimality conditions are

    sign K a - linear - G'b + ridge x + theta + xi - z + w = 0,      xi = mu scale (scale x)**(power - 1),
    (x - lower) z = (upper - x) w = (total - sum(x)) theta = (1 - norm(x)) mu = 0.

With a metric Q, whose ball is ``a'Q a <= 1``, K is replaced by K + mu Q, and there is no xi. The slacks xi of the ball
are separate unknowns whose equation is linear in logarithms, which makes powers near 1 as easy as large ones. Distances
to bounds and the slacks of cap and ball are unknowns, too, because they may be tiny compared with the variables.
Each step factorises one matrix of all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...linalg.arrays import Array
from ...linalg.matrix import cho_solve, dot, jittered_cholesky
from ...problem.formulation import FeasibleSet
from ..certificate import SMALLEST_NORMAL, balanced
from ..mehrotra import FRACTION_TO_BOUNDARY, PrimalDualPoint, complementarity, corrector, longest_step, predictor

MAX_STEPS = 120
MAX_TINY_STEPS, TINY_STEP = 10, 1e-3  # the path ends after so many steps in a row below this length
MAX_IDLE_STEPS = 6  # in a row that do not reduce the gap: only rounding errors are left
SHORT_STEP = 0.1  # length: shorter corrected steps are replaced by a centring step
SMALLEST_CENTRING = 1e-4
MAX_SLACK_GROWTH = 5.0  # largest relative growth of a slack in one step
MAX_MU_GROWTH = 1.5


def solutions(K: Array, y: Array, feasible: FeasibleSet) -> Iterator[tuple[Array, float]]:
    """Iterates as feasible duals, with the sum of complementarity products: the gap where all equations hold.

    Each step yields two: first with variables that tend to a bound set to it, then as they are.
    """
    problem = InteriorProblem.over(feasible, K, y)
    for before, point in problem.path():
        for x in (problem.without_vanishing_sum(problem.settled(before, point)), point.x):
            duals = balanced(problem.duals(x))
            if duals.any() and np.isfinite(duals).all():
                yield min(1.0, feasible.max_scaling(duals)) * duals, sum_of_products(point)


@dataclass
class InteriorIterate(PrimalDualPoint):
    """An iterate, or a step: variables x; distances ``down`` and ``up`` to finite bounds, with multipliers z and w;
    multipliers b of the given sums; slacks xi of a p-norm ball; multiplier and slack of the cap (``theta``, ``room``)
    and of the ball (``mu``, ``depth``)."""

    x: Array
    down: Array
    up: Array
    z: Array
    w: Array
    b: Array
    xi: Array
    theta: Array
    room: Array
    mu: Array
    depth: Array

    def pairs(self) -> tuple[tuple[Array, Array], ...]:
        return (self.down, self.z), (self.up, self.w), (self.room, self.theta), (self.depth, self.mu)

    def moved(self, t: float, step: InteriorIterate) -> InteriorIterate:
        """This point plus t times a step; slacks xi that fall move in logarithms, so that they stay positive."""
        moved = super().moved(t, step)
        fall = np.minimum(t * step.xi / np.maximum(self.xi, SMALLEST_NORMAL), 0.0)
        moved.xi = np.where(fall < 0, self.xi * np.exp(fall), moved.xi)
        return moved


def sum_of_products(point: InteriorIterate) -> float:
    """The duality gap where all equations are met."""
    return sum(float(dot(x, z)) for x, z in point.pairs())


@dataclass(frozen=True)
class InteriorProblem:
    """One problem. ``row`` and ``sign`` belong to each variable; ``first`` is a strictly feasible point. The ball is
    ``sum((scale |x|)**power) <= 1``, or that of a ``metric``."""

    K: Array
    row: Array
    sign: Array
    linear: Array
    lower: Array
    upper: Array
    G: Array
    sums: Array
    first: Array
    ridge: Array | float = 0.0
    total: float = np.inf
    scale: Array | None = None
    power: float = 2.0
    metric: Array | None = None

    @classmethod
    def over(cls, feasible: FeasibleSet, K: Array, y: Array) -> InteriorProblem:
        """The problem of binary classification over a feasible set: duals sum to zero."""
        n, total, metric = len(y), feasible.total, feasible.metric
        in_ball = metric is None and feasible.radius < np.inf
        if total < np.inf or in_ball:  # the sizes of both signs
            plus, minus = np.flatnonzero(feasible.upper > 0), np.flatnonzero(feasible.lower < 0)
            row, sign = np.concatenate([plus, minus]), np.repeat([1.0, -1.0], [len(plus), len(minus)])
            lower, upper = np.zeros(len(row)), np.concatenate([feasible.upper[plus], -feasible.lower[minus]])
        else:
            row = np.flatnonzero(feasible.upper > feasible.lower)
            sign, lower, upper = np.ones(len(row)), feasible.lower[row], feasible.upper[row]
        ridge = np.broadcast_to(np.asarray(feasible.ridge, dtype=np.float64), n)[row]
        stretch = np.broadcast_to(np.asarray(feasible.stretch, dtype=np.float64), n)[row]
        scale = stretch ** (1 / feasible.power) / feasible.radius if in_ball else None
        # Start half of the way to the bounds, a quarter for the sign opposite to the label; then balance the sums.
        x = np.minimum(np.minimum(np.maximum(upper, -lower), total), 1 / np.maximum(ridge, SMALLEST_NORMAL))
        x = x if scale is None else np.minimum(x, 1 / scale)
        way = np.where(lower == 0, 1.0, np.where(upper == 0, -1.0, y[row]))
        x = x * way * np.where(sign * way * y[row] > 0, 0.5, 0.25)
        problem = cls(
            K,
            row,
            sign,
            sign * y[row],
            lower,
            upper,
            sign[None],
            np.zeros(1),
            x * _balance(sign * x),
            ridge,
            total,
            scale,
            feasible.power,
            None if metric is None else metric / feasible.radius**2,
        )
        x = problem.first
        return replace(problem, first=x * (0.5 / max(0.5, np.abs(x).sum() / total, problem.norm(x))))

    def by_row(self, values: Array) -> Array:
        """Sum values over the variables of each row."""
        return np.bincount(self.row, values, minlength=len(self.K))

    def duals(self, x: Array) -> Array:
        """Signed duals of the rows."""
        return self.by_row(self.sign * x)

    def products(self, x: Array) -> Array:
        """``sign K a`` for each variable."""
        return self.sign * dot(self.K, self.duals(x))[self.row]

    def norm(self, x: Array) -> float:
        """The norm of the ball, whose radius is 1; 0 without a ball."""
        if self.metric is not None:
            a = self.duals(x)
            return float(np.sqrt(dot(dot(a, self.metric), a)))
        if self.scale is None:
            return 0.0
        v = self.scale * np.abs(x)
        largest = float(v.max())
        return largest * float(((v / largest) ** self.power).sum()) ** (1 / self.power)

    def slope(self, x: Array) -> Array:
        """The gradient of ``norm**power / power``."""
        if self.scale is not None:
            return self.scale * (self.scale * x) ** (self.power - 1)
        return self.sign * dot(self.metric, self.duals(x))[self.row]

    def dual(self, x: Array) -> float:
        """The dual objective (to be maximised) of a problem without ridge."""
        return float(dot(self.linear, x)) - 0.5 * float(dot(x, self.products(x)))

    def solved(self, tol: float) -> Array | None:
        """Solve until the sum of products is at most ``tol`` times the objective, or as rounding allows; returns
        the variables, or None where no iterate was found."""
        free = self.upper > self.lower
        if not free.any():
            return None
        if not free.all():  # variables with equal bounds are left out, and zero
            names = ("row", "sign", "linear", "lower", "upper", "first")
            parts: dict[str, Any] = {name: getattr(self, name)[free] for name in names}
            found = replace(self, G=self.G[:, free], **parts).solved(tol)
            return None if found is None else np.bincount(np.flatnonzero(free), found, minlength=len(free))
        best, least_error, least, idle = None, np.inf, np.inf, 0
        for before, point in self.path():
            left, x = sum_of_products(point), self.settled(before, point)
            # Where steps are rounding noise, moving to bounds can be wrong: then the Lagrangian changes.
            error = left + abs(self._lagrangian(x, point.b) - self._lagrangian(point.x, point.b))
            if error < least_error:
                least_error, best = error, x
            idle = 0 if left < least else idle + 1
            least = min(left, least)
            if left <= tol * abs(self.dual(point.x)) or idle == MAX_IDLE_STEPS:
                break
        return best

    def _lagrangian(self, x: Array, b: Array) -> float:
        """The Lagrangian for the given sums, at multipliers b."""
        return self.dual(x) + float(dot(b, dot(self.G, x) - self.sums))

    # --- the path ------------------------------------------------------------------------------------------------

    def path(self) -> Iterator[tuple[InteriorIterate, InteriorIterate]]:
        """Pairs of successive iterates, until rounding allows no more."""
        point, tiny_steps = self.start(), 0
        for _ in range(MAX_STEPS):
            before = point
            try:
                with np.errstate(all="ignore"):  # what is not finite ends the path
                    point, length = self.advanced(before)
            except np.linalg.LinAlgError:
                return
            tiny_steps = tiny_steps + 1 if length < TINY_STEP else 0
            if tiny_steps == MAX_TINY_STEPS or not point.finite:
                return
            yield before, point

    def start(self) -> InteriorIterate:
        """The first iterate; with a cap or a ball all products are equal, else ``z - w`` satisfies its equation."""
        x = self.first
        low, high = np.isfinite(self.lower), np.isfinite(self.upper)
        down, up = (x - self.lower)[low], (self.upper - x)[high]
        off = self.products(x) - self.linear + self.ridge * x
        product = float(dot(np.abs(x), np.maximum(np.abs(off), 1.0))) / len(x)
        room = np.array([self.total - float(x.sum())] if self.total < np.inf else [])
        depth = np.array([] if self.scale is None and self.metric is None else [1 - self.norm(x)])
        if len(room) or len(depth):
            z, w = product / down, product / up
        else:
            size = max(float(np.abs(off).max()), SMALLEST_NORMAL)
            z, w = np.maximum(off, 0.0)[low] + size, np.maximum(-off, 0.0)[high] + size
        mu = product / depth
        xi = np.zeros(0) if self.scale is None else mu * self.slope(x)
        return InteriorIterate(x, down, up, z, w, np.zeros(len(self.G)), xi, product / room, room, mu, depth)

    def advanced(self, point: InteriorIterate) -> tuple[InteriorIterate, float]:
        """The next iterate, and the length of the step to it."""
        system, mu = NewtonSystem(self, point), complementarity(point)
        predicted, length, after = predictor(point, system.towards)
        centre = mu * float(np.clip((after / mu) ** 3, SMALLEST_CENTRING, 1.0))
        long_enough = length > SHORT_STEP  # otherwise its second-order terms are unreliable
        step = corrector(system.towards, centre, predicted) if long_enough else system.towards([centre] * 4, 1)
        t = self.step_length(point, step)
        if t < SHORT_STEP:
            central = system.towards([0.8 * mu] * 4, 1)
            if self.step_length(point, central) > t:
                step, t = central, self.step_length(point, central)
        made = t
        for _ in range(20):
            moved = point.moved(made, step)
            if complementarity(moved) <= MAX_MU_GROWTH * mu:
                break
            made *= 0.5
        moved.x = self.from_bounds(moved)
        return moved, t

    @staticmethod
    def step_length(point: InteriorIterate, step: InteriorIterate) -> float:
        """The longest step that keeps all variables positive and lets no significant slack grow too fast."""
        length = longest_step(point, step)
        if len(point.xi):
            growth = (step.xi / point.xi)[point.xi > 0.01 * point.z]
            length = min(length, MAX_SLACK_GROWTH / max(MAX_SLACK_GROWTH, float(growth.max(initial=0.0))))
        return FRACTION_TO_BOUNDARY * length

    def from_bounds(self, point: InteriorIterate) -> Array:
        """Recompute variables near a bound from their distance to it, which is more accurate."""
        x = point.x.copy()
        for bound, side, distance in ((self.lower, 1.0, point.down), (self.upper, -1.0, point.up)):
            at = np.flatnonzero(np.isfinite(bound))
            near = distance <= np.abs(point.x[at])
            x[at[near]] = (bound[at] + side * distance)[near]
        return x

    def settled(self, before: InteriorIterate, point: InteriorIterate) -> Array:
        """Set variables to a bound if their distance to it falls faster than the multiplier of the bound."""
        x = point.x.copy()
        for bound, now, then, z, z_then in (
            (self.upper, point.up, before.up, point.w, before.w),
            (self.lower, point.down, before.down, point.z, before.z),
        ):
            there = np.flatnonzero(np.isfinite(bound))[now * z_then < 0.5 * then * z]
            x[there] = bound[there]
        return x

    def without_vanishing_sum(self, x: Array) -> Array:
        """Make ``sum(a)`` zero by scaling down the variables between bounds on the heavier side."""
        off = float(dot(self.sign, x))
        free = (x > self.lower) & (x < self.upper) & (self.sign * x * off > 0)
        mass = float(np.abs(x[free]).sum())
        return np.where(free, x * (1 - abs(off) / mass), x) if mass > abs(off) else x


class NewtonSystem:
    """Newton's equations at one iterate, factorised once for several steps."""

    def __init__(self, problem: InteriorProblem, point: InteriorIterate):
        self.problem, self.point = problem, point
        p, s = problem, point
        self.low, self.high = np.isfinite(p.lower), np.isfinite(p.upper)
        self.D = np.zeros(len(s.x)) + p.ridge
        if len(s.xi):  # of a p-norm ball, where lower bounds are zero
            self.D += s.xi * (p.power - 1) / s.down
        self.D[self.low] += s.z / s.down
        self.D[self.high] += s.w / s.up
        self.W = p.by_row(1 / self.D)
        self.used = self.W > 0  # rows that have variables
        self.K = p.K if p.metric is None else p.K + s.mu * p.metric
        self.factor = jittered_cholesky(self.K[np.ix_(self.used, self.used)] + np.diag(1 / self.W[self.used]))
        # Of two variables of a row, the one with the larger D comes from its own equation, the other one from their
        # sum: division by a small D would magnify rounding errors.
        order = np.lexsort((-self.D, p.row))
        followed = np.append(p.row[order][1:] == p.row[order][:-1], False)
        self.stiff = np.zeros(len(self.D), dtype=bool)
        self.stiff[order[followed]] = True
        # Gradients of sums, cap and ball, effects of their multipliers (of the ball: its logarithm) on x's equation.
        rows, pulls = [*p.G], [*p.G]
        if len(s.room):
            rows.append(np.ones_like(s.x))
            pulls.append(-np.ones_like(s.x))
        if len(s.depth):
            slope = p.slope(s.x)
            rows.append(slope / p.norm(s.x) ** (p.power - 1))
            pulls.append(-(s.mu * slope if p.metric is not None else s.xi))
        self.rows, self.responses = np.array(rows), np.array([self.response(pull) for pull in pulls])
        self.residual = p.linear + dot(s.b, p.G) - p.sign * dot(self.K, p.duals(s.x))[p.row] - p.ridge * s.x
        self.residual -= s.theta.sum()
        self.residual[self.low] += s.z
        self.residual[self.high] -= s.w
        self.missing = np.concatenate([p.sums - dot(p.G, s.x), p.total - s.x.sum() - s.room, 1 - p.norm(s.x) - s.depth])
        self.bend: Array | float = 0.0
        if len(s.xi) and p.scale is not None:
            self.bend = np.log(s.xi) - np.log(s.mu * p.scale) - (p.power - 1) * np.log(p.scale * s.x)
            self.residual += s.xi * self.bend - s.xi

    def response(self, h: Array) -> Array:
        """Solve ``sign K da + D dx = h`` for dx."""
        p = self.problem
        da = np.zeros(len(self.W))
        da[self.used] = cho_solve(self.factor, (p.by_row(p.sign * h / self.D)[self.used]) / self.W[self.used])
        x = np.where(self.stiff, (h - p.sign * dot(self.K, da)[p.row]) / self.D, 0.0)
        return np.where(self.stiff, x, p.sign * (da - p.duals(x))[p.row])

    def towards(self, targets: Sequence[Array | float], rounds: int) -> InteriorIterate:
        """The step to points where the products of the iterate's pairs have these values."""
        p, s = self.problem, self.point
        z, w, theta, mu = targets
        z, w = z / s.down - s.z, w / s.up - s.w
        h = self.residual.copy()
        h[self.low] += z
        h[self.high] -= w
        room, depth = theta / s.theta - s.room, mu / s.mu - s.depth
        x = self.response(h)
        sums = len(s.b)
        right = self.missing - np.concatenate([np.zeros(sums), room, depth]) - dot(self.rows, x)
        own = np.concatenate([np.zeros(sums), -s.room / s.theta, -s.depth])
        multipliers = _solve(dot(self.rows, self.responses.T) + np.diag(own), right)
        x = x + dot(multipliers, self.responses)
        b, theta, growth = np.split(multipliers, [sums, sums + len(s.theta)])  # growth: of the logarithm of mu
        down, up = x[self.low], -x[self.high]
        xi = s.xi * (growth + (p.power - 1) * x / s.down - self.bend) if len(s.xi) else s.xi
        return InteriorIterate(
            x,
            down,
            up,
            z - s.z / s.down * down,
            w - s.w / s.up * up,
            b,
            xi,
            theta,
            room - s.room / s.theta * theta,
            s.mu * growth,
            depth - s.depth * growth,
        )


def _balance(a: Array) -> Array:
    """Factors, at most 1, that make the duals sum to zero."""
    up, down = np.maximum(a, 0).sum(), -np.minimum(a, 0).sum()
    return np.where(a > 0, min(up, down) / up, min(up, down) / down)


def _solve(A: Array, b: Array) -> Array:
    """Solve a few equations of different scale, scaled row by row."""
    sizes = np.abs(A).max(axis=1)
    return np.linalg.solve(A / sizes[:, None], b / sizes)
