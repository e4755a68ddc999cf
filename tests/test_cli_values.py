"""The command for numbers and outliers: what it takes the target for, and what it says of a regression."""

from __future__ import annotations

import json
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_friedman1

import slimsvm
from slimsvm.cli import main
from slimsvm.persistence import describe

QUICK = ("--C", "10", "--gamma", "0.1", "--scales", "fixed", "--vectors", "6")


def houses():
    X, y = make_friedman1(200, noise=1.0, random_state=0)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X[:, :5].round(4), columns=list("abcde"))
    return frame.assign(
        price=y.round(3),
        whole=rng.integers(0, 10_000, 200),
        rooms=rng.integers(1, 8, 200),
        kind=rng.choice(["flat", "house"], 200),
        weight=rng.integers(1, 4, 200),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("values")
    houses().to_csv(folder / "houses.csv", index=False)
    files = (str(folder / "houses.csv"), "-o", str(folder / "price.slim"))
    assert main(["train", *files, "-t", "price", "--columns", "a,b,c,d,e", *QUICK, "--quiet"]) == 0
    return folder


@pytest.fixture
def run(folder, monkeypatch, capsys):
    def run(*arguments):
        """Exit code, standard output and standard error of the command in that folder."""
        monkeypatch.chdir(folder)
        code = main([str(one) for one in arguments])
        return code, *capsys.readouterr()

    return run


GUESSES = {
    "price": ("regression", "numbers with fractions"),
    "whole": ("regression", "different whole numbers"),
    "rooms": ("classification", "7 different whole numbers"),
    "kind": ("classification", "2 different texts"),
}


@pytest.mark.parametrize("target", GUESSES)
def test_the_task_is_guessed_and_said(run, target, tmp_path):
    task, why = GUESSES[target]
    options = ("--columns", "a,b", *QUICK, "--test-size", "0", "-o", tmp_path / "x.slim")
    code, out, err = run("train", "houses.csv", "-t", target, *options)
    assert code == 0, err
    (line,) = [line for line in out.splitlines() if line.startswith("task")]
    assert f"{task}: {target} has " in line
    assert why in line
    about = describe(tmp_path / "x.slim")["metadata"]
    assert about["task"] == task


def test_the_task_can_be_said(run, tmp_path):
    options = ("--columns", "a,b", *QUICK, "--test-size", "0", "-o", tmp_path / "x.slim", "--json")
    code, out, _ = run("train", "houses.csv", "-t", "rooms", "--task", "regression", *options)
    assert code == 0
    assert json.loads(out)["task"] == "regression"
    assert isinstance(slimsvm.load(tmp_path / "x.slim")[-1], slimsvm.SlimSVR)


def test_train_and_score(run, folder):
    """What the command says of a file is true of the model in it."""
    model, data = slimsvm.load(folder / "price.slim"), houses()
    X, y = data[list("abcde")], data.price.to_numpy()
    code, out, _ = run("score", "price.slim", "houses.csv", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["r2"] == pytest.approx(model.score(X, y))
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((model.predict(X) - y) ** 2)))
    weighted = json.loads(run("score", "price.slim", "houses.csv", "--weight", "weight", "--json")[1])
    assert weighted["r2"] == pytest.approx(model.score(X, y, data.weight))
    out = run("score", "price.slim", "houses.csv")[1]
    assert [line.split("  ")[0] for line in out.splitlines()] == ["rows", "R²", "RMS error", "mean absolute error"]
    held_out = describe(folder / "price.slim")["metadata"]["held_out"]
    assert held_out["rows"] == 50
    assert held_out["rmse"] < 0.6 * held_out["rmse_of_the_mean"]
    assert "R²" in run("info", "price.slim")[1]


def test_predictions_are_values(run, folder):
    code, _, _ = run("predict", "price.slim", "houses.csv", "--keep", "price", "-o", "answers.csv")
    assert code == 0
    found, model = pd.read_csv(folder / "answers.csv"), slimsvm.load(folder / "price.slim")
    np.testing.assert_allclose(found.prediction, model.predict(houses()[list("abcde")]), rtol=1e-12)
    code, _, err = run("predict", "price.slim", "houses.csv", "--proba")
    assert (code, "only classifiers can have them" in err) == (1, True)


def test_bytes(run, tmp_path):
    options = ("--columns", "a,b,c,d,e", "--C", "10", "--gamma", "0.1", "--scales", "fixed", "--test-size", "0")
    code, out, err = run(
        "train", "houses.csv", "-t", "price", *options, "--bytes", "120", "-o", tmp_path / "x.slim", "--json"
    )
    assert code == 0, err
    found = json.loads(out)
    assert 80 < found["bytes"] <= 120
    assert found["vectors"] > 4


def test_exports(run, folder):
    pytest.importorskip("onnx")
    code, out, err = run("export", "price.slim", "--c", "price.h", "--int8", "--data", "houses.csv", "--json")
    assert code == 0, err
    report = json.loads(out)["report"]
    assert report["r2"] == pytest.approx(report["r2_before"], abs=0.01)
    assert "price_predict_int16" in (folder / "price.h").read_text()
    code, out, err = run("export", "price.slim", "--onnx", "price.onnx", "--json")
    assert code == 0, err
    assert json.loads(out)["outputs"] == ["variable"]


