"""Many rows take few bytes each beside themselves, and what is drawn from them is what was always drawn."""

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from slimsvm import SlimSVC
from slimsvm.data import duplicates
from slimsvm.data.classes import class_numbers
from slimsvm.data.dataset import Dataset, RowRange
from slimsvm.data.duplicates import merge_duplicates
from slimsvm.data.folds import RowGroups
from slimsvm.estimators import checked_data
from slimsvm.estimators.targets import ClassTargets
from slimsvm.problem import kernels

N, D = 400_000, 5


@pytest.fixture(scope="module")
def many_rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, D)).astype(np.float32), rng.integers(3, size=N)


def peak_bytes(function):
    """Most bytes that numpy held at once for it, and what it gives."""
    tracemalloc.start()
    try:
        found = function()
        return tracemalloc.get_traced_memory()[1], found
    finally:
        tracemalloc.stop()


def task_of(X, y, weight=None, **options):
    return checked_data.checked_dataset(SlimSVC(5, **options), X, y, weight, ClassTargets())


# --- bytes a row -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["integers", "floats", "strings", "copies", "weights"])
def test_checks_and_samples_take_few_bytes_a_row(many_rows, kind, monkeypatch):
    """Keys are 8 bytes and class numbers 1; weights are the user's own; of copies, none of the rows is moved."""
    X, y = many_rows
    monkeypatch.setattr(duplicates, "MIN_BYTES_TO_KEEP_DUPLICATES", 1 << 20)
    y = {"floats": y.astype(float), "strings": np.array(["a", "bc", "d"])[y]}.get(kind, y)
    weight = np.random.default_rng(1).uniform(0.1, 1.0, N) if kind == "weights" else None
    if kind == "copies":
        X, y = X.copy(), y.copy()
        X[-100:], y[-100:] = X[:100], y[:100]
    task_of(X[:100], y[:100])  # imports
    checking, dataset = peak_bytes(lambda: task_of(X, y, weight, class_weight="balanced"))
    assert checking < 16 * N
    assert dataset.X is X or np.shares_memory(dataset.X, X)
    drawing, some = peak_bytes(lambda: dataset.sample(5000, np.random.default_rng(0)))
    assert drawing < 12 * N  # beside the task
    assert 4990 <= some.size <= 5000
    assert peak_bytes(lambda: RowGroups(dataset).mostly_duplicates)[0] < 8 * N


def test_class_numbers_take_as_few_bytes_as_will_do():
    for count, dtype in ((2, np.int8), (127, np.int8), (128, np.int16), (40_000, np.int32)):
        y = np.random.default_rng(0).permutation(count)
        classes, codes = class_numbers(y)
        assert codes.dtype == dtype
        np.testing.assert_array_equal(classes[codes], y)


