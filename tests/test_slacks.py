"""Slack measures: value, dual set and exact bias of every member of slimsvm.slacks.ALL."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import reference
import slack_table
from problems import EVERY_MACHINE, NORMS, fitted_to, machine_name, ring_of_neighbours
from slimsvm import losses, slacks
from slimsvm.problem.formulation import CONSTRAINTS, EQUALITY, INEQUALITY

machines = pytest.mark.parametrize("machine", EVERY_MACHINE, ids=machine_name)

# Few distinct values, so that ties, which make the best bias an interval, are common.
coarse = st.integers(-6, 6).map(lambda k: k / 4)
fine = st.floats(-50, 50, allow_nan=False)


@st.composite
def outputs(draw):
    """Labels with both classes, decision values and weights."""
    n = draw(st.integers(2, 12))
    y = np.array([1.0, -1.0, *draw(st.lists(st.sampled_from([1.0, -1.0]), min_size=n - 2, max_size=n - 2))])
    values = draw(st.sampled_from([coarse, fine]))
    f = np.array(draw(st.lists(values, min_size=n, max_size=n)))
    weights = draw(st.sampled_from([st.just(1.0), st.sampled_from([0.5, 1.0, 2.0]), st.floats(1e-3, 1e3)]))
    return y, f, np.array(draw(st.lists(weights, min_size=n, max_size=n)))


def fitted(machine, y, weights):
    """The norm for these rows; Mahalanobis norms have no weights."""
    slack, constraint = machine
    matrix = isinstance(slack, slacks.Mahalanobis)
    return fitted_to(slack, len(y)), constraint, np.ones(len(y)) if matrix else weights


def test_every_slack_has_a_reference_and_is_tested():
    assert {slack.__name__ for slack in slacks.ALL} == set(slack_table.ENTRIES) == {type(s).__name__ for s in NORMS}


@machines
@settings(max_examples=25)
@given(problem=outputs())
def test_value(machine, problem):
    y, f, weights = problem
    slack, constraint, weights = fitted(machine, y, weights)
    xi = reference.slacks(y, f, 0.25, constraint)
    expected = reference.loss(slack, y, 1.0, f, 0.25, constraint, weights)
    assert slack.value(xi, weights, CONSTRAINTS[constraint]) == pytest.approx(expected, rel=1e-11, abs=1e-300)


@machines
@settings(max_examples=15)
@given(problem=outputs())
def test_bias_makes_the_measure_least(machine, problem):
    """No b does better than ours, to rounding."""
    y, f, weights = problem
    slack, constraint, weights = fitted(machine, y, weights)

    def value(b):
        return slack.value(reference.slacks(y, f, b, constraint), weights, CONSTRAINTS[constraint])

    bias = slack.bias(y - f, y, weights, CONSTRAINTS[constraint])
    low, high, least = reference.best_bias(value, y - f)
    assert value(bias) <= least + 1e-11 * (1 + least)
    if isinstance(slack, (slacks.OneNorm, slacks.SquaredTwoNorm, slacks.MaxNorm, slacks.TopSum)):  # closed forms
        assert low - 1e-5 <= bias <= high + 1e-5


@machines
@pytest.mark.parametrize("seed", range(2))
def test_dual_set_is_the_conjugate_of_the_measure(machine, seed):
    """C phi(xi) = max over the set of sum(y xi a) - ridge/2 a^2: what links dual and primal (section 1).

    Only for duals of sum zero are sets the same that leave a redundant part out: margins are shifted by the best b.
    """
    rng = np.random.default_rng(seed)
    y = np.array([1.0, -1.0, 1.0, -1.0, -1.0])
    slack, constraint, weights = fitted(machine, y, rng.uniform(0.5, 3, size=5))
    C, residuals = rng.uniform(0.2, 3), 2 * rng.normal(size=5)
    b = slack.bias(residuals, y, weights, CONSTRAINTS[constraint])
    feasible = slack.feasible_set(y, C, weights, CONSTRAINTS[constraint])
    a = cp.Variable(5)
    objective = residuals @ a - cp.sum_squares(cp.multiply(np.sqrt(np.broadcast_to(feasible.ridge, 5) / 2), a))
    limits = [cp.sum(a) == 0]
    limits += [a[i] >= feasible.lower[i] for i in range(5) if np.isfinite(feasible.lower[i])]
    limits += [a[i] <= feasible.upper[i] for i in range(5) if np.isfinite(feasible.upper[i])]
    limits += [cp.norm1(a) <= feasible.total] if np.isfinite(feasible.total) else []
    if feasible.metric is not None:
        limits += [cp.norm(np.linalg.cholesky(feasible.metric).T @ a) <= feasible.radius]
    elif np.isfinite(feasible.radius):
        stretch = np.broadcast_to(feasible.stretch, 5)
        limits += [slack_table.weighted_norm(a, stretch, feasible.power) <= feasible.radius]
    best = reference.optimize(cp.Problem(cp.Maximize(objective), limits))
    xi = reference.slacks(y, y - residuals, b, constraint)
    assert best == pytest.approx(C * slack.value(xi, weights, CONSTRAINTS[constraint]), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("kind", slacks.ALL)
def test_objects_are_cloned_by_value(kind):
    slack = fitted_to(kind(), 3)
    copy = clone(slack)
    assert type(copy) is kind
    for name, value in slack.get_params().items():
        np.testing.assert_array_equal(copy.get_params()[name], value)
    with pytest.raises(ValueError, match="has no parameter 'colour'"):
        copy.with_params(colour=3)


@pytest.mark.parametrize(("name", "kind"), [("l1", "OneNorm"), ("l2", "SquaredTwoNorm"), ("linf", "MaxNorm")])
def test_names(name, kind):
    kind = getattr(slacks, kind)
    assert slacks.resolve(name) == kind()
    assert slacks.resolve(kind()) == kind()


def test_a_norm_that_is_a_sum_over_rows_has_a_loss():
    assert slacks.loss("l1") == slacks.loss(slacks.OneNorm()) == losses.Hinge()
    assert slacks.loss("l2") == slacks.loss(slacks.SquaredTwoNorm()) == losses.SquaredHinge()
    huber = losses.HuberHinge(0.1)
    assert slacks.loss(huber) is huber
    assert {type(s).__name__ for s in NORMS if s.loss is not None} == {"OneNorm", "SquaredTwoNorm"}
    for slack in ("linf", "l7", slacks.TwoNorm(), slacks.OneNorm, 3):
        with pytest.raises(ValueError, match=r"not known here; use one of \['l1', 'l2'\]"):
            slacks.loss(slack)


def test_what_an_object_lacks_is_named():
    class Bare:
        def feasible_set(self, y, C, weights, constraint):
            return None

        def value(self, slacks, weights, constraint):
            return 0.0

        bias = value

    with pytest.raises(
        ValueError,
        match=r"which lacks at, counts_rows, merges_copies, loss, is not known.*inherits slimsvm.slacks.Norm",
    ):
        slacks.resolve(Bare())


@machines
@given(problem=outputs())
@settings(max_examples=10)
def test_doubt_never_makes_a_slack_smaller(machine, problem):
    """Slacks of values that may be off by so much are the largest of all these."""
    y, f, _ = problem
    rules = CONSTRAINTS[machine[1]]
    most = np.abs(rules.slacks(y, f, 0.25, 0.1))
    for shift in (-0.1, 0.0, 0.04, 0.1):
        assert (np.abs(rules.slacks(y, f + shift, 0.25)) <= most + 1e-12).all()


# --- Norms of each other (section 1.4), as functions --------------------------------------------------------


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@given(problem=outputs())
def test_norms_meet_where_their_parameters_do(constraint, problem):
    y, f, weights = problem
    xi, total = reference.slacks(y, f, 0.25, constraint), weights.sum()

    def value(slack):
        return slack.value(xi, weights, CONSTRAINTS[constraint])

    one, two, most = value(slacks.OneNorm()), value(slacks.TwoNorm()), value(slacks.MaxNorm())
    assert value(slacks.TopSum(total)) == pytest.approx(one, rel=1e-12)
    assert value(slacks.TopSum(0.5 * weights.min())) == pytest.approx(0.5 * weights.min() * most, rel=1e-12)
    assert value(slacks.PNorm(2.0)) == pytest.approx(two, rel=1e-12)
    assert value(slacks.TopTwoNorm(total)) == pytest.approx(two, rel=1e-12)
    small = 0.5 * weights.min()
    assert value(slacks.TopTwoNorm(small)) == pytest.approx(np.sqrt(small) * most, rel=1e-12)
    assert value(slacks.OneTwoNorm(np.sqrt(total) * (1 + 1e-9))) == pytest.approx(one, rel=1e-12)
    small = 0.5 * np.sqrt(weights.min())
    assert value(slacks.OneTwoNorm(small)) == pytest.approx(small * two, rel=1e-12)
    if (weights == 1).all():
        assert value(fitted_to(slacks.Mahalanobis(), len(y)).with_params(M=np.eye(len(y)))) == pytest.approx(
            two, rel=1e-12
        )


@machines
@settings(max_examples=25)
@given(problem=outputs())
def test_a_weight_counts_a_row(machine, problem):
    y, f, weights = problem
    slack, constraint = machine
    if isinstance(slack, slacks.Mahalanobis):
        return
    copies = 1 + np.rint(weights).astype(int) % 3
    xi = reference.slacks(y, f, 0.25, constraint)
    repeated = np.repeat(xi, copies)
    assert slack.value(xi, copies.astype(float), CONSTRAINTS[constraint]) == pytest.approx(
        slack.value(repeated, np.ones(len(repeated)), constraint), rel=1e-12
    )


def test_top_two_norm_keeps_its_digits():
    """Slacks that hardly differ: differences of large sums would leave half the digits (section 1)."""
    rng = np.random.default_rng(0)
    xi, weights = 1 + 1e-7 * rng.random(1000), np.ones(1000)
    slack = slacks.TopTwoNorm(200.0)
    assert slack.value(xi, weights, INEQUALITY) == pytest.approx(slack_table.top_two(slack, xi, weights), rel=1e-14)


# --- Parameters that make no sense --------------------------------------------------------------------------

LABELS, ONES = np.array([1.0, -1.0, 1.0]), np.ones(3)


@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "many", True, None])
@pytest.mark.parametrize("name", ["budget", "t", "p"])
def test_numbers_that_make_no_sense(name, value):
    kinds = {"budget": (slacks.TopSum, slacks.TopTwoNorm), "t": (slacks.OneTwoNorm,), "p": (slacks.PNorm,)}
    for kind in kinds[name]:
        with pytest.raises(ValueError, match=f"{name}=.* must be a number above"):
            kind(value).feasible_set(LABELS, 1.0, ONES, INEQUALITY)


@pytest.mark.parametrize(("p", "instead"), [(1.01, "OneNorm"), (1000.0, "MaxNorm")])
def test_powers_near_the_ends(p, instead):
    with pytest.raises(ValueError, match=f"between 1.05 and 100; use {instead}"):
        slacks.PNorm(p).feasible_set(LABELS, 1.0, ONES, INEQUALITY)


@pytest.mark.parametrize(
    ("M", "words"),
    [
        (None, "needs a matrix"),
        (np.eye(4), r"shape \(4, 4\), but X has 3 rows"),
        (np.ones(3), "shape"),
        (np.triu(np.ones((3, 3))), "symmetric"),
        (np.diag([1.0, np.nan, 1.0]), "finite"),
        (np.diag([1.0, -1.0, 1.0]), "not positive definite"),
    ],
)
def test_matrices_that_make_no_norm(M, words):
    with pytest.raises(ValueError, match=words):
        slacks.Mahalanobis(M).at(np.arange(3), 3)


def test_mahalanobis_with_inequality_needs_a_monotone_dual():
    """Otherwise the dual is that of another model, which the message names (section 1.2)."""
    M = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])  # its inverse has a negative entry
    slack = slacks.Mahalanobis(M)
    with pytest.raises(ValueError, match="problem without xi >= 0"):
        slack.feasible_set(LABELS, 1.0, ONES, INEQUALITY)
    slack.feasible_set(LABELS, 1.0, ONES, EQUALITY)


def test_mahalanobis_takes_no_weights():
    with pytest.raises(ValueError, match="weights other than 0 and 1"):
        slacks.Mahalanobis(np.eye(3)).feasible_set(LABELS, 1.0, 2 * ONES, EQUALITY)


def test_mahalanobis_of_some_rows():
    M = ring_of_neighbours(6)
    part = slacks.Mahalanobis(M).at(np.array([4, 1]), 6)
    np.testing.assert_array_equal(part.M, M[np.ix_([4, 1], [4, 1])])


def test_a_norm_without_pull_or_bias_says_what_is_missing():
    class Half(slacks.Norm):
        pass

    with pytest.raises(NotImplementedError, match="Half must implement pull or bias"):
        Half().bias(np.array([0.5, -0.5]), np.array([1.0, -1.0]), np.ones(2), INEQUALITY)
