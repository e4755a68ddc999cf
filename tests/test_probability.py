"""Probabilities: the layer against independent solvers, its certificate, and the promises of `predict_proba`."""

from __future__ import annotations

import pickle
import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import check_grad
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernel_table
from problems import blobs, three_classes
from slimsvm import (
    CompressedClassifier,
    EmpiricalSVC,
    LpSVC,
    ReducedSVC,
    RelevanceVectorClassifier,
    SlimSVC,
    bases,
    compress,
    estimators,
    regularizers,
)
from slimsvm.data.dataset import Dataset
from slimsvm.data.duplicates import row_keys
from slimsvm.data.folds import Fold
from slimsvm.model.probabilities import align_with_winners, log_probabilities
from slimsvm.problem.kernels import Gaussian
from slimsvm.problem.regularizers import KernelNorm
from slimsvm.rows.labels import class_number_labels
from slimsvm.rows.memory import DenseFeatures, LazyFeatures, feature_source
from slimsvm.solvers.certificate import RegularizedBasis
from slimsvm.solvers.primal.probability import (
    ClassCodes,
    LayerWeights,
    certified,
    fit_layer,
    minimise,
    outputs,
)
from slimsvm.training.probabilities import (
    COST_STEP,
    INITIAL_COST_FACTOR,
    FoldVectors,
    LayerLogLoss,
    calibration_folds,
    choose_cost,
)

FIXED = {"C": 1.0, "gamma": "scale", "scales": "fixed"}
WITH_LAYER = [
    SlimSVC(6, probability=True, **FIXED),
    SlimSVC(6, "forward", slack="l1", probability=True, **FIXED),
    SlimSVC(6, regularizer="identity", multi_class="ovr", probability=True, **FIXED),
    ReducedSVC(12, probability=True),
    EmpiricalSVC(0.05, probability=True),
    LpSVC(probability=True),
    CompressedClassifier(SVC(C=2.0, gamma=0.3), 6, probability=True),
    CompressedClassifier(SVC(C=2.0, gamma=0.3), 6, method="margin", probability=True),
]
names = [f"{type(m).__name__}-{k}" for k, m in enumerate(WITH_LAYER)]
layered = pytest.mark.parametrize("machine", WITH_LAYER, ids=names)


def noisy(n_classes, n=160, seed=0):
    """Classes that overlap, so that probabilities are no trifle."""
    return make_classification(
        n, 5, n_informative=4, n_redundant=0, n_classes=n_classes, class_sep=0.7, flip_y=0.1, random_state=seed
    )


def problem(n_classes, seed=0, vectors=9):
    """Rows, vectors, labels with costs of different sizes, and a kernel."""
    X, codes = noisy(n_classes, seed=seed)
    costs = 3.0 * np.random.default_rng(seed).uniform(0.2, 2.0, len(codes))
    return Gaussian(0.3), X, X[:vectors], class_number_labels(codes, costs, np.ones(n_classes))


# --- The layer ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_duals_and_curvature_are_derivatives(n_classes):
    rng = np.random.default_rng(1)
    given = problem(n_classes)[3]
    labels = ClassCodes(given.codes, given.counts, n_classes)
    shape = given.size, outputs(n_classes)
    F, Q = rng.normal(size=shape), rng.normal(size=shape)

    def value(f):
        return labels.value(f.reshape(shape))

    def slope(f):
        return -labels.at(f.reshape(shape)).duals.ravel()

    assert check_grad(value, slope, F.ravel()) < 1e-5 * np.linalg.norm(slope(F.ravel()))
    bent = labels.at(F).bent(Q)
    np.testing.assert_allclose(
        bent.ravel(), (slope((F + 1e-6 * Q).ravel()) - slope((F - 1e-6 * Q).ravel())) / 2e-6, atol=1e-7
    )


