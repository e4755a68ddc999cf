"""Bad input gets an error that says what was given and what is allowed, and nothing is half-done."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from problems import blobs
from slimsvm import AnyNormSVC, EmpiricalSVC, ReducedSVC, SlimSVC, bases, kernels, losses, slacks
from small_models import FEW_ITERATIONS

pytestmark = pytest.mark.filterwarnings(FEW_ITERATIONS)

X, Y = blobs(40)
SQUARE = kernels.Gaussian(0.3)(X, X)


def with_value(value):
    bad = X.copy()
    bad[3, 1] = value
    return bad


def sparse_with_value(value):
    return sp.csr_array(with_value(value))


def weights(**changes):
    w = np.ones(40)
    for index, value in changes.items():
        w[int(index[1:])] = value
    return w


def half(X, Z):
    return np.ones((len(X), len(Z) // 2))


def not_a_number(X, Z):
    return np.full((len(X), len(Z)), np.nan)


def one_infinity(X, Z):
    K = X @ Z.T
    K[0, 0] = np.inf
    return K


# Parameters, arguments of fit, and words that the message must have: what was given, what is allowed.
CASES = {
    "C zero": ({"C": 0}, (X, Y), ["C=0", "above 0"]),
    "C negative": ({"C": -2.5}, (X, Y), ["C=-2.5", "above 0"]),
    "C NaN": ({"C": np.nan}, (X, Y), ["C=nan", "number"]),
    "C infinite": ({"C": np.inf}, (X, Y), ["C=inf", "number"]),
    "C text": ({"C": "big"}, (X, Y), ["C='big'", "number"]),
    "tol zero": ({"tol": 0.0}, (X, Y), ["tol=0.0", "above 0"]),
    "tol negative": ({"tol": -1e-3}, (X, Y), ["tol=-0.001", "above 0"]),
    "tol NaN": ({"tol": np.nan}, (X, Y), ["tol=nan", "number"]),
    "cache_size": ({"cache_size": 0}, (X, Y), ["cache_size=0", "above 0"]),
    "max_iter": ({"max_iter": 2.5}, (X, Y), ["max_iter=2.5", "integer"]),
    "max_iter below": ({"max_iter": -7}, (X, Y), ["max_iter=-7", "at least -1"]),
    "coef0": ({"coef0": np.nan}, (X, Y), ["coef0=nan", "number"]),
    "kernel": ({"kernel": "gauss"}, (X, Y), ["kernel='gauss'", "linear", "rbf", "laplacian", "precomputed"]),
    "kernel number": ({"kernel": 3}, (X, Y), ["kernel=3", "rbf"]),
    "slack": ({"slack": "l7"}, (X, Y), ["slack='l7'", "l1", "l2"]),
    "slack object": ({"slack": object()}, (X, Y), ["slack=<object", "feasible_set", "l1"]),
    "constraint": ({"constraint": "both"}, (X, Y), ["constraint='both'", "inequality", "equality"]),
    "multi_class": ({"multi_class": "all"}, (X, Y), ["multi_class='all'", "ovo", "ovr"]),
    "shape": ({"decision_function_shape": "x"}, (X, Y), ["decision_function_shape='x'", "ovo", "ovr"]),
    "shape of pairs": (
        {"decision_function_shape": "ovo", "multi_class": "ovr"},
        (X, Y),
        ["decision_function_shape='ovo'", "multi_class='ovr'", "multi_class='ovo'"],
    ),
    "verbose": ({"verbose": "yes"}, (X, Y), ["verbose='yes'", "True", "False"]),
    "precision": ({"precision": "float16"}, (X, Y), ["precision='float16'", "float32", "float64"]),
    "gamma word": ({"gamma": "large"}, (X, Y), ["gamma='large'", "scale", "auto", "positive"]),
    "gamma zero": ({"gamma": 0.0}, (X, Y), ["gamma=0.0", "positive"]),
    "gamma negative": ({"gamma": -1}, (X, Y), ["gamma=-1", "positive"]),
    "gamma NaN": ({"gamma": np.nan}, (X, Y), ["gamma=nan", "positive"]),
    "gamma of an object": ({"kernel": kernels.Gaussian(-1.0)}, (X, Y), ["gamma=-1.0", "positive"]),
    "degree": ({"kernel": "poly", "degree": -1}, (X, Y), ["degree=-1", "at least 0"]),
    "degree fraction": ({"kernel": "poly", "degree": 2.5}, (X, Y), ["degree=2.5", "integer"]),
    "degree of an object": ({"kernel": kernels.Polynomial(degree=-1)}, (X, Y), ["degree=-1", "at least 0"]),
    "n_jobs": ({"n_jobs": 0}, (X, Y), ["n_jobs"]),
    "class_weight word": ({"class_weight": "even"}, (X, Y), ["class_weight='even'", "balanced"]),
    "class_weight number": ({"class_weight": 3}, (X, Y), ["class_weight=3", "balanced", "dict"]),
    "class_weight unknown": ({"class_weight": {5: 1.0}}, (X, Y), ["[5]", "not in y"]),
    "class_weight negative": ({"class_weight": {1: -1.0}}, (X, Y), ["class_weight[1]=-1.0", "above 0"]),
    "X NaN": ({}, (with_value(np.nan), Y), ["NaN"]),
    "X infinite": ({}, (with_value(np.inf), Y), ["infinity"]),
    "X sparse NaN": ({}, (sparse_with_value(np.nan), Y), ["NaN"]),
    "X empty": ({}, (X[:0], Y[:0]), ["0 sample(s)", "minimum of 1"]),
    "X no columns": ({}, (X[:, :0], Y), ["0 feature(s)", "minimum of 1"]),
    "X one row": ({}, (X[:1], Y[:1]), ["one class"]),
    "X flat": ({}, (X[:, 0], Y), ["2D array"]),
    "X text": ({}, ([["a"], ["b"]], [0, 1]), ["'a'"]),
    "X complex": ({}, (X + 1j, Y), ["omplex"]),
    "one class": ({}, (X, np.full(40, "cat")), ["one class", "cat", "two"]),
    "y short": ({}, (X, Y[:-1]), ["40", "39"]),
    "y numbers": ({}, (X, Y + 0.1 * X[:, 0]), ["continuous"]),
    "y NaN": ({}, (X, np.where(Y > 0, np.nan, 0)), ["NaN"]),
    "y columns": ({}, (X, np.c_[Y, Y]), ["y should be a 1d array"]),
    "weight negative": ({}, (X, Y, weights(i3=-1.0)), ["sample_weight", "negative", "0 or more"]),
    "weight NaN": ({}, (X, Y, weights(i3=np.nan)), ["NaN"]),
    "weight infinite": ({}, (X, Y, weights(i3=np.inf)), ["infinity"]),
    "weights too few": ({}, (X, Y, np.ones(39)), ["sample_weight", "39", "40"]),
    "weights square": ({}, (X, Y, np.ones((40, 2))), ["ample", "1D"]),
    "weights all zero": ({}, (X, Y, np.zeros(40)), ["eight", "zero"]),
    "weights leave one class": ({}, (X, Y, (Y > 0).astype(float)), ["one class", "positive weight"]),
    "precomputed not square": ({"kernel": "precomputed"}, (X, Y), ["square", "(40, 4)"]),
    "precomputed sparse": ({"kernel": "precomputed"}, (sp.csr_array(X), Y), ["square", "(40, 4)"]),
    "precomputed NaN": ({"kernel": "precomputed"}, (np.full((40, 40), np.nan), Y), ["NaN"]),
    "callable wrong shape": ({"kernel": half}, (X, Y), ["kernel function", "(40, 20)", "(40, 40)"]),
    "callable NaN": ({"kernel": not_a_number}, (X, Y), ["kernel function", "NaN"]),
    "callable infinite": ({"kernel": one_infinity}, (X, Y), ["kernel function", "infinite"]),
}
bad_fits = pytest.mark.parametrize(("params", "arguments", "words"), CASES.values(), ids=CASES)


def fitted_attributes(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


@bad_fits
def test_message_says_what_was_given_and_what_is_allowed(params, arguments, words):
    with pytest.raises((ValueError, TypeError)) as error:
        AnyNormSVC(**params).fit(*arguments)
    for word in words:
        assert word in str(error.value)


@bad_fits
def test_a_failed_fit_leaves_the_model_unfitted(params, arguments, words):
    model = AnyNormSVC(**params)
    with pytest.raises((ValueError, TypeError)):
        model.fit(*arguments)
    assert fitted_attributes(model) == {}
    with pytest.raises(NotFittedError):
        model.predict(X)


@bad_fits
def test_a_failed_fit_keeps_the_model_before_it(params, arguments, words):
    """Nothing of the failed fit shows: the model is still the one that was fitted to other data."""
    model = AnyNormSVC(gamma=0.3).fit(X[:, :2], Y)
    before, expected, good = fitted_attributes(model), model.decision_function(X[:, :2]), model.get_params()
    with pytest.raises((ValueError, TypeError)):
        model.set_params(**params).fit(*arguments)
    model.set_params(**good)
    after = fitted_attributes(model)
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    np.testing.assert_array_equal(model.decision_function(X[:, :2]), expected)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_bad_columns_are_named(frame, value):
    """Only the columns with bad values are named, at fit and at prediction."""
    columns = {"width": X[:, 0], "height": with_value(value)[:, 1], "depth": X[:, 2]}
    good = frame({**columns, "height": X[:, 1]})
    model = AnyNormSVC().fit(good, Y)
    for call in (lambda: AnyNormSVC().fit(frame(columns), Y), lambda: model.predict(frame(columns))):
        with pytest.raises(ValueError, match=r"Columns.*height") as error:
            call()
        assert "width" not in str(error.value)


def test_missing_values_of_a_frame_are_named():
    table = pl.DataFrame({"width": [1.0, None, 3.0, 4.0], "height": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(ValueError, match="width"):
        AnyNormSVC().fit(table, [0, 1, 0, 1])


@pytest.mark.parametrize("method", ["predict", "decision_function"])
@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (X[:, :3], ["3 features", "4 features"]),
        (np.c_[X, X], ["8 features", "4 features"]),
        (sp.csr_array(X[:, :3]), ["3 features", "4 features"]),
        (with_value(np.nan), ["NaN"]),
        (X[:0], ["0 sample(s)"]),
        (X[0], ["2D array"]),
    ],
    ids=["too few columns", "too many columns", "sparse", "NaN", "empty", "flat"],
)
def test_bad_rows_at_prediction(rows, words, method):
    model = AnyNormSVC().fit(X, Y)
    with pytest.raises(ValueError) as error:
        getattr(model, method)(rows)
    for word in words:
        assert word in str(error.value)


def test_precomputed_prediction_needs_a_column_for_each_training_row():
    model = AnyNormSVC(kernel="precomputed").fit(SQUARE, Y)
    with pytest.raises(ValueError, match="39 features"):
        model.predict(SQUARE[:, :39])


def test_callable_that_fails_at_prediction():
    """The error of a user's function comes through as it is, at fit and at prediction."""

    def kernel(A, B):
        if len(A) == 3:
            raise ZeroDivisionError("user's own error")
        return A @ B.T

    model = AnyNormSVC(kernel=kernel).fit(X, Y)
    with pytest.raises(ZeroDivisionError, match="user's own error"):
        model.predict(X[:3])


