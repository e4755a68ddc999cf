"""Logistic regression over given vectors: one logistic output for two classes, softmax outputs for several.

With features P, whitened so that the regulariser is the sum of squares, and costs c_i of the rows,

    min_{w,b}  1/2 sum_o |w_o|^2 + sum_i c_i (log sum_k exp(g_ik) - g_iy),     f_i = p_i.w + b,

where the scores g of the classes are f itself, or (0, f) for two classes. Newton's equations are solved by conjugate
gradients: their matrix couples all classes, and a product with it is one pass over the rows. The preconditioner is the
matrix of a single output with the mean curvature of all outputs; for two classes this is the exact matrix, and one step
solves the equations. Labels of the rows are class numbers, see `rows.labels.class_number_labels`; weights V are
outputs x (features + 1), the bias last.

The conjugate of softmax is a negative entropy. For any distributions q_i of the classes with sum_i c_i (y_i - q_i) = 0,
y_i being the indicator of the row's class,

    dual  sum_i c_i entropy(q_i) - 1/2 sum_o v_o'R^-1 v_o,     v = k(Z, X) A,  A_i = c_i (y_i - q_i).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr

from ...linalg.arrays import Array, as_float64
from ...linalg.matrix import dot
from ...model.probabilities import log_probabilities
from ...problem.formulation import Kernel
from ...problem.regularizers import Regularizer
from ...rows.labels import ClassLabels
from ...rows.memory import DenseFeatures, LazyFeatures, cache_features, feature_source
from ...rows.protocol import Block, FeatureSource, Pass, decision
from ..certificate import Certificate, RegularizedBasis
from ..rounding import KERNEL_ROUNDING
from .equations import Solver, from_rows, from_sums
from .passes import weighted_gram

MAX_PRODUCTS_PER_STEP = 200  # with the Hessian, for one Newton step
STEP_LENGTHS_PER_PASS = 4  # step lengths tried in one pass, each half of the one before
Report = Callable[[str], None]


@dataclass(frozen=True)
class ClassCodes:
    """Class numbers and costs of rows; computes the losses of decision values F (rows x outputs)."""

    codes: Array
    costs: Array
    n_classes: int

    def of_classes(self, F: Array) -> Array:
        """Scores of all classes from those of the outputs; the first of two classes has the score 0."""
        return np.hstack([np.zeros((len(F), 1)), F]) if self.n_classes == 2 else F

    def of_outputs(self, G: Array) -> Array:
        """The columns of the outputs, from columns of all classes."""
        return G[:, self.n_classes - outputs(self.n_classes) :]

    def losses(self, F: Array) -> tuple[Array, Array]:
        """``-log p`` of each row's own class, and the probabilities of the others (0 for its own).

        ``1 - p`` keeps its digits where p is close to 1.
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
        """The loss of all rows, weighted by their costs."""
        return float(dot(self.costs, self.losses(F)[0]))

    def at(self, F: Array) -> LayerPoint:
        """Loss, probabilities and duals at these decision values."""
        own = np.arange(len(F)), self.codes
        loss, p = self.losses(F)
        duals = -p
        duals[own] = p.sum(axis=1)
        p[own] = np.exp(-loss)
        return LayerPoint(self, float(dot(self.costs, loss)), p, self.costs[:, None] * self.of_outputs(duals))


@dataclass(frozen=True)
class LayerPoint:
    """The loss at some decision values: probabilities of the classes, and duals ``-dloss/df`` of the outputs."""

    labels: ClassCodes
    value: float
    p: Array
    duals: Array

    def curvature(self) -> Array:
        """Mean curvature of the loss of each row."""
        bend = self.labels.of_outputs(self.p * (1 - self.p)).sum(axis=1)
        return self.labels.costs * bend / (self.labels.n_classes - 1)

    def bent(self, Q: Array) -> Array:
        """Multiply changes Q of the decision values by the Hessian of the loss."""
        change = self.p * self.labels.of_classes(Q)
        change -= self.p * change.sum(axis=1, keepdims=True)
        return self.labels.costs[:, None] * self.labels.of_outputs(change)


def outputs(n_classes: int) -> int:
    """Number of outputs: one for two classes, else one for each class."""
    return 1 if n_classes == 2 else n_classes


