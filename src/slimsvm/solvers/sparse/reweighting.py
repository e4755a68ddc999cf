"""Rounds of reweighting: sparse coefficients from a sequence of quadratic problems (Huang, Zheng, King and Lyu).

    min_{a,b}  1/2 a'R a + sum_i loss(f_i + b, y_i) + penalty(a),      f = k(X, Z) a

with R = k(Z, Z) or the identity. Each round replaces the penalty by the quadratic ``1/2 sum ridge_j a_j^2`` that
touches it at the last round's coefficients, solves a linear model, and drops the vectors whose coefficients vanish.

A round is solved in few dimensions: one for each remaining vector or, while those are many, the rank of a pivoted
Cholesky factor. So no matrix of all rows against all rows is formed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...linalg.arrays import Array
from ...linalg.matrix import (
    dot,
)
from ...problem.formulation import INEQUALITY, Kernel
from ...problem.regularizers import ReweightedNorm
from ...problem.slacks import OneNorm
from ...rows.labels import RowLabels
from ...rows.memory import DenseFeatures
from ...rows.protocol import decision
from ..certificate import SMALLEST_NORMAL, balanced, relative_gap
from ..primal.hinge import HingeProblem, HingeSolution
from ..primal.newton import newton
from ..primal.solve import certified
from ..rounding import KERNEL_ROUNDING
from .candidate_space import CandidateSpace, Coordinates, KernelColumns, merge_duplicates, starting_space
from .duality import Penalty, PowerPenalty, TangentPenalty, lower_bound

# Coefficients below this fraction of the largest are set to zero.
VANISHED_COEFFICIENT = 1e-8
# Problems with many rows start with FIRST_RANK, or more where many rows are hard to separate.
FIRST_RANK, MAX_RANK, CLOSE_ROWS_PER_RANK = 100, 250, 8
# A larger error of some k(x, x), relative to the largest, may be worth a higher rank.
POOR_FACTOR = 1e-3
# A change is extrapolated by at most this factor, because its rounding errors grow with it.
MAX_EXTRAPOLATION = 300
# Rounds without any gain, or without a finite gap, after which no more are tried.
MAX_IDLE_ROUNDS = 10
# Gap to which the last rounds are solved.
EXACT_GAP = 1e-11
RoundCallback = Callable[[int, int, float], None]


@dataclass(frozen=True)
class SparseSolution:
    """Vectors kept (numbers of candidates), their coefficients, the bias, and the history of the rounds."""

    kept: Array
    coef: Array
    bias: float
    objective: float
    gap: float  # of the convex problem, or of that of a round that would start from these coefficients
    converged: bool
    history: dict[str, Array]

    @property
    def n_iter(self) -> int:
        """Number of rounds."""
        return len(self.history["n_vectors"])

    def of_rows(self, rows: Array) -> SparseSolution:
        """The same, with candidates numbered as in a larger set of rows."""
        return replace(self, kept=rows[self.kept])


# --- one round --------------------------------------------------------------------------------------


def solve_round(
    at: Coordinates, y: Array, C: Array, loss: Any, start: Any, last: HingeSolution | None, tol: float
) -> HingeSolution:
    """Solve the linear model of one round, from the last round's weights and bias, to no larger an objective."""
    if not loss.smooth:
        return HingeProblem(at.G, at.B, y, C).solve(tol, start, last)
    rows = DenseFeatures(dot(at.G, at.B), RowLabels(y[:, None], C[:, None]))
    first = None if start is None else np.append(*start)[None]
    state = newton(rows, loss, first, tol=1e-3 * tol, max_iter=50)
    s = certified(rows, loss, np.arange(1), state.V, (), state.n_iter)
    F = decision(rows.P, s.V)
    duals = balanced(loss.duals(F, y[:, None], C[:, None]))[:, 0]
    return HingeSolution(s.w[:, 0], float(s.bias[0]), F[:, 0], duals, float(s.objective[0]), float(s.gap[0]), 0, 0.0)


# --- rounds -----------------------------------------------------------------------------------------


Exact = Callable[[Array], KernelColumns]


