"""The hinge in m dimensions from a good start: for machines that are solved again and again, each near the last.

    min_{w,b}  1/2 |w|^2 + sum_i C_i (1 - y_i (p_i.w + b))_+

The corner of the hinge is rounded over a width that shrinks by and by (Newton's method, in which only rows near the
corner cost anything); then the rows at the corner are named, and their equations solved exactly. The interior point
of `interior` needs no start, but makes no use of one either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import lsq_linear

from ..certificate import balanced, relative_gap
from ..formulation import INEQUALITY, Array
from ..parts.slacks import OneNorm

WIDEST = 0.5
NARROWEST = 1e-7
LEAST_START = 2e-3  # a start is never so good that a wider corner would not help
MOST_EQUAL = 200  # rows at the corner beyond those that independent rows can be
SLIGHT = 1e-10  # of the conditions of optimality


@dataclass(frozen=True)
class HingeSolution:
    """Weights, bias, decision values, duals ``alpha = y u``, the certificate, and the last width of the corner."""

    w: Array
    bias: float
    f: Array
    alpha: Array
    objective: float
    gap: float  # (primal - dual) / dual
    n_iter: int
    width: float
    exact: bool = False  # the conditions of optimality hold but for rounding


class HingeMachine:
    """One machine over the rows of ``P = G B`` with labels y (+-1) and costs C.

    B changes from machine to machine, G does not: their product is never formed.
    """

    def __init__(self, G: Array, B: Array, y: Array, C: Array):
        self.G, self.B, self.y, self.C = G, B, y, C
        self.n_iter = 0

    def times(self, w: Array) -> Array:
        """``P w``."""
        return self.G @ (self.B @ w)

    def moments(self, u: Array) -> Array:
        """``P'u``."""
        return (u @ self.G) @ self.B

    def solve(
        self, tol: float, start: tuple[Array, float] | None = None, last: HingeSolution | None = None
    ) -> HingeSolution:
        """To a relative gap of ``tol``, and no worse than the start, if rounding allows it.

        ``last`` solved a machine much like this one: its rows at the corner are a first guess.
        """
        w, bias = (np.zeros(self.B.shape[1]), 0.0) if start is None else start
        f = self.times(w) + bias
        begun = w, bias, f, self.primal(w, f)
        goal = np.inf if start is None else begun[-1] * (1 + 1e-12)
        width = WIDEST
        best: HingeSolution | None = None
        if last is not None:
            width = max(last.width, min(5 * last.width, LEAST_START))
            best = self.named(last.alpha, width)
            if best is not None and self.good(best, tol, goal):
                return best
        while True:
            w, bias, f, alpha = self.rounded(w, bias, f, width)
            for found in (self.certified(w, bias, f, alpha, width), self.named(alpha, width)):
                if found is not None and (best is None or found.gap < best.gap):
                    best = found
                if best is not None and self.good(best, tol, goal):
                    return best
            if best is not None and width <= NARROWEST:
                if best.objective > goal:
                    w, bias, f, value = begun
                    return replace(best, w=w, bias=bias, f=f, objective=value)
                return best
            width = max(0.2 * width, NARROWEST)

    def good(self, found: HingeSolution, tol: float, goal: float) -> bool:
        """Is it good enough, or as good as can be?"""
        return found.exact or (found.gap <= tol and found.objective <= goal)

    def rounded(
        self, w: Array, bias: float, f: Array, width: float, most: int = 30
    ) -> tuple[Array, float, Array, Array]:
        """Newton's method for the hinge with a corner of this width."""
        y, C = self.y, self.C
        share = np.empty(0)
        last = np.inf
        for _ in range(most):
            xi = 1 - y * f
            share = np.clip(xi / width, 0, 1)
            u = y * C * share
            gradient = np.append(w - self.moments(u), -u.sum())
            curved = np.flatnonzero((share > 0) & (share < 1))
            step = self.newton_step(curved, C[curved] / width, gradient)
            gain = -0.5 * float(step @ gradient)
            inner = np.minimum(xi, width)
            value = 0.5 * float(w @ w) + float(C @ np.where(share > 0, inner * inner / (2 * width) + (xi - inner), 0.0))
            self.n_iter += 1
            if gain <= 1e-12 * value or (gain > 0.5 * last and gain < 1e-6 * value):
                break
            last = gain
            q = self.times(step[:-1]) + step[-1]
            t = self.line_search(f, q, float(w @ step[:-1]), float(step[:-1] @ step[:-1]), width)
            w, bias, f = w + t * step[:-1], bias + t * step[-1], f + t * q
        return w, bias, f, C * share

    def newton_step(self, curved: Array, h: Array, gradient: Array) -> Array:
        """``-H^-1 gradient`` with ``H = diag(1, .., 1, 0) + sum_curved h [p 1][p 1]'``."""
        G, B = self.G[curved], self.B
        m = B.shape[1]
        H = np.empty((m + 1, m + 1), order="F")
        scaled = G * np.sqrt(h)[:, None]
        if len(curved) < 2 * m:
            scaled = scaled @ B
            H[:m, :m] = scaled.T @ scaled
        else:
            H[:m, :m] = B.T @ (scaled.T @ scaled) @ B
        H[m, :m] = H[:m, m] = (h @ G) @ B
        # Where few rows are curved the bias is hardly held: it goes no farther than a margin's width.
        H[m, m] = h.sum() + abs(gradient[m]) + 1e-12 * self.C.sum()
        H[np.arange(m), np.arange(m)] += 1
        factor, info = lapack.dpotrf(H, lower=1, overwrite_a=1)
        if info:
            return -gradient
        return -lapack.dpotrs(factor, gradient, lower=1)[0]

    def line_search(self, f: Array, q: Array, slope: float, bend: float, width: float) -> float:
        """The t that is best along the step: root of an increasing, piecewise linear derivative."""
        y, C = self.y, self.C
        at, along = 1 - y * f, y * q
        cost = C * along
        t, low, high = 1.0, 0.0, np.inf
        first = None
        for _ in range(40):
            xi = at - t * along
            share = np.clip(xi / width, 0, 1)
            derivative = slope + t * bend - float(cost @ share)
            if first is None:
                first = abs(slope - float(cost @ np.clip(at / width, 0, 1)))
            if abs(derivative) <= 1e-2 * first:
                break
            curved = (share > 0) & (share < 1)
            second = bend + float((cost * along)[curved].sum()) / width
            low, high = (t, high) if derivative < 0 else (low, t)
            step = t - derivative / second if second > 0 else np.inf
            t = step if low < step < min(high, 1e9) else 0.5 * (low + high) if np.isfinite(high) else 2 * t
        return t

    def named(self, alpha: Array, width: float, most: int = 8) -> HingeSolution | None:
        """The exact solution, if the rows at the corner can be named: a few corrections of those that are there now."""
        y, C = self.y, self.C
        corner, beyond = (alpha > 0) & (alpha < C), alpha >= C
        pull = self.moments(np.where(beyond, y * C, 0.0))  # of the rows beyond the corner
        for attempt in range(most):
            rows = np.flatnonzero(corner)
            k = len(rows)
            if k > self.B.shape[1] + 1 + (width < 1e-3) * MOST_EQUAL:
                return None
            own = self.G[rows] @ self.B
            A = np.ones((k + 1, k + 1))
            A[:k, :k] = own @ own.T
            A[k, k] = 0
            found = self.balanced(A, np.append(y[rows] - own @ pull, -(y * C)[beyond].sum()))
            if found is None:
                return None
            u = found[:k]
            w = pull + u @ own
            f = self.times(w)
            bias = float(found[k]) if k else OneNorm().bias(y - f, y, C, INEQUALITY)
            f += bias
            alpha = np.where(beyond, C, 0.0)
            alpha[rows] = y[rows] * u
            self.n_iter += 1
            short = 1 - y * f
            up, down = corner & (alpha > C * (1 + SLIGHT)), corner & (alpha < -SLIGHT * C)
            into = (beyond & (short < -SLIGHT)) | (~beyond & ~corner & (short > SLIGHT))
            if k > self.B.shape[1] and not into.any() and (up.any() or down.any()):
                # More rows meet at the corner than it takes: other duals may do, within their bounds.
                target = np.append(w - pull, -(y * C)[beyond].sum())
                shared = bounded_duals(np.vstack([own.T, np.ones(k)]) * y[rows], target, C[rows])
                if shared is not None:
                    alpha[rows] = shared
                    up, down = np.zeros_like(corner), np.zeros_like(corner)
            moved = np.flatnonzero(up | down | into)
            if not len(moved) or attempt == most - 1:
                break
            was = beyond[moved]
            corner = (corner & ~up & ~down) | into
            beyond = (beyond & ~into) | up
            change = (y * C)[moved] * (beyond[moved].astype(float) - was)
            pull = pull + (change @ self.G[moved]) @ self.B
        solution = self.certified(w, bias, f, np.clip(alpha, 0, C), width)
        return replace(solution, exact=not len(moved) and solution.gap <= 1e-7)

    @staticmethod
    def balanced(A: Array, right: Array) -> Array | None:
        """The solution of the corner's equations; equal rows share their dual."""
        k = len(A) - 1
        size = float(A.diagonal().max()) or 1.0
        A[:k, :k] /= size
        right[k] *= size
        held = A.copy()
        held[np.arange(k), np.arange(k)] += 1e-12
        factor, pivots, info = lapack.dgetrf(held)
        if info:
            return None
        found = np.zeros(k + 1)
        for _ in range(3):
            found = found + lapack.dgetrs(factor, pivots, right - A @ found)[0]
        found[:k] /= size
        return found if np.isfinite(found).all() else None

    def primal(self, w: Array, f: Array) -> float:
        """The objective."""
        return 0.5 * float(w @ w) + float(self.C @ np.maximum(1 - self.y * f, 0))

    def certified(self, w: Array, bias: float, f: Array, alpha: Array, width: float) -> HingeSolution:
        """With the duality gap, for which the heavier class's duals are scaled down: they sum to zero."""
        primal = self.primal(w, f)
        u = balanced(self.y * alpha)
        moments = self.moments(u)
        dual = float(self.y @ u) - 0.5 * float(moments @ moments)
        return HingeSolution(w, bias, f, alpha, primal, relative_gap(primal, dual), self.n_iter, width)


def bounded_duals(A: Array, target: Array, C: Array) -> Array | None:
    """Duals between 0 and C with ``A alpha = target``, if there are any."""
    found = lsq_linear(A, target, (0, C), method="bvls", tol=1e-14, max_iter=5 * len(C))
    size = float(np.abs(A).max() * C.max()) + float(np.abs(target).max())
    return found.x if float(np.abs(A @ found.x - target).max()) <= 1e-11 * size else None
