"""The report of a compression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..basis.reduced_set import has_norm
from ..linalg.arrays import Array
from ..linalg.matrix import dot
from ..model.expansion import Expansion
from ..utils.warnings import without_control_characters
from .methods import Compressor
from .original import Original
from .sizes import SmallModel


def multiply_adds(f: Expansion) -> int:
    """Multiply-adds of one prediction: products with all vectors, and one for each nonzero coefficient."""
    return int((f.vectors.nnz if sp.issparse(f.vectors) else f.vectors.size) + np.count_nonzero(f.coef))


def distances(original: Original, small: Expansion, units: Array) -> tuple[Array, float]:
    """``|f - g| / |f|`` in the kernel's space without biases: for each output, and for all in these units.

    NaN where the kernel defines no norm.
    """
    f = original.expansion
    v = dot(f.kernel(small.vectors, f.vectors), f.coef.T)
    beta = small.coef.T
    own = (beta * dot(f.kernel(small.vectors, small.vectors), beta)).sum(axis=0)
    norms = original.norms
    squares = np.maximum(norms - 2 * (beta * v).sum(axis=0) + own, 0)
    if not norms.any() and not squares.any():
        return np.zeros(len(norms)), 0.0
    if not has_norm(f.kernel, f.vectors) or not original.has_norms:
        return np.full(len(norms), np.nan), np.nan
    each = squares / np.where(norms > 0, norms, units**2)  # constants have norm 0
    return np.sqrt(each), float(np.sqrt((squares / units**2).sum() / (norms / units**2).sum()))


@dataclass(frozen=True)
class Compression:
    """Report of a compression; `print` shows it in words.

    Attributes
    ----------
    method : str
        "reduced_set", "refit", "margin" or "learn"; "exact" where the small model is the same function.
    vectors_before, vectors_after : int
        Vectors of the original and of the small model.
    bytes_before, bytes_after : int
        Size of both in float32: vectors, nonzero coefficients and biases, four bytes each. In integers the small model
        takes about a quarter: ``model_bytes_`` of the estimator, as `slimsvm.export.quantize` makes it.
    agreement_on_vectors : float
        Agreement with the original at its vectors: the share of them with the same prediction; for regression R^2, the
        mean over the targets. Vectors lie near the decision boundary: on other rows agreement is usually better.
    agreement_on_X : float or None
        Agreement on the rows X, if given.
    distance : float
        ``|f - g| / |f|`` in the kernel's space over all outputs, each target in units of its standard deviation. It
        does not predict the error. distances : ndarray of shape (n_outputs,) ``|f - g| / |f|`` for each output. speedup
        : float Ratio of the multiply-adds of one prediction, not a time. note : str A remark, often empty."""

    method: str
    vectors_before: int
    vectors_after: int
    bytes_before: int
    bytes_after: int
    agreement_on_vectors: float
    agreement_on_X: float | None
    distance: float
    distances: Array
    speedup: float
    note: str = ""

    @classmethod
    def of(cls, compressor: Compressor, model: SmallModel) -> Compression:
        """The report that compares a compressed model with its original."""
        original, small = compressor.original, model.expansion
        vectors = original.expansion.vectors
        before, after = (compressor.values(f, vectors) for f in (original.expansion, small))
        each, together = distances(original, small, compressor.units)
        return cls(
            model.method,
            original.given.vectors.shape[0],
            small.coef.shape[1],
            original.given.float_bytes,
            small.float_bytes,
            original.task.agreement(before, after, np.ones(original.size)) if original.size else 1.0,
            None if compressor.given_rows is None else compressor.agreement(small),
            together,
            each,
            max(1, multiply_adds(original.given)) / max(1, multiply_adds(small)),
            model.note,
        )

    def __str__(self) -> str:
        on_X = "" if self.agreement_on_X is None else f", {100 * self.agreement_on_X:.2f} % on X"
        lines = [
            f"{self.vectors_before} vectors -> {self.vectors_after} ({without_control_characters(self.method)})",
            f"{self.bytes_before} bytes -> {self.bytes_after} (float32)",
            f"agreement with the original: {100 * self.agreement_on_vectors:.2f} % on its own vectors{on_X}",
            f"distance in the kernel's space: {self.distance:.3g} of its norm",
            f"multiply-adds of a prediction: {self.speedup:.1f} times fewer",
        ]
        return "\n".join([*lines, without_control_characters(self.note)] if self.note else lines)
