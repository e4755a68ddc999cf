"""Base classes of kernels: `Base` for any kernel, `DistanceKernel` and `ProductKernel` for those of the core."""

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

BLOCK_VALUES = 2 << 20  # kernel values, or scaled inputs, that are computed at a time


def floating(X: Any) -> Any:
    """Rows as float32 or float64; arrays of other libraries are unchanged."""
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
    """The matrices ``x_ik - z_jk``, one column k after the other."""
    for k in range(X.shape[1]):
        x = np.ravel(X[:, [k]].toarray()) if sp.issparse(X) else X[:, k]
        yield x[:, None] - Z[:, k]


class Base(Part):
    """Base class of kernels, also of your own; a subclass implements at least ``__call__``."""

    name: ClassVar[str] = "own"
    translation_invariant: ClassVar[bool] = False
    positive_semidefinite: ClassVar[bool] = False
    keeps_rows: ClassVar[bool] = False
    in_core: ClassVar[bool] = False  # whether the core evaluates it
    core_slopes: ClassVar[bool] = False  # whether passes of the core sum its derivative, for `gradients`
    is_linear: ClassVar[bool] = False  # whether k(x, z) is linear in x
    gamma: float | None = None
    scales: Any = 1.0

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        """The names of the kernel's parameters, such as gamma, coef0 and degree."""
        return tuple(f.name for f in fields(cls))  # type: ignore[arg-type]

    @property
    def differentiable(self) -> bool:
        """Whether it has a derivative, the method `pullback`."""
        return type(self).pullback is not Base.pullback

    @property
    def unscaled(self) -> tuple[Any, Array]:
        """The kernel without its input scales, and the scales."""
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
        """``sum_i W_ij dk(x_i, z_j)/dz_j``, one row for each z_j; K is ``k(X, Z)`` if already computed."""
        raise NotImplementedError(f"{type(self).__name__} has no derivative")

    def apply(self, X: Any) -> Any:
        """The rows times the kernel's input scales, if it has any."""
        return X

    def length(self, X: Any) -> float:
        """The root mean square of all entries: kernels of products have no length scale of their own."""
        square = X.mean_square() if is_remote(X) else X.power(2).mean() if sp.issparse(X) else np.mean(X**2)
        return float(np.sqrt(square)) or 1.0

    def dimensions(self, inputs: int) -> float:
        """The dimension of the kernel's feature space, infinity if unknown: more vectors are never needed."""
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
        """The core's decision function of one row at a time; None if Python evaluates the kernel."""
        return None

    def fitted(self, vectors: Any) -> tuple[Any, Any]:
        """The kernel and vectors that a fitted model keeps: a copy of the kernel, as the user's object may change."""
        return copy(self), vectors


# --- kernels of the core ----------------------------------------------------------------------------------------------


