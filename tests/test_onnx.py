"""Models as ONNX: onnxruntime gives the same labels, scores and probabilities."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_expit
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import kernel_table
from slimsvm import (
    AnyNormSVC,
    BudgetSVC,
    CompressedClassifier,
    CompressedOutlierDetector,
    CompressedRegressor,
    EmpiricalSVC,
    LeastOneNormSVC,
    LeastSquaresSVC,
    LpSVC,
    ReducedSVC,
    RelevanceVectorClassifier,
    SlimSVC,
    bases,
    compress,
    kernels,
    to_onnx,
)
from slimsvm.export.onnx import DTYPES, MIN_OPSET, _checked_options, labels_of, standalone_model
from slimsvm.model.expansion import Expansion
from slimsvm.model.inference import Affine, InferenceModel, ProbabilityLayer, folded_scalers
from slimsvm.model.probabilities import align_with_winners, log_probabilities
from slimsvm.model.voting import Votes

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

pytestmark = [
    pytest.mark.filterwarnings("ignore:learning ended at its limit:sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the kernel is not positive semidefinite"),
    pytest.mark.filterwarnings("ignore:kernel values between different rows"),
]
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
# Of scores, relative to the largest of them where that is above 1.
BARS = {"float32": 1e-5, "float64": 1e-12}
dtypes = pytest.mark.parametrize("dtype", DTYPES)


def quick(**params):
    params = {"C": 3.0, "gamma": 0.4, "scales": "fixed", **params}
    return SlimSVC(6, bases.Learned(iterations=10), **params)


MODELS = {
    "slim": quick(),
    "slim with scales": quick(scales="learned"),
    "slim with probabilities": quick(probability=True),
    "any norm": AnyNormSVC(gamma=0.4),
    "any norm, each against the others": AnyNormSVC(gamma=0.4, multi_class="ovr"),
    "any norm, scores of pairs": AnyNormSVC(gamma=0.4, decision_function_shape="ovo"),
    "budget": BudgetSVC(10, gamma=0.4),
    "least squares": LeastSquaresSVC(gamma=0.4),
    "least 1-norm": LeastOneNormSVC(gamma=0.4),
    "empirical": EmpiricalSVC(gamma=0.4, probability=True),
    "reduced": ReducedSVC(8, gamma=0.4, probability=True),
    "lp": LpSVC(gamma=0.4),
    "relevance": RelevanceVectorClassifier(gamma=0.4),
    "compressed": CompressedClassifier(SVC(gamma=0.4), 8),
    "compressed, ties by value": CompressedClassifier(SVC(gamma=0.4, break_ties=True), 8),
    "compressed, scores of pairs": CompressedClassifier(SVC(gamma=0.4, decision_function_shape="ovo"), 8),
    "compressed with probabilities": CompressedClassifier(SVC(gamma=0.4), 8, probability=True),
    "pipeline": make_pipeline(StandardScaler(), quick(probability=True)),
    "pipeline with scales": make_pipeline(RobustScaler(), MinMaxScaler(), quick(scales="learned", gamma=4.0)),
}


def iris(n_classes=3):
    """Rows as float32 has them, so that both types get the same."""
    X, y = load_iris(return_X_y=True)
    X = X.astype(np.float32).astype(np.float64) + 2.0**-10 * np.arange(150)[:, None] / 128
    return X.astype(np.float32).astype(np.float64), y if n_classes == 3 else (y > 1).astype(int)


@cache
def fitted(name, n_classes):
    return clone(MODELS[name]).fit(*iris(n_classes))


def run(model, X):
    """Outputs by name."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    kind = {"tensor(float)": np.float32, "tensor(double)": np.float64}[session.get_inputs()[0].type]
    found = session.run(None, {session.get_inputs()[0].name: np.asarray(X, dtype=kind)})
    return dict(zip([output.name for output in session.get_outputs()], found, strict=True))


def assert_same(model, X, dtype, **settings):
    found = run(to_onnx(model, dtype=dtype, **settings), X)
    scores = model.decision_function(X)
    scores = scores[:, None] if scores.ndim == 1 else scores
    assert found["scores"].shape == scores.shape
    assert found["scores"].dtype == dtype
    assert np.abs(found["scores"] - scores).max() <= BARS[dtype] * max(1, np.abs(scores).max())
    assert_array_equal(found["label"], model.predict(X))
    if hasattr(model, "predict_proba"):
        assert_allclose(found["probabilities"], model.predict_proba(X), rtol=0, atol=BARS[dtype])
        assert_array_equal(found["probabilities"].argmax(axis=1), np.searchsorted(model.classes_, model.predict(X)))
    else:
        assert set(found) == {"label", "scores"}


@dtypes
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_every_classifier(name, n_classes, dtype):
    X, _ = iris(n_classes)
    assert_same(fitted(name, n_classes), X, dtype)


