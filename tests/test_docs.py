"""What the documentation shows runs: code blocks of the README and examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import slimsvm
from problems import blobs
from slimsvm import AnyNormSVC, estimators
from slimsvm.formulation import CONSTRAINTS

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(slimsvm.__path__, "slimsvm.") if "._core" not in module.name
)


def code_blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def test_readme(tmp_path, monkeypatch):
    """Blocks run in order and share their names, as a reader would type them."""
    readme = (ROOT / "README.md").read_text()
    if not readme.strip():
        pytest.skip("README.md is empty")
    blocks = code_blocks(readme)
    assert blocks, "README.md shows no Python code"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names = {"__name__": "readme"}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"README.md, block {number}", "exec"), names)


@pytest.fixture
def run_page(monkeypatch):
    def run(page):
        """The names that the code of a page defines."""
        module = types.ModuleType(f"page_{page.partition('.')[0]}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        for number, block in enumerate(code_blocks((ROOT / "docs" / page).read_text()), 1):
            exec(compile(block, f"{page}, block {number}", "exec"), vars(module))
        return module

    return run


NEEDS = {  # of pages: packages
    "gpu": ("torch",),
    "large": ("dask", "distributed", "pandas", "pyarrow"),
    "onnx": ("onnxruntime", "skl2onnx", "pandas"),
    "rows": ("pandas", "pyarrow"),
}
WITH_TESTS = {"own_slack", "command"}  # pages that other tests run
PAGES = {path.stem for path in (ROOT / "docs").glob("*.md") if code_blocks(path.read_text())} - WITH_TESTS


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("page", sorted(PAGES))
def test_pages(run_page, page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    monkeypatch.setenv("MPLBACKEND", "Agg")
    for package in NEEDS.get(page, ()):
        pytest.importorskip(package)
    run_page(f"{page}.md")


@pytest.mark.filterwarnings("error")
def test_norms_of_the_reader(run_page):
    """The norms that the page defines are as good as built-in ones: certified, with weights that count rows."""
    page = run_page("own_slack.md")
    assert (page.clf.duality_gap_ <= page.clf.tol).all()
    X, y = blobs(60, noise=0.2)
    copies = 1 + np.arange(60) % 3
    for slack in (page.HuberHinge(0.5), page.BallAndCap(1.0, 4.0)):
        for constraint in CONSTRAINTS:
            model = AnyNormSVC(slack, constraint, C=3.0, gamma=0.3, tol=1e-6)
            weighted = clone(model).fit(X, y, sample_weight=copies)
            repeated = clone(model).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
            assert weighted.duality_gap_[0] <= 1e-6
            assert weighted.objective_[0] == pytest.approx(repeated.objective_[0], rel=3e-6)


@pytest.mark.parametrize("name", ["slimsvm", *MODULES])
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    assert module.__doc__
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


@pytest.mark.parametrize("estimator", [*estimators.ALL, *estimators.COMPRESSED])
def test_every_parameter_and_attribute_is_documented(estimator):
    text = inspect.getdoc(estimator)
    assert ">>>" in text
    for name in inspect.signature(estimator).parameters:
        assert re.search(rf"^{name} :", text, flags=re.MULTILINE), name
    attributes = vars(estimator().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]))
    for name in attributes:
        if name.endswith("_"):
            assert re.search(rf"^{name} :", text, flags=re.MULTILINE), name


def test_every_public_name_is_there():
    for name in slimsvm.__all__:
        assert hasattr(slimsvm, name), name
    assert re.match(r"\d+\.\d+", slimsvm.__version__)
