"""Matrix products and factors with the same bits on any number of threads.

They run in the core on the given number of threads, not in BLAS, whose threads are a setting of the whole process.
numpy multiplies matrices so small that BLAS uses one thread, and dtypes other than float32 and float64; sparse matrices
and arrays of other libraries use their own products.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .arrays import Array, aligned

# OpenBLAS uses threads from 2^18 multiplications on in matrix products, from 9216 on in matrix-vector products.
MAX_NUMPY_PRODUCT = 1 << 15  # multiplications up to which numpy computes a product of matrices
MAX_NUMPY_VECTOR_PRODUCT = 1 << 12  # the same with a vector, or of a matrix with its transpose
MAX_LAPACK_UNKNOWNS = 100  # unknowns up to which LAPACK uses one thread
CORE_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
LOWER, LOWER_TRANSPOSED, UNIT_LOWER, UPPER = range(4)  # triangles, as the core numbers them


class NotPositiveDefinite(np.linalg.LinAlgError):
    """A matrix has no Cholesky factor."""


def dot(A: Any, B: Any, threads: int = 1) -> Any:
    """``A @ B``."""
    if type(A) is not np.ndarray or type(B) is not np.ndarray:
        plain = isinstance(A, np.ndarray) and isinstance(B, np.ndarray)  # subclasses such as memory maps
        return dot(np.asarray(A), np.asarray(B), threads) if plain else A @ B
    size = A.size * B.shape[-1] if B.ndim == 2 else A.size
    if size <= MAX_NUMPY_VECTOR_PRODUCT or A.ndim not in (1, 2) or B.ndim not in (1, 2):
        return A @ B
    dtype = A.dtype if A.dtype == B.dtype else np.result_type(A, B)
    if dtype not in CORE_DTYPES:
        return A @ B
    left = A if A.ndim == 2 else A[None]
    right = B if B.ndim == 2 else B[:, None]
    symmetric = _is_transpose(left, right)
    if left.shape[1] != right.shape[0] or (
        size <= MAX_NUMPY_PRODUCT and not symmetric and min(left.shape[0], right.shape[1]) > 1
    ):
        return A @ B
    left, right = left.astype(dtype, copy=False), right.astype(dtype, copy=False)
    if not (left.flags.aligned and right.flags.aligned):
        left, right = aligned(left), aligned(right)
    out = np.empty((left.shape[0], right.shape[1]), dtype=left.dtype)
    _core.product(left, right, out, threads, symmetric)
    if A.ndim == 2 and B.ndim == 2:
        return out
    return out[0, 0] if A.ndim == B.ndim else out.ravel()


def _is_transpose(A: Array, B: Array) -> bool:
    """Whether B is the transpose of A in the same memory: half of the symmetric product is then enough."""
    return (
        A.shape[0] > 1
        and A.shape == B.shape[::-1]
        and A.strides == B.strides[::-1]
        and A.dtype == B.dtype
        and A.__array_interface__["data"][0] == B.__array_interface__["data"][0]
    )


def subtract_dot(C: Array, A: Array, B: Array, threads: int = 1) -> None:
    """``C -= A @ B`` in place, in float64; C may be a view, but must not overlap A or B."""
    _core.product(A, B, C, threads, False, True)


def norm(x: Array) -> float:
    """The Euclidean norm of a vector."""
    return float(np.sqrt(dot(x, x)))


def cholesky(A: Array, threads: int = 1, overwrite: bool = False) -> Array:
    """The lower Cholesky factor of a matrix, from its lower triangle; ``overwrite`` reuses the memory of A.

    Raises `NotPositiveDefinite` if there is none.
    """
    L = np.array(A, dtype=np.float64, order="C", copy=not overwrite or None)
    if not _core.cholesky(L, threads):
        raise NotPositiveDefinite("the matrix is not positive definite")
    return L


def jittered_cholesky(A: Array, threads: int = 1) -> Array:
    """The lower Cholesky factor of a matrix that is positive semidefinite up to rounding, with the smallest jitter that
    suffices: the diagonal grows by at most a factor of 1 + 1e-9."""
    for lift in (0.0, 1e-15, 1e-13, 1e-11, 1e-9):
        L = np.array(A, dtype=np.float64, order="C")
        L.flat[:: len(L) + 1] *= 1 + lift
        if _core.cholesky(L, threads):
            return L
    raise NotPositiveDefinite("the matrix is not positive semidefinite")


def is_positive_definite(A: Array, lift: float = 0.0) -> bool:
    """Whether the matrix with ``lift`` added to its diagonal has a Cholesky factor."""
    L = np.array(A, dtype=np.float64, order="C")
    L.flat[:: len(L) + 1] += lift
    return _core.cholesky(L, 1)


def inverse_lower(L: Array, threads: int = 1, overwrite: bool = False) -> Array:
    """The inverse of a lower triangular matrix; entries above the diagonal are ignored."""
    inverse = np.array(L, dtype=np.float64, order="C", copy=not overwrite or None)
    _core.inverse_lower(inverse, threads)
    return inverse


def cho_solve(L: Array, B: Array, threads: int = 1) -> Array:
    """Solve ``L L' x = b`` for a vector, or for each column of a matrix."""
    return _solve_triangles(L, B, [LOWER, LOWER_TRANSPOSED], threads)


