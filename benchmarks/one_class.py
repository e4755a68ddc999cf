"""Novelty detection from 20 vectors beside a one-class machine: rows on the same side, and known outliers found.

One class of a set is usual: the machines see half of its rows. The other half, and as many rows of the other classes,
are what they are judged by.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from slimsvm import SlimOneClass

from . import keel, parts, sets
from .parts import mean
from .problems import Array
from .report import Table

NUS = (0.05, 0.1, 0.5)
VECTORS = 20
MOST_ROWS = 4000  # of the usual class, in both halves together
# The usual class: of the published sets the larger one, digits are 0 and 3.
USUAL = {
    "moons": 0,
    "digits": 3,
    "cancer": 1,
    "wine": 1,
    "banana": -1,
    "thyroid": -1,
    "image": 1,
    "usps": 0,
    "satimage": 0,
    "segment": 0,
}
SCALED = ("cancer", "wine", "banana", "thyroid", "image", "satimage", "segment")
HEADER = [
    "set",
    "nu",
    "rows, inputs",
    "vectors of OneClassSVM",
    "same side: training",
    "usual",
    "outliers",
    "AUC OneClassSVM",
    "SlimOneClass",
    "IsolationForest",
    "s OneClassSVM, SlimOneClass",
]
NOTE = (
    "Means over splits. Rows on the same side as for OneClassSVM, %: of the training rows, where those on its border, "
    "to within its tol, count as such (in brackets: where they do not; which side OneClassSVM gives them is chance), "
    "of usual rows held out, and of outliers. AUC: usual rows held out against outliers. All with defaults but nu; "
    "IsolationForest does not depend on it. moons: noise 0.1, outliers uniform in a box around them. Where OneClassSVM "
    "has no more than 20 vectors it is kept as it is. How SlimOneClass is taught was chosen on other sets: penbased, "
    "twonorm, waveform, german, heart, letter, spambase, pima, texture, ringnorm, optdigits, vehicle, phoneme, ripley "
    "and magic."
)


def rows_of(name: str) -> tuple[Array, Array]:
    """All rows of a set, and their classes."""
    if name == "moons":
        X, _ = datasets.make_moons(2000, noise=0.1, random_state=0)
        outliers = np.random.default_rng(0).uniform([-2, -1.5], [3, 2], (1000, 2))
        return np.vstack([X, outliers]), np.repeat([0, 1], [2000, 1000])
    if name == "digits":
        X, y = datasets.load_digits(return_X_y=True)
        return X / 16, y
    if name in ("cancer", "wine"):
        load = {"cancer": datasets.load_breast_cancer, "wine": datasets.load_wine}[name]
        return load(return_X_y=True)
    return keel.whole(name) if name in ("satimage", "segment") else sets.whole(name)


def halves(name: str, seed: int) -> tuple[Array, Array, Array]:
    """Usual rows to train on, usual rows held out, outliers."""
    X, y = rows_of(name)
    rng = np.random.default_rng(seed)
    usual = rng.permutation(np.flatnonzero(y == USUAL[name]))[:MOST_ROWS]
    train, test = np.array_split(usual, 2)
    others = rng.permutation(np.flatnonzero(y != USUAL[name]))[: len(test)]
    if name in SCALED:
        X = StandardScaler().fit(X[train]).transform(X)
    return X[train], X[test], X[others]


def compare(seed: int, name: str, nu: float) -> dict[str, Any]:
    """One split."""
    X, usual, outliers = halves(name, seed)
    known = np.repeat([1, 0], [len(usual), len(outliers)])
    rows = np.vstack([usual, outliers])
    found: dict[str, Any] = {"rows": len(X), "inputs": X.shape[1]}
    models = {
        "large": OneClassSVM(nu=nu),
        "slim": SlimOneClass(VECTORS, nu=nu),
        "forest": IsolationForest(random_state=seed),
    }
    for kind, model in models.items():
        start = time.perf_counter()
        model.fit(X)
        found[f"s {kind}"] = time.perf_counter() - start
        found[f"AUC {kind}"] = roc_auc_score(known, model.decision_function(rows))
    large, slim = models["large"], models["slim"]
    found["vectors"] = len(large.support_)
    same = large.predict(X) == slim.predict(X)
    found["strictly"] = 100 * same.mean()
    found["training"] = 100 * (same | (np.abs(large.decision_function(X)) <= large.tol)).mean()
    for kind, some in (("usual", usual), ("outliers", outliers)):
        found[kind] = 100 * (large.predict(some) == slim.predict(some)).mean()
    return found


def present(name: str) -> bool:
    """Is the set here?"""
    if name in ("satimage", "segment"):
        return keel.present()
    return (name not in sets.RAETSCH and name != "usps") or sets.present()


def sides(options: argparse.Namespace) -> Iterator[Table]:
    """All sets."""
    rows = []
    for name in parts.wanted(list(USUAL), options):
        if not present(name):
            parts.say(f"{name} is not here")
            continue
        for nu in NUS:
            found = parts.spread(compare, range(options.splits or 3), options.n_jobs, name, nu)

            def cell(key: str, digits: int = 1, found: list[Any] = found) -> str:
                return f"{mean(one[key] for one in found):.{digits}f}"

            rows.append(
                [
                    name,
                    f"{nu:g}",
                    f"{cell('rows', 0)}, {cell('inputs', 0)}",
                    cell("vectors", 0),
                    f"{cell('training')} ({cell('strictly')})",
                    cell("usual"),
                    cell("outliers"),
                    cell("AUC large", 3),
                    cell("AUC slim", 3),
                    cell("AUC forest", 3),
                    f"{cell('s large', 2)}, {cell('s slim', 2)}",
                ]
            )
        parts.say(f"{name} done")
    yield Table(f"{VECTORS} vectors", HEADER, rows, NOTE)


def main(argv: list[str] | None = None) -> None:
    parser = parts.parser("benchmarks.one_class", __doc__)
    options = parser.parse_args(argv)
    if options.quick:
        options = parts.settled(options, splits=1, sets=["moons", "wine"])
    parts.run(options, "Novelty detection", [sides])


if __name__ == "__main__":
    main()
