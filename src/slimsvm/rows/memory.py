"""Features of rows in memory or in memory-mapped arrays: in the core, cached, or computed in each pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import _core
from ..linalg.arrays import Array, as_float64, core_rows, is_remote
from ..linalg.matrix import dot
from .labels import Labels
from .protocol import Block, Pass, Pieces, decision, total

BLOCK_BYTES = 1 << 24
# Multiplications of a Gram matrix up to which the core's single-threaded Newton, which skips rows of cost 0, is used.
MAX_SINGLE_THREAD_GRAM = 1 << 30


def row_blocks(n: int, row_bytes: int) -> list[slice]:
    """Slices of n rows of at most `BLOCK_BYTES` each."""
    size = max(1, BLOCK_BYTES // max(1, row_bytes))
    return [slice(i, min(i + size, n)) for i in range(0, max(n, 1), size)]


def label_bytes(labels: Labels) -> int:
    """Bytes per row of a pass's temporaries: sides, costs, values and duals of all outputs, and as much again while
    these are computed."""
    return 8 * 8 * labels.outputs


@dataclass(frozen=True)
class ArrayBlock:
    """A block of rows whose features are an array."""

    P: Array
    own: Labels
    rows: slice
    diagonal: Array | None = None

    @property
    def first(self) -> int:
        return self.rows.start

    def labels(self, which: Array) -> tuple[Array, Array]:
        return self.own.of(self.rows, which)

    def values(self, which: Array, V: Array) -> Array:
        return decision(self.P, V)

    def features(self, some: Array | None = None) -> Array:
        return self.P if some is None else self.P[some]

    def sizes(self) -> Array:
        return np.zeros(len(self.P)) if self.diagonal is None else self.diagonal


@dataclass(frozen=True)
class DenseFeatures:
    """Features in an array in memory, with labels."""

    P: Array
    labels: Labels
    is_remote: ClassVar[bool] = False

    @property
    def shape(self) -> tuple[int, int]:
        return self.P.shape[0], self.P.shape[1]

    def blocks(self) -> Iterator[Block]:
        n, m = self.shape
        for rows in row_blocks(n, max(m * self.P.itemsize, label_bytes(self.labels))):
            yield ArrayBlock(self.P[rows], self.labels, rows)

    def total(self, work: Pass, *args: Any) -> tuple[Array, ...]:
        return total(self.blocks(), work, *args)

    def map_blocks(self, work: Callable[..., Any], *args: Any) -> Iterator[Any]:
        return (work(block, *args) for block in self.blocks())

    def features(self, rows: Array) -> Array:
        return self.P[rows].astype(np.float64, copy=False)

    def subsampled(self, step: int) -> DenseFeatures:
        return DenseFeatures(self.P[::step], self.labels.take(slice(None, None, step), step))

    def newton(
        self, pieces: Pieces, which: Array, V: Array, trifle: Array, tol: float, max_iter: int
    ) -> tuple[Array, Array, Array] | None:
        """The core's Newton method for each output in turn; None if rows are many or digits were lost."""
        n, m = self.P.shape
        if self.P.dtype != np.float64 or n * m * m > MAX_SINGLE_THREAD_GRAM:
            return None
        P, (Y, C) = np.ascontiguousarray(self.P), self.labels.of(slice(None), which)
        solved, loss = [], _core.QuadraticLoss(*pieces)
        for y, c, at in zip(Y.T, C.T, V, strict=True):
            y, c = np.ascontiguousarray(y, dtype=np.float64), np.ascontiguousarray(c, dtype=np.float64)
            solved.append(_core.smooth_newton(P, y, c, np.ascontiguousarray(at), loss, tol, max_iter))
        if not all(exact for *_, exact in solved):
            return None
        found, steps, converged = (np.array([s[k] for s in solved]) for k in (0, 2, 3))
        return found, steps, converged


