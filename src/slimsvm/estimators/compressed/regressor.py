"""A regressor that is fitted and compressed."""

from __future__ import annotations

from typing import Any

from sklearn.svm import SVR
from sklearn.utils import get_tags

from ...compression import RegressionRefit, target_columns
from ...compression.tasks import Regression
from ...linalg.arrays import Array
from ...solvers.primal.refit import Refit
from .. import validation
from ..adapters import SourceModel
from ..base import KernelRegressor, atomic
from ..documentation import documented
from . import training
from .training import CompressedFit, CompressedKind


def target_values(y: Any, source: SourceModel) -> Array:
    """Target values, a column for each target."""
    return target_columns(y, len(source.expansion.bias))


@documented
class CompressedRegressor(KernelRegressor):
    """Regressor that fits a support vector machine and keeps a small version of it.

    `compress` returns one of these, fitted; on its own it is for cross-validation and grid search.

    Parameters
    ----------
    estimator : regressor, optional
        `SVR`, `NuSVR` or `SlimSVR`; None: ``SVR()``. Targets may have columns where the estimator takes them.
    <n_vectors_kept>
    <fit_to>
    <compress_method>
    <agreement>
    <random_state>
    <n_jobs>
    <verbose>

    Attributes
    ----------
    vectors_ : ndarray or sparse matrix of shape (n_vectors_, n_features_in_)
        All targets share them.
    vector_coef_ : ndarray of shape (n_outputs, n_vectors_)
        ``f = vector_coef_ @ k(vectors_, x) + intercept_``, an output for each target.
    intercept_ : ndarray of shape (n_outputs,)
    n_vectors_ : int
    <model_bytes_>
    <kernel_>
    <compression_>

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.svm import SVR
    >>> from slimsvm import CompressedRegressor
    >>> X, y = make_friedman1(500, noise=1.0, random_state=0)
    >>> model = CompressedRegressor(SVR(C=10.0), n_vectors=30).fit(X, y)
    >>> model.n_vectors_, bool(model.score(X, y) > 0.9)
    (30, True)
    """

    _kind = CompressedKind(Regression, SVR, target_values)
    _goal: Any  # a Regression
    _cost: float

    def __init__(
        self,
        estimator: Any = None,
        n_vectors: Any = 20,
        *,
        fit_to: str = "auto",
        method: str = "auto",
        agreement: float = 0.99,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        self.estimator = estimator
        self.n_vectors = n_vectors
        self.fit_to = fit_to
        self.method = method
        self.agreement = agreement
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @atomic
    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit a clone of the estimator, and compress it with the help of the same rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Target values.
        **fit_params : dict
            Passed on to the estimator's fit; ``sample_weight`` counts for the compression too.

        Returns
        -------
        self
        """
        training.check_params(self)
        self._set_compressed(training.fit_inner(self, X, y, fit_params, self._check_data))

    def _check_data(self, X: Any, y: Any, sample_weight: Any) -> None:
        validation.check_data(self, X, y=y, y_numeric=True, multi_output=self._takes_columns)

    @property
    def _takes_columns(self) -> bool:
        return bool(get_tags(training.inner_estimator(self)).target_tags.multi_output)

    def _set_compressed(self, fit: CompressedFit) -> None:
        self._set_expansion(fit.expansion)
        self.compression_, self._goal, self._cost = fit.report, fit.source.task, fit.cost
        self.__dict__.pop("_single", None)  # of an earlier fit; kept with a model only where targets have columns
        if not fit.source.single:
            self._single = False

    def _refit_problem(self) -> Refit:
        """Coefficients are fitted to targets with the original's loss and a penalty on the distance to the model."""
        return RegressionRefit(self._goal, self._cost)

    get_metadata_routing = training.get_metadata_routing

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._takes_columns
        return tags
