"""Streams: `SlimSVC.partial_fit` keeps some rows, moves the model on, and can stop and go on at any time."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_moons

import slimsvm
from slimsvm import SlimSVC
from slimsvm.bases import Learned
from slimsvm.data.reservoir import Reservoir
from slimsvm.training import streaming

QUICK = {"n_vectors": 6, "C": 1.0, "gamma": 1.0, "scales": "fixed", "memory": 300}


def moons(n=1200, seed=0):
    return make_moons(n, noise=0.2, random_state=seed)


def three(n=900, seed=0):
    """Three classes along a line."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 2)) * 0.4 + np.c_[2 * y, 0 * y], np.array(["a", "b", "c"])[y]


def fed(clf, X, y, size=100, **kwargs):
    for start in range(0, len(y), size):
        rows = slice(start, start + size)
        clf.partial_fit(X[rows], y[rows], **kwargs)
    return clf


def same(first, second, X):
    """Bit for bit."""
    assert np.array_equal(first.vectors_, second.vectors_)
    assert np.array_equal(first.vector_coef_, second.vector_coef_)
    assert np.array_equal(first.intercept_, second.intercept_)
    assert np.array_equal(first.decision_function(X), second.decision_function(X))
    assert np.array_equal(first.stream_.memory.priorities, second.stream_.memory.priorities)
    assert first.n_samples_seen_ == second.n_samples_seen_


# --- the memory ----------------------------------------------------------------------------------------------------


def kept(X, codes, weights, blocks, most=50, recent=False, classes=2, seed=3):
    memory = Reservoir.empty(X, classes, seed, recent)
    for rows in np.array_split(np.arange(len(X)), blocks):
        memory = memory.after(X[rows], codes[rows], weights[rows], most)
    return memory


@pytest.mark.parametrize("recent", [False, True])
@pytest.mark.parametrize("blocks", [2, 7, 400])
def test_the_memory_does_not_depend_on_blocks(recent, blocks):
    rng = np.random.default_rng(0)
    X, codes, weights = rng.normal(size=(400, 3)), (rng.random(400) < 0.03).astype(int), rng.random(400) + 0.1
    once, often = (kept(X, codes, weights, k, recent=recent) for k in (1, blocks))
    for name in ("X", "codes", "weights", "numbers", "priorities", "totals", "dropped"):
        assert np.array_equal(getattr(once, name), getattr(often, name)), name
    assert once.size == 50
    assert once.seen == 400
    assert np.array_equal(once.X, X[once.numbers])


def test_recent_rows_are_the_last_ones_and_a_few_of_each_class():
    X, codes = np.arange(400.0)[:, None], (np.arange(400) < 30).astype(int)
    memory = kept(X, codes, np.ones(400), 5, most=40, recent=True)
    assert np.array_equal(memory.numbers, [28, 29, *range(362, 400)])
    assert np.array_equal(memory.counts(), np.ones(40))


def test_rows_stand_for_all_that_came():
    """Sums over the memory, scaled up, are those over the stream: exactly for the weights of classes, and on average
    over seeds for any function of the rows."""
    rng = np.random.default_rng(1)
    X, codes, weights = rng.normal(size=(600, 1)), (rng.random(600) < 0.02).astype(int), rng.exponential(size=600)
    weights[5] = 100.0  # heavy rows stay
    found = []
    for seed in range(300):
        memory = kept(X, codes, weights, 3, most=60, seed=seed)
        counts = memory.counts() * memory.seen / memory.size
        assert 5 in memory.numbers
        assert np.bincount(memory.codes, counts) == pytest.approx(memory.totals)
        assert np.bincount(codes, weights) == pytest.approx(memory.totals)
        assert np.count_nonzero(memory.codes) >= 3  # 1 of 10 rows is reserved, for both classes
        found.append(counts @ memory.X[:, 0])
    doubt = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - weights @ X[:, 0]) < 4 * doubt


def test_rows_of_an_unweighted_stream_count_one_on_average():
    X, y = moons(2000)
    memory = fed(SlimSVC(**QUICK), X, y, 500).stream_.memory
    assert memory.size == 300
    assert memory.counts().mean() == pytest.approx(1)
    assert memory.counts() == pytest.approx(np.ones(300), rel=0.25)


# --- the model -----------------------------------------------------------------------------------------------------


