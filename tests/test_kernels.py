"""Kernel objects: their matrices and diagonals are those of the textbook, dense or sparse, at every shape."""

from __future__ import annotations

from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.svm import SVC

import kernel_table
import reference
from kernel_table import ENTRIES
from problems import DATA_KINDS, blobs, cosine_plus_one
from slimsvm import AnyNormSVC, kernels, to_c
from slimsvm.cli.options import TrainingOptions
from slimsvm.export import quantize

DOCS = Path(__file__).parents[1] / "docs"

CORE_KERNELS = [
    (name, entry.kernel(**params)) for name, entry in ENTRIES.items() for params in (entry.params, *entry.extremes)
]
RADIAL = {name: ENTRIES[name].kernel(gamma=0.7) for name in kernel_table.names(radial=True)}
radial_kernels = pytest.mark.parametrize("kernel", RADIAL.values(), ids=RADIAL)
SCALES = np.linspace(0.5, 2.0, 9)
core_kernels = pytest.mark.parametrize(("name", "kernel"), CORE_KERNELS, ids=lambda x: x if isinstance(x, str) else "")


def expected_matrix(name, kernel, X, Z):
    return reference.kernel_matrix(name, X, Z, **kernel.get_params())


def assert_same(actual, expected):
    # Rounding of a sum of d products, and of the kernel's own function after it.
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-13 * max(1, np.abs(expected).max()))


def test_every_kernel_is_tested():
    tested = {type(kernel) for _, kernel in CORE_KERNELS} | {kernels.Precomputed, kernels.Function, kernels.Scaled}
    assert tested == set(kernels.ALL)
    assert [kind.name for kind in kernels.NAMED] == list(ENTRIES)
    with pytest.raises(KeyError):
        reference.kernel_matrix("unknown", np.eye(2), np.eye(2))


@pytest.mark.grid(3)
@pytest.mark.parametrize("kind", DATA_KINDS)
@pytest.mark.parametrize("density", [1.0, 0.15])
@core_kernels
def test_matrix_and_diagonal(name, kernel, kind, density, tmp_path):
    X, Z = blobs(37, d=9, seed=1, density=density)[0], blobs(21, d=9, seed=2, density=density)[0]
    rows = DATA_KINDS[kind](X, tmp_path)
    assert_same(kernel(rows, Z), expected_matrix(name, kernel, X, Z))
    assert_same(kernel(Z, rows), expected_matrix(name, kernel, Z, X))
    assert_same(kernel.diagonal(rows), expected_matrix(name, kernel, X, X).diagonal())


@pytest.mark.grid(4)
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
    X, Z = (sp.random(n, 5000, density=0.002, format="csr", random_state=rng) for n in (70, 45))
    X[3] *= 0  # an empty row
    assert_same(kernel(X, Z), expected_matrix(name, kernel, X, Z))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@core_kernels
def test_derivatives(name, kernel, container):
    """Weighted sums of them, with kernel values or without; the same from the sums of a pass over the rows."""
    X, Z = blobs(37, d=9, seed=1)[0] / 2, blobs(21, d=9, seed=2)[0] / 2 + 1 / 32  # no coordinate is the same in both
    W = np.random.default_rng(0).normal(size=(37, 21))
    rows = container(X)
    expected = kernel_table.pullback(name, *(A.astype(np.longdouble) for A in (X, Z, W)), **kernel.get_params())
    close = {"rtol": 1e-10, "atol": 1e-11 * max(1, np.abs(expected).max())}
    np.testing.assert_allclose(kernel.pullback(rows, Z, W), expected.astype(float), **close)
    np.testing.assert_allclose(kernel.pullback(rows, Z, W, kernel(rows, Z)), expected.astype(float), **close)
    if kernel.core_slopes:
        M = W * kernel.slopes(rows, Z)
        products, squares = M.T @ np.c_[X, np.ones(37)], (M.sum(axis=1)[:, None] * X**2).sum(axis=0)
        found, inner = kernel.gradients(products, squares, Z)
        np.testing.assert_allclose(found, expected.astype(float), **close)
        back = kernel_table.pullback(name, *(A.astype(np.longdouble) for A in (Z, X, W.T)), **kernel.get_params())
        np.testing.assert_allclose(inner, (X * back).sum(axis=0).astype(float), rtol=1e-9, atol=100 * close["atol"])


