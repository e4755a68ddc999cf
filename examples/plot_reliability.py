"""How often predictions of a given probability are right: ``python examples/plot_reliability.py [FILE]``."""

from __future__ import annotations

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification, make_moons
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from slimsvm import SlimSVC

ROWS, BINS = 1000, 10


def moons() -> tuple[np.ndarray, np.ndarray]:
    """Two classes that overlap."""
    return make_moons(21_000, noise=0.35, random_state=0)


def five_classes() -> tuple[np.ndarray, np.ndarray]:
    """Clusters that overlap, one label in twenty drawn at random."""
    return make_classification(
        21_000, 12, n_informative=6, n_redundant=2, n_classes=5, class_sep=1.2, flip_y=0.05, random_state=0
    )


def curve(p: np.ndarray, correct: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean highest probability and share of right answers, in bins of equally many rows; the mean distance of both."""
    order = np.array_split(np.argsort(p.max(axis=1)), BINS)
    sure = np.array([p.max(axis=1)[rows].mean() for rows in order])
    right = np.array([correct[rows].mean() for rows in order])
    return sure, right, float(np.abs(sure - right).mean())


def main() -> None:
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for axis, make, vectors in zip(axes, (moons, five_classes), (10, 40), strict=True):
        X, X_test, y, y_test = train_test_split(*make(), train_size=ROWS, random_state=0)
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
        models = {
            f"SlimSVC, {vectors} vectors": SlimSVC(vectors, probability=True),
            "SVC(probability=True)": SVC(probability=True, random_state=0),
        }
        axis.plot([0, 1], [0, 1], color="0.8", zorder=0)
        for (label, model), style in zip(models.items(), ("o-", "s--"), strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # SVC's parameter is on its way out
                model.fit(X, y)
            p = model.predict_proba(X_test)
            sure, right, distance = curve(p, model.classes_[p.argmax(axis=1)] == y_test)
            text = f"{label}\nlog-loss {log_loss(y_test, p):.3f}, mean distance {distance:.3f}"
            axis.plot(sure, right, style, label=text, markersize=4)
        low = 1 / len(np.unique(y))
        axis.set(xlabel="highest probability", ylabel="share of right predictions", xlim=(low, 1), ylim=(low, 1))
        axis.set_title(f"{len(np.unique(y))} classes, {ROWS} rows to train on")
        axis.legend(fontsize="small", loc="upper left")
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "reliability.png", dpi=110)


if __name__ == "__main__":
    main()
