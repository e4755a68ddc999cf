"""Every slack, constraint, kernel and kind of data: solved to tol, and the reference's answer."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import kernel_table
import reference
from problems import DATA_KINDS, KERNEL_CASES, MACHINES, blobs, check_optimal, machine_name
from slimsvm import AnyNormSVC

pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")

TOL = 1e-7
C = 2.0
CASES = {case.name: case for case in KERNEL_CASES}

# Zeros in most places take the core's sparse loop, few zeros its dense one, whatever container holds them.
DENSITIES = {"full": 1.0, "mostly zeros": 0.2}

machines = pytest.mark.parametrize("machine", MACHINES, ids=machine_name)
kernels = pytest.mark.parametrize("case", KERNEL_CASES, ids=lambda case: case.name)
densities = pytest.mark.parametrize("density", DENSITIES)


@cache
def problem(density):
    X, y = blobs(56, d=6, seed=3, density=DENSITIES[density])
    return X, y, blobs(23, d=6, seed=4, density=DENSITIES[density])[0]


@cache
def optimum(machine, name, density):
    X, y, _ = problem(density)
    K = CASES[name].matrix(X, X)
    return reference.solve(K, y, machine[0], C, machine[1])


@densities
@kernels
@machines
def test_reference_dual_equals_reference_primal(machine, case, density):
    """Strong duality: what the library is compared with is itself proven."""
    X, y, _ = problem(density)
    primal = reference.solve_primal(case.matrix(X, X), y, machine[0], C, machine[1])
    assert primal.value == pytest.approx(optimum(machine, case.name, density).value, rel=1e-8)


@pytest.mark.parametrize("kind", DATA_KINDS)
@densities
@kernels
@machines
def test_solution_is_the_reference_one(machine, case, density, kind, tmp_path):
    X, y, X_new = problem(density)
    slack, constraint = machine
    rows = DATA_KINDS[kind](case.training_input(X), tmp_path)
    model = AnyNormSVC(slack, constraint, C=C, tol=TOL, **case.params).fit(rows, y)
    K = case.matrix(X, X)
    check_optimal(model, K, y, C, optimum(machine, case.name, density))
    # Prediction is the expansion over the vectors, in the same container and in any other.
    new = case.test_input(X_new, X)
    expected = case.matrix(X_new, X)[:, model.support_] @ model.vector_coef_[0] + model.intercept_[0]
    for rows in (new, DATA_KINDS[kind](new, tmp_path)):
        single = rows.dtype == np.float32  # float32 in, float32 work
        scale = np.abs(model.vector_coef_).sum() * np.abs(K).max()
        np.testing.assert_allclose(
            model.decision_function(rows), expected, rtol=0, atol=scale * (1e-5 if single else 1e-12)
        )


@pytest.mark.parametrize("kind", DATA_KINDS)
@machines
def test_sigmoid_where_it_is_positive_semidefinite(machine, kind, tmp_path):
    """More columns than rows and a small gamma: tanh(gamma x.z) is then nearly linear, and definite."""
    X, y = blobs(24, d=60, seed=5)
    K = reference.kernel_matrix("sigmoid", X, X, gamma=0.004)
    assert np.linalg.eigvalsh(K)[0] > 1e-3
    slack, constraint = machine
    model = AnyNormSVC(slack, constraint, C=C, kernel="sigmoid", gamma=0.004, tol=TOL)
    model.fit(DATA_KINDS[kind](X, tmp_path), y)
    check_optimal(model, K, y, C, reference.solve(K, y, slack, C, constraint))


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 100.0, 1e5])
@pytest.mark.parametrize(
    "case", [c for c in KERNEL_CASES if c.name in kernel_table.names(radial=True)], ids=lambda c: c.name
)
@machines
def test_every_size_of_C(machine, case, C):
    X, y = blobs(50, seed=6)
    slack, constraint = machine
    model = AnyNormSVC(slack, constraint, C=C, tol=TOL, **case.params).fit(X, y)
    K = case.matrix(X, X)
    check_optimal(model, K, y, C, reference.solve(K, y, slack, C, constraint))


@kernels
@machines
def test_unequal_costs(machine, case):
    """Each sample has its own C: the dual sets and the bias must use it."""
    X, y = blobs(40, seed=7)
    slack, constraint = machine
    weight = np.random.default_rng(7).uniform(0.1, 3, size=len(y))
    model = AnyNormSVC(slack, constraint, C=C, tol=TOL, **case.params)
    model.fit(case.training_input(X), y, sample_weight=weight)
    K = case.matrix(X, X)
    check_optimal(model, K, y, C, reference.solve(K, y, slack, C, constraint, weight), weights=weight)


@machines
def test_input_is_left_as_it_was(machine, tmp_path):
    """fit and predict never write to the user's arrays, nor need to be able to."""
    slack, constraint = machine
    X, y = blobs(30, density=0.4)
    for kind in ("C order", "F order", "CSR", "CSR 64-bit indices"):
        rows = DATA_KINDS[kind](X, tmp_path)
        parts = [rows] if isinstance(rows, np.ndarray) else [rows.data, rows.indices, rows.indptr]
        before = [part.copy() for part in parts]
        for part in parts:
            part.flags.writeable = False
        AnyNormSVC(slack, constraint).fit(rows, y).predict(rows)
        for part, copy in zip(parts, before, strict=True):
            np.testing.assert_array_equal(part, copy)
