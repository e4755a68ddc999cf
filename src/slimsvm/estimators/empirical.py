"""Support vector machine in the reduced empirical feature space (Iwamura and Abe)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..formulation import Array
from ..parts import bases, regularizers
from ..vectors.training import TrainingRows, one_vs_rest
from .small_basis import Model, SmallBasisClassifier
from .validation import check_choice, check_number


class EmpiricalSVC(SmallBasisClassifier):
    """Kernel machine over training rows that are independent of each other in the kernel's space.

    Rows are kept while their squared distance to the span of those kept before is above ``eta``: a few rows then
    span what all of them do. The machine is trained in the features ``k(x, kept rows)``.

    Parameters
    ----------
    eta : float, default=1e-3
        Threshold for a row to be kept, relative to the largest k(x, x). Smaller keeps more rows; with 0 the
        machine is that of all rows.
    selection : {"order", "pivoted", "inputs"}, default="order"
        ``"order"``: rows as they come, in one pass. ``"pivoted"``: always the row farthest from those kept, which
        needs 7-21 % fewer for the same eta. ``"inputs"`` (linear kernel only): no rows, the inputs themselves are
        the features.
    regularizer : {"kernel", "identity"} or object of `slimsvm.regularizers`, default="kernel"
        ``"kernel"``: the norm of f in the kernel's space; C means the same as in the machine over all rows.
        ``"identity"``: the sum of squared coefficients, as in [1]_.
    slack : {"l1", "l2"} or object of `slimsvm.losses`, default="l1"
        C times the sum of slacks, or C/2 times the sum of their squares.
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
        Rows of the training set that `vectors_` are; not with ``selection="inputs"``.
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
    .. [1] K. Iwamura, S. Abe. Sparse Support Vector Machines Trained in the Reduced Empirical Feature Space.
       IJCNN 2008.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import EmpiricalSVC
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> clf = EmpiricalSVC(eta=0.01).fit(X, y)
    >>> clf.n_vectors_ < 50
    True
    """

    def __init__(
        self,
        eta: float = 1e-3,
        selection: str = "order",
        *,
        regularizer: Any = "kernel",
        slack: Any = "l1",
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
    ):
        self.eta = eta
        self.selection = selection
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

    def _check_params(self) -> None:
        self._check_common()
        check_number("C", self.C, above=0)
        check_number("eta", self.eta, at_least=0)
        check_choice("selection", self.selection, ("order", "pivoted", "inputs"))
        if self.selection == "inputs" and getattr(self.kernel, "name", self.kernel) != "linear":
            raise ValueError(
                "selection='inputs' uses the inputs themselves as features, as only kernel='linear' does; "
                f"kernel={self.kernel!r} needs selection='order' or 'pivoted'"
            )

    def _train(self, rows: TrainingRows, sample_weight: Array | None, lookup: Any) -> Model:
        kernel = self._kernel(rows, sample_weight, lookup, self.gamma)
        problem = rows.problem(kernel, one_vs_rest(rows.codes, rows.n_classes, self.C * rows.weights))
        basis = bases.Inputs() if self.selection == "inputs" else bases.Cholesky(self.eta, self.selection)
        choice = basis.choose(problem, rows.X.shape[0], np.random.default_rng(0))
        regularizer = regularizers.resolve(self.regularizer)
        fitted = self._coefficients(rows, kernel, choice.vectors, self._machines(rows, self.C), regularizer)
        return Model(kernel, choice.vectors, choice.rows, fitted)
