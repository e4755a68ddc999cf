"""Training of a machine over all rows: its binary problems share one set of kernel rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import Output, Task, outputs
from ..expansion import Expansion, Model, joined
from ..formulation import Array
from .solve import DualSolution


@dataclass(frozen=True)
class Segments:
    """The rows of a task in the order of their classes: the rows of a class are one segment of the core's machine."""

    task: Task
    order: Array

    @classmethod
    def of(cls, task: Task) -> Segments:
        """Grouped by class."""
        return cls(task, np.argsort(task.codes, kind="stable"))

    def machine(self, kernel: Any, cache_bytes: int) -> Any:
        """The core's solver over these rows."""
        lengths = np.bincount(self.task.codes, minlength=self.task.n_classes).tolist()
        return kernel.machine(self.task.X, self.order.astype(np.int64), lengths, cache_bytes, self.task.threads)

    def rows(self, output: Output) -> Array:
        """The rows of a binary problem, a segment after the other."""
        return np.concatenate([self.order[self.task.codes[self.order] == c] for c in output.members])


@dataclass(frozen=True)
class Subproblem:
    """One binary problem over the machine's segments in ``view``: rows of the task, their signs and weights."""

    name: str
    view: list[int]
    rows: Array
    y: Array
    weights: Array


def subproblems(task: Task, wanted: list[Output]) -> tuple[Segments, list[Subproblem]]:
    """All binary problems over the same segments."""
    segments = Segments.of(task)
    weights = task.weights
    found = []
    for output in wanted:
        rows = segments.rows(output)
        y = np.where(task.codes[rows] == output.positive, 1.0, -1.0)
        found.append(Subproblem(task.name(output), output.members, rows, y, weights[rows]))
    return segments, found


Solver = Callable[[Any, list[Subproblem]], list[DualSolution]]


def train(task: Task, kernel: Any, scheme: str, cache_bytes: int, solve: Solver) -> tuple[Model, list[DualSolution]]:
    """Solve every binary problem; the model keeps each vector once, whatever the number of problems it serves."""
    segments, problems = subproblems(task, outputs(task.n_classes, scheme))
    solutions = solve(segments.machine(kernel, cache_bytes), problems)
    used = [s.duals != 0 for s in solutions]
    rows, coef = joined(
        [p.rows[u] for p, u in zip(problems, used, strict=True)],
        [s.duals[u] for s, u in zip(solutions, used, strict=True)],
        np.argsort(segments.order),  # vectors of a class stay together
    )
    expansion = Expansion(kernel, task.X[rows], coef, np.array([s.bias for s in solutions]))
    model = Model(
        expansion,
        task.numbers[rows],
        np.array([s.objective for s in solutions]),
        np.array([s.gap for s in solutions]),
        np.array([s.n_iter for s in solutions]),
    )
    return model, solutions
