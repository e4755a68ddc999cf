"""Losses with corners solved by interior points: over all rows or, where rows are many, over those near the margin."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ...data.dataset import RowRange
from ...linalg.array_api import namespace, to_numpy
from ...linalg.arrays import Array
from ...problem.losses import smooth_surrogate, with_rounded_corners
from ...rows.protocol import Block, FeatureSource
from .interior_point import InteriorPoint, Members, beyond
from .newton import coarse_sample, newton
from .passes import DOWN, DOWN_GAIN, SUMS, UP, UP_GAIN, CertificateSums

Found = tuple[Array, tuple[Array, Array], int]  # weights (1 x features + 1); row numbers and signed duals; steps

CORNER_WIDTH = 0.03  # width of the corner of the rounded hinge that screens rows
NARROWER_CORNERS = 0.25 ** np.arange(6)  # factors of CORNER_WIDTH, where it leaves too many rows
MAX_CLOSE_SHARE = 0.7  # share of rows near the margin beyond which screening saves nothing
MAX_CLOSE_BYTES = {False: 2.0**28, True: 2.0**24}  # of features of rows near the margin; key: are rows remote?


def direct(
    rows: FeatureSource,
    which: Array,
    members: Array,
    loss: Any,
    tol: float,
    max_iter: int,
    near: Array | None,
    careful: bool = False,
) -> Found:
    """Solve one output over all its rows at once."""
    Y, C = rows.labels.of(members, which)
    problem = InteriorPoint(Members(rows, members), Y[:, 0], C[:, 0], loss, careful=careful)
    v, duals, used = problem.solve(tol, max_iter, None if near is None else near[0])
    return v[None], (members, duals), used


# For costs and features so large that sums of squares lose the digits that matter.
careful = partial(direct, careful=True)


def screened(
    rows: FeatureSource, which: Array, sizes: Array, loss: Any, tol: float, max_iter: int, near: Array | None = None
) -> tuple[list[Found | None], Array]:
    """Solve the hinge with many rows, most of them far from the margin, where duals are at a known bound.

    A rounded hinge, which is cheap to solve, gives approximate decision values. The interior point method solves for
    the duals of rows near the margin only; rows that change sides are added, and it is repeated. All outputs share
    passes over the rows. Returns the solutions (None where most of the ``sizes`` rows of an output are close) and the
    steps of each output.
    """
    m = rows.shape[1]
    V, used = _rounded(rows, loss, which, max_iter) if near is None else (near.copy(), np.zeros(len(which), dtype=int))
    found: list[Found | None] = [None] * len(which)
    nearest, width = _nearest(rows, loss, which, V, 8 * m)
    if near is None and width < CORNER_WIDTH:
        V, more = _narrowed(rows, loss, which, V, width, max_iter)
        used += more
        nearest, width = _nearest(rows, loss, which, V, 8 * m)
    max_distance = np.maximum(nearest, 2 * width)
    close = _within(rows, loss, which, V, max_distance)
    left = np.arange(len(which))
    while True:
        left = np.array([k for k in left if 0 < len(close[k]) < MAX_CLOSE_SHARE * sizes[k]], dtype=int)
        if not len(left):
            return found, used
        mine, before = [close[k] for k in left], V[left]
        # Duals of the close rows are unknown, and set to 0 here: what remains are the fixed sums over the other rows.
        unknown = [(some, np.zeros(len(some))) for some in mine]
        (far,) = rows.total(CertificateSums(loss), which[left], before, unknown, np.zeros(len(left)), 0.0)
        for k, sums, some in zip(left.tolist(), far, Members.each(rows, mine), strict=True):
            fixed = np.append(sums[SUMS : SUMS + m] + sums[SUMS + m :], sums[UP] - sums[DOWN])
            Y, C = rows.labels.of(close[k], which[[k]])
            gain, mass = float(sums[UP_GAIN] + sums[DOWN_GAIN]), float(sums[UP] + sums[DOWN])
            reduced = InteriorPoint(some, Y[:, 0], C[:, 0], loss, fixed, gain, mass)
            V[k], duals, steps = reduced.solve(tol, max_iter - int(used[k]), V[k])
            used[k] += steps
            found[k] = V[[k]], (close[k], duals), int(used[k])
        crossed, farthest = _crossed(rows, loss, which[left], before, V[left], mine)
        again = np.array([k for k, some in enumerate(crossed) if len(some) and used[left[k]] < max_iter], dtype=int)
        if not len(again):
            return found, used
        for k in again:
            o = left[k]
            found[o] = None
            # Too few rows were close: start again with more.
            if len(crossed[k]) > len(close[o]) and max_distance[o] < 2 * CORNER_WIDTH:
                V[o], max_distance[o] = before[k], 4 * max_distance[o]
            else:
                close[o], max_distance[o] = np.union1d(close[o], crossed[k]), 2 * farthest[k]
        o = left[again]
        for k, more in zip(o, _within(rows, loss, which[o], V[o], max_distance[o]), strict=True):
            close[k] = np.union1d(close[k], more)
        left = left[again]


def _seen(block: Block, loss: Any, which: Array, *weights: Array) -> tuple[Array, list[tuple[Array, Array]]]:
    """Which rows of a block belong to each output; and, for each of several weights, distances beyond the corner of the
    loss and signs of the duals."""
    Y, C = block.labels(which)
    o = len(which)
    values = block.values(np.tile(which, len(weights)), namespace(Y).concat(weights, axis=0))
    each = (values[:, k * o : (k + 1) * o] for k in range(len(weights)))
    return C > 0, [(beyond(loss, F, Y), namespace(F).sign(loss.duals(F, Y, C))) for F in each]


def _nearest(rows: FeatureSource, loss: Any, which: Array, V: Array, count: int) -> tuple[Array, float]:
    """Margin distance within which ``count`` rows of each output lie, and the widest corner up to CORNER_WIDTH,
    with few enough rows of all outputs within twice its width."""
    nearest = [np.empty(0)] * len(which)
    within = np.zeros(len(NARROWER_CORNERS))
    for distances, counts in rows.map_blocks(_distances, loss, which, V, count):
        nearest = [_least(np.concatenate(both), count) for both in zip(nearest, distances, strict=True)]
        within += counts
    few = within * 8 * rows.shape[1] <= MAX_CLOSE_BYTES[rows.is_remote]
    width = CORNER_WIDTH * NARROWER_CORNERS[int(few.argmax()) if few.any() else -1]
    return np.array([some.max(initial=0.0) for some in nearest]), width


def _least(values: Array, count: int) -> Array:
    """The ``count + 1`` smallest values, as a NumPy array."""
    if values.shape[0] <= count:
        return to_numpy(values)
    if isinstance(values, np.ndarray):
        return np.partition(values, count)[: count + 1]
    return to_numpy(namespace(values).sort(values)[: count + 1])


def _distances(block: Block, loss: Any, which: Array, V: Array, count: int) -> tuple[list[Array], Array]:
    """Distances of the closest rows to the margin of each output; and how many rows are within each width."""
    member, ((short, _),) = _seen(block, loss, which, V)
    xp = namespace(short)
    far = [xp.abs(short[:, k][member[:, k]]) for k in range(len(which))]
    within = [
        sum(int(xp.count_nonzero(some <= 2 * CORNER_WIDTH * part)) for some in far)
        for part in NARROWER_CORNERS.tolist()
    ]
    return [_least(some, count) for some in far], np.array(within)


def _within(rows: FeatureSource, loss: Any, which: Array, V: Array, widths: Array) -> list[Array]:
    """Rows within these distances of the margin of each output."""
    return _joined(rows.map_blocks(_rows_within, loss, which, V, widths))


def _joined(found: Iterator[list[Array]]) -> list[Array]:
    """Concatenate the parts of all blocks, for each output."""
    return [np.concatenate(parts) for parts in zip(*found, strict=True)]


def _rows_within(block: Block, loss: Any, which: Array, V: Array, widths: Array) -> list[Array]:
    member, ((short, _),) = _seen(block, loss, which, V)
    xp = namespace(short)
    near = member & (xp.abs(short) <= widths)
    return [block.first + to_numpy(xp.nonzero(near[:, k])[0]) for k in range(len(which))]


def _crossed(
    rows: FeatureSource, loss: Any, which: Array, before: Array, after: Array, close: list[Array]
) -> tuple[list[Array], Array]:
    """Rows of each output that changed sides and are not in ``close``, and their largest distance to the margin."""
    found = list(rows.map_blocks(_rows_crossed, loss, which, before, after, close))
    return _joined(some for some, _ in found), np.max([far for _, far in found], axis=0)


def _rows_crossed(
    block: Block, loss: Any, which: Array, before: Array, after: Array, close: list[Array]
) -> tuple[list[Array], Array]:
    member, ((_, pull_before), (distance, pull)) = _seen(block, loss, which, before, after)
    xp = namespace(pull)
    changed = member & (pull_before != pull)
    found, farthest = [], np.zeros(len(which))
    for k, known in enumerate(close):
        rows = block.first + to_numpy(xp.nonzero(changed[:, k])[0])
        far = np.abs(to_numpy(distance[:, k][changed[:, k]]))
        others = ~np.isin(rows, known)
        found.append(rows[others])
        farthest[k] = far[others].max(initial=0.0)
    return found, farthest


def _rounded(rows: FeatureSource, loss: Any, which: Array, max_iter: int) -> tuple[Array, Array]:
    """Solve for a loss with rounded corners: first on a sample of the rows, for shrinking corners, then on all."""
    part, most = coarse_sample(rows) if rows.is_remote else rows.subsampled(8), min(20, max_iter)
    state = newton(part, smooth_surrogate(loss), tol=1e-3, max_iter=most, which=which)
    for width in (0.5, CORNER_WIDTH):
        state = newton(part, with_rounded_corners(loss, width), state.V, tol=1e-3, max_iter=most, which=which)
    state = newton(
        rows, with_rounded_corners(loss, CORNER_WIDTH), state.V, tol=1e-5, max_iter=min(10, max_iter), which=which
    )
    return state.V, state.n_iter


def _narrowed(
    rows: FeatureSource, loss: Any, which: Array, V: Array, width: float, max_iter: int
) -> tuple[Array, Array]:
    """Solve for corners that narrow to ``width``, starting from V; and count the steps."""
    used = np.zeros(len(which), dtype=int)
    for part in NARROWER_CORNERS[1:]:
        if part * CORNER_WIDTH < width:
            break
        state = newton(
            rows, with_rounded_corners(loss, part * CORNER_WIDTH), V, tol=1e-5, max_iter=min(10, max_iter), which=which
        )
        V, used = state.V, used + state.n_iter
    return V, used


def solve_interior(
    rows: FeatureSource,
    loss: Any,
    which: Array,
    tol: float,
    max_iter: int,
    start: Array | None = None,
    method: Any = None,
) -> tuple[Array, list[tuple[Array, Array]], Array]:
    """Solve outputs of many rows together (`screened`), others one by one; returns weights, duals and iterations."""
    n, m = rows.shape
    labels = rows.labels
    members = [RowRange(n) if part is None else part for part in map(labels.members, which)]
    sizes = np.array([len(part) for part in members])
    found: list[Found | None] = [None] * len(which)
    used = np.zeros(len(which), dtype=int)
    many = np.flatnonzero(sizes > 20 * m + 4000) if method is None and not loss.smooth else np.arange(0)
    if len(many):
        near = None if start is None else start[many]
        some, used[many] = screened(rows, which[many], sizes[many], loss, tol, max_iter, near)
        for k, one in zip(many.tolist(), some, strict=True):
            found[k] = one
    for k, one in enumerate(found):
        if one is None:
            near = None if start is None or used[k] else start[[k]]
            left = max_iter - int(used[k])
            V, known, steps = (method or direct)(rows, which[[k]], np.asarray(members[k]), loss, tol, left, near)
            found[k] = V, known, int(used[k]) + steps
    V, known, n_iter = zip(*(one for one in found if one is not None), strict=True)
    return np.vstack(V), list(known), np.array(n_iter)
