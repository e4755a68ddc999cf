"""SlimSVC, EmpiricalSVC, ReducedSVC: the reference's machine over the vectors they keep, and what users rely on."""

from __future__ import annotations

import pickle
import sys
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import reference
import reference_bases as slow
from problems import KERNEL_CASES, blobs, cosine_plus_one, three_classes
from slimsvm import AnyNormSVC, EmpiricalSVC, ReducedSVC, SlimSVC, bases, features, kernels, learning, losses, search
from test_process import SANITIZED, run

pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")

SLACKS = {"l1": "Hinge", "l2": "SquaredHinge"}
BASES = ["learned", "forward", "kmeans", "random", "cholesky"]
CONTAINERS = {"dense": np.asarray, "sparse": sp.csr_array}
containers = pytest.mark.parametrize("container", CONTAINERS)
every_basis = pytest.mark.parametrize("basis", BASES)


def slim(n_vectors=6, basis="learned", **params):
    """Without search, and with few iterations."""
    params = {"C": 2.0, "gamma": 0.4, "scales": "fixed", "learning_iter": 10, **params}
    return SlimSVC(n_vectors, basis, **params)


# Every estimator and way to find vectors; few of them, whatever the data.
MODELS = {f"slim {basis}": slim(basis=basis) for basis in BASES}
MODELS |= {f"slim from {init}": slim(init=init) for init in ("forward", "random", "cholesky")}
MODELS |= {
    "slim l1": slim(slack="l1"),
    "slim hinge itself": slim(slack="l1", smoothing=0, learning_iter=4),
    "slim scales": slim(scales="learned"),
    "slim per class": slim(vectors="per_class"),
    "slim identity": slim(regularizer="identity"),
    "slim ovr": slim(multi_class="ovr"),
    "empirical order": EmpiricalSVC(0.2, C=2.0, gamma=0.4),
    "empirical pivoted": EmpiricalSVC(0.2, "pivoted", C=2.0, gamma=0.4),
    "empirical identity l2": EmpiricalSVC(0.2, regularizer="identity", slack="l2", C=2.0, gamma=0.4),
    "reduced": ReducedSVC(6, C=2.0, gamma=0.4),
    "reduced kernel l1": ReducedSVC(6, regularizer="kernel", slack="l1", C=2.0, gamma=0.4),
}
every_model = pytest.mark.parametrize("model", MODELS)


def make(name):
    return clone(MODELS[name])


def textbook(kernel, X, Z):
    """k(X, Z) of a fitted model's kernel, by the reference."""
    X, Z = bases.dense(X), bases.dense(Z)
    if isinstance(kernel, kernels.Scaled):
        return textbook(kernel.kernel, X * kernel.scales, Z * kernel.scales)
    if isinstance(kernel, kernels.Function):
        return kernel.function(X, Z)
    return reference.kernel_matrix(kernel.name, X, Z, **kernel.get_params())


def scores(model, X):
    """f = vector_coef_ @ k(vectors_, x) + intercept_, as documented."""
    return textbook(model.kernel_, X, model.vectors_) @ model.vector_coef_.T + model.intercept_


def fitted_or_refused(model, X, y):
    """The fitted model, or what the error says."""
    try:
        return model.fit(X, y), None
    except ValueError as error:
        return None, str(error)


# --- The machine over given vectors --------------------------------------------------------------------------


def biased_loss(loss, f, y, C, b):
    return slow.loss_value(loss, f + b, y, C)


def check_machine(model, X, y, C, slack, regularizer, scheme, gap=None, weight=None):
    """objective_, duality_gap_, vector_coef_ and intercept_ against the conic reference, for every output."""
    codes = np.unique(y, return_inverse=True)[1]
    K, Kz = textbook(model.kernel_, X, model.vectors_), textbook(model.kernel_, model.vectors_, model.vectors_)
    R = Kz if regularizer == "kernel" else np.eye(len(Kz))
    weight = np.ones(len(y)) if weight is None else weight
    machines = slow.outputs(codes, scheme)
    assert model.vector_coef_.shape == (len(machines), len(Kz))
    tol = model.tol if gap is None else gap
    for o, (labels, rows) in enumerate(machines):
        cost = C * weight[rows]
        best = slow.machine(K[rows], R, labels, cost, SLACKS[slack])
        beta, b = model.vector_coef_[o], model.intercept_[o]
        f = K[rows] @ beta + b
        value = 0.5 * beta @ R @ beta + slow.loss_value(SLACKS[slack], f, labels, cost)
        assert model.objective_[o] == pytest.approx(value, rel=1e-8)
        assert model.objective_[o] == pytest.approx(best.value, rel=tol + 1e-7)
        assert model.duality_gap_[o] <= tol
        # |f - f*|^2 / 2 <= value - value* in the norm of R
        shift = beta - best.coef
        assert 0.5 * shift @ R @ shift <= (tol + 2e-7) * value
        loss_of_bias = partial(biased_loss, SLACKS[slack], f - b, labels, cost)
        low, high, _ = reference.best_bias(loss_of_bias, labels - f + b)
        assert low - 2e-3 <= b <= high + 2e-3


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("regularizer", ["kernel", "identity"])
@pytest.mark.parametrize("slack", SLACKS)
def test_given_vectors(slack, regularizer, classes, scheme):
    X, y = three_classes(75, seed=1)
    X, y = X[y < classes], y[y < classes]
    Z = X[::9] + 0.1
    model = SlimSVC(
        basis=Z, slack=slack, regularizer=regularizer, multi_class=scheme, C=5.0, gamma=0.7, scales="fixed", tol=1e-8
    ).fit(X, y)
    np.testing.assert_array_equal(model.vectors_, Z)
    assert not hasattr(model, "support_")
    check_machine(model, X, y, 5.0, slack, regularizer, scheme)


