"""What a model learns from a table and predicts: classification, regression or outlier detection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import SlimOneClass, SlimSVC, SlimSVR
from . import evaluation, labels
from .console import percent
from .errors import CommandError, WrongUse, listed
from .tables import Table

if TYPE_CHECKING:
    from .data import LabelledFrame
    from .options import TrainingOptions

AUTO = "auto"
# Whole numbers are classes if at most MAX_NUMERIC_CLASSES differ, or at most one per MIN_ROWS_OF_CLASS rows.
MAX_NUMERIC_CLASSES, MIN_ROWS_OF_CLASS = 20, 10
MAX_LISTED = 12  # classes or columns in a line

Scores = dict[str, Any]
Lines = list[tuple[str, Any]]  # lines of text output: a name and its value


@dataclass(frozen=True)
class LearningTask(ABC):
    """One kind of learning task; ``why`` says which property of the target made it this one."""

    why: str = ""
    name: ClassVar[str]
    step: ClassVar[str]  # name of the estimator in a pipeline
    stratified: ClassVar[bool] = False
    foreign_options: ClassVar[dict[str, str]]  # options of other tasks, and the tasks that have them
    foreign_parameters: ClassVar[tuple[str, ...]] = ()  # parameters that its estimator does not have
    measure: ClassVar[str] = ""  # score that compares sizes; empty if sizes are not compared

    def format_score(self, score: float, standard_error: float) -> str:
        """A score of this measure with its standard error, as text."""
        return f"{score:.4f} ± {standard_error:.4f}"

    @abstractmethod
    def read_labels(self, table: Table, target: str | None, known: Any = None) -> Any:
        """Labels of the rows; for a test file, ``known`` are the labels of training."""

    @abstractmethod
    def check_labels(self, y: Any, target: str | None) -> None:
        """Raise CommandError if nothing can be learned from these labels."""

    @abstractmethod
    def estimator(self, settings: dict[str, Any]) -> Any:
        """An unfitted estimator with the settings of the command line."""

    @abstractmethod
    def held_out_scores(self, model: Any, train: LabelledFrame, test: LabelledFrame) -> Scores:
        """Scores of a model and of a baseline on held-out rows."""

    def label_facts(self, y: Any) -> dict[str, Any]:
        """Facts about the labels for the metadata of the model's file."""
        return {}

    def label_lines(self, facts: dict[str, Any]) -> Lines:
        """Facts about the labels as lines of text."""
        return []

    @abstractmethod
    def held_out_lines(self, scores: Scores, where: str) -> Lines:
        """Scores on held-out rows as lines of text."""

    @abstractmethod
    def true_labels(self, model: Any, table: Table, target: str) -> Any:
        """Labels of the rows in the type that the fitted model predicts."""

    @abstractmethod
    def scores(self, model: Any, X: Any, y: Any, weights: Any) -> Scores:
        """Scores of a fitted model on rows with labels as `true_labels` returns them."""

    def score_lines(self, scores: Scores) -> Lines:
        """Scores as lines of text."""
        return [
            ("rows", scores["rows"]),
            ("error", percent(scores["error"], scores["standard_error"])),
            ("log loss", f"{scores['log_loss']:.4f}" if scores.get("log_loss") is not None else None),
        ]

    def check_options(self, options: TrainingOptions) -> None:
        """Raise WrongUse if an option belongs to another task."""
        changed = options.changed()
        for name, tasks in self.foreign_options.items():
            if name in changed:
                raise WrongUse(f"--{name} is for {tasks}; --task {self.name} does not have it")

    def _own(self, settings: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in settings.items() if name not in self.foreign_parameters}


