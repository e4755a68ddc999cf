"""The Lp-norm support vector machine (Huang, Zheng, King and Lyu)."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..formulation import Array
from ..progress import ProgressLine
from ..sparse.lp import VARIANTS, train_lp
from ..sparse.reweighting import Sparse
from ..vectors.training import Coefficients, Machines, TrainingRows
from .small_basis import Model, SmallBasisClassifier
from .validation import check_choice, check_number, thread_count


class LpSVC(SmallBasisClassifier):
    """Kernel machine that finds by itself how few training rows it needs.

    Minimises ``1/2 a'Ka + C sum_i xi_i + penalty(a)`` over the coefficients a of ``f = Ka + b``, where the slacks are
    ``xi = (1 - y f)_+``. The penalty is ``C_alpha / p * sum |a_j|^p``; at p = 0 it is the limit
    ``C_alpha * sum log |a_j|`` over the vectors that are kept, at p = infinity ``C_alpha * max |a_j|``. Below p = 1
    most coefficients are zero: a handful of vectors often does what hundreds do for a support vector machine.

    Parameters
    ----------
    p : float, default=0.0
        Norm of the coefficients: 0 to 2, or infinity. The smaller, the fewer vectors. From 1 on the problem is convex;
        below, a local minimum is found (rounds of reweighting that start from equal weights).
    C : float, default=1.0
        Cost of slacks.
    C_alpha : "auto" or float, default="auto"
        Cost of coefficients. ``C_alpha / C`` trades vectors against accuracy; 0.03 to 1 are worth a try. "auto":
        ``0.1 * C``.
    variant : {"exact", "diagonal"}, default="exact"
        ``"exact"``: as above. ``"diagonal"``: the sum of squared coefficients, ``1/2 a'a``, in place of the norm
        ``1/2 a'Ka``; another model, with more vectors.
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
        More than two classes: a machine for each pair of classes, or for each class against the others.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Scores for each class, or for each pair of classes (only where ``multi_class="ovo"``).
    tol : float, default=1e-6
        Relative duality gap. Rounds (p other than 1, 2 and infinity) also go on until no coefficient changes by more
        than this fraction of itself.
    max_iter : int, default=500
        Most rounds; p = 1 and infinity: most steps of the interior point.
    n_jobs : int, optional
        Threads for kernel values; None is one, -1 means all cores.
    verbose : bool, default=False
        Show rounds, vectors and objective on standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    vectors_ : ndarray or sparse matrix of shape (n_vectors_, n_features_in_)
        Row numbers of the training set where the kernel is precomputed. Empty if C_alpha is too large: the model is
        then the majority class.
    vector_coef_ : ndarray of shape (n_outputs, n_vectors_)
        ``f = vector_coef_ @ k(vectors_, x) + intercept_``; one output for two classes, one for each
        pair of classes (positive means the first of the pair) or for each class otherwise.
    intercept_ : ndarray of shape (n_outputs,)
    support_ : ndarray of shape (n_vectors_,)
        Rows of the training set that `vectors_` are. Of equal rows only the first is ever a vector.
    n_vectors_ : int
    objective_ : ndarray of shape (n_outputs,)
        Value of what is minimised, at p = 0 with the logarithms of the vectors that are kept.
    duality_gap_ : ndarray of shape (n_outputs,)
        Relative duality gap of the coefficients and the bias returned: of the whole problem where it is convex (p from
        1 on); below p = 1 that of the convex problem of one more round, in which the penalty is the quadratic that
        touches it at the coefficients returned, and the vectors are those that are kept.
    n_iter_ : ndarray of shape (n_outputs,)
        Rounds.
    history_ : list of dict, one for each output
        Round by round ``"n_vectors"`` and ``"objective"``, which never rises. At p = 0 a vector that is gone counts
        with the logarithm of the size below which it went; all values are shifted so that the last is `objective_`.
        Large problems start with an approximate kernel; those values are shifted to meet the kernel's own.
    C_alpha_ : float
        C_alpha as used.
    kernel_ : kernel object
        The kernel with gamma made a number.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X had column names.

    Notes
    -----
    Below p = 1 every distinct row is a candidate, however many there are, and no matrix of all rows against all rows is
    formed. From p = 1 on, that is so up to 2000 distinct rows; beyond, the candidates are 500 of them, each as far as
    possible from the span of the others.

    References
    ----------
    .. [1] K. Huang, D. Zheng, I. King, M. R. Lyu. Arbitrary Norm Support Vector Machines. Neural Computation 21, 2009.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import LpSVC
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> clf = LpSVC(gamma=2).fit(X, y)
    >>> clf.n_vectors_ < 15, bool(clf.score(X, y) > 0.95)
    (True, True)
    """

    def __init__(
        self,
        p: float = 0.0,
        *,
        C: float = 1.0,
        C_alpha: float | str = "auto",
        variant: str = "exact",
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        class_weight: Any = None,
        multi_class: str = "ovo",
        decision_function_shape: str = "ovr",
        tol: float = 1e-6,
        max_iter: int = 500,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        self.p = p
        self.C = C
        self.C_alpha = C_alpha
        self.variant = variant
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_params(self) -> None:
        number = isinstance(self.p, numbers.Real) and not isinstance(self.p, (bool, np.bool_))
        if not number or not (0 <= self.p <= 2 or self.p == np.inf):
            raise ValueError(
                f"p={self.p!r} must be a number from 0 to 2, or infinity (numpy.inf); try 0 for the fewest vectors"
            )
        check_number("C", self.C, above=0)
        if not isinstance(self.C_alpha, str) or self.C_alpha != "auto":
            if isinstance(self.C_alpha, str):
                raise ValueError(f"C_alpha={self.C_alpha!r} must be 'auto' (0.1 * C) or a number above 0")
            check_number("C_alpha", self.C_alpha, above=0)
        check_choice("variant", self.variant, tuple(VARIANTS))
        check_number("coef0", self.coef0)
        check_choice("multi_class", self.multi_class, ("ovo", "ovr"))
        check_choice("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        check_number("tol", self.tol, above=0)
        check_number("max_iter", self.max_iter, at_least=1, integer=True)
        thread_count(self.n_jobs)

    def _train(self, rows: TrainingRows, sample_weight: Array | None, lookup: Any) -> Model:
        kernel = self._kernel(rows, sample_weight, lookup, self.gamma)
        self.C_alpha_ = 0.1 * float(self.C) if self.C_alpha == "auto" else float(self.C_alpha)
        problems = [(group, o) for group in self._machines(rows, float(self.C)) for o in range(group.Y.shape[1])]
        found = [self._one(rows, kernel, group, o, number) for number, (group, o) in enumerate(problems, 1)]
        self._warn(found)
        self.history_ = [s.history for s in found]
        kept = np.unique(np.concatenate([s.kept for s in found]))
        coef = np.zeros((len(found), len(kept)))
        for o, s in enumerate(found):
            coef[o, np.searchsorted(kept, s.kept)] = s.coef
        fitted = Coefficients(
            coef, *(np.array([getattr(s, name) for s in found]) for name in ("bias", "objective", "gap", "n_iter"))
        )
        return Model(kernel, rows.X[kept], kept, fitted)

    def _one(self, rows: TrainingRows, kernel: Any, group: Machines, o: int, number: int) -> Sparse:
        """One machine; its vectors are numbers of training rows."""
        X = rows.X if group.rows is None else rows.X[group.rows]
        line = ProgressLine(f"machine {number}") if self.verbose else None

        def watch(round_: int, vectors: int, value: float) -> None:
            assert line is not None
            line.update(f"round {round_}, {vectors} vectors, objective {value:.6g}")

        found = train_lp(
            kernel,
            X,
            group.Y[:, o],
            group.C[:, o],
            float(self.p),
            self.C_alpha_,
            self.variant,
            self.tol,
            self.max_iter,
            rows.threads,
            watch if line else None,
        )
        if line is not None:
            line.finish(f"{found.n_iter} rounds, {len(found.kept)} vectors, objective {found.objective:.6g}")
        return found if group.rows is None else found.of_rows(group.rows)

    def _warn(self, found: list[Sparse]) -> None:
        unsettled = sum(not s.converged for s in found)
        unsolved = sum(s.gap > self.tol for s in found)
        worst = f"the largest relative duality gap is {max(s.gap for s in found):.1e}, tol={self.tol:g}"
        if unsettled:
            warnings.warn(
                f"max_iter={self.max_iter} ended {unsettled} of {len(found)} machines before they came to rest "
                f"({worst}); raise max_iter or tol, or lower C_alpha",
                ConvergenceWarning,
                stacklevel=5,
            )
        elif unsolved:
            warnings.warn(
                f"rounding errors ended {unsolved} of {len(found)} machines before they were solved: {worst}; scale "
                "the features, lower C or raise tol",
                ConvergenceWarning,
                stacklevel=5,
            )
        empty = sum(len(s.kept) == 0 for s in found)
        if empty:
            warnings.warn(
                f"C_alpha={self.C_alpha_:g} leaves no vectors in {empty} of {len(found)} machines, which now always "
                f"answer the more frequent class; lower C_alpha or raise C (C={self.C:g})",
                stacklevel=5,
            )

    def _warn_if_unsolved(self, fitted: Coefficients) -> None:
        """`_warn` has said it."""
