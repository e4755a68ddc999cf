"""Lower bounds for models with a penalty on the coefficients, from kernel values.

    min_{a,b}  1/2 a'R a + sum_i loss(f_i + b, y_i) + penalty(a),      f = K a

For signed duals u that sum to zero and any coefficients c, the minimum is at least

    -sum_i loss*(-u_i) - 1/2 c'R c - penalty*(K'u - R c)

where a star marks the conjugate. At the optimum c = a is best; elsewhere another c may give a better bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...linalg.arrays import Array
from ...linalg.matrix import dot
from ..certificate import SMALLEST_NORMAL

GOLDEN_RATIO = 0.5 * (np.sqrt(5) - 1)


class Penalty(Protocol):
    """A convex, even function of the coefficients."""

    def value(self, a: Array) -> float:
        """The penalty."""

    def conjugate(self, r: Array) -> float:
        """``sup_a r'a - penalty(a)``; may be infinite."""


@dataclass(frozen=True)
class OneNormPenalty:
    """``cost * sum |a_j|``."""

    cost: float

    def value(self, a: Array) -> float:
        return self.cost * float(np.abs(a).sum())

    def conjugate(self, r: Array) -> float:
        return 0.0 if float(np.abs(r).max(initial=0.0)) <= self.cost else np.inf


@dataclass(frozen=True)
class MaxNormPenalty:
    """``cost * max |a_j|``."""

    cost: float

    def value(self, a: Array) -> float:
        return self.cost * float(np.abs(a).max(initial=0.0))

    def conjugate(self, r: Array) -> float:
        return 0.0 if float(np.abs(r).sum()) <= self.cost else np.inf


@dataclass(frozen=True)
class PowerPenalty:
    """``cost / p * sum |a_j|^p`` with p above 1."""

    cost: float
    p: float

    def value(self, a: Array) -> float:
        return self.cost / self.p * float((np.abs(a) ** self.p).sum())

    def conjugate(self, r: Array) -> float:
        q = self.p / (self.p - 1)
        with np.errstate(over="ignore"):
            return self.cost / q * float(((np.abs(r) / self.cost) ** q).sum())


@dataclass(frozen=True)
class TangentPenalty:
    """The quadratic that touches ``cost / p * sum |a_j|^p``, p below 1, at coefficients ``at``, up to a constant."""

    cost: float
    p: float
    at: Array

    def value(self, a: Array) -> float:
        size = np.abs(self.at)
        return 0.5 * self.cost * float(((a / size) ** 2 * size**self.p).sum())

    def conjugate(self, r: Array) -> float:
        return 0.5 / self.cost * float((r**2 * np.abs(self.at) ** (2 - self.p)).sum())


def lower_bound(
    own: float,
    pull: Array,
    a: Array,
    other: Callable[[], Array],
    norm: Callable[[Array], Array],
    penalty: Penalty,
    penalised: Array | slice = slice(None),
    enough: float = np.inf,
) -> float:
    """The bound with c = a or, if below ``enough``, with the best ``c = a + t (other() - a)`` for t from 0 to 1.

    ``own`` is the term of the losses, ``pull = K'u``, and ``norm`` multiplies by R. Coefficients that are not
    ``penalised`` are zero in a, but not necessarily in c.
    """
    at = norm(a)
    rest = (pull - at)[penalised]
    first = own - 0.5 * float(dot(a, at)) - penalty.conjugate(rest)
    if first >= enough:
        return first
    step = other() - a
    along = norm(step)
    squares = np.array([dot(a, at), 2 * dot(a, along), dot(step, along)])
    slope = along[penalised]

    def bound(t: float) -> float:
        return own - 0.5 * float(dot(squares, (1.0, t, t * t))) - penalty.conjugate(rest - t * slope)

    low, high = 0.0, 1.0
    if bound(low) == -np.inf:
        # The conjugate of a norm is infinite outside a ball: find the first t inside by bisection.
        if bound(high) == -np.inf:
            return -np.inf
        outside, low = 0.0, 1.0
        while low - outside > 1e-14 * low + SMALLEST_NORMAL:
            middle = 0.5 * (low + outside)
            outside, low = (middle, low) if bound(middle) == -np.inf else (outside, middle)
    best = max(bound(low), bound(high))
    # The bound is concave in t: golden section search.
    while high - low > 1e-9 * high + SMALLEST_NORMAL and best < enough:
        left, right = high - GOLDEN_RATIO * (high - low), low + GOLDEN_RATIO * (high - low)
        values = bound(left), bound(right)
        best = max(best, *values)
        low, high = (low, right) if values[0] >= values[1] else (left, high)
    return best
