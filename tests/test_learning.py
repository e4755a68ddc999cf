"""Learned vectors: W(Z) is the conic reference's, its gradient that of finite differences, and learning lowers it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import kernel_table
import reference
import reference_bases as slow
from problems import blobs, three_classes
from slimsvm import bases, kernels, losses, regularizers
from slimsvm.basis import learning
from slimsvm.rows.labels import RowLabels
from slimsvm.rows.memory import DenseFeatures
from slimsvm.solvers.primal import solve as primal

KERNELS = kernel_table.examples(semidefinite=True)
KERNELS |= {"square": KERNELS.pop("poly"), "cube": kernels.Polynomial(0.2, 0.5, 3)}
ROUGH = kernel_table.names(smooth=False)
LOSSES = {type(loss).__name__: loss for loss in (losses.SquaredHinge(), losses.HuberHinge(), losses.Hinge())}
NORMS = {
    "kernel": regularizers.KernelNorm(1e-6),
    "ridge": regularizers.KernelNorm(1e-2),
    "identity": regularizers.Identity(),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
every_loss = pytest.mark.parametrize("loss", LOSSES)

# Every kernel with every loss in the kernel norm, and the other norms with the Gaussian kernel.
COMBINATIONS = [(kernel, loss, "kernel") for kernel in KERNELS for loss in LOSSES]
COMBINATIONS += [("rbf", loss, norm) for loss in LOSSES for norm in ("ridge", "identity")]
combinations = pytest.mark.parametrize(("kernel", "loss", "norm"), COMBINATIONS)
outputs = pytest.mark.parametrize(("classes", "weighted", "scaled"), [(2, False, False), (3, True, True)])
scalings = pytest.mark.parametrize("scaled", [False, True], ids=["fixed", "scaled"])


@dataclass(frozen=True)
class Problem:
    """Rows, and labels and costs of the machines that share the vectors."""

    kernel: Any
    X: Any
    Y: np.ndarray
    C: np.ndarray

    @property
    def labels(self):
        return RowLabels(self.Y, self.C)


def problem_of(kernel, X, codes, C):
    """One class against the others, each row of cost C."""
    machines = slow.outputs(codes, "ovr")
    Y = np.column_stack([labels for labels, _ in machines])
    return Problem(KERNELS[kernel] if isinstance(kernel, str) else kernel, X, Y, np.full(Y.shape, C))


def case(kernel, classes=2, weighted=False, n=60, C=3.0, container=np.asarray):
    """Rows with two or three classes; some weights are zero in some outputs."""
    X, codes = three_classes(n, seed=2)
    X = np.c_[X, X[:, :1] * X[:, 1:] / 2]
    X[np.abs(X) < 0.2] = 0
    codes = np.minimum(codes, classes - 1)
    problem = problem_of(kernel, container(X), codes, C)
    if not weighted:
        return problem
    rng = np.random.default_rng(1)
    cost = problem.C * rng.uniform(0.1, 3.0, size=problem.C.shape)
    cost[rng.random(cost.shape) < 0.2] = 0
    return replace(problem, C=cost)


def start(problem, m=4, seed=3):
    """Vectors beside the rows, and scales."""
    rng = np.random.default_rng(seed)
    X = bases.dense(problem.X)
    return X[rng.choice(len(X), m, replace=False)] + 0.1 * rng.normal(size=(m, X.shape[1])), np.exp(
        0.3 * rng.normal(size=X.shape[1])
    )


def matrices(problem, Z, scales=None):
    """k(X, Z), k(Z, Z) of the textbook."""
    X = bases.dense(problem.X)
    s = 1.0 if scales is None else scales
    params = problem.kernel.get_params()
    return tuple(reference.kernel_matrix(problem.kernel.name, A * s, Z * s, **params) for A in (X, Z))


def penalty(norm, Kz):
    return np.eye(len(Kz)) if norm == "identity" else Kz + NORMS[norm].epsilon * np.eye(len(Kz))


def value_by_solver(problem, Z, scales, loss, norm):
    """W(Z) for each unit of cost, from the textbook's kernel and the feature-space solver (itself tested elsewhere)."""
    K, Kz = matrices(problem, Z, scales)
    P = K @ slow.inverse_root(penalty(norm, Kz))
    return primal.solve(DenseFeatures(P, problem.labels), LOSSES[loss], tol=1e-11).objective.sum() / problem.C.sum()


