"""The base classes of all estimators: values of an expansion wherever rows are, one fitted state, predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import update_wrapper, wraps
from types import MethodType
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..data.dataset import Dataset
from ..linalg.array_api import asarray_like, is_array_api, namespace, stays_on_device, to_numpy
from ..linalg.arrays import Array
from ..model.expansion import Expansion, Model
from ..model.inference import ProbabilityLayer
from ..model.probabilities import align_with_winners, log_probabilities
from ..model.voting import Votes
from ..problem.formulation import Part
from ..quantization.quantize import model_bytes
from ..rows.blocks import is_block_source
from ..rows.dask_partitions import is_dask
from ..rows.dask_rows import map_predictions
from ..rows.device import device_decision
from ..solvers.primal.refit import Refit
from ..utils.threads import thread_count
from . import validation

# At least this many coefficients are pickled as a sparse matrix if most are zero.
MIN_SPARSE_COEFFICIENTS = 10_000
MIN_ROWS_FOR_THREADS = 256  # from which on the core shares predictions among threads
COLUMNS_KNOWN = ("n_features_in_", "feature_names_in_")
RELATIVE_BORDER = 1e-12  # of an outlier detector's offset: rounding errors of its values


# --- decorators of methods ------------------------------------------------------------------------------------------


class available_if:
    """A method that is an attribute only where ``check(estimator)`` raises no AttributeError.

    Users see the message of that error; scikit-learn's `available_if` would replace it by a generic one.
    """

    def __init__(self, check: Callable[[Any], None]):
        self.check = check

    def __call__(self, method: Callable[..., Any]) -> Any:
        return _Conditional(method, self.check)


class _Conditional:
    def __init__(self, method: Callable[..., Any], check: Callable[[Any], None]):
        self.method, self.check = method, check
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self.method
        self.check(estimator)
        return MethodType(self.method, estimator)


def lazy_on_dask(method: Callable[..., Array]) -> Callable[..., Array]:
    """Make a prediction method lazy for dask collections: it runs when the result is computed."""

    @wraps(method)
    def predicted(self: Any, X: Any) -> Any:
        return map_predictions(self._snapshot(), method.__name__, X) if is_dask(X) else method(self, X)

    return predicted


def atomic(method: Callable[..., Any]) -> Callable[..., Any]:
    """A `fit` that runs on an unfitted copy, whose state then replaces the estimator's at once: a fit that fails or is
    interrupted changes nothing, and predictions in other threads see the old model or the new one."""

    @wraps(method)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        fresh = self._unfitted_copy()
        method(fresh, *args, **kwargs)
        self.__dict__ = fresh.__dict__
        return self

    return fit


# --- all estimators -------------------------------------------------------------------------------------------------


class KernelModel(BaseEstimator):
    """An estimator whose values are an expansion over `vectors_`."""

    n_jobs: int | None

    def _unfitted_copy(self) -> Any:
        fresh = object.__new__(type(self))
        fresh.__dict__.update({name: value for name, value in vars(self).items() if not name.endswith("_")})
        return fresh

    def _snapshot(self) -> Any:
        """A copy with the current state, which a concurrent fit does not change."""
        now = object.__new__(type(self))
        now.__dict__ = self.__dict__
        return now

    def _set_expansion(self, expansion: Expansion) -> None:
        """Set the fitted attributes that values are computed from."""
        self.kernel_, self.vectors_ = expansion.kernel.fitted(expansion.vectors)
        self.n_vectors_ = self.vectors_.shape[0]
        self.vector_coef_, self.intercept_ = expansion.coef, expansion.bias

    def _set_fitted(self, dataset: Dataset, model: Model) -> Any:
        """Set all fitted attributes from a model of these rows."""
        self._set_expansion(model.expansion)
        if model.rows is not None:
            self.support_ = model.rows
        self.objective_ = model.objective
        if model.gap is not None:
            self.duality_gap_: Array = model.gap
        self.n_iter_ = np.maximum(1, model.n_iter)
        for name, value in model.more.items():
            setattr(self, name, value)
        return self

    def _expansion(self) -> Expansion:
        """The fitted model."""
        check_is_fitted(self)
        return Expansion(self.kernel_, self.vectors_, self.vector_coef_, self.intercept_)

    def _scores(self, X: Any) -> Array:
        """Values of all outputs, one row for each row of X."""
        if "vector_coef_" not in vars(self):
            check_is_fitted(self)  # it looks at every attribute
        return self._values(X, self.vector_coef_, self.intercept_)

    def _values(self, X: Any, coef: Array, bias: Array) -> Array:
        """Values of outputs over the vectors, one row for each row of X."""
        if is_block_source(X):
            return np.concatenate([self._values(rows, coef, bias) for rows in validation.rows_of(self, X)])
        if stays_on_device(X):
            X = validation.check_device_rows(self, X)
            return device_decision(self.kernel_, X, self.vectors_, coef, bias)
        X = validation.check_data(self, X)
        threads = thread_count(self.n_jobs) if X.shape[0] >= MIN_ROWS_FOR_THREADS else 1
        return self.kernel_.decision(X, self.vectors_, coef, bias, threads)

    def _labels_and_votes(self) -> tuple[Array | None, Votes | None]:
        """Labels, and how values become one of them; None where the values themselves are predicted."""
        return None, None

    def _decision_votes(self) -> Votes | None:
        """The votes whose scores `decision_function` shows; None: it shows the values."""
        return None

    def _probability_layer(self) -> ProbabilityLayer | None:
        """The fitted probability layer; None if there is none."""
        return None

    def _refit_problem(self) -> Refit:
        """The problem that a refit of the coefficients solves."""
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
        if coef is not None and coef.size >= MIN_SPARSE_COEFFICIENTS and np.count_nonzero(coef) < coef.size / 3:
            state = {**state, "vector_coef_": sp.csr_array(coef)}
        return state

    def __setstate__(self, state: Any) -> None:
        if sp.issparse(state.get("vector_coef_")):
            state = {**state, "vector_coef_": state["vector_coef_"].toarray()}
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = validation.is_precomputed(vars(self).get("kernel"))
        return tags


def with_model(estimator: Any, dataset: Dataset, model: Model) -> Any:
    """An estimator with these parameters and columns that has this model."""
    fresh = estimator._unfitted_copy()
    fresh.__dict__.update({name: value for name, value in vars(estimator).items() if name in COLUMNS_KNOWN})
    return fresh._set_fitted(dataset, model)


def output_values(model: Any, X: Any) -> Array:
    """Values of all outputs of a fitted estimator, one row for each row of X."""
    return model._scores(X)


def labels_and_votes(model: Any) -> tuple[Any, Any]:
    """Labels of a fitted estimator, and how values become one of them; None where the values are predicted."""
    return model._labels_and_votes()


def _score(model: Any, metric: Callable[..., Any], X: Any, y: Any, sample_weight: Any) -> float:
    """A metric of the predictions, for rows in memory or remote."""
    if is_block_source(X) and y is None:
        y, own = validation.labels_of(X)
        if own is not None and sample_weight is not None:
            raise ValueError(f"{X!r} has its weights with it: score(rows), without sample_weight")
        sample_weight = own if sample_weight is None else sample_weight
    # Only predictions and labels are copied into memory, not rows.
    given: tuple[Any, ...] = y, model.predict(X), sample_weight
    y, predicted, sample_weight = (v.compute() if is_dask(v) else to_numpy(v) for v in given)
    return float(metric(y, predicted, sample_weight=sample_weight))


# --- classifiers ----------------------------------------------------------------------------------------------------


def labels_of_codes(scores: Any, classes: Array, codes: Any) -> Any:
    """Class labels for class codes, on the device of the scores; strings stay in memory."""
    if not is_array_api(scores):
        return classes[codes]
    if classes.dtype.kind not in "iufb":
        return classes[to_numpy(codes)]
    return namespace(scores).take(asarray_like(scores, classes), codes, axis=0)


def _check_probabilities(model: Any) -> None:
    reason = model._lacks_probabilities()
    if reason:
        raise AttributeError(reason)


class KernelClassifier(ClassifierMixin, KernelModel):
    """A classifier whose decision values are an expansion over `vectors_`."""

    decision_function_shape = "ovr"
    classes_: Array

    def _set_fitted(self, dataset: Dataset, model: Model) -> Any:
        self.classes_ = dataset.classes
        # A change of parameters is for the next fit.
        self._votes = Votes(pairs=dataset.n_classes > 2 and model.scheme == "ovo")
        self._factors = dataset.class_weights
        return super()._set_fitted(dataset, model)

    @lazy_on_dask
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
        votes = fitted._decision_votes()
        if votes is not None:
            scores = votes.scores(scores, len(fitted.classes_))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @lazy_on_dask
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
        return labels_of_codes(scores, fitted.classes_, fitted._winners(scores))

    @available_if(_check_probabilities)
    @lazy_on_dask
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes; `predict` gives the class of the highest one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), in the order of ``classes_``.
        """
        log_p = self._snapshot()._log_probabilities(X)
        return namespace(log_p).exp(log_p)

    @available_if(_check_probabilities)
    @lazy_on_dask
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

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of rows whose predicted class is right, by weight.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            True labels. Left out where the rows have their labels with them (`slimsvm.rows`).
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        from sklearn.metrics import accuracy_score

        return _score(self, accuracy_score, X, y, sample_weight)

    def _labels_and_votes(self) -> tuple[Array, Votes]:
        return self.classes_, self._votes

    def _decision_votes(self) -> Votes | None:
        return self._votes if len(self.intercept_) > 1 and self.decision_function_shape == "ovr" else None

    def _winners(self, scores: Array) -> Array:
        """Codes of the predicted classes."""
        classes, votes = self._labels_and_votes()
        return votes.leaders(scores, len(classes))

    def _lacks_probabilities(self) -> str | None:
        """Why there are no probabilities, in words; None if there are some."""
        name, wanted = type(self).__name__, vars(self).get("probability")
        # What was fitted counts; before that, the parameter.
        if "probability_coef_" in vars(self) or (wanted and "vectors_" not in vars(self)):
            return None
        if wanted is not None:
            return f"{name} has no probabilities without probability=True: set it, and fit again"
        return (
            f"{name} has no probabilities. Calibrate its decision values: "
            f"sklearn.calibration.CalibratedClassifierCV({name}(...), ensemble=False); or use SlimSVC, which has some"
        )

    def _probability_layer(self: Any) -> ProbabilityLayer | None:
        if "probability_coef_" not in vars(self):
            return None
        return ProbabilityLayer(self.probability_coef_, self.probability_intercept_)

    def _log_probabilities(self: Any, X: Any) -> Array:
        """Log-probabilities of the layer, adjusted so that the predicted class is always the most probable."""
        check_is_fitted(self, "probability_coef_")
        coef = np.vstack([self.vector_coef_, self.probability_coef_])
        values = self._values(X, coef, np.append(self.intercept_, self.probability_intercept_))
        scores, log_odds = np.split(to_numpy(values), [len(self.intercept_)], axis=1)
        log_p = align_with_winners(self._winners(scores), log_probabilities(log_odds))
        return asarray_like(values, log_p, values.dtype) if is_array_api(values) else log_p


