"""As few vectors as agree with the original on rows that neither has seen.

Training rows say too little of that: many lie on the border of a machine over few rows, or well inside of it, and one
vector may agree with it on all of them. So machines over parts of the rows are made small, and judged on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..model.expansion import Expansion
from .methods import Compressor
from .original import Original, WeightedRows
from .sizes import half_of, not_reached, small_version, smallest

PARTS = 4  # of the rows, each judged by a machine over the others
ENOUGH = 500  # rows that are judged: no more parts then
LEAST = 2 * PARTS  # rows


def agreeing_on_unseen(
    compressor: Compressor,
    rows: WeightedRows,
    method: str,
    agreement: float,
    machine_over: Callable[[WeightedRows], Original],
) -> tuple[Expansion, str, str]:
    """What `small_version` gives for "auto", where the size must do on unseen rows as well."""
    if len(rows.counts) < LEAST:
        return small_version(compressor, method, "auto", agreement)
    trials = [
        HeldOutModel(replace(compressor, original=machine_over(seen), known=seen), rest) for seen, rest in parts(rows)
    ]
    weights = [float(trial.unseen.counts.sum()) for trial in trials]

    def made(size: int) -> tuple[int, tuple[Expansion, str, str]]:
        return size, small_version(compressor, method, size, agreement)

    def agrees(found: tuple[int, tuple[Expansion, str, str]]) -> bool:
        size, (small, _, _) = found
        if compressor.agreement(small) < agreement:
            return False
        unseen = [trial.agreement(method, size) for trial in trials]
        return float(np.average(unseen, weights=weights)) >= agreement

    (_, (small, used, note)), reached = smallest(half_of(compressor.original), made, agrees)
    return small, used, note if reached else not_reached(agreement, small)


@dataclass(frozen=True)
class HeldOutModel:
    """A machine over a part of the rows, and rows that are not among them."""

    compressor: Compressor
    unseen: WeightedRows

    def agreement(self, method: str, size: int) -> float:
        """Of so many vectors with the machine, on the rows that both have not seen."""
        small, _, _ = small_version(self.compressor, method, size, 1.0)
        original = self.compressor.original
        before, after = (self.compressor.values(one, self.unseen.X) for one in (original.expansion, small))
        return original.goal.agreement(before, after, self.unseen.counts)


def parts(rows: WeightedRows) -> Iterator[tuple[WeightedRows, WeightedRows]]:
    """Rows to be seen, and the others; the same for rows in any order, as theirs is one of their own."""
    n = len(rows.counts)
    part = np.random.default_rng(0).permutation(n) % PARTS
    for k in range(min(PARTS, -(-ENOUGH * PARTS // n))):
        yield rows.some(np.flatnonzero(part != k)), rows.some(np.flatnonzero(part == k))