def solve_lower(L: Array, B: Array, transposed: bool = False, threads: int = 1) -> Array:
    """``L^-1 B``, or ``L'^-1 B`` if transposed; entries above the diagonal of L are ignored."""
    return _solve_triangles(L, B, [LOWER_TRANSPOSED if transposed else LOWER], threads)


def solve_upper(U: Array, B: Array, threads: int = 1) -> Array:
    """``U^-1 B`` for an upper triangular matrix."""
    return _solve_triangles(U, B, [UPPER], threads)


class LUFactors:
    """The LU factors of a square matrix, with row pivoting."""

    def __init__(self, A: Array, threads: int = 1, overwrite: bool = False):
        self.factor, self.threads = np.array(A, dtype=np.float64, order="C", copy=not overwrite or None), threads
        self.order, self.regular = _core.eliminate(self.factor, threads)

    def solve(self, B: Array) -> Array:
        """``A^-1 B``; a zero pivot gives infinities."""
        return _solve_triangles(self.factor, B[self.order], [UNIT_LOWER, UPPER], self.threads)


def solve(A: Array, B: Array, threads: int = 1) -> Array:
    """``A^-1 B`` for a square matrix; LinAlgError if it is singular."""
    factors = LUFactors(A, threads)
    if not factors.regular:
        raise np.linalg.LinAlgError("the matrix is singular")
    return factors.solve(B)


def qr(A: Array, threads: int = 1) -> tuple[Array, Array]:
    """The reduced QR factors of A: orthonormal columns Q, and an upper triangle R."""
    R = np.array(A, dtype=np.float64, order="C")
    Q = np.empty((len(R), min(R.shape)))
    _core.orthogonal(R, Q, threads)
    return Q, R[: Q.shape[1]]


def pivoted_qr_triangle(A: Array) -> tuple[Array, Array]:
    """R and ``order`` of the column-pivoted QR factorisation ``A[:, order] = Q R``; A has at least as many rows as
    columns."""
    most = float(np.abs(A).max(initial=0.0))
    power = np.frexp(most)[1] if np.isfinite(most) else 0  # squares must not overflow
    columns = np.ascontiguousarray(np.ldexp(A.T, -power))
    order = _core.triangularize(columns)
    n = len(columns)
    return np.ldexp(np.triu(columns[:, :n].T), power), order


def pivoted_cholesky(A: Array, least: float) -> tuple[Array, Array]:
    """The pivoted Cholesky factor ``A ~ G'G`` and its pivots; it ends when the remaining diagonal is at most ``least``.

    Column ``pivots[k]`` of G is zero from row k + 1 on.
    """
    A = np.ascontiguousarray(A, dtype=np.float64)
    G = np.empty_like(A)
    pivots = _core.pivoted_cholesky(A, G, least)
    return G[: len(pivots)], pivots


def solve_batch(A: Array, b: Array) -> tuple[Array, Array]:
    """Solve ``A x = b`` for each of several matrices and vectors; return also the logarithms of ``|det A|``."""
    if A.shape[-1] <= MAX_LAPACK_UNKNOWNS:
        return np.linalg.solve(A, b[..., None])[..., 0], np.linalg.slogdet(A)[1]
    factors = [LUFactors(one) for one in A]
    found = np.array([one.solve(right) for one, right in zip(factors, b, strict=True)]).reshape(b.shape)
    return found, np.array([np.log(np.abs(one.factor.diagonal())).sum() for one in factors])


def _solve_triangles(T: Array, B: Array, kinds: list[int], threads: int) -> Array:
    x = np.array(B, dtype=np.float64, order="C")
    _core.solve_triangles(np.ascontiguousarray(T, dtype=np.float64), x if x.ndim == 2 else x[:, None], kinds, threads)
    return x
