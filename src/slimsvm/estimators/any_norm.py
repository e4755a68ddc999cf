"""Support vector machine with any slack norm, on all training rows."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..problem import slacks
from ..problem.formulation import Constraint, Slack, constraint
from ..solvers.primal.refit import ClassProblem, Refit
from . import validation
from .all_rows import AllRowsClassifier
from .documentation import documented


@documented
class AnyNormSVC(AllRowsClassifier):
    """Kernel support vector machine with a choice of slack norm, solved to a certified duality gap.

    Minimises ``1/2 |f|^2 + C * Phi(xi)`` over functions f of the kernel's space and a bias b, where the slacks
    are ``xi >= 1 - y (f(x) + b)`` and ``xi >= 0`` (``constraint="inequality"``), or ``xi = 1 - y (f(x) + b)``
    (``"equality"``). ``slack="l1"`` with inequality is the problem of `sklearn.svm.SVC`.

    Parameters
    ----------
    slack : {"l1", "l2", "linf"} or object of `slimsvm.slacks`, default="l1"
        ``"l1"``: C times the sum of the slacks; ``"l2"``: C/2 times the sum of their squares; ``"linf"``: C times
        the largest.
    constraint : {"inequality", "equality"}, default="inequality"
        With equality, points beyond the margin cost as much as points short of it: ``"l2"`` is then the
        least-squares SVM, ``"l1"`` the least-1-norm SVM.
    <C>
    <kernel>
    <gamma>
    <degree>
    <class_weight>
    <multi_class>
    <dual_tol>
    <n_jobs>
    <verbose>

    Attributes
    ----------
    <vectors_>
    <support_>
    <objective_>
    <kernel_>

    References
    ----------
    .. [1] O. Dekel, Y. Singer. Support Vector Machines on a Budget. NIPS 2006.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import AnyNormSVC
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> clf = AnyNormSVC(C=10).fit(X, y)
    >>> bool(clf.duality_gap_[0] <= 1e-3)
    True
    """

    def __init__(
        self,
        slack: Any = "l1",
        constraint: str = "inequality",
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        class_weight: Any = None,
        multi_class: str = "ovo",
        decision_function_shape: str = "ovr",
        tol: float = 1e-3,
        max_iter: int = -1,
        cache_size: float = 400,
        precision: str = "float32",
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        super().__init__(
            C=C,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            class_weight=class_weight,
            multi_class=multi_class,
            decision_function_shape=decision_function_shape,
            tol=tol,
            max_iter=max_iter,
            cache_size=cache_size,
            precision=precision,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.slack = slack
        self.constraint = constraint

    def _refit_problem(self) -> Refit:
        if self.constraint != "inequality":
            return super()._refit_problem()
        return ClassProblem(self.C, partial(validation.factors_of, self), slacks.loss(self.slack), tol=self.tol)

    def _norm(self) -> tuple[Slack, Constraint]:
        return slacks.resolve(self.slack), constraint(self.constraint)
