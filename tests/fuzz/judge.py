"""What a fitted model claims, computed again: the value of its objective, and how far that is from the optimum.

The optimum is bounded from below by duals that are feasible, and from above by points that another solver finds. A
claim is wrong if the first says so, or the second; where neither decides, the problem is counted as undecided.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

import cvxpy as cp
import numpy as np

import kernel_table
import longdouble
from longdouble import LONG, long

from . import evidence, exact, interior

CLARABEL = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "max_iter": 300}
SAME = 1e-6  # relative: objective_ and the value of the model
NEAR = 1e-7  # rows whose distance in the kernel's space is this, relative to the largest row, are one to LpSVC
LOSSES = {"l1": interior.HINGE, "l2": interior.SQUARED}


@dataclass
class Verdict:
    """What is wrong, and what could not be decided."""

    wrong: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Output:
    """One binary machine of a fitted model: its rows, their signs and weights, its row of coefficients."""

    number: int
    rows: np.ndarray
    y: np.ndarray
    w: np.ndarray


@dataclass(frozen=True)
class Fitted:
    """A model, what it was fitted to, and the gap that it must reach."""

    model: object
    X: object
    y: np.ndarray
    weight: np.ndarray | None
    kernel: str

    @property
    def allowed(self):
        return max(10 * self.model.tol, 1e-5)

    def matrix(self):
        """k(X, vectors_) and k(vectors_, vectors_)."""
        model = self.model
        if self.kernel == "precomputed":
            K = long(self.X)
            return K[:, model.vectors_], K[np.ix_(model.vectors_, model.vectors_)]
        return tuple(
            exact.kernel_matrix(self.kernel, A, model.vectors_, model.kernel_) for A in (self.X, model.vectors_)
        )

    def every(self):
        """k(X, X)."""
        if self.kernel == "precomputed":
            return long(self.X)
        return exact.kernel_matrix(self.kernel, self.X, self.X, self.model.kernel_)

    def copies(self):
        """A number for each row, the same for equal rows."""
        rows = long(self.X)
        return np.unique(rows.astype(float), axis=0, return_inverse=True)[1].reshape(-1)

    def outputs(self, scheme):
        """The binary machines as the documentation describes them."""
        counted = np.arange(len(self.y)) if self.weight is None else np.flatnonzero(self.weight)
        w = np.ones(len(self.y), dtype=LONG) if self.weight is None else long(self.weight)
        y = self.y
        classes = self.model.classes_
        chosen = getattr(self.model, "class_weight", None)
        if chosen == "balanced":
            factor = {c: w.sum() / (len(classes) * w[y == c].sum()) for c in classes}
        else:
            factor = {c: LONG((chosen or {}).get(c, 1)) for c in classes}
        w = w * np.array([factor[c] for c in y], dtype=LONG)
        if len(classes) == 2 or scheme == "ovr":
            positives = classes[1:] if len(classes) == 2 else classes
            return [
                Output(o, counted, np.where(y[counted] == c, LONG(1), LONG(-1)), w[counted])
                for o, c in enumerate(positives)
            ]
        found = []
        for o, (first, second) in enumerate(combinations(classes, 2)):
            rows = counted[np.isin(y[counted], [first, second])]
            found.append(Output(o, rows, np.where(y[rows] == first, LONG(1), LONG(-1)), w[rows]))
        return found


def percent(x):
    return f"{float(x):.2e}"


def same_value(verdict, o, model, value, scale=None):
    """Is ``objective_`` the value of the model? The gap that is reported counts digits that float64 does not have."""
    claimed = model.objective_[o]
    off = abs(claimed - value) / max(abs(value) if scale is None else scale, LONG(1e-300))
    if not off <= max(SAME, model.duality_gap_[o]):
        verdict.wrong.append(f"output {o}: objective_ {claimed:.10g}, the model's value {value:.10g} ({percent(off)})")


def finite(fitted, verdict):
    model = fitted.model
    gamma_is_as_asked(fitted, verdict)
    for name in ("vector_coef_", "intercept_", "objective_"):
        if not np.isfinite(getattr(model, name)).all():
            verdict.wrong.append(f"{name} is not finite")
    return not any("finite" in line for line in verdict.wrong)


def gamma_is_as_asked(fitted, verdict):
    """The number given, or 1 / (inputs times variance) of the rows, counted by their weights."""
    asked = getattr(fitted.model, "gamma", None)
    if fitted.kernel not in kernel_table.taking("gamma") or asked == "search":
        return
    used = fitted.model.kernel_.gamma
    if asked == "scale":
        X = long(fitted.X)
        w = np.ones(len(X), dtype=LONG) if fitted.weight is None else long(fitted.weight)
        share = w[:, None] / (w.sum() * X.shape[1])
        mean = (share * X).sum()
        variance = (share * (X - mean) ** 2).sum()
        asked = 1 / (X.shape[1] * variance) if variance > 1e-32 * mean**2 else LONG(1)
    if not abs(used - asked) <= 1e-6 * asked:
        verdict.wrong.append(f"gamma is {used:.10g}, asked for {float(asked):.10g}")


def gap_is_told(fitted, verdict):
    gap = getattr(fitted.model, "duality_gap_", np.zeros(1))
    if not (gap <= fitted.model.tol).all():
        verdict.wrong.append(f"duality_gap_ {gap.max():.2e} above tol={fitted.model.tol:g}")


# --- Machines over all rows: the coefficients are the duals -------------------------------------------------


def all_rows(fitted, slack, constraint, scheme):
    """The norm's value at the model, and the bound that its own coefficients prove."""
    verdict, model = Verdict(), fitted.model
    if not finite(fitted, verdict):
        return verdict
    gap_is_told(fitted, verdict)
    if fitted.kernel != "precomputed" and np.any(long(fitted.X[model.support_]) != long(model.vectors_)):
        verdict.wrong.append("vectors_ are not the rows support_")
    K, copies = fitted.every(), fitted.copies()
    C = LONG(model.C)
    for out in fitted.outputs(scheme):
        a = np.zeros(len(fitted.y), dtype=LONG)
        a[model.support_] = model.vector_coef_[out.number]
        if np.any(np.delete(a, out.rows)):
            verdict.wrong.append(f"output {out.number}: coefficients of rows that take no part")
        own = type(slack)(np.asarray(slack.M)[np.ix_(out.rows, out.rows)]) if hasattr(slack, "M") else slack
        _one_norm_machine(fitted, verdict, out, own, constraint, C, K[np.ix_(out.rows, out.rows)], a[out.rows], copies)
    return verdict


