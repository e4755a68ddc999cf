"""Tables 1 and 2, Figures 3 and 4: Ripley's data, with true and with flipped labels."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.svm import SVC

from slimsvm import LpSVC, RelevanceVectorClassifier
from slimsvm.linalg.arrays import Array

from .. import datasets
from ..recipe import Column, Outcomes, Printed, Recipe, Samples, Task, printed
from ..result import Result
from . import reasons
from .originals import TippingRVM
from .paper import PAPER
from .pictures import of_panels, panel, plane

DRAWN, DRAWS, THEIR_DRAWS = 100, 200, 20
SETTINGS: dict[str, Any] = {"gamma": 2.0, "C": 1.0}
C_ALPHA = 0.2
# A width of 0.5 for all machines. That of Tipping's program is w in exp(-d²/w²); the SVM has as many vectors as with
# exp(-d²/2w²).
RVM_GAMMA = 4.0
FLIPPED = (0.05, 0.10, 0.15)
VECTORS, ERROR, SECONDS = "vectors", "error, %", "training, s"
FLIPPED_VECTORS = "flipped rows that are vectors"
RVM_FAST = "RVM, fast"


def machines() -> dict[str, Any]:
    """By row of the tables. The paper's RVM is Tipping's first program; the library's finds its vectors one by one."""
    return {
        "SVM": SVC(**SETTINGS),
        "L0": LpSVC(C_alpha=C_ALPHA, **SETTINGS),
        "RVM": TippingRVM(RVM_GAMMA),
        RVM_FAST: RelevanceVectorClassifier(gamma=RVM_GAMMA),
    }


def drawn(seed: int, flipped: float) -> tuple[datasets.Split, Array]:
    """100 of the 250 rows with some labels flipped, and which of them are."""
    data = datasets.load("ripley", split=0)
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(data.y), DRAWN, replace=False)
    X, y = data.X[rows], data.y[rows].copy()
    wrong = rng.choice(DRAWN, round(flipped * DRAWN), replace=False)
    y[wrong] = -y[wrong]
    return datasets.Split(X, y, data.X_test, data.y_test), wrong


def one_draw(seed: int, flipped: float) -> dict[str, dict[str, float]]:
    """All machines on one draw."""
    data, _ = drawn(seed, flipped)
    found = {}
    for name, model in machines().items():
        began = time.perf_counter()
        model.fit(data.X, data.y)
        seconds = time.perf_counter() - began
        found[row(name, flipped)] = {SECONDS: seconds, VECTORS: len(model.support_), ERROR: data.error(model)}
    return found


def row(machine: str, flipped: float) -> str:
    return f"{machine}, {flipped:.0%} flipped" if flipped else machine


def draws(*shares: float) -> Iterator[Task]:
    for flipped in shares:
        for seed in range(DRAWS):
            name = f"{flipped:.0%} flipped, draw {seed}"
            yield Task(name, one_draw, (seed, flipped), ("ripley",), quick=seed < THEIR_DRAWS)


PROTOCOL = (
    f"{DRAWN} of the 250 training rows drawn at random, {DRAWS} times (the paper: {THEIR_DRAWS}); the 1000 test rows. "
    "C = 1, C_alpha = 0.2, gamma = 2: a width of 0.5 as exp(-d²/2w²). RVM is Tipping's first algorithm, which the "
    "paper used, written again; RVM, fast is `RelevanceVectorClassifier`. Both have gamma = 4, because the width of "
    "Tipping's program is that of exp(-d²/w²)."
)
COLUMNS = (Column(VECTORS, step=0.01), Column(ERROR, "low", 0.01), Column(SECONDS, step=0.0001, judged=False))

TABLE_1 = Recipe(
    name="huang-table-1",
    paper=PAPER,
    title="Table 1: Ripley's data",
    protocol=PROTOCOL,
    tasks=lambda: draws(0.0),
    columns=COLUMNS,
    rows=("SVM", "L0", "RVM", RVM_FAST),
    printed=printed(
        (SECONDS, VECTORS, ERROR),
        {"SVM": (0.0098, 49.8, 9.65), "L0": (0.0972, 4.15, 9.36), "RVM": (0.3325, 4.20, 9.38)},
    ),
    runs=THEIR_DRAWS,
    reasons=reasons.RIPLEY,
    row_name="machine",
)

TABLE_2 = Recipe(
    name="huang-table-2",
    paper=PAPER,
    title="Table 2: Ripley's data with flipped labels",
    protocol=PROTOCOL + " Of the drawn rows 5, 10 or 15 have their labels flipped, test rows none.",
    tasks=lambda: draws(*FLIPPED),
    columns=COLUMNS,
    rows=[row(name, share) for share in FLIPPED for name in ("SVM", "L0", "RVM", RVM_FAST)],
    printed=printed(
        (VECTORS, ERROR),
        {
            "SVM, 5% flipped": (55.50, 9.53),
            "L0, 5% flipped": (4.20, 9.46),
            "RVM, 5% flipped": (4.60, 9.81),
            "SVM, 10% flipped": (61.50, 10.59),
            "L0, 10% flipped": (4.20, 9.58),
            "RVM, 10% flipped": (4.70, 10.08),
            "SVM, 15% flipped": (67.40, 10.90),
            "L0, 15% flipped": (4.10, 10.11),
            "RVM, 15% flipped": (4.30, 10.86),
        },
    ),
    runs=THEIR_DRAWS,
    reasons=reasons.RIPLEY,
    row_name="machine",
)

