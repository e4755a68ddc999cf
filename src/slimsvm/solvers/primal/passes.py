"""Passes over blocks of rows that compute the sums which solvers of linear models need.

They use the array namespace of a block, whose arrays may be on a device.

Weights V are those of the outputs ``which``, one row for each, the bias last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _core
from ...data.targets import TARGET_ROUNDING
from ...linalg.array_api import asarray_like, cast, namespace, widest_float
from ...linalg.arrays import Array
from ...linalg.matrix import dot
from ...problem.losses import quadratic_pieces, reads_targets
from ...rows.protocol import Block, Pass, decision

# Columns of `CertificateSums`, in this order; from SUMS on, the sums of a+ p and of a- p. Duals times t add
# t gain - t^2/2 ridge to the dual value.
VALUE, CORNER_CHARGE, UP, DOWN, UP_GAIN, DOWN_GAIN, UP_RIDGE, DOWN_RIDGE, SQUARES, WEIGHTED_SQUARES, SUMS = range(11)

KnownDuals = Sequence[tuple[Array, Array]]  # for each output: ascending row numbers, and signed duals


@dataclass(frozen=True)
class OfLoss(Pass):
    """A pass that depends on a loss; it runs in the core if the loss is piecewise quadratic."""

    loss: Any

    @property
    def pieces(self) -> Any:  # type: ignore[override]
        return quadratic_pieces(self.loss)

    @property
    def in_numbers(self) -> _core.QuadraticLoss:
        """The loss as an object of the core."""
        return _core.QuadraticLoss(*self.pieces)


class Equations(OfLoss):
    """Losses, moments ``[P 1]'A`` and matrices ``[P 1]' diag(h) [P 1]`` of Newton's equations, for each output."""

    def __call__(self, block: Block, which: Array, V: Array) -> tuple[Array, ...]:
        P, (Y, C) = block.features(), block.labels(which)
        F = block.values(which, V)
        xp = namespace(P)
        A, H = self.loss.duals(F, Y, C), self.loss.curvature(F, Y, C)
        sums = cast(dot(P.T, cast(A, P.dtype)), widest_float(P)).T
        moments = xp.concat([sums, xp.sum(A, axis=0)[:, None]], axis=1)
        return self.loss.value(F, Y, C), moments, xp.stack([weighted_gram(P, H[:, o]) for o in range(H.shape[1])])

    def in_core(self, passes: _core.Passes, which: Array, V: Array) -> tuple[Array, ...]:
        return passes.equations(which.tolist(), V, self.in_numbers)


class Line(OfLoss):
    """First and second derivatives of the losses at ``V + t D``, for several t (outputs x tries)."""

    def __call__(self, block: Block, which: Array, V: Array, D: Array, t: Array) -> tuple[Array, ...]:
        Y, C = block.labels(which)
        xp, o, first, second = namespace(V), V.shape[0], [], []
        both = block.values(np.concatenate([which, which]), xp.concat([V, D], axis=0))
        F, Q = both[:, :o], both[:, o:]
        for k in range(t.shape[1]):
            at = F + t[:, k] * Q
            first.append(-xp.sum(self.loss.duals(at, Y, C) * Q, axis=0))
            second.append(xp.sum(self.loss.curvature(at, Y, C) * Q**2, axis=0))
        return xp.stack(first, axis=1), xp.stack(second, axis=1)

    def in_core(self, passes: _core.Passes, which: Array, V: Array, D: Array, t: Array) -> tuple[Array, ...]:
        return passes.line(which.tolist(), V, D, np.ascontiguousarray(t), self.in_numbers)


