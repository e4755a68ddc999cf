"""What training needs to know of a model over few vectors: its specification, and its hyperparameters."""

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

MAX_MATRIX_ENTRIES = 1 << 23  # of the Newton matrices of all binary problems that vectors are learned for


@dataclass(frozen=True)
class Hyperparameters:
    """One candidate of the search: cost, gamma, and whether the scales of the inputs are learned."""

    C: float
    gamma: float
    scaled: bool = False


@dataclass(frozen=True)
class TrainingSpec:
    """All that an estimator's parameters say of a model over few vectors, but for its hyperparameters."""

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
        """Rows to choose vectors from.

        Rows are selected for the problems of one class against the others. Vectors are learned for the problems of the
        scheme, unless their Newton matrices would take much memory.
        """
        kernel = self.kernel_of(params.gamma)
        regularizer = self.regularizer.among(kernel, dataset.X, self.basis.learns)
        if self.noise:  # adds |beta|^2 noise^2 / 2 to the loss of each row, on average
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
        """The best coefficients over the chosen vectors on all rows, for the problems of the scheme."""
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
    """The basis with at most so many iterations of learning, and with other changes."""
    limit = iterations if basis.iterations == "auto" else min(iterations, int(basis.iterations))
    return replace(basis, iterations=limit, **changes)
