"""SlimSVC's settings: scales, search, learning, and the tools around it."""

from __future__ import annotations

import pickle
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernel_table
import reference_bases as slow
from problems import blobs, three_classes
from slimsvm import SlimSVC, bases, kernels, losses
from slimsvm.basis import candidates, learning
from slimsvm.data.dataset import Dataset
from slimsvm.data.duplicates import row_keys
from slimsvm.training import search
from small_models import (
    CONTAINERS,
    FEW_ITERATIONS,
    MODELS,
    containers,
    every_model,
    learned,
    make,
    scores,
    slim,
    textbook,
)
from test_process import SANITIZED, run

pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning", FEW_ITERATIONS)


# --- Learned scales ------------------------------------------------------------------------------------------


@containers
@pytest.mark.parametrize("kernel", kernel_table.names(semidefinite=True))
def test_learned_scales_are_in_the_kernel(kernel, container):
    X, y = blobs(60, seed=18)
    model = slim(5, kernel=kernel, scales="learned").fit(CONTAINERS[container](X), y)
    assert isinstance(model.kernel_, kernels.Scaled)
    assert np.shape(model.kernel_.scales) == (4,)
    assert (np.asarray(model.kernel_.scales) > 0).all()
    expected = scores(model, X)[:, 0]
    for rows in (X, sp.csr_array(X), X[:1], np.asfortranarray(X)):
        np.testing.assert_allclose(model.decision_function(rows), expected[: rows.shape[0]], atol=1e-8)
    single = model.decision_function(X.astype(np.float32))
    np.testing.assert_allclose(single, expected, atol=1e-4)


# --- Search --------------------------------------------------------------------------------------------------


def test_numbers_switch_the_search_off(monkeypatch):
    X, y = blobs(60)

    def forbidden(*args):
        raise AssertionError("searched")

    monkeypatch.setattr(search, "search_folds", forbidden)
    for gamma in (0.3, 1, np.float64(0.3), np.float32(0.25), "scale", "auto"):
        for C in (3.0, 3, np.int64(3)):
            model = SlimSVC(4, learned(iterations=2), C=C, gamma=gamma, scales="fixed").fit(X, y)
            assert model.search_results_ == {}
            assert model.C_ == 3
    assert model.kernel_.gamma == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("basis", "kernel", "given"),
    [
        ("learned", "rbf", {}),
        ("learned", "rbf", {"C": 2.0, "gamma": 0.3}),
        ("learned", "linear", {}),
        ("learned", "poly", {"gamma": 0.3}),
        ("learned", "poly", {"C": 2.0, "gamma": 0.3}),
        ("forward", "rbf", {"C": 2.0}),
        ("forward", "rbf", {"C": 2.0, "gamma": 0.3}),
        ("forward", "linear", {"C": 2.0}),
        ("random", "laplacian", {}),
    ],
    ids=str,
)
def test_search_results_say_what_was_tried(basis, kernel, given):
    X, y = blobs(50, d=2, seed=19)
    model = SlimSVC(3, learned(iterations=3) if basis == "learned" else basis, kernel=kernel, **given).fit(X, y)
    results = model.search_results_
    if basis != "learned" and "C" in given and ("gamma" in given or kernel == "linear"):
        assert results == {}
        return
    assert set(results) == {"C", "gamma", "scales", "error", "loss", "folds"}
    assert len({len(column) for column in results.values()}) == 1
    table = pd.DataFrame(results)
    assert not table.duplicated(["C", "gamma", "scales"]).any()
    assert table.error.between(0, 1).all()
    assert (table.loss >= 0).all()
    assert (table.folds >= 1).all()
    scaled = isinstance(model.kernel_, kernels.Scaled)
    chosen = table[(table.C == model.C_) & (table.scales == ("learned" if scaled else "fixed"))]
    if kernel != "linear":
        gamma = (model.kernel_.kernel if scaled else model.kernel_).gamma
        chosen = chosen[np.isclose(chosen.gamma.astype(float), gamma)]
    assert len(chosen) == 1
    assert chosen.folds.iloc[0] == table.folds.max()  # those that were far behind on the first folds ended early
    top = table.error[table.folds == table.folds.max()].min()
    noise = np.sqrt(max(top * (1 - top), 1e-4) / len(X))  # a standard error: what is less is noise
    assert chosen.error.iloc[0] <= top + noise
    if "C" in given:
        assert set(table.C) == {2.0}
    else:
        assert len(set(table.C)) > 1
    if "gamma" in given and kernel != "linear":
        assert set(table.gamma) == {0.3}
    if basis != "learned":
        assert set(table.scales) == {"fixed"}


