"""Support vector machines on a budget: only the largest slacks count."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..dual.solve import DualSolution
from ..expansion import Expansion
from ..formulation import INEQUALITY, Array, Constraint, Slack
from ..parts import kernels, losses, slacks
from ..parts.bases import Problem, dense, forward_rows
from ..parts.regularizers import KernelNorm
from ..vectors.learning import epsilon_norm, learn
from ..vectors.training import Machines, fit_coefficients
from .base import AllPointsClassifier, BinaryProblem, TrainingSet
from .small_basis import blas_threads
from .validation import check_choice, check_number, thread_count

# Candidates for a vector are all rows while this many kernel values are to be computed, then some of them.
MOST_VALUES = 1 << 22
# In units of 1 / k(x, x). Few vectors cannot follow a cost that leaves hardly any slack over all rows: they overfit.
MOST_COST = 30.0


class BudgetSVC(AllPointsClassifier):
    """Support vector machine in which about ``budget`` slacks count: the machines of Dekel & Singer.

    Minimises ``1/2 |f|^2 + C * phi(xi)`` where phi is the sum of the ``budget`` largest slacks (``norm="l1"``), or
    the norm between the Euclidean and the largest slack that counts about ``budget`` of them (``"l2"``).

    The budget is a soft knob, not a limit on the number of vectors. While it matters (below twice the
    smaller class), it is a *lower* bound: at least ``budget`` rows become vectors, and usually more, as rows exactly
    on the margin are vectors too. A smaller budget gives fewer vectors down to a floor that the data set.
    With ``norm="l1"`` and a budget that matters, the machine is that of nu-SVM with ``nu = budget / n_samples``, and
    C only scales f.

    ``hard`` makes the budget a limit: the model then has at most ``budget`` vectors, all classes together. The machine
    above says how much a slack costs: after a change of scale it is a machine with the hinge (``"l1"``) or the
    squared hinge (``"l2"``), whose C is taken over (up to 30, in units of 1 / k(x, x)). That machine is fitted again
    over few vectors, exactly.

    Parameters
    ----------
    budget : float, default=50
        Slacks that count, above 0; fractions are fine. From twice the number of rows of the smaller class on,
        ``norm="l1"`` is the standard machine; at 2 and below, only the largest slack counts.
    norm : {"l1", "l2"}, default="l1"
        ``"l1"``: `slimsvm.slacks.TopSum`; ``"l2"``: `slimsvm.slacks.TopTwoNorm`.
    hard : {None, "select", "learn"}, default=None
        ``None``: the soft budget. ``"select"``: at most ``budget`` vectors, training rows chosen one by one for what
        they gain. ``"learn"``: they start there and are moved, as in `SlimSVC`: more accurate.
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
    random_state : int, RandomState or None, default=0
        Seed of the candidates that ``hard`` draws where rows are many.
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
        Rows of the training set that `vectors_` are; not with ``hard="learn"``.
    n_vectors_ : int
    objective_ : ndarray of shape (n_outputs,)
        Value of the problem that is minimised; with ``hard``, of the machine over the few vectors.
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
    .. [1] O. Dekel, Y. Singer. Support Vector Machines on a Budget. NIPS 2006.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import BudgetSVC
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> clf = BudgetSVC(budget=20, C=1.0).fit(X, y)
    >>> clf.n_vectors_ >= 20
    True
    """

    def __init__(
        self,
        budget: float = 50,
        norm: str = "l1",
        hard: str | None = None,
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
        random_state: Any = 0,
        verbose: bool = False,
    ):
        self.budget = budget
        self.norm = norm
        self.hard = hard
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
        self.random_state = random_state
        self.verbose = verbose

    def _norm(self) -> tuple[Slack, Constraint]:
        check_number("budget", self.budget, above=0)
        check_choice("norm", self.norm, ("l1", "l2"))
        if self.hard is not None:
            check_choice("hard", self.hard, ("select", "learn"))
            check_number("budget", self.budget, at_least=1)
            if self.hard == "learn" and not _differentiable(self.kernel):
                raise ValueError(
                    f"hard='learn' needs a kernel with a derivative (a method pullback); kernel={self.kernel!r} has "
                    "none. Use hard='select'"
                )
        return (slacks.TopSum if self.norm == "l1" else slacks.TopTwoNorm)(self.budget), INEQUALITY

    def _accuracy(self) -> float:
        # The cost that is taken over comes from small differences between slacks.
        return self.tol if self.hard is None else min(self.tol, 1e-5)

    def _keep(
        self, training: TrainingSet, problems: list[BinaryProblem], solutions: list[DualSolution], precomputed: bool
    ) -> None:
        super()._keep(training, problems, solutions, precomputed)
        if self.hard is not None:
            with blas_threads(len(training.order)):
                self._shrink(training, problems, solutions)

    def _shrink(self, training: TrainingSet, problems: list[BinaryProblem], solutions: list[DualSolution]) -> None:
        """The machines again, over at most ``budget`` vectors that all of them share."""
        threads = thread_count(self.n_jobs)
        kernel: Any = self.kernel_
        X = training.X[training.order]
        scores = Expansion(kernel, self.vectors_, self.vector_coef_, self.intercept_).decision(X, threads)
        if kernel.name == "precomputed":
            kernel, X = kernels.Lookup(training.X), training.order[:, None]
        most = MOST_COST / max(float(kernel.diagonal(X).mean()), np.finfo(float).tiny)
        groups, Y, C = [], np.zeros(scores.shape), np.zeros(scores.shape)
        for o, (problem, solution) in enumerate(zip(problems, solutions, strict=True)):
            at = problem.positions
            cost = problem.weights * min(most, self._equal_cost(problem, solution, 1 - problem.y * scores[at, o]))
            Y[at, o], C[at, o] = problem.y, cost
            groups.append(Machines(at, problem.y[:, None], cost[:, None]))
        loss = slacks.loss(self.norm)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        codes = np.repeat(np.arange(len(training.lengths)), training.lengths)
        all_machines = Problem(kernel, X, codes, Y, C, threads)
        # All rows may be chosen, not only the vectors found so far: those lie at the border, good vectors do not.
        candidates = max(59, MOST_VALUES // len(codes))
        rows = forward_rows(all_machines, int(self.budget), rng, candidates=candidates)
        vectors, norm = X[rows], KernelNorm()
        if self.hard == "learn":
            norm = epsilon_norm(kernel, X)
            smooth = loss if loss.smooth else losses.HuberHinge()
            vectors = learn(all_machines, dense(vectors), smooth, rng, regularizer=norm).vectors
            del self.support_
        else:
            self.support_ = training.order[rows]
        fitted = fit_coefficients(kernel, X, vectors, groups, loss, norm, min(self.tol, 1e-6), threads=threads)
        if (fitted.gap > self.tol).any():
            warnings.warn(
                f"the machine over {len(rows)} vectors is not solved: relative duality gap {fitted.gap.max():.2e}, "
                f"asked for tol={self.tol:g}. Scale the features or lower C",
                ConvergenceWarning,
                stacklevel=6,
            )
        self.vectors_ = self.support_ if kernel.name == "lookup" else vectors
        self.n_vectors_ = len(rows)
        self.vector_coef_, self.intercept_ = fitted.coef, fitted.bias
        self.objective_, self.duality_gap_ = fitted.objective, fitted.gap

    def _equal_cost(self, problem: BinaryProblem, solution: DualSolution, short: Array) -> float:
        """C of the machine with the (squared) hinge that this one is, up to scale.

        Only slacks above a threshold t have a say; measured from there, margins are 1 - t instead of 1. Dividing f by
        that gives a machine with margins 1, where duals are C / (1 - t), or proportional to the slacks.
        """
        slack = np.maximum(short, 0)
        if self.norm == "l1":
            order = np.argsort(-slack, kind="stable")
            reached = np.cumsum(problem.weights[order]) >= self.budget
            t = float(slack[order][reached.argmax()]) if reached.any() else 0.0
            return float(self.C) / max(1 - t, 1e-3)
        idle = slack[solution.duals == 0]
        above = np.maximum(slack - (idle.max() if len(idle) else 0.0), 0)
        size = float(np.sqrt(problem.weights @ above**2))
        return float(self.C) / size if size > 0 else 1e6 * float(self.C)


def _differentiable(kernel: Any) -> bool:
    return kernel != "precomputed" if isinstance(kernel, str) else hasattr(kernel, "pullback")