def _common_offset(X: Any) -> Array | None:
    """The mean of a sample of rows, if it is large beside their spread, else None.

    Subtracting it before rounding to float32 saves the digits that rounding and differences of squares would lose.
    """
    if sp.issparse(X) or X.shape[0] == 0:
        return None
    rows = np.asarray(X[:: max(1, X.shape[0] // 64)], dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        center = rows.sum(axis=0) / len(rows)
        offset = np.dot(center, center)
        # Cancellation in a spread that is small beside the offset does not change the comparison below.
        spread = np.einsum("ij,ij->", rows, rows) / len(rows) - offset
    return center if 4 * spread < offset < np.inf else None


class CoreKernel(Base, ABC):
    """Base class of kernels that the core evaluates, see `DistanceKernel` and `ProductKernel`."""

    positive_semidefinite: ClassVar[bool] = True
    in_core: ClassVar[bool] = True
    core_slopes: ClassVar[bool] = True
    power: ClassVar[int | None] = None  # 1 or 2: a function of |x - z|_1 or |x - z|^2; None: a function of x.z

    @abstractmethod
    def core(self) -> _core.Kernel:
        """The core's object for this kernel; ValueError for invalid parameters."""

    @abstractmethod
    def portable(self, X: Any, Z: Any) -> Any:
        """The matrix k(x_i, z_j) for arrays of another library, on their device and in their precision."""

    @property
    @abstractmethod
    def rate(self) -> float:
        """The factor of distances or products in the kernel: gamma or 1."""

    @property
    @abstractmethod
    def slope_factor(self) -> float:
        """The constant factor of the derivative that `slopes` leaves out."""

    @abstractmethod
    def slopes(self, X: Any, Z: Any, K: Any = None) -> Any:
        """The derivative at each pair of rows without `slope_factor`; K is ``k(X, Z)`` if already computed."""

    @abstractmethod
    def gradients(self, products: Array, squares: Array, Z: Array) -> tuple[Array, Array]:
        """`pullback` and ``sum_ij W_ij x_i dk(x_i, z_j)/dx_i`` (input by input), from the sums of a pass.

        With ``M = W slopes`` the sums are ``products = M'[X 1]`` and ``squares = sum_ij M_ij x_i^2``. The second result
        is the rows' part of the derivative with respect to the logarithms of input scales.
        """

    def offset(self, X: Any) -> Array | None:
        """The offset to subtract from all rows, which leaves differences unchanged; None if the kernel is not
        translation-invariant or the offset is small."""
        return _common_offset(X) if self.translation_invariant else None

    def __call__(self, X: Any, Z: Any, out: Array | None = None, threads: int = 1) -> Array:
        """The matrix k(x_i, z_j), in float64 or the dtype of ``out``."""
        if is_array_api(X):
            return self.portable(X, Z)
        X, kernel, Z = self.core_view(floating(X), floating(Z))
        out = np.empty((X.size, Z.size)) if out is None else out
        _core.kernel_matrix(kernel, X, Z, out, threads)
        return out

    def core_view(self, X: Any, Z: Any, scales: Array | None = None) -> tuple[_core.Rows, _core.Kernel, _core.Rows]:
        """The core's views of rows, kernel and vectors, without copies; the core scales inputs while it reads them."""
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
        """``k(X, vectors) @ coef.T + bias``, in float32 if X is."""
        # For few rows and dense vectors the core computes distances from differences, which lose no digits.
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
    """Base of kernels ``profile(-rate d)`` with ``d = |x - z|^2`` or, with `power` 1, ``|x - z|_1``; profile(0) = 1.

    The derivative with respect to d is ``-slope_factor slopes``; the default is that of the exponential.
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
        # One matrix product computes all squared distances: elementwise steps over all pairs are what takes time.
        xp, ones = namespace(X), (namespace(X).ones_like(part[:, :1]) for part in (X, Z))
        left, right = (-self.rate * xp.sum(part * part, axis=1)[:, None] for part in (X, Z))
        rows, vectors = [2 * self.rate * X, left, next(ones)], [Z, next(ones), right]
        return xp.clip(xp.concat(rows, axis=1) @ xp.concat(vectors, axis=1).T, None, 0)

    def portable(self, X: Any, Z: Any) -> Any:
        return self.profile(self.exponents(X, Z))

    def diagonal(self, X: Any) -> Array:
        return asarray_like(X, np.ones(X.shape[0]), widest_float(X)) if is_array_api(X) else np.ones(X.shape[0])

    def pullback(self, X: Any, Z: Array, W: Array, K: Array | None = None) -> Array:
        """``power slope_factor sum_i M_ij (x_i - z_j)`` with ``M = W slopes``; with power 1, signs of the differences.

        Where a coordinate is equal in x and z, the derivative of ``|x - z|_1`` is set to zero.
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
    """Base class of kernels ``of_products(x.z)``; a subclass declares the derivative in `slopes` and `slope_factor`."""

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
    """A matrix of ones for all pairs of rows, of the rows' library and device."""
    if not is_array_api(X):
        return np.ones((X.shape[0], Z.shape[0]))
    return namespace(X).ones((X.shape[0], Z.shape[0]), dtype=X.dtype, device=device(X))