def test_a_stream_is_about_as_good_as_a_fit():
    X, y = moons(3000)
    X_test, y_test = moons(2000, seed=1)
    clf = fed(SlimSVC(8, memory=1000), X, y, 250)
    assert clf.score(X_test, y_test) > SlimSVC(8).fit(X, y).score(X_test, y_test) - 0.01
    assert clf.n_samples_seen_ == 3000
    assert (clf.duality_gap_ <= clf.tol).all()


def test_the_certificate_is_that_of_the_rows_in_memory():
    X, y = moons(1000)
    clf = fed(SlimSVC(**QUICK), X, y, 250)
    memory = clf.stream_.memory
    given = SlimSVC(basis=clf.vectors_, C=1.0, gamma=1.0).fit(memory.X, memory.codes, memory.counts())
    assert clf.objective_ == pytest.approx(given.objective_, rel=1e-5)


def test_the_same_stream_gives_the_same_model_whatever_the_threads():
    X, y = moons()
    same(fed(SlimSVC(**QUICK), X, y), fed(SlimSVC(**QUICK, n_jobs=2), X, y), X)


def test_another_seed_keeps_other_rows():
    X, y = moons()
    one, two = (fed(SlimSVC(**QUICK, random_state=seed), X, y).stream_.memory for seed in (0, 1))
    assert not np.array_equal(one.numbers, two.numbers)


@pytest.mark.parametrize("kept_by", ["pickle", "file"])
@pytest.mark.parametrize("options", [{}, {"recent": True}, {"C": "search", "probability": True}])
def test_stopping_and_going_on_is_the_same_as_never_stopping(kept_by, options, tmp_path):
    X, y = moons(900)
    through = fed(SlimSVC(**(QUICK | options)), X, y)
    stopped = fed(SlimSVC(**(QUICK | options)), X[:400], y[:400])
    if kept_by == "pickle":
        stopped = pickle.loads(pickle.dumps(stopped))
    else:
        slimsvm.save(stopped, tmp_path / "model.slim")
        stopped = slimsvm.load(tmp_path / "model.slim")
    same(through, fed(stopped, X[400:], y[400:]), X)


def test_sparse_rows_stay_sparse_in_memory_and_in_files(tmp_path):
    X, y = moons(900)
    clf = fed(SlimSVC(**QUICK), sp.csr_array(X), y)
    assert sp.issparse(clf.stream_.memory.X)
    slimsvm.save(clf, tmp_path / "model.slim")
    clf.partial_fit(X[:50], y[:50])  # a dense block after sparse ones
    again = slimsvm.load(tmp_path / "model.slim").partial_fit(X[:50], y[:50])
    assert np.array_equal(clf.predict(X), again.predict(X))


def test_weights_count_and_zero_is_left_out():
    X, y = moons(800)
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, size=800).astype(float)
    through = SlimSVC(**QUICK)
    for rows in np.array_split(np.arange(800), 8):
        through.partial_fit(X[rows], y[rows], sample_weight=weight[rows])
    without = SlimSVC(**QUICK)
    for rows in np.array_split(np.arange(800), 8):
        rows = rows[weight[rows] > 0]
        without.partial_fit(X[rows], y[rows], sample_weight=weight[rows])
    same(through, without, X)
    before = through.vector_coef_
    through.partial_fit(X[:5], y[:5], sample_weight=np.zeros(5))
    assert through.vector_coef_ is before
    with pytest.raises(ValueError, match="zero"):
        SlimSVC().partial_fit(X, y, sample_weight=np.zeros(800))


def test_recent_rows_follow_a_change_of_labels():
    X, y = moons(2400)
    y = np.where(np.arange(2400) < 1200, y, 1 - y)
    options = QUICK | {"memory": 400}
    X_now, y_now = moons(1000, seed=1)
    following = fed(SlimSVC(**options, recent=True), X, y).score(X_now, 1 - y_now)
    assert following > 0.93
    assert fed(SlimSVC(**options), X, y).score(X_now, 1 - y_now) < following - 0.1


# --- fit and partial_fit ---------------------------------------------------------------------------------------------


def test_fit_starts_afresh():
    X, y = moons()
    clf = fed(SlimSVC(**QUICK), X, y).fit(X[:200], y[:200])
    assert not hasattr(clf, "stream_")
    assert np.array_equal(clf.vector_coef_, SlimSVC(**QUICK).fit(X[:200], y[:200]).vector_coef_)
    assert clf.n_samples_seen_ == 200


