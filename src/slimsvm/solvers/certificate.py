"""Values of primal and dual, and the gap between them: every `objective_` and `duality_gap_` comes from here.

For machines over vectors Z the model that is returned, f = k(., Z) beta + b, is looked at once more in float64:

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
from typing import Any

import numpy as np

from ..linalg.arrays import Array
from ..linalg.matrix import dot
from ..problem.losses import gap_floor
from ..problem.regularizers import Regularizer
from ..rows.protocol import FeatureSource
from .primal.passes import (
    DOUBT,
    DOWN,
    DOWN_GAIN,
    DOWN_RIDGE,
    SPREAD,
    SQUARES,
    SUMS,
    UP,
    UP_GAIN,
    UP_RIDGE,
    VALUE,
    CertificateSums,
    Conjugate,
    Known,
)

TINY = np.finfo(float).tiny
UNITS = 4 * np.finfo(float).eps  # how well a kernel value is known


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

    def doubt(self, coef: Array) -> Array:
        """How far rounding of R may have moved `norms`."""
        return dot(0.5 * UNITS * np.abs(self.R.diagonal()), coef**2)


def balancing(duals: Array) -> tuple[Array, Array]:
    """Factors, at most 1, of the positive and of the negative duals, with which they sum to zero."""
    up, down = np.maximum(duals, 0).sum(axis=0), -np.minimum(duals, 0).sum(axis=0)
    least = np.minimum(up, down)
    return least / np.maximum(up, TINY), least / np.maximum(down, TINY)


def balanced(duals: Array) -> Array:
    """Signed duals (a vector, or a column for each machine) whose heavier side is scaled down: they sum to zero."""
    up, down = balancing(duals)
    return np.where(duals > 0, duals * up, duals * down)


def relative_gap(primal: Any, dual: Any, least: Any = 0.0) -> Any:
    """``(primal - dual) / dual``, or relative to ``least`` where that is more; infinite if the larger of the two
    is not positive or the primal is NaN."""
    unit = np.maximum(dual, least)
    proved = (unit > 0) & ~np.isnan(primal)
    gap = np.where(proved, np.maximum(primal - dual, 0) / np.where(proved, unit, 1.0), np.inf)
    return gap if gap.ndim else float(gap)


def _shares(
    rows: FeatureSource,
    loss: Any,
    which: Array,
    V: Array,
    known: Known,
    scales: tuple[Array, Array],
    shrink: Array,
    v: Array,
) -> tuple[Array, Array]:
    """How much of the duals is taken for each machine, and their conjugate, for a loss that need not be quadratic:
    ``shrink`` is what a quadratic one would take, and all of them may prove more."""
    squares = 0.5 * (v**2).sum(axis=0)

    def conjugate(share: Array) -> Array:
        return rows.total(Conjugate(loss), which, V, known, share * scales[0], share * scales[1])[0]

    whole = np.ones_like(shrink)
    found = conjugate(shrink)
    if (shrink > 1 - 1e-6).all():  # the dual is flat there
        return shrink, found
    other = conjugate(whole)
    better = other - squares > found - shrink**2 * squares
    return np.where(better, whole, shrink), np.where(better, other, found)


def of_rows(
    rows: FeatureSource,
    loss: Any,
    which: Array,
    V: Array,
    basis: RegularizedBasis | None = None,
    known: Known = (),
    proof: bool = True,
) -> tuple[Array, Array]:
    """Objective and relative gap of machines with the weights V (outputs x features + 1), in one pass over the rows.

    Features are kernel values of the vectors of a ``basis``, or without one such that the norm of f is that of its
    weights. Signed duals are ``known`` (rows and values for each machine), or those of the loss at the decision values.
    ``proof``: rounding counts as part of the gap.
    """
    V = np.ascontiguousarray(V)
    coef, bias = V[:, :-1].T, V[:, -1]
    m = len(coef)
    reach = np.zeros(len(V)) if basis is None else np.sqrt(dot(basis.sizes, coef**2))
    (found,) = rows.total(CertificateSums(loss), which, V, known, reach, UNITS if proof else 0.0)
    norms = 0.5 * (coef**2).sum(axis=0) if basis is None else basis.norms(coef)
    primal = norms + found[:, VALUE]
    least = np.minimum(found[:, UP], found[:, DOWN])
    scale_up, scale_down = least / np.maximum(found[:, UP], TINY), least / np.maximum(found[:, DOWN], TINY)
    above, below = found[:, SUMS : SUMS + m].T, found[:, SUMS + m :].T
    v = scale_up * above + scale_down * below
    v = v if basis is None else dot(basis.T.T, v)
    gain = scale_up * found[:, UP_GAIN] + scale_down * found[:, DOWN_GAIN]
    ridge = scale_up**2 * found[:, UP_RIDGE] + scale_down**2 * found[:, DOWN_RIDGE]
    bend = ridge + (v**2).sum(axis=0)
    # Zero is feasible, so all between is; far from the solution shrinking is what makes the dual a bound at all.
    shrink = np.where(bend > gain, np.maximum(gain, 0) / np.where(bend > 0, bend, 1.0), 1.0)
    if getattr(loss, "pieces", None) is None:
        shrink, conjugate = _shares(rows, loss, which, V, known, (scale_up, scale_down), shrink, v)
    else:
        conjugate = shrink * gain - 0.5 * shrink**2 * ridge
    v = v * shrink
    dual = conjugate - 0.5 * (v**2).sum(axis=0)
    least = gap_floor(loss, rows.labels.totals[which])
    if not proof or basis is None:
        return primal, relative_gap(primal, dual, least)
    spread = found[:, SPREAD] * reach**2 + found[:, SQUARES] * bias**2
    doubt = found[:, DOUBT] + 2 * UNITS * np.sqrt(spread) + basis.doubt(coef) + basis.doubt(dot(basis.T, v))
    return primal, relative_gap(primal + doubt, dual, least)
