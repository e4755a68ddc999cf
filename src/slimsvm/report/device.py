"""What a model takes on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import slimsvm

from ..export import quantize
from ..formulation import Array
from ..plotting.shown import Shown


@dataclass(frozen=True)
class Program:
    """A model as C: bytes of flash and RAM, and multiply-adds for a row."""

    dtype: str
    flash: int
    ram: int
    multiply_adds: int


@dataclass(frozen=True)
class OnDevice:
    """Bytes in float32; in integers by what they hold, with the answers that the integers give (None, and the reason,
    where the model has no such form); and programs."""

    float_bytes: int
    multiply_adds: int
    parts: dict[str, int]
    answers: Array | None
    reason: str
    programs: tuple[Program, ...]
    alone: bool  # without the steps before the classifier

    @classmethod
    def of(cls, model: Any, shown: Shown, X: Any) -> OnDevice:
        """The classifier with its scalers; alone where other steps come before it."""
        alone = shown.steps is not None
        model, rows = (model[-1], shown.steps.transform(X)) if alone else (model, X)
        expansion = shown.machine.expansion
        work = expansion.vectors.size + expansion.coef.size
        parts, answers, reason = _in_integers(model, rows)
        kernel: Any = expansion.kernel
        # A factor for each input, where scales were learned or a scaler is folded in.
        factors = 4 * shown.machine.n_inputs if np.ndim(kernel.scales) or shown.machine.inputs.folded else 0
        return cls(expansion.float_bytes + factors, work, parts, answers, reason, programs(model), alone)

    @property
    def n_bytes(self) -> int | None:
        return sum(self.parts.values()) if self.parts else None


def _in_integers(model: Any, X: Any) -> tuple[dict[str, int], Array | None, str]:
    try:
        small = quantize(model)
        return small.parts(), small.predict(np.asarray(X) if hasattr(X, "columns") else X), ""
    except ValueError as error:
        return {}, None, str(error)


def programs(model: Any) -> tuple[Program, ...]:
    """The model as `slimsvm.to_c` writes it, where it can."""
    to_c: Any = getattr(slimsvm, "to_c", None)
    found = []
    for dtype in ("float32", "int8") if to_c else ():
        try:
            told = to_c(model, dtype=dtype).report
        except ValueError:
            continue
        found.append(Program(dtype, int(told.flash), int(told.ram), int(told.multiply_adds)))
    return tuple(found)
