"""Lopez & Dorronsoro, Least 1-Norm SVMs (ESANN 2010): ``python -m benchmarks.papers.lopez_dorronsoro``.

Standard, least-1-norm and least-squares machines on the data sets of the IDA repository. C and the width of the
Gaussian kernel are chosen for each machine by cross-validation on the first split; the table gives the test
error and the number of vectors over the splits at hand (the paper has 100 or 20 of them).
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.model_selection import GridSearchCV

from slimsvm import AnyNormSVC, LeastOneNormSVC, LeastSquaresSVC, datasets

SETS = ("titanic", "heart", "breast-cancer", "thyroid", "diabetes", "german", "banana", "flare-solar", "image")
MACHINES = {"SVM": AnyNormSVC, "L1N-SVM": LeastOneNormSVC, "LS-SVM": LeastSquaresSVC}


def scaled(X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    spread = X[rows].std(axis=0)
    return (X - X[rows].mean(axis=0)) / np.where(spread > 0, spread, 1)


def row(name: str, most_splits: int) -> list[str]:
    """Errors and vectors of the three machines on one data set."""
    found = datasets.load(name, download=False)
    X, y, train, test = found.X, found.y, found.train_idx, found.test_idx
    width = 1 / X.shape[1]
    grid = {"C": [0.1, 1, 10, 100], "gamma": [0.1 * width, 0.3 * width, width, 3 * width]}
    cells = []
    for kind in MACHINES.values():
        first = scaled(X, train[0])
        best = GridSearchCV(kind(), grid, cv=5).fit(first[train[0]], y[train[0]]).best_params_
        found = []
        for fit_rows, test_rows in zip(train[:most_splits], test[:most_splits], strict=True):
            data = scaled(X, fit_rows)
            model = kind(**best).fit(data[fit_rows], y[fit_rows])
            found.append((100 * np.mean(model.predict(data[test_rows]) != y[test_rows]), model.n_vectors_))
        error, vectors = np.mean(found, axis=0)
        cells.append(f"{error:5.1f} {vectors:6.0f}")
    return [name, str(min(len(train), most_splits)), *cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'data set':<16}{'splits':>7}" + "".join(f"{name:>16}" for name in MACHINES) + "   (test error %, vectors)")
    for name in options.sets:
        if not datasets.available(name) or not datasets.load(name).n_original:
            print(f"{name:<16} is not here with its published splits")
            continue
        first, splits, *cells = row(name, options.splits)
        print(f"{first:<16}{splits:>7}" + "".join(f"{cell:>16}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
