"""What the classifiers over all rows share: one slack norm, one dual."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from ..data.dataset import Dataset
from ..model.expansion import Model
from ..problem.formulation import Constraint, Slack
from ..solvers.dual.batch import Cost, solve_all
from ..solvers.dual.multiplier import Limits
from ..solvers.dual.solve import DualSolution
from ..solvers.dual.training import Subproblem, train
from ..solvers.dual.zero import ZERO_FUNCTION_WARNING, is_rounding
from ..utils.warnings import warn
from . import validation
from .trained import ExpansionClassifier

VOID = (
    "the decision function is zero as far as tol tells: with so few slacks counted, the weighted means of the two "
    "classes can meet, and f = 0 costs no more than any other. Raise the budget (or use slack='l1'), use a "
    "kernel that separates more, or lower tol if C is small"
)


class AllPointsClassifier(ExpansionClassifier):
    """Trains on every row through the dual; subclasses say which slack norm, with which constraint."""

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

    @abstractmethod
    def _norm(self) -> tuple[Slack, Constraint]:
        """The slack norm and the constraint; ValueError for parameters that make no sense."""

    def _check_params(self) -> None:
        """Raise ValueError for parameters that make no sense."""
        validation.check_number("C", self.C, above=0)
        validation.check_common(self, least_iter=-1)
        validation.check_choice("precision", self.precision, ("float32", "float64"))
        slack, _ = self._norm()
        if self.class_weight is not None and not slack.counts_rows:
            raise ValueError(
                f"class_weight={self.class_weight!r} would change nothing with {slack!r}, where a row counts the same "
                "however often it occurs; leave it out, or use another slack"
            )

    @property
    def merges_copies(self) -> bool:  # type: ignore[override]
        """Not where the slack norm has numbers for each row."""
        return self._norm()[0].merges_copies

    def _train(self, dataset: Dataset) -> Model:
        return self._train_at(dataset, self.tol)[0]

    def _train_at(self, dataset: Dataset, tol: float) -> tuple[Model, list[DualSolution]]:
        """The machine over all rows, to this gap."""

        def solve(machine: Any, problems: list[Subproblem]) -> list[DualSolution]:
            solutions = self._solve(machine, problems, dataset, tol)
            return [
                s._replace(zero_within_rounding=s.converged and is_rounding(machine, p.view, s.duals, s.bias))
                for s, p in zip(solutions, problems, strict=True)
            ]

        cache = int(min(self.cache_size, 2.0**30) * 2**20)
        model, solutions = train(dataset, validation.named_kernel(self, dataset), self.multi_class, cache, solve)
        self._tell(solutions, tol)
        return model, solutions

    def _solve(self, machine: Any, problems: list[Subproblem], dataset: Dataset, tol: float) -> list[DualSolution]:
        """Solve the binary problems over the machine."""
        cost = Cost(*self._norm(), float(self.C), dataset.numbers, dataset.n_samples)
        limits = Limits(tol, min(self.max_iter, 2**62), self.precision == "float64", None)
        return solve_all(machine, problems, cost, limits, bool(self.verbose))

    def _tell(self, solutions: list[DualSolution], tol: float) -> None:
        """Warnings about what was found."""
        if any(s.indefinite for s in solutions):
            warn(validation.INDEFINITE.format("a pair of points has negative curvature"))
        unsolved = [s for s in solutions if not s.converged]
        if unsolved:
            worst = max(unsolved, key=lambda s: s.gap)
            limited = 0 <= self.max_iter <= worst.n_iter
            reason = f"max_iter={self.max_iter} ended the fit" if limited else "the fit got no further"
            remedy = "raise max_iter" if limited else "raise cache_size"
            warn(
                f"{reason} in {len(unsolved)} of {len(solutions)} binary problems: relative duality gap "
                f"{worst.gap:.2e}, asked for tol={tol:g}. Scale the features, lower C, {remedy} or raise tol",
                ConvergenceWarning,
            )
        if any(s.void and s.converged for s in solutions):
            warn(VOID)
        zeros = sum(s.zero_within_rounding and not s.void for s in solutions)
        if zeros:
            warn(ZERO_FUNCTION_WARNING.format(zeros, len(solutions), "its predictions are arbitrary there", ""))
