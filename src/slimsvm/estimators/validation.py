"""Checks of what users pass in. An error says what was given, what is allowed, and what to try."""

from __future__ import annotations

import inspect
import numbers
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from ..data.classes import class_sums
from ..data.dataset import Dataset
from ..data.duplicates import row_slices
from ..linalg.array_api import (
    cast,
    device,
    in_cpu_memory,
    is_array_api,
    namespace,
    stays_on_device,
    to_numpy,
    widest_float,
)
from ..linalg.arrays import Array
from ..linalg.matrix import is_positive_definite
from ..problem import kernels
from ..problem.formulation import Kernel
from ..rows.blocks import is_block_source
from ..rows.dask_partitions import is_dask
from ..rows.device import check_finite
from ..rows.target_kinds import one_column
from ..training.full import INDEFINITE_WARNING
from ..utils.sklearn_private import check_sample_weight
from ..utils.warnings import warn

FLOATS = [np.float64, np.float32]
MAX_PLAIN_ENTRIES = 1 << 17  # numbers up to which rows are few
COPY_HINT = "a copy in memory (of torch: {0}.cpu(), of CuPy: {0}.get())"
REMOTE_ESTIMATORS = "SlimSVC, SlimSVR, SlimOneClass, ReducedSVC and EmpiricalSVC"  # what is fitted wherever rows are
NOT_SAID = "deprecated"  # scikit-learn's default of probability
# A column that varies so many times as much as the others hides them.
HIDING_SPREAD_RATIO = 100.0


def is_number(value: Any, integer: bool = False) -> bool:
    """Whether the value is a finite number; booleans are not."""
    kind = numbers.Integral if integer else numbers.Real
    return isinstance(value, kind) and not isinstance(value, (bool, np.bool_)) and bool(np.isfinite(float(value)))


def check_number(
    name: str, value: Any, *, above: float | None = None, at_least: float | None = None, integer: bool = False
) -> None:
    """Check that a value is a finite number above a bound, or at least a bound."""
    if is_number(value, integer) and (above is None or value > above) and (at_least is None or value >= at_least):
        return
    infinite = isinstance(value, numbers.Real) and np.isinf(float(value))
    noun = "an integer" if integer else "a finite number" if infinite else "a number"
    bound = f" above {above:g}" if above is not None else f" of at least {at_least:g}" if at_least is not None else ""
    raise ValueError(f"{name}={value!r} must be {noun}{bound}")


def check_number_or(name: str, value: Any, word: str, **bounds: Any) -> None:
    """Check that a value is a number or the given word."""
    if isinstance(value, str) and value == word:
        return
    try:
        check_number(name, value, **bounds)
    except ValueError as error:
        raise ValueError(f"{error}, or {word!r}") from None


def check_cost(C: Any) -> None:
    """A number above 0, or infinity: no slack at all."""
    if not (isinstance(C, numbers.Real) and np.inf == C):
        check_number("C", C, above=0)


def check_share(name: str, value: Any, most: float = 1.0) -> None:
    """Check that a value is above 0 and at most ``most``."""
    if not is_number(value) or not 0 < value <= most:
        raise ValueError(f"{name}={value!r} must be a number above 0 and at most {most:g}")


def check_size(n_vectors: Any) -> None:
    """Check the number of vectors to keep: a number, a fraction or "auto"."""
    whole = is_number(n_vectors, integer=True) and n_vectors >= 1
    fraction = is_number(n_vectors) and 0 < n_vectors < 1
    if not (whole or fraction or (isinstance(n_vectors, str) and n_vectors == "auto")):
        raise ValueError(
            f"n_vectors={n_vectors!r} must be an integer of at least 1, a fraction between 0 and 1, or 'auto'"
        )


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}={value!r} is not known; use one of {list(choices)}")


def check_yes_or_no(name: str, value: Any) -> None:
    """A truth value, or a number that stands for one."""
    if not isinstance(value, (bool, np.bool_, numbers.Integral)):
        raise ValueError(f"{name}={value!r} must be True or False")


