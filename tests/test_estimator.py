"""The scikit-learn contract, and the tools that rely on it."""

from __future__ import annotations

import io
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import skops.io
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from problems import MACHINES, blobs, cosine_plus_one, machine_name, three_classes
from slimsvm import (
    SVC,
    SVR,
    AnyNormSVC,
    BudgetSVC,
    EmpiricalSVC,
    NuSVC,
    OneClassSVM,
    ReducedSVC,
    SlimSVC,
    SlimSVR,
    bases,
    estimators,
    kernels,
    losses,
    slacks,
)

machines = pytest.mark.parametrize("machine", MACHINES, ids=machine_name)


# Mahalanobis needs a matrix for each training set.
NORMS_OF_A_GRID = [kind() for kind in slacks.ALL if kind is not slacks.Mahalanobis]


class CosinePlusOne:
    """The function with a name that is the same in every process, as parallel test runs need."""

    def __call__(self, X, Z):
        return cosine_plus_one(X, Z)

    def __repr__(self):
        return "CosinePlusOne()"


VARIANTS = [
    AnyNormSVC(slack, constraint, kernel=kernel, multi_class=multi_class)
    for slack, constraint in MACHINES
    for kernel in ("linear", "rbf", "precomputed")
    for multi_class in ("ovo", "ovr")
]
VARIANTS += [
    AnyNormSVC(kernel=kernels.Gaussian(0.5)),
    AnyNormSVC(kernel=CosinePlusOne()),
    AnyNormSVC(precision="float64"),
    AnyNormSVC(class_weight="balanced", n_jobs=2),
]

VARIANTS += [
    AnyNormSVC(slacks.TopSum(8.5)),
    AnyNormSVC(slacks.TopTwoNorm(9), multi_class="ovr", tol=1e-10),
    AnyNormSVC(slacks.TwoNorm(), "equality", kernel="linear"),
    AnyNormSVC(slacks.PNorm(3)),
    AnyNormSVC(slacks.OneTwoNorm(2.5), kernel="precomputed"),
    BudgetSVC(5, hard="select", kernel="precomputed"),
    BudgetSVC(5, "l2", "learn"),
]
NUMBERS = {"C": 1.0, "gamma": "scale", "scales": "fixed"}  # no search
VARIANTS += [
    SlimSVC(5, **NUMBERS),
    SlimSVC(5, C=10.0, gamma=0.3, scales="learned", slack="l1"),
    SlimSVC("auto", bases.Learned(iterations=5), **NUMBERS),
    SlimSVC(5, bases.Learned(init="forward", rows=50), **NUMBERS),
    SlimSVC(5, bases.Learned(init="random"), multi_class="ovr", regularizer="identity", **NUMBERS),
    SlimSVC(5, kernel="poly", coef0=1.0, **NUMBERS),
    SlimSVC(5, "forward", slack="l1", **NUMBERS),
    SlimSVC(5, "kmeans", class_weight="balanced", **NUMBERS),
    SlimSVC(5, "random", kernel="precomputed", **NUMBERS),
    SlimSVC(5, "cholesky", kernel="linear", slack=losses.HuberHinge(), **NUMBERS),
    SlimSVC(5, bases.Forward(candidates=5), kernel=CosinePlusOne(), **NUMBERS),
    SlimSVR(5, **NUMBERS),
    SlimSVR(5, C=10.0, gamma=0.3, scales="learned", loss="epsilon_insensitive"),
    SlimSVR("auto", bases.Learned(iterations=5), loss="huber", **NUMBERS),
    SlimSVR(5, "forward", loss="squared_epsilon_insensitive", **NUMBERS),
    # A check asks for an R² of 0.5 on rows of ten inputs: 5 rows that are not learned span half of a linear kernel's
    # space, 10 all of it; with the Gaussian kernel 5 centres reach at most 0.35 whatever their coefficients, 20 more.
    SlimSVR(10, "random", kernel="precomputed", **NUMBERS),
    SlimSVR(20, "kmeans", loss=losses.Huber(0.5, 0.1), **NUMBERS),
    EmpiricalSVC(selection="pivoted"),
    EmpiricalSVC(1e-2, "pivoted", regularizer="identity", slack="l2", multi_class="ovr"),
    EmpiricalSVC(selection="inputs", kernel="linear"),
    EmpiricalSVC(1e-2, "pivoted", kernel="precomputed"),
    ReducedSVC(5, regularizer="kernel", slack="l1"),
    ReducedSVC(5, kernel="precomputed"),
]


