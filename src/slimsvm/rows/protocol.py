"""The protocol between solvers and rows: passes over blocks of rows that return sums.

A *pass* is a pure function of one block of rows and a few small arrays that returns sums. A solver only sees their
total over all blocks (`FeatureSource.total`) and the features of a few rows by number (`FeatureSource.features`). So
one solver serves rows in memory, in files, on a GPU or on the workers of a cluster; each has a class that implements
`FeatureSource`.

The features P are rows x features; for labels and costs see `labels`. The weights V are outputs x (features + 1), with
the bias last; decision values are ``[P 1] V'``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Protocol

import numpy as np

from .. import _core
from ..linalg.array_api import cast, widest_float
from ..linalg.arrays import Array
from ..linalg.matrix import dot
from .labels import Labels

Pieces = tuple[Any, ...]  # of a loss, see `SmoothLoss.pieces`


class Block(Protocol):
    """A block of rows, the input of a pass."""

    @property
    def first(self) -> int:
        """The number of the block's first row."""

    def labels(self, which: Array) -> tuple[Array, Array]:
        """Sides and costs of some outputs, rows x outputs."""

    def values(self, which: Array, V: Array) -> Array:
        """Decision values with the weights V of some outputs, rows x outputs."""

    def features(self, some: Array | None = None) -> Array:
        """Features of the rows, or of some of them."""

    def sizes(self) -> Array:
        """``k(x, x)`` of each row; zero if only the features are known."""


class Pass:
    """A pure function of a block and small arrays, whose results are summed over blocks.

    A pass that the core implements too has ``pieces``, the numbers of its loss, and calls the core in `in_core`.
    """

    pieces: Pieces | None = None

    def __call__(self, block: Block, *args: Any) -> tuple[Array, ...]:
        raise NotImplementedError

    def in_core(self, passes: _core.Passes, *args: Any) -> tuple[Array, ...]:
        """The total over all rows, computed by the core."""
        raise NotImplementedError

    def within(self, first: int, last: int, *args: Any) -> tuple[Any, ...]:
        """The arguments for the rows ``first:last`` alone, with row numbers counted from ``first``."""
        return args


class FeatureSource(Protocol):
    """Features and labels of rows, wherever the rows are."""

    is_remote: ClassVar[bool]  # whether access to a row copies it from a file, a worker or a device

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of features."""

    @property
    def labels(self) -> Labels:
        """Labels and costs of the rows in each output."""

    def total(self, work: Pass, *args: Any) -> tuple[Array, ...]:
        """The sum of a pass over all rows."""

    def blocks(self) -> Iterator[Block]:
        """All rows, a block at a time."""

    def map_blocks(self, work: Callable[..., Any], *args: Any) -> Iterator[Any]:
        """The results of a function of each block, in order; it runs where the block is."""

    def features(self, rows: Array) -> Array:
        """Features of some rows, in float64; row numbers are ascending."""

    def subsampled(self, step: int) -> FeatureSource:
        """Every ``step``-th row, with ``step`` times its cost."""

    def newton(
        self, pieces: Pieces, which: Array, V: Array, trifle: Array, tol: float, max_iter: int
    ) -> tuple[Array, Array, Array] | None:
        """The source's own Newton method for a piecewise quadratic loss: weights, steps and convergence of each output.
        None if the source has none, or if digits were lost."""


def total(blocks: Iterator[Block], work: Pass, *args: Any) -> tuple[Array, ...]:
    """The sum of a pass over blocks, added in their order."""
    sums: tuple[Array, ...] | None = None
    for block in blocks:
        part = work(block, *args)
        sums = part if sums is None else tuple(a + b for a, b in zip(sums, part, strict=True))
    assert sums is not None
    return sums


def decision(P: Array, V: Array) -> Array:
    """``[P 1] V'`` in float64, multiplied in the precision of P."""
    return cast(dot(P, cast(V[:, :-1], P.dtype).T), widest_float(P)) + V[:, -1]


class LinearWeights:
    """The weights V, split into feature weights and bias."""

    V: Array

    @property
    def w(self) -> Array:
        """Features x outputs."""
        return np.ascontiguousarray(self.V[:, :-1].T)

    @property
    def bias(self) -> Array:
        return self.V[:, -1].copy()
