"""The core's views of dense and sparse arrays, and the base class of rows outside memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core

Array = NDArray[Any]


class RemoteArray:
    """Base of `rows.remote.RemoteRows`, which can be the X of a data set in place of an array in memory."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

        def __getitem__(self, rows: Any) -> Any: ...


def is_remote(X: Any) -> bool:
    """Whether the rows are outside the memory of this process: in files, on Dask workers, or on a device."""
    return isinstance(X, RemoteArray)


def to_memory(X: Any) -> Any:
    """All rows as an array in memory."""
    return X[:] if is_remote(X) else X


def aligned(X: Array) -> Array:
    """X, copied if its entries are not aligned, as in a record array or a buffer of bytes."""
    return X if X.flags.aligned and not any(step % X.itemsize for step in X.strides) else X.copy()


def as_float64(X: Any) -> Any:
    """Convert float32 rows to float64; other dtypes, such as the row numbers of a precomputed kernel, stay."""
    return X.astype(np.float64) if X.dtype == np.float32 else X


def core_rows(X: Any, offset: Array | None = None, scales: Array | None = None) -> _core.Rows:
    """The core's view of X, or of X scaled input by input; floats of any layout and CSR are not copied."""
    if sp.issparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        index = np.result_type(X.indices, X.indptr)
        starts, columns = (aligned(np.ascontiguousarray(part, dtype=index)) for part in (X.indptr, X.indices))
        return _core.sparse_rows(aligned(np.ascontiguousarray(X.data)), columns, starts, X.shape[1], scales)
    return _core.dense_rows(aligned(X), offset, scales)
