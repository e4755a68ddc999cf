"""Interior points for few rows: boxes and given sums, with numbers of very different size.

    min_x  1/2 a'K a - linear'x    s.t.  lower <= x <= upper,  G x = sums,        a_i = the sum of the x of row i

G has a row of ones and, where the sums of both sides are given, one of their signs: sum and difference of the two are
what the equations can tell apart where both sides are large and cancel. The conditions of optimality are
``K a - linear - G'b - z + w = 0`` and ``(x - lower) z = (upper - x) w = 0``; Newton's method follows the points where
these products are equal, while they fall to zero (Mehrotra's predictor and corrector). Each step factorises one matrix
of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...linalg.arrays import Array
from ...linalg.matrix import cho_solve, dot, jittered_cholesky
from .interior import _solve

MOST_STEPS = 100
NEARLY = 0.995  # of the way to the nearest bound
TINY = 1e-300


@dataclass(frozen=True)
class BoxProblem:
    """One such problem. ``row`` is that of each variable, ``first`` a point within the bounds that has the sums."""

    K: Array
    row: Array
    linear: Array
    lower: Array
    upper: Array
    G: Array
    sums: Array
    first: Array

    def by_row(self, values: Array) -> Array:
        """Sums over the variables of each row."""
        return np.bincount(self.row, values, minlength=len(self.K))

    def products(self, x: Array) -> Array:
        """``K a`` for each variable."""
        return dot(self.K, self.by_row(x))[self.row]

    def solved(self, tol: float) -> Array | None:
        """Variables whose products are a share ``tol`` of the optimum at most, or as small as rounding allows; None
        where there are none at all."""
        free = self.upper > self.lower
        if not free.all():
            return self._of_some(free, tol)
        now, best, least_off, least, idle = self._first(), None, np.inf, np.inf, 0
        for _ in range(MOST_STEPS):
            before = now
            try:
                with np.errstate(all="ignore"):  # what is not finite ends the path
                    now, share = BoxNewton(self, now).made()
            except np.linalg.LinAlgError:
                break
            if not all(np.isfinite(part).all() for part in vars(now).values()) or share < 1e-6:
                break
            left, x = 2 * len(now.z) * now.mean_product, self.at(now)
            settled = self._settled(before, now, x)
            # When steps are rounding noise, snapping to bounds can be wrong: judge by the Lagrangian.
            off = left + abs(self._lagrangian(settled, now.b) - self._lagrangian(x, now.b))
            if off < least_off:
                least_off, best = off, settled
            idle += 1
            if left < least:
                idle, least = 0, left
            if left <= tol * abs(self.dual(x)) or idle > 5:
                break
        return best

    def dual(self, x: Array) -> float:
        """The value that is to be as large as it can be."""
        return float(dot(self.linear, x)) - 0.5 * float(dot(x, self.products(x)))

    def _lagrangian(self, x: Array, b: Array) -> float:
        """Lagrangian of the equality constraints at x."""
        return self.dual(x) + float(dot(b, dot(self.G, x) - self.sums))

    def _settled(self, before: BoxState, now: BoxState, x: Array) -> Array:
        """Variables that fall to a bound faster than the bound's multiplier does are put there."""
        low = now.down * before.z < 0.5 * before.down * now.z
        high = now.up * before.w < 0.5 * before.up * now.w
        return np.where(low, self.lower, np.where(high, self.upper, x))

    def at(self, now: BoxState) -> Array:
        """The variables: from the bound that is nearer, which has all their digits."""
        return np.where(now.down < now.up, self.lower + now.down, self.upper - now.up)

    def _first(self) -> BoxState:
        x = self.first
        off = self.products(x) - self.linear
        size = max(float(np.abs(off).max()), TINY)
        z, w = np.maximum(off, 0.0) + size, np.maximum(-off, 0.0) + size
        return BoxState(x - self.lower, self.upper - x, z, w, np.zeros(len(self.G)))

    def _of_some(self, free: Array, tol: float) -> Array | None:
        """Variables without room stay where they are."""
        fixed = np.where(free, 0.0, self.lower)
        rest = BoxProblem(
            self.K,
            self.row[free],
            (self.linear - self.products(fixed))[free],
            self.lower[free],
            self.upper[free],
            self.G[:, free],
            self.sums - dot(self.G, fixed),
            self.first[free],
        )
        found = rest.solved(tol) if free.any() else None
        if found is None:
            return None
        fixed[free] = found
        return fixed


