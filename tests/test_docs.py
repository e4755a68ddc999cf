"""What the documentation shows runs: code blocks of the README and examples in docstrings."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import pages
import slimsvm
from slimsvm import estimators

ROOT = Path(__file__).parent.parent


def modules(package):
    """Names of a package and all its modules; none where it is not installed."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        return []
    found = [module.name for module in pkgutil.walk_packages(spec.submodule_search_locations, f"{package}.")]
    return [package, *sorted(name for name in found if "._core" not in name)]


MODULES = [*modules("slimsvm"), *modules("papers")]


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


NEEDS = {  # of pages: packages
    "datasets": ("papers",),
    "gpu": ("torch",),
    "large": ("dask", "distributed", "pandas", "pyarrow"),
    "onnx": ("onnxruntime", "skl2onnx", "pandas"),
    "papers": ("papers",),
    "rows": ("pandas", "pyarrow"),
}
WITH_TESTS = {"command"}  # pages that other tests run
DOCS = ROOT / "docs"
TEXTS = {path.relative_to(DOCS).with_suffix("").as_posix(): path.read_text() for path in DOCS.rglob("*.md")}
PAGES = {page for page, text in TEXTS.items() if code_blocks(text)} - WITH_TESTS


@pytest.mark.parametrize("page", sorted(TEXTS))
def test_no_code_is_left_out(page):
    """Python in other fences, or in lists, would not be run. What is included comes from files that are."""
    fences = re.findall(r"^[ \t>]*(?:`{3,}|~{3,}|:{3,})(.*\bpy(?:thon|con)?\b.*)$", TEXTS[page], flags=re.MULTILINE)
    included = [fence for fence in fences if fence.startswith("{literalinclude}")]
    assert all("../examples/" in fence or "../tests/" in fence for fence in included)
    assert len(fences) - len(included) == len(code_blocks(TEXTS[page]))


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("page", sorted(PAGES))
def test_pages(page, tmp_path, monkeypatch):
    """Blocks run in order, and print what is shown below them."""
    monkeypatch.chdir(tmp_path)  # some write files
    monkeypatch.setenv("MPLBACKEND", "Agg")
    for package in NEEDS.get(page, ()):
        pytest.importorskip(package)
    for block in pages.run(ROOT / "docs" / f"{page}.md"):
        assert block.shown is None or pages.agrees(block.shown, block.printed), block.printed


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    assert module.__doc__
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


@pytest.mark.parametrize(
    "estimator",
    [*estimators.ALL, *estimators.REGRESSORS, *estimators.FAMILY, *estimators.COMPRESSED, *estimators.DETECTORS],
)
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
