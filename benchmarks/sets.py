"""Rows to train and test on: Gaussians, and stored sets (``../shared/data`` beside the repository) with splits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .problems import DATA, Array

RAETSCH = [
    "banana",
    "breast-cancer",
    "diabetes",
    "flare-solar",
    "german",
    "heart",
    "image",
    "ringnorm",
    "splice",
    "thyroid",
    "titanic",
    "twonorm",
    "waveform",
]
ABSENT = f"{DATA} is not here: nothing to measure. It holds NAME.npz with X, y, train_idx and test_idx for each set."

D, CENTRES, SPREAD = 20, 24, 1.2  # of the Gaussians: columns, for each class, deviation of their centres


@dataclass(frozen=True)
class Split:
    """Rows to train on and rows to test on."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array

    @property
    def d(self) -> int:
        return self.X.shape[1]

    def error(self, model: Any) -> float:
        """Percent of the test rows."""
        return 100 * float(np.mean(model.predict(self.X_test) != self.y_test))

    def mapped(self, scaler: Any) -> Split:
        """Both parts through a transformer that is fitted to the training part."""
        scaler.fit(self.X)
        return Split(scaler.transform(self.X), self.y, scaler.transform(self.X_test), self.y_test)


def present() -> bool:
    """Are the data of the benchmark here?"""
    return all((DATA / f"{name}.npz").exists() for name in RAETSCH)


def whole(name: str) -> tuple[Array, Array]:
    """All rows of a set, and their labels."""
    with np.load(DATA / f"{name}.npz") as file:
        return file["X"].astype(np.float64), file["y"]


def splits(name: str, most: int | None = None) -> Iterator[Split]:
    """The stored splits of a set, the first ``most`` of them."""
    X, y = whole(name)
    with np.load(DATA / f"{name}.npz") as file:
        parts = zip(file["train_idx"][:most], file["test_idx"][:most], strict=True)
    for train, test in parts:
        yield Split(X[train], y[train], X[test], y[test])


def gaussians(n: int, seed: int, dtype: Any = np.float32) -> tuple[Array, Array]:
    """Many Gaussians for each of two classes, labels -1 and +1; the same centres for every seed."""
    centres = SPREAD * np.random.default_rng(0).normal(size=(2 * CENTRES, D)).astype(dtype)
    rng = np.random.default_rng([1, seed])
    which = rng.integers(2 * CENTRES, size=n)
    X = rng.standard_normal((n, D), dtype=dtype)
    X += centres[which]
    return X, np.where(which < CENTRES, -1, 1)
