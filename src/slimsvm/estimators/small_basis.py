"""The classifiers over training rows that are chosen once: nothing is searched for."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..problem import regularizers, slacks
from ..solvers.primal.refit import ClassProblem
from ..training.slim import SlimSpec, train_basis
from . import validation
from .base import KernelClassifier, atomic
from .checked_data import training_data
from .documentation import documented
from .slim_parameters import basis_spec, check_remote
from .targets import ClassTargets


class SmallBasisClassifier(KernelClassifier):
    """Classifier over explicit kernel features, one for each vector; subclasses define the vectors."""

    def __init__(
        self,
        *,
        slack: Any = "l2",
        regularizer: Any = "kernel",
        C: Any = 1.0,
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
        probability: bool = False,
    ):
        self.slack = slack
        self.regularizer = regularizer
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
        self.probability = probability

    @documented
    @atomic
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model.

        <fit_classifier_anywhere>
        """
        spec, targets = self._spec(), ClassTargets(self.class_weight)
        may_be_remote = partial(check_remote, self, spec.basis)
        with training_data(self, X, y, sample_weight, targets, check_remote=may_be_remote) as dataset:
            model = train_basis(dataset, spec)
            validation.warn_of_inputs(self, dataset, model.expansion.kernel)
        return self._set_fitted(dataset, model)

    def _vectors(self) -> dict[str, Any]:
        """Fields of the specification: how many vectors, and where they come from."""
        raise NotImplementedError

    def _check_params(self) -> None:
        """Raise ValueError for parameters that make no sense."""
        validation.check_common(self, least_iter=1)
        regularizers.resolve(self.regularizer)
        slacks.loss(self.slack)
        validation.check_number("C", self.C, above=0)

    def _spec(self) -> SlimSpec:
        self._check_params()
        loss = slacks.loss(self.slack)
        return basis_spec(
            self, loss=loss, scheme=self.multi_class, probability=bool(self.probability), **self._vectors()
        )

    def _refit_problem(self) -> ClassProblem:
        factors = partial(validation.factors_of, self)
        return ClassProblem(self.C, factors, slacks.loss(self.slack), self.regularizer_, self.tol, self.max_iter)
