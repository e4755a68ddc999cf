"""Quantised models, with exactly the integer arithmetic of a device.

A row becomes 16-bit numbers on the grid of `slimsvm.quantization.grid`; vectors are bytes on it. Distances are sums of
squares (or absolute values), and a kernel value is 2^-D in 15 bits, by linear interpolation in a table of 65 entries.
Coefficients have 16 bits and one exponent for each output, so that scores are compared as integers. The sums are exact:
Python and the device make the same predictions.

In regression, a sum is rounded to a multiple of a power of two, chosen such that all predictions that the model can
make are integers of 32 bits.

A linear model has one weight of 16 bits for each input and output.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_array

from ..linalg.arrays import Array
from ..model.voting import Votes
from ..problem.bases import dense
from .grid import Grid
from .integers import KERNEL_BITS, QuantizedLayer, power_of_half_or_zero, rounding_shift

MAX_BLOCK_DIFFERENCES = 1 << 22  # differences in memory at a time


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
    shift : ndarray of uint8, shape (n_outputs,)
        Binary digits that are rounded off the sums, which have the unit ``2**-(exponent + 15)`` (linear models:
        ``2**-exponent``): 0 for classifiers.
    bias : ndarray of int32, shape (n_outputs,)
        In units of the sums after this rounding.
    classes : ndarray or None
        Labels; None for regressors.
    """

    grid: Grid
    vectors: Array
    coef: Array
    exponent: Array
    shift: Array
    bias: Array
    classes: Array | None
    votes: Votes | None
    shown: Votes | None  # the votes behind decision_function; None: it returns the decision values
    layer: QuantizedLayer | None
    bits: ClassVar[int] = KERNEL_BITS  # binary places of the features
    is_linear: ClassVar[bool] = False

    @abstractmethod
    def features(self, U: Array) -> Array:
        """Integer features of rows on the grid, rows x features: kernel values, or the inputs of a linear model."""

    @property
    @abstractmethod
    def weights(self) -> Array:
        """The coefficients of the features: outputs x features."""

    @abstractmethod
    def parts(self) -> dict[str, int]:
        """Bytes by content; they sum to `n_bytes`."""

    @property
    def n_bytes(self) -> int:
        """Bytes of the model. The table of 2^-x, 130 bytes, is the same for all models and counts as code."""
        return sum(self.parts().values())

    def sums(self, U: Array, weights: Array) -> Array:
        """Products of features and weights in int64, without biases, for rows U on the grid."""
        rows = max(1, MAX_BLOCK_DIFFERENCES // max(1, self.vectors.size))
        # Sums of some hundred products of 16-bit numbers are exact in float64, whose products are faster.
        W = weights.T.astype(np.float64)
        parts = [self.features(U[i : i + rows]).astype(np.float64) @ W for i in range(0, len(U), rows)]
        return np.concatenate([*parts, np.empty((0, len(weights)))]).astype(np.int64)

    def accumulators(self, X: Any) -> Array:
        """The final sums on the device, with biases: int64, rows x outputs.

        For regressors they are predictions in units of `steps`, and fit into int32.
        """
        sums = self.sums(self.grid.rows(checked_rows(X, self.grid.inputs)), self.weights)
        return rounding_shift(sums, self.shift.astype(np.int64)) + self.bias

    @property
    def steps(self) -> Array:
        """The value of one unit of an accumulator: a power of two for each output."""
        return 2.0 ** -(self.exponent.astype(int) + self.bits - self.shift)

    def _winners(self, sums: Array) -> Array:
        assert self.classes is not None
        assert self.votes is not None
        aligned = sums << (int(self.exponent.max()) - self.exponent.astype(np.int64))
        return self.votes.winners(aligned, len(self.classes))

    def decision(self, X: Any) -> Array:
        """Decision values; for a regressor its predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows as the model takes them, or as the pipeline takes them if a pipeline was quantised.

        Returns
        -------
        ndarray of shape (n_samples,) for one output, as two classes have, else (n_samples, n_outputs)
            Close to those of the model; an output for each row of its ``vector_coef_``.
        """
        values = self.accumulators(X) * self.steps
        return values[:, 0] if len(self.bias) == 1 else values

    def predict(self, X: Any) -> Array:
        """Class labels, by the model's votes, all in integers; for a regressor its predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,); for a regressor with several targets (n_samples, n_outputs)
        """
        if self.classes is None:
            return self.decision(X)
        return self.classes[self._winners(self.accumulators(X))]

    def probabilities(self, X: Any) -> Array:
        """Probabilities of the classes, multiples of 1/32768; needs ``quantize(..., probabilities=True)``.

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
    """Check the rows and their number of inputs; return them dense."""
    X = dense(check_array(X, accept_sparse="csr"))
    if X.shape[1] != inputs:
        raise ValueError(f"X has {X.shape[1]} features, the model takes {inputs}; give rows as the model takes them")
    return X


@dataclass(frozen=True)
class QuantizedKernel(Quantized):
    """A quantised model with a distance kernel; the distance is the sum of the ``power``-th powers of differences."""

    power: int = 2

    @property
    def unit(self) -> int:
        """Distances are counted in units of 2^-unit."""
        return self.power * self.grid.bits

    def features(self, U: Array) -> Array:
        """Kernel values in 15 bits: rows x vectors."""
        t = U[:, None, :].astype(np.int64) - (self.vectors.astype(np.int64) << self.grid.shift)
        distance = (t * t if self.power == 2 else np.abs(t)).sum(axis=2)
        # C code may stop at the limit, as the sum only grows.
        return power_of_half_or_zero(distance, self.unit)

    @property
    def weights(self) -> Array:
        return self.coef

    def parts(self) -> dict[str, int]:
        n_outputs, count = self.coef.shape
        bytes_ = kernel_parts(count, len(self.grid.used), n_outputs, self.grid.n_bytes, self.classes is None)
        return bytes_ | layer_parts(self.layer)


@dataclass(frozen=True)
class QuantizedLinear(Quantized):
    """A quantised linear model: weights instead of vectors."""

    bits: ClassVar[int] = 0
    is_linear: ClassVar[bool] = True

    def features(self, U: Array) -> Array:
        return U

    @property
    def weights(self) -> Array:
        return self.vectors

    def parts(self) -> dict[str, int]:
        bytes_ = linear_parts(self.grid.inputs, len(self.bias), self.grid.n_bytes, self.classes is None)
        return bytes_ | layer_parts(self.layer)


def kernel_parts(vectors: int, inputs: int, n_outputs: int, grid: int, values: bool) -> dict[str, int]:
    """Bytes of a kernel model by content; ``values``: decision values are the prediction, as in regression."""
    return {
        "vectors": vectors * inputs,
        "coefficients": 2 * vectors * n_outputs,
        **_output_parts(n_outputs, values),
        "inputs": grid,
    }


def linear_parts(inputs: int, n_outputs: int, grid: int, values: bool) -> dict[str, int]:
    """Bytes of a linear model by content."""
    return {"weights": 2 * inputs * n_outputs, **_output_parts(n_outputs, values), "inputs": grid}


def _output_parts(n_outputs: int, values: bool) -> dict[str, int]:
    return {"biases": 4 * n_outputs, "exponents": n_outputs} | ({"shifts": n_outputs} if values else {})


def layer_parts(layer: QuantizedLayer | None) -> dict[str, int]:
    """Bytes of the probability layer, if there is one."""
    return {} if layer is None else {"probabilities": layer.n_bytes}