@containers
@pytest.mark.parametrize(
    "case", [case for case in KERNEL_CASES if case.name != "precomputed"], ids=lambda case: case.name
)
def test_given_vectors_with_every_kernel(case, container):
    X, y = blobs(60, seed=1, density=0.7)
    params = {"gamma": "scale", **case.params}
    model = SlimSVC(basis=X[:7], C=5.0, scales="fixed", tol=1e-8, **params).fit(CONTAINERS[container](X), y)
    check_machine(model, X, y, 5.0, "l2", "kernel", "ovo")
    np.testing.assert_allclose(model.decision_function(CONTAINERS[container](X)), scores(model, X)[:, 0], atol=1e-9)


@pytest.mark.parametrize("kind", ["sparse", "list", "frame", "float32", "more than n_vectors", "duplicates"])
def test_given_vectors_in_any_container(kind):
    """The problem is solved at exactly these vectors; repeated ones change nothing but the list."""
    X, y = blobs(60, seed=1)
    Z = X[:5]
    given = {
        "sparse": sp.csr_array(Z),
        "list": Z.tolist(),
        "frame": pd.DataFrame(Z),
        "float32": Z.astype(np.float32),
        "more than n_vectors": Z,
        "duplicates": np.vstack([Z, Z[:2]]),
    }[kind]
    plain = slim(5, Z, tol=1e-8).fit(X, y)
    model = slim(3 if kind == "more than n_vectors" else 20, given, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-4)
    np.testing.assert_allclose(model.objective_, plain.objective_, rtol=1e-7)


def test_a_model_does_not_change_with_the_array_it_was_given():
    X, y = blobs(60)
    rows, Z = X.copy(), X[:5].copy()
    models = [slim(5, Z).fit(rows, y), slim(5, init=Z, learning_iter=0).fit(rows, y), slim(5, "forward").fit(rows, y)]
    before = [model.decision_function(X) for model in models]
    Z += 1
    rows += 1
    for model, expected in zip(models, before, strict=True):
        np.testing.assert_array_equal(model.decision_function(X), expected)


def test_given_vectors_with_several_classes_are_kept_once():
    X, y = three_classes()
    for vectors in ("shared", "per_class"):
        assert slim(5, X[:5], vectors=vectors).fit(X, y).n_vectors_ <= 5


def test_a_given_start_keeps_its_limit():
    """n_vectors is the most that the model keeps, whatever the start has."""
    X, y = blobs(60)
    assert slim(5, init=X[:5]).fit(X, y).n_vectors_ == 5
    model, message = fitted_or_refused(slim(3, init=X[:5]), X, y)
    assert model.n_vectors_ <= 3 if model else "n_vectors" in message


# --- Fitted attributes ---------------------------------------------------------------------------------------


@containers
@pytest.mark.parametrize("classes", [2, 3])
@every_model
def test_scores_are_the_documented_expansion(model, classes, container):
    X, y = three_classes(60, seed=2)
    X, y = X[y < classes], y[y < classes]
    model = make(model).set_params(decision_function_shape="ovo").fit(CONTAINERS[container](X), y)
    expected = scores(model, X)
    actual = model.decision_function(CONTAINERS[container](X))
    np.testing.assert_allclose(actual.reshape(expected.shape), expected, atol=1e-9 * np.abs(model.vector_coef_).sum())
    outputs = 1 if classes == 2 else 3
    assert model.vectors_.shape == (model.n_vectors_, 2)
    assert model.vector_coef_.shape == (outputs, model.n_vectors_)
    for name in ("intercept_", "objective_", "duality_gap_", "n_iter_"):
        assert getattr(model, name).shape == (outputs,)
    assert (model.n_iter_ >= 1).all()
    assert (model.duality_gap_ <= model.tol).all()
    if hasattr(model, "support_"):
        np.testing.assert_array_equal(bases.dense(model.vectors_), X[model.support_])
    assert model.score(X, y) > 0.7


@every_model
def test_the_certificate_is_the_reference_at_the_vectors_kept(model):
    X, y = blobs(60, d=2, seed=3)
    name, model = model, make(model).fit(X, y)
    slack, regularizer = model.slack, model.regularizer
    K, Kz = textbook(model.kernel_, X, model.vectors_), textbook(model.kernel_, model.vectors_, model.vectors_)
    epsilon = 1e-6 if getattr(model, "basis", "") == "learned" else 0.0
    R = Kz + epsilon * np.eye(len(Kz)) if regularizer == "kernel" else np.eye(len(Kz))
    best = slow.machine(K, R, y, 2.0, SLACKS[slack])
    assert model.objective_[0] == pytest.approx(best.value, rel=2e-6), name
    f = K @ model.vector_coef_[0] + model.intercept_[0]
    value = 0.5 * model.vector_coef_[0] @ R @ model.vector_coef_[0] + slow.loss_value(SLACKS[slack], f, y, 2.0)
    assert model.objective_[0] == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("n_vectors", [1, 2, 4, 7])
@pytest.mark.parametrize("vectors", ["shared", "per_class"])
@every_basis
def test_never_more_vectors_than_asked_for(basis, vectors, n_vectors):
    X, y = three_classes(75, seed=3)
    model = slim(n_vectors, basis, vectors=vectors)
    if vectors == "per_class" and n_vectors < 3:
        with pytest.raises(ValueError, match=r"n_vectors=.*3 classes"):
            model.fit(X, y)
        return
    model.fit(X, y)
    assert 1 <= model.n_vectors_ <= n_vectors
    assert model.n_vectors_ == n_vectors or basis == "cholesky"
    assert model.decision_function(X).shape == (75, 3)