def plain_optimum(K, gram, labels):
    """The problem as written, by a general solver: min 1/2 tr(B'RB) + sum c (logsumexp(g) - g_y)."""
    root = np.linalg.cholesky(gram)
    n_classes = len(labels.side)
    B, b = cp.Variable((K.shape[1], outputs(n_classes))), cp.Variable((1, outputs(n_classes)))
    F = K @ B + np.ones((len(K), 1)) @ b
    G = cp.hstack([np.zeros((len(K), 1)), F]) if n_classes == 2 else F
    own = cp.sum(cp.multiply(G, np.eye(n_classes)[labels.codes]), axis=1)
    objective = 0.5 * cp.sum_squares(root.T @ B) + labels.counts @ (cp.log_sum_exp(G, axis=1) - own)
    dataset = cp.Problem(cp.Minimize(objective))
    dataset.solve(solver=cp.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    return dataset.value


@pytest.mark.parametrize("n_classes", [2, 4])
def test_layer_is_the_optimum(n_classes):
    kernel, X, Z, labels = problem(n_classes)
    norm = KernelNorm(epsilon=1e-3)
    layer = fit_layer(kernel, X, Z, labels, norm, tol=1e-9)
    best = plain_optimum(kernel(X, Z), norm.matrix(kernel(Z, Z)), labels)
    assert layer.gap <= 1e-9
    assert layer.objective == pytest.approx(best, rel=1e-7)


def test_two_classes_are_logistic_regression():
    kernel, X, Z, labels = problem(2)
    gram = kernel(Z, Z)
    norm = KernelNorm(epsilon=1e-3).settled(gram)
    P = kernel(X, Z) @ norm.whitening(gram)
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10000).fit(P, labels.codes, sample_weight=labels.counts)
    layer = fit_layer(kernel, X, Z, labels, norm, tol=1e-10)
    np.testing.assert_allclose(
        np.exp(layer.log_probabilities(kernel, X, Z)), theirs.predict_proba(P), rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4, 1e8])
def test_costs_of_any_size_are_solved(n_classes, scale):
    kernel, X, Z, labels = problem(n_classes)
    layer = fit_layer(kernel, X, Z, labels.take(slice(None), scale), KernelNorm(epsilon=1e-6), tol=1e-4)
    assert layer.gap <= 1e-4


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_dual_bounds_every_layer(n_classes):
    """Whatever coefficients are certified, the bound lies below the optimum, and the objective is theirs."""
    kernel, X, Z, labels = problem(n_classes)
    gram = kernel(Z, Z)
    norm = KernelNorm(epsilon=1e-3).settled(gram)
    best = fit_layer(kernel, X, Z, labels, norm, tol=1e-10)
    rows = feature_source(kernel, X, labels, Z, np.eye(len(gram)))
    rng = np.random.default_rng(2)
    for size in (0.0, 1e-3, 0.1, 1.0):
        coef = best.coef * (1 + size * rng.normal(size=best.coef.shape))
        bias = best.bias + size * rng.normal(size=best.bias.shape)
        proof = certified(rows, RegularizedBasis.of(norm, gram), coef, bias)
        objective, gap = proof.primal, proof.gap
        assert objective >= best.objective * (1 - 1e-9)
        assert objective / (1 + gap) <= best.objective * (1 + 1e-9)


def test_separable_classes_and_no_vectors():
    kernel = Gaussian(1.0)
    X = np.array([[0.0], [0.1], [5.0], [5.1]])
    labels = class_number_labels(np.array([0, 0, 1, 1]), np.full(4, 1e6), np.ones(2))
    layer = fit_layer(kernel, X, X[[0, 2]], labels, KernelNorm(epsilon=1e-6), tol=1e-4)
    assert layer.gap <= 1e-4
    log_p = layer.log_probabilities(kernel, X, X[[0, 2]])
    assert np.isfinite(log_p).all()
    assert (log_p[[0, 1, 2, 3], [1, 1, 0, 0]] < -5).all()
    empty = fit_layer(
        kernel, X, X[:0], class_number_labels(np.array([0, 1, 1, 1]), np.ones(4), np.ones(2)), KernelNorm()
    )
    np.testing.assert_allclose(np.exp(log_probabilities(empty.bias[None])), [[0.25, 0.75]])


