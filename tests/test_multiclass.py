"""Several classes: machines for pairs, or for each class against the others."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.svm import SVC

import kernel_table
import reference
from problems import KERNEL_CASES, MACHINES, machine_name, three_classes
from slimsvm import AnyNormSVC
from slimsvm.model.voting import Votes

machines = pytest.mark.parametrize("machine", MACHINES, ids=machine_name)
strategies = pytest.mark.parametrize("multi_class", ["ovo", "ovr"])

# Two solutions with gaps of 1e-7 have decision values within 2 sqrt(2 gap k(x, x)) of each other.
REACH = 5e-3
LABELS = {
    "numbers": np.array([3, -1, 7]),
    "strings": np.array(["pear", "apple", "fig"]),
    "objects": np.array(["pear", "apple", "fig"], dtype=object),
}


def fit(machine, X, y, **params):
    slack, constraint = machine
    return AnyNormSVC(slack, constraint, tol=1e-7, **{"gamma": 0.5, **params}).fit(X, y)


@pytest.mark.parametrize(("multi_class", "shape"), [("ovo", "ovr"), ("ovo", "ovo"), ("ovr", "ovr")])
@machines
def test_shapes(machine, multi_class, shape):
    X, y = load_iris(return_X_y=True)
    y = y + 10 * (np.arange(150) % 2) * (y == 2)  # four classes: 0, 1, 2, 12
    model = fit(machine, X, y, multi_class=multi_class, decision_function_shape=shape)
    outputs = 6 if multi_class == "ovo" else 4
    assert model.vector_coef_.shape == (outputs, model.n_vectors_)
    assert model.vectors_.shape == (model.n_vectors_, 4)
    for name in ("intercept_", "objective_", "duality_gap_", "n_iter_"):
        assert getattr(model, name).shape == (outputs,)
    columns = 6 if shape == "ovo" else 4
    assert model.decision_function(X).shape == (150, columns)
    assert model.decision_function(X[:1]).shape == (1, columns)
    assert model.predict(X).shape == (150,)


@pytest.mark.parametrize("labels", LABELS)
@strategies
@machines
def test_predict_is_the_highest_score(machine, multi_class, labels):
    X, codes = three_classes()
    y = LABELS[labels][codes]
    model = fit(machine, X, y, multi_class=multi_class)
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    spread = 3 * np.random.default_rng(0).normal(size=(2000, 2))  # corners where votes tie included
    scores = model.decision_function(spread)
    np.testing.assert_array_equal(model.predict(spread), model.classes_[scores.argmax(axis=1)])
    assert model.predict(spread).dtype == y.dtype


@machines
def test_two_classes(machine):
    X, y = three_classes()
    X, y = X[y != 1], np.array(["no", "?", "yes"])[y[y != 1]]
    model = fit(machine, X, y)
    scores = model.decision_function(X)
    assert scores.shape == (len(X),)
    np.testing.assert_array_equal(model.predict(X), np.where(scores > 0, "yes", "no"))
    for params in ({"multi_class": "ovr"}, {"decision_function_shape": "ovo"}):
        np.testing.assert_array_equal(fit(machine, X, y, **params).decision_function(X), scores)


@machines
def test_pairs_are_separate_machines(machine):
    """One-vs-one is a fit for each pair, with only its rows: sharing kernel rows changes nothing."""
    X, y = three_classes(150)
    model = fit(machine, X, y, decision_function_shape="ovo")
    scores = model.decision_function(X)
    for p, (i, j) in enumerate(combinations(range(3), 2)):
        rows = (y == i) | (y == j)
        alone = fit(machine, X[rows], y[rows])
        assert model.objective_[p] == pytest.approx(alone.objective_[0], rel=2e-7)
        # Positive is the first class of a pair here, the second of two classes there.
        np.testing.assert_allclose(scores[:, p], -alone.decision_function(X), atol=REACH)


@machines
def test_each_class_against_the_others_is_a_separate_machine(machine):
    X, y = three_classes(150)
    model = fit(machine, X, y, multi_class="ovr")
    scores = model.decision_function(X)
    for c in range(3):
        alone = fit(machine, X, y == c)
        assert model.objective_[c] == pytest.approx(alone.objective_[0], rel=2e-7)
        np.testing.assert_allclose(scores[:, c], alone.decision_function(X), atol=REACH)


def test_pairs_beyond_one_block():
    """900 rows, pairs of 600: subproblems work on shared float32 rows in segments."""
    X, y = three_classes(900)
    model = fit(MACHINES[0], X, y, decision_function_shape="ovo", cache_size=1.5)
    for p, (i, j) in enumerate(combinations(range(3), 2)):
        rows = (y == i) | (y == j)
        alone = fit(MACHINES[0], X[rows], y[rows], precision="float64")
        assert model.objective_[p] == pytest.approx(alone.objective_[0], rel=2e-7)


@pytest.mark.parametrize(
    "case", [c for c in KERNEL_CASES if c.name not in kernel_table.names(in_sklearn=False)], ids=lambda c: c.name
)
def test_same_scores_as_scikit_learn(case):
    X, y = three_classes(120)
    X = np.round(8 * X) / 8
    rows = case.training_input(X)
    ours = AnyNormSVC(C=2.0, tol=1e-9, decision_function_shape="ovo", **case.params).fit(rows, y)
    theirs = SVC(C=2.0, tol=1e-9, decision_function_shape="ovo", **case.params).fit(rows, y)
    np.testing.assert_allclose(ours.decision_function(rows), theirs.decision_function(rows), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))


@strategies
@machines
def test_each_vector_is_kept_once(machine, multi_class):
    X, y = three_classes()
    model = fit(machine, X, y, multi_class=multi_class)
    assert len(np.unique(model.support_)) == model.n_vectors_ == len(model.vectors_) == len(model.support_)
    np.testing.assert_array_equal(model.vectors_, X[model.support_])
    assert model.vector_coef_.any(axis=0).all()  # and none that no machine uses
    f = reference.kernel_matrix("rbf", X, model.vectors_, gamma=0.5) @ model.vector_coef_.T + model.intercept_
    np.testing.assert_allclose(model._scores(X), f, atol=1e-10 * max(1, np.abs(model.vector_coef_).sum()))


def test_votes_decide_and_confidence_breaks_ties():
    """As in scikit-learn: a class with more pairwise wins is never overruled by large scores of another."""
    X, y = load_iris(return_X_y=True)
    ours = AnyNormSVC(gamma=0.5, tol=1e-9).fit(X, y)
    theirs = SVC(gamma=0.5, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


@strategies
def test_changing_the_strategy_is_for_the_next_fit(multi_class):
    """Three classes have three pairs: a model that mixed them up would not even notice."""
    X, y = three_classes()
    model = AnyNormSVC(multi_class=multi_class).fit(X, y)
    before = model.predict(X)
    model.set_params(multi_class="ovr" if multi_class == "ovo" else "ovo")
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("by_value", [True, False])
@pytest.mark.parametrize("zero_is_positive", [True, False])
def test_winners_of_integers_are_those_of_scores(by_value, zero_is_positive):
    """Small integers, so that votes and sums are often tied."""
    rule = Votes(pairs=True, by_value=by_value, zero_is_positive=zero_is_positive)
    F = np.random.default_rng(0).integers(-2, 3, size=(2000, 6))
    np.testing.assert_array_equal(rule.winners(F, 4), rule.leaders(F.astype(float), 4))