def test_a_refit_forgets_the_fit_before():
    X, y = blobs(60)
    model = slim(basis="forward").fit(X, y)
    assert hasattr(model, "support_")
    model.set_params(basis="kmeans").fit(X[:, :2], y)
    assert not hasattr(model, "support_")
    assert model.n_features_in_ == 2


@every_model
def test_same_seed_same_model(model):
    rows, y = three_classes(60, seed=4)
    model = make(model).fit(rows, y)
    before = {k: v for k, v in vars(model).items() if isinstance(v, np.ndarray)}
    for other in (clone(model).fit(rows, y), model.fit(rows, y)):
        for name, value in before.items():
            np.testing.assert_array_equal(getattr(other, name), value, err_msg=name)


def test_another_seed_another_model():
    X, y = blobs(80)
    for basis in ("random", "learned"):
        one, other = (slim(basis=basis, init="random", random_state=seed).fit(X, y).vectors_ for seed in (0, 1))
        assert not np.array_equal(one, other)
    one, other = (ReducedSVC(5, random_state=seed).fit(X, y).vectors_ for seed in (0, 1))
    assert not np.array_equal(one, other)
    state = np.random.RandomState(3)
    one, other = (ReducedSVC(5, random_state=state).fit(X, y).vectors_ for _ in range(2))
    assert not np.array_equal(one, other)


@every_model
def test_global_random_state_is_left_alone(model):
    X, y = blobs(60)
    before = pickle.dumps(np.random.get_state())  # noqa: NPY002
    make(model).fit(X, y)
    assert pickle.dumps(np.random.get_state()) == before  # noqa: NPY002


@every_model
def test_the_input_is_left_as_it_is(model):
    X, y = blobs(60)
    rows, labels, weight = X.copy(), y.copy(), np.ones(60)
    for array in (rows, labels, weight):
        array.setflags(write=False)
    make(model).fit(rows, labels, weight).predict(rows)


# --- Unkind data ---------------------------------------------------------------------------------------------


def unkind(kind):
    X, y = blobs(40, d=3, seed=5)
    return {
        "fewer rows than vectors": (X[:4], np.array([0, 1, 0, 1])),
        "two rows": (X[:2], np.array([0, 1])),
        "two equal rows": (np.ones((2, 3)), np.array([0, 1])),
        "duplicates only": (np.repeat(X[:3], 12, axis=0), np.repeat([0, 1, 1], 12)),
        "equal rows of both classes": (np.repeat(X[:3], 12, axis=0), np.arange(36) % 2),
        "one row in one class": (X, (np.arange(40) == 7).astype(int)),
        "two rows in one class": (X, (np.arange(40) % 20 == 7).astype(int)),
        "tiny third class": (X, np.where(np.arange(40) == 3, 2, np.arange(40) % 2)),
        "constant columns": (np.c_[X[:, :1], np.ones((40, 2))], y),
        "all constant": (np.full((40, 3), 2.0), y),
        "zeros": (np.zeros((40, 3)), y),
        "separable": (np.c_[X[:, :2], 10 * y], y),
    }[kind]


KINDS = [
    "fewer rows than vectors",
    "two rows",
    "two equal rows",
    "duplicates only",
    "equal rows of both classes",
    "one row in one class",
    "two rows in one class",
    "tiny third class",
    "constant columns",
    "all constant",
    "zeros",
    "separable",
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", KINDS)
@every_model
def test_unkind_data(model, kind):
    """Fitted without a warning, at most the distinct rows as vectors, scores finite, constant where nothing differs."""
    X, y = unkind(kind)
    model = make(model).fit(X, y)
    distinct = len(np.unique(X, axis=0))
    limit = 6 if "n_vectors" in model.get_params() else len(X)
    assert 1 <= model.n_vectors_ <= min(limit, distinct)
    f = model.decision_function(X)
    assert np.isfinite(f).all()
    if distinct == 1:
        assert np.ptp(f, axis=0).max() <= 1e-9
    if kind == "separable":
        assert model.score(X, y) == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kernel", ["linear", "poly"])
@every_basis
def test_rows_of_zeros_have_no_direction(basis, kernel):
    """k(x, z) = 0 everywhere: only the bias is left, the majority wins."""
    y = np.arange(30) % 3 == 0
    model = slim(5, basis, kernel=kernel).fit(np.zeros((30, 2)), y)
    np.testing.assert_array_equal(model.predict(np.zeros((4, 2))), False)


@pytest.mark.filterwarnings("error", "ignore:kernel values")
@pytest.mark.parametrize("kind", ["two rows", "one row in one class", "zeros"])
def test_search_on_unkind_data(kind):
    X, y = unkind(kind)
    model = SlimSVC(3, learning_iter=2).fit(X, y)
    assert model.C_ > 0
    assert np.isfinite(model.decision_function(X)).all()


# --- Containers and weights ----------------------------------------------------------------------------------


@every_model
def test_sparse_is_dense(model):
    """The same vectors and scores; where vectors are learned, the path's rounding may grow a little."""
    X, y = blobs(60, seed=6, density=0.5)
    dense, sparse = make(model).fit(X, y), make(model).fit(sp.csr_array(X), y)
    assert dense.n_vectors_ == sparse.n_vectors_
    learned = getattr(dense, "basis", None) == "learned"
    f, g = dense.decision_function(X), sparse.decision_function(sp.csr_array(X))
    if learned:
        np.testing.assert_allclose(sparse.objective_, dense.objective_, rtol=0.05)
    else:
        np.testing.assert_allclose(bases.dense(sparse.vectors_), bases.dense(dense.vectors_), atol=1e-9)
        np.testing.assert_allclose(g, f, atol=5e-3)
    for m in (dense, sparse):
        np.testing.assert_allclose(m.decision_function(X), m.decision_function(sp.csc_array(X)), atol=1e-9)


@pytest.mark.parametrize("params", [{}, {"class_weight": "balanced"}, {"gamma": "scale"}], ids=str)
@pytest.mark.parametrize("slack", SLACKS)
def test_a_weight_is_a_number_of_copies_over_given_vectors(slack, params):
    X, y = three_classes(60, seed=5)
    copies = np.arange(60) % 4  # weight zero included
    settings = {"slack": slack, "tol": 1e-9, **params}
    weighted = slim(basis=X[:7], **settings).fit(X, y, copies)
    repeated = slim(basis=X[:7], **settings).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
    np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-8)
    assert weighted.kernel_.gamma == pytest.approx(repeated.kernel_.gamma, rel=1e-12)
    np.testing.assert_allclose(weighted._scores(X), repeated._scores(X), atol=2e-3)


