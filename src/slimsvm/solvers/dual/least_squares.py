"""The least-squares machine: the bordered system ``[K + D, 1; 1', 0] [a; b] = [y; 0]`` with ``D = diag(1 / C)``.

Solved directly where the matrix fits in memory, which also gives the leave-one-out residuals; otherwise by conjugate
gradients on ``sum(a) = 0``, preconditioned by a pivoted Cholesky factor of low rank. The residual r of the system is
the certificate: the duality gap is ``sum(C r**2) / 2``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, sqrt
from typing import NamedTuple

import numpy as np

from ... import _core
from ...linalg.arrays import Array
from ...linalg.matrix import (
    LUFactors,
    NotPositiveDefinite,
    cho_solve,
    cholesky,
    dot,
    inverse_lower,
    jittered_cholesky,
    norm,
    solve_lower,
)
from .rounding import ROUNDOFF, accurate_product, error_of_product
from .solve import FEW, DualProgress, DualSolution

BLOCK = 64  # pivots taken at once
WIDE = 256  # columns of an inverse looked at together


@dataclass(frozen=True)
class LinearSystem:
    """The matrix ``K + diag(1 / C)`` over the machine's segments in ``view``."""

    machine: _core.KernelMatrix
    view: list[int]
    C: Array
    threads: int = 1

    @property
    def size(self) -> int:
        return len(self.C)

    def product(self, a: Array, single: bool = False) -> Array:
        """``a @ K`` for several rows a."""
        return self.machine.product(self.view, np.ascontiguousarray(a), single)


def solve(
    system: LinearSystem,
    targets: Array,
    tol: float,
    max_iter: int,
    double_rows: bool,
    memory: int,
    progress: DualProgress | None,
) -> tuple[list[DualSolution], Array | None]:
    """Solutions for the rows of ``targets`` (+-1), and the leave-one-out residuals where they are to be had."""
    if 8 * system.size**2 <= memory:
        return _direct(system, targets, tol, progress)
    return _iterate(system, targets, tol, max_iter, double_rows, memory, progress), None


def _solutions(
    system: LinearSystem,
    targets: Array,
    duals: Array,
    f: Array,
    tol: float,
    n_iter: int,
    indefinite: bool,
    progress: DualProgress | None,
) -> list[DualSolution]:
    """Certified solutions for given duals; the best bias is the weighted mean of the residuals y - f.

    Digits of f that rounding has taken count in the gap: errors of its terms add up like chance.
    """
    found = []
    sizes = np.sqrt(np.maximum(system.machine.diagonal(system.view), 0.0))
    degree = system.machine.dot_product_degree
    for y, a, values in zip(targets, duals, f, strict=True):
        proof = _certified(system, y, a, values, error_of_product(sizes, a, degree), float(sizes.max()))
        if proof.rounding > 0.01 * tol and system.size <= FEW:
            K = system.machine.rows(system.view, np.arange(system.size))
            proof = _certified(system, y, a, *accurate_product(K, sizes, a, degree), float(sizes.max()))
        bias, primal, gap, violation, _ = proof
        solution = DualSolution(a, bias, primal, gap, violation, n_iter, gap <= tol, indefinite)
        if progress is not None:
            progress.end(solution)
        found.append(solution)
    return found


class _Certified(NamedTuple):
    """The best bias for given duals, and how far they are from the optimum."""

    bias: float
    primal: float
    gap: float
    violation: float  # of the optimality conditions
    rounding: float  # its part of the gap


def _certified(system: LinearSystem, y: Array, a: Array, f: Array, error: Array, largest: float) -> _Certified:
    """For ``f = K a``, known to ``error``; ``largest`` is the root of the largest k(x, x)."""
    bias = float(np.average(y - f, weights=system.C))
    slacks = y - f - bias
    primal = 0.5 * float(dot(a, f)) + 0.5 * float(dot(system.C, slacks**2))
    dual = float(dot(y, a)) - 0.5 * float(dot(a, f)) - 0.5 * float(dot(a, a / system.C))
    away = slacks - a / system.C
    error = error + ROUNDOFF * (1 + np.abs(f) + abs(bias))
    rounding = 0.5 * float(dot(system.C, error**2)) + 2 * norm(a * error)
    # Primal minus dual without cancellation, and what is left of the sum of the duals times a bound of the bias.
    apart = 0.5 * float(dot(system.C, away**2)) + rounding
    apart += abs(fsum(a.tolist())) * (1 + largest * sqrt(2 * max(primal, 0.0)))
    gap, share = (apart / dual, rounding / dual) if dual > 0 else (np.inf, 0.0)
    return _Certified(bias, primal, gap, float(np.abs(away).max()), share)


