"""Classifiers whose optimum is f = 0: what solvers find is rounding, whose signs would differ on each device."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.optimize import linprog
from sklearn.datasets import make_moons

import slimsvm
from c_programs import PREDICT, answers, build
from slimsvm import (
    SVC,
    AnyNormSVC,
    BudgetSVC,
    LeastSquaresSVC,
    NuSVC,
    Predictor,
    load,
    save,
    to_c,
    to_micropython,
    to_sklearn,
)

ZERO = "the decision function is zero in {} of {} binary problems"


def random_labels(classes=3):
    rng = np.random.default_rng(0)
    return rng.normal(size=(80, 6)), rng.integers(0, classes, 80)


def one_hot():
    rng = np.random.default_rng(0)
    return np.eye(12)[rng.integers(0, 12, 200)], rng.integers(0, 2, 200)


def twins(classes=2):
    """Each row in two classes; a third class apart."""
    Z = np.random.default_rng(0).normal(size=(40, 3))
    return np.vstack([Z, Z, Z + 8][:classes]), np.repeat(np.arange(classes), 40)


# Model, rows, how many binary problems are zero.
CASES = {
    "nu, random labels": (NuSVC(nu=0.05, kernel="linear"), random_labels(), 3),
    "nu, ties by value": (NuSVC(nu=0.05, kernel="linear", break_ties=True), random_labels(), 3),
    "nu, pairs": (NuSVC(nu=0.05, kernel="linear", decision_function_shape="ovo"), random_labels(), 3),
    "nu, nearly constant kernel": (NuSVC(nu=0.1, gamma=4.7e-8), one_hot(), 1),
    "nu, many rows": (NuSVC(nu=0.2), twins(), 1),
    "twins": (SVC(), twins(), 1),
    "twins of three classes": (SVC(kernel="linear"), twins(3), 1),
}


def fitted(name):
    model, (X, y), zeros = CASES[name]
    problems = {2: 1, 3: 3}[len(np.unique(y))]
    with pytest.warns(UserWarning, match=ZERO.format(zeros, problems)):
        model.fit(X, y)
    return model, X, zeros


@pytest.mark.parametrize("name", CASES)
def test_it_is_exactly_zero(name):
    model, X, zeros = fitted(name)
    coef, bias = model.vector_coef_, model.intercept_
    zero = ~coef.any(axis=1) & (bias == 0)
    assert zero.sum() == zeros
    assert (model.objective_[zero] >= 0).all()
    assert (model.duality_gap_ <= model.tol).all()
    if zero.all():
        assert model.n_vectors_ == 0
        assert model.n_support_.sum() == 0
        assert len(set(model.predict(np.vstack([X, 100 * X])).tolist())) == 1


@pytest.mark.parametrize("name", CASES)
def test_every_form_gives_the_same_class(name, tmp_path):
    model, X, _ = fitted(name)
    rows = np.vstack([X, 3 * X, np.zeros((1, X.shape[1]))]).astype(np.float32)
    labels = model.predict(rows)
    save(model, tmp_path / "m.slim")
    forms = {"slim": load(tmp_path / "m.slim"), "sklearn": to_sklearn(model), "predictor": Predictor(model)}
    for form, made in forms.items():
        assert_array_equal(made.predict(rows), labels, err_msg=form)
    module: dict = {}
    exec(to_micropython(model), module)
    assert [module["predict"](row.tolist()) for row in rows] == labels.tolist()
    numbers = answers(build(tmp_path, str(to_c(model)), [PREDICT]), rows)[:, 0].astype(int)
    assert_array_equal(model.classes_[numbers], labels)


def test_onnx_gives_the_same_class():
    runtime = pytest.importorskip("onnxruntime")
    for name in CASES:
        model, X, _ = fitted(name)
        session = runtime.InferenceSession(slimsvm.to_onnx(model).SerializeToString())
        assert_array_equal(session.run(["label"], {"X": X.astype(np.float32)})[0], model.predict(X), err_msg=name)


def test_other_problems_stay_what_they_are():
    """Of three classes, one pair of which is the same rows."""
    model, X, _ = fitted("twins of three classes")
    y = np.repeat([0, 1, 2], 40)
    for row, pair in ((1, (0, 2)), (2, (1, 2))):
        some = np.isin(y, pair)
        alone = SVC(kernel="linear").fit(X[some], y[some])
        values = X @ (model.vector_coef_ @ model.vectors_)[row] + model.intercept_[row]
        np.testing.assert_allclose(values[some], -alone.decision_function(X[some]), atol=2e-3)


def hulls_meet(X, y, nu):
    """Is there a point in both reduced convex hulls, whose weights are at most ``2 / (nu n)``?"""
    side, most = np.where(y == 1, 1.0, -1.0), 2 / (nu * len(y))
    equal = np.vstack([X.T * side, y == 1, y == 0])
    return linprog(np.zeros(len(y)), A_eq=equal, b_eq=[0.0] * X.shape[1] + [1, 1], bounds=(0, most)).success


def test_it_is_zero_where_reduced_hulls_meet_and_only_there():
    """For the linear kernel, by linear programming: overlapping classes, in any unit."""
    rng = np.random.default_rng(1)
    found = []
    for scale in (1e-6, 1.0, 1e6):
        for nu in (0.05, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8):
            y = np.repeat([0, 1], 50)
            X = rng.normal(size=(100, 3)) + y[:, None]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = NuSVC(nu=nu, kernel="linear").fit(scale * X, y)
            found.append(model.n_vectors_ == 0)
            assert found[-1] == hulls_meet(X, y, nu)
    assert 0 < sum(found) < len(found)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("unbalanced", [False, True])
def test_informative_functions_are_not_set_to_zero(kernel, unbalanced):
    """However small its values: rows in any unit, tiny costs, kernels that are nearly constant."""
    X, y = make_moons(200, noise=0.15, random_state=0)
    if unbalanced:
        rows = np.append(np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:40])
        X, y = X[rows], y[rows]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for unit in (1e-6, 1.0, 1e6):
            for C in (1e-30, 1e-12, 1.0):
                assert SVC(C=C, kernel=kernel).fit(unit * X, y).n_vectors_
                AnyNormSVC(C=C, kernel=kernel).fit(unit * X, y)
            assert NuSVC(nu=0.3, kernel=kernel).fit(unit * X, y).score(unit * X, y) > 0.85
        if kernel == "rbf":
            for gamma in (1e-4, 1e-8, 1e-12):
                assert SVC(gamma=gamma, C=1 / gamma).fit(X, y).score(X, y) > 0.85
                assert NuSVC(gamma=gamma, nu=0.3).fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize("model", [AnyNormSVC(), AnyNormSVC("l2"), LeastSquaresSVC()])
def test_the_other_classifiers_say_so_and_keep_their_duals(model):
    """Their coefficients prove the gap."""
    X, y = twins()
    with pytest.warns(UserWarning, match=ZERO.format(1, 1) + ".*its predictions are arbitrary there"):
        model.fit(X, y)
    assert model.n_vectors_ == len(X)
    with pytest.warns(UserWarning, match="zero as far as tol tells"):
        BudgetSVC(5).fit(X, y)
