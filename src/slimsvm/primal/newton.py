"""Newton's method for linear machines in m dimensions with a smooth loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import _core
from ..formulation import Array
from ..parts.losses import SmoothLoss
from .equations import from_rows, from_sums
from .passes import Features, sums, times


@dataclass(frozen=True)
class NewtonState:
    """Weights (m x outputs), biases, decision values (n x outputs), steps taken, and which outputs are solved."""

    w: Array
    bias: Array
    F: Array
    n_iter: Array
    converged: Array


def newton(
    features: Features,
    Y: Array,
    C: Array,
    loss: SmoothLoss,
    start: tuple[Array, Array] | None = None,
    tol: float = 1e-9,
    max_iter: int = 200,
) -> NewtonState:
    """Newton's method with an exact line search, all outputs side by side.

    It ends when half the squared Newton decrement, which estimates the objective still to be gained, is at
    most ``tol`` times the objective; the norm of a float32 gradient may never get small.
    """
    n, m = features.shape
    outputs = Y.shape[1]
    few, pieces = features.few(), getattr(loss, "pieces", None)  # a loss of the user's need not have any
    if few is not None and pieces is not None:
        found = _few_rows(few, Y, C, pieces, start, tol, max_iter)
        if found is not None:
            return found
    if start is None:
        w, bias = np.zeros((m, outputs)), np.zeros(outputs)
        F = np.zeros((n, outputs))
    else:
        w, bias = start[0].copy(), start[1].copy()
        F = times(features, w, bias)
    # Where no row is curved the bias is not determined: a trifle of curvature makes it so.
    trifle = 1e-12 * C.sum(axis=0)
    n_iter = np.zeros(outputs, dtype=int)
    open_, lost = np.ones(outputs, dtype=bool), np.zeros(outputs, dtype=bool)
    last_gain = np.full(outputs, np.inf)
    for _ in range(max_iter):
        o = np.flatnonzero(open_)
        Fo, Yo, Co = _columns(F, o), _columns(Y, o), _columns(C, o)
        moments, grams = sums(features, loss.duals(Fo, Yo, Co), loss.curvature(Fo, Yo, Co))
        assert grams is not None
        gradient = np.vstack([w[:, o], np.zeros(len(o))]) - moments
        steps = np.empty_like(gradient)
        for k in range(len(o)):
            own = np.append(np.ones(m), trifle[o[k]])
            grams[k][np.arange(m + 1), np.arange(m + 1)] += own
            solver = from_sums(grams[k]) or from_rows(features, loss.curvature(Fo, Yo, Co)[:, k], own)
            steps[:, k] = np.nan if solver is None else -solver(gradient[:, k])
        beyond = ~np.isfinite(steps).all(axis=0)  # numbers too large for this precision: the output stays as it is
        if beyond.any():
            lost[o[beyond]], open_[o[beyond]] = True, False
            if open_.any():
                continue
            break
        gain = -0.5 * (steps * gradient).sum(axis=0)
        objective = 0.5 * (w[:, o] ** 2).sum(axis=0) + loss.value(Fo, Yo, Co)
        # Below a relative gain of 1e-6 each step should square it; if not, only rounding errors are left.
        stuck = (gain > 0.5 * last_gain[o]) & (gain < 1e-6 * objective)
        last_gain[o] = gain
        moving = (gain > tol * objective) & ~stuck
        Q = times(features, steps[:m], steps[m])
        t = np.ones(len(o))  # the last step is taken whole: it squares what is left to gain
        if moving.any():
            some = np.flatnonzero(moving)
            D, Wo = _columns(steps[:m], some), _columns(w, o[some])
            t[some] = line_search(
                loss,
                _columns(Fo, some),
                _columns(Q, some),
                _columns(Yo, some),
                _columns(Co, some),
                (Wo * D).sum(axis=0),
                (D**2).sum(axis=0),
                accuracy=2e-3 * gain[some],
            )
        w[:, o] += t * steps[:m]
        bias[o] += t * steps[m]
        F[:, o] += t * Q
        n_iter[o] += 1
        open_[o[~moving]] = False
        if not open_.any():
            break
    return NewtonState(w, bias, F, n_iter, ~open_ & ~lost)


def _few_rows(
    P: Array,
    Y: Array,
    C: Array,
    pieces: tuple[float, float, float],
    start: tuple[Array, Array] | None,
    tol: float,
    max_iter: int,
) -> NewtonState | None:
    """The same method in the core, one output after the other; None if digits were lost."""
    begin = np.zeros((P.shape[1] + 1, Y.shape[1])) if start is None else np.vstack([start[0], start[1]])
    solved = []
    for y, c, at in zip(Y.T, C.T, begin.T, strict=True):
        y, c, at = np.ascontiguousarray(y), np.ascontiguousarray(c), np.ascontiguousarray(at)
        solved.append(_core.smooth_machine(P, y, c, at, *pieces, tol, max_iter))
    if not all(exact for *_, exact in solved):
        return None
    w, F, steps, converged = (np.array([s[k] for s in solved]) for k in range(4))
    return NewtonState(np.ascontiguousarray(w.T[:-1]), w.T[-1].copy(), np.ascontiguousarray(F.T), steps, converged)


def _columns(M: Array, columns: Array) -> Array:
    return M if len(columns) == M.shape[1] else M[:, columns]


def line_search(
    loss: SmoothLoss, F: Array, Q: Array, Y: Array, C: Array, slope: Array, bend: Array, accuracy: Array
) -> Array:
    """The t that minimises ``t slope + t^2/2 bend + loss(F + t Q)`` for each output: the root of its derivative.

    The derivative, which is to be at most ``accuracy``, is increasing: Newton's method inside a bracket.
    """
    outputs = F.shape[1]
    t, low, high = np.ones(outputs), np.zeros(outputs), np.full(outputs, np.inf)
    for _ in range(50):
        at = F + t * Q
        derivative = slope + t * bend - (loss.duals(at, Y, C) * Q).sum(axis=0)
        done = np.abs(derivative) <= accuracy
        if done.all():
            break
        second = bend + (loss.curvature(at, Y, C) * Q**2).sum(axis=0)
        low, high = np.where(derivative < 0, t, low), np.where(derivative > 0, t, high)
        # Where the slope is constant there is no Newton step: t is outside the open bracket, so its middle is taken.
        step = t - derivative / np.where(second > 1e-300 * np.abs(derivative), second, np.inf)
        middle = np.where(np.isfinite(high), 0.5 * (low + high), 2 * t)
        t = np.where(done, t, np.where((step > low) & (step < high), step, middle))
    return t
