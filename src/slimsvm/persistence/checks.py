"""Checks of attribute values: a test, and its description for error messages."""

from __future__ import annotations

from collections import UserList
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import NoneType
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..linalg.arrays import Array

ANY_KIND = "biufUO"  # kinds of dtypes that a file can hold


@dataclass(frozen=True)
class Check:
    """A test of a value, and words for error messages on what the value must be."""

    words: str
    holds: Callable[[Any], bool]

    def __or__(self, other: Check) -> Check:
        return Check(f"{self.words} or {other.words}", lambda value: self.holds(value) or other.holds(value))


def of(*kinds: type) -> Check:
    """The check for an object of exactly one of these classes; subclasses fail."""
    return Check(" or ".join(kind.__name__ for kind in kinds), lambda value: type(value) in kinds)


def one_of(*values: Any) -> Check:
    return Check(
        f"one of {list(values)}", lambda value: any(type(value) is type(one) and value == one for one in values)
    )


def list_of(item: Check) -> Check:
    return Check(f"a list, each of {item.words}", lambda v: isinstance(v, list) and all(map(item.holds, v)))


def is_array(value: Any, kinds: str, axes: int | None = None) -> bool:
    """Is the value an array with a dtype of these kinds and, if given, this number of axes?"""
    return isinstance(value, np.ndarray) and value.dtype.kind in kinds and axes in (None, value.ndim)


def is_finite(value: Any) -> bool:
    """Are all numbers of an array or a sparse matrix finite?"""
    return bool(np.isfinite(value.data if sp.issparse(value) else value).all())


def as_columns(value: Any) -> list[Any] | None:
    """A pandas Index or a list class of scikit-learn as a plain list; None for anything else."""
    package = type(value).__module__.partition(".")[0]
    if package == "pandas" and "Index" in (base.__name__ for base in type(value).__mro__):
        return list(value.tolist())
    return list(value.data) if package == "sklearn" and isinstance(value, UserList) else None


def _is_number(value: Any, kinds: tuple[type, ...] = (int, float, np.integer, np.floating)) -> bool:
    return isinstance(value, kinds) and type(value) is not bool


_is_whole = partial(_is_number, kinds=(int, np.integer))


def _is_data(value: Any) -> bool:
    """Is the value plain data: numbers, texts, arrays and containers of these?"""
    match value:
        case dict():
            return all(map(_is_data, value.values()))
        case list() | tuple():
            return all(map(_is_data, value))
        case np.ndarray() if value.dtype == object:
            return all(map(_is_data, value.ravel().tolist()))
        case None | bool() | int() | float() | str() | slice() | type() | np.generic() | np.dtype() | np.ndarray():
            return True
    return sp.issparse(value) or as_columns(value) is not None


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (NoneType, bool, int, float, str, np.generic))


def _is_rows(value: Any) -> bool:
    if sp.issparse(value) or is_array(value, "f", 2):
        return value.dtype in (np.float32, np.float64)
    return is_array(value, "iu", 1)


def _is_labels(value: Any) -> bool:
    return is_array(value, ANY_KIND, 1) and (value.dtype != object or all(map(_is_scalar, value.tolist())))


TEXT = Check("a text", lambda value: isinstance(value, str))
NOTHING = Check("None", lambda value: value is None)
DATA = Check("numbers, texts and arrays", _is_data)
FLAG = Check("True or False", lambda value: isinstance(value, (bool, np.bool_)))
NUMBER = Check("a number", _is_number)
FINITE = Check("a finite number", lambda value: _is_number(value) and bool(np.isfinite(float(value))))
WHOLE = Check("an integer", _is_whole)
COUNT = Check("an integer from 0 to 2^31", lambda value: _is_whole(value) and 0 <= value <= 1 << 31)
COLUMNS = Check("an integer from 1 to 2^31", lambda value: _is_whole(value) and 1 <= value <= 1 << 31)
FLOATS = Check("a vector of floats", partial(is_array, kinds="f", axes=1))
TABLE = Check("a table of floats", partial(is_array, kinds="f", axes=2))
INTEGERS = Check("a vector of integers", partial(is_array, kinds="iu", axes=1))
LABELS = Check("a vector of labels", _is_labels)
NAMES = Check("a vector of texts", lambda value: is_array(value, ANY_KIND, 1) and all(map(TEXT.holds, value.tolist())))
ROWS = Check("rows of float32 or float64, dense or CSR, or a vector of row numbers", _is_rows)
THREADS = Check("None or an integer from -1024 to 1024", lambda v: v is None or (_is_whole(v) and -1024 <= v <= 1024))
WORKERS = Check("None or an integer from -64 to 64", lambda v: v is None or (_is_whole(v) and -64 <= v <= 64))


def unless(holds: bool, words: str) -> str:
    """An error message, or the empty text if the condition holds."""
    return "" if holds else words


def shape_complaint(name: str, value: Array, shape: tuple[int, ...]) -> str:
    """The error message for an array of another shape; empty if the shape is right."""
    return unless(value.shape == shape, f"{name} has the shape {value.shape}, where {shape} belongs")