# --- Direct -----------------------------------------------------------------------------------------------


def _direct(
    system: LinearSystem, targets: Array, tol: float, progress: DualProgress | None
) -> tuple[list[DualSolution], Array]:
    right = np.vstack([targets, np.ones(system.size)]).T
    try:
        factor = cholesky(_shifted(system), system.threads, overwrite=True)
        solved = cho_solve(factor, right, system.threads).T
        # The diagonal of (L L')^-1: squares of L^-1 summed by column.
        inverse = inverse_lower(factor, system.threads, overwrite=True)
        corners = np.einsum("ij,ij->j", inverse, inverse)
        indefinite = False
    except NotPositiveDefinite:  # not a kernel: a stationary point
        solved, corners = _indefinite(_shifted(system), right, system.threads)
        indefinite = True
    solutions, ones = solved[:-1], solved[-1]
    duals = solutions - np.outer(solutions.sum(axis=1) / ones.sum(), ones)
    duals -= duals.mean(axis=1, keepdims=True)
    # A row left out: its dual over the corner of the inverse of the bordered matrix.
    corners = corners - ones**2 / ones.sum()
    residuals = np.divide(duals, corners, out=np.full(duals.shape, np.nan), where=corners > 0)
    return _solutions(system, targets, duals, system.product(duals), tol, 1, indefinite, progress), residuals


def _shifted(system: LinearSystem) -> Array:
    A = system.machine.rows(system.view, np.arange(system.size))
    A.flat[:: system.size + 1] += 1 / system.C
    return A


def _indefinite(A: Array, right: Array, threads: int) -> tuple[Array, Array]:
    """Solutions of ``A x = right`` for each column, as rows, and the diagonal of the inverse."""
    scale = float(np.abs(A).max())
    factors = LUFactors(A, threads, overwrite=True)
    pivots = factors.factor.diagonal()
    least = np.finfo(float).eps * scale or 1.0
    np.fill_diagonal(factors.factor, np.where(np.abs(pivots) < least, np.copysign(least, pivots), pivots))  # singular
    corners = np.empty(len(A))
    for first in range(0, len(A), WIDE):
        last = min(first + WIDE, len(A))
        unit = np.eye(len(A), last - first, -first)
        corners[first:last] = factors.solve(unit)[first:last].diagonal()
    return factors.solve(right).T, corners


# --- Iterative --------------------------------------------------------------------------------------------