def test_after_fit_the_model_stays_until_there_are_as_many_rows():
    X, y = moons()
    clf = SlimSVC(**QUICK).fit(X[:150], y[:150])
    before = clf.vector_coef_
    clf.partial_fit(X[150:250], y[150:250])
    assert clf.vector_coef_ is before
    clf.partial_fit(X[250:300], y[250:300])
    assert clf.n_samples_seen_ == 300
    assert not np.array_equal(clf.vector_coef_, before)


def test_settings_found_by_fit_are_kept():
    X, y = moons(400)
    clf = SlimSVC(6, memory=300).fit(X, y)
    found = clf.C_, clf.kernel_.gamma, clf.search_results_
    fed(clf, X, y)
    assert (clf.C_, clf.kernel_.gamma, clf.search_results_) == found


def test_a_model_without_its_rows_goes_on_as_after_fit(tmp_path):
    X, y = moons()
    clf = fed(SlimSVC(**QUICK), X[:600], y[:600])
    before = clf.vector_coef_
    del clf.stream_
    slimsvm.save(clf, tmp_path / "model.slim")
    clf = slimsvm.load(tmp_path / "model.slim")
    fed(clf, X[600:800], y[600:800])
    assert np.array_equal(clf.vector_coef_, before)  # 300 rows are to come
    fed(clf, X[800:900], y[800:900])
    assert not np.array_equal(clf.vector_coef_, before)
    assert clf.n_samples_seen_ == 900


def test_rows_one_by_one():
    """As loops of other libraries feed them, from the first row on."""
    X, y = three(60)
    clf = fed(SlimSVC(**QUICK), X, y, 1, classes=["a", "b", "c"])
    assert clf.stream_.memory.size == 60
    assert (clf.predict(X) == y).mean() > 0.9


def test_few_new_rows_only_fill_the_memory():
    X, y = moons()
    clf = SlimSVC(**QUICK).partial_fit(X[:200], y[:200])
    before = clf.vector_coef_
    for row in range(200, 209):
        clf.partial_fit(X[row : row + 1], y[row : row + 1])
    assert clf.vector_coef_ is before
    assert clf.stream_.memory.size == 209
    clf.partial_fit(X[209:215], y[209:215])
    assert clf.vector_coef_ is not before


def test_a_search_only_now_and_then(monkeypatch):
    X, y = moons(1000)
    calls = []
    trained = streaming.train_slim
    monkeypatch.setattr(
        streaming, "train_slim", lambda dataset, spec: calls.append(dataset.n_samples) or trained(dataset, spec)
    )
    fed(SlimSVC(**QUICK), X, y, 50)
    assert calls == [50, 200]  # rows in memory; 300 at most
    calls.clear()
    fed(SlimSVC(**QUICK, recent=True), X, y, 50)
    assert calls[:2] == [50, 200]
    assert len(calls) <= 2 + 1000 // (streaming.TURNOVERS_PER_SEARCH * 300)