def test_columns_that_are_encoded(run, folder):
    pytest.importorskip("skl2onnx")
    code, _, err = run("train", "houses.csv", "-t", "price", *QUICK, "--test-size", "0", "-o", "all.slim")
    assert code == 0, err
    assert run("export", "all.slim", "--onnx", "all.onnx")[0] == 0


# --- intervals ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_intervals(folder):
    """A model that has them, and one of two targets."""
    data = houses()
    files = (str(folder / "houses.csv"), "-o", str(folder / "sure.slim"))
    assert main(["train", *files, "-t", "price", "--columns", "a,b,c,d,e", *QUICK, "--intervals", "--quiet"]) == 0
    both = slimsvm.SlimSVR(6, C=10.0, gamma=0.1, scales="fixed", intervals=True)
    slimsvm.save(both.fit(data[list("abcde")], data[["price", "whole"]]), folder / "both.slim")
    return folder


def test_intervals_are_those_of_the_model(run, with_intervals):
    model, X = slimsvm.load(with_intervals / "sure.slim"), houses()[list("abcde")]
    assert run("predict", "sure.slim", "houses.csv", "--interval", "0.8", "--keep", "price", "-o", "sure.csv")[0] == 0
    found = pd.read_csv(with_intervals / "sure.csv")
    assert list(found) == ["price", "prediction", "low", "high"]
    expected = model[-1].predict_interval(model[:-1].transform(X), 0.8)
    np.testing.assert_allclose(found[["low", "high"]], expected, rtol=1e-12)
    assert 0.7 < ((found.low <= found.price) & (found.price <= found.high)).mean() < 0.95
    wider = json.loads(run("predict", "sure.slim", "houses.csv", "--interval", "0.95", "--json")[1])["predictions"]
    assert (np.array(wider["low"]) < found.low).all()
    assert (np.array(wider["high"]) > found.high).all()
    assert list(pd.read_csv(StringIO(run("predict", "sure.slim", "houses.csv")[1]))) == ["prediction"]


def test_what_a_file_says_of_intervals(run, with_intervals):
    assert describe(with_intervals / "sure.slim")["metadata"]["settings"]["intervals"] is True
    assert "intervals" in run("info", "sure.slim")[1]
    assert json.loads(run("info", "sure.slim", "--json")[1])["model"]["intervals"] is True
    assert "intervals" not in run("info", "price.slim")[1]
    plain = slimsvm.load(with_intervals / "price.slim"), slimsvm.load(with_intervals / "sure.slim")
    np.testing.assert_array_equal(*(model[-1].vector_coef_ for model in plain))


def test_intervals_and_bytes(run, with_intervals):
    options = ("--columns", "a,b,c", "--C", "10", "--gamma", "0.1", "--scales", "fixed", "--test-size", "0")
    code, out, err = run(
        "train", "houses.csv", "-t", "price", *options, "--bytes", "80", "--intervals", "-o", "few.slim", "--json"
    )
    assert code == 0, err
    assert json.loads(out)["bytes"] <= 80
    assert run("predict", "few.slim", "houses.csv", "--interval", "0.5", "-o", "few.csv")[0] == 0


def test_several_targets_have_columns_of_their_own(run, with_intervals):
    model, X = slimsvm.load(with_intervals / "both.slim"), houses()[list("abcde")]
    assert run("predict", "both.slim", "houses.csv", "--interval", "0.9", "-o", "both.csv")[0] == 0
    found = pd.read_csv(with_intervals / "both.csv")
    assert list(found) == ["prediction_1", "prediction_2", "low_1", "low_2", "high_1", "high_2"]
    np.testing.assert_allclose(found[["prediction_1", "prediction_2"]], model.predict(X), rtol=1e-12)
    ends = model.predict_interval(X, 0.9)
    np.testing.assert_allclose(found[["low_2", "high_2"]], ends[:, 1], rtol=1e-12)
    code, _, err = run("score", "both.slim", "houses.csv", "-t", "price")
    assert (code, "has 2 targets" in err) == (1, True)


def test_more_coverage_than_the_rows_can_say(run, with_intervals):
    code, out, err = run("predict", "sure.slim", "houses.csv", "--interval", "0.9999")
    assert (code, "too few rows for intervals of coverage 0.9999" in err) == (0, True)
    assert np.isinf(pd.read_csv(StringIO(out)).high).all()


