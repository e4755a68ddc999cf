"""Tables and JSON on standard output, notes and progress on standard error."""

from __future__ import annotations

import json
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Console as Terminal
from rich.table import Table
from rich.text import Text

from ..utils.progress import shown_by
from ..utils.warnings import CONTROL_CHARACTERS, without_control_characters

if TYPE_CHECKING:
    from .options import DisplayOptions


PIPE_WIDTH = 1000  # characters per line in pipes and files, where tables are not wrapped


class Console:
    """The output of one run of the command, according to its display options."""

    def __init__(self, options: DisplayOptions, command: str):
        self.json, self.quiet, self.command = options.json, options.quiet, command
        self._shown: set[str] = set()

    def note(self, *lines: str) -> None:
        """Print a note on standard error; further lines are indented below the first."""
        if not self.quiet:
            first, *others = (without_control_characters(" ".join(line.split())) for line in lines)
            print("\n      ".join([f"note: {first}", *others]), file=sys.stderr)

    def _note_once(self, text: str) -> None:
        """Print a note unless an earlier fit printed the same."""
        if text not in self._shown:
            self._shown.add(text)
            self.note(text)

    def notes(self, texts: Sequence[str]) -> None:
        for text in texts:
            self.note(text)

    def report(self, content: dict[str, Any], *parts: Any) -> None:
        """Print the result as JSON, or as tables and lines of text."""
        if self.json:
            text = json.dumps(as_json(content), ensure_ascii=False, allow_nan=False)
            # Escape control characters: the JSON value stays the same.
            print(CONTROL_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text))
        elif not self.quiet:
            console, whole = _console(), _console(width=None if sys.stdout.isatty() else PIPE_WIDTH)
            for part in parts:
                part = without_control_characters(part, keep="\n") if isinstance(part, str) else part
                (whole if hasattr(part, "columns") else console).print(part, highlight=False)

    @property
    def shows_progress(self) -> bool:
        return not self.quiet and sys.stderr.isatty()

    @contextmanager
    def work(self, steps: int) -> Iterator[Callable[[str], None]]:
        """Show a progress bar on a terminal; call the function with the name of each step. Warnings become notes."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("always", category=UserWarning)
            warnings.filterwarnings("ignore", "Found unknown categories")  # the command prints its own note
            warnings.filterwarnings("ignore", "X does not have valid feature names")  # the command orders the columns
            warnings.showwarning = lambda message, *more, **others: self._note_once(str(message))
            if not self.shows_progress:
                yield lambda name: None
                return
            with _bar(steps) as (begin, show), shown_by(show):
                yield begin


@contextmanager
def _bar(steps: int) -> Iterator[tuple[Callable[[str], None], Callable[[str, str], None]]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=_console(stderr=True), transient=True) as bar:
        task, name = bar.add_task("", total=steps), ""

        def begin(step: str) -> None:
            nonlocal name
            if name:
                bar.advance(task)
            name = step
            bar.update(task, description=step)

        def show(label: str, text: str) -> None:
            bar.update(task, description=f"{name}: {label}, {text}")

        yield begin, show


def _console(stderr: bool = False, width: int | None = None) -> Terminal:
    return Terminal(stderr=stderr, markup=False, soft_wrap=not stderr, emoji=False, width=width)


class Facts:
    """A list of names and values in two columns; names without a value are left out."""

    def __init__(self, rows: Sequence[tuple[str, Any]]):
        filled = [(name, str(value)) for name, value in rows if value is not None and value != ""]
        self.rows = [(without_control_characters(name), without_control_characters(value)) for name, value in filled]

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        width = max((len(name) for name, _ in self.rows), default=0) + 2
        for name, value in self.rows:
            lines = textwrap.wrap(value, max(20, options.max_width - width), break_on_hyphens=False) or [""]
            yield Text.assemble((name.ljust(width), "bold"), f"\n{' ' * width}".join(lines))


def grid(header: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None = None, narrow: bool = False) -> Any:
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    if narrow:
        table.padding = (0, 1, 0, 0)
    for k, name in enumerate(header):
        table.add_column(Text(without_control_characters(str(name))), justify="left" if k == 0 else "right")
    for row in rows:
        table.add_row(*(Text(without_control_characters(str(cell))) for cell in row))
    return table


def percent(share: float, error: float | None = None) -> str:
    """1.23 %, or 1.23 ± 0.45 %."""
    return f"{100 * share:.2f}" + ("" if error is None else f" ± {100 * error:.2f}") + " %"


def as_json(value: Any) -> Any:
    """The value in JSON types; numbers that are not finite become null."""
    match value:
        case dict():
            return {str(as_json(key)): as_json(one) for key, one in value.items()}
        case list() | tuple():
            return [as_json(one) for one in value]
        case np.ndarray() | np.generic():
            return as_json(value.tolist())
        case float() if not np.isfinite(value):
            return None
        case None | bool() | int() | float() | str():
            return value
    return str(value)
