"""What a user may rely on beyond the solution itself: repeatable, thread-safe, watchable, consistent."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from problems import DATA_KINDS, KERNEL_CASES, MACHINES, ONE_OF_EACH, blobs, machine_name, three_classes
from slimsvm import AnyNormSVC

machines = pytest.mark.parametrize("machine", MACHINES, ids=machine_name)
kernels = pytest.mark.parametrize("case", KERNEL_CASES, ids=lambda case: case.name)
sizes = pytest.mark.parametrize("n", [90, 750])  # one block, and more

ATTRIBUTES = ("support_", "vector_coef_", "intercept_", "objective_", "duality_gap_", "n_iter_")


def assert_identical(one, other):
    """Bit for bit."""
    for name in ATTRIBUTES:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def fit(machine, X, y, **params):
    slack, constraint = machine
    return AnyNormSVC(slack, constraint, **params).fit(X, y)


@sizes
@kernels
@machines
def test_same_input_same_model(machine, case, n):
    X, y = blobs(n, seed=1)
    rows = case.training_input(X)
    assert_identical(fit(machine, rows, y, **case.params), fit(machine, rows.copy(), y, **case.params))


@sizes
@kernels
@machines
def test_threads_do_not_change_the_model(machine, case, n):
    X, y = blobs(n, seed=2)
    rows = case.training_input(X)
    one, two = (fit(machine, rows, y, n_jobs=n_jobs, **case.params) for n_jobs in (1, 2))
    assert_identical(one, two)
    np.testing.assert_array_equal(one.decision_function(rows), two.decision_function(rows))


@pytest.mark.filterwarnings("ignore:the decision function is zero")
@pytest.mark.parametrize("machine", [m for m in ONE_OF_EACH if m not in MACHINES], ids=machine_name)
def test_other_norms_are_repeatable_too(machine):
    X, y = blobs(900, seed=2)
    one, two = (fit(machine, X, y, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert_identical(one, two)


@pytest.mark.parametrize("kind", [kind for kind in DATA_KINDS if not kind.startswith("CS")])
def test_the_layout_of_the_rows_does_not_change_the_model(kind, tmp_path):
    """The same numbers in another order of memory or type give the same bits."""
    X, y = blobs(750, seed=3)
    assert_identical(fit(MACHINES[0], DATA_KINDS[kind](X, tmp_path), y), fit(MACHINES[0], X, y))


def test_fits_in_threads_equal_fits_in_turn():
    problems = [(machine, *blobs(700, seed=seed)) for seed in range(2) for machine in MACHINES]
    alone = [fit(*problem) for problem in problems]
    with ThreadPoolExecutor(max_workers=2) as pool:
        together = list(pool.map(lambda problem: fit(*problem), problems))
    for one, other in zip(alone, together, strict=True):
        assert_identical(one, other)


def test_predictions_in_threads():
    X, y = three_classes(300)
    model = AnyNormSVC().fit(X, y)
    with ThreadPoolExecutor(max_workers=2) as pool:
        scores = list(pool.map(lambda _: model.decision_function(X), range(8)))
    for other in scores[1:]:
        np.testing.assert_array_equal(other, scores[0])


def test_order_of_the_rows_does_not_matter():
    """Another order is another path to the same function, to what the gap allows."""
    X, y = blobs(300, seed=4)
    order = np.random.default_rng(0).permutation(300)
    one, other = (AnyNormSVC(gamma=0.3, tol=1e-8).fit(X[rows], y[rows]) for rows in (np.arange(300), order))
    assert one.objective_[0] == pytest.approx(other.objective_[0], rel=2e-8)
    reach = 2 * np.sqrt(2e-8 * one.objective_[0])
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), rtol=0, atol=2 * reach)


# --- Prediction ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@kernels
def test_a_row_is_scored_alike_alone_and_in_a_batch(case, container):
    """Batches of any size, zeros or none in the other rows: the same score but for the last bits."""
    X, y = blobs(200, d=8, seed=5, density=0.5)
    model = AnyNormSVC(**case.params).fit(case.training_input(X), y)
    rows = np.vstack([X[:90], np.zeros((60, 8)), X[90:]])
    rows = case.test_input(rows, X)
    whole = model.decision_function(container(rows))
    scale = np.abs(model.vector_coef_).sum() * np.abs(rows).max()
    for size in (1, 7, 128, 129):
        parts = [model.decision_function(container(rows[i : i + size])) for i in range(0, len(rows), size)]
        np.testing.assert_allclose(np.concatenate(parts), whole, rtol=0, atol=1e-14 * max(1, scale))


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@kernels
def test_float32_predictions_are_close(case, multi_class):
    X, y = three_classes(200)
    X = np.round(8 * X) / 8
    rows = case.training_input(X)
    model = AnyNormSVC(multi_class=multi_class, decision_function_shape=multi_class, **case.params).fit(rows, y)
    exact, single = model.decision_function(rows), model.decision_function(rows.astype(np.float32))
    scale = np.abs(model.vector_coef_).sum(axis=1) * np.abs(case.matrix(X, X)).max()
    assert np.all(np.abs(exact - single) <= 1e-6 * scale)


def test_dense_and_sparse_models_predict_both():
    X, y = blobs(100, seed=6, density=0.3)
    from_dense, from_sparse = AnyNormSVC(tol=1e-9).fit(X, y), AnyNormSVC(tol=1e-9).fit(sp.csr_array(X), y)
    expected = from_dense.decision_function(X)
    for model in (from_dense, from_sparse):
        for rows in (X, sp.csr_array(X), sp.csc_array(X), sp.coo_array(X)):
            np.testing.assert_allclose(model.decision_function(rows), expected, atol=1e-6)
    assert sp.issparse(from_sparse.vectors_)


def test_unsorted_and_repeated_entries_of_a_sparse_matrix():
    """A CSR matrix need not be in canonical form; entries that occur twice add up."""
    X, y = blobs(40, seed=7, density=0.5)
    A = sp.csr_array(X)
    messy = sp.csr_array((A.data.copy(), A.indices.copy(), A.indptr.copy()), shape=A.shape)
    for i in range(40):
        row = slice(messy.indptr[i], messy.indptr[i + 1])
        messy.indices[row], messy.data[row] = messy.indices[row][::-1].copy(), messy.data[row][::-1].copy()
    messy.has_sorted_indices = False
    halves = sp.csr_array(sp.hstack([A / 2, A / 2]))
    twice = sp.csr_array((halves.data, halves.indices % 4, halves.indptr), shape=A.shape)
    model = AnyNormSVC().fit(A, y)
    for rows in (messy, twice):
        np.testing.assert_allclose(AnyNormSVC().fit(rows, y).decision_function(X), model.decision_function(X))
        np.testing.assert_allclose(model.decision_function(rows), model.decision_function(X))


# --- Progress -----------------------------------------------------------------------------------------------


def test_verbose_shows_progress_on_one_line_of_stderr(capsys):
    X, y = blobs(300, seed=8)
    AnyNormSVC(verbose=True).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    last = err.rstrip("\n").rpartition("\r")[2]
    for pattern in (r"dual [\d.]+", r"gap \d\.\d+e[-+]\d+", r"\d+ vectors", r"[\d.]+ s"):
        assert re.search(pattern, last), (pattern, last)


def test_verbose_names_each_machine(capsys):
    X, y = three_classes()
    AnyNormSVC(verbose=True).fit(X, np.array(["ant", "bee", "cow"])[y])
    err = capsys.readouterr().err
    assert err.count("\n") == 3
    for first, second in (("ant", "bee"), ("ant", "cow"), ("bee", "cow")):
        assert re.search(rf"{first}.*{second}", err)


def test_silent_unless_asked(capsys):
    X, y = blobs(300, seed=8)
    AnyNormSVC().fit(X, y).predict(X)
    assert capsys.readouterr() == ("", "")


def test_verbose_does_not_change_the_model():
    X, y = blobs(750, seed=9)
    assert_identical(AnyNormSVC(verbose=True).fit(X, y), AnyNormSVC().fit(X, y))
