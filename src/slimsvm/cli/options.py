"""Options that several commands share, each written once.

A *group* is a frozen dataclass whose fields are options. A command that has a parameter of such a type gets all options
of the group on its command line, and the group itself as an argument: see `with_groups`.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from .errors import Interrupted

READING, LEARNING, SHOWING = "Reading the data", "Learning", "What is shown"


@dataclass(frozen=True)
class Reading:
    """How a table is read."""

    sep: Annotated[
        str | None, typer.Option(help="Separator of CSV fields; found by itself unless given.", rich_help_panel=READING)
    ] = None
    decimal: Annotated[str, typer.Option(help="Decimal mark of CSV numbers.", rich_help_panel=READING)] = "."
    no_header: Annotated[
        bool,
        typer.Option("--no-header", help="CSV without a line of names: columns are 1, 2, …", rich_help_panel=READING),
    ] = False
    missing: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="A text that stands for a missing value, such as 'unknown'; repeat for more; '': only empty ones.",
            rich_help_panel=READING,
        ),
    ] = None
    encoding: Annotated[str, typer.Option(help="Encoding of CSV files.", rich_help_panel=READING)] = "utf-8"
    format: Annotated[
        str | None,
        typer.Option(help="csv, parquet or svmlight; by the file's name unless given.", rich_help_panel=READING),
    ] = None


@dataclass(frozen=True)
class Choosing:
    """Which columns a model is learned from."""

    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", metavar="NAME", help="The column of labels or numbers to learn.", rich_help_panel=READING
        ),
    ] = None
    task: Annotated[
        str,
        typer.Option(
            help="classification, regression, outliers (which needs no target), or auto: by what the target has.",
            rich_help_panel=READING,
        ),
    ] = "auto"
    columns: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Only these columns: a,b,c, or repeated.", rich_help_panel=READING),
    ] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="All but these columns: a,b,c, or repeated.", rich_help_panel=READING),
    ] = None
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Columns of numbers that are codes, not quantities: a,b,c, or repeated.",
            rich_help_panel=READING,
        ),
    ] = None
    weight: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A column of weights: how often each row counts.", rich_help_panel=READING),
    ] = None


@dataclass(frozen=True)
class Judging:
    """Rows that are held out."""

    test_size: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Share of rows held out to estimate the error; 0: none.",
            min=0.0,
            max=0.9,
            rich_help_panel=LEARNING,
        ),
    ] = 0.25
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A file of rows to estimate the error on, in place of --test-size.",
            rich_help_panel=LEARNING,
        ),
    ] = None


@dataclass(frozen=True)
class Learning:
    """How a model is learned."""

    C: Annotated[str, typer.Option("--C", help="Cost of slacks: a number, or search.", rich_help_panel=LEARNING)] = (
        "search"
    )
    gamma: Annotated[
        str, typer.Option(help="Width of the kernel: a number, scale, auto or search.", rich_help_panel=LEARNING)
    ] = "search"
    scales: Annotated[
        str, typer.Option(help="A scale for each input: learned, fixed or search.", rich_help_panel=LEARNING)
    ] = "search"
    kernel: Annotated[str, typer.Option(help="rbf, laplacian, poly or linear.", rich_help_panel=LEARNING)] = "rbf"
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Classes count the same, whatever their size.", rich_help_panel=LEARNING)
    ] = False
    probability: Annotated[
        bool, typer.Option("--probability", help="Fit probabilities, too.", rich_help_panel=LEARNING)
    ] = False
    intervals: Annotated[
        bool,
        typer.Option(
            "--intervals", help="Numbers: prepare slimsvm predict --interval; takes longer.", rich_help_panel=LEARNING
        ),
    ] = False
    nu: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Outliers: about this share of rows is outside.",
            min=0.0001,
            max=1.0,
            rich_help_panel=LEARNING,
        ),
    ] = 0.1
    seed: Annotated[
        int, typer.Option(metavar="NUMBER", help="Of all draws.", min=0, max=2**31 - 1, rich_help_panel=LEARNING)
    ] = 0
    jobs: Annotated[
        int | None, typer.Option(help="Threads; one unless given, -1: all processors.", rich_help_panel=LEARNING)
    ] = None


@dataclass(frozen=True)
class Showing:
    """What is shown, and how."""

    json: Annotated[
        bool,
        typer.Option("--json", help="One JSON object on standard output, and nothing else.", rich_help_panel=SHOWING),
    ] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No report, no notes, no progress.", rich_help_panel=SHOWING)
    ] = False
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", help="Show the traceback of an error (or set SLIMSVM_DEBUG=1).", rich_help_panel=SHOWING
        ),
    ] = False


def with_groups(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as typer is to see it: parameters that are groups become the options in them."""
    hints = get_type_hints(function, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters = []
    for name, parameter in inspect.signature(function).parameters.items():
        shown = _options(groups[name]) if name in groups else [parameter.replace(annotation=hints[name])]
        parameters += [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in shown]

    @functools.wraps(function)
    def command(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})  # type: ignore[operator]
        try:
            function(**given)
        except KeyboardInterrupt:  # versions of typer speak of it in ways of their own
            raise Interrupted from None

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def _options(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
