"""Models on a device: the integers are what a C program would compute, they agree with the model, and they fit."""

from __future__ import annotations

import itertools
import math
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification, make_moons
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, OneClassSVM

import kernel_table
from problems import blobs, three_classes
from slimsvm import (
    AnyNormSVC,
    BudgetSVC,
    CompressedClassifier,
    CompressedOutlierDetector,
    EmpiricalSVC,
    LeastSquaresSVC,
    LpSVC,
    ReducedSVC,
    RelevanceVectorClassifier,
    SlimSVC,
    SlimSVR,
    bases,
    compress,
    to_c,
)
from slimsvm.export import quantize
from slimsvm.model.voting import Votes
from slimsvm.quantization.grid import make_grid, two_byte_gains, upper_half
from slimsvm.quantization.integers import HALF_POWERS, coefficients_in_16_bits, power_of_half
from slimsvm.quantization.rounding import descend_coordinates, remaining_curvature, round_vectors, squared_distance

pytestmark = [
    pytest.mark.filterwarnings("ignore:learning ended at its limit:sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:kernel values between different rows"),
]


def quick(**params):
    params = {"C": 3.0, "gamma": 0.4, "scales": "fixed", **params}
    return SlimSVC(6, bases.Learned(iterations=10), **params)


def uneven(n=150, d=5, seed=0):
    """Inputs of which some count more than others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n) > 0, 1, 0)


MODELS = {
    "rbf narrow": (quick(gamma=40.0), uneven()),
    "rbf wide": (quick(gamma=1e-3, C=1e4), uneven()),
    **{name: (quick(kernel=name), uneven()) for name in kernel_table.names(fixed_point=True)},
    **{
        f"{name} scales": (quick(kernel=name, scales="learned"), uneven())
        for name in kernel_table.names(fixed_point=True, radial=True)
    },
    "pairs": (quick(), three_classes(120)),
    "one a class": (quick(multi_class="ovr"), three_classes(120)),
    "reduced": (ReducedSVC(8), uneven()),
    "empirical": (EmpiricalSVC(0.2), uneven()),
    "all rows": (AnyNormSVC(C=3.0), uneven(60)),
    "compressed": (CompressedClassifier(SVC(C=3.0), 8), uneven()),
    "compressed pairs": (CompressedClassifier(SVC(C=3.0), 8), three_classes(120)),
    "compressed by value": (CompressedClassifier(SVC(C=3.0, break_ties=True), 8), three_classes(120)),
    "compressed slim": (CompressedClassifier(quick(multi_class="ovr"), 4), three_classes(120)),
    "outliers": (CompressedOutlierDetector(OneClassSVM(nu=0.2), 12), uneven()),
}
every_model = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(scope="module")
def fitted():
    found = {}

    def fit(name):
        if name not in found:
            model, (X, y) = MODELS[name]
            found[name] = clone(model).fit(X, y), X, y
        return found[name]

    return fit


# --- what the device computes, in plain Python integers -------------------------------------------------------------


def c_float(x):
    """A C float from a double."""
    return float(np.float32(x))


def device_row(grid, x):
    """int16 numbers of one row: float arithmetic, one operation at a time."""
    u = []
    for k, j in enumerate(grid.used):
        t = c_float(c_float(c_float(x[j]) - float(grid.offset[k])) * float(grid.gain[k]))
        t = max(-32767.0, min(32767.0, t))
        u.append(math.trunc(c_float(t + (-0.5 if t < 0 else 0.5))))
    return u


def device_kernel(q, u, vector):
    """2^-D in 15 bits: a sum that ends at its limit, a table, a line between two of its entries."""
    unit = q.power * q.grid.bits
    distance = 0
    for k in range(len(u)):
        t = u[k] - int(vector[k]) * (1 << int(q.grid.shift[k]))
        distance += t * t if q.power == 2 else abs(t)
        assert distance < 2**32  # a uint32 in C
        if distance >= 16 << unit:
            return 0
    D = distance << (16 - unit) if unit <= 16 else (distance + (1 << (unit - 17))) >> (unit - 16)
    whole, place, rest = D >> 16, (D >> 10) & 63, D & 1023
    high, low = int(HALF_POWERS[place]), int(HALF_POWERS[place + 1])
    value = high - (((high - low) * rest + 512) >> 10)
    return (value + ((1 << whole) >> 1)) >> whole


def device_sums(q, x):
    u = device_row(q.grid, x)
    if not hasattr(q, "power"):
        return [
            int(b) + sum(int(w) * t for w, t in zip(row, u, strict=True))
            for b, row in zip(q.bias, q.vectors, strict=True)
        ]
    values = [device_kernel(q, u, vector) for vector in q.vectors]
    return [
        int(b) + sum(int(c) * v for c, v in zip(row, values, strict=True))
        for b, row in zip(q.bias, q.coef, strict=True)
    ]


def device_label(q, sums):
    rule = q.votes
    least = 0 if rule.zero_is_positive else 1
    if len(sums) == 1:
        return q.classes[int(sums[0] >= least)]
    sums = [s << (int(max(q.exponent)) - int(e)) for s, e in zip(sums, q.exponent, strict=True)]
    n = len(q.classes)
    if not rule.pairs:
        return q.classes[max(range(n), key=lambda c: (sums[c], -c))]
    votes, values, p = [0] * n, [0] * n, 0
    for a in range(n):
        for b in range(a + 1, n):
            votes[a if sums[p] >= least else b] += 1
            values[a] += sums[p]
            values[b] -= sums[p]
            p += 1
    return q.classes[max(range(n), key=lambda c: (votes[c], values[c] if rule.by_value else 0, -c))]


@every_model
def test_python_computes_what_a_c_program_would(fitted, name):
    """Bit by bit, far rows and rows on vectors included."""
    model, X, _ = fitted(name)
    q = quantize(model)
    rows = np.vstack([X[:25], 30 * X[:5], bases.dense(model.vectors_)[:3], np.zeros((1, X.shape[1]))])
    sums = [device_sums(q, x) for x in rows]
    assert_array_equal(q.accumulators(rows), sums)
    assert_array_equal(q.predict(rows), [device_label(q, s) for s in sums])


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("rbf wide", "compressed")])
def test_it_agrees_with_the_model(fitted, name):
    """But for kernels so wide that 15 bits hardly tell their values apart, and vectors so close to each other, with
    large coefficients that cancel, that bytes do not tell them apart."""
    model, X, _ = fitted(name)
    q = quantize(model)
    X = np.vstack([X, X + 0.05])
    raw = model._scores(X)
    given = q.decision(X).reshape(raw.shape)
    assert np.abs(given - raw).mean() <= 0.05 * np.abs(raw).mean()
    sure = np.abs(raw).min(axis=1) > 0.1 * np.abs(raw).mean()
    assert_array_equal(q.predict(X)[sure], model.predict(X)[sure])


@every_model
def test_types_are_those_of_the_device(fitted, name):
    model, _, _ = fitted(name)
    q = quantize(model)
    assert q.vectors.dtype == (np.int16 if name == "linear" else np.int8)
    assert q.exponent.dtype == np.int8
    assert q.bias.dtype == np.int32
    if name != "linear":
        assert q.coef.dtype == np.int16
        arrays = q.vectors.nbytes + q.coef.nbytes + q.bias.nbytes + q.exponent.nbytes
        assert q.n_bytes == arrays + q.grid.n_bytes
    assert q.n_bytes == sum(q.parts().values())
    again = pickle.loads(pickle.dumps(q))
    X = MODELS[name][1][0]
    assert_array_equal(again.predict(X), q.predict(X))


def test_model_bytes(fitted):
    for name in MODELS:
        model, _, _ = fitted(name)
        assert model.model_bytes_ == quantize(model).n_bytes, name


def test_models_without_a_fixed_point_form_have_no_bytes():
    X, y = uneven(60)
    model = ReducedSVC(5, kernel="poly").fit(X, y)
    assert not hasattr(model, "model_bytes_")
    others = re.escape(str(sorted(kernel_table.names(fixed_point=True))))
    with pytest.raises(ValueError, match=rf"kernel 'poly' has no fixed-point form; {others}"):
        quantize(model)
    K = X @ X.T
    assert not hasattr(ReducedSVC(5, kernel="precomputed").fit(K, y), "model_bytes_")
    assert not hasattr(ReducedSVC(5), "model_bytes_")


def test_compressed_machines_count_votes_as_their_original():
    """Ties of votes go to the first class in `SVC`, and so they do on a device."""
    X, y = load_digits(return_X_y=True)
    small = compress(SVC(C=0.05).fit(X[::5] / 16, y[::5]), 40)
    q = quantize(small)
    sums = q.accumulators(X / 16)
    tied = q.classes[Votes(pairs=True).winners(sums, 10)] != q.predict(X / 16)
    assert tied.any()
    assert np.mean(q.predict(X / 16)[tied] == small.predict(X / 16)[tied]) > 0.8


# --- its parts ------------------------------------------------------------------------------------------------------


def test_powers_of_one_half():
    for unit in (0, 7, 16, 20, 24):
        D = np.linspace(0, 15.9, 4001)
        distance = np.rint(D * 2.0**unit).astype(np.int64)
        exact = 2.0 ** -(distance * 2.0**-unit)
        assert np.abs(power_of_half(distance, unit) / 32768 - exact).max() < 5e-5


def test_gains_in_two_bytes():
    gains = np.exp(np.random.default_rng(0).uniform(-20, 20, 500))
    short = two_byte_gains(gains)
    assert np.abs(short / gains - 1).max() <= 2.0**-8
    assert_array_equal(two_byte_gains(short), short)
    mantissa = np.frexp(short)[0] * 2**8
    assert_array_equal(mantissa, np.rint(mantissa))


def test_half_a_float():
    values = np.random.default_rng(0).normal(size=100).astype(np.float32) * 1000
    short = upper_half(values)
    assert not (short.view(np.uint32) & 0xFFFF).any()
    assert np.abs(short / values - 1).max() <= 2.0**-8


@pytest.mark.parametrize("power", [1, 2])
def test_rows_that_are_cut_off_are_out_of_reach(power):
    """A row beyond 16 bits has kernel values of zero, as it should."""
    rng = np.random.default_rng(1)
    for spread in (0.01, 1.0, 50.0):
        Z = rng.normal(scale=spread, size=(20, 4))
        grid = make_grid(np.full(4, 1.3), Z, power)
        cut = 32767 * 2.0**-grid.bits
        reached = 127 * 2.0 ** (grid.shift.max() - grid.bits)
        assert (cut - reached) ** power >= 15.9


def test_inputs_cost_as_little_as_they_can():
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(10, 6))
    same, own = np.full(6, 0.5), np.array([0.5, 0.1, 2.0, 0.3, 0.2, 1.0])
    assert make_grid(same, Z, 2).n_bytes == 8  # one gain, one offset
    assert make_grid(own, Z, 2).n_bytes == 2 * 6 + 4
    assert make_grid(own, Z, 2, folded=True).n_bytes == 4 * 6
    assert make_grid(np.where(np.arange(6) < 3, own, 0.0), Z, 2).n_bytes == 2 * 3 + 1 + 4  # a bit for each input
    far = make_grid(own, Z + 1e5, 2)  # an offset of 16 bits would not tell the vectors apart
    assert far.n_bytes == 6 * 6
    assert_allclose(far.values(far.rounded(Z + 1e5)), Z + 1e5, atol=0.1)


def test_vectors_on_the_grid_stay():
    rng = np.random.default_rng(3)
    for weights in (np.full(4, 0.7), rng.uniform(0.1, 3, 4)):
        grid = make_grid(weights, rng.normal(size=(30, 4)), 2)
        q = rng.integers(-127, 128, size=(30, 4))
        q[0] = 127
        values = grid.values(q)
        again = make_grid(grid.weights, values, 2)
        assert_array_equal(again.rounded(values), q)
        assert_allclose(again.weights, grid.weights, rtol=1e-6)


def test_coefficients_in_16_bits():
    coef = np.array([[1e-3, -5e-4], [100.0, 3.0], [0.0, 0.0]])
    bias = np.array([0.5, -700.0, 1.0])
    numbers, exponent, whole = coefficients_in_16_bits(coef, bias, 15)
    unit = 2.0 ** -exponent.astype(float)
    assert (np.abs(numbers * unit[:, None] - coef) <= 0.5 * unit[:, None]).all()
    assert_allclose(whole * unit * 2.0**-15, bias, atol=unit.max() * 2.0**-15)
    assert np.ptp(exponent) <= 20


def test_votes_are_the_models():
    rng = np.random.default_rng(4)
    for n_classes in (3, 4, 6):
        pairs = rng.integers(-3, 4, size=(400, n_classes * (n_classes - 1) // 2)).astype(float)
        for by_value, zero in itertools.product([False, True], repeat=2):
            votes = Votes(True, by_value, zero)
            expected = votes.scores(pairs, n_classes).argmax(axis=1)
            assert_array_equal(votes.winners(pairs, n_classes), expected)
            assert_array_equal(votes.winners(pairs.astype(np.int64), n_classes), expected)


def test_sums_beyond_float64_are_compared():
    big = 2**60
    pairs = np.array([[big + 1, -big, big]])  # one vote each; summed values 1, 0 - 1 + ..., exact in integers only
    sums = [big + 1 - big, -(big + 1) + big, 0]
    assert Votes(pairs=True).winners(pairs, 3)[0] == int(np.argmax(sums))


# --- rounding -------------------------------------------------------------------------------------------------------


def best_distance(Z, moved, coef):
    """|f - g|^2 for the nearest g over moved vectors, by the definition."""
    k = lambda A, B: 2.0 ** -((A[:, None] - B) ** 2).sum(axis=2)  # noqa: E731
    beta = np.linalg.solve(k(moved, moved) + 1e-6 * np.eye(len(moved)), k(moved, Z) @ coef.T)
    return (
        np.trace(coef @ k(Z, Z) @ coef.T)
        - 2 * np.trace(coef @ k(Z, moved) @ beta)
        + np.trace(beta.T @ k(moved, moved) @ beta)
    )


def test_what_small_moves_cost():
    """H is the curvature of the distance to the nearest function."""
    rng = np.random.default_rng(5)
    Z, coef = rng.normal(size=(4, 3)), rng.normal(size=(2, 4))
    H = remaining_curvature(Z, np.arange(4), coef)
    for _ in range(5):
        v = 1e-3 * rng.normal(size=(4, 3))
        assert best_distance(Z, Z + v, coef) == pytest.approx(v.ravel() @ H @ v.ravel(), rel=0.05, abs=1e-10)


def test_roundings_make_up_for_each_other():
    """The function over the bytes is never farther than with each number rounded by itself, and mostly far nearer."""
    shares = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        spans = np.full(5, 1 / 16)
        steps, coef = 0.4 * rng.normal(size=(30, 5)) / spans, 5 * rng.normal(size=(1, 30))
        q = round_vectors(steps, spans, coef, 127)
        assert_array_equal(q, np.rint(q))
        assert_array_equal(round_vectors(q, spans, coef, 127), q)
        Z, plain = steps * spans, np.rint(steps) * spans
        shares.append(best_distance(Z, q * spans, coef) / best_distance(Z, plain, coef))
        assert squared_distance(Z, q * spans, coef) <= squared_distance(Z, plain, coef)
    assert max(shares) <= 1 + 1e-6
    assert np.mean(shares) < 0.7


# --- with data, and behind a scaler ---------------------------------------------------------------------------------


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_a_refit_solves_the_models_problem(multi_class):
    """With the model's own rows: the coefficients of a fit over the rounded vectors."""
    X, y = three_classes(150)
    model = quick(multi_class=multi_class, class_weight="balanced").fit(X, y)
    q = quantize(model, X, y)
    rounded = clone(model).set_params(basis=bases.Given(q.grid.values(q.vectors)), kernel=model.kernel_).fit(X, y)
    assert_allclose(q.decision(X), rounded._scores(X), atol=5e-3)