@pytest.mark.parametrize("kernel", kernel_table.default_first(semidefinite=True)[1:])
def test_search_with_other_kernels(kernel):
    X, y = blobs(60)
    assert SlimSVC(5, learned(iterations=20), kernel=kernel).fit(X, y).score(X, y) > 0.6


def test_search_is_seeded_and_splits_by_class():
    X, y = blobs(60, d=2, seed=20)
    one, other = (SlimSVC(3, learned(iterations=2)).fit(X, y) for _ in range(2))
    np.testing.assert_equal(one.search_results_, other.search_results_)
    np.testing.assert_array_equal(one.vectors_, other.vectors_)
    for n in (30, 1200, 4000):
        codes = np.random.default_rng(0).permutation(np.arange(n) % 10 == 0).astype(int)
        numbers = np.arange(n)
        X = numbers[:, None] + 0.5
        dataset = Dataset(X, codes, np.ones(n), np.ones(2), numbers, row_keys(X), np.arange(2), None, n)
        folds = search.search_folds(dataset, np.random.default_rng(0))
        for fold in folds:
            assert not set(fold.train.indices) & set(fold.test.indices)
            assert len(fold.train.codes) + len(fold.test.codes) == n
            assert abs(fold.train.codes.sum() - 0.1 * len(fold.train.codes)) <= 1
        held_out = np.bincount(np.concatenate([fold.test.indices for fold in folds]), minlength=n)
        if n < search.MANY_ROWS:
            assert len(set(held_out)) == 1  # each row as often as any other
        else:
            assert held_out.max() == 1
            assert held_out.mean() == pytest.approx(0.9, abs=0.01)


# --- Learning rows and iterations ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [int, np.int64])
def test_vectors_are_learned_on_some_rows_and_fitted_to_all(kind, monkeypatch):
    seen = []
    original = learning.learn

    def spy(kernel, X, *args, **options):
        seen.append(X.shape[0])
        return original(kernel, X, *args, **options)

    monkeypatch.setattr(candidates, "learn", spy)
    X, y = blobs(200, seed=21)
    model = slim(4, learned(rows=kind(50))).fit(X, y)
    assert seen
    assert max(seen) <= 50
    K, Kz = textbook(model.kernel_, X, model.vectors_), textbook(model.kernel_, model.vectors_, model.vectors_)
    best = slow.machine(K, Kz + 1e-6 * np.eye(4), y, 2.0, "SquaredHinge")
    assert model.objective_[0] == pytest.approx(best.value, rel=1e-6)


def test_no_learning_iterations_are_the_start():
    X, y = blobs(60)
    np.testing.assert_allclose(
        slim(5, learned(iterations=0)).fit(X, y).vectors_, slim(5, "kmeans").fit(X, y).vectors_, atol=1e-9
    )


@pytest.mark.parametrize("offset", [1e2, 1e4])
@pytest.mark.parametrize("model", [name for name in MODELS if "scales" not in name])
def test_a_common_offset_changes_nothing(model, offset, same_draws):
    X, y = blobs(60, d=3, seed=22)
    same_draws(X)
    near, far = make(model).fit(X, y), make(model).fit(X + offset, y)
    np.testing.assert_allclose(far.objective_, near.objective_, rtol=1e-3)
    np.testing.assert_allclose(bases.dense(far.vectors_) - offset, bases.dense(near.vectors_), atol=2e-2)


def test_scales_survive_a_common_offset(same_draws):
    """With learned scales too, only differences between rows matter."""
    X, y = blobs(60, d=3, seed=22)
    same_draws(X)
    near, far = (slim(4, scales="learned").fit(X + offset, y) for offset in (0.0, 1e3))
    np.testing.assert_allclose(far.objective_, near.objective_, rtol=1e-2)
    np.testing.assert_allclose(far.decision_function(X + 1e3), scores(far, X + 1e3)[:, 0], atol=1e-6)


# --- Tools ---------------------------------------------------------------------------------------------------


