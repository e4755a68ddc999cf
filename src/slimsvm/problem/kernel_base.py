"""What kernels inherit: `Base` for any kernel, `ProductKernel` and the like for those that the core evaluates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..linalg.array_api import asarray_like, cast, device, is_array_api, namespace, widest_float
from ..linalg.arrays import Array, core_rows, is_remote
from ..linalg.matrix import dot
from .formulation import Part

BLOCK_VALUES = 2 << 20  # kernel values, or inputs, that are computed at a time


def floating(X: Any) -> Any:
    """Rows in float32 or float64, or an array of another library as it is."""
    if is_array_api(X):
        return X
    X = X if sp.issparse(X) else np.asarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def densified(Z: Any) -> Array:
    return Z.toarray() if sp.issparse(Z) else Z


def _row_squares(X: Any) -> Array:
    """``|x_i|^2`` in float64."""
    if sp.issparse(X):
        return np.asarray(X.power(2).sum(axis=1, dtype=np.float64)).ravel()
    if is_array_api(X):
        return namespace(X).sum(cast(X, widest_float(X)) ** 2, axis=1)
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def _weighted_sums(W: Array, X: Any) -> Array:
    """``W' X``, dense."""
    return (X.T @ W).T if sp.issparse(X) else dot(W.T, X)


def _differences(X: Any, Z: Any) -> Any:
    """``x_ik - z_jk`` for one column k after the other."""
    for k in range(X.shape[1]):
        x = np.ravel(X[:, [k]].toarray()) if sp.issparse(X) else X[:, k]
        yield x[:, None] - Z[:, k]


