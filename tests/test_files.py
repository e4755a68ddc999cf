"""Models in files: what comes back is what was saved."""

from __future__ import annotations

import pickle
from collections import UserList

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

import kernel_table
import slimsvm
from kept_files import answers, slim
from problems import NORMS, blobs, fitted_to, three_classes
from slimsvm import (
    AnyNormSVC,
    BudgetSVC,
    CompressedClassifier,
    EmpiricalSVC,
    LpSVC,
    ReducedSVC,
    RelevanceVectorClassifier,
    SlimSVC,
    bases,
    compress,
    estimators,
    kernels,
    losses,
    regularizers,
    slacks,
)
from slimsvm.persistence import from_bytes, to_bytes

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of fits, which end early here

X, Y = blobs(60)
X3, Y3 = three_classes(60)


def again(model):
    """Saved and loaded."""
    return from_bytes(to_bytes(model))


def same(a, b):
    """The very same values and types, all the way down."""
    a, b = (list(one.data) if isinstance(one, UserList) else one for one in (a, b))  # scikit-learn below 1.9
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype == object:
            return all(map(same, a.ravel().tolist(), b.ravel().tolist()))
        return a.tobytes() == b.tobytes()
    if sp.issparse(a):
        return a.shape == b.shape and all(same(getattr(a, k), getattr(b, k)) for k in ("data", "indices", "indptr"))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if hasattr(a, "__dict__") and not isinstance(a, type):
        mine, theirs = vars(a), vars(b)
        return mine.keys() == theirs.keys() and all(same(mine[key], theirs[key]) for key in mine)
    return a is b or a == b or (a != a and b != b)


def check(model, rows):
    """A model comes back with all that it has, and says the same of rows, to the last bit."""
    loaded = again(model)
    assert type(loaded) is type(model)
    assert same(model, loaded)
    for method, values in answers(model, rows).items():
        assert same(getattr(loaded, method)(rows), values), method
    assert to_bytes(loaded) == to_bytes(model)
    assert same(clone(loaded), clone(model))


# --- every estimator -------------------------------------------------------------------------------------------------

QUICK = {
    SlimSVC: {"n_vectors": 4, "basis": bases.Learned(iterations=3), "C": 1.0, "gamma": 0.4, "scales": "fixed"},
    ReducedSVC: {"n_vectors": 8},
    EmpiricalSVC: {"eta": 0.2},
    AnyNormSVC: {},
}


def quick(kind, **params):
    return kind(**{**QUICK.get(kind, {}), **params})


@pytest.mark.parametrize("kind", [*estimators.ALL, *estimators.COMPRESSED, *estimators.DETECTORS])
def test_not_fitted(kind):
    model = kind()
    assert same(again(model), model)


@pytest.mark.parametrize("kind", estimators.ALL)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_array, sp.csr_matrix])
def test_every_classifier(kind, dtype, container):
    rows = container(X.astype(dtype))
    check(quick(kind).fit(rows, Y), rows)


@pytest.mark.parametrize("kind", estimators.ALL)
def test_several_classes_and_probabilities(kind):
    params = {"probability": True} if "probability" in kind().get_params() else {}
    check(quick(kind, **params).fit(X3, Y3), X3)


