"""Labelled rows, and the binary problems over them: the one carrier of training data.

Labels are classes, or targets: numbers that a regression is to give. Equal rows of one class (with the same targets)
are one row that carries their weights: exact for every method here, where weight k means k copies. Draws go by a number
that depends on a row's contents alone, so neither the order of the rows nor the way in which copies are written changes
a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..linalg.arrays import Array, is_remote
from .counts import count_bounds, exact_sums, exact_total, sum_to_float
from .duplicates import find_duplicates, row_slices, rows_by_key
from .duplicates import row_keys as row_keys
from .duplicates import row_numbers as row_numbers
from .duplicates import same_rows as same_rows

TARGET_STEPS = 2.0**32  # steps of a target in each unit
TARGET_ROUNDING = 0.5 / TARGET_STEPS  # at most, of a target in its unit
TARGET_STEPS_PER_IQR = 2.0**16  # of targets that vectors are learned for
MAX_TARGET_STD = 1e150  # and 1/it the smallest: squares stay finite and nonzero
# Duplicates stay in place where removing them would copy much: at most one of so many rows, more than so many bytes.
ROWS_PER_KEPT_DUPLICATE = 16
MIN_BYTES_TO_KEEP_DUPLICATES = 1 << 26


@dataclass(frozen=True)
class Output:
    """One binary problem: a class against another one, or against all others; or a target, by its number."""

    positive: int
    negative: tuple[int, ...]

    @property
    def members(self) -> list[int]:
        """The classes that take part, in order."""
        return sorted((self.positive, *self.negative))


def outputs(n_classes: int, scheme: str) -> list[Output]:
    """Two classes: one problem. More: each pair of classes ("ovo"; the first of a pair is positive), or each class
    against the others ("ovr")."""
    if n_classes == 2:
        return [Output(1, (0,))]
    if scheme == "ovo":
        return [Output(i, (j,)) for i, j in combinations(range(n_classes), 2)]
    return [Output(c, tuple(k for k in range(n_classes) if k != c)) for c in range(n_classes)]


def class_signs(n_classes: int, wanted: list[Output]) -> Array:
    """Classes x problems: +1 and -1, or 0 where a class takes no part."""
    side = np.zeros((n_classes, len(wanted)))
    for o, output in enumerate(wanted):
        side[list(output.negative), o] = -1
        side[output.positive, o] = 1
    return side


@dataclass(frozen=True)
class ProblemGroup:
    """Labels (+-1, or 0 where a row takes no part) and costs of binary problems over the same rows: rows x problems."""

    rows: Array | None  # None: all of them
    Y: Array
    C: Array


@dataclass(frozen=True)
class TargetScaler:
    """What targets are measured in, an entry for each: the user's values are ``centre + size * target``."""

    centre: Array
    size: Array

    @classmethod
    def of(cls, values: Any, counts: Any, alike: bool) -> TargetScaler:
        """In which values (rows x outputs) have mean 0 and variance 1, or, if ``alike``, the same unit and a mean
        variance of 1. Sums are exact: they do not depend on the order of the rows."""
        mass = exact_total(counts)
        most = np.max([np.abs(values[rows]).max(axis=0) for rows in row_slices(len(values), values.shape[1])], axis=0)
        most = np.where(most > 0, most, 1.0)

        def mean(o: int, centre: float, power: int) -> float:
            each = ((values[rows, o] / most[o] - centre) ** power * counts[rows] for rows in row_slices(len(values)))
            return sum_to_float(sum(exact_sums(some)[0] for some in each)) / mass

        centre = np.array([mean(o, 0.0, 1) for o in range(len(most))])
        spread = np.array([mean(o, c, 2) for o, c in enumerate(centre.tolist())])
        same = np.sqrt(spread) <= 4 * np.finfo(float).eps  # but for rounding
        size = np.where(same, 0.0, np.sqrt(spread) * most)
        if alike:
            size = np.full(len(size), np.sqrt(np.mean((size / most.max()) ** 2)) * most.max())
        for beyond in size[(size > 0) & ((size > MAX_TARGET_STD) | (size < 1 / MAX_TARGET_STD))]:
            raise ValueError(
                f"targets have a standard deviation of {beyond:.3g}: squared errors are beyond the range of float64. "
                f"Fit y / {beyond:.0e}, and multiply predictions by it"
            )
        return cls(centre * most, np.where(size > 0, size, 1.0))

    def measured(self, values: Any) -> Array:
        """Values in these units. The last digits are left out: they are rounding, and vectors that are learned from
        targets which differ in them alone would end in different places."""
        return np.rint((values - self.centre) / self.size * TARGET_STEPS) / TARGET_STEPS


