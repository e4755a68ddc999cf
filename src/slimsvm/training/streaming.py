"""Training on a stream: a memory of some of its rows, and a model that is refitted to them as they change."""

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

WARM_ITERATIONS = 20  # of learning, for vectors that were learned before
NEW_ROWS_PER_REFIT = 20  # a refit is due when one of so many rows in memory is new
ROWS_FACTOR_PER_SEARCH = 4  # times the rows of the last search: hyperparameters are searched for again
TURNOVERS_PER_SEARCH = 4  # the same where only recent rows are kept, and the memory has been renewed so often


@dataclass(frozen=True)
class Stream:
    """The memory, and how the model that there is was made from it."""

    memory: Reservoir
    waits_for: int = 1  # rows in memory that are needed to do better than the model of a fit before
    fitted: int = 0  # rows that had come when the model was made,
    known: int = 0  # and classes that were in memory
    searched: int = 0  # rows that had come when hyperparameters were searched for,
    searched_rows: int = 0  # and those in memory

    def is_due(self) -> bool:
        """Is there enough that the model does not know?"""
        memory = self.memory
        if memory.size < self.waits_for:
            return False
        return memory.since(self.fitted) * NEW_ROWS_PER_REFIT >= memory.size or len(memory.present) != self.known

    def wants_search(self) -> bool:
        """Are the hyperparameters those of other rows?"""
        memory = self.memory
        renewed = memory.recent and memory.seen - self.searched >= TURNOVERS_PER_SEARCH * memory.size
        return memory.size >= ROWS_FACTOR_PER_SEARCH * self.searched_rows or (
            renewed and memory.seen >= ROWS_FACTOR_PER_SEARCH * self.searched
        )


@dataclass(frozen=True)
class PreviousModel:
    """What a refit starts from."""

    expansion: Expansion | None = None
    params: Hyperparameters | None = None
    scheme: str | None = None
    probability_C: float | None = None

    @property
    def n_vectors(self) -> int:
        return 0 if self.expansion is None else self.expansion.vectors.shape[0]


def update(stream: Stream, spec: SlimSpec, dataset: Dataset, previous: PreviousModel) -> tuple[Stream, Model]:
    """The model of the rows in memory, which are ``dataset``, and the stream that knows of it."""
    memory = stream.memory
    spec = replace(spec, seeds=(memory.seed, memory.seen))  # whatever was drawn before
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
    """Hyperparameters as they are; vectors start where they were, if they are all that there may be."""
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
    """Vectors moved on a little, and the best coefficients over them."""
    scales = None
    if params.scaled:
        scales = np.broadcast_to(previous.kernel.scales, previous.vectors.shape[1]).astype(float)
    start = LearnedVectors(dense(previous.vectors), scales, previous.coef, previous.bias, np.inf, 0)
    basis = shortened(training.basis, WARM_ITERATIONS)
    candidates = training.candidates(dataset, params, rng, start)
    choice = candidates.sample(basis.most_rows(training.n_vectors)).learn_further(basis.iterations, basis.smoothing)
    return fit_chosen(training, candidates, choice)


def constant_model(dataset: Dataset, spec: SlimSpec) -> Model:
    """One class only: every row gets it."""
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
