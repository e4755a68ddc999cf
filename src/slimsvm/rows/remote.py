"""Base class of rows in files, on the workers of a cluster or on a device, with functions mapped over their blocks.

Remote rows are the X of a data set in place of an array: they have a shape and a dtype, and ``X[rows]`` fetches rows by
number. `RemoteRows.map_blocks` runs a pure function of a block where the block is. The caller holds for each row a key,
a class number or targets, and the leading bits of its weight, if rows are weighted (`counts.RemoteCounts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from ..data.counts import RemoteCounts, sum_to_float
from ..data.targets import TargetScaler
from ..linalg.arrays import Array, RemoteArray, as_float64, is_remote
from ..linalg.matrix import dot
from ..problem.kernels import Base
from .labels import LabelRule, Labels
from .memory import feature_source
from .protocol import Block, Pass

MAX_FETCHED_BYTES = 1 << 26  # bytes of rows that are fetched at a time


class FeatureCache:
    """Cached features of blocks, dropped when the feature map changes."""

    def __init__(self) -> None:
        self.feature_map: FeatureMap | None = None
        self.sources: dict[int, Any] = {}

    def __call__(self, feature_map: FeatureMap, first: int, made: Callable[[], Any]) -> Any:
        """The features of the block that starts with row ``first``, from the cache or computed by ``made``."""
        if not feature_map.cached:
            return made()
        if feature_map is not self.feature_map:
            self.feature_map, self.sources = feature_map, {}
        if first not in self.sources:
            self.sources[first] = made()
        return self.sources[first]


@dataclass(frozen=True)
class RowBlock:
    """A block of rows with their class numbers, counts and, in regression, targets."""

    X: Any
    codes: Array
    counts: Array
    first: int  # number of the block's first row
    cache: FeatureCache | None = None
    targets: Array | None = None  # rows x outputs

    def with_features(self, feature_map: FeatureMap, rule: LabelRule) -> Any:
        """The features of the rows, with their labels."""
        made = partial(feature_map.apply, self.X, rule.of(self))
        return made() if self.cache is None else self.cache(feature_map, self.first, made)


class RemoteRows(RemoteArray):
    """Rows outside memory. Subclasses implement `map_blocks`, which runs a function on all blocks, and `fetch`, which
    copies rows to memory, and set the lengths of the blocks."""

    ndim = 2
    shape: tuple[int, int]
    dtype: Any
    lengths: Array  # number of rows of each block
    counts: Any  # sample weight of each row
    class_totals: Array  # sum of the counts of each class
    targets: Array | None = None  # rows x outputs, scaled
    single_target: bool = False  # whether y was a vector
    target_scaler: TargetScaler | None = None
    last_fetched: tuple[Array, Array] | None = None  # row numbers and counts of the last fetch

    def map_blocks(self, work: Callable[..., Any], *args: Any, each: list[Any] | None = None) -> Iterator[Any]:
        """``work(block, *args)`` for each `RowBlock`, in order; ``each`` holds a last argument for each block."""
        raise NotImplementedError

    def fetch(self, rows: Array) -> tuple[Any, Array]:
        """The rows of these ascending, distinct numbers, and their counts."""
        raise NotImplementedError

    def set_counts(self, heads: Array | None, units: list[int]) -> None:
        """Set the counts from their leading bits (None: all are 1) and the exact sum of each class."""
        ones = np.broadcast_to(1.0, self.shape[0])
        self.counts = ones if heads is None else RemoteCounts(heads, sum(units), self._fetch_counts)
        self.class_totals = np.array([sum_to_float(unit) for unit in units])

    def _fetch_rows(self, rows: Array) -> Any:
        """The rows of these ascending, distinct numbers."""
        X, counts = self.fetch(rows)
        self.last_fetched = rows, counts
        return X

    def _fetch_counts(self, rows: Any) -> Array:
        """The counts of rows; those of the rows fetched last are not fetched again."""
        numbers = self._numbers(rows)
        if not len(numbers):
            return np.empty(0)
        if self.last_fetched is None or not np.isin(numbers, self.last_fetched[0]).all():
            self._fetch_rows(np.unique(numbers))
        assert self.last_fetched is not None
        fetched, counts = self.last_fetched
        return counts[np.searchsorted(fetched, numbers)]

    def _numbers(self, rows: Any) -> Array:
        if isinstance(rows, slice):
            return np.arange(*rows.indices(self.shape[0]))
        numbers = np.asarray(rows)
        return np.flatnonzero(numbers) if numbers.dtype == bool else numbers

    @property
    def starts(self) -> Array:
        """The number of each block's first row."""
        return np.append(0, np.cumsum(self.lengths)[:-1])

    def __getitem__(self, rows: Any) -> Array:
        if isinstance(rows, tuple):
            raise TypeError("columns cannot be taken out of rows that are not in memory")
        numbers = self._numbers(rows)
        if not len(numbers):
            return np.empty((0, self.shape[1]), dtype=self.dtype)
        distinct, place = np.unique(numbers, return_inverse=True)
        X = self._fetch_rows(distinct)
        return X if len(distinct) == len(numbers) and (numbers[1:] > numbers[:-1]).all() else X[place]

    def take(self, rows: Array) -> Any:
        """Some rows by number, copied for repeated use."""
        return np.ascontiguousarray(found) if not sp.issparse(found := self[rows]) else found

    def variance(self) -> float:
        """The weighted variance of all entries."""
        mass, mean, squares = 0.0, 0.0, 0.0
        for more, other, theirs in self.map_blocks(_spread):
            mass += more
            step = (other - mean) * more / mass
            squares += theirs + step * (other - mean) * (mass - more)  # of the means
            mean += step
        return squares / mass

    def mean_size(self, kernel: Base) -> float:
        """The mean of ``k(x, x)``."""
        if kernel.translation_invariant:
            return float(kernel.diagonal(np.zeros((1, self.shape[1])))[0])
        return float(sum(total for total, _ in self.map_blocks(_sizes, kernel))) / self.shape[0]

    def largest_size(self, kernel: Base) -> float:
        """The largest ``k(x, x)``."""
        if kernel.translation_invariant:
            return self.mean_size(kernel)
        return float(max(largest for _, largest in self.map_blocks(_sizes, kernel)))

    def with_totals(self, labels: Any) -> Any:
        """The labels with the count sums of these rows' classes."""
        return labels.with_class_totals(self.class_totals)

    def close(self) -> None:
        """Release all resources; the rows are not used afterwards."""

    def feature_source(
        self, kernel: Any, labels: Any, Z: Any, T: Array, dtype: Any, threads: int, cache_bytes: float
    ) -> RemoteFeatures:
        """The features ``k(X, Z) T`` of these rows, cached if they and the rows take at most ``cache_bytes``."""
        n, d = self.shape
        size = n * (T.shape[1] * np.dtype(dtype).itemsize + d * self.dtype.itemsize)
        return RemoteFeatures(
            self,
            self.with_totals(labels),
            FeatureMap(kernel, Z, T, np.dtype(dtype), threads, cache_bytes, size <= cache_bytes),
        )


