"""Duality certificates: primal and dual values and the gap between them, kept as `objective_` and `duality_gap_`.

`Certifier` certifies duals of all rows: a `DualObjective` supplies the primal and dual values and their rounding error.
`certify_rows` certifies coefficients over vectors Z: it evaluates the returned model, f = k(., Z) beta + b, in float64:

    primal  1/2 beta'R beta + sum loss(f)           dual  conjugate(A) - 1/2 v'R^-1 v,   v = k(Z, X) A,  sum(A) = 0.

Both belong to the same convex problem, with the R of `Regularizer.settled`, so the dual value is a lower bound however
close to singular k(Z, Z) is. The gap includes rounding errors, which are taken as independent: kernel values have the
error ``e (k(x, x) k(z, z))^1/2`` with e = 4 eps, so primal and dual have the error ``e (sum_ij A_i^2 k(x_i, x_i)
k(z_j, z_j) beta_j^2)^1/2`` each, and the norm has ``e/2 sum_j R_jj beta_j^2``. Where k(Z, Z) is not positive
semidefinite, coefficients and certificate are restricted to the directions in which R is positive.
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
MAX_FACTORED_ROWS = 768  # up to so many rows, the kernel matrix may be kept and factorised as a last resort


@dataclass(frozen=True)
class Certificate:
    """Primal and dual values at one point, which enclose the optimum; scalars, or arrays with an entry per output.

    The gap is relative and includes the rounding error of both values.
    """

    bias: Any
    primal: Any
    dual: Any
    gap: Any
    void: bool = False  # within the gap, f cannot be told from 0
    rounding: float = 0.0  # the part of the gap that is due to rounding errors
    sum_cost: float = 0.0  # bound on the change of the dual value because the duals do not sum to zero exactly
    violation: float = 0.0  # largest violation of the optimality conditions

    @classmethod
    def between(cls, primal: Any, dual: Any, bias: Any = 0.0, charge: Any = 0.0, least: Any = 0.0) -> Self:
        """A certificate of these values: ``charge`` is the rounding error, ``least`` bounds the gap's denominator."""
        return cls(bias, primal, dual, relative_gap(primal + charge, dual, least))


def relative_gap(primal: Any, dual: Any, least: Any = 0.0) -> Any:
    """Gap ``(primal - dual) / max(dual, least)``; infinite if the denominator is not positive or primal is NaN."""
    unit = np.maximum(dual, least)
    proved = (unit > 0) & ~np.isnan(primal)
    gap = np.where(proved, np.maximum(primal - dual, 0) / np.where(proved, unit, 1.0), np.inf)
    return gap if gap.ndim else float(gap)


# --- duals of all rows -----------------------------------------------------------------------------------------------


def balancing(up: Array, down: Array) -> tuple[Array, Array]:
    """Factors, at most 1, that scale positive duals of sum ``up`` and negative duals of sum ``-down`` to equal sums."""
    least = np.minimum(up, down)
    return least / np.maximum(up, SMALLEST_NORMAL), least / np.maximum(down, SMALLEST_NORMAL)


def balanced(duals: Array) -> Array:
    """Scale down the heavier sign of signed duals (a vector, or a column for each output) so that they sum to zero."""
    up, down = balancing(np.maximum(duals, 0).sum(axis=0), -np.minimum(duals, 0).sum(axis=0))
    return np.where(duals > 0, duals * up, duals * down)


def cost_of_sum(duals: Array, largest: float, primal: float) -> float:
    """Bound ``|b sum(duals)|``, the error of the dual value where the duals do not sum exactly to zero.

    The best bias has ``|b| <= 1 + max|f|``, and ``|f(x)| <= |f| largest``, where ``largest`` is the root of the largest
    k(x, x).
    """
    return abs(fsum(duals.tolist())) * (1 + largest * sqrt(2 * max(primal, 0.0)))


