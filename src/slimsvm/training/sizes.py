"""How many vectors: models of a path judged on rows held out, and the rule that chooses among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.dataset import Dataset
from ..data.folds import Groups, held_out
from ..linalg.arrays import Array
from ..model.expansion import Model
from .path import path, path_to
from .spec import Hyperparameters, TrainingSpec

DEFAULT_WITHIN = 0.5  # standard errors that count as equal
MARGIN_FACTOR = 4.0  # times as many, of a difference on the same rows
FIVE_FOLDS_BELOW = 3_000  # distinct rows, below which there are five folds
ONE_FOLD_FROM = 20_000  # distinct rows times binary problems, from which on there is one part
MAX_SIZE_ROWS = 24_000  # that judge or are trained on for it
SIGMOID_STEEPNESS = 4.0  # of the smooth step, at margin 0
MIN_SOFT_DIFFERENCE = 1e-3  # of soft error: a smaller difference is none, however sure it is
MIN_SEARCH_SIZE = 8  # vectors that settings are searched for, if there are so many


def size_grid(least: int, n_classes: int) -> tuple[int, ...]:
    """Powers of two from ``least`` to 128, or to twice the number of classes."""
    last = int(np.ceil(np.log2(max(128, 2 * n_classes))))
    return tuple(2**k for k in range(1, last + 1) if 2**k >= least)


def search_size(sizes: Sequence[int]) -> int:
    """The size that settings are searched for: nearest to a quarter of the largest, and to 8 where that is less.

    For many vectors the trial runs of a search are too short, and settings for few do not serve many: two vectors
    often do best with a kernel so wide that more of them add nothing.
    """
    aim = max(max(sizes) / 4, MIN_SEARCH_SIZE)
    return min(sizes, key=lambda size: (abs(np.log(size / aim)), -size))


def smallest_size(n_classes: int) -> int:
    """Where few rows judge, a flat curve would otherwise end at one or two vectors."""
    return max(4, n_classes)


@dataclass(frozen=True)
class Curve:
    """Scores of models by size, the larger the better, and their standard errors.

    ``behind`` says how sure it is that a size is worse than the best one in its margins: the mean difference of their
    soft errors on the same rows, in standard errors of that difference. Zeros where there are no margins, and where the
    difference is less than a tenth of a point: on a flat curve the last bit of margin would choose the size.
    """

    sizes: tuple[int, ...]
    scores: Array
    standard_errors: Array
    behind: Array

    def candidates(self, floor: int = 1, allowed: Sequence[int] | None = None) -> list[int]:
        """Places of the allowed sizes from the floor on; where all are below it, that of the largest."""
        places = [k for k, size in enumerate(self.sizes) if allowed is None or size in allowed]
        return [k for k in places if self.sizes[k] >= floor] or places[-1:]

    def best_place(self, places: Sequence[int]) -> int:
        """Where the best score is; of equal ones the smallest size."""
        return max(places, key=lambda k: (self.scores[k], -k))

    def shortfalls(self, places: Sequence[int]) -> tuple[Array, Array]:
        """How far these sizes are behind the best of them: by score, in standard errors of the best score; and by
        margins, in four standard errors of their difference."""
        top = self.best_place(places)
        less = np.where(self.scores[places] == self.scores[top], 0.0, self.scores[top] - self.scores[places])
        error = self.standard_errors[top]
        by_score = less / error if error > 0 else np.where(less > 0, np.inf, 0.0)
        return by_score, (self.behind[places] - self.behind[places].min()) / MARGIN_FACTOR

    def best(self, within: float = DEFAULT_WITHIN, floor: int = 1, allowed: Sequence[int] | None = None) -> int:
        """The smallest of the allowed sizes whose score and margins are both at most ``within`` short of the best;
        where there is none, the one whose larger shortfall is smallest.

        A larger ``within`` therefore never gives a larger size. Sizes below the floor count only where all are.
        """
        places = self.candidates(floor, allowed)
        behind = np.maximum(*self.shortfalls(places))
        return self.sizes[places[int(np.argmax(behind <= max(within, behind.min())))]]


# --- rows held out -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SizeFold:
    """Rows to train on, and rows to judge by."""

    train: Dataset
    test: Dataset

    @property
    def keys(self) -> Array:
        """Numbers of the rows that judge, equal for equal rows."""
        return self.test.keys


def size_folds(dataset: Dataset, rng: np.random.Generator, folds: int | None = None) -> list[SizeFold]:
    """Stratified folds: as many as asked for, or five where rows are few, three, or one of three where they are many.

    Copies of a row are in the same part, whatever their labels. Of very many rows a part is drawn.
    """
    groups = Groups.of(dataset)
    if groups.known_well:
        return [SizeFold(dataset, dataset)]
    few = groups.size < FIVE_FOLDS_BELOW
    count = folds or (5 if few else 3)
    many = not few and min(groups.size, MAX_SIZE_ROWS) * len(dataset.outputs("ovr")) >= ONE_FOLD_FROM
    order = dataset.canonical()
    place = groups.places(count, rng, MAX_SIZE_ROWS, least=2 * (folds or 5))[order]
    drawn, place = dataset.take(order[place >= 0]), place[place >= 0]
    # The rows that were drawn stand for all: the cost of errors weighs against the norm as it does there.
    share = dataset.total / drawn.total
    found = held_out(drawn, (place == k for k in range(1 if many and not folds else count)))
    # Where no part has all classes, the training rows judge.
    return [SizeFold(replace(train, counts=train.counts * share), test) for train, test in found] or [
        SizeFold(dataset, dataset)
    ]


# --- judging ---------------------------------------------------------------------------------------------------


TARGET_ROWS_PER_VECTOR = 2  # for each vector, at least


def feasible_sizes(sizes: Sequence[int], spec: TrainingSpec, held_out: Sequence[Any]) -> tuple[int, ...]:
    """Sizes that training rows and the kernel's space have room for; what is more becomes the most."""
    inputs = held_out[0].train.X.shape[1]
    # As many vectors as rows meet all targets exactly, whatever the scales: these would say nothing of fewer vectors.
    share = 1 if held_out[0].train.targets is None else TARGET_ROWS_PER_VECTOR
    rows = (max(1, len(np.unique(part.train.keys)) // share) for part in held_out)
    room = min(spec.kernel_of(1.0).dimensions(inputs), *rows)
    return tuple(sorted({max(1, int(min(size, room))) for size in sizes}))


@dataclass(frozen=True)
class SizePlan:
    """How models of several sizes are made: what they are to be, settings and sizes, and rows that judge."""

    spec: Callable[[Dataset], TrainingSpec]  # for some rows
    hyperparameters: Hyperparameters
    table: dict[str, list[Any]]  # by the search for settings
    sizes: tuple[int, ...]
    seed: int
    folds: list[Any]  # folds: `train`, and `keys` of rows that judge; whoever judges knows the rest

    def validation_curve(
        self,
        judge: Callable[[Any, Model], FoldScore],
        report: Callable[[str], None] | None = None,
    ) -> Curve:
        """The same path on each part's training rows, and what the rows held out say of each size."""
        verdicts: dict[int, list[FoldScore]] = {size: [] for size in self.sizes}
        for number, part in enumerate(self.folds, 1):
            spec = self.spec(part.train)
            rough = replace(spec, tol=max(spec.tol, 1e-3), verbose=False)
            for size, model in path(part.train, rough, self.hyperparameters, self.sizes, self.seed):
                verdicts[size].append(judge(part, model))
                if report is not None:
                    report(f"part {number} of {len(self.folds)}, {size} vectors")
        means = [mean_score(found, self.folds) for found in verdicts.values()]
        scores, errors = np.array(means).T
        return Curve(self.sizes, scores, errors, _behind(list(verdicts.values()), self.folds))

    def models(self, dataset: Dataset) -> Iterator[tuple[int, Model]]:
        """Models on all rows, the largest first."""
        for size, model in path(dataset, self.spec(dataset), self.hyperparameters, self.sizes, self.seed):
            yield size, self._with_settings(model)

    def model(self, dataset: Dataset, size: int) -> Model:
        """The one of this size."""
        down_to = [larger for larger in self.sizes if larger >= size]
        return self._with_settings(path_to(dataset, self.spec(dataset), self.hyperparameters, down_to, self.seed))

    def _with_settings(self, model: Model) -> Model:
        return replace(model, more=model.more | {"C_": self.hyperparameters.C, "search_results_": self.table})


@dataclass(frozen=True)
class FoldScore:
    """What a part says of a model: a score, its squared standard error, and where it is known, how wrong each row is
    (from 0 on; by margins to 1) and its weight."""

    score: float
    variance: float
    soft: Array | None = None
    weights: Array | None = None


def classification_score(wrong: Array, margins: Array, weights: Array, rows: int) -> FoldScore:
    """The share of rows that are right, and the binomial variance with so many different rows; an error of zero is
    not known to be zero."""
    error = float(np.average(wrong, weights=weights))
    about = (error * rows + 1) / (rows + 2)
    # A smooth step from 1 to 0 in place of the error: it says more of a row than on which side it is.
    soft = 1 / (1 + np.exp(np.clip(SIGMOID_STEEPNESS * margins, -50, 50)))
    return FoldScore(1 - error, about * (1 - about) / rows, soft, weights)


def regression_score(score: float, errors: Array, weights: Array, rows: int) -> FoldScore:
    """A score that is 1 less the mean error of the rows; and the variance of that mean, with so many different rows."""
    spread = float(np.average((errors - np.average(errors, weights=weights)) ** 2, weights=weights))
    return FoldScore(score, spread / rows, errors, weights)


def mean_score(verdicts: Sequence[FoldScore], held_out: Sequence[Any]) -> tuple[float, float]:
    """The mean score over parts, and its standard error."""
    repeats = sum(map(_distinct, held_out)) / _distinct(*held_out)  # twice by the same row says no more than once
    variance = repeats * sum(one.variance for one in verdicts) / len(verdicts) ** 2
    return float(np.mean([one.score for one in verdicts])), float(np.sqrt(variance))


def _distinct(*held_out: Any) -> int:
    """How many different rows judge."""
    return len(np.unique(np.concatenate([part.keys for part in held_out])))


def _behind(verdicts: list[list[FoldScore]], held_out: Sequence[Any]) -> Array:
    """See `Curve`; ``verdicts`` by size and part."""
    if any(one.soft is None for found in verdicts for one in found):
        return np.zeros(len(verdicts))
    soft = np.array([np.concatenate([one.soft for one in found]) for found in verdicts])
    weights = np.concatenate([one.weights for one in verdicts[0]])
    soft = soft - soft[np.average(soft, axis=1, weights=weights).argmin()]
    above = np.average(soft, axis=1, weights=weights)
    spread = np.average((soft - above[:, None]) ** 2, axis=1, weights=weights)
    errors = np.sqrt(spread / _distinct(*held_out))
    return np.divide(above, errors, out=np.zeros(len(above)), where=(errors > 0) & (above >= MIN_SOFT_DIFFERENCE))
