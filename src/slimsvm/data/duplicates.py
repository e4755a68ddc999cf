"""Equal rows: hashes of their contents, the order of these hashes, and the one place that finds and merges duplicates.

All of it works on parts of the rows, so that many rows take few bytes each beside themselves.
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
BLOCK_ENTRIES = 1 << 16  # entries that are looked at together
MIN_PART_ROWS = 1 << 16  # rows that are sorted together, at least
MAX_PART_BITS = 5  # at most 2^5 parts of the rows are sorted one after the other
# Duplicates stay in place where removing them would copy much: at most one of so many rows, more than so many bytes.
ROWS_PER_KEPT_DUPLICATE = 16
MIN_BYTES_TO_KEEP_DUPLICATES = 1 << 26


def row_slices(n: int, width: int = 1) -> Iterator[slice]:
    """Slices of n rows of ``width`` entries that have at most `BLOCK_ENTRIES` each."""
    rows = max(1, BLOCK_ENTRIES // max(1, width))
    return (slice(i, min(i + rows, n)) for i in range(0, n, rows))


# --- keys ------------------------------------------------------------------------------------------------------


def row_keys(X: Any, threads: int = 1) -> Array:
    """A 64-bit hash of each row's contents: the same for float32, float64 and sparse."""
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    return _core.row_keys(core_rows(X), column_constants(X.shape[1]), threads)


def column_constants(count: int) -> Array:
    """An odd 64-bit factor for each column; the first ones are the same for any count."""
    return _cached_constants()[:count] if count <= MAX_CACHED_COLUMNS else _constants(count)


def _constants(count: int) -> Array:
    numbers = np.random.default_rng(20).integers(1 << 63, size=count, dtype=np.uint64)
    return numbers * np.uint64(2) + np.uint64(1)


@lru_cache(maxsize=1)
def _cached_constants() -> Array:
    return _constants(MAX_CACHED_COLUMNS)


# --- their order -----------------------------------------------------------------------------------------------


def rows_by_key(keys: Array, codes: Array, threads: int = 1) -> Iterator[Array]:
    """All row numbers in the order of keys, then of classes, then of the rows; some at a time."""
    return _map_parts(lambda rows: _sort_ties_by_class(rows, keys[rows], codes), keys, threads)


def _sort_ties_by_class(rows: Array, keys: Array, codes: Array) -> Array:
    repeated = _repeats_previous(keys)
    if repeated.any():
        tied = np.flatnonzero(repeated | np.append(repeated[1:], False))
        some = rows[tied]
        rows[tied] = some[np.lexsort((some, codes[some], keys[tied]))]
    return rows


def n_distinct(keys: Array, threads: int = 1) -> int:
    """How many different keys there are."""
    return sum(_map_parts(lambda rows: len(rows) - int(_repeats_previous(keys[rows]).sum()), keys, threads))


def _with_shared_keys(keys: Array, rows: Array) -> Array:
    """Those of rows, sorted by their keys, whose key another of them has too."""
    repeated = _repeats_previous(keys[rows])
    return rows[repeated | np.append(repeated[1:], False)] if repeated.any() else rows[:0]


def _repeats_previous(numbers: Array) -> Array:
    """Which of sorted numbers are equal to the one before."""
    repeated = np.zeros(len(numbers), dtype=bool)
    np.equal(numbers[1:], numbers[:-1], out=repeated[1:])
    return repeated


def _map_parts(work: Callable[[Array], Result], keys: Array, threads: int = 1) -> Iterator[Result]:
    """The results of a function of row numbers sorted by key, for one part of the rows after the other: those whose
    keys begin with the same bits."""
    bits = min(MAX_PART_BITS, (len(keys) // MIN_PART_ROWS).bit_length())
    return map_in_order(lambda part: work(_core.key_part(keys, bits, part)), range(1 << bits), threads)


# --- equal rows ------------------------------------------------------------------------------------------------


def find_duplicates(X: Any, keys: Array, codes: Array | None = None, threads: int = 1) -> tuple[Array, Array]:
    """Ascending numbers of rows that repeat an earlier row (of their class), and the first row that each repeats.

    ``keys`` are those of `row_keys`; without X, equal keys are taken for equal rows.
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
        if (a != b).nnz if sp.issparse(X) else (a != b).any():  # two rows share a key: once in 10^19 / n^2 data sets
            return _find_by_contents(X, np.sort(rows), codes)
    firsts = np.maximum.accumulate(np.where(repeated, 0, np.arange(len(rows))))
    order = np.argsort(rows[copies])
    return rows[copies][order], rows[firsts[copies]][order]


def _find_by_contents(X: Any, rows: Array, codes: Array) -> tuple[Array, Array]:
    """`find_duplicates` among some rows by comparing their contents."""
    seen: dict[bytes, int] = {}
    contents = X[rows].toarray() if sp.issparse(X) else X[rows]
    keys = (np.append(row + 0.0, code).tobytes() for row, code in zip(contents, codes[rows], strict=True))
    firsts = np.array([seen.setdefault(key, row) for key, row in zip(keys, rows.tolist(), strict=True)], dtype=np.intp)
    return rows[firsts != rows], firsts[firsts != rows]


@dataclass(frozen=True)
class RowGrouping:
    """Rows grouped by equality, groups in the order in which they first appear."""

    first: Array  # the first row of each group, ascending
    group: Array  # the group of each row

    @property
    def has_duplicates(self) -> bool:
        return len(self.first) < len(self.group)


def group_equal_rows(X: Any, keys: Array | None = None, codes: Array | None = None) -> RowGrouping:
    """Groups of equal rows (of one class); ``keys`` are those of `row_keys`, computed here if left out."""
    keys = row_keys(X) if keys is None else keys
    copies, firsts = find_duplicates(X, keys, codes)
    is_first = np.ones(len(keys), dtype=bool)
    is_first[copies] = False
    group = np.cumsum(is_first) - 1
    group[copies] = group[firsts]
    return RowGrouping(np.flatnonzero(is_first), group)


@dataclass(frozen=True)
class Duplicates:
    """Rows of a data set that repeat an earlier row, and the counts of the rows that they repeat."""

    rows: Array  # ascending
    originals: Array  # the rows that they repeat: ascending, each once
    counts: Array  # of the originals with all their duplicates

    def without(self, rows: Array) -> Array:
        """Those of the rows that are no duplicates."""
        return rows[_positions(self.rows, rows) < 0]

    def add_counts(self, rows: Array, counts: Array) -> Array:
        """The counts of rows, each with those of its duplicates."""
        place = _positions(self.originals, rows)
        return np.where(place < 0, counts, self.counts[place])


def merge_duplicates(dataset: Dataset, contents: Any) -> Dataset:
    """The data set with equal rows of a class (with the same targets) as one row that has the sum of their weights.

    Rows stay in the order in which they first appear. ``contents`` are what makes rows equal: the rows themselves, or
    those of a kernel matrix; None: no two are equal. Few duplicates among many rows are only marked as such.
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
    """The data set that knows its duplicates (see `find_duplicates`), which stay in place."""
    if not len(copies):
        return dataset
    originals, place = np.unique(firsts, return_inverse=True)
    counts = dataset.counts[originals]
    np.add.at(counts, place, dataset.counts[copies])
    return replace(dataset, duplicates=Duplicates(copies, originals, counts))


def _nbytes(X: Any) -> int:
    return X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes


def _positions(ordered: Array, numbers: Array) -> Array:
    """Where numbers stand in an ordered array; -1 where they do not."""
    place = np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)
    place[ordered[place] != numbers] = -1
    return place