KERNELS = kernel_table.examples() | {
    "poly": kernels.Polynomial(0.1, 1.0, 3),
    "sigmoid": kernels.Sigmoid(0.02, -0.1),
}
SCALES = {"plain": None, "scaled": np.array([0.5, 2.0, 1.0, 0.0]), "one scale": 0.5}


@dtypes
@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name, scales, dtype):
    X, y = iris()
    kernel = KERNELS[name] if scales == "plain" else kernels.Scaled(KERNELS[name], SCALES[scales])
    assert_same(AnyNormSVC(kernel=kernel).fit(X, y), X, dtype)


def test_a_scale_of_zero_leaves_the_input_out():
    X, y = iris()
    model = AnyNormSVC(kernel=kernels.Scaled(kernels.Gaussian(0.3), [1.0, 1.0, 0.0, 1.0])).fit(X, y)
    vectors = {c.name: c.dims for c in to_onnx(model).graph.initializer}["vectors"]
    assert list(vectors) == [model.n_vectors_, 3]


@pytest.mark.parametrize("form", ["difference", "products"])
@pytest.mark.parametrize("dtype", [*DTYPES, "float32 throughout"])
def test_forms(form, dtype):
    """In float32 throughout, errors are as large as roundings of the largest terms."""
    X, _ = iris()
    model = fitted("any norm", 3)
    options = {"form": form, "arithmetic": "float32" if "throughout" in dtype else "float64"}
    dtype = dtype.partition(" ")[0]
    if options["arithmetic"] == "float64":
        assert_same(model, X, dtype, options=options)
        return
    found = to_onnx(model, dtype=dtype, options=options)
    assert {c.data_type for c in found.graph.initializer} == {onnx.TensorProto.FLOAT, onnx.TensorProto.INT64}
    size = np.abs(model.vector_coef_).sum(axis=1).max()
    assert np.abs(run(found, X)["scores"] - model.decision_function(X)).max() <= 1e-6 * size


@dtypes
def test_far_from_the_origin(dtype):
    """Offsets that are large beside the spread of the inputs cost no digits, with a scaler or without."""
    X, y = iris()
    X = X * 0.25 + 2000
    X = X.astype(np.float32).astype(np.float64)
    assert_same(make_pipeline(StandardScaler(), quick()).fit(X, y), X, dtype)
    assert_same(quick(gamma=2.0).fit(X, y), X, dtype)
    found = run(to_onnx(quick(gamma=2.0).fit(X, y), options={"arithmetic": "float32"}), X)
    assert np.abs(found["scores"] - quick(gamma=2.0).fit(X, y).decision_function(X)).max() < 1e-4


@dtypes
def test_narrow_kernels(dtype):
    """Squares are then much larger than the distances that matter."""
    X, y = iris()
    assert_same(AnyNormSVC(gamma=1e6).fit(X, y), X + 1e-4, dtype)


@dtypes
def test_one_input_and_factors_near_one(dtype):
    """onnxruntime leaves out a product with a number that float32 rounds to 1."""
    X, y = iris(2)
    assert_same(AnyNormSVC(gamma=(1 + 3e-8) ** 2).fit(X[:, 2:3], y), X[:, 2:3], dtype)


@pytest.mark.parametrize("scaler", [StandardScaler(), RobustScaler(), MinMaxScaler((-1, 1))])
def test_scalers_are_folded_to_the_last_digits(scaler):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * [1, 5, 1e6] + [0, 2000, 1e9]
    scaled = scaler.fit_transform(X)
    assert_allclose(folded_scalers([scaler], 3)(X), scaled, rtol=0, atol=5e-13)


# --- votes and probabilities: a machine whose values are its inputs ---------------------------------------------------


def inputs_as_values(n_outputs, n_classes, votes, shown=None, layer=None):
    d = n_outputs + (0 if layer is None else layer.coef.shape[0])
    pick = Expansion(kernels.Linear(), np.eye(d), np.eye(n_outputs, d), np.zeros(n_outputs))
    if layer is not None:
        layer = ProbabilityLayer(np.eye(d)[n_outputs:], layer.bias, layer.shares)
    return InferenceModel(pick, Affine.none(d), np.arange(n_classes), votes, shown, layer)


def answers(machine, F, dtype):
    return run(standalone_model(machine, DTYPES[dtype], "test", 18, _checked_options({"arithmetic": "float32"})), F)


