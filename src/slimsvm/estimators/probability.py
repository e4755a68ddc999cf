"""Probabilities of classifiers over a basis: a layer of its own beside the coefficients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..data.dataset import Dataset
from ..linalg.array_api import asarray_like, is_array_api, to_numpy
from ..linalg.arrays import Array
from ..model.expansion import Model
from ..model.inference import ProbabilityLayer
from ..model.probabilities import align_with_winners, log_probabilities
from ..training.probabilities import VectorLearner, calibration_folds, fit_probabilities, fit_probabilities_at
from .base import ExpansionClassifier, Probabilities

TOLERANCE = 1e-4  # a smaller gap would not show in probabilities


class Layer(Probabilities):
    """A logistic or softmax layer over the vectors of a classifier, where ``probability`` asks for one."""

    probability: Any = False

    def _lacks_probabilities(self) -> str | None:
        # What was fitted counts; before that, the parameter.
        if hasattr(self, "probability_coef_") or (self.probability and not hasattr(self, "vectors_")):
            return None
        return f"{type(self).__name__} has no probabilities without probability=True: set it, and fit again"

    def _probability_layer(self: Any) -> ProbabilityLayer | None:
        if not hasattr(self, "probability_coef_"):
            return None
        return ProbabilityLayer(self.probability_coef_, self.probability_intercept_)

    def _log_probabilities(self: Any, X: Any) -> Array:
        """Those of the layer, moved where need be so that the class that is predicted is the likeliest."""
        check_is_fitted(self, "probability_coef_")
        coef = np.vstack([self.vector_coef_, self.probability_coef_])
        values = self._values(X, coef, np.append(self.intercept_, self.probability_intercept_))
        scores, log_odds = np.split(to_numpy(values), [len(self.intercept_)], axis=1)
        found = align_with_winners(self._winners(scores), log_probabilities(log_odds))
        return asarray_like(values, found, values.dtype) if is_array_api(values) else found


class LayerClassifier(Layer, ExpansionClassifier):
    """A classifier of this library that may have such a layer."""

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
