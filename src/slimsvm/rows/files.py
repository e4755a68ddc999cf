"""Reads labelled rows from Parquet, Arrow, CSV and svmlight files larger than memory, a block at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..utils.warnings import without_control_characters
from .blocks import Blocks, RawBlock

BLOCK_ROWS = 1 << 17


def from_parquet(
    path: Any,
    target: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    block_rows: int = BLOCK_ROWS,
    dtype: Any = None,
) -> Blocks:
    """Labelled rows of Parquet files.

    Parameters
    ----------
    path : str, path or list of them
        A file, a folder of files, or several.
    target : str or list of str, optional
        The column of the class labels or regression targets (a list for several); not needed for rows to predict.
    columns : list of str, optional
        The inputs, in this order; by default all other columns. They must be numeric or boolean: categories and dates
        are refused by name, and so are missing values when they are read.
    weight : str, optional
        The column of the weights.
    block_rows : int, default=131072
        Rows in a block.
    dtype : {float32, float64}, optional
        The dtype of the inputs. None: float32 if all inputs are float32 or shorter floats, else float64. float32
        takes half the memory and time, but integers above 16,777,216 and times in seconds lose their last digits.

    Returns
    -------
    Blocks
        For ``SlimSVC().fit(rows)``, ``SlimSVR().fit(rows)``, ``predict(rows)``.
    """
    data = _pyarrow("from_parquet").dataset
    return from_arrow(data.dataset(_paths(path), format="parquet"), target, columns, weight, block_rows, dtype)


def from_arrow(
    data: Any,
    target: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    block_rows: int = BLOCK_ROWS,
    dtype: Any = None,
) -> Blocks:
    """Labelled rows of an Arrow dataset, table, or list of record batches; see `from_parquet`."""
    arrow = _pyarrow("from_arrow")
    if isinstance(data, arrow.RecordBatch):
        data = arrow.Table.from_batches([data])
    elif not hasattr(data, "schema"):
        data = arrow.Table.from_batches(list(data))
    if isinstance(data, arrow.RecordBatchReader):
        raise TypeError(
            "a RecordBatchReader can be gone through only once, and a fit takes several passes; pass the dataset or "
            "the table that it reads"
        )
    inputs = _inputs(list(data.schema.names), target, columns, weight)
    _check_arrow_types(arrow, data.schema, inputs)
    kind = _float_type(dtype, {str(data.schema.field(name).type) for name in inputs} <= {"float", "halffloat"})
    wanted = [*inputs, *_names(target), *_names(weight)]

    def batches() -> Iterator[Any]:
        if isinstance(data, arrow.Table):
            return iter(data.select(wanted).to_batches(max_chunksize=block_rows))
        # In order, so that row numbers are the same in each pass; few at a time, so that memory is bounded.
        return data.to_batches(columns=wanted, batch_size=block_rows, batch_readahead=2, fragment_readahead=1)

    def pieces() -> Iterator[RawBlock]:
        for batch in batches():
            if batch.num_rows:
                X = np.empty((batch.num_rows, len(inputs)), dtype=kind)
                for k, name in enumerate(inputs):
                    X[:, k] = _numbers(batch.column(name))
                yield X, _answers(target, partial(_labels_in, batch), batch.column), _weights(batch, weight)

    return Blocks(pieces, inputs, _shown(data))


def from_csv(
    path: Any,
    target: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    block_rows: int = BLOCK_ROWS,
    dtype: Any = None,
    **options: Any,
) -> Blocks:
    """Labelled rows of CSV files, read in pieces by pandas; see `from_parquet`.

    Parameters
    ----------
    path : str, path or list of them
        A file, or several with the same columns.
    target, columns, weight, block_rows, dtype
        As in `from_parquet`.
    **options
        For ``pandas.read_csv``: ``sep``, ``header``, ``names``, ``compression`` ...

    Returns
    -------
    Blocks
    """
    pandas = _module("pandas", "from_csv", "pip install 'slimsvm[files]'")
    if int(pandas.__version__.partition(".")[0]) < 3:  # later versions read numbers exactly
        options.setdefault("float_precision", "round_trip")
    paths = [path] if isinstance(path, (str, Path)) or hasattr(path, "read") else list(path)
    if any(hasattr(one, "read") for one in paths):
        raise TypeError("from_csv reads its files again in every pass: give paths, not open files")
    taken = {"nrows", "chunksize", "iterator"} & options.keys()
    if taken:
        raise TypeError(f"from_csv reads all rows, block_rows at a time: leave out {', '.join(sorted(taken))}")
    found = [str(name) for name in pandas.read_csv(paths[0], nrows=0, **options).columns]
    inputs = _inputs(found, target, columns, weight)
    kind = _float_type(dtype, False)

    def pieces() -> Iterator[RawBlock]:
        for one in paths:
            with pandas.read_csv(one, chunksize=block_rows, **options) as reader:
                for frame in reader:
                    if not len(frame):
                        continue
                    frame.columns = [str(name) for name in frame.columns]
                    kinds = frame[inputs].dtypes
                    words = [name for name, own in zip(inputs, kinds, strict=True) if own.kind not in "fiub"]
                    if words:
                        raise ValueError(_no_numbers(words, str(one)))
                    X = frame[inputs].to_numpy(dtype=kind)
                    y = _answers(target, partial(_labels_of, frame), frame.__getitem__)
                    yield X, y, None if weight is None else frame[weight].to_numpy()

    return Blocks(pieces, inputs, f"CSV, {len(paths)} files" if len(paths) > 1 else f"CSV, {Path(paths[0]).name}")


def from_svmlight(
    path: Any, n_features: int, block_rows: int = BLOCK_ROWS, dtype: Any = None, zero_based: bool = False
) -> Blocks:
    """Labelled sparse rows of svmlight (LIBSVM) files, parsed in pieces by scikit-learn.

    Parameters
    ----------
    path : str, path or list of them
    n_features : int
        The number of inputs, which a block of a sparse file does not show.
    block_rows, dtype
        As for `from_parquet`.
    zero_based : bool, default=False
        Whether column numbers begin with 0.

    Returns
    -------
    Blocks
    """
    from io import BytesIO
    from itertools import islice

    from sklearn.datasets import load_svmlight_file

    paths = [path] if isinstance(path, (str, Path)) else list(path)
    kind = _float_type(dtype, False)

    def pieces() -> Iterator[RawBlock]:
        for one in paths:
            with Path(one).open("rb") as lines:
                while text := b"".join(islice(lines, block_rows)):
                    try:
                        X, y = load_svmlight_file(
                            BytesIO(text), n_features=n_features, dtype=kind, zero_based=zero_based
                        )
                    except OverflowError:
                        raise ValueError(
                            f"{one} has an index of 2^31 or more; hash such columns into fewer, for example with "
                            "scikit-learn's FeatureHasher"
                        ) from None
                    if X.shape[0]:
                        yield X, y, None

    return Blocks(
        pieces, None, f"svmlight, {len(paths)} files" if len(paths) > 1 else f"svmlight, {Path(paths[0]).name}"
    )


# --- columns ---------------------------------------------------------------------------------------------------


def _float_type(dtype: Any, short: bool) -> np.dtype[Any]:
    """The dtype of the inputs; ``short``: all of them are float32 or shorter floats."""
    if dtype is None:
        return np.dtype(np.float32 if short else np.float64)
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} is not known; use 'float32' or 'float64'")
    return kind


def _names(given: str | Sequence[str] | None) -> list[str]:
    return [] if given is None else [given] if isinstance(given, str) else list(given)


def _answers(target: str | Sequence[str] | None, labels: Callable[[str], Any], column: Callable[[str], Any]) -> Any:
    """Labels from one column, or targets from several."""
    if target is None or isinstance(target, str):
        return None if target is None else labels(target)
    found = []
    for name in target:
        try:
            found.append(np.asarray(_numbers(column(name)), dtype=np.float64))
        except (ValueError, TypeError):
            raise ValueError(f"the column {name!r} holds no numbers; several targets must be numbers") from None
    return np.column_stack(found)


def _inputs(
    found: list[str], target: str | Sequence[str] | None, columns: Iterable[str] | None, weight: str | None
) -> list[str]:
    """The names of the input columns; ValueError for unknown ones."""
    if isinstance(columns, str):
        raise ValueError(f"columns={columns!r} is one name; give a list, [{columns!r}] or more of them")
    wanted = None if columns is None else list(columns)
    if wanted is not None and len(set(wanted)) < len(wanted):
        raise ValueError(f"columns={wanted} has a name twice")
    answers = _names(target)
    if len(set(answers)) < len(answers):
        raise ValueError(f"target={target!r} has a name twice")
    if target is not None and not answers:
        raise ValueError("target=[] names no column; give one or more, or leave target out")
    there = Counter(found)
    for name in (*(wanted or ()), *answers, *_names(weight)):
        if name not in there:
            raise ValueError(f"there is no column {name!r}; there are {_some(found, 20)}")
    if wanted is not None and set(answers) & set(wanted):
        raise ValueError(f"target={target!r} is among the columns of the inputs")
    if weight is not None and weight in {*answers, *(wanted or ())}:
        raise ValueError(f"weight={weight!r} is also an input or the target; give another column, or leave it out")
    inputs = [name for name in found if name not in {*answers, weight}] if wanted is None else wanted
    if not inputs:
        raise ValueError("no column is left for the inputs")
    twice = [name for name in (*inputs, *answers, *_names(weight)) if there[name] > 1]
    if twice:
        raise ValueError(
            f"more than one column is called {_some(list(dict.fromkeys(twice)), 5)}: rename them, or name others with "
            "columns=[...]"
        )
    return inputs


def _some(names: list[str], most: int) -> str:
    """The first few names, safe to print."""
    return without_control_characters(", ".join(names[:most])) + (", ..." if len(names) > most else "")


def _no_numbers(names: list[str], where: str) -> str:
    return (
        f"columns {_some(names, 5)} of {where} are no numbers: name others with columns=[...], or encode them first "
        "(scikit-learn's OneHotEncoder, or the command line `slimsvm train`)"
    )


def _check_arrow_types(arrow: Any, schema: Any, inputs: list[str]) -> None:
    types = arrow.types
    words = [
        name
        for name in inputs
        if not (
            types.is_integer(kind := schema.field(name).type)
            or types.is_floating(kind)
            or types.is_boolean(kind)
            or types.is_decimal(kind)
        )
    ]
    if words:
        raise ValueError(_no_numbers(words, "the data"))


def _numbers(column: Any) -> Any:
    """A column of an Arrow batch or a data frame as numbers; missing values become NaN, which a later check refuses."""
    if not hasattr(column, "null_count"):
        return column.to_numpy()
    if column.null_count or str(column.type).startswith(("decimal", "bool")):
        return column.cast("float64").to_numpy(zero_copy_only=False)
    return column.to_numpy(zero_copy_only=False)


def _labels_of(frame: Any, name: str) -> Any:
    return _whole(frame[name].to_numpy(), name)


def _labels_in(batch: Any, name: str) -> Any:
    column = batch.column(name)
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    if column.null_count:
        raise ValueError(f"{column.null_count} labels in column {name!r} are missing: leave these rows out")
    return _whole(column.to_numpy(zero_copy_only=False), name)


def _whole(y: Any, name: str) -> Any:
    """The labels, after checking that none is missing."""
    missing = (
        np.isnan(y).sum() if y.dtype.kind == "f" else sum(one is None or one != one for one in y) * (y.dtype == object)
    )
    if missing:
        raise ValueError(f"{missing} labels in column {name!r} are missing: leave these rows out")
    return y.astype(str) if y.dtype == object else y


def _weights(batch: Any, weight: str | None) -> Any:
    return None if weight is None else _numbers(batch.column(weight)).astype(np.float64)


def _paths(path: Any) -> Any:
    return str(path) if isinstance(path, (str, Path)) else [str(one) for one in path]


def _shown(data: Any) -> str:
    files = getattr(data, "files", None)
    return (
        f"Arrow {type(data).__name__}"
        if not files
        else f"{len(files)} files"
        if len(files) > 1
        else Path(files[0]).name
    )


def _module(name: str, user: str, remedy: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"slimsvm.rows.{user} needs {name}: {remedy}") from error


def _pyarrow(user: str) -> Any:
    arrow = _module("pyarrow", user, "pip install 'slimsvm[files]'")
    _module("pyarrow.dataset", user, "pip install 'slimsvm[files]'")
    return arrow
