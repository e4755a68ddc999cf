"""A model in integers, and exactly what a device computes with them.

A row becomes 16-bit numbers on the grid of `slimsvm.quantization.grid`; vectors are bytes on it. Distances are sums of
squares (or absolute values), and a kernel value is 2^-D by a table of 65 entries and a line between two of them, in 15
bits. Coefficients have 16 bits and one power of two for each output, so that scores are compared as integers. The sums
are exact: Python's answer is the device's.

Where values themselves are the answer, a sum is rounded to steps, of a power of two, that are so fine that all values
the model can have are integers of 32 bits.

Linear models are one weight of 16 bits for each input and output.
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

MAX_BLOCK_DIFFERENCES = 1 << 22  # differences that are held at a time


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
        ``2**-exponent``): 0 where values are votes.
    bias : ndarray of int32, shape (n_outputs,)
        In units of the sums, after that.
    classes : ndarray or None
        Labels; None where the values themselves are the answer.
    """

    grid: Grid
    vectors: Array
    coef: Array
    exponent: Array
    shift: Array
    bias: Array
    classes: Array | None
    votes: Votes | None
    shown: Votes | None  # whose scores decision_function shows; None: it shows the values
    layer: QuantizedLayer | None
    bits: ClassVar[int] = KERNEL_BITS  # of what coefficients are multiplied with
    is_linear: ClassVar[bool] = False

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
        rows = max(1, MAX_BLOCK_DIFFERENCES // max(1, self.vectors.size))
        # Numbers of 16 bits, some hundred of them: exact in float64, whose products are quicker.
        W = weights.T.astype(np.float64)
        parts = [self.features(U[i : i + rows]).astype(np.float64) @ W for i in range(0, len(U), rows)]
        return np.concatenate([*parts, np.empty((0, len(weights)))]).astype(np.int64)

    def accumulators(self, X: Any) -> Array:
        """What the device has in its registers at the end: int64, a column for each output. Where there are no classes,
        they are values in `steps`, and fit into int32."""
        sums = self.sums(self.grid.rows(checked_rows(X, self.grid.inputs)), self.weights)
        return rounding_shift(sums, self.shift.astype(np.int64)) + self.bias

    @property
    def steps(self) -> Array:
        """What one unit of an accumulator is worth: a power of two for each output."""
        return 2.0 ** -(self.exponent.astype(int) + self.bits - self.shift)

    def _winners(self, sums: Array) -> Array:
        assert self.classes is not None
        assert self.votes is not None
        aligned = sums << (int(self.exponent.max()) - self.exponent.astype(np.int64))
        return self.votes.winners(aligned, len(self.classes))

    def decision(self, X: Any) -> Array:
        """Decision values; of a regressor what it predicts.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows as the model takes them; as its pipeline takes them, if that was quantised.

        Returns
        -------
        ndarray of shape (n_samples,) for one output, as two classes have, else (n_samples, n_outputs)
            Close to those of the model: as many outputs as it has rows in ``vector_coef_``.
        """
        values = self.accumulators(X) * self.steps
        return values[:, 0] if len(self.bias) == 1 else values

    def predict(self, X: Any) -> Array:
        """Class labels, by the votes that the model counts: all in integers. Of a regressor the values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,); of a regressor of several targets (n_samples, n_outputs)
        """
        if self.classes is None:
            return self.decision(X)
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
    """Weights instead of vectors."""

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
    """Bytes of a model of so many vectors; ``values``: they are the answer themselves."""
    return {
        "vectors": vectors * inputs,
        "coefficients": 2 * vectors * n_outputs,
        **_output_parts(n_outputs, values),
        "inputs": grid,
    }


def linear_parts(inputs: int, n_outputs: int, grid: int, values: bool) -> dict[str, int]:
    """Bytes of a linear model."""
    return {"weights": 2 * inputs * n_outputs, **_output_parts(n_outputs, values), "inputs": grid}


def _output_parts(n_outputs: int, values: bool) -> dict[str, int]:
    return {"biases": 4 * n_outputs, "exponents": n_outputs} | ({"shifts": n_outputs} if values else {})


def layer_parts(layer: QuantizedLayer | None) -> dict[str, int]:
    """Bytes of what gives probabilities."""
    return {} if layer is None else {"probabilities": layer.n_bytes}
