"""Training of a small classifier: settings, vectors, coefficients over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..basis.candidates import DatasetCandidates
from ..basis.learning import LearnedVectors
from ..data.dataset import Dataset, Output
from ..linalg.arrays import Array
from ..model.expansion import Expansion, Model
from ..problem.bases import Choice
from ..problem.losses import LEARNING_DIGITS, few_digits
from ..rows.labels import dataset_labels
from ..solvers.primal.coefficients import Coefficients, fit_coefficients
from ..utils.progress import Iterations
from ..utils.warnings import warn

# Learning that its limit ends while it gains more than this part of the objective gives a warning.
WORTH_A_WORD = 0.02
SHOWS = 2e-3  # of the mean loss of targets of variance 1
MOST_NUMBERS = 1 << 23  # of the matrices of all machines


def watched(vectors: int, rows: int) -> Iterations:
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

    count: int
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
        setting: Hyperparameters,
        rng: np.random.Generator,
        start: LearnedVectors | Array | None = None,
    ) -> DatasetCandidates:
        """Rows to choose vectors from. Those that stay rows are chosen for problems of one class against the others;
        learned ones serve the machines that classify, as long as the matrices of all of them take little memory."""
        kernel = self.kernel_of(setting.gamma)
        regularizer = self.regularizer.among(kernel, dataset.X, self.basis.learns)
        if self.noise:  # adds |beta|^2 noise^2 / 2 to the loss of each row, on average
            regularizer = regularizer.against(few_digits(setting.C * dataset.total * self.noise**2, LEARNING_DIGITS))
        rest, own = dataset.outputs("ovr"), dataset.outputs(self.scheme)
        return DatasetCandidates(
            dataset,
            kernel,
            rest,
            setting.C,
            self.loss,
            regularizer,
            rng,
            setting.scaled,
            start,
            own if len(own) * (self.count + 1) ** 2 <= MOST_NUMBERS else None,
            watched if self.verbose else None,
        )

    def coefficients(
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


def train(
    dataset: Dataset,
    spec: TrainingSpec,
    setting: Hyperparameters,
    rng: np.random.Generator,
    on_trial: bool = False,
    search_vectors: Sequence[LearnedVectors] = (),
) -> Model:
    """Vectors, and the best coefficients of the recipe's scheme over them.

    ``on_trial``: no warning where learning might go on. ``search_vectors``: what the
    search learned with this setting.
    """
    wanted = dataset.outputs(spec.scheme)
    candidates = replace(spec.candidates(dataset, setting, rng), search_vectors=search_vectors)
    return fit_over(dataset, spec, candidates, wanted, on_trial)


def fit_over(
    dataset: Dataset, spec: TrainingSpec, candidates: DatasetCandidates, wanted: list[Output], on_trial: bool = False
) -> Model:
    """Vectors, learned on some of the rows where those are many, and the best coefficients over them on all rows."""
    choice = spec.basis.choose(candidates, spec.count)
    if choice.learned is not None and not on_trial:
        tell_if_unfinished(choice.learned, dataset)
    return fit_chosen(dataset, spec, candidates, choice, wanted)


def fit_chosen(
    dataset: Dataset, spec: TrainingSpec, candidates: DatasetCandidates, choice: Choice, wanted: list[Output]
) -> Model:
    """The best coefficients over these vectors on all rows."""
    fitted = spec.coefficients(dataset, choice, candidates, wanted)
    expansion = Expansion(choice.kernel or candidates.kernel, choice.vectors, fitted.coef, fitted.bias)
    more: dict[str, Any] = {"regularizer_": fitted.regularizer}
    if choice.learned is not None:
        more |= {"learning_iter_": choice.learned.n_iter, "learning_gain_left_": choice.learned.to_gain}
    model = Model(expansion, choice.rows, fitted.objective, fitted.gap, fitted.n_iter, more, fitted.limits)
    return model.without_idle_vectors() if spec.regularizer.reweighted else model


def tell_if_unfinished(learned: LearnedVectors, dataset: Dataset) -> None:
    """A warning where more iterations may give a better model. Of targets with little noise next to nothing is left
    that could fall, and it may go on falling."""
    if learned.to_gain > WORTH_A_WORD and (dataset.targets is None or learned.to_gain * learned.value > SHOWS):
        warn(
            f"learning ended at its limit of {learned.n_iter} iterations while the objective still fell"
            f"{_lately(learned.to_gain)}: "
            f"basis=Learned(iterations={2 * learned.n_iter}) may give a better model",
            ConvergenceWarning,
        )


def _lately(gain: float) -> str:
    """In words; after a single iteration there is nothing to compare with."""
    return f" (by {100 * gain:.1f} % in the last quarter of them)" if np.isfinite(gain) else ""
