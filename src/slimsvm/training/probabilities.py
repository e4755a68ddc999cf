"""The probability layer of a small classifier: its cost, chosen on rows that did not shape the vectors, and its fit.

Vectors that were learned on a row make the row look better explained than a new one would be, and the cost that is best
for such rows gives probabilities too close to 0 and 1. So vectors are learned anew without the rows that judge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..data.dataset import Dataset
from ..data.folds import Groups, held_out
from ..linalg.arrays import as_float64
from ..model.expansion import Expansion
from ..problem.regularizers import KernelNorm
from ..rows.labels import class_number_labels
from ..solvers.primal.probability import LayerWeights, Losses, Report, features, fit_layer, minimise
from ..utils.progress import ProgressLine
from ..utils.warnings import warn
from .spec import Hyperparameters, TrainingSpec
from .trials import MAX_TRIAL_ROWS

MAX_LAYER_ROWS = 50_000
CALIBRATION_ITERATIONS = 40  # of learning, for vectors that only help to choose the cost
INITIAL_COST_FACTOR = 10.0  # times the classifier's cost: where the choice starts, and ends if nothing can judge it
COST_STEP = 10**0.5
MAX_COST_STEPS = 12  # steps from the start
MIN_LOG_LOSS_GAIN = 1e-3  # of the log-loss: less is not worth a step

VectorLearner = Callable[[Dataset], tuple[Any, Any]]  # rows to train on -> kernel and vectors


@dataclass(frozen=True)
class CalibrationFold:
    """Rows to fit a layer to, rows that judge it, and a kernel and vectors that the latter had no part in."""

    train: Dataset
    test: Dataset
    kernel: Any
    vectors: Any


def calibration_folds(dataset: Dataset, learn: VectorLearner, rng: np.random.Generator) -> list[CalibrationFold]:
    """Folds, or one quarter held out where rows are many; none where the rows do not allow it."""
    return [CalibrationFold(train, test, *learn(train)) for train, test in calibration_splits(dataset, rng)]


def calibration_splits(dataset: Dataset, rng: np.random.Generator) -> list[tuple[Dataset, Dataset]]:
    """Rows to train on and rows that judge; equal rows are in the same part, whatever their labels.

    The layer of a piece should see about as many rows as the final one: what fewer rows teach is less certain, and
    a cost that is right for it would make the final probabilities too cautious.
    """
    if Groups.of(dataset).known_well:
        return []
    some = dataset.sample(max(5000, min(20_000, 200_000 // dataset.n_classes)), rng).in_memory()
    groups = Groups.of(some)
    many = groups.size >= 3000
    count = 4 if many else 3 if groups.size >= 1000 else 5
    place = groups.places(count, rng)
    return held_out(some, (place == k for k in range(1 if many else count)))


def vector_learner(spec: TrainingSpec, params: Hyperparameters, rng: np.random.Generator) -> VectorLearner:
    """How a recipe gets its vectors, in short runs."""
    seed = int(rng.integers(2**31))
    basis = spec.basis
    if basis.learns:
        most = (
            CALIBRATION_ITERATIONS
            if isinstance(basis.iterations, str)
            else min(CALIBRATION_ITERATIONS, int(basis.iterations))
        )
        basis = replace(basis, iterations=most, rows=MAX_TRIAL_ROWS)
    spec = replace(spec, basis=basis, verbose=False)

    def learn(train: Dataset) -> tuple[Any, Any]:
        candidates = spec.candidates(train, params, np.random.default_rng(seed))
        choice = spec.basis.choose(candidates, spec.n_vectors)
        vectors = choice.vectors
        if spec.regularizer.reweighted:  # coefficients decide which vectors are left
            wanted = train.outputs(spec.scheme)
            vectors = vectors[spec.fit_coefficients(train, choice, candidates, wanted).coef.any(axis=0)]
        return choice.kernel or candidates.kernel, vectors

    return learn


class LayerLogLoss:
    """The log-loss of one piece's layer on its rows held out, for any cost."""

    def __init__(self, piece: CalibrationFold, memory: float):
        self.piece = piece
        self.known: dict[float, LayerWeights] = {}
        self.train, self.test = self._rows(piece.train, memory), self._rows(piece.test, memory)

    def _rows(self, dataset: Dataset, memory: float) -> Any:
        kernel, Z = self.piece.kernel, as_float64(self.piece.vectors)
        gram = kernel(Z, Z)
        T = layer_norm(kernel, self.piece.train).settled(gram).whitening(gram)
        return features(
            kernel,
            dataset.X,
            class_number_labels(dataset.codes, dataset.counts, dataset.factors),
            Z,
            T,
            dataset.threads,
            memory,
        )

    def __call__(self, cost: float) -> float:
        near = min(self.known, key=lambda other: abs(np.log(other / cost)), default=None)
        start = None if near is None else self.known[near]
        train = replace(self.train, labels=self.train.labels.take(slice(None), cost))
        V = minimise(train, start, tol=1e-3, max_iter=30).V
        self.known[cost] = LayerWeights(V)
        labels = self.test.labels
        (loss,) = self.test.total(Losses(labels), V[None])
        return float(loss[0] / labels.totals[0])


