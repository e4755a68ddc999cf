"""Untuned `SlimSVC` with 20 vectors beside a full support vector machine with a grid of settings.

The 13 sets of Rätsch's benchmark on their stored splits, inputs standardised.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from slimsvm import SlimSVC

from . import parts, sets
from .parts import mean, percent
from .report import Table
from .sets import Split

COSTS = [0.3, 3, 30, 300]
WIDTHS = [0.03, 0.1, 0.3, 1, 3]  # gamma, times the number of inputs
CLOSE = 1.0  # points of error that count as the same


def tuned_svc(X: Any, y: Any) -> Any:
    """A standardised SVC, C and gamma by five folds."""
    grid = {"svc__C": COSTS, "svc__gamma": [width / X.shape[1] for width in WIDTHS]}
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    return GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=folds).fit(X, y).best_estimator_


def compare(split: Split, n_vectors: int) -> dict[str, float]:
    """Errors, vectors and training times on one split."""
    start = time.perf_counter()
    svc = tuned_svc(split.X, split.y)
    middle = time.perf_counter()
    slim = make_pipeline(StandardScaler(), SlimSVC(n_vectors)).fit(split.X, split.y)
    end = time.perf_counter()
    return {
        "svc": split.error(svc),
        "svc vectors": len(svc[-1].support_),
        "svc seconds": middle - start,
        "slim": split.error(slim),
        "slim vectors": slim[-1].n_vectors_,
        "slim seconds": end - middle,
        "scaled": np.ndim(slim[-1].kernel_.scales) > 0,
    }


def measure(options: argparse.Namespace) -> Iterator[Table]:
    """A row for each set, and how many are close."""
    if not sets.present():
        print(sets.ABSENT)
        return
    if options.quick:
        options = parts.settled(options, splits=1, sets=["banana", "heart", "thyroid"])
    rows, close = [], 0
    names = parts.wanted(sets.RAETSCH, options)
    for name in names:
        found = parts.spread(compare, sets.splits(name, options.splits), options.n_jobs, options.n_vectors)
        worse = mean(f["slim"] - f["svc"] for f in found)
        close += worse <= CLOSE
        rows.append(
            [
                name,
                str(len(found)),
                percent(f["svc"] for f in found),
                f"{mean(f['svc vectors'] for f in found):.0f}",
                percent(f["slim"] for f in found),
                f"{mean(f['slim vectors'] for f in found):.0f}",
                f"{worse:+.1f}",
                "yes" if worse <= CLOSE else "no",
                f"{100 * mean(f['scaled'] for f in found):.0f} %",
                f"{mean(f['svc seconds'] for f in found):.1f}",
                f"{mean(f['slim seconds'] for f in found):.1f}",
            ]
        )
        parts.say(f"{name}: {worse:+.2f}")
    rows.append(["within", "", "", "", "", "", "", f"{close} of {len(names)}", "", "", ""])
    header = ["set", "splits", "tuned SVC", "vectors", "SlimSVC", "vectors", "difference", f"within {CLOSE:g}"]
    header += ["scales learned", "s tuned SVC", "s SlimSVC"]
    note = (
        f"Test error, %. SVC: best of {len(COSTS) * len(WIDTHS)} settings by five folds. SlimSVC({options.n_vectors}): "
        "default settings. s: training with the search."
    )
    yield Table("Default settings beside a tuned SVC", header, rows, note)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--n-vectors", type=int, default=20, help="vectors of SlimSVC; 20 unless said")


def main(argv: list[str] | None = None) -> None:
    parser = parts.parser("benchmarks.defaults", __doc__)
    add_arguments(parser)
    options = parser.parse_args(argv)
    parts.run(options, "Default settings", [measure])


if __name__ == "__main__":
    main()
