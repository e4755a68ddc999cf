"""What every estimator here shares: checked input, one fitted state, prediction."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from functools import update_wrapper, wraps
from types import MethodType
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..data.dataset import Dataset, class_signs, outputs
from ..linalg.array_api import asarray_like, is_array_api, namespace, stays_on_device, to_numpy
from ..linalg.arrays import Array
from ..model.expansion import Expansion, Model
from ..model.inference import ProbabilityLayer
from ..model.voting import Votes
from ..problem.formulation import Part
from ..problem.kernels import Scaled
from ..quantization.quantize import model_bytes
from ..rows import device as there
from ..rows.blocks import is_block_source
from ..rows.dask_partitions import is_dask
from ..rows.dask_rows import map_predictions
from ..rows.remote import RemoteRows
from ..rows.target_kinds import CLASSES, TargetKind
from ..solvers.primal.refit import Refit
from ..utils.threads import thread_count
from ..utils.warnings import warn
from . import checked_data, validation

# Coefficients that are mostly zero are pickled as a sparse matrix if there are at least so many of them.
MANY = 10_000
# Rows from which on the core shares predictions among threads.
SHARED = 256


class offered:
    """A method for some estimators, such as those with probabilities; on others it is no attribute, and the error says
    why: the method ``lacks`` does."""

    def __init__(self, method: Callable[..., Any], lacks: str = "_lacks_probabilities"):
        self.method, self.lacks = method, lacks
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self.method
        reason = getattr(estimator, self.lacks)()
        if reason:
            raise AttributeError(reason)
        return MethodType(self.method, estimator)


def lazy_where_far(method: Callable[..., Array]) -> Callable[..., Array]:
    """A method that answers for rows; those of a dask collection are answered when the result is computed."""

    @wraps(method)
    def answer(self: Any, X: Any) -> Any:
        return map_predictions(self._snapshot(), method.__name__, X) if is_dask(X) else method(self, X)

    return answer


def labels_beside(scores: Any, classes: Array, winners: Any) -> Any:
    """Labels of class numbers, where the scores are; words are here."""
    if not is_array_api(scores):
        return classes[winners]
    if classes.dtype.kind not in "iufb":
        return classes[to_numpy(winners)]
    return namespace(scores).take(asarray_like(scores, classes), winners, axis=0)


class ExpansionModel(BaseEstimator):
    """An estimator whose values are an expansion over `vectors_`: what needs no more than that."""

    def _anew(self) -> Any:
        """An object with the same parameters, not fitted."""
        fresh = object.__new__(type(self))
        fresh.__dict__.update({name: value for name, value in vars(self).items() if not name.endswith("_")})
        return fresh

    def _snapshot(self) -> Any:
        """This estimator with the state that it has now, whatever is fitted meanwhile."""
        now = object.__new__(type(self))
        now.__dict__ = self.__dict__
        return now

    def _expansion(self) -> Expansion:
        """The fitted model."""
        check_is_fitted(self)
        return Expansion(self.kernel_, self.vectors_, self.vector_coef_, self.intercept_)

    def _scores(self, X: Any) -> Array:
        if "vector_coef_" not in vars(self):
            check_is_fitted(self)  # it looks at every attribute
        return self._values(X, self.vector_coef_, self.intercept_)

    def _values(self, X: Any, coef: Array, bias: Array) -> Array:
        """Values of outputs over the vectors, one row for each row of X."""
        if is_block_source(X):
            return np.concatenate([self._values(rows, coef, bias) for rows in validation.rows_of(self, X)])
        if stays_on_device(X):
            X = validation.check_there(self, X)
            return there.device_decision(self.kernel_, X, self.vectors_, coef, bias)
        X = validation.check_data(self, X)
        threads = thread_count(self.n_jobs) if X.shape[0] >= SHARED else 1
        return self.kernel_.decision(X, self.vectors_, coef, bias, threads)

    def _answers(self) -> tuple[Array | None, Votes | None]:
        """Labels, and how values become one of them; None where the values themselves are the answer."""
        return None, None

    def _shown_votes(self) -> Votes | None:
        """The votes whose scores `decision_function` shows; None: it shows the values."""
        return None

    def _probability_layer(self) -> ProbabilityLayer | None:
        """What gives probabilities, if there are any."""
        return None

    def _problem(self) -> Refit:
        """What a refit of the coefficients solves."""
        raise ValueError(
            f"{type(self).__name__} has no problem of its own over vectors that are given: leave out X and y, and its "
            "coefficients are projected"
        )

    @property
    def model_bytes_(self) -> int:
        """Bytes of the model on a device: 8-bit vectors, 16-bit coefficients and all else that it needs.

        Only where the kernel has a fixed-point form, see `slimsvm.export.quantize`.
        """
        if "vector_coef_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} is not fitted yet; model_bytes_ is there after fit")
        try:
            return model_bytes(self)
        except ValueError as error:
            raise AttributeError(f"no model_bytes_: {error}") from None

    def set_params(self, **params: Any) -> Any:
        """Set parameters, also those of parts: ``set_params(kernel__gamma=0.5)``.

        A part is replaced, not changed: other estimators may have the same object.

        Parameters
        ----------
        **params : dict
            Values by name.

        Returns
        -------
        self
        """
        inner: dict[str, dict[str, Any]] = {}
        own = {}
        for key, value in params.items():
            name, _, rest = key.partition("__")
            if rest and isinstance(params.get(name, getattr(self, name, None)), Part):
                inner.setdefault(name, {})[rest] = value
            else:
                own[key] = value
        super().set_params(**own)
        for name, changes in inner.items():
            setattr(self, name, getattr(self, name).with_params(**changes))
        return self

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        coef = state.get("vector_coef_")
        if coef is not None and coef.size >= MANY and np.count_nonzero(coef) < coef.size / 3:
            state = {**state, "vector_coef_": sp.csr_array(coef)}
        return state

    def __setstate__(self, state: Any) -> None:
        if sp.issparse(state.get("vector_coef_")):
            state = {**state, "vector_coef_": state["vector_coef_"].toarray()}
        super().__setstate__(state)


class Probabilities(ExpansionModel):
    """`predict_proba` and `predict_log_proba`, where there are probabilities."""

    @offered
    @lazy_where_far
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes; `predict` gives the class of the highest one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), in the order of ``classes_``.
        """
        found = self._snapshot()._log_probabilities(X)
        return namespace(found).exp(found)

    @offered
    @lazy_where_far
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the classes' probabilities, which stay finite where these would be rounded to 0.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), in the order of ``classes_``.
        """
        return self._snapshot()._log_probabilities(X)

    def _lacks_probabilities(self) -> str | None:
        """Why there are none, in words; None if there are."""
        name = type(self).__name__
        return (
            f"{name} has no probabilities. Calibrate its decision values: "
            f"sklearn.calibration.CalibratedClassifierCV({name}(...), ensemble=False); or use SlimSVC, which has some"
        )

    def _log_probabilities(self, X: Any) -> Array:
        raise NotImplementedError


class Scored:
    """An estimator that is judged by rows wherever they are."""

    predict: Callable[[Any], Any]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """How good predictions are: the share of rows that are right, by weight, or R^2 where targets are numbers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or (n_samples, n_outputs) of several targets
            True labels. Left out where the rows have their labels with them (`slimsvm.rows`).
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        if is_block_source(X) and y is None:
            y, own = validation.labels_of(X)
            if own is not None and sample_weight is not None:
                raise ValueError(f"{X!r} has its weights with it: score(rows), without sample_weight")
            sample_weight = own if sample_weight is None else sample_weight
        # Answers and labels come here, rows do not.
        given: tuple[Any, ...] = y, self.predict(X), sample_weight
        y, found, sample_weight = (v.compute() if is_dask(v) else to_numpy(v) for v in given)
        return self._score_of(y, found, sample_weight)

    def _score_of(self, y: Any, found: Any, weight: Any) -> float:
        raise NotImplementedError


