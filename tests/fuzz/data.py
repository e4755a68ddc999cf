"""Training sets, from ordinary to hostile: rows, labels and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import make_moons


@dataclass(frozen=True)
class Data:
    """What fit gets, and how it was made."""

    kind: str
    X: Any
    y: np.ndarray
    weight: np.ndarray | None


def _normal(rng, n):
    return rng.standard_normal((n, int(rng.integers(1, 7))))


def _moons(rng, n):
    return make_moons(n, noise=rng.uniform(0.05, 0.5), random_state=int(rng.integers(2**31)))[0]


def _rank_one(rng, n):
    return np.outer(rng.standard_normal(n), rng.standard_normal(int(rng.integers(2, 6))))


def _duplicates(rng, n):
    rows = _normal(rng, max(2, n // 5))
    return rows[rng.integers(0, len(rows), n)]


def _grid(rng, n):
    return rng.integers(0, 3, (n, int(rng.integers(1, 5)))).astype(float)


def _huge_column(rng, n):
    X = rng.standard_normal((n, 3))
    X[:, 0] = 10.0 ** rng.integers(4, 9) * (rng.integers(0, 2, n) if rng.random() < 0.5 else rng.standard_normal(n))
    return X


def _far_away(rng, n):
    return _normal(rng, n) + 10.0 ** rng.integers(3, 9)


def _tiny(rng, n):
    return 10.0 ** rng.integers(-8, -2) * _normal(rng, n)


def _large(rng, n):
    return 10.0 ** rng.integers(1, 6) * _normal(rng, n)


def _constant_columns(rng, n):
    X = _normal(rng, n)
    return np.c_[X, np.full((n, 2), rng.choice([0.0, 1.0, 1e5]))]


def _outlier(rng, n):
    X = _normal(rng, n)
    X[0] *= 1e4
    return X


ROWS = {
    "blobs": _normal,
    "moons": _moons,
    "rank one": _rank_one,
    "duplicates": _duplicates,
    "integer grid": _grid,
    "huge column": _huge_column,
    "far away": _far_away,
    "tiny": _tiny,
    "large": _large,
    "constant columns": _constant_columns,
    "outlier": _outlier,
}


def labels(rng, X, classes):
    """Labels that follow the rows, random ones (copies then contradict each other), or a class of a few rows."""
    n = len(X)
    how = rng.choice(["follow", "random", "few"])
    if how == "random":
        y = rng.integers(0, classes, n)
    elif how == "few":
        y = np.zeros(n, dtype=int)
        y[rng.permutation(n)[: max(classes, n // 20)]] = rng.integers(1, classes, max(classes, n // 20))
    else:
        score = X[:, -1] + 0.3 * (X.std() + 1e-300) * rng.standard_normal(n)
        y = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    y[rng.permutation(n)[:classes]] = np.arange(classes)  # each class occurs
    return y


def weights(rng, n):
    """None, small counts with zeros, or numbers that differ by up to twelve orders of magnitude."""
    how = rng.choice(["none", "none", "counts", "wide", "wider"])
    if how == "none":
        return None
    if how == "counts":
        return rng.integers(0, 4, n).astype(float)
    spread = 1.0 if how == "wide" else 4.0
    return np.clip(rng.lognormal(0, spread, n), 1e-6, 1e6)


def _container(rng, X):
    kind = rng.choice(["float64", "float64", "float32", "CSR", "F order", "CSR float32"])
    if "32" in kind:
        X = X.astype(np.float32)
    if "CSR" in kind:
        X = X.copy()
        X[rng.random(X.shape) < 0.3] = 0
        return kind, sp.csr_array(X)
    return kind, np.asfortranarray(X) if kind == "F order" else X


def targets(rng, X):
    """Numbers that follow the rows, do not, are all the same, or lie far from zero, far apart, or at few places."""
    n = len(X)
    spread = X.std() + 1e-300
    follow = np.sin(X[:, -1] / spread) + (X[:, 0] - X[:, 0].mean()) / spread
    how = str(rng.choice(["follow", "follow", "noise", "constant", "far", "outlier", "steps", "scaled"]))
    y = follow + rng.choice([0.0, 0.1, 1.0]) * rng.standard_normal(n)
    if how == "noise":
        y = rng.standard_normal(n)
    elif how == "constant":
        y = np.full(n, rng.choice([0.0, 1.0, -3e5, 1e-7]))
    elif how == "far":
        y = y + 10.0 ** rng.integers(2, 9)
    elif how == "outlier":
        y[rng.integers(n)] *= 10.0 ** rng.integers(2, 7)
    elif how == "steps":
        y = np.round(y)
    elif how == "scaled":
        y = y * 10.0 ** rng.integers(-8, 9)
    return how, y


def draw_targets(rng, most=300):
    """A training set of 1 to ``most`` rows with numbers; a row keeps a positive weight."""
    n = int(rng.integers(1, 60)) if rng.random() < 0.6 else int(rng.integers(1, most + 1))
    rows = str(rng.choice(list(ROWS)))
    X = ROWS[rows](rng, n)
    how, y = targets(rng, X)
    weight = weights(rng, n)
    if weight is not None:
        weight[0] = max(weight[0], 1e-6)
    container, X = _container(rng, X)
    return Data(f"{rows}, {container}, n={n}, targets {how}", X, y, weight)


def draw(rng, most=300):
    """A training set of 3 to ``most`` rows; every class keeps a row with a positive weight."""
    n = int(rng.integers(6, 60)) if rng.random() < 0.6 else int(rng.integers(3, most + 1))
    classes = 3 if n >= 6 and rng.random() < 0.15 else 2
    rows = str(rng.choice(list(ROWS)))
    X = ROWS[rows](rng, n)
    y = labels(rng, X, classes)
    weight = weights(rng, n)
    if weight is not None:
        for c in range(classes):
            weight[np.flatnonzero(y == c)[0]] = max(weight[np.flatnonzero(y == c)[0]], 1e-6)
    container, X = _container(rng, X)
    return Data(f"{rows}, {container}, n={n}, {classes} classes", X, y, weight)


def integer_gram(rng, n):
    """A kernel matrix without rounding: integers, times a power of two. It is positive semidefinite exactly."""
    Z = rng.integers(-8, 9, (n, int(rng.integers(1, 9)))).astype(float)
    return (Z @ Z.T + 1.0) * 2.0 ** int(rng.integers(-8, 3))
