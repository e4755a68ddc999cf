"""The judges of `make fuzz` can tell wrong from right."""

from __future__ import annotations

import numpy as np
import pytest

from fuzz import interior, machines, run
from longdouble import LONG


def ordinary(estimator):
    """The first problem without complaint: no warning, nothing refused, nothing undecided."""
    for number in range(200):
        problem = machines.case(7, number, estimator, rows=40)
        if getattr(problem.estimator, "hard", None) is not None:  # there the objective tells the cost
            continue
        result = run.attempt(problem)
        if not (result.wrong or result.warned or result.refused or result.undecided):
            return problem
    raise AssertionError("no ordinary problem")


@pytest.mark.parametrize("estimator", machines.MACHINES)
def test_a_wrong_objective_is_noticed(estimator):
    problem = ordinary(estimator)
    model = problem.estimator.fit(problem.X, problem.y, problem.weight)
    assert not problem.verdict(model).wrong
    model.objective_ = model.objective_ + 1e-4 * np.maximum(np.abs(model.objective_), 1)
    assert problem.verdict(model).wrong


@pytest.mark.parametrize("estimator", [name for name in machines.MACHINES if name != "RelevanceVectorClassifier"])
def test_a_model_off_the_optimum_is_noticed(estimator):
    """Another bias, and an objective that is true of it."""
    problem = ordinary(estimator)
    model = problem.estimator.fit(problem.X, problem.y, problem.weight)
    model.intercept_ = model.intercept_ + 3 * (1 if problem.y is None else max(1, np.abs(problem.y).max()))
    [line, *_] = problem.verdict(model).wrong
    value = float(line.split("the model's value ")[1].split()[0])
    model.objective_[0] = value
    wrong = problem.verdict(model).wrong
    assert any("output 0" in line and ("gap" in line or "above a point" in line) for line in wrong), wrong


@pytest.mark.parametrize("loss", [interior.HINGE, interior.SQUARED, interior.huber(0.5)], ids=["l1", "l2", "huber"])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e6])
def test_the_bounds_of_the_reference_meet(loss, C):
    """The interior point in long double proves its own answer."""
    rng = np.random.default_rng(3)
    P = rng.standard_normal((80, 5)).astype(LONG)
    y = np.where(rng.random(80) < 0.4, LONG(1), LONG(-1))
    cost = LONG(C) * rng.lognormal(0, 3, 80)
    found = interior.optimum(P, y, cost, loss, within=1e-10)
    assert found.upper - found.lower <= 1e-9 * found.upper


@pytest.mark.parametrize("loss", [interior.HINGE, interior.SQUARED, interior.huber(0.5)], ids=["l1", "l2", "huber"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_the_bounds_of_the_reference_meet_for_targets(loss, epsilon):
    rng = np.random.default_rng(4)
    P = rng.standard_normal((60, 5)).astype(LONG)
    targets = 30 + P @ rng.standard_normal(5) + rng.standard_normal(60)
    cost = rng.lognormal(0, 3, 60).astype(LONG)
    found = interior.of_targets(P, targets, cost, loss, epsilon, within=1e-10)
    assert found.upper - found.lower <= 1e-9 * found.upper
    residuals = np.abs(targets - P @ found.w - found.b)
    assert found.upper == pytest.approx(found.w @ found.w / 2 + loss.value(residuals - LONG(epsilon), cost))
