"""A classifier, and the small version of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import SVC
from sklearn.utils.validation import column_or_1d

from ...compression import METHODS, Compressor, Original, WeightedRows
from ...compression.tasks import Classification
from ...data.dataset import Dataset
from ...linalg.arrays import Array
from ...model.expansion import Expansion
from ...model.voting import Votes
from ...problem.losses import Hinge
from ...solvers.primal.refit import ClassProblem
from ...training.probabilities import calibration_folds, fit_probabilities
from ...training.slim import MIN_PROBABILITY_TOL
from .. import validation
from ..adapters import SourceModel
from ..base import KernelClassifier
from ..documentation import documented
from .model import CompressedModel


@documented
class CompressedClassifier(CompressedModel, KernelClassifier):
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

    _goals = Classification
    _goal: Classification
    classes_: Array

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
        super().__init__(
            estimator,
            n_vectors,
            fit_to=fit_to,
            method=method,
            agreement=agreement,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.probability = probability

    def _ask_for_probabilities(self, wanted: Any) -> None:
        self.probability = wanted

    def _check_params(self) -> None:
        super()._check_params()
        validation.check_yes_or_no("probability", self.probability)

    def _default(self) -> Any:
        return SVC()

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> None:
        X, y = validation.check_data(self, X, y=y)
        validation.check_targets(y)
        weight = validation.sample_weights(self, sample_weight, X)
        validation.check_classes(np.unique(y if weight is None else y[weight > 0]), weight)

    def _labels(self, y: Any, source: SourceModel) -> Array:
        """Class numbers."""
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

    def _uses_labels(self) -> bool:
        return self.probability or super()._uses_labels()

    def _method_for(self, original: Original, known: WeightedRows | None) -> str:
        if self.probability and (known is None or known.y is None):
            raise ValueError("probability=True needs X and y, which probabilities are fitted to; leave it out without")
        return super()._method_for(original, known)

    def _finish(self, compressor: Compressor, small: Expansion, method: str) -> None:
        """The layer of probabilities, if that is asked for."""
        if not self.probability:
            return
        rows, rng = compressor.rows, np.random.default_rng(compressor.seed)
        dataset = rows.dataset(rows.X, rows.y, self._goal.factors, compressor.threads)

        def learn(train: Dataset) -> tuple[Any, Any]:
            if method not in METHODS:  # vectors that no row had a part in
                return small.kernel, small.vectors
            without = METHODS[method](compressor.knowing(train), small.coef.shape[1])
            return without.kernel, without.vectors

        pieces = calibration_folds(dataset, learn, rng)
        layer = fit_probabilities(
            dataset, small, self._cost, pieces, rng, MIN_PROBABILITY_TOL, 2.0**30, bool(self.verbose)
        )
        for name, value in layer.items():
            setattr(self, name, value)

    def _keep(self, source: SourceModel, small: Expansion, cost: float) -> None:
        super()._keep(source, small, cost)
        assert source.classes is not None
        self.classes_ = source.classes

    def _labels_and_votes(self) -> tuple[Array, Votes]:
        return self.classes_, self._goal.votes

    def _decision_votes(self) -> Votes | None:
        return self._goal.shown

    def _refit_problem(self) -> ClassProblem:
        """That of ``method="refit"``."""
        return ClassProblem(self._cost, lambda codes: self._goal.factors, Hinge())
