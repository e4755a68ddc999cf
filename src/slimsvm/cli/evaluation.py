"""How well a model does on rows with labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from .console import grid, percent
from .labels import detects_outliers


def judge(model: Any, X: Any, y: Any, weights: Any = None) -> dict[str, Any]:
    """Error with its standard error, and the confusion matrix; R^2 and errors in the target's unit for regressors."""
    predicted = model.predict(X)
    if not hasattr(model, "classes_") and not detects_outliers(model):
        return _of_values(predicted, y, weights)
    error, standard_error = error_of(predicted != y, weights)
    labels = np.unique(np.concatenate([np.unique(y), np.asarray(getattr(model, "classes_", [-1, 1]))]))
    from sklearn.metrics import confusion_matrix

    found: dict[str, Any] = {
        "rows": len(y),
        "error": error,
        "standard_error": standard_error,
        "classes": labels.tolist(),
        "confusion": confusion_matrix(y, predicted, labels=labels).tolist(),
    }
    if hasattr(model, "predict_proba"):
        found["log_loss"] = _log_loss(model, X, y, weights)
    return found


def _of_values(predicted: Any, y: Any, weights: Any) -> dict[str, Any]:
    from sklearn.metrics import r2_score

    missed = y - predicted
    return {
        "rows": len(y),
        "r2": float(r2_score(y, predicted, sample_weight=weights)) if len(y) > 1 else float("nan"),
        "rmse": float(np.sqrt(np.average(missed**2, weights=weights))),
        "mean_absolute_error": float(np.average(np.abs(missed), weights=weights)),
    }


def error_of(wrong: Any, weights: Any = None) -> tuple[float, float]:
    """The share of wrong rows, by weight, and its standard error.

    The standard error is that of one more wrong and one more right row: no error in a few rows is no proof.
    """
    w = np.ones(len(wrong)) if weights is None else weights
    if not w.sum():
        return float("nan"), float("nan")
    share, count = float(w @ wrong / w.sum()), float(w.sum() ** 2 / (w @ w))
    likely = (count * share + 1) / (count + 2)
    return share, float(np.sqrt(likely * (1 - likely) / (count + 2)))


def _log_loss(model: Any, X: Any, y: Any, weights: Any) -> float | None:
    """Of rows whose class the model knows."""
    known = np.isin(y, model.classes_)
    if not known.any():
        return None
    number = np.searchsorted(model.classes_, y[known])
    likely = model.predict_proba(X)[np.flatnonzero(known), number]
    return float(np.average(-np.log(np.maximum(likely, 1e-15)), weights=None if weights is None else weights[known]))


def majority_error(y_train: Any, y: Any, weights_train: Any = None, weights: Any = None) -> float:
    """The error of always saying the largest class."""
    classes, codes = np.unique(y_train, return_inverse=True)
    return error_of(y != classes[np.argmax(np.bincount(codes, weights_train))], weights)[0]


def confusion_table(found: dict[str, Any], most: int = 12) -> list[Any]:
    """The confusion matrix with the recall of each class; nothing where it would be too large."""
    labels = found.get("classes", [])
    if not labels or len(labels) > most:
        return []
    rows: list[list[Any]] = []
    for label, counts in zip(labels, found["confusion"], strict=True):
        recall = percent(counts[len(rows)] / sum(counts)) if sum(counts) else ""
        rows.append([label, *counts, recall])
    return [grid(["true \\ said", *labels, "right"], rows, narrow=True)]