def rounded_targets(targets: Array) -> Array:
    """Targets rounded to 2^-16 of the interquartile range of their distinct values (to the power of 2 that is at most
    that, and at least 2^-32), so that shifting or scaling y does not change the learned vectors.

    Shifts and scales cost the targets their last digits, and learning amplifies such differences by many orders of
    magnitude. Outliers do not change an interquartile range.
    """
    coarse_targets = np.empty_like(targets)
    for o, column in enumerate(targets.T):
        low, high = np.quantile(np.unique(column), (0.25, 0.75))
        step = 1 / TARGET_STEPS
        if low != high:
            step = max(np.exp2(np.floor(np.log2(high - low))) / TARGET_STEPS_PER_IQR, step)
        coarse_targets[:, o] = np.rint(column / step) * step
    return coarse_targets


@dataclass(frozen=True)
class RowRange:
    """The row numbers 0, 1, 2 ... where no row is left out: made for the rows that are asked for."""

    size: int

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, rows: Any) -> Array:
        return np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.arange(self.size, dtype=dtype)


@dataclass(frozen=True)
class Duplicates:
    """Rows that repeat an earlier row of their class (``rows``), those that they repeat, and what these then count."""

    rows: Array  # in order
    firsts: Array  # in order, each once
    counts: Array  # of the firsts and all their copies

    def others(self, rows: Array) -> Array:
        """Those of the rows that are no copies."""
        return rows[_place(self.rows, rows) < 0]

    def joined(self, rows: Array, counts: Array) -> Array:
        """The counts of rows, each with those of its copies."""
        place = _place(self.firsts, rows)
        return np.where(place < 0, counts, self.counts[place])


