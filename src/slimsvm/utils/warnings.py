"""Warnings that point at the user's line, with control characters removed from the text."""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path

PACKAGES = ("slimsvm", "sklearn", "joblib")  # warnings do not point at lines of these
# Characters that control a terminal (C0, C1), break lines or reorder text, and lone surrogates.
CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def without_control_characters(text: str, keep: str = "") -> str:
    """The text with control characters replaced by ?, except those in ``keep``."""
    return CONTROL_CHARACTERS.sub(lambda found: found[0] if found[0] in keep else "?", text)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost caller's line that is outside `PACKAGES`."""
    # A package that is not loaded has no frame on the stack: it need not be imported.
    loaded = filter(None, map(sys.modules.get, PACKAGES))
    folders = tuple(f"{Path(str(package.__file__)).parent}{os.sep}" for package in loaded)
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(folders):
        level, frame = level + 1, frame.f_back
    warnings.warn(without_control_characters(message, keep="\n"), category, stacklevel=level)
