"""Chooses the columns of a table that become inputs, finds their kinds and converts their values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import CommandError, WrongUse, listed, suggestion
from .tables import UNNAMED, Table, pd

if TYPE_CHECKING:
    from .options import ColumnOptions

NUMBER, CATEGORY = "number", "category"
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")  # the spellings that pandas reads as booleans
MAX_CATEGORIES = 50  # per column, unless --categorical names it
MIN_NUMERIC_SHARE = 0.8  # a text column with at least this share of numbers has errors or missing values in the others
MIN_WORDS_OF_FREE_TEXT = 4  # average per row; from here on a text column is free text
MIN_ROWS = 10
COMMA = re.compile(r"[-+]?[0-9.]*,[0-9]+")
WHOLE = re.compile(r"(0|-?[1-9][0-9]*)\.0")


@dataclass(frozen=True)
class Column:
    """An input of a model: its name, its kind, and whether training rows had missing values in it."""

    name: str
    kind: str = NUMBER
    missing: bool = False

    def values(self, series: Any) -> Any:
        """Numbers as float64, categories as text; a missing category is the empty text."""
        if self.kind == CATEGORY:
            return texts(series)
        return numbers(series, self) if self.kind == NUMBER else _untyped(series)


@dataclass(frozen=True)
class ModelInputs:
    """The inputs of a model, with notes about columns that were left out."""

    columns: tuple[Column, ...]
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def plain(self) -> bool:
        """Are all inputs numbers without missing values? Then no encoder is needed."""
        return all(column.kind == NUMBER and not column.missing for column in self.columns)

    def of_kind(self, kind: str) -> list[Column]:
        return [column for column in self.columns if column.kind == kind]

    def as_json(self) -> list[dict[str, Any]]:
        return [asdict(column) for column in self.columns]

    @classmethod
    def from_json(cls, columns: Any) -> ModelInputs:
        return cls(tuple(Column(str(one["name"]), str(one["kind"]), bool(one["missing"])) for one in columns))

    def rows(self, table: Table) -> Any:
        """A data frame of these inputs, matched by name; CommandError if one is absent or of another kind."""
        absent = [name for name in self.names if name not in table.frame.columns]
        if absent and not table.sparse:
            raise CommandError(
                f"{table.path} has no column {listed(absent)}"
                + (suggestion(absent[0], table.names) if len(absent) == 1 else f"; columns: {listed(table.names)}")
            )
        plain = self._plain_numbers(table)
        if len(plain.columns) == len(self.columns):
            return plain
        zeros = pd.Series(np.zeros(table.n_rows))
        categories = table.texts([one.name for one in self.of_kind(CATEGORY) if one.name not in absent])

        def series(one: Column) -> Any:
            if one.name in absent:
                return zeros
            return categories[one.name] if one.kind == CATEGORY else table.frame[one.name]

        others = {one.name: one.values(series(one)) for one in self.columns if one.name not in plain.columns}
        return pd.concat([plain, pd.DataFrame(others)], axis=1)[self.names]

    def _plain_numbers(self, table: Table) -> Any:
        """The inputs with a numeric dtype and only valid values, converted together, which is fast."""
        numeric = set(table.frame.columns[_numeric_places(table.frame)])
        numbers = [one for one in self.of_kind(NUMBER) if one.name in numeric]
        values = table.frame[[one.name for one in numbers]].to_numpy(dtype=np.float64)
        missing = np.array([one.missing for one in numbers], dtype=bool)
        good = ~np.isinf(values).any(axis=0) & (missing | ~np.isnan(values).any(axis=0))
        names = [one.name for one, known in zip(numbers, good, strict=True) if known]
        return pd.DataFrame(values[:, good], columns=names, index=table.frame.index)


# --- which columns ------------------------------------------------------------------------------------------------


def named(options: Sequence[str] | None, option: str, table: Table) -> list[str]:
    """Column names of a repeatable option; each use gives one name, or several separated by commas."""
    names: list[str] = []
    for text in options or ():
        names += [text] if text in table.frame.columns else [part.strip() for part in text.split(",") if part.strip()]
    for name in names:
        if name not in table.frame.columns:
            raise WrongUse(f"{option} {name}: {table.path} has no such column{suggestion(name, table.names)}")
    return names


def choose(table: Table, options: ColumnOptions, target: str | None) -> ModelInputs:
    """Choose the inputs of a new model: the columns asked for, or all but target, weights and dropped columns."""
    asked, dropped = named(options.columns, "--columns", table), named(options.drop, "--drop", table)
    codes = named(options.categorical, "--categorical", table)
    both = sorted(set(asked) & set(dropped))
    if both:
        raise WrongUse(f"--columns and --drop both name {listed(both)}")
    left_out = {target, options.weight, *dropped}
    for name in filter(None, (target, options.weight)):
        if name in asked:
            raise WrongUse(f"--columns {name}: this column is the {'target' if name == target else 'weight'}")
    names = [name for name in asked or table.names if name not in left_out]
    columns, notes = [], []
    plain = {} if codes else _plain_columns(table)
    for name in names:
        if name in plain:
            columns.append(plain[name])
            continue
        series = table.frame[name]
        if _is_constant(series):
            notes.append(f"column {name!r} has the same value in all rows: not used")
        elif name not in asked and _counts_rows(series, name):
            notes.append(f"column {name!r} only counts the rows: not used (--columns would keep it)")
        else:
            columns.append(_column(series, name, name in codes))
    if not columns:
        raise CommandError(f"{table.path}: no column is left to learn from; {'; '.join(notes) or 'all are dropped'}")
    return ModelInputs(tuple(columns), tuple(notes))


def _numeric_places(frame: Any) -> list[int]:
    """Positions of the columns with a numeric dtype of numpy."""
    return [k for k, kind in enumerate(frame.dtypes) if isinstance(kind, np.dtype) and kind.kind in "iuf"]


def _plain_columns(table: Table) -> dict[str, Column]:
    """Numeric columns that are neither constant nor a row index, found together, which is fast for many columns."""
    places = _numeric_places(table.frame)
    values = table.frame.iloc[:, places].to_numpy(dtype=np.float64)
    low, high = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
    exact = np.maximum(-low, high) < 2.0**53  # so that differences of integers are exact
    with np.errstate(invalid="ignore"):
        counts = (np.diff(values, axis=0) == 1).all(axis=0)
    missing, names = np.isnan(values).any(axis=0), table.frame.columns[places]
    varied = (low < high) & exact & ~counts
    return {
        name: Column(name, NUMBER, bool(gap))
        for name, is_varied, gap in zip(names, varied, missing, strict=True)
        if is_varied and not name.startswith(UNNAMED)
    }


def _is_constant(series: Any) -> bool:
    present = series.dropna()
    if pd.api.types.is_numeric_dtype(series.dtype):
        return len(np.unique(present)) < 2
    return present.astype(str).nunique() + int(len(present) < len(series)) < 2


def _counts_rows(series: Any, name: str) -> bool:
    """Is the column a saved index: consecutive integers, or distinct integers in a column without a name?"""
    if not pd.api.types.is_integer_dtype(series.dtype) or len(series) < MIN_ROWS or series.isna().any():
        return False
    values = series.to_numpy(dtype=np.int64)
    return bool((np.diff(values) == 1).all()) or (name.startswith(UNNAMED) and len(np.unique(values)) == len(values))


def _column(series: Any, name: str, is_code: bool) -> Column:
    """Find the kind of a column; CommandError with advice if it cannot be an input."""
    types, dtype = pd.api.types, series.dtype
    missing = bool(series.isna().any())
    if is_code:
        return Column(name, CATEGORY, missing)
    if types.is_bool_dtype(dtype) or types.is_numeric_dtype(dtype):
        if types.is_complex_dtype(dtype):
            raise CommandError(f"column {name!r} has complex numbers; leave it out with --drop {quote(name)}")
        return Column(name, NUMBER, missing)
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        raise CommandError(_date_complaint(name))
    present = series.dropna()
    if present.map(lambda value: isinstance(value, (list, dict, set, np.ndarray, bytes))).any():
        raise CommandError(f"column {name!r} has lists or bytes; leave it out with --drop {quote(name)}")
    return _text_column(present, name, missing)


def _text_column(present: Any, name: str, missing: bool) -> Column:
    """Find the kind of a text column: numbers or categories; CommandError for dates, free text and identifiers."""
    text = texts(present)
    if text.isin([TRUE[0], FALSE[0]]).all():  # booleans with missing values
        return Column(name, NUMBER, missing)
    numeric = pd.to_numeric(text, errors="coerce").notna()
    if numeric.all():
        return Column(name, NUMBER, missing)
    if numeric.mean() >= MIN_NUMERIC_SHARE:
        others = sorted(set(text[~numeric]))
        raise CommandError(
            f"column {name!r} has numbers, but {listed(others, 3)} in {int((~numeric).sum())} rows; if that stands for "
            f"a missing value, say --missing {quote(others[0])}; else --categorical or --drop {quote(name)}"
        )
    comma = text.str.replace(".", "", regex=False).str.replace(",", ".", n=1, regex=False)
    if pd.to_numeric(comma, errors="coerce").notna().all():
        raise CommandError(f"column {name!r} has numbers with a decimal comma; say --decimal ,")
    distinct = text.nunique()
    if _are_dates(text):
        raise CommandError(_date_complaint(name))
    if distinct > max(2, 0.5 * len(text)) and text.str.split().str.len().mean() >= MIN_WORDS_OF_FREE_TEXT:
        raise CommandError(f"column {name!r} is free text, which is no input; leave it out with --drop {quote(name)}")
    if distinct > max(MIN_ROWS, 0.9 * len(text)):
        raise CommandError(
            f"column {name!r} has another text in nearly every row, as names and numbers of things have; leave it out "
            f"with --drop {quote(name)}"
        )
    if distinct > MAX_CATEGORIES:
        raise CommandError(
            f"column {name!r} has {distinct} different texts, and each would be an input; leave it out with --drop "
            f"{quote(name)}, join some of them, or say --categorical {quote(name)} if that is meant"
        )
    return Column(name, CATEGORY, missing)


def _are_dates(text: Any) -> bool:
    """Do texts look like 2024-05-01 or 01.05.2024 12:00?"""
    return bool(text.str.match(r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T]\d{1,2}:\d{2}.*)?$").all())


def _date_complaint(name: str) -> str:
    return (
        f"column {name!r} has dates, which are no inputs as they are; leave it out with --drop {quote(name)}, or put "
        "what counts (the hour, the weekday, days since …) in columns of numbers"
    )


# --- values -------------------------------------------------------------------------------------------------------


def numbers(series: Any, column: Column) -> Any:
    """A numeric column as float64; CommandError if it has values that are not numbers."""
    if series.dtype == object or isinstance(series.dtype, (pd.CategoricalDtype, pd.StringDtype)):
        present = series.dropna()
        parsed = pd.to_numeric(present.map(_text).replace({TRUE[0]: "1", FALSE[0]: "0"}), errors="coerce")
        if parsed.isna().any():
            row = parsed.index[parsed.isna()][0]
            hint = "; if that is a decimal comma, say --decimal ," if COMMA.fullmatch(str(series[row]).strip()) else ""
            raise CommandError(f"column {column.name!r} needs numbers; row {row + 1} has {str(series[row])!r}{hint}")
        series = parsed.reindex(series.index)
    try:
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise CommandError(f"column {column.name!r} needs numbers; it has {series.dtype}") from None
    _check(values, column)
    return pd.Series(values, index=series.index)


def _check(values: Any, column: Column) -> None:
    bad = np.flatnonzero(np.isinf(values))
    if len(bad):
        raise CommandError(f"column {column.name!r} has an infinite value in row {bad[0] + 1}")
    bad = np.flatnonzero(np.isnan(values))
    if len(bad) and not column.missing:
        raise CommandError(
            f"column {column.name!r} has no value in row {bad[0] + 1} ({len(bad)} in all), and in training it had one "
            "in every row; fill it in, leave these rows out, or train on rows with missing values"
        )


def texts(series: Any) -> Any:
    """Categories as text: 3.0 becomes 3, booleans have one spelling, a missing value is the empty text."""
    return series.astype(object).map(_text)


def _untyped(series: Any) -> Any:
    """Values of a column whose kind the model does not know: float64 if numeric, else text."""
    if pd.api.types.is_numeric_dtype(series.dtype):
        return pd.Series(series.to_numpy(dtype=np.float64, na_value=np.nan), index=series.index)
    return texts(series)


def _text(value: Any) -> str:
    if value is None or (np.ndim(value) == 0 and pd.isna(value)):
        return ""
    text = str(value)
    if text in TRUE:
        return TRUE[0]
    if text in FALSE:
        return FALSE[0]
    # Many programs write integers as floats (3.0) if the column has missing values.
    return text[:-2] if WHOLE.fullmatch(text) else text
