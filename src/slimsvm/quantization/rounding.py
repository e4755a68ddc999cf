"""Rounds vectors to integers such that the decision function changes least.

Moving the vectors of ``f = sum_j beta_j k(z_j, .)`` by small v changes f by ``sum_jk v_jk beta_j dk(z_j, .)/dz_jk``;
refitting the coefficients removes the part of this change in the span of the kernels k(z_j, .). The rest has the
squared norm v'Hv,

    H = (beta'beta)_ij * [ d_i d_j k(z_i, z_j) - d_i k(z_i, Z) k(Z, Z)^-1 k(Z, z_j) d_j ]

summed over outputs. Coordinates are rounded one after the other, each to the integer nearest to its optimum given those
rounded before (Babai's nearest plane algorithm): errors then cancel instead of adding up. Where vectors lie so close
together that a step is not a small move, coordinate descent follows.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lapack

from ..linalg.arrays import Array

MAX_JOINT_COORDINATES = 1200  # coordinates that are rounded together
MAX_DESCENT_COORDINATES = 500  # more are not improved by coordinate descent
MAX_DESCENT_PASSES = 20
FINEST_STEP = 1 / 32  # in widths; steps are not halved below it
MAX_REMAINING = 0.7  # a halving, which clips far vectors, must reduce the squared distance to this share
KERNEL_JITTER = 1e-6  # added to the diagonal of the kernel matrix, as for learned vectors
# Added to the diagonal of H, relative to its mean: the smaller, the farther coordinates move to compensate each other.
RIDGES = (1e-4, 1e-2, 1.0)


def round_vectors(steps: Array, spans: Array, coef: Array, largest: int) -> Array:
    """Round vectors, given in steps, to integers up to ``largest``, for the kernel ``2^-|x - z|^2``.

    ``spans`` is the length of each input's step in widths, ``coef`` the coefficients (outputs x vectors).
    """
    plain = np.clip(np.rint(steps), -largest, largest)
    if not len(steps) or np.array_equal(plain, steps) or steps.shape[1] > MAX_JOINT_COORDINATES:
        return plain  # also where H of a single vector would be too large
    options = [plain, *(np.empty_like(plain) for _ in RIDGES)]
    for some in _parts(coef, max(1, MAX_JOINT_COORDINATES // steps.shape[1])):
        H = remaining_curvature(steps * spans, some, coef)
        H *= np.tile(spans, len(some)) * np.tile(spans, len(some))[:, None]
        for found, ridge in zip(options[1:], RIDGES, strict=True):
            found[some] = _nearest_plane(steps[some].ravel(), H, largest, ridge).reshape(len(some), -1)
    return min(options, key=lambda q: squared_distance(steps * spans, q * spans, coef))


def step_halvings(steps: Array, spans: Array, coef: Array, largest: int) -> Array:
    """How often to halve the step of each input, so that the function over rounded vectors is nearer to the exact one.

    A single vector far out makes the step of its input coarse for all; if its coefficient is small, clip it.
    """
    halvings = np.zeros(len(spans), dtype=int)
    if not len(steps):
        return halvings

    Z = steps * spans
    itself = squared_distance(Z, Z, coef)

    def distance(tried: Array) -> float:
        fine = 2.0**tried
        return squared_distance(Z, np.clip(np.rint(steps * fine), -largest, largest) * spans / fine, coef) - itself

    least = distance(halvings)
    for k in np.argsort(-spans, kind="stable"):
        while spans[k] * 2.0 ** -halvings[k] > FINEST_STEP:
            tried = halvings.copy()
            tried[k] += 1
            other = distance(tried)
            if other >= MAX_REMAINING * least:
                break
            halvings, least = tried, other
    return halvings


def descend_coordinates(bytes_: Array, steps: Array, spans: Array, coef: Array, largest: int) -> Array:
    """Coordinate descent on the squared distance, by moves of single coordinates by 1 or 2."""
    found = np.array(bytes_, dtype=np.float64)
    on_grid = np.allclose(found, steps, rtol=0, atol=1e-6)
    if found.size > MAX_DESCENT_COORDINATES or on_grid:
        return found
    Z = steps * spans
    least = squared_distance(Z, found * spans, coef)
    for _ in range(MAX_DESCENT_PASSES):
        before = least
        for place in np.ndindex(found.shape):
            for step in (-1, 1, -2, 2):
                other = found.copy()
                other[place] = np.clip(other[place] + step, -largest, largest)
                distance = squared_distance(Z, other * spans, coef)
                if distance < least - 1e-9 * abs(least):
                    found, least = other, distance
        if least == before:
            break
    return found


def squared_distance(Z: Array, moved: Array, coef: Array) -> float:
    """Squared distance of f from its projection onto kernels at ``moved``, summed over outputs, minus ``|f|^2``."""
    cross = _kernel(Z, moved).T @ coef.T
    inner = cho_solve(cho_factor(_kernel(moved, moved) + KERNEL_JITTER * np.eye(len(moved))), cross)
    return -float((cross * inner).sum())


def _kernel(A: Array, B: Array) -> Array:
    squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * (A @ B.T)
    return 2.0 ** -np.maximum(squares, 0)


def _parts(coef: Array, count: int) -> list[Array]:
    """Groups of vectors that are rounded together, of similar coefficients: their errors compensate each other best."""
    order = np.argsort(np.abs(coef).sum(axis=0), kind="stable")
    return [np.sort(order[first : first + count]) for first in range(0, len(order), count)]


def _nearest_plane(want: Array, H: Array, largest: int, ridge: float) -> Array:
    """Integers q with small ``(want - q)' H (want - q)``, chosen from the last to the first, each given those after it.

    With ``H = R'R``, R upper triangular, row i of ``R (want - q)`` is zero at
    ``q_i = want_i + sum_(j > i) R_ij (want_j - q_j) / R_ii``.
    """
    flat = ridge * max(float(H.diagonal().mean()), np.finfo(float).tiny)
    R, failed = lapack.dpotrf(H + np.diag(np.full(len(H), flat)), lower=0, clean=1)
    if failed:
        return np.clip(np.rint(want), -largest, largest)
    found, moved = np.empty_like(want), np.zeros_like(want)
    for i in range(len(want) - 1, -1, -1):
        place = want[i] + R[i, i + 1 :] @ moved[i + 1 :] / R[i, i]
        found[i] = np.clip(np.rint(place), -largest, largest)
        moved[i] = want[i] - found[i]
    return found


def remaining_curvature(Z: Array, some: Array, coef: Array) -> Array:
    """H for the coordinates of the vectors ``some``, in widths, from derivatives of ``2^-|x - z|^2``, with g = ln 2:

    dk(a, z)/dz = 2 g (a - z) k,    d_a d_z k(a, z) = (2 g - 4 g^2 (a - z)(a - z)') k.
    """
    g = np.log(2.0)
    n, d = len(some), Z.shape[1]
    K = _kernel(Z, Z)
    apart = Z[:, None, :] - Z[some]  # differences of all vectors from those
    slopes = (2 * g * apart * K[:, some, None]).reshape(len(Z), n * d)
    factor = cho_factor(K + KERNEL_JITTER * np.eye(len(Z)))
    between = apart[some]
    bends = -4 * g**2 * np.einsum("ijk,ijl,ij->ikjl", between, between, K[np.ix_(some, some)], optimize=True)
    for k in range(d):
        bends[:, k, :, k] += 2 * g * K[np.ix_(some, some)]
    H = bends.reshape(n * d, n * d) - slopes.T @ cho_solve(factor, slopes)
    weight = coef[:, some].T @ coef[:, some]
    return H * np.kron(weight, np.ones((d, d)))
