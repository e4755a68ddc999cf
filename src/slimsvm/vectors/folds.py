"""Rows held out: stratified parts in which equal rows stay together, whatever their labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..data import Task
from ..formulation import Array

COPIES = 10  # of each row, from which on the rows themselves are good judges


@dataclass(frozen=True)
class Groups:
    """The equal rows of a task: the group of each row, the class of each group (its first), and all weights."""

    numbers: Array
    codes: Array
    total: float

    @classmethod
    def of(cls, task: Task) -> Groups:
        keys, numbers = np.unique(task.keys, return_inverse=True)
        codes = np.full(len(keys), task.n_classes)
        np.minimum.at(codes, numbers, task.codes)
        return cls(numbers, codes, float(task.counts.sum()))

    @property
    def size(self) -> int:
        return len(self.codes)

    @property
    def known_well(self) -> bool:
        """Has each row many copies? Leaving all copies of one out would test something else."""
        return COPIES * self.size <= self.total

    def places(self, count: int, rng: np.random.Generator, most: int | None = None, least: int = 1) -> Array:
        """For each row a place, 0 to ``count`` - 1; a class has about as many of its groups in each.

        At most ``most`` groups are drawn, from each class in proportion and at least ``least`` of it; rows of the
        others have the place -1.
        """
        order = rng.permutation(self.size)
        order = order[np.argsort(self.codes[order], kind="stable")]
        if most is not None and self.size > most:
            mine = [np.flatnonzero(self.codes[order] == c) for c in np.unique(self.codes)]
            order = np.concatenate([order[rows[: max(least, round(len(rows) * most / self.size))]] for rows in mine])
        place = np.full(self.size, -1)
        place[order] = np.arange(len(order)) % count
        return place[self.numbers]


def held_out(task: Task, tests: Iterable[Array]) -> list[tuple[Task, Task]]:
    """Rows to train on and rows that judge, by masks of the latter.

    A class of a single row is in one part only: parts whose training rows lack a class are left out.
    """
    found = [(task.take(~test), task.take(test)) for test in tests if test.any()]
    return [(train, test) for train, test in found if len(np.unique(train.codes)) == task.n_classes]
