"""What the command says beside its results: notes, hints and tables that people can read."""

from __future__ import annotations

import json
import pickle
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.svm import SVC, SVR, OneClassSVM

import slimsvm
from command import IRIS, QUICK, iris
from slimsvm.cli import main, tables
from slimsvm.cli.inputs import Column, choose
from slimsvm.cli.options import ColumnOptions, ReadingOptions


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    data = iris()
    data.to_csv(folder / "iris.csv", index=False)
    files = (str(folder / "iris.csv"), "-t", "species", "-o", str(folder / "iris.slim"))
    assert main(["train", *files, *IRIS, "--probability", "--test-size", "0", "--quiet"]) == 0
    X = data.iloc[:, :3].to_numpy()
    machines = {
        "svc": SVC().fit(X, data.species),
        "svr": SVR().fit(X, data.petal_width),
        "one": OneClassSVM(nu=0.2).fit(X),
    }
    for name, machine in machines.items():
        (folder / f"{name}.pkl").write_bytes(pickle.dumps(machine))
        paths = (str(folder / f"{name}.pkl"), "-o", str(folder / f"{name}.slim"))
        assert main(["compress", *paths, "--trust", "-m", "8", "--quiet"]) == 0
    data.drop(columns="petal_width").to_csv(folder / "three.csv", index=False)
    return folder


