"""What rows count: exact sums, bounds from few bits, and draws by weights that are not in memory."""

import math
from dataclasses import replace

import numpy as np
import pytest

from slimsvm import SlimSVC, rows
from slimsvm.data.counts import RemoteCounts, count_bounds, exact_sums, exact_total, leading_bits, sum_to_float
from slimsvm.data.dataset import Dataset, RowRange
from slimsvm.rows.coded_blocks import KeptRows, block_info, read_block
from slimsvm.rows.target_kinds import CLASSES

RNG = np.random.default_rng(0)
VALUES = {
    "uniform": RNG.uniform(0.1, 1.1, 70_000),
    "of any size": np.exp(RNG.normal(0, 40, 5000)),
    "tiny": 5e-324 * RNG.integers(1, 9, 1000),
    "huge": 1e304 * RNG.uniform(size=100),
    "integers": RNG.integers(1, 5, 1000).astype(float),
}


@pytest.mark.parametrize("kind", VALUES)
def test_sums_are_exact_in_any_order(kind):
    values = VALUES[kind]
    expected = math.fsum(values)
    assert exact_total(values) == expected
    assert exact_total(RNG.permutation(values)) == expected
    halves = np.array_split(values, 2)
    assert sum_to_float(sum(sum(exact_sums(half)) for half in halves)) == expected
    codes = RNG.integers(3, size=len(values)).astype(np.int8)
    by_class = [sum_to_float(units) for units in exact_sums(values, codes, 4)]
    assert by_class == [math.fsum(values[codes == c]) for c in range(4)]


@pytest.mark.parametrize("kind", VALUES)
def test_leading_bits_bound_a_count(kind):
    values = VALUES[kind]
    far = RemoteCounts(leading_bits(values), 0, values.__getitem__)
    least, most = count_bounds(far, np.arange(len(values)))
    assert (least <= values).all()
    assert (values < most).all()
    if kind != "tiny":  # those have few bits to begin with
        assert (most <= least * (1 + 2.0**-5)).all()


@pytest.mark.parametrize("kind", ["uniform", "of any size", "integers"])
@pytest.mark.parametrize("most", [1, 40, 700])
def test_draws_see_the_weights_of_few_rows(kind, most):
    """The sample is the one that all weights give, though only those of a few rows were asked for."""
    counts = VALUES[kind][:1000]
    n = len(counts)
    keys = np.random.default_rng(1).integers(1 << 63, size=n, dtype=np.uint64)
    codes = np.random.default_rng(2).choice(3, n, p=[0.7, 0.29, 0.01]).astype(np.int8)
    X = np.arange(n, dtype=float)[:, None]
    here = Dataset(X, codes, counts, np.ones(3), RowRange(n), keys, np.arange(3), None, n)
    asked = []
    far = RemoteCounts(leading_bits(counts), sum(exact_sums(counts)), lambda rows: asked.extend(rows) or counts[rows])
    one, two = (dataset.sample(most, np.random.default_rng(3)) for dataset in (here, replace(here, counts=far)))
    for name in ("X", "codes", "counts", "indices", "keys"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert len(asked) <= 1.2 * max(most, 3) + 12


def test_numbers_of_rows_that_are_left():
    X, weight = RNG.normal(size=(50, 2)), RNG.integers(0, 2, 50).astype(float)
    weight[20:30], weight[30:] = 0, 1
    found = [
        block_info(read_block(X[a:b], np.zeros(b - a), weight[a:b], 0, np.dtype(float), None, CLASSES))
        for a, b in ((0, 20), (20, 30), (30, 50))
    ]
    left, kept = np.flatnonzero(weight), KeptRows(found)
    assert len(kept) == len(left)
    some = RNG.permutation(len(left))[:20]
    np.testing.assert_array_equal(kept[some], left[some])
    np.testing.assert_array_equal(np.asarray(kept), left)


def test_weights_stay_with_their_rows():
    """Few are asked for, and what is held does not grow by 8 bytes a row."""
    X = RNG.normal(size=(60_000, 3)).astype(np.float32)
    y, weight = X[:, 0] * X[:, 1] > 0, RNG.uniform(0.5, 2, len(X))
    seen = []
    from slimsvm.rows.blocks import BlockRows

    class Watched(BlockRows):
        def fetch(self, numbers):
            seen.append(len(numbers))
            return super().fetch(numbers)

    far = Watched(
        rows.from_blocks([(X[a : a + 9000], y[a : a + 9000], weight[a : a + 9000]) for a in range(0, 60_000, 9000)])
    )
    assert far.keys.nbytes + far.codes.nbytes + far.counts.leading_bits.nbytes == 11 * len(X)
    np.testing.assert_array_equal(far.class_totals, [math.fsum(weight[~y]), math.fsum(weight[y])])
    here = np.array([5, 40_000, 9])
    far[here]
    np.testing.assert_array_equal(far.counts[here], weight[here])
    assert seen == [3]  # rows and their weights came together
    np.testing.assert_array_equal(far.counts[10:20_000:1000], weight[10:20_000:1000])
    assert SlimSVC(4, C=1.0, gamma=0.3, scales="fixed").fit(far.source).duality_gap_[0] < 1e-4
