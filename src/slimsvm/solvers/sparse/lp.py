"""Kernel models with an Lp penalty on the coefficients: one binary problem, for p from 0 to infinity.

    min_{a,b}  1/2 a'R a + sum_i C_i (1 - y_i (f_i + b))_+ + penalty(a),      f = K a

R is the kernel matrix ("exact") or the identity ("diagonal"). The penalty is ``C_alpha / p * sum |a_j|^p``, and
``C_alpha * sum log |a_j|`` over the vectors kept at p = 0, ``C_alpha * max |a_j|`` at p = infinity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...linalg.arrays import Array
from ...linalg.matrix import dot, qr, solve_lower, solve_upper
from ...problem.formulation import INEQUALITY, Kernel
from ...problem.losses import Hinge
from ...problem.regularizers import Identity, KernelNorm, ReweightedNorm
from ...problem.slacks import OneNorm
from ..certificate import relative_gap
from .candidate_space import DENSE_ROWS, LowRank, MergedRows, merge_duplicates, starting_space
from .duality import MaxNormPenalty, OneNormPenalty, Penalty, lower_bound
from .polyhedral import MaxNormBound, NormBound, OneNormBound, PolyhedralProblem, PolyhedralSolution
from .reweighting import RoundCallback, SparseSolution, sparse_rows, without_vectors

VARIANTS: dict[str, Any] = {"exact": KernelNorm(), "diagonal": Identity()}
_BOUNDS: dict[float, tuple[NormBound, Callable[[float], Penalty]]] = {
    1.0: (OneNormBound(), OneNormPenalty),
    np.inf: (MaxNormBound(), MaxNormPenalty),
}


def train_lp(
    kernel: Kernel,
    X: Any,
    y: Array,
    C: Array,
    p: float,
    C_alpha: float,
    variant: str = "exact",
    tol: float = 1e-6,
    max_iter: int = 200,
    threads: int = 1,
    watch: RoundCallback | None = None,
) -> SparseSolution:
    """Train by rounds of reweighting; for p = 1 and infinity, by an interior point method to a relative gap ``tol``."""
    base = VARIANTS[variant]
    if p not in _BOUNDS:
        return sparse_rows(kernel, X, y, C, Hinge(), ReweightedNorm(p, C_alpha, base, max_iter), tol, threads, watch)
    bound, penalty = _BOUNDS[p]
    data = merge_duplicates(X, y, C)
    space = starting_space(kernel, data, 0, False, threads)
    if not space.rank:
        return without_vectors(data.y, data.C, Hinge())
    problem = PolyhedralProblem(space.G, space.H, data.y, data.C, C_alpha, bound, base.follows_kernel)
    solution = problem.solve(max(1e-4 * tol, 1e-12), max_iter, 0.1 * tol)
    return _returned(KernelValues(kernel, data, space, threads), problem, penalty(C_alpha), solution, tol, max_iter)


class KernelValues:
    """Objective and dual bound from kernel values of the distinct rows or, where those are too many, the candidates."""

    def __init__(self, kernel: Kernel, data: MergedRows, space: LowRank, threads: int):
        self.data, self.candidates = data, space.candidates
        every = len(data.candidates)
        self.square = every <= DENSE_ROWS
        Z = data.X[data.candidates if self.square else self.candidates]
        self.gram = kernel(Z, Z, threads=threads)
        if self.square:
            self.penalised = np.searchsorted(data.candidates, self.candidates)
        else:
            self.penalised = np.arange(len(Z))
            self.columns = kernel(data.X, Z, threads=threads)
            self.factor = qr(space.H)

    def decision(self, a: Array) -> Array:
        """``K a``."""
        return dot(self.gram, a)[self.data.candidate] if self.square else dot(self.columns, a)

    def pull(self, u: Array) -> tuple[Array, Array]:
        """``K'u``, and coefficients whose function is nearly that of the duals u."""
        if self.square:
            own = np.bincount(self.data.candidate, weights=u, minlength=len(self.gram))
            return dot(self.gram, own), own
        pull = dot(u, self.columns)
        Q, R = self.factor
        return pull, dot(Q, solve_lower(R.T, solve_upper(R, dot(pull, Q))))

    def objective(self, a: Array, penalty: Penalty, kernel_norm: bool) -> tuple[float, float]:
        """The best bias for these coefficients, and the objective."""
        y, C, every = self.data.y, self.data.C, self.padded(a)
        f = self.decision(every)
        bias = OneNorm().bias(y - f, y, C, INEQUALITY)
        square = dot(every, dot(self.gram, every)) if kernel_norm else dot(a, a)
        return bias, 0.5 * float(square) + float(dot(C, np.maximum(1 - y * (f + bias), 0))) + penalty.value(a)

    def bound(self, a: Array, u: Array, penalty: Penalty, kernel_norm: bool, enough: float) -> float:
        """A lower bound of the objective from the duals u and the coefficients a, see `lower_bound`."""
        pull, other = self.pull(u)
        own = float(dot(self.data.y, u))
        if kernel_norm:
            every = self.padded(a)
            return lower_bound(
                own, pull, every, lambda: other, lambda x: dot(self.gram, x), penalty, self.penalised, enough
            )
        pull = pull[self.penalised]
        return lower_bound(own, pull, a, lambda: pull, lambda x: x, penalty, enough=enough)

    def padded(self, a: Array) -> Array:
        """Coefficients with zeros for rows that are not candidates."""
        every = np.zeros(len(self.gram))
        every[self.penalised] = a
        return every


def _returned(
    values: KernelValues,
    problem: PolyhedralProblem,
    penalty: Penalty,
    solution: PolyhedralSolution,
    tol: float,
    max_iter: int,
) -> SparseSolution:
    """The solution with as many coefficients set to zero as the objective allows, and its certificate."""
    norm = bool(problem.kernel_norm)
    best = solution.a
    bias, objective = values.objective(best, penalty, norm)
    most = objective * (1 + 0.1 * tol)
    bound = values.bound(best, solution.u, penalty, norm, objective * (1 - 1e-3 * tol))
    for sure in (1.0, 1e-2):
        zero = solution.surely_zero < sure
        a = np.where(zero, 0.0, solution.a)
        tried = values.objective(a, penalty, norm)
        if tried[1] > most and not zero.all():
            # They contributed a little: solve for the other coefficients again.
            again = problem.over(~zero).solve(1e-4 * tol, max_iter, 0.1 * tol)
            a = np.zeros_like(a)
            a[~zero] = again.a
            tried = values.objective(a, penalty, norm)
            bound = max(bound, values.bound(a, again.u, penalty, norm, tried[1] * (1 - 1e-3 * tol)))
        if tried[1] <= most:
            best, (bias, objective) = a, tried
            break
    used = np.flatnonzero(best)
    history = {"n_vectors": np.array([len(used)]), "objective": np.array([objective])}
    kept = values.data.first[values.candidates[used]]
    gap = relative_gap(objective, bound)
    return SparseSolution(kept, best[used], bias, objective, gap, not solution.limited, history)