class Rounds:
    """State of the reweighting: coefficients, the space of their candidates and the history of the rounds."""

    def __init__(self, space: CandidateSpace, y: Array, C: Array, loss: Any, norm: ReweightedNorm):
        norm.check()
        self.space, self.y, self.C, self.loss, self.norm = space, y, C, loss, norm
        # All equal; 1 where k(x, x) = 1. Scaling the kernel, with C and C_alpha in proportion, gives the same model.
        self.a = np.full(len(space.candidates), 1 / max(space.size, SMALLEST_NORMAL))
        self.last: Any = None
        self.least = 0.0  # smallest size of a coefficient in the logarithm of p = 0
        self.gone = 0
        self.largest = 0.0
        self.tol = EXACT_GAP if norm.p == 2 else 1e-2
        self.counts: list[int] = []
        self.values: list[float] = []
        self.change = np.inf
        self.steady = False  # did the last round keep all vectors?
        self.unproved = 0  # rounds in a row whose gap is infinite because of rounding

    def step(self) -> None:
        """One round: reweight, solve, drop what vanished."""
        norm = self.norm
        ridge = norm.ridge(self.a)
        coordinates = self.space.coordinates(ridge, norm.base)
        before = self.last
        most = self.values[-1] + self.rounding(self.values[-1]) if self.values else np.inf
        start = None if before is None else (coordinates.weights(self.a), before.bias)
        self.last = solve_round(coordinates, self.y, self.C, self.loss, start, before, self.tol)
        self.unproved = 0 if np.isfinite(self.last.gap) else self.unproved + 1
        a = coordinates.coef(self.last.w)
        # Relative to the largest of all rounds: when C_alpha is too large, all coefficients vanish together.
        self.largest = max(self.largest, float(np.abs(a).max(initial=0.0)))
        if not self.counts and norm.p == 0:
            self.least = max(VANISHED_COEFFICIENT * self.largest, SMALLEST_NORMAL)
        value = self.solved_value(a, ridge)
        keep = np.flatnonzero(np.abs(a) > VANISHED_COEFFICIENT * self.largest) if norm.p < 1 else np.arange(len(a))
        # Above p = 1 nothing is dropped, and small coefficients may converge slowly.
        size = np.abs(self.a) if norm.p < 1 else max(self.largest, SMALLEST_NORMAL)
        if len(keep) < len(a):
            kept = np.zeros(len(a))
            kept[keep] = a[keep]
            rest = self.value(kept, self.space.values(kept) + self.last.bias)
            if rest <= most:
                a, value = kept, max(value, rest)
            else:  # dropping them would raise the objective: keep them this round
                keep = np.arange(len(a))
        with np.errstate(over="ignore"):  # where all coefficients vanish
            self.change = float((np.abs(a - self.a) / size).max(initial=0.0)) if len(keep) == len(a) else np.inf
        if before is not None and len(keep) == len(a):
            if not value <= (self.values[-1] if self.steady and self.tol <= EXACT_GAP else most):
                # The round raised the objective: if it was solved to full accuracy, only rounding errors are left.
                self.change = 0.0 if self.tol <= EXACT_GAP else np.inf
                a, value, self.last = self.a, self.values[-1], before
            elif self.steady and self.change < 1:
                a, value = self.extrapolated(a, value, before)
        self.steady = len(keep) == len(a)
        self.values.append(value)
        self.counts.append(len(keep))
        self.gone += len(a) - len(keep)
        self.a = a[keep]
        if len(keep) < len(a):
            self.space = self.space.take(keep)

    def solved_value(self, a: Array, ridge: Array) -> float:
        """The objective at the round's weights, or at the coefficients where cancellation makes the two differ; then
        ``last`` is set to the decision values of the coefficients, with the best bias."""
        last = self.last
        value = last.objective - 0.5 * float(dot(ridge, a**2)) + self.penalty(a)
        f = self.space.values(a)
        if abs(self.value(a, f + last.bias) - value) <= 1e3 * self.rounding(value):
            return value
        bias = self.best_bias(f)
        self.last = replace(last, f=f + bias, bias=bias)
        return self.value(a, self.last.f)

    def value(self, a: Array, f: Array) -> float:
        """The objective at these coefficients and decision values."""
        return self.smooth_part(self.space, a, f) + self.penalty(a)

    def rounding(self, value: float) -> float:
        """Estimate the rounding error of an objective value; at p = 0 its logarithms may cancel the other terms."""
        logarithms = np.log(np.maximum(np.abs(self.a), SMALLEST_NORMAL)) if self.norm.p == 0 else np.zeros(0)
        return 1e-12 * (abs(value) + self.norm.C_alpha * float(np.abs(logarithms).sum()))

    def best_bias(self, f: Array) -> float:
        """The exact best bias for the hinge; the bias of the last round for a smooth loss."""
        return self.last.bias if self.loss.smooth else OneNorm().bias(self.y - f, self.y, self.C, INEQUALITY)

    def penalty(self, a: Array) -> float:
        """The penalty of these coefficients and of those that have been dropped."""
        return self.norm.penalty(a, self.least) + self.norm.penalty(np.zeros(self.gone), self.least)

    def extrapolated(self, a: Array, value: float, before: Any) -> tuple[Array, float]:
        """Move on along this round's change while the objective falls.

        Coefficients converge slowly, in the same direction for many rounds. A try is cheap, because decision values are
        linear in the step.
        """
        d, df, db = a - self.a, self.last.f - before.f, self.last.bias - before.bias
        shrinking = d * a < 0
        longest = 0.75 / float((-d[shrinking] / a[shrinking]).max()) if shrinking.any() else np.inf
        best, t = 0.0, 1.0
        while t < min(longest, MAX_EXTRAPOLATION):
            at = a + t * d
            loss = self.loss.value((self.last.f + t * df)[:, None], self.y[:, None], self.C[:, None])
            tried = self.space.quadratic(at, self.norm.base) + float(loss[0]) + self.penalty(at)
            if tried >= value:
                break
            best, value, t = t, tried, 2 * t
        self.last = replace(self.last, f=self.last.f + best * df, bias=self.last.bias + best * db)
        return a + best * d, value

    def idle(self, count: int) -> bool:
        """Have the last ``count`` rounds, solved to full accuracy, gained nothing but rounding errors?"""
        if self.tol > EXACT_GAP or len(self.values) <= count or len(set(self.counts[-count - 1 :])) > 1:
            return False
        return self.values[-count - 1] - self.values[-1] <= 1e-13 * abs(self.values[-1])

    def sharpen(self) -> None:
        """Lower the tolerance of the next round to a fraction of the last progress."""
        if len(self.values) > 1:
            progress = (self.values[-2] - self.values[-1]) / max(abs(self.last.objective), SMALLEST_NORMAL)
            self.tol = min(self.tol, max(0.01 * progress, EXACT_GAP))

    def enter(self, space: KernelColumns) -> None:
        """Go on with the exact kernel; earlier objective values, of a truncated factor, are shifted to match it."""
        if self.space.truncated:
            f = dot(space.columns, self.a)
            before = self.values[-1]
            at = self.smooth_part(space, self.a, f + self.last.bias) + self.penalty(self.a)
            self.values = [v + (at - before) for v in self.values]
            self.steady = False
        self.space = space

    def smooth_part(self, space: CandidateSpace, a: Array, f: Array) -> float:
        """The objective without the penalty."""
        return space.quadratic(a, self.norm.base) + float(
            self.loss.value(f[:, None], self.y[:, None], self.C[:, None])[0]
        )

    def result(self, space: KernelColumns, converged: bool) -> SparseSolution:
        """The solution over the exact kernel, with the best bias and its certificate."""
        f = dot(space.columns, self.a)
        bias = self.best_bias(f) if len(self.a) else best_constant(self.y, self.C, self.loss)
        objective = self.smooth_part(space, self.a, f + bias) + (self.norm.penalty(self.a) if len(self.a) else 0.0)
        # Objectives of rounds never rise; only rounding errors of the shift could make them.
        shifted = np.array(self.values) + (objective - self.values[-1])
        values = np.maximum(np.minimum.accumulate(shifted), objective)
        values[-1] = objective
        history = {"n_vectors": np.array(self.counts), "objective": values}
        used = np.flatnonzero(self.a)
        gap = self.gap(space, f, bias)
        return SparseSolution(space.candidates[used], self.a[used], bias, objective, gap, converged, history)

    def gap(self, space: KernelColumns, f: Array, bias: float) -> float:
        """Duality gap of the problem; for p of at most 1, of the convex problem of a round that starts from here."""
        if not len(self.a):
            return 0.0  # a bias alone is exact
        y, C, norm = self.y[:, None], self.C[:, None], self.norm
        penalty: Penalty = (
            PowerPenalty(norm.C_alpha, norm.p) if norm.p > 1 else TangentPenalty(norm.C_alpha, norm.p, self.a)
        )
        alpha = self.loss.duals((f + bias)[:, None], y, C) if self.loss.smooth else y * self.last.alpha[:, None]
        u = balanced(alpha)
        pull = dot(u[:, 0], space.columns)

        def other() -> Array:
            at = self.space.coordinates(norm.ridge(self.a), norm.base)
            return at.coef(dot(dot(u[:, 0], at.G), at.B))

        primal = self.smooth_part(space, self.a, f + bias) + penalty.value(self.a)
        own = float(self.loss.conjugate(u, y, C)[0])
        R = norm.base.matrix(space.gram)
        dual = lower_bound(own, pull, self.a, other, R.dot, penalty, enough=primal * (1 - 1e-10))
        return relative_gap(primal + rounding_of_values(space.columns, self.a, u[:, 0]), dual)


