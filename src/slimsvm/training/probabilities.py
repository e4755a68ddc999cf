"""The probability layer of a small classifier: the choice of its cost on held-out rows, and its fit.

Vectors fit their own training rows better than new rows, so a cost chosen on training rows gives probabilities too
close to 0 and 1. Each fold therefore learns its vectors without its test rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..data.dataset import Dataset
from ..data.folds import Fold, RowGroups, split
from ..linalg.arrays import as_float64
from ..model.expansion import Expansion
from ..problem.regularizers import KernelNorm
from ..rows.labels import class_number_labels
from ..solvers.primal.probability import LayerWeights, Losses, Report, features, fit_layer, minimise
from ..utils.progress import ProgressLine
from ..utils.warnings import warn
from .spec import Hyperparameters, TrainingSpec, shortened
from .trials import MAX_TRIAL_ROWS

MAX_LAYER_ROWS = 50_000
CALIBRATION_ITERATIONS = 40  # of learning, for the vectors of the folds
INITIAL_COST_FACTOR = 10.0  # times the classifier's C: the initial cost, which is kept if there are no folds
COST_STEP = 10**0.5
MAX_COST_STEPS = 12  # from the initial cost
MIN_LOG_LOSS_GAIN = 1e-3  # smallest relative decrease of the log-loss for a further step
# Distinct rows from which on one fold is enough, or three folds.
ONE_CALIBRATION_FOLD_ROWS, THREE_CALIBRATION_FOLDS_ROWS = 3000, 1000

VectorLearner = Callable[[Dataset], tuple[Any, Any]]  # rows to train on -> kernel and vectors


@dataclass(frozen=True)
class FoldVectors:
    """A fold with the kernel and vectors that were learned on its training rows."""

    fold: Fold
    kernel: Any
    vectors: Any


def calibration_folds(dataset: Dataset, learn: VectorLearner, rng: np.random.Generator) -> list[FoldVectors]:
    """The folds of `calibration_splits`, each with vectors that are learned on its training rows."""
    return [FoldVectors(fold, *learn(fold.train)) for fold in calibration_splits(dataset, rng)]


def calibration_splits(dataset: Dataset, rng: np.random.Generator) -> list[Fold]:
    """Stratified folds that keep equal rows together; one fold of a quarter if rows are many, none if most are copies.

    The layer of a fold should see about as many rows as the final one: a cost chosen for fewer rows would make the
    final probabilities too cautious.
    """
    if RowGroups(dataset).mostly_duplicates:
        return []
    sample = dataset.sample(max(5000, min(20_000, 200_000 // dataset.n_classes)), rng).in_memory()
    n_groups = RowGroups(sample).size
    many = n_groups >= ONE_CALIBRATION_FOLD_ROWS
    n_parts = 4 if many else 3 if n_groups >= THREE_CALIBRATION_FOLDS_ROWS else 5
    return split(sample, n_parts, rng, n_folds=1 if many else None)


def vector_learner(spec: TrainingSpec, params: Hyperparameters, rng: np.random.Generator) -> VectorLearner:
    """A function that learns a kernel and vectors from training rows, in fewer iterations than the spec."""
    seed = int(rng.integers(2**31))
    basis = spec.basis
    if basis.learns:
        basis = shortened(basis, CALIBRATION_ITERATIONS, rows=MAX_TRIAL_ROWS)
    spec = replace(spec, basis=basis, verbose=False)

    def learn(train: Dataset) -> tuple[Any, Any]:
        candidates = spec.candidates(train, params, np.random.default_rng(seed))
        choice = spec.basis.choose(candidates, spec.n_vectors)
        vectors = choice.vectors
        if spec.regularizer.reweighted:  # zero coefficients drop vectors
            vectors = vectors[spec.fit_coefficients(candidates, choice).coef.any(axis=0)]
        return choice.kernel or candidates.kernel, vectors

    return learn


class LayerLogLoss:
    """Held-out log-loss of a fold as a function of the layer's cost; the layer is fitted to the training rows."""

    def __init__(self, source: FoldVectors, memory: float):
        self.kernel, self.vectors = source.kernel, as_float64(source.vectors)
        gram = self.kernel(self.vectors, self.vectors)
        self.whitening = layer_norm(self.kernel, source.fold.train).settled(gram).whitening(gram)
        self.train, self.test = (self._features(rows, memory) for rows in (source.fold.train, source.fold.test))
        self.solutions: dict[float, LayerWeights] = {}

    def _features(self, rows: Dataset, memory: float) -> Any:
        labels = class_number_labels(rows.codes, rows.counts, rows.class_weights)
        return features(self.kernel, rows.X, labels, self.vectors, self.whitening, rows.threads, memory)

    def __call__(self, cost: float) -> float:
        nearest = min(self.solutions, key=lambda other: abs(np.log(other / cost)), default=None)
        start = None if nearest is None else self.solutions[nearest]
        train = replace(self.train, labels=self.train.labels.take(slice(None), cost))
        V = minimise(train, start, tol=1e-3, max_iter=30).V
        self.solutions[cost] = LayerWeights(V)
        labels = self.test.labels
        (loss,) = self.test.total(Losses(labels), V[None])
        return float(loss[0] / labels.totals[0])


