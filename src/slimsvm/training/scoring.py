"""Scores of predictions for held-out rows: accuracy with margins for classes, R^2 for targets."""

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
    """The smallest margin ``y f`` of each row over the binary problems of its class; -inf for unknown labels."""
    codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    signs = class_signs(len(classes), outputs(len(classes), "ovo" if pairs else "ovr"))[codes]
    least = np.where(signs == 0, np.inf, signs * F).min(axis=1)
    return np.where(classes[codes] == labels, least, -np.inf)


def score_classes(F: Array, classes: Array, votes: Votes, labels: Array, weights: Array, keys: Array) -> FoldScore:
    """Accuracy, from the decision values F of the binary problems."""
    wrong = classes[votes.leaders(F, len(classes))] != labels
    return classification_score(wrong, margins(F, classes, votes.pairs, labels), weights, len(np.unique(keys)))


def score_targets(F: Array, targets: Array, weights: Array, keys: Array) -> FoldScore:
    """The mean R^2 over the targets."""
    score, errors = r2_and_errors(targets, F, weights)
    return regression_score(score, errors, weights, len(np.unique(keys)))


def score_fold(fold: Fold, model: Model) -> FoldScore:
    """The score of a model on the test rows of a fold."""
    test, classes = fold.test, fold.train.classes
    F: Any = model.expansion.decision(test.X, test.threads)
    if test.targets is not None:
        return score_targets(F, test.targets, test.weights, test.keys)
    votes = Votes(pairs=len(classes) > 2 and model.scheme == "ovo")
    return score_classes(F, classes, votes, test.classes[test.codes], test.weights, test.keys)


def r2_and_errors(targets: Array, values: Array, weights: Array) -> tuple[float, Array]:
    """The mean R^2 over the targets, and the error of each row, whose weighted mean is ``1 - R^2``."""
    share = (weights / weights.sum())[:, None]
    spread = (share * (targets - (share * targets).sum(axis=0)) ** 2).sum(axis=0)
    errors = ((targets - values) ** 2 / np.where(spread > 0, spread, 1.0)).mean(axis=1)
    return 1 - float((share[:, 0] * errors).sum()), errors
