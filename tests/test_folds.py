"""Rows held out: what every choice by validation rests on."""

import numpy as np
import pytest

from slimsvm.data import duplicates
from slimsvm.data.dataset import Dataset
from slimsvm.data.duplicates import merge_duplicates, row_keys
from slimsvm.data.folds import RowGroups, make_folds
from slimsvm.training import probabilities, search, sizes


def as_task(X, y, counts=None):
    n, classes = len(y), np.unique(y)
    counts = np.ones(n) if counts is None else counts
    return merge_duplicates(
        Dataset(X, y, counts, np.ones(len(classes)), np.arange(n), row_keys(X), classes, None, n), X
    )


def noisy(n, values=None, n_classes=3, seed=0):
    """Rows of a few values come again with other labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) if values is None else rng.integers(values, size=(n, 2)).astype(float)
    return as_task(X, rng.choice(n_classes, size=n, p=np.arange(1, n_classes + 1) / (n_classes * (n_classes + 1) / 2)))


def pairs(dataset, seed=0):
    """All splits of all three users, as train and test."""
    rng = np.random.default_rng(seed)
    found = [(fold.train, fold.test) for fold in search.search_folds(dataset, rng)]
    found += [(part.train, part.test) for folds in (None, 4) for part in sizes.size_folds(dataset, rng, folds)]
    pieces = probabilities.calibration_folds(dataset, lambda train: (None, None), rng)
    return found + [(piece.fold.train, piece.fold.test) for piece in pieces]


SIZES = {"few": (100, 12), "some": (900, 60), "many": (5000, 200), "beyond the limits": (40_000, None)}


@pytest.mark.parametrize("size", SIZES)
def test_equal_rows_are_never_on_both_sides(size):
    for train, test in pairs(noisy(*SIZES[size])):
        assert not np.isin(train.keys, test.keys).any()
        assert set(train.codes) == {0, 1, 2}


@pytest.mark.parametrize("size", SIZES)
def test_the_order_of_rows_does_not_matter(size):
    dataset = noisy(*SIZES[size])
    shuffled = dataset.take(np.random.default_rng(1).permutation(dataset.size))
    for ours, theirs in zip(pairs(dataset), pairs(shuffled), strict=True):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a.X, b.X)
            np.testing.assert_array_equal(a.codes, b.codes)
            np.testing.assert_allclose(a.counts, b.counts, rtol=1e-12)


@pytest.mark.parametrize("count", [3, 5, 10])
def test_every_class_is_spread_evenly(count):
    dataset = noisy(1000)
    place = RowGroups(dataset).assign(count, np.random.default_rng(0))
    for c in range(3):
        shares = np.bincount(place[dataset.codes == c], minlength=count)
        assert shares.max() - shares.min() <= 1


def test_at_most_so_many_groups_are_drawn():
    dataset = noisy(1000, n_classes=4)
    place = RowGroups(dataset).assign(5, np.random.default_rng(0), max_groups=100, min_per_class=12)
    drawn = np.bincount(dataset.codes[place >= 0], minlength=4)
    expected = np.maximum(12, np.bincount(dataset.codes) * 0.1)
    assert (np.abs(drawn - expected) <= 0.5).all()


def test_parts_that_lack_a_class_are_left_out():
    X = np.arange(9.0)[:, None]
    dataset = as_task(X, np.array([0, 0, 0, 0, 1, 1, 1, 1, 2]))
    tests = [X[:, 0] < 2, X[:, 0] == 8, X[:, 0] > 100]
    ((train, test),) = make_folds(dataset, tests)
    assert train.size == 7
    assert test.size == 2


def test_rows_with_many_copies_judge_themselves():
    dataset = noisy(2000, values=4)
    assert RowGroups(dataset).mostly_duplicates
    assert probabilities.calibration_folds(dataset, lambda train: (None, None), np.random.default_rng(0)) == []
    (fold,) = search.search_folds(dataset, np.random.default_rng(0))
    assert fold.train is fold.test


def test_a_sample_of_rows_is_not_taken_for_copies():
    """Rows that were drawn count as often as they stand for others; they have no copies."""
    dataset = noisy(100_000, n_classes=26)
    assert len(probabilities.calibration_folds(dataset, lambda train: (None, None), np.random.default_rng(0))) == 1


def test_a_sample_has_each_class_in_proportion():
    """But a class of one row keeps it."""
    y = np.repeat([0, 1, 2], [600, 399, 1])
    dataset = as_task(np.random.default_rng(0).normal(size=(1000, 2)), y)
    sample = dataset.sample(101, np.random.default_rng(1))
    assert np.bincount(sample.codes).tolist() == [60, 40, 1]
    assert sample.total == pytest.approx(1000)


def test_folds_do_not_depend_on_how_many_rows_are_sorted_at_a_time(monkeypatch):
    dataset = noisy(3000, 40)
    whole = RowGroups(dataset).assign(5, np.random.default_rng(0))
    monkeypatch.setattr(duplicates, "MIN_PART_ROWS", 100)
    parts = list(duplicates.rows_by_key(dataset.keys, dataset.merge_keys))
    assert len(parts) > 5
    np.testing.assert_array_equal(RowGroups(dataset).assign(5, np.random.default_rng(0)), whole)
