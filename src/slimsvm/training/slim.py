"""Training of models over few vectors: their number, hyperparameters, vectors, coefficients, and then probabilities or
intervals.

The number of vectors is given, "auto", or as many as fit in a byte budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state

from ..data.dataset import Dataset
from ..linalg.array_api import to_numpy
from ..model.expansion import Model
from ..problem import bases, kernels
from ..problem.losses import round_mantissa
from ..utils.progress import ProgressLine
from ..utils.warnings import warn
from . import sizes
from .byte_budget import ByteBudget, model_size, train_within_bytes
from .intervals import held_out_residuals
from .probabilities import VectorLearner, calibration_folds, fit_probabilities, fit_probabilities_at, vector_learner
from .scoring import score_fold
from .search import SearchSpace, search, search_space
from .small import train
from .spec import Hyperparameters, TrainingSpec

MIN_PROBABILITY_TOL = 1e-4  # smaller gaps do not change probabilities noticeably


@dataclass(frozen=True)
class SlimSpec:
    """The checked parameters of an estimator over few vectors."""

    n_vectors: int | str | None  # "auto": as few as suffice; None: as many as rows
    basis: Any
    loss: Any  # in the user's units
    regularizer: Any
    kernel: Any
    degree: int
    coef0: float
    C: float | str  # in the user's units
    gamma: float | str
    scales: str = "fixed"
    scheme: str = "ovr"
    max_bytes: int | None = None
    probability: bool = False
    intervals: bool = False
    tol: float = 1e-6
    max_iter: int = 100
    memory: float = 2.0**30
    random_state: Any = 0
    seeds: tuple[int, ...] = ()  # of a stream: they replace the random state
    verbose: bool = False
    problems: str = "binary problems"  # name of the outputs in messages

    def seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31))

    def generator(self) -> np.random.Generator:
        return np.random.default_rng(self.seeds or self.seed())

    def max_vectors(self, dataset: Dataset) -> int:
        if self.n_vectors is None:
            return dataset.size
        return sizes.size_grid(1, dataset.n_classes)[-1] if isinstance(self.n_vectors, str) else int(self.n_vectors)

    def training_spec(self, dataset: Dataset, searched: bool = True) -> TrainingSpec:
        """The specification for a dataset.

        Where hyperparameters are ``searched``, vectors given by the user are checked, and the number of vectors is at
        most the dimension of the feature space.
        """
        spec = TrainingSpec(
            self.max_vectors(dataset),
            self.basis,
            scaled_loss(self.loss, dataset)[0],
            self.regularizer,
            partial(kernels.resolve, dataset.kernel, degree=self.degree, coef0=self.coef0),
            self.scheme,
            self.tol,
            self.max_iter,
            self.memory,
            self.verbose,
        )
        if not searched:
            return spec
        basis = spec.basis
        given = basis.init if basis.learns else getattr(basis, "vectors", None)
        if bases.is_array(given):
            vectors = self._checked_vectors(given, "init" if basis.learns else "basis", dataset)
            basis = replace(basis, init=vectors) if basis.learns else bases.Given(vectors)
        n_vectors = int(min(spec.n_vectors, spec.kernel_of(1.0).dimensions(dataset.X.shape[1])))
        return replace(spec, basis=basis, n_vectors=n_vectors)

    def _checked_vectors(self, vectors: Any, name: str, dataset: Dataset) -> Any:
        auto, most = self.n_vectors == "auto", self.max_vectors(dataset)
        dtypes = [np.float64, np.float32]
        vectors = check_array(to_numpy(vectors), accept_sparse="csr", dtype=dtypes, input_name=name, copy=True)
        if vectors.shape[1] != dataset.X.shape[1]:
            raise ValueError(
                f"{name} has {vectors.shape[1]} columns, X has {dataset.X.shape[1]}; they must be the same"
            )
        if name == "init" and vectors.shape[0] > most:
            limit = f"n_vectors={self.n_vectors!r}" + (f", which is {most} at most" if auto else "")
            raise ValueError(f"init has {vectors.shape[0]} vectors, {limit}; give at most so many")
        if name == "init" and vectors.shape[0] < most and not auto:
            warn(f"init has {vectors.shape[0]} vectors: the model has as many, not n_vectors={self.n_vectors}")
        return vectors

    def search_space(self, dataset: Dataset, spec: TrainingSpec) -> SearchSpace:
        """The search space for the hyperparameters that are not given."""
        C = self.C
        if not isinstance(C, str) and dataset.target_scaler is not None:
            C = round_mantissa(C * scaled_loss(self.loss, dataset)[1])
        return search_space(dataset, C, self.gamma, self.scales, spec)


def scaled_loss(loss: Any, dataset: Dataset) -> tuple[Any, float]:
    """The loss in the units of the scaled targets, and the factor that converts C to them."""
    if dataset.target_scaler is None:
        return loss, 1.0
    size = float(dataset.target_scaler.size[0])  # all targets have one scale, or the loss does not depend on it
    loss, factor = loss.in_units(size)
    return loss, factor / size**2


# --- the number of vectors ------------------------------------------------------------------------------------------


def train_slim(dataset: Dataset, spec: SlimSpec) -> Model:
    """Train the model of `SlimSVC` or `SlimSVR`."""
    if spec.max_bytes is not None:
        return _train_within_bytes(dataset, spec, spec.max_bytes)
    if spec.n_vectors == "auto":
        return _train_smallest(dataset, spec)
    rng = spec.generator()
    training = spec.training_spec(dataset)
    result = search(dataset, training, spec.search_space(dataset, training))
    params = result.hyperparameters
    model = train(dataset, training, params, rng, search_vectors=result.vectors)
    warn_unconverged(model, spec.tol, spec.problems)
    model = model.with_attributes(C_=params.C, search_results_=result.table, _setting=params)
    return add_outputs(dataset, model, spec, training, params, rng)


def train_basis(dataset: Dataset, spec: SlimSpec) -> Model:
    """Train the model of `ReducedSVC` or `EmpiricalSVC`: no hyperparameter is searched."""
    rng, training = spec.generator(), spec.training_spec(dataset, searched=False)
    gamma = kernels.scale_gamma(spec.gamma, dataset.X, dataset.counts) if kernels.takes_gamma(spec.kernel) else 1.0
    params = Hyperparameters(float(spec.C), gamma)
    model = train(dataset, training, params, rng)
    warn_unconverged(model, spec.tol, spec.problems)
    return add_outputs(dataset, model, spec, training, params, rng)


def _train_smallest(dataset: Dataset, spec: SlimSpec) -> Model:
    """Train the smallest model that is as good as any size on held-out rows."""
    floor = sizes.smallest_size(dataset.n_classes)
    plan = plan_sizes(dataset, spec, sizes.size_grid(floor, dataset.n_classes))
    line = ProgressLine("sizes") if spec.verbose else None
    scores = [partial(score_fold, fold) for fold in plan.folds]
    curve = plan.validation_curve(scores, line.update if line else None)
    size = curve.best(floor=floor)
    if line is not None:
        line.finish(f"{size} vectors do")
    model = plan.model(dataset, size)
    warn_unconverged(model, spec.tol, spec.problems)
    model = model.with_attributes(frontier_=curve, _setting=plan.hyperparameters)
    return add_outputs_of_size(dataset, model, spec, plan, size)


def _train_within_bytes(dataset: Dataset, spec: SlimSpec, max_bytes: int) -> Model:
    """Train the best model within a byte budget."""
    rng, training = spec.generator(), spec.training_spec(dataset)
    line = ProgressLine("bytes") if spec.verbose else None
    budget = ByteBudget.of(max_bytes, training, dataset)
    space, report = spec.search_space(dataset, training), line.update if line else None
    model, plan = train_within_bytes(budget, dataset, training, space, rng, report)
    n_vectors = model.expansion.vectors.shape[0]
    if line is not None:
        line.finish(f"{model_size(model, budget.is_regression)} of {max_bytes}, {n_vectors} vectors")
    warn_unconverged(model, spec.tol, spec.problems)
    model = model.with_attributes(_setting=plan.hyperparameters)
    return add_outputs(dataset, model, spec, replace(training, n_vectors=n_vectors), plan.hyperparameters, rng)


def plan_sizes(
    dataset: Dataset,
    spec: SlimSpec,
    wanted: Sequence[int],
    hold_out: Callable[..., list[Any]] = sizes.size_folds,
) -> sizes.SizePlan:
    """Search hyperparameters for models of several sizes, and make the folds on which these are scored."""
    rng, training = spec.generator(), spec.training_spec(dataset)
    folds = hold_out(dataset, rng)
    feasible = sizes.feasible_sizes(wanted, training, folds)
    space, searched = spec.search_space(dataset, training), replace(training, n_vectors=sizes.search_size(feasible))
    result = search(dataset, searched, space)
    seed = int(rng.integers(2**31))
    return sizes.SizePlan(spec.training_spec, result.hyperparameters, result.table, feasible, seed, folds)


# --- probabilities and intervals --------------------------------------------------------------------------------


def add_outputs(
    dataset: Dataset,
    model: Model,
    spec: SlimSpec,
    training: TrainingSpec,
    params: Hyperparameters,
    rng: np.random.Generator,
) -> Model:
    """Add probabilities or intervals to the model if the spec asks for them."""
    if spec.intervals:
        residuals, counts = held_out_residuals(dataset, training, params, rng, model.expansion)
        return model.with_attributes(residuals_=residuals, residual_weights_=counts)
    if not spec.probability:
        return model
    learn = vector_learner(training, params, rng)
    return with_probabilities(dataset, model, params.C, learn, rng, spec.tol, spec.memory, spec.verbose)


def add_outputs_of_size(dataset: Dataset, model: Model, spec: SlimSpec, plan: sizes.SizePlan, size: int) -> Model:
    """Add probabilities or intervals to the model of one size of a plan."""
    training = replace(spec.training_spec(dataset), n_vectors=size)
    return add_outputs(dataset, model, spec, training, plan.hyperparameters, np.random.default_rng(plan.seed))


def with_probabilities(
    dataset: Dataset,
    model: Model,
    C: float,
    learn: VectorLearner,
    rng: np.random.Generator,
    tol: float,
    memory: float = 2.0**30,
    verbose: bool = False,
) -> Model:
    """Add a probability layer over the vectors of the model; C is the cost of the model itself."""
    folds, tol = calibration_folds(dataset, learn, rng), max(float(tol), MIN_PROBABILITY_TOL)
    return model.with_attributes(**fit_probabilities(dataset, model.expansion, C, folds, rng, tol, memory, verbose))


def with_probabilities_at(
    dataset: Dataset, model: Model, cost: float, rng: np.random.Generator, tol: float, memory: float
) -> Model:
    """Add a probability layer with a given cost."""
    tol = max(float(tol), MIN_PROBABILITY_TOL)
    return model.with_attributes(**fit_probabilities_at(dataset, model.expansion, cost, rng, tol, memory))


def in_user_units(model: Model, dataset: Dataset, loss: Any, C: float | str) -> Model:
    """Convert the attributes of the model to the units of the user's targets."""
    assert dataset.target_scaler is not None
    unit, more = scaled_loss(loss, dataset)[1], dict(model.more)
    if "residuals_" in more:
        more["residuals_"] = dataset.target_scaler.size * more["residuals_"]
    if "C_" in more:
        more["C_"] = more["C_"] / unit if isinstance(C, str) else float(C)
    if "search_results_" in more:
        table = {name: column for name, column in more["search_results_"].items() if name != "error"}
        more["search_results_"] = table | ({"C": [cost / unit for cost in table["C"]]} if table else {})
    return replace(model, more=more)


def warn_unconverged(model: Model, tol: float, problems: str) -> None:
    """Warn of outputs whose duality gap exceeds ``tol``, and of a model without vectors."""
    assert model.gap is not None
    unsolved = sorted(limit for limit in model.limits if limit)
    if unsolved:
        reason = unsolved[0]  # a limit that was set, if any
        warn(
            f"{reason} ended the fit in {len(unsolved)} of {len(model.limits)} {problems}: relative duality "
            f"gap {model.gap.max():.2e}, asked for tol={tol:g}. Scale the features, lower C"
            f"{'' if reason == 'rounding' else ', raise max_iter'} or raise tol",
            ConvergenceWarning,
        )
    if not model.expansion.coef.shape[1] and model.more["regularizer_"].reweighted:
        warn("no vector is left, every row gets the same answer: lower C_alpha or raise C")
