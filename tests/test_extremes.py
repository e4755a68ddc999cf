"""Data that reduced precision cannot hold, and memory laid out oddly: the answer is right, or said to be unsolved."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from slimsvm import AnyNormSVC, _core


def labelled(rng, n, d, noise=0.5):
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + noise * rng.normal(size=n) > 0, 1, -1)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "CSR"])
def test_offset_that_float32_cannot_hold(kernel, layout):
    """Noise of float32 rows must not pass for an indefinite kernel: the solver turns to float64."""
    X, y = labelled(np.random.default_rng(0), 1500, 40)
    shifted = layout(X + 1000)
    with_default = AnyNormSVC(kernel=kernel, gamma=0.02, tol=1e-3).fit(shifted, y)
    exact = AnyNormSVC(kernel=kernel, gamma=0.02, tol=1e-5, precision="float64").fit(X, y)
    assert with_default.duality_gap_[0] <= 1e-3
    assert with_default.objective_[0] == pytest.approx(exact.objective_[0], rel=2e-3)


@pytest.mark.parametrize("scale", [1e25, 1e-22], ids=str)
@pytest.mark.parametrize("d", [2, 40])
def test_units_beyond_float32(scale, d):
    """gamma="scale" makes the machine independent of the unit, also where squares overflow float32."""
    X, y = labelled(np.random.default_rng(1), 1000, d)
    plain, scaled = AnyNormSVC().fit(X, y), AnyNormSVC().fit(X * scale, y)
    assert scaled.duality_gap_[0] <= 1e-3
    assert scaled.objective_[0] == pytest.approx(plain.objective_[0], rel=2e-3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("n", "huge"), [(96, 1e160), (1000, 1e20)])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_overflow_inside_the_kernel_is_survived(n, huge, multi_class):
    """Kernel values that are infinite give no answer, but no crash either."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 30))
    X[rng.choice(n, 30, replace=False), np.arange(30)] = huge
    model = AnyNormSVC(kernel="linear", max_iter=3000, multi_class=multi_class, cache_size=0.143)
    model.fit(X, np.arange(n) % 3)
    assert model.vector_coef_.shape == (3, model.n_vectors_)


@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
def test_sparse_parts_need_not_be_contiguous(part):
    X, y = labelled(np.random.default_rng(2), 60, 5)
    plain = sp.csr_matrix(X)
    strided = sp.csr_matrix(X)
    values = getattr(plain, part)
    buffer = np.full(2 * len(values), 7, dtype=values.dtype)
    buffer[::2] = values
    setattr(strided, part, buffer[::2])
    model = AnyNormSVC().fit(plain, y)
    np.testing.assert_allclose(AnyNormSVC().fit(strided, y).intercept_, model.intercept_)
    np.testing.assert_allclose(model.decision_function(strided), model.decision_function(plain))


def test_field_of_a_record_array():
    X, y = labelled(np.random.default_rng(3), 80, 3)
    records = np.zeros(80, dtype=[("flag", "i1"), ("x", "f8", 3)])
    records["x"] = X
    model = AnyNormSVC().fit(records["x"], y)
    np.testing.assert_allclose(model.decision_function(records["x"]), model.decision_function(X))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("fit_dtype", ["float32", "float64"])
def test_one_row_at_a_time_in_float32_with_an_offset(order, fit_dtype):
    X, _ = labelled(np.random.default_rng(4), 300, 40)
    X = np.asarray(X + 1e4, dtype=fit_dtype, order=order)
    y = X[:, 0] > 1e4
    model = AnyNormSVC(gamma=1 / 40).fit(X, y)
    single = np.asarray(X, dtype=np.float32, order=order)
    one_by_one = np.concatenate([model.decision_function(single[i : i + 1]) for i in range(100)])
    np.testing.assert_allclose(one_by_one, model.decision_function(single)[:100], atol=1e-3)


