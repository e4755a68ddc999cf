"""The slack norms as the tests know them: one entry for each, with examples and with what a textbook says of it.

The formulas use nothing of slimsvm. A norm without an entry cannot be tested, and that is an error.

C phi(xi), rows counted by their weights w. The dual set is {alpha: each size <= its limit} (table of section 1 of the
mathematical reference on slack norms).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from longdouble import LONG, cholesky, long, solve
from slimsvm import slacks


@dataclass(frozen=True)
class SlackEntry:
    """phi in numpy, in cvxpy and in long double, and its dual set in the latter two."""

    examples: tuple[Any, ...]  # with parameters that matter for a few dozen rows
    value: Callable  # (slack, xi, w) -> float, slacks of any sign
    expression: Callable  # (slack, xi, w) -> cvxpy expression
    sizes: Callable  # (slack, alpha, w) -> [(cvxpy expression, limit for C = 1)]
    exact: Callable  # (slack, xi, w, constraint) -> phi in long double
    exact_sizes: Callable  # (slack, alpha, C, w) -> sizes of the duals over their limits
    ridge: Callable = lambda C, w: np.zeros_like(w)  # added to K's diagonal
    boxed: bool = False  # has each dual a bound of its own?
    drawn: Callable | None = None  # (draw, n, size) -> an object for n rows; None: the first example


def split(xi, first, second):
    """The least of first(u) + second(v) over u + v = xi: how Dekel & Singer define their norms K."""
    u = cp.Variable(xi.shape)
    return first(u) + second(xi - u)


def weighted_norm(x, w, p):
    """(sum w |x|^p)^(1/p)"""
    return cp.pnorm(cp.multiply(w ** (1 / p), x), p)


def largest_sum(slack, xi, w):
    left, total = slack.budget, 0.0
    for size, weight in sorted(zip(np.abs(xi), w, strict=True), reverse=True):
        total += min(left, weight) * size
        left = max(left - weight, 0.0)
    return total


def least(function, low, high):
    """Minimum of a convex function by thirds."""
    for _ in range(90):
        first, second = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, second) if function(first) <= function(second) else (first, high)
    return min(function(low), function(high))


def top_two(slack, xi, w):
    sizes, reach = np.abs(xi), np.sqrt(slack.budget)
    return least(lambda t: np.sqrt(w @ np.maximum(sizes - t, 0) ** 2) + reach * t, 0.0, sizes.max())


def one_two(slack, xi, w):
    """max of sum(xi alpha) over alpha = w min(1, xi / level), with sum(alpha^2 / w) <= t^2"""
    sizes = np.abs(xi)
    low, high = 0.0, np.sqrt(w @ sizes**2) / slack.t + 1e-300
    for _ in range(200):
        level = (low + high) / 2
        share = np.minimum(1, sizes / max(level, 1e-300))
        low, high = (level, high) if w @ share**2 > slack.t**2 else (low, level)
    return float(w @ (np.minimum(1, sizes / max(high, 1e-300)) * sizes))


def p_norm(slack, xi, w):
    most = np.abs(xi).max()
    return most * (w @ (np.abs(xi) / most) ** slack.p) ** (1 / slack.p) if most else 0.0


def conjugate(p):
    return p / (p - 1)


def factor(slack):
    return np.linalg.cholesky(slack.M).T


# --- in long double ---------------------------------------------------------------------------------------------------


def exact_two_norm(xi, w):
    most = np.abs(xi).max()
    return most * np.sqrt((w * (xi / most) ** 2).sum()) if most > 0 else LONG(0)


def exact_p_norm(xi, w, p):
    most = np.abs(xi).max()
    return most * (w * (np.abs(xi) / most) ** p).sum() ** (1 / p) if most > 0 else LONG(0)


def exact_top_sum(xi, w, budget):
    order = np.argsort(-np.abs(xi), kind="stable")
    before = np.cumsum(w[order]) - w[order]
    return (np.clip(budget - before, 0, w[order]) * np.abs(xi)[order]).sum()


def exact_least(function, low, high):
    """Minimum of a convex function by thirds."""
    for _ in range(160):
        first, second = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, second) if function(first) <= function(second) else (first, high)
    return min(function(low), function(high), function((low + high) / 2))


def exact_top_two(xi, w, budget):
    sizes, reach = np.abs(xi), np.sqrt(LONG(budget))
    return exact_least(lambda t: exact_two_norm(np.maximum(sizes - t, 0), w) + reach * t, LONG(0), sizes.max())


def exact_one_two(xi, w, t):
    """The norm of the dual set {|a| <= w, sum a^2 / w <= t^2}: the largest ``xi.a`` in it."""
    sizes, t = np.abs(xi), LONG(t)
    low, high = LONG(0), exact_two_norm(sizes, w) / t
    if high == 0 or w[sizes > 0].sum() <= t * t:
        return (w * sizes).sum()
    for _ in range(200):
        level = (low + high) / 2
        inside = (w * np.minimum(1, sizes / level) ** 2).sum() <= t * t if level > 0 else False
        low, high = (low, level) if inside else (level, high)
    return (w * np.minimum(1, sizes / high) * sizes).sum()


def raised(xi, M, sweeps=10_000):
    """The d >= 0 that makes ``(xi + d)' M (xi + d)`` least, one coordinate at a time."""
    d, diagonal = np.zeros_like(xi), M.diagonal()
    for _ in range(sweeps):
        before = d.copy()
        for i in range(len(d)):
            d[i] = max(d[i] - M[i] @ (xi + d) / diagonal[i], LONG(0))
        if np.abs(d - before).max() <= 1e-17 * np.abs(xi).max():
            break
    return d