def test_an_interrupted_call_leaves_the_old_state(monkeypatch):
    X, y = moons()
    clf = fed(SlimSVC(**QUICK), X[:400], y[:400])
    state = dict(vars(clf))

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(streaming, "warm_refit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        clf.partial_fit(X[400:500], y[400:500])
    assert vars(clf).keys() == state.keys()
    assert all(vars(clf)[name] is value for name, value in state.items())
    monkeypatch.undo()
    same(fed(clf, X[400:], y[400:]), fed(SlimSVC(**QUICK), X, y), X)


# --- classes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
@pytest.mark.parametrize("first", ["c", "ab", "bc", "abc"])
def test_classes_come_one_after_the_other(scheme, first):
    X, y = three()
    options = QUICK | {"multi_class": scheme, "probability": True}
    rows = np.isin(y, list(first))
    clf = SlimSVC(**options).partial_fit(X[rows][:100], y[rows][:100], classes=["a", "b", "c"])
    assert clf.classes_.tolist() == ["a", "b", "c"]
    assert set(clf.predict(X)) == set(first)
    assert clf.decision_function(X).shape == (len(X), 3)
    P = clf.predict_proba(X)
    assert P.sum(axis=1) == pytest.approx(np.ones(len(X)))
    absent = [k for k, c in enumerate("abc") if c not in first]
    assert (P[:, absent] <= 1 / 101 + 1e-12).all()
    assert (clf.predict(X[rows]) == y[rows]).mean() > 0.9
    fed(clf, X, y)
    assert (clf.predict(X) == y).mean() > 0.9
    assert clf.objective_.shape == clf.duality_gap_.shape == (3,)


def test_one_of_two_classes(tmp_path):
    X, y = moons(100)
    clf = SlimSVC(**QUICK, probability=True).partial_fit(X[y == 1], y[y == 1], classes=[0, 1])
    assert (clf.predict(X) == 1).all()
    assert (clf.predict_proba(X)[:, 0] < 0.02).all()
    assert clf.n_vectors_ == 0
    slimsvm.save(clf, tmp_path / "model.slim")
    again = slimsvm.load(tmp_path / "model.slim").partial_fit(X, y)
    assert again.score(X, y) > 0.9


def test_labels_that_are_not_known_are_named():
    X, y = three()
    two = y != "c"
    with pytest.raises(ValueError, match=r"one class only \('a'\).*classes="):
        SlimSVC(**QUICK).partial_fit(X[y == "a"], y[y == "a"])
    clf = SlimSVC(**QUICK).partial_fit(X[two], y[two])
    with pytest.raises(ValueError, match=r"not among the classes of the stream: \['c'\]"):
        clf.partial_fit(X, y)
    with pytest.raises(ValueError, match="not those of the calls before"):
        clf.partial_fit(X[two], y[two], classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="two classes or more"):
        SlimSVC().partial_fit(X, y, classes=["a"])


# --- parameters ------------------------------------------------------------------------------------------------------


def test_what_a_stream_cannot_have_is_refused():
    X, y = moons(100)
    with pytest.raises(AttributeError, match=r"max_bytes=500, which is for fit.*n_vectors"):
        SlimSVC(max_bytes=500).partial_fit(X, y)
    with pytest.raises(AttributeError, match="between rows of different blocks"):
        SlimSVC(basis="forward", kernel="precomputed").partial_fit(X @ X.T, y)
    with pytest.raises(ValueError, match="memory=1 must be an integer of at least 2"):
        SlimSVC(memory=1).partial_fit(X, y)
    with pytest.raises(ValueError, match="recent='yes' must be True or False"):
        SlimSVC(recent="yes").fit(X, y)
    clf = SlimSVC(**QUICK).partial_fit(X, y).set_params(recent=True)
    with pytest.raises(ValueError, match="kept with recent=False"):
        clf.partial_fit(X, y)
    with pytest.raises(ValueError, match="features"):
        SlimSVC(**QUICK).partial_fit(X, y).partial_fit(X[:, :1], y)


@pytest.mark.parametrize(
    "options",
    [
        {"n_vectors": "auto", "memory": 120},
        {"basis": "forward"},
        {"basis": Learned(iterations=5, rows=100)},
        {"slack": "l1"},
        {"scales": "learned"},
        {"kernel": "linear"},
        {"class_weight": "balanced"},
        {"class_weight": {0: 2.0}},
        {"random_state": np.random.RandomState(0)},
        {"random_state": None},
    ],
    ids=lambda options: "-".join(map(str, options)),
)
def test_parameters_of_fit_hold_in_streams(options):
    X, y = moons(400)
    clf = clone(SlimSVC(**(QUICK | options)))
    fed(clf, X, y)
    assert clf.score(X, y) > 0.8
    assert (clf.duality_gap_ <= 10 * clf.tol).all()


def test_memory_may_change_within_a_stream():
    X, y = moons(1000)
    clf = fed(SlimSVC(**QUICK), X[:500], y[:500])
    fed(clf.set_params(memory=100), X[500:700], y[500:700])
    assert clf.stream_.memory.size == 100
    fed(clf.set_params(memory=200), X[700:], y[700:])
    assert clf.stream_.memory.size == 200
    assert clf.score(X, y) > 0.9


def test_a_file_with_rows_that_do_not_fit_is_refused(tmp_path):
    X, y = moons(400)
    clf = fed(SlimSVC(**QUICK), X, y)
    clf.stream_.memory.codes[3] = 7
    with pytest.raises(ValueError, match="rows of classes that it has not"):
        slimsvm.save(clf, tmp_path / "model.slim")
