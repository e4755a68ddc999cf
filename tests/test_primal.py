"""Linear machines over features: the conic reference's answer, certified, for every loss on kind and unkind data."""

from __future__ import annotations

import numpy as np
import pytest

import reference
import reference_bases as slow
from problems import blobs, signs
from slimsvm import kernels, losses, regularizers
from slimsvm.rows import memory
from slimsvm.rows.labels import RowLabels
from slimsvm.rows.memory import CoreFeatures, DenseFeatures, LazyFeatures, feature_source
from slimsvm.rows.protocol import decision
from slimsvm.solvers.certificate import balanced
from slimsvm.solvers.primal import interior, interior_point
from slimsvm.solvers.primal import solve as primal

COSTS = [1e-6, 1e-2, 1.0, 1e3, 1e6]
GAP = 1e-8
LOSSES = [loss() for loss in losses.ALL]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)


def name_of(loss):
    return type(loss).__name__


def test_every_loss_has_a_reference():
    assert {loss.__name__ for loss in losses.ALL} == set(slow.LOSSES)


# --- Problems: features, labels, weights ---------------------------------------------------------------------


def random(n=60, m=7, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.normal(size=(n, m))
    return P, signs(rng, P[:, 0] + P[:, -1] ** 2 * (m > 1)), np.ones(n)


def kernel_features():
    """Features as they come from a basis: columns that almost coincide, singular values over eight orders."""
    X, y = blobs(60, d=2, seed=2)
    Z = X[:12] + 1e-3 * X[12:24]
    Z[6:] = Z[:6] + 1e-4
    gram = reference.kernel_matrix("rbf", Z, Z, gamma=0.3)
    return reference.kernel_matrix("rbf", X, Z, gamma=0.3) @ slow.inverse_root(gram), y, np.ones(60)


def duplicates():
    P, y, _ = random(12, 4, seed=1)
    return np.tile(P, (5, 1)), np.tile(y, 5), np.ones(60)


def opposite_duplicates():
    P, _, _ = random(20, 4, seed=2)
    return np.vstack([P, P]), np.repeat([1.0, -1.0], 20), np.ones(40)


def rank_deficient():
    P, y, w = random(50, 3, seed=3)
    return np.c_[P, P[:, :2], P @ np.ones(3), 3 * P[:, 0]], y, w


def constant_feature():
    """It does what the bias does, at a price."""
    P, y, w = random(50, 4, seed=4)
    return np.c_[P, np.full(50, 2.0)], y, w


def zero_feature():
    P, y, w = random(30, 3, seed=14)
    return np.c_[P, np.zeros(30)], y, w


def all_zero():
    """Only the bias is left."""
    return np.zeros((21, 3)), np.where(np.arange(21) < 8, 1.0, -1.0), np.ones(21)


def separable():
    P, _, w = random(60, 5, seed=5)
    y = np.where(P[:, 0] > 0, 1.0, -1.0)
    P[:, 0] += 0.5 * y
    return P, y, w


def one_positive():
    P, _, w = random(60, 5, seed=6)
    return P, np.where(np.arange(60) == 17, 1.0, -1.0), w


def fewer_rows_than_features():
    return random(10, 25, seed=7)


def two_rows():
    return np.array([[1.0, 2.0], [0.5, -1.0]]), np.array([1.0, -1.0]), np.ones(2)


def one_feature():
    return random(60, 1, seed=8)


def far_weights():
    P, y, _ = random(60, 5, seed=9)
    return P, y, 10.0 ** np.random.default_rng(9).uniform(-3, 3, 60)


def far_features():
    """Columns over six orders of magnitude, and an offset."""
    P, y, w = random(60, 6, seed=10)
    return P * 10.0 ** np.arange(-3, 3) + 5, y, w


PROBLEMS = {
    problem.__name__: problem
    for problem in (
        random,
        kernel_features,
        duplicates,
        opposite_duplicates,
        rank_deficient,
        constant_feature,
        zero_feature,
        all_zero,
        separable,
        one_positive,
        fewer_rows_than_features,
        two_rows,
        one_feature,
        far_weights,
        far_features,
    )
}
every_problem = pytest.mark.parametrize("problem", PROBLEMS)


def solve(P, Y, C, loss, start=None, **options):
    """Machines over features in memory."""
    return primal.solve(DenseFeatures(P, RowLabels(Y, C)), loss, start, **options)


def duals_of(P, y, C, loss, solution, o=0):
    """Signed duals that prove an output's gap: those that are known, else those at the decision values; balanced."""
    F = decision(P.astype(np.float64), solution.V[[o]])
    a = loss.duals(F, y[:, None], C[:, None])[:, 0]
    rows, known = solution.known_duals[o]
    a[rows] = known
    return balanced(a)


def check_solved(P, y, C, loss, solution, o=0, optimum=None, gap=GAP):
    """Certified in plain numpy, and the reference's value and weights: |w - w*|^2 / 2 <= value - value*."""
    name, w, bias, a = name_of(loss), solution.w[:, o], solution.bias[o], duals_of(P, y, C, loss, solution, o)
    value, dual, infeasible = slow.certificate(P, y, C, name, w, bias, a)
    assert infeasible <= 1e-12
    assert solution.gap[o] <= gap
    assert value - dual <= (gap + 1e-11) * abs(dual)
    assert solution.objective[o] == pytest.approx(value, rel=1e-10)
    if optimum is not None:
        assert value <= optimum.value * (1 + 1e-7)
        assert value >= optimum.value * (1 - 1e-7)
        assert np.linalg.norm(w - optimum.w) <= np.sqrt(2 * 2e-7 * value) + 1e-9


@pytest.mark.parametrize("C", COSTS)
@every_problem
@every_loss
def test_the_reference_agrees(loss, problem, C):
    P, y, weight = PROBLEMS[problem]()
    cost = C * weight
    solution = solve(P, y[:, None], cost[:, None], loss)
    check_solved(P, y, cost, loss, solution, optimum=slow.linear_machine(P, y, cost, name_of(loss)))
    if not loss.smooth:
        assert solution.n_iter[0] <= 40


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize(
    "problem", ["random", "constant_feature", "far_weights", "one_positive", "opposite_duplicates"]
)
@every_loss
def test_the_bias_is_among_the_best(loss, problem, C):
    """At the weights found, no other bias costs less; where the best is one point, it is the reference's."""
    P, y, weight = PROBLEMS[problem]()
    cost = C * weight
    solution = solve(P, y[:, None], cost[:, None], loss)
    f, b = P @ solution.w[:, 0], solution.bias[0]
    low, high, least = reference.best_bias(lambda b: slow.loss_value(name_of(loss), f + b, y, cost), y - f)
    assert slow.loss_value(name_of(loss), f + b, y, cost) <= least + 1e-8 * solution.objective[0]
    # A value within 1e-8 leaves room for the bias; 1e-3 is that of a curvature of one row with weight 1e-3.
    assert low - 1e-3 <= b <= high + 1e-3


@every_loss
def test_outputs_together_equal_one_by_one(loss):
    """Each output with its own labels, costs, and rows that take no part (C = 0)."""
    P, y, _ = random(80, 6, seed=11)
    rng = np.random.default_rng(11)
    Y = np.stack([y, np.where(P[:, 1] > 0, 1.0, -1.0), signs(rng, P[:, 2]), signs(rng, P[:, 3])], axis=1)
    C = np.array([0.01, 1.0, 100.0, 1e4]) * rng.uniform(0.5, 2, size=Y.shape)
    C[rng.random(C.shape) < 0.3] = 0
    Y[C == 0] = 0
    together = solve(P, Y, C, loss)
    for o in range(4):
        used = C[:, o] > 0
        alone = solve(P[used], Y[used, o, None], C[used, o, None], loss)
        assert together.objective[o] == pytest.approx(alone.objective[0], rel=2 * GAP)
        reach = 2 * np.sqrt(2 * GAP * alone.objective[0])
        np.testing.assert_allclose(together.w[:, o], alone.w[:, 0], atol=reach)
        assert not duals_of(P, Y[:, o], C[:, o], loss, together, o)[~used].any()
        optimum = slow.linear_machine(P, Y[:, o], C[:, o], name_of(loss))
        check_solved(P, Y[:, o], C[:, o], loss, together, o, optimum)


@every_loss
def test_rows_without_cost_take_no_part(loss):
    """Their features, however large, change nothing, whatever their label says."""
    P, y, _ = random(60, 5, seed=12)
    C = np.where(np.arange(60) % 4 == 0, 0.0, 2.0)
    wild = P.copy()
    wild[C == 0] *= 1e6
    for labels in (np.where(C > 0, y, 0), np.where(C > 0, y, -y)):
        solution = solve(wild, labels[:, None], C[:, None], loss)
        alone = solve(P[C > 0], y[C > 0, None], C[C > 0, None], loss)
        np.testing.assert_allclose(solution.w, alone.w, atol=1e-6)
        np.testing.assert_allclose(solution.objective, alone.objective, rtol=1e-7)


@every_loss
def test_a_weight_is_a_number_of_copies(loss):
    P, y, _ = random(40, 5, seed=13)
    copies = 1 + np.arange(40) % 4
    weighted = solve(P, y[:, None], 3.0 * copies[:, None], loss)
    repeated = solve(np.repeat(P, copies, axis=0), np.repeat(y, copies)[:, None], np.full((copies.sum(), 1), 3.0), loss)
    np.testing.assert_allclose(weighted.objective, repeated.objective, rtol=2e-8)
    np.testing.assert_allclose(weighted.w, repeated.w, atol=2 * np.sqrt(4e-8 * weighted.objective[0]))


@every_loss
def test_a_rotation_of_the_features_rotates_the_weights(loss):
    P, y, _ = random(50, 6, seed=15)
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    Y, C = y[:, None], np.full((50, 1), 5.0)
    plain, turned = solve(P, Y, C, loss), solve(P @ Q, Y, C, loss)
    np.testing.assert_allclose(turned.objective, plain.objective, rtol=2e-8)
    np.testing.assert_allclose(Q @ turned.w, plain.w, atol=2 * np.sqrt(4e-8 * plain.objective[0]))


@every_loss
def test_flipping_the_labels_flips_the_machine(loss):
    P, y, _ = random(50, 6, seed=16)
    Y, C = y[:, None], np.full((50, 1), 5.0)
    plain, flipped = solve(P, Y, C, loss), solve(P, -Y, C, loss)
    np.testing.assert_allclose(flipped.objective, plain.objective, rtol=2e-8)
    np.testing.assert_allclose(flipped.w, -plain.w, atol=2 * np.sqrt(4e-8 * plain.objective[0]))


@pytest.mark.parametrize("start", ["zero", "solution", "far"])
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.smooth], ids=name_of)
def test_any_start_ends_at_the_solution(loss, start):
    P, y, _ = random(60, 5, seed=17)
    Y, C = y[:, None], np.full((60, 1), 10.0)
    cold = solve(P, Y, C, loss)
    far = np.append(np.full(5, 1e4), -1e5)
    V = {"zero": 0 * cold.V, "solution": cold.V, "far": cold.V + far}[start]
    warm = solve(P, Y, C, loss, V)
    check_solved(P, y, C[:, 0], loss, warm)
    np.testing.assert_allclose(warm.objective, cold.objective, rtol=2e-8)
    if start == "solution":
        assert warm.n_iter[0] <= 2


