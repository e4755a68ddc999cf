"""Checked data of a fit: rows with their labels and weights, in memory or wherever they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_consistent_length, column_or_1d

from ..data.classes import class_sums
from ..data.dataset import Dataset, RowRange
from ..data.duplicates import find_duplicates, mark_duplicates, merge_duplicates, row_keys
from ..linalg.array_api import asarray_like, in_cpu_memory, namespace, stays_on_device, to_numpy
from ..linalg.arrays import Array
from ..problem import kernels
from ..rows.blocks import BlockRows, is_block_source
from ..rows.dask_partitions import is_dask
from ..rows.dask_rows import DaskRows
from ..rows.device import DeviceRows
from ..rows.remote import RemoteRows
from ..utils.sklearn_private import check_y
from ..utils.threads import thread_count
from . import validation
from .targets import RegressionTargets, Targets
from .validation import COPY_HINT, REMOTE_ESTIMATORS, array_name, dask_name

CheckRemote = Callable[[], None]  # raises ValueError where parameters need all rows in memory


def checked_dataset(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    targets: Targets,
    merge: bool = True,
    check_remote: CheckRemote | None = None,
) -> Dataset:
    """Check the data of a fit and make a dataset of the rows of positive weight; set the estimator's feature names.

    ``merge``: merge equal rows of a class. Without ``check_remote`` rows must be in memory.
    """
    remote = remote_dataset(estimator, X, y, sample_weight, targets, check_remote)
    if remote is not None:
        return remote
    X, y, sample_weight = (to_numpy(v) for v in (X, y, sample_weight))
    if targets.kind.needed:
        X, y = validation.check_data(estimator, X, y=y, **targets.checks)
    else:
        X, y = validation.check_data(estimator, X, y="no_validation"), None
    kernel, contents = estimator.kernel, X
    if validation.is_precomputed(kernel):
        X = contents = X.toarray() if sp.issparse(X) else X
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                f"kernel='precomputed' needs the square matrix k(X, X) to fit; X has shape {X.shape}. "
                "Pass k(X_new, X_train) to predict"
            )
        kernel, X = kernels.Precomputed(X), np.arange(X.shape[0])[:, None]
        merge = merge and np.array_equal(contents, contents.T)
    elif sp.issparse(X):
        X = contents = validation.canonical(X)
    weight = validation.sample_weights(estimator, sample_weight, X)
    threads, fields = thread_count(estimator.n_jobs), partial(targets.fields, weight=weight)
    dataset, contents = dataset_in_memory(X, contents, kernel, y, weight, fields, threads)
    dataset = merge_duplicates(dataset, contents if merge else None)
    return dataset.with_scaled_targets(targets.alike) if isinstance(targets, RegressionTargets) else dataset


def dataset_in_memory(
    X: Any,
    contents: Any,
    kernel: Any,
    y: Any,
    weight: Array | None,
    fields: Callable[..., dict[str, Any]],
    threads: int,
) -> tuple[Dataset, Any]:
    """A dataset of the checked rows of positive weight, and their ``contents``, by which rows are compared.

    ``fields(y, counts)`` returns the labels as fields of a `Dataset`.
    """
    n, used = X.shape[0], None if weight is None or (weight > 0).all() else np.flatnonzero(weight > 0)
    counts = np.broadcast_to(1.0, n) if weight is None else weight
    if used is not None:
        X, contents, counts, y = X[used], contents[used], counts[used], None if y is None else y[used]
    dataset = Dataset(
        X=X,
        counts=counts,
        indices=RowRange(n) if used is None else used,
        keys=row_keys(contents, threads),
        kernel=kernel,
        n_samples=n,
        threads=threads,
        **fields(y, counts),
    )
    return dataset, contents


@contextmanager
def training_data(*args: Any, **kwargs: Any) -> Iterator[Dataset]:
    """Context manager around `checked_dataset` that releases remote rows at the end."""
    dataset = checked_dataset(*args, **kwargs)
    try:
        yield dataset
    finally:
        if isinstance(dataset.X, RemoteRows):
            dataset.X.close()


def remote_dataset(
    estimator: Any, X: Any, y: Any, sample_weight: Any, targets: Targets, check_remote: CheckRemote | None = None
) -> Dataset | None:
    """`checked_dataset` for rows that are not in memory; None if they are."""
    if isinstance(X, np.ndarray):
        return None
    if is_block_source(X):
        return blocks_dataset(estimator, X, y, sample_weight, targets, check_remote)
    if y is None and hasattr(X, "__next__"):
        raise TypeError(
            f"X is an iterator ({type(X).__name__}), which can be gone through only once; pass rows as "
            "slimsvm.rows.from_blocks(read), where read() makes a new iterator over blocks (X, y)"
        )
    if is_dask(X):
        return dask_dataset(estimator, X, y, sample_weight, targets, check_remote)
    if stays_on_device(X) and (not in_cpu_memory(X) or _stays_on_device(estimator, check_remote)):
        return device_dataset(estimator, X, y, sample_weight, targets, check_remote)
    return None


def dataset_of_rows(
    X: Any, counts: Array, fields: dict[str, Any], kernel: Any, threads: int, alike: bool = False
) -> Dataset:
    """A dataset of rows in memory that were checked before: all weights are positive, and no class is empty."""
    X = validation.canonical(X) if sp.issparse(X) else X
    codes = fields["codes"].astype(np.min_scalar_type(-1 - len(fields["classes"])))
    fields = fields | {"codes": codes, "counts": counts, "indices": RowRange(len(counts)), "keys": row_keys(X, threads)}
    whole = merge_duplicates(Dataset(X=X, kernel=kernel, n_samples=len(counts), threads=threads, **fields), X)
    return whole if whole.targets is None else whole.with_scaled_targets(alike)


def blocks_dataset(
    estimator: Any, source: Any, y: Any, sample_weight: Any, targets: Targets, check_remote: CheckRemote | None
) -> Dataset:
    """A dataset of labelled rows read block by block. Duplicates stay, but draws treat them as one row."""
    name = type(estimator).__name__
    if check_remote is None:
        raise TypeError(
            f"{name} needs all rows in memory; {source!r} is read a block at a time. {REMOTE_ESTIMATORS} take it"
        )
    if y is not None or sample_weight is not None:
        raise ValueError(f"{source!r} has its labels and weights with it: fit(rows), without y and sample_weight")
    if validation.is_precomputed(estimator.kernel):
        raise ValueError("kernel='precomputed' needs a matrix in memory")
    check_remote()
    threads = thread_count(estimator.n_jobs)
    X = BlockRows(source, threads, targets.kind)
    factors = targets.class_factors(X, sample_weight)
    return _dataset_of(estimator, X, source.names, RowRange(X.shape[0]), X.shape[0], threads, factors)


def dask_dataset(
    estimator: Any, X: Any, y: Any, sample_weight: Any, targets: Targets, check_remote: CheckRemote | None
) -> Dataset:
    """Labelled rows of dask collections, which stay where they are."""
    if check_remote is None:
        raise TypeError(validation.dask_refusal(estimator, X))
    if validation.is_precomputed(estimator.kernel):
        raise ValueError(
            f"kernel='precomputed' needs a matrix in memory, X is {dask_name(X)}: X.compute() brings it here"
        )
    check_remote()
    remote = DaskRows(X, y, sample_weight, targets.kind)
    n = remote.n_samples
    try:
        rows = RowRange(n) if remote.numbers is None else remote.numbers
        factors = targets.class_factors(remote, sample_weight)
        return _dataset_of(estimator, remote, remote.names, rows, n, thread_count(estimator.n_jobs), factors)
    except BaseException:
        remote.close()
        raise


def device_dataset(
    estimator: Any, X: Any, y: Any, sample_weight: Any, targets: Targets, check_remote: CheckRemote | None
) -> Dataset:
    """Labelled rows of an array on a device, which stay on it; labels and weights may be on it or in memory."""
    if check_remote is None:
        raise TypeError(
            f"{type(estimator).__name__} needs all rows in the CPU's memory; X is {array_name(X)}. "
            f"{REMOTE_ESTIMATORS} are fitted where it is; if it fits into memory here, pass {COPY_HINT.format('X')}"
        )
    if validation.is_precomputed(estimator.kernel):
        raise ValueError(f"kernel='precomputed' needs a matrix in memory here; X is {array_name(X)}")
    try:
        check_remote()
    except ValueError as error:
        raise ValueError(f"{error}. X is {array_name(X)}: pass {COPY_HINT.format('X')}") from None
    X, n = validation.check_device_rows(estimator, X, reset=True), X.shape[0]
    if y is None and targets.kind.needed:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    y = np.zeros(n) if y is None else _in_memory(y, targets.checks)
    check_consistent_length(X, y)
    weight = to_numpy(sample_weight)
    weight = validation.sample_weights(estimator, weight, np.broadcast_to(0.0, (n, 1)))
    rows = RowRange(n) if weight is None or weight.all() else np.flatnonzero(weight)
    counts = np.broadcast_to(1.0, n) if weight is None else weight
    if len(rows) < n:
        y, counts = y[rows], counts[rows]
        X = namespace(X).take(X, asarray_like(X, rows), axis=0)
    fields = targets.fields(y, counts, weight)
    values = fields.get("targets")
    units = None if values is None else targets.kind.units(values, counts)
    device_rows = DeviceRows(X, fields["codes"], counts, None if units is None else units.transform(values))
    device_rows.classes, device_rows.keys, device_rows.target_scaler = fields["classes"], device_rows.row_keys(), units
    device_rows.single_target = fields.get("single_target", True)
    device_rows.class_totals = class_sums(device_rows.codes, len(device_rows.classes), counts)
    return _dataset_of(estimator, device_rows, None, rows, n, thread_count(estimator.n_jobs), fields["class_weights"])


def _stays_on_device(estimator: Any, check_remote: CheckRemote | None) -> bool:
    """Can rows stay in an array of another library? Those in the CPU's memory become numpy's otherwise."""
    if check_remote is None or validation.is_precomputed(estimator.kernel):
        return False
    try:
        check_remote()
    except ValueError:
        return False
    return True


def _in_memory(y: Any, checks: Mapping[str, bool]) -> Array:
    """Labels or targets of each row as an array in memory."""
    y = to_numpy(y)
    if not checks:
        return column_or_1d(y, warn=True)
    return check_y(y, **checks)


def _dataset_of(estimator: Any, X: Any, names: Any, rows: Any, n_samples: int, threads: int, factors: Array) -> Dataset:
    """The dataset of remote rows."""
    estimator.n_features_in_ = X.shape[1]
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    whole = Dataset(X, X.codes, X.counts, factors, rows, X.keys, X.classes, estimator.kernel, n_samples, threads)
    whole = replace(whole, targets=X.targets, target_scaler=X.target_scaler, single_target=X.single_target)
    return mark_duplicates(whole, *find_duplicates(None, whole.keys, whole.merge_keys, threads))