KERNELS = {
    **{name: name for name in kernel_table.names()},
    "poly": kernels.Polynomial(0.5, 1.0, 2),
    "sigmoid": kernels.Sigmoid(0.1, 0.2),
    "scaled": kernels.Scaled(kernels.Gaussian(0.5), np.array([1.0, 0.5, 2.0, 0.0])),
    "one scale": kernels.Scaled(kernels.Scaled(kernels.Laplacian(0.5), 2.0), [1.0, 0.5, 2.0, 0.0]),
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind", [AnyNormSVC, RelevanceVectorClassifier])
def test_every_kernel(kernel, kind):
    check(kind(kernel=KERNELS[kernel]).fit(X, Y), X)


@pytest.mark.parametrize("kind", estimators.ALL)
def test_precomputed_kernel(kind):
    params = {"basis": "random"} if kind is SlimSVC else {}
    K = np.exp(-0.4 * ((X[:, None] - X) ** 2).sum(axis=2))
    check(quick(kind, **params, kernel="precomputed").fit(K, Y), K)


@pytest.mark.parametrize("slack", NORMS, ids=str)
def test_every_slack(slack):
    check(AnyNormSVC(fitted_to(slack, 60), "equality", gamma=0.3).fit(X, Y), X)


VARIANTS = {
    "auto": SlimSVC("auto", bases.Learned(iterations=3), C=1.0, gamma=0.4, scales="fixed"),
    "search": SlimSVC(3, bases.Learned(iterations=2)),
    "bytes": SlimSVC(max_bytes=300, basis=bases.Learned(iterations=3), C=1.0, gamma=0.4),
    "scales": slim(scales="learned", probability=True, class_weight={-1.0: 1.0, 1.0: 2.5}),
    "given": SlimSVC(basis=X[:3], C=1.0, gamma=0.4),
    "given sparse": SlimSVC(basis=bases.Given(sp.csr_array(X[:3])), C=1.0, gamma=0.4),
    "learned from given": SlimSVC(3, bases.Learned(init=X[:3], iterations=2), C=1.0, gamma=0.4, scales="fixed"),
    "learned from basis": SlimSVC(
        3, bases.Learned(init=bases.Forward(), iterations=2), C=1.0, gamma=0.4, scales="fixed"
    ),
    "loss": ReducedSVC(6, slack=losses.HuberHinge(0.3), regularizer=regularizers.KernelNorm(1e-3)),
    "reweighted": ReducedSVC(9, regularizer=regularizers.ReweightedNorm(0.5, 0.1, regularizers.Identity())),
    "inputs": EmpiricalSVC(selection="inputs", kernel="linear"),
    "budget select": BudgetSVC(8, hard="select"),
    "budget learn": BudgetSVC(8, hard="learn"),
    "budget l2": BudgetSVC(8.5, norm="l2"),
    "lp 1": LpSVC(p=1.0),
    "lp infinity": LpSVC(p=np.inf),
    "lp half": LpSVC(p=0.5, C_alpha=np.float32(0.1)),
    "numpy numbers": AnyNormSVC(slacks.TopSum(np.int64(9)), C=np.float64(2.0), gamma=np.float32(0.5)),
    "threads": AnyNormSVC(n_jobs=-1, verbose=0),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_way_to_fit(name):
    check(clone(VARIANTS[name]).fit(X, Y), X)


def test_no_vector_left():
    model = LpSVC(C_alpha=1e6).fit(X, Y)
    assert model.n_vectors_ == 0
    check(model, X)


def test_many_coefficients_that_are_mostly_zero():
    """They are kept in sparse form, and come back as they were."""
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(400, 2)), np.arange(400) % 20
    model = AnyNormSVC(gamma=2.0).fit(rows, labels)
    assert model.vector_coef_.size >= 10_000
    check(model, rows)
    assert len(to_bytes(model)) < model.vector_coef_.nbytes / 2


# --- compressed models -----------------------------------------------------------------------------------------------

ORIGINALS = {
    "two classes": (SVC(), X, Y),
    "several classes": (NuSVC(nu=0.2, break_ties=True), X3, Y3),
    "pairs": (SVC(decision_function_shape="ovo"), X3, Y3),
    "ours": (AnyNormSVC(multi_class="ovr"), X3, Y3),
    "regression": (SVR(), X, X[:, 0]),
    "one class": (OneClassSVM(), X, None),
}


@pytest.mark.parametrize("name", ORIGINALS)
def test_compressed(name):
    original, rows, labels = ORIGINALS[name]
    check(compress(clone(original).fit(rows, labels), 4, rows), rows)


def test_compressed_with_probabilities_and_twice():
    small = compress(SVC().fit(X3, Y3), 8, X3, Y3, probability=True)
    check(small, X3)
    check(compress(again(small), 4), X3)


def test_the_original_in_a_compressed_model_is_kept_by_its_parameters():
    """That is all that a later fit uses; a fitted one may be large."""
    small = CompressedClassifier(SVC(C=3.0, class_weight={-1: 1, 1: 2}).fit(X, Y), 4).fit(X, Y)
    loaded = again(small)
    assert loaded.estimator.get_params() == small.estimator.get_params()
    assert not hasattr(loaded.estimator, "support_vectors_")
    assert same(clone(loaded).fit(X, Y).decision_function(X), small.decision_function(X))


# --- what can be done with a loaded model ----------------------------------------------------------------------------


def test_a_loaded_model_is_a_model():
    model = AnyNormSVC(gamma=0.3).fit(X, Y)
    loaded = again(model)
    assert same(compress(loaded, 4).decision_function(X), compress(model, 4).decision_function(X))
    assert loaded.model_bytes_ == model.model_bytes_
    assert same(slimsvm.export.quantize(loaded).predict(X), slimsvm.export.quantize(model).predict(X))
    assert same(pickle.loads(pickle.dumps(loaded)), model)
    loaded.set_params(C=5.0).fit(X3, Y3)
    assert same(loaded, AnyNormSVC(gamma=0.3, C=5.0).fit(X3, Y3))


def test_arrays_of_a_loaded_model_can_be_changed():
    loaded = again(AnyNormSVC().fit(X, Y))
    loaded.intercept_ += 1
    assert loaded.vectors_.flags.owndata
    assert loaded.vectors_.flags.writeable


# --- labels ----------------------------------------------------------------------------------------------------------

LABELS = {
    "str": np.array(["no", "yes"]),
    "long str": np.array(["a", "ein längeres Wort ☂"]),
    "object": np.array(["no", "yes"], dtype=object),
    "int8": np.array([-3, 4], dtype=np.int8),
    "uint64": np.array([1, 2**63 + 1], dtype=np.uint64),
    "bool": np.array([False, True]),
    "float32": np.array([0.0, 7.0], dtype=np.float32),
    "object int": np.array([10**30, 10**31], dtype=object),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_keep_their_type(name):
    model = AnyNormSVC().fit(X, LABELS[name][(Y > 0).astype(int)]) if name != "object int" else None
    if model is None:  # too large for numpy, but a mapping may have them
        model = AnyNormSVC(class_weight={10**30: 1.0, "x": 2, None: np.float32(3), (1, "a"): 4, True: 5, 2.5: 6})
        assert same(again(model), model)
    else:
        check(model, X)


def test_labels_of_pandas():
    pd = pytest.importorskip("pandas")
    for labels in (pd.Series(np.where(Y > 0, "yes", "no")), pd.Series(Y).astype(int).astype("category")):
        frame = pd.DataFrame(X, columns=list("abcd"))
        check(AnyNormSVC().fit(frame, labels), frame)


@pytest.mark.parametrize(
    "value",
    [
        np.array(["a", 1, None, 2.5, True, np.int8(3), np.str_("b")], dtype=object),
        np.array([[1, "a"], [None, 2.0]], dtype=object),
        np.array(3.0),
        np.zeros((0, 4)),
        np.arange(24.0).reshape(2, 3, 4)[:, ::2],
        np.arange(6.0).reshape(2, 3).T,
        np.array([], dtype=object),
        [float("nan"), float("inf"), -float("inf"), -0.0, 5e-324, 10**90, -(10**90)],
        {1: "a", "1": "b", (1, 2): [3], None: {}, 2.5: (), np.int64(7): slice(None, "z", 2)},
        np.array([1.5, np.nan, np.inf], dtype=np.float16),
        [np.float32("nan"), np.bool_(True), np.uint8(255), np.str_("x")],
        [float, np.float64, np.number, np.dtype("f4"), np.dtype(object), np.dtype("U5")],
        "\ud800 a lone surrogate",
        sp.csr_matrix(np.eye(3, dtype=np.int8)),
    ],
    ids=repr,
)
def test_values(value):
    """Whatever a parameter may hold comes back with its type."""
    loaded = again(AnyNormSVC(class_weight=value)).class_weight
    expected = np.ascontiguousarray(value) if isinstance(value, np.ndarray) and not value.flags.forc else value
    assert same(loaded, expected)


def test_big_endian_and_memory_mapped_numbers(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, X)
    mapped = AnyNormSVC().fit(np.load(path, mmap_mode="r"), Y)
    assert same(again(mapped).decision_function(X), mapped.decision_function(X))
    loaded = again(AnyNormSVC(class_weight=np.array([1.0, 2.0], dtype=">f8"))).class_weight
    assert loaded.dtype.isnative
    assert loaded.tolist() == [1.0, 2.0]
