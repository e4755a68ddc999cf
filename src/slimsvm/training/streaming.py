"""Training on a stream: the model is refitted to a sample of its rows in memory as this changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..basis.learning import LearnedVectors
from ..data.dataset import Dataset
from ..data.reservoir import Reservoir
from ..linalg.arrays import Array
from ..model.expansion import Expansion, Model
from ..problem.bases import dense
from .slim import SlimSpec, add_outputs, train_slim, warn_unconverged, with_probabilities_at
from .small import fit_chosen, train
from .spec import Hyperparameters, TrainingSpec, shortened

WARM_ITERATIONS = 20  # of learning in a refit, from the previous vectors
NEW_ROWS_PER_REFIT = 20  # refit when at least one of this many rows in memory is new
ROWS_FACTOR_PER_SEARCH = 4  # search again when rows have grown by this factor since the last search
TURNOVERS_PER_SEARCH = 4  # or, with ``recent``, when the memory was renewed this often


@dataclass(frozen=True)
class Stream:
    """The rows in memory, and the state of the stream at the last fit and the last search."""

    memory: Reservoir
    waits_for: int = 1  # rows in memory before the model of an earlier `fit` is replaced
    fitted: int = 0  # rows seen at the last fit,
    known: int = 0  # and classes then in memory
    searched: int = 0  # rows seen at the last search,
    searched_rows: int = 0  # and rows then in memory

    def is_due(self) -> bool:
        """Whether enough rows, or a class, are new since the last fit."""
        memory = self.memory
        if memory.size < self.waits_for:
            return False
        return memory.since(self.fitted) * NEW_ROWS_PER_REFIT >= memory.size or len(memory.present) != self.known

    def wants_search(self) -> bool:
        """Whether the rows changed so much since the last search that hyperparameters should be searched again."""
        memory = self.memory
        renewed = memory.recent and memory.seen - self.searched >= TURNOVERS_PER_SEARCH * memory.size
        return memory.size >= ROWS_FACTOR_PER_SEARCH * self.searched_rows or (
            renewed and memory.seen >= ROWS_FACTOR_PER_SEARCH * self.searched
        )


@dataclass(frozen=True)
class PreviousModel:
    """Expansion, hyperparameters, scheme and cost of the probability layer from which a refit starts."""

    expansion: Expansion | None = None
    params: Hyperparameters | None = None
    scheme: str | None = None
    probability_C: float | None = None

    @property
    def n_vectors(self) -> int:
        return 0 if self.expansion is None else self.expansion.vectors.shape[0]


def update(stream: Stream, spec: SlimSpec, dataset: Dataset, previous: PreviousModel) -> tuple[Stream, Model]:
    """Fit a model to ``dataset``, the rows in memory; return the updated stream and the model."""
    memory = stream.memory
    spec = replace(spec, seeds=(memory.seed, memory.seen))  # draws depend on the state of the stream only
    if dataset.n_classes < 2 and dataset.targets is None:
        model = constant_model(dataset, spec)
    elif previous.params is None or stream.wants_search():
        model = train_slim(dataset, spec)
        stream = replace(stream, searched=memory.seen, searched_rows=memory.size)
    else:
        same_classes = len(memory.present) == stream.known
        model = warm_refit(dataset, spec, previous, previous.params, same_classes)
    return replace(stream, waits_for=1, fitted=memory.seen, known=len(memory.present)), replace(model, rows=None)


def warm_refit(
    dataset: Dataset, spec: SlimSpec, previous: PreviousModel, params: Hyperparameters, same_classes: bool
) -> Model:
    """Refit with the same hyperparameters; start from the previous vectors if there are as many as allowed."""
    spec = replace(spec, scheme=previous.scheme or spec.scheme)
    rng, training = spec.generator(), spec.training_spec(dataset)
    if dataset.targets is not None:
        cost = spec.search_space(dataset, training).C
        params = params if cost is None else replace(params, C=cost)
    if spec.n_vectors == "auto":
        training = replace(training, n_vectors=max(1, previous.n_vectors))
    enough = previous.n_vectors >= min(training.n_vectors, dataset.n_distinct)
    if training.basis.learns and same_classes and enough:
        model = _continue_learning(dataset, training, params, previous.expansion, rng)
    else:
        model = train(dataset, training, params, rng, quiet=True)
    warn_unconverged(model, spec.tol, spec.problems)
    model = model.with_attributes(C_=params.C)
    if spec.probability and same_classes and previous.probability_C is not None:
        return with_probabilities_at(dataset, model, previous.probability_C, rng, spec.tol, training.memory)
    return add_outputs(dataset, model, spec, training, params, rng)


def _continue_learning(
    dataset: Dataset, training: TrainingSpec, params: Hyperparameters, previous: Any, rng: np.random.Generator
) -> Model:
    """Move the previous vectors for a few iterations and fit optimal coefficients over them."""
    scales = None
    if params.scaled:
        scales = np.broadcast_to(previous.kernel.scales, previous.vectors.shape[1]).astype(float)
    start = LearnedVectors(dense(previous.vectors), scales, previous.coef, previous.bias, np.inf, 0)
    basis = shortened(training.basis, WARM_ITERATIONS)
    candidates = training.candidates(dataset, params, rng, start)
    choice = candidates.sample(basis.most_rows(training.n_vectors)).learn_further(basis.iterations, basis.smoothing)
    return fit_chosen(training, candidates, choice)


def constant_model(dataset: Dataset, spec: SlimSpec) -> Model:
    """A model without vectors for a data set of one class, which it always predicts."""
    training, none = spec.training_spec(dataset), np.zeros(0)
    kernel = training.kernel_of(1.0)
    C = 1.0 if isinstance(spec.C, str) else float(spec.C)
    regularizer = training.regularizer.among(kernel, dataset.X, training.basis.learns)
    more: dict[str, Any] = {"regularizer_": regularizer, "C_": C, "search_results_": {}}
    if spec.probability:
        more |= {"probability_coef_": np.zeros((0, 0)), "probability_intercept_": none}
        more |= {"probability_C_": C, "probability_gap_": 0.0}
    vectors: Array = np.zeros((0, dataset.X.shape[1]), dtype=dataset.X.dtype)
    return Model(Expansion(kernel, vectors, np.zeros((0, 0)), none), None, none, none, none, more, scheme=spec.scheme)
