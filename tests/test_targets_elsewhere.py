"""SlimSVR where its rows are: files, dask workers and devices give the model of the same rows in memory."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import clone

from slimsvm import SlimSVC, SlimSVR, bases, rows

FIXED = {"C": 3.0, "gamma": 0.2, "scales": "fixed"}
LOSSES = ("squared_error", "huber", "squared_epsilon_insensitive", "epsilon_insensitive")
N, D = 4000, 4


@pytest.fixture(scope="module")
def data():
    """Targets of very different sizes; copies in other blocks, some with other targets; rows of weight 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)).astype(np.float32)
    X[3000:3040] = X[:40]
    f = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    Y = np.column_stack([f + 0.2 * rng.normal(size=N), 5e4 + 1e3 * X[:, 3] + 10 * rng.normal(size=N)])
    Y[3000:3020] = Y[:20]
    weight = rng.uniform(0.5, 2, N)
    weight[::11] = 0
    weight[1000:1500] = 0
    return X, Y, weight


def blocks(*parts, size=600):
    return [tuple(part[i : i + size] for part in parts) for i in range(0, len(parts[0]), size)]


def same_model(here, far, X):
    np.testing.assert_array_equal(far.vectors_, here.vectors_)
    np.testing.assert_allclose(far.objective_, here.objective_, rtol=1e-9)
    assert (far.duality_gap_ <= far.tol).all()
    np.testing.assert_allclose(far.predict(X), here.predict(X), rtol=1e-5, atol=1e-5 * np.abs(here.predict(X)).max())
    assert far.predict(X).shape == here.predict(X).shape


def both(estimator, data, targets, weighted, place):
    """The model of rows in memory, and that of rows elsewhere."""
    X, Y, weight = data
    y = Y[:, 0] if targets == 1 else Y
    w = weight if weighted else None
    return X, clone(estimator).fit(X, y, w), place(clone(estimator), X, y, w)


def from_blocks(model, X, y, w):
    return model.fit(rows.from_blocks(blocks(X, y) if w is None else blocks(X, y, w)))


def from_dask(model, X, y, w):
    da = pytest.importorskip("dask.array")
    far = [None if part is None else da.from_array(part, chunks=(size, -1)[: part.ndim]) for part, size in
           ((X, 700), (y, 1000), (w, 1300))]  # fmt: skip
    return model.fit(*far)


places = pytest.mark.parametrize("place", [from_blocks, from_dask])


@places
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_model_is_that_of_rows_in_memory(data, loss, targets, weighted, place):
    model = SlimSVR(6, loss=loss, epsilon=0.1, tol=1e-9, **FIXED)
    X, here, far = both(model, data, targets, weighted, place)
    same_model(here, far, X)


@places
def test_a_column_of_targets_stays_a_column(data, place):
    """As in memory: what is predicted has the shape of y."""
    X, Y, _ = data
    model = SlimSVR(3, "random", intervals=True, **FIXED)
    for y in (Y[:300, 0], Y[:300, :1]):
        here, far = clone(model).fit(X[:300], y), place(clone(model), X[:300], y, None)
        assert far.predict(X).shape == here.predict(X).shape == (N, *y.shape[1:])
        assert far.predict_interval(X).shape == here.predict_interval(X).shape == (N, *y.shape[1:], 2)
        np.testing.assert_allclose(far.predict(X), here.predict(X), rtol=1e-5, atol=1e-5)


@places
def test_search_auto_and_intervals(data, place):
    for model in (SlimSVR(5, intervals=True), SlimSVR("auto", **FIXED), SlimSVR(8, "forward", **FIXED)):
        X, here, far = both(model, data, 1, False, place)
        same_model(here, far, X)
        assert far.n_vectors_ == here.n_vectors_
        if model.intervals:
            np.testing.assert_allclose(far.predict_interval(X), here.predict_interval(X), rtol=1e-5, atol=1e-5)


def test_workers(data):
    """Processes of their own: targets stay with the blocks."""
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0
    )
    with cluster, distributed.Client(cluster):
        for loss in ("squared_error", "epsilon_insensitive"):
            X, here, far = both(SlimSVR(6, loss=loss, tol=1e-9, **FIXED), data, 2, True, from_dask)
            same_model(here, far, X)


def test_data_frames_on_workers(data):
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    X, Y, _ = data
    frame = pd.DataFrame(X, columns=list("abcd"))
    here = SlimSVR(6, **FIXED).fit(X, Y)
    far = SlimSVR(6, **FIXED).fit(
        dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.DataFrame(Y, columns=["u", "v"]), npartitions=3)
    )
    np.testing.assert_array_equal(far.vectors_, here.vectors_)
    assert far.score(dd.from_pandas(frame, npartitions=3), Y) == pytest.approx(here.score(X, Y))


@pytest.mark.parametrize("target", ["u", ["u"], ["u", "v"]])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_files(data, tmp_path, kind, target):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, Y, weight = data
    frame = pd.DataFrame(X.astype(np.float64), columns=list("abcd")).assign(u=Y[:, 0], v=Y[:, 1], w=weight)
    path = tmp_path / f"rows.{kind}"
    (frame.to_parquet if kind == "parquet" else frame.to_csv)(path, index=False)
    read = rows.from_parquet if kind == "parquet" else rows.from_csv
    source = read(path, target, columns=list("abcd"), weight="w", block_rows=900)
    here = SlimSVR(6, **FIXED).fit(frame[list("abcd")], frame[target], weight)
    far = SlimSVR(6, **FIXED).fit(source)
    same_model(here, far, frame[list("abcd")])
    assert far.score(source) == pytest.approx(here.score(frame[list("abcd")], frame[target], weight))


