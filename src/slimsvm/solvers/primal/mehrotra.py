"""Steps of an interior point method: Mehrotra's predictor and corrector.

At the solution products of positive parts and their multipliers are zero. Newton's method follows points where they
are equal, while they fall. A first step, straight to zero, tells how far they may fall at once and what the next step
has to make up for: both come from one factorisation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from ...linalg.arrays import Array
from ...linalg.matrix import dot
from ..certificate import TINY

NEARLY = 0.995  # of the way to the nearest bound

# Newton's step to points where the products have these values; rounds after the first refine it.
Towards = Callable[[Sequence[Array | float], int], Any]


class PrimalDualPoint:
    """A point, or a step between points, of a dataclass whose fields are numbers and arrays."""

    def pairs(self) -> tuple[tuple[Array, Array], ...]:
        """Positive parts and their multipliers; linear in the point, so that a step has pairs, too."""
        raise NotImplementedError

    def moved(self, t: float, step: Self) -> Self:
        """This point after t times a step."""
        return type(self)(*(x + t * d for x, d in zip(vars(self).values(), vars(step).values(), strict=True)))


def mean_product(now: PrimalDualPoint) -> float:
    """How far from the end: the mean of the products that are zero there."""
    pairs = now.pairs()
    return max(sum(float(dot(x, z)) for x, z in pairs), TINY) / sum(len(x) for x, _ in pairs)


def longest(now: PrimalDualPoint, step: PrimalDualPoint) -> float:
    """How far the step may go before a positive part is zero, at most 1."""
    both = zip(now.pairs(), step.pairs(), strict=True)
    return 1 / max(1.0, *(float((-d / x).max()) for at, change in both for x, d in zip(at, change, strict=True)))


def advanced(now: Any, towards: Towards) -> Any:
    """The next point; None if rounding has made the equations useless."""
    pairs = now.pairs()
    mu = mean_product(now)
    probe = towards([0.0] * len(pairs), 1)
    after = mean_product(now.moved(longest(now, probe), probe))
    centre = mu * (after / mu) ** 3
    step = towards([centre - dx * dz for dx, dz in probe.pairs()], 2)
    if not all(np.isfinite(part).all() for part in vars(step).values()):
        return None
    return now.moved(min(1.0, NEARLY * longest(now, step)), step)
