"""Partial Cholesky factorisations of a kernel matrix, which select linearly independent rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..linalg.arrays import Array, is_remote
from ..linalg.matrix import dot, solve_lower
from ..problem.formulation import Kernel
from ..rows.remote import MAX_FETCHED_BYTES


def independent_rows(kernel: Kernel, X: Any, eta: float, order: Array | None = None, most: int | None = None) -> Array:
    """Select rows, in ``order``, whose squared distance (in feature space) to the span of those kept is above ``eta``.

    A block of rows is first compared with all rows kept so far (one product, one triangular solve), then eliminated row
    by row. The result is the same as if each row were compared on its own.
    """
    order = np.arange(X.shape[0]) if order is None else order
    most = len(order) if most is None else most
    kept, vectors = np.empty(0, dtype=np.int64), X[:0]
    L = np.zeros((0, 0))
    for rows, some in _in_blocks(X, order, 256):
        known = np.zeros((0, len(rows)))
        if len(kept):
            known = solve_lower(L, kernel(vectors, some))
        rest = kernel.diagonal(some) - np.einsum("ij,ij->j", known, known)
        alive = np.flatnonzero(rest > eta)
        some, known = some[alive], known[:, alive]
        chosen, own = _eliminate(kernel(some, some) - dot(known.T, known), rest[alive], eta, most - len(kept))
        if len(chosen):
            L = np.block([[L, np.zeros((len(kept), len(chosen)))], [known[:, chosen].T, own]])
            kept = np.append(kept, rows[alive[chosen]])
            vectors = _stacked(vectors, some[chosen])
        if len(kept) >= most:
            break
    return kept


def _in_blocks(X: Any, order: Array, size: int) -> Iterator[tuple[Array, Any]]:
    """Row numbers in order and their rows, ``size`` at a time; remote rows are fetched in growing chunks."""
    far = is_remote(X)
    most = max(size, MAX_FETCHED_BYTES // max(1, X.shape[1] * X.dtype.itemsize)) if far else size
    together, begin = 4 * size if far else size, 0
    while begin < len(order):
        rows = order[begin : begin + min(together, most)]
        some = X[rows]
        for i in range(0, len(rows), size):
            yield rows[i : i + size], some[i : i + size]
        begin += len(rows)
        together *= 8 if far else 1


def _stacked(above: Any, below: Any) -> Any:
    return sp.vstack([above, below], format="csr") if sp.issparse(below) else np.concatenate([above, below])


def _eliminate(residual: Array, rest: Array, eta: float, most: int) -> tuple[list[int], Array]:
    """Positions of the rows of one block to keep, and their part of the Cholesky factor."""
    columns = np.empty((min(most, len(rest)), len(rest)))
    chosen: list[int] = []
    for a in range(len(rest)):
        if rest[a] > eta and len(chosen) < most:
            k = len(chosen)
            columns[k] = (residual[a] - dot(columns[:k, a], columns[:k])) / np.sqrt(rest[a])
            columns[k, a] = np.sqrt(rest[a])
            rest = rest - columns[k] ** 2
            chosen.append(a)
    return chosen, np.tril(columns[: len(chosen), chosen].T)


def pivoted_factor(
    kernel: Kernel, X: Any, eta: float, most: int, threads: int = 1, rank: Array | None = None
) -> tuple[Array, Array, Array]:
    """Select rows greedily: each is farthest from the span of those before, until no squared distance is above ``eta``.

    Returns the rows, the factor G (rows selected x rows of X) with ``k(X, X) ~ G'G``, and the diagonal of ``k(X, X) -
    G'G``. Among rows that are equally far, the one of lowest ``rank`` is taken (without ranks, the first).
    """
    rest = kernel.diagonal(X)
    G = np.empty((min(most, len(rest)), len(rest)))
    kept: list[int] = []
    while len(kept) < len(G):
        p = int(rest.argmax())
        if rank is not None:
            ties = np.flatnonzero(rest == rest[p])
            p = int(ties[rank[ties].argmin()])
        if rest[p] <= eta:
            break
        k = len(kept)
        G[k] = (kernel(X, X[[p]], threads=threads)[:, 0] - dot(G[:k, p], G[:k])) / np.sqrt(rest[p])
        rest = np.maximum(rest - G[k] ** 2, 0)
        rest[p] = 0
        kept.append(p)
    return np.array(kept, dtype=np.int64), G[: len(kept)], rest
