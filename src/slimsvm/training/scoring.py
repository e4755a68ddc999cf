"""How predictions of held-out rows are scored: classes by votes and margins, targets by R^2."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.dataset import class_signs, outputs
from ..data.folds import Fold
from ..linalg.arrays import Array
from ..model.expansion import Model
from ..model.voting import Votes
from .sizes import FoldScore, classification_score, regression_score


def margins(F: Array, classes: Array, pairs: bool, labels: Array) -> Array:
    """The least ``y f`` of each row over the binary problems that its class takes part in; minus infinity for labels
    that are not among the classes."""
    codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    signs = class_signs(len(classes), outputs(len(classes), "ovo" if pairs else "ovr"))[codes]
    least = np.where(signs == 0, np.inf, signs * F).min(axis=1)
    return np.where(classes[codes] == labels, least, -np.inf)


def score_classes(F: Array, classes: Array, votes: Votes, labels: Array, weights: Array, keys: Array) -> FoldScore:
    """The share of rows that are right, from the values of the binary problems."""
    wrong = classes[votes.leaders(F, len(classes))] != labels
    return classification_score(wrong, margins(F, classes, votes.pairs, labels), weights, len(np.unique(keys)))


def score_targets(F: Array, targets: Array, weights: Array, keys: Array) -> FoldScore:
    """R^2, the mean over the targets."""
    score, errors = r2_and_errors(targets, F, weights)
    return regression_score(score, errors, weights, len(np.unique(keys)))


def score_fold(fold: Fold, model: Model) -> FoldScore:
    """What the rows held out say of a model of the others."""
    test, classes = fold.test, fold.train.classes
    F: Any = model.expansion.decision(test.X, test.threads)
    if test.targets is not None:
        return score_targets(F, test.targets, test.weights, test.keys)
    votes = Votes(pairs=len(classes) > 2 and model.scheme == "ovo")
    return score_classes(F, classes, votes, test.classes[test.codes], test.weights, test.keys)


def r2_and_errors(targets: Array, values: Array, weights: Array) -> tuple[float, Array]:
    """R^2, the mean over the targets, and what each row takes from it: they sum to ``1 - R^2`` by their shares."""
    share = (weights / weights.sum())[:, None]
    spread = (share * (targets - (share * targets).sum(axis=0)) ** 2).sum(axis=0)
    errors = ((targets - values) ** 2 / np.where(spread > 0, spread, 1.0)).mean(axis=1)
    return 1 - float((share[:, 0] * errors).sum()), errors
