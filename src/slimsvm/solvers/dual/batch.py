"""Solves many binary problems over the same rows in one call of the core.

The core also certifies problems whose cost is a sum over rows. Problems that it leaves with too large a gap go on from
its solution, one at a time in Python, as do all whose feasible set has a ball.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np

from ... import _core
from ...linalg.arrays import Array
from ...problem.formulation import Constraint, FeasibleSet, Slack
from .programs import BoxProgram, ProgramSolution, SolverOptions, make_program
from .solve import BinaryDual, DualProgress, DualSolution, first_steps, solve_dual
from .training import Subproblem

MAX_VARIABLES_AT_ONCE = 1 << 18  # in one call, which bounds the memory beside the kernel rows


@dataclass(frozen=True)
class Cost:
    """The cost ``C * phi(slacks)`` for the rows of any binary problem; ``numbers`` are those of the user's rows."""

    slack: Slack
    constraint: Constraint
    C: float
    numbers: Array
    n_samples: int

    @property
    def by_row(self) -> bool:
        """Is the loss a sum over rows that the core can compute from the feasible set?"""
        return getattr(self.slack, "is_separable", False)

    def binary(self, problem: Subproblem) -> BinaryDual:
        """One binary problem with this cost."""
        own = self.slack.at(self.numbers[problem.rows], self.n_samples)
        return BinaryDual(problem.y, own, self.C, problem.weights, self.constraint)

    def bounds(self, problems: list[Subproblem]) -> tuple[Array, FeasibleSet]:
        """Concatenated labels and feasible set of several problems, for a cost that is a sum over rows."""
        if len(problems) == 1:
            y, weights = problems[0].y, problems[0].weights
        else:
            y = np.concatenate([problem.y for problem in problems])
            weights = np.concatenate([problem.weights for problem in problems])
        return y, self.slack.feasible_set(y, self.C, weights, self.constraint)


def solve_all(
    kernel_matrix: _core.KernelMatrix,
    problems: list[Subproblem],
    cost: Cost,
    options: SolverOptions,
    verbose: bool = False,
) -> list[DualSolution]:
    """Solve the problems, in order; with ``verbose`` one at a time, each with a progress line."""
    solutions: list[DualSolution] = []
    if verbose:
        for problem in problems:
            progress = DualProgress(problem.name)
            solutions += _solve_some(kernel_matrix, [problem], cost, replace(options, callback=progress))
            progress.end(solutions[-1])
        return solutions
    for some in _parts(problems):
        solutions += _solve_some(kernel_matrix, some, cost, options)
    return solutions


def _parts(problems: list[Subproblem]) -> Iterator[list[Subproblem]]:
    some: list[Subproblem] = []
    size = 0
    for problem in problems:
        if some and size + len(problem.y) > MAX_VARIABLES_AT_ONCE:
            yield some
            some, size = [], 0
        some.append(problem)
        size += len(problem.y)
    yield some


def _solve_some(
    kernel_matrix: _core.KernelMatrix, problems: list[Subproblem], cost: Cost, options: SolverOptions
) -> Iterator[DualSolution]:
    return (_by_row if cost.by_row else _one_set_each)(kernel_matrix, problems, cost, options)


def _by_row(
    kernel_matrix: _core.KernelMatrix, problems: list[Subproblem], cost: Cost, options: SolverOptions
) -> Iterator[DualSolution]:
    """Solve all problems in one call of the core; Python continues with those whose gap is still too large."""
    y, feasible = cost.bounds(problems)
    lengths = [len(problem.y) for problem in problems]
    ridge = np.empty(len(y))
    ridge[:] = feasible.ridge
    segment_lists = [problem.segments for problem in problems]
    limit = np.array([first_steps(n, options) for n in lengths], dtype=np.int64)
    totals = np.full(len(problems), np.inf)
    core_solutions = _CoreSolutions(
        lengths,
        kernel_matrix.solve_all(
            segment_lists,
            lengths,
            y,
            feasible.lower,
            feasible.upper,
            ridge,
            None,
            totals,
            options.tol,
            limit,
            options.double_rows,
            True,
            options.callback,
        ),
    )
    columns = core_solutions.rows("certified", "bias", "objective", "gap", "violation", "steps", "negative_curvature")
    for k, (certified, bias, objective, gap, violation, steps, bent) in enumerate(columns):
        if certified:
            yield DualSolution(
                core_solutions.duals(k), bias, objective, gap, violation, max(1, int(steps)), True, bent > 0
            )
            continue
        binary = cost.binary(problems[k])
        program = BoxProgram(kernel_matrix, segment_lists[k], binary.y, binary.feasible)
        yield solve_dual(program, binary, options, core_solutions.solution(program, k))


def _one_set_each(
    kernel_matrix: _core.KernelMatrix, problems: list[Subproblem], cost: Cost, options: SolverOptions
) -> Iterator[DualSolution]:
    """Solve problems whose feasible set couples rows; the core solves those without a ball together."""
    binaries = [cost.binary(problem) for problem in problems]
    programs = [
        make_program(kernel_matrix, p.segments, b.y, b.feasible) for p, b in zip(problems, binaries, strict=True)
    ]
    plain = [binary.feasible.radius == np.inf for binary in binaries]
    first = _first_points(
        kernel_matrix, [program for program, is_plain in zip(programs, plain, strict=True) if is_plain], options
    )
    for program, binary, is_plain in zip(programs, binaries, plain, strict=True):
        yield solve_dual(program, binary, options, next(first) if is_plain else None)


def _first_points(
    kernel_matrix: _core.KernelMatrix, programs: list[Any], options: SolverOptions
) -> Iterator[ProgramSolution]:
    """Solve programs without a ball in one call of the core."""
    if not programs:
        return
    lengths = [len(program.linear) for program in programs]
    sides = [
        np.zeros(n) if program.side is None else program.side for program, n in zip(programs, lengths, strict=True)
    ]
    core_solutions = _CoreSolutions(
        lengths,
        kernel_matrix.solve_all(
            [program.segments for program in programs],
            lengths,
            np.concatenate([program.linear for program in programs]),
            np.concatenate([program.lower for program in programs]),
            np.concatenate([program.upper for program in programs]),
            np.concatenate([program.ridges() for program in programs]),
            np.concatenate(sides),
            np.array([program.total for program in programs]),
            options.tol,
            np.array([first_steps(program.size, options) for program in programs], dtype=np.int64),
            options.double_rows,
            False,
            options.callback,
        ),
    )
    for k, program in enumerate(programs):
        yield core_solutions.solution(program, k)


class _CoreSolutions:
    """Solutions of the core, in arrays that concatenate all problems."""

    def __init__(self, lengths: list[int], table: dict[str, Array]):
        self.table = table
        self.places = [slice(end - length, end) for end, length in zip(accumulate(lengths), lengths, strict=True)]

    def rows(self, *names: str) -> Iterator[tuple[float, ...]]:
        """Values of these columns, a tuple for each problem."""
        return zip(*(self.table[name].tolist() for name in names), strict=True)

    def duals(self, k: int) -> Array:
        return self.table["duals"][self.places[k]]

    def solution(self, program: BoxProgram, k: int) -> ProgramSolution:
        """The solution of problem k as a `ProgramSolution`."""
        gap, violation, steps, indefinite = (
            self.table[name][k] for name in ("program_gap", "violation", "steps", "negative_curvature")
        )
        product = self.table["product"][self.places[k]]
        return program.solution(self.duals(k), product, float(gap), float(violation), int(steps), bool(indefinite))
