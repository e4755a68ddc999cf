"""Values of primal and dual, and the gap between them: every `objective_` and `duality_gap_` comes from here.

A solver supplies what differs between problems: the values of primal and dual at its solution, and how far rounding may
have moved them. `Certifier` is for duals of all rows, `certify_rows` for coefficients over vectors Z: the model that is
returned, f = k(., Z) beta + b, is evaluated once more in float64:

    primal  1/2 beta'R beta + sum loss(f)           dual  conjugate(A) - 1/2 v'R^-1 v,   v = k(Z, X) A,  sum(A) = 0.

Both are the values of one convex problem, whose R is that of the settled regulariser (`Regularizer.settled`), so one
bounds the other however close to singular k(Z, Z) is. Rounding counts as part of the gap: kernel values are known to
``e (k(x, x) k(z, z))^1/2`` with e = 4 eps, so primal and dual are known to ``e (sum_ij A_i^2 k(x_i, x_i) k(z_j, z_j)
beta_j^2)^1/2`` each, and the norm to ``e/2 sum_j R_jj beta_j^2``: what independent errors do to such sums. Where
k(Z, Z) is not positive semidefinite, coefficients are held to the directions in which R is positive, and so is the
proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, sqrt
from typing import Any, Protocol, Self

import numpy as np

from ..linalg.arrays import Array
from ..linalg.matrix import dot
from ..problem.losses import gap_floor, quadratic_pieces
from ..problem.regularizers import Regularizer
from ..rows.protocol import FeatureSource
from .primal.passes import (
    CORNER_CHARGE,
    DOWN,
    DOWN_GAIN,
    DOWN_RIDGE,
    SQUARES,
    SUMS,
    UP,
    UP_GAIN,
    UP_RIDGE,
    VALUE,
    WEIGHTED_SQUARES,
    CertificateSums,
    Conjugate,
    KnownDuals,
)
from .rounding import KERNEL_ROUNDING, accurate_product, error_of_product

SMALLEST_NORMAL = np.finfo(float).tiny
MAX_FACTORED_ROWS = 768  # whose kernel matrix may be kept and factorised as a last resort


@dataclass(frozen=True)
class Certificate:
    """Values of primal and dual at one point, between which every optimum lies; numbers, or arrays of several outputs.

    The gap is relative, and charged with what rounding may have moved the values by.
    """

    bias: Any
    primal: Any
    dual: Any
    gap: Any
    void: bool = False  # f = 0 as far as the gap tells
    rounding: float = 0.0  # the part of the gap that is the charge for rounding
    sum_cost: float = 0.0  # the part of the gap that is due to duals which do not sum to zero
    violation: float = 0.0  # of the optimality conditions

    @classmethod
    def between(cls, primal: Any, dual: Any, bias: Any = 0.0, charge: Any = 0.0, least: Any = 0.0) -> Self:
        """Of these values; ``least`` is the smallest unit of the gap."""
        return cls(bias, primal, dual, relative_gap(primal + charge, dual, least))


def relative_gap(primal: Any, dual: Any, least: Any = 0.0) -> Any:
    """``(primal - dual) / dual``, or relative to ``least`` where that is more; infinite if the larger of the two
    is not positive or the primal is NaN."""
    unit = np.maximum(dual, least)
    proved = (unit > 0) & ~np.isnan(primal)
    gap = np.where(proved, np.maximum(primal - dual, 0) / np.where(proved, unit, 1.0), np.inf)
    return gap if gap.ndim else float(gap)


# --- duals of all rows -----------------------------------------------------------------------------------------------


def balancing(up: Array, down: Array) -> tuple[Array, Array]:
    """Factors, at most 1, of the positive and of the negative duals that make these sums of their sizes equal."""
    least = np.minimum(up, down)
    return least / np.maximum(up, SMALLEST_NORMAL), least / np.maximum(down, SMALLEST_NORMAL)


def balanced(duals: Array) -> Array:
    """Signed duals (a vector, or a column for each output) whose heavier side is scaled down: they sum to zero."""
    up, down = balancing(np.maximum(duals, 0).sum(axis=0), -np.minimum(duals, 0).sum(axis=0))
    return np.where(duals > 0, duals * up, duals * down)


def cost_of_sum(duals: Array, largest: float, primal: float) -> float:
    """What the best bias times the sum of the duals, which should be zero, costs at most: ``|b| <= 1 + max|f|``, where
    ``|f(x)| <= |f| largest`` for all rows, whose largest k(x, x) has the root ``largest``."""
    return abs(fsum(duals.tolist())) * (1 + largest * sqrt(2 * max(primal, 0.0)))


class DualObjective(Protocol):
    """A dual problem over all rows, what differs between problems."""

    def certify(self, duals: Array, f: Array, largest: float) -> Certificate:
        """Values at these duals and f = K duals, with the best bias."""

    def charged(self, certificate: Certificate, duals: Array, f: Array, error: Array) -> Certificate:
        """The same where f is known up to ``error``, of any sign."""


class KernelRows(Protocol):
    """The kernel matrix of a dual problem."""

    @property
    def dot_product_degree(self) -> float:
        """Of the kernel, in x.z."""

    def diagonal(self) -> Array:
        """The values k(x, x)."""

    def matrix(self) -> Array:
        """All of it: of few rows only."""


class Certifier:
    """Certificates of one dual problem over one kernel; the core makes those of many at once (core/smo/certify.hpp)."""

    def __init__(self, objective: DualObjective, rows: KernelRows, tol: float):
        self.objective, self.rows, self.tol = objective, rows, tol
        self.sizes = np.sqrt(np.maximum(rows.diagonal(), 0.0))
        self.largest = float(self.sizes.max())

    def __call__(self, duals: Array, f: Array) -> Certificate:
        """Of f as it was computed; how well that is known matters only where the rest of the gap is small enough."""
        certificate = self.objective.certify(duals, f, self.largest)
        return certificate if certificate.gap > self.tol else self.charged(certificate, duals, f)

    def charged(self, certificate: Certificate, duals: Array, f: Array) -> Certificate:
        """With the rounding of f. Where that tells, f is computed once more, more accurately."""
        degree = self.rows.dot_product_degree
        charged = self.objective.charged(certificate, duals, f, error_of_product(self.sizes, duals, degree))
        if charged.rounding <= 0.01 * self.tol or len(duals) > MAX_FACTORED_ROWS:
            return charged
        f, error = accurate_product(self.rows.matrix(), self.sizes, duals, degree)
        return self.objective.charged(self.objective.certify(duals, f, self.largest), duals, f, error)


# --- coefficients over a basis ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RegularizedBasis:
    """Vectors as the dual sees them: the regulariser's matrix R, T with ``T' R T = I``, and the values k(z, z)."""

    R: Array
    T: Array
    sizes: Array

    @classmethod
    def of(cls, regularizer: Regularizer, gram: Array) -> RegularizedBasis:
        """Vectors with this kernel matrix."""
        return cls(regularizer.matrix(gram), regularizer.whitening(gram), np.abs(gram.diagonal()))

    def weights(self, coef: Array, bias: Array) -> Array:
        """Weights of the whitened features, the bias last, that mean such coefficients (outputs x vectors)."""
        return np.hstack([dot(dot(coef, self.R), self.T), bias[:, None]])

    def norms(self, coef: Array) -> Array:
        """``1/2 beta'R beta`` of each column."""
        return 0.5 * (coef * dot(self.R, coef)).sum(axis=0)

    def rounding_charge(self, coef: Array) -> Array:
        """How far rounding of R may have moved `norms`."""
        return dot(0.5 * KERNEL_ROUNDING * np.abs(self.R.diagonal()), coef**2)


