"""Warnings that point at the user's line, and making untrusted text safe for a terminal."""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path

PACKAGES = ("slimsvm", "sklearn", "joblib")  # whose lines a warning does not point at
# Characters that steer a terminal (C0, C1), break lines, or reorder what is shown; halves of pairs cannot be printed.
CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def without_control_characters(text: str, keep: str = "") -> str:
    """The text with ? for each control character, but those in ``keep``."""
    return CONTROL_CHARACTERS.sub(lambda found: found[0] if found[0] in keep else "?", text)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the line outside this package (and scikit-learn, which may have called it) that led here."""
    # Of a package that is not loaded, no line is running: nothing is imported to know its folder.
    loaded = filter(None, map(sys.modules.get, PACKAGES))
    folders = tuple(f"{Path(str(package.__file__)).parent}{os.sep}" for package in loaded)
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(folders):
        level, frame = level + 1, frame.f_back
    warnings.warn(without_control_characters(message, keep="\n"), category, stacklevel=level)