class Judged(Scored, ClassifierMixin):
    """A classifier."""

    def _score_of(self, y: Any, found: Any, weight: Any) -> float:
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, found, sample_weight=weight))


class TrainedModel(ExpansionModel, metaclass=ABCMeta):
    """An expansion that is trained on rows; subclasses say how, and what their labels are."""

    merges_copies = True  # are equal rows of a class one row that carries their weights?
    label_checks: ClassVar[dict[str, bool]] = {}  # of scikit-learn, beyond the usual ones

    @abstractmethod
    def _check_params(self) -> None:
        """Raise ValueError for parameters that make no sense."""

    @abstractmethod
    def _labelled(self, y: Any, counts: Any, weight: Any) -> dict[str, Any]:
        """What labels are to a `Dataset`, by its fields; ValueError where they make no sense. ``counts`` say how often
        rows count, ``weight`` what the user gave for it."""

    @abstractmethod
    def _labelled_apart(self, X: Any, weight: Any) -> Array:
        """Weights of the classes of rows that are not in memory."""

    @property
    def wants(self) -> TargetKind:
        """What labels are."""
        return CLASSES

    @abstractmethod
    def _train(self, dataset: Dataset) -> Model:
        """The model for checked data."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; for ``kernel="precomputed"`` the square kernel matrix. Machines over few vectors also take
            labelled rows of files, see `slimsvm.rows`, and dask arrays and dataframes, whose rows stay where they are.
        y : array-like of shape (n_samples,), or (n_samples, n_outputs) of several targets
            Class labels, of any type, or numbers to regress on. Left out where the rows have their labels with them.
        sample_weight : array-like of shape (n_samples,), optional
            Weight 0 is the same as leaving the row out, weight k as k copies of it.

        Returns
        -------
        self
        """
        # All happens on another object, whose state then replaces this one's at once: a fit that fails or is
        # interrupted leaves nothing half-done, and predictions in other threads see the old model or the new one.
        fresh = self._anew()
        fresh._fit(X, y, sample_weight)
        self.__dict__ = fresh.__dict__
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._check_params()
        dataset = checked_data.checked_dataset(self, X, y, sample_weight, self.merges_copies)
        try:
            self._fit_to(dataset)
        finally:
            if isinstance(dataset.X, RemoteRows):
                dataset.X.close()

    def _fit_to(self, dataset: Dataset) -> None:
        names = getattr(self, "feature_names_in_", None)
        complaints = [validation.scale_complaint(dataset.X, self.kernel, names)]
        model = self._train(dataset)
        # Learned scales are as they should be: what may be odd is the kernel that they were learned for.
        kernel: Any = model.expansion.kernel
        learned = isinstance(kernel, Scaled) and kernel is not dataset.kernel
        complaints.append(validation.kernel_complaint(kernel.kernel if learned else kernel, dataset.X))
        for complaint in filter(None, complaints):
            warn(complaint)
        self._keep(dataset, model)

    def _keep(self, dataset: Dataset, model: Model) -> None:
        """Fitted attributes."""
        machine = model.expansion
        self.kernel_, self.vectors_ = machine.kernel.fitted(machine.vectors)
        if model.rows is not None:
            self.support_ = model.rows
        self.n_vectors_ = self.vectors_.shape[0]
        self.vector_coef_, self.intercept_ = machine.coef, machine.bias
        self.objective_ = model.objective
        if model.gap is not None:
            self.duality_gap_: Array = model.gap
        self.n_iter_ = np.maximum(1, model.n_iter)
        for name, value in model.more.items():
            setattr(self, name, value)

    def _fitted(self, dataset: Dataset, model: Model) -> Any:
        """An estimator like this one that has this model; what is known of the inputs stays known."""
        fresh = object.__new__(type(self))
        known = ("n_features_in_", "feature_names_in_")
        fresh.__dict__.update({k: v for k, v in vars(self).items() if not k.endswith("_") or k in known})
        fresh._keep(dataset, model)
        return fresh

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = validation.is_precomputed(self.kernel)
        return tags