def test_blocks_of_rows_do_not_matter():
    kernel, X, Z, labels = problem(3)
    T = KernelNorm(epsilon=1e-3).whitening(kernel(Z, Z))
    stored = minimise(DenseFeatures(kernel(X, Z) @ T, labels), None, 1e-10)
    computed = minimise(LazyFeatures(kernel, X, labels, Z, T), None, 1e-10)
    np.testing.assert_allclose(stored.V, computed.V, atol=1e-6)
    warm = minimise(DenseFeatures(kernel(X, Z) @ T, labels), LayerWeights(stored.V), 1e-8)
    assert warm.n_iter == 0


def test_logarithms_do_not_overflow():
    for F in (np.array([[900.0], [-900.0]]), np.array([[900.0, 0.0, -900.0]])):
        log_p = log_probabilities(F)
        assert np.isfinite(log_p).all()
        np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1)


def test_led_by_is_the_nearest_distribution():
    rng = np.random.default_rng(0)
    p, winners = rng.dirichlet(np.full(5, 0.5), 12), rng.integers(5, size=12)
    led = np.exp(align_with_winners(winners, np.log(p)))
    np.testing.assert_array_equal(led.argmax(axis=1), winners)
    for before, after, winner in zip(p, led, winners, strict=True):
        q = cp.Variable(5, nonneg=True)
        cp.Problem(cp.Minimize(cp.sum_squares(q - before)), [cp.sum(q) == 1, q[int(winner)] - q >= 0]).solve()
        np.testing.assert_allclose(after, q.value, atol=1e-6)


# --- Its cost -------------------------------------------------------------------------------------------------


def as_task(X, y):
    classes, codes = np.unique(y, return_inverse=True)
    rows = np.arange(len(y))
    return Dataset(X, codes, np.ones(len(y)), np.ones(len(classes)), rows, row_keys(X), classes, None, len(y))


def test_cost_is_the_best_of_its_neighbours():
    X, y = noisy(3, 400)
    dataset = as_task(X, y)
    fold = Fold(dataset.take(np.arange(300)), dataset.take(np.arange(300, 400)))
    piece = FoldVectors(fold, Gaussian(0.3), X[:20])
    cost = choose_cost([piece], 1.0)
    judge = LayerLogLoss(piece, 2.0**30)
    assert judge(cost) <= min(judge(cost / COST_STEP), judge(cost * COST_STEP)) * 1.002


def test_no_rows_to_judge_by():
    """Classes of one row each are never all in the same part: the usual cost, and probabilities all the same."""
    X, y = np.array([[0.0], [1.0], [3.0]]), np.array([0, 1, 2])
    assert choose_cost([], 3.0) == 3.0 * INITIAL_COST_FACTOR
    assert calibration_folds(as_task(X, y), lambda train: (Gaussian(), train.X), np.random.default_rng(0)) == []
    model = SlimSVC(3, probability=True, **FIXED).fit(X, y)
    assert model.probability_C_ == INITIAL_COST_FACTOR
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_rows_that_judge_have_no_part_in_the_vectors():
    X, y = noisy(2, 400)
    seen = []

    def learn(train):
        seen.append(train)
        return Gaussian(0.3), train.X[:5]

    pieces = calibration_folds(as_task(X, y), learn, np.random.default_rng(0))
    assert len(pieces) > 1  # few rows: folds
    for piece, train in zip(pieces, seen, strict=True):
        assert piece.fold.train is train
        assert not set(train.indices) & set(piece.fold.test.indices)


# --- Estimators -----------------------------------------------------------------------------------------------


