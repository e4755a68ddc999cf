"""The confusion matrix of a classifier, with accuracy, precision and recall."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from ..linalg.arrays import Array

Z_95 = 1.959964  # half the width of a 95 % interval, in standard errors


@dataclass(frozen=True)
class ConfusionCounts:
    """Counts of rows by true class (lines) and predicted class (columns)."""

    classes: tuple[Any, ...]
    confusion: Array

    @classmethod
    def of(cls, model: Any, known: Array, X: Any, y: Any) -> ConfusionCounts:
        """The confusion matrix of a model's predictions; ``known`` are the model's classes.

        Labels that the model does not know are further classes; ValueError if it knows none of the labels.
        """
        y = np.asarray(y)
        predicted = np.asarray(model.predict(X))
        check_consistent_length(predicted, y)
        if y.ndim != 1 or not len(y):
            raise ValueError(f"y has the shape {y.shape}; give a label for each row, and one row at least")
        given = set(y.tolist())
        if given.isdisjoint(known.tolist()):
            raise ValueError(
                f"none of the labels in y is a class of the model: y has {_listed(given)}, the model has "
                f"{_listed(known.tolist())}; give labels as the model was fitted with them, of the same type"
            )
        strange = sorted(given - set(known.tolist()), key=str)
        classes = (*known.tolist(), *strange)
        place = {label: k for k, label in enumerate(classes)}
        counts = np.zeros((len(classes), len(classes)), dtype=int)
        np.add.at(counts, ([place[label] for label in y.tolist()], [place[label] for label in predicted.tolist()]), 1)
        return cls(classes, counts)

    @property
    def rows(self) -> int:
        return int(self.confusion.sum())

    @property
    def right(self) -> int:
        return int(np.trace(self.confusion))

    @property
    def accuracy(self) -> float:
        return self.right / self.rows

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the accuracy."""
        n, p = self.rows, self.accuracy
        middle, half = p + Z_95**2 / (2 * n), Z_95 * np.sqrt(p * (1 - p) / n + Z_95**2 / (4 * n * n))
        low, high = ((middle + side * half) / (1 + Z_95**2 / n) for side in (-1, 1))
        return max(0.0, min(float(low), p)), min(1.0, max(float(high), p))  # without rounding errors at 0 and 1

    @cached_property
    def per_class(self) -> list[tuple[Any, int, float, float, float]]:
        """Class, rows, precision, recall and F1 score of each class; NaN where the denominator is zero."""
        hits, mine, said = np.diag(self.confusion), self.confusion.sum(axis=1), self.confusion.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            precision, recall, both = hits / said, hits / mine, 2 * hits / (said + mine)
        return list(zip(self.classes, mine.tolist(), precision, recall, both, strict=True))

    def mistakes(self, limit: int = 3) -> list[tuple[Any, Any, int]]:
        """The most frequent confusions: true class, predicted class, number of rows."""
        wrong = self.confusion - np.diag(np.diag(self.confusion))
        order = np.argsort(-wrong, axis=None, kind="stable")[:limit]
        places = [np.unravel_index(k, wrong.shape) for k in order]
        return [(self.classes[i], self.classes[j], int(wrong[i, j])) for i, j in places if wrong[i, j]]


def _listed(labels: Iterable[Any]) -> str:
    """A few of the labels as Python literals, with their types."""
    ordered = sorted(labels, key=str)
    kinds = sorted({type(label).__name__ for label in ordered})
    return f"{', '.join(map(repr, ordered[:5]))}{', ...' if len(ordered) > 5 else ''} ({', '.join(kinds)})"
