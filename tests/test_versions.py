"""One version, from one place; and what an import of the package costs in other packages."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import slimsvm

ROOT = Path(__file__).parent.parent

# Found by `import slimsvm`, each of these would make it slower, or make an optional package necessary.
NOT_IMPORTED = (
    "matplotlib",
    "onnx",
    "onnxruntime",
    "pandas",
    "polars",
    "pyarrow",
    "rich",
    "skl2onnx",
    "skops",
    "sklearn.cluster",
    "sklearn.compose",
    "sklearn.ensemble",
    "sklearn.impute",
    "sklearn.inspection",
    "sklearn.multiclass",
    "sklearn.neighbors",
    "sklearn.tree",
    "typer",
    "urllib.request",
)


def source(name: str) -> str:
    path = ROOT / name
    if not path.exists():
        pytest.skip(f"{name} is not beside the tests")
    return path.read_text(encoding="utf-8")


def test_the_version_is_that_of_pyproject():
    assert slimsvm.__version__ == version("slimsvm")
    assert slimsvm.__version__ == tomllib.loads(source("pyproject.toml"))["project"]["version"]


def test_the_citation_names_the_version():
    cited = re.search(r"^version: *(\S+)$", source("CITATION.cff"), re.MULTILINE)
    assert cited
    assert cited[1].strip("\"'") == slimsvm.__version__


def test_the_changelog_has_the_version():
    assert re.search(rf"^## \[{re.escape(slimsvm.__version__)}\]", source("CHANGELOG.md"), re.MULTILINE)


def test_show_versions(capsys):
    """What a report needs is there; what would tell on the reporter is not."""
    slimsvm.show_versions()
    shown = capsys.readouterr().out
    assert shown.startswith(f"slimsvm: {slimsvm.__version__}\n")
    for name in ("compiler", "instructions", "Python", "platform", "numpy", "scipy", "scikit-learn", "threadpoolctl"):
        assert re.search(rf"^  {name}: \S", shown, re.MULTILINE), name
    assert version("numpy") in shown
    assert str(Path.home()) not in shown
    assert sys.prefix not in shown


def test_show_versions_without_optional_packages(capsys, monkeypatch):
    monkeypatch.setattr("slimsvm.utils.versions.OPTIONAL", ("no-such-package",))
    monkeypatch.setattr("slimsvm.utils.versions.REQUIRED", ("numpy", "no-such-need"))
    slimsvm.show_versions()
    shown = capsys.readouterr().out
    assert "no-such-package" not in shown
    assert "no-such-need: missing" in shown


def test_import_leaves_heavy_packages_alone():
    """In a process of its own. What scikit-learn's SVMs import anyway costs nothing more."""
    code = """import sys, sklearn.svm
before = set(sys.modules)
import slimsvm
slimsvm.SlimSVC, slimsvm.SVC, slimsvm.frontier, slimsvm.to_c, slimsvm.save  # which import the others
print(*set(sys.modules) - before)
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120)
    added = run.stdout.split()
    assert "slimsvm.frontiers.compute" in added
    heavy = [name for name in added for top in NOT_IMPORTED if name == top or name.startswith(f"{top}.")]
    assert heavy == []


# --- what is imported ------------------------------------------------------------------------------------------------

NAMES = {"sklearn": "scikit-learn"}  # of modules whose package has another one
USERS = (
    "plot",
    "onnx",
    "files",
    "cli",
    "skops",
    "dask",
    "gpu",
)  # extras; the others are for those who work on the package


def declared(*lists: list[str]) -> set[str]:
    """Names of packages, without versions and extras."""
    return {re.match(r"[\w-]+", need)[0] for needs in lists for need in needs} - {"slimsvm"}


def imports(path: Path) -> list[tuple[str, bool]]:
    """Third-party packages that a module imports, and whether it does so when it is imported itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = []
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module]
        tops = {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"slimsvm"}
        found += [(NAMES.get(top, top), node in tree.body) for top in tops]
    return found


def test_what_is_imported_is_declared():
    """In pyproject.toml: at once, in the dependencies; where it is used, there or in an extra for users."""
    project = tomllib.loads(source("pyproject.toml"))["project"]
    needed = declared(project["dependencies"])
    extras = project["optional-dependencies"]
    offered = needed | declared(*(extras[name] for name in USERS))
    modules = sorted(Path(slimsvm.__file__).parent.rglob("*.py"))
    assert modules
    for path in modules:
        command = path.parent.name == "cli"  # it needs the extra, and says so
        for package, at_once in imports(path):
            assert package in (needed if at_once and not command else offered), (path, package)
    assert {"joblib", "threadpoolctl"} <= needed
    assert set(slimsvm.utils.versions.REQUIRED) == needed
