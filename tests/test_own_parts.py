"""Parts that a reader writes, as the documentation shows them: each is compared with something independent."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.gaussian_process.kernels import ExpSineSquared
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel

import pages
from problems import blobs
from slimsvm import AnyNormSVC, SlimSVC, bases
from slimsvm.problem.formulation import CONSTRAINTS

ROOT = Path(__file__).parent.parent
NAMES = ["norm", "kernel", "basis", "loss"]


@pytest.fixture
def own(monkeypatch):
    """The modules of examples/own, by name."""
    if not (ROOT / "examples" / "own").exists():
        pytest.skip("the examples are not beside the tests")
    monkeypatch.syspath_prepend(ROOT / "examples")
    yield lambda name: importlib.import_module(f"own.{name}")
    for module in [module for module in sys.modules if module.partition(".")[0] == "own"]:
        del sys.modules[module]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", NAMES)
def test_the_page_shows_what_the_program_prints(own, name):
    page = (ROOT / "docs" / "own_parts.md").read_text()
    shown = re.search(rf"own/{name}\.py\n.*?^```text\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)[1]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        own(name).main()
    assert pages.agrees(shown, printed.getvalue()), printed.getvalue()


@pytest.mark.filterwarnings("error")
def test_norms_count_rows_by_their_weights(own):
    """Certified, and a row of weight 3 is that row three times."""
    names = pages.names(ROOT / "docs" / "own_slack.md")
    X, y = blobs(60, noise=0.2)
    copies = 1 + np.arange(60) % 3
    for slack in (own("norm").HuberHinge(0.5), names.BallAndCap(1.0, 4.0)):
        for constraint in CONSTRAINTS:
            model = AnyNormSVC(slack, constraint, C=3.0, gamma=0.3, tol=1e-6)
            weighted = clone(model).fit(X, y, sample_weight=copies)
            repeated = clone(model).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
            assert weighted.duality_gap_[0] <= 1e-6
            assert weighted.objective_[0] == pytest.approx(repeated.objective_[0], rel=3e-6)


@pytest.mark.parametrize("delta", [0.2, 1.5])
def test_the_huber_hinge_is_that_of_a_conic_solver(own, delta):
    cp = pytest.importorskip("cvxpy")
    X, labels = make_moons(50, noise=0.3, random_state=0)
    y, K, C = np.where(labels > 0, 1.0, -1.0), rbf_kernel(X, gamma=1.0), 2.0
    root = np.linalg.cholesky(K + 1e-12 * np.eye(50))
    w, b = cp.Variable(50), cp.Variable()
    slack = cp.pos(1 - cp.multiply(y, root @ w + b))
    cost = 0.5 * cp.sum_squares(w) + C * cp.sum(cp.huber(slack, delta)) / (2 * delta)
    best = cp.Problem(cp.Minimize(cost)).solve(solver=cp.CLARABEL)
    clf = AnyNormSVC(own("norm").HuberHinge(delta), kernel="precomputed", C=C, tol=1e-8).fit(K, y)
    assert clf.objective_[0] == pytest.approx(best, rel=1e-6)


def test_the_periodic_kernel_is_that_of_gaussian_processes(own):
    rng = np.random.default_rng(0)
    X, Z = rng.uniform(0, 24, size=(9, 1)), rng.uniform(0, 24, size=(4, 1))
    other = ExpSineSquared(length_scale=0.7, periodicity=24.0)
    kernel = own("kernel").Periodic(24.0, 0.7)
    assert np.allclose(kernel(X, Z), other(X, Z))
    assert np.allclose(kernel(X + 24.0, Z), kernel(X, Z))


def by_differences(kernel, X, Z, W, step=1e-6):
    """The pullback of a kernel by finite differences."""
    found = np.zeros_like(Z)
    for k in range(Z.shape[1]):
        moved = step * np.eye(Z.shape[1])[k]
        found[:, k] = (W * (kernel(X, Z + moved) - kernel(X, Z - moved))).sum(axis=0) / (2 * step)
    return found


def test_its_pullback_is_the_derivative(own):
    rng = np.random.default_rng(0)
    X, Z, W = rng.uniform(0, 24, size=(9, 2)), rng.uniform(0, 24, size=(4, 2)), rng.normal(size=(9, 4))
    kernel = own("kernel").Periodic(24.0, 0.7)
    assert np.allclose(kernel.pullback(X, Z, W), by_differences(kernel, X, Z, W), atol=1e-6)


def test_typical_rows_are_the_nearest_to_the_centres(own):
    X, y = make_moons(300, noise=0.2, random_state=0)
    setting = {"C": 1.0, "gamma": 1.0, "scales": "fixed"}
    centres = SlimSVC(8, bases.KMeans(), **setting).fit(X, y).vectors_
    clf = SlimSVC(8, own("basis").Typical(), **setting).fit(X, y)
    assert np.array_equal(X[clf.support_], clf.vectors_)
    assert set(clf.support_) == set(euclidean_distances(centres, X).argmin(axis=1))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_logistic_regression_over_vectors_is_that_of_scikit_learn(own, C):
    """The same objective, and a gap that closes: losses need not be piecewise quadratic."""
    X, labels = make_moons(300, noise=0.3, random_state=0)
    y = np.where(labels > 0, 1.0, -1.0)
    clf = SlimSVC(
        10, "forward", slack=own("loss").Logistic(), C=C, gamma=1.0, scales="fixed", regularizer="identity"
    ).fit(X, y)
    features = rbf_kernel(X, clf.vectors_, gamma=1.0)
    other = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(features, y)
    w, values = other.coef_[0], other.decision_function(features)
    assert clf.objective_[0] == pytest.approx(0.5 * w @ w + C * np.logaddexp(0, -y * values).sum(), rel=1e-8)
    assert np.allclose(clf.decision_function(X), values, atol=1e-3)
    assert clf.duality_gap_[0] <= 1e-6


def test_several_classes_take_a_loss_of_the_reader(own):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=150)
    X = 1.5 * np.eye(3)[y] + rng.normal(size=(150, 3))
    clf = SlimSVC(6, slack=own("loss").Logistic(), C=1.0, gamma=0.3, scales="fixed").fit(X, y)
    assert (clf.duality_gap_ <= 1e-6).all()
    assert clf.score(X, y) > 0.6


def test_a_loss_that_lacks_a_method_is_told_which(own):
    class Half:
        smooth = True

        def value(self, F, Y, C):
            return 0.0

    with pytest.raises(ValueError, match="lacks conjugate, duals, curvature"):
        SlimSVC(3, slack=Half()).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
