"""All uses of scikit-learn's private API; no other module imports any.

`tests/test_sklearn_private.py` says what each is to do; the oldest and the newest version that are allowed run it.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing as some_rows
from sklearn.utils.metaestimators import _safe_split as split_rows
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _check_y as check_y
from sklearn.utils.validation import _num_samples as count_rows

__all__ = [
    "ARRAY_API_COMPAT",
    "check_sample_weight",
    "check_y",
    "count_rows",
    "fill_libsvm",
    "gamma_of",
    "some_rows",
    "split_rows",
    "svm_class",
    "training_rows",
]

ARRAY_API_COMPAT = "sklearn.externals.array_api_compat"  # a copy, of versions that have one


def svm_class(name: str) -> Any:
    """`SVC` and the like from where pickles find them: `patch_sklearn` changes only the names in `sklearn.svm`."""
    return getattr(importlib.import_module("sklearn.svm._classes"), name)


def gamma_of(estimator: Any) -> float:
    """The kernel's width of a fitted `SVC` and the like, as a number."""
    return float(estimator._gamma)


def training_rows(estimator: Any) -> Any:
    """All rows that a fitted `SVC` and the like was given; it keeps them where its kernel is a function."""
    return estimator._BaseLibSVM__Xfit


def fill_libsvm(estimator: Any, dual_coef: NDArray[Any], intercept: NDArray[Any], sizes: list[int], sign: int) -> None:
    """Coefficients and biases of a fitted `SVC` and the like, and how many vectors each class has; ``sign`` is -1 where
    libsvm has the signs the other way."""
    estimator._n_support = np.array(sizes, dtype=np.int32)
    estimator.dual_coef_, estimator.intercept_ = np.ascontiguousarray(dual_coef), np.array(intercept)
    estimator._dual_coef_, estimator._intercept_ = sign * estimator.dual_coef_, sign * estimator.intercept_
