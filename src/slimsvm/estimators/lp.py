"""The Lp-norm support vector machine (Huang, Zheng, King and Lyu)."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..data.dataset import Dataset, Output, outputs
from ..model.expansion import Expansion, Model, join_outputs
from ..solvers.sparse.lp import VARIANTS, train_lp
from ..solvers.sparse.reweighting import SparseSolution
from ..utils.progress import ProgressLine
from ..utils.warnings import warn
from .documentation import documented
from .probability import LayerClassifier
from .validation import check_choice, check_common, check_number, check_number_or, named_kernel


@documented
class LpSVC(LayerClassifier):
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

    def _check_params(self) -> None:
        number = isinstance(self.p, numbers.Real) and not isinstance(self.p, (bool, np.bool_))
        if not number or not (0 <= self.p <= 2 or self.p == np.inf):
            raise ValueError(
                f"p={self.p!r} must be a number from 0 to 2, or infinity (numpy.inf); try 0 for the fewest vectors"
            )
        check_number("C", self.C, above=0)
        check_number_or("C_alpha", self.C_alpha, "auto", above=0)
        check_choice("variant", self.variant, tuple(VARIANTS))
        check_common(self, least_iter=1)

    def _train(self, dataset: Dataset) -> Model:
        dataset = dataset.sorted()
        kernel = named_kernel(self, dataset)

        C_alpha = 0.1 * float(self.C) if self.C_alpha == "auto" else float(self.C_alpha)
        wanted = outputs(dataset.n_classes, self.multi_class)

        def learn(train: Dataset) -> tuple[Any, Any]:
            kept = [self._one(train, kernel, output, C_alpha, quiet=True).kept for output in wanted]
            return kernel, train.X[np.unique(np.concatenate(kept))]

        found = [self._one(dataset, kernel, output, C_alpha) for output in wanted]
        self._tell(found, C_alpha)
        kept, coef = join_outputs([s.kept for s in found], [s.coef for s in found], dataset.numbers)
        columns = {name: np.array([getattr(s, name) for s in found]) for name in ("bias", "objective", "gap", "n_iter")}
        model = Model(
            Expansion(kernel, dataset.X[kept], coef, columns["bias"]),
            dataset.numbers[kept],
            columns["objective"],
            columns["gap"],
            columns["n_iter"],
            {"history_": [s.history for s in found], "C_alpha_": C_alpha},
        )
        return self._with_layer(dataset, model, float(self.C), learn, np.random.default_rng(0))

    def _one(
        self, dataset: Dataset, kernel: Any, output: Output, C_alpha: float, quiet: bool = False
    ) -> SparseSolution:
        """One binary problem; its vectors are numbers of the task's rows."""
        rows, y, weights = dataset.binary(output)
        line = ProgressLine(dataset.name(output)) if self.verbose and not quiet else None

        def watch(round_: int, vectors: int, value: float) -> None:
            assert line is not None
            line.update(f"round {round_}, {vectors} vectors, objective {value:.6g}")

        found = train_lp(
            kernel,
            dataset.X[rows],
            y,
            float(self.C) * weights,
            float(self.p),
            C_alpha,
            self.variant,
            self.tol,
            self.max_iter,
            dataset.threads,
            watch if line else None,
        )
        if line is not None:
            line.finish(f"{found.n_iter} rounds, {len(found.kept)} vectors, objective {found.objective:.6g}")
        return found.of_rows(rows)

    def _tell(self, found: list[SparseSolution], C_alpha: float) -> None:
        """Warnings about what was found."""
        unsettled = sum(not s.converged for s in found)
        unsolved = sum(s.gap > self.tol for s in found)
        worst = f"the largest relative duality gap is {max(s.gap for s in found):.1e}, tol={self.tol:g}"
        if unsettled:
            warn(
                f"max_iter={self.max_iter} ended {unsettled} of {len(found)} binary problems before they converged "
                f"({worst}); raise max_iter or tol, or lower C_alpha",
                ConvergenceWarning,
            )
        elif unsolved:
            warn(
                f"rounding errors ended {unsolved} of {len(found)} binary problems before they were solved: {worst}; "
                "scale the features, lower C or raise tol",
                ConvergenceWarning,
            )
        empty = sum(len(s.kept) == 0 for s in found)
        if empty:
            warn(
                f"C_alpha={C_alpha:g} leaves no vectors in {empty} of {len(found)} binary problems, which now always "
                f"answer the more frequent class; lower C_alpha or raise C (C={self.C:g})"
            )
