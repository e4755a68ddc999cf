"""One-class models over all rows, from which smaller models are distilled."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...linalg.arrays import Array
from ...model.expansion import Expansion
from .programs import SolverOptions
from .sklearn_svm import SvmSolution, one_class, solve_duals


def train_one_class(
    kernel: Any,
    X: Any,
    weights: Array,
    nu: float,
    options: SolverOptions,
    cache_bytes: int,
    threads: int,
    verbose: bool = False,
) -> tuple[Expansion, SvmSolution]:
    """Train a model with at most a share nu of the rows outside; returns its expansion and certified solution."""
    n = X.shape[0]
    kernel_matrix = kernel.training_matrix(X, np.arange(n, dtype=np.int64), [n], cache_bytes, threads)
    (solution,) = solve_duals(kernel_matrix, [[0]], [one_class(nu, weights)], options, verbose)
    used = np.flatnonzero(solution.duals)
    return Expansion(kernel, X[used], solution.duals[None, used], np.array([solution.bias])), solution
