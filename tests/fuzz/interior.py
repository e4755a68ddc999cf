"""The machine over few features, solved in long double: an interior point with bounds on the optimum from both sides.

    min_{w,b}  1/2 |w|^2 + sum_i C_i l(m_i - y_i (p_i.w + b))

Margins m are 1, but for regression: there each row is two, with y = 1 and margin target - epsilon, and with y = -1 and
margin -target - epsilon. l is the hinge with its corner rounded over ``width`` (0: the hinge itself; infinite: the
squared hinge t^2 / 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longdouble import LONG, cholesky, solve


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


def optimum(P, y, C, loss, margins=1, within=1e-8, most=150):
    """Bounds by a predictor-corrector method."""
    with np.errstate(all="ignore"):
        return _Machine(P, y, C, loss, margins).run(within, most)


def of_targets(P, targets, C, loss, epsilon, within=1e-8):
    """The same for targets with a tube."""
    P, C = np.vstack([P, P]), np.append(C, C)
    y = np.append(np.ones_like(targets), -np.ones_like(targets))
    return optimum(P, y, C, loss, y * np.append(targets, targets) - LONG(epsilon), within)


class _Machine:
    """Optimality: w = A'alpha, A w + b y + r alpha - m = z - v, y'alpha = 0, products alpha z and (U - alpha) v zero.

    On the way products go to zero in proportion to the costs: with costs that differ by many orders of magnitude, equal
    products would leave the path's neighbourhood at once. w is a variable of its own: as a sum of large duals that
    cancel it would lose its digits.
    """

    def __init__(self, P, y, C, loss, margins):
        self.P, self.y, self.C, self.loss, self.margins = P, y, C, loss, margins
        self.A = np.hstack([y[:, None] * P, y[:, None]])  # the bias is the last
        self.free = np.append(np.ones(P.shape[1], dtype=LONG), LONG(0))
        self.r = LONG(loss.ridge) / C
        self.bounded = loss.box < np.inf
        # No dual is above the sum of the other side's: a cost beyond that only hides the scale.
        others = np.where(y > 0, C[y < 0].sum(), C[y > 0].sum())
        self.unit = np.minimum(C, 2 * others)
        self.U = self.unit if self.bounded else np.full(len(C), np.inf, dtype=LONG)
        self.found = Bounds(LONG(0), LONG(np.inf), np.zeros(P.shape[1], dtype=LONG), LONG(0))

    def run(self, within, most):
        y, C = self.y, self.unit
        # Duals that sum to zero: half the cost on the lighter side.
        sides = [C[y > 0].sum(), C[y < 0].sum()]
        share = np.where(y > 0, min(1, sides[1] / sides[0]), min(1, sides[0] / sides[1])) / 2
        size = np.abs(self.margins).max()
        alpha, z = share * C, np.full_like(C, size)
        v = np.full_like(C, size) if self.bounded else np.zeros_like(C)
        w = np.zeros(self.A.shape[1], dtype=LONG)
        for _ in range(most):
            self.look(alpha, w)
            if not self.found.upper - self.found.lower > within * abs(self.found.upper):
                break
            room = self.U - alpha if self.bounded else np.ones_like(C)
            tau = ((alpha * z).sum() + (room * v).sum()) / C.sum()
            step = self.direction(alpha, room, w, z, v, -alpha * z, -room * v)
            if step is None:
                break
            size = self.longest(alpha, room, z, v, step)
            da, _, dz, dv = step
            after = ((alpha + size * da) * (z + size * dz)).sum() + ((room - size * da) * (v + size * dv)).sum()
            target = max(after / C.sum() / tau, LONG(1e-6)) ** 3 * tau / (2 if self.bounded else 1) * C
            step = self.direction(alpha, room, w, z, v, target - alpha * z - da * dz, target - room * v + da * dv)
            if step is None or not np.isfinite(step[0]).all():
                break
            size = LONG(0.99) * self.longest(alpha, room, z, v, step, LONG(1) / LONG(0.99))
            da, dw, dz, dv = step
            alpha, w, z, v = alpha + size * da, w + size * dw, z + size * dz, v + size * dv
        return self.found

    def direction(self, alpha, room, w, z, v, low, high):
        """Newton's step; products change by ``low`` and ``high``. (diag(free) + A'H^-1 A) is the only matrix."""
        h = self.r + z / alpha + v / room
        right = self.margins + z - v - self.A @ w - self.r * alpha + low / alpha - (high / room if self.bounded else 0)
        inner = cholesky(np.diag(self.free) + self.A.T @ (self.A / h[:, None]))
        if inner is None:
            return None
        dw = solve(inner, self.A.T @ (alpha + right / h) - self.free * w)
        da = (right - self.A @ dw) / h
        dz = (low - z * da) / alpha
        dv = (high + v * da) / room if self.bounded else np.zeros_like(v)
        return da, dw, dz, dv

    def longest(self, alpha, room, z, v, step, most=1):
        """The longest step that keeps all signs."""
        da, _, dz, dv = step
        for x, dx in ((alpha, da), (z, dz), *(((room, -da), (v, dv)) if self.bounded else ())):
            falls = dx < 0
            if falls.any():
                most = min(most, (-x[falls] / dx[falls]).min())
        return most

    def look(self, alpha, wb):
        """Both bounds at this point: any weights give one, duals the other once they are balanced and in their box."""
        y, w, b = self.y, wb[:-1], wb[-1]
        upper = w @ w / 2 + self.loss.value(self.margins - y * (self.P @ w + b), self.C)
        if upper < self.found.upper:
            self.found.upper, self.found.w, self.found.b = upper, w, b
        alpha = np.clip(alpha, 0, self.U)
        up, down = alpha[y > 0].sum(), alpha[y < 0].sum()
        if min(up, down) > 0:
            alpha = np.where(y > 0, alpha * min(1, down / up), alpha * min(1, up / down))
            f = self.P.T @ (y * alpha)
            lower = (self.margins * alpha).sum() - f @ f / 2 - (self.r * alpha**2).sum() / 2
            self.found.lower = max(self.found.lower, lower)
