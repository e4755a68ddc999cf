"""Bytes and multiply-adds of a model on a device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..export import CReport, Quantized
from ..export.c.source import header
from ..linalg.arrays import Array
from ..model.inference import InferenceModel
from ..plotting.shown_model import ShownModel
from ..quantization.quantize import fixed_point_form, to_integers

MAX_ROUNDED_VECTORS = 300  # larger models are not quantised


@dataclass(frozen=True)
class DeviceSizes:
    """Bytes and work of a model on a device, in float32 and quantised.

    ``parts`` are the bytes of the quantised model by content (empty if it cannot be quantised), ``answers`` its
    predictions (or None, with the ``reason``), ``programs`` the reports of the C headers.
    """

    float_bytes: int
    multiply_adds: int
    parts: dict[str, int]
    layer: int  # bytes of the quantised probability layer, not in ``parts``
    answers: Array | None
    reason: str
    programs: tuple[CReport, ...]
    alone: bool  # are steps before the classifier left out?

    @classmethod
    def of(cls, model: Any, shown: ShownModel, X: Any) -> DeviceSizes:
        """Sizes of the classifier with its scalers, or of the classifier alone if it follows other steps."""
        alone = shown.steps is not None
        model, rows = (model[-1], shown.steps.transform(X)) if alone else (model, X)
        expansion = shown.inference.expansion
        work = expansion.vectors.size + expansion.coef.size
        few = len(expansion.vectors) <= MAX_ROUNDED_VECTORS
        in_integers = (_rounded if few else _counted)(model, shown.inference, rows)
        return cls(_float_bytes(shown.inference), work, *in_integers, alone)

    @property
    def n_bytes(self) -> int | None:
        return sum(self.parts.values()) if self.parts else None

    @property
    def float_layer(self) -> int:
        """Bytes of probabilities in float32, not in ``float_bytes``; 0 without a float32 header."""
        return next((one.flash - self.float_bytes for one in self.programs if one.dtype == "float32"), 0)


InIntegers = tuple[dict[str, int], int, Array | None, str, tuple[CReport, ...]]


def _rounded(model: Any, inference: InferenceModel, X: Any) -> InIntegers:
    """Quantise the model: its bytes, its predictions, and the reports of both headers."""
    try:
        small = to_integers(model, probabilities=True)
    except ValueError as error:
        return {}, 0, None, f"There is no form in integers: {error}.", _headers(inference)
    parts = small.parts()
    layer = parts.pop("probabilities", 0)
    answers = small.predict(np.asarray(X) if hasattr(X, "columns") else X)
    return parts, layer, answers, "", _headers(inference, small)


def _counted(model: Any, inference: InferenceModel, X: Any) -> InIntegers:
    """Bytes of the quantised model without quantising it, which is slow for models that fit on no device."""
    expansion = inference.expansion
    try:
        parts = fixed_point_form(expansion.kernel).parts(
            expansion.kernel, expansion.vectors, len(expansion.bias), inference.classes is None
        )
    except ValueError as error:
        return {}, 0, None, f"There is no form in integers: {error}.", ()
    reason = f"The model has more than {MAX_ROUNDED_VECTORS} vectors: its answers in integers were not looked at."
    return parts, 0, None, reason, ()


def _float_bytes(inference: InferenceModel) -> int:
    """Bytes of the float32 header's tables without probabilities, but with mean and gain of scaled inputs.

    For a large model a header with few vectors is written, and its bytes per vector are extrapolated.
    """
    expansion = inference.expansion
    few = replace(
        expansion, vectors=expansion.vectors[:MAX_ROUNDED_VECTORS], coef=expansion.coef[:, :MAX_ROUNDED_VECTORS]
    )
    try:
        report = header(replace(inference, expansion=few, layer=None), None).report
    except ValueError:  # a kernel that C does not have
        kernel: Any = expansion.kernel
        factors = 2 * inference.n_inputs if np.ndim(kernel.scales) or inference.inputs.folded else 0
        return expansion.float_bytes + 4 * factors
    further = len(expansion.vectors) - len(few.vectors)
    each = (report.tables.get("vectors", 0) + report.tables.get("coef", 0)) // max(1, len(few.vectors))
    return report.flash + further * each


def _headers(inference: InferenceModel, *integers: Quantized) -> tuple[CReport, ...]:
    """The reports of the C headers that `slimsvm.to_c` can write."""
    reports = []
    for small in (None, *integers):
        try:
            reports.append(header(inference, small).report)
        except ValueError:  # a kernel that C does not have
            continue
    return tuple(reports)
