"""Losses of decision values, as the feature-space solver sees them.

A loss is convex in the decision values F (rows x outputs). Y holds +-1, or 0 where a row takes no part in an
output; C holds the cost of each row in each output, 0 where it takes no part. Signed duals are A = -dloss/dF.

`Between` is for machines that are taught by another one: Y then holds what that one allows. It is not in `ALL`, whose
losses are for labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from ..formulation import Array, Part
from ..namespaces import namespace

__all__ = [
    "ALL",
    "Between",
    "Hinge",
    "HuberHinge",
    "LeastSquares",
    "Loss",
    "SmoothLoss",
    "SquaredHinge",
]


class Loss(Protocol):
    """A convex loss; values are summed over rows, one number for each output."""

    smooth: ClassVar[bool]

    def value(self, F: Array, Y: Array, C: Array) -> Array:
        """The loss."""

    def conjugate(self, A: Array, Y: Array, C: Array) -> Array:
        """The dual objective's share of feasible duals: ``-loss*(-A)``."""

    def dual_box(self, C: Array) -> tuple[Array, Array]:
        """Ridge and upper bound of the duals ``alpha = y a >= 0``, as the interior point needs them."""


class SmoothLoss(Loss, Protocol):
    """A loss with a derivative, as Newton's method needs it."""

    def duals(self, F: Array, Y: Array, C: Array) -> Array:
        """``-dloss/dF`` of each row."""

    def curvature(self, F: Array, Y: Array, C: Array) -> Array:
        """``d2loss/dF2`` of each row (a generalised one where the second derivative jumps)."""

    @property
    def pieces(self) -> tuple[float, float, float] | None:
        """Width, least and most, if the loss is piecewise quadratic: its slope is ``clip(xi / width, least, most)``.

        Width 0 is the hinge.
        """


def _excess(F: Array, Y: Array) -> Array:
    return namespace(F).clip(1 - Y * F, 0, None)


def _summed(values: Array) -> Array:
    """Over the rows."""
    return namespace(values).sum(values, axis=0)


def _where(used: Array, C: Array) -> Array:
    """Costs of some of the rows, 0 for the others."""
    return namespace(C).where(used, C, 0.0)


def _ridge(A: Array, C: Array) -> Array:
    """``sum(A**2 / C)`` over the rows that take part."""
    xp, used = namespace(A), C > 0
    return _summed(xp.where(used, A * A / xp.where(used, C, 1.0), 0.0))


@dataclass(frozen=True)
class Hinge(Part):
    """``C xi`` with ``xi = (1 - y f)_+``."""

    smooth: ClassVar[bool] = False
    pieces: ClassVar[tuple[float, float, float]] = (0.0, 0.0, 1.0)

    def value(self, F: Array, Y: Array, C: Array) -> Array:
        return _summed(C * _excess(F, Y))

    def duals(self, F: Array, Y: Array, C: Array) -> Array:
        """At their bounds: right for rows that are not on the margin."""
        return _where(Y * F < 1, C * Y)

    def conjugate(self, A: Array, Y: Array, C: Array) -> Array:
        return _summed(Y * A)

    def dual_box(self, C: Array) -> tuple[Array, Array]:
        return np.zeros_like(C), C


@dataclass(frozen=True)
class SquaredHinge(Part):
    """``C/2 xi^2``."""

    smooth: ClassVar[bool] = True
    pieces: ClassVar[tuple[float, float, float]] = (1.0, 0.0, np.inf)

    def value(self, F: Array, Y: Array, C: Array) -> Array:
        return 0.5 * _summed(C * _excess(F, Y) ** 2)

    def conjugate(self, A: Array, Y: Array, C: Array) -> Array:
        return _summed(Y * A) - 0.5 * _ridge(A, C)

    def dual_box(self, C: Array) -> tuple[Array, Array]:
        return 1 / C, np.full_like(C, np.inf)

    def duals(self, F: Array, Y: Array, C: Array) -> Array:
        return C * Y * _excess(F, Y)

    def curvature(self, F: Array, Y: Array, C: Array) -> Array:
        return _where(Y * F < 1, C)