@layered
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities(machine, n_classes):
    X, codes = noisy(n_classes)
    y = np.array(["north", "south", "west"])[codes]
    model = clone(machine).fit(X, y)
    outputs = 1 if n_classes == 2 else n_classes
    assert model.probability_coef_.shape == (outputs, model.n_vectors_)
    assert model.probability_intercept_.shape == (outputs,)
    assert model.probability_gap_ <= 1e-4
    assert model.probability_C_ > 0
    p, log_p = model.predict_proba(X), model.predict_log_proba(X)
    assert p.shape == (len(X), n_classes)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(np.log(p), log_p)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert log_loss(y, p) < log_loss(y, np.tile(np.bincount(codes) / len(y), (len(y), 1)))


@layered
def test_predictions_do_not_depend_on_probabilities(machine):
    X, y = noisy(3)
    with_, without = clone(machine).fit(X, y), clone(machine).set_params(probability=False).fit(X, y)
    np.testing.assert_array_equal(with_.decision_function(X), without.decision_function(X))
    assert not hasattr(without, "predict_proba")
    assert not hasattr(without, "probability_coef_")


@layered
def test_clones_and_pickles(machine):
    X, y = noisy(2)
    model = clone(machine).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert not hasattr(clone(model), "probability_coef_")
    with pytest.raises(NotFittedError):
        clone(model).predict_proba(X)


def test_attribute_errors_say_what_to_do():
    X, y = noisy(2, 60)
    for model in (SlimSVC(4, **FIXED), ReducedSVC(5), EmpiricalSVC(), LpSVC(), CompressedClassifier()):
        for state in (model, model.fit(X, y)):
            for name in ("predict_proba", "predict_log_proba"):
                assert not hasattr(state, name)
                with pytest.raises(AttributeError, match="set it, and fit again"):
                    getattr(state, name)
    # What was fitted counts until the next fit.
    model = SlimSVC(4, **FIXED).fit(X, y).set_params(probability=True)
    assert not hasattr(model, "predict_proba")
    assert hasattr(model.fit(X, y).set_params(probability=False), "predict_proba")


@pytest.mark.parametrize("kind", [k for k in estimators.ALL if "probability" not in k().get_params()])
def test_machines_without_a_layer_point_to_calibration(kind):
    if kind is RelevanceVectorClassifier:
        assert hasattr(kind(), "predict_proba")
        assert hasattr(kind(), "predict_log_proba")
        return
    assert not hasattr(kind(), "predict_proba")
    assert not hasattr(kind(), "predict_log_proba")
    with pytest.raises(AttributeError, match="CalibratedClassifierCV"):
        getattr(kind(), "predict_proba")  # noqa: B009, as an expression it would do nothing
    X, y = blobs(60)
    p = CalibratedClassifierCV(kind(), ensemble=False, cv=3).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_relevance_vectors_have_logarithms_too():
    X, y = load_iris(return_X_y=True)
    model = RelevanceVectorClassifier().fit(X, y)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    assert np.isfinite(model.predict_log_proba(100 * X)).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_copies(n_classes):
    X, y = noisy(n_classes)
    copies = 1 + np.arange(len(y)) % 3
    for machine in (WITH_LAYER[0], WITH_LAYER[3], WITH_LAYER[5]):
        weighted = clone(machine).fit(X, y, sample_weight=copies)
        repeated = clone(machine).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_order_of_rows_does_not_matter(n_classes):
    X, y = noisy(n_classes)
    order = np.random.default_rng(3).permutation(len(y))
    for machine in (WITH_LAYER[0], WITH_LAYER[1], WITH_LAYER[5]):
        model = clone(machine).fit(X, y)
        np.testing.assert_allclose(
            clone(machine).fit(X[order], y[order]).predict_proba(X), model.predict_proba(X), rtol=1e-6
        )


