"""Training over all rows: the dual problems of a formulation are solved, and their solutions become one model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ...data.dataset import Dataset, Output, outputs
from ...model.expansion import Model
from ...solvers.dual.hard import at_cost
from ...solvers.dual.programs import SolverOptions
from ...solvers.dual.sklearn_svm import DualProblem, SvmSolution, solve_duals
from ...solvers.dual.training import RowsByClass, Subproblem, assembled_model, subproblems
from ...solvers.dual.zero import ZERO_FUNCTION_WARNING, zero_if_rounding
from ...training.full import INDEFINITE_WARNING
from ...utils.warnings import warn
from .. import validation
from .rows import NOT_FINITE

Formulation = Callable[[Subproblem, float], DualProblem]  # the dual of one problem, for a finite cost C


@dataclass(frozen=True)
class SvmSpec:
    """The dual problem, kernel and solver options of an estimator."""

    formulation: Formulation
    C: float
    kernel: Callable[[Dataset], Any]  # of these rows, with gamma as a number
    options: SolverOptions
    cache_bytes: int
    verbose: bool

    @classmethod
    def of(cls, estimator: Any, formulation: Formulation, C: float = 1.0) -> SvmSpec:
        """By the parameters that all estimators of `sklearn.svm` have."""
        return cls(
            formulation,
            float(C),
            partial(validation.named_kernel, estimator),
            SolverOptions(estimator.tol, min(estimator.max_iter, 2**62), False, None),
            int(min(estimator.cache_size, 2.0**30) * 2**20),
            bool(estimator.verbose),
        )


def check_params(estimator: Any) -> None:
    """Check the parameters that all estimators of `sklearn.svm` have."""
    validation.check_common(estimator, least_iter=-1)
    validation.check_yes_or_no("shrinking", estimator.shrinking)


class TrainedSvm(NamedTuple):
    """A model, and the solutions of its problems."""

    model: Model
    solutions: list[SvmSolution]

    @property
    def converged(self) -> bool:
        return all(s.converged for s in self.solutions)


def train_svm(dataset: Dataset, spec: SvmSpec) -> TrainedSvm:
    """Solve one problem over all rows or, for classification, one for each pair of classes."""
    kernel = spec.kernel(dataset)
    classes = dataset.n_classes > 1
    grouped, problems = subproblems(dataset, outputs(dataset.n_classes, "ovo")) if classes else _one_problem(dataset)
    kernel_matrix = grouped.kernel_matrix(kernel, spec.cache_bytes)

    def solve(C: float) -> list[SvmSolution]:
        duals = [spec.formulation(problem, C) for problem in problems]
        return solve_duals(kernel_matrix, [problem.segments for problem in problems], duals, spec.options, spec.verbose)

    solutions = at_cost(spec.C, solve, kernel_matrix, problems)
    if classes:
        solutions = [zero_if_rounding(kernel_matrix, p.segments, s) for p, s in zip(problems, solutions, strict=True)]
    model = assembled_model(kernel, grouped, problems, solutions)
    if not (np.isfinite(model.expansion.coef).all() and np.isfinite(model.expansion.bias).all()):
        raise ValueError(NOT_FINITE)
    return TrainedSvm(model, solutions)


def _one_problem(dataset: Dataset) -> tuple[RowsByClass, list[Subproblem]]:
    """All rows, with their targets; zeros where they have none."""
    rows = np.arange(dataset.size)
    y = np.zeros(dataset.size) if dataset.targets is None else dataset.targets[:, 0]
    problem = Subproblem(dataset, Output(0, ()), [0], rows, y, np.array(dataset.weights, dtype=np.float64))
    return RowsByClass(dataset, rows, [dataset.size]), [problem]


def warn_unsolved(trained: TrainedSvm, estimator: Any) -> None:
    """Warn where the kernel is indefinite or the solver did not converge."""
    solutions = trained.solutions
    if any(s.indefinite for s in solutions):
        warn(INDEFINITE_WARNING.format("a pair of points has negative curvature"))
    unsolved = [s for s in solutions if not s.converged]
    if not unsolved:
        return
    worst = max(unsolved, key=lambda s: s.gap)
    limited = 0 <= estimator.max_iter <= worst.n_iter
    reason = f" (max_iter={estimator.max_iter})" if limited else ""
    warn(
        f"Solver terminated early{reason}.  Consider pre-processing your data with StandardScaler or MinMaxScaler. "
        f"The relative duality gap is {worst.gap:.2e}, asked for tol={estimator.tol:g}",
        ConvergenceWarning,
    )


def warn_zero_functions(trained: TrainedSvm, remedy: str) -> None:
    """Warn where f = 0 is the solution for pairs of classes."""
    n_zeros = sum(s.replaced_by_zero for s in trained.solutions)
    if n_zeros:
        consequence = "all rows get one class there"
        warn(ZERO_FUNCTION_WARNING.format(n_zeros, len(trained.solutions), consequence, remedy))
