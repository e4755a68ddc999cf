"""The smallest compressed one-class model that agrees with the original on held-out rows.

Agreement on training rows is too optimistic: with few rows, most lie on the border or well inside, and one vector may
agree on all of them. For each fold, a model of its training rows is therefore compressed and compared on its test rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..data.dataset import Dataset
from .methods import Compressor
from .original import Original
from .sizes import SmallModel, half_size, not_reached, small_model, smallest

N_FOLDS = 4
MAX_JUDGED_ROWS = 500  # held-out rows of all folds together: further folds are skipped
MIN_ROWS = 2 * N_FOLDS


def small_model_by_holdout(
    compressor: Compressor, rows: Dataset, method: str, agreement: float, train: Callable[[Dataset], Original]
) -> SmallModel:
    """Compress to the smallest size that agrees on training and on held-out rows; ``train`` makes originals of rows."""
    if rows.size < MIN_ROWS:
        return small_model(compressor, method, "auto", agreement)
    held_out = [
        HeldOutModel(replace(compressor, original=train(seen), given_rows=seen), unseen) for seen, unseen in folds(rows)
    ]
    weights = [float(fold.unseen.counts.sum()) for fold in held_out]

    def compress(size: int) -> tuple[int, SmallModel]:
        return size, small_model(compressor, method, size, agreement)

    def agrees(candidate: tuple[int, SmallModel]) -> bool:
        size, small = candidate
        if compressor.agreement(small.expansion) < agreement:
            return False
        return float(np.average([fold.agreement(method, size) for fold in held_out], weights=weights)) >= agreement

    (_, small), reached = smallest(half_size(compressor.original), compress, agrees)
    return small if reached else small._replace(note=not_reached(agreement, small.expansion))


@dataclass(frozen=True)
class HeldOutModel:
    """A compressor for the model of a fold's training rows, and the fold's held-out rows."""

    compressor: Compressor
    unseen: Dataset

    def agreement(self, method: str, size: int) -> float:
        """Agreement of the model with its compressed form of this size on the held-out rows."""
        small, original = small_model(self.compressor, method, size, 1.0), self.compressor.original
        before, after = (self.compressor.values(f, self.unseen.X) for f in (original.expansion, small.expansion))
        return original.task.agreement(before, after, self.unseen.counts)


def folds(rows: Dataset) -> Iterator[tuple[Dataset, Dataset]]:
    """Yield training rows and held-out rows of each fold."""
    fold = np.random.default_rng(0).permutation(rows.size) % N_FOLDS
    for k in range(min(N_FOLDS, -(-MAX_JUDGED_ROWS * N_FOLDS // rows.size))):
        yield rows.take(fold != k), rows.take(fold == k)