@every_model
def test_weight_zero_is_a_removed_row(model):
    X, y = blobs(60, seed=7)
    weight = np.where(np.arange(60) % 5 == 0, 0.0, 1.0)
    wild = X.copy()
    wild[weight == 0] += 100
    weighted, removed = make(model).fit(wild, y, weight), make(model).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(weighted.decision_function(X), removed.decision_function(X), atol=1e-6)
    if hasattr(weighted, "support_"):
        np.testing.assert_array_equal(weighted.support_, np.flatnonzero(weight)[removed.support_])


def test_weights_count_in_the_search():
    """Rows of weight zero, all of them mislabelled, change nothing of the default fit."""
    X, y = blobs(50, d=2, seed=8)
    weight = np.where(np.arange(50) % 5 == 0, 0.0, 1.0)
    labels = np.where(weight > 0, y, -y)
    one = SlimSVC(4, learning_iter=2).fit(X, labels, weight)
    other = SlimSVC(4, learning_iter=2).fit(X[weight > 0], y[weight > 0])
    assert one.search_results_["error"] == other.search_results_["error"]
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("slack", SLACKS)
def test_float32_rows(slack):
    X, y = blobs(200, seed=9)
    double = slim(basis=X[:10], slack=slack).fit(X, y)
    single = slim(basis=X[:10], slack=slack).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.objective_, double.objective_, rtol=1e-5)
    np.testing.assert_allclose(single.decision_function(X), double.decision_function(X), atol=2e-2)


@pytest.mark.parametrize("slack", SLACKS)
def test_float32_rows_at_a_large_cost(slack):
    """The promised gap is reached, as with float64 rows."""
    X, y = blobs(60, seed=9)
    model = slim(20, basis="forward", slack=slack, C=1e4, gamma=0.1).fit(X.astype(np.float32), y)
    assert (model.duality_gap_ <= model.tol).all()


@every_basis
def test_a_small_cache_changes_nothing(basis, monkeypatch):
    """Features computed anew in each pass, a few rows at a time."""
    X, y = three_classes(90, seed=6)
    plain = slim(basis=basis, slack="l1").fit(X, y)
    monkeypatch.setattr(features, "BLOCK_BYTES", 1000)
    streamed = slim(basis=basis, slack="l1", cache_size=1e-4).fit(X, y)
    np.testing.assert_allclose(bases.dense(streamed.vectors_), bases.dense(plain.vectors_), atol=1e-6)
    np.testing.assert_allclose(streamed.objective_, plain.objective_, rtol=3e-6)


