"""As many vectors as a byte budget pays for and rows held out favour, over the inputs that are worth their bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..basis.candidates import DatasetCandidates
from ..data.dataset import Dataset
from ..linalg.arrays import Array
from ..model.expansion import Model
from ..model.inference import Affine
from ..model.voting import Votes
from ..problem.bases import Choice, dense
from ..problem.kernels import Scaled
from ..quantization.quantize import fixed_point_form
from .search import SearchResult, SearchSpace, search_folds
from .small import train
from .spec import Hyperparameters, TrainingSpec
from .trials import Fold, row_losses

MAX_BUDGET_VECTORS = 300  # vectors: where inputs are few, a budget would pay for more than anything can be gained from
ROWS_PER_VECTOR = 4  # for each vector, at least
ENOUGH_VECTORS = 64  # vectors: from here on, more of them are no reason to give up inputs
MAX_SEARCH_VECTORS = 64  # vectors at most while settings are searched: trial runs for more are too short, and dear
MIN_INPUTS = 4
ONE_FOLD_ROWS = 3000  # rows, from which on one part of them is enough to compare plans
MAX_ERROR_INCREASE = (
    0.01  # of the rows (of the variance of targets): rounding or the choice of inputs spoilt a model that is worse
)
RELEVANCE_VECTORS = 8  # vectors of a model that only shows which inputs count
MIN_LEVEL_BYTES, MIN_LEVEL_VECTORS = 512, 4  # of a budget that is tried though more would be allowed
FIXED_POINT_NOISE = (
    2.0**-16
)  # of a kernel value on a device: half of a unit in 15 bits, as the table, lines and rounding have it

SearchFunction = Callable[[TrainingSpec, SearchSpace], SearchResult]
Report = Callable[[str], None] | None


# --- vectors for a device -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GridBasis:
    """Vectors of another basis, rounded to the device's grid."""

    basis: Any
    keeps_rows: bool = False

    @property
    def learns(self) -> bool:
        """As the basis does."""
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
    """Vectors of another basis that sees some of the inputs only; the others do not count: their scales are zero."""

    basis: Any
    used: Array
    keeps_rows: bool = False

    @property
    def learns(self) -> bool:
        """As the basis does."""
        return self.basis.learns

    def choose(self, rows: DatasetCandidates, count: int) -> Choice:
        some = replace(rows, dataset=replace(rows.dataset, X=rows.X[:, self.used]))
        choice = self.basis.choose(some, count)
        kernel = choice.kernel or some.kernel
        vectors = np.zeros((choice.vectors.shape[0], rows.X.shape[1]), dtype=rows.X.dtype)
        scales = np.zeros(rows.X.shape[1])
        vectors[:, self.used], scales[self.used] = dense(choice.vectors), kernel.scales
        return Choice(vectors, None, Scaled(rows.kernel, scales), choice.learned)


# --- what fits ------------------------------------------------------------------------------------------------------


class TooFewBytes(ValueError):
    """Not even one vector fits; ``fewest`` bytes would do."""

    def __init__(self, max_bytes: int, wanted: str, fewest: int, inputs: int, scaled: bool, hint: str = ""):
        super().__init__(
            f"max_bytes={max_bytes} is too little: one vector of {inputs} inputs for {wanted} takes {fewest} bytes"
            f"{' with learned scales' if scaled else ''}. Raise max_bytes, or keep fewer inputs{hint}"
        )
        self.fewest = fewest