# --- passes over the rows ----------------------------------------------------------------------------------------


class OfClasses(Pass):
    """A pass over rows whose labels are class numbers."""

    def __init__(self, labels: Any):
        self.n_classes = len(labels.side)

    def classes(self, block: Block) -> ClassCodes:
        codes, costs = block.labels(np.zeros(1, dtype=np.int64))
        return ClassCodes(codes[:, 0].astype(np.int64), costs[:, 0], self.n_classes)

    def values(self, block: Block, V: Array) -> Array:
        return block.values(np.zeros(len(V), dtype=np.int64), V)

    def at(self, block: Block, V: Array) -> LayerPoint:
        return self.classes(block).at(self.values(block, V))


class ClassTotals(OfClasses):
    """Sum of the costs of each class."""

    def __call__(self, block: Block) -> tuple[Array, ...]:
        mine = self.classes(block)
        return (np.bincount(mine.codes, weights=mine.costs, minlength=self.n_classes),)


class Losses(OfClasses):
    """Losses at each of several weights (tries x outputs x features + 1)."""

    def __call__(self, block: Block, tried: Array) -> tuple[Array, ...]:
        mine = self.classes(block)
        return (np.array([mine.value(self.values(block, V)) for V in tried]),)


class LayerEvidence(OfClasses):
    """Sums over rows for a certificate: the loss; squared duals, with and without the factor k(x, x); features times
    duals; features times costs, by class; and probabilities times costs."""

    def __call__(self, block: Block, V: Array) -> tuple[Array, ...]:
        point, K = self.at(block, V), block.features()
        mine = point.labels
        squares = point.duals**2
        own = mine.costs[:, None] * (mine.codes[:, None] == np.arange(self.n_classes))
        error_squares = dot(np.abs(block.sizes()), squares), squares.sum(axis=0)
        return np.array(point.value), *error_squares, dot(K.T, point.duals), dot(K.T, own), dot(mine.costs, point.p)


class Entropy(OfClasses):
    """Entropy of the mixtures ``(1 - t) p + t r``, weighted by costs."""

    def __call__(self, block: Block, V: Array, t: float, r: Array) -> tuple[Array, ...]:
        point = self.at(block, V)
        return (np.array(dot(point.labels.costs, entr((1 - t) * point.p + t * r).sum(axis=1))),)


def moments(P: Array, A: Array) -> Array:
    """``A'[P 1]``."""
    return np.hstack([dot(A.T, P), A.sum(axis=0)[:, None]])


# --- the solver ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LayerWeights:
    """Weights (outputs x features + 1), and the number of Newton steps taken."""

    V: Array
    n_iter: int = 0

    @classmethod
    def without_features(cls, totals: Array, size: int) -> LayerWeights:
        """The bias that predicts the class shares for every row: optimal without features, the start with them."""
        V = np.zeros((outputs(len(totals)), size + 1))
        shares = np.log(np.maximum(totals / totals.sum(), np.finfo(float).tiny))
        V[:, -1] = shares[1] - shares[0] if len(totals) == 2 else shares - shares.mean()
        return cls(V)


def minimise(rows: FeatureSource, start: LayerWeights | None, tol: float, max_iter: int = 100) -> LayerWeights:
    """Newton's method until half the squared gradient (the duality gap) is at most ``tol`` times the objective."""
    m = rows.shape[1]
    (totals,) = rows.total(ClassTotals(rows.labels))
    begin = LayerWeights.without_features(totals, m) if start is None else start
    steps = begin.n_iter
    own = np.append(np.ones(m), 1e-12 * totals.sum())  # a tiny ridge on the bias keeps the matrix regular
    least = totals[len(totals) - len(begin.V) :].min()
    now = LayerState.at(rows, begin.V)
    for _ in range(max_iter):
        gradient = now.gradient
        if 0.5 * (gradient[:, :m] ** 2).sum() <= tol * now.objective and np.abs(gradient[:, m]).max() <= tol * least:
            break
        step = _step(rows, now, own)
        after = None if step is None else _moved(rows, now, step)
        if after is None:
            break
        now, steps = after, steps + 1
    return LayerWeights(now.V, steps)


