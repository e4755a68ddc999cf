"""The frame of the papers: comparisons, runs that go on, files; the recipes themselves are tested beside it."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest

import papers
from papers import Column, Paper, Printed, Recipe, Task
from papers.recipe import printed, proportion
from papers.running import Store, measured

PAGES = Path(__file__).parent.parent / "docs" / "papers"
TINY = Paper("tiny", "A & B", "On nothing", "Journal", 2001)
DONE: list[int] = []


def draw(seed):
    DONE.append(seed)
    rng = np.random.default_rng(seed)
    return {"one": {"error": 10 + rng.normal()}, "two": {"error": 20 + rng.normal(), "vectors": 7}}


def recipe(**changes):
    settings = {
        "name": "tiny-table-1",
        "paper": TINY,
        "title": "Table 1",
        "protocol": "Draws.",
        "tasks": lambda: [Task(f"draw {k}", draw, (k,), quick=k < 5) for k in range(40)],
        "columns": (Column("error", "low", 0.1), Column("vectors", step=1)),
        "rows": ("two", "one"),
        "printed": printed(("error", "vectors"), {"one": (10.0, None), "two": (15.0, 7)}),
        "runs": 40,
        "reasons": {("t*", "err*"): "it was another problem"},
    }
    return Recipe(**(settings | changes))


def cell(found, row, column):
    return next(one for one in found.cells if (one.row, one.column.name) == (row, column))


# --- comparisons ----------------------------------------------------------------------------------


def test_a_difference_is_in_standard_errors_of_the_difference():
    """Against the formula written out: a paper without deviations is taken to have ours."""
    found = papers.run(recipe())
    numbers = np.array([draw(k)["two"]["error"] for k in range(40)])
    doubt = math.sqrt(2 * numbers.var(ddof=1) / 40)
    two = cell(found, "two", "error")
    assert two.difference == pytest.approx((numbers.mean() - 15.0 - 0.05) / doubt)
    assert (two.verdict, two.reason) == ("beyond", "it was another problem")
    assert cell(found, "one", "error").verdict == "same"


def test_a_printed_deviation_counts():
    wide = recipe(printed={("two", "error"): Printed(15.0, deviation=100.0, runs=4)})
    two = cell(papers.run(wide), "two", "error")
    assert two.verdict == "same"
    assert two.difference == pytest.approx((two.ours - 15.05) / math.hypot(two.standard_error, 50))


@pytest.mark.parametrize(("better", "verdict"), [("low", "beyond"), ("high", "better"), (None, "beyond")])
def test_better_has_a_direction(better, verdict):
    found = papers.run(recipe(columns=(Column("error", better, 0.1), Column("vectors"))))
    assert cell(found, "two", "error").verdict == verdict


def test_rounding_is_no_difference():
    """Numbers that do not vary at all differ only beyond what printing hides."""
    two = cell(papers.run(recipe()), "two", "vectors")
    assert (two.difference, two.verdict) == (0.0, "same")
    near = recipe(printed={("two", "vectors"): Printed(7.4)})
    assert cell(papers.run(near), "two", "vectors").difference == 0.0
    far = recipe(printed={("two", "vectors"): Printed(7.6)})
    assert cell(papers.run(far), "two", "vectors").difference == -math.inf


def test_seconds_are_not_judged():
    found = papers.run(recipe(columns=(Column("error", judged=False), Column("vectors"))))
    assert cell(found, "two", "error").verdict == ""
    assert sum(found.counts().values()) == 1


def test_a_proportion_of_one_test_set():
    """One look at n rows has the binomial deviation, in the paper and here."""
    once = recipe(
        tasks=lambda: [Task("all", dict, ({"one": {"error": 12.0}},), quick=True)],
        printed={("one", "error"): proportion(10.0, 400)},
    )
    one = cell(papers.run(once), "one", "error")
    assert one.difference == pytest.approx((2.0 - 0.05) / (math.sqrt(2) * 100 * math.sqrt(0.1 * 0.9 / 400)))
    assert proportion(0.0, 100).deviation > 0


def test_rows_are_in_the_order_of_the_table():
    header, rows = papers.run(recipe()).table()
    assert header == ["set", "error: paper", "ours", "apart", "vectors: paper", "ours", "apart"]
    assert [row[0] for row in rows] == ["two", "one"]
    assert rows[1][4:] == ["–", "–", "–"]


def test_columns_that_are_not_declared_are_an_error():
    with pytest.raises(ValueError, match=r"\['vectors'\]"):
        _ = papers.run(recipe(columns=(Column("error"),))).cells


# --- runs -----------------------------------------------------------------------------------------


def test_a_run_goes_on_where_it_was(tmp_path):
    """Tasks that are kept are not done again; quick and full runs share them; a cut line is done again."""
    DONE.clear()
    papers.run(recipe(), quick=True, folder=tmp_path)
    assert sorted(DONE) == list(range(5))
    whole = papers.run(recipe(), folder=tmp_path)
    assert sorted(DONE) == list(range(40))
    file = tmp_path / "tasks" / "tiny-table-1.jsonl"
    file.write_text(file.read_text()[:-20])
    again = papers.run(recipe(), folder=tmp_path)
    assert len(DONE) == 41
    assert again.csv() == whole.csv() == papers.run(recipe()).csv()
    DONE.clear()
    papers.run(recipe(), quick=True, folder=tmp_path, again=True)
    assert len(DONE) == 5


def test_what_another_version_did_does_not_count(tmp_path):
    DONE.clear()
    for version in ("1", "2", "2"):
        measured(recipe(), Store(tmp_path, version), True, 1, False)
    assert len(DONE) == 10


def test_processes_give_the_same(tmp_path):
    found = papers.run(recipe(tasks=numbers), n_jobs=2, folder=tmp_path)
    assert found.csv() == papers.run(recipe(tasks=numbers)).csv()


def numbers():
    return [Task(f"{k}", _same, (k,), quick=True) for k in range(4)]


def _same(k):
    return {"one": {"error": np.float64(k), "vectors": np.int64(2)}}


def test_sets_that_cannot_be_had_are_left_out(tmp_path, monkeypatch):
    """The others are measured, and the result says what to do."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLIMSVM_DATA", str(tmp_path))
    monkeypatch.setenv("SLIMSVM_CACHE", str(tmp_path))
    from papers import datasets

    def load(name, *more, **others):
        raise datasets.MissingData(f"The set {name} is not here: put it there.")

    monkeypatch.setattr(datasets, "load", load)
    tasks = [Task("a", _same, (1,), ("usps",), quick=True), Task("b", _same, (2,), quick=True)]
    found = papers.run(recipe(tasks=lambda: tasks))
    assert list(found.outcomes) == ["b"]
    assert "left out: The set usps is not here: put it there." in found.markdown()


