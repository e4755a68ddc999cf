"""Models as machines of scikit-learn: the same answers, from an object that other tools know."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

from slimsvm import (
    AnyNormSVC,
    CompressedClassifier,
    CompressedOutlierDetector,
    CompressedRegressor,
    LeastSquaresSVC,
    RelevanceVectorClassifier,
    SlimSVC,
    bases,
    compress,
    kernels,
    to_sklearn,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:learning ended at its limit:sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the kernel is not positive semidefinite"),
]


def quick(**params):
    params = {"C": 3.0, "gamma": 0.4, "scales": "fixed", **params}
    return SlimSVC(6, bases.Learned(iterations=10), **params)


def data(n_classes):
    if n_classes == 10:
        X, y = load_digits(return_X_y=True)
        return X[:400] / 16, y[:400]
    X, y = load_iris(return_X_y=True)
    return X, np.array(["a", "b", "c"])[y] if n_classes == 3 else y > 1


MODELS = {
    "slim": quick(),
    "slim with scales": quick(scales="learned"),
    "rbf": AnyNormSVC(),
    "linear": AnyNormSVC(kernel="linear"),
    "poly": AnyNormSVC(kernel="poly", coef0=1.0),
    "sigmoid": AnyNormSVC(kernel="sigmoid", gamma=0.01, coef0=-0.1),
    "scaled poly": AnyNormSVC(kernel=kernels.Scaled(kernels.Polynomial(0.5, 1.0, 2), 0.3)),
    "one scale": AnyNormSVC(kernel=kernels.Scaled(kernels.Gaussian(0.5), 0.7)),
    "scores of pairs": AnyNormSVC(decision_function_shape="ovo"),
    "least squares": LeastSquaresSVC(),
    "compressed": CompressedClassifier(SVC(), 8),
    "compressed, ties by value": CompressedClassifier(SVC(break_ties=True), 8),
    "compressed, scores of pairs": CompressedClassifier(SVC(decision_function_shape="ovo"), 8),
    "pipeline": make_pipeline(StandardScaler(), quick(scales="learned")),
}


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("name", MODELS)
def test_the_same_answers(name, n_classes):
    X, y = data(n_classes)
    model = clone(MODELS[name]).fit(X, y)
    made = to_sklearn(model)
    scores = model.decision_function(X)
    assert_array_equal(made.predict(X), model.predict(X))
    assert_allclose(made.decision_function(X), scores, rtol=0, atol=1e-12 * max(1, np.abs(scores).max()))
    assert_array_equal(made.classes_, model.classes_)
    svc = made[-1] if isinstance(made, Pipeline) else made
    assert type(svc) is SVC
    assert svc.n_support_.sum() == len(svc.support_vectors_) == svc.dual_coef_.shape[1]
    assert svc.dual_coef_.shape[0] == n_classes - 1


ONE_AGAINST_THE_OTHERS = [
    (AnyNormSVC(multi_class="ovr"), 3),
    (AnyNormSVC(multi_class="ovr"), 10),
    (RelevanceVectorClassifier(gamma=0.1), 3),
]


@pytest.mark.parametrize(("model", "n_classes"), ONE_AGAINST_THE_OTHERS)
def test_a_value_for_each_class(model, n_classes):
    """Pairs of differences have the same winner."""
    X, y = data(n_classes)
    model = clone(model).fit(X, y)
    made = to_sklearn(model)
    assert_array_equal(made.predict(X), model.predict(X))
    f = model.decision_function(X) if isinstance(model, RelevanceVectorClassifier) else model._scores(X)
    differences = made.set_params(decision_function_shape="ovo", break_ties=False).decision_function(X)
    first, second = np.triu_indices(n_classes, 1)
    assert_allclose(differences, f[:, first] - f[:, second], rtol=0, atol=1e-12 * np.abs(f).max())


def test_rows_of_one_class_are_there_once():
    X, y = data(3)
    model = AnyNormSVC().fit(X, y)
    made = to_sklearn(model)
    assert len(made.support_vectors_) == model.n_vectors_
    small = quick().fit(X, y)
    assert len(to_sklearn(small).support_vectors_) <= 2 * small.n_vectors_


def test_what_a_machine_of_scikit_learn_has():
    """The same attributes, so that tools that read them find what they need; and it is a whole object."""
    X, y = data(3)
    made = to_sklearn(AnyNormSVC(C=2.0).fit(X, y))
    real = SVC(C=2.0).fit(X, y)
    assert set(vars(made)) == set(vars(real))
    assert made.C == 2.0
    assert made._gamma == pytest.approx(real._gamma)
    assert_allclose(made.decision_function(X), real.decision_function(X), atol=0.01)
    again = pickle.loads(pickle.dumps(made))
    assert_array_equal(again.decision_function(X), made.decision_function(X))
    assert clone(made).fit(X, y).score(X, y) > 0.9
    linear = AnyNormSVC(kernel="linear").fit(X, data(2)[1])
    assert_allclose(to_sklearn(linear).coef_, linear.vector_coef_ @ linear.vectors_)


def test_it_can_be_compressed_like_any_svc():
    X, y = data(3)
    model = quick().fit(X, y)
    again = compress(to_sklearn(model), 100)
    assert_array_equal(again.predict(X), model.predict(X))


def test_inputs_that_do_not_count():
    X, y = data(2)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = AnyNormSVC(kernel=kernels.Scaled(kernels.Gaussian(0.3), [1.0, 0.5, 0.0, 2.0])).fit(frame, y)
    made = to_sklearn(model)
    assert list(made.feature_names_in_) == list(frame.columns)
    assert_allclose(made.decision_function(frame), model.decision_function(frame), rtol=0, atol=1e-12)


def test_regressors_and_outlier_detectors():
    X, _ = data(3)
    regressor = CompressedRegressor(SVR(C=5.0), 10).fit(X, X[:, 0] + np.sin(X[:, 2]))
    made = to_sklearn(regressor)
    assert type(made) is SVR
    assert_allclose(made.predict(X), regressor.predict(X), rtol=0, atol=1e-12)
    detector = CompressedOutlierDetector(OneClassSVM(nu=0.2), 10).fit(X)
    made = to_sklearn(detector)
    assert type(made) is OneClassSVM
    assert_array_equal(made.predict(X), detector.predict(X))
    assert_allclose(made.decision_function(X), detector.decision_function(X), rtol=0, atol=1e-12)
    assert_allclose(made.score_samples(X), detector.score_samples(X), rtol=0, atol=1e-11)


def test_no_vectors():
    X, y = data(3)
    model = quick().fit(X, y)
    model.vectors_, model.vector_coef_ = model.vectors_[:0], model.vector_coef_[:, :0]
    assert_array_equal(to_sklearn(model).predict(X), model.predict(X))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_a_function_that_is_zero(n_classes, multi_class):
    """`SVC` counts the value 0 on the other side: the class stays what it is."""
    X, y = data(n_classes)
    model = AnyNormSVC(multi_class=multi_class).fit(X, y)
    model.vector_coef_, model.intercept_ = 0 * model.vector_coef_, 0 * model.intercept_
    assert_array_equal(to_sklearn(model).predict(X), model.predict(X))


def test_kernels_that_svc_has_not():
    X, y = data(2)
    with pytest.raises(ValueError, match=r"'laplacian'.*rbf.*to_onnx"):
        to_sklearn(AnyNormSVC(kernel="laplacian").fit(X, y))
    with pytest.raises(ValueError, match="not a fitted"):
        to_sklearn(AnyNormSVC())


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ["slim", "rbf", "linear", "poly", "sigmoid", "compressed"])
def test_m2cgen(name, n_classes):
    """It takes it for what it looks like, and gives the values of pairs."""
    m2cgen = pytest.importorskip("m2cgen")
    X, y = data(n_classes)
    made = to_sklearn(clone(MODELS[name]).fit(X, y))
    names = {}
    exec(m2cgen.export_to_python(made), names)
    values = np.array([names["score"](row) for row in X[::10].tolist()])
    pairs = made if n_classes == 2 else made.set_params(decision_function_shape="ovo", break_ties=False)
    assert_allclose(values, pairs.decision_function(X[::10]), rtol=0, atol=1e-10)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_skl2onnx_as_for_any_svc(n_classes):
    onnxruntime, skl2onnx = pytest.importorskip("onnxruntime"), pytest.importorskip("skl2onnx")
    X, y = data(n_classes)
    made = to_sklearn(quick(scales="learned").fit(X, y))
    found = skl2onnx.to_onnx(made, X[:1].astype(np.float32))
    session = onnxruntime.InferenceSession(found.SerializeToString())
    labels = session.run(None, {"X": X.astype(np.float32)})[0]
    assert_array_equal(labels, made.predict(X))
