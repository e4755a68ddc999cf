"""Training on a stream: a memory of some of its rows, and a model that is moved on over them as they change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state, column_or_1d

from ..data import Task, outputs
from ..expansion import Expansion, Model
from ..formulation import Array
from ..notices import warn
from ..parts.bases import dense
from ..reservoir import Reservoir
from ..vectors.learning import LearnedVectors
from ..vectors.training import Recipe, Setting, fit_chosen, train
from . import validation
from .absent import among_all
from .base import offered
from .small_basis import SmallBasisClassifier

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


class StreamClassifier(SmallBasisClassifier):
    """A small classifier that goes on learning, block by block."""

    memory: int
    recent: bool
    max_bytes: int | None

    def _check_memory(self) -> None:
        validation.check_number("memory", self.memory, at_least=2, integer=True)
        validation.check_yes_or_no("recent", self.recent)

    @partial(offered, lacks="_lacks_streams")
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Go on with a block of rows: the next one of a stream.

        Some rows of the stream are kept, ``memory`` at most, and the model is moved on to fit them. What a call costs
        does not grow with the rows that came before. ``objective_`` and ``duality_gap_`` are about the rows in memory,
        not about the whole stream.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The next rows.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like, optional
            All labels that will ever come. Needed in the first call, unless the first rows have them all. A class is
            not predicted before it has come.
        sample_weight : array-like of shape (n_samples,), optional
            Rows are kept, and count, by their weights.

        Returns
        -------
        self

        Notes
        -----
        The model is made anew when a twentieth of the rows in memory are new to it, or a class is: calls of a few rows
        only fill the memory meanwhile. After `fit`, the model of `fit` stays until the memory has as many rows as
        `fit` had, or is full. `fit` forgets all that came before.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from slimsvm import SlimSVC
        >>> X, y = make_moons(2000, noise=0.2, random_state=0)
        >>> clf = SlimSVC(n_vectors=8, memory=1000)
        >>> for start in range(0, 2000, 500):
        ...     rows = slice(start, start + 500)
        ...     clf = clf.partial_fit(X[rows], y[rows], classes=[0, 1])
        >>> clf.n_samples_seen_, clf.stream_.memory.size, bool(clf.score(X, y) > 0.95)
        (2000, 1000, True)
        """
        # On another object, as in fit: an interrupted call leaves the state that was there.
        fresh = self._snapshot()
        fresh.__dict__ = dict(vars(self))
        fresh._go_on(X, y, classes, sample_weight)
        self.__dict__ = fresh.__dict__
        return self

    def _go_on(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        self._check_params()
        self._check_stream()
        goes_on = "classes_" in vars(self)
        X, y = validation.check_data(self, X, goes_on=goes_on, y=y)
        validation.check_targets(y)
        labels = known_classes(vars(self).get("classes_"), classes, y)
        weights = self._weights(X, sample_weight, goes_on)
        rows = np.flatnonzero(weights)
        if len(rows) < len(weights):
            X, y, weights = X[rows], y[rows], weights[rows]
        if not len(rows):
            return
        stream = vars(self).get("stream_") or self._opened(X, len(labels))
        memory = stream.memory.after(X, np.searchsorted(labels, y), weights, int(self.memory))
        stream = replace(stream, memory=memory)
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
        if self.max_bytes is not None:
            return (
                f"no partial_fit with max_bytes={self.max_bytes}, which is for fit. Leave it out and set n_vectors; "
                "model_bytes_ says what that takes"
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

    def _opened(self, X: Any, n_classes: int) -> Stream:
        """A stream before its first row. After a fit, its model and its settings are where it begins."""
        seed = int(check_random_state(self.random_state).randint(2**31))
        memory = Reservoir.empty(X, n_classes, seed, bool(self.recent))
        if "_setting" not in vars(self) or "vectors_" not in vars(self):
            return Stream(memory)
        rows = min(int(vars(self).get("n_samples_seen_", self.memory)), int(self.memory))
        return Stream(memory, rows, 0, n_classes, 0, rows)

    # --- the model of the rows in memory -----------------------------------------------------------------------------

    def _refit(self, labels: Array, stream: Stream) -> None:
        memory, present = stream.memory, stream.memory.present
        task = self._memory_task(labels, memory)
        searches = len(present) > 1 and ("_setting" not in vars(self) or stream.wants_search())
        # Another object again: the next model must not have attributes that only the last one had.
        fresh = self._anew()
        fresh.__dict__.update({name: value for name, value in vars(self).items() if name in STAYS})
        fresh.stream_, fresh.n_samples_seen_ = stream, self.n_samples_seen_
        if len(present) == 1:
            model = fresh._constant(task)
        elif searches:
            model = fresh._searched(task)
        else:
            model = fresh._moved_on(task, self, len(present) == stream.known)
        if searches:
            stream = replace(stream, searched=memory.seen, searched_rows=memory.size)
        fresh.stream_ = replace(stream, waits_for=1, fitted=memory.seen, known=len(present))
        whole = replace(task, classes=labels, factors=self._class_factors(labels, memory))
        fresh._keep(whole, among_all(replace(model, rows=None), present, len(labels), fresh._scheme(), memory.size))
        fresh.n_samples_seen_ = self.n_samples_seen_
        self.__dict__ = fresh.__dict__

    def _memory_task(self, labels: Array, memory: Reservoir) -> Task:
        """The rows in memory; classes that have none there are left out."""
        present = memory.present
        codes, factors = np.searchsorted(present, memory.codes), self._class_factors(labels, memory)[present]
        return validation.task_of_rows(self, memory.X, codes, memory.counts(), labels[present], factors)

    def _class_factors(self, labels: Array, memory: Reservoir) -> Array:
        """Weights of all classes; "balanced" are those of the classes in memory."""
        if hasattr(self.class_weight, "get"):
            return validation.class_weights(self.class_weight, labels, memory.codes, memory.weights)
        factors, present = np.ones(len(labels)), memory.present
        codes = np.searchsorted(present, memory.codes)
        factors[present] = validation.class_weights(self.class_weight, labels[present], codes, memory.counts())
        return factors

    def _rng(self) -> np.random.Generator:
        """Within a stream: draws of this moment of it, whatever was done before."""
        stream = vars(self).get("stream_")
        return super()._rng() if stream is None else np.random.default_rng([stream.memory.seed, stream.memory.seen])

    def _constant(self, task: Task) -> Model:
        """One class only: every row gets it."""
        recipe, nothing = self._recipe(task), np.zeros(0)
        kernel = recipe.kernel_of(1.0)
        more: dict[str, Any] = {
            "regularizer_": recipe.regularizer.among(kernel, task.X, recipe.basis.learns),
            "C_": 1.0 if isinstance(self.C, str) else float(self.C),
            "search_results_": {},
        }
        self.multi_class_ = self.multi_class
        if self.probability:
            more |= {"probability_coef_": np.zeros((0, 0)), "probability_intercept_": nothing}
            more |= {"probability_C_": more["C_"], "probability_gap_": 0.0}
        expansion = Expansion(kernel, np.zeros((0, task.X.shape[1]), dtype=task.X.dtype), np.zeros((0, 0)), nothing)
        return Model(expansion, None, nothing, nothing, nothing, more)

    def _searched(self, task: Task) -> Model:
        """As a fit: settings are looked for, and vectors start anew."""
        names = vars(self).get("feature_names_in_")
        complaint = validation.scale_complaint(task.X, self.kernel, names)
        model = self._train(task)
        if complaint:
            warn(complaint)
        return model

    def _moved_on(self, task: Task, before: Any, same_classes: bool) -> Model:
        """Settings as they are; vectors start where they were, if they are all that there may be."""
        rng, setting = self._rng(), self._setting
        recipe = self._recipe(task)
        if self.n_vectors == "auto":
            recipe = replace(recipe, count=max(1, before.n_vectors_))
        enough = before.n_vectors_ >= min(recipe.count, task.n_distinct)
        if recipe.basis.learns and same_classes and enough:
            model = _further(task, recipe, setting, _start(before, setting), rng)
        else:
            model = train(task, recipe, setting, rng, on_trial=True)
        self._tell(model)
        if not self.probability:
            return model
        if not same_classes or "probability_C_" not in vars(before):
            return self._with_probabilities(task, model, recipe, setting, rng)
        return self._with_layer_at(task, model, before.probability_C_, rng, recipe.memory)

    def _keep(self, task: Task, model: Model) -> None:
        super()._keep(task, model)
        self.n_samples_seen_ = task.n_samples


def known_classes(known: Array | None, given: Any, y: Array) -> Array:
    """All classes of a stream, in order; ValueError where labels are not among them."""
    labels = np.unique(y)
    if given is not None:
        given = np.unique(column_or_1d(given))
        if len(given) < 2:
            raise ValueError(f"classes={given.tolist()}: a classifier needs two classes or more")
        if known is not None and not np.array_equal(known, given):
            raise ValueError(f"classes={given.tolist()} are not those of the calls before: {known.tolist()}")
    if known is None and given is None:
        if len(labels) < 2:
            raise ValueError(
                f"y has one class only ({labels.tolist()[0]!r}): name all classes that will come in the first call, "
                "partial_fit(X, y, classes=[...])"
            )
        return labels
    classes: Array = known if known is not None else given
    among = set(classes.tolist())
    unknown = [label for label in labels.tolist() if label not in among]
    if unknown:
        raise ValueError(
            f"y has labels that are not among the classes of the stream: {unknown[:10]}; it has {classes.tolist()}. "
            "Name all classes that will ever come in the first call, partial_fit(X, y, classes=[...])"
        )
    return classes


def _start(model: Any, setting: Setting) -> LearnedVectors:
    """Where learning goes on from a fitted model."""
    scales = np.broadcast_to(model.kernel_.scales, model.n_features_in_).astype(float) if setting.scaled else None
    return LearnedVectors(dense(model.vectors_), scales, model.vector_coef_, model.intercept_, np.inf, 0)


def _further(task: Task, recipe: Recipe, setting: Setting, start: LearnedVectors, rng: np.random.Generator) -> Model:
    """Vectors moved on a little, and the best coefficients over them."""
    basis = recipe.basis
    steps = ITERATIONS if isinstance(basis.iterations, str) else min(ITERATIONS, int(basis.iterations))
    candidates = recipe.candidates(task, setting, rng, start)
    choice = candidates.sample(basis.most_rows(recipe.count)).learned_on(steps, basis.smoothing)
    return fit_chosen(task, recipe, candidates, choice, outputs(task.n_classes, recipe.scheme))
