"""Rows to train and test on: Gaussians, and the sets of the papers that are here, with their published splits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from papers import datasets
from papers.datasets import RAETSCH, Split

from .problems import Array

__all__ = ["ABSENT", "RAETSCH", "Split", "gaussians", "present", "splits", "whole"]

ABSENT = (
    "The data sets are not here: nothing to measure. SLIMSVM_DATA names their folder, with NAME.npz for each of them."
)

D, CENTRES, SPREAD = 20, 24, 1.2  # of the Gaussians: columns, for each class, deviation of their centres


def present() -> bool:
    """Are the data of the benchmark here?"""
    return all(datasets.available(name) for name in RAETSCH)


def whole(name: str) -> tuple[Array, Array]:
    """All rows of a set, and their labels."""
    found = datasets.load(name, download=False)
    return found.X.astype(np.float64), found.y


def splits(name: str, most: int | None = None) -> Iterator[Split]:
    """The published splits of a set that are here (the first one drawn if there is none), ``most`` of them."""
    found = datasets.load(name, download=False)
    for k in range(max(1, found.n_original))[:most]:
        split = found.split(k)
        yield Split(split.X.astype(np.float64), split.y, split.X_test.astype(np.float64), split.y_test, split.original)


def gaussians(n: int, seed: int, dtype: Any = np.float32) -> tuple[Array, Array]:
    """Many Gaussians for each of two classes, labels -1 and +1; the same centres for every seed."""
    centres = SPREAD * np.random.default_rng(0).normal(size=(2 * CENTRES, D)).astype(dtype)
    rng = np.random.default_rng([1, seed])
    which = rng.integers(2 * CENTRES, size=n)
    X = rng.standard_normal((n, D), dtype=dtype)
    X += centres[which]
    return X, np.where(which < CENTRES, -1, 1)
