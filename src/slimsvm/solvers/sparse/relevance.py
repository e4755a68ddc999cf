"""The relevance vector machine: a Bayesian classifier with few vectors (Tipping and Faul).

Logistic regression over kernel columns and a bias, ``f = K w + w_0``, in which each weight has a Gaussian prior of its
own precision alpha. The precisions maximise the evidence (Laplace's approximation of it); most of them are infinite,
and their vectors are dropped. Each move adds a vector, re-estimates precisions or deletes a vector, whichever has the
largest predicted gain. A move that does not raise the evidence is rejected, so the evidence never falls.

Predicted gains take the curvature of the likelihood as fixed, which it is not. When none is left, `Refinement` works on
the evidence itself: it climbs in all precisions at once, and tries each vector and each candidate alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...data.duplicates import group_equal_rows
from ...linalg.arrays import Array
from ...problem.formulation import Kernel
from .relevance_problem import Move, Posterior, RelevanceProblem
from .relevance_refinement import Refinement

# Kernel values kept in memory: beyond this, only every k-th row is a candidate.
MAX_KERNEL_VALUES = 2**24
MoveCallback = Callable[[int, int, float], None]


@dataclass(frozen=True)
class RelevanceSolution:
    """Rows that are vectors, their weights, the bias, the log evidence, and the history of the moves.

    ``precision`` begins with that of the bias.
    """

    kept: Array
    coef: Array
    bias: float
    precision: Array
    evidence: float
    converged: bool
    history: dict[str, Array]
    refused: bool = False  # did rounding prevent a promising move at the end?
    untried: bool = False  # were vectors or candidates left untried at the end, for lack of work budget?

    @property
    def n_iter(self) -> int:
        """Number of moves."""
        return len(self.history["n_vectors"])


def train_relevance(
    kernel: Kernel,
    X: Any,
    y: Array,
    weight: Array,
    tol: float = 1e-3,
    max_iter: int = 1000,
    threads: int = 1,
    watch: MoveCallback | None = None,
) -> RelevanceSolution:
    """Train on labels y (+-1) until no move raises the log evidence by more than ``tol``."""
    candidates = group_equal_rows(X).first
    thinned = -(-len(candidates) * X.shape[0] // MAX_KERNEL_VALUES)
    candidates = candidates[::thinned]
    problem = RelevanceProblem(kernel(X, X[candidates], threads=threads), (y > 0).astype(float), weight)
    current = problem.first()
    search = Search(problem, tol)
    counts, values = [0], [-current.evidence]
    converged = False
    while len(counts) < max_iter:
        better = search.better(current)
        if better is None:
            converged = True
            break
        current = better
        counts.append(len(current.members))
        values.append(-current.evidence)
        if watch is not None:
            watch(len(counts), counts[-1], current.evidence)
    # Solve for the weights as accurately as possible, for the final evidence.
    current = problem.posterior(current.members, current.alpha, current.w, 0.0) or current
    values[-1] = -current.evidence
    history = {"n_vectors": np.array(counts), "objective": np.array(values)}
    kept = candidates[current.members]
    weights, bias = current.w[1:], float(current.w[0])
    return RelevanceSolution(
        kept, weights, bias, current.alpha, current.evidence, converged, history, search.refused, search.untried
    )


class Search:
    """Finds the next move. All candidates are evaluated only if an addition seems best, or nothing else is left."""

    def __init__(self, problem: RelevanceProblem, tol: float):
        self.problem, self.tol = problem, tol
        self.additions: list[Move] = []
        self.refinement: Refinement | None = None

    def better(self, current: Posterior) -> Posterior | None:
        """The model after the best move; None if there is none."""
        if self.refinement is None:
            proposed = self.promised(current)
            if proposed is not None:
                return proposed
            self.refinement = Refinement(self.problem, self.tol)
        return self.refinement.better(current)

    @property
    def refused(self) -> bool:
        """Did rounding prevent a promising move in the last refinement?"""
        return self.refinement is not None and self.refinement.refused

    @property
    def untried(self) -> bool:
        """Were vectors or candidates left untried in the last refinement, for lack of work budget?"""
        return self.refinement is not None and self.refinement.untried

    def promised(self, current: Posterior) -> Posterior | None:
        """The model after the move with the largest predicted gain that does raise the evidence; None if none does."""
        changes = self.problem.changes(current)
        hoped = max((m.gain for m in self.additions), default=0.0)
        best = max(m.gain for m in changes)
        if best > max(hoped, self.tol):
            proposed = self.problem.all_changed(current, changes)
            if proposed is not None and proposed.evidence > current.evidence + 0.5 * best:
                return proposed
            proposed = self.first_success(current, changes)
            if proposed is not None:
                return proposed
        self.additions = self.problem.additions(current)
        return self.first_success(current, changes + self.additions)

    def first_success(self, current: Posterior, moves: list[Move]) -> Posterior | None:
        """The model after the first move, in order of predicted gain, that raises the evidence; None if none does."""
        for move in sorted(moves, key=lambda m: -m.gain):
            if move.gain <= self.tol:
                break
            proposed = self.problem.after(current, move)
            if proposed is not None and proposed.evidence > current.evidence + 0.1 * self.tol:
                return proposed
        return None