def value_by_reference(problem, Z, scales, loss, norm):
    K, Kz = matrices(problem, Z, scales)
    R = penalty(norm, Kz)
    parts = [slow.machine(K, R, problem.Y[:, o], problem.C[:, o], loss).value for o in range(problem.Y.shape[1])]
    return sum(parts) / problem.C.sum()


def forms(problem, loss):
    """The objective in numpy, and the one in the core where it serves."""
    return list(dict.fromkeys([learning.objective_for(problem.kernel, LOSSES[loss]), learning.Objective]))


def objective_of(problem, loss, norm, m=4, scaled=False, form=None):
    """The objective that learning takes, or one of the forms."""
    form = form or forms(problem, loss)[0]
    return form(problem.kernel, problem.X, problem.labels, LOSSES[loss], NORMS[norm], m, scaled)


def test_which_form_serves():
    """The core's for its kernels with a derivative of its own and smooth losses of three pieces."""
    own = kernels.Function(lambda A, B: A @ B.T)
    for kernel in set(KERNELS) - set(ROUGH):
        assert learning.objective_for(KERNELS[kernel], LOSSES["HuberHinge"]) is learning.FusedObjective
        assert learning.objective_for(KERNELS[kernel], LOSSES["Hinge"]) is learning.Objective
        assert learning.objective_for(KERNELS[kernel], losses.Between()) is learning.Objective
    for kernel in (*(KERNELS[name] for name in ROUGH), own):
        assert learning.objective_for(kernel, LOSSES["SquaredHinge"]) is learning.Objective


# --- Value and gradient --------------------------------------------------------------------------------------


@outputs
@combinations
def test_value_is_the_reference(kernel, loss, norm, scaled, classes, weighted):
    problem = case(kernel, classes, weighted)
    Z, scales = start(problem)
    scales = scales if scaled else None
    expected = value_by_reference(problem, Z, scales, loss, norm)
    for form in forms(problem, loss):
        objective = objective_of(problem, loss, norm, scaled=scaled, form=form)
        value, _ = objective(objective.pack(Z, scales))
        assert value == pytest.approx(expected, rel=1e-7)


def five_points(value, theta, step):
    """Differences of fourth order."""
    wide, narrow = (slow.numerical_gradient(value, theta, s) for s in (2 * step, step))
    return (4 * narrow - wide) / 3


@outputs
@combinations
def test_gradient_is_that_of_finite_differences(kernel, loss, norm, scaled, classes, weighted):
    problem = case(kernel, classes, weighted, n=30)
    Z, scales = start(problem, m=2)
    objective = objective_of(problem, loss, norm, m=2, scaled=scaled)
    theta = objective.pack(Z, scales)

    def value(theta):
        return value_by_solver(problem, *objective.unpack(theta), loss, norm)

    # The hinge's value has the rounding of an interior point: wider steps. None may cross a row's coordinate, where
    # a kernel of absolute differences has a corner.
    if loss == "Hinge":
        step, tolerance = (1e-5, 1e-4) if kernel in ROUGH else (1e-4, 1e-5)
        expected = five_points(value, theta, step)
    else:
        expected, tolerance = slow.numerical_gradient(value, theta, 1e-5), 1e-5
    for form in forms(problem, loss):
        _, gradient = objective_of(problem, loss, norm, m=2, scaled=scaled, form=form)(theta)
        assert np.linalg.norm(gradient - expected) <= tolerance * np.linalg.norm(expected)


@scalings
@every_loss
@every_kernel
def test_sparse_rows_have_the_same_value_and_gradient(kernel, loss, scaled):
    dense, sparse = (case(kernel, 3, True, container=c) for c in (np.asarray, sp.csr_array))
    Z, scales = start(dense)
    results = []
    for problem in (dense, sparse):
        objective = objective_of(problem, loss, "kernel", scaled=scaled)
        results.append(objective(objective.pack(Z, scales)))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-8)
    scale = np.abs(results[0][1]).max()
    np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-6 * scale)


