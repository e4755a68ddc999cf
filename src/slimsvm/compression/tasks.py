"""What the values of a machine mean, and so what rows teach a smaller one: intervals that its values are to lie in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp

from ..basis.distillation import QUADRATIC
from ..data.dataset import Output, ProblemGroup, class_signs
from ..data.targets import TargetScaler
from ..linalg.arrays import Array
from ..linalg.matrix import dot
from ..model.voting import Votes
from ..problem.losses import Between

ROUNDED_HINGE = Between(width=0.5, most=1.0)  # as vectors are learned for the hinge elsewhere


@dataclass(frozen=True)
class DistillationTargets:
    """Intervals that decision values are to lie in, rows x outputs x 2, and costs.

    ``outputs`` are the lessons of the outputs, each over its own rows, and ``near`` says whether they keep near the
    original. The vectors move for ``moving``, over all rows; these are the same outputs or, where each of those has its
    own rows, ``others``.
    """

    outputs: list[ProblemGroup]
    moving: ProblemGroup
    near: bool = True
    others: bool = False
    loss: Between = QUADRATIC


class PredictionTask(Protocol):
    """What the values of a machine mean."""

    labelled: ClassVar[bool]  # can rows have labels?

    @property
    def largest_weight(self) -> float:
        """The most that `weights` gives."""

    def answers(self, F: Array) -> Array:
        """What is predicted from values, rows x outputs."""

    def agreement(self, F: Array, G: Array, weights: Array) -> float:
        """How far the answers from F and G are the same: 1 at best."""

    def likeness(self, F: Array, G: Array, weights: Array) -> float:
        """By which machines that are to be like F are compared: 1 at best."""

    def units(self, F: Array, weights: Array) -> Array:
        """What outputs with these values are measured in where their errors are added up: one for each, or for all."""

    def codes(self, F: Array) -> Array:
        """A number for each row: groups from which rows are drawn in proportion."""

    def examples(self, X: Any, rng: np.random.Generator) -> Any:
        """Rows on which a machine with the vectors X shows what it does, where there are no others."""

    def taught(self, F: Array, costs: Array) -> DistillationTargets:
        """What rows with these values of the original teach."""

    def weights(self, y: Array) -> Array:
        """What rows with these labels count: the weights of their classes."""

    def from_labels(self, y: Array, costs: Array) -> DistillationTargets:
        """What rows with these labels teach."""

    def binary(self, y: Array, costs: Array) -> list[ProblemGroup] | None:
        """The same as binary problems, where it is one."""


def _sides(F: Array) -> Array:
    """Intervals of values that are on the side of F, and as far inside as F is or by the margin 1; all where F is 0."""
    margin = np.sign(F) * np.minimum(np.abs(F), 1)
    return np.stack([np.where(F > 0, margin, -np.inf), np.where(F < 0, margin, np.inf)], axis=-1)


@dataclass(frozen=True)
class Classification:
    """Values of binary problems.

    ``votes`` make a class of them; ``shown`` are those whose scores `decision_function` shows, or None: the values.
    """

    factors: Array  # the weight of each class
    problems: list[Output]
    votes: Votes
    shown: Votes | None = None
    labelled: ClassVar[bool] = True

    @property
    def n_classes(self) -> int:
        return len(self.factors)

    @property
    def largest_weight(self) -> float:
        return float(self.factors.max())

    def answers(self, F: Array) -> Array:
        """Class numbers."""
        return self.votes.leaders(F, self.n_classes)

    def decision(self, F: Array) -> Array:
        """What `decision_function` shows, rows x outputs."""
        return F if self.shown is None else self.shown.scores(F, self.n_classes)

    def agreement(self, F: Array, G: Array, weights: Array) -> float:
        """The part of the rows with the same class."""
        return float(np.average(self.answers(F) == self.answers(G), weights=weights))

    likeness = agreement
    codes = answers

    def units(self, F: Array, weights: Array) -> Array:
        """Margins: the same for all."""
        return np.ones(1)

    def examples(self, X: Any, rng: np.random.Generator) -> Any:
        """The vectors themselves: they are where decisions are close."""
        return X

    def taught(self, F: Array, costs: Array) -> DistillationTargets:
        return self._lesson(F, self.answers(F), costs)

    def weights(self, y: Array) -> Array:
        return self.factors[y]

    def from_labels(self, y: Array, costs: Array) -> DistillationTargets:
        """Problems over all rows are the original's own, over few vectors; pairs of classes keep near the original."""
        lesson = self._lesson(self._labels(y), y, costs)
        return lesson if lesson.others else replace(lesson, near=False, loss=ROUNDED_HINGE)

    def binary(self, y: Array, costs: Array) -> list[ProblemGroup]:
        return self._groups(self._labels(y), y, costs)

    def _labels(self, y: Array) -> Array:
        """Rows x problems: +1 and -1, or 0 where a row takes no part."""
        return class_signs(self.n_classes, self.problems)[y]

    def _lesson(self, F: Array, codes: Array, costs: Array) -> DistillationTargets:
        groups = self._groups(_sides(F), codes, costs)
        if self._over_all_rows:
            return DistillationTargets(groups, groups[0])
        against = _sides(self._against_others(F))
        return DistillationTargets(groups, ProblemGroup(None, against, _columns(costs, self.n_classes)), others=True)

    @property
    def _over_all_rows(self) -> bool:
        return all(len(problem.members) == self.n_classes for problem in self.problems)

    def _groups(self, Y: Array, codes: Array, costs: Array) -> list[ProblemGroup]:
        """Problems over all rows together, others each over the rows of its classes."""
        if self._over_all_rows:
            return [ProblemGroup(None, Y, _columns(costs, Y.shape[1]))]
        groups = []
        for o, problem in enumerate(self.problems):
            rows = np.flatnonzero(np.isin(codes, problem.members))
            groups.append(ProblemGroup(rows, Y[rows, o][:, None], costs[rows, None]))
        return groups

    def _against_others(self, F: Array) -> Array:
        """Each class against its closest rival: the least of its values in pairs."""
        least = np.full((len(F), self.n_classes), np.inf)
        for o, problem in enumerate(self.problems):
            first, second = problem.positive, problem.negative[0]
            np.minimum(least[:, first], F[:, o], out=least[:, first])
            np.minimum(least[:, second], -F[:, o], out=least[:, second])
        return least