def _one_norm_machine(fitted, verdict, out, slack, constraint, C, K, a, copies):
    y, w, b = out.y, out.w, LONG(fitted.model.intercept_[out.number])
    f = K @ a
    xi = 1 - y * (f + b)
    if constraint == "inequality":
        xi = np.maximum(xi, 0)
    value = a @ f / 2 + C * exact.phi(slack, xi, w, constraint)
    same_value(verdict, out.number, fitted.model, value)
    if not hasattr(slack, "M"):
        a = spread(a, y, w, copies[out.rows])
    a = exact.feasible(slack, a, y, C, w, constraint)
    dual = y @ a - a @ K @ a / 2 - (exact.ridge(slack, C, w) * a**2).sum() / 2
    gap = (value - dual) / dual if dual > 0 else np.inf
    if not gap <= fitted.allowed:
        claimed = fitted.model.duality_gap_[out.number]
        verdict.wrong.append(
            f"output {out.number}: the coefficients prove a gap of {percent(gap)}, duality_gap_ says {percent(claimed)}"
        )


def spread(a, y, w, copies):
    """Duals of equal rows of a class shared out by weight: the same f, and the least that the dual set can ask for."""
    shared = np.empty_like(a)
    for group in np.unique(2 * copies + (y > 0)):
        mine = np.flatnonzero(2 * copies + (y > 0) == group)
        shared[mine] = a[mine].sum() * (w[mine] / w[mine].sum())
    return shared


# --- Machines over few vectors ------------------------------------------------------------------------------


def features(Psi, R):
    """P with ``P P' = Psi R^-1 Psi'``, and the way back from weights to coefficients."""
    _, kept = longdouble.pivoted(R)
    L = longdouble.cholesky(R[np.ix_(kept, kept)])
    if L is None or not kept:
        return np.zeros((len(Psi), 0), dtype=LONG), lambda w: np.zeros(R.shape[0], dtype=LONG)

    def back(w):
        beta = np.zeros(R.shape[0], dtype=LONG)
        beta[kept] = longdouble.backward(L, w)
        return beta

    return longdouble.forward(L, Psi[:, kept].T).T, back


def norm_matrix(model, gram, regularizer, epsilon):
    """R of the norm of the coefficients: what is added to k(Z, Z), the model says in ``regularizer_``."""
    if regularizer != "kernel":
        return np.eye(len(gram), dtype=LONG)
    jitter = LONG(getattr(getattr(model, "regularizer_", None), "jitter", 0.0))
    return gram + np.diag(LONG(epsilon) + jitter * np.abs(gram.diagonal()))


