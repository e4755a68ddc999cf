"""A fitted model in the units in which it is shown: those of the user, where steps before it can be undone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..data.dataset import class_signs, outputs
from ..linalg.arrays import Array
from ..model.inference import InferenceModel, inference_model, last_step
from ..problem.bases import dense
from ..problem.kernels import Linear, Precomputed


@dataclass(frozen=True)
class ShownModel:
    """What a model computes, the steps that could not be undone (None: there are none), and names of the inputs."""

    machine: InferenceModel
    steps: Any
    names: tuple[str, ...]
    keeps_rows: bool  # are its vectors rows of the training set?

    @classmethod
    def of(cls, model: Any, names: Sequence[Any] | None = None) -> ShownModel:
        """Scalers are undone; of other steps, such as one-hot columns, what they make is shown."""
        _, estimator = last_step(model)
        if getattr(estimator.kernel_, "name", None) == Precomputed.name:
            raise ValueError("a model of a precomputed kernel has no vectors to show: it knows row numbers only")
        try:
            machine, steps = inference_model(model), None
        except (ValueError, TypeError, AttributeError):
            if estimator is model:
                raise
            machine, steps = inference_model(estimator), model[:-1]
        found = _names(machine, steps, names)
        return cls(machine, steps, found, hasattr(estimator, "support_"))

    @cached_property
    def vectors(self) -> Array:
        """In the units shown."""
        return self.machine.inputs.inverse(np.asarray(self.machine.expansion.vectors, dtype=np.float64))

    def rows(self, X: Any) -> Array:
        """The user's rows in the units shown."""
        if self.steps is not None:
            X = self.steps.transform(X)
        rows = np.asarray(dense(X) if hasattr(X, "toarray") else X, dtype=np.float64)
        check_rows(rows, self.machine.n_inputs)
        return rows

    def values(self, rows: Array) -> Array:
        """Values of all outputs for rows in the units shown."""
        return self.machine.expansion.decision(np.ascontiguousarray(self.machine.inputs(rows)))

    def winners(self, values: Array) -> Array:
        """Class numbers."""
        assert self.machine.votes is not None
        assert self.machine.classes is not None
        return self.machine.votes.winners(values, len(self.machine.classes))

    @cached_property
    def speaks_for(self) -> tuple[Array, Array]:
        """The class that each vector speaks for, and how loud: with two classes by the sign of its coefficient, else
        by the mean coefficient in the binary problems of a class. Regressors have no classes: all numbers are 0."""
        coef, classes = self.machine.expansion.coef, self.machine.classes
        if classes is None or self.machine.votes is None:
            return np.zeros(coef.shape[1], dtype=int), coef[0]
        if len(coef) == 1:
            return (coef[0] > 0).astype(int), coef[0]
        side = class_signs(len(classes), outputs(len(classes), "ovo" if self.machine.votes.pairs else "ovr"))
        means = side @ coef / np.abs(side).sum(axis=1, keepdims=True)
        return means.argmax(axis=0), means.max(axis=0)

    def counting(self, X: Any = None) -> Array:
        """How much each input counts: its scale in the kernel times its spread over rows (over the vectors, without
        rows); the largest is 1. Linear models: its weight times its spread."""
        expansion = self.machine.expansion
        kernel: Any = expansion.kernel
        Z = expansion.vectors if X is None else self.machine.inputs(self.rows(X))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # columns without a number
            spread = np.nan_to_num(np.nanstd(np.asarray(Z, dtype=np.float64), axis=0)) if len(Z) else np.zeros(0)
        scales = np.broadcast_to(np.abs(np.asarray(kernel.scales, dtype=np.float64)), self.machine.n_inputs)
        found = COUNTS.get(kernel.name, _by_scale)(expansion, scales) * spread
        return found / (found.max() or 1.0) if len(found) else scales


def check_rows(rows: Array, inputs: int) -> None:
    """Raise ValueError unless each row has so many inputs."""
    if rows.ndim != 2:
        raise ValueError(f"X has the shape {rows.shape}; give a table with a line for each row")
    if rows.shape[1] != inputs:
        raise ValueError(f"X has {rows.shape[1]} features, the model takes {inputs}; give rows as the model takes them")


def _by_scale(expansion: Any, scales: Array) -> Array:
    return scales


def _by_weight(expansion: Any, scales: Array) -> Array:
    return np.abs(expansion.coef @ (expansion.vectors * scales**2)).max(axis=0)


# What an input counts for a unit of it, by the kernel's name; others: the scale.
COUNTS: dict[str, Callable[[Any, Array], Array]] = {Linear.name: _by_weight}


def _names(machine: InferenceModel, steps: Any, given: Sequence[Any] | None) -> tuple[str, ...]:
    """Of the inputs as they are shown."""
    count = machine.n_inputs
    if steps is not None:
        try:
            return tuple(map(str, steps.get_feature_names_out(None if given is None else np.asarray(given, object))))
        except (AttributeError, ValueError):
            given = None
    if given is not None:
        if len(given) != count:
            raise ValueError(f"there are {len(given)} names for {count} inputs; give one for each")
        return tuple(map(str, given))
    return machine.names or tuple(f"x{k}" for k in range(count))
