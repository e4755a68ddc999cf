"""Rows to learn from and held-out rows: inputs, labels, weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import train_test_split

from . import tables
from .errors import WrongUse
from .inputs import ModelInputs, choose
from .labels import check_row_count, target_of, weights_of
from .tasks import LearningTask, OutlierTask, check_name, task_of_target

if TYPE_CHECKING:
    from .options import LearnOptions


@dataclass(frozen=True)
class LabelledFrame:
    """A data frame of inputs, with labels and weights if there are any."""

    X: Any
    y: Any = None
    weights: Any = None

    def __len__(self) -> int:
        return len(self.X)

    def take(self, numbers: Any) -> LabelledFrame:
        y, weights = (None if part is None else part[numbers] for part in (self.y, self.weights))
        return LabelledFrame(self.X.iloc[numbers].reset_index(drop=True), y, weights)

    def fit(self, model: Any) -> Any:
        """Fit the pipeline to these rows."""
        weight = f"{model.steps[-1][0]}__sample_weight"
        return model.fit(self.X, self.y, **({} if self.weights is None else {weight: self.weights}))


@dataclass(frozen=True)
class TrainingData:
    """All rows of a data file, the chosen inputs, and the learning task of the target."""

    rows: LabelledFrame
    inputs: ModelInputs
    task: LearningTask
    target: str | None
    path: str
    missing: tuple[str, ...]  # texts that mean a missing value, from the options


def training_data(path: Path, options: LearnOptions) -> TrainingData:
    """Read a data file, choose inputs and task, and check the rows."""
    columns, reading = options.columns, options.reading
    check_name(columns.task)
    table = tables.read(path, reading)
    target = columns.target
    if columns.task != OutlierTask.name or target is not None or table.sparse:
        target = target_of(table, target)
    task = task_of_target(columns.task, table, target)
    y, weights = task.read_labels(table, target), weights_of(table, columns.weight)
    check_row_count(table.frame)
    task.check_labels(y if weights is None or y is None else y[weights > 0], target)
    inputs = choose(table, columns, target)
    rows = LabelledFrame(inputs.rows(table), y, weights)
    task.check_options(options.training)
    return TrainingData(rows, inputs, task, target, str(path), tuple(reading.missing or ()))


def train_and_test(data: TrainingData, options: LearnOptions) -> tuple[LabelledFrame, LabelledFrame | None]:
    """Training rows and held-out rows; the latter are a share of the file, the rows of a test file, or None."""
    how = options.hold_out
    if how.test is not None:
        table = tables.read(how.test, options.reading)
        target = None if data.rows.y is None else target_of(table, data.target)
        y = data.task.read_labels(table, target, data.rows.y)
        return data.rows, LabelledFrame(data.inputs.rows(table), y, weights_of(table, options.columns.weight))
    if how.test_size == 0:
        return data.rows, None
    numbers = np.arange(len(data.rows))
    strata = data.rows.y if data.task.stratified else None
    try:
        train, test = train_test_split(
            numbers, test_size=how.test_size, stratify=strata, random_state=options.training.seed
        )
    except ValueError:
        classes = "" if strata is None else f" for {len(np.unique(strata))} classes"
        raise WrongUse(
            f"--test-size {how.test_size:g} of {len(numbers)} rows leaves too few{classes}; give a larger share, a "
            "file with --test, or --test-size 0"
        ) from None
    return data.rows.take(np.sort(train)), data.rows.take(np.sort(test))
