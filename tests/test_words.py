"""What pages show besides Python: programs in C, pictures, measured tables."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import pages

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def test_the_c_program_of_the_page(tmp_path, monkeypatch):
    """It includes the header that the page writes, and compiles without a warning."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    monkeypatch.chdir(tmp_path)
    page = DOCS / "microcontrollers.md"
    model = pages.names(page)
    program = re.search(r"^```c\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)[1]
    Path("moons.h").write_text(model.header)
    Path("program.c").write_text(program)
    subprocess.run([compiler, "-std=c99", "-Wall", "-Werror", "program.c", "-lm", "-o", "program"], check=True)
    printed = subprocess.run(["./program"], check=True, capture_output=True, text=True).stdout
    assert printed == f"class {model.clf.predict([[0.5, 0.2]])[0]}\n"


@pytest.fixture
def figures():
    pytest.importorskip("matplotlib").use("Agg")
    spec = importlib.util.spec_from_file_location("figures", DOCS / "figures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pictures_are_drawn_and_shown(figures, tmp_path):
    """All that the script draws is on the page, and the other way round; lines are dark enough and light enough."""
    figures.main(tmp_path)
    shown = re.findall(r"\]\(figures/(\w+)\.svg\)", (DOCS / "how_it_works.md").read_text())
    assert sorted(shown) == sorted(figures.ALL) == sorted(path.stem for path in tmp_path.iterdir())
    for name in shown:
        assert (DOCS / "figures" / f"{name}.svg").exists()
        drawn = (tmp_path / f"{name}.svg").read_text()
        assert not re.search(r"(fill|stroke): #(000000|ffffff)", drawn), name


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_method_is_compared(capsys, tmp_path):
    """The benchmark behind the page runs, and its table has every classifier that the page names."""
    for package in ("psutil", "threadpoolctl"):
        pytest.importorskip(package)
    which = pytest.importorskip("benchmarks.which", reason="benchmarks are not beside the tests")
    which.main(["--quick", "--sets", "cancer", "--output", str(tmp_path / "which.md")])
    measured, page = (tmp_path / "which.md").read_text(), (ROOT / "benchmarks" / "WHICH.md").read_text()
    methods = set(re.findall(r"^\| (\w*(?:SVC|Classifier|compress)\b)", measured, flags=re.MULTILINE))
    assert {"SVC", "SlimSVC", "AnyNormSVC", "LpSVC", "RelevanceVectorClassifier"} <= methods
    assert all(method in page for method in methods)