def layer_norm(kernel: Any, dataset: Dataset) -> KernelNorm:
    """The regulariser of every layer, whatever that of the classifier: the norm in the kernel's space."""
    return KernelNorm().among(kernel, dataset.X, True)


def choose_cost(
    pieces: Sequence[CalibrationFold], C: float, memory: float = 2.0**30, report: Report | None = None
) -> float:
    """The cost of least log-loss on rows held out, of a grid around C, the classifier's own.

    The walk starts at ten times C and goes on, upwards or downwards, while there is something to gain.
    """
    judges = [LayerLogLoss(piece, memory) for piece in pieces if piece.vectors.shape[0]]
    if not judges:
        return INITIAL_COST_FACTOR * C
    known: dict[int, float] = {}

    def loss(place: int) -> float:
        if place not in known:
            known[place] = sum(judge(cost(place)) for judge in judges) / len(judges)
            if report is not None:
                report(f"cost {cost(place):.3g}, log-loss {known[place]:.4g}")
        return known[place]

    def cost(place: float) -> float:
        return INITIAL_COST_FACTOR * C * COST_STEP**place

    best = 0
    for way in (1, -1):
        while abs(best + way) <= MAX_COST_STEPS and loss(best + way) < (1 - MIN_LOG_LOSS_GAIN) * loss(best):
            best += way
        if best:
            break
    return cost(best + _vertex([known.get(best + k) for k in (-1, 0, 1)]))


def _vertex(losses: list[float | None]) -> float:
    """Where the parabola through three losses is least, as far as half a step from the middle one."""
    left, middle, right = losses
    if left is None or middle is None or right is None or not left + right > 2 * middle:
        return 0.0
    return float(np.clip(0.5 * (left - right) / (left - 2 * middle + right), -0.5, 0.5))


def fit_probabilities(
    dataset: Dataset,
    expansion: Expansion,
    C: float,
    pieces: Sequence[CalibrationFold],
    rng: np.random.Generator,
    tol: float,
    memory: float,
    verbose: bool = False,
) -> dict[str, Any]:
    """Fitted attributes of the layer over the vectors of a model; C is the model's cost, where the choice starts."""
    line = ProgressLine("probabilities") if verbose else None
    cost = choose_cost(pieces, C, memory, line.update if line else None)
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
    """The same where the cost of the layer is known."""
    rows = dataset.sample(MAX_LAYER_ROWS, rng).in_memory()
    kernel, vectors = expansion.kernel, expansion.vectors
    labels = class_number_labels(rows.codes, rows.counts, cost * rows.factors)
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
