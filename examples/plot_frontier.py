"""
How many vectors: the frontier
==============================

:func:`~slimsvm.frontier` makes models of several sizes, judges each on rows held out, and puts the full machine
beside them. The ring marks the smallest size that is about as good as any.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import FrontierDisplay, SlimSVC, frontier

# %%
# Three problems: tumours with thirty measurements, a checkerboard of six by six squares with one label in twenty
# flipped, and images of ten digits. (Settings are given here, and folds are few, to save time. Leave ``C``, ``gamma``
# and ``scales`` out, and they are searched for.)


def checkerboard(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(0, 6, size=(n, 2))
    y = np.floor(X).sum(axis=1) % 2 == 0
    return X, y ^ (rng.random(n) < 0.05)


cancer = make_pipeline(StandardScaler(), SlimSVC(C=1, gamma=0.01, scales="fixed"))
board = SlimSVC(C=10, gamma=3, scales="fixed")
digits = SlimSVC(C=10, gamma="scale", scales="fixed")
problems = {
    "breast cancer, 569 x 30": (load_breast_cancer(return_X_y=True), cancer, (2, 4, 8, 16)),
    "checkerboard, 2000 x 2": (checkerboard(2000, np.random.default_rng(0)), board, (4, 8, 16, 32, 64)),
    "digits, 1797 x 64": (load_digits(return_X_y=True), digits, (4, 8, 16, 32)),
}
figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
frontiers = {}
for ax, (title, ((X, y), estimator, sizes)) in zip(axes, problems.items(), strict=True):
    frontiers[title] = frontier(X, y, sizes=sizes, estimator=estimator, cv=3)
    FrontierDisplay.from_frontier(frontiers[title], ax=ax)
    ax.set(title=title)
    ax.set_ylim(bottom=0)

# %%
# For breast cancer a handful of vectors is plenty. A checkerboard needs more than one for each of its 36 squares, and
# until there are enough nothing goes. Ten classes of digits are as good as with all rows from 32 vectors on.
#
# The numbers of the last one, and models of other choices: the most accurate in so many bytes, or any size.

found = frontiers["digits, 1797 x 64"]
print(found)
small = found.best(bytes=4096)
print(f"in 4096 bytes: {small.n_vectors_} vectors, {small.model_bytes_} bytes")