def test_threads_do_not_matter():
    X, y = noisy(3, 80)
    one, two = (SlimSVC(3, "forward", probability=True, n_jobs=n, **FIXED).fit(X, y) for n in (1, 2))
    np.testing.assert_allclose(two.predict_proba(X), one.predict_proba(X), rtol=1e-6)


def test_class_weights_shift_probabilities():
    """They are those of the problem with weights: as if rows of the class came so much more often."""
    X, y = noisy(2, 400)
    plain = SlimSVC(8, probability=True, **FIXED).fit(X, y)
    heavy = SlimSVC(8, probability=True, class_weight={1: 9.0}, **FIXED).fit(X, y)
    assert plain.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.05)
    share = 9 * y.sum() / (9 * y.sum() + (1 - y).sum())
    weights = np.where(y == 1, 9.0, 1.0)
    assert np.average(heavy.predict_proba(X)[:, 1], weights=weights) == pytest.approx(share, abs=0.05)


def test_sparse_rows_and_float32():
    X, y = noisy(3)
    X = np.where(np.abs(X) < 0.5, 0.0, X).astype(np.float32).astype(np.float64)
    model = SlimSVC(6, probability=True, **FIXED)
    p = clone(model).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(clone(model).fit(sp.csr_array(X), y).predict_proba(sp.csr_array(X)), p, atol=1e-3)
    short = clone(model).fit(X.astype(np.float32), y)
    assert short.probability_gap_ <= 1e-4
    np.testing.assert_allclose(short.predict_proba(X.astype(np.float32)), p, atol=1e-2)
    assert short.predict_proba(X.astype(np.float32)).dtype == np.float64


def test_precomputed_kernel():
    X, y = noisy(3)
    kernel = Gaussian(0.2)
    settings = {"C": 1.0, "scales": "fixed", "probability": True}
    given = SlimSVC(8, "forward", kernel="precomputed", gamma="scale", **settings).fit(kernel(X, X), y)
    p = given.predict_proba(kernel(X, X))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert given.probability_gap_ <= 1e-4
    log_odds = kernel(X, X[given.support_]) @ given.probability_coef_.T + given.probability_intercept_
    np.testing.assert_allclose(p, np.exp(align_with_winners(p.argmax(axis=1), log_probabilities(log_odds))), rtol=1e-9)


@pytest.mark.parametrize("kernel", kernel_table.default_first()[1:])
def test_kernels(kernel):
    X, y = noisy(2)
    basis = "forward" if kernel == "sigmoid" else "learned"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the kernel is not positive semidefinite")
        model = SlimSVC(5, basis, kernel=kernel, coef0=1.0 if kernel == "poly" else 0.0, probability=True, **FIXED)
        p = model.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_vectors_that_vanish():
    """Under a penalty that drops vectors, the layer is over those that are left; none left: the classes' shares."""
    X, y = noisy(2)
    base = bases.Random()
    some = SlimSVC(20, base, regularizer=regularizers.ReweightedNorm(0.0, 0.05), probability=True, **FIXED).fit(X, y)
    assert some.probability_coef_.shape == (1, some.n_vectors_)
    assert 0 < some.n_vectors_ < 20
    with pytest.warns(UserWarning, match="no vector is left"):
        none = SlimSVC(20, base, regularizer=regularizers.ReweightedNorm(0.0, 1e3), probability=True, **FIXED).fit(X, y)
    np.testing.assert_allclose(none.predict_proba(X)[:, 1], y.mean(), rtol=1e-6)


def test_calibrated_on_new_rows():
    """Probabilities mean what they say: with rows to spare, they cost hardly more than the true ones."""
    X, y = make_moons(2400, noise=0.35, random_state=0)
    model = SlimSVC(10, probability=True).fit(X[:800], y[:800])
    p = model.predict_proba(X[800:])[:, 1]
    low, high = p < 0.2, p > 0.8
    assert y[800:][low].mean() < 0.2
    assert y[800:][high].mean() > 0.8
    assert p.mean() == pytest.approx(y[800:].mean(), abs=0.04)


