"""What other slack norms cost beside the hinge: ``python -m benchmarks.norms``.

5000 rows of USPS, even against odd digits, Gaussian kernel, one thread. C is 10 for sums of slacks and scaled for the
other norms to about as many errors. Every norm is timed in turn with the hinge, and the ratio of medians is shown.
"""

from __future__ import annotations

import argparse
import time
from statistics import median

import numpy as np

from slimsvm import AnyNormSVC, slacks

from .problems import usps
from .report import Table

ROWS = 5000
HINGE = (slacks.OneNorm(), 10.0)
NORMS = [  # times a hinge fit that are allowed: norm and C
    (  # capped
        4,
        [(slacks.MaxNorm(), 1000.0), (slacks.TopSum(20), 10.0), (slacks.TopSum(200), 10.0), (slacks.TopSum(1000), 0.3)],
    ),
    (  # curved
        8,
        [
            (slacks.TwoNorm(), 70.0),
            (slacks.TopTwoNorm(20), 70.0),
            (slacks.TopTwoNorm(1000), 70.0),
            (slacks.OneTwoNorm(5), 10.0),
            (slacks.OneTwoNorm(20), 10.0),
            (slacks.PNorm(1.1), 70.0),
            (slacks.PNorm(1.5), 70.0),
            (slacks.PNorm(3), 70.0),
        ],
    ),
    (6, [(slacks.PNorm(10), 70.0)]),  # every row is a vector
]


def seconds(norm, X, y, gamma: float, tol: float) -> tuple[float, AnyNormSVC]:
    slack, C = norm
    model = AnyNormSVC(slack, C=C, gamma=gamma, tol=tol)
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start, model


def table(repeats: int = 5, tol: float = 1e-3) -> Table:
    """Ratios to the hinge; ``!`` marks those above what is allowed."""
    data = usps(ROWS)
    gamma = float(1 / (data.X.shape[1] * data.X.var()))
    rows = []
    for allowed, norms in NORMS:
        for norm in norms:
            times = []
            for _ in range(repeats):
                hinge, _ = seconds(HINGE, data.X, data.y, gamma, tol)
                own, model = seconds(norm, data.X, data.y, gamma, tol)
                times.append((hinge, own))
            hinge, own = np.array(times).T
            ratio = median(own) / median(hinge)
            rows.append(
                [
                    str(norm[0]),
                    f"{norm[1]:g}",
                    f"{median(own):.2f} s",
                    f"{ratio:.1f}{'!' if ratio > allowed else ''}",
                    f"{allowed}",
                    f"{model.duality_gap_[0]:.0e}",
                    f"{model.n_vectors_}",
                ]
            )
    return Table(
        f"Slack norms beside the hinge, n = {ROWS}, {data.source} USPS even/odd, tol {tol:g}",
        ["norm", "C", "fit", "times a hinge fit", "bar", "gap", "vectors"],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.norms", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tol", type=float, default=1e-3)
    options = parser.parse_args()
    table(options.repeats, options.tol).show()


if __name__ == "__main__":
    main()
