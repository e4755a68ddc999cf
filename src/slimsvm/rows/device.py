"""Rows on a device such as a GPU, where passes run through the array API and return sums.

`DeviceRows` is the X of a data set. The host holds a key and a class number for each row, and copies of the few rows
that methods take one by one. Features, Newton's method, vector learning and certificates run on the device.
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

MAX_COPIED_ENTRIES = 1 << 19  # rows with at most this many entries in all are copied to the host
# Bytes of features that a pass computes at a time: half of all features, within limits that keep the device busy.
MIN_BLOCK_BYTES, MAX_BLOCK_BYTES = 1 << 27, 1 << 31


def _slices(n: int, row_bytes: int, most: int | None = None) -> list[slice]:
    most = int(np.clip(n * row_bytes // 2, MIN_BLOCK_BYTES, MAX_BLOCK_BYTES)) if most is None else most
    size = max(1, most // max(1, row_bytes))
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


class DeviceRows(RemoteRows):
    """Rows in an array of another library; their class numbers or targets and weights are in host memory."""

    def __init__(self, values: Any, codes: Array, counts: Array, targets: Array | None = None):
        self.values, self.codes, self.counts, self.targets = values, codes, counts, targets
        self.classes: Any = None  # set for the rows of a fit, as their keys are
        self.keys: Any = None
        self.shape = values.shape[0], values.shape[1]
        self.dtype = numpy_dtype(values)
        rows = _slices(self.shape[0], self.shape[1] * self.dtype.itemsize, MAX_FETCHED_BYTES)
        self.lengths = np.array([some.stop - some.start for some in rows])

    def row_keys(self) -> Array:
        """Hashes of the rows' contents, equal to those of `duplicates.row_keys`."""
        parts = [_device_row_keys(self.values[some, :]) for some in _slices(self.shape[0], 32 * self.shape[1])]
        return np.concatenate(parts) if len(parts) != 1 else parts[0]

    def map_blocks(self, work: Callable[..., Any], *args: Any, each: list[Any] | None = None) -> Iterator[Any]:
        """``work`` on each block after copying it to the host: for functions that need numpy arrays."""
        for k, (first, length) in enumerate(zip(self.starts, self.lengths, strict=True)):
            rows = slice(int(first), int(first + length))
            targets = None if self.targets is None else self.targets[rows]
            row_block = RowBlock(
                to_numpy(self.values[rows, :]), self.codes[rows], self.counts[rows], int(first), targets=targets
            )
            yield work(row_block, *args) if each is None else work(row_block, *args, each[k])

    def fetch(self, rows: Array) -> tuple[Any, Array]:
        return to_numpy(self._some(rows)), self.counts[rows]

    def with_totals(self, labels: Any) -> Any:
        return labels

    def take(self, rows: Array) -> Any:
        """Some of the rows: on the device, or in host memory if they are so few that the core is faster."""
        if len(rows) * self.shape[1] <= MAX_COPIED_ENTRIES:
            return self[rows]
        targets = None if self.targets is None else self.targets[rows]
        return DeviceRows(self._some(rows), self.codes[rows], self.counts[rows], targets)

    def _some(self, rows: Array) -> Any:
        return namespace(self.values).take(self.values, asarray_like(self.values, rows.astype(np.int64)), axis=0)

    def centred(self, kernel: Any, dtype: Any) -> tuple[Any, DeviceRows]:
        """The mean and the rows minus the mean, in another dtype; without centring (mean 0) if the kernel is not
        translation-invariant."""
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
        """The weighted number of entries, their mean, and the sum of squared deviations from it."""
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
        """The mean square of all entries."""
        xp, X = namespace(self.values), self.values
        return float(self._sums(lambda part: xp.sum(cast(part, widest_float(X)) ** 2))) / (
            self.shape[0] * self.shape[1]
        )

    def decision(self, kernel: Any, vectors: Any, coef: Array, bias: Array) -> Array:
        """``k(X, vectors) @ coef.T + bias``, copied to host memory."""
        return to_numpy(device_decision(kernel, self.values, vectors, coef, bias)).astype(np.float64, copy=False)

    def device_features(self, labels: Any, dtype: Any, cache_bytes: float) -> DeviceFeatures:
        """Features of these rows whose vectors can be set repeatedly, by `DeviceFeatures.set_features`."""
        return DeviceFeatures(self, labels, dtype, cache_bytes)

    def feature_source(
        self, kernel: Any, labels: Any, Z: Any, T: Array, dtype: Any, threads: int, cache_bytes: float
    ) -> Any:
        if np.dtype(dtype) == np.float64 and not has_float64(self.values):
            return super().feature_source(kernel, labels, Z, T, dtype, threads, cache_bytes)
        return DeviceFeatures(self, labels, dtype, cache_bytes).set_features(kernel, Z, T)


