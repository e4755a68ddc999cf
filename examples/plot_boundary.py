"""
The boundary against the size
=============================

How much of a boundary can 2, 4, 8 or 16 vectors draw? A support vector machine keeps every row near the boundary.
:class:`~slimsvm.SlimSVC` places a few vectors where they draw it best; they need not be rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from slimsvm import SlimSVC, VectorsDisplay

# %%
# Two bananas that reach into each other, and a small group of either class on the far side of the other:


def bananas(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two arcs and two groups, with noise."""
    y = rng.integers(2, size=n)
    angle = rng.uniform(0, np.pi, n)
    arc = np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.where(y[:, None] == 1, [1.0, 0.35] - arc, arc)
    far = rng.random(n) < 0.2
    X[far] = np.array([[1.0, -1.3], [0.0, 1.65]])[y[far]]
    return X + rng.normal(scale=0.18, size=(n, 2)), y


rng = np.random.default_rng(0)
X, y = bananas(500, rng)
X_test, y_test = bananas(10_000, rng)
svc = SVC(C=10, gamma=1.0).fit(X, y)
full_error = 1 - svc.score(X_test, y_test)
print(f"SVC: {len(svc.support_)} vectors, {full_error:.1%} of new rows wrong")

# %%
# Cost and width of the kernel are searched for each size; the scales of the two inputs are learned with the vectors.

figure, axes = plt.subplots(2, 2, figsize=(8.4, 7.6), layout="constrained", sharex=True, sharey=True)
errors = {}
for ax, size in zip(axes.flat, (2, 4, 8, 16), strict=True):
    model = SlimSVC(size, scales="learned").fit(X, y)
    errors[size] = 1 - model.score(X_test, y_test)
    VectorsDisplay.from_estimator(model, X, y, ax=ax, legend=ax is axes[1, 1])
    ax.set_title(f"{size} vectors: {errors[size]:.1%} wrong")
    ax.label_outer()

# %%
# Two vectors tell little more than above from below. Four also see the groups, with a kernel that is wide in one
# direction and narrow in the other, and predict new rows as well as the machine with all its vectors. Eight and sixteen
# have little to add.

print("  ".join(f"{size} vectors: {error:.1%}" for size, error in errors.items()))
