"""Machines with targets over features: the conic reference's answer, certified, for every loss of targets."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from slimsvm import losses
from slimsvm.rows.labels import RowLabels, TargetLabels
from slimsvm.rows.memory import DenseFeatures
from slimsvm.rows.protocol import decision
from slimsvm.solvers.primal import interior
from slimsvm.solvers.primal import solve as primal

LOSSES = [
    losses.SquaredError(),
    losses.SquaredEpsilonInsensitive(0.2),
    losses.Huber(0.3),
    losses.Huber(0.3, 0.1),
    losses.EpsilonInsensitive(0.2),
    losses.EpsilonInsensitive(0.0),
]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def problem(n=60, m=5, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    P = rng.normal(size=(n, m))
    t = np.sin(P[:, 0]) + 0.5 * P[:, -1] + noise * rng.standard_t(3, size=n)
    return P, (t - t.mean()) / t.std(), rng.uniform(0.2, 2, n)


def slow_value(loss, r, C):
    """By its formula, one residual at a time."""
    total = 0.0
    for residual, cost in zip(r, C, strict=True):
        d = max(abs(residual) - loss.epsilon, 0.0)
        if loss.width == 0:
            total += cost * d
        elif d <= loss.width * loss.most:
            total += cost * d * d / (2 * loss.width)
        else:
            total += cost * (d - loss.width / 2)
    return total


def reference(P, t, C, loss):
    """The least objective by a conic solver."""
    w, b = cp.Variable(P.shape[1]), cp.Variable()
    d, e = cp.Variable(len(t), nonneg=True), cp.Variable(len(t), nonneg=True)
    constraints = [d + e >= cp.abs(t - P @ w - b) - loss.epsilon]
    if loss.width == 0:
        each = d + e
    elif np.isinf(loss.most):
        constraints += [e == 0]
        each = cp.square(d) / 2
    else:  # min d^2 / 2w + e with d + e given: the slope of the first part reaches 1 at d = w
        each = cp.square(d) / (2 * loss.width) + e
    found = cp.Problem(cp.Minimize(cp.sum_squares(w) / 2 + cp.sum(cp.multiply(C, each))), constraints)
    found.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return float(found.value)


def solve(P, t, C, loss, **options):
    return primal.solve(DenseFeatures(P, RowLabels(t[:, None], C[:, None])), loss, **options)


def certificate(P, t, C, loss, found):
    """Primal and dual in plain numpy."""
    f = decision(P, found.V)[:, 0]
    a = loss.duals(f[:, None], t[:, None], C[:, None])[:, 0]
    rows, known = found.known_duals[0]
    a[rows] = known
    up, down = a[a > 0].sum(), -a[a < 0].sum()
    a = np.where(a > 0, a * min(up, down) / max(up, 1e-300), a * min(up, down) / max(down, 1e-300))
    g = P.T @ a
    dual = t @ a - loss.epsilon * np.abs(a).sum() - loss.width / 2 * (a**2 / C).sum() - g @ g / 2
    assert (np.abs(a) <= C * loss.most * (1 + 1e-9)).all()
    return found.V[0, :-1] @ found.V[0, :-1] / 2 + slow_value(loss, t - f, C), dual


@every_loss
def test_losses_are_their_formulas(loss):
    rng = np.random.default_rng(0)
    F, Y, C = rng.normal(size=(50, 3)), rng.normal(size=(50, 3)), rng.uniform(0, 2, size=(50, 3))
    Y[::7] = F[::7] + 0.5 * loss.epsilon  # within the tube
    C[::5] = 0
    for o in range(3):
        assert loss.value(F, Y, C)[o] == pytest.approx(slow_value(loss, Y[:, o] - F[:, o], C[:, o]), rel=1e-13)
    A = loss.duals(F, Y, C)
    np.testing.assert_allclose(loss.value(F, Y, C), loss.conjugate(A, Y, C) - (A * F).sum(axis=0), atol=1e-9)
    if not loss.smooth:
        return
    step, far = 1e-6, np.abs(Y - F)
    smooth = (np.abs(far - loss.epsilon) > 1e-5) | (loss.epsilon == 0)
    smooth &= np.abs(far - loss.epsilon - loss.width * loss.most) > 1e-5
    for i in range(50):
        up, down = F.copy(), F.copy()
        up[i] += step
        down[i] -= step
        slope = (loss.value(up, Y, C) - loss.value(down, Y, C)) / (2 * step)
        np.testing.assert_allclose(A[i], -slope, atol=1e-5)
        bend = -(loss.duals(up, Y, C)[i] - loss.duals(down, Y, C)[i]) / (2 * step)
        np.testing.assert_allclose(loss.curvature(F, Y, C)[i][smooth[i]], bend[smooth[i]], atol=1e-5)


@every_loss
def test_a_loss_in_other_units(loss):
    rng = np.random.default_rng(1)
    F, Y, C = rng.normal(size=(20, 2)), rng.normal(size=(20, 2)), np.ones((20, 2))
    other, factor = loss.in_units(7.0)
    np.testing.assert_allclose(loss.value(7 * F, 7 * Y, C), factor * other.value(F, Y, C), rtol=1e-10)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@every_loss
def test_the_reference_agrees(loss, C):
    """And the certificate is one: the objective is above the optimum, the dual below it, and both nearly the same."""
    P, t, weight = problem()
    cost = C * weight
    found = solve(P, t, cost, loss)
    optimum = reference(P, t, cost, loss)
    value, dual = certificate(P, t, cost, loss, found)
    assert found.objective[0] == pytest.approx(value, rel=1e-10)
    assert found.gap[0] <= 1e-8
    assert dual <= value * (1 + 1e-13)
    assert value - dual <= 2e-8 * value
    assert value == pytest.approx(optimum, rel=1e-7)


@every_loss
def test_rough_solutions_are_bounded_from_both_sides(loss):
    """Whatever weights: the certified gap covers the distance to the optimum."""
    P, t, weight = problem(seed=3)
    optimum = reference(P, t, weight, loss)
    for most in (1, 2, 3):
        found = solve(P, t, weight, loss, max_iter=most)
        assert found.objective[0] >= optimum * (1 - 1e-9)
        if np.isfinite(found.gap[0]):
            assert found.objective[0] / (1 + found.gap[0]) <= optimum * (1 + 1e-9)


@every_loss
def test_targets_and_counts_are_rows_and_costs(loss):
    P, t, weight = problem(80, seed=4)
    T = np.stack([t, -2 * t, np.cos(t)], axis=1)
    cost = np.array([0.5, 1.0, 2.0])
    given = TargetLabels(T, weight, cost)
    np.testing.assert_allclose(given.totals, np.outer(weight, cost).sum(axis=0))
    found = primal.solve(DenseFeatures(P, given), loss)
    for o in range(3):
        alone = solve(P, T[:, o], cost[o] * weight, loss)
        assert found.objective[o] == pytest.approx(alone.objective[0], rel=1e-8)
    both = solve(np.vstack([P, P]), np.tile(t, 2), np.tile(weight, 2), loss)
    assert both.objective[0] == pytest.approx(solve(P, t, 2 * weight, loss).objective[0], rel=1e-8)


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if not loss.smooth], ids=repr)
def test_many_rows_are_screened_to_the_same_solution(loss):
    P, t, weight = problem(9000, 4, seed=5)
    rows, which = DenseFeatures(P, RowLabels(t[:, None], weight[:, None])), np.array([0])
    found = primal.solve(rows, loss)
    V, known, _ = interior.solve_interior(rows, loss, which, 1e-10, 100, None, interior.direct)
    direct = primal.certified(rows, loss, which, V, known, np.array([1]))
    assert len(found.known_duals[0][0]) < 9000, "no row was left out"
    assert found.gap[0] <= 1e-8
    assert found.objective[0] == pytest.approx(direct.objective[0], rel=1e-8)


@every_loss
@pytest.mark.parametrize("t", [np.zeros(40), np.r_[1e-12, np.zeros(39)], np.full(40, 0.05)], ids=["0", "tiny", "same"])
def test_targets_that_cost_nothing_are_solved(loss, t):
    """The best objective is zero, or next to it: no gap can be relative to it."""
    P, _, weight = problem(40)
    found = solve(P, t, weight, loss)
    assert found.gap[0] <= 1e-6
    assert np.abs(decision(P, found.V)[:, 0] - t).max() <= loss.epsilon + 1e-6
