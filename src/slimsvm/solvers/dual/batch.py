"""Many binary problems over the same rows: solved in one call of the core.

A cost that is a sum over rows is certified there, too. What the core leaves open (a gap that is not closed, digits that
are missing) goes on from its solution, one problem at a time, as does every norm with a ball.
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
from .multiplier import Limits
from .programs import BoxProgram, ProgramSolution, program
from .solve import BinaryDual, DualProgress, DualSolution, first_steps, solve_dual
from .training import Subproblem

MOST = 1 << 18  # variables in one call: what they need beside the rows stays small


@dataclass(frozen=True)
class Cost:
    """``C * phi`` of the slacks, for the rows of any binary problem; ``numbers`` are those of the user's rows."""

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
        """The problem with this cost."""
        own = self.slack.at(self.numbers[problem.rows], self.n_samples)
        return BinaryDual(problem.y, own, self.C, problem.weights, self.constraint)

    def bounds(self, problems: list[Subproblem]) -> tuple[Array, FeasibleSet]:
        """Labels and feasible set of problems one after the other, where rows do not mind each other."""
        if len(problems) == 1:
            y, weights = problems[0].y, problems[0].weights
        else:
            y = np.concatenate([problem.y for problem in problems])
            weights = np.concatenate([problem.weights for problem in problems])
        return y, self.slack.feasible_set(y, self.C, weights, self.constraint)


def solve_all(
    machine: _core.KernelMatrix, problems: list[Subproblem], cost: Cost, limits: Limits, verbose: bool = False
) -> list[DualSolution]:
    """A solution for each problem, in order. With ``verbose`` one problem at a time, each with a progress line."""
    solutions: list[DualSolution] = []
    if verbose:
        for problem in problems:
            progress = DualProgress(problem.name)
            solutions += _solve_some(machine, [problem], cost, replace(limits, callback=progress))
            progress.end(solutions[-1])
        return solutions
    for some in _parts(problems):
        solutions += _solve_some(machine, some, cost, limits)
    return solutions


def _parts(problems: list[Subproblem]) -> Iterator[list[Subproblem]]:
    some: list[Subproblem] = []
    size = 0
    for problem in problems:
        if some and size + len(problem.y) > MOST:
            yield some
            some, size = [], 0
        some.append(problem)
        size += len(problem.y)
    yield some


def _solve_some(
    machine: _core.KernelMatrix, problems: list[Subproblem], cost: Cost, limits: Limits
) -> Iterator[DualSolution]:
    return (_by_row if cost.by_row else _one_set_each)(machine, problems, cost, limits)


def _by_row(
    machine: _core.KernelMatrix, problems: list[Subproblem], cost: Cost, limits: Limits
) -> Iterator[DualSolution]:
    """All numbers of all problems at once: no work in Python for each of them, but for those left open."""
    y, feasible = cost.bounds(problems)
    lengths = [len(problem.y) for problem in problems]
    ridge = np.empty(len(y))
    ridge[:] = feasible.ridge
    views = [problem.view for problem in problems]
    limit = np.array([first_steps(n, limits) for n in lengths], dtype=np.int64)
    totals = np.full(len(problems), np.inf)
    found = _Found(
        lengths,
        machine.solve_all(
            views,
            lengths,
            y,
            feasible.lower,
            feasible.upper,
            ridge,
            None,
            totals,
            limits.tol,
            limit,
            limits.double_rows,
            True,
            limits.callback,
        ),
    )
    columns = found.rows("certified", "bias", "objective", "gap", "violation", "steps", "negative_curvature")
    for k, (certified, bias, objective, gap, violation, steps, bent) in enumerate(columns):
        if certified:
            yield DualSolution(found.duals(k), bias, objective, gap, violation, max(1, int(steps)), True, bent > 0)
            continue
        binary = cost.binary(problems[k])
        over = BoxProgram(machine, views[k], binary.y, binary.feasible)
        yield solve_dual(over, binary, limits, found.point(over, k))


def _one_set_each(
    machine: _core.KernelMatrix, problems: list[Subproblem], cost: Cost, limits: Limits
) -> Iterator[DualSolution]:
    """Sets that are no products over rows: those without a ball are still solved together."""
    binaries = [cost.binary(problem) for problem in problems]
    overs = [program(machine, p.view, b.y, b.feasible) for p, b in zip(problems, binaries, strict=True)]
    plain = [binary.feasible.radius == np.inf for binary in binaries]
    first = _first_points(machine, [over for over, is_plain in zip(overs, plain, strict=True) if is_plain], limits)
    for over, binary, is_plain in zip(overs, binaries, plain, strict=True):
        yield solve_dual(over, binary, limits, next(first) if is_plain else None)


def _first_points(machine: _core.KernelMatrix, overs: list[Any], limits: Limits) -> Iterator[ProgramSolution]:
    """Solutions of programs without a ball."""
    if not overs:
        return
    lengths = [len(over.linear) for over in overs]
    sides = [np.zeros(n) if over.side is None else over.side for over, n in zip(overs, lengths, strict=True)]
    found = _Found(
        lengths,
        machine.solve_all(
            [over.view for over in overs],
            lengths,
            np.concatenate([over.linear for over in overs]),
            np.concatenate([over.lower for over in overs]),
            np.concatenate([over.upper for over in overs]),
            np.concatenate([over.ridges() for over in overs]),
            np.concatenate(sides),
            np.array([over.total for over in overs]),
            limits.tol,
            np.array([first_steps(over.size, limits) for over in overs], dtype=np.int64),
            limits.double_rows,
            False,
            limits.callback,
        ),
    )
    for k, over in enumerate(overs):
        yield found.point(over, k)


class _Found:
    """What the core found: arrays of all problems, one after the other."""

    def __init__(self, lengths: list[int], table: dict[str, Array]):
        self.table = table
        self.places = [slice(end - length, end) for end, length in zip(accumulate(lengths), lengths, strict=True)]

    def rows(self, *names: str) -> Iterator[tuple[float, ...]]:
        """These columns, a tuple for each problem."""
        return zip(*(self.table[name].tolist() for name in names), strict=True)

    def duals(self, k: int) -> Array:
        return self.table["duals"][self.places[k]]

    def point(self, over: BoxProgram, k: int) -> ProgramSolution:
        """The solution of one of them, as a program gives it."""
        gap, violation, steps, indefinite = (
            self.table[name][k] for name in ("program_gap", "violation", "steps", "negative_curvature")
        )
        product = self.table["product"][self.places[k]]
        return over.point(self.duals(k), product, float(gap), float(violation), int(steps), bool(indefinite))
