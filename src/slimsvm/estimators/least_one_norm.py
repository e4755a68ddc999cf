"""The least-1-norm machine: median regression on the labels."""

from __future__ import annotations

from typing import Any

from ..formulation import EQUALITY, Constraint, Slack
from ..parts import slacks
from .base import AllPointsClassifier


class LeastOneNormSVC(AllPointsClassifier):
    """Least-1-norm support vector machine of Lopez & Dorronsoro.

    Minimises ``1/2 |f|^2 + C * sum(|xi|)`` with ``xi = 1 - y (f(x) + b)``: rows beyond the margin cost as much as rows
    short of it. It is to the least-squares machine what the median is to the mean, and the regression
    machine with a tube of width 0 on the labels.

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
        The fit ends when the relative duality gap and the violation of the optimality conditions are at most this.
    max_iter : int, default=-1
        Most SMO steps for each binary problem; -1: no limit.
    cache_size : float, default=400
        Megabytes for kernel rows.
    precision : {"float32", "float64"}, default="float32"
        Of the kernel rows that the solver works on. The solution is certified in float64 either way, and
        the solver turns to float64 rows by itself where float32 is not enough.
    n_jobs : int, optional
        Threads for the fit and for predictions; -1: all cores.
    verbose : bool, default=False
        Show objective, gap, vectors and time while fitting.

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

    References
    ----------
    .. [1] J. Lopez, J. R. Dorronsoro. Least 1-Norm SVMs: a New SVM Variant between Standard and LS-SVMs.
       ESANN 2010.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import LeastOneNormSVC
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> LeastOneNormSVC(C=1.0).fit(X, y).score(X, y) > 0.9
    True
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
        return slacks.OneNorm(), EQUALITY
