"""What the report is about."""

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
    """One vector, two vectors."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class Subject:
    """A model, the rows that judge it, and all else that the report is about."""

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
    def kind(self) -> str:
        return type(self.classifier).__name__

    @property
    def vectors(self) -> int:
        return len(self.shown.vectors)

    @property
    def rows(self) -> str:
        """How many rows judge it, in words."""
        return counted(self.judged.rows, "row")

    @cached_property
    def size(self) -> int | None:
        """Which model of the frontier it is."""
        return size_in(self.frontier, self.model)

    @property
    def compression(self) -> Any:
        """What compression did; None where there was none."""
        return getattr(self.classifier, "compression_", None)

    @cached_property
    def full(self) -> ConfusionCounts | None:
        """The full machine on the same rows."""
        if self.frontier is None or self.frontier.full is None:
            return None
        machine = self.frontier.full.model
        return ConfusionCounts.of(machine, classifier_of(machine).classes_, self.X, self.y)

    @cached_property
    def device(self) -> DeviceSizes:
        return DeviceSizes.of(self.model, self.shown, self.X)

    @cached_property
    def calibration(self) -> Any:
        """None where there are no probabilities, or labels that have none."""
        known = self.shown.machine.classes
        if known is None or len(self.judged.classes) > len(known) or not hasattr(self.model, "predict_proba"):
            return None
        return CalibrationDisplay.of(self.y, self.model.predict_proba(self.X), classes=known, name=self.kind)
