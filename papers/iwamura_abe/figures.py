"""Figures 1 and 2: rate and number of vectors against eta."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from .. import datasets
from ..recipe import Cell, Column, Printed, Recipe, Task
from ..result import Result
from .machines import SPARSE, prepared, rbf_machines
from .settings import L1, L2, PAPER, Setting

GRID = (0.5, 0.1, 1e-2, 1e-3, 1e-4, 1e-5)  # the paper's
ETAS = (0.5, 0.3, 0.1, 0.03, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
SPLITS, QUICK = 20, 3
RATE, VECTORS = "rate, %", "vectors"
BLUE, ORANGE = "#0072B2", "#D55E00"
SETTINGS = {("banana", "l1"): L1["banana"], ("waveform", "l2"): L2["waveform"]}


def _row(eta: float) -> str:
    return f"{eta:g}"


def along(name: str, slack: str, k: int) -> dict[str, dict[str, float]]:
    """Rates and vectors of one split for each eta, at the paper's C and gamma."""
    split, found = prepared(datasets.load(name), k), {}
    chosen = SETTINGS[name, slack]
    for eta in ETAS:
        setting = Setting(chosen.C, chosen.gamma, chosen.sparse_C, eta)
        model = rbf_machines(setting, split.d, slack)[SPARSE].fit(split.X, split.y)
        found[_row(eta)] = {RATE: 100 - split.error(model), VECTORS: model.n_vectors_}
    return found


def along_tasks(name: str, slack: str) -> Iterator[Task]:
    for k in range(SPLITS):
        yield Task(f"split {k}", along, (name, slack, k), (name,), quick=k < QUICK)


def draw(figure: Any, result: Result) -> None:
    """Rates above, vectors below, against eta; a thin line for each split, a thick one for the mean."""
    upper, lower = figure.subplots(2, 1, sharex=True)
    means = {(cell.row, cell.column.name): cell.ours for cell in result.cells}
    for axes, column, colour in ((upper, RATE, BLUE), (lower, VECTORS, ORANGE)):
        for outcome in result.outcomes.values():
            axes.plot(ETAS, [outcome[_row(eta)][column] for eta in ETAS], color=colour, lw=0.6, alpha=0.35)
        axes.plot(ETAS, [means[_row(eta), column] for eta in ETAS], color=colour, lw=2, marker="o", ms=4)
        axes.set_ylabel(column)
        axes.grid(alpha=0.3)
    lower.set_ylim(bottom=0)
    lower.set_xscale("log")
    lower.invert_xaxis()
    lower.set_xlabel("η: a row is kept while its squared distance to the span of those before is larger")
    upper.set_title(result.recipe.title)


def _recipe(number: int, name: str, slack: str, title: str, protocol: str, printed: dict[Cell, Printed]) -> Recipe:
    setting = SETTINGS[name, slack]
    settings = f"γ = {setting.gamma:g}, C = {setting.sparse_C:g}, the first {SPLITS} splits where the paper has one. "
    return Recipe(
        name=f"iwamura_abe-figure-{number}",
        paper=PAPER,
        title=title,
        protocol=settings + protocol,
        tasks=partial(along_tasks, name, slack),
        columns=(Column(RATE, "high"), Column(VECTORS)),
        rows=tuple(_row(eta) for eta in ETAS),
        printed=printed,
        draw=draw,
        row_name="η",
    )


TRAINING_ROWS = 400
FIGURE_1 = _recipe(
    1,
    "banana",
    "l1",
    "Figure 1: banana, RBF kernels, sum of slacks",
    "The paper says that the rate is the same for all η up to 0.1, and that vectors grow with the logarithm of 1/η; it "
    "prints no numbers.",
    {},
)
FIGURE_2 = _recipe(
    2,
    "waveform",
    "l2",
    "Figure 2: waveform, RBF kernels, sum of squared slacks",
    "The paper says that below η = 0.01 all 400 training rows are kept; it prints no other numbers.",
    {(_row(eta), VECTORS): Printed(TRAINING_ROWS, 0.0, 1) for eta in GRID if eta < 1e-2},
)
