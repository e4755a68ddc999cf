"""The main job end to end: how small can a model be, and then out of Python. Run with ``make demo``.

Two sets: noisy half-moons (10,000 rows, two classes that overlap) and scikit-learn's handwritten digits (ten classes).
For each, `frontier` fits models of several sizes beside a full support vector machine; test rows that none of them has
seen judge them. The chosen model for the digits then goes into a file, a report and a C header, which is compiled and
run on the test rows. All of it is in the folder ``demo``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import shutil
import subprocess
import time
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_moons
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

import slimsvm
from slimsvm import Frontier, SlimSVC, VectorsDisplay, frontier
from slimsvm.report import write_report

FOLDER = Path("demo")
ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "measured" / "demo.json"  # read by python -m benchmarks.pages
PICTURE = ROOT / "docs" / "demo.png"
SEED = 0


@dataclass(frozen=True)
class Problem:
    name: str
    X_train: np.ndarray
    X_test: np.ndarray
    y_train: np.ndarray
    y_test: np.ndarray
    sizes: tuple[int, ...]


def problems() -> list[Problem]:
    """Rows that overlap, where a full machine keeps thousands of vectors; and images, of ten classes."""
    moons = train_test_split(*make_moons(15_000, noise=0.3, random_state=SEED), test_size=5_000, random_state=SEED)
    X, y = load_digits(return_X_y=True)
    digits = train_test_split(X / 16, y, test_size=0.4, stratify=y, random_state=SEED)
    return [
        Problem("noisy moons, 10,000 rows", *moons, (5, 10, 20)),
        Problem("digits, ten classes", *digits, (5, 10, 20, 40)),
    ]


# --- the table --------------------------------------------------------------------------------------------------------

HEADER = ("", "vectors", "test accuracy", "bytes", "predict a row")
README_HEADER = ("`make demo`", "vectors", "test accuracy", "bytes on a device", "a row of a batch")


def row_seconds(model: Any, X: np.ndarray) -> float:
    """For a row of a batch, one thread: the best of a few runs."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        model.predict(X)
        times.append(time.perf_counter() - start)
    return min(times) / len(X)


def table_rows(problem: Problem, found: Frontier) -> list[tuple[str, ...]]:
    """The full machine, and each size."""
    assert found.full is not None
    models = [("full SVM", found.full.model), *((f"{size} vectors", found.models[size]) for size in found.sizes)]
    chosen = f"{found.best_size()} vectors"
    rows = [(problem.name, *[""] * (len(HEADER) - 1))]
    for name, model in models:
        rows.append(
            (
                f"  {name}" + (", chosen" if name == chosen else ""),
                f"{model.n_vectors_:,}",
                f"{model.score(problem.X_test, problem.y_test):.1%}",
                f"{model.model_bytes_:,}",
                f"{row_seconds(model, problem.X_test) * 1e6:.2f} µs",
            )
        )
    return rows


def results_text(groups: list[list[tuple[str, ...]]]) -> str:
    """The table as a results file, with its date and the versions of the packages."""
    rows = [[f"{group[0][0]}: {name.strip()}", *cells] for group in groups for name, *cells in group[1:]]
    results = {
        "date": str(date.today()),
        "command": "make demo ARGS=--write",
        "computer": {"system": f"{platform.system()} {platform.machine()}", "Python": platform.python_version()},
        "versions": {name: version(name) for name in ("slimsvm", "numpy", "scipy", "scikit-learn", "matplotlib")},
        "tables": {"models of several sizes": {"header": README_HEADER, "rows": rows, "note": ""}},
    }
    return json.dumps(results, indent=1, ensure_ascii=False) + "\n"


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
            style = "bold" if "chosen" in row[0] else None
            table.add_row(*row, style=style, end_section=k == len(group) - 1)
    console = Console()
    console.width = max(console.width, 90)  # without a terminal rich would cut the table at 80 columns
    console.print(table)


# --- what is made of a model ------------------------------------------------------------------------------------------


def save_picture(
    paths: list[Path], moons: tuple[Problem, Frontier], digits: tuple[Problem, Frontier], results: str
) -> None:
    """Boundary and vectors in the plane, test error against size, and vectors as images.

    The picture names the results that it belongs to by their hash.
    """
    figure = plt.figure(figsize=(13, 4.6), layout="constrained")
    places = figure.subplots(1, 3, width_ratios=(1.15, 1, 1.05))
    (problem, found), (digits_problem, of_digits) = moons, digits
    small = found.models[found.sizes[0]]
    few = np.random.default_rng(SEED).permutation(len(problem.y_train))[:600]
    VectorsDisplay.from_estimator(small, problem.X_train[few], problem.y_train[few], ax=places[0])
    places[0].set_title(f"{small.n_vectors_} vectors and their boundary")
    draw_test_errors(places[1], digits_problem, of_digits)
    VectorsDisplay.from_estimator(of_digits.models[20], shape=(8, 8), ax=places[2])
    places[2].set_title("20 vectors for ten digits")
    metadata = {"Description": hashlib.sha256(results.encode()).hexdigest()}
    for path in paths:
        figure.savefig(path, dpi=100, metadata=metadata)
    plt.close(figure)


