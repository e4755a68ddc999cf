"""Compression of fitted machines, and estimators that fit one and keep the small version."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.base import OutlierMixin, RegressorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import column_or_1d

from ..compression import (
    METHODS,
    Compression,
    Compressor,
    Known,
    Original,
    smallest,
    weight_vectors,
)
from ..data import Task
from ..expansion import Expansion
from ..export.quantize import Problem
from ..formulation import Array
from ..goals import Classes, Inside, Values
from ..notices import warn
from ..parts.losses import Hinge
from ..threads import thread_count
from ..vectors.probabilities import fit_probabilities, pieces_of
from ..votes import Votes
from . import validation
from .base import ExpansionModel, Judged, labels_beside, lazy_where_far
from .documentation import documented
from .originals import Source, source_of
from .probability import TOLERANCE, Layer

LABELS = ("refit", "learn")  # methods that need them


@documented
def compress(
    model: Any,
    n_vectors: Any,
    X: Any = None,
    y: Any = None,
    *,
    method: str = "auto",
    agreement: float = 0.99,
    probability: bool = False,
    sample_weight: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Any:
    """A small version of a fitted support vector machine.

    Parameters
    ----------
    model : fitted estimator
        `SVC`, `NuSVC`, `SVR`, `NuSVR` or `OneClassSVM` of scikit-learn, any classifier of this library, or a `Pipeline`
        that ends in one of them. It is not changed.
    <n_vectors_kept>
    X : array-like or sparse matrix of shape (n_samples, n_features), optional
        Rows like those that will be predicted: the training rows, or others. Labels are not needed. They go through
        the earlier steps of a pipeline.
    y : array-like of shape (n_samples,), optional
        Labels or target values of X.
    <compress_method>
    <agreement>
    <compressed_probability>
    sample_weight : array-like of shape (n_samples,), optional
        How often each row of X counts.
    <random_state>
    <n_jobs>
    <verbose>

    Returns
    -------
    `CompressedClassifier`, `CompressedRegressor` or `CompressedOutlierDetector`, fitted; or a `Pipeline` with the same
    earlier steps and one of these as the last. Its report is ``compression_``.

    See Also
    --------
    CompressedClassifier : Fits a machine and compresses it, for cross-validation.
    SlimSVC : Learns few vectors from the rows, without a large machine.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> from slimsvm import compress
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> svc = SVC(gamma=2.0).fit(X, y)
    >>> small = compress(svc, 8)
    >>> small.n_vectors_, bool((small.predict(X) == svc.predict(X)).mean() > 0.97)
    (8, True)
    """
    options = {
        "n_vectors": n_vectors,
        "method": method,
        "agreement": agreement,
        "random_state": random_state,
        "n_jobs": n_jobs,
        "verbose": verbose,
    }
    if isinstance(model, Pipeline):
        earlier, (name, last) = model[:-1], model.steps[-1]
        if X is not None and len(earlier):
            X = earlier.transform(X)
        small = compress(last, X=X, y=y, probability=probability, sample_weight=sample_weight, **options)
        return Pipeline([*model.steps[:-1], (name, small)], memory=model.memory, verbose=model.verbose)
    source = source_of(model)
    small = KINDS[type(source.goal)](clone(model), **options)
    small._ask_for_probabilities(probability)
    small._check_params()
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            setattr(small, name, getattr(model, name))
    small._compress(source, X, y, sample_weight)
    return small


class CompressedModel(ExpansionModel):
    """Fits an estimator and keeps a small version of it."""

    _goals: Any

    def __init__(
        self,
        estimator: Any = None,
        n_vectors: Any = 20,
        *,
        method: str = "auto",
        agreement: float = 0.99,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        self.estimator = estimator
        self.n_vectors = n_vectors
        self.method = method
        self.agreement = agreement
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @abstractmethod
    def _default(self) -> Any:
        """The estimator where none is given."""

    @abstractmethod
    def _checked(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Raise ValueError for data that make no sense; remember columns."""

    def _labels(self, y: Any, source: Source) -> Array:
        """Labels as the original counts them."""
        return np.asarray(column_or_1d(y), dtype=np.float64)

    def _ask_for_probabilities(self, wanted: Any) -> None:
        """Raise ValueError where there cannot be any."""
        if wanted:
            raise ValueError(f"probability={wanted!r} is for classifiers; {type(self).__name__} has no classes")

    def _check_params(self) -> None:
        count = self.n_vectors
        whole = validation.is_number(count, integer=True) and count >= 1
        fraction = validation.is_number(count) and 0 < count < 1
        if not (whole or fraction or (isinstance(count, str) and count == "auto")):
            raise ValueError(
                f"n_vectors={count!r} must be an integer of at least 1, a fraction between 0 and 1, or 'auto'"
            )
        validation.check_choice("method", self.method, ("auto", *METHODS))
        if not validation.is_number(self.agreement) or not 0 < self.agreement <= 1:
            raise ValueError(f"agreement={self.agreement!r} must be a number above 0 and at most 1")
        validation.check_threads(self.n_jobs)

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit a clone of the estimator, and compress it with the help of the same rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels or target values, where the estimator needs them.
        **fit_params : dict
            Passed on to the estimator's fit; ``sample_weight`` counts for the compression too.

        Returns
        -------
        self
        """
        fresh = self._anew()
        fresh._fit(X, y, fit_params)
        self.__dict__ = fresh.__dict__
        return self

    def _fit(self, X: Any, y: Any, fit_params: dict[str, Any]) -> None:
        self._check_params()
        if isinstance(self.estimator, Pipeline):
            raise ValueError(
                f"estimator={self.estimator!r} is a Pipeline; put the earlier steps in front: "
                f"make_pipeline(StandardScaler(), {type(self).__name__}(SVC()))"
            )
        routed = fit_params
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **fit_params).estimator.fit
        self._checked(X, y, routed.get("sample_weight"))
        fitted = clone(self._inner()).fit(X, y, **routed)
        source = source_of(fitted)
        if not isinstance(source.goal, self._goals):
            raise ValueError(f"estimator={self.estimator!r} is not for {type(self).__name__}; use {self._default()!r}")
        self._compress(source, X, y, routed.get("sample_weight"))

    def _inner(self) -> Any:
        return self._default() if self.estimator is None else self.estimator

    def get_metadata_routing(self) -> Any:
        """Where weights and other data go: to the estimator's fit.

        Returns
        -------
        MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add(estimator=self._inner(), method_mapping=mapping)

    def _compress(self, source: Source, X: Any, y: Any, sample_weight: Any) -> None:
        """Fitted attributes, from a large machine and what else is known."""
        threads = thread_count(self.n_jobs)
        known = self._known(source, X, y, sample_weight)
        original = source.original()
        method = self._method_for(original, known)
        seed = check_random_state(self.random_state).randint(2**31)
        compressor = Compressor(original, known, seed, threads, bool(self.verbose))
        small, used, note = self._small(compressor, method)
        self.compression_ = Compression.of(compressor, small, used, note)
        self._keep(source, small)
        self._finish(compressor, small, used)
        if note and used != "exact":
            warn(note)
        report = self.compression_
        if report.bytes_after > report.bytes_before:
            warn(
                f"the compressed model takes {report.bytes_after} bytes, the original {report.bytes_before}: its "
                "vectors are dense, those of the original sparse. Ask for fewer vectors, or keep the original"
            )

    def _finish(self, compressor: Compressor, small: Expansion, method: str) -> None:
        """What else is fitted over the vectors of the small machine."""

    def _known(self, source: Source, X: Any, y: Any, sample_weight: Any) -> Known | None:
        if X is None:
            for name, value in (("y", y), ("sample_weight", sample_weight)):
                if value is not None:
                    raise ValueError(f"{name} was given without X, whose rows it belongs to")
            return None
        X = validation.check_data(self, X)
        vectors = source.expansion.vectors
        if sp.issparse(X) != sp.issparse(vectors):
            X = sp.csr_array(X) if sp.issparse(vectors) else X.toarray()
        X = sp.csr_array(validation.canonical(X)) if sp.issparse(X) else X
        weight = validation.sample_weights(self, sample_weight, X)
        labels = None
        if y is not None and source.goal.labelled:
            labels = self._labels(y, source)
            if len(labels) != X.shape[0]:
                raise ValueError(f"X has {X.shape[0]} rows, y has {len(labels)} labels; they must be as many")
        X = X.astype(np.float64, copy=False)
        return Known.of(X, np.ones(X.shape[0]) if weight is None else weight, labels)

    def _method_for(self, original: Original, known: Known | None) -> str:
        labelled = known is not None and known.y is not None
        if self.method == "auto":
            # Fewer rows than vectors are not those of the training: the machine knows more than their labels.
            enough = known is not None and len(known.counts) >= original.size
            return "learn" if labelled and enough else "margin"
        if self.method in LABELS and not original.goal.labelled:
            raise ValueError(f"method={self.method!r} needs labels, which a one-class machine has not; use 'margin'")
        if self.method in LABELS and not labelled:
            raise ValueError(f"method={self.method!r} needs X and y; without labels use 'margin' or 'reduced_set'")
        return self.method

    def _small(self, compressor: Compressor, method: str) -> tuple[Expansion, str, str]:
        """The small machine, the method as it was used, and a note."""
        original = compressor.original
        if original.size < 2:
            return original.expansion, "exact", f"The original has {_count(original.size)}: it is kept as it is."
        exact = weight_vectors(original)
        if exact is not None and len(exact.coef.T) <= min(original.size, self._wanted(original)):
            return exact, "exact", "The kernel is a product: weight vectors are the same function."
        if isinstance(self.n_vectors, str):
            small, reached = smallest(compressor, METHODS[method], self.agreement)
            note = (
                f"agreement={self.agreement:g} is not reached with up to {_count(small.coef.shape[1])}, half of the "
                "original's: ask for a number of vectors, or for less agreement."
            )
            return small, method, "" if reached else note
        count = self._wanted(original)
        if count >= original.size:
            has = f"The original has {_count(original.size)}{_distinct(original)}"
            note = f"{has}, {count} were asked for: it is kept as it is."
            return original.expansion, "exact", note
        return METHODS[method](compressor, count), method, ""

    def _wanted(self, original: Original) -> int:
        """Vectors to keep at most."""
        size = original.given.vectors.shape[0]
        if isinstance(self.n_vectors, str):
            return size
        if validation.is_number(self.n_vectors, integer=True):
            return int(self.n_vectors)
        return max(1, round(self.n_vectors * size))

    def _keep(self, source: Source, small: Expansion) -> None:
        vectors = small.vectors
        dtype = source.expansion.vectors.dtype
        small = replace(small, vectors=vectors.astype(dtype, copy=False))
        self.kernel_, self.vectors_ = small.kernel.fitted(small.vectors)
        self.n_vectors_ = self.vectors_.shape[0]
        self.vector_coef_, self.intercept_ = small.coef, small.bias
        self._goal, self._cost = source.goal, source.cost

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _distinct(original: Original) -> str:
    return " that differ" if original.size < original.given.vectors.shape[0] else ""


