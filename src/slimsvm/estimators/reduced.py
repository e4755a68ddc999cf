"""Reduced support vector machine: vectors drawn at random from the training rows."""

from __future__ import annotations

from typing import Any

from ..formulation import Array
from ..parts import bases, regularizers
from ..vectors.training import TrainingRows, one_vs_rest
from .small_basis import Model, SmallBasisClassifier
from .validation import check_number


class ReducedSVC(SmallBasisClassifier):
    """Kernel machine over training rows drawn at random.

    The baseline of small machines: as cheap as can be, and worse than learned vectors of the same number.

    Parameters
    ----------
    n_vectors : int, default=50
        How many vectors the model keeps at most, all classes together. Duplicates are not drawn.
    regularizer : {"identity", "kernel"} or object of `slimsvm.regularizers`, default="identity"
        ``"identity"``: the sum of squared coefficients (RSVM [1]_); ``"kernel"``: the norm of f in the kernel's space
        (MRSVM [2]_).
    slack : {"l2", "l1"} or object of `slimsvm.losses`, default="l2"
        C/2 times the sum of squared slacks, or C times the sum of slacks.
    C : float, default=1.0
        Cost of slacks.
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
        Factors of C by class.
    multi_class : {"ovo", "ovr"}, default="ovo"
        More than two classes: a machine for each pair of classes, or for each class against the others; all of
        them over the same vectors.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Scores for each class, or for each pair of classes (only where ``multi_class="ovo"``).
    tol : float, default=1e-6
        Relative duality gap to be reached.
    max_iter : int, default=100
        Most iterations of the solver.
    cache_size : float, default=1000
        Megabytes for features; beyond, they are computed anew in each pass over the rows.
    n_jobs : int, optional
        Threads for kernel values; None is one, -1 means all cores.
    random_state : int, RandomState or None, default=0
        Seed of the draw; None draws anew in each fit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    vectors_ : ndarray or sparse matrix of shape (n_vectors_, n_features_in_)
        Row numbers of the training set where the kernel is precomputed.
    vector_coef_ : ndarray of shape (n_outputs, n_vectors_)
        ``f = vector_coef_ @ k(vectors_, x) + intercept_``; one output for two classes, one for each
        pair of classes (positive means the first of the pair) or for each class otherwise.
    intercept_ : ndarray of shape (n_outputs,)
    support_ : ndarray of shape (n_vectors_,)
        Rows of the training set that `vectors_` are.
    n_vectors_ : int
    objective_ : ndarray of shape (n_outputs,)
        Value of the problem that is minimised over coefficients and bias.
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
    .. [1] Y.-J. Lee, O. L. Mangasarian. RSVM: Reduced Support Vector Machines. SDM 2001.
    .. [2] M. Wu, B. Schoelkopf, G. Bakir. Building Sparse Large Margin Classifiers. ICML 2005.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import ReducedSVC
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> ReducedSVC(n_vectors=15, C=100).fit(X, y).n_vectors_
    15
    """

    def __init__(
        self,
        n_vectors: int = 50,
        *,
        regularizer: Any = "identity",
        slack: Any = "l2",
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        class_weight: Any = None,
        multi_class: str = "ovo",
        decision_function_shape: str = "ovr",
        tol: float = 1e-6,
        max_iter: int = 100,
        cache_size: float = 1000,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        self.n_vectors = n_vectors
        self.regularizer = regularizer
        self.slack = slack
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
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_params(self) -> None:
        self._check_common()
        check_number("C", self.C, above=0)
        check_number("n_vectors", self.n_vectors, at_least=1, integer=True)

    def _train(self, rows: TrainingRows, sample_weight: Array | None, lookup: Any) -> Model:
        kernel = self._kernel(rows, sample_weight, lookup, self.gamma)
        problem = rows.problem(kernel, one_vs_rest(rows.codes, rows.n_classes, self.C * rows.weights))
        choice = bases.Random().choose(problem, self.n_vectors, self._rng())
        regularizer = regularizers.resolve(self.regularizer)
        fitted = self._coefficients(rows, kernel, choice.vectors, self._machines(rows, self.C), regularizer)
        return Model(kernel, choice.vectors, choice.rows, fitted)
