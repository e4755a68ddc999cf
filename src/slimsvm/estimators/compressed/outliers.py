"""An outlier detector that is fitted and compressed."""

from __future__ import annotations

from typing import Any

from sklearn.svm import OneClassSVM

from ...compression.tasks import OneClass
from .. import validation
from ..base import OutlierDetector, atomic
from ..documentation import documented
from . import training
from .training import CompressedFit, CompressedKind


@documented
class CompressedOutlierDetector(OutlierDetector):
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

    _kind = CompressedKind(OneClass, OneClassSVM)

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
        y : Ignored
        **fit_params : dict
            Passed on to the estimator's fit; ``sample_weight`` counts for the compression too.

        Returns
        -------
        self
        """
        training.check_params(self)
        self._set_compressed(training.fit_inner(self, X, y, fit_params, self._check_data))

    def _check_data(self, X: Any, y: Any, sample_weight: Any) -> None:
        validation.check_data(self, X, y="no_validation")

    def _set_compressed(self, fit: CompressedFit) -> None:
        self._set_expansion(fit.expansion)
        self.compression_, self._goal, self._cost = fit.report, fit.source.task, fit.cost
        self.offset_ = -self.intercept_

    get_metadata_routing = training.get_metadata_routing
