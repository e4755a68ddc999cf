"""Exact sums of counts (sample weights), whatever the order of rows, and the counts of remote rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..linalg.arrays import Array
from .duplicates import row_slices

LOW_HALF_BITS = 26  # bits of a number's lower half
SUM_SCALE_BITS = 1200  # sums are integers in units of 2^-1200; no float64 has a bit below 2^-1074
DROPPED_BITS = 47  # low bits that `leading_bits` drops from a float64: sign, exponent and 5 bits of the mantissa remain


def exact_sums(values: Array, codes: Array | None = None, n_classes: int = 1) -> list[int]:
    """Exact sums of values over each class (without codes: over all rows), as integers times 2^-SUM_SCALE_BITS."""
    sums = [0] * n_classes
    for rows in row_slices(len(values)):
        parts, powers = np.frexp(values[rows])
        high = np.floor(np.ldexp(parts, LOW_HALF_BITS + 1))
        low = np.ldexp(np.ldexp(parts, LOW_HALF_BITS + 1) - high, LOW_HALF_BITS)
        least, span = int(powers.min()), int(np.ptp(powers)) + 1
        place = powers - least if codes is None else codes[rows].astype(np.int64) * span + (powers - least)
        upper, lower = (np.bincount(place, half, n_classes * span) for half in (high, low))  # exact: rows are few
        for k in np.flatnonzero((upper != 0) | (lower != 0)).tolist():
            c, power = divmod(k, span)
            sums[c] += ((int(upper[k]) << LOW_HALF_BITS) + int(lower[k])) << (
                power + least - 2 * LOW_HALF_BITS - 1 + SUM_SCALE_BITS
            )
    return sums


def sum_to_float(units: int) -> float:
    """The float64 nearest to an exact sum."""
    return units / (1 << SUM_SCALE_BITS)


def exact_total(counts: Any) -> float:
    """The sum of all counts, rounded once."""
    if counts.strides == (0,):
        return float(counts[0]) * len(counts) if len(counts) else 0.0
    return sum_to_float(counts.units if isinstance(counts, RemoteCounts) else sum(exact_sums(counts)))


def leading_bits(counts: Array) -> Array:
    """The leading 17 bits of positive float64 numbers: the sign, which is 0, and two bytes."""
    return (np.ascontiguousarray(counts, dtype=np.float64).view(np.uint64) >> np.uint64(DROPPED_BITS)).astype(np.uint16)


@dataclass(frozen=True)
class RemoteCounts:
    """Counts of remote rows; ``counts[rows]`` fetches those of some rows.

    The leading bits of each count are in memory: enough for sampling by weight to discard nearly all other rows.
    """

    leading_bits: Array
    units: int  # the exact sum
    fetch: Callable[[Any], Array]  # by row numbers
    strides = (8,)

    def __len__(self) -> int:
        return len(self.leading_bits)

    def __getitem__(self, rows: Any) -> Array:
        return self.fetch(rows)


def count_bounds(counts: Any, rows: Array) -> tuple[Array, Array]:
    """Lower and upper bounds of the counts of rows, without fetching: equal to the counts if these are in memory."""
    if not isinstance(counts, RemoteCounts):
        mine = counts[rows]
        return mine, mine
    bits = counts.leading_bits[rows].astype(np.uint64)
    return tuple((end << np.uint64(DROPPED_BITS)).view(np.float64) for end in (bits, bits + np.uint64(1)))  # type: ignore[return-value]
