"""Kernels, slack norms and their dual sets in long double, written as in a textbook."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import kernel_table

LONG = np.longdouble


def long(A):
    """Dense, in long double: every float is itself."""
    return np.asarray(A.toarray() if sp.issparse(A) else A).astype(LONG)


# --- Kernels ------------------------------------------------------------------------------------------------


def kernel_matrix(name, X, Z, kernel):
    """k(x_i, z_j) of a fitted kernel, which may have scales."""
    inner, scales = kernel.unscaled
    params = {key: value if key == "degree" else LONG(value) for key, value in inner.get_params().items()}
    return kernel_table.matrix(name, long(X) * long(scales), long(Z) * long(scales), **params)


# --- Linear algebra -----------------------------------------------------------------------------------------


def cholesky(A):
    """Lower factor of a positive definite matrix, or None."""
    L = A.copy()
    for k in range(len(L)):
        if not L[k, k] > 0:
            return None
        L[k:, k] /= np.sqrt(L[k, k])
        L[k + 1 :, k + 1 :] -= np.outer(L[k + 1 :, k], L[k + 1 :, k])
    return np.tril(L)


def forward(L, B):
    """``L^-1 B``."""
    B = np.array(B, dtype=LONG)
    for k in range(len(L)):
        B[k] = (B[k] - L[k, :k] @ B[:k]) / L[k, k]
    return B


def backward(L, B):
    """``L'^-1 B``."""
    B = np.array(B, dtype=LONG)
    for k in reversed(range(len(L))):
        B[k] = (B[k] - L[k + 1 :, k] @ B[k + 1 :]) / L[k, k]
    return B


def solve(L, B):
    """``(L L')^-1 B``."""
    return backward(L, forward(L, B))


def pivoted(K, share=1e-16):
    """G with ``G G' = K`` but for a part below ``share`` of its largest entry, and the rows that were pivots."""
    left, columns, pivots = K.diagonal().copy(), [], []
    floor = share * max(left.max(initial=0), 0)
    while len(columns) < len(K):
        j = int(left.argmax())
        if not left[j] > floor:
            break
        G = np.array(columns).T if columns else np.empty((len(K), 0), dtype=LONG)
        column = (K[:, j] - G @ G[j]) / np.sqrt(left[j])
        columns.append(column)
        pivots.append(j)
        left = left - column**2
        left[pivots] = 0
    return (np.array(columns).T if columns else np.zeros((len(K), 0), dtype=LONG)), pivots


# --- Slack norms: phi(xi) with rows counted by w, and how to bring duals into the dual set ------------------


def two_norm(xi, w):
    most = np.abs(xi).max()
    return most * np.sqrt((w * (xi / most) ** 2).sum()) if most > 0 else LONG(0)


def p_norm(xi, w, p):
    most = np.abs(xi).max()
    return most * (w * (np.abs(xi) / most) ** p).sum() ** (1 / p) if most > 0 else LONG(0)


def top_sum(xi, w, budget):
    order = np.argsort(-np.abs(xi), kind="stable")
    before = np.cumsum(w[order]) - w[order]
    return (np.clip(budget - before, 0, w[order]) * np.abs(xi)[order]).sum()


def least(function, low, high):
    """Minimum of a convex function by thirds."""
    for _ in range(160):
        first, second = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, second) if function(first) <= function(second) else (first, high)
    return min(function(low), function(high), function((low + high) / 2))


def top_two(xi, w, budget):
    sizes, reach = np.abs(xi), np.sqrt(LONG(budget))
    return least(lambda t: two_norm(np.maximum(sizes - t, 0), w) + reach * t, LONG(0), sizes.max())


def one_two(xi, w, t):
    """The norm of the dual set {|a| <= w, sum a^2 / w <= t^2}: the largest ``xi.a`` in it."""
    sizes, t = np.abs(xi), LONG(t)
    low, high = LONG(0), two_norm(sizes, w) / t
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


def mahalanobis(xi, M, constraint):
    """``sqrt(xi' M xi)``; with inequality constraints slacks are raised where that is cheaper."""
    if constraint == "inequality":
        xi = xi + raised(xi, M)
    return np.sqrt(max(xi @ M @ xi, LONG(0)))


def phi(slack, xi, w, constraint):
    """The measure of the slacks, without C."""
    kind = type(slack).__name__
    if kind == "OneNorm":
        return (w * np.abs(xi)).sum()
    if kind == "SquaredTwoNorm":
        return (w * xi**2).sum() / 2
    if kind == "TwoNorm":
        return two_norm(xi, w)
    if kind == "PNorm":
        return p_norm(xi, w, LONG(slack.p))
    if kind == "MaxNorm":
        return np.abs(xi).max()
    if kind == "TopSum":
        return top_sum(xi, w, LONG(slack.budget))
    if kind == "TopTwoNorm":
        return top_two(xi, w, slack.budget)
    if kind == "OneTwoNorm":
        return one_two(xi, w, slack.t)
    if kind == "Mahalanobis":
        return mahalanobis(xi, long(slack.M), constraint)
    raise KeyError(f"no measure for {kind}")


def dual_sizes(slack, alpha, C, w):
    """Sizes of the duals over what the dual set allows: it is where all of them are at most 1."""
    kind, sizes = type(slack).__name__, np.abs(alpha)
    total, ball = sizes.sum() / C, two_norm(alpha, 1 / w) / C
    box = (sizes / (C * w)).max()
    if kind == "SquaredTwoNorm":
        return []
    if kind == "PNorm":
        # (sum w^(1-q) |a|^q)^(1/q) = |a / w^(1/p)|_q: sizes first, as powers of the weights overflow.
        p = LONG(slack.p)
        return [p_norm(sizes / w ** (1 / p), np.ones_like(w), p / (p - 1)) / C]
    if kind == "Mahalanobis":
        return [np.sqrt(max(alpha @ solve(cholesky(long(slack.M)), alpha), LONG(0))) / C]
    return {
        "OneNorm": lambda: [box],
        "TwoNorm": lambda: [ball],
        "MaxNorm": lambda: [total],
        "TopSum": lambda: [box, total / LONG(slack.budget)],
        "TopTwoNorm": lambda: [ball, total / np.sqrt(LONG(slack.budget))],
        "OneTwoNorm": lambda: [box, ball / LONG(slack.t)],
    }[kind]()


def ridge(slack, C, w):
    """What the squared norm adds to the diagonal."""
    return 1 / (C * w) if type(slack).__name__ == "SquaredTwoNorm" else np.zeros_like(w)


BOXED = ("OneNorm", "TopSum", "OneTwoNorm")


def feasible(slack, a, y, C, w, constraint):
    """Signed duals brought into the dual set: signs, box, sum zero, then cap and ball. All of it is legal."""
    alpha = y * a
    if constraint == "inequality":
        alpha = np.maximum(alpha, 0)
    if type(slack).__name__ in BOXED:
        alpha = np.clip(alpha, -C * w, C * w)
    a = y * alpha
    up, down = np.maximum(a, 0).sum(), -np.minimum(a, 0).sum()
    if min(up, down) == 0:
        return np.zeros_like(a)
    a = np.where(a > 0, a * min(1, down / up), a * min(1, up / down))
    return a / max([LONG(1), *dual_sizes(slack, y * a, C, w)])
