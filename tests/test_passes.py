"""Every pass of the core: the sums of the numpy pass of the same class, to the rounding of its precision."""

from __future__ import annotations

import numpy as np
import pytest

from pass_problems import INPUTS, KERNELS, LAYOUTS, LOSSES, RADIAL, core_loss, dense, kernel_sizes, make
from slimsvm import kernels, losses
from slimsvm.linalg.arrays import core_rows
from slimsvm.problem.kernels import Gaussian, Scaled
from slimsvm.problem.regularizers import KernelNorm, ReweightedNorm
from slimsvm.rows.labels import ClassLabels, RowLabels
from slimsvm.rows.memory import CoreFeatures, DenseFeatures
from slimsvm.solvers.primal.passes import (
    CORNER_CHARGE,
    DOWN,
    DOWN_GAIN,
    DOWN_RIDGE,
    SQUARES,
    UP,
    UP_GAIN,
    UP_RIDGE,
    VALUE,
    WEIGHTED_SQUARES,
    CertificateSums,
    Equations,
    Line,
    Pull,
)
from test_process import run

PRECISIONS = [np.float64, np.float32]
precisions = pytest.mark.parametrize("dtype", PRECISIONS, ids=["float64", "float32"])
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
every_loss = pytest.mark.parametrize("loss", LOSSES)


def close(problem, found, expected, sizes):
    """Within the rounding of sums whose terms have these absolute values; see `Problem.unit`."""
    found, expected, sizes = np.broadcast_arrays(found, expected, sizes)
    wrong = ~(np.abs(found - expected) <= problem.unit * sizes)
    assert not wrong.any(), (
        f"{found[wrong][:3]} instead of {expected[wrong][:3]}, {problem.unit * sizes[wrong][:3]} allowed"
    )


def with_one(P):
    return np.c_[P, np.ones(len(P))]


def check_features(problem, home):
    plain = problem.plain
    n = plain.shape[0]
    rows = np.unique(np.random.default_rng(1).integers(n, size=20))
    for some in (rows, rows[:1], np.arange(n)):
        close(problem, home.features(some), plain.features(some), problem.feature_sizes[some])
    assert home.shape == plain.shape


