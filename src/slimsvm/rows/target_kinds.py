"""Reads the y of a block as class labels, as regression targets, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..data.targets import TargetScaler
from ..linalg.arrays import Array


class TargetKind(Protocol):
    """How the y of a block is read: for classification, regression or outlier detection."""

    @property
    def needed(self) -> bool:
        """Whether y is required."""

    def read(self, y: Any, size: int, number: int) -> tuple[Array, Array | None]:
        """The class labels of a block's rows, and their targets (in the shape of y) or None; error messages have the
        ``number`` of the block."""

    def units(self, targets: Array, counts: Array) -> TargetScaler:
        """The scaler fitted to the targets."""


def one_column(y: Array) -> Array:
    """A single column as a vector."""
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def check_same_targets(number: int, shape: tuple[int, ...], first: tuple[int, ...]) -> None:
    """Raise ValueError if the targets of a block differ from the first block's in columns; a vector is not a column."""
    if shape[1:] != first[1:]:
        raise ValueError(
            f"block {number} has y of shape {shape}, but the first block has y of shape {first}: give every block a "
            "vector, or every block the same number of columns"
        )


@dataclass(frozen=True)
class ClassLabelKind:
    """One class label for each row."""

    needed: bool = True

    def read(self, y: Any, size: int, number: int) -> tuple[Array, None]:
        y = one_column(y)
        if y.ndim != 1:
            raise ValueError(f"block {number} has {y.shape[1]} labels for each row; a classifier needs one")
        return y, None

    def units(self, targets: Array, counts: Array) -> TargetScaler:
        raise TypeError("classes have no units")


CLASSES = ClassLabelKind()


@dataclass(frozen=True)
class RegressionTargetKind:
    """Regression targets; with ``alike`` all outputs share one scale (see `TargetScaler`)."""

    alike: bool
    needed: bool = True

    def read(self, y: Any, size: int, number: int) -> tuple[Array, Array]:
        if y.dtype.kind not in "fiub":
            raise ValueError(f"block {number} has targets of type {y.dtype}; a regression needs numbers")
        y = np.ascontiguousarray(y, dtype=np.float64)
        if not np.isfinite(y).all():
            raise ValueError(f"block {number} has targets that are missing or infinite; leave these rows out")
        return np.zeros(size), y

    def units(self, targets: Array, counts: Array) -> TargetScaler:
        return TargetScaler.fit(targets, counts, self.alike)


@dataclass(frozen=True)
class NoTargetKind:
    """No targets: labels are ignored."""

    needed: bool = False

    def read(self, y: Any, size: int, number: int) -> tuple[Array, None]:
        return np.zeros(size), None

    def units(self, targets: Array, counts: Array) -> TargetScaler:
        raise TypeError("rows without targets have no units")
