"""Rows on a device, such as the memory of a GPU: passes run there, over the namespace of their arrays, and sums come
here.

`DeviceRows` is the X of a task. Here are a key and a class number for each row, and few rows where a method takes them
one by one; what looks at many rows again and again (features, Newton's method, learning, certificates) looks there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, ClassVar

import numpy as np

from ..data.duplicates import column_constants, row_keys
from ..linalg.array_api import asarray_like, cast, device, has_float64, namespace, numpy_dtype, to_numpy, widest_float
from ..linalg.arrays import Array
from .labels import ClassLabels, TargetLabels
from .memory import ArrayBlock, feature_source, label_bytes
from .protocol import Block, Pass, Pieces, total
from .remote import MAX_FETCHED_BYTES, RemoteRows, RowBlock

MAX_COPIED_ENTRIES = 1 << 19  # numbers of rows that come here
# Bytes of features that are looked at together: half of them, so that a device has much to do at a time, within limits.
MIN_BLOCK_BYTES, MAX_BLOCK_BYTES = 1 << 27, 1 << 31


def _slices(n: int, row_bytes: int, most: int | None = None) -> list[slice]:
    most = int(np.clip(n * row_bytes // 2, MIN_BLOCK_BYTES, MAX_BLOCK_BYTES)) if most is None else most
    size = max(1, most // max(1, row_bytes))
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


class DeviceRows(RemoteRows):
    """Rows in an array of another library, with their class numbers or targets and weights here."""

    def __init__(self, values: Any, codes: Array, counts: Array, targets: Array | None = None):
        self.values, self.codes, self.counts, self.targets = values, codes, counts, targets
        self.classes: Any = None  # known where the rows are those of a fit, as their keys are
        self.keys: Any = None
        self.shape = values.shape[0], values.shape[1]
        self.dtype = numpy_dtype(values)
        rows = _slices(self.shape[0], self.shape[1] * self.dtype.itemsize, MAX_FETCHED_BYTES)
        self.lengths = np.array([some.stop - some.start for some in rows])

    def row_keys(self) -> Array:
        """A number made from the contents of each row, see `keys.row_keys`."""
        parts = [_device_row_keys(self.values[some, :]) for some in _slices(self.shape[0], 32 * self.shape[1])]
        return np.concatenate(parts) if len(parts) != 1 else parts[0]

    def map_blocks(self, work: Callable[..., Any], *small: Any, each: list[Any] | None = None) -> Iterator[Any]:
        """Blocks are brought here one after the other: for what is not written over namespaces."""
        for k, (first, length) in enumerate(zip(self.starts, self.lengths, strict=True)):
            rows = slice(int(first), int(first + length))
            targets = None if self.targets is None else self.targets[rows]
            piece = RowBlock(
                to_numpy(self.values[rows, :]), self.codes[rows], self.counts[rows], int(first), targets=targets
            )
            yield work(piece, *small) if each is None else work(piece, *small, each[k])

    def fetch(self, rows: Array) -> tuple[Any, Array]:
        return to_numpy(self._some(rows)), self.counts[rows]

    def known(self, labels: Any) -> Any:
        return labels

    def taken(self, rows: Array) -> Any:
        """Some of the rows, which stay there, but for few: on these the core is done before a device has begun."""
        if len(rows) * self.shape[1] <= MAX_COPIED_ENTRIES:
            return self[rows]
        targets = None if self.targets is None else self.targets[rows]
        return DeviceRows(self._some(rows), self.codes[rows], self.counts[rows], targets)

    def _some(self, rows: Array) -> Any:
        return namespace(self.values).take(self.values, asarray_like(self.values, rows.astype(np.int64)), axis=0)

    def centred(self, kernel: Any, dtype: Any) -> tuple[Any, DeviceRows]:
        """A mean, and rows without it where the kernel depends on differences only, in another type."""
        xp, X = namespace(self.values), self.values
        kind = getattr(xp, np.dtype(dtype).name) if has_float64(X) else xp.float32
        if not kernel.translation_invariant:
            return 0.0, DeviceRows(cast(X, kind), self.codes, self.counts, self.targets)
        mean = self._sums(lambda part: xp.sum(cast(part, widest_float(X)), axis=0)) / self.shape[0]
        around = xp.empty(self.shape, dtype=kind, device=device(X))
        centre = asarray_like(X, mean, widest_float(X))
        for some in _slices(self.shape[0], 16 * self.shape[1]):
            around[some, :] = cast(cast(X[some, :], widest_float(X)) - centre, kind)
        return mean, DeviceRows(around, self.codes, self.counts, self.targets)

    def _sums(self, work: Callable[[Any], Any]) -> Any:
        return sum(to_numpy(work(self.values[some, :])) for some in _slices(self.shape[0], 16 * self.shape[1]))

    def variance(self) -> float:
        mass, _, squares = self.spread()
        return squares / mass

    def spread(self) -> tuple[float, float, float]:
        """The number of entries, their mean, and the sum of squares about it; rows count by their weights."""
        xp, X = namespace(self.values), self.values
        parts = _slices(self.shape[0], 16 * self.shape[1])
        weights = [asarray_like(X, self.counts[some], widest_float(X)) for some in parts]
        mass = float(self.counts.sum()) * self.shape[1]

        def over(work: Callable[[Any], Any]) -> float:
            each = zip(parts, weights, strict=True)
            return sum(float(w @ xp.sum(work(cast(X[some, :], widest_float(X))), axis=1)) for some, w in each)

        mean = over(lambda part: part) / mass
        return mass, mean, over(lambda part: (part - mean) ** 2)

    def sizes(self, kernel: Any) -> tuple[float, float]:
        """The sum and the largest of ``k(x, x)``."""
        if kernel.translation_invariant:
            size = self.mean_size(kernel)
            return size * self.shape[0], size
        xp, parts = namespace(self.values), _slices(self.shape[0], 16 * self.shape[1])
        found = [kernel.diagonal(cast(self.values[some, :], widest_float(self.values))) for some in parts]
        return sum(float(xp.sum(part)) for part in found), max(float(xp.max(part)) for part in found)

    def mean_size(self, kernel: Any) -> float:
        known = kernel.translation_invariant
        return super().mean_size(kernel) if known else self.sizes(kernel)[0] / self.shape[0]

    def largest_size(self, kernel: Any) -> float:
        return self.sizes(kernel)[1]

    def mean_square(self) -> float:
        """Of all entries."""
        xp, X = namespace(self.values), self.values
        return float(self._sums(lambda part: xp.sum(cast(part, widest_float(X)) ** 2))) / (
            self.shape[0] * self.shape[1]
        )

    def decision(self, kernel: Any, vectors: Any, coef: Array, bias: Array) -> Array:
        """``k(X, vectors) @ coef.T + bias``; the values come here."""
        return to_numpy(device_decision(kernel, self.values, vectors, coef, bias)).astype(np.float64, copy=False)

    def looked(self, labels: Any, dtype: Any, keep: float) -> DeviceFeatures:
        """Rows for vectors that will be named, again and again."""
        return DeviceFeatures(self, labels, dtype, keep)

    def feature_source(self, kernel: Any, labels: Any, Z: Any, T: Array, dtype: Any, threads: int, keep: float) -> Any:
        if np.dtype(dtype) == np.float64 and not has_float64(self.values):
            return super().feature_source(kernel, labels, Z, T, dtype, threads, keep)
        return DeviceFeatures(self, labels, dtype, keep).look(kernel, Z, T)


def check_finite(X: Any, name: str) -> None:
    """Raise ValueError for rows on a device with values that are not finite."""
    xp = namespace(X)
    if not bool(xp.all(xp.isfinite(X))):
        bad = np.flatnonzero(~to_numpy(xp.all(xp.isfinite(X), axis=0)))
        raise ValueError(f"{name} contains NaN or infinite values, in columns {bad[:5].tolist()}")


def _device_row_keys(X: Any) -> Array:
    """Of rows that are there. Numbers can be read as integers in torch and CuPy; others come here."""
    xp = namespace(X)
    if not (hasattr(X, "view") and has_float64(X)):
        return row_keys(to_numpy(X))
    bits = (cast(X, xp.float64) + 0.0).view(xp.int64)
    constants = asarray_like(X, column_constants(X.shape[1]).view(np.int64))
    return to_numpy(_mixed(xp.sum(_mixed(bits) * constants, axis=1))).view(np.uint64)


def _mixed(bits: Any) -> Any:
    """See core/rows/keys.hpp; integers wrap, and a shift takes the sign along."""
    bits = bits ^ ((bits >> 29) & ((1 << 35) - 1))
    bits = bits * (0xBF58476D1CE4E5B9 - (1 << 64))
    return bits ^ ((bits >> 32) & ((1 << 32) - 1))


# --- their home ----------------------------------------------------------------------------------------------------


def _all_of(which: Array, outputs: int) -> bool:
    return len(which) == outputs and bool((np.diff(which) == 1).all())


@dataclass(frozen=True)
class DeviceClassLabels:
    """`ClassLabels` on a device."""

    codes: Any
    counts: Any  # None: each row counts once
    side: Any
    cost: Any

    def of(self, rows: slice, which: Array) -> tuple[Any, Any]:
        xp, side, cost = namespace(self.side), self.side, self.cost
        if not _all_of(which, side.shape[1]):
            columns = asarray_like(side, np.asarray(which, dtype=np.int64))
            side, cost = xp.take(side, columns, axis=1), xp.take(cost, columns, axis=1)
        codes = cast(self.codes[rows], xp.int64)
        Y, C = xp.take(side, codes, axis=0), xp.take(cost, codes, axis=0)
        return Y, C if self.counts is None else C * self.counts[rows][:, None]


@dataclass(frozen=True)
class DeviceTargetLabels:
    """`TargetLabels` on a device."""

    targets: Any
    counts: Any  # None: each row counts once
    cost: Any

    def of(self, rows: slice, which: Array) -> tuple[Any, Any]:
        xp, Y, cost = namespace(self.cost), self.targets[rows, :], self.cost
        if not _all_of(which, self.targets.shape[1]):
            columns = asarray_like(cost, np.asarray(which, dtype=np.int64))
            Y, cost = xp.take(Y, columns, axis=1), xp.take(cost, columns, axis=0)
        C = xp.ones_like(Y) * cost
        return Y, C if self.counts is None else C * self.counts[rows][:, None]


def _counts_there(labels: Any, X: Any) -> tuple[Any, float]:
    """What rows count beside X, or None and what each of them counts."""
    same = labels.counts.strides == (0,)
    factor = float(labels.counts[0]) if same and labels.size else 1.0
    return None if same else asarray_like(X, labels.counts, widest_float(X)), factor


@singledispatch
def labels_on_device(labels: Any, X: Any) -> Any:
    """Labels beside X."""
    raise TypeError(f"{type(labels).__name__} has no form on a device")


@labels_on_device.register(ClassLabels)
def _classes(labels: ClassLabels, X: Any) -> DeviceClassLabels:
    counts, factor = _counts_there(labels, X)
    tables = (asarray_like(X, table, widest_float(X)) for table in (labels.side, factor * labels.cost))
    return DeviceClassLabels(asarray_like(X, labels.codes), counts, *tables)


@labels_on_device.register(TargetLabels)
def _targets(labels: TargetLabels, X: Any) -> DeviceTargetLabels:
    counts, factor = _counts_there(labels, X)
    return DeviceTargetLabels(
        asarray_like(X, labels.targets, widest_float(X)), counts, asarray_like(X, factor * labels.cost, widest_float(X))
    )


@dataclass(frozen=True)
class DeviceBlock(ArrayBlock):
    """Rows whose features are on a device."""

    home: Any = None

    def labels(self, which: Array) -> tuple[Any, Any]:
        """Those of all outputs stay for the next pass, as long as features take much more."""
        known, outputs = self.home.sides, self.home.labels.outputs
        if not _all_of(which, outputs) or 4 * outputs > self.P.shape[1]:
            return self.own.of(self.rows, which)
        if self.rows.start not in known:
            known[self.rows.start] = self.own.of(self.rows, which)
        return known[self.rows.start]

    def slopes(self) -> tuple[Any, Any]:
        """The rows as the kernel sees them, and its derivatives (see `Pull`)."""
        kernel = self.home.seen[0]
        X = cast(self.home.X.values[self.rows, :], self.P.dtype)
        return kernel.apply(X), kernel.slopes(*self.home.about(X))

    def sizes(self) -> Any:
        X = self.home.X.values[self.rows, :]
        return self.home.seen[0].diagonal(cast(X, widest_float(X)))


class DeviceFeatures:
    """Rows on a device with features ``k(X, Z) T``: kept where they take at most ``keep`` bytes, else computed in each
    pass."""

    is_remote: ClassVar[bool] = True

    def __init__(self, X: DeviceRows, labels: Any, dtype: Any, keep: float):
        self.X, self.labels, self.keep, self.dtype = X, labels, keep, np.dtype(dtype)
        self.placed = labels_on_device(labels, X.values)
        self.kind = getattr(namespace(X.values), self.dtype.name)
        self.seen: tuple[Any, Any, Array] | None = None
        self.P: dict[int, Any] = {}  # features, by the first row of a block
        self.sides: dict[int, tuple[Any, Any]] = {}  # and costs, by the first row of a block

    def use(self, threads: int) -> None:
        """There are no threads of ours there."""

    def look_whitened(self, *_: Any) -> None:
        """The small matrices of vectors are here."""
        return

    def look(self, kernel: Any, Z: Any, T: Array) -> DeviceFeatures:
        """Through other vectors, or another kernel."""
        values, n, m = self.X.values, self.X.shape[0], T.shape[1]
        Z = np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z, dtype=np.float64)
        # Distances lose no digits to a common offset if it is taken out of rows and vectors.
        self.offset = Z.mean(axis=0) if kernel.translation_invariant and len(Z) else np.zeros(Z.shape[1])
        self.shift = asarray_like(values, self.offset, self.kind)
        self.Z, self.T = asarray_like(values, Z - self.offset, self.kind), asarray_like(values, T, self.kind)
        if self.seen is None or self.seen[2].shape[1] != m:
            self.sides = {}  # blocks are others
        self.seen = kernel, Z, T
        self.P = {}
        if n * m * self.dtype.itemsize <= self.keep:
            for rows in self._parts():
                self.P[rows.start] = self._features(values[rows, :])
        return self

    def about(self, X: Any) -> tuple[Any, Any]:
        """Rows and vectors without the offset."""
        return X - self.shift, self.Z

    def _features(self, X: Any) -> Any:
        assert self.seen is not None
        return self.seen[0](*self.about(cast(X, self.kind))) @ self.T

    @property
    def shape(self) -> tuple[int, int]:
        assert self.seen is not None
        return self.X.shape[0], self.seen[2].shape[1]

    def _parts(self) -> list[slice]:
        n, m = self.shape
        return _slices(n, max(self.dtype.itemsize * max(m, self.X.shape[1]), label_bytes(self.labels)))

    def blocks(self) -> Iterator[Block]:
        for rows in self._parts():
            P = self.P[rows.start] if self.P else self._features(self.X.values[rows, :])
            yield DeviceBlock(P, self.placed, rows, home=self)

    def total(self, work: Pass, *small: Any) -> tuple[Array, ...]:
        there = [self._sent(part) for part in small]
        return tuple(to_numpy(part) for part in total(self.blocks(), work, *there))

    def map_blocks(self, work: Callable[..., Any], *small: Any) -> Iterator[Any]:
        there = [self._sent(part) for part in small]
        return (work(block, *there) for block in self.blocks())

    def _sent(self, part: Any) -> Any:
        """Small arrays of numbers go there; row and output numbers are needed here."""
        values = self.X.values
        if isinstance(part, np.floating):  # which other arrays do not know
            return float(part)
        floats = isinstance(part, np.ndarray) and part.dtype.kind == "f"
        return asarray_like(values, part, widest_float(values)) if floats else part

    def features(self, rows: Array) -> Array:
        return to_numpy(self._features(self.X._some(rows))).astype(np.float64, copy=False)

    def subsampled(self, step: int) -> Any:
        """Brought here, and not too many: a rough solution is all that they are for."""
        assert self.seen is not None
        step = max(step, -(-self.X.shape[0] * self.X.shape[1] * self.X.dtype.itemsize // MAX_FETCHED_BYTES))
        some = slice(None, None, step)
        return feature_source(self.seen[0], self.X[some], self.labels.take(some, step), *self.seen[1:], self.dtype)

    def newton(self, pieces: Pieces, *_: Any) -> None:
        """By passes."""
        return


def device_decision(kernel: Any, X: Any, vectors: Any, coef: Array, bias: Array) -> Any:
    """``k(X, vectors) @ coef.T + bias`` for rows on a device, where they are."""
    vectors = np.asarray(vectors.toarray() if hasattr(vectors, "toarray") else vectors, dtype=np.float64)
    xp = namespace(X)
    offset = vectors.mean(axis=0) if kernel.translation_invariant and len(vectors) else np.zeros(vectors.shape[1])
    Z, B, b, shift = (asarray_like(X, part, X.dtype) for part in (vectors - offset, coef.T, bias, offset))
    parts = [
        kernel(X[some, :] - shift, Z) @ B + b
        for some in _slices(X.shape[0], 8 * max(vectors.shape[0], vectors.shape[1]))
    ]
    return xp.concat(parts, axis=0) if parts else xp.zeros((0, len(bias)), dtype=X.dtype, device=device(X))
