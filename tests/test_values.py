"""Models whose values are the answer, with one output or several, wherever models go."""

from __future__ import annotations

import pickle
from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_friedman1
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from slimsvm import Predictor, SlimSVR, compress, to_micropython, to_onnx, to_sklearn
from slimsvm.export import quantize
from slimsvm.model.inference import inference_model
from slimsvm.quantization.integers import rounding_shift, values_in_16_bits


@pytest.fixture(scope="module")
def data():
    X, y = make_friedman1(1200, noise=1.0, random_state=0)
    return X, y


@pytest.fixture(scope="module")
def small(data):
    X, y = data
    return compress(make_pipeline(StandardScaler(), SVR(C=10.0)).fit(X[:600], y[:600]), 20, X[:600], y[:600])


@pytest.fixture(scope="module")
def slim(data):
    """Two targets, learned."""
    X, y = data
    Y = np.column_stack([y, 1e-3 * np.sin(3 * X[:, 0])])[:600]
    return make_pipeline(StandardScaler(), SlimSVR(12, C=30.0, gamma=0.1, scales="fixed")).fit(X[:600], Y)


@pytest.fixture(scope="module")
def several(small):
    """Three targets of very different sizes over the same vectors."""
    last = deepcopy(small[-1])
    a = last.vector_coef_
    last.vector_coef_ = np.vstack([a, 1e-4 * a[:, ::-1], 1e5 * np.roll(a, 3)])
    last.intercept_ = np.array([float(last.intercept_[0]), 7.0, -3e8])
    return make_pipeline(small[0], last)


def values_of(model, X):
    machine = inference_model(model)
    return machine.expansion.decision(machine.inputs(X))


def spread(F):
    return np.where(F.std(axis=0) > 0, F.std(axis=0), 1.0)


# --- integers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("count", [20, 50])
def test_next_to_nothing_is_lost(noise, count):
    """R^2 in integers, by projection and with a refit."""
    X, y = make_friedman1(1400, noise=noise, random_state=1)
    train, test = slice(0, 400), slice(400, None)
    model = make_pipeline(StandardScaler(), SVR(C=10.0)).fit(X[train], y[train])
    model = compress(model, count, X[train], y[train])

    def r2(found):
        return 1 - np.mean((found - y[test]) ** 2) / y[test].var()

    before = r2(model.predict(X[test]))
    assert before > 0.85
    assert before - r2(quantize(model).predict(X[test])) < 0.002
    assert before - r2(quantize(model, X[train], y[train]).predict(X[test])) < 0.002


def test_bytes_are_counted(small, several):
    for model, outputs in ((small, 1), (several, 3)):
        q = quantize(model[-1])
        assert model[-1].model_bytes_ == q.n_bytes == sum(q.parts().values())
        assert q.coef.nbytes + q.vectors.nbytes + q.bias.nbytes + q.exponent.nbytes + q.shift.nbytes == (
            q.n_bytes - q.grid.n_bytes
        )
        assert len(q.bias) == outputs
        assert q.classes is None


def test_every_target_counts_in_its_own_unit(several, data):
    X, _ = data
    q = quantize(several)
    F = values_of(several, X)
    assert q.predict(X).shape == F.shape
    assert (np.sqrt(((q.predict(X) - F) ** 2).mean(axis=0)) < 0.05 * spread(F)).all()
    again = pickle.loads(pickle.dumps(q))
    assert_array_equal(again.predict(X), q.predict(X))


def test_units_of_targets_change_nothing_else(small, data):
    """Values in units a power of two times as large are the same integers."""
    X, _ = data
    last = deepcopy(small[-1])
    last.vector_coef_, last.intercept_ = last.vector_coef_ * 2.0**10, last.intercept_ * 2.0**10
    a, b = quantize(small[-1]), quantize(last)
    rows = small[0].transform(X)
    assert_array_equal(a.accumulators(rows), b.accumulators(rows))
    assert_array_equal(b.steps, a.steps * 2.0**10)