def test_what_a_refit_is_given_is_checked():
    X, y = three_classes(60)
    model = quick().fit(X, y)
    with pytest.raises(ValueError, match="X and y must be given together"):
        quantize(model, X)
    with pytest.raises(ValueError, match="labels that the model does not know"):
        quantize(model, X, np.where(y == y[0], 77, y))
    with pytest.raises(ValueError, match="no row of class"):
        quantize(model, X[y != y[0]], y[y != y[0]])
    with pytest.raises(ValueError, match="not a fitted estimator"):
        quantize(quick())
    with pytest.raises(ValueError, match="inconsistent numbers"):
        quantize(model, X, y[:-1])
    with pytest.raises(ValueError, match=f"{2 * X.shape[1]} features, the model takes {X.shape[1]}"):
        quantize(model, np.hstack([X, X]), y)


@pytest.mark.parametrize("kind", [LpSVC, LeastSquaresSVC, RelevanceVectorClassifier], ids=lambda kind: kind.__name__)
def test_models_that_are_only_projected(kind):
    """Their problem is not one over given vectors: with labels that is said, without they are rounded as others."""
    X, y = blobs(80)
    model = kind().fit(X, y)
    assert np.mean(quantize(model).predict(X) == model.predict(X)) > 0.95
    with pytest.raises(ValueError, match=f"{kind.__name__} has no problem of its own .* leave out X and y"):
        quantize(model, X, y)


