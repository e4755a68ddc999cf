"""Refits of coefficients over given vectors, such as those on a device, by the training problem of the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from sklearn.utils import check_array

from ...data.dataset import Dataset, outputs
from ...data.duplicates import row_keys
from ...data.targets import TargetScaler
from ...linalg.arrays import Array
from ...model.inference import InferenceModel
from ...problem.regularizers import KernelNorm
from ...rows.labels import Labels, RowLabels, dataset_labels
from ...utils.warnings import warn
from .coefficients import Coefficients, fit_coefficients

REFIT_JITTER = 1e-6  # jitter of the kernel norm; the same as for learned vectors


class Refit(Protocol):
    """The training problem of a model, for new coefficients over given vectors."""

    def coefficients(self, model: InferenceModel, kernel: Any, Z: Array, X: Array, y: Array) -> tuple[Array, Array]:
        """Coefficients and biases over Z that replace the model's own, fitted to rows X with labels or targets y."""


@dataclass(frozen=True)
class ClassProblem:
    """Classification: one binary problem for each output."""

    C: Any
    factors: Callable[[Array], Array]  # class weights of rows, from their class numbers
    loss: Any
    regularizer: Any = field(default_factory=lambda: KernelNorm(REFIT_JITTER))
    tol: float = 1e-6
    max_iter: int = 100

    def coefficients(self, model: InferenceModel, kernel: Any, Z: Array, X: Array, y: Array) -> tuple[Array, Array]:
        classes, votes = model.classes, model.votes
        assert classes is not None
        assert votes is not None
        codes = np.searchsorted(classes, y).clip(max=len(classes) - 1)
        strange = np.unique(y[classes[codes] != y])
        if len(strange):
            raise ValueError(f"y has labels that the model does not know: {strange[:5].tolist()}; it has {classes}")
        missing = np.setdiff1d(np.arange(len(classes)), codes)
        if len(missing):
            raise ValueError(f"y has no row of class {classes[missing[0]]!r}; give rows of all classes")
        ones, factors = np.ones(len(y)), self.factors(codes)
        dataset = Dataset(X, codes, ones, factors, np.arange(len(y)), row_keys(X), classes, kernel, len(y))
        wanted = outputs(dataset.n_classes, "ovo" if votes.pairs else "ovr")
        fitted = _solved(self, kernel, X, Z, dataset_labels(dataset, wanted, self.C), self.loss)
        return fitted.coef, fitted.bias


@dataclass(frozen=True)
class TargetProblem:
    """Regression, solved for targets scaled to unit size; C and loss are in the units of the user."""

    C: float
    loss: Any
    regularizer: Any
    tol: float = 1e-6
    max_iter: int = 100

    def coefficients(self, model: InferenceModel, kernel: Any, Z: Array, X: Array, y: Array) -> tuple[Array, Array]:
        outputs = len(model.expansion.bias)
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y").reshape(len(y), -1)
        if y.shape[1] != outputs:
            raise ValueError(f"y has {y.shape[1]} columns, the model has {outputs} targets; give a column for each")
        units = TargetScaler.fit(y, np.ones(len(y)), not self.loss.scale_invariant)
        size = float(units.size[0])  # all sizes are equal, or the loss is scale invariant
        loss, factor = self.loss.in_units(size)
        labels = RowLabels(units.transform(y), np.full(y.shape, self.C * factor / size**2))
        fitted = _solved(self, kernel, X, Z, labels, loss)
        return units.size[:, None] * fitted.coef, units.centre + units.size * fitted.bias


def _solved(problem: Any, kernel: Any, X: Array, Z: Array, labels: Labels, loss: Any) -> Coefficients:
    fitted = fit_coefficients(
        kernel, X, Z, labels, loss, problem.regularizer, tol=problem.tol, max_iter=problem.max_iter
    )
    if not fitted.converged.all():
        warn("the refit of coefficients did not converge: scale the features, lower C or raise tol of the model")
    return fitted
