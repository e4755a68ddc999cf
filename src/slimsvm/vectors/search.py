"""Settings by a quick validation: cost, width of the kernel, scales of the inputs.

A few candidates, short learning runs that start where a neighbour ended, errors on rows held out: folds where rows are
few, else one split. The same seed gives the same choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..data import Task, outputs
from ..formulation import Array
from ..parts import bases, kernels
from .learning import LearnedVectors
from .training import Recipe, Setting

COSTS = (0.3, 3.0, 30.0)
WIDTHS = (0.03, 0.1, 0.3, 1.0, 3.0)  # gamma, in units of gamma="scale"
MOST_ROWS = 5000
ITERATIONS = 20
COPIES = 10  # of each row, from which on the rows themselves are good judges


@dataclass(frozen=True)
class Space:
    """What may be chosen."""

    costs: Sequence[float]
    gammas: Sequence[float]
    scaled: Sequence[bool]
    unit: float | None = None  # gamma="scale", where gamma is searched

    @property
    def size(self) -> int:
        return len(self.costs) * len(self.gammas) * len(self.scaled)

    def first(self) -> Setting:
        """The only setting of a space of one."""
        return Setting(self.costs[0], self.gammas[0], self.scaled[0])


def space_of(task: Task, C: float | str, gamma: float | str, scales: str, recipe: Recipe) -> Space:
    """What is left open: numbers and words as an estimator has them."""
    takes_gamma = kernels.takes_gamma(task.kernel)
    costs = COSTS if isinstance(C, str) else [float(C)]
    unit = kernels.scale_gamma("scale", task.X, task.counts) if takes_gamma else 1.0
    if not takes_gamma:
        gammas = [1.0]
    elif gamma == "search":
        gammas = [unit * factor for factor in WIDTHS]
    else:
        gammas = [kernels.scale_gamma(gamma, task.X, task.counts)]
    # With more inputs than rows, scales would fit anything.
    may_scale = [False, True] if recipe.basis.learns and task.X.shape[1] <= task.size else [False]
    scaled = {"fixed": [False], "learned": [True], "search": may_scale}[scales]
    return Space(costs, gammas, scaled, unit if len(gammas) > 1 else None)


@dataclass
class Fold:
    """Rows to train on, rows to validate on, where learning starts, and what earlier candidates have learned here."""

    train: Task
    test: Task
    start: Array | None = None
    learned: dict[Setting | None, LearnedVectors] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """Mean error and mean loss on the rows held out. A trial that could not win any more ended before all folds were
    run: its error is then a lower bound."""

    error: float
    loss: float
    whole: bool = True

    @property
    def score(self) -> float:
        """The error; among equals the loss decides."""
        return self.error + 1e-3 * self.loss


class Race:
    """Trials, one after the other, and the setting that they favour.

    The winner is the simplest setting whose error is within half a standard error of the best: what is less is noise.
    Fixed scales are simpler than learned ones, a small cost is simpler than a large one.
    """

    def __init__(self, folds: list[Fold], recipe: Recipe, seed: int, report: Callable[[str], None] | None):
        self.folds, self.recipe, self.seed, self.report = folds, recipe, seed, report
        self.rows = sum(fold.test.size for fold in folds)
        self.trials: dict[Setting, Trial] = {}

    def run(self, setting: Setting, near: Setting | None = None) -> None:
        """One candidate, fold by fold, while it can still win."""
        if setting in self.trials:
            return
        error = loss = 0.0
        count = len(self.folds)
        for k, fold in enumerate(self.folds):
            mine = _validate(setting, near, fold, self.recipe, self.seed)
            error, loss = error + mine[0] / count, loss + mine[1] / count
            whole = k + 1 == count
            if not whole and self.lost(setting, error):
                break
        self.trials[setting] = Trial(error, loss if whole else np.nan, whole)
        if self.report is not None:
            self.report(f"{len(self.trials)} candidates, error {self.best().error:.4g}")

    def lost(self, setting: Setting, error: float) -> bool:
        """Can a setting with at least this error not be chosen any more?"""
        mine = _simplicity(setting)
        known = [(_simplicity(other), trial) for other, trial in self.trials.items() if trial.whole]
        beside = any(error > trial.score for other, trial in known if other == mine)
        return beside or any(error + self.noise(error) > trial.error for other, trial in known if other < mine)

    def noise(self, error: float) -> float:
        """Half a standard error."""
        return 0.5 * float(np.sqrt(max(error * (1 - error), 1e-4) / self.rows))

    def best(self) -> Trial:
        """The trial of the least error."""
        return min((trial for trial in self.trials.values() if trial.whole), key=lambda trial: trial.score)

    def leader(self) -> Setting:
        """The setting of the least error."""
        return next(setting for setting, trial in self.trials.items() if trial is self.best())

    def winner(self) -> Setting:
        """The simplest of the settings that are as good as the best."""
        top = self.best().error
        good = [s for s, trial in self.trials.items() if trial.whole and trial.error <= top + self.noise(top)]
        return min(good, key=lambda s: (*_simplicity(s), self.trials[s].score))

    def results(self) -> dict[str, list[Any]]:
        """What was tried, as lists; NaN for trials that ended early."""
        return {
            "C": [s.C for s in self.trials],
            "gamma": [s.gamma for s in self.trials],
            "scales": ["learned" if s.scaled else "fixed" for s in self.trials],
            "error": [trial.error if trial.whole else np.nan for trial in self.trials.values()],
            "loss": [trial.loss for trial in self.trials.values()],
        }


def _simplicity(setting: Setting) -> tuple[bool, float]:
    return setting.scaled, setting.C


def search(
    task: Task,
    recipe: Recipe,
    space: Space,
    rng: np.random.Generator,
    report: Callable[[str], None] | None = None,
) -> tuple[Setting, dict[str, list[Any]]]:
    """The best setting, and what was tried: gamma at the least cost, then higher costs, then the scales of inputs.

    It ends where no error is left to win.
    """
    folds = split(task, rng)
    race = Race(folds, recipe, int(rng.integers(2**31)), report)
    # The likeliest first: others are then given up early.
    for gamma in sorted(space.gammas, key=lambda g: abs(np.log(g / (space.unit or g)))):
        race.run(Setting(space.costs[0], gamma, space.scaled[0]))
    gamma = race.leader().gamma
    for scaled in space.scaled:
        # Scales can grow: they start no narrower than gamma="scale", where every row still sees vectors.
        if scaled and not space.scaled[0] and space.unit is not None:
            gamma = min(gamma, max(g for g in space.gammas if g <= space.unit * 1.001))
        near = None
        for cost in space.costs:
            if race.best().error == 0:
                break
            setting = Setting(cost, gamma, scaled)
            race.run(setting, replace(setting, scaled=False) if scaled else near)
            near = setting
    return race.winner(), race.results()


def split(task: Task, rng: np.random.Generator) -> list[Fold]:
    """Stratified: one split of 70 to 30, or folds where rows are few (twice over where they are very few).

    Copies of a row are in the same part, whatever their labels.
    """
    some = task.sample(MOST_ROWS, rng)
    if COPIES * len(np.unique(task.keys)) <= task.counts.sum():
        # Rows with many copies are known well: leaving all copies of one out would test something else.
        return [Fold(some, some)]
    _, first, group = np.unique(some.keys, return_index=True, return_inverse=True)
    n = len(first)
    count, held_out, repeats = (5, 1, 2) if n < 300 else (3, 1, 1) if n < 3000 else (10, 3, 1)
    folds = []
    for _ in range(repeats):
        order = rng.permutation(n)
        order = order[np.argsort(some.codes[first[order]], kind="stable")]
        place = np.empty(n, dtype=int)
        place[order] = np.arange(n) % count
        place = place[group]
        parts = [place < held_out] if held_out > 1 else [place == f for f in range(count)]
        folds += [Fold(some.take(~test), some.take(test)) for test in parts if test.any()]
    # A class of a single row is in one part only; where no fold has all classes, errors are those on the training rows.
    whole = [fold for fold in folds if len(np.unique(fold.train.codes)) == task.n_classes]
    return whole or [Fold(some, some)]


def _validate(setting: Setting, near: Setting | None, fold: Fold, recipe: Recipe, seed: int) -> tuple[float, float]:
    """Error and mean loss of one candidate on the rows held out."""
    train, test = fold.train, fold.test
    rest = outputs(train.n_classes, "ovr")
    candidates = recipe.candidates(train, setting, np.random.default_rng(seed))
    if recipe.basis.learns:
        if fold.start is None:
            fold.start = bases.dense(bases.resolve(recipe.basis.init, "init").choose(candidates, recipe.count).vectors)
        candidates = replace(candidates, start=fold.learned.get(near) or fold.start, watch=None)
        choice = _short(recipe.basis, setting.scaled).choose(candidates, recipe.count)
        fold.learned[setting] = choice.learned
        coef, bias = choice.learned.coef, choice.learned.bias
    else:
        choice = recipe.basis.choose(candidates, recipe.count)
        fitted = replace(recipe, tol=1e-3).coefficients(train, choice, candidates, rest)
        coef, bias = fitted.coef, fitted.bias
    kernel = choice.kernel or candidates.kernel
    F = kernel(test.X, choice.vectors, threads=train.threads) @ coef.T + bias
    wrong = (F[:, 0] > 0) != (test.codes == 1) if test.n_classes == 2 else F.argmax(axis=1) != test.codes
    weights = test.weights
    share = np.repeat(weights[:, None] / weights.sum(), len(rest), axis=1)
    loss = recipe.loss.value(F, test.labels(rest), share)
    return float(np.average(wrong, weights=weights)), float(np.mean(loss))


def _short(basis: Any, scaled: bool) -> Any:
    """A trial run. Scales overfit late: a run that is too short would not show it."""
    steps = ITERATIONS * (3 if scaled else 1)
    most = steps if isinstance(basis.iterations, str) else min(steps, int(basis.iterations))
    return replace(basis, iterations=most, rows=MOST_ROWS)
