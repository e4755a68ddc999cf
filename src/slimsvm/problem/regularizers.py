"""Regularisers ``1/2 beta' R beta`` of the coefficients over a basis.

The solver works with whitened features ``P = k(X, Z) T`` and coefficients ``beta = T w``, where ``T' R T = I``, so that
the penalty is ``1/2 |w|^2``. The null space of R is left out: there the function ``sum_j beta_j k(z_j, .)`` is zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from ..linalg.arrays import Array, is_remote
from ..linalg.matrix import NotPositiveDefinite, cholesky, inverse_lower
from .formulation import Part, named

__all__ = ["ALL", "Identity", "KernelNorm", "Regularizer", "ReweightedNorm", "resolve"]


class Regularizer(Protocol):
    """A quadratic penalty on the coefficients.

    If ``R = k(Z, Z) + diag(epsilon + jitter |k(z, z)|)``, the property ``on_diagonal`` may give ``(epsilon, jitter)``:
    the core then computes T.
    """

    follows_kernel: ClassVar[bool]  # whether R depends on the vectors through k(Z, Z)
    reweighted: ClassVar[bool]  # whether the penalty is minimised by iteratively reweighted quadratic ones

    def among(self, kernel: Any, X: Any, learned: bool) -> Any:
        """The regulariser with all parameters set to numbers, for vectors (learned or chosen) of the rows X."""

    def against(self, noise: float) -> Any:
        """This penalty plus ``noise / 2 |beta|^2``, the expected cost of independent errors of the kernel values."""

    def settled(self, gram: Array) -> Regularizer:
        """The penalty that is solved: this one, or the nearest that float64 tells from zero in every direction."""

    def matrix(self, gram: Array) -> Array:
        """R for the kernel matrix of the basis."""

    def whitening(self, gram: Array) -> Array:
        """T with ``T' R T = I``, for the kernel matrix of the basis."""


def rounding(size: int) -> float:
    """A bound on the spectral norm of rounding errors of a kernel matrix whose diagonal is 1."""
    return size * np.finfo(float).eps


def _scales(R: Array) -> Array:
    """The diagonal scaling that makes the diagonal of R 1, so that the size of vectors does not matter."""
    sizes = np.abs(R.diagonal())
    return 1 / np.sqrt(np.where(sizes > 0, sizes, 1.0))


def _safe_factor(R: Array) -> Array | None:
    """The Cholesky factor of a matrix with diagonal 1, or None if it may be positive definite only by rounding."""
    try:
        L = cholesky(R)
    except NotPositiveDefinite:
        return None
    return L if (L.diagonal() ** 2).min(initial=1.0) > 10 * rounding(len(R)) else None


def inverse_root(R: Array) -> Array:
    """T with ``T' R T = I`` on the numerical range of R.

    It comes from the Cholesky factor if R is safely positive definite, else from eigenvectors without the null space.
    """
    s = _scales(R)
    unit = R * np.outer(s, s)
    L = _safe_factor(unit)
    if L is not None:
        return s[:, None] * inverse_lower(L).T
    values, basis = np.linalg.eigh(0.5 * (unit + unit.T))
    kept = values > rounding(len(R)) * max(values[-1], 0.0)
    return s[:, None] * (basis[:, kept] / np.sqrt(values[kept]))


@dataclass(frozen=True)
class KernelNorm(Part):
    """``R = k(Z, Z) + epsilon I``: the norm of f in the kernel's space. C then means the same as in the full SVM.

    ``epsilon`` keeps coefficients of vectors that nearly coincide from growing against each other. None: 1e-6 times the
    mean of k(x, x) where vectors are learned, else 0.
    ``jitter`` does the same relative to the diagonal: ``R = k(Z, Z) + epsilon I + jitter diag k(Z, Z)``. Where vectors
    depend on each other, rounding decides whether f has a norm in some directions at all; `settled` then adds a jitter
    a hundred times above rounding, about 1e-12.
    """

    epsilon: float | None = None
    jitter: float = 0.0
    follows_kernel: ClassVar[bool] = True
    reweighted: ClassVar[bool] = False

    def among(self, kernel: Any, X: Any, learned: bool) -> KernelNorm:
        """Set epsilon to a number that does not depend on the vectors, so that learning has one objective."""
        if self.epsilon is not None:
            return self
        size = X.mean_size(kernel) if is_remote(X) else float(kernel.diagonal(X).mean())
        # Round to two digits, which depend neither on the order of the rows nor on a few copies.
        return replace(self, epsilon=1e-6 * float(f"{size:.2g}") if learned else 0.0)

    def against(self, noise: float) -> KernelNorm:
        return replace(self, epsilon=(self.epsilon or 0.0) + noise)

    def settled(self, gram: Array) -> KernelNorm:
        R = self.matrix(gram)
        s = _scales(R)
        safe = _safe_factor(R * np.outer(s, s)) is not None
        jitter = self.jitter if safe else max(self.jitter, 100 * rounding(len(gram)))
        return replace(self, epsilon=self.epsilon or 0.0, jitter=jitter)

    def matrix(self, gram: Array) -> Array:
        """R itself."""
        return gram + np.diag((self.epsilon or 0.0) + self.jitter * np.abs(gram.diagonal()))

    @property
    def on_diagonal(self) -> tuple[float, float]:
        return self.epsilon or 0.0, self.jitter

    def whitening(self, gram: Array) -> Array:
        return inverse_root(self.matrix(gram))


