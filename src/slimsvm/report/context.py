"""The input of all sections of the report: a model, held-out rows, and scores computed from both."""

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
    """A model, held-out rows, and the facts that the caller gave about them."""

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
        """An attribute of the classifier, or None."""
        return getattr(self.classifier, name, None)

    @property
    def vectors(self) -> int:
        return len(self.shown.vectors)

    @property
    def rows(self) -> str:
        """The number of held-out rows, as text."""
        return counted(self.judged.rows, "row")

    @cached_property
    def size(self) -> int | None:
        """The number of vectors if the model is one of the frontier's, otherwise None."""
        return size_in(self.frontier, self.model)

    @cached_property
    def full(self) -> ConfusionCounts | None:
        """The confusion matrix of the frontier's full model."""
        if self.frontier is None or self.frontier.full is None:
            return None
        model = self.frontier.full.model
        return ConfusionCounts.of(model, classifier_of(model).classes_, self.X, self.y)

    @cached_property
    def device(self) -> DeviceSizes:
        return DeviceSizes.of(self.model, self.shown, self.X)

    @cached_property
    def calibration(self) -> Any:
        """Calibration on the held-out rows; None if the model has no probabilities, or none for some of the labels."""
        known = self.shown.inference.classes
        if known is None or len(self.judged.classes) > len(known) or not hasattr(self.model, "predict_proba"):
            return None
        return CalibrationDisplay.of(self.y, self.model.predict_proba(self.X), classes=known, name=self.kind)