def check_values(problem, home, which):
    V = problem.V[which]
    n = problem.plain.shape[0]
    exact = np.vstack([block.values(which, V) for block in problem.plain.blocks()])
    sizes = problem.value_sizes(V)
    for begin, end in {(0, n), (n // 2, n), (n // 3, n // 3 + 1), (0, 0), (n, n), (min(n, 31), min(n, 65))}:
        found = home.passes.values(list(which), V, begin, end)
        assert found.shape == (end - begin, len(which))
        close(problem, found, exact[begin:end], sizes[begin:end])


def check_equations(problem, home, which):
    work, V = Equations(problem.loss), problem.V[which]
    found, exact = home.total(work, which, V), problem.plain.total(work, which, V)
    sizes, P = problem.value_sizes(V), with_one(problem.feature_sizes)
    duals = problem.dual_sizes(which, sizes)
    curvatures = problem.dual_sizes(which, 1.0)
    close(problem, found[0], exact[0], (duals * sizes).sum(axis=0))
    close(problem, found[1], exact[1], duals.T @ P)
    for k in range(len(which)):
        close(problem, found[2][k], exact[2][k], P.T @ (curvatures[:, [k]] * P))
        np.testing.assert_array_equal(found[2][k], found[2][k].T)


def check_line(problem, home, which):
    work, V, D, t = Line(problem.loss), problem.V[which], problem.D[which], problem.t[which]
    found, exact = home.total(work, which, V, D, t), problem.plain.total(work, which, V, D, t)
    along = problem.value_sizes(D)
    for k in range(t.shape[1]):
        sizes = problem.value_sizes(V) + t[:, k] * along
        close(problem, found[0][:, k], exact[0][:, k], (problem.dual_sizes(which, sizes) * along).sum(axis=0))
        close(problem, found[1][:, k], exact[1][:, k], (problem.dual_sizes(which, 1.0) * along**2).sum(axis=0))


def check_evidence(problem, home, which, known=()):
    """With units of a thousandth, beside which rounding is little; see `CertificateSums`."""
    work, V = CertificateSums(problem.loss), problem.V[which]
    reach, units = np.linspace(0.5, 1.5, len(which)), 1e-3
    (found,), (exact,) = (rows.total(work, which, V, known, reach, units) for rows in (home, problem.plain))
    C = problem.labels.of(slice(None), which)[1]
    sizes, P = problem.value_sizes(V), problem.feature_sizes
    duals = problem.dual_sizes(which, sizes)
    for o, (rows, values) in enumerate(known):
        duals[rows, o] += np.abs(values)
    width = problem.loss.pieces[0]
    ridge = width * np.divide(duals**2, C, out=np.zeros_like(C), where=C > 0).sum(axis=0)
    diagonal = np.abs(np.asarray(problem.kernel.diagonal(dense(problem.X))))
    total = duals.sum(axis=0)
    for column, size in {
        VALUE: (duals * sizes).sum(axis=0),
        UP: total,
        DOWN: total,
        # The numpy pass has these from differences of the conjugate at two points.
        UP_GAIN: total + ridge,
        DOWN_GAIN: total + ridge,
        UP_RIDGE: total + ridge,
        DOWN_RIDGE: total + ridge,
        SQUARES: (duals**2).sum(axis=0),
        WEIGHTED_SQUARES: (1 + diagonal) @ duals**2,
    }.items():
        close(problem, found[:, column], exact[:, column], 12 * size)
    f = P.shape[1]
    close(problem, found[:, -2 * f :], exact[:, -2 * f :], np.tile(duals.T @ P, 2))
    # Doubts of a slot, or of a block, are never below zero: where duals are not the loss's own, a slot more may count.
    doubt = problem.unit * 4 * (duals * sizes).sum(axis=0)
    assert (found[:, CORNER_CHARGE] >= exact[:, CORNER_CHARGE] - doubt).all()
    if not len(known):
        assert (found[:, CORNER_CHARGE] <= exact[:, CORNER_CHARGE] + doubt).all()


def check_all(problem, home=None, which=None):
    home = problem.fused() if home is None else home
    which = np.arange(problem.labels.outputs) if which is None else which
    check_features(problem, home)
    check_values(problem, home, which)
    if problem.loss.smooth:
        check_equations(problem, home, which)
        check_line(problem, home, which)
    check_evidence(problem, home, which)
    rng = np.random.default_rng(3)
    C = problem.labels.of(slice(None), which)[1]
    known = [
        (rows, rng.normal(size=len(rows)))
        for rows in (np.flatnonzero((c > 0) & (rng.random(len(c)) < 0.4)) for c in C.T)
    ]
    check_evidence(problem, home, which, known)


# --- sums ----------------------------------------------------------------------------------------------------


@precisions
@every_loss
@every_kernel
def test_kernels_and_losses(kernel, loss, dtype):
    check_all(make(kernel, loss, dtype))


@precisions
@pytest.mark.parametrize("outputs", [1, 2, 5])
@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 257, 1000])
def test_numbers_of_rows(n, outputs, dtype):
    check_all(make(n=n, outputs=outputs, dtype=dtype, loss="HuberHinge"))


@precisions
@pytest.mark.parametrize(("vectors", "features"), [(1, 1), (2, 3), (16, 16), (17, 9), (40, 33)])
def test_numbers_of_vectors_and_features(vectors, features, dtype):
    check_all(make(vectors=vectors, features=features, dtype=dtype, n=100))
    check_all(make(vectors=vectors, plain=True, dtype=dtype, n=100))


