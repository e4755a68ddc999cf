"""Hard margins (no slack, C = inf), solved with a finite C that no dual variable reaches.

Where a solution without slack exists its dual variables are finite, and it is the solution for every C above the
largest of them. Where there is none, they grow with C without bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isfinite
from typing import Any

import numpy as np

from ...linalg.arrays import Array
from .training import Subproblem

STAND_INS_FOR_INFINITY = (1e4, 1e7, 1e10)  # in units of the dual variables, see `_unit`
CLEARLY_FREE = 0.5  # share of C: above it, a dual variable may be at its bound up to the tolerance of the solver


def at_cost(
    C: float, solve: Callable[[float], list[Any]], kernel_matrix: Any, problems: Sequence[Subproblem]
) -> list[Any]:
    """Solve all problems for this C, which may be infinite; ``solve`` takes a finite C.

    A problem that has no solution without slack gets that of a very large C, marked as not converged.
    """
    if isfinite(C):
        return solve(C)
    unit = max(_unit(kernel_matrix, problem) for problem in problems)
    for cost in STAND_INS_FOR_INFINITY:
        solutions = solve(cost * unit)
        free = [_free(s.duals, p.weights, cost * unit) for s, p in zip(solutions, problems, strict=True)]
        if all(free):
            break
    return [
        s if is_free else s._replace(objective=inf, gap=inf, converged=False)
        for s, is_free in zip(solutions, free, strict=True)
    ]


def _free(duals: Array, weights: Array, C: float) -> bool:
    """Is every dual variable well below its bound?"""
    return bool((np.abs(duals) < CLEARLY_FREE * C * weights).all())


def _unit(kernel_matrix: Any, problem: Subproblem) -> float:
    """The natural size of dual variables: the range of the targets over the largest k(x, x)."""
    largest = float(kernel_matrix.diagonal(problem.segments).max())
    target_range = float(np.ptp(problem.y))
    return target_range / largest if target_range > 0 and largest > 0 else 1.0
