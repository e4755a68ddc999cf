"""A full support vector machine beside SlimSVC at 5, 10, 20 and 50 vectors. Run with ``make demo``.

Every number in the table is measured here, on one thread: test error, vectors, bytes of the model in float32, time of
the fit (SlimSVC's with its search for C, gamma and scales), time to predict one row of a batch. The picture goes to
``demo.png``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
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

from slimsvm import AnyNormSVC, SlimSVC

SIZES = (5, 10, 20, 50)
RUNS = 5


@dataclass(frozen=True)
class Problem:
    name: str
    X_train: np.ndarray
    X_test: np.ndarray
    y_train: np.ndarray
    y_test: np.ndarray
    params: dict[str, float]  # of the classifiers over all rows, tuned by hand


@dataclass(frozen=True)
class Result:
    model: str
    error: float
    vectors: int
    size: int
    fit_seconds: float
    row_seconds: float


def problems() -> list[Problem]:
    """Handwritten digits (ten classes) and two noisy half-moons (two classes that overlap)."""
    digits = train_test_split(*load_digits(return_X_y=True), test_size=0.5, random_state=0)
    moons = train_test_split(*make_moons(15_000, noise=0.3, random_state=0), test_size=5_000, random_state=0)
    return [
        Problem("noisy moons, 10,000 rows", *moons, {"C": 10.0, "gamma": 2.0}),
        Problem("digits, 10 classes", *digits, {"C": 10.0, "gamma": 1e-3}),
    ]


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def float32_bytes(model: Any) -> int:
    """Vectors, coefficients, biases and (where learned) the scales of the inputs, four bytes each."""
    if isinstance(model, SVC):
        return 4 * (model.support_vectors_.size + model.dual_coef_.size + model.intercept_.size)
    scales = model.kernel_.scales
    learned = np.size(scales) if np.ndim(scales) else 0
    return 4 * (model.vectors_.size + model.vector_coef_.size + model.intercept_.size + learned)


def measure(name: str, model: Any, problem: Problem) -> Result:
    """Fit once, predict a few times."""
    fit = seconds(lambda: model.fit(problem.X_train, problem.y_train))
    model.predict(problem.X_test)  # warm-up
    predict = median(seconds(lambda: model.predict(problem.X_test)) for _ in range(RUNS))
    error = 1 - model.score(problem.X_test, problem.y_test)
    vectors = len(model.support_) if isinstance(model, SVC) else model.n_vectors_
    return Result(name, error, vectors, float32_bytes(model), fit, predict / len(problem.X_test))


def compare(problem: Problem) -> list[Result]:
    """The classifiers over all rows, then the slim ones."""
    with threadpool_limits(1):
        return [
            measure("sklearn SVC", SVC(**problem.params), problem),
            measure("AnyNormSVC", AnyNormSVC(**problem.params), problem),
            *(measure(f"SlimSVC({m})", SlimSVC(n_vectors=m), problem) for m in SIZES),
        ]


HEADER = ("", "error", "vectors", "bytes", "fit", "predict a row")


def table_rows(problem: Problem, results: list[Result]) -> list[tuple[str, ...]]:
    return [
        (problem.name, *[""] * (len(HEADER) - 1)),
        *(
            (
                "  " + r.model,
                f"{r.error:.1%}",
                f"{r.vectors:,}",
                f"{r.size:,}",
                f"{r.fit_seconds:.2f} s",
                f"{r.row_seconds * 1e6:.2f} µs",
            )
            for r in results
        ),
    ]


def show(groups: list[list[tuple[str, ...]]]) -> None:
    """With rich where it is installed, in plain text otherwise."""
    try:
        from rich import box
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        rows = [HEADER, *(row for group in groups for row in group)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    table = Table(box=box.HORIZONTALS)
    for k, name in enumerate(HEADER):
        table.add_column(name, justify="left" if k == 0 else "right", no_wrap=True)
    for group in groups:
        for k, row in enumerate(group):
            table.add_row(*row, style="bold" if "Slim" in row[0] else None, end_section=k == len(group) - 1)
    console = Console()
    console.width = max(console.width, 90)  # without a terminal rich would cut the table at 80 columns
    console.print(table)


def draw(ax: Any, model: Any, X: np.ndarray, y: np.ndarray, title: str) -> None:
    """Decision values as colour, boundary and margins as lines, training rows as dots, vectors as rings or crosses."""
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    grid = np.meshgrid(np.linspace(low[0], high[0], 400), np.linspace(low[1], high[1], 400))
    f = model.decision_function(np.column_stack([g.ravel() for g in grid])).reshape(grid[0].shape)
    extent = (low[0], high[0], low[1], high[1])
    ax.imshow(f, extent=extent, origin="lower", cmap="RdBu", vmin=-4, vmax=4, alpha=0.6, interpolation="bilinear")
    ax.contour(*grid, f, levels=[-1, 0, 1], colors="0.15", linestyles=["--", "-", "--"], linewidths=[1, 2, 1])
    for label, color in ((0, "#b2182b"), (1, "#2166ac")):
        ax.scatter(*X[y == label].T, s=12, color=color, label=f"class {label}")
    if isinstance(model, SlimSVC):
        inside = ((model.vectors_ >= low) & (model.vectors_ <= high)).all(axis=1)
        ax.scatter(
            *model.vectors_[inside].T, s=150, marker="X", color="gold", edgecolors="black", label="learned vectors"
        )
    else:
        rings = {"facecolors": "none", "edgecolors": "black", "linewidths": 0.8}
        ax.scatter(*model.vectors_.T, s=44, label="vectors (training rows)", **rings)
    ax.set(xticks=[], yticks=[], xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    ax.set_title(title, fontsize=10)


def save_picture(path: Path) -> Path:
    """The boundary over all rows and of three slim classifiers, on a set small enough to see every row."""
    X, y = make_moons(400, noise=0.25, random_state=1)
    X_test, y_test = make_moons(5000, noise=0.25, random_state=2)
    models = [AnyNormSVC(C=10, gamma=1.0), *(SlimSVC(n_vectors=m) for m in (5, 10, 20))]
    figure, axes = plt.subplots(2, 2, figsize=(11.5, 8.6), layout="constrained")
    for ax, model in zip(axes.flat, models, strict=True):
        model.fit(X, y)
        error = 1 - model.score(X_test, y_test)
        draw(ax, model, X, y, f"{type(model).__name__}: {model.n_vectors_} vectors, test error {error:.1%}")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    more = axes[0, 1].get_legend_handles_labels()
    handles, labels = handles + more[0][-1:], labels + more[1][-1:]
    for style, name in (("-", "boundary, f = 0"), ("--", "margins, f = ±1")):
        handles.append(plt.Line2D([], [], color="0.15", linestyle=style))
        labels.append(name)
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path.resolve()


def main() -> None:
    print("A full support vector machine beside SlimSVC with its default settings; one thread; a minute or so.")
    show([table_rows(problem, compare(problem)) for problem in problems()])
    print(f"Decision boundaries saved to {save_picture(Path('demo.png'))}")


if __name__ == "__main__":
    main()
