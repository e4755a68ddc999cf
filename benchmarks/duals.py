"""Dual and primal values of the machines that `sklearn.svm` has, in float64, from coefficients in its layout.

    SVC          min 1/2 |f|^2 + C sum (1 - y (f + b))+
    NuSVC        min 1/2 |f|^2 - nu n rho + sum (rho - y (f + b))+      before both are divided by rho
    SVR          min 1/2 |f|^2 + C sum (|y - f - b| - epsilon)+
    NuSVR        min 1/2 |f|^2 + C (nu n e + sum (|y - f - b| - e)+)    over e >= 0, too
    OneClassSVM  min 1/2 |f|^2 - nu n rho + sum (rho - f)+

Duals are made feasible first: a true lower bound of the optimum. The primal is that of the best bias and offsets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .objective import expand
from .objective import feasible as balanced_classes
from .problems import Array


@dataclass(frozen=True)
class Value:
    """Both sides of a machine."""

    dual: float
    primal: float

    @property
    def gap(self) -> float:
        """Relative to the dual."""
        return (self.primal - self.dual) / abs(self.dual)


Judge = Callable[[Any, Array, Array, Callable[[Array], Array]], Value]


def judge(model: Any, X: Array, y: Array, gamma: float) -> Value:
    """Of a fitted model with a Gaussian kernel, ours or scikit-learn's."""
    a = np.zeros(len(X))
    a[model.support_] = np.ravel(model.dual_coef_)

    def values(a: Array) -> Array:
        return expand(X, np.flatnonzero(a), a[:, None], gamma)[:, 0]

    return JUDGES[type(model).__name__](model, y, a, values)


def with_sum(alpha: Array, upper: float, total: float) -> Array:
    """Inside [0, upper], with this sum: scaled down, or the room that is left filled in proportion."""
    alpha = np.clip(alpha, 0, upper)
    missing = total - alpha.sum()
    return alpha * (total / alpha.sum()) if missing <= 0 else alpha + missing * (upper - alpha) / (upper - alpha).sum()


def lowest(values: Array, k: float) -> float:
    """min over t of ``-k t + sum (t - values)+``: t is the value that k others are below."""
    t = np.partition(values, int(k))[int(k)] if k < len(values) else values.max()
    return float(-k * t + np.maximum(t - values, 0).sum())


def svc(model: Any, y: Array, a: Array, values: Callable[[Array], Array]) -> Value:
    y = np.where(y == model.classes_[1], 1, -1)
    a, _ = balanced_classes(a, y, model.C)
    f = values(a)
    norm, n_positive = float(a @ f), int((y > 0).sum())
    bias = np.partition(y - f, n_positive - 1)[n_positive - 1]
    return Value(float(np.abs(a).sum()) - norm / 2, norm / 2 + model.C * float(np.maximum(0, 1 - y * (f + bias)).sum()))


def nu_svc(model: Any, y: Array, a: Array, values: Callable[[Array], Array]) -> Value:
    """Each class has its own offset, rho - b or rho + b, and half of nu n."""
    y = np.where(y == model.classes_[1], 1, -1)
    total = model.nu * len(y)
    alpha = np.abs(a) * (total / np.abs(a).sum())  # not divided by rho
    for side in (y > 0, y < 0):
        alpha[side] = with_sum(alpha[side], 1.0, total / 2)
    a = y * alpha
    f = values(a)
    half = float(a @ f) / 2
    return Value(-half, half + lowest(f[y > 0], total / 2) + lowest(-f[y < 0], total / 2))


def sides(a: Array, C: float, most: float) -> Array:
    """Signed duals of a regression: in the box, both signs with the same sum, no more than ``most``."""
    a = np.clip(a, -C, C)
    up, down = np.maximum(a, 0).sum(), np.maximum(-a, 0).sum()
    level = min(up, down, most)
    return np.where(a > 0, a * (level / max(up, 1e-300)), a * (level / max(down, 1e-300)))


def svr(model: Any, y: Array, a: Array, values: Callable[[Array], Array]) -> Value:
    a = sides(a, model.C, np.inf)
    f = values(a)
    norm, residuals = float(a @ f), y - f
    bias = np.median(np.concatenate([residuals - model.epsilon, residuals + model.epsilon]))
    slacks = np.maximum(np.abs(residuals - bias) - model.epsilon, 0)
    return Value(float(y @ a - model.epsilon * np.abs(a).sum()) - norm / 2, norm / 2 + model.C * float(slacks.sum()))


def nu_svr(model: Any, y: Array, a: Array, values: Callable[[Array], Array]) -> Value:
    """The ends of the tube, b + e and b - e, are found apart; they may not cross."""
    k = model.nu * len(y) / 2
    a = sides(a, model.C, model.C * k)
    f = values(a)
    norm, residuals = float(a @ f), y - f
    n = len(y)
    above = -np.partition(-residuals, min(int(k), n - 1))[min(int(k), n - 1)]
    below = np.partition(residuals, min(int(k), n - 1))[min(int(k), n - 1)]
    bias, width = ((above + below) / 2, (above - below) / 2) if above >= below else (np.median(residuals), 0.0)
    cost = 2 * k * width + float(np.maximum(np.abs(residuals - bias) - width, 0).sum())
    return Value(float(y @ a) - norm / 2, norm / 2 + model.C * cost)


def one_class(model: Any, y: Array, a: Array, values: Callable[[Array], Array]) -> Value:
    total = model.nu * len(a)
    a = with_sum(a, 1.0, total)
    f = values(a)
    half = float(a @ f) / 2
    return Value(-half, half + lowest(f, total))


JUDGES: dict[str, Judge] = {"SVC": svc, "NuSVC": nu_svc, "SVR": svr, "NuSVR": nu_svr, "OneClassSVM": one_class}
