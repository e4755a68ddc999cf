"""Rows to learn from: inputs, labels, weights, and those that are held out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import tables
from .errors import WrongUse
from .inputs import Inputs, choose
from .labels import check_classes, labels_of, target_of, weights_of

if TYPE_CHECKING:
    from .options import Choosing, Judging, Reading


@dataclass(frozen=True)
class Rows:
    """Inputs as a frame, labels, and weights where there are any."""

    X: Any
    y: Any
    weights: Any = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, numbers: Any) -> Rows:
        weights = None if self.weights is None else self.weights[numbers]
        return Rows(self.X.iloc[numbers].reset_index(drop=True), self.y[numbers], weights)

    def fit(self, model: Any) -> Any:
        """The pipeline, fitted to these rows."""
        return model.fit(
            self.X, self.y, **({} if self.weights is None else {"classifier__sample_weight": self.weights})
        )


@dataclass(frozen=True)
class Data:
    """All rows of a file, and what their columns mean."""

    rows: Rows
    inputs: Inputs
    target: str
    path: str
    missing: tuple[str, ...] = ()  # texts that were said to stand for missing values


def learning_data(path: Path, reading: Reading, choosing: Choosing) -> Data:
    """The rows of a file, checked."""
    table = tables.read(path, reading)
    target = target_of(table, choosing.target)
    y, weights = labels_of(table, target), weights_of(table, choosing.weight)
    check_classes(y if weights is None else y[weights > 0], target)
    inputs = choose(table, choosing, target)
    return Data(Rows(inputs.rows(table), y, weights), inputs, target, str(path), tuple(reading.missing or ()))


def held_out(data: Data, how: Judging, reading: Reading, choosing: Choosing, seed: int) -> tuple[Rows, Rows | None]:
    """Rows to learn from and rows to judge by: a share of those in the file, those of another file, or none."""
    if how.test is not None:
        table = tables.read(how.test, reading)
        y = labels_of(table, target_of(table, data.target), np.unique(data.rows.y))
        return data.rows, Rows(data.inputs.rows(table), y, weights_of(table, choosing.weight))
    if how.test_size == 0:
        return data.rows, None
    from sklearn.model_selection import train_test_split

    numbers = np.arange(len(data.rows))
    try:
        train, test = train_test_split(numbers, test_size=how.test_size, stratify=data.rows.y, random_state=seed)
    except ValueError:
        classes = len(np.unique(data.rows.y))
        raise WrongUse(
            f"--test-size {how.test_size:g} of {len(numbers)} rows leaves too few for {classes} classes; give a larger "
            "share, a file with --test, or --test-size 0"
        ) from None
    return data.rows.take(np.sort(train)), data.rows.take(np.sort(test))
