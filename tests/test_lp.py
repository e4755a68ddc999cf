"""The Lp-norm machine: each round and the convex cases against a conic solver, fixed points, and its promises."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning

import reference
import reference_lp
from problems import KERNEL_CASES, cosine_plus_one
from slimsvm import LpSVC, SlimSVC, kernels, losses, regularizers
from slimsvm.rows.labels import RowLabels
from slimsvm.rows.memory import DenseFeatures
from slimsvm.solvers.pivoted_cholesky import pivoted_factor
from slimsvm.solvers.primal import solve as primal
from slimsvm.solvers.primal.hinge import HingeProblem
from slimsvm.solvers.sparse.candidate_space import KernelColumns, LowRank
from slimsvm.solvers.sparse.reweighting import solve_round, sparse_coefficients

VARIANTS = ("exact", "diagonal")
GAMMA = 2.0


def two_bumps(n, seed=0):
    """Two Gaussian bumps for each class, as in Ripley's data."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    side = rng.integers(2, size=n)
    centres = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
    return centres[(y > 0).astype(int), side] + rng.normal(size=(n, 2)) * np.sqrt(0.03), y


def all_coefficients(model, n, output=0):
    a = np.zeros(n)
    a[model.support_] = model.vector_coef_[output]
    return a


def gram(X, gamma=GAMMA):
    return reference.kernel_matrix("rbf", X, X, gamma=gamma)


# --- The machine of each round --------------------------------------------------------------------


def random_features(n, m, seed):
    rng = np.random.default_rng(seed)
    P = rng.normal(size=(n, m)) * rng.uniform(0.1, 2, size=m)
    y = np.where(P @ rng.normal(size=m) + rng.normal(size=n) > 0, 1.0, -1.0)
    return P, y, rng.uniform(0.2, 3, size=n)


