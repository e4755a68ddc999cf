"""Settings by validation: cost, width of the kernel, scales of the inputs.

First all widths, with scales fixed and learned, each at the cost that suits it: a wide kernel is nearly linear, its
weights are small, and only a large cost lets it show what it can. Then the two best of either over the costs; and,
where rows are many, a second look at the best costs of the best two, on other rows. Trial runs are short, and start
where the run at the next cost ended.
The choice depends on the rows alone, not on their order, the random state or the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from typing import Any

import numpy as np

from ..basis.learning import LearnedVectors
from ..data.dataset import Dataset
from ..data.folds import Groups, held_out
from ..problem import kernels
from .spec import Hyperparameters, TrainingSpec
from .trials import MAX_TRIAL_ROWS, Fold, TrialRunner, TrialScore

COSTS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
INITIAL_COST = 0.3  # the cost at which widths are compared, times gamma in units of gamma="scale"
# The same for targets where scales are learned: at a low cost weak inputs get scales near 0 and later trials cannot
# recover them.
INITIAL_COST_SCALED_REGRESSION = 9.0
MAX_COST = {False: 1e4, True: 1e6}  # of labels, of targets: these may have next to no noise
MAX_COST_ROWS = 1e6  # rows up to which these are the costs; more rows share what a million would cost
GAMMAS = (0.03, 0.1, 0.3, 1.0, 3.0)  # gamma, in units of gamma="scale"
SMALLEST_GAMMA, LARGEST_GAMMA = 0.003, 30.0
SCALED_GAMMAS = (0.3, 1.0)  # where scales start: they can grow, and every row is to see vectors
SCALED_GAMMAS_FEW_ROWS = (0.3,)
# Factors below and above the first cost, for labels and for targets: where rows are few and scales learned.
COST_RANGE_FEW_ROWS = {False: (12.0, 12.0), True: (40.0, 12.0)}
N_GAMMAS_CONTINUED = 2  # widths of either kind that are tried at several costs
MANY_ROWS = 1000  # rows, from which on no caution is needed
NEIGHBOUR_WEIGHTS = (
    0.7,
    0.3,
)  # what the next costs count, and those after them, where rows are few: a range of costs is less noise
LOSS_WEIGHT = 0.5  # what the loss counts beside the error


@dataclass(frozen=True)
class SearchSpace:
    """What is given, and what may be chosen (None)."""

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
        """Of a cost in `COSTS`, for each row."""
        return min(1.0, MAX_COST_ROWS / self.total_weight)

    @property
    def costs(self) -> list[float]:
        """Costs to try."""
        return [C * self.cost_factor for C in COSTS]

    @property
    def is_fixed(self) -> bool:
        """Is everything given?"""
        return self.C is not None and self.gamma is not None and len(self.scaled) == 1

    def hyperparameters(self) -> Hyperparameters:
        """The hyperparameters, if all are given."""
        assert self.C is not None
        assert self.gamma is not None
        return Hyperparameters(self.C, self.gamma, self.scaled[0])

    def gammas(self, scaled: bool, few: bool) -> list[float]:
        """Widths to try, the likeliest first: others are then given up early."""
        if self.gamma is not None:
            return [self.gamma]
        usual = GAMMAS if not scaled else SCALED_GAMMAS_FEW_ROWS if few else SCALED_GAMMAS
        return [width * self.gamma_unit for width in sorted(usual, key=lambda width: (abs(np.log(width)), width))]

    def initial(self, gamma: float, scaled: bool) -> Hyperparameters:
        """The first candidate for a gamma: C in inverse proportion to it, unless C is given."""
        first = INITIAL_COST_SCALED_REGRESSION if scaled and self.is_regression else INITIAL_COST
        wanted = first * self.cost_factor * self.gamma_unit / gamma
        cost = min(self.costs, key=lambda C: abs(np.log(C / wanted))) if self.C is None else self.C
        return Hyperparameters(cost, gamma, scaled)


def search_space(dataset: Dataset, C: float | str, gamma: float | str, scales: str, spec: TrainingSpec) -> SearchSpace:
    """What is left open: numbers and words as an estimator has them."""
    cost = None if isinstance(C, str) else float(C)
    may_scale = scales == "learned" or (scales == "search" and spec.basis.learns)
    # With more inputs than rows, scales would fit anything.
    searched = [False, True] if may_scale and dataset.X.shape[1] <= dataset.size else [False]
    scaled = {"fixed": [False], "learned": [True], "search": searched}[scales]
    rows, targets = dataset.total, dataset.targets is not None
    if not kernels.takes_gamma(dataset.kernel):
        return SearchSpace(cost, 1.0, scaled, total_weight=rows, is_regression=targets, may_learn_scales=may_scale)
    given = None if gamma == "search" else kernels.scale_gamma(gamma, dataset.X, dataset.counts)
    known = given is not None and cost is not None  # nobody asks for the unit then
    unit = 1.0 if known else kernels.scale_gamma("scale", dataset.X, dataset.counts)
    return SearchSpace(cost, given, scaled, unit, rows, targets, may_scale)


@dataclass(frozen=True)
class SearchResult:
    """The best hyperparameters, a table of all candidates (lists by column), the folds, and the vectors that the trials
    of the best candidate learned."""

    hyperparameters: Hyperparameters
    table: dict[str, list[Any]]
    folds: list[Fold]
    vectors: list[LearnedVectors]

    @classmethod
    def fixed(cls, space: SearchSpace) -> SearchResult:
        """The only candidate of a space in which everything is given: no search."""
        return cls(space.hyperparameters(), {}, [], [])


class HyperparameterSearch:
    """Validation of candidates on one fold after the other, and the choice among them.

    Where rows are few, next costs are judged together, and learned scales have to be better than fixed ones by more
    than the noise.
    """

    def __init__(self, trial: TrialRunner, space: SearchSpace, few: bool, report: Callable[[str], None] | None):
        self.trial, self.space, self.few, self.report = trial, space, few, report
        self.folds = len(trial.folds)
        self.trials: dict[Hyperparameters, list[TrialScore]] = {}

    def run(self, params: Hyperparameters, near: Hyperparameters | None = None, folds: int | None = None) -> None:
        """One candidate on the first folds (None: all), while it can still win."""
        trials = self.trials.setdefault(params, [])
        for fold in range(len(trials), self.folds if folds is None else folds):
            if self.lost(trials):
                break
            trials.append(self.trial(params, near, fold))
        if self.report is not None:
            self.report(f"{len(self.trials)} candidates, error {_mean(self.trials[self.leader()]).error:.4g}")

    def lost(self, trials: list[TrialScore]) -> bool:
        """Is a candidate far behind the best on the rows that it has seen?"""
        if not trials or not any(self.seen(params) == self.folds for params in self.trials):
            return False
        best = self.trials[self.leader()]
        apart = np.concatenate([mine.wrong - other.wrong for mine, other in zip(trials, best, strict=False)])
        return bool(apart.sum() > 3 * np.sqrt((apart**2).sum()))

    def seen(self, params: Hyperparameters) -> int:
        """The number of folds that a candidate was tried on."""
        return len(self.trials[params])

    def comparable(self, among: Callable[[Hyperparameters], bool] | None = None) -> list[Hyperparameters]:
        """Those that were tried on most folds."""
        mine = [s for s in self.trials if among is None or among(s)]
        most = max(map(self.seen, mine), default=0)
        return [s for s in mine if self.seen(s) == most]

    def leader(self, among: Callable[[Hyperparameters], bool] | None = None) -> Hyperparameters:
        """The best of some settings."""
        rivals = self.comparable(among)
        return min(rivals, key=lambda s: self.judged(s, rivals))

    def judged(self, params: Hyperparameters, rivals: list[Hyperparameters]) -> float:
        """Validation score of a candidate; with few rows, averaged with those of the neighbouring costs."""
        if not self.few:
            return _score_of(self.trials[params])
        row = sorted((s for s in rivals if _kind(s) == _kind(params)), key=lambda s: s.C)
        scores = np.array([_score_of(self.trials[s]) for s in row])
        far = np.abs(np.arange(len(row)) - row.index(params))
        return float(
            np.average(
                scores, weights=np.array([1, *NEIGHBOUR_WEIGHTS, 0])[np.minimum(far, len(NEIGHBOUR_WEIGHTS) + 1)]
            )
        )

    def solved(self) -> bool:
        """Is no error left to win?"""
        return any(_mean(self.trials[s]).error == 0 for s in self.comparable())

    def winner(self, starts: list[Hyperparameters]) -> Hyperparameters:
        """The best candidate among those with the same gamma and scales as one of ``starts``."""
        kinds = set(map(_kind, starts))
        rivals = self.comparable(lambda s: _kind(s) in kinds)
        doubt = min((_mean(self.trials[s]) for s in rivals), key=lambda trial: trial.error).doubt if self.few else 0.0
        return min(rivals, key=lambda s: self.judged(s, rivals) + doubt * s.scaled)

    def table(self) -> dict[str, list[Any]]:
        """What was tried, as lists: each candidate with what it had on all folds that it was tried on."""
        means = [_mean(trials) for trials in self.trials.values()]
        return {
            "C": [s.C for s in self.trials],
            "gamma": [s.gamma for s in self.trials],
            "scales": ["learned" if s.scaled else "fixed" for s in self.trials],
            "error": [mean.error for mean in means],
            "loss": [mean.loss for mean in means],
            "folds": [len(trials) for trials in self.trials.values()],
        }


def _kind(params: Hyperparameters) -> tuple[float, bool]:
    return params.gamma, params.scaled


def _mean(trials: list[TrialScore]) -> TrialScore:
    """Of some folds; a fold counts as much as another."""
    count = len(trials)
    error, loss = sum(trial.error for trial in trials) / count, sum(trial.loss for trial in trials) / count
    return TrialScore(error, loss, np.concatenate([trial.wrong for trial in trials]))


def _score_of(trials: list[TrialScore]) -> float:
    """What is to be small."""
    mean = _mean(trials)
    return mean.error + LOSS_WEIGHT * mean.loss


def search(
    dataset: Dataset, spec: TrainingSpec, space: SearchSpace, report: Callable[[str], None] | None = None
) -> SearchResult:
    """The best hyperparameters of a space. The search ends early once a candidate has zero error."""
    few = dataset.size < MANY_ROWS
    rng = np.random.default_rng(0)
    folds = search_folds(dataset, rng)
    with TrialRunner(folds, spec, int(rng.integers(2**31))) as trial:
        return _raced(HyperparameterSearch(trial, space, few, report), space)


def _raced(race: HyperparameterSearch, space: SearchSpace) -> SearchResult:
    few = race.few
    at_once = None if few else 1
    first = [space.initial(gamma, scaled) for scaled in space.scaled for gamma in space.gammas(scaled, few)]
    ahead = first + (_ends(space, first) if race.trial.threads > len(first) else [])
    race.trial.expect((params, None, fold) for fold in range(at_once or race.folds) for params in ahead)
    for params in first:
        if not race.solved():
            race.run(params, folds=at_once)
    if space.gamma is None:
        _further_widths(race, space, at_once)
    best = [start for scaled in space.scaled for start in _best_widths(race, scaled)]
    if space.C is None:
        leading, following = _in_turn(race, best)
        for some in (leading, following):
            _ahead(race, some, best, at_once)
            if some is following and following and race.trial.threads > 2 * len(some):  # others would have no work
                _looks_ahead(race, [_row(race, start) for start in leading])
            for start in some:
                _all_costs(race, start, _costs(race, start, best), at_once)
    if not few:
        rows = sorted((_row(race, start) for start in best), key=lambda row: _score(race, row))[:N_GAMMAS_CONTINUED]
        _looks_ahead(race, rows)
        for row in rows:
            _second_look(race, row)
    winner = race.winner(best)
    learned = [trial.learned for trial in race.trials[winner] if trial.learned is not None]
    return SearchResult(winner, race.table(), race.trial.folds, learned)


def _in_turn(
    race: HyperparameterSearch, best: list[Hyperparameters]
) -> tuple[list[Hyperparameters], list[Hyperparameters]]:
    """Where rows are many, the costs of a second width depend on those of the first one of its kind."""
    if race.few:
        return best, []
    first = [next(other for other in best if other.scaled == s.scaled) == s for s in best]
    leading, following = ([s for s, leads in zip(best, first, strict=True) if leads == turn] for turn in (True, False))
    return leading, following


def _ahead(
    race: HyperparameterSearch, some: list[Hyperparameters], best: list[Hyperparameters], folds: int | None
) -> None:
    """All costs that some widths are to be tried at, but for those that follow from others."""
    if race.solved():
        return
    chains = []
    for fold in range(folds or race.folds):
        for start in sorted(some, key=lambda s: not s.scaled):  # those that take longest come first
            costs = _costs(race, start, best)
            for way in ([C for C in costs if C > start.C], [C for C in reversed(costs) if C < start.C]):
                row = [start, *(replace(start, C=C) for C in way)]
                chains.append([(params, near, fold) for near, params in pairwise(row)])
    # A trial waits for the one before it in its chain: chains take turns, so that few have to.
    for links in zip_longest(*chains):
        race.trial.expect(filter(None, links))


def _looks_ahead(race: HyperparameterSearch, rows: list[list[Hyperparameters]]) -> None:
    """What second looks ask for, as long as nothing is given up."""
    looks = [(fold, *_looked_at(race, row)) for fold in range(1, race.folds) for row in rows]
    race.trial.expect((best, None, fold) for fold, best, _ in looks)
    race.trial.expect((params, best, fold) for fold, best, beside in looks for params in beside)


def _best_widths(race: HyperparameterSearch, scaled: bool) -> list[Hyperparameters]:
    mine = race.comparable(lambda s: s.scaled == scaled)
    return sorted(mine, key=lambda s: _score_of(race.trials[s]))[:N_GAMMAS_CONTINUED]


def _further_widths(race: HyperparameterSearch, space: SearchSpace, folds: int | None) -> None:
    """Widths beyond the range, as long as the best one is at its end."""
    while not race.solved():
        fixed = [s for s in race.trials if not s.scaled]
        if not fixed:
            break
        best = _best_widths(race, False)[0].gamma
        further = [s for s in _ends(space, fixed) if s.gamma in (best / 3, best * 3)]
        if not further:
            break
        race.run(further[0], folds=folds)


def _ends(space: SearchSpace, tried: list[Hyperparameters]) -> list[Hyperparameters]:
    """The next widths below and above those that were tried, where nothing is to be scaled."""
    gammas = sorted(s.gamma for s in tried if not s.scaled)
    further = [gammas[0] / 3, gammas[-1] * 3] if gammas and space.gamma is None else []
    return [
        space.initial(gamma, False) for gamma in further if SMALLEST_GAMMA <= gamma / space.gamma_unit <= LARGEST_GAMMA
    ]


def _costs(race: HyperparameterSearch, start: Hyperparameters, best: list[Hyperparameters]) -> list[float]:
    """Costs for a width: where rows are few, moderate ones if scales are learned; where they are many, a second width
    of a kind is tried near the best cost of the first."""
    first = next(other for other in best if other.scaled == start.scaled)
    below = above = np.inf
    middle = start.C
    if race.few:
        below, above = COST_RANGE_FEW_ROWS[race.space.is_regression] if start.scaled else (np.inf, np.inf)
    elif start != first:
        middle, below, above = race.leader(_row(race, first).__contains__).C, 4.0, 4.0
    return [C for C in race.space.costs if middle / below < C < middle * above]


def _all_costs(race: HyperparameterSearch, start: Hyperparameters, costs: Sequence[float], folds: int | None) -> None:
    """These costs, upwards and downwards, each beginning where the last one ended; and more of them as long as the best
    is the highest of all."""
    for way in ([C for C in costs if C > start.C], [C for C in reversed(costs) if C < start.C]):
        near = start
        for C in way:
            if race.solved():
                return
            race.run(replace(start, C=C), near, folds)
            near = replace(start, C=C)
    while (not race.few or race.space.is_regression) and not race.solved():
        row = _row(race, start)
        # Where rows are few, next costs are judged together, and the highest has the fewest.
        top = min(row, key=lambda s: _score_of(race.trials[s])) if race.few else race.leader(row.__contains__)
        if max(s.C for s in row) > top.C or MAX_COST[race.space.is_regression] * race.space.cost_factor < 3 * top.C:
            break
        race.run(replace(top, C=3 * top.C), top, folds)


def _row(race: HyperparameterSearch, start: Hyperparameters) -> list[Hyperparameters]:
    """All that differ in the cost alone, in its order."""
    return sorted((s for s in race.trials if _kind(s) == _kind(start)), key=lambda s: s.C)


def _score(race: HyperparameterSearch, row: list[Hyperparameters]) -> float:
    return _score_of(race.trials[race.leader(row.__contains__)])


def _second_look(race: HyperparameterSearch, row: list[Hyperparameters]) -> None:
    """The best cost of a row and the next ones on the other folds."""
    best, beside = _looked_at(race, row)
    race.run(best)
    for params in beside:
        race.run(params, best)


def _looked_at(race: HyperparameterSearch, row: list[Hyperparameters]) -> tuple[Hyperparameters, list[Hyperparameters]]:
    best = race.leader(row.__contains__)
    at = row.index(best)
    return best, [*row[max(at - 1, 0) : at], *row[at + 1 : at + 2]]


def search_folds(dataset: Dataset, rng: np.random.Generator) -> list[Fold]:
    """Stratified: three splits of 70 to 30; where rows are few three folds, or five.

    Copies of a row are in the same part, whatever their labels.
    """
    some = dataset.sample(MAX_TRIAL_ROWS, rng)
    if Groups.of(dataset).known_well:
        return [Fold(some, some)]
    groups = Groups.of(some)
    count, each = (5, 1) if groups.size < 300 else (3, 1) if groups.size < MANY_ROWS else (10, 3)
    place = groups.places(count, rng)
    folds = held_out(some, (place // each == f for f in range(count // each)))
    # Where no fold has all classes, errors are those on the training rows.
    return [Fold(*fold) for fold in folds or [(some, some)]]
