"""The table of problems: binary, RBF kernel, labels -1 and +1.

Data come from `papers.datasets` where they are here, otherwise from look-alikes:
generated rows of the same number, width and sparsity. Some rows are kept out of the fit, to predict on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import datasets

from papers.datasets import available, load

N_TEST = 2000

Array = np.ndarray


@dataclass(frozen=True)
class Data:
    """Training rows with labels, rows to predict, and where they come from."""

    X: Any  # ndarray or csr_matrix
    y: Array
    X_test: Any
    source: str  # "real", "look-alike" or "generated" (the problem is defined by its generator)


@dataclass(frozen=True)
class Problem:
    """One line of the table. ``gamma=None`` means 1 / (d Var X), what scikit-learn calls "scale"."""

    name: str
    n: int
    make: Callable[[int], Data]
    C: float
    gamma: float | None
    sparse: bool = False
    memo: dict = field(default_factory=dict, compare=False)

    def load(self) -> Data:
        """The data, made once per process."""
        if "data" not in self.memo:
            data = self.make(self.n)
            if self.sparse:
                data = Data(sp.csr_matrix(data.X), data.y, sp.csr_matrix(data.X_test), data.source)
            self.memo["data"] = data
        return self.memo["data"]

    def forget(self) -> None:
        """Free the data."""
        self.memo.clear()

    def width(self) -> float:
        """Gamma as a number."""
        if self.gamma is not None:
            return self.gamma
        X = self.load().X
        return float(1 / (X.shape[1] * X.var()))


def split(X: Array, y: Array, n: int, source: str) -> Data:
    """The first n rows to fit on, the next ones to predict."""
    return Data(X[:n], y[:n], X[n : n + N_TEST], source)


def signs(condition: Array) -> Array:
    return np.where(condition, 1, -1)


# --- real data, or a look-alike -----------------------------------------------------------------


def stored(name: str, n: int) -> tuple[Array, Array, Array] | None:
    """The first n training rows, their labels and test rows of a stored set; None if it is not here."""
    if not available(name):
        return None
    split = load(name, split=0, download=False)
    return split.X[:n].astype(np.float64), split.y[:n], split.X_test[:N_TEST].astype(np.float64)


def usps(n: int) -> Data:
    """Even against odd digits, 16 x 16 grey values in [-1, 1]."""
    found = stored("usps", n)
    if found is None:
        X, digit = digits_like(n + N_TEST, side=16, seed=1)
        return split(2 * X - 1, signs(digit % 2 == 0), n, "look-alike")
    X, digit, X_test = found
    return Data(X, signs(digit % 2 == 0), X_test, "real")


def mnist(n: int) -> Data:
    """Even against odd digits, 28 x 28 grey values in [0, 1], a fifth of them not 0."""
    found = stored("mnist", n)
    if found is None:
        X, digit = digits_like(n + N_TEST, side=20, seed=2, margin=4)
        return split(np.where(X < 0.4, 0, X), signs(digit % 2 == 0), n, "look-alike")
    X, digit, X_test = found
    return Data(X / 255, signs(digit % 2 == 0), X_test / 255, "real")


def a9a(n: int) -> Data:
    """Incomes: 123 binary columns, 14 of them 1 in a row, a quarter of the labels +1."""
    found = stored("a9a", n)
    if found is None:
        X, y = one_hot_like(n + N_TEST, seed=3)
        return split(X, y, n, "look-alike")
    X, y, X_test = found
    return Data(X, signs(y > 0), X_test, "real")


def digits_like(n: int, side: int, seed: int, margin: int = 0) -> tuple[Array, Array]:
    """The 8 x 8 digits of scikit-learn, mixed within a class, enlarged, framed, shifted; values in [0, 1]."""
    rng = np.random.default_rng(seed)
    images, digit = datasets.load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8) / 16
    first = rng.integers(len(images), size=n)
    second = np.empty_like(first)
    for d in range(10):
        of_class = digit[first] == d
        second[of_class] = rng.choice(np.flatnonzero(digit == d), of_class.sum())
    mix = rng.uniform(0.6, 1, (n, 1, 1))
    small = mix * images[first] + (1 - mix) * images[second]
    at = np.linspace(0, 7, side)
    enlarge = np.array([np.interp(at, np.arange(8), row) for row in np.eye(8)]).T  # side x 8, bilinear
    X = np.pad(enlarge @ small @ enlarge.T, [(0, 0), (margin, margin), (margin, margin)])
    shifts = rng.integers(-1, 2, (n, 2))
    for shift in np.unique(shifts, axis=0):
        rows = (shifts == shift).all(axis=1)
        X[rows] = np.roll(X[rows], shift, axis=(1, 2))
    X = np.clip(X + 0.05 * rng.standard_normal(X.shape), 0, 1)
    return X.reshape(n, -1), digit[first]


def one_hot_like(n: int, seed: int) -> tuple[Array, Array]:
    """14 questions with 123 answers in all, one-hot, and labels from a noisy score."""
    rng = np.random.default_rng(seed)
    sizes = [5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41]
    X = np.zeros((n, sum(sizes)))
    start = 0
    for size in sizes:
        X[np.arange(n), start + rng.choice(size, n, p=rng.dirichlet(np.full(size, 0.7)))] = 1
        start += size
    hidden = np.tanh(X @ rng.normal(size=(X.shape[1], 8)))
    score = X @ rng.normal(size=X.shape[1]) + hidden @ rng.normal(size=8) + rng.normal(size=n)
    return X, signs(score > np.quantile(score, 0.76))


# --- problems that are generated ----------------------------------------------------------------


def moons(n: int) -> Data:
    """Two half-circles with noise 0.3: many bounded vectors, two columns."""
    X, y = datasets.make_moons(n + N_TEST, noise=0.3, random_state=0)
    return split(X, signs(y == 1), n, "generated")


def hard(n: int) -> Data:
    """Curved border in 20 Gaussian columns, some labels wrong: many steps at a high C."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n + N_TEST, 20))
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.5 * (X[:, 3] ** 2 - 1) + X[:, 4:8].sum(axis=1) / 2
    return split(X, signs(score + 0.2 * rng.normal(size=len(X)) > 0), n, "generated")


def cancer(n: int) -> Data:
    """Wisconsin breast cancer as scikit-learn ships it, standardised; predicts the rest of its 569 rows."""
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return split((X - X.mean(axis=0)) / X.std(axis=0), signs(y == 1), n, "real")


PROBLEMS = {
    problem.name: problem
    for problem in [
        Problem("moons-100", 100, moons, C=10, gamma=1.0),
        Problem("cancer-100", 100, cancer, C=1, gamma=1 / 30),
        Problem("moons-300", 300, moons, C=10, gamma=1.0),
        Problem("cancer-300", 300, cancer, C=1, gamma=1 / 30),
        Problem("moons-2k", 2000, moons, C=10, gamma=1.0),
        Problem("hard-3k", 3000, hard, C=1000, gamma=0.005),
        Problem("usps", 7291, usps, C=10, gamma=1 / 128),
        Problem("mnist-10k", 10000, mnist, C=10, gamma=None),
        Problem("a9a-10k", 10000, a9a, C=1, gamma=1 / 123),
        Problem("a9a-10k-csr", 10000, a9a, C=1, gamma=1 / 123, sparse=True),
        Problem("moons-10k", 10000, moons, C=10, gamma=1.0),
        Problem("hard-10k", 10000, hard, C=1000, gamma=0.005),
        Problem("moons-30k", 30000, moons, C=10, gamma=1.0),
    ]
}
QUICK = [name for name, problem in PROBLEMS.items() if problem.n <= 3000]
