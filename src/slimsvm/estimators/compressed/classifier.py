"""A classifier that is fitted and compressed."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import SVC
from sklearn.utils.validation import column_or_1d

from ...compression.tasks import Classification
from ...linalg.arrays import Array
from ...model.voting import Votes
from ...problem.losses import Hinge
from ...solvers.primal.refit import ClassProblem
from .. import validation
from ..adapters import SourceModel
from ..base import KernelClassifier, atomic
from ..documentation import documented
from . import training
from .training import CompressedFit, CompressedKind


def class_codes(y: Any, source: SourceModel) -> Array:
    """Class numbers; every class of the model must have a row."""
    assert source.classes is not None
    numbers = {label: number for number, label in enumerate(source.classes.tolist())}
    labels = column_or_1d(y).tolist()
    unknown = sorted({str(label) for label in labels if label not in numbers})
    if unknown:
        raise ValueError(f"y has labels that the model does not know: {unknown[:5]}; it has {list(numbers)}")
    codes = np.array([numbers[label] for label in labels], dtype=np.intp)
    missing = [label for label, number in numbers.items() if number not in set(codes.tolist())]
    if missing:
        raise ValueError(f"y has no row of the classes {missing}: give rows of every class, or leave y out")
    return codes


@documented
class CompressedClassifier(KernelClassifier):
    """Classifier that fits a support vector machine and keeps a small version of it.

    `compress` returns one of these, fitted; on its own it is for cross-validation and grid search.

    Parameters
    ----------
    estimator : classifier, optional
        `SVC`, `NuSVC` or a classifier of this library; None: ``SVC()``.
    <n_vectors_kept>
    <fit_to>
    <compress_method>
    <agreement>
    <compressed_probability>
    <random_state>
    <n_jobs>
    <verbose>

    Attributes
    ----------
    <vectors_>
    <kernel_>
    <compression_>
    <probability_coef_>

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> from slimsvm import CompressedClassifier
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> clf = CompressedClassifier(SVC(gamma=2.0), n_vectors=8).fit(X, y)
    >>> clf.n_vectors_, bool(clf.score(X, y) > 0.95)
    (8, True)
    """

    _kind = CompressedKind(Classification, SVC, class_codes)
    _goal: Any  # a Classification
    _cost: float

    def __init__(
        self,
        estimator: Any = None,
        n_vectors: Any = 20,
        *,
        fit_to: str = "auto",
        method: str = "auto",
        agreement: float = 0.99,
        probability: bool = False,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        self.estimator = estimator
        self.n_vectors = n_vectors
        self.fit_to = fit_to
        self.method = method
        self.agreement = agreement
        self.probability = probability
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
        y : array-like of shape (n_samples,)
            Class labels.
        **fit_params : dict
            Passed on to the estimator's fit; ``sample_weight`` counts for the compression too.

        Returns
        -------
        self
        """
        training.check_params(self)
        self._set_compressed(training.fit_inner(self, X, y, fit_params, self._check_data))

    def _check_data(self, X: Any, y: Any, sample_weight: Any) -> None:
        X, y = validation.check_data(self, X, y=y)
        validation.check_targets(y)
        weight = validation.sample_weights(self, sample_weight, X)
        validation.check_classes(np.unique(y if weight is None else y[weight > 0]), weight)

    def _set_compressed(self, fit: CompressedFit) -> None:
        self._set_expansion(fit.expansion)
        assert fit.source.classes is not None
        self.classes_ = fit.source.classes
        self.compression_, self._goal, self._cost = fit.report, fit.source.task, fit.cost
        for name, value in fit.layer.items():
            setattr(self, name, value)

    def _labels_and_votes(self) -> tuple[Array, Votes]:
        return self.classes_, self._goal.votes

    def _decision_votes(self) -> Votes | None:
        return self._goal.shown

    def _refit_problem(self) -> ClassProblem:
        """That of ``method="refit"``."""
        return ClassProblem(self._cost, lambda codes: self._goal.factors, Hinge())

    get_metadata_routing = training.get_metadata_routing
