"""Probabilities of classifiers over a basis: a layer of its own beside the coefficients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..data.dataset import Dataset
from ..model.expansion import Model
from ..training.probabilities import VectorLearner, calibration_folds, fit_probabilities, fit_probabilities_at
from .trained import ExpansionClassifier

TOLERANCE = 1e-4  # a smaller gap would not show in probabilities


class LayerClassifier(ExpansionClassifier):
    """A classifier of this library that may have such a layer."""

    probability: Any = False
    verbose: Any = False

    def _with_layer(
        self,
        dataset: Dataset,
        model: Model,
        C: float,
        learn: VectorLearner,
        rng: np.random.Generator,
        memory: float = 2.0**30,
    ) -> Model:
        """The model with a layer over its vectors, if that is asked for; C is the cost of the model itself."""
        if not self.probability:
            return model
        pieces = calibration_folds(dataset, learn, rng)
        tol = max(float(self.tol), TOLERANCE)
        layer = fit_probabilities(dataset, model.expansion, C, pieces, rng, tol, memory, bool(self.verbose))
        return replace(model, more=model.more | layer)

    def _with_layer_at(
        self, dataset: Dataset, model: Model, cost: float, rng: np.random.Generator, memory: float = 2.0**30
    ) -> Model:
        """The model with a layer of known cost over its vectors."""
        layer = fit_probabilities_at(dataset, model.expansion, cost, rng, max(float(self.tol), TOLERANCE), memory)
        return replace(model, more=model.more | layer)
