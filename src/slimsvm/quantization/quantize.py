"""`quantize`: rounds the vectors of a fitted model to integers and refits the coefficients over them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from ..linalg.arrays import Array
from ..model.inference import Affine, InferenceModel, ProbabilityLayer, inference_model, last_step
from ..problem import kernels
from ..problem.bases import dense
from ..problem.kernel_base import Base
from ..solvers.primal.refit import REFIT_JITTER
from ..utils.warnings import warn
from .grid import MAX_BYTE, Grid, make_grid
from .integers import KERNEL_BITS, LOG2_E, QuantizedLayer, coefficients_in_16_bits, values_in_16_bits
from .quantized import Quantized, QuantizedKernel, QuantizedLinear, checked_rows, kernel_parts, linear_parts
from .rounding import descend_coordinates, round_vectors, step_halvings

LINEAR_RANGE = 8.0  # range of the 16-bit inputs of a linear model, relative to the largest coordinate of a vector


# --- fixed-point forms of kernels ----------------------------------------------------------------------------------


class FixedPointForm(ABC):
    """Integer arithmetic for models of one kind of kernel."""

    @abstractmethod
    def grid(self, kernel: Any, Z: Array, inputs: Affine) -> Grid:
        """The integer grid for these vectors, which are in the model's units."""

    def refined(self, Z: Array, coef: Array, grid: Grid, inputs: Affine) -> Grid:
        """A grid of the same number of bytes that is more accurate with these coefficients."""
        return grid

    @abstractmethod
    def rounded(
        self, kernel: Any, Z: Array, coef: Array | None, grid: Grid, inputs: Affine, refine: bool = False
    ) -> tuple[Any, Array]:
        """Kernel and vectors rounded to the grid, in the model's units, over which coefficients are then refitted.

        With ``coef``, vectors are rounded so that errors compensate each other; ``refine`` spends more time on it.
        """

    @abstractmethod
    def filled(self, kernel: Any, Z: Array, grid: Grid, inputs: Affine, fit: ModelNumbers) -> Quantized:
        """The quantised model over rounded vectors."""

    @abstractmethod
    def parts(self, kernel: Any, Z: Array, n_outputs: int, values: bool) -> dict[str, int]:
        """Bytes of a model over these vectors; ``values``: decision values are the prediction, as in regression."""

    @abstractmethod
    def least_parts(
        self, vectors: int, inputs: int, used: int, n_outputs: int, scaled: bool, values: bool
    ) -> dict[str, int]:
        """The fewest bytes that a model of so many vectors over ``used`` of the inputs takes, wherever these lie."""


@dataclass(frozen=True)
class ModelNumbers:
    """Coefficients and biases over rounded vectors, and the model that was rounded."""

    coef: Array
    bias: Array
    inference: InferenceModel
    layer: ProbabilityLayer | None = None

    def answers(self) -> tuple[Any, Any, Any]:
        """Class labels, votes, and the votes behind `decision_function`."""
        return self.inference.classes, self.inference.votes, self.inference.shown

    def coefficients_in_16_bits(self, coef: Array, bias: Array, bits: int) -> tuple[Array, Array, Array, Array]:
        """Coefficients, exponents, shifts and biases: most digits for classes, 32-bit predictions for regression."""
        if self.inference.classes is None:
            return values_in_16_bits(coef, bias, bits)
        numbers, exponent, bias = coefficients_in_16_bits(coef, bias, bits)
        return numbers, exponent, np.zeros(len(bias), dtype=np.uint8), bias


