"""
A stream that drifts
====================

``partial_fit`` of :class:`~slimsvm.SlimSVC` learns from rows that come block by block, and moves its vectors on. What
it should remember depends on the stream: all of it, where nothing changes; the last rows, where something does.
"""

from copy import deepcopy

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_moons

from slimsvm import SlimSVC, VectorsDisplay

# %%
# Two moons that turn slowly, by a third of a turn in all; in the middle of the stream the labels change places.

BLOCKS, ROWS = 40, 250
CHANGE = BLOCKS // 2


def block(number: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a moment."""
    X, y = make_moons(ROWS, noise=0.15, random_state=1000 * seed + number)
    angle = 2 / 3 * np.pi * number / BLOCKS
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return (X - [0.5, 0.25]) @ turn.T, y if number < CHANGE else 1 - y


# %%
# Three models of ten vectors: one that knows the first ten blocks only, one with a sample of all rows that came, and
# one with the last 1000 rows. Each block is predicted first and learned from then: what a model is worth on a stream
# is what it knows of rows to come.

settings = SlimSVC(10, C=10, gamma=2.0, scales="fixed", memory=1000)
models = {
    "the first rows": clone(settings),
    "a sample of all rows": clone(settings),
    "the last rows": clone(settings).set_params(recent=True),
}
scores = {name: [] for name in models}
snapshots = {}
for number in range(BLOCKS):
    X, y = block(number)
    for name, model in models.items():
        if number:
            scores[name].append(model.score(X, y))
        if number < 10 or name != "the first rows":
            model.partial_fit(X, y, classes=[0, 1])
    if number in (4, CHANGE - 1, CHANGE + 1, BLOCKS - 1):
        snapshots[number] = (deepcopy(models["the last rows"]), X, y)

figure, ax = plt.subplots(figsize=(9, 3.8), layout="constrained")
for (name, found), style in zip(scores.items(), (":", "--", "-"), strict=True):
    ax.plot(range(1, BLOCKS), 100 * np.array(found), style, lw=2, label=name)
ax.axvline(CHANGE, color="C7", lw=1)
ax.annotate("labels change places", (CHANGE, 8), (-6, 0), textcoords="offset points", ha="right")
ax.set(xlabel="block", ylabel="right before learning, %", ylim=(0, 102))
ax.spines[["top", "right"]].set_visible(False)
figure.legend(loc="outside lower center", ncols=3)
print("last block:", "  ".join(f"{name}: {found[-1]:.0%}" for name, found in scores.items()))

# %%
# The model that looks back 1000 rows, four blocks, follows the turn. It needs three blocks to believe the change: two
# after it, half of what it remembers says otherwise. A shorter memory would believe it sooner, and be less sure of
# everything else.

figure, axes = plt.subplots(1, 4, figsize=(11, 3.4), layout="constrained")
for ax, (number, (model, X, y)) in zip(axes, snapshots.items(), strict=True):
    VectorsDisplay.from_estimator(model, X, y, ax=ax, legend=number == 4)
    ax.set(title=f"after block {number + 1}", xlabel="", ylabel="")
