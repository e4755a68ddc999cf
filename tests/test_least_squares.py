"""Least-squares machines: the direct and the iterative solution, leave-one-out residuals, limits."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from problems import KERNEL_CASES, all_duals, blobs, spread, three_classes
from slimsvm import AnyNormSVC, LeastSquaresSVC
from slimsvm.solvers.dual import least_squares

SMALL = 0.05  # megabytes: too few for the matrix of these problems


def both(X, y, weights=None, **params):
    direct = LeastSquaresSVC(**params).fit(X, y, sample_weight=weights)
    iterative = LeastSquaresSVC(cache_size=SMALL, **{"tol": 1e-12, **params}).fit(X, y, sample_weight=weights)
    assert direct.loo_residuals_ is not None
    assert iterative.loo_residuals_ is None
    return direct, iterative


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("case", KERNEL_CASES, ids=lambda case: case.name)
def test_both_ways_give_the_solution(case, container):
    X, y = blobs(150, seed=1, density=0.6)
    weights = 1 + np.arange(150) % 3
    rows = case.training_input(X)
    rows = rows if case.name == "precomputed" else container(rows)
    smo = AnyNormSVC("l2", "equality", C=3.0, tol=1e-10, **case.params).fit(rows, y, sample_weight=weights)
    for model in both(rows, y, weights, C=3.0, **case.params):
        assert model.objective_[0] == pytest.approx(smo.objective_[0], rel=1e-9)
        assert model.duality_gap_[0] <= 1e-9
        # Copies of a row are one row to the other machine.
        expected = spread(all_duals(smo, 150), case.matrix(X, X), y, weights)
        np.testing.assert_allclose(all_duals(model, 150), expected, atol=1e-4)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
def test_iterations_meet_any_tolerance(C, precision):
    X, y = blobs(200, seed=2)
    for tol in (1e-2, 1e-6, 2e-11):  # with C = 1e4, rounding of f counts 1e-11
        model = LeastSquaresSVC(C=C, gamma=0.3, tol=tol, cache_size=SMALL, precision=precision).fit(X, y)
        assert model.duality_gap_[0] <= tol


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_several_classes(multi_class):
    X, y = three_classes(200)
    for model in both(X, y, gamma=0.5, multi_class=multi_class):
        smo = AnyNormSVC("l2", "equality", gamma=0.5, multi_class=multi_class, tol=1e-10).fit(X, y)
        np.testing.assert_allclose(model.decision_function(X), smo.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_residuals(weighted):
    X, y = blobs(40, seed=3)
    weights = 1.0 + np.arange(40) % 3 if weighted else np.ones(40)
    weights[5] = 0.0
    model = LeastSquaresSVC(C=2.0, gamma=0.3).fit(X, y, sample_weight=weights)
    assert np.isnan(model.loo_residuals_[0, 5])
    for row in (0, 7, 39):
        kept = (np.arange(40) != row) & (weights > 0)
        without = LeastSquaresSVC(C=2.0, gamma=0.3).fit(X[kept], y[kept], sample_weight=weights[kept])
        assert model.loo_residuals_[0, row] == pytest.approx(y[row] - without.decision_function(X[[row]])[0], rel=1e-9)


def test_leave_one_out_residuals_of_pairs_of_classes():
    X, y = three_classes()
    residuals = LeastSquaresSVC(gamma=0.5).fit(X, y).loo_residuals_
    assert residuals.shape == (3, len(y))
    np.testing.assert_array_equal(np.isnan(residuals[0]), y == 2)  # the pair (0, 1)


@pytest.mark.parametrize("cache_size", [400, SMALL])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_indefinite_kernel_ends_with_a_warning(cache_size):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(120, 120))
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model = LeastSquaresSVC(kernel="precomputed", C=10.0, cache_size=cache_size).fit(A + A.T, np.arange(120) % 2)
    assert np.isfinite(model.vector_coef_).all()


def test_max_iter_is_a_limit():
    X, y = blobs(300, seed=4)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model = LeastSquaresSVC(C=1e4, gamma=0.3, tol=1e-10, max_iter=2, cache_size=SMALL).fit(X, y)
    assert model.n_iter_[0] == 2


@pytest.mark.parametrize("cache_size", [400, SMALL])
def test_threads_do_not_change_the_model(cache_size):
    X, y = blobs(400, seed=5)
    one, two = (LeastSquaresSVC(n_jobs=n_jobs, cache_size=cache_size).fit(X, y) for n_jobs in (1, 2))
    # Threads of BLAS add sums in another order: rounding is all that may differ.
    size = np.abs(one.vector_coef_).max()
    np.testing.assert_allclose(one.vector_coef_, two.vector_coef_, rtol=0, atol=1e-13 * size)


@pytest.mark.parametrize("cache_size", [400, SMALL])
def test_verbose(cache_size, capsys):
    X, y = blobs(200, seed=6)
    LeastSquaresSVC(verbose=True, cache_size=cache_size).fit(X, y)
    assert "gap" in capsys.readouterr().err


@pytest.mark.parametrize("cache_size", [400, SMALL])
def test_equal_rows(cache_size):
    """Pivots among copies of one row add nothing, and must not stop the preconditioner."""
    X, y = np.ones((150, 2)), np.where(np.arange(150) < 40, 1.0, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LeastSquaresSVC(cache_size=cache_size, tol=1e-9).fit(X, y)
    assert model.duality_gap_[0] <= 1e-9


# --- Threads, and matrices that are not definite ---------------------------------------------------------------


@pytest.mark.parametrize("n", [101, 400])
def test_threads_give_the_same_solution(n):
    X, y = blobs(n, seed=7)
    alone, together = (LeastSquaresSVC(C=10.0, gamma=0.3, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(together.vector_coef_, alone.vector_coef_)
    np.testing.assert_array_equal(together.loo_residuals_, alone.loo_residuals_)


@pytest.mark.parametrize("n", [20, 101, 300])
def test_elimination_of_an_indefinite_matrix(n):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n))
    A, right = A + A.T, rng.normal(size=(n, 3))
    solved, corners = least_squares._indefinite(A.copy(), right, 1)
    inverse = np.linalg.inv(A)
    np.testing.assert_allclose(solved, (inverse @ right).T, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(corners, inverse.diagonal(), rtol=1e-7, atol=1e-9)


def test_a_singular_matrix_gives_numbers():
    for A in (np.zeros((120, 120)), np.ones((120, 120))):
        for found in least_squares._indefinite(A.copy(), np.ones((120, 1)), 1):
            assert np.isfinite(found).all()


def test_conjugate_gradients_end_after_as_many_steps_as_there_are_eigenvalues():
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.normal(size=(60, 60)))
    K = (Q * np.repeat([0.5, 2.0, 7.0], 20)) @ Q.T

    class Product:
        C, size = np.ones(60), 60

        def product(self, a, single):
            return a @ K

    targets = rng.normal(size=(2, 60))
    duals, residual = np.zeros((2, 60)), targets.copy()
    steps, curved = least_squares._conjugate_gradients(
        Product(), lambda r: r.copy(), targets, duals, residual, 1e-12, 50, False, None
    )
    assert steps <= 3
    assert not curved
    np.testing.assert_allclose(duals, np.linalg.solve(K + np.eye(60), targets.T).T, atol=1e-6)


def test_a_preconditioner_of_huge_values():
    """What rounding makes of its equations has no factor of its own."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((24, 5)) * 10.0 ** rng.integers(-3, 6) + (seed % 2) * 10.0 ** rng.integers(0, 6)
        clf = LeastSquaresSVC(kernel="poly", gamma=8e7, coef0=1.0, cache_size=0.0018, C=1e3, multi_class="ovr")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            clf.fit(X, rng.integers(0, 3, 24))
        categories = {warning.category for warning in seen}
        assert (ConvergenceWarning in categories) == (clf.duality_gap_.max() > clf.tol)
        assert RuntimeWarning not in categories
        assert np.isfinite(clf.vector_coef_).all()