@pytest.fixture
def run(folder, monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.chdir(folder)
        code = main([str(one) for one in arguments])
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize("name", ["prediction", "probability_setosa"])
def test_a_kept_column_is_not_lost(run, folder, name):
    iris().assign(**{name: 1}).to_csv(folder / "same.csv", index=False)
    code, out, err = run("predict", "iris.slim", "same.csv", "--proba", "--keep", name)
    assert (code, out) == (2, "")
    assert f"--keep {name}" in err


@pytest.mark.parametrize(("weight", "words"), [(-1, "row 1 has -1"), (None, "row 1 has none"), ("x", "row 1 has 'x'")])
def test_a_weight_that_is_none(run, folder, weight, words):
    iris().assign(w=[weight, *[2] * 149]).to_csv(folder / "weighted.csv", index=False)
    for command in (("train", "weighted.csv", "-t", "species", "-o", "x.slim"), ("score", "iris.slim", "weighted.csv")):
        code, _, err = run(*command, "--weight", "w")
        assert (code, words in err) == (1, True)


def test_a_decimal_comma(run, folder):
    iris().to_csv(folder / "commas.csv", index=False, sep=";", decimal=",")
    for command in ("score", "predict"):
        code, _, err = run(command, "iris.slim", "commas.csv")
        assert (code, "say --decimal ," in err) == (1, True)
        assert run(command, "iris.slim", "commas.csv", "--decimal", ",")[0] == 0


def test_labels_of_a_one_class_model(run, folder):
    code, _, err = run("score", "one.slim", "three.csv", "-t", "species")
    assert code == 1
    assert "a one-class model says 1" in err
    assert "'setosa'" in err
    assert len([line for line in err.splitlines() if not line.startswith("note: ")]) == 1
    iris().drop(columns="petal_width").assign(species=1).to_csv(folder / "ones.csv", index=False)
    assert run("score", "one.slim", "ones.csv", "-t", "species")[0] == 0


def test_probabilities_of_compressed_models(run, folder):
    code, _, err = run("predict", "svc.slim", "three.csv", "--proba")
    assert (code, "compress the original again, with --probability" in err) == (1, True)
    assert "only classifiers" in run("predict", "svr.slim", "three.csv", "--proba")[2]
    code, _, err = run("compress", "iris.slim", "-m", "4", "-o", "fewer.slim")
    assert (code, "note: the small model has no probabilities" in err) == (0, True)
    more = ("--probability", "--data", "iris.csv", "-t", "species")
    assert "no probabilities" not in run("compress", "iris.slim", "-m", "4", "-o", "fewer.slim", *more)[2]


def test_columns_by_position_are_told(run):
    code, _, err = run("score", "svc.slim", "three.csv", "-t", "species")
    assert code == 0
    assert "note: the model does not know the names of its inputs" in err
    assert "'sepal_length', 'sepal_width', 'petal_length'" in err


def test_a_small_regressor_is_judged_by_its_values(run):
    code, out, _ = run("compress", "svr.pkl", "--trust", "-m", "8", "-o", "svr.slim")
    assert code == 0
    assert "R² between its values and the original's: " in out
    assert "agreement" not in out


def test_ten_classes_in_a_pipe(run, folder, monkeypatch):
    """A line for each class, none broken, however narrow a terminal would be."""
    X, y = load_digits(return_X_y=True)
    pd.DataFrame(X[:, 18:30]).add_prefix("x").assign(digit=y).head(400).to_csv(folder / "digits.csv", index=False)
    assert run("train", "digits.csv", "-t", "digit", *QUICK, "-m", "12", "--test-size", "0", "-o", "d.slim")[0] == 0
    out = run("score", "d.slim", "digits.csv")[1]
    lines = out.splitlines()
    header = next(k for k, line in enumerate(lines) if "said" in line)
    assert lines[header].split()[3:] == [*map(str, range(10)), "right"]
    assert [line.split()[0] for line in lines[header + 2 : header + 12]] == [str(k) for k in range(10)]
    assert max(map(len, lines)) <= 80


def test_the_chosen_size_is_explained(run):
    """Where one below the floor is as good, or one above it is better."""
    options = ("-t", "species", *QUICK, "--no-full", "--json")
    for sizes in ("2,4,8", "4,8,16", "1,2,3"):
        code, out, err = run("frontier", "iris.csv", "--sizes", sizes, *options)
        assert code == 0, err
        found = json.loads(out)
        scores = {row["size"]: row["score"] for row in found["sizes"]}
        chosen = found["chosen"]["vectors"]
        assert found["why"].startswith(f"{chosen} vectors are chosen: ")
        if any(size < chosen and scores[size] >= scores[chosen] for size in scores if size < 4):
            assert "are not chosen" in found["why"]


def test_one_input(run, folder):
    frame = iris().assign(side=np.where(np.arange(150) % 3, "left", "right"))
    frame.to_csv(folder / "sides.csv", index=False)
    out = run("train", "sides.csv", "-t", "species", *IRIS, "--test-size", "0", "-o", "sides.slim")[1]
    assert "(1 input)" in out


HOSTILE = "\x1b[31mred\x1b]0;title\x07\x9b2J\u202eevil\r\nnote: forged[link=x]"
STEERING = set(map(chr, [*range(32), *range(0x7F, 0xA0), 0x202E])) - {"\n"}


def test_names_of_others_do_not_steer_a_terminal(run, folder, capsys):
    """Labels, columns and notes of a file show ? for control characters, and markup as it is."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a[red]", "b" + HOSTILE])
    frame["y"] = np.where(frame["a[red]"] > 0, "good", HOSTILE)
    frame.to_parquet(folder / "hostile.parquet")
    frame.drop(columns="y").to_parquet(folder / "rows.parquet")
    commands = [
        ("train", "hostile.parquet", "-t", "y", *IRIS, "-o", "hostile.slim"),
        ("info", "hostile.slim"),
        ("info", "hostile.slim", "--json"),
        ("score", "hostile.slim", "hostile.parquet"),
        ("train", "hostile.parquet", "-t", HOSTILE, "-o", "other.slim"),
        ("predict", "hostile.slim", "hostile.parquet", "--keep", HOSTILE),
    ]
    for command in commands:
        main([str(folder / one) if str(one).endswith((".slim", ".parquet")) else one for one in command])
        shown = capsys.readouterr()
        assert not STEERING & set(shown.out + shown.err), command
        assert "\nnote: forged" not in shown.out + shown.err
        if "--json" in command:
            assert HOSTILE in json.loads(shown.out)["model"]["classes"]
    main(["info", str(folder / "hostile.slim")])
    assert "?[31mred" in (said := capsys.readouterr().out)
    assert "[link=x]" in said
    assert "a[red]" in said


def test_predictions_on_a_terminal(run, folder, capsys, monkeypatch):
    """To a file and a pipe they go as they are: they are data."""
    frame = pd.DataFrame({"a": np.arange(20.0) % 7, "y": ["\x1b[2J" if k % 7 > 3 else "b" for k in range(20)]})
    frame.to_parquet(folder / "escapes.parquet")
    main(["train", str(folder / "escapes.parquet"), "-t", "y", *IRIS, "-o", str(folder / "escapes.slim")])
    predict = ["predict", str(folder / "escapes.slim"), str(folder / "escapes.parquet")]
    capsys.readouterr()
    main(predict)
    assert "\x1b[2J\n" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    main(predict)
    assert "\x1b" not in (said := capsys.readouterr().out)
    assert "?[2J\n" in said


@pytest.mark.parametrize(
    "notes",
    [
        {"inputs": "temperature", "task": "none", "held_out": {}, "rows": "x"},
        {"inputs": [{"name": 1}], "held_out": {"error": "x"}, "missing": 3, "target": [1], "settings": [], "rows": 9},
    ],
)
def test_notes_of_another_program(run, folder, capsys, notes):
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = slimsvm.SVC().fit(X, X[:, 0] > 0)
    slimsvm.save(model, folder / "other.slim", metadata=notes)
    pd.DataFrame(X, columns=["a", "b"]).to_csv(folder / "two.csv", index=False)
    assert main(["info", str(folder / "other.slim")]) == 0
    assert main(["predict", str(folder / "other.slim"), str(folder / "two.csv")]) == 0


def test_a_table_of_many_columns(folder, capsys):
    """Its header alone is longer than a field may be in Python's reader."""
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(12, 12_000)).round(2)).rename(columns=lambda k: f"column{k:05}")
    wide["column00007"] = 1.0  # constant
    wide["column00008"] = np.arange(12)  # only counts
    wide["column00009"] = ["a", "b"] * 6
    wide.loc[3, "column00010"] = np.nan
    wide["y"] = rng.normal(size=12)
    wide.to_csv(folder / "wide.csv", index=False)
    reading = ReadingOptions()
    start = time.process_time()
    table = tables.read(folder / "wide.csv", reading)
    inputs = choose(table, ColumnOptions(target="y"), "y")
    X = inputs.rows(table)
    assert time.process_time() - start < 15  # quadratic work takes minutes
    assert X.shape == (12, 11_998)
    assert [one for one in inputs.columns if one.kind != "number" or one.missing] == [
        Column("column00009", "category"),
        Column("column00010", "number", True),
    ]
    assert list(X.columns) == inputs.names
    np.testing.assert_array_equal(X["column00011"], wide["column00011"])
    assert any("column00007" in note for note in inputs.notes)
    assert any("column00008" in note for note in inputs.notes)
