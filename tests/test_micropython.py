"""Models as plain Python: the same labels, scores and probabilities, with nothing but `math`."""

from __future__ import annotations

import ast
import math
import shutil
import subprocess

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, make_friedman1, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

import kernel_table
from slimsvm import (
    AnyNormSVC,
    LeastSquaresSVC,
    ReducedSVC,
    RelevanceVectorClassifier,
    SlimSVC,
    compress,
    kernels,
    to_micropython,
)
from slimsvm.model.inference import inference_model

MOONS = make_moons(200, noise=0.2, random_state=0)
IRIS = load_iris(return_X_y=True)
DIGITS = tuple(part[:400] for part in load_digits(return_X_y=True))
NAMES = np.array(["Zürich", 'a "quoted" \\ label', "c"])
COLUMNS = np.array([0.01, 1.0, 100.0, 1.0]), np.array([5.0, -3.0, 1000.0, 0.0])
SLIM = {"C": 2.0, "gamma": 0.4, "scales": "fixed"}
FURTHER = [name for name in kernel_table.names() if name not in ("rbf", "linear", "poly", "sigmoid", "laplacian")]
WITHOUT_ONE = kernels.Scaled(kernels.Gaussian(0.4), np.array([1.0, 0.5, 0.0, 2.0]))

MODELS = {
    **{name: lambda name=name: (AnyNormSVC(kernel=kernel_table.ENTRIES[name].kernel()), *IRIS) for name in FURTHER},
    "two classes": lambda: (SlimSVC(6, probability=True, **SLIM), *MOONS),
    "learned scales": lambda: (SlimSVC(6, C=2.0, gamma=0.4, scales="learned"), *IRIS),
    "an input that does not count": lambda: (AnyNormSVC(kernel=WITHOUT_ONE), *IRIS),
    "pairs of classes": lambda: (SlimSVC(6, probability=True, **SLIM), *IRIS),
    "a wide kernel": lambda: (SlimSVC(6, C=100.0, gamma=1e-3, scales="fixed"), *MOONS),
    "one output a class": lambda: (SlimSVC(6, multi_class="ovr", **SLIM), *IRIS),
    "ten classes": lambda: (ReducedSVC(10, gamma=0.001), *DIGITS),
    "words as labels": lambda: (SlimSVC(6, **SLIM), IRIS[0], NAMES[IRIS[1]]),
    "values of pairs shown": lambda: (AnyNormSVC(gamma=0.4, decision_function_shape="ovo"), *IRIS),
    "linear": lambda: (AnyNormSVC(kernel="linear"), *IRIS),
    "poly": lambda: (AnyNormSVC(kernel="poly", gamma=0.3, coef0=1.0, degree=3), *IRIS),
    "sigmoid": lambda: (LeastSquaresSVC(kernel="sigmoid", gamma=0.01, coef0=-0.5), *IRIS),
    "laplacian": lambda: (SlimSVC(6, kernel="laplacian", **SLIM), *MOONS),
    "relevance vectors": lambda: (RelevanceVectorClassifier(gamma=0.5), *(part[::3] for part in IRIS)),
    "a scaler": lambda: (
        make_pipeline(StandardScaler(), SlimSVC(6, probability=True, **SLIM)),
        IRIS[0] * COLUMNS[0] + COLUMNS[1],
        IRIS[1],
    ),
    "a linear model behind a scaler": lambda: (make_pipeline(StandardScaler(), AnyNormSVC(kernel="linear")), *IRIS),
}
COMPRESSED = {
    "SVC": lambda: (compress(SVC(gamma=0.5).fit(*IRIS), 12), IRIS[0]),
    "SVC that breaks ties": lambda: (compress(SVC(break_ties=True).fit(*IRIS), 12), IRIS[0]),
    "NuSVC": lambda: (compress(NuSVC(gamma=1.0).fit(*MOONS), 8), MOONS[0]),
    "outliers": lambda: (compress(OneClassSVM(nu=0.1, gamma=1.0).fit(MOONS[0]), 8), MOONS[0]),
    "SVR": lambda: (lambda X, y: (compress(SVR().fit(X, y), 20), X))(*make_friedman1(150, random_state=0)),
}
KINDS = {"float32": 1e-6, "float64": 1e-12}


@pytest.fixture(scope="module")
def fitted():
    """Model and rows by name, each fitted once."""
    known = {}

    def get(name):
        if name not in known:
            if name in COMPRESSED:
                known[name] = COMPRESSED[name]()
            else:
                model, X, y = MODELS[name]()
                known[name] = model.fit(X, y), X
        return known[name]

    return get


def loaded(text):
    """The module; it imports nothing but exp."""
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert [ast.unparse(node) for node in imports] == ["from math import exp"]
    names = {}
    exec(text, names)
    return names


