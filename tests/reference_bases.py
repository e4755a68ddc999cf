"""Slow, obvious answers for machines over a basis. Nothing here is fast, and nothing here uses slimsvm.

    min_{w,b}     1/2 |w|^2 + sum_i C_i l(y_i (p_i.w + b))                       a linear machine over features p
    min_{beta,b}  1/2 beta'R beta + sum_i C_i l(y_i (k(x_i, Z) beta + b))        a machine over vectors Z

The second is the first with p_i = T'k(Z, x_i), beta = T w, where T'RT = I.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import cvxpy as cp
import numpy as np

from reference import optimize

WIDTH = 0.5  # of the Huber hinge

# --- Losses of the slack t = 1 - y f, by the name of their class --------------------------------------------


@dataclass(frozen=True)
class LossEntry:
    """A loss in numpy and in cvxpy, and its dual set: ``alpha >= 0`` unless two-sided, ``alpha <= C`` if bounded."""

    value: Callable  # (t)
    expression: Callable  # (t, u, v) -> (cvxpy expression to be weighted by C, constraints), with variables u, v >= 0
    ridge: float  # times 1/C, in the dual
    bounded: bool = False
    two_sided: bool = False


LOSSES = {
    "Hinge": LossEntry(lambda t: np.maximum(t, 0), lambda t, u, v: (v, [v >= t]), 0.0, bounded=True),
    "SquaredHinge": LossEntry(lambda t: np.maximum(t, 0) ** 2 / 2, lambda t, u, v: (cp.square(u) / 2, [u >= t]), 1.0),
    # t^2 / (2 h) up to t = h, then t - h/2: min u^2/(2h) + v with u + v >= t; the slope of u^2/(2h) is 1 at u = h.
    "HuberHinge": LossEntry(
        lambda t: np.where(t <= 0, 0, np.where(t < WIDTH, t**2 / (2 * WIDTH), t - WIDTH / 2)),
        lambda t, u, v: (cp.square(u) / (2 * WIDTH) + v, [u + v >= t]),
        WIDTH,
        bounded=True,
    ),
    "LeastSquares": LossEntry(lambda t: t**2 / 2, lambda t, u, v: (cp.square(t) / 2, []), 1.0, two_sided=True),
}


def loss_value(name, f, y, C):
    """sum_i C_i l(1 - y_i f_i)."""
    return float(np.sum(C * LOSSES[name].value(1 - y * f)))


# --- The linear machine -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Linear:
    """Weights, bias and the least value."""

    w: np.ndarray
    bias: float
    value: float


def linear_machine(P, y, C, name) -> Linear:
    """The primal by Clarabel, over the rows with C > 0.

    Large costs are tried as they are and divided by their mean, since one of the two may stop early on an absolute
    tolerance. The value is that of the point found, so the lower is the better.
    """
    C = np.broadcast_to(np.asarray(C, dtype=np.float64), y.shape)
    P, y, C = P[C > 0], y[C > 0], C[C > 0]
    if name == "LeastSquares":
        return _ridge_regression(P, y, C)
    units = {1.0, max(1.0, float(C.mean())) if C.mean() > 100 else 1.0}
    return min((_conic(P, y, C, name, unit) for unit in sorted(units)), key=lambda found: found.value)


def _conic(P, y, C, name, unit) -> Linear:
    w, b = cp.Variable(P.shape[1]), cp.Variable()
    u, v = cp.Variable(len(y), nonneg=True), cp.Variable(len(y), nonneg=True)
    rows, constraints = LOSSES[name].expression(1 - cp.multiply(y, P @ w + b), u, v)
    objective = cp.sum_squares(w) / (2 * unit) + cp.sum(cp.multiply(C / unit, rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an inaccurate answer loses to the other one, or to the test
        try:
            optimize(cp.Problem(cp.Minimize(objective), constraints))
        except cp.SolverError:
            return Linear(np.zeros(P.shape[1]), 0.0, np.inf)
    if w.value is None:
        return Linear(np.zeros(P.shape[1]), 0.0, np.inf)
    value = 0.5 * w.value @ w.value + loss_value(name, P @ w.value + b.value, y, C)
    return Linear(w.value, float(b.value), value)


def _ridge_regression(P, y, C) -> Linear:
    """(y f - 1)^2 = (f - y)^2: weighted least squares as one tall problem, with rows sqrt(C) (p, 1) and (I, 0)."""
    m = P.shape[1]
    root = np.sqrt(C)[:, None]
    tall = np.vstack([root * np.c_[P, np.ones(len(y))], np.c_[np.eye(m), np.zeros(m)]])
    wb = np.linalg.lstsq(tall, np.concatenate([root[:, 0] * y, np.zeros(m)]), rcond=None)[0]
    return Linear(wb[:m], wb[m], 0.5 * wb[:m] @ wb[:m] + loss_value("LeastSquares", P @ wb[:m] + wb[m], y, C))


def certificate(P, y, C, name, w, bias, a):
    """Primal value, dual value and infeasibility of signed duals a, for rows with C > 0; weak duality is a proof.

    dual = y'a - 1/2 |P'a|^2 - sum ridge a^2 / (2 C)   with  sum a = 0,  0 <= y a (hinges),  y a <= C (l of slope 1).
    """
    long = np.longdouble
    P, y, C, w, a = (np.asarray(v, dtype=long) for v in (P, y, C, w, a))
    used = C > 0
    assert not a[~used].any()
    P, y, C, a = P[used], y[used], C[used], a[used]
    t = 1 - y * (P @ w + long(bias))
    primal = w @ w / 2 + np.sum(C * LOSSES[name].value(t))
    g = P.T @ a
    dual = y @ a - g @ g / 2 - LOSSES[name].ridge * np.sum(a**2 / C) / 2
    alpha = y * a
    wrong = [abs(a.sum()) / np.abs(a).sum()]
    if not LOSSES[name].two_sided:
        wrong.append(np.max(np.maximum(-alpha, 0) / C))
    if LOSSES[name].bounded:
        wrong.append(np.max(np.maximum(alpha - C, 0) / C))
    return float(primal), float(dual), float(max(wrong))


# --- Machines over vectors ----------------------------------------------------------------------------------


def inverse_root(R):
    """T with T'RT = I, from all eigenvectors but those of the null space."""
    values, vectors = np.linalg.eigh((R + R.T) / 2)
    kept = values > 1e-13 * values[-1]
    return vectors[:, kept] / np.sqrt(values[kept])