ODD_KERNELS = pytest.mark.filterwarnings("ignore:kernel values", "ignore:the kernel is not positive semidefinite")


# Checks that have failed for some estimator: they run for every one.
HAVE_FAILED = (
    "check_regressors_train",
    "check_sample_weight_equivalence",
    "check_fit2d_1sample",
    "check_methods_subset",
)


@pytest.mark.grid(5, always=HAVE_FAILED)
@ODD_KERNELS
@parametrize_with_checks([estimator() for estimator in (*estimators.ALL, *estimators.REGRESSORS)])
def test_scikit_learn_contract(estimator, check):
    """Every estimator as it comes."""
    check(estimator)


def expected_failures(estimator):
    """scikit-learn expects more of its own."""
    if not isinstance(estimator, NuSVC):
        return {}
    failing = {"check_class_weight_classifiers": "class_weight is ignored, as in scikit-learn"}
    if estimator.nu == 0.5:
        weights = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
        failing |= dict.fromkeys(weights, "nu=0.5 is infeasible for these weights")
    return failing


DROP_IN = [kind() for kind in estimators.FAMILY]
DROP_IN += [
    NuSVC(nu=0.1, break_ties=True),  # votes are tied here, where predict and decision_function of scikit-learn differ
    SVC(kernel="precomputed"),
    SVC(probability=True),
    SVC(kernel="linear", class_weight="balanced"),
]
DROP_IN += [SVR(kernel="linear"), SVR(kernel="precomputed"), OneClassSVM(nu=0.1), SVC(kernel=CosinePlusOne())]


@pytest.mark.grid(5, always=HAVE_FAILED)
@ODD_KERNELS
@parametrize_with_checks(DROP_IN, expected_failed_checks=expected_failures)
def test_scikit_learn_contract_of_its_own_machines(estimator, check):
    """Those that it expects its own to fail, too."""
    check(estimator)


@pytest.mark.grid(16, always=HAVE_FAILED[:1])
@ODD_KERNELS
@parametrize_with_checks(VARIANTS)
def test_scikit_learn_contract_of_variants(estimator, check):
    """The grid of settings."""
    check(estimator)


@pytest.mark.parametrize(
    "estimator",
    [*estimators.ALL, *estimators.REGRESSORS, *estimators.FAMILY, *estimators.COMPRESSED, *estimators.DETECTORS],
)
def test_every_parameter_has_a_default(estimator):
    assert clone(estimator()).get_params() == estimator().get_params()


@machines
def test_fitted_attributes(machine):
    slack, constraint = machine
    X, y = blobs(60)
    model = AnyNormSVC(slack, constraint).fit(X, y)
    np.testing.assert_array_equal(model.classes_, [-1.0, 1.0])
    assert model.n_features_in_ == 4
    assert model.n_vectors_ == len(model.support_) == len(model.vectors_) == model.vector_coef_.shape[1]
    assert model.vector_coef_.shape[0] == 1
    for name in ("intercept_", "objective_", "duality_gap_", "n_iter_"):
        assert getattr(model, name).shape == (1,)
    assert model.n_iter_[0] >= 1
    np.testing.assert_array_equal(model.vectors_, X[model.support_])
    assert not hasattr(model, "feature_names_in_")


# --- Tools --------------------------------------------------------------------------------------------------


