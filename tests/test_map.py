"""The map in CONTRIBUTING.md: every module is on it, nothing on it is gone, and it stays short."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOW = "`python tools/module_map.py` writes it anew"

if not (ROOT / "tools" / "module_map.py").exists() or not (ROOT / "core").exists():
    pytest.skip("the sources are not beside the tests", allow_module_level=True)
sys.path.insert(0, str(ROOT / "tools"))
import module_map  # noqa: E402

sys.path.pop(0)


def test_the_map_is_that_of_the_sources():
    shown = module_map.MARK.search(module_map.CONTRIBUTING.read_text(encoding="utf-8"))
    assert shown is not None
    assert shown.group() == module_map.short_map(), HOW
    assert module_map.PAGE.read_text(encoding="utf-8") == module_map.page(), HOW


def test_every_module_says_what_it_is_for():
    paths = [path for room in module_map.rooms() for path in module_map.modules(module_map.PACKAGE / room).values()]
    silent = [path.name for path in [*paths, *module_map.headers().values()] if not module_map.sentence(path)]
    assert len(paths) > 100
    assert silent == []


def test_the_front_page_for_contributors_is_short():
    assert len(module_map.CONTRIBUTING.read_bytes()) <= 8192
