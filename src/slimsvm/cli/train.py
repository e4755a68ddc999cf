"""``slimsvm train``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import models, preprocessing
from .byte_budget import fitted
from .console import Console, Facts
from .data import Data, held_out, learning_data
from .errors import WrongUse
from .models import device_bytes

if TYPE_CHECKING:
    from .options import Choosing, Judging, Learning, Reading

VECTORS = 20


def train(
    path: Path,
    vectors: str | None,
    max_bytes: int | None,
    output: Path,
    reading: Reading,
    choosing: Choosing,
    judging: Judging,
    learning: Learning,
    out: Console,
) -> None:
    """Learn from a file, judge on rows held out, keep a model of all rows."""
    models.check_new(output)
    if vectors is not None and max_bytes is not None:
        raise WrongUse("--vectors and --bytes exclude each other: give the number of vectors, or the bytes")
    given = settings_of(learning) | {"n_vectors": size_of(vectors), "max_bytes": max_bytes}
    start = time.perf_counter()
    data = learning_data(path, reading, choosing)
    data.kind.check_options(learning)
    out.notes(data.inputs.notes)
    some, test = held_out(data, judging, reading, choosing, learning.seed)
    prototype = preprocessing.pipeline(data.inputs, data.kind.step, data.kind.estimator(given))
    separate = some is data.rows  # the rows that judge are not in the file, or there are none
    prototype[-1].verbose = out.shows_progress
    with out.work(2 if separate else 3) as begin:
        estimate = None
        if not separate:
            begin("rows held out")
            assert test is not None
            estimate = data.kind.judged(fitted(prototype, some, max_bytes), some, test)
        begin("all rows")
        model = fitted(prototype, data.rows, max_bytes)
        if separate and test is not None:
            estimate = data.kind.judged(model, some, test)
        begin("saving")
        model[-1].verbose = False
        settings = as_given(learning) | {"vectors": vectors or (None if max_bytes else VECTORS), "bytes": max_bytes}
        metadata = made(data, out.command, settings, learning.seed) | {"held_out": estimate}
        models.save(model, output, metadata)
    seconds = time.perf_counter() - start
    show(out, data, model, estimate, output, seconds, judging)


# --- settings -----------------------------------------------------------------------------------------------------


def size_of(text: str | None) -> int | str:
    """A number of vectors, or auto."""
    if text is None:
        return VECTORS
    if text == "auto":
        return text
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise WrongUse(f"--vectors {text}: must be a whole number of at least 1, or auto")
    return number


def number_or(option: str, text: str, *words: str) -> float | str:
    """A number above 0, or one of some words."""
    if text in words:
        return text
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not 0 < number < float("inf"):
        raise WrongUse(f"{option} {text}: must be a number above 0, or {' or '.join(words)}")
    return number


def choice(option: str, text: str, *words: str) -> str:
    if text not in words:
        raise WrongUse(f"{option} {text}: must be {', '.join(words[:-1])} or {words[-1]}")
    return text


def settings_of(how: Learning) -> dict[str, Any]:
    """What the options ask for, as estimators call it."""
    if how.jobs == 0:
        raise WrongUse("--jobs 0: must be a number of threads, or -1 for all processors")
    return {
        "C": number_or("--C", how.C, "search"),
        "gamma": number_or("--gamma", how.gamma, "search", "scale", "auto"),
        "scales": choice("--scales", how.scales, "search", "fixed", "learned"),
        "kernel": choice("--kernel", how.kernel, "rbf", "laplacian", "poly", "linear"),
        "class_weight": "balanced" if how.balanced else None,
        "probability": how.probability,
        "intervals": how.intervals,
        "nu": how.nu,
        "n_jobs": how.jobs,
        "random_state": how.seed,
    }


def as_given(how: Learning) -> dict[str, Any]:
    """The same as it was typed."""
    names = ("C", "gamma", "scales", "kernel", "balanced", "probability")
    return {name: getattr(how, name) for name in names} | ({"intervals": True} if how.intervals else {})


# --- work ---------------------------------------------------------------------------------------------------------


def made(data: Data, command: str, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """How a model was made, as it is kept in its file."""
    return {
        "command": command,
        "data": Path(data.path).name,
        "rows": len(data.rows),
        "inputs": data.inputs.as_json(),
        "target": data.target,
        "task": data.kind.name,
        "missing": list(data.missing),
        **data.kind.about(data.rows.y),
        "preprocessing": preprocessing.words(data.inputs),
        "settings": settings,
        "seed": seed,
        "versions": models.versions(),
    }


# --- what is shown ------------------------------------------------------------------------------------------------


def show(out: Console, data: Data, model: Any, estimate: Any, output: Path, seconds: float, judging: Judging) -> None:
    """The report of a model."""
    last, about = model[-1], data.kind.about(data.rows.y)
    content = {
        "model": str(output),
        "rows": len(data.rows),
        "columns": len(data.inputs.columns),
        "inputs": int(last.n_features_in_),
        "task": data.kind.name,
        **_counted(about),
        "preprocessing": preprocessing.words(data.inputs, model),
        "vectors": int(last.n_vectors_),
        "bytes": device_bytes(model),
        "C": getattr(last, "C_", None),
        "gamma": getattr(last.kernel_, "gamma", None),
        "held_out": estimate,
        "seconds": seconds,
    }
    where = f"in {judging.test}" if judging.test else f"held out, {100 * judging.test_size:.3g} %"
    rows = [
        ("rows", len(data.rows)),
        ("inputs", inputs_in_words(len(data.inputs.columns), int(last.n_features_in_))),
        ("task", f"{data.kind.name}: {data.kind.why}"),
        *data.kind.lines(about),
        ("preprocessing", "; ".join(content["preprocessing"])),
        ("vectors", content["vectors"]),
        ("bytes on a device", content["bytes"]),
    ]
    if estimate is not None:
        rows += data.kind.verdict(estimate, where)
    rows += [
        ("time", f"{seconds:.1f} s"),
        ("model", f"{output}{'' if estimate is None or judging.test else ', learned from all rows'}"),
    ]
    out.report(content, Facts(rows))


def inputs_in_words(columns: int, encoded: int) -> str:
    return str(columns) if columns == encoded else f"{encoded} from {columns} columns"


def _counted(about: dict[str, Any]) -> dict[str, Any]:
    """What is known of labels, with the rows of each class beside it."""
    if "classes" not in about:
        return about
    return {"classes": dict(zip(about["classes"], about["class_rows"], strict=True))}
