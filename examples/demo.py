"""AnyNormSVC beside sklearn.svm.SVC: the same machine, fitted and timed side by side. Run with ``make demo``.

Both get the same C, gamma, tolerance and cache, and one thread. Every number in the table is measured here:
times are medians of a few runs, taken in turn after a warm-up. The picture goes to ``demo.png``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_moons
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from slimsvm import AnyNormSVC

RUNS = 5
BASE, OURS = "SVC", "AnyNormSVC"
SHARED = {"tol": 1e-3, "cache_size": 400}


@dataclass(frozen=True)
class Problem:
    name: str
    detail: str
    X_train: np.ndarray
    X_test: np.ndarray
    y_train: np.ndarray
    y_test: np.ndarray
    params: dict[str, float]


@dataclass(frozen=True)
class Result:
    problem: Problem
    model: str
    accuracy: float
    vectors: int
    fit_seconds: float
    rows_per_second: float
    gap: float


def problems() -> list[Problem]:
    """Handwritten digits (ten classes) and two noisy half-moons (two classes that overlap)."""
    digits = train_test_split(*load_digits(return_X_y=True), test_size=0.5, random_state=0)
    moons = train_test_split(*make_moons(15_000, noise=0.3, random_state=0), test_size=5_000, random_state=0)
    return [
        Problem("digits", "10 classes", *digits, {"C": 10.0, "gamma": 1e-3}),
        Problem("noisy moons", "10,000 rows", *moons, {"C": 10.0, "gamma": 2.0}),
    ]


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def svc_gap(svc: SVC, X: np.ndarray, y: np.ndarray) -> float:
    """Largest relative duality gap of the binary machines inside a fitted SVC, from its own coefficients.

    With decision values f + b and signed duals a: |f|^2 = a'f, the primal value is |f|^2 / 2 + C sum(slacks),
    the dual value is y'a - |f|^2 / 2.
    """
    pairs = list(combinations(range(len(svc.classes_)), 2))
    scores = svc.set_params(decision_function_shape="ovo").decision_function(X).reshape(len(X), len(pairs))
    first = np.concatenate([[0], np.cumsum(svc.n_support_)])
    worst = 0.0
    for p, (i, j) in enumerate(pairs):
        duals = np.zeros(len(X))
        for group, row in ((i, j - 1), (j, i)):
            own = slice(first[group], first[group + 1])
            duals[svc.support_[own]] = svc.dual_coef_[row, own]
        rows = np.isin(y, svc.classes_[[i, j]])
        positive = svc.classes_[j if len(pairs) == 1 else i]
        sign, score, dual = np.where(y == positive, 1.0, -1.0)[rows], scores[rows, p], duals[rows]
        half_norm = 0.5 * dual @ (score - svc.intercept_[p])
        upper = half_norm + svc.C * np.maximum(1 - sign * score, 0).sum()
        lower = sign @ dual - half_norm
        worst = max(worst, (upper - lower) / lower)
    return worst


def compare(problem: Problem) -> list[Result]:
    """Fit and predict with both, in turn, on one thread."""
    models = {
        BASE: SVC(**problem.params, **SHARED),
        OURS: AnyNormSVC(**problem.params, **SHARED, n_jobs=1),
    }
    fits: dict[str, list[float]] = {name: [] for name in models}
    predictions: dict[str, list[float]] = {name: [] for name in models}
    with threadpool_limits(1):
        for run in range(RUNS + 1):
            for name, model in models.items():
                fit = seconds(lambda model=model: model.fit(problem.X_train, problem.y_train))
                predict = seconds(lambda model=model: model.predict(problem.X_test))
                if run > 0:  # the first run warms up
                    fits[name].append(fit)
                    predictions[name].append(predict)
    svc, ours = models.values()
    vectors = {BASE: len(svc.support_), OURS: ours.n_vectors_}
    gaps = {
        BASE: svc_gap(svc, problem.X_train, problem.y_train),
        OURS: ours.duality_gap_.max(),
    }
    return [
        Result(
            problem,
            name,
            float(model.score(problem.X_test, problem.y_test)),
            vectors[name],
            median(fits[name]),
            len(problem.X_test) / median(predictions[name]),
            float(gaps[name]),
        )
        for name, model in models.items()
    ]


HEADER = ("data", "model", "accuracy", "vectors", "fit", "", "predict", "", "gap")


def table_rows(results: list[Result]) -> list[tuple[str, ...]]:
    """One row for each result; speed-ups are against the SVC of the same data, which comes first."""
    rows = []
    base = results[0]
    for r in results:
        first = r.model == BASE
        base = r if first else base
        rows.append(
            (
                r.problem.name if first else r.problem.detail,
                r.model,
                f"{r.accuracy:.2%}",
                f"{r.vectors:,}",
                f"{r.fit_seconds * 1e3:,.0f} ms",
                "" if first else f"{base.fit_seconds / r.fit_seconds:.1f}x",
                f"{r.rows_per_second:,.0f} rows/s",
                "" if first else f"{r.rows_per_second / base.rows_per_second:.1f}x",
                f"{r.gap:.0e}",
            )
        )
    return rows


def show(rows: list[tuple[str, ...]]) -> None:
    """With rich where it is installed, in plain text otherwise."""
    try:
        from rich import box
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        widths = [max(map(len, column)) for column in zip(HEADER, *rows, strict=True)]
        for row in (HEADER, *rows):
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    table = Table(box=box.HORIZONTALS)
    for k, name in enumerate(HEADER):
        table.add_column(name, justify="left" if k < 2 else "right", no_wrap=True)
    for row in rows:
        ours = row[1] == OURS
        table.add_row(*row, style="bold" if ours else None, end_section=ours)
    console = Console()
    console.width = max(console.width, 100)  # without a terminal rich would cut the table at 80 columns
    console.print(table)


def draw(ax: Any, model: AnyNormSVC, X: np.ndarray, y: np.ndarray, title: str) -> None:
    """Decision values as colour, boundary and margins as lines, training rows as dots, vectors circled."""
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    grid = np.meshgrid(np.linspace(low[0], high[0], 400), np.linspace(low[1], high[1], 400))
    f = model.decision_function(np.column_stack([g.ravel() for g in grid])).reshape(grid[0].shape)
    extent = (low[0], high[0], low[1], high[1])
    ax.imshow(f, extent=extent, origin="lower", cmap="RdBu", vmin=-4, vmax=4, alpha=0.6, interpolation="bilinear")
    ax.contour(*grid, f, levels=[-1, 0, 1], colors="0.15", linestyles=["--", "-", "--"], linewidths=[1, 2, 1])
    for label, color in ((0, "#b2182b"), (1, "#2166ac")):
        ax.scatter(*X[y == label].T, s=14, color=color, label=f"class {label}")
    circles = {"facecolors": "none", "edgecolors": "black", "linewidths": 0.8, "label": "vectors"}
    ax.scatter(*model.vectors_.T, s=48, **circles)
    ax.set(xticks=[], yticks=[])
    ax.set_title(f"{title}: {model.n_vectors_} vectors, duality gap {model.duality_gap_[0]:.0e}", fontsize=10)


def save_picture(path: Path) -> Path:
    """The boundary with each slack norm, on a set small enough to see every row."""
    X, y = make_moons(300, noise=0.25, random_state=1)
    figure, axes = plt.subplots(1, 2, figsize=(11.5, 4.9), layout="constrained")
    for ax, slack in zip(axes, ("l1", "l2"), strict=True):
        model = AnyNormSVC(slack=slack, C=10, gamma=1.0).fit(X, y)
        draw(ax, model, X, y, f'slack="{slack}"')
    handles, labels = axes[0].get_legend_handles_labels()
    for style, name in (("-", "boundary, f = 0"), ("--", "margins, f = ±1")):
        handles.append(plt.Line2D([], [], color="0.15", linestyle=style))
        labels.append(name)
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path.resolve()


def main() -> None:
    print("Fitting sklearn.svm.SVC and slimsvm.AnyNormSVC: same C, gamma, tol and cache, one thread each.")
    show(table_rows([result for problem in problems() for result in compare(problem)]))
    print(f"Decision boundaries saved to {save_picture(Path('demo.png'))}")


if __name__ == "__main__":
    main()
