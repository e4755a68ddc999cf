"""Checks of what users pass in. An error says what was given, what is allowed, and what to try."""

from __future__ import annotations

import numbers
import os
from typing import Any

import joblib
import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from ..formulation import Array, Kernel

FLOATS = [np.float64, np.float32]


def check_number(
    name: str, value: Any, *, above: float | None = None, at_least: float | None = None, integer: bool = False
) -> None:
    """A finite number above a bound, or at least a bound."""
    kind = numbers.Integral if integer else numbers.Real
    good = isinstance(value, kind) and not isinstance(value, (bool, np.bool_)) and bool(np.isfinite(float(value)))
    if good and (above is None or value > above) and (at_least is None or value >= at_least):
        return
    noun = "an integer" if integer else "a number"
    bound = f" above {above:g}" if above is not None else f" of at least {at_least:g}" if at_least is not None else ""
    raise ValueError(f"{name}={value!r} must be {noun}{bound}")


def check_number_or(name: str, value: Any, word: str, **bounds: Any) -> None:
    """A number, or one word that stands for one."""
    if isinstance(value, str) and value == word:
        return
    try:
        check_number(name, value, **bounds)
    except ValueError as error:
        raise ValueError(f"{error}, or {word!r}") from None


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}={value!r} is not known; use one of {list(choices)}")


def check_common(estimator: Any, least_iter: int) -> None:
    """The parameters that all machines have."""
    check_number("tol", estimator.tol, above=0)
    check_number("cache_size", estimator.cache_size, above=0)
    check_number("max_iter", estimator.max_iter, at_least=least_iter, integer=True)
    check_number("coef0", estimator.coef0)
    check_choice("multi_class", estimator.multi_class, ("ovo", "ovr"))
    check_choice("decision_function_shape", estimator.decision_function_shape, ("ovr", "ovo"))
    thread_count(estimator.n_jobs)


def check_data(estimator: Any, X: Any, **target: Any) -> Any:
    """X (and y) as float arrays or CSR, without a copy where they already are. Bad columns are named."""
    try:
        return validate_data(estimator, X, **target, reset="y" in target, accept_sparse="csr", dtype=FLOATS)
    except ValueError as error:
        bad = _bad_columns(X) if "NaN" in str(error) or "infinity" in str(error) else []
        if bad:
            raise ValueError(f"{error}\nColumns with NaN or infinite values: {bad}") from error
        raise


def _bad_columns(X: Any) -> list[Any]:
    """Names of the columns of a data frame that hold NaN, null or infinite values."""
    names = getattr(X, "columns", None)
    if names is None:
        return []
    bad = []
    for name in names:
        try:
            column = np.asarray(X[name], dtype=np.float64)
        except (TypeError, ValueError):
            continue
        if not np.isfinite(column).all():
            bad.append(name)
    return bad


def check_targets(y: Array) -> None:
    """Class labels, not numbers to be regressed on."""
    if y.dtype.kind == "O" or (y.dtype.kind == "f" and (y != np.rint(y)).any()):
        check_classification_targets(y)  # slow, and other types need no look


def sample_weights(estimator: Any, sample_weight: Any, X: Any) -> Array | None:
    """One weight of at least 0 for each row, not all zero; None if all are 1."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if (weight < 0).any():
        raise ValueError(f"sample_weight has {np.count_nonzero(weight < 0)} negative values; weights must be 0 or more")
    if not weight.any():
        raise ValueError("sample_weight is zero for every sample: nothing is left to fit")
    return weight


def class_weights(class_weight: Any, classes: Array, codes: Array, weight: Array) -> Array:
    """The factor of each class. "balanced" counts samples by their weights, as if they were repeated."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        check_choice("class_weight", class_weight, ("balanced",))
        counts = np.bincount(codes, weights=weight, minlength=len(classes))
        return weight.sum() / (len(classes) * counts)
    if not hasattr(class_weight, "get"):
        raise ValueError(f"class_weight={class_weight!r} must be None, 'balanced' or a dict of class: weight")
    labels = classes.tolist()
    unknown, missing = [c for c in class_weight if c not in labels], [c for c in labels if c not in class_weight]
    if unknown and missing:  # a misspelt class; a fold without a rare class has none missing
        raise ValueError(f"class_weight names classes that are not in y: {unknown}; y has {labels}")
    for c, w in class_weight.items():
        check_number(f"class_weight[{c!r}]", w, above=0)
    return np.array([class_weight.get(c, 1.0) for c in classes.tolist()], dtype=np.float64)


def thread_count(n_jobs: Any) -> int:
    """Threads for ``n_jobs``: None is 1, -1 all cores, -2 all but one."""
    if n_jobs is None:
        return 1
    check_number("n_jobs", n_jobs, integer=True)
    if n_jobs == 0:
        raise ValueError("n_jobs=0 makes no sense; use None or 1 for one thread, -1 for all cores")
    if n_jobs > 0:
        return min(int(n_jobs), 4 * (os.cpu_count() or 1))
    return max(1, joblib.cpu_count() + 1 + int(n_jobs))


def is_precomputed(kernel: Any) -> bool:
    """Is X the kernel matrix itself?"""
    return kernel == "precomputed" if isinstance(kernel, str) else getattr(kernel, "name", None) == "precomputed"


def kernel_complaint(kernel: Kernel, X: Any) -> str | None:
    """What is odd about the kernel on a few rows: flat, or clearly not positive semidefinite."""
    n = X.shape[0]
    rows = np.arange(0, n, max(1, n // 32))
    if getattr(kernel, "translation_invariant", False):
        return _flatness(kernel(X[rows], X[rows]))
    if not getattr(kernel, "positive_semidefinite", True):
        return _indefiniteness(X[np.ix_(rows, rows)] if is_precomputed(kernel) else kernel(X[rows], X[rows]))
    return None


def _flatness(K: Array) -> str | None:
    """K is a kernel that falls from 1 with distance."""
    np.fill_diagonal(K, 1)
    least = K.min()
    if 1 - 1e-6 < least < 1:
        return (
            f"kernel values are all about 1 (at least 1 - {1 - least:.1e}): the points look the same to the kernel; "
            "scale the features (StandardScaler) or raise gamma"
        )
    apart = K[K < 1 - 1e-6]  # equal rows aside
    if len(apart) and apart.max() < 1e-5:
        return (
            f"kernel values between different rows are all about 0 (at most {apart.max():.1e}): every point is alone "
            "and the machine only memorises; scale the features (StandardScaler) or lower gamma"
        )
    return None


INDEFINITE = (
    "the kernel is not positive semidefinite ({}): the solution is a stationary point and the duality gap proves "
    "nothing; use a positive semidefinite kernel"
)


def _indefiniteness(K: Array) -> str | None:
    """A principal block with a negative eigenvalue proves it of the whole matrix."""
    K = np.asarray(K, dtype=np.float64)
    lowest = np.linalg.eigvalsh(0.5 * (K + K.T))[0]
    if lowest < -1e-6 * max(np.abs(K).max(), np.finfo(float).tiny):
        return INDEFINITE.format(f"a block of it has the eigenvalue {lowest:.3g}")
    return None
