"""A short sample of `make fuzz`."""

from __future__ import annotations

import os

import pytest

from fuzz import machines, run

SEED, ROWS, EACH, TOGETHER = 0, 60, 24, 6

# Problems of up to 300 rows that long runs have found wrong, by seed and number.
FOUND = [
    (811901, 945),  # SlimSVC: division by zero in the start of interior points
    (811901, 1427),  # LeastSquaresSVC: rounding of more than tol, not counted in the gap
    (811901, 1463),
    (811901, 2028),  # SlimSVR: an objective below what the rounding of targets makes
    (811901, 2333),  # RelevanceVectorClassifier: precisions of many vectors that were not tried
    (811901, 2796),  # LeastOneNormSVC: the same rounding
    (271828, 406),  # LpSVC: overflow
    (271828, 1906),  # NuSVC: coefficients of rounding beside a row of zeros
    (271828, 2495),  # RelevanceVectorClassifier: candidates of far smaller precision than was tried
    (271828, 2746),  # LpSVC: rows that the kernel cannot tell apart
    (905113, 263),
    (20261119, 1954),  # LpSVC: decision values whose rounding is more than tol
    (20261119, 2531),  # RelevanceVectorClassifier: a candidate whose best precision is larger than was tried
    (20261119, 2909),  # RelevanceVectorClassifier: a step to be cut by more than was tried
    (77345, 2548),  # LpSVC: overflow where all coefficients vanish
    (424243, 191),  # RelevanceVectorClassifier: vectors that were not tried for lack of time
    (424243, 2475),  # SlimSVC: division by a place of next to nothing
    (990017, 893),  # RelevanceVectorClassifier: a gain hidden in the rounding of a nearly dependent column
    (990017, 1579),  # SVR: rounding of both duals of a row, which cancel
    (5551212, 2675),  # RelevanceVectorClassifier: weights of which f has no digits left
    (86420, 893),  # RelevanceVectorClassifier: precisions far below what an outlier makes of a candidate's size
    (314159, 227),  # RelevanceVectorClassifier: a row far out, where steps gain little and bend much
    (1414213, 767),  # RelevanceVectorClassifier: more than 20 s
    (40961, 112),  # BudgetSVC: a quotient beyond the range of float64
    (40961, 1408),  # BudgetSVC: values of a polynomial are rounded more than those of other kernels
    (40961, 2652),  # LeastOneNormSVC: partial sums of f that are far larger than its terms
    (40961, 2999),  # RelevanceVectorClassifier: 1 - gamma rounded to zero
]


@pytest.mark.parametrize("first", range(0, EACH, TOGETHER))
@pytest.mark.parametrize("estimator", machines.MACHINES)
def test_hostile_problems(estimator, first):
    """No crash, no number that is not so, nothing off the optimum without a warning."""
    wrong = []
    for number in range(first, first + TOGETHER):
        result = run.attempt(machines.case(SEED, number, estimator, ROWS))
        wrong += [f"{run.command(SEED, number, estimator, ROWS)}\n  {result.text}\n  {line}" for line in result.wrong]
    assert not wrong, "\n".join(["", *wrong])


@pytest.mark.parametrize(("seed", "number"), FOUND)
def test_problems_that_were_wrong(seed, number):
    result = run.attempt(machines.case(seed, number))
    # With sanitizers everything takes several times as long: the limit of seconds is for others.
    wrong = [line for line in result.wrong if not ("LD_PRELOAD" in os.environ and line.startswith("slow"))]
    assert not wrong, wrong
