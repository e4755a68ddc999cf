"""What there is to learn from a table: classes, numbers, or how usual rows look. One object for each kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from . import evaluation, labels
from .console import percent
from .errors import CommandError, WrongUse
from .inputs import FEWEST_ROWS
from .tables import Table

if TYPE_CHECKING:
    from .data import LabelledFrame
    from .options import Learning

AUTO = "auto"
FEW_NUMBERS, SHARE = 20, 10  # up to so many different whole numbers, or a tenth of the rows, are classes


@dataclass(frozen=True)
class LearningTask(ABC):
    """One kind of learning; ``why`` says in words what in the target makes it this one."""

    why: str = ""
    name: ClassVar[str]
    step: ClassVar[str]  # what the estimator is called in a pipeline
    stratified: ClassVar[bool] = False
    options: ClassVar[dict[str, str]] = {}  # of other kinds: what is not the default there is not for this one
    measure: ClassVar[str] = ""  # by which sizes are compared; none where they are not

    def measured(self, score: float, standard_error: float) -> str:
        """A score by that measure, for people."""
        return f"{score:.4f} ± {standard_error:.4f}"

    @abstractmethod
    def labels(self, table: Table, target: str | None, known: Any = None) -> Any:
        """Labels of the rows; those of a test file where those of training are ``known``."""

    @abstractmethod
    def check(self, y: Any, target: str | None) -> None:
        """Raise CommandError where there is nothing to learn."""

    @abstractmethod
    def estimator(self, given: dict[str, Any]) -> Any:
        """Unfitted, with settings of the command line."""

    @abstractmethod
    def judged(self, model: Any, train: LabelledFrame, test: LabelledFrame) -> dict[str, Any]:
        """What rows held out say of a model, beside the simplest that could be said."""

    @abstractmethod
    def about(self, y: Any) -> dict[str, Any]:
        """What is kept of the labels in a model's file."""

    @abstractmethod
    def lines(self, about: dict[str, Any]) -> list[tuple[str, Any]]:
        """The same for people."""

    @abstractmethod
    def verdict(self, estimate: dict[str, Any], where: str) -> list[tuple[str, Any]]:
        """An estimate for people."""

    def check_options(self, how: Learning) -> None:
        """Raise WrongUse where an option is for another kind."""
        for name, meant in self.options.items():
            if getattr(how, name) != type(how).__dataclass_fields__[name].default:
                raise WrongUse(f"--{name} is for {meant}; --task {self.name} does not have it")


class ClassificationTask(LearningTask):
    """Labels are classes."""

    name, step, stratified, measure = "classification", "classifier", True, "error"
    options: ClassVar[dict[str, str]] = {"nu": "--task outliers", "intervals": "numbers"}

    def measured(self, score: float, standard_error: float) -> str:
        return percent(1 - score, standard_error)

    def labels(self, table: Table, target: str | None, known: Any = None) -> Any:
        assert target is not None
        return labels.labels_of(table, target, None if known is None else np.unique(known))

    def check(self, y: Any, target: str | None) -> None:
        assert target is not None
        labels.check_classes(y, target)

    def estimator(self, given: dict[str, Any]) -> Any:
        from .. import SlimSVC

        return SlimSVC(**{name: value for name, value in given.items() if name not in ("nu", "intervals")})

    def judged(self, model: Any, train: LabelledFrame, test: LabelledFrame) -> dict[str, Any]:
        found = evaluation.judge(model, test.X, test.y, test.weights)
        return found | {"majority_error": evaluation.majority_error(train.y, test.y, train.weights, test.weights)}

    def about(self, y: Any) -> dict[str, Any]:
        classes, counts = np.unique(y, return_counts=True)
        return {"classes": classes.tolist(), "class_rows": counts.tolist()}

    def lines(self, about: dict[str, Any]) -> list[tuple[str, Any]]:
        each = zip(about["classes"], about["class_rows"], strict=True)
        return [("classes", shortened([f"{name} ({count})" for name, count in each]))]

    def verdict(self, estimate: dict[str, Any], where: str) -> list[tuple[str, Any]]:
        error = percent(estimate["error"], estimate["standard_error"])
        return [
            ("error", f"{error} on {estimate['rows']} rows {where}"),
            ("largest class alone", percent(estimate["majority_error"])),
        ]


