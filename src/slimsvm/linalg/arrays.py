"""Arrays as the core reads them, and rows that are not in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core

Array = NDArray[Any]


class RemoteArray:
    """The base of row sources that are no array in memory but serve as a dataset's X, see `rows.remote.RemoteRows`."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

        def __getitem__(self, rows: Any) -> Any: ...


def is_remote(X: Any) -> bool:
    """Whether the rows are outside the memory of this process: in files, on workers, or on a device."""
    return isinstance(X, RemoteArray)


def to_memory(X: Any) -> Any:
    """All rows as an array in memory."""
    return X[:] if is_remote(X) else X


def aligned(X: Array) -> Array:
    """X, or a copy where its entries are not aligned, as in a record array or a buffer of bytes."""
    return X if X.flags.aligned and not any(step % X.itemsize for step in X.strides) else X.copy()


def as_float64(X: Any) -> Any:
    """float32 rows as float64; row numbers of a precomputed kernel stay what they are."""
    return X.astype(np.float64) if X.dtype == np.float32 else X


def core_rows(X: Any, offset: Array | None = None, scales: Array | None = None) -> _core.Rows:
    """The core's view of X, or of X times a scale for each input: no copy for floats of any layout and for CSR."""
    if sp.issparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        index = np.result_type(X.indices, X.indptr)
        starts, columns = (aligned(np.ascontiguousarray(part, dtype=index)) for part in (X.indptr, X.indices))
        return _core.sparse_rows(aligned(np.ascontiguousarray(X.data)), columns, starts, X.shape[1], scales)
    return _core.dense_rows(aligned(X), offset, scales)
