"""``slimsvm predict`` and ``slimsvm score``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import preprocessing, tables
from .console import Console, Facts, percent
from .errors import CommandError, WrongUse
from .evaluation import confusion_table, judge
from .inputs import named
from .labels import detects_outliers, labels_for, target_of, weights_of
from .models import Saved, check_new, open_model

if TYPE_CHECKING:
    from .options import Reading


def predict(
    path: Path,
    data: Path,
    output: Path | None,
    probabilities: bool,
    coverage: float | None,
    keep: list[str] | None,
    reading: Reading,
    out: Console,
) -> None:
    """Predictions for the rows of a file, in their order."""
    import pandas as pd

    if output is not None and str(output) != "-":
        tables.writable(output)
        check_new(output, suffix=None)
    if coverage is not None and not 0 < coverage < 1:
        raise WrongUse(f"--interval {coverage:g}: must be a probability between 0 and 1, such as 0.9")
    saved = open_model(path)
    if probabilities and not hasattr(saved.model, "predict_proba"):
        raise CommandError(f"{path} has no probabilities; {_with_probabilities(saved)}")
    if coverage is not None and not hasattr(saved.last, "predict_interval"):
        raise CommandError(f"{path} has no intervals; {_with_intervals(saved)}")
    table = tables.read(data, saved.reading(reading))
    kept = named(keep, "--keep", table)
    made = [*_names(saved, "prediction"), *(_shares(saved) if probabilities else ())]
    made += [] if coverage is None else [*_names(saved, "low"), *_names(saved, "high")]
    both = [name for name in kept if name in made]
    if both:
        raise WrongUse(f"--keep {both[0]}: the output has a column of this name itself; give that of the data another")
    with out.work(1) as begin:
        begin("predicting")
        X = _inputs(saved, table, {saved.target, *kept} - {None}, out)
        found = _kept(table, kept, output, out) | _columns(_names(saved, "prediction"), saved.model.predict(X))
        if probabilities:
            found |= _columns(_shares(saved), saved.model.predict_proba(X))
        if coverage is not None:
            found |= _ends(saved, X, coverage, out)
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


def _kept(table: tables.Table, names: list[str], output: Path | None, out: Console) -> dict[str, Any]:
    """Columns of the data, from text to text as they are: 007 stays 007."""
    to_text = not out.json if output is None else str(output) == "-" or tables.writable(output) == "csv"
    frame = table.raw(names) if names and to_text and table.raw is not None else table.frame
    return {name: frame[name] for name in names}


def _names(saved: Saved, what: str) -> list[str]:
    """Names of the columns of answers, or of something about them: one, or one for each of several targets."""
    targets = 1 if hasattr(saved.model, "classes_") else len(saved.last.intercept_)
    return [what] if targets == 1 else [f"{what}_{number}" for number in range(1, targets + 1)]


def _columns(names: list[str], values: Any) -> dict[str, Any]:
    """Values by name: a vector, or a column for each name."""
    return dict(zip(names, np.reshape(values, (len(values), len(names))).T, strict=True))


def _ends(saved: Saved, X: Any, coverage: float, out: Console) -> dict[str, Any]:
    """Both ends of intervals; a pipeline has no such method."""
    rows = saved.model[:-1].transform(X) if hasattr(saved.model, "steps") and len(saved.model.steps) > 1 else X
    found = saved.last.predict_interval(rows, coverage)
    if np.isinf(found).any():
        out.note(f"the model knows too few rows for intervals of coverage {coverage:g}: they are infinite")
    return _columns(_names(saved, "low"), found[..., 0]) | _columns(_names(saved, "high"), found[..., 1])


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


def _with_intervals(saved: Saved) -> str:
    """How a model gets them."""
    if hasattr(saved.model, "classes_") or detects_outliers(saved.model):
        return "only models of numbers can have them"
    if "original" in saved.metadata:
        return "compressed models have none: slimsvm train --intervals makes a small model with them"
    return "train it with --intervals"


def score(path: Path, data: Path, target: str | None, weight: str | None, reading: Reading, out: Console) -> None:
    """Error on the rows of a file."""
    saved = open_model(path)
    targets = len(_names(saved, "prediction"))
    if targets > 1:
        raise CommandError(f"{path} has {targets} targets, and this compares one column; load it in Python")
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


def _inputs(saved: Saved, table: tables.Table, besides: Any, out: Console) -> Any:
    X = saved.rows(table, besides, out)
    if hasattr(X, "columns"):
        out.notes(preprocessing.unknown(saved.model, X))
    return X