# --- Blocks of rows ------------------------------------------------------------------------------------------


def basis_problem(n=300, seed=3):
    X, y = blobs(n, d=3, seed=seed)
    Z = X[:9]
    kernel = kernels.Gaussian(0.4)
    return kernel, X, y, Z, regularizers.KernelNorm().whitening(kernel(Z, Z))


@pytest.mark.parametrize("block_bytes", [1, 9 * 8 * 7, 9 * 8 * 299])
@every_loss
def test_streamed_blocks_give_the_same_as_stored_features(loss, block_bytes, monkeypatch):
    kernel, X, y, Z, T = basis_problem(80 if block_bytes == 1 else 300)
    Y, C = y[:, None], np.full((len(y), 1), 20.0)
    stored = solve(kernel(X, Z) @ T, Y, C, loss)
    monkeypatch.setattr(memory, "BLOCK_BYTES", block_bytes)
    computed = LazyFeatures(kernel, X, RowLabels(Y, C), Z, T)
    fused = CoreFeatures(X, RowLabels(Y, C), cache_bytes=0).set_features(kernel, Z, T)
    for streamed in (computed, fused):
        assert len(list(streamed.blocks())) == len(memory.row_blocks(len(y), 72)) > 1
        found = primal.solve(streamed, loss)
        np.testing.assert_allclose(found.objective, stored.objective, rtol=2e-8)
        reach = 2 * np.sqrt(4e-8 * stored.objective[0])
        np.testing.assert_allclose(found.w, stored.w, atol=reach)
        assert found.gap[0] <= GAP


