"""Classifiers that go on learning from a stream, whose classes may come one after the other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d

from ..data.dataset import Dataset
from ..data.reservoir import Reservoir
from ..linalg.arrays import Array
from ..model.expansion import Expansion, Model
from ..training.spec import Hyperparameters, TrainingSpec
from ..utils.threads import thread_count
from . import checked_data, validation
from .absent import among_all
from .base import available_if
from .small_basis import SmallBasisClassifier
from .stream import Streamed, check_streams


class StreamClassifier(Streamed, SmallBasisClassifier):
    """A small classifier that goes on learning."""

    max_bytes: int | None

    @available_if(check_streams)
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
        return self._continued(X, y, sample_weight, classes)

    def _has_begun(self) -> bool:
        return "classes_" in vars(self)

    def _known_labels(self, y: Array, *more: Any) -> Array:
        validation.check_targets(y)
        (classes,) = more
        return known_classes(vars(self).get("classes_"), classes, y)

    def _remembered(self, memory: Reservoir | None, X: Any, y: Array, weights: Array, labels: Array) -> Reservoir:
        memory = Reservoir.empty(X, len(labels), self._seed(), bool(self.recent)) if memory is None else memory
        return memory.after(X, np.searchsorted(labels, y), weights, int(self.memory))

    def _lacks_streams(self) -> str | None:
        if self.max_bytes is not None and not validation.is_precomputed(self.kernel):
            return (
                f"no partial_fit with max_bytes={self.max_bytes}, which is for fit. Leave it out and set n_vectors; "
                "model_bytes_ says what that takes"
            )
        return super()._lacks_streams()

    def _can_learn(self, memory: Reservoir) -> bool:
        return len(memory.present) > 1

    def _keep_of(self, labels: Array, memory: Reservoir, dataset: Dataset, model: Model) -> None:
        whole = replace(dataset, classes=labels, factors=self._class_factors(labels, memory))
        self._set_fitted(whole, among_all(model, memory.present, len(labels), self._scheme(), memory.size))

    def _memory_task(self, labels: Array, memory: Reservoir) -> Dataset:
        """The rows in memory; classes that have none there are left out."""
        present = memory.present
        codes, factors = np.searchsorted(present, memory.codes), self._class_factors(labels, memory)[present]
        fields = {"codes": codes, "classes": labels[present], "factors": factors}
        return checked_data.dataset_of_rows(memory.X, memory.counts(), fields, self.kernel, thread_count(self.n_jobs))

    def _class_factors(self, labels: Array, memory: Reservoir) -> Array:
        """Weights of all classes; "balanced" are those of the classes in memory."""
        if hasattr(self.class_weight, "get"):
            return validation.class_weights(self.class_weight, labels, memory.codes, memory.weights)
        factors, present = np.ones(len(labels)), memory.present
        codes = np.searchsorted(present, memory.codes)
        factors[present] = validation.class_weights(self.class_weight, labels[present], codes, memory.counts())
        return factors

    def _constant(self, dataset: Dataset) -> Model:
        """One class only: every row gets it."""
        spec, nothing = self._recipe(dataset), np.zeros(0)
        kernel = spec.kernel_of(1.0)
        more: dict[str, Any] = {
            "regularizer_": spec.regularizer.among(kernel, dataset.X, spec.basis.learns),
            "C_": 1.0 if isinstance(self.C, str) else float(self.C),
            "search_results_": {},
        }
        self.multi_class_ = self.multi_class
        if self.probability:
            more |= {"probability_coef_": np.zeros((0, 0)), "probability_intercept_": nothing}
            more |= {"probability_C_": more["C_"], "probability_gap_": 0.0}
        expansion = Expansion(
            kernel, np.zeros((0, dataset.X.shape[1]), dtype=dataset.X.dtype), np.zeros((0, 0)), nothing
        )
        return Model(expansion, None, nothing, nothing, nothing, more)

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
        if not self.probability:
            return model
        if not same_classes or "probability_C_" not in vars(before):
            return self._finished(dataset, model, spec, setting, rng)
        return self._with_layer_at(dataset, model, before.probability_C_, rng, spec.memory)


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
