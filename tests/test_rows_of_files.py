"""Rows of files and blocks: the model that the same rows give in memory, in few passes; clear words where not."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file

from slimsvm import AnyNormSVC, EmpiricalSVC, LpSVC, ReducedSVC, SlimSVC, bases, regularizers, rows
from slimsvm.rows.blocks import BlockRows

N, D = 9000, 5
FIXED = {"C": 1.0, "gamma": 0.2, "scales": "fixed"}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)).astype(np.float32)
    X[5000:5040] = X[:40]  # copies in other blocks
    f = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=N)
    weight = rng.uniform(0.5, 2, N)
    weight[::11] = 0
    return X, np.where(f > 0, "yes", "no"), np.digitize(f, [-1, 0.5]), weight


def blocks(X, *others, size=1300):
    """Blocks of different lengths."""
    starts = [0, 100, *range(100 + size, len(X), size)]
    return [tuple(part[a:b] for part in (X, *others)) for a, b in zip(starts, [*starts[1:], len(X)], strict=True)]


@pytest.fixture
def passes(monkeypatch):
    """How many passes were made."""
    made = []
    mapped = BlockRows.map_blocks
    monkeypatch.setattr(BlockRows, "map_blocks", lambda self, *a, **k: made.append(1) or mapped(self, *a, **k))
    return made


MODELS = {
    "l2": (SlimSVC(12, **FIXED, tol=1e-9), False, 10),
    "search": (SlimSVC(8), False, 10),
    "l1": (SlimSVC(12, slack="l1", **FIXED, tol=1e-9), False, 30),
    "pairs": (SlimSVC(12, **FIXED, tol=1e-9), True, 12),
    "pairs, l1": (SlimSVC(12, slack="l1", **FIXED, tol=1e-9), True, 40),
    "rest": (SlimSVC(12, **FIXED, multi_class="ovr", tol=1e-9), True, 12),
    "rows": (SlimSVC(12, basis="forward", **FIXED, tol=1e-9), False, 12),
    "polynomial": (SlimSVC(12, kernel="poly", C=1.0, gamma=0.2, coef0=1.0, scales="fixed", tol=1e-9), False, 14),
    "reduced": (ReducedSVC(20, tol=1e-9), False, 16),
    "empirical": (EmpiricalSVC(0.5, tol=1e-9), False, 80),
    "balanced": (SlimSVC(12, **FIXED, class_weight="balanced", tol=1e-9), True, 12),
    "an own kernel": (SlimSVC(6, basis="random", kernel=lambda X, Z: (1 + X @ Z.T) ** 2, C=1.0, tol=1e-9), False, 14),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("name", MODELS)
def test_blocks_give_the_model_of_the_same_rows_in_memory(data, passes, name, weighted):
    X, yes, three, weight = data
    model, several, most = MODELS[name]
    y = three if several else yes
    w = weight if weighted else None
    one = model.fit(X, y, w)
    found = {key: value for key, value in vars(one).items() if key.endswith("_")}
    two = model.fit(rows.from_blocks(blocks(X, y) if w is None else blocks(X, y, w)))
    np.testing.assert_array_equal(two.vectors_, found["vectors_"])
    np.testing.assert_allclose(two.objective_, found["objective_"], rtol=1e-8)
    assert (two.duality_gap_ <= model.tol).all()
    np.testing.assert_array_equal(two.classes_, found["classes_"], strict=True)
    assert len(passes) <= most
    if name == "search":
        assert two.search_results_ == found["search_results_"]


@pytest.mark.parametrize(("slack", "most"), [("l2", 10), ("l1", 25)])
def test_few_passes_at_the_default_accuracy(passes, slack, most):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 4)).astype(np.float32)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0
    SlimSVC(12, slack=slack, **FIXED).fit(rows.from_blocks(blocks(X, y, size=9000)))
    assert len(passes) <= most


def test_probabilities_and_the_number_of_vectors(data):
    X, y, *_ = data
    for model in (SlimSVC(6, **FIXED, probability=True), SlimSVC("auto", **FIXED)):
        one = model.fit(X, y)
        expected = one.vectors_, one.decision_function(X[:50])
        two = model.fit(rows.from_blocks(blocks(X, y)))
        np.testing.assert_array_equal(two.vectors_, expected[0])
        np.testing.assert_allclose(two.decision_function(X[:50]), expected[1], rtol=1e-4, atol=1e-4)
        if model.probability:
            assert two.predict_proba(X[:5]).shape == (5, 2)


def test_predictions_a_block_at_a_time(data):
    X, y, *_ = data
    model = SlimSVC(6, **FIXED, probability=True).fit(X, y)
    source = rows.from_blocks([(X[:100],), (X[100:120],)])
    np.testing.assert_array_equal(model.predict(source), model.predict(X[:120]))
    np.testing.assert_allclose(model.decision_function(source), model.decision_function(X[:120]), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(source), model.predict_proba(X[:120]), rtol=1e-5, atol=1e-5)


# --- files ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frame(data):
    pandas = pytest.importorskip("pandas")
    X, yes, _, weight = data
    frame = pandas.DataFrame(X, columns=[f"x{k}" for k in range(D)])
    return frame.assign(label=yes, weight=weight, word="a", number=range(N))


def fitted(source):
    return SlimSVC(6, **FIXED).fit(source)


COLUMNS = [f"x{k}" for k in range(D)]


@pytest.mark.parametrize("kind", ["parquet", "folder", "table", "batches", "dataset", "csv", "several csv"])
def test_files_give_the_model_of_their_rows(data, frame, tmp_path, kind):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.dataset
    import pyarrow.parquet

    X, y, _, weight = data
    table = arrow.Table.from_pandas(frame, preserve_index=False)
    parts = [table.slice(0, 4000), table.slice(4000)]
    options = {"target": "label", "columns": COLUMNS, "weight": "weight", "block_rows": 1000}
    if kind == "csv":
        frame.to_csv(tmp_path / "rows.csv", index=False)
        source = rows.from_csv(tmp_path / "rows.csv", dtype="float32", **options)
    elif kind == "several csv":
        for k, part in enumerate(np.array_split(np.arange(N), 2)):
            frame.iloc[part].to_csv(tmp_path / f"{k}.csv", index=False, sep=";")
        source = rows.from_csv([tmp_path / "0.csv", tmp_path / "1.csv"], sep=";", dtype="float32", **options)
    elif kind in ("table", "batches"):
        source = rows.from_arrow(table if kind == "table" else table.to_batches(2000), **options)
    else:
        for k, part in enumerate(parts):
            pyarrow.parquet.write_table(part, tmp_path / f"{k}.parquet", row_group_size=1700)
        paths = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
        if kind == "dataset":
            source = rows.from_arrow(pyarrow.dataset.dataset([str(p) for p in paths]), **options)
        else:
            source = rows.from_parquet(tmp_path if kind == "folder" else paths, **options)
    model = fitted(source)
    expected = SlimSVC(6, **FIXED).fit(X, y, weight)
    np.testing.assert_array_equal(model.vectors_, expected.vectors_)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_in_.tolist() == COLUMNS
    np.testing.assert_array_equal(model.predict(frame[COLUMNS][:50]), expected.predict(X[:50]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.predict(source), expected.predict(X))
    assert model.score(source) == expected.score(X, y, weight)
    with pytest.raises(ValueError, match="in this order"):
        model.predict(rows.from_arrow(table, columns=COLUMNS[::-1]))


def test_svmlight_in_pieces(data, tmp_path):
    X, *_, three = data[:3]
    X = np.where(np.abs(X) > 1, X, 0)
    dump_svmlight_file(X, three, str(tmp_path / "rows.txt"), zero_based=False)
    model = fitted(rows.from_svmlight(tmp_path / "rows.txt", D, block_rows=1000, dtype=np.float64))
    exact = np.array([[float(f"{value:.16g}") for value in row] for row in X])
    expected = SlimSVC(6, **FIXED).fit(sp.csr_array(exact), three.astype(float))
    np.testing.assert_allclose(model.decision_function(exact), expected.decision_function(exact), rtol=1e-3, atol=1e-3)
    assert (model.duality_gap_ <= model.tol).all()


# --- what is refused ----------------------------------------------------------------------------------------------


def test_words_for_what_cannot_be(data, frame, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    X, y, *_ = data
    table = arrow.Table.from_pandas(frame, preserve_index=False)
    good = rows.from_blocks([(X[:50], y[:50])])
    wrong = {
        "only once": lambda: rows.from_blocks(block for block in blocks(X, y)),
        "RecordBatchReader": lambda: rows.from_arrow(table.to_reader(), "label", COLUMNS),
        "word": lambda: rows.from_arrow(table, "label"),
        "among the columns": lambda: rows.from_arrow(table, "x0", COLUMNS),
        "no labels": lambda: fitted(rows.from_arrow(table, columns=COLUMNS)),
        "has no rows": lambda: fitted(rows.from_blocks([])),
        "words in some blocks": lambda: fitted(rows.from_blocks([(X[:50], y[:50]), (X[:50], np.arange(50) % 2)])),
        "one class": lambda: fitted(rows.from_blocks([(X[:50], np.zeros(50))])),
        "columns, those before it": lambda: fitted(rows.from_blocks([(X[:50], y[:50]), (X[:50, :2], y[:50])])),
        "rows, but y": lambda: fitted(rows.from_blocks([(X[:50], y[:40])])),
        "negative": lambda: fitted(rows.from_blocks([(X[:50], y[:50], -np.ones(50))])),
        "weight above 0": lambda: fitted(rows.from_blocks([(X[:50], y[:50], np.zeros(50))])),
        "others have none": lambda: fitted(rows.from_blocks([(X[:50], y[:50], np.ones(50)), (X[:50], y[:50])])),
        "not numbers": lambda: fitted(rows.from_blocks([(y[:50, None], y[:50])])),
        r"\(X, y\)": lambda: fitted(rows.from_blocks([X[:50]])),
        "with it": lambda: SlimSVC(6).fit(good, y[:50]),
        "X is an iterator": lambda: SlimSVC(6).fit(iter(blocks(X, y))),
        "has no labels; name": lambda: fitted(good).score(rows.from_blocks([(X[:50],)])),
        "SlimSVC, SlimSVR, SlimOneClass, ReducedSVC": lambda: AnyNormSVC().fit(good),
        "in memory": lambda: LpSVC().fit(good),
        "needs a matrix": lambda: SlimSVC(6, basis="random", kernel="precomputed").fit(good),
        "max_bytes": lambda: SlimSVC(max_bytes=512).fit(good),
        "pivoted": lambda: SlimSVC(6, basis="cholesky").fit(good),
        "kernel values in memory": lambda: SlimSVC(6, regularizer=regularizers.ReweightedNorm()).fit(good),
    }
    wrong["no column 'lable'"] = lambda: rows.from_arrow(table, "lable")
    for words, attempt in wrong.items():
        with pytest.raises((ValueError, TypeError), match=words):
            attempt()
    assert bases.Cholesky(0.5).selection == "order"


def test_missing_values_are_named(data, frame, tmp_path):
    pytest.importorskip("pyarrow")
    broken = frame.assign(x3=frame.x3.where(frame.index != 7000))
    broken.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"missing or infinite values in columns x3"):
        fitted(rows.from_parquet(tmp_path / "rows.parquet", "label", COLUMNS, block_rows=1000))
    frame.assign(label=frame.label.where(frame.index != 10)).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="1 labels in column 'label' are missing"):
        fitted(rows.from_parquet(tmp_path / "rows.parquet", "label", COLUMNS))


def test_rows_that_change_between_passes(data):
    X, y, *_ = data
    sizes = iter([3000, 2900, 2900, 2900])

    def read():
        n = next(sizes)
        yield X[:n], y[:n]

    with pytest.raises(ValueError, match="same rows each time"):
        fitted(rows.from_blocks(read))


def test_nothing_is_loaded_before_it_is_asked_for(tmp_path):
    from test_process import run

    code = "import sys, {}; print([m for m in ('pyarrow', 'dask', 'torch', 'pandas') if m in sys.modules])"
    assert run(code.format("slimsvm.estimators"), tmp_path) == run(code.format("sklearn.svm"), tmp_path)


# --- what rows may look like ---------------------------------------------------------------------------------------


def cut(*parts, size=1000):
    return [tuple(part[i : i + size] for part in parts) for i in range(0, len(parts[0]), size)]


def same_model(one, other):
    np.testing.assert_array_equal(one.vectors_, other.vectors_)
    np.testing.assert_allclose(other.objective_, one.objective_, rtol=1e-8)
    assert (other.duality_gap_ <= other.tol).all()


@pytest.mark.parametrize("place", [0, 2, 6])
@pytest.mark.parametrize("slack", ["l1", "l2"])
def test_blocks_without_rows_change_nothing(data, slack, place):
    X, y, *_ = data
    blocks = cut(X, y)
    blocks[place:place] = [(X[:0], y[:0])] * 2
    model = SlimSVC(6, slack=slack, **FIXED)
    same_model(clone(model).fit(X, y), clone(model).fit(rows.from_blocks(blocks)))


@pytest.mark.parametrize("place", [0, 3])
def test_blocks_of_no_weight_change_nothing(data, place):
    X, y, *_ = data
    weight = np.ones(len(y))
    weight[1000 * place : 1000 * (place + 1)] = 0
    same_model(SlimSVC(6, **FIXED).fit(X, y, weight), SlimSVC(6, **FIXED).fit(rows.from_blocks(cut(X, y, weight))))
    SlimSVC(3, bases.Learned(iterations=3)).fit(
        rows.from_blocks(cut(X, y, weight))
    )  # the search looks at all blocks, too


def test_predictions_of_blocks_without_rows(data):
    X, y, *_ = data
    model = SlimSVC(6, **FIXED).fit(X, y)
    found = model.predict(rows.from_blocks([(X[:100],), (X[:0],), (X[100:120],)]))
    np.testing.assert_array_equal(found, model.predict(X[:120]))


def test_weights_of_a_score(data):
    X, y, _, weight = data
    model = SlimSVC(6, **FIXED).fit(X, y)
    expected = model.score(X, y, weight)
    assert model.score(rows.from_blocks(cut(X, y)), sample_weight=weight) == pytest.approx(expected)
    assert model.score(rows.from_blocks(cut(X, y, weight))) == pytest.approx(expected)
    with pytest.raises(ValueError, match="has its weights with it"):
        model.score(rows.from_blocks(cut(X, y, weight)), sample_weight=weight)


def test_columns_of_data_frames_are_taken_by_name(frame):
    X, y = frame[COLUMNS], frame["label"].to_numpy()
    half = len(X) // 2
    turned = rows.from_blocks([(X[:half], y[:half]), (X[half:][COLUMNS[::-1]], y[half:])])
    one, other = SlimSVC(6, **FIXED).fit(X, y), SlimSVC(6, **FIXED).fit(turned)
    same_model(one, other)
    assert list(other.feature_names_in_) == COLUMNS
    with pytest.raises(ValueError, match="the model was fitted with"):
        other.predict(rows.from_blocks([(X[COLUMNS[::-1]],)]))
    with pytest.raises(ValueError, match=r"block 1 has the columns .*; those of the others are"):
        SlimSVC(6, **FIXED).fit(rows.from_blocks([(X[:half], y[:half]), (X[half:][COLUMNS[:-1]], y[half:])]))


def test_rows_in_another_order_in_each_pass_are_refused(data):
    X, y, *_ = data
    rng = np.random.default_rng(0)

    def read():
        blocks = cut(X, y)
        for k in rng.permutation(len(blocks)):
            yield blocks[k]

    with pytest.raises(ValueError, match="in another order, than in the first pass"):
        SlimSVC(6, **FIXED).fit(rows.from_blocks(read))


def test_doubles_stay_doubles(tmp_path):
    """Seconds since 1970, of which float32 knows no more than minutes."""
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    X = np.c_[1.7e9 + rng.uniform(0, 100, 600), rng.normal(size=600)]
    y = (X[:, 0] - 1.7e9 > 50).astype(int)
    pyarrow.parquet.write_table(arrow.table({"t": X[:, 0], "b": X[:, 1], "label": y}), tmp_path / "rows.parquet")
    model = SlimSVC(6, C=1.0, gamma=1e-3, scales="fixed")
    one = clone(model).fit(X, y)
    source = rows.from_parquet(tmp_path / "rows.parquet", target="label")
    same_model(one, clone(model).fit(source))
    assert next(iter(source))[0].dtype == np.float64
    short = rows.from_parquet(tmp_path / "rows.parquet", target="label", dtype="float32")
    assert next(iter(short))[0].dtype == np.float32
    with pytest.raises(ValueError, match=r"dtype='int32' is not known; use 'float32' or 'float64'"):
        rows.from_parquet(tmp_path / "rows.parquet", target="label", dtype="int32")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "x0"}, r"columns='x0' is one name; give a list"),
        ({"columns": ["x0", "x0"]}, "has a name twice"),
    ],
)
def test_columns_are_a_list_of_names(frame, options, message):
    arrow = pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=message):
        rows.from_arrow(arrow.Table.from_pandas(frame, preserve_index=False), target="label", **options)


def test_options_of_pandas_that_say_how_much_is_read(frame, tmp_path):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(TypeError, match="block_rows at a time: leave out nrows"):
        rows.from_csv(tmp_path / "rows.csv", target="label", nrows=100)


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        ("aay", {}, "more than one column is called a: rename them"),
        ("abyy", {}, "more than one column is called y"),
        ("ayww", {"weight": "w"}, "more than one column is called w"),
        ("ay", {"weight": "y"}, "weight='y' is also an input or the target"),
        ("aby", {"weight": "a", "columns": ["a", "b"]}, "weight='a' is also an input or the target"),
        ("a\x1b[2Jy", {"columns": ["b"]}, r"no column 'b'; there are a, \?, \[, 2, J, y"),
    ],
)
def test_columns_of_one_name(names, options, message):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table([[0.0, 1.0]] * len(names), names=list(names))
    with pytest.raises(ValueError, match=message):
        rows.from_arrow(table, target="y", **options)


def test_columns_of_one_name_that_are_not_asked_for():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table([[0.0, 1.0], [0, 1], [2, 3], [2, 3]], names=["a", "y", "more", "more"])
    assert SlimSVC(1, C=1.0, gamma=1.0, scales="fixed").fit(rows.from_arrow(table, "y", ["a"])).n_features_in_ == 1


@pytest.mark.parametrize("index", [2**31, 2**63])
def test_svmlight_columns_beyond_32_bits(tmp_path, index):
    (tmp_path / "far.svm").write_text(f"1 1:2 {index}:3\n0 1:1\n")
    with pytest.raises(ValueError, match=r"far\.svm has an index of 2\^31 or more; hash"):
        SlimSVC(1, C=1.0, gamma=1.0, scales="fixed").fit(rows.from_svmlight(tmp_path / "far.svm", 5))
