"""Probabilities of classes over a basis: one logistic output for two classes, softmax outputs for several.

With features P, whitened so that the regulariser is the sum of squares, and costs c_i of the rows,

    min_{w,b}  1/2 sum_o |w_o|^2 + sum_i c_i (log sum_k exp(g_ik) - g_iy),     f_i = p_i.w + b,

where the scores g of the classes are f itself, or (0, f) for two classes. Newton's equations are solved by conjugate
gradients: their matrix couples all classes, and products with it need two passes over the rows, no more. What they are
preconditioned with is the matrix of one output whose rows have the mean curvature of all; for two classes it is the
matrix itself, and one step solves them.

The conjugate of softmax is a negative entropy. For any distributions q_i of the classes with sum_i c_i (y_i - q_i) = 0,
y_i being the indicator of the row's class,

    dual  sum_i c_i entropy(q_i) - 1/2 sum_o v_o'R^-1 v_o,     v = k(Z, X) A,  A_i = c_i (y_i - q_i).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import entr, log_expit, log_softmax

from ..certificate import UNITS, Basis, relative_gap
from ..formulation import Array, Kernel
from ..parts.regularizers import Regularizer
from .equations import Solver, from_rows, from_sums
from .features import Exact, Features, double, features, sums, times

TIE = 1e-12  # by which the first of equals leads, in logarithms
MOST_PRODUCTS = 200  # with the matrix of second derivatives, for one step
Report = Callable[[str], None]


def log_probabilities(F: Array) -> Array:
    """Logarithms of the classes' probabilities, from the values of one output (two classes) or of one for each class.

    None is minus infinity as long as the values are finite.
    """
    F = np.asarray(F, dtype=np.float64)
    return np.hstack([log_expit(-F), log_expit(F)]) if F.shape[1] == 1 else log_softmax(F, axis=1)


def led_by(winners: Array, log_p: Array) -> Array:
    """The nearest distributions (in squared distance) in which no class is likelier than the row's winner.

    The winner shares evenly with the classes above it: all of them get the mean of as many of the largest as make that
    mean largest.
    """
    rows = np.flatnonzero(log_p.argmax(axis=1) != winners)
    if not len(rows):
        return log_p
    own = np.arange(len(rows)), winners[rows]
    p = np.exp(log_p[rows])
    others = p.copy()
    others[own] = 0
    others = -np.sort(-others, axis=1)[:, :-1]
    means = (p[own][:, None] + np.cumsum(others, axis=1)) / np.arange(2, p.shape[1] + 1)
    level = np.log(means.max(axis=1))
    moved = np.minimum(log_p[rows], level[:, None] - TIE)
    moved[own] = level
    led = log_p.copy()
    led[rows] = moved
    return led


@dataclass(frozen=True)
class Labels:
    """Class numbers and costs of rows, and what decision values (rows x outputs) mean to them."""

    codes: Array
    costs: Array
    n_classes: int

    @property
    def outputs(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def totals(self) -> Array:
        """Cost of each class."""
        return np.bincount(self.codes, weights=self.costs, minlength=self.n_classes)

    def take(self, rows: slice) -> Labels:
        return replace(self, codes=self.codes[rows], costs=self.costs[rows])

    def of_classes(self, F: Array) -> Array:
        """Outputs as columns for the classes; the first of two classes has the score 0."""
        return np.hstack([np.zeros((len(F), 1)), F]) if self.n_classes == 2 else F

    def of_outputs(self, G: Array) -> Array:
        """Back again."""
        return G[:, self.n_classes - self.outputs :]

    def losses(self, F: Array) -> tuple[Array, Array]:
        """``-log p`` of each row's own class, and the probabilities of the others (0 for its own).

        Differences from 1 keep their digits where p is close to it.
        """
        own = np.arange(len(F)), self.codes
        G = self.of_classes(F)
        G = G - G[own][:, None]
        top = G.max(axis=1)
        others = np.exp(G - top[:, None])
        others[own] = 0
        total = others.sum(axis=1)
        loss = top + np.log1p(total + np.expm1(-top))
        return loss, others / (total + np.exp(-top))[:, None]

    def value(self, F: Array) -> float:
        """The loss of all rows."""
        return float(self.costs @ self.losses(F)[0])

    def at(self, F: Array) -> Point:
        """Loss, probabilities and duals."""
        own = np.arange(len(F)), self.codes
        loss, p = self.losses(F)
        duals = -p
        duals[own] = p.sum(axis=1)
        p[own] = np.exp(-loss)
        return Point(self, float(self.costs @ loss), p, self.costs[:, None] * self.of_outputs(duals))


@dataclass(frozen=True)
class Point:
    """The loss at some decision values: probabilities of the classes, and duals ``-dloss/df`` of the outputs."""

    labels: Labels
    value: float
    p: Array
    duals: Array

    def curvature(self) -> Array:
        """Of each row, the mean over its directions."""
        bend = self.labels.of_outputs(self.p * (1 - self.p)).sum(axis=1)
        return self.labels.costs * bend / (self.labels.n_classes - 1)

    def bent(self, rows: slice, Q: Array) -> Array:
        """The second derivative of some rows times changes of their decision values."""
        p = self.p[rows]
        change = p * self.labels.of_classes(Q)
        change -= p * change.sum(axis=1, keepdims=True)
        return self.labels.costs[rows, None] * self.labels.of_outputs(change)


@dataclass(frozen=True)
class Weights:
    """Weights over features and, in the last row, biases (features + 1 x outputs)."""

    V: Array
    n_iter: int = 0

    @classmethod
    def without_features(cls, labels: Labels, size: int) -> Weights:
        """Every row gets the shares of the classes: where all starts, and the best there is without a feature."""
        V = np.zeros((size + 1, labels.outputs))
        with np.errstate(divide="ignore"):
            shares = np.log(np.maximum(labels.totals / labels.costs.sum(), np.finfo(float).tiny))
        V[-1] = shares[1] - shares[0] if labels.n_classes == 2 else shares - shares.mean()
        return cls(V)


def minimise(P: Features, labels: Labels, start: Weights | None, tol: float, max_iter: int = 100) -> Weights:
    """Newton's method until half the squared gradient, which is the duality gap, is below ``tol`` of the objective."""
    m = P.shape[1]
    begin = Weights.without_features(labels, m) if start is None else start
    V, steps = begin.V.copy(), begin.n_iter
    own = np.append(np.ones(m), 1e-12 * labels.costs.sum())  # the bias, too, must be determined
    F = times(P, V[:m], V[m])
    least = labels.of_outputs(labels.totals[None]).min()
    for _ in range(max_iter):
        point = labels.at(F)
        objective = 0.5 * float((V[:m] ** 2).sum()) + point.value
        gradient = np.vstack([V[:m], np.zeros(V.shape[1])]) - sums(P, point.duals)[0]
        if 0.5 * (gradient[:m] ** 2).sum() <= tol * objective and np.abs(gradient[m]).max() <= tol * least:
            break
        found = _step(P, point, gradient, own, objective)
        if found is None:
            break
        t = _length(labels, F, V, found, objective)
        if t == 0:
            break
        V, F, steps = V + t * found.step, F + t * found.Q, steps + 1
    return Weights(V, steps)


