"""Pages of the documentation as programs: blocks of Python, and what they show beneath them.

A block of text that follows a block of Python with nothing between is what that block prints. ``python tests/pages.py
docs/PAGE.md ...`` writes what the blocks print into the pages.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import types
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Block:
    """Code, what the page says that it prints (None: nothing is said), and what it printed."""

    code: str
    shown: str | None
    printed: str


def run(page: Path) -> list[Block]:
    """All blocks in order, sharing their names as a reader would type them."""
    return _run(page)[0]


def names(page: Path) -> types.ModuleType:
    """What the blocks of a page define."""
    return _run(page)[1]


def _run(page: Path) -> tuple[list[Block], types.ModuleType]:
    module = types.ModuleType(f"page_{page.stem}")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    found = []
    try:
        for number, match in enumerate(BLOCK.finditer(page.read_text()), 1):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(match["code"], f"{page.name}, block {number}", "exec"), vars(module))
            found.append(Block(match["code"], match["shown"], out.getvalue()))
    finally:
        del sys.modules[module.__name__]
    return found, module


def agrees(shown: str, printed: str) -> bool:
    """The same words, the same whole numbers, and others to two units of the last digit that is shown."""
    if NUMBER.sub("#", shown).split() != NUMBER.sub("#", printed).split():
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(_close(a.replace(",", ""), b.replace(",", "")) for a, b in pairs)


def _close(a: str, b: str) -> bool:
    if "e" in a or "e" in b:  # tiny: what counts is how tiny
        return abs(np.log10(abs(float(a)) or 1e-99) - np.log10(abs(float(b)) or 1e-99)) <= 2
    digits = len(a.partition(".")[2])
    return abs(float(a) - float(b)) <= (2.01 * 10.0**-digits if digits else 0)


def written(page: Path) -> str:
    """The page with what its blocks print now, where it shows something or where a block prints something."""
    blocks = iter(run(page))

    def filled(match: re.Match[str]) -> str:
        block = next(blocks)
        text = f"```python\n{block.code}```\n"
        return text + (f"\n```text\n{block.printed.rstrip()}\n```\n" if block.printed.strip() else "")

    return BLOCK.sub(filled, page.read_text())


if __name__ == "__main__":
    warnings.simplefilter("always")
    for name in sys.argv[1:]:
        Path(name).write_text(written(Path(name)))
