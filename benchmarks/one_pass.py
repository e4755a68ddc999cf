"""One measurement for `benchmarks.passes`, in a process of its own: python -m benchmarks.one_pass SOURCES WHAT GIVEN

It also runs over the sources of an earlier version, so it imports nothing that has changed since.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np

from .sets import D, gaussians

CALLS = 8
N_TEST = 100_000


def one_gradient(n: int, d: int, m: int) -> dict[str, float]:
    """Best milliseconds of a value and gradient on one thread, each near the last as in learning."""
    from slimsvm.basis import learning
    from slimsvm.problem.kernels import Gaussian
    from slimsvm.problem.losses import SquaredHinge
    from slimsvm.problem.regularizers import KernelNorm

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)).astype(np.float32)
    centres, heights = rng.standard_normal((30, d)), rng.standard_normal(30)
    kernel = Gaussian(1 / d)
    f = Gaussian(0.5 / d)(X, centres) @ heights
    y = np.where(f - np.median(f) + 0.05 * f.std() * rng.standard_normal(n) > 0, 1.0, -1.0)[:, None]
    try:
        from slimsvm.rows.labels import RowLabels

        targets: Any = RowLabels(y, np.ones((n, 1)))
        kind = learning.objective_for(kernel, SquaredHinge())
    except ImportError:  # the version before
        from slimsvm.data.dataset import ProblemGroup

        targets, kind = ProblemGroup(None, y, np.ones((n, 1))), learning.Objective
    norm = KernelNorm().among(kernel, X, True)
    objective = kind(kernel, X, targets, SquaredHinge(), norm, m, False, 1)
    theta = objective.pack(X[:m].astype(np.float64), None)
    _, gradient = objective(theta)
    best = np.inf
    for _ in range(CALLS):
        theta = theta - 0.02 * gradient / np.abs(gradient).max()
        start = time.perf_counter()
        value, gradient = objective(theta)
        best = min(best, time.perf_counter() - start)
    return {"ms": 1e3 * best, "value": value}


def one_fit(path: str, n: int, m: int, threads: int, search: bool) -> dict[str, Any]:
    """Seconds and error of a whole fit."""
    from slimsvm import SlimSVC

    X = np.memmap(path, dtype=np.float32, mode="r", shape=(n, D))
    y = np.load(path + ".npy")
    given = {} if search else {"C": 1.0, "gamma": 0.02, "scales": "fixed"}
    model = SlimSVC(m, n_jobs=threads, **given)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    seconds = time.perf_counter() - start
    X_test, y_test = gaussians(N_TEST, 10_000)
    return {
        "seconds": seconds,
        "error": 100 * float(np.mean(model.predict(X_test) != y_test)),
        "gamma": model.kernel_.gamma,
    }


def main() -> None:
    """Print what was measured as one line of JSON."""
    sources, what, given = sys.argv[1:]
    if sources:  # before whatever is installed, in whatever way
        sys.meta_path[:] = [finder for finder in sys.meta_path if "slimsvm" not in type(finder).__module__]
        sys.path.insert(0, sources)
    measure: Any = {"gradient": one_gradient, "fit": one_fit}[what]
    print(json.dumps(measure(*json.loads(given))))


if __name__ == "__main__":
    main()
