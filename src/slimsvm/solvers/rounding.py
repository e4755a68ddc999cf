"""Estimates of rounding errors of kernel values, of their sums ``f = K duals`` and of slacks.

Errors are taken as independent; an estimate is three standard deviations, as in core/smo/certify.hpp. ``sizes`` are the
roots of k(x, x), ``degree`` is that of the kernel in the product x.z (0: none; core/kernels/forms.hpp).
"""

from __future__ import annotations

import numpy as np
from scipy.special import entr

from ..linalg.arrays import Array
from ..linalg.matrix import dot

ROUNDOFF = 1.5 * float(np.finfo(np.float64).eps)
KERNEL_ROUNDING = 4 * np.finfo(float).eps  # relative to (k(x, x) k(z, z))^1/2: how well a kernel value is known


def error_of_product(sizes: Array, duals: Array, degree: float) -> Array:
    """Estimate the error of each value of f as the core computes it, from k(x, x) alone.

    Each kernel value and each partial sum is rounded.
    """
    terms = sizes * duals
    partial = np.cumsum(terms)
    return ROUNDOFF * sizes * np.sqrt(max(1.0, degree) ** 2 * dot(terms, terms) + dot(partial, partial) / 3)


def error_of_slacks(error: Array, f: Array, bias: float) -> Array:
    """Estimate the error of ``y - f - bias`` from the error of f."""
    return error + ROUNDOFF * (1 + np.abs(f) + abs(bias))


def accurate_product(K: Array, sizes: Array, duals: Array, degree: float) -> tuple[Array, Array]:
    """Compute ``f = K duals`` with compensated sums, and estimate its error, which is that of the kernel values."""
    values = np.abs(K)
    if degree > 0:  # where the terms of x.z cancel, their errors are large compared with x.z
        values = degree * values ** (1 - 1 / degree) * np.outer(sizes, sizes) ** (1 / degree)
    else:  # the relative error of an exponential is the absolute error of its exponent
        values = values + np.maximum(entr(values), 0.0)
    return compensated_sums(K * duals), ROUNDOFF * np.sqrt(((values * duals) ** 2).sum(axis=1))


def compensated_sums(terms: Array) -> Array:
    """Compute the sum of each row by compensated summation (Neumaier)."""
    total, rest = np.zeros(len(terms)), np.zeros(len(terms))
    for column in terms.T:
        before, total = total, total + column
        added = total - before
        rest += (before - (total - added)) + (column - added)
    return total + rest
