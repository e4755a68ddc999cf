"""Rows behind the seam: labels, homes and gradients; several Python threads; numbers that are none."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

import reference_bases as slow
from pass_problems import KERNELS, LAYOUTS, LOSSES, core_loss, dense, make
from problems import blobs, three_classes
from slimsvm import SlimSVC, kernels, losses, regularizers
from slimsvm.basis.learning import FusedObjective, Objective
from slimsvm.data.dataset import ProblemGroup, outputs
from slimsvm.estimators import checked_data
from slimsvm.estimators.targets import ClassTargets
from slimsvm.rows.labels import ClassLabels, RowLabels, dataset_labels, join_groups
from slimsvm.rows.memory import CoreFeatures, DenseFeatures, LazyFeatures
from slimsvm.solvers.primal import solve as primal
from slimsvm.solvers.primal.newton import newton
from slimsvm.solvers.primal.passes import CertificateSums, Equations, Line
from test_passes import check_all, check_pull, every_sum

precisions = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
scalings = pytest.mark.parametrize("scaled", [False, True], ids=["fixed", "scaled"])
DERIVED = {
    "linear": kernels.Linear(),
    "rbf": kernels.Gaussian(0.3),
    "square": kernels.Polynomial(0.25, 1.0, 2),
    "sigmoid": kernels.Sigmoid(0.05, 0.1),
}
NORM = regularizers.KernelNorm(1e-2)


# --- gradients -----------------------------------------------------------------------------------------------


def learning_problem(n=90, classes=3, dtype=np.float64, container=np.asarray):
    """Rows, their labels by class, and vectors near some of them."""
    X, codes = three_classes(n, seed=2)
    X = np.c_[X, X[:, :1] * X[:, 1:] / 2]
    X[np.abs(X) < 0.2] = 0
    codes = np.minimum(codes, classes - 1)
    dataset = checked_data.checked_dataset(
        SlimSVC(), X, codes, np.random.default_rng(0).uniform(0.5, 2, n), ClassTargets(), False
    )
    labels = dataset_labels(dataset, outputs(dataset.n_classes, "ovr"), 3.0)
    rng = np.random.default_rng(3)
    Z = X[rng.choice(n, 4, replace=False)] + 0.1 * rng.normal(size=(4, 3))
    return container(X.astype(dtype)), labels, Z, np.exp(0.3 * rng.normal(size=3))


@precisions
@scalings
@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_array], ids=["C", "F", "csr"])
@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if loss.smooth])
@pytest.mark.parametrize("kernel", DERIVED)
def test_gradients_of_the_core_are_those_of_numpy(kernel, loss, container, scaled, dtype):
    """Machines are solved to a relative gain of 1e-7, so gradients agree to its root at least, and float32 features of
    whitened vectors, whose matrix has a condition of at most 1e2 to 1e4 here, to 1e-7 times that."""
    X, labels, Z, scales = learning_problem(dtype=dtype, container=container)
    found = []
    for form in (FusedObjective, Objective):
        objective = form(DERIVED[kernel], X, labels, LOSSES[loss], NORM, len(Z), scaled)
        found.append(objective(objective.pack(Z, scales)))
    (value, gradient), (other_value, other) = found
    loose = 3e-3 if dtype == np.float32 else 3e-4
    assert value == pytest.approx(other_value, rel=1e-4 if dtype == np.float32 else 1e-7)
    assert np.linalg.norm(gradient - other) <= loose * np.linalg.norm(other)


@scalings
@pytest.mark.parametrize("loss", ["SquaredHinge", "HuberHinge", "LeastSquares"])
@pytest.mark.parametrize("kernel", DERIVED)
def test_gradients_of_the_core_are_those_of_differences(kernel, loss, scaled):
    """Of W at machines solved to a gap of 1e-11: central differences of 1e-5 are right to about 1e-6."""
    X, labels, Z, scales = learning_problem(n=40)
    objective = FusedObjective(DERIVED[kernel], X, labels, LOSSES[loss], NORM, len(Z), scaled)
    theta = objective.pack(Z, scales)

    def value(theta):
        Z, scales = objective.unpack(theta)
        seen = DERIVED[kernel] if scales is None else kernels.Scaled(DERIVED[kernel], scales)
        P = seen(X, Z) @ NORM.whitening(seen(Z, Z))
        return primal.solve(DenseFeatures(P, labels), LOSSES[loss], tol=1e-11).objective.sum() / labels.totals.sum()

    assert objective(theta)[0] == pytest.approx(value(theta), rel=1e-7)
    expected = slow.numerical_gradient(value, theta, 1e-5)
    assert np.linalg.norm(objective(theta)[1] - expected) <= 3e-5 * np.linalg.norm(expected)


@scalings
@precisions
def test_threads_do_not_change_a_gradient(scaled, dtype):
    X, labels, Z, scales = learning_problem(n=3000, dtype=dtype)
    found = []
    for threads in (1, 2, 3, 7):
        objective = FusedObjective(DERIVED["rbf"], X, labels, LOSSES["HuberHinge"], NORM, len(Z), scaled, threads)
        found.append([objective(objective.pack(Z + move, scales)) for move in (0.1, 0.01, 0.0)])
    for other in found[1:]:
        for (value, gradient), (same, equal) in zip(found[0], other, strict=True):
            assert value == same
            np.testing.assert_array_equal(gradient, equal)


# --- labels --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decision", ["ovr", "ovo"])
def test_class_labels_are_the_tasks_targets(decision):
    X, codes = three_classes(60)
    weight = np.random.default_rng(0).uniform(0.5, 2, 60)
    dataset = checked_data.checked_dataset(SlimSVC(), X, codes, weight, ClassTargets({0: 1.0, 1: 2.0, 2: 0.5}), False)
    wanted = outputs(dataset.n_classes, decision)
    costs = np.array([1.0, 2.0, 3.0])
    labels = dataset_labels(dataset, wanted, costs)
    Y, C = labels.of(slice(None))
    np.testing.assert_array_equal(Y == 0, C == 0)
    assert labels.outputs == 3
    assert labels.size == 60
    np.testing.assert_allclose(labels.totals, C.sum(axis=0))
    factor = np.array([1.0, 2.0, 0.5])[dataset.codes]
    np.testing.assert_allclose(C, np.abs(Y) * (weight[dataset.indices] * factor)[:, None] * costs)
    for o in range(3):
        members = labels.members(o)
        if decision == "ovr":
            assert members is None
        else:
            np.testing.assert_array_equal(members, np.flatnonzero(C[:, o]))
    some = np.array([3, 7, 50])
    taken = labels.take(some, 4.0)
    np.testing.assert_array_equal(taken.of(slice(None))[0], Y[some])
    np.testing.assert_allclose(taken.of(slice(None))[1], 4 * C[some])
    which = np.array([2, 0])
    np.testing.assert_array_equal(labels.of(some, which)[0], Y[some][:, which])
    given = RowLabels(Y, C)
    np.testing.assert_allclose(given.totals, labels.totals)
    np.testing.assert_array_equal(given.of(some, which)[1], C[some][:, which])
    np.testing.assert_allclose(given.take(some, 4.0).of(slice(None))[1], taken.of(slice(None))[1])


def test_groups_of_outputs_over_rows_of_their_own_are_joined():
    rng = np.random.default_rng(0)
    first = ProblemGroup(None, np.ones((10, 2)), rng.uniform(1, 2, (10, 2)))
    rows = np.array([1, 4, 8])
    second = ProblemGroup(rows, -np.ones((3, 1)), rng.uniform(1, 2, (3, 1)))
    labels = join_groups([first, second], 10)
    np.testing.assert_array_equal(labels.C[:, :2], first.C)
    np.testing.assert_array_equal(labels.members(2), rows)
    np.testing.assert_array_equal(labels.C[rows, 2:], second.C)
    np.testing.assert_array_equal(labels.Y[rows, 2:], second.Y)
    assert join_groups([first], 10).Y is first.Y


# --- homes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["rows", "classes"])
def test_thinned_rows_are_every_so_manyeth_at_as_many_times_the_cost(given):
    problem = make(n=101, given=given)
    P = problem.plain.features(np.arange(101))
    Y, C = problem.labels.of(slice(None))
    expected = DenseFeatures(P[::8], RowLabels(Y[::8], 8 * C[::8])).total(
        Equations(problem.loss), np.arange(3), problem.V
    )
    for home in (problem.fused(), problem.fused(keep=0), problem.plain, DenseFeatures(P, problem.labels)):
        part = home.subsampled(8)
        assert part.shape == (13, 5)
        for a, b in zip(part.total(Equations(problem.loss), np.arange(3), problem.V), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("which", [[0, 1, 2], [2], [1, 0]], ids=str)
@pytest.mark.parametrize("start", ["zero", "near", "far"])
@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if loss.smooth])
def test_newtons_method_of_a_home_is_that_of_passes(loss, start, which):
    """Where no row is curved at the start too, and the first step is too long by many orders of magnitude."""
    problem = make(n=400, loss=loss)
    which = np.array(which)
    V = {"zero": 0.0, "near": 0.1, "far": 1e3}[start] * problem.V[which]
    expected = newton(problem.plain, problem.loss, V, 1e-12, 200, which)
    P = problem.plain.features(np.arange(400))
    assert expected.converged.all()
    for home in (problem.fused(), problem.fused(keep=0), DenseFeatures(P, problem.labels)):
        found = newton(home, problem.loss, V, 1e-12, 200, which)
        assert found.converged.all()
        values = [
            0.5 * (state.V[:, :-1] ** 2).sum(axis=1) + home.total(Equations(problem.loss), which, state.V)[0]
            for state in (found, expected)
        ]
        np.testing.assert_allclose(*values, rtol=1e-9)


@precisions
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_newtons_method_from_where_nothing_is_curved(C, dtype):
    """Classes of very different sizes and a rounded hinge: the bias alone is far from right."""
    X, _ = blobs(3000, d=3, seed=1)
    Y = np.where(X[:, :1] > 1.5, 1.0, -1.0)
    labels = RowLabels(Y, np.full(Y.shape, C))
    kernel, Z, loss = kernels.Gaussian(0.3), X[:20], losses.HuberHinge(0.5)
    T = NORM.whitening(kernel(Z, Z))
    best = primal.solve(LazyFeatures(kernel, X, labels, Z, T), loss, tol=1e-10)
    assert best.gap[0] <= 1e-8
    rows = X.astype(dtype)
    for home in (
        CoreFeatures(rows, labels, dtype).set_features(kernel, Z, T),
        LazyFeatures(kernel, rows, labels, Z, T, dtype),
    ):
        state = newton(home, loss, tol=1e-7, max_iter=50)
        exact = primal.certified(LazyFeatures(kernel, X, labels, Z, T), loss, np.arange(1), state.V, (), state.n_iter)
        np.testing.assert_allclose(exact.objective, best.objective, rtol=1e-5 if dtype == np.float32 else 1e-6)


@precisions
def test_mapped_files_are_rows(dtype, tmp_path):
    """Read-only, and of a type that labels may have in a file."""
    problem = make(n=300, given="classes", codes=np.int8, dtype=dtype)
    mapped = []
    for name, array in (("X", problem.X), ("codes", problem.labels.codes), ("counts", problem.labels.counts)):
        np.save(tmp_path / f"{name}.npy", array)
        mapped.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    X, codes, counts = mapped
    labels = ClassLabels(codes, counts, problem.labels.side, problem.labels.cost)
    home = CoreFeatures(X, labels, dtype).set_features(problem.kernel, problem.Z, problem.T)
    for a, b in zip(*(every_sum(problem, h, np.arange(3)) for h in (home, problem.fused())), strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_does_not_fit_is_refused():
    problem = make(n=50)
    home = problem.fused()
    V, loss = problem.V, core_loss(problem.loss)
    for which, weights in (([0, 1], V), ([0, 1, 3], V), ([0, 1, -1], V), ([0, 1, 2], V[:, 1:])):
        with pytest.raises(ValueError, match=r"weights|output"):
            home.passes.equations(which, np.ascontiguousarray(weights), loss)
    for begin, end in ((-1, 5), (5, 4), (0, 51)):
        with pytest.raises(ValueError, match="rows"):
            home.passes.values([0, 1, 2], V, begin, end)
    for rows in ([-1], [50]):
        with pytest.raises(ValueError, match="row"):
            home.features(np.array(rows))
    with pytest.raises(ValueError, match="beta"):
        home.passes.pullback([0, 1, 2], V, np.ones((6, 3)), loss)
    with pytest.raises(ValueError, match="output"):
        home.passes.line([0, 1, 2], V, V, np.ones((2, 3)), loss)
    with pytest.raises(ValueError, match="each vector"):
        home.set_features(problem.kernel, problem.Z, problem.T[1:])
    with pytest.raises(ValueError, match="output"):
        home.passes.certificate([0, 1, 2], V, loss, [], np.ones(2), 0.0)
    few = RowLabels(np.ones((49, 1)), np.ones((49, 1)))
    with pytest.raises(ValueError, match="sides and costs"):
        CoreFeatures(problem.X, few)


@pytest.mark.parametrize("rows", [[-1], [50], [7, 3], [3, 3]], ids=str)
def test_known_duals_of_rows_that_are_not_there_are_refused(rows):
    """Row numbers ascend and are those of rows: anything else would be read or written beside the panels."""
    problem = make(n=50, outputs=1)
    known = [(np.array(rows, dtype=np.int64), np.ones(len(rows)))]
    with pytest.raises(ValueError, match="ascend"):
        problem.fused().total(CertificateSums(problem.loss), np.arange(1), problem.V, known, np.ones(1), 0.0)


# --- several threads of Python -------------------------------------------------------------------------------


def test_homes_of_several_python_threads():
    """Each with objects of its own, over the same arrays, all at once: the bits of one alone."""
    problems = [make(kernel, n=700, outputs=2, dtype=dtype) for kernel in KERNELS for dtype in (np.float64, np.float32)]
    alone = [every_sum(p, p.fused(), np.arange(2)) for p in problems]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(lambda p: every_sum(p, p.fused(2), np.arange(2)), problems * 3))
    finally:
        sys.setswitchinterval(before)
    for expected, found in zip(alone * 3, together, strict=True):
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_array_equal(a, b)


# --- numbers that are none -----------------------------------------------------------------------------------


@precisions
@pytest.mark.parametrize("layout", ["C", "csr"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e38])
@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_that_are_not_numbers_do_no_harm(kernel, bad, layout, dtype):
    """Nothing crashes, sums say so, and rows of other panels keep their features."""
    problem = make(kernel, dtype=dtype, n=100, layout=layout)
    X = dense(problem.X).astype(dtype)
    X[[3, 40]] = bad
    X = LAYOUTS[layout](X)
    plain = problem.fused()
    home = CoreFeatures(X, problem.labels, dtype).set_features(problem.kernel, problem.Z, problem.T)
    with np.errstate(all="ignore"):
        for found, whole in zip(
            every_sum(problem, home, np.arange(3)), every_sum(problem, plain, np.arange(3)), strict=True
        ):
            assert found.shape == whole.shape
    others = np.setdiff1d(np.arange(100), [3, 40])
    np.testing.assert_allclose(home.features(others), plain.features(others), rtol=1e-4, atol=1e-4)
    # The core's exponentials make 0 of what is not a number.
    if np.isnan(problem.kernel(dense(X)[[3]], problem.Z)).any():
        assert np.isnan(home.features(np.array([3]))).any()
        for loss in LOSSES.values():
            assert np.isnan(
                home.total(CertificateSums(loss), np.arange(3), problem.V, (), np.ones(3), 0.0)[0][:, 0]
            ).all()


def test_weights_that_are_not_numbers_do_no_harm():
    problem = make(n=100)
    V = problem.V.copy()
    V[1] = np.nan
    which = np.arange(3)
    found, expected = (problem.fused().total(Equations(problem.loss), which, at) for at in (V, problem.V))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a[[0, 2]], b[[0, 2]])
    assert np.isnan(found[0][1])
    first, _ = problem.fused().total(Line(problem.loss), which, V, problem.D, problem.t)
    assert np.isnan(first[1]).all()
    assert np.isfinite(first[[0, 2]]).all()


def test_rows_without_inputs_and_without_features():
    labels = RowLabels(np.ones((9, 1)), np.ones((9, 1)))
    home = CoreFeatures(np.ones((9, 2)), labels).set_features(kernels.Gaussian(1.0), np.empty((0, 2)), np.empty((0, 0)))
    value, moments, grams = home.total(Equations(losses.SquaredHinge()), np.arange(1), np.array([[0.25]]))
    np.testing.assert_allclose(value, 9 * 0.5 * 0.75**2)
    np.testing.assert_allclose(moments, [[9 * 0.75]])
    np.testing.assert_allclose(grams, [[[9.0]]])
    home = CoreFeatures(np.ones((9, 0)), labels).set_features(kernels.Linear(), np.ones((2, 0)), np.eye(2))
    np.testing.assert_array_equal(home.features(np.arange(9)), np.zeros((9, 2)))


# --- random problems -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_random_problems(seed):
    """Kinds of rows, labels and machines in combinations that nobody has thought of."""
    rng = np.random.default_rng(seed)
    layouts = ["C", "F", "strided", "backwards", "csr", "csr64"]
    problem = make(
        str(rng.choice(list(KERNELS))),
        str(rng.choice(list(LOSSES))),
        rng.choice([np.float64, np.float32]),
        n=int(rng.integers(1, 600)),
        outputs=int(rng.integers(1, 9)),
        vectors=int(rng.integers(1, 50)),
        features=int(rng.integers(1, 50)),
        layout=str(rng.choice(layouts)),
        given=str(rng.choice(["rows", "classes"])),
        codes=rng.choice([np.int8, np.int64]),
        broadcast=bool(rng.integers(2)),
        seed=seed,
    )
    home = problem.fused(threads=int(rng.integers(1, 4)), keep=float(rng.choice([0, 2**30])))
    check_all(problem, home)
    if hasattr(problem.kernel, "pulled") and problem.loss.smooth:
        check_pull(problem, home)


def test_a_fit_is_the_same_in_the_core_and_in_numpy():
    """The same kernel as a function of the user's goes through numpy all the way."""
    X, y = blobs(300, d=3, seed=1)
    kernel = kernels.Gaussian(0.3)
    own = kernels.Function(lambda A, B: kernel(A, B))
    assert dense(X).dtype == np.float64
    for loss in ("l1", "l2"):
        a, b = (SlimSVC(12, "forward", C=2.0, kernel=k, slack=loss).fit(X, y) for k in (kernel, own))
        np.testing.assert_allclose(a.objective_, b.objective_, rtol=2e-6)
