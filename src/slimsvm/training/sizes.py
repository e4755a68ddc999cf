"""Choice of the number of vectors: models of several sizes are scored on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.dataset import Dataset
from ..data.folds import Fold, RowGroups, make_folds
from ..linalg.arrays import Array
from ..model.expansion import Model
from .path import path, path_to
from .spec import Hyperparameters, TrainingSpec

DEFAULT_WITHIN = 0.5  # scores within this many standard errors of the best count as equal
MARGIN_FACTOR = 4.0  # times ``within``: the limit, in standard errors, for differences of margins on the same rows
FIVE_FOLDS_BELOW = 3_000  # distinct rows
ONE_FOLD_FROM = 20_000  # distinct rows times binary problems
MAX_SIZE_ROWS = 24_000  # training and test rows of the folds together
SIGMOID_STEEPNESS = 4.0  # of soft errors, at margin 0
MIN_SOFT_DIFFERENCE = 1e-3  # ignore smaller differences of soft errors, however significant
MIN_SEARCH_SIZE = 8  # smallest size for which hyperparameters are searched
TARGET_ROWS_PER_VECTOR = 2  # minimum in regression


def size_grid(smallest: int, n_classes: int) -> tuple[int, ...]:
    """Powers of two from ``smallest`` to 128, or to twice the number of classes if that is larger."""
    last = int(np.ceil(np.log2(max(128, 2 * n_classes))))
    return tuple(2**k for k in range(1, last + 1) if 2**k >= smallest)


def search_size(sizes: Sequence[int]) -> int:
    """The size for which hyperparameters are searched: nearest to a quarter of the largest size, or to 8 if that is
    more.

    With many vectors the trials of a search are too short. With few, the best kernel is often so wide that further
    vectors add nothing.
    """
    ideal = max(max(sizes) / 4, MIN_SEARCH_SIZE)
    return min(sizes, key=lambda size: (abs(np.log(size / ideal)), -size))


def smallest_size(n_classes: int) -> int:
    """The smallest size to choose: with few held-out rows a flat curve would otherwise give one or two vectors."""
    return max(4, n_classes)


@dataclass(frozen=True)
class Curve:
    """Validation curve: scores by size (larger is better) and their standard errors.

    ``behind`` compares the margins of each size with those of the best one: the mean difference of soft errors on the
    same rows, in standard errors of that difference. It is 0 without margins, and for differences below
    `MIN_SOFT_DIFFERENCE`, so that tiny differences do not choose the size on a flat curve.
    """

    sizes: tuple[int, ...]
    scores: Array
    standard_errors: Array
    behind: Array

    def candidates(self, floor: int = 1, allowed: Sequence[int] | None = None) -> list[int]:
        """Indices of the allowed sizes of at least ``floor``; if there are none, of the largest allowed size."""
        places = [k for k, size in enumerate(self.sizes) if allowed is None or size in allowed]
        return [k for k in places if self.sizes[k] >= floor] or places[-1:]

    def best_place(self, places: Sequence[int]) -> int:
        """Index of the best score; of equal scores, of the smallest size."""
        return max(places, key=lambda k: (self.scores[k], -k))

    def shortfalls(self, places: Sequence[int]) -> tuple[Array, Array]:
        """Shortfalls of these sizes against the best of them, in score and in margins.

        Scores are in standard errors of the best score, margins in four standard errors of their difference.
        """
        top = self.best_place(places)
        below = np.where(self.scores[places] == self.scores[top], 0.0, self.scores[top] - self.scores[places])
        error = self.standard_errors[top]
        by_score = below / error if error > 0 else np.where(below > 0, np.inf, 0.0)
        return by_score, (self.behind[places] - self.behind[places].min()) / MARGIN_FACTOR

    def best(self, within: float = DEFAULT_WITHIN, floor: int = 1, allowed: Sequence[int] | None = None) -> int:
        """The smallest allowed size whose `shortfalls` are both at most ``within``; if none, the size with the least
        maximum shortfall.

        A larger ``within`` never gives a larger size. Sizes below the floor count only where all are below it.
        """
        places = self.candidates(floor, allowed)
        shortfall = np.maximum(*self.shortfalls(places))
        return self.sizes[places[int(np.argmax(shortfall <= max(within, shortfall.min())))]]


# --- folds ---------------------------------------------------------------------------------------------------


def size_folds(dataset: Dataset, rng: np.random.Generator, n_folds: int | None = None) -> list[Fold]:
    """Stratified folds that keep equal rows together, of at most `MAX_SIZE_ROWS` rows.

    There are ``n_folds`` if given; else five with few rows, three, or with many rows one with a third held out.
    """
    groups = RowGroups(dataset)
    if groups.mostly_duplicates:
        return [Fold(dataset, dataset)]
    few_rows = groups.size < FIVE_FOLDS_BELOW
    n_parts = n_folds or (5 if few_rows else 3)
    work = min(groups.size, MAX_SIZE_ROWS) * len(dataset.outputs("ovr"))
    one_fold = not n_folds and not few_rows and work >= ONE_FOLD_FROM
    order = dataset.canonical()
    part = groups.assign(n_parts, rng, MAX_SIZE_ROWS, min_per_class=2 * (n_folds or 5))[order]
    drawn, part = dataset.take(order[part >= 0]), part[part >= 0]
    # Drawn rows get the total weight of all rows, so that C means the same.
    factor = dataset.total / drawn.total
    folds = make_folds(drawn, (part == k for k in range(1 if one_fold else n_parts)))
    # Where no fold has all classes, the training rows are the test rows.
    return [Fold(replace(train, counts=train.counts * factor), test) for train, test in folds] or [
        Fold(dataset, dataset)
    ]


def feasible_sizes(sizes: Sequence[int], spec: TrainingSpec, folds: Sequence[Fold]) -> tuple[int, ...]:
    """The sizes, clipped to what the training rows and the dimension of the feature space allow."""
    train = folds[0].train
    # As many vectors as rows interpolate all targets, whatever the scales: no evidence about fewer vectors.
    rows_per_vector = 1 if train.targets is None else TARGET_ROWS_PER_VECTOR
    limits = (max(1, len(np.unique(fold.train.keys)) // rows_per_vector) for fold in folds)
    limit = min(spec.kernel_of(1.0).dimensions(train.X.shape[1]), *limits)
    return tuple(sorted({max(1, int(min(size, limit))) for size in sizes}))


# --- scores ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FoldScore:
    """The score of a model on the test rows of a fold, its variance, and the soft errors and weights of the rows.

    Soft errors are at least 0, and between 0 and 1 if they come from margins.
    """

    score: float
    variance: float
    soft_errors: Array | None = None
    weights: Array | None = None


def classification_score(wrong: Array, margins: Array, weights: Array, n_distinct: int) -> FoldScore:
    """Accuracy and its binomial variance for ``n_distinct`` rows; the variance is positive even at zero error."""
    error = float(np.average(wrong, weights=weights))
    smoothed = (error * n_distinct + 1) / (n_distinct + 2)
    # A sigmoid in place of the 0/1 error: it tells how close a row is to the boundary.
    soft_errors = 1 / (1 + np.exp(np.clip(SIGMOID_STEEPNESS * margins, -50, 50)))
    return FoldScore(1 - error, smoothed * (1 - smoothed) / n_distinct, soft_errors, weights)


def regression_score(score: float, errors: Array, weights: Array, n_distinct: int) -> FoldScore:
    """A score of 1 minus the mean error of the rows, and the variance of that mean for ``n_distinct`` rows."""
    spread = float(np.average((errors - np.average(errors, weights=weights)) ** 2, weights=weights))
    return FoldScore(score, spread / n_distinct, errors, weights)


def mean_score(scores: Sequence[FoldScore], folds: Sequence[Fold]) -> tuple[float, float]:
    """The mean score over folds, and its standard error."""
    repeats = sum(map(_n_distinct, folds)) / _n_distinct(*folds)  # correct for rows judged in several folds
    variance = repeats * sum(score.variance for score in scores) / len(scores) ** 2
    return float(np.mean([score.score for score in scores])), float(np.sqrt(variance))


def _n_distinct(*folds: Fold) -> int:
    """The number of distinct test rows."""
    return len(np.unique(np.concatenate([fold.keys for fold in folds])))


def _behind(scores: list[list[FoldScore]], folds: Sequence[Fold]) -> Array:
    """`Curve.behind`; ``scores`` are by size and fold."""
    if any(score.soft_errors is None for of_size in scores for score in of_size):
        return np.zeros(len(scores))
    soft_errors = np.array([np.concatenate([score.soft_errors for score in of_size]) for of_size in scores])
    weights = np.concatenate([score.weights for score in scores[0]])
    difference = soft_errors - soft_errors[np.average(soft_errors, axis=1, weights=weights).argmin()]
    mean = np.average(difference, axis=1, weights=weights)
    variance = np.average((difference - mean[:, None]) ** 2, axis=1, weights=weights)
    errors = np.sqrt(variance / _n_distinct(*folds))
    return np.divide(mean, errors, out=np.zeros(len(mean)), where=(errors > 0) & (mean >= MIN_SOFT_DIFFERENCE))


# --- models of several sizes -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SizePlan:
    """How models of several sizes are trained, and the folds on which they are scored."""

    spec: Callable[[Dataset], TrainingSpec]
    hyperparameters: Hyperparameters
    table: dict[str, list[Any]]  # of all candidates of the search
    sizes: tuple[int, ...]
    seed: int
    folds: Sequence[Fold]

    def validation_curve(
        self, scorers: Sequence[Callable[[Model], FoldScore]], report: Callable[[str], None] | None = None
    ) -> Curve:
        """Scores of all sizes: models of each size are trained and scored on every fold."""
        scores: dict[int, list[FoldScore]] = {size: [] for size in self.sizes}
        for number, (fold, score) in enumerate(zip(self.folds, scorers, strict=True), 1):
            spec = self.spec(fold.train)
            spec = replace(spec, tol=max(spec.tol, 1e-3), verbose=False)
            for size, model in path(fold.train, spec, self.hyperparameters, self.sizes, self.seed):
                scores[size].append(score(model))
                if report is not None:
                    report(f"part {number} of {len(self.folds)}, {size} vectors")
        means, errors = np.array([mean_score(of_size, self.folds) for of_size in scores.values()]).T
        return Curve(self.sizes, means, errors, _behind(list(scores.values()), self.folds))

    def models(self, dataset: Dataset) -> Iterator[tuple[int, Model]]:
        """Yield each size with its model on all rows, the largest first."""
        for size, model in path(dataset, self.spec(dataset), self.hyperparameters, self.sizes, self.seed):
            yield size, self._with_search_results(model)

    def model(self, dataset: Dataset, size: int) -> Model:
        """The model of this size on all rows."""
        down_to = [larger for larger in self.sizes if larger >= size]
        model = path_to(dataset, self.spec(dataset), self.hyperparameters, down_to, self.seed)
        return self._with_search_results(model)

    def _with_search_results(self, model: Model) -> Model:
        return replace(model, more=model.more | {"C_": self.hyperparameters.C, "search_results_": self.table})
