"""Every norm on problems made to break it: weights over twelve orders of magnitude, copies, rank one, any C and scale.

Judged in long double from the model as returned: its objective, and the dual value of its coefficients once they sum
to zero.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import kernel_table
import reference
from problems import NORMS, all_duals, blobs, fitted_to, spread
from slack_table import entry_of
from slimsvm import AnyNormSVC, slacks
from slimsvm.problem.formulation import CONSTRAINTS, EQUALITY, INEQUALITY, FeasibleSet
from slimsvm.solvers.certificate import balanced
from slimsvm.solvers.dual import interior
from slimsvm.solvers.dual.solve import BinaryDual

pytestmark = pytest.mark.filterwarnings("ignore:the decision function is zero", "ignore:kernel values")
Long = np.longdouble


def true_gap(model, X, y, weights):
    """Objective and relative gap of the model, and how far its coefficients are from summing to zero."""
    slack, name = slacks.resolve(model.slack), model.kernel
    rows = X.astype(Long)
    K = kernel_table.matrix(name, rows, rows, gamma=Long(model.gamma), coef0=Long(model.coef0), degree=model.degree)
    a = spread(all_duals(model, len(y)), K.astype(float), y, weights).astype(Long)
    b, w, C = Long(model.intercept_[0]), weights.astype(Long), Long(model.C)
    f = K @ a
    primal = a @ f / 2 + reference.loss(slack, y.astype(Long), C, f, b, model.constraint, w)
    even = balanced(a)
    even = even / (1 + max(reference.overshoot(slack, y, even.astype(float), model.C, model.constraint, weights), 0))
    dual = y @ even - even @ K @ even / 2 - (entry_of(slack).ridge(C, w) * even**2).sum() / 2
    gap = (primal - dual) / dual if dual > 0 else np.inf
    return float(primal), float(gap), float(abs(a.sum()) / np.abs(a).sum())


def fit(slack, constraint, X, y, weights, **params):
    """The model, whether it warned that it missed tol, and the seconds it took."""
    model = AnyNormSVC(slack, constraint, **params)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(X, y, sample_weight=weights)
    warned = any(issubclass(w.category, ConvergenceWarning) for w in seen)
    assert not any(issubclass(w.category, RuntimeWarning) for w in seen)
    return model, warned, time.perf_counter() - start


def check(model, warned, seconds, X, y, weights):
    primal, gap, off = true_gap(model, X, y, weights)
    assert np.isfinite(primal)
    assert warned == (model.duality_gap_[0] > model.tol)
    assert off <= 1e-11
    assert seconds < 20
    # The last digits of f are an estimate: where they are most of the gap, it may be off by a small factor.
    assert gap <= 3 * model.duality_gap_[0] + 1e-9
    assert primal == pytest.approx(model.objective_[0], rel=3 * model.duality_gap_[0] + 1e-9)
    if not warned:
        assert gap <= max(10 * model.tol, 1e-5)


def hostile(seed):
    """Rows, labels, weights and the parameters of a machine."""
    r = np.random.default_rng(seed)
    n, d, scale = int(r.choice([3, 5, 8, 15, 30, 60])), int(r.integers(1, 6)), float(r.choice([1, 1, 1e-3, 1e3]))
    X = {
        "plain": lambda: r.standard_normal((n, d)),
        "copies": lambda: r.standard_normal((n, d))[r.integers(0, max(2, n // 3), n)],
        "rank one": lambda: np.outer(r.standard_normal(n), r.standard_normal(d)),
        "integers": lambda: r.integers(0, 3, (n, d)).astype(float),
    }[str(r.choice(["plain", "copies", "rank one", "integers"]))]()
    y = np.where(r.random(n) < r.choice([0.5, 0.2, 0.8]), 1.0, -1.0)
    y[:2] = 1, -1
    if r.random() < 0.2:
        X[:, 0] += 4 * y
    kinds = [np.ones(n), r.lognormal(0, 1, n), 10 ** r.uniform(-6, 6, n), np.where(r.random(n) < 0.5, 1e-6, 1e6)]
    weights = kinds[int(r.integers(4))]
    part = float(weights.sum() * 10 ** r.uniform(-4, 0))
    norms = [slacks.OneNorm(), slacks.SquaredTwoNorm(), slacks.TwoNorm(), slacks.MaxNorm(), slacks.TopSum(part)]
    norms += [slacks.TopTwoNorm(part), slacks.OneTwoNorm(np.sqrt(part))]
    norms += [slacks.PNorm(float(p)) for p in r.choice([1.05, 1.2, 1.5, 3.0, 10.0, 100.0], 3)]
    params = {
        "slack": norms[int(r.integers(len(norms)))],
        "constraint": str(r.choice(list(CONSTRAINTS))),
        "C": float(10 ** r.uniform(-3, 6)),
        "kernel": str(r.choice(["rbf", "linear", "poly"])),
        "gamma": float(10 ** r.uniform(-2, 1) / scale**2),
        "coef0": float(r.choice([0.0, 1.0])),
        "degree": int(r.choice([2, 3])),
        "tol": float(r.choice([1e-3, 1e-5])),
    }
    return scale * X, y, weights, params


@pytest.mark.parametrize("block", range(6))
def test_hostile_problems(block):
    for seed in range(40 * block, 40 * block + 40):
        X, y, weights, params = hostile(seed)
        check(*fit(**params, X=X, y=y, weights=weights), X, y, weights)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("p", [1.05, 1.2, 100.0])
def test_powers_with_hostile_weights(p, constraint):
    """Took from 12 to more than 25 seconds."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((70, 3))
    y = np.where(X[:, 0] + rng.standard_normal(70) > 0, 1.0, -1.0)
    for weights in (rng.lognormal(0, 2, 70), 10 ** rng.uniform(-6, 6, 70)):
        for C in (1e-3, 1.0, 1e3):
            model, warned, seconds = fit(
                slacks.PNorm(p), constraint, X, y, weights, C=C, gamma=0.5, coef0=0.0, kernel="rbf"
            )
            assert not warned
            check(model, warned, seconds, X, y, weights)


