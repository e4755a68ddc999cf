"""Speed of the machines that find their own number of vectors: ``python -m benchmarks sparse``.

Fits of `LpSVC` beside `sklearn.svm.SVC` and `RelevanceVectorClassifier`; one thread, in turns, the best of
a few rounds.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.svm import SVC

from slimsvm import LpSVC, RelevanceVectorClassifier

from . import parts, sets
from .problems import Array
from .report import Table

MOST_RVM = 2000  # rows


def ripley_like(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Two Gaussians for each class in the plane."""
    y = np.where(rng.random(n) < 0.5, 1, -1)
    centres = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
    return centres[(y > 0).astype(int), rng.integers(2, size=n)] + rng.normal(size=(n, 2)) * np.sqrt(0.03), y


def twonorm(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Two Gaussians in 20 dimensions."""
    y = np.where(rng.random(n) < 0.5, 1, -1)
    return rng.normal(size=(n, 20)) + (2 / np.sqrt(20)) * y[:, None], y


def nonlinear(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """A wavy boundary in 8 dimensions, one label in ten flipped."""
    X = rng.normal(size=(n, 8))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2 - 0.5 + 0.3 * X[:, 4] > 0
    return X, np.where(y ^ (rng.random(n) < 0.1), 1, -1)


PROBLEMS: dict[str, tuple[Callable, Any]] = {
    "Ripley-like": (ripley_like, 2.0),
    "twonorm": (twonorm, "scale"),
    "8-d, nonlinear": (nonlinear, "scale"),
}


def measure(options: argparse.Namespace) -> Iterator[Table]:
    """Seconds, ratios, vectors and errors."""
    sizes = [1000] if options.quick else [1000, 5000, 20000]
    rows = [row(name, n) for n in sizes for name in PROBLEMS]
    header = ["problem", "n", "SVC, s", "LpSVC, s", "ratio", "RVM, s"]
    header += ["SVC vectors", "LpSVC vectors", "RVM vectors", "SVC error, %", "LpSVC error, %", "RVM error, %"]
    note = f"C=1, C_alpha=0.1. The RVM up to n={MOST_RVM}. Ratio: LpSVC to SVC."
    yield Table("Machines that find their number of vectors", header, rows, note)
    yield from rvm(options)


def row(name: str, n: int) -> list[str]:
    make, gamma = PROBLEMS[name]
    X, y = make(n, np.random.default_rng(0))
    X_test, y_test = make(5000, np.random.default_rng(99))
    models = {"SVC": SVC(gamma=gamma), "LpSVC": LpSVC(gamma=gamma)}
    if n <= MOST_RVM:
        models["RVM"] = RelevanceVectorClassifier(gamma=gamma)
    seconds = parts.quietly(best_times, models, X, y, 5 if n <= 5000 else 2)
    parts.say(f"{name}, n={n}: " + ", ".join(f"{key} {value:.3f} s" for key, value in seconds.items()))
    split = sets.Split(X, y, X_test, y_test)
    errors = {key: f"{split.error(model):.2f}" for key, model in models.items()}
    vectors = {key: f"{len(model.support_)}" for key, model in models.items()}
    ratio = seconds["LpSVC"] / seconds["SVC"]
    times = {key: f"{value:.3f}" for key, value in seconds.items()}
    names = ("SVC", "LpSVC", "RVM")
    cells = [times["SVC"], times["LpSVC"], f"{ratio:.2f}", times.get("RVM", "")]
    return [name, str(n), *cells, *(part.get(key, "") for part in (vectors, errors) for key in names)]


def best_times(models: dict[str, Any], X: Array, y: Array, rounds: int) -> dict[str, float]:
    """The least seconds of each; they take turns, so that noise hits all alike."""
    best = dict.fromkeys(models, np.inf)
    for _ in range(rounds):
        for name, model in models.items():
            start = time.perf_counter()
            model.fit(X, y)
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def rvm(options: argparse.Namespace) -> Iterator[Table]:
    """Beside the public package, if that is installed."""
    try:
        public = importlib.import_module("sklearn_rvm").EMRVC
    except ImportError:
        parts.say("sklearn-rvm is not installed: no comparison with it")
        return
    X, y = ripley_like(250, np.random.default_rng(0))
    X_test, y_test = ripley_like(5000, np.random.default_rng(99))
    models = {"slimsvm": RelevanceVectorClassifier(gamma=2.0), "sklearn-rvm": public(kernel="rbf", gamma=2.0)}
    seconds = parts.quietly(best_times, models, X, y, 3)
    split = sets.Split(X, y, X_test, y_test)
    rows = []
    for name, model in models.items():
        count = model.n_vectors_ if name == "slimsvm" else len(model.relevance_vectors_)
        rows.append([name, f"{seconds[name]:.3f}", str(count), f"{split.error(model):.2f}"])
    yield Table(
        "Relevance vector machines", ["package", "s", "vectors", "error, %"], rows, "Ripley-like, n=250, gamma=2."
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None of its own."""


def main(argv: list[str] | None = None) -> None:
    parser = parts.parser("benchmarks sparse", __doc__, sets=False)
    parts.run(parser.parse_args(argv), "Machines that find their number of vectors", [measure])


if __name__ == "__main__":
    main()
