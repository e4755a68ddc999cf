"""How long a fit takes on machines of any size: a model of its cost, checked against measurements.

python -m benchmarks.plan prints the tables of docs/plan.md; --measure measures the constants of this machine first.

A pass costs ``max(flops / rate, bytes / bandwidth)`` of the slowest worker and a latency; what the caller does alone is
added. All constants are named below, each with where it comes from.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import parts
from .report import Table

MICRO = 1e-6


@dataclass(frozen=True)
class Core:
    """Rates of one thread; times are those of a row, in microseconds."""

    features: float  # multiplications and additions of features ``k(x, Z) T`` in float32, billions a second
    feature: float  # and beside them, for each vector: exponentials, loads and stores
    sums: float  # of Newton's matrices
    sum: float  # for each vector and output
    exact: float  # of kernel values in float64, for the certificate
    exact_vector: float
    exact_row: float
    key: float = 0.0011  # for each input: a key from a row's contents
    read: float = 0.010  # for each input: from an uncompressed Parquet file that is in the system's cache
    sort: float = 0.17  # the caller, each time that it goes through all keys in their order


# AMD EPYC with AVX-512, one thread: `--measure`, 2026-11-16. Reading: Parquet of 20 float32 columns, 0.20 µs a row of
# processor time. Sorting: MEMORY.md, seconds of a sample over its rows.
EPYC = Core(212, 0.00114, 133, 0.00157, 25.6, 0.00064, 0.045)


@dataclass(frozen=True)
class Device:
    """A GPU: a row's share of a value and gradient of learning, ``steps`` Newton steps included, in microseconds, with
    20 inputs and 100 vectors; and its memory."""

    gradient: float
    steps: int
    gigabytes: float


# H200, torch, float32: 111 ms for 10 million rows; five looks for equations, two for line searches (GPU.md).
H200 = Device(gradient=111e3 / 10e6, steps=7, gigabytes=141)


@dataclass(frozen=True)
class Cluster:
    """Workers of one thread each, or GPUs, and what connects them."""

    workers: int
    core: Core = EPYC
    threads: int = 1  # of the caller
    network: float = 1.25e9  # bytes a second of one machine: 10 Gbit/s
    latency: float = 0.05  # seconds of an empty pass with few tasks: measured, one machine
    task: float = 0.001  # seconds of the scheduler for each task: assumed
    efficiency: float = 1.0  # of cores that share a machine


@dataclass(frozen=True)
class Fit:
    """A machine over m vectors, and the passes that its coefficients take."""

    n: float
    d: int
    m: int
    outputs: int = 1
    share: float = 1.0  # of them in which a row takes part: 2 / classes where they are pairs
    equations: int = 3  # passes of Newton's method
    exact: int = 1  # passes in float64
    looks: int = 4  # passes in which rows are only read: the first one, and samples
    sorts: int = 4  # looks through all keys
    kept: bool = True  # features stay where they are computed

    # --- a row, in microseconds of one thread ---

    def feature_time(self, core: Core) -> float:
        flops = 2 * self.d * self.m + 2 * self.m**2
        return flops / core.features / 1e3 + core.feature * self.m

    def sum_time(self, core: Core) -> float:
        return self.outputs * (self.share * self.m**2 / core.sums / 1e3 + core.sum * self.m)

    def exact_time(self, core: Core) -> float:
        flops = 2 * self.d * self.m
        return flops / core.exact / 1e3 + core.exact_vector * self.m * self.outputs + core.exact_row

    def pass_time(self, core: Core) -> float:
        """All passes over features."""
        features = 1 if self.kept else self.equations
        return (
            features * self.feature_time(core)
            + self.equations * self.sum_time(core)
            + self.exact * self.exact_time(core)
        )

    # --- bytes ---

    @property
    def sums_bytes(self) -> float:
        """Of a worker's sums, in twice the digits: half of a symmetric matrix, moments and a loss for each output."""
        return 16 * self.outputs * ((self.m + 1) * (self.m + 2) / 2 + self.m + 2)

    def wire(self, workers: int) -> float:
        """Of a pass: sums of all workers but the one that adds them up, the total to the scheduler and on to the
        caller, and some 6 KB for each task."""
        return (workers - 1) * self.sums_bytes + self.sums_bytes + 6e3 * (workers + 1)

    @property
    def passes(self) -> int:
        return self.looks + self.equations + self.exact

    # --- seconds ---

    def learning(self, core: Core, threads: int = 1, iterations: int = 100) -> float:
        """Of the vectors, on a sample: most iterations on a part of it."""
        rows = min(max(10_000_000 // self.m, 100_000), 320_000)
        stages = ((rows / 16, 1.0), (rows / 4, 0.5), (rows, 0.2))
        pull = (4 * self.d * self.m + 2 * self.m**2) / core.features / 1e3 + core.feature * self.m
        each = self.feature_time(core) + self.sum_time(core) + pull
        return 1.1 * iterations * sum(size * part for size, part in stages) * each * MICRO / threads

    def caller(self, cluster: Cluster) -> float:
        """Keys through the network and through the caller's hands."""
        threads = cluster.threads * cluster.efficiency if cluster.threads > 1 else 1
        return self.sorts * self.n * cluster.core.sort * MICRO / threads

    def on(self, cluster: Cluster, blocks_each: int = 2) -> dict[str, float]:
        """Seconds by what takes them, rows being on the workers."""
        mine = self.n / cluster.workers / (cluster.efficiency if cluster.workers > 1 else 1)
        tasks = cluster.workers * blocks_each
        return {
            "passes": mine * self.pass_time(cluster.core) * MICRO,
            "latency": (self.equations + self.exact) * (cluster.latency + cluster.task * tasks),
            "sums": (self.equations + self.exact) * 16 * self.sums_bytes / cluster.network,
            "keys": 9 * self.n / cluster.network,
            "caller": self.caller(cluster),
        }

    def from_files(self, cluster: Cluster) -> dict[str, float]:
        """Seconds of one process that reads files in each pass, the next block while one is in use."""
        core, threads = cluster.core, cluster.threads
        read = core.read * self.d
        busy = replace(self, kept=False).pass_time(core) / (self.equations + self.exact) / threads
        return {
            "reading": self.n * MICRO * self.passes * read,
            "passes": self.n * MICRO * (self.equations + self.exact) * max(busy - read, 0.0),
            "caller": self.caller(cluster),
        }


# --- measuring --------------------------------------------------------------------------------------------------

SHAPES = ((100_000, 20, 100), (100_000, 20, 50), (100_000, 20, 20), (50_000, 100, 100), (50_000, 20, 200))


def measured() -> Core:
    """Constants of one thread of this machine, from passes over a few shapes; processor time."""
    found = [_times(*shape) for shape in SHAPES]
    d, m = (np.array([shape[k] for shape in SHAPES], dtype=float) for k in (1, 2))
    features, sums, exact = (np.array([times[k] for times in found]) for k in range(3))
    per_flop, per_vector = _nonnegative(np.column_stack([2 * d * m + 2 * m**2, m]), features)
    per_square, per_output = _nonnegative(np.column_stack([m**2, m]), sums)
    per_exact, exact_vector, row = _nonnegative(np.column_stack([2 * d * m, m, np.ones(len(m))]), exact)
    rates = [1e-3 / max(t, 1e-12) for t in (per_flop, per_square, per_exact)]
    return replace(
        EPYC,
        features=rates[0],
        feature=per_vector,
        sums=rates[1],
        sum=per_output,
        exact=rates[2],
        exact_vector=exact_vector,
        exact_row=row,
    )


def _nonnegative(A: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Least squares of relative errors."""
    from scipy.optimize import nnls

    return nnls(A / times[:, None], np.ones(len(times)))[0]


def _times(n: int, d: int, m: int) -> tuple[float, float, float]:
    """Microseconds of a row: features, sums over features that are kept, and the certificate's pass."""
    from slimsvm.problem.kernels import Gaussian
    from slimsvm.problem.losses import SquaredHinge
    from slimsvm.problem.regularizers import KernelNorm
    from slimsvm.rows.labels import RowLabels
    from slimsvm.rows.memory import feature_source
    from slimsvm.solvers.primal.newton import newton
    from slimsvm.solvers.primal.passes import CertificateSums, Equations

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)).astype(np.float32)
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0, 1.0, -1.0)[:, None]
    labels, kernel, loss = RowLabels(y, np.ones((n, 1))), Gaussian(1 / d), SquaredHinge()
    Z, which = X[:m].astype(np.float64), np.array([0])
    T = KernelNorm().whitening(kernel(Z, Z))
    computed, kept = (feature_source(kernel, X, labels, Z, T, np.float32, 1, keep) for keep in (0, 1e12))
    V = newton(kept, loss, None, 1e-6).V
    plain = feature_source(kernel, X, labels, Z, np.eye(m), np.float64, 1, 0)
    coef = np.hstack([V[:, :-1] @ T.T, V[:, -1:]])
    whole = _best(lambda: computed.total(Equations(loss), which, V))
    sums = _best(lambda: kept.total(Equations(loss), which, V))
    exact = _best(lambda: plain.total(CertificateSums(loss), which, coef, (), np.zeros(1), 1e-16))
    return (whole - sums) / n * 1e6, sums / n * 1e6, exact / n * 1e6


