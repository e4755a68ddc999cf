"""Small machines on many rows: the solver beside liblinear, whole fits up to a million rows, predictions.

Rows are drawn from 24 Gaussians for each of two classes in 20 dimensions (`sets.gaussians`); the best possible error is
about 1 %.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from slimsvm import SlimSVC

from . import hinge, parts
from .measure import PeakMemory, typical_time
from .problems import Array
from .report import Table, number, times
from .sets import D, gaussians

GAMMA = 0.02
N_TEST = 20_000


# --- whole fits ---------------------------------------------------------------------------------


def fits(options: argparse.Namespace) -> Iterator[Table]:
    """`SlimSVC` as it comes, each size in a process of its own, rows in a file that is mapped into memory."""
    if options.quick:
        sizes = [(20_000, 10), (40_000, 10)]
    else:
        sizes = [(200_000, 50), (100_000, 100), (300_000, 100), (1_000_000, 100)]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for n, m in sizes:
            path = Path(folder) / f"{n}.dat"
            write_rows(path, n)
            command = [sys.executable, "-m", "benchmarks.scale", "--fit", str(path), str(n), str(m)]
            answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            path.unlink()
            found = json.loads(answer.splitlines()[-1])
            parts.say(f"{n:,} rows, {m} vectors: {found['seconds']:.1f} s")
            rows.append(
                [
                    f"{n:,}",
                    str(m),
                    f"{found['seconds']:.1f}",
                    f"{1e5 * found['seconds'] / n:.2f}",
                    f"{found['peak']:.0f}",
                    f"{found['before']:.0f}",
                    f"{n * D * 4 / 2**20:.0f}",
                    f"{found['error']:.2f}",
                    found["setting"],
                ]
            )
    header = ["rows", "vectors", "s", "s for 100k rows", "peak MB", "MB before", "MB of data", "error, %", "found"]
    note = (
        "Default settings, search included. float32 rows from a memory-mapped file; MB: resident memory of the whole "
        f"process, pages of the file included. Error on {N_TEST:,} other rows."
    )
    yield Table("Whole fits", header, rows, note)


def write_rows(path: Path, n: int, chunk: int = 100_000) -> None:
    """Rows to a file, never all of them in memory; chunk k has seed k."""
    with path.open("wb") as file:
        for start in range(0, n, chunk):
            file.write(gaussians(min(chunk, n - start), start // chunk)[0].tobytes())


def labels(n: int, chunk: int = 100_000) -> Array:
    """Those of `write_rows`."""
    return np.concatenate([gaussians(min(chunk, n - s), s // chunk)[1] for s in range(0, n, chunk)])


def fit_here(path: Path, n: int, m: int) -> None:
    """In the process of its own: fit, print what was measured."""
    X, y = np.memmap(path, dtype=np.float32, mode="r", shape=(n, D)), labels(n)
    model = SlimSVC(m)
    with PeakMemory() as memory:
        start = time.perf_counter()
        model.fit(X, y)
        elapsed = time.perf_counter() - start
    X_test, y_test = gaussians(N_TEST, 10**6)
    scaled = "learned" if hasattr(model.kernel_, "scales") else "fixed"
    found = {
        "seconds": elapsed,
        "peak": memory.highest / 2**20,
        "before": memory.before / 2**20,
        "error": 100 * float(np.mean(model.predict(X_test) != y_test)),
        "setting": f"C={model.C_:g}, scales {scaled}",
    }
    print(json.dumps(found))


# --- predictions --------------------------------------------------------------------------------


def predictions(options: argparse.Namespace) -> Iterator[Table]:
    """Time of a row in a batch, and alone."""
    X, y = gaussians(2_000 if options.quick else 10_000, 0, np.float64)
    X_test, y_test = gaussians(N_TEST, 10**6, np.float64)
    fixed = {"C": 3.0, "gamma": GAMMA}
    models = {"SVC": SVC(**fixed)} | {f"SlimSVC({m})": SlimSVC(m, scales="fixed", **fixed) for m in (10, 50)}
    rows, svc = [], 0.0
    with threadpool_limits(1):
        for name, model in models.items():
            model.fit(X, y)
            batch = typical_time(lambda model=model: model.predict(X_test)) / len(X_test)
            single = typical_time(lambda model=model: model.predict(X_test[:1]), most=500)
            svc = svc or batch
            error = 100 * np.mean(model.predict(X_test) != y_test)
            vectors = len(model.support_) if name == "SVC" else model.n_vectors_
            cells = [number(1e6 * batch), times(svc / batch), number(1e6 * single), f"{error:.2f}"]
            rows.append([name, str(vectors), *cells])
    header = ["model", "vectors", "µs a row", "faster than SVC", "µs a single row", "error, %"]
    yield Table("Prediction", header, rows, f"{len(X):,} training rows, batches of {N_TEST:,}, float64, one thread.")


MEASURES = {"hinge": hinge.measure, "fits": fits, "predictions": predictions}


def measure(options: argparse.Namespace) -> Iterator[Table]:
    """All of it, or what was asked for."""
    for name in options.only or MEASURES:
        yield from MEASURES[name](options)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=list(MEASURES), help="some of the tables of scale")


def main(argv: list[str] | None = None) -> None:
    parser = parts.parser("benchmarks.scale", __doc__, sets=False)
    add_arguments(parser)
    parser.add_argument("--fit", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.fit:
        fit_here(Path(options.fit[0]), int(options.fit[1]), int(options.fit[2]))
        return
    parts.run(options, "Scale", [measure])


if __name__ == "__main__":
    main()
