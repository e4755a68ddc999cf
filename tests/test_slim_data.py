"""Small machines on unkind data, in any container, with weights and with every kernel."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import reference
from problems import blobs, cosine_plus_one, three_classes
from slimsvm import AnyNormSVC, EmpiricalSVC, ReducedSVC, SlimSVC, bases, kernels
from slimsvm.rows import memory
from small_models import (
    CONTAINERS,
    FEW_ITERATIONS,
    SLACKS,
    every_basis,
    every_model,
    learned,
    make,
    slim,
)

pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning", FEW_ITERATIONS)


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


@pytest.mark.filterwarnings("error", FEW_ITERATIONS)
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


@pytest.mark.filterwarnings("error", FEW_ITERATIONS)
@pytest.mark.parametrize("kernel", ["linear", "poly"])
@every_basis
def test_rows_of_zeros_have_no_direction(basis, kernel):
    """k(x, z) = 0 everywhere: only the bias is left, the majority wins."""
    y = np.arange(30) % 3 == 0
    model = slim(5, basis, kernel=kernel).fit(np.zeros((30, 2)), y)
    np.testing.assert_array_equal(model.predict(np.zeros((4, 2))), False)


@pytest.mark.filterwarnings("error", FEW_ITERATIONS, "ignore:kernel values")
@pytest.mark.parametrize("kind", ["two rows", "one row in one class", "zeros"])
def test_search_on_unkind_data(kind):
    X, y = unkind(kind)
    model = SlimSVC(3, learned(iterations=2)).fit(X, y)
    assert model.C_ > 0
    assert np.isfinite(model.decision_function(X)).all()


# --- Containers and weights ----------------------------------------------------------------------------------


@every_model
def test_sparse_is_dense(model):
    """The same vectors and scores; where vectors are learned, the path's rounding may grow a little."""
    X, y = blobs(60, seed=6, density=0.5)
    dense, sparse = make(model).fit(X, y), make(model).fit(sp.csr_array(X), y)
    assert dense.n_vectors_ == sparse.n_vectors_
    f, g = dense.decision_function(X), sparse.decision_function(sp.csr_array(X))
    if isinstance(getattr(dense, "basis", None), bases.Learned):
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
    one = SlimSVC(4, learned(iterations=2)).fit(X, labels, weight)
    other = SlimSVC(4, learned(iterations=2)).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_equal(one.search_results_, other.search_results_)
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
    monkeypatch.setattr(memory, "BLOCK_BYTES", 1000)
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
def test_a_precomputed_kernel_is_the_kernel(model, classes, container, same_draws):
    X, y = three_classes(60, seed=7)
    X, y = X[y < classes], y[y < classes]
    weight = 1.0 + np.arange(len(y)) % 3
    weight[::7] = 0
    same_draws(X[weight > 0])
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
    moved = slim(4, learned(iterations=30), kernel=kernel).fit(X, y)
    start = slim(4, "kmeans", kernel=kernel).fit(X, y)
    assert moved.objective_[0] < start.objective_[0]


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


def test_memory_that_others_have_left_does_not_matter():
    """Panels of rows are not always full: what is beyond the last row must not be what happened to be there."""
    rng = np.random.default_rng(0)
    X, y = np.zeros((40, 3)), np.repeat([0, 1], 20)
    objectives = set()
    for _ in range(25):
        left = [np.full(size, rng.choice([np.nan, np.inf, 1e300])) for size in rng.integers(1, 4000, 30)]
        del left
        objectives.add(float(SlimSVC(5, slack="l1").fit(X, y).objective_[0]))
    assert len(objectives) == 1