def check_threads(n_jobs: Any) -> None:
    """Check the number of threads: None or a nonzero integer."""
    if n_jobs is None:
        return
    check_number("n_jobs", n_jobs, integer=True)
    if n_jobs == 0:
        raise ValueError("n_jobs=0 makes no sense; use None or 1 for one thread, -1 for all cores")


@lru_cache(maxsize=64)
def _parameters(kind: type[BaseEstimator]) -> list[str]:
    """Names of an estimator's parameters: scikit-learn reads them from the source each time."""
    return sorted(inspect.signature(kind).parameters)


def check_common(estimator: Any, least_iter: int, gammas: tuple[str, ...] = ("scale", "auto")) -> None:
    """The parameters that several estimators have, where they have them."""
    kind: Any = type(estimator)
    params = {name: getattr(estimator, name) for name in _parameters(kind)}
    numbers_of = {
        "tol": {"above": 0},
        "cache_size": {"above": 0},
        "max_iter": {"at_least": least_iter, "integer": True},
        "coef0": {},
    }
    for name in numbers_of.keys() & params.keys():
        check_number(name, params[name], **numbers_of[name])  # type: ignore[arg-type]
    check_threads(params["n_jobs"])
    for name in {"verbose", "probability"} & params.keys():
        check_yes_or_no(name, params[name] if params[name] != NOT_SAID else False)
    check_choice("multi_class", params.get("multi_class", "ovr"), ("ovo", "ovr"))
    shape = params.get("decision_function_shape", "ovr")
    check_choice("decision_function_shape", shape, ("ovr", "ovo"))
    if shape == "ovo" and params.get("multi_class") == "ovr":
        raise ValueError(
            "decision_function_shape='ovo' asks for scores of pairs of classes, which multi_class='ovr' does not have; "
            "use multi_class='ovo', or decision_function_shape='ovr'"
        )
    kernels.check(params["kernel"])
    gamma = params["gamma"]
    if isinstance(gamma, str) or kernels.takes_gamma(params["kernel"]):
        good = gamma in gammas if isinstance(gamma, str) else is_number(gamma) and gamma > 0
        if not good:
            raise ValueError(f"gamma={gamma!r} must be one of {list(gammas)} or a positive number")


def rows_of(estimator: Any, source: Any) -> Iterator[Any]:
    """Rows to predict, a block at a time; their columns must be those of the model."""
    known = vars(estimator).get("feature_names_in_")

    def compare() -> None:
        if known is not None and source.names is not None and list(known) != source.names:
            raise ValueError(
                f"{source!r} has the columns {source.names}; the model was fitted with {list(known)}, in this order"
            )

    compare()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")  # they are compared here
        for rows in source.rows():
            compare()  # those of data frames are known by now
            yield rows


def labels_of(source: Any) -> tuple[Array, Array | None]:
    """Labels of rows that have them with them, and weights, if there are any."""
    blocks_of_labels = [(y, weight) for _, y, weight in source]
    if not blocks_of_labels or blocks_of_labels[0][0] is None:
        raise ValueError(f"{source!r} has no labels; name their column, or pass y")
    weighted = blocks_of_labels[0][1] is not None
    labels = np.concatenate([one_column(y) for y, _ in blocks_of_labels])
    return labels, np.concatenate([weight for _, weight in blocks_of_labels]) if weighted else None


def check_device_rows(estimator: Any, X: Any, reset: bool = False) -> Any:
    """Rows on a device as they must be: two-dimensional, floats, finite, with the columns of the fit."""
    X = X.detach() if hasattr(X, "detach") else X
    if "strided" not in str(getattr(X, "layout", "strided")):
        raise ValueError(f"X is a sparse tensor ({X.layout}); pass X.to_dense(), or a scipy.sparse matrix in memory")
    if X.ndim != 2:
        raise ValueError(f"X is {array_name(X)} of shape {tuple(X.shape)}; rows x columns are needed")
    if reset and 0 in X.shape:
        raise ValueError(f"X has shape {tuple(X.shape)}; a row and a column are needed at least")
    xp = namespace(X)
    if not xp.isdtype(X.dtype, ("bool", "integral", "real floating")):
        raise ValueError(f"X has values of type {X.dtype}; real numbers are needed")
    X = X if X.dtype in (xp.float32, xp.float64) else cast(X, widest_float(X))
    if not reset and X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} "
            "features as input"
        )
    check_finite(X, "X")
    return X


