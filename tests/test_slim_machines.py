"""Small machines are what they say: solved over their vectors, never more of them than asked for."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.svm import SVC

import reference
import reference_bases as slow
from problems import KERNEL_CASES, blobs, three_classes
from slimsvm import AnyNormSVC, EmpiricalSVC, ReducedSVC, SlimSVC, bases, losses
from small_models import (
    BASES,
    CONTAINERS,
    SLACKS,
    containers,
    every_basis,
    every_model,
    make,
    scores,
    slim,
    textbook,
)

pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")


# --- The machine over given vectors --------------------------------------------------------------------------


def biased_loss(loss, f, y, C, b):
    return slow.loss_value(loss, f + b, y, C)


def check_machine(model, X, y, C, slack, regularizer, scheme, gap=None, weight=None):
    """objective_, duality_gap_, vector_coef_ and intercept_ against the conic reference, for every output."""
    codes = np.unique(y, return_inverse=True)[1]
    K, Kz = textbook(model.kernel_, X, model.vectors_), textbook(model.kernel_, model.vectors_, model.vectors_)
    R = Kz if regularizer == "kernel" else np.eye(len(Kz))
    weight = np.ones(len(y)) if weight is None else weight
    machines = slow.outputs(codes, scheme)
    assert model.vector_coef_.shape == (len(machines), len(Kz))
    tol = model.tol if gap is None else gap
    for o, (labels, rows) in enumerate(machines):
        cost = C * weight[rows]
        best = slow.machine(K[rows], R, labels, cost, SLACKS[slack])
        beta, b = model.vector_coef_[o], model.intercept_[o]
        f = K[rows] @ beta + b
        value = 0.5 * beta @ R @ beta + slow.loss_value(SLACKS[slack], f, labels, cost)
        assert model.objective_[o] == pytest.approx(value, rel=1e-8)
        assert model.objective_[o] == pytest.approx(best.value, rel=tol + 1e-7)
        assert model.duality_gap_[o] <= tol
        # |f - f*|^2 / 2 <= value - value* in the norm of R
        shift = beta - best.coef
        assert 0.5 * shift @ R @ shift <= (tol + 2e-7) * value
        loss_of_bias = partial(biased_loss, SLACKS[slack], f - b, labels, cost)
        low, high, _ = reference.best_bias(loss_of_bias, labels - f + b)
        assert low - 2e-3 <= b <= high + 2e-3


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("regularizer", ["kernel", "identity"])
@pytest.mark.parametrize("slack", SLACKS)
def test_given_vectors(slack, regularizer, classes, scheme):
    X, y = three_classes(75, seed=1)
    X, y = X[y < classes], y[y < classes]
    Z = X[::9] + 0.1
    model = SlimSVC(
        basis=Z, slack=slack, regularizer=regularizer, multi_class=scheme, C=5.0, gamma=0.7, scales="fixed", tol=1e-8
    ).fit(X, y)
    np.testing.assert_array_equal(model.vectors_, Z)
    assert not hasattr(model, "support_")
    check_machine(model, X, y, 5.0, slack, regularizer, scheme)


@containers
@pytest.mark.parametrize(
    "case", [case for case in KERNEL_CASES if case.name != "precomputed"], ids=lambda case: case.name
)
def test_given_vectors_with_every_kernel(case, container):
    X, y = blobs(60, seed=1, density=0.7)
    params = {"gamma": "scale", **case.params}
    model = SlimSVC(basis=X[:7], C=5.0, scales="fixed", tol=1e-8, **params).fit(CONTAINERS[container](X), y)
    check_machine(model, X, y, 5.0, "l2", "kernel", "ovo")
    np.testing.assert_allclose(model.decision_function(CONTAINERS[container](X)), scores(model, X)[:, 0], atol=1e-9)


@pytest.mark.parametrize("kind", ["sparse", "list", "frame", "float32", "more than n_vectors", "duplicates"])
def test_given_vectors_in_any_container(kind):
    """The problem is solved at exactly these vectors; repeated ones change nothing but the list."""
    X, y = blobs(60, seed=1)
    Z = X[:5]
    given = {
        "sparse": sp.csr_array(Z),
        "list": Z.tolist(),
        "frame": pd.DataFrame(Z),
        "float32": Z.astype(np.float32),
        "more than n_vectors": Z,
        "duplicates": np.vstack([Z, Z[:2]]),
    }[kind]
    plain = slim(5, Z, tol=1e-8).fit(X, y)
    model = slim(3 if kind == "more than n_vectors" else 20, given, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-4)
    np.testing.assert_allclose(model.objective_, plain.objective_, rtol=1e-7)


def test_a_model_does_not_change_with_the_array_it_was_given():
    X, y = blobs(60)
    rows, Z = X.copy(), X[:5].copy()
    models = [slim(5, Z).fit(rows, y), slim(5, init=Z, learning_iter=0).fit(rows, y), slim(5, "forward").fit(rows, y)]
    before = [model.decision_function(X) for model in models]
    Z += 1
    rows += 1
    for model, expected in zip(models, before, strict=True):
        np.testing.assert_array_equal(model.decision_function(X), expected)


def test_given_vectors_with_several_classes_are_kept_once():
    X, y = three_classes()
    for vectors in ("shared", "per_class"):
        assert slim(5, X[:5], vectors=vectors).fit(X, y).n_vectors_ <= 5


def test_a_given_start_keeps_its_limit():
    """n_vectors is the most that the model keeps, whatever the start has."""
    X, y = blobs(60)
    assert slim(5, init=X[:5]).fit(X, y).n_vectors_ == 5
    with pytest.raises(ValueError, match="n_vectors=3"):
        slim(3, init=X[:5]).fit(X, y)


# --- Fitted attributes ---------------------------------------------------------------------------------------


@containers
@pytest.mark.parametrize("classes", [2, 3])
@every_model
def test_scores_are_the_documented_expansion(model, classes, container):
    X, y = three_classes(60, seed=2)
    X, y = X[y < classes], y[y < classes]
    model = make(model).set_params(decision_function_shape="ovo").fit(CONTAINERS[container](X), y)
    expected = scores(model, X)
    actual = model.decision_function(CONTAINERS[container](X))
    np.testing.assert_allclose(actual.reshape(expected.shape), expected, atol=1e-9 * np.abs(model.vector_coef_).sum())
    outputs = 1 if classes == 2 else 3
    assert model.vectors_.shape == (model.n_vectors_, 2)
    assert model.vector_coef_.shape == (outputs, model.n_vectors_)
    for name in ("intercept_", "objective_", "duality_gap_", "n_iter_"):
        assert getattr(model, name).shape == (outputs,)
    assert (model.n_iter_ >= 1).all()
    assert (model.duality_gap_ <= model.tol).all()
    if hasattr(model, "support_"):
        np.testing.assert_array_equal(bases.dense(model.vectors_), X[model.support_])
    assert model.score(X, y) > 0.7


@every_model
def test_the_certificate_is_the_reference_at_the_vectors_kept(model):
    X, y = blobs(60, d=2, seed=3)
    name, model = model, make(model).fit(X, y)
    slack, regularizer = model.slack, model.regularizer
    K, Kz = textbook(model.kernel_, X, model.vectors_), textbook(model.kernel_, model.vectors_, model.vectors_)
    epsilon = 1e-6 if getattr(model, "basis", "") == "learned" else 0.0
    R = Kz + epsilon * np.eye(len(Kz)) if regularizer == "kernel" else np.eye(len(Kz))
    best = slow.machine(K, R, y, 2.0, SLACKS[slack])
    assert model.objective_[0] == pytest.approx(best.value, rel=2e-6), name
    f = K @ model.vector_coef_[0] + model.intercept_[0]
    value = 0.5 * model.vector_coef_[0] @ R @ model.vector_coef_[0] + slow.loss_value(SLACKS[slack], f, y, 2.0)
    assert model.objective_[0] == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("n_vectors", [1, 2, 4, 7])
@pytest.mark.parametrize("vectors", ["shared", "per_class"])
@every_basis
def test_never_more_vectors_than_asked_for(basis, vectors, n_vectors):
    X, y = three_classes(75, seed=3)
    model = slim(n_vectors, basis, vectors=vectors)
    if vectors == "per_class" and n_vectors < 3:
        with pytest.raises(ValueError, match=r"n_vectors=.*3 classes"):
            model.fit(X, y)
        return
    model.fit(X, y)
    assert 1 <= model.n_vectors_ <= n_vectors
    assert model.n_vectors_ == n_vectors or basis == "cholesky"
    assert model.decision_function(X).shape == (75, 3)


def test_a_refit_forgets_the_fit_before():
    X, y = blobs(60)
    model = slim(basis="forward").fit(X, y)
    assert hasattr(model, "support_")
    model.set_params(basis="kmeans").fit(X[:, :2], y)
    assert not hasattr(model, "support_")
    assert model.n_features_in_ == 2


@every_model
def test_same_seed_same_model(model):
    rows, y = three_classes(60, seed=4)
    model = make(model).fit(rows, y)
    before = {k: v for k, v in vars(model).items() if isinstance(v, np.ndarray)}
    for other in (clone(model).fit(rows, y), model.fit(rows, y)):
        for name, value in before.items():
            np.testing.assert_array_equal(getattr(other, name), value, err_msg=name)


def test_another_seed_another_model():
    X, y = blobs(80)
    for basis in ("random", "learned"):
        one, other = (slim(basis=basis, init="random", random_state=seed).fit(X, y).vectors_ for seed in (0, 1))
        assert not np.array_equal(one, other)
    one, other = (ReducedSVC(5, random_state=seed).fit(X, y).vectors_ for seed in (0, 1))
    assert not np.array_equal(one, other)
    state = np.random.RandomState(3)
    one, other = (ReducedSVC(5, random_state=state).fit(X, y).vectors_ for _ in range(2))
    assert not np.array_equal(one, other)


@every_model
def test_global_random_state_is_left_alone(model):
    X, y = blobs(60)
    before = pickle.dumps(np.random.get_state())  # noqa: NPY002
    make(model).fit(X, y)
    assert pickle.dumps(np.random.get_state()) == before  # noqa: NPY002


@every_model
def test_the_input_is_left_as_it_is(model):
    X, y = blobs(60)
    rows, labels, weight = X.copy(), y.copy(), np.ones(60)
    for array in (rows, labels, weight):
        array.setflags(write=False)
    make(model).fit(rows, labels, weight).predict(rows)


# --- The papers' machines ------------------------------------------------------------------------------------


def test_empirical_svc_converges_to_the_machine_over_all_rows():
    """The kernel regulariser keeps the meaning of C: as eta falls, the decision values become the SVC's."""
    X, y = blobs(120, d=2, seed=12)
    full = SVC(C=3.0, gamma=0.8, tol=1e-9).fit(X, y)
    ours = AnyNormSVC(C=3.0, gamma=0.8, tol=1e-9).fit(X, y)
    errors = []
    for eta in (1e-1, 1e-3, 1e-6, 0.0):
        for selection in ("order", "pivoted"):
            model = EmpiricalSVC(eta, selection, C=3.0, gamma=0.8, tol=1e-9).fit(X, y)
            errors.append(np.abs(model.decision_function(X) - full.decision_function(X)).max())
            assert model.objective_[0] >= ours.objective_[0] * (1 - 1e-7)  # a smaller space is never better
    assert errors[0] > errors[-1]
    assert max(errors[-4:]) < 2e-3
    assert model.objective_[0] == pytest.approx(ours.objective_[0], rel=1e-6)