class ClassificationTask(LearningTask):
    """Labels are classes."""

    name, step, stratified, measure = "classification", "classifier", True, "error"
    foreign_options: ClassVar[dict[str, str]] = {"nu": "--task outliers", "intervals": "numbers"}
    foreign_parameters = ("nu", "intervals")

    def format_score(self, score: float, standard_error: float) -> str:
        return percent(1 - score, standard_error)

    def read_labels(self, table: Table, target: str | None, known: Any = None) -> Any:
        assert target is not None
        return labels.labels_of(table, target, None if known is None else np.unique(known))

    def check_labels(self, y: Any, target: str | None) -> None:
        assert target is not None
        labels.check_classes(y, target)

    def estimator(self, settings: dict[str, Any]) -> Any:
        return SlimSVC(**self._own(settings))

    def held_out_scores(self, model: Any, train: LabelledFrame, test: LabelledFrame) -> Scores:
        baseline = evaluation.baseline_error(train.y, test.y, train.weights, test.weights)
        return self.scores(model, test.X, test.y, test.weights) | {"majority_error": baseline}

    def label_facts(self, y: Any) -> dict[str, Any]:
        classes, counts = np.unique(y, return_counts=True)
        return {"classes": classes.tolist(), "class_rows": counts.tolist()}

    def label_lines(self, facts: dict[str, Any]) -> Lines:
        each = zip(facts["classes"], facts["class_rows"], strict=True)
        return [("classes", shortened([f"{name} ({count})" for name, count in each]))]

    def held_out_lines(self, scores: Scores, where: str) -> Lines:
        error = percent(scores["error"], scores["standard_error"])
        return [
            ("error", f"{error} on {scores['rows']} rows {where}"),
            ("largest class alone", percent(scores["majority_error"])),
        ]

    def true_labels(self, model: Any, table: Table, target: str) -> Any:
        return labels.labels_of(table, target, model.classes_)

    def scores(self, model: Any, X: Any, y: Any, weights: Any) -> Scores:
        scores = evaluation.classification_scores(model.predict(X), y, model.classes_, weights)
        if hasattr(model, "predict_proba"):
            scores["log_loss"] = evaluation.log_loss(model.predict_proba(X), model.classes_, y, weights)
        return scores


class RegressionTask(LearningTask):
    """Labels are real numbers."""

    name, step, measure = "regression", "regressor", "R²"
    foreign_options: ClassVar[dict[str, str]] = {
        "balanced": "classes",
        "probability": "classes",
        "nu": "--task outliers",
    }
    foreign_parameters = ("class_weight", "probability", "nu")

    def read_labels(self, table: Table, target: str | None, known: Any = None) -> Any:
        assert target is not None
        return labels.numbers_of(table, target)

    def check_labels(self, y: Any, target: str | None) -> None:
        labels.check_row_count(y)
        if y.min() == y.max():
            raise CommandError(f"the target {target!r} is {y[0]:g} in all rows; there is nothing to learn")

    def estimator(self, settings: dict[str, Any]) -> Any:
        return SlimSVR(**self._own(settings))

    def held_out_scores(self, model: Any, train: LabelledFrame, test: LabelledFrame) -> Scores:
        mean = np.average(train.y, weights=train.weights)
        baseline = float(np.sqrt(np.average((test.y - mean) ** 2, weights=test.weights)))
        return self.scores(model, test.X, test.y, test.weights) | {"rmse_of_the_mean": baseline}

    def label_facts(self, y: Any) -> dict[str, Any]:
        return {"target_range": [float(y.min()), float(y.max())], "target_mean": float(y.mean())}

    def label_lines(self, facts: dict[str, Any]) -> Lines:
        low, high = facts["target_range"]
        return [("values", f"{low:.6g} to {high:.6g}, mean {facts['target_mean']:.6g}")]

    def held_out_lines(self, scores: Scores, where: str) -> Lines:
        return [
            ("R²", f"{scores['r2']:.4f} on {scores['rows']} rows {where}"),
            ("RMS error", f"{scores['rmse']:.4g}"),
            ("the mean alone", f"{scores['rmse_of_the_mean']:.4g}"),
        ]

    def true_labels(self, model: Any, table: Table, target: str) -> Any:
        return labels.numbers_of(table, target)

    def scores(self, model: Any, X: Any, y: Any, weights: Any) -> Scores:
        return evaluation.regression_scores(model.predict(X), y, weights)

    def score_lines(self, scores: Scores) -> Lines:
        return [
            ("rows", scores["rows"]),
            ("R²", f"{scores['r2']:.4f}"),
            ("RMS error", f"{scores['rmse']:.4g}"),
            ("mean absolute error", f"{scores['mean_absolute_error']:.4g}"),
        ]


