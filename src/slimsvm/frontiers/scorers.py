"""Scores of fitted models on the test rows of a fold, and their variances."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring

from ..estimators.base import KernelRegressor, labels_and_votes, output_values
from ..linalg.arrays import Array
from ..training.scoring import score_classes, score_targets
from ..training.sizes import FoldScore
from ..utils.sklearn_private import some_rows
from .folds import FrontierFold

N_JACKKNIFE_GROUPS = 20  # of rows, each left out once

Scorer = Callable[[FrontierFold, Any], FoldScore]


class NoProbabilities(ValueError):
    """Raised when a scorer needs probabilities that the model does not have."""


def scoring_name(scoring: Any, model: Any) -> str:
    if scoring is None:
        return "r2" if isinstance(model, KernelRegressor) else "accuracy"
    return scoring if isinstance(scoring, str) else str(getattr(scoring, "__name__", scoring))


def fold_scorer(scoring: Any, model: Any, weighted: bool) -> Scorer:
    """A function that scores fitted models on a fold."""
    if scoring is None:
        return score_r2 if isinstance(model, KernelRegressor) else score_accuracy
    scorer = check_scoring(model, scoring=scoring)
    if not callable(scorer):
        raise ValueError(f"scoring={scoring!r} must be the name of one scorer, or a function of (estimator, X, y)")
    takes = inspect.signature(scorer).parameters
    if weighted and "sample_weight" not in takes and not any(p.kind == p.VAR_KEYWORD for p in takes.values()):
        raise ValueError(f"scoring={scoring!r} must take sample_weight where sample_weight is given")
    return partial(score_by, scorer, scoring_name(scoring, model), weighted)


def score_accuracy(fold: FrontierFold, model: Any) -> FoldScore:
    class_weights = dict(zip(fold.train.classes.tolist(), fold.train.class_weights, strict=True))
    weights = fold.weights * np.array([class_weights.get(label, 1.0) for label in fold.y.tolist()])
    return score_classes(output_values(model, fold.X), *labels_and_votes(model), fold.y, weights, fold.keys)


def score_r2(fold: FrontierFold, model: Any) -> FoldScore:
    targets, predicted = (y.reshape(len(fold.y), -1) for y in (fold.y, model.predict(fold.X)))
    return score_targets(predicted, targets, fold.weights, fold.keys)


def score_by(scorer: Any, name: str, weighted: bool, fold: FrontierFold, model: Any) -> FoldScore:
    """The score by a scorer of scikit-learn, with its jackknife variance over groups of rows."""

    def score(rows: Array) -> float:
        weights = {"sample_weight": fold.weights[rows]} if weighted else {}
        try:
            return float(scorer(model, some_rows(fold.X, rows), fold.y[rows], **weights))
        except AttributeError as error:
            if hasattr(model, "predict_proba"):
                raise
            raise NoProbabilities(
                f"scoring={name!r} cannot judge a {type(model).__name__} without probabilities ({error}); give an "
                "estimator that has them: estimator=SlimSVC(probability=True)"
            ) from error

    all_rows = np.arange(len(fold.y))
    is_regression = fold.train.targets is not None
    group = jackknife_groups(fold, is_regression)
    n_groups = int(group.max()) + 1
    whole = score(all_rows)
    if np.isnan(whole):
        labels = "numbers" if is_regression else f"{np.unique(fold.y).tolist()}, the model's {model.classes_.tolist()}"
        raise ValueError(
            f"scoring={name!r} is not a number on the rows held out in one of the parts; their classes are {labels}. "
            "Where rows of a class are few: use fewer parts, such as cv=2, or another scoring"
        )
    scores = [score(all_rows[group != g]) for g in range(n_groups)] if n_groups > 1 else []
    return FoldScore(whole, (n_groups - 1) * float(np.var(scores)) if scores else 0.0)


def jackknife_groups(fold: FrontierFold, is_regression: bool = False) -> Array:
    """The jackknife group of each row; equal rows share a group, and each class is spread over the groups.

    The only row of a class is in no group (-1): it is never left out.
    """
    group = np.full(len(fold.y), -1)
    labels = np.zeros(len(fold.y)) if is_regression else fold.y
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        rank = np.unique(fold.keys[members], return_inverse=True)[1]
        if rank.max() > 0:
            group[members] = rank % N_JACKKNIFE_GROUPS
    return group
