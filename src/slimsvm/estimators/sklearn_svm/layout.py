"""Fitted attributes in scikit-learn's layout, for estimators of any kind: functions of the estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ...data.dataset import outputs
from ...linalg.arrays import Array
from ...model.expansion import Expansion
from ...utils.threads import thread_count
from .. import validation
from ..base import KernelModel
from .rows import MAX_DENSE_ENTRIES, SvmRows
from .training import TrainedSvm

# --- what a fit sets --------------------------------------------------------------------------------------------


def set_svm(self: Any, rows: SvmRows, trained: TrainedSvm) -> None:
    """The attributes that all estimators of `sklearn.svm` have."""
    model = trained.model
    support, coef = rows.spread(model)
    self.support_ = support.astype(np.int32)
    self.n_support_ = rows.class_sizes(support)
    self.shape_fit_ = rows.shape
    if rows.objects is not None:
        self.objects_ = rows.objects
    self._set_expansion(Expansion(model.expansion.kernel, rows.given[support], coef, model.expansion.bias))
    assert model.gap is not None
    self.objective_, self.duality_gap_ = model.objective, model.gap
    n_iter = np.maximum(1, model.n_iter)
    self.n_iter_ = n_iter.astype(np.int32) if rows.dataset.n_classes > 1 else int(n_iter[0])
    self.fit_status_ = int(not trained.converged)


# --- values -----------------------------------------------------------------------------------------------------


def svm_values(self: Any, X: Any, coef: Array, bias: Array) -> Array:
    """Decision values (rows x outputs), also for rows that are objects; few sparse rows are made dense."""
    if "objects_" in vars(self):
        return self.kernel_.decision(self.objects_.values(X), self.vectors_, coef, bias)
    if not (is_sparse(self) and self.kernel_.in_core and _are_few(X, self.vectors_)):
        return KernelModel._values(self, X, coef, bias)
    # Dense as they were when the model was fitted: values are the same to the last bit as those of dense rows.
    X, vectors = (
        rows.toarray() if sp.issparse(rows) else rows for rows in (validation.check_data(self, X), self.vectors_)
    )
    return self.kernel_.decision(X, vectors, coef, bias, thread_count(self.n_jobs))


def _are_few(X: Any, vectors: Any) -> bool:
    """Whether rows in memory and vectors are few enough to be made dense."""
    if not (sp.issparse(X) or isinstance(X, np.ndarray)) or X.ndim != 2:
        return False
    return (X.shape[0] + vectors.shape[0]) * vectors.shape[1] <= MAX_DENSE_ENTRIES


# --- properties -------------------------------------------------------------------------------------------------


def is_sparse(self: Any) -> bool:
    """Whether the estimator was fitted to sparse rows."""
    return sp.issparse(self.vectors_)


def gamma(self: Any) -> float:
    """The factor in the kernel as a number."""
    return self.kernel_.gamma or 0.0


def support_vectors(self: Any) -> Any:
    """The training rows that are vectors; nothing for a precomputed kernel."""
    return np.empty((0, 0)) if self.kernel_.keeps_rows else self.vectors_


def dual_coef(self: Any) -> Any:
    """Coefficients of the support vectors; sparse where these are."""
    n_classes = len(self.classes_) if "classes_" in vars(self) else 1
    coef = self.vector_coef_ if n_classes <= 2 else _packed_pairs(self.vector_coef_, self.n_support_)
    return type(self.vectors_)(coef) if is_sparse(self) else coef


def _packed_pairs(coef: Array, class_sizes: Array) -> Array:
    """Coefficients in the layout of ``dual_coef_``: for each vector, those of the pairs of its class with the
    others."""
    n = len(class_sizes)
    ends = np.cumsum(class_sizes)
    own = [slice(end - size, end) for end, size in zip(ends, class_sizes, strict=True)]
    packed = np.empty((n - 1, coef.shape[1]))
    for row, pair in zip(coef, outputs(n, "ovo"), strict=True):
        i, j = pair.positive, pair.negative[0]
        packed[j - 1, own[i]], packed[i, own[j]] = row[own[i]], row[own[j]]
    return packed


def linear_coef(self: Any) -> Any:
    """Weights of the inputs, of a linear kernel; they cannot be changed."""
    if self.kernel != "linear":
        raise AttributeError("coef_ is only available when using a linear kernel")
    if is_sparse(self):
        coef = type(self.vectors_)(self.vector_coef_) @ self.vectors_
        coef.data.flags.writeable = False
        return coef
    coef = self.vector_coef_ @ self.vectors_
    coef.flags.writeable = False
    return coef


def without_sparse_matrices(tags: Any) -> Any:
    """scikit-learn's tags: rows may be sparse, kernel matrices not."""
    tags.input_tags.sparse = not tags.input_tags.pairwise
    return tags
