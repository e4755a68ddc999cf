"""Stratified folds of training and held-out rows that never separate equal rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..linalg.arrays import Array
from .classes import class_sums
from .dataset import Dataset
from .duplicates import n_distinct, row_slices, rows_by_key

MOSTLY_DUPLICATES = 10  # mean weight of a distinct row from which on models are tested on their training rows


class Fold(NamedTuple):
    """Training rows and held-out rows."""

    train: Dataset
    test: Dataset

    @property
    def keys(self) -> Array:
        """Keys of the held-out rows (see `row_keys`)."""
        return self.test.keys


@dataclass(frozen=True)
class RowGroups:
    """Groups of equal rows of a data set, whatever their labels, sorted by key."""

    dataset: Dataset

    @cached_property
    def size(self) -> int:
        """The number of groups."""
        return n_distinct(self.dataset.keys, self.dataset.threads)

    @property
    def mostly_duplicates(self) -> bool:
        """Whether rows have many copies each. Holding out all copies of a row would then change the problem."""
        return MOSTLY_DUPLICATES * self.size <= self.dataset.total

    def assign(
        self, n_parts: int, rng: np.random.Generator, max_groups: int | None = None, min_per_class: int = 1
    ) -> Array:
        """Split groups at random into ``n_parts`` parts, stratified by class; return the part of each row, from 0.

        At most ``max_groups`` groups are drawn, in proportion to their classes, but at least ``min_per_class`` of each
        class; rows of other groups have part -1.
        """
        codes = self._codes()
        n_drawn = class_sums(codes, self.dataset.n_classes).tolist()
        if max_groups is not None and self.size > max_groups:
            n_drawn = [max(min_per_class, round(n * max_groups / self.size)) for n in n_drawn]
        order = rng.permutation(self.size)
        order = np.concatenate([_first_of_class(order, codes, c, n) for c, n in enumerate(n_drawn)])
        part_of_group = np.full(self.size, -1, dtype=np.min_scalar_type(-n_parts))
        part_of_group[order] = np.arange(len(order)) % n_parts
        part_of_row = np.empty(self.dataset.size, dtype=part_of_group.dtype)
        for rows, groups in self._rows_and_groups():
            part_of_row[rows] = part_of_group[groups]
        return part_of_row

    def _rows_and_groups(self) -> Iterator[tuple[Array, Array]]:
        """Row numbers sorted by key and class, and the group of each row; a part at a time."""
        start = 0
        for rows in rows_by_key(self.dataset.keys, self.dataset.merge_keys, self.dataset.threads):
            if len(rows):
                keys = self.dataset.keys[rows]
                groups = start + np.append(0, np.cumsum(keys[1:] != keys[:-1]))
                start = int(groups[-1]) + 1
                yield rows, groups

    def _codes(self) -> Array:
        """The class of each group: the lowest class number of its rows."""
        codes = np.empty(self.size, dtype=self.dataset.codes.dtype)
        for rows, groups in self._rows_and_groups():
            codes[groups[::-1]] = self.dataset.codes[rows[::-1]]  # numpy keeps the last assignment
        return codes


def split(
    dataset: Dataset, n_parts: int, rng: np.random.Generator, n_folds: int | None = None, parts_per_fold: int = 1
) -> list[Fold]:
    """Split the rows into ``n_parts`` stratified parts; each fold holds out the next ``parts_per_fold`` of them."""
    fold_of_row = RowGroups(dataset).assign(n_parts, rng) // parts_per_fold
    return make_folds(dataset, (fold_of_row == f for f in range(n_folds or n_parts // parts_per_fold)))


def make_folds(dataset: Dataset, held_out: Iterable[Array]) -> list[Fold]:
    """A fold for each mask of held-out rows, without folds whose training rows lack a class."""
    folds = [Fold(dataset.take(~mask), dataset.take(mask)) for mask in held_out if mask.any()]
    return [fold for fold in folds if len(np.unique(fold.train.codes)) == dataset.n_classes]


def _first_of_class(order: Array, codes: Array, code: int, count: int) -> Array:
    """The first ``count`` groups of a class in this order."""
    found = [order[:0]]
    for some in row_slices(len(order)):
        if count <= 0:
            break
        groups = order[some]
        found.append(groups[codes[groups] == code][:count])
        count -= len(found[-1])
    return np.concatenate(found)