def _best(work: Callable[[], Any], turns: int = 5) -> float:
    work()
    times = []
    for _ in range(turns):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


# --- tables -----------------------------------------------------------------------------------------------------


def constants(core: Core) -> Table:
    rows = [
        ["features, 2dm + 2m²", f"{core.features:.0f} Gflop/s", f"{1e3 * core.feature:.2f} ns a vector"],
        ["sums, m² for each output", f"{core.sums:.0f} Gflop/s", f"{1e3 * core.sum:.2f} ns a vector and output"],
        [
            "certificate, 2dm in float64",
            f"{core.exact:.0f} Gflop/s",
            f"{1e3 * core.exact_vector:.2f} ns a vector, {1e3 * core.exact_row:.0f} ns a row",
        ],
        ["a key", "", f"{1e3 * core.key:.1f} ns an input"],
        ["reading Parquet", "", f"{1e3 * core.read:.0f} ns an input"],
        ["the caller, each look through the keys", "", f"{1e3 * core.sort:.0f} ns a row"],
    ]
    return Table("One thread", ["", "rate", "and beside it"], rows)


def checked(core: Core) -> Table:
    """What was measured, beside what the model says."""
    million = Fit(1e6, 20, 100)
    small = _worked(Fit(2e6, 20, 100, equations=4).on(Cluster(1, core)))
    gradient = (million.learning(core) / 1.1 / 100) / (100_000 / 16 + 50_000 / 4 + 100_000 * 0.2) * 60_000
    whole = million.learning(core) + million.n * MICRO * (million.pass_time(core) + core.sort + 20 * core.key) + 0.4
    given = Fit(20e6, 20, 100, equations=4)
    one, eight = (_worked(given.on(Cluster(count, core))) for count in (1, 8))
    files = [Fit(n, 20, 50, equations=3, exact=1, looks=6).from_files(Cluster(1, core, threads=2)) for n in (5e6, 50e6)]
    slope = (sum(files[1].values()) - sum(files[0].values())) / 45e6
    busy = _file_work(core)
    lines = [
        ("value and gradient, 60,000 rows, m = 100, s", gradient, 0.0371, "PASSES.md"),
        ("whole fit in memory, 1M rows, m = 100, s", whole, 5.7, "PASSES.md"),
        ("learning on 100M rows, one H200, s", 67 * 100e6 * H200.gradient * MICRO, 73.3, "GPU.md"),
        ("5 passes, 20M rows, 1 worker, s", one, 34.0, "CLUSTERS.md, another processor"),
        ("5 passes, 20M rows, 8 workers, s", eight, 5.8, "CLUSTERS.md, another processor"),
        ("5 passes, 2M rows, 1 worker, s", small, 8.1, "CLUSTERS.md, load 7.6"),
        ("Parquet, m = 50, µs a further row", 1e6 * slope, 5.73, "FILES.md, load 4.9"),
        ("the same, processor time", busy, FILE_WORK, "fits of 2M and 8M rows"),
        ("bytes of a pass, 16 blocks, 1 worker, MB", million.wire(1) / 1e6, 0.10, "CLUSTERS.md"),
        ("bytes of a pass, 16 blocks, 8 workers, MB", million.wire(8) / 1e6, 0.75, "CLUSTERS.md"),
    ]
    rows = [[what, f"{a:.3g}", f"{b:.3g}", f"{a / b:.2f}", where] for what, a, b, where in lines]
    return Table("Computed and measured", ["", "computed", "measured", "ratio", "from"], rows)


