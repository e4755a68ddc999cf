"""The data set of a fit: labelled rows, and the binary problems or regression targets over them.

Equal rows of one class (with the same targets) are one row that carries their weights: exact for every method here,
where weight k means k copies. Draws are made in the order of keys that depend on a row's contents alone, so neither the
order of the rows nor the way in which copies are written changes a model.
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

KEYS_PER_ROW = 8  # numbers that a draw makes for each row that it looks at


@dataclass(frozen=True)
class Output:
    """One binary problem: a class against another one, or against all others; or a target, by its number."""

    positive: int
    negative: tuple[int, ...]

    @property
    def members(self) -> list[int]:
        """The sorted classes that take part."""
        return sorted((self.positive, *self.negative))


def outputs(n_classes: int, scheme: str) -> list[Output]:
    """Two classes: one problem. More: each pair of classes ("ovo"; the first of a pair is positive), or each class
    against the others ("ovr")."""
    if n_classes == 2:
        return [Output(1, (0,))]
    if scheme == "ovo":
        return [Output(i, (j,)) for i, j in combinations(range(n_classes), 2)]
    return [Output(c, tuple(k for k in range(n_classes) if k != c)) for c in range(n_classes)]


def class_signs(n_classes: int, problems: list[Output]) -> Array:
    """Classes x problems: +1 and -1, or 0 where a class takes no part."""
    signs = np.zeros((n_classes, len(problems)))
    for o, output in enumerate(problems):
        signs[list(output.negative), o] = -1
        signs[output.positive, o] = 1
    return signs


@dataclass(frozen=True)
class ProblemGroup:
    """Labels (+-1, or 0 where a row takes no part) and costs of binary problems over the same rows: rows x problems."""

    rows: Array | None  # None: all of them
    Y: Array
    C: Array


@dataclass(frozen=True)
class RowRange:
    """The row numbers 0, 1, 2 ... of a data set that leaves no row out; made only for rows that are asked for."""

    size: int

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, rows: Any) -> Array:
        return np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.arange(self.size, dtype=dtype)


@dataclass(frozen=True)
class Dataset:
    """Rows to learn from, each distinct row of a class once, with the kernel of the fit.

    Rows of weight 0 are left out. The rows of a precomputed kernel are row numbers. Where rows are very many and few of
    them are ``duplicates``, those stay in X: removing them would copy all others. Draws see each row once all the same.
    """

    X: Any
    codes: Array  # class number of each row, in the smallest integer type
    counts: Any  # sample weights: how often a row counts; takes no memory where all are 1
    class_weights: Array
    indices: Any  # row numbers in the user's data, of duplicates the first
    keys: Array  # 64-bit hashes of the rows' contents: the order of all draws
    classes: Array  # labels
    kernel: Any
    n_samples: int  # rows of the user's data
    threads: int = 1
    duplicates: Duplicates | None = None
    targets: Any = None  # rows x outputs, where there is but one class
    target_scaler: TargetScaler | None = None  # once targets are scaled
    single_target: bool = True  # whether there is one target, given as a vector

    @property
    def size(self) -> int:
        return len(self.codes)

    @property
    def n_distinct(self) -> int:
        """Rows that are no duplicates."""
        return self.size - (0 if self.duplicates is None else len(self.duplicates.rows))

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @cached_property
    def merge_keys(self) -> Array:
        """What equal rows must share to be merged: class numbers, or hashes of the targets."""
        return self.codes if self.targets is None else row_keys(self.targets)

    def outputs(self, scheme: str) -> list[Output]:
        """The problems of a scheme (`outputs`), or one for each target."""
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
        """Some of the rows (numbers or a mask), without duplicates, which add to the counts of their originals."""
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
        """Counts of rows that are no duplicates, each with those of its duplicates."""
        equal = self.counts.strides == (0,)
        counts = np.broadcast_to(self.counts[:1], len(rows)) if equal and len(rows) else self.counts[rows]
        return counts if self.duplicates is None else self.duplicates.add_counts(rows, counts)

    def _ordered(self) -> Iterator[Array]:
        """Rows that are no duplicates in canonical order, some at a time."""
        for rows in rows_by_key(self.keys, self.merge_keys, self.threads):
            yield rows if self.duplicates is None else self.duplicates.without(rows)

    def canonical(self) -> Array:
        """Row numbers, without duplicates, in an order that does not depend on that of the rows."""
        order, start = np.empty(self.n_distinct, dtype=np.intp), 0
        for part in self._ordered():
            order[start : start + len(part)] = part
            start += len(part)
        return order

    def ranks(self) -> Array:
        """The place of each row in canonical order; duplicates come last."""
        ranks = np.full(self.size, self.size)
        order = self.canonical()
        ranks[order] = np.arange(len(order))
        return ranks

    def sorted(self) -> Dataset:
        """All rows in canonical order: for methods whose path depends on the last bits of sums."""
        return self.take(self.canonical())

    def sample(self, size: int, rng: np.random.Generator) -> Dataset:
        """At most ``size`` rows in canonical order, from each class in proportion and at least one of each.

        Rows are drawn by weight and then count so that every sum over rows is estimated without bias (Duffield, Lund
        and Thorup's priority sampling): rows of equal weight keep equal weights.
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
        """How many rows of each class a sample has."""
        totals = class_sums(self.codes, self.n_classes)
        if self.duplicates is not None:
            totals -= class_sums(self.codes[self.duplicates.rows], self.n_classes)
        shares = np.maximum(np.minimum(totals, 1), (totals * (size / self.n_distinct)).astype(int))
        while shares.sum() > max(size, np.count_nonzero(totals)):  # small classes got more than their proportion
            shares[shares.argmax()] -= 1
        return shares

    def _count_bounds(self, rows: Array) -> tuple[Array, Array]:
        """Bounds of the counts of rows that are no duplicates, each with those of its duplicates."""
        lower, upper = count_bounds(self.counts, rows)
        if self.duplicates is None:
            return lower, upper
        return self.duplicates.add_counts(rows, lower), self.duplicates.add_counts(rows, upper)

    def drawn_by_weight(self, rng: np.random.Generator) -> Array:
        """All row numbers in random order: a row of twice the weight comes first twice as likely."""
        order = self.canonical()
        arrival = rng.exponential(size=len(order))
        arrival /= self._merged_counts(order)
        return order[np.argsort(arrival, kind="stable")]

    def labels(self, problems: list[Output]) -> Array:
        """Rows x problems: +1 and -1, or 0 where a row takes no part; or targets."""
        if self.targets is not None:
            return self.targets
        signs, labels = class_signs(self.n_classes, problems), np.empty((self.size, len(problems)))
        for rows in row_slices(self.size, len(problems)):
            labels[rows] = signs[self.codes[rows]]
        return labels

    def binary(self, output: Output) -> tuple[Array, Array, Array]:
        """Row numbers of one problem, their labels (+-1) and weights."""
        rows = np.flatnonzero(np.isin(self.codes, output.members))
        codes = self.codes[rows]
        return rows, np.where(codes == output.positive, 1.0, -1.0), self.counts[rows] * self.class_weights[codes]

    def name(self, output: Output) -> str:
        """A problem in words, for the progress line."""
        if len(output.negative) > 1:
            return f"class {self.classes[output.positive]!s}"
        first, second = (self.classes[c] for c in output.members)
        return f"classes {first!s} and {second!s}"