@dataclass(frozen=True)
class Machine:
    """Coefficients, bias and the least value."""

    coef: np.ndarray
    bias: float
    value: float


def machine(Kxz, R, y, C, name) -> Machine:
    """min 1/2 beta'R beta + loss(Kxz beta + b)."""
    T = inverse_root(R)
    found = linear_machine(Kxz @ T, y, C, name)
    return Machine(T @ found.w, found.bias, found.value)


def outputs(codes, scheme):
    """Labels and rows of each binary machine: one for two classes, else each pair or each class against the rest."""
    k = codes.max() + 1
    if k == 2:
        return [(np.where(codes == 1, 1.0, -1.0), np.arange(len(codes)))]
    if scheme == "ovr":
        return [(np.where(codes == c, 1.0, -1.0), np.arange(len(codes))) for c in range(k)]
    pairs = []
    for i, j in combinations(range(k), 2):
        rows = np.flatnonzero((codes == i) | (codes == j))
        pairs.append((np.where(codes[rows] == i, 1.0, -1.0), rows))
    return pairs


def learned_value(Kxz, Kz, epsilon, Y, C, name):
    """W(Z): the least value of every output, summed; R = k(Z, Z) + epsilon I."""
    R = Kz + epsilon * np.eye(len(Kz))
    return sum(machine(Kxz, R, Y[:, o], C[:, o], name).value for o in range(Y.shape[1]))


# --- Selections, one row at a time --------------------------------------------------------------------------


def independent_rows(K, eta, order=None, most=None):
    """Keep row a iff K_aa - k_a'K_II^-1 k_a > eta, with I the rows kept so far."""
    kept = []
    L = np.zeros((0, 0))
    for a in range(len(K)) if order is None else order:
        if most is not None and len(kept) >= most:
            break
        m = len(kept)
        row = np.zeros(m)
        for i in range(m):  # forward substitution
            row[i] = (K[kept[i], a] - L[i, :i] @ row[:i]) / L[i, i]
        rest = K[a, a] - row @ row
        if rest > eta:
            grown = np.zeros((m + 1, m + 1))
            grown[:m, :m], grown[m, :m], grown[m, m] = L, row, np.sqrt(rest)
            L = grown
            kept.append(a)
    return np.array(kept, dtype=int)


def distances(K, kept):
    """Squared distance of every row to the span of the kept ones: K_aa - k_a'K_II^+ k_a."""
    if len(kept) == 0:
        return K.diagonal().copy()
    root = K[:, kept] @ inverse_root(K[np.ix_(kept, kept)])
    return K.diagonal() - (root**2).sum(axis=1)


def pivoted_rows(K, eta, most):
    """Always the row farthest from the span of those before; the first of equals."""
    kept = []
    while len(kept) < most:
        rest = distances(K, kept)
        rest[kept] = 0
        best = int(np.flatnonzero(rest >= rest.max() - 1e-12 * K.diagonal().max())[0])
        if rest[best] <= eta:
            break
        kept.append(best)
    return np.array(kept, dtype=int)


def forward_gains(K, kept, Y, C):
    """What one Newton step along each row's own part gains for the squared hinge, g^2 / 2h, summed over outputs.

    The machine over the kept rows is solved by the reference. q = (k_c - its part in the span) / its norm is one
    more feature of norm 1: value(t) = 1/2 t^2 + sum C/2 (1 - y (f + t q))_+^2, g and h its derivatives at t = 0.
    """
    gains = np.zeros(len(K))
    P = K[:, kept] @ inverse_root(K[np.ix_(kept, kept)]) if len(kept) else np.zeros((len(K), 0))
    F = np.zeros(Y.shape)
    for o in range(Y.shape[1]):
        if len(kept):
            found = linear_machine(P, Y[:, o], C[:, o], "SquaredHinge")
            F[:, o] = P @ found.w + found.bias
        else:  # the bias alone: half of the classes' difference, for C equal in all rows
            found = linear_machine(np.zeros((len(K), 1)), Y[:, o], C[:, o], "SquaredHinge")
            F[:, o] = found.bias
    for c in range(len(K)):
        left = K[c, c] - P[c] @ P[c]
        if left <= 1e-9 * K[c, c]:
            continue
        q = (K[:, c] - P @ P[c]) / np.sqrt(left)
        for o in range(Y.shape[1]):
            xi = np.maximum(1 - Y[:, o] * F[:, o], 0)
            g = -np.sum(C[:, o] * Y[:, o] * xi * q)
            h = 1 + np.sum(C[:, o] * (xi > 0) * q**2)
            gains[c] += g**2 / (2 * h)
    return gains


# --- Derivatives --------------------------------------------------------------------------------------------


def numerical_gradient(value, theta, step=1e-5):
    """Central differences."""
    gradient = np.zeros(len(theta))
    for i in range(len(theta)):
        up, down = theta.copy(), theta.copy()
        up[i] += step
        down[i] -= step
        gradient[i] = (value(up) - value(down)) / (2 * step)
    return gradient
