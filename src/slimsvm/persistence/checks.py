"""What attributes must be, each by itself: a few words and a test."""

from __future__ import annotations

from collections import UserList
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..linalg.arrays import Array


@dataclass(frozen=True)
class Check:
    """What a value must be, in words, and whether it is."""

    words: str
    holds: Callable[[Any], bool]

    def __or__(self, other: Check) -> Check:
        return Check(f"{self.words} or {other.words}", lambda value: self.holds(value) or other.holds(value))


def of(*kinds: type) -> Check:
    """An object of one of these classes."""
    return Check(" or ".join(kind.__name__ for kind in kinds), lambda value: type(value) in kinds)


def one_of(*values: Any) -> Check:
    """One of a few values."""
    return Check(
        f"one of {list(values)}", lambda value: any(type(value) is type(one) and value == one for one in values)
    )


def listed(inner: Check) -> Check:
    """A list of such things."""
    return Check(f"a list, each of {inner.words}", lambda v: isinstance(v, list) and all(map(inner.holds, v)))


def array(words: str, kinds: str, axes: int | None = None) -> Check:
    """An array of some kinds of numbers."""

    def holds(value: Any) -> bool:
        return isinstance(value, np.ndarray) and value.dtype.kind in kinds and axes in (None, value.ndim)

    return Check(words, holds)


def finite(value: Any) -> bool:
    """Are all numbers finite?"""
    return bool(np.isfinite(value.data if sp.issparse(value) else value).all())


def as_columns(value: Any) -> list[Any] | None:
    """Columns in an Index of pandas or a list of scikit-learn's own, as a plain list; None for anything else."""
    package = type(value).__module__.partition(".")[0]
    if package == "pandas" and hasattr(value, "names") and hasattr(value, "tolist"):
        return list(value.tolist())
    return list(value.data) if package == "sklearn" and isinstance(value, UserList) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return _is_number(value) and isinstance(value, (int, np.integer))


def _is_data(value: Any) -> bool:
    """Neither an object of a class nor something that holds one."""
    if isinstance(value, dict):
        return all(map(_is_data, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_data, value))
    if isinstance(value, np.ndarray) and value.dtype == object:
        return all(map(_is_data, value.ravel().tolist()))
    plain = (bool, int, float, str, slice, type, np.generic, np.dtype, np.ndarray)
    return value is None or isinstance(value, plain) or sp.issparse(value) or as_columns(value) is not None


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, np.generic))


def _is_rows(value: Any) -> bool:
    if sp.issparse(value):
        return value.dtype in (np.float32, np.float64)
    if not isinstance(value, np.ndarray):
        return False
    return (value.ndim == 2 and value.dtype in (np.float32, np.float64)) or (
        value.ndim == 1 and value.dtype.kind in "iu"
    )


def _is_labels(value: Any) -> bool:
    if not isinstance(value, np.ndarray) or value.ndim != 1:
        return False
    return value.dtype != object or all(map(_is_scalar, value.tolist()))


def _is_names(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and all(isinstance(name, str) for name in value.tolist())


NOTHING = Check("None", lambda value: value is None)
DATA = Check("numbers, texts and arrays", _is_data)
FLAG = Check("True or False", lambda value: isinstance(value, (bool, np.bool_)))
NUMBER = Check("a number", _is_number)
FINITE = Check("a finite number", lambda value: _is_number(value) and bool(np.isfinite(float(value))))
WHOLE = Check("an integer", _is_whole)
COUNT = Check("an integer from 0 to 2^31", lambda value: _is_whole(value) and 0 <= value <= 1 << 31)
COLUMNS = Check("an integer from 1 to 2^31", lambda value: _is_whole(value) and 1 <= value <= 1 << 31)
TEXT = Check("a text", lambda value: isinstance(value, str))
FLOATS = array("a vector of floats", "f", 1)
TABLE = array("a table of floats", "f", 2)
INTEGERS = array("a vector of integers", "iu", 1)
LABELS = Check("a vector of labels", _is_labels)
NAMES = Check("a vector of texts", _is_names)
ROWS = Check("rows of float32 or float64, dense or CSR, or a vector of row numbers", _is_rows)
THREADS = Check("None or an integer from -1024 to 1024", lambda v: v is None or (_is_whole(v) and -1024 <= v <= 1024))
WORKERS = Check("None or an integer from -64 to 64", lambda v: v is None or (_is_whole(v) and -64 <= v <= 64))


def unless(holds: bool, words: str) -> str:
    """The words, where something does not hold."""
    return "" if holds else words


def shape_complaint(name: str, value: Array, shape: tuple[int, ...]) -> str:
    """For an array that does not fit to the others."""
    return "" if value.shape == shape else f"{name} has the shape {value.shape}, where {shape} belongs"
