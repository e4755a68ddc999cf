"""Support vector machines on a budget: only the largest slacks count."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..data.dataset import Dataset
from ..model.expansion import Model
from ..problem import kernels, slacks
from ..problem.formulation import INEQUALITY, Constraint, Slack
from ..training.full import FullSpec
from ..training.hard_budget import train_hard_budget
from . import validation
from .all_rows import AllRowsClassifier
from .documentation import documented
from .validation import check_choice, check_number


@documented
class BudgetSVC(AllRowsClassifier):
    """Support vector machine in which about ``budget`` slacks count (Dekel & Singer).

    Minimises ``1/2 |f|^2 + C * phi(xi)`` where phi is the sum of the ``budget`` largest slacks (``norm="l1"``), or
    the norm between the Euclidean and the largest slack that counts about ``budget`` of them (``"l2"``).

    The budget is not a limit on the number of vectors. While it matters (below twice the
    smaller class), it is a *lower* bound: at least ``budget`` rows become vectors, and usually more, as rows exactly
    on the margin are vectors too. A smaller budget gives fewer vectors, down to a number that depends on the data.
    With ``norm="l1"`` and a budget that matters, the classifier is that of nu-SVM with ``nu = budget / n_samples``, and
    C only scales f.

    ``hard`` makes the budget a limit: the model then has at most ``budget`` vectors, all classes together. The
    problem above is solved first: after a change of scale its solution is that of a problem with the hinge (``"l1"``)
    or the squared hinge (``"l2"``), whose C is taken over (up to 30, in units of 1 / k(x, x)). That problem is then
    solved over few vectors.

    Parameters
    ----------
    budget : float, default=50
        Slacks that count, above 0; fractions are fine. From twice the number of rows of the smaller class on,
        ``norm="l1"`` is the standard SVM; at 2 and below, only the largest slack counts.
    norm : {"l1", "l2"}, default="l1"
        ``"l1"``: `slimsvm.slacks.TopSum`; ``"l2"``: `slimsvm.slacks.TopTwoNorm`.
    hard : {None, "select", "learn"}, default=None
        ``None``: the soft budget. ``"select"``: at most ``budget`` vectors, training rows chosen one by one for what
        they gain. ``"learn"``: they start there and are moved, as in `SlimSVC`: more accurate.
    <C>
    <kernel>
    <gamma>
    <degree>
    <class_weight>
    <multi_class>
    <dual_tol>
    <n_jobs>
    random_state : int, RandomState or None, default=0
        Seed of the candidates that ``hard`` draws where rows are many.
    <verbose>

    Attributes
    ----------
    <vectors_>
    support_ : ndarray of shape (n_vectors_,)
        Rows of the training set that `vectors_` are; not with ``hard="learn"``.
    objective_ : ndarray of shape (n_outputs,)
        Value of the problem that is minimised; with ``hard``, of the one over the few vectors. It is an upper bound on
        the optimum; ``duality_gap_`` says how far that can be, rounding errors of this value included.
    duality_gap_ : ndarray of shape (n_outputs,)
        Proof of the solution: the objective is at most this fraction above the best possible one; with ``hard``, above
        the best one over these vectors.
    n_iter_ : ndarray of shape (n_outputs,)
    C_ : ndarray of shape (n_outputs,)
        Only with ``hard``: the cost of slacks in the problems over the few vectors.
    <kernel_>

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
        self.budget = budget
        self.norm = norm
        self.hard = hard
        self.random_state = random_state

    def _norm(self) -> tuple[Slack, Constraint]:
        check_number("budget", self.budget, above=0)
        check_choice("norm", self.norm, ("l1", "l2"))
        if self.hard is not None:
            check_choice("hard", self.hard, ("select", "learn"))
            check_number("budget", self.budget, at_least=1)
            if self.hard == "learn" and not kernels.resolve(self.kernel).differentiable:
                raise ValueError(
                    f"hard='learn' needs a kernel with a derivative (a method pullback); kernel={self.kernel!r} has "
                    "none. Use hard='select'"
                )
        return (slacks.TopSum if self.norm == "l1" else slacks.TopTwoNorm)(self.budget), INEQUALITY

    def _train(self, dataset: Dataset, spec: FullSpec) -> Model:
        if self.hard is None:
            return super()._train(dataset, spec)
        rows = dataset.sorted()
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        kernel, learns = validation.named_kernel(self, rows), self.hard == "learn"
        return train_hard_budget(rows, kernel, spec, self.budget, self.norm, learns, rng)
