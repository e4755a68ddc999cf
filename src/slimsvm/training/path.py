"""Models of several sizes, from the largest down.

The largest is learned as a model of its own. For each smaller size, the vectors of the size above that gain most are
kept and learned a little further, scales of the inputs included. (Growing from few vectors to many gets trapped where
scales are learned: they settle for few vectors.)
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
from ..problem.losses import smooth_surrogate
from .small import fit_chosen, warn_if_unfinished
from .spec import Hyperparameters, TrainingSpec, shortened

PATH_ITERATIONS = 30  # of learning after vectors have been left out
MAX_SELECTION_ROWS = 5000  # on which the vectors to keep are selected


def path(
    dataset: Dataset, spec: TrainingSpec, params: Hyperparameters, sizes: Sequence[int], seed: int
) -> Iterator[tuple[int, Model]]:
    """A model of at most so many vectors for each of the sizes, the largest first."""
    for size, candidates, choice in _choices(dataset, spec, params, sizes, seed):
        yield size, fit_chosen(spec, candidates, choice)


def path_to(dataset: Dataset, spec: TrainingSpec, params: Hyperparameters, sizes: Sequence[int], seed: int) -> Model:
    """The model of the smallest of the sizes."""
    *_, (_, candidates, choice) = _choices(dataset, spec, params, sizes, seed)
    return fit_chosen(spec, candidates, choice)


def _choices(
    dataset: Dataset, spec: TrainingSpec, params: Hyperparameters, sizes: Sequence[int], seed: int
) -> Iterator[tuple[int, DatasetCandidates, Choice]]:
    """Vectors of each size, the largest first, and what they were chosen from."""
    choices = _learned if spec.basis.learns else _selected
    candidates = spec.candidates(dataset, params, np.random.default_rng(seed))
    for size, choice in choices(spec.basis, candidates, sorted(set(sizes), reverse=True), seed):
        yield size, candidates, choice


def _learned(
    basis: Any, candidates: DatasetCandidates, sizes: Sequence[int], seed: int
) -> Iterator[tuple[int, Choice]]:
    """Vectors of each size, learned from those of the size above."""
    choice = basis.choose(candidates, sizes[0])
    warn_if_unfinished(choice.learned, candidates.dataset)
    yield sizes[0], choice
    sample = candidates.sample(MAX_SELECTION_ROWS)
    shorter = shortened(basis, PATH_ITERATIONS)
    for size in sizes[1:]:
        if choice.vectors.shape[0] > size:
            kept = _best_vectors(sample, choice, size)
            learned = choice.learned
            start = replace(learned, vectors=learned.vectors[kept], coef=learned.coef[:, kept])
            choice = shorter.choose(replace(candidates, start=start, progress=None), size)
        yield size, choice


def _selected(
    basis: Any, candidates: DatasetCandidates, sizes: Sequence[int], seed: int
) -> Iterator[tuple[int, Choice]]:
    """Vectors of each size, chosen with the same draws: bases that select one row after the other give nested ones.

    Of vectors that are given whatever the size, the best are kept.
    """
    sample = candidates.sample(MAX_SELECTION_ROWS)
    for size in sizes:
        choice = basis.choose(replace(candidates, rng=np.random.default_rng(seed)), size)
        if choice.vectors.shape[0] > size:
            kept = _best_vectors(sample, choice, size)
            choice = Choice(choice.vectors[kept], None if choice.rows is None else choice.rows[kept], choice.kernel)
        yield size, choice


def _best_vectors(sample: DatasetCandidates, choice: Choice, count: int) -> Array:
    """Numbers of the ``count`` vectors that gain most, one after the other."""
    kernel, Z = choice.kernel or sample.kernel, choice.vectors
    K = kernel(sample.X, Z, threads=sample.dataset.threads)
    loss = sample.loss if sample.loss.smooth else smooth_surrogate(sample.loss)
    return forward_vectors(K, kernel(Z, Z), sample.labels, count, loss)