FILE_WORK = 3.67  # µs of processor time for a further row of a Parquet file: SlimSVC(50, n_jobs=2), search included


def _file_work(core: Core) -> float:
    """The same, computed: all work, whoever does it meanwhile."""
    fit = Fit(1e6, 20, 50, equations=3, exact=1, looks=6, kept=False)
    return fit.passes * core.read * 20 + fit.pass_time(core) + fit.sorts * core.sort + 20 * core.key


def _worked(seconds: dict[str, float]) -> float:
    return seconds["passes"] + seconds["latency"] + seconds["sums"]


def predicted(core: Core) -> Table:
    """A billion rows of 20 inputs."""
    header = ["", "passes", "latency", "sums", "keys", "caller", "in all, s", "most of it"]
    far = Cluster(100, core, threads=16, efficiency=0.75)
    cases = {
        "l2, m = 100, 100 workers": (Fit(1e9, 20, 100), far),
        "the same, caller of one thread": (Fit(1e9, 20, 100), replace(far, threads=1)),
        "l1, m = 100": (Fit(1e9, 20, 100, equations=12, exact=3, looks=5), far),
        "l2, 10 classes in pairs, m = 100": (Fit(1e9, 20, 100, outputs=45, share=0.2), far),
        "l2, m = 100, features not kept": (Fit(1e9, 20, 100, kept=False), far),
        "l2, m = 20": (Fit(1e9, 20, 20), far),
    }
    rows = []
    for name, (fit, cluster) in cases.items():
        seconds = fit.on(cluster)
        worst = max(seconds, key=lambda part: seconds[part])
        cells = [f"{seconds[part]:.3g}" for part in header[1:6]]
        rows.append([name, *cells, f"{sum(seconds.values()):.0f}", worst])
    note = "All computed; rows are on the workers. Beside it comes what samples take, the same for any number of rows."
    return Table("A billion rows on 100 workers", header, rows, note)


