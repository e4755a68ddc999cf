"""Slack measures: value, dual set and exact bias of every member of slimsvm.slacks.ALL."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import reference
from problems import MACHINES, machine_name
from slimsvm import slacks

machines = pytest.mark.parametrize("machine", MACHINES, ids=machine_name)

# Few distinct values, so that ties, which make the best bias an interval, are common.
coarse = st.integers(-6, 6).map(lambda k: k / 4)
fine = st.floats(-50, 50, allow_nan=False)


@st.composite
def outputs(draw):
    """Labels with both classes, decision values and costs."""
    n = draw(st.integers(2, 12))
    y = np.array([1.0, -1.0, *draw(st.lists(st.sampled_from([1.0, -1.0]), min_size=n - 2, max_size=n - 2))])
    values = draw(st.sampled_from([coarse, fine]))
    f = np.array(draw(st.lists(values, min_size=n, max_size=n)))
    costs = draw(st.sampled_from([st.just(1.0), st.sampled_from([0.5, 1.0, 2.0]), st.floats(1e-3, 1e3)]))
    return y, f, np.array(draw(st.lists(costs, min_size=n, max_size=n)))


def test_every_slack_has_a_reference():
    assert {slack.__name__ for slack in slacks.ALL} == set(reference.MEASURES)


@machines
@given(problem=outputs())
def test_value(machine, problem):
    y, f, C = problem
    slack, constraint = machine
    xi = reference.slacks(y, f, 0.25, constraint)
    assert slack.value(C, xi) == pytest.approx(reference.measure(slack).value(C, xi), rel=1e-12)


@machines
@given(problem=outputs())
def test_bias_makes_the_measure_least(machine, problem):
    """No b does better than the closed form, to rounding; it lies in the interval of minimisers."""
    y, f, C = problem
    slack, constraint = machine
    bias = slack.bias(y - f, y, C, constraint)
    low, high, least = reference.best_bias(lambda b: reference.loss(slack, y, C, f, b, constraint), y - f)
    assert reference.loss(slack, y, C, f, bias, constraint) <= least + 1e-11 * (1 + least)
    assert low - 1e-5 <= bias <= high + 1e-5


@machines
@pytest.mark.parametrize("seed", range(5))
def test_dual_set_is_the_conjugate_of_the_measure(machine, seed):
    """Phi(xi) = max over the set of sum(y xi a) - ridge/2 a^2: what links dual and primal (section 1)."""
    rng = np.random.default_rng(seed)
    slack, constraint = machine
    y = np.array([1.0, -1.0, 1.0, -1.0, -1.0])
    margin_gap, C = 2 * rng.normal(size=5), rng.uniform(0.2, 3, size=5)
    feasible = slack.feasible_set(y, C, constraint)
    a = cp.Variable(5)
    objective = (y * margin_gap) @ a - cp.sum_squares(cp.multiply(np.sqrt(feasible.ridge / 2), a))
    limits = [a[i] >= feasible.lower[i] for i in range(5) if np.isfinite(feasible.lower[i])]
    limits += [a[i] <= feasible.upper[i] for i in range(5) if np.isfinite(feasible.upper[i])]
    limits += [feasible.side @ a <= feasible.total] if np.isfinite(feasible.total) else []
    best = reference.optimize(cp.Problem(cp.Maximize(objective), limits))
    xi = margin_gap if constraint == "equality" else np.maximum(margin_gap, 0)
    assert best == pytest.approx(slack.value(C, xi), rel=1e-7, abs=1e-9)


@machines
def test_dual_set_is_the_reference_one(machine):
    slack, constraint = machine
    y, C = np.array([1.0, -1.0, 1.0]), np.array([0.5, 1.0, 4.0])
    feasible = slack.feasible_set(y, C, constraint)
    lower, upper, ridge = reference.dual_set(slack, y, C, constraint)
    np.testing.assert_array_equal(feasible.lower, lower)
    np.testing.assert_array_equal(feasible.upper, upper)
    np.testing.assert_array_equal(feasible.ridge, ridge)


@pytest.mark.parametrize("slack", slacks.ALL)
def test_objects_are_cloned_by_value(slack):
    assert clone(slack()) == slack()
    with pytest.raises(ValueError, match="has no parameter 'budget'"):
        slack().set_params(budget=3)


@pytest.mark.parametrize(("name", "kind"), [("l1", slacks.OneNorm), ("l2", slacks.SquaredTwoNorm)])
def test_names(name, kind):
    assert slacks.resolve(name) == kind()
    assert slacks.resolve(kind()) == kind()
