"""Double-double sums over blocks of rows, so that rounded totals do not depend on the order of the blocks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from ..linalg.arrays import Array


@dataclass(frozen=True)
class Sums:
    """Arrays of sums in double-double precision: ``high`` float64 parts and ``low`` remainders (None: zero).

    The order of addition changes the rounded result in about one of 10^15 sums. Symmetric matrices
    are stored as their upper triangles; ``sizes`` are their sizes, 0 for other arrays.
    """

    high: tuple[Array, ...]
    low: tuple[Array, ...] | None
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, found: tuple[Any, ...]) -> Sums:
        """The sums of one block, from the results of a pass."""
        arrays = [np.asarray(part) for part in found]
        sizes = tuple(_symmetric(part) for part in arrays)
        return cls(tuple(_half(part) if n else part for part, n in zip(arrays, sizes, strict=True)), None, sizes)

    def __add__(self, other: Sums) -> Sums:
        if self.sizes != other.sizes:
            return Sums(self.whole(), None, (0,) * len(self.sizes)) + Sums(other.whole(), None, (0,) * len(self.sizes))
        both = [_two_sum(a, b) for a, b in zip(self.high, other.high, strict=True)]
        low = [rest for _, rest in both]
        for more in (self.low, other.low):
            low = low if more is None else [a + b for a, b in zip(low, more, strict=True)]
        return Sums(tuple(total for total, _ in both), tuple(low), self.sizes)

    def rounded(self) -> Sums:
        """The sums rounded to float64."""
        low = repeat(0.0) if self.low is None else self.low
        return Sums(tuple(a + b for a, b in zip(self.high, low, strict=False)), None, self.sizes)

    def whole(self) -> tuple[Array, ...]:
        """The arrays, with symmetric matrices unpacked."""
        return tuple(_whole(part, n) if n else part for part, n in zip(self.rounded().high, self.sizes, strict=True))


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum and its exact rounding error, 0 where the sum is infinite."""
    with np.errstate(invalid="ignore"):
        total = a + b
        other = total - a
        rest = (a - (total - other)) + (b - other)
    return total, np.where(np.isfinite(rest), rest, 0)


def _symmetric(part: Array) -> int:
    """The size of an array of symmetric matrices, 0 for other arrays."""
    square = part.ndim > 1 and 1 < part.shape[-1] == part.shape[-2]
    return part.shape[-1] if square and np.array_equal(part, part.swapaxes(-1, -2)) else 0


def _half(part: Array) -> Array:
    return part[..., *np.triu_indices(part.shape[-1])]


def _whole(values: Array, size: int) -> Array:
    rows, columns = np.triu_indices(size)
    found = np.empty((*values.shape[:-1], size, size), dtype=values.dtype)
    found[..., rows, columns] = found[..., columns, rows] = values
    return found
