"""How good a solution really is: dual, primal and gap in float64, the same way for every competitor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

Array = np.ndarray

BLOCK_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Quality:
    """Values of the hinge machine 1/2 |f|^2 + C sum(slacks)."""

    dual: float  # of the duals made feasible: a true lower bound of the optimum
    gap: float  # (primal - dual) / dual, with the best bias
    infeasibility: float  # of the duals as they came: sum or box, relative
    n_vectors: int


def evaluate(X: Any, y: Array, C: float, gamma: float, duals: list[Array]) -> list[Quality]:
    """One pass over the kernel columns of all vectors that any of the solutions has."""
    group = equal_rows(X, y)
    repaired = [feasible(shared(u, group), y, C) for u in duals]
    U = np.column_stack([u for u, _ in repaired])
    F = expand(X, np.flatnonzero(U.any(axis=1)), U, gamma)
    n_positive = int((y > 0).sum())
    found = []
    for k, (u, infeasibility) in enumerate(repaired):
        f = F[:, k]
        norm = float(u @ f)
        # Each of the points y - f lifts the slope of the slacks' sum by 1, from -n_positive on: it is 0 here.
        bias = np.partition(y - f, n_positive - 1)[n_positive - 1]
        primal = 0.5 * norm + C * float(np.maximum(0, 1 - y * (f + bias)).sum())
        dual = float(np.abs(u).sum()) - 0.5 * norm
        found.append(Quality(dual, (primal - dual) / dual, infeasibility, int(np.count_nonzero(duals[k]))))
    return found


def equal_rows(X: Any, y: Array) -> Array:
    """A number for each row, the same for rows that are equal in all inputs and in their label."""
    numbers: dict[tuple[bytes | bool, ...], int] = {}
    if sp.issparse(X):
        spans = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        keys = ((X.indices[a:b].tobytes(), X.data[a:b].tobytes()) for a, b in spans)
    else:
        keys = ((row.tobytes(),) for row in X)
    return np.array(
        [numbers.setdefault((*key, bool(label > 0)), len(numbers)) for key, label in zip(keys, y, strict=True)]
    )


def shared(u: Array, group: Array) -> Array:
    """Duals shared evenly among equal rows of a class, which changes no value: slimsvm keeps one of these rows."""
    return (np.bincount(group, u) / np.bincount(group))[group]


def feasible(u: Array, y: Array, C: float) -> tuple[Array, float]:
    """Signed duals inside the box and with sum 0, and how far they were from that.

    Float32 duals miss both by rounding, and an infeasible point can have a dual value above the optimum: they
    are cut to the box, then the class with the larger sum is scaled down.
    """
    alpha = np.clip(y * u, 0, C)
    outside = float(np.abs(alpha - y * u).max()) / C
    positive, negative = float(alpha[y > 0].sum()), float(alpha[y < 0].sum())
    sums = np.where(y > 0, positive, negative)
    return y * alpha * min(positive, negative) / sums, max(outside, abs(positive - negative) / (positive + negative))


def expand(X: Any, vectors: Array, U: Array, gamma: float) -> Array:
    """K(X, X[vectors]) @ U[vectors] in float64, by blocks of rows of X."""
    Z, V = X[vectors], U[vectors]
    x_norms, z_norms = squared_norms(X), squared_norms(Z)
    F = np.empty((X.shape[0], U.shape[1]))
    step = max(1, BLOCK_BYTES // (8 * max(1, len(vectors))))
    for start in range(0, len(F), step):
        rows = slice(start, start + step)
        product = X[rows] @ Z.T
        K = product.toarray() if sp.issparse(product) else product
        K *= 2
        K -= x_norms[rows, None]
        K -= z_norms
        K *= gamma
        F[rows] = np.exp(np.minimum(K, 0, out=K), out=K) @ V
    return F


def squared_norms(X: Any) -> Array:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)