@dataclass(frozen=True)
class LazyFeatures:
    """Features ``k(X, Z) T`` of any kernel, recomputed in each pass."""

    kernel: Any
    X: Any
    labels: Labels
    Z: Any
    T: Array
    dtype: Any = np.float64
    threads: int = 1
    is_remote: ClassVar[bool] = False

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape[0], self.T.shape[1]

    def blocks(self) -> Iterator[Block]:
        as_double = np.dtype(self.dtype) == np.float64
        row_bytes = max(max(self.T.shape) * np.dtype(self.dtype).itemsize, label_bytes(self.labels))
        for rows in row_blocks(self.X.shape[0], row_bytes):
            X = as_float64(self.X[rows]) if as_double else self.X[rows]
            yield ArrayBlock(self._of(X), self.labels, rows, np.asarray(self.kernel.diagonal(X)))

    def _of(self, X: Any) -> Array:
        K = np.empty((X.shape[0], self.T.shape[0]), dtype=self.dtype)
        # Multiply by T before any product of features: whitening a float32 Gram matrix would make it indefinite.
        return dot(self.kernel(X, self.Z, out=K, threads=self.threads), self.T.astype(self.dtype), self.threads)

    def total(self, work: Pass, *args: Any) -> tuple[Array, ...]:
        return total(self.blocks(), work, *args)

    def map_blocks(self, work: Callable[..., Any], *args: Any) -> Iterator[Any]:
        return (work(block, *args) for block in self.blocks())

    def features(self, rows: Array) -> Array:
        blocks = row_blocks(len(rows), max(self.T.shape) * 8)
        return np.vstack([self._of(self.X[rows[block]]).astype(np.float64, copy=False) for block in blocks])

    def subsampled(self, step: int) -> LazyFeatures:
        some = slice(None, None, step)
        return LazyFeatures(
            self.kernel, self.X[some], self.labels.take(some, step), self.Z, self.T, self.dtype, self.threads
        )

    def newton(self, *_: Any) -> None:
        """None: no Newton's method of its own."""
        return


@dataclass(frozen=True)
class CoreBlock:
    """A block of rows in the core."""

    source: CoreFeatures
    rows: slice

    @property
    def first(self) -> int:
        return self.rows.start

    def labels(self, which: Array) -> tuple[Array, Array]:
        return self.source.labels.of(self.rows, which)

    def values(self, which: Array, V: Array) -> Array:
        V = np.ascontiguousarray(V)
        return self.source.passes.values(list(which), V, self.rows.start, self.rows.stop)

    def features(self, some: Array | None = None) -> Array:
        some = np.arange(self.rows.stop - self.rows.start) if some is None else some
        return self.source.passes.features(np.ascontiguousarray(self.rows.start + some, dtype=np.int64))

    def sizes(self) -> Array:
        return self.source.diagonal(self.rows)


