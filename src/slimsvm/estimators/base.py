"""What every classifier here shares: checked input, one fitted state, prediction."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..data import Task, outputs, sides
from ..expansion import Expansion, Model
from ..formulation import Array, Part
from ..notices import warn
from ..parts.kernels import Scaled
from ..threads import limited, thread_count
from . import validation

# Coefficients that are mostly zero are pickled as a sparse matrix if there are at least so many of them.
MANY = 10_000


class ExpansionClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """A classifier whose decision values are an expansion over `vectors_`; subclasses say how it is trained."""

    decision_function_shape = "ovr"
    merges_copies = True  # are equal rows of a class one row that carries their weights?

    @abstractmethod
    def _check_params(self) -> None:
        """Raise ValueError for parameters that make no sense."""

    @abstractmethod
    def _train(self, task: Task) -> Model:
        """The model for checked data."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; for ``kernel="precomputed"`` the square kernel matrix.
        y : array-like of shape (n_samples,)
            Class labels, of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weight 0 is the same as leaving the row out, weight k as k copies of it.

        Returns
        -------
        self
        """
        # All happens on another object, whose state then replaces this one's at once: a fit that fails or is
        # interrupted leaves nothing half-done, and predictions in other threads see the old model or the new one.
        fresh = object.__new__(type(self))
        fresh.__dict__.update({name: value for name, value in vars(self).items() if not name.endswith("_")})
        fresh._fit(X, y, sample_weight)
        self.__dict__ = fresh.__dict__
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._check_params()
        task = validation.task(self, X, y, sample_weight, self.merges_copies)
        names = getattr(self, "feature_names_in_", None)
        with limited(task.threads):
            complaints = [validation.scale_complaint(task.X, self.kernel, names)]
            model = self._train(task)
            # Learned scales are as they should be: what may be odd is the kernel that they were learned for.
            kernel: Any = model.expansion.kernel
            learned = isinstance(kernel, Scaled) and kernel is not task.kernel
            complaints.append(validation.kernel_complaint(kernel.kernel if learned else kernel, task.X))
        for complaint in filter(None, complaints):
            warn(complaint)
        self._keep(task, model)

    def _keep(self, task: Task, model: Model) -> None:
        """Fitted attributes."""
        machine = model.expansion
        self.classes_ = task.classes
        self._one_vs_one = task.n_classes > 2 and self._scheme() == "ovo"  # a change of parameters is for the next fit
        self.kernel_, self.vectors_ = machine.kernel.fitted(machine.vectors)
        if model.rows is not None:
            self.support_ = model.rows
        self.n_vectors_ = self.vectors_.shape[0]
        self.vector_coef_, self.intercept_ = machine.coef, machine.bias
        self.objective_ = model.objective
        if model.gap is not None:
            self.duality_gap_ = model.gap
        self.n_iter_ = np.maximum(1, model.n_iter)
        for name, value in model.more.items():
            setattr(self, name, value)

    def _fitted(self, task: Task, model: Model) -> Any:
        """An estimator like this one that has this model; what is known of the inputs stays known."""
        fresh = object.__new__(type(self))
        known = ("n_features_in_", "feature_names_in_")
        fresh.__dict__.update({k: v for k, v in vars(self).items() if not k.endswith("_") or k in known})
        fresh._keep(task, model)
        return fresh

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
        if scores.shape[1] == 1:
            return scores[:, 0]
        if fitted.decision_function_shape == "ovr":
            return fitted._class_scores(scores)
        return scores

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
        return fitted._labels(fitted._scores(X))

    def _labels(self, scores: Array) -> Array:
        """Class labels for the values of all outputs."""
        if scores.shape[1] == 1:
            return self.classes_[(scores[:, 0] > 0).astype(np.intp)]
        return self.classes_[self._class_scores(scores).argmax(axis=1)]

    def _margins(self, scores: Array, labels: Array) -> Array:
        """The least ``y f`` of each row over the binary problems that its class takes part in; minus infinity for
        classes that are not known."""
        codes = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
        side = sides(len(self.classes_), outputs(len(self.classes_), "ovo" if self._one_vs_one else "ovr"))[codes]
        least = np.where(side == 0, np.inf, side * scores).min(axis=1)
        return np.where(self.classes_[codes] == labels, least, -np.inf)

    def _snapshot(self) -> Any:
        """This estimator with the state that it has now, whatever is fitted meanwhile."""
        now = object.__new__(type(self))
        now.__dict__ = self.__dict__
        return now

    def _scheme(self) -> str:
        """Pairs of classes ("ovo"), or each class against the others ("ovr")."""
        return self.multi_class

    def _class_scores(self, scores: Array) -> Array:
        return one_vs_rest_scores(scores, len(self.classes_)) if self._one_vs_one else scores

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validation.check_data(self, X)
        expansion = Expansion(self.kernel_, self.vectors_, self.vector_coef_, self.intercept_)
        return expansion.decision(X, thread_count(self.n_jobs))

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = validation.is_precomputed(self.kernel)
        return tags


def one_vs_rest_scores(pairs: Array, n_classes: int) -> Array:
    """One score for each class from one-vs-one scores: votes, and confidences that only break ties.

    ``pairs[:, p] > 0`` votes for the first class of pair p. Summed confidences are squeezed into (-1/3, 1/3),
    so that they never outweigh a vote.
    """
    first, second = _pair_members(n_classes)
    wins = (pairs > 0).astype(np.float64)
    votes = wins @ first + (1 - wins) @ second
    confidence = pairs @ (first - second)
    return votes + confidence / (3 * (np.abs(confidence) + 1))


@lru_cache(maxsize=16)
def _pair_members(n_classes: int) -> tuple[Array, Array]:
    """For each pair of classes, the first and the second as rows of indicators."""
    pairs = np.array(list(combinations(range(n_classes), 2)))
    eye = np.eye(n_classes)
    return eye[pairs[:, 0]], eye[pairs[:, 1]]