@dataclass(frozen=True)
class DistanceForm(FixedPointForm):
    """Distance kernels ``2^-sum |w (x - z)|^power``; ``unit`` computes w from gamma."""

    power: int
    unit: Callable[[float], float]

    def weights(self, kernel: Any, inputs: int) -> Array:
        """The weight w of each input."""
        return np.broadcast_to(np.abs(np.asarray(kernel.scales, dtype=np.float64)) * self.unit(kernel.gamma), inputs)

    def grid(self, kernel: Any, Z: Array, inputs: Affine) -> Grid:
        return make_grid(self.weights(kernel, Z.shape[1]) / inputs.scale, inputs.inverse(Z), self.power, inputs.folded)

    def refined(self, Z: Array, coef: Array, grid: Grid, inputs: Affine) -> Grid:
        if self.power != 2 or not grid.gain_bytes:
            return grid
        halvings = step_halvings(grid.steps(inputs.inverse(Z)), grid.spans, coef, MAX_BYTE)
        return replace(grid, shift=np.maximum(grid.shift - halvings, 0))

    def rounded(
        self, kernel: Any, Z: Array, coef: Array | None, grid: Grid, inputs: Affine, refine: bool = False
    ) -> tuple[Any, Array]:
        Z = inputs(grid.values(self.bytes(Z, coef, grid, inputs, refine)))
        if not grid.gain_bytes:
            return kernel, Z
        return kernels.Scaled(kernel.unscaled[0], grid.weights * inputs.scale / self.unit(kernel.gamma)), Z

    def bytes(self, Z: Array, coef: Array | None, grid: Grid, inputs: Affine, refine: bool) -> Array:
        """The vectors as int8."""
        if coef is None or self.power != 2:
            return grid.rounded(inputs.inverse(Z))
        steps = grid.steps(inputs.inverse(Z))
        found = round_vectors(steps, grid.spans, coef, MAX_BYTE)
        return descend_coordinates(found, steps, grid.spans, coef, MAX_BYTE) if refine else found

    def filled(self, kernel: Any, Z: Array, grid: Grid, inputs: Affine, fit: ModelNumbers) -> Quantized:
        numbers = fit.coefficients_in_16_bits(fit.coef, fit.bias, KERNEL_BITS)
        q = grid.rounded(inputs.inverse(Z))
        layer = None
        if fit.layer is not None:
            layer = QuantizedLayer.of(fit.layer.coef, fit.layer.bias, KERNEL_BITS, fit.layer.shares)
        return QuantizedKernel(grid, q, *numbers, *fit.answers(), layer, self.power)

    def parts(self, kernel: Any, Z: Array, n_outputs: int, values: bool) -> dict[str, int]:
        grid = self.grid(kernel, Z, Affine.none(Z.shape[1]))
        return kernel_parts(len(Z), len(grid.used), n_outputs, grid.n_bytes, values)

    def least_parts(
        self, vectors: int, inputs: int, used: int, n_outputs: int, scaled: bool, values: bool
    ) -> dict[str, int]:
        which = 0 if used == inputs else (inputs + 7) // 8
        return kernel_parts(vectors, used, n_outputs, which + (2 * used + 4 if scaled else 8), values)


class ProductForm(FixedPointForm):
    """The linear kernel ``x.z``: vectors are combined into weights."""

    def grid(self, kernel: Any, Z: Array, inputs: Affine) -> Grid:
        reach = LINEAR_RANGE * max(float(np.abs(Z).max(initial=0.0)), 1e-30)
        gain = 32767 / reach / inputs.scale
        d, own = len(gain), 4 if inputs.folded else 0
        offset = inputs.mean.astype(np.float32)
        return Grid(d, np.arange(d), gain.astype(np.float32), offset, np.zeros(d, int), 0, own, own)

    def rounded(
        self, kernel: Any, Z: Array, coef: Array | None, grid: Grid, inputs: Affine, refine: bool = False
    ) -> tuple[Any, Array]:
        return kernel, Z

    def filled(self, kernel: Any, Z: Array, grid: Grid, inputs: Affine, fit: ModelNumbers) -> Quantized:
        scales = np.broadcast_to(np.asarray(kernel.scales, dtype=np.float64), Z.shape[1])

        def on_grid(coef: Array, bias: Array) -> tuple[Array, Array]:
            """Weights per unit of the grid, and biases that absorb its rounded offsets."""
            W = coef @ (Z * scales**2)
            per_unit = 1 / (grid.gain.astype(np.float64) * inputs.scale)
            return W * per_unit, bias + W @ ((grid.offset - inputs.mean) / inputs.scale)

        weights, exponent, shift, bias = fit.coefficients_in_16_bits(*on_grid(fit.coef, fit.bias), 0)
        layer = None
        if fit.layer is not None:
            layer = QuantizedLayer.of(*on_grid(fit.layer.coef, fit.layer.bias), 0, fit.layer.shares)
        return QuantizedLinear(grid, weights, np.empty((len(bias), 0)), exponent, shift, bias, *fit.answers(), layer)

    def parts(self, kernel: Any, Z: Array, n_outputs: int, values: bool) -> dict[str, int]:
        return linear_parts(Z.shape[1], n_outputs, 8, values)

    def least_parts(
        self, vectors: int, inputs: int, used: int, n_outputs: int, scaled: bool, values: bool
    ) -> dict[str, int]:
        return linear_parts(inputs, n_outputs, 8, values)


