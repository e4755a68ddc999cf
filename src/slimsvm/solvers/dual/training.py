"""Training over all rows: the binary problems of a classifier share one kernel matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ...data.dataset import Dataset, Output, outputs
from ...linalg.arrays import Array
from ...model.expansion import Expansion, Model, join_outputs
from .solve import DualSolution


@dataclass(frozen=True)
class RowsByClass:
    """Rows in the order of their classes: the rows of a class are one segment of the core's kernel matrix."""

    dataset: Dataset
    order: Array
    lengths: list[int]

    @classmethod
    def of(cls, dataset: Dataset) -> RowsByClass:
        """The rows of a data set, grouped by class."""
        lengths = np.bincount(dataset.codes, minlength=dataset.n_classes).tolist()
        return cls(dataset, np.argsort(dataset.codes, kind="stable"), lengths)

    def kernel_matrix(self, kernel: Any, cache_bytes: int) -> Any:
        """The kernel matrix of the core over these rows, with one segment for each class."""
        order = self.order.astype(np.int64, copy=False)
        return kernel.training_matrix(self.dataset.X, order, self.lengths, cache_bytes, self.dataset.threads)

    def rows(self) -> list[Array]:
        """The rows of each segment."""
        ends = list(accumulate(self.lengths))
        return [self.order[end - length : end] for end, length in zip(ends, self.lengths, strict=True)]


class Subproblem(NamedTuple):
    """One binary problem over some segments of a kernel matrix: rows of the data, their signs and weights."""

    dataset: Dataset
    output: Output
    segments: list[int]
    rows: Array
    y: Array
    weights: Array

    @property
    def name(self) -> str:
        """Name of the problem in messages."""
        return self.dataset.name(self.output)


def subproblems(dataset: Dataset, wanted: list[Output]) -> tuple[RowsByClass, list[Subproblem]]:
    """All binary problems over the rows by class; their arrays are slices of a few long ones."""
    grouped = RowsByClass.of(dataset)
    by_class, lengths = grouped.rows(), grouped.lengths
    members = [output.members for output in wanted]
    signs = [1.0 if c == output.positive else -1.0 for output, of in zip(wanted, members, strict=True) for c in of]
    every = [c for of in members for c in of]
    rows = np.concatenate([by_class[c] for c in every])
    y = np.repeat(signs, [lengths[c] for c in every])
    weights = dataset.weights[rows]
    problems, begin = [], 0
    for output, of in zip(wanted, members, strict=True):
        end = begin + sum([lengths[c] for c in of])
        problems.append(Subproblem(dataset, output, of, rows[begin:end], y[begin:end], weights[begin:end]))
        begin = end
    return grouped, problems


Solver = Callable[[Any, list[Subproblem]], list[DualSolution]]


def train(
    dataset: Dataset, kernel: Any, scheme: str, cache_bytes: int, solve: Solver
) -> tuple[Model, list[DualSolution]]:
    """Train all binary problems of a scheme ("ovo" or "ovr")."""
    grouped, problems = subproblems(dataset, outputs(dataset.n_classes, scheme))
    solutions = solve(grouped.kernel_matrix(kernel, cache_bytes), problems)
    return replace(assembled_model(kernel, grouped, problems, solutions), scheme=scheme), solutions


def assembled_model(kernel: Any, grouped: RowsByClass, problems: list[Subproblem], solutions: Sequence[Any]) -> Model:
    """The model of all solutions; a vector that several problems share is stored once."""
    dataset = grouped.dataset
    used = [s.duals.nonzero()[0] for s in solutions]
    place = np.empty(dataset.size, dtype=np.intp)
    place[grouped.order] = np.arange(dataset.size)  # vectors of a class stay together
    rows, coef = join_outputs(
        [p.rows[u] for p, u in zip(problems, used, strict=True)],
        [s.duals[u] for s, u in zip(solutions, used, strict=True)],
        place,
    )
    expansion = Expansion(kernel, dataset.X[rows], coef, np.array([s.bias for s in solutions]))
    return Model(
        expansion,
        dataset.indices[rows],
        np.array([s.objective for s in solutions]),
        np.array([s.gap for s in solutions]),
        np.array([s.n_iter for s in solutions]),
    )
