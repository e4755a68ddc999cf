"""Sample and class weights: a weight is a number of copies."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from problems import MACHINES, ONE_OF_EACH, blobs, machine_name, three_classes
from slimsvm import AnyNormSVC

TOL = 1e-8
machines = pytest.mark.parametrize("machine", ONE_OF_EACH, ids=machine_name)


def fit(machine, X, y, sample_weight=None, **params):
    slack, constraint = machine
    return AnyNormSVC(slack, constraint, tol=TOL, **params).fit(X, y, sample_weight=sample_weight)


def assert_same_machine(one, other, X):
    """Equal optima; f may differ by sqrt(2 gap k(x, x)) at most, and k(x, x) = 1 here."""
    np.testing.assert_array_equal(one.classes_, other.classes_)
    np.testing.assert_allclose(one.objective_, other.objective_, rtol=3 * TOL)
    reach = 2 * np.sqrt(2 * TOL * max(one.objective_)) + 1e-9
    f_one, f_other = (np.atleast_2d(m._scores(X) - m.intercept_) for m in (one, other))
    np.testing.assert_allclose(f_one, f_other, rtol=0, atol=reach)
    assert one.kernel_.gamma == pytest.approx(other.kernel_.gamma, rel=1e-12)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "params", [{}, {"gamma": 0.3}, {"class_weight": "balanced"}, {"class_weight": {-1.0: 3.0}}], ids=str
)
@machines
def test_weight_zero_is_a_removed_row(machine, params, container):
    X, y = blobs(60, seed=1, density=0.6)
    X[::7] += 100  # rows that would change gamma="scale" and the offset a lot if they counted
    weight = np.where(np.arange(60) % 7 == 0, 0.0, 1.0)
    kept = weight > 0
    weighted = fit(machine, container(X), y, weight, **params)
    removed = fit(machine, container(X[kept]), y[kept], **params)
    assert_same_machine(weighted, removed, X[kept])
    np.testing.assert_allclose(weighted.decision_function(X[kept]), removed.decision_function(X[kept]), atol=1e-6)
    assert not np.isin(np.flatnonzero(~kept), weighted.support_).any()


@machines
def test_weight_zero_is_exactly_a_removed_row(machine):
    """With gamma given and centred data the arithmetic is the same to the last bit."""
    X, y = blobs(60, seed=1)
    weight = np.where(np.arange(60) % 7 == 0, 0.0, 1.0)
    weighted = fit(machine, X, y, weight, gamma=0.3)
    removed = fit(machine, X[weight > 0], y[weight > 0], gamma=0.3)
    np.testing.assert_array_equal(weighted.vector_coef_, removed.vector_coef_)
    np.testing.assert_array_equal(weighted.intercept_, removed.intercept_)
    np.testing.assert_array_equal(weighted.vectors_, removed.vectors_)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("params", [{}, {"gamma": 0.3}, {"class_weight": "balanced"}], ids=str)
@machines
def test_weight_k_is_k_copies(machine, params, container):
    X, y = blobs(40, seed=2, density=0.6)
    copies = 1 + np.arange(40) % 4
    weighted = fit(machine, container(X), y, copies, **params)
    repeated = fit(machine, container(np.repeat(X, copies, axis=0)), np.repeat(y, copies), **params)
    assert_same_machine(weighted, repeated, X)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@machines
def test_weight_k_is_k_copies_with_several_classes(machine, multi_class):
    X, y = three_classes()
    copies = np.arange(len(y)) % 3  # weight zero included
    params = {"multi_class": multi_class, "class_weight": "balanced"}
    weighted = fit(machine, X, y, copies, **params)
    repeated = fit(machine, np.repeat(X, copies, axis=0), np.repeat(y, copies), **params)
    assert_same_machine(weighted, repeated, X)


@machines
def test_a_class_without_weight_is_no_class(machine):
    X, y = three_classes()
    model = fit(machine, X, y, (y != 1).astype(float))
    np.testing.assert_array_equal(model.classes_, [0, 2])
    assert_same_machine(model, fit(machine, X[y != 1], y[y != 1]), X)


@machines
def test_class_weight_is_a_sample_weight(machine):
    X, y = three_classes()
    factors = {0: 0.5, 1: 2.0, 2: 3.0}
    weight = np.array([factors[c] for c in y])
    assert_same_machine(fit(machine, X, y, class_weight=factors, gamma=0.5), fit(machine, X, y, weight, gamma=0.5), X)
    part = fit(machine, X, y, class_weight={1: 2.0}, gamma=0.5)  # classes that are not named count once
    assert_same_machine(part, fit(machine, X, y, np.where(y == 1, 2.0, 1.0), gamma=0.5), X)


@machines
def test_balanced_is_the_formula_of_scikit_learn(machine):
    X, y = three_classes()
    keep = np.flatnonzero((y != 2) | (np.arange(len(y)) % 4 == 0))  # class 2 is rare
    X, y = X[keep], y[keep]
    factors = {int(c): len(y) / (3 * np.sum(y == c)) for c in range(3)}
    assert_same_machine(
        fit(machine, X, y, class_weight="balanced", gamma=0.5),
        fit(machine, X, y, class_weight=factors, gamma=0.5),
        X,
    )


@pytest.mark.parametrize("machine", MACHINES, ids=machine_name)
def test_scaling_all_weights_scales_C(machine):
    X, y = blobs(50, seed=3)
    weight = np.random.default_rng(0).uniform(0.5, 2, 50)
    assert_same_machine(fit(machine, X, y, 4 * weight, gamma=0.3), fit(machine, X, y, weight, C=4.0, gamma=0.3), X)


def test_same_as_scikit_learn_with_weights():
    X, y = blobs(80, seed=4)
    weight = np.random.default_rng(0).uniform(0.2, 2, 80)
    ours = AnyNormSVC(C=3.0, gamma=0.3, tol=1e-8).fit(X, y, sample_weight=weight)
    theirs = SVC(C=3.0, gamma=0.3, tol=1e-8).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


def test_weights_do_not_change_the_order_of_the_vectors():
    """`support_` names rows of the X that was given, not of the rows that were kept."""
    X, y = blobs(60, seed=5)
    weight = np.where(np.arange(60) < 10, 0.0, 1.0)
    model = AnyNormSVC(gamma=0.3).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(model.vectors_, X[model.support_])
    assert model.support_.min() >= 10