@dataclass
class BoxState:
    """Room to either bound, each kept for itself because it may be tiny beside the variable; the multipliers of the
    bounds and of the sums. Also a change of these."""

    down: Array
    up: Array
    z: Array
    w: Array
    b: Array

    def moved(self, change: BoxState, share: float) -> BoxState:
        """After a share of the change."""
        return BoxState(
            *(part + share * more for part, more in zip(vars(self).values(), vars(change).values(), strict=True))
        )

    @property
    def mean_product(self) -> float:
        return float(dot(self.down, self.z) + dot(self.up, self.w)) / (2 * len(self.z))


class BoxNewton:
    """Newton steps from one state: one factorisation for two of them."""

    def __init__(self, problem: BoxProblem, now: BoxState):
        self.problem, self.now = problem, now
        self.D = now.z / now.down + now.w / now.up
        self.W = problem.by_row(1 / self.D)
        self.used = self.W > 0  # rows that have variables
        self.factor = jittered_cholesky(problem.K[np.ix_(self.used, self.used)] + np.diag(1 / self.W[self.used]))
        # Of two variables of a row, the one with the larger D is found from its own equation, the other one from their
        # sum: a small D would magnify rounding.
        order = np.lexsort((-self.D, problem.row))
        followed = np.append(problem.row[order][1:] == problem.row[order][:-1], False)
        self.stiff = np.zeros(len(self.D), dtype=bool)
        self.stiff[order[followed]] = True
        x = problem.at(now)
        self.short = problem.linear + dot(now.b, problem.G) - problem.products(x) + now.z - now.w
        self.missing = problem.sums - dot(problem.G, x)
        self.answers = np.array([self.answer(g) for g in problem.G])

    def answer(self, h: Array) -> Array:
        """dx where ``K da + D dx = h``."""
        p = self.problem
        da = np.zeros(len(self.W))
        da[self.used] = cho_solve(self.factor, p.by_row(h / self.D)[self.used] / self.W[self.used])
        x = np.where(self.stiff, (h - dot(p.K, da)[p.row]) / self.D, 0.0)
        return np.where(self.stiff, x, (da - p.by_row(x))[p.row])

    def change(self, centre: float, ahead: BoxState | None = None) -> BoxState:
        """Towards products equal to ``centre``; ``ahead`` is an estimate of the step, for terms of second order."""
        p, s = self.problem, self.now
        low = (centre - (0.0 if ahead is None else ahead.down * ahead.z)) / s.down - s.z
        high = (centre - (0.0 if ahead is None else ahead.up * ahead.w)) / s.up - s.w
        own = self.answer(self.short + low - high)
        b = _solve(dot(p.G, self.answers.T), self.missing - dot(p.G, own))
        x = own + dot(b, self.answers)
        return BoxState(x, -x, low - s.z / s.down * x, high + s.w / s.up * x, b)

    def share(self, d: BoxState) -> float:
        """How much of the step keeps everything positive."""
        s = self.now
        pairs = ((d.down, s.down), (d.up, s.up), (d.z, s.z), (d.w, s.w))
        return 1 / max(1.0, -min(float((change / np.maximum(part, TINY)).min()) for change, part in pairs))

    def made(self) -> tuple[BoxState, float]:
        """The next state, and how much of the step could be made."""
        mean = self.now.mean_product
        ahead = self.change(0.0)
        most = self.share(ahead)
        # The further a step to the end gets, the less of it goes to the middle (Mehrotra's rule).
        reached = self.now.moved(ahead, most).mean_product / max(mean, TINY)
        change = self.change(mean * float(np.clip(reached**3, 1e-4, 1.0)), ahead if most > 0.1 else None)
        share = NEARLY * self.share(change)
        return self.now.moved(change, share), share
