"""Warm-started solver of the hinge in m dimensions, for a sequence of similar problems.

    min_{w,b}  1/2 |w|^2 + sum_i C_i (1 - y_i (p_i.w + b))_+

Given the rows at the corner of the hinge, a small linear system has the exact solution; the first guess is the corner
rows of the last problem. If it fails, Newton's method (`newton`) solves for rounded corners of shrinking width, which
give better guesses. The interior point method of `interior` is faster from a cold start, this solver from a good one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import lsq_linear

from ...linalg.arrays import Array
from ...linalg.matrix import LUFactors, dot
from ...problem.formulation import INEQUALITY
from ...problem.losses import HuberHinge
from ...problem.slacks import OneNorm
from ...rows.labels import RowLabels
from ...rows.memory import DenseFeatures
from ..certificate import balanced, relative_gap
from .newton import newton

FIRST_CORNER_WIDTH = 0.5
LAST_CORNER_WIDTH = 1e-7
SMALLEST_START_WIDTH = 2e-3  # the first corner is up to 5 times wider than the last one, but not above this
MAX_DEPENDENT_ROWS = 200  # rows at the corner beyond the largest number of independent rows
OPTIMALITY_TOL = 1e-10  # relative, of the optimality conditions


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
    exact: bool = False  # the optimality conditions hold up to rounding


class HingeProblem:
    """One problem over the rows of ``P = G B`` with labels y (+-1) and costs C.

    B changes from problem to problem, G does not: their product is formed only where the first guess fails.
    """

    def __init__(self, G: Array, B: Array, y: Array, C: Array):
        self.G, self.B, self.y, self.C = G, B, y, C
        self.n_iter = 0

    def times(self, w: Array) -> Array:
        """``P w``."""
        return dot(self.G, dot(self.B, w))

    def moments(self, u: Array) -> Array:
        """``P'u``."""
        return dot(dot(u, self.G), self.B)

    def solve(
        self, tol: float, start: tuple[Array, float] | None = None, last: HingeSolution | None = None
    ) -> HingeSolution:
        """Solve to a relative gap of ``tol`` and an objective no worse than at ``start``, if rounding allows it.

        ``last`` is the solution of a similar problem: its rows at the corner are the first guess.
        """
        w, bias = (np.zeros(self.B.shape[1]), 0.0) if start is None else start
        f = self.times(w) + bias
        begun = w, bias, f, self.primal(w, f)
        goal = np.inf if start is None else begun[-1] * (1 + 1e-12)
        width = FIRST_CORNER_WIDTH
        best: HingeSolution | None = None
        if last is not None:
            width = max(last.width, min(5 * last.width, SMALLEST_START_WIDTH))
            best = self.named(last.alpha, width)
            if best is not None and self.good(best, tol, goal):
                return best
        while True:
            w, bias, f, alpha = self.rounded(w, bias, width)
            for candidate in (self.certified(w, bias, f, alpha, width), self.named(alpha, width)):
                if candidate is not None and (best is None or candidate.gap < best.gap):
                    best = candidate
                if best is not None and self.good(best, tol, goal):
                    return best
            if best is not None and width <= LAST_CORNER_WIDTH:
                if best.objective > goal:
                    w, bias, f, value = begun
                    return replace(best, w=w, bias=bias, f=f, objective=value)
                return best
            width = max(0.2 * width, LAST_CORNER_WIDTH)

    def good(self, candidate: HingeSolution, tol: float, goal: float) -> bool:
        """Are gap and objective good enough, or is the candidate exact?"""
        return candidate.exact or (candidate.gap <= tol and candidate.objective <= goal)

    def rounded(self, w: Array, bias: float, width: float, most: int = 30) -> tuple[Array, float, Array, Array]:
        """Solve for a rounded corner of this width: weights, bias, decision values and duals."""
        state = newton(self.rows, HuberHinge(width), np.append(w, bias)[None], 1e-12, most)
        self.n_iter += int(state.n_iter[0])
        w, bias = state.V[0, :-1], float(state.V[0, -1])
        f = self.times(w) + bias
        return w, bias, f, self.C * np.clip((1 - self.y * f) / width, 0, 1)

    @cached_property
    def rows(self) -> DenseFeatures:
        """The features ``G B``, formed once for many Newton steps."""
        return DenseFeatures(np.ascontiguousarray(dot(self.G, self.B)), RowLabels(self.y[:, None], self.C[:, None]))

    def named(self, alpha: Array, width: float, most: int = 8) -> HingeSolution | None:
        """The exact solution, if a few corrections of the corner rows of ``alpha`` suffice; None if too many."""
        y, C = self.y, self.C
        corner, beyond = (alpha > 0) & (alpha < C), alpha >= C
        pull = self.moments(np.where(beyond, y * C, 0.0))  # of the rows beyond the corner
        for attempt in range(most):
            rows = np.flatnonzero(corner)
            k = len(rows)
            if k > self.B.shape[1] + 1 + (width < 1e-3) * MAX_DEPENDENT_ROWS:
                return None
            own = dot(self.G[rows], self.B)
            A = np.ones((k + 1, k + 1))
            A[:k, :k] = dot(own, own.T)
            A[k, k] = 0
            solved = self.balanced(A, np.append(y[rows] - dot(own, pull), -(y * C)[beyond].sum()))
            if solved is None:
                return None
            u = solved[:k]
            w = pull + dot(u, own)
            f = self.times(w)
            bias = float(solved[k]) if k else OneNorm().bias(y - f, y, C, INEQUALITY)
            f += bias
            alpha = np.where(beyond, C, 0.0)
            alpha[rows] = y[rows] * u
            self.n_iter += 1
            short = 1 - y * f
            up, down = corner & (alpha > C * (1 + OPTIMALITY_TOL)), corner & (alpha < -OPTIMALITY_TOL * C)
            into = (beyond & (short < -OPTIMALITY_TOL)) | (~beyond & ~corner & (short > OPTIMALITY_TOL))
            if k > self.B.shape[1] and not into.any() and (up.any() or down.any()):
                # More rows than needed are at the corner: duals are not unique, and others may be within bounds.
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
            pull = pull + dot(dot(change, self.G[moved]), self.B)
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
        factors = LUFactors(held)
        if not factors.regular:
            return None
        solved = np.zeros(k + 1)
        for _ in range(3):
            solved = solved + factors.solve(right - dot(A, solved))
        solved[:k] /= size
        return solved if np.isfinite(solved).all() else None

    def primal(self, w: Array, f: Array) -> float:
        """The primal objective."""
        return 0.5 * float(dot(w, w)) + float(dot(self.C, np.maximum(1 - self.y * f, 0)))

    def certified(self, w: Array, bias: float, f: Array, alpha: Array, width: float) -> HingeSolution:
        """The solution with its duality gap; for the dual value, duals are scaled to sum to zero."""
        primal = self.primal(w, f)
        u = balanced(self.y * alpha)
        moments = self.moments(u)
        dual = float(dot(self.y, u)) - 0.5 * float(dot(moments, moments))
        return HingeSolution(w, bias, f, alpha, primal, relative_gap(primal, dual), self.n_iter, width)


def bounded_duals(A: Array, target: Array, C: Array) -> Array | None:
    """Duals between 0 and C with ``A alpha = target``, if there are any."""
    solved = lsq_linear(A, target, (0, C), method="bvls", tol=1e-14, max_iter=5 * len(C))
    size = float(np.abs(A).max() * C.max()) + float(np.abs(target).max())
    return solved.x if float(np.abs(dot(A, solved.x) - target).max()) <= 1e-11 * size else None