@every_model
def test_threads_do_not_change_the_model(model):
    X, y = blobs(300, d=3, seed=10)
    one, two = (make(model).set_params(n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(bases.dense(one.vectors_), bases.dense(two.vectors_))
    np.testing.assert_array_equal(one.vector_coef_, two.vector_coef_)


# --- Precomputed and callable kernels ------------------------------------------------------------------------

ROW_MODELS = {
    "slim forward": SlimSVC(6, "forward", C=2.0, gamma=0.4, scales="fixed"),
    "slim random": SlimSVC(6, "random", C=2.0, gamma=0.4, scales="fixed"),
    "slim cholesky": SlimSVC(6, "cholesky", C=2.0, gamma=0.4, scales="fixed"),
    "slim search": SlimSVC(6, "forward", gamma=0.4),
    "empirical order": EmpiricalSVC(0.2, gamma=0.4),
    "empirical pivoted": EmpiricalSVC(0.2, "pivoted", gamma=0.4),
    "reduced": ReducedSVC(6, gamma=0.4),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", ROW_MODELS)
def test_a_precomputed_kernel_is_the_kernel(model, classes, container):
    X, y = three_classes(60, seed=7)
    X, y = X[y < classes], y[y < classes]
    weight = 1.0 + np.arange(len(y)) % 3
    weight[::7] = 0
    K = kernels.Gaussian(0.4)(X, X)
    direct = clone(ROW_MODELS[model]).fit(X, y, weight)
    given = clone(ROW_MODELS[model]).set_params(kernel="precomputed").fit(CONTAINERS[container](K), y, weight)
    np.testing.assert_array_equal(given.support_, direct.support_)
    np.testing.assert_array_equal(given.vectors_, given.support_)
    np.testing.assert_allclose(given.objective_, direct.objective_, rtol=3e-6)
    np.testing.assert_allclose(
        given.decision_function(CONTAINERS[container](K)), direct.decision_function(X), atol=2e-2
    )


@pytest.mark.parametrize("model", ROW_MODELS)
def test_a_function_is_its_kernel(model):
    X, y = blobs(60, seed=11)
    function = lambda A, B: reference.kernel_matrix("rbf", A, B, gamma=0.4)  # noqa: E731
    direct, given = clone(ROW_MODELS[model]).fit(X, y), clone(ROW_MODELS[model]).set_params(kernel=function).fit(X, y)
    np.testing.assert_array_equal(given.support_, direct.support_)
    np.testing.assert_allclose(given.decision_function(X), direct.decision_function(X), atol=2e-2)


@pytest.mark.parametrize(
    ("params", "fit_to_matrix"),
    [
        ({"kernel": cosine_plus_one}, False),
        ({"kernel": "precomputed"}, True),
        ({"kernel": "precomputed", "basis": "kmeans"}, True),
        ({"kernel": "precomputed", "scales": "learned"}, True),
    ],
    ids=["callable", "precomputed", "kmeans", "scales"],
)
@pytest.mark.parametrize("searched", [False, True])
def test_kernels_without_derivative_or_rows_are_refused(params, fit_to_matrix, searched):
    """An error that says what cannot be done with this kernel, and what can."""
    X, y = blobs(40)
    settings = params if searched else {"C": 1.0, "gamma": 0.3, "scales": "fixed", **params}
    with pytest.raises(ValueError) as error:
        SlimSVC(5, **settings).fit(kernels.Gaussian(0.3)(X, X) if fit_to_matrix else X, y)
    assert "kernel" in str(error.value)
    assert "forward" in str(error.value)


def test_a_kernel_of_the_user_with_a_derivative_is_learned():
    class Cauchy(kernels.Function):
        """1 / (1 + |x - z|^2), dk/dz = 2 k^2 (x - z)."""

        def pullback(self, X, Z, W, K=None):
            K = self(X, Z) if K is None else K
            M = 2 * W * K**2
            return M.T @ X - M.sum(axis=0)[:, None] * Z

    kernel = Cauchy(lambda X, Z: 1 / (1 + ((X[:, None] - Z[None]) ** 2).sum(axis=2)))
    X, y = blobs(60, d=2)
    learned = slim(4, kernel=kernel, learning_iter=30).fit(X, y)
    start = slim(4, "kmeans", kernel=kernel).fit(X, y)
    assert learned.objective_[0] < start.objective_[0]


def test_a_kernel_object_with_scales():
    X, y = blobs(60)
    scales = np.array([0.5, 1.0, 2.0, 0.1])
    plain = slim(5, "forward", kernel="rbf", gamma=0.3).fit(X * scales, y)
    for kernel in (
        kernels.Scaled(kernels.Gaussian(0.3), scales),
        kernels.Scaled(kernels.Gaussian(0.3), scales.tolist()),
    ):
        scaled = slim(5, "forward", kernel=kernel).fit(X, y)
        np.testing.assert_array_equal(scaled.support_, plain.support_)
        np.testing.assert_allclose(scaled.decision_function(X), plain.decision_function(X * scales), atol=1e-3)
        full = AnyNormSVC(kernel=kernel, tol=1e-8).fit(X, y)
        expected = AnyNormSVC(kernel=kernels.Gaussian(0.3), tol=1e-8).fit(X * scales, y)
        np.testing.assert_allclose(full.decision_function(X), expected.decision_function(X * scales), atol=1e-4)


# --- The papers' machines ------------------------------------------------------------------------------------


def test_empirical_svc_converges_to_the_machine_over_all_rows():
    """The kernel regulariser keeps the meaning of C: as eta falls, the decision values become the SVC's."""
    X, y = blobs(120, d=2, seed=12)
    full = SVC(C=3.0, gamma=0.8, tol=1e-9).fit(X, y)
    ours = AnyNormSVC(C=3.0, gamma=0.8, tol=1e-9).fit(X, y)
    errors = []
    for eta in (1e-1, 1e-3, 1e-6, 0.0):
        for selection in ("order", "pivoted"):
            model = EmpiricalSVC(eta, selection, C=3.0, gamma=0.8, tol=1e-9).fit(X, y)
            errors.append(np.abs(model.decision_function(X) - full.decision_function(X)).max())
            assert model.objective_[0] >= ours.objective_[0] * (1 - 1e-7)  # a smaller space is never better
    assert errors[0] > errors[-1]
    assert max(errors[-4:]) < 2e-3
    assert model.objective_[0] == pytest.approx(ours.objective_[0], rel=1e-6)


def test_empirical_svc_keeps_the_rows_of_the_definition():
    X, y = blobs(300, d=3, seed=13)
    K = reference.kernel_matrix("rbf", X, X, gamma=0.4)
    model = EmpiricalSVC(0.03, gamma=0.4).fit(X, y)
    np.testing.assert_array_equal(model.support_, slow.independent_rows(K, 0.03))


@containers
@pytest.mark.parametrize("slack", SLACKS)
@pytest.mark.parametrize("regularizer", ["kernel", "identity"])
def test_inputs_as_features_are_the_linear_machine(regularizer, slack, container):
    X, y = blobs(80, seed=14)
    model = EmpiricalSVC(
        selection="inputs", kernel="linear", regularizer=regularizer, slack=slack, C=0.7, tol=1e-9
    ).fit(CONTAINERS[container](X), y)
    best = slow.linear_machine(X, y, 0.7, SLACKS[slack])
    assert model.n_vectors_ == 4
    assert model.objective_[0] == pytest.approx(best.value, rel=1e-7)
    np.testing.assert_allclose(model.vector_coef_[0] @ bases.dense(model.vectors_), best.w, atol=1e-3)
    if slack == "l1":
        theirs = SVC(kernel="linear", C=0.7, tol=1e-9).fit(X, y)
        np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(X), atol=1e-3)


def test_linear_rows_span_the_inputs():
    """NOSV: as many rows as the rank, and the linear machine's own solution."""
    X, y = blobs(80, d=3, seed=15)
    X = np.c_[X, X @ [1.0, 2.0, 3.0]]
    model = EmpiricalSVC(1e-8, kernel="linear", C=0.7, tol=1e-9).fit(X, y)
    assert model.n_vectors_ == 3
    theirs = SVC(kernel="linear", C=0.7, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(X), atol=1e-3)


def test_learned_vectors_beat_the_same_number_of_rows():
    X, y = blobs(300, d=2, seed=16)
    objective = {basis: slim(5, basis, learning_iter=50).fit(X, y).objective_[0] for basis in BASES}
    assert objective["learned"] == min(objective.values())
    assert objective["forward"] < objective["random"]


@pytest.mark.parametrize("scales", ["fixed", "learned"])
@pytest.mark.parametrize("C", [0.1, 30.0])
@pytest.mark.parametrize("params", [{"coef0": 0.0}, {"coef0": 1.0}, {"coef0": 1.0, "degree": 2}], ids=str)
def test_polynomial_vectors_are_learned_at_any_cost(params, C, scales):
    """Nothing holds the length of a polynomial kernel's vectors: a long trial step is no reason to give up."""
    for seed in range(4):
        X, y = blobs(50, d=2, seed=seed)
        start = slim(3, "kmeans", kernel="poly", C=C, **params).fit(X, y)
        model = slim(3, kernel="poly", C=C, scales=scales, learning_iter=30, **params).fit(X, y)
        assert np.isfinite(model.decision_function(X)).all()
        assert model.objective_[0] <= start.objective_[0] * (1 + 1e-3)


def test_the_final_machine_has_the_slack_asked_for():
    """Learned with a rounded hinge, fitted with the hinge itself."""
    X, y = blobs(80, seed=17)
    model = slim(5, slack="l1", tol=1e-8).fit(X, y)
    K, Kz = textbook(model.kernel_, X, model.vectors_), textbook(model.kernel_, model.vectors_, model.vectors_)
    best = slow.machine(K, Kz + 1e-6 * np.eye(5), y, 2.0, "Hinge")
    assert model.objective_[0] == pytest.approx(best.value, rel=1e-6)
    for loss in (losses.HuberHinge(), losses.LeastSquares()):
        model = slim(basis=X[:5], slack=loss, tol=1e-8).fit(X, y)
        best = slow.machine(
            textbook(model.kernel_, X, X[:5]), textbook(model.kernel_, X[:5], X[:5]), y, 2.0, type(loss).__name__
        )
        assert model.objective_[0] == pytest.approx(best.value, rel=1e-7)


# --- Learned scales ------------------------------------------------------------------------------------------


@containers
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "linear"])
def test_learned_scales_are_in_the_kernel(kernel, container):
    X, y = blobs(60, seed=18)
    model = slim(5, kernel=kernel, scales="learned").fit(CONTAINERS[container](X), y)
    assert isinstance(model.kernel_, kernels.Scaled)
    assert np.shape(model.kernel_.scales) == (4,)
    assert (np.asarray(model.kernel_.scales) > 0).all()
    expected = scores(model, X)[:, 0]
    for rows in (X, sp.csr_array(X), X[:1], np.asfortranarray(X)):
        np.testing.assert_allclose(model.decision_function(rows), expected[: rows.shape[0]], atol=1e-8)
    single = model.decision_function(X.astype(np.float32))
    np.testing.assert_allclose(single, expected, atol=1e-4)


