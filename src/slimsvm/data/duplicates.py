"""Finds and merges duplicate rows, by hashes (keys) of their contents; sorts rows by key.

Rows are processed in parts, so that temporary arrays are small beside the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..linalg.arrays import Array, core_rows
from ..utils.threads import map_in_order

if TYPE_CHECKING:
    from .dataset import Dataset

Result = TypeVar("Result")

MAX_CACHED_COLUMNS = 4096  # columns whose hash constants are kept
BLOCK_ENTRIES = 1 << 16  # entries that are processed at a time
MIN_PART_ROWS = 1 << 16  # rows that are sorted together, at least
MAX_PART_BITS = 5  # at most 2^5 parts of the rows are sorted one after the other
# Duplicates stay in place if they are at most one row in ROWS_PER_KEPT_DUPLICATE and the rows take more than
# MIN_BYTES_TO_KEEP_DUPLICATES: removing them would copy much.
ROWS_PER_KEPT_DUPLICATE = 16
MIN_BYTES_TO_KEEP_DUPLICATES = 1 << 26


def row_slices(n: int, width: int = 1) -> Iterator[slice]:
    """Slices of at most `BLOCK_ENTRIES` entries each, for n rows of ``width`` entries."""
    rows = max(1, BLOCK_ENTRIES // max(1, width))
    return (slice(i, min(i + rows, n)) for i in range(0, n, rows))


# --- keys ------------------------------------------------------------------------------------------------------


def row_keys(X: Any, threads: int = 1) -> Array:
    """A 64-bit hash of each row's contents, equal for equal values in float32, float64 and sparse rows."""
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    return _core.row_keys(core_rows(X), column_constants(X.shape[1]), threads)


def column_constants(count: int) -> Array:
    """An odd 64-bit hash factor for each column; a column has the same factor whatever ``count`` is."""
    return _cached_constants()[:count] if count <= MAX_CACHED_COLUMNS else _constants(count)


def _constants(count: int) -> Array:
    numbers = np.random.default_rng(20).integers(1 << 63, size=count, dtype=np.uint64)
    return numbers * np.uint64(2) + np.uint64(1)


@lru_cache(maxsize=1)
def _cached_constants() -> Array:
    return _constants(MAX_CACHED_COLUMNS)


# --- their order -----------------------------------------------------------------------------------------------


def rows_by_key(keys: Array, codes: Array, threads: int = 1) -> Iterator[Array]:
    """All row numbers, sorted by key, then by class, then by number; a part at a time."""
    return _map_parts(lambda rows: _sort_ties_by_class(rows, keys[rows], codes), keys, threads)


def _sort_ties_by_class(rows: Array, keys: Array, codes: Array) -> Array:
    repeated = _repeats_previous(keys)
    if repeated.any():
        tied = np.flatnonzero(repeated | np.append(repeated[1:], False))
        some = rows[tied]
        rows[tied] = some[np.lexsort((some, codes[some], keys[tied]))]
    return rows


def n_distinct(keys: Array, threads: int = 1) -> int:
    """The number of distinct keys."""
    return sum(_map_parts(lambda rows: len(rows) - int(_repeats_previous(keys[rows]).sum()), keys, threads))


def _with_shared_keys(keys: Array, rows: Array) -> Array:
    """Those of the rows, which are sorted by key, that share their key with another."""
    repeated = _repeats_previous(keys[rows])
    return rows[repeated | np.append(repeated[1:], False)] if repeated.any() else rows[:0]


def _repeats_previous(numbers: Array) -> Array:
    """A mask of the sorted numbers that equal their predecessor."""
    repeated = np.zeros(len(numbers), dtype=bool)
    np.equal(numbers[1:], numbers[:-1], out=repeated[1:])
    return repeated


