"""An outlier detector, and the small version of it."""

from __future__ import annotations

from typing import Any

from sklearn.svm import OneClassSVM

from ...compression.tasks import OneClass
from ...model.expansion import Expansion
from .. import validation
from ..adapters import SourceModel
from ..base import OutlierDetector
from ..documentation import documented
from .model import CompressedModel


@documented
class CompressedOutlierDetector(CompressedModel, OutlierDetector):
    """Outlier detector that fits a one-class support vector machine and keeps a small version of it.

    `compress` returns one of these, fitted; on its own it is for cross-validation and grid search.

    Parameters
    ----------
    estimator : outlier detector, optional
        `OneClassSVM`; None: ``OneClassSVM()``.
    <n_vectors_kept>
    <fit_to_decisions>
    <compress_method>
    <agreement>
    <random_state>
    <n_jobs>
    <verbose>

    Attributes
    ----------
    <vectors_of_one_output>
    offset_ : ndarray of shape (1,)
        ``decision_function(X) = score_samples(X) - offset_``.
    <model_bytes_>
    <kernel_>
    <compression_>

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import OneClassSVM
    >>> from slimsvm import CompressedOutlierDetector
    >>> X, _ = make_moons(500, noise=0.1, random_state=0)
    >>> detector = CompressedOutlierDetector(OneClassSVM(nu=0.1), n_vectors=10).fit(X)
    >>> detector.predict([[0.0, 1.0], [3.0, 3.0]]).tolist()
    [1, -1]
    """

    _goals = OneClass

    def _default(self) -> Any:
        return OneClassSVM()

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> None:
        validation.check_data(self, X, y="no_validation")

    def _keep(self, source: SourceModel, small: Expansion, cost: float) -> None:
        super()._keep(source, small, cost)
        self.offset_ = -self.intercept_
