"""A fitted model in the units of plots: the user's units if the steps before the estimator can be inverted."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..data.dataset import class_signs, outputs
from ..linalg.arrays import Array
from ..model.inference import InferenceModel, inference_model, last_step
from ..problem.bases import dense
from ..problem.kernels import Linear


@dataclass(frozen=True)
class ShownModel:
    """A fitted model for display, the steps that could not be inverted (None if all could), and names of the inputs."""

    inference: InferenceModel
    steps: Any
    names: tuple[str, ...]
    keeps_rows: bool  # are its vectors rows of the training set?

    @classmethod
    def of(cls, model: Any, names: Sequence[Any] | None = None) -> ShownModel:
        """Prepare a model for display: scalers are inverted; of other steps, such as encoders, the output is shown."""
        _, estimator = last_step(model)
        if estimator.kernel_.keeps_rows:
            raise ValueError("a model of a precomputed kernel has no vectors to show: it knows row numbers only")
        try:
            inference, steps = inference_model(model), None
        except (ValueError, TypeError, AttributeError):
            if estimator is model:
                raise
            inference, steps = inference_model(estimator), model[:-1]
        return cls(inference, steps, _names(inference, steps, names), hasattr(estimator, "support_"))

    @cached_property
    def vectors(self) -> Array:
        """The vectors in the units shown."""
        return self.inference.inputs.inverse(np.asarray(self.inference.expansion.vectors, dtype=np.float64))

    def rows(self, X: Any) -> Array:
        """The user's rows, converted to the units shown."""
        if self.steps is not None:
            X = self.steps.transform(X)
        rows = dense(X)
        check_rows(rows, self.inference.n_inputs)
        return rows

    def values(self, rows: Array) -> Array:
        """Decision values of all outputs for rows in the units shown."""
        return self.inference.expansion.decision(np.ascontiguousarray(self.inference.inputs(rows)))

    def winners(self, values: Array) -> Array:
        """Numbers of the predicted classes, from the decision values of all outputs."""
        votes, classes = self.inference.votes, self.inference.classes
        assert votes is not None
        assert classes is not None
        return votes.winners(values, len(classes))

    @cached_property
    def speaks_for(self) -> tuple[Array, Array]:
        """The class that each vector votes for, and its weight.

        With two classes this is the sign and the value of its coefficient; with more the class with the largest mean
        coefficient over its binary problems, and that mean. Regressors have no classes: all numbers are 0.
        """
        coef, classes = self.inference.expansion.coef, self.inference.classes
        if classes is None or self.inference.votes is None:
            return np.zeros(coef.shape[1], dtype=int), coef[0]
        if len(coef) == 1:
            return (coef[0] > 0).astype(int), coef[0]
        side = class_signs(len(classes), outputs(len(classes), "ovo" if self.inference.votes.pairs else "ovr"))
        means = side @ coef / np.abs(side).sum(axis=1, keepdims=True)
        return means.argmax(axis=0), means.max(axis=0)

    def counting(self, X: Any = None) -> Array:
        """The relative importance of each input; the largest is 1.

        It is the input's scale in the kernel (in linear models its weight) times its standard deviation over the rows,
        or over the vectors where there are no rows.
        """
        expansion = self.inference.expansion
        kernel: Any = expansion.kernel
        Z = expansion.vectors if X is None else self.inference.inputs(self.rows(X))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # columns that are all NaN
            spread = np.nan_to_num(np.nanstd(np.asarray(Z, dtype=np.float64), axis=0)) if len(Z) else np.zeros(0)
        scales = np.broadcast_to(np.abs(np.asarray(kernel.scales, dtype=np.float64)), self.inference.n_inputs)
        effect = scales
        if kernel.name == Linear.name:
            effect = np.abs(expansion.coef @ (expansion.vectors * scales**2)).max(axis=0)
        counting = effect * spread
        return counting / (counting.max() or 1.0) if len(counting) else scales


def check_rows(rows: Array, inputs: int) -> None:
    """Raise ValueError unless X is a table with this number of inputs."""
    if rows.ndim != 2:
        raise ValueError(f"X has the shape {rows.shape}; give a table with a line for each row")
    if rows.shape[1] != inputs:
        raise ValueError(f"X has {rows.shape[1]} features, the model takes {inputs}; give rows as the model takes them")


def _names(inference: InferenceModel, steps: Any, given: Sequence[Any] | None) -> tuple[str, ...]:
    """Names of the inputs that are shown."""
    count = inference.n_inputs
    if steps is not None:
        try:
            return tuple(map(str, steps.get_feature_names_out(None if given is None else np.asarray(given, object))))
        except (AttributeError, ValueError):
            given = None
    if given is not None:
        if len(given) != count:
            raise ValueError(f"there are {len(given)} names for {count} inputs; give one for each")
        return tuple(map(str, given))
    return inference.names or tuple(f"x{k}" for k in range(count))
