"""The classical machines as problems with given sums: beside a conic solver, and as they promise to scale."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from sklearn import svm

from slimsvm.problem import kernels
from slimsvm.solvers.dual import sklearn_svm
from slimsvm.solvers.dual.programs import SolverOptions

KINDS = ("classification", "nu_classification", "regression", "nu_regression", "one_class")


def rows(seed: int, n: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, sides in their order, values, weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    side = np.where(np.arange(n) < n // 2, -1.0, 1.0)
    X[side > 0] += 1.0
    return X, side, np.sin(X[:, 0]) + 0.3 * rng.normal(size=n), rng.uniform(0.5, 2.0, size=n)


def costs(kind: str, side: np.ndarray, y: np.ndarray, w: np.ndarray) -> sklearn_svm.DualProblem:
    return {
        "classification": lambda: sklearn_svm.classification(side, 2.0, w),
        "nu_classification": lambda: sklearn_svm.nu_classification(side, 0.4, w),
        "regression": lambda: sklearn_svm.regression(y, 2.0, 0.1, w),
        "nu_regression": lambda: sklearn_svm.nu_regression(y, 2.0, 0.4, w),
        "one_class": lambda: sklearn_svm.one_class(0.3, w),
    }[kind]()


def solved(
    X: np.ndarray,
    problem: sklearn_svm.DualProblem,
    tol: float = 1e-8,
    kernel: str = "rbf",
    double_rows: bool = False,
    threads: int = 1,
) -> tuple[sklearn_svm.SvmSolution, np.ndarray]:
    k = kernels.resolve(kernel, 0.5, 3, 1.0)
    machine = k.training_matrix(X, np.arange(len(X)), [len(X)], 64 << 20, threads)
    return sklearn_svm.solve_duals(machine, [[0]], [problem], SolverOptions(tol, -1, double_rows, None))[0], k(X, X)


def primal(kind: str, K: np.ndarray, side: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    """The optimum of the machine's primal, as textbooks write it, over f = K b."""
    n = len(w)
    root = np.linalg.cholesky(K + 1e-11 * np.eye(n))
    b, t, e = cp.Variable(n), cp.Variable(), cp.Variable()
    f, norm = root @ b, 0.5 * cp.sum_squares(b)
    value = {
        "classification": norm + 2.0 * w @ cp.pos(1 - cp.multiply(side, f + t)),
        "nu_classification": norm - 0.4 * w.sum() * e + w @ cp.pos(e - cp.multiply(side, f + t)),
        "regression": norm + 2.0 * w @ cp.pos(cp.abs(y - f - t) - 0.1),
        "nu_regression": norm + 2.0 * (0.4 * w.sum() * e + w @ cp.pos(cp.abs(y - f - t) - e)),
        "one_class": norm - 0.3 * w.sum() * t + w @ cp.pos(t - f),
    }[kind]
    return float(cp.Problem(cp.Minimize(value), [e >= 0]).solve(solver="CLARABEL"))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_optimum_is_that_of_a_conic_solver(kind: str, seed: int) -> None:
    X, side, y, w = rows(seed)
    problem = costs(kind, side, y, w)
    found, K = solved(X, problem)
    best = primal(kind, K, side, y, w)
    assert found.converged
    assert found.objective == pytest.approx(best, rel=1e-6)
    assert found.objective * (1 + np.sign(found.objective) * 1e-6) >= best - 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_sums_and_bounds_are_met(kind: str) -> None:
    X, side, y, w = rows(7)
    found, _ = solved(X, costs(kind, side, y, w))
    a = found.duals * (found.margin if kind == "nu_classification" else 1.0)
    most = {"classification": 2 * w, "regression": 2 * w, "nu_regression": 2 * w}.get(kind, w)
    assert (np.abs(a) <= most * (1 + 1e-9)).all()
    total = {"one_class": 0.3 * w.sum()}.get(kind, 0.0)
    assert a.sum() == pytest.approx(total, abs=1e-9 * np.abs(a).sum())
    if kind == "nu_classification":
        assert np.abs(a).sum() == pytest.approx(0.4 * w.sum(), rel=1e-9)
        assert (a * side >= 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [900, 5000])
