"""Problems where a solver divides by zero, runs in circles or stops too early."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernel_table
import reference
from problems import KERNEL_CASES, MACHINES, blobs, check_optimal, machine_name
from slimsvm import AnyNormSVC

pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")

TOL = 1e-6
CASES = {case.name: case for case in KERNEL_CASES}
machines = pytest.mark.parametrize("machine", MACHINES, ids=machine_name)


def opposite_twins():
    """Every row twice, once in each class: no function of x can tell them apart."""
    X, _ = blobs(20, seed=1)
    return np.vstack([X, X]), np.repeat([1.0, -1.0], 20)


def twins():
    """Every row five times with the same label: pairs of zero curvature, duals that are not unique."""
    X, y = blobs(12, seed=2)
    return np.tile(X, (5, 1)), np.tile(y, 5)


def one_location():
    """All rows equal: the kernel matrix is constant."""
    return np.ones((30, 3)), np.where(np.arange(30) < 11, 1.0, -1.0)


def zero_rows():
    """A linear kernel that is zero everywhere: f = 0, only the bias is left."""
    return np.zeros((25, 3)), np.where(np.arange(25) < 10, 1.0, -1.0)


def one_column():
    """Rank one."""
    X, y = blobs(40, d=2, seed=3)
    return X[:, :1], y


def one_positive():
    X, _ = blobs(60, seed=4)
    return X, np.where(np.arange(60) == 17, 1.0, -1.0)


def two_points():
    return np.array([[0.5, 1.0], [-0.25, 0.0]]), np.array([1.0, -1.0])


def two_equal_points():
    return np.ones((2, 2)), np.array([1.0, -1.0])


def separable():
    """Far apart: all slacks vanish, the bias of the hinge is an interval."""
    X, y = blobs(40, seed=5, noise=0)
    X[:, 0] += 10 * y
    return X, y


def grid():
    """Integers: ties between candidates everywhere."""
    points = np.array([(i, j) for i in range(7) for j in range(7)], dtype=float)
    return points, np.where((points.sum(axis=1) % 3) < 1, 1.0, -1.0)


PROBLEMS = [
    opposite_twins,
    twins,
    one_location,
    zero_rows,
    one_column,
    one_positive,
    two_points,
    two_equal_points,
    separable,
    grid,
]


def check(X, y, machine, case, C, tol=TOL):
    slack, constraint = machine
    model = AnyNormSVC(slack, constraint, C=C, tol=tol, **case.params).fit(case.training_input(X), y)
    K = case.matrix(X, X)
    check_optimal(model, K, y, C, reference.solve(K, y, slack, C, constraint))


@pytest.mark.filterwarnings("ignore:kernel values")
@pytest.mark.parametrize("C", [1e-4, 1.0, 100.0])
@pytest.mark.parametrize("kernel", kernel_table.names(semidefinite=True))
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.__name__)
@machines
def test_degenerate(machine, problem, kernel, C):
    check(*problem(), machine, CASES[kernel], C)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@machines
def test_many_rows_few_columns(machine, kernel):
    check(*blobs(300, d=2, seed=6), machine, CASES[kernel], 10.0)


@pytest.mark.parametrize("problem", [opposite_twins, twins, one_positive, separable, grid], ids=lambda p: p.__name__)
@machines
def test_degenerate_with_large_C(machine, problem):
    check(*problem(), machine, CASES["rbf"], 1e5)


@pytest.mark.parametrize("C", [1e4, 1e5])
@machines
def test_linear_kernel_with_large_C(machine, C):
    """Not separable, rank two, and slacks that cost much: SMO's hardest ground, so tol is the default."""
    check(*blobs(30, d=2, seed=6), machine, CASES["linear"], C, tol=1e-3)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
@machines
def test_unscaled_features(machine, scale):
    """The kernel's size must not matter to what counts as flat: C / scale^2 is the same problem, scaled."""
    X, y = blobs(40, seed=8)
    slack, constraint = machine
    C = 1 / scale**2
    model = AnyNormSVC(slack, constraint, C=C, kernel="linear", tol=TOL).fit(scale * X, y)
    K = reference.kernel_matrix("linear", X, X)
    optimum = reference.solve(K, y, slack, 1.0, constraint)
    assert model.duality_gap_[0] <= TOL
    assert model.objective_[0] * scale**2 == pytest.approx(optimum.value, rel=2 * TOL)


# --- Random small problems: hypothesis looks for the worst --------------------------------------------------


@st.composite
def small_problems(draw):
    """Few rows of small integers, so that equal rows and exact ties are common; both classes occur."""
    n, d = draw(st.integers(2, 14)), draw(st.integers(1, 3))
    entries = st.lists(st.integers(-2, 2), min_size=d, max_size=d)
    X = np.array(draw(st.lists(entries, min_size=n, max_size=n)), dtype=float)
    y = np.array([1.0, -1.0, *draw(st.lists(st.sampled_from([1.0, -1.0]), min_size=n - 2, max_size=n - 2))])
    return X, y


@pytest.mark.filterwarnings("ignore:kernel values")
@machines
@settings(max_examples=40)
@given(
    problem=small_problems(),
    case=st.sampled_from(KERNEL_CASES),
    C=st.sampled_from([1e-3, 0.1, 1.0, 10.0, 1000.0]),
    weighted=st.booleans(),
)
def test_any_small_problem(machine, problem, case, C, weighted):
    slack, constraint = machine
    X, y = problem
    weight = 1.0 + np.arange(len(y)) % 3 if weighted else np.ones(len(y))
    model = AnyNormSVC(slack, constraint, C=C, tol=TOL, **case.params)
    model.fit(case.training_input(X), y, sample_weight=weight)
    K = case.matrix(X, X)
    check_optimal(model, K, y, C, reference.solve(K, y, slack, C, constraint, weight), weights=weight)


@machines
@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), n=st.integers(5, 80), d=st.integers(1, 5), C=st.floats(1e-3, 1e3))
def test_random_linear_problems_are_certified(machine, seed, n, d, C):
    """More rows than columns: the free vectors outnumber the rank, and their duals are not unique."""
    slack, constraint = machine
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.permutation(np.where(np.arange(n) < max(1, n // 3), 1.0, -1.0))
    model = AnyNormSVC(slack, constraint, C=C, kernel="linear", tol=1e-5).fit(X, y)
    check_optimal(model, X @ X.T, y, C)