# exp(-gamma |x - z|^2) = 2^-sum (w (x - z))^2 with w^2 = gamma log2(e).
FIXED_POINT_FORMS: dict[type[Base], FixedPointForm] = {
    kernels.Gaussian: DistanceForm(2, lambda gamma: float(np.sqrt(gamma * LOG2_E))),
    kernels.Laplacian: DistanceForm(1, lambda gamma: gamma * LOG2_E),
    kernels.Linear: ProductForm(),
}


def fixed_point_form(kernel: Any) -> FixedPointForm:
    """The fixed-point form of this kernel; ValueError where it has none."""
    form = FIXED_POINT_FORMS.get(type(kernel.unscaled[0]))
    if form is None:
        names = sorted(kind.name for kind in FIXED_POINT_FORMS)
        raise ValueError(f"kernel {kernel.name!r} has no fixed-point form; {names} have one. Fit with one of these")
    return form


# --- from a model -------------------------------------------------------------------------------------------------


def quantize(
    model: Any, X: Any = None, y: Any = None, *, probabilities: bool = False, max_bytes: int | None = None
) -> Quantized:
    """Quantise a fitted model to integers, with exactly the arithmetic of a device.

    Vectors are rounded to bytes. Coefficients are then refitted over the rounded vectors: to the function nearest to
    the model's in the kernel's space or, if X and y are given, by the model's own training problem on these rows.

    Parameters
    ----------
    model : fitted estimator of slimsvm, or Pipeline
        Classifier, regressor or outlier detector with the kernel rbf (learned scales too), laplacian or linear. In a
        pipeline, steps before the last must be scalers such as StandardScaler: they are folded into the gains and
        offsets of the inputs, and rows then come as the pipeline takes them.
    X : array-like or sparse matrix of shape (n_samples, n_features), optional
        Rows to fit the coefficients to, as the model (the pipeline) takes them. For `SlimSVC`, `ReducedSVC`,
        `EmpiricalSVC`, `AnyNormSVC`, `CompressedClassifier` (there as with ``method="refit"``) and
        `CompressedRegressor`.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
        Their labels or target values.
    probabilities : bool, default=False
        Whether to keep the layer behind `predict_proba`, where the model has one. It takes bytes that ``max_bytes`` of
        an estimator and ``model_bytes_`` do not count.
    max_bytes : int, optional
        Bytes that the integers may take, including those of a pipeline's scaler and of the probability layer; a larger
        model is an error that says how many it takes.

    Returns
    -------
    Quantized
        With ``decision``, ``predict``, ``n_bytes`` and ``parts()``.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import SlimSVC
    >>> from slimsvm.export import quantize
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> small = quantize(SlimSVC(n_vectors=8).fit(X, y))
    >>> small.n_bytes < 60, small.vectors.dtype
    (True, dtype('int8'))
    """
    check_limit(max_bytes)
    small = to_integers(model, X, y, probabilities)
    if max_bytes is None:
        warn_beyond_max_bytes(model, small)
    else:
        check_bytes(model, small.parts(), int(max_bytes))
    return small


def to_integers(model: Any, X: Any = None, y: Any = None, probabilities: bool = False) -> Quantized:
    """Quantize a model, whatever its size."""
    if (X is None) != (y is None):
        raise ValueError("X and y must be given together: rows to fit the coefficients to, and their labels")
    inference = inference_model(model)
    kernel, Z, before = inference.expansion.kernel, inference.expansion.vectors, inference.expansion.coef
    inputs, form = inference.inputs, fixed_point_form(kernel)
    comparable = _comparable_coefficients(inference)
    grid = form.refined(Z, comparable, form.grid(kernel, Z, inputs), inputs)
    on_grid, rounded = form.rounded(kernel, Z, comparable, grid, inputs, refine=True)
    if X is None:
        coef, bias = projected(before, Z, on_grid, rounded), inference.expansion.bias
    else:
        check_consistent_length(X, y)
        rows, problem = inputs(checked_rows(X, inference.n_inputs)), last_step(model)[1]._refit_problem()
        coef, bias = problem.coefficients(inference, on_grid, rounded, rows, np.asarray(y))
    layer = inference.layer if probabilities else None
    if layer is not None:
        layer = replace(layer, coef=projected(layer.coef, Z, on_grid, rounded))
    return form.filled(on_grid, rounded, grid, inputs, ModelNumbers(coef, bias, inference, layer))