def test_blocks_cover_every_row_once(monkeypatch):
    kernel, X, y, Z, T = basis_problem(101)
    expected = kernel(X, Z) @ T
    labels = RowLabels(y[:, None], np.ones((101, 1)))
    for size in (1, 71, 72, 73, 720, 10**9):
        monkeypatch.setattr(memory, "BLOCK_BYTES", size)
        for some in (
            DenseFeatures(expected, labels),
            LazyFeatures(kernel, X, labels, Z, T),
            CoreFeatures(X, labels).set_features(kernel, Z, T),
            CoreFeatures(X, labels, cache_bytes=0).set_features(kernel, Z, T),
        ):
            blocks = list(some.blocks())
            sizes = [len(block.features()) for block in blocks]
            assert [block.first for block in blocks] == [0, *np.cumsum(sizes)[:-1]]
            assert sum(sizes) == 101
            np.testing.assert_allclose(np.vstack([block.features() for block in blocks]), expected, atol=1e-12)
            assert all(block.features().nbytes <= max(size, 72) for block in blocks)
            sides = np.vstack([block.labels(np.array([0]))[0] for block in blocks])
            np.testing.assert_array_equal(sides, y[:, None])
            rows = np.array([3, 7, 99])
            np.testing.assert_allclose(some.features(rows), expected[rows], atol=1e-12)


