"""What is to be made small, and the rows that are known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import check_array

from ..basis.reduced_set import function_values
from ..data.dataset import Dataset
from ..data.duplicates import group_equal_rows, row_keys
from ..linalg.arrays import Array
from ..model.expansion import Expansion
from .tasks import PredictionTask


@dataclass(frozen=True)
class Original:
    """A machine: its expansion, what its values mean, the cost C of a row's slack; and the expansion as it was given,
    in which a vector may come twice. ``cost_is_estimated``: no parameter gives C, so that it was taken from the largest
    coefficient."""

    expansion: Expansion
    goal: PredictionTask
    cost: float
    given: Expansion
    cost_is_estimated: bool = False

    @classmethod
    def of(cls, expansion: Expansion, goal: PredictionTask, cost: float | None) -> Original:
        """Each vector once, in an order that does not depend on that of the training rows.

        Without a cost, estimate C: a row inside the margin has the coefficient C times its class weight, so take the
        largest coefficient, over the largest class weight.
        """
        X, coef = expansion.vectors, np.asarray(expansion.coef, dtype=np.float64)
        cost_is_estimated = cost is None
        if cost is None:
            cost = float(np.abs(coef).max(initial=0.0)) / goal.largest_weight or 1.0
        used = np.flatnonzero(coef.any(axis=0))
        X, coef = X[used], coef[:, used]
        keys = row_keys(X)
        groups = group_equal_rows(X, keys)
        if groups.has_duplicates:
            summed = np.zeros((len(coef), len(groups.first)))
            np.add.at(summed.T, groups.group, coef.T)
            X, coef, keys = X[groups.first], summed, keys[groups.first]
        order = np.argsort(keys, kind="stable")
        machine = replace(expansion, vectors=X[order], coef=np.ascontiguousarray(coef[:, order]))
        return cls(machine, goal, cost, expansion, cost_is_estimated)

    @property
    def size(self) -> int:
        return self.expansion.coef.shape[1]

    @cached_property
    def norms(self) -> Array:
        """``|f_o|^2`` of each output."""
        machine = self.expansion
        return np.einsum("io,oi->o", function_values(machine.kernel, machine.vectors, machine.coef), machine.coef)

    @property
    def has_norms(self) -> bool:
        """Are these the sizes of functions, not all of which are constant? Some kernels make no norm."""
        constant = ~self.expansion.coef.any(axis=1)
        return not constant.all() and bool((constant | (self.norms > 0)).all())


def in_columns(y: Any, targets: int) -> Array:
    """Target values, a column for each target of a machine."""
    y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    y = y.reshape(len(y), -1)
    if y.shape[1] != targets:
        raise ValueError(f"y has {y.shape[1]} columns, the model has {targets} targets; give a column for each")
    return y


@dataclass(frozen=True)
class WeightedRows:
    """Rows to teach on, each once, in an order of their own; labels where there are any."""

    X: Any
    counts: Array
    keys: Array
    y: Any = None

    @classmethod
    def of(cls, X: Any, counts: Array, y: Array | None = None) -> WeightedRows:
        """Rows that count; equal rows (with equal labels) are one row of their weights. Labels may have columns."""
        rows = np.flatnonzero(counts)
        X, counts, y = X[rows], counts[rows], None if y is None else y[rows]
        keys = row_keys(X)
        codes = None if y is None else np.unique(y, axis=0, return_inverse=True)[1].reshape(-1)
        groups = group_equal_rows(X, keys, codes)
        if groups.has_duplicates:
            first = groups.first
            counts = np.bincount(groups.group, weights=counts)
            X, keys, y = X[first], keys[first], None if y is None else y[first]
        order = np.lexsort((keys,) if y is None else (*y.reshape(len(y), -1).T, keys))
        return cls(X[order], counts[order], keys[order], None if y is None else y[order])

    def sample(self, most: int, codes: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Numbers of at most so many rows, from each group in proportion, and how often each then counts."""
        numbers = np.arange(len(codes))
        if len(numbers) <= most:
            return numbers, self.counts
        groups, codes = np.unique(codes, return_inverse=True)
        # The draw needs the keys of rows, not the rows.
        drawn = self.dataset(numbers[:, None], codes, np.ones(len(groups))).sample(most, rng)
        return drawn.indices, drawn.counts

    def drawn(self, most: int, rng: np.random.Generator) -> WeightedRows:
        """At most so many rows, by weight; what they count is what all do."""
        numbers, counts = self.sample(most, np.zeros(len(self.counts), dtype=np.intp), rng)
        return self if len(numbers) == len(self.counts) else replace(self.some(numbers), counts=counts)

    def some(self, numbers: Array) -> WeightedRows:
        """The rows of these numbers."""
        labels = None if self.y is None else self.y[numbers]
        return WeightedRows(self.X[numbers], self.counts[numbers], self.keys[numbers], labels)

    def in_double(self) -> WeightedRows:
        """With rows in float64."""
        return replace(self, X=self.X.astype(np.float64, copy=False))

    def dataset(self, X: Any, codes: Array, factors: Array, threads: int = 1) -> Dataset:
        """Rows X in place of these, with classes and their weights."""
        numbers, classes = np.arange(len(codes)), np.arange(len(factors))
        return Dataset(X, codes, self.counts, factors, numbers, self.keys, classes, None, len(codes), threads)