def test_callable_that_fails_during_the_fit():
    """... also from within the core, long after the checks."""
    calls = []

    def kernel(A, B):
        calls.append(1)
        if len(calls) > 20:
            raise ZeroDivisionError("user's own error")
        return A @ B.T

    rows, y = blobs(1500, seed=1)
    model = AnyNormSVC(kernel=kernel)
    with pytest.raises(ZeroDivisionError, match="user's own error"):
        model.fit(rows, y)
    assert fitted_attributes(model) == {}


# --- Machines over a small basis ----------------------------------------------------------------------------

SMALL = {
    "slim": SlimSVC(4, bases.Learned(iterations=2), C=1.0, gamma=0.3, scales="fixed"),
    "slim forward": SlimSVC(4, "forward", C=1.0, gamma=0.3, scales="fixed"),
    "empirical": EmpiricalSVC(0.1),
    "reduced": ReducedSVC(4),
}
NOT_HERE = ("constraint", "precision", "max_iter below", "slack object", "slack", "callable")  # as they are spelt there


SHARED_CASES = {name: case for name, case in CASES.items() if not name.startswith(NOT_HERE)}


@pytest.mark.parametrize("model", SMALL)
@pytest.mark.parametrize(("params", "arguments", "words"), SHARED_CASES.values(), ids=SHARED_CASES)
def test_small_machines_name_what_was_given(model, params, arguments, words):
    """The same checks, words included; nothing is half-done."""
    model = clone(SMALL[model])
    if not params.keys() <= model.get_params().keys():  # a parameter that this machine does not have
        with pytest.raises(ValueError, match="Invalid parameter"):
            model.set_params(**params)
        return
    model.set_params(**params)
    if params.get("kernel") == "precomputed" and isinstance(getattr(model, "basis", None), bases.Learned):
        model.set_params(basis="forward")
    with pytest.raises((ValueError, TypeError)) as error:
        model.fit(*arguments)
    for word in words:
        assert word in str(error.value)
    assert fitted_attributes(model) == {}


