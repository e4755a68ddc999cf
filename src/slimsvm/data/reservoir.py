"""The memory of a stream: some of its rows, kept so that they stand for all of it, or for its end.

Each row that comes gets a priority, and those of the highest priorities are kept. Priorities are drawn by weight, one
for each row of the stream whatever the blocks are (Duffield, Lund and Thorup's priority sampling), or they are the
numbers of the rows, so that the last ones stay. Some rows of each class are kept in any case. Which rows are kept does
not depend on how the stream was cut into blocks: a row that has been dropped would be dropped at any later time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..linalg.arrays import Array
from .classes import class_sums

RESERVED_SHARE = 10  # one of so many rows is reserved for classes that would have fewer


@dataclass(frozen=True)
class Reservoir:
    """Rows of a stream in the order in which they came, and what is known of all of them."""

    seed: int
    recent: bool  # are the last rows kept?
    X: Any
    codes: Array  # class numbers
    weights: Array  # as given
    numbers: Array  # 0, 1, 2 ... in the stream
    priorities: Array
    totals: Array  # for each class: the sum of all weights that came,
    dropped: Array  # and the highest priority that was dropped; 0: none was
    seen: int = 0  # rows that came
    targets: Array | None = None  # rows x outputs, where there is but one class

    @classmethod
    def empty(cls, X: Any, n_classes: int, seed: int, recent: bool, targets: Array | None = None) -> Reservoir:
        """For rows (and targets) like these."""
        none, zeros, codes = np.empty(0), np.zeros(n_classes), np.empty(0, dtype=np.int32)
        nothing = None if targets is None else targets[:0]
        return cls(seed, recent, X[:0], codes, none, codes.astype(np.int64), none, zeros, zeros, targets=nothing)

    @property
    def size(self) -> int:
        return len(self.codes)

    @property
    def present(self) -> Array:
        """Numbers of the classes that have rows."""
        return np.flatnonzero(np.bincount(self.codes, minlength=len(self.totals)))

    def since(self, seen: int) -> int:
        """The number of kept rows that came after the first ``seen`` rows."""
        return int(np.count_nonzero(self.numbers >= seen))

    def after(self, X: Any, codes: Array, weights: Array, most: int, targets: Array | None = None) -> Reservoir:
        """The reservoir of at most ``most`` rows after these rows were added; weights are above 0."""
        all_numbers = np.concatenate([self.numbers, np.arange(self.seen, self.seen + len(codes))])
        all_codes = np.concatenate([self.codes, codes.astype(np.int32)])
        priorities = np.concatenate([self.priorities, self._priorities(weights)])
        kept = _kept(priorities, all_codes, max(most, len(self.totals)), len(self.totals))
        totals, dropped = self.totals.copy(), self.dropped.copy()
        np.add.at(totals, codes, weights)  # one after the other: the last digits do not depend on blocks
        np.maximum.at(dropped, all_codes[~kept], priorities[~kept])
        old, new = kept[: self.size], kept[self.size :]
        return replace(
            self,
            X=_joined(self.X if old.all() else self.X[old], X if new.all() else X[new]),
            codes=all_codes[kept],
            weights=np.concatenate([self.weights, weights])[kept],
            numbers=all_numbers[kept],
            priorities=priorities[kept],
            totals=totals,
            dropped=dropped,
            seen=self.seen + len(codes),
            targets=None if targets is None else np.concatenate([self.targets, targets])[kept],
        )

    def _priorities(self, weights: Array) -> Array:
        if self.recent:
            return np.arange(self.seen + 1.0, self.seen + len(weights) + 1)
        numbers = np.random.PCG64(self.seed)
        numbers.advance(self.seen)  # one number for each row
        return weights / (1 - np.random.Generator(numbers).random(len(weights)))

    def counts(self) -> Array:
        """What each row counts: its weight, or what makes the rows of a class count as all that came, on average."""
        if self.recent or not self.dropped.any():
            return self.weights
        counts = np.maximum(self.weights, self.dropped[self.codes])  # those rarely drawn stand for many
        kept = class_sums(self.codes, len(self.totals), counts)
        share = np.divide(self.totals, kept, out=np.zeros(len(kept)), where=kept > 0)
        return counts * share[self.codes] * (self.size / self.seen)


def _kept(priorities: Array, codes: Array, most: int, n_classes: int) -> Array:
    """A mask of the rows that stay: those of the highest priorities, in all and in each class."""
    kept = np.ones(len(codes), dtype=bool)
    if len(codes) <= most:
        return kept
    order = np.argsort(-priorities, kind="stable")
    reserve = max(1, most // (RESERVED_SHARE * n_classes))
    kept[:] = False
    for c in range(n_classes):
        kept[order[codes[order] == c][:reserve]] = True
    others = order[~kept[order]]
    kept[others[: most - np.count_nonzero(kept)]] = True
    return kept


def _joined(old: Any, new: Any) -> Any:
    """Stacked rows, sparse if the old ones are, in the wider of their dtypes."""
    if not sp.issparse(old):
        return np.concatenate([old, new.toarray() if sp.issparse(new) else new])
    return sp.csr_array(sp.vstack([old, new if sp.issparse(new) else sp.csr_array(new)], format="csr"))
