"""The dual over all training points: the core's block SMO, the exact bias, the certificate."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from . import _core
from .formulation import Array, Slack, slacks


@dataclass(frozen=True)
class DualSolution:
    """Signed duals of one binary problem, its bias, and the proof of how well it is solved."""

    duals: Array
    bias: float
    objective: float  # of the primal: 1/2 |f|^2 + Phi(slacks)
    gap: float  # (primal - dual) / dual, in float64
    violation: float  # of the optimality conditions, in units of f
    n_iter: int
    converged: bool
    indefinite: bool  # a pair of negative curvature was met: the kernel is not positive semidefinite


class Progress:
    """Objective, gap, vectors, time: one updating line on a terminal, now and then a line elsewhere."""

    def __init__(self, label: str, stream: TextIO | None = None):
        self.label = label
        self.stream = stream or sys.stderr
        self.start = self.last = time.perf_counter()

    def __call__(self, steps: int, dual: float, gap: float, vectors: int) -> None:
        """Called by the core a few times a second."""
        if self.stream.isatty():
            self._write(steps, dual, gap, vectors, end="")
        elif time.perf_counter() - self.last > 5:
            self.last = time.perf_counter()
            self._write(steps, dual, gap, vectors, end="\n")

    def finish(self, solution: DualSolution) -> None:
        """The last state, and a new line."""
        dual = solution.objective / (1 + solution.gap)
        self._write(solution.n_iter, dual, solution.gap, int(np.count_nonzero(solution.duals)), end="\n")

    def _write(self, steps: int, dual: float, gap: float, vectors: int, end: str) -> None:
        elapsed = time.perf_counter() - self.start
        text = f"{self.label}: {steps} steps, dual {dual:.8g}, gap {gap:.1e}, {vectors} vectors, {elapsed:.1f} s"
        self.stream.write(f"\r{text:<78}{end}" if self.stream.isatty() else text + end)
        self.stream.flush()


def solve_dual(
    machine: _core.Machine,
    view: list[int],
    y: Array,
    slack: Slack,
    C: Array,
    constraint: str = "inequality",
    tol: float = 1e-3,
    max_iter: int = -1,
    double_rows: bool = False,
    progress: Progress | None = None,
) -> DualSolution:
    """Solve one binary problem over the machine's segments in ``view``; y is +-1, C one number per sample."""
    feasible = slack.feasible_set(y, C, constraint)
    found = machine.solve(
        view,
        y,
        feasible.lower,
        feasible.upper,
        feasible.ridge,
        feasible.side,
        feasible.total,
        tol,
        max_iter,
        double_rows,
        callback=progress,
    )
    duals, f = found["duals"], found["product"]
    bias = slack.bias(y - f, y, C, constraint)
    norm = float(duals @ f)
    primal = 0.5 * norm + slack.value(C, slacks(y, f, bias, constraint))
    dual = float(y @ duals) - 0.5 * norm - 0.5 * float(feasible.ridge @ duals**2)
    gap = max(primal - dual, 0.0) / dual if dual > 0 else np.inf
    solution = DualSolution(
        duals,
        bias,
        primal,
        gap,
        found["violation"],
        max(1, found["steps"]),
        gap <= tol,
        found["negative_curvature"],
    )
    if progress is not None:
        progress.finish(solution)
    return solution
