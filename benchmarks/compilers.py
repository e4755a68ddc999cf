"""The core as GCC and Clang compile it, side by side: python -m benchmarks.compilers

Builds the core with each compiler (or takes ``--cores``, files that were built before) and loads each in a process of
its own. The processes take turns at the same work, one at a time. The table has the processor time of each, the best of
``--turns``, and the first compiler's time over that of each other: 1 is as fast, less is slower.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from .problems import PROBLEMS

ROOT = Path(__file__).resolve().parents[1]
PRECISIONS = ("float32", "float64")
KERNELS = ("linear", "gaussian", "laplacian", "polynomial", "sigmoid")
SMALL = ("moons-100", "cancer-100")
FITTED = ("moons-300", "cancer-300", "moons-2k", "hard-3k", "usps", "mnist-10k", "a9a-10k-csr", "moons-10k")
SHORT = 0.1  # seconds over which a quick operation is repeated


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compilers", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--compilers", nargs="+", default=["g++", "clang++"], help="the first is what others are held to"
    )
    parser.add_argument("--cores", nargs="+", type=Path, help="built cores, one for each compiler")
    parser.add_argument("--isa", choices=("baseline", "avx2", "avx512"), help="instruction set; else the best there is")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", default="", help="work whose name has this in it")
    given = parser.parse_args()
    if given.isa:
        os.environ["SLIMSVM_ISA"] = given.isa
    cores = given.cores or [built(compiler) for compiler in given.compilers]
    if len(cores) != len(given.compilers):
        parser.error(f"{len(cores)} cores for {len(given.compilers)} compilers: name one for each")
    report(given.compilers, cores, given.turns, given.only)


def built(compiler: str) -> Path:
    """The core, compiled in build/compilers; quick if nothing has changed."""
    if shutil.which(compiler) is None or shutil.which("cmake") is None:
        sys.exit(f"{compiler} and cmake must be there: install them, or choose others with --compilers")
    folder = ROOT / "build" / "compilers" / compiler
    nanobind = subprocess.run(
        [sys.executable, "-m", "nanobind", "--cmake_dir"], capture_output=True, text=True, check=True
    )
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_CXX_COMPILER": compiler,
        "Python_EXECUTABLE": sys.executable,
        "nanobind_DIR": nanobind.stdout.strip(),
    }
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder), *(f"-D{name}={value}" for name, value in options.items())]
    for command in (configure, ["cmake", "--build", str(folder), "--target", "_core"]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("_core*.so"))


def report(compilers: list[str], cores: list[Path], turns: int, only: str) -> None:
    workers = [Worker(core) for core in cores]
    sets = [worker.ask("set") for worker in workers]
    print(f"processor time, best of {turns}; instruction sets: {', '.join(sets)}")
    print(
        "| work | "
        + " | ".join(f"{c} ms" for c in compilers)
        + " | "
        + " | ".join(f"{c} speed" for c in compilers[1:])
        + " |"
    )
    print("|---|" + "---:|" * (2 * len(compilers) - 1))
    lowest = dict.fromkeys(compilers[1:], np.inf)
    for name in names():
        if only not in name:
            continue
        times = np.min([[worker.ask(name) for worker in workers] for _ in range(turns)], axis=0)
        speeds = times[0] / times[1:]
        lowest = {c: min(low, s) for (c, low), s in zip(lowest.items(), speeds, strict=True)}
        cells = [f"{1e3 * t:.2f}" for t in times] + [f"{s:.2f}" for s in speeds]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    print("\nlowest speed: " + ", ".join(f"{c} {low:.2f}" for c, low in lowest.items()))
    for worker in workers:
        worker.close()


def names() -> Iterator[str]:
    """Kernel matrices, then fits and predictions of the problems; last a machine with learned vectors."""
    for kernel in KERNELS:
        for rows in ("dense", "csr"):
            for precision in PRECISIONS:
                yield f"kernel {kernel} {rows} {precision}"
    for problem in (*SMALL, *FITTED):
        for precision in PRECISIONS:
            yield f"fit {problem} {precision}"
            yield f"predict {problem} {precision}"
    yield "fit SlimSVC(20) hard-3k"


class Worker:
    """A process with one of the cores, which waits for work."""

    def __init__(self, core: Path):
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(str(core), theirs), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, name: str) -> Any:
        self._pipe.send(name)
        return self._pipe.recv()

    def close(self) -> None:
        self._pipe.send(None)
        self._process.join()


# --- in the process of a core -------------------------------------------------------------------


def serve(core: str, pipe: Connection) -> None:
    spec = importlib.util.spec_from_file_location("slimsvm._core", core)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["slimsvm._core"] = module  # the package finds this one
    spec.loader.exec_module(module)
    work: dict[str, Callable[[], object]] = {}
    while (name := pipe.recv()) is not None:
        if name == "set":
            pipe.send(module.instruction_set)
            continue
        if name not in work:
            work[name] = prepared(name, module)
        pipe.send(seconds(work[name]))


def seconds(work: Callable[[], object]) -> float:
    """Of the processor, for one call: as many as fill SHORT."""
    count, start = 0, time.process_time()
    while count == 0 or time.process_time() - start < SHORT:
        work()
        count += 1
    return (time.process_time() - start) / count


def prepared(name: str, core: Any) -> Callable[[], object]:
    kind, *rest = name.split()
    if kind == "kernel":
        return kernel_matrix(core, *rest)
    if rest[0] == "SlimSVC(20)":
        from slimsvm import SlimSVC

        data = PROBLEMS[rest[1]].load()
        return partial(SlimSVC(20, C=10.0, gamma=0.02, random_state=0).fit, data.X, data.y)
    from slimsvm import AnyNormSVC

    problem, precision = PROBLEMS[rest[0]], rest[1]
    data = problem.load()
    X, X_test = data.X.astype(precision), data.X_test.astype(precision)
    model = AnyNormSVC(C=problem.C, gamma=problem.width(), precision=precision, n_jobs=1)
    return partial(model.fit, X, data.y) if kind == "fit" else partial(model.fit(X, data.y).predict, X_test)


def kernel_matrix(core: Any, kernel: str, rows: str, precision: str) -> Callable[[], object]:
    """1000 x 1000 values over 200 columns, a tenth of them filled where rows are sparse."""
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 200)).astype(precision)
    if rows == "csr":
        csr = sp.csr_matrix(X * (rng.random(X.shape) < 0.1))
        given = core.sparse_rows(csr.data, csr.indices, csr.indptr, X.shape[1])
    else:
        given = core.dense_rows(X)
    parameters = {
        "linear": (),
        "gaussian": (0.01,),
        "laplacian": (0.01,),
        "polynomial": (0.01, 1.0, 3),
        "sigmoid": (0.01, 0.0),
    }
    out = np.empty((1000, 1000), precision)
    return partial(core.kernel_matrix, getattr(core, kernel)(*parameters[kernel]), given, given, out)


if __name__ == "__main__":
    main()
