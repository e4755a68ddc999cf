"""A fitted model as the integers that a device holds, and exactly what it computes with them.

A row becomes 16-bit numbers on the grid of `slimsvm.export.grid`; vectors are bytes on it. Distances are sums of
squares (or absolute values), and a kernel value is 2^-D by a table of 65 entries and a line between two of them, in 15
bits. Coefficients have 16 bits and one power of two for each output, so that scores are compared as integers. The sums
are exact: Python's answer is the device's.

Linear models are one weight of 16 bits for each input and output.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_array, check_consistent_length

from ..data import Task, outputs, row_keys
from ..formulation import Array
from ..notices import warn
from ..parts import kernels
from ..parts.bases import dense
from ..parts.regularizers import KernelNorm
from ..primal.coefficients import fit_coefficients
from ..rows.labels import of_task
from ..votes import Votes
from .grid import LARGEST, Grid, grid_of
from .integers import KERNEL_BITS, LOG2_E, QuantizedLayer, in_16_bits, within_reach
from .machine import Affine, Machine, ProbabilityLayer, last_step, machine_of
from .rounding import finer_steps, moved_on, nearest_bytes

JITTER = 1e-6  # of the projection: as learned vectors have it
BLOCK = 1 << 22  # differences that are held at a time
# A linear model's rows may be so many times as far out as its vectors are.
LINEAR_RANGE = 8.0


# --- what is computed -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quantized(ABC):
    """A model in integers, made by `quantize`.

    Attributes
    ----------
    grid : Grid
        Steps, gains and offsets of the inputs.
    vectors : ndarray of int8, shape (n_vectors, n_features)
        Linear models: the weights, int16, a row for each output.
    coef : ndarray of int16, shape (n_outputs, n_vectors)
    exponent : ndarray of int8, shape (n_outputs,)
        A coefficient stands for ``coef * 2**-exponent``.
    bias : ndarray of int32, shape (n_outputs,)
        In units of ``2**-(exponent + 15)``, those of the sums.
    classes : ndarray
        Labels.
    """

    grid: Grid
    vectors: Array
    coef: Array
    exponent: Array
    bias: Array
    classes: Array
    votes: Votes
    shown: Votes | None  # whose scores decision_function shows; None: it shows the values
    layer: QuantizedLayer | None
    bits: ClassVar[int] = KERNEL_BITS  # of what coefficients are multiplied with

    @abstractmethod
    def features(self, U: Array) -> Array:
        """What coefficients are multiplied with, as integers: a column for each of them."""

    @property
    @abstractmethod
    def weights(self) -> Array:
        """These coefficients: a row for each output."""

    @abstractmethod
    def parts(self) -> dict[str, int]:
        """Bytes by what they hold; together they are `n_bytes`."""

    @property
    def n_bytes(self) -> int:
        """Bytes of the model. The table of 2^-x, 130 bytes, is the same for all models and counts as code."""
        return sum(self.parts().values())

    def sums(self, U: Array, weights: Array) -> Array:
        """Sums of products in int64, biases left out, for rows of the grid."""
        rows = max(1, BLOCK // max(1, self.vectors.size))
        # Numbers of 16 bits, some hundred of them: exact in float64, whose products are quicker.
        W = weights.T.astype(np.float64)
        parts = [self.features(U[i : i + rows]).astype(np.float64) @ W for i in range(0, len(U), rows)]
        return np.concatenate([*parts, np.empty((0, len(weights)))]).astype(np.int64)

    def accumulators(self, X: Any) -> Array:
        """What the device has in its registers at the end: int64, a column for each output."""
        return self.sums(self.grid.rows(checked_rows(X, self.grid.inputs)), self.weights) + self.bias

    def _winners(self, sums: Array) -> Array:
        aligned = sums << (int(self.exponent.max()) - self.exponent.astype(np.int64))
        return self.votes.winners(aligned, len(self.classes))

    def decision(self, X: Any) -> Array:
        """Decision values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows as the model takes them; as its pipeline takes them, if that was quantised.

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, else (n_samples, n_outputs)
            Close to those of the model: as many outputs as it has rows in ``vector_coef_``.
        """
        values = self.accumulators(X) * 2.0 ** -(self.exponent.astype(int) + self.bits)
        return values[:, 0] if len(self.bias) == 1 else values

    def predict(self, X: Any) -> Array:
        """Class labels, by the votes that the model counts: all in integers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.classes[self._winners(self.accumulators(X))]

    def probabilities(self, X: Any) -> Array:
        """Probabilities of the classes, multiples of 1/32768; only where they were asked for.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        if self.layer is None:
            raise ValueError(
                "there are no probabilities: fit the model with probability=True, and quantise it with "
                "probabilities=True"
            )
        odds = self.sums(self.grid.rows(checked_rows(X, self.grid.inputs)), self.layer.coef)
        return self.layer.probabilities(odds, self._winners(self.accumulators(X))) / 2.0**KERNEL_BITS


def checked_rows(X: Any, inputs: int) -> Array:
    """Dense rows of so many inputs."""
    X = dense(check_array(X, accept_sparse="csr"))
    if X.shape[1] != inputs:
        raise ValueError(f"X has {X.shape[1]} features, the model takes {inputs}; give rows as the model takes them")
    return X


@dataclass(frozen=True)
class QuantizedKernel(Quantized):
    """A kernel that falls with a distance: the sum of the ``power``-th powers of differences."""

    power: int = 2

    @property
    def unit(self) -> int:
        """Distances are counted in units of 2^-unit."""
        return self.power * self.grid.bits

    def features(self, U: Array) -> Array:
        """Kernel values in 15 bits: rows x vectors."""
        t = U[:, None, :].astype(np.int64) - (self.vectors.astype(np.int64) << self.grid.shift)
        distance = (t * t if self.power == 2 else np.abs(t)).sum(axis=2)
        # In C a sum that passes the limit ends at once: it cannot come back.
        return within_reach(distance, self.unit)

    @property
    def weights(self) -> Array:
        return self.coef

    def parts(self) -> dict[str, int]:
        n_outputs, count = self.coef.shape
        return kernel_parts(count, len(self.grid.used), n_outputs, self.grid.n_bytes) | layer_parts(self.layer)


@dataclass(frozen=True)
class QuantizedLinear(Quantized):
    """Weights instead of vectors."""

    bits: ClassVar[int] = 0

    def features(self, U: Array) -> Array:
        return U

    @property
    def weights(self) -> Array:
        return self.vectors

    def parts(self) -> dict[str, int]:
        return linear_parts(self.grid.inputs, len(self.bias), self.grid.n_bytes) | layer_parts(self.layer)


def kernel_parts(vectors: int, inputs: int, n_outputs: int, grid: int) -> dict[str, int]:
    """Bytes of a model of so many vectors."""
    return {
        "vectors": vectors * inputs,
        "coefficients": 2 * vectors * n_outputs,
        "biases": 4 * n_outputs,
        "exponents": n_outputs,
        "inputs": grid,
    }


def linear_parts(inputs: int, n_outputs: int, grid: int) -> dict[str, int]:
    """Bytes of a linear model."""
    return {"weights": 2 * inputs * n_outputs, "biases": 4 * n_outputs, "exponents": n_outputs, "inputs": grid}


def layer_parts(layer: QuantizedLayer | None) -> dict[str, int]:
    """Bytes of what gives probabilities."""
    return {} if layer is None else {"probabilities": layer.n_bytes}


# --- kernels that a device knows ----------------------------------------------------------------------------------


class Form(ABC):
    """How a kernel is computed in integers."""

    @abstractmethod
    def grid(self, kernel: Any, Z: Array, inputs: Affine) -> Grid:
        """Where vectors (in the model's units) lie on the device."""

    def refined(self, Z: Array, coef: Array, grid: Grid, inputs: Affine) -> Grid:
        """A grid that is better for a model with these coefficients; it takes as many bytes."""
        return grid

    @abstractmethod
    def rounded(
        self, kernel: Any, Z: Array, coef: Array | None, grid: Grid, inputs: Affine, refine: bool = False
    ) -> tuple[Any, Array]:
        """Kernel and vectors as the grid has them, in the model's units: what coefficients are fitted over.

        Where the model's coefficients are known, roundings make up for each other; ``refine`` takes more time for that.
        """

    @abstractmethod
    def filled(self, kernel: Any, Z: Array, grid: Grid, inputs: Affine, fit: Numbers) -> Quantized:
        """The model over rounded vectors in integers."""

    @abstractmethod
    def parts(self, kernel: Any, Z: Array, n_outputs: int) -> dict[str, int]:
        """Bytes of a model over these vectors."""

    @abstractmethod
    def least_parts(self, vectors: int, inputs: int, used: int, n_outputs: int, scaled: bool) -> dict[str, int]:
        """Bytes of a model of so many vectors, wherever they lie, over some of the inputs: the fewest."""


@dataclass(frozen=True)
class Numbers:
    """Coefficients and biases of a model, and the machine that it is."""

    coef: Array
    bias: Array
    machine: Machine
    layer: ProbabilityLayer | None = None

    def answers(self) -> tuple[Any, Any, Any]:
        """Labels, votes and the votes that are shown."""
        return self.machine.classes, self.machine.votes, self.machine.shown


@dataclass(frozen=True)
class Distance(Form):
    """``2^-sum |w (x - z)|^power``; ``unit`` gives w from gamma."""

    power: int
    unit: Callable[[float], float]

    def weights(self, kernel: Any, inputs: int) -> Array:
        """w for each input."""
        return np.broadcast_to(np.abs(np.asarray(kernel.scales, dtype=np.float64)) * self.unit(kernel.gamma), inputs)

    def grid(self, kernel: Any, Z: Array, inputs: Affine) -> Grid:
        return grid_of(self.weights(kernel, Z.shape[1]) / inputs.scale, inputs.inverse(Z), self.power, inputs.folded)

    def refined(self, Z: Array, coef: Array, grid: Grid, inputs: Affine) -> Grid:
        if self.power != 2 or not grid.gain_bytes:
            return grid
        halvings = finer_steps(grid.steps(inputs.inverse(Z)), grid.spans, coef, LARGEST)
        return replace(grid, shift=np.maximum(grid.shift - halvings, 0))

    def rounded(
        self, kernel: Any, Z: Array, coef: Array | None, grid: Grid, inputs: Affine, refine: bool = False
    ) -> tuple[Any, Array]:
        Z = inputs(grid.values(self.bytes(Z, coef, grid, inputs, refine)))
        if not grid.gain_bytes:
            return kernel, Z
        plain = kernel.kernel if np.ndim(kernel.scales) else kernel
        return kernels.Scaled(plain, grid.weights * inputs.scale / self.unit(kernel.gamma)), Z

    def bytes(self, Z: Array, coef: Array | None, grid: Grid, inputs: Affine, refine: bool) -> Array:
        """Vectors on the grid."""
        if coef is None or self.power != 2:
            return grid.rounded(inputs.inverse(Z))
        steps = grid.steps(inputs.inverse(Z))
        found = nearest_bytes(steps, grid.spans, coef, LARGEST)
        return moved_on(found, steps, grid.spans, coef, LARGEST) if refine else found

    def filled(self, kernel: Any, Z: Array, grid: Grid, inputs: Affine, fit: Numbers) -> Quantized:
        coef, exponent, bias = in_16_bits(fit.coef, fit.bias, KERNEL_BITS)
        q = grid.rounded(inputs.inverse(Z))
        layer = None
        if fit.layer is not None:
            layer = QuantizedLayer.of(fit.layer.coef, fit.layer.bias, KERNEL_BITS, fit.layer.shares)
        return QuantizedKernel(grid, q, coef, exponent, bias, *fit.answers(), layer, self.power)

    def parts(self, kernel: Any, Z: Array, n_outputs: int) -> dict[str, int]:
        grid = self.grid(kernel, Z, Affine.none(Z.shape[1]))
        return kernel_parts(len(Z), len(grid.used), n_outputs, grid.n_bytes)

    def least_parts(self, vectors: int, inputs: int, used: int, n_outputs: int, scaled: bool) -> dict[str, int]:
        which = 0 if used == inputs else (inputs + 7) // 8
        return kernel_parts(vectors, used, n_outputs, which + (2 * used + 4 if scaled else 8))


class Products(Form):
    """``x.z``: vectors are summed to weights."""

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

    def filled(self, kernel: Any, Z: Array, grid: Grid, inputs: Affine, fit: Numbers) -> Quantized:
        scales = np.broadcast_to(np.asarray(kernel.scales, dtype=np.float64), Z.shape[1])

        def on_grid(coef: Array, bias: Array) -> tuple[Array, Array]:
            """Weights for units of the grid, and the biases that go with its rounded offsets."""
            W = coef @ (Z * scales**2)
            per_unit = 1 / (grid.gain.astype(np.float64) * inputs.scale)
            return W * per_unit, bias + W @ ((grid.offset - inputs.mean) / inputs.scale)

        weights, exponent, bias = in_16_bits(*on_grid(fit.coef, fit.bias), 0)
        layer = None
        if fit.layer is not None:
            layer = QuantizedLayer.of(*on_grid(fit.layer.coef, fit.layer.bias), 0, fit.layer.shares)
        return QuantizedLinear(grid, weights, np.empty((len(bias), 0)), exponent, bias, *fit.answers(), layer)

    def parts(self, kernel: Any, Z: Array, n_outputs: int) -> dict[str, int]:
        return linear_parts(Z.shape[1], n_outputs, 8)

    def least_parts(self, vectors: int, inputs: int, used: int, n_outputs: int, scaled: bool) -> dict[str, int]:
        return linear_parts(inputs, n_outputs, 8)


# By the kernel's name: exp(-gamma |x - z|^2) = 2^-sum (w (x - z))^2 with w^2 = gamma log2(e).
FORMS: dict[str, Form] = {
    kernels.Gaussian.name: Distance(2, lambda gamma: float(np.sqrt(gamma * LOG2_E))),
    kernels.Laplacian.name: Distance(1, lambda gamma: gamma * LOG2_E),
    kernels.Linear.name: Products(),
}


def form_of(kernel: Any) -> Form:
    """How this kernel is computed in integers."""
    form = FORMS.get(kernel.name)
    if form is None:
        raise ValueError(
            f"kernel {kernel.name!r} has no fixed-point form; {sorted(FORMS)} have one. Fit with one of these"
        )
    return form


# --- from a model -------------------------------------------------------------------------------------------------


def quantize(model: Any, X: Any = None, y: Any = None, *, probabilities: bool = False) -> Quantized:
    """The integers of a fitted model, and what a device computes with them.

    Vectors are rounded to bytes. Coefficients are then the best over the rounded vectors: the nearest function to the
    model's in the kernel's space or, where data are given, those that the model's own problem has there.

    Parameters
    ----------
    model : fitted classifier of slimsvm, CompressedOutlierDetector, or Pipeline
        With the kernel rbf (learned scales too), laplacian or linear. In a pipeline, steps before the classifier must
        be scalers such as StandardScaler: they are folded into the gains and offsets of the inputs, and rows then come
        as the pipeline takes them.
    X : array-like or sparse matrix of shape (n_samples, n_features), optional
        Rows to fit the coefficients to, as the model (the pipeline) takes them. For `SlimSVC`, `ReducedSVC`,
        `EmpiricalSVC`, `AnyNormSVC` and `CompressedClassifier` (there as with ``method="refit"``).
    y : array-like of shape (n_samples,), optional
        Their labels.
    probabilities : bool, default=False
        Whether to keep the layer behind `predict_proba`, where the model has one. It takes bytes that ``max_bytes`` and
        ``model_bytes_`` do not count.

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
    if (X is None) != (y is None):
        raise ValueError("X and y must be given together: rows to fit the coefficients to, and their labels")
    classifier = last_step(model)[1]
    classifier._answers()  # says why where there are none
    machine = machine_of(model)
    kernel, Z, before = machine.expansion.kernel, machine.expansion.vectors, machine.expansion.coef
    inputs, form = machine.inputs, form_of(kernel)
    grid = form.refined(Z, before, form.grid(kernel, Z, inputs), inputs)
    on_grid, rounded = form.rounded(kernel, Z, before, grid, inputs, refine=True)
    if X is None:
        coef, bias = projected(before, Z, on_grid, rounded), machine.expansion.bias
    else:
        check_consistent_length(X, y)
        rows = checked_rows(X, machine.n_inputs)
        coef, bias = refitted(classifier, on_grid, rounded, inputs(rows), np.asarray(y))
    layer = machine.layer if probabilities else None
    if layer is not None:
        layer = replace(layer, coef=projected(layer.coef, Z, on_grid, rounded))
    return form.filled(on_grid, rounded, grid, inputs, Numbers(coef, bias, machine, layer))


def model_bytes(model: Any) -> int:
    """What `quantize` would give for rows as the model takes them, without the work."""
    Z = dense(model.vectors_)
    return sum(form_of(model.kernel_).parts(model.kernel_, Z, len(model.intercept_)).values())


def projected(coef: Array, before: Array, kernel: Any, Z: Array) -> Array:
    """Coefficients over Z of the functions nearest, in the kernel's space, to those over the vectors from before."""
    if not len(Z):
        return coef
    gram = kernel(Z, Z)
    ridge = JITTER * np.diag(np.maximum(gram.diagonal(), np.finfo(float).tiny))
    # The ridge holds to the model's own coefficients: where vectors did not move, neither do they.
    right = kernel(Z, before) @ coef.T + ridge @ coef.T
    return np.linalg.solve(gram + ridge, right).T


@dataclass(frozen=True)
class Problem:
    """The problem that a model solves over vectors that are given."""

    C: Any
    factors: Callable[[Array], Array]  # weights of the classes, from the class numbers of rows
    loss: Any
    regularizer: Any = field(default_factory=lambda: KernelNorm(JITTER))
    tol: float = 1e-6
    max_iter: int = 100


def refitted(model: Any, kernel: Any, Z: Array, X: Array, y: Array) -> tuple[Array, Array]:
    """Coefficients and biases over Z by the model's own problem on these rows."""
    problem, (classes, votes) = model._problem(), model._answers()
    codes = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    strange = np.unique(y[classes[codes] != y])
    if len(strange):
        raise ValueError(f"y has labels that the model does not know: {strange[:5].tolist()}; it has {classes}")
    missing = np.setdiff1d(np.arange(len(classes)), codes)
    if len(missing):
        raise ValueError(f"y has no row of class {classes[missing[0]]!r}; give rows of all classes")
    ones, factors = np.ones(len(y)), problem.factors(codes)
    task = Task(X, codes, ones, factors, np.arange(len(y)), row_keys(X), classes, kernel, len(y))
    wanted = outputs(task.n_classes, "ovo" if votes.pairs else "ovr")
    labels = of_task(task, wanted, problem.C)
    found = fit_coefficients(
        kernel, X, Z, labels, problem.loss, problem.regularizer, tol=problem.tol, max_iter=problem.max_iter
    )
    if not found.converged.all():
        warn("the refit of the coefficients did not converge: scale the features, lower C or raise tol of the model")
    return found.coef, found.bias
