"""Memory beside the rows, in bytes a row: checks, samples and whole fits on rows in a memory-mapped file, and whole
fits of rows that are read a block at a time.

python -m benchmarks.memory. Each line is a process of its own. What counts is its private memory (RssAnon, Linux only)
above that before the stage, with rows, labels and weights there: pages of the file do not count, buffers of sorts do.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from slimsvm import SlimSVC, rows
from slimsvm.data.folds import RowGroups
from slimsvm.estimators import checked_data
from slimsvm.estimators.targets import ClassTargets
from slimsvm.problem import kernels

from . import parts
from .problems import Array
from .report import Table
from .scale import GAMMA, labels, write_rows
from .sets import D

BLOCK = 1 << 16  # rows that are read together
COPIES = 500  # rows that come twice, among those with copies
SAMPLES = (5_000, 20_000, 100_000)
# Rows by a generator of numbers, as they come; the same with a few copies; with weights and balanced classes.
KINDS = ("rows", "copies", "weights")


class PrivatePeak:
    """Most private memory inside the block, and how long it took; a thread looks every two milliseconds."""

    def __enter__(self) -> PrivatePeak:
        self.bytes = private_bytes()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()
        self.start = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self.start
        self.over.set()
        self.thread.join()

    def _look(self) -> None:
        while True:
            self.bytes = max(self.bytes, private_bytes())
            if self.over.wait(0.002):
                return


def private_bytes() -> int:
    """Of this process: memory that belongs to no file."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) * 1024


# --- the process of its own ---------------------------------------------------------------------