def few_vectors(fitted, loss, regularizer, epsilon, scheme, C):
    """The value of the coefficients, and the optimum over the same vectors."""
    verdict = Verdict()
    if not finite(fitted, verdict):
        return verdict
    gap_is_told(fitted, verdict)
    Psi, gram = fitted.matrix()
    R = norm_matrix(fitted.model, gram, regularizer, epsilon)
    for out in fitted.outputs(scheme):
        beta, b = long(fitted.model.vector_coef_[out.number]), LONG(fitted.model.intercept_[out.number])
        y, f = out.y, Psi[out.rows] @ beta + b
        quadratic, unit = beta @ R @ beta / 2, loss.value(1 - y * f, out.w)
        cost = LONG(np.broadcast_to(C, len(fitted.model.objective_))[out.number])
        value = quadratic + cost * unit
        same_value(verdict, out.number, fitted.model, value)
        compare(verdict, out.number, value, Psi[out.rows], R, y, cost * out.w, loss, fitted.allowed)
    return verdict


def few_vectors_for_targets(fitted, loss, tube, added):
    """The same for regression; a loss of targets is two hinges (`interior.of_targets`)."""
    verdict, model = Verdict(), fitted.model
    if not finite(fitted, verdict):
        return verdict
    gap_is_told(fitted, verdict)
    counted = np.arange(len(fitted.y)) if fitted.weight is None else np.flatnonzero(fitted.weight)
    w = np.ones(len(counted), dtype=LONG) if fitted.weight is None else long(fitted.weight)[counted]
    Psi, gram = fitted.matrix()
    Psi, targets = Psi[counted], long(fitted.y).reshape(len(fitted.y), -1)[counted]
    R = norm_matrix(model, gram, model.regularizer, added)
    P, back = features(Psi, R)
    C = LONG(model.C_)

    def value(beta, b, y):
        return beta @ R @ beta / 2 + loss.value(np.abs(y - Psi @ beta - b) - LONG(tube), C * w)

    for o, y in enumerate(targets.T):
        found = value(long(model.vector_coef_[o]), LONG(model.intercept_[o]), y)
        negligible = LONG(1e-9) * loss.value(np.full_like(w, spread_of(y, w)), C * w)
        same_value(verdict, o, model, found, max(found, negligible))
        bounds = interior.of_targets(P, y, C * w, loss, tube, within=min(1e-8, fitted.allowed / 10))
        best = value(back(bounds.w), bounds.b, y)
        if found > max(best, negligible) * (1 + fitted.allowed):
            verdict.wrong.append(f"output {o}: {percent(found / best - 1)} above a point of value {best:.10g}")
        elif found - bounds.lower > fitted.allowed * max(found, negligible):
            verdict.undecided.append(f"output {o}: from {bounds.lower:.8g} to {best:.8g}, the model has {found:.8g}")
    return verdict


def spread_of(y, w):
    mean = (w * y).sum() / w.sum()
    return np.sqrt((w * (y - mean) ** 2).sum() / w.sum())


def compare(verdict, o, value, Psi, R, y, C, loss, allowed):
    """Is the value within ``allowed`` of the optimum of the quadratic machine?"""
    P, back = features(Psi, R)
    bounds = interior.optimum(P, y, C, loss, within=min(1e-8, allowed / 10))
    if value <= bounds.lower * (1 + allowed):
        return
    beta = back(bounds.w)
    best = beta @ R @ beta / 2 + loss.value(1 - y * (Psi @ beta + bounds.b), C)
    if value > best * (1 + allowed):
        verdict.wrong.append(f"output {o}: {percent(value / best - 1)} above a point of value {best:.10g}")
    else:
        verdict.undecided.append(f"output {o}: between {bounds.lower:.8g} and {best:.8g}, the model has {value:.8g}")


# --- The Lp machine -----------------------------------------------------------------------------------------


def lp(fitted, scheme):
    """J itself; below p = 1 a point that its own last round cannot improve, from there on the least value of all."""
    verdict, model = Verdict(), fitted.model
    if not finite(fitted, verdict):
        return verdict
    p, Ca, C = model.p, LONG(model.C_alpha_), LONG(model.C)
    K = fitted.every()
    for out in fitted.outputs(scheme):
        a = np.zeros(len(fitted.y), dtype=LONG)
        a[model.support_] = model.vector_coef_[out.number]
        kept, b = np.flatnonzero(a), LONG(model.intercept_[out.number])
        Psi, gram, a = K[np.ix_(out.rows, kept)], K[np.ix_(kept, kept)], a[kept]
        R = gram if model.variant == "exact" else np.eye(len(kept), dtype=LONG)
        loss = interior.HINGE.value(1 - out.y * (Psi @ a + b), C * out.w)
        smooth = a @ R @ a / 2 + loss
        value = smooth + penalty(a, p, Ca)
        # At p = 0 the logarithms may cancel the rest.
        scale = abs(smooth) + np.abs(Ca * np.log(np.abs(a))).sum() if p == 0 and len(a) else None
        same_value(verdict, out.number, model, value, scale)
        if p < 2 and p != 1 and len(a):
            ridge = Ca * np.abs(a) ** LONG(p - 2)
            surrogate = smooth + (ridge * a**2).sum() / 2
            compare(
                verdict,
                out.number,
                surrogate,
                Psi,
                R + np.diag(ridge),
                out.y,
                C * out.w,
                interior.HINGE,
                fitted.allowed,
            )
        if p >= 1:
            least_lp(fitted, verdict, out, value, K, told_apart(K, out.rows), p, Ca, C)
    return verdict


