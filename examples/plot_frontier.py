"""Error against size on three problems: ``python examples/plot_frontier.py [FILE]`` saves the picture."""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SlimSVC, frontier


def checkerboard(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Six by six squares of two colours, and one label in twenty flipped."""
    X = rng.uniform(0, 6, size=(n, 2))
    y = np.floor(X).sum(axis=1) % 2 == 0
    return X, y ^ (rng.random(n) < 0.05)


def main() -> None:
    problems = {
        "breast cancer, 569 x 30": load_breast_cancer(return_X_y=True),
        "checkerboard, 2000 x 2": checkerboard(2000, np.random.default_rng(0)),
        "digits, 1797 x 64": load_digits(return_X_y=True),
    }
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for axis, (title, (X, y)) in zip(axes, problems.items(), strict=True):
        found = frontier(X, y, estimator=make_pipeline(StandardScaler(), SlimSVC()), verbose=True)
        print(title, found, sep="\n")
        found.plot(axis)
        axis.set(title=title)
        axis.set_ylim(bottom=0)
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "frontier.png", dpi=110)


if __name__ == "__main__":
    main()