@pytest.mark.parametrize("bits", [0, 15])
def test_numbers_of_any_size(bits):
    """Coefficients keep 15 digits beside any bias that is not 2^30 times as large, and values their steps."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        unit, far = 10.0 ** rng.uniform(-20, 20), 10.0 ** rng.uniform(-8, 8)
        coef, bias = unit * rng.normal(size=(2, rng.integers(1, 80))), unit * far * rng.normal(size=2)
        numbers, exponent, shift, whole = values_in_16_bits(coef, bias, bits)
        back = numbers * 2.0 ** -exponent.astype(float)[:, None]
        assert (np.abs(back - coef).max(axis=1) <= np.abs(coef).max(axis=1) * 2.0**-14).all()
        steps = 2.0 ** -(exponent.astype(float) + bits - shift)
        assert (np.abs(whole * steps - bias) <= 0.5 * steps).all()
        most = rounding_shift(np.abs(numbers.astype(np.int64)).sum(axis=1) << 15, shift.astype(np.int64)) + np.abs(
            whole
        )
        assert (most < 2**31).all()
    numbers, exponent, shift, whole = values_in_16_bits(np.zeros((1, 3)), np.array([5.0]), bits)
    assert whole[0] * 2.0 ** -(float(exponent[0]) + bits - shift[0]) == pytest.approx(5.0)
    assert shift[0] < 63


def test_halves_go_away_from_zero():
    assert rounding_shift(np.array([5, -5, 6, -6, 7]), np.array(2)).tolist() == [1, -1, 2, -2, 2]
    assert rounding_shift(np.array([5, -5]), np.array(0)).tolist() == [5, -5]


def test_a_refit_follows_the_rows(small, data):
    """Targets that are other than the model says move its values towards them."""
    X, y = data
    other = quantize(small, X, y + 3.0).predict(X).mean()
    assert other > quantize(small).predict(X).mean() + 1.5


# --- elsewhere ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "close"), [("float32", 1e-5), ("float64", 1e-11)])
def test_micropython(small, several, slim, data, dtype, close):
    X = data[0][:50]
    for model in (small, several, slim):
        module = {}
        exec(to_micropython(model, dtype=dtype), module)
        found = np.array([module["predict"](row) for row in X.tolist()])
        assert found.ndim == (1 if model is small else 2)
        expected = values_of(model, X)
        size = np.abs(model[-1].vector_coef_).sum(axis=1) + np.abs(model[-1].intercept_)
        assert (np.abs(found.reshape(expected.shape) - expected) <= close * size).all()


def test_predictor(small, several, slim, data):
    X = data[0][:50]
    for model in (small, several, slim):
        fast, expected = Predictor(model), values_of(model, X)
        assert_allclose(np.reshape(fast.predict(X), expected.shape), expected, rtol=1e-12)
        assert_allclose(np.reshape([fast.predict(row) for row in X], expected.shape), expected, rtol=1e-12)
        assert np.ndim(fast.predict(X[0])) == (0 if model is small else 1)
        with pytest.raises(AttributeError, match="predict"):
            fast.decision_function(X[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_onnx(several, slim, data, dtype):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    X = data[0]
    for model in (several, slim):
        made, expected = to_onnx(model, dtype=dtype), values_of(model, X.astype(dtype).astype(float))
        found = runtime.InferenceSession(made.SerializeToString()).run(None, {"X": X.astype(dtype)})
        assert [output.name for output in made.graph.output] == ["variable"]
        assert found[0].shape == expected.shape
        digits = 1e-6 if dtype == "float32" else 1e-12
        assert (np.abs(found[0] - expected).max(axis=0) <= digits * np.abs(expected).max(axis=0)).all()


def test_onnx_of_pipelines_that_are_converted(data):
    pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    X, y = data
    model = make_pipeline(PCA(5), SlimSVR(6, C=10.0, gamma=1.0, scales="fixed")).fit(X[:300], y[:300])
    found = runtime.InferenceSession(to_onnx(model).SerializeToString()).run(None, {"X": X.astype(np.float32)})
    assert_allclose(found[0][:, 0], model.predict(X), atol=1e-4)


def test_sklearn(small, several, data):
    X, _ = data
    assert_allclose(to_sklearn(small).predict(X), small.predict(X), rtol=0, atol=1e-10)
    with pytest.raises(ValueError, match=r"has 3 targets, SVR has one; use to_onnx or to_c"):
        to_sklearn(several)


# --- made for bytes -------------------------------------------------------------------------------------------------


def test_a_learned_model_in_integers(slim, data):
    """Of several targets each loses next to nothing, by projection and with a refit, which is the model's own."""
    X, y = data
    Y = np.column_stack([y, 1e-3 * np.sin(3 * X[:, 0])])
    before, small = slim.predict(X[600:]), quantize(slim)
    for q in (small, quantize(slim, X[:600], Y[:600])):
        assert (np.abs(q.predict(X[600:]) - before).std(axis=0) < 0.03 * before.std(axis=0)).all()
    assert slim[-1].model_bytes_ == quantize(slim[-1]).n_bytes
    with pytest.raises(ValueError, match="y has 1 columns, the model has 2 targets"):
        quantize(slim, X[:600], y[:600])


def test_a_refit_solves_the_problem_itself(data):
    """Over vectors that are on the grid already it gives the model."""
    X, y = data
    model = SlimSVR(max_bytes=120, C=30.0, gamma=1.0, scales="fixed").fit(X[:400], y[:400])
    a, b = quantize(model), quantize(model, X[:400], y[:400])
    assert_array_equal(a.vectors, b.vectors)
    assert np.abs(a.predict(X) - b.predict(X)).max() < 0.01 * y.std()


@pytest.mark.parametrize("max_bytes", [60, 120, 250])
@pytest.mark.parametrize("targets", [1, 3])
def test_bytes_are_kept(data, max_bytes, targets):
    X, y = data
    Y = np.column_stack([y, X[:, 0] * X[:, 1], 1e4 + 1e3 * X[:, 2]])[:300, :targets]
    model = SlimSVR(max_bytes=max_bytes, C=30.0, gamma=1.0, scales="fixed").fit(X[:300], Y)
    q = quantize(model)
    assert model.model_bytes_ == q.n_bytes <= max_bytes
    assert model.predict(X).shape == (len(X), targets)
    F = values_of(model, X)
    assert (np.abs(q.predict(X).reshape(F.shape) - F).std(axis=0) < 0.03 * F.std(axis=0)).all()


def test_more_bytes_do_no_harm():
    """And there are four rows for each vector, however many bytes: with fewer they would fit noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 3))
    y = np.sin(2 * X[:, 0]) + 0.5 * rng.normal(size=400)
    models = [SlimSVR(max_bytes=size).fit(X[:200], y[:200]) for size in (80, 1000)]
    scores = [model.score(X[200:], y[200:]) for model in models]
    assert scores[1] > scores[0] - 0.02
    assert models[1].n_vectors_ <= 200 // 4


def test_too_few_bytes(data):
    X, y = data
    with pytest.raises(ValueError, match=r"max_bytes=10 is too little: one vector of \d+ inputs for 1 target takes"):
        SlimSVR(max_bytes=10).fit(X, y)
    with pytest.raises(ValueError, match=r"for 2 targets takes"):
        SlimSVR(max_bytes=10).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="no fixed-point form"):
        SlimSVR(max_bytes=500, kernel="poly").fit(X, y)
