"""Regressors whose values are an expansion over few vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from ..data.dataset import Dataset
from ..linalg.arrays import Array
from ..model.expansion import Model
from ..rows.target_kinds import RegressionTargetKind, TargetKind
from . import checked_data
from .base import Scored, TrainedModel, lazy_where_far


class ExpansionRegressor(Scored, RegressorMixin, TrainedModel):
    """A regressor, of one target or several; models are trained for targets in units of their own (`data.Units`)."""

    label_checks: ClassVar[dict[str, bool]] = {"multi_output": True, "y_numeric": True}
    _single: bool  # is there one target, which is a vector?

    @property
    def units_alike(self) -> bool:
        """Must all targets have the same unit?"""
        return False

    @property
    def wants(self) -> TargetKind:
        return RegressionTargetKind(self.units_alike)

    def _labelled(self, y: Any, counts: Any, weight: Any) -> dict[str, Any]:
        self._single = y.ndim == 1
        return checked_data.of_targets(y)

    def _labelled_apart(self, X: Any, weight: Any) -> Array:
        self._single = X.single
        return np.ones(1)

    def _keep(self, dataset: Dataset, model: Model) -> None:
        """In the user's units."""
        assert dataset.units is not None
        size, machine = dataset.units.size, model.expansion
        coef, bias = size[:, None] * machine.coef, dataset.units.centre + size * machine.bias
        expansion = replace(machine, coef=coef, bias=bias)
        super()._keep(dataset, replace(model, expansion=expansion, objective=size**2 * model.objective))

    @lazy_where_far
    def predict(self, X: Any) -> Array:
        """Values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_outputs) where y had columns.
        """
        fitted = self._snapshot()
        return fitted._shaped(fitted._scores(X))

    def _shaped(self, values: Any) -> Any:
        """Values of all targets as y was."""
        return values[:, 0] if self._single else values

    def _score_of(self, y: Any, found: Any, weight: Any) -> float:
        from sklearn.metrics import r2_score

        return float(r2_score(y, found, sample_weight=weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def r2_of(targets: Array, values: Array, weights: Array) -> tuple[float, Array]:
    """R^2, the mean over the targets, and what each row takes from it: they sum to ``1 - R^2`` by their shares."""
    share = (weights / weights.sum())[:, None]
    spread = (share * (targets - (share * targets).sum(axis=0)) ** 2).sum(axis=0)
    missed = ((targets - values) ** 2 / np.where(spread > 0, spread, 1.0)).mean(axis=1)
    return 1 - float((share[:, 0] * missed).sum()), missed