def layer_norm(kernel: Any, dataset: Dataset) -> KernelNorm:
    """The regulariser of a layer, whatever the classifier's: the norm of f in the kernel's space."""
    return KernelNorm().among(kernel, dataset.X, True)


def choose_cost(folds: Sequence[FoldVectors], C: float, memory: float = 2.0**30, report: Report | None = None) -> float:
    """The cost with the lowest mean held-out log-loss, on a grid around C, the cost of the classifier.

    A line search starts at ten times C and moves up or down while the log-loss falls.
    """
    log_losses = [LayerLogLoss(fold, memory) for fold in folds if fold.vectors.shape[0]]
    if not log_losses:
        return INITIAL_COST_FACTOR * C
    means: dict[int, float] = {}

    def mean(place: int) -> float:
        if place not in means:
            means[place] = sum(log_loss(cost(place)) for log_loss in log_losses) / len(log_losses)
            if report is not None:
                report(f"cost {cost(place):.3g}, log-loss {means[place]:.4g}")
        return means[place]

    def cost(place: float) -> float:
        return INITIAL_COST_FACTOR * C * COST_STEP**place

    best = 0
    for step in (1, -1):
        while abs(best + step) <= MAX_COST_STEPS and mean(best + step) < (1 - MIN_LOG_LOSS_GAIN) * mean(best):
            best += step
        if best:
            break
    return cost(best + _vertex([means.get(best + k) for k in (-1, 0, 1)]))


def _vertex(losses: list[float | None]) -> float:
    """Offset of the minimum of the parabola through three losses from the middle one, at most half a step."""
    left, middle, right = losses
    if left is None or middle is None or right is None or not left + right > 2 * middle:
        return 0.0
    return float(np.clip(0.5 * (left - right) / (left - 2 * middle + right), -0.5, 0.5))


def fit_probabilities(
    dataset: Dataset,
    expansion: Expansion,
    C: float,
    folds: Sequence[FoldVectors],
    rng: np.random.Generator,
    tol: float,
    memory: float,
    verbose: bool = False,
) -> dict[str, Any]:
    """Choose the cost of the layer and fit it over the vectors of a model with cost C; return fitted attributes."""
    line = ProgressLine("probabilities") if verbose else None
    cost = choose_cost(folds, C, memory, line.update if line else None)
    return fit_probabilities_at(dataset, expansion, cost, rng, tol, memory, line)


def fit_probabilities_at(
    dataset: Dataset,
    expansion: Expansion,
    cost: float,
    rng: np.random.Generator,
    tol: float,
    memory: float,
    line: ProgressLine | None = None,
) -> dict[str, Any]:
    """Fit the layer with a given cost; return fitted attributes."""
    rows = dataset.sample(MAX_LAYER_ROWS, rng).in_memory()
    kernel, vectors = expansion.kernel, expansion.vectors
    labels = class_number_labels(rows.codes, rows.counts, cost * rows.class_weights)
    layer = fit_layer(
        kernel, rows.X, vectors, labels, layer_norm(kernel, rows), tol, threads=rows.threads, memory=memory
    )
    if line is not None:
        line.finish(f"cost {cost:.3g}, {layer.n_iter} steps, gap {layer.gap:.1e}")
    if layer.gap > tol:
        warn(
            f"probabilities are not those of the best layer: relative duality gap {layer.gap:.2e}, asked for {tol:g}. "
            "Scale the features, or set probability=False if they are not needed",
            ConvergenceWarning,
        )
    return {
        "probability_coef_": layer.coef,
        "probability_intercept_": layer.bias,
        "probability_C_": cost,
        "probability_gap_": layer.gap,
    }
