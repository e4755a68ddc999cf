"""Vectors and error of `LpSVC` against C_alpha: ``python examples/plot_lp.py [FILE]`` saves the picture."""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from slimsvm import LpSVC

SHARES = np.logspace(-2.5, 0, 11)
CENTRES = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])


def two_bumps(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two Gaussians for each class, as in Ripley's data."""
    y = rng.integers(2, size=n)
    return CENTRES[y, rng.integers(2, size=n)] + rng.normal(size=(n, 2)) * np.sqrt(0.03), y


def wavy(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A boundary that needs many vectors, one label in ten flipped."""
    X = rng.normal(size=(n, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0
    return X, (y ^ (rng.random(n) < 0.1)).astype(int)


def main() -> None:
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for axis, make, title in zip(
        axes, (two_bumps, wavy), ("simple boundary, n = 300", "wavy boundary, n = 300"), strict=True
    ):
        rng = np.random.default_rng(0)
        X, y = make(300, rng)
        X_test, y_test = make(5000, rng)
        models = [LpSVC(C_alpha=share, gamma=1.0).fit(X, y) for share in SHARES]
        svm = SVC(gamma=1.0).fit(X, y)
        axis.loglog(SHARES, [m.n_vectors_ for m in models], "o-", color="tab:blue")
        axis.axhline(len(svm.support_), color="tab:blue", ls=":")
        axis.set(title=title, xlabel="C_alpha / C", ylabel="vectors")
        axis.yaxis.label.set_color("tab:blue")
        axis.axvline(0.1, color="0.8", zorder=0)
        right = axis.twinx()
        right.semilogx(SHARES, [100 * (1 - m.score(X_test, y_test)) for m in models], "s-", color="tab:red")
        right.axhline(100 * (1 - svm.score(X_test, y_test)), color="tab:red", ls=":")
        right.set(ylabel="error, %", ylim=(0, 50))
        right.yaxis.label.set_color("tab:red")
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "lp.png", dpi=110)


if __name__ == "__main__":
    main()