def test_learned_scales_and_vectors_of_each_class():
    """Either both, or an error that says so: not scales that are silently fixed."""
    X, y = three_classes()
    model, message = fitted_or_refused(slim(6, vectors="per_class", scales="learned"), X, y)
    assert isinstance(model.kernel_, kernels.Scaled) if model else "scales" in message and "per_class" in message


# --- Search --------------------------------------------------------------------------------------------------


def test_numbers_switch_the_search_off(monkeypatch):
    X, y = blobs(60)

    def forbidden(*args):
        raise AssertionError("searched")

    monkeypatch.setattr(search, "split", forbidden)
    for gamma in (0.3, 1, np.float64(0.3), np.float32(0.25), "scale", "auto"):
        for C in (3.0, 3, np.int64(3)):
            model = SlimSVC(4, C=C, gamma=gamma, scales="fixed", learning_iter=2).fit(X, y)
            assert model.search_results_ == {}
            assert model.C_ == 3
    assert model.kernel_.gamma == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("basis", "kernel", "given"),
    [
        ("learned", "rbf", {}),
        ("learned", "rbf", {"C": 2.0, "gamma": 0.3}),
        ("learned", "linear", {}),
        ("learned", "poly", {"gamma": 0.3}),
        ("learned", "poly", {"C": 2.0, "gamma": 0.3}),
        ("forward", "rbf", {"C": 2.0}),
        ("forward", "rbf", {"C": 2.0, "gamma": 0.3}),
        ("forward", "linear", {"C": 2.0}),
        ("random", "laplacian", {}),
    ],
    ids=str,
)
def test_search_results_say_what_was_tried(basis, kernel, given):
    X, y = blobs(50, d=2, seed=19)
    model = SlimSVC(3, basis, kernel=kernel, learning_iter=3, **given).fit(X, y)
    results = model.search_results_
    if basis != "learned" and "C" in given and ("gamma" in given or kernel == "linear"):
        assert results == {}
        return
    assert set(results) == {"C", "gamma", "scales", "error", "loss"}
    assert len({len(column) for column in results.values()}) == 1
    table = pd.DataFrame(results)
    assert not table.duplicated(["C", "gamma", "scales"]).any()
    assert table.error.between(0, 1).all()
    assert (table.loss >= 0).all()
    scaled = isinstance(model.kernel_, kernels.Scaled)
    chosen = table[(table.C == model.C_) & (table.scales == ("learned" if scaled else "fixed"))]
    if kernel != "linear":
        gamma = (model.kernel_.kernel if scaled else model.kernel_).gamma
        chosen = chosen[np.isclose(chosen.gamma.astype(float), gamma)]
    assert len(chosen) == 1
    assert chosen.error.iloc[0] <= table.error.min() + 0.1 * table.loss.max()  # the documented trade
    if "C" in given:
        assert set(table.C) == {2.0}
    else:
        assert len(set(table.C)) > 1
    if "gamma" in given and kernel != "linear":
        assert set(table.gamma) == {0.3}
    if basis != "learned":
        assert set(table.scales) == {"fixed"}


