"""Settings by validation: cost, width of the kernel, scales of the inputs.

First all widths, with scales fixed and learned, each at the cost that suits it: a wide kernel is nearly linear, its
weights are small, and only a large cost lets it show what it can. Then the two best of either over the costs; and,
where rows are many, a second look at the best costs of the best two, on other rows. Trial runs are short, and start
where the run at the next cost ended.
The choice depends on the rows alone, not on their order, the random state or the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..data import Task, outputs
from ..formulation import Array
from ..parts import bases, kernels
from .folds import Groups, held_out
from .learning import LearnedVectors
from .training import Recipe, Setting

COSTS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
FIRST = 0.3  # the cost at which widths are compared, times gamma in units of gamma="scale"
MOST_COST = 1e4
WIDTHS = (0.03, 0.1, 0.3, 1.0, 3.0)  # gamma, in units of gamma="scale"
LEAST_WIDTH, MOST_WIDTH = 0.003, 30.0
SCALED_WIDTHS = (0.3, 1.0)  # where scales start: they can grow, and every row is to see vectors
FEW_SCALED_WIDTHS = (0.3,)
ROWS = 2  # widths of either kind that are tried at several costs
MANY = 1000  # rows, from which on no caution is needed
NEXT = (0.7, 0.3)  # what the next costs count, and those after them, where rows are few: a range of costs is less noise
LOSS = 0.5  # what the loss counts beside the error
MOST_ROWS = 5000
ITERATIONS = 20  # of a trial run
WARM = 10  # of one that starts where another ended
SCALED = 3  # times as many where scales are learned, too: they overfit late, and a run must show it


@dataclass(frozen=True)
class Space:
    """What is given, and what may be chosen (None)."""

    cost: float | None
    gamma: float | None
    scaled: Sequence[bool]
    unit: float = 1.0  # gamma="scale"

    @property
    def settled(self) -> bool:
        """Is everything given?"""
        return self.cost is not None and self.gamma is not None and len(self.scaled) == 1

    def only(self) -> Setting:
        """The setting, if everything is given."""
        assert self.cost is not None
        assert self.gamma is not None
        return Setting(self.cost, self.gamma, self.scaled[0])

    def gammas(self, scaled: bool, few: bool) -> list[float]:
        """Widths to try, the likeliest first: others are then given up early."""
        if self.gamma is not None:
            return [self.gamma]
        usual = WIDTHS if not scaled else FEW_SCALED_WIDTHS if few else SCALED_WIDTHS
        return [width * self.unit for width in sorted(usual, key=lambda width: (abs(np.log(width)), width))]

    def first(self, gamma: float, scaled: bool) -> Setting:
        """The setting that speaks for a width: with a cost in inverse proportion, unless one is given."""
        wanted = FIRST * self.unit / gamma
        cost = min(COSTS, key=lambda C: abs(np.log(C / wanted))) if self.cost is None else self.cost
        return Setting(cost, gamma, scaled)


def space_of(task: Task, C: float | str, gamma: float | str, scales: str, recipe: Recipe) -> Space:
    """What is left open: numbers and words as an estimator has them."""
    cost = None if isinstance(C, str) else float(C)
    # With more inputs than rows, scales would fit anything.
    may_scale = [False, True] if recipe.basis.learns and task.X.shape[1] <= task.size else [False]
    scaled = {"fixed": [False], "learned": [True], "search": may_scale}[scales]
    if not kernels.takes_gamma(task.kernel):
        return Space(cost, 1.0, scaled)
    unit = kernels.scale_gamma("scale", task.X, task.counts)
    return Space(cost, None if gamma == "search" else kernels.scale_gamma(gamma, task.X, task.counts), scaled, unit)


@dataclass
class Fold:
    """Rows to train on, rows to validate on, where learning starts, and what candidates have learned here."""

    train: Task
    test: Task
    start: Array | None = None
    learned: dict[Setting, LearnedVectors] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """Mean error and mean loss on the rows held out; of each of these rows its weight where it was wrong, else 0."""

    error: float
    loss: float
    wrong: Array

    @property
    def score(self) -> float:
        """What is to be small."""
        return self.error + LOSS * self.loss

    @property
    def doubt(self) -> float:
        """The standard error of the error, as errors of different rows have nothing to do with each other."""
        return self.error * float(np.sqrt((self.wrong**2).sum())) / float(self.wrong.sum()) if self.error else 0.0


@dataclass(frozen=True)
class Finding:
    """The best setting, what was tried (lists), and the folds with what was learned on them."""

    setting: Setting
    tried: dict[str, list[Any]]
    folds: list[Fold]

    @classmethod
    def given(cls, space: Space) -> Finding:
        """The only setting of a space: nothing is to be found."""
        return cls(space.only(), {}, [])


class Race:
    """Trials on one fold after the other, and the setting that they favour.

    Where rows are few, next costs are judged together, and learned scales have to be better than fixed ones by more
    than the noise.
    """

    def __init__(self, folds: list[Fold], few: bool, recipe: Recipe, seed: int, report: Callable[[str], None] | None):
        self.folds, self.few, self.recipe, self.seed, self.report = folds, few, recipe, seed, report
        self.trials: dict[Setting, list[Trial]] = {}

    def run(self, setting: Setting, near: Setting | None = None, folds: int | None = None) -> None:
        """One candidate on the first folds (None: all), while it can still win."""
        trials = self.trials.setdefault(setting, [])
        for fold in self.folds[len(trials) : folds]:
            if self.lost(trials):
                break
            trials.append(_validate(setting, near, fold, self.recipe, self.seed))
        if self.report is not None:
            self.report(f"{len(self.trials)} candidates, error {_mean(self.trials[self.leader()]).error:.4g}")

    def lost(self, trials: list[Trial]) -> bool:
        """Is a candidate far behind the best on the rows that it has seen?"""
        if not trials or not any(self.seen(trial) == len(self.folds) for trial in self.trials):
            return False
        best = self.trials[self.leader()]
        apart = np.concatenate([mine.wrong - other.wrong for mine, other in zip(trials, best, strict=False)])
        return bool(apart.sum() > 3 * np.sqrt((apart**2).sum()))

    def seen(self, setting: Setting) -> int:
        """On how many folds a setting was tried."""
        return len(self.trials[setting])

    def comparable(self, among: Callable[[Setting], bool] | None = None) -> list[Setting]:
        """Those that were tried on most folds."""
        mine = [s for s in self.trials if among is None or among(s)]
        most = max(map(self.seen, mine), default=0)
        return [s for s in mine if self.seen(s) == most]

    def leader(self, among: Callable[[Setting], bool] | None = None) -> Setting:
        """The best of some settings."""
        rivals = self.comparable(among)
        return min(rivals, key=lambda s: self.judged(s, rivals))

    def judged(self, setting: Setting, rivals: list[Setting]) -> float:
        """The score of a setting; where rows are few, together with those of the next costs."""
        if not self.few:
            return _mean(self.trials[setting]).score
        row = sorted((s for s in rivals if _kind(s) == _kind(setting)), key=lambda s: s.C)
        scores = np.array([_mean(self.trials[s]).score for s in row])
        far = np.abs(np.arange(len(row)) - row.index(setting))
        return float(np.average(scores, weights=np.array([1, *NEXT, 0])[np.minimum(far, len(NEXT) + 1)]))

    def solved(self) -> bool:
        """Is no error left to win?"""
        return any(_mean(self.trials[s]).error == 0 for s in self.comparable())

    def winner(self, starts: list[Setting]) -> Setting:
        """The best setting of the rows that start here: those were tried at several costs."""
        kinds = set(map(_kind, starts))
        rivals = self.comparable(lambda s: _kind(s) in kinds)
        doubt = min((_mean(self.trials[s]) for s in rivals), key=lambda trial: trial.error).doubt if self.few else 0.0
        return min(rivals, key=lambda s: self.judged(s, rivals) + doubt * s.scaled)

    def results(self) -> dict[str, list[Any]]:
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


def _kind(setting: Setting) -> tuple[float, bool]:
    return setting.gamma, setting.scaled


def _mean(trials: list[Trial]) -> Trial:
    """Of some folds; a fold counts as much as another."""
    count = len(trials)
    error, loss = sum(trial.error for trial in trials) / count, sum(trial.loss for trial in trials) / count
    return Trial(error, loss, np.concatenate([trial.wrong for trial in trials]))


def search(task: Task, recipe: Recipe, space: Space, report: Callable[[str], None] | None = None) -> Finding:
    """The best setting of a space. It ends where no error is left to win."""
    few = task.size < MANY
    rng = np.random.default_rng(0)
    folds = split(task, rng)
    race = Race(folds, few, recipe, int(rng.integers(2**31)), report)
    at_once = None if few else 1
    for scaled in space.scaled:
        for gamma in space.gammas(scaled, few):
            if not race.solved():
                race.run(space.first(gamma, scaled), folds=at_once)
    if space.gamma is None:
        _further_widths(race, space, at_once)
    best = [start for scaled in space.scaled for start in _best_widths(race, scaled)]
    if space.cost is None:
        for start in best:
            _all_costs(race, start, _costs(race, start, best), at_once)
    if not few:
        for row in sorted((_row(race, start) for start in best), key=lambda row: _score(race, row))[:ROWS]:
            _second_look(race, row)
    return Finding(race.winner(best), race.results(), folds)


def _best_widths(race: Race, scaled: bool) -> list[Setting]:
    mine = race.comparable(lambda s: s.scaled == scaled)
    return sorted(mine, key=lambda s: _mean(race.trials[s]).score)[:ROWS]


def _further_widths(race: Race, space: Space, folds: int | None) -> None:
    """Widths beyond the range, as long as the best one is at its end."""
    while not race.solved():
        fixed = [s for s in race.trials if not s.scaled]
        if not fixed:
            break
        gammas = sorted(s.gamma for s in fixed)
        best = _best_widths(race, False)[0].gamma
        further = best / 3 if best == gammas[0] else best * 3
        if gammas[0] < best < gammas[-1] or not LEAST_WIDTH <= further / space.unit <= MOST_WIDTH:
            break
        race.run(space.first(further, False), folds=folds)


def _costs(race: Race, start: Setting, best: list[Setting]) -> list[float]:
    """Costs for a width: where rows are few, moderate ones if scales are learned; where they are many, a second width
    of a kind is tried near the best cost of the first."""
    first = next(other for other in best if other.scaled == start.scaled)
    if race.few:
        middle, reach = start.C, 12.0 if start.scaled else np.inf
    else:
        middle, reach = race.leader(_row(race, first).__contains__).C, np.inf if start == first else 4.0
    return [C for C in COSTS if middle / reach < C < middle * reach]


def _all_costs(race: Race, start: Setting, costs: Sequence[float], folds: int | None) -> None:
    """These costs, upwards and downwards, each beginning where the last one ended; and more of them as long as the best
    is the highest of all."""
    for way in ([C for C in costs if C > start.C], [C for C in reversed(costs) if C < start.C]):
        near = start
        for C in way:
            if race.solved():
                return
            race.run(replace(start, C=C), near, folds)
            near = replace(start, C=C)
    while not race.few and not race.solved():
        top = race.leader(_row(race, start).__contains__)
        if max(s.C for s in _row(race, start)) > top.C or 3 * top.C > MOST_COST:
            break
        race.run(replace(top, C=3 * top.C), top, folds)


def _row(race: Race, start: Setting) -> list[Setting]:
    """All that differ in the cost alone, in its order."""
    return sorted((s for s in race.trials if _kind(s) == _kind(start)), key=lambda s: s.C)


def _score(race: Race, row: list[Setting]) -> float:
    return _mean(race.trials[race.leader(row.__contains__)]).score


def _second_look(race: Race, row: list[Setting]) -> None:
    """The best cost of a row and the next ones on the other folds."""
    best = race.leader(row.__contains__)
    at = row.index(best)
    race.run(best)
    for beside in (*row[max(at - 1, 0) : at], *row[at + 1 : at + 2]):
        race.run(beside, best)


def split(task: Task, rng: np.random.Generator) -> list[Fold]:
    """Stratified: three splits of 70 to 30; where rows are few three folds, or five.

    Copies of a row are in the same part, whatever their labels.
    """
    some = task.sample(MOST_ROWS, rng)
    if Groups.of(task).known_well:
        return [Fold(some, some)]
    groups = Groups.of(some)
    count, each = (5, 1) if groups.size < 300 else (3, 1) if groups.size < MANY else (10, 3)
    place = groups.places(count, rng)
    folds = held_out(some, (place // each == f for f in range(count // each)))
    # Where no fold has all classes, errors are those on the training rows.
    return [Fold(*fold) for fold in folds or [(some, some)]]


def _validate(setting: Setting, near: Setting | None, fold: Fold, recipe: Recipe, seed: int) -> Trial:
    """One candidate on the rows held out of a fold."""
    train, test = fold.train, fold.test
    rest = outputs(train.n_classes, "ovr")
    # One machine for each class is enough to tell settings apart, and cheaper than one for each pair.
    candidates = replace(recipe.candidates(train, setting, np.random.default_rng(seed)), taught=None)
    if recipe.basis.learns:
        if fold.start is None:
            fold.start = bases.dense(bases.resolve(recipe.basis.init, "init").choose(candidates, recipe.count).vectors)
        before = None if near is None else fold.learned.get(near)
        candidates = replace(candidates, start=before or fold.start, watch=None)
        choice = _short(recipe.basis, setting.scaled, before is not None).choose(candidates, recipe.count)
        fold.learned[setting] = choice.learned
        coef, bias = choice.learned.coef, choice.learned.bias
    else:
        choice = recipe.basis.choose(candidates, recipe.count)
        fitted = replace(recipe, tol=1e-3).coefficients(train, choice, candidates, rest)
        coef, bias = fitted.coef, fitted.bias
    kernel = choice.kernel or candidates.kernel
    F = kernel(test.X, choice.vectors, threads=train.threads) @ coef.T + bias
    wrong = (F[:, 0] > 0) != (test.codes == 1) if test.n_classes == 2 else F.argmax(axis=1) != test.codes
    share = test.weights / test.weights.sum()
    loss = recipe.loss.value(F, test.labels(rest), np.repeat(share[:, None], len(rest), axis=1))
    return Trial(float(share @ wrong), float(np.mean(loss)), share * wrong)


def _short(basis: Any, scaled: bool, warm: bool) -> Any:
    """A trial run."""
    steps = (WARM if warm else ITERATIONS) * (SCALED if scaled else 1)
    most = steps if isinstance(basis.iterations, str) else min(steps, int(basis.iterations))
    return replace(basis, iterations=most, rows=MOST_ROWS)
