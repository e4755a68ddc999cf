"""A reservoir of a stream: a random sample of all its rows, or its latest rows.

Each row gets a priority, and the rows of the highest priorities are kept: random priorities by weight (priority
sampling of Duffield, Lund and Thorup) for a sample of the whole stream, or row numbers for the latest rows. Some places
are reserved for each class. The kept rows do not depend on how the stream is cut into blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..linalg.arrays import Array
from .classes import class_sums

RESERVED_SHARE = 10  # one of so many places is shared out evenly among the classes


@dataclass(frozen=True)
class Reservoir:
    """The kept rows of a stream in order of arrival, and totals over the whole stream."""

    seed: int
    recent: bool  # keep the latest rows instead of a random sample
    X: Any
    codes: Array  # class numbers
    weights: Array  # sample weights
    numbers: Array  # 0, 1, 2 ... in the stream
    priorities: Array
    totals: Array  # sum of all weights in the stream, by class
    dropped: Array  # highest priority of a dropped row, by class; 0: none was dropped
    seen: int = 0  # rows in the stream so far
    targets: Array | None = None  # rows x outputs, for regression (one class)

    @classmethod
    def empty(cls, X: Any, n_classes: int, seed: int, recent: bool, targets: Array | None = None) -> Reservoir:
        """An empty reservoir for rows (and targets) like these."""
        none, zeros, codes = np.empty(0), np.zeros(n_classes), np.empty(0, dtype=np.int32)
        nothing = None if targets is None else targets[:0]
        return cls(seed, recent, X[:0], codes, none, codes.astype(np.int64), none, zeros, zeros, targets=nothing)

    @property
    def size(self) -> int:
        return len(self.codes)

    @property
    def present(self) -> Array:
        """Numbers of the classes that have rows in the reservoir."""
        return np.flatnonzero(np.bincount(self.codes, minlength=len(self.totals)))

    def since(self, seen: int) -> int:
        """How many of the kept rows came after the first ``seen`` rows of the stream."""
        return int(np.count_nonzero(self.numbers >= seen))

    def after(self, X: Any, codes: Array, weights: Array, most: int, targets: Array | None = None) -> Reservoir:
        """A new reservoir of at most ``most`` rows after adding these rows, whose weights are positive."""
        all_numbers = np.concatenate([self.numbers, np.arange(self.seen, self.seen + len(codes))])
        all_codes = np.concatenate([self.codes, codes.astype(np.int32)])
        priorities = np.concatenate([self.priorities, self._priorities(weights)])
        kept = _kept(priorities, all_codes, max(most, len(self.totals)), len(self.totals))
        totals, dropped = self.totals.copy(), self.dropped.copy()
        np.add.at(totals, codes, weights)  # sequential: the last digits do not depend on blocks
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
        """The count of each row: its weight; in a random sample, reweighted so that classes have their shares of the
        stream."""
        if self.recent or not self.dropped.any():
            return self.weights
        counts = np.maximum(self.weights, self.dropped[self.codes])  # light rows are rarely drawn: each represents many
        kept = class_sums(self.codes, len(self.totals), counts)
        share = np.divide(self.totals, kept, out=np.zeros(len(kept)), where=kept > 0)
        return counts * share[self.codes] * (self.size / self.seen)


def _kept(priorities: Array, codes: Array, most: int, n_classes: int) -> Array:
    """A mask of the ``most`` rows of the highest priorities, after a reserve for each class."""
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
    """Old and new rows stacked, sparse if the old ones are, in the wider dtype."""
    if not sp.issparse(old):
        return np.concatenate([old, new.toarray() if sp.issparse(new) else new])
    return sp.csr_array(sp.vstack([old, new if sp.issparse(new) else sp.csr_array(new)], format="csr"))
