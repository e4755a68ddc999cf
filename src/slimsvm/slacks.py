"""Measures of the slacks: what a training error costs.

Each class gives the dual set, the value, and the exact bias of one norm; scaling as in the table of the
documentation: ``OneNorm`` is ``C * sum(xi)``, ``SquaredTwoNorm`` is ``C/2 * sum(xi**2)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .formulation import Array, FeasibleSet, Part, Slack

__all__ = ["ALL", "OneNorm", "SquaredTwoNorm", "resolve"]


def _interval_middle(values: Array, weights: Array, target: float) -> float:
    """Middle of the points b where the weight of ``values <= b`` passes the target."""
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(weights[order])
    # Sums of equal weights meet the target exactly but for rounding.
    k = int(np.searchsorted(mass, target * (1 - 1e-12)))
    if k + 1 < len(values) and mass[k] <= target * (1 + 1e-12):
        return 0.5 * float(values[order[k]] + values[order[k + 1]])
    return float(values[order[min(k, len(values) - 1)]])


@dataclass(frozen=True)
class OneNorm(Part):
    """``C * sum(|xi|)``: the hinge; with equality constraints the least-1-norm machine."""

    def feasible_set(self, y: Array, C: Array, constraint: str) -> FeasibleSet:
        """Box: alpha in [0, C], or [-C, C] with equality."""
        if constraint == "equality":
            return FeasibleSet(-C, C, np.zeros(len(C)))
        return FeasibleSet(np.minimum(C * y, 0), np.maximum(C * y, 0), np.zeros(len(C)))

    def value(self, C: Array, slacks: Array) -> float:
        """``sum(C * |xi|)``."""
        return float(C @ np.abs(slacks))

    def bias(self, residuals: Array, y: Array, C: Array, constraint: str) -> float:
        """A quantile of the residuals: as many errors above it among y = 1 as below it among y = -1."""
        target = 0.5 * C.sum() if constraint == "equality" else C[y > 0].sum()
        return _interval_middle(residuals, C, float(target))


@dataclass(frozen=True)
class SquaredTwoNorm(Part):
    """``C/2 * sum(xi**2)``: the squared hinge; with equality constraints the least-squares machine."""

    def feasible_set(self, y: Array, C: Array, constraint: str) -> FeasibleSet:
        """Half-line (or line, with equality) with ridge 1/C."""
        free = np.full_like(C, np.inf)
        if constraint == "equality":
            return FeasibleSet(-free, free, 1 / C)
        return FeasibleSet(np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0), 1 / C)

    def value(self, C: Array, slacks: Array) -> float:
        """``sum(C/2 * xi**2)``."""
        return 0.5 * float(C @ slacks**2)

    def bias(self, residuals: Array, y: Array, C: Array, constraint: str) -> float:
        """The mean residual of the points in error: a root of a piecewise linear function."""
        if constraint == "equality":
            return float(np.average(residuals, weights=C))
        plus = y > 0
        highest, lowest = residuals[plus].max(), residuals[~plus].min()
        if highest <= lowest:  # nobody is in error anywhere between
            return 0.5 * float(highest + lowest)
        order = np.argsort(residuals, kind="stable")
        r, plus = residuals[order], plus[order]
        w_plus, w_minus = np.where(plus, C[order], 0.0), np.where(plus, 0.0, C[order])
        # slope(b) = sum_{+, r > b} w (r - b) - sum_{-, r < b} w (b - r) falls from > 0 to < 0 along b = r_k.
        above, above_moment = np.cumsum(w_plus[::-1])[::-1], np.cumsum((w_plus * r)[::-1])[::-1]
        below, below_moment = np.cumsum(w_minus), np.cumsum(w_minus * r)
        slope = (above_moment - r * above) - (r * below - below_moment)
        k = min(max(int(np.count_nonzero(slope >= 0)) - 1, 0), len(r) - 2)
        # Between r_k and r_k+1 the points in error stay the same: b is their mean residual.
        return float((above_moment[k + 1] + below_moment[k]) / (above[k + 1] + below[k]))


ALL: tuple[type, ...] = (OneNorm, SquaredTwoNorm)

_BY_NAME: dict[str, type] = {"l1": OneNorm, "l2": SquaredTwoNorm}


def resolve(slack: str | Slack) -> Slack:
    """The slack object for a name, or the object itself."""
    if isinstance(slack, str):
        if slack in _BY_NAME:
            return _BY_NAME[slack]()
    elif isinstance(slack, type):
        raise ValueError(f"slack={slack.__name__} is a class; pass an object of it, such as slacks.OneNorm()")
    elif all(callable(getattr(slack, name, None)) for name in ("feasible_set", "value", "bias")):
        return slack
    raise ValueError(
        f"slack={slack!r} is not known; use one of {sorted(_BY_NAME)}, or an object with the methods "
        "feasible_set, value and bias, such as those in slimsvm.slacks"
    )