@dtypes
@pytest.mark.parametrize("zero_is_positive", [False, True])
@pytest.mark.parametrize("by_value", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 4, 5])
def test_votes_and_ties(n_classes, by_value, zero_is_positive, dtype):
    """Small whole numbers: values of 0 and equal votes are common."""
    votes = Votes(True, by_value, zero_is_positive)
    pairs = n_classes * (n_classes - 1) // 2
    F = np.random.default_rng(n_classes).integers(-2, 3, size=(400, pairs)).astype(np.float64)
    shown = None if n_classes == 2 else Votes(True, True, not zero_is_positive)
    found = answers(inputs_as_values(pairs, n_classes, votes, shown), F, dtype)
    assert_array_equal(found["label"], votes.winners(F, n_classes))
    assert_array_equal(found["label"], votes.scores(F, n_classes).argmax(axis=1))
    assert_allclose(found["scores"], F if shown is None else shown.scores(F, n_classes), atol=1e-6, rtol=0)


@dtypes
def test_the_first_of_the_largest_values(dtype):
    F = np.random.default_rng(0).integers(-2, 3, size=(300, 4)).astype(np.float64)
    found = answers(inputs_as_values(4, 4, Votes()), F, dtype)
    assert_array_equal(found["label"], F.argmax(axis=1))
    assert_array_equal(found["scores"], F)


@dtypes
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_the_predicted_class_is_the_likeliest(n_classes, dtype):
    """Values and the layer of probabilities contradict each other in most rows."""
    n = 1 if n_classes == 2 else n_classes
    machine = inputs_as_values(n, n_classes, Votes(), layer=ProbabilityLayer(np.zeros((n, n)), np.zeros(n)))
    F = np.random.default_rng(1).normal(scale=3.0, size=(300, 2 * n)).astype(np.float32).astype(np.float64)
    winners = Votes().winners(F[:, :n], n_classes)
    expected = np.exp(align_with_winners(winners, log_probabilities(F[:, n:])))
    found = answers(machine, F, dtype)["probabilities"]
    assert_allclose(found, expected, atol=1e-6 if dtype == "float32" else 2e-12, rtol=0)
    assert_array_equal(found.argmax(axis=1), winners)
    assert_allclose(found.sum(axis=1), 1, atol=1e-5 if dtype == "float32" else 1e-11)


@dtypes
def test_shares_of_sigmoids(dtype):
    """Also where all sigmoids are 0 in this type."""
    layer = ProbabilityLayer(np.zeros((3, 3)), np.zeros(3), shares=True)
    F = np.random.default_rng(2).normal(scale=3.0, size=(100, 3)).astype(np.float32).astype(np.float64)
    F[::7] -= 200
    found = answers(inputs_as_values(3, 3, Votes(), layer=layer), np.hstack([F, F]), dtype)["probabilities"]
    expected = np.exp(log_probabilities(log_expit(F)))
    assert_allclose(found, expected, atol=2e-5 if dtype == "float32" else 1e-12, rtol=0)


# --- outputs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([3, 7], dtype=np.int8), [3, 7]),
        (np.array([3, 7], dtype=np.uint64), [3, 7]),
        (np.array([False, True]), [0, 1]),
        (np.array([-1.0, 1.0]), [-1, 1]),
        (np.array(["no", "yes"]), ["no", "yes"]),
        (np.array(["nein", "ja €"], dtype=object), ["ja €", "nein"]),
    ],
)
def test_labels(labels, expected):
    X, y = iris(2)
    model = quick().fit(X, labels[y])
    found = run(to_onnx(model), X)["label"]
    codes = np.searchsorted(model.classes_, model.predict(X))
    assert found.tolist() == [expected[code] for code in codes]
    assert found.dtype == (np.int64 if isinstance(expected[0], int) else object)
    assert_array_equal(run(to_onnx(model, options={"nocl": True}), X)["label"], codes)


def test_labels_that_int64_does_not_have_are_strings():
    assert labels_of(np.array([1, 2**63], dtype=np.uint64)).tolist() == ["1", str(2**63)]
    assert labels_of(np.array([0.5, 1.0])).tolist() == ["0.5", "1.0"]


@dtypes
def test_maps_and_columns(dtype):
    X, _ = iris()
    model = fitted("slim with probabilities", 3)
    p = model.predict_proba(X)
    maps = run(to_onnx(model, dtype=dtype, options={"zipmap": True}), X)["probabilities"]
    assert_allclose([[row[label] for label in model.classes_] for row in maps], p, atol=1e-6)
    columns = run(to_onnx(model, dtype=dtype, options={"zipmap": "columns"}), X)
    assert_allclose(np.stack([columns[f"i{label}"] for label in model.classes_], axis=1), p, atol=1e-6)
    found = run(to_onnx(model, dtype=dtype, options={"output_class_labels": True}), X)
    assert list(found) == ["label", "scores", "probabilities", "class_labels"]
    assert_array_equal(found["class_labels"], model.classes_)
    with pytest.raises(ValueError, match="zipmap=False"):
        to_onnx(model, options={"output_class_labels": True, "zipmap": True})