@dataclass(frozen=True)
class Regression:
    """Values that are the answer themselves, of one target or several; labels are to be met to within ``epsilon``."""

    epsilon: float = 0.0
    labelled: ClassVar[bool] = True
    largest_weight: ClassVar[float] = 1.0

    def answers(self, F: Array) -> Array:
        """The values."""
        return F

    def agreement(self, F: Array, G: Array, weights: Array) -> float:
        """R^2 of G, taken as a prediction of F: the mean over the targets."""
        return float(np.mean([_explained(f, g, weights) for f, g in zip(F.T, G.T, strict=True)]))

    likeness = agreement

    def units(self, F: Array, weights: Array) -> Array:
        """Of several targets the spread of each; one is compared with no other."""
        return TargetScaler.fit(F, weights, alike=False).size if F.shape[1] > 1 else np.ones(1)

    def codes(self, F: Array) -> Array:
        return np.zeros(len(F), dtype=np.intp)

    def examples(self, X: Any, rng: np.random.Generator) -> Any:
        return X

    def taught(self, F: Array, costs: Array) -> DistillationTargets:
        return _near(F, 0.0, costs)

    def weights(self, y: Array) -> Array:
        return np.ones(len(y))

    def from_labels(self, y: Array, costs: Array) -> DistillationTargets:
        return _near(y.reshape(len(y), -1), self.epsilon, costs)

    def binary(self, y: Array, costs: Array) -> None:
        return None


@dataclass(frozen=True)
class OneClass:
    """Values above zero are inside.

    ``border``: a value so small is zero as far as the machine's solver knows. Many training rows have it (all vectors
    whose coefficients are not at a bound), and it is chance on which side of zero it is.
    """

    border: float = 0.0
    labelled: ClassVar[bool] = False
    largest_weight: ClassVar[float] = 1.0

    def answers(self, F: Array) -> Array:
        """1 inside, -1 outside."""
        return np.where(F[:, 0] > 0, 1, -1)

    def agreement(self, F: Array, G: Array, weights: Array) -> float:
        """The part of the rows on the same side; rows on the border may be on either."""
        same = (self.answers(F) == self.answers(G)) | (np.abs(F[:, 0]) <= self.border)
        return float(np.average(same, weights=weights))

    def likeness(self, F: Array, G: Array, weights: Array) -> float:
        """Of the values: sides, of rows near the border above all, say less of rows to come."""
        return _explained(F[:, 0], G[:, 0], weights)

    def units(self, F: Array, weights: Array) -> Array:
        return np.ones(1)

    def codes(self, F: Array) -> Array:
        return (F[:, 0] > 0).astype(np.intp)

    def examples(self, X: Any, rng: np.random.Generator) -> Any:
        """All vectors are on the border or outside; many of the points halfway between two of them are inside."""
        stack = sp.vstack if sp.issparse(X) else np.vstack
        n = X.shape[0]
        others = [(np.arange(n) + rng.integers(1, n, size=n)) % n for _ in range(2)]
        return stack([X, *((X + X[other]) * 0.5 for other in others)])

    def taught(self, F: Array, costs: Array) -> DistillationTargets:
        """Values, not sides, which say too little near the border."""
        return _near(F, 0.0, costs)

    def weights(self, y: Array) -> Array:
        raise NotImplementedError("rows of such a machine have no labels")

    def from_labels(self, y: Array, costs: Array) -> DistillationTargets:
        raise NotImplementedError("rows of such a machine have no labels")

    def binary(self, y: Array, costs: Array) -> None:
        raise NotImplementedError("rows of such a machine have no labels")


def _explained(f: Array, g: Array, weights: Array) -> float:
    """R^2 of g, taken as a prediction of f."""
    around = float(dot(weights, (f - np.average(f, weights=weights)) ** 2))
    return 1 - float(dot(weights, (f - g) ** 2)) / around if around > 0 else float(np.allclose(f, g))


def _columns(costs: Array, outputs: int) -> Array:
    """The same costs for each output."""
    return np.repeat(costs[:, None], outputs, axis=1)


def _near(F: Array, epsilon: float, costs: Array) -> DistillationTargets:
    targets = ProblemGroup(None, np.stack([F - epsilon, F + epsilon], axis=-1), _columns(costs, F.shape[1]))
    return DistillationTargets([targets], targets)
