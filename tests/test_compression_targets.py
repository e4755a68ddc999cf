"""Compression of regressors of several targets: each counts in its own unit, whatever that is."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_friedman1
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import slimsvm
from slimsvm import CompressedRegressor, SlimSVR, compress
from slimsvm.compression import METHODS, Compressor, distinct_rows
from slimsvm.estimators.adapters import source_model
from slimsvm.export import quantize

GIVEN = {"C": 10.0, "gamma": 0.3, "scales": "fixed"}
WITHOUT_LABELS = ("reduced_set", "margin")


@pytest.fixture(scope="module")
def data():
    X, y = make_friedman1(500, noise=0.5, random_state=0)
    return X, np.column_stack([y, 1e3 * np.sin(5 * X[:, 5]) + 100 * X[:, 6], X[:, 0] * X[:, 1]])


@pytest.fixture(scope="module")
def model(data):
    X, Y = data
    return SlimSVR(40, **GIVEN).fit(X[:350], Y[:350])


def known(method, X, Y):
    """The data that a method makes use of."""
    return {"method": method} if method in WITHOUT_LABELS else {"method": method, "X": X, "y": Y}


def r2_each(model, X, Y):
    return r2_score(Y, model.predict(X), multioutput="raw_values")


# --- the small model ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["", "X", "Xy"])
@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_every_target_keeps_its_accuracy(model, data, method, given):
    (X, Y), test = data, slice(350, None)
    rows = {name: part[:350] for name, part in zip("Xy", data, strict=True) if name in given}
    if method not in ("auto", *WITHOUT_LABELS) and given != "Xy":
        with pytest.raises(ValueError, match="needs X and y"):
            compress(model, 15, method=method, **rows)
        return
    small = compress(model, 15, method=method, **rows)
    assert isinstance(small, CompressedRegressor)
    assert small.vector_coef_.shape == (3, 15)
    assert small.intercept_.shape == (3,)
    assert small.predict(X).shape == Y.shape
    assert (r2_each(small, X[test], Y[test]) > r2_each(model, X[test], Y[test]) - 0.03).all()
    report = small.compression_
    assert (report.vectors_before, report.vectors_after) == (40, 15)
    assert report.agreement_on_vectors > 0.95
    assert report.distances.shape == (3,)
    assert report.distances.min() <= report.distance <= report.distances.max()


def test_agreement_is_the_mean_over_the_targets(model, data):
    X, _ = data
    small = compress(model, 4, X)
    expected = r2_score(model.predict(X), small.predict(X))
    assert small.compression_.agreement_on_X == pytest.approx(expected, abs=1e-9)
    enough = compress(model, "auto", X, agreement=0.97)
    assert 4 < enough.n_vectors_ < 20
    assert r2_score(model.predict(X), enough.predict(X)) >= 0.97


def test_as_many_vectors_as_there_are_change_nothing(model, data):
    X, _ = data
    same = compress(model, 40)
    assert same.compression_.method == "exact"
    assert same.compression_.distance < 1e-6
    assert_allclose(same.predict(X), model.predict(X), rtol=1e-9)


def test_linear_kernels_are_weight_vectors(data):
    X, Y = data
    model = SlimSVR(20, kernel="linear", C=1.0).fit(X, Y)
    small = compress(model, 3)
    assert small.n_vectors_ == 3
    assert_allclose(small.predict(X), model.predict(X), rtol=1e-9)


def test_a_column_stays_a_column(data):
    """And the model is that of a vector."""
    X, Y = data
    column, vector = (compress(SlimSVR(20, **GIVEN).fit(X, y), 8, X, y) for y in (Y[:, :1], Y[:, 0]))
    assert column.predict(X).shape == (len(X), 1)
    assert_array_equal(column.predict(X)[:, 0], vector.predict(X))
    assert compress(column, 4).predict(X).shape == (len(X), 1)


@pytest.mark.parametrize("method", METHODS)
def test_targets_that_are_all_the_same(data, method):
    X, Y = data
    Y = np.column_stack([Y[:, 0], np.full(len(Y), 7.0)])
    model = SlimSVR(30, **GIVEN).fit(X, Y)
    small = compress(model, 10, X, Y, method=method)
    assert_allclose(small.predict(X)[:, 1], 7.0, atol=1e-6)
    assert r2_score(Y[:, 0], small.predict(X)[:, 0]) > 0.9
    assert np.isfinite(small.compression_.distance)
    assert small.compression_.distances[1] < 1e-6
    assert np.isfinite(small.compression_.agreement_on_X)


# --- units ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_the_unit_of_a_target_scales_its_predictions_and_nothing_else(model, data, method):
    X, Y = data
    size = np.array([1.0, 1.0, 2.0**20])  # exact, so that learning goes the same way
    source = source_model(model)
    machine = source.expansion
    scaled = replace(source, expansion=replace(machine, coef=size[:, None] * machine.coef, bias=size * machine.bias))
    found = []
    for one, labels in ((source, Y), (scaled, Y * size)):
        compressor = Compressor(one.original(), distinct_rows(X, np.ones(len(X)), targets=labels))
        found.append(METHODS[method](compressor, 8))
    assert_array_equal(found[1].vectors, found[0].vectors)
    assert_allclose(found[1].coef, size[:, None] * found[0].coef, rtol=1e-9)
    assert_allclose(found[1].bias, size * found[0].bias, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_unit_that_is_no_power_of_two(data, method):
    """From the fit on, predictions of both are as good."""
    X, Y = data
    size = np.array([1.0, 1e-3, 1e3])
    models = [SlimSVR(30, **GIVEN).fit(X[:350], part[:350]) for part in (Y, Y * size)]
    first, second = (
        compress(one, 10, **known(method, X[:350], part[:350])) for one, part in zip(models, (Y, Y * size), strict=True)
    )
    assert_allclose(r2_each(second, X[350:], (Y * size)[350:]), r2_each(first, X[350:], Y[350:]), atol=0.03)


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_the_targets_is_that_of_the_outputs(model, data, method):
    X, Y = data
    order = [2, 0, 1]
    other = SlimSVR(40, basis=model.vectors_, **GIVEN).fit(X[:350], Y[:350])
    turned = SlimSVR(40, basis=model.vectors_, **GIVEN).fit(X[:350], Y[:350][:, order])
    assert_allclose(turned.predict(X), other.predict(X)[:, order], rtol=1e-6)
    first = compress(other, 10, **known(method, X[:350], Y[:350]))
    second = compress(turned, 10, **known(method, X[:350], Y[:350][:, order]))
    apart = np.abs(second.predict(X) - first.predict(X)[:, order]).max(axis=0)
    assert (apart < 0.05 * Y.std(axis=0)[order]).all()


def test_rows_weights_and_threads(model, data):
    """A weight is copies, whatever their order; threads change nothing."""
    X, Y = data
    copies = np.arange(len(X)) % 3
    rows = np.repeat(np.arange(len(X)), copies)[::-1]
    one = compress(model, 6, X, Y, sample_weight=copies)
    other = compress(model, 6, X[rows], Y[rows], n_jobs=2)
    assert_array_equal(one.vectors_, other.vectors_)
    assert_array_equal(one.vector_coef_, other.vector_coef_)


def test_equal_rows_keep_their_own_targets():
    X = np.ones((4, 2))
    y = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [1.0, 1.0]])
    kept = distinct_rows(X, np.ones(4), targets=y)
    assert sorted(map(tuple, kept.targets.tolist())) == [(1.0, 1.0), (1.0, 2.0), (2.0, 1.0)]
    assert kept.counts.sum() == 4


# --- where models go ------------------------------------------------------------------------------------------------


def test_estimators_and_pipelines(data):
    X, Y = data
    slim = SlimSVR(30, **GIVEN)
    pipeline = make_pipeline(StandardScaler(), SlimSVR(30, C=10.0, gamma=0.1, scales="fixed")).fit(X, Y)
    assert compress(pipeline, 10, X, Y).score(X, Y) > 0.9
    fitted = CompressedRegressor(slim, 10).fit(X, Y)
    assert fitted.predict(X).shape == Y.shape
    assert fitted.score(X, Y) > 0.9
    assert fitted.fit(X, Y[:, 0]).predict(X).shape == (len(X),)
    assert fitted.__sklearn_tags__().target_tags.multi_output
    assert not CompressedRegressor(SVR()).__sklearn_tags__().target_tags.multi_output
    with pytest.raises(ValueError, match="1d array"):
        CompressedRegressor(SVR(), 5).fit(X, Y)


def test_it_can_be_made_smaller_again(model, data):
    X, Y = data
    again = compress(compress(model, 20, X, Y), 12, X, Y)
    assert (again.n_vectors_, again.compression_.vectors_before) == (12, 20)
    assert again.score(X, Y) > 0.9


def test_files(model, data, tmp_path):
    X, Y = data
    small = compress(model, 10, X, Y)
    slimsvm.save(small, tmp_path / "small.slim")
    restored = [slimsvm.load(tmp_path / "small.slim"), pickle.loads(pickle.dumps(small))]
    for one in restored:
        assert_array_equal(one.predict(X), small.predict(X))
        assert str(one.compression_) == str(small.compression_)


def test_other_languages(model, data):
    X, Y = data
    small = compress(model, 10, X, Y)
    spread = Y.std(axis=0)
    for q in (quantize(small), quantize(small, X, Y)):
        assert (np.abs(q.predict(X) - small.predict(X)).std(axis=0) < 0.1 * spread).all()
    with pytest.raises(ValueError, match="y has 2 columns, the model has 3 targets"):
        quantize(small, X, Y[:, :2])
    assert small.model_bytes_ == quantize(small).n_bytes
    assert "3" in slimsvm.to_c(small)
    assert_allclose(slimsvm.Predictor(small).predict(X[0]), small.predict(X[:1])[0], rtol=1e-12)
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(slimsvm.to_onnx(small, dtype="float64").SerializeToString())
    assert_allclose(session.run(None, {"X": X})[0] / spread, small.predict(X) / spread, rtol=1e-9, atol=1e-12)


def test_wrong_targets_are_said_to_be(model, data):
    X, Y = data
    with pytest.raises(ValueError, match="y has 1 columns, the model has 3 targets; give a column for each"):
        compress(model, 5, X, Y[:, 0])
    with pytest.raises(ValueError, match="they must be as many"):
        compress(model, 5, X, Y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        compress(model, 5, X, np.where(Y > 5, np.nan, Y))


def test_a_warning_where_only_vectors_could_be_looked_at():
    """Learned vectors are not where rows are: what they say of a small model may be nothing."""
    X, y = make_friedman1(300, noise=0.5, random_state=0)
    model = SlimSVR(10, C=1e4, gamma=0.3, scales="fixed").fit(X, y)
    with pytest.warns(UserWarning, match="pass rows like those to be predicted"):
        compress(model, 2)
