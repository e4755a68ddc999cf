"""The machines of `sklearn.svm` by their own names: the same models, layout and behaviour, and what is ours on top."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.datasets import load_digits, load_iris, make_classification, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.utils.validation import _num_samples

import slimsvm
from problems import blobs
from slimsvm import SVC, SVR, NuSVC, NuSVR, OneClassSVM, Predictor, compress, estimators, to_c, to_sklearn
from slimsvm.estimators.sklearn_svm.probability import sigmoid
from slimsvm.persistence import from_bytes, to_bytes

FAMILY = pytest.mark.parametrize("kind", estimators.FAMILY)
IRIS, SPECIES = load_iris(return_X_y=True)
IRIS = (IRIS - IRIS.mean(axis=0)) / IRIS.std(axis=0)
FRIEDMAN, VALUES = make_friedman1(150, noise=1.0, random_state=0)


def data(kind):
    """Rows and targets for a machine."""
    if issubclass(kind, OneClassSVM):
        return IRIS + 3, SPECIES  # away from the origin, where a linear machine would be zero
    return (FRIEDMAN, VALUES) if issubclass(kind, (SVR, NuSVR)) else (IRIS, SPECIES)


def theirs(model):
    """scikit-learn's machine with the same parameters."""
    params = {name: value for name, value in model.get_params().items() if name != "n_jobs"}
    params.pop("probability", None)
    return getattr(sklearn.svm, type(model).__name__)(**params)


def values(model, X):
    """Of the problems themselves, rows x problems."""
    if hasattr(model, "decision_function_shape"):
        model.decision_function_shape = "ovo"
    found = model.predict(X) if is_regressor(model) else model.decision_function(X)
    return found if found.ndim == 2 else found[:, None]


# --- the same models ------------------------------------------------------------------------------------------------

SETTINGS = {
    "rbf": {},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "function": {"kernel": laplacian_kernel},
    "wide": {"gamma": 0.05},
}


@FAMILY
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_values_are_those_of_scikit_learn(kind, setting, weighted, container):
    """To what both tolerances allow. gamma is a number: with weights, ours counts rows by them."""
    X, y = data(kind)
    # nu is such that each side has free vectors: margins and thresholds are unique then.
    params = {"gamma": 0.3} | SETTINGS[setting] | ({"nu": 0.217} if "nu" in kind().get_params() else {})
    params |= {"C": 10.0} if is_regressor(kind()) else {}  # free vectors, so that the bias is unique
    model = kind(tol=1e-8, **params)
    weight = np.random.default_rng(0).integers(0, 4, len(y)) * 0.5 if weighted else None
    X = container(X)
    model.fit(X, y, sample_weight=weight)
    # With functions, scikit-learn's predictions are wrong after weights of 0.
    counted = slice(None) if weight is None else weight > 0
    other = theirs(model).fit(X[counted], y[counted], sample_weight=None if weight is None else weight[counted])
    ours, expected = values(model, X), values(other, X)
    assert_allclose(ours, expected, atol=2e-3 * max(1.0, np.abs(expected).std()))
    assert (model.duality_gap_ <= 1e-8).all()
    assert model.fit_status_ == 0


@pytest.mark.parametrize("C", [0.1, 100.0])
@pytest.mark.parametrize("kind", [SVC, SVR])
def test_the_dual_value_is_as_good(kind, C):
    X, y = data(kind)
    y = (y > 0).astype(int) if kind is SVC else y
    model = kind(C=C, gamma=0.3, tol=1e-4).fit(X, y)
    other = theirs(model).fit(X, y)

    def dual(machine):
        a, rows = machine.dual_coef_[0], machine.support_
        K = rbf_kernel(X[rows], gamma=0.3)
        gain = np.abs(a).sum() if kind is SVC else a @ y[rows] - 0.1 * np.abs(a).sum()
        return gain - 0.5 * a @ K @ a

    assert dual(model) >= dual(other) * (1 - 1e-4)
    assert_allclose(dual(model), model.objective_[0], rtol=1.1e-4)


@pytest.mark.parametrize("kind", [SVC, SVR])
def test_infinite_cost(kind):
    """No slack at all, where that is possible."""
    X, y = data(kind)
    y = (y == 0).astype(int) if kind is SVC else y
    model = kind(C=np.inf, gamma=0.5).fit(X, y)
    if kind is SVC:
        margins = np.where(y == 1, 1, -1) * model.decision_function(X)
        assert margins.min() > 1 - 0.01
    else:
        assert np.abs(model.predict(X) - y).max() < 0.1 + 0.01 * y.std()
    large = kind(C=1e6, gamma=0.5).fit(X, y)
    assert_allclose(values(model, X), values(large, X), atol=0.02 * np.abs(values(large, X)).std())


