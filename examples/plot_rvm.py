"""
RVM and L0 side by side
=======================

Two machines that choose their size by themselves. :class:`~slimsvm.LpSVC` with ``p=0`` adds a penalty on coefficients
to the support vector machine that pushes most of them to zero. :class:`~slimsvm.RelevanceVectorClassifier` gives each
coefficient a prior of its own, and the evidence removes those it can do without. Both keep training rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from slimsvm import AnyNormSVC, LpSVC, RelevanceVectorClassifier, VectorsDisplay

# %%
# Two classes of two groups each, as in Ripley's well-known set: nobody can have fewer than 8 % of errors here.

CENTRES = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])


def groups(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(2, size=n)
    return CENTRES[y, rng.integers(2, size=n)] + rng.normal(scale=np.sqrt(0.03), size=(n, 2)), y


MACHINES = {
    "support vector machine": AnyNormSVC(gamma=2.0),
    "L0: LpSVC(p=0)": LpSVC(gamma=2.0),
    "RVM": RelevanceVectorClassifier(gamma=2.0),
}
rng = np.random.default_rng(0)
X, y = groups(250, rng)
X_test, y_test = groups(20_000, rng)

figure, axes = plt.subplots(1, 3, figsize=(11.5, 4.4), layout="constrained", sharex=True, sharey=True)
for ax, (name, machine) in zip(axes, MACHINES.items(), strict=True):
    model = machine.fit(X, y)
    display = VectorsDisplay.from_estimator(model, X, y, ax=ax, legend=name == "RVM")
    display.vectors_.set(linewidths=1.6)
    ax.set_title(f"{name}\n{model.n_vectors_} vectors, {1 - model.score(X_test, y_test):.1%} wrong")
    ax.label_outer()

# %%
# The support vector machine keeps each row that is not beyond its margin, and so a share of all rows: with the errors
# of the problem the vectors grow with the data. The other two do not.

sizes = (50, 100, 200, 400)
DRAWS = 5
counts = {name: np.zeros((len(sizes), DRAWS)) for name in MACHINES}
errors = {name: np.zeros((len(sizes), DRAWS)) for name in MACHINES}
for k, size in enumerate(sizes):
    for draw in range(DRAWS):
        X, y = groups(size, np.random.default_rng([size, draw]))
        for name, machine in MACHINES.items():
            model = machine.fit(X, y)
            counts[name][k, draw], errors[name][k, draw] = model.n_vectors_, 1 - model.score(X_test, y_test)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.9), layout="constrained")
for name, style in zip(MACHINES, ("s--", "o-", "^:"), strict=True):
    left.loglog(sizes, counts[name].mean(axis=1), style, lw=2, label=name)
    right.semilogx(sizes, 100 * errors[name].mean(axis=1), style, lw=2)
left.set(ylabel="vectors", title=f"size, mean of {DRAWS} draws")
left.set_yticks([3, 10, 30, 100], [3, 10, 30, 100])
right.set(ylabel="wrong, %", title="error", ylim=(0, None))
for ax in (left, right):
    ax.set_xticks(sizes, sizes)
    ax.minorticks_off()
    ax.set_xlabel("training rows")
    ax.spines[["top", "right"]].set_visible(False)
figure.legend(loc="outside lower center", ncols=3)
print(f"{sizes[-1]} rows:", ", ".join(f"{name} {counts[name][-1].mean():.1f} vectors" for name in MACHINES))

# %%
# What they differ in: ``LpSVC`` has a cost ``C`` and a price ``C_alpha``, and is the quicker one with many rows. The
# RVM has neither, gives probabilities by itself, and depends more on the width of the kernel.