class Pull(OfLoss):
    """Losses at V, and sums of ``M_ij = -sum_o a_io beta_jo k'(x_i, z_j)``: `gradients` makes a gradient of them.

    For the core's kernels only; others have a `pullback`. ``scales``: also compute the sums that only gradients of
    input scales need; without it they are zero.
    """

    def __call__(self, block: Any, V: Array, beta: Array, scales: bool) -> tuple[Array, ...]:
        which = np.arange(V.shape[0])
        F, (Y, C) = block.values(which, V), block.labels(which)
        X, slopes = block.slopes()
        xp = namespace(X)
        A, B, rows = cast(self.loss.duals(F, Y, C), X.dtype), cast(-beta, X.dtype), xp.concat([X, _one(X)], axis=1)
        # For few outputs, multiplying by beta last takes fewer passes over arrays of the size of the kernel matrix.
        few = A.shape[1] * rows.shape[1] <= slopes.shape[1]
        if few:
            products = sum(B[:, o][:, None] * dot(slopes.T, A[:, o][:, None] * rows) for o in range(A.shape[1]))
            pulls = xp.sum(A * dot(slopes, B), axis=1) if scales else None
        else:
            M = dot(A, B.T) * slopes
            products = dot(M.T, rows)
            pulls = xp.sum(M, axis=1) if scales else None
        squares = xp.zeros_like(X[0, :]) if pulls is None else xp.sum(pulls[:, None] * X**2, axis=0)
        return self.loss.value(F, Y, C), cast(products, widest_float(X)), cast(squares, widest_float(X))

    def in_core(self, passes: _core.Passes, V: Array, beta: Array, scales: bool) -> tuple[Array, ...]:
        return passes.pullback(list(range(len(V))), V, beta, self.in_numbers, scales)


def _known_within(known_duals: KnownDuals, first: int, last: int) -> KnownDuals:
    """Known duals of the rows from ``first`` to ``last``, numbered from 0."""
    places = [slice(*np.searchsorted(rows, (first, last))) for rows, _ in known_duals]
    return [(rows[at] - first, duals[at]) for at, (rows, duals) in zip(places, known_duals, strict=True)]


def _one(X: Array) -> Array:
    return namespace(X).ones_like(X[:, :1])


class CertificateSums(OfLoss):
    """Sums over rows for a certificate: losses, positive and negative duals, and features times these duals.

    Duals are the known ones, and elsewhere those of the loss at the decision values (for the hinge, at its bounds).
    With ``units`` decision values have the error ``units (k(x, x)^1/2 coef_norms + |b|)``, labels ``units`` and
    targets ``TARGET_ROUNDING``.
    """

    def __call__(
        self, block: Block, which: Array, V: Array, known_duals: KnownDuals, coef_norms: Array, units: float
    ) -> tuple[Array, ...]:
        P, (Y, C) = block.features(), block.labels(which)
        P = cast(P, widest_float(P))  # whatever the dtype of the features: gaps may be below the resolution of float32
        xp, F = namespace(P), decision(P, V)
        A = duals_at(self.loss, block, F, which, known_duals)
        up, down = xp.clip(A, 0, None), xp.clip(A, None, 0)
        sizes, bias = xp.abs(block.sizes()), xp.abs(V[:, -1])
        value = self.loss.value(F, Y, C)
        columns = {VALUE: value, CORNER_CHARGE: xp.zeros_like(value)}
        if units:  # Errors of F cost their product with the duals; at the corners of a loss more, never less.
            targets = reads_targets(self.loss)
            error = units * (xp.sqrt(sizes)[:, None] * coef_norms + bias) + (TARGET_ROUNDING if targets else units)
            error = error * (xp.sign(Y - F) if targets else Y)
            worse = self.loss.value(F - error, Y, C) - value - xp.sum(A * error, axis=0)
            columns[CORNER_CHARGE] = xp.clip(worse, 0, None)
        columns |= {UP: xp.sum(up, axis=0), DOWN: -xp.sum(down, axis=0)}
        # Two values determine the conjugate of a quadratic loss.
        for part, gain, ridge in ((up, UP_GAIN, UP_RIDGE), (down, DOWN_GAIN, DOWN_RIDGE)):
            whole, half = self.loss.conjugate(part, Y, C), self.loss.conjugate(0.5 * part, Y, C)
            columns |= {gain: 4 * half - whole, ridge: 8 * half - 4 * whole}
        columns |= {SQUARES: xp.sum(A**2, axis=0), WEIGHTED_SQUARES: dot(sizes, A**2)}
        columns = xp.stack([columns[k] for k in range(SUMS)], axis=1)
        return (xp.concat([columns, dot(P.T, up).T, dot(P.T, down).T], axis=1),)

    def in_core(
        self, passes: _core.Passes, which: Array, V: Array, known_duals: KnownDuals, coef_norms: Array, units: float
    ) -> tuple[Array, ...]:
        listed = [
            (np.ascontiguousarray(r, dtype=np.int64), np.ascontiguousarray(a, dtype=np.float64)) for r, a in known_duals
        ]
        return (passes.certificate(which.tolist(), V, self.in_numbers, listed, coef_norms, units),)

    def within(
        self, first: int, last: int, which: Array, V: Array, known_duals: KnownDuals, *rest: Any
    ) -> tuple[Any, ...]:
        return which, V, _known_within(known_duals, first, last), *rest