def test_names_of_columns_are_no_reason_to_warn():
    X, y = three_classes(60)
    frame = pd.DataFrame(X, columns=[f"input {k}" for k in range(X.shape[1])])
    pipe = make_pipeline(StandardScaler(), quick()).fit(frame, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.mean(quantize(pipe).predict(frame) == pipe.predict(frame)) > 0.95


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_rows_have_the_models_inputs(kernel):
    """Too many are not cut off silently."""
    X, y = three_classes(60)
    q = quantize(quick(kernel=kernel).fit(X, y))
    for rows in (np.hstack([X, X]), X[:, :1], sp.csr_matrix(np.hstack([X, X]))):
        with pytest.raises(ValueError, match=f"{rows.shape[1]} features, the model takes {X.shape[1]}"):
            q.predict(rows)


@pytest.mark.parametrize(
    "model",
    [BudgetSVC(), LpSVC(), RelevanceVectorClassifier(), CompressedOutlierDetector(n_vectors=5)],
    ids=lambda model: type(model).__name__,
)
def test_models_without_such_a_problem_are_not_refitted(model):
    X, y = uneven(60)
    model = clone(model).fit(X, y)
    with pytest.raises(ValueError, match="has no problem of its own over vectors that are given: leave out X and y"):
        quantize(model, X, y)


def test_a_compressed_machine_is_refitted_by_its_own_problem():
    """The hinge with the original's C and class weights, as it is over the vectors before rounding."""
    X, y = three_classes(150)
    small = compress(SVC(C=3.0, class_weight={y[0]: 2.0}).fit(X, y), 12, X, y, method="refit")
    assert_allclose(quantize(small, X, y).decision(X), small._scores(X), atol=0.05)


@pytest.mark.parametrize("scales", ["fixed", "learned"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler((-1, 1))], ids=["standard", "minmax"])
def test_scalers_are_folded_in(kernel, scaler, scales):
    """Rows come in any units: the answers are those of the pipeline."""
    X, y = uneven()
    X = X * [1e-4, 1.0, 30.0, 1e5, 0.1] + [0.0, 5.0, -100.0, 2e5, 0.3]
    pipe = make_pipeline(clone(scaler), quick(kernel=kernel, scales=scales, C=30.0)).fit(X, y)
    q = quantize(pipe)
    raw = pipe.decision_function(X)
    assert np.abs(q.decision(X) - raw).mean() <= 0.02 * np.abs(raw).mean()
    if kernel == "rbf":
        assert q.grid.n_bytes <= 4 * X.shape[1]
    refit = quantize(pipe, X, y)
    assert np.mean(refit.predict(X) == pipe.predict(X)) > 0.97


def test_other_steps_cannot_be_folded_in():
    X, y = uneven()
    for step in (PCA(5), PCA(2), PolynomialFeatures()):
        with pytest.raises(ValueError, match="must scale each input by itself"):
            quantize(make_pipeline(step, quick()).fit(X, y))


def test_sparse_rows():
    X, y = uneven()
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    model = quick().fit(sp.csr_array(X), y)
    q = quantize(model)
    assert_array_equal(q.predict(sp.csr_array(X)), q.predict(X))


def test_vectors_that_lie_close_together_are_moved_on():
    """Two vectors a step apart, with coefficients that cancel: rounding one by one loses what they say together."""
    rng = np.random.default_rng(3)
    spans = np.array([0.02, 0.02])
    steps = rng.uniform(-60, 60, size=(4, 2))
    steps = np.vstack([steps, steps + rng.uniform(-2, 2, size=(4, 2))])
    coef = np.concatenate([np.full(4, 50.0), np.full(4, -50.0)])[None]
    plain = round_vectors(steps, spans, coef, 127)
    better = descend_coordinates(plain, steps, spans, coef, 127)
    far, near = (squared_distance(steps * spans, q * spans, coef) for q in (plain, better))
    exact = squared_distance(steps * spans, steps * spans, coef)
    assert near - exact < 0.7 * (far - exact)
    assert_array_equal(better, np.rint(better))
    for place in np.ndindex(better.shape):
        for step in (-1, 1):
            other = better.copy()
            other[place] += step
            assert squared_distance(steps * spans, other * spans, coef) >= near - 1e-8 * abs(near)
    assert_array_equal(descend_coordinates(plain, plain, spans, coef, 127), plain)


# --- SlimSVC(max_bytes) ---------------------------------------------------------------------------------------------


def budgeted(max_bytes, **params):
    params = {"C": 3.0, "gamma": 0.3, **params}
    return SlimSVC(basis=bases.Learned(iterations=15), max_bytes=max_bytes, **params)


@pytest.mark.parametrize("max_bytes", [40, 100, 300])
def test_a_budget_is_kept_and_used(max_bytes):
    X, y = uneven(300)
    model = budgeted(max_bytes).fit(X, y)
    assert max_bytes - 2 * (X.shape[1] + 2) < model.model_bytes_ <= max_bytes
    assert model.model_bytes_ == quantize(model).n_bytes
    assert (model.duality_gap_ <= model.tol).all()


def test_what_python_scores_is_what_the_device_gets():
    """Vectors are bytes already: only coefficients and rows are rounded when the model leaves."""
    X, y = uneven(300)
    for scales in ("fixed", "learned"):
        model = budgeted(200, scales=scales).fit(X, y)
        q = quantize(model)
        assert_allclose(bases.dense(model.vectors_), q.grid.values(q.vectors), atol=1e-6)
        assert_allclose(q.decision(X), model.decision_function(X), atol=0.01)


def test_inputs_that_do_not_count_are_given_up():
    """Three of 40 inputs matter: 150 bytes are one vector of all inputs, and many of these."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(1000, 40))
    y = (X[:, 3] * np.abs(X[:, 3]) + X[:, 17] ** 2 - 2 * (X[:, 25] > 0) > 0).astype(int)
    model = SlimSVC(basis=bases.Learned(iterations=60), C=1.0, gamma=1 / 40, max_bytes=150).fit(X[:600], y[:600])
    used = np.flatnonzero(model.kernel_.scales)
    assert {3, 17, 25} <= set(used)
    assert len(used) <= 20
    assert not model.vectors_[:, np.setdiff1d(np.arange(40), used)].any()
    assert model.score(X[600:], y[600:]) > 0.9
    assert model.model_bytes_ <= 150
    assert quantize(model).vectors.shape == (model.n_vectors_, len(used))


def test_a_poor_choice_of_inputs_on_all_rows_is_noticed(monkeypatch):
    """On parts of the rows the right inputs are kept, on all of them the wrong ones: then the plan is not kept."""
    from slimsvm.training import byte_budget

    rng = np.random.default_rng(7)
    X = rng.normal(size=(600, 20))
    y = (X[:, 3] + X[:, 17] ** 2 > 1).astype(int)
    right = byte_budget.most_relevant_inputs

    def relevant(model, dataset, used, count):
        return right(model, dataset, used, count) if dataset.size < 600 else np.setdiff1d(used, [3, 17])[:count]

    monkeypatch.setattr(byte_budget, "most_relevant_inputs", relevant)
    model = SlimSVC(basis=bases.Learned(iterations=40), C=1.0, gamma=1 / 20, max_bytes=150).fit(X, y)
    assert model.kernel_.scales[3] > 0
    assert model.kernel_.scales[17] > 0
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("classes", [2, 3])
def test_a_budget_below_one_vector_of_all_inputs(classes):
    """One of 60 inputs would take more: the few that count are kept."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 60))
    y = np.digitize(X[:, 7] + (classes == 2) * X[:, 30] ** 2, [0.7] if classes == 2 else [-0.5, 0.5])
    model = SlimSVC(basis=bases.Learned(iterations=40), C=1.0, gamma=1 / 60, max_bytes=70).fit(X[:400], y[:400])
    assert model.model_bytes_ == quantize(model).n_bytes <= 70
    assert model.kernel_.scales[7] > 0
    assert np.count_nonzero(model.kernel_.scales) <= 30
    assert model.score(X[400:], y[400:]) > 0.8


def few_of(inputs, n, seed=0):
    """Two numbers that add up to the targets, but for noise: each is one input in 100."""
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(n, inputs)), rng.normal(size=(n, 2))
    count = max(2, inputs // 50)
    X[:, :count] = np.tile(Z, count // 2) + 0.1 * X[:, :count]
    return X, Z.sum(axis=1) + 0.3 * rng.normal(size=n)


def header_bytes(model):
    """Of the tables of a C header, but for that of 2^-x."""
    tables = to_c(model, dtype="int8").report.tables
    return sum(tables.values()) - tables["halves"]


@pytest.mark.parametrize(("inputs", "max_bytes"), [(100, 40), (100, 130), (2000, 600)])
def test_more_inputs_than_rows(inputs, max_bytes):
    """A vector of all inputs takes more, or is all that fits: those that count are kept, though rows are few."""
    X, f = few_of(inputs, 50)
    T, g = few_of(inputs, 500, seed=1)
    settings = {"basis": bases.Learned(iterations=30), "C": 1.0, "gamma": 1 / inputs, "max_bytes": max_bytes}
    model = SlimSVC(**settings).fit(X, f > 0)
    assert header_bytes(model) <= model.model_bytes_ <= max_bytes
    assert model.kernel_.scales[: max(2, inputs // 50)].any()
    assert np.count_nonzero(model.kernel_.scales) <= inputs / 4
    assert model.score(T, g > 0) > 0.6
    if max_bytes == 40:
        values = SlimSVR(**settings).fit(X, f)
        assert header_bytes(values) <= values.model_bytes_ <= max_bytes
        assert values.score(T, g) > 0.5


def test_vectors_far_out_stay_within_the_budget():
    """Offsets take bytes, too: 36 are enough for a vector of four inputs around zero, not for one far from it."""
    X, f = few_of(40, 60)
    few = {"basis": bases.Learned(iterations=10), "C": 1.0, "gamma": 1 / 40, "scales": "learned"}
    assert SlimSVC(max_bytes=30, **few).fit(X, f > 0).model_bytes_ <= 30
    with pytest.raises(ValueError, match="one vector of 4 inputs for 2 classes takes 32 bytes with learned scales"):
        SlimSVC(max_bytes=30, **few).fit(X + 50, f > 0)
    assert SlimSVC(max_bytes=32, **few).fit(X + 50, f > 0).model_bytes_ <= 32


def test_less_than_the_budget_is_tried_too(monkeypatch):
    """Where a quarter of the bytes does better on rows held out, no more is spent; given settings need no trial."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 12))
    y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)
    tried = []

    def error(race, plan):
        tried.append(race.budget.max_bytes)
        return 0.1 if race.budget.max_bytes == 512 else 0.2

    monkeypatch.setattr("slimsvm.training.byte_budget.ByteBudgetSearch.error", error)
    monkeypatch.setattr("slimsvm.training.byte_budget.ByteBudgetSearch.fewer_inputs", lambda race, plan, space: plan)
    model = budgeted(2048, C="search", scales="fixed").fit(X, y)
    assert set(tried) == {512, 2048}
    assert 490 < model.model_bytes_ <= 512
    tried.clear()
    assert budgeted(2048, scales="fixed").fit(X, y).model_bytes_ > 512
    assert set(tried) <= {2048}


def test_several_classes_have_one_output_each_where_bytes_are_few():
    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16, y[:600]
    few = SlimSVC(basis="kmeans", C=10.0, gamma=0.3, scales="fixed", max_bytes=1500).fit(X, y)
    assert few.multi_class_ == "ovr"
    assert few.vector_coef_.shape[0] == 10
    assert few.model_bytes_ <= 1500
    assert SlimSVC(basis="kmeans", C=10.0, gamma=0.3, scales="fixed").fit(X, y).multi_class_ == "ovo"
    q = quantize(few)
    assert np.mean(q.predict(X) == few.predict(X)) > 0.99


def test_few_rows_have_few_vectors():
    X, y = make_moons(60, noise=0.2, random_state=0)
    assert budgeted(8192).fit(X, y).n_vectors_ <= 15


def test_copies_of_rows_pay_for_vectors():
    """Twelve different rows, fifty times each: one vector for four rows would be two or three."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(12, 3))
    X = np.repeat(rows, 50, axis=0)
    y = (rng.random(600) < np.repeat(rng.random(12), 50)).astype(int)
    model = SlimSVC(basis=bases.Learned(iterations=20), C=10.0, gamma=1.0, scales="fixed", max_bytes=300).fit(X, y)
    assert model.n_vectors_ > 6


def test_n_vectors_is_not_used():
    X, y = uneven(200)
    a, b = (budgeted(200).set_params(n_vectors=n).fit(X, y) for n in (1, 50))
    assert a.n_vectors_ == b.n_vectors_ > 10
    assert_array_equal(a.vectors_, b.vectors_)


def test_copies_order_and_seed():
    """The same rows give the same model."""
    X, y = uneven(120)
    copies = 1 + np.arange(120) % 2
    model = budgeted(120).fit(X, y, sample_weight=copies)
    order = np.random.default_rng(0).permutation(int(copies.sum()))
    again = budgeted(120).fit(np.repeat(X, copies, axis=0)[order], np.repeat(y, copies)[order])
    assert_allclose(again.vectors_, model.vectors_, atol=1e-7)
    assert_allclose(again.vector_coef_, model.vector_coef_, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"max_bytes": 0}, "max_bytes=0 must be an integer of at least 1"),
        ({"max_bytes": 2.5}, "max_bytes=2.5 must be an integer"),
        (
            {"max_bytes": 12, "scales": "fixed"},
            "max_bytes=12 is too little: one vector of 5 inputs for 2 classes takes 20 bytes",
        ),
        (
            {"max_bytes": 12, "scales": "fixed", "inputs": 40},
            "one vector of 40 inputs for 2 classes takes 55 bytes. Raise max_bytes, or keep fewer inputs, or use "
            "scales='search' and basis='learned', which leave out the inputs that count least",
        ),
        (
            {"max_bytes": 20, "scales": "learned"},
            "one vector of 4 inputs for 2 classes takes 24 bytes with learned scales",
        ),
        (
            {"max_bytes": 12, "kernel": "linear"},
            "one vector of 5 inputs for 2 classes takes 23 bytes. Raise max_bytes, or keep fewer inputs$",
        ),
        ({"kernel": "poly"}, "kernel 'poly' has no fixed-point form"),
        ({"kernel": "precomputed", "basis": "random"}, "no fixed-point form"),
        ({"basis": np.zeros((3, 5))}, "they are given as an array"),
        ({"basis": bases.Learned(init=np.zeros((3, 5)))}, "they are given as an array"),
    ],
)
def test_budgets_that_cannot_be(params, words):
    params = dict(params)
    X, y = uneven(40, params.pop("inputs", 5))
    X = X @ X.T if params.get("kernel") == "precomputed" else X
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        SlimSVC(**{"max_bytes": 500, "C": 1.0, "gamma": 0.2, **params}).fit(X, y)


def test_more_bytes_are_more_accurate():
    X, y = make_classification(800, 8, n_informative=6, n_clusters_per_class=4, class_sep=1.5, random_state=3)
    X = StandardScaler().fit_transform(X)
    small, large = (
        quantize(SlimSVC(C=10.0, gamma=0.125, scales="fixed", max_bytes=b).fit(X[:500], y[:500])) for b in (60, 600)
    )
    errors = [np.mean(q.predict(X[500:]) != y[500:]) for q in (small, large)]
    assert errors[1] < errors[0]


def test_progress_is_shown(capsys):
    X, y = uneven(120)
    budgeted(150, scales="search").set_params(verbose=True).fit(X, y)
    assert "bytes" in capsys.readouterr().err


def test_linear_models_take_a_budget():
    X, y = uneven(100)
    assert budgeted(30, kernel="linear", scales="fixed").fit(X, y).model_bytes_ <= 30


def test_vectors_of_very_many_inputs():
    """A table of all pairs of their inputs would take memory and minutes."""
    rng = np.random.default_rng(0)
    steps, spans = rng.normal(0, 40, (3, 20_000)), np.full(20_000, 1e-4)
    assert_array_equal(round_vectors(steps, spans, rng.normal(size=(1, 3)), 127), np.clip(np.rint(steps), -127, 127))
