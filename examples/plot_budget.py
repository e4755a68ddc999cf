"""
Hard budgets
============

The budget of Dekel and Singer's machine says how many slacks count. It is no limit on the vectors: rows on the margin
become vectors, too, however many there are. With ``hard="select"`` or ``hard="learn"``, :class:`~slimsvm.BudgetSVC`
keeps the budget.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from slimsvm import BudgetSVC, SlimSVC, VectorsDisplay

# %%
# Even digits against odd ones. For each budget, the machine as it was published; training rows that are chosen one by
# one for what they gain; vectors that start there and are then learned. And what comes to mind first: the rows with
# the largest coefficients of a full machine, with new coefficients.

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 16, y % 2, test_size=0.5, random_state=0)
settings = {"C": 10, "gamma": 0.5}
svc = SVC(**settings).fit(X, y)
loudest = svc.support_vectors_[np.argsort(-np.abs(svc.dual_coef_[0]), kind="stable")]


def largest_coefficients(budget: int) -> SlimSVC:
    return SlimSVC(budget, basis=loudest[:budget], scales="fixed", **settings)


MACHINES = {
    "soft": lambda budget: BudgetSVC(budget, **settings),
    "largest coefficients": largest_coefficients,
    'hard="select"': lambda budget: BudgetSVC(budget, hard="select", **settings),
    'hard="learn"': lambda budget: BudgetSVC(budget, hard="learn", **settings),
}
budgets = (5, 10, 20, 40)
models = {name: [make(b).fit(X, y) for b in budgets] for name, make in MACHINES.items()}
for name, found in models.items():
    print(f"{name:21}", ", ".join(f"{m.n_vectors_} vectors {1 - m.score(X_test, y_test):.1%}" for m in found))

# %%
# At the left what each of them keeps; at the right what that costs.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
looks = zip(models, ("C0", "C5", "C1", "C2"), ("s--", "v-.", "^:", "o-"), strict=True)
for name, color, style in looks:
    look = {"color": color, "lw": 2, "ms": 6}
    left.plot(budgets, [m.n_vectors_ for m in models[name]], style, **look)
    right.plot(budgets, [100 - 100 * m.score(X_test, y_test) for m in models[name]], style, label=name, **look)
left.set(yscale="log", ylabel="vectors", title="size")
right.set(ylim=(0, None), ylabel="error on new rows, %", title="error")
for ax in (left, right):
    ax.set_xscale("log", base=2)
    ax.set_xticks(budgets, budgets)
    ax.set_xlabel("budget")
    ax.spines[["top", "right"]].set_visible(False)
figure.legend(loc="outside lower center", ncols=4)

# %%
# The rows that a machine leans on most are those it finds hardest. Without the others they are a poor summary. Twenty
# learned vectors are about as good as the machine of hundreds:

display = VectorsDisplay.from_estimator(models['hard="learn"'][2], shape=(8, 8))
display.figure_.suptitle("20 vectors: even (0) against odd (1)")
