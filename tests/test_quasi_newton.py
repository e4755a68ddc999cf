"""L-BFGS beside scipy's L-BFGS-B: the same way, and ends that are as good."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from problems import blobs
from slimsvm import kernels
from slimsvm.basis.learning import FusedObjective
from slimsvm.linalg.lbfgs import lbfgs
from slimsvm.problem.losses import SquaredHinge
from slimsvm.problem.regularizers import KernelNorm
from slimsvm.rows.labels import RowLabels


def rosenbrock(size):
    return lambda x: (rosen(x), rosen_der(x)), np.full(size, -1.0)


def quadratic(size, condition, seed=0):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((size, size)))[0]
    H, b = (Q * np.geomspace(1, condition, size)) @ Q.T, rng.standard_normal(size)
    return lambda x: (0.5 * x @ H @ x - b @ x, H @ x - b), np.zeros(size)


def logistic(size):
    rng = np.random.default_rng(1)
    A, y = rng.standard_normal((6 * size, size)), np.sign(rng.standard_normal(6 * size))

    def value(w):
        z = y * (A @ w)
        return np.logaddexp(0, -z).sum() + 0.05 * w @ w, A.T @ (-y / (1 + np.exp(z))) + 0.1 * w

    return value, np.zeros(size)


def learning(scaled):
    X, y = blobs(200, d=3)
    labels = RowLabels(np.where(y == y[0], 1.0, -1.0)[:, None], np.ones((len(y), 1)))
    objective = FusedObjective(kernels.Gaussian(0.5), X, labels, SquaredHinge(), KernelNorm(), 8, scaled)
    return objective, objective.pack(X[::25], None)


def both(function, start, bounds=None, max_iter=200, tol=1e-9):
    """What scipy and we find, and all that was asked on the way."""
    asked = [], []

    def watched(places):
        def value(x):
            places.append(np.array(x))
            return function(x)

        return value

    options = {"maxiter": max_iter, "maxcor": 20, "ftol": tol, "gtol": 1e-9, "maxfun": 3 * max_iter}
    pairs = None if bounds is None else list(zip(*bounds, strict=True))
    theirs = minimize(watched(asked[0]), start, jac=True, method="L-BFGS-B", bounds=pairs, options=options)
    ours = lbfgs(watched(asked[1]), start, bounds, max_iter, 3 * max_iter, tol)
    return theirs, ours, asked


@pytest.mark.parametrize(
    "problem",
    [
        lambda: rosenbrock(100),
        lambda: quadratic(60, 1e6),
        lambda: logistic(30),
        lambda: learning(False),
        lambda: learning(True),
    ],
    ids=["Rosenbrock", "quadratic", "logistic", "vectors", "vectors and scales"],
)
def test_the_way_is_that_of_scipy(problem):
    function, start = problem()
    bounds = function.bounds() if isinstance(function, FusedObjective) else None
    _, _, (theirs, ours) = both(function, start, bounds, 12)
    assert len(theirs) == len(ours)
    for x, own in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(own, x, rtol=1e-8, atol=1e-8 * np.abs(x).max())


@pytest.mark.parametrize("upper", [0.6, np.inf])
@pytest.mark.parametrize(
    "function", [logistic(30), rosenbrock(40), quadratic(50, 1e3)], ids=["log", "Rosenbrock", "square"]
)
def test_bounds_that_hold(function, upper):
    """No variable can follow its derivative at the end, and the value is scipy's."""
    function, start = function
    lower, upper = np.full(len(start), -0.1), np.full(len(start), upper)
    theirs, ours, (_, asked) = both(function, start, (lower, upper), 2000, 1e-13)
    assert all(((x >= lower) & (x <= upper)).all() for x in asked)
    value, gradient = function(ours.x)
    assert value == ours.value
    assert np.abs(np.clip(ours.x - gradient, lower, upper) - ours.x).max() <= 1e-4
    assert np.isinf(upper).all() or ((ours.x == lower) | (ours.x == upper)).any()
    assert ours.value <= theirs.fun + 1e-8 * max(1.0, abs(theirs.fun))


def test_ends_are_as_good():
    for (function, start), iterations in ((rosenbrock(300), 3000), (quadratic(100, 1e4), 1000)):
        theirs, ours, _ = both(function, start, None, iterations)
        assert not ours.limited
        assert ours.value <= theirs.fun + 1e-6 * max(1.0, abs(theirs.fun))


def test_limits_and_the_watch():
    function, start = rosenbrock(20)
    seen: list[float] = []
    found = lbfgs(function, start, max_iter=7, watch=seen.append)
    assert found.limited
    assert found.n_iter == len(seen) == 7
    assert seen[-1] == found.value == function(found.x)[0]
    assert lbfgs(function, start, max_values=9).n_values <= 9 + 20
    assert lbfgs(function, np.ones(20)).n_iter == 0  # nothing to gain


def test_a_function_that_says_too_far_is_left_behind():
    """As the objective of vectors does where numbers overflow: a huge value, no slope."""

    def walled(x):
        return (1e30, np.zeros_like(x)) if np.abs(x).max() > 3 else (float(np.cosh(x).sum() + x.sum()), np.sinh(x) + 1)

    found = lbfgs(walled, np.full(5, 2.9))
    np.testing.assert_allclose(found.x, -np.arcsinh(1), atol=1e-4)
    assert lbfgs(lambda x: (float(np.abs(x).sum()), -np.sign(x)), np.ones(3)).value == 3  # the gradient is wrong: stuck


def test_a_start_outside_is_moved_to_the_bounds():
    function, _ = quadratic(5, 10)
    found = lbfgs(function, np.full(5, 9.0), (np.full(5, -1.0), np.full(5, 1.0)))
    assert np.abs(found.x).max() <= 1
