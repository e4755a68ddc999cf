"""Tables of measurements on pages are those of results files, which tell when and with what they were measured."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import date
from pathlib import Path

import pytest

pages = pytest.importorskip("benchmarks.pages", reason="benchmarks are not beside the tests")
FILES = sorted((pages.ROOT / pages.FILES).glob("*.json"))
TABLE = re.compile(r"^\|[-:|]+\|$", re.MULTILINE)  # the rule below the header


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: page.stem)
def test_tables_are_those_of_the_results_files(page):
    """``python -m benchmarks.pages`` writes them."""
    text = page.read_text(encoding="utf-8")
    assert pages.filled(text) == text
    outside = pages.BLOCK.sub("", text)
    if page.stem == "README":
        outside = "".join(
            part for part in re.split(r"^## ", outside, flags=re.MULTILINE) if part.startswith("How it comp")
        )
    assert not TABLE.search(outside), "a table that is not from a results file"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_results_tell_when_and_with_what(file):
    results = json.loads(file.read_text(encoding="utf-8"))
    assert date.fromisoformat(results["date"]) <= date.today()
    assert re.match(r"python -m benchmarks|make ", results["command"])
    assert {"computer", "versions"} <= results.keys()
    shown = "".join(page.read_text(encoding="utf-8") for page in pages.pages())
    named = {title for name, title in re.findall(r"<!-- table: (\w+): (.+?) -->", shown) if name == file.stem}
    assert named - {title for name, title in pages.SELECTED if name == file.stem} == results["tables"].keys()
    page = pages.ROOT / ("README.md" if file.stem == "demo" else f"benchmarks/{file.stem.upper()}.md")
    assert results["date"] in page.read_text(encoding="utf-8")


def test_a_page_that_differs_is_seen(tmp_path):
    text = (pages.ROOT / "README.md").read_text(encoding="utf-8")
    changed = text.replace("| ringnorm", "| ringnorn", 1)
    assert changed != text
    assert pages.filled(changed) == text


def test_a_run_keeps_the_text_around_its_tables(tmp_path, monkeypatch):
    """A new run of a page writes its tables and its date, and leaves the rest."""
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    page = tmp_path / "benchmarks" / "SPEED.md"
    (tmp_path / "README.md").write_text("")
    page.parent.mkdir()
    page.write_text("")
    first, second = pages.Table("A", ["x", "y"], [["1", "2"]], "seconds"), pages.Table("B", ["x"], [["3"]])
    page.write_text(
        "# Speed\n\nMeasured on 2020-01-01 with `old` in 1.0 minutes.\n\nBy hand.\n\n"
        "<!-- table: speed: A -->\n<!-- end of table -->\n"
    )
    pages.publish(page, "Speed", "python -m benchmarks.speed", 2.0, [first, second])
    text = page.read_text()
    assert f"Measured on {date.today()} with `python -m benchmarks.speed` in 2.0 minutes." in text
    assert "By hand." in text
    assert "| 1 | 2 |" in text
    assert "## B" in text
    assert "| 3 |" in text
    assert json.loads((tmp_path / pages.FILES / "speed.json").read_text())["tables"].keys() == {"A", "B"}
    page.write_text(text.replace("Measured on", "Seen on"))
    pages.publish(page, "Speed", "python -m benchmarks.speed", 3.0, [first, second])
    assert f"# Speed\n\nMeasured on {date.today()} with" in page.read_text()


def test_the_picture_belongs_to_the_table():
    """``make demo ARGS=--write`` makes both."""
    image = pytest.importorskip("PIL.Image")
    results = (pages.ROOT / pages.FILES / "demo.json").read_bytes()
    with image.open(Path(pages.ROOT, "docs", "demo.png")) as picture:
        assert picture.info["Description"] == hashlib.sha256(results).hexdigest()
