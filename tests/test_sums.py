"""Sums over blocks: the same bits in any order, half of symmetric matrices, and blocks of a worker together."""

from functools import reduce

import numpy as np
import pytest

from slimsvm.rows.sums import Sums


def parts(count=40, m=7, seed=0):
    """What passes find: a value, moments, symmetric matrices; sizes differ by many orders of magnitude."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        P = rng.normal(size=(50, m)) * np.exp(rng.normal(0, 5, m))
        yield np.array([P.sum()]), P.sum(axis=0)[None], (P.T @ P)[None]


def test_the_order_does_not_show():
    found = [Sums.of(part) for part in parts()]
    rng = np.random.default_rng(1)
    expected = reduce(Sums.__add__, found).whole()
    for _ in range(5):
        order = rng.permutation(len(found))
        groups = [reduce(Sums.__add__, [found[k] for k in some]) for some in np.array_split(order, 6)]
        for one, two in zip(expected, reduce(Sums.__add__, groups).rounded().whole(), strict=True):
            np.testing.assert_array_equal(one, two)


def test_sums_are_those_of_the_arrays():
    found = list(parts())
    whole = reduce(Sums.__add__, map(Sums.of, found)).whole()
    for k, total in enumerate(whole):
        np.testing.assert_allclose(total, sum(part[k] for part in found), rtol=1e-12)
    assert Sums.of(found[0]).high[2].shape == (1, 7 * 8 // 2)


def test_matrices_that_are_not_symmetric_everywhere():
    one, other = np.eye(3), np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal((Sums.of((one,)) + Sums.of((other,))).whole()[0], one + other)


@pytest.mark.filterwarnings("ignore:overflow")
def test_what_is_infinite_stays_so():
    huge = Sums.of((np.array([1e308, 1.0]),))
    np.testing.assert_array_equal((huge + huge).whole()[0], [np.inf, 2.0])