@dtypes
def test_regressors(dtype):
    X, _ = iris()
    model = CompressedRegressor(SVR(), 10).fit(X, X[:, 0] + np.sin(X[:, 2]))
    found = run(to_onnx(model, dtype=dtype), X)
    assert list(found) == ["variable"]
    assert found["variable"].shape == (len(X), 1)
    assert_allclose(found["variable"][:, 0], model.predict(X), rtol=0, atol=10 * BARS[dtype])


@dtypes
def test_outlier_detectors(dtype):
    X, _ = iris()
    assert_same(CompressedOutlierDetector(OneClassSVM(nu=0.2), 10).fit(X), X, dtype)


@dtypes
def test_precomputed(dtype):
    X, y = iris()
    K = kernels.Gaussian(0.4)(X, X).astype(np.float32).astype(np.float64)
    model = AnyNormSVC(kernel="precomputed").fit(K, y)
    assert_same(model, K, dtype)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_vectors(n_classes):
    """Every row then has the same answer."""
    X, y = iris(n_classes)
    model = quick().fit(X, y)
    model.vectors_, model.vector_coef_ = model.vectors_[:0], model.vector_coef_[:, :0]
    assert_same(model, X, "float64")


def test_any_number_of_rows_and_of_opsets():
    X, _ = iris()
    model = fitted("slim with probabilities", 3)
    for opset in (MIN_OPSET, 17, 18, 20):
        made = to_onnx(model, target_opset=opset)
        assert made.opset_import[0].version == opset
        for rows in (1, 2, 150):
            assert_array_equal(run(made, X[:rows])["label"], model.predict(X[:rows]))
        assert_allclose(run(made, X)["probabilities"], model.predict_proba(X), atol=1e-5)


def test_the_same_bytes_each_time_and_facts_about_the_model():
    model = fitted("pipeline", 3)
    made = to_onnx(model, name="flowers")
    assert made.SerializeToString() == to_onnx(model, name="flowers").SerializeToString()
    onnx.checker.check_model(made, full_check=True)
    facts = {fact.key: fact.value for fact in made.metadata_props}
    assert facts["classes"] == "[0, 1, 2]"
    assert facts["n_vectors"] == "6"
    assert made.graph.name == "flowers"
    assert "SlimSVC" in made.doc_string
    # The newest operators of a version need no newer file format: old runtimes read it.
    assert made.ir_version <= 8
    assert {node.domain for node in made.graph.node} == {""}


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dtype": "int8"}, "dtype='int8'.*float32"),
        ({"target_opset": 12}, "target_opset=12.*13"),
        ({"target_opset": 10**6}, "target_opset=1000000"),
        ({"options": {"zip": 1}}, "'zip'.*zipmap"),
        ({"options": {"zipmap": "rows"}}, "zipmap='rows'.*columns"),
        ({"options": {"form": "fast"}}, "form='fast'.*products"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        to_onnx(fitted("slim", 2), **settings)


def test_what_cannot_be_written():
    X, y = iris()
    model = AnyNormSVC(kernel=lambda A, B: np.asarray(A @ B.T)).fit(X, y)
    with pytest.raises(ValueError, match=r"'callable'.*rbf"):
        to_onnx(model)
    with pytest.raises(ValueError, match="SVC is a machine of scikit-learn"):
        to_onnx(SVC().fit(X, y))
    with pytest.raises(ValueError, match="SlimSVC is not a fitted"):
        to_onnx(SlimSVC())


def test_numbers_too_large_for_float32():
    X, y = make_moons(60, noise=0.1, random_state=0)
    model = quick().fit(X, y)
    model.vector_coef_ = model.vector_coef_ * 1e39
    with pytest.raises(ValueError, match="too large for float32"):
        to_onnx(model, options={"arithmetic": "float32"})
    to_onnx(model)


def test_without_onnx(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"slimsvm\[onnx\]"):
        to_onnx(fitted("slim", 2))


# --- real data --------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not DATA.is_dir(), reason="the benchmark data are not here")
@pytest.mark.parametrize("name", ["banana", "german", "image", "splice", "usps"])
def test_real_data(name):
    """An exact machine and small ones, on rows as float32 has them."""
    data = np.load(DATA / f"{name}.npz", allow_pickle=True)
    order = np.random.default_rng(0).permutation(len(data["y"]))[:900]
    X, y = np.asarray(data["X"], dtype=np.float32)[order].astype(np.float64), data["y"][order]
    svc = make_pipeline(StandardScaler(), SVC(C=10)).fit(X[:400], y[:400])
    small = make_pipeline(StandardScaler(), quick(C=10.0, gamma="scale", probability=True)).fit(X[:400], y[:400])
    for model in (small, compress(svc, 15, X[:400]), AnyNormSVC(C=10.0).fit(X[:400], y[:400])):
        for dtype in DTYPES:
            assert_same(model, X[400:], dtype)
