"""Pipelines as ONNX, through skl2onnx and the converter that is registered there."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, SplineTransformer, StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import slimsvm.export.onnx
from slimsvm import (
    CompressedClassifier,
    CompressedOutlierDetector,
    CompressedRegressor,
    RelevanceVectorClassifier,
    SlimSVC,
    bases,
    estimators,
    to_onnx,
)

onnxruntime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")
# skl2onnx imports names of scikit-learn and onnx that these have deprecated.
pytestmark = [
    pytest.mark.filterwarnings("ignore:learning ended at its limit:sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:skl2onnx"),
    pytest.mark.filterwarnings("ignore::FutureWarning:sklearn"),
]


@pytest.fixture(autouse=True)
def registered():
    slimsvm.export.onnx.register()


def quick(**params):
    params = {"C": 3.0, "gamma": 0.4, "scales": "fixed", **params}
    return SlimSVC(6, bases.Learned(iterations=10), **params)


def iris(n_classes=3):
    X, y = load_iris(return_X_y=True)
    return X.astype(np.float32), y if n_classes == 3 else (y > 1).astype(int)


def run(model, inputs):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    found = session.run(None, inputs if isinstance(inputs, dict) else {"X": inputs})
    return dict(zip([output.name for output in session.get_outputs()], found, strict=True))


def converted(model, X, **options):
    last = model[-1] if hasattr(model, "steps") else model
    return run(skl2onnx.to_onnx(model, X[:1], options={id(last): options}, target_opset=18), X)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "classifier",
    [quick(probability=True), RelevanceVectorClassifier(), CompressedClassifier(SVC(), 8, probability=True)],
    ids=lambda model: type(model).__name__,
)
def test_classifiers_behind_other_steps(classifier, dtype, n_classes):
    """All outputs of `to_onnx`, and the table of probabilities that skl2onnx gives."""
    X, y = iris(n_classes)
    X = X.astype(dtype)
    model = make_pipeline(StandardScaler(), PCA(3), classifier).fit(X, y)
    found = run(to_onnx(model, dtype=dtype), X)
    rows = X.astype(np.float64)
    assert list(found) == ["label", "scores", "probabilities"]
    assert_array_equal(found["label"], model.predict(rows))
    scores = model.decision_function(rows).reshape(len(X), -1)
    # The steps before are those of skl2onnx: in float32, so are their errors.
    atol = {"float32": 2e-5, "float64": 1e-12}[dtype] * max(1, np.abs(scores).max())
    assert_allclose(found["scores"], scores, rtol=0, atol=atol)
    assert_allclose(found["probabilities"], model.predict_proba(rows), rtol=0, atol=max(atol, 1e-12))
    table = converted(model, X, zipmap=False)
    assert list(table) == ["label", "probabilities"]
    assert_array_equal(table["probabilities"], found["probabilities"])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_options(n_classes):
    X, y = iris(n_classes)
    labels = np.array(["a", "b", "c"])
    model = make_pipeline(StandardScaler(), quick(probability=True)).fit(X, labels[y])
    p, f = model.predict_proba(X), model.decision_function(X)
    maps = converted(model, X)
    assert list(maps) == ["output_label", "output_probability"]
    assert_array_equal(maps["output_label"], model.predict(X))
    assert_allclose([[row[label] for label in model.classes_] for row in maps["output_probability"]], p, atol=1e-5)
    columns = converted(model, X, zipmap="columns")
    assert list(columns) == ["output_label", *(f"s{label}" for label in model.classes_)]
    assert_allclose(columns["sb"], p[:, 1], atol=1e-5)
    numbers = converted(model, X, zipmap=False, nocl=True)
    assert_array_equal(model.classes_[numbers["label"]], model.predict(X))
    known = converted(model, X, zipmap=False, output_class_labels=True)
    assert_array_equal(known["class_labels"], model.classes_)
    raw = converted(model, X, raw_scores=True)
    assert list(raw) == ["label", "scores"]
    assert_allclose(raw["scores"], np.stack([-f, f], axis=1) if n_classes == 2 else f, atol=2e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_probabilities_there_are_scores(n_classes):
    X, y = iris(n_classes)
    model = quick().fit(X, y)
    found = converted(model, X)
    f = model.decision_function(X.astype(np.float64))
    assert list(found) == ["label", "scores"]
    assert_allclose(found["scores"], np.stack([-f, f], axis=1) if n_classes == 2 else f, atol=1e-5)


def test_every_estimator_is_registered():
    for kind in (*estimators.ALL, *estimators.FAMILY, *estimators.COMPRESSED):
        X, y = iris(2)
        model = kind().fit(X[::5], y[::5])
        found = converted(model, X[:5])
        expected = model.predict(X[:5].astype(np.float64))
        answer = found["variable"][:, 0] if "variable" in found else next(iter(found.values()))
        assert_allclose(answer, expected, atol=1e-5)


def test_regressors_and_outlier_detectors():
    X, _ = iris()
    regressor = make_pipeline(PCA(3), CompressedRegressor(SVR(), 10)).fit(X, X[:, 0])
    assert_allclose(converted(regressor, X)["variable"][:, 0], regressor.predict(X), atol=2e-5)
    detector = make_pipeline(PCA(3), CompressedOutlierDetector(OneClassSVM(nu=0.2), 10)).fit(X)
    found = converted(detector, X)
    assert_array_equal(found["label"], detector.predict(X))
    assert found["scores"].shape == (len(X), 1)
    assert_allclose(found["scores"][:, 0], detector.decision_function(X), atol=2e-5)


def table():
    """Numbers with gaps, whole numbers and categories."""
    X, y = iris()
    frame = pd.DataFrame({"length": X[:, 0], "width": X[:, 1], "count": (3 * X[:, 2]).astype(int)})
    frame["kind"] = np.array(["u", "v", "w"])[np.arange(len(X)) % 3]
    frame.loc[::7, "length"] = np.nan
    return frame, y


def test_tables_with_columns_of_several_types():
    frame, y = table()
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = ColumnTransformer([("n", numbers, ["length", "width", "count"]), ("k", OneHotEncoder(), ["kind"])])
    model = make_pipeline(columns, quick(probability=True)).fit(frame, y)
    made = to_onnx(model, frame)
    types = {"length": np.float32, "width": np.float32, "count": np.int64, "kind": object}
    found = run(made, {key: frame[[key]].to_numpy().astype(kind) for key, kind in types.items()})
    assert_array_equal(found["label"], model.predict(frame))
    assert_allclose(found["probabilities"], model.predict_proba(frame), atol=2e-5)
    assert {fact.key for fact in made.metadata_props} >= {"slimsvm_version", "n_vectors", "classes"}
    with pytest.raises(ValueError, match=r"columns by their names.*X"):
        to_onnx(model)


def by_name():
    frame, y = table()
    columns = ColumnTransformer([("n", StandardScaler(), ["width", "count"]), ("k", OneHotEncoder(), ["kind"])])
    return make_pipeline(columns, quick()).fit(frame, y), frame


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (lambda X: X.to_numpy(), "columns by their names, and X is a ndarray without names: give some rows as a DataF"),
        (lambda X: X.iloc[:, :3], "X has 3 columns, the model takes 4"),
        (lambda X: X.assign(more=1), "X has 5 columns, the model takes 4"),
        (lambda X: X.rename(columns={"kind": "soil"}), r"X has no columns \['kind'\]"),
        (lambda X: X["width"], r"X has the shape \(150,\)"),
    ],
)
def test_rows_that_are_not_the_pipelines(rows, message):
    model, frame = by_name()
    with pytest.raises(ValueError, match=message):
        to_onnx(model, rows(frame))


def test_rows_that_are_not_the_models():
    """Also where they are not needed."""
    X, y = iris()
    with pytest.raises(ValueError, match="X has 3 columns, the model takes 4"):
        to_onnx(quick().fit(X, y), X[:, :3])


@pytest.mark.parametrize(
    ("step", "dtype", "message"),
    [
        (SplineTransformer(), "float32", r"'step' \(SplineTransformer\) with dtype='float32': .*\. Export the st"),
        (FunctionTransformer(np.tanh), "float32", r"'step' \(FunctionTransformer\).*to_onnx\(pipeline\[2:\]\)"),
        (KNNImputer(), "float64", r"'step' \(KNNImputer\) with dtype='float64': .*Try dtype=\"float32\", or export"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_steps_that_cannot_be_converted(step, dtype, message):
    """The error names the step, and what it advises works."""
    X, y = iris()
    model = Pipeline([("first", MinMaxScaler()), ("step", step), ("last", quick())]).fit(X, y)
    with pytest.raises(ValueError, match=message):
        to_onnx(model, dtype=dtype)
    rows = model[:2].transform(X).astype(dtype)
    assert_array_equal(run(to_onnx(model[2:], dtype=dtype), rows)["label"], model[2:].predict(rows))


def test_an_imputer_is_no_scaler():
    """It leaves numbers as they are, but fills gaps: the file must, too."""
    X, y = iris()
    X[::5, 1] = np.nan
    model = make_pipeline(SimpleImputer(), StandardScaler(), quick()).fit(X, y)
    assert_array_equal(run(to_onnx(model), X)["label"], model.predict(X))


def test_estimators_around_ours():
    """skl2onnx converts these by asking for the converter of the estimator inside."""
    X, y = iris()
    for model in (
        CalibratedClassifierCV(quick(), ensemble=False),
        GridSearchCV(quick(probability=True), {"C": [1.0, 3.0]}, cv=3),
    ):
        model.fit(X, y)
        found = run(skl2onnx.to_onnx(model, X[:1], options={"zipmap": False}, target_opset=18), X)
        assert_array_equal(found["label"], model.predict(X))
        assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-5)


def test_without_skl2onnx(monkeypatch):
    X, y = iris()
    model = make_pipeline(PCA(2), quick()).fit(X, y)
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"skl2onnx.*steps other than scalers.*slimsvm\[onnx\]"):
        to_onnx(model)
    scaled = make_pipeline(StandardScaler(), quick()).fit(X, y)
    to_onnx(scaled)  # needs no more than onnx
