"""Interior point method for kernel models with a 1-norm or max-norm penalty on the coefficients.

    min_{a,b}  1/2 a'R a + sum_i C_i (1 - y_i (f_i + b))_+ + C_alpha |a|_p,    p = 1 or infinity

Rounds of reweighting are too slow at p = 1 and do not converge at p = infinity. Over a factor ``k(X, Z) = G H'`` of
rank r, with ``z = H'a``, Newton's equations have r + 1 unknowns. Bounds on coefficients are ``tau - a >= 0`` and
``tau + a >= 0``, where tau has an entry for each of them (p = 1) or only one (p = infinity).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...linalg.arrays import Array
from ...linalg.matrix import dot, qr
from ..certificate import SMALLEST_NORMAL, balanced, relative_gap
from ..mehrotra import PrimalDualPoint, Towards, advanced, complementarity
from ..primal.equations import from_sums

# Iterations without progress.
MAX_IDLE_ITERATIONS = 6
# Largest tau to start with: rounding errors grow where the bounds on coefficients start too near or too far.
START_DISTANCES = (1e2, 1e5, 1.0, np.inf)


class NormBound(Protocol):
    """What differs between the 1-norm and the max-norm."""

    def size(self, m: int) -> int:
        """Number of entries of tau."""

    def total(self, values: Array) -> Array:
        """Sums of values over the coefficients that share a tau."""

    def norm(self, a: Array) -> float:
        """The norm."""

    def dual_norm(self, a: Array) -> float:
        """The norm dual to it."""

    def eliminated(self, plus: Array, minus: Array, extra: float) -> tuple[Array, Array, float]:
        """The matrix for a after eliminating tau, ``D^1/2 (I - v v') D^1/2``: D's diagonal, v, and 1 - v'v."""


@dataclass(frozen=True)
class OneNormBound:
    """p = 1."""

    def size(self, m: int) -> int:
        return m

    def total(self, values: Array) -> Array:
        return values

    def norm(self, a: Array) -> float:
        return float(np.abs(a).sum())

    def dual_norm(self, a: Array) -> float:
        return float(np.abs(a).max(initial=0.0))

    def eliminated(self, plus: Array, minus: Array, extra: float) -> tuple[Array, Array, float]:
        return extra + 4 * plus * (minus / (plus + minus)), np.zeros(len(plus)), 1.0


@dataclass(frozen=True)
class MaxNormBound:
    """p = infinity."""

    def size(self, m: int) -> int:
        return 1

    def total(self, values: Array) -> Array:
        return np.array([values.sum()])

    def norm(self, a: Array) -> float:
        return float(np.abs(a).max(initial=0.0))

    def dual_norm(self, a: Array) -> float:
        return float(np.abs(a).sum())

    def eliminated(self, plus: Array, minus: Array, extra: float) -> tuple[Array, Array, float]:
        both = plus + minus
        d, total = extra + both, both.sum()
        # 1 - v'v, computed without cancellation.
        left = float(((extra * both + 4 * plus * minus) / d).sum() / total)
        return d, (plus - minus) / np.sqrt(d * total), left


@dataclass
class PolyhedralIterate(PrimalDualPoint):
    """An iterate, or a step. ``s`` and ``xi`` are the slacks of the margins, ``alpha`` and ``room`` their multipliers;
    ``low`` and ``high`` are the multipliers of ``tau - a`` and ``tau + a``."""

    a: Array
    z: Array
    bias: float
    tau: Array
    s: Array
    xi: Array
    alpha: Array
    room: Array
    low: Array
    high: Array

    def pairs(self) -> tuple[tuple[Array, Array], ...]:
        below, above = self.tau - self.a, self.tau + self.a
        return (self.alpha, self.s), (self.room, self.xi), (self.low, below), (self.high, above)


@dataclass(frozen=True)
class PolyhedralSolution:
    """Coefficients, signed duals that sum to zero, relative duality gap over the factor, iterations.

    ``surely_zero`` is below 1 where both bounds on a coefficient are active, so it is zero: the smaller, the surer.
    """

    a: Array
    u: Array
    surely_zero: Array
    gap: float
    n_iter: int
    limited: bool  # did max_iter end it?


class PolyhedralProblem:
    """Rows ``f = G z + b`` with labels y and costs C; ``kernel_norm``: R is the kernel matrix, else the identity."""

    def __init__(self, G: Array, H: Array, y: Array, C: Array, C_alpha: float, bound: NormBound, kernel_norm: bool):
        # In units in which k(z, z) is about 1.
        self.size = float(np.einsum("ij,ij->", H, H)) / len(H)
        self.G, self.H = G / np.sqrt(self.size), H / np.sqrt(self.size)
        cost = 1.0 if kernel_norm else self.size
        self.y, self.C, self.C_alpha, self.bound = y, C * (self.size * cost), C_alpha * cost, bound
        self.kernel_norm = float(kernel_norm)
        self.scale = self.size * cost

    def over(self, some: Array) -> PolyhedralProblem:
        """The problem over some of the vectors, in the same units."""
        part = copy(self)
        part.H = self.H[some]
        return part

    def solve(self, tol: float = 1e-10, max_iter: int = 100, enough: float = 1e-8) -> PolyhedralSolution:
        """Solve to a relative gap of ``tol`` or as rounding allows; other starts if it is above ``enough``."""
        tried: list[tuple[tuple[float, float], PolyhedralIterate, int]] = []
        for farthest in START_DISTANCES:
            tried.append(self.descend(self.start(farthest), tol, max_iter))
            if tried[-1][0][0] <= enough:
                break
        (gap, _), best, _ = min(tried, key=lambda t: t[0])
        n_iter = sum(t[2] for t in tried)
        # A coefficient at zero has both bounds active, any other only one of them.
        size = float(np.einsum("ij,ij->i", self.H, self.H).max())
        sure = (
            np.abs(best.a) * size * self.C_alpha / np.maximum(1e-4 * np.minimum(best.low, best.high), SMALLEST_NORMAL)
        )
        u = balanced(self.y * np.clip(best.alpha, 0, self.C)) / self.scale
        limited = gap > enough and tried[-1][2] == max_iter
        return PolyhedralSolution(best.a / self.size, u, sure, gap, n_iter, limited)

    def descend(
        self, iterate: PolyhedralIterate, tol: float, max_iter: int
    ) -> tuple[tuple[float, float], PolyhedralIterate, int]:
        """Iterate from one start; returns the least gap (and objective), its iterate and the number of iterations."""
        best, least_gap, best_mu = iterate, (np.inf, np.inf), 0.0
        least, moved_at = np.inf, 0
        for iteration in range(max_iter):
            gap, mu = self.gap(iterate), complementarity(iterate)
            if gap < least_gap:
                # Points with an infinite gap count for the result, not as progress.
                best_mu, moved_at = (mu, iteration) if gap[0] < np.inf else (best_mu, moved_at)
                best, least_gap = iterate, gap
            if mu < 0.9 * least:
                least, moved_at = mu, iteration
            # Solved, or rounding errors are all that changes.
            if gap[0] <= tol or iteration > moved_at + MAX_IDLE_ITERATIONS or mu < 1e-4 * best_mu:
                break
            with np.errstate(all="ignore"):
                towards = self.equations(iterate)
                after = None if towards is None else advanced(iterate, towards)
            if after is None:
                break
            iterate = after
            # Rounding errors of z would add up over the steps.
            iterate.z = dot(iterate.a, self.H)
        return least_gap, best, iteration + (iteration == max_iter - 1)

    def start(self, farthest: float) -> PolyhedralIterate:
        """The first iterate: zero coefficients and equal products, as costs may differ by many orders of magnitude."""
        m, r = self.H.shape
        share = 0.5 * self.C_alpha * self.bound.size(m) / m
        half = 0.5 * self.C
        mu = float(half.mean())
        slack = mu / half
        far = min(mu / share, farthest)
        tau = np.full(self.bound.size(m), far)
        shares = np.full(m, mu / far)
        return PolyhedralIterate(
            np.zeros(m), np.zeros(r), 0.0, tau, slack, slack.copy(), half, half.copy(), shares, shares.copy()
        )

    def gap(self, iterate: PolyhedralIterate) -> tuple[float, float]:
        """The relative gap between the objective and the dual value at nearby feasible duals, and the objective."""
        y, kernel_norm = self.y, self.kernel_norm
        f = dot(self.G, iterate.z) + iterate.bias
        quadratic = dot(iterate.z, iterate.z) if kernel_norm else dot(iterate.a, iterate.a)
        primal = 0.5 * float(quadratic) + float(dot(self.C, np.maximum(1 - y * f, 0)))
        primal += self.C_alpha * self.bound.norm(iterate.a)
        u = balanced(y * iterate.alpha)
        pull = dot(u, self.G)
        # The part of the gradient that the norm penalty balances, scaled into the dual norm ball.
        rest = pull - iterate.z if kernel_norm else dot(self.H, pull) - iterate.a
        weight = self.bound.dual_norm(dot(self.H, rest) if kernel_norm else rest)
        rest = rest * (self.C_alpha / weight) if weight > self.C_alpha else rest
        left = (pull if kernel_norm else dot(self.H, pull)) - rest
        return relative_gap(primal, float(dot(y, u)) - 0.5 * float(dot(left, left))), primal

    def equations(self, iterate: PolyhedralIterate) -> Towards | None:
        """A solver of Newton's equations; None if rounding has made them useless."""
        y, G, H, norm = self.y, self.G, self.H, self.kernel_norm
        m = len(iterate.a)
        below, above = iterate.tau - iterate.a, iterate.tau + iterate.a
        plus, minus = iterate.low / below, iterate.high / above
        both = plus + minus
        d, v, left = self.bound.eliminated(plus, minus, 1 - norm)
        gamma = (1 / np.sqrt(left) - 1) / max(float(dot(v, v)), SMALLEST_NORMAL)

        def root(x: Array) -> Array:
            """The inverse root of the matrix left for a, times a vector or columns."""
            x = (x.T / np.sqrt(d)).T
            return x + gamma * np.multiply.outer(v, dot(v, x))

        def root_back(x: Array) -> Array:
            """The transpose of `root`."""
            return (x + gamma * v * float(dot(v, x))) / np.sqrt(d)

        # With z = R'x, the system in (x, b) is positive definite however small D gets.
        Q, R = qr(root(H))
        h = 1 / (iterate.xi / iterate.room + iterate.s / iterate.alpha)
        P = dot(G, R.T)
        r = len(R)
        scaled = P * np.sqrt(h)[:, None]
        A = np.empty((r + 1, r + 1))
        A[:r, :r] = dot(scaled.T, scaled) + norm * dot(R, R.T)
        A[r, :r] = A[:r, r] = dot(h, P)
        A[r, r] = h.sum()
        A[np.arange(r), np.arange(r)] += 1
        solve = from_sums(A, 0.0, lifts=(0.0, 1e-15, 1e-14, 1e-12, 1e-10))
        if solve is None:
            return None
        f = dot(G, iterate.z) + iterate.bias
        margin = 1 - y * f - iterate.xi + iterate.s
        stationary = -(
            (1 - norm) * iterate.a + dot(H, norm * iterate.z - dot(y * iterate.alpha, G)) + iterate.low - iterate.high
        )
        shares = self.C_alpha - self.bound.total(iterate.low + iterate.high)

        def towards(targets: Sequence[Array | float], rounds: int) -> PolyhedralIterate:
            cs, cx, cl, ch = (target - x * z for target, (x, z) in zip(targets, iterate.pairs(), strict=True))
            goal = margin - cx / iterate.room + cs / iterate.alpha
            near, far = cl / below, ch / above
            bent = (plus - minus) * ((self.bound.total(near + far) - shares) / self.bound.total(both))
            right = stationary - (near - far) + bent
            balance = float(dot(y, iterate.alpha))
            da, dz, db = np.zeros(m), np.zeros(H.shape[1]), 0.0
            for _ in range(rounds):
                pushed = h * (y * goal - dot(G, dz) - db)
                rest = root(right - d * da + v * np.sqrt(d) * float(dot(v, np.sqrt(d) * da)) - norm * dot(H, dz))
                inside = dot(rest, Q)
                solved = solve(np.append(inside + dot(pushed, P), balance + pushed.sum()))
                da = da + root_back(rest - dot(Q, inside) + dot(Q, solved[:-1]))
                # Not H'da: da may have huge components that cancel in z.
                dz, db = dz + dot(solved[:-1], R), db + float(solved[-1])
            dalpha = h * (goal - y * (dot(G, dz) + db))
            dtau = (self.bound.total(near + far + (plus - minus) * da) - shares) / self.bound.total(both)
            dlow, dhigh = near - plus * (dtau - da), far - minus * (dtau + da)
            ds, dxi = (cs - iterate.s * dalpha) / iterate.alpha, (cx + iterate.xi * dalpha) / iterate.room
            return PolyhedralIterate(da, dz, db, dtau, ds, dxi, dalpha, -dalpha, dlow, dhigh)

        return towards