@dataclass(frozen=True)
class _Step:
    """A change of the weights, of the decision values, and what it gains at first: minus the slope of the objective."""

    step: Array
    Q: Array
    gain: float


def _step(P: Features, point: Point, gradient: Array, own: Array, objective: float) -> _Step | None:
    """Newton's step, as exactly as is worth it; None where numbers are too large for one."""
    solver = _preconditioner(P, point.curvature(), own)
    if solver is None:
        return None
    step, Q = np.zeros_like(gradient), np.zeros((P.shape[0], gradient.shape[1]))
    rest = -gradient
    better = _columns(solver, rest)
    direction, size = better, float((rest * better).sum())
    enough = size * min(0.01, size / objective)  # the nearer, the more exactly: it ends in a few steps
    for _ in range(MOST_PRODUCTS):
        image, change = _product(P, point, direction, own)
        bend = float((direction * image).sum())
        if not bend > 0 or not np.isfinite(bend):
            break
        t = size / bend
        step, Q, rest = step + t * direction, Q + t * change, rest - t * image
        better = _columns(solver, rest)
        before, size = size, float((rest * better).sum())
        if size <= enough:
            break
        direction = better + (size / before) * direction
    gain = -float((gradient * step).sum())
    return _Step(step, Q, gain) if gain > 0 and np.isfinite(gain) else None


def _preconditioner(P: Features, h: Array, own: Array) -> Solver | None:
    gram = sums(P, np.zeros((len(h), 1)), h[:, None])[1]
    assert gram is not None
    matrix = gram[0] + np.diag(own)
    return from_sums(matrix) or from_rows(((block, h[rows]) for rows, block in P.blocks()), own)


def _columns(solver: Solver, right: Array) -> Array:
    return np.stack([solver(column) for column in right.T], axis=1)


def _product(P: Features, point: Point, direction: Array, own: Array) -> tuple[Array, Array]:
    """The matrix of second derivatives times a direction, and the decision values of the direction."""
    image = own[:, None] * direction
    change = np.empty((P.shape[0], direction.shape[1]))
    for rows, block in P.blocks():
        change[rows] = block @ direction[:-1] + direction[-1]
        bent = point.bent(rows, change[rows])
        image[:-1] += block.T @ bent
        image[-1] += bent.sum(axis=0)
    return image, change


