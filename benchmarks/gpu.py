"""Rows on a GPU: python -m benchmarks.gpu [--rows 10000000] [--large 100000000] [--threads 16] [--steps]

The same learning of vectors, on all rows, from the same start, on the device and on the threads of the CPU; then whole
fits. Rows are made on the device with torch. --steps: how the time of learning on the device divides, and no more.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from typing import Any
from unittest.mock import patch

import numpy as np

from slimsvm import SlimSVC
from slimsvm.bases import Learned
from slimsvm.basis.learning import learn
from slimsvm.kernels import Gaussian
from slimsvm.losses import SquaredHinge
from slimsvm.rows.device import DeviceFeatures, DeviceRows
from slimsvm.rows.labels import ClassLabels

D = 20
PIECE = 1_000_000


def made(n: int, device: str, seed: int = 0) -> tuple[Any, Any]:
    """Rows and labels of a teacher of thirty vectors, 2 % of them wrong."""
    import torch

    rng = torch.Generator(device).manual_seed(seed)
    teacher = np.random.default_rng(0)
    centres = torch.asarray(teacher.standard_normal((30, D)), dtype=torch.float32, device=device)
    heights = torch.asarray(teacher.standard_normal(30), dtype=torch.float32, device=device)
    heights -= heights.mean()
    X = torch.empty((n, D), dtype=torch.float32, device=device)
    y = torch.empty(n, dtype=torch.int8, device=device)
    for i in range(0, n, PIECE):
        part = X[i : i + PIECE]
        part.normal_(generator=rng)
        values = torch.exp(torch.cdist(part, centres) ** 2 * (-0.5 / D)) @ heights
        wrong = torch.rand(len(part), generator=rng, device=device) < 0.02
        y[i : i + PIECE] = (values > 0) ^ wrong
    return X, y


def lessons(codes: np.ndarray, cost: float) -> ClassLabels:
    """What the rows are to the one problem of two classes."""
    side = np.array([[-1.0], [1.0]])
    return ClassLabels(codes, np.broadcast_to(1.0, len(codes)), side, np.full((2, 1), cost))


def learned(X: Any, codes: np.ndarray, start: np.ndarray, given: Any, threads: int) -> dict[str, Any]:
    """Seconds, objective and iterations of learning on all rows."""
    kernel, calls = Gaussian(0.5 / D), []
    began = time.perf_counter()
    found = learn(
        kernel, X, lessons(codes, 1.0), start, SquaredHinge(), np.random.default_rng(0), max_iter=given.iterations,
        threads=threads, callback=lambda done, value: calls.append(value),
    )  # fmt: skip
    return {"s": time.perf_counter() - began, "W": found.value, "iterations": found.n_iter, "way": calls[::10]}


def stepped(X: Any, codes: np.ndarray, start: np.ndarray, given: Any) -> dict[str, tuple[int, float]]:
    """Times and seconds of each kind of step in learning, each waited for."""
    import torch

    spent: dict[str, list[float]] = {}
    wait = torch.cuda.synchronize if given.device == "cuda" else lambda: None

    def timed(name: str, work: Any) -> Any:
        wait()
        began = time.perf_counter()
        result = work()
        wait()
        spent.setdefault(name, []).append(time.perf_counter() - began)
        return result

    look, total = DeviceFeatures.set_features, DeviceFeatures.total
    with (
        patch.object(DeviceFeatures, "set_features", lambda *given: timed("features", lambda: look(*given))),
        patch.object(DeviceFeatures, "total", lambda *given: timed(type(given[1]).__name__, lambda: total(*given))),
    ):
        learned(DeviceRows(X, codes, np.broadcast_to(1.0, len(codes))), codes, start, given, 1)
    return {name: (len(each), sum(each)) for name, each in spent.items()}


def told(what: str, **facts: Any) -> None:
    """A line of the result."""
    print(json.dumps({"what": what, **facts}), flush=True)


def main() -> None:
    """All of it."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--large", type=int, default=100_000_000, help="on the device alone; 0: not")
    parser.add_argument("--vectors", type=int, default=100)
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", action="store_true", help="time each kind of step of learning on the device, only")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    cuda = given.device == "cuda"
    told("machine", device=torch.cuda.get_device_name() if cuda else given.device, torch=torch.__version__)
    X, y = made(given.rows, given.device)
    codes = y.cpu().numpy()
    ones = np.broadcast_to(1.0, given.rows)
    start = X[: given.vectors].cpu().numpy().astype(np.float64)
    small = min(200_000, given.rows)
    learned(DeviceRows(X[:small], codes[:small], ones[:small]), codes[:small], start, given, 1)  # libraries are loaded
    if given.steps:
        told("steps of learning on the device", rows=given.rows, **stepped(X, codes, start, given))
        return
    for turn in range(2):
        if cuda:
            torch.cuda.reset_peak_memory_stats()
        found = learned(DeviceRows(X, codes, ones), codes, start, given, 1)
        peak = torch.cuda.max_memory_allocated() / 2**30 if cuda else 0
        told("learning on the device", rows=given.rows, turn=turn, GiB=peak, **found)
    here = X.cpu().numpy()
    found = learned(here, codes, start, given, given.threads)
    told("learning on the CPU", rows=given.rows, threads=given.threads, **found)
    test = made(1_000_000, given.device, 1)
    fixed = {"C": 1.0, "gamma": 0.5 / D, "scales": "fixed"}
    whole = {**fixed, "basis": Learned(rows=given.rows, iterations=given.iterations)}
    for place, rows, labels in (("device", X, y), ("CPU", here, codes)):
        for name, options in (("vectors learned on all rows", whole), ("defaults", {})):
            told(f"fit on the {place}, {name}", rows=given.rows, **fitted(rows, labels, test, given, options))
    del here, X, y, rows, labels
    if not given.large:
        return
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    X, y = made(given.large, given.device)
    codes = y.cpu().numpy()
    found = learned(DeviceRows(X, codes, np.broadcast_to(1.0, given.large)), codes, start, given, 1)
    peak = torch.cuda.max_memory_allocated() / 2**30 if cuda else 0
    told("learning on the device", rows=given.large, GiB=peak, **found)
    told("fit on the device, defaults", rows=given.large, **fitted(X, y, test, given, {}))


def fitted(rows: Any, labels: Any, test: Any, given: Any, options: dict[str, Any]) -> dict[str, float]:
    """Seconds, certificate and error of a whole fit, and seconds of predictions."""
    began = time.perf_counter()
    model = SlimSVC(given.vectors, n_jobs=given.threads, **options).fit(rows, labels)
    seconds = time.perf_counter() - began
    began = time.perf_counter()
    model.predict(rows)[-1].item()
    predicted = time.perf_counter() - began
    return {
        "s": seconds,
        "objective": float(model.objective_[0]),
        "gap": float(model.duality_gap_[0]),
        "error": 1 - model.score(*test),
        "s of predictions": predicted,
    }


if __name__ == "__main__":
    main()
