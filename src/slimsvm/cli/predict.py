"""``slimsvm predict`` and ``slimsvm score``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import preprocessing, tables
from .errors import CommandError, WrongUse
from .inputs import named
from .judging import confusion_table, judge
from .labels import labels_for, target_of, weights_of
from .models import Saved, check_new, open_model
from .output import Facts, Output, percent

if TYPE_CHECKING:
    from .options import Reading


def predict(
    path: Path,
    data: Path,
    output: Path | None,
    probabilities: bool,
    keep: list[str] | None,
    reading: Reading,
    out: Output,
) -> None:
    """Predictions for the rows of a file, in their order."""
    import pandas as pd

    if output is not None and str(output) != "-":
        tables.writable(output)
        check_new(output, suffix=None)
    saved = open_model(path)
    if probabilities and not hasattr(saved.model, "predict_proba"):
        raise CommandError(f"{path} has no probabilities; {_with_probabilities(saved)}")
    table = tables.read(data, saved.reading(reading))
    kept = named(keep, "--keep", table)
    made = {"prediction", *(_shares(saved) if probabilities else ())}
    both = [name for name in kept if name in made]
    if both:
        raise WrongUse(f"--keep {both[0]}: the output has a column of this name itself; give that of the data another")
    with out.work(1) as begin:
        begin("predicting")
        X = _inputs(saved, table, {saved.target, *kept} - {None}, out)
        found = _kept(table, kept, output, out) | {"prediction": saved.model.predict(X)}
        if probabilities:
            shares = saved.model.predict_proba(X)
            found |= {name: shares[:, k] for k, name in enumerate(_shares(saved))}
    frame = pd.DataFrame(found)
    content: dict[str, Any] = {"rows": len(frame)}
    if hasattr(saved.model, "classes_"):
        content["counts"] = dict(
            zip(*(part.tolist() for part in np.unique(frame["prediction"], return_counts=True)), strict=True)
        )
    if output is None and out.json:
        out.report(content | {"predictions": frame.to_dict("list")})
        return
    tables.write(frame, output)
    if output is not None and str(output) != "-":
        out.report(content | {"output": str(output)}, f"{len(frame)} predictions in {output}")


def _kept(table: tables.Table, names: list[str], output: Path | None, out: Output) -> dict[str, Any]:
    """Columns of the data, from text to text as they are: 007 stays 007."""
    to_text = not out.json if output is None else str(output) == "-" or tables.writable(output) == "csv"
    frame = table.raw(names) if names and to_text and table.raw is not None else table.frame
    return {name: frame[name] for name in names}


def _shares(saved: Saved) -> list[str]:
    """Names of the columns of probabilities."""
    return [f"probability_{name}" for name in saved.model.classes_]


def _with_probabilities(saved: Saved) -> str:
    """How a model gets them."""
    if not hasattr(saved.model, "classes_"):
        return "only classifiers can have them"
    if "original" in saved.metadata:
        return "compress the original again, with --probability --data FILE --target NAME"
    return "train it with --probability"


def score(path: Path, data: Path, target: str | None, weight: str | None, reading: Reading, out: Output) -> None:
    """Error on the rows of a file."""
    saved = open_model(path)
    table = tables.read(data, saved.reading(reading))
    if target is None and saved.target is None and not table.sparse:
        raise WrongUse(f"{path} does not say which column has the labels; say it with --target")
    target = target_of(table, target or (tables.LABEL if table.sparse else saved.target))
    y, weights = labels_for(saved.model, table, target), weights_of(table, weight)
    with out.work(1) as begin:
        begin("predicting")
        X = _inputs(saved, table, {target, weight, saved.target} - {None}, out)
        found = judge(saved.model, X, y, weights)
    if "r2" in found:
        out.report(found, Facts(_of_values(found)))
        return
    lines = [
        ("rows", found["rows"]),
        ("error", percent(found["error"], found["standard_error"])),
        ("log loss", f"{found['log_loss']:.4f}" if found.get("log_loss") is not None else None),
    ]
    out.report(found, Facts(lines), *confusion_table(found))


def _of_values(found: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        ("rows", found["rows"]),
        ("R²", f"{found['r2']:.4f}"),
        ("RMS error", f"{found['rmse']:.4g}"),
        ("mean absolute error", f"{found['mean_absolute_error']:.4g}"),
    ]


def _inputs(saved: Saved, table: tables.Table, besides: Any, out: Output) -> Any:
    X = saved.rows(table, besides, out)
    if hasattr(X, "columns"):
        out.notes(preprocessing.unknown(saved.model, X))
    return X
