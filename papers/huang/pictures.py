"""Decision boundaries with vectors, and Figure 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.svm import SVC

from slimsvm import LpSVC
from slimsvm.linalg.arrays import Array

from ..recipe import Column, Outcomes, Recipe, Samples, Task, by_row_and_column
from ..result import Result
from .paper import PAPER

BLUE, ORANGE, INK = "#0072B2", "#D55E00", "#222222"
POINTS = 61  # of the plane, in each direction
VECTORS, AGREE = "vectors", "of the plane like the SVM, %"


def plane(model: Any, X: Array, support: Array) -> dict[str, Any]:
    """Decision values over the plane that the rows span, and which rows are vectors."""
    low, high = X.min(axis=0), X.max(axis=0)
    low, high = low - 0.05 * (high - low), high + 0.05 * (high - low)
    across, up = (np.linspace(a, b, POINTS) for a, b in zip(low, high, strict=True))
    points = np.array([(a, b) for b in up for a in across])
    values = model.decision_function(points).reshape(POINTS, POINTS)
    return {
        "x": across.tolist(),
        "y": up.tolist(),
        "f": values.round(4).tolist(),
        "support": np.asarray(support).tolist(),
    }


def panel(ax: Any, X: Any, y: Any, at: dict[str, Any], wrong: Any = ()) -> None:
    """Rows by class, vectors in circles, flipped rows in squares, boundary and margins."""
    X, y = np.asarray(X), np.asarray(y)
    for label, colour, marker in ((-1, BLUE, "x"), (1, ORANGE, "o")):
        ax.scatter(*X[y == label].T, s=14, c=colour, marker=marker, linewidths=1)
    around = {"facecolors": "none", "edgecolors": INK, "linewidths": 1.1}
    ax.scatter(*X[at["support"]].T, s=70, **around)
    if len(wrong):
        ax.scatter(*X[list(wrong)].T, s=120, marker="s", **around)
    f = np.asarray(at["f"])
    for level, style in ((-1.0, "dashed"), (0.0, "solid"), (1.0, "dashed")):
        if f.min() < level < f.max():
            ax.contour(at["x"], at["y"], f, levels=[level], colors=INK, linewidths=1.3, linestyles=style)
    ax.set(xticks=[], yticks=[])


def of_panels(outcomes: Outcomes) -> Samples:
    """The numbers under ``"rows"`` of what tasks returned."""
    return by_row_and_column({name: outcome["rows"] for name, outcome in outcomes.items()})


# --- Figure 1: a polynomial kernel -------------------------------------------------------------------

ROWS, C_ALPHA = 200, 0.03
POLYNOMIAL: dict[str, Any] = {"kernel": "poly", "degree": 3, "gamma": 1.0, "coef0": 1.0, "C": 1.0}


def wave(seed: int) -> tuple[Array, Array]:
    """Two classes that overlap along a bent line."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (ROWS, 2))
    y = np.where(X[:, 1] + rng.normal(0, 0.35, ROWS) > X[:, 0] ** 3 / 2 - 0.6 * X[:, 0], 1, -1)
    return X, y


def both(seed: int) -> dict[str, Any]:
    """The support vector machine and the L0 machine with one kernel."""
    X, y = wave(seed)
    models = {"SVM": SVC(**POLYNOMIAL).fit(X, y), "L0": LpSVC(C_alpha=C_ALPHA, **POLYNOMIAL).fit(X, y)}
    planes = {name: plane(model, X, model.support_) for name, model in models.items()}
    signs = {name: np.sign(at["f"]) for name, at in planes.items()}
    rows = {
        name: {VECTORS: len(model.support_), AGREE: 100 * float(np.mean(signs[name] == signs["SVM"]))}
        for name, model in models.items()
    }
    return {"X": X.round(4).tolist(), "y": y.tolist(), "planes": planes, "rows": rows}


def tasks() -> Iterator[Task]:
    for seed in range(20):
        yield Task(f"draw {seed}", both, (seed,), quick=seed < 5)


def draw(figure: Any, result: Result) -> None:
    """The first draw."""
    outcome = result.outcomes["draw 0"]
    figure.set_size_inches(8.0, 4.2)
    for ax, (name, at) in zip(figure.subplots(1, 2), outcome["planes"].items(), strict=True):
        panel(ax, outcome["X"], outcome["y"], at)
        ax.set_title(f"{name}: {outcome['rows'][name][VECTORS]} vectors", fontsize=10)


FIGURE_1 = Recipe(
    name="huang-figure-1",
    paper=PAPER,
    title="Figure 1: the same boundary with fewer vectors",
    protocol=(
        f"A polynomial kernel of degree 3, C = 1, C_alpha = {C_ALPHA}, on {ROWS} rows that overlap along a bent line: "
        "the paper's rows are not known, and it prints no numbers. Numbers are means over 20 draws; the picture is "
        "the first. Solid: the boundary; dashed: where the decision is -1 and 1; circles: vectors."
    ),
    tasks=tasks,
    columns=(Column(VECTORS), Column(AGREE)),
    rows=("SVM", "L0"),
    gather=of_panels,
    draw=draw,
    row_name="machine",
)
