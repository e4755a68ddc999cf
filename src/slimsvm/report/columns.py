"""The columns of a table of rows in a few numbers, whatever they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .markup import number

MOST_CELLS = 20_000_000  # of a sparse matrix that is made dense for a look at it


@dataclass(frozen=True)
class Columns:
    """How many there are, and for each its name, the least, the median and the largest value, and what is missing.

    No lines where a sparse matrix is too large to be looked at.
    """

    count: int
    lines: list[list[Any]]


def columns_of(X: Any, names: Sequence[Any] | None = None) -> Columns:
    """Of arrays, sparse matrices and tables with columns of any kind."""
    if sp.issparse(X):
        if np.prod(X.shape) > MOST_CELLS:
            return Columns(X.shape[1], [])
        X = X.toarray()
    labels, names = list(getattr(X, "columns", [])), list(names if names is not None else [])
    count = X.shape[1] if hasattr(X, "shape") else np.asarray(X).shape[1]
    columns = [np.asarray(X[label]) for label in labels] if labels else list(np.asarray(X).T)
    known = names or labels or [f"x{k}" for k in range(count)]
    return Columns(count, [[str(name), *_summary(column)] for name, column in zip(known, columns, strict=True)])


def _summary(column: Any) -> list[str]:
    try:
        values = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return _words(column)
    known = values[~np.isnan(values)]
    ends = [number(float(f(known))) for f in (np.min, np.median, np.max)] if len(known) else ["–"] * 3
    return [*ends, str(len(values) - len(known))]


def _words(column: Any) -> list[str]:
    """Of a column of categories: how many there are."""
    known = [value for value in column.tolist() if value is not None and value == value]
    return ["–", f"{len(set(map(str, known)))} different", "–", str(len(column) - len(known))]