def test_compressed_machines():
    """Probabilities of a machine that is given, behind a scaler too; they need labels, and classes."""
    X, y = make_moons(1200, noise=0.35, random_state=0)
    X, X_test, y, y_test = X[:400], X[400:], y[:400], y[400:]
    pipe = make_pipeline(StandardScaler(), SVC(C=10.0)).fit(X, y)
    small = compress(pipe, 10, X, y, probability=True)
    plain = compress(pipe, 10, X, y)
    np.testing.assert_array_equal(small.predict(X_test), plain.predict(X_test))
    p = small.predict_proba(X_test)
    np.testing.assert_array_equal(small.classes_[p.argmax(axis=1)], small.predict(X_test))
    assert log_loss(y_test, p) < log_loss(y_test, np.full((len(p), 2), 0.5)) / 1.5
    assert hasattr(compress(small[-1], 5, pipe[:-1].transform(X), y, probability=True), "predict_proba")
    for data in ((), (X,)):
        with pytest.raises(ValueError, match="probability=True needs X and y"):
            compress(pipe, 10, *data, probability=True)
    for model in (SVR(), OneClassSVM()):
        with pytest.raises(ValueError, match="probability=True is for classifiers"):
            compress(model.fit(X, y), 5, X, probability=True)


def test_order_and_copies_of_rows_to_compress_with():
    """For the same machine."""
    X, y = noisy(3)
    svc = SVC(C=2.0, gamma=0.3).fit(X, y)
    copies = 1 + np.arange(len(y)) % 3
    model = compress(svc, 5, X, y, sample_weight=copies, probability=True)
    rows = np.random.default_rng(3).permutation(np.repeat(np.arange(len(y)), copies))
    again = compress(svc, 5, X[rows], y[rows], probability=True, n_jobs=2)
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize("n_vectors", [10_000, "auto"])
def test_compressed_to_any_size(n_vectors):
    """Kept as it is, or as small as agreement allows."""
    X, y = noisy(3)
    model = compress(SVC().fit(X, y), n_vectors, X, y, probability=True, agreement=0.8)
    np.testing.assert_array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))


def test_search_by_log_loss():
    X, y = noisy(2, 120)
    grid = GridSearchCV(SlimSVC(probability=True, **FIXED), {"n_vectors": [2, 6]}, scoring="neg_log_loss", cv=2)
    assert np.isfinite(grid.fit(X, y).cv_results_["mean_test_score"]).all()


def test_a_layer_that_is_not_solved_says_so(monkeypatch):
    X, y = noisy(3)
    from slimsvm.training import probabilities

    solve = probabilities.fit_layer
    monkeypatch.setattr(probabilities, "fit_layer", lambda *args, **more: solve(*args, **more, max_iter=1))
    with pytest.warns(ConvergenceWarning, match="probabilities are not those of the best layer"):
        SlimSVC(6, probability=True, **FIXED).fit(X, y)


@layered
def test_probability_is_yes_or_no(machine):
    X, y = noisy(2, 60)
    with pytest.raises(ValueError, match="probability='platt' must be True or False"):
        clone(machine).set_params(probability="platt").fit(X, y)


def test_progress(capsys):
    X, y = three_classes(60)
    SlimSVC(4, probability=True, verbose=True, **FIXED).fit(X, y)
    assert "probabilities: cost" in capsys.readouterr().err


# The layer ranks rows better than the decision values do: the two are not the same order, as this check wants.
OTHER_ORDER = {"check_decision_proba_consistency": "the layer has coefficients of its own"}


@pytest.mark.filterwarnings("ignore:kernel values")
@parametrize_with_checks(
    [SlimSVC(5, probability=True, **FIXED), CompressedClassifier(n_vectors=5, method="reduced_set", probability=True)],
    expected_failed_checks=lambda estimator: OTHER_ORDER,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
