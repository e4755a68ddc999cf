"""The classifiers over all rows: one slack norm, one dual."""

from __future__ import annotations

from typing import Any

from ..data.dataset import Dataset
from ..model.expansion import Model
from ..problem.formulation import Constraint, Slack
from ..training.full import FullSpec, train_full
from . import validation
from .base import KernelClassifier, atomic
from .checked_data import checked_dataset
from .documentation import documented
from .targets import ClassTargets


class AllRowsClassifier(KernelClassifier):
    """Classifier trained on all rows through the dual; subclasses define the slack norm and the constraint."""

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

    @documented
    @atomic
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model.

        <fit_classifier>
        """
        spec = self._spec()
        targets = ClassTargets(self.class_weight)
        dataset = checked_dataset(self, X, y, sample_weight, targets, self._merges_copies(spec.slack))
        model = self._train(dataset, spec)
        validation.warn_of_inputs(self, dataset, model.expansion.kernel)
        return self._set_fitted(dataset, model)

    def _norm(self) -> tuple[Slack, Constraint]:
        """The slack norm and the constraint; ValueError for parameters that make no sense."""
        raise NotImplementedError

    def _spec(self) -> FullSpec:
        """The parameters for training; ValueError for those that make no sense."""
        validation.check_number("C", self.C, above=0)
        validation.check_common(self, least_iter=-1)
        validation.check_choice("precision", self.precision, ("float32", "float64"))
        slack, constraint = self._norm()
        if self.class_weight is not None and not slack.counts_rows:
            raise ValueError(
                f"class_weight={self.class_weight!r} would change nothing with {slack!r}, where a row counts the same "
                "however often it occurs; leave it out, or use another slack"
            )
        return FullSpec(
            slack,
            constraint,
            self.C,
            self.multi_class,
            self.tol,
            self.max_iter,
            self.cache_size,
            self.precision,
            bool(self.verbose),
        )

    def _merges_copies(self, slack: Slack) -> bool:
        """Whether equal rows can be merged: not if the slack norm has parameters for each row."""
        return slack.merges_copies

    def _train(self, dataset: Dataset, spec: FullSpec) -> Model:
        return train_full(dataset, validation.named_kernel(self, dataset), spec)
