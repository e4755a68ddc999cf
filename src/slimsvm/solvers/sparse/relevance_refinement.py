"""Refinement of a relevance vector machine: moves judged by the evidence itself, not by predicted gains."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import expit

from ...linalg.arrays import Array
from ...linalg.lbfgs import lbfgs
from ...linalg.matrix import cho_solve, dot, inverse_lower, solve_batch, solve_lower
from .relevance_problem import (
    MIN_SHARE_OUTSIDE_SPAN,
    PRECISIONS,
    SETTLED_STEP,
    SMALLEST_NORMAL,
    Move,
    Posterior,
    RelevanceProblem,
)

# Slopes below this share of the sum of their terms' sizes are rounding errors.
SLOPE_ROUNDING = 1e-14
# So are squared distances of a column to the span of the vectors below this share of its squared norm.
OUTSIDE_ROUNDING = 1e-26
# Times tol: warn if a candidate that cannot be added stably would raise the evidence by more.
WARN_ABOVE_GAIN = 20
# Precisions that are tried, as multiples of the current one, or of the largest curvature that the data allow for a
# candidate: the evidence may have several maxima. A candidate that gains g has its best precision at up to about
# 1 / (2 sqrt(g)) times the latter: 500 times for the smallest tolerance in use.
PRECISION_FACTORS = 10.0 ** np.array([-0.3, -1, -2, -3, -4, -6]), 10.0 ** np.array([0.3, 1, 2, 3, 4, 6, 24])
ADDED_PRECISION_FACTORS = 10.0 ** np.arange(3.0, -16.1, -0.5)
# Between two tried precisions the evidence may be higher by the first; after a loss of more than the second, smaller
# precisions are not tried.
MAX_GAIN_BETWEEN_FACTORS, HOPELESS_LOSS = 0.1, 1.5
# A candidate whose first step loses evidence, and whose best weight would change no f by more than this, is not tried.
MIN_CHANGE_OF_F = 0.7
# Multiplications to spend on one round of trying vectors or candidates: with many vectors, a round tries only some.
MAX_ROUND_WORK = 5e8
# Multiplications to spend, in a whole fit, on further rounds for those left out; then the fit ends with a warning.
MAX_LAST_WORK = 1e10
# Weights whose determination by the data (gamma) is smaller are dropped.
MIN_DETERMINATION = 1e-6


class Refinement:
    """Finds moves that raise the evidence, recomputed with the curvature of the likelihood after each move."""

    def __init__(self, problem: RelevanceProblem, tol: float):
        self.problem, self.tol = problem, tol
        self.waiting: list[Move] = []  # other promising additions from the last search
        self.refused = False  # did rounding prevent a promising move?
        self.untried = False
        self.work_left = MAX_LAST_WORK

    def better(self, current: Posterior) -> Posterior | None:
        """A model with more evidence; None if no change of one precision raises it by more than the tolerance."""
        self.refused = self.untried = False
        for move in (self.next_one, self.climbed, self.added, self.changed):
            proposed = move(current)
            if proposed is not None and proposed.evidence > current.evidence + self.tol:
                return proposed
        return None

    def climbed(self, current: Posterior) -> Posterior | None:
        """The model at a local maximum in all precisions, without the vectors that the data no longer determine."""
        problem, best = self.problem, current

        def downhill(logarithms: Array) -> tuple[float, Array]:
            nonlocal best
            proposed = problem.posterior(current.members, np.exp(logarithms), best.w)
            if proposed is None:
                return 1e300, np.zeros(len(logarithms))
            if proposed.evidence > best.evidence:
                best = proposed
            return -proposed.evidence, -self.gradient(proposed)

        # With a slope g in the logarithm of a precision the gain left is about g^2 near a maximum, and g for each
        # factor of e on a plateau.
        small, slope = 0.1 * self.tol / max(abs(current.evidence), 1.0), min(np.sqrt(0.05 * self.tol), self.tol)
        least, most = (np.full(len(current.alpha), limit) for limit in np.log(PRECISIONS))
        lbfgs(downhill, np.log(current.alpha), (least, most), 100, 15_000, small, slope, memory=10)
        gamma = 1 - best.alpha * self.variances(best)
        keep = np.append(True, gamma[1:] > MIN_DETERMINATION)
        if not keep.all():
            fewer = problem.posterior(best.members[keep[1:]], best.alpha[keep], best.w[keep])
            if fewer is not None and fewer.evidence > best.evidence - 0.1 * self.tol:
                best = fewer
        return best

    def variances(self, current: Posterior) -> Array:
        """Posterior variances of the weights."""
        root = inverse_lower(current.factor)
        return np.einsum("ij,ij->j", root, root)

    def gradient(self, current: Posterior) -> Array:
        """Gradient of the evidence in the logarithms of the precisions."""
        problem = self.problem
        V = solve_lower(current.factor, problem.features(current.members).T)
        _, curvature = problem.slopes(current.f)
        # A precision changes f, and f changes the curvature.
        bend = curvature * (1 - 2 * expit(current.f)) * np.einsum("ij,ij->j", V, V)
        pull = solve_lower(current.factor, dot(V, bend), transposed=True)
        alpha, w = current.alpha, current.w
        return 0.5 * (1 - alpha * w**2 - alpha * self.variances(current) + alpha * w * pull)

    def changed(self, current: Posterior) -> Posterior | None:
        """The best model with one precision changed far, or one vector less."""
        best = current
        # Weights with the largest precision: deleting them may still raise the evidence.
        for candidate in current.members[current.alpha[1:] > 0.999 * PRECISIONS[1]]:
            proposed = self.problem.after(current, Move(int(candidate), np.inf, 0.0))
            if proposed is not None and proposed.evidence > best.evidence:
                best = proposed
        tries = TrialModels(self.problem, self.problem.features(current.members), tol=self.tol)
        order = np.argsort(1 - current.alpha * self.variances(current))  # what the data determine least comes first
        for some in self.rounds(current, len(order), sum(map(len, PRECISION_FACTORS))):
            best = self.rescaled(current, best, tries, order[some])
            if best.evidence > current.evidence + self.tol:
                break
        return best

    def rescaled(self, current: Posterior, best: Posterior, tries: TrialModels, some: Array) -> Posterior:
        """The best of ``best`` and the models with one of these precisions multiplied by one of the factors."""
        for factors in PRECISION_FACTORS:
            open_, w = some, current.w
            for factor in factors:
                alpha = np.repeat(current.alpha[None], len(open_), axis=0)
                places = np.clip(current.alpha[open_] * factor, *PRECISIONS)
                alpha[np.arange(len(open_)), open_] = places
                values, w = tries.evidence(alpha, w)
                gains = values - current.evidence
                for k in np.flatnonzero(gains > 0.1 * self.tol):
                    member = int(open_[k])
                    place = np.inf if member and places[k] == PRECISIONS[1] else float(places[k])
                    candidate = int(current.members[member - 1]) if member else -1
                    proposed = self.problem.after(current, Move(candidate, place, 0.0))
                    self.refused |= proposed is None and bool(gains[k] > 10 * self.tol)
                    if proposed is not None and proposed.evidence > best.evidence:
                        best = proposed
                left = gains > -HOPELESS_LOSS
                open_, w = open_[left], w[left]
        return best

    def next_one(self, current: Posterior) -> Posterior | None:
        """The model after the first waiting addition that still raises the evidence; None if there is none."""
        while self.waiting:
            move = self.waiting.pop(0)
            if move.candidate in current.members:
                continue
            proposed = self.problem.after(current, move)
            self.refused |= proposed is None and move.gain > 10 * self.tol
            if proposed is not None and proposed.evidence > current.evidence + self.tol:
                return proposed
        return None

    def added(self, current: Posterior) -> Posterior | None:
        """The model with one more vector; None if no candidate raises the evidence."""
        candidates, sizes = self.candidates(current)
        for some in self.rounds(current, len(candidates), len(ADDED_PRECISION_FACTORS)):
            gains = self.gains(current, candidates[some], sizes[some])
            for candidate, size, gain in zip(candidates[some], sizes[some], gains, strict=True):
                gain[0] = gain[0] if gain[0] > 0 else -np.inf  # almost infinite: nearly the model without it
                for peak in peaks(gain, -MAX_GAIN_BETWEEN_FACTORS):
                    place = np.exp(summit(np.log(size * ADDED_PRECISION_FACTORS), gain, peak))
                    self.waiting.append(Move(int(candidate), float(place), float(gain[peak])))
            self.waiting.sort(key=lambda move: -move.gain)
            proposed = self.next_one(current)
            if proposed is not None:
                return proposed
        return None

    def rounds(self, current: Posterior, count: int, tries: int) -> Iterator[slice]:
        """Slices to try in order: the first round is free, further ones use up ``work_left``."""
        work = self.work(current, tries)
        each = 1 + int(MAX_ROUND_WORK / work)
        for first in range(0, count, each):
            if first:
                self.work_left -= each * work
            if self.work_left < 0:
                self.untried = True
                return
            yield slice(first, first + each)

    def gains(self, current: Posterior, candidates: Array, sizes: Array) -> Array:
        """Gains in evidence from adding candidates (candidates x precisions)."""
        problem, m = self.problem, len(current.alpha)
        gains = np.full((len(candidates), len(ADDED_PRECISION_FACTORS)), -np.inf)
        open_ = np.arange(len(candidates))
        w = np.append(current.w, 0.0)
        Phi = problem.features(current.members)
        for i, factor in enumerate(ADDED_PRECISION_FACTORS):
            alpha = np.repeat(np.append(current.alpha, 0.0)[None], len(open_), axis=0)
            alpha[:, m] = np.clip(factor * sizes[open_], *PRECISIONS)
            value, w = TrialModels(problem, Phi, problem.K[:, candidates[open_]], self.tol).evidence(alpha, w)
            gains[open_, i] = value - current.evidence
            left = gains[open_, i] > -HOPELESS_LOSS
            open_, w = open_[left], w[left]
        return gains

    def candidates(self, current: Posterior) -> tuple[Array, Array]:
        """Promising candidates, best first, and the largest curvature that the data allow for their weight."""
        problem = self.problem
        error, curvature = problem.slopes(current.f)
        Phi = problem.features(current.members)
        V = solve_lower(current.factor, Phi.T)
        inner = dot(V * curvature, problem.K)
        whole = dot(curvature, problem.squares)
        S, Q = whole - np.einsum("ij,ij->j", inner, inner), dot(error, problem.K)
        good = S / np.maximum(whole, SMALLEST_NORMAL) > MIN_SHARE_OUTSIDE_SPAN
        close = ~good
        good[current.members] = close[current.members] = False
        self.refused |= self.hidden_gain(current, np.flatnonzero(close))
        some = np.flatnonzero(good)
        S, Q = S[some], Q[some]
        line = problem.K[:, some] - dot(V.T, inner[:, some])  # how f changes as the weight grows and the others follow
        bend = curvature * (1 - 2 * expit(current.f)) * np.einsum("ij,ij->j", V, V)
        dull = (Q**2 - Q * dot(bend, line) < 0.7 * S) & (np.abs(Q) * np.abs(line).max(axis=0) < MIN_CHANGE_OF_F * S)
        some, promise = some[~dull], (Q**2 / S)[~dull]
        some = some[np.argsort(-promise)]
        sizes = dot(0.25 * problem.weight, problem.squares[:, some])
        return some, np.minimum(sizes, PRECISIONS[1] / ADDED_PRECISION_FACTORS[0])

    def hidden_gain(self, current: Posterior, close: Array) -> bool:
        """Would a candidate so near the span of the vectors that its evidence cannot be computed raise the evidence?

        By Tipping and Faul's estimate, where S is the least ``(k - Phi c)'B(k - Phi c) + c'A c`` over c, with
        the curvatures B and precisions A: a sum without cancellation.
        """
        problem, K = self.problem, self.problem.K[:, close]
        error, curvature = problem.slopes(current.f)
        Phi = problem.features(current.members)
        c, rest = np.zeros((Phi.shape[1], len(close))), K
        for _ in range(2):  # the second time is iterative refinement
            c = c + cho_solve(current.factor, dot((Phi * curvature[:, None]).T, rest) - current.alpha[:, None] * c)
            rest = K - dot(Phi, c)
        outside, inside = dot(curvature, rest**2), dot(current.alpha, c**2)
        Q, sizes = dot(error, K), dot(np.abs(error), np.abs(K))
        reliable = (outside > OUTSIDE_ROUNDING * dot(curvature, K**2)) & (np.abs(Q) > SLOPE_ROUNDING * sizes)
        ratio = Q[reliable] ** 2 / (outside + inside)[reliable]
        ratio = ratio[ratio > 1]
        return bool((ratio - 1 - np.log(ratio) > WARN_ABOVE_GAIN * self.tol).any())

    def work(self, current: Posterior, tries: int) -> float:
        """Number of multiplications to try so many precisions for one vector."""
        m = len(current.alpha) + 5
        return float(tries) * (len(self.problem.t) * m**2 + 2 * m**3)


def peaks(values: Array, least: float) -> Array:
    """Positions of local maxima that are not below ``least``."""
    padded = np.concatenate([[-np.inf], values, [-np.inf]])
    return np.flatnonzero((values >= padded[:-2]) & (values >= padded[2:]) & (values >= least))


def summit(x: Array, values: Array, i: int) -> float:
    """The maximum of a function near ``x[i]``: the vertex of the parabola through three values."""
    if not 0 < i < len(x) - 1 or not np.isfinite(values[i - 1 : i + 2]).all():
        return float(x[i])
    a, b = np.diff(values[i - 1 : i + 2]) / np.diff(x[i - 1 : i + 2])
    here, there = 0.5 * (x[i - 1] + x[i]), 0.5 * (x[i] + x[i + 1])
    return float(here - a * (there - here) / (b - a)) if a != b else float(x[i])


class TrialModels:
    """The evidence of many models at once, with shared features Phi and, if given, one extra feature for each model."""

    def __init__(self, problem: RelevanceProblem, Phi: Array, extra: Array | None = None, tol: float = 1e-3):
        self.problem, self.Phi, self.extra = problem, Phi, extra
        # One more step would change the determinant by about the root of its gain.
        self.accuracy = np.clip((0.1 * tol) ** 2, 1e-14, 1e-9)
        rows, columns = np.tril_indices(Phi.shape[1])
        self.lower = rows, columns
        self.products = Phi[:, rows] * Phi[:, columns]

    def evidence(self, alpha: Array, w: Array, block: int = 2**19) -> tuple[Array, Array]:
        """Evidence and weights for each row of precisions, by Newton's method from w; -inf if it does not converge."""
        w = np.array(np.broadcast_to(w, alpha.shape))
        evidence = np.full(len(alpha), -np.inf)
        some = max(1, block // len(self.Phi))
        for i in range(0, len(alpha), some):
            self.of_block(alpha[i : i + some], w[i : i + some], evidence[i : i + some], i)
        return evidence, w

    def of_block(self, alpha: Array, weights: Array, evidence: Array, first: int) -> None:
        """Fill in evidence and weights of a block of models."""
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
            # At large |f| a step may gain next to nothing and yet change the curvature, and with it the determinant.
            done = (gain <= self.accuracy * (1 + np.abs(value))) & (np.abs(along).max(axis=0) <= SETTLED_STEP)
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
        """Decision values f (rows x models)."""
        m = self.Phi.shape[1]
        f = dot(self.Phi, w[:, :m].T)
        return f if extra is None else f + extra * w[:, m]

    def log_posterior(self, f: Array, w: Array, alpha: Array) -> Array:
        problem = self.problem
        value = -dot(problem.weight, np.logaddexp(0, problem.sign[:, None] * f))
        return value - 0.5 * np.einsum("bi,bi->b", alpha, w**2)

    def derivatives(self, f: Array, w: Array, alpha: Array, extra: Array | None) -> tuple[Array, Array]:
        """Gradient and minus the Hessian of the log posterior."""
        problem, Phi, m = self.problem, self.Phi, self.Phi.shape[1]
        share, rest, weight = expit(f), expit(-f), problem.weight[:, None]
        error, curvature = weight * np.where(problem.t[:, None] > 0, rest, -share), weight * share * rest
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
