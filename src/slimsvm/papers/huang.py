"""Huang, Zheng, King & Lyu: machines whose coefficients have a small Lp norm."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.svm import SVC

from .. import LpSVC, RelevanceVectorClassifier, datasets
from .recipe import Column, Paper, Recipe, Task, printed

PAPER = Paper(
    "huang", "Huang, Zheng, King & Lyu", "Arbitrary Norm Support Vector Machines", "Neural Computation 21", 2009
)

# --- Tables 1 and 2: Ripley's data --------------------------------------------------------------

DRAWN, DRAWS, THEIR_DRAWS = 100, 200, 20
RIPLEY: dict[str, Any] = {"gamma": 2.0, "C": 1.0}
C_ALPHA = 0.2
VECTORS, ERROR, SECONDS = "vectors", "error, %", "training, s"


def ripley_draw(seed: int, flipped: float) -> dict[str, dict[str, float]]:
    """The three machines on 100 of the 250 rows, with some labels flipped."""
    data = datasets.load("ripley", split=0)
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(data.y), DRAWN, replace=False)
    X, y = data.X[rows], data.y[rows].copy()
    wrong = rng.choice(DRAWN, round(flipped * DRAWN), replace=False)
    y[wrong] = -y[wrong]
    machines: dict[str, Any] = {
        "SVM": SVC(**RIPLEY),
        "L0": LpSVC(C_alpha=C_ALPHA, **RIPLEY),
        "RVM": RelevanceVectorClassifier(gamma=RIPLEY["gamma"]),
    }
    found = {}
    for name, model in machines.items():
        began = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - began
        vectors = len(model.support_)
        found[_row(name, flipped)] = {SECONDS: seconds, VECTORS: vectors, ERROR: data.error(model)}
    return found


def _row(machine: str, flipped: float) -> str:
    return f"{machine}, {flipped:.0%} flipped" if flipped else machine


def ripley_tasks(*shares: float) -> Iterator[Task]:
    for flipped in shares:
        for seed in range(DRAWS):
            name = f"{flipped:.0%} flipped, draw {seed}"
            yield Task(name, ripley_draw, (seed, flipped), ("ripley",), quick=seed < THEIR_DRAWS)


PROTOCOL = (
    f"{DRAWN} of the 250 training rows drawn at random, {DRAWS} times (the paper: {THEIR_DRAWS}); the 1000 test rows. "
    "C = 1, C_alpha = 0.2, gamma = 2: a width of 0.5 as exp(-d²/2w²)."
)

TABLE_1 = Recipe(
    name="huang-table-1",
    paper=PAPER,
    title="Table 1: Ripley's data",
    protocol=PROTOCOL,
    tasks=lambda: ripley_tasks(0.0),
    columns=(Column(VECTORS, step=0.01), Column(ERROR, "low", 0.01), Column(SECONDS, step=0.0001, judged=False)),
    rows=("SVM", "L0", "RVM"),
    printed=printed(
        (SECONDS, VECTORS, ERROR),
        {"SVM": (0.0098, 49.8, 9.65), "L0": (0.0972, 4.15, 9.36), "RVM": (0.3325, 4.20, 9.38)},
    ),
    runs=THEIR_DRAWS,
    row_name="machine",
)

RECIPES = (TABLE_1,)