@pytest.mark.parametrize("labels", ["ab", "object", "float", "bool"])
def test_class_numbers_are_those_of_the_sorted_labels(labels, monkeypatch):
    monkeypatch.setattr(duplicates, "BLOCK_ENTRIES", 7)  # blocks that lack some of the classes
    y = np.sort(np.random.default_rng(0).integers(4, size=50))
    y = {"ab": np.array(["b", "aa", "c", ""])[y], "float": y - 1.0, "bool": y > 1}.get(
        labels, np.array(["b", "aa", "c", ""], dtype=object)[y]
    )
    expected = np.unique(y, return_inverse=True)
    for ours, theirs in zip(class_numbers(y), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


# --- draws -------------------------------------------------------------------------------------------------------


def drawn_at_once(dataset, most, rng):
    """Priority sampling over all rows in canonical order: row numbers and weights."""
    order = np.lexsort((dataset.codes, dataset.keys))
    codes, counts = dataset.codes[order], dataset.counts[order]
    priority = counts / (1 - rng.random(dataset.size))
    totals = np.bincount(codes)
    shares = np.maximum(np.minimum(totals, 1), (totals * (most / dataset.size)).astype(int))
    while shares.sum() > max(most, np.count_nonzero(totals)):
        shares[shares.argmax()] -= 1
    weight, kept = counts.copy(), []
    for c in np.flatnonzero(shares):
        mine = np.flatnonzero(codes == c)
        ranked = mine[np.argsort(-priority[mine], kind="stable")]
        if shares[c] < len(mine):
            weight[mine] = np.maximum(weight[mine], priority[ranked[shares[c]]])
        kept.extend(ranked[: shares[c]])
    kept = np.sort(kept)
    return order[kept], weight[kept] * (math.fsum(counts) / weight[kept].sum())


def hand_made(n, seed, weighted, values=None):
    """Classes of very different sizes; the same row may be in several classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) if values is None else rng.integers(values, size=(n, 2)).astype(float)
    codes = np.minimum(rng.geometric(0.4, size=n) - 1, 6)
    codes[:7] = np.arange(7)
    counts = np.exp(rng.normal(size=n)) if weighted else np.broadcast_to(1.0, n)
    dataset = Dataset(
        X, codes.astype(np.int8), counts, np.ones(7), RowRange(n), duplicates.row_keys(X), np.arange(7), None, n
    )
    return merge_duplicates(dataset, X)


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("values", [None, 30], ids=["distinct", "copies"])
@pytest.mark.parametrize("most", [3, 40, 700])
def test_a_sample_in_parts_is_the_sample_of_all_rows(most, values, weighted, monkeypatch):
    monkeypatch.setattr(duplicates, "MIN_PART_ROWS", 50)
    monkeypatch.setattr(duplicates, "BLOCK_ENTRIES", 97)
    dataset = hand_made(3000, 1, weighted, values)
    rows, weights = drawn_at_once(dataset, most, np.random.default_rng(5))
    some = dataset.sample(most, np.random.default_rng(5))
    np.testing.assert_array_equal(some.indices, dataset.indices[rows])
    np.testing.assert_array_equal(some.X, dataset.X[rows])
    np.testing.assert_array_equal(some.codes, dataset.codes[rows])
    np.testing.assert_array_equal(some.counts, weights)


def test_the_canonical_order_is_by_key_then_class_then_place(monkeypatch):
    monkeypatch.setattr(duplicates, "MIN_PART_ROWS", 10)
    rng = np.random.default_rng(0)
    found = rng.integers(1 << 64, size=400, dtype=np.uint64, endpoint=False)[rng.integers(400, size=1000)]
    codes = rng.integers(3, size=1000)
    order = np.concatenate(list(duplicates.rows_by_key(found, codes)))
    np.testing.assert_array_equal(order, np.lexsort((codes, found)))
    assert duplicates.n_distinct(found) == len(np.unique(found))


# --- copies ------------------------------------------------------------------------------------------------------


def with_copies(weighted):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(2000, 3)), rng.integers(2, size=2000)
    X[1900:1960], y[1900:1960] = X[:60], y[:60]
    X[1960:], y[1960:] = X[:40], y[:40]  # three of each
    return X, y, rng.uniform(0.1, 1.0, 2000) if weighted else None


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
def test_copies_that_stay_change_no_draw(weighted, monkeypatch):
    X, y, weight = with_copies(weighted)
    apart = task_of(X, y, weight)
    monkeypatch.setattr(duplicates, "MIN_BYTES_TO_KEEP_DUPLICATES", 0)
    together = task_of(X, y, weight)
    assert apart.size == together.n_distinct == 1900
    assert together.size == 2000
    assert together.counts.sum() == pytest.approx(apart.counts.sum(), rel=1e-12)
    for most in (100, 1899, 1900, 5000):
        ours, theirs = (dataset.sample(most, np.random.default_rng(0)) for dataset in (together, apart))
        for name in ("X", "codes", "counts", "indices", "keys"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
        assert ours.duplicates is None
    drawn = [dataset.X[dataset.drawn_by_weight(np.random.default_rng(0))] for dataset in (together, apart)]
    np.testing.assert_array_equal(*drawn)
    mask = np.arange(2000) % 2 == 0
    ours, theirs = together.take(mask), apart.take(mask[:1900])
    np.testing.assert_array_equal(ours.X, theirs.X)
    np.testing.assert_array_equal(ours.counts, theirs.counts)


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("slack", ["l1", "l2"])
def test_copies_that_stay_change_no_model(weighted, slack, monkeypatch):
    X, y, weight = with_copies(weighted)
    model = SlimSVC(4, C=1.0, gamma=0.3, scales="fixed", slack=slack, basis="kmeans", tol=1e-10)
    apart = model.fit(X, y, weight).decision_function(X)
    objective = model.objective_
    monkeypatch.setattr(duplicates, "MIN_BYTES_TO_KEEP_DUPLICATES", 0)
    np.testing.assert_allclose(model.fit(X, y, weight).decision_function(X), apart, atol=1e-4)
    np.testing.assert_allclose(model.objective_, objective, rtol=1e-9)


def test_rows_that_share_a_key_are_told_apart():
    """Keys may collide: then contents decide."""
    X = np.array([[1.0], [2.0], [1.0], [-0.0], [0.0], [2.0], [3.0]])
    same = np.zeros(len(X), dtype=np.uint64)
    np.testing.assert_array_equal(duplicates.group_equal_rows(X, same).group, [0, 1, 0, 2, 2, 1, 3])
    np.testing.assert_array_equal(
        duplicates.group_equal_rows(X, same, np.array([0, 0, 1, 0, 0, 0, 0])).group, [0, 1, 2, 3, 3, 1, 4]
    )
    assert not duplicates.group_equal_rows(np.arange(5.0)[:, None], same[:5]).has_duplicates


# --- gamma -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
def test_gamma_does_not_depend_on_how_rows_are_stored(weighted):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((70_001, 3)) < 0.5, 0.0, rng.normal(size=(70_001, 3))).astype(np.float32)
    weight = rng.uniform(0.1, 1.0, len(X)) if weighted else None
    mean = np.average(X.astype(float).mean(axis=1), weights=weight)
    expected = 1 / (3 * np.average(((X.astype(float) - mean) ** 2).mean(axis=1), weights=weight))
    forms = (X, X.astype(float), np.asfortranarray(X), sp.csr_array(X), sp.csr_array(X.astype(float)))
    (gamma,) = {kernels.scale_gamma("scale", form, weight) for form in forms}
    assert gamma == pytest.approx(expected, rel=1e-9)
    order = rng.permutation(len(X))
    assert kernels.scale_gamma("scale", X[order], weight if weight is None else weight[order]) == gamma


# --- arrays without memory ---------------------------------------------------------------------------------------


def test_rows_of_weight_one_are_rows_without_weights():
    X, y = np.random.default_rng(0).normal(size=(300, 2)), np.arange(300) % 3
    plain, ones = task_of(X, y), task_of(X, y, np.ones(300))
    assert plain.counts.strides == (0,)
    half = np.arange(300) % 2 == 0
    for dataset in (plain, ones):
        np.testing.assert_array_equal(dataset.take(half).counts, np.ones(150))
        np.testing.assert_array_equal(dataset.take(half).indices, np.flatnonzero(half))
        np.testing.assert_array_equal(dataset.weights, np.ones(300))
    weighted = replace(plain, class_weights=np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(weighted.weights, 1.0 + y)


def test_the_numbers_of_all_rows():
    numbers = RowRange(5)
    assert len(numbers) == 5
    np.testing.assert_array_equal(np.asarray(numbers), np.arange(5))
    np.testing.assert_array_equal(numbers[np.array([3, 1])], [3, 1])
    np.testing.assert_array_equal(numbers[np.array([True, False, True, False, False])], [0, 2])


def key_by_hand(row):
    """The key of a row in whole numbers of any size."""
    most = 1 << 64
    constants = (2 * int(c) + 1 for c in np.random.default_rng(20).integers(1 << 63, size=4096, dtype=np.uint64))

    def mixed(bits):
        bits ^= bits >> 29
        bits = bits * 0xBF58476D1CE4E5B9 % most
        return bits ^ (bits >> 32)

    bits = [int(np.float64(value + 0.0).view(np.uint64)) for value in row.tolist()]
    return mixed(sum(mixed(b) * c for b, c in zip(bits, constants, strict=False)) % most)


@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_array], ids=["C", "F", "sparse"])
def test_keys_are_those_made_by_hand(container):
    rng = np.random.default_rng(1)
    X = np.where(rng.random((9000, 5)) < 0.4, rng.normal(size=(9000, 5)), 0.0).astype(np.float32)
    X[3] = -0.0
    for threads in 1, 3:
        found = duplicates.row_keys(container(X), threads)
        np.testing.assert_array_equal(found, duplicates.row_keys(X.astype(np.float64)))
    assert found[:20].tolist() == [key_by_hand(row) for row in X[:20].astype(np.float64)]
    assert found[3] == 0
