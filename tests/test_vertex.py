"""Solutions that end in an interior point keep no more vectors than those of pair steps, and are proved as well."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MinMaxScaler

from problems import NORMS
from slimsvm import SVC, SVR, AnyNormSVC, LeastSquaresSVC, NuSVC, NuSVR, OneClassSVM, slacks
from slimsvm.solvers.dual import solve
from slimsvm.solvers.dual.vertex import move_to_vertex

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
POLYHEDRAL = [slacks.OneNorm(), slacks.MaxNorm(), slacks.TopSum(3.5), slacks.TopSum(12.0), slacks.TopTwoNorm(1.0)]


def noisy_classes(n=100, d=5, noise=0.8):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + noise * rng.normal(size=n) > 0, 1, -1)


@pytest.fixture
def no_pairs(monkeypatch):
    """Every fit ends in the interior point."""
    monkeypatch.setattr(solve, "FIRST_STEPS", 0)
    monkeypatch.setattr(solve, "FIRST_STEPS_PER_ROW", 0)


def between_bounds(model, bounds):
    sizes = np.abs(model.vector_coef_[0])
    return int((sizes < bounds * (1 - 1e-9)).sum())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rank", [0, 1, 4, 30])
def test_a_vertex_has_the_same_f_and_sums(seed, rank):
    rng = np.random.default_rng(seed)
    n = 60
    V = rng.normal(size=(n, rank)) * 10 ** rng.uniform(-2, 2, size=(n, 1))
    K = V @ V.T
    row = np.append(np.arange(n), rng.integers(0, n, 20))  # some rows have two variables
    lower, upper = np.zeros(n + 20), np.where(rng.random(n + 20) < 0.5, 1.0, 10 ** rng.uniform(-3, 3, n + 20))
    upper[:5] = np.inf
    x = np.where(np.isinf(upper), 1.0, upper * rng.uniform(0.01, 0.99, n + 20))
    G = np.stack([np.ones(n + 20), np.where(rng.random(n + 20) < 0.5, 1.0, -1.0)])
    G[1] *= seed % 2  # or a single sum
    found = move_to_vertex(K, row, x, lower, upper, G)
    assert (found >= lower).all()
    assert (found <= upper).all()
    free = (found > lower) & (found < upper)
    assert free.sum() <= rank + 2
    np.testing.assert_allclose(G @ found, G @ x, rtol=0, atol=1e-11 * np.abs(x).sum())
    f = V[row].T @ (found - x)  # K a changes by V f
    assert np.abs(f).max(initial=0.0) <= 1e-11 * (np.abs(V[row]).T @ np.abs(x)).max(initial=1.0)


@pytest.mark.parametrize("constraint", ["inequality", "equality"])
@pytest.mark.parametrize("slack", [s for s in NORMS if not isinstance(s, slacks.Mahalanobis)], ids=repr)
def test_interior_points_keep_no_more_than_pairs(slack, constraint, monkeypatch):
    X, y = noisy_classes()
    model = AnyNormSVC(slack, constraint, C=1e3, tol=1e-5)
    pairs = model.fit(X, y).n_vectors_, model.objective_[0]
    monkeypatch.setattr(solve, "FIRST_STEPS", 0)
    monkeypatch.setattr(solve, "FIRST_STEPS_PER_ROW", 0)
    model.fit(X, y)
    assert model.duality_gap_[0] <= 1e-5
    assert model.objective_[0] == pytest.approx(pairs[1], rel=1e-5)
    assert model.n_vectors_ <= pairs[0] + 1


@pytest.mark.parametrize("constraint", ["inequality", "equality"])
@pytest.mark.parametrize("slack", POLYHEDRAL, ids=repr)
@pytest.mark.usefixtures("no_pairs")
@pytest.mark.filterwarnings("ignore:the decision function is zero")
def test_a_kernel_of_few_dimensions_needs_few_vectors(slack, constraint):
    """Besides those at their bound, one for each dimension, one for the sum and one for the cap."""
    X, y = noisy_classes()
    model = AnyNormSVC(slack, constraint, C=1e3, kernel="linear", tol=1e-6).fit(X, y)
    assert model.duality_gap_[0] <= 1e-6
    capped = not isinstance(slack, slacks.OneNorm)
    bound = 1e3 if isinstance(slack, slacks.OneNorm | slacks.TopSum) else np.inf
    assert between_bounds(model, bound) <= X.shape[1] + 1 + capped


def test_problems_that_pairs_do_not_solve_end_at_a_vertex():
    """As many vectors as `SVC` keeps; of these, one more than inputs between the bounds."""
    X, y = noisy_classes(200, 20, 2.0)
    X = MinMaxScaler().fit_transform(X)
    model = AnyNormSVC(C=1e5, kernel="linear").fit(X, y)
    exact = SVC(C=1e5, kernel="linear", tol=1e-6).fit(X, y)
    assert model.n_iter_[0] >= solve.FIRST_STEPS + 200 * solve.FIRST_STEPS_PER_ROW  # pairs did not solve it
    assert model.duality_gap_[0] <= 1e-3
    assert abs(model.n_vectors_ - exact.n_vectors_) <= 2
    assert between_bounds(model, 1e5) <= 21


@pytest.mark.skipif(not DATA.is_dir(), reason="the benchmark data are not here")
@pytest.mark.parametrize(("name", "C", "vectors"), [("german", 8000, 380), ("ringnorm", 5000, 241)])
def test_real_data_end_at_a_vertex(name, C, vectors):
    data = np.load(DATA / f"{name}.npz")
    rows = data["train_idx"][1]
    X, y = MinMaxScaler().fit_transform(data["X"][rows].astype(float)), data["y"][rows]
    model = AnyNormSVC(C=C, kernel="linear").fit(X, y)
    assert model.duality_gap_[0] <= 1e-5
    assert model.n_vectors_ == vectors
    assert between_bounds(model, C) <= 21


@pytest.mark.parametrize(
    ("model", "tol"),
    [(SVR(epsilon=0.1), 1e-3), (SVR(epsilon=0.0), 1e-6), (NuSVR(), 1e-3), (NuSVR(nu=1.0), 1e-3)],
    ids=repr,
)
def test_regressions_that_pairs_do_not_solve(model, tol):
    """They go on to interior points after as many steps as classes do, whatever the number of variables of a row."""
    rng = np.random.default_rng(0)
    X = MinMaxScaler().fit_transform(rng.normal(size=(400, 20)))
    y = X @ rng.normal(size=20) + 0.3 * rng.normal(size=400)
    model.set_params(kernel="linear", C=1e5, tol=tol).fit(X, y)
    assert model.duality_gap_[0] <= tol
    assert model.n_iter_ <= 3 * (solve.FIRST_STEPS + 400 * solve.FIRST_STEPS_PER_ROW)
    assert between_bounds(model, 1e5) <= 25  # 20 inputs and two sums; the last steps of pairs may free others


# --- f = 0 ------------------------------------------------------------------------------------------------------------

CODES, VALUES = np.array([0, 0, 1, 1, 1, 1]), np.arange(6.0)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize(
    ("model", "y"),
    [
        (OneClassSVM(nu=0.1), None),
        (OneClassSVM(), None),
        (OneClassSVM(nu=1.0), None),
        (SVC(), CODES),
        (NuSVC(nu=0.3), CODES),
        (SVR(), VALUES),
        (SVR(epsilon=10.0), VALUES),
        (SVR(), np.full(6, 3.0)),
        (NuSVR(), VALUES),
        (NuSVR(), np.full(6, 3.0)),
        (AnyNormSVC(), CODES),
        (AnyNormSVC("l2"), CODES),
        (LeastSquaresSVC(), CODES),
    ],
    ids=repr,
)
def test_rows_of_zeros_are_solved(model, y, kernel):
    """Where the optimum is 0, both values are: nothing is left of the gap but the rounding of labels."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.set_params(kernel=kernel).fit(np.zeros((6, 2)), y)
    assert model.duality_gap_[0] <= 2e-15


def test_kernel_values_at_the_end_of_the_range():
    X = np.random.default_rng(0).normal(size=(6, 2)) * 1e-160
    model = OneClassSVM(kernel="linear")
    with pytest.warns(ConvergenceWarning):  # their last digits are gone
        model.fit(X)
    assert np.isfinite(model.objective_[0])
