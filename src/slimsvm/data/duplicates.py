"""Rows by their contents: a number made from them, the order of these numbers, and rows that are equal.

All of it goes by parts of the rows, so that many rows take few bytes each beside themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..linalg.arrays import Array, core_rows
from ..utils.threads import map_in_order

Found = TypeVar("Found")

MAX_CACHED_COLUMNS = 4096  # whose constants are kept
BLOCK_ENTRIES = 1 << 16  # entries that are looked at together
MIN_PART_ROWS = 1 << 16  # rows that are sorted together, at least
MAX_PART_BITS = 5  # at most 2^5 parts of the rows are sorted one after the other


def row_slices(n: int, width: int = 1) -> Iterator[slice]:
    """All of n rows of so many entries, a block at a time."""
    rows = max(1, BLOCK_ENTRIES // max(1, width))
    return (slice(i, min(i + rows, n)) for i in range(0, n, rows))


# --- keys ------------------------------------------------------------------------------------------------------


def row_keys(X: Any, threads: int = 1) -> Array:
    """A 64-bit number for each row that depends on its contents alone: the same for float32, float64 and sparse."""
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    return _core.row_keys(core_rows(X), column_constants(X.shape[1]), threads)


def column_constants(count: int) -> Array:
    """A factor for each column."""
    return _few_constants()[:count] if count <= MAX_CACHED_COLUMNS else _constants(count)


def _constants(count: int) -> Array:
    """An odd number for each column; the first ones are the same for any count."""
    numbers = np.random.default_rng(20).integers(1 << 63, size=count, dtype=np.uint64)
    return numbers * np.uint64(2) + np.uint64(1)


@lru_cache(maxsize=1)
def _few_constants() -> Array:
    return _constants(MAX_CACHED_COLUMNS)


# --- their order -----------------------------------------------------------------------------------------------


def rows_by_key(keys: Array, codes: Array, threads: int = 1) -> Iterator[Array]:
    """Numbers of all rows in the order of keys, then classes, then as they come; some at a time."""
    return _of_parts(lambda rows: _by_class(rows, keys[rows], codes), keys, threads)


def _by_class(rows: Array, keys: Array, codes: Array) -> Array:
    """Those of equal keys in the order of their classes."""
    again = _repeated(keys)
    if again.any():
        tied = np.flatnonzero(again | np.append(again[1:], False))
        some = rows[tied]
        rows[tied] = some[np.lexsort((some, codes[some], keys[tied]))]
    return rows


def n_distinct(keys: Array, threads: int = 1) -> int:
    """How many of the keys differ."""
    return sum(_of_parts(lambda rows: len(rows) - int(_repeated(keys[rows]).sum()), keys, threads))


def _of_shared_keys(keys: Array, rows: Array) -> Array:
    """Those of rows in the order of their keys whose keys others of them have too."""
    again = _repeated(keys[rows])
    return rows[again | np.append(again[1:], False)] if again.any() else rows[:0]


def _repeated(found: Array) -> Array:
    """Which of sorted numbers are equal to the one before."""
    again = np.zeros(len(found), dtype=bool)
    np.equal(found[1:], found[:-1], out=again[1:])
    return again


def _of_parts(work: Callable[[Array], Found], keys: Array, threads: int = 1) -> Iterator[Found]:
    """What is made of the rows whose keys begin with the same bits, in the order of their keys: a part of the rows at a
    time takes a part of the memory."""
    bits = min(MAX_PART_BITS, (len(keys) // MIN_PART_ROWS).bit_length())
    return map_in_order(lambda part: work(_core.key_part(keys, bits, part)), range(1 << bits), threads)


# --- equal rows ------------------------------------------------------------------------------------------------


def find_duplicates(X: Any, keys: Array, codes: Array | None = None, threads: int = 1) -> tuple[Array, Array]:
    """Rows that repeat an earlier one (of their class), in order, and the first of those that each repeats.

    ``keys`` are those of `row_keys`; without X, equal keys are taken for equal rows.
    """
    codes = np.broadcast_to(np.int8(0), len(keys)) if codes is None else codes
    rows = np.concatenate(list(_of_parts(lambda part: _of_shared_keys(keys, part), keys, threads)))
    if not len(rows):
        return rows, rows
    rows = rows[np.lexsort((rows, codes[rows], keys[rows]))]
    found, classes = keys[rows], codes[rows]
    again = np.append(False, (found[1:] == found[:-1]) & (classes[1:] == classes[:-1]))[: len(rows)]
    copies = np.flatnonzero(again)
    for some in [] if X is None else np.array_split(copies, 1 + len(copies) * X.shape[1] // (16 * BLOCK_ENTRIES)):
        a, b = X[rows[some]], X[rows[some - 1]]
        if (a != b).nnz if sp.issparse(X) else (a != b).any():  # two rows share a key: once in 10^19 / n^2 data sets
            return _slowly_repeated(X, np.sort(rows), codes)
    firsts = np.maximum.accumulate(np.where(again, 0, np.arange(len(rows))))
    order = np.argsort(rows[copies])
    return rows[copies][order], rows[firsts[copies]][order]


def _slowly_repeated(X: Any, rows: Array, codes: Array) -> tuple[Array, Array]:
    """The same by comparing contents; ``rows`` are those in question."""
    seen: dict[bytes, int] = {}
    contents = X[rows].toarray() if sp.issparse(X) else X[rows]
    keys = (np.append(row + 0.0, code).tobytes() for row, code in zip(contents, codes[rows], strict=True))
    firsts = np.array([seen.setdefault(key, row) for key, row in zip(keys, rows.tolist(), strict=True)], dtype=np.intp)
    return rows[firsts != rows], firsts[firsts != rows]


def same_rows(X: Any, keys: Array, codes: Array | None = None) -> Array | None:
    """A number for each row, the same for equal rows (of one class), in the order in which they first appear; None if
    all rows differ. ``keys`` are those of `row_keys`."""
    copies, firsts = find_duplicates(X, keys, codes)
    if not len(copies):
        return None
    first = np.ones(len(keys), dtype=bool)
    first[copies] = False
    numbers = np.cumsum(first) - 1
    numbers[copies] = numbers[firsts]
    return numbers


def row_numbers(X: Any) -> Array:
    """A number for each row, the same for equal rows, in the order in which they first appear."""
    found = same_rows(X, row_keys(X))
    return np.arange(X.shape[0]) if found is None else found
