"""One row at a time: a Predictor answers as its model does, and a model's few rows are those of the formula."""

from __future__ import annotations

import array
import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_regression
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import kernel_table
from problems import blobs
from slimsvm import AnyNormSVC, LpSVC, Predictor, RelevanceVectorClassifier, SlimSVC, compress, kernels
from slimsvm.model.voting import Votes

FLOATS = (np.float64, np.float32)
OWN = {
    **kernel_table.examples(),
    "poly": kernels.Polynomial(0.3, 1.0, 3),
    "sigmoid": kernels.Sigmoid(0.1, 0.2),
    "scaled": kernels.Scaled(kernels.Gaussian(0.3), np.array([1.0, 0.3, 2.0, 0.7])),
    "one scale": kernels.Scaled(kernels.Laplacian(0.3), 0.7),
    "scaled twice": kernels.Scaled(kernels.Scaled(kernels.Polynomial(0.2, 1.0), [0.3, 1, 1, 0.1]), [0.7, 0.3, 1, 2]),
    "function": kernels.Function(lambda X, Z: np.exp(-0.2 * ((X[:, None] - Z[None]) ** 2).sum(axis=2))),
    "scaled function": kernels.Scaled(kernels.Function(lambda X, Z: (1 + X @ Z.T) ** 2), [0.7, 0.3, 1, 2]),
}
SEVERAL = {
    "pairs": AnyNormSVC(gamma=0.3),
    "scores of pairs": AnyNormSVC(gamma=0.3, decision_function_shape="ovo"),
    "one against the others": AnyNormSVC(gamma=0.3, multi_class="ovr"),
    "learned scales": SlimSVC(6, C=1.0, gamma=0.3),
    "probabilities": SlimSVC(6, C=1.0, gamma=0.3, probability=True),
    "relevance": RelevanceVectorClassifier(gamma=0.3),
    "lp": LpSVC(C=1.0, gamma=0.3),
}


def data(classes=3):
    X, y = load_iris(return_X_y=True)
    keep = y < classes
    return X[keep] - X.mean(axis=0), np.array(["setosa", "versicolor", "virginica"])[y[keep]]


def agrees(model, X, exactly=True):
    """One row at a time, and all at once, in both precisions."""
    fast = Predictor(model)
    same = np.testing.assert_array_equal if exactly else close
    for dtype in FLOATS:
        rows = X.astype(dtype)
        for name in ("predict", "decision_function", "predict_proba"):
            if not hasattr(model, name):
                continue
            theirs, ours = getattr(model, name), getattr(fast, name)
            same(ours(rows), theirs(rows))
            for row in rows[::7]:
                expected = theirs(row[None])[0]
                same(ours(row), expected)
                assert np.shape(ours(row)) == np.shape(expected)


def close(ours, theirs):
    if np.asarray(theirs).dtype.kind == "f":
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-4)  # of float32, scalers included
    else:
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("kernel", OWN)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.filterwarnings("ignore:the kernel is not positive semidefinite")
def test_every_kernel(kernel, dtype):
    X, y = data(classes=2)
    X = X.astype(dtype) * [1, 2, 1, 0.5]
    clf = AnyNormSVC(C=2.0, kernel=OWN[kernel]).fit(X.astype(dtype), y)
    agrees(clf, X, exactly="function" not in kernel)


