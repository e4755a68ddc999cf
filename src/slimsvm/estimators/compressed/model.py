"""What estimators that fit a machine and keep a small version of it share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import column_or_1d

from ...compression import METHODS, Compression, Compressor, Original, WeightedRows, small_version
from ...linalg.arrays import Array
from ...model.expansion import Expansion
from ...utils.threads import thread_count
from ...utils.warnings import warn
from .. import validation
from ..adapters import SourceModel, source_model
from ..base import KernelModel, atomic

LABELS = ("refit", "learn")  # methods that need them
FIT_TO = ("auto", "decisions", "labels")


class CompressedModel(KernelModel):
    """Fits an estimator and keeps a small version of it."""

    _goals: Any

    def __init__(
        self,
        estimator: Any = None,
        n_vectors: Any = 20,
        *,
        fit_to: str = "auto",
        method: str = "auto",
        agreement: float = 0.99,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        self.estimator = estimator
        self.n_vectors = n_vectors
        self.fit_to = fit_to
        self.method = method
        self.agreement = agreement
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @abstractmethod
    def _default(self) -> Any:
        """The estimator where none is given."""

    @abstractmethod
    def _checked(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Raise ValueError for data that make no sense; remember columns."""

    def _labels(self, y: Any, source: SourceModel) -> Array:
        """Labels as the original counts them."""
        return np.asarray(column_or_1d(y), dtype=np.float64)

    def _ask_for_probabilities(self, wanted: Any) -> None:
        """Raise ValueError where there cannot be any."""
        if wanted:
            raise ValueError(f"probability={wanted!r} is for classifiers; {type(self).__name__} has no classes")

    def _check_params(self) -> None:
        validation.check_size(self.n_vectors)
        validation.check_choice("fit_to", self.fit_to, FIT_TO)
        validation.check_choice("method", self.method, ("auto", *METHODS))
        self._check_method_fits()
        validation.check_share("agreement", self.agreement)
        validation.check_threads(self.n_jobs)

    def _check_method_fits(self) -> None:
        if self.method == "auto" or self.fit_to in ("auto", "labels" if self.method in LABELS else "decisions"):
            return
        fitting = [name for name in METHODS if (name in LABELS) == (self.fit_to == "labels")]
        raise ValueError(
            f"method={self.method!r} does not fit to {self.fit_to}, which fit_to={self.fit_to!r} asks for; use one of "
            f"{fitting}, or leave method out"
        )

    @atomic
    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit a clone of the estimator, and compress it with the help of the same rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels or target values, where the estimator needs them.
        **fit_params : dict
            Passed on to the estimator's fit; ``sample_weight`` counts for the compression too.

        Returns
        -------
        self
        """
        self._check_params()
        if isinstance(self.estimator, Pipeline):
            raise ValueError(
                f"estimator={self.estimator!r} is a Pipeline; put the earlier steps in front: "
                f"make_pipeline(StandardScaler(), {type(self).__name__}(SVC()))"
            )
        routed = fit_params
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **fit_params).estimator.fit
        self._checked(X, y, routed.get("sample_weight"))
        fitted = clone(self._inner()).fit(X, y, **routed)
        source = source_model(fitted)
        if not isinstance(source.goal, self._goals):
            raise ValueError(f"estimator={self.estimator!r} is not for {type(self).__name__}; use {self._default()!r}")
        self._compress(source, X, y, routed.get("sample_weight"))

    def _inner(self) -> Any:
        return self._default() if self.estimator is None else self.estimator

    def get_metadata_routing(self) -> Any:
        """Where weights and other data go: to the estimator's fit.

        Returns
        -------
        MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add(estimator=self._inner(), method_mapping=mapping)

    def _compress(self, source: SourceModel, X: Any, y: Any, sample_weight: Any) -> None:
        """Fitted attributes, from a large machine and what else is known."""
        threads = thread_count(self.n_jobs)
        known = self._known(source, X, y, sample_weight)
        original = source.original()
        method = self._method_for(original, known)
        seed = check_random_state(self.random_state).randint(2**31)
        compressor = Compressor(original, known, seed, threads, bool(self.verbose))
        small, used, note = small_version(compressor, method, self.n_vectors, self.agreement)
        self.compression_ = Compression.of(compressor, small, used, note)
        self._keep(source, small, original.cost)
        self._finish(compressor, small, used)
        if note and used != "exact":
            warn(note)
        report = self.compression_
        if report.bytes_after > report.bytes_before:
            warn(
                f"the compressed model takes {report.bytes_after} bytes, the original {report.bytes_before}: its "
                "vectors are dense, those of the original sparse. Ask for fewer vectors, or keep the original"
            )

    def _tell_of_distance(self) -> None:
        """Warn where the original's own vectors, which are all that was there to look at, may tell too little."""

    def _finish(self, compressor: Compressor, small: Expansion, method: str) -> None:
        """What else is fitted over the vectors of the small machine."""

    def _known(self, source: SourceModel, X: Any, y: Any, sample_weight: Any) -> WeightedRows | None:
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
        labels = None
        if y is not None and source.goal.labelled:
            labels = self._labels(y, source)
            if len(labels) != X.shape[0]:
                raise ValueError(f"X has {X.shape[0]} rows, y has {len(labels)} labels; they must be as many")
        if not self._uses_labels():
            labels = None  # so that merging and ordering of rows do not depend on labels
        X = X.astype(np.float64, copy=False)
        return WeightedRows.of(X, np.ones(X.shape[0]) if weight is None else weight, labels)

    def _uses_labels(self) -> bool:
        """Are labels wanted where there are some?"""
        return self.fit_to != "decisions"

    def _method_for(self, original: Original, known: WeightedRows | None) -> str:
        labelled = known is not None and known.y is not None
        if self.method in LABELS or self.fit_to == "labels":
            given, others = ("fit_to", "'decisions'") if self.method == "auto" else ("method", "'margin'")
            wanted = f"{given}={getattr(self, given)!r} needs"
            if not original.goal.labelled:
                raise ValueError(f"{wanted} labels, which a one-class machine has not; use {others}")
            if not labelled:
                others = others if self.method == "auto" else "'margin' or 'reduced_set'"
                raise ValueError(f"{wanted} X and y; without labels use {others}")
        if self.method != "auto":
            return self.method
        # Fewer rows than vectors are not those of the training: the machine knows more than their labels.
        enough = known is not None and len(known.counts) >= original.size
        learns = self.fit_to == "labels" or (self.fit_to == "auto" and labelled and enough)
        return "learn" if learns else "margin"

    def _keep(self, source: SourceModel, small: Expansion, cost: float) -> None:
        vectors = small.vectors
        dtype = source.expansion.vectors.dtype
        small = replace(small, vectors=vectors.astype(dtype, copy=False))
        self._set_expansion(small)
        self._goal, self._cost = source.goal, cost
