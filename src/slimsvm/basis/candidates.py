"""Candidates for vectors: the rows of a dataset with the binary problems that will share the vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.dataset import Dataset, Output
from ..data.targets import rounded_targets
from ..linalg.arrays import Array, is_remote, to_memory
from ..problem.bases import Basis, Choice, Cholesky, Given, Random, dense
from ..problem.kernels import Scaled
from ..problem.losses import (
    LEARNING_BITS,
    round_mantissa,
    smooth_surrogate,
    with_rounded_corners,
    with_rounded_parameters,
)
from ..problem.regularizers import Regularizer
from ..rows.labels import Labels, dataset_labels
from ..solvers.pivoted_cholesky import independent_rows, pivoted_factor
from .learning import LearnedVectors, learn
from .selection import class_centres, forward_rows

STAGE_FACTOR = 4  # ratio of the rows of successive stages of learning
MIN_STAGE_ROWS = 5000  # in the first stage
# Initial vectors matter little for classification with fixed scales. But learned scales may drop a relevant input, and
# in regression local minima differ much: then several starts are tried. Small models depend most on their start.
STARTS_CLASSIFICATION, STARTS_REGRESSION = 3, 4
SMALL_MODEL_VECTORS, STARTS_SMALL_MODEL = 8, 6  # for classification and regression
# (number of rows up to which, fraction of the iterations)
STAGE_ITERATION_FRACTIONS = ((20_000, 1.0), (60_000, 0.5), (np.inf, 0.2))


def stages(n_rows: int, iterations: int) -> list[tuple[int, int]]:
    """Stages of learning, each a number of rows and the number of iterations on them."""
    sizes = [n_rows]
    while sizes[0] >= STAGE_FACTOR * MIN_STAGE_ROWS:
        sizes.insert(0, sizes[0] // STAGE_FACTOR)
    fractions = [next(fraction for limit, fraction in STAGE_ITERATION_FRACTIONS if size <= limit) for size in sizes]
    fractions[0] = 1.0
    return [(size, int(np.ceil(iterations * fraction))) for size, fraction in zip(sizes, fractions, strict=True)]


@dataclass(frozen=True)
class DatasetCandidates:
    """The rows of a dataset as candidates for vectors.

    The problems that will share the vectors have this ``loss`` and ``regularizer``; ``scaled``: learn the scales of the
    inputs, too; ``start``: vectors from which learning continues.
    """

    dataset: Dataset
    kernel: Any
    outputs: list[Output]
    C: Array | float  # one cost, or one for each problem
    loss: Any
    regularizer: Regularizer
    rng: np.random.Generator
    scaled: bool = False
    start: LearnedVectors | Array | None = None
    learning_outputs: list[Output] | None = None  # the problems for which vectors are learned; None: ``outputs``
    progress: Callable[[int, int], Any] | None = None  # (n_vectors, n_rows) -> callback of learning
    free_threads: Callable[[], int] | None = None  # the number of threads that learning may use now, if it changes
    search_vectors: Sequence[LearnedVectors] = ()  # learned by the search on parts of these rows: further starts

    @property
    def X(self) -> Any:
        return self.dataset.X

    @property
    def labels(self) -> Labels:
        """Labels and costs of the rows for each problem."""
        return dataset_labels(self.dataset, self.outputs, self.C)

    @property
    def learning_labels(self) -> Labels:
        """Labels and costs for the problems for which vectors are learned; targets and costs are rounded to few
        bits."""
        outputs = self.outputs if self.learning_outputs is None else self.learning_outputs
        if self.dataset.targets is None:
            return dataset_labels(self.dataset, outputs, self.C)
        rounded_dataset = replace(self.dataset, targets=rounded_targets(self.dataset.targets))
        return dataset_labels(rounded_dataset, outputs, round_mantissa(float(self.C), LEARNING_BITS))

    def sample(self, most: int) -> DatasetCandidates:
        return replace(self, dataset=self.dataset.sample(most, self.rng))

    def choice(self, rows: Array) -> Choice:
        return Choice(self.X[rows], self.dataset.indices[rows])

    def at_random(self) -> Array:
        return self.dataset.drawn_by_weight(self.rng)

    def independent(self, eta: float, order: Array | None = None, most: int | None = None) -> Array:
        return independent_rows(self.kernel, self.X, self._absolute(eta), order, most)

    def pivoted(self, eta: float, most: int) -> Array:
        X, ranks = to_memory(self.X), self.dataset.ranks()
        return pivoted_factor(self.kernel, X, self._absolute(eta), most, self.dataset.threads, ranks)[0]

    def forward(self, count: int, candidates: int | None) -> Array:
        return forward_rows(
            self.kernel,
            to_memory(self.X),
            self.labels,
            count,
            self.rng,
            candidates=candidates,
            loss=smooth_surrogate(self.loss),
            threads=self.dataset.threads,
        )

    def centres(self, count: int, max_iter: int) -> Array:
        dataset = self.dataset
        return class_centres(to_memory(self.X), dataset.codes, dataset.weights, count, max_iter, self.rng)

    def learned(self, start: Basis, count: int, iterations: Any, smoothing: float, overwrite_x: bool = False) -> Choice:
        """Learn vectors in stages: most iterations run on few rows, the last ones on all.

        Several starts compete in the first stage; the one with the lowest objective continues.
        """
        if not self.kernel.differentiable:
            raise ValueError(
                f"basis='learned' needs a kernel with a derivative (a method pullback); {self.kernel!r} has none. Use "
                "a basis of training rows: 'forward', 'random' or 'cholesky'"
            )
        is_regression = self.dataset.targets is not None
        is_hard = self.scaled or is_regression
        if iterations == "auto":
            iterations = 200 if is_hard else 100
        n_starts = 1
        if is_hard and count <= SMALL_MODEL_VECTORS:
            n_starts = STARTS_SMALL_MODEL
        elif is_hard:
            n_starts = STARTS_REGRESSION if is_regression else STARTS_CLASSIFICATION
        vectors: LearnedVectors | Array | list[Array] | None = self.start
        n_iter = 0
        for size, max_iter in stages(self.dataset.size, int(iterations)):
            last = size == self.dataset.size
            part = self if last else self.sample(size)
            vectors = part.initial_vectors(start, count, n_starts) if vectors is None else vectors
            vectors = part._learn(vectors, count, max_iter, smoothing, overwrite_x or not last)
            n_iter += vectors.n_iter
        assert isinstance(vectors, LearnedVectors)
        return self._learned_choice(replace(vectors, n_iter=n_iter))

    def initial_vectors(self, basis: Basis, n_vectors: int, n_starts: int) -> list[Array]:
        """Initial vectors for each start: first those of the basis, then rows, unless the user gave an array.

        In regression the second start is rows far from each other, the same for every seed, so that few seeds end in
        bad minima. It is used twice where scales are learned, with different initial scales
        (`learning.INITIAL_SCALES`). All other starts are random rows. (k-means would mostly repeat itself.)"""
        starts = [dense(basis.choose(self, n_vectors).vectors)]
        if isinstance(basis, Given):
            return starts
        n_far = 0 if self.dataset.targets is None or isinstance(basis, Cholesky) else 2 if self.scaled else 1
        for start in range(1, n_starts):
            rows = Cholesky(eta=0.0, selection="pivoted") if start <= n_far else Random()
            other = dense(rows.choose(self, n_vectors).vectors)
            if other.shape == starts[0].shape:
                starts.append(other)
        return starts

    def learn_further(self, iterations: int, smoothing: float) -> Choice:
        """Continue learning from ``start`` on all of these rows."""
        assert isinstance(self.start, LearnedVectors)
        return self._learned_choice(self._learn(self.start, len(self.start.vectors), iterations, smoothing))

    def _learned_choice(self, learned: LearnedVectors) -> Choice:
        """The choice of learned vectors, rounded to the precision of the rows before coefficients are fitted."""
        kernel = None if learned.scales is None else Scaled(self.kernel, learned.scales)
        return Choice(learned.vectors.astype(self.X.dtype), None, kernel, learned)

    def _learn(
        self,
        start: LearnedVectors | Array | list[Array],
        count: int,
        max_iter: int,
        smoothing: float,
        overwrite_x: bool = False,
    ) -> LearnedVectors:
        """Learn vectors on all of these rows."""
        callback = self.progress(count, self.dataset.size) if self.progress else None
        loss = with_rounded_corners(self.loss, smoothing) if smoothing > 0 and not self.loss.smooth else self.loss
        learned = learn(
            self.kernel,
            self.X,
            self.learning_labels,
            start,
            with_rounded_parameters(loss),
            self.rng,
            learn_scales=self.scaled,
            max_iter=max_iter,
            regularizer=self.regularizer,
            threads=self.dataset.threads,
            callback=callback,
            free_threads=self.free_threads,
            overwrite_x=overwrite_x,
            search_vectors=self.search_vectors,
        )
        if callback is not None:
            callback.finish(learned.n_iter, learned.value)
        return learned

    def _absolute(self, eta: float) -> float:
        if is_remote(self.X):
            return eta * self.X.largest_size(self.kernel)
        return eta * float(self.kernel.diagonal(self.X).max())
