"""Bases: the rows they choose are those of the slow definition, no vector twice, never more than asked for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import kernel_table
import reference
import reference_bases as slow
from problems import blobs, three_classes
from slimsvm import bases, kernels, losses, regularizers
from slimsvm.basis import selection
from slimsvm.basis.candidates import DatasetCandidates
from slimsvm.data.dataset import Dataset, outputs
from slimsvm.data.duplicates import row_keys
from slimsvm.solvers import pivoted_cholesky

KERNELS = kernel_table.examples(semidefinite=True) | {"rbf narrow": kernels.Gaussian(5.0)}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
CONTAINERS = {"dense": np.asarray, "sparse": sp.csr_array}
containers = pytest.mark.parametrize("container", CONTAINERS)


def textbook(kernel, X):
    return reference.kernel_matrix(kernel.name, X, X, **kernel.get_params())


def task_of(X, codes, counts=None, kernel=None):
    codes = np.asarray(codes)
    n, classes = len(codes), np.arange(codes.max() + 1)
    counts = np.ones(n) if counts is None else np.asarray(counts, dtype=float)
    return Dataset(X, codes, counts, np.ones(len(classes)), np.arange(n), row_keys(X), classes, kernel, n)


def candidates_of(kernel, X, codes, C=1.0, seed=0, counts=None):
    """All rows, for machines of one class against the others."""
    dataset = task_of(X, codes, counts, kernel)
    loss, norm = losses.SquaredHinge(), regularizers.KernelNorm(0.0)
    rng = np.random.default_rng(seed)
    return DatasetCandidates(dataset, kernel, outputs(dataset.n_classes, "ovr"), C, loss, norm, rng)


def forward_rows(problem, count, seed=0, **options):
    rng = np.random.default_rng(seed)
    return selection.forward_rows(problem.kernel, problem.X, problem.labels, count, rng, **options)


def sides_and_costs(problem):
    """Rows x machines."""
    return problem.labels.of(slice(None))


def pivoted_rows(kernel, X, eta, most):
    return pivoted_cholesky.pivoted_factor(kernel, X, eta, most)[0]


def random_rows(n, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def clear_threshold(K, eta):
    """A threshold near eta that no distance of the one-pass definition comes close to.

    At a distance that equals eta to rounding, keeping the row is a matter of the last bit.
    """
    for factor in (1.0, 1.01, 0.97, 1.05, 0.9):
        kept = slow.independent_rows(K, factor * eta)
        nearby = [slow.independent_rows(K, factor * eta * (1 + s)) for s in (1e-6, -1e-6)]
        if all(len(other) == len(kept) and (other == kept).all() for other in nearby):
            return factor * eta, kept
    raise AssertionError("no clear threshold")


# --- Cholesky ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eta", [1e-1, 1e-2, 1e-4, 1e-6])
@every_kernel
def test_blocked_selection_is_the_one_pass_definition(kernel, eta):
    """More rows than one block of 256, the same indices exactly."""
    kernel = KERNELS[kernel]
    X = random_rows(400, d=3, seed=1)
    K = textbook(kernel, X)
    if kernel.name in ("linear", "poly"):
        eta *= K.diagonal().max()
    threshold, kept = clear_threshold(K, eta)
    np.testing.assert_array_equal(pivoted_cholesky.independent_rows(kernel, X, threshold), kept)
    np.testing.assert_array_equal(pivoted_cholesky.independent_rows(kernel, sp.csr_array(X), threshold), kept)


@settings(max_examples=30)
@given(
    n=st.integers(1, 40),
    d=st.integers(1, 3),
    levels=st.integers(1, 4),
    eta=st.sampled_from([1e-3, 1e-2, 0.1, 0.5]),
    seed=st.integers(0, 10**6),
)
def test_blocked_selection_on_grids(n, d, levels, eta, seed):
    """Rows on a coarse grid: duplicates everywhere, any order, any limit; never a row twice."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, size=(n, d)).astype(float)
    kernel = kernels.Gaussian(0.7)
    order = rng.permutation(n)
    most = int(rng.integers(1, n + 1))
    K = textbook(kernel, X)
    expected = slow.independent_rows(K, eta, order, most)
    if len(expected) != len(slow.independent_rows(K, eta * (1 + 1e-7), order, most)):
        return
    kept = pivoted_cholesky.independent_rows(kernel, X, eta, order, most)
    np.testing.assert_array_equal(kept, expected)
    assert len(np.unique(X[kept], axis=0)) == len(kept) <= most


