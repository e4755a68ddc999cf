"""Losses of decision values: their values, conjugates and derivatives for the primal solver.

A loss is convex in the decision values F (rows x outputs). Y holds +-1, or 0 where a row takes no part in an
output; C holds the cost of each row in each output, 0 where it takes no part. Signed duals are A = -dloss/dF.

Losses of `ALL` are for such labels, those of `FOR_TARGETS` for regression: Y then holds the targets, shifted and scaled
to about unit size. `Between` is for distillation: Y then holds intervals of decision values.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from ..linalg.array_api import namespace
from ..linalg.arrays import Array
from .formulation import Part, named

__all__ = [
    "ALL",
    "FOR_TARGETS",
    "Between",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "HuberHinge",
    "LeastSquares",
    "Loss",
    "SmoothLoss",
    "SquaredEpsilonInsensitive",
    "SquaredError",
    "SquaredHinge",
]


class Loss(Protocol):
    """A convex loss; its value is one sum over rows for each output."""

    smooth: ClassVar[bool]

    def value(self, F: Array, Y: Array, C: Array) -> Array:
        """The loss, summed over rows, for each output."""

    def conjugate(self, A: Array, Y: Array, C: Array) -> Array:
        """The loss's term in the dual objective at feasible duals: ``-loss*(-A)``."""

    def dual_box(self, C: Array) -> tuple[Array, Array]:
        """The ridge and the upper bound of the duals ``alpha = y a >= 0``, for the interior-point method."""


class SmoothLoss(Loss, Protocol):
    """A loss with a derivative, as Newton's method needs it."""

    def duals(self, F: Array, Y: Array, C: Array) -> Array:
        """``-dloss/dF`` of each row."""

    def curvature(self, F: Array, Y: Array, C: Array) -> Array:
        """``d2loss/dF2`` of each row (a generalised derivative where it jumps)."""

    @property
    def pieces(self) -> tuple[Any, ...] | None:
        """(width, least, most) of a piecewise quadratic loss with slope ``clip(xi / width, least, most)``, else None.

        Width 0 is the hinge. A regression loss appends epsilon and True: see `RegressionLoss`.
        """


def reads_targets(loss: Any) -> bool:
    """Whether the loss is for regression, where Y holds targets; a user's loss need not declare it."""
    return getattr(loss, "targets", False)


def quadratic_pieces(loss: Any) -> tuple[Any, ...] | None:
    """`SmoothLoss.pieces` of a piecewise quadratic loss; None for other losses, also for users' without `pieces`."""
    return getattr(loss, "pieces", None)


TARGET_BITS = 40  # bits of the mantissa of numbers in units of the targets
LEARNING_BITS = 16  # the same while vectors are learned
NEGLIGIBLE_COST = 1e-9  # relative to the costs of all rows: objectives of targets of unit size below it count as zero


def gap_floor(loss: Any, costs: Any) -> Any:
    """A lower bound of the objective for relative gaps: zero loss is possible in regression, not in classification.

    ``costs`` is the sum of the costs of all rows.
    """
    return NEGLIGIBLE_COST * costs if reads_targets(loss) else 0.0


def _excess(F: Array, Y: Array) -> Array:
    return namespace(F).clip(1 - Y * F, 0, None)


def _summed(values: Array) -> Array:
    """Sum over the rows."""
    return namespace(values).sum(values, axis=0)


def _where(used: Array, C: Array) -> Array:
    """The costs of the rows in the mask, 0 for the others."""
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
        """Duals at their bounds, which are exact for rows off the margin."""
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

    Ends may be infinite: ``[m, inf]`` gives the squared hinge of margin m, ``[y, y]`` the squared error. With a
    ``width`` and a largest slope ``most`` it is ``C d^2 / (2 width)`` up to the slope ``C most``, then linear.
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
        """The signed distance from f to the nearest point of the interval."""
        return np.clip(F, Y[..., 0], Y[..., 1]) - F


ALL: tuple[type, ...] = (Hinge, SquaredHinge, HuberHinge, LeastSquares)


# --- targets ---------------------------------------------------------------------------------------------------


def round_mantissa(number: float, digits: int = TARGET_BITS) -> float:
    """The number with its mantissa rounded to so many bits: a change of units alone changes the last ones."""
    part, power = np.frexp(number)
    return float(np.ldexp(np.rint(np.ldexp(part, digits)), power - digits))


