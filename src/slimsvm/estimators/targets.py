"""Kinds of labels (classes, regression targets, none): reading and checking, for rows in memory or remote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np

from ..data.classes import class_numbers
from ..linalg.arrays import Array
from ..rows.target_kinds import CLASSES, NoTargetKind, RegressionTargetKind, TargetKind
from . import validation

NO_CHECKS: Mapping[str, bool] = MappingProxyType({})


class Targets(Protocol):
    """The kind of labels of training rows."""

    checks: ClassVar[Mapping[str, bool]]  # of scikit-learn, beyond the usual ones

    @property
    def kind(self) -> TargetKind:
        """How y is read, a block at a time."""

    def fields(self, y: Array, counts: Any, weight: Any) -> dict[str, Any]:
        """What labels in memory are to a `Dataset`, by its fields; ValueError where they make no sense. ``counts`` say
        how often rows count, ``weight`` what the user gave for it."""

    def class_factors(self, X: Any, weight: Any) -> Array:
        """Weights of the classes of rows that are not in memory."""


@dataclass(frozen=True)
class ClassTargets:
    """A class label for each row; classes have weights."""

    class_weight: Any = None
    kind: ClassVar[TargetKind] = CLASSES
    checks: ClassVar[Mapping[str, bool]] = NO_CHECKS

    def fields(self, y: Array, counts: Any, weight: Any) -> dict[str, Any]:
        validation.check_targets(y)
        classes, codes = class_numbers(y)
        validation.check_classes(classes, weight)
        factors = validation.class_weights(self.class_weight, classes, codes, counts)
        return {"codes": codes, "classes": classes, "class_weights": factors}

    def class_factors(self, X: Any, weight: Any) -> Array:
        validation.check_targets(X.classes)
        validation.check_classes(X.classes, weight)
        return validation.class_factors(self.class_weight, X.classes, lambda: X.class_totals)


@dataclass(frozen=True)
class RegressionTargets:
    """Regression on one or more targets; ``alike``: all targets have the same unit."""

    alike: bool
    checks: ClassVar[Mapping[str, bool]] = MappingProxyType({"multi_output": True, "y_numeric": True})

    @property
    def kind(self) -> TargetKind:
        return RegressionTargetKind(self.alike)

    def fields(self, y: Array, counts: Any = None, weight: Any = None) -> dict[str, Any]:
        if y.dtype.kind not in "fiub":
            raise ValueError(f"y has values of type {y.dtype}; a regression needs numbers")
        targets = np.ascontiguousarray(y[:, None] if y.ndim == 1 else y, dtype=np.float64)
        return _one_class(len(y)) | {"targets": targets, "single_target": y.ndim == 1}

    def class_factors(self, X: Any, weight: Any) -> Array:
        return np.ones(1)


@dataclass(frozen=True)
class NoTargets:
    """Rows without labels."""

    kind: ClassVar[TargetKind] = NoTargetKind()
    checks: ClassVar[Mapping[str, bool]] = NO_CHECKS

    def fields(self, y: Any, counts: Any, weight: Any) -> dict[str, Any]:
        return _one_class(len(counts))

    def class_factors(self, X: Any, weight: Any) -> Array:
        return np.ones(1)


def _one_class(size: int) -> dict[str, Any]:
    return {"codes": np.zeros(size, dtype=np.int8), "classes": np.zeros(1), "class_weights": np.ones(1)}
