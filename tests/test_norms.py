"""Machines with every slack norm: certified, equal to the reference, and to each other where mathematics says so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVR, NuSVC

import reference
import test_degenerate
from problems import EVERY_MACHINE, KERNEL_CASES, NORMS, all_duals, blobs, check_optimal, fitted_to, machine_name
from slimsvm import AnyNormSVC, BudgetSVC, LeastOneNormSVC, LeastSquaresSVC, slacks
from slimsvm.problem.formulation import CONSTRAINTS, FeasibleSet
from slimsvm.solvers.dual import multiplier, programs

pytestmark = [
    pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the decision function is zero", "ignore:kernel values"),
]

TOL = 1e-6
CASES = {case.name: case for case in KERNEL_CASES}
machines = pytest.mark.parametrize("machine", EVERY_MACHINE, ids=machine_name)
constraints = pytest.mark.parametrize("constraint", CONSTRAINTS)


def fit(slack, constraint, X, y, C=1.0, weights=None, tol=TOL, **params):
    return AnyNormSVC(slack, constraint, C=C, tol=tol, **params).fit(X, y, sample_weight=weights)


def value(slack, constraint="inequality", X=None, y=None, **params):
    X, y = blobs(50, seed=1) if X is None else (X, y)
    return fit(slack, constraint, X, y, gamma=0.3, **params).objective_[0]


# --- Against the reference ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@machines
def test_solution_is_the_reference_one(machine, kernel):
    X, y = blobs(30, d=3, seed=1)
    C = {"linear": 0.3, "rbf": 3.0, "poly": 1.0}[kernel]
    slack, constraint = fitted_to(machine[0], 30), machine[1]
    K = CASES[kernel].matrix(X, X)
    weights = None if isinstance(slack, slacks.Mahalanobis) or kernel == "linear" else 1 + np.arange(30) % 3 / 2
    model = fit(slack, constraint, X, y, C, weights, **CASES[kernel].params)
    check_optimal(model, K, y, C, reference.solve(K, y, slack, C, constraint, weights), weights=weights)


@pytest.mark.parametrize("C", [1e-4, 1.0, 1e5])
@pytest.mark.parametrize("problem", test_degenerate.PROBLEMS, ids=lambda p: p.__name__)
def test_degenerate(problem, C):
    """Gaps are proofs: no reference is needed to know that these are solved."""
    X, y = problem()
    n = len(y)
    budgets = [kind(budget) for kind in (slacks.TopSum, slacks.TopTwoNorm) for budget in (2.0, float(n))]
    for kernel in ("linear", "rbf", "poly"):
        K = CASES[kernel].matrix(X, X)
        for slack in [fitted_to(norm, n) for norm in NORMS] + budgets:
            for constraint in CONSTRAINTS:
                # Kernel values of 1e4 times duals of 1e6: their rounding counts 2e-6 in the gap, and 4e-6 with "poly",
                # whose degree counts in it.
                tol = 1e-5 if kernel == "poly" else 2e-6
                model = fit(slack, constraint, X, y, C, tol=tol, **CASES[kernel].params)
                check_optimal(model, K, y, C, rounding=1e-6)


@settings(max_examples=8)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(4, 60),
    C=st.floats(1e-3, 1e4),
    kernel=st.sampled_from(["linear", "rbf", "poly"]),
)
@machines
def test_random_problems_are_certified(machine, seed, n, C, kernel):
    X, y = blobs(n, d=3, seed=seed)
    slack, constraint = fitted_to(machine[0], n), machine[1]
    model = fit(slack, constraint, X, y, C, **CASES[kernel].params)
    check_optimal(model, CASES[kernel].matrix(X, X), y, C, rounding=1e-7)


@pytest.mark.parametrize("n", [900, 1400])
def test_more_than_one_block(n):
    X, y = blobs(n, d=6, seed=2)
    K = CASES["rbf"].matrix(X, X)
    norms = [slacks.TopSum(n / 10), slacks.TopTwoNorm(n / 10), slacks.TwoNorm(), slacks.PNorm(3.0), slacks.MaxNorm()]
    for slack in norms:
        for constraint in CONSTRAINTS:
            check_optimal(fit(slack, constraint, X, y, 10.0, gamma=0.3), K, y, 10.0)


# --- Exact equivalences (section 1.4) -----------------------------------------------------------------------


def sizes(y, constraint):
    """What a budget must reach to be none: twice the smaller class, or all rows."""
    return len(y) if constraint == "equality" else 2 * min((y > 0).sum(), (y < 0).sum())


@constraints
def test_a_large_budget_is_none(constraint):
    _, y = blobs(50, seed=1)
    enough = float(sizes(y, constraint))
    for C in (0.1, 10.0):
        hinge = value(slacks.OneNorm(), constraint, C=C)
        assert value(slacks.TopSum(enough), constraint, C=C) == pytest.approx(hinge, rel=1e-12)
        assert value(slacks.TopSum(enough - 1e-6), constraint, C=C) == pytest.approx(hinge, rel=3e-6)
        assert value(slacks.OneTwoNorm(np.sqrt(enough) * (1 + 1e-12)), constraint, C=C) == pytest.approx(
            hinge, rel=1e-12
        )
        ball = value(slacks.TwoNorm(), constraint, C=C)
        plus, minus = (y > 0).sum(), (y < 0).sum()
        all_of_it = float(len(y)) if constraint == "equality" else 4 * plus * minus / len(y)
        assert value(slacks.TopTwoNorm(all_of_it), constraint, C=C) == pytest.approx(ball, rel=1e-12)
        assert value(slacks.TopTwoNorm(all_of_it - 1e-6), constraint, C=C) == pytest.approx(ball, rel=3e-6)


@constraints
def test_a_small_budget_is_the_largest_slack(constraint):
    for budget in (0.5, 1.0, 2.0):
        most = value(slacks.MaxNorm(), constraint, C=3.0 * budget)
        assert value(slacks.TopSum(budget), constraint, C=3.0) == pytest.approx(most, rel=1e-12)
        most = value(slacks.MaxNorm(), constraint, C=3.0 * np.sqrt(budget))
        assert value(slacks.TopTwoNorm(budget), constraint, C=3.0) == pytest.approx(most, rel=1e-12)
    assert value(slacks.TopSum(2 + 1e-9), constraint, C=3.0) == pytest.approx(
        value(slacks.TopSum(2.0), constraint, C=3.0), rel=3e-6
    )


@constraints
def test_shortcuts_leave_out_what_never_binds(constraint):
    y, weights = np.repeat([1.0, -1.0], [10, 20]), np.ones(30)
    top = slacks.TopSum(5.0).feasible_set(y, 2.0, weights, CONSTRAINTS[constraint])
    assert (top.total, top.upper.max()) == (10.0, 2.0)
    assert slacks.TopSum(2.0).feasible_set(y, 2.0, weights, CONSTRAINTS[constraint]).upper.max() == np.inf
    assert slacks.TopSum(30.0).feasible_set(y, 2.0, weights, CONSTRAINTS[constraint]).total == np.inf
    assert slacks.TopTwoNorm(2.0).feasible_set(y, 2.0, weights, CONSTRAINTS[constraint]).radius == np.inf
    assert slacks.TopTwoNorm(30.0).feasible_set(y, 2.0, weights, CONSTRAINTS[constraint]).total == np.inf
    assert slacks.OneTwoNorm(1.0).feasible_set(y, 2.0, weights, CONSTRAINTS[constraint]).upper.max() == np.inf
    assert slacks.OneTwoNorm(6.0).feasible_set(y, 2.0, weights, CONSTRAINTS[constraint]).radius == np.inf


@constraints
def test_norms_that_are_the_same(constraint):
    X, y = blobs(50, seed=1)
    two = value(slacks.TwoNorm(), constraint, C=5.0)
    assert value(slacks.PNorm(2.0), constraint, C=5.0) == pytest.approx(two, rel=2 * TOL)
    assert value(slacks.Mahalanobis(np.eye(50)), constraint, C=5.0) == pytest.approx(two, rel=2 * TOL)
    assert value(slacks.OneTwoNorm(0.5), constraint, C=10.0) == pytest.approx(two, rel=2 * TOL)
    # The norm is its half-squared form with another C: that of the slacks which are left.
    model = fit(slacks.TwoNorm(), constraint, X, y, 5.0, gamma=0.3)
    xi = reference.slacks(y, model.decision_function(X), 0.0, constraint)
    squared = fit(slacks.SquaredTwoNorm(), constraint, X, y, 5.0 / np.linalg.norm(xi), gamma=0.3)
    np.testing.assert_allclose(model.decision_function(X), squared.decision_function(X), atol=1e-2)


def test_an_active_budget_is_nu_svm():
    """Decision values in proportion, whatever C is."""
    X, y = blobs(100, seed=3)
    nu = NuSVC(nu=0.2, gamma=0.3, tol=1e-8).fit(X, y).decision_function(X)
    for C in (0.1, 0.5):
        ours = BudgetSVC(budget=20, C=C, gamma=0.3, tol=1e-9).fit(X, y).decision_function(X)
        ratio = (ours @ nu) / (nu @ nu)
        np.testing.assert_allclose(ours, ratio * nu, atol=2e-3 * np.abs(ours).max())


def test_least_one_norm_is_regression_without_a_tube():
    X, y = blobs(60, seed=4)
    ours = LeastOneNormSVC(C=2.0, gamma=0.3, tol=1e-8).fit(X, y)
    theirs = SVR(C=2.0, gamma=0.3, epsilon=0.0, tol=1e-8).fit(X, y)
    assert ours.objective_[0] == pytest.approx(value(slacks.OneNorm(), "equality", X=X, y=y, C=2.0), rel=2 * TOL)
    np.testing.assert_allclose(
        ours.decision_function(X) - ours.intercept_, theirs.predict(X) - theirs.intercept_, atol=1e-3
    )


def test_least_squares_is_a_linear_system():
    X, y = blobs(60, seed=4)
    K = reference.kernel_matrix("rbf", X, X, gamma=0.3)
    system = np.block([[np.zeros((1, 1)), np.ones((1, 60))], [np.ones((60, 1)), K + np.eye(60) / 2.0]])
    solution = np.linalg.solve(system, np.concatenate([[0.0], y]))
    for model in (LeastSquaresSVC(C=2.0, gamma=0.3), AnyNormSVC("l2", "equality", C=2.0, gamma=0.3, tol=1e-10)):
        model.fit(X, y)
        np.testing.assert_allclose(all_duals(model, 60), solution[1:], atol=1e-6)
        assert model.intercept_[0] == pytest.approx(solution[0], abs=1e-6)


def test_a_capped_machine_whose_hulls_meet_is_void():
    """Reduced convex hulls that intersect: f = 0, the objective is budget * C, and a warning says so."""
    X, y = blobs(60, d=2, seed=5, noise=2.0)
    with pytest.warns(UserWarning, match="the decision function is zero.*Raise the budget"):
        model = AnyNormSVC(slacks.TopSum(5.0), C=3.0, kernel="linear", tol=TOL).fit(X, y)
    assert model.objective_[0] == pytest.approx(15.0, rel=1e-6)
    with pytest.warns(UserWarning, match="the decision function is zero"):
        model = AnyNormSVC("linf", C=3.0, kernel="linear", tol=TOL).fit(X, y)
    assert model.objective_[0] == pytest.approx(3.0, rel=1e-6)


# --- Budgets ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_budget_that_matters_is_a_lower_bound_on_the_vectors(norm):
    X, y = blobs(200, seed=6)
    for budget in (5, 20, 60):
        model = BudgetSVC(budget, norm, C=1.0, gamma=0.3, tol=1e-8).fit(X, y)
        assert model.n_vectors_ >= budget


def test_class_weights_that_would_change_nothing_are_refused():
    X, y = blobs(40)
    with pytest.raises(ValueError, match=r"class_weight='balanced' would change nothing with MaxNorm\(\)"):
        AnyNormSVC("linf", class_weight="balanced").fit(X, y)


def test_mahalanobis_refuses_weights_and_takes_classes():
    X, y = blobs(40)
    three = np.where(X[:, 0] > 0.5, 2, y)
    model = AnyNormSVC(fitted_to(slacks.Mahalanobis(), 40), "equality", tol=TOL).fit(X, three)
    assert (model.duality_gap_ <= TOL).all()
    with pytest.raises(ValueError, match="weights other than 0 and 1"):
        AnyNormSVC(fitted_to(slacks.Mahalanobis(), 40), class_weight="balanced").fit(X, y)
    weights = (np.arange(40) % 5 > 0).astype(float)  # rows in or out
    kept = weights > 0
    part = slacks.Mahalanobis(fitted_to(slacks.Mahalanobis(), 40).M[np.ix_(kept, kept)])
    one = fit(fitted_to(slacks.Mahalanobis(), 40), "equality", X, y, weights=weights, gamma=0.3)
    other = fit(part, "equality", X[kept], y[kept], gamma=0.3)
    assert one.objective_[0] == pytest.approx(other.objective_[0], rel=2 * TOL)


# --- Guards of the search for a multiplier ------------------------------------------------------------------


def test_pairs_alone_would_get_stuck():
    """Constant kernel, ||alpha|| <= 1: pairs on the surface end at sqrt(2), the optimum is 1.63299 (section 2.1)."""
    X, y = np.ones((3, 1)), np.array([1.0, 1.0, -1.0])
    model = fit(slacks.TwoNorm(), "inequality", X, y, kernel="linear")
    assert model.objective_[0] == pytest.approx(1.6329931618, rel=1e-6)


def test_a_wrong_sign_is_forgotten():
    """An inexact solution that lies about its side must not trap the search (section 3, stall rule)."""

    class Liar:
        """``norm(a(mu)) = 1 / mu`` with radius 1: but the first answers are on the wrong side."""

        asked = 0

        def product(self, duals):
            return duals

        def solve(self, mu, options, start=None, exact=True):
            self.asked += 1
            size = 1 / mu * (0.8 if self.asked in (2, 3) else 1.0)
            duals = np.array([size, -size])
            return programs.ProgramSolution(duals, duals, 2 * size, 1e-14, 0.0, 1, False, (duals, duals))

    def certify(duals, f):
        gap = abs(duals.max() - 1)
        return multiplier.Certificate(0.0, 1 + gap, 1.0, gap, False)

    far = np.full(2, 10.0)
    feasible = FeasibleSet(-far, far, radius=1.0, stretch=0.5)
    _, certificate = multiplier.search(Liar(), certify, feasible, 1.1, programs.SolverOptions(1e-9, -1, False, None))
    assert certificate.gap <= 1e-9


def test_a_solution_too_coarse_for_its_sign_is_refined():
    """The trust rule: near the surface, the tolerance falls before the bracket moves."""
    tolerances = []

    class Coarse:
        def product(self, duals):
            return duals

        def solve(self, mu, options, start=None, exact=True):
            tol = options.tol
            tolerances.append(tol)
            duals = np.array([1 + tol, -1 - tol])
            return programs.ProgramSolution(duals, duals, 2.0, tol, tol, 1, False, (duals, duals))

    def certify(duals, f):
        return multiplier.Certificate(0.0, 1 + tolerances[-1], 1.0, tolerances[-1], False)

    far = np.full(2, 10.0)
    feasible = FeasibleSet(-far, far, radius=1.0, stretch=0.5)
    multiplier.search(Coarse(), certify, feasible, 1.0, programs.SolverOptions(1e-6, -1, False, None))
    assert min(tolerances) <= 1e-6


def test_a_ridge_goes_with_squares_only():
    class Odd(slacks.PNorm):
        def feasible_set(self, y, C, weights, constraint):
            return FeasibleSet.box(y, np.inf, constraint, ridge=0.1, radius=C, power=3.0)

    with pytest.raises(ValueError, match="a ridge does not go with a ball of power 3"):
        AnyNormSVC(Odd()).fit(*blobs(20))