def _count(vectors: int) -> str:
    return f"{vectors} vector{'' if vectors == 1 else 's'}"


@documented
class CompressedClassifier(Layer, Judged, CompressedModel):
    """Classifier that fits a support vector machine and keeps a small version of it.

    `compress` returns one of these, fitted; on its own it is for cross-validation and grid search.

    Parameters
    ----------
    estimator : classifier, optional
        `SVC`, `NuSVC` or a classifier of this library; None: ``SVC()``.
    <n_vectors_kept>
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

    _goals = Classes
    _goal: Classes
    classes_: Array

    def __init__(
        self,
        estimator: Any = None,
        n_vectors: Any = 20,
        *,
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

    def _labels(self, y: Any, source: Source) -> Array:
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

    def _method_for(self, original: Original, known: Known | None) -> str:
        if self.probability and (known is None or known.y is None):
            raise ValueError("probability=True needs X and y, which probabilities are fitted to; leave it out without")
        return super()._method_for(original, known)

    def _finish(self, compressor: Compressor, small: Expansion, method: str) -> None:
        """The layer of probabilities, if that is asked for."""
        if not self.probability:
            return
        rows, rng = compressor.rows, np.random.default_rng(compressor.seed)
        task = rows.task(rows.X, rows.y, self._goal.factors, compressor.threads)

        def learn(train: Task) -> tuple[Any, Any]:
            if method not in METHODS:  # vectors that no row had a part in
                return small.kernel, small.vectors
            without = METHODS[method](compressor.knowing(train), small.coef.shape[1])
            return without.kernel, without.vectors

        pieces = pieces_of(task, learn, rng)
        layer = fit_probabilities(task, small, self._cost, pieces, rng, TOLERANCE, 2.0**30, bool(self.verbose))
        for name, value in layer.items():
            setattr(self, name, value)

    def _winners(self, scores: Array) -> Array:
        return self._goal.answers(scores)

    def _keep(self, source: Source, small: Expansion) -> None:
        super()._keep(source, small)
        assert source.classes is not None
        self.classes_ = source.classes

    def _answers(self) -> tuple[Array, Votes]:
        return self.classes_, self._goal.votes

    def _shown_votes(self) -> Votes | None:
        return self._goal.shown

    def _problem(self) -> Problem:
        """That of ``method="refit"``."""
        return Problem(self._cost, lambda codes: self._goal.factors, Hinge())

    @lazy_where_far
    def decision_function(self, X: Any) -> Array:
        """Signed scores, of the shape and meaning that the original's have.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, otherwise with a column for each class or pair of classes.
        """
        fitted = self._snapshot()
        scores = fitted._scores(X)
        shown = fitted._goal.decision(scores)
        return shown[:, 0] if shown.shape[1] == 1 else shown

    @lazy_where_far
    def predict(self, X: Any) -> Array:
        """Class labels; votes and ties are counted as the original counts them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        fitted = self._snapshot()
        scores = fitted._scores(X)
        return labels_beside(scores, fitted.classes_, fitted._winners(scores))


