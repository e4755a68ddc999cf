"""
Calibration: when it says 80 %, is it right in 80 %?
====================================================

With ``probability=True`` a small model has a layer of its own for probabilities, over the same vectors.
:class:`~slimsvm.CalibrationDisplay` groups rows by the probability of the class that is predicted, and shows how
often it is right.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification, make_moons
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from slimsvm import CalibrationDisplay, SlimSVC

# %%
# Two classes that overlap, and five, with one label in twenty drawn at random. 1000 rows to train on, 20,000 to
# judge.

problems = {
    10: make_moons(21_000, noise=0.35, random_state=0),
    40: make_classification(
        21_000, 12, n_informative=6, n_redundant=2, n_classes=5, class_sep=1.2, flip_y=0.05, random_state=0
    ),
}

# %%
# Beside it, ``SVC(probability=True)``, which keeps hundreds of vectors and fits five more machines for its
# probabilities. The legend has the expected calibration error, the mean distance from the diagonal, and the log-loss.

figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.6), layout="constrained")
shown = {}
for ax, (vectors, (X, y)) in zip(axes, problems.items(), strict=True):
    X, X_test, y, y_test = train_test_split(X, y, train_size=1000, random_state=0)
    models = {
        f"SlimSVC, {vectors} vectors": SlimSVC(vectors, probability=True),
        "SVC(probability=True)": SVC(probability=True, random_state=0),
    }
    for (name, model), style in zip(models.items(), ("-", "--"), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # SVC's parameter is on its way out
            fitted = make_pipeline(StandardScaler(), model).fit(X, y)
        look = {"ax": ax, "show_counts": False, "line_kw": {"ls": style}}
        shown[name, vectors] = CalibrationDisplay.from_estimator(
            fitted, X_test, y_test, strategy="quantile", name=name, **look
        )
    ax.set_title(f"{len(np.unique(y))} classes")

# %%
# With two classes the small model is close to the diagonal; with five, both are too modest: right more often than
# they say. Its log-loss is the lower one in both. And ``predict`` of a ``SlimSVC`` is always the class of the highest
# probability; that of an ``SVC`` need not be.

for (name, vectors), display in shown.items():
    print(f"{name:21} {'two' if vectors == 10 else 'five':4} classes: log-loss {display.log_loss:.3f}")