# --- files ----------------------------------------------------------------------------------------


def test_files(tmp_path):
    """Markdown, CSV and PNG say the same as the result."""
    drawn = recipe(draw=lambda figure, result: figure.add_subplot().plot([1, 2, len(result.outcomes)]))
    found = papers.run(drawn, quick=True)
    files = papers.save(found, tmp_path / "new")
    assert [file.name for file in files] == ["tiny-table-1.md", "tiny-table-1.csv", "tiny-table-1.png"]
    assert files[2].read_bytes().startswith(b"\x89PNG")
    lines = list(csv.DictReader(io.StringIO(files[1].read_text())))
    assert [(line["row"], line["column"]) for line in lines] == [(c.row, c.column.name) for c in found.cells]
    text = files[0].read_text()
    assert "5 of 40 tasks" in text
    assert "- two, error" in text
    assert "it was another problem" in text
    page = papers.page([found], tmp_path / "pages", "python -m papers tiny").read_text()
    assert page.startswith("# A & B: On nothing\n")
    assert (tmp_path / "pages" / "tiny-table-1.png").exists()


def test_webpage_needs_nothing_beside_it():
    text = papers.webpage([papers.run(recipe(title="<Table> & 1"), quick=True)])
    assert "&lt;Table&gt; &amp; 1" in text
    assert "http" not in text


# --- the command ----------------------------------------------------------------------------------


def command(folder, *arguments):
    """`python -m papers`, as a process of its own."""
    root = Path(papers.__file__).parents[1]
    return subprocess.run(
        [sys.executable, "-m", "papers", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(root)},
    )


def test_command_lists_all(tmp_path):
    done = command(tmp_path, "--list", "--json")
    listed = json.loads(done.stdout)["recipes"]
    assert [one["name"] for one in listed] == [one.name for one in papers.recipes()]
    assert all(0 < one["quick"] <= one["tasks"] for one in listed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to measure: give names, or --all"),
        (("huang", "--all"), "not both"),
        (("huang-tabel-1",), "did you mean huang-table-1"),
        (("huang", "--html", "x.txt"), "must end in .html"),
    ],
)
def test_wrong_use(tmp_path, arguments, message):
    done = command(tmp_path, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert not list(tmp_path.iterdir())


# --- all recipes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("one", papers.recipes(), ids=lambda one: one.name)
def test_declarations(one):
    """What is printed is in the table, reasons refer to cells, tasks have names of their own."""
    assert re.fullmatch(one.paper.key + r"-(table|figure|times|beyond)[a-z0-9-]*", one.name)
    assert one.title
    assert one.protocol
    columns = {column.name for column in one.columns}
    assert {column for _, column in one.printed} <= columns
    assert {row for row, _ in one.printed} <= set(one.rows)
    for row, column in one.reasons:
        assert any(fnmatchcase(r, row) and fnmatchcase(c, column) for r, c in one.printed), (row, column)
    tasks = list(one.tasks())
    assert len({task.name for task in tasks}) == len(tasks)
    assert any(task.quick for task in tasks)


@pytest.mark.parametrize("paper", papers.PAPERS, ids=lambda paper: paper.key)
def test_pages(paper):
    """The committed results: all recipes of the paper, each cell beyond two standard errors with its reason."""
    text = (PAGES / f"{paper.key}.md").read_text()
    for one in papers.recipes(paper.key):
        assert f"## {one.title}\n" in text
        assert f"`python -m papers {one.name}`: all " in text
    assert "not explained" not in text
    for picture in re.findall(r"\]\(([^)]+\.png)\)", text):
        assert (PAGES / picture).exists()