@dataclass(frozen=True)
class Dataset:
    """Rows to learn from, each row of a class once, with the kernel as it was asked for.

    Rows that count nothing (weight 0) are left out. The rows of a precomputed kernel are row numbers. Where rows are
    very many and few of them are ``copies``, those stay: leaving them out would copy all others. Draws see each row
    once all the same.
    """

    X: Any
    codes: Array  # class number of each row, in few bytes
    counts: Any  # sample weights: how often a row counts; takes no memory where all are 1
    factors: Array  # of the classes: their weights
    numbers: Any  # of the rows in the user's data: the first of its copies
    keys: Array  # numbers made from a row's contents: the order of all draws
    classes: Array  # labels
    kernel: Any
    n_samples: int  # rows of the user's data
    threads: int = 1
    copies: Duplicates | None = None
    targets: Any = None  # rows x outputs, where there is but one class
    units: TargetScaler | None = None  # of the targets, once they are `measured`
    single_target: bool = True  # is there one target, given as a vector?

    @property
    def size(self) -> int:
        return len(self.codes)

    @property
    def n_distinct(self) -> int:
        """Rows less copies."""
        return self.size - (0 if self.copies is None else len(self.copies.rows))

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @cached_property
    def marks(self) -> Array:
        """What tells equal rows apart: numbers of classes, or made from the targets."""
        return self.codes if self.targets is None else row_keys(self.targets)

    def outputs(self, scheme: str) -> list[Output]:
        """The problems of a scheme (`outputs`), or one for each target."""
        if self.targets is None:
            return outputs(self.n_classes, scheme)
        return [Output(o, ()) for o in range(self.targets.shape[1])]

    def measured(self, alike: bool) -> Dataset:
        """With targets in units of their own, see `TargetScaler`."""
        units = TargetScaler.of(self.targets, self.counts, alike)
        return replace(self, targets=units.measured(self.targets), units=units)

    @cached_property
    def total(self) -> float:
        """The sum of the counts, which does not depend on the order of the rows."""
        return exact_total(self.counts)

    @property
    def weights(self) -> Array:
        """Sample weight times class weight."""
        if (self.factors == 1).all():
            return self.counts
        weights = np.empty(self.size)
        for rows in row_slices(self.size):
            np.multiply(self.counts[rows], self.factors[self.codes[rows]], out=weights[rows])
        return weights

    def take(self, rows: Array) -> Dataset:
        """Some of the rows (numbers or a mask); copies are left out, and those that they repeat count for them."""
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        rows = rows if self.copies is None else self.copies.others(rows)
        X = self.X.taken(rows) if is_remote(self.X) else self.X[rows]
        X = np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X
        mine = {name: getattr(self, name)[rows] for name in ("codes", "numbers", "keys")}
        mine |= {} if self.targets is None else {"targets": self.targets[rows]}
        return replace(self, X=X, counts=self._counts(rows), copies=None, **mine)

    def in_memory(self) -> Dataset:
        """With its rows here, if they are elsewhere."""
        return replace(self, X=self.X[:]) if is_remote(self.X) else self

    def _counts(self, rows: Array) -> Array:
        """Of rows that are no copies, each with its copies."""
        same = self.counts.strides == (0,)
        counts = np.broadcast_to(self.counts[:1], len(rows)) if same and len(rows) else self.counts[rows]
        return counts if self.copies is None else self.copies.joined(rows, counts)

    def _ordered(self) -> Iterator[Array]:
        """Rows that are no copies in canonical order, some at a time."""
        for rows in rows_by_key(self.keys, self.marks, self.threads):
            yield rows if self.copies is None else self.copies.others(rows)

    def canonical(self) -> Array:
        """The rows, without copies, in an order that does not depend on theirs."""
        return _filled(self.n_distinct, np.intp, self._ordered())

    def ranks(self) -> Array:
        """The place of each row in canonical order; copies are last."""
        ranks = np.full(self.size, self.size)
        order = self.canonical()
        ranks[order] = np.arange(len(order))
        return ranks

    def sorted(self) -> Dataset:
        """All rows in canonical order: for methods whose way depends on the last bits of sums."""
        return self.take(self.canonical())

    def sample(self, most: int, rng: np.random.Generator) -> Dataset:
        """At most ``most`` rows in canonical order, from each class in proportion and at least one of each.

        Rows are drawn by weight and then count so that every sum over rows is estimated without bias (Duffield, Lund
        and Thorup's priority sampling): rows of equal weight keep equal weights.
        """
        if self.n_distinct <= most:
            return self.sorted()
        shares = self._shares(most)
        near = _PrioritySample(shares)
        for part in self._ordered():
            for some in row_slices(len(part), 8):  # numbers of a row that are looked at
                rows, late = part[some], 1 - rng.random(some.stop - some.start)
                near.see(rows, self.codes[rows], *self._bounds(rows), late)
        rows, late = near.found()  # in canonical order
        drawn = self.take(rows)
        chosen, least = highest_priorities(drawn.codes, drawn.counts / late, shares)
        drawn = drawn.take(chosen)
        weights = np.maximum(least, drawn.counts)
        return replace(drawn, counts=weights * (self.total / weights.sum()))

    def _shares(self, most: int) -> Array:
        """How many rows of each class a sample has."""
        totals = class_sums(self.codes, self.n_classes)
        if self.copies is not None:
            totals -= class_sums(self.codes[self.copies.rows], self.n_classes)
        shares = np.maximum(np.minimum(totals, 1), (totals * (most / self.n_distinct)).astype(int))
        while shares.sum() > max(most, np.count_nonzero(totals)):  # small classes have had more than their part
            shares[shares.argmax()] -= 1
        return shares

    def _bounds(self, rows: Array) -> tuple[Array, Array]:
        """Between which numbers the counts of rows are that are no copies, each with its copies."""
        least, most = count_bounds(self.counts, rows)
        return (least, most) if self.copies is None else tuple(self.copies.joined(rows, b) for b in (least, most))  # type: ignore[return-value]

    def drawn_by_weight(self, rng: np.random.Generator) -> Array:
        """All rows, in random order: a row of twice the weight comes twice as likely first."""
        order = self.canonical()
        late = rng.exponential(size=len(order))
        late /= self._counts(order)
        return order[np.argsort(late, kind="stable")]

    def labels(self, wanted: list[Output]) -> Array:
        """Rows x problems: +1 and -1, or 0 where a row takes no part; or targets."""
        if self.targets is not None:
            return self.targets
        side, labels = class_signs(self.n_classes, wanted), np.empty((self.size, len(wanted)))
        for rows in row_slices(self.size, len(wanted)):
            labels[rows] = side[self.codes[rows]]
        return labels

    def binary(self, output: Output) -> tuple[Array, Array, Array]:
        """Rows of one problem, their labels (+-1) and weights."""
        rows = np.flatnonzero(np.isin(self.codes, output.members))
        codes = self.codes[rows]
        return rows, np.where(codes == output.positive, 1.0, -1.0), self.counts[rows] * self.factors[codes]

    def name(self, output: Output) -> str:
        """A problem in words, for the progress line."""
        if len(output.negative) > 1:
            return f"class {self.classes[output.positive]!s}"
        first, second = (self.classes[c] for c in output.members)
        return f"classes {first!s} and {second!s}"


