"""Models of several sizes, from the largest down.

The largest model is learned first. For each smaller size, the vectors that reduce the objective most are kept and
learned a little further, together with the scales of the inputs. (Growing from few vectors to many gets trapped:
scales learned for few vectors suit only these.)
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

PATH_ITERATIONS = 30  # L-BFGS iterations after vectors were dropped
MAX_SELECTION_ROWS = 5000  # rows on which the vectors to keep are selected


def path(
    dataset: Dataset, spec: TrainingSpec, params: Hyperparameters, sizes: Sequence[int], seed: int
) -> Iterator[tuple[int, Model]]:
    """Yield each size with a model of at most that many vectors, the largest first."""
    for size, candidates, choice in _choices(dataset, spec, params, sizes, seed):
        yield size, fit_chosen(spec, candidates, choice)


def path_to(dataset: Dataset, spec: TrainingSpec, params: Hyperparameters, sizes: Sequence[int], seed: int) -> Model:
    """The model of the smallest of the sizes."""
    *_, (_, candidates, choice) = _choices(dataset, spec, params, sizes, seed)
    return fit_chosen(spec, candidates, choice)


def _choices(
    dataset: Dataset, spec: TrainingSpec, params: Hyperparameters, sizes: Sequence[int], seed: int
) -> Iterator[tuple[int, DatasetCandidates, Choice]]:
    """Yield each size with its candidates and the chosen vectors, the largest first."""
    choices = _learned if spec.basis.learns else _selected
    candidates = spec.candidates(dataset, params, np.random.default_rng(seed))
    for size, choice in choices(spec.basis, candidates, sorted(set(sizes), reverse=True), seed):
        yield size, candidates, choice


def _learned(
    basis: Any, candidates: DatasetCandidates, sizes: Sequence[int], seed: int
) -> Iterator[tuple[int, Choice]]:
    """Yield vectors of each size, learned from those of the next larger size."""
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
    """Yield vectors of each size, chosen with the same seed: sets are nested if the basis selects rows one by one.

    Where the basis returns the same vectors for every size, the best of them are kept.
    """
    sample = candidates.sample(MAX_SELECTION_ROWS)
    for size in sizes:
        choice = basis.choose(replace(candidates, rng=np.random.default_rng(seed)), size)
        if choice.vectors.shape[0] > size:
            kept = _best_vectors(sample, choice, size)
            choice = Choice(choice.vectors[kept], None if choice.rows is None else choice.rows[kept], choice.kernel)
        yield size, choice


def _best_vectors(sample: DatasetCandidates, choice: Choice, count: int) -> Array:
    """Indices of ``count`` vectors by forward selection: each reduces the objective most."""
    kernel, Z = choice.kernel or sample.kernel, choice.vectors
    K = kernel(sample.X, Z, threads=sample.dataset.threads)
    loss = sample.loss if sample.loss.smooth else smooth_surrogate(sample.loss)
    return forward_vectors(K, kernel(Z, Z), sample.labels, count, loss)