class OutlierTask(LearningTask):
    """Training has no labels: rows that are unlike most others are outliers."""

    name, step = "outliers", "detector"
    foreign_options: ClassVar[dict[str, str]] = {
        "C": "classes and numbers",
        "scales": "classes and numbers",
        "balanced": "classes",
        "probability": "classes",
        "intervals": "numbers",
    }
    foreign_parameters = ("C", "scales", "class_weight", "probability", "intervals")

    def read_labels(self, table: Table, target: str | None, known: Any = None) -> Any:
        return None

    def check_labels(self, y: Any, target: str | None) -> None:
        """There are no labels to check."""

    def estimator(self, settings: dict[str, Any]) -> Any:
        scale = {"gamma": "scale"} if settings["gamma"] == "search" else {}
        return SlimOneClass(**self._own(settings) | scale)

    def held_out_scores(self, model: Any, train: LabelledFrame, test: LabelledFrame) -> Scores:
        outside = model.predict(test.X) < 0
        share, standard_error = evaluation.error_rate(outside, test.weights)
        return {"rows": len(outside), "outside": share, "standard_error": standard_error}

    def held_out_lines(self, scores: Scores, where: str) -> Lines:
        share = percent(scores["outside"], scores["standard_error"])
        return [("outliers", f"{share} of {scores['rows']} rows {where}")]

    def true_labels(self, model: Any, table: Table, target: str) -> Any:
        y = labels.labels_of(table, target)
        if not np.isin(y, [-1, 1]).all():
            others = listed(map(str, np.unique(y).tolist()), 4)
            raise CommandError(
                f"a one-class model says 1 (like the rows it knows) or -1 (not); {target!r} has {others}"
            )
        return y

    def scores(self, model: Any, X: Any, y: Any, weights: Any) -> Scores:
        return evaluation.classification_scores(model.predict(X), y, [-1, 1], weights)


TASKS: dict[str, type[LearningTask]] = {task.name: task for task in (ClassificationTask, RegressionTask, OutlierTask)}


def check_name(name: str) -> None:
    """Raise WrongUse for a task that is not known."""
    if name != AUTO and name not in TASKS:
        raise WrongUse(f"--task {name}: must be {', '.join([AUTO, *TASKS][:-1])} or {list(TASKS)[-1]}")


def task_of_target(name: str, table: Table, target: str | None) -> LearningTask:
    """The task of this name or, with "auto", the one inferred from the target."""
    if name != AUTO:
        return TASKS[name]("as --task says")
    assert target is not None
    y = labels.labels_of(table, target)
    distinct = len(np.unique(y))
    if y.dtype.kind not in "fi":
        values = "truth values" if y.dtype.kind == "b" else f"{distinct} different texts"
        return ClassificationTask(f"{target} has {values}")
    if (y != np.round(y)).any():
        return RegressionTask(f"{target} has numbers with fractions")
    task = RegressionTask if distinct > max(MAX_NUMERIC_CLASSES, len(y) // MIN_ROWS_OF_CLASS) else ClassificationTask
    return task(f"{target} has {distinct} different whole numbers")


def task_of_model(model: Any) -> LearningTask:
    """The task of a fitted model, of this library or of scikit-learn."""
    if hasattr(model, "classes_"):
        return ClassificationTask()
    return OutlierTask() if hasattr(model, "score_samples") else RegressionTask()


def shortened(words: list[str]) -> str:
    """The first MAX_LISTED words, and the number of the others."""
    more = f" and {len(words) - MAX_LISTED} more" if len(words) > MAX_LISTED else ""
    return ", ".join(words[:MAX_LISTED]) + more