@dataclass(frozen=True)
class LayerState:
    """Weights, the objective and its gradient there, and the probabilities of all blocks.

    Conjugate gradients reuse the probabilities; they fit in memory because the rows of a layer are a sample.
    """

    V: Array
    objective: float
    gradient: Array
    points: tuple[LayerPoint, ...]

    @classmethod
    def at(cls, rows: FeatureSource, V: Array) -> LayerState:
        """The state at the weights V, in one pass over the rows."""
        work = OfClasses(rows.labels)
        points, value, pull = [], 0.0, np.zeros_like(V)
        for block in rows.blocks():
            point, P = work.at(block, V), block.features()
            points.append(point)
            value += point.value
            pull += moments(P, point.duals)
        gradient = V - pull
        gradient[:, -1] = -pull[:, -1]
        return cls(V, norm(V) + value, gradient, tuple(points))

    def bent(self, rows: FeatureSource, D: Array) -> Array:
        """Multiply a change D of the weights by the Hessian of the losses."""
        image = np.zeros_like(D)
        for block, point in zip(rows.blocks(), self.points, strict=True):
            P = block.features()
            image += moments(P, point.bent(decision(P, D)))
        return image

    def weighted(self, rows: FeatureSource) -> Iterator[tuple[Array, Array]]:
        """Features and mean curvatures, block by block."""
        return ((block.features(), p.curvature()) for block, p in zip(rows.blocks(), self.points, strict=True))


def norm(V: Array) -> float:
    """Half the sum of squares, without the biases."""
    return 0.5 * float((V[:, :-1] ** 2).sum())


def _step(rows: FeatureSource, now: LayerState, own: Array) -> Array | None:
    """Newton's step by conjugate gradients, to an accuracy that fits the gain; None where numbers overflow."""
    gram = sum((weighted_gram(P, h) for P, h in now.weighted(rows)), np.diag(own))
    solver = from_sums(gram) or from_rows(now.weighted(rows), own)
    if solver is None:
        return None
    step = np.zeros_like(now.V)
    rest = -now.gradient
    better = _each(solver, rest)
    direction, size = better, float((rest * better).sum())
    enough = size * min(0.01, size / now.objective)  # forcing term: more accurate steps near the solution
    for _ in range(MAX_PRODUCTS_PER_STEP):
        image = now.bent(rows, direction) + own * direction
        bend = float((direction * image).sum())
        if not bend > 0 or not np.isfinite(bend):
            break
        t = size / bend
        step, rest = step + t * direction, rest - t * image
        better = _each(solver, rest)
        before, size = size, float((rest * better).sum())
        if size <= enough:
            break
        direction = better + (size / before) * direction
    gain = _gain(now, step)
    return step if gain > 0 and np.isfinite(gain) else None


def _gain(now: LayerState, step: Array) -> float:
    """Minus the slope of the objective along a step."""
    return -float((now.gradient * step).sum())


def _each(solver: Solver, right: Array) -> Array:
    return np.stack([solver(row) for row in right])


def _moved(rows: FeatureSource, now: LayerState, step: Array) -> LayerState | None:
    """The state after the longest of 1, 1/2, 1/4, ... of the step that gains enough; None if none does."""
    gain = _gain(now, step)

    def enough(t: float, objective: float) -> bool:
        return objective <= now.objective - 1e-4 * t * gain + 1e-15 * now.objective

    whole = LayerState.at(rows, now.V + step)  # nearly always accepted, and then the start of the next step
    if enough(1.0, whole.objective):
        return whole
    t = 0.5 ** np.arange(1, 1 + STEP_LENGTHS_PER_PASS)
    while t[0] > 1e-9:
        tried = now.V + t[:, None, None] * step
        (values,) = rows.total(Losses(rows.labels), tried)
        for each, V, value in zip(t, tried, values, strict=True):
            if enough(each, norm(V) + float(value)):
                return LayerState.at(rows, V)
        t = t * 0.5**STEP_LENGTHS_PER_PASS
    return None


# --- the layer and its certificate -------------------------------------------------------------------------------


@dataclass(frozen=True)
class FittedLayer:
    """Coefficients (outputs x vectors) and biases of the log-odds, with objective and relative duality gap."""

    coef: Array
    bias: Array
    objective: float
    gap: float
    n_iter: int

    def log_probabilities(self, kernel: Kernel, X: Any, Z: Any, threads: int = 1) -> Array:
        """Log probabilities of the classes, for each row of X."""
        return log_probabilities(kernel.decision(X, Z, self.coef, self.bias, threads))


