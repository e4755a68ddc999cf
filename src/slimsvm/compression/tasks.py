"""Tasks of compression: predictions from decision values, and the target intervals of a compressed model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from ..basis.distillation import QUADRATIC
from ..data.dataset import Dataset, Output, ProblemGroup
from ..data.targets import TargetScaler
from ..linalg.arrays import Array
from ..linalg.matrix import dot
from ..model.voting import Votes
from ..problem.losses import Between

ROUNDED_HINGE = Between(width=0.5, most=1.0)  # the smoothed hinge of `basis.learning`


@dataclass(frozen=True)
class DistillationTargets:
    """Intervals for decision values (rows x outputs x 2) and the costs of values outside.

    Coefficients are fitted to ``outputs``, each over its own rows; ``near``: with a penalty on the distance to the
    original. Vectors are learned for ``moving`` over all rows: the same outputs or, where outputs have different rows,
    ``one_vs_rest`` problems.
    """

    outputs: list[ProblemGroup]
    moving: ProblemGroup
    near: bool = True
    one_vs_rest: bool = False
    loss: Between = QUADRATIC


class PredictionTask:
    """Predictions, agreement and training targets for decision values F (rows x outputs)."""

    has_labels: ClassVar[bool] = True

    @property
    def max_class_weight(self) -> float:
        """The largest class weight."""
        return 1.0

    def predictions(self, F: Array) -> Array:
        """Predictions from decision values."""
        return F

    def agreement(self, F: Array, G: Array, weights: Array) -> float:
        """Agreement of the predictions from F and G, at most 1."""
        raise NotImplementedError

    def similarity(self, F: Array, G: Array, weights: Array) -> float:
        """Similarity of G to the original's values F, at most 1: the criterion for selecting compressed models."""
        return self.agreement(F, G, weights)

    def units(self, F: Array, weights: Array) -> Array:
        """The units in which errors of the outputs are summed: one for each output, or one for all."""
        return np.ones(1)

    def strata(self, F: Array) -> Array:
        """The stratum of each row, for proportional draws."""
        return np.zeros(len(F), dtype=np.intp)

    def example_rows(self, X: Any, rng: np.random.Generator) -> Any:
        """Training rows if the user gives none: the original's vectors X, which lie near the decision boundary."""
        return X

    def dataset_fields(self, labels: Array) -> dict[str, Any]:
        """The fields of a `Dataset` that hold labels."""
        raise NotImplementedError

    def class_weights(self, rows: Dataset) -> Array:
        """The weight of each row's class."""
        return np.ones(rows.size)

    def targets_from_values(self, F: Array, costs: Array) -> DistillationTargets:
        """Training targets from the original's decision values F."""
        return _targets_within(F, 0.0, costs)

    def targets_from_labels(self, rows: Dataset, costs: Array) -> DistillationTargets:
        """Training targets from the labels of the rows."""
        raise NotImplementedError

    def binary_problems(self, rows: Dataset, costs: Array) -> list[ProblemGroup] | None:
        """Binary problems from the labels of the rows; None where the task has none."""
        return None


def _margin_intervals(F: Array) -> Array:
    """Intervals of values with the sign of F and a margin of at least min(|F|, 1); unbounded for F = 0."""
    margin = np.sign(F) * np.minimum(np.abs(F), 1)
    return np.stack([np.where(F > 0, margin, -np.inf), np.where(F < 0, margin, np.inf)], axis=-1)


