"""``slimsvm train``."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..problem import kernels
from . import models, preprocessing
from .byte_budget import fitted
from .console import Console, Facts
from .data import TrainingData, train_and_test, training_data
from .errors import WrongUse
from .models import device_bytes

if TYPE_CHECKING:
    from .options import HoldOutOptions, LearnOptions, TrainingOptions

N_VECTORS = 20  # unless --vectors or --bytes are given


def train(
    path: Path, output: Path, vectors: str | None, max_bytes: int | None, options: LearnOptions, console: Console
) -> None:
    """Train on a file, score on held-out rows, then train on all rows and save the model."""
    models.check_new(output)
    if vectors is not None and max_bytes is not None:
        raise WrongUse("--vectors and --bytes exclude each other: give the number of vectors, or the bytes")
    settings = estimator_settings(options.training) | {"n_vectors": n_vectors(vectors), "max_bytes": max_bytes}
    start = time.perf_counter()
    data = training_data(path, options)
    console.notes(data.inputs.notes)
    rows, test = train_and_test(data, options)
    prototype = preprocessing.pipeline(data.inputs, data.task.step, data.task.estimator(settings))
    holds_out = rows is not data.rows
    prototype[-1].verbose = console.shows_progress
    with console.work(3 if holds_out else 2) as begin:
        scores = None
        if holds_out:
            begin("rows held out")
            assert test is not None
            scores = data.task.held_out_scores(fitted(prototype, rows, max_bytes), rows, test)
        begin("all rows")
        model = fitted(prototype, data.rows, max_bytes)
        if test is not None and not holds_out:
            scores = data.task.held_out_scores(model, rows, test)
        begin("saving")
        model[-1].verbose = False
        given = {"vectors": vectors or (None if max_bytes else N_VECTORS), "bytes": max_bytes}
        models.save(model, output, metadata(data, console.command, options.training, given) | {"held_out": scores})
    _show(console, data, model, scores, output, time.perf_counter() - start, options.hold_out)


# --- settings -----------------------------------------------------------------------------------------------------


def n_vectors(text: str | None) -> int | str:
    """Parse --vectors: a number, or auto."""
    if text is None:
        return N_VECTORS
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
    """Parse an option: a number above 0, or one of these words."""
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


def check_jobs(jobs: int | None) -> None:
    if jobs == 0:
        raise WrongUse("--jobs 0: must be a number of threads, or -1 for all processors")


def estimator_settings(options: TrainingOptions) -> dict[str, Any]:
    """The options as parameters of the estimator."""
    check_jobs(options.jobs)
    return {
        "C": number_or("--C", options.C, "search"),
        "gamma": number_or("--gamma", options.gamma, "search", "scale", "auto"),
        "scales": choice("--scales", options.scales, "search", "fixed", "learned"),
        "kernel": choice("--kernel", options.kernel, *kernels.in_sentence(kernels.SEMIDEFINITE)),
        "class_weight": "balanced" if options.balanced else None,
        "probability": options.probability,
        "intervals": options.intervals,
        "nu": options.nu,
        "n_jobs": options.jobs,
        "random_state": options.seed,
    }


def as_typed(options: TrainingOptions) -> dict[str, Any]:
    """The options that a model's file records, as they were typed."""
    names = ("C", "gamma", "scales", "kernel", "balanced", "probability", *(["intervals"] * options.intervals))
    return {name: value for name, value in asdict(options).items() if name in names}


def metadata(data: TrainingData, command: str, options: TrainingOptions, given: dict[str, Any]) -> dict[str, Any]:
    """How a model was made, as its file records it; ``given`` are options of one command."""
    return {
        "command": command,
        "data": Path(data.path).name,
        "rows": len(data.rows),
        "inputs": data.inputs.as_json(),
        "target": data.target,
        "task": data.task.name,
        "missing": list(data.missing),
        **data.task.label_facts(data.rows.y),
        "preprocessing": preprocessing.words(data.inputs),
        "settings": as_typed(options) | given,
        "seed": options.seed,
        "versions": models.versions(),
    }


# --- what is shown ------------------------------------------------------------------------------------------------


def _show(
    console: Console, data: TrainingData, model: Any, scores: Any, output: Path, seconds: float, how: HoldOutOptions
) -> None:
    estimator, facts = model[-1], data.task.label_facts(data.rows.y)
    columns, inputs = len(data.inputs.columns), int(estimator.n_features_in_)
    content = {
        "model": str(output),
        "rows": len(data.rows),
        "columns": columns,
        "inputs": inputs,
        "task": data.task.name,
        **_with_counts(facts),
        "preprocessing": preprocessing.words(data.inputs, model),
        "vectors": int(estimator.n_vectors_),
        "bytes": device_bytes(model),
        "C": getattr(estimator, "C_", None),
        "gamma": getattr(estimator.kernel_, "gamma", None),
        "held_out": scores,
        "seconds": seconds,
    }
    where = f"in {how.test}" if how.test else f"held out, {100 * how.test_size:.3g} %"
    lines = [
        ("rows", len(data.rows)),
        ("inputs", inputs_in_words(columns, inputs)),
        ("task", f"{data.task.name}: {data.task.why}"),
        *data.task.label_lines(facts),
        ("preprocessing", "; ".join(content["preprocessing"])),
        ("vectors", content["vectors"]),
        ("bytes on a device", content["bytes"]),
        *([] if scores is None else data.task.held_out_lines(scores, where)),
        ("time", f"{seconds:.1f} s"),
        ("model", f"{output}{'' if scores is None or how.test else ', learned from all rows'}"),
    ]
    console.report(content, Facts(lines))


def inputs_in_words(columns: int, inputs: int) -> str:
    return str(columns) if columns == inputs else f"{inputs} from {columns} columns"


def _with_counts(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts about labels with the number of rows of each class."""
    if "classes" not in facts:
        return facts
    return {"classes": dict(zip(facts["classes"], facts["class_rows"], strict=True))}
