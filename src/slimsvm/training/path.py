"""Models of several sizes, from the largest down.

The largest is learned as a classifier of its own. For each smaller size, those vectors of the size above that gain most
are kept and moved on a little: they begin where learning has been already, scales of the inputs included. (Growing from
few vectors to many gets trapped where scales are learned: they settle for few vectors.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..basis.candidates import DatasetCandidates
from ..basis.selection import forward_vectors
from ..data.dataset import Dataset
from ..linalg.arrays import Array
from ..model.expansion import Model
from ..problem.bases import Choice
from ..problem.losses import squared
from .small import fit_chosen, warn_if_unfinished
from .spec import Hyperparameters, TrainingSpec

PATH_ITERATIONS = 30  # of learning, after vectors have been left out
MAX_SELECTION_ROWS = 5000  # that say which vectors to leave out


def path(
    dataset: Dataset, spec: TrainingSpec, params: Hyperparameters, sizes: Sequence[int], seed: int
) -> Iterator[tuple[int, Model]]:
    """A model of at most so many vectors for each of the sizes, the largest first."""
    wanted = dataset.outputs(spec.scheme)
    for size, candidates, choice in choices(dataset, spec, params, sizes, seed):
        yield size, fit_chosen(dataset, spec, candidates, choice, wanted)


def path_to(dataset: Dataset, spec: TrainingSpec, params: Hyperparameters, sizes: Sequence[int], seed: int) -> Model:
    """The model of the smallest of the sizes."""
    *_, (_, candidates, choice) = choices(dataset, spec, params, sizes, seed)
    return fit_chosen(dataset, spec, candidates, choice, dataset.outputs(spec.scheme))


def choices(
    dataset: Dataset, spec: TrainingSpec, params: Hyperparameters, sizes: Sequence[int], seed: int
) -> Iterator[tuple[int, DatasetCandidates, Choice]]:
    """Vectors of each size, the largest first, and what they were chosen from."""
    chosen = _learned if spec.basis.learns else _separate
    candidates = spec.candidates(dataset, params, np.random.default_rng(seed))
    for size, choice in chosen(spec.basis, candidates, sorted(set(sizes), reverse=True), seed):
        yield size, candidates, choice


def _learned(
    basis: Any, candidates: DatasetCandidates, sizes: Sequence[int], seed: int
) -> Iterator[tuple[int, Choice]]:
    """Each size from the vectors of the one before."""
    choice = basis.choose(candidates, sizes[0])
    warn_if_unfinished(choice.learned, candidates.dataset)
    yield sizes[0], choice
    some = candidates.sample(MAX_SELECTION_ROWS)
    steps = PATH_ITERATIONS if isinstance(basis.iterations, str) else min(PATH_ITERATIONS, int(basis.iterations))
    shorter = replace(basis, iterations=steps)
    for size in sizes[1:]:
        if choice.vectors.shape[0] > size:
            kept = _best_of(some, choice, size)
            found = choice.learned
            start = replace(found, vectors=found.vectors[kept], coef=found.coef[:, kept])
            choice = shorter.choose(replace(candidates, start=start, watch=None), size)
        yield size, choice


def _separate(
    basis: Any, candidates: DatasetCandidates, sizes: Sequence[int], seed: int
) -> Iterator[tuple[int, Choice]]:
    """Each size by itself, with the same draws: bases that take one row after the other give nested ones.

    Of vectors that are given, whatever the size, the best are kept.
    """
    some = candidates.sample(MAX_SELECTION_ROWS)
    for size in sizes:
        choice = basis.choose(replace(candidates, rng=np.random.default_rng(seed)), size)
        if choice.vectors.shape[0] > size:
            kept = _best_of(some, choice, size)
            choice = Choice(choice.vectors[kept], None if choice.rows is None else choice.rows[kept], choice.kernel)
        yield size, choice


def _best_of(some: DatasetCandidates, choice: Choice, count: int) -> Array:
    """Which of the vectors gain most, one after the other."""
    kernel, Z = choice.kernel or some.kernel, choice.vectors
    K = kernel(some.X, Z, threads=some.dataset.threads)
    return forward_vectors(K, kernel(Z, Z), some.labels, count, some.loss if some.loss.smooth else squared(some.loss))
