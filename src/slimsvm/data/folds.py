"""Rows held out: stratified parts in which equal rows stay together, whatever their labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..linalg.arrays import Array
from .dataset import Dataset, class_sums
from .duplicates import n_distinct, row_slices, rows_by_key

COPIES = 10  # of each row, from which on the rows themselves are good judges


@dataclass(frozen=True)
class Groups:
    """The equal rows of a task. Groups have the order of their keys."""

    dataset: Dataset

    @classmethod
    def of(cls, dataset: Dataset) -> Groups:
        """Found when they are needed: most users only ask how many there are."""
        return cls(dataset)

    @cached_property
    def size(self) -> int:
        return n_distinct(self.dataset.keys, self.dataset.threads)

    @property
    def known_well(self) -> bool:
        """Has each row many copies? Leaving all copies of one out would test something else."""
        return COPIES * self.size <= self.dataset.total

    def places(self, count: int, rng: np.random.Generator, most: int | None = None, least: int = 1) -> Array:
        """For each row a place, 0 to ``count`` - 1; a class has about as many of its groups in each.

        At most ``most`` groups are drawn, from each class in proportion and at least ``least`` of it; rows of the
        others have the place -1.
        """
        codes = self._codes()
        totals = class_sums(codes, self.dataset.n_classes)
        if most is not None and self.size > most:
            shares = [max(least, round(total * most / self.size)) for total in totals.tolist()]
        else:
            shares = totals.tolist()
        order = rng.permutation(self.size)
        order = np.concatenate([_first(order, codes, c, share) for c, share in enumerate(shares)])
        place = np.full(self.size, -1, dtype=np.min_scalar_type(-count))
        place[order] = np.arange(len(order)) % count
        found = np.empty(self.dataset.size, dtype=place.dtype)
        for rows, numbers in self._numbers():
            found[rows] = place[numbers]
        return found

    def _numbers(self) -> Iterator[tuple[Array, Array]]:
        """Rows by their keys and classes, some at a time, and the number of each one's group."""
        start = 0
        for rows in rows_by_key(self.dataset.keys, self.dataset.marks, self.dataset.threads):
            if len(rows):
                keys = self.dataset.keys[rows]
                numbers = start + np.append(0, np.cumsum(keys[1:] != keys[:-1]))
                start = int(numbers[-1]) + 1
                yield rows, numbers

    def _codes(self) -> Array:
        """The class of each group: the first of those of its rows."""
        codes = np.empty(self.size, dtype=self.dataset.codes.dtype)
        for rows, numbers in self._numbers():
            codes[numbers[::-1]] = self.dataset.codes[rows[::-1]]  # the last one written stays
        return codes


def _first(order: Array, codes: Array, wanted: int, count: int) -> Array:
    """The first so many of a class."""
    found = [order[:0]]
    for some in row_slices(len(order)):
        if count <= 0:
            break
        mine = order[some]
        found.append(mine[codes[mine] == wanted][:count])
        count -= len(found[-1])
    return np.concatenate(found)


def held_out(dataset: Dataset, tests: Iterable[Array]) -> list[tuple[Dataset, Dataset]]:
    """Rows to train on and rows that judge, by masks of the latter.

    A class of a single row is in one part only: parts whose training rows lack a class are left out.
    """
    found = [(dataset.take(~test), dataset.take(test)) for test in tests if test.any()]
    return [(train, test) for train, test in found if len(np.unique(train.codes)) == dataset.n_classes]
