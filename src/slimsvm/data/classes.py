"""Encodes labels as class numbers, and sums weights over each class."""

from __future__ import annotations

import numpy as np

from ..linalg.arrays import Array
from .counts import exact_sums, sum_to_float
from .duplicates import row_slices


def class_numbers(y: Array) -> tuple[Array, Array]:
    """The sorted classes, and the class number of each row in the smallest sufficient integer type."""
    found = [np.unique(y[rows]) for rows in row_slices(len(y))]
    classes = np.unique(np.concatenate(found)) if found else y
    codes = np.empty(len(y), dtype=np.min_scalar_type(-1 - len(classes)))
    for rows in row_slices(len(y)):
        codes[rows] = np.searchsorted(classes, y[rows])
    return classes, codes


def class_sums(codes: Array, n_classes: int, weights: Array | None = None) -> Array:
    """The sum of the weights of each class; without weights, its number of rows."""
    if weights is None or weights.strides == (0,):
        sums = np.zeros(n_classes, dtype=np.int64)
        for rows in row_slices(len(codes)):
            sums += np.bincount(codes[rows], minlength=n_classes)
        return sums if weights is None or not len(weights) else sums * weights[0]
    return np.array([sum_to_float(units) for units in exact_sums(weights, codes, n_classes)])
