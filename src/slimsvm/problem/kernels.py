"""Kernels. The built-in ones are evaluated by the core, dense or sparse; any function k(X, Z) works too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..data.duplicates import row_slices
from ..linalg.array_api import asarray_like, cast, device, is_array_api, namespace, widest_float
from ..linalg.arrays import Array, aligned, as_float64, core_rows, is_remote
from ..linalg.matrix import dot
from .formulation import Part

__all__ = [
    "ALL",
    "Base",
    "Function",
    "Gaussian",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Precomputed",
    "Scaled",
    "Sigmoid",
    "check",
    "resolve",
    "scale_gamma",
    "takes_gamma",
]


def _offset(X: Any) -> Array | None:
    """A common offset to take out of the rows before they are rounded to float32, if it is large beside their spread.

    Rounding and differences of squares lose the digits that a common offset takes.
    """
    if sp.issparse(X) or X.shape[0] == 0:
        return None
    rows = np.asarray(X[:: max(1, X.shape[0] // 64)], dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        center = rows.sum(axis=0) / len(rows)
        offset = np.dot(center, center)
        # What is lost where this spread is small beside the offset does not change the verdict.
        spread = np.einsum("ij,ij->", rows, rows) / len(rows) - offset
    return center if 4 * spread < offset < np.inf else None


def _as_float(X: Any) -> Any:
    if is_array_api(X):
        return X
    if sp.issparse(X):
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    X = np.asarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _weighted_rows(W: Array, X: Any) -> Array:
    """``W' X``, dense."""
    return (X.T @ W).T if sp.issparse(X) else dot(W.T, X)


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
    if is_array_api(X):
        return namespace(X).sum(cast(X, widest_float(X)) ** 2, axis=1)
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def _ones(X: Any) -> Array:
    """One for each row."""
    return asarray_like(X, np.ones(X.shape[0]), widest_float(X)) if is_array_api(X) else np.ones(X.shape[0])


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