SLIM_CASES = {
    "n_vectors zero": ({"n_vectors": 0}, ["n_vectors=0", "integer", "at least 1"]),
    "n_vectors negative": ({"n_vectors": -3}, ["n_vectors=-3", "at least 1"]),
    "n_vectors fraction": ({"n_vectors": 2.5}, ["n_vectors=2.5", "integer"]),
    "n_vectors bool": ({"n_vectors": True}, ["n_vectors=True", "integer"]),
    "n_vectors None": ({"n_vectors": None}, ["n_vectors=None", "integer"]),
    "basis": ({"basis": "lerned"}, ["basis='lerned'", "learned", "forward", "kmeans", "random", "cholesky", "array"]),
    "basis number": ({"basis": 3}, ["basis=3", "forward", "array"]),
    "basis None": ({"basis": None}, ["basis=None", "forward"]),
    "basis class": ({"basis": bases.Random}, ["basis=<class", "object"]),
    "basis columns": ({"basis": X[:, :3]}, ["basis has 3 columns", "X has 4"]),
    "basis flat": ({"basis": X[0]}, ["2D array"]),
    "basis NaN": ({"basis": with_value(np.nan)}, ["basis", "NaN"]),
    "basis empty": ({"basis": X[:0]}, ["0 sample(s)"]),
    "basis text": ({"basis": [["a", "b", "c", "d"]]}, ["could not convert"]),
    "init": ({"basis": bases.Learned(init="best")}, ["init='best'", "forward", "kmeans"]),
    "init None": ({"basis": bases.Learned(init=None)}, ["init=None", "forward", "kmeans"]),
    "init learned": ({"basis": bases.Learned(init="learned")}, ["init='learned'", "kmeans"]),
    "init columns": ({"basis": bases.Learned(init=X[:, :3])}, ["init has 3 columns", "X has 4"]),
    "init NaN": ({"basis": bases.Learned(init=with_value(np.nan)[:4])}, ["init", "NaN"]),
    "init too many": ({"basis": bases.Learned(init=X[:9])}, ["init has 9 vectors", "n_vectors=4"]),
    "slack": ({"slack": "l7"}, ["slack='l7'", "l1", "l2"]),
    "slack that is no sum": ({"slack": "linf"}, ["slack='linf'", "l1", "l2"]),
    "slack object": ({"slack": object()}, ["slack=<object", "l1", "losses"]),
    "slack class": ({"slack": losses.Hinge}, ["slack=<class", "l1"]),
    "regularizer": ({"regularizer": "none"}, ["regularizer='none'", "kernel", "identity"]),
    "regularizer number": ({"regularizer": 1.0}, ["regularizer=1.0", "kernel", "identity"]),
    "C word": ({"C": "auto"}, ["C='auto'", "search", "number"]),
    "gamma word": ({"gamma": "large"}, ["gamma='large'", "search", "scale", "auto", "positive"]),
    "scales": ({"scales": "free"}, ["scales='free'", "search", "fixed", "learned"]),
    "scales of rows": ({"scales": "learned", "basis": "forward"}, ["scales='learned'", "basis='learned'", "forward"]),
    "smoothing": ({"basis": bases.Learned(smoothing=-0.1)}, ["smoothing=-0.1", "at least 0"]),
    "smoothing NaN": ({"basis": bases.Learned(smoothing=np.nan)}, ["smoothing=nan", "number"]),
    "iterations": ({"basis": bases.Learned(iterations=-1)}, ["iterations=-1", "at least 0"]),
    "iterations fraction": ({"basis": bases.Learned(iterations=1.5)}, ["iterations=1.5", "integer", "auto"]),
    "rows": ({"basis": bases.Learned(rows=0)}, ["rows=0", "at least 1"]),
    "rows word": ({"basis": bases.Learned(rows="all")}, ["rows='all'", "auto", "integer"]),
    "max_iter": ({"max_iter": 0}, ["max_iter=0", "at least 1"]),
    "random_state": ({"random_state": "seed"}, ["seed"]),
    "callable wrong shape": ({"kernel": half, "basis": "forward"}, ["kernel function", "expected"]),
    "callable NaN": ({"kernel": not_a_number, "basis": "random"}, ["kernel function", "NaN"]),
}


