"""Kernels. The built-in ones are evaluated by the core, dense or sparse; any function k(X, Z) will do too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..formulation import Array, Kernel, Part

__all__ = [
    "ALL",
    "Function",
    "Gaussian",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Precomputed",
    "Scaled",
    "Sigmoid",
    "resolve",
    "scale_gamma",
]


def _offset(X: Any) -> Array | None:
    """A common offset to take out of the rows before they are rounded to float32, if it is large beside their spread.

    Rounding and differences of squares lose the digits that a common offset takes.
    """
    if sp.issparse(X) or X.shape[0] == 0:
        return None
    rows = np.asarray(X[:: max(1, X.shape[0] // 64)], dtype=np.float64)
    with np.errstate(over="ignore"):
        center = rows.sum(axis=0) / len(rows)
        around = rows - center
        return center if 4 * np.vdot(around, around) / len(rows) < center @ center < np.inf else None


def aligned(X: Array) -> Array:
    """X, or a copy where its numbers lie across the machine's words, as in a record array or a buffer of bytes."""
    return X if X.flags.aligned and not any(step % X.itemsize for step in X.strides) else X.copy()


def core_rows(X: Any, offset: Array | None = None) -> _core.Rows:
    """The core's view of X: no copy for float arrays of any layout and for CSR."""
    if sp.issparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        index = np.result_type(X.indices, X.indptr)
        starts, columns = (aligned(np.ascontiguousarray(part, dtype=index)) for part in (X.indptr, X.indices))
        return _core.sparse_rows(aligned(np.ascontiguousarray(X.data)), columns, starts, X.shape[1])
    return _core.dense_rows(aligned(X), offset)


def _contiguous(X: Any) -> bool:
    return not sp.issparse(X) and bool(X.flags.c_contiguous)


def _as_float(X: Any) -> Any:
    if sp.issparse(X):
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    X = np.asarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _weighted_rows(W: Array, X: Any) -> Array:
    """``W' X``, dense."""
    return (X.T @ W).T if sp.issparse(X) else W.T @ X


def _dense(Z: Any) -> Array:
    return Z.toarray() if sp.issparse(Z) else Z


def _into(out: Array | None, K: Array) -> Array:
    if out is None:
        return K
    out[...] = K
    return out


def _row_squares(X: Any) -> Array:
    """``|x_i|^2`` in float64."""
    if sp.issparse(X):
        return np.asarray(X.power(2).sum(axis=1, dtype=np.float64)).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _positive_gamma(gamma: Any) -> float:
    if not _is_number(gamma) or not 0 < gamma < np.inf:
        raise ValueError(f"gamma={gamma!r} must be a positive number (an estimator also takes 'scale' and 'auto')")
    return float(gamma)


def _whole_degree(degree: Any) -> int:
    if not isinstance(degree, (int, np.integer)) or isinstance(degree, bool) or not 0 <= degree <= 1000:
        raise ValueError(f"degree={degree!r} must be an integer of at least 0 and at most 1000")
    return int(degree)


class _CoreKernel(Part):
    """What the kernels that the core evaluates have in common."""

    name: ClassVar[str]
    translation_invariant: ClassVar[bool] = False
    positive_semidefinite: ClassVar[bool] = True

    def core(self) -> _core.Kernel:
        raise NotImplementedError

    def _offset(self, X: Any) -> Array | None:
        return _offset(X) if self.translation_invariant else None

    def __call__(self, X: Any, Z: Any, out: Array | None = None, threads: int = 1) -> Array:
        """The matrix k(x_i, z_j), in float64 or the type of ``out``."""
        X, Z = _as_float(X), _as_float(Z)
        offset = None if sp.issparse(X) or sp.issparse(Z) else self._offset(Z)
        out = np.empty((X.shape[0], Z.shape[0])) if out is None else out
        _core.kernel_matrix(self.core(), core_rows(X, offset), core_rows(Z, offset), out, threads)
        return out

    def machine(self, X: Any, order: Array, lengths: list[int], cache_bytes: int, threads: int) -> _core.Machine:
        """The core's solver over the rows ``X[order]``."""
        return _core.kernel_machine(core_rows(X, self._offset(X)), order, lengths, self.core(), cache_bytes, threads)

    def decision(self, X: Any, vectors: Any, coef: Array, bias: Array, threads: int = 1) -> Array:
        """``k(X, vectors) @ coef.T + bias``, in float32 where X is."""
        # The core compares a few rows in memory by differences, which lose no digits.
        few = X.shape[0] <= _core.few_rows and X.dtype == vectors.dtype
        offset = None if sp.issparse(X) or (few and _contiguous(X) and _contiguous(vectors)) else self._offset(vectors)
        single = X.dtype == np.float32
        return _core.decision(
            self.core(), core_rows(vectors, offset), core_rows(X, offset), coef, bias, single, threads
        )


