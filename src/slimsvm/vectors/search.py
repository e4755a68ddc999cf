"""Settings by a quick validation: cost, width of the kernel, scales of the inputs.

A few candidates, short learning runs that start where a neighbour ended, errors on rows held out: folds where rows are
few, else one split. The same seed gives the same choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..formulation import Array
from ..parts.bases import dense, stratified
from ..parts.losses import SquaredHinge
from .learning import Learned
from .training import Recipe, TrainingRows, fit_coefficients, one_vs_rest, place

COSTS = (0.3, 3.0, 30.0)
WIDTHS = (0.03, 0.1, 0.3, 1.0, 3.0)  # gamma, in units of gamma="scale"
MOST_ROWS = 5000
ITERATIONS = 20


@dataclass(frozen=True)
class Setting:
    """One candidate: cost, gamma, and whether the scales of the inputs are learned."""

    C: float
    gamma: Any
    scaled: bool


@dataclass(frozen=True)
class Space:
    """What may be chosen."""

    costs: Sequence[float]
    gammas: Sequence[Any]
    scaled: Sequence[bool]
    unit: float | None = None  # gamma="scale", where gamma is searched

    @property
    def size(self) -> int:
        return len(self.costs) * len(self.gammas) * len(self.scaled)

    def first(self) -> Setting:
        """The only setting of a space of one."""
        return Setting(self.costs[0], self.gammas[0], self.scaled[0])


@dataclass
class Fold:
    """Rows to train on, rows to validate on, where learning starts, and what earlier candidates have learned here."""

    train: TrainingRows
    test: TrainingRows
    start: Array | None = None
    learned: dict[Setting | None, Learned] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """Mean error and mean squared slack on the rows held out."""

    error: float
    loss: float

    @property
    def score(self) -> float:
        """The error; among equals the loss decides."""
        return self.error + 1e-3 * self.loss


def search(
    space: Space,
    kernel_of: Callable[[Any], Any],
    rows: TrainingRows,
    recipe: Recipe,
    rng: np.random.Generator,
    report: Callable[[str], None] | None = None,
) -> tuple[Setting, dict[str, list[Any]]]:
    """The best setting, and what was tried: gamma at the least cost, then higher costs, then the scales of inputs."""
    folds = split(rows, rng)
    seed = int(rng.integers(2**31))
    trials: dict[Setting, Trial] = {}

    def run(setting: Setting, near: Setting | None = None) -> None:
        if setting not in trials:
            # Scales overfit late: a run that is too short would not show it.
            steps = recipe.iterations * (3 if setting.scaled else 1)
            mine = replace(recipe, iterations=steps)
            outcomes = [_validate(setting, near, fold, kernel_of(setting.gamma), mine, seed) for fold in folds]
            trials[setting] = Trial(*(float(v) for v in np.mean(outcomes, axis=0)))
            if report is not None:
                report(f"{len(trials)} candidates, error {min(t.error for t in trials.values()):.4g}")

    def best(many: Iterable[Setting]) -> Setting:
        return min(many, key=lambda s: trials[s].score)

    for gamma in space.gammas:
        run(Setting(space.costs[0], gamma, space.scaled[0]))
    gamma = best(trials).gamma
    for scaled in space.scaled:
        # Scales can grow: they start no narrower than gamma="scale", where every row still sees vectors.
        if scaled and not space.scaled[0] and space.unit is not None:
            gamma = min(gamma, max(g for g in space.gammas if g <= space.unit * 1.001))
        near = None
        for cost in space.costs:
            setting = Setting(cost, gamma, scaled)
            run(setting, replace(setting, scaled=False) if scaled else near)
            near = setting
    results: dict[str, list[Any]] = {
        "C": [s.C for s in trials],
        "gamma": [s.gamma for s in trials],
        "scales": ["learned" if s.scaled else "fixed" for s in trials],
        "error": [t.error for t in trials.values()],
        "loss": [t.loss for t in trials.values()],
    }
    return _simplest(trials, sum(len(fold.test.codes) for fold in folds)), results


def _simplest(trials: dict[Setting, Trial], rows: int) -> Setting:
    """The simplest setting whose error is within half a standard error of the best: what is less is noise.

    Fixed scales are simpler than learned ones, a small cost is simpler than a large one.
    """
    top = min(trials.values(), key=lambda t: t.score).error
    noise = 0.5 * np.sqrt(max(top * (1 - top), 1e-4) / rows)
    good = [s for s in trials if trials[s].error <= top + noise]
    return min(good, key=lambda s: (s.scaled, s.C, trials[s].score))


def split(rows: TrainingRows, rng: np.random.Generator) -> list[Fold]:
    """Stratified: one split of 70 to 30, or folds where rows are few (twice over where they are very few)."""
    some = stratified(rows.codes, MOST_ROWS, rng)
    n = len(some)
    count, held_out, repeats = (
        (5, 1, 2) if n < 300 else (5, 1, 1) if n < 1000 else (3, 1, 1) if n < 3000 else (10, 3, 1)
    )
    folds = []
    for _ in range(repeats):
        order = some[rng.permutation(n)]
        order = order[np.argsort(rows.codes[order], kind="stable")]
        place = np.arange(n) % count
        parts = [place < held_out] if held_out > 1 else [place == f for f in range(count)]
        folds += [Fold(rows.take(order[~test]), rows.take(order[test])) for test in parts if test.any()]
    # A class of a single row is in one part only; where nothing else is left, the training rows judge.
    whole = [fold for fold in folds if len(np.unique(fold.train.codes)) == rows.n_classes]
    return whole or [Fold(rows.take(some), rows.take(some))]


def _validate(
    setting: Setting, near: Setting | None, fold: Fold, kernel: Any, recipe: Recipe, seed: int
) -> tuple[float, float]:
    """Error and mean squared slack of one candidate on the rows held out."""
    train, test = fold.train, fold.test
    machines = one_vs_rest(train.codes, train.n_classes, setting.C * train.weights)
    problem = train.problem(kernel, machines)
    rng = np.random.default_rng(seed)
    if recipe.loss is not None and fold.start is None:
        fold.start = dense(recipe.basis.choose(problem, recipe.count, rng).vectors)
    placed = place(recipe, problem, rng, setting.scaled, fold.learned.get(near) or fold.start)
    if placed.learned is not None:
        fold.learned[setting] = placed.learned
        coef, bias = placed.learned.coef, placed.learned.bias
    else:
        norm = recipe.norm(kernel, train.X)
        fitted = fit_coefficients(kernel, train.X, placed.choice.vectors, [machines], SquaredHinge(), norm, tol=1e-3)
        coef, bias = fitted.coef, fitted.bias
    F = placed.kernel(test.X, placed.choice.vectors, threads=train.threads) @ coef.T + bias
    Y = one_vs_rest(test.codes, test.n_classes, test.weights).Y
    wrong = (F[:, 0] > 0) != (test.codes == 1) if test.n_classes == 2 else F.argmax(axis=1) != test.codes
    slack = (np.maximum(1 - Y * F, 0) ** 2).mean(axis=1)
    return float(np.average(wrong, weights=test.weights)), float(np.average(slack, weights=test.weights))
