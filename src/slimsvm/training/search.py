"""Hyperparameter search by validation: C, gamma, and whether the scales of the inputs are learned.

1. Every gamma is tried with fixed and with learned scales, at a C inversely proportional to gamma: wide kernels are
   nearly linear and need a large C.
2. The two best gammas with fixed scales, and with learned scales, are tried at several values of C.
3. With many rows, the best C of each of the best two gammas and its neighbours are tried on further folds.

Trials are short, and start from the vectors learned at the neighbouring C. The result depends on the rows alone, not on
their order, the random state or the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from typing import Any

import numpy as np

from ..basis.learning import LearnedVectors
from ..data.dataset import Dataset
from ..data.folds import Fold, RowGroups, split
from ..problem import kernels
from ..utils.progress import ProgressLine
from .spec import Hyperparameters, TrainingSpec
from .trials import MAX_TRIAL_ROWS, TrialRunner, TrialScore

COSTS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
INITIAL_COST = 0.3  # C times gamma in units of gamma="scale", when gammas are compared
# For regression with learned scales: at a low C, scales of weak inputs fall to 0, and later trials cannot raise them.
INITIAL_COST_SCALED_REGRESSION = 9.0
MAX_COST = {False: 1e4, True: 1e6}  # for classification and regression, where targets may be almost noise-free
MAX_COST_ROWS = 1e6  # with more rows, costs are inversely proportional to their number
GAMMAS = (0.03, 0.1, 0.3, 1.0, 3.0)  # in units of gamma="scale"
SMALLEST_GAMMA, LARGEST_GAMMA = 0.003, 30.0  # in the same units
SCALED_GAMMAS = (0.3, 1.0)  # where scales are learned: scales can grow, and every row needs vectors near it
SCALED_GAMMAS_FEW_ROWS = (0.3,)
# Factors below and above the initial C, for classification and for regression: with few rows and learned scales.
COST_RANGE_FEW_ROWS = {False: (12.0, 12.0), True: (40.0, 12.0)}
N_BEST_GAMMAS = 2  # of each kind (scales fixed or learned), tried at several costs
MANY_ROWS = 1000  # from this many rows on, single scores are reliable
NEIGHBOUR_WEIGHTS = (0.7, 0.3)  # of scores one and two costs away, in averages that reduce noise
LOSS_WEIGHT = 0.5  # of the mean loss, relative to the error, in a validation score


@dataclass(frozen=True)
class SearchSpace:
    """Hyperparameters to search: C and gamma (None: searched, else given), and whether scales are learned."""

    C: float | None
    gamma: float | None
    scaled: Sequence[bool]
    gamma_unit: float = 1.0  # gamma="scale"
    total_weight: float = 1.0  # of all rows
    is_regression: bool = False
    # Scales may be learned to drop inputs for a byte budget, even when the search does not try them.
    may_learn_scales: bool = False

    @property
    def cost_factor(self) -> float:
        """Factor of the costs in `COSTS`: below 1 where the total weight exceeds `MAX_COST_ROWS`."""
        return min(1.0, MAX_COST_ROWS / self.total_weight)

    @property
    def costs(self) -> list[float]:
        """Values of C to try."""
        return [C * self.cost_factor for C in COSTS]

    @property
    def is_fixed(self) -> bool:
        """Whether all hyperparameters are given."""
        return self.C is not None and self.gamma is not None and len(self.scaled) == 1

    def gammas(self, scaled: bool, few_rows: bool) -> list[float]:
        """Values of gamma to try, the likeliest first, so that trials of others can stop early."""
        if self.gamma is not None:
            return [self.gamma]
        usual = GAMMAS if not scaled else SCALED_GAMMAS_FEW_ROWS if few_rows else SCALED_GAMMAS
        return [gamma * self.gamma_unit for gamma in sorted(usual, key=lambda gamma: (abs(np.log(gamma)), gamma))]

    def initial(self, gamma: float, scaled: bool) -> Hyperparameters:
        """The first candidate for a gamma: C in inverse proportion to it, unless C is given."""
        initial = INITIAL_COST_SCALED_REGRESSION if scaled and self.is_regression else INITIAL_COST
        ideal = initial * self.cost_factor * self.gamma_unit / gamma
        C = min(self.costs, key=lambda C: abs(np.log(C / ideal))) if self.C is None else self.C
        return Hyperparameters(C, gamma, scaled)

    def beyond(self, candidates: Sequence[Hyperparameters]) -> list[Hyperparameters]:
        """Initial candidates at the next smaller and larger gamma than all candidates with fixed scales."""
        gammas = sorted(s.gamma for s in candidates if not s.scaled)
        further = [gammas[0] / 3, gammas[-1] * 3] if gammas and self.gamma is None else []
        return [
            self.initial(gamma, False)
            for gamma in further
            if SMALLEST_GAMMA <= gamma / self.gamma_unit <= LARGEST_GAMMA
        ]


def search_space(dataset: Dataset, C: float | str, gamma: float | str, scales: str, spec: TrainingSpec) -> SearchSpace:
    """The search space for an estimator's parameters, which are numbers or, if they are searched, strings."""
    given_C = None if C == "search" else float(C)
    may_learn_scales = scales == "learned" or (scales == "search" and spec.basis.learns)
    # With more inputs than rows, learned scales overfit.
    searched = [False, True] if may_learn_scales and dataset.X.shape[1] <= dataset.size else [False]
    scaled = {"fixed": [False], "learned": [True], "search": searched}[scales]
    given_gamma: float | None = 1.0
    unit = 1.0
    if kernels.takes_gamma(dataset.kernel):
        given_gamma = None if gamma == "search" else kernels.scale_gamma(gamma, dataset.X, dataset.counts)
        if given_gamma is None or given_C is None:
            unit = kernels.scale_gamma("scale", dataset.X, dataset.counts)
    is_regression = dataset.targets is not None
    return SearchSpace(given_C, given_gamma, scaled, unit, dataset.total, is_regression, may_learn_scales)


