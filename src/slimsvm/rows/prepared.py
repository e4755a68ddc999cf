"""A block of a collection becomes rows that passes can use: what runs on workers before the first pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..formulation import Array
from .partitions import _row_values
from .reading import _as_long, _check_finite, _floats, _weights

Raw = tuple[Any, Array, Array, Array | None, Array | None, int]  # rows, labels, their numbers, weights, kept, given


def prepared(X: Any, y: Any, weight: Any, number: int, dtype: Any, names: list[str] | None) -> Raw:
    """Checked rows of a weight above 0, with the labels among them and their numbers."""
    given = X.shape[0]
    X = _of_type(X, number, dtype)
    _check_finite(X, number, names)
    y = _as_long(_row_values(y, "y"), X, "y", number)
    weight = None if weight is None else _weights(_row_values(weight, "sample_weight"), X, number)
    kept = None if weight is None or weight.all() else np.flatnonzero(weight)
    if kept is not None:
        X, y, weight = X[kept], y[kept], weight[kept]
    try:
        labels, numbers = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"y has labels that cannot be sorted in block {number}, or missing ones: {error}") from None
    if labels.dtype.kind == "f":
        if not np.isfinite(labels).all():
            raise ValueError(f"y has missing or infinite values in block {number}")
        if (labels != np.rint(labels)).any():
            raise ValueError(f"y has values in block {number} that are no class labels, such as {labels[0]!r}")
    return X, labels, numbers.astype(np.min_scalar_type(-1 - len(labels))), weight, kept, given


def _of_type(X: Any, number: int, dtype: Any) -> Any:
    X = _floats(X.to_numpy(dtype=dtype, na_value=np.nan) if hasattr(X, "columns") else X, number)
    return X if X.dtype == dtype else X.astype(dtype)


@dataclass(frozen=True)
class About:
    """What is known of a block."""

    rows: int
    columns: int
    labels: Array
    given: int  # rows, those of weight 0 too
    kept: Array | None  # numbers of those that are left, where not all are


def about(raw: Raw) -> About:
    """Of a block that is prepared."""
    X, labels, _, _, kept, given = raw
    return About(X.shape[0], X.shape[1], labels, given, kept)


def coded(raw: Raw, classes: Array, first: int) -> tuple[Any, Array, Array | None, int]:
    """Rows, class numbers, weights (or None) and the number of the first row: a tuple, whose bytes dask can count."""
    X, labels, numbers, weight, _, _ = raw
    place = np.searchsorted(classes, labels).astype(np.min_scalar_type(-1 - len(classes)))
    return X, place[numbers], weight, first


def rows_again(
    X: Any, kept: Array | None, dtype: Any, codes: Array, weight: Array | None, first: int
) -> tuple[Any, Array, Array | None, int]:
    """The same from a block that was checked before."""
    X = _of_type(X, 0, dtype)
    return X if kept is None else X[kept], codes, weight, first