@machines
def test_pipeline_and_cross_validation(machine):
    slack, constraint = machine
    X, y = load_iris(return_X_y=True)
    assert cross_val_score(make_pipeline(StandardScaler(), AnyNormSVC(slack, constraint)), X, y).mean() > 0.9


def test_grid_search_over_numbers_parts_and_their_parameters():
    X, y = load_iris(return_X_y=True)
    grid = [
        {"slack": ["l1", *NORMS_OF_A_GRID], "constraint": ["inequality", "equality"]},
        {"C": [0.1, 10.0], "kernel": ["linear", kernels.Gaussian(0.1), cosine_plus_one]},
        {"kernel": [kernels.Gaussian()], "kernel__gamma": [1e-6, 0.2]},
    ]
    search = GridSearchCV(AnyNormSVC(), grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.9
    results = pd.DataFrame(search.cv_results_)
    by_gamma = results.dropna(subset="param_kernel__gamma").set_index("param_kernel__gamma").mean_test_score
    assert by_gamma[0.2] > by_gamma[1e-6]  # the nested parameter reaches the fit


def test_grid_search_with_a_precomputed_matrix():
    """Cross-validation must take rows and columns of a kernel matrix."""
    X, y = load_iris(return_X_y=True)
    K = kernels.Gaussian(0.5)(X, X)
    search = GridSearchCV(AnyNormSVC(kernel="precomputed"), {"C": [1.0, 10.0]}, cv=3).fit(K, y)
    plain = GridSearchCV(AnyNormSVC(gamma=0.5), {"C": [1.0, 10.0]}, cv=3).fit(X, y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibration(method):
    X, y = three_classes()
    calibrated = CalibratedClassifierCV(AnyNormSVC(), method=method, cv=3).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)
    assert calibrated.score(X, y) > 0.6


def test_one_vs_rest_wrapper():
    X, y = three_classes()
    wrapped = OneVsRestClassifier(AnyNormSVC(gamma=0.5, tol=1e-8)).fit(X, y)
    own = AnyNormSVC(gamma=0.5, tol=1e-8, multi_class="ovr").fit(X, y)
    np.testing.assert_allclose(wrapped.decision_function(X), own.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("wrapper", ["grid search", "calibration"])
def test_weights_are_routed(wrapper, metadata_routing):
    """Metadata routing: a weight of 0 for half the rows must reach the inner fit."""
    X, y = blobs(60)
    flipped = np.where(np.arange(60) % 2, y, -y)  # every other label is wrong
    weight = (np.arange(60) % 2).astype(float)
    model = AnyNormSVC(gamma=0.3).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    if wrapper == "grid search":
        routed = GridSearchCV(model, {"C": [1.0]}, cv=2).fit(X, flipped, sample_weight=weight)
        assert not (routed.best_estimator_.support_ % 2 == 0).any()
    else:
        routed = CalibratedClassifierCV(model, cv=2, ensemble=False).fit(X, flipped, sample_weight=weight)
    assert routed.score(X[1::2], y[1::2]) > 0.8


# --- Frames -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames(frame):
    X, y = three_classes()
    table = frame({"width": X[:, 0], "height": X[:, 1]})
    labels = pd.Series(y) if frame is pd.DataFrame else pl.Series(y)
    model = AnyNormSVC().fit(table, labels)
    np.testing.assert_array_equal(model.feature_names_in_, ["width", "height"])
    np.testing.assert_array_equal(model.decision_function(table), AnyNormSVC().fit(X, y).decision_function(X))
    if frame is pd.DataFrame:
        with pytest.raises(ValueError, match="feature names"):
            model.predict(table.rename(columns={"width": "depth"}))


def test_categorical_and_boolean_labels():
    X, y = three_classes()
    names = pd.Categorical.from_codes(y, ["a", "b", "c"])
    np.testing.assert_array_equal(AnyNormSVC().fit(X, pd.Series(names)).classes_, ["a", "b", "c"])
    model = AnyNormSVC().fit(X, y == 1)
    assert model.predict(X).dtype == bool


# --- Copies -------------------------------------------------------------------------------------------------


def by_pickle(model):
    return pickle.loads(pickle.dumps(model))


def by_joblib(model):
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


def by_skops(model):
    """Nothing but slimsvm's own types and the container of the user's rows needs to be trusted."""
    data = skops.io.dumps(model)
    types = skops.io.get_untrusted_types(data=data)
    assert all(name.startswith(("slimsvm.", "scipy.sparse.")) for name in types), types
    return skops.io.loads(data, trusted=types)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("copy", [by_pickle, by_joblib, by_skops])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"kernel": "poly", "slack": slacks.SquaredTwoNorm(), "constraint": "equality"},
        {"kernel": kernels.Laplacian(0.5), "class_weight": {0: 2.0}, "multi_class": "ovr"},
        {"kernel": "precomputed"},
        {"estimator": SlimSVC, "n_vectors": 4, **NUMBERS},
        {"estimator": SlimSVC, "n_vectors": 4, "basis": bases.Learned(iterations=20), **NUMBERS, "scales": "learned"},
        {"estimator": SlimSVC, "basis": bases.Forward(), "slack": losses.HuberHinge(0.3), **NUMBERS},
        {"estimator": EmpiricalSVC, "eta": 0.1, "regularizer": "identity"},
        {"estimator": ReducedSVC, "n_vectors": 4, "kernel": "precomputed"},
    ],
    ids=str,
)
def test_saved_models_predict_the_same(params, copy, sparse):
    X, y = three_classes()
    X = X @ X.T + 1 if params.get("kernel") == "precomputed" else X
    rows = sp.csr_array(X) if sparse else X
    params = dict(params)
    model = params.pop("estimator", AnyNormSVC)(**params).fit(rows, y)
    restored = copy(model)
    np.testing.assert_array_equal(restored.decision_function(rows), model.decision_function(rows))
    assert restored.get_params() == model.get_params()
    assert restored.kernel_ == model.kernel_
    restored.fit(rows, y)