@dataclass(frozen=True)
class HuberHinge(Part):
    """The hinge with its corner rounded: ``C xi^2 / (2 width)`` up to ``xi = width``, then ``C (xi - width/2)``."""

    width: float = 0.5
    smooth: ClassVar[bool] = True

    @property
    def pieces(self) -> tuple[float, float, float]:
        return self.width, 0.0, 1.0

    def value(self, F: Array, Y: Array, C: Array) -> Array:
        xi = _excess(F, Y)
        inner = namespace(xi).clip(xi, None, self.width)
        return _summed(C * (inner**2 / (2 * self.width) + (xi - inner)))

    def conjugate(self, A: Array, Y: Array, C: Array) -> Array:
        return _summed(Y * A) - 0.5 * self.width * _ridge(A, C)

    def dual_box(self, C: Array) -> tuple[Array, Array]:
        return self.width / C, C

    def duals(self, F: Array, Y: Array, C: Array) -> Array:
        return C * Y * namespace(F).clip((1 - Y * F) / self.width, 0, 1)

    def curvature(self, F: Array, Y: Array, C: Array) -> Array:
        xi = 1 - Y * F
        return _where((xi > 0) & (xi < self.width), C / self.width)


@dataclass(frozen=True)
class LeastSquares(Part):
    """``C/2 (1 - y f)^2``: rows beyond the margin cost as much as rows short of it."""

    smooth: ClassVar[bool] = True
    pieces: ClassVar[tuple[float, float, float]] = (1.0, -np.inf, np.inf)

    def value(self, F: Array, Y: Array, C: Array) -> Array:
        return 0.5 * _summed(C * (1 - Y * F) ** 2)

    def conjugate(self, A: Array, Y: Array, C: Array) -> Array:
        return _summed(Y * A) - 0.5 * _ridge(A, C)

    def duals(self, F: Array, Y: Array, C: Array) -> Array:
        return C * (Y - F)

    def curvature(self, F: Array, Y: Array, C: Array) -> Array:
        return C * namespace(F).ones_like(F)


@dataclass(frozen=True)
class Between(Part):
    """``C/2 d^2``, where d is the distance of f to an interval: Y holds both its ends, rows x outputs x 2.

    Ends may be infinite: ``[m, inf]`` is a squared hinge of margin m, ``[y, y]`` the squared error. With a width and a
    largest slope it is ``C d^2 / (2 width)`` up to that slope, ``C most``, and goes on straight from there.
    """

    width: float = 1.0
    most: float = np.inf
    smooth: ClassVar[bool] = True
    pieces: ClassVar[None] = None

    def value(self, F: Array, Y: Array, C: Array) -> Array:
        d = np.abs(self._missed(F, Y))
        inner = np.minimum(d, self.width * self.most)
        outer = (d - inner) * self.most if self.most < np.inf else 0.0
        return (C * (inner**2 / (2 * self.width) + outer)).sum(axis=0)

    def conjugate(self, A: Array, Y: Array, C: Array) -> Array:
        end = np.where(A > 0, Y[..., 0], Y[..., 1])
        return (np.where(A == 0, 0.0, end) * A).sum(axis=0) - 0.5 * self.width * _ridge(A, C)

    def duals(self, F: Array, Y: Array, C: Array) -> Array:
        return C * np.clip(self._missed(F, Y) / self.width, -self.most, self.most)

    def curvature(self, F: Array, Y: Array, C: Array) -> Array:
        lower, upper = Y[..., 0], Y[..., 1]
        curved = np.abs(self._missed(F, Y)) < self.width * self.most
        return (C / self.width) * (((lower >= F) | (upper <= F)) & curved)

    def _missed(self, F: Array, Y: Array) -> Array:
        """From f to the nearest point of the interval."""
        return np.clip(F, Y[..., 0], Y[..., 1]) - F


ALL: tuple[type, ...] = (Hinge, SquaredHinge, HuberHinge, LeastSquares)
