"""The drop-in outlier detector: `OneClassSVM`."""

from __future__ import annotations

from typing import Any

from ...compression.tasks import OneClass
from ...model.expansion import Model
from ...solvers.dual.sklearn_svm import DualProblem, one_class
from ...solvers.dual.training import Subproblem
from .. import validation
from ..base import OutlierDetector, including_border
from ..documentation import documented
from .base import SklearnSvm
from .rows import UNLABELLED, CheckedRows, prepared


@documented
class OneClassSVM(SklearnSvm, OutlierDetector):
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
        super()._check_params()
        validation.check_share("nu", self.nu)

    def _prepared(self, X: Any, y: Any, sample_weight: Any) -> CheckedRows:
        return prepared(self, X, None, sample_weight, False, {"y": UNLABELLED})

    def _goal(self) -> OneClass:
        return OneClass()

    def _costs(self, problem: Subproblem, C: float) -> DualProblem:
        return one_class(float(self.nu), problem.weights)

    def _keep_rows(self, rows: CheckedRows, model: Model) -> None:
        super()._keep_rows(rows, model)
        self.intercept_ = including_border(self.intercept_)
        self.offset_ = -self.intercept_