@dataclass(frozen=True)
class Identity(Part):
    """``R = I``: kernel values are plain features."""

    follows_kernel: ClassVar[bool] = False
    reweighted: ClassVar[bool] = False
    on_diagonal: ClassVar[None] = None

    def among(self, kernel: Any, X: Any, learned: bool) -> Identity:
        return self

    def against(self, noise: float) -> Identity:
        return self

    def settled(self, gram: Array) -> Identity:
        return self

    def matrix(self, gram: Array) -> Array:
        """R itself."""
        return np.eye(len(gram))

    def whitening(self, gram: Array) -> Array:
        return self.matrix(gram)


@dataclass(frozen=True)
class ReweightedNorm(Part):
    """``1/2 beta' R0 beta + penalty(beta)``: a penalty that sends coefficients to zero, by rounds of quadratic ones.

    The penalty is ``C_alpha / p * sum |beta_j|^p``, and its limit ``C_alpha * sum log |beta_j|`` at p = 0. It lies
    below the quadratic ``C_alpha / 2 * sum |beta_j'|^(p - 2) beta_j^2`` (but for a constant), and touches it at
    ``beta'``: each round minimises that quadratic, taken at the last round's coefficients, so that the objective falls
    in every round. Vectors whose coefficients vanish are dropped.

    ``base`` is R0: `KernelNorm` or `Identity`. p is 0 or more and at most 2, and not 1, where the rounds are too slow.
    """

    p: float = 0.0
    C_alpha: float = 0.1
    base: Any = KernelNorm()
    max_iter: int = 500
    reweighted: ClassVar[bool] = True

    def among(self, kernel: Any, X: Any, learned: bool) -> ReweightedNorm:
        return replace(self, base=self.base.among(kernel, X, learned))

    @property
    def follows_kernel(self) -> bool:
        """The base's ``follows_kernel``."""
        return self.base.follows_kernel

    def against(self, noise: float) -> ReweightedNorm:
        return replace(self, base=self.base.against(noise))

    def settled(self, gram: Array) -> ReweightedNorm:
        return self

    def matrix(self, gram: Array) -> Array:
        """R of the first round, in which all coefficients are assumed to be 1."""
        return self.base.matrix(gram) + self.C_alpha * np.eye(len(gram))

    @property
    def on_diagonal(self) -> tuple[float, float] | None:
        known = self.base.on_diagonal
        return None if known is None else (known[0] + self.C_alpha, known[1])

    def whitening(self, gram: Array) -> Array:
        return inverse_root(self.matrix(gram))

    def check(self) -> None:
        """Raise ValueError for invalid parameters."""
        if not 0 <= self.p <= 2 or self.p == 1:
            raise ValueError(
                f"ReweightedNorm(p={self.p!r}): p must be a number from 0 to 2 other than 1; LpSVC has p=1 and infinity"
            )
        if not 0 < self.C_alpha < np.inf or self.max_iter < 1:
            raise ValueError(
                f"ReweightedNorm(C_alpha={self.C_alpha!r}, max_iter={self.max_iter!r}): C_alpha must be a number above "
                "0, max_iter at least 1"
            )

    def ridge(self, coef: Array) -> Array:
        """The diagonal that the next round adds to R0."""
        return self.C_alpha * np.maximum(np.abs(coef), 1e-100) ** (self.p - 2)

    def penalty(self, coef: Array, least: float = 0.0) -> float:
        """The penalty; sizes of coefficients below ``least`` count as ``least``."""
        size = np.maximum(np.abs(coef), least)
        terms = np.log(size) if self.p == 0 else size**self.p / self.p
        return self.C_alpha * float(terms.sum())


ALL: tuple[type, ...] = (KernelNorm, Identity, ReweightedNorm)

_BY_NAME: dict[str, type] = {"kernel": KernelNorm, "identity": Identity}


def resolve(regularizer: Any) -> Regularizer:
    """The regulariser for a name, or the object itself."""
    kind = named(regularizer, _BY_NAME)
    if kind is not None:
        return kind()
    if not isinstance(regularizer, type) and callable(getattr(regularizer, "whitening", None)):
        return regularizer
    raise ValueError(
        f"regularizer={regularizer!r} is not known; use one of {sorted(_BY_NAME)} or an object of slimsvm.regularizers"
    )