@core_kernels
def test_symmetric_with_itself(name, kernel):
    X = blobs(50, d=5, seed=4)[0]
    K = kernel(X, X)
    assert_same(K, K.T)
    assert_same(K.diagonal(), kernel.diagonal(X))


def test_far_points_underflow_to_zero():
    X = np.array([[0.0], [1e3], [1e200]])
    for kernel in (ENTRIES[name].kernel(gamma=1.0) for name in RADIAL):
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
    assert AnyNormSVC(gamma=gamma).fit(rows, y).kernel_.gamma == pytest.approx(theirs, rel=1e-10)


def test_function_and_precomputed():
    X, Z = blobs(150, d=3)[0], blobs(20, d=3, seed=1)[0]
    function = kernels.Function(cosine_plus_one)
    assert_same(function(X, Z), cosine_plus_one(X, Z))
    assert_same(function.diagonal(X), cosine_plus_one(X, X).diagonal())
    K = cosine_plus_one(X, X)
    np.testing.assert_array_equal(kernels.Precomputed()(K, np.array([4, 2])), K[:, [4, 2]])


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_function_gets_float32_rows_as_float64(container):
    """Values in float32 are no kernel's to the digits of the certificate, and would not be those of float64 rows."""
    X, Z = (container(blobs(n, d=3, seed=n)[0].astype(np.float32)) for n in (150, 20))
    seen = set()

    def products(A, B):
        seen.update((A.dtype, B.dtype))
        return A @ B.T

    function = kernels.Function(products)
    exact = products(X.astype(np.float64), Z.astype(np.float64))
    exact = exact.toarray() if sp.issparse(exact) else exact
    assert_same(function(X, Z), exact)
    assert_same(function(X, Z.astype(np.float64)), exact)
    out = np.empty(exact.shape, dtype=np.float32)
    assert function(X, Z, out) is out
    assert_same(out, exact.astype(np.float32))
    assert seen == {np.dtype(np.float64)}


def test_a_fit_to_float32_rows_is_that_to_the_same_float64_rows():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((80, 4)).astype(np.float32), rng.integers(0, 2, 80)

    def squares(A, B):
        return (A @ B.T + 1) ** 2

    one, other = (AnyNormSVC(kernel=squares, C=100).fit(rows, y) for rows in (X, X.astype(np.float64)))
    assert_same(one.vector_coef_, other.vector_coef_)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-12)
    assert_same(one.decision_function(X), other.decision_function(X.astype(np.float64)))


@pytest.mark.grid(3)
@pytest.mark.parametrize("kind", DATA_KINDS)
@core_kernels
def test_scaled_is_the_kernel_of_scaled_rows(name, kernel, kind, tmp_path):
    X, Z = blobs(37, d=9, seed=1, density=0.5)[0], blobs(21, d=9, seed=2, density=0.5)[0]
    rows, scaled = DATA_KINDS[kind](X, tmp_path), kernels.Scaled(kernel, SCALES)
    before = rows.copy()
    # Scales are held in the rows' own type.
    close = {"rtol": 1e-4, "atol": 1e-4} if rows.dtype == np.float32 else {"rtol": 1e-11, "atol": 1e-12}
    expected = expected_matrix(name, kernel, X * SCALES, Z * SCALES)
    close["atol"] *= max(1, np.abs(expected_matrix(name, kernel, X * SCALES, X * SCALES)).max())
    np.testing.assert_allclose(scaled(rows, Z), expected, **close)
    np.testing.assert_allclose(scaled(Z, rows), expected.T, **close)
    diagonal = expected_matrix(name, kernel, X * SCALES, X * SCALES).diagonal()
    np.testing.assert_allclose(scaled.diagonal(rows), diagonal, **close)
    coef = np.sin(np.arange(21.0))[None]
    actual = scaled.decision(rows, Z.astype(rows.dtype), coef, np.array([0.5]))
    close["atol"] *= 30
    np.testing.assert_allclose(actual[:, 0], expected @ coef[0] + 0.5, **close)
    assert (abs(rows - before)).sum() == 0


