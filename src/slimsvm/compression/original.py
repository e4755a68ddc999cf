"""The model to compress, and the rows on which its compressed form is trained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import check_array

from ..basis.reduced_set import function_values
from ..data.dataset import Dataset
from ..data.duplicates import group_equal_rows, merge_duplicates, row_keys
from ..linalg.arrays import Array
from ..model.expansion import Expansion
from .tasks import PredictionTask


@dataclass(frozen=True)
class Original:
    """The model to compress: its expansion with distinct vectors, task, cost C of slacks, and the expansion as given.

    ``cost_is_estimated``: C was estimated from the largest coefficient, because no parameter gives it.
    """

    expansion: Expansion
    task: PredictionTask
    cost: float
    given: Expansion
    cost_is_estimated: bool = False

    @classmethod
    def of(cls, expansion: Expansion, task: PredictionTask, cost: float | None) -> Original:
        """Merge equal vectors and sort them by their contents.

        Without a cost, estimate C as the largest coefficient divided by the largest class weight: rows inside the
        margin have coefficients of C times their class weight."""
        X, coef = expansion.vectors, np.asarray(expansion.coef, dtype=np.float64)
        cost_is_estimated = cost is None
        if cost is None:
            cost = float(np.abs(coef).max(initial=0.0)) / task.max_class_weight or 1.0
        used = np.flatnonzero(coef.any(axis=0))
        X, coef = X[used], coef[:, used]
        keys = row_keys(X)
        groups = group_equal_rows(X, keys)
        if groups.has_duplicates:
            summed = np.zeros((len(coef), len(groups.first)))
            np.add.at(summed.T, groups.group, coef.T)
            X, coef, keys = X[groups.first], summed, keys[groups.first]
        order = np.argsort(keys, kind="stable")
        distinct = replace(expansion, vectors=X[order], coef=np.ascontiguousarray(coef[:, order]))
        return cls(distinct, task, cost, expansion, cost_is_estimated)

    @property
    def size(self) -> int:
        return self.expansion.coef.shape[1]

    @cached_property
    def norms(self) -> Array:
        """``|f_o|^2`` of each output."""
        f = self.expansion
        return np.einsum("io,oi->o", function_values(f.kernel, f.vectors, f.coef), f.coef)

    @property
    def has_norms(self) -> bool:
        """Whether every non-constant output has a positive squared norm; False for kernels that define no norm."""
        constant = ~self.expansion.coef.any(axis=1)
        return not constant.all() and bool((constant | (self.norms > 0)).all())


def target_columns(y: Any, n_targets: int) -> Array:
    """Target values as an array (rows x targets)."""
    y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    y = y.reshape(len(y), -1)
    if y.shape[1] != n_targets:
        raise ValueError(f"y has {y.shape[1]} columns, the model has {n_targets} targets; give a column for each")
    return y


# --- rows to train on -------------------------------------------------------------------------------------------


def unmerged_rows(X: Any, counts: Array, threads: int = 1, **labels: Any) -> Dataset:
    """A dataset of all rows in their order; ``labels`` are fields of a `Dataset`, if rows have labels."""
    n = X.shape[0]
    fields = {"codes": np.zeros(n, dtype=np.int8), "classes": np.zeros(1), "class_weights": np.ones(1)} | labels
    return Dataset(
        X=X, counts=counts, indices=np.arange(n), keys=row_keys(X), kernel=None, n_samples=n, threads=threads, **fields
    )


def distinct_rows(X: Any, counts: Array, threads: int = 1, **labels: Any) -> Dataset:
    """A dataset of the rows of positive count, sorted by contents; equal rows with equal labels are merged, their
    counts summed."""
    rows = unmerged_rows(X, counts, threads, **labels).take(np.flatnonzero(counts))
    rows = merge_duplicates(rows, rows.X)
    labels_of_keys = (rows.codes,) if rows.targets is None else rows.targets.T
    return rows.take(np.lexsort((*labels_of_keys, rows.keys)))


def has_labels(rows: Dataset) -> bool:
    return rows.targets is not None or rows.n_classes > 1


def draw_rows(rows: Dataset, size: int, strata: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw at most ``size`` rows in proportion to the strata; return their indices and counts."""
    numbers = np.arange(rows.size)
    if rows.size <= size:
        return numbers, rows.counts
    groups, codes = np.unique(strata, return_inverse=True)
    # The draw needs only the keys of rows.
    stratified = replace(
        rows,
        X=numbers[:, None],
        codes=codes,
        indices=numbers,
        classes=groups,
        class_weights=np.ones(len(groups)),
        targets=None,
    )
    drawn = stratified.sample(size, rng)
    return drawn.indices, drawn.counts
