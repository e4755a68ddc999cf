"""The outlier detector of `sklearn.svm`: `OneClassSVM`."""

from __future__ import annotations

from typing import Any

from ...solvers.dual.sklearn_svm import one_class
from .. import validation
from ..base import OutlierDetector, atomic, including_border
from ..documentation import documented
from ..targets import NoTargets
from . import layout
from .rows import checked_rows
from .training import SvmSpec, check_params, train_svm, warn_unsolved


@documented
class OneClassSVM(OutlierDetector):
    """Outlier detection by the support of a distribution: `sklearn.svm.OneClassSVM`, with a certificate.

    Minimises ``1/2 |f|^2 - n nu rho + sum_i w_i max(0, rho - f(x_i))`` over f and rho.

    Parameters
    ----------
    <kernel>
    <degree_first>
    nu : float, default=0.5
        At most this part of the training rows are outside, and at least this part are vectors; in (0, 1].
    <family>

    Attributes
    ----------
    <family_layout>
    offset_ : ndarray of shape (1,)
        ``decision_function(X) = score_samples(X) - offset_``.
    <family_objective>
    <kernel_>

    Examples
    --------
    >>> from slimsvm import OneClassSVM
    >>> X = [[0], [0.44], [0.45], [0.46], [1]]
    >>> OneClassSVM(gamma="auto").fit(X).predict([[0.45], [5.0]]).tolist()
    [1, -1]
    """

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
    ):
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def _check_params(self) -> None:
        check_params(self)
        validation.check_share("nu", self.nu)

    def _spec(self) -> SvmSpec:
        nu = float(self.nu)
        return SvmSpec.of(self, lambda problem, C: one_class(nu, problem.weights))

    @atomic
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the detector.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; for ``kernel="precomputed"`` the square kernel matrix; for a function as kernel whatever that
            function takes.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), optional
            Weight k is k copies. Rows of weight 0 or less are left out.

        Returns
        -------
        self
        """
        self._check_params()
        rows = checked_rows(self, X, None, sample_weight, NoTargets())
        trained = train_svm(rows.dataset, self._spec())
        warn_unsolved(trained, self)
        layout.set_svm(self, rows, trained)
        self.intercept_ = including_border(self.intercept_)
        self.offset_ = -self.intercept_

    _values = layout.svm_values
    _sparse = property(layout.is_sparse)
    _gamma = property(layout.gamma)
    support_vectors_ = property(layout.support_vectors)
    dual_coef_ = property(layout.dual_coef)
    coef_ = property(layout.linear_coef)

    def __sklearn_tags__(self) -> Any:
        return layout.without_sparse_matrices(super().__sklearn_tags__())
