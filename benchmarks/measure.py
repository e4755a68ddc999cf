"""Measurements: each (problem, competitor) in a process of its own, the processes taking turns.

A worker loads the data and waits. The parent asks one worker after the other for a round (fit, predict), so
that never more than one computes and a noisy minute hits all competitors alike.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import statistics
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from .competitors import COMPETITORS, Competitor
from .objective import Quality, evaluate
from .problems import PROBLEMS, Problem

SLOW = 10.0  # seconds of a fit beyond which one round is enough
SHORT = 0.15  # seconds over which a quick operation is repeated
BATCH = 20_000  # rows for the rate of predictions, at least, where they are narrow
THREAD_VARIABLES = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"]


@dataclass
class Result:
    """What was measured of one (problem, competitor)."""

    rounds: list[dict[str, Any]] = field(default_factory=list)
    quality: Quality | None = None
    warnings: list[str] = field(default_factory=list)
    error: str | None = None

    def median(self, key: str) -> float:
        """Of the rounds; nan where there is none."""
        values = [r[key] for r in self.rounds]
        return statistics.median(values) if values else float("nan")

    @property
    def peak_mb(self) -> float:
        """Of the first fit of a fresh process, above what was there with the data loaded."""
        return self.rounds[0]["peak_mb"] if self.rounds else float("nan")


# --- the parent ---------------------------------------------------------------------------------


def run_problem(
    problem: Problem,
    competitors: list[Competitor],
    n_jobs: int,
    repeats: int,
    timeout: float,
    say: Callable[[str], None],
) -> dict[str, Result]:
    """Rounds in turn over the competitors, then all solutions judged together."""
    results = {c.name: Result() for c in competitors}
    workers: dict[str, Worker] = {}
    duals = {}
    try:
        for c in competitors:
            workers[c.name] = Worker(problem.name, c.name, n_jobs, timeout)
        for repeat in range(repeats):
            shift = repeat % len(competitors)  # another one goes first each time
            for name in [c.name for c in competitors[shift:] + competitors[:shift]]:
                result = results[name]
                if result.error or (result.rounds and result.rounds[0]["fit"] > SLOW):
                    continue
                answer = workers[name].round(first=repeat == 0)
                if "error" in answer:
                    result.error = answer["error"]
                    say(f"{problem.name}: {name} failed: {result.error}")
                    continue
                if repeat == 0:
                    duals[name] = answer.pop("duals")
                    result.warnings = answer.pop("warnings")
                result.rounds.append(answer)
                say(f"{problem.name}: {name}, round {repeat + 1}: {answer['fit']:.4g} s")
    finally:
        for worker in workers.values():
            worker.close()
    if duals:
        data = problem.load()
        with threadpool_limits(1):
            judged = evaluate(data.X, data.y, problem.C, problem.width(), list(duals.values()))
        for name, quality in zip(duals, judged, strict=True):
            results[name].quality = quality
    return results


class Worker:
    """The parent's end of a measuring process."""

    def __init__(self, problem: str, competitor: str, n_jobs: int, timeout: float):
        # Not a daemon: joblib allows those no threads.
        context = multiprocessing.get_context("spawn")
        self.timeout = timeout
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=work, args=(other, problem, competitor, n_jobs))
        with environment(dict.fromkeys(THREAD_VARIABLES, str(n_jobs))):
            self.process.start()
        other.close()
        self.ready = self._answer()  # loading is over before the next one starts

    def round(self, first: bool) -> dict[str, Any]:
        """One round's measurements, or {"error": why there are none}."""
        if "error" in self.ready:
            return self.ready
        with contextlib.suppress(OSError):  # a dead process is met in the answer
            self.pipe.send(first)
        return self._answer()

    def close(self) -> None:
        """End the process, politely first."""
        with contextlib.suppress(OSError):
            self.pipe.send(None)
        self.process.join(2)
        if self.process.is_alive():
            self.process.terminate()
            self.process.join()

    def _answer(self) -> dict[str, Any]:
        try:
            if self.pipe.poll(self.timeout):
                return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(2)
            return {"error": f"the process died (exit code {self.process.exitcode})"}
        self.process.terminate()
        return {"error": f"no answer within {self.timeout:g} s"}


