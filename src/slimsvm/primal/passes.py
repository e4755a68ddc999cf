"""Passes of the solvers for machines over features: what they ask of rows, a block at a time.

Weights V are those of the outputs ``which``, one row for each, the bias last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from ..formulation import Array
from ..rows.seam import Block, Pass, decision

# Of `Evidence`, in this order, from SUMS on those of a+ p and a- p. Duals times t give the dual t gain - t^2/2 ridge.
VALUE, DOUBT, UP, DOWN, UP_GAIN, DOWN_GAIN, UP_RIDGE, DOWN_RIDGE, SQUARES, SPREAD, SUMS = range(11)

Known = Sequence[tuple[Array, Array]]  # for each output: ascending row numbers, and signed duals


@dataclass(frozen=True)
class OfLoss(Pass):
    """A pass that depends on a loss; in the core if that is piecewise quadratic."""

    loss: Any

    @property
    def pieces(self) -> Any:  # type: ignore[override]
        return getattr(self.loss, "pieces", None)  # a loss of the user's need not have any


class Equations(OfLoss):
    """Losses, moments ``[P 1]'A`` and matrices ``[P 1]' diag(h) [P 1]`` of Newton's equations, an output each."""

    def __call__(self, block: Block, which: Array, V: Array) -> tuple[Array, ...]:
        P, (Y, C) = block.features(), block.labels(which)
        F = block.values(which, V)
        A, H = self.loss.duals(F, Y, C), self.loss.curvature(F, Y, C)
        moments = np.hstack([(P.T @ A.astype(P.dtype, copy=False)).T, A.sum(axis=0)[:, None]]).astype(np.float64)
        return self.loss.value(F, Y, C), moments, np.stack([weighted_gram(P, h) for h in H.T])

    def in_core(self, passes: _core.Passes, which: Array, V: Array) -> tuple[Array, ...]:
        return passes.equations(which.tolist(), V, *self.pieces)


class Line(OfLoss):
    """First and second derivatives of the losses at ``V + t D``, for several t (outputs x tries)."""

    def __call__(self, block: Block, which: Array, V: Array, D: Array, t: Array) -> tuple[Array, ...]:
        Y, C = block.labels(which)
        F = block.values(which, V)
        Q = block.values(which, D)
        first, second = np.empty(t.shape), np.empty(t.shape)
        for k in range(t.shape[1]):
            at = F + t[:, k] * Q
            first[:, k] = -(self.loss.duals(at, Y, C) * Q).sum(axis=0)
            second[:, k] = (self.loss.curvature(at, Y, C) * Q**2).sum(axis=0)
        return first, second

    def in_core(self, passes: _core.Passes, which: Array, V: Array, D: Array, t: Array) -> tuple[Array, ...]:
        return passes.line(which.tolist(), V, D, np.ascontiguousarray(t), *self.pieces)


class Pull(OfLoss):
    """Losses at V, and sums of ``M_ij = -sum_o a_io beta_jo k'(x_i, z_j)``: `pulled` makes a gradient of them.

    For the core's kernels only; others have a `pullback`. Sums that only scales of the inputs need are left out (zero)
    unless these are learned.
    """

    def in_core(self, passes: _core.Passes, V: Array, beta: Array, scales: bool) -> tuple[Array, ...]:
        width, least, most = self.pieces
        return passes.pull(list(range(len(V))), V, beta, width, least, most, scales)


def _known_within(known: Known, first: int, last: int) -> Known:
    """What is known of rows in a range, which begin at 0 there."""
    places = [slice(*np.searchsorted(rows, (first, last))) for rows, _ in known]
    return [(rows[at] - first, duals[at]) for at, (rows, duals) in zip(places, known, strict=True)]


