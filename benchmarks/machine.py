"""Facts about the machine, and the rates that set the floor of a fit's time."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits


@dataclass(frozen=True)
class Rates:
    """Of one thread."""

    gemm32: float  # flop / s
    gemm64: float
    exp32: float  # values / s
    bandwidth: float  # bytes / s

    def floor(self, n_vectors: int, n: int, d: int) -> float:
        """Seconds to compute the kernel row of each final vector once, in float32."""
        return n_vectors * n * (2 * d / self.gemm32 + 1 / self.exp32 + 4 / self.bandwidth)


def measure_rates() -> Rates:
    """Best of a few runs, a second or two in all."""
    with threadpool_limits(1):
        return Rates(
            gemm32=gemm_rate(np.float32),
            gemm64=gemm_rate(np.float64),
            exp32=exp_rate(),
            bandwidth=memory_rate(),
        )


def gemm_rate(dtype: type, n: int = 1536) -> float:
    A, B, C = np.ones((n, n), dtype), np.ones((n, n), dtype), np.empty((n, n), dtype)
    return 2 * n**3 / best_time(lambda: np.matmul(A, B, out=C))


def exp_rate(n: int = 2**15) -> float:
    """Inside the second-level cache."""
    x, out = np.linspace(-20, 0, n, dtype=np.float32), np.empty(n, np.float32)

    def many() -> None:
        for _ in range(200):
            np.exp(x, out=out)

    return 200 * n / best_time(many)


def memory_rate(n: int = 2**24) -> float:
    """a = b + c on arrays far larger than the caches; two reads and a write."""
    a, b, c = np.zeros(n), np.ones(n), np.ones(n)
    return 3 * 8 * n / best_time(lambda: np.add(b, c, out=a))


def best_time(work: Callable[[], object], runs: int = 5) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def facts() -> dict[str, str]:
    """What a reader needs to place the times."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = {
        "processor": processor(),
        "cores": str(cores),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
    }
    if hasattr(os, "getloadavg"):
        found["load average before the run"] = f"{os.getloadavg()[0]:.2f}"
    return found


def versions() -> dict[str, str]:
    """Of this library and of the packages that results depend on, where they are installed."""
    found = {}
    for name in ("slimsvm", "numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "libsvm-official", "torch"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def processor() -> str:
    """Model name, and the widest vector instructions."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = fields.get("flags", "").split()
    widest = next((name for flag, name in [("avx512f", "AVX-512"), ("avx2", "AVX2")] if flag in flags), "")
    return ", ".join(part for part in [fields.get("model name", platform.machine()), widest] if part)