@dataclass(frozen=True)
class Linear(_CoreKernel):
    """``x.z``"""

    name = "linear"

    def core(self) -> _core.Kernel:
        return _core.linear()

    def diagonal(self, X: Any) -> Array:
        return _row_squares(_as_float(X))

    def pullback(self, X: Any, Z: Array, W: Array, K: Array | None = None) -> Array:
        """``sum_i W_ij x_i``."""
        return _weighted_rows(W, X)


@dataclass(frozen=True)
class Gaussian(_CoreKernel):
    """``exp(-gamma |x - z|^2)``"""

    gamma: float = 1.0
    name = "rbf"
    translation_invariant = True

    @property
    def length(self) -> float:
        """A distance over which the kernel changes."""
        return (2 * self.gamma) ** -0.5

    def core(self) -> _core.Kernel:
        return _core.gaussian(_positive_gamma(self.gamma))

    def diagonal(self, X: Any) -> Array:
        return np.ones(X.shape[0])

    def pullback(self, X: Any, Z: Array, W: Array, K: Array | None = None) -> Array:
        """``2 gamma sum_i W_ij k(x_i, z_j) (x_i - z_j)``."""
        M = W * (self(X, Z) if K is None else K)
        return 2 * self.gamma * (_weighted_rows(M, X) - M.sum(axis=0)[:, None] * _dense(Z))


@dataclass(frozen=True)
class Laplacian(_CoreKernel):
    """``exp(-gamma |x - z|_1)``"""

    gamma: float = 1.0
    name = "laplacian"
    translation_invariant = True

    @property
    def length(self) -> float:
        """A distance over which the kernel changes."""
        return 1 / self.gamma

    def core(self) -> _core.Kernel:
        return _core.laplacian(_positive_gamma(self.gamma))

    def diagonal(self, X: Any) -> Array:
        return np.ones(X.shape[0])

    def pullback(self, X: Any, Z: Array, W: Array, K: Array | None = None) -> Array:
        """``gamma sum_i W_ij k(x_i, z_j) sign(x_i - z_j)``; zero where a coordinate is the same in both."""
        M = W * (self(X, Z) if K is None else K)
        Z = _dense(Z)
        columns = (np.ravel(_dense(X[:, [k]])) for k in range(X.shape[1]))
        signs = (np.einsum("ij,ij->j", M, np.sign(x[:, None] - Z[:, k])) for k, x in enumerate(columns))
        return self.gamma * np.stack(list(signs), axis=1)


@dataclass(frozen=True)
class Polynomial(_CoreKernel):
    """``(gamma x.z + coef0) ** degree``"""

    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3
    name = "poly"

    def core(self) -> _core.Kernel:
        return _core.polynomial(_positive_gamma(self.gamma), self.coef0, _whole_degree(self.degree))

    def diagonal(self, X: Any) -> Array:
        return (self.gamma * _row_squares(_as_float(X)) + self.coef0) ** self.degree

    def pullback(self, X: Any, Z: Array, W: Array, K: Array | None = None) -> Array:
        """``degree gamma sum_i W_ij (gamma x_i.z_j + coef0)^(degree - 1) x_i``."""
        if self.degree == 0:
            return np.zeros(Z.shape)
        slope = Polynomial(self.gamma, self.coef0, self.degree - 1)(X, Z)
        return self.degree * self.gamma * _weighted_rows(W * slope, X)


@dataclass(frozen=True)
class Sigmoid(_CoreKernel):
    """``tanh(gamma x.z + coef0)``: not positive semidefinite in general."""

    gamma: float = 1.0
    coef0: float = 0.0
    name = "sigmoid"
    positive_semidefinite = False

    def core(self) -> _core.Kernel:
        return _core.sigmoid(_positive_gamma(self.gamma), self.coef0)

    def diagonal(self, X: Any) -> Array:
        return np.tanh(self.gamma * _row_squares(_as_float(X)) + self.coef0)

    def pullback(self, X: Any, Z: Array, W: Array, K: Array | None = None) -> Array:
        """``gamma sum_i W_ij (1 - k(x_i, z_j)^2) x_i``."""
        K = self(X, Z) if K is None else K
        return self.gamma * _weighted_rows(W * (1 - K**2), X)


