"""Labels (or targets) and costs of each row in each output, computed for a block of rows at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from .. import _core
from ..data.classes import class_sums
from ..data.counts import exact_total
from ..data.dataset import Output, class_signs
from ..linalg.arrays import Array

Some = slice | Array  # selects rows


class Labels(Protocol):
    """The side (+1, -1, or 0 if it takes no part) or target of each row in each output, and its cost there."""

    @property
    def outputs(self) -> int:
        """The number of outputs."""

    @property
    def size(self) -> int:
        """The number of rows."""

    @property
    def totals(self) -> Array:
        """The sum of the costs of each output."""

    def of(self, rows: Some, which: Array | None = None) -> tuple[Array, Array]:
        """Sides and costs of some rows, rows x outputs."""

    def members(self, output: int) -> Array | None:
        """Numbers of the rows that take part in an output; None: all."""

    def take(self, rows: Some, factor: float = 1.0) -> Labels:
        """Labels of some rows, with costs multiplied by a factor."""

    def passes(self, rows: _core.Rows, single: bool, cache_bytes: int, threads: int) -> _core.Passes:
        """The core's passes over rows with these labels."""


class LabelRule(Protocol):
    """Computes the labels of any block of remote rows; small enough to be sent to workers."""

    def of(self, row_block: Any) -> Labels:
        """The labels of a block."""


@dataclass(frozen=True)
class ClassLabelRule:
    """Labels from the class numbers of a block, by tables of sides and costs (classes x outputs)."""

    side: Array
    cost: Array

    def of(self, row_block: Any) -> ClassLabels:
        return ClassLabels(row_block.codes, row_block.counts, self.side, self.cost)


@dataclass(frozen=True)
class TargetLabelRule:
    """Targets of a block, with one cost for each output."""

    cost: Array

    def of(self, row_block: Any) -> TargetLabels:
        return TargetLabels(row_block.targets, row_block.counts, self.cost)


@dataclass(frozen=True)
class ClassLabels:
    """Labels from class numbers, by tables of sides and costs (classes x outputs), times the count of each row."""

    codes: Array
    counts: Array
    side: Array
    cost: Array

    @property
    def outputs(self) -> int:
        return self.side.shape[1]

    @property
    def size(self) -> int:
        return len(self.codes)

    @property
    def rule(self) -> LabelRule:
        return ClassLabelRule(self.side, self.cost)

    @cached_property
    def totals(self) -> Array:
        mass = np.zeros(len(self.side))
        for i in range(0, self.size, 1 << 16):
            some = slice(i, i + (1 << 16))
            mass += np.bincount(self.codes[some], weights=self.counts[some], minlength=len(mass))
        return mass @ self.cost

    def of(self, rows: Some, which: Array | None = None) -> tuple[Array, Array]:
        o = slice(None) if which is None else which
        codes = self.codes[rows]
        return self.side[:, o][codes], self.cost[:, o][codes] * self.counts[rows][:, None]

    def members(self, output: int) -> Array | None:
        used = self.cost[:, output] > 0
        return None if used.all() else np.flatnonzero(used[self.codes])

    def with_class_totals(self, class_totals: Array) -> ClassLabels:
        """These labels with the known sum of counts of each class, which saves a pass."""
        return SummedLabels(self.codes, self.counts, self.side, self.cost, class_totals)

    def take(self, rows: Some, factor: float = 1.0) -> ClassLabels:
        return replace(self, codes=self.codes[rows], counts=self.counts[rows], cost=factor * self.cost)

    def passes(self, rows: _core.Rows, single: bool, cache_bytes: int, threads: int) -> _core.Passes:
        side, cost = (np.ascontiguousarray(table, dtype=np.float64) for table in (self.side, self.cost))
        return _core.class_passes(
            rows, np.ascontiguousarray(self.codes), self.counts, side, cost, single, cache_bytes, threads
        )


@dataclass(frozen=True)
class SummedLabels(ClassLabels):
    """Class labels with a known sum of counts of each class."""

    class_totals: Array

    @cached_property
    def totals(self) -> Array:
        return self.class_totals @ self.cost

    def members(self, output: int) -> Any:
        used = self.cost[:, output] > 0
        return None if used.all() else ClassMembers(self.codes, used)


@dataclass(frozen=True)
class ClassMembers:
    """The row numbers of some classes, like an array; computed on demand, as they take eight bytes each."""

    codes: Array
    used: Array  # a mask of the classes

    def __len__(self) -> int:
        return int(class_sums(self.codes, len(self.used))[self.used].sum())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.flatnonzero(self.used[self.codes]).astype(dtype or np.intp)