@dataclass(frozen=True)
class SearchResult:
    """The best hyperparameters, the table of all candidates, the folds, and the vectors that the best trials
    learned."""

    hyperparameters: Hyperparameters
    table: dict[str, list[Any]]
    folds: list[Fold]
    vectors: list[LearnedVectors]

    @classmethod
    def fixed(cls, space: SearchSpace) -> SearchResult:
        """The result without a search: the only candidate of a space in which all hyperparameters are given."""
        assert space.C is not None
        assert space.gamma is not None
        return cls(Hyperparameters(space.C, space.gamma, space.scaled[0]), {}, [], [])


def search(dataset: Dataset, spec: TrainingSpec, space: SearchSpace) -> SearchResult:
    """The best hyperparameters of a space. The search ends early once a candidate has zero error."""
    if space.is_fixed:
        return SearchResult.fixed(space)
    line = ProgressLine("search") if spec.verbose else None
    rng = np.random.default_rng(0)
    folds = search_folds(dataset, rng)
    with TrialRunner(folds, spec, int(rng.integers(2**31))) as run_trial:
        few = dataset.size < MANY_ROWS
        result = HyperparameterSearch(run_trial, space, few, line.update if line else None).run()
    if line is not None:
        best = result.hyperparameters
        line.finish(f"C={best.C:g}, gamma={best.gamma:.4g}, scales {'learned' if best.scaled else 'fixed'}")
    return result


