"""Training within a byte budget: as many vectors as fit, over the most relevant inputs.

The number of binary problems, of inputs and of vectors is chosen by the error on held-out rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..basis.candidates import DatasetCandidates
from ..data.dataset import Dataset
from ..data.folds import Fold
from ..linalg.arrays import Array
from ..model.expansion import Model
from ..model.inference import Affine
from ..model.voting import Votes
from ..problem.bases import Choice, dense
from ..problem.kernels import Scaled
from ..quantization.quantize import fixed_point_form
from .search import SearchResult, SearchSpace, search, search_folds
from .small import train
from .spec import Hyperparameters, TrainingSpec
from .trials import row_losses

MAX_BUDGET_VECTORS = 300  # with few inputs more would fit, but would not help
ROWS_PER_VECTOR = 4  # minimum
ENOUGH_VECTORS = 64  # with this many, do not drop inputs to fit more
MAX_SEARCH_VECTORS = 64  # in the hyperparameter search: trials with more are slow, and too short to converge
MIN_INPUTS = 4
INPUT_STEP = 0.7  # ratio of successive numbers of inputs to try
ONE_FOLD_ROWS = 3000  # from this many rows on, one fold is enough to compare plans
MAX_ERROR_INCREASE = (
    0.01  # training error of the final model above that of the trials; more: rounding or dropped inputs spoilt it
)
RELEVANCE_VECTORS = 8  # of a model that only ranks the inputs
MIN_LEVEL_BYTES, MIN_LEVEL_VECTORS = 512, 4  # of the smaller budgets to try
# Standard error of kernel values on a device: half a unit in 15 bits (table, interpolation, rounding).
FIXED_POINT_NOISE = 2.0**-16

Report = Callable[[str], None] | None


# --- vectors for a device -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GridBasis:
    """A basis whose vectors are rounded to the device's fixed-point grid."""

    basis: Any
    keeps_rows: bool = False

    @property
    def learns(self) -> bool:
        return self.basis.learns

    def choose(self, rows: DatasetCandidates, count: int) -> Choice:
        choice = self.basis.choose(rows, count)
        kernel, Z = choice.kernel or rows.kernel, dense(choice.vectors)
        form, inputs = fixed_point_form(kernel), Affine.none(Z.shape[1])
        coef = None if choice.learned is None else choice.learned.coef
        kernel, Z = form.rounded(kernel, Z, coef, form.grid(kernel, Z, inputs), inputs)
        return Choice(Z.astype(rows.X.dtype), None, kernel, choice.learned)


@dataclass(frozen=True, eq=False)
class InputSubsetBasis:
    """A basis that chooses vectors over a subset of the inputs; the scales of the other inputs are zero."""

    basis: Any
    inputs: Array
    keeps_rows: bool = False

    @property
    def learns(self) -> bool:
        return self.basis.learns

    def choose(self, rows: DatasetCandidates, count: int) -> Choice:
        subset = replace(rows, dataset=replace(rows.dataset, X=rows.X[:, self.inputs]))
        choice = self.basis.choose(subset, count)
        kernel = choice.kernel or subset.kernel
        vectors = np.zeros((choice.vectors.shape[0], rows.X.shape[1]), dtype=rows.X.dtype)
        scales = np.zeros(rows.X.shape[1])
        vectors[:, self.inputs], scales[self.inputs] = dense(choice.vectors), kernel.scales
        return Choice(vectors, None, Scaled(rows.kernel, scales), choice.learned)


# --- what fits ------------------------------------------------------------------------------------------------------


class TooFewBytes(ValueError):
    """Not even one vector fits; ``fewest`` is the smallest number of bytes that would do."""

    def __init__(self, max_bytes: int, purpose: str, fewest: int, n_inputs: int, scaled: bool, hint: str = ""):
        super().__init__(
            f"max_bytes={max_bytes} is too little: one vector of {n_inputs} inputs for {purpose} takes {fewest} bytes"
            f"{' with learned scales' if scaled else ''}. Raise max_bytes, or keep fewer inputs{hint}"
        )
        self.fewest = fewest


