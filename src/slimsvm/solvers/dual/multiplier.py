"""Feasible sets with a ball: a bracketed search for the multiplier of the ball.

SMO steps get stuck on the surface of a ball, far from the optimum. The optimum on it is that of the program with
the penalty ``mu * norm**power / power`` instead, for the mu that puts the solution on the surface (or mu = 0, inside).
The norm of the solution falls as mu grows, so mu is the root of a function of one variable. Programs are solved only as
accurately as the certificate of the whole problem needs, each from the solution of the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import exp, inf, log, sqrt

import numpy as np

from ...linalg.arrays import Array
from ...linalg.matrix import dot
from ...problem.formulation import FeasibleSet
from ..certificate import Certificate
from .programs import Program, ProgramSolution, SolverOptions

MAX_ROUNDS = 200
FIRST_TOLERANCE = 0.1  # of a program whose multiplier is a guess


class Bracket:
    """Bounds of the multiplier, and the norms of the last two solutions."""

    def __init__(self, radius: float, power: float):
        self.radius, self.power = radius, power
        self.low, self.high = 0.0, inf
        self.seen: list[tuple[float, float]] = []
        self.outside, self.run = False, 0  # side of the last solution, and how many in a row were there

    def add(self, mu: float, norm: float) -> None:
        """Record the norm of the solution for mu, whose side of the radius is certain."""
        outside = norm > self.radius
        self.run = self.run + 1 if outside == self.outside else 1
        self.outside = outside
        if outside:
            self.low = max(self.low, mu)
        else:
            self.high = min(self.high, mu)
        self.seen = [*self.seen[-1:], (mu, norm)]

    def widen(self) -> None:
        """Widen the bracket, after an inexact solution was put on the wrong side."""
        self.low, self.high, self.seen = 0.5 * self.low, 2 * self.high, []

    def next(self) -> float:
        """The next multiplier: by the secant in logarithms; at first by a step that is exact if slacks stay the same.

        Where the norm is nearly constant on either side of a jump, the secant would converge slowly: then bisection.
        """
        mu, norm = self.seen[-1]
        if self.run > 3 and self.low > 0 and self.high < inf:
            return sqrt(self.low * self.high)
        away = log(self.radius / norm) if norm > 0 else 700.0
        change = (1 - self.power) * away  # of log mu
        if len(self.seen) == 2 and norm > 0 and self.seen[0][1] > 0:
            run, rise = log(mu / self.seen[0][0]), log(norm / self.seen[0][1])
            if run * rise < 0:
                change = away * run / rise
        guess = mu * exp(min(max(change, -30.0), 30.0))
        if self.low < guess < self.high:
            return guess
        if self.high == inf:
            return 10 * self.low
        return sqrt(self.low * self.high) if self.low > 0 else 0.1 * self.high


class BallPoints:
    """Feasible points from solutions near the ball: scaled ones, and mixtures of one inside and one outside.

    Mixtures stay within bounds and cap. As the two close in on the optimum, their error is of second order.
    """

    def __init__(self, feasible: FeasibleSet):
        self.feasible = feasible
        self.inner: ProgramSolution | None = None
        self.outer: ProgramSolution | None = None

    def forget(self) -> None:
        """Forget earlier solutions, because the next ones are more exact."""
        self.inner = self.outer = None

    def candidates(self, solution: ProgramSolution, norm: float) -> list[ProgramSolution]:
        """Feasible points made from the new solution; one is near the optimum if the solution is."""
        candidates = [self._scaled(solution)]
        if norm <= self.feasible.radius:
            self.inner = solution
            candidates.append(solution)
        else:
            self.outer = solution
        if self.inner is not None and self.outer is not None:
            candidates.append(self._mixed(self.inner, self.outer))
        return candidates

    def _scaled(self, solution: ProgramSolution) -> ProgramSolution:
        """The best multiple of a solution in the feasible set; near the optimum it is on the surface of the ball."""
        if not solution.duals.any():
            return solution
        most = self.feasible.max_scaling(solution.duals)
        curvature = float(dot(solution.duals, solution.f) + np.sum(self.feasible.ridge * solution.duals**2))
        share = min(solution.gain / curvature, most) if curvature > 0 else most
        return replace(solution, duals=share * solution.duals, f=share * solution.f, gain=share * solution.gain)

    def _mixed(self, inner: ProgramSolution, outer: ProgramSolution) -> ProgramSolution:
        """The point where the segment from inside to outside leaves the ball; the norm is convex along it."""
        low, high = 0.0, 1.0
        for _ in range(50):
            share = 0.5 * (low + high)
            norm = self.feasible.norm(inner.duals + share * (outer.duals - inner.duals))
            low, high = (share, high) if norm <= self.feasible.radius else (low, share)
        return replace(
            outer,
            duals=inner.duals + low * (outer.duals - inner.duals),
            f=inner.f + low * (outer.f - inner.f),
            gain=inner.gain + low * (outer.gain - inner.gain),
        )


def search(
    program: Program,
    certify: Callable[[Array, Array], Certificate],
    feasible: FeasibleSet,
    guess: float,
    options: SolverOptions,
) -> tuple[ProgramSolution, Certificate]:
    """The best point found inside the ball, and its certificate. ``guess`` is a first multiplier."""
    radius, power, tol = feasible.radius, feasible.power, options.tol
    bracket, ball_points = Bracket(radius, power), BallPoints(feasible)
    mu, last_mu, eps, exact, steps, indefinite = guess, 0.0, max(FIRST_TOLERANCE, tol), False, 0, False
    solution: ProgramSolution | None = None
    best: tuple[ProgramSolution, Certificate] | None = None
    least, since = inf, 0  # smallest gap, and rounds since it was halved
    for _ in range(MAX_ROUNDS):
        left = options.max_steps if options.max_steps < 0 else options.max_steps - steps
        solution = program.solve(mu, replace(options, tol=eps, max_steps=left), solution, exact)
        steps, indefinite = steps + solution.steps, indefinite or solution.indefinite
        norm = feasible.norm(solution.duals)
        tried = [
            (candidate, certify(candidate.duals, candidate.f)) for candidate in ball_points.candidates(solution, norm)
        ]
        candidate, certificate = min(tried, key=lambda pair: pair[1].gap)
        if certificate.gap <= tol and not exact:  # with the f of the core, whose rows may be float32
            candidate = replace(candidate, f=program.product(candidate.duals))
            certificate = certify(candidate.duals, candidate.f)
            if certificate.gap > tol:
                exact = True
                ball_points.forget()
        if best is None or certificate.gap < best[1].gap:
            best = candidate, certificate
        blurred = (
            certificate.gap - certificate.rounding <= tol and certificate.rounding > tol
        )  # the rounding error alone is above tol
        if certificate.gap <= tol or 0 <= options.max_steps <= steps or indefinite or eps < 1e-6 * tol or blurred:
            break
        since = 0 if certificate.gap <= 0.5 * least else since + 1
        least = min(least, certificate.gap)
        # A smaller multiplier changes the objective by less than a tenth of tol: it counts as zero.
        nothing = 0.1 * tol * max(certificate.dual, 0.0) / radius**power
        settled = mu == last_mu and solution.steps == 0
        # No step was taken: the last solution satisfied eps for the new mu, too.
        untouched = solution.steps == 0 and abs(solution.gap) > 1e-3 * tol
        doubtful = _doubtful(norm / radius - 1, solution.gap, mu * radius**power, certificate) or untouched
        last_mu = mu
        if since > 3:  # an inexact solution put the root on the wrong side
            bracket.widen()
            eps, since = 0.1 * eps, 0
        elif (doubtful and not settled) or (mu <= nothing and norm <= radius):
            eps *= 0.1
        else:
            bracket.add(mu, norm)
            mu = max(bracket.next(), nothing)
            eps = min(eps, max(0.3 * certificate.gap, 0.3 * tol))
    assert best is not None
    candidate, certificate = best
    if certificate.gap > tol:  # certify what is returned with exact f, converged or not
        candidate = replace(candidate, f=program.product(candidate.duals))
        certificate = certify(candidate.duals, candidate.f)
    return replace(candidate, steps=steps, indefinite=indefinite), certificate


def _doubtful(excess: float, gap: float, scale: float, certificate: Certificate) -> bool:
    """Could the exact solution be on the other side of the ball, by the strong convexity of the penalty?"""
    return excess * excess * scale < gap * abs(certificate.dual)
