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
from scipy.linalg import cho_factor, cho_solve

from .features import Features, sums, times
from .formulation import Array
from .losses import Loss, SquaredHinge
from .newton import newton

TINY = np.finfo(float).tiny


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
    """One machine over ``features`` with labels y (+-1) and costs C."""

    def __init__(self, features: Features, y: Array, C: Array, loss: Loss):
        self.features, self.y, self.C, self.loss = features, y, C, loss
        self.ridge, self.upper = loss.dual_box(C)
        self.capped = bool(np.isfinite(self.upper[0]))
        # A row whose weight would drown the others' in the Newton matrix is held back; refinement makes up for it.
        squares = sum(float(np.einsum("ij,ij->", P, P, dtype=np.float64)) for _, P in features.blocks())
        self.most = 1e13 / squares if squares > 0 else np.inf

    def solve(self, tol: float, max_iter: int) -> tuple[Array, float, Array, int]:
        """Weights, bias, duals alpha and iterations."""
        now = self.start()
        best, best_gap, best_at = now, np.inf, 0
        for iteration in range(max_iter):
            distances = self.ridge + now.s / now.alpha + now.xi / now.room
            h = np.minimum(1 / distances, self.most)
            moments, grams = sums(self.features, (self.y * now.alpha)[:, None], h[:, None])
            gap = self.gap(now, moments[:, 0])
            if gap < best_gap:
                best, best_gap, best_at = now, gap, iteration
            if gap <= 0.5 * tol or iteration > best_at + 8:  # solved, or rounding has the last word
                break
            assert grams is not None
            step = self.step(now, moments[:, 0], grams[0], h, distances)
            if step is None:
                break
            now = now.moved(min(1.0, 0.995 * self.longest(now, step)), step)
        return best.w, best.bias, best.alpha, best_at

    def start(self) -> Iterate:
        """Near the squared hinge's solution, well inside."""
        y, C = self.y, self.C
        rough = newton(self.features, y[:, None], C[:, None], SquaredHinge(), tol=1e-3, max_iter=10)
        f = rough.F[:, 0]
        short = 1 - y * f
        spread = max(float(np.abs(short).mean()), 1e-3)
        if self.capped:
            alpha = C * np.clip(short, 0.1, 0.9)
            margin = self.ridge * alpha - short
            s, xi = np.maximum(margin, 0) + spread, np.maximum(-margin, 0) + spread
        else:
            alpha = (np.maximum(short, 0) + spread) / self.ridge
            s, xi = np.maximum(-short, 0) + spread, np.zeros_like(f)
        return Iterate(rough.w[:, 0], float(rough.bias[0]), f, alpha, s, xi, self.upper - alpha)

    def gap(self, now: Iterate, moments: Array) -> float:
        """Gap relative to the primal value, which is never negative, or how far the duals are from summing to zero."""
        primal = 0.5 * float(now.w @ now.w) + float(
            self.loss.value(now.f[:, None], self.y[:, None], self.C[:, None])[0]
        )
        dual = float(now.alpha.sum()) - 0.5 * float(moments[:-1] @ moments[:-1] + self.ridge @ now.alpha**2)
        return max(abs(primal - dual) / max(primal, TINY), abs(float(moments[-1])) / float(now.alpha.sum()))

    def step(self, now: Iterate, moments: Array, H: Array, h: Array, distances: Array) -> Iterate | None:
        """Predictor, then corrector; None if rounding has made the equations useless."""
        m = len(now.w)
        H[np.arange(m), np.arange(m)] += 1
        H[m, m] += 1e-14 * float(h.sum())
        try:
            factor = cho_factor(H, check_finite=False)
        except np.linalg.LinAlgError:
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
                add = cho_solve(factor, right, check_finite=False)
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


def solve_interior(features: Features, Y: Array, C: Array, loss: Loss, tol: float, max_iter: int) -> tuple[Array, ...]:
    """Weights, biases, signed duals and iterations, one output at a time over the rows that take part in it."""
    n, m = features.shape
    outputs = Y.shape[1]
    w, bias, A = np.zeros((m, outputs)), np.zeros(outputs), np.zeros((n, outputs))
    n_iter = np.zeros(outputs, dtype=int)
    for o in range(outputs):
        rows = np.flatnonzero(C[:, o])
        mine = features if len(rows) == n else features.take(rows)
        w[:, o], bias[o], alpha, n_iter[o] = InteriorPoint(mine, Y[rows, o], C[rows, o], loss).solve(tol, max_iter)
        A[rows, o] = Y[rows, o] * alpha
    return w, bias, A, n_iter
