"""The data set of a fit: labelled rows, and the binary problems or regression targets over them.

Equal rows of one class (with the same targets) are merged into one row with the sum of their weights. This is exact:
weight k means k copies in every method here. Random draws go through rows in the order of hashes of their contents, so
a model depends neither on the order of the rows nor on whether copies are repeated or weighted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from ..linalg.arrays import Array, is_remote, to_memory
from .classes import class_sums
from .counts import count_bounds, exact_total
from .duplicates import Duplicates, row_keys, row_slices, rows_by_key
from .sampling import PriorityCandidates, highest_priorities
from .targets import TargetScaler

KEYS_PER_ROW = 8  # temporary numbers per row while sampling


@dataclass(frozen=True)
class Output:
    """One output of a model: a binary problem (one class against one other or all others), or a regression target."""

    positive: int
    negative: tuple[int, ...]

    @property
    def members(self) -> list[int]:
        """The sorted classes of the binary problem."""
        return sorted((self.positive, *self.negative))


def outputs(n_classes: int, scheme: str) -> list[Output]:
    """The binary problems: one for two classes; for more, each pair of classes ("ovo", the first of a pair is positive)
    or each class against the others ("ovr")."""
    if n_classes == 2:
        return [Output(1, (0,))]
    if scheme == "ovo":
        return [Output(i, (j,)) for i, j in combinations(range(n_classes), 2)]
    return [Output(c, tuple(k for k in range(n_classes) if k != c)) for c in range(n_classes)]


def class_signs(n_classes: int, problems: list[Output]) -> Array:
    """The sign of each class in each problem (classes x problems): +1, -1, or 0 where the class takes no part."""
    signs = np.zeros((n_classes, len(problems)))
    for o, output in enumerate(problems):
        signs[list(output.negative), o] = -1
        signs[output.positive, o] = 1
    return signs


@dataclass(frozen=True)
class ProblemGroup:
    """Binary problems over the same rows: labels (+-1, or 0 where a row takes no part) and costs, rows x problems."""

    rows: Array | None  # None: all of them
    Y: Array
    C: Array


@dataclass(frozen=True)
class RowRange:
    """The row numbers 0, 1, 2 ... of a data set that keeps all rows, like an array that takes no memory."""

    size: int

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, rows: Any) -> Array:
        return np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.arange(self.size, dtype=dtype)


@dataclass(frozen=True)
class Dataset:
    """The distinct rows of each class with their weights, and the kernel of the fit.

    Rows of weight 0 are left out. With a precomputed kernel, X holds row numbers. A few ``duplicates`` among very many
    rows stay in X, as removing them would copy all others; random draws skip them.
    """

    X: Any
    codes: Array  # class number of each row, in the smallest integer type
    counts: Any  # sample weights: how often a row counts; a broadcast scalar where all are 1
    class_weights: Array
    indices: Any  # row numbers in the user's data; the first of equal rows
    keys: Array  # 64-bit hashes of the rows' contents: the order of all draws
    classes: Array  # labels
    kernel: Any
    n_samples: int  # rows of the user's data
    threads: int = 1
    duplicates: Duplicates | None = None
    targets: Any = None  # rows x outputs, for regression (one class)
    target_scaler: TargetScaler | None = None  # set once the targets are scaled
    single_target: bool = True  # whether y was a vector

    @property
    def size(self) -> int:
        return len(self.codes)

    @property
    def n_distinct(self) -> int:
        """The number of rows without duplicates."""
        return self.size - (0 if self.duplicates is None else len(self.duplicates.rows))

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @cached_property
    def merge_keys(self) -> Array:
        """Equal rows are merged if these agree: class numbers, or hashes of the targets."""
        return self.codes if self.targets is None else row_keys(self.targets)

    def outputs(self, scheme: str) -> list[Output]:
        """The binary problems of a scheme (`outputs`), or one output for each target."""
        if self.targets is None:
            return outputs(self.n_classes, scheme)
        return [Output(o, ()) for o in range(self.targets.shape[1])]

    def with_scaled_targets(self, alike: bool) -> Dataset:
        """The data set with targets scaled by a `TargetScaler`."""
        scaler = TargetScaler.fit(self.targets, self.counts, alike)
        return replace(self, targets=scaler.transform(self.targets), target_scaler=scaler)

    @cached_property
    def total(self) -> float:
        """The sum of the counts, which does not depend on the order of the rows."""
        return exact_total(self.counts)

    @property
    def weights(self) -> Array:
        """Sample weight times class weight."""
        if (self.class_weights == 1).all():
            return self.counts
        weights = np.empty(self.size)
        for rows in row_slices(self.size):
            np.multiply(self.counts[rows], self.class_weights[self.codes[rows]], out=weights[rows])
        return weights

    def take(self, rows: Array) -> Dataset:
        """The rows of these numbers or this mask; duplicates are merged into the rows that they repeat."""
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        rows = rows if self.duplicates is None else self.duplicates.without(rows)
        X = self.X.take(rows) if is_remote(self.X) else self.X[rows]
        X = np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X
        return replace(
            self,
            X=X,
            codes=self.codes[rows],
            counts=self._merged_counts(rows),
            indices=self.indices[rows],
            keys=self.keys[rows],
            duplicates=None,
            targets=None if self.targets is None else self.targets[rows],
        )

    def in_memory(self) -> Dataset:
        """The data set with its rows in memory."""
        return replace(self, X=to_memory(self.X))

    def _merged_counts(self, rows: Array) -> Array:
        """Counts of rows without duplicates, each including those of its duplicates."""
        equal = self.counts.strides == (0,)
        counts = np.broadcast_to(self.counts[:1], len(rows)) if equal and len(rows) else self.counts[rows]
        return counts if self.duplicates is None else self.duplicates.add_counts(rows, counts)

    def _ordered(self) -> Iterator[Array]:
        """Row numbers in canonical order without duplicates, a part at a time."""
        for rows in rows_by_key(self.keys, self.merge_keys, self.threads):
            yield rows if self.duplicates is None else self.duplicates.without(rows)

    def canonical(self) -> Array:
        """Row numbers without duplicates, sorted by the rows' contents: the same order however the rows are given."""
        order, start = np.empty(self.n_distinct, dtype=np.intp), 0
        for part in self._ordered():
            order[start : start + len(part)] = part
            start += len(part)
        return order

    def ranks(self) -> Array:
        """The position of each row in canonical order; duplicates come last."""
        ranks = np.full(self.size, self.size)
        order = self.canonical()
        ranks[order] = np.arange(len(order))
        return ranks

    def sorted(self) -> Dataset:
        """The rows in canonical order: for methods whose path depends on the last bits of sums."""
        return self.take(self.canonical())

    def sample(self, size: int, rng: np.random.Generator) -> Dataset:
        """A random sample of at most ``size`` rows in canonical order, stratified, with at least one row of each class.

        Rows are drawn by weight and reweighted so that sums over the sample are unbiased estimates of sums over all
        rows (priority sampling of Duffield, Lund and Thorup). Rows of equal weight keep equal weights.
        """
        if self.n_distinct <= size:
            return self.sorted()
        shares = self._class_shares(size)
        candidates = PriorityCandidates(shares)
        for part in self._ordered():
            for some in row_slices(len(part), KEYS_PER_ROW):
                rows, uniform = part[some], 1 - rng.random(some.stop - some.start)
                candidates.add(rows, self.codes[rows], *self._count_bounds(rows), uniform)
        rows, uniform = candidates.result()  # in canonical order
        drawn = self.take(rows)
        chosen, least = highest_priorities(drawn.codes, drawn.counts / uniform, shares)
        drawn = drawn.take(chosen)
        weights = np.maximum(least, drawn.counts)
        return replace(drawn, counts=weights * (self.total / weights.sum()))

    def _class_shares(self, size: int) -> Array:
        """The number of rows of each class in a sample of ``size`` rows."""
        totals = class_sums(self.codes, self.n_classes)
        if self.duplicates is not None:
            totals -= class_sums(self.codes[self.duplicates.rows], self.n_classes)
        shares = np.maximum(np.minimum(totals, 1), (totals * (size / self.n_distinct)).astype(int))
        while shares.sum() > max(size, np.count_nonzero(totals)):  # small classes: rounded up to 1
            shares[shares.argmax()] -= 1
        return shares

    def _count_bounds(self, rows: Array) -> tuple[Array, Array]:
        """Lower and upper bounds of the counts of rows, each including those of its duplicates."""
        lower, upper = count_bounds(self.counts, rows)
        if self.duplicates is None:
            return lower, upper
        return self.duplicates.add_counts(rows, lower), self.duplicates.add_counts(rows, upper)

    def drawn_by_weight(self, rng: np.random.Generator) -> Array:
        """All row numbers in a random order by weight: a row of twice the weight is twice as likely to come first."""
        order = self.canonical()
        arrival = rng.exponential(size=len(order))
        arrival /= self._merged_counts(order)
        return order[np.argsort(arrival, kind="stable")]

    def labels(self, problems: list[Output]) -> Array:
        """Labels (rows x problems): +1, -1, or 0 where a row takes no part; in regression the targets."""
        if self.targets is not None:
            return self.targets
        signs, labels = class_signs(self.n_classes, problems), np.empty((self.size, len(problems)))
        for rows in row_slices(self.size, len(problems)):
            labels[rows] = signs[self.codes[rows]]
        return labels

    def binary(self, output: Output) -> tuple[Array, Array, Array]:
        """The rows of one binary problem: their numbers, labels (+-1) and weights."""
        rows = np.flatnonzero(np.isin(self.codes, output.members))
        codes = self.codes[rows]
        return rows, np.where(codes == output.positive, 1.0, -1.0), self.counts[rows] * self.class_weights[codes]

    def name(self, output: Output) -> str:
        """The name of an output in progress lines."""
        if len(output.negative) > 1:
            return f"class {self.classes[output.positive]!s}"
        first, second = (self.classes[c] for c in output.members)
        return f"classes {first!s} and {second!s}"