def array_name(X: Any) -> str:
    """An array of another library in words."""
    return f"an array of {type(X).__module__.partition('.')[0]} on {device(X)}"


def dask_name(X: Any) -> str:
    """A dask collection in words."""
    return f"a dask {type(X).__name__}"


def dask_refusal(estimator: Any, X: Any) -> str:
    """Why a dask collection is not taken, and what to do."""
    return (
        f"{type(estimator).__name__} needs all rows in memory, and {dask_name(X)} was given. "
        f"{REMOTE_ESTIMATORS} are fitted where the blocks of a dask X are; if they fit into memory here, pass "
        "X.compute() and y.compute()"
    )


def here(estimator: Any, *given: Any) -> None:
    """Raise TypeError for dask collections and arrays on a device, which are not copied into memory implicitly."""
    for one in given:
        if is_dask(one):
            raise TypeError(dask_refusal(estimator, one))
        if stays_on_device(one) and not in_cpu_memory(one):
            raise TypeError(
                f"{type(estimator).__name__} takes rows, labels and weights in the CPU's memory here, and "
                f"{array_name(one)} was given; pass {COPY_HINT.format('it')}"
            )


def require_memory(name: str, given: Any) -> Any:
    """An argument of a function that needs it in memory, as numpy's; TypeError where it is not in memory."""
    if is_dask(given):
        raise TypeError(
            f"{name} needs all rows in memory, and {dask_name(given)} was given: pass a sample, or .compute()"
        )
    if is_block_source(given):
        raise TypeError(f"{name} needs all rows in memory; {given!r} is read a block at a time. Pass a sample of them")
    if not is_array_api(given):
        return given
    if not in_cpu_memory(given):
        raise TypeError(
            f"{name} needs all rows in the CPU's memory; {array_name(given)} was given: pass {COPY_HINT.format('it')}"
        )
    return to_numpy(given)


def check_classes(classes: Array, weight: Array | None) -> None:
    """Check that rows of positive weight have at least two classes."""
    if len(classes) < 2:
        left = "" if weight is None else " among the samples with a positive weight in sample_weight"
        raise ValueError(
            f"y has one class only{left} ({classes.tolist()[0]!r}); a classifier needs two classes or more"
        )


def named_kernel(estimator: Any, data: Dataset) -> Any:
    """The kernel that an estimator's parameters name, with gamma made a number."""
    gamma = estimator.gamma
    gamma = kernels.scale_gamma(gamma, data.X, data.counts) if kernels.takes_gamma(estimator.kernel) else 1.0
    return kernels.resolve(data.kernel, gamma, estimator.degree, estimator.coef0)


def canonical(X: Any) -> Any:
    """CSR with each entry once."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def check_data(estimator: Any, X: Any, goes_on: bool = False, **target: Any) -> Any:
    """X (and y) as float arrays or CSR, without a copy where they already are. Bad columns are named.

    Columns are those of rows before, where the estimator ``goes_on``, or where there is no y."""
    if "y" not in target and _is_plain(X) and _knows_columns(estimator, X):
        return X
    if "y" in target and not goes_on and _is_plain(X) and _is_plain_target(X, **target):
        estimator.n_features_in_ = X.shape[1]
        return X if isinstance(target["y"], str) else (X, target["y"])
    here(estimator, X)
    if is_dask(target.get("y")):
        raise TypeError(f"X is in memory here, and y is {dask_name(target['y'])}: pass y.compute(), or a dask X")
    here(estimator, target.get("y"))
    X = to_numpy(X)
    target = {name: to_numpy(v) for name, v in target.items()}
    try:
        reset = "y" in target and not goes_on
        return validate_data(estimator, X, **target, reset=reset, accept_sparse="csr", dtype=FLOATS)
    except ValueError as error:
        bad = _bad_columns(X) if "NaN" in str(error) or "infinity" in str(error) else []
        if bad:
            raise ValueError(f"{error}\nColumns with NaN or infinite values: {bad}") from error
        raise


def _is_plain(X: Any) -> bool:
    """Whether X is a small array that scikit-learn's checks would return unchanged; they are slow for few rows."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and 0 < X.size <= MAX_PLAIN_ENTRIES
        and (X.dtype == np.float64 or X.dtype == np.float32)
        and bool(np.isfinite(X).all())
    )