def _spread(row_block: RowBlock) -> tuple[float, float, float]:
    """The weighted number of entries, their mean, and the sum of squared deviations from it."""
    X, w = row_block.X, row_block.counts
    if is_remote(X):  # a block on a device
        return X.spread()
    mass = float(w.sum()) * X.shape[1]
    mean = float(dot(w, np.asarray(X.sum(axis=1, dtype=np.float64)).ravel())) / mass
    if not sp.issparse(X):
        about = np.subtract(X, mean, dtype=np.float64)
        return mass, mean, float(dot(w, np.einsum("ij,ij->i", about, about)))
    stored = np.repeat(w, np.diff(X.indptr))
    return mass, mean, float(dot(stored, (X.data.astype(np.float64) - mean) ** 2)) + (mass - stored.sum()) * mean**2


def _sizes(row_block: RowBlock, kernel: Base) -> tuple[float, float]:
    if is_remote(row_block.X):
        return row_block.X.sizes(kernel)
    sizes = np.asarray(kernel.diagonal(row_block.X))
    return float(sizes.sum()), float(sizes.max())


# --- their features ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FeatureMap:
    """The map from rows to features ``k(X, Z) T``. Features of a block are kept within a pass if they take at most
    ``cache_bytes``; they are ``cached`` between passes if those of all blocks together take no more."""

    kernel: Any
    Z: Any
    T: Array
    dtype: Any
    threads: int
    cache_bytes: float
    cached: bool = False

    def apply(self, X: Any, labels: Labels) -> Any:
        """The features of rows in memory."""
        return feature_source(self.kernel, X, labels, self.Z, self.T, self.dtype, self.threads, self.cache_bytes)

    def apply_to_block(self, row_block: RowBlock, rule: LabelRule) -> Any:
        """The features of a block, with labels by the rule."""
        return row_block.with_features(self, rule)


