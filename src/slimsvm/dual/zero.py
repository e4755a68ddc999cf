"""Problems whose optimum is f = 0: what was found is rounding, whose signs would differ on each device.

Kernel values are known to ``e (k(x, x) k(z, z))^1/2``, as in `certificate`, and errors of terms add up like chance.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from .. import _core
from ..certificate import UNITS
from ..formulation import Array
from ..linear import dot, norm

Solution = TypeVar("Solution", bound=Any)

# For how many problems of how many, what the labels are then, and what else may give a function.
ZERO = (
    "the decision function is zero in {} of {} binary problems: as far as rounding tells, no function of this kernel "
    "costs less than f = 0, and {}. Use a kernel that separates more, such as 'rbf' with a larger gamma, or inputs "
    "that differ between the classes{}"
)


def rounding(machine: _core.Machine, view: list[int], duals: Array) -> Array:
    """How well the values of ``f = K duals`` are known, for each row."""
    sizes = np.sqrt(np.maximum(machine.diagonal(view), 0.0))
    return UNITS * norm(sizes * duals) * sizes


def is_rounding(machine: _core.Machine, view: list[int], duals: Array) -> bool:
    """Are all values of f no larger than their errors?"""
    doubt = rounding(machine, view, duals)
    most = np.array([np.abs(duals).argmax()])  # one row nearly always tells
    if np.abs(dot(machine.rows(view, most), duals)) > doubt[most]:
        return False
    return bool((np.abs(machine.product(view, duals[None])[0]) <= doubt).all())


def without_rounding(machine: _core.Machine, view: list[int], solution: Solution) -> Solution:
    """f = 0 where all values of f that a solved problem gives are rounding, and b = 0 where it is no more."""
    if solution.zero or not solution.converged or not is_rounding(machine, view, solution.duals):
        return solution
    within = abs(solution.bias) <= rounding(machine, view, solution.duals).max()
    return as_zero(solution, 0.0 if within else solution.bias)


def as_zero(solution: Solution, bias: float = 0.0) -> Solution:
    """f = 0 in the place of a solution: the bias alone."""
    return solution._replace(duals=np.zeros_like(solution.duals), bias=bias, zero=True)
