"""What a basis chooses from: the rows of a task, the binary problems that will share the vectors, and the work of
choosing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.dataset import Dataset, Output, rounded_targets
from ..linalg.arrays import Array, is_remote, to_memory
from ..problem.bases import Basis, Choice, Cholesky, Given, Random, dense
from ..problem.kernels import Scaled
from ..problem.losses import LEARNING_DIGITS, few_digits, rounded, squared, with_few_digits
from ..problem.regularizers import Regularizer
from ..rows.labels import Labels, dataset_labels
from ..solvers.pivoted_cholesky import independent_rows, pivoted_factor
from .learning import LearnedVectors, learn
from .selection import class_centres, forward_rows

STAGE_FACTOR = 4  # times the rows of the stage before
MIN_STAGE_ROWS = 5000  # rows of the first stage, at least
# Where vectors start decides little for classes, as long as scales are fixed. But learned scales may settle without an
# input that matters, and for targets local minima lie far apart: then the best of several starts goes on. The fewer
# the vectors, the more there depends on where they start.
STARTS_CLASSIFICATION, STARTS_REGRESSION = 3, 4
SMALL_MODEL_VECTORS, STARTS_SMALL_MODEL = 8, 6  # so many vectors at most; for both
STAGE_ITERATION_FRACTIONS = ((20_000, 1.0), (60_000, 0.5), (np.inf, 0.2))  # of the iterations, on so many rows at most


def stages(rows: int, iterations: int) -> list[tuple[int, int]]:
    """Numbers of rows, and of iterations on them."""
    sizes = [rows]
    while sizes[0] >= STAGE_FACTOR * MIN_STAGE_ROWS:
        sizes.insert(0, sizes[0] // STAGE_FACTOR)
    parts = [next(part for most, part in STAGE_ITERATION_FRACTIONS if size <= most) for size in sizes]
    parts[0] = 1.0
    return [(size, int(np.ceil(iterations * part))) for size, part in zip(sizes, parts, strict=True)]


@dataclass(frozen=True)
class DatasetCandidates:
    """The rows of a task as candidates for vectors.

    ``loss`` and ``regularizer`` belong to the problems that will share the vectors; ``scaled`` says whether the scales
    of the inputs are learned with them. ``start`` is where learning goes on instead of starting anew.
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
    taught: list[Output] | None = None  # the problems that vectors are learned for, if they are others
    watch: Callable[[int, int], Any] | None = None  # makes what hears of learning so many vectors on so many rows
    free: Callable[[], int] | None = None  # threads that learning may use now, where their number changes
    search_vectors: Sequence[LearnedVectors] = ()  # that the search learned on parts of these rows: further starts

    @property
    def X(self) -> Any:
        return self.dataset.X

    @property
    def labels(self) -> Labels:
        """What the rows are to all problems."""
        return dataset_labels(self.dataset, self.outputs, self.C)

    @property
    def lessons(self) -> Labels:
        """What they are to the problems that vectors are learned for; targets and their costs have few digits."""
        wanted = self.outputs if self.taught is None else self.taught
        if self.dataset.targets is None:
            return dataset_labels(self.dataset, wanted, self.C)
        rounded_task = replace(self.dataset, targets=rounded_targets(self.dataset.targets))
        return dataset_labels(rounded_task, wanted, few_digits(float(self.C), LEARNING_DIGITS))

    def sample(self, most: int) -> DatasetCandidates:
        return replace(self, dataset=self.dataset.sample(most, self.rng))

    def choice(self, rows: Array) -> Choice:
        return Choice(self.X[rows], self.dataset.numbers[rows])

    def at_random(self) -> Array:
        return self.dataset.drawn_by_weight(self.rng)

    def independent(self, eta: float, order: Array | None = None, most: int | None = None) -> Array:
        return independent_rows(self.kernel, self.X, self._absolute(eta), order, most)

    @property
    def here(self) -> Any:
        """The rows in memory: those of a sample may be on a device."""
        return to_memory(self.X)

    def pivoted(self, eta: float, most: int) -> Array:
        rank = self.dataset.ranks()
        return pivoted_factor(self.kernel, self.here, self._absolute(eta), most, self.dataset.threads, rank)[0]

    def forward(self, count: int, candidates: int | None) -> Array:
        return forward_rows(
            self.kernel,
            self.here,
            self.labels,
            count,
            self.rng,
            candidates=candidates,
            loss=squared(self.loss),
            threads=self.dataset.threads,
        )

    def centres(self, count: int, max_iter: int) -> Array:
        return class_centres(self.here, self.dataset.codes, self.dataset.weights, count, max_iter, self.rng)

    def learned(self, start: Basis, count: int, iterations: Any, smoothing: float, overwrite_x: bool = False) -> Choice:
        """Coarse to fine: most iterations on few of the rows, the last ones on all. Of several starts, the one that
        leads to the lowest objective on the fewest rows goes on."""
        if not self.kernel.differentiable:
            raise ValueError(
                f"basis='learned' needs a kernel with a derivative (a method pullback); {self.kernel!r} has none. Use "
                "a basis of training rows: 'forward', 'random' or 'cholesky'"
            )
        targets = self.dataset.targets is not None
        long = self.scaled or targets
        steps = (200 if long else 100) if iterations == "auto" else int(iterations)
        n_starts = 1
        if long and count <= SMALL_MODEL_VECTORS:
            n_starts = STARTS_SMALL_MODEL
        elif long:
            n_starts = STARTS_REGRESSION if targets else STARTS_CLASSIFICATION
        found: LearnedVectors | Array | list[Array] | None = self.start
        done = 0
        for size, most in stages(self.dataset.size, steps):
            last = size == self.dataset.size
            part = self if last else self.sample(size)
            found = part.initial_vectors(start, count, n_starts) if found is None else found
            found = part.moved(found, count, most, smoothing, overwrite_x or not last)
            done += found.n_iter
        assert isinstance(found, LearnedVectors)
        return self._chosen(replace(found, n_iter=done))

    def initial_vectors(self, basis: Basis, n_vectors: int, n_starts: int) -> list[Array]:
        """The basis's own vectors and, unless the user gave an array, rows for the other starts (k-means would mostly
        repeat itself): ``n_vectors`` for each start.

        For targets the next start is of rows far from each other, twice where scales are learned: these begin in two
        ways (`learning.INITIAL_SCALES`). It is the same for every seed, so that few seeds end far above the others.
        All other starts are of random rows.
        """
        found = [dense(basis.choose(self, n_vectors).vectors)]
        if isinstance(basis, Given):
            return found
        n_far = 0 if self.dataset.targets is None or isinstance(basis, Cholesky) else 2 if self.scaled else 1
        for start in range(1, n_starts):
            rows = Cholesky(eta=0.0, selection="pivoted") if start <= n_far else Random()
            other = dense(rows.choose(self, n_vectors).vectors)
            if other.shape == found[0].shape:
                found.append(other)
        return found

    def learn_further(self, iterations: int, smoothing: float) -> Choice:
        """Vectors that were learned before, moved on, on all of these rows at once."""
        assert isinstance(self.start, LearnedVectors)
        return self._chosen(self.moved(self.start, len(self.start.vectors), iterations, smoothing))

    def _chosen(self, found: LearnedVectors) -> Choice:
        """Vectors have the rows' precision: coefficients are fitted, and certified, over the vectors that are kept."""
        kernel = None if found.scales is None else Scaled(self.kernel, found.scales)
        return Choice(found.vectors.astype(self.X.dtype), None, kernel, found)

    def moved(
        self,
        begin: LearnedVectors | Array | list[Array],
        count: int,
        most: int,
        smoothing: float,
        overwrite_x: bool = False,
    ) -> LearnedVectors:
        """Vectors moved on, on these rows; ``overwrite_x``: which nobody needs afterwards."""
        watch = self.watch(count, self.dataset.size) if self.watch else None
        loss = rounded(self.loss, smoothing) if smoothing > 0 and not self.loss.smooth else self.loss
        found = learn(
            self.kernel,
            self.X,
            self.lessons,
            begin,
            with_few_digits(loss),
            self.rng,
            learn_scales=self.scaled,
            max_iter=most,
            regularizer=self.regularizer,
            threads=self.dataset.threads,
            watch=watch,
            free=self.free,
            overwrite_x=overwrite_x,
            search_vectors=self.search_vectors,
        )
        if watch is not None:
            watch.finish(found.n_iter, found.value)
        return found

    def _absolute(self, eta: float) -> float:
        apart = is_remote(self.X)
        return eta * (self.X.largest_size(self.kernel) if apart else float(self.kernel.diagonal(self.X).max()))