def draw_test_errors(axes: Any, problem: Problem, found: Frontier) -> None:
    """Error on the test rows by the number of vectors, and that of the full SVM."""
    assert found.full is not None
    errors = [100 * (1 - found.models[size].score(problem.X_test, problem.y_test)) for size in found.sizes]
    full = found.full.model
    axes.plot(found.sizes, errors, "o-", label="SlimSVC")
    of_full = 100 * (1 - full.score(problem.X_test, problem.y_test))
    axes.axhline(of_full, linestyle="--", color="gray", label=f"full SVM, {full.n_vectors_} vectors")
    axes.set(xlabel="vectors", ylabel="test error, %", ylim=(0, None), title="digits: error on test rows")
    axes.legend()


def run_header(header: slimsvm.export.CSource, X: np.ndarray) -> np.ndarray | None:
    """Labels that the compiled header gives; None where there is no compiler."""
    (FOLDER / "digits.h").write_text(header)
    (FOLDER / "digits_main.c").write_text(header.example)
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        return None
    command = [compiler, "-std=c99", "-O2", "digits_main.c", "-lm", "-o", "digits"]
    subprocess.run(command, cwd=FOLDER, check=True)
    rows = "\n".join(" ".join(f"{number:.9g}" for number in row) for row in X)
    done = subprocess.run([FOLDER / "digits"], input=rows, capture_output=True, text=True, check=True)
    return np.array([int(line.split()[0]) for line in done.stdout.splitlines()])


def leave_python(problem: Problem, found: Frontier) -> None:
    """A file, a report and C of the chosen model."""
    model = found.best()
    slimsvm.save(model, FOLDER / "digits.slim", metadata={"data": problem.name, "seed": SEED})
    same = slimsvm.load(FOLDER / "digits.slim").predict(problem.X_test) == model.predict(problem.X_test)
    made = {"command": "make demo", "data": "scikit-learn's digits, 60 % of the rows", "seed": SEED}
    write_report(
        FOLDER / "report.html",
        model,
        problem.X_test,
        problem.y_test,
        frontier=found,
        title="Handwritten digits in a few vectors",
        made=made,
        shape=(8, 8),
    )
    header = slimsvm.to_c(model, name="digits", dtype="int8", X=problem.X_test)
    labels = run_header(header, problem.X_test)
    print(f"\n{FOLDER}/report.html   open it in a browser: data, frontier, vectors, mistakes, size on a device")
    size = (FOLDER / "digits.slim").stat().st_size
    print(
        f"{FOLDER}/digits.slim   the model in a file of {size:,} bytes; loaded again, {same.mean():.0%} of labels same"
    )
    print(
        f"{FOLDER}/digits.h      the model in C, 8 bits: {header.report.flash:,} bytes of tables, no malloc, no float"
    )
    if labels is None:
        print("              (no C compiler is here to run it)")
        return
    right, agree = np.mean(labels == problem.y_test), np.mean(labels == model.predict(problem.X_test))
    print(f"              compiled and run on {len(labels)} test rows: {right:.1%} right, {agree:.1%} as in Python")


def main() -> None:
    parser = argparse.ArgumentParser("make demo", description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="also the table and the picture of the README")
    write = parser.parse_args().write
    print("Full support vector machines beside SlimSVC of several sizes, default settings; half a minute or so.")
    start = time.perf_counter()
    FOLDER.mkdir(exist_ok=True)
    slim = SlimSVC(probability=True)
    done = [(p, frontier(p.X_train, p.y_train, sizes=p.sizes, estimator=slim, random_state=SEED)) for p in problems()]
    with threadpool_limits(1):
        groups = [table_rows(*one) for one in done]
    show(groups)
    results = results_text(groups)
    if write:
        RESULTS.write_text(results, encoding="utf-8")
    save_picture([FOLDER / "demo.png", *([PICTURE] if write else [])], *done, results)
    print(f"{FOLDER}/demo.png      boundary, accuracy against size, vectors as images", end="")
    leave_python(*done[-1])
    print(f"All of it is in {FOLDER.resolve()}; {time.perf_counter() - start:.0f} s.")


if __name__ == "__main__":
    main()
