"""``slimsvm info``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import preprocessing
from .console import Console, Facts
from .models import SavedModel, device_bytes, open_model
from .tasks import TASKS, ClassificationTask, shortened
from .train import inputs_in_words

MAX_KERNEL_CHARACTERS = 200


def info(path: Path, console: Console) -> None:
    """Show facts about the model in a file."""
    saved = open_model(path)
    content = {"file": str(path), **saved.facts, "model": _model_facts(saved)}
    console.report(content, Facts(_lines(saved, content["model"])))


def _model_facts(saved: SavedModel) -> dict[str, Any]:
    estimator = saved.estimator
    return {
        "class": type(estimator).__name__,
        "steps": [name for name, _ in preprocessing.steps_of(saved.model) if name],
        "inputs": int(estimator.n_features_in_),
        "classes": saved.classes,
        "vectors": int(estimator.n_vectors_),
        "bytes": device_bytes(saved.model),
        "kernel": repr(estimator.kernel_),
        "probabilities": saved.has_probabilities,
        "intervals": saved.has_intervals,
        "columns": None if saved.inputs is None else saved.inputs.names,
    }


def _lines(saved: SavedModel, model: dict[str, Any]) -> list[tuple[str, Any]]:
    metadata, columns = saved.metadata, saved.inputs
    classes = None if model["classes"] is None else [str(label) for label in model["classes"]]
    return [
        ("file", f"{saved.path}, {saved.facts['bytes']} bytes"),
        ("model", model["class"] + (f" after {', '.join(model['steps'][:-1])}" if model["steps"][:-1] else "")),
        ("columns", None if columns is None else shortened(columns.names)),
        ("inputs", model["inputs"] if columns is None else inputs_in_words(len(columns.columns), model["inputs"])),
        ("target", metadata.get("target")),
        ("task", metadata.get("task")),
        ("classes", None if classes is None else shortened(classes)),
        ("preprocessing", "; ".join(_preprocessing(saved))),
        ("vectors", model["vectors"]),
        ("bytes on a device", model["bytes"]),
        ("kernel", _shortened(model["kernel"])),
        ("probabilities", "yes" if model["probabilities"] else "no"),
        ("intervals", "yes" if model["intervals"] else None),
        *_held_out_lines(metadata),
        (
            "learned from",
            f"{metadata.get('learned_from', metadata['rows'])} rows of {metadata.get('data', 'other data')}"
            if metadata.get("rows")
            else metadata.get("original"),
        ),
        ("made by", metadata.get("command")),
        ("settings", _pairs(metadata.get("settings"))),
        ("seed", metadata.get("seed")),
        ("versions", _pairs(metadata.get("versions"))),
    ]


def _held_out_lines(metadata: dict[str, Any]) -> list[tuple[str, Any]]:
    """Scores on held-out rows from training; files of earlier versions name no task and are classifiers."""
    scores, task = metadata.get("held_out"), TASKS.get(metadata.get("task", ClassificationTask.name))
    if not scores or task is None:
        return []
    try:
        return task().held_out_lines(scores, "held out")
    except (KeyError, TypeError, ValueError):  # metadata written by another program
        return []


def _preprocessing(saved: SavedModel) -> list[str]:
    if "preprocessing" not in saved.metadata or saved.inputs is None:
        return []
    return preprocessing.words(saved.inputs, None if saved.inputs.plain else saved.model)


def _pairs(values: dict[str, Any] | None) -> str:
    return ", ".join(f"{name} {value}" for name, value in (values or {}).items() if value is not None)


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_KERNEL_CHARACTERS else text[: MAX_KERNEL_CHARACTERS - 1] + "…"
