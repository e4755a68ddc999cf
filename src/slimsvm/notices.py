"""Warnings that point at the user's line."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import joblib
import sklearn

_OURS = tuple(str(Path(str(module)).parent) + os.sep for module in (__file__, sklearn.__file__, joblib.__file__))


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the line outside this package (and scikit-learn, which may have called it) that led here."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