def test_features_are_stored_only_within_the_memory(monkeypatch):
    kernel, X, y, Z, T = basis_problem(100)
    labels = RowLabels(y[:, None], np.ones((100, 1)))
    monkeypatch.setattr(memory, "BLOCK_BYTES", 1000)
    own = kernels.Function(lambda A, B: kernel(A, B))
    assert isinstance(feature_source(own, X, labels, Z, T, cache_bytes=100 * 9 * 8), DenseFeatures)
    assert isinstance(feature_source(own, X, labels, Z, T, cache_bytes=100 * 9 * 8 - 1), LazyFeatures)
    assert isinstance(feature_source(own, X, labels, Z, T, np.float32, cache_bytes=100 * 9 * 4), DenseFeatures)
    assert isinstance(feature_source(kernel, X, labels, Z, T, cache_bytes=100 * 9 * 8), CoreFeatures)


@pytest.mark.parametrize("weights", ["some", "equal", "none"])
@pytest.mark.parametrize("kept", [True, False])
def test_sums_over_some_rows_are_those_of_the_whole_matrix(monkeypatch, kept, weights):
    """[P 1]'u, [P 1]' diag(h) [P 1] and [P 1] v of the rows that an interior point takes out of a home."""
    rng = np.random.default_rng(0)
    P, u, v = rng.normal(size=(90, 5)), rng.normal(size=40), rng.normal(size=6)
    numbers = np.sort(rng.choice(90, 40, replace=False))
    h = {"some": np.maximum(rng.normal(size=40), 0), "equal": np.full(40, 0.25), "none": np.zeros(40)}[weights]
    one = np.c_[P, np.ones(90)][numbers]
    monkeypatch.setattr(interior_point, "MAX_FEATURE_BYTES", 8 * 40 * 5 - (not kept))
    for size in (10**9, 111):
        monkeypatch.setattr(memory, "BLOCK_BYTES", size)
        some = interior_point.Members(DenseFeatures(P, RowLabels(np.ones((90, 1)), np.ones((90, 1)))), numbers)
        assert (some.kept is not None) == kept
        pull, gram = some.equations(u, h)
        np.testing.assert_allclose(pull, u @ one, atol=1e-12)
        np.testing.assert_allclose(gram, one.T @ (h[:, None] * one), atol=1e-12)
        np.testing.assert_allclose(some.moments(u), pull, atol=1e-12)
        np.testing.assert_allclose(some.values(v), one @ v, atol=1e-12)