@pytest.mark.parametrize("kernel", ["poly", "laplacian", "linear"])
def test_search_with_other_kernels(kernel):
    X, y = blobs(60)
    assert SlimSVC(5, kernel=kernel, learning_iter=20).fit(X, y).score(X, y) > 0.6


def test_search_is_seeded_and_splits_by_class():
    X, y = blobs(60, d=2, seed=20)
    one, other = (SlimSVC(3, learning_iter=2).fit(X, y) for _ in range(2))
    assert one.search_results_ == other.search_results_
    np.testing.assert_array_equal(one.vectors_, other.vectors_)
    for n in (30, 1200, 4000):
        codes = np.random.default_rng(0).permutation(np.arange(n) % 10 == 0).astype(int)
        rows = search.TrainingRows(np.arange(n)[:, None], codes, np.ones(n), 2, 1)
        folds = search.split(rows, np.random.default_rng(0))
        for fold in folds:
            assert not set(fold.train.X[:, 0]) & set(fold.test.X[:, 0])
            assert len(fold.train.codes) + len(fold.test.codes) == n
            assert abs(fold.train.codes.sum() - 0.1 * len(fold.train.codes)) <= 1
        if len(folds) > 1:
            held_out = np.concatenate([fold.test.X[:, 0] for fold in folds])
            assert len(set(np.bincount(held_out, minlength=n))) == 1  # each row as often as any other


# --- Learning rows and iterations ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [int, np.int64])
def test_vectors_are_learned_on_some_rows_and_fitted_to_all(kind, monkeypatch):
    seen = []
    original = learning.learn

    def spy(problem, *args, **options):
        seen.append(problem.X.shape[0])
        return original(problem, *args, **options)

    monkeypatch.setattr("slimsvm.training.learn", spy)
    X, y = blobs(200, seed=21)
    model = slim(4, learning_rows=kind(50)).fit(X, y)
    assert seen
    assert max(seen) <= 50
    K, Kz = textbook(model.kernel_, X, model.vectors_), textbook(model.kernel_, model.vectors_, model.vectors_)
    best = slow.machine(K, Kz + 1e-6 * np.eye(4), y, 2.0, "SquaredHinge")
    assert model.objective_[0] == pytest.approx(best.value, rel=1e-6)


def test_no_learning_iterations_are_the_start():
    X, y = blobs(60)
    np.testing.assert_allclose(
        slim(5, learning_iter=0).fit(X, y).vectors_, slim(5, "kmeans").fit(X, y).vectors_, atol=1e-9
    )


@pytest.mark.parametrize("offset", [1e2, 1e4])
@pytest.mark.parametrize("model", [name for name in MODELS if "scales" not in name])
def test_a_common_offset_changes_nothing(model, offset):
    X, y = blobs(60, d=3, seed=22)
    near, far = make(model).fit(X, y), make(model).fit(X + offset, y)
    np.testing.assert_allclose(far.objective_, near.objective_, rtol=1e-3)
    np.testing.assert_allclose(bases.dense(far.vectors_) - offset, bases.dense(near.vectors_), atol=2e-2)


def test_scales_survive_a_common_offset():
    """With learned scales too, only differences between rows matter."""
    X, y = blobs(60, d=3, seed=22)
    near, far = (slim(4, scales="learned").fit(X + offset, y) for offset in (0.0, 1e3))
    np.testing.assert_allclose(far.objective_, near.objective_, rtol=1e-2)
    np.testing.assert_allclose(far.decision_function(X + 1e3), scores(far, X + 1e3)[:, 0], atol=1e-6)


# --- Tools ---------------------------------------------------------------------------------------------------


