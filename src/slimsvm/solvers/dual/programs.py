"""Quadratic programs for the core: feasible sets whose ball is replaced by a penalty times ``mu``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum
from typing import Any, Protocol

import numpy as np

from ... import _core
from ...linalg.arrays import Array
from ...linalg.matrix import dot
from ...problem.formulation import FeasibleSet
from ..certificate import KernelRows, balanced

MAX_SUM_DRIFT = 1e-12  # largest ``|sum(duals)| / sum|duals|`` that is accepted; rounded steps add up


@dataclass(frozen=True)
class SolverOptions:
    """Stopping criteria and options of the core."""

    tol: float
    max_steps: int
    double_rows: bool
    callback: Any


@dataclass(frozen=True)
class ProgramSolution:
    """A solution of one program: duals, f = K duals, gap and violation."""

    duals: Array
    f: Array
    gain: float  # y'duals
    gap: float  # relative, of this program
    violation: float
    steps: int
    indefinite: bool
    state: tuple[Array, Array]  # the variables of the core and their product with K, for a warm start


class Program(KernelRows, Protocol):
    """``max y'a - 1/2 a'K a - mu * penalty(a)`` over the set without its ball."""

    def product(self, duals: Array) -> Array:
        """f = K duals in float64."""

    def solve(
        self, mu: float, options: SolverOptions, start: ProgramSolution | None = None, exact: bool = True
    ) -> ProgramSolution:
        """Solve for this multiplier; without ``exact``, f has the precision of the kernel rows in the core."""


class BoxProgram:
    """A program with box, cap and ridge; the norm of its ball is ``sum(stretch |a|**power)**(1 / power)``."""

    def __init__(self, kernel_matrix: _core.KernelMatrix, segments: list[int], y: Array, feasible: FeasibleSet):
        self.size = n = len(y)
        self.kernel_matrix, self.rows, self.segments, self.linear = kernel_matrix, segments, segments, y
        self.power, self.total = feasible.power, feasible.total
        self.stretch = np.broadcast_to(np.asarray(feasible.stretch, dtype=np.float64), n)
        self.ridge = np.broadcast_to(np.asarray(feasible.ridge, dtype=np.float64), n)
        if self.power != 2 and self.ridge.any():
            raise ValueError(f"a ridge does not go with a ball of power {self.power:g}, only with power 2")
        # Bounds that contain the ball, which keep duals finite where the multiplier is small.
        reach = feasible.radius * self.stretch ** (-1 / self.power)
        lower, upper = np.maximum(feasible.lower, -reach), np.minimum(feasible.upper, reach)
        side = None
        self.doubled = self.total < np.inf and bool(((lower < 0) & (upper > 0)).any())
        if self.doubled:  # a cap on sizes: the positive and the negative part of each dual are variables of their own
            zero = np.zeros(n)
            lower, upper = np.concatenate([zero, lower]), np.concatenate([upper, zero])
            side = np.repeat([1.0, -1.0], n)
            self.linear, self.segments = np.tile(y, 2), [*segments, *segments]
        elif self.total < np.inf:
            side = np.where(upper > 0, 1.0, -1.0)
        self.lower, self.upper, self.side = lower, upper, side
        self._matrix: Array | None = None

    def product(self, duals: Array) -> Array:
        return self.kernel_matrix.product(self.rows, duals[None])[0]

    @property
    def dot_product_degree(self) -> float:
        return self.kernel_matrix.dot_product_degree

    def diagonal(self) -> Array:
        return self.kernel_matrix.diagonal(self.rows)

    def matrix(self) -> Array:
        if self._matrix is None:
            self._matrix = self.kernel_matrix.rows(self.rows, np.arange(len(self.stretch)))
        return self._matrix

    def solve(
        self, mu: float, options: SolverOptions, start: ProgramSolution | None = None, exact: bool = True
    ) -> ProgramSolution:
        result = self.kernel_matrix.solve(
            self.segments,
            self.linear,
            self.lower,
            self.upper,
            self.ridges(mu),
            self.side,
            self.total,
            options.tol,
            options.max_steps,
            options.double_rows,
            self.power,
            start=start.state[0] if start else None,
            start_product=start.state[1] if start else None,
            exact=exact,
            callback=options.callback,
        )
        names = ("duals", "product", "gap", "violation", "steps", "negative_curvature")
        return self.solution(*(result[name] for name in names))

    def ridges(self, mu: float = 0.0) -> Array:
        """The ridge of each variable of the core, including the penalty with this multiplier."""
        ridge = self.ridge + mu * self.stretch if mu > 0 else self.ridge
        return np.tile(ridge, 2) if self.doubled else np.ascontiguousarray(ridge)

    def solution(
        self, duals: Array, product: Array, gap: float, violation: float, steps: int, indefinite: bool
    ) -> ProgramSolution:
        """Convert a result for the variables of the core to a solution for the rows."""
        if abs(fsum(duals)) > MAX_SUM_DRIFT * float(np.abs(duals).sum()):  # tiny steps are rounded away in huge duals
            duals = balanced(duals)
            product = self.kernel_matrix.product(self.segments, duals[None])[0]
        state = duals, product
        if self.doubled:
            plus, minus = np.split(duals, 2)
            duals, product = plus + minus, product[: len(plus)]
        gain = float(dot(self.linear[: len(duals)], duals))
        return ProgramSolution(duals, product, gain, gap, violation, steps, indefinite, state)


class MetricProgram:
    """A program over the matrix ``K + mu * metric``; the squared norm of its ball is ``a'metric a``."""

    def __init__(self, kernel_matrix: _core.KernelMatrix, segments: list[int], y: Array, feasible: FeasibleSet):
        assert feasible.metric is not None
        self.kernel_matrix = kernel_matrix
        self.K = kernel_matrix.rows(segments, np.arange(len(y)))
        self.metric, self.y = feasible.metric, y
        self.feasible = FeasibleSet(feasible.lower, feasible.upper, feasible.ridge, feasible.total)

    def product(self, duals: Array) -> Array:
        return dot(self.K, duals)

    @property
    def dot_product_degree(self) -> float:
        return self.kernel_matrix.dot_product_degree

    def diagonal(self) -> Array:
        return np.diag(self.K)

    def matrix(self) -> Array:
        return self.K

    def solve(
        self, mu: float, options: SolverOptions, start: ProgramSolution | None = None, exact: bool = True
    ) -> ProgramSolution:
        matrix = self.K + mu * self.metric
        n = len(matrix)
        kernel_matrix = _core.KernelMatrix.of_matrix(matrix, np.arange(n), [n], matrix.nbytes // 2 + (32 << 20), 1)
        if start is not None:
            duals = start.state[0]
            start = replace(start, state=(duals, self._product(matrix, duals)))
        result = BoxProgram(kernel_matrix, [0], self.y, self.feasible).solve(0.0, options, start, exact)
        return replace(result, f=dot(self.K, result.duals))

    @staticmethod
    def _product(matrix: Array, duals: Array) -> Array:
        """``matrix @ a`` for each variable of the core, which may be two for each row."""
        n = len(matrix)
        return np.tile(dot(matrix, duals.reshape(-1, n).sum(axis=0)), len(duals) // n)


def make_program(kernel_matrix: _core.KernelMatrix, segments: list[int], y: Array, feasible: FeasibleSet) -> Program:
    """The program for a feasible set."""
    kind = BoxProgram if feasible.metric is None else MetricProgram
    return kind(kernel_matrix, segments, y, feasible)