class Conjugate(OfLoss):
    """The conjugate of any loss at duals whose positive and negative ones are scaled by a factor each."""

    pieces = None

    def within(
        self, first: int, last: int, which: Array, V: Array, known_duals: KnownDuals, *rest: Any
    ) -> tuple[Any, ...]:
        return which, V, _known_within(known_duals, first, last), *rest

    def __call__(
        self, block: Block, which: Array, V: Array, known_duals: KnownDuals, up: Array, down: Array
    ) -> tuple[Array, ...]:
        P = block.features()
        F = decision(cast(P, widest_float(P)), V)
        A = duals_at(self.loss, block, F, which, known_duals)
        return (self.loss.conjugate(namespace(A).where(A > 0, up * A, down * A), *block.labels(which)),)


def duals_at(loss: Any, block: Block, F: Array, which: Array, known_duals: KnownDuals) -> Array:
    """Signed duals of a block's rows: the known ones, and elsewhere those of the loss at the decision values F."""
    Y, C = block.labels(which)
    A = loss.duals(F, Y, C) if hasattr(loss, "duals") else namespace(F).zeros_like(F)
    if not len(known_duals):
        return A
    # Entries on a device cannot be set one by one: the known duals are sent as one array, NaN where unknown.
    given = A if isinstance(A, np.ndarray) else np.full(tuple(A.shape), np.nan)
    for o, (rows, duals) in enumerate(known_duals):
        mine = slice(*np.searchsorted(rows, (block.first, block.first + F.shape[0])))
        given[rows[mine] - block.first, o] = duals[mine]
    if given is A:
        return A
    xp, sent = namespace(A), asarray_like(A, given, A.dtype)
    return xp.where(xp.isnan(sent), A, sent)


def weighted_gram(P: Array, h: Array) -> Array:
    """``[P 1]' diag(h) [P 1]``."""
    xp = namespace(P)
    (used,) = xp.nonzero(h)
    if used.shape[0] < 0.9 * h.shape[0]:
        P, h = xp.take(P, used, axis=0), xp.take(h, used, axis=0)
    if h.shape[0] and xp.min(h) == xp.max(h):
        gram = cast(h[0], P.dtype) * dot(P.T, P)
    else:
        scaled = P * cast(xp.sqrt(h), P.dtype)[:, None]
        gram = dot(scaled.T, scaled)
    moments = cast(dot(cast(h, P.dtype), P), widest_float(P))[:, None]
    corner = xp.reshape(xp.sum(h), (1, 1))
    upper = xp.concat([cast(gram, widest_float(P)), moments], axis=1)
    return xp.concat([upper, xp.concat([moments.T, corner], axis=1)], axis=0)