def test_a_single_scale_serves_all_inputs():
    X = blobs(20)[0]
    assert_same(kernels.Scaled(kernels.Gaussian(0.3), 2.0)(X, X), kernels.Gaussian(1.2)(X, X))
    assert_same(kernels.Scaled(kernels.Gaussian(0.3), 2.0)(sp.csr_array(X), X), kernels.Gaussian(1.2)(X, X))


def test_scales_of_the_wrong_number_are_named():
    X, y = blobs(20)
    with pytest.raises(ValueError, match=r"scales.*3.*4"):
        AnyNormSVC(kernel=kernels.Scaled(kernels.Gaussian(0.3), np.ones(3))).fit(X, y)


def test_a_row_of_a_precomputed_kernel_is_its_number():
    """Any selection of rows is a block of the matrix."""
    X = blobs(30)[0]
    K = kernels.Gaussian(0.3)(X, X)
    for matrix, close in ((K, 0), (K.astype(np.float32), 1e-7)):
        kernel = kernels.Precomputed(matrix)
        rows, others = np.array([[3], [0], [29]]), np.array([[7], [7]])
        np.testing.assert_allclose(kernel(rows, others), K[[3, 0, 29]][:, [7, 7]], atol=close)
        assert kernel(rows, others).dtype == np.float64
        np.testing.assert_allclose(kernel.diagonal(rows), 1, atol=close)
        out = np.empty((3, 2))
        assert kernel(rows, others, out=out) is out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 2])
@core_kernels
def test_values_are_written_where_asked(name, kernel, threads, dtype):
    X, Z = blobs(300, d=5, seed=1)[0], blobs(40, d=5, seed=2)[0]
    expected = expected_matrix(name, kernel, X, Z)
    for some in (
        kernel,
        kernels.Scaled(kernel, 1.0),
        kernels.Function(lambda A, B: expected_matrix(name, kernel, A, B)),
    ):
        for rows in (X, sp.csr_array(X)):
            out = np.full((300, 40), np.nan, dtype=dtype)
            if isinstance(some, kernels.Function) and rows is not X:
                continue
            assert some(rows, Z, out=out, threads=threads) is out
            scale = np.abs(expected).max()
            np.testing.assert_allclose(out, expected, atol=(1e-12 if dtype == np.float64 else 1e-6) * max(1, scale))


def pullback_by_differences(kernel, X, Z, W, step=1e-6):
    """sum_i W_ij (k(x_i, z_j + step e_k) - k(x_i, z_j - step e_k)) / 2 step."""
    G = np.zeros(Z.shape)
    for k in range(Z.shape[1]):
        shift = np.zeros(Z.shape[1])
        shift[k] = step
        G[:, k] = (W * (kernel(X, Z + shift) - kernel(X, Z - shift))).sum(axis=0) / (2 * step)
    return G


@pytest.mark.grid(3)
@pytest.mark.parametrize("known", [False, True], ids=["fresh", "K known"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csr_matrix], ids=["dense", "array", "matrix"])
@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])
@core_kernels
def test_pullback_is_the_derivative(name, kernel, scaled, container, known):
    rng = np.random.default_rng(0)
    X, Z = blobs(40, d=5, seed=1, density=0.6)[0], 0.7 * rng.normal(size=(7, 5))
    W = rng.normal(size=(40, 7))
    kernel = kernels.Scaled(kernel, np.linspace(0.5, 2.0, 5)) if scaled else kernel
    K = kernel(X, Z) if known else None
    expected = pullback_by_differences(kernel, X, Z, W)
    actual = kernel.pullback(container(X), Z, W, K)
    assert type(actual) is np.ndarray
    assert actual.shape == (7, 5)
    scale = max(1.0, np.abs(expected).max(), np.abs(kernel(X, Z)).max())
    np.testing.assert_allclose(actual, expected, atol=1e-6 * scale)
    # The other way round: the rows are the vectors that move, as learned scales need it.
    turned = kernel.pullback(Z, container(X), W.T, None if K is None else K.T)
    np.testing.assert_allclose(turned, pullback_by_differences(kernel, Z, X, W.T), atol=1e-6 * scale)


