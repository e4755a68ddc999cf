"""The dual over all training points: the core's block SMO, the exact bias, the certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum, sqrt
from typing import NamedTuple

import numpy as np

from ...linalg.arrays import Array
from ...linalg.matrix import dot, is_positive_definite, norm
from ...problem.formulation import Certificate, Constraint, FeasibleSet, Slack
from ...utils.progress import ProgressLine
from ..certificate import relative_gap
from . import interior, multiplier
from .programs import Program, ProgramSolution
from .rounding import ROUNDOFF, accurate_product, error_of_product
from .vertex import at_vertex

FEW = 768  # rows whose kernel matrix may be factorised as a last resort
PATIENCE, PATIENCE_BY_ROW = 5000, 100  # steps of pairs before that
LAST_PATIENCE, LAST_PATIENCE_IN_A_BALL = 20, 2  # as many times more after it
SPARSITY_GAP = 0.01  # times tol: below this gap prefer the solution with fewer support vectors
INTERIOR_GAP = 1e-6  # times the wanted gap: run interior point to here, so that duals at bounds can be told
MAX_SOLUTIONS = 16  # converged iterates kept to choose from
MAX_STALLED_STEPS = 16  # of interior points far below the wanted gap, which only rounding errors keep from it
ON_THE_BALL = 0.999  # times the radius: duals with a larger norm count as on the ball, whose solution is unique


class DualSolution(NamedTuple):
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
    zero_within_rounding: bool = False  # f = 0 as far as rounding tells; the duals, which prove it, are kept


class DualProgress(ProgressLine):
    """Objective, gap, vectors, time, as the core reports them a few times a second."""

    def __call__(self, steps: int, dual: float, gap: float, vectors: int) -> None:
        self.update(f"{steps} steps, dual {dual:.8g}, gap {gap:.1e}, {vectors} vectors")

    def end(self, solution: DualSolution) -> None:
        """The last state."""
        dual, vectors = solution.objective / (1 + solution.gap), int(np.count_nonzero(solution.duals))
        self.finish(f"{solution.n_iter} steps, dual {dual:.8g}, gap {solution.gap:.1e}, {vectors} vectors")


@dataclass(frozen=True)
class BinaryDual:
    """One binary problem: y is +-1, a weight counts a row."""

    y: Array
    slack: Slack
    C: float
    weights: Array
    constraint: Constraint

    @cached_property
    def feasible(self) -> FeasibleSet:
        """Where the duals may lie."""
        return self.slack.feasible_set(self.y, self.C, self.weights, self.constraint)

    def first_multiplier(self) -> float:
        """The multiplier of the ball where f = 0: slack over radius."""
        zero = np.zeros(len(self.y))
        bias = self.slack.bias(self.y, self.y, self.weights, self.constraint)
        return self._cost(zero, bias) / self.feasible.radius**self.feasible.power

    def certify(self, duals: Array, f: Array, largest: float) -> Certificate:
        """Primal and dual value of duals and f = K duals, with the exact bias: any b would do.

        The primal is that of these duals, the dual that of their largest multiple in the feasible set. What is left of
        their sum costs at most the best bias: ``|b| <= 1 + max|f|``, where ``|f(x)| <= |f| largest`` for all rows.
        """
        bias = self.slack.bias(self.y - f, self.y, self.weights, self.constraint)
        norm, sizes = float(dot(duals, f)), np.abs(duals)
        primal = 0.5 * norm + self._cost(f, bias)
        share = min(1.0, self.feasible.max_scaling(duals))
        curvature = norm + float(np.sum(self.feasible.ridge * sizes**2))
        off = abs(fsum(duals.tolist())) * (1 + largest * sqrt(2 * max(primal, 0.0)))
        dual = share * (float(dot(self.y, duals)) - off) - 0.5 * share**2 * curvature
        # A cap that is used up by duals whose f vanishes: the primal is then the cap, whatever the kernel.
        full = sizes.sum() >= self.feasible.total * (1 - 1e-6)
        void = full and norm <= 4 * max(primal - dual, 1e-9 * primal)
        return Certificate(bias, primal, dual, relative_gap(primal, dual), void)

    def blurred(self, certificate: Certificate, duals: Array, f: Array, doubt: Array) -> Certificate:
        """The certificate where f is known up to ``doubt``, of any sign.

        Errors of f cost what the duals say, which adds up like chance, and more at the corners of phi.
        """
        bias, primal, dual = certificate.bias, certificate.primal, certificate.dual
        doubt = doubt + ROUNDOFF * (1 + np.abs(f) + abs(bias))  # of the slacks
        charges = np.abs(duals) * doubt
        corners = self._cost(f, bias, doubt) - (primal - 0.5 * float(dot(duals, f))) - float(charges.sum())
        blur = max(corners, 0.0) + 2 * norm(charges)
        return replace(certificate, gap=relative_gap(primal + blur, dual), rounding=relative_gap(dual + blur, dual))

    def _cost(self, f: Array, bias: float, doubt: Array | float = 0.0) -> float:
        xi = self.constraint.slacks(self.y, f, bias, doubt)
        return self.C * self.slack.value(xi, self.weights, self.constraint)


class Certifier:
    """Certificates of one problem over one kernel."""

    def __init__(self, binary: BinaryDual, over: Program, tol: float):
        self.binary, self.over, self.tol = binary, over, tol
        self.sizes = np.sqrt(np.maximum(over.diagonal(), 0.0))
        self.largest = float(self.sizes.max())

    def __call__(self, duals: Array, f: Array) -> Certificate:
        """Of f as it was computed; how well that is known matters only where the rest of the gap is small enough."""
        certificate = self.binary.certify(duals, f, self.largest)
        return certificate if certificate.gap > self.tol else self.blurred(certificate, duals, f)

    def blurred(self, certificate: Certificate, duals: Array, f: Array) -> Certificate:
        """With the rounding of f. Where that tells, f is computed once more, more accurately."""
        degree = self.over.machine.dot_product_degree
        blurred = self.binary.blurred(certificate, duals, f, error_of_product(self.sizes, duals, degree))
        if blurred.rounding <= 0.01 * self.tol or len(duals) > FEW:
            return blurred
        f, error = accurate_product(self.over.matrix(), self.sizes, duals, degree)
        return self.binary.blurred(self.binary.certify(duals, f, self.largest), duals, f, error)


def first_steps(rows: int, limits: multiplier.Limits) -> int:
    """How many steps of pairs a first solution may take."""
    few = rows <= FEW and limits.max_steps < 0
    return PATIENCE + PATIENCE_BY_ROW * rows if few else limits.max_steps


def solve_dual(
    over: Program, binary: BinaryDual, limits: multiplier.Limits, first: ProgramSolution | None = None
) -> DualSolution:
    """Solve one binary problem; ``first`` is a solution to go on from, where there is one."""
    tol = limits.tol
    point, certificate = _solve(over, binary, limits, first)
    # Under a cap most of the objective may have nothing to do with f: then a finer tol may still find it.
    if certificate.void and certificate.gap <= tol and limits.max_steps < 0:
        finer = _solve(over, binary, replace(limits, tol=tol / 30))
        if finer[1].gap < certificate.gap:
            point, certificate = finer
    return DualSolution(
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


Found = tuple[ProgramSolution, Certificate]


def _solve(over: Program, binary: BinaryDual, limits: multiplier.Limits, first: ProgramSolution | None = None) -> Found:
    """One solution to this tolerance, and its certificate.

    Pairs first. Where they take long or end early, few rows go to the interior point. What is still not solved goes to
    pairs again, from other multipliers: rounding can end a search where few rows decide, and each takes another way.
    """
    certify = Certifier(binary, over, limits.tol)
    few = len(binary.y) <= FEW and limits.max_steps < 0
    if first is not None:
        best = first, certify(first.duals, first.f)
    else:
        steps = first_steps(len(binary.y), limits) if few else limits.max_steps
        best = _by_pairs(over, binary, certify, 1.0, replace(limits, max_steps=steps))
    if few and not _done(best, limits):
        best = _better(best, _by_interior(over, binary, certify, best[0], limits))
    ball = binary.feasible.radius < np.inf
    times = LAST_PATIENCE_IN_A_BALL if ball else LAST_PATIENCE
    last = replace(limits, max_steps=times * first_steps(len(binary.y), limits)) if few else limits
    for share in (0.6, 0.1) if ball else (1.0,) if few else ():
        if _done(best, limits) or limits.max_steps >= 0 or best[0].indefinite:
            break
        best = _better(best, _by_pairs(over, binary, certify, share, last))
    point, certificate = best
    return point, certificate if certificate.rounding else certify.blurred(certificate, point.duals, point.f)


def _done(found: Found, limits: multiplier.Limits) -> bool:
    """Solved, or as far as the digits go."""
    certificate = found[1]
    return certificate.gap <= max(limits.tol, 1.05 * certificate.rounding)


def _better(one: Found, other: Found) -> Found:
    steps = one[0].steps + other[0].steps
    point, certificate = min(one, other, key=lambda found: found[1].gap)
    return replace(point, steps=steps), certificate


def _by_pairs(over: Program, binary: BinaryDual, certify: Certifier, share: float, limits: multiplier.Limits) -> Found:
    """By the core; ``share`` of the first multiplier is where the search for that of a ball starts."""
    if binary.feasible.radius < np.inf:
        return multiplier.search(over, certify, binary.feasible, share * binary.first_multiplier(), limits)
    point = over.solve(0.0, limits.tol, limits.max_steps, limits.double_rows, callback=limits.callback)
    return point, certify(point.duals, point.f)


def _by_interior(
    over: Program, binary: BinaryDual, certify: Certifier, point: ProgramSolution, limits: multiplier.Limits
) -> Found:
    """Run the interior point method to full precision, then move to a vertex of the optimal set.

    Of the solutions that are as good as the best, or far better than tol, it takes the one with the fewest vectors.
    """
    K = over.matrix()
    best = replace(point, steps=0), certify(point.duals, point.f)
    if point.indefinite and not _semidefinite(K):
        return best

    def found(duals: Array, steps: int) -> Found:
        f, gain = dot(K, duals), float(dot(binary.y, duals))
        certificate = certify(duals, f)
        return ProgramSolution(duals, f, gain, certificate.gap, certificate.gap, steps, False, (duals, f)), certificate

    good: list[Found] = []
    stalled = 0
    for steps, (duals, left) in enumerate(interior.solutions(K, binary.y, binary.feasible), 1):
        wanted = limits.tol * abs(float(dot(binary.y, duals)) - 0.5 * float(dot(duals, dot(K, duals))))
        if left > 100 * wanted and steps % 20:  # too early: now and then to see whether it goes anywhere
            continue
        now = found(duals, steps)
        if now[1].gap < best[1].gap:
            best = now
        if _done(now, limits):
            good.append(now)
        stalled += left < 1e-3 * wanted
        if (good and left < INTERIOR_GAP * wanted) or stalled > MAX_STALLED_STEPS or len(good) > MAX_SOLUTIONS:
            break
    if not good:
        return best
    close = max(2 * min(certificate.gap for _, certificate in good), SPARSITY_GAP * limits.tol)
    end = min(
        (one for one in good if one[1].gap <= close), key=lambda one: (np.count_nonzero(one[0].duals), one[1].gap)
    )
    vertex = _vertex(K, binary.feasible, end[0].duals)
    if vertex is None:
        return end
    there = found(vertex, end[0].steps)
    return there if _done(there, limits) else end


def _vertex(K: Array, feasible: FeasibleSet, duals: Array) -> Array | None:
    """A solution that needs no more rows than the kernel has dimensions, beside those at their upper bounds.

    None where the solution is unique: within a ball that it touches, and with a ridge on the diagonal.
    """
    if np.any(feasible.ridge) or (feasible.radius < np.inf and feasible.norm(duals) > ON_THE_BALL * feasible.radius):
        return None
    signs = np.sign(duals)
    G = np.stack([np.ones(len(duals)), signs]) if feasible.total < np.inf else np.ones((1, len(duals)))
    lower, upper = np.where(signs < 0, feasible.lower, 0.0), np.where(signs > 0, feasible.upper, 0.0)
    near = 1e-12 * np.abs(duals)
    duals = np.where(upper - duals <= near, upper, np.where(duals - lower <= near, lower, duals))
    duals = at_vertex(K, np.arange(len(duals)), duals, lower, upper, G)
    room = np.minimum(duals - lower, upper - duals)
    duals[room.argmax()] -= fsum(duals)  # bounds stay met to the last digit
    return min(1.0, feasible.max_scaling(duals)) * duals


def _semidefinite(K: Array) -> bool:
    if is_positive_definite(K, 1e-9 * max(float(K.diagonal().max()), 0.0)):
        return True
    values = np.linalg.eigvalsh(K)
    return bool(values[0] >= -1e-9 * max(values[-1], 0.0))