@pytest.mark.parametrize("scale", [1e-4, 1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize(("n", "m"), [(40, 3), (200, 20), (30, 60)])
def test_hinge_machine_equals_the_interior_point(n, m, scale):
    P, y, C = random_features(n, m, 7 * n + m)
    found = HingeProblem(P, np.eye(m), y, scale * C).solve(1e-10)
    other = primal.solve(DenseFeatures(P, RowLabels(y[:, None], scale * C[:, None])), losses.Hinge(), tol=1e-10)
    assert found.gap <= 1e-10 + 1e-13 * scale  # rounding of margins costs C
    if other.gap[0] <= 1e-9:
        assert abs(found.objective - other.objective[0]) <= 1e-8 * abs(found.objective)
    np.testing.assert_allclose(found.f, P @ found.w + found.bias, atol=1e-10)


@pytest.mark.parametrize(
    "degenerate", ["copies", "one feature", "no feature", "one row each", "contradictions", "tiny"]
)
def test_hinge_machine_on_degenerate_problems(degenerate):
    P, y, C = random_features(30, 4, 3)
    if degenerate == "copies":
        P, y, C = np.repeat(P, 5, axis=0), np.repeat(y, 5), np.ones(150)
    elif degenerate == "one feature":
        P = P[:, :1]
    elif degenerate == "no feature":
        P = np.zeros_like(P)
    elif degenerate == "one row each":
        P, y, C = P[:2], np.array([1.0, -1.0]), np.ones(2)
    elif degenerate == "contradictions":
        P, y, C = np.vstack([P, P]), np.append(y, -y), np.append(C, C)
    else:
        P = 1e-4 * P
    found = HingeProblem(P, np.eye(P.shape[1]), y, C).solve(1e-9)
    assert found.gap <= 1e-9


def test_a_start_is_never_made_worse():
    P, y, C = random_features(100, 10, 1)
    best = HingeProblem(P, np.eye(10), y, C).solve(1e-10)
    again = HingeProblem(P, np.eye(10), y, C).solve(0.5, (best.w, best.bias), best)
    assert again.objective <= best.objective * (1 + 1e-11)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("factored", [False, True])
def test_a_round_is_theorem_1(variant, factored):
    X, y = two_bumps(40)
    C = np.random.default_rng(1).uniform(0.5, 2, size=40)
    ridge = 0.2 / np.random.default_rng(0).uniform(0.05, 2, size=40) ** 2
    kernel = kernels.Gaussian(GAMMA)
    K = gram(X)
    G = pivoted_factor(kernel, X, 1e-13, 40)[1].T
    space = LowRank(np.arange(40), G, G, 1.0) if factored else KernelColumns(np.arange(40), K, K)
    base = regularizers.KernelNorm() if variant == "exact" else regularizers.Identity()
    coordinates = space.coordinates(ridge, base)
    found = solve_round(coordinates, y, C, losses.Hinge(), None, None, 1e-11)
    a, value = reference_lp.theorem_1(K, y, C, ridge, variant)
    assert abs(found.objective - value) <= 1e-7 * value
    np.testing.assert_allclose(coordinates.coef(found.w), a, atol=1e-5)
    np.testing.assert_allclose(coordinates.weights(coordinates.coef(found.w)), found.w, atol=1e-6)


# --- The convex cases -------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("p", [1, 1.3, 1.5, 2, np.inf])
@pytest.mark.parametrize("C_alpha", [0.2, 2.0])
def test_convex_norms_equal_the_conic_reference(p, variant, C_alpha):
    X, y = two_bumps(50)
    weight = np.random.default_rng(0).uniform(0.5, 2, size=50)
    K = gram(X)
    model = LpSVC(p, gamma=GAMMA, C_alpha=C_alpha, variant=variant, tol=1e-8).fit(X, y, weight)
    value, best, _ = reference_lp.convex_optimum(K, y, weight, p, C_alpha, variant)
    a, b = all_coefficients(model, 50), model.intercept_[0]
    assert abs(reference_lp.objective(K, y, weight, a, b, p, C_alpha, variant) - value) <= 1e-6 * value
    assert abs(model.objective_[0] - value) <= 1e-6 * value
    assert model.duality_gap_[0] <= 1e-6
    # Strong convexity bounds f by the square root of what Clarabel leaves of the objective; with R = I it bounds a.
    np.testing.assert_allclose(K @ a, K @ best, atol=1e-5)
    if variant == "diagonal":
        np.testing.assert_allclose(a, best, atol=1e-5)


def hostile(seed, spread=6):
    """Random labels, costs over twelve orders of magnitude."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((60, 2)), rng.integers(0, 2, 60)
    y[:2] = 0, 1
    return X, y, 10 ** rng.uniform(-spread, spread, 60)


def rounding(K, C, a):
    """What rounding errors of float64 kernel values do to the objective."""
    return 1e-15 * float(C @ (np.abs(K) @ np.abs(a)))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("p", [1, np.inf])
@pytest.mark.parametrize(("C", "spread", "seed"), [(1e5, 0, 0), (1.0, 6, 0), (1.0, 6, 1), (1e-3, 6, 2), (1e3, 3, 3)])
def test_gaps_at_p_1_and_infinity_are_of_what_is_returned(p, variant, C, spread, seed):
    X, y, weight = hostile(seed, spread)
    model = LpSVC(p, C=C, C_alpha=0.1, gamma=0.5, variant=variant).fit(X, y, weight)
    K, a = gram(X, 0.5), all_coefficients(model, 60)
    sign = 2 * y - 1.0
    value = reference_lp.objective(K, sign, C * weight, a, model.intercept_[0], p, 0.1, variant)
    assert abs(value - model.objective_[0]) <= 1e-9 * value + rounding(K, C * weight, a)
    _, best, bias = reference_lp.convex_optimum(K, sign, C * weight, p, 0.1, variant)
    other = reference_lp.objective(K, sign, C * weight, best, bias, p, 0.1, variant)
    assert model.duality_gap_[0] <= 1e-6
    assert value <= other * (1 + 1e-5)  # the reference is no optimum here, but a point to compare with
    assert model.objective_[0] / (1 + model.duality_gap_[0]) <= other + rounding(K, C * weight, best)


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.2, 2, np.inf])
@pytest.mark.parametrize("seed", range(6))
def test_objectives_are_those_of_the_model(p, seed):
    X, y, weight = hostile(seed, spread=seed)
    X = X if seed % 2 else X.astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = LpSVC(p, C=10.0 ** (seed - 2), C_alpha=0.3, gamma=0.5).fit(X, y, weight)
    K, a = gram(X.astype(np.longdouble), 0.5), all_coefficients(model, 60)
    C = 10.0 ** (seed - 2) * weight
    value = reference_lp.objective(K, 2 * y - 1, C, a, model.intercept_[0], p, 0.3, "exact")
    assert abs(value - model.objective_[0]) <= 1e-9 * abs(value) + rounding(K, C, a)


@pytest.mark.parametrize("p", [0, 0.5])
def test_the_gap_below_p_1_is_that_of_one_more_round(p):
    X, y = two_bumps(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for max_iter in (3, 500):
            model = LpSVC(p, gamma=GAMMA, C_alpha=0.2, max_iter=max_iter).fit(X, y)
            a, K, kept = model.vector_coef_[0], gram(X), model.support_
            ridge = 0.2 * np.abs(a) ** (p - 2)
            R = K[np.ix_(kept, kept)] + np.diag(ridge)
            value = a @ R @ a / 2 + np.maximum(1 - y * (K[:, kept] @ a + model.intercept_[0]), 0).sum()
            least = reference_lp.ridge_optimum(K[:, kept], R, y)
            gap = (value - least) / least
            assert gap - 1e-7 <= model.duality_gap_[0] <= 2 * gap + 1e-7


def test_tol_is_the_gap_of_the_convex_norms():
    X, y = two_bumps(100)
    for p in (1, 1.5, np.inf):
        loose, tight = (LpSVC(p, gamma=GAMMA, tol=tol).fit(X, y) for tol in (1e-2, 1e-9))
        assert loose.duality_gap_[0] <= 1e-2
        assert tight.duality_gap_[0] <= 1e-9
        assert tight.objective_[0] <= loose.objective_[0] * (1 + 1e-9)


@pytest.mark.parametrize("p", [1, np.inf])
def test_a_gap_that_misses_tol_warns(p):
    X, y, weight = hostile(0)
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap is .*, tol=1e-14"):
        LpSVC(p, C=1e5, C_alpha=0.1, gamma=0.5, tol=1e-14).fit(X, y, weight)
    with pytest.warns(ConvergenceWarning, match="max_iter=2 ended 1 of 1 binary problems"):
        LpSVC(p, gamma=0.5, max_iter=2).fit(X, y)


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, np.inf])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_kernel_of_zeros_leaves_the_bias(p, variant):
    y = np.repeat([0, 0, 1], 5)
    with pytest.warns(UserWarning, match="leaves no vectors"):
        model = LpSVC(p, kernel="linear", variant=variant).fit(np.zeros((15, 2)), y)
    assert model.n_vectors_ == 0
    assert model.objective_[0] == 10
    assert (model.predict(np.ones((3, 2))) == 0).all()


def test_every_vector_of_a_large_problem_may_go():
    X, y = two_bumps(400)
    with pytest.warns(UserWarning, match="leaves no vectors"):
        model = LpSVC(0, C_alpha=1e5, gamma=20.0).fit(X, y)
    assert model.n_vectors_ == 0


def test_p_1_is_sparse_and_p_2_is_one_solve():
    X, y = two_bumps(60)
    assert LpSVC(1, gamma=GAMMA, C_alpha=0.2).fit(X, y).n_vectors_ < 20
    dense = LpSVC(2, gamma=GAMMA, C_alpha=0.2).fit(X, y)
    assert dense.n_iter_[0] == 1
    assert dense.n_vectors_ == 60


# --- Rounds -----------------------------------------------------------------------------------------


def hard(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    y = np.sign(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * X[:, 3] + 0.5 * rng.normal(size=n))
    return X, y


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("p", [0, 0.25, 0.5, 0.75])
@pytest.mark.parametrize("make", [two_bumps, hard])
def test_fixed_points_are_stationary(p, variant, make):
    X, y = make(120)
    C = np.random.default_rng(2).uniform(0.5, 2, size=120)
    gamma = GAMMA if make is two_bumps else 0.15
    model = LpSVC(p, gamma=gamma, C_alpha=0.2, variant=variant, tol=1e-8).fit(X, y, C)
    a, b = all_coefficients(model, 120), model.intercept_[0]
    K = gram(X, gamma)
    assert reference_lp.stationarity(K, y, C, a, b, p, 0.2, variant) <= 1e-5
    expected = reference_lp.objective(K, y, C, a, b, p, 0.2, variant)
    assert abs(model.objective_[0] - expected) <= 1e-9 * abs(expected)


@pytest.mark.parametrize("p", [0, 0.25, 0.75, 1.2, 1.7])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("make", "n"), [(two_bumps, 150), (hard, 150), (hard, 700)])
def test_the_objective_never_rises(p, variant, make, n):
    if n == 700 and (variant == "diagonal" or p > 0.5):
        pytest.skip("one large problem is enough")
    X, y = make(n)
    model = LpSVC(p, gamma=0.3, C_alpha=0.2, variant=variant, tol=1e-5).fit(X, y)
    history = model.history_[0]
    values = history["objective"]
    assert np.diff(values).max() <= 1e-8 * np.abs(values).max()
    assert values[-1] == model.objective_[0]
    assert len(values) == len(history["n_vectors"]) == model.n_iter_[0]
    assert history["n_vectors"][-1] == model.n_vectors_
    assert (np.diff(history["n_vectors"]) <= 0).all()


def test_vectors_are_few_and_accuracy_is_kept():
    X, y = two_bumps(400)
    X_test, y_test = two_bumps(4000, seed=1)
    model = LpSVC(gamma=GAMMA, C_alpha=0.2).fit(X, y)
    assert 3 <= model.n_vectors_ <= 8
    assert model.score(X_test, y_test) > 0.89


def test_rounds_come_to_rest_by_themselves():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(40):
            X, y = two_bumps(100, seed)
            LpSVC(gamma=GAMMA, C_alpha=0.2).fit(X, y)


def test_max_iter_warns():
    X, y = two_bumps(100)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model = LpSVC(gamma=GAMMA, max_iter=2).fit(X, y)
    assert model.n_iter_[0] == 2


@pytest.mark.parametrize("p", [0, 0.5, 1])
@pytest.mark.parametrize("majority", [-1.0, 1.0])
def test_an_empty_model_is_the_majority(p, majority):
    X, y = two_bumps(60)
    y = np.where(np.arange(60) < 40, majority, -majority)
    with pytest.warns(UserWarning, match="leaves no vectors"):
        model = LpSVC(p, C_alpha=1e4).fit(X, y)
    assert model.n_vectors_ == 0
    assert model.vectors_.shape == (0, 2)
    assert (model.predict(X) == majority).all()
    assert abs(model.objective_[0] - 2 * 20) < 1e-9


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_thresholds_are_relative(scale):
    """With k / scale, scale * C and scale * C_alpha, coefficients are scale times as large; f is the same."""
    X, y = two_bumps(80)
    K = gram(X)
    plain = LpSVC(kernel="precomputed", C=1.0, C_alpha=0.2).fit(K, y)
    scaled = LpSVC(kernel="precomputed", C=scale, C_alpha=0.2 * scale).fit(K / scale, y)
    np.testing.assert_array_equal(scaled.support_, plain.support_)
    np.testing.assert_allclose(scaled.decision_function(K / scale), plain.decision_function(K), atol=1e-5)


# --- Copies, weights, input ---------------------------------------------------------------------------


def test_copies_are_weights_and_one_candidate():
    X, y = two_bumps(60)
    times = np.random.default_rng(0).integers(0, 4, size=60)
    weighted = LpSVC(gamma=GAMMA).fit(X, y, times)
    copied = LpSVC(gamma=GAMMA).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.decision_function(X), copied.decision_function(X), atol=1e-6)
    assert weighted.n_vectors_ == copied.n_vectors_


def test_copies_in_a_kernel_matrix_are_one_candidate():
    X, y = two_bumps(60)
    X, y = np.repeat(X, 3, axis=0), np.repeat(y, 3)
    model = LpSVC(kernel="precomputed").fit(gram(X), y)
    assert len(np.unique(X[model.support_], axis=0)) == model.n_vectors_
    plain = LpSVC(gamma=GAMMA).fit(X, y)
    np.testing.assert_allclose(model.decision_function(gram(X)), plain.decision_function(X), atol=1e-5)


def test_few_distinct_rows_with_both_labels():
    rng = np.random.default_rng(0)
    distinct = rng.normal(size=(14, 3))
    rows = rng.integers(14, size=2000)
    X, y = distinct[rows], np.where(rng.random(2000) < 0.2 + 0.6 * (rows % 2), 1, -1)
    model = LpSVC(C=10, C_alpha=1.0).fit(X, y)
    assert 1 <= model.n_vectors_ <= 14
    assert len(np.unique(model.vectors_, axis=0)) == model.n_vectors_
    assert model.score(X, y) > 0.75


@pytest.mark.parametrize("case", KERNEL_CASES, ids=lambda case: case.name)
def test_every_kernel(case):
    X, y = hard(80)
    X_new, _ = hard(30, seed=5)
    model = LpSVC(**case.params).fit(case.training_input(X), y)
    K, K_new = case.matrix(X, X), case.matrix(X_new, X)
    a, b = all_coefficients(model, 80), model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(case.test_input(X_new, X)), K_new @ a + b, atol=1e-8)
    assert reference_lp.stationarity(K, y, np.ones(80), a, b, 0, 0.1, "exact") <= 1e-4
    assert model.score(case.training_input(X), y) > 0.6


def test_sparse_rows_are_the_same_rows():
    X, y = hard(100)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    dense, sparse = LpSVC(gamma=0.1).fit(X, y), LpSVC(gamma=0.1).fit(sp.csr_array(X), y)
    np.testing.assert_array_equal(dense.support_, sparse.support_)
    np.testing.assert_allclose(dense.decision_function(X), sparse.decision_function(sp.csr_array(X)), atol=1e-6)


def test_several_classes():
    X, y = load_iris(return_X_y=True)
    for scheme, outputs in (("ovo", 3), ("ovr", 3)):
        model = LpSVC(multi_class=scheme, C=10).fit(X, y)
        assert model.vector_coef_.shape == (outputs, model.n_vectors_)
        assert len(model.history_) == outputs
        assert model.score(X, y) > 0.93
        assert model.n_vectors_ < 15


def test_no_square_matrix_of_a_large_problem():
    X, y = two_bumps(3000)
    largest = 0

    def watched(X, Z):
        nonlocal largest
        largest = max(largest, X.shape[0] * Z.shape[0])
        return kernels.Gaussian(GAMMA)(X, Z)

    model = LpSVC(kernel=watched).fit(X, y)
    assert largest <= 3000 * 300
    assert model.n_vectors_ < 20
    largest = 0
    some = slice(0, 3000)
    assert LpSVC(1, kernel=watched).fit(X[some], y[some]).n_vectors_ < 400


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"p": -0.1}, "p=-0.1 must be a number from 0 to 2, or infinity"),
        ({"p": 3}, "p=3"),
        ({"p": "l0"}, "p='l0'"),
        ({"p": np.nan}, "p=nan"),
        ({"C": 0}, "C=0"),
        ({"C_alpha": 0}, "C_alpha=0"),
        ({"C_alpha": "much"}, "C_alpha='much' must be a number above 0, or 'auto'"),
        ({"variant": "fast"}, "variant='fast'"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"tol": -1}, "tol=-1"),
        ({"multi_class": "all"}, "multi_class"),
        ({"kernel": "gauss"}, "kernel='gauss'"),
    ],
)
def test_bad_parameters(params, message):
    X, y = two_bumps(20)
    with pytest.raises(ValueError, match=message):
        LpSVC(**params).fit(X, y)


def test_progress_is_shown(capsys):
    X, y = two_bumps(50)
    LpSVC(gamma=GAMMA, verbose=True).fit(X, y)
    assert "vectors, objective" in capsys.readouterr().err


# --- The same rounds for other losses -----------------------------------------------------------------


@pytest.mark.parametrize("loss", [losses.Hinge(), losses.SquaredHinge(), losses.LeastSquares(), losses.HuberHinge(0.3)])
@pytest.mark.parametrize("base", [regularizers.KernelNorm(), regularizers.Identity()])
@pytest.mark.parametrize("p", [0, 0.5])
def test_reweighting_composes_with_every_loss(loss, base, p):
    X, y = two_bumps(100)
    norm = regularizers.ReweightedNorm(p, 0.2, base)
    model = SlimSVC(100, "cholesky", slack=loss, regularizer=norm, C=1.0, gamma=GAMMA, scales="fixed").fit(X, y)
    assert model.n_vectors_ < 60
    assert model.score(X, y) > 0.85
    if not loss.smooth:
        return
    a, K = model.vector_coef_[0], gram(X)
    F = (K[:, model.support_] @ a + model.intercept_[0])[:, None]
    u = loss.duals(F, y[:, None], np.ones((100, 1)))[:, 0]
    own = K[np.ix_(model.support_, model.support_)] @ a if base.follows_kernel else a
    residual = own - K[model.support_] @ u + 0.2 * np.sign(a) * np.abs(a) ** (p - 1)
    assert np.abs(residual).max() <= 1e-5
    assert abs(u.sum()) <= 1e-7


def test_a_sparse_least_squares_machine_beats_the_dense_one_in_size():
    X, y = make_moons(300, noise=0.2, random_state=0)
    norm = regularizers.ReweightedNorm(0, 0.5)
    sparse = SlimSVC(
        300, "cholesky", slack=losses.LeastSquares(), regularizer=norm, C=1.0, gamma=1.0, scales="fixed"
    ).fit(X, y)
    assert sparse.n_vectors_ < 20
    assert sparse.score(X, y) > 0.95
    np.testing.assert_array_equal(sparse.vectors_, X[sparse.support_])


def test_rounds_over_given_vectors_say_if_they_came_to_rest():
    X, y = two_bumps(40)
    for max_iter, rest in ((1, False), (500, True)):
        norm = regularizers.ReweightedNorm(0, 0.2, max_iter=max_iter)
        found = sparse_coefficients(gram(X), gram(X), y, np.ones(40), losses.Hinge(), norm)
        assert found.converged is rest
        assert found.n_iter <= max_iter


@pytest.mark.parametrize(
    "norm", [regularizers.ReweightedNorm(1), regularizers.ReweightedNorm(-1), regularizers.ReweightedNorm(0, 0)]
)
def test_a_norm_that_makes_no_sense(norm):
    X, y = two_bumps(30)
    with pytest.raises(ValueError, match="ReweightedNorm"):
        SlimSVC(10, "random", regularizer=norm, C=1.0, gamma=1.0, scales="fixed").fit(X, y)


def test_a_function_as_kernel_that_is_not_definite():
    """Nothing is promised but an answer."""
    X, y = hard(60)
    with pytest.warns(UserWarning, match="positive semidefinite"):
        model = LpSVC(kernel=lambda X, Z: cosine_plus_one(X, Z) - 0.9).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


def of_any_size(seed):
    """Five rows of one size, and a kernel whose values are beyond all proportion to it."""
    rng = np.random.default_rng(seed)
    d, size = int(rng.integers(1, 7)), 10.0 ** rng.integers(3, 9)
    X = rng.standard_normal((5, d)) + size if rng.random() < 0.6 else rng.standard_normal((5, d)) * size
    y = np.array([0, 1, 0, 1, 0]) if rng.random() < 0.5 else np.array([0, 1, 1, 1, 0])
    p, C = rng.choice([0, 0.5, 1, 1.5, 2, np.inf]), float(10 ** rng.uniform(-2, 5))
    kernel = {"kernel": "poly", "gamma": 5600.0, "coef0": float(rng.integers(2)), "degree": int(rng.choice([2, 3]))}
    return LpSVC(p, C=C, variant=str(rng.choice(VARIANTS)), **kernel), X, y


@pytest.mark.parametrize("seed", [0, 6, 24, 54, 56, 66, 89, 178, 258])
def test_huge_kernel_values_end_in_a_warning(seed):
    """Not in an error of a factorisation, nor in rounds that are worse than the ones before."""
    clf, X, y = of_any_size(seed)
    with pytest.warns(ConvergenceWarning):
        clf.fit(X, y)
    assert np.isfinite(clf.vector_coef_).all()
    assert clf.duality_gap_[0] > clf.tol
    assert (np.diff(clf.history_[0]["objective"]) <= 0).all()


def test_coordinates_of_a_kernel_that_drowns_its_ridge():
    """``1/2 a'(R + diag(ridge)) a`` is ``1/2 |w|^2``, as far as numbers of such sizes tell."""
    rng = np.random.default_rng(0)
    F = rng.standard_normal((2, 5)) * 1e12
    space = KernelColumns(np.arange(5), F.T @ F, F.T @ F)
    ridge = 10.0 ** rng.uniform(-8, 0, 5)
    at = space.coordinates(ridge, regularizers.KernelNorm())
    a = np.linalg.svd(F)[2][2:].T @ rng.standard_normal(3)  # where R vanishes, only the ridge is left
    assert np.linalg.norm(at.weights(a)) == pytest.approx(np.sqrt(a @ (ridge * a)), rel=1e-2)
    a = rng.standard_normal(5)
    assert np.linalg.norm(at.weights(a)) == pytest.approx(np.linalg.norm(F @ a), rel=1e-6)
    np.testing.assert_allclose(at.coef(at.weights(a)), a, rtol=1e-2)
