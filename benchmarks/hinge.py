"""Machines over given features: the solver of the hinge beside liblinear's, on the same rows and costs."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from slimsvm import SlimSVC, kernels, losses, regularizers
from slimsvm.rows.labels import RowLabels
from slimsvm.rows.memory import DenseFeatures
from slimsvm.solvers.primal import solve as primal

from .problems import Array
from .report import Table, seconds, times
from .sets import gaussians

GAMMA = 0.02
SLOW = 5.0  # seconds beyond which one run is enough
FEATURES = {"kernel norm": regularizers.KernelNorm(), "kernel values": regularizers.Identity()}


@dataclass(frozen=True)
class Solved:
    """Weights and bias, the least seconds of the runs, and whether the solver says that it is done."""

    w: Array
    bias: float
    seconds: float
    converged: str

    def objective(self, P: Array, y: Array, C: float, bias: float) -> float:
        return float(0.5 * self.w @ self.w + C * np.maximum(1 - y * (P @ self.w + bias), 0).sum())

    def with_bias(self, P: Array, y: Array, C: float) -> float:
        """What liblinear minimises: its bias is a weight as others are."""
        return self.objective(P, y, C, self.bias) + 0.5 * self.bias**2

    def best(self, P: Array, y: Array, C: float) -> float:
        """The objective whose bias is free, with the best one for these weights."""
        return self.objective(P, y, C, best_bias(P @ self.w, y))


def best_bias(f: Array, y: Array) -> float:
    """The least sum of slacks: its slope in b starts at minus the positive rows and rises by one at each y - f."""
    positive = np.count_nonzero(y > 0)
    return float(np.partition(y - f, positive - 1)[positive - 1])


def best_of_three(work: Callable[[], Any]) -> tuple[Any, float]:
    """The result and the least time; one run where that takes long."""
    elapsed: list[float] = []
    while len(elapsed) < 3 and max(elapsed, default=0) < SLOW:
        start = time.perf_counter()
        found = work()
        elapsed.append(time.perf_counter() - start)
    return found, min(elapsed)


def interior_points(P: Array, y: Array, C: float) -> Solved:
    tol = SlimSVC().tol
    Y, costs = y[:, None].astype(float), np.full((len(y), 1), C)
    rows = DenseFeatures(P, RowLabels(Y, costs))
    found, elapsed = best_of_three(lambda: primal.solve(rows, losses.Hinge(), tol=tol))
    gap = float(found.gap[0])
    verdict = f"{'yes' if gap <= tol else 'no'}: gap {gap:.0e}, {found.n_iter[0]} iterations"
    return Solved(found.w[:, 0], float(found.bias[0]), elapsed, verdict)


def liblinear(P: Array, y: Array, C: float) -> Solved:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        machine, elapsed = best_of_three(lambda: LinearSVC(loss="hinge", C=C, random_state=0).fit(P, y))
    unfinished = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    verdict = f"{'no' if unfinished else 'yes'}: {machine.n_iter_} iterations"
    return Solved(machine.coef_[0], float(machine.intercept_[0]), elapsed, verdict)


SOLVERS = {"slimsvm.primal": interior_points, "LinearSVC": liblinear}


def measure(options: argparse.Namespace) -> Iterator[Table]:
    """Each kind of features at a low and a high cost."""
    n, m = (5_000, 50) if options.quick else (50_000, 100)
    X, y = gaussians(n, 0, np.float64)
    kernel = kernels.Gaussian(GAMMA)
    Z = X[np.random.default_rng(0).choice(n, m, replace=False)]
    rows = []
    with threadpool_limits(1):
        for kind, regularizer in FEATURES.items():
            P = kernel(X, Z) @ regularizer.whitening(kernel(Z, Z))
            for C in (1.0, 100.0):
                rows += compare(f"{kind}, C={C:g}", P, y, C)
    header = ["features", "solver", "s", "objective", "above the best", "with b²/2", "converged", "faster"]
    note = (
        f"{n:,} rows, {m} random vectors: features whitened for the kernel norm, or kernel values as they are. One "
        "thread, default accuracies, best of three runs. Objective: |w|²/2 + C sum of slacks, best bias; "
        "with b²/2: the bias in the norm, which LinearSVC minimises."
    )
    yield Table("Hinge over the same features", header, rows, note)


def compare(title: str, P: Array, y: Array, C: float) -> list[list[str]]:
    found = {name: solver(P, y, C) for name, solver in SOLVERS.items()}
    least = min(solved.best(P, y, C) for solved in found.values())
    rows = []
    for name, solved in found.items():
        value = solved.best(P, y, C)
        rows.append(
            [
                title,
                name,
                seconds(solved.seconds),
                f"{value:.9g}",
                f"{value / least - 1:.1e}",
                f"{solved.with_bias(P, y, C):.9g}",
                solved.converged,
                times(found["LinearSVC"].seconds / solved.seconds),
            ]
        )
    return rows
