"""Helpers of code that runs on arrays of any library and device, through the Python array API standard.

Such code calls functions of the `namespace` of its array; the namespace of a numpy array is numpy.
"""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import Any

import numpy as np

from ..utils.sklearn_private import ARRAY_API_COMPAT

_float64_known: dict[tuple[str, str], bool] = {}  # by library and device


def is_array_api(X: Any) -> bool:
    """Whether X is an array of another library that follows the standard."""
    kind = type(X)
    if kind is np.ndarray or isinstance(X, (np.ndarray, np.generic)):
        return False
    return kind.__module__.partition(".")[0] in ("torch", "cupy") or hasattr(kind, "__array_namespace__")


def stays_on_device(X: Any) -> bool:
    """Whether to compute with X's own library: always on a device; in host memory only if scikit-learn's
    ``array_api_dispatch`` is on."""
    if not is_array_api(X):
        return False
    if not in_cpu_memory(X):
        return True
    from sklearn import get_config

    return bool(get_config()["array_api_dispatch"])


def in_cpu_memory(X: Any) -> bool:
    """Whether X is in host memory."""
    return "cpu" in str(device(X)).lower()


@lru_cache(maxsize=1)
def _compat() -> Any:
    """The package array-api-compat, or scikit-learn's copy of it."""
    for name in ("array_api_compat", ARRAY_API_COMPAT):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ImportError("arrays of torch and CuPy need the package array-api-compat: pip install 'slimsvm[gpu]'")


def namespace(X: Any) -> Any:
    """The array API namespace of X."""
    return np if isinstance(X, (np.ndarray, np.generic)) else _compat().array_namespace(X)


def device(X: Any) -> Any:
    """The device of X."""
    return _compat().device(X)


def to_numpy(X: Any) -> Any:
    """An array of another library as a numpy array; anything else unchanged."""
    if not is_array_api(X):
        return X
    if hasattr(X, "detach"):  # torch; numpy has no bfloat16
        X = X.detach().cpu()
        return (X.float() if "bfloat16" in str(X.dtype) else X).numpy()
    if hasattr(X, "get") and hasattr(X, "data"):  # CuPy
        return X.get()
    if not in_cpu_memory(X):
        X = _compat().to_device(X, device(namespace(X).zeros(1)))
    return np.from_dlpack(X) if hasattr(X, "__dlpack__") else np.asarray(X)


def asarray_like(X: Any, values: Any, dtype: Any = None) -> Any:
    """Values as an array of X's library on X's device; no copy for numpy arrays of this dtype."""
    if isinstance(X, np.ndarray):
        return np.asarray(values, dtype=dtype)
    values = np.asarray(values)
    if not (values.flags.writeable and values.flags.c_contiguous):  # torch warns of read-only memory
        values = values.copy(order="C")
    return namespace(X).asarray(values, dtype=dtype, device=device(X))


def cast(X: Any, dtype: Any) -> Any:
    """X in this dtype, without a copy if it has it already."""
    if X.dtype == dtype:
        return X
    return X.astype(dtype) if isinstance(X, np.ndarray) else namespace(X).astype(X, dtype)


def widest_float(X: Any) -> Any:
    """The widest float dtype of X's device: not every device has float64."""
    if isinstance(X, np.ndarray):
        return np.float64
    xp = namespace(X)
    return xp.float64 if has_float64(X) else xp.float32


def has_float64(X: Any) -> bool:
    """Whether X's device has float64."""
    if isinstance(X, np.ndarray):
        return True
    xp, place = namespace(X), device(X)
    key = xp.__name__, str(place)
    if key not in _float64_known:
        try:
            _float64_known[key] = bool(xp.zeros(1, dtype=xp.float64, device=place).dtype == xp.float64)
        except (TypeError, ValueError, RuntimeError):  # raised by torch on Apple's GPUs
            _float64_known[key] = False
    return _float64_known[key]


def numpy_dtype(X: Any) -> np.dtype[Any]:
    """The numpy dtype of X, if it is float32 or float64."""
    xp = namespace(X)
    known = {"float32": np.float32, "float64": np.float64}
    for name, kind in known.items():
        if X.dtype == getattr(xp, name):
            return np.dtype(kind)
    raise TypeError(f"X is of type {X.dtype}; arrays on a device must be float32 or float64")
