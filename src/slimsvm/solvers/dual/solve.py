"""The dual problem over all training rows: block SMO in the core, interior points, exact bias and certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum
from typing import NamedTuple

import numpy as np

from ...linalg.arrays import Array
from ...linalg.matrix import dot, is_positive_definite, norm
from ...problem.formulation import Constraint, FeasibleSet, Slack
from ...utils.progress import ProgressLine
from ..certificate import MAX_FACTORED_ROWS, Certificate, Certifier, cost_of_sum, relative_gap
from ..rounding import error_of_slacks
from . import interior, multiplier
from .programs import Program, ProgramSolution, SolverOptions
from .vertex import move_to_vertex

FIRST_STEPS, FIRST_STEPS_PER_ROW = 5000, 100  # SMO steps before the interior point method
LAST_STEPS_FACTOR, LAST_STEPS_FACTOR_IN_A_BALL = 20, 2  # times as many SMO steps after it
SPARSITY_GAP = 0.01  # times tol: below this gap prefer the solution with fewer support vectors
INTERIOR_GAP = 1e-6  # times the wanted gap: end of the interior point method, where duals at bounds are clear
MAX_SOLUTIONS = 16  # converged iterates kept to choose from
MAX_STALLED_STEPS = 16  # of the interior point method, whose certificate only rounding errors keep above tol
ON_THE_BALL = 0.999  # times the radius: duals with a larger norm count as on the ball, whose solution is unique


class DualSolution(NamedTuple):
    """Signed duals and bias of one binary problem, with their certificate."""

    duals: Array
    bias: float
    objective: float  # of the primal: 1/2 |f|^2 + Phi(slacks)
    gap: float  # (primal - dual) / dual, in float64
    violation: float  # largest violation of the optimality conditions, in units of f
    n_iter: int
    converged: bool
    indefinite: bool  # negative curvature was met: the kernel is not positive semidefinite
    void: bool = False  # within the gap, f cannot be told from 0
    zero_within_rounding: bool = False  # f is 0 up to rounding; the duals are kept for the certificate


class DualProgress(ProgressLine):
    """Progress line of steps, dual value, gap and vectors, which the core updates a few times a second."""

    def __call__(self, steps: int, dual: float, gap: float, vectors: int) -> None:
        self.update(f"{steps} steps, dual {dual:.8g}, gap {gap:.1e}, {vectors} vectors")

    def end(self, solution: DualSolution) -> None:
        """Print the final state."""
        dual, vectors = solution.objective / (1 + solution.gap), int(np.count_nonzero(solution.duals))
        self.finish(f"{solution.n_iter} steps, dual {dual:.8g}, gap {solution.gap:.1e}, {vectors} vectors")


@dataclass(frozen=True)
class BinaryDual:
    """One binary problem, with labels y (+-1) and a weight for each row."""

    y: Array
    slack: Slack
    C: float
    weights: Array
    constraint: Constraint

    @cached_property
    def feasible(self) -> FeasibleSet:
        """The feasible set of the duals."""
        return self.slack.feasible_set(self.y, self.C, self.weights, self.constraint)

    def first_multiplier(self) -> float:
        """The multiplier of the ball at f = 0: the cost of the slacks over ``radius**power``."""
        zero = np.zeros(len(self.y))
        bias = self.slack.bias(self.y, self.y, self.weights, self.constraint)
        return self._cost(zero, bias) / self.feasible.radius**self.feasible.power

    def certify(self, duals: Array, f: Array, largest: float) -> Certificate:
        """Primal and dual values at these duals and f = K duals, with the best bias (the gap is valid with any).

        The primal is that of these duals, the dual that of their largest multiple in the feasible set.
        """
        bias = self.slack.bias(self.y - f, self.y, self.weights, self.constraint)
        norm, sizes = float(dot(duals, f)), np.abs(duals)
        primal = 0.5 * norm + self._cost(f, bias)
        scale = min(1.0, self.feasible.max_scaling(duals))
        curvature = norm + float(np.sum(self.feasible.ridge * sizes**2))
        linear = float(dot(self.y, duals)) - cost_of_sum(duals, largest, primal)
        dual = scale * linear - 0.5 * scale**2 * curvature
        # The duals reach the cap but f vanishes: the objective is then that of the cap, whatever the kernel.
        full = sizes.sum() >= self.feasible.total * (1 - 1e-6)
        void = full and norm <= 4 * max(primal - dual, 1e-9 * primal)
        return replace(Certificate.between(primal, dual, bias), void=void)

    def charged(self, certificate: Certificate, duals: Array, f: Array, error: Array) -> Certificate:
        """Errors of f cost their product with the duals, taken as independent, and more at the corners of phi."""
        bias, primal, dual = certificate.bias, certificate.primal, certificate.dual
        error = error_of_slacks(error, f, bias)
        charges = np.abs(duals) * error
        corners = self._cost(f, bias, error) - (primal - 0.5 * float(dot(duals, f))) - float(charges.sum())
        charge = max(corners, 0.0) + 2 * norm(charges)
        return replace(certificate, gap=relative_gap(primal + charge, dual), rounding=relative_gap(dual + charge, dual))

    def _cost(self, f: Array, bias: float, error: Array | float = 0.0) -> float:
        xi = self.constraint.slacks(self.y, f, bias, error)
        return self.C * self.slack.value(xi, self.weights, self.constraint)


def first_steps(rows: int, options: SolverOptions) -> int:
    """Largest number of SMO steps for a first solution."""
    few = rows <= MAX_FACTORED_ROWS and options.max_steps < 0
    return FIRST_STEPS + FIRST_STEPS_PER_ROW * rows if few else options.max_steps


def solve_dual(
    program: Program, binary: BinaryDual, options: SolverOptions, first: ProgramSolution | None = None
) -> DualSolution:
    """Solve one binary problem; ``first``, if given, is a solution to start from."""
    tol = options.tol
    solution, certificate = _solve(program, binary, options, first)
    # Under a cap most of the objective may not depend on f: then a smaller tol may still find a nonzero f.
    if certificate.void and certificate.gap <= tol and options.max_steps < 0:
        finer = _solve(program, binary, replace(options, tol=tol / 30))
        if finer[1].gap < certificate.gap:
            solution, certificate = finer
    return DualSolution(
        solution.duals,
        certificate.bias,
        certificate.primal,
        certificate.gap,
        solution.violation,
        max(1, solution.steps),
        certificate.gap <= tol,
        solution.indefinite,
        certificate.void,
    )


CertifiedSolution = tuple[ProgramSolution, Certificate]


def _solve(
    program: Program, binary: BinaryDual, options: SolverOptions, first: ProgramSolution | None = None
) -> CertifiedSolution:
    """Solve to this tolerance, with a certificate.

    SMO comes first. If it does not converge, small problems go to the interior point method. If that does not converge
    either, SMO runs again, for a ball from other multipliers: rounding errors may end one search but not another.
    """
    certify = Certifier(binary, program, options.tol)
    few = len(binary.y) <= MAX_FACTORED_ROWS and options.max_steps < 0
    if first is not None:
        best = first, certify(first.duals, first.f)
    else:
        steps = first_steps(len(binary.y), options) if few else options.max_steps
        best = _by_pairs(program, binary, certify, 1.0, replace(options, max_steps=steps))
    if few and not _done(best, options):
        best = _better(best, _by_interior(program, binary, certify, best[0], options))
    ball = binary.feasible.radius < np.inf
    times = LAST_STEPS_FACTOR_IN_A_BALL if ball else LAST_STEPS_FACTOR
    last = replace(options, max_steps=times * first_steps(len(binary.y), options)) if few else options
    for share in (0.6, 0.1) if ball else (1.0,) if few else ():
        if _done(best, options) or options.max_steps >= 0 or best[0].indefinite:
            break
        best = _better(best, _by_pairs(program, binary, certify, share, last))
    solution, certificate = best
    return solution, certificate if certificate.rounding else certify.charged(certificate, solution.duals, solution.f)


def _done(certified: CertifiedSolution, options: SolverOptions) -> bool:
    """Is the gap at most tol, or almost all of it rounding error?"""
    certificate = certified[1]
    return certificate.gap <= max(options.tol, 1.05 * certificate.rounding)


def _better(one: CertifiedSolution, other: CertifiedSolution) -> CertifiedSolution:
    steps = one[0].steps + other[0].steps
    solution, certificate = min(one, other, key=lambda certified: certified[1].gap)
    return replace(solution, steps=steps), certificate


def _by_pairs(
    program: Program, binary: BinaryDual, certify: Certifier, share: float, options: SolverOptions
) -> CertifiedSolution:
    """Solve by SMO in the core; for a ball, the search starts at ``share`` times the first multiplier."""
    if binary.feasible.radius < np.inf:
        return multiplier.search(program, certify, binary.feasible, share * binary.first_multiplier(), options)
    solution = program.solve(0.0, options)
    return solution, certify(solution.duals, solution.f)


def _by_interior(
    program: Program,
    binary: BinaryDual,
    certify: Certifier,
    solution: ProgramSolution,
    options: SolverOptions,
) -> CertifiedSolution:
    """Run the interior point method to full precision, then move to a vertex of the optimal set.

    Among the solutions whose gap is near the smallest, or far below tol, it takes the one with the fewest vectors.
    """
    K = program.matrix()
    best = replace(solution, steps=0), certify(solution.duals, solution.f)
    if solution.indefinite and not _semidefinite(K):
        return best

    def certified(duals: Array, steps: int) -> CertifiedSolution:
        f, gain = dot(K, duals), float(dot(binary.y, duals))
        certificate = certify(duals, f)
        return ProgramSolution(duals, f, gain, certificate.gap, certificate.gap, steps, False, (duals, f)), certificate

    good: list[CertifiedSolution] = []
    stalled = 0
    for steps, (duals, left) in enumerate(interior.solutions(K, binary.y, binary.feasible), 1):
        wanted = options.tol * abs(float(dot(binary.y, duals)) - 0.5 * float(dot(duals, dot(K, duals))))
        if left > 100 * wanted and steps % 20:  # far from converged: certify only every 20th
            continue
        current = certified(duals, steps)
        if current[1].gap < best[1].gap:
            best = current
        if _done(current, options):
            good.append(current)
        stalled += left < 1e-3 * wanted
        if (good and left < INTERIOR_GAP * wanted) or stalled > MAX_STALLED_STEPS or len(good) > MAX_SOLUTIONS:
            break
    if not good:
        return best
    close = max(2 * min(certificate.gap for _, certificate in good), SPARSITY_GAP * options.tol)
    end = min(
        (one for one in good if one[1].gap <= close), key=lambda one: (np.count_nonzero(one[0].duals), one[1].gap)
    )
    vertex = _vertex(K, binary.feasible, end[0].duals)
    if vertex is None:
        return end
    at_vertex = certified(vertex, end[0].steps)
    return at_vertex if _done(at_vertex, options) else end


def _vertex(K: Array, feasible: FeasibleSet, duals: Array) -> Array | None:
    """A vertex: at most as many duals between bounds as the kernel has dimensions.

    None where the solution is unique: on the surface of a ball, or with a ridge on the diagonal.
    """
    if np.any(feasible.ridge) or (feasible.radius < np.inf and feasible.norm(duals) > ON_THE_BALL * feasible.radius):
        return None
    signs = np.sign(duals)
    G = np.stack([np.ones(len(duals)), signs]) if feasible.total < np.inf else np.ones((1, len(duals)))
    lower, upper = np.where(signs < 0, feasible.lower, 0.0), np.where(signs > 0, feasible.upper, 0.0)
    near = 1e-12 * np.abs(duals)
    duals = np.where(upper - duals <= near, upper, np.where(duals - lower <= near, lower, duals))
    duals = move_to_vertex(K, np.arange(len(duals)), duals, lower, upper, G)
    room = np.minimum(duals - lower, upper - duals)
    duals[room.argmax()] -= fsum(duals)  # of the dual with the most room, so that all stay within bounds
    return min(1.0, feasible.max_scaling(duals)) * duals


def _semidefinite(K: Array) -> bool:
    if is_positive_definite(K, 1e-9 * max(float(K.diagonal().max()), 0.0)):
        return True
    values = np.linalg.eigvalsh(K)
    return bool(values[0] >= -1e-9 * max(values[-1], 0.0))