def stages(kind: str, X: Array, y: Array, weight: Array | None) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What a fit asks of all rows, one after the other."""
    model = SlimSVC(20, C=1.0, gamma="scale", scales="fixed", class_weight="balanced" if kind == "weights" else None)
    held: dict[str, Any] = {}
    yield "checks", lambda: held.update(dataset=checked_data.checked_dataset(model, X, y, weight, ClassTargets()))
    dataset = held["dataset"]
    yield "gamma='scale'", lambda: kernels.scale_gamma("scale", dataset.X, dataset.counts)
    yield "copies counted", lambda: RowGroups(dataset).mostly_duplicates
    for most in SAMPLES:
        yield f"sample of {most:,}", lambda most=most: dataset.sample(most, np.random.default_rng(0))


def whole_fit(kind: str, X: Array, y: Array, weight: Array | None) -> Iterator[tuple[str, Callable[[], Any]]]:
    """All of it; features are computed in each pass, so that nothing is theirs."""
    model = SlimSVC(20, C=1.0, gamma=GAMMA, scales="fixed", cache_size=100)
    yield "whole fit", lambda: model.fit(X, y, sample_weight=weight)


def measure_here(path: Path, n: int, kind: str, whole: bool) -> None:
    """Print the peak and the time of each stage."""
    warnings.filterwarnings("ignore", "learning ended at its limit")
    X, y = np.memmap(path, dtype=np.float32, mode="r", shape=(n, D)), labels(n)
    if kind == "copies":
        y[n - COPIES :] = y[:COPIES]
    weight = np.random.default_rng(2).uniform(0.1, 1.1, n) if kind == "weights" else None
    for _, stage in chain(*(some(kind, X[:2000], y[:2000], None) for some in (stages, whole_fit))):
        stage()  # libraries load what they need
    with contextlib.suppress(AttributeError):  # glibc: pages that are free but not given back would hide what is used
        ctypes.CDLL(None).malloc_trim(0)
    before = private_bytes()
    for name, stage in (whole_fit if whole else stages)(kind, X, y, weight):
        with PrivatePeak() as peak:
            stage()
        found = {"stage": name, "bytes": (peak.bytes - before) / n, "seconds": peak.seconds}
        print(json.dumps(found), flush=True)


def blocks_of(n: int, weighted: bool, classes: int) -> rows.Blocks:
    """Rows that are made anew in each pass: those of the first block, a little larger each time."""
    rng = np.random.default_rng(0)
    given, weight = rng.standard_normal((BLOCK, D), dtype=np.float32), rng.uniform(0.1, 1.1, BLOCK)

    def read() -> Iterator[tuple[Array, ...]]:
        for k, first in enumerate(range(0, n, BLOCK)):
            X = given[: n - first] * np.float32(1 + 1e-4 * k)
            y = np.digitize(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2], np.linspace(-1, 1, classes + 1)[1:-1])
            yield (X, y, weight[: len(X)]) if weighted else (X, y)

    return rows.from_blocks(read)


def measure_apart(n: int, weighted: bool, slack: str, classes: int) -> None:
    """Print the peak of a fit of rows that are read."""
    warnings.simplefilter("ignore")
    model = SlimSVC(20, C=1.0, gamma=GAMMA, scales="fixed", cache_size=1, slack=slack)
    model.fit(blocks_of(2000, weighted, classes))
    with PrivatePeak() as peak:
        model.fit(blocks_of(n, weighted, classes))
    print(json.dumps({"bytes": peak.bytes, "seconds": peak.seconds}), flush=True)


# --- the table ----------------------------------------------------------------------------------


def measure(options: argparse.Namespace) -> Iterator[Table]:
    """A column for each kind of rows."""
    n = options.rows or (200_000 if options.quick else 8_000_000)
    lines: dict[str, list[str]] = {}
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.dat"
            write_rows(path, n)
            if kind == "copies":
                X = np.memmap(path, dtype=np.float32, mode="r+", shape=(n, D))
                X[n - COPIES :] = X[:COPIES]
                X.flush()
                del X
            for whole in (False, True):
                command = [sys.executable, "-m", "benchmarks.memory", "--measure", str(path), str(n), kind, str(whole)]
                answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                for found in map(json.loads, answer.splitlines()):
                    parts.say(f"{kind}, {found['stage']}: {found['bytes']:.1f} bytes a row, {found['seconds']:.2f} s")
                    cells = [f"{found['bytes']:.1f}", f"{found['seconds']:.2f}"]
                    lines.setdefault(found["stage"], [found["stage"]]).extend(cells)
    header = ["stage", *(f"{kind}: {unit}" for kind in KINDS for unit in ("bytes a row", "s"))]
    note = (
        f"{n:,} float32 rows of {D} inputs in a mapped file. Highest private memory of the process up to the end of "
        f"the stage, less that with rows, labels and weights loaded. copies: {COPIES} rows come twice; weights: one "
        "for each row, and class_weight='balanced'. The samples themselves are part of it. Whole fit: "
        "SlimSVC(20, C=1, scales='fixed') with gamma given and features computed in each pass (cache_size=100)."
    )
    yield Table("Memory beside the rows", header, list(lines.values()), note)


def apart(options: argparse.Namespace) -> Iterator[Table]:
    """What the caller holds of each row, where rows are read a block at a time."""
    n = 100_000 if options.quick else 4_000_000
    lines = []
    for slack, classes in (("l2", 2), ("l1", 2), ("l2", 4), ("l1", 4)):
        cells = [f"{slack}, {classes} classes"]
        for weighted in (False, True):
            peaks = []
            for size in (n, 3 * n):
                given = [str(size), str(weighted), slack, str(classes)]
                command = [sys.executable, "-m", "benchmarks.memory", "--apart", *given]
                answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                peaks.append(json.loads(answer.splitlines()[-1])["bytes"])
            cells.append(f"{(peaks[1] - peaks[0]) / (2 * n):.1f}")
            parts.say(f"{cells[0]}, weights: {weighted}: {cells[-1]} bytes a row")
        lines.append(cells)
    note = (
        f"Highest private memory of whole fits of {n:,} and of {3 * n:,} rows that are made a block of {BLOCK:,} at a "
        "time: the difference, over that of the rows. SlimSVC(20, C=1, scales='fixed') with gamma given; features are "
        "not kept."
    )
    yield Table("Memory of the caller where rows are apart", ["", "bytes a row", "with weights"], lines, note)


def main(argv: list[str] | None = None) -> None:
    parser = parts.parser("benchmarks.memory", __doc__, sets=False)
    parser.add_argument("--rows", type=int, help="how many; 8 million unless said")
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--apart", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--only-apart", action="store_true", help="the second table alone")
    options = parser.parse_args(argv)
    if options.apart:
        size, weighted, slack, classes = options.apart
        measure_apart(int(size), weighted == "True", slack, int(classes))
        return
    if options.measure:
        path, n, kind, whole = options.measure
        measure_here(Path(path), int(n), kind, whole == "True")
        return
    parts.run(options, "Memory", [apart] if options.only_apart else [measure, apart])


if __name__ == "__main__":
    main()
