"""Reads labels, regression targets and weights from a table."""

from __future__ import annotations

import re
import shlex
from typing import Any

import numpy as np

from .errors import CommandError, WrongUse, listed, suggestion
from .inputs import FALSE, MIN_ROWS, TRUE, Column, numbers
from .tables import LABEL, MISSING, Table, pd


def target_of(table: Table, given: str | None) -> str:
    """The name of the column of labels."""
    if given is None:
        if table.sparse:
            return LABEL
        raise WrongUse(
            f"say which column has the labels with --target; columns of {table.path}: {listed(table.names)} "
            "(--task outliers needs none)"
        )
    if given not in table.frame.columns:
        raise WrongUse(f"--target {given}: {table.path} has no such column{suggestion(given, table.names)}")
    return given


def labels_of(table: Table, target: str, classes: Any = None) -> Any:
    """Labels as an array of integers, booleans, floats or text; in the type of a model's ``classes`` if given.

    Text of a CSV file becomes numbers only if this loses nothing: 007 and 7 are two classes.
    """
    series = table.frame[target]
    written = None if table.raw is None else table.raw([target])[target]
    _check_missing(series, written, table.missing, target)
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        raise CommandError(f"the target {target!r} has dates; a classifier needs classes")
    if classes is not None:
        return _as_classes(series if written is None else written, np.asarray(classes), target)
    return _typed_labels(series) if written is None else _text_labels(written, series)


def numbers_of(table: Table, target: str) -> Any:
    """Regression targets as an array."""
    _check_missing(table.frame[target], None, table.missing, target)
    return numbers(table.frame[target], Column(target)).to_numpy()


def check_row_count(rows: Any) -> None:
    """Raise CommandError for fewer than MIN_ROWS rows."""
    if len(rows) < MIN_ROWS:
        raise CommandError(f"{len(rows)} rows are too few to learn from; at least {MIN_ROWS} are needed")


def _check_missing(series: Any, written: Any, missing: Any, target: str) -> None:
    gone = series.isna() if written is None else written.isin(missing)
    absent = np.flatnonzero(gone)
    if not len(absent):
        return
    marks = [] if written is None else sorted(set(written[gone]))
    advice = "leave these rows out, or fill them in"
    if any(marks):
        others = sorted(missing - {*MISSING, *marks})
        kept = "".join(f" --missing {shlex.quote(mark)}" for mark in others)
        only = "only these and empty fields" if others else "only empty fields"
        advice += f"; if that is a class, say --missing ''{kept}: {only} are missing then"
    raise CommandError(
        f"the target {target!r} has no value in {len(absent)} rows (the first is row {absent[0] + 1})"
        + (f"; {listed(filter(None, marks))} counts as missing" if any(marks) else "")
        + f"; {advice}"
    )


def _typed_labels(series: Any) -> Any:
    """Labels of a Parquet or svmlight file, whose columns have types."""
    types = pd.api.types
    if types.is_bool_dtype(series.dtype):
        return series.to_numpy(dtype=bool)
    if types.is_integer_dtype(series.dtype) and series.max() <= np.iinfo(np.int64).max:
        return series.to_numpy(dtype=np.int64)
    if types.is_float_dtype(series.dtype):
        return series.to_numpy(dtype=np.float64)
    return np.array([str(value) for value in series])


def _text_labels(written: Any, guessed: Any) -> Any:
    """Labels of a CSV file, in the narrowest type that keeps all of their text."""
    texts = set(written)
    if texts <= {*TRUE, *FALSE}:
        return written.isin(TRUE).to_numpy()
    if all(map(_is_integer, texts)):
        return written.to_numpy(dtype=object).astype(np.int64)
    if pd.api.types.is_float_dtype(guessed.dtype):
        values = guessed.to_numpy(dtype=np.float64)
        fractions = bool((values != np.round(values)).any())
        if fractions or all(repr(float(value)) == text for value, text in zip(values, written, strict=True)):
            return values
    return np.array(list(written), dtype=str)


def _is_integer(text: str) -> bool:
    """Is the text a 64-bit integer in its canonical spelling?"""
    return re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text) is not None and -(2**63) <= int(text) < 2**63


def _as_classes(series: Any, classes: Any, target: str) -> Any:
    """Labels in the type of a model's classes, as the same digits may be text in one file and numbers in another."""
    values = [str(value) for value in series]
    if classes.dtype.kind in "UO":
        y, unlike = np.array(values, dtype=str), []
    else:
        numbers_by_text = {text: _number(text) for text in set(values)}
        unlike = sorted(text for text, value in numbers_by_text.items() if value is None)
        y = np.array([numbers_by_text[text] for text in values], dtype=object)
        y = y if unlike else _narrowed(y, classes.dtype.kind)
    if unlike or not np.isin(y, classes).any():
        which = "no label" if not unlike or len(unlike) == len(set(values)) else "not every label"
        raise CommandError(
            f"{which} in {target!r} is a class of the model: there are {listed(unlike or sorted(set(values)), 4)}, "
            f"the model has {listed(map(str, classes.tolist()), 4)}"
        )
    return y


def _narrowed(y: Any, kind: str) -> Any:
    """Numbers as booleans or integers if the classes are and nothing is lost, otherwise as floats."""
    if kind == "b" and set(y) <= {0, 1}:
        return y.astype(bool)
    if kind in "bi" and all(float(value).is_integer() and -(2**63) <= value < 2**63 for value in y):
        return y.astype(np.int64)
    return y.astype(np.float64)


def _number(text: str) -> Any:
    """Parse a number or boolean (as 0 or 1); None for any other text."""
    if text in (*TRUE, *FALSE):
        return int(text in TRUE)
    try:
        return int(text) if _is_integer(text) else float(text)
    except ValueError:
        return None


def check_classes(y: Any, target: str) -> None:
    """Raise CommandError for too few rows, a single class, or more classes than a classification target has."""
    classes, counts = np.unique(y, return_counts=True)
    check_row_count(y)
    if len(classes) < 2:
        raise CommandError(
            f"the target {target!r} has one class only, {str(classes[0])!r}; there is nothing to tell apart"
        )
    if y.dtype.kind in "fi":
        fractions = bool((classes != np.round(classes)).any())
        if fractions or len(classes) > max(20, len(y) // 10):
            kind = "numbers with fractions" if fractions else "numbers"
            raise CommandError(
                f"the target {target!r} has {len(classes)} different {kind}: this looks like a regression; leave out "
                "--task classification, choose another column, or cut the numbers into classes"
            )
    elif len(classes) > max(20, len(y) // 2):
        raise CommandError(
            f"the target {target!r} has {len(classes)} different texts in {len(y)} rows; is it the column of classes?"
        )
    if counts.min() < 2:
        rare = [str(one) for one in classes[counts < 2]]
        raise CommandError(f"classes with a single row cannot be learned: {listed(rare)}; leave them out or join them")


def weights_of(table: Table, name: str | None) -> Any:
    """Weights of the rows, or None."""
    if name is None:
        return None
    if name not in table.frame.columns:
        raise WrongUse(f"--weight {name}: {table.path} has no such column{suggestion(name, table.names)}")
    weights = pd.to_numeric(table.frame[name], errors="coerce").to_numpy(dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        value = table.frame[name].iloc[bad[0]]
        has = "none" if pd.isna(value) else repr(value) if type(value) is str else str(value)
        raise CommandError(f"the weight {name!r} must be a number of at least 0; row {bad[0] + 1} has {has}")
    if not weights.any():
        raise CommandError(f"the weight {name!r} is 0 in all rows")
    return weights