@dataclass(frozen=True)
class OffsetBlock:
    """A part of a remote block, whose row numbers are shifted by those of the rows before that block."""

    block: Block
    start: int

    @property
    def first(self) -> int:
        return self.start + self.block.first

    def __getattr__(self, name: str) -> Any:
        return getattr(self.block, name)


def _total(row_block: RowBlock, feature_map: FeatureMap, rule: LabelRule, work: Pass, args: tuple[Any, ...]) -> Any:
    return feature_map.apply_to_block(row_block, rule).total(work, *args)


def _each(
    row_block: RowBlock, feature_map: FeatureMap, rule: LabelRule, work: Callable[..., Any], args: tuple[Any, ...]
) -> list[Any]:
    source = feature_map.apply_to_block(row_block, rule)
    return [work(OffsetBlock(block, row_block.first), *args) for block in source.blocks()]


def _identity(row_block: RowBlock) -> RowBlock:
    return row_block


@dataclass(frozen=True)
class RemoteFeatures:
    """Features of remote rows: passes run where the blocks are and return sums to the caller."""

    X: RemoteRows
    labels: Any  # have a `LabelRule` for blocks
    feature_map: FeatureMap
    is_remote: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape[0], self.feature_map.T.shape[1]

    def total(self, work: Pass, *args: Any) -> tuple[Array, ...]:
        each = [
            work.within(int(first), int(first + length), *args)
            for first, length in zip(self.X.starts, self.X.lengths, strict=True)
        ]
        return self.summed(_total, self.feature_map, self.labels.rule, work, each=each)

    def summed(self, work: Callable[..., Any], *args: Any, each: list[Any]) -> tuple[Array, ...]:
        """The sum of a function over blocks, added in their order."""
        sums: tuple[Array, ...] | None = None
        for part in self.X.map_blocks(work, *args, each=each):
            sums = part if sums is None else tuple(a + b for a, b in zip(sums, part, strict=True))
        assert sums is not None
        return sums

    def blocks(self) -> Iterator[Block]:
        """The blocks, fetched one after the other."""
        for row_block in self.X.map_blocks(_identity):
            source = row_block.with_features(self.feature_map, self.labels.rule)
            for block in source.blocks():
                yield OffsetBlock(block, row_block.first)

    def map_blocks(self, work: Callable[..., Any], *args: Any) -> Iterator[Any]:
        for parts in self.X.map_blocks(_each, self.feature_map, self.labels.rule, work, args):
            yield from parts

    def features(self, rows: Array) -> Array:
        X = as_float64(self.X[rows])
        K = self.feature_map.kernel(X, self.feature_map.Z, threads=self.feature_map.threads)
        return dot(K, self.feature_map.T)

    def subsampled(self, step: int) -> Any:
        """About every ``step``-th row (at most), copied to memory, for a rough solution."""
        step = max(step, -(-self.X.shape[0] * self.X.shape[1] * self.X.dtype.itemsize // MAX_FETCHED_BYTES))
        some = slice(None, None, step)
        return self.feature_map.apply(self.X[some], self.labels.take(some, step))

    def newton(self, *_: Any) -> None:
        """None: no Newton's method of its own."""
        return