def _length(labels: Labels, F: Array, V: Array, found: _Step, objective: float) -> float:
    """The largest of 1, 1/2, 1/4, ... that gains; 0 if none does."""
    t = 1.0
    while t > 1e-9:
        w = V[:-1] + t * found.step[:-1]
        there = 0.5 * float((w**2).sum()) + labels.value(F + t * found.Q)
        if there <= objective - 1e-4 * t * found.gain + 1e-15 * objective:
            return t
        t /= 2
    return 0.0


# --- the layer and its certificate -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Layer:
    """Coefficients (outputs x vectors) and biases of log-odds, and their certificate."""

    coef: Array
    bias: Array
    objective: float
    gap: float
    n_iter: int

    def log_probabilities(self, kernel: Kernel, X: Any, Z: Any, threads: int = 1) -> Array:
        """Of the classes, for each row of X."""
        return log_probabilities(kernel.decision(X, Z, self.coef, self.bias, threads))


def fit_layer(
    kernel: Kernel,
    X: Any,
    Z: Any,
    labels: Labels,
    regularizer: Regularizer,
    tol: float = 1e-4,
    max_iter: int = 100,
    threads: int = 1,
    memory: float = 2.0**30,
) -> Layer:
    """The best layer over the vectors Z, to a relative duality gap of ``tol`` of the model that is returned."""
    if not Z.shape[0]:
        start = Weights.without_features(labels, 0)
        value = labels.value(np.broadcast_to(start.V[-1], (len(labels.codes), labels.outputs)))
        return Layer(np.zeros((labels.outputs, 0)), start.V[-1], value, 0.0, 0)
    gram = kernel(double(Z), double(Z))
    basis = Basis.of(regularizer.settled(gram), gram)
    P = features(kernel, double(X), double(Z), basis.T, np.float64, threads, memory)
    exact = Exact(kernel, X, Z, threads)
    found, best = None, None
    for accuracy in tol * np.array([0.3, 1e-3, 1e-6]):
        found = minimise(P, labels, found, accuracy, max_iter - (found.n_iter if found else 0))
        coef, bias = basis.T @ found.V[:-1], found.V[-1]
        objective, gap = certified(exact, basis, labels, coef, bias)
        stuck = best is not None and not gap < 0.5 * best.gap
        if best is None or gap < best.gap:
            best = Layer(np.ascontiguousarray(coef.T), bias, objective, gap, found.n_iter)
        if gap <= tol or stuck or found.n_iter >= max_iter:
            break
    assert best is not None
    return best


def certified(exact: Exact, basis: Basis, labels: Labels, coef: Array, bias: Array) -> tuple[float, float]:
    """Objective and relative gap of a layer (vectors x outputs), in one pass over kernel values in float64.

    The model's own probabilities p are not quite feasible: their mixture q = (1 - t) p + t r with one distribution
    r for all rows is, for the least t that leaves r non-negative.
    """
    m = len(basis.R)
    value, spread = 0.0, 0.0
    p = np.empty((len(labels.codes), labels.n_classes))
    pull, classes = np.zeros((m, labels.outputs)), np.zeros((m, labels.n_classes))
    reach = basis.sizes @ coef**2
    for rows, K, sizes in exact.blocks():
        mine = labels.take(rows)
        point = mine.at(K @ coef + bias)
        value += point.value
        p[rows] = point.p
        pull += K.T @ point.duals
        classes += K.T @ (mine.costs[:, None] * (mine.codes[:, None] == np.arange(labels.n_classes)))
        spread += float(np.abs(sizes) @ point.duals**2 @ reach + (point.duals**2).sum(axis=0) @ bias**2)
    t, r = _mixture(labels, p)
    moved = labels.of_outputs(classes - np.outer(classes.sum(axis=1), r))
    v = basis.T.T @ ((1 - t) * pull + t * moved)
    primal = float(basis.norms(coef).sum()) + value
    dual = float(labels.costs @ entr((1 - t) * p + t * r).sum(axis=1)) - 0.5 * float((v**2).sum())
    doubt = 2 * UNITS * np.sqrt(spread) + float((basis.doubt(coef) + basis.doubt(basis.T @ v)).sum())
    return primal, relative_gap(primal + doubt, dual)


def _mixture(labels: Labels, p: Array) -> tuple[float, Array]:
    """t and r, with which probabilities sum to the classes' totals."""
    wanted, found = labels.totals, labels.costs @ p
    t = float(np.clip(np.max(1 - wanted / np.maximum(found, np.finfo(float).tiny)), 0.0, 1.0))
    r = np.maximum(wanted - (1 - t) * found, 0)
    total = float(r.sum())
    if t == 0 or total == 0:  # nothing is missing, or rounding alone
        return 0.0, np.full(len(wanted), 1 / len(wanted))
    return t, r / total