@FAMILY
def test_threads_change_nothing(kind):
    X, y = data(kind)
    one, two = (kind(n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    assert_array_equal(one.vector_coef_, two.vector_coef_)
    assert_array_equal(values(one, X), values(two, X))


# --- layout ---------------------------------------------------------------------------------------------------------


@FAMILY
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_the_layout_is_that_of_scikit_learn(kind, container):
    """The same names, shapes and types; and decision values follow from them as the field writes them."""
    X, y = data(kind)
    model, other = kind(kernel="linear").fit(container(X), y), theirs(kind(kernel="linear")).fit(container(X), y)
    names = {name for name in dir(other) if name.endswith("_") and not name.startswith("_")} - {"probA_", "probB_"}
    for name in names:
        mine, wanted = getattr(model, name), getattr(other, name)
        if name == "shape_fit_":
            continue
        assert np.ndim(mine) == np.ndim(wanted), name
        assert sp.issparse(mine) == sp.issparse(wanted), name
        if sp.issparse(wanted) or np.ndim(wanted):
            assert mine.shape[0] == wanted.shape[0] or name in ("support_", "support_vectors_"), name
            assert mine.dtype == wanted.dtype, name
        else:
            assert type(mine) is type(wanted), name
    assert model.support_vectors_.shape[0] == len(model.support_) == model.n_support_.sum() == model.dual_coef_.shape[1]
    assert_allclose(X @ np.asarray(_dense(model.coef_)).T + model.intercept_, values(model, container(X)), atol=1e-8)
    assert_array_equal(_dense(model.support_vectors_), X[model.support_])
    assert (model._sparse, model.shape_fit_, model._gamma) == (sp.issparse(container(X)), X.shape, 0.0)


def _dense(found):
    return found.toarray() if sp.issparse(found) else found


def test_coefficients_of_several_classes():
    """Each vector has a row for each of the other classes, as LIBSVM packs them."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    model = SVC(gamma=1e-3, tol=1e-6).fit(X, y)
    other = sklearn.svm.SVC(gamma=1e-3, tol=1e-8).fit(X, y)
    assert_array_equal(model.support_, other.support_)
    assert_array_equal(model.n_support_, other.n_support_)
    assert_allclose(model.dual_coef_, other.dual_coef_, atol=1e-3)
    assert_allclose(model.intercept_, other.intercept_, atol=1e-3)


@pytest.mark.parametrize("kind", [SVC, NuSVC])
@pytest.mark.parametrize("break_ties", [False, True])
def test_votes_are_counted_as_there(kind, break_ties):
    """On values of which many are ties: those of a machine of scikit-learn that is ours, vector by vector."""
    X, y = IRIS[:, :2], SPECIES
    model = kind(gamma=30.0, break_ties=break_ties).fit(X, y)
    other = to_sklearn(model)
    assert type(other) is getattr(sklearn.svm, kind.__name__)
    grid = np.stack(np.meshgrid(*[np.linspace(-4, 4, 60)] * 2), axis=-1).reshape(-1, 2)
    assert_array_equal(model.predict(grid), other.predict(grid))
    assert_allclose(model.decision_function(grid), other.decision_function(grid), atol=1e-9)
    assert_array_equal(Predictor(model).predict(grid), model.predict(grid))


def test_the_kind_is_known():
    assert [is_classifier(kind()) for kind in estimators.FAMILY] == [True, True, False, False, False]
    assert [is_regressor(kind()) for kind in estimators.FAMILY] == [False, False, True, True, False]
    assert [is_outlier_detector(kind()) for kind in estimators.FAMILY] == [False] * 4 + [True]


@FAMILY
def test_the_constructor_is_that_of_scikit_learn(kind):
    """Every parameter, and its default; `n_jobs` is ours."""
    mine, wanted = kind().get_params(), getattr(sklearn.svm, kind.__name__)().get_params()
    assert mine.pop("n_jobs") is None
    wanted.pop("probability", None)
    assert mine.pop("probability", False) is False
    assert mine == wanted
    kind(**getattr(sklearn.svm, kind.__name__)().get_params()).fit(*data(kind))


# --- weights --------------------------------------------------------------------------------------------------------


@FAMILY
def test_weights_are_copies(kind):
    """Each copy has its part of the dual variable, and the values are the same."""
    X, y = data(kind)
    X, y = X[::2], y[::2]
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    params = {"nu": 0.2} if "nu" in kind().get_params() else {}
    once = kind(**params).fit(X, y, sample_weight=weight)
    copied = kind(**params).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(values(copied, X), values(once, X), rtol=1e-10, atol=1e-10)
    rows = np.repeat(np.arange(len(y)), weight)
    together = np.zeros((once.vector_coef_.shape[0], len(y)))
    np.add.at(together.T, rows[copied.support_], copied.vector_coef_.T)
    apart = np.zeros_like(together)
    apart[:, once.support_] = once.vector_coef_
    assert_allclose(together, apart, atol=1e-12)
    if kind is SVC:
        assert np.abs(copied.dual_coef_).max() <= 1 + 1e-12


@FAMILY
def test_rows_without_weight_are_left_out(kind):
    X, y = data(kind)
    weight = np.ones(len(y))
    weight[::3], weight[1::30] = 0, -1
    part = kind(gamma=0.3).fit(X[weight > 0], y[weight > 0])
    whole = kind(gamma=0.3).fit(X, y, sample_weight=weight)
    assert_array_equal(whole.support_, np.flatnonzero(weight > 0)[part.support_])
    assert_array_equal(whole.vector_coef_, part.vector_coef_)


def test_class_weights():
    X, y = blobs(120)
    model = SVC(class_weight={np.unique(y)[0]: 5.0}).fit(X, y)
    other = sklearn.svm.SVC(class_weight={np.unique(y)[0]: 5.0}).fit(X, y)
    assert_array_equal(model.class_weight_, other.class_weight_)
    assert_allclose(model.decision_function(X), other.decision_function(X), atol=0.01)
    balanced = SVC(class_weight="balanced").fit(X[:80], y[:80])
    expected = sklearn.svm.SVC(class_weight="balanced").fit(X[:80], y[:80])
    assert_allclose(balanced.class_weight_, expected.class_weight_)


# --- rows of any kind -----------------------------------------------------------------------------------------------


def common_letters(A, B):
    return np.array([[sum(min(a.count(c), b.count(c)) for c in set(a)) for b in B] for a in A], dtype=float)


@FAMILY
def test_texts(kind):
    """A function may compare whatever it likes."""
    words = ["slack", "margin", "kernel", "vector", "dual", "primal", "gap", "basis", "loss", "norm"] * 2
    y = np.arange(20) % 2
    K = common_letters(words, words)
    model, matrix = kind(kernel=common_letters).fit(words, y), kind(kernel="precomputed").fit(K, y)
    assert_allclose(values(model, words), values(matrix, K))
    assert model.shape_fit_ == (20,)
    assert _num_samples(model.predict(["gap", "kernels"])) == 2
    with pytest.raises(ValueError, match="cannot be compressed"):
        compress(model, 3)


def test_missing_values_are_the_functions_business():
    X, y = blobs(40)
    holes = X.copy()
    holes[0, 0] = np.nan

    def kernel(A, B):
        return rbf_kernel(np.nan_to_num(A), np.nan_to_num(B), gamma=0.5)

    model = SVC(kernel=kernel).fit(holes, y)
    assert_allclose(
        model.decision_function(holes),
        SVC(gamma=0.5).fit(np.nan_to_num(holes), y).decision_function(np.nan_to_num(holes)),
        atol=1e-2,
    )


@FAMILY
def test_sparse_rows_of_a_machine_that_was_fitted_to_dense_ones(kind):
    X, y = data(kind)
    model = kind().fit(X, y)
    assert_allclose(values(model, sp.csr_array(X)), values(model, X), atol=1e-9)


@FAMILY
@pytest.mark.parametrize("dtype", [np.float32, np.int64, object])
def test_other_types_of_numbers(kind, dtype):
    X, y = data(kind)
    X = np.round(3 * X).astype(dtype)
    model, wide = kind(gamma=0.1).fit(X, y), kind(gamma=0.1).fit(X.astype(float), y)
    assert_allclose(values(model, X), values(wide, X.astype(float)), atol=1e-3 * np.abs(values(wide, X)).max())


# --- errors and warnings --------------------------------------------------------------------------------------------


@FAMILY
def test_steps_that_are_too_few_are_told(kind):
    X, y = data(kind)
    with pytest.warns(ConvergenceWarning, match=r"terminated early \(max_iter=3\).*relative duality gap"):
        model = kind(max_iter=3).fit(X, y)
    assert model.fit_status_ == 1
    assert (model.duality_gap_ > 1e-3).any()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SVC(C=0.0), "C=0.0 must be a number above 0"),
        (SVR(C=-np.inf), "C=-inf"),
        (SVR(epsilon=-1), "epsilon=-1"),
        (NuSVC(nu=1.5), "nu=1.5"),
        (NuSVR(nu=0.0), "nu=0.0"),
        (OneClassSVM(nu=2), "nu=2"),
        (SVC(break_ties="yes"), "break_ties"),
        (SVC(shrinking=None), "shrinking"),
        (SVC(kernel="circle"), "kernel='circle'"),
        (SVC(decision_function_shape="all"), "decision_function_shape"),
        (NuSVC(nu=0.9), "specified nu is infeasible"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_parameters_that_make_no_sense(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(IRIS[:110], SPECIES[:110] > 1)


# --- probabilities --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SVC, NuSVC])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities(kind, n_classes):
    X, y = IRIS, SPECIES if n_classes == 3 else (SPECIES > 1).astype(int)
    model = kind(probability=True, **({"nu": 0.2} if kind is NuSVC else {})).fit(X, y)
    p = model.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1)
    assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert_allclose(np.exp(model.predict_log_proba(X)), p)
    order = np.random.default_rng(0).permutation(len(y))
    again = clone(model).fit(X[order], y[order]).predict_proba(X)
    assert_allclose(again, p, atol=0.02)
    assert_array_equal(clone(model).set_params(random_state=5).fit(X, y).predict_proba(X), p)


def test_probabilities_are_no_worse_than_those_of_libsvm():
    X, y = load_digits(return_X_y=True)
    train, test, labels, truth = train_test_split(X, y, test_size=0.5, random_state=0)
    model = SVC(probability=True).fit(train, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        other = sklearn.svm.SVC(probability=True, random_state=0).fit(train, labels)
    assert log_loss(truth, model.predict_proba(test)) < 1.05 * log_loss(truth, other.predict_proba(test))


def test_sigmoids_are_most_likely():
    """Against a grid around the solution; numbers of LIBSVM give the same probabilities."""
    rng = np.random.default_rng(0)
    f = rng.normal(size=200)
    y = np.where(rng.random(200) < 1 / (1 + np.exp(-2 * f - 1)), 1.0, -1.0)
    a, b = sigmoid(f, y, np.ones(200))
    up, down = (y > 0).sum(), (y < 0).sum()
    target = np.where(y > 0, (up + 1) / (up + 2), 1 / (down + 2))

    def loss(a, b):
        return np.sum(np.logaddexp(0, a * f + b) - target * (a * f + b))

    assert loss(a, b) <= min(loss(a + s, b + t) for s in (-1e-3, 0, 1e-3) for t in (-1e-3, 0, 1e-3)) + 1e-9
    X, labels = blobs(200)
    model = SVC(probability=True).fit(X, labels)
    with pytest.warns(FutureWarning, match="probA_"):
        A, B = model.probA_, model.probB_
    first = 1 / (1 + np.exp(-A * model.decision_function(X) + B))  # f of LIBSVM is that of the first class
    sure = np.abs(first - 0.5) > 0.1  # near the border `predict` leads
    assert_allclose(model.predict_proba(X)[sure, 0], first[sure], atol=1e-9)


# --- everything else that models can do -----------------------------------------------------------------------------


@FAMILY
@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_files_and_pickles(kind, kernel, container):
    X, y = data(kind)
    X = container(linear_kernel(X)) if kernel == "precomputed" else container(X)
    if kernel == "precomputed" and container is sp.csr_array:
        with pytest.raises(TypeError, match="Sparse precomputed"):
            kind(kernel=kernel).fit(X, y)
        return
    more = {"probability": True} if is_classifier(kind()) else {}
    model = kind(kernel=kernel, **more).fit(X, y)
    for again in (from_bytes(to_bytes(model)), pickle.loads(pickle.dumps(model))):
        assert type(again) is kind
        assert vars(again).keys() == vars(model).keys()
        assert_array_equal(values(again, X), values(model, X))
        assert_array_equal(_dense(again.dual_coef_), _dense(model.dual_coef_))
        if more:
            assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_function_is_not_saved():
    with pytest.raises(TypeError, match="kernel"):
        to_bytes(SVC(kernel=polynomial_kernel).fit(IRIS, SPECIES))


@FAMILY
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_as_a_machine_of_scikit_learn(kind, kernel):
    X, y = data(kind)
    model = kind(kernel=kernel, **({"nu": 0.3} if "nu" in kind().get_params() else {})).fit(X, y)
    other = to_sklearn(model)
    assert type(other) is getattr(sklearn.svm, kind.__name__)
    assert_allclose(values(other, X), values(model, X), atol=1e-8)
    assert_array_equal(other.n_support_, model.n_support_)
    for name in {"nu", "C", "epsilon"} & model.get_params().keys():
        assert getattr(other, name) == getattr(model, name)


@FAMILY
def test_small_versions(kind):
    X, y = data(kind)
    model = kind().fit(X, y)
    small = compress(model, 12, X)
    assert small.n_vectors_ <= 12
    assert small.compression_.agreement_on_X > 0.9
    exact = compress(model, 10_000)
    assert_allclose(exact.predict(X), model.predict(X), atol=1e-8)


@FAMILY
def test_exports(kind):
    X, y = data(kind)
    model = kind(**({"nu": 0.3} if "nu" in kind().get_params() else {})).fit(X, y)
    assert "float" in str(to_c(model, name="machine"))
    assert_allclose(Predictor(model).predict(X), model.predict(X), atol=1e-9)
    onnx = pytest.importorskip("onnxruntime")
    session = onnx.InferenceSession(slimsvm.to_onnx(model).SerializeToString())
    rows = (X + 0.1).astype(np.float32)  # training rows may lie on the border itself
    found = session.run(None, {session.get_inputs()[0].name: rows})[0]
    assert_allclose(np.ravel(found), model.predict(rows.astype(np.float64)), atol=1e-3)


@pytest.mark.parametrize("kind", [SVC, NuSVC, OneClassSVM])
def test_bytes_on_a_device(kind):
    X, y = data(kind)
    assert kind().fit(X, y).model_bytes_ > 0


def test_grid_search():
    search = GridSearchCV(SVC(), {"C": [0.1, 10], "gamma": [0.1, 1.0]}, n_jobs=1).fit(IRIS, SPECIES)
    assert search.best_score_ > 0.9


# --- the switch -----------------------------------------------------------------------------------------------------


def test_patched_names():
    before = {kind.__name__: getattr(sklearn.svm, kind.__name__) for kind in estimators.FAMILY}
    try:
        for _ in range(2):  # a second call changes nothing
            slimsvm.patch_sklearn()
            for kind in estimators.FAMILY:
                assert getattr(sklearn.svm, kind.__name__) is kind
        assert sklearn.svm.LinearSVC.__module__.startswith("sklearn.")
        old = before["SVC"]().fit(IRIS, SPECIES)
        assert type(pickle.loads(pickle.dumps(old))) is before["SVC"]
        assert type(to_sklearn(SVC().fit(IRIS, SPECIES))) is before["SVC"]
        assert type(from_bytes(to_bytes(compress(old, 5))).estimator) is before["SVC"]
    finally:
        slimsvm.unpatch_sklearn()
    slimsvm.unpatch_sklearn()
    assert {name: getattr(sklearn.svm, name) for name in before} == before


def test_a_program_that_knows_nothing_of_it():
    program = """
        import slimsvm
        slimsvm.patch_sklearn()
        from sklearn import svm
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC, LinearSVC
        from sklearn.datasets import load_iris
        X, y = load_iris(return_X_y=True)
        model = make_pipeline(StandardScaler(), SVC(C=3)).fit(X, y)
        print(type(model[-1]).__module__.split(".")[0], svm.SVC is SVC, LinearSVC.__module__.split(".")[0])
        slimsvm.unpatch_sklearn()
        print(svm.SVC.__module__.split(".")[0], SVC is slimsvm.SVC)
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True, timeout=120
    )
    assert found.stdout.split() == ["slimsvm", "True", "sklearn", "sklearn", "True"]


# --- few rows and large costs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kernel", "C"), [("linear", 1e3), ("rbf", 1e5)])
def test_large_costs_keep_the_vectors_of_scikit_learn(kernel, C):
    """Interior points leave no row with a trifle."""
    X, y = make_classification(80, 4, random_state=0)
    ours, theirs = (kind.SVC(kernel=kernel, C=C).fit(X, y) for kind in (slimsvm, sklearn.svm))
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    assert ours.duality_gap_[0] <= ours.tol


def test_without_slack_what_cannot_be_told_apart_is_not_solved():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 2, 30)
    with pytest.warns(ConvergenceWarning):
        model = slimsvm.SVC(C=np.inf, kernel="linear").fit(X, y)
    assert model.fit_status_ == 1


def test_rows_that_are_not_in_memory_are_refused_in_words():
    source = slimsvm.rows.from_blocks([(np.eye(4), np.array([0, 1, 0, 1]))])
    for kind in (slimsvm.SVC, slimsvm.SVR, slimsvm.OneClassSVM):
        with pytest.raises(TypeError, match="needs all rows in memory"):
            kind().fit(source)
