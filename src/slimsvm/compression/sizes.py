"""How many vectors: a number, a part of what there is, or as few as agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from ..linalg.matrix import dot
from ..model.expansion import Expansion
from ..problem.bases import dense
from .methods import METHODS, Compressor
from .original import Original

Small = TypeVar("Small")


def small_version(compressor: Compressor, method: str, n_vectors: Any, agreement: float) -> tuple[Expansion, str, str]:
    """The small machine, the method as it was used, and a note."""
    original = compressor.original
    if original.size < 2:
        return original.expansion, "exact", f"The original has {_count(original.size)}: it is kept as it is."
    count = _wanted(original, n_vectors)
    exact = weight_vectors(original)
    if exact is not None and len(exact.coef.T) <= min(original.size, count):
        return exact, "exact", "The kernel is a product: weight vectors are the same function."
    if isinstance(n_vectors, str):
        small, reached = smallest(
            half_of(original),
            lambda size: METHODS[method](compressor, size),
            lambda small: compressor.agreement(small) >= agreement,
        )
        return small, method, "" if reached else not_reached(agreement, small)
    if count >= original.size:
        has = f"The original has {_count(original.size)}{_distinct(original)}"
        return original.expansion, "exact", f"{has}, {count} were asked for: it is kept as it is."
    return METHODS[method](compressor, count), method, ""


def _wanted(original: Original, n_vectors: Any) -> int:
    """Vectors to keep at most: a number, a fraction of those that there are, or all of them ("auto")."""
    size = original.given.vectors.shape[0]
    if isinstance(n_vectors, str):
        return size
    return int(n_vectors) if isinstance(n_vectors, Integral) else max(1, round(n_vectors * size))


def _distinct(original: Original) -> str:
    return " that differ" if original.size < original.given.vectors.shape[0] else ""


def _count(vectors: int) -> str:
    return f"{vectors} vector{'' if vectors == 1 else 's'}"


def weight_vectors(original: Original) -> Expansion | None:
    """The same function over one weight vector for each output, or fewer, where the kernel is a plain product."""
    machine = original.expansion
    inputs = machine.vectors.shape[1]
    if machine.kernel.dimensions(inputs) > inputs:
        return None
    # k(., z) is linear in z: sum_i a_i k(., x_i) = k(., sum_i a_i x_i).
    weights = dense(dot(machine.vectors.T, machine.coef.T)).T
    if len(weights) <= inputs:
        return replace(machine, vectors=weights, coef=np.eye(len(weights)))
    return replace(machine, vectors=np.eye(inputs), coef=weights)


def half_of(original: Original) -> int:
    """The most vectors of a machine that is called small."""
    return max(1, original.size // 2)


def not_reached(agreement: float, small: Expansion) -> str:
    return (
        f"agreement={agreement:g} is not reached with up to {_count(small.coef.shape[1])}, half of the original's: ask "
        "for a number of vectors, or for less agreement."
    )


def smallest(most: int, made: Callable[[int], Small], agrees: Callable[[Small], bool]) -> tuple[Small, bool]:
    """What is made of the fewest vectors, of the sizes tried, and agrees; if nothing does, of the most, and False.

    Sizes double until one agrees; then the gap to the last that does not is halved, down to an eighth of the size.
    """
    low, size = 0, min(2, most)
    while True:
        best = made(size)
        if agrees(best):
            break
        if size == most:
            return best, False
        low, size = size, min(2 * size, most)
    while size - low > max(1, size // 8):
        middle = (low + size) // 2
        small = made(middle)
        if agrees(small):
            best, size = small, middle
        else:
            low = middle
    return best, True
