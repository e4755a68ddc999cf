"""Arrows point one way: what a part of the core may include."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
