"""Novelty detection from few vectors."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_moons
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernel_table
from slimsvm import Predictor, SlimOneClass, compress, load, save, to_micropython, to_sklearn
from slimsvm.compression import one_class
from slimsvm.compression.one_class import threshold
from slimsvm.compression.tasks import OneClass
from slimsvm.export import quantize

MOONS = make_moons(400, noise=0.1, random_state=0)[0]
ROWS = np.random.default_rng(1).uniform([-2, -1.5], [3, 2], (500, 2))  # some inside, most outside


@pytest.fixture(scope="module")
def model():
    return SlimOneClass(12).fit(MOONS)


def same_model(one, other):
    assert_array_equal(one.vectors_, other.vectors_)
    assert_array_equal(one.vector_coef_, other.vector_coef_)
    assert_array_equal(one.intercept_, other.intercept_)


@parametrize_with_checks([SlimOneClass(5), SlimOneClass(5, contamination=0.1), SlimOneClass("auto", nu=0.5)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# --- what it promises -----------------------------------------------------------------------------------------------


def usual_and_outliers(name):
    """Half of the usual rows, the other half, and outliers."""
    if name == "moons":
        usual, others = make_moons(800, noise=0.1, random_state=1)[0], ROWS
    else:
        data, normal = {"digits": (load_digits, 0), "cancer": (load_breast_cancer, 1), "wine": (load_wine, 1)}[name]
        X, y = data(return_X_y=True)
        usual, others = X[y == normal], X[y != normal]
    order = np.random.default_rng(0).permutation(len(usual))
    first, rest = np.array_split(usual[order], 2)
    scaler = StandardScaler().fit(first)
    return scaler.transform(first), scaler.transform(rest), scaler.transform(others)


@pytest.mark.parametrize("nu", [0.05, 0.1, 0.5])
@pytest.mark.parametrize("name", ["moons", "digits", "cancer", "wine"])
def test_the_same_side_as_a_large_machine(name, nu):
    """On rows that it has not seen, and on all that do not lie on the border itself."""
    X, usual, outliers = usual_and_outliers(name)
    large, small = OneClassSVM(nu=nu).fit(X), SlimOneClass(20, nu=nu).fit(X)
    assert small.n_vectors_ <= 20
    clear = np.abs(large.decision_function(X)) > large.tol
    for rows in (X[clear], np.vstack([usual, outliers])):
        assert np.mean(large.predict(rows) == small.predict(rows)) >= 0.95
    known = np.repeat([1, 0], [len(usual), len(outliers)])
    rows = np.vstack([usual, outliers])
    aucs = [roc_auc_score(known, model.decision_function(rows)) for model in (large, small)]
    assert abs(aucs[0] - aucs[1]) <= 0.02


@pytest.mark.parametrize("nu", [0.1, 0.6])
def test_objective_and_gap_are_those_of_the_large_machine(nu):
    model = SlimOneClass(5, nu=nu, gamma=1.0, tol=1e-5).fit(MOONS)
    other = OneClassSVM(nu=nu, gamma=1.0, tol=1e-9).fit(MOONS)
    a, f = other.dual_coef_[0], other.decision_function(MOONS)
    squares = a @ (f[other.support_] + other.offset_)
    best = squares / 2 - other.offset_[0] * nu * len(MOONS) + np.maximum(-f, 0).sum()
    assert model.duality_gap_[0] <= 1e-5
    assert_allclose(model.objective_[0], best, rtol=2e-5)
    assert model.compression_.vectors_before >= nu * len(MOONS)


def test_a_machine_that_is_not_finished_says_so():
    with pytest.warns(UserWarning, match="duality gap"):
        SlimOneClass(5, max_iter=3).fit(MOONS)


def test_scores_offset_and_sides(model):
    f = model.decision_function(ROWS)
    assert_allclose(model.score_samples(ROWS) - model.offset_, f, atol=1e-12)
    assert_array_equal(model.predict(ROWS), np.where(f > 0, 1, -1))
    assert_array_equal(clone(model).fit_predict(MOONS), model.predict(MOONS))
    assert model.offset_.shape == model.intercept_.shape == model.duality_gap_.shape == (1,)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_contamination_is_the_share_outside(share):
    model = SlimOneClass(12, contamination=share).fit(MOONS)
    assert np.mean(model.predict(MOONS) == -1) == share
    same_vectors = SlimOneClass(12).fit(MOONS)
    assert_array_equal(model.vector_coef_, same_vectors.vector_coef_)


def test_contamination_counts_weights():
    weight = np.random.default_rng(0).integers(1, 5, len(MOONS))
    model = SlimOneClass(12, contamination=0.2).fit(MOONS, sample_weight=weight)
    outside = weight[model.predict(MOONS) == -1].sum() / weight.sum()
    assert abs(outside - 0.2) <= 4 / weight.sum()


def test_rows_of_one_score_are_on_one_side():
    scores, counts = np.array([1.0, 2.0, 2.0, 3.0]), np.ones(4)
    assert threshold(scores, counts, 0.25) == 1.5
    assert threshold(scores, counts, 0.7) == 2.5
    assert threshold(scores, counts, 1.0) > 3


def test_rows_on_the_border_agree_on_either_side():
    F, G = np.array([[1.0], [1e-6], [-1e-6], [-1.0]]), np.array([[1.0], [-1.0], [1.0], [1.0]])
    assert OneClass().agreement(F, G, np.ones(4)) == 0.25
    assert OneClass(1e-5).agreement(F, G, np.ones(4)) == 0.75


# --- rows -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [20_000, 150])
def test_the_order_of_rows_and_threads_change_nothing(most, monkeypatch):
    """Also where some of the rows are drawn."""
    monkeypatch.setattr(one_class, "MAX_TRAINING_ROWS", most)
    order = np.random.default_rng(0).permutation(len(MOONS))
    first = SlimOneClass(6, contamination=0.1).fit(MOONS)
    same_model(first, SlimOneClass(6, contamination=0.1).fit(MOONS[order]))
    same_model(first, SlimOneClass(6, contamination=0.1, n_jobs=2).fit(MOONS))


@pytest.mark.parametrize("most", [20_000, 100])
def test_a_weight_counts_copies(most, monkeypatch):
    monkeypatch.setattr(one_class, "MAX_TRAINING_ROWS", most)
    weight = np.random.default_rng(0).integers(0, 4, len(MOONS))
    weighted = SlimOneClass(6, contamination=0.1).fit(MOONS, sample_weight=weight)
    same_model(weighted, SlimOneClass(6, contamination=0.1).fit(np.repeat(MOONS, weight, axis=0)))


def test_a_sample_is_enough(monkeypatch):
    """A detector from a third of the rows is nearly that of all."""
    X = make_moons(3000, noise=0.1, random_state=3)[0]
    whole = SlimOneClass(12).fit(X)
    monkeypatch.setattr(one_class, "MAX_TRAINING_ROWS", 1000)
    some = SlimOneClass(12).fit(X)
    assert some.compression_.vectors_before < whole.compression_.vectors_before
    assert np.mean(some.predict(ROWS) == whole.predict(ROWS)) > 0.97


def test_sparse_rows():
    X = np.where(np.random.default_rng(0).random((200, 6)) < 0.5, 0, np.random.default_rng(1).normal(size=(200, 6)))
    dense, sparse = (SlimOneClass(10).fit(rows) for rows in (X, sp.csr_array(X)))
    assert_allclose(dense.decision_function(X), sparse.decision_function(sp.csr_matrix(X)), rtol=1e-4, atol=1e-4)


def test_float32_and_names():
    frame = pd.DataFrame(MOONS, columns=["length", "width"])
    model = SlimOneClass(6).fit(frame)
    assert model.feature_names_in_.tolist() == ["length", "width"]
    single = SlimOneClass(6).fit(MOONS.astype(np.float32))
    assert single.vectors_.dtype == np.float32
    rows = pd.DataFrame(ROWS, columns=frame.columns)
    assert np.mean(single.predict(ROWS) == model.predict(rows)) > 0.99


@pytest.mark.parametrize("kernel", [*kernel_table.default_first()[1:], lambda X, Z: (1 + X @ Z.T) ** 2])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_kernel(kernel):
    away = MOONS + 4  # a plane can tell them from the origin
    model = SlimOneClass(6, kernel=kernel, gamma=0.5, coef0=1.0).fit(away)
    assert model.n_vectors_ <= 6
    assert np.isfinite(model.decision_function(ROWS)).all()


@pytest.mark.parametrize("X", [np.ones((5, 2)), np.array([[0.0], [1.0]]), np.array([[1.0, 2.0]])])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_few_distinct_rows(X):
    assert np.isfinite(SlimOneClass(3).fit(X).decision_function(X)).all()


# --- size -----------------------------------------------------------------------------------------------------------


def test_as_few_vectors_as_agree():
    rough, fine = (SlimOneClass("auto", agreement=share).fit(MOONS) for share in (0.9, 0.995))
    assert rough.n_vectors_ < fine.n_vectors_ < fine.compression_.vectors_before / 2
    assert fine.compression_.agreement_on_X >= 0.995


@pytest.mark.parametrize("weighted", [False, True])
def test_few_rows_ask_for_agreement_on_others(weighted):
    """On the rows themselves one vector agrees: all are well inside or on the border."""
    rng = np.random.default_rng(0)
    X, unseen = rng.standard_normal((120, 10)), rng.standard_normal((2000, 10))
    weight = rng.integers(1, 4, len(X)) if weighted else None
    large = OneClassSVM(nu=0.1).fit(X, sample_weight=weight).predict(unseen)
    one, few = (SlimOneClass(size).fit(X, sample_weight=weight) for size in (1, "auto"))
    assert one.compression_.agreement_on_X == 1
    alike_one, alike_few = (np.mean(model.predict(unseen) == large) for model in (one, few))
    assert alike_one < 0.9 < 0.97 < alike_few


@pytest.mark.parametrize("kernel", kernel_table.names(fixed_point=True))
@pytest.mark.parametrize("most", [40, 100])
def test_bytes(kernel, most):
    model = SlimOneClass(max_bytes=most, kernel=kernel).fit(MOONS + 4)
    small = quantize(model)
    assert small.n_bytes == model.model_bytes_ <= most
    assert np.mean(small.predict(ROWS + 4) == model.predict(ROWS + 4)) > 0.95


def test_too_few_bytes():
    with pytest.raises(ValueError, match=r"max_bytes=5 is too little: one vector of 2 inputs for a detector"):
        SlimOneClass(max_bytes=5).fit(MOONS)


# --- elsewhere ------------------------------------------------------------------------------------------------------


def test_files_and_pickles(model, tmp_path):
    save(model, tmp_path / "model.slim")
    for other in (load(tmp_path / "model.slim"), pickle.loads(pickle.dumps(model))):
        same_model(model, other)
        assert_array_equal(other.decision_function(ROWS), model.decision_function(ROWS))
        assert str(other.compression_) == str(model.compression_)


def test_other_forms(model):
    made = to_sklearn(model)
    assert type(made) is OneClassSVM
    assert_allclose(made.decision_function(ROWS), model.decision_function(ROWS), atol=1e-9)
    one = Predictor(model)
    assert [one.predict(row) for row in ROWS[:20]] == model.predict(ROWS[:20]).tolist()
    names: dict = {}
    exec(to_micropython(model), names)
    assert [names["predict"](list(row)) for row in ROWS[:50]] == quantize(model).predict(ROWS[:50]).tolist()
    smaller = compress(model, 6, MOONS)
    assert smaller.n_vectors_ == 6
    assert np.mean(smaller.predict(ROWS) == model.predict(ROWS)) > 0.97


def test_onnx(model):
    onnxruntime = pytest.importorskip("onnxruntime")
    from slimsvm import to_onnx

    pipeline = make_pipeline(StandardScaler(), clone(model)).fit(MOONS)
    session = onnxruntime.InferenceSession(to_onnx(pipeline).SerializeToString())
    label, scores = session.run(None, {session.get_inputs()[0].name: ROWS.astype(np.float32)})
    assert_allclose(scores.ravel(), pipeline.decision_function(ROWS), atol=1e-3)
    assert np.mean(label.ravel() == pipeline.predict(ROWS)) > 0.99


def test_dask_rows(model):
    """Predicted where they are."""
    da = pytest.importorskip("dask.array")
    far = da.from_array(ROWS, chunks=(100, 2))
    assert_array_equal(model.predict(far).compute(), model.predict(ROWS))
    assert_allclose(model.score_samples(far).compute(), model.score_samples(ROWS))


# --- what makes no sense --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"nu": 0}, "nu=0 must be a number above 0 and at most 1"),
        ({"nu": 1.5}, "at most 1"),
        ({"contamination": 0.6}, "at most 0.5"),
        ({"n_vectors": 0}, "n_vectors=0 must be"),
        ({"agreement": 2}, "agreement=2"),
        ({"kernel": "precomputed"}, "pass the kernel itself"),
        ({"max_bytes": 100, "kernel": "poly"}, "no fixed-point form"),
        ({"tol": 0}, "tol=0"),
        ({"gamma": -1}, "gamma=-1"),
    ],
)
def test_errors(params, words):
    with pytest.raises(ValueError, match=words):
        SlimOneClass(**params).fit(MOONS)


# --- rows that are elsewhere ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def far_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3)).astype(np.float32)
    X[2000:2050] = X[:50]  # copies in other blocks
    weight = rng.uniform(0.5, 2, len(X))
    weight[::7] = 0
    return X, weight


def blocks_of(X, *others):
    from slimsvm import rows

    parts = [slice(i, i + 700) for i in range(0, len(X), 700)]
    return rows.from_blocks([(X[some], None, *(other[some] for other in others)) for some in parts])


@pytest.mark.parametrize("most", [20_000, 1000], ids=["all rows", "drawn"])
@pytest.mark.parametrize("contamination", [None, 0.05])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_rows_elsewhere_give_the_model_of_the_same_rows_in_memory(far_data, weighted, contamination, most, monkeypatch):
    da = pytest.importorskip("dask.array")
    monkeypatch.setattr(one_class, "MAX_TRAINING_ROWS", most)
    X, weight = far_data
    given = (weight,) if weighted else ()
    model = SlimOneClass(8, contamination=contamination)
    here = clone(model).fit(X, None, *given)
    files = clone(model).fit(blocks_of(X, *given))
    workers = clone(model).fit(da.from_array(X, chunks=(800, -1)), None, *(da.from_array(w, chunks=900) for w in given))
    for far in (files, workers):
        np.testing.assert_array_equal(far.vectors_, here.vectors_)
        np.testing.assert_allclose(far.offset_, here.offset_, rtol=1e-10)
        np.testing.assert_array_equal(far.predict(X), here.predict(X))
        np.testing.assert_allclose(far.objective_, here.objective_, rtol=1e-12)


@pytest.mark.parametrize("place", ["device1", "no_float64"])
def test_rows_on_a_device(far_data, place, monkeypatch):
    import sklearn

    strict = pytest.importorskip("array_api_strict")
    pytest.importorskip("array_api_compat")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    X, weight = far_data
    with sklearn.config_context(array_api_dispatch=True):
        there = strict.asarray(X, device=strict.Device(place))
        far = SlimOneClass(8, contamination=0.1, gamma=0.3).fit(there, None, weight)
        labels = far.predict(there)
        assert labels.device == there.device
    here = SlimOneClass(8, contamination=0.1, gamma=0.3).fit(X, None, weight)
    np.testing.assert_allclose(far.vectors_, here.vectors_, rtol=1e-5)
    np.testing.assert_allclose(far.offset_, here.offset_, rtol=1e-6)


def test_rows_that_are_all_the_same_are_usual():
    same = np.ones((20, 2))
    for detector in (SlimOneClass(5), SlimOneClass(5, contamination=0.05)):
        assert_array_equal(detector.fit(same).predict(same[:3]), [1, 1, 1])
