"""Extension of a model to classes without rows, which it never predicts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..data.dataset import outputs
from ..linalg.arrays import Array
from ..model.expansion import Model

LAYER_ATTRIBUTES = ("probability_coef_", "probability_intercept_")


def pad_missing_classes(model: Model, present: Array, n_classes: int, n_rows: int) -> Model:
    """Extend a model of the ``present`` classes, fitted to ``n_rows`` rows, to all classes."""
    if len(present) == n_classes:
        return model
    pairs = n_classes == 2 or model.scheme == "ovo"
    mixed, shift = _pairs(present, n_classes) if pairs else _values(present, n_classes)
    expansion = model.expansion
    # Only fitted outputs have an objective and a gap; those of other outputs are 0.
    own = (np.count_nonzero(mixed, axis=1) == 1)[:, None] * np.abs(mixed)
    return replace(
        model,
        expansion=replace(expansion, coef=mixed @ expansion.coef, bias=mixed @ expansion.bias + shift),
        objective=own @ model.objective,
        gap=None if model.gap is None else own @ model.gap,
        n_iter=(own @ model.n_iter).astype(int),
        more=model.more | _layer(model.more, present, n_classes, n_rows),
    )


def _pairs(present: Array, n_classes: int) -> tuple[Array, Array]:
    """Matrix and offsets that turn the outputs of the present pairs into those of all pairs of classes.

    A pair with one absent class votes for the other class.
    """
    output_of_pair = {tuple(present[list(o.members)]): k for k, o in enumerate(outputs(len(present), "ovo"))}
    pairs = outputs(n_classes, "ovo")
    mixed, shift = np.zeros((len(pairs), _fitted_outputs(len(present), "ovo"))), np.zeros(len(pairs))
    known_classes = set(present.tolist())
    for o, output in enumerate(pairs):
        first, second = output.positive, output.negative[0]
        pair = tuple(output.members)
        if pair in output_of_pair and len(present) > 1:
            mixed[o, output_of_pair[pair]] = -1 if len(present) == 2 else 1  # of two classes, the second is positive
        else:
            shift[o] = float(first in known_classes) - float(second in known_classes)
    return mixed, shift


def _values(present: Array, n_classes: int) -> tuple[Array, Array]:
    """Matrix and offsets for one-vs-rest outputs; an absent class gets the mean of the others less 1."""
    mixed, shift = np.zeros((n_classes, _fitted_outputs(len(present), "ovr"))), np.zeros(n_classes)
    mixed[present] = _of_classes(len(present))
    return _behind(mixed, shift, present, 1.0)


def _layer(more: dict[str, Any], present: Array, n_classes: int, n_rows: int) -> dict[str, Any]:
    """The probability layer extended to all classes: absent classes get probabilities of at most 1 / (n_rows + 1)."""
    if LAYER_ATTRIBUTES[0] not in more:
        return {}
    rare = np.log1p(n_rows)
    if n_classes == 2:  # the only class
        mixed, shift = np.zeros((1, 0)), np.array([rare if present[0] else -rare])
    else:
        coef = 0.5 * _of_classes(2) if len(present) == 2 else _of_classes(len(present))
        mixed = np.zeros((n_classes, coef.shape[1]))
        mixed[present] = coef
        mixed, shift = _behind(mixed, np.zeros(n_classes), present, rare)
    return {
        LAYER_ATTRIBUTES[0]: mixed @ more[LAYER_ATTRIBUTES[0]],
        LAYER_ATTRIBUTES[1]: mixed @ more[LAYER_ATTRIBUTES[1]] + shift,
    }


def _behind(mixed: Array, shift: Array, present: Array, far: float) -> tuple[Array, Array]:
    absent = np.setdiff1d(np.arange(len(mixed)), present)
    mixed[absent], shift[absent] = mixed[present].mean(axis=0), shift[present].mean() - far
    return mixed, shift


def _of_classes(count: int) -> Array:
    """Matrix (classes x outputs) from one-vs-rest outputs to class scores; two classes have one output."""
    return np.eye(count) if count > 2 else np.array([[-1.0], [1.0]]) if count == 2 else np.zeros((1, 0))


def _fitted_outputs(count: int, scheme: str) -> int:
    return len(outputs(count, scheme)) if count > 1 else 0
