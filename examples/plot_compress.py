"""
Compress a fitted SVC
=====================

A fitted :class:`sklearn.svm.SVC` keeps a good part of its training rows. :func:`~slimsvm.compress` makes a small
machine that decides the same way. The training rows are not needed.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from slimsvm import VectorsDisplay, compress

X, y = make_moons(2000, noise=0.25, random_state=0)
X_test, y_test = make_moons(10_000, noise=0.25, random_state=1)
svc = SVC(C=10, gamma=2).fit(X, y)
small = compress(svc, 10)
print(small.compression_)

# %%
# How often both give the same label to rows that neither has seen:

decided = svc.predict(X_test)
agreement = np.mean(small.predict(X_test) == decided)
print(f"same label for {agreement:.1%} of {len(X_test)} new rows")

# %%
# At the left the machine with all its vectors (asked for more vectors than there are, ``compress`` keeps them all), at
# the right the ten that replace them.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained", sharex=True, sharey=True)
for ax, model in zip(axes, (compress(svc, 1000), small), strict=True):
    display = VectorsDisplay.from_estimator(model, X[:400], y[:400], ax=ax, legend=model is small)
    display.vectors_.set_sizes([110 if model is small else 25])
    ax.set_title(f"{model.n_vectors_} vectors")
    ax.label_outer()

# %%
# A reduced set is the expansion over few vectors that is nearest to the machine in the kernel's space. That is not
# the same as the same decisions: ``compress`` corrects it where these would differ. With training rows and labels it
# is trained again on the labels, and owes the machine nothing but the start; agreement is then no aim of its own.

sizes = (3, 5, 8, 12)
ways = {
    'nearest, method="reduced_set"': {"method": "reduced_set"},
    "its decisions (no data)": {},
    "labels (X and y)": {"X": X, "y": y},
}
figure, axes = plt.subplots(1, 2, figsize=(10, 3.9), layout="constrained")
found = {name: [compress(svc, size, **way) for size in sizes] for name, way in ways.items()}
for (name, models), style in zip(found.items(), ("^:", "o-", "s--"), strict=True):
    differ = [100 * np.mean(m.predict(X_test) != decided) for m in models]
    axes[0].plot(sizes, differ, style, lw=2, label=name)
    axes[1].plot(sizes, [100 - 100 * m.score(X_test, y_test) for m in models], style, lw=2)
axes[1].axhline(100 * np.mean(decided != y_test), color="C7", lw=1, label=f"SVC, {len(svc.support_)} vectors")
for ax, label in zip(axes, ("another label than the SVC's, %", "wrong label, %"), strict=True):
    ax.set(xlabel="vectors", ylabel=label, xticks=sizes, ylim=(0, None))
    ax.spines[["top", "right"]].set_visible(False)
figure.legend(loc="outside lower center", ncols=4)
