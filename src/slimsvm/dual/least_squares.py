"""The least-squares machine: the bordered system ``[K + D, 1; 1', 0] [a; b] = [y; 0]`` with ``D = diag(1 / C)``.

Solved directly where the matrix fits in memory, which also gives the leave-one-out residuals; otherwise by conjugate
gradients on ``sum(a) = 0``, preconditioned by a pivoted Cholesky factor of low rank. The residual r of the system is
the certificate: the duality gap is ``sum(C r**2) / 2``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, sqrt

import numpy as np
import scipy.linalg as la

from .. import _core
from ..formulation import Array
from .solve import ROUNDOFF, DualSolution, Progress

BLOCK = 64  # pivots taken at once
WHOLE = 2048  # rows up to which LAPACK is done in a moment
NARROW, WIDE = 128, 640  # rows or columns taken at once beyond that; the second a multiple of the first


@dataclass(frozen=True)
class System:
    """The matrix ``K + diag(1 / C)`` over the machine's segments in ``view``."""

    machine: _core.Machine
    view: list[int]
    C: Array

    @property
    def size(self) -> int:
        return len(self.C)

    def product(self, a: Array, single: bool = False) -> Array:
        """``a @ K`` for several rows a."""
        return self.machine.product(self.view, np.ascontiguousarray(a), single)


def solve(
    system: System,
    targets: Array,
    tol: float,
    max_iter: int,
    double_rows: bool,
    memory: int,
    progress: Progress | None,
) -> tuple[list[DualSolution], Array | None]:
    """Solutions for the rows of ``targets`` (+-1), and the leave-one-out residuals where they are to be had."""
    if 8 * system.size**2 <= memory:
        return _direct(system, targets, tol, progress)
    return _iterate(system, targets, tol, max_iter, double_rows, memory, progress), None


def _solutions(
    system: System,
    targets: Array,
    duals: Array,
    f: Array,
    tol: float,
    n_iter: int,
    indefinite: bool,
    progress: Progress | None,
) -> list[DualSolution]:
    """Certified solutions for given duals; the best bias is the weighted mean of the residuals y - f.

    Digits of f that rounding has taken count in the gap: errors of its terms add up like chance.
    """
    found = []
    sizes = np.sqrt(np.maximum(system.machine.diagonal(system.view), 0.0))
    for y, a, values in zip(targets, duals, f, strict=True):
        bias = float(np.average(y - values, weights=system.C))
        errors = y - values - bias
        primal = 0.5 * float(a @ values) + 0.5 * float(system.C @ errors**2)
        dual = float(y @ a) - 0.5 * float(a @ values) - 0.5 * float(a @ (a / system.C))
        away = errors - a / system.C
        doubt = ROUNDOFF * (sizes * float(np.linalg.norm(sizes * a)) + 1 + np.abs(values) + abs(bias))
        # Primal minus dual without cancellation, and what is left of the sum of the duals times a bound of the bias.
        apart = 0.5 * float(system.C @ (away**2 + doubt**2)) + 2 * float(np.linalg.norm(a * doubt))
        apart += abs(fsum(a.tolist())) * (1 + float(sizes.max()) * sqrt(2 * max(primal, 0.0)))
        gap = apart / dual if dual > 0 else np.inf
        solution = DualSolution(a, bias, primal, gap, float(np.abs(away).max()), n_iter, gap <= tol, indefinite)
        if progress is not None:
            progress.end(solution)
        found.append(solution)
    return found


# --- Direct -----------------------------------------------------------------------------------------------


def _direct(system: System, targets: Array, tol: float, progress: Progress | None) -> tuple[list[DualSolution], Array]:
    right = np.vstack([targets, np.ones(system.size)]).T
    try:
        factor = _factor(_shifted(system))
        solved = la.cho_solve((factor.T, False), right, check_finite=False).T  # by columns, as LAPACK wants it
        corners = _inverse_corners(factor)
        indefinite = False
    except la.LinAlgError:  # not a kernel: a stationary point
        solved, corners = _indefinite(_shifted(system), right)
        indefinite = True
    solutions, ones = solved[:-1], solved[-1]
    duals = solutions - np.outer(solutions.sum(axis=1) / ones.sum(), ones)
    duals -= duals.mean(axis=1, keepdims=True)
    # A row left out: its dual over the corner of the inverse of the bordered matrix.
    corners = corners - ones**2 / ones.sum()
    residuals = np.divide(duals, corners, out=np.full(duals.shape, np.nan), where=corners > 0)
    return _solutions(system, targets, duals, system.product(duals), tol, 1, indefinite, progress), residuals


