"""As few vectors as agree with the original on held-out rows.

Training rows say too little of that: many lie on the border of a model over few rows, or well inside of it, and one
vector may agree with it on all of them. So models over parts of the rows are compressed, and judged on the others.
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
MAX_JUDGED_ROWS = 500  # of all folds together: further folds are left out
MIN_ROWS = 2 * N_FOLDS


def small_model_by_holdout(
    compressor: Compressor, rows: Dataset, method: str, agreement: float, train: Callable[[Dataset], Original]
) -> SmallModel:
    """As `small_model` for "auto", where the size must also do on held-out rows; ``train`` makes originals of rows."""
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
    """A model over some of the rows, to be compressed, and rows that are not among them."""

    compressor: Compressor
    unseen: Dataset

    def agreement(self, method: str, size: int) -> float:
        """Of the compressed model of this size with the model, on the held-out rows."""
        small, original = small_model(self.compressor, method, size, 1.0), self.compressor.original
        before, after = (self.compressor.values(f, self.unseen.X) for f in (original.expansion, small.expansion))
        return original.task.agreement(before, after, self.unseen.counts)


def folds(rows: Dataset) -> Iterator[tuple[Dataset, Dataset]]:
    """Rows to train on, and the held-out rows; they do not depend on the order in which rows were given."""
    fold = np.random.default_rng(0).permutation(rows.size) % N_FOLDS
    for k in range(min(N_FOLDS, -(-MAX_JUDGED_ROWS * N_FOLDS // rows.size))):
        yield rows.take(fold != k), rows.take(fold == k)
