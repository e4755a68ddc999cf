"""Opens and saves .slim files; their metadata describe the inputs of the model."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
import sklearn

from .. import __version__, persistence
from ..frontiers.result import bytes_of, classifier_of
from ..quantization.quantize import to_integers
from .console import Console, as_json
from .errors import CommandError, WrongUse, listed
from .inputs import Column, ModelInputs
from .preprocessing import encoder_of, steps_of
from .tables import Table
from .tasks import LearningTask, task_of_model

if TYPE_CHECKING:
    from .options import ReadingOptions

SUFFIX = ".slim"


def versions() -> dict[str, str]:
    """Versions of Python, slimsvm and its dependencies."""
    return {
        "slimsvm": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def check_new(path: Path, suffix: str | None = SUFFIX) -> None:
    """Raise if no file can be written at this path; called before any work is done."""
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
    """Save a model with metadata on how it was made."""
    persistence.save(model, path, metadata=as_json(metadata))


def open_model(path: Path) -> SavedModel:
    """Open the model in a .slim file."""
    if path.is_dir():
        raise CommandError(f"{path} is a directory; give a {SUFFIX} file")
    try:
        facts = persistence.describe(path)
        return SavedModel(persistence.load(path), _of_this_command(facts["metadata"]), str(path), facts)
    except persistence.FileError as error:
        raise CommandError(str(error)) from None


def _of_this_command(metadata: dict[str, Any]) -> dict[str, Any]:
    """Drop metadata entries that this command would not write."""
    return {name: value for name, value in metadata.items() if name in ENTRIES and ENTRIES[name](value)}


def _are_texts(value: Any) -> bool:
    return type(value) is list and all(type(one) is str for one in value)


def _are_inputs(value: Any) -> bool:
    fields = {"name": str, "kind": str, "missing": bool}
    return type(value) is list and all(
        type(one) is dict and {name: type(part) for name, part in one.items()} == fields for one in value
    )


# The metadata entries that this command writes, with tests of their JSON values.
ENTRIES: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("command", "data", "target", "original"), lambda value: value is None or type(value) is str),
    **dict.fromkeys(("rows", "learned_from", "seed"), lambda value: type(value) is int and value >= 0),
    **dict.fromkeys(("settings", "versions", "held_out"), lambda value: type(value) is dict),
    **dict.fromkeys(("missing", "preprocessing"), _are_texts),
    "inputs": _are_inputs,
    "task": lambda value: type(value) is str,
    "classes": lambda value: type(value) is list,
}


def device_bytes(model: Any) -> int:
    """Bytes of scaler and estimator quantised to integers, or as float32 if the model cannot be quantised."""
    try:
        return int(to_integers(without_encoding(model)).n_bytes)
    except (TypeError, ValueError):
        return int(bytes_of(classifier_of(model)))


def without_encoding(model: Any) -> Any:
    """The pipeline without its encoder: scaler and estimator."""
    return model if encoder_of(model) is None else model[1:]


@dataclass(frozen=True)
class SavedModel:
    """A model from a file, with the file's metadata."""

    model: Any
    metadata: dict[str, Any]
    path: str
    facts: dict[str, Any]  # from `persistence.describe`

    @property
    def estimator(self) -> Any:
        """The last step of a pipeline, or the model itself."""
        return classifier_of(self.model)

    @cached_property
    def task(self) -> LearningTask:
        return task_of_model(self.model)

    @property
    def has_probabilities(self) -> bool:
        return hasattr(self.model, "predict_proba")

    @property
    def has_intervals(self) -> bool:
        return hasattr(self.estimator, "predict_interval")

    @property
    def classes(self) -> Any:
        """None where the model is no classifier."""
        return getattr(self.model, "classes_", None)

    @property
    def n_targets(self) -> int:
        return 1 if self.classes is not None else len(self.estimator.intercept_)

    @property
    def target(self) -> str | None:
        return self.metadata.get("target")

    def reading(self, options: ReadingOptions) -> Any:
        """Options for reading a table, with the missing-value texts of training unless others are given."""
        if options.missing:
            return options
        return replace(options, missing=list(self.metadata.get("missing") or ()))

    @cached_property
    def inputs(self) -> ModelInputs | None:
        """The inputs by column name; None if the model only knows their number."""
        if "inputs" in self.metadata:
            return ModelInputs.from_json(self.metadata["inputs"])
        names = getattr(self._first, "feature_names_in_", None)
        return None if names is None else ModelInputs(tuple(Column(str(name), "any") for name in names))

    @property
    def _first(self) -> Any:
        return steps_of(self.model)[0][1]

    def rows(self, table: Table, others: set[str], console: Console) -> Any:
        """The model's inputs from a table, by name if it has names; ``others`` are columns that are not inputs."""
        if self.inputs is None:
            return self._by_position(table, others, console)
        known = {*self.inputs.names, *others}
        extra = [name for name in table.names if name not in known]
        if extra and not table.sparse:
            console.note(f"columns that the model does not use: {listed(extra)}")
        return self.inputs.rows(table)

    def _by_position(self, table: Table, others: set[str], console: Console) -> Any:
        n_inputs = int(self._first.n_features_in_)
        names = [name for name in table.names if name not in others]
        left_out = sorted(others & set(table.names))
        if len(names) != n_inputs:
            raise CommandError(
                f"the model takes {n_inputs} inputs and does not know their names; {table.path} has {len(names)} "
                f"columns{' beside ' + listed(left_out) if left_out else ''}: {listed(names)}"
            )
        if not table.sparse:
            console.note(
                f"the model does not know the names of its inputs; columns are taken in order: {listed(names)}"
            )
        return ModelInputs(tuple(Column(name) for name in names)).rows(table).to_numpy()