class Evidence(OfLoss):
    """What a certificate is made of: losses, duals of either sign, and their sums of features.

    Duals are those of a smooth loss at the decision values, or at the bounds of the hinge; ``known`` ones go before.
    With ``units`` and ``reach`` decision values are known to ``units (k(x, x)^1/2 reach + |b| + 1)``.
    """

    def __call__(
        self, block: Block, which: Array, V: Array, known: Known, reach: Array, units: float
    ) -> tuple[Array, ...]:
        P, (Y, C) = block.features().astype(np.float64, copy=False), block.labels(which)
        F = decision(P, V)  # in float64 whatever the features are: what is left of a gap may be less than float32 tells
        A = duals_at(self.loss, block, F, which, known)
        up, down = np.maximum(A, 0), np.minimum(A, 0)
        sizes, bias = np.abs(block.sizes()), np.abs(V[:, -1])
        value = self.loss.value(F, Y, C)
        found = np.empty((len(which), SUMS))
        found[:, VALUE], found[:, DOUBT] = value, 0.0
        if units:  # Errors of F cost what the duals say; at the corners of a loss more, and never less.
            error = units * (np.outer(np.sqrt(sizes), reach) + bias + 1)
            worse = self.loss.value(F - Y * error, Y, C) - value - (Y * A * error).sum(axis=0)
            found[:, DOUBT] = np.maximum(worse, 0)
        found[:, UP], found[:, DOWN] = up.sum(axis=0), -down.sum(axis=0)
        # The conjugate of a quadratic loss is known from two of its values.
        for part, gain, ridge in ((up, UP_GAIN, UP_RIDGE), (down, DOWN_GAIN, DOWN_RIDGE)):
            whole, half = self.loss.conjugate(part, Y, C), self.loss.conjugate(0.5 * part, Y, C)
            found[:, gain], found[:, ridge] = 4 * half - whole, 8 * half - 4 * whole
        found[:, SQUARES], found[:, SPREAD] = (A**2).sum(axis=0), sizes @ A**2
        return (np.hstack([found, (P.T @ up).T, (P.T @ down).T]),)

    def in_core(
        self, passes: _core.Passes, which: Array, V: Array, known: Known, reach: Array, units: float
    ) -> tuple[Array, ...]:
        listed = [
            (np.ascontiguousarray(r, dtype=np.int64), np.ascontiguousarray(a, dtype=np.float64)) for r, a in known
        ]
        width, least, most = self.pieces
        return (passes.evidence(which.tolist(), V, width, least, most, listed, reach, units),)

    def within(self, first: int, last: int, which: Array, V: Array, known: Known, *rest: Any) -> tuple[Any, ...]:
        return which, V, _known_within(known, first, last), *rest


class Conjugate(OfLoss):
    """The dual's share of duals scaled by two factors, of those above zero and of those below: for any loss."""

    pieces = None

    def within(self, first: int, last: int, which: Array, V: Array, known: Known, *rest: Any) -> tuple[Any, ...]:
        return which, V, _known_within(known, first, last), *rest

    def __call__(self, block: Block, which: Array, V: Array, known: Known, up: Array, down: Array) -> tuple[Array, ...]:
        F = decision(block.features().astype(np.float64, copy=False), V)
        A = duals_at(self.loss, block, F, which, known)
        return (self.loss.conjugate(np.where(A > 0, up * A, down * A), *block.labels(which)),)


def duals_at(loss: Any, block: Block, F: Array, which: Array, known: Known) -> Array:
    """Signed duals of a block's rows: those of the loss at the decision values, but for those that are known."""
    Y, C = block.labels(which)
    A = loss.duals(F, Y, C) if hasattr(loss, "duals") else np.zeros_like(F)
    for o, (rows, duals) in enumerate(known):
        mine = slice(*np.searchsorted(rows, (block.first, block.first + len(F))))
        A[rows[mine] - block.first, o] = duals[mine]
    return A


def weighted_gram(P: Array, h: Array) -> Array:
    """``[P 1]' diag(h) [P 1]``."""
    used = np.flatnonzero(h)
    if len(used) < 0.9 * len(h):
        P, h = P[used], h[used]
    m = P.shape[1]
    gram = np.empty((m + 1, m + 1))
    if len(h) and h.min() == h.max():
        gram[:m, :m] = h[0] * (P.T @ P)
    else:
        scaled = P * np.sqrt(h).astype(P.dtype, copy=False)[:, None]
        gram[:m, :m] = scaled.T @ scaled
    gram[m, :m] = gram[:m, m] = h.astype(P.dtype, copy=False) @ P
    gram[m, m] = h.sum()
    return gram
