"""Regression targets: their scaling to mean 0 and variance 1, and rounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..linalg.arrays import Array
from .counts import exact_sums, exact_total, sum_to_float
from .duplicates import row_slices

TARGET_STEPS = 2.0**32  # scaled targets are multiples of 2^-32
TARGET_ROUNDING = 0.5 / TARGET_STEPS  # the largest rounding error of a scaled target
TARGET_STEPS_PER_IQR = 2.0**16  # resolution of targets that vectors are learned for
MAX_TARGET_STD = 1e150  # and its inverse is the smallest: squares stay finite and nonzero


@dataclass(frozen=True)
class TargetScaler:
    """Centre and scale of each target: the user's values are ``centre + size * target``."""

    centre: Array
    size: Array

    @classmethod
    def fit(cls, values: Any, counts: Any, alike: bool) -> TargetScaler:
        """The scaler that gives values (rows x outputs) mean 0 and variance 1, or with ``alike`` one common scale and a
        mean variance of 1. Its sums are exact, so they do not depend on the order of the rows."""
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
        constant = np.sqrt(variance) <= 4 * np.finfo(float).eps  # but for rounding
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
        """Scaled values, rounded to multiples of 2^-32: the digits beyond are rounding errors of the scaling, and
        learning amplifies such differences until vectors end in different places."""
        return np.rint((values - self.centre) / self.size * TARGET_STEPS) / TARGET_STEPS


def rounded_targets(targets: Array) -> Array:
    """Targets rounded to 2^-16 of the interquartile range of their distinct values (to the power of 2 that is at most
    that, and at least 2^-32), so that shifting or scaling y does not change the learned vectors.

    Shifts and scales cost the targets their last digits, and learning amplifies such differences by many orders of
    magnitude. Outliers do not change an interquartile range.
    """
    rounded = np.empty_like(targets)
    for o, column in enumerate(targets.T):
        low, high = np.quantile(np.unique(column), (0.25, 0.75))
        step = 1 / TARGET_STEPS
        if low != high:
            step = max(np.exp2(np.floor(np.log2(high - low))) / TARGET_STEPS_PER_IQR, step)
        rounded[:, o] = np.rint(column / step) * step
    return rounded
