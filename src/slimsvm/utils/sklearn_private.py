"""All uses of scikit-learn's private API; no other module uses it.

`tests/test_sklearn_private.py` tests each of them on the oldest and the newest supported version.
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

ARRAY_API_COMPAT = "sklearn.externals.array_api_compat"  # a copy of array-api-compat, in versions that have one


def svm_class(name: str) -> Any:
    """scikit-learn's own `SVC`, `SVR` ..., also after `patch_sklearn`, which only changes names in `sklearn.svm`."""
    return getattr(importlib.import_module("sklearn.svm._classes"), name)


def gamma_of(estimator: Any) -> float:
    """The number gamma of a fitted `SVC`, `SVR` ... of scikit-learn."""
    return float(estimator._gamma)


def training_rows(estimator: Any) -> Any:
    """The training rows of a fitted `SVC`, `SVR` ... whose kernel is a function: scikit-learn keeps them."""
    return estimator._BaseLibSVM__Xfit


def fill_libsvm(estimator: Any, dual_coef: NDArray[Any], intercept: NDArray[Any], sizes: list[int], sign: int) -> None:
    """Set the coefficients, the biases and the number of vectors of each class of an `SVC`, `SVR` ... of scikit-learn;
    ``sign`` is -1 where libsvm has the opposite signs."""
    estimator._n_support = np.array(sizes, dtype=np.int32)
    estimator.dual_coef_, estimator.intercept_ = np.ascontiguousarray(dual_coef), np.array(intercept)
    estimator._dual_coef_, estimator._intercept_ = sign * estimator.dual_coef_, sign * estimator.intercept_