def fit_layer(
    kernel: Kernel,
    X: Any,
    Z: Any,
    labels: ClassLabels,
    regularizer: Regularizer,
    tol: float = 1e-4,
    max_iter: int = 100,
    threads: int = 1,
    memory: float = 2.0**30,
) -> FittedLayer:
    """Fit class probabilities over the vectors Z, to a relative duality gap of ``tol`` of the returned model."""
    if not Z.shape[0]:
        rows = DenseFeatures(np.zeros((labels.size, 0)), labels)
        V = LayerWeights.without_features(rows.total(ClassTotals(labels))[0], 0).V
        (value,) = rows.total(Losses(labels), V[None])
        return FittedLayer(V[:, :0], V[:, -1], float(value[0]), 0.0, 0)
    gram = kernel(as_float64(Z), as_float64(Z))
    basis = RegularizedBasis.of(regularizer.settled(gram), gram)
    rows = features(kernel, X, labels, Z, basis.T, threads, memory)
    plain = feature_source(kernel, X, labels, as_float64(Z), np.eye(len(gram)), np.float64, threads, memory)
    found, best = None, None
    for accuracy in tol * np.array([0.3, 1e-3, 1e-6]):
        found = minimise(rows, found, accuracy, max_iter - (found.n_iter if found else 0))
        coef, bias = dot(found.V[:, :-1], basis.T.T), found.V[:, -1]
        proof = certified(plain, basis, coef, bias)
        stuck = best is not None and not proof.gap < 0.5 * best.gap
        if best is None or proof.gap < best.gap:
            best = FittedLayer(np.ascontiguousarray(coef), bias, proof.primal, proof.gap, found.n_iter)
        if proof.gap <= tol or stuck or found.n_iter >= max_iter:
            break
    assert best is not None
    return best


def features(kernel: Kernel, X: Any, labels: ClassLabels, Z: Any, T: Array, threads: int, memory: float) -> Any:
    """Whitened features of the rows, kept as arrays if they fit, because conjugate gradients multiply by them often."""
    return cache_features(LazyFeatures(kernel, X, labels, as_float64(Z), T, np.float64, threads), memory)


def certified(plain: FeatureSource, basis: RegularizedBasis, coef: Array, bias: Array) -> Certificate:
    """Certify coefficients (outputs x vectors) and biases of a layer, in passes over kernel values in float64.

    The model's own probabilities p do not quite satisfy the constraint of the dual. Their mixture q = (1 - t) p + t r
    with one distribution r for all rows does, for the smallest t for which r is non-negative.
    """
    V = np.ascontiguousarray(np.hstack([coef, bias[:, None]]))
    value, error_squares, squares, pull, classes, found = plain.total(LayerEvidence(plain.labels), V)
    t, r = _mixture(plain.total(ClassTotals(plain.labels))[0], found)
    moved = (classes - np.outer(classes.sum(axis=1), r))[:, len(r) - len(V) :]
    v = dot(basis.T.T, (1 - t) * pull + t * moved)
    primal = float(basis.norms(coef.T).sum()) + float(value)
    dual = float(plain.total(Entropy(plain.labels), V, t, r)[0]) - 0.5 * float((v**2).sum())
    coef_norms = dot(basis.sizes, coef.T**2)
    charge = 2 * KERNEL_ROUNDING * np.sqrt(float(dot(error_squares, coef_norms) + dot(squares, bias**2)))
    charge += float((basis.rounding_charge(coef.T) + basis.rounding_charge(dot(basis.T, v))).sum())
    return Certificate.between(primal, dual, bias, charge)


def _mixture(wanted: Array, found: Array) -> tuple[float, Array]:
    """The t and r for which mixed probabilities, whose sums are ``found``, have the sums ``wanted``."""
    t = float(np.clip(np.max(1 - wanted / np.maximum(found, np.finfo(float).tiny)), 0.0, 1.0))
    r = np.maximum(wanted - (1 - t) * found, 0)
    total = float(r.sum())
    if t == 0 or total == 0:  # nothing is missing, or rounding alone
        return 0.0, np.full(len(wanted), 1 / len(wanted))
    return t, r / total
