"""Computes the number for ``gamma="scale"`` and ``gamma="auto"``, as scikit-learn does, with weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.duplicates import row_slices
from ..linalg.arrays import Array, is_remote
from ..linalg.matrix import dot
from .formulation import is_number


def scale_gamma(gamma: float | str, X: Any, weight: Array | None = None) -> float:
    """The number for ``gamma="scale"``, ``"auto"`` or a number, as in scikit-learn.

    Rows count by their weights: a row of weight 2 counts as two rows.
    """
    if isinstance(gamma, str):
        if gamma == "auto":
            return 1.0 / X.shape[1]
        if gamma == "scale":
            variance = _variance(X, np.broadcast_to(1.0, X.shape[0]) if weight is None else weight)
            # Round to ten digits: the order of the rows changes the last ones, which could change learned vectors.
            return float(f"{1.0 / (X.shape[1] * variance):.10g}") if variance > 0 else 1.0
    elif is_number(gamma) and 0 < gamma < np.inf:
        return float(gamma)
    raise ValueError(f"gamma={gamma!r} must be 'scale', 'auto' or a positive number")


def _variance(X: Any, weight: Array) -> float:
    """The weighted variance of all entries, computed a block of rows at a time."""
    if is_remote(X):
        return X.variance()
    size = float(weight.sum()) * X.shape[1]
    if sp.issparse(X):
        return _sparse_variance(X, weight, size)
    parts = list(row_slices(X.shape[0], X.shape[1]))
    mean = sum(float(dot(np.ascontiguousarray(weight[b]), X[b].sum(axis=1, dtype=np.float64))) for b in parts) / size
    total = 0.0
    for b in parts:
        around = np.subtract(X[b], mean, dtype=np.float64)
        total += float(dot(np.ascontiguousarray(weight[b]), np.einsum("ij,ij->i", around, around)))
    rounding = 8 * np.finfo(np.float64).eps * abs(mean)  # of the mean: equal entries seem to differ by it
    return total / size if total / size > rounding**2 else 0.0


def _sparse_variance(X: Any, weight: Array, size: float) -> float:
    """The weighted variance of all entries of a CSR matrix, with zeros for entries that are not stored."""

    def stored() -> Iterator[tuple[Array, Array]]:
        for b in row_slices(X.shape[0], X.nnz // max(1, X.shape[0])):
            ends = X.indptr[b.start : b.stop + 1]
            yield np.repeat(weight[b], np.diff(ends)), X.data[ends[0] : ends[-1]]

    mean = sum(float(dot(w, x)) for w, x in stored()) / size
    total = sum(float(dot(w, np.subtract(x, mean, dtype=np.float64) ** 2)) for w, x in stored())
    zeros = size - sum(float(w.sum()) for w, _ in stored())
    return (total + zeros * mean**2) / size
