"""No slack at all, C = inf: the same problem with a C that no dual variable reaches.

Where a solution without slack exists its dual variables are finite, and it is the solution for every C above the
largest of them. Where there is none they grow with C for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isfinite
from typing import Any

import numpy as np

from ...linalg.arrays import Array
from .training import Subproblem

STAND_INS_FOR_INFINITY = (1e4, 1e7, 1e10)  # in the unit of the dual variables
CLEARLY_FREE = 0.5  # of C: a dual variable beyond it may be at its bound but for the tolerance of a solver


def at_cost(
    C: float, solve: Callable[[float], list[Any]], kernel_matrix: Any, problems: Sequence[Subproblem]
) -> list[Any]:
    """Solutions of all problems for this C, which may be infinite; ``solve`` takes those that are not.

    Of a problem that cannot be solved without slack: the solution of a very large C, which has not converged.
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
    """Dual variables times kernel values are targets."""
    largest = float(kernel_matrix.diagonal(problem.segments).max())
    target_range = float(np.ptp(problem.y))
    return target_range / largest if target_range > 0 and largest > 0 else 1.0