def _shifted(system: System) -> Array:
    A = system.machine.rows(system.view, np.arange(system.size))
    A.flat[:: system.size + 1] += 1 / system.C
    return A


# LAPACK hears no Ctrl-C: a large matrix is worked on in panels, by many calls of which none takes long.


def _panels(first: int, last: int, width: int) -> list[slice]:
    return [slice(i, min(i + width, last)) for i in range(first, last, width)]


def _factor(A: Array) -> Array:
    """The lower Cholesky factor of a symmetric A, in its place; what is above its diagonal has no meaning."""
    n = len(A)
    if n <= WHOLE:
        return la.cholesky(A.T, lower=False, overwrite_a=True, check_finite=False).T
    for now in _panels(0, n, WIDE):
        for rows in _panels(now.start, n, WIDE):
            A[rows, now] -= A[rows, : now.start] @ A[now, : now.start].T
        A[now, now] = la.cholesky(A[now, now], lower=True, check_finite=False)
        for rows in _panels(now.stop, n, WIDE):
            A[rows, now] = la.solve_triangular(A[now, now], A[rows, now].T, lower=True, check_finite=False).T
    return A


def _inverse_corners(factor: Array) -> Array:
    """The diagonal of ``(L L')^-1``: squares of ``L^-1`` summed by column, some columns at a time."""
    n = len(factor)
    if n <= WHOLE:
        inverse, _ = la.lapack.dtrtri(factor.T, lower=0)
        return np.einsum("ij,ij->i", inverse, inverse)
    small = {p.start: _triangular_inverse(factor[p, p]) for p in _panels(0, n, NARROW)}
    corners = np.empty(n)
    for now in _panels(0, n, WIDE):
        columns = np.zeros((n - now.start, now.stop - now.start))
        columns[: now.stop - now.start] = _triangular_inverse(factor[now, now])
        for rows in _panels(now.stop, n, NARROW):
            top, end = rows.start - now.start, rows.stop - now.start
            columns[top:end] = -small[rows.start] @ (factor[rows, now.start : rows.start] @ columns[:top])
        corners[now] = np.einsum("ij,ij->j", columns, columns)
    return corners


def _triangular_inverse(L: Array) -> Array:
    return np.tril(la.lapack.dtrtri(L, lower=1)[0])


def _indefinite(A: Array, right: Array) -> tuple[Array, Array]:
    """Solutions of ``A x = right`` for each column, as rows, and the diagonal of the inverse."""
    scale = float(np.abs(A).max())
    factor, swaps = _eliminate(A)
    pivots = factor.diagonal()
    least = np.finfo(float).eps * scale or 1.0
    np.fill_diagonal(factor, np.where(np.abs(pivots) < least, np.copysign(least, pivots), pivots))  # singular
    factor = np.asfortranarray(factor)
    solved = la.lu_solve((factor, swaps), right, check_finite=False).T
    corners = np.empty(len(A))
    for first in range(0, len(A), BLOCK):
        last = min(first + BLOCK, len(A))
        unit = np.eye(len(A), last - first, -first)
        corners[first:last] = la.lu_solve((factor, swaps), unit, check_finite=False)[first:last].diagonal()
    return solved, corners


def _eliminate(A: Array) -> tuple[Array, Array]:
    """Gaussian elimination with row exchanges, in the place of A, and the exchanges, as LAPACK gives them."""
    n = len(A)
    swaps = np.empty(n, dtype=np.int32)
    for now in _panels(0, n, WIDE):
        lower, exchanges, _ = la.lapack.dgetrf(A[now.start :, now])
        swaps[now] = exchanges + now.start
        for row, other in zip(range(now.start, now.stop), swaps[now], strict=True):
            if row != other:
                A[[row, other]] = A[[other, row]]
        A[now.start :, now] = lower
        for columns in _panels(now.stop, n, WIDE):
            A[now, columns] = la.solve_triangular(
                A[now, now], A[now, columns], lower=True, unit_diagonal=True, check_finite=False
            )
            A[now.stop :, columns] -= A[now.stop :, now] @ A[now, columns]
    return A, swaps


