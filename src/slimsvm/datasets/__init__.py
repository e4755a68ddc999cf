"""The data sets of the papers: from a folder, from OpenML, or made."""

from __future__ import annotations

import difflib
import os
from typing import Any, Literal, overload

import numpy as np

from . import made
from .folder import MissingData, find, read, shape_of
from .splits import Dataset, Split
from .table import ALL, RAETSCH, Facts

__all__ = ["RAETSCH", "Dataset", "MissingData", "Split", "available", "load", "names"]

Folder = str | os.PathLike[str] | None


def names() -> list[str]:
    """The names that :func:`load` takes."""
    return list(ALL)


def available(name: str, *, folder: Folder = None) -> bool:
    """Can the set be loaded without the network?"""
    facts = _facts(name)
    return find(facts, folder) is not None or name in made.MAKERS


@overload
def load(name: str, split: None = None, *, folder: Folder = None, download: bool = True) -> Dataset: ...
@overload
def load(name: str, split: int, *, folder: Folder = None, download: bool = True) -> Split: ...
def load(name: str, split: int | None = None, *, folder: Folder = None, download: bool = True) -> Dataset | Split:
    """Load a set, or one of its splits."""
    found = _whole(_facts(name), folder, download)
    return found if split is None else found.split(split)


def _whole(facts: Facts, folder: Folder, download: bool) -> Dataset:
    path = find(facts, folder)
    if path is not None:
        return read(path, facts, f"the file {path}")
    if facts.name in made.MAKERS:
        X, y = made.MAKERS[facts.name]()
        none = np.empty((0, 0), dtype=int)
        return Dataset(facts.name, X, y, "made by its definition", facts.protocol, none, none)
    raise MissingData(f"The set {facts.name} is not here. {shape_of(facts)}")


def _facts(name: str) -> Facts:
    if name not in ALL:
        near = difflib.get_close_matches(str(name), ALL, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"There is no set {name!r}.{hint} The sets are {', '.join(ALL)}.")
    return ALL[name]
