"""More rows than one working set: float32 rows, rounds of blocks, a cache that must let rows go, threads."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

import kernel_table
import reference
from problems import KERNEL_CASES, MACHINES, blobs, check_optimal, machine_name
from slimsvm import AnyNormSVC, _core

pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")

TOL = 1e-6
N = 700  # more than the 512 variables of a block
CASES = {case.name: case for case in KERNEL_CASES}

machines = pytest.mark.parametrize("machine", MACHINES, ids=machine_name)
kernels = pytest.mark.parametrize("case", KERNEL_CASES, ids=lambda case: case.name)


@cache
def problem(density=1.0):
    return blobs(N, d=6, seed=1, density=density)


@cache
def matrix(name, density=1.0):
    X, _ = problem(density)
    return CASES[name].matrix(X, X)


@cache
def exact(machine, name):
    """The same problem with float64 rows and a smaller tol."""
    X, y = problem()
    return fit(machine, CASES[name], X, y, precision="float64", tol=1e-8)


def fit(machine, case, X, y, tol=TOL, **params):
    slack, constraint = machine
    model = AnyNormSVC(slack, constraint, tol=tol, **{**case.params, **params})
    return model.fit(case.training_input(X), y)


@kernels
@machines
def test_certified(machine, case):
    X, y = problem()
    check_optimal(fit(machine, case, X, y), matrix(case.name), y, 1.0)


@pytest.mark.parametrize(
    "params",
    [{"precision": "float64"}, {"cache_size": 0.5}, {"n_jobs": 2}, {"n_jobs": 2, "cache_size": 0.5}],
    ids=str,
)
@pytest.mark.parametrize("name", ["rbf", "linear", "precomputed", "callable"])
@machines
def test_same_solution_however_it_is_computed(machine, name, params):
    """Half a megabyte holds 180 of 700 rows: the working set shrinks, and rows are dropped and come back."""
    X, y = problem()
    model, best = fit(machine, CASES[name], X, y, **params), exact(machine, name)
    K = matrix(name)
    check_optimal(model, K, y, 1.0)
    assert model.objective_[0] == pytest.approx(best.objective_[0], rel=2 * TOL)
    new = CASES[name].test_input(X[:50], X)
    # |f - f*| <= sqrt(2 gap), as in check_optimal, for both of them.
    reach = 2 * np.sqrt(2 * TOL * best.objective_[0] * K.diagonal().max())
    difference = model.decision_function(new) - best.decision_function(new)
    assert np.abs(difference - (model.intercept_[0] - best.intercept_[0])).max() <= reach


@pytest.mark.parametrize("name", [*kernel_table.names(radial=True), "linear"])
@machines
def test_sparse_rows(machine, name):
    X, y = problem(density=0.2)
    slack, constraint = machine
    model = AnyNormSVC(slack, constraint, tol=TOL, **CASES[name].params).fit(sp.csr_array(X), y)
    check_optimal(model, matrix(name, density=0.2), y, 1.0)


@pytest.mark.parametrize("cache_size", [1e-3, 0.02, 0.2])
@machines
def test_any_cache_size_reaches_tol(machine, cache_size):
    """A cache for a handful of rows makes the fit slow, not wrong: it goes on as long as it gets better."""
    X, y = problem()
    model = fit(machine, CASES["poly"], X, y, C=10.0, tol=1e-3, cache_size=cache_size)
    check_optimal(model, matrix("poly"), y, 10.0)


@machines
def test_three_working_sets(machine):
    X, y = blobs(1500, d=5, seed=2)
    model = fit(machine, CASES["rbf"], X, y, C=10.0, tol=1e-5)
    check_optimal(model, CASES["rbf"].matrix(X, X), y, 10.0)


def test_reference_agrees_beyond_one_block():
    """Clarabel is slow at this size: once is enough, the certificate proves the other cases."""
    X, y = blobs(530, d=3, seed=3)
    K = CASES["poly"].matrix(X, X)
    machine = MACHINES[0]
    check_optimal(fit(machine, CASES["poly"], X, y), K, y, 1.0, reference.solve(K, y, machine[0], 1.0, machine[1]))


# --- The block size and a warm start, through the core ------------------------------------------------------


def solve_hinge(X, y, C=1.0, tol=1e-7, start=None, **options):
    K = CASES["rbf"].matrix(X, X)
    n = len(y)
    machine = _core.KernelMatrix.of_matrix(K, np.arange(n), [n], 1 << 24, 1)
    lower, upper = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
    return machine.solve([0], y, lower, upper, np.zeros(n), None, np.inf, tol, start=start, **options)


@pytest.mark.parametrize("block", [2, 3, 4, 8, 16, 64])
def test_any_block_size(block):
    """Two variables are a working set too: that is plain SMO."""
    X, y = blobs(80, seed=4)
    whole, found = solve_hinge(X, y), solve_hinge(X, y, block=block)
    assert found["converged"]
    assert found["dual"] == pytest.approx(whole["dual"], rel=2e-7)


@pytest.mark.parametrize("n", [80, N])
def test_a_solution_is_a_start(n):
    """From the solution itself the solver has next to nothing left to do."""
    X, y = blobs(n, seed=5)
    cold = solve_hinge(X, y)
    warm = solve_hinge(X, y, start=cold["duals"])
    assert warm["converged"]
    assert warm["steps"] <= cold["steps"] // 10
    assert warm["dual"] == pytest.approx(cold["dual"], rel=2e-7)