def check_finite(X: Any, name: str) -> None:
    """Raise ValueError if rows on a device have NaN or infinite values."""
    xp = namespace(X)
    if not bool(xp.all(xp.isfinite(X))):
        bad = np.flatnonzero(~to_numpy(xp.all(xp.isfinite(X), axis=0)))
        raise ValueError(f"{name} contains NaN or infinite values, in columns {bad[:5].tolist()}")


def _device_row_keys(X: Any) -> Array:
    """`row_keys` computed on the device if floats can be viewed as integers (torch, CuPy), else on the host."""
    xp = namespace(X)
    if not (hasattr(X, "view") and has_float64(X)):
        return row_keys(to_numpy(X))
    bits = (cast(X, xp.float64) + 0.0).view(xp.int64)
    constants = asarray_like(X, column_constants(X.shape[1]).view(np.int64))
    return to_numpy(_mixed(xp.sum(_mixed(bits) * constants, axis=1))).view(np.uint64)


def _mixed(bits: Any) -> Any:
    """The hash step of core/rows/keys.hpp in signed integers, which wrap and whose right shift keeps the sign."""
    bits = bits ^ ((bits >> 29) & ((1 << 35) - 1))
    bits = bits * (0xBF58476D1CE4E5B9 - (1 << 64))
    return bits ^ ((bits >> 32) & ((1 << 32) - 1))


# --- their features -------------------------------------------------------------------------------------------------


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
    """The counts on the device of X and 1.0; if all counts are equal, None and that count."""
    same = labels.counts.strides == (0,)
    factor = float(labels.counts[0]) if same and labels.size else 1.0
    return None if same else asarray_like(X, labels.counts, widest_float(X)), factor


@singledispatch
def labels_on_device(labels: Any, X: Any) -> Any:
    """Labels on the device of X."""
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

    source: Any = None

    def labels(self, which: Array) -> tuple[Any, Any]:
        """Labels and costs of some outputs; those of all outputs are cached where features take much more memory."""
        known, outputs = self.source.sides, self.source.labels.outputs
        if not _all_of(which, outputs) or 4 * outputs > self.P.shape[1]:
            return self.own.of(self.rows, which)
        if self.rows.start not in known:
            known[self.rows.start] = self.own.of(self.rows, which)
        return known[self.rows.start]

    def slopes(self) -> tuple[Any, Any]:
        """The rows transformed by the kernel's scales, and the kernel's derivatives, for the pass `Pull`."""
        kernel = self.source.current_map[0]
        X = cast(self.source.X.values[self.rows, :], self.P.dtype)
        return kernel.apply(X), kernel.slopes(*self.source.about(X))

    def sizes(self) -> Any:
        X = self.source.X.values[self.rows, :]
        return self.source.current_map[0].diagonal(cast(X, widest_float(X)))


