"""A fitted machine is an expansion over a few vectors: this is all that prediction needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .formulation import Array, Kernel


@dataclass(frozen=True)
class Expansion:
    """``f_o(x) = sum_j coef[o, j] k(vectors_j, x) + bias[o]``."""

    kernel: Kernel
    vectors: Any
    coef: Array
    bias: Array

    def decision(self, X: Any, threads: int = 1) -> Array:
        """Values of all outputs, one row for each row of X."""
        return self.kernel.decision(X, self.vectors, self.coef, self.bias, threads)