class RegressionTask(LearningTask):
    """Labels are quantities."""

    name, step, measure = "regression", "regressor", "R²"
    options: ClassVar[dict[str, str]] = {
        "balanced": "classes",
        "probability": "classes",
        "nu": "--task outliers",
    }

    def labels(self, table: Table, target: str | None, known: Any = None) -> Any:
        assert target is not None
        return labels.numbers_of(table, target)

    def check(self, y: Any, target: str | None) -> None:
        check_rows(y)
        if y.min() == y.max():
            raise CommandError(f"the target {target!r} is {y[0]:g} in all rows; there is nothing to learn")

    def estimator(self, given: dict[str, Any]) -> Any:
        from .. import SlimSVR

        return SlimSVR(
            **{name: value for name, value in given.items() if name not in ("class_weight", "probability", "nu")}
        )

    def judged(self, model: Any, train: LabelledFrame, test: LabelledFrame) -> dict[str, Any]:
        found = evaluation.judge(model, test.X, test.y, test.weights)
        mean = np.average(train.y, weights=train.weights)
        return found | {"rmse_of_the_mean": float(np.sqrt(np.average((test.y - mean) ** 2, weights=test.weights)))}

    def about(self, y: Any) -> dict[str, Any]:
        return {"target_range": [float(y.min()), float(y.max())], "target_mean": float(y.mean())}

    def lines(self, about: dict[str, Any]) -> list[tuple[str, Any]]:
        low, high = about["target_range"]
        return [("values", f"{low:.6g} to {high:.6g}, mean {about['target_mean']:.6g}")]

    def verdict(self, estimate: dict[str, Any], where: str) -> list[tuple[str, Any]]:
        return [
            ("R²", f"{estimate['r2']:.4f} on {estimate['rows']} rows {where}"),
            ("RMS error", f"{estimate['rmse']:.4g}"),
            ("the mean alone", f"{estimate['rmse_of_the_mean']:.4g}"),
        ]


class OutlierTask(LearningTask):
    """There are no labels: rows are to be told from others that are unlike them."""

    name, step = "outliers", "detector"
    options: ClassVar[dict[str, str]] = {
        "C": "classes and numbers",
        "scales": "classes and numbers",
        "balanced": "classes",
        "probability": "classes",
        "intervals": "numbers",
    }

    def labels(self, table: Table, target: str | None, known: Any = None) -> Any:
        return None

    def check(self, y: Any, target: str | None) -> None:
        """There are no labels."""

    def estimator(self, given: dict[str, Any]) -> Any:
        from .. import SlimOneClass

        names = ("n_vectors", "max_bytes", "gamma", "kernel", "nu", "n_jobs", "random_state")
        settings = {name: given[name] for name in names}
        return SlimOneClass(**settings | ({"gamma": "scale"} if settings["gamma"] == "search" else {}))

    def judged(self, model: Any, train: LabelledFrame, test: LabelledFrame) -> dict[str, Any]:
        outside = model.predict(test.X) < 0
        share, standard_error = evaluation.error_of(outside, test.weights)
        return {"rows": len(outside), "outside": share, "standard_error": standard_error}

    def about(self, y: Any) -> dict[str, Any]:
        return {}

    def lines(self, about: dict[str, Any]) -> list[tuple[str, Any]]:
        return []

    def verdict(self, estimate: dict[str, Any], where: str) -> list[tuple[str, Any]]:
        share = percent(estimate["outside"], estimate["standard_error"])
        return [("outliers", f"{share} of {estimate['rows']} rows {where}")]


KINDS: dict[str, type[LearningTask]] = {kind.name: kind for kind in (ClassificationTask, RegressionTask, OutlierTask)}


def check_rows(y: Any) -> None:
    """Raise CommandError where rows are too few."""
    if len(y) < FEWEST_ROWS:
        raise CommandError(f"{len(y)} rows are too few to learn from; at least {FEWEST_ROWS} are needed")


def check_name(name: str) -> None:
    """Raise WrongUse for a task that is not known."""
    if name != AUTO and name not in KINDS:
        raise WrongUse(f"--task {name}: must be {', '.join([AUTO, *KINDS][:-1])} or {list(KINDS)[-1]}")


def kind_of(name: str, table: Table, target: str | None) -> LearningTask:
    """The kind that is asked for or, with "auto", what the target looks like."""
    if name != AUTO:
        return KINDS[name]("as --task says")
    assert target is not None
    y = labels.labels_of(table, target)
    distinct = len(np.unique(y))
    if y.dtype.kind not in "fi":
        what = "truth values" if y.dtype.kind == "b" else f"{distinct} different texts"
        return ClassificationTask(f"{target} has {what}")
    if (y != np.round(y)).any():
        return RegressionTask(f"{target} has numbers with fractions")
    many = distinct > max(FEW_NUMBERS, len(y) // SHARE)
    return (RegressionTask if many else ClassificationTask)(f"{target} has {distinct} different whole numbers")


def shortened(words: list[str], most: int = 12) -> str:
    """The first of them, and how many more there are."""
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")
