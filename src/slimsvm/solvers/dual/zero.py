"""Replaces solutions that are only rounding errors by f = 0: their signs would differ between devices.

Kernel values have the error ``e (k(x, x) k(z, z))^1/2``, as in `certificate`; errors are taken as independent.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from ... import _core
from ...linalg.arrays import Array
from ...linalg.matrix import dot, norm
from ..rounding import KERNEL_ROUNDING

Solution = TypeVar("Solution", bound=Any)

# Fields: problems that are zero, problems in all, consequence for predictions, further remedy.
ZERO_FUNCTION_WARNING = (
    "the decision function is zero in {} of {} binary problems, and {}: no other one is better by more than rounding "
    "errors, as this kernel does not tell the classes apart. Use a kernel that separates more, such as 'rbf' with a "
    "larger gamma, or inputs that differ between the classes{}"
)


def rounding_error(kernel_matrix: _core.KernelMatrix, segments: list[int], duals: Array, worst: bool = False) -> Array:
    """Estimate the rounding error of each value of ``f = K duals``; ``worst``: if all errors have one sign."""
    sizes = np.sqrt(np.maximum(kernel_matrix.diagonal(segments), 0.0))
    terms = sizes * np.abs(duals)
    return KERNEL_ROUNDING * (float(terms.sum()) if worst else norm(terms)) * sizes


def is_rounding(kernel_matrix: _core.KernelMatrix, segments: list[int], duals: Array, bias: float) -> bool:
    """Are the bias and all values of f no larger than the errors of f?"""
    error = rounding_error(kernel_matrix, segments, duals)
    if abs(bias) > error.max():
        return False
    largest = np.array([np.abs(duals).argmax()])  # one row is nearly always enough
    if np.abs(dot(kernel_matrix.rows(segments, largest), duals)) > error[largest]:
        return False
    return bool((np.abs(kernel_matrix.product(segments, duals[None])[0]) <= error).all())


def zero_if_rounding(kernel_matrix: _core.KernelMatrix, segments: list[int], solution: Solution) -> Solution:
    """Replace a converged solution by f = 0, b = 0 if both are within rounding error."""
    if solution.replaced_by_zero or not solution.converged:
        return solution
    return as_zero(solution) if is_rounding(kernel_matrix, segments, solution.duals, solution.bias) else solution


def as_zero(solution: Solution) -> Solution:
    """The solution with zero duals and bias."""
    return solution._replace(duals=np.zeros_like(solution.duals), bias=0.0, replaced_by_zero=True)
