"""The commands of ``slimsvm`` with their options and help; each imports the module that does its work when it runs."""

import inspect
import os
import shlex
import sys
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

import typer

from ..utils.warnings import without_control_characters
from .errors import CommandError, Interrupted, one_line
from .options import (
    CompressOptions,
    DisplayOptions,
    ExportOptions,
    FrontierOptions,
    LearnOptions,
    PredictOptions,
    ReadingOptions,
    with_groups,
)

NAME = "slimsvm"
CODES = "Exit codes: 0 done, 1 something is wrong with data or files, 2 wrong use, 130 interrupted."

app = typer.Typer(
    name=NAME,
    help="Support vector machines that stay small: learn from tables, predict, compress, export to C and ONNX.",
    epilog=f"slimsvm COMMAND --help shows options and examples.\n\n{CODES}",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


_arguments: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


def examples(*lines: str) -> str:
    """Format the end of a help page: one example per line, then the exit codes."""
    return "\n\n".join(["[bold]Examples[/bold]", *(line.replace("[", r"\[") for line in lines), CODES])


def command(*lines: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command, with examples in its help."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        # Join the lines of each paragraph: the terminal wraps them.
        paragraphs = [" ".join(part.split()) for part in inspect.cleandoc(function.__doc__ or "").split("\n\n")]
        app.command(help="\n\n".join(paragraphs), epilog=examples(*lines))(with_groups(function))
        return function

    return register


def run(arguments: list[str], debug: bool = False) -> int:
    """Run the command and return its exit code; an error is printed as one line on standard error."""
    _arguments.set(tuple(arguments))
    try:
        code = typer.main.get_command(app).main(arguments, prog_name=NAME, standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe: redirect standard output, or Python would fail again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (KeyboardInterrupt, Interrupted):
        code = Interrupted.code
    except typer.Abort as error:
        code = Interrupted.code if isinstance(error.__cause__, KeyboardInterrupt) else 1
        _say("not confirmed" if code == 1 else "interrupted")
        return code
    except Exception as error:
        return _failed(error, debug)
    if code == Interrupted.code:
        _say("interrupted")
    return code if isinstance(code, int) else 0


def _failed(error: Exception, debug: bool) -> int:
    """Print one line about an error and return its exit code."""
    if debug:
        text = "".join(traceback.format_exception(error))
        print(without_control_characters(text, keep="\n"), end="", file=sys.stderr)
    if hasattr(error, "format_message"):  # of typer: an option is unknown, missing or of another type
        _say(" ".join(error.format_message().split()))
        return int(getattr(error, "exit_code", 2))
    text = one_line(error)
    match error:
        case CommandError() | OSError() | MemoryError() | ValueError():
            _say(text)
        case _:
            _say(f"{type(error).__name__}: {text} (--debug shows where)")
    return error.code if isinstance(error, CommandError) else 1


def _say(text: str) -> None:
    print(f"{NAME}: {without_control_characters(text)}", file=sys.stderr)


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        print(NAME, __version__)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


Model = Annotated[Path, typer.Argument(help="A .slim file.", show_default=False)]
Data = Annotated[Path, typer.Argument(help="CSV, Parquet or svmlight.", show_default=False)]
Rows = Annotated[
    Path, typer.Argument(help="CSV, Parquet or svmlight; - reads CSV from standard input.", show_default=False)
]


def _console(display: DisplayOptions) -> Any:
    from .console import Console

    return Console(display, shlex.join([NAME, *_arguments.get()]))


@command(
    "slimsvm train iris.csv --target species -o iris.slim",
    "slimsvm train churn.csv -t churned --drop customer_id --vectors auto --probability -o churn.slim",
    "slimsvm train sensor.parquet -t state --columns ax,ay,az --bytes 2048 -o sensor.slim",
    "slimsvm train letters.svm --test letters.t.svm --vectors 64 --json -o letters.slim",
    "slimsvm train houses.csv -t price --intervals -o price.slim",
    "slimsvm train vibration.csv --task outliers --nu 0.02 -o usual.slim",
)
def train(
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The model: a .slim file.", show_default=False)
    ],
    learn: LearnOptions,
    display: DisplayOptions,
    vectors: Annotated[
        str | None,
        typer.Option("--vectors", "-m", help="Vectors that the model may keep; auto: as few as do. 20 unless given."),
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            "--bytes", help="Bytes that the model may take on a device, in place of --vectors.", min=1, metavar="NUMBER"
        ),
    ] = None,
) -> None:
    """Learn a small classifier, regressor or outlier detector from a table.

    Text, or few different whole numbers in the target, are classes; other numbers are a regression; --task says it.
    The error is estimated on rows held out; then the model is learned once more, from all rows, and saved together with
    what is done to the columns: medians for missing numbers, an input for each category, scaling.
    """
    from .train import train as work

    work(data, output, vectors, max_bytes, learn, _console(display))


@command(
    "slimsvm predict iris.slim new.csv -o answers.csv",
    "slimsvm predict churn.slim customers.csv --proba --keep customer_id -o answers.parquet",
    "slimsvm predict price.slim houses.csv --interval 0.9 -o prices.csv",
    "cat new.csv | slimsvm predict iris.slim - | sort | uniq -c",
)
def predict(
    model: Model,
    data: Rows,
    reading: ReadingOptions,
    display: DisplayOptions,
    options: PredictOptions,
) -> None:
    """Predict the rows of a table, in their order.

    Columns are found by name, in any order; others are ignored.
    """
    from .predict import predict as work

    work(model, data, options, reading, _console(display))


@command(
    "slimsvm score iris.slim test.csv",
    "slimsvm score iris.slim test.csv --target kind --json",
)
def score(
    model: Model,
    data: Rows,
    reading: ReadingOptions,
    display: DisplayOptions,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="NAME", help="The column of labels; as in training unless given."),
    ] = None,
    weight: Annotated[
        str | None, typer.Option(metavar="NAME", help="A column of weights: how often each row counts.")
    ] = None,
) -> None:
    """Compare predictions with labels: error, confusion matrix, log loss; R² and RMS error for regressors."""
    from .predict import score as work

    work(model, data, target, weight, reading, _console(display))


