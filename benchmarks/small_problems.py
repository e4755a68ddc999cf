"""Fits of few rows beside `SVC`, where what is around the solver counts: ``python -m benchmarks.small_problems``.

The same problem, C, gamma and tol for both, one thread, in turns. Ratios are of the processor's time, and of the
clock: above 1, slimsvm is faster. With ``--write`` it goes into ``FEW_ROWS.md``, with the table of `benchmarks.norms`.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_moons
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from slimsvm import AnyNormSVC

from .norms import table as norms_table
from .pages import publish
from .report import Table

PAGE = Path(__file__).with_name("FEW_ROWS.md")
BAR = 1.0


def problems() -> Iterator[tuple[str, Any, Any, float]]:
    """Name, rows, labels, C."""
    X, y = load_digits(return_X_y=True)
    some = np.random.default_rng(0).permutation(len(y))[:300]
    yield "digits, 300 rows, 10 classes", X[some], y[some], 1.0
    yield "the same", X[some], y[some], 10.0
    yield "digits, 1797 rows, 10 classes", X, y, 1.0
    X, y = make_moons(300, noise=0.2, random_state=0)
    for n in (100, 300):
        yield f"moons, {n} rows", X[:n], y[:n], 1.0
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    for n in (100, 300):
        yield f"breast cancer, {n} rows", X[:n], y[:n], 1.0


def seconds(model: Any, X: Any, y: Any) -> tuple[float, float]:
    """Of the processor, and on the clock."""
    cpu, clock = time.process_time(), time.perf_counter()
    model.fit(X, y)
    return time.process_time() - cpu, time.perf_counter() - clock


def table(repeats: int = 60) -> Table:
    """Ratios of medians; ``!`` marks those below the bar."""
    rows = []
    for name, X, y, C in problems():
        gc.collect()
        count = repeats if len(y) <= 300 else max(5, repeats // 6)
        turns = [(*seconds(SVC(C=C), X, y), *seconds(AnyNormSVC(C=C), X, y)) for _ in range(count)]
        svc_cpu, svc, own_cpu, own = (median(times) for times in zip(*turns, strict=True))
        least = [min(times) for times in zip(*turns, strict=True)]
        ratio = svc_cpu / own_cpu
        rows.append(
            [
                name,
                f"{C:g}",
                f"{1e3 * svc_cpu:.2f} ms",
                f"{1e3 * own_cpu:.2f} ms",
                f"{ratio:.2f}{'!' if ratio < BAR else ''}",
                f"{least[0] / least[2]:.2f}",
                f"{svc / own:.2f}",
            ]
        )
    return Table(
        "Few rows: speed of a fit beside SVC",
        ["problem", "C", "SVC", "slimsvm", "ratio", "ratio of the quickest", "ratio on the clock"],
        rows,
        f"Processor's time, medians of {repeats} turns, one thread; bar {BAR:g}.",
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small_problems", description=__doc__)
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--write", action="store_true", help=f"both tables into {PAGE.name}")
    options = parser.parse_args()
    start, found = time.perf_counter(), [table(options.repeats)]
    if options.write:
        found.append(norms_table())
    for part in found:
        part.show()
    if options.write:
        minutes = (time.perf_counter() - start) / 60
        command = "python -m benchmarks.small_problems --write"
        publish(PAGE, "Few rows, and other norms", command, minutes, found)


if __name__ == "__main__":
    main()