@core_kernels
def test_pullback_at_a_row_itself(name, kernel):
    """Where a vector is a row, the derivative is finite; the Gaussian's own share vanishes."""
    X = blobs(10, d=3)[0]
    W = np.eye(10)
    G = kernel.pullback(X, X.copy(), W)
    assert np.isfinite(G).all()
    if kernel.translation_invariant:
        np.testing.assert_allclose(G, 0, atol=1e-12)


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


@pytest.mark.parametrize(
    "part",
    [*(kernel for _, kernel in CORE_KERNELS), kernels.Precomputed(), kernels.Scaled(kernels.Gaussian(0.3), 2.0)],
    ids=repr,
)
def test_parts_are_cloned_by_value(part):
    copy = clone(part)
    assert copy is not part
    assert copy == part
    with pytest.raises(ValueError, match="no parameter 'width'"):
        copy.with_params(width=1)


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


# --- Columns of very different size --------------------------------------------------------------------------


def columns_of_sizes(n, d, large, dtype, seed=0):
    """Unit columns beside one that is large: a flag, a grid, or an offset. Some rows twice, some almost."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) / np.sqrt(d)
    kind, size = large
    X[:, 0] = {
        "flag": size * rng.integers(0, 2, n),
        "grid": size * rng.integers(-3, 4, n) / 2,
        "offset": size + X[:, 0],
    }[kind]
    X[-10:] = X[:10]
    X[-5:, 1] += 1e-3
    return X.astype(dtype)


def exact(kernel, X, Z):
    """The matrix in long double."""
    X, Z = (np.asarray(rows, dtype=np.longdouble) for rows in (X, Z))
    return kernel_table.matrix(kernel.name, X, Z, gamma=np.longdouble(kernel.gamma))


@pytest.mark.grid(6)
@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_array], ids=["C", "F", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1.0, 1e3, 1e6, 1e8, 1e12])
@pytest.mark.parametrize("kind", ["flag", "grid", "offset"])
@pytest.mark.parametrize("d", [3, 40, 300])
@radial_kernels
def test_no_digit_is_lost_to_a_large_column(kernel, d, kind, size, dtype, container):
    X = columns_of_sizes(70, d, (kind, size), dtype)
    expected = exact(kernel, X, X)
    K = kernel(container(X), container(X))
    np.testing.assert_array_equal(K.diagonal(), 1)
    np.testing.assert_array_equal(K[range(60, 65), range(5)], 1)  # equal rows
    # Rounding of the sum over d columns, relative in the exponent, and of exp.
    seen = expected > np.exp(-600)  # the others are below the smallest numbers
    allowed = 64 * np.finfo(float).eps * (1 - np.log(expected[seen]))
    assert (np.abs(K - expected)[seen] <= allowed * expected[seen]).all()
    near = expected > np.exp(-1)
    assert (np.abs((1 - K) - (1 - expected)) <= 64 * np.finfo(float).eps)[near].all()


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("rows", [1, 70])
@pytest.mark.parametrize("size", [1e3, 1e6, 1e8])
@pytest.mark.parametrize("d", [3, 40])
@radial_kernels
def test_decision_values_beside_a_large_column(kernel, d, size, rows, container):
    X = columns_of_sizes(70, d, ("flag", size), np.float64)
    coef = np.random.default_rng(1).standard_normal((2, 70))
    expected = exact(kernel, X[:rows], X) @ coef.T
    close = 1e-13 * np.abs(coef).sum()
    actual = kernel.decision(container(X[:rows]), container(X), coef, np.zeros(2))
    np.testing.assert_allclose(actual, expected.astype(float), rtol=0, atol=close)
    # In float32 what matters is that the rows, which float32 holds, are met by differences too.
    single = X.astype(np.float32)
    expected = exact(kernel, single[:rows], single) @ coef.T
    actual = kernel.decision(container(single[:rows]), container(single), coef, np.zeros(2))
    np.testing.assert_allclose(actual, expected.astype(float), rtol=0, atol=1e-3)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@radial_kernels
def test_float32_values_of_rows_that_float32_cannot_hold(kernel, container):
    X = columns_of_sizes(70, 40, ("offset", 1e8), np.float64)
    out = kernel(container(X), container(X), out=np.empty((70, 70), np.float32))
    expected = exact(kernel, X, X)
    np.testing.assert_allclose(out, expected.astype(float), atol=2e-5)


def test_wide_sparse_rows_beside_a_large_column():
    """Differences over the columns that a panel of rows uses, and over those that only the other row has."""
    rng = np.random.default_rng(0)
    X, Z = (sp.random(n, 5000, density=0.002, format="lil", random_state=rng) for n in (70, 45))
    X[:, 7], Z[:, 7] = 1e7, 1e7 + 0.5
    X, Z = X.tocsr(), Z.tocsr()
    for name in RADIAL:
        kernel = ENTRIES[name].kernel(gamma=0.3)
        expected = exact(kernel, X.toarray(), Z.toarray()).astype(float)
        np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-13)
        np.testing.assert_array_equal(kernel(X, X).diagonal(), 1)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("d", [3, 20, 33, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_is_at_distance_zero_from_itself(dtype, d, container):
    """Also where distances come from products, and whatever is stored: explicit zeros are no columns."""
    X = np.random.default_rng(0).standard_normal((50, d)).astype(dtype)
    X[:, ::2] = 0
    rows = container(X)
    if sp.issparse(rows):
        rows.data[::3] = 0
    for kernel in RADIAL.values():
        for out in (np.empty((50, 50)), np.empty((50, 50), np.float32)):
            np.testing.assert_array_equal(kernel(rows, rows, out=out).diagonal(), 1)


@pytest.mark.parametrize("value", [0.1, 1e5 / 3, np.pi])
def test_scale_of_equal_entries_is_one(value):
    """Rounding of their weighted mean is no variance; a small spread is one."""
    rng = np.random.default_rng(0)
    X, weight = np.full((50, 3), value), rng.uniform(size=50)
    assert kernels.scale_gamma("scale", X, weight) == 1
    X = value * (1 + 1e-9 * rng.standard_normal(X.shape))
    spread = np.average((X - value) ** 2, weights=np.repeat(weight[:, None], 3, axis=1))
    spread -= np.average(X - value, weights=np.repeat(weight[:, None], 3, axis=1)) ** 2
    np.testing.assert_allclose(kernels.scale_gamma("scale", X, weight), 1 / (3 * spread), rtol=1e-5)


# --- Texts that list kernels ---------------------------------------------------------------------------------


def sentence(word, **flags):
    *others, last = kernel_table.in_sentence(**flags)
    return f"{', '.join(others)} {word} {last}"


def test_lists_of_kernels_in_docstrings_and_help():
    assert f"with the kernels {sentence('and', fixed_point=True)}." in " ".join(AnyNormSVC.__doc__.split())
    assert f"the kernels {sentence('and', fixed_point=True)}." in " ".join(to_c.__doc__.split())
    first, *others = kernel_table.in_sentence(fixed_point=True)
    known = f"the kernel {first} (learned scales too), {', '.join(others[:-1])} or {others[-1]}."
    assert known in " ".join(quantize.__doc__.split())
    (option,) = get_type_hints(TrainingOptions, include_extras=True)["kernel"].__metadata__
    assert option.help == f"{sentence('or', semidefinite=True)}."


@pytest.mark.skipif(not DOCS.exists(), reason="the pages are not beside the tests")
def test_lists_of_kernels_on_pages():
    pages = {page: (DOCS / page).read_text() for page in ("api.rst", "bytes.md", "guide.md", "microcontrollers.md")}
    for name, entry in ENTRIES.items():
        assert f"kernels.{entry.class_name}\n" in pages["api.rst"]
        assert f'\n| `"{name}"`' in pages["guide.md"]
    assert sentence("or", fixed_point=True) in pages["bytes.md"]
    floats, integers = (", ".join(kernel_table.in_sentence(**flags)) for flags in ({}, {"fixed_point": True}))
    assert f"| kernels | {floats} | {integers} |" in pages["microcontrollers.md"]
