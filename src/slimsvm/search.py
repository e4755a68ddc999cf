"""Settings by a quick validation: cost, width of the kernel, scales of the inputs.

A few candidates, short learning runs that start where a neighbour ended, errors on rows held out: folds where rows are
few, else one split. The same seed gives the same choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .bases import stratified
from .learning import Learned
from .losses import SquaredHinge
from .training import Recipe, TrainingRows, fit_coefficients, one_vs_rest, place

COSTS = (0.3, 3.0, 30.0)
WIDTHS = (0.1, 0.3, 1.0, 3.0)  # gamma, in units of gamma="scale"
MOST_ROWS = 5000
ITERATIONS = 30


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

    @property
    def size(self) -> int:
        return len(self.costs) * len(self.gammas) * len(self.scaled)

    def first(self) -> Setting:
        """The only setting of a space of one."""
        return Setting(self.costs[0], self.gammas[0], self.scaled[0])


@dataclass
class Fold:
    """Rows to train on, rows to validate on, and the vectors that earlier candidates have learned here."""

    train: TrainingRows
    test: TrainingRows
    learned: dict[Setting, Learned] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """Mean error and mean squared slack on the rows held out."""

    error: float
    loss: float


def search(
    space: Space,
    kernel_of: Callable[[Any], Any],
    rows: TrainingRows,
    recipe: Recipe,
    rng: np.random.Generator,
    report: Callable[[str], None] | None = None,
) -> tuple[Setting, dict[str, list[Any]]]:
    """The best setting, and what was tried: gamma first, then the cost, then the scales of the inputs."""
    folds = split(rows, rng)
    recipe = replace(recipe, iterations=min(recipe.iterations, ITERATIONS))
    seed = int(rng.integers(2**31))
    trials: dict[Setting, Trial] = {}

    def run(setting: Setting, near: Setting | None = None) -> None:
        if setting not in trials:
            outcomes = [_validate(setting, near, fold, kernel_of(setting.gamma), recipe, seed) for fold in folds]
            trials[setting] = Trial(*(float(v) for v in np.mean(outcomes, axis=0)))
            if report is not None:
                report(f"{len(trials)} candidates, error {min(t.error for t in trials.values()):.4g}")

    def best(many: list[Setting]) -> list[Setting]:
        return sorted(many, key=lambda s: trials[s].error + 0.1 * trials[s].loss)

    middle, fixed = space.costs[len(space.costs) // 2], space.scaled[0]
    first = [Setting(middle, gamma, fixed) for gamma in space.gammas]
    for setting in first:
        run(setting)
    for near in best(first)[:2]:
        for cost in space.costs:
            run(replace(near, C=cost), near)
    for scaled in space.scaled[1:]:
        top = best(list(trials))[0]
        for cost in space.costs:
            run(Setting(cost, top.gamma, scaled), replace(top, C=cost))
    results: dict[str, list[Any]] = {
        "C": [s.C for s in trials],
        "gamma": [s.gamma for s in trials],
        "scales": ["learned" if s.scaled else "fixed" for s in trials],
        "error": [t.error for t in trials.values()],
        "loss": [t.loss for t in trials.values()],
    }
    return best(list(trials))[0], results


def split(rows: TrainingRows, rng: np.random.Generator) -> list[Fold]:
    """Stratified folds: five where rows are few, then three, then one split of 70 to 30."""
    some = stratified(rows.codes, MOST_ROWS, rng)
    order = some[rng.permutation(len(some))]
    order = order[np.argsort(rows.codes[order], kind="stable")]
    n = len(order)
    count, held_out = (5, 1) if n < 1000 else (3, 1) if n < 3000 else (10, 3)
    place = np.arange(n) % count
    parts = [place < held_out] if held_out > 1 else [place == f for f in range(count)]
    folds = [Fold(rows.take(order[~test]), rows.take(order[test])) for test in parts]
    # A class too small to be in every part is left out of validation only if it is missing in training.
    return [f for f in folds if len(np.unique(f.train.codes)) == rows.n_classes and len(f.test.codes)] or [
        Fold(rows.take(order), rows.take(order))
    ]


def _validate(
    setting: Setting, near: Setting | None, fold: Fold, kernel: Any, recipe: Recipe, seed: int
) -> tuple[float, float]:
    """Error and mean squared slack of one candidate on the rows held out."""
    train, test = fold.train, fold.test
    machines = one_vs_rest(train.codes, train.n_classes, setting.C * train.weights)
    problem = train.problem(kernel, machines)
    placed = place(
        recipe, problem, np.random.default_rng(seed), setting.scaled, fold.learned.get(near) if near else None
    )
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
