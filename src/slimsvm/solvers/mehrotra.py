"""Mehrotra's predictor-corrector steps for primal-dual interior point methods.

At the solution the products of positive variables and their multipliers are zero. Newton's method follows the points
where these products are equal (complementarity mu) while mu falls to zero. The predictor, a step to mu = 0, determines
the mu that the corrector aims at and its second-order terms; both steps come from one factorisation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from ..linalg.arrays import Array
from ..linalg.matrix import dot
from .certificate import SMALLEST_NORMAL

FRACTION_TO_BOUNDARY = 0.995  # of the distance to the nearest bound: a step goes no farther

# Newton's step to points where the products equal given targets; rounds after the first are iterative refinement.
Towards = Callable[[Sequence[Array | float], int], Any]


class PrimalDualPoint:
    """A primal-dual point, or a step between points: a dataclass of numbers and arrays."""

    def pairs(self) -> tuple[tuple[Array, Array], ...]:
        """Positive variables and their multipliers; linear in the point, so that steps have pairs, too."""
        raise NotImplementedError

    def moved(self, t: float, step: Self) -> Self:
        """This point plus t times a step."""
        return type(self)(*(x + t * d for x, d in zip(vars(self).values(), vars(step).values(), strict=True)))

    @property
    def finite(self) -> bool:
        """Are all numbers finite?"""
        return all(np.isfinite(part).all() for part in vars(self).values())


def complementarity(point: PrimalDualPoint) -> float:
    """mu, the mean product of a variable and its multiplier; zero at the solution."""
    pairs = point.pairs()
    return max(sum(float(dot(x, z)) for x, z in pairs), SMALLEST_NORMAL) / sum(len(x) for x, _ in pairs)


def longest_step(point: PrimalDualPoint, step: PrimalDualPoint) -> float:
    """The largest t, at most 1, for which t times the step leaves no variable negative."""
    both = zip(point.pairs(), step.pairs(), strict=True)
    ratios = (float((-d / x).max(initial=0.0)) for at, change in both for x, d in zip(at, change, strict=True))
    return 1 / max(1.0, *ratios)


def predictor(point: Any, towards: Towards) -> tuple[Any, float, float]:
    """The step towards products of zero, its longest feasible length (at most 1), and mu at its end."""
    step = towards([0.0] * len(point.pairs()), 1)
    length = longest_step(point, step)
    return step, length, complementarity(point.moved(length, step))


def corrector(towards: Towards, centre: float, predicted: Any) -> Any:
    """The step towards products equal to ``centre``, with the second-order terms of the predicted step."""
    return towards([centre - dx * dz for dx, dz in predicted.pairs()], 2)


def advanced(point: Any, towards: Towards) -> Any:
    """The point after one predictor-corrector step; None if rounding has made the equations useless."""
    mu = complementarity(point)
    predicted, _, after = predictor(point, towards)
    step = corrector(towards, mu * (after / mu) ** 3, predicted)
    return point.moved(min(1.0, FRACTION_TO_BOUNDARY * longest_step(point, step)), step) if step.finite else None
