"""Kernel objects: their matrices and diagonals are those of the textbook, dense or sparse, at every shape."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.svm import SVC

import reference
from problems import DATA_KINDS, blobs, cosine_plus_one
from slimsvm import AnyNormSVC, kernels

OBJECTS = {
    "linear": [kernels.Linear()],
    "rbf": [kernels.Gaussian(0.3), kernels.Gaussian(20.0)],
    "laplacian": [kernels.Laplacian(0.2)],
    "poly": [kernels.Polynomial(0.5, 1.0, degree) for degree in (0, 1, 2, 3, 7)],
    "sigmoid": [kernels.Sigmoid(0.1, -0.5), kernels.Sigmoid(50.0, 0.0)],
}
CORE_KERNELS = [(name, kernel) for name, objects in OBJECTS.items() for kernel in objects]
core_kernels = pytest.mark.parametrize(("name", "kernel"), CORE_KERNELS, ids=lambda x: x if isinstance(x, str) else "")


def expected_matrix(name, kernel, X, Z):
    return reference.kernel_matrix(name, X, Z, **kernel.get_params())


def assert_same(actual, expected):
    # Rounding of a sum of d products, and of the kernel's own function after it.
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-13 * max(1, np.abs(expected).max()))


def test_every_kernel_is_tested():
    tested = {type(kernel) for _, kernel in CORE_KERNELS} | {kernels.Precomputed, kernels.Function}
    assert tested == set(kernels.ALL)


@pytest.mark.parametrize("kind", DATA_KINDS)
@pytest.mark.parametrize("density", [1.0, 0.15])
@core_kernels
def test_matrix_and_diagonal(name, kernel, kind, density, tmp_path):
    X, Z = blobs(37, d=9, seed=1, density=density)[0], blobs(21, d=9, seed=2, density=density)[0]
    rows = DATA_KINDS[kind](X, tmp_path)
    assert_same(kernel(rows, Z), expected_matrix(name, kernel, X, Z))
    assert_same(kernel(Z, rows), expected_matrix(name, kernel, Z, X))
    assert_same(kernel.diagonal(rows), expected_matrix(name, kernel, X, X).diagonal())


@pytest.mark.parametrize("rows", [1, 2, 7, 33, 65, 129])
@pytest.mark.parametrize("columns", [1, 3, 16, 70])
@core_kernels
def test_shapes_that_fill_no_tile(name, kernel, rows, columns):
    X, Z = (
        blobs(rows + 2, d=max(2, columns), seed=3)[0][2:, :columns],
        blobs(40, d=max(2, columns))[0][:, :columns],
    )
    expected = expected_matrix(name, kernel, X, Z)
    assert_same(kernel(X, Z), expected)
    assert_same(kernel(sp.csr_array(X), sp.csr_array(Z)), expected)


@core_kernels
def test_wide_sparse_rows(name, kernel):
    """Text has far more columns than are ever filled: the core keeps only those in use."""
    rng = np.random.default_rng(0)
    X, Z = (sp.random(n, 5000, density=0.002, format="csr", rng=rng) for n in (70, 45))
    X[3] *= 0  # an empty row
    assert_same(kernel(X, Z), expected_matrix(name, kernel, X, Z))


@core_kernels
def test_symmetric_with_itself(name, kernel):
    X = blobs(50, d=5, seed=4)[0]
    K = kernel(X, X)
    assert_same(K, K.T)
    assert_same(K.diagonal(), kernel.diagonal(X))


def test_far_points_underflow_to_zero():
    X = np.array([[0.0], [1e3], [1e200]])
    for kernel in (kernels.Gaussian(1.0), kernels.Laplacian(1.0)):
        K = kernel(X[:2], X[:2])
        np.testing.assert_array_equal(K, np.eye(2))
    np.testing.assert_array_equal(kernels.Laplacian(1.0)(X, X), np.eye(3))
    np.testing.assert_array_equal(kernels.Sigmoid(1e6, 0.0)([[1.0]], [[1.0], [-1.0]]), [[1.0, -1.0]])


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("gamma", ["scale", "auto", 0.7])
def test_gamma_means_what_it_means_in_scikit_learn(gamma, sparse):
    X, y = blobs(60, d=5, density=0.5)
    rows = sp.csr_array(X) if sparse else X
    theirs = SVC(gamma=gamma).fit(rows, y)._gamma
    assert AnyNormSVC(gamma=gamma).fit(rows, y).kernel_.gamma == pytest.approx(theirs, rel=1e-12)


def test_function_and_precomputed():
    X, Z = blobs(150, d=3)[0], blobs(20, d=3, seed=1)[0]
    function = kernels.Function(cosine_plus_one)
    assert_same(function(X, Z), cosine_plus_one(X, Z))
    assert_same(function.diagonal(X), cosine_plus_one(X, X).diagonal())
    K = cosine_plus_one(X, X)
    np.testing.assert_array_equal(kernels.Precomputed()(K, np.array([4, 2])), K[:, [4, 2]])
    np.testing.assert_array_equal(kernels.Precomputed().diagonal(K), K.diagonal())


@core_kernels
def test_object_is_the_same_as_its_name(name, kernel):
    X, y = blobs(40)
    if name == "sigmoid":
        X = X / 10  # close to linear: no saturation
    by_name = AnyNormSVC(kernel=name, **kernel.get_params()).fit(X, y)
    by_object = AnyNormSVC(kernel=kernel).fit(X, y)
    np.testing.assert_array_equal(by_name.decision_function(X), by_object.decision_function(X))


def test_precomputed_object_is_the_same_as_its_name():
    X, y = blobs(40)
    K = kernels.Gaussian(0.3)(X, X)
    by_name = AnyNormSVC(kernel="precomputed").fit(K, y)
    by_object = AnyNormSVC(kernel=kernels.Precomputed()).fit(K, y)
    np.testing.assert_array_equal(by_name.vectors_, by_object.vectors_)
    np.testing.assert_array_equal(by_name.decision_function(K[:7]), by_object.decision_function(K[:7]))


@pytest.mark.parametrize("part", [kernel for _, kernel in CORE_KERNELS] + [kernels.Precomputed()], ids=repr)
def test_parts_are_cloned_by_value(part):
    copy = clone(part)
    assert copy is not part
    assert copy == part
    with pytest.raises(ValueError, match="no parameter 'width'"):
        copy.set_params(width=1)


def test_changing_a_parameter_does_not_change_a_fitted_model():
    """set_params prepares the next fit; the model in hand keeps the kernel it was fitted with."""
    X, y = blobs(40)
    model = AnyNormSVC(kernel=kernels.Gaussian(0.3)).fit(X, y)
    before = model.decision_function(X)
    model.set_params(kernel__gamma=5.0)
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_setting_a_parameter_does_not_reach_other_estimators():
    shared = kernels.Gaussian(0.3)
    first, second = AnyNormSVC(kernel=shared), AnyNormSVC(kernel=shared)
    clone(first).set_params(kernel__gamma=5.0)
    assert second.kernel.gamma == 0.3
