"""What the classifiers over a small basis share: one set of vectors, coefficients for each machine over it."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from threadpoolctl import ThreadpoolController

from ..formulation import Array
from ..parts import kernels, regularizers, slacks
from ..vectors.training import Coefficients, Machines, TrainingRows, fit_coefficients, one_vs_one, one_vs_rest
from . import validation
from .base import ExpansionClassifier


@dataclass(frozen=True)
class Model:
    """A trained machine: kernel, vectors (and which rows they are), coefficients and certificate."""

    kernel: Any
    vectors: Any
    rows: Array | None
    fitted: Coefficients

    def without_idle_vectors(self) -> Model:
        """Vectors that no machine uses left out: rounds of reweighting leave some."""
        used = np.flatnonzero(self.fitted.coef.any(axis=0))
        if not len(used):
            warnings.warn("no vector is left, every row gets the same answer: lower C_alpha or raise C", stacklevel=4)
        fitted = replace(self.fitted, coef=np.ascontiguousarray(self.fitted.coef[:, used]))
        return Model(self.kernel, self.vectors[used], None if self.rows is None else self.rows[used], fitted)


class SmallBasisClassifier(ExpansionClassifier):
    """Trains on explicit features, one for each vector; subclasses say which vectors."""

    @abstractmethod
    def _train(self, rows: TrainingRows, sample_weight: Array | None, kernel: Any) -> Model:
        """Choose vectors and fit coefficients. ``kernel`` looks up a precomputed matrix, or is None."""

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        labelled = self._labelled(X, y, sample_weight)
        X, counted = labelled.X, labelled.rows
        every = len(counted) == X.shape[0]
        lookup = None
        if validation.is_precomputed(self.kernel):
            lookup = kernels.Lookup(X)
            X = counted[:, None]
        elif not every:
            X = X[counted]
        weight = None if labelled.sample_weight is None else labelled.sample_weight[counted]
        rows = TrainingRows(
            X, labelled.codes, labelled.weights, len(labelled.classes), validation.thread_count(self.n_jobs)
        )
        with blas_threads(X.shape[0]):
            model = self._train(rows, weight, lookup)
        if getattr(getattr(self, "regularizer", None), "reweighted", False):
            model = model.without_idle_vectors()
        self._warn_if_unsolved(model.fitted)
        self.classes_ = labelled.classes
        self.kernel_ = copy(model.kernel) if lookup is None else kernels.Precomputed()
        self._one_vs_one = len(self.classes_) > 2 and self._scheme() == "ovo"
        if model.rows is not None:
            self.support_ = counted[model.rows]
        elif hasattr(self, "support_"):
            del self.support_
        self.vectors_ = model.vectors if lookup is None else self.support_
        self.n_vectors_ = self.vectors_.shape[0]
        self.vector_coef_, self.intercept_ = model.fitted.coef, model.fitted.bias
        self.objective_, self.duality_gap_ = model.fitted.objective, model.fitted.gap
        self.n_iter_ = np.maximum(1, model.fitted.n_iter)
        return self

    def _scheme(self) -> str:
        return self.multi_class

    def _machines(self, rows: TrainingRows, C: float) -> list[Machines]:
        """The machines whose decision values classify."""
        cost = C * rows.weights
        if rows.n_classes == 2 or self._scheme() == "ovr":
            return [one_vs_rest(rows.codes, rows.n_classes, cost)]
        return one_vs_one(rows.codes, rows.n_classes, cost)

    def _coefficients(
        self, rows: TrainingRows, kernel: Any, vectors: Any, machines: list[Machines], regularizer: Any
    ) -> Coefficients:
        """The final machines over the vectors, on all rows."""
        return fit_coefficients(
            kernel,
            rows.X,
            vectors,
            machines,
            slacks.loss(self.slack),
            regularizer,
            tol=self.tol,
            max_iter=self.max_iter,
            dtype=np.float32 if rows.X.dtype == np.float32 else np.float64,
            threads=rows.threads,
            memory=self.cache_size * 2.0**20,
        )

    def _kernel(self, rows: TrainingRows, weight: Array | None, lookup: Any, gamma: Any) -> Any:
        if lookup is not None:
            kernel = lookup
        else:
            kernel = kernels.resolve(self.kernel, gamma, self.degree, self.coef0, rows.X, weight)
        complaint = validation.kernel_complaint(kernel, rows.X)
        if complaint is not None:
            warnings.warn(complaint, stacklevel=5)
        return kernel

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31))

    def _warn_if_unsolved(self, fitted: Coefficients) -> None:
        unsolved = fitted.gap > self.tol
        if unsolved.any():
            warnings.warn(
                f"{np.count_nonzero(unsolved)} of {len(unsolved)} machines are not solved: relative duality gap "
                f"{fitted.gap.max():.2e}, asked for tol={self.tol:g}. Scale the features, lower C, raise max_iter or "
                "raise tol",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _check_common(self) -> None:
        validation.check_common(self, least_iter=1)
        slacks.loss(self.slack)
        regularizers.resolve(self.regularizer)


@lru_cache(maxsize=1)
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()


def blas_threads(n: int) -> AbstractContextManager[Any]:
    """Few rows: one thread, because waking the others costs more than they save."""
    return _thread_pools().limit(limits=1, user_api="blas") if n < 5000 else nullcontext()
