"""Options of the commands; those that several commands share are written once.

A *group* is a frozen dataclass whose fields are options or other groups. A command that has a parameter of such a type
gets all options of the group on its command line, and the group itself as an argument: see `with_groups`.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import typer

from .errors import Interrupted

KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
READING_PANEL, TRAINING_PANEL, DISPLAY_PANEL = "Reading the data", "Learning", "What is shown"


@dataclass(frozen=True)
class ReadingOptions:
    """How a table is read."""

    panel: ClassVar[str | None] = READING_PANEL
    sep: Annotated[str | None, typer.Option(help="Separator of CSV fields; found by itself unless given.")] = None
    decimal: Annotated[str, typer.Option(help="Decimal mark of CSV numbers.")] = "."
    no_header: Annotated[bool, typer.Option("--no-header", help="CSV without a line of names: columns are 1, 2, …")] = (
        False
    )
    missing: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="A text that stands for a missing value, such as 'unknown'; repeat for more; '': only empty ones.",
        ),
    ] = None
    encoding: Annotated[str, typer.Option(help="Encoding of CSV files.")] = "utf-8"
    format: Annotated[str | None, typer.Option(help="csv, parquet or svmlight; by the file's name unless given.")] = (
        None
    )


@dataclass(frozen=True)
class ColumnOptions:
    """Which columns a model is learned from."""

    panel: ClassVar[str | None] = READING_PANEL
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="NAME", help="The column of labels or numbers to learn.")
    ] = None
    task: Annotated[
        str,
        typer.Option(
            help="classification, regression, outliers (which needs no target), or auto: by what the target has."
        ),
    ] = "auto"
    columns: Annotated[
        list[str] | None, typer.Option(metavar="NAMES", help="Only these columns: a,b,c, or repeated.")
    ] = None
    drop: Annotated[
        list[str] | None, typer.Option(metavar="NAMES", help="All but these columns: a,b,c, or repeated.")
    ] = None
    categorical: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Columns of numbers that are codes, not quantities: a,b,c, or repeated."),
    ] = None
    weight: Annotated[
        str | None, typer.Option(metavar="NAME", help="A column of weights: how often each row counts.")
    ] = None


@dataclass(frozen=True)
class HoldOutOptions:
    """Rows that are held out."""

    panel: ClassVar[str | None] = TRAINING_PANEL
    test_size: Annotated[
        float,
        typer.Option(metavar="SHARE", help="Share of rows held out to estimate the error; 0: none.", min=0.0, max=0.9),
    ] = 0.25
    test: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file of rows to estimate the error on, in place of --test-size."),
    ] = None


@dataclass(frozen=True)
class TrainingOptions:
    """How a model is learned."""

    panel: ClassVar[str | None] = TRAINING_PANEL
    C: Annotated[str, typer.Option("--C", help="Cost of slacks: a number, or search.")] = "search"
    gamma: Annotated[str, typer.Option(help="Width of the kernel: a number, scale, auto or search.")] = "search"
    scales: Annotated[str, typer.Option(help="A scale for each input: learned, fixed or search.")] = "search"
    kernel: Annotated[str, typer.Option(help="rbf, laplacian, poly or linear.")] = "rbf"
    balanced: Annotated[bool, typer.Option("--balanced", help="Classes count the same, whatever their size.")] = False
    probability: Annotated[bool, typer.Option("--probability", help="Fit probabilities, too.")] = False
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Numbers: prepare slimsvm predict --interval; takes longer.")
    ] = False
    nu: Annotated[
        float, typer.Option(metavar="SHARE", help="Outliers: about this share of rows is outside.", min=0.0001, max=1.0)
    ] = 0.1
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Of all draws.", min=0, max=2**31 - 1)] = 0
    jobs: Annotated[int | None, typer.Option(help="Threads; one unless given, -1: all processors.")] = None

    def changed(self) -> list[str]:
        """Names of the options that are not the default."""
        default = asdict(TrainingOptions())
        return [name for name, value in asdict(self).items() if value != default[name]]


@dataclass(frozen=True)
class LearnOptions:
    """All options of training: columns, held-out rows, training parameters, reading."""

    columns: ColumnOptions
    hold_out: HoldOutOptions
    training: TrainingOptions
    reading: ReadingOptions


@dataclass(frozen=True)
class DisplayOptions:
    """What is shown, and how."""

    panel: ClassVar[str | None] = DISPLAY_PANEL
    json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output, and nothing else.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No report, no notes, no progress.")] = False
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error (or set SLIMSVM_DEBUG=1).")] = (
        False
    )


@dataclass(frozen=True)
class PredictOptions:
    """What is predicted, and where to."""

    panel: ClassVar[str | None] = None
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="A .csv, .tsv or .parquet file; standard output unless given."
        ),
    ] = None
    proba: Annotated[bool, typer.Option("--proba", help="Probabilities of the classes, too.")] = False
    interval: Annotated[
        float | None,
        typer.Option(
            metavar="COVERAGE",
            help="Also low and high, between which true values lie with this probability, such as 0.9; for models that "
            "were trained with --intervals.",
        ),
    ] = None
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Columns of the data to copy to the output: a,b,c, or repeated."),
    ] = None


@dataclass(frozen=True)
class FrontierOptions:
    """Which sizes are compared, how one is chosen, and what is written."""

    panel: ClassVar[str | None] = None
    html: Annotated[Path | None, typer.Option(help="A report to write: one .html file.")] = None
    plot: Annotated[Path | None, typer.Option(help="A picture to write: .png, .svg or .pdf.")] = None
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The chosen model to write: a .slim file.")
    ] = None
    sizes: Annotated[
        str | None, typer.Option(help="Numbers of vectors: 4,8,16. Powers of two up to 128 unless given.")
    ] = None
    within: Annotated[
        float | None,
        typer.Option(
            help="Choose the smallest model within so many standard errors of the best. 0.5 unless given.", min=0.0
        ),
    ] = None
    max_bytes: Annotated[
        int | None, typer.Option("--bytes", help="Choose among models of at most so many bytes on a device.", min=1)
    ] = None
    full: Annotated[
        bool, typer.Option("--full/--no-full", help="Fit the support vector machine over all rows for comparison.")
    ] = True


@dataclass(frozen=True)
class CompressOptions:
    """How a model is made small."""

    panel: ClassVar[str | None] = None
    vectors: Annotated[
        str, typer.Option("--vectors", "-m", help="Vectors to keep: a number, a fraction such as 0.1, or auto.")
    ] = "20"
    data: Annotated[
        Path | None, typer.Option(help="Rows like those that will be predicted.", rich_help_panel=READING_PANEL)
    ] = None
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", metavar="NAME", help="The column of labels in --data.", rich_help_panel=READING_PANEL
        ),
    ] = None
    fit_to: Annotated[
        str,
        typer.Option(
            help="decisions (of the fitted model), labels (of --target), or auto: labels if given for at least as many "
            "rows as the model has vectors."
        ),
    ] = "auto"
    method: Annotated[str, typer.Option(help="auto, reduced_set, refit, margin or learn.")] = "auto"
    probability: Annotated[
        bool, typer.Option("--probability", help="Fit probabilities; needs --data and --target.")
    ] = False
    trust: Annotated[
        bool, typer.Option("--trust", help="Read a pickle without asking. Reading one can run any code in it.")
    ] = False
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Of all draws.", min=0, max=2**31 - 1)] = 0
    jobs: Annotated[int | None, typer.Option(help="Threads; one unless given, -1: all processors.")] = None


@dataclass(frozen=True)
class ExportOptions:
    """What is written, and as what."""

    panel: ClassVar[str | None] = None
    c: Annotated[Path | None, typer.Option("--c", help="A C99 header to write.")] = None
    onnx: Annotated[Path | None, typer.Option("--onnx", help="An ONNX file to write.")] = None
    int8: Annotated[bool, typer.Option("--int8", help="C in integers, for devices without floating point.")] = False
    example: Annotated[Path | None, typer.Option(help="A C program that uses the header, to write.")] = None
    name: Annotated[
        str | None, typer.Option(help="What names in the C code begin with; the header's name unless given.")
    ] = None
    data: Annotated[
        Path | None,
        typer.Option(
            help="Rows with labels that refit the rounded coefficients, for --int8.", rich_help_panel=READING_PANEL
        ),
    ] = None
    float64: Annotated[bool, typer.Option("--float64", help="ONNX in double precision.")] = False
    max_bytes: Annotated[
        int | None,
        typer.Option("--bytes", help="Bytes that the model may take as C; more is an error.", min=1, metavar="NUMBER"),
    ] = None


def with_groups(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function for typer: each parameter whose type is a group is replaced by the options of the group."""
    hints = get_type_hints(function, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters = []
    for name, parameter in inspect.signature(function).parameters.items():
        expanded = _options(groups[name]) if name in groups else [parameter.replace(annotation=hints[name])]
        parameters += [one.replace(kind=KEYWORD_ONLY) for one in expanded]

    @functools.wraps(function)
    def command(**given: Any) -> None:
        made = {name: _group(kind, given) for name, kind in groups.items()}
        try:
            function(**given, **made)
        except KeyboardInterrupt:  # versions of typer handle Ctrl-C in different ways
            raise Interrupted from None

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def _options(group: Any) -> list[inspect.Parameter]:
    """The options of a group and its nested groups, in the help panel of the group."""
    hints, options = get_type_hints(group, include_extras=True), []
    for field in fields(group):
        hint = hints[field.name]
        if is_dataclass(hint):
            options += _options(hint)
            continue
        (info,) = hint.__metadata__
        info.rich_help_panel = info.rich_help_panel or group.panel
        options.append(inspect.Parameter(field.name, KEYWORD_ONLY, default=field.default, annotation=hint))
    return options


def _group(kind: Any, given: dict[str, Any]) -> Any:
    """Make a group from the given option values, which are removed from ``given``."""
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    return kind(
        **{name: _group(hints[name], given) if is_dataclass(hints[name]) else given.pop(name) for name in names}
    )
