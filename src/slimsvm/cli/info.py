"""``slimsvm info``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import preprocessing
from .console import Console, Facts
from .inputs import ModelInputs
from .models import Saved, device_bytes, open_model
from .tasks import KINDS, ClassificationTask, shortened
from .train import inputs_in_words


def info(path: Path, out: Console) -> None:
    """What a file says of its model."""
    saved = open_model(path)
    content = {"file": str(path), **saved.facts, "model": _numbers(saved)}
    out.report(content, Facts(_lines(saved, content["model"])))


def _numbers(saved: Saved) -> dict[str, Any]:
    last = saved.last
    steps = [name for name, _ in saved.model.steps] if hasattr(saved.model, "steps") else []
    return {
        "class": type(last).__name__,
        "steps": steps,
        "inputs": int(last.n_features_in_),
        "classes": getattr(last, "classes_", None),
        "vectors": int(last.n_vectors_),
        "bytes": device_bytes(saved.model),
        "kernel": repr(last.kernel_),
        "probabilities": hasattr(saved.model, "predict_proba"),
        "intervals": hasattr(last, "predict_interval"),
        "columns": None if saved.inputs is None else saved.inputs.names,
    }


def _lines(saved: Saved, model: dict[str, Any]) -> list[tuple[str, Any]]:
    """The same for people."""
    said, columns = saved.metadata, saved.inputs
    estimate = said.get("held_out")
    classes = None if model["classes"] is None else [str(label) for label in model["classes"]]
    return [
        ("file", f"{saved.path}, {saved.facts['bytes']} bytes"),
        ("model", model["class"] + (f" after {', '.join(model['steps'][:-1])}" if model["steps"][:-1] else "")),
        ("columns", None if columns is None else shortened(columns.names)),
        ("inputs", model["inputs"] if columns is None else inputs_in_words(len(columns.columns), model["inputs"])),
        ("target", said.get("target")),
        ("task", said.get("task")),
        ("classes", None if classes is None else shortened(classes)),
        ("preprocessing", "; ".join(_words(said, saved))),
        ("vectors", model["vectors"]),
        ("bytes on a device", model["bytes"]),
        ("kernel", _shortened(model["kernel"])),
        ("probabilities", "yes" if model["probabilities"] else "no"),
        ("intervals", "yes" if model["intervals"] else None),
        *_verdict(said, estimate),
        (
            "learned from",
            f"{said.get('learned_from', said['rows'])} rows of {said.get('data', 'other data')}"
            if said.get("rows")
            else said.get("original"),
        ),
        ("made by", said.get("command")),
        ("settings", _pairs(said.get("settings"))),
        ("seed", said.get("seed")),
        ("versions", _pairs(said.get("versions"))),
    ]


def _verdict(said: dict[str, Any], estimate: Any) -> list[tuple[str, Any]]:
    """What rows held out said, as it was shown then; files of earlier versions are of classes."""
    kind = KINDS.get(said.get("task", ClassificationTask.name))
    if not estimate or kind is None:
        return []
    try:
        return kind().verdict(estimate, "held out")
    except (KeyError, TypeError, ValueError):  # metadata written by another program
        return []


def _words(said: dict[str, Any], saved: Saved) -> list[str]:
    if "preprocessing" not in said or not isinstance(saved.inputs, ModelInputs):
        return []
    return preprocessing.words(saved.inputs, saved.model if not saved.inputs.plain else None)


def _pairs(values: dict[str, Any] | None) -> str:
    return ", ".join(f"{name} {value}" for name, value in (values or {}).items() if value is not None)


def _shortened(text: str, most: int = 200) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"
