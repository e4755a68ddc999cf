"""Reads tables from CSV, Parquet and svmlight files, and writes CSV and Parquet."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from ..utils.warnings import without_control_characters
from .errors import CommandError, WrongUse, listed, needs, one_line

try:
    import pandas
except ImportError:  # `read` says how to install it
    pandas = None

if TYPE_CHECKING:
    from .options import ReadingOptions

pd: Any = pandas
FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svm": "svmlight",
    ".libsvm": "svmlight",
    ".svmlight": "svmlight",
}
OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}  # by suffix of compressed files
SEPARATORS = (",", ";", "\t", "|")
N_SNIFFED_LINES = 50  # lines from which the separator is detected
# Texts that mean a missing value in a CSV file: those of pandas, and a question mark.
MISSING = (
    *("", "?", "NA", "N/A", "n/a", "<NA>", "#NA", "#N/A", "#N/A N/A", "NaN", "nan", "-NaN", "-nan"),
    *("NULL", "null", "None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
MAX_CELLS = 2.5e8  # limit for svmlight files: 2 GB as a dense table
UNNAMED = "unnamed "  # prefix of the names given to columns without one
LABEL = "label"  # the column of labels of an svmlight file


@dataclass(frozen=True)
class Table:
    """Rows with named columns; in a sparse table (svmlight), columns that are not stored are zero."""

    frame: Any
    path: str
    sparse: bool = False
    raw: Callable[[Sequence[str]], Any] | None = None  # reads columns of a CSV file as unparsed text
    missing: frozenset[str] = frozenset()  # texts that mean a missing value

    def texts(self, names: Sequence[str]) -> Any:
        """Columns as text if the file is CSV: types guessed by pandas would make a value depend on other rows."""
        if self.raw is None or not names:
            return self.frame[list(names)]
        columns = self.raw(names)
        return columns.mask(columns.isin(self.missing))

    @property
    def names(self) -> list[str]:
        return list(self.frame.columns)

    @property
    def n_rows(self) -> int:
        return len(self.frame)


def read(path: Path, how: ReadingOptions) -> Table:
    """Read the table in a file; ``-`` is standard input."""
    if pd is None:
        raise needs("pandas", "reading data", "cli")
    table = READERS[_format(path, how.format)](path, how)
    if not table.n_rows:
        raise CommandError(f"{path}: no rows of data in this file")
    return table


def _format(path: Path, given: str | None) -> str:
    if given is not None:
        if given not in READERS:
            raise WrongUse(f"--format {given}: must be one of {', '.join(READERS)}")
        return given
    if str(path) == "-":
        return "csv"
    if path.is_dir():
        raise CommandError(f"{path} is a directory; give a file")
    name = _format_of_name(path)
    if name is None:
        if not path.exists():
            raise CommandError(f"{path}: no such file")
        raise WrongUse(f"{path}: unknown kind of file; use one of {', '.join(FORMATS)}, or say --format csv")
    return name


def _format_of_name(path: Path) -> str | None:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in OPENERS]
    return FORMATS.get(suffixes[-1] if suffixes else "")


# --- CSV ---------------------------------------------------------------------------------------------------------


def _read_csv(path: Path, how: ReadingOptions) -> Table:
    source, missing = _source(path), missing_texts(how.missing)

    def parsed(**more: Any) -> Any:
        if source is not path:
            source.seek(0)
        return pd.read_csv(
            source,
            sep=sep,
            decimal=how.decimal,
            encoding=_encoding(how.encoding),
            header=None if how.no_header else 0,
            index_col=False,
            skipinitialspace=True,
            low_memory=False,
            **more,
        )

    def raw(wanted: Sequence[str]) -> Any:
        place = {name: k for k, name in enumerate(names)}
        places = sorted(place[name] for name in wanted)
        found = parsed(usecols=places, dtype=str, na_filter=False)
        found.columns = [names[place] for place in places]
        return found.fillna("").apply(lambda column: column.str.strip())

    try:
        start = _first_lines(source, path, how.encoding)
        with _fields_of_any_length(start):
            sep = _separator(path, how.sep, start)
            names = next(csv.reader(start, delimiter=sep, skipinitialspace=True))
        names = _numbered(names) if how.no_header else _header(path, names)
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # pandas would drop fields
            frame = parsed(keep_default_na=False, na_values=sorted(missing))
    except pd.errors.EmptyDataError:
        raise CommandError(f"{path} is empty") from None
    except (UnicodeDecodeError, LookupError) as error:
        raise CommandError(f"{path} is not {how.encoding} text ({one_line(error)}); try --encoding latin-1") from None
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        what = one_line(error).removeprefix("Error tokenizing data. C error: ")
        raise CommandError(f"{path} is not a table of rows with as many fields each: {what}") from None
    frame.columns = names
    return Table(frame, str(path), raw=raw, missing=missing)


def missing_texts(given: Sequence[str] | None) -> frozenset[str]:
    """The texts in `MISSING` and those given, or only those given if they include the empty text."""
    given = tuple(given or ())
    return frozenset(given if "" in given else (*MISSING, *given))


def _source(path: Path) -> Any:
    """An input that can be read twice: the path, or standard input held in memory."""
    return io.BytesIO(sys.stdin.buffer.read()) if str(path) == "-" else path


def _encoding(name: str) -> str:
    """The codec of an encoding; for UTF-8 one that skips a byte order mark."""
    return "utf-8-sig" if name.lower().replace("_", "-") in ("utf-8", "utf8") else name


def _first_lines(source: Any, path: Path, encoding: str) -> list[str]:
    opened = _opened(source) if source is path else io.BytesIO(source.getvalue())
    with opened, io.TextIOWrapper(opened, encoding=_encoding(encoding), newline="") as text:
        lines = [line for line, _ in zip(text, range(N_SNIFFED_LINES), strict=False)]
    lines = [line for line in lines if line.strip()]
    if not lines:
        raise pd.errors.EmptyDataError
    if "\0" in lines[0]:
        raise CommandError(f"{path} is not a text file; say what it is with --format parquet, or give a CSV file")
    return lines


def _opened(path: Path) -> Any:
    return OPENERS.get(path.suffix.lower(), open)(path, "rb")


@contextmanager
def _fields_of_any_length(lines: list[str]) -> Iterator[None]:
    """Raise csv's field size limit to these lines: split by a wrong separator, a line is one long field."""
    before = csv.field_size_limit()
    csv.field_size_limit(max(before, sum(map(len, lines))))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _separator(path: Path, given: str | None, lines: list[str]) -> str:
    """Detect the separator: the one that gives the most columns, equally many in each line; a tab in .tsv files."""
    if given is not None:
        given = {"\\t": "\t", "tab": "\t"}.get(given, given)
        if len(given) != 1:
            raise WrongUse(f"--sep {given!r}: must be one character, such as ';' (or tab)")
        return given
    if ".tsv" in path.suffixes:
        return "\t"
    # The last line may be cut off, or end inside a quoted field.
    counts = {sep: [len(row) for row in csv.reader(lines, delimiter=sep)] for sep in SEPARATORS}
    regular = [sep for sep in SEPARATORS if counts[sep][0] > 1 and len(set(counts[sep][: N_SNIFFED_LINES - 2])) == 1]
    return max(regular or SEPARATORS, key=lambda sep: counts[sep][0])