def _shares(
    rows: FeatureSource,
    loss: Any,
    which: Array,
    V: Array,
    known_duals: KnownDuals,
    scales: tuple[Array, Array],
    shrink: Array,
    v: Array,
) -> tuple[Array, Array]:
    """How much of the duals is taken for each machine, and their conjugate, for a loss that need not be quadratic:
    ``shrink`` is what a quadratic one would take, and all of them may prove more."""
    squares = 0.5 * (v**2).sum(axis=0)

    def conjugate(share: Array) -> Array:
        return rows.total(Conjugate(loss), which, V, known_duals, share * scales[0], share * scales[1])[0]

    whole = np.ones_like(shrink)
    sums = conjugate(shrink)
    if (shrink > 1 - 1e-6).all():  # the dual is flat there
        return shrink, sums
    other = conjugate(whole)
    better = other - squares > sums - shrink**2 * squares
    return np.where(better, whole, shrink), np.where(better, other, sums)


def certify_rows(
    rows: FeatureSource,
    loss: Any,
    which: Array,
    V: Array,
    basis: RegularizedBasis | None = None,
    known_duals: KnownDuals = (),
    rounding: bool = True,
) -> Certificate:
    """The certificate of models with the weights V (outputs x features + 1), in one pass over the rows.

    Features are kernel values of the vectors of a ``basis``, or without one such that the norm of f is that of its
    weights. Signed duals are the known ones (rows and values for each output), or those of the loss at the decision
    values. ``rounding`` counts as part of the gap.
    """
    V = np.ascontiguousarray(V)
    coef, bias = V[:, :-1].T, V[:, -1]
    m = len(coef)
    coef_norms = np.zeros(len(V)) if basis is None else np.sqrt(dot(basis.sizes, coef**2))
    (sums,) = rows.total(CertificateSums(loss), which, V, known_duals, coef_norms, KERNEL_ROUNDING if rounding else 0.0)
    norms = 0.5 * (coef**2).sum(axis=0) if basis is None else basis.norms(coef)
    primal = norms + sums[:, VALUE]
    scale_up, scale_down = balancing(sums[:, UP], sums[:, DOWN])
    above, below = sums[:, SUMS : SUMS + m].T, sums[:, SUMS + m :].T
    v = scale_up * above + scale_down * below
    v = v if basis is None else dot(basis.T.T, v)
    gain = scale_up * sums[:, UP_GAIN] + scale_down * sums[:, DOWN_GAIN]
    ridge = scale_up**2 * sums[:, UP_RIDGE] + scale_down**2 * sums[:, DOWN_RIDGE]
    bend = ridge + (v**2).sum(axis=0)
    # Zero is feasible, so all between is; far from the solution shrinking is what makes the dual a bound at all.
    shrink = np.where(bend > gain, np.maximum(gain, 0) / np.where(bend > 0, bend, 1.0), 1.0)
    if quadratic_pieces(loss) is None:
        shrink, conjugate = _shares(rows, loss, which, V, known_duals, (scale_up, scale_down), shrink, v)
    else:
        conjugate = shrink * gain - 0.5 * shrink**2 * ridge
    v = v * shrink
    dual = conjugate - 0.5 * (v**2).sum(axis=0)
    least = gap_floor(loss, rows.labels.totals[which])
    if not rounding or basis is None:
        return Certificate.between(primal, dual, bias, least=least)
    error_squares = sums[:, WEIGHTED_SQUARES] * coef_norms**2 + sums[:, SQUARES] * bias**2
    rounding_charge = (
        sums[:, CORNER_CHARGE]
        + 2 * KERNEL_ROUNDING * np.sqrt(error_squares)
        + basis.rounding_charge(coef)
        + basis.rounding_charge(dot(basis.T, v))
    )
    return Certificate.between(primal, dual, bias, rounding_charge, least)
