"""CSV files hold text: labels come back as they were, and a row means the same whatever rows are beside it."""

from __future__ import annotations

import io
import json
import sys

import numpy as np
import pandas as pd
import pytest

import slimsvm
from command import IRIS
from slimsvm.cli import main

RNG = np.random.default_rng(0)
A = RNG.normal(size=40).round(3)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(one) for one in arguments])
        return code, *capsys.readouterr()

    return run


def write(name, rows, header="a,c,label"):
    with open(name, "w") as file:
        file.write("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return name


def labelled(labels):
    """Rows that are easy to tell apart, with these labels in turn."""
    return [(a + 5 * (k % len(labels)), k % 3, labels[k % len(labels)]) for k, a in enumerate(A)]


def train(run, name, *options):
    code, out, err = run("train", name, "-t", "label", *IRIS, "--test-size", "0", *options, "-o", "m.slim", "--json")
    assert code == 0, err
    return json.loads(out)


# --- labels -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        ("12345678901234567890", "5"),
        ("01", "02"),
        ("007", "7"),
        ("1.0", "2.0"),
        ("1", "2.0"),
        ("+1", "-1"),
        ("-1", "1"),
        ("1e3", "2e3"),
        ("true", "false", "unknown"),
        ("1_0", "10"),
        ("9223372036854775807", "-9223372036854775808"),
    ],
)
def test_labels_come_back_as_they_were(run, labels):
    name = write("d.csv", labelled(labels))
    assert set(train(run, name)["classes"]) == set(labels)
    found = run("predict", "m.slim", name)[1].split()[1:]
    assert set(found) == set(labels)
    rows = pd.read_csv(name, dtype=str)
    score = json.loads(run("score", "m.slim", name, "--json")[1])
    assert score["error"] == np.mean(np.array(found) != rows.label)


def test_labels_of_one_kind_alone_are_still_those_of_the_model(run):
    """A file to score has some of the classes only; types that its text alone suggests do not count."""
    train(run, write("d.csv", labelled(("true", "false", "unknown"))))
    some = write("some.csv", [row for row in labelled(("true", "false", "unknown")) if row[2] != "unknown"])
    assert json.loads(run("score", "m.slim", some, "--json")[1])["error"] < 0.2
    train(run, write("d.csv", labelled(("1", "2", "3"))))
    some = write("some.csv", [(*row[:2], f"{row[2]}.0") for row in labelled((1, 2, 3)) if row[2] != 3])
    found = json.loads(run("score", "m.slim", some, "--json")[1])
    assert found["error"] < 0.2
    assert found["classes"] == [1, 2, 3]


@pytest.mark.parametrize(("model", "others"), [(("01", "02"), ("1", "2")), (("1", "2"), ("1", "x"))])
def test_labels_that_the_model_does_not_have(run, model, others):
    train(run, write("d.csv", labelled(model)))
    code, _, err = run("score", "m.slim", write("o.csv", labelled(others)))
    assert code == 1
    assert "is a class of the model" in err
    assert repr(others[1]) in err


def test_a_label_that_reads_as_missing(run):
    """The message names it, and the option that it names keeps it; the model's file remembers that."""
    name = write("d.csv", labelled(("NA", "US")))
    code, _, err = run("train", name, "-t", "label", "-o", "m.slim")
    assert code == 1
    assert "'NA' counts as missing" in err
    assert "--missing ''" in err
    assert set(train(run, name, "--missing", "")["classes"]) == {"NA", "US"}
    assert json.loads(run("score", "m.slim", name, "--json")[1])["error"] < 0.2


# --- categories ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "options"),
    [
        (("true", "false", "unknown"), ()),
        (("TRUE", "FALSE", "maybe"), ()),
        (("01", "02", "X1", "X2"), ()),
        (("1.50", "2.50", "none given", "other"), ()),
        (("1.10", "1.1", "a", "b"), ()),
        (("1", "01", "2"), ("--categorical", "c")),
        (("1", "", "2"), ("--categorical", "c")),
        (("1e3", "1000", "x", "NA"), ()),
        (("true", "false", ""), ()),
    ],
)
def test_a_row_is_predicted_the_same_whatever_rows_are_beside_it(run, texts, options):
    rows = [(a, texts[k % len(texts)], int(k % len(texts) == 1)) for k, a in enumerate(A)]
    train(run, write("d.csv", rows), *options)
    _, out, err = run("predict", "m.slim", "d.csv")
    together = out.split()[1:]
    assert "does not know" not in err
    for text in texts:
        code, out, err = run("predict", "m.slim", write("one.csv", [row for row in rows if row[1] == text]))
        assert (code, err) == (0, "")
        assert out.split()[1:] == [said for said, row in zip(together, rows, strict=True) if row[1] == text]


def test_truth_values_in_all_ways(run):
    """With gaps they are numbers, and with other texts categories; CSV and Parquet agree."""
    for texts in (("true", "false", ""), ("true", "false", "unknown")):
        rows = [(a, texts[k % 3], int(k % 3 == 1)) for k, a in enumerate(A)]
        train(run, write("d.csv", rows))
        some = [row for row in rows if row[1] in ("true", "false")]
        expected = run("predict", "m.slim", write("some.csv", some))[1]
        frame = pd.DataFrame({"a": [row[0] for row in some], "c": [row[1] == "true" for row in some]})
        frame.to_parquet("some.parquet")
        frame.to_csv("python.csv", index=False)
        for name in ("some.parquet", "python.csv"):
            assert run("predict", "m.slim", name) == (0, expected, "")
        if texts[2] == "":
            frame.assign(c=frame.c.astype(int)).to_csv("digits.csv", index=False)
            assert run("predict", "m.slim", "digits.csv")[1] == expected
            assert [one["kind"] for one in slimsvm.persistence.describe("m.slim")["metadata"]["inputs"]] == [
                "number",
                "number",
            ]


def test_texts_for_missing_are_those_of_training(run):
    rows = [(a, ("x", "y", "unknown")[k % 3], k % 2) for k, a in enumerate(A)]
    train(run, write("d.csv", rows), "--missing", "unknown")
    code, _, err = run("predict", "m.slim", "d.csv")
    assert (code, err) == (0, "")


def test_standard_input_and_kept_columns(run, monkeypatch):
    """Text stays text from one end to the other."""
    rows = [(a, ("01", "02", "X1", "NA")[k % 4], k % 2) for k, a in enumerate(A)]
    train(run, write("d.csv", rows))
    text = "a,c,id\n0.5, 01 ,007\n\n0.7,NA,NA\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    code, out, err = run("predict", "m.slim", "-", "--keep", "id")
    assert (code, err) == (0, "")
    assert [line.split(",")[0] for line in out.splitlines()] == ["id", "007", "NA"]
    assert run("predict", "m.slim", "d.csv", "--keep", "c", "-o", "out.parquet")[0] == 0
    assert pd.read_parquet("out.parquet").c.isna().sum() == 10