@contextlib.contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Variables that a process started now inherits: BLAS libraries read them when they load."""
    before = {key: os.environ.get(key) for key in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


# --- the worker ---------------------------------------------------------------------------------


def work(pipe: Any, problem_name: str, competitor_name: str, n_jobs: int) -> None:
    """Load, warm up, then a round whenever asked; errors go to the parent as text."""
    try:
        bench = Bench(PROBLEMS[problem_name], COMPETITORS[competitor_name], n_jobs)
        pipe.send({})
        while (first := pipe.recv()) is not None:
            pipe.send(bench.round(first))
    except (KeyboardInterrupt, EOFError):
        pass
    except Exception as error:
        pipe.send({"error": f"{type(error).__name__}: {error}"})


def enough_rows(X: Any) -> Any:
    """Rows over and over where they are few and narrow: a rate needs a batch, the cost of a call has its own column."""
    if sp.issparse(X) or X.shape[1] > 64:
        return X
    return np.tile(X, (-(-BATCH // X.shape[0]), 1))


class Bench:
    """One competitor on one problem."""

    def __init__(self, problem: Problem, competitor: Competitor, n_jobs: int):
        data = problem.load()
        self.adapter = competitor.make(n_jobs)
        self.y, self.C, self.gamma = data.y, problem.C, problem.width()
        self.X = self.adapter.training_rows(data.X)
        batch = enough_rows(data.X_test)
        self.tests = [self.adapter.new_rows(batch.astype(t)) for t in (np.float64, np.float32)]
        self.n_test = batch.shape[0]
        self.single_rows = [self.adapter.new_rows(data.X_test[i : i + 1]) for i in range(20)]
        few = np.concatenate([np.flatnonzero(self.y == sign)[:20] for sign in (-1, 1)])
        warm = self.adapter.fit(self.adapter.training_rows(data.X[few]), self.y[few], self.C, self.gamma)
        self.adapter.predict(warm, self.single_rows[0])  # libraries load what they need lazily: not in our times
        problem.forget()

    def fit(self) -> Any:
        return self.adapter.fit(self.X, self.y, self.C, self.gamma)

    def round(self, first: bool) -> dict[str, Any]:
        """Times of this round; with the first one, the solution and its warnings."""
        gc.collect()
        with warnings.catch_warnings(record=True) as caught, PeakMemory() as memory:
            warnings.simplefilter("always")
            start = time.perf_counter()
            model = self.fit()
            elapsed = time.perf_counter() - start
        found = {"fit": elapsed if elapsed > SHORT else typical_time(self.fit), "peak_mb": memory.peak_mb}
        for key, X in zip(["rows64", "rows32"], self.tests, strict=True):
            found[key] = self.n_test / typical_time(lambda X=X: self.adapter.predict(model, X))
        turn = iter(self.single_rows * 1000)
        found["latency"] = typical_time(lambda: self.adapter.predict(model, next(turn)), most=500)
        if first:
            found["duals"] = self.adapter.duals(model, len(self.y))
            found["warnings"] = sorted({f"{w.category.__name__}: {w.message}" for w in caught})
        return found


def typical_time(operation: Callable[[], object], most: int = 50) -> float:
    """Median seconds of an operation repeated for a short while; one that takes long is run once."""
    times: list[float] = []
    while len(times) < most and sum(times) < SHORT:
        start = time.perf_counter()
        operation()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


class PeakMemory:
    """Largest resident memory inside the block, in MB above that at its start.

    Linux keeps a high-water mark that can be reset; elsewhere a thread samples every few milliseconds.
    """

    def __enter__(self) -> PeakMemory:
        self.process = psutil.Process()
        self.before = self.highest = self.process.memory_info().rss
        try:
            Path("/proc/self/clear_refs").write_text("5")
            self.sampler = None
        except OSError:
            self.over = threading.Event()
            self.sampler = threading.Thread(target=self._sample, daemon=True)
            self.sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.sampler is None:
            status = Path("/proc/self/status").read_text()
            self.highest = int(status.split("VmHWM:")[1].split()[0]) * 1024
        else:
            self.over.set()
            self.sampler.join()
        self.peak_mb = max(0, self.highest - self.before) / 2**20

    def _sample(self) -> None:
        while not self.over.wait(0.005):
            self.highest = max(self.highest, self.process.memory_info().rss)