def devices(core: Core, device: Device = H200) -> Table:
    """GPUs, by the gradient that was measured on one."""
    rows = []
    a_pass = device.gradient / (device.steps + 2)  # features once, sums for each step, the gradient
    for name, n, count in (
        ("10M rows, learned on all, 60 iterations", 10e6, 1),
        ("100M rows, learned on all, 60 iterations", 100e6, 1),
        ("1,000M rows, learned on all, 60 iterations", 1e9, 8),
    ):
        mine, calls = n / count, 60 * 1.1
        work = calls * mine * device.gradient * MICRO
        latency = 0.0 if count == 1 else calls * (device.steps + 1) * Cluster(count).latency
        rows.append([name, str(count), f"{work:.3g}", f"{latency:.3g}", f"{mine * (80 + 400) / 1e9:.0f}"])
    mine = 1e9 / 8
    work, latency = 6 * mine * a_pass * MICRO, 6 * Cluster(8).latency
    rows.append(
        ["1,000M rows, coefficients only", "8", f"{work:.3g}", f"{latency:.3g}", f"{mine * (80 + 400) / 1e9:.0f}"]
    )
    note = (
        f"Computed from {1e3 * device.gradient:.1f} ns a row for a value and gradient. Latency: passes through dask, "
        "one for each Newton step. GB: rows and features of one GPU, float32."
    )
    return Table("GPUs", ["20 inputs, 100 vectors", "GPUs", "work, s", "latency, s", "GB each"], rows, note)


def tables(options: argparse.Namespace) -> Iterator[Table]:
    core = measured() if options.measure else EPYC
    yield constants(core)
    yield checked(core)
    yield predicted(core)
    yield devices(core)


def main() -> None:
    parser = parts.parser("benchmarks.plan", __doc__, sets=False)
    parser.add_argument("--measure", action="store_true", help="measure the constants of this machine")
    options = parser.parse_args()
    parts.run(options, "How far it goes", [tables])


if __name__ == "__main__":
    main()