# --- devices ----------------------------------------------------------------------------------------------------


@pytest.fixture
def there(monkeypatch):
    """Arrays on a device; however few rows there are, samples stay there."""
    strict = pytest.importorskip("array_api_strict")
    pytest.importorskip("array_api_compat")
    from slimsvm.rows import device

    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    monkeypatch.setattr(device, "MAX_COPIED_ENTRIES", 0)
    monkeypatch.setattr(device, "MIN_BLOCK_BYTES", 1 << 14)
    with sklearn.config_context(array_api_dispatch=True):
        yield lambda X, place="device1": strict.asarray(X, device=strict.Device(place))


@pytest.mark.parametrize("place", ["device1", "no_float64"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("loss", LOSSES)
def test_coefficients_on_a_device(data, there, loss, targets, weighted, place):
    """Over the same rows as vectors."""
    X, Y, weight = (part[:900] for part in data)
    y = Y[:, 0] if targets == 1 else Y
    w = weight if weighted else None
    model = SlimSVR(8, "random", loss=loss, epsilon=0.1, **FIXED)
    here, far = clone(model).fit(X, y, w), clone(model).fit(there(X, place), y, w)
    np.testing.assert_array_equal(far.vectors_, here.vectors_)
    np.testing.assert_allclose(far.objective_, here.objective_, rtol=1e-5)
    assert (far.duality_gap_ <= far.tol).all()
    found = far.predict(there(X, place))
    assert found.device == there(X, place).device
    assert found.shape == y.shape


@pytest.mark.parametrize("scales", ["fixed", "learned"])
def test_learning_on_a_device(data, there, scales):
    """Not to the last bit: learning follows the last digits. The objective is as good, and certified."""
    X, Y, _ = (part[:1200] for part in data)
    model = SlimSVR(6, bases.Learned(iterations=25), C=3.0, gamma=0.2, scales=scales)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there would be more to gain
        here, far = (clone(model).fit(rows, Y[:, 0]) for rows in (X, there(X)))
    assert far.objective_[0] == pytest.approx(here.objective_[0], rel=0.03)
    assert far.duality_gap_[0] <= far.tol
    assert far.score(there(X), there(Y[:, 0])) == pytest.approx(here.score(X, Y[:, 0]), abs=0.01)


def test_blocks_on_devices(data, there):
    """Dask's blocks may be arrays of a device."""
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    X, Y, weight = (part[:900] for part in data)
    far = da.from_array(X, chunks=(300, -1)).map_blocks(there, dtype=X.dtype, meta=np.empty((0, 0), dtype=X.dtype))
    model = SlimSVR(8, "random", **FIXED)
    with dask.config.set(scheduler="sync"):
        found = clone(model).fit(far, Y, weight)
    here = clone(model).fit(X, Y, weight)
    np.testing.assert_array_equal(found.vectors_, here.vectors_)
    np.testing.assert_allclose(found.objective_, here.objective_, rtol=1e-6)


# --- words ------------------------------------------------------------------------------------------------------


def test_words_for_what_cannot_be(data):
    X, Y, _ = data
    words = np.array(["a", "b"])[(Y[:, 0] > 0).astype(int)]
    gap = np.where(np.arange(N) == 2000, np.nan, Y[:, 0])
    wrong = {
        "targets of type": lambda: from_blocks(SlimSVR(5), X, words, None),
        "missing or infinite": lambda: from_blocks(SlimSVR(5), X, gap, None),
        "every block the same number of columns": lambda: SlimSVR(5).fit(
            rows.from_blocks([(X[:100], Y[:100]), (X[:100], Y[:100, 0])])
        ),
        "shape (100, 1), but the first block has y of shape (100,)": lambda: SlimSVR(5).fit(
            rows.from_blocks([(X[:100], Y[:100, 0]), (X[:100], Y[:100, :1])])
        ),
        "max_bytes": lambda: from_blocks(SlimSVR(max_bytes=500), X, Y[:, 0], None),
        "regression needs numbers": lambda: from_dask(SlimSVR(5), X, words, None),
    }
    for match, attempt in wrong.items():
        with pytest.raises(ValueError, match=re.escape(match)):
            attempt()


@pytest.mark.parametrize("columns", [(slice(2), 0), (0, slice(1))], ids=["fewer columns", "a column beside a vector"])
def test_blocks_of_dask_with_other_columns_are_named(data, columns):
    da = pytest.importorskip("dask.array")
    from dask import delayed

    X, Y, _ = data
    first, other = (Y[:100, k] for k in columns)
    y = da.concatenate([da.from_delayed(delayed(part), shape=first.shape, dtype=float) for part in (first, other)])
    words = f"block 1 has y of shape {other.shape}, but the first block has y of shape"
    with pytest.raises(ValueError, match=re.escape(words)):
        SlimSVR(3).fit(da.from_array(X[:200], chunks=(100, -1)), y)


def test_a_column_of_classes_is_a_vector(data):
    X, Y, _ = data
    y = (Y[:300, :1] > 0).astype(int)
    for place in (from_blocks, from_dask):
        model = place(SlimSVC(3, "random", C=1.0, gamma=0.5), X[:300], y, None)
        assert model.predict(X).shape == (N,)
        assert model.score(rows.from_blocks(blocks(X[:300], y))) == model.score(X[:300], y[:, 0])


def test_classes_have_one_column(data):
    X, Y, _ = data
    for place in (from_blocks, from_dask):
        with pytest.raises(ValueError, match="labels for each row; a classifier needs one"):
            place(SlimSVC(5), X, (Y > 0).astype(int), None)
