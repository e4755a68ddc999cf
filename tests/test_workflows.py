"""What runs by itself: each target of the Makefile is run on a schedule."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
pytestmark = pytest.mark.skipif(not WORKFLOWS, reason="workflows are not beside the tests")


def test_every_target_is_run_on_a_schedule():
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    scheduled = [text for text in (file.read_text() for file in WORKFLOWS) if "\n  schedule:\n" in text]
    run = {
        word
        for text in scheduled
        for line in re.findall(r"(?:run: make|- targets:) (.*)$", text, re.MULTILINE)
        for word in line.split()
    }
    assert set(targets) - {"clean"} <= run