@documented
class CompressedRegressor(RegressorMixin, CompressedModel):
    """Regressor that fits a support vector machine and keeps a small version of it.

    `compress` returns one of these, fitted; on its own it is for cross-validation and grid search.

    Parameters
    ----------
    estimator : regressor, optional
        `SVR` or `NuSVR`; None: ``SVR()``.
    <n_vectors_kept>
    <compress_method>
    <agreement>
    <random_state>
    <n_jobs>
    <verbose>

    Attributes
    ----------
    <vectors_of_one_output>
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

    _goals = Values
    _has_answers = False

    def _default(self) -> Any:
        return SVR()

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> None:
        validation.check_data(self, X, y=y, y_numeric=True)

    def predict(self, X: Any) -> Array:
        """Values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._snapshot()._scores(X)[:, 0]


@documented
class CompressedOutlierDetector(OutlierMixin, CompressedModel):
    """Outlier detector that fits a one-class support vector machine and keeps a small version of it.

    `compress` returns one of these, fitted; on its own it is for cross-validation and grid search.

    Parameters
    ----------
    estimator : outlier detector, optional
        `OneClassSVM`; None: ``OneClassSVM()``.
    <n_vectors_kept>
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
    model_bytes_ : int
        Bytes of the model on a device, as `slimsvm.export.quantize` makes it; only with the kernels rbf, laplacian and
        linear.
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

    _goals = Inside

    def _default(self) -> Any:
        return OneClassSVM()

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> None:
        validation.check_data(self, X, y="no_validation")

    def _keep(self, source: Source, small: Expansion) -> None:
        super()._keep(source, small)
        self.offset_ = -self.intercept_

    def _answers(self) -> tuple[Array, Votes]:
        return np.array([-1, 1]), Votes()

    def decision_function(self, X: Any) -> Array:
        """Values above zero are inside.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._snapshot()._scores(X)[:, 0]

    def score_samples(self, X: Any) -> Array:
        """Values without the offset: the larger, the more usual.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        fitted = self._snapshot()
        return fitted._scores(X)[:, 0] + fitted.offset_

    def predict(self, X: Any) -> Array:
        """1 for rows inside, -1 for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        fitted = self._snapshot()
        scores = fitted._scores(X)
        return fitted._goal.answers(scores)


# The estimator for what values mean.
KINDS: dict[type, type[CompressedModel]] = {
    Classes: CompressedClassifier,
    Values: CompressedRegressor,
    Inside: CompressedOutlierDetector,
}


@source_of.register(CompressedModel)
def _small_one(model: Any) -> Source:
    """A small version can be made smaller."""
    return Source(model._expansion(), model._goal, model._cost, getattr(model, "classes_", None))