def test_grid_search_and_pipeline():
    X, y = load_iris(return_X_y=True)
    grid = {
        "slimsvc__basis": ["learned", "forward", bases.Cholesky(1e-3)],
        "slimsvc__slack": ["l1", losses.SquaredHinge()],
        "slimsvc__n_vectors": [3, 8],
    }
    pipeline = make_pipeline(StandardScaler(), slim())
    found = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, y)
    assert found.best_score_ > 0.9
    nested = GridSearchCV(slim(basis=bases.Cholesky(1e-3)), {"basis__eta": [0.5, 1e-3]}, error_score="raise").fit(X, y)
    assert len(nested.cv_results_["params"]) == 2


@every_model
def test_pickle(model):
    X, y = three_classes(45)
    model = make(model).fit(X, y)
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.decision_function(X), model.decision_function(X))
    assert repr(restored.kernel_) == repr(model.kernel_)
    assert clone(model).get_params().keys() == model.get_params().keys()


def test_scaled_kernels_can_be_compared_and_cloned():
    """Parts are values: equal if their numbers are."""
    one, other = (kernels.Scaled(kernels.Gaussian(0.3), np.array([1.0, 2.0])) for _ in range(2))
    assert one == other
    assert clone(one) == one
    assert one != kernels.Scaled(kernels.Gaussian(0.3), np.array([1.0, 3.0]))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("model", ["slim learned", "slim forward", "empirical order", "reduced"])
def test_frames(model, frame):
    X, y = three_classes(45)
    table = frame({"width": X[:, 0], "height": X[:, 1]})
    fitted = make(model).fit(table, y)
    np.testing.assert_array_equal(fitted.feature_names_in_, ["width", "height"])
    expected = make(model).fit(X, y).decision_function(X)
    np.testing.assert_allclose(fitted.decision_function(table), expected, atol=1e-9)


@pytest.mark.parametrize("model", ["slim learned", "empirical order", "reduced"])
def test_names_as_labels(model):
    X, y = three_classes(45)
    names = np.array(["ant", "bee", "cow"])
    fitted = make(model).fit(X, names[y])
    np.testing.assert_array_equal(fitted.classes_, names)
    np.testing.assert_array_equal(fitted.predict(X), names[make(model).fit(X, y).predict(X)])


# --- Progress, warnings, interrupts --------------------------------------------------------------------------


def test_verbose_shows_search_and_learning(capsys):
    X, y = blobs(60, d=2)
    SlimSVC(3, learned(iterations=2), verbose=True).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    # On a busy machine the search has time to say how far it is.
    assert [line.split()[0] for line in err.splitlines() if "candidates" not in line] == ["search:", "learning"]
    assert "C=" in err
    assert f"learning 3 vectors on {len(np.unique(np.c_[X, y], axis=0))} rows" in err
    assert "2 iterations" in err
    SlimSVC(3, learned(iterations=2)).fit(X, y)
    assert capsys.readouterr() == ("", "")


def test_verbose_does_not_change_the_model():
    X, y = blobs(60, d=2)
    one, other = (SlimSVC(3, learned(iterations=2), verbose=v).fit(X, y) for v in (False, True))
    np.testing.assert_array_equal(one.vectors_, other.vectors_)
    np.testing.assert_array_equal(one.vector_coef_, other.vector_coef_)


@pytest.mark.parametrize("model", ["slim l1", "empirical order"])
def test_a_machine_that_is_not_solved_gives_a_warning(model):
    X, y = blobs(200, noise=2.0)
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap .*asked for tol=1e-09.*max_iter") as caught:
        make(model).set_params(max_iter=1, tol=1e-9).fit(X, y)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("max_iter", [1, 3])
