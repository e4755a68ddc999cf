"""``slimsvm predict`` and ``slimsvm score``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import preprocessing, tables
from .console import Console, Facts
from .errors import CommandError, WrongUse
from .evaluation import confusion_table
from .inputs import named
from .labels import target_of, weights_of
from .models import SavedModel, check_new, open_model
from .tables import pd
from .tasks import ClassificationTask, RegressionTask

if TYPE_CHECKING:
    from .options import PredictOptions, ReadingOptions


def predict(path: Path, data: Path, options: PredictOptions, reading: ReadingOptions, console: Console) -> None:
    """Predict the rows of a file, in their order."""
    output, coverage = options.output, options.interval
    if output is not None and str(output) != "-":
        tables.writable(output)
        check_new(output, suffix=None)
    if coverage is not None and not 0 < coverage < 1:
        raise WrongUse(f"--interval {coverage:g}: must be a probability between 0 and 1, such as 0.9")
    saved = open_model(path)
    if options.proba and not saved.has_probabilities:
        raise CommandError(f"{path} has no probabilities; {_with_probabilities(saved)}")
    if coverage is not None and not saved.has_intervals:
        raise CommandError(f"{path} has no intervals; {_with_intervals(saved)}")
    table = tables.read(data, saved.reading(reading))
    kept = named(options.keep, "--keep", table)
    made = [*_names(saved, "prediction"), *(_probability_names(saved) if options.proba else ())]
    made += [] if coverage is None else [*_names(saved, "low"), *_names(saved, "high")]
    both = [name for name in kept if name in made]
    if both:
        raise WrongUse(f"--keep {both[0]}: the output has a column of this name itself; give that of the data another")
    with console.work(1) as begin:
        begin("predicting")
        X = _inputs(saved, table, {saved.target, *kept} - {None}, console)
        columns = _kept(table, kept, output, console) | _columns(_names(saved, "prediction"), saved.model.predict(X))
        if options.proba:
            columns |= _columns(_probability_names(saved), saved.model.predict_proba(X))
        if coverage is not None:
            columns |= _interval_columns(saved, X, coverage, console)
    frame = pd.DataFrame(columns)
    content: dict[str, Any] = {"rows": len(frame)}
    if saved.classes is not None:
        labels, counts = np.unique(frame["prediction"], return_counts=True)
        content["counts"] = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    if output is None and console.json:
        console.report(content | {"predictions": frame.to_dict("list")})
        return
    tables.write(frame, output)
    if output is not None and str(output) != "-":
        console.report(content | {"output": str(output)}, f"{len(frame)} predictions in {output}")


def _kept(table: tables.Table, names: list[str], output: Path | None, console: Console) -> dict[str, Any]:
    """Columns of the data to copy to the output; between text files unchanged, so that 007 stays 007."""
    to_text = not console.json if output is None else str(output) == "-" or tables.writable(output) == "csv"
    frame = table.raw(names) if names and to_text and table.raw is not None else table.frame
    return {name: frame[name] for name in names}


def _names(saved: SavedModel, what: str) -> list[str]:
    """Names of output columns, one per target."""
    numbers = range(1, saved.n_targets + 1)
    return [what] if saved.n_targets == 1 else [f"{what}_{number}" for number in numbers]


def _probability_names(saved: SavedModel) -> list[str]:
    return [f"probability_{name}" for name in saved.classes]


def _columns(names: list[str], values: Any) -> dict[str, Any]:
    """Columns of an array by name; a vector is one column."""
    return dict(zip(names, np.reshape(values, (len(values), len(names))).T, strict=True))


def _interval_columns(saved: SavedModel, X: Any, coverage: float, console: Console) -> dict[str, Any]:
    """Columns of the lower and upper ends of prediction intervals. (A Pipeline has no ``predict_interval``.)"""
    several = len(preprocessing.steps_of(saved.model)) > 1
    intervals = saved.estimator.predict_interval(saved.model[:-1].transform(X) if several else X, coverage)
    if np.isinf(intervals).any():
        console.note(f"the model knows too few rows for intervals of coverage {coverage:g}: they are infinite")
    return _columns(_names(saved, "low"), intervals[..., 0]) | _columns(_names(saved, "high"), intervals[..., 1])


def _with_probabilities(saved: SavedModel) -> str:
    """How a model gets them."""
    if saved.task.name != ClassificationTask.name:
        return "only classifiers can have them"
    if "original" in saved.metadata:
        return "compress the original again, with --probability --data FILE --target NAME"
    return "train it with --probability"


def _with_intervals(saved: SavedModel) -> str:
    """How a model gets them."""
    if saved.task.name != RegressionTask.name:
        return "only models of numbers can have them"
    if "original" in saved.metadata:
        return "compressed models have none: slimsvm train --intervals makes a small model with them"
    return "train it with --intervals"


def score(
    path: Path, data: Path, target: str | None, weight: str | None, reading: ReadingOptions, console: Console
) -> None:
    """Score the predictions for the rows of a file."""
    saved = open_model(path)
    if saved.n_targets > 1:
        raise CommandError(f"{path} has {saved.n_targets} targets, and this compares one column; load it in Python")
    table = tables.read(data, saved.reading(reading))
    if target is None and saved.target is None and not table.sparse:
        raise WrongUse(f"{path} does not say which column has the labels; say it with --target")
    target = target_of(table, target or (tables.LABEL if table.sparse else saved.target))
    y, weights = saved.task.true_labels(saved.model, table, target), weights_of(table, weight)
    with console.work(1) as begin:
        begin("predicting")
        X = _inputs(saved, table, {target, weight, saved.target} - {None}, console)
        scores = saved.task.scores(saved.model, X, y, weights)
    console.report(scores, Facts(saved.task.score_lines(scores)), *confusion_table(scores))


def _inputs(saved: SavedModel, table: tables.Table, others: Any, console: Console) -> Any:
    X = saved.rows(table, others, console)
    if saved.inputs is not None:
        console.notes(preprocessing.unknown(saved.model, X))
    return X