class ScalerBytesWarning(UserWarning):
    """A model is larger than its estimator's ``max_bytes``, as the scaler before it takes bytes, too."""


def warn_beyond_max_bytes(model: Any, small: Quantized) -> None:
    """Warn if the scaler of a pipeline makes a model larger than its estimator's ``max_bytes``."""
    scalers, estimator = last_step(model)
    given = getattr(estimator, "max_bytes", None)
    takes = sum(size for name, size in small.parts().items() if name != "probabilities")
    if given is None or not scalers or takes <= given:
        return
    name, scaler_bytes = type(estimator).__name__, takes - estimator.model_bytes_
    smaller = f"fit {name}(max_bytes={given - scaler_bytes}), or " if given > scaler_bytes else ""
    warn(
        f"the model takes {takes} bytes with its scaler, which {name}(max_bytes={given}) does not count. To stay "
        f"within {given} bytes, {smaller}scale rows before they reach the device. quantize and to_c take "
        "max_bytes, too, and raise an error where the whole model is larger",
        ScalerBytesWarning,
    )


def check_limit(max_bytes: Any) -> None:
    """Raise ValueError unless max_bytes is None or a whole number of at least 1."""
    if not (max_bytes is None or (isinstance(max_bytes, Integral) and int(max_bytes) >= 1)):
        raise ValueError(f"max_bytes={max_bytes!r} must be a whole number of at least 1, or None")


def check_bytes(model: Any, parts: dict[str, int], max_bytes: int, suggestions: Sequence[str] = ()) -> None:
    """Raise ValueError if the parts of a model exceed ``max_bytes``; ``suggestions`` are ways to reduce them."""
    takes, (_, estimator) = sum(parts.values()), last_step(model)
    if takes <= max_bytes:
        return
    shown = ", ".join(f"{name} {size}" for name, size in parts.items() if size)
    if not suggestions and hasattr(estimator, "max_bytes"):
        own = estimator.model_bytes_ - (takes - max_bytes)
        suggestions = [f"{type(estimator).__name__}(max_bytes={own})"] if own > 0 else []
    ways = " or ".join([*suggestions, "fewer vectors", "fewer inputs"])
    raise ValueError(f"max_bytes={max_bytes} is too little: the model takes {takes} bytes ({shown}). Try {ways}")


def _comparable_coefficients(inference: InferenceModel) -> Array:
    """Coefficients for the rounding of vectors; in regression each output is scaled by its standard deviation, so that
    the units of targets do not matter.
    """
    coef = inference.expansion.coef
    if inference.classes is not None or len(coef) == 1:
        return coef
    spread = inference.expansion.decision(inference.inputs(inference.between_vectors())).std(axis=0)
    return coef / np.where(spread > 0, spread, 1.0)[:, None]


def model_bytes(model: Any) -> int:
    """Bytes of the quantised model without quantising it; scalers are not counted."""
    Z, (classes, _) = dense(model.vectors_), model._labels_and_votes()
    return sum(fixed_point_form(model.kernel_).parts(model.kernel_, Z, len(model.intercept_), classes is None).values())


def projected(coef: Array, before: Array, kernel: Any, Z: Array) -> Array:
    """Coefficients over Z of the functions nearest, in the kernel's space, to those with ``coef`` over ``before``."""
    if not len(Z):
        return coef
    gram = kernel(Z, Z)
    ridge = REFIT_JITTER * np.diag(np.maximum(gram.diagonal(), np.finfo(float).tiny))
    # The ridge pulls towards the old coefficients, which therefore stay if no vector moved.
    right = kernel(Z, before) @ coef.T + ridge @ coef.T
    return np.linalg.solve(gram + ridge, right).T
