"""The machine over few features, solved in long double: an interior point with bounds on the optimum from both sides.

    min_{w,b}  1/2 |w|^2 + sum_i C_i l(1 - y_i (p_i.w + b))

l is the hinge with its corner rounded over ``width`` (0: the hinge itself; infinite: the squared hinge t^2 / 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .exact import LONG, cholesky, solve


@dataclass
class Bounds:
    """The optimum lies between; the upper one is the value of a point."""

    lower: np.longdouble
    upper: np.longdouble
    w: np.ndarray
    b: np.longdouble


@dataclass(frozen=True)
class Loss:
    """A hinge, by the ridge and the box of its duals: ``ridge / C`` and ``box * C``."""

    ridge: float
    box: float

    def value(self, t, C):
        t = np.maximum(t, 0)
        if self.box == np.inf:
            return (C * t**2).sum() / 2
        bent = np.minimum(t, LONG(self.ridge))
        return (C * ((bent**2 / (2 * LONG(self.ridge)) if self.ridge else 0) + (t - bent))).sum()


HINGE, SQUARED = Loss(0.0, 1.0), Loss(1.0, np.inf)


def huber(width):
    return Loss(width, 1.0)


def optimum(P, y, C, loss, within=1e-8, most=150):
    """Bounds by a predictor-corrector method; (I + A'H^-1 A) is the only matrix."""
    with np.errstate(all="ignore"):
        return _Machine(P, y, C, loss).run(within, most)


class _Machine:
    def __init__(self, P, y, C, loss):
        self.P, self.y, self.C, self.loss = P, y, C, loss
        self.A = y[:, None] * P
        self.r = LONG(loss.ridge) / C
        self.U = C * loss.box if loss.box < np.inf else np.full(len(C), np.inf, dtype=LONG)
        self.bounded = loss.box < np.inf
        self.found = Bounds(LONG(0), LONG(np.inf), np.zeros(P.shape[1], dtype=LONG), LONG(0))

    def run(self, within, most):
        y, U = self.y, self.U
        # Around a point that sums to zero: half the smaller side's cost on each side.
        sides = [self.C[y > 0].sum(), self.C[y < 0].sum()]
        share = np.where(y > 0, min(1, sides[1] / sides[0]), min(1, sides[0] / sides[1])) / 2
        alpha = share * self.C
        z, v = np.ones_like(alpha), np.ones_like(alpha) if self.bounded else np.zeros_like(alpha)
        b = LONG(0)
        for _ in range(most):
            self.look(alpha, b)
            if not self.found.upper - self.found.lower > within * abs(self.found.upper):
                break
            room = U - alpha if self.bounded else np.ones_like(alpha)
            gradient = self.A @ (self.A.T @ alpha) + self.r * alpha - 1 + b * y - z + v
            pairs = len(alpha) * (2 if self.bounded else 1)
            mu = ((alpha * z).sum() + (room * v).sum() * self.bounded) / pairs
            h = self.r + z / alpha + (v / room if self.bounded else 0)
            inner = cholesky(np.eye(self.A.shape[1], dtype=LONG) + self.A.T @ (self.A / h[:, None]))
            if inner is None:
                break
            step = self.direction(alpha, room, z, v, gradient, h, inner, -alpha * z, -room * v)
            size = self.longest(alpha, room, z, v, step, LONG(1))
            da, _, dz, dv = step
            after = ((alpha + size * da) * (z + size * dz)).sum()
            if self.bounded:
                after += ((room - size * da) * (v + size * dv)).sum()
            sigma = mu * (after / pairs / mu) ** 3
            step = self.direction(
                alpha, room, z, v, gradient, h, inner, sigma - alpha * z - da * dz, sigma - room * v + da * dv
            )
            size = self.longest(alpha, room, z, v, step, LONG(0.995))
            da, db, dz, dv = step
            if not np.isfinite(da).all():
                break
            alpha, b, z, v = alpha + size * da, b + size * db, z + size * dz, v + size * dv
        return self.found

    def direction(self, alpha, room, z, v, gradient, h, inner, low, high):
        """Newton's step with the complementarity products sent to ``low`` and ``high`` more."""
        right = -gradient + low / alpha - (high / room if self.bounded else 0)

        def inverse(x):
            return (x - self.A @ solve(inner, self.A.T @ (x / h))) / h

        to_right, to_y = inverse(right), inverse(self.y)
        db = (self.y @ to_right + self.y @ alpha) / (self.y @ to_y)
        da = to_right - db * to_y
        dz = (low - z * da) / alpha
        dv = (high + v * da) / room if self.bounded else np.zeros_like(v)
        return da, db, dz, dv

    def longest(self, alpha, room, z, v, step, share):
        da, _, dz, dv = step
        size = LONG(1)
        for x, dx in ((alpha, da), (z, dz), *(((room, -da), (v, dv)) if self.bounded else ())):
            falls = dx < 0
            if falls.any():
                size = min(size, share * (-x[falls] / dx[falls]).min())
        return size

    def look(self, alpha, b):
        """Both bounds at this point: duals balanced and in their box, biases at b."""
        y = self.y
        w = self.A.T @ alpha
        t = 1 - y * (self.P @ w + b)
        upper = w @ w / 2 + self.loss.value(t, self.C)
        if upper < self.found.upper:
            self.found.upper, self.found.w, self.found.b = upper, w, b
        alpha = np.clip(alpha, 0, self.U)
        up, down = alpha[y > 0].sum(), alpha[y < 0].sum()
        if min(up, down) > 0:
            alpha = np.where(y > 0, alpha * min(1, down / up), alpha * min(1, up / down))
            w = self.A.T @ alpha
            lower = alpha.sum() - w @ w / 2 - (self.r * alpha**2).sum() / 2
            if lower > self.found.lower:
                self.found.lower = lower
