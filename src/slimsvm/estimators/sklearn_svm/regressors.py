"""The drop-in regressors: `SVR` and `NuSVR`."""

from __future__ import annotations

from typing import Any

from ...compression.tasks import Regression
from ...solvers.dual.sklearn_svm import DualProblem, nu_regression, regression
from ...solvers.dual.training import Subproblem
from .. import validation
from ..base import KernelRegressor
from ..documentation import documented
from .base import SklearnSvm


class FullRegressor(SklearnSvm, KernelRegressor):
    """Values are the answer."""

    C: float


@documented
class SVR(FullRegressor):
    """Support vector regression with a tube: `sklearn.svm.SVR`, solved to a certified duality gap.

    Minimises ``1/2 |f|^2 + C sum_i w_i max(0, |y_i - f(x_i) - b| - epsilon)``.

    Parameters
    ----------
    <kernel>
    <degree_first>
    C : float, default=1.0
        Cost of errors beyond the tube, above 0; ``inf``: none is allowed.
    epsilon : float, default=0.1
        Errors up to this cost nothing.
    <family>

    Attributes
    ----------
    <family_layout>
    <family_objective>
    <kernel_>

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from slimsvm import SVR
    >>> X, y = make_friedman1(200, random_state=0)
    >>> model = SVR(C=100).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), bool(model.duality_gap_[0] <= 1e-3)
    (True, True)
    """

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
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
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def _check_params(self) -> None:
        super()._check_params()
        validation.check_cost(self.C)
        validation.check_number("epsilon", self.epsilon, at_least=0)

    def _goal(self) -> Regression:
        return Regression(float(self.epsilon))

    def _costs(self, problem: Subproblem, C: float) -> DualProblem:
        return regression(problem.y, C, float(self.epsilon), problem.weights)


@documented
class NuSVR(FullRegressor):
    """Support vector regression with a bound on the part of rows outside the tube: `sklearn.svm.NuSVR`.

    Minimises ``1/2 |f|^2 + C (n nu e + sum_i w_i max(0, |y_i - f(x_i) - b| - e))`` over f, b and the tube's width e.

    Parameters
    ----------
    nu : float, default=0.5
        At most this part of the rows are outside the tube, and at least this part are vectors; in (0, 1].
    C : float, default=1.0
        Cost of errors beyond the tube, above 0.
    <kernel>
    <degree_first>
    <family>

    Attributes
    ----------
    <family_layout>
    <family_objective>
    <kernel_>

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from slimsvm import NuSVR
    >>> X, y = make_friedman1(200, random_state=0)
    >>> model = NuSVR(nu=0.3, C=100).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
    ):
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def _check_params(self) -> None:
        super()._check_params()
        validation.check_number("C", self.C, above=0)
        validation.check_share("nu", self.nu)

    def _goal(self) -> Regression:
        return Regression()  # labels are to be met

    def _costs(self, problem: Subproblem, C: float) -> DualProblem:
        return nu_regression(problem.y, C, float(self.nu), problem.weights)