def test_rounds_of_blocks_reach_the_gap_that_they_claim(kind: str, n: int) -> None:
    """The coarse start and float32 rows included."""
    X, side, y, w = rows(3, n)
    found, K = solved(X, costs(kind, side, y, w), tol=1e-3)
    assert found.converged
    f = K @ found.duals
    at = {"nu_classification": found.margin}.get(kind, 1.0)
    f, b = at * f, at * found.bias
    residual = np.abs(y - f - b)
    margins = side * (f + b)
    value = (
        0.5 * at * found.duals @ f
        + {
            "classification": 2.0 * w @ np.maximum(1 - margins, 0),
            "nu_classification": -0.4 * w.sum() * found.margin + w @ np.maximum(found.margin - margins, 0),
            "regression": 2.0 * w @ np.maximum(residual - 0.1, 0),
            "nu_regression": 2.0 * (0.4 * w.sum() * found.margin + w @ np.maximum(residual - found.margin, 0)),
            "one_class": 0.3 * w.sum() * b + w @ np.maximum(-b - f, 0),
        }[kind]
    )
    assert value == pytest.approx(found.objective, rel=1e-5)
    assert 0 <= found.gap <= 1e-3
    finer, _ = solved(X, costs(kind, side, y, w), tol=1e-6)
    assert abs(found.objective - finer.objective) <= 1.01e-3 * abs(finer.objective)


def test_more_threads_change_nothing() -> None:
    X, side, y, w = rows(3, 3000)
    for kind in KINDS:
        one, other = (solved(X, costs(kind, side, y, w), tol=1e-3, threads=t)[0] for t in (1, 2))
        assert np.array_equal(one.duals, other.duals)
        assert one[1:] == other[1:]


def test_units_of_the_target_do_not_matter() -> None:
    X, _, y, w = rows(1)
    for unit in (1e-9, 1e9):
        for make in (sklearn_svm.regression, sklearn_svm.nu_regression):
            share = (0.1,) if make is sklearn_svm.regression else (0.4,)
            scaled = tuple(s * unit for s in share) if make is sklearn_svm.regression else share
            one, _ = solved(X, make(y, 2.0, *share, w))
            other, _ = solved(X, make(unit * y, 2.0 * unit, *scaled, w))
            assert np.allclose(other.duals / unit, one.duals, rtol=1e-6, atol=1e-9)
            assert other.bias / unit == pytest.approx(one.bias, rel=1e-6)


def test_a_share_nu_is_outside_at_most() -> None:
    X, _, y, _ = rows(5, 200)
    ones = np.ones(200)
    for nu in (0.1, 0.5):
        found, K = solved(X, sklearn_svm.one_class(nu, ones))
        outside = K @ found.duals + found.bias < -1e-9
        assert outside.mean() <= nu <= (found.duals > 0).mean()
        tube, K = solved(X, sklearn_svm.nu_regression(y, 1.0, nu, ones))
        out = np.abs(y - K @ tube.duals - tube.bias) > tube.margin + 1e-9
        assert out.mean() <= nu <= (tube.duals != 0).mean() + 1e-12


@pytest.mark.parametrize("nu", [0.05, 0.5])
def test_one_class_machine_is_that_of_libsvm(nu: float) -> None:
    X, *_ = rows(2, 300)
    found, _ = solved(X, sklearn_svm.one_class(nu, np.ones(300)))
    other = svm.OneClassSVM(nu=nu, gamma=0.5, tol=1e-8).fit(X)
    a = np.zeros(300)
    a[other.support_] = other.dual_coef_[0]
    assert np.allclose(found.duals, a, atol=1e-5)
    assert found.bias == pytest.approx(other.intercept_[0], rel=1e-5)