@pytest.mark.parametrize("C", [0.1, 10.0, 1e3])
@every_loss
def test_float32_features(loss, C):
    """The same numbers in float32: the certificate is that of float64 arithmetic, the value close to the best."""
    X, y = blobs(400, d=3, seed=5)
    kernel, Z = kernels.Gaussian(0.4), X[:12]
    T = regularizers.KernelNorm().whitening(kernel(Z, Z))
    P = (kernel(X, Z) @ T).astype(np.float32)
    Y, cost = y[:, None], np.full((400, 1), C)
    solution = solve(P, Y, cost, loss, tol=1e-6)
    exact = solve(P.astype(np.float64), Y, cost, loss)
    value, dual, infeasible = slow.certificate(
        P, y, cost[:, 0], name_of(loss), solution.w[:, 0], solution.bias[0], duals_of(P, y, cost[:, 0], loss, solution)
    )
    assert infeasible <= 1e-12
    assert solution.gap[0] == pytest.approx((value - dual) / dual, abs=1e-9)
    assert solution.gap[0] <= 1e-5
    assert solution.objective[0] == pytest.approx(exact.objective[0], rel=1e-5)


# --- Regularisers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "regularizer", [regularizers.KernelNorm(), regularizers.KernelNorm(1e-3), regularizers.Identity()]
)
@pytest.mark.parametrize("rank", [12, 4])
def test_whitening(regularizer, rank):
    """T'RT = I, and T spans the range of R."""
    A = np.random.default_rng(0).normal(size=(12, rank))
    gram = A @ A.T
    T = regularizer.whitening(gram)
    R = np.eye(12) if regularizer == regularizers.Identity() else gram + (regularizer.epsilon or 0) * np.eye(12)
    np.testing.assert_allclose(T.T @ R @ T, np.eye(T.shape[1]), atol=1e-7)
    assert T.shape[1] == np.linalg.matrix_rank(R)


def test_whitening_of_vectors_that_nearly_coincide():
    """Neither a crash nor a lost direction that matters: features reproduce k(x, Z) R^+ k(Z, x)."""
    X, _ = blobs(40, d=2, seed=2)
    for step in (1e-2, 1e-4, 1e-6, 1e-9, 0.0):
        Z = np.vstack([X[:6], X[:6] + step])
        K, G = kernels.Gaussian(0.4)(X, Z), kernels.Gaussian(0.4)(Z, Z)
        P = K @ regularizers.KernelNorm().whitening(G)
        assert np.isfinite(P).all()
        assert (P**2).sum(axis=1).max() <= 1 + 1e-3  # a projection of a vector of norm 1


