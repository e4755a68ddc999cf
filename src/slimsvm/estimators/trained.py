"""An expansion that is trained on rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.dataset import Dataset, class_signs, outputs
from ..linalg.arrays import Array
from ..model.expansion import Model
from ..problem.kernels import Scaled
from ..utils.warnings import warn
from . import checked_data, validation
from .base import KernelClassifier, KernelModel, KernelRegressor, atomic
from .targets import ClassTargets, RegressionTargets


class TrainedModel(KernelModel):
    """An expansion that is trained on rows; subclasses say how, and what their labels are."""

    merges_copies = True  # are equal rows of a class one row that carries their weights?
    _check_apart: Any = None

    @atomic
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; for ``kernel="precomputed"`` the square kernel matrix. Machines over few vectors also take
            labelled rows of files, see `slimsvm.rows`, and dask arrays and dataframes, whose rows stay where they are.
        y : array-like of shape (n_samples,), or (n_samples, n_outputs) of several targets
            Class labels, of any type, or numbers to regress on. Left out where the rows have their labels with them.
        sample_weight : array-like of shape (n_samples,), optional
            Weight 0 is the same as leaving the row out, weight k as k copies of it.

        Returns
        -------
        self
        """
        self._check_params()
        with checked_data.training_data(
            self, X, y, sample_weight, self._targets(), self.merges_copies, self._check_apart
        ) as dataset:
            self._fit_to(dataset)

    def _fit_to(self, dataset: Dataset) -> None:
        names = getattr(self, "feature_names_in_", None)
        complaints = [validation.scale_complaint(dataset.X, self.kernel, names)]
        model = self._train(dataset)
        # Learned scales are as they should be: what may be odd is the kernel that they were learned for.
        kernel: Any = model.expansion.kernel
        learned = isinstance(kernel, Scaled) and kernel is not dataset.kernel
        complaints.append(validation.kernel_complaint(kernel.kernel if learned else kernel, dataset.X))
        for complaint in filter(None, complaints):
            warn(complaint)
        self._set_fitted(dataset, model)


def margins_of(self: Any, scores: Array, labels: Array) -> Array:
    """The least ``y f`` of each row over the binary problems that its class takes part in; minus infinity for
    classes that are not known."""
    codes = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
    side = class_signs(len(self.classes_), outputs(len(self.classes_), "ovo" if self._votes.pairs else "ovr"))[codes]
    least = np.where(side == 0, np.inf, side * scores).min(axis=1)
    return np.where(self.classes_[codes] == labels, least, -np.inf)


class ExpansionClassifier(TrainedModel, KernelClassifier):
    def _targets(self) -> ClassTargets:
        return ClassTargets(self.class_weight)

    _margins = margins_of

    def _scheme(self) -> str:
        """Pairs of classes ("ovo"), or each class against the others ("ovr")."""
        return self.multi_class

    def _set_fitted(self, dataset: Dataset, model: Model, scheme: str = "") -> Any:
        return super()._set_fitted(dataset, model, self._scheme())


class ExpansionRegressor(TrainedModel, KernelRegressor):
    def _targets(self) -> RegressionTargets:
        return RegressionTargets(self.units_alike)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
