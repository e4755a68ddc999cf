"""Selection of vectors: forward selection of rows, and cluster centres."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.duplicates import group_equal_rows
from ..linalg.arrays import Array
from ..linalg.matrix import dot
from ..problem.bases import INDEPENDENCE, dense
from ..problem.formulation import Kernel
from ..problem.losses import SmoothLoss, SquaredHinge
from ..problem.regularizers import inverse_root
from ..rows.labels import Labels, RowLabels
from ..rows.memory import DenseFeatures
from ..rows.protocol import decision
from ..solvers.primal.newton import newton

MAX_STORED_VALUES = 1 << 22  # of the kernel matrix of all rows; larger ones are computed column by column

# --- forward selection ---------------------------------------------------------------------------


def forward_rows(
    kernel: Kernel,
    X: Any,
    labels: Labels,
    count: int,
    rng: np.random.Generator,
    given: Any = None,
    candidates: int | None = 59,
    loss: SmoothLoss | None = None,
    threads: int = 1,
) -> Array:
    """Forward selection: add rows one by one to the ``given`` vectors, each the best of some candidates.

    A candidate's part outside the span of the vectors so far is a new feature. Its score is the decrease of the
    objective by one Newton step along it, ``g^2 / 2h`` summed over outputs. After each choice the problem is solved
    again.
    """
    Y, C = labels.of(slice(None))
    row_labels = RowLabels(Y, C)
    loss = SquaredHinge() if loss is None else loss
    size = kernel.diagonal(X)
    free = np.ones(X.shape[0], dtype=bool)
    columns = kernel(X, X, threads=threads) if X.shape[0] ** 2 <= MAX_STORED_VALUES else None
    P = np.empty((X.shape[0], count + (0 if given is None else given.shape[0])))
    m = 0
    if given is not None and given.shape[0]:
        T = inverse_root(kernel(given, given))
        m = T.shape[1]
        P[:, :m] = dot(kernel(X, given, threads=threads), T, threads)
    V = np.zeros((Y.shape[1], m + 1))
    rows: list[int] = []
    while len(rows) < count:
        V = newton(DenseFeatures(P[:, :m], row_labels), loss, V, tol=1e-4, max_iter=20).V
        F = decision(P[:, :m], V)
        A, H = loss.duals(F, Y, C), loss.curvature(F, Y, C)
        drawn = np.flatnonzero(free)
        if candidates is not None and len(drawn) > candidates:
            drawn = np.sort(rng.choice(drawn, candidates, replace=False))
        projected = P[drawn, :m]
        rest = size[drawn] - np.einsum("ij,ij->i", projected, projected)
        independent = rest > INDEPENDENCE * size[drawn]
        free[drawn[~independent]] = False
        drawn, projected, rest = drawn[independent], projected[independent], rest[independent]
        if not len(drawn):
            if free.any():
                continue
            break
        K = kernel(X, X[drawn], threads=threads) if columns is None else columns[:, drawn]
        Q = (K - dot(P[:, :m], projected.T, threads)) / np.sqrt(rest)
        score = (dot(Q.T, A, threads) ** 2 / (1 + dot((Q**2).T, H, threads))).sum(axis=1)
        best = int(score.argmax())
        P[:, m] = Q[:, best]
        m += 1
        V = np.insert(V, m - 1, 0.0, axis=1)
        free[drawn[best]] = False
        rows.append(int(drawn[best]))
    return np.array(rows, dtype=np.int64)


def forward_vectors(K: Array, gram: Array, labels: Labels, count: int, loss: SmoothLoss | None = None) -> Array:
    """Indices of ``count`` of the given vectors, chosen by forward selection as in `forward_rows`.

    ``K`` (rows x vectors) are kernel values, ``gram`` is the kernel matrix of the vectors. All vectors are candidates
    in each step, so each column of ``K`` is updated to its part outside the span of the selected ones."""
    Y, C = labels.of(slice(None))
    row_labels = RowLabels(Y, C)
    loss = SquaredHinge() if loss is None else loss
    K, gram = np.array(K, dtype=np.float64), np.array(gram, dtype=np.float64)
    smallest = INDEPENDENCE * np.abs(gram.diagonal())
    free = np.ones(len(gram), dtype=bool)
    P = np.empty((K.shape[0], count))
    V = np.zeros((Y.shape[1], 1))
    kept: list[int] = []
    while len(kept) < count:
        m = len(kept)
        free &= gram.diagonal() > smallest
        if not free.any():
            break
        V = newton(DenseFeatures(P[:, :m], row_labels), loss, V, tol=1e-4, max_iter=20).V
        F = decision(P[:, :m], V)
        A, H = loss.duals(F, Y, C), loss.curvature(F, Y, C)
        rest = np.where(free, gram.diagonal(), 1.0)[:, None]
        score = (dot(K.T, A) ** 2 / (rest + dot((K**2).T, H))).sum(axis=1)
        best = int(np.where(free, score, -1.0).argmax())
        root = np.sqrt(gram[best, best])
        row = gram[best] / root
        P[:, m] = K[:, best] / root
        K -= np.outer(P[:, m], row)
        gram -= np.outer(row, row)
        V = np.insert(V, m, 0.0, axis=1)
        free[best] = False
        kept.append(best)
    return np.array(kept, dtype=np.int64)


# --- clusters --------------------------------------------------------------------------------------


def class_centres(X: Any, codes: Array, weights: Array, count: int, max_iter: int, rng: np.random.Generator) -> Array:
    """``count`` k-means centres, split evenly over the classes; of all rows together if classes outnumber ``count``."""
    classes = np.unique(codes)
    groups = [np.flatnonzero(codes == c) for c in classes] if count >= len(classes) else [np.arange(len(codes))]
    shares = even_shares([len(g) for g in groups], count)
    centres = [_centres(X[g], weights[g], k, max_iter, rng) for g, k in zip(groups, shares, strict=True)]
    return np.unique(np.vstack(centres), axis=0)


def _centres(X: Any, weight: Array, count: int, max_iter: int, rng: np.random.Generator) -> Array:
    distinct = group_equal_rows(X).first
    if len(distinct) <= count:
        return dense(X[distinct])
    # Distances are differences of squares, which lose digits with a common offset.
    offset = 0.0 if sp.issparse(X) else np.average(X, axis=0, weights=weight)
    return lloyd(X.astype(np.float64) - offset if np.ndim(offset) else X, weight, count, max_iter, rng) + offset


def lloyd(X: Any, weight: Array, count: int, max_iter: int, rng: np.random.Generator) -> Array:
    """Lloyd's k-means from a start by k-means++, on one thread.

    scikit-learn's k-means changes the number of threads of the whole process, and hangs in a child of a process that
    used OpenMP.
    """
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() if sp.issparse(X) else np.einsum("ij,ij->i", X, X)

    def distances(centres: Array) -> Array:
        squared = np.asarray(dot(X, centres.T))
        squared *= -2
        squared += squares[:, None]
        squared += np.einsum("ij,ij->i", centres, centres)
        return np.maximum(squared, 0, out=squared)

    centres = _spread_rows(X, weight, count, distances, rng)
    labels = np.full(X.shape[0], -1)
    for _ in range(max_iter):
        squared = distances(centres)
        before, labels = labels, squared.argmin(axis=1)
        if np.array_equal(before, labels):
            break
        members = sp.csr_array((weight, (labels, np.arange(len(labels)))), shape=(count, len(labels)))
        mass = np.asarray(members.sum(axis=1)).ravel()
        used = mass > 0
        centres[used] = dense(dot(members, X))[used] / mass[used, None]
        if not used.all():  # empty clusters move to the rows farthest from their centres
            farthest = np.argsort(-squared.min(axis=1), kind="stable")[: np.count_nonzero(~used)]
            centres[~used] = dense(X[farthest])
    return centres


def _spread_rows(
    X: Any, weight: Array, count: int, distances: Callable[[Array], Array], rng: np.random.Generator
) -> Array:
    """Rows far from each other (greedy k-means++): each is the best of a few, drawn by squared distance to the
    others."""
    tries = 2 + int(np.log(count))
    centres = np.empty((count, X.shape[1]))
    centres[0] = dense(X[[rng.choice(len(weight), p=weight / weight.sum())]])[0]
    nearest = distances(centres[:1])[:, 0]
    for k in range(1, count):
        share = np.cumsum(weight * nearest)
        drawn = np.minimum(np.searchsorted(share, rng.random(tries) * share[-1]), len(share) - 1)
        rows = dense(X[drawn])
        closer = np.minimum(nearest[:, None], distances(rows))
        best = int(dot(weight, closer).argmin())
        centres[k], nearest = rows[best], closer[:, best]
    return centres


def even_shares(sizes: list[int], count: int) -> list[int]:
    """``count`` split as evenly over groups as their sizes allow."""
    shares = [0] * len(sizes)
    for _ in range(min(count, sum(sizes))):
        open_ = [g for g in range(len(sizes)) if shares[g] < sizes[g]]
        g = min(open_, key=lambda g: (shares[g], -sizes[g]))
        shares[g] += 1
    return shares
