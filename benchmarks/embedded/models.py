"""The models that are measured: rows of stored sets where these are there, of scikit-learn otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from papers.datasets import available
from slimsvm import SlimSVC

from .. import sets
from ..sets import Split

BAR = "3 against 8"  # the model whose bytes have a bar


@dataclass(frozen=True)
class Case:
    """A fitted model, and rows that it was not fitted to."""

    name: str
    model: Any
    split: Split


def of_sklearn(load: Any) -> Split:
    """A third of the rows to test on."""
    X, X_test, y, y_test = train_test_split(*load(return_X_y=True), test_size=1 / 3, random_state=0)
    return Split(X, y, X_test, y_test)


def of_classes(split: Split, labels: list[int]) -> Split:
    """Rows of some classes."""
    here, there = np.isin(split.y, labels), np.isin(split.y_test, labels)
    return Split(split.X[here], split.y[here], split.X_test[there], split.y_test[there])


def stored(name: str, load: Any) -> tuple[str, Split]:
    """The first split of a stored set, or a set of scikit-learn where there is none."""
    if available(name):
        return name, next(sets.splits(name, 1))
    return load.__name__.removeprefix("load_"), of_sklearn(load)


def cases(quick: bool = False) -> Iterator[Case]:
    """All of them; the quick ones are two of scikit-learn's."""
    wine, digits = of_sklearn(datasets.load_wine), of_sklearn(datasets.load_digits)
    scaled = make_pipeline(StandardScaler(), SlimSVC(n_vectors=6, random_state=0))
    yield Case("wine, 3 classes, 6 vectors, scaler folded in", scaled.fit(wine.X, wine.y), wine)
    if quick:
        return
    name, split = stored("image", datasets.load_breast_cancer)
    split = split.mapped(StandardScaler())
    yield Case(f"{name}, 25 vectors", SlimSVC(n_vectors=25, random_state=0).fit(split.X, split.y), split)
    name, split = stored("usps", datasets.load_digits)
    split = of_classes(split, [3, 8])
    yield Case(f"{name} {BAR}, 20 vectors", SlimSVC(n_vectors=20, random_state=0).fit(split.X, split.y), split)
    for most in (2048, 8192):
        model = SlimSVC(max_bytes=most, random_state=0).fit(digits.X, digits.y)
        yield Case(f"digits, 10 classes, {most // 1024} KB", model, digits)
