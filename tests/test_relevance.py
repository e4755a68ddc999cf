"""The relevance vector machine: its evidence against plain formulas, its moves, its probabilities, hard cases."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning

import reference
import reference_lp
from problems import KERNEL_CASES
from slimsvm import RelevanceVectorClassifier, kernels
from slimsvm.solvers.sparse import relevance, relevance_refinement
from test_lp import GAMMA, all_coefficients, gram, hard, two_bumps


def machine(X, y, weight=None, gamma=GAMMA):
    return relevance.RelevanceProblem(
        gram(X, gamma), (y > 0).astype(float), np.ones(len(y)) if weight is None else weight
    )


# --- Evidence and moves -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_evidence_is_the_textbook_formula(seed):
    rng = np.random.default_rng(seed)
    X, y = two_bumps(40, seed)
    weight = rng.uniform(0.5, 2, size=40)
    members, alpha = rng.choice(40, 4, replace=False), 10 ** rng.uniform(-3, 2, size=5)
    found = machine(X, y, weight).posterior(members, alpha, np.zeros(5))
    Phi = np.column_stack([np.ones(40), gram(X)[:, members]])
    expected, w = reference_lp.log_evidence(Phi, (y > 0).astype(float), weight, alpha)
    assert abs(found.evidence - expected) <= 1e-8 * abs(expected)
    np.testing.assert_allclose(found.w, w, atol=1e-6 * np.abs(w).max())


def test_promises_are_kept_to_first_order():
    """Small changes of a precision: the promised gain (at fixed curvature) has the slope of the evidence."""
    X, y = two_bumps(60)
    m = machine(X, y)
    now = m.posterior(np.array([3, 17]), np.array([0.1, 0.5, 2.0]), np.zeros(3))
    move = m.change(17, now.alpha[2], float(np.linalg.inv(now.factor @ now.factor.T)[2, 2]), now.w[2])
    alpha = now.alpha.copy()
    alpha[2] = move.alpha
    gained = m.posterior(now.members, alpha, now.w).evidence - now.evidence
    assert gained > 0
    assert 0.3 < gained / move.gain < 3


@pytest.mark.parametrize("make", [two_bumps, hard])
@pytest.mark.parametrize("gamma", [0.2, 2.0])
def test_the_evidence_always_rises(make, gamma):
    X, y = make(150)
    model = RelevanceVectorClassifier(gamma=gamma).fit(X, y)
    history = model.history_[0]
    assert (np.diff(history["objective"]) < 0).all()
    assert history["objective"][-1] == model.objective_[0]
    assert history["n_vectors"][-1] == model.n_vectors_
    assert len(history["objective"]) == model.n_iter_[0]


@pytest.mark.parametrize("seed", range(8))
def test_no_single_change_raises_the_evidence_by_much(seed):
    """By plain formulas: precisions anywhere, each vector deleted, each candidate added."""
    make, n = (two_bumps, hard)[seed % 2], 24
    X, y = make(n, seed)
    gamma = [0.1, 0.5, 2.0, 6.0][seed // 2]
    weight = np.random.default_rng(seed).uniform(0.3, 3, size=n) if seed % 3 == 0 else np.ones(n)
    model = RelevanceVectorClassifier(gamma=gamma, tol=1e-3).fit(X, y, weight)
    K, t = gram(X, gamma), (y > 0).astype(float)
    kept, alpha = model.support_, np.append(model.intercept_precision_, model.precision_[0])

    w = np.append(model.intercept_, model.vector_coef_[0])

    def evidence(members, precisions, start):
        return reference_lp.log_evidence(np.column_stack([np.ones(n), K[:, members]]), t, weight, precisions, start)[0]

    most = evidence(kept, alpha, w) + 1e-2
    for k in range(len(alpha)):
        for factor in 10.0 ** np.arange(-3, 3.1, 0.5):
            changed = alpha.copy()
            changed[k] = np.clip(alpha[k] * factor, 1e-12, 1e12)
            assert evidence(kept, changed, w) <= most
        if k:
            assert evidence(np.delete(kept, k - 1), np.delete(alpha, k), np.delete(w, k)) <= most
    for i in np.setdiff1d(np.arange(n), kept):
        for precision in 10.0 ** np.arange(-4, 4.1, 0.5):
            assert evidence(np.append(kept, i), np.append(alpha, precision), np.append(w, 0)) <= most


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_objective_follows_from_the_attributes(dtype):
    X, y = hard(60)
    X = X.astype(dtype)
    weight = 10 ** np.random.default_rng(0).uniform(-3, 3, size=60)
    for classes in (y, np.arange(60) % 3):
        model = RelevanceVectorClassifier(gamma=0.3).fit(X, classes, weight)
        for o, value in enumerate(model.objective_):
            used = np.isfinite(model.precision_[o])
            np.testing.assert_array_equal(used, model.vector_coef_[o] != 0)
            Phi = np.column_stack([np.ones(60), gram(X.astype(float), 0.3)[:, model.support_[used]]])
            t = (classes == model.classes_[o if len(model.classes_) > 2 else 1]).astype(float)
            alpha = np.append(model.intercept_precision_[o], model.precision_[o, used])
            expected, w = reference_lp.log_evidence(Phi, t, weight, alpha)
            assert abs(value + expected) <= 1e-9 * max(1, abs(expected))
            np.testing.assert_allclose(model.vector_coef_[o, used], w[1:], atol=1e-6 * np.abs(w).max())


def refined(X, y):
    m = machine(X, y)
    now = m.posterior(np.array([3, 17, 30]), np.array([0.1, 0.5, 2.0, 0.01]), np.zeros(4))
    return m, now, relevance_refinement.Refinement(m, 1e-3)


def test_the_gradient_of_the_evidence():
    m, now, refinement = refined(*two_bumps(60))
    slopes = refinement.gradient(now)
    for k in range(4):
        h = 1e-4 * (np.arange(4) == k)
        up, down = (m.posterior(now.members, now.alpha * np.exp(s * h), now.w, 0.0).evidence for s in (1, -1))
        assert abs((up - down) / 2e-4 - slopes[k]) <= 1e-6


def test_many_models_at_once_are_the_same_models():
    m, now, refinement = refined(*two_bumps(60))
    candidates = np.array([0, 8, 40])
    sizes = np.array([1.0, 5.0, 0.2])
    gains = refinement.gains(now, candidates, sizes)
    for i, candidate in enumerate(candidates):
        for j, factor in enumerate(relevance_refinement.ADDED_PRECISION_FACTORS):
            if np.isfinite(gains[i, j]):
                then = m.after(now, relevance.Move(int(candidate), factor * sizes[i], 0.0))
                assert abs(then.evidence - now.evidence - gains[i, j]) <= 1e-4
    assert np.isfinite(gains[:, 0]).all()


@pytest.mark.parametrize(("distance", "known"), [(1e-7, True), (1e-9, True), (0.0, False)])
def test_a_gain_that_rounding_hides_is_noticed(distance, known):
    """A candidate nearly in the span of the vectors, which alone tells some rows apart."""
    rng = np.random.default_rng(0)
    t = np.repeat([0.0, 1.0], 30)
    column = rng.normal(size=60)
    K = 1e6 * np.column_stack([column, column + distance * (2 * t - 1)])
    m = relevance.RelevanceProblem(K, t, np.ones(60))
    now = m.posterior(np.array([0]), np.array([1e-3, 1e-12]), np.zeros(2))
    assert relevance_refinement.Refinement(m, 1e-3).hidden_gain(now, np.array([1])) == known


def test_a_summit_is_that_of_the_parabola():
    x = np.array([0.0, 1.0, 3.0, 4.0])
    values = -((x - 2.2) ** 2)
    np.testing.assert_array_equal(relevance_refinement.peaks(values, -1.0), [2])
    assert abs(relevance_refinement.summit(x, values, 2) - 2.2) < 1e-12
    assert relevance_refinement.summit(x, values, 3) == 4.0


@pytest.mark.parametrize("factor", [1e18, 1e-18, 1e100])
def test_class_weights_far_apart(factor):
    X, y = two_bumps(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = RelevanceVectorClassifier(gamma=GAMMA, class_weight={1.0: factor}).fit(X, y)
    assert np.isfinite(model.objective_).all()
    shares = model.predict_proba(X)
    assert np.isfinite(shares).all()
    # The class without weight counts for nothing where the other one is.
    heavy = 1.0 if factor > 1 else -1.0
    assert (model.predict(X[y == heavy]) == heavy).all()


def test_no_vector_warns():
    rng = np.random.default_rng(2)
    with pytest.warns(UserWarning, match="no vector raises the evidence in 1 of 1 binary problems"):
        model = RelevanceVectorClassifier(gamma=0.1).fit(rng.normal(size=(60, 3)), rng.integers(2, size=60))
    assert model.n_vectors_ == 0


def test_few_vectors_and_good_answers():
    X, y = two_bumps(300)
    X_test, y_test = two_bumps(4000, seed=1)
    model = RelevanceVectorClassifier(gamma=GAMMA).fit(X, y)
    assert 2 <= model.n_vectors_ <= 10
    assert model.score(X_test, y_test) > 0.89
    np.testing.assert_array_equal(model.vectors_, X[model.support_])


# --- Probabilities --------------------------------------------------------------------------------------


def test_probabilities_are_calibrated():
    X, y = two_bumps(500)
    X_test, y_test = two_bumps(8000, seed=1)
    shares = RelevanceVectorClassifier(gamma=GAMMA).fit(X, y).predict_proba(X_test)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    for low in np.arange(0, 1, 0.2):
        some = (shares[:, 1] >= low) & (shares[:, 1] < low + 0.2)
        if some.sum() > 300:
            assert abs(shares[some, 1].mean() - (y_test[some] > 0).mean()) < 0.1


def test_probabilities_and_predictions_agree():
    for X, y in (two_bumps(100), load_iris(return_X_y=True)):
        model = RelevanceVectorClassifier().fit(X, y)
        shares = model.predict_proba(np.vstack([X, 1e6 + X]))
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        assert ((shares >= 0) & (shares <= 1)).all()
        np.testing.assert_array_equal(model.classes_[shares[: len(X)].argmax(axis=1)], model.predict(X))
        assert model.score(X, y) > 0.85


# --- Weights, kernels, input --------------------------------------------------------------------------------


def test_copies_are_weights_and_one_candidate():
    X, y = two_bumps(60)
    times = np.random.default_rng(0).integers(0, 4, size=60)
    weighted = RelevanceVectorClassifier(gamma=GAMMA).fit(X, y, times)
    copied = RelevanceVectorClassifier(gamma=GAMMA).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.decision_function(X), copied.decision_function(X), atol=1e-6)
    assert len(np.unique(copied.vectors_, axis=0)) == copied.n_vectors_ == weighted.n_vectors_


@pytest.mark.parametrize("case", KERNEL_CASES, ids=lambda case: case.name)
def test_every_kernel(case):
    X, y = hard(80)
    X_new, _ = hard(30, seed=5)
    model = RelevanceVectorClassifier(**case.params).fit(case.training_input(X), y)
    expected = case.matrix(X_new, X) @ all_coefficients(model, 80) + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(case.test_input(X_new, X)), expected, atol=1e-8)
    assert (np.diff(model.history_[0]["objective"]) < 0).all()


def test_an_indefinite_kernel_is_no_obstacle():
    X, y = two_bumps(100)
    with pytest.warns(UserWarning, match="positive semidefinite"):
        model = RelevanceVectorClassifier("sigmoid", gamma=2.0, coef0=-1.0).fit(X, y)
    assert model.score(X, y) > 0.8


def test_sparse_rows_are_the_same_rows():
    X, y = hard(100)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    dense, sparse = (RelevanceVectorClassifier(gamma=0.1).fit(rows, y) for rows in (X, sp.csr_array(X)))
    np.testing.assert_array_equal(dense.support_, sparse.support_)
    np.testing.assert_allclose(dense.predict_proba(X), sparse.predict_proba(sp.csr_array(X)), atol=1e-6)


def test_candidates_are_thinned_where_rows_are_many(monkeypatch):
    monkeypatch.setattr(relevance, "MAX_KERNEL_VALUES", 40_000)
    X, y = two_bumps(1000)
    largest = 0

    def watched(X, Z):
        nonlocal largest
        largest = max(largest, X.shape[0] * Z.shape[0])
        return kernels.Gaussian(GAMMA)(X, Z)

    model = RelevanceVectorClassifier(watched).fit(X, y)
    assert largest <= 64_000
    assert model.score(X, y) > 0.88


# --- Hard cases -----------------------------------------------------------------------------------------------


def degenerate(name):
    rng = np.random.default_rng(0)
    X, y = two_bumps(60)
    if name == "separable":
        return np.vstack([X, X + 10]), np.repeat([0, 1], 60)
    if name == "near copies":
        return np.repeat(X, 4, axis=0) + 1e-9 * rng.normal(size=(240, 2)), np.repeat(y, 4)
    if name == "copies":
        return np.repeat(X, 4, axis=0), np.repeat(y, 4)
    if name == "contradictions":
        return np.vstack([X, X]), np.append(y, -y)
    if name == "noise":
        return rng.normal(size=(80, 3)), rng.integers(2, size=80)
    if name == "one of a class":
        return X, np.where(np.arange(60) == 7, 1, -1)
    if name == "two rows":
        return X[:2], np.array([0, 1])
    if name == "constant rows":
        return np.ones((20, 2)), np.arange(20) % 2
    if name == "one feature":
        return X[:, :1], y
    return 1e8 * X, y


CASES = [
    "separable",
    "near copies",
    "copies",
    "contradictions",
    "noise",
    "one of a class",
    "two rows",
    "constant rows",
    "one feature",
    "huge numbers",
]


@pytest.mark.filterwarnings("ignore:kernel values")
@pytest.mark.parametrize("gamma", ["scale", 1e-4, 1e3])
@pytest.mark.parametrize("name", CASES)
def test_degenerate_problems_have_an_answer(name, gamma):
    X, y = degenerate(name)
    model = RelevanceVectorClassifier(gamma=gamma).fit(X, y)
    shares = model.predict_proba(X)
    assert np.isfinite(shares).all()
    assert np.isfinite(model.vector_coef_).all()
    assert (np.diff(model.history_[0]["objective"]) < 0).all()
    if name == "separable" and gamma == "scale":
        assert model.score(X, y) == 1.0


def test_a_linear_kernel_of_few_dimensions_is_near_singular():
    X, y = make_classification(200, 5, random_state=0)
    model = RelevanceVectorClassifier("linear").fit(X, y)
    assert model.n_vectors_ <= 10
    assert model.score(X, y) > 0.8
    polynomial = RelevanceVectorClassifier("poly", degree=5, coef0=1.0).fit(X, y)
    assert np.isfinite(polynomial.predict_proba(X)).all()


def test_max_iter_warns():
    X, y = two_bumps(100)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        RelevanceVectorClassifier(gamma=GAMMA, max_iter=2).fit(X, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"tol": 0}, "tol=0"),
        ({"max_iter": 0.5}, "max_iter=0.5"),
        ({"gamma": -1}, "gamma=-1"),
        ({"kernel": "gauss"}, "kernel='gauss'"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"class_weight": "even"}, "class_weight='even'"),
    ],
)
def test_bad_parameters(params, message):
    X, y = two_bumps(20)
    with pytest.raises(ValueError, match=message):
        RelevanceVectorClassifier(**params).fit(X, y)


def test_progress_is_shown(capsys):
    X, y = two_bumps(50)
    RelevanceVectorClassifier(verbose=True).fit(X, y)
    assert "log evidence" in capsys.readouterr().err


def test_class_weights_shift_the_bias():
    X, y = two_bumps(200)
    heavy = RelevanceVectorClassifier(gamma=GAMMA, class_weight={1.0: 10.0}).fit(X, y)
    assert (heavy.predict(X) > 0).mean() > (RelevanceVectorClassifier(gamma=GAMMA).fit(X, y).predict(X) > 0).mean()


def test_reference_kernel_is_the_librarys():
    X, _ = two_bumps(10)
    np.testing.assert_allclose(reference.kernel_matrix("rbf", X, X, gamma=GAMMA), kernels.Gaussian(GAMMA)(X, X))


@pytest.mark.parametrize("seed", [6, 8, 28])
def test_a_precision_at_its_limit_is_not_yet_a_deletion(seed):
    """Of kernel values this large even the largest precision leaves something: deleting is tried, too."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((16, 4)) * 10.0 ** rng.integers(2, 6), rng.integers(0, 2, 16)
    clf = RelevanceVectorClassifier(kernel="linear", tol=1e-6, class_weight={0: 41.0}).fit(X, y)
    machine = relevance.RelevanceProblem(X @ X.T, (y > 0).astype(float), np.where(y == 0, 41.0, 1.0))
    used, w = clf.support_, np.append(clf.intercept_, clf.vector_coef_[0])
    alpha = np.append(clf.intercept_precision_, clf.precision_[0])
    now = machine.posterior(used, alpha, w)
    for k in range(len(used)):
        fewer = machine.posterior(np.delete(used, k), np.delete(alpha, k + 1), np.delete(w, k + 1))
        assert fewer.evidence <= now.evidence + 1e-5


def test_a_vector_too_near_the_others_to_be_added_is_told():
    """What it would gain is more than rounding, but its equations are not: a warning, not silence."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((100, 3))
    X[0] *= 1e4
    y = X[:, 2] + 0.3 * rng.standard_normal(100) > 0
    with pytest.warns(ConvergenceWarning, match="rounding"):
        RelevanceVectorClassifier(gamma=0.0012).fit(X, y, sample_weight=rng.lognormal(0, 4, 100))
