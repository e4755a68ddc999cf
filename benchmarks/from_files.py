"""Parquet larger than memory: seconds and memory of a fit by the number of rows.

python -m benchmarks.from_files [--rows 5000000,50000000] [--folder DIR]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from . import parts
from .report import Table
from .sets import D

PIECE = 1_000_000
VECTORS = 50


def made(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose class depends on four of the inputs, 2 % of the labels wrong."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D), dtype=np.float32)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] > 0
    return X, y ^ (rng.random(n, dtype=np.float32) < 0.02)


def write(folder: Path, n: int) -> None:
    """Files of a million rows each; those there are stay."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    for k in range(-(-n // PIECE)):
        path = folder / f"{k:05d}.parquet"
        if not path.exists():
            X, y = made(min(PIECE, n - k * PIECE), k)
            table = pa.table({f"x{j}": X[:, j] for j in range(D)} | {"label": y.astype(np.int8)})
            pq.write_table(table, path, compression="none", use_dictionary=False)


def fit(folder: str, n: int, threads: int) -> dict[str, float]:
    """One fit, in a process of its own."""
    from slimsvm import SlimSVC, rows

    files = sorted(Path(folder).glob("*.parquet"))[: -(-n // PIECE)]
    start = time.perf_counter()
    model = SlimSVC(VECTORS, n_jobs=threads).fit(rows.from_parquet(files, target="label"))
    seconds = time.perf_counter() - start
    high = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in KB, but on macOS in bytes
    X, y = made(100_000, 10**6)
    return {
        "seconds": seconds,
        "MB": high / (2**20 if sys.platform == "darwin" else 2**10),
        "error": 100 * float(np.mean(model.predict(X) != y)),
        "gap": float(model.duality_gap_.max()),
    }


def fits(options: argparse.Namespace) -> Iterator[Table]:
    """One fit for each number of rows."""
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for n in [200_000, 400_000] if options.quick else options.rows:
            write(folder, n)
            given = ["--fit", str(folder), str(n), str(options.threads)]
            command = [sys.executable, "-m", "benchmarks.from_files", *given]
            answer = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
            mine = json.loads(answer.stdout.splitlines()[-1])
            found.append([f"{n:,}", f"{mine['seconds']:.0f}", f"{1e6 * mine['seconds'] / n:.2f}", f"{mine['MB']:.0f}"])
            found[-1] += [f"{mine['error']:.2f}", f"{mine['gap']:.0e}"]
            parts.say(" ".join(found[-1]))
    note = (
        f"`SlimSVC({VECTORS}, n_jobs={options.threads})`, search included, of Parquet files with {D} float32 columns. "
        "MB: of the whole process, at its highest. Error on 100,000 other rows."
    )
    yield Table("Fits", ["rows", "s", "µs a row", "most MB", "error, %", "gap"], found, note)


def main() -> None:
    """The table, or one fit of it."""
    parser = parts.parser("benchmarks.from_files", __doc__, sets=False)
    parser.add_argument("--rows", type=_numbers, default=[5_000_000, 50_000_000], help="how many, e.g. 5e6,5e7")
    parser.add_argument("--folder", type=Path, help="for the files, 4 GB for 50 million rows; temporary unless said")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--fit", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        print(json.dumps(fit(options.fit[0], int(options.fit[1]), int(options.fit[2]))))
    else:
        parts.run(options, "Rows of Parquet files", [fits])


def _numbers(text: str) -> list[int]:
    return [int(float(part)) for part in text.split(",")]


if __name__ == "__main__":
    main()