class HyperparameterSearch:
    """Scores candidates on one fold after the other and selects the best.

    With few rows, all folds are used from the beginning, scores are averaged over neighbouring values of C, and learned
    scales must be better than fixed ones by more than the noise.
    """

    def __init__(
        self, run_trial: TrialRunner, space: SearchSpace, few_rows: bool, report: Callable[[str], None] | None
    ):
        self.run_trial, self.space, self.few_rows, self.report = run_trial, space, few_rows, report
        self.n_folds = len(run_trial.folds)
        self.n_first_folds = self.n_folds if few_rows else 1
        self.scores: dict[Hyperparameters, list[TrialScore]] = {}

    def run(self) -> SearchResult:
        """Run all stages of the search."""
        space = self.space
        candidates = [space.initial(g, scaled) for scaled in space.scaled for g in space.gammas(scaled, self.few_rows)]
        ahead = candidates + (space.beyond(candidates) if self.run_trial.threads > len(candidates) else [])
        self.run_trial.prefetch((params, None, fold) for fold in range(self.n_first_folds) for params in ahead)
        for params in candidates:
            if not self.has_zero_error():
                self.evaluate(params, n_folds=self.n_first_folds)
        if space.gamma is None:
            self._extend_gammas()
        starts = [start for scaled in space.scaled for start in self._best_gammas(scaled)]
        if space.C is None:
            self._search_costs(starts)
        if not self.few_rows:
            paths = sorted(map(self.cost_path, starts), key=lambda path: _score(self.scores[self.best(path)]))
            self._prefetch_confirmations(paths[:N_BEST_GAMMAS])
            for path in paths[:N_BEST_GAMMAS]:
                self._confirm(path)
        winner = self.winner(starts)
        vectors = [score.learned for score in self.scores[winner] if score.learned is not None]
        return SearchResult(winner, self.table(), self.run_trial.folds, vectors)

    # --- scores ---

    def evaluate(
        self, params: Hyperparameters, near: Hyperparameters | None = None, n_folds: int | None = None
    ) -> None:
        """Score a candidate on the first folds (None: all) until it is beaten; start from the vectors of ``near``."""
        scores = self.scores.setdefault(params, [])
        for fold in range(len(scores), self.n_folds if n_folds is None else n_folds):
            if self._is_beaten(scores):
                break
            scores.append(self.run_trial(params, near, fold))
        if self.report is not None:
            self.report(f"{len(self.scores)} candidates, error {_mean(self.scores[self.best()]).error:.4g}")

    def _is_beaten(self, scores: list[TrialScore]) -> bool:
        """Whether a candidate is significantly worse than the best one on the folds that it was tried on."""
        if not scores or not any(len(other) == self.n_folds for other in self.scores.values()):
            return False
        best = self.scores[self.best()]
        difference = np.concatenate([mine.wrong - other.wrong for mine, other in zip(scores, best, strict=False)])
        return bool(difference.sum() > 3 * np.sqrt((difference**2).sum()))

    def comparable(self, candidates: Sequence[Hyperparameters] | None = None) -> list[Hyperparameters]:
        """Those candidates (None: of all) that were tried on the most folds."""
        rivals = [s for s in self.scores if candidates is None or s in candidates]
        most = max((len(self.scores[s]) for s in rivals), default=0)
        return [s for s in rivals if len(self.scores[s]) == most]

    def best(self, candidates: Sequence[Hyperparameters] | None = None) -> Hyperparameters:
        """The candidate (None: of all) with the lowest validation score."""
        rivals = self.comparable(candidates)
        return min(rivals, key=lambda s: self._smoothed_score(s, rivals))

    def _smoothed_score(self, params: Hyperparameters, rivals: list[Hyperparameters]) -> float:
        """Validation score of a candidate; with few rows, averaged over neighbouring costs."""
        if not self.few_rows:
            return _score(self.scores[params])
        path = sorted((s for s in rivals if _without_cost(s) == _without_cost(params)), key=lambda s: s.C)
        scores = np.array([_score(self.scores[s]) for s in path])
        distance = np.abs(np.arange(len(path)) - path.index(params))
        weights = np.array([1, *NEIGHBOUR_WEIGHTS, 0])[np.minimum(distance, len(NEIGHBOUR_WEIGHTS) + 1)]
        return float(np.average(scores, weights=weights))

    def has_zero_error(self) -> bool:
        """Whether any candidate has zero error."""
        return any(_mean(self.scores[s]).error == 0 for s in self.comparable())

    def winner(self, starts: list[Hyperparameters]) -> Hyperparameters:
        """The best of the candidates that share gamma and kind of scales with one of ``starts``."""
        kinds = set(map(_without_cost, starts))
        rivals = self.comparable([s for s in self.scores if _without_cost(s) in kinds])
        noise = 0.0
        if self.few_rows:
            noise = min((_mean(self.scores[s]) for s in rivals), key=lambda mean: mean.error).standard_error
        return min(rivals, key=lambda s: self._smoothed_score(s, rivals) + noise * s.scaled)

    def table(self) -> dict[str, list[Any]]:
        """All candidates with their mean scores over the folds that they were tried on, as lists by column."""
        means = [_mean(scores) for scores in self.scores.values()]
        return {
            "C": [s.C for s in self.scores],
            "gamma": [s.gamma for s in self.scores],
            "scales": ["learned" if s.scaled else "fixed" for s in self.scores],
            "error": [mean.error for mean in means],
            "loss": [mean.loss for mean in means],
            "folds": [len(scores) for scores in self.scores.values()],
        }

    # --- gammas ---

    def _best_gammas(self, scaled: bool) -> list[Hyperparameters]:
        """The best candidates with learned (``scaled``) or with fixed scales."""
        candidates = self.comparable([s for s in self.scores if s.scaled == scaled])
        return sorted(candidates, key=lambda s: _score(self.scores[s]))[:N_BEST_GAMMAS]

    def _extend_gammas(self) -> None:
        """Extend the range of gammas while the best gamma is at its end."""
        while not self.has_zero_error():
            fixed = [s for s in self.scores if not s.scaled]
            if not fixed:
                break
            best = self._best_gammas(False)[0].gamma
            further = [s for s in self.space.beyond(fixed) if s.gamma in (best / 3, best * 3)]
            if not further:
                break
            self.evaluate(further[0], n_folds=self.n_first_folds)

    # --- costs ---

    def cost_path(self, start: Hyperparameters) -> list[Hyperparameters]:
        """All candidates that differ from ``start`` in C alone, by C."""
        return sorted((s for s in self.scores if _without_cost(s) == _without_cost(start)), key=lambda s: s.C)

    def _search_costs(self, starts: list[Hyperparameters]) -> None:
        """Try several costs for each of the best gammas.

        With many rows, the costs of a second gamma depend on the best cost of the first one of its kind.
        """
        leads = [self.few_rows or self._first_of_kind(s, starts) == s for s in starts]
        leading, following = (
            [s for s, first in zip(starts, leads, strict=True) if first == turn] for turn in (True, False)
        )
        for group in (leading, following):
            self._prefetch_costs(group, starts)
            if group is following and following and self.run_trial.threads > 2 * len(group):  # idle threads otherwise
                self._prefetch_confirmations(list(map(self.cost_path, leading)))
            for start in group:
                self._try_costs(start, self._costs_to_try(start, starts))

    @staticmethod
    def _first_of_kind(start: Hyperparameters, starts: list[Hyperparameters]) -> Hyperparameters:
        return next(other for other in starts if other.scaled == start.scaled)

    def _costs_to_try(self, start: Hyperparameters, starts: list[Hyperparameters]) -> list[float]:
        """Values of C to try for a gamma.

        With few rows and learned scales, moderate values; with many rows, for the second gamma of a kind, values near
        the best C of the first.
        """
        below = above = np.inf
        middle = start.C
        first = self._first_of_kind(start, starts)
        if self.few_rows:
            below, above = COST_RANGE_FEW_ROWS[self.space.is_regression] if start.scaled else (np.inf, np.inf)
        elif start != first:
            middle, below, above = self.best(self.cost_path(first)).C, 4.0, 4.0
        return [C for C in self.space.costs if middle / below < C < middle * above]

    def _try_costs(self, start: Hyperparameters, costs: list[float]) -> None:
        """Try costs upwards and downwards from the start, each trial from the vectors of the cost before.

        Higher costs follow while the highest one is the best.
        """
        for direction in _directions(start, costs):
            for near, params in pairwise([start, *direction]):
                if self.has_zero_error():
                    return
                self.evaluate(params, near, self.n_first_folds)
        while (not self.few_rows or self.space.is_regression) and not self.has_zero_error():
            path = self.cost_path(start)
            # With few rows, scores are averaged over neighbours; the highest cost has the fewest neighbours.
            best = min(path, key=lambda s: _score(self.scores[s])) if self.few_rows else self.best(path)
            limit = MAX_COST[self.space.is_regression] * self.space.cost_factor
            if max(s.C for s in path) > best.C or limit < 3 * best.C:
                break
            self.evaluate(replace(best, C=3 * best.C), best, self.n_first_folds)

    def _prefetch_costs(self, group: list[Hyperparameters], starts: list[Hyperparameters]) -> None:
        """Start the trials at all costs that will certainly be tried."""
        if self.has_zero_error():
            return
        chains = [
            [(params, near, fold) for near, params in pairwise([start, *direction])]
            for fold in range(self.n_first_folds)
            for start in sorted(group, key=lambda s: not s.scaled)  # the slowest first
            for direction in _directions(start, self._costs_to_try(start, starts))
        ]
        # A trial waits for the one before it in its chain: interleave the chains, so that few trials wait.
        for links in zip_longest(*chains):
            self.run_trial.prefetch(filter(None, links))

    # --- confirmation on further folds ---

    def _confirm(self, path: list[Hyperparameters]) -> None:
        """Try the best cost of a path and its two neighbours on the other folds."""
        best, neighbours = self._to_confirm(path)
        self.evaluate(best)
        for params in neighbours:
            self.evaluate(params, best)

    def _prefetch_confirmations(self, paths: list[list[Hyperparameters]]) -> None:
        """Start the trials of `_confirm` for several paths."""
        trials = [(fold, *self._to_confirm(path)) for fold in range(1, self.n_folds) for path in paths]
        self.run_trial.prefetch((best, None, fold) for fold, best, _ in trials)
        self.run_trial.prefetch((params, best, fold) for fold, best, neighbours in trials for params in neighbours)

    def _to_confirm(self, path: list[Hyperparameters]) -> tuple[Hyperparameters, list[Hyperparameters]]:
        best = self.best(path)
        at = path.index(best)
        return best, [*path[max(at - 1, 0) : at], *path[at + 1 : at + 2]]