class CoreFeatures:
    """Features ``k(X, Z) T`` of a kernel that the core evaluates, with passes fused over blocks that fit the CPU cache.

    Features are kept if they take at most ``cache_bytes``, else recomputed in each pass. `set_features` changes them.
    """

    is_remote: ClassVar[bool] = False

    def __init__(self, X: Any, labels: Labels, dtype: Any = np.float64, threads: int = 1, cache_bytes: float = 2.0**30):
        self.X, self.labels, self.dtype = X, labels, np.dtype(dtype)
        self.threads, self.cache_bytes = threads, cache_bytes
        self.passes = labels.passes(core_rows(X), self.dtype == np.float32, int(cache_bytes), threads)
        self.current_map: tuple[Any, Any, Array] | None = None

    def use_threads(self, threads: int) -> None:
        """Set the number of threads; results do not depend on it."""
        if threads != self.threads:
            self.passes.use_threads(threads)
            self.threads = threads

    def set_features(self, kernel: Any, Z: Any, T: Array) -> CoreFeatures:
        """Set the kernel, the vectors Z and the transform T."""
        T = np.ascontiguousarray(T, dtype=np.float64)
        rows, core, vectors = kernel.core_view(self.X, Z)
        self.passes.set_features(rows, core, vectors, T)
        self.current_map = kernel, Z, T
        return self

    def set_whitened_features(self, kernel: Any, Z: Any, added: tuple[float, float]) -> Array | None:
        """Set the kernel, Z and a T with ``T'RT = I``, where R is ``k(Z, Z)`` plus a diagonal (see `Regularizer`), and
        return k(Z, Z). If R is not safely positive definite, return None and change nothing."""
        rows, core, vectors = kernel.core_view(self.X, Z)
        found = self.passes.set_whitened_features(rows, core, vectors, *added)
        if found is None:
            return None
        gram, T = found
        self.current_map = kernel, Z, T
        return gram

    @property
    def shape(self) -> tuple[int, int]:
        assert self.current_map is not None
        return self.X.shape[0], self.current_map[2].shape[1]

    def blocks(self) -> Iterator[Block]:
        n, m = self.shape
        for rows in row_blocks(n, max(8 * m, label_bytes(self.labels))):
            yield CoreBlock(self, rows)

    def total(self, work: Pass, *args: Any) -> tuple[Array, ...]:
        if work.pieces is not None:
            return work.in_core(self.passes, *args)
        return total(self.blocks(), work, *args)

    def map_blocks(self, work: Callable[..., Any], *args: Any) -> Iterator[Any]:
        return (work(block, *args) for block in self.blocks())

    def features(self, rows: Array) -> Array:
        return self.passes.features(np.ascontiguousarray(rows, dtype=np.int64))

    def diagonal(self, rows: slice) -> Array:
        """``k(x, x)`` of some rows."""
        assert self.current_map is not None
        return np.asarray(self.current_map[0].diagonal(as_float64(self.X[rows])))

    def subsampled(self, step: int) -> CoreFeatures:
        assert self.current_map is not None
        some = slice(None, None, step)
        X = self.X[some]
        labels = self.labels.take(some, step)
        return CoreFeatures(X, labels, self.dtype, self.threads, self.cache_bytes / step).set_features(
            *self.current_map
        )

    def newton(
        self, pieces: Pieces, which: Array, V: Array, trifle: Array, tol: float, max_iter: int
    ) -> tuple[Array, Array, Array] | None:
        """The core's Newton method over its passes; None if digits were lost."""
        loss = _core.QuadraticLoss(*pieces)
        found, steps, converged, exact = self.passes.newton(which.tolist(), V, trifle, loss, tol, max_iter)
        return (found, np.array(steps), np.array(converged, dtype=bool)) if exact else None


def feature_source(
    kernel: Any,
    X: Any,
    labels: Labels,
    Z: Any,
    T: Array,
    dtype: Any = np.float64,
    threads: int = 1,
    cache_bytes: float = 2.0**30,
) -> Any:
    """The features ``k(X, Z) T`` of rows: in the core if it evaluates the kernel, else cached if they take at most
    ``cache_bytes``, else recomputed in each pass. Remote rows use their own method `feature_source`."""
    if is_remote(X):
        return X.feature_source(kernel, labels, Z, T, dtype, threads, cache_bytes)
    if kernel.in_core:
        return CoreFeatures(X, labels, dtype, threads, cache_bytes).set_features(kernel, Z, T)
    return cache_features(LazyFeatures(kernel, X, labels, Z, T, dtype, threads), cache_bytes)


def cache_features(source: LazyFeatures, cache_bytes: float) -> DenseFeatures | LazyFeatures:
    """Compute the features into an array, if they take at most ``cache_bytes``."""
    n, m = source.shape
    if n * m * np.dtype(source.dtype).itemsize > cache_bytes:
        return source
    P = np.empty((n, m), dtype=source.dtype)
    for block in source.blocks():
        part = block.features()
        P[block.first : block.first + len(part)] = part
    return DenseFeatures(P, source.labels)