@pytest.mark.parametrize("n", [255, 256, 257, 512, 513])
@pytest.mark.parametrize("most", [1, 3, 255, 256, 257])
def test_limit_at_the_edges_of_blocks(n, most):
    X = random_rows(n, d=20, seed=2)  # far apart: every row is independent
    kept = pivoted_cholesky.independent_rows(kernels.Gaussian(1.0), X, 1e-3, most=most)
    np.testing.assert_array_equal(kept, np.arange(min(n, most)))


def test_every_row_left_out_is_in_the_span_of_the_kept():
    X = random_rows(700, d=2, seed=3)
    kernel, eta = kernels.Gaussian(0.5), 1e-3
    kept = pivoted_cholesky.independent_rows(kernel, X, eta)
    assert slow.distances(textbook(kernel, X), kept).max() <= eta * (1 + 1e-6)
    greedy = pivoted_rows(kernel, X, eta, 700)
    assert slow.distances(textbook(kernel, X), greedy).max() <= eta * (1 + 1e-6)
    assert len(greedy) <= len(kept)


@pytest.mark.parametrize("rank", [1, 2, 5])
def test_linear_rows_are_kept_up_to_their_rank(rank):
    rng = np.random.default_rng(rank)
    X = rng.normal(size=(600, rank)) @ rng.normal(size=(rank, 9))
    kernel = kernels.Linear()
    scale = kernel.diagonal(X).max()
    assert len(pivoted_cholesky.independent_rows(kernel, X, 1e-8 * scale)) == rank
    assert len(pivoted_rows(kernel, X, 1e-8 * scale, 600)) == rank


@pytest.mark.parametrize("most", [1, 5, 40])
@every_kernel
def test_pivoted_is_greedy(kernel, most):
    """Each choice is the farthest of all; it ends when nothing is above eta, or at the limit."""
    kernel = KERNELS[kernel]
    X = random_rows(90, d=3, seed=4)
    K = textbook(kernel, X)
    eta, rounding = 1e-6 * K.diagonal().max(), 1e-11 * K.diagonal().max()
    kept = pivoted_rows(kernel, X, eta, most)
    for k in range(len(kept)):
        rest = slow.distances(K, kept[:k])
        assert rest[kept[k]] >= max(rest.max() - rounding, eta)
    if len(kept) < most:
        assert slow.distances(K, kept).max() <= eta + rounding
    if kernel.name != "rbf":  # far apart, rows of a narrow kernel are equally far to the last bit
        np.testing.assert_array_equal(kept, slow.pivoted_rows(K, eta, most))