def _numbered(names: list[str]) -> list[str]:
    return [str(k + 1) for k in range(len(names))]


def _header(path: Path, names: list[str]) -> list[str]:
    """Names of the columns; an empty name is replaced by a numbered one."""
    names = [name.strip() or f"{UNNAMED}{k + 1}" for k, name in enumerate(names)]
    if all(map(_is_number, names)) and names not in (_numbered(names), [str(k) for k in range(len(names))]):
        raise CommandError(
            f"{path}: the first line has numbers, not names ({listed(names, 3)}); add a line of names, or say "
            "--no-header"
        )
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise CommandError(f"{path}: more than one column is called {listed(twice)}; columns need names of their own")
    return names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# --- Parquet, svmlight --------------------------------------------------------------------------------------------


def _read_parquet(path: Path, how: ReadingOptions) -> Table:
    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise needs("pyarrow", "reading Parquet", "cli") from None
    except FileNotFoundError:
        raise
    except Exception as error:  # pyarrow raises errors of many types
        raise CommandError(f"{path} is not a Parquet file that can be read: {one_line(error)}") from None
    frame.columns = [str(name) for name in frame.columns]
    if how.missing:
        frame = frame.replace(dict.fromkeys(how.missing))  # to None
    return Table(frame.reset_index(drop=True), str(path))


def _read_svmlight(path: Path, how: ReadingOptions) -> Table:
    """Read a table whose columns are named by their feature numbers; labels that are whole numbers become integers."""
    try:
        X, y = load_svmlight_file(str(path), zero_based=True)
    except FileNotFoundError:
        raise
    except (ValueError, IndexError, OverflowError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} is not an svmlight file: {one_line(error)}") from None
    if X.shape[0] * X.shape[1] > MAX_CELLS:
        raise CommandError(
            f"{path}: {X.shape[0]} rows of {X.shape[1]} inputs are too many for a table; slimsvm in Python takes them "
            "as a sparse matrix"
        )
    first = int(X.shape[1] > 0 and X[:, [0]].nnz == 0)  # most files number features from 1
    frame = pd.DataFrame(X[:, first:].toarray(), columns=[str(k) for k in range(first, X.shape[1])])
    frame[LABEL] = y.astype(np.int64) if (y == np.round(y)).all() else y
    return Table(frame, str(path), sparse=True)


READERS: dict[str, Callable[[Path, ReadingOptions], Table]] = {
    "csv": _read_csv,
    "parquet": _read_parquet,
    "svmlight": _read_svmlight,
}


# --- writing -----------------------------------------------------------------------------------------------------


def write(frame: Any, path: Path | None) -> None:
    """Write a table to a CSV or Parquet file, or as CSV to standard output."""
    if path is None or str(path) == "-":
        text = frame.to_csv(index=False, lineterminator="\n")
        # Control characters are removed on a terminal only.
        sys.stdout.write(without_control_characters(text, keep="\n\t") if sys.stdout.isatty() else text)
        sys.stdout.flush()
        return
    kind = writable(path)
    if kind == "parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.suffixes else ",", lineterminator="\n")


def writable(path: Path) -> str:
    """The format that an output path names, "csv" or "parquet"; WrongUse for others."""
    kind = _format_of_name(path)
    if kind not in ("csv", "parquet"):
        raise WrongUse(f"--output {path}: must end in .csv, .tsv, .txt or .parquet")
    return kind
