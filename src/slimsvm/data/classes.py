"""Class numbers of labels, and sums over the rows of each class."""

from __future__ import annotations

import numpy as np

from ..linalg.arrays import Array
from .counts import exact_sums, sum_to_float
from .duplicates import row_slices


def class_numbers(y: Array) -> tuple[Array, Array]:
    """The sorted classes, and each row's class number in the smallest integer type that holds it."""
    found = [np.unique(y[rows]) for rows in row_slices(len(y))]
    classes = np.unique(np.concatenate(found)) if found else y
    codes = np.empty(len(y), dtype=np.min_scalar_type(-1 - len(classes)))
    for rows in row_slices(len(y)):
        codes[rows] = np.searchsorted(classes, y[rows])
    return classes, codes


def class_sums(codes: Array, n_classes: int, weights: Array | None = None) -> Array:
    """The sum of the weights of each class's rows; without weights, their number."""
    if weights is None or weights.strides == (0,):
        sums = np.zeros(n_classes, dtype=np.int64)
        for rows in row_slices(len(codes)):
            sums += np.bincount(codes[rows], minlength=n_classes)
        return sums if weights is None or not len(weights) else sums * weights[0]
    return np.array([sum_to_float(units) for units in exact_sums(weights, codes, n_classes)])
