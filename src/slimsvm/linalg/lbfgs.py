"""L-BFGS with bounds: the core computes the steps, Python the function and its gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .. import _core
from .arrays import Array

MEMORY = 20
# The core's next request: a value, a look at the new iterate, or none. Any other code: no further progress.
VALUE, LOOK, CONVERGED = range(3)

Function = Callable[[Array], tuple[float, Array]]  # returns value and gradient


@dataclass(frozen=True)
class Minimum:
    """The last iterate, its value, the counts, and whether a limit ended the search."""

    x: Array
    value: float
    n_iter: int
    n_values: int
    limited: bool


def lbfgs(
    function: Function,
    start: Array,
    bounds: tuple[Array, Array] | None = None,
    max_iter: int = 100,
    max_values: int = 1000,
    tol: float = 1e-9,
    gradient_tol: float = 1e-9,
    memory: int = MEMORY,
    watch: Callable[[float], None] | None = None,
) -> Minimum:
    """A local minimum of a smooth function, by L-BFGS-B.

    The search ends when an iteration decreases the value by less than ``tol`` (relative, and absolute below 1), or when
    the projected gradient is at most ``gradient_tol``. ``memory`` is the number of stored steps; ``watch`` is called
    with the value of each iterate.
    """
    lower, upper = (None, None) if bounds is None else (np.asarray(b, dtype=np.float64) for b in bounds)
    steps = _core.Lbfgs(np.array(start, dtype=np.float64), memory, lower, upper, tol, gradient_tol)
    n_iter = n_values = 0
    wish = VALUE
    while wish in (VALUE, LOOK):
        if wish == VALUE:
            value, gradient = function(steps.x)
            n_values += 1
            wish = steps.update(value, np.ascontiguousarray(gradient, dtype=np.float64))
            continue
        n_iter += 1
        if watch is not None:
            watch(steps.value)
        if n_iter >= max_iter or n_values > max_values:
            break
        wish = steps.advance()
    return Minimum(steps.x, steps.value, n_iter, n_values, n_iter >= max_iter or n_values > max_values)
