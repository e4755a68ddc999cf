"""What training needs to know of a model over few vectors: its specification and its hyperparameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..basis.candidates import DatasetCandidates
from ..basis.learning import LearnedVectors
from ..data.dataset import Dataset, Output
from ..linalg.arrays import Array
from ..problem.bases import Choice
from ..problem.losses import LEARNING_DIGITS, few_digits
from ..rows.labels import dataset_labels
from ..solvers.primal.coefficients import Coefficients, fit_coefficients
from ..utils.progress import Iterations

MAX_MATRIX_ENTRIES = 1 << 23  # of the matrices of all machines


def learning_progress(vectors: int, rows: int) -> Iterations:
    """The progress line of learning."""
    return Iterations(f"learning {vectors} vectors on {rows} rows")


@dataclass(frozen=True)
class Hyperparameters:
    """One candidate of the search: cost, gamma, and whether the scales of the inputs are learned."""

    C: float
    gamma: float
    scaled: bool = False


@dataclass(frozen=True)
class TrainingSpec:
    """What a small classifier is to be: all that the estimator's parameters say."""

    n_vectors: int
    basis: Any
    loss: Any
    regularizer: Any
    kernel_of: Callable[[float], Any]  # from gamma
    scheme: str = "ovo"
    tol: float = 1e-6
    max_iter: int = 100
    memory: float = 2.0**30
    verbose: bool = False
    noise: float = 0.0  # standard error of kernel values where the model is to run

    def candidates(
        self,
        dataset: Dataset,
        params: Hyperparameters,
        rng: np.random.Generator,
        start: LearnedVectors | Array | None = None,
    ) -> DatasetCandidates:
        """Rows to choose vectors from. Those that stay rows are chosen for problems of one class against the others;
        learned ones serve the machines that classify, as long as the matrices of all of them take little memory."""
        kernel = self.kernel_of(params.gamma)
        regularizer = self.regularizer.among(kernel, dataset.X, self.basis.learns)
        if self.noise:  # adds |beta|^2 noise^2 / 2 to the loss of each row, on average
            regularizer = regularizer.against(few_digits(params.C * dataset.total * self.noise**2, LEARNING_DIGITS))
        rest, own = dataset.outputs("ovr"), dataset.outputs(self.scheme)
        return DatasetCandidates(
            dataset,
            kernel,
            rest,
            params.C,
            self.loss,
            regularizer,
            rng,
            params.scaled,
            start,
            own if len(own) * (self.n_vectors + 1) ** 2 <= MAX_MATRIX_ENTRIES else None,
            learning_progress if self.verbose else None,
        )

    def fit_coefficients(
        self, dataset: Dataset, choice: Choice, over: DatasetCandidates, wanted: list[Output]
    ) -> Coefficients:
        """The coefficients over chosen vectors, fitted to all rows."""
        return fit_coefficients(
            choice.kernel or over.kernel,
            dataset.X,
            choice.vectors,
            dataset_labels(dataset, wanted, over.C),
            self.loss,
            over.regularizer,
            tol=self.tol,
            max_iter=self.max_iter,
            dtype=np.float32 if dataset.X.dtype == np.float32 else np.float64,
            threads=dataset.threads,
            memory=self.memory,
            near=_learned_for(choice, len(wanted)),
        )


def _learned_for(choice: Choice, outputs: int) -> tuple[Array, Array] | None:
    """Coefficients that were found while learning, if it was for as many machines."""
    found = choice.learned
    return None if found is None or found.coef.shape != (outputs, choice.vectors.shape[0]) else (found.coef, found.bias)