@pytest.mark.parametrize("model", ["slim forward", "slim l1", "empirical order", "reduced"])
def test_max_iter_is_the_most(model, max_iter):
    X, y = blobs(200, noise=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make(model).set_params(max_iter=max_iter, tol=1e-12).fit(X, y)
    assert model.n_iter_[0] <= max_iter


@pytest.mark.parametrize("model", ["slim learned", "empirical order", "reduced"])
def test_a_flat_kernel_gives_one_warning_at_the_caller(model):
    X, y = blobs(60)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(model).set_params(gamma=1e-12).fit(X, y)
    flat = [w for w in caught if "kernel values are all about 1" in str(w.message)]
    assert len(flat) == 1
    assert flat[0].filename == __file__


INTERRUPT = """
import os, signal, sys, threading, time
from problems import blobs
from slimsvm import EmpiricalSVC, SlimSVC
from slimsvm.bases import Learned
from slimsvm.solvers.primal.interior_point import Members

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
moments = Members.moments
Members.moments = lambda *args: time.sleep(0.1) or moments(*args)
models = {
    "search": SlimSVC(50),
    "learning": SlimSVC(50, Learned(iterations=100000), C=1.0, gamma=0.3, scales="fixed"),
    "hinge": EmpiricalSVC(0.3, gamma=0.02, tol=1e-15, C=1e6, max_iter=10000),
}
for stage, model in models.items():
    X, y = blobs(60000 if stage == "hinge" else 20000, d=10, noise=2.0)
    sent = []

    def press():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.4, press)
    timer.start()
    try:
        model.fit(X, y)
        timer.cancel()
    except KeyboardInterrupt:
        print(stage, time.perf_counter() - sent[0], [name for name in vars(model) if name.endswith("_")])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_leaves_the_estimator_unfitted(tmp_path):
    lines = [line.split(" ", 2) for line in run(INTERRUPT, tmp_path).splitlines()]
    assert [stage for stage, _, _ in lines] == ["search", "learning", "hinge"]
    for _, waited, fitted in lines:
        assert float(waited) < (20.0 if SANITIZED else 2.0)
        assert fitted == "[]"


def test_an_error_leaves_the_estimator_as_it_was(monkeypatch):
    X, y = blobs(60)
    model = slim().fit(X, y)
    before = dict(vars(model))
    monkeypatch.setattr("slimsvm.training.spec.fit_coefficients", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.fit(X[:, :2], y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


def test_values_beyond_all_sums_end_in_a_warning():
    """Where even the objective of a step is no number, nothing is proved: the model is the best that is finite."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = (rng.standard_normal((61, 3)) + 1e6).astype(np.float32)
        clf = SlimSVC(1, basis=X[7:8], regularizer="identity", slack="l1", kernel="poly", coef0=1.0, C=0.01)
        clf.set_params(class_weight="balanced", gamma=0.05)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            clf.fit(X, rng.integers(0, 3, 61), sample_weight=10 ** rng.uniform(-6, 6, 61))
        warned = any(issubclass(warning.category, ConvergenceWarning) for warning in seen)
        assert warned == (clf.duality_gap_.max() > clf.tol)
        assert np.isfinite(clf.vector_coef_).all()
        assert np.isfinite(clf.objective_).all()


def test_the_norm_over_learned_vectors_has_a_small_epsilon():
    """objective_ is that of R = k(Z, Z) + epsilon I, and is its minimum; R = k(Z, Z) has one that is lower by
    epsilon / 2 |beta|^2 at most: the best over the same vectors, when these are given."""
    X, y = make_moons(400, noise=0.2, random_state=0)
    model = SlimSVC(10, C=1000, gamma=0.05, scales="fixed").fit(X, y)
    given = SlimSVC(basis=model.vectors_, kernel=model.kernel_, C=model.C_).fit(X, y)
    K, gram = rbf_kernel(X, model.vectors_, gamma=0.05), rbf_kernel(model.vectors_, gamma=0.05)

    def primal(epsilon, beta, b):
        slack = np.maximum(0, 1 - (2 * y - 1) * (K @ beta + b))
        return 0.5 * beta @ gram @ beta + 0.5 * epsilon * beta @ beta + 500 * slack @ slack

    def best(epsilon, beta, b):
        """Newton's method: the slacks that count are found again until they stay."""
        P = np.c_[K, np.ones(len(K))]
        R = np.zeros((11, 11))
        R[:10, :10] = gram + epsilon * np.eye(10)
        counts = (2 * y - 1) * (K @ beta + b) < 1
        return np.linalg.solve(R + 1000 * P[counts].T @ P[counts], 1000 * P[counts].T @ (2 * y - 1)[counts])

    epsilon = model.regularizer_.epsilon
    assert epsilon == 1e-6
    assert given.regularizer_.epsilon == 0
    for fitted, mine in ((model, epsilon), (given, 0.0)):
        beta, b = fitted.vector_coef_[0], fitted.intercept_[0]
        assert fitted.objective_[0] == pytest.approx(primal(mine, beta, b), rel=1e-9)
        again = best(mine, beta, b)
        assert primal(mine, again[:-1], again[-1]) == pytest.approx(fitted.objective_[0], rel=1e-6)
    above = model.objective_[0] - given.objective_[0]
    beta = given.vector_coef_[0]
    assert 1e-5 * given.objective_[0] < above <= 0.5 * epsilon * beta @ beta
