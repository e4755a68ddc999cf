"""Weighted scores of predictions on labelled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, r2_score

from .console import grid, percent

MAX_CONFUSION_CLASSES = 12  # larger confusion matrices are not shown
SMALLEST_PROBABILITY = 1e-15  # lower bound of probabilities in the log loss


def error_rate(wrong: Any, weights: Any = None) -> tuple[float, float]:
    """The weighted error rate and its standard error.

    The standard error is that of the smoothed rate, with one wrong and one right row added, so that it is above zero
    even if no row is wrong.
    """
    w = np.ones(len(wrong)) if weights is None else weights
    if not w.sum():
        return float("nan"), float("nan")
    share, count = float(w @ wrong / w.sum()), float(w.sum() ** 2 / (w @ w))
    smoothed = (count * share + 1) / (count + 2)
    return share, float(np.sqrt(smoothed * (1 - smoothed) / (count + 2)))


def baseline_error(y_train: Any, y: Any, weights_train: Any = None, weights: Any = None) -> float:
    """Baseline: the weighted error of always predicting the largest class."""
    classes, codes = np.unique(y_train, return_inverse=True)
    return error_rate(y != classes[np.argmax(np.bincount(codes, weights_train))], weights)[0]


def classification_scores(predicted: Any, y: Any, classes: Any, weights: Any) -> dict[str, Any]:
    """Error with its standard error, and the confusion matrix."""
    error, standard_error = error_rate(predicted != y, weights)
    labels = np.unique(np.concatenate([np.unique(y), np.asarray(classes)]))
    return {
        "rows": len(y),
        "error": error,
        "standard_error": standard_error,
        "classes": labels.tolist(),
        "confusion": confusion_matrix(y, predicted, labels=labels).tolist(),
    }


def regression_scores(predicted: Any, y: Any, weights: Any) -> dict[str, Any]:
    """R², RMS error and mean absolute error, the errors in the unit of the target."""
    residuals = y - predicted
    return {
        "rows": len(y),
        "r2": float(r2_score(y, predicted, sample_weight=weights)) if len(y) > 1 else float("nan"),
        "rmse": float(np.sqrt(np.average(residuals**2, weights=weights))),
        "mean_absolute_error": float(np.average(np.abs(residuals), weights=weights)),
    }


def log_loss(probabilities: Any, classes: Any, y: Any, weights: Any) -> float | None:
    """The log loss over rows whose label is a class of the model; None if there are none."""
    known = np.isin(y, classes)
    if not known.any():
        return None
    p = probabilities[np.flatnonzero(known), np.searchsorted(classes, y[known])]
    weights = None if weights is None else weights[known]
    return float(np.average(-np.log(np.maximum(p, SMALLEST_PROBABILITY)), weights=weights))


def confusion_table(scores: dict[str, Any]) -> list[Any]:
    """The confusion matrix with the recall of each class; empty if there is none or it has too many classes."""
    labels = scores.get("classes", [])
    if not 0 < len(labels) <= MAX_CONFUSION_CLASSES:
        return []
    rows = [
        [label, *counts, percent(counts[k] / sum(counts)) if sum(counts) else ""]
        for k, (label, counts) in enumerate(zip(labels, scores["confusion"], strict=True))
    ]
    return [grid(["true \\ said", *labels, "right"], rows, narrow=True)]