def _knows_columns(estimator: Any, X: Array) -> bool:
    """Whether the estimator was fitted to as many columns without names."""
    known = vars(estimator)
    return X.shape[1] == known.get("n_features_in_") and "feature_names_in_" not in known


def _is_plain_target(X: Array, y: Any, y_numeric: bool = False, **others: Any) -> bool:
    """Whether y is a plain vector of finite numbers, or there is no target."""
    if others or isinstance(y, str):
        return not others
    plain = type(y) is np.ndarray and y.ndim == 1 and len(y) == len(X) and y.dtype.kind in "iufb"
    return plain and (y.dtype.kind != "f" or bool(np.isfinite(y).all()))


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
    """Check that y holds class labels, not regression targets."""
    broken = y.dtype.kind == "f" and any((y[rows] != np.rint(y[rows])).any() for rows in row_slices(len(y)))
    if y.dtype.kind == "O" or broken:
        check_classification_targets(y)  # slow, and other types need no look


def sample_weights(estimator: Any, sample_weight: Any, X: Any) -> Array | None:
    """One weight of at least 0 for each row, not all zero; None if all are 1."""
    if sample_weight is None:
        return None
    here(estimator, sample_weight)
    weight = check_sample_weight(sample_weight, X, dtype=np.float64)
    if weight.min(initial=0) < 0:
        raise ValueError(f"sample_weight has {np.count_nonzero(weight < 0)} negative values; weights must be 0 or more")
    if not weight.any():
        raise ValueError("sample_weight is zero for every sample: nothing is left to fit")
    return weight


def class_weights(class_weight: Any, classes: Array, codes: Array, weight: Array) -> Array:
    """The factor of each class. "balanced" counts samples by their weights, as if they were repeated."""
    return class_factors(class_weight, classes, lambda: class_sums(codes, len(classes), weight))


