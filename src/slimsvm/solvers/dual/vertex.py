"""Move an optimal solution to a vertex of the optimal set (a basic solution): no more free variables than needed.

Interior point methods end inside the set of all solutions: a variable that is between its bounds in any solution is
so in theirs. Along directions d of these variables with ``K d = 0`` and ``G d = 0``, neither f nor the given sums nor
the objective changes. Each such direction is followed until a variable meets a bound, where it stays. In the end
the columns of K and G that belong to variables between bounds are linearly independent.
"""

from __future__ import annotations

import numpy as np

from ...linalg.arrays import Array
from ...linalg.matrix import dot, norm, pivoted_cholesky, qr, solve_upper

VERTEX_ROUNDING = 4 * float(np.finfo(np.float64).eps)  # of a kernel value
ZERO_DIRECTION = 1e-10  # relative to a direction's length: smaller coordinates count as 0


def move_to_vertex(K: Array, row: Array, x: Array, lower: Array, upper: Array, G: Array) -> Array:
    """Move x to a vertex with the same ``K a`` and ``G x``, within bounds; ``row`` is the row of K of each variable."""
    x = x.copy()
    waiting = np.flatnonzero((x > lower) & (x < upper))
    batch = len(_independent(_normalised(K, row[waiting])[0])[1]) + len(G)
    free = waiting[:0]
    while len(waiting):  # in batches: directions stay short
        free, waiting = np.append(free, waiting[:batch]), waiting[batch:]
        A, unit = _normalised(K, row[free])
        # In units in which the diagonal of A is 1.
        x[free] = unit * _to_vertex(A, x[free] / unit, lower[free] / unit, upper[free] / unit, G[:, free] * unit)
        for bound in (lower, upper):
            met = np.abs(x - bound)[free] <= VERTEX_ROUNDING * np.abs(x)[free]
            x[free[met]] = bound[free[met]]
        free = free[(x > lower)[free] & (x < upper)[free]]
    return x


def _to_vertex(A: Array, x: Array, lower: Array, upper: Array, G: Array) -> Array:
    """The vertex for the matrix A of the variables, all of which are between bounds."""
    N, inside = _null_space(A), np.arange(len(x))
    for sums in G:
        N = _orthogonal_to(dot(sums, N), N)
    while N.shape[1]:
        lengths = np.sqrt(np.einsum("ij,ij->i", N, N))
        movable = lengths > ZERO_DIRECTION
        inside, N, lengths = inside[movable], N[movable], lengths[movable]
        if not len(inside):
            break
        down, up = (x - lower)[inside], (upper - x)[inside]
        # Towards the nearest bound; another variable may meet its own first.
        nearest = int((np.minimum(down, up) / lengths).argmin())
        d = dot(N, N[nearest])
        d = d if up[nearest] < down[nearest] else -d
        telling = np.abs(d) > ZERO_DIRECTION * lengths[nearest]
        room = np.divide(np.where(d > 0, up, down), np.abs(d), out=np.full(len(d), np.inf), where=telling)
        hit = int(room.argmin())
        x[inside] = np.clip(x[inside] + room[hit] * d, lower[inside], upper[inside])
        x[inside[hit]] = (upper if d[hit] > 0 else lower)[inside[hit]]
        N = np.delete(_orthogonal_to(N[hit], N), hit, axis=0)
        inside = np.delete(inside, hit)
    return x


def _normalised(K: Array, row: Array) -> tuple[Array, Array]:
    """The matrix of these variables scaled to a diagonal of ones, and the scale of each variable."""
    matrix = K[np.ix_(row, row)]
    sizes = np.sqrt(np.maximum(matrix.diagonal(), 0.0))
    unit = 1 / np.where(sizes > 0, sizes, 1.0)
    return unit[:, None] * matrix * unit, unit


def _independent(A: Array) -> tuple[Array, Array]:
    """Pivoted Cholesky factor of A, and its pivots: independent columns of A that span all others, up to rounding."""
    return pivoted_cholesky(A, VERTEX_ROUNDING * len(A)) if len(A) else (A, np.arange(0))


def _null_space(A: Array) -> Array:
    """An orthonormal basis of the null space of A, in columns."""
    factor, pivots = _independent(A)
    others = np.setdiff1d(np.arange(len(A)), pivots)
    N = np.zeros((len(A), len(others)))
    if len(others):
        N[pivots] = -solve_upper(factor[:, pivots], factor[:, others])
        N[others] = np.eye(len(others))
    return qr(N)[0] if len(others) else N


def _orthogonal_to(r: Array, N: Array) -> Array:
    """An orthonormal basis of all ``N c`` with ``r'c = 0``, by a Householder reflection of r to the first axis."""
    length = norm(r)
    if not length > 1e-14:
        return N
    v = r / length
    v[0] += np.copysign(1.0, v[0])
    v *= np.sqrt(2 / dot(v, v))
    return N[:, 1:] - np.outer(dot(N, v), v[1:])