class DeviceFeatures:
    """Features ``k(X, Z) T`` of rows on a device: cached if they take at most ``cache_bytes``, else computed in each
    pass."""

    is_remote: ClassVar[bool] = True

    def __init__(self, X: DeviceRows, labels: Any, dtype: Any, cache_bytes: float):
        self.X, self.labels, self.cache_bytes, self.dtype = X, labels, cache_bytes, np.dtype(dtype)
        self.placed = labels_on_device(labels, X.values)
        self.kind = getattr(namespace(X.values), self.dtype.name)
        self.current_map: tuple[Any, Any, Array] | None = None
        self.P: dict[int, Any] = {}  # features, by the first row of a block
        self.sides: dict[int, tuple[Any, Any]] = {}  # labels and costs, by the first row of a block

    def use_threads(self, threads: int) -> None:
        """No-op: the device schedules its own threads."""

    def set_whitened_features(self, *_: Any) -> None:
        """Always None: the kernel matrix of the vectors is whitened on the host."""
        return

    def set_features(self, kernel: Any, Z: Any, T: Array) -> DeviceFeatures:
        """Set the kernel, the vectors Z and the transform T."""
        values, n, m = self.X.values, self.X.shape[0], T.shape[1]
        Z = np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z, dtype=np.float64)
        # Subtract a common offset from rows and vectors: distances would lose digits to it.
        self.offset = Z.mean(axis=0) if kernel.translation_invariant and len(Z) else np.zeros(Z.shape[1])
        self.shift = asarray_like(values, self.offset, self.kind)
        self.Z, self.T = asarray_like(values, Z - self.offset, self.kind), asarray_like(values, T, self.kind)
        if self.current_map is None or self.current_map[2].shape[1] != m:
            self.sides = {}  # the blocks have changed
        self.current_map = kernel, Z, T
        self.P = {}
        if n * m * self.dtype.itemsize <= self.cache_bytes:
            for rows in self._parts():
                self.P[rows.start] = self._features(values[rows, :])
        return self

    def about(self, X: Any) -> tuple[Any, Any]:
        """Rows and vectors minus the common offset."""
        return X - self.shift, self.Z

    def _features(self, X: Any) -> Any:
        assert self.current_map is not None
        return self.current_map[0](*self.about(cast(X, self.kind))) @ self.T

    @property
    def shape(self) -> tuple[int, int]:
        assert self.current_map is not None
        return self.X.shape[0], self.current_map[2].shape[1]

    def _parts(self) -> list[slice]:
        n, m = self.shape
        return _slices(n, max(self.dtype.itemsize * max(m, self.X.shape[1]), label_bytes(self.labels)))

    def blocks(self) -> Iterator[Block]:
        for rows in self._parts():
            P = self.P[rows.start] if self.P else self._features(self.X.values[rows, :])
            yield DeviceBlock(P, self.placed, rows, source=self)

    def total(self, work: Pass, *args: Any) -> tuple[Array, ...]:
        sent = [self._send(part) for part in args]
        return tuple(to_numpy(part) for part in total(self.blocks(), work, *sent))

    def map_blocks(self, work: Callable[..., Any], *args: Any) -> Iterator[Any]:
        sent = [self._send(part) for part in args]
        return (work(block, *sent) for block in self.blocks())

    def _send(self, part: Any) -> Any:
        """Copy a float array to the device; integer arrays (row and output numbers) stay on the host."""
        values = self.X.values
        if isinstance(part, np.floating):  # other libraries do not accept numpy scalars
            return float(part)
        floats = isinstance(part, np.ndarray) and part.dtype.kind == "f"
        return asarray_like(values, part, widest_float(values)) if floats else part

    def features(self, rows: Array) -> Array:
        return to_numpy(self._features(self.X._some(rows))).astype(np.float64, copy=False)

    def subsampled(self, step: int) -> Any:
        """About every ``step``-th row (at most), in host memory, for a rough solution."""
        assert self.current_map is not None
        step = max(step, -(-self.X.shape[0] * self.X.shape[1] * self.X.dtype.itemsize // MAX_FETCHED_BYTES))
        some = slice(None, None, step)
        return feature_source(
            self.current_map[0], self.X[some], self.labels.take(some, step), *self.current_map[1:], self.dtype
        )

    def newton(self, pieces: Pieces, *_: Any) -> None:
        """None: no Newton's method of its own."""
        return


def device_decision(kernel: Any, X: Any, vectors: Any, coef: Array, bias: Array) -> Any:
    """``k(X, vectors) @ coef.T + bias`` on the device of X."""
    vectors = np.asarray(vectors.toarray() if hasattr(vectors, "toarray") else vectors, dtype=np.float64)
    xp = namespace(X)
    offset = vectors.mean(axis=0) if kernel.translation_invariant and len(vectors) else np.zeros(vectors.shape[1])
    Z, B, b, shift = (asarray_like(X, part, X.dtype) for part in (vectors - offset, coef.T, bias, offset))
    parts = [
        kernel(X[some, :] - shift, Z) @ B + b
        for some in _slices(X.shape[0], 8 * max(vectors.shape[0], vectors.shape[1]))
    ]
    return xp.concat(parts, axis=0) if parts else xp.zeros((0, len(bias)), dtype=X.dtype, device=device(X))