class Base(Part):
    """What a kernel declares. A class of your own inherits it, and has the call and `diagonal` at least."""

    name: ClassVar[str] = "own"
    translation_invariant: ClassVar[bool] = False
    positive_semidefinite: ClassVar[bool] = False
    keeps_rows: ClassVar[bool] = False
    in_core: ClassVar[bool] = False  # does the core evaluate it?
    gamma: float | None = None
    scales: Any = 1.0

    @property
    def differentiable(self) -> bool:
        """Does it have a derivative (a method ``pullback``)?"""
        return hasattr(self, "pullback")

    def __call__(self, X: Any, Z: Any, out: Array | None = None, threads: int = 1) -> Array:
        """The matrix k(x_i, z_j), written into ``out`` if that is given."""
        raise NotImplementedError(f"{type(self).__name__} must implement __call__(X, Z, out, threads)")

    def diagonal(self, X: Any) -> Array:
        """The values k(x_i, x_i)."""
        n = X.shape[0]
        parts = (X[i : min(i + 64, n), :] for i in range(0, n, 64))
        found = [namespace(K).linalg.diagonal(K) for K in (self(part, part) for part in parts)]
        return namespace(found[0]).concat(found) if found else np.empty(0)

    def length(self, X: Any) -> float:
        """The root of the mean square of all entries: a kernel of products has no other length."""
        square = X.mean_square() if is_remote(X) else X.power(2).mean() if sp.issparse(X) else np.mean(X**2)
        return float(np.sqrt(square)) or 1.0

    def dimensions(self, inputs: int) -> float:
        """Of the kernel's space, as far as is known: more vectors than that are never needed."""
        return np.inf

    def machine(self, X: Any, order: Array, lengths: list[int], cache_bytes: int, threads: int) -> _core.Machine:
        """The core's solver over the rows ``X[order]``, a block of kernel values at a time."""

        def block(positions: list[int], first: int, count: int) -> Array:
            return np.ascontiguousarray(self(X[order[positions]], X[order[first : first + count]]), dtype=np.float64)

        return _core.function_machine(block, self.diagonal(X[order]), lengths, cache_bytes, threads)

    def decision(self, X: Any, vectors: Any, coef: Array, bias: Array, threads: int = 1) -> Array:
        """``k(X, vectors) @ coef.T + bias``, in row blocks of at most 16 MB of kernel values."""
        rows = max(1, (2 << 20) // max(1, vectors.shape[0]))
        parts = [dot(self(X[i : i + rows], vectors), coef.T, threads) + bias for i in range(0, X.shape[0], rows)]
        return np.concatenate(parts) if parts else np.empty((0, len(bias)))

    def row_model(self, vectors: Array, coef: Array, bias: Array) -> _core.RowModel | None:
        """The same for one row at a time, in the core; None where Python evaluates the kernel."""
        return None

    def fitted(self, vectors: Any) -> tuple[Any, Any]:
        """Kernel and vectors as a fitted model keeps them: a copy, as the user's own object may change."""
        return copy(self), vectors


def _of_products(factor: float, products: Array, Z: Array) -> tuple[Array, Array]:
    """`Gaussian.pulled` for a kernel of ``x.z``, whose slope is ``factor`` times what the sums were made with."""
    G = factor * products[:, :-1]
    return G, np.einsum("jk,jk->k", Z, G)


def _core_view(kernel: Any, X: Any, Z: Any, scales: Array | None) -> tuple[_core.Rows, _core.Kernel, _core.Rows]:
    mixed = sp.issparse(X) or sp.issparse(Z)
    offset = None if mixed else kernel._offset(Z if scales is None else Z * scales)
    return core_rows(X, offset, scales), kernel.core(), core_rows(Z, offset, scales)


class _CoreKernel(Base):
    """What the kernels that the core evaluates have in common."""

    positive_semidefinite: ClassVar[bool] = True
    in_core: ClassVar[bool] = True

    def core(self) -> _core.Kernel:
        raise NotImplementedError

    def over(self, X: Any, Z: Any) -> Any:
        """The matrix k(x_i, z_j) for arrays of another library, where they are and in their precision."""
        raise NotImplementedError

    def slopes(self, X: Any, Z: Any) -> Any:
        """For such arrays the derivative that `pulled` takes sums of: with respect to ``x.z``, or the kernel itself."""
        return self.over(X, Z)

    def _offset(self, X: Any) -> Array | None:
        return _offset(X) if self.translation_invariant else None

    def __call__(self, X: Any, Z: Any, out: Array | None = None, threads: int = 1) -> Array:
        """The matrix k(x_i, z_j), in float64 or the type of ``out``."""
        if is_array_api(X):
            return self.over(X, Z)
        X, Z = _as_float(X), _as_float(Z)
        offset = None if sp.issparse(X) or sp.issparse(Z) else self._offset(Z)
        out = np.empty((X.shape[0], Z.shape[0])) if out is None else out
        _core.kernel_matrix(self.core(), core_rows(X, offset), core_rows(Z, offset), out, threads)
        return out

    def core_view(self, X: Any, Z: Any) -> tuple[_core.Rows, _core.Kernel, _core.Rows]:
        """Rows, kernel and vectors as the core sees them, without a copy."""
        return _core_view(self, X, Z, None)

    def machine(self, X: Any, order: Array, lengths: list[int], cache_bytes: int, threads: int) -> _core.Machine:
        """The core's solver over the rows ``X[order]``."""
        return _core.kernel_machine(core_rows(X, self._offset(X)), order, lengths, self.core(), cache_bytes, threads)

    def decision(self, X: Any, vectors: Any, coef: Array, bias: Array, threads: int = 1) -> Array:
        """``k(X, vectors) @ coef.T + bias``, in float32 where X is."""
        # The core compares a few rows with vectors in memory by differences, which lose no digits.
        few = X.shape[0] <= _core.few_rows and not sp.issparse(vectors)
        vectors = np.ascontiguousarray(vectors) if few else vectors
        offset = None if few or sp.issparse(X) else self._offset(vectors)
        single = X.dtype == np.float32
        return _core.decision(
            self.core(), core_rows(vectors, offset), core_rows(X, offset), coef, bias, single, threads
        )

    def row_model(self, vectors: Array, coef: Array, bias: Array) -> _core.RowModel:
        return _core.RowModel(self.core(), core_rows(vectors), coef, bias)


@dataclass(frozen=True)
class Linear(_CoreKernel):
    """``x.z``"""

    name = "linear"

    def dimensions(self, inputs: int) -> float:
        return inputs

    def core(self) -> _core.Kernel:
        return _core.linear()

    def over(self, X: Any, Z: Any) -> Any:
        return X @ Z.T

    def slopes(self, X: Any, Z: Any) -> Any:
        return namespace(X).ones((X.shape[0], Z.shape[0]), dtype=X.dtype, device=device(X))

    def diagonal(self, X: Any) -> Array:
        return _row_squares(_as_float(X))

    def pullback(self, X: Any, Z: Array, W: Array, K: Array | None = None) -> Array:
        """``sum_i W_ij x_i``."""
        return _weighted_rows(W, X)

    def pulled(self, products: Array, squares: Array, Z: Array) -> tuple[Array, Array]:
        return _of_products(1.0, products, Z)


@dataclass(frozen=True)
class Gaussian(_CoreKernel):
    """``exp(-gamma |x - z|^2)``"""

    gamma: float = 1.0
    name = "rbf"
    translation_invariant = True

    def length(self, X: Any) -> float:
        """Where the kernel is steepest."""
        return (2 * self.gamma) ** -0.5

    def core(self) -> _core.Kernel:
        return _core.gaussian(_positive_gamma(self.gamma))

    def over(self, X: Any, Z: Any) -> Any:
        # The exponent in one product: what is done to as many numbers as there are kernel values is what takes time.
        xp, ones = namespace(X), (namespace(X).ones_like(part[:, :1]) for part in (X, Z))
        left, right = (-self.gamma * xp.sum(part * part, axis=1)[:, None] for part in (X, Z))
        rows, vectors = [2 * self.gamma * X, left, next(ones)], [Z, next(ones), right]
        return xp.exp(xp.clip(xp.concat(rows, axis=1) @ xp.concat(vectors, axis=1).T, None, 0))

    def diagonal(self, X: Any) -> Array:
        return _ones(X)

    def pullback(self, X: Any, Z: Array, W: Array, K: Array | None = None) -> Array:
        """``2 gamma sum_i W_ij k(x_i, z_j) (x_i - z_j)``."""
        M = W * (self(X, Z) if K is None else K)
        return 2 * self.gamma * (_weighted_rows(M, X) - M.sum(axis=0)[:, None] * _dense(Z))

    def pulled(self, products: Array, squares: Array, Z: Array) -> tuple[Array, Array]:
        """`pullback` from the sums of a pass, with ``M = W k``: ``M'[x 1]`` and ``sum_ij M_ij x_i^2``.

        Also ``sum_i x_i`` times the derivative with respect to x_i, input by input: what scales of the inputs need.
        """
        sums, masses = products[:, :-1], products[:, -1:]
        return 2 * self.gamma * (sums - masses * Z), 2 * self.gamma * (np.einsum("jk,jk->k", Z, sums) - squares)


@dataclass(frozen=True)
class Laplacian(_CoreKernel):
    """``exp(-gamma |x - z|_1)``"""

    gamma: float = 1.0
    name = "laplacian"
    translation_invariant = True

    def length(self, X: Any) -> float:
        """Where the kernel has fallen to 1/e."""
        return 1 / self.gamma

    def core(self) -> _core.Kernel:
        return _core.laplacian(_positive_gamma(self.gamma))

    def over(self, X: Any, Z: Any) -> Any:
        xp = namespace(X)
        return xp.exp(-self.gamma * sum(xp.abs(X[:, k][:, None] - Z[:, k]) for k in range(X.shape[1])))

    def diagonal(self, X: Any) -> Array:
        return _ones(X)

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

    def over(self, X: Any, Z: Any) -> Any:
        return (self.gamma * (X @ Z.T) + self.coef0) ** self.degree

    def slopes(self, X: Any, Z: Any) -> Any:
        lower = max(self.degree - 1, 0)  # a constant has no slope: its factor in `pulled` is 0
        return (self.gamma * (X @ Z.T) + self.coef0) ** lower

    def diagonal(self, X: Any) -> Array:
        return (self.gamma * _row_squares(_as_float(X)) + self.coef0) ** self.degree

    def pullback(self, X: Any, Z: Array, W: Array, K: Array | None = None) -> Array:
        """``degree gamma sum_i W_ij (gamma x_i.z_j + coef0)^(degree - 1) x_i``."""
        if self.degree == 0:
            return np.zeros(Z.shape)
        slope = Polynomial(self.gamma, self.coef0, self.degree - 1)(X, Z)
        return self.degree * self.gamma * _weighted_rows(W * slope, X)

    def pulled(self, products: Array, squares: Array, Z: Array) -> tuple[Array, Array]:
        return _of_products(self.degree * self.gamma, products, Z)


@dataclass(frozen=True)
class Sigmoid(_CoreKernel):
    """``tanh(gamma x.z + coef0)``: not positive semidefinite in general."""

    gamma: float = 1.0
    coef0: float = 0.0
    name = "sigmoid"
    positive_semidefinite = False

    def core(self) -> _core.Kernel:
        return _core.sigmoid(_positive_gamma(self.gamma), self.coef0)

    def over(self, X: Any, Z: Any) -> Any:
        return namespace(X).tanh(self.gamma * (X @ Z.T) + self.coef0)

    def slopes(self, X: Any, Z: Any) -> Any:
        return 1 - self.over(X, Z) ** 2

    def diagonal(self, X: Any) -> Array:
        argument = self.gamma * _row_squares(_as_float(X)) + self.coef0
        return namespace(argument).tanh(argument)

    def pullback(self, X: Any, Z: Array, W: Array, K: Array | None = None) -> Array:
        """``gamma sum_i W_ij (1 - k(x_i, z_j)^2) x_i``."""
        K = self(X, Z) if K is None else K
        return self.gamma * _weighted_rows(W * (1 - K**2), X)

    def pulled(self, products: Array, squares: Array, Z: Array) -> tuple[Array, Array]:
        return _of_products(self.gamma, products, Z)


@dataclass(frozen=True, eq=False)
class Scaled(Base):
    """``kernel(scales * x, scales * z)``: a kernel with one scale for each input."""

    kernel: Any = Gaussian()
    scales: Any = 1.0

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.kernel.name

    @property
    def gamma(self) -> float | None:  # type: ignore[override]
        """That of the kernel."""
        return self.kernel.gamma

    @property
    def positive_semidefinite(self) -> bool:  # type: ignore[override]
        return self.kernel.positive_semidefinite

    @property
    def translation_invariant(self) -> bool:  # type: ignore[override]
        return self.kernel.translation_invariant

    @property
    def in_core(self) -> bool:  # type: ignore[override]
        return self.kernel.in_core

    def core_view(self, X: Any, Z: Any) -> tuple[_core.Rows, _core.Kernel, _core.Rows]:
        """Rows, kernel and vectors as the core sees them: it scales the inputs while it reads them."""
        scales = np.array(np.broadcast_to(self.scales, X.shape[1:]), dtype=np.float64)
        return _core_view(self.kernel, _as_float(X), _as_float(Z), scales)

    def length(self, X: Any) -> float:
        return self.kernel.length(X)

    def dimensions(self, inputs: int) -> float:
        return self.kernel.dimensions(inputs)

    @property
    def differentiable(self) -> bool:
        return self.kernel.differentiable

    def apply(self, X: Any) -> Any:
        """``scales * x`` for each row."""
        X = _as_float(X)
        if np.ndim(self.scales) and len(self.scales) != X.shape[1]:
            raise ValueError(f"there are scales for {len(self.scales)} columns; the rows have {X.shape[1]}")
        if is_array_api(X):
            return X * asarray_like(X, self.scales, X.dtype)
        scales = np.asarray(self.scales, dtype=X.dtype)
        if sp.issparse(X):
            return sp.csr_array(X @ sp.diags_array(np.broadcast_to(scales, X.shape[1:])))
        return X * scales

    def __call__(self, X: Any, Z: Any, out: Array | None = None, threads: int = 1) -> Array:
        """The matrix k(x_i, z_j)."""
        return self.kernel(self.apply(X), self.apply(Z), out=out, threads=threads)

    def slopes(self, X: Any, Z: Any) -> Any:
        """Those of the kernel over scaled rows."""
        return self.kernel.slopes(self.apply(X), self.apply(Z))

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
        if X.shape[0] <= rows:
            return self.kernel.decision(self.apply(X), Z, coef, bias, threads)
        blocks = (self.apply(X[i : i + rows]) for i in range(0, X.shape[0], rows))
        return np.concatenate([self.kernel.decision(block, Z, coef, bias, threads) for block in blocks])

    def row_model(self, vectors: Array, coef: Array, bias: Array) -> _core.RowModel | None:
        model = self.kernel.row_model(self.apply(vectors), coef, bias)
        if model is not None:
            model.scale(np.ones(vectors.shape[1]) * self.scales)
        return model


@dataclass(frozen=True, eq=False)
class Precomputed(Base):
    """Kernel values from a matrix. While fitting, ``matrix`` is k(X, X) and a row is its number, as in a column vector.
    A fitted model has no matrix: a row is ``k(x, training rows)``, and vectors are numbers of training rows."""

    matrix: Any = None
    name: ClassVar[str] = "precomputed"
    keeps_rows: ClassVar[bool] = True

    def __call__(self, X: Any, Z: Any, out: Array | None = None, threads: int = 1) -> Array:
        """The entries at the given numbers."""
        K = np.asarray(X)[:, Z] if self.matrix is None else self.matrix[np.ix_(X[:, 0], Z[:, 0])]
        return _into(out, K.astype(np.float64, copy=False))

    def diagonal(self, X: Any) -> Array:
        """``k(x, x)``; only while fitting."""
        return self.matrix[X[:, 0], X[:, 0]].astype(np.float64)

    def machine(self, X: Any, order: Array, lengths: list[int], cache_bytes: int, threads: int) -> _core.Machine:
        rows = np.ascontiguousarray(X[order, 0])
        return _core.matrix_machine(aligned(self.matrix), rows, lengths, cache_bytes, threads)

    def decision(self, X: Any, vectors: Any, coef: Array, bias: Array, threads: int = 1) -> Array:
        """Of rows of kernel values; a row's value does not depend on the other rows."""
        if self.matrix is not None:
            return dot(self(X, vectors), coef.T, threads) + bias
        columns = X[:, vectors]
        columns = columns.toarray() if sp.issparse(columns) else np.ascontiguousarray(columns)
        return np.einsum("ij,oj->io", columns, coef, dtype=np.float64) + bias

    def fitted(self, vectors: Any) -> tuple[Any, Any]:
        return Precomputed(), vectors[:, 0]


@dataclass(frozen=True)
class Function(Base):
    """Any function ``k(X, Z)`` that returns the matrix of kernel values.

    It gets float32 rows as float64, a block at a time: values in float32 would depend on the block, and the duality gap
    would have their rounding errors.
    """

    function: Callable[[Any, Any], Any]
    name: ClassVar[str] = "callable"

    def __call__(self, X: Any, Z: Any, out: Array | None = None, threads: int = 1) -> Array:
        """The function's matrix, checked for shape and finite values."""
        expected = (X.shape[0], Z.shape[0])
        if np.float32 in (X.dtype, Z.dtype):
            Z, K = as_float64(Z), np.empty(expected) if out is None else out
            size = max(256, (2 << 20) // max(1, X.shape[1]))
            for i in range(0, expected[0], size):
                self(as_float64(X[i : i + size]), Z, K[i : i + size])
            return K
        try:
            K = _dense(self.function(X, Z))
            K = K if is_array_api(K) else np.ascontiguousarray(K, dtype=np.float64)
        except Exception as error:
            error.add_note(
                f"A kernel function gets two sets of rows (here {X.shape} and {Z.shape}) and returns the matrix "
                f"of kernel values between them (here {expected})."
            )
            raise
        if tuple(K.shape) != expected:
            raise ValueError(
                f"the kernel function returned shape {K.shape} where {expected} was expected: it gets two sets "
                "of rows and returns the matrix of kernel values between them"
            )
        xp = namespace(K)
        if not bool(xp.all(xp.isfinite(K))):
            raise ValueError("the kernel function returned NaN or infinite values")
        return _into(out, K)

    def decision(self, X: Any, vectors: Any, coef: Array, bias: Array, threads: int = 1) -> Array:
        """Rows come to the function as the vectors are: dense or sparse."""
        if sp.issparse(X) != sp.issparse(vectors):
            X = sp.csr_array(X) if sp.issparse(vectors) else X.toarray()
        return super().decision(X, vectors, coef, bias, threads)


class DifferentiableFunction(Function):
    """A function object with a method ``pullback(X, Z, W, K)``."""

    def pullback(self, X: Any, Z: Array, W: Array, K: Array | None = None) -> Array:
        """The function's own."""
        return self.function.pullback(as_float64(X), as_float64(Z), W, K)  # type: ignore[attr-defined]


ALL: tuple[type, ...] = (Linear, Gaussian, Laplacian, Polynomial, Sigmoid, Scaled, Precomputed, Function)


def scale_gamma(gamma: float | str, X: Any, weight: Array | None = None) -> float:
    """The number that ``gamma="scale"``, ``"auto"`` or a number stands for, as in scikit-learn.

    Rows count by their weights: a row of weight 2 counts as two rows.
    """
    if isinstance(gamma, str):
        if gamma == "auto":
            return 1.0 / X.shape[1]
        if gamma == "scale":
            variance = _variance(X, np.broadcast_to(1.0, X.shape[0]) if weight is None else weight)
            # Ten digits: the order of the rows changes the last ones, and learning might end in another minimum.
            return float(f"{1.0 / (X.shape[1] * variance):.10g}") if variance > 0 else 1.0
    elif _is_number(gamma) and 0 < gamma < np.inf:
        return float(gamma)
    raise ValueError(f"gamma={gamma!r} must be 'scale', 'auto' or a positive number")


def _variance(X: Any, weight: Array) -> float:
    """Variance of all entries, a block of rows at a time."""
    if is_remote(X):
        return X.variance()
    size = float(weight.sum()) * X.shape[1]
    if sp.issparse(X):
        return _sparse_variance(X, weight, size)
    parts = list(row_slices(X.shape[0], X.shape[1]))
    mean = sum(float(dot(np.ascontiguousarray(weight[b]), X[b].sum(axis=1, dtype=np.float64))) for b in parts) / size
    total = 0.0
    for b in parts:
        around = np.subtract(X[b], mean, dtype=np.float64)
        total += float(dot(np.ascontiguousarray(weight[b]), np.einsum("ij,ij->i", around, around)))
    rounding = 8 * np.finfo(np.float64).eps * abs(mean)  # of the mean: all that entries differ by, where they are equal
    return total / size if total / size > rounding**2 else 0.0


def _sparse_variance(X: Any, weight: Array, size: float) -> float:
    """The same of CSR; entries that are not stored count as zeros."""

    def stored() -> Iterator[tuple[Array, Array]]:
        for b in row_slices(X.shape[0], X.nnz // max(1, X.shape[0])):
            ends = X.indptr[b.start : b.stop + 1]
            yield np.repeat(weight[b], np.diff(ends)), X.data[ends[0] : ends[-1]]

    mean = sum(float(dot(w, x)) for w, x in stored()) / size
    total = sum(float(dot(w, np.subtract(x, mean, dtype=np.float64) ** 2)) for w, x in stored())
    zeros = size - sum(float(w.sum()) for w, _ in stored())
    return (total + zeros * mean**2) / size


# Each by its name, from gamma, coef0 and degree.
_BY_NAME: dict[str, Callable[[float, float, int], Base]] = {
    "linear": lambda gamma, coef0, degree: Linear(),
    "poly": lambda gamma, coef0, degree: Polynomial(gamma, coef0, _whole_degree(degree)),
    "rbf": lambda gamma, coef0, degree: Gaussian(gamma),
    "sigmoid": lambda gamma, coef0, degree: Sigmoid(gamma, coef0),
    "laplacian": lambda gamma, coef0, degree: Laplacian(gamma),
}


def check(kernel: Any) -> None:
    """Raise ValueError for what is no kernel."""
    if isinstance(kernel, type):
        raise ValueError(f"kernel={kernel.__name__} is a class; pass an object of it, such as kernels.Gaussian(0.5)")
    if not (isinstance(kernel, str) and kernel in (*_BY_NAME, "precomputed")) and not callable(kernel):
        raise ValueError(
            f"kernel={kernel!r} is not known; use one of {[*_BY_NAME, 'precomputed']}, a function k(X, Z), or an "
            "object of slimsvm.kernels"
        )


def resolve(kernel: Any, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0) -> Any:
    """The kernel object for a name, a function or an object; gamma, degree and coef0 go with a name."""
    check(kernel)
    if isinstance(kernel, str):
        return Precomputed() if kernel == "precomputed" else _BY_NAME[kernel](gamma, float(coef0), degree)
    if isinstance(kernel, Base):
        return kernel
    return (DifferentiableFunction if hasattr(kernel, "pullback") else Function)(kernel)


def takes_gamma(kernel: Any) -> bool:
    """Is it a name whose kernel has the parameter gamma?"""
    return isinstance(kernel, str) and kernel in _BY_NAME and _BY_NAME[kernel](1.0, 0.0, 1).gamma is not None