@dataclass(frozen=True)
class RowLabels:
    """Sides and costs as arrays, rows x outputs. The loss `Between` has intervals for sides."""

    Y: Array
    C: Array

    @property
    def outputs(self) -> int:
        return self.C.shape[1]

    @property
    def size(self) -> int:
        return self.C.shape[0]

    @cached_property
    def totals(self) -> Array:
        return self.C.sum(axis=0)

    def of(self, rows: Some, which: Array | None = None) -> tuple[Array, Array]:
        if which is None or len(which) == self.outputs:
            return self.Y[rows], self.C[rows]
        return self.Y[rows][:, which], self.C[rows][:, which]

    def members(self, output: int) -> Array | None:
        used = self.C[:, output] > 0
        return None if used.all() else np.flatnonzero(used)

    def take(self, rows: Some, factor: float = 1.0) -> RowLabels:
        return RowLabels(self.Y[rows], factor * self.C[rows])

    def passes(self, rows: _core.Rows, single: bool, cache_bytes: int, threads: int) -> _core.Passes:
        class_signs, costs = (np.ascontiguousarray(part, dtype=np.float64) for part in (self.Y, self.C))
        return _core.row_passes(rows, class_signs, costs, single, cache_bytes, threads)


@dataclass(frozen=True)
class TargetLabels:
    """Regression targets (rows x outputs), with a cost for each output and a count for each row."""

    targets: Array
    counts: Array
    cost: Array

    @property
    def outputs(self) -> int:
        return self.targets.shape[1]

    @property
    def size(self) -> int:
        return self.targets.shape[0]

    @property
    def rule(self) -> LabelRule:
        return TargetLabelRule(self.cost)

    def with_class_totals(self, class_totals: Array) -> TargetLabels:
        """Return these labels: regression has no classes to sum over."""
        return self

    @cached_property
    def totals(self) -> Array:
        return exact_total(self.counts) * self.cost

    def of(self, rows: Some, which: Array | None = None) -> tuple[Array, Array]:
        o = slice(None) if which is None else which
        return self.targets[rows][:, o], np.multiply.outer(self.counts[rows], self.cost[o])

    def members(self, output: int) -> Array | None:
        return None

    def take(self, rows: Some, factor: float = 1.0) -> TargetLabels:
        return TargetLabels(self.targets[rows], self.counts[rows], factor * self.cost)

    def passes(self, rows: _core.Rows, single: bool, cache_bytes: int, threads: int) -> _core.Passes:
        targets, cost = (np.ascontiguousarray(part, dtype=np.float64) for part in (self.targets, self.cost))
        return _core.target_passes(rows, targets, self.counts, cost, single, cache_bytes, threads)


def dataset_labels(dataset: Any, wanted: list[Output], C: Array | float) -> ClassLabels | TargetLabels:
    """The labels of a data set for some outputs, with one cost C for all outputs or one for each."""
    if dataset.targets is not None:
        return TargetLabels(
            dataset.targets, dataset.counts, np.array(np.broadcast_to(C, len(wanted)), dtype=np.float64)
        )
    side = class_signs(dataset.n_classes, wanted)
    return ClassLabels(
        dataset.codes,
        dataset.counts,
        side,
        np.abs(side) * np.outer(dataset.class_weights, np.broadcast_to(C, len(wanted))),
    )


def class_number_labels(codes: Array, counts: Array, factors: Array) -> ClassLabels:
    """Labels of one output whose sides are the class numbers; a row costs its count times its class's factor."""
    return ClassLabels(
        codes, counts, np.arange(len(factors), dtype=np.float64)[:, None], np.asarray(factors, float)[:, None]
    )


def join_groups(groups: Any, size: int) -> RowLabels:
    """Join groups of outputs (`ProblemGroup`) over different rows; a row takes no part in other groups' outputs."""
    if len(groups) == 1 and groups[0].rows is None:
        return RowLabels(groups[0].Y, groups[0].C)
    outputs = sum(group.Y.shape[1] for group in groups)
    Y, C = np.zeros((size, outputs)), np.zeros((size, outputs))
    first = 0
    for group in groups:
        o = slice(first, first + group.Y.shape[1])
        rows = slice(None) if group.rows is None else group.rows
        Y[rows, o], C[rows, o], first = group.Y, group.C, o.stop
    return RowLabels(Y, C)
