"""``slimsvm compress``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import typer

from .. import compress as compress_model
from . import models, tables
from .console import Console, Facts
from .errors import CommandError, WrongUse, listed, one_line
from .labels import target_of
from .models import SUFFIX, SavedModel, open_model
from .tasks import RegressionTask
from .train import check_jobs

if TYPE_CHECKING:
    from .options import CompressOptions, ReadingOptions

PICKLES = (".pkl", ".pickle", ".joblib")
SKOPS = ".skops"
TRUSTED_PACKAGES = ("slimsvm.", "sklearn.", "numpy.", "scipy.")  # packages whose types a .skops file may contain


def compress(path: Path, output: Path, options: CompressOptions, reading: ReadingOptions, console: Console) -> None:
    """Make a fitted model small, and save it as a .slim file."""
    models.check_new(output)
    n_vectors = vectors_of(options.vectors)
    if options.target is not None and options.data is None:
        raise WrongUse("--target names a column of --data; give both, or neither")
    check_jobs(options.jobs)
    original = open_any(path, options.trust)
    start = time.perf_counter()
    X, y = _rows(original, options, reading, console)
    with console.work(2) as begin:
        begin("compressing")
        try:
            compressed = compress_model(
                original.model,
                n_vectors,
                X,
                y,
                fit_to=options.fit_to,
                method=options.method,
                probability=options.probability,
                random_state=options.seed,
                n_jobs=options.jobs,
                verbose=console.shows_progress,
            )
        except (TypeError, ValueError) as error:
            raise CommandError(f"{path}: {one_line(error)}") from None
        begin("saving")
        small = SavedModel(compressed, {}, str(output), {})
        small.estimator.verbose = False
        models.save(compressed, output, _metadata(console.command, original, options))
    if original.has_probabilities and not small.has_probabilities:
        console.note("the small model has no probabilities; --probability --data FILE --target NAME would fit them")
    _show(console, small, time.perf_counter() - start)


def vectors_of(text: str) -> int | float | str:
    """Parse --vectors: a number, a fraction of the original's vectors, or auto."""
    if text == "auto":
        return text
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not (0 < number < 1 or (number >= 1 and number.is_integer())):
        raise WrongUse(f"--vectors {text}: must be a whole number of at least 1, a fraction such as 0.1, or auto")
    return int(number) if number >= 1 else number


# --- reading the original model -----------------------------------------------------------------------------------


def open_any(path: Path, trust: bool) -> SavedModel:
    """A fitted estimator from a .slim, .skops or pickle file; a pickle only if it is trusted."""
    suffix = path.suffix.lower()
    if suffix == SUFFIX:
        return open_model(path)
    if suffix != SKOPS and suffix not in PICKLES:
        raise WrongUse(f"{path}: unknown kind of model; use one of {', '.join([SUFFIX, SKOPS, *PICKLES])}")
    if path.is_dir():
        raise CommandError(f"{path} is a directory; give a file")
    if not path.exists():
        raise CommandError(f"{path}: no such file")
    model = _from_skops(path) if suffix == SKOPS else _from_pickle(path, trust)
    return SavedModel(model, {}, str(path), {})


def _from_skops(path: Path) -> Any:
    try:
        import skops.io
    except ImportError:
        raise CommandError(f"{path} needs skops, which is not installed: pip install 'slimsvm[skops]'") from None
    try:
        foreign = [name for name in skops.io.get_untrusted_types(file=path) if not name.startswith(TRUSTED_PACKAGES)]
        if foreign:
            raise CommandError(
                f"{path} holds types that are not trusted: {listed(foreign)}; load it in Python with skops"
            )
        return skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
    except CommandError:
        raise
    except Exception as error:  # a damaged archive can raise anything
        raise CommandError(f"{path} is not a file of skops that can be read: {one_line(error)}") from None


def _from_pickle(path: Path, trust: bool) -> Any:
    if not trust and not _confirmed(path):
        raise CommandError(f"{path} was not read")
    try:
        return joblib.load(path)
    except KeyboardInterrupt:
        raise
    except Exception as error:  # unpickling can raise anything
        raise CommandError(f"{path} cannot be unpickled: {type(error).__name__}: {one_line(error)}") from None


def _confirmed(path: Path) -> bool:
    """Ask the user at the terminal whether to read a pickle."""
    if not sys.stdin.isatty():
        raise WrongUse(
            f"{path} is a pickle, and reading one can run any code in it; say --trust if you know where it comes from"
        )
    question = f"{path} is a pickle, and reading one can run any code in it. Read it?"
    return typer.confirm(question, err=True)


# --- rows, report -------------------------------------------------------------------------------------------------


def _rows(original: SavedModel, options: CompressOptions, reading: ReadingOptions, console: Console) -> tuple[Any, Any]:
    """Rows on which the small model and the original are compared, with labels if a target is given."""
    if options.data is None:
        return None, None
    table = tables.read(options.data, original.reading(reading))
    target, y = options.target or (tables.LABEL if table.sparse else None), None
    if target is not None:
        target = target_of(table, target)
        y = original.task.true_labels(original.model, table, target)
    return original.rows(table, {target} if target else set(), console), y


def _metadata(command: str, original: SavedModel, options: CompressOptions) -> dict[str, Any]:
    """How the small model was made, with the original's metadata about its inputs and target."""
    names = ("inputs", "target", "missing", "classes")
    kept = {name: original.metadata[name] for name in names if name in original.metadata}
    if options.target is not None:
        kept["target"] = options.target
    return kept | {
        "command": command,
        "original": Path(original.path).name,
        "data": None if options.data is None else options.data.name,
        "settings": {
            "vectors": options.vectors,
            "fit_to": options.fit_to,
            "method": options.method,
            "probability": options.probability,
        },
        "seed": options.seed,
        "versions": models.versions(),
    }


def _show(console: Console, small: SavedModel, seconds: float) -> None:
    compression = small.estimator.compression_
    names = ("method", "vectors_before", "vectors_after", "bytes_before", "bytes_after", "agreement_on_vectors")
    content = {name: getattr(compression, name) for name in (*names, "agreement_on_X", "distance", "speedup", "note")}
    device = models.device_bytes(small.model)
    content |= {"bytes": device, "model": small.path, "seconds": seconds}
    lines = [("bytes on a device", device), ("time", f"{seconds:.1f} s"), ("model", small.path)]
    console.report(content, _in_words(compression, small), Facts(lines))


def _in_words(compression: Any, small: SavedModel) -> str:
    """The compression report as text; for regressors with R² between both models in place of the agreement."""
    if small.task.name != RegressionTask.name:
        return str(compression)
    on_X = "" if compression.agreement_on_X is None else f", {compression.agreement_on_X:.4f} on the data"
    alike = (
        "R² between its values and the original's: "
        f"{compression.agreement_on_vectors:.4f} on the original's vectors{on_X}"
    )
    return "\n".join(alike if line.startswith("agreement") else line for line in str(compression).splitlines())