# --- Figures 3 and 4: boundaries and vectors of one draw --------------------------------------------

SHOWN = 0  # the draw
SHOWN_MACHINES = ("SVM", "RVM", "L0")  # in the order of the paper's panels


def shown(seed: int, flipped: float) -> dict[str, Any]:
    """What a row of panels needs, and its numbers."""
    data, wrong = drawn(seed, flipped)
    every = machines()
    fitted = {name: every[name].fit(data.X, data.y) for name in SHOWN_MACHINES}
    planes = {name: plane(model, data.X, model.support_) for name, model in fitted.items()}
    rows = {row(name, flipped): _counts(model, wrong) for name, model in fitted.items()}
    return {
        "X": data.X.round(4).tolist(),
        "y": data.y.tolist(),
        "wrong": wrong.tolist(),
        "planes": planes,
        "rows": rows,
    }


def flipped_vectors(seed: int, flipped: float) -> dict[str, Any]:
    """How many of the flipped rows become vectors."""
    data, wrong = drawn(seed, flipped)
    every = machines()
    fitted = {name: every[name].fit(data.X, data.y) for name in SHOWN_MACHINES}
    return {"rows": {row(name, flipped): _counts(model, wrong) for name, model in fitted.items()}}


def _counts(model: Any, wrong: Array) -> dict[str, float]:
    return {VECTORS: len(model.support_), FLIPPED_VECTORS: len(np.intersect1d(model.support_, wrong))}


def shown_tasks(*shares: float) -> Iterator[Task]:
    for flipped in shares:
        yield Task(f"{flipped:.0%} flipped, shown", shown, (SHOWN, flipped), ("ripley",), quick=True)


def counted_tasks() -> Iterator[Task]:
    yield from shown_tasks(*FLIPPED)
    for flipped in FLIPPED:
        for seed in range(SHOWN + 1, DRAWS // 2):
            name = f"{flipped:.0%} flipped, draw {seed}"
            yield Task(name, flipped_vectors, (seed, flipped), ("ripley",), quick=seed < THEIR_DRAWS // 2)


def vectors_alone(outcomes: Outcomes) -> Samples:
    return {place: numbers for place, numbers in of_panels(outcomes).items() if place[1] == VECTORS}


def draw(figure: Any, result: Result) -> None:
    """A row of panels for each share of flipped labels, a panel for each machine."""
    some = {name: outcome for name, outcome in result.outcomes.items() if "planes" in outcome}
    figure.set_size_inches(9.5, 3.6 * len(some))
    axes = figure.subplots(len(some), len(SHOWN_MACHINES), squeeze=False, sharex=True, sharey=True)
    for line, outcome in zip(axes, some.values(), strict=True):
        numbers = outcome["rows"]
        for ax, machine, name in zip(line, SHOWN_MACHINES, numbers, strict=True):
            panel(ax, outcome["X"], outcome["y"], outcome["planes"][machine], outcome["wrong"])
            ax.set_title(f"{name}: {numbers[name][VECTORS]} vectors", fontsize=10)


PICTURE = (
    "One draw of 100 training rows as in Table 1. Solid: the boundary; dashed: where the decision is -1 and 1; "
    "circles: vectors{}. The paper's draw is not known."
)

FIGURE_3 = Recipe(
    name="huang-figure-3",
    paper=PAPER,
    title="Figure 3: three machines on Ripley's data",
    protocol=PICTURE.format("") + " The text says almost 50 vectors of the SVM, 4 or 5 of the others.",
    tasks=lambda: shown_tasks(0.0),
    columns=(Column(VECTORS, judged=False),),
    rows=SHOWN_MACHINES,
    printed=printed((VECTORS,), {"SVM": (50,), "RVM": (4.5,), "L0": (4.5,)}),
    gather=vectors_alone,
    draw=draw,
    row_name="machine",
)

FIGURE_4 = Recipe(
    name="huang-figure-4",
    paper=PAPER,
    title="Figure 4: three machines on Ripley's data with flipped labels",
    protocol=PICTURE.format(", squares: rows with flipped labels")
    + f" The paper says that all flipped rows are vectors of the SVM, and none of the L0 machine, in its one draw. Our "
    f"numbers are means over {DRAWS // 2} draws.",
    tasks=counted_tasks,
    columns=(Column(VECTORS), Column(FLIPPED_VECTORS)),
    rows=[row(name, share) for share in FLIPPED for name in SHOWN_MACHINES],
    printed={
        **{(row("SVM", share), FLIPPED_VECTORS): Printed(round(share * DRAWN), runs=1) for share in FLIPPED},
        **{(row("L0", share), FLIPPED_VECTORS): Printed(0, runs=1) for share in FLIPPED},
    },
    gather=of_panels,
    draw=draw,
    row_name="machine",
)
