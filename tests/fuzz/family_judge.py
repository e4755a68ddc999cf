"""Primal and dual values of the machines of `sklearn.svm` in long double, from what a fitted model says.

Rows count by their weights w; W is their sum.

    SVC          1/2 |f|^2 + C sum w (1 - y (f + b))+                    0 <= y a <= C w, sum a = 0
    SVR          1/2 |f|^2 + C sum w (|y - f - b| - epsilon)+            |a| <= C w, sum a = 0
    NuSVR        1/2 |f|^2 + C (nu W e + sum w (|y - f - b| - e)+)       and sum |a| <= C nu W
    OneClassSVM  1/2 |f|^2 - nu W rho + sum w (rho - f)+                 0 <= a <= w, sum a = nu W
    NuSVC        1/2 |f|^2 - nu W rho + sum w (rho - y (f + b))+         and sum y a = 0

The model of NuSVC is this one over rho. The width e and the offset of NuSVC are no part of the models, and the best are
taken. A gap is relative to the dual. Where given sums alone make f, its terms may cancel to nothing: then it is
relative to a trifle of what they would make without their signs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np
from sklearn.base import clone

from longdouble import LONG, long
from slimsvm.estimators.sklearn_svm import training
from slimsvm.solvers.dual import sklearn_svm

from . import exact
from .judge import Verdict, percent

SAME = 1e-6  # relative: objective_ and the value of the model
ROOM = 1.001  # times tol: nothing but the rounding of the comparison
TRIFLE = LONG(1e-10)


@dataclass(frozen=True)
class Fitted:
    """A model, what it was fitted to, and the name of its kernel."""

    model: object
    X: object
    y: np.ndarray | None
    weight: np.ndarray | None
    kernel: str

    def matrix(self):
        """k(X, X)."""
        if self.kernel == "precomputed":
            return long(self.X)
        return exact.kernel_matrix(self.kernel, self.X, self.X, self.model.kernel_)

    def weights(self):
        n = self.X.shape[0]
        return np.ones(n, dtype=LONG) if self.weight is None else long(self.weight)

    def duals(self, same):
        """Coefficients at their rows; those of rows that are equal in all that is the ``same`` shared out by weight."""
        w = self.weights()
        a = np.zeros(len(w), dtype=LONG)
        np.add.at(a, self.model.support_, long(self.model.dual_coef_)[0])
        rows = np.column_stack([long(self.X).astype(float), *same])
        groups = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
        shared = np.zeros_like(a)
        for group in range(groups.max() + 1):
            mine = np.flatnonzero(groups == group)
            if w[mine].sum() > 0:
                shared[mine] = a[mine].sum() * (w[mine] / w[mine].sum())
        return shared


def finite(fitted, verdict):
    for name in ("dual_coef_", "intercept_", "objective_", "duality_gap_"):
        if not np.isfinite(long(getattr(fitted.model, name))).all():
            verdict.wrong.append(f"{name} is not finite")
    return not verdict.wrong


def trifle(a, K):
    """The least size of an optimum that is told from zero: beside its terms without their signs, or the rounding of
    coefficients where a row of zeros takes nearly all of them."""
    sizes = np.sqrt(np.maximum(np.diag(K), 0))
    return TRIFLE * (np.abs(a) * sizes).sum() ** 2 + (TRIFLE * np.abs(a).sum() * sizes.max()) ** 2


def compare(fitted, verdict, primal, dual, least=0):
    """The gap that the coefficients prove, beside what the model tells and what was asked for; optima below ``least``
    are zero."""
    model = fitted.model
    told, asked = float(np.max(model.duality_gap_)), model.tol
    claimed = LONG(np.ravel(model.objective_)[0])
    off = abs(claimed - primal) / max(abs(primal), least, LONG(1e-300))
    if not off <= max(SAME, told):
        verdict.wrong.append(f"output 0: objective_ {claimed:.10g}, the model's value {primal:.10g} ({percent(off)})")
    if not told <= asked:
        verdict.wrong.append(f"output 0: duality_gap_ {told:.2e} above tol={asked:g}")
    size = max(abs(dual), least)
    gap = LONG(0) if primal == dual else (primal - dual) / size if size != 0 else LONG(np.inf)
    if not gap <= ROOM * asked:
        verdict.wrong.append(
            f"output 0: a gap of {percent(gap)} ({primal:.10g}, {dual:.10g}), duality_gap_ says {percent(told)}"
        )


def filled(a, upper, total):
    """Inside [0, upper], with this sum: scaled down, or the room that is left filled in proportion."""
    a = np.clip(a, 0, upper)
    missing = total - a.sum()
    if missing <= 0:
        return a * (total / a.sum()) if a.sum() > 0 else a
    room = upper - a
    return a + room * min(LONG(1), missing / room.sum()) if room.sum() > 0 else a


def balanced(a, most):
    """Both signs with the same sum, no more than ``most``."""
    up, down = np.maximum(a, 0).sum(), np.maximum(-a, 0).sum()
    level = min(up, down, most)
    if level == 0:
        return np.zeros_like(a)
    return np.where(a > 0, a * (level / up), a * (level / down))


def threshold(values, w, share):
    """t where the rows below it weigh ``share``: it minimises ``-share t + sum w (t - values)+``."""
    order = np.argsort(values, kind="stable")
    at = int(np.searchsorted(np.cumsum(w[order]), share))
    return values[order[min(at, len(order) - 1)]]


def regression(fitted):
    verdict, model = Verdict(), fitted.model
    if finite(fitted, verdict):
        K, w, y, C, epsilon = fitted.matrix(), fitted.weights(), long(fitted.y), LONG(model.C), LONG(model.epsilon)
        a = fitted.duals([fitted.y])
        f = K @ a
        slacks = np.maximum(np.abs(y - f - LONG(model.intercept_[0])) - epsilon, 0)
        primal = a @ f / 2 + C * (w * slacks).sum()
        if not len(model.support_):
            a = with_duals(fitted).duals([fitted.y])
        a = balanced(np.clip(a, -C * w, C * w), LONG(np.inf))
        compare(fitted, verdict, primal, y @ a - epsilon * np.abs(a).sum() - a @ K @ a / 2)
    return verdict


def nu_regression(fitted):
    verdict, model = Verdict(), fitted.model
    if finite(fitted, verdict):
        K, w, y, C, nu = fitted.matrix(), fitted.weights(), long(fitted.y), LONG(model.C), LONG(model.nu)
        a = fitted.duals([fitted.y])
        f = K @ a
        sizes, total = np.abs(y - f - LONG(model.intercept_[0])), nu * w.sum()
        width = -threshold(-sizes, w, total)
        primal = a @ f / 2 + C * (total * width + (w * np.maximum(sizes - width, 0)).sum())
        a = balanced(np.clip(a, -C * w, C * w), C * total / 2)
        compare(fitted, verdict, primal, y @ a - a @ K @ a / 2)
    return verdict


def one_class(fitted):
    verdict, model = Verdict(), fitted.model
    if finite(fitted, verdict):
        K, w = fitted.matrix(), fitted.weights()
        total = LONG(model.nu) * w.sum()
        a = fitted.duals([])
        f, rho = K @ a, -LONG(model.intercept_[0])
        primal = a @ f / 2 - total * rho + (w * np.maximum(rho - f, 0)).sum()
        a = filled(a, w, total)
        compare(fitted, verdict, primal, -(a @ K @ a) / 2, trifle(a, K))
    return verdict


def with_duals(fitted):
    """Refit without the replacement by f = 0, to get its duals: like any others, they prove what they prove."""
    with (
        patch.object(sklearn_svm, "_zero_without_margin", lambda machine, view, problem, found: found),
        patch.object(training, "zero_if_rounding", lambda machine, view, solution: solution),
    ):
        model = clone(fitted.model).fit(fitted.X, fitted.y, fitted.weight)
    return replace(fitted, model=model)


def classification(fitted):
    verdict, model = Verdict(), fitted.model
    if finite(fitted, verdict):
        K, w, C = fitted.matrix(), fitted.weights(), LONG(model.C)
        y = np.where(fitted.y == model.classes_[1], LONG(1), LONG(-1))
        a = fitted.duals([fitted.y])
        f = K @ a
        slacks = np.maximum(1 - y * (f + LONG(model.intercept_[0])), 0)
        primal = a @ f / 2 + C * (w * slacks).sum()
        if not len(model.support_):
            a = with_duals(fitted).duals([fitted.y])
        a = balanced(y * np.clip(y * a, 0, C * w), LONG(np.inf))
        compare(fitted, verdict, primal, y @ a - a @ K @ a / 2)
    return verdict


def nu_classification(fitted):
    verdict, model = Verdict(), fitted.model
    if finite(fitted, verdict):
        K, w = fitted.matrix(), fitted.weights()
        y = np.where(fitted.y == model.classes_[1], LONG(1), LONG(-1))
        total = LONG(model.nu) * w.sum()
        zero = not len(model.support_)
        a = (with_duals(fitted) if zero else fitted).duals([fitted.y])
        rho = total / np.abs(a).sum()  # the model is divided by it
        a, b = rho * a, rho * LONG(model.intercept_[0])
        f = K @ a
        values = y * (f + b)
        offset = threshold(values, w, total)
        primal = a @ f / 2 - total * offset + (w * np.maximum(offset - values, 0)).sum()
        if zero:
            primal = LONG(abs(model.intercept_).max())  # with f = 0, b = 0 and rho = 0 nothing is to be paid
        alpha = y * a
        for side in (y > 0, y < 0):
            alpha[side] = filled(alpha[side], w[side], total / 2)
        a = y * alpha
        compare(fitted, verdict, primal, -(a @ K @ a) / 2, trifle(a, K))
    return verdict
