"""
Vectors as digits
=================

A small model can be looked at. Its vectors have the units of the data: those of a model for images are images.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from slimsvm import ReducedSVC, SlimSVC, VectorsDisplay

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.5, stratify=y, random_state=0)

# %%
# 28 vectors for ten digits, learned together with their coefficients for all pairs of digits; and 28 rows that are
# drawn at random, with the coefficients that suit them best.

settings = {"C": 10, "gamma": 0.5}
learned = SlimSVC(28, scales="fixed", **settings).fit(X, y)
drawn = ReducedSVC(28, **settings).fit(X, y)
svc = SVC(**settings).fit(X, y)
print(f"SVC, {len(svc.support_)} vectors: {svc.score(X_test, y_test):.1%} of new rows right")

# %%
# Above each image: the digit that it speaks for, and how loud.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
scores, displays = {}, {}
for ax, name, model in zip(axes, ("learned", "drawn"), (learned, drawn), strict=True):
    scores[name] = model.score(X_test, y_test)
    displays[name] = VectorsDisplay.from_estimator(model, shape=(8, 8), ax=ax)
    ax.set_title(f"28 vectors {name}: {scores[name]:.1%} right", pad=14)

# %%
# Rows are what somebody wrote, and a few of them miss many ways to write a digit. A learned vector is softer than any
# scan, as it stands for all rows around it. One of those that speak for 8, and the rows nearest to it:

eight = displays["learned"].vectors[displays["learned"].speaks_for == 8][0]
nearest = X[((X - eight) ** 2).sum(axis=1).argsort()[:4]]
figure, axes = plt.subplots(1, 5, figsize=(9, 2.2), layout="constrained")
for ax, image, title in zip(axes, (eight, *nearest), ("learned", *("row",) * 4), strict=True):
    ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    ax.set(xticks=[], yticks=[], title=title)
