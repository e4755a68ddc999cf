"""Files NAME.npz in a data folder: ``X``, ``y`` and, where splits were published, ``train_idx`` and ``test_idx``."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np

from .splits import Dataset
from .table import Facts

VARIABLE = "SLIMSVM_DATA"


class MissingData(FileNotFoundError):
    """A set is not here and cannot be had: the message says where to get it and how to put it in place."""

    def __str__(self) -> str:  # the text alone, also where FileNotFoundError would add an error number
        return str(self.args[0]) if self.args else ""


def folders(folder: str | os.PathLike[str] | None = None) -> list[Path]:
    """Where files are looked for: the folder that is named, otherwise ``../shared/data`` where that exists."""
    named = folder if folder is not None else os.environ.get(VARIABLE) or None
    if named is not None:
        path = Path(named).expanduser()
        if not path.is_dir():
            how = f"folder={str(folder)!r}" if folder is not None else f"{VARIABLE}={named}"
            raise MissingData(f"{how} is not a folder. Name the folder that holds NAME.npz for each set.")
        return [path]
    checkout = Path(__file__).resolve().parents[2]
    beside = [Path.cwd(), *([checkout] if (checkout / "pyproject.toml").is_file() else [])]
    found = [place.parent / "shared" / "data" for place in beside]
    return [path for path in dict.fromkeys(found) if path.is_dir()]


def find(facts: Facts, folder: str | os.PathLike[str] | None = None) -> Path | None:
    """The file of a set in a data folder, if there is one."""
    candidates = (place / file for place in folders(folder) for file in facts.file_names)
    return next((path for path in candidates if path.is_file()), None)


def read(path: Path, facts: Facts, source: str) -> Dataset:
    """A set from its file, checked."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in ("X", "y", "train_idx", "test_idx") if key in file.files}
    except (ValueError, OSError, zipfile.BadZipFile, EOFError) as error:
        raise ValueError(f"{path} cannot be read as .npz ({error}). Put a good file in its place.") from error
    if not {"X", "y"} <= arrays.keys():
        raise ValueError(f"{path} has {sorted(arrays) or 'no known arrays'}; it needs X and y. {shape_of(facts)}")
    return checked(facts, arrays, source, str(path))


def checked(facts: Facts, arrays: dict[str, np.ndarray], source: str, where: str) -> Dataset:
    """A set of these arrays, if they are what the set must be."""
    X, y = arrays["X"], arrays["y"]
    counts = dict(zip(*(part.tolist() for part in np.unique(y, return_counts=True)), strict=True))
    if X.shape != (facts.rows, facts.inputs) or counts != facts.classes:
        raise ValueError(f"{where} holds X of shape {X.shape} and rows of the classes {counts}. {shape_of(facts)}")
    none = np.empty((0, 0), dtype=int)
    train, test = (np.asarray(arrays.get(part, none), dtype=int) for part in ("train_idx", "test_idx"))
    if len(train) != len(test) or any(
        part.size and not 0 <= part.min() <= part.max() < len(X) for part in (train, test)
    ):
        raise ValueError(
            f"{where}: train_idx and test_idx must have a line for each split, with row numbers below {len(X)}"
        )
    return Dataset(facts.name, X.astype(facts.dtype, copy=False), y.astype(int), source, facts.protocol, train, test)


def shape_of(facts: Facts) -> str:
    """What the arrays of a set must be, as a sentence."""
    labels = ", ".join(f"{label}: {count}" for label, count in facts.classes.items())
    return f"The set {facts.name} has {facts.rows} rows of {facts.inputs} inputs and the classes {{{labels}}}."