def test_coefficients_of_one_sign_are_no_proof():
    """Steps of 1e-5 are lost beside duals of 1e5: their sum drifted, and a machine with one class came with gap 0."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, weights = rng.standard_normal((10, 2)), 10 ** np.linspace(np.log10(8e-6), 5, 10)
        y = np.where(rng.random(10) < 0.5, 1.0, -1.0)
        y[:2] = 1, -1
        model, warned, seconds = fit(
            slacks.PNorm(100.0), "inequality", X, y, weights, C=0.01, gamma=1.0, coef0=0.0, kernel="rbf"
        )
        assert model.vector_coef_.min() < 0 < model.vector_coef_.max()
        check(model, warned, seconds, X, y, weights)


# --- The certificate ----------------------------------------------------------------------------------------


def binary(slack, constraint=INEQUALITY, n=20):
    X, y = blobs(n, seed=1)
    return BinaryDual(y, fitted_to(slack, n), 2.0, np.ones(n), constraint), reference.kernel_matrix(
        "rbf", X, X, gamma=0.3
    )


@pytest.mark.parametrize("constraint", [INEQUALITY, EQUALITY], ids=lambda c: c.name)
@pytest.mark.parametrize("slack", NORMS, ids=repr)
def test_no_point_is_certified_above_the_optimum(slack, constraint):
    """Whatever the duals are, inside their set or outside, in balance or not: the dual value is a lower bound."""
    problem, K = binary(slack, constraint)
    best = reference.solve(K, problem.y, problem.slack, 2.0, constraint.name).value
    rng = np.random.default_rng(0)
    duals = rng.standard_normal((200, 20)) * 10 ** rng.uniform(-3, 2, (200, 1))
    duals = np.where(np.arange(200)[:, None] % 2, problem.y * np.abs(duals), duals)  # alpha >= 0 in every second
    proved = 0
    for a in duals:
        f = K @ a
        certificate = problem.certify(a, f, 1.0)
        assert certificate.dual <= best * (1 + 1e-8)
        assert certificate.primal >= best * (1 - 1e-8)
        assert certificate.gap >= certificate.primal / best - 1 - 1e-8
        proved += certificate.dual > 0
    assert proved > 0


def test_what_is_left_of_the_sum_is_charged():
    problem, K = binary(slacks.OneNorm())
    a = balanced(problem.y * np.full(20, 0.1))
    even = problem.certify(a, K @ a, 1.0)
    a[0] += 1e-3 * problem.y[0]
    odd = problem.certify(a, K @ a, 1.0)
    assert odd.dual < even.dual - 1e-3


def test_doubt_about_f_widens_the_gap():
    problem, K = binary(slacks.OneNorm())
    a = balanced(problem.y * np.full(20, 0.1))
    sure = problem.certify(a, K @ a, 1.0)
    unsure = problem.charged(sure, a, K @ a, np.full(20, 1e-3))
    assert unsure.rounding > 0
    assert unsure.gap == pytest.approx(sure.gap + unsure.rounding, rel=1e-6)


def test_the_share_of_a_point_is_on_the_surface():
    far = np.full(4, 3.0)
    a = np.array([1.0, -2.0, 2.0, -1.0])
    assert FeasibleSet(-far, far).max_scaling(a) == pytest.approx(1.5)
    assert FeasibleSet(-far, far, total=3.0).max_scaling(a) == pytest.approx(0.5)
    assert FeasibleSet(-far, far, radius=1.0).max_scaling(a) == pytest.approx(10**-0.5)
    assert FeasibleSet(-far, far, radius=1.0, metric=4 * np.eye(4)).max_scaling(a) == pytest.approx(0.5 * 10**-0.5)
    assert FeasibleSet(0 * far, far).max_scaling(a) == 0
    assert FeasibleSet(-far, far).max_scaling(np.zeros(4)) == 1


# --- The interior point method ------------------------------------------------------------------------------


@pytest.mark.parametrize("constraint", [INEQUALITY, EQUALITY], ids=lambda c: c.name)
@pytest.mark.parametrize("slack", NORMS, ids=repr)
def test_interior_points_reach_the_reference(slack, constraint):
    problem, K = binary(slack, constraint, n=30)
    best = reference.solve(K, problem.y, problem.slack, 2.0, constraint.name).value
    gaps = []
    for a, _ in interior.solutions(K, problem.y, problem.feasible):
        assert abs(a.sum()) <= 1e-12 * np.abs(a).sum()
        assert problem.feasible.max_scaling(a) >= 1 - 1e-12
        certificate = problem.certify(a, K @ a, 1.0)
        gaps.append(certificate.gap)
        if certificate.gap <= 1e-8:
            break
    assert gaps[-1] <= 1e-8
    assert len(gaps) <= 100
    assert certificate.primal == pytest.approx(best, rel=1e-6)


def test_interior_points_leave_vanished_duals_out():
    problem, K = binary(slacks.OneNorm(), n=60)
    for a, _ in interior.solutions(K, problem.y, problem.feasible):
        if problem.certify(a, K @ a, 1.0).gap <= 1e-6:
            break
    model = AnyNormSVC(kernel="precomputed", C=2.0, tol=1e-8).fit(K, problem.y)
    assert np.count_nonzero(a) <= model.n_vectors_ + 5


def test_an_indefinite_matrix_ends_the_path():
    problem, K = binary(slacks.OneNorm())
    found = list(interior.solutions(K - 5 * np.eye(20), problem.y, problem.feasible))
    assert len(found) < interior.MAX_STEPS


def dense_metric(n, rng):
    """Positive definite, far from diagonal."""
    A = rng.standard_normal((n, n))
    return A @ A.T / n + 0.01 * np.eye(n)


def test_interior_points_reach_the_reference_in_any_metric():
    problem, K = binary(slacks.Mahalanobis(), EQUALITY, n=30)
    problem = replace(problem, slack=slacks.Mahalanobis(dense_metric(30, np.random.default_rng(1))))
    best = reference.solve(K, problem.y, problem.slack, 2.0, "equality").value
    certificates = [problem.certify(a, K @ a, 1.0) for a, _ in interior.solutions(K, problem.y, problem.feasible)]
    good = next(certificate for certificate in certificates[:60] if certificate.gap <= 1e-8)
    assert good.primal == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize(
    ("kernel", "size", "solved"), [("linear", 1e3, True), ("poly", 1e3, False), ("linear", 1e8, False)]
)
def test_a_metric_takes_few_steps(kernel, size, solved):
    """Rows of very different sizes, weights with zeros: solved, or a warning, after a bounded number of steps."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 4))
    X[:, 0] *= size
    weights = rng.integers(0, 2, 40).astype(float)
    y = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    metric = slacks.Mahalanobis(dense_metric(40, rng))
    model, warned, _ = fit(metric, "equality", X, y, weights, kernel=kernel, gamma=1.0, C=1e3)
    assert warned != solved
    assert model.n_iter_[0] < 200_000
