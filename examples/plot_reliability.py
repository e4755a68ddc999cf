"""How often predictions of a given probability are right: ``python examples/plot_reliability.py [FILE]``."""

from __future__ import annotations

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification, make_moons
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from slimsvm import CalibrationDisplay, SlimSVC

ROWS = 1000


def moons() -> tuple[np.ndarray, np.ndarray]:
    """Two classes that overlap."""
    return make_moons(21_000, noise=0.35, random_state=0)


def five_classes() -> tuple[np.ndarray, np.ndarray]:
    """Clusters that overlap, one label in twenty drawn at random."""
    return make_classification(
        21_000, 12, n_informative=6, n_redundant=2, n_classes=5, class_sep=1.2, flip_y=0.05, random_state=0
    )


def main() -> None:
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
    for axis, make, vectors in zip(axes, (moons, five_classes), (10, 40), strict=True):
        X, X_test, y, y_test = train_test_split(*make(), train_size=ROWS, random_state=0)
        models = {
            f"SlimSVC, {vectors} vectors": SlimSVC(vectors, probability=True),
            "SVC(probability=True)": SVC(probability=True, random_state=0),
        }
        for (name, model), style in zip(models.items(), ("-", "--"), strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # SVC's parameter is on its way out
                fitted = make_pipeline(StandardScaler(), model).fit(X, y)
            look = {"ax": axis, "show_counts": False, "line_kw": {"ls": style}}
            CalibrationDisplay.from_estimator(fitted, X_test, y_test, strategy="quantile", name=name, **look)
        axis.set_title(f"{len(np.unique(y))} classes, {ROWS} rows to train on")
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "reliability.png", dpi=110)


if __name__ == "__main__":
    main()
