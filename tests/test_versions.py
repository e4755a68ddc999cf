"""One version, from one place; and what an import of the package costs in other packages."""

from __future__ import annotations

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
    monkeypatch.setattr("slimsvm.versions.OPTIONAL", ("no-such-package",))
    monkeypatch.setattr("slimsvm.versions.REQUIRED", ("numpy", "no-such-need"))
    slimsvm.show_versions()
    shown = capsys.readouterr().out
    assert "no-such-package" not in shown
    assert "no-such-need: missing" in shown


def test_import_leaves_heavy_packages_alone():
    """In a process of its own. What scikit-learn's SVMs import anyway costs nothing more."""
    code = "import sys, sklearn.svm; before = set(sys.modules); import slimsvm; print(*set(sys.modules) - before)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120)
    added = run.stdout.split()
    assert "slimsvm.frontier" in added
    heavy = [name for name in added for top in NOT_IMPORTED if name == top or name.startswith(f"{top}.")]
    assert heavy == []