class Base(Part):
    """What a kernel declares. A class of your own inherits it, and has the call and `diagonal` at least."""

    name: ClassVar[str] = "own"
    translation_invariant: ClassVar[bool] = False
    positive_semidefinite: ClassVar[bool] = False
    keeps_rows: ClassVar[bool] = False
    in_core: ClassVar[bool] = False  # does the core evaluate it?
    core_slopes: ClassVar[bool] = False  # do passes over the rows sum its derivative, for `gradients`?
    is_linear: ClassVar[bool] = False  # are values linear in x?
    gamma: float | None = None
    scales: Any = 1.0

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        """Names of what makes a kernel of this class: gamma, coef0 and degree, as far as it has them."""
        return tuple(f.name for f in fields(cls))  # type: ignore[arg-type]

    @property
    def differentiable(self) -> bool:
        """Does it have a derivative (a method ``pullback``)?"""
        return type(self).pullback is not Base.pullback

    @property
    def unscaled(self) -> tuple[Any, Array]:
        """The kernel without the scales of its inputs, and these."""
        return self, np.ones(1)

    def __call__(self, X: Any, Z: Any, out: Array | None = None, threads: int = 1) -> Array:
        """The matrix k(x_i, z_j), written into ``out`` if that is given."""
        raise NotImplementedError(f"{type(self).__name__} must implement __call__(X, Z, out, threads)")

    def diagonal(self, X: Any) -> Array:
        """The values k(x_i, x_i)."""
        n = X.shape[0]
        blocks = (X[i : min(i + 64, n), :] for i in range(0, n, 64))
        parts = [namespace(K).linalg.diagonal(K) for K in (self(block, block) for block in blocks)]
        return namespace(parts[0]).concat(parts) if parts else np.empty(0)

    def pullback(self, X: Any, Z: Array, W: Array, K: Array | None = None) -> Array:
        """``sum_i W_ij dk(x_i, z_j)/dz_j``, a row for each z; K is ``k(X, Z)`` where it is known already."""
        raise NotImplementedError(f"{type(self).__name__} has no derivative")

    def apply(self, X: Any) -> Any:
        """The rows as the kernel compares them: scaled, where the inputs have scales."""
        return X

    def length(self, X: Any) -> float:
        """The root of the mean square of all entries: a kernel of products has no other length."""
        square = X.mean_square() if is_remote(X) else X.power(2).mean() if sp.issparse(X) else np.mean(X**2)
        return float(np.sqrt(square)) or 1.0

    def dimensions(self, inputs: int) -> float:
        """Of the kernel's space, as far as is known: more vectors than that are never needed."""
        return np.inf

    def training_matrix(
        self, X: Any, order: Array, lengths: list[int], cache_bytes: int, threads: int
    ) -> _core.KernelMatrix:
        """The kernel matrix of the rows ``X[order]`` for the core's solver, computed a block at a time."""

        def block(positions: list[int], first: int, count: int) -> Array:
            return np.ascontiguousarray(self(X[order[positions]], X[order[first : first + count]]), dtype=np.float64)

        return _core.KernelMatrix.of_function(block, self.diagonal(X[order]), lengths, cache_bytes, threads)

    def decision(self, X: Any, vectors: Any, coef: Array, bias: Array, threads: int = 1) -> Array:
        """``k(X, vectors) @ coef.T + bias``, in row blocks of at most 16 MB of kernel values."""
        rows = max(1, BLOCK_VALUES // max(1, vectors.shape[0]))
        parts = [dot(self(X[i : i + rows], vectors), coef.T, threads) + bias for i in range(0, X.shape[0], rows)]
        return np.concatenate(parts) if parts else np.empty((0, len(bias)))

    def row_model(self, vectors: Array, coef: Array, bias: Array) -> _core.RowModel | None:
        """The same for one row at a time, in the core; None where Python evaluates the kernel."""
        return None

    def fitted(self, vectors: Any) -> tuple[Any, Any]:
        """Kernel and vectors as a fitted model keeps them: a copy, as the user's own object may change."""
        return copy(self), vectors


# --- kernels of the core ----------------------------------------------------------------------------------------------


def _common_offset(X: Any) -> Array | None:
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


class CoreKernel(Base, ABC):
    """A kernel that the core evaluates. `DistanceKernel` and `ProductKernel` say what is left to declare."""

    positive_semidefinite: ClassVar[bool] = True
    in_core: ClassVar[bool] = True
    core_slopes: ClassVar[bool] = True
    power: ClassVar[int | None] = None  # of the differences that values depend on; None: values depend on products

    @abstractmethod
    def core(self) -> _core.Kernel:
        """The core's object for this kernel; ValueError for parameters that make no sense."""

    @abstractmethod
    def portable(self, X: Any, Z: Any) -> Any:
        """The matrix k(x_i, z_j) for arrays of another library, where they are and in their precision."""

    @property
    @abstractmethod
    def rate(self) -> float:
        """The factor of distances or products."""

    @property
    @abstractmethod
    def slope_factor(self) -> float:
        """What `slopes` is to be multiplied by."""

    @abstractmethod
    def slopes(self, X: Any, Z: Any, K: Any = None) -> Any:
        """The derivative at each pair of rows, but for `slope_factor`; K is ``k(X, Z)`` where it is known already."""

    @abstractmethod
    def gradients(self, products: Array, squares: Array, Z: Array) -> tuple[Array, Array]:
        """`pullback` from the sums of a pass, with ``M = W slopes``: ``M'[x 1]`` and ``sum_ij M_ij x_i^2``.

        Also ``sum_i x_i`` times the derivative with respect to x_i, input by input: what scales of the inputs need.
        """

    def offset(self, X: Any) -> Array | None:
        """What to take out of all rows: only differences of rows stay what they are without it."""
        return _common_offset(X) if self.translation_invariant else None

    def __call__(self, X: Any, Z: Any, out: Array | None = None, threads: int = 1) -> Array:
        """The matrix k(x_i, z_j), in float64 or the type of ``out``."""
        if is_array_api(X):
            return self.portable(X, Z)
        X, kernel, Z = self.core_view(floating(X), floating(Z))
        out = np.empty((X.size, Z.size)) if out is None else out
        _core.kernel_matrix(kernel, X, Z, out, threads)
        return out

    def core_view(self, X: Any, Z: Any, scales: Array | None = None) -> tuple[_core.Rows, _core.Kernel, _core.Rows]:
        """Rows, kernel and vectors as the core sees them, without a copy; it scales the inputs while it reads them."""
        mixed = sp.issparse(X) or sp.issparse(Z)
        offset = None if mixed else self.offset(Z if scales is None else Z * scales)
        return core_rows(X, offset, scales), self.core(), core_rows(Z, offset, scales)

    def training_matrix(
        self, X: Any, order: Array, lengths: list[int], cache_bytes: int, threads: int
    ) -> _core.KernelMatrix:
        """The kernel matrix of the rows ``X[order]`` for the core's solver."""
        return _core.KernelMatrix.of_kernel(
            core_rows(X, self.offset(X)), order, lengths, self.core(), cache_bytes, threads
        )

    def decision(self, X: Any, vectors: Any, coef: Array, bias: Array, threads: int = 1) -> Array:
        """``k(X, vectors) @ coef.T + bias``, in float32 where X is."""
        # The core compares a few rows with vectors in memory by differences, which lose no digits.
        few = X.shape[0] <= _core.few_rows and not sp.issparse(vectors)
        vectors = np.ascontiguousarray(vectors) if few else vectors
        offset = None if few or sp.issparse(X) else self.offset(vectors)
        single = X.dtype == np.float32
        return _core.decision(
            self.core(), core_rows(vectors, offset), core_rows(X, offset), coef, bias, single, threads
        )

    def row_model(self, vectors: Array, coef: Array, bias: Array) -> _core.RowModel:
        return _core.RowModel(self.core(), core_rows(vectors), coef, bias)


class DistanceKernel(CoreKernel):
    """A function `profile` of ``-rate d``, where d is ``|x - z|^2`` or, with `power` 1, ``|x - z|_1``; it is 1 at 0.

    The derivative with respect to d is ``-slope_factor slopes``: as here for an exponential, or as a subclass has it.
    """

    translation_invariant: ClassVar[bool] = True
    power: ClassVar[int] = 2

    @property
    def rate(self) -> float:
        assert self.gamma is not None
        return self.gamma

    @abstractmethod
    def profile(self, exponents: Any) -> Any:
        """Kernel values, given ``-rate d``."""

    @property
    def slope_factor(self) -> float:
        return self.rate

    def slopes(self, X: Any, Z: Any, K: Any = None) -> Any:
        return self(X, Z) if K is None else K

    def exponents(self, X: Any, Z: Any) -> Any:
        """``-rate d`` for each pair of rows."""
        if self.power == 1:
            return -self.rate * sum(abs(apart) for apart in _differences(X, Z))
        if not is_array_api(X):
            return -self.rate * sum(apart * apart for apart in _differences(X, densified(Z)))
        # In one product: what is done to as many numbers as there are kernel values is what takes time.
        xp, ones = namespace(X), (namespace(X).ones_like(part[:, :1]) for part in (X, Z))
        left, right = (-self.rate * xp.sum(part * part, axis=1)[:, None] for part in (X, Z))
        rows, vectors = [2 * self.rate * X, left, next(ones)], [Z, next(ones), right]
        return xp.clip(xp.concat(rows, axis=1) @ xp.concat(vectors, axis=1).T, None, 0)

    def portable(self, X: Any, Z: Any) -> Any:
        return self.profile(self.exponents(X, Z))

    def diagonal(self, X: Any) -> Array:
        return asarray_like(X, np.ones(X.shape[0]), widest_float(X)) if is_array_api(X) else np.ones(X.shape[0])

    def pullback(self, X: Any, Z: Array, W: Array, K: Array | None = None) -> Array:
        """``power slope_factor sum_i M_ij (x_i - z_j)`` with ``M = W slopes``; signs of differences where power is 1.

        The derivative of ``|x - z|_1`` is taken to be zero where a coordinate is the same in both.
        """
        M, Z = W * self.slopes(X, Z, K), densified(Z)
        if self.power == 2:
            return 2 * self.slope_factor * (_weighted_sums(M, X) - M.sum(axis=0)[:, None] * Z)
        signs = [np.einsum("ij,ij->j", M, np.sign(apart)) for apart in _differences(X, Z)]
        return self.slope_factor * np.stack(signs, axis=1)

    def gradients(self, products: Array, squares: Array, Z: Array) -> tuple[Array, Array]:
        sums, masses, factor = products[:, :-1], products[:, -1:], 2 * self.slope_factor
        return factor * (sums - masses * Z), factor * (np.einsum("jk,jk->k", Z, sums) - squares)


class ProductKernel(CoreKernel):
    """A function of ``x.z``, `of_products`; a subclass declares its derivative in `slopes` and `slope_factor`."""

    @property
    def rate(self) -> float:
        return 1.0 if self.gamma is None else self.gamma

    @property
    def slope_factor(self) -> float:
        return self.rate

    @abstractmethod
    def of_products(self, products: Any) -> Any:
        """Kernel values, given ``x.z``."""

    def portable(self, X: Any, Z: Any) -> Any:
        return self.of_products(X @ Z.T)

    def diagonal(self, X: Any) -> Array:
        return self.of_products(_row_squares(floating(X)))

    def pullback(self, X: Any, Z: Array, W: Array, K: Array | None = None) -> Array:
        """``slope_factor sum_i W_ij slopes_ij x_i``."""
        return self.slope_factor * _weighted_sums(W * self.slopes(X, Z, K), X)

    def gradients(self, products: Array, squares: Array, Z: Array) -> tuple[Array, Array]:
        G = self.slope_factor * products[:, :-1]
        return G, np.einsum("jk,jk->k", Z, G)


def ones(X: Any, Z: Any) -> Any:
    """One for each pair of rows, of the kind that the rows are."""
    if not is_array_api(X):
        return np.ones((X.shape[0], Z.shape[0]))
    return namespace(X).ones((X.shape[0], Z.shape[0]), dtype=X.dtype, device=device(X))
