"""Specification and hyperparameters for the training of a model over few vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..basis.candidates import DatasetCandidates
from ..basis.learning import LearnedVectors
from ..data.dataset import Dataset
from ..linalg.arrays import Array
from ..problem.bases import Choice
from ..problem.losses import LEARNING_BITS, round_mantissa
from ..rows.labels import dataset_labels
from ..solvers.primal.coefficients import Coefficients, fit_coefficients
from ..utils.progress import Iterations

MAX_MATRIX_ENTRIES = 1 << 23  # of all Newton matrices together, one for each binary problem that shares learned vectors


@dataclass(frozen=True)
class Hyperparameters:
    """One candidate of the search: cost, gamma, and whether the scales of the inputs are learned."""

    C: float
    gamma: float
    scaled: bool = False


@dataclass(frozen=True)
class TrainingSpec:
    """The specification of a model over few vectors without its hyperparameters."""

    n_vectors: int
    basis: Any
    loss: Any
    regularizer: Any
    kernel_of: Callable[[float], Any]  # the kernel for a gamma
    scheme: str = "ovo"
    tol: float = 1e-6
    max_iter: int = 100
    memory: float = 2.0**30
    verbose: bool = False
    noise: float = 0.0  # standard error of kernel values on the device that the model is for

    def candidates(
        self,
        dataset: Dataset,
        params: Hyperparameters,
        rng: np.random.Generator,
        start: LearnedVectors | Array | None = None,
    ) -> DatasetCandidates:
        """The candidates from which the basis chooses vectors.

        Rows are selected for one-vs-rest problems. Vectors are learned for the problems of the scheme, or for
        one-vs-rest problems if the Newton matrices of the scheme would take too much memory.
        """
        kernel = self.kernel_of(params.gamma)
        regularizer = self.regularizer.among(kernel, dataset.X, self.basis.learns)
        if self.noise:  # noise adds |beta|^2 noise^2 / 2 to the expected loss of each row
            regularizer = regularizer.against(round_mantissa(params.C * dataset.total * self.noise**2, LEARNING_BITS))
        outputs = dataset.outputs(self.scheme)
        fits_memory = len(outputs) * (self.n_vectors + 1) ** 2 <= MAX_MATRIX_ENTRIES
        return DatasetCandidates(
            dataset,
            kernel,
            dataset.outputs("ovr"),
            params.C,
            self.loss,
            regularizer,
            rng,
            params.scaled,
            start,
            outputs if fits_memory else None,
            (lambda count, rows: Iterations(f"learning {count} vectors on {rows} rows")) if self.verbose else None,
        )

    def fit_coefficients(self, candidates: DatasetCandidates, choice: Choice) -> Coefficients:
        """Optimal coefficients over the chosen vectors on all rows, for the problems of the scheme."""
        dataset = candidates.dataset
        outputs = dataset.outputs(self.scheme)
        learned = choice.learned
        if learned is not None and learned.coef.shape != (len(outputs), choice.vectors.shape[0]):
            learned = None
        return fit_coefficients(
            choice.kernel or candidates.kernel,
            dataset.X,
            choice.vectors,
            dataset_labels(dataset, outputs, candidates.C),
            self.loss,
            candidates.regularizer,
            tol=self.tol,
            max_iter=self.max_iter,
            dtype=np.float32 if dataset.X.dtype == np.float32 else np.float64,
            threads=dataset.threads,
            memory=self.memory,
            near=None if learned is None else (learned.coef, learned.bias),
        )


def shortened(basis: Any, iterations: int, **changes: Any) -> Any:
    """A copy of the basis with at most this many iterations of learning, and with other changes."""
    limit = iterations if basis.iterations == "auto" else min(iterations, int(basis.iterations))
    return replace(basis, iterations=limit, **changes)
