"""Arrows point one way: which rooms of the package may import which, and what a part of the core may include."""

from __future__ import annotations

import re
from pathlib import Path

import grimp
import pytest

# Rooms of the package from the ground up: a module imports from its own room and from rooms before it in this list.
PACKAGES = [
    "utils",
    "linalg",
    "data",
    "problem",
    "rows",
    "model",
    "solvers",
    "basis",
    "quantization",
    "training",
    "compression",
    "estimators",
    "frontiers",
    "export",
    "plotting",
    "persistence",
    "report",
    "cli",
]
PUBLIC_NAMES = {"bases", "formulation", "kernels", "losses", "regularizers", "slacks"}  # modules that stand for others


def test_no_module_imports_from_a_later_room():
    """Imports within functions count, too."""
    graph = grimp.build_graph("slimsvm", cache_dir=None)
    rooms = {module: module.split(".")[1] for module in graph.modules if "." in module}
    assert set(rooms.values()) - {"_build"} == {*PACKAGES, *PUBLIC_NAMES, "__main__"}
    imports = [
        (module, imported)
        for module in rooms
        for imported in graph.find_modules_directly_imported_by(module)
        if rooms[module] in PACKAGES and imported in rooms
    ]
    assert len(imports) > 500
    upward = [
        (module, imported)
        for module, imported in imports
        if rooms[imported] not in PACKAGES or PACKAGES.index(rooms[imported]) > PACKAGES.index(rooms[module])
    ]
    assert upward == []


CORE = Path(__file__).parents[1] / "core"
# From the ground up: a header includes headers of its own room and of rooms above it in this list.
ROOMS = {
    "the processor": "simd parallel",
    "rows": "transpose rows keys row_cache",
    "kernel values": "kernels blocks one_row row_model panels gram expansion",
    "arithmetic": "cholesky linear factors orthogonal whitening line_search bounded_model lbfgs",
    "few vectors": "loss passes descent smooth",
    "all rows": "feasible pairs newton block_smo coarse certify solver",
    "Python": "bindings",
}
PLACE = {header: k for k, headers in enumerate(ROOMS.values()) for header in headers.split()}


@pytest.mark.skipif(not CORE.exists(), reason="the core's sources are not beside the tests")
def test_no_header_includes_one_of_a_later_room():
    headers = sorted(CORE.glob("*.hpp"))
    assert {path.stem for path in headers} == PLACE.keys()
    upward = [
        (path.name, included)
        for path in headers
        for included in re.findall(r'^#include "(\w+)\.hpp"', path.read_text(), re.MULTILINE)
        if PLACE[included] > PLACE[path.stem]
    ]
    assert upward == []
