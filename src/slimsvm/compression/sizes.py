"""Compression to a number of vectors, to a fraction of the original's, or to as few as agree with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..linalg.matrix import dot
from ..model.expansion import Expansion
from ..problem.bases import dense
from .methods import METHODS, Compressor
from .original import Original

Candidate = TypeVar("Candidate")


class SmallModel(NamedTuple):
    """A compressed model, its method ("exact": the same function as the original) and a note, often empty."""

    expansion: Expansion
    method: str
    note: str = ""


def small_model(compressor: Compressor, method: str, n_vectors: Any, agreement: float) -> SmallModel:
    """Compress to a number of vectors, to a fraction of the original's, or to as few as agree ("auto")."""
    original = compressor.original
    if original.size < 2:
        return SmallModel(
            original.expansion, "exact", f"The original has {_count(original.size)}: it is kept as it is."
        )
    count = _max_vectors(original, n_vectors)
    exact = weight_vectors(original)
    if exact is not None and len(exact.coef.T) <= min(original.size, count):
        return SmallModel(exact, "exact", "The kernel is a product: weight vectors are the same function.")
    if isinstance(n_vectors, str):
        small, reached = smallest(
            half_size(original),
            lambda size: METHODS[method](compressor, size),
            lambda small: compressor.agreement(small) >= agreement,
        )
        return SmallModel(small, method, "" if reached else not_reached(agreement, small))
    if count >= original.size:
        distinct = " that differ" if original.size < original.given.vectors.shape[0] else ""
        has = f"The original has {_count(original.size)}{distinct}"
        return SmallModel(original.expansion, "exact", f"{has}, {count} were asked for: it is kept as it is.")
    return SmallModel(METHODS[method](compressor, count), method)


def _max_vectors(original: Original, n_vectors: Any) -> int:
    """The maximum number of vectors for ``n_vectors``: a number, a fraction, or "auto" (all)."""
    size = original.given.vectors.shape[0]
    if isinstance(n_vectors, str):
        return size
    return int(n_vectors) if isinstance(n_vectors, Integral) else max(1, round(n_vectors * size))


def _count(vectors: int) -> str:
    return f"{vectors} vector{'' if vectors == 1 else 's'}"


def weight_vectors(original: Original) -> Expansion | None:
    """For the linear kernel, the same function over one weight vector for each output, or over unit vectors if inputs
    are fewer; else None."""
    f = original.expansion
    n_inputs = f.vectors.shape[1]
    if f.kernel.dimensions(n_inputs) > n_inputs:
        return None
    # k(., z) is linear in z: sum_i a_i k(., x_i) = k(., sum_i a_i x_i).
    weights = dense(dot(f.vectors.T, f.coef.T)).T
    if len(weights) <= n_inputs:
        return replace(f, vectors=weights, coef=np.eye(len(weights)))
    return replace(f, vectors=np.eye(n_inputs), coef=weights)


def half_size(original: Original) -> int:
    """The largest size to try when the size is searched."""
    return max(1, original.size // 2)


def not_reached(agreement: float, small: Expansion) -> str:
    return (
        f"agreement={agreement:g} is not reached with up to {_count(small.coef.shape[1])}, half of the original's: ask "
        "for a number of vectors, or for less agreement."
    )


def smallest(
    max_size: int, train: Callable[[int], Candidate], agrees: Callable[[Candidate], bool]
) -> tuple[Candidate, bool]:
    """Search the smallest size whose candidate agrees; return the candidate and whether it agrees.

    Sizes double until one agrees; then bisection between it and the last that does not, down to an eighth of the size.
    If none agrees, the candidate has the largest size.
    """
    low, size = 0, min(2, max_size)
    while True:
        best = train(size)
        if agrees(best):
            break
        if size == max_size:
            return best, False
        low, size = size, min(2 * size, max_size)
    while size - low > max(1, size // 8):
        middle = (low + size) // 2
        candidate = train(middle)
        if agrees(candidate):
            best, size = candidate, middle
        else:
            low = middle
    return best, True
