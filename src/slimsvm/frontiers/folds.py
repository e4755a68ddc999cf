"""The folds of a frontier: checked training rows, and test rows as the user gave them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline

from ..data.dataset import Dataset
from ..data.folds import Fold
from ..estimators import validation
from ..estimators.base import COLUMNS_KNOWN
from ..estimators.checked_data import checked_dataset
from ..estimators.slim_parameters import targets_of
from ..linalg.arrays import Array
from ..training.sizes import size_folds
from ..utils.sklearn_private import split_rows
from .result import classifier_of


@dataclass(frozen=True)
class FrontierData:
    """The user's rows with the fitted steps of a pipeline before its last one, and the transformed rows."""

    prototype: Any  # the estimator or pipeline, not fitted
    steps: Any  # fitted; None without a pipeline
    estimator: Any  # the last step, not fitted
    X: Any
    transformed: Any
    y: Any
    weights: Array | None

    @classmethod
    def of(cls, prototype: Any, X: Any, y: Any, weights: Any) -> FrontierData:
        """Fit the steps of a pipeline to these rows."""
        estimator = clone(classifier_of(prototype))
        weights = None if weights is None else np.asarray(weights, dtype=np.float64)
        if not isinstance(prototype, Pipeline) or len(prototype.steps) == 1:
            return cls(prototype, None, estimator, X, X, y, weights)
        steps = clone(prototype[:-1])
        return cls(prototype, steps, estimator, X, steps.fit_transform(X, y), y, weights)

    def subset(self, rows: Array) -> FrontierData:
        """The data of some rows, with steps fitted to these rows alone."""
        X, y = split_rows(self.prototype, self.X, self.y, rows)
        return FrontierData.of(self.prototype, X, y, None if self.weights is None else self.weights[rows])

    def dataset(self, weights: Array | None, merge: bool = True) -> Dataset:
        """The dataset of the transformed rows, checked by the estimator."""
        return checked_dataset(self.estimator, self.transformed, self.y, weights, targets_of(self.estimator), merge)

    def in_pipeline(self, model: Any) -> Any:
        """A pipeline of the fitted steps and a fitted model."""
        if not isinstance(self.prototype, Pipeline):
            return model
        steps = [] if self.steps is None else self.steps.steps
        last = (self.prototype.steps[-1][0], model)
        return Pipeline([*steps, last], memory=self.prototype.memory, verbose=self.prototype.verbose)


@dataclass(frozen=True)
class FrontierFold:
    """A fold, the estimator that checked its training rows, and its transformed test rows with the user's labels."""

    fold: Fold
    estimator: Any
    X: Any
    y: Array

    @property
    def train(self) -> Dataset:
        return self.fold.train

    @property
    def weights(self) -> Array:
        return self.fold.test.counts

    @property
    def keys(self) -> Array:
        """Hash keys of the test rows."""
        return self.fold.keys


def splitter_of(cv: Any, y: Any, is_classification: bool) -> Any:
    """The number of folds of `size_folds` (None: by the number of rows), or a splitter of scikit-learn."""
    if cv is None:
        return None
    if validation.is_number(cv):
        validation.check_number("cv", cv, at_least=2, integer=True)
        return int(cv)
    return check_cv(cv, y, classifier=is_classification)


def frontier_folds(
    data: FrontierData, splitter: Any, groups: Any, dataset: Dataset, rng: np.random.Generator
) -> list[FrontierFold]:
    """The folds of a splitter of scikit-learn, or those of `size_folds`, with the user's rows."""
    rows = replace(data, estimator=clone(data.estimator)).dataset(data.weights, merge=False)
    if splitter is None or isinstance(splitter, int):
        return [_of_merged(data, rows, fold) for fold in size_folds(dataset, rng, splitter)]
    folds = []
    for number, (train, test) in enumerate(splitter.split(data.X, data.y, groups), 1):
        try:
            folds.append(_of_indices(data, rows, np.sort(train), np.sort(test)))
        except ValueError as error:
            raise ValueError(f"part {number} of cv cannot be trained on: {error}") from error
        if not len(folds[-1].y):
            raise ValueError(f"part {number} of cv holds out no row that counts; use another cv")
    return folds


def _of_merged(data: FrontierData, rows: Dataset, fold: Fold) -> FrontierFold:
    """Expand a fold of merged rows to all their copies; training rows keep their total weight."""
    train, test = (np.isin(rows.keys, part.keys) for part in fold)
    factor = float(fold.train.counts.sum() / rows.counts[train].sum())
    factor = 1.0 if abs(factor - 1) < 1e-9 else factor
    return _of_indices(data, rows, rows.indices[train], rows.indices[test], factor)


def _of_indices(data: FrontierData, rows: Dataset, train: Array, test: Array, factor: float = 1.0) -> FrontierFold:
    """The fold with these indices of the user's rows; the weights of training rows are multiplied by ``factor``."""
    part = data.subset(train)
    weights = part.weights if factor == 1 else factor * (np.ones(len(train)) if part.weights is None else part.weights)
    places = np.searchsorted(rows.indices, test)
    places = places[rows.indices[np.minimum(places, rows.size - 1)] == test]  # without rows of weight 0
    X, _ = split_rows(data.prototype, data.X, None, rows.indices[places], train)
    X = X if part.steps is None else part.steps.transform(X)
    held_out = rows.take(places)
    y = rows.classes[held_out.codes] if rows.targets is None else user_targets(held_out)
    return FrontierFold(Fold(part.dataset(weights), held_out), part.estimator, X, y)


def user_targets(dataset: Dataset) -> Array:
    """Targets in the user's units and shape."""
    assert dataset.target_scaler is not None
    targets = dataset.target_scaler.centre + dataset.target_scaler.size * dataset.targets
    return targets[:, 0] if dataset.single_target else targets


def with_columns(model: Any, other: Any) -> Any:
    """Copy the number and names of features from one model to another."""
    vars(model).update({name: value for name, value in vars(other).items() if name in COLUMNS_KNOWN})
    return model