def _map_parts(work: Callable[[Array], Result], keys: Array, threads: int = 1) -> Iterator[Result]:
    """Apply a function to each part of the rows in turn. A part has the rows whose keys begin with the same bits, as
    row numbers sorted by key."""
    bits = min(MAX_PART_BITS, (len(keys) // MIN_PART_ROWS).bit_length())
    return map_in_order(lambda part: work(_core.key_part(keys, bits, part)), range(1 << bits), threads)


# --- equal rows ------------------------------------------------------------------------------------------------


def find_duplicates(X: Any, keys: Array, codes: Array | None = None, threads: int = 1) -> tuple[Array, Array]:
    """Ascending numbers of rows that equal an earlier row (of their class), and the first row that each equals.

    ``keys`` come from `row_keys`; without X, rows with equal keys are taken to be equal.
    """
    codes = np.broadcast_to(np.int8(0), len(keys)) if codes is None else codes
    rows = np.concatenate(list(_map_parts(lambda part: _with_shared_keys(keys, part), keys, threads)))
    if not len(rows):
        return rows, rows
    rows = rows[np.lexsort((rows, codes[rows], keys[rows]))]
    row_key, row_code = keys[rows], codes[rows]
    repeated = np.append(False, (row_key[1:] == row_key[:-1]) & (row_code[1:] == row_code[:-1]))[: len(rows)]
    copies = np.flatnonzero(repeated)
    for some in [] if X is None else np.array_split(copies, 1 + len(copies) * X.shape[1] // (16 * BLOCK_ENTRIES)):
        a, b = X[rows[some]], X[rows[some - 1]]
        if (a != b).nnz if sp.issparse(X) else (a != b).any():  # a hash collision: in one of 10^19 / n^2 data sets
            return _find_by_contents(X, np.sort(rows), codes)
    firsts = np.maximum.accumulate(np.where(repeated, 0, np.arange(len(rows))))
    order = np.argsort(rows[copies])
    return rows[copies][order], rows[firsts[copies]][order]


def _find_by_contents(X: Any, rows: Array, codes: Array) -> tuple[Array, Array]:
    """`find_duplicates` among some rows, by their contents instead of their keys."""
    seen: dict[bytes, int] = {}
    contents = X[rows].toarray() if sp.issparse(X) else X[rows]
    keys = (np.append(row + 0.0, code).tobytes() for row, code in zip(contents, codes[rows], strict=True))
    firsts = np.array([seen.setdefault(key, row) for key, row in zip(keys, rows.tolist(), strict=True)], dtype=np.intp)
    return rows[firsts != rows], firsts[firsts != rows]


@dataclass(frozen=True)
class RowGrouping:
    """Groups of equal rows, numbered in order of their first rows."""

    first: Array  # the first row of each group, ascending
    group: Array  # the group of each row

    @property
    def has_duplicates(self) -> bool:
        return len(self.first) < len(self.group)


def group_equal_rows(X: Any, keys: Array | None = None, codes: Array | None = None) -> RowGrouping:
    """Group equal rows (of the same class); ``keys`` come from `row_keys`, and are computed if left out."""
    keys = row_keys(X) if keys is None else keys
    copies, firsts = find_duplicates(X, keys, codes)
    is_first = np.ones(len(keys), dtype=bool)
    is_first[copies] = False
    group = np.cumsum(is_first) - 1
    group[copies] = group[firsts]
    return RowGrouping(np.flatnonzero(is_first), group)


@dataclass(frozen=True)
class Duplicates:
    """The rows of a data set that equal an earlier row (its original), and the merged counts of the originals."""

    rows: Array  # ascending
    originals: Array  # ascending, each once
    counts: Array  # of the originals with all their duplicates

    def without(self, rows: Array) -> Array:
        """The given rows without duplicates."""
        return rows[_positions(self.rows, rows) < 0]

    def add_counts(self, rows: Array, counts: Array) -> Array:
        """The counts of rows, each including those of its duplicates."""
        place = _positions(self.originals, rows)
        return np.where(place < 0, counts, self.counts[place])


def merge_duplicates(dataset: Dataset, contents: Any) -> Dataset:
    """Merge equal rows of a class (with the same targets) into one row with the sum of their weights.

    Rows stay in the order in which they first appear. ``contents`` are compared: the rows themselves, or those
    of a kernel matrix; None: no two rows are equal. Few duplicates among many rows are marked but stay in place.
    """
    if contents is None:
        return dataset
    copies, firsts = find_duplicates(contents, dataset.keys, dataset.merge_keys, dataset.threads)
    if not len(copies):
        return dataset
    dataset = mark_duplicates(dataset, copies, firsts)
    if len(copies) * ROWS_PER_KEPT_DUPLICATE <= dataset.size and _nbytes(dataset.X) > MIN_BYTES_TO_KEEP_DUPLICATES:
        return dataset
    return dataset.take(np.arange(dataset.size))


def mark_duplicates(dataset: Dataset, copies: Array, firsts: Array) -> Dataset:
    """The data set with its duplicates (see `find_duplicates`) marked but still in place."""
    if not len(copies):
        return dataset
    originals, place = np.unique(firsts, return_inverse=True)
    counts = dataset.counts[originals]
    np.add.at(counts, place, dataset.counts[copies])
    return replace(dataset, duplicates=Duplicates(copies, originals, counts))


def _nbytes(X: Any) -> int:
    return X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes


def _positions(ordered: Array, numbers: Array) -> Array:
    """The position of each number in a sorted array; -1 if it is absent."""
    place = np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)
    place[ordered[place] != numbers] = -1
    return place