# --- Iterative --------------------------------------------------------------------------------------------


class Preconditioner:
    """``(L L' + D)^-1`` on vectors of sum zero, L a Cholesky factor of K from some of its rows.

    Pivots are drawn in proportion to what is left of the diagonal, a block at a time, until that is small
    beside the ridge, or the memory is used up.
    """

    def __init__(self, system: System, memory: int):
        n, self.C = system.size, system.C
        rank = int(min(n, max(BLOCK, memory // (8 * n))))
        rng = np.random.default_rng(0)
        left = system.machine.diagonal(system.view)
        scale = float(left.max())
        L = np.empty((rank, n))
        used = 0
        while used < rank and float(self.C @ left) > 0.1 * n and np.count_nonzero(left > 1e-10 * scale) > 0:
            likely = np.where(left > 1e-10 * scale, left, 0.0)
            count = min(BLOCK, rank - used, int(np.count_nonzero(likely)))
            pivots = np.sort(rng.choice(n, count, replace=False, p=likely / likely.sum()))
            rows = system.machine.rows(system.view, pivots) - L[:used, pivots].T @ L[:used]
            corner = rows[:, pivots]
            corner.flat[:: count + 1] += 1e-9 * scale  # equal rows
            try:
                factor = la.cholesky(corner, lower=True, check_finite=False)
            except la.LinAlgError:
                break
            L[used : used + count] = la.solve_triangular(factor, rows, lower=True, check_finite=False)
            left = np.maximum(left - np.einsum("ij,ij->j", L[used : used + count], L[used : used + count]), 0.0)
            used += count
        self.L = L[:used]
        inner = np.eye(used)
        for first in range(0, n, 1024):  # without a second copy of L
            part = self.L[:, first : first + 1024]
            inner += (part * self.C[first : first + 1024]) @ part.T
        self.factor = la.cho_factor(inner, lower=True, check_finite=False)
        ones = self._inverse(np.ones((1, n)))[0]
        self.ones = ones / ones.sum()

    def _inverse(self, r: Array) -> Array:
        scaled = r * self.C
        return scaled - (la.cho_solve(self.factor, self.L @ scaled.T, check_finite=False).T @ self.L) * self.C

    def __call__(self, r: Array) -> Array:
        z = self._inverse(r)
        return z - np.outer(z.sum(axis=1), self.ones)


def _iterate(
    system: System,
    targets: Array,
    tol: float,
    max_iter: int,
    double_rows: bool,
    memory: int,
    progress: Progress | None,
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
    system: System,
    preconditioner: Preconditioner,
    targets: Array,
    duals: Array,
    residual: Array,
    tol: float,
    most: int,
    single: bool,
    progress: Progress | None,
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
            progress(step, 0.5 * float(duals[worst] @ (targets[worst] + residual[worst])), gaps[worst], system.size)
        if not len(active):
            return step, False
        p = direction[active]
        image = system.product(p, single) + p / system.C
        curvature = np.einsum("ij,ij->i", p, image)
        if not (curvature > 0).all():
            return step, True
        length = (slope[active] / curvature)[:, None]
        duals[active] += length * p
        residual[active] -= length * image
        z = preconditioner(residual[active])
        now = np.einsum("ij,ij->i", residual[active], z)
        direction[active] = z + (now / slope[active])[:, None] * p
        slope[active] = now
    return most, False


def _gaps(system: System, targets: Array, duals: Array, residual: Array) -> Array:
    """Relative duality gaps from the residuals of the system, up to its constant."""
    centred = residual - (residual @ system.C / system.C.sum())[:, None]
    difference = 0.5 * (centred**2 @ system.C)
    dual = 0.5 * np.einsum("ij,ij->i", duals, targets + residual)
    return np.divide(difference, dual, where=dual > 0, out=np.full(len(dual), np.inf))
