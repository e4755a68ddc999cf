"""Time of one row: python -m benchmarks.latency

Each call is timed in turns with the others: a turn is a loop of calls of one of them, and the figure is the median over
all turns. Ratios are medians of ratios within a turn, over scikit-learn's own checks of the same row. Times are those
of the processor: one thread does all.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.validation import validate_data

from slimsvm import Predictor, SlimSVC, to_onnx

from . import parts
from .problems import Array
from .report import Table, number

Call = Callable[[], object]
VECTORS, INPUTS, ROWS = 20, 20, 2000
CHECKS = "scikit-learn's checks alone (`validate_data`)"
TURNS, SECONDS = 31, 0.02


def main() -> None:
    options = parts.parser("benchmarks.latency", __doc__, sets=False).parse_args()
    parts.run(options, "Time of one row", [measured])


def measured(options: argparse.Namespace) -> list[Table]:
    turns = 3 if options.quick else TURNS
    return [table(classes, dtype, turns) for classes in (2, 10) for dtype in (np.float64, np.float32)]


def table(classes: int, dtype: type, turns: int) -> Table:
    X, y = make_classification(ROWS, INPUTS, n_informative=10, n_classes=classes, random_state=0)
    times = timed(calls(X.astype(dtype), y, dtype), turns)
    checks = times[CHECKS]
    rows = []
    for name, found in times.items():
        ratio = median(a / b for a, b in zip(found, checks, strict=True))
        rows.append([name, number(1e6 * median(found)), number(ratio)])
    title = f"{classes} classes, {np.dtype(dtype).name} row"
    note = f"{VECTORS} vectors of {INPUTS} inputs, SVC with as many as it needs; medians of {turns} turns."
    return Table(title, ["one row through", "µs", "times scikit-learn's checks"], rows, note)


def calls(X: Array, y: Array, dtype: type) -> dict[str, Call]:
    """What is timed, by name."""
    plain = SlimSVC(VECTORS, C=1.0, gamma=0.05, scales="fixed", probability=True).fit(X, y)
    scaled = SlimSVC(VECTORS, C=1.0, gamma=0.05).fit(X, y)
    pipeline = make_pipeline(StandardScaler(), clone(scaled)).fit(X, y)
    svc = SVC(gamma=0.05).fit(X, y)
    fast, fast_scaled, fast_pipeline = map(Predictor, (plain, scaled, pipeline))
    rows, row, numbers = X[:1].copy(), X[0].copy(), X[0].tolist()
    found: dict[str, Call] = {
        CHECKS: lambda: validate_data(plain, rows, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32]),
        "`SVC.predict`": lambda: svc.predict(rows),
        "`SlimSVC.predict`": lambda: plain.predict(rows),
        "`SlimSVC.decision_function`": lambda: plain.decision_function(rows),
        "`SlimSVC.predict`, learned scales": lambda: scaled.predict(rows),
        "`SlimSVC.predict_proba`": lambda: plain.predict_proba(rows),
        "`StandardScaler`, `SlimSVC`: `predict`": lambda: pipeline.predict(rows),
        "`Predictor.predict`": lambda: fast.predict(row),
        "`Predictor.decision_function`": lambda: fast.decision_function(row),
        "`Predictor.predict`, learned scales": lambda: fast_scaled.predict(row),
        "`Predictor.predict`, scaler folded in": lambda: fast_pipeline.predict(row),
        "`Predictor.predict`, a list": lambda: fast.predict(numbers),
        "`Predictor.predict_proba`": lambda: fast.predict_proba(row),
    }
    session = onnx_session(plain, dtype)
    if session is not None:
        found["onnxruntime, label and scores"] = lambda: session.run(["label", "scores"], {"X": rows})
    return found


def onnx_session(model: Any, dtype: type) -> Any:
    """None where onnxruntime is not installed."""
    try:
        import onnxruntime

        file = to_onnx(model, dtype=np.dtype(dtype).name).SerializeToString()
    except ImportError:
        return None
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(file, settings, providers=["CPUExecutionProvider"])


def timed(found: dict[str, Call], turns: int) -> dict[str, list[float]]:
    """Seconds of a call in each turn."""
    repeats = {name: max(1, round(SECONDS / once(call, 50))) for name, call in found.items()}
    times: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(turns):
        for name, call in found.items():
            times[name].append(once(call, repeats[name]))
    return times


def once(call: Call, repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        call()
    return max(time.process_time() - start, 1e-9) / repeats


if __name__ == "__main__":
    main()
