"""`partial_fit`: the next block of a stream goes into a memory of its rows, to which the model is refitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import column_or_1d

from ..data.dataset import Dataset
from ..data.reservoir import Reservoir
from ..linalg.arrays import Array
from ..model.expansion import Model
from ..training.missing_classes import pad_missing_classes
from ..training.slim import SlimSpec
from ..training.streaming import PreviousModel, Stream, update
from ..utils.threads import thread_count
from ..utils.warnings import warn
from . import checked_data, validation
from .targets import NO_CHECKS, RegressionTargets

# Attributes that a refitted model takes over.
KEPT_BY_REFIT = (
    "n_features_in_",
    "feature_names_in_",
    "classes_",
    "multi_class_",
    "C_",
    "search_results_",
    "frontier_",
)


def check_stream_kernel(model: Any) -> None:
    """Raise AttributeError where there is no `partial_fit`."""
    if validation.is_precomputed(model.kernel):
        raise AttributeError(
            "no partial_fit with kernel='precomputed', which has no values between rows of different blocks. Use a "
            "kernel by its name or a function, or fit on the whole matrix"
        )


@dataclass(frozen=True)
class ClassStream:
    """A stream of rows with class labels; classes may appear later in the stream."""

    class_weight: Any
    given: Any  # all labels that will ever come, if this call names them
    checks: ClassVar[Mapping[str, bool]] = NO_CHECKS

    def has_begun(self, state: dict[str, Any]) -> bool:
        return "classes_" in state

    def labels(self, state: dict[str, Any], y: Array) -> Array:
        """All labels of the stream; ValueError where those of a block do not fit."""
        validation.check_targets(y)
        return known_classes(state.get("classes_"), self.given, y)

    def coded(self, y: Array, labels: Array) -> tuple[Array, None]:
        return np.searchsorted(labels, y), None

    def dataset(self, memory: Reservoir, labels: Array, model: Any) -> Dataset:
        """The dataset of the rows in memory, without classes that have no rows there."""
        present = memory.present
        codes, factors = np.searchsorted(present, memory.codes), self._factors(labels, memory)[present]
        fields = {"codes": codes, "classes": labels[present], "class_weights": factors}
        return checked_data.dataset_of_rows(memory.X, memory.counts(), fields, model.kernel, thread_count(model.n_jobs))

    def of_all(self, dataset: Dataset, model: Model, memory: Reservoir, labels: Array) -> tuple[Dataset, Model]:
        """Extend a model of the classes in memory to all classes."""
        whole = replace(dataset, classes=labels, class_weights=self._factors(labels, memory))
        padded = pad_missing_classes(model, memory.present, len(labels), memory.size)
        return whole, padded.with_attributes(multi_class_=model.scheme)

    def _factors(self, labels: Array, memory: Reservoir) -> Array:
        """Weights of all classes; "balanced" are those of the classes in memory."""
        if hasattr(self.class_weight, "get"):
            return validation.class_weights(self.class_weight, labels, memory.codes, memory.weights)
        factors, present = np.ones(len(labels)), memory.present
        codes = np.searchsorted(present, memory.codes)
        factors[present] = validation.class_weights(self.class_weight, labels[present], codes, memory.counts())
        return factors


@dataclass(frozen=True)
class TargetStream:
    """A stream of rows with targets; ``alike``: all have the same unit."""

    targets: RegressionTargets

    @property
    def checks(self) -> Mapping[str, bool]:
        return self.targets.checks

    def has_begun(self, state: dict[str, Any]) -> bool:
        return "vectors_" in state or "stream_" in state

    def labels(self, state: dict[str, Any], y: Array) -> Array:
        """ValueError where a block has other targets than those before."""
        if self.has_begun(state):
            known, given = (
                f"shape (n_samples,{'' if single else f' {count}'})"
                for single, count in ((state["_single"], len(state["intercept_"])), (y.ndim == 1, y.shape[-1]))
            )
            if known != given:
                raise ValueError(f"y has {given}, and had {known} before: start a new stream, or fit")
        state["_single"] = y.ndim == 1
        return np.zeros(1)

    def coded(self, y: Array, labels: Array) -> tuple[Array, Array]:
        return np.zeros(len(y), dtype=np.int32), self.targets.fields(y)["targets"]

    def dataset(self, memory: Reservoir, labels: Array, model: Any) -> Dataset:
        """The rows in memory."""
        fields: dict[str, Any] = {"codes": memory.codes, "classes": labels, "class_weights": np.ones(1)}
        fields |= {"targets": memory.targets, "single_target": model._single}
        threads = thread_count(model.n_jobs)
        return checked_data.dataset_of_rows(
            memory.X, memory.counts(), fields, model.kernel, threads, self.targets.alike
        )

    def of_all(self, dataset: Dataset, model: Model, memory: Reservoir, labels: Array) -> tuple[Dataset, Model]:
        return dataset, model


def partial_fit(model: Any, kind: ClassStream | TargetStream, X: Any, y: Any, sample_weight: Any) -> Any:
    """Add a block of rows to the stream and refit the model if due; return the estimator."""
    # On another object, as in `fit`: an interrupted call leaves the state that was there.
    fresh, spec = model._snapshot(), model._spec()
    fresh.__dict__ = state = dict(vars(model))
    stream = state.get("stream_")
    _check_recent(stream, model.recent)
    goes_on = kind.has_begun(state)
    X, y = validation.check_data(fresh, X, goes_on=goes_on, y=y, **kind.checks)
    labels = kind.labels(state, y)
    weights = _weights(fresh, X, sample_weight, goes_on)
    rows = np.flatnonzero(weights)
    if len(rows) < len(weights):
        X, y, weights = X[rows], y[rows], weights[rows]
    if len(rows):
        memory = _remember(stream, spec, model, X, weights, len(labels), *kind.coded(y, labels))
        stream = _open(state, memory, model.memory) if stream is None else replace(stream, memory=memory)
        fresh.stream_, fresh.n_samples_seen_ = stream, int(state.get("n_samples_seen_", 0)) + len(rows)
        if stream.is_due():
            fresh = _refitted(fresh, stream, spec, kind, labels)
    model.__dict__ = fresh.__dict__
    return model


def _check_recent(stream: Stream | None, recent: Any) -> None:
    """Raise ValueError where the rows in memory are of another kind."""
    if stream is not None and stream.memory.recent != bool(recent):
        raise ValueError(
            f"recent={recent!r}, but the rows in memory were kept with recent={stream.memory.recent}. Set it "
            "back, or start a new stream: sklearn.base.clone(model), or fit"
        )


def _weights(model: Any, X: Any, sample_weight: Any, goes_on: bool) -> Array:
    """Weights of the rows; all may be 0 where there is a model already."""
    if sample_weight is None:
        return np.ones(X.shape[0])
    if goes_on and not np.any(sample_weight):
        return np.zeros(X.shape[0])
    weights = validation.sample_weights(model, sample_weight, X)
    assert weights is not None
    return weights


def _remember(
    stream: Stream | None,
    spec: SlimSpec,
    model: Any,
    X: Any,
    weights: Array,
    n_classes: int,
    codes: Array,
    targets: Array | None,
) -> Reservoir:
    """Add rows to the memory."""
    if stream is None:
        memory = Reservoir.empty(X, n_classes, spec.seed(), bool(model.recent), targets)
    else:
        memory = stream.memory
    return memory.after(X, codes, weights, int(model.memory), targets)


def _open(state: dict[str, Any], memory: Reservoir, most: int) -> Stream:
    """Start a stream with its first rows, from the model and hyperparameters of an earlier `fit` if there is one."""
    if "_setting" not in state or "vectors_" not in state:
        return Stream(memory)
    rows = min(int(state.get("n_samples_seen_", most)), int(most))
    return Stream(memory, rows, 0, len(memory.totals), 0, rows)


def _refitted(fitted: Any, stream: Stream, spec: SlimSpec, kind: ClassStream | TargetStream, labels: Array) -> Any:
    """A copy of the estimator, refitted to the rows in memory."""
    state = vars(fitted)
    dataset = kind.dataset(stream.memory, labels, fitted)
    expansion = fitted._expansion() if "vectors_" in state else None
    previous = PreviousModel(expansion, state.get("_setting"), state.get("multi_class_"), state.get("probability_C_"))
    stream, model = update(stream, spec, dataset, previous)
    if stream.searched == stream.memory.seen:
        complaint = validation.scale_complaint(dataset.X, fitted.kernel, state.get("feature_names_in_"))
        if complaint:
            warn(complaint)
    # Another object: the next model must not have attributes that only the last one had.
    fresh = fitted._unfitted_copy()
    vars(fresh).update({name: state[name] for name in KEPT_BY_REFIT if name in state})
    fresh._set_fitted(*kind.of_all(dataset, model, stream.memory, labels))
    fresh.stream_, fresh.n_samples_seen_ = stream, fitted.n_samples_seen_
    return fresh


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