class RegressionLoss(Part):
    """A loss of the residual ``r = y - f`` with slope ``clip(d / width, -most, most)``, where d is the part of r
    outside the tube, ``d = r - clip(r, -epsilon, epsilon)``.

    It is the sum of two one-sided losses, of ``(y - epsilon) - f`` and of ``f - (y + epsilon)``.
    """

    targets: ClassVar[bool] = True
    smooth: ClassVar[bool] = True
    most: ClassVar[float] = np.inf
    scale_invariant: ClassVar[bool] = False  # whether a change of units only multiplies the loss
    width: Any = 1.0
    epsilon: Any = 0.0

    @property
    def pieces(self) -> tuple[Any, ...]:
        return self.width, -self.most, self.most, self.epsilon, True

    def in_units(self, size: float) -> tuple[Any, float]:
        """The loss and the factor such that this loss at ``size * r`` is the factor times that loss at r."""
        raise NotImplementedError

    def smooth_surrogate(self) -> SquaredEpsilonInsensitive:
        """A similar loss without corners and bounds on the duals."""
        return SquaredEpsilonInsensitive(self.epsilon)

    def value(self, F: Array, Y: Array, C: Array) -> Array:
        d, slope = self._slope(F, Y)
        return _summed(C * slope * (d - 0.5 * self.width * slope))

    def conjugate(self, A: Array, Y: Array, C: Array) -> Array:
        linear = _summed(Y * A) - self.epsilon * _summed(namespace(A).abs(A))
        return linear - 0.5 * self.width * _ridge(A, C) if self.width else linear

    def dual_box(self, C: Array) -> tuple[Array, Array]:
        """The ridge and the upper bound of the duals, for each of the two one-sided losses."""
        return self.width / C, self.most * C

    def duals(self, F: Array, Y: Array, C: Array) -> Array:
        return C * self._slope(F, Y)[1]

    def curvature(self, F: Array, Y: Array, C: Array) -> Array:
        d, _ = self._slope(F, Y)
        size = namespace(d).abs(d)
        return _where(((size > 0) | (self.epsilon == 0)) & (size < self.width * self.most), C / self.width)

    def _slope(self, F: Array, Y: Array) -> tuple[Array, Array]:
        """The part of the residuals outside the tube, and the slope there per unit of cost."""
        xp, r = namespace(F), Y - F
        d = r - xp.clip(r, -self.epsilon, self.epsilon)
        if not self.width:
            return d, self.most * xp.sign(d)
        d = d / self.width if self.width != 1 else d
        slope = d if np.isinf(self.most) else xp.clip(d, -self.most, self.most)
        return self.width * d if self.width != 1 else d, slope


@dataclass(frozen=True)
class SquaredError(RegressionLoss):
    """``C/2 r^2``."""

    scale_invariant: ClassVar[bool] = True
    width: ClassVar[float] = 1.0  # type: ignore[misc]
    epsilon: ClassVar[float] = 0.0  # type: ignore[misc]

    def in_units(self, size: float) -> tuple[SquaredError, float]:
        return self, size**2


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(RegressionLoss):
    """``C/2 d^2``: residuals of at most ``epsilon`` cost nothing."""

    epsilon: float = 0.1
    width: ClassVar[float] = 1.0  # type: ignore[misc]

    def in_units(self, size: float) -> tuple[SquaredEpsilonInsensitive, float]:
        return SquaredEpsilonInsensitive(round_mantissa(self.epsilon / size)), size**2


@dataclass(frozen=True)
class Huber(RegressionLoss):
    """``C d^2 / (2 width)`` up to ``|d| = width``, then ``C (|d| - width/2)``: large residuals cost linearly."""

    width: float = 1.0
    epsilon: float = 0.0
    most: ClassVar[float] = 1.0

    def in_units(self, size: float) -> tuple[Huber, float]:
        return Huber(round_mantissa(self.width / size), round_mantissa(self.epsilon / size)), size


@dataclass(frozen=True)
class EpsilonInsensitive(RegressionLoss):
    """``C |d|``, the loss of scikit-learn's SVR: residuals of at most ``epsilon`` cost nothing."""

    epsilon: float = 0.1
    smooth: ClassVar[bool] = False
    width: ClassVar[float] = 0.0  # type: ignore[misc]
    most: ClassVar[float] = 1.0

    def in_units(self, size: float) -> tuple[EpsilonInsensitive, float]:
        return EpsilonInsensitive(round_mantissa(self.epsilon / size)), size

    def with_rounded_corners(self, width: float) -> Huber:
        """The loss with its corners rounded."""
        return Huber(width, self.epsilon)


def resolve(loss: Any, epsilon: float) -> Any:
    """The loss object for a name (with this epsilon), or the object itself."""
    make = named(loss, _BY_NAME)
    if make is not None:
        return make(epsilon)
    if reads_targets(loss) and not isinstance(loss, type):
        return loss
    raise ValueError(
        f"loss={loss!r} is not known; use one of {list(_BY_NAME)}, or an object of slimsvm.losses: "
        f"{', '.join(kind.__name__ for kind in FOR_TARGETS)}"
    )


_BY_NAME: dict[str, Any] = {
    "squared_error": lambda _: SquaredError(),
    "epsilon_insensitive": lambda epsilon: EpsilonInsensitive(epsilon),
    "squared_epsilon_insensitive": lambda epsilon: SquaredEpsilonInsensitive(epsilon),
    "huber": lambda epsilon: Huber(epsilon),
}

FOR_TARGETS: tuple[type, ...] = (SquaredError, SquaredEpsilonInsensitive, Huber, EpsilonInsensitive)


# --- any loss -------------------------------------------------------------------------------------------------


def with_rounded_corners(loss: Any, width: float) -> Any:
    """A loss with its corners rounded."""
    return loss.with_rounded_corners(width) if reads_targets(loss) else HuberHinge(width)


def with_rounded_parameters(loss: Any) -> Any:
    """A regression loss with parameters rounded to few digits, as `data.targets.rounded_targets` rounds targets."""
    if not reads_targets(loss) or not is_dataclass(loss) or isinstance(loss, type):
        return loss
    numbers = {one.name: getattr(loss, one.name) for one in fields(loss)}
    few = {name: round_mantissa(v, LEARNING_BITS) for name, v in numbers.items() if isinstance(v, float)}
    return replace(loss, **few)


def smooth_surrogate(loss: Any) -> Any:
    """A similar loss without corners."""
    return loss.smooth_surrogate() if reads_targets(loss) else SquaredHinge()
