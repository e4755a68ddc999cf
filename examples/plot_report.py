"""
A report on a model
===================

:func:`slimsvm.report.write_report` writes one HTML file about a fitted classifier: size, vectors, mistakes,
calibration, bytes on a device, and how it was made. It has no script and loads nothing, so it can be mailed.
"""

import html

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import FrontierDisplay, SlimSVC, frontier
from slimsvm.report import report

# %%
# Half of the rows to train on, half to judge. The frontier chooses the size.

table = load_breast_cancer(as_frame=True)
labels = table.target_names[table.target]
X, X_test, y, y_test = train_test_split(table.data, labels, test_size=0.5, stratify=labels, random_state=0)
estimator = make_pipeline(StandardScaler(), SlimSVC(scales="learned", probability=True))
found = frontier(X, y, sizes=(2, 4, 8, 16, 32), estimator=estimator)
FrontierDisplay.from_frontier(found, bytes_axis=True)
print(f"chosen: {found.best_size()} vectors; {found.best().score(X_test, y_test):.1%} of the other half right")

# %%
# The page as a string; ``write_report`` takes the same arguments and a file name before them.

made = {"command": "python examples/plot_report.py", "data": "scikit-learn's breast cancer set, half to train on"}
page = report(found.best(), X_test, y_test, frontier=found, title="Breast cancer", made=made)
print(f"{len(page.encode()):,} bytes")


class Framed:
    """A page within this page."""

    def __init__(self, page: str):
        self.page = page

    def _repr_html_(self) -> str:
        style = "width: 100%; height: 40rem; border: 1px solid #8888; border-radius: 6px"
        return f'<iframe title="The report" srcdoc="{html.escape(self.page)}" style="{style}"></iframe>'


# %%
# Here it is. It follows the light or dark setting of your browser.

Framed(page)