@dataclass(frozen=True)
class ByteBudget:
    """Maximum size of a model in bytes, and what its size depends on: kernel, inputs and outputs."""

    max_bytes: int
    kernel: Any
    n_inputs: int
    n_outputs: dict[str, int]  # by scheme
    is_regression: bool
    purpose: str  # number of classes or targets, in words
    max_vectors: int

    @classmethod
    def of(cls, max_bytes: int, spec: TrainingSpec, dataset: Dataset) -> ByteBudget:
        """The budget for a dataset; rows and the dimension of the feature space limit the number of vectors."""
        kernel, n_inputs = spec.kernel_of(1.0), dataset.X.shape[1]
        n_rows = int(dataset.total)  # copies count: they make labels more certain
        by_rows = max(2, min(dataset.size, n_rows // ROWS_PER_VECTOR))
        max_vectors = min(MAX_BUDGET_VECTORS, by_rows, kernel.dimensions(n_inputs))
        n_outputs = {scheme: len(dataset.outputs(scheme)) for scheme in ("ovo", "ovr")}
        purpose = f"{dataset.n_classes} classes"
        if dataset.targets is not None:
            purpose = f"{n_outputs['ovr']} target{'s' * (n_outputs['ovr'] > 1)}"
        return cls(max_bytes, kernel, n_inputs, n_outputs, dataset.targets is not None, purpose, int(max_vectors))

    def min_bytes(self, n_vectors: int, scheme: str, scaled: bool, n_used: int | None = None) -> int:
        """The minimum size in bytes of a model of ``n_vectors`` vectors over ``n_used`` inputs (None: all)."""
        n_used = self.n_inputs if n_used is None else n_used
        outputs = self.n_outputs[scheme]
        parts = fixed_point_form(self.kernel).least_parts(
            n_vectors, self.n_inputs, n_used, outputs, scaled, self.is_regression
        )
        return sum(parts.values())

    def n_vectors(self, scheme: str, scaled: bool, n_used: int | None = None) -> int:
        """The largest number of vectors that fits, at most ``max_vectors``."""
        one, two = (self.min_bytes(m, scheme, scaled, n_used) for m in (1, 2))
        if one > self.max_bytes:
            return 0
        return self.max_vectors if one == two else min(self.max_vectors, 1 + (self.max_bytes - one) // (two - one))

    def schemes(self, scheme: str, scaled: bool) -> list[str]:
        """The schemes to try: one-vs-one if a vector fits, one-vs-rest if it allows more vectors."""
        if self.n_outputs["ovo"] == 1 or scheme == "ovr":
            return [scheme]
        pairs, rest = self.n_vectors("ovo", scaled), self.n_vectors("ovr", scaled)
        return (["ovo"] if pairs else []) + (["ovr"] if rest > pairs or not pairs else [])

    def levels(self) -> list[ByteBudget]:
        """Budgets to try: this one and 1/4, 1/16, ... of it, so that a larger budget does not give a worse model."""
        levels, level = [self], self
        while level.max_bytes >= 4 * MIN_LEVEL_BYTES:
            level = replace(self, max_bytes=level.max_bytes // 4)
            # Where more vectors fit, `ByteBudgetSearch.fewer_vectors` reduces their number.
            if MIN_LEVEL_VECTORS <= level.n_vectors("ovr", False) < MAX_SEARCH_VECTORS:
                levels.append(level)
        return levels

    def affordable(self, space: SearchSpace) -> SearchSpace:
        """The part of the search space for which a vector fits; if it fits only over fewer inputs, learned scales,
        which rank the inputs."""
        scaled = [s for s in space.scaled if self.n_vectors("ovr", s)]
        fewest = min(MIN_INPUTS, self.n_inputs)
        if not scaled and space.may_learn_scales and self.n_vectors("ovr", True, fewest):
            scaled = [True]
        if not scaled:
            needs = [(self.min_bytes(1, "ovr", s), self.n_inputs, s) for s in space.scaled]
            narrow = (self.min_bytes(1, "ovr", True, fewest), fewest, True)
            hint = ""
            if narrow[0] < min(needs)[0] and space.may_learn_scales:
                needs.append(narrow)
            elif narrow[0] < min(needs)[0]:
                hint = ", or use scales='search' and basis='learned', which leave out the inputs that count least"
            raise TooFewBytes(self.max_bytes, self.purpose, *min(needs), hint)
        return replace(space, scaled=scaled)


def model_size(model: Model, is_regression: bool) -> int:
    """Size of the model on a device in bytes."""
    expansion, form = model.expansion, fixed_point_form(model.expansion.kernel)
    return sum(form.parts(expansion.kernel, dense(expansion.vectors), len(expansion.bias), is_regression).values())


# --- byte plans --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BytePlan:
    """One way to spend the bytes: one-vs-one or one-vs-rest, hyperparameters, the number of inputs that are kept, and
    the maximum number of vectors."""

    scheme: str
    hyperparameters: Hyperparameters
    n_inputs: int
    max_vectors: int = MAX_BUDGET_VECTORS

    def __str__(self) -> str:
        kind = "pairs of classes, " if self.scheme == "ovo" else ""
        scales = "learned" if self.hyperparameters.scaled else "fixed"
        return f"{kind}{self.n_inputs} inputs, at most {self.max_vectors} vectors, scales {scales}"


def train_within_bytes(
    budget: ByteBudget,
    dataset: Dataset,
    spec: TrainingSpec,
    space: SearchSpace,
    rng: np.random.Generator,
    report: Report = None,
) -> tuple[Model, BytePlan]:
    """Train the best model within the budget, its vectors on the device's grid; return it with its plan.

    Smaller budgets are tried, too, unless all hyperparameters are given.
    """
    if budget.is_regression:  # large coefficients that cancel amplify rounding; classes rarely change by it
        spec = replace(spec, noise=FIXED_POINT_NOISE)
    folds, seed = search_folds(dataset, rng), int(rng.integers(2**31))
    folds = folds if dataset.size < ONE_FOLD_ROWS else folds[:1]
    budget.affordable(space)
    levels = [budget] if space.is_fixed else budget.levels()
    searches = [ByteBudgetSearch(level, dataset, spec, folds, seed, report) for level in levels]
    plans = [one.plan(space) for one in searches]
    best = 0
    if len(searches) > 1:
        errors = [one.error(plan) for one, plan in zip(searches, plans, strict=True)]
        lowest = min(errors)
        best = next(k for k, error in enumerate(errors) if error <= lowest + 0.5 * searches[k].standard_error(lowest))
    model, plan = searches[best].final(plans[best])
    more = {"C_": plan.hyperparameters.C, "search_results_": searches[best].result.table}
    return replace(model, more=model.more | more), plan


class ByteBudgetSearch:
    """Search for the plan with the lowest error on held-out rows."""

    result: SearchResult  # of the hyperparameter search

    def __init__(
        self, budget: ByteBudget, dataset: Dataset, spec: TrainingSpec, folds: list[Fold], seed: int, report: Report
    ):
        self.budget, self.dataset, self.spec, self.report = budget, dataset, spec, report
        self.folds, self.seed = folds, seed
        self.errors: dict[BytePlan, float] = {}  # on held-out rows
        self.training_errors: dict[BytePlan, float] = {}
        self.narrowest: list[BytePlan] = []  # last resort where outlying vectors exceed the bytes

    def plan(self, space: SearchSpace) -> BytePlan:
        """The best plan; hyperparameters are searched for as many vectors as fit beside the scales of the inputs."""
        space = self.budget.affordable(space)
        count = min(MAX_SEARCH_VECTORS, self.budget.n_vectors("ovr", max(space.scaled)) or RELEVANCE_VECTORS)
        self.result = search(self.dataset, replace(self.spec, n_vectors=count), space)
        params = self.result.hyperparameters
        schemes = self.budget.schemes(self.spec.scheme, params.scaled)
        plans = [BytePlan(scheme, params, self.budget.n_inputs) for scheme in schemes]
        plan = plans[0] if len(plans) == 1 else min(plans, key=self.error)
        if space.may_learn_scales:
            plan = self.fewer_inputs(plan, space)
        return self.fewer_vectors(plan)

    def error(self, plan: BytePlan) -> float:
        """The mean error of a plan on held-out rows. (Plans with fewer inputs are tried together, in `_try`.)"""
        if plan not in self.errors:
            self._try([plan])
        return self.errors[plan]

    def training_error(self, plan: BytePlan) -> float:
        """The error of a plan on training rows; for a plan that was not tried, the held-out error in the search."""
        if plan in self.training_errors:
            return self.training_errors[plan]
        candidates = zip(*(self.result.table.get(name, ()) for name in ("C", "gamma", "scales", "error")), strict=True)
        errors = {(C, gamma, scales == "learned"): error for C, gamma, scales, error in candidates}
        best = self.result.hyperparameters
        return errors.get((best.C, best.gamma, best.scaled), 1.0)

    def standard_error(self, error: float) -> float:
        """The standard error of an error over all held-out rows: binomial, or in regression that of a mean square."""
        n_rows = sum(fold.test.size for fold in self.folds)
        if self.budget.is_regression:
            return error * float(np.sqrt(2 / n_rows))
        return float(np.sqrt(max(error, 1 / n_rows) / n_rows))

    def fits(self, plan: BytePlan) -> bool:
        """Whether at least one vector fits."""
        return self._n_vectors(plan) > 0

    def _n_vectors(self, plan: BytePlan) -> int:
        return self.budget.n_vectors(plan.scheme, plan.hyperparameters.scaled, plan.n_inputs)

    def fewer_inputs(self, plan: BytePlan, space: SearchSpace) -> BytePlan:
        """The better of the plan and plans without the least relevant inputs; these are tried where few vectors fit."""
        params = plan.hyperparameters
        if not params.scaled:  # learned scales can grow: start from a kernel no narrower than gamma="scale"
            gamma = min(params.gamma, space.gamma_unit) if space.gamma is None else params.gamma
            params = replace(params, gamma=gamma, scaled=True)
        plans = [BytePlan(plan.scheme, params, n_inputs) for n_inputs in self.input_counts(plan.scheme)]
        if len(plans) == 1:
            return plan
        self.narrowest = plans[-1:]
        self._try(plans)
        tried = [p for p in dict.fromkeys((plan, *plans)) if p in self.errors or (p == plan and self.fits(p))]
        lowest = min(map(self.error, tried))
        # Among errors equal within noise, keep the most inputs: their ranking is uncertain.
        return next(p for p in tried if self.error(p) <= lowest + 0.5 * self.standard_error(lowest))

    def input_counts(self, scheme: str) -> list[int]:
        """Numbers of inputs to try: each is 0.7 times the one before, until enough vectors fit."""
        counts = [self.budget.n_inputs]
        enough = min(ENOUGH_VECTORS, self.budget.max_vectors)
        while counts[-1] > MIN_INPUTS and self.budget.n_vectors(scheme, True, counts[-1]) < enough:
            counts.append(max(MIN_INPUTS, int(INPUT_STEP * counts[-1])))
        return counts

    def fewer_vectors(self, plan: BytePlan) -> BytePlan:
        """The plan with the best number of vectors; where many fit, fewer are tried, because more may fit noise."""
        full = min(plan.max_vectors, self._n_vectors(plan))
        if (
            full <= MAX_SEARCH_VECTORS or plan.n_inputs < self.budget.n_inputs
        ):  # inputs were dropped to fit more vectors
            return plan
        best = replace(plan, max_vectors=MAX_SEARCH_VECTORS)
        for max_vectors in (int(np.sqrt(MAX_SEARCH_VECTORS * full)), full):
            larger = replace(plan, max_vectors=max_vectors)
            if self.error(larger) >= self.error(best):  # trials with many vectors are slow
                break
            best = larger
        return best

    def _try(self, plans: list[BytePlan]) -> None:
        """Evaluate plans with fewer and fewer inputs; each keeps the most relevant inputs of the model before it.

        Ends when two plans in a row are worse than the best by more than a standard error.
        """
        states: list[tuple[Array, Model | None]] = [(np.arange(self.budget.n_inputs), None) for _ in self.folds]
        n_worse = 0
        for plan in plans:
            fits, error, training_error = self.fits(plan), 0.0, 0.0
            for k, fold in enumerate(self.folds):
                used = self._narrowed(*states[k], fold.train, plan.n_inputs)
                model = self._train(used, fold.train, plan) if fits else None
                states[k] = used, self._relevance_model(model, used, fold.train, plan) if len(plans) > 1 else None
                if model is not None:
                    error += self._error_on(fold.test, model, plan) / len(self.folds)
                    training_error += self._error_on(fold.train, model, plan) / len(self.folds)
            if self.report is not None:
                self.report(f"{plan}: error {error:.4g}" if fits else f"{plan}: too large")
            if fits:
                self.errors[plan], self.training_errors[plan] = error, training_error
                lowest = min(self.errors.values())
                n_worse = n_worse + 1 if error > lowest + self.standard_error(lowest) else 0
            if n_worse == 2:
                break

    def final(self, plan: BytePlan) -> tuple[Model, BytePlan]:
        """Train the plan on all rows and on the device's grid; return the model and its plan.

        The grid may spoil outlying vectors, or need more bytes for them. Then the next best plan is taken whose model
        fits, and whose training error is about that of its trials.
        """
        others = sorted((p for p in self.errors if p != plan), key=lambda p: self.errors[p])
        unscaled = replace(plan.hyperparameters, scaled=False)
        plans = [plan, *others, replace(plan, hyperparameters=unscaled, n_inputs=self.budget.n_inputs)]
        models: list[tuple[float, Model, BytePlan]] = []
        too_large: list[tuple[int, int, bool]] = []
        for one in dict.fromkeys((*plans, *self.narrowest)):
            if not self.fits(one) or (models and one not in plans):
                continue
            model = self._train_on_grid(one)
            size = model_size(model, self.budget.is_regression)
            if size > self.budget.max_bytes:
                too_large.append((size, one.n_inputs, one.hyperparameters.scaled))
                continue
            models.append((self._error_on(self.dataset, model, one), model, one))
            expected = self.training_error(one)
            if models[-1][0] <= expected + max(MAX_ERROR_INCREASE, 2 * self.standard_error(expected)):
                break
        if not models:
            raise TooFewBytes(self.budget.max_bytes, self.budget.purpose, *min(too_large))
        _, model, plan = min(models, key=lambda one: one[0])
        return model, plan

    # --- models ---

    def _train_on_grid(self, plan: BytePlan) -> Model:
        """The model of a plan, trained on all rows, with vectors on the device's grid."""
        used, model = np.arange(self.budget.n_inputs), None
        for n_inputs in self.input_counts(plan.scheme):
            used = self._narrowed(used, model, self.dataset, n_inputs)
            if n_inputs == plan.n_inputs:
                break
            fits = self.fits(replace(plan, n_inputs=n_inputs))
            model = self._train(used, self.dataset, plan) if fits else None
            model = self._relevance_model(model, used, self.dataset, plan)
        return self._train(used, self.dataset, plan, on_grid=True)

    def _narrowed(self, used: Array, model: Model | None, dataset: Dataset, count: int) -> Array:
        """The ``count`` most relevant of the used inputs by the model over them; all of them without a model."""
        return used if model is None or count == len(used) else most_relevant_inputs(model, dataset, used, count)

    def _relevance_model(self, model: Model | None, used: Array, dataset: Dataset, plan: BytePlan) -> Model:
        """A model that ranks the inputs: this one, or a larger one if it is missing or has very few vectors."""
        if model is None or model.expansion.vectors.shape[0] < min(RELEVANCE_VECTORS, self.budget.max_vectors):
            return self._train(used, dataset, plan, min_vectors=RELEVANCE_VECTORS)
        return model

    def _train(
        self, used: Array, dataset: Dataset, plan: BytePlan, on_grid: bool = False, min_vectors: int = 1
    ) -> Model:
        """A model over the used inputs with as many vectors as fit."""
        params, basis = plan.hyperparameters, self.spec.basis
        if len(used) < self.budget.n_inputs:
            basis = InputSubsetBasis(basis, used)
        if on_grid:
            basis = GridBasis(basis)
        spec = replace(self.spec, scheme=plan.scheme, basis=basis, verbose=self.spec.verbose and on_grid)
        fitting = self.budget.n_vectors(plan.scheme, params.scaled, len(used))
        count = max(min(plan.max_vectors, fitting), min_vectors)
        while True:
            rng = np.random.default_rng(self.seed)
            model = train(dataset, replace(spec, n_vectors=count), params, rng, quiet=not on_grid)
            excess = model_size(model, self.budget.is_regression) - self.budget.max_bytes
            if excess <= 0 or count == 1 or not on_grid:
                return model
            # Outlying vectors need steps or offsets of their own, which cost bytes: keep fewer vectors.
            count = max(1, count - 1 - excess // (len(used) + 2 * len(model.expansion.bias)))

    def _error_on(self, rows: Dataset, model: Model, plan: BytePlan) -> float:
        """The weighted error rate; in regression the mean loss."""
        F: Array = model.expansion.decision(rows.X, rows.threads)
        if self.budget.is_regression:
            wrong = row_losses(F, rows.targets, self.spec.loss)
        else:
            wrong = Votes(pairs=plan.scheme == "ovo").winners(F, rows.n_classes) != rows.codes
        return float(np.average(wrong, weights=rows.weights))


def most_relevant_inputs(model: Model, dataset: Dataset, used: Array, count: int) -> Array:
    """The ``count`` used inputs with the largest standard deviation times learned scale, in ascending order."""
    kernel: Any = model.expansion.kernel
    scales = np.broadcast_to(np.asarray(kernel.scales, dtype=np.float64), dataset.X.shape[1])
    spread = dense(dataset.X[:, used]).std(axis=0) * scales[used]
    return np.sort(used[np.argsort(-spread, kind="stable")[:count]])
