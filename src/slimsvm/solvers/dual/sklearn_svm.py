"""The dual problems of `sklearn.svm` over all rows: classification, regression, their nu versions, one class.

Each is one problem of the core,

    max_a  linear'a - 1/2 a'K a    s.t.  lower <= a <= upper  and given sums,

whose primal is ``1/2 |f|^2 + sum_i cost_i(linear_i - f_i - t) + t s``, where ``cost_i`` is linear on either side of
zero with the bounds as its slopes, s is the given sum and the threshold t its multiplier:

===================  ============  ==========================  ===============================================
problem              linear        bounds                      sums
===================  ============  ==========================  ===============================================
classification       y             [0, C w], [-C w, 0]         0
nu-classification    0             [0, w], [-w, 0]             nu/2 sum(w) and as much below zero, by class
regression           y -+ epsilon  [0, C w] and [-C w, 0]      0
nu-regression        y             [0, C w] and [-C w, 0]      C nu/2 sum(w) and as much below zero, by sign
one class            0             [0, w]                      nu sum(w)
===================  ============  ==========================  ===============================================

Regression has two variables for each row, one above zero and one below. Where two sums are given each has a threshold
of its own: their mean is the bias, half their difference the margin of nu-classification or the tube of nu-regression
(Schoelkopf et al. 2000; Chang and Lin 2001, 2002). Where sums are not zero the optimum may be negative: the gap is
then relative to its size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ... import _core
from ...linalg.arrays import Array
from ..certificate import MAX_FACTORED_ROWS
from .interior import InteriorProblem
from .programs import SolverOptions
from .solve import DualProgress, first_steps
from .vertex import move_to_vertex
from .zero import as_zero, rounding_error

# The core also stops on violations, which are absolute as in LIBSVM while the size of f is between these limits. Beyond
# them f is scaled: otherwise tol could not be reached for large f, and would mean nothing for small f. Where given sums
# determine the size of f, its terms may cancel, hence the larger limit.
SMALLEST_UNIT, LARGEST_TARGET_SPREAD, LARGEST_MASS = 1.0, 100.0, 1000.0
MIN_UNIT_EXPONENT = -500  # of the smallest power of 2 that scales f: numbers divided by it stay finite
SMALL_BLOCK, LARGE_BLOCK = 128, 512
INTERIOR_TOL = 1e-6  # times tol: gap at which the interior point hands over to SMO


@dataclass(frozen=True)
class DualProblem:
    """One problem over rows; each row has one variable, or two (``doubled``): first all positive, then all negative."""

    linear: Array
    lower: Array
    upper: Array
    sum: float = 0.0
    side: Array | None = None  # +-1 for each variable, where the sums of both sides are given
    total: float = np.inf  # the sum of the sizes of the duals, with ``side``
    doubled: bool = False
    by_margin: bool = False  # is f divided by its margin, as in nu-classification?
    unit: float = 1.0  # of f: the core solves the problem for f / unit

    @property
    def block(self) -> int:
        """Size of the blocks of SMO; with a given sum (one class) most variables end at a bound: use small blocks."""
        return SMALL_BLOCK if self.sum else LARGE_BLOCK

    @property
    def rows(self) -> int:
        return len(self.linear) // (2 if self.doubled else 1)

    def interior(self, K: Array) -> InteriorProblem:
        """The same problem for the interior point method, with the kernel matrix K of the rows."""
        n = self.rows
        row = np.tile(np.arange(n), 2) if self.doubled else np.arange(n)
        ones, first = np.ones(len(row)), self.lower.copy()
        sides = (
            [(1.0, self.sum)] if self.side is None else [(s, 0.5 * (self.sum + s * self.total)) for s in (1.0, -1.0)]
        )
        for side, wanted in sides:  # all variables at the same fraction between their bounds
            mine = ones > 0 if self.side is None else self.side == side
            room = (self.upper - self.lower)[mine]
            first[mine] += room * ((wanted - float(self.lower[mine].sum())) / max(float(room.sum()), 1e-300))
        G = ones[None] if self.side is None else np.stack([ones, self.side])
        sums = np.array([self.sum, self.total][: len(G)])
        return InteriorProblem(K, row, ones, self.linear, self.lower, self.upper, G, sums, first)

    def scaled(self, unit: float) -> DualProblem:
        """The same problem with f, duals, bounds and sums divided by ``unit``."""
        if unit == 1:
            return self
        return replace(
            self,
            linear=self.linear / unit,
            lower=self.lower / unit,
            upper=self.upper / unit,
            sum=self.sum / unit,
            total=self.total / unit,
            unit=self.unit * unit,
        )


def classification(y: Array, C: float, weights: Array) -> DualProblem:
    """The problem of `SVC`; y is +-1."""
    most = C * weights
    return DualProblem(y.astype(np.float64), np.where(y > 0, 0.0, -most), np.where(y > 0, most, 0.0))


def nu_classification(y: Array, nu: float, weights: Array) -> DualProblem:
    """The problem of `NuSVC`; y is +-1, and the duals of each class sum to half of ``nu sum(w)``."""
    total = nu * float(weights.sum())
    least = min(float(weights[y > 0].sum()), float(weights[y < 0].sum()))
    if total > 2 * least * (1 + 1e-12):
        raise ValueError(
            f"specified nu is infeasible: nu={nu:g} is the least share of rows that are vectors, half of them from "
            f"each class, and the smaller class has {least / weights.sum():.3g} of the rows; use nu of at most "
            f"{2 * least / weights.sum():.3g}"
        )
    lower, upper = np.where(y > 0, 0.0, -weights), np.where(y > 0, weights, 0.0)
    return DualProblem(np.zeros(len(y)), lower, upper, side=y.astype(np.float64), total=total, by_margin=True)


def regression(y: Array, C: float, epsilon: float, weights: Array) -> DualProblem:
    """The problem of `SVR` with targets y."""
    most, zero = C * weights, np.zeros(len(y))
    costs = DualProblem(
        np.concatenate([y - epsilon, y + epsilon]), np.append(zero, -most), np.append(most, zero), doubled=True
    )
    return costs.scaled(_unit(_spread(y, weights)))


def nu_regression(y: Array, C: float, nu: float, weights: Array) -> DualProblem:
    """The problem of `NuSVR` with targets y; at most a share nu of the rows is outside the tube."""
    most, zero, total = C * weights, np.zeros(len(y)), C * nu * float(weights.sum())
    side = np.repeat([1.0, -1.0], len(y))
    costs = DualProblem(np.tile(y, 2), np.append(zero, -most), np.append(most, zero), 0.0, side, total, True)
    return costs.scaled(_unit(_spread(y, weights)))


def one_class(nu: float, weights: Array) -> DualProblem:
    """The problem of `OneClassSVM`; at most a share nu of the rows is outside."""
    return DualProblem(np.zeros(len(weights)), np.zeros(len(weights)), np.array(weights), nu * float(weights.sum()))


class SvmSolution(NamedTuple):
    """``f(x) = sum_i duals_i k(x_i, x) + bias``, with the certificate of its problem."""

    duals: Array  # signed, one for each row
    bias: float
    objective: float  # of the primal; of nu-classification before f is divided by its margin
    gap: float  # (primal - dual) / |dual|, in float64
    violation: float  # of the optimality conditions, in units of f
    n_iter: int
    converged: bool
    indefinite: bool  # the kernel is not positive semidefinite
    margin: float = 0.0  # nu-classification: the margin rho, by which f is divided; nu-regression: epsilon
    replaced_by_zero: bool = False  # the solution was only rounding errors; duals and bias are set to 0


def solve_duals(
    kernel_matrix: _core.KernelMatrix,
    segment_lists: Sequence[list[int]],
    problems: Sequence[DualProblem],
    options: SolverOptions,
    verbose: bool = False,
) -> list[SvmSolution]:
    """Solve each problem over its segments of the kernel matrix; all problems are of one kind."""
    if not verbose:
        return _solved(kernel_matrix, list(segment_lists), list(problems), options)
    solutions = []
    for segments, problem in zip(segment_lists, problems, strict=True):
        progress = DualProgress("fit")
        solutions += _solved(kernel_matrix, [segments], [problem], replace(options, callback=progress))
        last = solutions[-1]
        vectors = np.count_nonzero(last.duals)
        progress.finish(f"{last.n_iter} steps, objective {last.objective:.8g}, gap {last.gap:.1e}, {vectors} vectors")
    return solutions


def _solved(
    kernel_matrix: _core.KernelMatrix,
    segment_lists: list[list[int]],
    problems: list[DualProblem],
    options: SolverOptions,
) -> list[SvmSolution]:
    if problems[0].doubled and not np.ptp(problems[0].linear.reshape(2, -1), axis=1).any():
        return [_met_by_the_bias(problems[0])]  # regression has a single problem
    problems = [
        _in_units_of(kernel_matrix, segments, problem)
        for segments, problem in zip(segment_lists, problems, strict=True)
    ]
    solutions = _by_pairs(kernel_matrix, segment_lists, problems, options)
    for k, (segments, problem) in enumerate(zip(segment_lists, problems, strict=True)):
        few = problem.rows <= MAX_FACTORED_ROWS and options.max_steps < 0
        if few and not solutions[k].converged and not solutions[k].indefinite:
            solutions[k] = _by_interior_points(kernel_matrix, segments, problem, options, solutions[k])
        if problem.by_margin and solutions[k].converged and not solutions[k].indefinite:
            solutions[k] = _zero_without_margin(kernel_matrix, segments, problem, solutions[k])
    return solutions


def _zero_without_margin(
    kernel_matrix: _core.KernelMatrix, segments: list[int], problem: DualProblem, solution: SvmSolution
) -> SvmSolution:
    """f = 0 in place of a function without a margin, or with one that is within the rounding of its values.

    Where rho is not positive, no term of ``1/2 |f|^2 - nu rho + 1/n sum_i max(0, rho - y_i (f(x_i) + b))`` is negative:
    f = 0 has no larger objective than the solution, whose gap is thus valid for f = 0, too. Where kernel values are
    nearly equal the solver may stop before it finds a margin: a function that still separates the classes is kept
    if its values exceed the worst-case rounding error.
    """
    if solution.margin > 0:
        separates = rounding_error(kernel_matrix, segments, solution.duals).max() < 1  # in units of the margin
    else:
        values = kernel_matrix.product(segments, solution.duals[None])[0] + solution.bias
        error_bound = rounding_error(kernel_matrix, segments, solution.duals, worst=True).max()
        separates = np.abs(values).max() > error_bound and _better_than_chance(values, problem)
    return solution if separates else as_zero(solution)._replace(objective=0.0, margin=0.0)


def _better_than_chance(values: Array, problem: DualProblem) -> bool:
    """Is the balanced accuracy above one half by three standard errors?"""
    assert problem.side is not None
    right, variance = 0.0, 0.0
    for side in (1.0, -1.0):
        mine = problem.side == side
        weights = problem.upper[mine] - problem.lower[mine]
        weights = weights / weights.sum()
        right += 0.5 * float(weights[side * values[mine] > 0].sum())
        variance += 0.25 * 0.25 * float((weights**2).sum())
    return right > 0.5 + 3 * math.sqrt(variance)


def _met_by_the_bias(problem: DualProblem) -> SvmSolution:
    """The solution for constant targets: f = 0, and the bias is the target."""
    bias = 0.5 * float(problem.linear[0] + problem.linear[-1]) * problem.unit
    return SvmSolution(np.zeros(problem.rows), bias, 0.0, 0.0, 0.0, 1, True, False)


def _by_interior_points(
    kernel_matrix: _core.KernelMatrix,
    segments: list[int],
    problem: DualProblem,
    options: SolverOptions,
    before: SvmSolution,
) -> SvmSolution:
    """Solve a small, badly scaled problem by interior points; SMO continues from there and certifies the result."""
    K = kernel_matrix.rows(segments, np.arange(problem.rows))
    interior = problem.interior(K)
    start = interior.solved(INTERIOR_TOL * options.tol)
    if start is None:
        return before
    start = move_to_vertex(K, interior.row, start, interior.lower, interior.upper, interior.G)
    (solution,) = _by_pairs(kernel_matrix, [segments], [problem], options, start)
    solution = solution._replace(n_iter=before.n_iter + solution.n_iter)
    if solution.converged:
        return solution
    # SMO steps dominated by rounding may worsen the solution: compare with the start itself.
    (itself,) = _by_pairs(kernel_matrix, [segments], [problem], replace(options, max_steps=0), start)
    return min(before, solution, itself._replace(n_iter=solution.n_iter), key=lambda one: one.gap)


def _in_units_of(kernel_matrix: _core.KernelMatrix, segments: list[int], problem: DualProblem) -> DualProblem:
    """Scale f by its size where the given sums determine it (no linear term)."""
    if problem.linear.any():
        return problem
    mass = problem.total if problem.side is not None else abs(problem.sum)
    largest = float(kernel_matrix.diagonal(segments).max())
    return problem.scaled(_unit(largest * mass, LARGEST_MASS))


def _by_pairs(
    kernel_matrix: _core.KernelMatrix,
    segment_lists: list[list[int]],
    problems: list[DualProblem],
    options: SolverOptions,
    starts: Array | None = None,
) -> list[SvmSolution]:
    """Solve and certify by SMO in the core; ``starts``, if given, are concatenated duals to start from."""
    lengths = [len(problem.linear) for problem in problems]
    linear, lower, upper = (
        np.concatenate(parts) for parts in zip(*((p.linear, p.lower, p.upper) for p in problems), strict=True)
    )
    side = None if problems[0].side is None else np.concatenate([p.side for p in problems])
    table = kernel_matrix.solve_all(
        [
            [*segments, *segments] if p.doubled else segments
            for segments, p in zip(segment_lists, problems, strict=True)
        ],
        lengths,
        linear,
        lower,
        upper,
        np.zeros(len(linear)),
        side,
        np.array([p.total for p in problems]),
        options.tol,
        np.array([first_steps(p.rows, options) for p in problems], dtype=np.int64),
        options.double_rows,
        True,
        options.callback,
        sums=np.array([p.sum for p in problems]),
        exact_totals=side is not None,
        starts=starts,
        block=problems[0].block,
    )
    ends = np.cumsum(lengths)
    return [
        _solution(problem, table["duals"][end - length : end], table, k, options.tol)
        for k, (problem, length, end) in enumerate(zip(problems, lengths, ends, strict=True))
    ]


def _solution(problem: DualProblem, duals: Array, table: dict[str, Array], k: int, tol: float) -> SvmSolution:
    names = ("bias", "objective", "gap", "violation", "cap")
    bias, objective, gap, violation, cap = (float(table[name][k]) for name in names)
    duals = duals.reshape(2, -1).sum(axis=0) if problem.doubled else duals
    u = problem.unit
    steps, indefinite = max(1, int(table["steps"][k])), bool(table["negative_curvature"][k])
    margin = -cap if problem.by_margin else cap
    # Classes that cannot be separated have no margin: then f is not divided by it, and only its sign is used.
    divisor = margin if problem.by_margin and margin > 0 else 1 / u
    return SvmSolution(
        duals / divisor,
        bias / divisor,
        u * u * objective,
        gap,
        u * violation,
        steps,
        gap <= tol,
        indefinite,
        u * margin,
    )


def _unit(size: float, most: float = LARGEST_TARGET_SPREAD) -> float:
    """A unit for f in which values of this size are neither too small nor too large."""
    if not 0 < size < np.inf:
        return 1.0
    # A power of two, so that division by it is exact.
    return 2.0 ** max(round(math.log2(size / min(max(size, SMALLEST_UNIT), most))), MIN_UNIT_EXPONENT)


def _spread(y: Array, weights: Array) -> float:
    """Weighted standard deviation of y; exactly zero if all values are equal."""
    share, about = weights / weights.sum(), y - y[0]
    return float(np.sqrt(np.sum(share * (about - np.sum(share * about)) ** 2)))
