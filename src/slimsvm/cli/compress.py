"""``slimsvm compress``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import models, tables
from .console import Console, Facts
from .errors import CommandError, WrongUse, listed, one_line
from .labels import detects_outliers, labels_for, target_of
from .models import SUFFIX, Saved, open_model

if TYPE_CHECKING:
    from .options import Reading

PICKLES = (".pkl", ".pickle", ".joblib")
SKOPS = ".skops"
OURS = ("slimsvm.", "sklearn.", "numpy.", "scipy.")  # what a .skops file may hold without questions


def compress(
    path: Path,
    vectors: str,
    output: Path,
    data: Path | None,
    target: str | None,
    fit_to: str,
    method: str,
    probability: bool,
    trust: bool,
    seed: int,
    jobs: int | None,
    reading: Reading,
    out: Console,
) -> None:
    """A small version of a fitted machine, as a .slim file."""
    from .. import compress as compressed

    models.check_new(output)
    wanted = vectors_of(vectors)
    if target is not None and data is None:
        raise WrongUse("--target names a column of --data; give both, or neither")
    if jobs == 0:
        raise WrongUse("--jobs 0: must be a number of threads, or -1 for all processors")
    original = open_any(path, trust)
    start = time.perf_counter()
    X, y = _rows(original, data, target, reading, out)
    with out.work(2) as begin:
        begin("compressing")
        options: dict[str, Any] = {"fit_to": fit_to, "method": method, "probability": probability}
        options |= {"random_state": seed, "n_jobs": jobs}
        try:
            small = compressed(original.model, wanted, X, y, verbose=out.shows_progress, **options)
        except (TypeError, ValueError) as error:
            raise CommandError(f"{path}: {one_line(error)}") from None
        begin("saving")
        last = small.steps[-1][1] if hasattr(small, "steps") else small
        last.verbose = False
        models.save(small, output, _made(out.command, original, vectors, options, data, target, seed))
    if hasattr(original.model, "predict_proba") and not hasattr(small, "predict_proba"):
        out.note("the small model has no probabilities; --probability --data FILE --target NAME would fit them")
    _show(out, small, output, time.perf_counter() - start)


def vectors_of(text: str) -> int | float | str:
    """A number of vectors, a fraction of them, or auto."""
    if text == "auto":
        return text
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not (0 < number < 1 or (number >= 1 and number.is_integer())):
        raise WrongUse(f"--vectors {text}: must be a whole number of at least 1, a fraction such as 0.1, or auto")
    return int(number) if number >= 1 else number


# --- reading what is to be compressed -----------------------------------------------------------------------------


def open_any(path: Path, trust: bool) -> Saved:
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
    return Saved(model, {}, str(path), {})


def _from_skops(path: Path) -> Any:
    try:
        import skops.io
    except ImportError:
        raise CommandError(f"{path} needs skops, which is not installed: pip install 'slimsvm[skops]'") from None
    try:
        foreign = [name for name in skops.io.get_untrusted_types(file=path) if not name.startswith(OURS)]
        if foreign:
            raise CommandError(
                f"{path} holds types that are not trusted: {listed(foreign)}; load it in Python with skops"
            )
        return skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
    except CommandError:
        raise
    except Exception as error:  # whatever a damaged archive gives
        raise CommandError(f"{path} is not a file of skops that can be read: {one_line(error)}") from None


def _from_pickle(path: Path, trust: bool) -> Any:
    if not trust and not _asked(path):
        raise CommandError(f"{path} was not read")
    import joblib

    try:
        return joblib.load(path)
    except KeyboardInterrupt:
        raise
    except Exception as error:  # unpickling can raise anything
        raise CommandError(f"{path} cannot be unpickled: {type(error).__name__}: {one_line(error)}") from None


def _asked(path: Path) -> bool:
    """Ask the person at the terminal."""
    import typer

    if not sys.stdin.isatty():
        raise WrongUse(
            f"{path} is a pickle, and reading one can run any code in it; say --trust if you know where it comes from"
        )
    question = f"{path} is a pickle, and reading one can run any code in it. Read it?"
    return typer.confirm(question, err=True)


# --- rows, report -------------------------------------------------------------------------------------------------


def _rows(original: Saved, data: Path | None, target: str | None, reading: Reading, out: Console) -> tuple[Any, Any]:
    """Rows that the original is compared on, with labels where a target is given."""
    if data is None:
        return None, None
    table = tables.read(data, original.reading(reading))
    if target is None and table.sparse:
        target = tables.LABEL
    y = None
    if target is not None:
        target = target_of(table, target)
        y = labels_for(original.model, table, target)
    return original.rows(table, {target} if target else set(), out), y


def _made(
    command: str,
    original: Saved,
    vectors: str,
    options: dict[str, Any],
    data: Path | None,
    target: str | None,
    seed: int,
) -> dict[str, Any]:
    """How the small model was made; what the original's file says stays true of its inputs."""
    kept = {
        name: original.metadata[name]
        for name in ("inputs", "target", "missing", "classes")
        if name in original.metadata
    }
    if target is not None:
        kept["target"] = target
    return kept | {
        "command": command,
        "original": Path(original.path).name,
        "data": None if data is None else data.name,
        "settings": {"vectors": vectors} | {name: options[name] for name in ("fit_to", "method", "probability")},
        "seed": seed,
        "versions": models.versions(),
    }


def _show(out: Console, small: Any, output: Path, seconds: float) -> None:
    last = small.steps[-1][1] if hasattr(small, "steps") else small
    done = last.compression_
    names = ("method", "vectors_before", "vectors_after", "bytes_before", "bytes_after", "agreement_on_vectors")
    content = {name: getattr(done, name) for name in (*names, "agreement_on_X", "distance", "speedup", "note")}
    device = models.device_bytes(small)
    content |= {"bytes": device, "model": str(output), "seconds": seconds}
    ends = [("bytes on a device", device), ("time", f"{seconds:.1f} s"), ("model", str(output))]
    out.report(content, _in_words(done, small), Facts(ends))


def _in_words(done: Any, small: Any) -> str:
    """The library's report; values of a regressor do not agree or differ, but are more or less alike."""
    if hasattr(small, "classes_") or detects_outliers(small):
        return str(done)
    on_X = "" if done.agreement_on_X is None else f", {done.agreement_on_X:.4f} on the data"
    alike = f"R² between its values and the original's: {done.agreement_on_vectors:.4f} on the original's vectors{on_X}"
    return "\n".join(alike if line.startswith("agreement") else line for line in str(done).splitlines())
