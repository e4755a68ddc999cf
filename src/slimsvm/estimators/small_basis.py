"""What machines over a small basis share: one set of vectors, coefficients of each output over it."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..data.dataset import Dataset
from ..model.expansion import Model
from ..problem import kernels, regularizers, slacks
from ..solvers.primal.refit import ClassProblem
from ..training.probabilities import vector_learner
from ..training.small import train
from ..training.spec import Hyperparameters, TrainingSpec
from ..utils.warnings import warn
from . import validation
from .probability import LayerClassifier
from .trained import TrainedModel


class SmallBasis(TrainedModel):
    """Trains on explicit features, one for each vector; subclasses say which vectors."""

    random_state: Any = 0
    takes_blocks = True  # rows may be read a block at a time
    problems = "binary problems"  # what outputs are, in words

    @abstractmethod
    def _basis(self) -> Any:
        """Where the vectors come from."""

    @abstractmethod
    def _loss(self, dataset: Dataset) -> Any:
        """What rows cost."""

    def _count(self, dataset: Dataset) -> int:
        """How many vectors at most."""
        return self.n_vectors

    def _scheme(self) -> str:
        """Pairs of classes ("ovo"), or each class against the others ("ovr")."""
        return "ovr"

    def _check_parts(self, gammas: tuple[str, ...] = ("scale", "auto")) -> None:
        validation.check_common(self, least_iter=1, gammas=gammas)
        regularizers.resolve(self.regularizer)

    def _check_apart(self) -> None:
        """What takes all rows at once, and so cannot have them from a file."""
        if regularizers.resolve(self.regularizer).reweighted:
            raise ValueError(
                f"regularizer={self.regularizer!r} needs all kernel values in memory; rows that are read a block at a "
                "time take 'kernel' or 'identity'"
            )
        if getattr(self._basis(), "selection", None) == "pivoted":
            raise ValueError(
                "a pivoted Cholesky basis needs all rows in memory; for rows that are read a block at a time use the "
                "basis 'learned', 'forward', 'kmeans' or 'random', or bases.Cholesky(eta) with the rows as they come"
            )

    def _recipe(self, dataset: Dataset) -> TrainingSpec:
        return TrainingSpec(
            self._count(dataset),
            self._basis(),
            self._loss(dataset),
            regularizers.resolve(self.regularizer),
            partial(kernels.resolve, dataset.kernel, degree=self.degree, coef0=self.coef0),
            self._scheme(),
            self.tol,
            self.max_iter,
            self.cache_size * 2.0**20,
            bool(self.verbose),
        )

    def _finished(
        self, dataset: Dataset, model: Model, spec: TrainingSpec, setting: Hyperparameters, rng: np.random.Generator
    ) -> Model:
        """The model with all else that is fitted over its vectors."""
        return model

    def _gamma(self, dataset: Dataset) -> float:
        return kernels.scale_gamma(self.gamma, dataset.X, dataset.counts) if kernels.takes_gamma(self.kernel) else 1.0

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31))

    def _tell(self, model: Model) -> None:
        """Warnings about what was found."""
        assert model.gap is not None
        unsolved = sorted(limit for limit in model.limits if limit)
        if unsolved:
            reason = unsolved[0]  # a limit that was set, if any
            warn(
                f"{reason} ended the fit in {len(unsolved)} of {len(model.limits)} {self.problems}: relative duality "
                f"gap {model.gap.max():.2e}, asked for tol={self.tol:g}. Scale the features, lower C"
                f"{'' if reason == 'rounding' else ', raise max_iter'} or raise tol",
                ConvergenceWarning,
            )
        if not model.expansion.coef.shape[1] and model.more["regularizer_"].reweighted:
            warn("no vector is left, every row gets the same answer: lower C_alpha or raise C")


class SmallBasisClassifier(SmallBasis, LayerClassifier):
    """A classifier over a small basis."""

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

    def _scheme(self) -> str:
        return self.multi_class

    def _loss(self, dataset: Dataset) -> Any:
        return slacks.loss(self.slack)

    def _refit_problem(self) -> ClassProblem:
        factors = partial(validation.factors_of, self)
        C = vars(self).get("C_", self.C)
        return ClassProblem(C, factors, slacks.loss(self.slack), self.regularizer_, self.tol, self.max_iter)

    def _check_params(self) -> None:
        self._check_parts()
        validation.check_number("C", self.C, above=0)

    def _check_parts(self, gammas: tuple[str, ...] = ("scale", "auto")) -> None:
        super()._check_parts(gammas)
        slacks.loss(self.slack)

    def _train(self, dataset: Dataset) -> Model:
        rng, spec, setting = self._rng(), self._recipe(dataset), Hyperparameters(float(self.C), self._gamma(dataset))
        model = train(dataset, spec, setting, rng)
        self._tell(model)
        return self._finished(dataset, model, spec, setting, rng)

    def _finished(
        self, dataset: Dataset, model: Model, spec: TrainingSpec, setting: Hyperparameters, rng: np.random.Generator
    ) -> Model:
        """The model with a layer over its vectors, if that is asked for."""
        return self._with_layer(dataset, model, setting.C, vector_learner(spec, setting, rng), rng, spec.memory)
