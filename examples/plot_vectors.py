"""
What a small model keeps
========================

:class:`~slimsvm.VectorsDisplay` draws the vectors of a fitted model in your units: in the plane where there are two
inputs, as images where you say how high and wide they are, and otherwise as a map of inputs by vectors.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer, load_digits, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SlimSVC, VectorsDisplay

figure, axes = plt.subplots(1, 3, figsize=(15, 4.8), layout="constrained", width_ratios=(1, 1.05, 1.5))
X, y = make_moons(400, noise=0.25, random_state=1)
VectorsDisplay.from_estimator(SlimSVC(8).fit(X, y), X, y, ax=axes[0])
axes[0].set_title("two inputs")

X, y = load_digits(return_X_y=True)
digits = SlimSVC(28, C=10, gamma="scale", scales="fixed").fit(X, y)
VectorsDisplay.from_estimator(digits, shape=(8, 8), ax=axes[1])
axes[1].set_title("images: class and weight", pad=14)

table = load_breast_cancer(as_frame=True)
tumours = make_pipeline(StandardScaler(), SlimSVC(16, scales="learned")).fit(table.data, table.target)
display = VectorsDisplay.from_estimator(tumours, table.data, ax=axes[2], most_inputs=14)
axes[2].set_title("30 inputs, learned scales")

# %%
# The map at the right, from above: a bar for each vector says which class it speaks for, and how loud. Below it,
# whether the vector is high or low in each input, against the mean. Bars at the left say how much an input counts:
# its scale in the kernel times its spread over the rows.

loudest = sorted(zip(display.counting, table.feature_names, strict=True), reverse=True)[:3]
print(", ".join(f"{name} {count:.2f}" for count, name in loudest))
