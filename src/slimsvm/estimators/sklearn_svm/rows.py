"""Checked data of the drop-in machines: the rows that count, each once, and the user's rows that they stand for.

Equal rows are one row of their summed weights while the problem is solved: weight k then is k copies to the last bit.
Afterwards each copy has its part of the dual variable, as in scikit-learn, where every row has its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_consistent_length, column_or_1d

from ...data.classes import class_numbers
from ...data.dataset import Dataset, RowRange
from ...data.duplicates import find_duplicates, row_keys
from ...linalg.array_api import is_array_api
from ...linalg.arrays import Array
from ...model.expansion import Model
from ...problem import kernels
from ...utils.sklearn_private import check_sample_weight, count_rows
from ...utils.threads import thread_count
from .. import checked_data, validation
from ..targets import NoTargets

FEW = 1 << 20  # numbers up to which sparse rows are solved as a full table: it is faster, and the same to the last bit
UNLABELLED = "no_validation"  # scikit-learn's word for rows without targets
NO_WEIGHT = "Invalid input - all samples have zero or negative weights."
ONE_CLASS_LEFT = "Invalid input - all samples with positive weights belong to the same class."


@dataclass(frozen=True)
class Objects:
    """Rows that are no tables of finite numbers, such as texts: a function compares them, all training rows at once."""

    function: Callable[[Any, Any], Any]
    rows: Any

    @classmethod
    def of(cls, kernel: Any, X: Any) -> Objects | None:
        """None where the rows are such a table, or the kernel is none of the user's functions."""
        own = callable(kernel) and not isinstance(kernel, (kernels.Base, type))
        return cls(kernel, X) if own and not _is_table(X) else None

    def values(self, X: Any) -> Array:
        """Kernel values between objects and the training rows."""
        wanted = (count_rows(X), count_rows(self.rows))
        K = self.function(X, self.rows)
        K = np.ascontiguousarray(K.toarray() if sp.issparse(K) else K, dtype=np.float64)
        if K.shape != wanted:
            raise ValueError(
                f"the kernel function returned shape {K.shape} where {wanted} was expected: X.shape[0] should be equal "
                "to the number of samples, X.shape[1] to that at training time"
            )
        if not np.isfinite(K).all():
            raise ValueError("the kernel function returned NaN or infinite values")
        return K


def _is_table(X: Any) -> bool:
    if sp.issparse(X) or is_array_api(X):
        return True
    try:
        found = np.asarray(X)
    except ValueError:  # lists of different lengths
        return False
    return found.ndim == 2 and found.dtype.kind in "biuf" and bool(np.isfinite(found).all())


@dataclass(frozen=True)
class CheckedRows:
    """The rows of a problem, and where they come from."""

    dataset: Dataset
    targets: Array  # of the task's rows; class numbers of classifiers
    given: Any  # all rows of the user
    firsts: Array | None  # of each row that counts the row that stands for it; None: itself
    numbers: Any  # of the rows that count
    weights: Array

    def spread(self, model: Model) -> tuple[Array, Array]:
        """Numbers of the user's rows that are vectors, class by class, and the coefficients of each."""
        assert model.rows is not None
        coef = model.expansion.coef
        if self.firsts is None:
            return model.rows, coef
        column = np.full(self.dataset.n_samples, -1)
        column[model.rows] = np.arange(len(model.rows))
        mine = np.flatnonzero(column[self.firsts] >= 0)
        support, which = np.asarray(self.numbers)[mine], column[self.firsts[mine]]
        total = np.zeros(self.dataset.n_samples)
        total[np.asarray(self.dataset.indices)] = self.dataset.counts
        share = self.weights[mine] / total[self.firsts[mine]]
        order = np.lexsort((support, self.codes(support)))
        return support[order], coef[:, which[order]] * share[order]

    def codes(self, support: Array) -> Array:
        """Class numbers of the user's rows, of those that count."""
        codes = np.empty(self.dataset.n_samples, dtype=np.intp)
        codes[np.asarray(self.dataset.indices)] = self.dataset.codes
        return codes[support if self.firsts is None else self._first_of(support)]

    def _first_of(self, support: Array) -> Array:
        assert self.firsts is not None
        first = np.empty(self.dataset.n_samples, dtype=np.intp)
        first[np.asarray(self.numbers)] = self.firsts
        return first[support]