def test_all_rows_may_be_outside() -> None:
    """nu = 1, where LIBSVM ends with a bias that is no number."""
    X, _, _, w = rows(2)
    found, _ = solved(X, sklearn_svm.one_class(1.0, w))
    assert found.converged
    assert np.allclose(found.duals, w)
    assert np.isfinite(found.bias)


def test_nu_that_is_too_large_for_the_smaller_class() -> None:
    y = np.array([1.0] * 2 + [-1.0] * 8)
    with pytest.raises(ValueError, match=r"specified nu is infeasible.*at most 0\.4"):
        sklearn_svm.nu_classification(y, 0.5, np.ones(10))
    sklearn_svm.nu_classification(y, 0.4, np.ones(10))


# --- few rows with numbers of very different size ---------------------------------------------------------------------


def inside(problem: sklearn_svm.DualProblem, x: np.ndarray) -> bool:
    """Between the bounds, with the sums."""
    box = problem.interior(np.eye(problem.rows))
    size = np.abs(x).sum()
    return bool(
        (x >= problem.lower).all()
        and (x <= problem.upper).all()
        and np.abs(box.G @ x - box.sums).max() <= 1e-6 * max(size, 1e-300)
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_interior_points_find_the_same_optimum(kind, seed):
    """As pairs do, who know nothing of them."""
    X, side, y, w = rows(seed)
    problem = costs(kind, side, y, w)
    found, K = solved(X, problem, 1e-9)
    box = problem.interior(K)
    x = box.solved(1e-9)
    assert inside(problem, x)
    dual = found.objective / problem.unit**2
    assert box.dual(x) == pytest.approx(dual, rel=1e-7)


@pytest.mark.parametrize(
    ("kind", "kernel", "C"),
    [
        *((kind, "rbf", C) for kind in ("classification", "regression") for C in (1e4, 1e6)),
        *((kind, "linear", C) for kind in ("classification", "regression", "nu_regression") for C in (1e4, 1e6)),
    ],
)
def test_large_costs_and_weights_of_all_sizes(kind, kernel, C):
    """Pairs alone take for ever; the certificate is that of the whole problem. (Still larger ones are beyond float64:
    duals of 1e12, whose rounding is felt in f, and those of nu-regression that are large and cancel.)"""
    X, side, y, w = rows(7, 60)
    w = w * 10.0 ** np.random.default_rng(0).uniform(-4, 4, len(w))
    problem = {
        "classification": lambda: sklearn_svm.classification(side, C, w),
        "regression": lambda: sklearn_svm.regression(y, C, 0.01, w),
        "nu_regression": lambda: sklearn_svm.nu_regression(y, C, 0.3, w),
    }[kind]()
    found, _ = solved(X, problem, 1e-3, kernel)
    assert found.converged
    assert found.gap <= 1e-3


def test_variables_without_room_stay():
    X, _, y, w = rows(0)
    w[::3] = 0.0
    problem = sklearn_svm.regression(y, 2.0, 0.1, w)
    _, K = solved(X, problem)
    x = problem.interior(K).solved(1e-9)
    assert inside(problem, x)
    assert not x.reshape(2, -1)[:, ::3].any()


@pytest.mark.parametrize("nu", [True, False])
@pytest.mark.parametrize("value", [0.0, 1 / 3, 1e9])
def test_targets_that_are_all_the_same(nu, value):
    """The bias alone, to the last bit."""
    X, _, y, w = rows(0)
    y = np.full_like(y, value)
    found, _ = solved(X, sklearn_svm.nu_regression(y, 1e5, 0.5, w) if nu else sklearn_svm.regression(y, 1e5, 0.0, w))
    assert found.bias == value
    assert not found.duals.any()
    assert found.gap == found.objective == 0
