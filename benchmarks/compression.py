"""Fitted machines made small: error and agreement against the machine itself, and the time it takes.

Without data the small machine knows the large one's vectors alone; "X" are the training rows without labels.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

from papers.wu import SETTINGS
from slimsvm import compress

from . import keel, parts, sets
from .parts import mean, percent
from .report import Table
from .sets import Split

NAMES = ["usps", "letter", "satimage", *SETTINGS]
LETTER_ROWS, LETTER_C = 4000, 10.0  # the SVC then has about 2,600 vectors and 7 % error
HEADER = [
    "machine",
    "splits",
    "error (vectors)",
    "vectors kept",
    "reduced set",
    "no data",
    "X",
    "X, y",
    "s without, with X, y",
]
NOTE = (
    "Test error, % (agreement with the machine, %). Reduced set: method='reduced_set'; others: method='auto'. "
    "usps: SVC() on the images as they are; letter: SVC(C=10) on 4,000 standardised rows; satimage: SVC(C=3) on half "
    "of the standardised rows; others: C and gamma of Wu et al."
)


def halves(name: str, rows: int | None = None) -> Split:
    """A set in two parts, standardised on the first."""
    X, y = keel.whole(name)
    order = np.random.default_rng(0).permutation(len(y))
    first, rest = np.split(order, [rows or len(y) // 2])
    return Split(X[first], y[first], X[rest], y[rest]).mapped(StandardScaler())


def cases(name: str, options: argparse.Namespace) -> Iterator[tuple[Split, Any, list[Any]]]:
    """Splits, the machine, and how many vectors to keep."""
    if name == "usps":
        yield next(sets.splits("usps", 1)), SVC(), [100]
    elif name == "letter":
        yield halves("letter", LETTER_ROWS), SVC(C=LETTER_C), [30, 100, 300]
    elif name == "satimage":
        yield halves("satimage"), SVC(C=3.0), [12, 40]
    else:
        C, width = SETTINGS[name]
        for split in sets.splits(name, options.splits or 5):
            yield split, SVC(C=C, gamma=1 / width), [0.05, 0.1]


def compare(split: Split, model: Any, sizes: list[Any]) -> list[dict[str, Any]]:
    """Errors and agreement of one machine at each size."""
    model.fit(split.X, split.y)
    before = model.predict(split.X_test)
    ways: dict[str, dict[str, Any]] = {
        "reduced set": {"method": "reduced_set"},
        "no data": {},
        "X": {"X": split.X},
        "X, y": {"X": split.X, "y": split.y},
    }
    found = []
    for size in sizes:
        row: dict[str, Any] = {"machine": split.error(model), "vectors": len(model.support_), "size": size}
        for name, data in ways.items():
            start = time.perf_counter()
            small = compress(model, size, **data)
            row[f"s {name}"] = time.perf_counter() - start
            row[name] = split.error(small), 100 * float(np.mean(small.predict(split.X_test) == before))
        found.append(row | {"kept": small.n_vectors_})
    return found


def classifiers(options: argparse.Namespace) -> Iterator[Table]:
    """Two classes and several."""
    rows = []
    for name in parts.wanted(NAMES, options):
        if not (keel.present() if name in ("letter", "satimage") else sets.present()):
            parts.say(f"{name} is not here")
            continue
        found = [parts.quietly(compare, *case) for case in cases(name, options)]
        for at_size in zip(*found, strict=True):

            def cell(key: str, results: tuple = at_size) -> str:
                errors, same = zip(*(r[key] for r in results), strict=True)
                return f"{mean(errors):.2f} ({mean(same):.1f})"

            rows.append(
                [
                    name,
                    str(len(at_size)),
                    f"{mean(r['machine'] for r in at_size):.2f} ({mean(r['vectors'] for r in at_size):.0f})",
                    f"{mean(r['kept'] for r in at_size):.0f}",
                    *map(cell, ("reduced set", "no data", "X", "X, y")),
                    f"{mean(r['s no data'] for r in at_size):.1f}, {mean(r['s X, y'] for r in at_size):.1f}",
                ]
            )
        parts.say(f"{name} done")
    if rows:
        yield Table("Classifiers made small", HEADER, rows, NOTE)


def regression(options: argparse.Namespace) -> Iterator[Table]:
    """Friedman's first function with noise of deviation 1, 5 % of the vectors; three draws."""
    if options.sets:
        return
    rows = []
    for C in (1.0, 10.0):
        found = []
        for seed in range(options.splits or 3):
            X, y = make_friedman1(2000, noise=1.0, random_state=seed)
            X_test, y_test = make_friedman1(4000, noise=1.0, random_state=100 + seed)
            model = SVR(C=C).fit(X, y)
            ways = [{"method": "reduced_set"}, {}, {"X": X}, {"X": X, "y": y}]
            small = [compress(model, 0.05, **data) for data in ways]
            scores = [machine.score(X_test, y_test) for machine in (model, *small)]
            found.append((len(model.support_), small[0].n_vectors_, *scores))
        vectors, kept, *scores = np.mean(found, axis=0)
        rows.append([f"SVR(C={C:g})", f"{vectors:.0f}", f"{kept:.0f}", *(f"{score:.4f}" for score in scores)])
    header = ["machine", "vectors", "kept", "R²", "reduced set", "no data", "X", "X, y"]
    yield Table("Regressors made small", header, rows, "make_friedman1, noise 1, 2,000 rows; R² on 4,000 others.")


