"""
Outliers and norms of slacks
============================

The slack of a row is how far it falls short of its margin. What slacks cost together is a choice: their sum
(``"l1"``, the standard machine) or the sum of their squares (``"l2"``), for instance. The choice shows when some rows
are far from where they should be.
"""

import matplotlib.pyplot as plt
import numpy as np

from slimsvm import AnyNormSVC

# %%
# Two classes side by side; then five rows of the left class turn up far to the right.


def two_classes(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(2, size=n)
    return np.where(y[:, None] == 1, [1.0, 0.0], [-1.0, 0.0]) + rng.normal(size=(n, 2)) * [0.6, 1.2], y


def with_outliers(X: np.ndarray, y: np.ndarray, distance: float, count: int = 5) -> tuple[np.ndarray, np.ndarray]:
    strays = distance * np.array([0.87, 0.5]) + np.random.default_rng(1).normal(scale=0.3, size=(count, 2))
    return np.vstack([X, strays]), np.r_[y, np.zeros(count, dtype=int)]


rng = np.random.default_rng(0)
X, y = two_classes(200, rng)
X_test, y_test = two_classes(20_000, rng)
LOOKS = {
    ("l1", "inequality"): ("sum of slacks", "C2", "-"),
    ("l1", "equality"): ("least 1-norm", "C7", "--"),
    ("l2", "inequality"): ("sum of squares", "C3", "-"),
    ("l2", "equality"): ("least squares", "C4", ":"),
}


def fit(norm: tuple[str, str], X: np.ndarray, y: np.ndarray) -> AnyNormSVC:
    return AnyNormSVC(*norm, kernel="linear", tol=1e-5).fit(X, y)


# %%
# The boundaries without and with these rows. With ``constraint="equality"`` rows beyond their margin cost, too: that
# is the least-squares machine, and its sister with the 1-norm.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", sharex=True, sharey=True)
for ax, (rows, labels), title in zip(
    axes, ((X, y), with_outliers(X, y, 8)), ("clean rows", "five strays at the right"), strict=True
):
    for label, color, marker in ((0, "C0", "o"), (1, "C1", "s")):
        mine = rows[labels == label]
        ax.scatter(*mine.T, s=14, color=color, marker=marker, lw=0, alpha=0.8)
    height = np.array([-5.0, 5.5])
    for norm, (name, color, style) in LOOKS.items():
        model = fit(norm, rows, labels)
        weights = (model.vector_coef_ @ model.vectors_)[0]  # of a linear machine: f(x) = weights x + bias
        ax.plot(
            -(model.intercept_[0] + weights[1] * height) / weights[0], height, color=color, ls=style, lw=2, label=name
        )
    ax.set(title=title, xlabel="x0", xlim=(-3.5, 8), ylim=height)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("x1")
handles, names = axes[0].get_legend_handles_labels()
figure.legend(handles, names, loc="outside lower center", ncols=4)

# %%
# A stray costs its distance, or the square of it. Errors on new rows, all of them clean, against how far the five
# strays are:

distances = np.linspace(0, 10, 11)
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
errors = {}
for norm, (name, color, style) in LOOKS.items():
    errors[name] = [1 - fit(norm, *with_outliers(X, y, far)).score(X_test, y_test) for far in distances]
    ax.plot(distances, 100 * np.array(errors[name]), color=color, ls=style, lw=2, marker="o", ms=4, label=name)
ax.set(xlabel="distance of the strays", ylabel="error on clean rows, %", ylim=(0, 20))
ax.spines[["top", "right"]].set_visible(False)
ax.legend()
print("  ".join(f"{name}: {100 * error[-1]:.1f} %" for name, error in errors.items()))

# %%
# Strays turn the boundaries of squares, and the further away they are, the more; those of the 1-norm stay. No such
# norm stands everything: twenty strays instead of five turn them all.

many = {
    name: 1 - fit(norm, *with_outliers(X, y, 10, count=20)).score(X_test, y_test) for norm, (name, *_) in LOOKS.items()
}
print("  ".join(f"{name}: {100 * error:.1f} %" for name, error in many.items()))