def scores(model, X):
    return (model.decision_function if hasattr(model, "decision_function") else model.predict)(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:the kernel is not positive")
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", [*MODELS, *COMPRESSED])
def test_answers(fitted, name, dtype):
    """Scores within the digits of the numbers, relative to the terms that are summed; labels where no tie is near."""
    model, X = fitted(name)
    module = loaded(to_micropython(model, dtype=dtype))
    X = X[:120]
    expected = scores(model, X)
    found = np.array([module["decision"](row.tolist()) for row in X])
    assert found.shape == expected.shape
    last = model[-1] if hasattr(model, "steps") else model
    size = 1 + np.abs(last.vector_coef_).sum(axis=1).max() * largest_value(last)
    error = np.abs(found - expected)
    # Scores of votes have steps, so that a row near a boundary may lie on the other side of it.
    near = (error > KINDS[dtype] * size).reshape(len(X), -1).any(axis=1)
    assert near.sum() <= (0 if dtype == "float64" else 1)
    labels = model.predict(X)
    if hasattr(model, "classes_") or name == "outliers":
        answers = [module["predict"](row.tolist()) for row in X]
        assert all(a == b for a, b, k in zip(answers, labels.tolist(), near, strict=True) if not k)
        assert set(labels.tolist()) <= set(module["LABELS"])
        assert type(answers[0]) is type(labels.tolist()[0])
    if hasattr(model, "predict_proba"):
        p = np.array([module["probabilities"](row.tolist()) for row in X])
        assert np.abs(p - model.predict_proba(X))[~near].max() <= 20 * KINDS[dtype] * size
        assert p.sum(axis=1) == pytest.approx(np.ones(len(X)), abs=1e-9)


def largest_value(model):
    """The largest kernel value among the vectors: products may be large."""
    Z = np.asarray(model.vectors_)
    return max(1.0, float(np.abs(model.kernel_(Z, Z)).max(initial=0.0)))


def in_float32(value):
    """Numbers of a table, as a board without doubles has them."""
    return tuple(map(in_float32, value)) if isinstance(value, tuple) else np.float32(value)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["two classes", "pairs of classes", "a wide kernel", "a scaler", "linear"])
def test_boards_that_compute_in_float32(fitted, name):
    """As `to_c` has it: decision values within 2e-5 of the largest, and no label of a row that is not as near to a
    boundary changes. Kernels so wide that their values are close to 1 lose no digits by that."""
    model, X = fitted(name)
    names = {"exp": lambda v: np.float32(math.exp(v))}
    exec(to_micropython(model).replace("from math import exp", ""), names)
    for table in {"MEAN", "GAIN", "VECTORS", "COEF", "BIAS", "ODDS_COEF", "ODDS_BIAS"} & set(names):
        names[table] = in_float32(names[table])
    values = [names["_sums"](names["_features"](list(row)), names["COEF"], names["BIAS"]) for row in np.float32(X)]
    machine = inference_model(model)
    expected = machine.expansion.decision(machine.inputs(np.float32(X).astype(float)))
    assert isinstance(values[0][0], np.float32)
    assert np.abs(np.array(values) - expected).max() <= 2e-5 * max(1.0, np.abs(expected).max())


def test_numbers_are_the_shortest(fitted):
    model, _ = fitted("linear")
    short, long = (to_micropython(model, dtype=kind) for kind in KINDS)
    assert len(short) < len(long)
    assert (np.array(loaded(long)["BIAS"]) == model.intercept_).all()
    assert (np.float32(loaded(short)["BIAS"]) == np.float32(model.intercept_)).all()


def test_micropython_itself(fitted, tmp_path):
    """On the interpreter that it is made for."""
    if shutil.which("micropython") is None:
        pytest.skip("micropython is not installed")
    model, X = fitted("pairs of classes")
    (tmp_path / "iris.py").write_text(to_micropython(model, name="iris"))
    rows = ", ".join(str(tuple(row)) for row in X[:50].tolist())
    (tmp_path / "main.py").write_text(f"import iris\nfor x in ({rows}):\n    print(iris.predict(x))\n")
    done = subprocess.run(["micropython", "main.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert [int(line) for line in done.stdout.split()] == model.predict(X[:50]).tolist(), done.stderr


def test_what_is_refused(fitted):
    model, _ = fitted("two classes")
    with pytest.raises(ValueError, match="dtype='int8' is not known"):
        to_micropython(model, dtype="int8")
    with pytest.raises(ValueError, match="name='my model' is no good"):
        to_micropython(model, name="my model")
    with pytest.raises(ValueError, match="not a fitted estimator"):
        to_micropython(SlimSVC())
    own = AnyNormSVC(kernel=lambda A, B: A @ B.T).fit(*MOONS)
    with pytest.raises(ValueError, match="has no form in MicroPython"):
        to_micropython(own)
