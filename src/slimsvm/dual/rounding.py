"""How well ``f = K duals`` is known: kernel values are rounded, and so are their sums.

Three standard deviations of the error of each value of f, as in core/certify.hpp. ``sizes`` are the roots of k(x, x). A
kernel value is known to eps times ``degree`` times itself where it is a power of a product x.z (core/kernels.hpp).
"""

from __future__ import annotations

import numpy as np
from scipy.special import entr

from ..formulation import Array
from ..linear import dot

ROUNDOFF = 1.5 * float(np.finfo(np.float64).eps)


def error_of_product(sizes: Array, duals: Array, degree: float) -> Array:
    """For f as the core computes it, from no more than the sizes of rows.

    Errors of terms add up like chance, and so does half a digit of each partial sum.
    """
    terms = sizes * duals
    partial = np.cumsum(terms)
    return ROUNDOFF * sizes * np.sqrt(max(1.0, degree) ** 2 * dot(terms, terms) + dot(partial, partial) / 3)


def accurate_product(K: Array, sizes: Array, duals: Array, degree: float) -> tuple[Array, Array]:
    """f by sums without rounding, and the error that is left: that of the kernel values."""
    values = np.abs(K)
    if degree > 0:  # where x.z cancels, an error of its terms is large beside it
        values = degree * values ** (1 - 1 / degree) * np.outer(sizes, sizes) ** (1 / degree)
    else:  # an exponential is rounded as its exponent is
        values = values + np.maximum(entr(values), 0.0)
    return exact_sums(K * duals), ROUNDOFF * np.sqrt(((values * duals) ** 2).sum(axis=1))


def exact_sums(terms: Array) -> Array:
    """The sum of each row to the last digit: what an addition rounds off is added at the end."""
    total, rest = np.zeros(len(terms)), np.zeros(len(terms))
    for column in terms.T:
        before, total = total, total + column
        added = total - before
        rest += (before - (total - added)) + (column - added)
    return total + rest