class Preconditioner:
    """``(L L' + D)^-1`` on vectors of sum zero, L a Cholesky factor of K from some of its rows.

    Pivots are drawn in proportion to what is left of the diagonal, a block at a time, until that is small
    beside the ridge, or the memory is used up.
    """

    def __init__(self, system: LinearSystem, memory: int):
        n, self.C = system.size, system.C
        rank = int(min(n, max(BLOCK, memory // (8 * n))))
        rng = np.random.default_rng(0)
        left = system.machine.diagonal(system.view)
        scale = float(left.max())
        L = np.empty((rank, n))
        used = 0
        while used < rank and float(dot(self.C, left)) > 0.1 * n and np.count_nonzero(left > 1e-10 * scale) > 0:
            likely = np.where(left > 1e-10 * scale, left, 0.0)
            count = min(BLOCK, rank - used, int(np.count_nonzero(likely)))
            pivots = np.sort(rng.choice(n, count, replace=False, p=likely / likely.sum()))
            rows = system.machine.rows(system.view, pivots) - dot(L[:used, pivots].T, L[:used], system.threads)
            corner = rows[:, pivots]
            corner.flat[:: count + 1] += 1e-9 * scale  # equal rows
            try:
                factor = cholesky(corner)
            except NotPositiveDefinite:
                break
            L[used : used + count] = solve_lower(factor, rows, threads=system.threads)
            left = np.maximum(left - np.einsum("ij,ij->j", L[used : used + count], L[used : used + count]), 0.0)
            used += count
        self.L = L[:used]
        inner = np.eye(used)
        for first in range(0, n, 1024):  # without a second copy of L
            part = self.L[:, first : first + 1024]
            inner += dot(part * self.C[first : first + 1024], part.T, system.threads)
        self.factor, self.threads = jittered_cholesky(inner, system.threads), system.threads
        ones = self._inverse(np.ones((1, n)))[0]
        if not ones.sum() > 0:  # numerically singular: precondition by the diagonal only
            self.L, self.factor, ones = self.L[:0], np.empty((0, 0)), self.C
        self.ones = ones / ones.sum()

    def _inverse(self, r: Array) -> Array:
        scaled = r * self.C
        inner = cho_solve(self.factor, dot(self.L, scaled.T, self.threads), self.threads)
        return scaled - dot(inner.T, self.L, self.threads) * self.C

    def __call__(self, r: Array) -> Array:
        z = self._inverse(r)
        return z - np.outer(z.sum(axis=1), self.ones)


def _iterate(
    system: LinearSystem,
    targets: Array,
    tol: float,
    max_iter: int,
    double_rows: bool,
    memory: int,
    progress: DualProgress | None,
) -> list[DualSolution]:
    """Conjugate gradients until the gap in float64 is met; restarted from there where float32 was not enough."""
    preconditioner = Preconditioner(system, memory * 3 // 4)  # the rest is for packed rows
    duals, residual = np.zeros_like(targets), targets.copy()
    done, worst, single = 0, np.inf, not double_rows
    while True:
        most = max_iter - done if max_iter >= 0 else 10 * system.size
        steps, indefinite = _conjugate_gradients(
            system, preconditioner, targets, duals, residual, 0.5 * tol, most, single, progress
        )
        done += steps
        duals -= duals.mean(axis=1, keepdims=True)
        f = system.product(duals)
        residual = targets - f - duals / system.C
        solutions = _solutions(system, targets, duals, f, tol, max(1, done), indefinite and not single, None)
        before, worst = worst, max(s.gap for s in solutions)
        gained = worst < 0.25 * before
        if worst <= tol or 0 <= max_iter <= done or not (gained or single):
            break
        single = single and gained and not indefinite
    if progress is not None:
        for solution in solutions:
            progress.end(solution)
    return solutions


def _conjugate_gradients(
    system: LinearSystem,
    preconditioner: Preconditioner,
    targets: Array,
    duals: Array,
    residual: Array,
    tol: float,
    most: int,
    single: bool,
    progress: DualProgress | None,
) -> tuple[int, bool]:
    """Improve duals and residuals in place until the gap, as the residual tells it, is met for each target.

    Returns the number of iterations, and whether a direction of negative curvature was met.
    """
    z = preconditioner(residual)
    direction, slope = z.copy(), np.einsum("ij,ij->i", residual, z)
    for step in range(most):
        gaps = _gaps(system, targets, duals, residual)
        active = np.flatnonzero(~(gaps <= tol))
        if progress is not None:
            worst = int(np.argmax(gaps))
            progress(step, 0.5 * float(dot(duals[worst], targets[worst] + residual[worst])), gaps[worst], system.size)
        if not len(active):
            return step, False
        p = direction[active]
        image = system.product(p, single) + p / system.C
        curvature = np.einsum("ij,ij->i", p, image)
        if not (curvature > 0).all():
            return step, True
        length = (slope[active] / curvature)[:, None]
        if not (np.isfinite(length).all() and np.isfinite(image).all()):  # overflow: stop
            return step, False
        duals[active] += length * p
        residual[active] -= length * image
        z = preconditioner(residual[active])
        now = np.einsum("ij,ij->i", residual[active], z)
        direction[active] = z + (now / slope[active])[:, None] * p
        slope[active] = now
    return most, False


def _gaps(system: LinearSystem, targets: Array, duals: Array, residual: Array) -> Array:
    """Relative duality gaps from the residuals of the system, up to its constant."""
    centred = residual - (dot(residual, system.C) / system.C.sum())[:, None]
    difference = 0.5 * dot(centred**2, system.C)
    dual = 0.5 * np.einsum("ij,ij->i", duals, targets + residual)
    return np.divide(difference, dual, where=dual > 0, out=np.full(len(dual), np.inf))