def test_float32_predictions_are_exact_enough_whatever_the_scale():
    """A column of row numbers swamps the distances in float32: the prediction must not follow."""
    X, y = labelled(np.random.default_rng(5), 1500, 40)
    X[:, -1] = np.arange(1500) * 20
    model = AnyNormSVC(gamma=1 / 40).fit(X, y)
    single = X.astype(np.float32)
    np.testing.assert_allclose(
        model.decision_function(single), model.decision_function(single.astype(np.float64)), atol=2e-3
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_limit_on_steps_is_spent_on_the_problem_itself():
    X, y = labelled(np.random.default_rng(6), 5000, 20)
    model = AnyNormSVC(kernel="linear", C=0.1, max_iter=3000).fit(X, y)
    assert model.n_vectors_ > 100
    assert model.score(X, y) > 0.7


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n", [300, 5000])
def test_a_gap_is_an_upper_bound_even_of_a_fit_that_barely_began(n):
    X, y = labelled(np.random.default_rng(7), n, 20)
    best = AnyNormSVC(C=1).fit(X, y).objective_[0]
    for max_iter in (0, 1, 10, 100):
        model = AnyNormSVC(C=1, max_iter=max_iter).fit(X, y)
        assert model.objective_[0] <= best * (1 + model.duality_gap_[0]) * (1 + 1e-9)


@pytest.mark.parametrize("scale", [1e-8, 1e6])
@pytest.mark.parametrize("n", [400, 1200])
def test_the_unit_of_a_linear_kernel_does_not_matter(scale, n):
    """X s with C / s^2 is the same problem: steps and all."""
    X, y = labelled(np.random.default_rng(8), n, 5)
    plain = AnyNormSVC(kernel="linear").fit(X, y)
    scaled = AnyNormSVC(kernel="linear", C=1 / scale**2, max_iter=20 * plain.n_iter_[0]).fit(X * scale, y)
    assert scaled.duality_gap_[0] <= 1e-3
    assert scaled.objective_[0] * scale**2 == pytest.approx(plain.objective_[0], rel=2e-3)


@pytest.mark.filterwarnings("error")
def test_rounding_of_a_float32_matrix_is_not_indefiniteness():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(200, 64))
    X = np.vstack([X, X + 1e-5 * rng.normal(size=X.shape)]).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X[:, 0] + 0.05 * rng.normal(size=len(X)) > 0, 1, -1)
    model = AnyNormSVC(C=100, kernel="precomputed").fit(X @ X.T, y)
    assert model.duality_gap_[0] <= 1e-3


def misaligned(values):
    """The same numbers one byte further on."""
    buffer = np.empty(values.nbytes + 1, dtype=np.uint8)[1:]
    moved = buffer.view(values.dtype).reshape(values.shape)
    moved[...] = values
    assert not moved.flags.aligned
    return moved


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [60, 900])
def test_unaligned_rows(dtype, n):
    X, y = labelled(np.random.default_rng(10), n, 5)
    X = X.astype(dtype)
    plain, moved = AnyNormSVC().fit(X, y), AnyNormSVC().fit(misaligned(X), y)
    np.testing.assert_array_equal(plain.vector_coef_, moved.vector_coef_)
    for rows in (X, X[:1]):
        np.testing.assert_array_equal(plain.decision_function(rows), plain.decision_function(misaligned(rows)))
    K = (X @ X.T).astype(dtype)
    plain, moved = (AnyNormSVC(kernel="precomputed").fit(matrix, y) for matrix in (K, misaligned(K)))
    np.testing.assert_array_equal(plain.vector_coef_, moved.vector_coef_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
def test_unaligned_sparse_rows(part, dtype):
    X, y = labelled(np.random.default_rng(11), 60, 5)
    X[X < 0.5] = 0
    plain, moved = sp.csr_matrix(X.astype(dtype)), sp.csr_matrix(X.astype(dtype))
    setattr(moved, part, misaligned(getattr(moved, part)))
    expected = AnyNormSVC().fit(plain, y)
    np.testing.assert_array_equal(expected.vector_coef_, AnyNormSVC().fit(moved, y).vector_coef_)
    np.testing.assert_array_equal(expected.decision_function(plain), expected.decision_function(moved))


def test_the_core_refuses_unaligned_arrays():
    X = misaligned(np.ones((4, 3)))
    with pytest.raises(ValueError, match="aligned"):
        _core.dense_rows(X)
    with pytest.raises(ValueError, match="aligned"):
        _core.sparse_rows(X.ravel(), np.zeros(12, np.int32), np.array([0, 12], np.int32), 1)
    with pytest.raises(ValueError, match="aligned"):
        _core.KernelMatrix.of_matrix(X[:3], np.arange(3), [3], 1 << 20)
    rows = _core.dense_rows(np.ones((4, 3)))
    with pytest.raises(ValueError, match="aligned"):
        _core.kernel_matrix(_core.linear(), rows, rows, misaligned(np.empty((4, 4))))
