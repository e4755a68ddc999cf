"""Measures of the slacks: what a training error costs.

Each class gives the dual set, the value and the exact bias of one norm of the slacks xi, scaled as its
docstring says. A weight counts a row: weight 2 is the row twice, in every norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq, nnls

from ..linalg.arrays import Array
from ..linalg.matrix import cholesky, dot, solve
from .formulation import INEQUALITY, Constraint, FeasibleSet, Part, Slack, is_number, lacking, named
from .losses import Hinge, Loss, SquaredHinge

__all__ = [
    "ALL",
    "Mahalanobis",
    "MaxNorm",
    "Norm",
    "OneNorm",
    "OneTwoNorm",
    "PNorm",
    "SquaredTwoNorm",
    "TopSum",
    "TopTwoNorm",
    "TwoNorm",
    "loss",
    "resolve",
]


def _number(name: str, value: Any, above: float) -> float:
    if not is_number(value) or not above < value < np.inf:
        raise ValueError(f"{name}={value!r} must be a number above {above:g}")
    return float(value)


class Norm(Part):
    """Base class of slack norms, also of your own."""

    counts_rows: ClassVar[bool] = True
    merges_copies: ClassVar[bool] = True
    loss: ClassVar[Loss | None] = None
    # Whether phi is a sum over rows that the core can compute from the feasible set; every subclass must declare it.
    is_separable: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.is_separable = "is_separable" in vars(cls) and cls.is_separable

    def at(self, rows: Array, n_samples: int) -> Slack:
        """The norm for these rows of n_samples, in this order: the same norm, unless it has numbers for each row."""
        return self  # type: ignore[return-value]

    def pull(self, sizes: Array, weights: Array) -> Array:
        """A subgradient of phi with respect to ``|xi|``; only `bias` needs it."""
        raise NotImplementedError(f"{type(self).__name__} must implement pull or bias")

    def bias(self, residuals: Array, y: Array, weights: Array, constraint: Constraint) -> float:
        """The root in b of the derivative of phi, which never falls where phi is a norm of the sizes of slacks."""
        f = y - residuals

        def slope(b: float) -> float:
            xi = constraint.slacks(y, f, b)
            return -float(dot(y * np.sign(xi), self.pull(np.abs(xi), weights)))

        low, high = float(residuals.min()), float(residuals.max())
        if low == high or slope(low) >= 0:
            return low
        if slope(high) <= 0:
            return high
        return float(brentq(slope, low, high, xtol=1e-300, rtol=4 * np.finfo(float).eps, maxiter=500))


# --- Bias of piecewise linear norms ------------------------------------------------------------------------


def _interval(values: Array, weights: Array, target: float) -> tuple[float, float]:
    """The interval of points b where the weight of ``values <= b`` passes the target: a weighted quantile."""
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(weights[order])
    # Sums of equal weights meet the target exactly, up to rounding.
    k = int(np.searchsorted(mass, target * (1 - 1e-12)))
    if k + 1 < len(values) and mass[k] <= target * (1 + 1e-12):
        return float(values[order[k]]), float(values[order[k + 1]])
    at = float(values[order[min(k, len(values) - 1)]])
    return at, at


@dataclass(frozen=True)
class OneNorm(Norm):
    """``C * sum(|xi|)``: the hinge; with equality constraints the least-1-norm classifier."""

    loss = Hinge()
    is_separable = True

    def feasible_set(self, y: Array, C: float, weights: Array, constraint: Constraint) -> FeasibleSet:
        """Box: alpha in [0, C], or [-C, C] with equality."""
        return FeasibleSet.box(y, C * weights, constraint)

    def value(self, slacks: Array, weights: Array, constraint: Constraint) -> float:
        """``sum(|xi|)``."""
        return float(dot(weights, np.abs(slacks)))

    def bias(self, residuals: Array, y: Array, weights: Array, constraint: Constraint) -> float:
        """A quantile of the residuals: as many errors above it among y = 1 as below it among y = -1."""
        plus, minus = constraint.sides(y)
        return float(np.mean(_interval(residuals, weights * (1.0 * plus + minus), float(weights[plus].sum()))))


@dataclass(frozen=True)
class SquaredTwoNorm(Norm):
    """``C/2 * sum(xi**2)``: the squared hinge; with equality constraints the least-squares SVM."""

    loss = SquaredHinge()
    is_separable = True

    def feasible_set(self, y: Array, C: float, weights: Array, constraint: Constraint) -> FeasibleSet:
        """Half-line (or line, with equality) with ridge 1/C."""
        return FeasibleSet.box(y, np.inf, constraint, ridge=1 / (C * weights))

    def value(self, slacks: Array, weights: Array, constraint: Constraint) -> float:
        """``sum(xi**2) / 2``."""
        return 0.5 * float(dot(weights, slacks**2))

    def bias(self, residuals: Array, y: Array, weights: Array, constraint: Constraint) -> float:
        """The mean residual of the points in error: a root of a piecewise linear function."""
        plus, minus = constraint.sides(y)
        if (plus & minus).all():
            return float(dot(weights, residuals) / weights.sum())
        highest, lowest = residuals[plus].max(), residuals[minus].min()
        if highest <= lowest:  # no row is in error anywhere between
            return 0.5 * float(highest + lowest)
        order = np.argsort(residuals, kind="stable")
        r, w_plus, w_minus = residuals[order], (weights * plus)[order], (weights * minus)[order]
        # slope(b) = sum_{+, r > b} w (r - b) - sum_{-, r < b} w (b - r) falls from > 0 to < 0 along b = r_k.
        above, above_moment = np.cumsum(w_plus[::-1])[::-1], np.cumsum((w_plus * r)[::-1])[::-1]
        below, below_moment = np.cumsum(w_minus), np.cumsum(w_minus * r)
        slope = (above_moment - r * above) - (r * below - below_moment)
        k = min(max(int(np.count_nonzero(slope >= 0)) - 1, 0), len(r) - 2)
        # Between r_k and r_k+1 the points in error stay the same: b is their mean residual.
        return float((above_moment[k + 1] + below_moment[k]) / (above[k + 1] + below[k]))


@dataclass(frozen=True)
class TwoNorm(Norm):
    """``C * sqrt(sum(xi**2))``: as `SquaredTwoNorm`, with C divided by the norm of the remaining slacks."""

    def feasible_set(self, y: Array, C: float, weights: Array, constraint: Constraint) -> FeasibleSet:
        """Ball of radius C."""
        return FeasibleSet.box(y, np.inf, constraint, radius=C, stretch=1 / weights)

    def value(self, slacks: Array, weights: Array, constraint: Constraint) -> float:
        """``sqrt(sum(xi**2))``."""
        most = float(np.abs(slacks).max())
        return most * float(np.sqrt(dot(weights, (slacks / most) ** 2))) if most > 0 else 0.0

    def bias(self, residuals: Array, y: Array, weights: Array, constraint: Constraint) -> float:
        """The bias of `SquaredTwoNorm`: the root is monotone."""
        return SquaredTwoNorm().bias(residuals, y, weights, constraint)


@dataclass(frozen=True)
class PNorm(Norm):
    """``C * sum(|xi|**p) ** (1/p)`` with p > 1; p = 2 is `TwoNorm`.

    Parameters
    ----------
    p : float, default=1.5
        Between 1.05, near `OneNorm`, and 100, near `MaxNorm`.
    """

    p: float = 1.5

    def feasible_set(self, y: Array, C: float, weights: Array, constraint: Constraint) -> FeasibleSet:
        """Ball of radius C in the norm of the conjugate power p / (p - 1)."""
        p = _number("p", self.p, above=1)
        if not 1.05 <= p <= 100:
            near = "OneNorm" if p < 2 else "MaxNorm"
            raise ValueError(f"p={p:g} must be between 1.05 and 100; use {near} for powers beyond")
        power = p / (p - 1)
        return FeasibleSet.box(y, np.inf, constraint, radius=C, stretch=weights ** (1 - power), power=power)

    def value(self, slacks: Array, weights: Array, constraint: Constraint) -> float:
        """``sum(|xi|**p) ** (1/p)``."""
        sizes = np.abs(slacks)
        most = float(sizes.max())
        return most * float(dot(weights, (sizes / most) ** self.p)) ** (1 / self.p) if most > 0 else 0.0

    def pull(self, sizes: Array, weights: Array) -> Array:
        """The subgradient up to a positive factor, as `bias` needs only the sign of the slope."""
        most = sizes.max()
        return weights * (sizes / most) ** (self.p - 1) if most > 0 else np.zeros_like(sizes)


@dataclass(frozen=True)
class MaxNorm(Norm):
    """``C * max(|xi|)``: only the worst error costs. Weights change nothing, except that weight 0 removes a row."""

    counts_rows = False

    def feasible_set(self, y: Array, C: float, weights: Array, constraint: Constraint) -> FeasibleSet:
        """Cap: ``sum(|alpha|) <= C``."""
        return FeasibleSet.box(y, np.inf, constraint, total=C)

    def value(self, slacks: Array, weights: Array, constraint: Constraint) -> float:
        """``max(|xi|)``."""
        return float(np.abs(slacks).max())

    def bias(self, residuals: Array, y: Array, weights: Array, constraint: Constraint) -> float:
        """Halfway between the worst of the two classes (equality: between the extreme residuals)."""
        plus, minus = constraint.sides(y)
        return 0.5 * float(residuals[plus].max() + residuals[minus].min())


@dataclass(frozen=True)
class TopSum(Norm):
    """``C`` times the sum of the ``budget`` largest \\|xi\\| (a fractional budget takes a fraction of the next).

    From twice the size of the smaller class on, this is `OneNorm`; at 2 and below, ``budget * MaxNorm``. In
    between it is the nu-SVM with ``nu = budget / n_samples``: C only scales f.

    Parameters
    ----------
    budget : float, default=50
        Above 0.
    """

    budget: float = 50.0

    def feasible_set(self, y: Array, C: float, weights: Array, constraint: Constraint) -> FeasibleSet:
        """Box [0, C] and cap budget * C; the one that never binds is left out."""
        budget = _number("budget", self.budget, above=0)
        if budget >= constraint.reach_in_box(y, weights):
            return OneNorm().feasible_set(y, C, weights, constraint)
        # The duals sum to zero: each class has half the cap.
        bound = np.inf if budget <= 2 * weights.min() else C * weights
        return FeasibleSet.box(y, bound, constraint, total=budget * C)

    def value(self, slacks: Array, weights: Array, constraint: Constraint) -> float:
        """Sum of the ``budget`` largest."""
        sizes = np.abs(slacks)
        order = np.argsort(-sizes, kind="stable")
        left = self.budget - (np.cumsum(weights[order]) - weights[order])
        return float(dot(np.clip(left, 0.0, weights[order]), sizes[order]))

    def bias(self, residuals: Array, y: Array, weights: Array, constraint: Constraint) -> float:
        """Halfway between quantiles of the two classes, or the quantile of `OneNorm`.

        phi is the minimum over t >= 0 of ``budget * t + sum((|xi| - t)_+)``. This separates into a problem in t + b for
        positive and one in t - b for negative errors, unless t would be negative.
        """
        plus, minus = constraint.sides(y)
        half = 0.5 * self.budget
        if half <= min(weights[plus].sum(), weights[minus].sum()):
            high = -np.array(_interval(-residuals[plus], weights[plus], half))  # t + b, upper end first
            low = -np.array(_interval(residuals[minus], weights[minus], half))  # t - b
            room = 2 * high[0] + 2 * low[0], high.sum() + low.sum()
            if room[0] >= 0:
                # The middle of both intervals, or as near to it as t >= 0 allows.
                share = 0.0 if room[1] >= 0 else room[1] / (room[1] - room[0])
                s, r = (ends.mean() + share * (ends[0] - ends.mean()) for ends in (high, low))
                return 0.5 * float(s - r)
        return OneNorm().bias(residuals, y, weights, constraint)


@dataclass(frozen=True)
class TopTwoNorm(Norm):
    """``C`` times the norm between `TwoNorm` and `MaxNorm` that counts about ``budget`` slacks.

    ``min over t >= 0 of sqrt(sum((|xi| - t)_+**2)) + sqrt(budget) * t``: K(2, inf, sqrt(budget)) in the
    notation of Dekel & Singer.

    Parameters
    ----------
    budget : float, default=50
        Above 0.
    """

    budget: float = 50.0

    def feasible_set(self, y: Array, C: float, weights: Array, constraint: Constraint) -> FeasibleSet:
        """Ball of radius C and cap sqrt(budget) * C; the one that never binds is left out."""
        budget = _number("budget", self.budget, above=0)
        if budget >= constraint.reach_in_ball(y, weights):
            return TwoNorm().feasible_set(y, C, weights, constraint)
        least = weights.min()  # half the cap on each side, in the worst case on one row
        ball = {} if budget <= 2 * least else {"radius": C, "stretch": 1 / weights}
        return FeasibleSet.box(y, np.inf, constraint, total=np.sqrt(budget) * C, **ball)

    def threshold(self, sizes: Array, weights: Array) -> float:
        """The minimising t. All sums are centred, as differences of large sums would lose half the digits."""
        reach = np.sqrt(self.budget)
        order = np.argsort(-sizes, kind="stable")
        s, w = np.append(sizes[order], 0.0), weights[order]

        def rises(k: int) -> bool:
            """Whether the function increases at t = s_k."""
            above = s[:k] - s[k]
            return float(dot(w[:k], above)) <= reach * float(np.sqrt(dot(w[:k], above**2)))

        low, high = 0, len(w)  # rises at s_0, the largest
        if rises(high):
            return 0.0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if rises(middle) else (low, middle)
        mass = w[:high].sum()
        mean = float(dot(w[:high], s[:high])) / mass
        spread = float(dot(w[:high], (s[:high] - mean) ** 2))
        t = mean - reach * np.sqrt(spread / mass) / np.sqrt(max(mass - self.budget, 1e-300))
        return float(np.clip(t, s[high], s[low]))

    def value(self, slacks: Array, weights: Array, constraint: Constraint) -> float:
        """The minimum over t."""
        sizes = np.abs(slacks)
        t = self.threshold(sizes, weights)
        return TwoNorm().value(np.maximum(sizes - t, 0), weights, constraint) + float(np.sqrt(self.budget)) * t

    def pull(self, sizes: Array, weights: Array) -> Array:
        """The subgradient up to a positive factor; on the largest slack alone if only the cap is active."""
        above = np.maximum(sizes - self.threshold(sizes, weights), 0)
        most = above.max()
        return weights * (above / most if most > 0 else (sizes == sizes.max()).astype(np.float64))


@dataclass(frozen=True)
class OneTwoNorm(Norm):
    """``C`` times the norm between `OneNorm` and `TwoNorm`: K(1, 2, t) in the notation of Dekel & Singer.

    Large slacks cost as in `OneNorm`, small ones in proportion to their square.

    Parameters
    ----------
    t : float, default=5
        Above 0. From ``sqrt(n_samples)`` on this is `OneNorm`; at 1 and below, ``t * TwoNorm``.
    """

    t: float = 5.0

    def feasible_set(self, y: Array, C: float, weights: Array, constraint: Constraint) -> FeasibleSet:
        """Box [0, C] and ball of radius t * C; the one that never binds is left out."""
        t = _number("t", self.t, above=0)
        if t * t >= constraint.reach_in_box(y, weights):
            return OneNorm().feasible_set(y, C, weights, constraint)
        bound = np.inf if t * t <= weights.min() else C * weights
        return FeasibleSet.box(y, bound, constraint, radius=t * C, stretch=1 / weights)

    def level(self, sizes: Array, weights: Array) -> float:
        """The slack above which the cost is linear: ``sum(w min(1, |xi| / level)**2) = t**2``."""
        order = np.argsort(-sizes, kind="stable")
        s, w = sizes[order], weights[order]
        full = np.cumsum(w) - w  # weight of the larger ones
        rest = np.cumsum((w * s**2)[::-1])[::-1]
        if s[0] == 0 or w[s > 0].sum() <= self.t**2:
            return 0.0
        # With the k largest at level or above: level**2 = rest_k / (t**2 - full_k), the first k where s_k is below.
        below = (self.t**2 > full) & (rest >= s**2 * (self.t**2 - full))
        k = int(np.argmax(below))
        return float(np.sqrt(rest[k] / (self.t**2 - full[k])))

    def pull(self, sizes: Array, weights: Array) -> Array:
        """The gradient."""
        level = self.level(sizes, weights)
        return weights * (np.minimum(1.0, sizes / level) if level > 0 else (sizes > 0).astype(np.float64))

    def value(self, slacks: Array, weights: Array, constraint: Constraint) -> float:
        """``sum(min(1, |xi| / level) |xi|)``."""
        sizes = np.abs(slacks)
        return float(dot(self.pull(sizes, weights), sizes))


@dataclass(frozen=True, eq=False)
class Mahalanobis(Norm):
    """``C * sqrt(xi' M xi)``: slacks of related rows count together.

    With inequality constraints the slacks are any ``xi >= max(0, 1 - y (f + b))``, and M must have an inverse
    without negative entries (a graph Laplacian plus a multiple of the identity has one). For another M,
    raising a slack above what a row needs could lower the cost, and the published dual would belong
    to the problem without ``xi >= 0``; such an M is refused. Equality constraints take any positive definite M.

    Weights other than 0 and 1 are refused, as M determines how much a row counts.

    Parameters
    ----------
    M : array of shape (n_samples, n_samples)
        Symmetric and positive definite; rows in the order of the training rows. The identity makes `TwoNorm`.
    """

    M: Any = None
    merges_copies: ClassVar[bool] = False

    def at(self, rows: Array, n_samples: int) -> Mahalanobis:
        """The norm with M restricted to these rows: that of slacks that are zero on all others."""
        part = Mahalanobis(self._checked(n_samples)[np.ix_(rows, rows)])
        try:
            cholesky(part.M)
        except np.linalg.LinAlgError:
            raise ValueError("M is not positive definite; add a multiple of the identity to it") from None
        return part

    def _checked(self, n_samples: int) -> Array:
        if self.M is None:
            raise ValueError("Mahalanobis() needs a matrix; pass M of shape (n_samples, n_samples)")
        M = np.asarray(self.M, dtype=np.float64)
        if M.shape != (n_samples, n_samples):
            raise ValueError(
                f"M has shape {M.shape}, but X has {n_samples} rows: M must have one row and one column for each"
            )
        if not np.isfinite(M).all() or np.abs(M - M.T).max() > 1e-10 * np.abs(M).max():
            raise ValueError("M must be symmetric and finite; use (M + M.T) / 2")
        return M

    def feasible_set(self, y: Array, C: float, weights: Array, constraint: Constraint) -> FeasibleSet:
        """Ball of radius C in the metric of the inverse of M."""
        if (weights != 1).any():
            raise ValueError(
                "Mahalanobis takes no sample or class weights other than 0 and 1; scale rows and columns of M "
                "by the square roots of the weights instead"
            )
        inverse = solve(self.M, np.eye(len(self.M)))
        if constraint.one_sided and inverse.min() < -1e-10 * np.abs(inverse).max():
            raise ValueError(
                "with constraint='inequality', the inverse of M must have no negative entries (the least is "
                f"{inverse.min():.3g}): otherwise the dual is that of the problem without xi >= 0. Use "
                "constraint='equality', which is that problem, or another M, such as a graph Laplacian plus a "
                "multiple of the identity"
            )
        # Every point of the ball has |a_i| <= C sqrt(M_ii).
        bound = C * np.sqrt(np.diag(self.M))
        return FeasibleSet.box(y, bound, constraint, radius=C, metric=y[:, None] * (inverse + inverse.T) / 2 * y)

    def _raised(self, slacks: Array, constraint: Constraint) -> Array:
        """The slacks of lowest cost among those not below the given ones; with equality constraints the given ones."""
        if not constraint.one_sided:
            return slacks
        # Complementarity problem: d >= 0, M (xi + d) >= 0, one of them zero in each row. Flip all wrong rows at once.
        pull = dot(self.M, slacks)
        raised = pull < 0
        noise = 1e-13 * np.abs(self.M).max() * np.abs(slacks).max()
        for _ in range(50):
            d = np.zeros_like(slacks)
            d[raised] = solve(self.M[np.ix_(raised, raised)], -pull[raised])
            wrong = np.where(raised, d < 0, pull + dot(self.M, d) < -noise)
            if not wrong.any():
                return slacks + d
            raised ^= wrong
        factor = cholesky(self.M).T  # the flips cycle: solve by nonnegative least squares
        return slacks + nnls(factor, dot(-factor, slacks))[0]

    def value(self, slacks: Array, weights: Array, constraint: Constraint) -> float:
        """``sqrt(xi' M xi)``."""
        xi = self._raised(slacks, constraint)
        return float(np.sqrt(max(dot(dot(xi, self.M), xi), 0.0)))

    def bias(self, residuals: Array, y: Array, weights: Array, constraint: Constraint) -> float:
        """The weighted mean of the residuals for equality constraints, else the root of the slope."""
        if not constraint.one_sided:
            pull = dot(self.M, y)
            return float(dot(pull, y * residuals) / dot(pull, y))
        return super().bias(residuals, y, weights, constraint)

    def pull(self, sizes: Array, weights: Array) -> Array:
        """The subgradient up to a positive factor, for inequality constraints."""
        return np.maximum(dot(self.M, self._raised(sizes, INEQUALITY)), 0)


ALL: tuple[type, ...] = (
    OneNorm,
    SquaredTwoNorm,
    TwoNorm,
    PNorm,
    MaxNorm,
    TopSum,
    TopTwoNorm,
    OneTwoNorm,
    Mahalanobis,
)

_BY_NAME: dict[str, type[Norm]] = {"l1": OneNorm, "l2": SquaredTwoNorm, "linf": MaxNorm}
_PARTS = ("feasible_set", "value", "bias", "at", "counts_rows", "merges_copies", "loss")


def resolve(slack: Any) -> Slack:
    """The slack object for a name, or the object itself."""
    slack = _named(slack)
    if isinstance(slack, type):
        raise ValueError(f"slack={slack.__name__} is a class; pass an object of it, such as slacks.OneNorm()")
    missing = lacking(slack, _PARTS)
    if not missing:
        return slack
    some = f", which lacks {', '.join(missing)}," if len(missing) < len(_PARTS) else ""
    raise ValueError(
        f"slack={slack!r}{some} is not known; use one of {sorted(_BY_NAME)}, or an object of a class that inherits "
        "slimsvm.slacks.Norm and has the methods feasible_set, value, and pull or bias"
    )


def loss(slack: Any) -> Loss:
    """The loss object for a name, a slack norm that is a sum over rows, or a loss."""
    known = _named(slack)
    needed: tuple[str, ...] = ("smooth", "value", "conjugate")
    needed += ("duals", "curvature") if getattr(known, "smooth", False) else ("dual_box",)
    missing = lacking(known, needed)
    if not isinstance(known, type):
        if not missing:
            return known
        if getattr(known, "loss", None) is not None:
            return known.loss
    sums = sorted(name for name, kind in _BY_NAME.items() if kind.loss is not None)
    own = lacking(known, ("value", "feasible_set")) == ["feasible_set"]  # looks like a user's loss
    some = f", which lacks {', '.join(missing)}," if own else ""
    raise ValueError(
        f"slack={slack!r}{some} is not known here; use one of {sums} or an object of slimsvm.losses. Other slack "
        "norms are no sums over rows: AnyNormSVC has them"
    )


def _named(slack: Any) -> Any:
    """The slack norm for a name; other arguments are returned unchanged."""
    kind = named(slack, _BY_NAME)
    return slack if kind is None else kind()
