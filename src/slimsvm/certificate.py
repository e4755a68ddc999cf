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

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .formulation import Array
from .parts.losses import Loss
from .parts.regularizers import Regularizer

TINY = np.finfo(float).tiny
UNITS = 4 * np.finfo(float).eps  # how well a kernel value is known


@dataclass(frozen=True)
class Basis:
    """Vectors as the dual sees them: the regulariser's matrix R, T with ``T' R T = I``, and the values k(z, z)."""

    R: Array
    T: Array
    sizes: Array

    @classmethod
    def of(cls, regularizer: Regularizer, gram: Array) -> Basis:
        """Vectors with this kernel matrix."""
        return cls(regularizer.matrix(gram), regularizer.whitening(gram), np.abs(gram.diagonal()))

    def norms(self, coef: Array) -> Array:
        """``1/2 beta'R beta`` of each column."""
        return 0.5 * (coef * (self.R @ coef)).sum(axis=0)

    def doubt(self, coef: Array) -> Array:
        """How far rounding of R may have moved `norms`."""
        return 0.5 * UNITS * np.abs(self.R.diagonal()) @ coef**2


def balancing(duals: Array) -> tuple[Array, Array]:
    """Factors, at most 1, of the positive and of the negative duals, with which they sum to zero."""
    up, down = np.maximum(duals, 0).sum(axis=0), -np.minimum(duals, 0).sum(axis=0)
    least = np.minimum(up, down)
    return least / np.maximum(up, TINY), least / np.maximum(down, TINY)


def balanced(duals: Array) -> Array:
    """Signed duals (a vector, or a column for each machine) whose heavier side is scaled down: they sum to zero."""
    up, down = balancing(duals)
    return np.where(duals > 0, duals * up, duals * down)


def relative_gap(primal: Any, dual: Any) -> Any:
    """``(primal - dual) / dual``; infinite where the dual proves nothing."""
    positive = np.asarray(dual) > 0
    gap = np.where(positive, np.maximum(primal - dual, 0) / np.where(positive, dual, 1.0), np.inf)
    return gap if gap.ndim else float(gap)


def _best_shrinking(loss: Loss, Y: Array, C: Array, A: Array, squares: Array) -> Array:
    """The factor in (0, 1] of feasible duals that makes ``conjugate(t A) - t^2/2 squares`` largest.

    Zero is feasible, so all between is; far from the solution this is what makes the dual a bound at all. The conjugate
    of a loss that is quadratic, as all of ours are, is known from two of its values.
    """
    whole, half = loss.conjugate(A, Y, C), loss.conjugate(0.5 * A, Y, C)
    slope, bend = 4 * half - whole, 4 * (2 * half - whole) + squares
    return np.where((slope > 0) & (bend > slope), slope / np.where(bend > 0, bend, 1.0), 1.0)


def of_expansion(
    blocks: Iterable[tuple[slice, Array, Array]],
    basis: Basis,
    loss: Loss,
    Y: Array,
    C: Array,
    coef: Array,
    bias: Array,
    duals: Array | None = None,
) -> tuple[Array, Array]:
    """Objective and relative gap of each machine (a column of ``coef``), in one pass over kernel values in float64.

    ``blocks`` are rows with the values k(x, Z) and k(x, x). ``duals`` are signed and within their bounds; None: those
    that a smooth loss has at the model's own decision values.
    """
    smooth: Any = loss
    A = np.empty(Y.shape) if duals is None else duals
    value, bias = np.zeros(Y.shape[1]), np.asarray(bias)
    up, down, spread = np.zeros(coef.shape), np.zeros(coef.shape), np.zeros(Y.shape[1])
    corners = np.zeros(Y.shape[1])
    reach = np.sqrt(basis.sizes @ coef**2)
    for rows, K, sizes in blocks:
        F = K @ coef + bias
        if duals is None:
            A[rows] = smooth.duals(F, Y[rows], C[rows])
        mine = loss.value(F, Y[rows], C[rows])
        value += mine
        # Errors of F cost what the duals say; at the corners of a loss more, and never less.
        error = UNITS * (np.outer(np.sqrt(np.abs(sizes)), reach) + np.abs(bias) + 1)
        worse = loss.value(F - Y[rows] * error, Y[rows], C[rows]) - mine - (Y[rows] * A[rows] * error).sum(axis=0)
        corners += np.maximum(worse, 0)
        up += K.T @ np.maximum(A[rows], 0)
        down += K.T @ np.minimum(A[rows], 0)
        spread += np.abs(sizes) @ A[rows] ** 2 * reach**2 + (A[rows] ** 2).sum(axis=0) * bias**2
    scale_up, scale_down = balancing(A)
    v = basis.T.T @ (scale_up * up + scale_down * down)
    A = np.where(A > 0, A * scale_up, A * scale_down)
    shrink = _best_shrinking(loss, Y, C, A, (v**2).sum(axis=0))
    v, A = v * shrink, A * shrink
    primal = basis.norms(coef) + value
    dual = loss.conjugate(A, Y, C) - 0.5 * (v**2).sum(axis=0)
    doubt = corners + 2 * UNITS * np.sqrt(spread) + basis.doubt(coef) + basis.doubt(basis.T @ v)
    return primal, relative_gap(primal + doubt, dual)
