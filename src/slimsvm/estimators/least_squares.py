"""The least-squares support vector machine: one linear system."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np

from ..data.dataset import Dataset
from ..linalg.arrays import Array
from ..model.expansion import Model
from ..problem import slacks
from ..problem.formulation import EQUALITY, Constraint, Slack
from ..solvers.dual import least_squares
from ..solvers.dual.solve import DualProgress, DualSolution
from ..solvers.dual.training import Subproblem
from .all_points import AllPointsClassifier
from .documentation import documented


@documented
class LeastSquaresSVC(AllPointsClassifier):
    """Least-squares support vector machine of Suykens & Vandewalle.

    Minimises ``1/2 |f|^2 + C/2 * sum(xi**2)`` with ``xi = 1 - y (f(x) + b)``: ridge regression on the labels in the
    kernel's space. Every row becomes a vector.

    Problems whose kernel matrix fits in ``cache_size`` are solved directly, which also gives the leave-one-out
    residuals. Larger ones are solved by conjugate gradients with a low-rank preconditioner: the matrix is never
    formed, its products are computed from the rows, for all classes at once where ``multi_class="ovr"``.

    Parameters
    ----------
    <C>
    <kernel>
    <gamma>
    <degree>
    <class_weight>
    <multi_class>
    tol : float, default=1e-3
        The fit ends when the relative duality gap is at most this.
    max_iter : int, default=-1
        Most iterations of conjugate gradients; -1: no limit. The direct solution counts as one.
    cache_size : float, default=400
        Megabytes for the kernel matrix (direct) or for the preconditioner.
    precision : {"float32", "float64"}, default="float32"
        Of the kernel values in the iterations. The solution is certified in float64 either way, and the
        iterations turn to float64 by themselves where float32 is not enough.
    <n_jobs>
    <verbose>

    Attributes
    ----------
    <vectors_>
    <support_>
    <objective_>
    <kernel_>
    loo_residuals_ : ndarray of shape (n_outputs, n_samples) or None
        ``y - f(x)`` of each row for the classifier trained without it, y = 1 or -1; below 1 in size where that one is
        right. NaN for rows that a binary problem does not use. None where the system was not solved directly.

    References
    ----------
    .. [1] J. Suykens, J. Vandewalle. Least Squares Support Vector Machine Classifiers. Neural Processing
       Letters 9, 1999.
    .. [2] G. Cawley, N. Talbot. Fast exact leave-one-out cross-validation of sparse least-squares support vector
       machines. Neural Networks 17, 2004.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import LeastSquaresSVC
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> clf = LeastSquaresSVC(C=10.0).fit(X, y)
    >>> loo_errors = int((abs(clf.loo_residuals_[0]) > 1).sum())
    """

    merges_copies = False  # leaving one of two equal rows out is not leaving both out

    def _norm(self) -> tuple[Slack, Constraint]:
        return slacks.SquaredTwoNorm(), EQUALITY

    def _train(self, dataset: Dataset) -> Model:
        self.loo_residuals_: Array | None = None
        return super()._train(dataset)

    def _solve(self, machine: Any, problems: list[Subproblem], dataset: Dataset, tol: float) -> list[DualSolution]:
        memory = int(min(self.cache_size, 2.0**30) * 2**20)
        left_out: list[Array | None] = []
        solutions: list[DualSolution] = []
        # Problems over the same rows have the same matrix.
        for view, same in groupby(problems, key=lambda problem: problem.view):
            group = list(same)
            system = least_squares.LinearSystem(machine, view, float(self.C) * group[0].weights, dataset.threads)
            targets = np.array([problem.y for problem in group])
            progress = DualProgress(group[0].name) if self.verbose else None
            found, residuals = least_squares.solve(
                system, targets, tol, self.max_iter, self.precision == "float64", memory, progress
            )
            solutions += found
            left_out += [None] * len(group) if residuals is None else list(residuals)
        if all(residuals is not None for residuals in left_out):
            self.loo_residuals_ = np.full((len(problems), dataset.n_samples), np.nan)
            for row, problem, residuals in zip(self.loo_residuals_, problems, left_out, strict=True):
                row[dataset.numbers[problem.rows]] = residuals
        return solutions
