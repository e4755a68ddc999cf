"""Linear algebra in long double."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

LONG = np.longdouble


def long(A):
    """Dense, in long double: every float is itself."""
    return np.asarray(A.toarray() if sp.issparse(A) else A).astype(LONG)


# --- Kernels ------------------------------------------------------------------------------------------------


def cholesky(A):
    """Lower factor of a positive definite matrix, or None."""
    L = A.copy()
    for k in range(len(L)):
        if not L[k, k] > 0:
            return None
        L[k:, k] /= np.sqrt(L[k, k])
        L[k + 1 :, k + 1 :] -= np.outer(L[k + 1 :, k], L[k + 1 :, k])
    return np.tril(L)


def forward(L, B):
    """``L^-1 B``."""
    B = np.array(B, dtype=LONG)
    for k in range(len(L)):
        B[k] = (B[k] - L[k, :k] @ B[:k]) / L[k, k]
    return B


def backward(L, B):
    """``L'^-1 B``."""
    B = np.array(B, dtype=LONG)
    for k in reversed(range(len(L))):
        B[k] = (B[k] - L[k + 1 :, k] @ B[k + 1 :]) / L[k, k]
    return B


def solve(L, B):
    """``(L L')^-1 B``."""
    return backward(L, forward(L, B))


def pivoted(K, share=1e-16):
    """G with ``G G' = K`` but for a part below ``share`` of its largest entry, and the rows that were pivots."""
    left, columns, pivots = K.diagonal().copy(), [], []
    floor = share * max(left.max(initial=0), 0)
    while len(columns) < len(K):
        j = int(left.argmax())
        if not left[j] > floor:
            break
        G = np.array(columns).T if columns else np.empty((len(K), 0), dtype=LONG)
        column = (K[:, j] - G @ G[j]) / np.sqrt(left[j])
        columns.append(column)
        pivots.append(j)
        left = left - column**2
        left[pivots] = 0
    return (np.array(columns).T if columns else np.zeros((len(K), 0), dtype=LONG)), pivots
