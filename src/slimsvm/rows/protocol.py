"""The protocol between solvers and rows.

A *pass* is a pure function of one block of rows and a few small arrays, and returns sums; a solver sees their total
over all blocks (`FeatureSource.total`) and nothing else, but for a few rows that it names (`FeatureSource.features`).
So rows may be in memory, in files, on a GPU or on the workers of a cluster: each is a class with the methods of
`FeatureSource`.

Rows have features p (a row of P) and labels, see `labels`. Weights V of outputs are outputs x (features + 1), the bias
last; decision values are ``[P 1] V'``.
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
    """Some of the rows, as a pass sees them."""

    @property
    def first(self) -> int:
        """The number of its first row."""

    def labels(self, which: Array) -> tuple[Array, Array]:
        """Sides and costs of some outputs, rows x outputs."""

    def values(self, which: Array, V: Array) -> Array:
        """Decision values of outputs with the weights V, rows x outputs."""

    def features(self, some: Array | None = None) -> Array:
        """Features of the rows, or of some of them."""

    def sizes(self) -> Array:
        """``k(x, x)`` of the rows; zero where features are all that is known."""


class Pass:
    """A pure function of a block and small arrays; its results are added up over blocks.

    A pass that the core has too says so by the numbers of its loss, ``pieces``, and calls the core in `in_core`.
    """

    pieces: Pieces | None = None

    def __call__(self, block: Block, *args: Any) -> tuple[Array, ...]:
        raise NotImplementedError

    def in_core(self, passes: _core.Passes, *args: Any) -> tuple[Array, ...]:
        """The total over all rows of the core."""
        raise NotImplementedError

    def within(self, first: int, last: int, *args: Any) -> tuple[Any, ...]:
        """The arguments for rows ``first`` to before ``last`` alone, whose numbers there begin at 0."""
        return args


class FeatureSource(Protocol):
    """Labelled rows with features, wherever they are."""

    is_remote: ClassVar[bool]  # whether access to a row copies it from a file, a worker or a device

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""

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
        """Every ``step``-th row, at as many times its cost."""

    def newton(
        self, pieces: Pieces, which: Array, V: Array, trifle: Array, tol: float, max_iter: int
    ) -> tuple[Array, Array, Array] | None:
        """The source's own Newton's method for a piecewise quadratic loss: weights, steps and which outputs converged;
        None if it has none, or digits were lost."""


def total(blocks: Iterator[Block], work: Pass, *args: Any) -> tuple[Array, ...]:
    """The sum of a pass over blocks, in their order."""
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
    """Weights V of outputs, split into features and bias."""

    V: Array

    @property
    def w(self) -> Array:
        """Features x outputs."""
        return np.ascontiguousarray(self.V[:, :-1].T)

    @property
    def bias(self) -> Array:
        return self.V[:, -1].copy()