class DualObjective(Protocol):
    """Primal and dual values of one kind of dual problem over all rows."""

    def certify(self, duals: Array, f: Array, largest: float) -> Certificate:
        """The certificate of duals and f = K duals, with the best bias; ``largest`` is the largest k(x, x)^1/2."""

    def charged(self, certificate: Certificate, duals: Array, f: Array, error: Array) -> Certificate:
        """The certificate where f may be off by ``error``, of either sign."""


class KernelRows(Protocol):
    """The kernel matrix of a dual problem."""

    @property
    def dot_product_degree(self) -> float:
        """Degree of the kernel in the dot product x.z; 0 if it has none."""

    def diagonal(self) -> Array:
        """The values k(x, x)."""

    def matrix(self) -> Array:
        """The whole matrix; for few rows only."""


class Certifier:
    """Certifies solutions of one dual problem; for many problems at once the core does it (core/smo/certify.hpp)."""

    def __init__(self, objective: DualObjective, rows: KernelRows, tol: float):
        self.objective, self.rows, self.tol = objective, rows, tol
        self.sizes = np.sqrt(np.maximum(rows.diagonal(), 0.0))
        self.largest = float(self.sizes.max())

    def __call__(self, duals: Array, f: Array) -> Certificate:
        """Certify duals with f as computed; rounding errors are added only if the gap is at most ``tol``."""
        certificate = self.objective.certify(duals, f, self.largest)
        return certificate if certificate.gap > self.tol else self.charged(certificate, duals, f)

    def charged(self, certificate: Certificate, duals: Array, f: Array) -> Certificate:
        """Add the rounding error of f; where it matters, f is first recomputed more accurately."""
        degree = self.rows.dot_product_degree
        charged = self.objective.charged(certificate, duals, f, error_of_product(self.sizes, duals, degree))
        if charged.rounding <= 0.01 * self.tol or len(duals) > MAX_FACTORED_ROWS:
            return charged
        f, error = accurate_product(self.rows.matrix(), self.sizes, duals, degree)
        return self.objective.charged(self.objective.certify(duals, f, self.largest), duals, f, error)


# --- coefficients over a basis ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RegularizedBasis:
    """The regulariser's matrix R over the vectors, its whitening T with ``T' R T = I``, and the values k(z, z)."""

    R: Array
    T: Array
    sizes: Array

    @classmethod
    def of(cls, regularizer: Regularizer, gram: Array) -> RegularizedBasis:
        """The basis of vectors with this kernel matrix."""
        return cls(regularizer.matrix(gram), regularizer.whitening(gram), np.abs(gram.diagonal()))

    def weights(self, coef: Array, bias: Array) -> Array:
        """Weights of the whitened features, the bias last, from coefficients (outputs x vectors)."""
        return np.hstack([dot(dot(coef, self.R), self.T), bias[:, None]])

    def norms(self, coef: Array) -> Array:
        """``1/2 beta'R beta`` of each column."""
        return 0.5 * (coef * dot(self.R, coef)).sum(axis=0)

    def rounding_charge(self, coef: Array) -> Array:
        """Estimate the error of `norms` due to rounding of R."""
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
    """Choose, for each output and any loss, the multiple of the duals with the larger dual value; and its conjugate.

    The multiples compared are ``shrink``, which is the best one for a quadratic loss, and 1.
    """
    squares = 0.5 * (v**2).sum(axis=0)

    def conjugate(share: Array) -> Array:
        return rows.total(Conjugate(loss), which, V, known_duals, share * scales[0], share * scales[1])[0]

    whole = np.ones_like(shrink)
    sums = conjugate(shrink)
    if (shrink > 1 - 1e-6).all():  # the dual value is flat near a multiple of 1
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
    """Certify the models with the weights V (outputs x features + 1), in one pass over the rows.

    Features are kernel values of the vectors of ``basis``; without one, the norm of f is that of its weights. Signed
    duals are ``known_duals`` (row numbers and values for each output), and elsewhere those of the loss at the decision
    values. ``rounding``: the gap includes rounding errors.
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
    # Zero is feasible, and so is every multiple up to 1; far from the solution only a small one gives a useful bound.
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