# --- regressors -----------------------------------------------------------------------------------------------------


class KernelRegressor(RegressorMixin, KernelModel):
    """A regressor, of one target or several, whose values are an expansion over `vectors_`."""

    _single = True  # is there one target, which is a vector?

    def _set_fitted(self, dataset: Dataset, model: Model) -> Any:
        """Set the fitted attributes in the units of the user's targets."""
        units, expansion = dataset.target_scaler, model.expansion
        assert units is not None
        coef, bias = units.size[:, None] * expansion.coef, units.centre + units.size * expansion.bias
        self._single = dataset.single_target
        model = replace(model, expansion=replace(expansion, coef=coef, bias=bias))
        return super()._set_fitted(dataset, replace(model, objective=units.size**2 * model.objective))

    @lazy_on_dask
    def predict(self, X: Any) -> Array:
        """Predict target values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_outputs) where y had columns.
        """
        fitted = self._snapshot()
        values = fitted._scores(X)
        return values[:, 0] if fitted._single else values

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R^2 of the predicted values, the mean over the targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or (n_samples, n_outputs) of several targets
            True values. Left out where the rows have them with them (`slimsvm.rows`).
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        from sklearn.metrics import r2_score

        return _score(self, r2_score, X, y, sample_weight)


# --- outlier detectors ----------------------------------------------------------------------------------------------


def including_border(intercept: Array) -> Array:
    """Increase the intercept by a rounding tolerance, so that rows on the border are inside."""
    return intercept + RELATIVE_BORDER * np.abs(intercept)


class OutlierDetector(OutlierMixin, KernelModel):
    """Values above zero are inside; ``offset_`` is what `score_samples` must exceed for that."""

    offset_: Array

    def _labels_and_votes(self) -> tuple[Array, Votes]:
        return np.array([-1, 1]), Votes()

    @lazy_on_dask
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

    @lazy_on_dask
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
        return fitted._scores(X)[:, 0] + fitted.offset_[0]

    @lazy_on_dask
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
        labels, votes = fitted._labels_and_votes()
        return labels_of_codes(scores, labels, votes.leaders(scores, 2))