def test_pivoted_takes_the_first_of_equal_rows():
    X = np.repeat(random_rows(6, d=3, seed=5), 4, axis=0)
    kept = pivoted_rows(kernels.Gaussian(0.5), X, 1e-9, 24)
    assert kept[0] == 0
    assert len(kept) == 6
    assert len(np.unique(kept // 4)) == 6
    np.testing.assert_array_equal(kept % 4, 0)


@pytest.mark.parametrize("selection", ["order", "pivoted"])
def test_eta_is_relative_to_the_largest_diagonal(selection):
    """Scaling a linear kernel's rows changes no choice."""
    X, y = random_rows(200, d=5, seed=6), np.arange(200) % 2
    basis = bases.Cholesky(1e-2, selection)
    small, large = (basis.choose(candidates_of(kernels.Linear(), s * X, y), 200).rows for s in (1.0, 1024.0))
    np.testing.assert_array_equal(small, large)


# --- Forward selection ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", [*kernel_table.names(radial=True), "poly"])
def test_forward_selection_takes_the_best_newton_step(kernel, classes, C):
    """Every choice, with all rows as candidates, is the best of the brute-force scores (to the inner tolerance)."""
    X, codes = three_classes(60, seed=1)
    keep = codes < classes
    X, codes = X[keep], codes[keep]
    kernel = KERNELS[kernel]
    problem = candidates_of(kernel, X, codes, C)
    rows = forward_rows(problem, 5, candidates=None)
    K = textbook(kernel, X)
    Y, C = sides_and_costs(problem)
    for k in range(5):
        gains = slow.forward_gains(K, rows[:k], Y, C)
        assert gains[rows[k]] >= 0.98 * gains.max()
    assert rows[0] == slow.forward_gains(K, [], Y, C).argmax()


def test_forward_selection_gains_with_every_row():
    """The objective over the rows chosen falls, faster than over random rows."""
    X, y = blobs(150, d=3, seed=2)
    kernel = kernels.Gaussian(0.3)
    problem = candidates_of(kernel, X, (y > 0).astype(int), 5.0)
    K = textbook(kernel, X)
    Y, C = sides_and_costs(problem)

    def value(rows):
        return slow.machine(K[:, rows], K[np.ix_(rows, rows)], Y[:, 0], C[:, 0], "SquaredHinge").value

    rows = forward_rows(problem, 8)
    values = [value(rows[:k]) for k in range(1, 9)]
    assert (np.diff(values) < 1e-9 * values[0]).all()
    others = [value(np.random.default_rng(s).choice(150, 8, replace=False)) for s in range(5)]
    assert values[-1] < np.median(others)


def test_forward_selection_goes_on_from_given_vectors():
    """Rows that the given vectors span already are not chosen; the first choice is the best beside them."""
    X, y = blobs(60, d=3, seed=3)
    kernel = kernels.Gaussian(0.3)
    problem = candidates_of(kernel, X, (y > 0).astype(int), 3.0)
    rows = forward_rows(problem, 3, given=X[:4], candidates=None)
    assert not np.isin(rows, np.arange(4)).any()
    gains = slow.forward_gains(textbook(kernel, X), [0, 1, 2, 3], *sides_and_costs(problem))
    assert gains[rows[0]] >= 0.98 * gains.max()


@pytest.mark.parametrize("candidates", [1, 3, 59, None])
def test_forward_selection_uses_up_all_distinct_rows(candidates):
    """However few candidates are drawn, and however many duplicates are among them."""
    X = np.repeat(random_rows(7, d=2, seed=7), 9, axis=0)
    problem = candidates_of(kernels.Gaussian(0.8), X, np.arange(63) % 2)
    rows = forward_rows(problem, 20, candidates=candidates)
    assert len(rows) == len(np.unique(X[rows], axis=0)) == 7


# --- All bases -----------------------------------------------------------------------------------------------

BASES = {
    "random": bases.Random(),
    "order": bases.Cholesky(1e-6, "order"),
    "pivoted": bases.Cholesky(1e-6, "pivoted"),
    "forward": bases.Forward(),
    "few candidates": bases.Forward(candidates=2),
    "kmeans": bases.KMeans(),
}
every_basis = pytest.mark.parametrize("basis", BASES)


def rows_of(kind):
    rng = np.random.default_rng(8)
    return {
        "distinct": random_rows(50, d=3, seed=8),
        "duplicates": np.repeat(random_rows(5, d=3, seed=8), 10, axis=0),
        "constant columns": np.c_[np.ones(50), rng.integers(0, 3, 50), np.zeros(50)],
        "all equal": np.ones((50, 3)),
        "signed zeros": np.where(rng.random((50, 3)) < 0.5, 0.0, -0.0),
        "far": random_rows(50, d=3, seed=8) + 1e6,
    }[kind]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("count", [1, 2, 5, 49, 80])
@pytest.mark.parametrize(
    ("kind", "container"),
    [
        *((kind, c) for kind in ("distinct", "duplicates", "constant columns", "all equal") for c in CONTAINERS),
        ("signed zeros", "dense"),
        ("far", "dense"),  # sparse rows have no offset that could be taken out
    ],
)
@every_basis
def test_never_too_many_never_twice(basis, kind, count, container):
    X = rows_of(kind)
    codes = np.arange(50) % 3
    choice = BASES[basis].choose(candidates_of(kernels.Gaussian(0.5), CONTAINERS[container](X), codes), count)
    Z = choice.vectors.toarray() if sp.issparse(choice.vectors) else choice.vectors
    distinct = len(np.unique(X, axis=0))
    assert 1 <= len(Z) <= min(count, distinct if basis != "kmeans" else 3 * distinct)
    assert len(np.unique(Z, axis=0)) == len(Z)
    if choice.rows is not None:
        np.testing.assert_array_equal(Z, X[choice.rows])
        assert len(set(choice.rows.tolist())) == len(choice.rows)
    if kind == "distinct" and basis in ("random", "forward", "few candidates", "kmeans"):
        assert len(Z) == min(count, 50)


@every_basis
def test_the_same_draw_gives_the_same_vectors(basis):
    X, codes = random_rows(300, seed=9), np.arange(300) % 2
    one, other = (
        BASES[basis].choose(candidates_of(kernels.Gaussian(0.5), X, codes, seed=3), 7).vectors for _ in range(2)
    )
    np.testing.assert_array_equal(one, other)


def test_all_rows_without_duplicates():
    X = np.repeat(random_rows(20, seed=10), 2, axis=0)
    choice = bases.AllRows().choose(candidates_of(kernels.Gaussian(0.5), X, np.arange(40) % 2), 3)
    np.testing.assert_array_equal(choice.rows, np.arange(0, 40, 2))


def test_random_rows_are_drawn_evenly():
    X = random_rows(20, d=3, seed=11)
    problem = candidates_of(kernels.Gaussian(2.0), X, np.arange(20) % 2)
    counts = np.bincount(np.concatenate([bases.Random().choose(problem, 5).rows for _ in range(400)]), minlength=20)
    assert counts.sum() == 2000
    assert ((counts > 60) & (counts < 145)).all()  # 100 +- 4.5 standard deviations


def test_given_vectors_are_kept_as_they_are():
    Z = random_rows(4, seed=12)
    choice = bases.Given(Z).choose(candidates_of(kernels.Linear(), random_rows(30), np.arange(30) % 2), 2)
    assert choice.vectors is Z
    assert choice.rows is None


# --- Clusters ------------------------------------------------------------------------------------------------


@containers
@pytest.mark.parametrize(("count", "shares"), [(3, [1, 1, 1]), (6, [2, 2, 2]), (7, [3, 2, 2]), (12, [5, 5, 2])])
def test_clusters_of_each_class(count, shares, container):
    """Classes far apart: each centre is among the rows of its class, as many as the class's share."""
    sizes = [40, 30, 2]
    codes = np.repeat([0, 1, 2], sizes)
    X = random_rows(72, d=2, seed=13) + 1000 * codes[:, None]
    choice = bases.KMeans().choose(candidates_of(kernels.Gaussian(1.0), CONTAINERS[container](X), codes), count)
    nearest = np.rint(choice.vectors.mean(axis=1) / 1000).astype(int)
    np.testing.assert_array_equal(np.bincount(nearest, minlength=3), shares)


def test_fewer_clusters_than_classes():
    X, codes = three_classes()
    choice = bases.KMeans().choose(candidates_of(kernels.Gaussian(1.0), X, codes), 2)
    assert choice.vectors.shape == (2, 2)


def test_centres_count_rows_by_their_weight():
    """One centre: the weighted mean of the class."""
    X = random_rows(40, d=2, seed=14)
    codes = np.arange(40) % 2
    counts = 0.1 + np.arange(40.0)
    problem = candidates_of(kernels.Gaussian(1.0), X, codes, counts=counts)
    centres = bases.KMeans().choose(problem, 2).vectors
    means = np.array([np.average(X[codes == c], axis=0, weights=counts[codes == c]) for c in (0, 1)])
    np.testing.assert_allclose(centres[np.argsort(centres[:, 0])], means[np.argsort(means[:, 0])], atol=1e-8)


# --- Shares --------------------------------------------------------------------------------------------------


@given(sizes=st.lists(st.integers(0, 30), min_size=1, max_size=8), count=st.integers(0, 60))
def test_even_shares(sizes, count):
    """All of the count where there is room, no group beyond its size, and even but for groups that are full."""
    shares = selection.even_shares(sizes, count)
    assert sum(shares) == min(count, sum(sizes))
    assert all(0 <= share <= size for share, size in zip(shares, sizes, strict=True))
    top = max(shares)
    assert all(share >= top - 1 or share == size for share, size in zip(shares, sizes, strict=True))


@given(
    sizes=st.lists(st.integers(1, 60), min_size=2, max_size=6),
    most=st.integers(1, 200),
    seed=st.integers(0, 1000),
)
def test_a_sample_is_stratified(sizes, most, seed):
    """No row twice, every class there, classes in proportion, no more rows than asked for, and the weight of all."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    n = len(codes)
    X, weight = rng.normal(size=(n, 2)), np.exp(rng.normal(size=n))
    some = task_of(X, codes, weight).sample(most, np.random.default_rng(seed))
    rows = some.indices
    assert len(set(rows.tolist())) == len(rows)
    np.testing.assert_array_equal(some.X, X[rows])
    np.testing.assert_array_equal(some.codes, codes[rows])
    counts = np.bincount(some.codes, minlength=len(sizes))
    assert (counts >= 1).all()
    assert len(rows) <= max(most, len(sizes))
    assert some.counts.sum() == pytest.approx(weight.sum(), rel=1e-12)
    if most >= n:
        assert len(rows) == n
        np.testing.assert_array_equal(some.counts, weight[rows])
    else:
        exact = np.array(sizes) * most / n
        assert (np.abs(counts - exact) <= 1).all() or len(rows) < 2 * len(sizes)


@pytest.mark.parametrize("drawn", ["sample", "by weight"])
def test_draws_do_not_depend_on_the_order_of_the_rows(drawn):
    X, codes, weight = random_rows(60), np.arange(60) % 3, 0.1 + np.arange(60.0)
    order = np.random.default_rng(1).permutation(60)
    one, other = task_of(X, codes, weight), task_of(X[order], codes[order], weight[order])

    def rows(dataset):
        rng = np.random.default_rng(2)
        return dataset.sample(20, rng).X if drawn == "sample" else dataset.X[dataset.drawn_by_weight(rng)]

    np.testing.assert_array_equal(rows(one), rows(other))


def test_sums_over_a_sample_are_unbiased():
    """Weights over a hundredfold: the mean of a weighted sum over many samples is the sum over all rows."""
    rng = np.random.default_rng(3)
    X, weight = rng.normal(size=(80, 1)), np.exp(1.2 * rng.normal(size=80))
    dataset = task_of(X, np.arange(80) % 2, weight)
    values = np.sin(np.arange(80.0)) + 2
    sums = []
    for seed in range(600):
        some = dataset.sample(30, np.random.default_rng(seed))
        sums.append(some.counts @ values[some.indices])
    error = np.std(sums) / np.sqrt(len(sums))
    assert abs(np.mean(sums) - weight @ values) <= 4 * error + 2e-3 * weight @ values


def test_every_basis_is_tested():
    tested = {type(basis) for basis in BASES.values()} | {bases.AllRows, bases.Given, bases.Inputs, bases.Learned}
    assert tested == set(bases.ALL)


def test_inputs_are_the_features_of_the_linear_kernel():
    X = random_rows(20, d=4)
    vectors = bases.Inputs().choose(candidates_of(kernels.Linear(), X, np.arange(20) % 2), 4).vectors
    np.testing.assert_allclose(kernels.Linear()(X, vectors), X)


@pytest.mark.parametrize("bad", ["kmean", 3, None, bases.Random], ids=str)
def test_unknown_bases_are_named(bad):
    with pytest.raises(ValueError, match=r"init=.*is not known; use one of") as error:
        bases.resolve(bad, "init")
    for name in ("forward", "random", "kmeans", "cholesky"):
        assert f"'{name}'" in str(error.value)
    assert "'learned'" not in str(error.value)  # learned vectors must start somewhere


@pytest.mark.parametrize("container", CONTAINERS)
def test_given_vectors_are_compared_by_their_numbers(container):
    Z = CONTAINERS[container](random_rows(4, seed=12))
    same, other = bases.Given(Z.copy()), bases.Given(Z * 2)
    assert bases.Given(Z) == same
    assert hash(bases.Given(Z)) == hash(same)
    assert bases.Given(Z) != other
    assert bases.Given(Z) != bases.Given(Z[:3])
    assert bases.Learned(init=Z) == bases.Learned(init=Z.copy())
    assert bases.Learned(init=Z) != bases.Learned(init="kmeans")
