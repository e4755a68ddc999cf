"""What the drop-in machines share: scikit-learn's parameters, attributes and behaviour, over the solvers of `dual`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from ...data.dataset import Dataset, Output
from ...linalg.arrays import Array
from ...model.expansion import Model
from ...problem.kernels import Precomputed
from ...solvers.dual.hard import at_cost
from ...solvers.dual.programs import SolverOptions
from ...solvers.dual.sklearn_svm import DualProblem, SvmSolution, solve_duals
from ...solvers.dual.training import RowsByClass, Subproblem, assembled_model
from ...training.full import INDEFINITE_WARNING
from ...utils.threads import thread_count
from ...utils.warnings import warn
from .. import validation
from ..base import KernelModel, atomic
from .rows import FEW, CheckedRows, Objects, prepared

NOT_FINITE = (
    "The dual coefficients or intercepts are not finite. The input data may contain large values and need to be "
    "preprocessed: StandardScaler brings them near 1"
)


class SklearnSvm(KernelModel):
    """A machine of `sklearn.svm` over all training rows; subclasses say what it costs to be wrong."""

    kernel: Any
    C: float = 1.0  # of machines that have it
    tol: float
    max_iter: int
    cache_size: float
    shrinking: Any
    verbose: Any
    n_jobs: int | None
    vectors_: Any
    vector_coef_: Array
    duality_gap_: Array
    objects_: Objects

    def _costs(self, problem: Subproblem, C: float) -> DualProblem:
        """What one problem minimises: its targets are ``problem.y``, and C is finite."""
        raise NotImplementedError

    def _check_params(self) -> None:
        """Raise ValueError for parameters that make no sense."""
        validation.check_common(self, least_iter=-1)
        validation.check_yes_or_no("shrinking", self.shrinking)

    def _prepared(self, X: Any, y: Any, sample_weight: Any) -> CheckedRows:
        """Checked data; targets are numbers."""
        return prepared(self, X, y, sample_weight, False, {"y": y, "y_numeric": True})

    def _subproblems(self, dataset: Dataset, targets: Array) -> tuple[RowsByClass, list[Subproblem]]:
        """All rows in one problem."""
        rows = np.arange(dataset.size)
        problem = Subproblem(dataset, Output(0, ()), [0], rows, targets, np.array(dataset.weights, dtype=np.float64))
        return RowsByClass(dataset, rows, [dataset.size]), [problem]

    @atomic
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the machine.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; for ``kernel="precomputed"`` the square kernel matrix; for a function as kernel whatever that
            function takes.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C for each row: weight k is k copies. Rows of weight 0 or less are left out.

        Returns
        -------
        self
        """
        self._check_params()
        rows = self._prepared(X, y, sample_weight)
        _check_range(rows.dataset.X)
        model, solutions = self._solved(rows.dataset, rows.targets)
        self._tell(solutions)
        self._keep_rows(rows, model)
        self.fit_status_ = int(not all(s.converged for s in solutions))

    def _solved(self, dataset: Dataset, targets: Array) -> tuple[Model, list[SvmSolution]]:
        """The model of these rows, and how well it is known."""
        kernel = validation.named_kernel(self, dataset)
        segments, problems = self._subproblems(dataset, targets)
        limits = SolverOptions(self.tol, min(self.max_iter, 2**62), False, None)
        machine = segments.kernel_matrix(kernel, int(min(self.cache_size, 2.0**30) * 2**20))
        solutions = self._solutions(machine, problems, limits)
        model = assembled_model(kernel, segments, problems, solutions)
        if not (np.isfinite(model.expansion.coef).all() and np.isfinite(model.expansion.bias).all()):
            raise ValueError(NOT_FINITE)
        return model, solutions

    def _solutions(self, machine: Any, problems: list[Subproblem], limits: SolverOptions) -> list[Any]:
        """A solution of each problem."""

        def solve(C: float) -> list[SvmSolution]:
            costs = [self._costs(problem, C) for problem in problems]
            return solve_duals(machine, [problem.segments for problem in problems], costs, limits, bool(self.verbose))

        return at_cost(float(self.C), solve, machine, problems)

    def _tell(self, solutions: list[SvmSolution]) -> None:
        """Warnings about what was found."""
        if any(s.indefinite for s in solutions):
            warn(INDEFINITE_WARNING.format("a pair of points has negative curvature"))
        unsolved = [s for s in solutions if not s.converged]
        if not unsolved:
            return
        worst = max(unsolved, key=lambda s: s.gap)
        limited = 0 <= self.max_iter <= worst.n_iter
        reason = f" (max_iter={self.max_iter})" if limited else ""
        warn(
            f"Solver terminated early{reason}.  Consider pre-processing your data with StandardScaler or MinMaxScaler. "
            f"The relative duality gap is {worst.gap:.2e}, asked for tol={self.tol:g}",
            ConvergenceWarning,
        )

    def _keep_rows(self, rows: CheckedRows, model: Model) -> None:
        """Fitted attributes."""
        support, coef = rows.spread(model)
        self.support_ = support.astype(np.int32)
        self.n_support_ = np.bincount(rows.codes(support), minlength=rows.dataset.n_classes).astype(np.int32)
        self.shape_fit_ = (rows.dataset.n_samples,) if hasattr(self, "objects_") else _shape(rows)
        self.kernel_, self.vectors_ = model.expansion.kernel.fitted(rows.given[support])
        self.n_vectors_ = self.vectors_.shape[0]
        self.vector_coef_, self.intercept_ = coef, model.expansion.bias
        assert model.gap is not None
        self.objective_, self.duality_gap_ = model.objective, model.gap
        self.n_iter_ = self._steps(np.maximum(1, model.n_iter))

    def _steps(self, n_iter: Array) -> Any:
        """One number where there is one problem."""
        return int(n_iter[0])

    def _values(self, X: Any, coef: Array, bias: Array) -> Array:
        if "objects_" in vars(self):
            return self.kernel_.decision(self.objects_.values(X), self.vectors_, coef, bias)
        if not (self._sparse and self.kernel_.in_core and _are_few(X, self.vectors_)):
            return super()._values(X, coef, bias)
        # As they were when the machine was fitted: values are the same to the last bit as those of dense rows.
        X, vectors = (
            rows.toarray() if sp.issparse(rows) else rows for rows in (validation.check_data(self, X), self.vectors_)
        )
        return self.kernel_.decision(X, vectors, coef, bias, thread_count(self.n_jobs))

    @property
    def _sparse(self) -> bool:
        """Was it fitted to sparse rows?"""
        return sp.issparse(self.vectors_)

    @property
    def _gamma(self) -> float:
        """The factor in the kernel as a number."""
        return self.kernel_.gamma or 0.0

    @property
    def support_vectors_(self) -> Any:
        """The training rows that the machine keeps; nothing for a precomputed kernel."""
        return np.empty((0, 0)) if self.kernel_.keeps_rows else self.vectors_

    @property
    def dual_coef_(self) -> Any:
        """Coefficients of the support vectors; sparse where these are."""
        coef = self._packed()
        return type(self.vectors_)(coef) if self._sparse else coef

    def _packed(self) -> Array:
        """Coefficients in scikit-learn's layout."""
        return self.vector_coef_

    @property
    def coef_(self) -> Any:
        """Weights of the inputs, of a linear kernel; they cannot be changed."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        if self._sparse:
            coef = type(self.vectors_)(self.vector_coef_) @ self.vectors_
            coef.data.flags.writeable = False
            return coef
        coef = self.vector_coef_ @ self.vectors_
        coef.flags.writeable = False
        return coef

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = validation.is_precomputed(self.kernel)
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags


def _shape(rows: CheckedRows) -> tuple[int, ...]:
    n = rows.dataset.n_samples
    return (n, n if isinstance(rows.dataset.kernel, Precomputed) else rows.given.shape[1])


def _are_few(X: Any, vectors: Any) -> bool:
    """Few enough to be full tables, of rows in memory."""
    if not (sp.issparse(X) or isinstance(X, np.ndarray)) or X.ndim != 2:
        return False
    return (X.shape[0] + vectors.shape[0]) * vectors.shape[1] <= FEW


def _check_range(X: Any) -> None:
    """Squares of the inputs must be numbers."""
    data = X.data if sp.issparse(X) else X
    largest = max(float(data.max(initial=0)), -float(data.min(initial=0)))
    if largest > 1e150:
        raise ValueError(f"{NOT_FINITE}; the largest is {largest:.1e}")
