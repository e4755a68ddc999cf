"""Models in files, and what a file says of its inputs."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .console import Console, plain
from .errors import CommandError, WrongUse, listed
from .inputs import Column, ModelInputs
from .tables import Table

SUFFIX = ".slim"


def versions() -> dict[str, str]:
    """Of all that has a part in a model."""
    import scipy
    import sklearn

    from .. import __version__

    return {
        "slimsvm": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def check_new(path: Path, suffix: str | None = SUFFIX) -> None:
    """Raise before any work is done if a file cannot be written there."""
    if suffix is not None and path.suffix.lower() != suffix:
        raise WrongUse(f"--output {path}: must end in {suffix}")
    if path.is_dir():
        raise WrongUse(f"{path} is a directory; give a file")
    folder = path.parent
    if not folder.is_dir():
        raise CommandError(f"{folder}: no such directory")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise CommandError(f"{path} cannot be written: no permission")


def save(model: Any, path: Path, metadata: dict[str, Any]) -> None:
    """Keep a model and how it was made."""
    from .. import save as save_model

    save_model(model, path, metadata=plain(metadata))


def open_model(path: Path) -> Saved:
    """The model in a .slim file."""
    from .. import load
    from ..persistence import FileError, describe

    if path.is_dir():
        raise CommandError(f"{path} is a directory; give a {SUFFIX} file")
    try:
        facts = describe(path)
        return Saved(load(path), _of_this_command(facts["metadata"]), str(path), facts)
    except FileError as error:
        raise CommandError(str(error)) from None


def _of_this_command(metadata: dict[str, Any]) -> dict[str, Any]:
    """Drop metadata entries that are not as this command writes them."""
    return {name: value for name, value in metadata.items() if name in NOTES and NOTES[name](value)}


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _are_inputs(value: Any) -> bool:
    fields = {"name": str, "kind": str, "missing": bool}
    return isinstance(value, list) and all(
        isinstance(one, dict) and {name: type(part) for name, part in one.items()} == fields for one in value
    )


NOTES: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("command", "data", "target", "original"), lambda value: value is None or _is_text(value)),
    **dict.fromkeys(("rows", "learned_from", "seed"), _is_count),
    **dict.fromkeys(("settings", "versions", "held_out"), _is_dict),
    **dict.fromkeys(("missing", "preprocessing"), _are_texts),
    "inputs": _are_inputs,
    "task": _is_text,
    "classes": lambda value: isinstance(value, list),
}


def device_bytes(model: Any) -> int:
    """Of scaler and classifier in integers; of float32 numbers where the model has no such form."""
    from ..frontiers.result import bytes_of
    from ..quantization.quantize import to_integers

    last = model.steps[-1][1] if hasattr(model, "steps") else model
    try:
        return int(to_integers(without_encoding(model)).n_bytes)
    except (TypeError, ValueError):
        return int(bytes_of(last))


def without_encoding(model: Any) -> Any:
    """A pipeline that was made here, from the scaler on."""
    return model[1:] if "encode" in getattr(model, "named_steps", {}) else model


@dataclass(frozen=True)
class Saved:
    """A model from a file, with the notes that were saved beside it."""

    model: Any
    metadata: dict[str, Any]
    path: str
    facts: dict[str, Any]

    @property
    def last(self) -> Any:
        """The estimator itself."""
        return self.model.steps[-1][1] if hasattr(self.model, "steps") else self.model

    @property
    def target(self) -> str | None:
        return self.metadata.get("target")

    def reading(self, how: Any) -> Any:
        """How a table is read: the texts for missing values are those of training unless others are given."""
        return how if how.missing else replace(how, missing=list(self.metadata.get("missing") or ()))

    @cached_property
    def inputs(self) -> ModelInputs | None:
        """Columns by name; None where the model only knows how many they are."""
        if "inputs" in self.metadata:
            return ModelInputs.from_json(self.metadata["inputs"])
        names = getattr(self._first, "feature_names_in_", None)
        return None if names is None else ModelInputs(tuple(Column(str(name), "any") for name in names))

    @property
    def _first(self) -> Any:
        return self.model.steps[0][1] if hasattr(self.model, "steps") else self.model

    def rows(self, table: Table, besides: set[str], out: Console) -> Any:
        """Inputs from a table, by name where the model has names; ``besides`` are columns that are no inputs."""
        if self.inputs is None:
            return self._by_position(table, besides, out)
        known = {*self.inputs.names, *besides}
        extra = [name for name in table.names if name not in known]
        if extra and not table.sparse:
            out.note(f"columns that the model does not use: {listed(extra)}")
        return self.inputs.rows(table)

    def _by_position(self, table: Table, besides: set[str], out: Console) -> Any:
        needed = int(self._first.n_features_in_)
        names = [name for name in table.names if name not in besides]
        if len(names) != needed:
            raise CommandError(
                f"the model takes {needed} inputs and does not know their names; {table.path} has {len(names)} columns"
                f"{' beside ' + listed(sorted(besides & set(table.names))) if besides & set(table.names) else ''}: "
                f"{listed(names)}"
            )
        if not table.sparse:
            out.note(f"the model does not know the names of its inputs; columns are taken in order: {listed(names)}")
        return ModelInputs(tuple(Column(name) for name in names)).rows(table).to_numpy()