def _without_cost(params: Hyperparameters) -> tuple[float, bool]:
    return params.gamma, params.scaled


def _directions(start: Hyperparameters, costs: list[float]) -> tuple[list[Hyperparameters], list[Hyperparameters]]:
    """Candidates at higher costs than ``start`` in ascending order, and at lower costs in descending order."""
    up, down = [C for C in costs if C > start.C], [C for C in reversed(costs) if C < start.C]
    return [replace(start, C=C) for C in up], [replace(start, C=C) for C in down]


def _mean(scores: list[TrialScore]) -> TrialScore:
    """The mean score over folds of equal weight."""
    count = len(scores)
    error, loss = sum(score.error for score in scores) / count, sum(score.loss for score in scores) / count
    return TrialScore(error, loss, np.concatenate([score.wrong for score in scores]))


def _score(scores: list[TrialScore]) -> float:
    """Validation score; lower is better."""
    mean = _mean(scores)
    return mean.error + LOSS_WEIGHT * mean.loss


def search_folds(dataset: Dataset, rng: np.random.Generator) -> list[Fold]:
    """Stratified folds that keep equal rows together: three 70/30 splits; with few rows three or five folds."""
    sample = dataset.sample(MAX_TRIAL_ROWS, rng)
    if RowGroups(dataset).mostly_duplicates:
        return [Fold(sample, sample)]
    n_groups = RowGroups(sample).size
    n_parts, per_fold = (5, 1) if n_groups < 300 else (3, 1) if n_groups < MANY_ROWS else (10, 3)
    # Where no fold has all classes, the training rows are the test rows.
    return split(sample, n_parts, rng, parts_per_fold=per_fold) or [Fold(sample, sample)]
