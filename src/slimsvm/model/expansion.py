"""A fitted model: its kernel expansion over vectors, and the certificate of each output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..linalg.arrays import Array
from ..problem.formulation import Kernel


@dataclass(frozen=True)
class Expansion:
    """``f_o(x) = sum_j coef[o, j] k(vectors_j, x) + bias[o]``."""

    kernel: Kernel
    vectors: Any
    coef: Array
    bias: Array

    def decision(self, X: Any, threads: int = 1) -> Array:
        """Decision values, rows of X x outputs."""
        return self.kernel.decision(X, self.vectors, self.coef, self.bias, threads)

    @property
    def float_bytes(self) -> int:
        """The size in float32: four bytes for each entry of the vectors, each nonzero coefficient and each bias.

        An entry of a sparse vector takes eight bytes, with its column number.
        """
        numbers = 2 * self.vectors.nnz if sp.issparse(self.vectors) else self.vectors.size
        return 4 * int(numbers + np.count_nonzero(self.coef) + len(self.bias))


@dataclass(frozen=True)
class Model:
    """The result of training: an expansion, the numbers of the training rows that are its vectors (None if they are no
    training rows), the certificate of each output, and further fitted attributes of a method."""

    expansion: Expansion
    rows: Array | None
    objective: Array
    gap: Array | None  # None: the method has no dual
    n_iter: Array
    more: dict[str, Any] = field(default_factory=dict)
    scheme: str = "ovo"  # binary problems: each pair of classes ("ovo"), or each class against the others ("ovr")
    limits: tuple[str, ...] = ()  # why each output stopped: "" (converged), "max_iter=..." or "rounding"

    def with_attributes(self, **more: Any) -> Model:
        """The model with further fitted attributes."""
        return replace(self, more=self.more | more)

    def without_idle_vectors(self) -> Model:
        """The model without vectors whose coefficients are zero in every output."""
        expansion = self.expansion
        used = np.flatnonzero(expansion.coef.any(axis=0))
        if len(used) == expansion.coef.shape[1]:
            return self
        coef = np.ascontiguousarray(expansion.coef[:, used])
        rows = None if self.rows is None else self.rows[used]
        return replace(self, expansion=replace(expansion, vectors=expansion.vectors[used], coef=coef), rows=rows)


def join_outputs(kept: Sequence[Array], coefs: Sequence[Array], place: Array) -> tuple[Array, Array]:
    """The union of the outputs' vectors, sorted by ``place``, and the coefficients of all outputs over them (outputs x
    vectors)."""
    rows, output = np.concatenate(kept), np.repeat(np.arange(len(kept)), [len(mine) for mine in kept])
    used = np.zeros(len(place), dtype=bool)
    used[rows] = True
    union = np.flatnonzero(used)
    union = union[np.argsort(place[union])]
    column = np.empty(len(place), dtype=np.intp)
    column[union] = np.arange(len(union))
    coef = np.zeros((len(kept), len(union)))
    coef[output, column[rows]] = np.concatenate(coefs)
    return union, coef
