"""A report on a model: ``python examples/plot_report.py [FILE]`` writes the page, and a picture of it beside it.

The picture needs Chromium (or Chrome), which runs without a window and without a network.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SlimSVC, frontier
from slimsvm.report import write_report


def photograph(page: Path, picture: Path) -> None:
    """What the browser shows of the page."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        print("no chromium on PATH: no picture of the page")
        return
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,1180"]
    command = [browser, *options, f"--screenshot={picture.resolve()}", page.resolve().as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def main() -> None:
    table = load_breast_cancer(as_frame=True)
    labels = table.target_names[table.target]
    X, X_test, y, y_test = train_test_split(table.data, labels, test_size=0.5, stratify=labels, random_state=0)
    estimator = make_pipeline(StandardScaler(), SlimSVC(scales="learned", probability=True))
    found = frontier(X, y, sizes=(2, 4, 8, 16, 32), estimator=estimator)
    page = Path(sys.argv[1] if len(sys.argv) > 1 else "report.html")
    made = {"command": "python examples/plot_report.py", "data": "scikit-learn's breast cancer set, half to train on"}
    write_report(page, found.best(), X_test, y_test, frontier=found, title="Breast cancer", made=made)
    photograph(page, page.with_suffix(".png"))
    print(f"saved {page.resolve()}")


if __name__ == "__main__":
    main()
