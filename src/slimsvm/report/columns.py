"""A summary of each column of a table: range, median, missing values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .markup import number

MAX_DENSE_CELLS = 20_000_000  # larger sparse matrices are not summarized, as that makes them dense


@dataclass(frozen=True)
class Columns:
    """The number of columns, and a line for each: name, minimum, median, maximum, number of missing values.

    A sparse matrix that is too large has no lines.
    """

    count: int
    lines: list[list[Any]]


def columns_of(X: Any, names: Sequence[Any] | None = None) -> Columns:
    """Summarize the columns of an array, a sparse matrix or a data frame."""
    if sp.issparse(X):
        if np.prod(X.shape) > MAX_DENSE_CELLS:
            return Columns(X.shape[1], [])
        X = X.toarray()
    labels, names = list(getattr(X, "columns", [])), list(names if names is not None else [])
    count = np.shape(X)[1]
    columns = [np.asarray(X[label]) for label in labels] if labels else list(np.asarray(X).T)
    shown = names or labels or [f"x{k}" for k in range(count)]
    return Columns(count, [[str(name), *_summary(column)] for name, column in zip(shown, columns, strict=True)])


def _summary(column: Any) -> list[str]:
    try:
        values = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return _words(column)
    present = values[~np.isnan(values)]
    ends = [number(float(f(present))) for f in (np.min, np.median, np.max)] if len(present) else ["–"] * 3
    return [*ends, str(len(values) - len(present))]


def _words(column: Any) -> list[str]:
    """Summarize a column of categories by their number."""
    present = [value for value in column.tolist() if value is not None and value == value]
    return ["–", f"{len(set(map(str, present)))} different", "–", str(len(column) - len(present))]