def test_empirical_svc_keeps_the_rows_of_the_definition():
    X, y = blobs(300, d=3, seed=13)
    K = reference.kernel_matrix("rbf", X, X, gamma=0.4)
    model = EmpiricalSVC(0.03, gamma=0.4).fit(X, y)
    np.testing.assert_array_equal(model.support_, slow.independent_rows(K, 0.03))


@containers
@pytest.mark.parametrize("slack", SLACKS)
@pytest.mark.parametrize("regularizer", ["kernel", "identity"])
def test_inputs_as_features_are_the_linear_machine(regularizer, slack, container):
    X, y = blobs(80, seed=14)
    model = EmpiricalSVC(
        selection="inputs", kernel="linear", regularizer=regularizer, slack=slack, C=0.7, tol=1e-9
    ).fit(CONTAINERS[container](X), y)
    best = slow.linear_machine(X, y, 0.7, SLACKS[slack])
    assert model.n_vectors_ == 4
    assert model.objective_[0] == pytest.approx(best.value, rel=1e-7)
    np.testing.assert_allclose(model.vector_coef_[0] @ bases.dense(model.vectors_), best.w, atol=1e-3)
    if slack == "l1":
        theirs = SVC(kernel="linear", C=0.7, tol=1e-9).fit(X, y)
        np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(X), atol=1e-3)