def checked(estimator: Any, X: Any, target: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Rows, targets, and what makes rows equal; sets what the estimator knows of its inputs."""
    objects = Objects.of(estimator.kernel, X)
    if objects is not None:
        y = None
        if target["y"] is not UNLABELLED:
            check_consistent_length(X, target["y"])
            y = column_or_1d(target["y"], warn=True)
        estimator.objects_ = objects
        return np.arange(count_rows(X))[:, None], y, objects.values(X)
    if validation.is_precomputed(estimator.kernel) and sp.issparse(X):
        raise TypeError("Sparse precomputed kernels are not supported: pass X.toarray()")
    found = validation.check_data(estimator, X, **target)
    X, y = found if isinstance(found, tuple) else (found, None)
    if validation.is_precomputed(estimator.kernel):
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix: pass "
                "k(X, X) to fit, and k(X_new, X) to predict"
            )
        return np.arange(X.shape[0])[:, None], y, X
    return (validation.canonical(X) if sp.issparse(X) else X), y, None


def prepared(estimator: Any, X: Any, y: Any, sample_weight: Any, labelled: bool, target: dict[str, Any]) -> CheckedRows:
    """The data of a fit. ``labelled``: targets are class labels; else numbers, or none at all."""
    checked_data.remote_dataset(
        estimator, X, y, sample_weight, NoTargets()
    )  # says what to do with rows that are not in memory
    X, y, matrix = checked(estimator, X, target)
    kernel = estimator.kernel if matrix is None else kernels.Precomputed(matrix)
    n = X.shape[0]
    if labelled:
        validation.check_targets(y)
        check_two(np.unique(y), "The number of classes has to be greater than one; got {} class")
    elif y is not None:
        y = np.asarray(y, dtype=np.float64)
    validation.here(estimator, sample_weight)
    if sample_weight is not None and not (np.asarray(sample_weight) > 0).any():
        raise ValueError(NO_WEIGHT)
    weight = None if sample_weight is None else check_sample_weight(sample_weight, X, dtype=np.float64)
    numbers: Any = RowRange(n) if weight is None or (weight > 0).all() else np.flatnonzero(weight > 0)
    counts = np.broadcast_to(1.0, n) if weight is None else weight
    contents, given = X if matrix is None else matrix, X
    if len(numbers) < n:
        X, contents, counts = X[numbers], contents[numbers], counts[numbers]
        y = None if y is None else y[numbers]
    same: Array | None = None  # rows that may be one: those of a class, or of a target
    if labelled:
        classes, codes = class_numbers(y)
        check_two(classes, estimator._one_class_left)
        factors = validation.class_weights(estimator.class_weight, classes, codes, counts)
        same = codes
    else:
        classes, codes, factors = np.zeros(1), np.zeros(len(counts), dtype=np.int8), np.ones(1)
        same = codes if y is None else np.unique(y, return_inverse=True)[1]
    threads = thread_count(estimator.n_jobs)
    if sp.issparse(X) and X.shape[0] * X.shape[1] <= FEW:
        X = contents = X.toarray()
    keys = row_keys(contents, threads)
    dataset = Dataset(X, codes, counts, factors, numbers, keys, classes, kernel, n, threads)
    targets = codes.astype(np.float64) if labelled or y is None else y
    rows = CheckedRows(dataset, targets, given, None, numbers, counts)
    symmetric = matrix is None or np.array_equal(matrix, matrix.T)
    return _merged(rows, *find_duplicates(contents, keys, same, threads)) if symmetric else rows


def _merged(rows: CheckedRows, copies: Array, repeated: Array) -> CheckedRows:
    """Equal rows as one, the first of them."""
    if not len(copies):
        return rows
    dataset, numbers = rows.dataset, np.asarray(rows.numbers)
    firsts = numbers.copy()
    firsts[copies] = numbers[repeated]
    kept = np.ones(dataset.size, dtype=bool)
    kept[copies] = False
    counts = np.array(dataset.counts)
    np.add.at(counts, repeated, counts[copies])
    mine = {name: getattr(dataset, name)[kept] for name in ("X", "codes", "keys")}
    merged = replace(dataset, counts=counts[kept], indices=numbers[kept], **mine)
    return replace(rows, dataset=merged, targets=rows.targets[kept], firsts=firsts)


def check_two(classes: Array, complaint: str) -> None:
    """Two classes at least."""
    if len(classes) < 2:
        raise ValueError(complaint.format(len(classes)) + f" ({classes.tolist()[0]!r})")
