"""The Lp-norm support vector machine (Huang, Zheng, King and Lyu)."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from ..solvers.sparse.lp import VARIANTS
from ..training.sparse import PenaltySpec, train_penalised
from . import validation
from .base import KernelClassifier, atomic
from .checked_data import checked_dataset
from .documentation import documented
from .targets import ClassTargets
from .validation import check_choice, check_common, check_number, check_number_or


@documented
class LpSVC(KernelClassifier):
    """Kernel classifier that determines how few training rows it needs.

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
    <kernel>
    <gamma>
    <degree>
    <class_weight>
    <multi_class>
    <probability>
    tol : float, default=1e-6
        Relative duality gap. Rounds (p other than 1, 2 and infinity) also go on until no coefficient changes by more
        than this fraction of itself.
    max_iter : int, default=500
        Most rounds; p = 1 and infinity: most steps of the interior point.
    <n_jobs>
    <verbose>

    Attributes
    ----------
    <vectors_>
    <support_>
    objective_ : ndarray of shape (n_outputs,)
        Value of what is minimised, at p = 0 with the logarithms of the vectors that are kept: an upper bound on the
        optimum, which may be lower.
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
    <probability_coef_>
    <kernel_>

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
        probability: bool = False,
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
        self.probability = probability

    @documented
    @atomic
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model.

        <fit_classifier>
        """
        spec = self._spec()
        dataset = checked_dataset(self, X, y, sample_weight, ClassTargets(self.class_weight))
        rows = dataset.sorted()
        model = train_penalised(rows, validation.named_kernel(self, rows), spec)
        validation.warn_of_inputs(self, dataset, model.expansion.kernel)
        return self._set_fitted(dataset, model)

    def _spec(self) -> PenaltySpec:
        """The parameters for training; ValueError for those that make no sense."""
        number = isinstance(self.p, numbers.Real) and not isinstance(self.p, (bool, np.bool_))
        if not number or not (0 <= self.p <= 2 or self.p == np.inf):
            raise ValueError(
                f"p={self.p!r} must be a number from 0 to 2, or infinity (numpy.inf); try 0 for the fewest vectors"
            )
        check_number("C", self.C, above=0)
        check_number_or("C_alpha", self.C_alpha, "auto", above=0)
        check_choice("variant", self.variant, tuple(VARIANTS))
        check_common(self, least_iter=1)
        return PenaltySpec(
            float(self.p),
            float(self.C),
            0.1 * float(self.C) if self.C_alpha == "auto" else float(self.C_alpha),
            self.variant,
            self.multi_class,
            self.tol,
            self.max_iter,
            bool(self.probability),
            bool(self.verbose),
        )
