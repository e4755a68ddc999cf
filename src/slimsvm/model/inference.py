"""The whole computation of a fitted model, from a user's row to the prediction, as plain data for exports."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..linalg.arrays import Array
from ..problem.bases import dense
from .expansion import Expansion
from .voting import Votes


@dataclass(frozen=True)
class Affine:
    """Scaling of the user's rows before the kernel, ``(x - mean) / scale``; ``folded`` if it is a pipeline's."""

    mean: Array
    scale: Array
    folded: bool = False

    @classmethod
    def none(cls, inputs: int) -> Affine:
        """No scaling."""
        return cls(np.zeros(inputs), np.ones(inputs))

    def inverse(self, Z: Array) -> Array:
        return Z * self.scale + self.mean

    def __call__(self, X: Array) -> Array:
        return (X - self.mean) / self.scale


@dataclass(frozen=True)
class ProbabilityLayer:
    """A second expansion over the same vectors, whose softmax (two classes: sigmoid) gives the class probabilities.

    With ``shares`` each output is a class against the others, and their sigmoids are normalised to sum to one. Where
    another class is likelier than the predicted one, `slimsvm.model.probabilities.align_with_winners` changes the
    probabilities until the predicted class is a likeliest one.
    """

    coef: Array
    bias: Array
    shares: bool = False


@dataclass(frozen=True)
class InferenceModel:
    """A fitted model as data: scaling, kernel expansion, votes, probability layer.

    Decision values are ``coef k(vectors, inputs(x)) + bias``, one for each output; ``votes`` turn them into a class.
    Regressors have neither classes nor votes and predict the values. `decision_function` returns the scores of the
    votes ``shown``, or the decision values if ``shown`` is None.
    """

    expansion: Expansion  # with dense vectors
    inputs: Affine
    classes: Array | None = None
    votes: Votes | None = None
    shown: Votes | None = None
    layer: ProbabilityLayer | None = None
    names: tuple[str, ...] | None = None  # of the inputs

    @property
    def n_inputs(self) -> int:
        return len(self.inputs.mean)

    def between_vectors(self, count: int = 2000) -> Array:
        """Random rows between pairs of vectors, in the user's units: test rows where no others are given."""
        Z = np.asarray(self.expansion.vectors, dtype=np.float64)
        Z = Z if len(Z) else np.zeros((1, self.n_inputs))
        rng = np.random.default_rng(0)
        first, second = rng.integers(len(Z), size=(2, count))
        part = rng.uniform(size=(count, 1))
        return self.inputs.inverse(part * Z[first] + (1 - part) * Z[second])


def inference_model(model: Any) -> InferenceModel:
    """The inference model of a fitted estimator of slimsvm, or of a pipeline of scalers that ends in one."""
    scalers, estimator = last_step(model)
    names = getattr(scalers[0] if scalers else estimator, "feature_names_in_", None)
    expansion = estimator._expansion()
    classes, votes = estimator._labels_and_votes()
    return InferenceModel(
        Expansion(expansion.kernel, dense(expansion.vectors), expansion.coef, expansion.bias),
        folded_scalers(scalers, estimator.n_features_in_),
        classes,
        votes,
        estimator._decision_votes(),
        estimator._probability_layer(),
        None if names is None else tuple(map(str, names)),
    )


def last_step(model: Any) -> tuple[list[Any], Any]:
    """Split a pipeline into its earlier steps and the fitted estimator at its end."""
    steps = _flat(model)
    estimator = steps[-1] if steps else model
    if hasattr(estimator, "vector_coef_"):
        return steps[:-1], estimator
    name = type(estimator).__name__
    if hasattr(estimator, "dual_coef_"):
        raise ValueError(
            f"{name} is a machine of scikit-learn; make it one of slimsvm first: compress(model, n_vectors)"
        )
    raise ValueError(
        f"{name} is not a fitted estimator of slimsvm (it has no vector_coef_); call fit first, or pass an estimator "
        "of slimsvm"
    )


def _flat(model: Any) -> list[Any]:
    """Steps of a pipeline and of nested pipelines, without passthrough."""
    if not hasattr(model, "steps"):
        return [model]
    steps = [step for _, step in model.steps if step is not None and step != "passthrough"]
    return [inner for step in steps for inner in _flat(step)]


FAR_ROW = 2.0**40  # where the slope of a scaler is measured: the farther, the more digits


def folded_scalers(scalers: list[Any], inputs: int) -> Affine:
    """Fuse the steps before the classifier into one affine map of each input; ValueError if they are not affine."""
    if not scalers:
        return Affine.none(inputs)
    names = ", ".join(type(scaler).__name__ for scaler in scalers)
    others = "export the steps after them (model[1:] of a pipeline), or the whole with to_onnx"
    wanted = f"steps before the classifier must scale each input by itself, as StandardScaler does; {others}. {names}"
    for scaler in scalers:
        if getattr(scaler, "n_features_in_", inputs) != inputs:
            raise ValueError(f"{wanted} do not: they take {scaler.n_features_in_} inputs, the classifier {inputs}")
    probe = np.random.default_rng(0).normal(scale=1e3, size=inputs)
    rows = _scaled(scalers, np.stack([np.zeros(inputs), np.ones(inputs), probe, np.full(inputs, FAR_ROW)]))
    if rows.shape[1] != inputs:
        raise ValueError(f"{wanted} do not: they make {rows.shape[1]} columns of {inputs}")
    near, slope = rows[1] - rows[0], (rows[3] - rows[0]) / FAR_ROW
    size = np.abs(rows[0]) + np.abs(slope * probe)
    straight = np.abs(rows[2] - rows[0] - slope * probe) <= 1e-6 * size
    if not (near > 0).all() or not straight.all() or not np.allclose(near, slope, rtol=1e-6, atol=1e-15 * size.max()):
        raise ValueError(f"{wanted} do not")
    if _fill_gaps(scalers, inputs):
        raise ValueError(
            f"{names} fill in missing values, which rows elsewhere have no word for; export the steps after them "
            "(model[1:] of a pipeline), and fill gaps before"
        )
    mean = -rows[0] / slope
    # One correction step: near the mean a scaler loses no digits.
    mean -= _scaled(scalers, mean[None])[0] / slope
    return Affine(mean, 1 / slope, folded=True)


def _fill_gaps(steps: list[Any], inputs: int) -> bool:
    """Whether a step, such as an imputer, replaces missing values by numbers."""
    try:
        return bool(np.isfinite(_scaled(steps, np.full((1, inputs), np.nan))).any())
    except ValueError:  # missing values are not accepted
        return False


def _scaled(scalers: list[Any], rows: Array) -> Array:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        for scaler in scalers:
            rows = dense(scaler.transform(rows))
    return rows
