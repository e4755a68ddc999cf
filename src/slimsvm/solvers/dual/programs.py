"""Quadratic programs over the core: a feasible set without its ball, whose place a penalty times ``mu`` takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum
from typing import Any, Protocol

import numpy as np

from ... import _core
from ...linalg.arrays import Array
from ...linalg.matrix import dot
from ...problem.formulation import FeasibleSet
from ..certificate import balanced

DRIFT = 1e-12  # a sum of duals, as a share of their sizes, that many rounded steps may leave


@dataclass(frozen=True)
class ProgramSolution:
    """A solution of one program: duals, f = K duals, and how well it is solved."""

    duals: Array
    f: Array
    gain: float  # y'duals
    gap: float  # relative, of this program
    violation: float
    steps: int
    indefinite: bool
    state: tuple[Array, Array]  # what a warm start needs


class Program(Protocol):
    """``max y'a - 1/2 a'K a - mu * penalty(a)`` over the set without its ball."""

    machine: _core.KernelMatrix

    def product(self, duals: Array) -> Array:
        """f = K duals in float64."""

    def diagonal(self) -> Array:
        """The values k(x, x)."""

    def matrix(self) -> Array:
        """All of K: of few rows only."""

    def solve(
        self,
        mu: float,
        tol: float,
        max_steps: int,
        double_rows: bool,
        start: ProgramSolution | None = None,
        exact: bool = True,
        callback: Any = None,
    ) -> ProgramSolution:
        """The solution for this multiplier; without ``exact``, f is only as good as the rows of the core."""


class BoxProgram:
    """Box, cap and ridge over the rows of a machine; the ball is ``sum(stretch |a|**power)``."""

    def __init__(self, machine: _core.KernelMatrix, view: list[int], y: Array, feasible: FeasibleSet):
        self.size = n = len(y)
        self.machine, self.rows, self.view, self.linear = machine, view, view, y
        self.power, self.total = feasible.power, feasible.total
        self.stretch = np.broadcast_to(np.asarray(feasible.stretch, dtype=np.float64), n)
        self.ridge = np.broadcast_to(np.asarray(feasible.ridge, dtype=np.float64), n)
        if self.power != 2 and self.ridge.any():
            raise ValueError(f"a ridge does not go with a ball of power {self.power:g}, only with power 2")
        # No point of the ball is beyond these bounds: they keep a program with a small multiplier in hand.
        reach = feasible.radius * self.stretch ** (-1 / self.power)
        lower, upper = np.maximum(feasible.lower, -reach), np.minimum(feasible.upper, reach)
        side = None
        self.doubled = self.total < np.inf and bool(((lower < 0) & (upper > 0)).any())
        if self.doubled:  # a cap on sizes: the positive and the negative part of each dual, over the same row
            zero = np.zeros(n)
            lower, upper = np.concatenate([zero, lower]), np.concatenate([upper, zero])
            side = np.repeat([1.0, -1.0], n)
            self.linear, self.view = np.tile(y, 2), [*view, *view]
        elif self.total < np.inf:
            side = np.where(upper > 0, 1.0, -1.0)
        self.lower, self.upper, self.side = lower, upper, side
        self._matrix: Array | None = None

    def product(self, duals: Array) -> Array:
        return self.machine.product(self.rows, duals[None])[0]

    def diagonal(self) -> Array:
        return self.machine.diagonal(self.rows)

    def matrix(self) -> Array:
        if self._matrix is None:
            self._matrix = self.machine.rows(self.rows, np.arange(len(self.stretch)))
        return self._matrix

    def solve(
        self,
        mu: float,
        tol: float,
        max_steps: int,
        double_rows: bool,
        start: ProgramSolution | None = None,
        exact: bool = True,
        callback: Any = None,
    ) -> ProgramSolution:
        found = self.machine.solve(
            self.view,
            self.linear,
            self.lower,
            self.upper,
            self.ridges(mu),
            self.side,
            self.total,
            tol,
            max_steps,
            double_rows,
            self.power,
            start=start.state[0] if start else None,
            start_product=start.state[1] if start else None,
            exact=exact,
            callback=callback,
        )
        return self.point(
            found["duals"],
            found["product"],
            found["gap"],
            found["violation"],
            found["steps"],
            found["negative_curvature"],
        )

    def ridges(self, mu: float = 0.0) -> Array:
        """Of all variables of the core, the penalty of this multiplier included."""
        ridge = self.ridge + mu * self.stretch if mu > 0 else self.ridge
        return np.tile(ridge, 2) if self.doubled else np.ascontiguousarray(ridge)

    def point(
        self, duals: Array, product: Array, gap: float, violation: float, steps: int, indefinite: bool
    ) -> ProgramSolution:
        """What the core found for its variables, as a solution for the rows."""
        if abs(fsum(duals)) > DRIFT * float(np.abs(duals).sum()):  # tiny steps are lost beside huge duals
            duals = balanced(duals)
            product = self.machine.product(self.view, duals[None])[0]
        state = duals, product
        if self.doubled:
            plus, minus = np.split(duals, 2)
            duals, product = plus + minus, product[: len(plus)]
        gain = float(dot(self.linear[: len(duals)], duals))
        return ProgramSolution(duals, product, gain, gap, violation, steps, indefinite, state)


class MetricProgram:
    """Box over the matrix ``K + mu * metric``; the ball is ``a'metric a``."""

    def __init__(self, machine: _core.KernelMatrix, view: list[int], y: Array, feasible: FeasibleSet):
        assert feasible.metric is not None
        self.machine = machine
        self.K = machine.rows(view, np.arange(len(y)))
        self.metric, self.y = feasible.metric, y
        self.feasible = FeasibleSet(feasible.lower, feasible.upper, feasible.ridge, feasible.total)

    def product(self, duals: Array) -> Array:
        return dot(self.K, duals)

    def diagonal(self) -> Array:
        return np.diag(self.K)

    def matrix(self) -> Array:
        return self.K

    def solve(
        self,
        mu: float,
        tol: float,
        max_steps: int,
        double_rows: bool,
        start: ProgramSolution | None = None,
        exact: bool = True,
        callback: Any = None,
    ) -> ProgramSolution:
        matrix = self.K + mu * self.metric
        n = len(matrix)
        machine = _core.KernelMatrix.of_matrix(matrix, np.arange(n), [n], matrix.nbytes // 2 + (32 << 20), 1)
        if start is not None:
            duals = start.state[0]
            start = replace(start, state=(duals, self._product(matrix, duals)))
        found = BoxProgram(machine, [0], self.y, self.feasible).solve(
            0.0, tol, max_steps, double_rows, start, exact, callback
        )
        return replace(found, f=dot(self.K, found.duals))

    @staticmethod
    def _product(matrix: Array, duals: Array) -> Array:
        """Of all variables of the core, which may be two for each row."""
        n = len(matrix)
        return np.tile(dot(matrix, duals.reshape(-1, n).sum(axis=0)), len(duals) // n)


def program(machine: _core.KernelMatrix, view: list[int], y: Array, feasible: FeasibleSet) -> Program:
    """The program for a feasible set."""
    kind = BoxProgram if feasible.metric is None else MetricProgram
    return kind(machine, view, y, feasible)
