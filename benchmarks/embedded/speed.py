"""Microseconds a row on the machine at hand: 20 vectors of 20 inputs."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from slimsvm import SlimSVC, to_c
from slimsvm.export import quantize

from ..machine import processor
from ..report import Table
from ..sets import gaussians
from .boards import KINDS, SUPPORT, Unit, called, unit_of

COMPILERS = ("gcc", "clang")
BAR = 0.5  # microseconds
RUNS, PAUSE = 9, 0.2  # other programs disturb a run for longer than it takes: several, and seconds between them
NOTE = (
    "-O2, one thread: median of 301 passes over 300 rows (and the fifth fastest pass), in that of nine runs with the "
    "lowest median: other programs were running. Learned scales: inputs have steps of their own. {processor}."
)


@dataclass(frozen=True)
class Timed:
    """Microseconds a row, the median of many passes and one of the fastest; and the answers."""

    median: float
    fast: float
    answers: np.ndarray


def timed(unit: Unit, X: np.ndarray, compiler: str = "gcc") -> Timed:
    """A unit compiled for this machine, and run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for header, text in unit.headers:
            (folder / header).write_text(text)
        (folder / f"unit{unit.suffix}").write_text(unit.source)
        kind = KINDS[unit.row]
        (folder / "rows").write_bytes(np.ascontiguousarray(X, dtype=kind).tobytes())
        compilers = {".cpp": {"gcc": "g++", "clang": "clang++"}[compiler], ".c": compiler}
        flags = [*unit.flags, "-O2", "-I", "."]
        called([compilers[unit.suffix], *flags, "-c", f"unit{unit.suffix}", "-o", "unit.o"], folder)
        main = [f"-DROW={unit.row}", f"-DLENGTH={X.shape[1]}", str(SUPPORT / "host.c")]
        called([compiler, "-std=gnu99", "-O2", *main, "unit.o", "-lm", "-o", "program"], folder)
        times = []
        for _ in range(RUNS):
            times.append(tuple(map(float, called(["./program"], folder).split())))
            time.sleep(PAUSE)
        return Timed(*min(times), np.fromfile(folder / "answers", dtype=np.intc))


def tables(quick: bool = False) -> Iterator[Table]:
    """For each compiler that is here."""
    X, y = gaussians(500 if quick else 2000, 0, np.float64)
    rows = []
    compilers = [name for name in COMPILERS if shutil.which(name)]
    for scales in ("fixed",) if quick else ("fixed", "learned"):
        model = SlimSVC(n_vectors=20, scales=scales, random_state=0).fit(X, y)
        small, float32, int8 = quantize(model), str(to_c(model)), str(to_c(model, dtype="int8"))
        ways = [
            ("float32", unit_of(float32), X[:300]),
            ("int8, float rows", unit_of(int8), X[:300]),
            ("int8, int16 rows", unit_of(int8, "int16"), small.grid.rows(X[:300])),
        ]
        for name, unit, inputs in ways:
            times = [timed(unit, inputs, compiler) for compiler in compilers]
            cells = [f"{found.median:.3f} ({found.fast:.3f})" for found in times]
            rows.append(
                [f"{scales} scales, {name}", *cells, "yes" if max(found.median for found in times) <= BAR else "no"]
            )
    if rows and compilers:
        title = f"Speed here: 20 vectors of 20 inputs, µs a row; bar {BAR}"
        yield Table(title, ["form", *compilers, "met"], rows, NOTE.format(processor=processor()))