@pytest.mark.parametrize(("params", "words"), SLIM_CASES.values(), ids=SLIM_CASES)
def test_slim_names_what_was_given(params, words):
    """... and what is allowed; a model that was fitted before stays as it was."""
    model = clone(SMALL["slim"]).fit(X, Y)
    before, good = fitted_attributes(model), model.get_params()
    with pytest.raises((ValueError, TypeError)) as error:
        model.set_params(**params).fit(X, Y)
    for word in words:
        assert word in str(error.value)
    after = fitted_attributes(model.set_params(**good))
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)


@pytest.mark.parametrize(
    ("estimator", "params", "words"),
    [
        (EmpiricalSVC, {"eta": -1e-3}, ["eta=-0.001", "at least 0"]),
        (EmpiricalSVC, {"eta": np.nan}, ["eta=nan", "number"]),
        (EmpiricalSVC, {"eta": 2.0}, ["eta=2.0", "below 1"]),
        (EmpiricalSVC, {"eta": 1}, ["eta=1", "below 1"]),
        (EmpiricalSVC, {"selection": "random"}, ["selection='random'", "order", "pivoted", "inputs"]),
        (EmpiricalSVC, {"selection": "inputs"}, ["selection='inputs'", "kernel='linear'", "kernel='rbf'", "pivoted"]),
        (EmpiricalSVC, {"slack": slacks.OneNorm}, ["slack=<class", "l1"]),
        (EmpiricalSVC, {"regularizer": "l1"}, ["regularizer='l1'", "kernel", "identity"]),
        (EmpiricalSVC, {"C": "search"}, ["C='search'", "number"]),
        (ReducedSVC, {"n_vectors": 0}, ["n_vectors=0", "at least 1"]),
        (ReducedSVC, {"slack": "l7"}, ["slack='l7'", "l1", "l2"]),
        (ReducedSVC, {"gamma": "search"}, ["gamma='search'", "scale"]),
    ],
    ids=str,
)
def test_papers_machines_name_what_was_given(estimator, params, words):
    with pytest.raises(ValueError) as error:
        estimator(**params).fit(X, Y)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("model", SMALL)
def test_small_machines_check_rows_at_prediction(model):
    fitted = clone(SMALL[model]).fit(X, Y)
    for rows, word in (
        (X[:, :3], "3 features"),
        (with_value(np.nan), "NaN"),
        (X[:0], "0 sample(s)"),
        (X[0], "2D array"),
    ):
        with pytest.raises(ValueError) as error:
            fitted.decision_function(rows)
        assert word in str(error.value)
