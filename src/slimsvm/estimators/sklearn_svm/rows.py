"""Checked data of a fit: rows with positive weight, each once, and the user's rows that they stand for.

Equal rows are one row of their summed weights while the problem is solved: weight k then is k copies to the last bit.
Afterwards each copy has its share of the dual variable, as in scikit-learn, where every row has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_consistent_length, column_or_1d

from ...data.classes import class_numbers
from ...data.dataset import Dataset
from ...data.duplicates import find_duplicates, mark_duplicates
from ...linalg.array_api import is_array_api
from ...linalg.arrays import Array
from ...model.expansion import Model
from ...problem import kernels
from ...rows.target_kinds import CLASSES
from ...utils.sklearn_private import check_sample_weight, count_rows
from ...utils.threads import thread_count
from .. import checked_data, validation
from ..targets import ClassTargets, NoTargets, RegressionTargets, Targets

MAX_DENSE_ENTRIES = 1 << 20  # up to which sparse rows are solved as an array: faster, and the same to the last bit
NO_WEIGHT = "Invalid input - all samples have zero or negative weights."
ONE_CLASS_LEFT = "Invalid input - all samples with positive weights belong to the same class."
NOT_FINITE = (
    "The dual coefficients or intercepts are not finite. The input data may contain large values and need to be "
    "preprocessed: StandardScaler brings them near 1"
)
MAX_INPUT = 1e150  # squares of inputs stay finite


# --- labels, as sklearn.svm checks them -------------------------------------------------------------------------


@dataclass(frozen=True)
class SvmClasses(ClassTargets):
    """Class labels; ``one_class_left`` is said where the weights leave one class."""

    one_class_left: str = ONE_CLASS_LEFT

    def fields(self, y: Any, counts: Any, weight: Any) -> dict[str, Any]:
        classes, codes = class_numbers(y)
        _check_two_classes(classes, self.one_class_left)
        factors = validation.class_weights(self.class_weight, classes, codes, counts)
        return {"codes": codes, "classes": classes, "class_weights": factors}


@dataclass(frozen=True)
class SvmRegression(RegressionTargets):
    """One target, in the user's unit."""

    alike: bool = False
    checks: ClassVar[Mapping[str, bool]] = MappingProxyType({"y_numeric": True})


def _check_labels(y: Any, targets: Targets) -> Any:
    """Labels of all rows, whatever their weights."""
    if targets.kind is CLASSES:
        validation.check_targets(y)
        _check_two_classes(np.unique(y), "The number of classes has to be greater than one; got {} class")
        return y
    return y if y is None else np.asarray(y, dtype=np.float64)


def _check_two_classes(classes: Array, complaint: str) -> None:
    if len(classes) < 2:
        raise ValueError(complaint.format(len(classes)) + f" ({classes.tolist()[0]!r})")


# --- rows -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ObjectRows:
    """Rows that are no arrays of finite numbers, such as texts: a function compares them, all training rows at once."""

    function: Callable[[Any, Any], Any]
    rows: Any

    def values(self, X: Any) -> Array:
        """Kernel values between objects and the training rows."""
        shape = (count_rows(X), count_rows(self.rows))
        K = self.function(X, self.rows)
        K = np.ascontiguousarray(K.toarray() if sp.issparse(K) else K, dtype=np.float64)
        if K.shape != shape:
            raise ValueError(
                f"the kernel function returned shape {K.shape} where {shape} was expected: X.shape[0] should be equal "
                "to the number of samples, X.shape[1] to that at training time"
            )
        if not np.isfinite(K).all():
            raise ValueError("the kernel function returned NaN or infinite values")
        return K


def _are_objects(kernel: Any, X: Any) -> bool:
    """Whether the kernel is a callable and X is not an array of finite numbers."""
    if not callable(kernel) or isinstance(kernel, (kernels.Base, type)) or sp.issparse(X) or is_array_api(X):
        return False
    try:
        array = np.asarray(X)
    except ValueError:  # lists of different lengths
        return True
    return not (array.ndim == 2 and array.dtype.kind in "biuf" and bool(np.isfinite(array).all()))


