"""What is used of scikit-learn that it does not promise, in the oldest and the newest version that are allowed."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from numpy.testing import assert_array_equal
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

import slimsvm
from slimsvm.utils import sklearn_private as private

SOURCES = Path(slimsvm.__file__).parent
X = np.random.default_rng(0).normal(size=(30, 3))
Y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
MACHINES = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)
ATTRIBUTES = {"_BaseLibSVM__Xfit", "_n_support", "_dual_coef_", "_intercept_", "_get_param_names", "_get_tags"}


def is_private(module: str) -> bool:
    parts = module.split(".")
    return parts[0] == "sklearn" and any(part.startswith("_") or part == "externals" for part in parts)


def private_names(path: Path) -> list[str]:
    """Of scikit-learn: what is imported, named in a string that is a path of modules, or set and read."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and not node.level:
            found += [
                f"{node.module}.{alias.name}" for alias in node.names if is_private(f"{node.module}.{alias.name}")
            ]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if is_private(alias.name)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(" ") == 0:
            found += [node.value] if is_private(node.value) else []
        elif isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
            found.append(node.attr)
    return found


def test_private_names_are_in_one_module():
    there = {str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py") if private_names(path)}
    assert there == {"utils/sklearn_private.py"}


# --- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", [np.asarray, sp.csr_array, np.ndarray.tolist], ids=["array", "sparse", "list"])
def test_rows(of):
    given, rows = of(X), np.array([4, 0, 7])
    found = private.some_rows(given, rows)
    assert_array_equal(found.toarray() if sp.issparse(found) else found, X[rows])
    assert private.count_rows(given) == 30


def test_rows_of_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abc"), index=range(100, 130))
    assert_array_equal(private.some_rows(frame, np.array([4, 0])), X[[4, 0]])
    assert private.count_rows(frame) == 30


def test_rows_and_columns_of_a_kernel_matrix():
    rows, train = np.array([1, 5]), np.array([0, 2, 4])
    K = X @ X.T
    found, labels = private.split_rows(SVC(kernel="precomputed"), K, Y, rows, train)
    assert_array_equal(found, K[np.ix_(rows, train)])
    assert_array_equal(labels, Y[rows])
    assert_array_equal(private.split_rows(SVC(), X, None, rows, train)[0], X[rows])


def test_weights_and_targets():
    weight = private.check_sample_weight([1] * 30, X, dtype=np.float64)
    assert weight.dtype == np.float64
    assert_array_equal(weight, 1.0)
    assert_array_equal(private.check_sample_weight(2.0, X, dtype=np.float64), np.full(30, 2.0))
    for bad in ([1.0] * 29, np.ones((30, 2)), [np.nan] * 30):
        with pytest.raises(ValueError):
            private.check_sample_weight(bad, X, dtype=np.float64)
    with pytest.raises(ValueError, match="NaN"):
        private.check_y(np.array([1.0, np.nan]), y_numeric=True)
    assert private.check_y(np.ones((3, 2)), multi_output=True, y_numeric=True).shape == (3, 2)
    assert private.check_y(np.array(["1", "2"], dtype=object), y_numeric=True).dtype == np.float64


# --- machines ---------------------------------------------------------------------------------------------------------


def fitted(kind, **params):
    return kind(**params).fit(X, X[:, 0] if "SVR" in kind.__name__ else Y)


@pytest.mark.parametrize("kind", MACHINES, ids=lambda kind: kind.__name__)
def test_machines(kind):
    """Their width, and coefficients that are set are those that predict."""
    assert private.svm_class(kind.__name__) is kind
    assert private.gamma_of(fitted(kind)) == pytest.approx(1 / (3 * X.var()))
    assert private.gamma_of(fitted(kind, gamma=0.3)) == 0.3
    assert_array_equal(private.training_rows(fitted(kind, kernel=lambda A, B: A @ B.T)), X)
    real, made = fitted(kind, gamma=0.3), kind(gamma=0.3).fit(X[::-1], X[:, 1] if "SVR" in kind.__name__ else Y[::-1])
    made.support_vectors_, made.support_, made.shape_fit_ = real.support_vectors_, real.support_, X.shape
    sizes = real.n_support_.tolist() if "SVC" in kind.__name__ else [len(real.support_)] * 2
    private.fill_libsvm(made, real.dual_coef_, real.intercept_, sizes, -1 if "SVC" in kind.__name__ else 1)
    name = "predict" if "SVR" in kind.__name__ else "decision_function"
    if kind is OneClassSVM:
        made.offset_ = real.offset_
    np.testing.assert_allclose(getattr(made, name)(X), getattr(real, name)(X), rtol=1e-12)


def test_classes_where_names_are_patched():
    slimsvm.patch_sklearn()
    try:
        assert sklearn.svm.SVC is slimsvm.SVC
        assert private.svm_class("SVC") is SVC
    finally:
        slimsvm.unpatch_sklearn()
