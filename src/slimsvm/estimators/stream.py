"""Training on a stream: a memory of some of its rows, and a model that is moved on over them as they change."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..basis.learning import LearnedVectors
from ..data.dataset import Dataset
from ..data.reservoir import Reservoir
from ..linalg.arrays import Array
from ..model.expansion import Model
from ..problem.bases import dense
from ..training.small import fit_chosen, train
from ..training.spec import Hyperparameters, TrainingSpec
from ..utils.warnings import warn
from . import validation
from .slim_machine import SlimMachine

ITERATIONS = 20  # of learning, for vectors that were learned before
FEW_NEW = 20  # new rows are few where they are less than one of so many in memory
MORE_ROWS = 4  # times the rows of the last search: settings are searched for again
TURNOVER = 4  # the same where only recent rows are kept, and the memory has been renewed so often
# Of the model before, what a model that is only moved on still has.
STAYS = ("n_features_in_", "feature_names_in_", "classes_", "multi_class_", "C_", "search_results_", "frontier_")


@dataclass(frozen=True)
class Stream:
    """The memory, and how the model that there is was made from it."""

    memory: Reservoir
    waits_for: int = 1  # rows in memory that are needed to do better than the model of a fit before
    fitted: int = 0  # rows that had come when the model was made,
    known: int = 0  # and classes that were in memory
    searched: int = 0  # rows that had come when settings were searched for,
    searched_rows: int = 0  # and those in memory

    def is_due(self) -> bool:
        """Is there enough that the model does not know?"""
        memory = self.memory
        if memory.size < self.waits_for:
            return False
        return memory.since(self.fitted) * FEW_NEW >= memory.size or len(memory.present) != self.known

    def wants_search(self) -> bool:
        """Are settings those of other rows?"""
        memory = self.memory
        renewed = memory.recent and memory.seen - self.searched >= TURNOVER * memory.size
        return memory.size >= MORE_ROWS * self.searched_rows or (renewed and memory.seen >= MORE_ROWS * self.searched)


def check_streams(model: Any) -> None:
    reason = model._lacks_streams()
    if reason:
        raise AttributeError(reason)


class Streamed(SlimMachine):
    """A small machine that goes on learning, block by block; subclasses say what labels are."""

    memory: int
    recent: bool

    @abstractmethod
    def _has_begun(self) -> bool:
        """Did rows come before?"""

    @abstractmethod
    def _known_labels(self, y: Array, *more: Any) -> Array:
        """What is known of all labels of the stream; ValueError where those of a block do not fit."""

    @abstractmethod
    def _remembered(self, memory: Reservoir | None, X: Any, y: Array, weights: Array, labels: Array) -> Reservoir:
        """The memory after a block; None: before the first."""

    @abstractmethod
    def _memory_task(self, labels: Array, memory: Reservoir) -> Dataset:
        """The rows in memory."""

    @abstractmethod
    def _keep_of(self, labels: Array, memory: Reservoir, dataset: Dataset, model: Model) -> None:
        """Fitted attributes, from a model of the rows in memory."""

    def _check_params(self) -> None:
        super()._check_params()
        validation.check_number("memory", self.memory, at_least=2, integer=True)
        validation.check_yes_or_no("recent", self.recent)

    def _continued(self, X: Any, y: Any, sample_weight: Any, *more: Any) -> Any:
        """After a block of rows."""
        # On another object, as in fit: an interrupted call leaves the state that was there.
        fresh = self._snapshot()
        fresh.__dict__ = dict(vars(self))
        fresh._go_on(X, y, sample_weight, *more)
        self.__dict__ = fresh.__dict__
        return self

    def _go_on(self, X: Any, y: Any, sample_weight: Any, *more: Any) -> None:
        self._check_params()
        self._check_stream()
        goes_on = self._has_begun()
        X, y = validation.check_data(self, X, goes_on=goes_on, y=y, **self._targets().checks)
        labels = self._known_labels(y, *more)
        weights = self._weights(X, sample_weight, goes_on)
        rows = np.flatnonzero(weights)
        if len(rows) < len(weights):
            X, y, weights = X[rows], y[rows], weights[rows]
        if not len(rows):
            return
        stream = vars(self).get("stream_")
        memory = self._remembered(None if stream is None else stream.memory, X, y, weights, labels)
        stream = self._opened(memory) if stream is None else replace(stream, memory=memory)
        self.stream_ = stream
        self.n_samples_seen_ = int(vars(self).get("n_samples_seen_", 0)) + len(rows)
        if stream.is_due():
            self._refit(labels, stream)

    def _weights(self, X: Any, sample_weight: Any, goes_on: bool) -> Array:
        """Of the rows; all may be 0 where there is a model already."""
        if sample_weight is None:
            return np.ones(X.shape[0])
        if goes_on and not np.any(sample_weight):
            return np.zeros(X.shape[0])
        weights = validation.sample_weights(self, sample_weight, X)
        assert weights is not None
        return weights

    def _lacks_streams(self) -> str | None:
        """Why there is no partial_fit, in words; None if there is."""
        if validation.is_precomputed(self.kernel):
            return (
                "no partial_fit with kernel='precomputed', which has no values between rows of different blocks. Use a "
                "kernel by its name or a function, or fit on the whole matrix"
            )
        return None

    def _check_stream(self) -> None:
        """Raise ValueError where the rows in memory are of another kind."""
        known = vars(self).get("stream_")
        if known is not None and known.memory.recent != bool(self.recent):
            raise ValueError(
                f"recent={self.recent!r}, but the rows in memory were kept with recent={known.memory.recent}. Set it "
                "back, or start a new stream: sklearn.base.clone(model), or fit"
            )

    def _opened(self, memory: Reservoir) -> Stream:
        """A stream with its first rows. After a fit, its model and its settings are where it begins."""
        if "_setting" not in vars(self) or "vectors_" not in vars(self):
            return Stream(memory)
        rows = min(int(vars(self).get("n_samples_seen_", self.memory)), int(self.memory))
        return Stream(memory, rows, 0, len(memory.totals), 0, rows)

    def _seed(self) -> int:
        """Of a new stream."""
        return int(check_random_state(self.random_state).randint(2**31))

    # --- the model of the rows in memory -----------------------------------------------------------------------------

    def _refit(self, labels: Array, stream: Stream) -> None:
        memory = stream.memory
        dataset = self._memory_task(labels, memory)
        searches = self._can_learn(memory) and ("_setting" not in vars(self) or stream.wants_search())
        # Another object again: the next model must not have attributes that only the last one had.
        fresh = self._unfitted_copy()
        fresh.__dict__.update({name: value for name, value in vars(self).items() if name in STAYS})
        fresh.stream_, fresh.n_samples_seen_ = stream, self.n_samples_seen_
        if not self._can_learn(memory):
            model = fresh._constant(dataset)
        elif searches:
            model = fresh._searched(dataset)
        else:
            model = fresh._moved_on(dataset, self, len(memory.present) == stream.known)
        if searches:
            stream = replace(stream, searched=memory.seen, searched_rows=memory.size)
        fresh.stream_ = replace(stream, waits_for=1, fitted=memory.seen, known=len(memory.present))
        fresh._keep_of(labels, memory, dataset, replace(model, rows=None))
        fresh.n_samples_seen_ = self.n_samples_seen_
        self.__dict__ = fresh.__dict__

    def _can_learn(self, memory: Reservoir) -> bool:
        """Is there anything to learn from?"""
        return True

    def _constant(self, dataset: Dataset) -> Model:
        """The model where there is not."""
        raise NotImplementedError

    def _rng(self) -> np.random.Generator:
        """Within a stream: draws of this moment of it, whatever was done before."""
        stream = vars(self).get("stream_")
        return super()._rng() if stream is None else np.random.default_rng([stream.memory.seed, stream.memory.seen])

    def _searched(self, dataset: Dataset) -> Model:
        """As a fit: settings are looked for, and vectors start anew."""
        names = vars(self).get("feature_names_in_")
        complaint = validation.scale_complaint(dataset.X, self.kernel, names)
        model = self._train(dataset)
        if complaint:
            warn(complaint)
        return model

    def _moved_on(self, dataset: Dataset, before: Any, same_classes: bool) -> Model:
        """Settings as they are; vectors start where they were, if they are all that there may be."""
        rng, setting = self._rng(), self._setting_for(dataset)
        spec = self._recipe(dataset)
        if self.n_vectors == "auto":
            spec = replace(spec, n_vectors=max(1, before.n_vectors_))
        enough = before.n_vectors_ >= min(spec.n_vectors, dataset.n_distinct)
        if spec.basis.learns and same_classes and enough:
            model = _further(dataset, spec, setting, _start(before, setting), rng)
        else:
            model = train(dataset, spec, setting, rng, quiet=True)
        self._tell(model)
        model = replace(model, more=model.more | {"C_": setting.C})
        return self._moved_finished(dataset, model, before, same_classes, spec, setting, rng)

    def _setting_for(self, dataset: Dataset) -> Hyperparameters:
        """The settings that were found before."""
        return self._setting

    def _moved_finished(
        self,
        dataset: Dataset,
        model: Model,
        before: Any,
        same_classes: bool,
        spec: TrainingSpec,
        setting: Hyperparameters,
        rng: np.random.Generator,
    ) -> Model:
        """With all else that is fitted over the vectors."""
        return self._finished(dataset, model, spec, setting, rng)

    def _set_fitted(self, dataset: Dataset, model: Model, scheme: str = "") -> Any:
        super()._set_fitted(dataset, model)
        self.n_samples_seen_ = dataset.n_samples
        return self


def _start(model: Any, setting: Hyperparameters) -> LearnedVectors:
    """Where learning goes on from a fitted model."""
    scales = np.broadcast_to(model.kernel_.scales, model.n_features_in_).astype(float) if setting.scaled else None
    return LearnedVectors(dense(model.vectors_), scales, model.vector_coef_, model.intercept_, np.inf, 0)


def _further(
    dataset: Dataset, spec: TrainingSpec, setting: Hyperparameters, start: LearnedVectors, rng: np.random.Generator
) -> Model:
    """Vectors moved on a little, and the best coefficients over them."""
    basis = spec.basis
    steps = ITERATIONS if isinstance(basis.iterations, str) else min(ITERATIONS, int(basis.iterations))
    candidates = spec.candidates(dataset, setting, rng, start)
    choice = candidates.sample(basis.most_rows(spec.n_vectors)).learn_further(steps, basis.smoothing)
    return fit_chosen(spec, candidates, choice)