def penalty(a, p, Ca):
    """C_alpha / p sum |a|^p and its limits."""
    size = np.abs(a[a != 0])
    if not len(size):
        return LONG(0)
    if p == np.inf:
        return Ca * size.max()
    return Ca * (np.log(size).sum() if p == 0 else (size ** LONG(p)).sum() / LONG(p))


def told_apart(K, rows):
    """The rows without those that the kernel cannot tell from an earlier one: they are one candidate."""
    kept = []
    near = 2 * NEAR**2 * K.diagonal()[rows].max(initial=0)
    for row in rows:
        if not (np.abs(K[kept, kept] + K[row, row] - 2 * K[row, kept]) <= near).any():
            kept.append(row)
    return np.array(kept)


def least_lp(fitted, verdict, out, value, K, candidates, p, Ca, C):
    """Is there a better point? Over all rows, each once."""
    Psi, gram = K[np.ix_(out.rows, candidates)], K[np.ix_(candidates, candidates)]
    R = gram if fitted.model.variant == "exact" else np.eye(len(candidates), dtype=LONG)
    if p == 2:
        ridge = Ca * np.eye(len(R))
        compare(verdict, out.number, value, Psi, R + ridge, out.y, C * out.w, interior.HINGE, fitted.allowed)
        return
    best = min((_conic_lp(Psi, gram, R, out, p, Ca, C, unit) for unit in (False, True)), default=np.inf)
    if value > best * (1 + fitted.allowed):
        verdict.wrong.append(f"output {out.number}: {percent(value / best - 1)} above a point of value {best:.10g}")
    elif value < best * (1 - fitted.allowed):
        verdict.undecided.append(f"output {out.number}: {value:.8g}, Clarabel's point only {best:.8g}")


def _conic_lp(Psi, gram, R, out, p, Ca, C, scaled):
    """The value of Clarabel's point, in units of the mean cost or as it is."""
    cost = (C * out.w).astype(float)
    unit = cost.mean() if scaled else 1.0
    a, b = cp.Variable(len(R)), cp.Variable()
    root, _ = longdouble.pivoted(R, 1e-14)
    norm = {1: cp.norm1, np.inf: cp.norm_inf}.get(p, lambda a: cp.sum(cp.power(cp.abs(a), p)) / p)(a)
    y = out.y.astype(float)
    hinge = cost / unit @ cp.pos(1 - cp.multiply(y, Psi.astype(float) @ a + b))
    objective = cp.sum_squares(root.astype(float).T @ a) / (2 * unit) + hinge + float(Ca) / unit * norm
    try:
        cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL, **CLARABEL)
    except Exception:  # whatever Clarabel cannot do
        return np.inf
    if a.value is None or not np.isfinite(a.value).all():
        return np.inf
    return min(_lp_value(long(point), b.value, Psi, R, out, p, Ca, C) for point in (a.value, 0 * a.value))


def _lp_value(a, b, Psi, R, out, p, Ca, C):
    f = Psi @ a
    b = hinge_bias(out.y - f, out.y, out.w)
    return a @ R @ a / 2 + interior.HINGE.value(1 - out.y * (f + b), C * out.w) + penalty(a, p, Ca)


def hinge_bias(residuals, y, w):
    """The best bias of the hinge: the residual at which the weight passes that of the positive rows."""
    order = np.argsort(residuals)
    at = int(np.searchsorted(np.cumsum(w[order]), w[y > 0].sum()))
    return residuals[order[min(at, len(order) - 1)]]


# --- The relevance vector machine ---------------------------------------------------------------------------


def relevance(fitted):
    """The evidence of the model, and whether a change of one precision raises it."""
    verdict = Verdict()
    if not finite(fitted, verdict):
        return verdict
    K, model = fitted.every(), fitted.model
    for out in fitted.outputs("ovr"):
        used = np.isfinite(model.precision_[out.number])
        w = np.append(model.intercept_[out.number], model.vector_coef_[out.number][used])
        alpha = np.append(model.intercept_precision_[out.number], model.precision_[out.number][used])
        evidence.check(fitted, verdict, out, K[out.rows], model.support_[used], w, alpha)
    return verdict