class _PrioritySample:
    """Rows that may have the highest priorities of their class, of rows that are seen some at a time.

    A priority is a row's count over a random number, ``late``. Of counts bounds are enough: each class keeps the rows
    that may be among one more than its share. They stay in the order in which they were seen.
    """

    def __init__(self, shares: Array) -> None:
        self.shares = shares
        self.least = np.full(len(shares), -np.inf)
        nothing = np.empty(0)
        self.kept: tuple[Array, ...] = (np.empty(0, dtype=np.intp),) * 2 + (nothing,) * 3
        self.new: list[tuple[Array, ...]] = []

    def see(self, rows: Array, codes: Array, least: Array, most: Array, late: Array) -> None:
        """These come after all that were seen before; their counts are between ``least`` and ``most``."""
        low, high = least / late, most / late
        new = np.flatnonzero(high >= self.least[codes])
        self.new.append((rows[new], codes[new], low[new], high[new], late[new]))
        if sum(len(some) for some, *_ in self.new) > self.shares.sum():
            self._drop()

    def _drop(self) -> None:
        """Keep those that may still be drawn."""
        _, codes, low, high, _ = self.kept = tuple(map(np.concatenate, zip(self.kept, *self.new, strict=True)))
        for c, share in enumerate(self.shares.tolist()):
            mine = low[codes == c]
            if len(mine) > share:
                self.least[c] = np.partition(mine, len(mine) - share - 1)[len(mine) - share - 1]
        may = high >= self.least[codes]
        self.kept, self.new = tuple(part[may] for part in self.kept), []

    def found(self) -> tuple[Array, Array]:
        """The rows, and their random numbers."""
        self._drop()
        return self.kept[0], self.kept[-1]


def highest_priorities(codes: Array, priority: Array, shares: Array) -> tuple[Array, Array]:
    """The rows of each class with the highest priorities, its share of them, and what each counts at least: the next
    lower priority. Ties go to the earlier row."""
    chosen, least = np.zeros(len(codes), dtype=bool), np.full(len(shares), -np.inf)
    for c, share in enumerate(shares.tolist()):
        mine = np.flatnonzero(codes == c)
        if len(mine) > share:
            worth = priority[mine]
            least[c] = next_ = np.partition(worth, len(mine) - share - 1)[len(mine) - share - 1]
            better = np.count_nonzero(worth > next_)
            mine = np.append(mine[worth > next_], mine[worth == next_][: share - better])
        chosen[mine] = True
    rows = np.flatnonzero(chosen)
    return rows, least[codes[rows]]


# --- class numbers ---------------------------------------------------------------------------------------------


def class_numbers(y: Array) -> tuple[Array, Array]:
    """The classes in order, and the number of each row's class in as few bytes as will do."""
    found = [np.unique(y[rows]) for rows in row_slices(len(y))]
    classes = np.unique(np.concatenate(found)) if found else y
    codes = np.empty(len(y), dtype=np.min_scalar_type(-1 - len(classes)))
    for rows in row_slices(len(y)):
        codes[rows] = np.searchsorted(classes, y[rows])
    return classes, codes


def class_sums(codes: Array, n_classes: int, weights: Array | None = None) -> Array:
    """Sums of weights over the rows of each class; without weights, the numbers of rows."""
    if weights is None or weights.strides == (0,):
        sums = np.zeros(n_classes, dtype=np.int64)
        for rows in row_slices(len(codes)):
            sums += np.bincount(codes[rows], minlength=n_classes)
        return sums if weights is None or not len(weights) else sums * weights[0]
    return np.array([sum_to_float(units) for units in exact_sums(weights, codes, n_classes)])


# --- equal rows ------------------------------------------------------------------------------------------------


def merge_duplicates(dataset: Dataset, contents: Any) -> Dataset:
    """Equal rows of a class (with the same targets) as one, with the sum of their weights; in the order in which they
    first appear.

    ``contents`` are what makes rows equal: the rows themselves, or those of a kernel matrix. None: no two are.
    """
    if contents is None:
        return dataset
    copies, repeated = find_duplicates(contents, dataset.keys, dataset.marks, dataset.threads)
    if not len(copies):
        return dataset
    dataset = with_duplicates(dataset, copies, repeated)
    if len(copies) * ROWS_PER_KEPT_DUPLICATE <= dataset.size and _bytes(dataset.X) > MIN_BYTES_TO_KEEP_DUPLICATES:
        return dataset
    return dataset.take(np.arange(dataset.size))


def with_duplicates(dataset: Dataset, copies: Array, repeated: Array) -> Dataset:
    """The task with what is known of its copies: these rows, which repeat those."""
    if not len(copies):
        return dataset
    firsts, place = np.unique(repeated, return_inverse=True)
    counts = dataset.counts[firsts]
    np.add.at(counts, place, dataset.counts[copies])
    return replace(dataset, copies=Duplicates(copies, firsts, counts))


def _bytes(X: Any) -> int:
    return X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes


def _place(ordered: Array, wanted: Array) -> Array:
    """Where numbers stand in an ordered array; -1 where they do not."""
    place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    place[ordered[place] != wanted] = -1
    return place


def _filled(size: int, dtype: Any, parts: Iterator[Array]) -> Array:
    """Parts one after the other."""
    whole, start = np.empty(size, dtype=dtype), 0
    for part in parts:
        whole[start : start + len(part)] = part
        start += len(part)
    return whole
