"""The regressors of `sklearn.svm`: `SVR` and `NuSVR`."""

from __future__ import annotations

from typing import Any

from ...solvers.dual.sklearn_svm import nu_regression, regression
from .. import validation
from ..base import KernelRegressor, atomic
from ..documentation import documented
from . import layout
from .rows import SvmRegression, SvmRows, checked_rows
from .training import SvmSpec, TrainedSvm, check_params, train_svm, warn_unsolved


class SvmRegressor(KernelRegressor):
    """A regressor of one target over all rows; subclasses define the problem."""

    C: float

    def _check_params(self) -> None:
        """Raise ValueError for parameters that make no sense."""
        check_params(self)

    def _spec(self) -> SvmSpec:
        """What is solved."""
        raise NotImplementedError

    @atomic
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the regressor.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; for ``kernel="precomputed"`` the square kernel matrix; for a function as kernel whatever that
            function takes.
        y : array-like of shape (n_samples,)
            Target values.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C for each row: weight k is k copies. Rows of weight 0 or less are left out.

        Returns
        -------
        self
        """
        self._check_params()
        rows = checked_rows(self, X, y, sample_weight, SvmRegression())
        self._set_svm(rows, train_svm(rows.dataset, self._spec()))

    def _set_svm(self, rows: SvmRows, trained: TrainedSvm) -> None:
        warn_unsolved(trained, self)
        layout.set_svm(self, rows, trained)

    _values = layout.svm_values
    _sparse = property(layout.is_sparse)
    _gamma = property(layout.gamma)
    support_vectors_ = property(layout.support_vectors)
    dual_coef_ = property(layout.dual_coef)
    coef_ = property(layout.linear_coef)

    def __sklearn_tags__(self) -> Any:
        return layout.without_sparse_matrices(super().__sklearn_tags__())


@documented
class SVR(SvmRegressor):
    """Support vector regression with a tube: `sklearn.svm.SVR`, solved to a certified duality gap.

    Minimises ``1/2 |f|^2 + C sum_i w_i max(0, |y_i - f(x_i) - b| - epsilon)``.

    Parameters
    ----------
    <kernel>
    <degree_first>
    C : float, default=1.0
        Cost of errors beyond the tube, above 0; ``inf``: none is allowed.
    epsilon : float, default=0.1
        Errors up to this cost nothing.
    <family>

    Attributes
    ----------
    <family_layout>
    <family_objective>
    <kernel_>

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from slimsvm import SVR
    >>> X, y = make_friedman1(200, random_state=0)
    >>> model = SVR(C=100).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), bool(model.duality_gap_[0] <= 1e-3)
    (True, True)
    """

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
    ):
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def _check_params(self) -> None:
        super()._check_params()
        validation.check_cost(self.C)
        validation.check_number("epsilon", self.epsilon, at_least=0)

    def _spec(self) -> SvmSpec:
        tube = float(self.epsilon)
        return SvmSpec.of(self, lambda problem, C: regression(problem.y, C, tube, problem.weights), self.C)


@documented
class NuSVR(SvmRegressor):
    """Support vector regression with a bound on the part of rows outside the tube: `sklearn.svm.NuSVR`.

    Minimises ``1/2 |f|^2 + C (n nu e + sum_i w_i max(0, |y_i - f(x_i) - b| - e))`` over f, b and the tube's width e.

    Parameters
    ----------
    nu : float, default=0.5
        At most this part of the rows are outside the tube, and at least this part are vectors; in (0, 1].
    C : float, default=1.0
        Cost of errors beyond the tube, above 0.
    <kernel>
    <degree_first>
    <family>

    Attributes
    ----------
    <family_layout>
    <family_objective>
    <kernel_>

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from slimsvm import NuSVR
    >>> X, y = make_friedman1(200, random_state=0)
    >>> model = NuSVR(nu=0.3, C=100).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
    ):
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def _check_params(self) -> None:
        super()._check_params()
        validation.check_number("C", self.C, above=0)
        validation.check_share("nu", self.nu)

    def _spec(self) -> SvmSpec:
        nu = float(self.nu)
        return SvmSpec.of(self, lambda problem, C: nu_regression(problem.y, C, nu, problem.weights), self.C)
