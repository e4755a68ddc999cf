"""Which method should I use? Every classifier of the library on the same rows: error, vectors, bytes, time.

C and gamma are those that a grid search chooses for `SVC` on the training rows. Every method that takes them gets
them; `SlimSVC` makes its own search, and its time includes it. So times say what a user waits for.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from slimsvm import (
    AnyNormSVC,
    BudgetSVC,
    EmpiricalSVC,
    LeastSquaresSVC,
    LpSVC,
    ReducedSVC,
    RelevanceVectorClassifier,
    SlimSVC,
    compress,
)

from . import keel, parts, sets
from .report import Table
from .sets import Split

GRID = {"C": [0.3, 1.0, 3.0, 10.0, 30.0, 100.0], "gamma": [0.03, 0.1, 0.3, 1.0, 3.0]}  # gamma: times 1 / d
ROUNDS = 3  # of which the quickest counts
SEARCH = "SVC, its grid search"
TIME = "Time of a fit, 1 = SVC"
TIMES = "CPU time of one core, the best of three rounds. SlimSVC includes its search."
SLOW = 5.0  # seconds of a fit beyond which one round is enough

Measured = dict[str, tuple[float, ...]]  # by method: error, vectors, bytes, seconds


@dataclass(frozen=True)
class Source:
    """Where rows come from: training and test rows for a seed, and how many vectors small models may have."""

    vectors: int
    split: Callable[[int], Split]
    splits: int = 3
    here: Callable[[], bool] = lambda: True


def moons(seed: int) -> Split:
    """Noisy half circles, 1,000 rows to train on."""
    rows = [datasets.make_moons(n, noise=0.3, random_state=seed + start) for n, start in ((1000, 0), (10_000, 1000))]
    return Split(*rows[0], *rows[1])


def halves(X: np.ndarray, y: np.ndarray, seed: int, most: int | None = None) -> Split:
    """Rows in random order, one half (or ``most`` rows) to train on and the rest to test."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [most or len(y) // 2])
    return Split(X[train], y[train], X[test], y[test])


def ours(name: str) -> Callable[[int], Split]:
    """A set of scikit-learn's own, in halves."""
    load = getattr(datasets, f"load_{name}")
    return lambda seed: halves(*load(return_X_y=True), seed)


def stored(name: str) -> Callable[[int], Split]:
    """A stored set, its own splits."""
    return lambda seed: list(sets.splits(name, seed + 1))[seed]


SOURCES = {
    "moons": Source(20, moons),
    "cancer": Source(10, ours("breast_cancer")),
    "digits": Source(60, ours("digits")),
    "banana": Source(20, stored("banana"), here=sets.present),
    "image": Source(20, stored("image"), here=sets.present),
    "splice": Source(20, stored("splice"), splits=1, here=sets.present),
    "magic": Source(20, lambda seed: halves(*keel.whole("magic"), seed, 3000), splits=1, here=keel.present),
}


def methods(svc: SVC, split: Split, m: int) -> dict[str, Callable[[], Any]]:
    """Ways to a fitted model, from the fitted SVC's settings."""
    X, y, C, gamma = split.X, split.y, svc.C, svc.gamma
    keys = {"C": C, "gamma": gamma}
    return {
        "SVC": lambda: SVC(**keys).fit(X, y),
        'AnyNormSVC("l1")': lambda: AnyNormSVC("l1", **keys).fit(X, y),
        'AnyNormSVC("l2")': lambda: AnyNormSVC("l2", **keys).fit(X, y),
        "LeastSquaresSVC()": lambda: LeastSquaresSVC(**keys).fit(X, y),
        "SlimSVC(m)": lambda: SlimSVC(m).fit(X, y),
        "compress(svc, m, X, y)": lambda: compress(svc, m, X, y),
        'BudgetSVC(m, hard="learn")': lambda: BudgetSVC(m, hard="learn", **keys).fit(X, y),
        'BudgetSVC(m, hard="select")': lambda: BudgetSVC(m, hard="select", **keys).fit(X, y),
        'ReducedSVC(m, regularizer="kernel")': lambda: ReducedSVC(m, regularizer="kernel", **keys).fit(X, y),
        "EmpiricalSVC()": lambda: EmpiricalSVC(**keys).fit(X, y),
        "LpSVC()": lambda: LpSVC(**keys).fit(X, y),
        "LpSVC(C_alpha=C / 100)": lambda: LpSVC(C_alpha=C / 100, **keys).fit(X, y),
        "RelevanceVectorClassifier()": lambda: RelevanceVectorClassifier(gamma=gamma).fit(X, y),
    }