def rounding_of_values(K: Array, a: Array, u: Array) -> float:
    """Estimate the error of the losses at ``f = K a``, whose derivatives are -u, due to independent rounding errors of
    the kernel values."""
    return KERNEL_ROUNDING * float(np.sqrt(dot(u**2, dot(K**2, a**2))))


def best_constant(y: Array, C: Array, loss: Any) -> float:
    """The best bias of a model without vectors."""
    if not loss.smooth:
        return OneNorm().bias(y, y, C, INEQUALITY)
    return float(newton(DenseFeatures(np.zeros((len(y), 0)), RowLabels(y[:, None], C[:, None])), loss).bias[0])


def without_vectors(y: Array, C: Array, loss: Any) -> SparseSolution:
    """The model with a bias only, for a kernel that is zero."""
    bias = best_constant(y, C, loss)
    objective = float(loss.value(np.full((len(y), 1), bias), y[:, None], C[:, None])[0])
    history = {"n_vectors": np.zeros(1, dtype=int), "objective": np.array([objective])}
    return SparseSolution(np.empty(0, dtype=np.int64), np.empty(0), bias, objective, 0.0, True, history)


def reweight(rounds: Rounds, exact: Exact, tol: float = 1e-6, watch: RoundCallback | None = None) -> SparseSolution:
    """Run rounds until no coefficient changes by more than ``tol``, relative to its size.

    ``exact`` gives the kernel columns of candidates; rounds switch to them when few are left.
    """
    p = rounds.norm.p
    rest = tol
    while len(rounds.counts) < rounds.norm.max_iter:
        rounds.step()
        if watch is not None:
            watch(len(rounds.counts), rounds.counts[-1], rounds.values[-1])
        if not len(rounds.a):
            return rounds.result(exact(rounds.space.candidates), True)
        if rounds.unproved >= MAX_IDLE_ROUNDS:
            return rounds.result(exact(rounds.space.candidates), True)
        settled = p == 2 or rounds.change <= rest or rounds.idle(MAX_IDLE_ROUNDS)
        # Coordinates of a factor cost more than those of as many columns.
        few = len(rounds.a) < (1 if rounds.space.truncated else 2) * rounds.space.rank
        if few or (settled and rounds.space.truncated):
            again = rounds.space.truncated
            rounds.enter(exact(rounds.space.candidates))
            settled = settled and not again
        if settled and rounds.tol <= EXACT_GAP:
            solution = rounds.result(exact(rounds.space.candidates), True)
            # For p between 1 and 2 the problem is convex, and rounds converge slowly where p is near 1.
            if p <= 1 or p == 2 or solution.gap <= tol or rest < 1e-12:
                return solution
            rest *= 0.1
        rounds.sharpen()
        if settled:
            rounds.tol = EXACT_GAP
    return rounds.result(exact(rounds.space.candidates), False)


