"""Candidate vectors of a sparse model as functions on the rows: kernel columns, or a low-rank factor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from ...data.duplicates import group_equal_rows
from ...linalg.arrays import Array
from ...linalg.matrix import (
    NotPositiveDefinite,
    cholesky,
    dot,
    inverse_lower,
    pivoted_cholesky,
    pivoted_qr_triangle,
    solve_lower,
    solve_upper,
)
from ...problem.bases import INDEPENDENCE
from ...problem.formulation import Kernel
from ..certificate import SMALLEST_NORMAL
from ..pivoted_cholesky import pivoted_factor

# With pruning, up to this many distinct rows keep the full rank of their kernel matrix.
FULL_RANK_ROWS = 300
# Squared distances to the span of the pivots, relative to k(x, x), that count as zero: with pruning, which ends with
# the exact kernel, and without, where the factor is final.
PRUNING_TOL, FACTOR_TOL = 1e-12, 1e-15
# Without pruning, up to DENSE_ROWS rows are all candidates; beyond, DENSE_RANK pivots are.
DENSE_ROWS, DENSE_RANK = 2000, 500
# Pivots are chosen among this many rows.
PIVOT_ROWS = 4000


@dataclass(frozen=True)
class MergedRows:
    """Distinct rows: k equal rows with the same label are merged into one with the sum of their costs."""

    first: Array  # row of the data
    X: Any
    y: Array
    C: Array
    candidates: Array  # positions of distinct inputs, whatever their labels
    candidate: Array  # the candidate that each row equals


def merge_duplicates(X: Any, y: Array, C: Array) -> MergedRows:
    """Merge rows with equal inputs and labels; rows with equal inputs are a single candidate."""
    number = group_equal_rows(X).group
    _, first, group = np.unique(2 * number + (y > 0), return_index=True, return_inverse=True)
    _, candidates, candidate = np.unique(number[first], return_index=True, return_inverse=True)
    return MergedRows(first, X[first], y[first], np.bincount(group, weights=C), candidates, candidate)


@dataclass(frozen=True)
class Coordinates:
    """Features ``G B`` of the rows, with maps from weights to coefficients and back."""

    G: Array
    B: Array
    coef: Callable[[Array], Array]
    weights: Callable[[Array], Array]


class CandidateSpace(Protocol):
    """Candidate vectors as functions on the rows."""

    @property
    def candidates(self) -> Array:
        """Numbers of the candidates."""

    @property
    def missing(self) -> float:
        """Largest error of k(z, z) in this space, relative to the largest k(z, z)."""

    @property
    def truncated(self) -> bool:
        """Is the kernel only approximated?"""

    @property
    def rank(self) -> int:
        """Number of dimensions."""

    @property
    def size(self) -> float:
        """The mean of k(z, z)."""

    def coordinates(self, ridge: Array, base: Any) -> Coordinates:
        """Coordinates in which ``1/2 a'(R + diag(ridge)) a`` is ``1/2 |w|^2``."""

    def quadratic(self, a: Array, base: Any) -> float:
        """``1/2 a'R a``."""

    def values(self, a: Array) -> Array:
        """``k(X, Z) a``."""

    def take(self, keep: Array) -> Any:
        """The space of some of the candidates."""


@dataclass(frozen=True)
class KernelColumns:
    """The exact kernel: one dimension for each candidate."""

    candidates: Array
    columns: Array  # k(X, candidates)
    gram: Array  # k(candidates, candidates)
    missing: ClassVar[float] = 0.0
    truncated: ClassVar[bool] = False

    @property
    def rank(self) -> int:
        return len(self.candidates)

    @property
    def size(self) -> float:
        return float(np.abs(self.gram.diagonal()).mean()) if len(self.gram) else 1.0

    def coordinates(self, ridge: Array, base: Any) -> Coordinates:
        # Scaled by s, R + diag(ridge) is the identity plus a positive semidefinite matrix: its pivots are 1 or more.
        s = 1 / np.sqrt(ridge)
        R = base.matrix(self.gram)
        M = R * np.outer(s, s)
        M[np.arange(len(s)), np.arange(len(s))] += 1
        try:
            L = cholesky(M)
        except NotPositiveDefinite:
            return self.qr_coordinates(R, s)
        B = s[:, None] * inverse_lower(L).T
        return Coordinates(self.columns, B, lambda w: dot(B, w), lambda a: dot(a / s, L))

    def qr_coordinates(self, R: Array, s: Array) -> Coordinates:
        """Coordinates by QR of ``[F s; I]``, with ``R ~ F'F``, for where rounding of R is larger than the ridge.

        An indefinite R is replaced by its positive part.
        """
        F, _ = pivoted_cholesky(R, FACTOR_TOL * float(R.diagonal().max()))
        if np.abs(R - dot(F.T, F)).max() > INDEPENDENCE * np.abs(R).max():
            values, basis = np.linalg.eigh(R)
            F = np.sqrt(np.maximum(values, 0))[:, None] * basis.T
        rows = np.vstack([F * s, np.eye(len(s))])
        triangle, order = pivoted_qr_triangle(rows[np.argsort(-np.abs(rows).max(axis=1), kind="stable")])
        B = np.empty_like(triangle)
        B[order] = s[order, None] * solve_upper(triangle, np.eye(len(s)))
        return Coordinates(self.columns, B, lambda w: dot(B, w), lambda a: dot(triangle, (a / s)[order]))

    def quadratic(self, a: Array, base: Any) -> float:
        return 0.5 * float(dot(a, dot(base.matrix(self.gram), a)))

    def values(self, a: Array) -> Array:
        return dot(self.columns, a)

    def take(self, keep: Array) -> KernelColumns:
        return KernelColumns(self.candidates[keep], self.columns[:, keep], self.gram[np.ix_(keep, keep)])