def test_the_last_solution_as_a_start_changes_nothing():
    """Warm or cold, the value and the gradient are those of the point."""
    problem = case("rbf", 3)
    Z, _ = start(problem)
    warm = objective_of(problem, "SquaredHinge", "kernel")
    for shift in (1.0, 0.1, 0.01):
        warm(warm.pack(Z + shift, None))
    cold = objective_of(problem, "SquaredHinge", "kernel")
    for mine, other in zip(warm(warm.pack(Z, None)), cold(cold.pack(Z, None)), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-9)


def test_pack_and_unpack():
    problem = case("rbf")
    Z, scales = start(problem)
    objective = objective_of(problem, "SquaredHinge", "kernel", scaled=True)
    again = objective.unpack(objective.pack(Z, scales))
    np.testing.assert_allclose(again[0], Z)
    np.testing.assert_allclose(again[1], scales)


def test_units_of_cost_do_not_matter():
    """W is per unit of cost: twice the rows, the same W."""
    problem = case("rbf")
    twice = Problem(problem.kernel, *(np.concatenate([v, v]) for v in (problem.X, problem.Y, problem.C / 2)))
    Z, _ = start(problem)
    one, two = (objective_of(p, "SquaredHinge", "kernel") for p in (problem, twice))
    for a, b in zip(one(one.pack(Z, None)), two(two.pack(Z, None)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-10)


# --- Learning ------------------------------------------------------------------------------------------------


def learn(problem, Z, loss="SquaredHinge", norm="kernel", seed=0, **options):
    kernel, X, labels, rng = problem.kernel, problem.X, problem.labels, np.random.default_rng(seed)
    return learning.learn(kernel, X, labels, Z, LOSSES[loss], rng, regularizer=NORMS[norm], **options)


@outputs
@combinations
def test_learning_lowers_the_objective(kernel, loss, norm, scaled, classes, weighted):
    """The value reported is W at the vectors reported, and lower than at the start; so are the machines' values."""
    problem = case(kernel, classes, weighted)
    Z, _ = start(problem)
    found = learn(problem, Z, loss, norm, learn_scales=scaled, max_iter=6)
    assert found.vectors.shape == Z.shape
    assert (found.scales is not None) == scaled
    assert found.n_iter <= 6
    assert found.value < value_by_solver(problem, Z, None, loss, norm)
    exact = value_by_solver(problem, found.vectors, found.scales, loss, norm)
    assert found.value == pytest.approx(exact, rel=1e-6)
    K, Kz = matrices(problem, found.vectors, found.scales)
    reached = sum(
        0.5 * beta @ penalty(norm, Kz) @ beta + slow.loss_value(loss, K @ beta + b, problem.Y[:, o], problem.C[:, o])
        for o, (beta, b) in enumerate(zip(found.coef, found.bias, strict=True))
    )
    assert reached / problem.C.sum() == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("scaled", [False, True])
def test_of_several_starts_the_lowest_objective_goes_on(scaled, count):
    """So it may from vectors that are known: those of another run, where they have a lower one."""
    problem = case("rbf", n=120)
    starts = [problem.X[k : k + 4] for k in range(count)]
    heads = [learn(problem, Z, learn_scales=scaled, max_iter=6) for Z in starts[::2]]
    seen = []
    found = learn(problem, starts, learn_scales=scaled, max_iter=20, callback=lambda i, value: seen.append(i))
    assert found.value <= min(head.value for head in heads)
    assert found.n_iter <= 20
    assert max(seen) == found.n_iter
    known = min((learn(problem, Z, learn_scales=scaled, max_iter=100) for Z in starts), key=lambda run: run.value)
    better = learn(problem, starts, learn_scales=scaled, max_iter=20, search_vectors=[known])
    assert better.value <= known.value * (1 + 1e-9)
    again = learn(problem, starts, learn_scales=scaled, max_iter=20)
    np.testing.assert_array_equal(again.vectors, found.vectors)


def test_new_scales_do_not_vanish_at_once():
    """An input that counts only with others still has a gradient when the vectors have found these."""
    problem = case("rbf", n=120)
    watched = []
    original = learning.FusedObjective.__call__

    def call(self, theta):
        watched.append(np.exp(theta[self.count * self.n_features :]).min())
        return original(self, theta)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning.FusedObjective, "__call__", call)
        learn(problem, start(problem)[0], learn_scales=True, max_iter=40)
    assert min(watched[:20]) >= np.exp(-learning.EARLY_MAX_LOG_DECREASE) * (1 - 1e-12)


