"""The site has all that it should, and its checker finds what is wrong. `make docs` builds and checks the whole."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import slimsvm

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MADE = ("api/", "auto_examples/")  # written by a build


def tool(name, folder=ROOT / "tools"):
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def written_pages():
    names = (path.relative_to(DOCS).as_posix() for kind in ("md", "rst") for path in DOCS.rglob(f"*.{kind}"))
    return sorted(name for name in names if not name.startswith((*MADE, "_")))


def listed(page):
    """Pages that the tables of contents of a page name."""
    text = (DOCS / page).read_text()
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line and not line.startswith(":"):
                name = (DOCS / page).parent.joinpath(line.strip()).relative_to(DOCS).as_posix()
                found = [p.relative_to(DOCS).as_posix() for kind in ("md", "rst") for p in DOCS.glob(f"{name}.{kind}")]
                yield from found or ([] if "*" in name else [name])


def test_every_page_is_in_the_navigation():
    listings = {page: list(listed(page)) for page in written_pages() if page.endswith(".md")}
    reached = {"index.md"}
    waiting = ["index.md"]
    while waiting:
        new = set(listings.get(waiting.pop(), ())) - reached
        reached |= new
        waiting += new
    assert set(written_pages()) <= reached
    assert {name for name in reached if not name.startswith(MADE)} <= set(written_pages())


def test_every_table_that_was_measured_has_a_page():
    texts = "".join((DOCS / page).read_text() for page in written_pages())
    included = set(re.findall(r"^```\{include\} (?:\.\./)+benchmarks/(\S+)$", texts, flags=re.MULTILINE))
    assert {table.name for table in (ROOT / "benchmarks").glob("*.md")} == included


@pytest.mark.parametrize("table", sorted((ROOT / "benchmarks").glob("*.md")), ids=lambda path: path.stem)
def test_tables_say_when_where_and_how(table):
    text = table.read_text()
    assert re.search(r"20\d\d-\d\d-\d\d", text), "no date"
    assert re.search(r"EPYC|Xeon", text), "no machine"
    assert re.search(r"`(python -m benchmarks|make )", text), "no command"


def test_every_public_name_has_a_page():
    api = (DOCS / "api.rst").read_text()
    documented = set(re.findall(r"^   ([\w.]+)$", api, flags=re.MULTILINE))
    for name in slimsvm.__all__:
        thing = getattr(slimsvm, name)
        if inspect.ismodule(thing):
            assert any(entry.startswith(f"{name}.") for entry in documented), name
        elif not name.startswith("_"):
            assert name in documented, name
    for part in (slimsvm.slacks, slimsvm.kernels, slimsvm.bases, slimsvm.losses, slimsvm.regularizers):
        short = part.__name__.rpartition(".")[2]
        for member in part.ALL:
            assert f"{short}.{getattr(member, '__name__', type(member).__name__)}" in documented


def test_names_of_other_projects_exist(tmp_path):
    """Links outward are written from a table: what it names must be there."""
    pytest.importorskip("numpydoc", reason="the table completes numpydoc's")
    outside = tool("outside", DOCS / "_ext")
    for full in outside.NAMES:
        module, _, name = full.rpartition(".")
        pytest.importorskip(full.partition(".")[0])
        assert hasattr(importlib.import_module(module), name), full
    written = outside.mapping(tmp_path)
    assert set(written) == set(outside.PROJECTS)
    assert all(home.startswith("https://") and Path(file).exists() for home, file in written.values())


GOOD = '<link rel="stylesheet" href="a.css"><p id="here"></p><a href="#here"></a><a href="b/c.html#there">'
WRONG = {
    '<script src="https://cdn.example/x.js"></script>': "from the network",
    '<script src="//cdn.example/x.js"></script>': "from the network",
    '<link rel="stylesheet" href="https://fonts.example/f.css">': "from the network",
    '<img src="https://example.com/a.png">': "from the network",
    '<img srcset="a.css 1x, https://example.com/a.png 2x">': "from the network",
    '<style>@import "https://fonts.example/f.css";</style>': "from the network",
    '<p style="background: url(https://example.com/a.png)">': "from the network",
    '<img src="lost.png">': "not there",
    '<a href="lost.html">': "not there",
    '<a href="#lost">': "no such place",
    '<a href="b/c.html#here">': "no such place",
}


@pytest.fixture
def site(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c.html").write_text('<h1 id="there"></h1><a href="../index.html#here"></a>')
    (tmp_path / "a.css").write_text("p { color: red }  /* url(https://example.com) */")
    (tmp_path / "index.html").write_text(GOOD + '<a href="https://example.com/elsewhere">')
    return tmp_path


def test_a_whole_site_passes(site, capsys):
    assert tool("check_site").main([str(site)]) == 0
    assert "nothing is loaded" in capsys.readouterr().out


@pytest.mark.parametrize("markup", WRONG)
def test_what_is_wrong_is_found(site, capsys, markup):
    (site / "index.html").write_text(GOOD + markup)
    assert tool("check_site").main([str(site)]) == 1
    assert WRONG[markup] in capsys.readouterr().out


def test_fonts_of_a_style_sheet_count(site, capsys):
    (site / "a.css").write_text("@font-face { src: url('https://fonts.example/f.woff2') }")
    assert tool("check_site").main([str(site)]) == 1
    assert "a.css" in capsys.readouterr().out


def test_without_a_site_it_says_what_to_do(tmp_path, capsys):
    with pytest.raises(SystemExit):
        tool("check_site").main([str(tmp_path)])
    assert "make docs" in capsys.readouterr().err
