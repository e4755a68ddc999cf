"""Regressors that go on learning from a stream."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.dataset import Dataset
from ..data.reservoir import Reservoir
from ..linalg.arrays import Array
from ..model.expansion import Model
from ..utils.threads import thread_count
from . import checked_data
from .base import available_if
from .stream import Streamed, check_streams
from .targets import RegressionTargets
from .trained import ExpansionRegressor


class StreamRegressor(Streamed, ExpansionRegressor):
    """A small regressor that goes on learning."""

    @available_if(check_streams)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Go on with a block of rows: the next one of a stream.

        Some rows of the stream are kept, ``memory`` at most, and the model is moved on to fit them. What a call costs
        does not grow with the rows that came before. ``objective_`` and ``duality_gap_`` are about the rows in memory,
        not about the whole stream.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The next rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            Rows are kept, and count, by their weights.

        Returns
        -------
        self

        Notes
        -----
        The model is made anew when a twentieth of the rows in memory are new to it: calls of a few rows only fill the
        memory meanwhile. After `fit`, the model of `fit` stays until the memory has as many rows as `fit` had, or is
        full. `fit` forgets all that came before.

        Examples
        --------
        >>> from sklearn.datasets import make_friedman1
        >>> from slimsvm import SlimSVR
        >>> X, y = make_friedman1(2000, noise=1.0, random_state=0)
        >>> model = SlimSVR(n_vectors=10, memory=1000)
        >>> for start in range(0, 2000, 500):
        ...     model = model.partial_fit(X[start : start + 500], y[start : start + 500])
        >>> model.n_samples_seen_, model.stream_.memory.size, bool(model.score(X, y) > 0.9)
        (2000, 1000, True)
        """
        return self._continued(X, y, sample_weight)

    def _has_begun(self) -> bool:
        return "vectors_" in vars(self) or "stream_" in vars(self)

    def _known_labels(self, y: Array, *more: Any) -> Array:
        if self._has_begun():
            known, given = (
                f"shape (n_samples,{'' if single else f' {count}'})"
                for single, count in ((self._single, len(self.intercept_)), (y.ndim == 1, y.shape[-1]))
            )
            if known != given:
                raise ValueError(f"y has {given}, and had {known} before: start a new stream, or fit")
        self._single = y.ndim == 1
        return np.zeros(1)

    def _remembered(self, memory: Reservoir | None, X: Any, y: Array, weights: Array, labels: Array) -> Reservoir:
        targets = RegressionTargets(False).fields(y)["targets"]
        memory = Reservoir.empty(X, 1, self._seed(), bool(self.recent), targets) if memory is None else memory
        return memory.after(X, np.zeros(len(y), dtype=np.int32), weights, int(self.memory), targets)

    def _memory_task(self, labels: Array, memory: Reservoir) -> Dataset:
        fields: dict[str, Any] = {
            "codes": memory.codes,
            "classes": labels,
            "factors": np.ones(1),
            "targets": memory.targets,
        }
        fields["single_target"] = self._single
        return checked_data.dataset_of_rows(
            memory.X, memory.counts(), fields, self.kernel, thread_count(self.n_jobs), self.units_alike
        )

    def _keep_of(self, labels: Array, memory: Reservoir, dataset: Dataset, model: Model) -> None:
        self._set_fitted(dataset, model)