def test_learning_ends_where_the_gradient_does():
    problem = case("rbf", n=120)
    Z, _ = start(problem, m=3)
    found = learn(problem, Z, max_iter=500)
    objective = objective_of(problem, "SquaredHinge", "kernel", m=3)
    begin, end = (np.abs(objective(objective.pack(v, None))[1]).max() for v in (Z, found.vectors))
    assert end < 1e-3 * begin


def test_no_iterations_leave_the_vectors_in_place():
    problem = case("rbf")
    Z, _ = start(problem)
    found = learn(problem, Z, max_iter=0)
    np.testing.assert_allclose(found.vectors, Z, atol=1e-12)
    assert found.value == pytest.approx(value_by_solver(problem, Z, None, "SquaredHinge", "kernel"), rel=1e-6)


def test_linear_vectors_that_span_the_inputs_cannot_be_improved():
    """W over any three independent vectors is the objective of the linear machine itself."""
    problem = case("linear")
    Z, _ = start(problem, m=3)
    found = learn(problem, Z, max_iter=30)
    whole = slow.linear_machine(problem.X, problem.Y[:, 0], problem.C[:, 0], "SquaredHinge").value
    assert found.value * problem.C.sum() == pytest.approx(whole, rel=1e-4)


def test_more_vectors_are_never_worse_than_some_of_them():
    problem = case("rbf")
    Z, _ = start(problem, m=6)
    values = [value_by_reference(problem, Z[:m], None, "SquaredHinge", "ridge") for m in (2, 4, 6)]
    found = [objective_of(problem, "SquaredHinge", "ridge", m) for m in (2, 4, 6)]
    np.testing.assert_allclose([o(o.pack(Z[: o.count], None))[0] for o in found], values, rtol=1e-7)
    assert values[0] > values[1] > values[2]


@pytest.mark.parametrize("kernel", kernel_table.names(radial=True))
@pytest.mark.parametrize("dead", [1, 3, 5])
def test_dead_vectors_are_revived(kernel, dead):
    """Vectors so far out that no row sees them have no gradient; at the end each one is seen, and W is as low."""
    problem = case(kernel, n=120)
    Z, _ = start(problem, m=5)
    healthy = learn(problem, Z, max_iter=40)
    lost = Z.copy()
    lost[:dead] += 1e3 * (1 + np.arange(dead)[:, None])
    found = learn(problem, lost, max_iter=40)
    assert np.abs(matrices(problem, found.vectors)[0]).max(axis=0).min() > 1e-3
    assert found.value <= 1.15 * healthy.value


@scalings
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", ["SquaredHinge", "Hinge"])
def test_equal_vectors_are_separated(loss, container, scaled):
    problem = case("rbf", n=90, container=container)
    Z = np.repeat(bases.dense(problem.X)[:1], 4, axis=0)
    found = learn(problem, Z, loss, max_iter=25, learn_scales=scaled)
    assert len(np.unique(found.vectors, axis=0)) == 4
    assert np.linalg.matrix_rank(matrices(problem, found.vectors, found.scales)[1], tol=1e-8) == 4
    healthy = learn(problem, start(problem)[0], loss, max_iter=25, learn_scales=scaled)
    assert found.value <= 1.3 * healthy.value


@pytest.mark.parametrize("offset", [1e2, 1e4])
@pytest.mark.parametrize("kernel", kernel_table.names(radial=True))
def test_a_common_offset_changes_nothing(kernel, offset):
    """The kernel sees differences only. Eighths plus an offset are exact in float64, so the path is the same."""
    X, y = blobs(80, d=3, seed=4)
    codes = (y > 0).astype(int)
    near = problem_of(kernel, X, codes, 3.0)
    far = replace(near, X=X + offset)
    one, other = learn(near, X[:4], max_iter=15), learn(far, X[:4] + offset, max_iter=15)
    assert other.value == pytest.approx(one.value, rel=1e-4)
    np.testing.assert_allclose(other.vectors - offset, one.vectors, atol=1e-2)


