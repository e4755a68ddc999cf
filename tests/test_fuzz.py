"""A short sample of `make fuzz`."""

from __future__ import annotations

import pytest

from fuzz import machines, run

SEED, ROWS, EACH, TOGETHER = 0, 60, 24, 6


# Problem 7 of AnyNormSVC: `objective_` of a Mahalanobis norm is 3e-4 off where it is 3e-6, to be mended.
OPEN = {("AnyNormSVC", 6)}


@pytest.mark.parametrize("first", range(0, EACH, TOGETHER))
@pytest.mark.parametrize("estimator", machines.MACHINES)
def test_hostile_problems(estimator, first, request):
    """No crash, no number that is not so, nothing off the optimum without a warning."""
    if (estimator, first) in OPEN:
        request.applymarker(pytest.mark.xfail(reason="objective_ of a Mahalanobis norm, 3e-4 off", strict=False))
    wrong = []
    for number in range(first, first + TOGETHER):
        result = run.attempt(machines.case(SEED, number, estimator, ROWS))
        wrong += [f"{run.command(SEED, number, estimator, ROWS)}\n  {result.text}\n  {line}" for line in result.wrong]
    assert not wrong, "\n".join(["", *wrong])
