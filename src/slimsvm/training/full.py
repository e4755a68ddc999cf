"""Training over all rows: one slack norm, with inequality or equality constraints, solved through its dual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..data.dataset import Dataset
from ..linalg.arrays import Array
from ..model.expansion import Model
from ..problem.formulation import Constraint, Slack
from ..solvers.dual import least_squares
from ..solvers.dual.batch import Cost, solve_all
from ..solvers.dual.programs import SolverOptions
from ..solvers.dual.solve import DualProgress, DualSolution
from ..solvers.dual.training import Subproblem, train
from ..solvers.dual.zero import ZERO_FUNCTION_WARNING, is_rounding
from ..utils.warnings import warn

VOID_WARNING = (
    "the decision function is zero as far as tol tells: with so few slacks counted, the weighted means of the two "
    "classes can meet, and f = 0 costs no more than any other. Raise the budget (or use slack='l1'), use a "
    "kernel that separates more, or lower tol if C is small"
)
INDEFINITE_WARNING = (
    "the kernel is not positive semidefinite ({}): the solution is a stationary point and the duality gap proves "
    "nothing; use a positive semidefinite kernel"
)


@dataclass(frozen=True)
class FullSpec:
    """The checked parameters of an estimator over all rows."""

    slack: Slack
    constraint: Constraint
    C: float
    scheme: str
    tol: float
    max_iter: int
    cache_size: float
    precision: str
    verbose: bool

    @property
    def cache_bytes(self) -> int:
        return int(min(self.cache_size, 2.0**30) * 2**20)


Solve = Callable[[Any, list[Subproblem]], list[DualSolution]]


def train_full(dataset: Dataset, kernel: Any, spec: FullSpec) -> Model:
    """Train the model over all rows."""
    return solve_full(dataset, kernel, spec)[0]


def solve_full(
    dataset: Dataset, kernel: Any, spec: FullSpec, solve: Solve | None = None
) -> tuple[Model, list[DualSolution]]:
    """Train the model over all rows; also return the solutions of the binary problems."""
    cost = Cost(spec.slack, spec.constraint, float(spec.C), dataset.indices, dataset.n_samples)
    limits = SolverOptions(spec.tol, min(spec.max_iter, 2**62), spec.precision == "float64", None)

    def solved(machine: Any, problems: list[Subproblem]) -> list[DualSolution]:
        solutions = solve(machine, problems) if solve else solve_all(machine, problems, cost, limits, spec.verbose)
        return [
            s._replace(zero_within_rounding=s.converged and is_rounding(machine, p.segments, s.duals, s.bias))
            for s, p in zip(solutions, problems, strict=True)
        ]

    model, solutions = train(dataset, kernel, spec.scheme, spec.cache_bytes, solved)
    _warn_of(solutions, spec)
    return model, solutions


def _warn_of(solutions: list[DualSolution], spec: FullSpec) -> None:
    """Warn of indefinite kernels, unconverged problems and decision functions that are zero."""
    if any(s.indefinite for s in solutions):
        warn(INDEFINITE_WARNING.format("a pair of points has negative curvature"))
    unsolved = [s for s in solutions if not s.converged]
    if unsolved:
        worst = max(unsolved, key=lambda s: s.gap)
        limited = 0 <= spec.max_iter <= worst.n_iter
        reason = f"max_iter={spec.max_iter} ended the fit" if limited else "the fit got no further"
        remedy = "raise max_iter" if limited else "raise cache_size"
        warn(
            f"{reason} in {len(unsolved)} of {len(solutions)} binary problems: relative duality gap "
            f"{worst.gap:.2e}, asked for tol={spec.tol:g}. Scale the features, lower C, {remedy} or raise tol",
            ConvergenceWarning,
        )
    if any(s.void and s.converged for s in solutions):
        warn(VOID_WARNING)
    zeros = sum(s.zero_within_rounding and not s.void for s in solutions)
    if zeros:
        warn(ZERO_FUNCTION_WARNING.format(zeros, len(solutions), "its predictions are arbitrary there", ""))


def train_least_squares(dataset: Dataset, kernel: Any, spec: FullSpec) -> Model:
    """Train the least-squares model; where its linear system is solved directly, add leave-one-out residuals."""
    loo: list[Array | None] = []

    def solve(machine: Any, problems: list[Subproblem]) -> list[DualSolution]:
        solutions: list[DualSolution] = []
        left_out: list[Array | None] = []
        # Problems over the same rows have the same matrix.
        for view, same in groupby(problems, key=lambda problem: problem.segments):
            group = list(same)
            system = least_squares.LinearSystem(machine, view, float(spec.C) * group[0].weights, dataset.threads)
            targets = np.array([problem.y for problem in group])
            progress = DualProgress(group[0].name) if spec.verbose else None
            solved, residuals = least_squares.solve(
                system, targets, spec.tol, spec.max_iter, spec.precision == "float64", spec.cache_bytes, progress
            )
            solutions += solved
            left_out += [None] * len(group) if residuals is None else list(residuals)
        loo.append(_by_row(dataset, problems, left_out))
        return solutions

    model, _ = solve_full(dataset, kernel, spec, solve)
    return model.with_attributes(loo_residuals_=loo[0])


def _by_row(dataset: Dataset, problems: list[Subproblem], left_out: list[Array | None]) -> Array | None:
    """Leave-one-out residuals (problems x user's rows; NaN for unused rows); None if any problem has none."""
    if any(residuals is None for residuals in left_out):
        return None
    loo = np.full((len(problems), dataset.n_samples), np.nan)
    for row, problem, residuals in zip(loo, problems, left_out, strict=True):
        row[dataset.indices[problem.rows]] = residuals
    return loo
