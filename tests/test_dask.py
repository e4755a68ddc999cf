"""Rows on dask workers: the same model as in memory, few passes, lost and small workers, lazy predictions."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

from slimsvm import AnyNormSVC, EmpiricalSVC, ReducedSVC, SlimSVC  # noqa: E402
from slimsvm.rows import dask_rows  # noqa: E402

pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")

FIXED = {"C": 1.0, "gamma": 0.5, "scales": "fixed"}


def rows(n, classes=2, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    f = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2
    return X, np.digitize(f + 0.1 * rng.standard_normal(n), np.quantile(f, np.arange(1, classes) / classes))


def same_model(a, b, objective=1e-8):
    """Bit-equal vectors, and the same objective and certificate."""
    assert np.array_equal(a.vectors_, b.vectors_)
    assert np.array_equal(a.classes_, b.classes_)
    np.testing.assert_allclose(b.objective_, a.objective_, rtol=objective)
    assert (b.duality_gap_ <= a.tol).all()
    if hasattr(a, "support_"):
        assert np.array_equal(a.support_, b.support_)


@pytest.fixture(scope="module")
def client():
    """Two workers, processes of their own."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def passes(monkeypatch):
    """A list that grows with each pass over the blocks."""
    seen = []
    for name in ("map_blocks", "sum_blocks"):
        whole = getattr(dask_rows.DaskRows, name)

        def counted(self, *given, whole=whole, **named):
            seen.append(given[0].__name__)
            return whole(self, *given, **named)

        monkeypatch.setattr(dask_rows.DaskRows, name, counted)
    return seen


MODELS = {
    "l2": SlimSVC(8, **FIXED),
    "l1": SlimSVC(8, slack="l1", tol=1e-9, **FIXED),
    "random rows": SlimSVC(30, "random", C=1.0, gamma="scale", scales="fixed", class_weight="balanced"),
    "search": SlimSVC(8, probability=True),
    "reduced": ReducedSVC(30),
    "empirical": EmpiricalSVC(0.05, tol=1e-9),
}


@pytest.mark.parametrize("name", MODELS)
def test_two_classes(client, passes, name):
    X, y = rows(6000)
    model = MODELS[name]
    here = clone(model).fit(X, y)
    assert not passes
    far = clone(model).fit(da.from_array(X, chunks=(1000, 3)), da.from_array(y, chunks=1500))
    same_model(here, far)
    assert len(passes) <= (25 if model.slack == "l1" else 10)
    assert np.array_equal(here.predict(X), far.predict(X))


@pytest.mark.parametrize("slack", ["l1", "l2"])
@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_several_classes(client, passes, scheme, slack):
    X, y = rows(3000, classes=3)
    labels = np.array(["one", "two", "three"])[y]
    model = SlimSVC(6, multi_class=scheme, slack=slack, tol=1e-9, **FIXED)
    here = clone(model).fit(X, labels)
    far = clone(model).fit(da.from_array(X, chunks=700), da.from_array(labels, chunks=700))
    same_model(here, far)
    assert len(passes) <= (40 if slack == "l1" else 12)  # all machines share them


def test_weights(client):
    """Rows of weight 0 are left out, and rows keep their numbers; labels may be here, weights elsewhere."""
    X, y = rows(4000)
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    weight[:1000] = 0  # a block without rows
    model = SlimSVC(20, "random", class_weight={0: 1.0, 1: 2.0}, **FIXED)
    here = clone(model).fit(X, y, weight)
    far = clone(model).fit(da.from_array(X, chunks=1000), y, da.from_array(weight, chunks=1300))
    same_model(here, far)


def test_without_a_cluster():
    """Dask's own scheduler, and features that are not kept."""
    X, y = rows(5000)
    here = SlimSVC(8, slack="l1", tol=1e-9, **FIXED).fit(X, y)
    with dask.config.set(scheduler="threads"):
        for cache_size in (1000, 1e-3):
            model = SlimSVC(8, slack="l1", tol=1e-9, cache_size=cache_size, **FIXED)
            same_model(here, model.fit(da.from_array(X, chunks=800), da.from_array(y, chunks=800)))
    assert not dask_rows.WORKER_CACHE.fits


def test_same_bits_however_blocks_are_spread(client):
    X, y = rows(6000)
    far = SlimSVC(10, "random", **FIXED).fit(da.from_array(X, chunks=500), y)
    with dask.config.set(scheduler="sync"):
        again = SlimSVC(10, "random", cache_size=1e-3, **FIXED)
        again.fit(da.from_array(X, chunks=500).persist(), y)
    assert np.array_equal(far.vector_coef_, again.vector_coef_)