@dataclass(frozen=True)
class LowRank:
    """A low-rank kernel, ``k(X, Z) ~ G H'`` and ``k(Z, Z) ~ H H'``: one dimension for each column of the factor.

    With ``z = H'a``, the best a for a given z has the penalty ``1/2 z' T^-1 z`` where ``T = H' diag(1/ridge) H``.
    """

    candidates: Array
    G: Array
    H: Array
    mean_size: float
    missing: float = 0.0  # largest error of k(z, z), relative to the largest k(z, z)

    @property
    def truncated(self) -> bool:
        return self.missing > INDEPENDENCE

    @property
    def rank(self) -> int:
        return self.G.shape[1]

    @property
    def size(self) -> float:
        return self.mean_size

    def coordinates(self, ridge: Array, base: Any) -> Coordinates:
        # Over an identity R there is no kernel norm, and the ridge is 1 larger.
        norm, s2 = (1.0, 1 / ridge) if base.follows_kernel else (0.0, 1 / (ridge + 1))
        scaled = self.H * np.sqrt(s2)[:, None]
        T = dot(scaled.T, scaled)
        # T = L L' up to rounding; with z = L v the penalty is 1/2 v'(I + norm L'L) v = 1/2 |C'v|^2.
        factor, pivots = pivoted_cholesky(T, 1e-14 * float(T.diagonal().max(initial=0.0)))
        C = cholesky(norm * dot(factor, factor.T) + np.eye(len(pivots)))
        to_z = solve_lower(C, factor).T
        corner = factor[:, pivots]  # of L': the entries of z at the pivots determine v
        from_z, back = np.zeros(to_z.shape), np.zeros(to_z.shape)
        from_z[pivots] = solve_upper(corner, C)
        back[pivots] = solve_upper(corner, inverse_lower(C).T)
        return Coordinates(
            self.G, to_z, lambda w: s2 * dot(self.H, dot(back, w)), lambda a: dot(dot(a, self.H), from_z)
        )

    def quadratic(self, a: Array, base: Any) -> float:
        z = dot(a, self.H) if base.follows_kernel else a
        return 0.5 * float(dot(z, z))

    def values(self, a: Array) -> Array:
        return dot(self.G, dot(a, self.H))

    def take(self, keep: Array) -> LowRank:
        return LowRank(self.candidates[keep], self.G, self.H[keep], self.mean_size, self.missing)


def starting_space(kernel: Kernel, data: MergedRows, rank: int, pruning: bool, threads: int) -> LowRank:
    """The candidates over a factor of their kernel matrix, which is truncated to ``rank`` if they are many.

    With ``pruning`` (vectors are dropped), later rounds use the exact kernel of the few that remain. Without, the
    factor determines the result: it is that of all candidates or, where they are too many, of a subset of them.
    """
    candidates = data.candidates
    n = len(candidates)
    Z = data.X[candidates]
    size = kernel.diagonal(Z)
    eta = (PRUNING_TOL if pruning else FACTOR_TOL) * float(size.max())
    most = n if n <= (FULL_RANK_ROWS if pruning else DENSE_ROWS) else rank if pruning else DENSE_RANK
    some = np.arange(0, n, -(-n // PIVOT_ROWS))
    pivots, factor, _ = pivoted_factor(kernel, Z[some], eta, most, threads)
    if len(some) == n:
        H = np.ascontiguousarray(factor.T)
    else:
        L = np.tril(factor[:, pivots].T)  # Cholesky factor of the kernel matrix of the pivots
        # Contiguous rows: solvers select rows many times.
        values = kernel(Z[some[pivots]], Z, threads=threads)
        H = solve_lower(L, values).T.copy()
    G = H if n == data.X.shape[0] else H[data.candidate]
    if not pruning and n > DENSE_ROWS:
        return LowRank(candidates[some[pivots]], G, H[some[pivots]], float(size.mean()))
    rest = size - np.einsum("ij,ij->i", H, H)
    keep = distinct_to_kernel(H, rest, INDEPENDENCE * float(size.max()))
    return LowRank(
        candidates[keep], G, H[keep], float(size.mean()), float(rest.max() / max(size.max(), SMALLEST_NORMAL))
    )


def distinct_to_kernel(H: Array, rest: Array, same: float) -> Array:
    """Rows of H that are distinct up to rounding; other candidates equal one of them as far as the kernel can tell."""
    # Sorted by the product with one vector, equal rows are neighbours.
    order = np.argsort(dot(H, np.sqrt(1 + np.arange(H.shape[1]))), kind="stable")
    known = rest[order] <= same
    steps = np.einsum("ij,ij->i", *(2 * [np.diff(H[order], axis=0)]))
    copy = np.append(False, (steps <= 1e-4 * same) & known[1:] & known[:-1])
    return np.sort(order[~copy])
