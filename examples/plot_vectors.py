"""What small models keep: ``python examples/plot_vectors.py [FILE]`` saves the picture."""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer, load_digits, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SlimSVC, VectorsDisplay


def main() -> None:
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.8), layout="constrained", width_ratios=(1, 1.05, 1.5))
    X, y = make_moons(400, noise=0.25, random_state=1)
    VectorsDisplay.from_estimator(SlimSVC(8).fit(X, y), X, y, ax=axes[0])
    axes[0].set_title("two inputs")

    X, y = load_digits(return_X_y=True)
    VectorsDisplay.from_estimator(SlimSVC(30).fit(X, y), shape=(8, 8), ax=axes[1])
    axes[1].set_title("images: class and weight", pad=14)

    table = load_breast_cancer(as_frame=True)
    model = make_pipeline(StandardScaler(), SlimSVC(16, scales="learned")).fit(table.data, table.target)
    VectorsDisplay.from_estimator(model, table.data, ax=axes[2], most_inputs=14)
    axes[2].set_title("30 inputs, learned scales")
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "vectors.png", dpi=80)


if __name__ == "__main__":
    main()
