"""Scales regression targets to mean 0 and variance 1, and rounds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..linalg.arrays import Array
from .counts import exact_sums, exact_total, sum_to_float
from .duplicates import row_slices

TARGET_STEPS = 2.0**32  # scaled targets are multiples of 2^-32
TARGET_ROUNDING = 0.5 / TARGET_STEPS  # the largest rounding error of a scaled target
TARGET_STEPS_PER_IQR = 2.0**16  # resolution of the targets while vectors are learned
MAX_TARGET_STD = 1e150  # the smallest is its inverse: squares stay finite and nonzero


@dataclass(frozen=True)
class TargetScaler:
    """The affine scaling of each target: the user's value is ``centre + size * target``."""

    centre: Array
    size: Array

    @classmethod
    def fit(cls, values: Any, counts: Any, alike: bool) -> TargetScaler:
        """Fit the scaler to mean 0 and variance 1 of each column of values (rows x outputs); with ``alike`` all columns
        share one scale and their mean variance is 1. Sums are exact, so the order of the rows does not matter."""
        mass = exact_total(counts)
        maxima = [np.abs(values[rows]).max(axis=0) for rows in row_slices(len(values), values.shape[1])]
        largest = np.max(maxima, axis=0)
        largest = np.where(largest > 0, largest, 1.0)

        def moment(o: int, centre: float, power: int) -> float:
            parts = (
                ((values[rows, o] / largest[o] - centre) ** power * counts[rows]) for rows in row_slices(len(values))
            )
            return sum_to_float(sum(exact_sums(part)[0] for part in parts)) / mass

        centre = np.array([moment(o, 0.0, 1) for o in range(len(largest))])
        variance = np.array([moment(o, c, 2) for o, c in enumerate(centre.tolist())])
        constant = np.sqrt(variance) <= 4 * np.finfo(float).eps  # up to rounding
        size = np.where(constant, 0.0, np.sqrt(variance) * largest)
        if alike:
            size = np.full(len(size), np.sqrt(np.mean((size / largest.max()) ** 2)) * largest.max())
        for beyond in size[(size > 0) & ((size > MAX_TARGET_STD) | (size < 1 / MAX_TARGET_STD))]:
            raise ValueError(
                f"targets have a standard deviation of {beyond:.3g}: squared errors are beyond the range of float64. "
                f"Fit y / {beyond:.0e}, and multiply predictions by it"
            )
        return cls(centre * largest, np.where(size > 0, size, 1.0))

    def transform(self, values: Any) -> Array:
        """Scale values and round them to multiples of 2^-32. Digits beyond are rounding errors of the scaling, which
        learning would amplify until vectors end in different places."""
        return np.rint((values - self.centre) / self.size * TARGET_STEPS) / TARGET_STEPS


def rounded_targets(targets: Array) -> Array:
    """Round targets so that shifting or scaling y does not change the learned vectors.

    The step is 2^-16 of the interquartile range of the distinct values (robust to outliers), rounded down to a power of
    2, but at least 2^-32. Shifting or scaling y changes its last digits, which learning would amplify by many orders of
    magnitude.
    """
    rounded = np.empty_like(targets)
    for o, column in enumerate(targets.T):
        low, high = np.quantile(np.unique(column), (0.25, 0.75))
        step = 1 / TARGET_STEPS
        if low != high:
            step = max(np.exp2(np.floor(np.log2(high - low))) / TARGET_STEPS_PER_IQR, step)
        rounded[:, o] = np.rint(column / step) * step
    return rounded
