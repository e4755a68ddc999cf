"""Regularisers ``1/2 beta' R beta`` of the coefficients over a basis.

The solver works in coordinates w in which R is the identity: features ``P = k(X, Z) T``, coefficients
``beta = T w``, where ``T' R T = I``. A direction in which R vanishes is left out: there the function
``sum_j beta_j k(z_j, .)`` is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from scipy.linalg import solve_triangular

from .formulation import Array, Part

__all__ = ["ALL", "Identity", "KernelNorm", "Regularizer", "resolve"]


class Regularizer(Protocol):
    """A quadratic penalty on the coefficients."""

    follows_kernel: ClassVar[bool]  # does R change with the vectors as k(Z, Z) does?

    def whitening(self, gram: Array) -> Array:
        """T for the kernel matrix of the basis, with ``T' R T = I``."""


def inverse_root(R: Array) -> Array:
    """T with ``T' R T = I`` on the numerical range of R.

    A Cholesky factor where R is safely positive definite; else eigenvectors, without the null space.
    """
    try:
        L = np.linalg.cholesky(R)
        pivots = L.diagonal()
        if pivots.min(initial=1.0) > 1e-6 * pivots.max(initial=0.0):
            return solve_triangular(L, np.eye(len(R)), lower=True).T
    except np.linalg.LinAlgError:
        pass
    values, basis = np.linalg.eigh(0.5 * (R + R.T))
    kept = values > len(R) * np.finfo(float).eps * max(values[-1], 0.0)
    return basis[:, kept] / np.sqrt(values[kept])


@dataclass(frozen=True)
class KernelNorm(Part):
    """``R = k(Z, Z) + epsilon I``: the norm of f in the kernel's space. C then means what it does in the full machine.

    ``epsilon`` keeps coefficients of vectors that nearly coincide from growing against each other.
    """

    epsilon: float = 0.0
    follows_kernel: ClassVar[bool] = True

    def whitening(self, gram: Array) -> Array:
        return inverse_root(gram + self.epsilon * np.eye(len(gram)))


@dataclass(frozen=True)
class Identity(Part):
    """``R = I``: kernel values are plain features."""

    follows_kernel: ClassVar[bool] = False

    def whitening(self, gram: Array) -> Array:
        return np.eye(len(gram))


ALL: tuple[type, ...] = (KernelNorm, Identity)

_BY_NAME: dict[str, type] = {"kernel": KernelNorm, "identity": Identity}


def resolve(regularizer: str | Regularizer) -> Regularizer:
    """The regulariser for a name, or the object itself."""
    if isinstance(regularizer, str):
        if regularizer in _BY_NAME:
            return _BY_NAME[regularizer]()
    elif not isinstance(regularizer, type) and callable(getattr(regularizer, "whitening", None)):
        return regularizer
    raise ValueError(
        f"regularizer={regularizer!r} is not known; use one of {sorted(_BY_NAME)} or an object of slimsvm.regularizers"
    )
