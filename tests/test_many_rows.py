"""From 5,000 rows on: threads, and the memory of many classes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from problems import blobs, three_classes
from slimsvm import AnyNormSVC, EmpiricalSVC, ReducedSVC, SlimSVC, slacks

N = 5200


@pytest.mark.parametrize("slack", ["l1", "l2", slacks.TopSum(400.0)], ids=str)
def test_threads_do_not_change_the_model(slack):
    """Bit for bit."""
    X, y = blobs(N, d=3, seed=1)
    one, two = (AnyNormSVC(slack, gamma=0.5, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    for name in ("support_", "vector_coef_", "intercept_", "objective_", "duality_gap_", "n_iter_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


@pytest.mark.parametrize(
    "model",
    [
        SlimSVC(6, C=1.0, gamma=0.5, scales="fixed"),
        SlimSVC(6, "forward", C=1.0, gamma=0.5, scales="fixed", slack="l1"),
        ReducedSVC(20, gamma=0.5),
        EmpiricalSVC(1e-2, gamma=0.5),
    ],
    ids=["slim", "forward", "reduced", "empirical"],
)
def test_threads_do_not_change_predictions(model):
    X, y = three_classes(N)
    one, two = (model.set_params(n_jobs=n_jobs).fit(X, y).predict(X) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


# --- One machine for each pair of classes --------------------------------------------------------------------

CLASSES, ROWS = 30, 9000
PAIRS = CLASSES * (CLASSES - 1) // 2
WHOLE = ROWS * PAIRS * 8  # bytes of one array of rows by pairs


@pytest.fixture(scope="module")
def many_classes():
    """Classes on a grid in the plane."""
    rng = np.random.default_rng(0)
    y = np.arange(ROWS) % CLASSES
    centers = np.array([divmod(c, 6) for c in range(CLASSES)], dtype=float)
    return centers[y] + 0.3 * rng.normal(size=(ROWS, 2)), y


def peak_memory(function, *arguments):
    """Most bytes that Python and numpy held at once."""
    tracemalloc.start()
    try:
        function(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "model",
    [
        ReducedSVC(12, gamma=1.0, regularizer="kernel", tol=1e-3),
        EmpiricalSVC(0.3, gamma=1.0, slack="l2", tol=1e-3),
        SlimSVC(12, "kmeans", C=1.0, gamma=1.0, scales="fixed", tol=1e-3),
    ],
    ids=["reduced", "empirical", "slim"],
)
def test_pairs_of_classes_take_no_array_of_all_rows_by_all_pairs(model, many_classes):
    """A row takes part in few of the pairs."""
    X, y = many_classes
    assert peak_memory(model.fit, X, y) < 0.75 * WHOLE
    assert model.vector_coef_.shape[0] == PAIRS
