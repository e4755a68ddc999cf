"""Products and factors of the core against numpy's, in longer numbers where these have them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

from slimsvm import _core
from slimsvm.linalg import matrix

SHAPES = [
    (1, 5000, 1),
    (5000, 3, 1),
    (1, 70, 900),
    (300, 40, 3),
    (40, 300, 7),
    (129, 257, 65),
    (33, 2100, 33),
    (6, 6, 6),
]


def layouts(A):
    """The same numbers in several ways to lie in memory."""
    wide = np.zeros((2 * A.shape[0], 3 * A.shape[1]), dtype=A.dtype)
    wide[::2, ::3] = A
    record = np.zeros(A.shape, dtype=[("flag", np.uint8), ("value", A.dtype)])
    record["value"] = A
    return {
        "rows": A,
        "columns": np.asfortranarray(A),
        "gaps": wide[::2, ::3],
        "backwards": A[::-1, ::-1].copy()[::-1, ::-1],
        "unaligned": record["value"],
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_of_any_layout(shape, dtype):
    rng = np.random.default_rng(0)
    rows, depth, columns = shape
    A, B = rng.standard_normal((rows, depth)).astype(dtype), rng.standard_normal((depth, columns)).astype(dtype)
    exact = A.astype(np.longdouble) @ B.astype(np.longdouble)
    allowed = np.finfo(dtype).eps * np.sqrt(depth) * 4 * (np.abs(A).astype(float) @ np.abs(B)) + 1e-30
    for left in layouts(A).values():
        for right in layouts(B).values():
            found = matrix.dot(left, right)
            assert found.dtype == dtype
            assert found.shape == (rows, columns)
            assert (np.abs(found - exact) <= allowed).all()
            assert np.array_equal(found, matrix.dot(left, right, threads=3))


def test_vectors_and_numbers_have_the_shapes_of_numpy():
    rng = np.random.default_rng(1)
    A, x, y = rng.standard_normal((120, 80)), rng.standard_normal(80), rng.standard_normal(120)
    np.testing.assert_allclose(matrix.dot(A, x), A @ x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(matrix.dot(y, A), y @ A, rtol=1e-12, atol=1e-12)
    long = rng.standard_normal(30_000)
    assert np.ndim(matrix.dot(long, long)) == 0
    np.testing.assert_allclose(matrix.dot(long, long), long @ long)
    np.testing.assert_allclose(matrix.norm(long), np.linalg.norm(long))
    with pytest.raises(ValueError, match="mismatch"):
        matrix.dot(A, y)


def test_a_matrix_times_its_transpose_is_symmetric_to_the_last_bit():
    P = np.random.default_rng(2).standard_normal((700, 90)).astype(np.float32)
    for one in (P, P.T):
        gram = matrix.dot(one.T, one)
        assert np.array_equal(gram, gram.T)
        assert np.array_equal(gram, matrix.dot(one.T, one.copy()))


def test_types_that_the_core_does_not_have_go_to_those_who_do():
    rng = np.random.default_rng(3)
    A = rng.integers(0, 9, (60, 80))
    B = rng.standard_normal((80, 40))
    np.testing.assert_array_equal(matrix.dot(A, A.T), A @ A.T)
    np.testing.assert_allclose(matrix.dot(A, B), A @ B)
    np.testing.assert_allclose(
        matrix.dot(B.T.astype(np.float32), A.T.astype(np.float64)), B.T @ A.T, rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(matrix.dot(sp.csr_array(A.astype(float)), B), A @ B)
    assert matrix.dot(A.astype(object), A.T.astype(object)).dtype == object


def test_infinities_and_nans_reach_those_numbers_that_they_are_part_of():
    A, B = np.ones((64, 130)), np.ones((130, 3))
    A[3, 129], A[5, 0] = np.inf, np.nan
    found = matrix.dot(A, B)
    assert np.isposinf(found[3]).all()
    assert np.isnan(found[5]).all()
    assert np.isfinite(np.delete(found, (3, 5), axis=0)).all()


@pytest.mark.parametrize("size", [1, 7, 100, 161, 300])
def test_factors_give_their_matrix_again(size):
    rng = np.random.default_rng(size)
    A = rng.standard_normal((size, size))
    S = A @ A.T + np.eye(size)
    L = matrix.cholesky(np.tril(S))
    unit = np.finfo(float).eps * (size + 10)
    assert np.array_equal(L, np.tril(L))
    assert np.array_equal(L, matrix.cholesky(S, threads=2))
    assert np.abs(L @ L.T - S).max() <= unit * S.diagonal().max()
    inverse = matrix.inverse_lower(L)
    assert np.array_equal(inverse, np.tril(inverse))
    assert (np.abs(L @ inverse - np.eye(size)) <= unit * (np.abs(L) @ np.abs(inverse))).all()
    for b in (rng.standard_normal(size), rng.standard_normal((size, 5)), rng.standard_normal((size, 90))):
        for x, M in (
            (matrix.cho_solve(L, b), L @ L.T),
            (matrix.solve_lower(L, b), L),
            (matrix.solve_lower(L, b, transposed=True), L.T),
            (matrix.solve_upper(L.T, b), L.T),
            (matrix.solve(A, b), A),
        ):
            assert x.shape == b.shape
            residual = np.abs(M @ x - b)
            assert residual.max() <= 100 * unit * (np.abs(M) @ np.abs(x)).max()


def test_matrices_without_a_factor_are_named():
    with pytest.raises(matrix.NotPositiveDefinite, match="not positive definite"):
        matrix.cholesky(np.diag([1.0, -1.0]))
    with pytest.raises(matrix.NotPositiveDefinite):
        matrix.cholesky(np.diag(np.append(np.ones(250), 0.0)))
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        matrix.solve(np.zeros((3, 3)), np.ones(3))


@pytest.mark.parametrize("shape", [(1, 1), (40, 7), (300, 90), (33, 70)])
def test_orthogonal_factors(shape):
    """Also of columns that depend on each other, and of rows of very different sizes."""
    rng = np.random.default_rng(0)
    for A in (
        rng.standard_normal(shape),
        np.outer(rng.standard_normal(shape[0]), rng.standard_normal(shape[1])),
        rng.standard_normal(shape) * np.geomspace(1e-150, 1e150, shape[0])[:, None],
        np.zeros(shape),
    ):
        Q, R = matrix.qr(A)
        size = min(shape)
        assert Q.shape == (shape[0], size)
        assert R.shape == (size, shape[1])
        assert np.array_equal(R, np.triu(R))
        unit = 30 * np.finfo(float).eps * np.sqrt(max(shape))
        assert np.abs(Q.T @ Q - np.eye(size)).max() <= unit
        assert np.abs(Q @ R - A).max() <= unit * np.abs(A).max()
        for found, other in zip((Q, R), matrix.qr(A, threads=2), strict=True):
            assert np.array_equal(found, other)


def test_a_pivoted_factor_ends_where_nothing_is_left():
    H = np.random.default_rng(0).standard_normal((60, 5))
    G, pivots = matrix.pivoted_cholesky(H @ H.T, 1e-10)
    assert len(pivots) == len(np.unique(pivots)) == 5
    np.testing.assert_allclose(G.T @ G, H @ H.T, atol=1e-10)
    assert np.array_equal(G[:, pivots], np.triu(G[:, pivots]))


def test_many_small_systems():
    rng = np.random.default_rng(0)
    for size in (3, matrix.MAX_LAPACK_UNKNOWNS + 1):
        A, b = rng.standard_normal((4, size, size)), rng.standard_normal((4, size))
        x, logarithms = matrix.solve_batch(A, b)
        np.testing.assert_allclose(np.einsum("kij,kj->ki", A, x), b, atol=1e-8)
        np.testing.assert_allclose(logarithms, np.linalg.slogdet(A)[1])


def test_nothing_has_factors_and_solutions():
    none = np.empty((0, 0))
    for found in (matrix.cholesky(none), matrix.inverse_lower(none), matrix.cho_solve(none, np.empty((0, 3)))):
        assert found.size == 0
    assert matrix.solve(none, np.empty(0)).shape == (0,)
    assert matrix.dot(np.empty((0, 5)), np.ones((5, 3))).shape == (0, 3)


def test_definite_or_not():
    assert matrix.is_positive_definite(np.eye(3))
    assert not matrix.is_positive_definite(np.diag([1.0, -1e-3]))
    assert matrix.is_positive_definite(np.diag([1.0, -1e-3]), lift=2e-3)


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (40, 7), (300, 60)])
@pytest.mark.parametrize("size", [1.0, 1e-200, 1e200])
def test_triangles_with_columns_exchanged(shape, size):
    A = size * np.random.default_rng(0).standard_normal(shape) * 10.0 ** np.arange(-shape[1], 0)
    R, order = matrix.pivoted_qr_triangle(A)
    expected, theirs = scipy.linalg.qr(A, mode="r", pivoting=True)[:2]
    assert sorted(order) == list(range(shape[1]))
    np.testing.assert_array_equal(order, theirs)
    np.testing.assert_allclose(np.abs(R), np.abs(expected[: shape[1]]), rtol=1e-9, atol=1e-12 * np.abs(expected).max())
    assert not np.tril(R, -1).any()


def test_long_sums_of_float32_keep_their_digits():
    """As sums of sums do: one running sum would be wrong by a part in a thousand."""
    rng = np.random.default_rng(0)
    X, W = (rng.random((2_000_000, 2), dtype=np.float32) for _ in range(2))
    expected = X.astype(np.float64).T @ W.astype(np.float64)
    for left, right in ((X.T, W), (np.asfortranarray(X).T, W), (X.T, W[:, 0])):
        exact = expected if right.ndim == 2 else expected[:, 0]
        np.testing.assert_allclose(matrix.dot(left, right), exact, rtol=2e-5)


def test_misuse_of_lbfgs_is_an_error():
    with pytest.raises(ValueError, match="one step at least"):
        _core.Lbfgs(np.ones(3), 0, None, None, 1e-9, 1e-9)
    with pytest.raises(RuntimeError, match="no value is known yet"):
        _core.Lbfgs(np.ones(3), 5, None, None, 1e-9, 1e-9).advance()