def exact_mahalanobis(xi, M, constraint):
    """``sqrt(xi' M xi)``; with inequality constraints slacks are raised where that is cheaper."""
    if constraint == "inequality":
        xi = xi + raised(xi, M)
    return np.sqrt(max(xi @ M @ xi, LONG(0)))


def box(slack, alpha, C, w):
    return (np.abs(alpha) / (C * w)).max()


def total(alpha, C):
    return np.abs(alpha).sum() / C


def ball(alpha, C, w):
    return exact_two_norm(alpha, 1 / w) / C


def conjugate_ball(slack, alpha, C, w):
    """(sum w^(1-q) |a|^q)^(1/q) = |a / w^(1/p)|_q: sizes first, as powers of the weights overflow."""
    p = LONG(slack.p)
    return exact_p_norm(np.abs(alpha) / w ** (1 / p), np.ones_like(w), p / (p - 1)) / C


def inverse_ball(slack, alpha, C, w):
    return np.sqrt(max(alpha @ solve(cholesky(long(slack.M)), alpha), LONG(0))) / C


# --- the table --------------------------------------------------------------------------------------------------------

ENTRIES = {
    "OneNorm": SlackEntry(
        (slacks.OneNorm(),),
        lambda slack, xi, w: float(w @ np.abs(xi)),
        lambda slack, xi, w: w @ cp.abs(xi),
        lambda slack, alpha, w: [(cp.abs(alpha), w)],
        lambda slack, xi, w, constraint: (w * np.abs(xi)).sum(),
        lambda slack, alpha, C, w: [box(slack, alpha, C, w)],
        boxed=True,
    ),
    "SquaredTwoNorm": SlackEntry(
        (slacks.SquaredTwoNorm(),),
        lambda slack, xi, w: float(w @ xi**2) / 2,
        lambda slack, xi, w: cp.sum_squares(cp.multiply(np.sqrt(w / 2), xi)),
        lambda slack, alpha, w: [],
        lambda slack, xi, w, constraint: (w * xi**2).sum() / 2,
        lambda slack, alpha, C, w: [],
        ridge=lambda C, w: 1 / (C * w),
    ),
    "TwoNorm": SlackEntry(
        (slacks.TwoNorm(),),
        lambda slack, xi, w: float(np.sqrt(w @ xi**2)),
        lambda slack, xi, w: weighted_norm(xi, w, 2),
        lambda slack, alpha, w: [(weighted_norm(alpha, 1 / w, 2), 1.0)],
        lambda slack, xi, w, constraint: exact_two_norm(xi, w),
        lambda slack, alpha, C, w: [ball(alpha, C, w)],
    ),
    "PNorm": SlackEntry(
        tuple(slacks.PNorm(p) for p in (1.1, 1.5, 3.0, 10.0)),
        p_norm,
        lambda slack, xi, w: weighted_norm(xi, w, slack.p),
        lambda slack, alpha, w: [(weighted_norm(alpha, w ** (1 - conjugate(slack.p)), conjugate(slack.p)), 1.0)],
        lambda slack, xi, w, constraint: exact_p_norm(xi, w, LONG(slack.p)),
        lambda slack, alpha, C, w: [conjugate_ball(slack, alpha, C, w)],
        drawn=lambda draw, n, size: slacks.PNorm(draw.one_of(1.05, 1.2, 1.5, 3.0, 10.0, 100.0)),
    ),
    "MaxNorm": SlackEntry(
        (slacks.MaxNorm(),),
        lambda slack, xi, w: float(np.abs(xi).max()),
        lambda slack, xi, w: cp.norm_inf(xi),
        lambda slack, alpha, w: [(cp.norm1(alpha), 1.0)],
        lambda slack, xi, w, constraint: np.abs(xi).max(),
        lambda slack, alpha, C, w: [total(alpha, C)],
    ),
    "TopSum": SlackEntry(
        tuple(slacks.TopSum(budget) for budget in (1.0, 3.5, 12.0)),
        largest_sum,
        lambda slack, xi, w: split(xi, lambda u: w @ cp.abs(u), lambda v: slack.budget * cp.norm_inf(v)),
        lambda slack, alpha, w: [(cp.abs(alpha), w), (cp.norm1(alpha), slack.budget)],
        lambda slack, xi, w, constraint: exact_top_sum(xi, w, LONG(slack.budget)),
        lambda slack, alpha, C, w: [box(slack, alpha, C, w), total(alpha, C) / LONG(slack.budget)],
        boxed=True,
        drawn=lambda draw, n, size: slacks.TopSum(size),
    ),
    "TopTwoNorm": SlackEntry(
        tuple(slacks.TopTwoNorm(budget) for budget in (1.0, 3.5, 12.0)),
        top_two,
        lambda slack, xi, w: split(
            xi, lambda u: weighted_norm(u, w, 2), lambda v: np.sqrt(slack.budget) * cp.norm_inf(v)
        ),
        lambda slack, alpha, w: [(weighted_norm(alpha, 1 / w, 2), 1.0), (cp.norm1(alpha), np.sqrt(slack.budget))],
        lambda slack, xi, w, constraint: exact_top_two(xi, w, slack.budget),
        lambda slack, alpha, C, w: [ball(alpha, C, w), total(alpha, C) / np.sqrt(LONG(slack.budget))],
        drawn=lambda draw, n, size: slacks.TopTwoNorm(size),
    ),
    "OneTwoNorm": SlackEntry(
        (slacks.OneTwoNorm(1.0), slacks.OneTwoNorm(3.0)),
        one_two,
        lambda slack, xi, w: split(xi, lambda u: w @ cp.abs(u), lambda v: slack.t * weighted_norm(v, w, 2)),
        lambda slack, alpha, w: [(cp.abs(alpha), w), (weighted_norm(alpha, 1 / w, 2), slack.t)],
        lambda slack, xi, w, constraint: exact_one_two(xi, w, slack.t),
        lambda slack, alpha, C, w: [box(slack, alpha, C, w), ball(alpha, C, w) / LONG(slack.t)],
        boxed=True,
        drawn=lambda draw, n, size: slacks.OneTwoNorm(float(f"{draw.rng.uniform(0.5, np.sqrt(n)):.3g}")),
    ),
    "Mahalanobis": SlackEntry(
        (slacks.Mahalanobis(),),
        lambda slack, xi, w: float(np.linalg.norm(factor(slack) @ xi)),
        lambda slack, xi, w: cp.norm(factor(slack) @ xi),
        lambda slack, alpha, w: [(cp.norm(np.linalg.inv(factor(slack)).T @ alpha), 1.0)],
        lambda slack, xi, w, constraint: exact_mahalanobis(xi, long(slack.M), constraint),
        lambda slack, alpha, C, w: [inverse_ball(slack, alpha, C, w)],
    ),
}
EXAMPLES = [slack for entry in ENTRIES.values() for slack in entry.examples]


def entry_of(slack) -> SlackEntry:
    return ENTRIES[type(slack).__name__]
