"""Float arithmetic of the C and MicroPython exports: formulas of kernels, and units of inputs and vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..linalg.arrays import Array
from ..model.inference import InferenceModel
from ..problem import kernels
from ..problem.kernel_base import Base


@dataclass(frozen=True)
class FloatForm:
    """Statements that compute a kernel value from a sum ``s`` over the inputs: of products or, for distance kernels, of
    absolute or squared differences.

    In a statement ``{gamma}`` is the part of the kernel's rate that is not folded into the units of the inputs;
    ``{coef0}`` and ``{degree}`` are parameters of the kernel. ``_exp(s)`` is exp(-s), or exp(-s) - 1 if ``less_one``.
    """

    c: str
    python: str
    needs_exp: bool = True
    less_one: bool = False


_EXPONENTIAL = FloatForm("const float k = @_exp({gamma}s);", "k.append(_exp({gamma} * s))", less_one=True)

FLOAT_FORMS: dict[type[Base], FloatForm] = {
    kernels.Linear: FloatForm("", "", needs_exp=False),  # vectors are combined into weights
    kernels.Gaussian: _EXPONENTIAL,
    kernels.Laplacian: _EXPONENTIAL,
    kernels.Polynomial: FloatForm(
        """const float base = {gamma}s + {coef0};
        float k = 1.0f;
        for (int e = 0; e < {degree}; ++e) k *= base;""",
        "k.append(({gamma} * s + {coef0}) ** {degree})",
        needs_exp=False,
    ),
    # tanh by exp alone; beyond 44 it is 1 in float32, and exp would overflow.
    kernels.Sigmoid: FloatForm(
        """const float a = {gamma}s + {coef0};
        const float k = a > 44.0f ? 1.0f : 1.0f - 2.0f / (expf(2.0f * a) + 1.0f);""",
        """a = {gamma} * s + {coef0}
        k.append(1.0 if a > 44.0 else 1.0 - 2.0 / (exp(2.0 * a) + 1.0))""",
    ),
}


def float_form(kernel: Any, language: str) -> FloatForm:
    """The statements for a kernel; ValueError if it has none."""
    form = FLOAT_FORMS.get(type(kernel.unscaled[0]))
    if form is None:
        names = sorted(kind.name for kind in FLOAT_FORMS)
        raise ValueError(f"kernel {kernel.name!r} has no form in {language}; {names} have one. Fit with one of these")
    return form


def filled(statement: str, kernel: Any, gamma: str, number: Callable[[float], str]) -> str:
    """The statement with the kernel's parameters as literals of the language."""
    params = kernel.unscaled[0].get_params()
    texts = {name: str(int(value)) if name == "degree" else number(value) for name, value in params.items()}
    return statement.format(**texts | {"gamma": gamma})


# --- kernel values minus one ------------------------------------------------------------------------------------------
#
# Values k of wide kernels are close to 1, and sums with large coefficients of both signs cancel: sums of k - 1 keep the
# digits that sums of k would lose.


def values_near_one(model: InferenceModel, form: FloatForm) -> bool:
    """Are kernel values k so close to 1 that sums of k - 1 lose fewer digits?"""
    expansion = model.expansion
    Z = expansion.vectors
    if not form.less_one or not len(Z):
        return False
    rows = model.between_vectors()
    K, sizes = expansion.kernel(model.inputs(rows), Z), np.abs(expansion.coef).sum(axis=0)
    return bool(np.mean((1 - K) @ sizes) < np.mean(K @ sizes))


def for_values_less_one(model: InferenceModel) -> InferenceModel:
    """The same model over kernel values minus 1: the biases absorb the difference."""
    expansion, layer = model.expansion, model.layer
    return replace(
        model,
        expansion=replace(expansion, bias=expansion.bias + expansion.coef.sum(axis=1)),
        layer=layer and replace(layer, bias=layer.bias + layer.coef.sum(axis=1)),
    )


# --- units of the inputs ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """The inputs that the kernel uses, how they are shifted and scaled, and the vectors in these units."""

    used: Array
    mean: Array | None  # None: rows are taken as they are
    gain: Array | None
    vectors: Array
    gamma: float = 1.0  # the part of the kernel's rate that is not folded into the units
    rest: Array | None = None  # the mean minus its rounded value, where that matters


def layout(model: InferenceModel, dtype: Any = np.float32) -> Layout:
    """The layout of fewest operations: rows stay unchanged unless inputs have a scaler, different scales or scale 0.

    The mean is rounded to ``dtype``. Kernels of differences absorb the remainder in the vectors; for products it is
    subtracted from the row.
    """
    (kernel, scales), Z = model.expansion.kernel.unscaled, np.asarray(model.expansion.vectors, dtype=np.float64)
    scales = np.broadcast_to(np.abs(scales), model.n_inputs)
    used = np.flatnonzero(scales)
    used = used if len(used) else np.arange(1)
    scales, Z = scales[used], Z[:, used]
    if not model.inputs.folded and len(used) == model.n_inputs and np.ptp(scales) == 0:
        # A common scale enters a distance with its first or second power, and a product squared.
        factor = float(scales[0]) ** (kernel.power or 2)
        return Layout(used, None, None, Z, factor * kernel.rate)
    unit = kernel.rate ** (1 / kernel.power) if kernel.power else 1.0
    mean, gain = model.inputs.mean[used], unit * scales / model.inputs.scale[used]
    rest, vectors = mean - mean.astype(dtype).astype(np.float64), Z * scales * unit
    if kernel.power:
        return Layout(used, mean, gain, vectors + rest * gain)
    needed = np.abs(rest * gain).max() > 1e-7
    return Layout(used, mean, gain, vectors, kernel.rate, rest if needed else None)