def test_linear_rows_span_the_inputs():
    """NOSV: as many rows as the rank, and the linear machine's own solution."""
    X, y = blobs(80, d=3, seed=15)
    X = np.c_[X, X @ [1.0, 2.0, 3.0]]
    model = EmpiricalSVC(1e-8, kernel="linear", C=0.7, tol=1e-9).fit(X, y)
    assert model.n_vectors_ == 3
    theirs = SVC(kernel="linear", C=0.7, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(X), atol=1e-3)


def test_learned_vectors_beat_the_same_number_of_rows():
    X, y = blobs(300, d=2, seed=16)
    objective = {basis: slim(5, basis, learning_iter=50).fit(X, y).objective_[0] for basis in BASES}
    assert objective["learned"] == min(objective.values())
    assert objective["forward"] < objective["random"]


@pytest.mark.parametrize("scales", ["fixed", "learned"])
@pytest.mark.parametrize("C", [0.1, 30.0])
@pytest.mark.parametrize("params", [{"coef0": 0.0}, {"coef0": 1.0}, {"coef0": 1.0, "degree": 2}], ids=str)
def test_polynomial_vectors_are_learned_at_any_cost(params, C, scales):
    """Nothing holds the length of a polynomial kernel's vectors: a long trial step is no reason to give up."""
    for seed in range(4):
        X, y = blobs(50, d=2, seed=seed)
        start = slim(3, "kmeans", kernel="poly", C=C, **params).fit(X, y)
        model = slim(3, kernel="poly", C=C, scales=scales, learning_iter=30, **params).fit(X, y)
        assert np.isfinite(model.decision_function(X)).all()
        assert model.objective_[0] <= start.objective_[0] * (1 + 1e-3)


def test_the_final_machine_has_the_slack_asked_for():
    """Learned with a rounded hinge, fitted with the hinge itself."""
    X, y = blobs(80, seed=17)
    model = slim(5, slack="l1", tol=1e-8).fit(X, y)
    K, Kz = textbook(model.kernel_, X, model.vectors_), textbook(model.kernel_, model.vectors_, model.vectors_)
    best = slow.machine(K, Kz + 1e-6 * np.eye(5), y, 2.0, "Hinge")
    assert model.objective_[0] == pytest.approx(best.value, rel=1e-6)
    for loss in (losses.HuberHinge(), losses.LeastSquares()):
        model = slim(basis=X[:5], slack=loss, tol=1e-8).fit(X, y)
        best = slow.machine(
            textbook(model.kernel_, X, X[:5]), textbook(model.kernel_, X[:5], X[:5]), y, 2.0, type(loss).__name__
        )
        assert model.objective_[0] == pytest.approx(best.value, rel=1e-7)