@dataclass(frozen=True, eq=False)
class Scaled(Part):
    """``kernel(scales * x, scales * z)``: a kernel with one scale for each input."""

    kernel: Any = Gaussian()
    scales: Any = 1.0
    translation_invariant: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def positive_semidefinite(self) -> bool:
        return self.kernel.positive_semidefinite

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Scaled) and self.kernel == other.kernel
        return same and np.array_equal(self.scales, other.scales)  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self.kernel, np.asarray(self.scales, dtype=np.float64).tobytes()))

    def apply(self, X: Any) -> Any:
        """``scales * x`` for each row."""
        X = _as_float(X)
        if np.ndim(self.scales) and len(self.scales) != X.shape[1]:
            raise ValueError(f"there are scales for {len(self.scales)} columns; the rows have {X.shape[1]}")
        scales = np.broadcast_to(np.asarray(self.scales, dtype=X.dtype), X.shape[1:])
        return sp.csr_array(X @ sp.diags_array(scales)) if sp.issparse(X) else X * scales

    def __call__(self, X: Any, Z: Any, out: Array | None = None, threads: int = 1) -> Array:
        """The matrix k(x_i, z_j)."""
        return self.kernel(self.apply(X), self.apply(Z), out=out, threads=threads)

    def diagonal(self, X: Any) -> Array:
        return self.kernel.diagonal(self.apply(X))

    def pullback(self, X: Any, Z: Array, W: Array, K: Array | None = None) -> Array:
        """The scales times the kernel's own pullback."""
        return np.asarray(self.scales) * self.kernel.pullback(self.apply(X), self.apply(Z), W, K)

    def machine(self, X: Any, order: Array, lengths: list[int], cache_bytes: int, threads: int) -> _core.Machine:
        return self.kernel.machine(self.apply(X), order, lengths, cache_bytes, threads)

    def decision(self, X: Any, vectors: Any, coef: Array, bias: Array, threads: int = 1) -> Array:
        """Row blocks, so that the scaled rows take little memory."""
        rows = max(1, (2 << 20) // max(1, X.shape[1]))
        Z = self.apply(vectors)
        blocks = (self.apply(X[i : i + rows]) for i in range(0, X.shape[0], rows))
        parts = [self.kernel.decision(block, Z, coef, bias, threads) for block in blocks]
        return np.concatenate(parts) if parts else np.empty((0, len(bias)))


@dataclass(frozen=True)
class Precomputed(Part):
    """X is the kernel matrix itself: square to fit, ``k(x, training rows)`` to predict."""

    name: ClassVar[str] = "precomputed"
    positive_semidefinite: ClassVar[bool] = False

    def __call__(self, X: Any, Z: Any, out: Array | None = None, threads: int = 1) -> Array:
        """The columns of X for the training rows Z."""
        return _into(out, np.asarray(X)[:, Z])

    def diagonal(self, X: Any) -> Array:
        return np.asarray(X, dtype=np.float64).diagonal()

    def machine(self, X: Any, order: Array, lengths: list[int], cache_bytes: int, threads: int) -> _core.Machine:
        return _core.matrix_machine(aligned(X), order, lengths, cache_bytes, threads)

    def decision(self, X: Any, vectors: Any, coef: Array, bias: Array, threads: int = 1) -> Array:
        """``vectors`` are row numbers of the training data. A row's value does not depend on the other rows."""
        columns = X[:, vectors]
        columns = columns.toarray() if sp.issparse(columns) else np.ascontiguousarray(columns)
        return np.einsum("ij,oj->io", columns, coef, dtype=np.float64) + bias


@dataclass(frozen=True)
class Lookup(Part):
    """Kernel values looked up in a matrix; a "row" is its number. So a precomputed kernel acts as any other."""

    matrix: Array
    name: ClassVar[str] = "lookup"
    positive_semidefinite: ClassVar[bool] = False

    def __call__(self, X: Any, Z: Any, out: Array | None = None, threads: int = 1) -> Array:
        """The entries at the given row and column numbers."""
        return _into(out, self.matrix[np.ix_(X[:, 0], Z[:, 0])].astype(np.float64, copy=False))

    def diagonal(self, X: Any) -> Array:
        return self.matrix[X[:, 0], X[:, 0]].astype(np.float64)


@dataclass(frozen=True)
class Function(Part):
    """Any function ``k(X, Z)`` that returns the matrix of kernel values."""

    function: Callable[[Any, Any], Any]
    name: ClassVar[str] = "callable"
    positive_semidefinite: ClassVar[bool] = False

    def __call__(self, X: Any, Z: Any, out: Array | None = None, threads: int = 1) -> Array:
        """The function's matrix, checked for shape and finite values."""
        expected = (X.shape[0], Z.shape[0])
        try:
            K = np.ascontiguousarray(self.function(X, Z), dtype=np.float64)
        except Exception as error:
            error.add_note(
                f"A kernel function gets two sets of rows (here {X.shape} and {Z.shape}) and returns the matrix "
                f"of kernel values between them (here {expected})."
            )
            raise
        if K.shape != expected:
            raise ValueError(
                f"the kernel function returned shape {K.shape} where {expected} was expected: it gets two sets "
                "of rows and returns the matrix of kernel values between them"
            )
        if not np.isfinite(K).all():
            raise ValueError("the kernel function returned NaN or infinite values")
        return _into(out, K)

    def diagonal(self, X: Any) -> Array:
        return np.concatenate([self(X[i : i + 64], X[i : i + 64]).diagonal() for i in range(0, X.shape[0], 64)])

    def machine(self, X: Any, order: Array, lengths: list[int], cache_bytes: int, threads: int) -> _core.Machine:
        def block(positions: list[int], first: int, count: int) -> Array:
            return self(X[order[positions]], X[order[first : first + count]])

        return _core.function_machine(block, self.diagonal(X[order]), lengths, cache_bytes, threads)

    def decision(self, X: Any, vectors: Any, coef: Array, bias: Array, threads: int = 1) -> Array:
        """Row blocks of at most 16 MB of kernel values."""
        rows = max(1, (2 << 20) // max(1, vectors.shape[0]))
        parts = [self(X[i : i + rows], vectors) @ coef.T + bias for i in range(0, X.shape[0], rows)]
        return np.concatenate(parts) if parts else np.empty((0, len(bias)))


ALL: tuple[type, ...] = (Linear, Gaussian, Laplacian, Polynomial, Sigmoid, Scaled, Precomputed, Function)


def scale_gamma(gamma: float | str, X: Any, weight: Array | None = None) -> float:
    """The number that ``gamma="scale"``, ``"auto"`` or a number stands for, as in scikit-learn.

    Rows count by their weights: a row of weight 2 counts as two rows.
    """
    if isinstance(gamma, str):
        if gamma == "auto":
            return 1.0 / X.shape[1]
        if gamma == "scale":
            variance = _variance(X, np.ones(X.shape[0]) if weight is None else weight)
            return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    elif _is_number(gamma) and 0 < gamma < np.inf:
        return float(gamma)
    raise ValueError(f"gamma={gamma!r} must be 'scale', 'auto' or a positive number")


def _variance(X: Any, weight: Array) -> float:
    """Variance of all entries, a block of rows at a time."""
    size = weight.sum() * X.shape[1]
    if sp.issparse(X):
        w = np.repeat(weight, np.diff(X.indptr))
        mean = (w @ X.data) / size
        return float((w @ (X.data - mean) ** 2 + (size - w.sum()) * mean**2) / size)
    rows = max(1, (1 << 16) // X.shape[1])
    blocks = [slice(i, i + rows) for i in range(0, X.shape[0], rows)]
    mean = sum(float(weight[b] @ X[b].sum(axis=1, dtype=np.float64)) for b in blocks) / size
    total = 0.0
    for b in blocks:
        around = np.subtract(X[b], mean, dtype=np.float64)
        total += float(weight[b] @ np.einsum("ij,ij->i", around, around))
    return total / size


def resolve(kernel: Any, gamma: float | str, degree: int, coef0: float, X: Any, weight: Array | None = None) -> Kernel:
    """The kernel object for a name, a function or an object, with gamma made a number."""
    if isinstance(kernel, str):
        if kernel == "linear":
            return Linear()
        if kernel == "precomputed":
            return Precomputed()
        if kernel in ("rbf", "laplacian"):
            return (Gaussian if kernel == "rbf" else Laplacian)(scale_gamma(gamma, X, weight))
        if kernel == "sigmoid":
            return Sigmoid(scale_gamma(gamma, X, weight), float(coef0))
        if kernel == "poly":
            return Polynomial(scale_gamma(gamma, X, weight), float(coef0), _whole_degree(degree))
    elif isinstance(kernel, type):
        raise ValueError(f"kernel={kernel.__name__} is a class; pass an object of it, such as kernels.Gaussian(0.5)")
    elif hasattr(kernel, "machine") and hasattr(kernel, "decision"):
        return kernel
    elif callable(kernel):
        return Function(kernel)
    names = ["linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"]
    raise ValueError(
        f"kernel={kernel!r} is not known; use one of {names}, a function k(X, Z), or an object of slimsvm.kernels"
    )
