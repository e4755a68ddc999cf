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
# From the ground up: each folder, and the folders whose headers its files may include beside its own.
ROOMS = {
    "cpu": "",
    "linalg": "cpu",
    "optimize": "linalg",
    "rows": "cpu",
    "kernels": "cpu rows",
    "matrix": "cpu linalg kernels",
    "model": "cpu linalg kernels",
    "learning": "cpu linalg kernels",
    "smo": "cpu linalg matrix",
    "bindings": "linalg optimize rows kernels matrix model learning smo",
}
FILES = sorted(path for path in CORE.rglob("*") if path.suffix in (".hpp", ".cpp"))
needs_sources = pytest.mark.skipif(not FILES, reason="the core's sources are not beside the tests")


def includes(path):
    return re.findall(r'^#include "([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE)


@needs_sources
def test_every_file_is_in_a_room():
    assert {path.parent.name for path in FILES} == ROOMS.keys()
    assert all(path.parent.parent == CORE for path in FILES)


def test_rooms_stand_on_rooms_below_them():
    rooms = list(ROOMS)
    assert all(rooms.index(other) < rooms.index(room) for room, others in ROOMS.items() for other in others.split())


@needs_sources
def test_no_file_includes_one_of_another_room_than_it_may():
    strays = [
        (str(path.relative_to(CORE)), included)
        for path in FILES
        for included in includes(path)
        if included.partition("/")[0] not in (path.parent.name, *ROOMS[path.parent.name].split())
    ]
    assert strays == []


@needs_sources
def test_every_arrow_between_rooms_is_used():
    used = {(path.parent.name, included.partition("/")[0]) for path in FILES for included in includes(path)}
    assert [
        (room, other) for room, others in ROOMS.items() for other in others.split() if (room, other) not in used
    ] == []


@needs_sources
def test_a_class_name_exists_once_in_the_core():
    names = [
        name
        for path in FILES
        for name in re.findall(
            r"^ *(?:struct|class|enum|enum class) (\w+)(?: final)?(?: :[^:].*)? \{",
            path.read_text(encoding="utf-8"),
            re.M,
        )
    ]
    assert len(names) > 100
    assert sorted({name for name in names if names.count(name) > 1}) == []


@needs_sources
def test_no_headers_include_each_other():
    arrows = {str(path.relative_to(CORE)): includes(path) for path in FILES}

    def reached(start):
        seen, ahead = set(), list(arrows[start])
        while ahead:
            if (name := ahead.pop()) not in seen:
                seen.add(name)
                ahead += arrows[name]
        return seen

    assert [name for name in arrows if name in reached(name)] == []
