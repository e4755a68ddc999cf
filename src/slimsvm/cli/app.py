"""The commands, their options and their help; the work is in the other modules, which are imported when it begins."""

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
from .options import READING, Choosing, Judging, Learning, Reading, Showing, with_groups

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
    """An epilog, a line each."""
    return "\n\n".join(["[bold]Examples[/bold]", *(line.replace("[", r"\[") for line in lines), CODES])


def command(*lines: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command, with examples in its help."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        # Lines of a paragraph are joined: the terminal decides where they break.
        paragraphs = [" ".join(part.split()) for part in inspect.cleandoc(function.__doc__ or "").split("\n\n")]
        app.command(help="\n\n".join(paragraphs), epilog=examples(*lines))(with_groups(function))
        return function

    return register


def run(arguments: list[str], debug: bool = False) -> int:
    """Run the command; errors are one line on standard error, and an exit code."""
    _arguments.set(tuple(arguments))
    try:
        code = typer.main.get_command(app).main(arguments, prog_name=NAME, standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has had enough; Python would complain again when it closes standard output.
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
    """One line about an error, and its exit code."""
    if debug:
        text = "".join(traceback.format_exception(error))
        print(without_control_characters(text, keep="\n"), end="", file=sys.stderr)
    if hasattr(error, "format_message"):  # of typer: options that are unknown, missing or of another type
        _say(" ".join(error.format_message().split()))
        return int(getattr(error, "exit_code", 2))
    known = isinstance(error, (CommandError, OSError, MemoryError))
    text = one_line(error)
    _say(text if known or isinstance(error, ValueError) else f"{type(error).__name__}: {text} (--debug shows where)")
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


def _output(showing: Showing) -> Any:
    from .console import Console

    return Console(showing, shlex.join([NAME, *_arguments.get()]))


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
    choosing: Choosing,
    judging: Judging,
    learning: Learning,
    reading: Reading,
    showing: Showing,
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

    work(data, vectors, max_bytes, output, reading, choosing, judging, learning, _output(showing))


@command(
    "slimsvm predict iris.slim new.csv -o answers.csv",
    "slimsvm predict churn.slim customers.csv --proba --keep customer_id -o answers.parquet",
    "slimsvm predict price.slim houses.csv --interval 0.9 -o prices.csv",
    "cat new.csv | slimsvm predict iris.slim - | sort | uniq -c",
)
def predict(
    model: Model,
    data: Rows,
    reading: Reading,
    showing: Showing,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="A .csv, .tsv or .parquet file; standard output unless given."
        ),
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Probabilities of the classes, too.")] = False,
    interval: Annotated[
        float | None,
        typer.Option(
            metavar="COVERAGE",
            help="Also low and high, between which true values lie with this probability, such as 0.9; for models that "
            "were trained with --intervals.",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Columns of the data to copy to the output: a,b,c, or repeated."),
    ] = None,
) -> None:
    """Predict the rows of a table, in their order.

    Columns are found by name, in any order; others are ignored.
    """
    from .predict import predict as work

    work(model, data, output, proba, interval, keep, reading, _output(showing))


@command(
    "slimsvm score iris.slim test.csv",
    "slimsvm score iris.slim test.csv --target kind --json",
)
def score(
    model: Model,
    data: Rows,
    reading: Reading,
    showing: Showing,
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

    work(model, data, target, weight, reading, _output(showing))


@command(
    "slimsvm frontier churn.csv -t churned --drop customer_id --html report.html",
    "slimsvm frontier sensor.csv -t state --sizes 4,8,16,32 --plot sizes.png -o sensor.slim",
    "slimsvm frontier sensor.csv -t state --bytes 1024 --json",
)
def frontier(
    data: Data,
    choosing: Choosing,
    judging: Judging,
    learning: Learning,
    reading: Reading,
    showing: Showing,
    html: Annotated[Path | None, typer.Option(help="A report to write: one .html file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="A picture to write: .png, .svg or .pdf.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The chosen model to write: a .slim file.")
    ] = None,
    sizes: Annotated[
        str | None, typer.Option(help="Numbers of vectors: 4,8,16. Powers of two up to 128 unless given.")
    ] = None,
    within: Annotated[
        float | None,
        typer.Option(
            help="Choose the smallest model within so many standard errors of the best. 0.5 unless given.", min=0.0
        ),
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option("--bytes", help="Choose among models of at most so many bytes on a device.", min=1),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--no-full", help="Fit the support vector machine over all rows for comparison.")
    ] = True,
) -> None:
    """How many vectors do the data need? Models of several sizes, judged by validation.

    A share of the rows is held out from all of it and judges the chosen model in the report; the model that is written
    is the one in the report. To learn that size from all rows: slimsvm train --vectors N.
    """
    from .frontier import frontier as work

    out = _output(showing)
    work(data, sizes, html, output, plot, within, max_bytes, full, reading, choosing, judging, learning, out)


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
    reading: Reading,
    showing: Showing,
    vectors: Annotated[
        str, typer.Option("--vectors", "-m", help="Vectors to keep: a number, a fraction such as 0.1, or auto.")
    ] = "20",
    data: Annotated[
        Path | None, typer.Option(help="Rows like those that will be predicted.", rich_help_panel=READING)
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="NAME", help="The column of labels in --data.", rich_help_panel=READING),
    ] = None,
    fit_to: Annotated[
        str,
        typer.Option(
            help="decisions (of the fitted model), labels (of --target), or auto: labels if given for at least as many "
            "rows as the model has vectors."
        ),
    ] = "auto",
    method: Annotated[str, typer.Option(help="auto, reduced_set, refit, margin or learn.")] = "auto",
    probability: Annotated[
        bool, typer.Option("--probability", help="Fit probabilities; needs --data and --target.")
    ] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Read a pickle without asking. Reading one can run any code in it.")
    ] = False,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Of all draws.", min=0, max=2**31 - 1)] = 0,
    jobs: Annotated[int | None, typer.Option(help="Threads; one unless given, -1: all processors.")] = None,
) -> None:
    """Make a fitted SVC, NuSVC, SVR, NuSVR or OneClassSVM of scikit-learn small."""
    from .compress import compress as work

    work(
        model, vectors, output, data, target, fit_to, method, probability, trust, seed, jobs, reading, _output(showing)
    )


@command(
    "slimsvm export iris.slim --c iris.h --example main.c",
    "slimsvm export sensor.slim --c sensor.h --int8 --name sensor",
    "slimsvm export iris.slim --onnx iris.onnx",
)
def export(
    model: Model,
    reading: Reading,
    showing: Showing,
    c: Annotated[Path | None, typer.Option("--c", help="A C99 header to write.")] = None,
    onnx: Annotated[Path | None, typer.Option("--onnx", help="An ONNX file to write.")] = None,
    int8: Annotated[bool, typer.Option("--int8", help="C in integers, for devices without floating point.")] = False,
    example: Annotated[Path | None, typer.Option(help="A C program that uses the header, to write.")] = None,
    name: Annotated[
        str | None, typer.Option(help="What names in the C code begin with; the header's name unless given.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Rows with labels that refit the rounded coefficients, for --int8.", rich_help_panel=READING),
    ] = None,
    float64: Annotated[bool, typer.Option("--float64", help="ONNX in double precision.")] = False,
    max_bytes: Annotated[
        int | None,
        typer.Option("--bytes", help="Bytes that the model may take as C; more is an error.", min=1, metavar="NUMBER"),
    ] = None,
) -> None:
    """Write a model as C or as ONNX.

    C code starts after categories are encoded and missing numbers filled in; ONNX has all of it.
    """
    from .export import export as work

    work(model, c, onnx, int8, example, name, data, float64, max_bytes, reading, _output(showing))


@command("slimsvm info iris.slim", "slimsvm info iris.slim --json")
def info(model: Model, showing: Showing) -> None:
    """Show what is in a .slim file and how it was made."""
    from .info import info as work

    work(model, _output(showing))