@dataclass(frozen=True)
class SvmRows:
    """Rows of a fit. ``dataset`` has each row of positive weight once; where some were equal, ``unmerged`` has all of
    them, and ``representatives`` says which row of it stands for each."""

    dataset: Dataset
    given: Any  # all rows of the user
    unmerged: Dataset | None = None
    representatives: Array | None = None
    objects: ObjectRows | None = None

    def spread(self, model: Model) -> tuple[Array, Array]:
        """The user's rows that are vectors, class by class, and their coefficients: those of a merged row are shared by
        its copies, by weight."""
        assert model.rows is not None
        coef, n = model.expansion.coef, self.dataset.n_samples
        if self.unmerged is None or self.representatives is None:
            return model.rows, coef
        numbers = np.asarray(self.unmerged.indices)
        stands_for = numbers[self.representatives]
        column, merged_counts = np.full(n, -1), np.zeros(n)
        column[model.rows] = np.arange(len(model.rows))
        merged_counts[np.asarray(self.dataset.indices)] = self.dataset.counts
        used = np.flatnonzero(column[stands_for] >= 0)
        share = self.unmerged.counts[used] / merged_counts[stands_for[used]]
        order = np.lexsort((numbers[used], self.unmerged.codes[used]))
        return numbers[used][order], coef[:, column[stands_for[used]][order]] * share[order]

    def class_sizes(self, support: Array) -> Array:
        """How many of the user's rows with these numbers each class has."""
        every = self.dataset if self.unmerged is None else self.unmerged
        codes = np.empty(every.n_samples, dtype=np.intp)
        codes[np.asarray(every.indices)] = every.codes
        return np.bincount(codes[support], minlength=every.n_classes).astype(np.int32)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the user's X; objects have no columns."""
        n = self.dataset.n_samples
        if self.objects is not None:
            return (n,)
        return n, n if isinstance(self.dataset.kernel, kernels.Precomputed) else self.given.shape[1]


def checked_rows(estimator: Any, X: Any, y: Any, sample_weight: Any, targets: Targets) -> SvmRows:
    """Check the data of a fit and set the estimator's feature names."""
    # Rows that are not in memory: an error that says what to do.
    checked_data.remote_dataset(estimator, X, y, sample_weight, NoTargets())
    objects = ObjectRows(estimator.kernel, X) if _are_objects(estimator.kernel, X) else None
    X, y, matrix = _checked_arrays(estimator, X, y, targets) if objects is None else _numbered(objects, y, targets)
    y, weight = _check_labels(y, targets), _checked_weights(estimator, sample_weight, X)
    kernel, contents = (estimator.kernel, X) if matrix is None else (kernels.Precomputed(matrix), matrix)
    threads, fields = thread_count(estimator.n_jobs), partial(targets.fields, weight=weight)
    dataset, contents = checked_data.dataset_in_memory(X, contents, kernel, y, weight, fields, threads)
    if sp.issparse(dataset.X) and dataset.X.shape[0] * dataset.X.shape[1] <= MAX_DENSE_ENTRIES:
        contents = dataset.X.toarray()
        dataset = replace(dataset, X=contents)
    _check_range(dataset.X)
    rows = SvmRows(dataset, X, objects=objects)
    return rows if matrix is not None and not np.array_equal(matrix, matrix.T) else _merged(rows, contents)


def _checked_arrays(estimator: Any, X: Any, y: Any, targets: Targets) -> tuple[Any, Any, Any]:
    """Rows, labels and the kernel matrix; that is None unless the kernel is precomputed."""
    precomputed = validation.is_precomputed(estimator.kernel)
    if precomputed and sp.issparse(X):
        raise TypeError("Sparse precomputed kernels are not supported: pass X.toarray()")
    if targets.kind.needed:
        X, y = validation.check_data(estimator, X, y=y, **targets.checks)
    else:
        X, y = validation.check_data(estimator, X, y="no_validation"), None
    if not precomputed:
        return (validation.canonical(X) if sp.issparse(X) else X), y, None
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix: pass "
            "k(X, X) to fit, and k(X_new, X) to predict"
        )
    return np.arange(X.shape[0])[:, None], y, X


def _numbered(objects: ObjectRows, y: Any, targets: Targets) -> tuple[Array, Any, Array]:
    """Row numbers, labels and the kernel matrix of rows that are objects."""
    if targets.kind.needed:
        check_consistent_length(objects.rows, y)
        y = column_or_1d(y, warn=True)
    return np.arange(count_rows(objects.rows))[:, None], y, objects.values(objects.rows)


def _checked_weights(estimator: Any, sample_weight: Any, X: Any) -> Array | None:
    """Sample weights, of which one at least is positive."""
    if sample_weight is None:
        return None
    validation.here(estimator, sample_weight)
    if not (np.asarray(sample_weight) > 0).any():
        raise ValueError(NO_WEIGHT)
    return check_sample_weight(sample_weight, X, dtype=np.float64)


def _check_range(X: Any) -> None:
    data = X.data if sp.issparse(X) else X
    largest = max(float(data.max(initial=0)), -float(data.min(initial=0)))
    if largest > MAX_INPUT:
        raise ValueError(f"{NOT_FINITE}; the largest is {largest:.1e}")


def _merged(rows: SvmRows, contents: Any) -> SvmRows:
    """Merge equal rows of the same class or target into the first of them."""
    dataset = rows.dataset
    copies, repeated = find_duplicates(contents, dataset.keys, dataset.merge_keys, dataset.threads)
    if not len(copies):
        return rows
    representatives = np.arange(dataset.size)
    representatives[copies] = repeated
    merged = mark_duplicates(dataset, copies, repeated).take(np.arange(dataset.size))
    return replace(rows, dataset=merged, unmerged=dataset, representatives=representatives)