def test_data_frames(client):
    """Columns by name, lengths unknown."""
    import pandas as pd

    X, y = rows(3000)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(label=y)
    far = dd.from_pandas(frame, npartitions=5)
    far = far[far.a < 2]
    frame = frame[frame.a < 2]
    here = SlimSVC(8, **FIXED).fit(frame[list("abcde")], frame.label)
    there = SlimSVC(8, **FIXED).fit(far[list("abcde")], far.label)
    same_model(here, there)
    assert there.feature_names_in_.tolist() == list("abcde")
    assert np.array_equal(there.predict(far[list("abcde")]).compute(), here.predict(frame[list("abcde")]))
    assert there.score(far[list("abcde")], far.label) == here.score(frame[list("abcde")], frame.label)
    same_model(here, SlimSVC(8, **FIXED).fit(far[list("abcde")], frame.label.to_numpy()))
    with pytest.raises(ValueError, match="feature names"):
        there.predict(far[list("edcba")])


def test_answers_are_lazy(client):
    X, y = rows(2000, classes=3)
    model = SlimSVC(6, probability=True, **FIXED).fit(X, y)
    far = da.from_array(X, chunks=(300, 2))
    for name in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        lazy, whole = getattr(model, name)(far), getattr(model, name)(X)
        assert isinstance(lazy, da.Array)
        assert (lazy.shape, lazy.dtype) == (whole.shape, whole.dtype)
        np.testing.assert_array_equal(lazy.compute(), whole)
    with pytest.raises(ValueError, match="features"):
        model.predict(far[:, :3])
    assert model.score(X, y) == np.mean((model.predict(far) == y).compute())


@pytest.mark.parametrize("patience", [dask_rows.SECONDS_UNTIL_LOST, 1e-3])
def test_nothing_stays_on_the_workers(client, monkeypatch, patience):
    """After a fit, and after one that fails, however long tasks took; no garbage need be collected for that."""
    X, y = rows(2000)
    gc.collect()  # of other tests
    monkeypatch.setattr(dask_rows, "SECONDS_UNTIL_LOST", patience)
    gc.disable()
    try:
        nothing_stays(client, X, y)
    finally:
        gc.enable()


def nothing_stays(client, X, y):
    far = da.from_array(X, chunks=500)
    SlimSVC(5, **FIXED).fit(far, y)
    with pytest.raises(ValueError, match="one class"):
        SlimSVC(5, **FIXED).fit(far, np.zeros(len(y)))
    end = time.monotonic() + 10
    while any(client.run(kept_fits).values()) or any(client.has_what().values()):
        assert time.monotonic() < end, (client.run(kept_fits), client.has_what())
        time.sleep(0.05)


def kept_fits():
    from slimsvm.rows import dask_rows

    return list(dask_rows.WORKER_CACHE.fits)


def bad_inputs():
    X, y = rows(100)
    far = da.from_array(X, chunks=30)
    missing = X.copy()
    missing[70, 2] = np.nan
    yield "missing values", da.from_array(missing, chunks=30), y, "missing or infinite values in columns 2"
    yield "no labels", far, None, "needs y"
    yield "length of y", far, y[:-1], "X has 100 rows, y has 99"
    yield "one dimension", far[:, 0], y, "1 dimension"
    yield "texts", far.astype(str), y, "not numbers"
    yield "numbers to regress on", far, X[:, 0], "class labels"
    yield "labels that are missing", far, np.where(y == 1, np.nan, y), "missing"


@pytest.mark.parametrize("case", list(bad_inputs()), ids=lambda case: case[0])
def test_bad_input(case):
    _, X, y, words = case
    with dask.config.set(scheduler="sync"), pytest.raises(ValueError, match=words):
        SlimSVC(5, **FIXED).fit(X, y)


def test_categories_are_refused():
    import pandas as pd

    X, y = rows(100)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(kind=pd.Categorical(["u", "v"] * 50))
    with pytest.raises(ValueError, match="columns kind hold no numbers"):
        SlimSVC(5, **FIXED).fit(dd.from_pandas(frame, npartitions=2), y)


def test_never_brought_here_unasked():
    X, y = rows(100)
    far = da.from_array(X, chunks=30)
    with pytest.raises(TypeError, match=r"SlimSVC, SlimSVR, SlimOneClass, ReducedSVC and .*X\.compute\(\)"):
        AnyNormSVC().fit(far, y)
    with pytest.raises(TypeError, match=r"compute\(\)"):
        SlimSVC(5, **FIXED).fit(X, da.from_array(y, chunks=30))
    with pytest.raises(TypeError, match=r"compute\(\)"):
        SlimSVC(5, **FIXED).fit(X, y, da.from_array(np.ones(100), chunks=30))