@dataclass(frozen=True)
class Classification(PredictionTask):
    """Classification by voting over binary problems.

    ``votes`` turn decision values into a class; ``shown`` into the scores of `decision_function` (None: the values).
    """

    factors: Array  # class weights
    problems: list[Output]
    votes: Votes
    shown: Votes | None = None

    @property
    def n_classes(self) -> int:
        return len(self.factors)

    @property
    def max_class_weight(self) -> float:
        return float(self.factors.max())

    def predictions(self, F: Array) -> Array:
        """Predicted class codes."""
        return self.votes.leaders(F, self.n_classes)

    def agreement(self, F: Array, G: Array, weights: Array) -> float:
        """The weighted share of rows with the same predicted class."""
        return float(np.average(self.predictions(F) == self.predictions(G), weights=weights))

    def strata(self, F: Array) -> Array:
        return self.predictions(F)

    def dataset_fields(self, labels: Array) -> dict[str, Any]:
        return {"codes": labels, "classes": np.arange(self.n_classes), "class_weights": self.factors}

    def class_weights(self, rows: Dataset) -> Array:
        return self.factors[rows.codes]

    def targets_from_values(self, F: Array, costs: Array) -> DistillationTargets:
        return self._targets(F, self.predictions(F), costs)

    def targets_from_labels(self, rows: Dataset, costs: Array) -> DistillationTargets:
        """Labels as margins of at least 1; one-vs-one problems also get a penalty on the distance to the original."""
        targets = self._targets(rows.labels(self.problems), rows.codes, costs)
        return targets if targets.one_vs_rest else replace(targets, near=False, loss=ROUNDED_HINGE)

    def binary_problems(self, rows: Dataset, costs: Array) -> list[ProblemGroup]:
        return self._groups(rows.labels(self.problems), rows.codes, costs)

    def _targets(self, F: Array, codes: Array, costs: Array) -> DistillationTargets:
        groups = self._groups(_margin_intervals(F), codes, costs)
        if self._over_all_rows:
            return DistillationTargets(groups, groups[0])
        intervals = _margin_intervals(self._one_vs_rest(F))
        moving = ProblemGroup(None, intervals, _columns(costs, self.n_classes))
        return DistillationTargets(groups, moving, one_vs_rest=True)

    @property
    def _over_all_rows(self) -> bool:
        return all(len(problem.members) == self.n_classes for problem in self.problems)

    def _groups(self, Y: Array, codes: Array, costs: Array) -> list[ProblemGroup]:
        """Problems over all rows as one group; otherwise one group for each pair, over the rows of its classes."""
        if self._over_all_rows:
            return [ProblemGroup(None, Y, _columns(costs, Y.shape[1]))]
        groups = []
        for o, problem in enumerate(self.problems):
            rows = np.flatnonzero(np.isin(codes, problem.members))
            groups.append(ProblemGroup(rows, Y[rows, o][:, None], costs[rows, None]))
        return groups

    def _one_vs_rest(self, F: Array) -> Array:
        """For each class its smallest pairwise value, the one against its closest rival."""
        smallest = np.full((len(F), self.n_classes), np.inf)
        for o, problem in enumerate(self.problems):
            first, second = problem.positive, problem.negative[0]
            np.minimum(smallest[:, first], F[:, o], out=smallest[:, first])
            np.minimum(smallest[:, second], -F[:, o], out=smallest[:, second])
        return smallest


@dataclass(frozen=True)
class Regression(PredictionTask):
    """Regression on one or more targets: values are predictions, errors up to ``epsilon`` cost nothing."""

    epsilon: float = 0.0

    def agreement(self, F: Array, G: Array, weights: Array) -> float:
        """R^2 of G as a prediction of F, the mean over the targets."""
        return float(np.mean([_r2(f, g, weights) for f, g in zip(F.T, G.T, strict=True)]))

    def units(self, F: Array, weights: Array) -> Array:
        """The standard deviation of each target; 1 for a single target."""
        return TargetScaler.fit(F, weights, alike=False).size if F.shape[1] > 1 else np.ones(1)

    def dataset_fields(self, labels: Array) -> dict[str, Any]:
        return {"targets": labels}

    def targets_from_labels(self, rows: Dataset, costs: Array) -> DistillationTargets:
        return _targets_within(rows.targets, self.epsilon, costs)


@dataclass(frozen=True)
class OneClass(PredictionTask):
    """Outlier detection: values above zero are inside.

    ``border``: values of at most this size are zero within the solver's tolerance. All vectors whose coefficients are
    not at a bound have such values, and their sign is arbitrary.
    """

    border: float = 0.0
    has_labels: ClassVar[bool] = False

    def predictions(self, F: Array) -> Array:
        """1 inside, -1 outside."""
        return np.where(F[:, 0] > 0, 1, -1)

    def agreement(self, F: Array, G: Array, weights: Array) -> float:
        """The share of rows on the same side; rows on the border agree with either."""
        same = (self.predictions(F) == self.predictions(G)) | (np.abs(F[:, 0]) <= self.border)
        return float(np.average(same, weights=weights))

    def similarity(self, F: Array, G: Array, weights: Array) -> float:
        """R^2 of the values, which generalises better to new rows than the agreement of signs."""
        return _r2(F[:, 0], G[:, 0], weights)

    def strata(self, F: Array) -> Array:
        return (F[:, 0] > 0).astype(np.intp)

    def example_rows(self, X: Any, rng: np.random.Generator) -> Any:
        """The vectors, which lie on the border or outside, and midpoints between two of them, many of which are
        inside."""
        stack = sp.vstack if sp.issparse(X) else np.vstack
        n = X.shape[0]
        others = [(np.arange(n) + rng.integers(1, n, size=n)) % n for _ in range(2)]
        return stack([X, *((X + X[other]) * 0.5 for other in others)])


def _r2(f: Array, g: Array, weights: Array) -> float:
    """R^2 of g as a prediction of f."""
    variation = float(dot(weights, (f - np.average(f, weights=weights)) ** 2))
    return 1 - float(dot(weights, (f - g) ** 2)) / variation if variation > 0 else float(np.allclose(f, g))


def _columns(costs: Array, n_outputs: int) -> Array:
    """The costs of the rows, repeated for each output."""
    return np.repeat(costs[:, None], n_outputs, axis=1)


def _targets_within(F: Array, epsilon: float, costs: Array) -> DistillationTargets:
    targets = ProblemGroup(None, np.stack([F - epsilon, F + epsilon], axis=-1), _columns(costs, F.shape[1]))
    return DistillationTargets([targets], targets)