def tuned(split: Split) -> tuple[SVC, float]:
    """The SVC of a grid search, and the seconds it took."""
    start = time.process_time()
    grid = GRID | {"gamma": [g / split.d for g in GRID["gamma"]]}
    search = GridSearchCV(SVC(), grid, cv=5).fit(split.X, split.y)
    return search.best_estimator_, time.process_time() - start


def numbers(model: Any) -> tuple[int, int]:
    """Vectors, and the bytes of all numbers of a model in float32."""
    if isinstance(model, SVC):
        found = (model.support_vectors_, model.dual_coef_, model.intercept_)
    else:
        found = (model.vectors_, model.vector_coef_, model.intercept_, np.ravel(model.kernel_.scales)[1:])
    return len(found[0]), 4 * sum(np.size(part) for part in found)


def compare(seed: int, source: Source, rounds: int) -> Measured:
    """Error, vectors, bytes and seconds of each method on one split; methods take turns in every round."""
    split = source.split(seed).mapped(StandardScaler())
    svc, searched = tuned(split)
    seconds: dict[str, list[float]] = {}
    models = {}
    for _ in range(rounds):
        for name, fit in methods(svc, split, source.vectors).items():
            if seconds.get(name, [0.0])[0] > SLOW:
                continue
            start = time.process_time()
            models[name] = fit()
            seconds.setdefault(name, []).append(time.process_time() - start)
    found = {name: (split.error(model), *numbers(model), min(seconds[name])) for name, model in models.items()}
    return {SEARCH: (*found["SVC"][:3], searched), **found}


def tables(options: argparse.Namespace) -> Iterator[Table]:
    """A row for each method, a column for each set."""
    rounds = 1 if options.quick else ROUNDS
    found: dict[str, Measured] = {}
    facts = []
    for name in parts.wanted(list(SOURCES), options):
        source = SOURCES[name]
        if not source.here():
            parts.say(f"{name} is not here")
            continue
        seeds = range(min(options.splits or source.splits, source.splits))
        runs = parts.spread(compare, seeds, options.n_jobs, source, rounds)
        found[name] = {method: tuple(np.mean([run[method] for run in runs], axis=0)) for method in runs[0]}
        split, seconds = source.split(0), found[name]["SVC"][3]
        numbers = (len(split.y), split.d, len(np.unique(split.y)), source.vectors, len(runs))
        facts.append([name, *map(str, numbers), f"{seconds:.3f}"])
        parts.say(f"{name} done")
    header = ["set", "training rows", "inputs", "classes", "m", "splits", "s, a fit of the SVC"]
    yield Table("Sets", header, facts, "C and gamma: those of a grid search for the SVC. SlimSVC makes its own search.")
    yield crossed("Error, %", found, lambda one, svc: f"{one[0]:.1f}")
    yield crossed("Vectors", found, lambda one, svc: f"{one[1]:.0f}")
    yield crossed("Size in float32, KB", found, lambda one, svc: f"{one[2] / 1000:.1f}")
    yield crossed(TIME, found, lambda one, svc: ratio(one[3] / svc[3]), TIMES)


def crossed(title: str, found: dict[str, Measured], shown: Callable[[Any, Any], str], note: str = "") -> Table:
    """Methods against sets."""
    methods = next(iter(found.values()), {})
    rows = [[name, *(shown(measured[name], measured["SVC"]) for measured in found.values())] for name in methods]
    rows = [row for row in rows if row[0] != SEARCH or title == TIME]  # elsewhere it is the SVC's
    return Table(title, ["", *found], rows, note)


def ratio(value: float) -> str:
    return "<0.1" if value < 0.05 else f"{value:.1f}" if value < 10 else f"{value:.0f}"


def main(argv: list[str] | None = None) -> None:
    parser = parts.parser("benchmarks.which", __doc__)
    options = parser.parse_args(argv)
    if options.quick:
        options = parts.settled(options, splits=1, sets=["moons", "cancer"])
    parts.run(options, "Which method", [tables])


if __name__ == "__main__":
    main()
