"""L-BFGS: the function is a Python callable; all the rest runs in the core, without the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .. import _core
from .arrays import Array

MEMORY = 20
VALUE, LOOK, CONVERGED = range(3)  # what the core wishes for; else it is stuck

Function = Callable[[Array], tuple[float, Array]]  # value and gradient


@dataclass(frozen=True)
class Minimum:
    """The last iterate, its value, and whether a limit ended the search."""

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
    """A local minimum of a smooth function, as L-BFGS-B finds it.

    It ends where an iteration gains less than ``tol`` of the value (or of 1), or no derivative that a variable could
    follow exceeds ``gradient_tol``. ``memory`` is the number of steps that are remembered; ``watch`` gets the value of
    each iterate.
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
