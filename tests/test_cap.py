"""The cap sum(side * a) <= total on top of the box: budget machines stand on it (section 2.2).

No slack uses it yet, so these tests call the core as `slimsvm.solvers.dual` does.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import reference
from problems import blobs
from slimsvm import _core

TOL = 1e-6


@cache
def problem(n, kernel="rbf"):
    X, y = blobs(n, d=3, seed=1)
    return reference.kernel_matrix(kernel, X, X, gamma=0.5), y


def solve(K, y, lower, upper, ridge, side, total, segments=None, view=(0,), tol=TOL, **options):
    n = len(K)
    machine = _core.KernelMatrix.of_matrix(K, np.arange(n), segments or [n], 1 << 25, 1)
    return machine.solve(list(view), y, lower, upper, ridge, side, total, tol, max_steps=5_000_000, **options)


def box(y, C):
    return np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)


def check(K, y, lower, upper, ridge, side, total, found, tol=TOL):
    """Legal, as good as Clarabel's, and honest about it. Returns how much of the cap is used."""
    a = found["duals"]
    size = np.abs(a).sum()
    assert np.all(a >= lower)
    assert np.all(a <= upper)
    assert abs(a.sum()) <= 1e-12 * size
    used = side @ a
    assert used <= total * (1 + 1e-12)
    np.testing.assert_allclose(found["product"], K @ a, rtol=0, atol=1e-10 * size)
    value = y @ a - a @ K @ a / 2 - ridge @ a**2 / 2
    best = reference.solve_dual(K, y, lower, upper, ridge, side, total).value
    assert (1 - tol) * best - 1e-9 <= value <= best * (1 + 1e-7)
    assert found["dual"] == pytest.approx(value, rel=1e-9)
    assert found["converged"]
    assert -1e-12 <= found["gap"] <= tol
    assert found["gap"] >= (best - value) / value - 1e-7
    return used


@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("total", [0.5, 1.0, 2.0, 5.0, 20.0, 35.0])
def test_active_cap(total, kernel, ridge):
    """Below 2 the box is redundant (sum a = 0 leaves each class half the cap); above, both bind."""
    K, y = problem(80, kernel)
    args = (K, y, *box(y, 1.0), np.full(80, ridge), y, total)
    assert check(*args, solve(*args)) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("total", [0.5, 5.0, 50.0])
def test_no_box(total, ridge):
    """The dual of the largest slack: only the cap bounds the duals."""
    K, y = problem(80)
    args = (K, y, *box(y, np.inf), np.full(80, ridge), y, total)
    assert check(*args, solve(*args)) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("n", [80, 560])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_slack_cap_changes_nothing(n, ridge):
    """A cap of 2 C min(n+, n-) or more never binds: the machine without it."""
    K, y = problem(n)
    lower, upper = box(y, 1.0)
    capped = solve(K, y, lower, upper, np.full(n, ridge), y, 2.1 * min(np.sum(y > 0), np.sum(y < 0)))
    free = solve(K, y, lower, upper, np.full(n, ridge), None, np.inf)
    assert capped["converged"]
    assert capped["dual"] == pytest.approx(free["dual"], rel=2 * TOL)


@pytest.mark.parametrize("double_rows", [False, True], ids=["float32", "float64"])
@pytest.mark.parametrize(
    ("kernel", "total", "ridge"),
    [
        ("rbf", 60.0, 0.0),
        ("poly", 60.0, 0.1),
        # Of rank 10, and the reduced convex hulls intersect: f = 0 and the dual is the cap (section 1.4).
        ("poly", 60.0, 0.0),
        ("poly", 5.0, 0.0),
    ],
)
def test_more_than_one_block(kernel, total, ridge, double_rows):
    K, y = problem(560, kernel)
    args = (K, y, *box(y, 1.0), np.full(560, ridge), y, total)
    assert check(*args, solve(*args, double_rows=double_rows)) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("block", [2, 3, 4, 8, 32])
def test_small_blocks(block):
    """A working set too small for one of each list must take turns between them."""
    K, y = problem(80)
    args = (K, y, *box(y, 1.0), np.zeros(80), y, 20.0)
    check(*args, solve(*args, block=block))


@pytest.mark.parametrize("total", [3.0, 12.0])
def test_doubled_variables(total):
    """Equality with a cap on sum |alpha|: alpha = alpha+ - alpha-, each row twice (section 2.2)."""
    K, y = problem(60)
    side = np.concatenate([y, -y])  # alpha- has the other sign and the same label in the linear term
    linear, doubled = np.concatenate([y, y]), np.tile(K, (2, 2))
    lower, upper = box(side, 1.0)
    ridge = np.zeros(120)
    found = solve(K, linear, lower, upper, ridge, side, total, view=(0, 0))
    check(doubled, linear, lower, upper, ridge, side, total, found)
    plus, minus = found["duals"][:60], found["duals"][60:]
    assert np.abs(plus * minus).max() <= 1e-9  # never both at once


@settings(max_examples=40)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(4, 30),
    share=st.floats(0.02, 1.2),
    C=st.sampled_from([0.1, 1.0, 10.0]),
    ridge=st.sampled_from([0.0, 0.01, 1.0]),
)
def test_random_caps(seed, n, share, C, ridge):
    """Caps from a small part of what the box allows to more than it."""
    try:
        X, y = blobs(n, d=2, seed=seed)
    except AssertionError:  # one class only
        reject()
    K = reference.kernel_matrix("rbf", X, X, gamma=0.5)
    total = share * 2 * C * min(np.sum(y > 0), np.sum(y < 0))
    args = (K, y, *box(y, C), np.full(n, ridge), y, total)
    check(*args, solve(*args))


def test_a_cap_needs_sides():
    K, y = problem(80)
    with pytest.raises(ValueError, match="a cap needs the side of each variable"):
        solve(K, y, *box(y, 1.0), np.zeros(80), None, 5.0)
