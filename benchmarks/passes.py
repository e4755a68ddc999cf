"""Passes over rows: value and gradient of learning, whole fits by the number of threads, and an earlier version beside.

python -m benchmarks.passes --before FOLDER: FOLDER is a checkout of the earlier version whose core was built into its
src/slimsvm. Versions take turns, each in a process of its own; figures are the best of the turns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from . import parts
from .one_pass import N_TEST
from .report import Table
from .scale import labels, write_rows
from .sets import D

SHAPES = ((60_000, 20, 100), (20_000, 256, 60), (3_500, 20, 100))  # rows, inputs, vectors
TURNS = 5


def asked(what: str, *given: Any, before: Path | None = None) -> dict[str, Any]:
    """What a process of its own measures, over what is installed or the sources of an earlier version."""
    sources = "" if before is None else str(before.resolve() / "src")
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.one_pass", sources, what, json.dumps(given)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True, env=env, cwd=Path(__file__).parents[1])
    return json.loads(answer.stdout.splitlines()[-1])


# --- tables -----------------------------------------------------------------------------------------------------


def gradients(options: argparse.Namespace) -> Iterator[Table]:
    """Both versions in turns."""
    rows = []
    for shape in SHAPES[-1:] if options.quick else SHAPES:
        now, before = [], []
        for _ in range(1 if options.quick else TURNS):
            now.append(asked("gradient", *shape)["ms"])
            if options.before is not None:
                before.append(asked("gradient", *shape, before=options.before)["ms"])
        ratio = f"{min(before) / min(now):.2f}×" if before else "–"
        rows.append([f"{shape[0]:,} × {shape[1]}", str(shape[2]), f"{min(now):.1f}"])
        rows[-1] += [f"{min(before):.1f}" if before else "–", ratio]
        parts.say(" ".join(rows[-1]))
    note = "Gaussian kernel, squared hinge, float32, one thread; vectors move as in learning. Best of all turns."
    yield Table("Value and gradient of learning", ["rows", "vectors", "ms", "ms before", "faster"], rows, note)


def fits(options: argparse.Namespace) -> Iterator[Table]:
    """Whole fits by the number of threads."""
    n, m = (20_000, 20) if options.quick else (1_000_000, 100)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.dat"
        write_rows(path, n)
        np.save(f"{path}.npy", labels(n))
        for search in (False, True):
            alone = None
            for threads in options.threads:
                found = asked("fit", str(path), n, m, threads, search)
                alone = alone or found["seconds"]
                line = ["with" if search else "without", str(threads), f"{found['seconds']:.1f}"]
                line += [f"{alone / found['seconds']:.1f}×", f"{found['error']:.2f}"]
                if options.before is not None and threads in options.before_threads:
                    earlier = asked("fit", str(path), n, m, threads, search, before=options.before)
                    line += [f"{earlier['seconds']:.1f}", f"{earlier['error']:.2f}"]
                    line += [f"{earlier['seconds'] / found['seconds']:.1f}×"]
                else:
                    line += ["", "", ""]
                rows.append(line)
                parts.say(" ".join(line))
    header = ["search", "threads", "s", "to one", "error, %", "s before", "error before, %", "faster"]
    note = f"`SlimSVC({m})`, {n:,} × {D} float32 rows in a memory-mapped file. Error on {N_TEST:,} other rows."
    yield Table("Whole fits", header, rows, note)


def main() -> None:
    """The tables that were asked for."""
    parser = parts.parser("benchmarks.passes", __doc__, sets=False)
    parser.add_argument("--before", type=Path, help="a checkout of an earlier version, its core built into src/slimsvm")
    parser.add_argument("--threads", type=_numbers, default=[1, 2], help="threads of whole fits, e.g. 1,2,8")
    parser.add_argument(
        "--before-threads", type=_numbers, default=[2], help="those with which the earlier version runs"
    )
    parser.add_argument("--parts", type=lambda text: text.split(","), default=["gradients", "fits"])
    options = parser.parse_args()
    every = {"gradients": gradients, "fits": fits}
    parts.run(options, "Passes over rows", [every[name] for name in options.parts])


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main()
