"""The dual over all training points: the core's block SMO, the exact bias, the certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .. import _core
from ..certificate import relative_gap
from ..formulation import Array, Certificate, FeasibleSet, Slack, slacks
from ..progress import ProgressLine
from . import multiplier
from .programs import Point, Program, program


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
    void: bool = False  # f = 0 as far as the gap tells


class Progress(ProgressLine):
    """Objective, gap, vectors, time, as the core reports them a few times a second."""

    def __call__(self, steps: int, dual: float, gap: float, vectors: int) -> None:
        self.update(f"{steps} steps, dual {dual:.8g}, gap {gap:.1e}, {vectors} vectors")

    def end(self, solution: DualSolution) -> None:
        """The last state."""
        dual, vectors = solution.objective / (1 + solution.gap), int(np.count_nonzero(solution.duals))
        self.finish(f"{solution.n_iter} steps, dual {dual:.8g}, gap {solution.gap:.1e}, {vectors} vectors")


@dataclass(frozen=True)
class Binary:
    """One binary problem: y is +-1, a weight counts a row."""

    y: Array
    slack: Slack
    C: float
    weights: Array
    constraint: str

    def first_multiplier(self, feasible: FeasibleSet) -> float:
        """The multiplier of the ball where f = 0: slack over radius."""
        zero = np.zeros(len(self.y))
        bias = self.slack.bias(self.y, self.y, self.weights, self.constraint)
        value = self.slack.value(slacks(self.y, zero, bias, self.constraint), self.weights, self.constraint)
        return self.C * value / feasible.radius**feasible.power

    def certify(self, feasible: FeasibleSet, duals: Array, f: Array) -> Certificate:
        """Primal and dual value of feasible duals and f = K duals, with the exact bias: any b would do."""
        bias = self.slack.bias(self.y - f, self.y, self.weights, self.constraint)
        norm = float(duals @ f)
        xi = slacks(self.y, f, bias, self.constraint)
        primal = 0.5 * norm + self.C * self.slack.value(xi, self.weights, self.constraint)
        dual = float(self.y @ duals) - 0.5 * norm - 0.5 * float(np.sum(feasible.ridge * duals**2))
        gap = relative_gap(primal, dual)
        # A cap that is used up by duals whose f vanishes: the primal is then the cap, whatever the kernel.
        full = np.abs(duals).sum() >= feasible.total * (1 - 1e-6)
        return Certificate(bias, primal, dual, gap, full and norm <= 4 * max(primal - dual, 1e-9 * primal))


def solve_dual(
    machine: _core.Machine,
    view: list[int],
    binary: Binary,
    tol: float = 1e-3,
    max_iter: int = -1,
    double_rows: bool = False,
    progress: Progress | None = None,
) -> DualSolution:
    """Solve one binary problem over the machine's segments in ``view``."""
    feasible = binary.slack.feasible_set(binary.y, binary.C, binary.weights, binary.constraint)
    over = program(machine, view, binary.y, feasible)
    limits = multiplier.Limits(tol, max_iter, double_rows, progress)
    point, certificate = _solve(over, binary, feasible, limits)
    # Under a cap most of the objective may have nothing to do with f: then a finer tol may still find it.
    if certificate.void and certificate.gap <= tol and max_iter < 0:
        finer = _solve(over, binary, feasible, replace(limits, tol=tol / 30))
        if finer[1].gap < certificate.gap:
            point, certificate = finer
    solution = DualSolution(
        point.duals,
        certificate.bias,
        certificate.primal,
        certificate.gap,
        point.violation,
        max(1, point.steps),
        certificate.gap <= tol,
        point.indefinite,
        certificate.void,
    )
    if progress is not None:
        progress.end(solution)
    return solution


def _solve(
    over: Program, binary: Binary, feasible: FeasibleSet, limits: multiplier.Limits
) -> tuple[Point, Certificate]:
    """One solution to this tolerance, and its certificate."""
    certify = partial(binary.certify, feasible)
    if feasible.radius < np.inf:
        best: tuple[Point, Certificate] | None = None
        # Rounding can end a search early where few rows decide; from elsewhere it takes another way.
        for share in (1.0, 0.6, 0.1):
            guess = share * binary.first_multiplier(feasible)
            found = multiplier.search(over, certify, feasible, guess, limits)
            best = found if best is None or found[1].gap < best[1].gap else best
            if best[1].gap <= limits.tol or limits.max_steps >= 0 or found[0].indefinite:
                break
        assert best is not None
        return best
    point = over.solve(0.0, limits.tol, limits.max_steps, limits.double_rows, callback=limits.callback)
    return point, certify(point.duals, point.f)
