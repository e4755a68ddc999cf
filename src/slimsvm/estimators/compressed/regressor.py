"""A regressor, and the small version of it."""

from __future__ import annotations

from typing import Any

from sklearn.svm import SVR
from sklearn.utils import get_tags

from ...compression import Relearned, in_columns
from ...compression.tasks import Regression
from ...linalg.arrays import Array
from ...model.expansion import Expansion
from ...solvers.primal.refit import Refit
from ...utils.warnings import warn
from .. import validation
from ..adapters import SourceModel
from ..base import KernelRegressor
from ..documentation import documented
from .model import CompressedModel

FAR = 0.3  # of a norm: values that are this far off elsewhere are of little use


@documented
class CompressedRegressor(CompressedModel, KernelRegressor):
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

    _goals = Regression

    def _default(self) -> Any:
        return SVR()

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> None:
        validation.check_data(self, X, y=y, y_numeric=True, multi_output=self._takes_columns)

    @property
    def _takes_columns(self) -> bool:
        return bool(get_tags(self._inner()).target_tags.multi_output)

    def _labels(self, y: Any, source: SourceModel) -> Array:
        return in_columns(y, len(source.expansion.bias))

    def _keep(self, source: SourceModel, small: Expansion, cost: float) -> None:
        super()._keep(source, small, cost)
        self.__dict__.pop("_single", None)  # of an earlier fit; kept with a model only where not
        if not source.single:
            self._single = False

    def _tell_of_distance(self) -> None:
        if self.compression_.distance > FAR:
            warn(
                f"the small model is {self.compression_.distance:.2f} of the original's norm away from it, and without "
                "rows only its own vectors could be looked at: pass rows like those to be predicted, compress(model, "
                "n_vectors, X), or keep more vectors"
            )

    def _refit_problem(self) -> Refit:
        """Targets are met as the original meets them; for the rest, the model stays what it is."""
        return Relearned(self._goal, self._cost)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._takes_columns
        return tags