@dataclass(frozen=True)
class ByteBudget:
    """Bytes for a model of some inputs and outputs."""

    max_bytes: int
    kernel: Any
    inputs: int
    outputs: dict[str, int]  # by scheme
    values: bool  # are they the answer themselves?
    wanted: str  # what a model is for, in words
    most: int  # vectors

    @classmethod
    def of(cls, max_bytes: int, spec: TrainingSpec, dataset: Dataset) -> ByteBudget:
        """With the caps: rows, the dimensions of the kernel's space, and what is of use at all."""
        kernel = spec.kernel_of(1.0)
        inputs = dataset.X.shape[1]
        rows = int(dataset.total)  # copies count: each makes the others' labels surer
        most = min(MAX_BUDGET_VECTORS, max(2, min(dataset.size, rows // ROWS_PER_VECTOR)), kernel.dimensions(inputs))
        count = {scheme: len(dataset.outputs(scheme)) for scheme in ("ovo", "ovr")}
        values = dataset.targets is not None
        wanted = f"{count['ovr']} target{'s' * (count['ovr'] > 1)}" if values else f"{dataset.n_classes} classes"
        return cls(max_bytes, kernel, inputs, count, values, wanted, int(most))

    def size(self, count: int, scheme: str, scaled: bool, used: int | None = None) -> int:
        """The fewest bytes of so many vectors."""
        used, form = self.inputs if used is None else used, fixed_point_form(self.kernel)
        return sum(form.least_parts(count, self.inputs, used, self.outputs[scheme], scaled, self.values).values())

    def count(self, scheme: str, scaled: bool, used: int | None = None) -> int:
        """Vectors that fit, 0 if none does."""
        one, two = (self.size(m, scheme, scaled, used) for m in (1, 2))
        if one > self.max_bytes:
            return 0
        return self.most if one == two else min(self.most, 1 + (self.max_bytes - one) // (two - one))

    def schemes(self, given: str, scaled: bool) -> list[str]:
        """What may be best: pairs where they fit, one output a class where that leaves more vectors."""
        if self.outputs["ovo"] == 1 or given == "ovr":
            return [given]
        pairs, rest = self.count("ovo", scaled), self.count("ovr", scaled)
        return (["ovo"] if pairs else []) + (["ovr"] if rest > pairs or not pairs else [])

    def levels(self) -> list[ByteBudget]:
        """This budget, a quarter of it, a quarter of that and so on: more bytes are to do no harm."""
        found, less = [self], self
        while less.max_bytes >= 4 * MIN_LEVEL_BYTES:
            less = replace(self, max_bytes=less.max_bytes // 4)
            if (
                MIN_LEVEL_VECTORS <= less.count("ovr", False) < MAX_SEARCH_VECTORS
            ):  # from there on `fewer_vectors` looks at less
                found.append(less)
        return found

    def affordable(self, space: SearchSpace) -> SearchSpace:
        """The settings for which a vector fits; where that takes fewer inputs, scales tell which ones to keep."""
        scaled = [s for s in space.scaled if self.count("ovr", s)]
        fewest = min(MIN_INPUTS, self.inputs)
        if not scaled and space.may_learn_scales and self.count("ovr", True, fewest):
            scaled = [True]
        if not scaled:
            ways = [(self.size(1, "ovr", s), self.inputs, s) for s in space.scaled]
            narrow = (self.size(1, "ovr", True, fewest), fewest, True)
            hint = ""
            if narrow[0] < min(ways)[0] and space.may_learn_scales:
                ways.append(narrow)
            elif narrow[0] < min(ways)[0]:
                hint = ", or use scales='search' and basis='learned', which leave out the inputs that count least"
            raise TooFewBytes(self.max_bytes, self.wanted, *min(ways), hint)
        return replace(space, scaled=scaled)


def model_size(model: Model, values: bool) -> int:
    """Bytes of the model on a device; ``values``: they are the answer themselves."""
    machine, form = model.expansion, fixed_point_form(model.expansion.kernel)
    return sum(form.parts(machine.kernel, dense(machine.vectors), len(machine.bias), values).values())


# --- how it is spent ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BytePlan:
    """One way to spend the bytes: pairs of classes ("ovo") or one output a class ("ovr"), hyperparameters, how many of
    the inputs are kept, and how many vectors at most."""

    scheme: str
    hyperparameters: Hyperparameters
    inputs: int
    most: int = MAX_BUDGET_VECTORS

    def __str__(self) -> str:
        kind = "pairs of classes, " if self.scheme == "ovo" else ""
        scales = "learned" if self.hyperparameters.scaled else "fixed"
        return f"{kind}{self.inputs} inputs, at most {self.most} vectors, scales {scales}"


def train_within_bytes(
    budget: ByteBudget,
    dataset: Dataset,
    spec: TrainingSpec,
    space: SearchSpace,
    find: SearchFunction,
    rng: np.random.Generator,
    report: Report = None,
) -> tuple[Model, BytePlan]:
    """The model, over vectors on the device's grid, and what it is made by; ``find`` chooses the hyperparameters.

    Where settings are open, less than the budget is tried, too.
    """
    if budget.values:  # large coefficients that cancel make noise of rounding; of votes it changes few
        spec = replace(spec, noise=FIXED_POINT_NOISE)
    folds, seed = search_folds(dataset, rng), int(rng.integers(2**31))
    folds = folds if dataset.size < ONE_FOLD_ROWS else folds[:1]
    budget.affordable(space)
    levels = [budget] if space.is_fixed else budget.levels()
    races = [ByteBudgetSearch(level, dataset, spec, folds, seed, report) for level in levels]
    plans = [race.plan(space, find) for race in races]
    at = 0
    if len(races) > 1:
        errors = [race.error(plan) for race, plan in zip(races, plans, strict=True)]
        at = next(k for k, error in enumerate(errors) if error <= min(errors) + 0.5 * races[k].doubt(min(errors)))
    race = races[at]
    model, plan = race.final(plans[at])
    return replace(model, more=model.more | {"C_": plan.hyperparameters.C, "search_results_": race.found.table}), plan


class ByteBudgetSearch:
    """Plans for a budget, compared on rows held out."""

    def __init__(
        self, budget: ByteBudget, dataset: Dataset, spec: TrainingSpec, folds: list[Fold], seed: int, report: Report
    ):
        self.budget, self.dataset, self.spec, self.report = budget, dataset, spec, report
        self.folds, self.seed = folds, seed
        self.errors: dict[BytePlan, float] = {}
        self.trained: dict[BytePlan, float] = {}  # errors on the rows of training
        self.narrowest: list[BytePlan] = []  # what is left where vectors far out take all others beyond the bytes

    def plan(self, space: SearchSpace, find: SearchFunction) -> BytePlan:
        """The best one. Scales of the inputs cost bytes, so the search has as many vectors as go with them."""
        among = self.budget.affordable(space)
        count = min(MAX_SEARCH_VECTORS, self.budget.count("ovr", max(among.scaled)) or RELEVANCE_VECTORS)
        self.found = find(replace(self.spec, n_vectors=count), among)
        params = self.found.hyperparameters
        schemes = self.budget.schemes(self.spec.scheme, params.scaled)
        plan = self.best([BytePlan(scheme, params, self.budget.inputs) for scheme in schemes])
        if space.may_learn_scales:
            plan = self.fewer_inputs(plan, space)
        return self.fewer_vectors(plan)

    def expected(self, plan: BytePlan) -> float:
        """The error of a plan on the rows of training; on rows held out in the search, if it was not tried itself."""
        if plan in self.trained:
            return self.trained[plan]
        tried = zip(*(self.found.table.get(name, ()) for name in ("C", "gamma", "scales", "error")), strict=True)
        errors = {(C, gamma, scales == "learned"): error for C, gamma, scales, error in tried}
        mine = self.found.hyperparameters
        return errors.get((mine.C, mine.gamma, mine.scaled), 1.0)

    def best(self, plans: list[BytePlan]) -> BytePlan:
        """That of the least error, the first among equals; a single one needs no trial."""
        if len(plans) == 1:
            return plans[0]
        return min(plans, key=self.error)

    def error(self, plan: BytePlan) -> float:
        """On the rows held out; a plan that gives up inputs was tried with others."""
        if plan not in self.errors:
            self.try_all([plan])
        return self.errors[plan]

    def fewer_inputs(self, plan: BytePlan, space: SearchSpace) -> BytePlan:
        """The plan, or one that gives up the inputs that count least, where vectors are few."""
        params = plan.hyperparameters if plan.hyperparameters.scaled else self.learned(plan.hyperparameters, space)
        ladder = [BytePlan(plan.scheme, params, inputs) for inputs in self.ladder(plan.scheme)]
        if len(ladder) == 1:
            return plan
        self.narrowest = ladder[-1:]
        self.try_all(ladder)
        found = [p for p in dict.fromkeys((plan, *ladder)) if p in self.errors or (p == plan and self.fits(p))]
        least = min(map(self.error, found))
        # The more inputs the better, but for what is more than noise: which ones count least is not certain.
        return next(p for p in found if self.error(p) <= least + 0.5 * self.doubt(least))

    def doubt(self, error: float) -> float:
        """The standard error of an error on all rows held out: of a share of them, or of a mean of squares."""
        rows = sum(fold.test.size for fold in self.folds)
        return error * float(np.sqrt(2 / rows)) if self.budget.values else float(np.sqrt(max(error, 1 / rows) / rows))

    def fits(self, plan: BytePlan) -> bool:
        """Do the bytes pay for a vector?"""
        return self.budget.count(plan.scheme, plan.hyperparameters.scaled, plan.inputs) > 0

    def fewer_vectors(self, plan: BytePlan) -> BytePlan:
        """The plan, or one with fewer vectors than fit, where those are many: more of them may only fit noise."""
        full = min(plan.most, self.budget.count(plan.scheme, plan.hyperparameters.scaled, plan.inputs))
        if full <= MAX_SEARCH_VECTORS or plan.inputs < self.budget.inputs:  # inputs were given up for want of vectors
            return plan
        best = replace(plan, most=MAX_SEARCH_VECTORS)
        for most in (int(np.sqrt(MAX_SEARCH_VECTORS * full)), full):
            more = replace(plan, most=most)
            if self.error(more) >= self.error(best):  # trials with many vectors are dear
                break
            best = more
        return best

    def learned(self, params: Hyperparameters, space: SearchSpace) -> Hyperparameters:
        """With scales, which can grow: they start no narrower than gamma="scale"."""
        gamma = min(params.gamma, space.gamma_unit) if space.gamma is None else params.gamma
        return replace(params, gamma=gamma, scaled=True)

    def ladder(self, scheme: str) -> list[int]:
        """Numbers of inputs that may be worth a trial: each 0.7 times the one before, while vectors are few."""
        found = [self.budget.inputs]
        enough = min(ENOUGH_VECTORS, self.budget.most)
        while found[-1] > MIN_INPUTS and self.budget.count(scheme, True, found[-1]) < enough:
            found.append(max(MIN_INPUTS, int(0.7 * found[-1])))
        return found

    def try_all(self, ladder: list[BytePlan]) -> None:
        """Errors of plans of fewer and fewer inputs, each over those that count most by the one before; it ends where
        two in a row are worse than the best by more than a standard error."""
        kept: list[tuple[Array, Model | None]] = [(np.arange(self.budget.inputs), None) for _ in self.folds]
        worse = 0
        for plan in ladder:
            fits, error, trained = self.fits(plan), 0.0, 0.0
            for k, fold in enumerate(self.folds):
                used = self.of_these(*kept[k], fold.train, plan.inputs)
                model = self.over(used, fold.train, plan) if fits else None
                kept[k] = used, self.looked(model, used, fold.train, plan) if len(ladder) > 1 else None
                if model is not None:
                    error += self.error_on(fold.test, model, plan) / len(self.folds)
                    trained += self.error_on(fold.train, model, plan) / len(self.folds)
            if self.report is not None:
                self.report(f"{plan}: error {error:.4g}" if fits else f"{plan}: too large")
            if fits:
                self.errors[plan], self.trained[plan] = error, trained
                least = min(self.errors.values())
                worse = worse + 1 if error > least + self.doubt(least) else 0
            if worse == 2:
                break

    def of_these(self, used: Array, model: Model | None, dataset: Dataset, count: int) -> Array:
        """The inputs that count most in a model over these, if some are to be given up."""
        return used if model is None or count == len(used) else most_relevant_inputs(model, dataset, used, count)

    def final(self, plan: BytePlan) -> tuple[Model, BytePlan]:
        """On all rows, and on the device's grid, which may spoil vectors that lie far out, or take more bytes for them:
        the plan, or the next best one if the model does not fit, or errs on its rows more than those of the trials did
        on theirs."""
        others = sorted((p for p in self.errors if p != plan), key=lambda p: self.errors[p])
        plain = replace(plan, hyperparameters=replace(plan.hyperparameters, scaled=False), inputs=self.budget.inputs)
        done: list[tuple[float, Model, BytePlan]] = []
        too_large: list[tuple[int, int, bool]] = []
        tried = [plan, *others, plain]
        for one in dict.fromkeys((*tried, *self.narrowest)):
            if not self.fits(one) or (done and one not in tried):
                continue
            model = self.rounded(one)
            size = model_size(model, self.budget.values)
            if size > self.budget.max_bytes:
                too_large.append((size, one.inputs, one.hyperparameters.scaled))
                continue
            done.append((self.error_on(self.dataset, model, one), model, one))
            usual = self.expected(one)
            if done[-1][0] <= usual + max(MAX_ERROR_INCREASE, 2 * self.doubt(usual)):
                break
        if not done:
            raise TooFewBytes(self.budget.max_bytes, self.budget.wanted, *min(too_large))
        _, model, plan = min(done, key=lambda found: found[0])
        return model, plan

    def rounded(self, plan: BytePlan) -> Model:
        """A plan on all rows and on the device's grid."""
        used, model = np.arange(self.budget.inputs), None
        for inputs in self.ladder(plan.scheme):
            used = self.of_these(used, model, self.dataset, inputs)
            if inputs == plan.inputs:
                break
            fits = self.fits(replace(plan, inputs=inputs))
            model = self.looked(self.over(used, self.dataset, plan) if fits else None, used, self.dataset, plan)
        return self.over(used, self.dataset, plan, rounded=True)

    def looked(self, model: Model | None, used: Array, dataset: Dataset, plan: BytePlan) -> Model:
        """A model that shows which inputs count: this one, unless it has very few vectors or does not fit."""
        if model is None or model.expansion.vectors.shape[0] < min(RELEVANCE_VECTORS, self.budget.most):
            return self.over(used, dataset, plan, at_least=RELEVANCE_VECTORS)
        return model

    def over(self, used: Array, dataset: Dataset, plan: BytePlan, rounded: bool = False, at_least: int = 1) -> Model:
        """As many vectors as fit over these inputs."""
        basis = self.spec.basis if len(used) == self.budget.inputs else InputSubsetBasis(self.spec.basis, used)
        spec = replace(self.spec, scheme=plan.scheme, basis=GridBasis(basis) if rounded else basis)
        spec = replace(spec, verbose=spec.verbose and rounded)
        fitting = self.budget.count(plan.scheme, plan.hyperparameters.scaled, len(used))
        count = max(min(plan.most, fitting), at_least)
        while True:
            rng = np.random.default_rng(self.seed)
            model = train(dataset, replace(spec, n_vectors=count), plan.hyperparameters, rng, quiet=not rounded)
            excess = model_size(model, self.budget.values) - self.budget.max_bytes
            if excess <= 0 or count == 1 or not rounded:
                return model
            # Vectors far out need steps or offsets of their own, which cost bytes: then fewer of them.
            count = max(1, count - 1 - excess // (len(used) + 2 * len(model.expansion.bias)))

    def error_on(self, rows: Dataset, model: Model, plan: BytePlan) -> float:
        """The share of rows that get another class; of targets the mean loss."""
        F: Array = model.expansion.decision(rows.X, rows.threads)
        if self.budget.values:
            wrong = row_losses(F, rows.targets, self.spec.loss)
        else:
            wrong = Votes(pairs=plan.scheme == "ovo").winners(F, rows.n_classes) != rows.codes
        return float(np.average(wrong, weights=rows.weights))


def most_relevant_inputs(model: Model, dataset: Dataset, used: Array, count: int) -> Array:
    """The inputs that a learned scale makes vary most, in their order."""
    kernel: Any = model.expansion.kernel
    scales = np.broadcast_to(np.asarray(kernel.scales, dtype=np.float64), dataset.X.shape[1])
    spread = dense(dataset.X[:, used]).std(axis=0) * scales[used]
    return np.sort(used[np.argsort(-spread, kind="stable")[:count]])
