"""Rows that are not in memory: in files, or on the workers of a cluster.

They serve as the X of a dataset like an array: with a shape, a dtype and rows by number (``X[rows]``, which fetches
them). All else goes through `RemoteRows.map_blocks`: a pure function of a block, run where the block is. The caller
holds a key and a class number (or targets) for each row, and the leading bits of its weight where there are weights
(`counts.RemoteCounts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from ..data.counts import RemoteCounts, sum_to_float
from ..data.dataset import TargetScaler
from ..linalg.arrays import Array, RemoteArray, as_float64, is_remote
from ..linalg.matrix import dot
from ..problem.kernels import Base
from .labels import LabelRule, Labels
from .memory import feature_source
from .protocol import Block, Pass

MAX_FETCHED_BYTES = 1 << 26  # bytes of rows that come here at a time


class FeatureCache:
    """Blocks with their features, kept for as long as rows are looked at in the same way."""

    def __init__(self) -> None:
        self.look: FeatureMap | None = None
        self.homes: dict[int, Any] = {}

    def __call__(self, look: FeatureMap, first: int, made: Callable[[], Any]) -> Any:
        """The home of the block that starts with this row."""
        if not look.kept:
            return made()
        if look is not self.look:
            self.look, self.homes = look, {}
        if first not in self.homes:
            self.homes[first] = made()
        return self.homes[first]


@dataclass(frozen=True)
class RowBlock:
    """A block of rows, with their class numbers (and targets, if they have any) and what they count."""

    X: Any
    codes: Array
    counts: Array
    first: int  # number of its first row
    keeper: FeatureCache | None = None  # of features, from one pass to the next
    targets: Array | None = None  # rows x outputs

    def home(self, look: FeatureMap, rule: LabelRule) -> Any:
        """The rows with their features, and labels by a rule."""
        made = partial(look.at, self.X, rule.of(self))
        return made() if self.keeper is None else self.keeper(look, self.first, made)


class RemoteRows(RemoteArray):
    """Rows that are apart. Subclasses say how a function is run on all blocks (`mapped`), how rows come here
    (`picked`), and how long the blocks are."""

    ndim = 2
    shape: tuple[int, int]
    dtype: Any
    lengths: Array  # of the blocks
    counts: Any  # what each row counts
    masses: Array  # the sums of these for each class
    targets: Array | None = None  # rows x outputs, in units of their own
    single: bool = False  # was one target given, as a vector?
    units: TargetScaler | None = None
    latest: tuple[Array, Array] | None = None  # row numbers that came here, and what these rows count

    def map_blocks(self, work: Callable[..., Any], *small: Any, each: list[Any] | None = None) -> Iterator[Any]:
        """``work(piece, *small)`` of each block, in their order; with ``each`` a last argument for each block."""
        raise NotImplementedError

    def fetch(self, rows: Array) -> tuple[Any, Array]:
        """Rows by ascending numbers, each once, and what they count."""
        raise NotImplementedError

    def weigh(self, heads: Array | None, units: list[int]) -> None:
        """What rows count: leading bits of each (None: all count 1), and the exact sums of each class."""
        ones = np.broadcast_to(1.0, self.shape[0])
        self.counts = ones if heads is None else RemoteCounts(heads, sum(units), self._fetch_counts)
        self.masses = np.array([sum_to_float(unit) for unit in units])

    def _fetch_rows(self, rows: Array) -> Any:
        """Rows by ascending numbers, each once."""
        X, counts = self.fetch(rows)
        self.latest = rows, counts
        return X

    def _fetch_counts(self, rows: Any) -> Array:
        """What rows count. Those whose rows came here last need not be asked for again."""
        numbers = self._numbers(rows)
        if not len(numbers):
            return np.empty(0)
        if self.latest is None or not np.isin(numbers, self.latest[0]).all():
            self._fetch_rows(np.unique(numbers))
        assert self.latest is not None
        known, counts = self.latest
        return counts[np.searchsorted(known, numbers)]

    def _numbers(self, rows: Any) -> Array:
        if isinstance(rows, slice):
            return np.arange(*rows.indices(self.shape[0]))
        numbers = np.asarray(rows)
        return np.flatnonzero(numbers) if numbers.dtype == bool else numbers

    @property
    def starts(self) -> Array:
        """Numbers of the blocks' first rows."""
        return np.append(0, np.cumsum(self.lengths)[:-1])

    def __getitem__(self, rows: Any) -> Array:
        if isinstance(rows, tuple):
            raise TypeError("columns cannot be taken out of rows that are not in memory")
        numbers = self._numbers(rows)
        if not len(numbers):
            return np.empty((0, self.shape[1]), dtype=self.dtype)
        wanted, place = np.unique(numbers, return_inverse=True)
        found = self._fetch_rows(wanted)
        return found if len(wanted) == len(numbers) and (numbers[1:] > numbers[:-1]).all() else found[place]

    def taken(self, rows: Array) -> Any:
        """Some rows by number, for work that looks at them again and again."""
        return np.ascontiguousarray(found) if not sp.issparse(found := self[rows]) else found

    def variance(self) -> float:
        """Of all entries; rows count by their weights."""
        mass, mean, squares = 0.0, 0.0, 0.0
        for more, other, theirs in self.map_blocks(_spread):
            mass += more
            step = (other - mean) * more / mass
            squares += theirs + step * (other - mean) * (mass - more)  # of the means about the new one
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

    def known(self, labels: Any) -> Any:
        """Labels of these rows, with the sums that need no look at them."""
        return labels.summed(self.masses)

    def close(self) -> None:
        """No more will be asked."""

    def feature_source(
        self, kernel: Any, labels: Any, Z: Any, T: Array, dtype: Any, threads: int, keep: float
    ) -> RemoteFeatures:
        """With features ``k(X, Z) T``, which stay where they and the rows take at most ``keep`` bytes."""
        n, d = self.shape
        take = n * (T.shape[1] * np.dtype(dtype).itemsize + d * self.dtype.itemsize)
        return RemoteFeatures(
            self, self.known(labels), FeatureMap(kernel, Z, T, np.dtype(dtype), threads, keep, take <= keep)
        )