def test_scales_find_the_inputs_that_matter():
    """Two of eight inputs carry the label: their scales end above all others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    codes = (np.sin(2 * X[:, 0]) + X[:, 1] > 0).astype(int)
    problem = problem_of(kernels.Gaussian(1 / 8), X, codes, 3.0)
    fixed = learn(problem, X[:6], max_iter=60)
    found = learn(problem, X[:6], max_iter=60, learn_scales=True)
    assert found.value < fixed.value
    assert min(found.scales[:2]) > 2 * max(found.scales[2:])


def test_learning_goes_on_from_earlier_scales():
    problem = case("rbf")
    Z, _ = start(problem)
    first = learn(problem, Z, max_iter=10, learn_scales=True)
    more = learn(problem, first, max_iter=10, learn_scales=True)
    assert more.value <= first.value * (1 + 1e-9)


def test_the_watcher_counts_iterations():
    problem = case("rbf")
    seen = []
    found = learn(problem, start(problem)[0], max_iter=9, callback=lambda i, value: seen.append((i, value)))
    assert [i for i, _ in seen] == list(range(1, found.n_iter + 1))
    assert seen[-1][1] == pytest.approx(found.value, rel=1e-6)
    assert (np.diff([value for _, value in seen]) <= 0).all()


def test_the_start_and_the_rows_are_left_as_they_are():
    problem = case("rbf")
    Z, _ = start(problem)
    before = Z.copy(), problem.X.copy()
    learn(problem, Z, max_iter=5, learn_scales=True)
    np.testing.assert_array_equal(Z, before[0])
    np.testing.assert_array_equal(problem.X, before[1])


@pytest.mark.parametrize("m", [1, 2, 80])
def test_one_vector_and_more_vectors_than_rows(m):
    problem = case("rbf", n=60)
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(m, 3))
    found = learn(problem, Z, max_iter=8)
    assert found.vectors.shape == (m, 3)
    assert np.isfinite(found.vectors).all()
    assert found.value <= value_by_solver(problem, Z, None, "SquaredHinge", "kernel") * (1 + 1e-9)


@pytest.mark.parametrize("C", [1e-4, 1e4])
@pytest.mark.parametrize("loss", LOSSES)
def test_learning_at_extreme_costs(loss, C):
    problem = case("rbf", n=60, C=C)
    Z, _ = start(problem)
    found = learn(problem, Z, loss, max_iter=10)
    assert np.isfinite(found.vectors).all()
    assert found.value <= value_by_solver(problem, Z, None, loss, "kernel") * (1 + 1e-7)


# --- float32, where rows are many ----------------------------------------------------------------------------


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@scalings
@every_kernel
def test_float32_rows_have_nearly_the_same_value_and_gradient(kernel, scaled, container):
    double = case(kernel, 3, True, container=container)
    single = replace(double, X=double.X.astype(np.float32))
    Z, scales = start(double, m=2)
    results = []
    for problem in (double, single):
        objective = objective_of(problem, "SquaredHinge", "kernel", m=2, scaled=scaled)
        results.append(objective(objective.pack(Z, scales)))
    assert results[1][0] == pytest.approx(results[0][0], rel=1e-4)
    assert np.linalg.norm(results[1][1] - results[0][1]) <= 5e-3 * np.linalg.norm(results[0][1])


@pytest.mark.parametrize("offset", [0.0, 1e4])
@scalings
@pytest.mark.parametrize("loss", ["SquaredHinge", "HuberHinge"])
@pytest.mark.parametrize("kernel", [*kernel_table.names(radial=True), "square", "linear"])
def test_learning_in_float32_reaches_nearly_the_same_value(kernel, loss, scaled, offset, monkeypatch):
    if offset and kernel in ("square", "linear"):
        offset = 1.0  # these kernels see where the origin is
    problem = case(kernel, n=90)
    problem = replace(problem, X=problem.X + offset)
    Z, _ = start(problem)
    double = learn(problem, Z, loss, max_iter=20, learn_scales=scaled)
    monkeypatch.setattr(learning, "LEARNING_FLOAT64_ROWS", 10)
    single = learn(problem, Z, loss, max_iter=20, learn_scales=scaled)
    assert np.isfinite(single.vectors).all()
    exact = value_by_solver(problem, single.vectors, single.scales, loss, "kernel")
    assert single.value == pytest.approx(exact, rel=1e-2)
    assert exact <= 1.1 * double.value