@precisions
@pytest.mark.parametrize("kernel", ["linear", *RADIAL, "scaled rbf"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_rows(layout, kernel, dtype):
    check_all(make(kernel, dtype=dtype, layout=layout, n=77))


@precisions
@pytest.mark.parametrize("layout", ["C", "csr"])
def test_rows_of_mostly_zeros(layout, dtype):
    """So few nonzeros that their lists are multiplied."""

    def rare(rng, n):
        return rng.normal(size=(n, 700)) * (rng.random((n, 700)) < 0.02) * 2

    for kernel in ("linear", *RADIAL):
        check_all(make(kernel, dtype=dtype, layout=layout, n=77, data=rare))


@pytest.mark.parametrize("offset", [1.0, 30.0])
@pytest.mark.parametrize("kernel", [*RADIAL, "scaled rbf"])
def test_float32_rows_far_from_the_origin(kernel, offset):
    """A common offset costs no digits but those that the rows themselves have lost; whole numbers lose none."""
    problem = make(kernel, dtype=np.float32, data=lambda rng, n: np.round(2 * rng.normal(size=(n, INPUTS))), n=100)
    Z = dense(problem.X)[:7]
    home = CoreFeatures(problem.X + np.float32(64 * offset), problem.labels, np.float32).set_features(
        problem.kernel, Z + 64 * offset, problem.T
    )
    exact = problem.kernel(dense(problem.X), Z) @ problem.T
    # The mean of the vectors is taken out, not the offset itself: rows are then as far from zero as from that mean.
    sizes = kernel_sizes(problem.kernel, np.abs(dense(problem.X)) + np.abs(Z).max(), Z) / problem.kernel(
        np.abs(dense(problem.X)) + np.abs(Z).max(), Z
    )
    assert (np.abs(home.features(np.arange(100)) - exact) <= problem.unit * (sizes @ np.abs(problem.T))).all()


@pytest.mark.parametrize("broadcast", [False, True], ids=["counts", "one count"])
@pytest.mark.parametrize("codes", [np.int8, np.int16, np.int32, np.int64])
def test_class_numbers_as_labels(codes, broadcast):
    problem = make(given="classes", codes=codes, broadcast=broadcast, dtype=np.float32, n=200, outputs=4)
    assert (problem.labels.counts.strides[0] == 0) == broadcast
    check_all(problem)
    Y, C = problem.labels.of(slice(None))
    given = problem.fused(labels=RowLabels(Y, C))
    which = np.arange(4)
    for a, b in zip(
        *(h.total(Equations(problem.loss), which, problem.V) for h in (problem.fused(), given)), strict=True
    ):
        np.testing.assert_array_equal(a, b)  # the same numbers, however they are given


def test_class_numbers_must_be_there():
    problem = make(given="classes", n=40)
    rows, labels = core_rows(problem.X), problem.labels
    for codes in (labels.codes + 9, labels.codes - 9):
        with pytest.raises(ValueError, match="class number"):
            ClassLabels(codes, labels.counts, labels.side, labels.cost).passes(rows, False, 0, 1)


@precisions
@pytest.mark.parametrize("given", ["rows", "classes"])
@pytest.mark.parametrize("which", [[0], [3], [3, 0], [1, 1, 2]], ids=str)
def test_some_of_the_outputs(which, given, dtype):
    check_all(make(outputs=4, given=given, dtype=dtype, n=100), which=np.array(which))


@precisions
@pytest.mark.parametrize("plain", [False, True], ids=["whitened", "plain"])
def test_features_kept_or_not_are_the_same_bits(plain, dtype):
    problem = make(dtype=dtype, plain=plain)
    which = np.arange(3)
    results = []
    for keep in (2.0**30, 0):
        home = problem.fused(keep=keep)
        results += [every_sum(problem, home, which) for _ in range(2)]  # the second time from the store
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def every_sum(problem, home, which):
    V, D, t = problem.V[which], problem.D[which], problem.t[which]
    beta = np.ascontiguousarray(problem.T @ V[:, :-1].T)
    return [
        *home.total(Equations(problem.loss), which, V),
        *home.total(Line(problem.loss), which, V, D, t),
        *home.total(CertificateSums(problem.loss), which, V, (), np.ones(len(which)), 1e-3),
        *home.passes.pullback(which.tolist(), V, beta, core_loss(problem.loss)),
        home.passes.values(which.tolist(), V, 0, home.shape[0]),
        home.features(np.arange(home.shape[0])),
    ]


@precisions
@pytest.mark.parametrize("layout", ["C", "csr"])
@pytest.mark.parametrize("outputs", [1, 6])
def test_threads_give_the_same_bits(outputs, layout, dtype):
    problem = make(n=5000, outputs=outputs, layout=layout, dtype=dtype)
    which = np.arange(outputs)
    one = every_sum(problem, problem.fused(), which)
    for threads in (2, 3, 7):
        for keep in (2.0**30, 0):
            home = problem.fused(threads, keep)
            for _ in range(2):
                for a, b in zip(one, every_sum(problem, home, which), strict=True):
                    np.testing.assert_array_equal(a, b)


def test_a_home_looks_through_other_vectors():
    """As one that has never seen the first."""
    problem, other = make(n=100), make(n=100, kernel="cube", vectors=11, features=9)
    home = problem.fused()
    home.total(Equations(problem.loss), np.arange(3), problem.V)
    home.set_features(other.kernel, other.Z, other.T)
    fresh = other.fused(labels=problem.labels)
    for a, b in zip(*(h.total(Equations(other.loss), np.arange(3), other.V) for h in (home, fresh)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_passes_over_blocks_add_up(monkeypatch):
    """A pass that the core does not have (a loss of the user's) goes over its rows in blocks."""

    class Own(losses.SquaredHinge):
        pieces = None

    problem = make(n=300)
    which = np.arange(3)
    V = problem.V
    monkeypatch.setattr("slimsvm.rows.memory.BLOCK_BYTES", 5 * 8 * 41)
    P = problem.plain.features(np.arange(300))
    for home in (problem.fused(), problem.fused(keep=0), problem.plain, DenseFeatures(P, problem.labels)):
        assert len(list(home.blocks())) > 5
        found = home.total(Equations(Own()), which, V)
        expected = problem.fused().total(Equations(problem.loss), which, V)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
        (found,) = home.total(CertificateSums(Own()), which, V, (), np.zeros(3), 0.0)
        (expected,) = problem.fused().total(CertificateSums(problem.loss), which, V, (), np.zeros(3), 0.0)
        if isinstance(home, DenseFeatures):  # which knows nothing of k(x, x)
            found[:, WEIGHTED_SQUARES] = expected[:, WEIGHTED_SQUARES]
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


# --- the pull ------------------------------------------------------------------------------------------------

PULLED = [name for name in KERNELS if KERNELS[name].unscaled[0].core_slopes]


def exact_pull(problem, which):
    """Losses, gradients by the kernel's `pullback`, and how large their terms are."""
    kernel, scales = problem.kernel.unscaled
    X, Z, V = dense(problem.X) * scales, dense(problem.Z) * scales, problem.V[which]
    beta = np.ascontiguousarray(problem.T @ V[:, :-1].T)
    Y, C = problem.labels.of(slice(None), which)
    F = np.vstack([block.values(which, V) for block in problem.plain.blocks()])
    W = -(problem.loss.duals(F, Y, C) @ beta.T)
    G, Gx = kernel.pullback(X, Z, W), kernel.pullback(Z, X, np.ascontiguousarray(W.T))
    sizes = problem.value_sizes(V)
    duals = problem.dual_sizes(which, sizes)
    M = (duals @ np.abs(beta).T) * (1 + kernel_sizes(kernel, X, Z)) * max(1.0, 2 * kernel.rate) * 3
    far = np.abs(X) if not kernel.translation_invariant else np.abs(X) + np.abs(Z).max(axis=0)
    return {
        "beta": beta,
        "kernel": kernel,
        "Z": Z,
        "value": (problem.loss.value(F, Y, C), (duals * sizes).sum(axis=0)),
        "vectors": (G, M.T @ far),
        "rows": (
            np.einsum("ik,ik->k", X, Gx),
            (M.sum(axis=1)[:, None] * far * (np.abs(X) + np.abs(Z).max(axis=0))).sum(axis=0),
        ),
    }


def check_pull(problem, home=None, which=None):
    home = problem.fused() if home is None else home
    which = np.arange(problem.labels.outputs) if which is None else which
    exact = exact_pull(problem, which)
    value, products, squares = home.passes.pullback(
        which.tolist(), problem.V[which], exact["beta"], core_loss(problem.loss)
    )
    close(problem, value, *exact["value"])
    vectors, rows = exact["kernel"].gradients(products, squares, exact["Z"])
    close(problem, vectors, *exact["vectors"])
    close(problem, rows, *exact["rows"])
    if len(which) == problem.labels.outputs:
        for scales, wanted in (True, squares), (False, np.zeros_like(squares)):
            found = home.total(Pull(problem.loss), problem.V[which], exact["beta"], scales)
            for a, b in zip(found, (value, products, wanted), strict=True):
                np.testing.assert_array_equal(a, b)


@precisions
@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if loss.smooth])
@pytest.mark.parametrize("kernel", PULLED)
def test_pull_is_the_kernels_pullback(kernel, loss, dtype):
    check_pull(make(kernel, loss, dtype))


@precisions
@pytest.mark.parametrize("n", [1, 31, 33, 129, 257, 1000])
def test_pull_of_any_number_of_rows(n, dtype):
    for layout in ("C", "csr64"):
        check_pull(make(n=n, dtype=dtype, layout=layout, outputs=2, vectors=19))


@precisions
@pytest.mark.parametrize("layout", LAYOUTS)
def test_pull_of_every_layout(layout, dtype):
    for kernel in ("rbf", "scaled rbf", "linear"):
        check_pull(make(kernel, dtype=dtype, layout=layout, given="classes", n=140), which=np.array([2, 0]))


@precisions
@pytest.mark.parametrize("inputs", [500, 520])
@pytest.mark.parametrize("layout", ["C", "csr"])
def test_pull_of_rows_of_mostly_zeros(layout, inputs, dtype):
    """As dense rows, or by their nonzeros."""

    def rare(rng, n):
        return rng.normal(size=(n, inputs)) * (rng.random((n, inputs)) < 0.02) * 2

    for kernel in ("rbf", "linear", kernels.Scaled(kernels.Gaussian(0.2), np.linspace(0.5, 2, inputs))):
        check_pull(make(kernel, dtype=dtype, layout=layout, data=rare, n=150))


@precisions
def test_pull_of_rows_far_from_the_origin(dtype):
    """Where float rows are packed without a common offset, the sums are still those of the rows."""

    def far(rng, n):
        return rng.normal(size=(n, INPUTS)) + 8.0

    for kernel in ("rbf", "scaled rbf"):
        check_pull(make(kernel, dtype=dtype, data=far, n=150))


# --- instruction sets ----------------------------------------------------------------------------------------

EVERYTHING = """
import itertools, sys
import numpy as np
import test_passes as tests
from slimsvm import _core

print(_core.instruction_set)
for kernel, loss, dtype in itertools.product(tests.KERNELS, tests.LOSSES, tests.PRECISIONS):
    tests.test_kernels_and_losses(kernel, loss, dtype)
for dtype in tests.PRECISIONS:
    for n in (1, 31, 33, 1000):
        tests.test_numbers_of_rows(n, 2, dtype)
        tests.test_pull_of_any_number_of_rows(n, dtype)
    for vectors, features in ((1, 1), (17, 9), (40, 33)):
        tests.test_numbers_of_vectors_and_features(vectors, features, dtype)
    for layout in tests.LAYOUTS:
        tests.test_pull_of_every_layout(layout, dtype)
        tests.test_layouts_of_rows(layout, "rbf", dtype)
    for kernel in tests.PULLED:
        tests.test_pull_is_the_kernels_pullback(kernel, "HuberHinge", dtype)
    for layout in ("C", "csr"):
        tests.test_rows_of_mostly_zeros(layout, dtype)
        tests.test_threads_give_the_same_bits(6, layout, dtype)
"""


@pytest.mark.parametrize("wish", ["avx2", "baseline"])
def test_instruction_sets(wish, tmp_path):
    """All of the above in the other sets that the core is compiled for."""
    used = run(EVERYTHING, tmp_path, SLIMSVM_ISA=wish).split()[0]
    assert used in (wish, "baseline")


# --- whitening -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "norm", [KernelNorm(1e-3), KernelNorm(0.0, 1e-2), ReweightedNorm(C_alpha=0.3, base=KernelNorm(0.1))]
)
@pytest.mark.parametrize("scales", [None, np.array([0.5, 2.0, 1.0])])
def test_whitening_in_the_core_makes_the_norm_a_plain_one(norm, scales):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(40, 3)), rng.normal(size=(13, 3))
    kernel = Gaussian(0.4) if scales is None else Scaled(Gaussian(0.4), scales)
    home = CoreFeatures(X, RowLabels(np.ones((40, 1)), np.ones((40, 1))))
    gram = home.set_whitened_features(kernel, Z, norm.on_diagonal)
    np.testing.assert_allclose(gram, kernel(Z, Z), rtol=1e-14)
    T = home.current_map[2]
    np.testing.assert_allclose(T.T @ norm.matrix(gram) @ T, np.eye(13), atol=1e-10)
    np.testing.assert_allclose(T, norm.whitening(gram), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(home.features(np.arange(40)), kernel(X, Z) @ T, rtol=1e-9, atol=1e-12)


def test_whitening_in_the_core_leaves_what_is_not_safe_to_others():
    X = np.random.default_rng(0).normal(size=(20, 3))
    home = CoreFeatures(X, RowLabels(np.ones((20, 1)), np.ones((20, 1))))
    twice = np.vstack([X[:4], X[:1]])
    assert home.set_whitened_features(Gaussian(0.4), twice, (0.0, 0.0)) is None
    assert home.current_map is None
    assert home.set_whitened_features(Gaussian(0.4), np.full((2, 3), np.nan), (0.0, 0.0)) is None
    assert home.set_whitened_features(Gaussian(0.4), twice, (1e-3, 0.0)) is not None


@pytest.mark.parametrize("threads", [1, 3, 8])
def test_threads_may_change_between_passes(threads):
    problem = make(n=4000, dtype=np.float32, outputs=2)
    home = problem.fused()
    which, V = np.arange(2), problem.V
    before = home.total(Equations(problem.loss), which, V)
    home.use_threads(threads)
    for a, b in zip(before, home.total(Equations(problem.loss), which, V), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("other", ["vectors", "rows", "scales", "kernel"])
def test_wide_rows_that_are_looked_at_again(other):
    """Rows that stay packed are those that are looked at."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(130, 80)).astype(np.float32)
    Z = rng.normal(size=(7, 80))
    labels = RowLabels(np.ones((130, 1)), np.ones((130, 1)))
    home, kernel, T = CoreFeatures(X, labels, np.float32), Gaussian(0.01), np.eye(7)
    for _ in range(3):
        home.set_features(kernel, Z, T).features(np.arange(130))
    if other == "vectors":
        Z = Z + 1
    elif other == "rows":
        home.X = X = np.ascontiguousarray(X[::-1])
    elif other == "scales":
        kernel = Scaled(kernel, rng.uniform(0.5, 2, size=80))
    else:
        kernel = kernels.Linear()
    found = home.set_features(kernel, Z, T).features(np.arange(130))
    np.testing.assert_array_equal(
        found, CoreFeatures(X, labels, np.float32).set_features(kernel, Z, T).features(np.arange(130))
    )
    np.testing.assert_allclose(found, kernel(X, Z), rtol=2e-5, atol=2e-4)
