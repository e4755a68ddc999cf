"""What the sections of the report are written from: a model, the rows that judge it, and what follows from both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..frontiers.result import Frontier, classifier_of
from ..plotting import CalibrationDisplay
from ..plotting.shown_model import ShownModel
from .confusion import ConfusionCounts
from .device import DeviceSizes
from .provenance import size_in


def counted(number: int, word: str) -> str:
    """1 vector, 2 vectors."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class ReportContext:
    """A model, the rows that judge it, and what the caller says of both."""

    model: Any
    X: Any
    y: Any
    frontier: Frontier | None
    made: dict[str, Any]
    names: Any
    shape: tuple[int, int] | None
    shown: ShownModel
    judged: ConfusionCounts

    @property
    def classifier(self) -> Any:
        return classifier_of(self.model)

    @property
    def steps(self) -> list[Any]:
        """The steps of a pipeline before the classifier."""
        return [step for _, step in self.model.steps[:-1]] if self.model is not self.classifier else []

    @property
    def kind(self) -> str:
        return type(self.classifier).__name__

    def attribute(self, name: str) -> Any:
        """An attribute of the classifier; None where it does not have it."""
        return getattr(self.classifier, name, None)

    @property
    def vectors(self) -> int:
        return len(self.shown.vectors)

    @property
    def rows(self) -> str:
        """The number of rows, in words."""
        return counted(self.judged.rows, "row")

    @cached_property
    def size(self) -> int | None:
        """The number of vectors of the frontier's model that it is; None where it is none of them."""
        return size_in(self.frontier, self.model)

    @cached_property
    def full(self) -> ConfusionCounts | None:
        """The same counts for the full model of the frontier."""
        if self.frontier is None or self.frontier.full is None:
            return None
        model = self.frontier.full.model
        return ConfusionCounts.of(model, classifier_of(model).classes_, self.X, self.y)

    @cached_property
    def device(self) -> DeviceSizes:
        return DeviceSizes.of(self.model, self.shown, self.X)

    @cached_property
    def calibration(self) -> Any:
        """Calibration on the rows; None where there are no probabilities, or none for some of the labels."""
        known = self.shown.inference.classes
        if known is None or len(self.judged.classes) > len(known) or not hasattr(self.model, "predict_proba"):
            return None
        return CalibrationDisplay.of(self.y, self.model.predict_proba(self.X), classes=known, name=self.kind)
