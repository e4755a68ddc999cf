"""Kernels. The built-in ones are evaluated by the core, dense or sparse; any function k(X, Z) works too."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..linalg.array_api import asarray_like, is_array_api, namespace
from ..linalg.arrays import Array, aligned, as_float64
from ..linalg.matrix import dot
from .formulation import is_number, named
from .gamma import scale_gamma
from .kernel_base import (
    BLOCK_VALUES,
    Base,
    DistanceKernel,
    ProductKernel,
    densified,
    floating,
    ones,
)

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


def _positive_gamma(gamma: Any) -> float:
    if not is_number(gamma) or not 0 < gamma < np.inf:
        raise ValueError(f"gamma={gamma!r} must be a positive number (an estimator also takes 'scale' and 'auto')")
    return float(gamma)


def _whole_degree(degree: Any) -> int:
    if not isinstance(degree, (int, np.integer)) or isinstance(degree, bool) or not 0 <= degree <= 1000:
        raise ValueError(f"degree={degree!r} must be an integer of at least 0 and at most 1000")
    return int(degree)


@dataclass(frozen=True)
class Linear(ProductKernel):
    """``x.z``"""

    name = "linear"
    is_linear = True

    def dimensions(self, inputs: int) -> float:
        return inputs

    def core(self) -> _core.Kernel:
        return _core.linear()

    def of_products(self, products: Any) -> Any:
        return products

    def slopes(self, X: Any, Z: Any, K: Any = None) -> Any:
        return ones(X, Z)


@dataclass(frozen=True)
class Gaussian(DistanceKernel):
    """``exp(-gamma |x - z|^2)``"""

    gamma: float = 1.0
    name = "rbf"

    def length(self, X: Any) -> float:
        """Where the kernel is steepest."""
        return (2 * self.gamma) ** -0.5

    def core(self) -> _core.Kernel:
        return _core.gaussian(_positive_gamma(self.gamma))

    def profile(self, exponents: Any) -> Any:
        return namespace(exponents).exp(exponents)


@dataclass(frozen=True)
class Laplacian(DistanceKernel):
    """``exp(-gamma |x - z|_1)``"""

    gamma: float = 1.0
    name = "laplacian"
    power = 1
    core_slopes = False

    def length(self, X: Any) -> float:
        """Where the kernel has fallen to 1/e."""
        return 1 / self.gamma

    def core(self) -> _core.Kernel:
        return _core.laplacian(_positive_gamma(self.gamma))

    def profile(self, exponents: Any) -> Any:
        return namespace(exponents).exp(exponents)


@dataclass(frozen=True)
class Polynomial(ProductKernel):
    """``(gamma x.z + coef0) ** degree``"""

    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3
    name = "poly"

    def core(self) -> _core.Kernel:
        return _core.polynomial(_positive_gamma(self.gamma), self.coef0, _whole_degree(self.degree))

    def of_products(self, products: Any) -> Any:
        return (self.gamma * products + self.coef0) ** self.degree

    @property
    def slope_factor(self) -> float:
        return self.degree * self.gamma

    def slopes(self, X: Any, Z: Any, K: Any = None) -> Any:
        return Polynomial(self.gamma, self.coef0, max(self.degree - 1, 0))(X, Z)


@dataclass(frozen=True)
class Sigmoid(ProductKernel):
    """``tanh(gamma x.z + coef0)``: not positive semidefinite in general."""

    gamma: float = 1.0
    coef0: float = 0.0
    name = "sigmoid"
    positive_semidefinite = False

    def core(self) -> _core.Kernel:
        return _core.sigmoid(_positive_gamma(self.gamma), self.coef0)

    def of_products(self, products: Any) -> Any:
        return namespace(products).tanh(self.gamma * products + self.coef0)

    def slopes(self, X: Any, Z: Any, K: Any = None) -> Any:
        return 1 - (self(X, Z) if K is None else K) ** 2


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
        """The gamma of the unscaled kernel."""
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

    @property
    def is_linear(self) -> bool:  # type: ignore[override]
        return self.kernel.is_linear

    def core_view(self, X: Any, Z: Any) -> tuple[_core.Rows, _core.Kernel, _core.Rows]:
        """The core's views of rows, kernel and vectors; the core scales inputs while it reads them."""
        kernel, scales = self.unscaled
        return kernel.core_view(floating(X), floating(Z), np.array(np.broadcast_to(scales, X.shape[1:])))

    def length(self, X: Any) -> float:
        return self.kernel.length(X)

    def dimensions(self, inputs: int) -> float:
        return self.kernel.dimensions(inputs)

    @property
    def differentiable(self) -> bool:
        return self.kernel.differentiable

    @property
    def unscaled(self) -> tuple[Any, Array]:
        kernel, scales = self.kernel.unscaled
        return kernel, np.asarray(self.scales, dtype=np.float64) * scales

    def apply(self, X: Any) -> Any:
        """``scales * x`` for each row."""
        X = floating(X)
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

    def slopes(self, X: Any, Z: Any, K: Any = None) -> Any:
        """The unscaled kernel's slopes at the scaled rows."""
        return self.kernel.slopes(self.apply(X), self.apply(Z), K)

    def diagonal(self, X: Any) -> Array:
        return self.kernel.diagonal(self.apply(X))

    def pullback(self, X: Any, Z: Array, W: Array, K: Array | None = None) -> Array:
        """The scales times the unscaled kernel's pullback at the scaled rows."""
        return np.asarray(self.scales) * self.kernel.pullback(self.apply(X), self.apply(Z), W, K)

    def training_matrix(
        self, X: Any, order: Array, lengths: list[int], cache_bytes: int, threads: int
    ) -> _core.KernelMatrix:
        return self.kernel.training_matrix(self.apply(X), order, lengths, cache_bytes, threads)

    def decision(self, X: Any, vectors: Any, coef: Array, bias: Array, threads: int = 1) -> Array:
        """``k(X, vectors) @ coef.T + bias``, in row blocks so that the scaled rows take little memory."""
        rows = max(1, BLOCK_VALUES // max(1, X.shape[1]))
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


def _into(out: Array | None, K: Array) -> Array:
    if out is None:
        return K
    out[...] = K
    return out


@dataclass(frozen=True, eq=False)
class Precomputed(Base):
    """Kernel values from a matrix. While fitting, ``matrix`` is k(X, X) and X holds row numbers, in one column. In a
    fitted model ``matrix`` is None, a row is ``k(x, training rows)``, and vectors are numbers of training rows."""

    matrix: Any = None
    name: ClassVar[str] = "precomputed"
    keeps_rows: ClassVar[bool] = True

    def __call__(self, X: Any, Z: Any, out: Array | None = None, threads: int = 1) -> Array:
        """The entries of the matrix at these row and vector numbers."""
        K = np.asarray(X)[:, Z] if self.matrix is None else self.matrix[np.ix_(X[:, 0], Z[:, 0])]
        return _into(out, K.astype(np.float64, copy=False))

    def diagonal(self, X: Any) -> Array:
        """``k(x, x)``, available only while fitting."""
        return self.matrix[X[:, 0], X[:, 0]].astype(np.float64)

    def training_matrix(
        self, X: Any, order: Array, lengths: list[int], cache_bytes: int, threads: int
    ) -> _core.KernelMatrix:
        rows = np.ascontiguousarray(X[order, 0])
        return _core.KernelMatrix.of_matrix(aligned(self.matrix), rows, lengths, cache_bytes, threads)

    def decision(self, X: Any, vectors: Any, coef: Array, bias: Array, threads: int = 1) -> Array:
        """Decision values of rows of kernel values; that of a row does not depend on the other rows."""
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

    The function gets float32 rows as float64, a block at a time. In float32 its values would depend on the block, and
    their rounding errors would show in the duality gap.
    """

    function: Callable[[Any, Any], Any]
    name: ClassVar[str] = "callable"

    def __call__(self, X: Any, Z: Any, out: Array | None = None, threads: int = 1) -> Array:
        """The function's matrix, checked for shape and finite values."""
        expected = (X.shape[0], Z.shape[0])
        if np.float32 in (X.dtype, Z.dtype):
            Z, K = as_float64(Z), np.empty(expected) if out is None else out
            size = max(256, BLOCK_VALUES // max(1, X.shape[1]))
            for i in range(0, expected[0], size):
                self(as_float64(X[i : i + size]), Z, K[i : i + size])
            return K
        try:
            K = densified(self.function(X, Z))
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
        """``k(X, vectors) @ coef.T + bias``; the function gets X dense or sparse as the vectors are."""
        if sp.issparse(X) != sp.issparse(vectors):
            X = sp.csr_array(X) if sp.issparse(vectors) else X.toarray()
        return super().decision(X, vectors, coef, bias, threads)


class DifferentiableFunction(Function):
    """A function object with a method ``pullback(X, Z, W, K)``."""

    def pullback(self, X: Any, Z: Array, W: Array, K: Array | None = None) -> Array:
        """The function's own pullback."""
        return self.function.pullback(as_float64(X), as_float64(Z), W, K)  # type: ignore[attr-defined]


ALL: tuple[type, ...] = (Linear, Gaussian, Laplacian, Polynomial, Sigmoid, Scaled, Precomputed, Function)


# Kernels that estimators accept by name, scikit-learn's first, in the order in which error messages list them.
NAMED: tuple[type[Base], ...] = (Linear, Polynomial, Gaussian, Sigmoid, Laplacian)
SEMIDEFINITE = tuple(kind for kind in NAMED if kind.positive_semidefinite)
_BY_NAME: dict[str, type[Base]] = {kind.name: kind for kind in NAMED} | {Precomputed.name: Precomputed}


def check(kernel: Any) -> None:
    """Raise ValueError if this is no kernel."""
    if isinstance(kernel, type):
        raise ValueError(f"kernel={kernel.__name__} is a class; pass an object of it, such as kernels.Gaussian(0.5)")
    if named(kernel, _BY_NAME) is None and not callable(kernel):
        raise ValueError(
            f"kernel={kernel!r} is not known; use one of {list(_BY_NAME)}, a function k(X, Z), or an object of "
            "slimsvm.kernels"
        )


def resolve(kernel: Any, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0) -> Any:
    """The kernel object for a name (with gamma, degree and coef0), a function or a kernel object."""
    check(kernel)
    kind = named(kernel, _BY_NAME)
    if kind is not None:
        names, values = kind.parameters(), {"gamma": gamma, "coef0": float(coef0)}
        if "degree" in names:
            values["degree"] = _whole_degree(degree)
        return kind(**{name: value for name, value in values.items() if name in names})
    if isinstance(kernel, Base):
        return kernel
    return (DifferentiableFunction if hasattr(kernel, "pullback") else Function)(kernel)


def takes_gamma(kernel: Any) -> bool:
    """Whether this is the name of a kernel with the parameter gamma."""
    kind = named(kernel, _BY_NAME)
    return kind is not None and "gamma" in kind.parameters()


def in_sentence(kinds: Iterable[type[Base]]) -> list[str]:
    """Names of these kernels for a sentence: functions of distances first, the linear kernel last."""
    some = sorted(set(kinds), key=lambda kind: (not kind.translation_invariant, kind.is_linear, NAMED.index(kind)))
    return [kind.name for kind in some]