def _spread(piece: RowBlock) -> tuple[float, float, float]:
    """The number of entries, their mean, and the sum of squares about it; rows count by their weights."""
    X, w = piece.X, piece.counts
    if is_remote(X):  # a block on a device
        return X.spread()
    mass = float(w.sum()) * X.shape[1]
    mean = float(dot(w, np.asarray(X.sum(axis=1, dtype=np.float64)).ravel())) / mass
    if not sp.issparse(X):
        about = np.subtract(X, mean, dtype=np.float64)
        return mass, mean, float(dot(w, np.einsum("ij,ij->i", about, about)))
    stored = np.repeat(w, np.diff(X.indptr))
    return mass, mean, float(dot(stored, (X.data.astype(np.float64) - mean) ** 2)) + (mass - stored.sum()) * mean**2


def _sizes(piece: RowBlock, kernel: Base) -> tuple[float, float]:
    if is_remote(piece.X):
        return piece.X.sizes(kernel)
    sizes = np.asarray(kernel.diagonal(piece.X))
    return float(sizes.sum()), float(sizes.max())


# --- their features ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FeatureMap:
    """What rows are looked at through: features ``k(X, Z) T``, on so many threads. Features of a block take at most
    ``keep`` bytes; ``kept``: all together take so few that they stay from one pass to the next."""

    kernel: Any
    Z: Any
    T: Array
    dtype: Any
    threads: int
    keep: float
    kept: bool = False

    def at(self, X: Any, labels: Labels) -> Any:
        """Rows in memory."""
        return feature_source(self.kernel, X, labels, self.Z, self.T, self.dtype, self.threads, self.keep)

    def on(self, piece: RowBlock, rule: LabelRule) -> Any:
        """A block, with labels by a rule."""
        return piece.home(self, rule)


@dataclass(frozen=True)
class OffsetBlock:
    """A block of rows whose numbers begin elsewhere."""

    block: Block
    start: int

    @property
    def first(self) -> int:
        return self.start + self.block.first

    def __getattr__(self, name: str) -> Any:
        return getattr(self.block, name)


def _total(piece: RowBlock, look: FeatureMap, rule: LabelRule, work: Pass, small: tuple[Any, ...]) -> Any:
    return look.on(piece, rule).total(work, *small)


def _each(
    piece: RowBlock, look: FeatureMap, rule: LabelRule, work: Callable[..., Any], small: tuple[Any, ...]
) -> list[Any]:
    home = look.on(piece, rule)
    return [work(OffsetBlock(block, piece.first), *small) for block in home.blocks()]


def _itself(piece: RowBlock) -> RowBlock:
    return piece


@dataclass(frozen=True)
class RemoteFeatures:
    """The home of rows that are apart: passes run where the blocks are, and sums come here."""

    X: RemoteRows
    labels: Any  # with a rule for blocks
    look: FeatureMap
    is_remote: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape[0], self.look.T.shape[1]

    def total(self, work: Pass, *small: Any) -> tuple[Array, ...]:
        each = [
            work.within(int(first), int(first + length), *small)
            for first, length in zip(self.X.starts, self.X.lengths, strict=True)
        ]
        return self.summed(_total, self.look, self.labels.rule, work, each=each)

    def summed(self, work: Callable[..., Any], *small: Any, each: list[Any]) -> tuple[Array, ...]:
        """The sum over blocks, in their order."""
        sums: tuple[Array, ...] | None = None
        for part in self.X.map_blocks(work, *small, each=each):
            sums = part if sums is None else tuple(a + b for a, b in zip(sums, part, strict=True))
        assert sums is not None
        return sums

    def blocks(self) -> Iterator[Block]:
        """Brought here one after the other."""
        for piece in self.X.map_blocks(_itself):
            home = piece.home(self.look, self.labels.rule)
            for block in home.blocks():
                yield OffsetBlock(block, piece.first)

    def map_blocks(self, work: Callable[..., Any], *small: Any) -> Iterator[Any]:
        for parts in self.X.map_blocks(_each, self.look, self.labels.rule, work, small):
            yield from parts

    def features(self, rows: Array) -> Array:
        X = as_float64(self.X[rows])
        K = self.look.kernel(X, self.look.Z, threads=self.look.threads)
        return dot(K, self.look.T)

    def subsampled(self, step: int) -> Any:
        """Brought here, and not too many: a rough solution is all that they are for."""
        step = max(step, -(-self.X.shape[0] * self.X.shape[1] * self.X.dtype.itemsize // MAX_FETCHED_BYTES))
        some = slice(None, None, step)
        return self.look.at(self.X[some], self.labels.take(some, step))

    def newton(self, *_: Any) -> None:
        """By passes."""
        return
