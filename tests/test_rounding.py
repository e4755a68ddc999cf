"""Rounding errors of f = K duals: compensated sums lose no digits, and estimates cover what long double shows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from slimsvm import AnyNormSVC, LeastSquaresSVC, kernels
from slimsvm.solvers.rounding import accurate_product, compensated_sums, error_of_product

KERNELS = {
    "linear": (kernels.Linear(), 1),
    "cubic": (kernels.Polynomial(gamma=0.5, degree=3, coef0=1.0), 3),
    "tenth": (kernels.Polynomial(gamma=0.5, degree=10, coef0=0.0), 10),
    "gaussian": (kernels.Gaussian(0.3), 0),
}


def in_long_double(kernel, X):
    X = X.astype(np.longdouble)
    if isinstance(kernel, kernels.Gaussian):
        return np.exp(-np.longdouble(kernel.gamma) * ((X[:, None] - X) ** 2).sum(axis=2))
    if isinstance(kernel, kernels.Linear):
        return X @ X.T
    return (np.longdouble(kernel.gamma) * (X @ X.T) + np.longdouble(kernel.coef0)) ** kernel.degree


def problem(seed, n=120):
    """Rows of different sizes; duals of one class after those of the other, so that their sums grow and then shrink."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)) * 10.0 ** rng.uniform(-1, 1, (n, 1))
    a = np.sort(np.sign(rng.normal(size=n))) * 10.0 ** rng.uniform(-3, 3, n)
    return X, a


@pytest.mark.parametrize("seed", range(5))
def test_compensated_sums_lose_no_digits(seed):
    rng = np.random.default_rng(seed)
    terms = rng.normal(size=(20, 50)) * 10.0 ** rng.uniform(-8, 8, (20, 50))
    terms[:, 25:] = -terms[:, :25] * (1 + 1e-12 * rng.normal(size=(20, 25)))
    exact = np.array([float(sum(map(Fraction, row.tolist()))) for row in terms])
    np.testing.assert_allclose(compensated_sums(terms), exact, rtol=1e-12)
    assert np.abs(terms.sum(axis=1) / exact - 1).max() > 1e-12


@pytest.mark.parametrize("name", KERNELS)
def test_errors_of_products_are_covered(name):
    """Three standard deviations: of 1,200 values hardly one may be further off, and estimates are no wild guesses."""
    kernel, degree = KERNELS[name]
    plain, accurate = [], []
    for seed in range(10):
        X, a = problem(seed)
        K, sizes = kernel(X, X), np.sqrt(kernel(X, X).diagonal())
        truth = in_long_double(kernel, X) @ a.astype(np.longdouble)
        plain.append(np.abs(K @ a - truth) / error_of_product(sizes, a, degree))
        f, error = accurate_product(K, sizes, a, degree)
        accurate.append(np.abs(f - truth) / error)
        assert (error <= error_of_product(sizes, a, degree)).all()
    for ratios in (np.ravel(plain), np.ravel(accurate)):
        assert np.mean(ratios > 1) < 0.005
        assert ratios.max() > 1e-3


@pytest.mark.parametrize("cls", [AnyNormSVC, LeastSquaresSVC])
def test_a_certificate_counts_the_rounding_of_powers(cls):
    """Beyond that rounding a fit warns; the gap that it tells is then no smaller than rounding can make it."""
    X, a = problem(0)
    y = np.where(a > 0, 1, -1)
    with pytest.warns(match="got no further"):
        model = cls(kernel="poly", gamma=0.5, degree=10, coef0=0.0, C=1e4, tol=1e-12).fit(X, y)
    duals = np.zeros(len(X))
    duals[model.support_] = model.vector_coef_[0]
    off = np.abs(model.kernel_(X, X) @ duals - in_long_double(model.kernel_, X) @ duals)
    assert model.duality_gap_[0] * model.objective_[0] >= np.linalg.norm(duals * off)