# --- Losses --------------------------------------------------------------------------------------------------


@every_loss
def test_losses_are_their_formulas(loss):
    rng = np.random.default_rng(0)
    F, Y = 2 * rng.normal(size=(50, 3)), np.where(rng.random((50, 3)) < 0.5, 1.0, -1.0)
    C = rng.uniform(0, 2, size=(50, 3))
    C[::5] = 0
    for o in range(3):
        expected = slow.loss_value(name_of(loss), F[:, o], Y[:, o], C[:, o])
        assert loss.value(F, Y, C)[o] == pytest.approx(expected, rel=1e-13)
    if loss.smooth:
        step = 1e-6
        rows = np.arange(50)
        for i in rows:
            up, down = F.copy(), F.copy()
            up[i] += step
            down[i] -= step
            slope = (loss.value(up, Y, C) - loss.value(down, Y, C)) / (2 * step)
            np.testing.assert_allclose(loss.duals(F, Y, C)[i], -slope, atol=1e-5)
            bend = -(loss.duals(up, Y, C)[i] - loss.duals(down, Y, C)[i]) / (2 * step)
            kinks = np.abs(Y[i] * F[i] - 1) < 1e-5
            kinks |= np.abs(Y[i] * F[i] - 1 + slow.WIDTH) < 1e-5
            np.testing.assert_allclose(loss.curvature(F, Y, C)[i][~kinks], bend[~kinks], atol=1e-5)
        # Fenchel's equality: value + conjugate's share = sum of a f at matching duals.
        A = loss.duals(F, Y, C)
        np.testing.assert_allclose(loss.value(F, Y, C), loss.conjugate(A, Y, C) - (A * F).sum(axis=0), atol=1e-9)


def several_machines(n=12_000, m=6):
    rng = np.random.default_rng(0)
    P = rng.normal(size=(n, m))
    f = P[:, 0] + 0.5 * P[:, 1] ** 2 + 0.5 * rng.normal(size=n)
    Y = np.where(f[:, None] > [0.0, 0.5, 1.0], 1.0, -1.0)
    C = np.where(rng.random((n, 3)) < [1.0, 0.8, 0.3], 1.0, 0.0)  # the last takes few of the rows, and all at once
    return P, Y * (C > 0), C


def test_machines_together_are_machines_alone():
    """The hinge over many rows: outputs share their looks at the rows."""
    P, Y, C = several_machines()
    together = primal.solve(DenseFeatures(P, RowLabels(Y, C)), losses.Hinge())
    for o in range(Y.shape[1]):
        alone = primal.solve(DenseFeatures(P, RowLabels(Y[:, [o]], C[:, [o]])), losses.Hinge())
        np.testing.assert_allclose(together.objective[o], alone.objective[0], rtol=1e-8)
    assert (together.gap <= GAP).all()


def test_a_narrower_corner_leaves_fewer_rows(monkeypatch):
    """Where too many rows are close to the margin; the solution is the same."""
    P, Y, C = several_machines()
    rows, close = DenseFeatures(P, RowLabels(Y, C)), []
    each = interior_point.Members.each

    def watched(rows, numbers):
        close.append(sum(map(len, numbers)))
        return each(rows, numbers)

    monkeypatch.setattr(interior_point.Members, "each", watched)
    usual = primal.solve(rows, losses.Hinge())
    monkeypatch.setattr(interior, "MAX_CLOSE_BYTES", {False: 8 * P.shape[1] * close[0] / 3})
    narrow = primal.solve(rows, losses.Hinge())
    assert close[-1] < close[0] / 2
    monkeypatch.setattr(interior, "MAX_CLOSE_BYTES", {False: 0})  # so few that they lead astray: more come back
    fewest = primal.solve(rows, losses.Hinge())
    for found in (narrow, fewest):
        np.testing.assert_allclose(found.objective, usual.objective, rtol=1e-8)
        assert (found.gap <= GAP).all()