# --- models over training rows, or over given vectors ------------------------------------------------


def sparse_rows(
    kernel: Kernel,
    X: Any,
    y: Array,
    C: Array,
    loss: Any,
    norm: ReweightedNorm,
    tol: float = 1e-6,
    threads: int = 1,
    watch: RoundCallback | None = None,
) -> SparseSolution:
    """Train a model whose vectors are training rows; `SparseSolution.kept` are their numbers."""
    data = merge_duplicates(X, y, C)

    def exact(candidates: Array) -> KernelColumns:
        Z = data.X[candidates]
        return KernelColumns(candidates, kernel(data.X, Z, threads=threads), kernel(Z, Z))

    def rounds(rank: int) -> Rounds:
        return Rounds(starting_space(kernel, data, rank, norm.p < 1, threads), data.y, data.C, loss, norm)

    first_rounds = rounds(FIRST_RANK)
    if not first_rounds.space.rank:
        return without_vectors(data.y, data.C, loss)
    if first_rounds.space.missing > POOR_FACTOR:
        # A first round shows how hard the problem is, by its number of rows at or inside the margin.
        first_rounds.step()
        rank = int(np.count_nonzero(first_rounds.last.alpha)) // CLOSE_ROWS_PER_RANK
        if rank > 1.2 * FIRST_RANK:
            first_rounds = rounds(min(rank, MAX_RANK))
    solution = reweight(first_rounds, exact, tol, watch)
    return solution.of_rows(data.first)


def sparse_coefficients(
    K: Array, gram: Array, y: Array, C: Array, loss: Any, norm: ReweightedNorm, tol: float = 1e-6
) -> SparseSolution:
    """Train a model over given vectors, with kernel values ``K = k(X, Z)`` and ``gram = k(Z, Z)``."""
    every = KernelColumns(np.arange(len(gram)), K, gram)
    return reweight(Rounds(every, y, C, loss, norm), every.take, tol)
