"""Training of the compressed estimators: fit an estimator and compress its model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from ...compression import (
    METHODS,
    Compression,
    Compressor,
    Original,
    SmallModel,
    distinct_rows,
    has_labels,
    small_model,
)
from ...compression.tasks import Classification
from ...data.dataset import Dataset
from ...linalg.arrays import Array
from ...model.expansion import Expansion
from ...training.probabilities import calibration_folds, fit_probabilities
from ...training.slim import MIN_PROBABILITY_TOL
from ...utils.threads import thread_count
from ...utils.warnings import warn
from .. import validation
from ..adapters import SourceModel, source_model

LABEL_METHODS = ("refit", "learn")
FIT_TO = ("auto", "decisions", "labels")


@dataclass(frozen=True)
class CompressedKind:
    """The task, the default inner estimator and the label reader of a compressed estimator."""

    task: type
    default: Callable[[], Any]  # the estimator where none is given
    read_labels: Callable[[Any, SourceModel], Array] | None = None  # y as class codes or target columns


@dataclass(frozen=True)
class CompressedFit:
    """A compressed model and its report; ``cost`` is C, given or estimated; ``layer`` holds the probability layer."""

    source: SourceModel
    expansion: Expansion
    cost: float
    report: Compression
    layer: dict[str, Any] = field(default_factory=dict)


# --- parameters -------------------------------------------------------------------------------------------------


def check_params(self: Any) -> None:
    """Raise ValueError for parameters that make no sense."""
    validation.check_size(self.n_vectors)
    validation.check_choice("fit_to", self.fit_to, FIT_TO)
    validation.check_choice("method", self.method, ("auto", *METHODS))
    _check_method_fits(self.method, self.fit_to)
    validation.check_share("agreement", self.agreement)
    validation.check_threads(self.n_jobs)
    if self._kind.task is Classification:
        validation.check_yes_or_no("probability", self.probability)


def _check_method_fits(method: str, fit_to: str) -> None:
    if method == "auto" or fit_to in ("auto", "labels" if method in LABEL_METHODS else "decisions"):
        return
    fitting = [name for name in METHODS if (name in LABEL_METHODS) == (fit_to == "labels")]
    raise ValueError(
        f"method={method!r} does not fit to {fit_to}, which fit_to={fit_to!r} asks for; use one of "
        f"{fitting}, or leave method out"
    )


def _method_for(self: Any, original: Original, rows: Dataset | None, probability: bool) -> str:
    """The method of compression; ValueError where it needs labels and there are none."""
    labelled = rows is not None and has_labels(rows)
    if probability and not labelled:
        raise ValueError("probability=True needs X and y, which probabilities are fitted to; leave it out without")
    if self.method in LABEL_METHODS or self.fit_to == "labels":
        given, others = (f"fit_to={self.fit_to!r}", "'decisions'")
        if self.method != "auto":
            given, others = (f"method={self.method!r}", "'margin'")
        if not original.task.has_labels:
            raise ValueError(f"{given} needs labels, which a one-class machine has not; use {others}")
        if not labelled:
            others = others if self.method == "auto" else "'margin' or 'reduced_set'"
            raise ValueError(f"{given} needs X and y; without labels use {others}")
    if self.method != "auto":
        return self.method
    # Fewer rows than vectors cannot be the training rows: the model was trained on more labels than these.
    enough = rows is not None and rows.size >= original.size
    return "learn" if self.fit_to == "labels" or (self.fit_to == "auto" and labelled and enough) else "margin"


# --- the estimator that is fitted first -------------------------------------------------------------------------


def inner_estimator(self: Any) -> Any:
    """The estimator whose model is compressed."""
    return self._kind.default() if self.estimator is None else self.estimator


def fit_inner(self: Any, X: Any, y: Any, fit_params: dict[str, Any], check: Callable[..., None]) -> CompressedFit:
    """Fit a clone of the estimator, and compress it; ``check(X, y, sample_weight)`` checks data."""
    if isinstance(self.estimator, Pipeline):
        raise ValueError(
            f"estimator={self.estimator!r} is a Pipeline; put the earlier steps in front: "
            f"make_pipeline(StandardScaler(), {type(self).__name__}(SVC()))"
        )
    routed = fit_params
    if get_config()["enable_metadata_routing"]:
        routed = process_routing(self, "fit", **fit_params).estimator.fit
    weight = routed.get("sample_weight")
    check(X, y, weight)
    source = source_model(clone(inner_estimator(self)).fit(X, y, **routed))
    if not isinstance(source.task, self._kind.task):
        raise ValueError(f"estimator={self.estimator!r} is not for {type(self).__name__}; use {self._kind.default()!r}")
    return compress_source(self, source, X, y, weight)


def get_metadata_routing(self: Any) -> Any:
    """Where weights and other data go: to the estimator's fit.

    Returns
    -------
    MetadataRouter
    """
    mapping = MethodMapping().add(caller="fit", callee="fit")
    return MetadataRouter(owner=self).add(estimator=inner_estimator(self), method_mapping=mapping)


# --- compression ------------------------------------------------------------------------------------------------


def compress_source(self: Any, source: SourceModel, X: Any, y: Any, sample_weight: Any) -> CompressedFit:
    """Compress a fitted model with the parameters of an estimator, and with rows, if there are any."""
    threads, probability = thread_count(self.n_jobs), self._kind.task is Classification and bool(self.probability)
    rows = _given_rows(self, source, X, y, sample_weight, threads, probability)
    original = source.original()
    method = _method_for(self, original, rows, probability)
    seed = check_random_state(self.random_state).randint(2**31)
    compressor = Compressor(original, rows, seed, threads, bool(self.verbose))
    small = small_model(compressor, method, self.n_vectors, self.agreement)
    f = small.expansion
    f = replace(f, vectors=f.vectors.astype(source.expansion.vectors.dtype, copy=False))
    report = Compression.of(compressor, small)
    layer = _probability_layer(compressor, small) if probability else {}
    if small.note and small.method != "exact":
        warn(small.note)
    if report.bytes_after > report.bytes_before:
        warn(
            f"the compressed model takes {report.bytes_after} bytes, the original {report.bytes_before}: its "
            "vectors are dense, those of the original sparse. Ask for fewer vectors, or keep the original"
        )
    return CompressedFit(source, f, original.cost, report, layer)


def _given_rows(
    self: Any, source: SourceModel, X: Any, y: Any, sample_weight: Any, threads: int, probability: bool
) -> Dataset | None:
    """Rows X in the container of the vectors, with labels where they are used."""
    if X is None:
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                raise ValueError(f"{name} was given without X, whose rows it belongs to")
        return None
    X = validation.check_data(self, X)
    vectors = source.expansion.vectors
    if sp.issparse(X) != sp.issparse(vectors):
        X = sp.csr_array(X) if sp.issparse(vectors) else X.toarray()
    X = sp.csr_array(validation.canonical(X)) if sp.issparse(X) else X
    weight = validation.sample_weights(self, sample_weight, X)
    fields: dict[str, Any] = {}
    if y is not None and self._kind.read_labels is not None:
        labels = self._kind.read_labels(y, source)
        if len(labels) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, y has {len(labels)} labels; they must be as many")
        if probability or self.fit_to != "decisions":  # else merging and ordering of rows do not depend on labels
            fields = source.task.dataset_fields(labels)
    counts = np.ones(X.shape[0]) if weight is None else weight
    return distinct_rows(X.astype(np.float64, copy=False), counts, threads, **fields)


def _probability_layer(compressor: Compressor, small: SmallModel) -> dict[str, Any]:
    """Attributes of a layer of probabilities over the vectors of a compressed model."""
    f, rows, rng = small.expansion, compressor.rows, np.random.default_rng(compressor.seed)

    def learn(train: Dataset) -> tuple[Any, Any]:
        if small.method not in METHODS:  # vectors that no row had a part in
            return f.kernel, f.vectors
        without = METHODS[small.method](replace(compressor, given_rows=train, verbose=False), f.coef.shape[1])
        return without.kernel, without.vectors

    folds, cost = calibration_folds(rows, learn, rng), compressor.original.cost
    return fit_probabilities(rows, f, cost, folds, rng, MIN_PROBABILITY_TOL, 2.0**30, compressor.verbose)