def class_factors(class_weight: Any, classes: Array, masses: Callable[[], Array]) -> Array:
    """The factor of each class; ``masses()`` returns the total weight of each class, for "balanced"."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        check_choice("class_weight", class_weight, ("balanced",))
        mass = masses()
        return mass.sum() / (len(classes) * mass)
    if not hasattr(class_weight, "get"):
        raise ValueError(f"class_weight={class_weight!r} must be None, 'balanced' or a dict of class: weight")
    labels = classes.tolist()
    unknown, missing = [c for c in class_weight if c not in labels], [c for c in labels if c not in class_weight]
    if unknown and missing:  # a misspelt class; a fold without a rare class has none missing
        raise ValueError(f"class_weight names classes that are not in y: {unknown}; y has {labels}")
    for c, w in class_weight.items():
        check_number(f"class_weight[{c!r}]", w, above=0)
    return np.array([class_weight.get(c, 1.0) for c in classes.tolist()], dtype=np.float64)


def factors_of(estimator: Any, codes: Array) -> Array:
    """The class weight of each row, for a fitted classifier."""
    return class_weights(estimator.class_weight, estimator.classes_, codes, np.broadcast_to(1.0, len(codes)))


def is_precomputed(kernel: Any) -> bool:
    """Whether X is a precomputed kernel matrix."""
    return isinstance(kernel, kernels.Precomputed) or (isinstance(kernel, str) and kernel == "precomputed")


def warn_of_inputs(estimator: Any, dataset: Dataset, kernel: Any) -> None:
    """Warn of rows on which the parameters make little sense; ``kernel`` is that of the fitted model."""
    # Learned scales are as they should be: what may be odd is the kernel that they were learned for.
    learned = isinstance(kernel, kernels.Scaled) and kernel is not dataset.kernel
    complaints = (
        scale_complaint(dataset.X, estimator.kernel, vars(estimator).get("feature_names_in_")),
        kernel_complaint(kernel.kernel if learned else kernel, dataset.X),
    )
    for complaint in filter(None, complaints):
        warn(complaint)


def scale_complaint(X: Any, kernel: Any, names: Array | None) -> str | None:
    """Columns that hide the others in sums over the inputs."""
    some = X[:: max(1, X.shape[0] // 2000)]
    if not isinstance(kernel, str) or kernel == "precomputed" or sp.issparse(some):
        return None
    some = np.asarray(some, dtype=np.float64)
    spread = _spread(some)
    if not (np.isfinite(spread).all() and spread.max(initial=0.0) > 1e-100):  # squares of such numbers are lost
        spread = _spread(some / max(float(np.abs(some).max(initial=0.0)), np.finfo(float).tiny))
    varied = spread[spread > 0]
    if len(varied) < 2 or varied.max() <= HIDING_SPREAD_RATIO * varied.min():
        return None
    usual = float(np.median(varied))
    large = np.flatnonzero(spread > HIDING_SPREAD_RATIO * usual)
    if not len(large):  # few columns: the median may be one of the large ones
        usual = float(varied.min())
        large = np.flatnonzero(spread > HIDING_SPREAD_RATIO * usual) if len(varied) < 4 else large
    if not len(large):
        return None
    shown = ", ".join(str(k if names is None else names[k]) for k in large[:5]) + (", ..." if len(large) > 5 else "")
    return (
        f"columns {shown} vary {spread[large].max() / usual:.0f} times as much as others: the kernel sees hardly "
        "anything else. Scale the features: make_pipeline(StandardScaler(), ...)"
    )


def _spread(X: Array) -> Array:
    """Standard deviations of the columns; rounding of a mean is none."""
    with np.errstate(over="ignore", invalid="ignore"):
        center = X.mean(axis=0)
        around = X - center
        spread = np.sqrt(np.einsum("ij,ij->j", around, around) / len(X))
    doubtful = np.flatnonzero(spread <= 1e-8 * np.abs(center))
    spread[doubtful[(X[:, doubtful] == X[0, doubtful]).all(axis=0)]] = 0
    return spread


def kernel_complaint(kernel: Kernel, X: Any) -> str | None:
    """What is odd about the kernel on a few rows: flat, or clearly not positive semidefinite."""
    some = X[:: max(1, X.shape[0] // 32)]
    if kernel.translation_invariant:
        return _flatness(kernel(some, some))
    if not kernel.positive_semidefinite:
        return _indefiniteness(kernel(some, some))
    return None


def _flatness(K: Array) -> str | None:
    """K is a kernel that falls from 1 with distance."""
    if ((K > 1e-5) & (K < 1 - 1e-6)).any():
        return None
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
            "and the model only memorises; scale the features (StandardScaler) or lower gamma"
        )
    return None


def _indefiniteness(K: Array) -> str | None:
    """A principal block with a negative eigenvalue proves it of the whole matrix."""
    K = np.asarray(K, dtype=np.float64)
    K, noise = 0.5 * (K + K.T), 1e-6 * max(np.abs(K).max(), np.finfo(float).tiny)
    if is_positive_definite(K, noise):
        return None
    lowest = np.linalg.eigvalsh(K)[0]
    if lowest < -noise:
        return INDEFINITE_WARNING.format(f"a block of it has the eigenvalue {lowest:.3g}")
    return None
