"""
Vectors against accuracy in LpSVC
=================================

:class:`~slimsvm.LpSVC` need not be told how many vectors to keep: ``C_alpha`` is what a coefficient costs, beside the
cost ``C`` of errors. What does it buy?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from slimsvm import LpSVC

# %%
# A boundary that a few vectors draw, and one that needs many; 300 rows of each.

CENTRES = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])


def two_bumps(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two Gaussians for each class, as in Ripley's data."""
    y = rng.integers(2, size=n)
    return CENTRES[y, rng.integers(2, size=n)] + rng.normal(size=(n, 2)) * np.sqrt(0.03), y


def wavy(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Four inputs, one label in ten flipped."""
    X = rng.normal(size=(n, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0
    return X, (y ^ (rng.random(n) < 0.1)).astype(int)


# %%
# Vectors above, errors on new rows below, both against ``C_alpha / C``; dotted lines are the support vector machine,
# the grey one the default of 0.1.

shares = np.logspace(-2.5, 0, 11)
vectors, errors, svms = {}, {}, {}
figure, axes = plt.subplots(2, 2, figsize=(9, 5), layout="constrained", sharex=True, sharey="row")
for (above, below), make, title in zip(axes.T, (two_bumps, wavy), ("simple boundary", "wavy boundary"), strict=True):
    rng = np.random.default_rng(0)
    X, y = make(300, rng)
    X_test, y_test = make(5000, rng)
    models = [LpSVC(C_alpha=share, gamma=1.0).fit(X, y) for share in shares]
    svms[title] = SVC(gamma=1.0).fit(X, y)
    vectors[title] = np.array([model.n_vectors_ for model in models])
    errors[title] = np.array([1 - model.score(X_test, y_test) for model in models])
    above.loglog(shares, vectors[title], "o-", color="C0")
    above.axhline(len(svms[title].support_), color="C0", ls=":", lw=2)
    above.set(title=title)
    above.set_yticks([3, 10, 30, 100, 300], [3, 10, 30, 100, 300])
    above.minorticks_off()
    below.semilogx(shares, 100 * errors[title], "s-", color="C3")
    below.axhline(100 - 100 * svms[title].score(X_test, y_test), color="C3", ls=":", lw=2)
    below.set(xlabel="C_alpha / C", ylim=(0, 35))
    for ax in (above, below):
        ax.axvline(0.1, color="C7", lw=1, alpha=0.6, zorder=0)
        ax.spines[["top", "right"]].set_visible(False)
axes[0, 0].set_ylabel("vectors")
axes[1, 0].set_ylabel("error, %")

# %%
# Where the boundary is simple, four vectors are enough at any price. Where it is not, each of them helps, and the
# price decides: a quarter of the vectors of the support vector machine has about its error, a tenth has more.

for title in errors:
    most, least = vectors[title].max(), vectors[title].min()
    print(f"{title}: {len(svms[title].support_)} vectors in SVC, {most} to {least} in LpSVC")
