"""The relevance vector machine: a Bayesian classifier with few vectors (Tipping and Faul).

Logistic regression over kernel columns and a bias, ``f = K w + w_0``, in which each weight has a Gaussian prior of its
own precision alpha. The precisions maximise the evidence (Laplace's approximation of it); most of them are infinite,
and their vectors are gone. One move at a time: add a vector, re-estimate precisions, or delete a vector, whatever
promises most. A move that does not raise the evidence is taken back, so that it never falls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack, solve_triangular
from scipy.special import expit

from ..data import row_numbers
from ..formulation import Array, Kernel

# Kernel values that are kept: candidates are thinned out beyond.
MOST_VALUES = 2**24
# A candidate with less than this part of its column outside the span of the vectors adds nothing but noise.
OUTSIDE = 1e-8
PRECISIONS = 1e-12, 1e12
TINY = np.finfo(float).tiny

Watch = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Relevant:
    """Rows that are vectors, their weights, the bias, the log evidence, and how it went move by move."""

    kept: Array
    coef: Array
    bias: float
    evidence: float
    converged: bool
    history: dict[str, Array]

    @property
    def n_iter(self) -> int:
        """Moves."""
        return len(self.history["n_vectors"])


@dataclass(frozen=True)
class Posterior:
    """Laplace's approximation at given precisions; the bias comes first."""

    members: Array  # candidates
    alpha: Array
    w: Array
    f: Array
    factor: Array  # lower Cholesky factor of the Hessian
    evidence: float


@dataclass(frozen=True)
class Move:
    """A change of one precision (infinite: not in the model) and what it promises."""

    candidate: int  # -1: the bias
    alpha: float
    gain: float


class RelevanceMachine:
    """Columns K (rows x candidates), labels t (0 or 1), weights of the rows."""

    def __init__(self, K: Array, t: Array, weight: Array):
        self.K, self.t, self.weight = K, t, weight
        self.squares = K * K

    def posterior(self, members: Array, alpha: Array, w: Array) -> Posterior | None:
        """The most probable weights (Newton's method from w) and the evidence; None if rounding spoils them."""
        Phi = np.column_stack([np.ones(len(self.t)), self.K[:, members]])
        f = Phi @ w
        value = self.log_posterior(f, w, alpha)
        factor = np.empty((0, 0))
        for _ in range(50):
            share = expit(f)
            gradient = (self.weight * (self.t - share)) @ Phi - alpha * w
            H = (Phi * (self.weight * share * (1 - share))[:, None]).T @ Phi
            H[np.arange(len(w)), np.arange(len(w))] += alpha
            # In units in which the diagonal is 1: precisions differ by many orders of magnitude.
            scale = np.sqrt(H.diagonal())
            factor, info = lapack.dpotrf(H / np.outer(scale, scale), lower=1, clean=1)
            if info:
                return None
            factor = factor * scale[:, None]
            step = lapack.dpotrs(factor, gradient, lower=1)[0]
            gain = float(step @ gradient)
            if not gain > 1e-13 * (1 + abs(value)):
                break
            along = Phi @ step
            for halvings in range(30):
                part = 0.5**halvings
                tried = self.log_posterior(f + part * along, w + part * step, alpha)
                if tried >= value + 1e-4 * part * gain or halvings == 29:
                    break
            w, f, value = w + part * step, f + part * along, tried
        evidence = value + 0.5 * float(np.log(alpha).sum()) - float(np.log(factor.diagonal()).sum())
        return Posterior(members, alpha, w, f, factor, evidence) if np.isfinite(evidence) else None

    def log_posterior(self, f: Array, w: Array, alpha: Array) -> float:
        """Log likelihood and log prior, but for constants."""
        likelihood = float(self.weight @ (self.t * f - np.logaddexp(0, f)))
        return likelihood - 0.5 * float(alpha @ w**2)

    def additions(self, now: Posterior) -> list[Move]:
        """The most promising candidates that are not in the model (Tipping and Faul, eqs. 20 to 30)."""
        share = expit(now.f)
        error, curvature = self.weight * (self.t - share), self.weight * share * (1 - share)
        Phi = np.column_stack([np.ones(len(self.t)), self.K[:, now.members]])
        inner = solve_triangular(now.factor, (Phi * curvature[:, None]).T @ self.K, lower=True, check_finite=False)
        whole = curvature @ self.squares
        S, Q2 = whole - np.einsum("ij,ij->j", inner, inner), (error @ self.K) ** 2
        good = (S / np.maximum(whole, TINY) > OUTSIDE) & (Q2 > S)
        good[now.members] = False
        candidates = np.flatnonzero(good)
        S, Q2 = S[candidates], Q2[candidates]
        gain = 0.5 * ((Q2 - S) / S + np.log(S / Q2))
        best = np.argsort(-gain)[:8]
        return [Move(int(candidates[i]), float(S[i] ** 2 / (Q2[i] - S[i])), float(gain[i])) for i in best]

    def changes(self, now: Posterior) -> list[Move]:
        """What could be done with the vectors in the model and the bias."""
        root = solve_triangular(now.factor, np.eye(len(now.w)), lower=True, check_finite=False)
        variance = np.einsum("ij,ij->j", root, root)
        own = np.append(-1, now.members)
        return [
            self.change(int(c), float(alpha), float(v), float(w))
            for c, alpha, v, w in zip(own, now.alpha, variance, now.w, strict=True)
        ]

    def change(self, candidate: int, alpha: float, variance: float, w: float) -> Move:
        """Re-estimate the precision of a vector, or delete it. The bias stays, if with a large precision."""
        # gamma: how well the data determine the weight; 1 - gamma is alpha times its variance.
        gamma = max(1 - alpha * variance, 0.0)
        S, Q = alpha * gamma, alpha * w
        # The same without the vector itself.
        loose = max(alpha * variance, 1e-300)
        s, q = S / loose, Q / loose
        if q * q <= s and candidate >= 0:
            return Move(candidate, np.inf, 0.5 * float(-Q * Q / (alpha - S) - np.log(loose)))
        new = float(np.clip(s * s / (q * q - s), *PRECISIONS)) if q * q > s else PRECISIONS[1]
        shift = 1 / new - 1 / alpha
        grown = max(1 + S * shift, 1e-300)
        return Move(candidate, new, 0.5 * float(Q * Q * shift / grown - np.log(grown)))

    def after(self, now: Posterior, move: Move) -> Posterior | None:
        """The model after a move."""
        if move.candidate < 0:
            at = 0
        else:
            place = np.flatnonzero(now.members == move.candidate)
            if not len(place):
                members = np.append(now.members, move.candidate)
                alpha = np.append(now.alpha, np.clip(move.alpha, *PRECISIONS))
                return self.posterior(members, alpha, np.append(now.w, 0.0))
            at = int(place[0]) + 1
        if move.alpha == np.inf:
            return self.posterior(np.delete(now.members, at - 1), np.delete(now.alpha, at), np.delete(now.w, at))
        alpha = now.alpha.copy()
        alpha[at] = move.alpha
        return self.posterior(now.members, alpha, now.w)

    def all_changed(self, now: Posterior, changes: list[Move]) -> Posterior | None:
        """The model with all precisions re-estimated at once."""
        alpha = np.array([old if m.alpha == np.inf else m.alpha for old, m in zip(now.alpha, changes, strict=True)])
        return self.posterior(now.members, alpha, now.w)

    def first(self) -> Posterior:
        """Only a bias."""
        mean = float(self.weight @ self.t / self.weight.sum())
        odds = float(np.log(mean / (1 - mean)))
        start = self.posterior(np.empty(0, dtype=np.int64), np.array([1 / (odds**2 + 0.1)]), np.array([odds]))
        assert start is not None
        return start


