"""Priority sampling (Duffield, Lund and Thorup) of rows by weight, with unbiased estimates of sums over rows."""

from __future__ import annotations

import numpy as np

from ..linalg.arrays import Array


class PriorityCandidates:
    """Of rows added in parts, collects those that may be among the ``shares`` + 1 highest priorities of their class.

    A row's priority is its count divided by a uniform random number. Bounds of the counts suffice to discard rows.
    Candidates stay in the order in which they were added.
    """

    def __init__(self, shares: Array) -> None:
        self.shares = shares
        self.thresholds = np.full(len(shares), -np.inf)  # for each class a lower bound of the priority needed
        nothing = np.empty(0)
        self.kept: tuple[Array, ...] = (np.empty(0, dtype=np.intp),) * 2 + (nothing,) * 3
        self.new: list[tuple[Array, ...]] = []

    def add(self, rows: Array, codes: Array, lower: Array, upper: Array, uniform: Array) -> None:
        """Add rows with lower and upper bounds of their counts, and their uniform random numbers."""
        low, high = lower / uniform, upper / uniform
        new = np.flatnonzero(high >= self.thresholds[codes])
        self.new.append((rows[new], codes[new], low[new], high[new], uniform[new]))
        if sum(len(some) for some, *_ in self.new) > self.shares.sum():
            self._drop()

    def _drop(self) -> None:
        """Drop the rows that can no longer be drawn."""
        _, codes, low, high, _ = self.kept = tuple(map(np.concatenate, zip(self.kept, *self.new, strict=True)))
        for c, share in enumerate(self.shares.tolist()):
            mine = low[codes == c]
            if len(mine) > share:
                self.thresholds[c] = _nth_largest(mine, share)
        possible = high >= self.thresholds[codes]
        self.kept, self.new = tuple(part[possible] for part in self.kept), []

    def result(self) -> tuple[Array, Array]:
        """The candidate rows and their random numbers."""
        self._drop()
        return self.kept[0], self.kept[-1]


def highest_priorities(codes: Array, priority: Array, shares: Array) -> tuple[Array, Array]:
    """The ``shares[c]`` rows of each class c with the highest priorities, and for each row its threshold: the highest
    priority in its class that was not drawn. Ties go to the earlier row."""
    chosen, thresholds = np.zeros(len(codes), dtype=bool), np.full(len(shares), -np.inf)
    for c, share in enumerate(shares.tolist()):
        mine = np.flatnonzero(codes == c)
        if len(mine) > share:
            priorities = priority[mine]
            thresholds[c] = threshold = _nth_largest(priorities, share)
            above = np.count_nonzero(priorities > threshold)
            mine = np.append(mine[priorities > threshold], mine[priorities == threshold][: share - above])
        chosen[mine] = True
    rows = np.flatnonzero(chosen)
    return rows, thresholds[codes[rows]]


def _nth_largest(values: Array, n: int) -> float:
    """Element n, counted from 0, of the values in descending order."""
    place = len(values) - n - 1
    return float(np.partition(values, place)[place])
