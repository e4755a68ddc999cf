"""Features of rows, met only a block of rows at a time.

A solver sees the rows in sums over blocks (`block_sums`) and in products with a few columns (`times`), so a block
may come from memory, from a file, or be computed anew whenever it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ..formulation import Array, Kernel

BLOCK_BYTES = 1 << 24
# Multiplications of a Gram matrix up to which calls of Python cost more than the work.
FEW = 1 << 21


class Features(Protocol):
    """Rows of features, a block at a time."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Row numbers and features of each block, in order."""

    def take(self, rows: Array) -> Any:
        """Some of the rows."""

    def few(self) -> Array | None:
        """All features, if they are in memory in float64 and so few that sums over them cost next to nothing."""


@dataclass(frozen=True)
class Stored:
    """Features in memory."""

    P: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.P.shape[0], self.P.shape[1]

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        n, m = self.shape
        for rows in row_blocks(n, m * self.P.itemsize):
            yield rows, self.P[rows]

    def take(self, rows: Array) -> Stored:
        return Stored(self.P[rows])

    def few(self) -> Array | None:
        n, m = self.P.shape
        return np.ascontiguousarray(self.P) if self.P.dtype == np.float64 and n * m * m <= FEW else None


@dataclass(frozen=True)
class Computed:
    """Features ``k(X, Z) T``, computed in each pass."""

    kernel: Kernel
    X: Any
    Z: Any
    T: Array
    dtype: Any = np.float64
    threads: int = 1

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape[0], self.T.shape[1]

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        n = self.X.shape[0]
        m = max(self.T.shape)
        T = self.T.astype(self.dtype)
        for rows in row_blocks(n, m * np.dtype(self.dtype).itemsize):
            K = np.empty((rows.stop - rows.start, self.T.shape[0]), dtype=self.dtype)
            # Whitening comes before any product of features: a whitened float32 Gram matrix is not definite.
            yield rows, self.kernel(self.X[rows], self.Z, out=K, threads=self.threads) @ T

    def few(self) -> None:
        return None

    def take(self, rows: Array) -> Computed:
        return Computed(self.kernel, self.X[rows], self.Z, self.T, self.dtype, self.threads)


def row_blocks(n: int, row_bytes: int) -> list[slice]:
    """Slices of at most `BLOCK_BYTES`."""
    size = max(1, BLOCK_BYTES // max(1, row_bytes))
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def features(
    kernel: Kernel, X: Any, Z: Any, T: Array, dtype: Any = np.float64, threads: int = 1, memory: float = 2.0**30
) -> Features:
    """Features ``k(X, Z) T``: kept in memory if they fit, else computed block by block in each pass."""
    computed = Computed(kernel, X, Z, T, dtype, threads)
    n, m = computed.shape
    if n * m * np.dtype(dtype).itemsize > memory:
        return computed
    P = np.empty((n, m), dtype=dtype)
    for rows, block in computed.blocks():
        P[rows] = block
    return Stored(P)


@dataclass(frozen=True)
class Exact:
    """k(x, Z) and k(x, x) of rows in float64, however the rows are kept: what a certificate is made of."""

    kernel: Kernel
    X: Any
    Z: Any
    threads: int = 1
    values: tuple[Array, Array] | None = None  # of all rows, if they are kept

    def kept(self, memory: float) -> Exact:
        """With the values kept, if they fit: for machines that look at the same rows again and again."""
        n, m = self.X.shape[0], self.Z.shape[0]
        if 8 * n * (m + 1) > memory:
            return self
        K, sizes = np.empty((n, m)), np.empty(n)
        for block, part, diagonal in self.blocks():
            K[block], sizes[block] = part, diagonal
        return replace(self, values=(K, sizes))

    def blocks(self, rows: Array | None = None) -> Iterator[tuple[slice, Array, Array]]:
        """Blocks of (some of) the rows; slices count those that were asked for."""
        n = self.X.shape[0] if rows is None else len(rows)
        Z = double(self.Z)
        for block in row_blocks(n, 8 * max(Z.shape[0], self.X.shape[1])):
            which = block if rows is None else rows[block]
            if self.values is not None:
                yield block, self.values[0][which], self.values[1][which]
            else:
                X = double(self.X[which])
                yield block, self.kernel(X, Z, threads=self.threads), self.kernel.diagonal(X)


def double(X: Any) -> Any:
    """float32 rows as float64; row numbers of a precomputed kernel stay what they are."""
    return X.astype(np.float64) if X.dtype == np.float32 else X


def block_sums(P: Array, V: Array, H: Array | None) -> tuple[Array, Array | None]:
    """A block's share of ``[P 1]'V``, and for each column h of H of ``[P 1]' diag(h) [P 1]``."""
    moments = np.vstack([P.T @ V.astype(P.dtype, copy=False), V.sum(axis=0)])
    return moments, None if H is None else np.stack([_weighted_gram(P, h) for h in H.T])


def _weighted_gram(P: Array, h: Array) -> Array:
    used = np.flatnonzero(h)
    if len(used) < 0.9 * len(h):
        P, h = P[used], h[used]
    m = P.shape[1]
    gram = np.empty((m + 1, m + 1))
    if len(h) and h.min() == h.max():
        gram[:m, :m] = h[0] * (P.T @ P)
    else:
        scaled = P * np.sqrt(h).astype(P.dtype, copy=False)[:, None]
        gram[:m, :m] = scaled.T @ scaled
    gram[m, :m] = gram[:m, m] = h.astype(P.dtype, copy=False) @ P
    gram[m, m] = h.sum()
    return gram


def sums(features: Features, V: Array, H: Array | None = None, exact: bool = False) -> tuple[Array, Array | None]:
    """`block_sums` over all blocks, added up in float64; ``exact``: float32 blocks too are multiplied in float64."""
    m, outputs = features.shape[1], V.shape[1]
    moments = np.zeros((m + 1, outputs))
    grams = None if H is None else np.zeros((outputs, m + 1, m + 1))
    for rows, P in features.blocks():
        a, b = block_sums(P.astype(np.float64) if exact else P, V[rows], None if H is None else H[rows])
        moments += a
        if grams is not None and b is not None:
            grams += b
    return moments, grams


def times(features: Features, w: Array, bias: Array, exact: bool = False) -> Array:
    """``P w + b`` for all rows."""
    F = np.empty((features.shape[0], w.shape[1]))
    for rows, P in features.blocks():
        F[rows] = P @ (w if exact else w.astype(P.dtype, copy=False))
    F += bias
    return F