def train_relevance(
    kernel: Kernel,
    X: Any,
    y: Array,
    weight: Array,
    tol: float = 1e-3,
    max_iter: int = 1000,
    threads: int = 1,
    watch: Watch | None = None,
) -> Relevant:
    """One binary machine; y is +-1. It ends when no move raises the log evidence by more than ``tol``."""
    candidates = np.unique(row_numbers(X), return_index=True)[1]
    thinned = -(-len(candidates) * X.shape[0] // MOST_VALUES)
    candidates = np.sort(candidates)[::thinned]
    machine = RelevanceMachine(kernel(X, X[candidates], threads=threads), (y > 0).astype(float), weight)
    now = machine.first()
    search = Search(machine, tol)
    counts, values = [0], [-now.evidence]
    converged = False
    while len(counts) < max_iter:
        better = search.better(now)
        if better is None:
            converged = True
            break
        now = better
        counts.append(len(now.members))
        values.append(-now.evidence)
        if watch is not None:
            watch(len(counts), counts[-1], now.evidence)
    history = {"n_vectors": np.array(counts), "objective": np.array(values)}
    return Relevant(candidates[now.members], now.w[1:], float(now.w[0]), now.evidence, converged, history)


class Search:
    """Finds the next move. All candidates are looked at only when an addition seems best, or nothing else is left."""

    def __init__(self, machine: RelevanceMachine, tol: float):
        self.machine, self.tol = machine, tol
        self.additions: list[Move] = []

    def better(self, now: Posterior) -> Posterior | None:
        """The model after the best move; None if there is none."""
        changes = self.machine.changes(now)
        hoped = max((m.gain for m in self.additions), default=0.0)
        best = max(m.gain for m in changes)
        if best > max(hoped, self.tol):
            then = self.machine.all_changed(now, changes)
            if then is not None and then.evidence > now.evidence + 0.5 * best:
                return then
            then = self.first_success(now, changes)
            if then is not None:
                return then
        self.additions = self.machine.additions(now)
        return self.first_success(now, changes + self.additions)

    def first_success(self, now: Posterior, moves: list[Move]) -> Posterior | None:
        """After the first move, best promise first, that does raise the evidence."""
        for move in sorted(moves, key=lambda m: -m.gain):
            if move.gain <= self.tol:
                break
            then = self.machine.after(now, move)
            if then is not None and then.evidence > now.evidence + 0.1 * self.tol:
                return then
        return None
