"""What a model takes on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..export import CReport, quantize, to_c
from ..export.quantize import form_of
from ..formulation import Array
from ..frontier_result import classifier_of
from ..parts.bases import dense
from ..plotting.shown import Shown

MOST_VECTORS = 300  # that are rounded


@dataclass(frozen=True)
class OnDevice:
    """Bytes in float32; in integers by what they hold (none where the model has no such form), with the answers that
    the integers give, or the reason why there are none; and programs."""

    float_bytes: int
    multiply_adds: int
    parts: dict[str, int]
    answers: Array | None
    reason: str
    programs: tuple[CReport, ...]
    alone: bool  # without the steps before the classifier

    @classmethod
    def of(cls, model: Any, shown: Shown, X: Any) -> OnDevice:
        """The classifier with its scalers; alone where other steps come before it."""
        alone = shown.steps is not None
        model, rows = (model[-1], shown.steps.transform(X)) if alone else (model, X)
        expansion = shown.machine.expansion
        work = expansion.vectors.size + expansion.coef.size
        few = len(expansion.vectors) <= MOST_VECTORS
        parts, answers, reason = (_in_integers if few else _counted)(model, rows)
        kernel: Any = expansion.kernel
        # A factor for each input, where scales were learned or a scaler is folded in.
        factors = 4 * shown.machine.n_inputs if np.ndim(kernel.scales) or shown.machine.inputs.folded else 0
        return cls(expansion.float_bytes + factors, work, parts, answers, reason, programs(model) if few else (), alone)

    @property
    def n_bytes(self) -> int | None:
        return sum(self.parts.values()) if self.parts else None


def _in_integers(model: Any, X: Any) -> tuple[dict[str, int], Array | None, str]:
    try:
        small = quantize(model)
        return small.parts(), small.predict(np.asarray(X) if hasattr(X, "columns") else X), ""
    except ValueError as error:
        return {}, None, f"There is no form in integers: {error}."


def _counted(model: Any, X: Any) -> tuple[dict[str, int], Array | None, str]:
    """Bytes alone: to round so many vectors takes long, and no device would hold them."""
    expansion = classifier_of(model)._expansion()
    try:
        parts = form_of(expansion.kernel).parts(expansion.kernel, dense(expansion.vectors), len(expansion.bias))
    except ValueError as error:
        return {}, None, f"There is no form in integers: {error}."
    return parts, None, f"The model has more than {MOST_VECTORS} vectors: its answers in integers were not looked at."


def programs(model: Any) -> tuple[CReport, ...]:
    """What `slimsvm.to_c` says of the model, in float32 and in integers, where it can write it."""
    found = []
    for dtype in ("float32", "int8"):
        try:
            found.append(to_c(model, dtype=dtype).report)
        except ValueError:  # a kernel that C does not have; the section on integers says more
            continue
    return tuple(found)
