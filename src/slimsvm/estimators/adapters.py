"""Conversion of fitted estimators of scikit-learn and of this library to a `SourceModel`, which can be compressed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from sklearn.utils.validation import check_is_fitted

from ..compression import Original
from ..compression.tasks import Classification, OneClass, PredictionTask, Regression
from ..data.dataset import outputs
from ..linalg.arrays import Array
from ..model.expansion import Expansion
from ..model.voting import Votes
from ..problem import kernels, losses
from ..utils.sklearn_private import gamma_of, training_rows
from . import validation
from .all_rows import AllRowsClassifier
from .base import KernelClassifier, KernelRegressor
from .sklearn_svm import SVR as OurSVR
from .sklearn_svm import NuSVC as OurNuSVC
from .sklearn_svm import NuSVR as OurNuSVR
from .sklearn_svm import OneClassSVM as OurOneClassSVM

ALLOWED = (
    "SVC, NuSVC, SVR, NuSVR or OneClassSVM of scikit-learn or slimsvm, another estimator of slimsvm, or a Pipeline "
    "that ends in one"
)


@dataclass(frozen=True)
class SourceModel:
    """The parts of a fitted estimator that compression needs.

    ``cost`` is C, the cost per unit of slack; None if no parameter gives it. ``classes`` are the
    labels of a classifier, and ``single`` says whether a regressor has one target, which is a vector.
    """

    expansion: Expansion
    task: PredictionTask
    cost: float | None
    classes: Array | None = None
    single: bool = True

    def original(self) -> Original:
        return Original.of(self.expansion, self.task, self.cost)


@singledispatch
def source_model(model: Any) -> SourceModel:
    """Convert a fitted estimator; TypeError if it cannot be compressed."""
    hint = ""
    if hasattr(model, "best_estimator_") or hasattr(model, "param_grid"):
        hint = "; pass its best_estimator_"
    elif not isinstance(model, BaseEstimator):
        hint = "; pass a fitted estimator"
    raise TypeError(f"{_name(model)} cannot be compressed{hint}. compress takes {ALLOWED}")


@source_model.register(LinearSVC)
@source_model.register(LinearSVR)
def _linear(model: Any) -> SourceModel:
    raise TypeError(f"{_name(model)} is one weight vector for each output already: there is nothing to compress")


@source_model.register(SVC)
def _classifier(model: Any) -> SourceModel:
    check_is_fitted(model)
    coef, n = _dense(model.dual_coef_), len(model.classes_)
    votes, shown = Votes(zero_is_positive=True), None
    if n > 2:
        coef = _coefficients_of_pairs(coef, model.n_support_)
        # `predict` has the first of the classes with most votes; scores, and with them `break_ties`, go by values, too.
        shown = Votes(pairs=True, zero_is_positive=True) if model.decision_function_shape == "ovr" else None
        votes = shown if shown and model.break_ties else Votes(pairs=True, by_value=False)
    task = Classification(np.asarray(model.class_weight_, dtype=np.float64), outputs(n, "ovo"), votes, shown)
    return SourceModel(_expansion(model, coef), task, _cost(model), model.classes_)


@source_model.register(NuSVC)
def _nu_classifier(model: Any) -> SourceModel:
    return _without_class_weights(_classifier(model))


@source_model.register(SVR)
@source_model.register(NuSVR)
def _regressor(model: Any) -> SourceModel:
    check_is_fitted(model)
    coef = _dense(model.dual_coef_)
    # NuSVR does not keep the width of its tube: use epsilon = 0.
    task = Regression(float(model.get_params()["epsilon"]) if "epsilon" in model.get_params() else 0.0)
    return SourceModel(_expansion(model, coef), task, _cost(model))


@source_model.register(OneClassSVM)
def _one_class(model: Any) -> SourceModel:
    check_is_fitted(model)
    # Coefficients are between 0 and 1; values are known to within tol.
    return SourceModel(_expansion(model, _dense(model.dual_coef_)), OneClass(float(model.tol)), 1.0)


@source_model.register(KernelClassifier)
def _our_classifier(model: Any) -> SourceModel:
    expansion, n, votes = _our_expansion(model), len(model.classes_), model._votes
    problems = outputs(n, "ovo" if votes.pairs else "ovr")
    task = Classification(model._factors, problems, votes, model._decision_votes())
    return SourceModel(expansion, task, _cost(model), model.classes_)


@source_model.register(OurNuSVC)
def _our_nu_svc(model: Any) -> SourceModel:
    return _without_class_weights(_our_classifier(model))


@source_model.register(AllRowsClassifier)
def _our_classifier_of_a_norm(model: Any) -> SourceModel:
    """Without a cost if the slack norm is not a sum over rows: its C is not the cost of one row."""
    source = _our_classifier(model)
    return source if model._norm()[0].loss is not None else replace(source, cost=None)


@source_model.register(OurSVR)
def _our_svr(model: Any) -> SourceModel:
    return SourceModel(_our_expansion(model), Regression(float(model.epsilon)), _cost(model))


@source_model.register(OurNuSVR)
def _our_nu_svr(model: Any) -> SourceModel:
    """With epsilon = 0, because the model does not keep the width of its tube."""
    return SourceModel(_our_expansion(model), Regression(), _cost(model))


@source_model.register(OurOneClassSVM)
def _our_one_class(model: Any) -> SourceModel:
    return SourceModel(_our_expansion(model), OneClass(), _cost(model))


@source_model.register(KernelRegressor)
def _our_regressor(model: Any) -> SourceModel:
    expansion, loss = _our_expansion(model), losses.resolve(model.loss, model.epsilon)
    return SourceModel(expansion, Regression(float(loss.epsilon)), _cost(model), single=model._single)


# --- parts of models --------------------------------------------------------------------------------------------


PRECOMPUTED = (
    "a machine with a precomputed kernel cannot be compressed: its vectors are not known, only their numbers. Fit it "
    "with the kernel itself, as a name or as a function k(X, Z)"
)


def _name(model: Any) -> str:
    return model.__name__ + " (a class)" if isinstance(model, type) else type(model).__name__


def _our_expansion(model: Any) -> Expansion:
    expansion = model._expansion()
    if expansion.kernel.keeps_rows:
        raise ValueError(PRECOMPUTED)
    return expansion


def _dense(coef: Any) -> Array:
    return np.asarray(coef.toarray() if sp.issparse(coef) else coef, dtype=np.float64)


def _expansion(model: Any, coef: Array) -> Expansion:
    """The expansion of a scikit-learn estimator; with a callable kernel, its vectors come from the training rows."""
    if validation.is_precomputed(model.kernel):
        raise ValueError(PRECOMPUTED)
    if callable(model.kernel):
        kernel, vectors = kernels.resolve(model.kernel), training_rows(model)[model.support_]
    else:
        kernel = kernels.resolve(model.kernel, gamma_of(model), model.degree, model.coef0)
        vectors = model.support_vectors_
    vectors = sp.csr_array(vectors) if sp.issparse(vectors) else np.asarray(vectors, dtype=np.float64)
    return Expansion(kernel, vectors, coef, np.asarray(model.intercept_, dtype=np.float64))


def _coefficients_of_pairs(dual_coef: Array, n_support: Array) -> Array:
    """Coefficients with a row for each pair of classes, from ``dual_coef_``.

    scikit-learn keeps n_classes - 1 numbers for each vector: those of its problems with the other classes, in order.
    """
    ends = np.cumsum(n_support)
    own = [slice(end - size, end) for end, size in zip(ends, n_support, strict=True)]
    problems = outputs(len(own), "ovo")
    coef = np.zeros((len(problems), dual_coef.shape[1]))
    for row, problem in zip(coef, problems, strict=True):
        i, j = problem.positive, problem.negative[0]
        row[own[i]], row[own[j]] = dual_coef[j - 1, own[i]], dual_coef[i, own[j]]
    return coef


def _cost(model: Any) -> float | None:
    """The C that was used; None if there is none."""
    C = vars(model).get("C_", model.get_params().get("C"))
    return None if C is None or isinstance(C, str) or np.max(C) == np.inf else float(np.mean(C))


def _without_class_weights(source: SourceModel) -> SourceModel:
    """With class weights of 1: they have no effect on nu-SVC, which has no C, in scikit-learn and here."""
    task: Any = source.task
    return replace(source, task=replace(task, factors=np.ones(task.n_classes)))
