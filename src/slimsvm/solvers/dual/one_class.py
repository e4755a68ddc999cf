"""A one-class machine over all rows: the machine that others are taught by."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...linalg.arrays import Array
from ...model.expansion import Expansion
from .multiplier import Limits
from .sklearn_svm import SvmSolution, one_class, solve_family


def one_class_machine(
    kernel: Any,
    X: Any,
    weights: Array,
    nu: float,
    limits: Limits,
    cache_bytes: int,
    threads: int,
    verbose: bool = False,
) -> tuple[Expansion, SvmSolution]:
    """The machine that leaves a share of at most nu of the rows outside, and the proof of how well it is solved."""
    n = X.shape[0]
    machine = kernel.machine(X, np.arange(n, dtype=np.int64), [n], cache_bytes, threads)
    (found,) = solve_family(machine, [[0]], [one_class(nu, weights)], limits, verbose)
    used = np.flatnonzero(found.duals)
    return Expansion(kernel, X[used], found.duals[None, used], np.array([found.bias])), found