WITHOUT_INTERVALS = {
    "none were prepared": ("price.slim", "0.9", 1, "price.slim has no intervals; train it with --intervals"),
    "no probability": ("sure.slim", "1.5", 2, "--interval 1.5: must be a probability between 0 and 1, such as 0.9"),
    "all rows": ("sure.slim", "1", 2, "--interval 1: must be a probability"),
    "percent": ("sure.slim", "90", 2, "--interval 90: must be a probability"),
    "a classifier": ("kind.slim", "0.9", 1, "kind.slim has no intervals; only models of numbers can have them"),
    "a detector": ("usual.slim", "0.9", 1, "usual.slim has no intervals; only models of numbers can have them"),
    "compressed": ("small.slim", "0.9", 1, "small.slim has no intervals; compressed models have none"),
}


@pytest.mark.parametrize("name", WITHOUT_INTERVALS)
def test_models_without_intervals(run, with_intervals, name):
    file, coverage, code, words = WITHOUT_INTERVALS[name]
    made = {
        "kind.slim": ("train", "houses.csv", "-t", "kind", "--columns", "a,b", *QUICK, "--test-size", "0"),
        "usual.slim": ("train", "houses.csv", "--task", "outliers", "--columns", "a,b", "--test-size", "0"),
        "small.slim": ("compress", "sure.slim", "--vectors", "3"),
    }
    if file in made:
        assert run(*made[file], "-o", file, "--quiet")[0] == 0
    found, _, err = run("predict", file, "houses.csv", "--interval", coverage)
    assert found == code
    assert words in err
    assert len(err.strip().splitlines()) == 1


WRONG = {
    "an unknown task": (("-t", "price", "--task", "ranking"), 2, "classification, regression or outliers"),
    "classes of fractions": (("-t", "price", "--task", "classification"), 1, "leave out --task classification"),
    "a regression on text": (("-t", "kind", "--task", "regression"), 1, "needs numbers; row 1"),
    "balanced numbers": (("-t", "price", "--balanced"), 2, "--balanced is for classes"),
    "probabilities of numbers": (("-t", "price", "--probability"), 2, "--probability is for classes"),
    "nu of classes": (("-t", "kind", "--nu", "0.2"), 2, "--nu is for --task outliers"),
    "intervals of classes": (("-t", "kind", "--intervals"), 2, "--intervals is for numbers"),
    "intervals of outliers": (("--task", "outliers", "--intervals"), 2, "--intervals is for numbers"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_uses(run, name):
    options, code, words = WRONG[name]
    found, _, err = run("train", "houses.csv", *options, "-o", "x.slim")
    assert found == code
    assert words in err
    assert len(err.strip().splitlines()) == 1


def test_a_frontier_of_numbers(run, tmp_path):
    """Scores are R², beside the machine over all rows; the chosen model is a file."""
    path, picture = tmp_path / "small.slim", tmp_path / "curve.png"
    code, out, err = run(
        "frontier", "houses.csv", "-t", "price", "--sizes", "2,6", "-o", path, "--plot", picture, "--json"
    )
    assert code == 0, err
    found = json.loads(out)
    assert [row["size"] for row in found["sizes"]] == [2, 6]
    assert found["full"]["vectors"] > 6
    assert found["chosen"]["held_out"]["r2"] > 0.5
    assert isinstance(slimsvm.load(path)[-1], slimsvm.SlimSVR)
    assert picture.exists()
    assert "R² by validation" in run("frontier", "houses.csv", "-t", "price", "--sizes", "2,6")[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--task", "outliers"), "slimsvm train --vectors auto finds their size"),
        (("-t", "price", "--html", "report.html"), "--html is for classes"),
    ],
)
def test_what_a_frontier_is_not_for(run, options, words):
    code, _, err = run("frontier", "houses.csv", *options)
    assert (code, words in err) == (2, True)


def test_outliers(run, folder, tmp_path):
    """No target is needed, and one is not learned from; bytes are kept."""
    path, columns = tmp_path / "usual.slim", ("--columns", "a,b,c")
    code, out, err = run("train", "houses.csv", "--task", "outliers", *columns, "--nu", "0.2", "-o", path, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["task"] == "outliers"
    assert 0.05 < found["held_out"]["outside"] < 0.5
    detector = slimsvm.load(path)
    assert isinstance(detector[-1], slimsvm.SlimOneClass)
    assert detector[-1].nu == 0.2
    said = run("predict", path, "houses.csv")[1].split()[1:]
    assert said == [str(one) for one in detector.predict(houses()[["a", "b", "c"]])]
    assert "outliers" in run("info", path)[1]
    assert run("export", path, "--c", tmp_path / "usual.h", "--int8")[0] == 0
    code, out, err = run("train", "houses.csv", "--task", "outliers", *columns, "--bytes", "60", "-o", path, "--json")
    assert code == 0, err
    assert json.loads(out)["bytes"] <= 60
    code, _, err = run("train", "houses.csv", "--task", "outliers", *columns, "--C", "3", "-o", path)
    assert (code, "--C is for classes and numbers" in err) == (2, True)


def test_nothing_to_learn(run, folder):
    houses().assign(price=3.5).to_csv(folder / "same.csv", index=False)
    code, _, err = run("train", "same.csv", "-t", "price", "-o", "x.slim", "--task", "regression")
    assert (code, "is 3.5 in all rows" in err) == (1, True)
