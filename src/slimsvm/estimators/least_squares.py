"""The least-squares support vector machine: one linear system."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dual import least_squares
from ..dual.solve import DualSolution, Progress
from ..formulation import EQUALITY, Array, Constraint, Slack
from ..parts import slacks
from .base import AllPointsClassifier, BinaryProblem, TrainingSet


class LeastSquaresSVC(AllPointsClassifier):
    """Least-squares support vector machine of Suykens & Vandewalle.

    Minimises ``1/2 |f|^2 + C/2 * sum(xi**2)`` with ``xi = 1 - y (f(x) + b)``: ridge regression on the labels in the
    kernel's space. Every row becomes a vector.

    Problems whose kernel matrix fits in ``cache_size`` are solved directly, with the leave-one-out residuals as a gift.
    Larger ones are solved by conjugate gradients with a low-rank preconditioner: the matrix is never
    formed, its products are computed from the rows, for all classes at once where ``multi_class="ovr"``.

    Parameters
    ----------
    C : float, default=1.0
        Cost of slacks, above 0.
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"}, function or kernel, default="rbf"
        A function gets two sets of rows and returns the matrix of kernel values.
    gamma : {"scale", "auto"} or float, default="scale"
        Factor in the rbf, laplacian, poly and sigmoid kernels. "scale": ``1 / (n_features * X.var())``;
        "auto": ``1 / n_features``.
    degree : int, default=3
        Degree of the poly kernel.
    coef0 : float, default=0.0
        Constant in the poly and sigmoid kernels.
    class_weight : dict or "balanced", optional
        How often the rows of a class count: a factor of C in sums of slacks.
    multi_class : {"ovo", "ovr"}, default="ovo"
        More than two classes: a machine for each pair of classes, or for each class against the others.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Scores for each class, or for each pair of classes (only where ``multi_class="ovo"``).
    tol : float, default=1e-3
        The fit ends when the relative duality gap is at most this.
    max_iter : int, default=-1
        Most iterations of conjugate gradients; -1: no limit. The direct solution counts as one.
    cache_size : float, default=400
        Megabytes for the kernel matrix (direct) or for the preconditioner.
    precision : {"float32", "float64"}, default="float32"
        Of the kernel values in the iterations. The solution is certified in float64 either way, and the
        iterations turn to float64 by themselves where float32 is not enough.
    n_jobs : int, optional
        Threads for the fit and for predictions; -1: all cores.
    verbose : bool, default=False
        Show objective, gap and time while fitting.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    vectors_ : ndarray or sparse matrix of shape (n_vectors_, n_features_in_)
        Each support vector once; row numbers of the training set where the kernel is precomputed.
    vector_coef_ : ndarray of shape (n_outputs, n_vectors_)
        ``f = vector_coef_ @ k(vectors_, x) + intercept_``; one output for two classes, one for each
        pair of classes (positive means the first of the pair) or for each class otherwise.
    intercept_ : ndarray of shape (n_outputs,)
    support_ : ndarray of shape (n_vectors_,)
        Rows of the training set that `vectors_` are, grouped by class.
    n_vectors_ : int
    objective_ : ndarray of shape (n_outputs,)
        Value of the problem that is minimised.
    duality_gap_ : ndarray of shape (n_outputs,)
        Proof of the solution: the objective is at most this fraction above the best possible one.
    n_iter_ : ndarray of shape (n_outputs,)
    kernel_ : kernel object
        The kernel with gamma made a number.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X had column names.
    loo_residuals_ : ndarray of shape (n_outputs, n_samples) or None
        ``y - f(x)`` of each row for the machine trained without it, y = 1 or -1; below 1 in size where that machine
        is right. NaN for rows that a machine does not use. None where the system was not solved directly.

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

    def __init__(
        self,
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
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.precision = precision
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _norm(self) -> tuple[Slack, Constraint]:
        return slacks.SquaredTwoNorm(), EQUALITY

    def _solve(self, machine: Any, problems: list[BinaryProblem], n_samples: int) -> list[DualSolution]:
        memory = int(min(self.cache_size, 2.0**30) * 2**20)
        self._residuals: list[Array | None] = []
        solutions: list[DualSolution] = []
        for group in _together(problems):
            first = group[0]
            system = least_squares.System(machine, first.view, float(self.C) * first.weights)
            targets = np.array([problem.y for problem in group])
            progress = Progress(group[0].label) if self.verbose else None
            found, residuals = least_squares.solve(
                system, targets, self.tol, self.max_iter, self.precision == "float64", memory, progress
            )
            solutions += found
            self._residuals += [None] * len(group) if residuals is None else list(residuals)
        return solutions

    def _keep(
        self, training: TrainingSet, problems: list[BinaryProblem], solutions: list[DualSolution], precomputed: bool
    ) -> None:
        super()._keep(training, problems, solutions, precomputed)
        found = self.__dict__.pop("_residuals")
        self.loo_residuals_ = None
        if all(residuals is not None for residuals in found):
            self.loo_residuals_ = np.full((len(problems), training.X.shape[0]), np.nan)
            for output, (problem, residuals) in enumerate(zip(problems, found, strict=True)):
                self.loo_residuals_[output, problem.rows] = residuals


def _together(problems: list[BinaryProblem]) -> list[list[BinaryProblem]]:
    """Problems over the same rows have the same matrix: one group."""
    groups: list[list[BinaryProblem]] = []
    for problem in problems:
        if groups and groups[-1][0].view == problem.view:
            groups[-1].append(problem)
        else:
            groups.append([problem])
    return groups
