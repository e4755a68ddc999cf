"""Least-squares SVMs: the bordered system ``[K + D, 1; 1', 0] [a; b] = [y; 0]`` with ``D = diag(1 / C)``.

Solved directly where the matrix fits in memory, which also gives the leave-one-out residuals; otherwise by conjugate
gradients on ``sum(a) = 0``, preconditioned by a pivoted Cholesky factor of low rank. The residual r of the system is
the certificate: the duality gap is ``sum(C r**2) / 2``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
from ..certificate import Certificate, Certifier, cost_of_sum
from ..rounding import error_of_slacks
from .solve import DualProgress, DualSolution

PIVOTS_AT_ONCE = 64  # pivots added to the preconditioner in one step
COLUMNS_AT_ONCE = 256  # columns of an inverse computed in one step


@dataclass(frozen=True)
class LinearSystem:
    """The matrix ``K + diag(1 / C)`` over some segments of a kernel matrix."""

    kernel_matrix: _core.KernelMatrix
    segments: list[int]
    C: Array
    threads: int = 1

    @property
    def size(self) -> int:
        return len(self.C)

    @property
    def dot_product_degree(self) -> float:
        """Degree of the kernel in the dot product x.z; 0 if it has none."""
        return self.kernel_matrix.dot_product_degree

    def diagonal(self) -> Array:
        """The values k(x, x)."""
        return self.kernel_matrix.diagonal(self.segments)

    def matrix(self) -> Array:
        """All of K."""
        return self.kernel_matrix.rows(self.segments, np.arange(self.size))

    def product(self, a: Array, single: bool = False) -> Array:
        """``a @ K`` for several rows a."""
        return self.kernel_matrix.product(self.segments, np.ascontiguousarray(a), single)


def solve(
    system: LinearSystem,
    targets: Array,
    tol: float,
    max_iter: int,
    double_rows: bool,
    memory: int,
    progress: DualProgress | None,
) -> tuple[list[DualSolution], Array | None]:
    """Solve for each row of ``targets`` (+-1); also the leave-one-out residuals, if the matrix fits in memory."""
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

    The gap includes the rounding error of f, whose terms have independent errors.
    """
    solutions = []
    for y, a, values in zip(targets, duals, f, strict=True):
        objective = LeastSquaresDual(y, system.C)
        certify = Certifier(objective, system, tol)
        proof = certify.charged(objective.certify(a, values, certify.largest), a, values)
        converged = proof.gap <= tol
        solution = DualSolution(a, proof.bias, proof.primal, proof.gap, proof.violation, n_iter, converged, indefinite)
        if progress is not None:
            progress.end(solution)
        solutions.append(solution)
    return solutions


@dataclass(frozen=True)
class LeastSquaresDual:
    """Certificate of one least-squares problem, given the targets and costs of its rows."""

    y: Array
    C: Array

    def certify(self, duals: Array, f: Array, largest: float) -> Certificate:
        """Primal and dual values with the best bias, the weighted mean of the residuals; `charged` computes the gap."""
        bias = float(np.average(self.y - f, weights=self.C))
        slacks = self.y - f - bias
        primal = 0.5 * float(dot(duals, f)) + 0.5 * float(dot(self.C, slacks**2))
        dual = float(dot(self.y, duals)) - 0.5 * float(dot(duals, f)) - 0.5 * float(dot(duals, duals / self.C))
        violation = float(np.abs(slacks - duals / self.C).max())
        sum_cost = cost_of_sum(duals, largest, primal)
        return Certificate(bias, primal, dual, np.inf, sum_cost=sum_cost, violation=violation)

    def charged(self, certificate: Certificate, duals: Array, f: Array, error: Array) -> Certificate:
        """Errors of f cost their squares, and their products with the duals, taken as independent; computes the gap."""
        away = self.y - f - certificate.bias - duals / self.C
        error = error_of_slacks(error, f, certificate.bias)
        charge = 0.5 * float(dot(self.C, error**2)) + 2 * norm(duals * error)
        # Primal minus dual without cancellation.
        difference = 0.5 * float(dot(self.C, away**2)) + charge + certificate.sum_cost
        dual = certificate.dual
        gap, rounding = (difference / dual, charge / dual) if dual > 0 else (np.inf, 0.0)
        return replace(certificate, gap=gap, rounding=rounding)


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
    except NotPositiveDefinite:  # not positive semidefinite: solve for a stationary point
        solved, corners = _indefinite(_shifted(system), right, system.threads)
        indefinite = True
    solutions, ones = solved[:-1], solved[-1]
    duals = solutions - np.outer(solutions.sum(axis=1) / ones.sum(), ones)
    duals -= duals.mean(axis=1, keepdims=True)
    # The leave-one-out residual of a row: its dual over the diagonal entry of the inverse of the bordered matrix.
    corners = corners - ones**2 / ones.sum()
    residuals = np.divide(duals, corners, out=np.full(duals.shape, np.nan), where=corners > 0)
    return _solutions(system, targets, duals, system.product(duals), tol, 1, indefinite, progress), residuals


def _shifted(system: LinearSystem) -> Array:
    A = system.matrix()
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
    for first in range(0, len(A), COLUMNS_AT_ONCE):
        last = min(first + COLUMNS_AT_ONCE, len(A))
        unit = np.eye(len(A), last - first, -first)
        corners[first:last] = factors.solve(unit)[first:last].diagonal()
    return factors.solve(right).T, corners


# --- Iterative --------------------------------------------------------------------------------------------


class Preconditioner:
    """``(L L' + D)^-1`` on vectors of sum zero, L a Cholesky factor of K from some of its rows.

    Pivots are drawn with probabilities in proportion to the residual diagonal, a block at a time, until that is small
    compared with the ridge, or the memory is used up.
    """

    def __init__(self, system: LinearSystem, memory: int):
        n, self.C = system.size, system.C
        rank = int(min(n, max(PIVOTS_AT_ONCE, memory // (8 * n))))
        rng = np.random.default_rng(0)
        left = system.diagonal()
        scale = float(left.max())
        L = np.empty((rank, n))
        used = 0
        while used < rank and float(dot(self.C, left)) > 0.1 * n and np.count_nonzero(left > 1e-10 * scale) > 0:
            likely = np.where(left > 1e-10 * scale, left, 0.0)
            count = min(PIVOTS_AT_ONCE, rank - used, int(np.count_nonzero(likely)))
            pivots = np.sort(rng.choice(n, count, replace=False, p=likely / likely.sum()))
            rows = system.kernel_matrix.rows(system.segments, pivots) - dot(
                L[:used, pivots].T, L[:used], system.threads
            )
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
    """Conjugate gradients until the float64 gap is at most tol; restarted in float64 if float32 is not enough."""
    preconditioner = Preconditioner(system, memory * 3 // 4)  # the rest is for kernel rows in packed form
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
    """Improve duals and residuals in place until each gap, computed from the residuals, is at most ``tol``.

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
    """Relative duality gaps from the residuals of the system, centred by the best bias."""
    centred = residual - (dot(residual, system.C) / system.C.sum())[:, None]
    difference = 0.5 * dot(centred**2, system.C)
    dual = 0.5 * np.einsum("ij,ij->i", duals, targets + residual)
    return np.divide(difference, dual, where=dual > 0, out=np.full(len(dual), np.inf))
