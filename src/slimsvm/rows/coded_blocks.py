"""Checks a block of a Dask collection and encodes its labels; runs on the workers before the first pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.duplicates import row_keys
from ..data.targets import TargetScaler
from ..linalg.array_api import asarray_like, cast, has_float64, is_array_api, namespace, to_numpy
from ..linalg.arrays import Array
from .blocks import _as_long, _check_finite, _floats, _weights
from .dask_partitions import _row_values
from .device import DeviceRows, check_finite
from .target_kinds import TargetKind

# Raw: rows, distinct labels, the label number of each row, weights, numbers of the kept rows (None: all), how many rows
# were given, targets. Held, the input of passes: rows, class numbers, weights, the number of the first row, targets.
# Weights and targets may be None. These are tuples because dask can measure the bytes of tuples.
Raw = tuple[Any, Array, Array, Array | None, Array | None, int, Array | None]
Held = tuple[Any, Array, Array | None, int, Array | None]


def read_block(
    X: Any, y: Any, weight: Any, number: int, dtype: Any, names: list[str] | None, target_kind: TargetKind
) -> Raw:
    """Check a block and drop rows of weight 0; return its rows, labels, weights and targets as `Raw`."""
    given = X.shape[0]
    X = _of_type(X, number, dtype, names)
    if is_array_api(X):
        check_finite(X, f"block {number}")
    else:
        _check_finite(X, number, names)
    y = None if y is None else _as_long(_row_values(y, "y", columns=True), X, "y", number, columns=True)
    weight = None if weight is None else _weights(_row_values(weight, "sample_weight"), X, number)
    kept = None if weight is None or weight.all() else np.flatnonzero(weight)
    if kept is not None:
        X, y, weight = _some(X, kept), None if y is None else y[kept], weight[kept]
    y, targets = target_kind.read(y, X.shape[0], number)
    return X, *_labels(y, number), weight, kept, given, targets


def _labels(y: Array, number: int) -> tuple[Array, Array]:
    """The distinct labels of a block, and the label number of each row."""
    try:
        labels, numbers = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"y has labels that cannot be sorted in block {number}, or missing ones: {error}") from None
    if labels.dtype.kind == "f":
        if not np.isfinite(labels).all():
            raise ValueError(f"y has missing or infinite values in block {number}")
        if (labels != np.rint(labels)).any():
            raise ValueError(f"y has values in block {number} that are no class labels, such as {labels[0]!r}")
    return labels, numbers.astype(np.min_scalar_type(-1 - len(labels)))


def _some(X: Any, rows: Array) -> Any:
    return namespace(X).take(X, asarray_like(X, rows), axis=0) if is_array_api(X) else X[rows]


def _placed(X: Any, codes: Array, weight: Array | None, targets: Array | None) -> Any:
    """The rows, as `DeviceRows` if they are an array of another library."""
    if not is_array_api(X):
        return X
    return DeviceRows(X, codes, np.broadcast_to(1.0, len(codes)) if weight is None else weight, targets)


def _of_type(X: Any, number: int, dtype: Any, names: list[str] | None = None) -> Any:
    if names is not None and hasattr(X, "columns") and list(X.columns) != names:
        X = X[names]  # partitions of a dataframe need not have their columns in the same order
    if is_array_api(X):
        return cast(X, getattr(namespace(X), dtype.name) if has_float64(X) else namespace(X).float32)
    X = _floats(X.to_numpy(dtype=dtype, na_value=np.nan) if hasattr(X, "columns") else X, number)
    return X if X.dtype == dtype else X.astype(dtype)


@dataclass(frozen=True)
class BlockInfo:
    """Metadata of a block that the caller gathers: its size, its distinct labels, its kept rows, its targets."""

    rows: int
    columns: int
    labels: Array
    given: int  # number of rows, with those of weight 0
    kept: Array | None  # packed bits, one for each given row; None: all are kept
    targets: Array | None = None
    weight: Array | None = None  # None without targets


def block_info(raw: Raw) -> BlockInfo:
    """The metadata of a block from `read_block`."""
    X, labels, _, weight, kept, given, targets = raw
    bits = None if kept is None else np.packbits(np.bincount(kept, minlength=given).astype(bool))
    return BlockInfo(X.shape[0], X.shape[1], labels, given, bits, targets, None if targets is None else weight)


class KeptRows:
    """The numbers of the kept rows in the user's data, like an array, in one bit for each given row."""

    def __init__(self, found: list[BlockInfo]):
        self.found = found
        self.ends = np.cumsum([what.rows for what in found])
        self.before = np.append(0, np.cumsum([what.given for what in found])[:-1])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, rows: Any) -> Array:
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        numbers = np.empty(len(rows), dtype=np.intp)
        block = np.searchsorted(self.ends, rows, side="right")
        for k in np.unique(block).tolist():
            mine, what = block == k, self.found[k]
            place = rows[mine] - (self.ends[k] - what.rows)
            numbers[mine] = self.before[k] + (place if what.kept is None else _places(what)[place])
        return numbers

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self[np.arange(len(self))].astype(dtype or np.intp)


def _places(what: BlockInfo) -> Array:
    """Positions of the kept rows in a block."""
    assert what.kept is not None
    return np.flatnonzero(np.unpackbits(what.kept, count=what.given))


def code_block(raw: Raw, classes: Array, first: int, scaler: TargetScaler | None) -> Held:
    """Encode the labels of a block as class numbers, or scale its targets."""
    X, labels, numbers, weight, _, _, targets = raw
    if targets is not None and scaler is not None:
        targets = scaler.transform(targets.reshape(len(targets), -1))
    place = np.searchsorted(classes, labels).astype(np.min_scalar_type(-1 - len(classes)))
    codes = place[numbers]
    return _placed(X, codes, weight, targets), codes, weight, first, targets


def reread_block(
    X: Any,
    weight: Any,
    dtype: Any,
    names: list[str] | None,
    codes: Array,
    first: int,
    key: Any,
    targets: Array | None,
) -> Held:
    """Recompute the result of `code_block` without its labels; ``key`` is the hash of the block's first row."""
    X = _of_type(X, 0, dtype, names)
    if weight is None:
        return _placed(_same(X, key), codes, None, targets), codes, None, first, targets
    weight = _row_values(weight, "sample_weight").astype(np.float64)
    kept = np.flatnonzero(weight)
    X = X if len(kept) == len(weight) else _some(X, kept)
    return _placed(_same(X, key), codes, weight[kept], targets), codes, weight[kept], first, targets


def _same(X: Any, key: Any) -> Any:
    """X, after checking that the hash of its first row is still ``key``."""
    begin = to_numpy(X[:1, :]) if is_array_api(X) else X[:1]
    if row_keys(begin)[0] != key:
        raise ValueError(
            "a block of X has other rows than when it was computed before: persist X, or seed what makes it"
        )
    return X
