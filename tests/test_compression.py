"""Compression: the small version of a fitted machine, and the estimators that make one."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification, make_friedman1, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernel_table
import slimsvm
from problems import cosine_plus_one, three_classes
from slimsvm import (
    AnyNormSVC,
    CompressedClassifier,
    CompressedOutlierDetector,
    CompressedRegressor,
    SlimSVC,
    compress,
    estimators,
    kernels,
    losses,
    regularizers,
    slacks,
)
from slimsvm.basis.distillation import DistillationObjective, distill, distilled_coefficients
from slimsvm.basis.reduced_set import DistanceObjective, greedy_rows, reduced_set
from slimsvm.compression import Compressor, Original
from slimsvm.compression.tasks import Classification
from slimsvm.data.dataset import ProblemGroup, outputs
from slimsvm.estimators.adapters import source_model
from slimsvm.model.expansion import Expansion
from slimsvm.model.voting import Votes
from slimsvm.rows.labels import RowLabels
from slimsvm.rows.memory import DenseFeatures
from slimsvm.rows.protocol import decision
from slimsvm.solvers.primal.newton import newton
from slimsvm.solvers.primal.solve import certified


@pytest.fixture(scope="module")
def moons():
    return make_moons(300, noise=0.25, random_state=0)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


@pytest.fixture(scope="module")
def friedman():
    return make_friedman1(300, noise=1.0, random_state=0)


@parametrize_with_checks([kind(n_vectors=5) for kind in estimators.COMPRESSED])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# --- what a machine says -------------------------------------------------------------------------------------


MACHINES = {
    "rbf": SVC(C=3.0, gamma=1.0),
    "class weights": SVC(C=3.0, class_weight={"a": 2.0}),
    "nu": NuSVC(nu=0.3),
    "linear": SVC(kernel="linear"),
    "poly": SVC(kernel="poly", coef0=1.0, degree=2),
    "sigmoid": SVC(kernel="sigmoid", gamma=0.1),
    "function": SVC(kernel=cosine_plus_one),
    "kernel object": SVC(kernel=kernels.Laplacian(0.5)),
    "pairs": SVC(decision_function_shape="ovo"),
    "ties by score": SVC(break_ties=True),
    "ours": AnyNormSVC(C=3.0),
    "ours, each class": AnyNormSVC(C=3.0, multi_class="ovr"),
    "ours, pairs": AnyNormSVC(C=3.0, decision_function_shape="ovo"),
    "learned": SlimSVC(30, C=3.0, gamma=1.0, scales="learned"),
}


@pytest.mark.filterwarnings("ignore:the kernel is not positive", "ignore:learning ended", "ignore:kernel values")
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("machine", MACHINES)
def test_all_vectors_are_the_same_machine(machine, classes, container):
    """Asked for more vectors than there are, every value and every label stays what it was."""
    X, y = three_classes()
    X, y = X[y < classes], np.array(["a", "b", "c"])[y[y < classes]]
    if machine == "function" and container is sp.csr_array:
        pytest.skip("the function is for dense rows")
    model = clone(MACHINES[machine]).fit(container(X), y)
    small = compress(model, 10_000)
    rows = container(np.vstack([X, 2 * X + 0.1]))
    np.testing.assert_array_equal(small.predict(rows), model.predict(rows))
    np.testing.assert_allclose(small.decision_function(rows), model.decision_function(rows), rtol=1e-6, atol=1e-6)
    assert small.compression_.method == "exact"
    assert small.compression_.agreement_on_vectors == 1.0


@pytest.mark.parametrize("model", [SVR(C=3.0), NuSVR(C=3.0), SVR(kernel="poly", coef0=1.0)], ids=str)
def test_all_vectors_are_the_same_regressor(model, friedman):
    X, y = friedman
    model = clone(model).fit(X, y)
    np.testing.assert_allclose(compress(model, 10_000).predict(X), model.predict(X), rtol=1e-8)


def test_all_vectors_are_the_same_detector(moons):
    X, _ = moons
    model = OneClassSVM(nu=0.2).fit(X)
    small = compress(model, 10_000)
    np.testing.assert_array_equal(small.predict(X), model.predict(X))
    np.testing.assert_allclose(small.decision_function(X), model.decision_function(X), atol=1e-9)
    np.testing.assert_allclose(small.score_samples(X), model.score_samples(X), rtol=1e-9)
    np.testing.assert_allclose(small.offset_, model.offset_)


def test_ties_of_votes_go_by_class_order(digits):
    """Votes tie on some rows, where confidences would decide otherwise."""
    X, y = digits
    model = SVC(C=0.05).fit(X[::5], y[::5])
    by_confidence = clone(model).set_params(break_ties=True).fit(X[::5], y[::5])
    assert (model.predict(X) != by_confidence.predict(X)).any()
    for each in (model, by_confidence):
        np.testing.assert_array_equal(compress(each, 10_000).predict(X), each.predict(X))


# --- mathematics ---------------------------------------------------------------------------------------------


def small_problem(outputs=2, seed=0):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(40, 3)), rng.normal(size=(5, 3))
    coef = rng.normal(size=(outputs, 40))
    coef -= coef.mean(axis=1, keepdims=True)  # duals sum to zero
    intervals = np.sort(rng.normal(size=(40, outputs, 2)), axis=-1)
    intervals[::3, :, 1], intervals[1::3, :, 0] = np.inf, -np.inf
    return X, Z, coef, ProblemGroup(None, intervals, rng.uniform(0.1, 3, size=(40, outputs)))


KERNELS = [kernel_table.ENTRIES[name].kernel(gamma=0.3) for name in kernel_table.names(radial=True)]
KERNELS.append(kernels.Polynomial(0.5, 1.0, 3))


def slope(function, theta, direction, step=1e-5):
    return (function(theta + step * direction) - function(theta - step * direction)) / (2 * step)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_distance_and_its_gradient(kernel):
    """|f|^2 - max over beta of 2 beta'v - beta'(K + e)beta, and finite differences."""
    X, Z, coef, _ = small_problem()
    K, norms = kernel(X, X), np.einsum("oi,ij,oj->o", coef, kernel(X, X), coef)
    objective = DistanceObjective(kernel, X, coef, norms.sum(), regularizers.KernelNorm(1e-3), len(Z))
    R, V = kernel(Z, Z) + 1e-3 * np.eye(len(Z)), kernel(Z, X) @ coef.T
    expected = (norms.sum() - np.trace(V.T @ np.linalg.solve(R, V))) / norms.sum()
    theta = objective.pack(Z, None)
    value, gradient = objective(theta)
    assert value == pytest.approx(expected, rel=1e-9)
    assert K.shape == (40, 40)
    direction = np.random.default_rng(1).normal(size=theta.shape)
    assert gradient @ direction == pytest.approx(slope(lambda t: objective(t)[0], theta, direction), rel=1e-5)


@pytest.mark.parametrize("pulled", [False, True], ids=["alone", "near the original"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_gradient_of_teaching(kernel, pulled):
    X, Z, coef, lesson = small_problem()
    pull = coef.T if pulled else 0 * coef.T
    squares = np.einsum("oi,ij,oj->", coef, kernel(X, X), coef) if pulled else 0.0
    objective = DistillationObjective(
        kernel, X, lesson, pull, squares, losses.Between(), regularizers.KernelNorm(1e-3), len(Z)
    )
    theta = objective.pack(Z, None)
    direction = np.random.default_rng(1).normal(size=theta.shape)
    _, gradient = objective(theta)
    assert gradient @ direction == pytest.approx(slope(lambda t: objective(t)[0], theta, direction), rel=1e-4)


def test_taught_coefficients_minimise_what_is_documented():
    """1/2 |f - g|^2 + e/2 |beta|^2 + sum C/2 dist^2, by a general minimiser."""
    X, Z, coef, lesson = small_problem(outputs=1)
    kernel = kernels.Gaussian(0.3)
    K, Kz, Kxz = kernel(X, X), kernel(Z, Z), kernel(X, Z)
    a, Y, C = coef[0], lesson.Y[:, 0], lesson.C[:, 0]

    def objective(theta):
        beta, bias = theta[:-1], theta[-1]
        near = 0.5 * (a @ K @ a - 2 * a @ Kxz @ beta + beta @ Kz @ beta)
        g = Kxz @ beta + bias
        missed = np.maximum(Y[:, 0] - g, 0) + np.maximum(g - Y[:, 1], 0)
        return near + 0.5e-6 * beta @ beta + 0.5 * C @ missed**2

    best = minimize(objective, np.zeros(len(Z) + 1), method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
    found, bias = distilled_coefficients(kernel, X, Z, [lesson], coef.T, np.zeros(1))
    mine = objective(np.append(found[0], bias))
    assert mine <= best.fun * (1 + 1e-9)
    assert mine == pytest.approx(best.fun, rel=1e-6)


def test_teaching_lowers_its_objective_and_the_reduced_set_its_distance():
    X, _, coef, lesson = small_problem()
    kernel, rng = kernels.Gaussian(0.3), np.random.default_rng(0)
    start = reduced_set(kernel, X, coef, 5, rng, max_iter=0)
    moved = reduced_set(kernel, X, coef, 5, rng, max_iter=50)
    assert 0 <= moved.value < start.value < 1
    squares = float(np.einsum("oi,ij,oj->", coef, kernel(X, X), coef))
    values = [distill(kernel, X, lesson, coef.T, squares, moved.vectors, rng, max_iter=n).value for n in (0, 10, 50)]
    assert values[0] > values[1] >= values[2]


@pytest.mark.parametrize("seed", [6, 8])
def test_very_few_vectors_begin_in_many_places(seed, monkeypatch):
    """Here greedy rows lead to a minimum that is not the best."""
    rng = np.random.default_rng(seed)
    X, coef = rng.integers(-1, 3, size=(12, 3)).astype(float), rng.normal(size=(1, 12))

    def distance():
        return reduced_set(kernels.Gaussian(0.5), X, coef, 3, np.random.default_rng(0)).value

    found = distance()
    monkeypatch.setattr("slimsvm.basis.reduced_set.N_RESTARTS", 0)
    assert found < 0.96 * distance()


def test_greedy_rows_by_definition():
    """Each row the one whose span with those before holds most of the functions."""
    X, _, coef, _ = small_problem()
    kernel = kernels.Gaussian(0.3)
    K = kernel(X, X)
    chosen: list[int] = []
    for _ in range(6):
        held = []
        for p in range(len(X)):
            rows = [*chosen, p]
            V = K[rows] @ coef.T
            held.append(-1.0 if p in chosen else np.trace(V.T @ np.linalg.solve(K[np.ix_(rows, rows)], V)))
        chosen.append(int(np.argmax(held)))
    np.testing.assert_array_equal(greedy_rows(kernel, X, coef, 6), chosen)
    np.testing.assert_array_equal(greedy_rows(kernel, X, coef, 3, given=X[chosen[:3]]), chosen[3:])


@pytest.mark.parametrize("loss", [losses.Between(), losses.Between(0.5, 1.0)], ids=str)
def test_distance_to_an_interval(loss):
    """Its value, its slope, and a dual that closes the gap."""
    _, _, _, lesson = small_problem()
    rng = np.random.default_rng(2)
    F = rng.normal(size=lesson.C.shape)
    lower, upper = lesson.Y[..., 0], lesson.Y[..., 1]
    d = np.abs(F - np.minimum(np.maximum(F, lower), upper))
    by_row = np.where(d < 0.5, d**2, d - 0.25) if loss.width == 0.5 else 0.5 * d**2
    np.testing.assert_allclose(loss.value(F, lesson.Y, lesson.C), (lesson.C * by_row).sum(axis=0))
    step = 1e-6
    for o in range(F.shape[1]):
        E = np.zeros_like(F)
        E[7, o] = step
        up, down = loss.value(F + E, lesson.Y, lesson.C)[o], loss.value(F - E, lesson.Y, lesson.C)[o]
        assert loss.duals(F, lesson.Y, lesson.C)[7, o] == pytest.approx(-(up - down) / (2 * step), abs=1e-7)
    P = rng.normal(size=(40, 6))
    rows = DenseFeatures(P, RowLabels(lesson.Y, lesson.C))
    state = newton(rows, loss, tol=1e-12)
    A = loss.duals(decision(P, state.V), lesson.Y, lesson.C)
    solution = certified(rows, loss, np.arange(len(state.V)), state.V, (), state.n_iter)
    assert (solution.gap <= 1e-8).all()
    dual = loss.conjugate(A, lesson.Y, lesson.C) - 0.5 * ((P.T @ A) ** 2).sum(axis=0)
    np.testing.assert_allclose(dual, solution.objective, rtol=1e-8)


# --- what compression promises -------------------------------------------------------------------------------


def agreement(a, b, X):
    return float(np.mean(a.predict(X) == b.predict(X)))


def test_methods_agree_with_the_original(moons):
    X, y = moons
    X_test, _ = make_moons(2000, noise=0.25, random_state=1)
    model = SVC(C=10.0, gamma=2.0).fit(X, y)
    found = {
        "reduced_set": compress(model, 6, method="reduced_set"),
        "margin": compress(model, 6),
        "on rows": compress(model, 6, X),
        "refit": compress(model, 6, X, y, method="refit"),
        "learn": compress(model, 6, X, y),
    }
    same = {name: agreement(small, model, X_test) for name, small in found.items()}
    assert all(small.n_vectors_ == 6 for small in found.values())
    assert found["on rows"].compression_.method == "margin"
    assert found["learn"].compression_.method == "learn"
    assert min(same[name] for name in ("margin", "on rows", "refit", "learn")) > 0.9


def test_few_labels_do_not_replace_the_machine(moons):
    """Fewer labelled rows than vectors: what the machine decides is taught, not what a handful of labels say."""
    X, y = moons
    svc = SVC(C=10, gamma=2).fit(X, y)
    few = compress(svc, 10, X[:8], y[:8])
    assert few.compression_.method == "margin"
    assert agreement(few, svc, X) > 0.95
    assert compress(svc, 10, np.tile(X[:8], (50, 1)), np.tile(y[:8], 50)).compression_.method == "margin"  # copies
    assert compress(svc, 10, X[:8], y[:8], method="learn").compression_.method == "learn"
    assert compress(svc, 10, X, y).compression_.method == "learn"


@pytest.fixture(scope="module")
def unbalanced():
    """2,000 rows to train on, of which 12 % are of the second class, and as many others."""
    X, y = make_classification(4000, 10, weights=[0.88], class_sep=0.5, flip_y=0.05, random_state=0)
    return X[:2000], y[:2000], X[2000:]


def test_class_weights_that_a_nu_machine_ignores_stay_ignored(unbalanced):
    """Trained again on labels, it keeps the operating point that the original has."""
    X, y, rows = unbalanced
    weighted = NuSVC(nu=0.2, class_weight="balanced").fit(X, y)
    with_labels = compress(weighted, 20, X, y)
    assert with_labels.compression_.method == "learn"
    same = agreement(with_labels, weighted, rows)
    assert same >= agreement(compress(weighted, 20, X), weighted, rows)
    assert same >= agreement(compress(weighted, 20), weighted, rows)


@pytest.mark.parametrize("kind", [NuSVC, slimsvm.NuSVC])
@pytest.mark.parametrize("several", [False, True])
def test_class_weights_change_no_small_version_of_a_nu_machine(kind, several, moons):
    X, y = moons[0][:200], moons[1][:200] + (several & (moons[0][:200, 0] > 0.5))
    small = [
        [compress(kind(nu=0.2, class_weight=weight).fit(X, y), 5, X, y, method=method) for method in ("refit", "learn")]
        for weight in (None, "balanced")
    ]
    for plain, weighted in zip(*small, strict=True):
        np.testing.assert_array_equal(plain.vector_coef_, weighted.vector_coef_)
        assert plain._goal.factors.tolist() == weighted._goal.factors.tolist() == [1.0] * (2 + several)


def test_cost_is_C_or_estimated_from_coefficients():
    """C where it is that; else it is told by the coefficients, and weights of classes are no part of it."""
    X, y = make_moons(150, noise=0.3, random_state=0)
    weight = {0: 1.0, 1: 4.0}
    for model in (SVC(C=3.0), slimsvm.SVC(C=3.0), AnyNormSVC("l2", C=3.0), slimsvm.LeastSquaresSVC(C=3.0)):
        original = source_model(model.set_params(class_weight=weight).fit(X, y)).original()
        assert original.cost == 3.0
        assert not original.cost_is_estimated
    for model in (AnyNormSVC(slacks.TwoNorm(), C=3.0), slimsvm.BudgetSVC(60, C=3.0), SVC(C=np.inf, gamma=50.0)):
        fitted = model.set_params(class_weight=weight).fit(X, y)
        original = source_model(fitted).original()
        assert original.cost_is_estimated
        np.testing.assert_allclose(original.cost, np.abs(original.given.coef).max() / 4)
    for model in (SVR(C=3.0), NuSVR(C=3.0), slimsvm.NuSVR(C=3.0)):
        assert source_model(model.fit(X, X[:, 0])).original().cost == 3.0


def test_what_the_small_version_is_fitted_to_can_be_said(moons, friedman):
    X, y = moons
    svc = SVC(C=10, gamma=2).fit(X, y)
    kept = compress(svc, 8, X, y, fit_to="decisions")
    assert kept.compression_.method == "margin"
    np.testing.assert_array_equal(kept.vectors_, compress(svc, 8, X).vectors_)
    with_layer = compress(svc, 8, X, y, fit_to="decisions", probability=True)
    assert with_layer.predict_proba(X).shape == (len(X), 2)
    assert agreement(with_layer, kept, X) > 0.99
    assert compress(svc, 8, X[:8], y[:8], fit_to="labels").compression_.method == "learn"
    assert compress(svc, 8, X, fit_to="decisions", method="reduced_set").compression_.method == "reduced_set"
    assert CompressedClassifier(SVC(), 5, fit_to="decisions").fit(X, y).compression_.method == "margin"
    F, v = friedman
    assert CompressedRegressor(SVR(), 5, fit_to="decisions").fit(F[:200], v[:200]).compression_.method == "margin"
    pipeline = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    assert compress(pipeline, 5, X, y, fit_to="decisions")[-1].compression_.method == "margin"


def test_several_classes(digits):
    X, y = digits
    model = SVC().fit(X[::2], y[::2])
    rows = X[1::2]
    same = {
        name: agreement(compress(model, 30, **data), model, rows)
        for name, data in {"vectors": {}, "rows": {"X": X[::2]}, "labels": {"X": X[::2], "y": y[::2]}}.items()
    }
    assert min(same.values()) > 0.97
    assert same["vectors"] >= agreement(compress(model, 30, method="reduced_set"), model, rows)


def test_regression(friedman):
    X, y = friedman
    X_test, y_test = make_friedman1(1000, noise=1.0, random_state=1)
    model = SVR(C=10.0).fit(X, y)
    for data in ({}, {"X": X}, {"X": X, "y": y}, {"X": X, "y": y, "method": "refit"}):
        small = compress(model, 0.1, **data)
        assert isinstance(small, CompressedRegressor)
        assert small.n_vectors_ == round(0.1 * len(model.support_))
        assert small.score(X_test, y_test) > model.score(X_test, y_test) - 0.01


def test_one_class(moons):
    X, _ = moons
    model = OneClassSVM(nu=0.15, gamma=1.0).fit(X)
    plain = agreement(compress(model, 8, method="reduced_set"), model, X)
    for data in ({}, {"X": X}):
        assert agreement(compress(model, 8, **data), model, X) > plain
        small = compress(model, 15, **data)
        assert isinstance(small, CompressedOutlierDetector)
        assert agreement(small, model, X) > 0.97
        np.testing.assert_allclose(small.decision_function(X), small.score_samples(X) - small.offset_)


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_linear_kernels_are_weight_vectors(shape):
    X, y = three_classes()
    for rows, labels, n_vectors in ((X, y == 1, 1), (X, y, 2), (np.hstack([X, X**2, X**3]), y, 3)):
        model = SVC(kernel="linear", decision_function_shape=shape).fit(rows, labels)
        small = compress(model, n_vectors)
        assert small.n_vectors_ == n_vectors
        np.testing.assert_allclose(small.decision_function(rows), model.decision_function(rows), atol=1e-9)
        assert small.compression_.distance < 1e-6
    assert compress(SVC(kernel="linear").fit(X, y), "auto").n_vectors_ == 2


@pytest.mark.filterwarnings("ignore:the kernel is not positive")
@pytest.mark.parametrize(
    "model",
    [SVC(kernel="sigmoid", gamma=0.5), SVC(kernel=cosine_plus_one), AnyNormSVC(kernel=cosine_plus_one)],
    ids=["sigmoid", "function", "ours"],
)
def test_kernels_without_norm_or_derivative(model, moons):
    X, y = moons
    model = clone(model).fit(X, y)
    for method in ("reduced_set", "margin"):
        small = compress(model, 10, method=method)
        assert small.n_vectors_ <= 10
        assert agreement(small, model, X) > 0.95
    if callable(model.kernel):  # vectors cannot move: they are rows of the original
        own = {row.tobytes() for row in source_model(model).original().expansion.vectors}
        assert all(row.tobytes() in own for row in small.vectors_)


def test_more_vectors_agree_more_and_auto_finds_how_many(moons):
    X, y = moons
    model = SVC(C=10.0, gamma=2.0).fit(X, y)
    small = compress(model, "auto", X, agreement=0.98)
    assert small.compression_.agreement_on_X >= 0.98
    assert agreement(small, model, X) >= 0.98
    assert small.n_vectors_ < 40
    assert compress(model, "auto", X, agreement=0.9).n_vectors_ <= small.n_vectors_
    noisy = SVC(C=1e4, gamma=50.0).fit(X[:60], np.random.default_rng(0).permutation(y[:60]))
    options = {"method": "reduced_set", "agreement": 1.0}
    with pytest.warns(UserWarning, match=r"agreement=1 is not reached with up to \d+ vectors"):
        assert "not reached" in compress(noisy, "auto", **options).compression_.note


def test_the_report(moons):
    X, y = moons
    model = SVC(gamma=1.0).fit(X, y)
    report = compress(model, 7, X).compression_
    n = len(model.support_)
    assert (report.vectors_before, report.vectors_after) == (n, 7)
    assert (report.bytes_before, report.bytes_after) == (4 * (3 * n + 1), 4 * (3 * 7 + 1))
    assert report.speedup == pytest.approx(n / 7)
    assert 0 < report.distance < 1
    np.testing.assert_allclose(report.distances, report.distance)
    text = str(report)
    assert f"{n} vectors -> 7 (margin)" in text
    assert "% on X" in text
    sparse = Expansion(kernels.Linear(), sp.csr_array([[0, 2.0], [0, 0]]), np.array([[1.0, 0]]), np.zeros(1))
    assert sparse.float_bytes == 4 * (2 + 1 + 1)
    kept = compress(model, 10_000).compression_
    assert "kept as it is" in str(kept)
    assert kept.distance < 1e-6
    assert kept.speedup == 1


def test_the_distance_is_that_of_the_functions(moons):
    """|f - g|^2 from the kernel matrix of all vectors together."""
    X, y = moons
    model = SVC(gamma=1.0).fit(X, y)
    small = compress(model, 7)
    vectors = np.vstack([model.support_vectors_, small.vectors_])
    both = np.append(model.dual_coef_[0], -small.vector_coef_[0])
    K, own = kernels.Gaussian(1.0)(vectors, vectors), model.dual_coef_[0]
    expected = np.sqrt(both @ K @ both / (own @ kernels.Gaussian(1.0)(*[model.support_vectors_] * 2) @ own))
    assert small.compression_.distance == pytest.approx(expected, rel=1e-6)


# --- the same input gives the same model ---------------------------------------------------------------------


def test_order_and_copies_of_vectors_change_nothing(moons):
    X, y = moons
    source = source_model(SVC(gamma=1.0).fit(X, y))
    machine = source.expansion
    order = np.random.default_rng(0).permutation(len(machine.vectors))
    twice = Expansion(
        machine.kernel,
        np.vstack([machine.vectors, machine.vectors])[np.append(order, order + len(order))],
        0.5 * np.hstack([machine.coef, machine.coef])[:, np.append(order, order + len(order))],
        machine.bias,
    )
    first, second = (Compressor(Original.of(m, source.task, 1.0)).margin(6) for m in (machine, twice))
    np.testing.assert_array_equal(first.vectors, second.vectors)
    np.testing.assert_array_equal(first.coef, second.coef)


@pytest.mark.parametrize("method", ["margin", "refit", "learn"])
def test_order_weights_and_threads_change_nothing(method, moons):
    X, y = moons
    model = SVC(gamma=1.0).fit(X, y)
    copies = 1 + np.arange(len(y)) % 3
    order = np.random.default_rng(0).permutation(copies.sum())
    repeated = np.repeat(np.arange(len(y)), copies)[order]
    one = compress(model, 5, X, y, method=method, sample_weight=copies)
    other = compress(model, 5, X[repeated], y[repeated], method=method, n_jobs=2)
    np.testing.assert_array_equal(one.vectors_, other.vectors_)
    np.testing.assert_array_equal(one.vector_coef_, other.vector_coef_)
    assert one.compression_.agreement_on_X == pytest.approx(other.compression_.agreement_on_X)


def test_regression_weights_are_copies(friedman):
    X, y = friedman
    model = SVR(C=10.0).fit(X, y)
    copies = np.arange(len(y)) % 3
    repeated = np.repeat(np.arange(len(y)), copies)[::-1]
    one = compress(model, 10, X, y, sample_weight=copies)
    other = compress(model, 10, X[repeated], y[repeated])
    np.testing.assert_array_equal(one.vectors_, other.vectors_)


def test_sparse_and_dense_are_the_same_model(moons):
    X, y = moons
    small = [compress(SVC(gamma=1.0).fit(rows, y), 6, rows) for rows in (X, sp.csr_array(X))]
    assert agreement(*small, X) > 0.98


def test_sparse_vectors_that_are_few_numbers():
    """Learned vectors are dense: a model that is larger than before is said to be."""
    X = sp.random(60, 400, 0.01, format="csr", random_state=0)
    model = SVC().fit(X, np.arange(60) % 2)
    with pytest.warns(UserWarning, match="takes 8024 bytes, the original .* dense"):
        assert compress(model, 5).compression_.bytes_after == 4 * (5 * 400 + 5 + 1)


def test_many_rows_are_sampled(monkeypatch, moons):
    """Vectors move on some of the rows; coefficients are for all of them."""
    X, y = moons
    monkeypatch.setattr("slimsvm.problem.bases.Learned.most_rows", lambda self, count: 100)
    model = SVC(C=10.0, gamma=2.0).fit(X, y)
    for data in ({"X": X}, {"X": X, "y": y}):
        assert agreement(compress(model, 8, **data), model, X) > 0.93


# --- pipelines and tools -------------------------------------------------------------------------------------


def test_pipelines_come_back_as_pipelines(moons):
    X, y = moons
    frame = pd.DataFrame(1000 * X, columns=["a", "b"])
    model = make_pipeline(StandardScaler(), SVC(gamma=1.0)).fit(frame, y)
    small = compress(model, 8, frame, y)
    assert [name for name, _ in small.steps] == ["standardscaler", "svc"]
    assert small[0] is model[0]
    assert isinstance(small[-1], CompressedClassifier)
    assert agreement(small, model, frame) > 0.95
    assert agreement(compress(model, 8), model, frame) > 0.95


def test_names_of_columns_are_kept(moons):
    X, y = moons
    frame = pd.DataFrame(X, columns=["a", "b"])
    small = compress(SVC().fit(frame, y), 5, frame)
    np.testing.assert_array_equal(small.feature_names_in_, ["a", "b"])
    assert small.n_features_in_ == 2
    with pytest.raises(ValueError, match="feature names"):
        small.predict(frame.rename(columns={"a": "c"}))


def test_compressed_models_are_saved_cloned_and_compressed_again(digits):
    X, y = digits
    model = SVC(C=2.0).fit(X[::4], y[::4])
    small = compress(model, 40)
    restored = pickle.loads(pickle.dumps(small))
    np.testing.assert_array_equal(restored.decision_function(X), small.decision_function(X))
    assert str(restored.compression_) == str(small.compression_)
    copy = clone(small)
    assert copy.estimator.C == 2.0
    with pytest.raises(NotFittedError):
        copy.predict(X)
    assert copy.fit(X[::4], y[::4]).n_vectors_ == 40
    again = compress(small, 25)
    assert (again.n_vectors_, again.compression_.vectors_before) == (25, 40)
    assert agreement(again, small, X) > 0.9


def test_grid_search_over_the_machine_and_the_size(moons):
    X, y = moons
    grid = {"estimator__C": [0.1, 10.0], "n_vectors": [1, 8]}
    search = GridSearchCV(CompressedClassifier(SVC(gamma=1.0)), grid, cv=2).fit(X, y)
    assert search.best_params_["n_vectors"] == 8
    assert search.best_score_ > 0.85


def test_weights_reach_the_machine_and_the_compression(moons, metadata_routing):
    X, y = moons
    wrong = np.where(np.arange(len(y)) % 2, y, 1 - y)
    weight = (np.arange(len(y)) % 2).astype(float)
    model = CompressedClassifier(SVC(gamma=1.0).set_fit_request(sample_weight=True), 8)
    assert model.fit(X, wrong, sample_weight=weight).score(X[1::2], y[1::2]) > 0.85


# --- errors --------------------------------------------------------------------------------------------------


def test_what_cannot_be_compressed(moons):
    X, y = moons
    with pytest.raises(TypeError, match="one weight vector for each output already"):
        compress(LinearSVC().fit(X, y), 5)
    with pytest.raises(TypeError, match=r"LogisticRegression cannot be compressed.*SVC, NuSVC, SVR"):
        compress(LogisticRegression().fit(X, y), 5)
    with pytest.raises(TypeError, match="best_estimator_"):
        compress(GridSearchCV(SVC(), {"C": [1.0]}).fit(X, y), 5)
    with pytest.raises(TypeError, match=r"SVC \(a class\) cannot be compressed"):
        compress(SVC, 5)
    with pytest.raises(NotFittedError):
        compress(SVC(), 5)
    for model in (SVC(kernel="precomputed"), AnyNormSVC(kernel="precomputed")):
        with pytest.raises(ValueError, match="precomputed kernel cannot be compressed"):
            compress(model.fit(X @ X.T + 1, y), 5)


BAD = {
    "none": ({"n_vectors": 0}, "n_vectors=0 must be an integer of at least 1, a fraction between 0 and 1, or 'auto'"),
    "fraction": ({"n_vectors": 1.5}, "a fraction between 0 and 1, or 'auto'"),
    "word": (
        {"n_vectors": "few"},
        "n_vectors='few' must be an integer of at least 1, a fraction between 0 and 1, or 'auto'",
    ),
    "method": ({"method": "shrink"}, "method='shrink' is not known.*'reduced_set'"),
    "no labels": ({"method": "learn"}, "method='learn' needs X and y"),
    "fit to": ({"fit_to": "model"}, "fit_to='model' is not known.*'decisions'"),
    "fit to no labels": ({"fit_to": "labels"}, "fit_to='labels' needs X and y; without labels use 'decisions'"),
    "fit to both": (
        {"fit_to": "decisions", "method": "learn"},
        r"method='learn' does not fit to decisions, .* use one of \['reduced_set', 'margin'\], or leave method out",
    ),
    "y alone": ({"y": [0, 1]}, "y was given without X"),
    "weights alone": ({"sample_weight": [1.0]}, "sample_weight was given without X"),
    "agreement": ({"agreement": 99}, "agreement=99 must be a number above 0 and at most 1"),
    "threads": ({"n_jobs": 0}, "n_jobs=0 makes no sense"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_say_what_is_allowed(case, moons):
    options, message = BAD[case]
    model = SVC().fit(*moons)
    with pytest.raises(ValueError, match=message):
        compress(model, **{"n_vectors": 5, **options})


def test_bad_rows_and_labels(moons):
    X, y = moons
    model = SVC().fit(X, y)
    with pytest.raises(ValueError, match="3 features"):
        compress(model, 5, np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"labels that the model does not know: \['7'\]; it has \[0, 1\]"):
        compress(model, 5, X, np.where(y == 1, 7, 0))
    with pytest.raises(ValueError, match=r"no row of the classes \[1\]"):
        compress(model, 5, X, np.zeros(len(y), dtype=int))
    with pytest.raises(ValueError, match="they must be as many"):
        compress(model, 5, X, y[:-1])
    with pytest.raises(ValueError, match="a one-class machine has not; use 'margin'"):
        compress(OneClassSVM().fit(X), 5, X, y, method="learn")
    with pytest.raises(ValueError, match="fit_to='labels' needs labels, which a one-class machine has not"):
        compress(OneClassSVM().fit(X), 5, X, y, fit_to="labels")
    with pytest.raises(ValueError, match="is a Pipeline; put the earlier steps in front"):
        CompressedClassifier(make_pipeline(SVC())).fit(X, y)
    with pytest.raises(ValueError, match="is not for CompressedRegressor"):
        CompressedRegressor(SVC()).fit(X, y)


def test_progress_is_shown(capsys, moons):
    compress(SVC().fit(*moons), 5, verbose=True)
    shown = capsys.readouterr().err
    assert "reduced set of 5 vectors" in shown
    assert "teaching 5 vectors on" in shown


def test_two_classes_at_zero():
    """scikit-learn gives the second class to a value of exactly 0, this library the first."""
    goal = Classification(np.ones(2), outputs(2, "ovo"), Votes())
    np.testing.assert_array_equal(goal.predictions(np.array([[-1.0], [0.0], [1.0]])), [0, 0, 1])
    X, y = np.array([[-1.0], [1.0]]), [0, 1]
    model = SVC(kernel="linear").fit(X, y)
    assert compress(model, 1).predict([[0.0]]) == model.predict([[0.0]])


# --- stored sets ---------------------------------------------------------------------------------------------


IMAGE = Path(__file__).resolve().parents[2] / "shared" / "data" / "image.npz"


@pytest.mark.skipif(not IMAGE.exists(), reason="the stored sets are not here")
def test_a_tenth_of_the_vectors_of_image_without_data():
    """With C and gamma of Wu et al."""
    errors = []
    with np.load(IMAGE) as file:
        X, y = file["X"], file["y"]
        parts = list(zip(file["train_idx"][:5], file["test_idx"][:5], strict=True))
    for train, test in parts:
        small = compress(SVC(C=500, gamma=1 / 30).fit(X[train], y[train]), 0.1)
        errors.append(100 * np.mean(small.predict(X[test]) != y[test]))
    assert np.mean(errors) < 5
