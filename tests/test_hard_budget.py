"""Hard budgets: at most so many vectors, and a machine over them that is solved."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_moons

from problems import blobs, three_classes
from slimsvm import AnyNormSVC, BudgetSVC, kernels
from slimsvm.training import hard_budget as module

hardness = pytest.mark.parametrize("hard", ["select", "learn"])
norms = pytest.mark.parametrize("norm", ["l1", "l2"])


@norms
@hardness
@pytest.mark.parametrize("budget", [1, 2.9, 5, 12])
def test_never_more_vectors_than_the_budget(norm, hard, budget):
    X, y = blobs(80)
    model = BudgetSVC(budget, norm, hard).fit(X, y)
    assert model.n_vectors_ == len(model.vectors_) == model.vector_coef_.shape[1] == int(budget)
    assert (model.duality_gap_ <= 1e-3).all()
    f = model.vector_coef_ @ model.kernel_(model.vectors_, X) + model.intercept_[:, None]
    np.testing.assert_allclose(model.decision_function(X), f[0], atol=1e-9)


@hardness
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_several_classes_share_the_vectors(hard, multi_class):
    X, y = three_classes()
    model = BudgetSVC(6, hard=hard, multi_class=multi_class).fit(X, y)
    assert model.n_vectors_ == 6
    assert model.vector_coef_.shape == (3, 6)
    assert model.score(X, y) > 0.8


def test_selected_vectors_are_training_rows():
    X, y = blobs(60)
    model = BudgetSVC(7, hard="select").fit(X, y)
    np.testing.assert_array_equal(model.vectors_, X[model.support_])
    assert len(set(model.support_)) == 7
    assert not hasattr(model.set_params(hard="learn").fit(X, y), "support_")


@norms
def test_the_cost_taken_over_gives_the_same_machine(norm, monkeypatch):
    """While the cap is active, the budget machine is a scaled machine with the (squared) hinge: nu-SVM for "l1"."""
    X, y = make_moons(150, noise=0.15, random_state=0)
    costs = []
    equal_cost = module.equal_cost
    monkeypatch.setattr(module, "equal_cost", lambda *args: costs.append(equal_cost(*args)) or costs[-1])
    params = {"gamma": 2.0, "tol": 1e-8}
    BudgetSVC(20, norm, "select", **params).fit(X, y)
    soft = BudgetSVC(20, norm, **params).fit(X, y)
    hinge = AnyNormSVC(norm, C=costs[0], **params).fit(X, y)
    f, g = hinge.decision_function(X), soft.decision_function(X)
    np.testing.assert_allclose(f, np.median(f / g) * g, atol=3e-3 * np.abs(f).max())


@norms
def test_all_rows_as_vectors_are_the_full_machine(norm):
    """With a budget that holds every row and a cap that never binds, nothing is lost."""
    X, y = blobs(40)
    hard = BudgetSVC(len(y), norm, "select", C=2.0, tol=1e-6).fit(X, y)
    soft = BudgetSVC(len(y), norm, C=2.0, tol=1e-6).fit(X, y)
    if norm == "l1":
        assert hard.objective_[0] == pytest.approx(soft.objective_[0], rel=1e-5)
    scale = np.median(hard.decision_function(X) / soft.decision_function(X))
    np.testing.assert_allclose(hard.decision_function(X), scale * soft.decision_function(X), atol=0.05)


def test_learned_vectors_are_better_than_selected_ones_and_both_than_pruning():
    X, y = make_moons(600, noise=0.2, random_state=0)
    Xt, yt = make_moons(3000, noise=0.2, random_state=1)
    soft = BudgetSVC(40, gamma=2.0).fit(X, y)
    select, learn = (BudgetSVC(6, hard=hard, gamma=2.0).fit(X, y) for hard in ("select", "learn"))
    assert learn.score(Xt, yt) >= select.score(Xt, yt) - 0.01
    assert learn.score(Xt, yt) >= soft.score(Xt, yt) - 0.02


def test_precomputed_kernel_selects_the_same_rows():
    X, y = blobs(60)
    kernel = kernels.Gaussian(0.3)
    direct = BudgetSVC(6, hard="select", kernel=kernel).fit(X, y)
    K = kernel(X, X)
    matrix = BudgetSVC(6, hard="select", kernel="precomputed").fit(K, y)
    np.testing.assert_array_equal(matrix.support_, direct.support_)
    np.testing.assert_allclose(matrix.decision_function(K), direct.decision_function(X), atol=1e-6)


def test_weights_of_zero_are_rows_left_out():
    X, y = blobs(60)
    weight = np.ones(60)
    weight[::4] = 0
    some = weight > 0
    with_zeros = BudgetSVC(6, hard="select").fit(X, y, weight)
    without = BudgetSVC(6, hard="select", gamma=with_zeros.kernel_.gamma).fit(X[some], y[some])
    np.testing.assert_array_equal(with_zeros.support_, np.flatnonzero(some)[without.support_])
    np.testing.assert_allclose(with_zeros.decision_function(X), without.decision_function(X), atol=1e-8)


def test_few_candidates_where_rows_are_many(monkeypatch):
    monkeypatch.setattr(module, "MAX_CANDIDATE_VALUES", 1)
    X, y = blobs(200)
    first, second = (BudgetSVC(8, hard="select", random_state=0).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.support_, second.support_)
    assert first.n_vectors_ == 8


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"hard": "prune"}, ["hard='prune'", "select", "learn"]),
        ({"hard": "select", "budget": 0.5}, ["budget=0.5", "at least 1"]),
        ({"hard": "learn", "kernel": "precomputed"}, ["hard='learn'", "precomputed", "select"]),
        ({"hard": "learn", "kernel": lambda X, Z: X @ Z.T}, ["hard='learn'", "pullback", "select"]),
    ],
)
def test_what_makes_no_sense_is_named(params, words):
    X, y = blobs(20)
    with pytest.raises(ValueError) as error:
        BudgetSVC(**params).fit(X @ X.T if params.get("kernel") == "precomputed" else X, y)
    assert all(word in str(error.value) for word in words), error.value
