"""ONNX files of small machines: bytes, time of a row in onnxruntime, and how near they are to Python.

`SVC` (C=10) goes through skl2onnx, which writes the operator SVMClassifier; `SlimSVC` through `to_onnx`. Both stand
behind a `StandardScaler`. Errors are the largest of the decision values over the test rows, which float32 files and
Python get rounded to float32. Times are the least of several calls, in one thread.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from slimsvm import SlimSVC, to_onnx

from . import parts, sets
from .problems import Array
from .report import Table
from .sets import Split

SETS = ("banana", "image", "splice", "usps")
VECTORS = 20
BATCH = 1000
FORMS: dict[str, dict[str, Any]] = {
    "float32": {},
    "float32, arithmetic float32": {"options": {"arithmetic": "float32"}},
    "the same by products": {"options": {"arithmetic": "float32", "form": "products"}},
    "float64": {"dtype": "float64"},
}
HEADER = [
    "set, file",
    "vectors",
    "bytes",
    "µs a row, 1 at a time",
    f"µs a row, {BATCH} at a time",
    "error",
    "labels differ",
]


def session(file: Any) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(file.SerializeToString(), options)


def least_time(call: Callable[[], Any], seconds: float = 0.3) -> float:
    """The shortest of the calls within some time."""
    times, end = [], time.perf_counter() + seconds
    call()
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def times(call: Callable[[Array], Any], X: Array) -> list[str]:
    some = X[np.arange(BATCH) % len(X)]
    one, many = least_time(lambda: call(some[:1])), least_time(lambda: call(some)) / BATCH
    return [f"{1e6 * seconds:.3g}" for seconds in (one, many)]


def row(name: str, vectors: int, file: Any, model: Any, X: Array, dtype: Any) -> list[str]:
    made, rounded = session(file), X.astype(dtype)

    def call(rows: Array) -> Any:
        return made.run(None, {"X": rows})

    label, scores = call(rounded)[:2]
    exact = rounded.astype(np.float64)
    f = model.decision_function(exact).reshape(len(exact), -1)
    # Of two classes, skl2onnx has two columns, and signs of its own.
    error = f"{np.abs(scores - f).max():.1e}" if scores.shape == f.shape else ""
    wrong = str(int((label != model.predict(exact)).sum()))
    return [name, str(vectors), str(len(file.SerializeToString())), *times(call, rounded), error, wrong]


def rows(name: str, split: Split) -> Iterator[list[str]]:
    import skl2onnx

    X = split.X_test
    svc = make_pipeline(StandardScaler(), SVC(C=10)).fit(split.X, split.y)
    file = skl2onnx.to_onnx(svc, X[:1].astype(np.float32), options={"zipmap": False}, target_opset=18)
    yield row(f"{name}, SVC by skl2onnx", len(svc[-1].support_), file, svc, X, np.float32)
    slim = make_pipeline(StandardScaler(), SlimSVC(VECTORS)).fit(split.X, split.y)
    for form, settings in FORMS.items():
        dtype = settings.get("dtype", "float32")
        yield row(f"{name}, SlimSVC {form}", slim[-1].n_vectors_, to_onnx(slim, **settings), slim, X, dtype)
    yield [f"{name}, the same in Python", str(slim[-1].n_vectors_), "", *times(slim.predict, X), "", ""]


def measure(options: Any) -> Iterator[Table]:
    warnings.simplefilter("ignore")
    names = options.sets or SETS
    found = [line for name in names for split in sets.splits(name, 1) for line in rows(name, split)]
    yield Table("ONNX files", HEADER, found, __doc__.split("\n\n")[1].replace("\n", " "))


def main(argv: list[str] | None = None) -> None:
    parser = parts.parser("benchmarks.onnx_files", __doc__)
    parts.run(parser.parse_args(argv), "ONNX files", [measure])


if __name__ == "__main__":
    main()