@pytest.mark.parametrize("kernel", OWN)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("inputs", [1, 2, 3, 7, 8, 17, 40, 1500])
def test_one_row_is_the_formula(kernel, dtype, inputs):
    """Of any width and number of vectors, in double whatever the types."""
    rng = np.random.default_rng(inputs)
    given = OWN[kernel]
    if isinstance(given, kernels.Scaled):
        given = kernels.Scaled(kernels.Gaussian(0.3), rng.uniform(size=inputs))
    for count in (0, 1, 5, 8, 33):
        Z, x = rng.normal(size=(count, inputs)).astype(dtype), rng.normal(size=(1, inputs))
        Z, x = Z / np.sqrt(inputs), x / np.sqrt(inputs)
        coef, bias = rng.normal(size=(3, count)), rng.normal(size=3)
        values = given.decision(x, Z, coef, bias)
        expected = given(x, Z.astype(np.float64)) @ coef.T + bias
        # The scaled vectors are of the type of the vectors.
        tolerance = 1e-5 if dtype == np.float32 and isinstance(given, kernels.Scaled) else 1e-12
        np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_array], ids=["C", "F", "sparse"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_row_does_not_depend_on_few_others(container, dtype):
    X, y = data()
    clf = AnyNormSVC(gamma=0.3).fit(X, y)
    rows = X[:4].astype(dtype)
    alone = np.concatenate([clf.decision_function(row[None]) for row in rows])
    np.testing.assert_array_equal(clf.decision_function(container(rows)), alone)


@pytest.mark.parametrize("dtype", FLOATS)
def test_vectors_in_any_order(dtype):
    X, y = data()
    clf = AnyNormSVC(gamma=0.3).fit(X.astype(dtype), y)
    clf.vectors_ = np.asfortranarray(clf.vectors_)
    agrees(clf, X)


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.filterwarnings("ignore")
def test_every_kind_of_classifier(name, classes):
    X, y = data(classes)
    model = copy.deepcopy(SEVERAL[name])
    if classes == 2 and name == "scores of pairs":
        pytest.skip("two classes are one pair")
    agrees(model.fit(X, y), X)


@pytest.mark.parametrize("options", [{}, {"decision_function_shape": "ovo"}, {"break_ties": True}], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_compressed_classifiers(options, classes):
    X, y = data(classes)
    agrees(compress(SVC(gamma=0.3, **options).fit(X, y), 8), X)


def test_regressors_and_outlier_detectors():
    X, y = make_regression(80, 4, random_state=0)
    model = compress(SVR(C=100.0).fit(X, y), 8)
    agrees(model, X)
    with pytest.raises(AttributeError, match="predict"):
        Predictor(model).decision_function(X[0])
    assert Predictor(model).classes_ is None
    detector = compress(OneClassSVM(nu=0.2).fit(X), 8)
    agrees(detector, np.vstack([X, 5 * X]))
    assert Predictor(detector).classes_.tolist() == [-1, 1]


def test_precomputed_kernels():
    X, y = data()
    K = X @ X.T
    agrees(AnyNormSVC(kernel="precomputed").fit(K, y), K, exactly=False)


def test_vectors_that_are_sparse():
    X, y = data()
    X = np.where(X > 0, X, 0)
    agrees(AnyNormSVC(gamma=0.3).fit(sp.csr_array(X), y), X, exactly=False)


@pytest.mark.parametrize("model", [SlimSVC(6, C=1.0, gamma=0.3, probability=True), AnyNormSVC(kernel="poly")], ids=str)
def test_scalers_become_part_of_it(model):
    X, y = data()
    X = 100 + X * [1, 30, 1000, 0.01]
    agrees(make_pipeline(StandardScaler(), MinMaxScaler((-1, 1)), model).fit(X, y), X, exactly=False)


def test_a_model_without_vectors():
    clf = AnyNormSVC(gamma=0.3).fit(*data())
    clf.vectors_, clf.vector_coef_ = clf.vectors_[:0], clf.vector_coef_[:, :0]
    agrees(clf, data()[0])


@pytest.mark.parametrize("labels", [[0, 1], [-1.0, 1.0], ["no", "yes"], [False, True]], ids=str)
def test_labels_are_those_of_the_model(labels):
    X, y = blobs(40)
    clf = AnyNormSVC(gamma=0.3).fit(X, np.array(labels)[(y > 0).astype(int)])
    label = Predictor(clf).predict(X[0])
    assert type(label) is type(clf.predict(X[:1])[0])
    assert label == clf.predict(X[:1])[0]


HELD = {
    "list": list,
    "tuple": tuple,
    "array.array": lambda row: array.array("d", row),
    "memoryview": lambda row: memoryview(row.copy()),
    "every second number": lambda row: np.repeat(row, 2)[::2],
    "backwards": lambda row: row[::-1].copy()[::-1],
    "column": lambda row: np.asfortranarray(np.stack([row, row]))[0],
    "read-only": lambda row: np.frombuffer(row.tobytes()),
    "other byte order": lambda row: row.astype(">f8"),
    "unaligned": lambda row: np.frombuffer(b"x" + row.tobytes(), offset=1),
    "long double": lambda row: row.astype(np.longdouble),
}


@pytest.mark.parametrize("held", HELD)
def test_rows_however_they_are_held(held):
    X, y = data()
    clf = SlimSVC(6, C=1.0, gamma=0.3, probability=True).fit(X, y)
    fast = Predictor(clf)
    row = HELD[held](X[3])
    np.testing.assert_array_equal(fast.decision_function(row), clf.decision_function(X[3:4])[0])
    np.testing.assert_array_equal(fast.predict_proba(row), clf.predict_proba(X[3:4])[0])
    assert fast.predict(row) == clf.predict(X[3:4])[0]


def test_integers_and_half_floats_are_numbers():
    X, y = data()
    clf = AnyNormSVC(gamma=0.3).fit(X, y)
    row = np.array([1, 0, 1, 2])
    for kind in (np.int64, np.uint8, np.float16):
        expected = clf.decision_function(row[None].astype(kind))[0]
        np.testing.assert_array_equal(Predictor(clf).decision_function(row.astype(kind)), expected)
    assert Predictor(clf).predict(np.empty((0, 4))).shape == (0,)


@pytest.mark.parametrize("kernel", ["rbf", "scaled function"])
@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_rows_that_do_not_fit(kernel, method):
    X, y = data()
    call = getattr(Predictor(AnyNormSVC(kernel=OWN[kernel]).fit(X, y)), method)
    for wrong in (X[0, :3], np.zeros(5, np.float32), X[:, :2], 1.0, np.zeros((1, 1, 4)), []):
        with pytest.raises(ValueError, match="4 numbers"):
            call(wrong)
    for wrong in (["a", "b", "c", "d"], X[0].astype(object), X[0] + 1j):
        with pytest.raises(TypeError, match="float64 or float32"):
            call(wrong)
    with pytest.raises(TypeError, match="toarray"):
        call(sp.csr_array(X))


def test_numbers_are_not_checked():
    X, y = data()
    fast = Predictor(AnyNormSVC(gamma=0.3).fit(X, y))
    assert fast.predict(np.full(4, np.nan)) in fast.classes_


def test_models_that_cannot_be_taken():
    X, y = data()
    with pytest.raises(ValueError, match="call fit first"):
        Predictor(SlimSVC())
    with pytest.raises(ValueError, match="compress"):
        Predictor(SVC().fit(X, y))
    with pytest.raises(ValueError, match="not a fitted estimator of slimsvm"):
        Predictor(LogisticRegression().fit(X, y))
    fast = Predictor(AnyNormSVC().fit(X, y))
    assert not hasattr(fast, "predict_proba")
    with pytest.raises(AttributeError):
        fast.predict_proba(X[0])


@pytest.mark.parametrize("kernel", ["rbf", "scaled", "function"])
def test_it_needs_the_model_no_more(kernel):
    X, y = data()
    clf = AnyNormSVC(kernel=OWN[kernel]).fit(X, y)
    expected = clf.decision_function(X[:1])[0]
    fast = Predictor(clf)
    clf.vectors_ *= 0
    clf.vector_coef_ *= 0
    clf.intercept_ += 1
    clf.fit(X[:60], y[:60])
    del clf
    gc.collect()
    np.testing.assert_allclose(fast.decision_function(X[0]), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda fast: pickle.loads(pickle.dumps(fast))], ids=["copy", "pickle"]
)
@pytest.mark.parametrize("scaled", [False, True])
def test_copies_answer_the_same(copied, scaled):
    X, y = data()
    clf = SlimSVC(6, C=1.0, gamma=0.3, probability=True)
    fast = Predictor((make_pipeline(StandardScaler(), clf) if scaled else clf).fit(X, y))
    other = copied(fast)
    for name in ("predict", "decision_function", "predict_proba"):
        np.testing.assert_array_equal(getattr(other, name)(X[7]), getattr(fast, name)(X[7]))
        np.testing.assert_array_equal(getattr(other, name)(X), getattr(fast, name)(X))


def test_a_model_does_not_carry_it():
    """Neither predictions nor a Predictor leave anything behind in the estimator."""
    X, y = data()
    clf = SlimSVC(6, C=1.0, gamma=0.3).fit(X, y)
    before = pickle.dumps(clf)
    clf.predict(X[:1])
    Predictor(clf).predict(X[0])
    assert pickle.dumps(clf) == before


def test_threads_may_share_it():
    X, y = data()
    # Wide enough that the GIL is let go.
    wide = np.tile(X, 400)
    fast, large = (Predictor(AnyNormSVC(gamma=0.3 / len(Z.T)).fit(Z, y)) for Z in (X, wide))
    expected = [(fast.decision_function(a), large.decision_function(b)) for a, b in zip(X, wide, strict=True)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            found = list(pool.map(lambda a, b: (fast.decision_function(a), large.decision_function(b)), X, wide))
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("by_value", [True, False])
@pytest.mark.parametrize("zero_is_positive", [True, False])
def test_votes_and_ties(by_value, zero_is_positive):
    """Small integers, where sums are exact: scores and the exact count agree on every winner."""
    votes = Votes(pairs=True, by_value=by_value, zero_is_positive=zero_is_positive)
    for classes in (3, 4, 7):
        F = np.random.default_rng(classes).integers(-2, 3, size=(500, classes * (classes - 1) // 2))
        np.testing.assert_array_equal(votes.leaders(F.astype(float), classes), votes.winners(F, classes))


# --- what a model checks by itself: the same as scikit-learn ------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_models_still_check_their_rows(dtype, method):
    X, y = data()
    call = getattr(AnyNormSVC(gamma=0.3).fit(X, y), method)
    for bad, message in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        row = X[:1].astype(dtype)
        row[0, 2] = bad
        with pytest.raises(ValueError, match=message):
            call(row)
    for bad, message in ((X[:1, :3], "3 features"), (X[:0], "0 sample"), (X[0], "2D array")):
        with pytest.raises(ValueError, match=message):
            call(bad.astype(dtype))


def test_models_with_names_miss_them():
    pd = pytest.importorskip("pandas")
    X, y = data()
    clf = AnyNormSVC(gamma=0.3).fit(pd.DataFrame(X, columns=list("abcd")), y)
    with pytest.warns(UserWarning, match="valid feature names"):
        clf.predict(X[:1])
    assert Predictor(clf).predict(X[0]) == clf.predict(pd.DataFrame(X[:1], columns=list("abcd")))[0]
