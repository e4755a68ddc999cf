"""The evidence of a relevance vector machine, in Laplace's approximation, and what single moves would gain."""

from __future__ import annotations

import numpy as np

from longdouble import LONG, cholesky, solve

LEAST, MOST = LONG(1e-12), LONG(1e12)


def softplus(f):
    return np.maximum(f, 0) + np.log1p(np.exp(-np.abs(f)))


def share(f):
    return np.where(f >= 0, 1 / (1 + np.exp(-np.abs(f))), 1 - 1 / (1 + np.exp(-np.abs(f))))


def log_evidence(Phi, t, weight, alpha, w, steps=60):
    """Newton's method to the most probable weights from w; minus infinity where rounding or the steps end it before."""

    def value(w):
        f = Phi @ w
        return (weight * (t * f - softplus(f))).sum() - (alpha * w**2).sum() / 2

    L = None
    now = value(w)
    for _ in range(steps):
        s = share(Phi @ w)
        gradient = Phi.T @ (weight * (t - s)) - alpha * w
        H = Phi.T @ ((weight * s * (1 - s))[:, None] * Phi) + np.diag(alpha)
        L = cholesky(H)
        if L is None:
            return -LONG(np.inf), w
        step = solve(L, gradient)
        gain = step @ gradient
        if not gain > 1e-15 * (1 + abs(now)) and np.abs(Phi @ step).max() < 0.01:
            break
        part = LONG(1)
        while value(w + part * step) < now + part * gain * 1e-4 and part > 1e-9:
            part = part / 2
        w = w + part * step
        now = value(w)
    else:
        return -LONG(np.inf), w
    return now + np.log(alpha).sum() / 2 - np.log(L.diagonal()).sum(), w


def check(fitted, verdict, out, K, members, w, alpha):
    """``objective_`` is minus the logarithm of the evidence; no single change gains more than it may."""
    t, weight = (out.y > 0).astype(LONG), out.w
    ones = np.ones((len(t), 1), dtype=LONG)
    Phi = np.hstack([ones, K[:, members]])
    w, alpha = w.astype(LONG), alpha.astype(LONG)
    now, mode = log_evidence(Phi, t, weight, alpha, w)
    claimed = fitted.model.objective_[out.number]
    off = abs(claimed + now) / max(abs(now), LONG(1))
    if not off <= 1e-6:
        verdict.wrong.append(f"output {out.number}: objective_ {claimed:.10g}, minus log evidence {-now:.10g}")
    gain, move = best_move(K, Phi, t, weight, alpha, mode, now, members, out.rows)
    if gain > fitted.allowed:
        verdict.wrong.append(f"output {out.number}: {move} gains {float(gain):.3g} of log evidence")


def best_move(K, Phi, t, weight, alpha, w, now, members, rows):
    """Each precision changed or its vector deleted, and the most promising additions."""
    best, name = LONG(0), ""

    def tried(Phi, alpha, w, what):
        nonlocal best, name
        then, _ = log_evidence(Phi, t, weight, alpha, w, steps=25)
        if then - now > best:
            best, name = then - now, what

    for j in range(len(alpha)):
        for factor in (0.1, 0.5, 2.0, 10.0):
            other = alpha.copy()
            other[j] = np.clip(alpha[j] * LONG(factor), LEAST, MOST)
            tried(Phi, other, w, f"precision {j} times {factor}")
        if j:
            keep = np.arange(len(alpha)) != j
            tried(Phi[:, keep], alpha[keep], w[keep], f"deleting vector {j}")
    for candidate, start in additions(K, Phi, t, weight, alpha, w, members, rows):
        tried(
            np.hstack([Phi, K[:, [candidate]]]),
            np.append(alpha, start),
            np.append(w, LONG(0)),
            f"adding row {candidate}",
        )
    return best, name


def additions(K, Phi, t, weight, alpha, w, members, rows, most=5):
    """Tipping and Faul's estimates of the best precision and its gain, for rows outside the model."""
    s = share(Phi @ w)
    curvature, error = weight * s * (1 - s), weight * (t - s)
    L = cholesky(Phi.T @ (curvature[:, None] * Phi) + np.diag(alpha))
    if L is None:
        return []
    cross = Phi.T @ (curvature[:, None] * K)
    S = (curvature[:, None] * K**2).sum(axis=0) - (cross * solve(L, cross)).sum(axis=0)
    Q = error @ K
    # A copy of a vector is no other candidate: it would only take the prior beyond the least precision.
    copies = (K[:, rows][:, :, None] == K[:, members][:, None, :]).all(axis=0).any(axis=1)
    rows = rows[~copies]
    rows = rows[(S[rows] > 0) & (Q[rows] ** 2 > S[rows])]
    gain = (Q[rows] ** 2 - S[rows]) / S[rows] + np.log(S[rows] / Q[rows] ** 2)
    rows = rows[np.argsort(-gain)[:most]]
    return [(int(j), np.clip(S[j] ** 2 / (Q[j] ** 2 - S[j]), LEAST, MOST)) for j in rows]
