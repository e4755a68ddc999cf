"""Splits Dask collections of rows, labels and weights into matching blocks, without importing dask."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..linalg.array_api import to_numpy
from ..linalg.arrays import Array
from .target_kinds import one_column


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr")


def columns_and_dtype(X: Any, y: Any = None, needed: bool = False) -> tuple[list[str] | None, np.dtype]:
    """Column names (None unless all are strings) and the float dtype of the rows; columns must be numeric."""
    if y is None and needed:
        raise ValueError("fit needs y, the labels of the rows: a dask array or series, or an array")
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimension{'s' * (X.ndim > 1)}; rows x columns are needed: X.reshape(-1, 1)")
    if not hasattr(X, "columns"):
        if X.dtype.kind not in "fiub":
            raise ValueError(f"X has values of type {X.dtype}, not numbers; encode categories first")
        return None, _float_of([X.dtype])
    types = X.dtypes
    bad = [str(name) for name, kind in types.items() if getattr(kind, "kind", "O") not in "fiub"]
    if bad:
        shown = ", ".join(bad[:5]) + (", ..." if len(bad) > 5 else "")
        raise ValueError(
            f"columns {shown} hold no numbers; encode categories first, for example with dask.dataframe.get_dummies, "
            "or leave these columns out"
        )
    names = list(X.columns)
    return names if all(isinstance(name, str) for name in names) else None, _float_of(types.tolist())


def _float_of(types: list[Any]) -> np.dtype:
    """float32 if all columns are float32, else float64."""
    return np.dtype(np.float32 if all(str(kind).lower() == "float32" for kind in types) else np.float64)


def partitions(X: Any, y: Any, weight: Any, scheduler: Any) -> list[tuple[Any, Any, Any]]:
    """Delayed blocks of rows with their labels and weights (or None).

    Collections of unknown lengths with equally many blocks are assumed to have blocks of equal lengths, which the
    workers check. Otherwise lengths are computed.
    """
    rows, lengths = _parts(X)
    given = [(name, other) for name, other in (("y", y), ("sample_weight", weight)) if other is not None]
    found: dict[str, list[Any]] = {"y": [None] * len(rows), "sample_weight": [None] * len(rows)}
    for name, other in given:
        remote = is_dask(other)
        parts, theirs = _parts(other) if remote else ([_row_values(other, name, name == "y")], [len(other)])
        alike = remote and len(parts) == len(rows) and (theirs == lengths or theirs is None or lengths is None)
        if not alike:
            lengths = _lengths(rows, scheduler) if lengths is None else lengths
            theirs = _lengths(parts, scheduler) if theirs is None else theirs
            parts = _cut(parts, theirs, lengths, name)
        found[name] = parts
    return list(zip(rows, found["y"], found["sample_weight"], strict=True))


def _row_values(other: Any, name: str, columns: bool = False) -> Array:
    """An array of one value for each row, or with ``columns`` several."""
    values = np.asarray(to_numpy(other))
    values = values if columns else one_column(values)
    if values.ndim not in ((1, 2) if columns else (1,)):
        raise ValueError(f"{name} has shape {values.shape}; one value for each row is needed")
    return values


def _parts(collection: Any) -> tuple[list[Any], list[int] | None]:
    """Delayed blocks, and the number of rows of each, or None if unknown."""
    if not hasattr(collection, "chunks"):
        return list(collection.to_delayed()), None
    if collection.ndim > 1:
        collection = collection.rechunk({1: collection.shape[1]})
    lengths = collection.chunks[0]
    known = not np.isnan(lengths).any()
    return collection.to_delayed().ravel().tolist(), [int(length) for length in lengths] if known else None


def _lengths(parts: list[Any], scheduler: Any) -> list[int]:
    import dask

    return list(scheduler.results(lambda: [dask.delayed(len, pure=False)(part) for part in parts]))


def _cut(parts: list[Any], theirs: list[int], wanted: list[int], name: str) -> list[Any]:
    """Rechunk values from blocks of lengths ``theirs`` to blocks of lengths ``wanted``."""
    import dask

    if sum(theirs) != sum(wanted):
        raise ValueError(f"X has {sum(wanted)} rows, {name} has {sum(theirs)}")
    ends, join = np.cumsum(theirs).tolist(), dask.delayed(joined, pure=False)
    blocks = []
    for stop, length in zip(np.cumsum(wanted).tolist(), wanted, strict=True):
        pieces, cuts = [], []
        for part, size, end in zip(parts, theirs, ends, strict=True):
            first, last = max(stop - length - end + size, 0), min(stop - end + size, size)
            if first < last:
                here = isinstance(part, np.ndarray)  # slice here: only the needed rows are sent
                pieces.append(part[first:last] if here else part)
                cuts.append((0, last - first) if here else (first, last))
        blocks.append(join(pieces, cuts))
    return blocks


def joined(parts: list[Any], cuts: list[tuple[int, int]]) -> Array:
    """Concatenate slices ``(start, stop)`` of blocks."""
    if not parts:
        return np.empty(0)
    return np.concatenate([np.asarray(part)[a:b] for part, (a, b) in zip(parts, cuts, strict=True)])
