"""A fit on the workers of a local dask cluster: python -m benchmarks.clusters --workers 1,2 --rows 2000000

Rows are made on the workers. Each number of workers has a cluster of its own, in turns; what is reported is the best of
the turns. Bytes are those that all sockets of this machine sent to it meanwhile (Linux), so they count each way
between the caller, the scheduler and the workers.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .pages import machine_table, publish
from .report import Table

HERE = Path(__file__).parent
COLUMNS = 20


def block(seed: int, rows: int) -> np.ndarray:
    """Rows whose labels depend on all columns; the last column is the label."""
    rng = np.random.default_rng(seed)
    teacher = np.random.default_rng(0)
    centres, heights = teacher.standard_normal((30, COLUMNS)), teacher.standard_normal(30)
    X = rng.standard_normal((rows, COLUMNS)).astype(np.float32)
    values = np.zeros(rows)
    for centre, height in zip(centres, heights, strict=True):
        values += height * np.exp(-((X - centre) ** 2).sum(axis=1) * (0.5 / COLUMNS))
    label = values + 0.05 * values.std() * rng.standard_normal(rows) > np.median(values)
    return np.column_stack([X, label.astype(np.float32)])


def collection(rows: int, blocks: int) -> Any:
    """A dask array of such rows, in the workers' memory."""
    import dask
    import dask.array as da
    from distributed import wait

    sizes = np.diff(np.linspace(0, rows, blocks + 1).astype(int))
    made = [
        da.from_delayed(dask.delayed(block)(100 + k, int(size)), (int(size), COLUMNS + 1), dtype=np.float32)
        for k, size in enumerate(sizes)
    ]
    whole = da.concatenate(made).persist()
    wait(whole)
    return whole


def sent() -> int:
    """Bytes that this machine sent to itself."""
    try:
        lines = Path("/proc/net/dev").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split(":")[1].split()[8]) for line in lines if line.strip().startswith("lo:")), 0)


@contextmanager
def counted() -> Iterator[list[dict[str, float]]]:
    """Passes meanwhile: what was sent, and how long each took."""
    from slimsvm.rows.dask_rows import DaskRows

    whole, passes = DaskRows.added, []

    def added(self: Any, *given: Any, **named: Any) -> Any:
        before, start = sent(), time.perf_counter()
        found = whole(self, *given, **named)
        passes.append({"bytes": sent() - before, "s": time.perf_counter() - start})
        return found

    DaskRows.added = added
    try:
        yield passes
    finally:
        DaskRows.added = whole


def one(workers: int, given: Any) -> dict[str, Any]:
    """Seconds, passes and bytes of a fit."""
    from distributed import Client, LocalCluster

    from slimsvm import SlimSVC

    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0
        ) as cluster,
        Client(cluster),
    ):
        data = collection(given.rows, given.blocks)
        X, y = data[:, :COLUMNS].persist(), data[:, COLUMNS].persist()
        own = block(0, given.vectors)[:, :COLUMNS]
        basis = own if given.basis == "given" else given.basis
        setting = {"C": 1.0, "gamma": "scale", "scales": "fixed", "cache_size": 1e6, "n_jobs": given.threads}
        model = SlimSVC(given.vectors, basis, **setting)
        with counted() as passes, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            few = 64 * given.blocks
            model.fit(X[:few].rechunk((64, COLUMNS)), y[:few].rechunk(64))  # workers import what they need
            passes.clear()
            start = time.perf_counter()
            model.fit(X, y)
            seconds = time.perf_counter() - start
    return {
        "workers": workers,
        "s": seconds,
        "passes": len(passes),
        "s in passes": sum(p["s"] for p in passes),
        "MB a pass": float(np.median([p["bytes"] for p in passes])) / 1e6,
        "objective": float(model.objective_[0]),
        "gap": float(model.duality_gap_[0]),
    }


def workers_table(found: list[dict[str, Any]], given: Any) -> Table:
    """Speed by the number of workers, beside the least of them."""
    least, rows = found[0], []
    for row in found:
        more = row["workers"] / least["workers"]
        rows.append(
            [
                f"{row['workers']}",
                f"{row['s']:.1f}",
                f"{least['s'] / row['s'] / more:.2f}",
                f"{row['passes']}",
                f"{row['s in passes']:.1f}",
                f"{least['s in passes'] / row['s in passes'] / more:.2f}",
                f"{row['MB a pass']:.2f}",
                f"{row['objective']:.10g}",
            ]
        )
    note = (
        f"{given.rows:,} × {COLUMNS} float32 rows in {given.blocks} blocks, made on the workers; {given.vectors} "
        f"vectors ({given.basis}), squared hinge. `LocalCluster`, one thread a worker, {given.threads} of the caller. "
        f"The best of {given.turns} turns. Efficiency is the gain in speed over the gain in workers; that of passes "
        "leaves out what the caller does alone, such as the choice of the vectors."
    )
    header = ["workers", "s", "efficiency", "passes", "s in passes", "efficiency", "MB a pass", "objective"]
    return Table("Workers", header, rows, note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", default="1,2", help="numbers of workers to compare")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--vectors", type=int, default=100)
    parser.add_argument("--blocks", type=int, default=16)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--basis", default="given", choices=["given", "random", "kmeans", "learned"])
    parser.add_argument("--threads", type=int, default=1, help="of the caller")
    parser.add_argument("--output", type=Path, default=HERE / "CLUSTERS.md")
    given = parser.parse_args()
    start = time.perf_counter()
    counts = [int(count) for count in given.workers.split(",")]
    best: dict[int, dict[str, Any]] = {}
    for _ in range(given.turns):
        for workers in counts:
            row = one(workers, given)
            print(json.dumps(row), flush=True)
            if workers not in best or row["s"] < best[workers]["s"]:
                best[workers] = row
    found = [machine_table(), workers_table([best[count] for count in counts], given)]
    command = f"python -m benchmarks.clusters {' '.join(sys.argv[1:])}".strip()
    publish(given.output, "Rows on a cluster", command, (time.perf_counter() - start) / 60, found)


if __name__ == "__main__":
    main()