@machines
def test_clone_is_unfitted_and_equal(machine):
    slack, constraint = machine
    X, y = blobs(40)
    model = AnyNormSVC(slack, constraint, kernel=kernels.Gaussian(0.3)).fit(X, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.kernel is not model.kernel
    with pytest.raises(ValueError, match="not fitted"):
        check_is_fitted(copy)
    np.testing.assert_array_equal(copy.fit(X, y).decision_function(X), model.decision_function(X))


def test_parameters_of_parts_are_set_without_changing_the_part():
    """Two estimators may share a part: it is replaced in one, and stays as it is in the other."""
    kernel, slack = kernels.Scaled(kernels.Gaussian(0.3), 2.0), slacks.TopSum(4.0)
    one, other = (AnyNormSVC(slack, kernel=kernel) for _ in range(2))
    one.set_params(kernel__kernel__gamma=5.0, kernel__scales=1.0, slack__budget=7.0, C=3.0)
    assert one.kernel == kernels.Scaled(kernels.Gaussian(5.0), 1.0)
    assert one.slack == slacks.TopSum(7.0)
    assert one.C == 3.0
    assert other.kernel is kernel
    assert other.slack is slack
    assert kernel == kernels.Scaled(kernels.Gaussian(0.3), 2.0)
    assert slack == slacks.TopSum(4.0)
    one.set_params(kernel=kernels.Gaussian(1.0), kernel__gamma=2.0)
    assert one.kernel == kernels.Gaussian(2.0)
    with pytest.raises(ValueError, match="Gaussian has no parameter 'width'"):
        one.set_params(kernel__width=1.0)
    with pytest.raises(ValueError, match="Invalid parameter 'width'"):
        one.set_params(width=1.0)


def test_repr_shows_what_was_changed():
    text = repr(AnyNormSVC(C=3.0, kernel=kernels.Gaussian(0.5)))
    assert "C=3.0" in text
    assert "Gaussian(gamma=0.5)" in text