@command(
    "slimsvm frontier churn.csv -t churned --drop customer_id --html report.html",
    "slimsvm frontier sensor.csv -t state --sizes 4,8,16,32 --plot sizes.png -o sensor.slim",
    "slimsvm frontier sensor.csv -t state --bytes 1024 --json",
)
def frontier(
    data: Data,
    learn: LearnOptions,
    display: DisplayOptions,
    options: FrontierOptions,
) -> None:
    """How many vectors do the data need? Models of several sizes, judged by validation.

    A share of the rows is held out from all of it and judges the chosen model in the report; the model that is written
    is the one in the report. To learn that size from all rows: slimsvm train --vectors N.
    """
    from .frontier import frontier as work

    work(data, options, learn, _console(display))


@command(
    "slimsvm compress svc.pkl --vectors 50 --trust -o small.slim",
    "slimsvm compress svc.joblib --vectors auto --data train.csv --target y -o small.slim",
    "slimsvm compress model.slim --vectors 10 -o smaller.slim",
)
def compress(
    model: Annotated[
        Path,
        typer.Argument(
            help="A fitted machine or Pipeline: .pkl, .pickle, .joblib, .skops or .slim.", show_default=False
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The small model: a .slim file.", show_default=False)
    ],
    reading: ReadingOptions,
    display: DisplayOptions,
    options: CompressOptions,
) -> None:
    """Make a fitted SVC, NuSVC, SVR, NuSVR or OneClassSVM of scikit-learn small."""
    from .compress import compress as work

    work(model, output, options, reading, _console(display))


@command(
    "slimsvm export iris.slim --c iris.h --example main.c",
    "slimsvm export sensor.slim --c sensor.h --int8 --name sensor",
    "slimsvm export iris.slim --onnx iris.onnx",
)
def export(
    model: Model,
    reading: ReadingOptions,
    display: DisplayOptions,
    options: ExportOptions,
) -> None:
    """Write a model as C or as ONNX.

    C code starts after categories are encoded and missing numbers filled in; ONNX has all of it.
    """
    from .export import export as work

    work(model, options, reading, _console(display))


@command("slimsvm info iris.slim", "slimsvm info iris.slim --json")
def info(
    model: Model,
    display: DisplayOptions,
) -> None:
    """Show what is in a .slim file and how it was made."""
    from .info import info as work

    work(model, _console(display))