def test_import_needs_no_dask():
    code = "import sys, slimsvm, slimsvm.estimators; sys.exit('dask' in sys.modules or 'distributed' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- workers that are lost, or small -------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_worker_is_killed(monkeypatch):
    """In mid-fit; its blocks and features are made again."""
    X, y = rows(6000)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        far = da.from_array(X, chunks=500), da.from_array(y, chunks=500)
        whole = SlimSVC(20, "random", **FIXED).fit(*far)
        victim = next(iter(client.run(os.getpid).values()))
        added, count = dask_rows.DaskRows.sum_blocks, []

        def killing(self, *given, **named):
            count.append(None)
            if len(count) == 2:
                os.kill(victim, signal.SIGKILL)
            return added(self, *given, **named)

        monkeypatch.setattr(dask_rows.DaskRows, "sum_blocks", killing)
        again = SlimSVC(20, "random", **FIXED).fit(*far)
    assert len(count) > 2
    same_model(whole, again, objective=1e-12)


def test_a_worker_smaller_than_its_data():
    """Blocks go to the worker's disk and come back, and what a fit keeps there does not hold them in memory.

    Dask writes blocks to disk at once where those in memory exceed a bound of their own. By the size of the process it
    does so now and then, which on a busy machine may be too late.
    """
    n, d, limit = 200_000, 110, 1e9
    data, room = 8 * n * d, 60e6
    with (
        dask.config.set({"distributed.worker.memory.target": room / limit}),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=int(limit)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        before, ((bare, _),) = client.run(os.getpid), client.run(_memory).values()
        X = da.random.default_rng(0).standard_normal((n, d), chunks=(10_000, d))
        model = SlimSVC(5, "random", C=1.0, gamma=0.01, scales="fixed")
        model.fit(X, (X[:, 0] > 0).astype(np.int8))
        assert client.run(os.getpid) == before  # dask has not ended it
        ((_, most),) = client.run(_memory).values()
        assert most - bare < data
    assert model.duality_gap_[0] <= model.tol


def _memory(dask_worker):
    """What a worker's process takes, and the most that it took so far."""
    monitor = dask_worker.monitor
    return monitor.get_process_memory(), max(monitor.quantities["memory"])


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
def test_an_interrupt_ends_it(client):
    """And leaves nothing running."""
    X, y = rows(2000)
    slow = da.from_array(X, chunks=500).map_blocks(slowly, dtype=float)
    timer = threading.Timer(1.0, lambda: signal.raise_signal(signal.SIGINT))
    model = SlimSVC(5, **FIXED)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(slow, y)
    finally:
        signal.signal(signal.SIGINT, before)
        timer.cancel()
    assert not hasattr(model, "vectors_")


def slowly(X):
    time.sleep(2)
    return X


def test_predictions_of_partitions_without_rows():
    pandas = pytest.importorskip("pandas")
    X, y = rows(400, d=3)
    frame = pandas.DataFrame(X, columns=list("abc")).assign(day=np.arange(400) // 100)
    far = dd.from_pandas(frame, npartitions=4)
    some = far[far["day"] != 2]
    here = frame[frame["day"] != 2]
    model = SlimSVC(5, **FIXED).fit(frame[list("abc")], y)
    np.testing.assert_array_equal(model.predict(some[list("abc")]).compute(), model.predict(here[list("abc")]))
    assert model.decision_function(some[list("abc")]).compute().shape == (300,)


def test_rows_that_are_made_anew_must_be_the_same(monkeypatch):
    monkeypatch.setattr(dask_rows, "current_client", lambda: None)  # a cluster keeps what it has made
    X, y = rows(400)
    far = da.from_array(X, chunks=(100, 5)).map_blocks(lambda b: b + np.random.default_rng().normal(size=b.shape))
    with pytest.raises(ValueError, match="persist X, or seed what makes it"):
        SlimSVC(5, **FIXED).fit(far, da.from_array(y, chunks=100))


def test_labels_on_workers_beside_rows_in_memory():
    X, y = rows(100)
    with pytest.raises(TypeError, match=r"X is in memory here, and y is a dask Array: pass y.compute\(\)"):
        SlimSVC(5, **FIXED).fit(X, da.from_array(y, chunks=50))
