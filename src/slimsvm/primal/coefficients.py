"""Coefficients of machines that share their vectors, each with its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import Targets
from ..formulation import Array, Kernel
from ..parts.losses import Loss
from ..parts.regularizers import Regularizer
from ..sparse.reweighting import sparse_coefficients
from . import solve as primal
from .passes import features


@dataclass(frozen=True)
class Coefficients:
    """Coefficients (machines x vectors) and biases, each machine with its certificate."""

    coef: Array
    bias: Array
    objective: Array
    gap: Array
    n_iter: Array


def fit_coefficients(
    kernel: Kernel,
    X: Any,
    Z: Any,
    machines: Sequence[Targets],
    loss: Loss,
    regularizer: Regularizer,
    tol: float = 1e-8,
    max_iter: int = 100,
    dtype: Any = np.float64,
    threads: int = 1,
    memory: float = 2.0**30,
) -> Coefficients:
    """The best coefficients and biases of all machines over the vectors Z.

    Where float32 features do not lead to the gap that is asked for, float64 features do the rest.
    """
    if regularizer.reweighted:
        return _reweighted(kernel, X, Z, machines, loss, regularizer, threads)
    T = regularizer.whitening(kernel(Z, Z))
    solved: list[primal.LinearSolution | None] = [None] * len(machines)
    for precision in dict.fromkeys((np.dtype(dtype), np.dtype(np.float64))):
        open_ = [k for k, s in enumerate(solved) if s is None or (s.gap > tol).any()]
        if not open_:
            break
        P = features(kernel, X, Z, T, precision, threads, memory)
        for k in open_:
            group, before = machines[k], solved[k]
            start = None if before is None else (before.w, before.bias)
            mine = P if group.rows is None else P.take(group.rows)
            # Both solvers converge so fast in the end that a margin costs next to nothing.
            solved[k] = primal.solve(mine, group.Y, group.C, loss, start, 1e-3 * tol, max_iter)
    done = [s for s in solved if s is not None]
    return Coefficients(
        np.ascontiguousarray((T @ np.hstack([s.w for s in done])).T),
        np.concatenate([s.bias for s in done]),
        np.concatenate([s.objective for s in done]),
        np.concatenate([s.gap for s in done]),
        np.concatenate([s.n_iter for s in done]),
    )


def _reweighted(
    kernel: Kernel, X: Any, Z: Any, machines: Sequence[Targets], loss: Loss, norm: Any, threads: int
) -> Coefficients:
    """Rounds of reweighting for each machine; coefficients of vectors that it drops are zero."""
    K, gram = kernel(X, Z, threads=threads), kernel(Z, Z)
    found = [
        sparse_coefficients(K if group.rows is None else K[group.rows], gram, group.Y[:, o], group.C[:, o], loss, norm)
        for group in machines
        for o in range(group.Y.shape[1])
    ]
    coef = np.zeros((len(found), len(gram)))
    for o, sparse in enumerate(found):
        coef[o, sparse.kept] = sparse.coef
    return Coefficients(
        coef, *(np.array([getattr(s, name) for s in found]) for name in ("bias", "objective", "gap", "n_iter"))
    )
