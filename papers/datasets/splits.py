"""Labelled rows, and their division into a training part and a test part."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Protocol

import numpy as np

from slimsvm.linalg.arrays import Array


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to train on and rows to test on.

    Parameters
    ----------
    X, y : ndarray
        The training part: rows and labels.
    X_test, y_test : ndarray
        The test part.
    original : bool, default=False
        Is this one of the splits that were published with the set? Otherwise it was drawn at random.
    """

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    original: bool = False

    @property
    def d(self) -> int:
        """Number of inputs."""
        return self.X.shape[1]

    def error(self, model: Any) -> float:
        """Percent of the test rows that a fitted model has wrong."""
        return 100 * float(np.mean(model.predict(self.X_test) != self.y_test))

    def mapped(self, scaler: Any) -> Split:
        """Both parts through a transformer that is fitted to the training part."""
        scaler.fit(self.X)
        return Split(scaler.transform(self.X), self.y, scaler.transform(self.X_test), self.y_test, self.original)


class Division(Protocol):
    """How a set is divided: see `RandomParts` and `Folds`."""

    @property
    def n_splits(self) -> int:
        """Number of splits."""

    def draw(self, name: str, k: int, y: Array) -> tuple[Array, Array]:
        """Row numbers of split k: the training part, the test part."""


@dataclass(frozen=True)
class RandomParts:
    """Training and test parts of fixed sizes, drawn from all rows."""

    n_train: int
    n_test: int
    n_splits: int

    def draw(self, name: str, k: int, y: Array) -> tuple[Array, Array]:
        order = frozen_random(name, k).permutation(len(y))
        return np.sort(order[: self.n_train]), np.sort(order[self.n_train : self.n_train + self.n_test])


@dataclass(frozen=True)
class Folds:
    """Cross-validation: parts with equal shares of each class, each of them the test part once.

    Splits from ``n_splits`` on belong to further divisions into parts.
    """

    n_splits: int

    def draw(self, name: str, k: int, y: Array) -> tuple[Array, Array]:
        division, part = divmod(k, self.n_splits)
        order = frozen_random(name, division).permutation(len(y))
        order = order[np.argsort(y[order], kind="stable")]  # classes one after the other, dealt out like cards
        fold = np.empty(len(y), dtype=int)
        fold[order] = np.arange(len(y)) % self.n_splits
        return np.flatnonzero(fold != part), np.flatnonzero(fold == part)


@dataclass(frozen=True, eq=False)
class Dataset:
    """All rows of a set, and its splits.

    Parameters
    ----------
    name : str
        As in :func:`names`.
    X : ndarray of shape (n_rows, n_inputs)
        float64, but float32 for usps and uint8 for mnist.
    y : ndarray of shape (n_rows,)
        -1 and 1, or the digit.
    source : str
        Where the rows come from.
    protocol : RandomParts or Folds
        How splits are drawn where none are published.
    train_idx, test_idx : ndarray of shape (n_original, n_rows_of_the_part)
        Row numbers of the splits that came with the rows, possibly none.

    Examples
    --------
    >>> from papers import datasets
    >>> twonorm = datasets.load("twonorm")
    >>> twonorm.X.shape, twonorm.n_splits
    ((7400, 20), 100)
    >>> twonorm.split(3).X.shape
    (400, 20)
    """

    name: str
    X: Array = field(repr=False)
    y: Array = field(repr=False)
    source: str
    protocol: Division
    train_idx: Array = field(repr=False)
    test_idx: Array = field(repr=False)

    @property
    def n_splits(self) -> int:
        """Number of splits in the protocol that papers follow."""
        return self.protocol.n_splits

    @property
    def n_original(self) -> int:
        """Number of published splits that are here: the first ones."""
        return len(self.train_idx)

    def split(self, k: int) -> Split:
        """Split number k, from 0. The published ones come first; others are drawn, the same in every run.

        ``k`` may exceed ``n_splits``: more splits of the same kind.
        """
        if not isinstance(k, Integral) or isinstance(k, bool) or k < 0:
            raise ValueError(f"split={k!r}: splits are counted 0, 1, 2, ...; {self.name} has {self.n_splits} of them")
        original = k < self.n_original
        train, test = (
            (self.train_idx[k], self.test_idx[k]) if original else self.protocol.draw(self.name, int(k), self.y)
        )
        return Split(self.X[train], self.y[train], self.X[test], self.y[test], original)


def frozen_random(*key: Any) -> np.random.RandomState:
    """A stream of random numbers that depends on the key alone.

    `RandomState` and not `Generator`: numpy promises that its numbers stay the same in later versions.
    """
    digest = hashlib.sha256(repr(key).encode()).digest()
    return np.random.RandomState(np.frombuffer(digest, dtype="<u4").astype(np.uint32))