def one_class(options: argparse.Namespace) -> Iterator[Table]:
    """Rows on the same side."""
    if options.sets or not sets.present():
        return
    rows = []
    for name in ("banana", "image", "waveform"):
        for size in (10, 20):
            found = []
            for split in (s.mapped(StandardScaler()) for s in sets.splits(name, options.splits or 3)):
                model = OneClassSVM(nu=0.1).fit(split.X)
                before = model.predict(split.X_test)
                small = [compress(model, size, **data) for data in ({"method": "reduced_set"}, {}, {"X": split.X})]
                found.append([len(model.support_), *(100 * np.mean(m.predict(split.X_test) == before) for m in small)])
            columns = list(zip(*found, strict=True))
            rows.append([name, f"{mean(columns[0]):.0f}", str(size), *(percent(c) for c in columns[1:])])
    header = ["set", "vectors", "kept", "reduced set", "no data", "X"]
    yield Table("One-class machines made small", header, rows, "OneClassSVM(nu=0.1): test rows on the same side, %.")


def speed(options: argparse.Namespace) -> Iterator[Table]:
    """Predictions of the small machine beside those of the large one."""
    if not sets.present() or "usps" not in parts.wanted(NAMES, options):
        return
    split = next(sets.splits("usps", 1))
    model = SVC().fit(split.X, split.y)
    small = compress(model, 100)
    seconds = []
    for machine in (model, small):
        times = []
        for _ in range(5):
            start = time.perf_counter()
            machine.predict(split.X_test)
            times.append(time.perf_counter() - start)
        seconds.append(min(times))
    rows = [["usps, 100 vectors", f"{seconds[0]:.3f}", f"{seconds[1]:.4f}", f"{seconds[0] / seconds[1]:.0f}×"]]
    rows[0].append(f"{small.compression_.speedup:.1f}×")
    header = ["machine", "s SVC", "s small", "faster", "multiply-adds"]
    yield Table("Prediction", header, rows, f"{len(split.X_test)} test rows, one thread, best of five.")


def main(argv: list[str] | None = None) -> None:
    parser = parts.parser("benchmarks.compression", __doc__)
    options = parser.parse_args(argv)
    if options.quick:
        options = parts.settled(options, splits=1, sets=["banana", "image"])
    parts.run(options, "Compression", [classifiers, regression, one_class, speed])


if __name__ == "__main__":
    main()