class ExpansionClassifier(Judged, Probabilities, TrainedModel):
    """A classifier whose decision values are an expansion over `vectors_`; subclasses say how it is trained."""

    decision_function_shape = "ovr"

    def _labelled(self, y: Any, counts: Any, weight: Any) -> dict[str, Any]:
        return checked_data.of_classes(self.class_weight, y, counts, weight)

    def _labelled_apart(self, X: Any, weight: Any) -> Array:
        return checked_data.factors_apart(self.class_weight, X, weight)

    def _keep(self, dataset: Dataset, model: Model) -> None:
        self.classes_ = dataset.classes
        # A change of parameters is for the next fit.
        self._votes = Votes(pairs=dataset.n_classes > 2 and self._scheme() == "ovo")
        self._factors = dataset.factors
        super()._keep(dataset, model)

    @lazy_where_far
    def decision_function(self, X: Any) -> Array:
        """Signed scores; binary: positive means ``classes_[1]``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, otherwise (n_samples, n_classes), or one
        column for each pair of classes where ``decision_function_shape="ovo"``.
        """
        fitted = self._snapshot()
        scores = fitted._scores(X)
        shown = fitted._shown_votes()
        if shown is not None:
            return shown.scores(scores, len(fitted.classes_))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @lazy_where_far
    def predict(self, X: Any) -> Array:
        """Class labels: the class with the highest score.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        fitted = self._snapshot()
        scores = fitted._scores(X)  # first: it says what is missing before fit
        return labels_beside(scores, fitted.classes_, fitted._winners(scores))

    def _answers(self) -> tuple[Array, Votes]:
        return self.classes_, self._votes

    def _shown_votes(self) -> Votes | None:
        return self._votes if len(self.intercept_) > 1 and self.decision_function_shape == "ovr" else None

    def _margins(self, scores: Array, labels: Array) -> Array:
        """The least ``y f`` of each row over the binary problems that its class takes part in; minus infinity for
        classes that are not known."""
        codes = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
        side = class_signs(len(self.classes_), outputs(len(self.classes_), "ovo" if self._votes.pairs else "ovr"))[
            codes
        ]
        least = np.where(side == 0, np.inf, side * scores).min(axis=1)
        return np.where(self.classes_[codes] == labels, least, -np.inf)

    def _scheme(self) -> str:
        """Pairs of classes ("ovo"), or each class against the others ("ovr")."""
        return self.multi_class

    def _winners(self, scores: Array) -> Array:
        """Numbers of the classes that are predicted."""
        return self._votes.leaders(scores, len(self.classes_))
