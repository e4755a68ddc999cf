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

ZERO = (
    "the decision function is zero in {} of {} binary problems: as far as rounding tells, no function of this kernel "
    "costs less than f = 0, and all rows get one class there. Use a kernel that separates more, such as 'rbf' with a "
    "larger gamma, or inputs that differ between the classes{}"
)


def rounding(machine: _core.Machine, view: list[int], duals: Array) -> Array:
    """How well the values of ``f = K duals`` are known, for each row."""
    sizes = np.sqrt(np.maximum(machine.diagonal(view), 0.0))
    return UNITS * norm(sizes * duals) * sizes


def as_zero(solution: Solution, bias: float = 0.0) -> Solution:
    """f = 0 in the place of a solution: the bias alone."""
    return solution._replace(duals=np.zeros_like(solution.duals), bias=bias, zero=True)


def without_rounding(machine: _core.Machine, view: list[int], solution: Solution) -> Solution:
    """f = 0 where all values of f that a solved problem gives are rounding."""
    duals = solution.duals
    if not solution.converged or solution.zero:
        return solution
    doubt = rounding(machine, view, duals)
    most = np.abs(duals).argmax(keepdims=True)  # one row nearly always tells
    if np.abs(dot(machine.rows(view, most), duals)) > doubt[most]:
        return solution
    if (np.abs(machine.product(view, duals[None])[0]) > doubt).any():
        return solution
    return as_zero(solution, solution.bias if abs(solution.bias) > doubt.max() else 0.0)
