"""
Which inputs matter: learned scales
===================================

Genes are cut and joined at places with a typical sequence of letters. Whether the middle of 60 letters is such a
place depends on a few of them; the others are noise, and to a plain kernel noise counts as much. With
``scales="learned"``, :class:`~slimsvm.SlimSVC` learns a scale for each input, along with the vectors.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from slimsvm import SlimSVC, bases

# %%
# Made-up sequences: random letters, in which half of the rows have one of two patterns, each letter of it with
# probability 0.85. Of the others, half have pieces of both. Four columns of zeros and ones for a letter make 240
# inputs.

LETTERS = "ACGT"
DONOR = {27: "A", 28: "C", 29: "G", 30: "G", 31: "T", 32: "A", 33: "A", 34: "G", 35: "T"}
ACCEPTOR = {20: "T", 21: "T", 22: "C", 23: "T", 24: "C", 25: "T", 26: "C", 28: "A", 29: "G", 30: "G"}
PIECES = {27: "A", 28: "C", 29: "G", 20: "T", 21: "T", 22: "C", 23: "T"}


def sequences(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows of 60 x 4 inputs, and whether they have a pattern."""
    letters = rng.integers(4, size=(n, 60))
    kind = rng.integers(4, size=n)
    for number, pattern in enumerate((DONOR, ACCEPTOR, PIECES)):
        for place, letter in pattern.items():
            letters[(kind == number) & (rng.random(n) < 0.85), place] = LETTERS.index(letter)
    return (letters[:, :, None] == np.arange(4)).reshape(n, 240).astype(float), kind < 2


rng = np.random.default_rng(0)
X, y = sequences(1000, rng)
X_test, y_test = sequences(10_000, rng)

# %%
# A support vector machine, ten vectors with a plain kernel, and ten with learned scales:

models = {
    "SVC": SVC(C=10),
    "10 vectors, plain": SlimSVC(10, scales="fixed"),
    "10 vectors, learned scales": SlimSVC(10, bases.Learned(iterations=1000), scales="learned"),
}
errors = {}
for name, model in models.items():
    errors[name] = 1 - model.fit(X, y).score(X_test, y_test)
    print(f"{name:27} {errors[name]:.1%} of new rows wrong")

# %%
# The scales tell where the patterns are, and which letters they have: the darker, the more a letter counts at its
# place. Rings are the letters that the sequences were made with.

scales = models["10 vectors, learned scales"].kernel_.scales.reshape(60, 4)
figure, ax = plt.subplots(figsize=(10, 2.6), layout="constrained")
image = ax.imshow(scales.T, cmap="Blues", vmin=0, aspect="auto")
for pattern, color in ((DONOR, "C1"), (ACCEPTOR, "C4")):
    for place, letter in pattern.items():
        ax.plot(place, LETTERS.index(letter), "o", ms=9 if color == "C1" else 13, mfc="none", mec=color, mew=1.6)
ax.set_yticks(range(4), LETTERS)
ax.set(
    xlabel="place in the sequence",
    title="learned scale of each letter at each place; orange and purple: the two patterns",
)
figure.colorbar(image, ax=ax, pad=0.01)

# %%
# Scales are a model of their own: trained with the 25 inputs of the largest scales alone, a plain kernel does as
# well.

largest = np.argsort(-scales.ravel())[:25]
few = SlimSVC(10, bases.Learned(iterations=400), scales="fixed").fit(X[:, largest], y)
errors["25 inputs"] = 1 - few.score(X_test[:, largest], y_test)
print(f"10 vectors of 25 inputs: {errors['25 inputs']:.1%} wrong")
