"""
Compress a fitted SVC
=====================

A fitted :class:`sklearn.svm.SVC` keeps a good part of its training rows. :func:`~slimsvm.compress` makes a small machine
that decides the same way. The training rows are not needed.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_moons
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from slimsvm import VectorsDisplay, compress

X, y = make_moons(2000, noise=0.25, random_state=0)
X_test, y_test = make_moons(10_000, noise=0.25, random_state=1)
svc = SVC(C=10, gamma=2).fit(X, y)
small = compress(svc, 10)
print(small.compression_)

# %%
# How often both give the same label to rows that neither has seen:

agreement = np.mean(small.predict(X_test) == svc.predict(X_test))
print(f"same label for {agreement:.1%} of {len(X_test)} new rows")

# %%
# At the left the machine with all its vectors (asked for more vectors than there are, `compress` keeps them all), at the
# right the ten that replace them.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained", sharex=True, sharey=True)
for ax, model in zip(axes, (compress(svc, 1000), small), strict=True):
    VectorsDisplay.from_estimator(model, X[:400], y[:400], ax=ax, legend=model is small)
    ax.set_title(f"{model.n_vectors_} vectors")
    ax.label_outer()

# %%
# Ten classes, and a machine of hundreds of vectors. With training rows and labels, the labels are taught in place of the
# machine's own decisions: agreement may be lower and accuracy higher, even above that of the machine.

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.5, stratify=y, random_state=0)
svc = SVC(C=10, gamma=0.5).fit(X, y)
sizes = (10, 20, 40, 60)
alone = [compress(svc, size) for size in sizes]
taught = [compress(svc, size, X, y) for size in sizes]

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", sharey=True)
for models, name, style in ((alone, "the machine alone", "o-"), (taught, "with X and y", "s--")):
    agree = [np.mean(m.predict(X_test) == svc.predict(X_test)) for m in models]
    axes[0].plot(sizes, 100 * np.array(agree), style, lw=2, label=name)
    axes[1].plot(sizes, [100 * m.score(X_test, y_test) for m in models], style, lw=2)
axes[1].axhline(100 * svc.score(X_test, y_test), color="C7", ls=":", lw=2, label=f"SVC, {len(svc.support_)} vectors")
for ax, title in zip(axes, ("same label as the SVC", "right label"), strict=True):
    ax.set(title=title, xlabel="vectors", xticks=sizes)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("new rows, %")
figure.legend(loc="outside lower center", ncols=3)
