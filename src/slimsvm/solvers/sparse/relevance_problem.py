"""The evidence of a relevance vector machine at given precisions, and its predicted gain if one precision changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ...linalg.arrays import Array
from ...linalg.matrix import NotPositiveDefinite, cho_solve, cholesky, dot, inverse_lower, solve_lower

# A candidate with a smaller share of its column outside the span of the vectors adds nothing but noise.
MIN_SHARE_OUTSIDE_SPAN = 1e-8
PRECISIONS = 1e-12, 1e12
# If a squared pivot is smaller, the determinant has lost its digits.
SMALLEST_PIVOT = 1e-9
# Step lengths of the line search: a row far on the wrong side has next to no curvature, and a step may be far too long.
HALVINGS = 0.5 ** np.arange(60)
# If a step changes every f by at most the first, the curvature of the likelihood hardly changes; if by at most the
# second, by a factor of at most e^2.
SETTLED_STEP, SAFE_STEP = 0.01, 2.0
SMALLEST_NORMAL = np.finfo(float).tiny


@dataclass(frozen=True)
class Posterior:
    """Laplace's approximation of the posterior at given precisions; the bias comes first."""

    members: Array  # candidates
    alpha: Array
    w: Array
    f: Array
    factor: Array  # lower Cholesky factor of the Hessian
    evidence: float


@dataclass(frozen=True)
class Move:
    """A change of one precision (infinite: not in the model) and the gain in evidence that is predicted."""

    candidate: int  # -1: the bias
    alpha: float
    gain: float


class RelevanceProblem:
    """Logistic regression over columns K (rows x candidates), with labels t (0 or 1) and weights of the rows."""

    def __init__(self, K: Array, t: Array, weight: Array):
        self.K, self.t, self.weight = K, t, weight
        self.squares = K * K
        self.sign = 1 - 2 * t

    def features(self, members: Array) -> Array:
        """A column of ones and those of the members."""
        return np.column_stack([np.ones(len(self.t)), self.K[:, members]])

    def slopes(self, f: Array) -> tuple[Array, Array]:
        """First and minus second derivatives of the log likelihood of each row, accurate for large ``|f|``, too."""
        share, rest = expit(f), expit(-f)
        return self.weight * np.where(self.t > 0, rest, -share), self.weight * share * rest

    def posterior(self, members: Array, alpha: Array, w: Array, accuracy: float = 1e-13) -> Posterior | None:
        """The most probable weights (Newton's method from w) and the evidence; None if rounding errors are too large.

        Steps go on until they change no f by more than ``SETTLED_STEP``: at large ``|f|`` they may gain next to nothing
        and yet change the curvature of the likelihood, and with it the determinant.
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
            if factor.diagonal().min() ** 2 < SMALLEST_PIVOT:
                return None
            factor = factor * scale[:, None]
            step = cho_solve(factor, gradient)
            gain, along = float(dot(step, gradient)), dot(Phi, step)
            farthest = float(np.abs(along).max())
            settled = farthest <= SETTLED_STEP
            small = gain <= 1e-13 * (1 + abs(value))
            if settled and (not gain > accuracy * (1 + abs(value)) or (small and gain >= 0.1 * last)):
                break
            last = gain
            if small:  # below the rounding of the value: take a step that keeps the curvature within a factor
                part = min(1.0, SAFE_STEP / farthest)
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
        """Log likelihood plus log prior, up to constants."""
        likelihood = -float(dot(self.weight, np.logaddexp(0, self.sign * f)))
        return likelihood - 0.5 * float(dot(alpha, w**2))

    def additions(self, current: Posterior) -> list[Move]:
        """The most promising candidates that are not in the model (Tipping and Faul, eqs. 20 to 30)."""
        error, curvature = self.slopes(current.f)
        Phi = self.features(current.members)
        inner = solve_lower(current.factor, dot((Phi * curvature[:, None]).T, self.K))
        whole = dot(curvature, self.squares)
        S, Q2 = whole - np.einsum("ij,ij->j", inner, inner), dot(error, self.K) ** 2
        good = (S / np.maximum(whole, SMALLEST_NORMAL) > MIN_SHARE_OUTSIDE_SPAN) & (Q2 > S)
        good[current.members] = False
        candidates = np.flatnonzero(good)
        S, Q2 = S[candidates], Q2[candidates]
        gain = 0.5 * ((Q2 - S) / S + np.log(S / Q2))
        best = np.argsort(-gain)[:8]
        return [Move(int(candidates[i]), float(S[i] ** 2 / (Q2[i] - S[i])), float(gain[i])) for i in best]

    def changes(self, current: Posterior) -> list[Move]:
        """The best move for each vector in the model and for the bias: a new precision, or deletion."""
        root = inverse_lower(current.factor)
        variance = np.einsum("ij,ij->j", root, root)
        own = np.append(-1, current.members)
        return [
            self.change(int(c), float(alpha), float(v), float(w))
            for c, alpha, v, w in zip(own, current.alpha, variance, current.w, strict=True)
        ]

    def change(self, candidate: int, alpha: float, variance: float, w: float) -> Move:
        """Re-estimate the precision of a vector, or delete it; the bias is never deleted."""
        # gamma: how well the data determine the weight; 1 - gamma is alpha times its variance.
        gamma = max(1 - alpha * variance, 0.0)
        S, Q = alpha * gamma, alpha * w
        # S and Q for the model without the vector.
        loose = max(alpha * variance, 1e-300)
        s, q = S / loose, Q / loose
        if q * q <= s and candidate >= 0:
            return Move(candidate, np.inf, 0.5 * float(-Q * Q / (alpha * loose) - np.log(loose)))
        new = float(np.clip(s * s / (q * q - s), *PRECISIONS)) if q * q > s else PRECISIONS[1]
        shift = 1 / new - 1 / alpha
        grown = max(1 + S * shift, 1e-300)
        return Move(candidate, new, 0.5 * float(Q * Q * shift / grown - np.log(grown)))

    def after(self, current: Posterior, move: Move) -> Posterior | None:
        """The model after a move."""
        if move.candidate < 0:
            at = 0
        else:
            place = np.flatnonzero(current.members == move.candidate)
            if not len(place):
                members = np.append(current.members, move.candidate)
                alpha = np.append(current.alpha, np.clip(move.alpha, *PRECISIONS))
                return self.posterior(members, alpha, np.append(current.w, 0.0))
            at = int(place[0]) + 1
        if move.alpha == np.inf:
            return self.posterior(
                np.delete(current.members, at - 1), np.delete(current.alpha, at), np.delete(current.w, at)
            )
        alpha = current.alpha.copy()
        alpha[at] = move.alpha
        return self.posterior(current.members, alpha, current.w)

    def all_changed(self, current: Posterior, changes: list[Move]) -> Posterior | None:
        """The model with all precisions re-estimated at once."""
        alpha = np.array([old if m.alpha == np.inf else m.alpha for old, m in zip(current.alpha, changes, strict=True)])
        return self.posterior(current.members, alpha, current.w)

    def first(self) -> Posterior:
        """The model with a bias only."""
        odds = float(np.log(self.weight[self.t > 0].sum()) - np.log(self.weight[self.t == 0].sum()))
        start = self.posterior(np.empty(0, dtype=np.int64), np.array([1 / (odds**2 + 0.1)]), np.array([odds]))
        assert start is not None
        return start
