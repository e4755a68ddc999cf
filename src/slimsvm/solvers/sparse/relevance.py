"""The relevance vector machine: a Bayesian classifier with few vectors (Tipping and Faul).

Logistic regression over kernel columns and a bias, ``f = K w + w_0``, in which each weight has a Gaussian prior of its
own precision alpha. The precisions maximise the evidence (Laplace's approximation of it); most of them are infinite,
and their vectors are gone. One move at a time: add a vector, re-estimate precisions, or delete a vector, whatever
promises most. A move that does not raise the evidence is taken back, so that it never falls.

Promises take the curvature of the likelihood as fixed, which it is not. So, when nothing promises more, the evidence
itself has to agree: `Refinement` climbs it in all precisions at once, and tries each vector and each candidate alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from ...data.duplicates import group_equal_rows
from ...linalg.arrays import Array
from ...linalg.lbfgs import lbfgs
from ...linalg.matrix import NotPositiveDefinite, cho_solve, cholesky, dot, inverse_lower, solve_batch, solve_lower
from ...problem.formulation import Kernel

# Kernel values that are kept: candidates are thinned out beyond.
MOST_VALUES = 2**24
# A candidate with less than this part of its column outside the span of the vectors adds nothing but noise.
OUTSIDE = 1e-8
# A slope that is a smaller part than this of the terms it sums is rounding.
SLOPE_ROUNDING = 1e-14
# So is what is left of a column outside the span of the vectors, squared, as a part of the column squared.
OUTSIDE_ROUNDING = 1e-26
# Times tol: warn if a candidate that cannot be added stably would raise the evidence by more.
WARN_ABOVE_GAIN = 20
PRECISIONS = 1e-12, 1e12
# Below this square of a pivot, the determinant has lost its digits.
SINGULAR = 1e-9
# A row far on the wrong side has next to no curvature: a step may have to be cut by that much.
HALVINGS = 0.5 ** np.arange(60)
# Precisions that are tried, as multiples of the present one, or of the most that the data could say about a candidate:
# the evidence may have several maxima. A candidate that gains g has its best precision at up to about 1 / (2 sqrt(g))
# times the latter: 500 times for the smallest tolerance in use.
ELSEWHERE = 10.0 ** np.array([-0.3, -1, -2, -3, -4, -6]), 10.0 ** np.array([0.3, 1, 2, 3, 4, 6, 24])
ANYWHERE = 10.0 ** np.arange(3.0, -16.1, -0.5)
# Between two of them the evidence may be higher by this much; below that, a smaller precision does not help.
BETWEEN, HOPELESS = 0.1, 1.5
# A candidate whose first step loses evidence, and whose best weight would change no f by more than this, is not tried.
GENTLE = 0.7
# Multiplications to spend on one round of trying vectors or candidates: with many vectors, a round tries only some.
ROUND_WORK = 5e8
# Multiplications to spend, in a whole fit, on further rounds for those left out; then the fit ends with a warning.
LAST_WORK = 1e10
# A weight of which the data determine less than this is as good as gone.
UNDETERMINED = 1e-6
# A step that changes every f by at most this leaves the curvature of the likelihood as it is; by the second, within a
# factor of e^2.
SETTLED, SAFE = 0.01, 2.0
TINY = np.finfo(float).tiny

Watch = Callable[[int, int, float], None]


@dataclass(frozen=True)
class RelevanceSolution:
    """Rows that are vectors, their weights, the bias, the log evidence, and how it went move by move.

    ``precision`` has the bias's first.
    """

    kept: Array
    coef: Array
    bias: float
    precision: Array
    evidence: float
    converged: bool
    history: dict[str, Array]
    refused: bool = False  # did rounding refuse a move that looked good at the end?
    untried: bool = False  # was the work of trying vectors and candidates cut short at the end?

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


class RelevanceProblem:
    """Columns K (rows x candidates), labels t (0 or 1), weights of the rows."""

    def __init__(self, K: Array, t: Array, weight: Array):
        self.K, self.t, self.weight = K, t, weight
        self.squares = K * K
        self.sign = 1 - 2 * t

    def features(self, members: Array) -> Array:
        """A column of ones and those of the members."""
        return np.column_stack([np.ones(len(self.t)), self.K[:, members]])

    def slopes(self, f: Array) -> tuple[Array, Array]:
        """First and minus second derivatives of the log likelihood of each row, without loss of digits far out."""
        share, rest = expit(f), expit(-f)
        return self.weight * np.where(self.t > 0, rest, -share), self.weight * share * rest

    def posterior(self, members: Array, alpha: Array, w: Array, accuracy: float = 1e-13) -> Posterior | None:
        """The most probable weights (Newton's method from w) and the evidence; None if rounding spoils them.

        Steps go on until they move no f by more than `SETTLED`: far out they may gain next to nothing and yet bend the
        likelihood, and with it the determinant.
        """
        Phi = self.features(members)
        f = dot(Phi, w)
        value = self.log_posterior(f, w, alpha)
        factor = np.empty((0, 0))
        last = np.inf
        settled = False
        for _ in range(100):
            error, curvature = self.slopes(f)
            gradient = dot(error, Phi) - alpha * w
            H = dot((Phi * curvature[:, None]).T, Phi)
            H[np.arange(len(w)), np.arange(len(w))] += alpha
            # In units in which the diagonal is 1: precisions differ by many orders of magnitude.
            scale = np.sqrt(H.diagonal())
            try:
                factor = cholesky(H / np.outer(scale, scale))
            except NotPositiveDefinite:
                return None
            if factor.diagonal().min() ** 2 < SINGULAR:
                return None
            factor = factor * scale[:, None]
            step = cho_solve(factor, gradient)
            gain, along = float(dot(step, gradient)), dot(Phi, step)
            farthest = float(np.abs(along).max())
            settled = farthest <= SETTLED
            small = gain <= 1e-13 * (1 + abs(value))
            if settled and (not gain > accuracy * (1 + abs(value)) or (small and gain >= 0.1 * last)):
                break
            last = gain
            if small:  # too small to be seen in the value: the curvature stays the same within a factor
                part = min(1.0, SAFE / farthest)
                w, f = w + part * step, f + part * along
                continue
            for part in HALVINGS:
                tried = self.log_posterior(f + part * along, w + part * step, alpha)
                if tried >= value + 1e-4 * part * gain:
                    break
            else:
                break  # rounding errors hide what is left to gain
            w, f, value = w + part * step, f + part * along, tried
        if not settled:
            return None
        evidence = value + 0.5 * float(np.log(alpha).sum()) - float(np.log(factor.diagonal()).sum())
        return Posterior(members, alpha, w, f, factor, evidence) if np.isfinite(evidence) else None

    def log_posterior(self, f: Array, w: Array, alpha: Array) -> float:
        """Log likelihood and log prior, but for constants."""
        likelihood = -float(dot(self.weight, np.logaddexp(0, self.sign * f)))
        return likelihood - 0.5 * float(dot(alpha, w**2))

    def additions(self, now: Posterior) -> list[Move]:
        """The most promising candidates that are not in the model (Tipping and Faul, eqs. 20 to 30)."""
        error, curvature = self.slopes(now.f)
        Phi = self.features(now.members)
        inner = solve_lower(now.factor, dot((Phi * curvature[:, None]).T, self.K))
        whole = dot(curvature, self.squares)
        S, Q2 = whole - np.einsum("ij,ij->j", inner, inner), dot(error, self.K) ** 2
        good = (S / np.maximum(whole, TINY) > OUTSIDE) & (Q2 > S)
        good[now.members] = False
        candidates = np.flatnonzero(good)
        S, Q2 = S[candidates], Q2[candidates]
        gain = 0.5 * ((Q2 - S) / S + np.log(S / Q2))
        best = np.argsort(-gain)[:8]
        return [Move(int(candidates[i]), float(S[i] ** 2 / (Q2[i] - S[i])), float(gain[i])) for i in best]

    def changes(self, now: Posterior) -> list[Move]:
        """What could be done with the vectors in the model and the bias."""
        root = inverse_lower(now.factor)
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
            return Move(candidate, np.inf, 0.5 * float(-Q * Q / (alpha * loose) - np.log(loose)))
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
        odds = float(np.log(self.weight[self.t > 0].sum()) - np.log(self.weight[self.t == 0].sum()))
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
) -> RelevanceSolution:
    """One binary machine; y is +-1. It ends when no move raises the log evidence by more than ``tol``."""
    candidates = group_equal_rows(X).first
    thinned = -(-len(candidates) * X.shape[0] // MOST_VALUES)
    candidates = candidates[::thinned]
    machine = RelevanceProblem(kernel(X, X[candidates], threads=threads), (y > 0).astype(float), weight)
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
    # Weights so near their maximum that the evidence can be computed from them.
    now = machine.posterior(now.members, now.alpha, now.w, 0.0) or now
    values[-1] = -now.evidence
    history = {"n_vectors": np.array(counts), "objective": np.array(values)}
    kept = candidates[now.members]
    weights, bias = now.w[1:], float(now.w[0])
    return RelevanceSolution(
        kept, weights, bias, now.alpha, now.evidence, converged, history, search.refused, search.untried
    )


class Search:
    """Finds the next move. All candidates are looked at only when an addition seems best, or nothing else is left."""

    def __init__(self, machine: RelevanceProblem, tol: float):
        self.machine, self.tol = machine, tol
        self.additions: list[Move] = []
        self.refinement: Refinement | None = None

    def better(self, now: Posterior) -> Posterior | None:
        """The model after the best move; None if there is none."""
        if self.refinement is None:
            then = self.promised(now)
            if then is not None:
                return then
            self.refinement = Refinement(self.machine, self.tol)
        return self.refinement.better(now)

    @property
    def refused(self) -> bool:
        """Did rounding refuse a move that looked good in the last look at the model?"""
        return self.refinement is not None and self.refinement.refused

    @property
    def untried(self) -> bool:
        """Were vectors or candidates left out of the last look at the model, for lack of work to spend?"""
        return self.refinement is not None and self.refinement.untried

    def promised(self, now: Posterior) -> Posterior | None:
        """The model after the move that promises most, and keeps some of it."""
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


class Refinement:
    """Moves that raise the evidence itself, with the curvature of the likelihood as it changes."""

    def __init__(self, machine: RelevanceProblem, tol: float):
        self.machine, self.tol = machine, tol
        self.waiting: list[Move] = []  # additions that looked good beside the last one
        self.refused = False  # was a move that looked good beyond what float64 can tell?
        self.untried = False
        self.work_left = LAST_WORK

    def better(self, now: Posterior) -> Posterior | None:
        """A model with more evidence; None if no change of one precision raises it by more than the tolerance."""
        self.refused = self.untried = False
        for move in (self.next_one, self.climbed, self.added, self.changed):
            then = move(now)
            if then is not None and then.evidence > now.evidence + self.tol:
                return then
        return None

    def climbed(self, now: Posterior) -> Posterior | None:
        """All precisions at a maximum nearby; vectors that the data no longer determine are gone."""
        machine, best = self.machine, now

        def downhill(logarithms: Array) -> tuple[float, Array]:
            nonlocal best
            then = machine.posterior(now.members, np.exp(logarithms), best.w)
            if then is None:
                return 1e300, np.zeros(len(logarithms))
            if then.evidence > best.evidence:
                best = then
            return -then.evidence, -self.gradient(then)

        # With a slope g in the logarithm of a precision there is about g^2 left to gain from it, but where it is flat
        # g for each factor of e.
        small, slope = 0.1 * self.tol / max(abs(now.evidence), 1.0), min(np.sqrt(0.05 * self.tol), self.tol)
        least, most = (np.full(len(now.alpha), limit) for limit in np.log(PRECISIONS))
        lbfgs(downhill, np.log(now.alpha), (least, most), 100, 15_000, small, slope, memory=10)
        gamma = 1 - best.alpha * self.variances(best)
        keep = np.append(True, gamma[1:] > UNDETERMINED)
        if not keep.all():
            fewer = machine.posterior(best.members[keep[1:]], best.alpha[keep], best.w[keep])
            if fewer is not None and fewer.evidence > best.evidence - 0.1 * self.tol:
                best = fewer
        return best

    def variances(self, now: Posterior) -> Array:
        """Of the weights."""
        root = inverse_lower(now.factor)
        return np.einsum("ij,ij->j", root, root)

    def gradient(self, now: Posterior) -> Array:
        """Of the evidence, in the logarithms of the precisions."""
        machine = self.machine
        V = solve_lower(now.factor, machine.features(now.members).T)
        _, curvature = machine.slopes(now.f)
        # A precision moves f, and f the curvature.
        bend = curvature * (1 - 2 * expit(now.f)) * np.einsum("ij,ij->j", V, V)
        pull = solve_lower(now.factor, dot(V, bend), transposed=True)
        alpha, w = now.alpha, now.w
        return 0.5 * (1 - alpha * w**2 - alpha * self.variances(now) + alpha * w * pull)

    def changed(self, now: Posterior) -> Posterior | None:
        """The best model with one precision elsewhere, or one vector less."""
        best = now
        # Weights with the largest precision: deleting them may still raise the evidence.
        for candidate in now.members[now.alpha[1:] > 0.999 * PRECISIONS[1]]:
            then = self.machine.after(now, Move(int(candidate), np.inf, 0.0))
            if then is not None and then.evidence > best.evidence:
                best = then
        tries = Tries(self.machine, self.machine.features(now.members), tol=self.tol)
        order = np.argsort(1 - now.alpha * self.variances(now))  # what the data determine least comes first
        for some in self.rounds(now, len(order), sum(map(len, ELSEWHERE))):
            best = self.rescaled(now, best, tries, order[some])
            if best.evidence > now.evidence + self.tol:
                break
        return best

    def rescaled(self, now: Posterior, best: Posterior, tries: Tries, some: Array) -> Posterior:
        """The best model with one of these precisions elsewhere, unless the best one known is better."""
        for factors in ELSEWHERE:
            open_, w = some, now.w
            for factor in factors:
                alpha = np.repeat(now.alpha[None], len(open_), axis=0)
                places = np.clip(now.alpha[open_] * factor, *PRECISIONS)
                alpha[np.arange(len(open_)), open_] = places
                values, w = tries.evidence(alpha, w)
                gains = values - now.evidence
                for k in np.flatnonzero(gains > 0.1 * self.tol):
                    member = int(open_[k])
                    place = np.inf if member and places[k] == PRECISIONS[1] else float(places[k])
                    candidate = int(now.members[member - 1]) if member else -1
                    then = self.machine.after(now, Move(candidate, place, 0.0))
                    self.refused |= then is None and bool(gains[k] > 10 * self.tol)
                    if then is not None and then.evidence > best.evidence:
                        best = then
                left = gains > -HOPELESS
                open_, w = open_[left], w[left]
        return best

    def next_one(self, now: Posterior) -> Posterior | None:
        """The model after the first of the additions in waiting that is still worth it."""
        while self.waiting:
            move = self.waiting.pop(0)
            if move.candidate in now.members:
                continue
            then = self.machine.after(now, move)
            self.refused |= then is None and move.gain > 10 * self.tol
            if then is not None and then.evidence > now.evidence + self.tol:
                return then
        return None

    def added(self, now: Posterior) -> Posterior | None:
        """The model with one vector more."""
        candidates, sizes = self.candidates(now)
        for some in self.rounds(now, len(candidates), len(ANYWHERE)):
            gains = self.gains(now, candidates[some], sizes[some])
            for candidate, size, gain in zip(candidates[some], sizes[some], gains, strict=True):
                gain[0] = gain[0] if gain[0] > 0 else -np.inf  # almost without it
                for peak in peaks(gain, -BETWEEN):
                    place = np.exp(summit(np.log(size * ANYWHERE), gain, peak))
                    self.waiting.append(Move(int(candidate), float(place), float(gain[peak])))
            self.waiting.sort(key=lambda move: -move.gain)
            then = self.next_one(now)
            if then is not None:
                return then
        return None

    def rounds(self, now: Posterior, count: int, tries: int) -> Iterator[slice]:
        """What to try, best promise first: as many as a round may take, and others while there is work left."""
        work = self.work(now, tries)
        each = 1 + int(ROUND_WORK / work)
        for first in range(0, count, each):
            if first:
                self.work_left -= each * work
            if self.work_left < 0:
                self.untried = True
                return
            yield slice(first, first + each)

    def gains(self, now: Posterior, candidates: Array, sizes: Array) -> Array:
        """Of the evidence, by candidates and precisions."""
        machine, m = self.machine, len(now.alpha)
        gains = np.full((len(candidates), len(ANYWHERE)), -np.inf)
        open_ = np.arange(len(candidates))
        w = np.append(now.w, 0.0)
        Phi = machine.features(now.members)
        for i, factor in enumerate(ANYWHERE):
            alpha = np.repeat(np.append(now.alpha, 0.0)[None], len(open_), axis=0)
            alpha[:, m] = np.clip(factor * sizes[open_], *PRECISIONS)
            value, w = Tries(machine, Phi, machine.K[:, candidates[open_]], self.tol).evidence(alpha, w)
            gains[open_, i] = value - now.evidence
            left = gains[open_, i] > -HOPELESS
            open_, w = open_[left], w[left]
        return gains

    def candidates(self, now: Posterior) -> tuple[Array, Array]:
        """Vectors that are worth a look, best promise first, and the most that the data could say about the weight."""
        machine = self.machine
        error, curvature = machine.slopes(now.f)
        Phi = machine.features(now.members)
        V = solve_lower(now.factor, Phi.T)
        inner = dot(V * curvature, machine.K)
        whole = dot(curvature, machine.squares)
        S, Q = whole - np.einsum("ij,ij->j", inner, inner), dot(error, machine.K)
        good = S / np.maximum(whole, TINY) > OUTSIDE
        close = ~good
        good[now.members] = close[now.members] = False
        self.refused |= self.hidden_gain(now, np.flatnonzero(close))
        some = np.flatnonzero(good)
        S, Q = S[some], Q[some]
        line = machine.K[:, some] - dot(V.T, inner[:, some])  # how f changes as the weight grows and the others follow
        bend = curvature * (1 - 2 * expit(now.f)) * np.einsum("ij,ij->j", V, V)
        dull = (Q**2 - Q * dot(bend, line) < 0.7 * S) & (np.abs(Q) * np.abs(line).max(axis=0) < GENTLE * S)
        some, promise = some[~dull], (Q**2 / S)[~dull]
        some = some[np.argsort(-promise)]
        sizes = dot(0.25 * machine.weight, machine.squares[:, some])
        return some, np.minimum(sizes, PRECISIONS[1] / ANYWHERE[0])

    def hidden_gain(self, now: Posterior, close: Array) -> bool:
        """Would one of these candidates raise the evidence, which lie so near the span of the vectors that the evidence
        with them cannot be computed?

        By Tipping and Faul's estimate, where S is the least ``(k - Phi c)'B(k - Phi c) + c'A c`` over c, with the
        curvatures B and precisions A: a sum without cancellation.
        """
        machine, K = self.machine, self.machine.K[:, close]
        error, curvature = machine.slopes(now.f)
        Phi = machine.features(now.members)
        c, rest = np.zeros((Phi.shape[1], len(close))), K
        for _ in range(2):  # the second time for the digits that the first one lost
            c = c + cho_solve(now.factor, dot((Phi * curvature[:, None]).T, rest) - now.alpha[:, None] * c)
            rest = K - dot(Phi, c)
        outside, inside = dot(curvature, rest**2), dot(now.alpha, c**2)
        Q, sizes = dot(error, K), dot(np.abs(error), np.abs(K))
        told = (outside > OUTSIDE_ROUNDING * dot(curvature, K**2)) & (np.abs(Q) > SLOPE_ROUNDING * sizes)
        ratio = Q[told] ** 2 / (outside + inside)[told]
        ratio = ratio[ratio > 1]
        return bool((ratio - 1 - np.log(ratio) > WARN_ABOVE_GAIN * self.tol).any())

    def work(self, now: Posterior, tries: int) -> float:
        """Multiplications that trying so many precisions for one vector takes."""
        m = len(now.alpha) + 5
        return float(tries) * (len(self.machine.t) * m**2 + 2 * m**3)


def peaks(values: Array, least: float) -> Array:
    """Where values are no smaller than those beside them, nor than ``least``."""
    padded = np.concatenate([[-np.inf], values, [-np.inf]])
    return np.flatnonzero((values >= padded[:-2]) & (values >= padded[2:]) & (values >= least))


def summit(x: Array, values: Array, i: int) -> float:
    """Where a function has its peak near ``x[i]``: the vertex of the parabola through three values."""
    if not 0 < i < len(x) - 1 or not np.isfinite(values[i - 1 : i + 2]).all():
        return float(x[i])
    a, b = np.diff(values[i - 1 : i + 2]) / np.diff(x[i - 1 : i + 2])
    here, there = 0.5 * (x[i - 1] + x[i]), 0.5 * (x[i] + x[i + 1])
    return float(here - a * (there - here) / (b - a)) if a != b else float(x[i])


class Tries:
    """The evidence of many models at once: features that they share, and, where given, one more of each model's own."""

    def __init__(self, machine: RelevanceProblem, Phi: Array, extra: Array | None = None, tol: float = 1e-3):
        self.machine, self.Phi, self.extra = machine, Phi, extra
        # A step that is left to do changes the determinant by about the root of what it gains.
        self.accuracy = np.clip((0.1 * tol) ** 2, 1e-14, 1e-9)
        rows, columns = np.tril_indices(Phi.shape[1])
        self.lower = rows, columns
        self.products = Phi[:, rows] * Phi[:, columns]

    def evidence(self, alpha: Array, w: Array, block: int = 2**19) -> tuple[Array, Array]:
        """For each row of precisions, by Newton's method from w, with the weights; -inf where it does not converge."""
        w = np.array(np.broadcast_to(w, alpha.shape))
        evidence = np.full(len(alpha), -np.inf)
        some = max(1, block // len(self.Phi))
        for i in range(0, len(alpha), some):
            self.of_block(alpha[i : i + some], w[i : i + some], evidence[i : i + some], i)
        return evidence, w

    def of_block(self, alpha: Array, weights: Array, evidence: Array, first: int) -> None:
        """Fills in evidence and weights."""
        extra = None if self.extra is None else self.extra[:, first : first + len(alpha)]
        open_ = np.arange(len(alpha))
        w = weights.copy()
        f = self.decision(w, extra)
        value = self.log_posterior(f, w, alpha)
        for _ in range(60):
            gradient, H = self.derivatives(f, w, alpha, extra)
            unit = 1 / np.sqrt(np.einsum("bii->bi", H))
            H *= unit[:, :, None] * unit[:, None, :]
            with np.errstate(all="ignore"):
                scaled, determinant = solve_batch(H + 1e-14 * np.eye(H.shape[1]), unit * gradient)
                step, determinant = unit * scaled, determinant - 2 * np.log(unit).sum(axis=1)
                along = self.decision(step, extra)
            gain = np.einsum("bi,bi->b", step, gradient)
            # Far out each step may gain next to nothing and yet bend the likelihood, and with it the determinant.
            done = (gain <= self.accuracy * (1 + np.abs(value))) & (np.abs(along).max(axis=0) <= SETTLED)
            evidence[open_[done]] = (value + 0.5 * np.log(alpha).sum(axis=1) - 0.5 * determinant)[done]
            weights[open_[done]] = w[done]
            left = ~done & np.isfinite(gain)
            if not left.any():
                break
            open_, alpha, w, f, along = open_[left], alpha[left], w[left], f[:, left], along[:, left]
            value, step, gain = value[left], step[left], gain[left]
            extra = None if extra is None else extra[:, left]
            part = np.ones(len(open_))
            for _ in range(12):
                tried = self.log_posterior(f + part * along, w + part[:, None] * step, alpha)
                short = tried < value + 1e-4 * part * gain
                if not short.any():
                    break
                part[short] *= 0.5
            w, f, value = w + part[:, None] * step, f + part * along, tried

    def decision(self, w: Array, extra: Array | None) -> Array:
        """f of each model, in columns."""
        m = self.Phi.shape[1]
        f = dot(self.Phi, w[:, :m].T)
        return f if extra is None else f + extra * w[:, m]

    def log_posterior(self, f: Array, w: Array, alpha: Array) -> Array:
        machine = self.machine
        value = -dot(machine.weight, np.logaddexp(0, machine.sign[:, None] * f))
        return value - 0.5 * np.einsum("bi,bi->b", alpha, w**2)

    def derivatives(self, f: Array, w: Array, alpha: Array, extra: Array | None) -> tuple[Array, Array]:
        """Gradient and minus the Hessian of the log posterior."""
        machine, Phi, m = self.machine, self.Phi, self.Phi.shape[1]
        share, rest, weight = expit(f), expit(-f), machine.weight[:, None]
        error, curvature = weight * np.where(machine.t[:, None] > 0, rest, -share), weight * share * rest
        H = np.empty((f.shape[1], alpha.shape[1], alpha.shape[1]))
        rows, columns = self.lower
        H[:, rows, columns] = H[:, columns, rows] = dot(curvature.T, self.products)
        gradient = np.empty_like(w)
        gradient[:, :m] = dot(error.T, Phi)
        if extra is not None:
            bent = curvature * extra
            H[:, :m, m] = H[:, m, :m] = dot(bent.T, Phi)
            H[:, m, m] = np.einsum("ij,ij->j", bent, extra)
            gradient[:, m] = np.einsum("ij,ij->j", error, extra)
        np.einsum("bii->bi", H)[:] += alpha
        return gradient - alpha * w, H
