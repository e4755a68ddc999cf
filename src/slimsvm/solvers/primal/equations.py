"""Solvers of Newton's equations in the m + 1 unknowns (w, b):

    (diag(own) + sum_i h_i [p_i 1]'[p_i 1]) x = right.

`from_sums` factorises this matrix. Where h and features are so large that ``own`` is lost to rounding in it,
`from_rows` factorises the rows themselves: errors then grow with the size of the rows, not with its square.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from ...linalg.arrays import Array
from ...linalg.matrix import NotPositiveDefinite, cho_solve, cholesky, pivoted_qr_triangle, solve_lower, solve_upper

Solver = Callable[[Array], Array]

SMALLEST_SQUARED_PIVOT = 1e-10  # of a matrix with diagonal 1: below it, too few digits of a step are right


def from_sums(H: Array, least: float = SMALLEST_SQUARED_PIVOT, lifts: Sequence[float] = (0.0,)) -> Solver | None:
    """A solver by Cholesky factorisation of H, scaled to a diagonal of 1; None where H is singular up to rounding.

    Squared pivots must be above ``least``: 0 where refinement makes up for lost digits. ``lifts`` are additions to the
    diagonal that are tried in order.
    """
    sizes = H.diagonal()
    if not (sizes.min(initial=1.0) > 0 and np.isfinite(sizes).all()):
        return None
    s = 1 / np.sqrt(sizes)
    scaled = H * np.outer(s, s)
    for lift in lifts:
        scaled[np.arange(len(s)), np.arange(len(s))] = 1 + lift
        try:
            L = cholesky(scaled)
        except NotPositiveDefinite:
            continue
        if (L.diagonal() ** 2).min(initial=1.0) > least:
            return partial(_scaled_solution, L, s)
    return None


def _scaled_solution(L: Array, s: Array, right: Array) -> Array:
    return s * cho_solve(L, s * right)


def from_rows(blocks: Iterable[tuple[Array, Array]], own: Array) -> Solver | None:
    """A solver by QR factorisation of the rows ``sqrt(h) [p 1]`` and ``sqrt(own)``; blocks are features and h.

    Large rows come first and columns are exchanged, which keeps small rows (that of w's own term above all)
    accurate beside large ones. Blocks are added to the factor one by one.
    """
    factor = np.diag(np.sqrt(own))
    order = np.arange(len(own))
    for P, h in blocks:
        used = np.flatnonzero(h)
        if not len(used):
            continue
        root = np.sqrt(h[used])[:, None]
        stacked = np.vstack([np.hstack([root * P[used].astype(np.float64, copy=False), root]), factor])
        sizes = np.abs(stacked).max(axis=1)
        if not np.isfinite(sizes).all():
            return None
        triangle, order = pivoted_qr_triangle(stacked[np.argsort(-sizes, kind="stable")])
        factor = np.empty((len(own), len(own)))
        factor[:, order] = triangle
    triangle = factor[:, order]
    if not triangle.diagonal().all():
        return None

    def solve(right: Array) -> Array:
        x = np.empty_like(right)
        x[order] = solve_upper(triangle, solve_lower(triangle.T, right[order]))
        return x

    return solve
