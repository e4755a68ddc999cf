"""What is legal but probably not meant gets a warning that says what to do, and the fit ends all the same."""

from __future__ import annotations

import re
import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import kernel_table
from problems import ONE_OF_EACH, blobs, machine_name, three_classes
from slimsvm import AnyNormSVC

UNCAPPED = [machine for machine in ONE_OF_EACH if not hasattr(machine[0], "budget")]  # a cap may leave f = 0
machines = pytest.mark.parametrize("machine", ONE_OF_EACH, ids=machine_name)


def messages(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught]


@pytest.mark.parametrize(
    ("n", "kernel"), [(600, "rbf"), *((60, name) for name in kernel_table.names(semidefinite=True))]
)
@pytest.mark.parametrize("machine", UNCAPPED, ids=machine_name)
def test_an_ordinary_fit_is_silent(machine, n, kernel):
    slack, constraint = machine
    X, y = blobs(n, noise=1.0)
    assert messages(lambda: AnyNormSVC(slack, constraint, kernel=kernel, coef0=1.0, degree=2).fit(X, y)) == []


# --- Kernels that are not positive semidefinite -------------------------------------------------------------


def indefinite(n, seed=0):
    """A symmetric matrix with as many negative as positive eigenvalues, and labels."""
    A = np.random.default_rng(seed).normal(size=(n, n))
    return (A + A.T) / 2, np.where(np.arange(n) % 2, 1.0, -1.0)


def truncated(n, seed=0):
    """A Gram matrix whose entries were cut to integers: a mistake that is easily made."""
    X = np.random.default_rng(seed).uniform(size=(n, 5))
    return (X @ X.T).astype(int).astype(float), np.where(np.arange(n) % 2, 1.0, -1.0)


def check_ended_well(model, K):
    """A usable model: finite, within its bounds, sums kept; reached in a number of steps fit for the size."""
    for name in ("vector_coef_", "intercept_", "objective_"):
        assert np.isfinite(getattr(model, name)).all()
    assert abs(model.vector_coef_.sum()) <= 1e-9 * np.abs(model.vector_coef_).sum()
    assert model.n_iter_.max() <= 10_000_000
    assert np.isfinite(model.decision_function(K)).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("matrix", "n"), [(indefinite, 4), (indefinite, 20), (indefinite, 600), (truncated, 20)])
@machines
def test_indefinite_matrix(machine, matrix, n):
    """Without bounds on the duals (squared slacks) the dual has no optimum at all: it must still end."""
    slack, constraint = machine
    K, y = matrix(n)
    model = AnyNormSVC(slack, constraint, kernel="precomputed", max_iter=20_000_000)
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model.fit(K, y)
    check_ended_well(model, K)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@machines
def test_sigmoid_that_is_indefinite(machine):
    slack, constraint = machine
    X, y = blobs(100)
    model = AnyNormSVC(slack, constraint, kernel="sigmoid", gamma=1.0, coef0=-1.0, max_iter=20_000_000)
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model.fit(X, y)
    check_ended_well(model, X)


def test_indefinite_where_no_sample_shows_it():
    """Two rows of 300 spoil the matrix. The solver meets their negative curvature: it must say so."""
    K, y = np.eye(300), np.where(np.arange(300) < 100, 1.0, -1.0)
    K[3, 4] = K[4, 3] = 5.0
    y[3], y[4] = 1.0, -1.0
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        AnyNormSVC(kernel="precomputed", C=10.0).fit(K, y)


# --- Flat kernels: unscaled features ------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", kernel_table.names(radial=True))
@pytest.mark.parametrize(("scale", "words"), [(1e4, "all about 0"), (1e-5, "all about 1")], ids=["large", "small"])
def test_unscaled_features(kernel, scale, words):
    X, y = blobs(60)
    X = scale * (X + 1e-3 * np.arange(240).reshape(60, 4))  # all different
    if kernel_table.ENTRIES[kernel].of == kernel_table.DISTANCE and scale < 1:
        X = X * 1e-3  # distances, not their squares
    with pytest.warns(UserWarning, match=words) as caught:
        AnyNormSVC(kernel=kernel, gamma=1.0).fit(X, y)
    assert any("StandardScaler" in str(w.message) and "gamma" in str(w.message) for w in caught)


@pytest.mark.parametrize("constant", [0.1, 1 / 3, 0.7, 1.0])
def test_constant_columns_have_no_spread(constant):
    """The mean of a constant is rounded: what is left over is no column that varies little."""
    X, y = blobs(300)
    X = np.c_[X[:, :2], np.full(300, constant)]
    assert messages(lambda: AnyNormSVC().fit(X, y)) == []


def test_warnings_point_to_the_caller():
    X, y = blobs(60)
    with pytest.warns(UserWarning, match="all about 0") as caught:
        AnyNormSVC(gamma=1e6).fit(X + 1e-3 * np.arange(240).reshape(60, 4), y)
    assert caught[0].filename == __file__


# --- Steps that run out -------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_iter", [0, 1, 10, 100])
@pytest.mark.parametrize("n", [300, 900])
@machines
def test_max_iter(machine, n, max_iter):
    """The limit holds, the model is usable, and the warning states the gap that was reached."""
    slack, constraint = machine
    X, y = blobs(n, noise=1.0)
    model = AnyNormSVC(slack, constraint, C=100.0, max_iter=max_iter)
    with pytest.warns(ConvergenceWarning, match=rf"max_iter={max_iter}\b") as caught:
        model.fit(X, y)
    assert len(caught) == 1  # no noise of the arithmetic beside it
    assert model.n_iter_[0] <= max(max_iter, 1)
    stated = float(re.search(r"gap (\S+),", str(caught[0].message)).group(1))
    assert stated == pytest.approx(model.duality_gap_[0], rel=1e-2)
    assert stated > model.tol
    assert "tol=0.001" in str(caught[0].message)
    assert np.isfinite(model.decision_function(X)).all()


def test_max_iter_of_several_machines_warns_once():
    X, y = three_classes(300)
    found = messages(lambda: AnyNormSVC(C=100.0, max_iter=5).fit(X, y))
    assert len(found) == 1
    assert "3 of 3" in found[0]


def test_more_steps_never_make_it_worse():
    """The dual objective rises with every step, so a fit that was cut short is a start, not a loss."""
    X, y = blobs(300, noise=1.0)
    duals = []
    for max_iter in (10, 100, 1000, 10_000):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = AnyNormSVC(C=10.0, max_iter=max_iter).fit(X, y)
        duals.append(model.objective_[0] / (1 + model.duality_gap_[0]))
    assert all(later >= earlier * (1 - 1e-12) for earlier, later in pairwise(duals))
