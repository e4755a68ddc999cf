"""Accuracy at equal bytes: small machines beside what is put on small devices instead.

A model of m vectors takes m (d + 2) bytes (one for each input of a vector, two for a coefficient), a network of h
hidden units h (d + 2), trees 6 bytes a node. Half of the rows are for training; `SlimSVC` tunes itself, the others are
tuned on 70/30 of that half.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from slimsvm import SlimSVC

from . import parts, sets
from .defaults import tuned_svc
from .parts import mean
from .problems import Array
from .report import Table
from .sets import Split

BUDGETS = [512, 2048, 8192]
NODE = 6  # bytes: input, threshold, two children (or a value)
MOST_UNITS = 300  # vectors and hidden units; where inputs are few, a budget would pay for more than there are rows
MOST_TREES = 300
STORED = ["image", "splice", "german", "waveform", "ringnorm", "banana"]


# --- data ---------------------------------------------------------------------------------------


def problems() -> dict[str, Callable[[], tuple[Array, Array]]]:
    """Two-class sets: the stored ones where they are here, and those of scikit-learn."""
    found: dict[str, Callable[[], tuple[Array, Array]]] = {}
    if sets.present():
        found |= {name: lambda name=name: sets.whole(name) for name in STORED}
        found["usps 3/8"] = lambda: two_of(*sets.whole("usps"), 3, 8)
    found["cancer"] = lambda: datasets.load_breast_cancer(return_X_y=True)
    found["wine"] = lambda: against_rest(*datasets.load_wine(return_X_y=True), 1)
    found["digits even/odd"] = lambda: even(*datasets.load_digits(return_X_y=True))
    return found


def two_of(X: Array, y: Array, first: int, second: int) -> tuple[Array, Array]:
    rows = (y == first) | (y == second)
    return X[rows], y[rows]


def against_rest(X: Array, y: Array, positive: int) -> tuple[Array, Array]:
    return X, np.where(y == positive, 1, -1)


def even(X: Array, y: Array) -> tuple[Array, Array]:
    return X, y % 2


def halves(X: Array, y: Array, seed: int) -> Split:
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    return Split(X, y, X_test, y_test)


# --- models -------------------------------------------------------------------------------------


def units(budget: int, d: int) -> int:
    """Vectors, or hidden units, that the budget pays for."""
    return int(np.clip(budget // (d + 2), 1, MOST_UNITS))


def slim(budget: int, d: int) -> list[Any]:
    """Tunes itself."""
    return [make_pipeline(StandardScaler(), SlimSVC(units(budget, d)))]


def network(budget: int, d: int) -> list[Any]:
    hidden = (units(budget, d),)
    solvers = [
        *({"solver": "lbfgs", "max_iter": 500, "alpha": alpha} for alpha in (1e-3, 1e-1, 1, 10)),
        *({"solver": "adam", "max_iter": 300, "alpha": alpha, "learning_rate_init": 0.01} for alpha in (1e-4, 1e-1)),
    ]
    return [make_pipeline(StandardScaler(), MLPClassifier(hidden, random_state=0, **keys)) for keys in solvers]


def tree(budget: int, d: int) -> list[Any]:
    leaves = [size for part in (1, 2, 4) if (size := leaves_of(budget // NODE // part)) >= 2]
    return [
        DecisionTreeClassifier(max_leaf_nodes=size, min_samples_leaf=rows, random_state=0)
        for size in leaves
        for rows in (1, 5)
    ]


def forest(budget: int, d: int) -> list[Any]:
    nodes = budget // NODE
    return [
        RandomForestClassifier(count, max_leaf_nodes=leaves_of(nodes // count), max_features=share, random_state=0)
        for count in (3, 7, 15, 31, 63)
        if leaves_of(nodes // count) >= 2
        for share in ("sqrt", 0.5)
    ]


def boosted(budget: int, d: int) -> list[Any]:
    nodes = budget // NODE
    return [
        GradientBoostingClassifier(
            n_estimators=min(nodes // (2 * leaves - 1), MOST_TREES),
            max_leaf_nodes=leaves,
            max_depth=None,
            learning_rate=rate,
            random_state=0,
        )
        for leaves in (2, 4, 8, 16)
        for rate in (0.1, 0.3, 1.0)
    ]


def leaves_of(nodes: int) -> int:
    """Leaves of a binary tree of so many nodes."""
    return (nodes + 1) // 2


MODELS = {"slim": slim, "network": network, "tree": tree, "forest": forest, "boosted": boosted}


def bytes_of(model: Any) -> int:
    """By the count above; what the trained model has, not what it might have."""
    last = model[-1] if hasattr(model, "steps") else model
    if isinstance(last, SlimSVC):
        return last.n_vectors_ * (last.n_features_in_ + 2)
    if isinstance(last, MLPClassifier):
        return last.hidden_layer_sizes[0] * (last.n_features_in_ + 2)
    trees = np.ravel(getattr(last, "estimators_", last))
    return NODE * sum(one.tree_.node_count for one in trees)


# --- measuring ----------------------------------------------------------------------------------


def best(candidates: list[Any], split: Split) -> Any:
    """The candidate with the least error on 30 % of the training rows, fitted to all of them."""
    chosen = candidates[0]
    if len(candidates) > 1:
        parts_ = train_test_split(split.X, split.y, test_size=0.3, stratify=split.y, random_state=0)
        inner = Split(parts_[0], parts_[2], parts_[1], parts_[3])
        chosen = min(candidates, key=lambda model: inner.error(clone(model).fit(inner.X, inner.y)))
    return chosen.fit(split.X, split.y)


def compare(split: Split, budgets: list[int], full: bool) -> dict[Any, tuple[float, int]]:
    """Error and bytes of each kind of model at each budget."""
    found = {}
    if full:
        svc = tuned_svc(split.X, split.y)
        found["SVC"] = split.error(svc), len(svc[-1].support_) * (split.d + 2)
    for budget in budgets:
        for name, candidates in MODELS.items():
            model = best(candidates(budget, split.d), split)
            size = bytes_of(model)
            if size > max(budget, split.d + 2):
                raise RuntimeError(f"{name} takes {size} bytes, more than {budget}")
            found[budget, name] = split.error(model), size
    return found


def measure(options: argparse.Namespace) -> Iterator[Table]:
    """A table for each budget, a row for each set, the best model marked."""
    table = problems()
    if not sets.present():
        print("../shared/data is not beside the repository: only the sets of scikit-learn are measured.")
    if options.quick:
        some = [name for name in table if name in ("image", "splice", "cancer", "wine")]
        options = parts.settled(options, splits=1, budgets=BUDGETS[:1], sets=some)
    else:
        options = parts.settled(options, splits=3, budgets=BUDGETS, sets=None)
    results = {}
    for name in parts.wanted(list(table), options):
        X, y = table[name]()
        pairs = [halves(X, y, seed) for seed in range(options.splits)]
        results[name] = parts.spread(compare, pairs, options.n_jobs, options.budgets, not options.quick)
        parts.say(f"{name} done")
    for budget in options.budgets:
        rows, wins = [], dict.fromkeys(MODELS, 0)
        for name, found in results.items():
            errors = {model: mean(f[budget, model][0] for f in found) for model in MODELS}
            least = min(errors.values())
            for model, error in errors.items():
                wins[model] += error == least
            cells = [f"{error:.2f}" + (" *" if error == least else "") for error in errors.values()]
            used = f"{mean(f[budget, 'slim'][1] for f in found):.0f}"
            svc = "–"
            if "SVC" in found[0]:
                svc = f"{mean(f['SVC'][0] for f in found):.2f} ({mean(f['SVC'][1] for f in found):.0f})"
            rows.append([name, svc, used, *cells])
        rows.append(["best on", "", "", *(str(count) for count in wins.values())])
        header = ["set", "tuned SVC (bytes)", "bytes of slim", *MODELS]
        note = f"Test error, %, mean over {options.splits} random halves. * least. slim: SlimSVC as it comes."
        yield Table(f"{budget} bytes", header, rows, note)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--budgets", type=lambda text: [int(t) for t in text.split(",")], help="bytes, e.g. 512,2048")


def main(argv: list[str] | None = None) -> None:
    parser = parts.parser("benchmarks.equal_bytes", __doc__)
    add_arguments(parser)
    options = parser.parse_args(argv)
    parts.run(options, "Equal bytes", [measure])


if __name__ == "__main__":
    main()