def test_grid_search_and_pipeline():
    X, y = load_iris(return_X_y=True)
    grid = {
        "slimsvc__basis": ["learned", "forward", bases.Cholesky(1e-3)],
        "slimsvc__slack": ["l1", losses.SquaredHinge()],
        "slimsvc__n_vectors": [3, 8],
    }
    pipeline = make_pipeline(StandardScaler(), slim())
    found = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, y)
    assert found.best_score_ > 0.9
    nested = GridSearchCV(slim(basis=bases.Cholesky(1e-3)), {"basis__eta": [0.5, 1e-3]}, error_score="raise").fit(X, y)
    assert len(nested.cv_results_["params"]) == 2


@every_model
def test_pickle(model):
    X, y = three_classes(45)
    model = make(model).fit(X, y)
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.decision_function(X), model.decision_function(X))
    assert repr(restored.kernel_) == repr(model.kernel_)
    assert clone(model).get_params().keys() == model.get_params().keys()


def test_scaled_kernels_can_be_compared_and_cloned():
    """Parts are values: equal if their numbers are."""
    one, other = (kernels.Scaled(kernels.Gaussian(0.3), np.array([1.0, 2.0])) for _ in range(2))
    assert one == other
    assert clone(one) == one
    assert one != kernels.Scaled(kernels.Gaussian(0.3), np.array([1.0, 3.0]))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("model", ["slim learned", "slim forward", "empirical order", "reduced"])
def test_frames(model, frame):
    X, y = three_classes(45)
    table = frame({"width": X[:, 0], "height": X[:, 1]})
    fitted = make(model).fit(table, y)
    np.testing.assert_array_equal(fitted.feature_names_in_, ["width", "height"])
    expected = make(model).fit(X, y).decision_function(X)
    np.testing.assert_allclose(fitted.decision_function(table), expected, atol=1e-9)


@pytest.mark.parametrize("model", ["slim learned", "empirical order", "reduced"])
def test_names_as_labels(model):
    X, y = three_classes(45)
    names = np.array(["ant", "bee", "cow"])
    fitted = make(model).fit(X, names[y])
    np.testing.assert_array_equal(fitted.classes_, names)
    np.testing.assert_array_equal(fitted.predict(X), names[make(model).fit(X, y).predict(X)])


# --- Progress, warnings, interrupts --------------------------------------------------------------------------


def test_verbose_shows_search_and_learning(capsys):
    X, y = blobs(60, d=2)
    SlimSVC(3, learning_iter=2, verbose=True).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 2
    assert "search: " in err
    assert "C=" in err
    assert "learning 3 vectors on 60 rows" in err
    assert "2 iterations" in err
    SlimSVC(3, learning_iter=2).fit(X, y)
    assert capsys.readouterr() == ("", "")


def test_verbose_does_not_change_the_model():
    X, y = blobs(60, d=2)
    one, other = (SlimSVC(3, learning_iter=2, verbose=v).fit(X, y) for v in (False, True))
    np.testing.assert_array_equal(one.vectors_, other.vectors_)
    np.testing.assert_array_equal(one.vector_coef_, other.vector_coef_)


@pytest.mark.parametrize("model", ["slim l1", "empirical order"])
def test_a_machine_that_is_not_solved_gives_a_warning(model):
    X, y = blobs(200, noise=2.0)
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap .*asked for tol=1e-09.*max_iter") as caught:
        make(model).set_params(max_iter=1, tol=1e-9).fit(X, y)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("max_iter", [1, 3])
@pytest.mark.parametrize("model", ["slim forward", "slim l1", "empirical order", "reduced"])
def test_max_iter_is_the_most(model, max_iter):
    X, y = blobs(200, noise=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make(model).set_params(max_iter=max_iter, tol=1e-12).fit(X, y)
    assert model.n_iter_[0] <= max_iter


@pytest.mark.parametrize("model", ["slim learned", "empirical order", "reduced"])
def test_a_flat_kernel_gives_one_warning_at_the_caller(model):
    X, y = blobs(60)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(model).set_params(gamma=1e-12).fit(X, y)
    flat = [w for w in caught if "kernel values are all about 1" in str(w.message)]
    assert len(flat) == 1
    assert flat[0].filename == __file__


INTERRUPT = """
import os, signal, sys, threading, time
from problems import blobs
from slimsvm import EmpiricalSVC, SlimSVC, interior

sums = interior.sums
interior.sums = lambda *args, **options: time.sleep(0.1) or sums(*args, **options)
models = {
    "search": SlimSVC(50),
    "learning": SlimSVC(50, C=1.0, gamma=0.3, scales="fixed", learning_iter=100000),
    "hinge": EmpiricalSVC(0.3, gamma=0.02, tol=1e-15, C=1e6, max_iter=10000),
}
for stage, model in models.items():
    X, y = blobs(60000 if stage == "hinge" else 20000, d=10, noise=2.0)
    sent = []

    def press():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.4, press)
    timer.start()
    try:
        model.fit(X, y)
        timer.cancel()
    except KeyboardInterrupt:
        print(stage, time.perf_counter() - sent[0], [name for name in vars(model) if name.endswith("_")])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_leaves_the_estimator_unfitted(tmp_path):
    lines = [line.split(" ", 2) for line in run(INTERRUPT, tmp_path).splitlines()]
    assert [stage for stage, _, _ in lines] == ["search", "learning", "hinge"]
    for _, waited, fitted in lines:
        assert float(waited) < (20.0 if SANITIZED else 2.0)
        assert fitted == "[]"


def test_an_error_leaves_the_estimator_as_it_was(monkeypatch):
    X, y = blobs(60)
    model = slim().fit(X, y)
    before = dict(vars(model))
    monkeypatch.setattr("slimsvm.estimators.small_basis.fit_coefficients", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.fit(X[:, :2], y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
