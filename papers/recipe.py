"""What a table or a figure of a paper is made of: data, protocol, tasks, and the numbers that the paper prints.

A recipe is a declaration. Its tasks are independent pieces of work (one split of one set, say); each returns numbers,
``gather`` brings them to the cells of the table, and a `Result` compares the cells with what is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from .result import Result

Cell: TypeAlias = tuple[str, str]  # a row and a column
Outcomes: TypeAlias = Mapping[str, Any]  # what tasks returned, by their names
Samples: TypeAlias = dict[Cell, list[float]]  # of each cell: a number for each run


@dataclass(frozen=True)
class Paper:
    """Where tables and figures come from."""

    key: str
    authors: str
    title: str
    venue: str
    year: int


@dataclass(frozen=True)
class Column:
    """A column of numbers: which of them are better, and the step that the paper rounds to.

    Seconds of another machine and other programs are shown, and not judged.
    """

    name: str
    better: Literal["low", "high"] | None = None
    step: float = 0.1
    judged: bool = True


@dataclass(frozen=True)
class Printed:
    """A number of the paper; its deviation over the runs, and how many there were, where that is known."""

    value: float
    deviation: float | None = None
    runs: int | None = None


def proportion(percent: float, rows: int) -> Printed:
    """A percentage of so many test rows, looked at once: its deviation is the binomial one."""
    share = min(max(percent / 100, 0.5 / rows), 1 - 0.5 / rows)
    return Printed(percent, 100 * (share * (1 - share) / rows) ** 0.5, 1)


@dataclass(frozen=True)
class Task:
    """An independent piece of work: ``work(*arguments)``, which another process may do. What it returns goes through
    JSON."""

    name: str
    work: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    data: tuple[str, ...] = ()  # sets that it needs
    quick: bool = False  # is it one of those that quick mode does?


def by_row_and_column(outcomes: Outcomes) -> Samples:
    """Of tasks that return ``{row: {column: number}}``: the numbers of each cell."""
    found: Samples = {}
    for outcome in outcomes.values():
        for row, numbers in outcome.items():
            for column, number in numbers.items():
                found.setdefault((row, column), []).append(float(number))
    return found


@dataclass(frozen=True)
class Recipe:
    """A table or a figure.

    Parameters
    ----------
    name : str
        Such as ``"huang-table-1"``: the key of the paper, then the place in it.
    paper : Paper
    title : str
    protocol : str
        How it is measured, in sentences: data, splits, settings, and what differs from the paper.
    tasks : callable
        Gives the tasks, in the order in which they are done.
    columns : sequence of Column
    rows : sequence of str
        In the order of the table; rows that are found beside them follow.
    printed : mapping
        What the paper prints, by row and column. A cell without is ours alone.
    runs : int, optional
        How many runs are behind a printed number that does not say so.
    gather : callable
        Brings what tasks returned, by their names, to the numbers of each cell.
    reasons : mapping
        Why cells differ, by patterns of row and column as `fnmatch` reads them. The first that fits counts.
    draw : callable, optional
        Draws the outcomes: ``draw(figure, result)`` with a matplotlib figure.
    row_name : str
        What rows are.
    kept_as : str, optional
        Name under which tasks are kept, unless that of the recipe: tables that show the same runs share it.
    """

    name: str
    paper: Paper
    title: str
    protocol: str
    tasks: Callable[[], Iterable[Task]]
    columns: Sequence[Column] = ()
    rows: Sequence[str] = ()
    printed: Mapping[Cell, Printed] = field(default_factory=dict)
    runs: int | None = None
    gather: Callable[[Outcomes], Samples] = by_row_and_column
    reasons: Mapping[Cell, str] = field(default_factory=dict)
    draw: Callable[[Any, Result], None] | None = None
    row_name: str = "set"
    kept_as: str = ""


def printed(columns: Sequence[str], rows: Mapping[str, Sequence[float | Printed | None]]) -> dict[Cell, Printed]:
    """The numbers of a table, row by row; None where the paper has none."""
    found = {}
    for row, numbers in rows.items():
        for column, number in zip(columns, numbers, strict=True):
            if number is not None:
                found[row, column] = number if isinstance(number, Printed) else Printed(number)
    return found
