"""Labels and weights of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import CommandError, WrongUse, listed, suggestion
from .inputs import FEWEST_ROWS
from .tables import LABEL, Table


def target_of(table: Table, given: str | None) -> str:
    """The name of the column of labels."""
    if given is None:
        if table.sparse:
            return LABEL
        raise WrongUse(f"say which column has the labels with --target; columns of {table.path}: {listed(table.names)}")
    if given not in table.frame.columns:
        raise WrongUse(f"--target {given}: {table.path} has no such column{suggestion(given, table.names)}")
    return given


def labels_of(table: Table, target: str) -> Any:
    """Labels as an array: integers, truth values, floats or text, as they are in the table."""
    import pandas as pd

    series = table.frame[target]
    absent = np.flatnonzero(series.isna())
    if len(absent):
        raise CommandError(
            f"the target {target!r} has no value in {len(absent)} rows (the first is row {absent[0] + 1}); leave these "
            "rows out, or fill them in"
        )
    types = pd.api.types
    if types.is_bool_dtype(series.dtype):
        return series.to_numpy(dtype=bool)
    if types.is_integer_dtype(series.dtype):
        return series.to_numpy(dtype=np.int64)
    if types.is_float_dtype(series.dtype):
        return series.to_numpy(dtype=np.float64)
    if types.is_datetime64_any_dtype(series.dtype):
        raise CommandError(f"the target {target!r} has dates; a classifier needs classes")
    return np.array([str(value) for value in series])


def aligned(y: Any, classes: Any, target: str) -> Any:
    """Labels in the type of a model's classes: digits may be text in one file and numbers in another."""
    if classes is None:
        return y
    as_text = {str(label): label for label in np.asarray(classes).tolist()}
    is_text = {isinstance(label, str) for label in as_text.values()}
    if is_text != {y.dtype.kind == "U"}:
        y = np.array([as_text.get(str(label), label) for label in y.tolist()])
    if not np.isin(y, classes).any():
        raise CommandError(
            f"no label in {target!r} is a class of the model: there are {listed(map(str, np.unique(y).tolist()), 4)}, "
            f"the model has {listed(as_text, 4)}"
        )
    return y


def check_classes(y: Any, target: str) -> None:
    """Raise CommandError unless there are classes to learn."""
    classes, counts = np.unique(y, return_counts=True)
    if len(y) < FEWEST_ROWS:
        raise CommandError(f"{len(y)} rows are too few to learn from; at least {FEWEST_ROWS} are needed")
    if len(classes) < 2:
        raise CommandError(
            f"the target {target!r} has one class only, {str(classes[0])!r}; there is nothing to tell apart"
        )
    if y.dtype.kind in "fi":
        fractions = bool((classes != np.round(classes)).any())
        if fractions or len(classes) > max(20, len(y) // 10):
            kind = "numbers with fractions" if fractions else "numbers"
            raise CommandError(
                f"the target {target!r} has {len(classes)} different {kind}: this looks like a regression, and "
                "slimsvm train learns classes; choose another column, or cut the numbers into classes"
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
    import pandas as pd

    weights = pd.to_numeric(table.frame[name], errors="coerce").to_numpy(dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        raise CommandError(f"the weight {name!r} must be a number of at least 0; row {bad[0] + 1} has none")
    if not weights.any():
        raise CommandError(f"the weight {name!r} is 0 in all rows")
    return weights
