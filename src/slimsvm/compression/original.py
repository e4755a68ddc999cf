"""The model that is compressed, and the rows that its compressed form is trained on."""

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
    """An expansion with each vector once, the task of its values, the cost C of a row's slack, and the expansion as it
    was given. ``cost_is_estimated``: no parameter gives C, so that it was taken from the largest coefficient."""

    expansion: Expansion
    task: PredictionTask
    cost: float
    given: Expansion
    cost_is_estimated: bool = False

    @classmethod
    def of(cls, expansion: Expansion, task: PredictionTask, cost: float | None) -> Original:
        """Merge equal vectors, and put them in an order that does not depend on that of the training rows.

        Without a cost, estimate C: a row inside the margin has the coefficient C times its class weight, so take the
        largest coefficient, over the largest class weight.
        """
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
        """Is the squared norm of every output that is not constant positive? Kernels that make no norm fail here."""
        constant = ~self.expansion.coef.any(axis=1)
        return not constant.all() and bool((constant | (self.norms > 0)).all())


def target_columns(y: Any, n_targets: int) -> Array:
    """Target values, a column for each target of a model."""
    y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    y = y.reshape(len(y), -1)
    if y.shape[1] != n_targets:
        raise ValueError(f"y has {y.shape[1]} columns, the model has {n_targets} targets; give a column for each")
    return y


# --- rows to train on -------------------------------------------------------------------------------------------


def unmerged_rows(X: Any, counts: Array, threads: int = 1, **labels: Any) -> Dataset:
    """All rows, as they come; ``labels`` are fields of a `Dataset`, none where rows have no labels."""
    n = X.shape[0]
    fields = {"codes": np.zeros(n, dtype=np.int8), "classes": np.zeros(1), "class_weights": np.ones(1)} | labels
    return Dataset(
        X=X, counts=counts, indices=np.arange(n), keys=row_keys(X), kernel=None, n_samples=n, threads=threads, **fields
    )


def distinct_rows(X: Any, counts: Array, threads: int = 1, **labels: Any) -> Dataset:
    """Rows of positive count; equal rows with equal labels are one row of their summed counts. Their order depends on
    their contents alone."""
    rows = unmerged_rows(X, counts, threads, **labels).take(np.flatnonzero(counts))
    rows = merge_duplicates(rows, rows.X)
    labels_of_keys = (rows.codes,) if rows.targets is None else rows.targets.T
    return rows.take(np.lexsort((*labels_of_keys, rows.keys)))


def has_labels(rows: Dataset) -> bool:
    return rows.targets is not None or rows.n_classes > 1


def draw_rows(rows: Dataset, size: int, strata: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """The numbers of at most ``size`` rows, from each stratum in proportion, and their counts."""
    numbers = np.arange(rows.size)
    if rows.size <= size:
        return numbers, rows.counts
    groups, codes = np.unique(strata, return_inverse=True)
    # The draw needs the keys of rows, not the rows.
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
