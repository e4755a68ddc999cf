"""Accuracy against size: models of several sizes on the user's own data, judged, beside the full machine."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, indexable

from ..data.dataset import Dataset
from ..data.folds import Fold
from ..estimators import checked_data, validation
from ..estimators.any_norm import AnyNormSVC
from ..estimators.base import COLUMNS_KNOWN, KernelRegressor, labels_and_votes, output_values, with_model
from ..estimators.sklearn_svm import SVR
from ..estimators.sklearn_svm.rows import CheckedRows
from ..estimators.slim import SlimSVC
from ..estimators.slim_parameters import spec_of, targets_of
from ..estimators.slim_regressor import SlimSVR
from ..linalg.arrays import Array
from ..model.expansion import Model
from ..problem import losses
from ..training import sizes as sizing
from ..training.full import train_full
from ..training.scoring import score_classes, score_targets
from ..training.sizes import FoldScore, SizePlan
from ..training.slim import add_outputs_of_size, plan_sizes, scaled_loss, warn_unconverged
from ..utils.progress import ProgressLine
from ..utils.sklearn_private import some_rows, split_rows
from ..utils.warnings import warn
from .result import Frontier, FullMachine, classifier_of

__all__ = ["Frontier", "frontier"]

FULL_COSTS = (1.0, 10.0, 100.0)  # of the full machine, where C is searched; of targets in units of their spread
FULL_TUBES = (0.1, 0.03, 0.3)  # of targets, in the same units: the first while C is searched, then the others
FULL_ROWS = 10_000  # that it is trained on, so that it stays in time
GROUPS = 20  # of rows, each left out once: how far a score depends on them


# --- the work ----------------------------------------------------------------------------------------------------


def frontier(
    X: Any,
    y: Any,
    *,
    sizes: Iterable[int] | None = None,
    estimator: Any = None,
    scoring: Any = None,
    cv: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    full: bool = True,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: bool = False,
) -> Frontier:
    """Models of several sizes, and how accurate they are on rows held out: how many vectors do your data need?

    The largest model is learned first. For each smaller size, the vectors of the size above that gain most are kept and
    learned a little further; all of it takes about twice the time of the largest model alone. ``C``, ``gamma`` and
    ``scales`` are searched once, for all sizes, on all rows. Then the same path runs on the training rows of each part
    of the data, and the rows held out judge each size.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,)
        Class labels, or with `SlimSVR` numbers, of shape (n_samples,) or (n_samples, n_outputs).
    sizes : sequence of int, optional
        Numbers of vectors. Powers of two from 2 to 128 unless given, or to twice the number of classes. Sizes that
        training rows or the kernel's space have no room for become the largest possible one.
    estimator : SlimSVC, SlimSVR or Pipeline, optional
        A machine with the wanted parameters (kernel, slack, basis, C and so on; its ``n_vectors`` and ``max_bytes``
        are not used), or a pipeline that ends with one. ``SlimSVC()`` unless given.
    scoring : str or callable, optional
        A scorer of scikit-learn by name, or ``scoring(estimator, X, y)``; larger is better. One that judges
        probabilities needs an estimator with ``probability=True``. None: the share of rows that are right, class
        weights counted, or R^2 of a regressor.
    cv : int, splitter or iterable, optional
        What is held out. An integer: so many stratified folds. A splitter of scikit-learn, or an iterable of row
        numbers to train on and to test on. None: five folds below 3,000 distinct rows, three below 20,000 (with
        more than two classes, 20,000 divided by their number), else one third, of at most 24,000 rows. Integers and
        None keep equal rows together and do not depend on the order of rows.
    groups : array-like of shape (n_samples,), optional
        For splitters that hold out groups of rows.
    sample_weight : array-like of shape (n_samples,), optional
        Weight 0 is the same as leaving the row out, weight k as k copies of it.
    full : bool, default=True
        Whether to fit the support vector machine over all rows (at most 10,000 of them) beside the models: the hinge,
        or with `SlimSVR` an `SVR` for each target, with the kernel of the estimator, gamma as the search had it best
        without learned scales, and the best of three costs, then of three tubes, by the rows held out. C and tube are
        those of the estimator where it gives them.
    n_jobs : int, optional
        Threads, instead of the estimator's own.
    random_state : int, RandomState or None, default=0
        Seed of all draws, instead of the estimator's own.
    verbose : bool, default=False
        Show progress on standard error.

    Returns
    -------
    Frontier

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import frontier
    >>> X, y = make_moons(400, noise=0.2, random_state=0)
    >>> found = frontier(X, y, sizes=(2, 4, 8, 16))
    >>> clf = found.best()
    >>> clf.n_vectors_ in (4, 8, 16), bool(clf.score(X, y) > 0.95)
    (True, True)
    """
    X, y, sample_weight = (validation.require_memory("frontier", part) for part in (X, y, sample_weight))
    X, y = indexable(X, y)
    check_consistent_length(X, y, groups, sample_weight)
    outer, wanted = _prototype(estimator, n_jobs, random_state), _checked_sizes(sizes)
    data = _FrontierData.of(outer, X, y, sample_weight)
    model = data.estimator
    spec_of(model)  # says what is wrong with the parameters
    dataset = checked_data.checked_dataset(model, data.inner, y, sample_weight, targets_of(model))
    wanted = wanted or sizing.size_grid(1, dataset.n_classes)
    model.n_vectors, model.verbose = max(wanted), bool(verbose)
    complaint = validation.scale_complaint(dataset.X, model.kernel, getattr(model, "feature_names_in_", None))
    if complaint:
        warn(complaint)
    line = ProgressLine("frontier") if verbose else None
    report = line.update if line else None
    score = _scorer(scoring, model, sample_weight is not None)
    parts: list[_FrontierFold] = []

    def hold_out(dataset: Dataset, rng: np.random.Generator) -> list[Fold]:
        splitter = _splitter(cv, y, not isinstance(model, KernelRegressor))
        parts.extend(_held_out(data, splitter, groups, dataset, rng))
        return [part.fold for part in parts]

    spec = spec_of(model)
    plan = plan_sizes(dataset, spec, wanted, hold_out)
    # Only scorers ask for probabilities.
    layered = None if scoring is None else replace(spec, verbose=False)
    curve = plan.validation_curve([partial(_judged, score, plan, layered, part) for part in parts], report)
    machine = _full_machine(data, plan, parts, dataset, score, report) if full else None
    models, seconds = _models(data, plan, dataset, report)
    floor = sizing.smallest_size(dataset.n_classes)
    found = Frontier(models, curve, seconds, machine, _name(scoring, model), floor)
    if line is not None:
        line.finish(f"{found.best_size()} vectors do")
    return found


def _prototype(estimator: Any, n_jobs: int | None, random_state: Any) -> Any:
    """A copy of the estimator, with these settings in the place of its own."""
    outer = SlimSVC() if estimator is None else clone(estimator, safe=False)
    model = classifier_of(outer)
    if not isinstance(model, (SlimSVC, SlimSVR)):
        raise ValueError(
            f"estimator={estimator!r} must be a SlimSVC or SlimSVR, or a Pipeline that ends with one, such as "
            "make_pipeline(StandardScaler(), SlimSVC())"
        )
    budget = {"max_bytes": None} if "max_bytes" in model.get_params(deep=False) else {}
    model.set_params(n_vectors=1, random_state=random_state, **budget)
    if n_jobs is not None:
        model.set_params(n_jobs=n_jobs)
    return outer


def _checked_sizes(sizes: Iterable[int] | None) -> tuple[int, ...]:
    if sizes is None:
        return ()
    wanted = tuple(sizes) if isinstance(sizes, Iterable) and not isinstance(sizes, str) else (sizes,)
    for size in wanted:
        validation.check_number("sizes", size, at_least=1, integer=True)
    if not wanted:
        raise ValueError("sizes is empty; give at least one number of vectors, such as sizes=(4, 8, 16)")
    return tuple(sorted({int(size) for size in wanted}))


def _name(scoring: Any, model: Any) -> str:
    if scoring is None:
        return "r2" if isinstance(model, KernelRegressor) else "accuracy"
    return scoring if isinstance(scoring, str) else str(getattr(scoring, "__name__", scoring))


# --- rows --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _FrontierData:
    """The user's rows, the steps before the classifier fitted to them, and what comes out of those (``inner``)."""

    outer: Any  # the prototype
    steps: Any  # fitted; None where there are none
    estimator: Any
    X: Any
    inner: Any
    y: Any
    weight: Array | None

    @classmethod
    def of(cls, outer: Any, X: Any, y: Any, weight: Any) -> _FrontierData:
        """The steps fitted to these rows."""
        estimator = clone(classifier_of(outer))
        weight = None if weight is None else np.asarray(weight, dtype=np.float64)
        if not isinstance(outer, Pipeline) or len(outer.steps) == 1:
            return cls(outer, None, estimator, X, X, y, weight)
        steps = clone(outer[:-1])
        return cls(outer, steps, estimator, X, steps.fit_transform(X, y), y, weight)

    def some(self, rows: Array) -> _FrontierData:
        """Some rows, as if there were no others."""
        X, y = split_rows(self.outer, self.X, self.y, rows)
        return _FrontierData.of(self.outer, X, y, None if self.weight is None else self.weight[rows])

    def whole(self, model: Any) -> Any:
        """A fitted classifier behind the steps that it needs."""
        if not isinstance(self.outer, Pipeline):
            return model
        steps = [] if self.steps is None else self.steps.steps
        last = (self.outer.steps[-1][0], model)
        return Pipeline([*steps, last], memory=self.outer.memory, verbose=self.outer.verbose)


@dataclass(frozen=True)
class _FrontierFold:
    """A fold, the estimator that checked its training rows, and its test rows and labels as the user gave them."""

    fold: Fold
    estimator: Any
    X: Any
    y: Array

    @property
    def train(self) -> Dataset:
        return self.fold.train

    @property
    def weights(self) -> Array:
        return self.fold.test.counts

    @property
    def keys(self) -> Array:
        """Keys of the test rows: equal for equal rows."""
        return self.fold.test.keys

    @classmethod
    def of(cls, data: _FrontierData, dataset: Dataset, train: Array, test: Array, share: float = 1.0) -> _FrontierFold:
        """Rows by their numbers among the user's; ``share``: how often those to train on count."""
        mine = data.some(train)
        weights = mine.weight if share == 1 else share * (np.ones(len(train)) if mine.weight is None else mine.weight)
        places = np.searchsorted(dataset.indices, test)
        places = places[dataset.indices[np.minimum(places, dataset.size - 1)] == test]  # of rows that count
        test = dataset.indices[places]
        X, _ = split_rows(data.outer, data.X, None, test, train)
        train_set = checked_data.checked_dataset(
            mine.estimator, mine.inner, mine.y, weights, targets_of(mine.estimator)
        )
        test_set = dataset.take(places)
        return cls(
            Fold(train_set, test_set),
            mine.estimator,
            X if mine.steps is None else mine.steps.transform(X),
            dataset.classes[test_set.codes] if dataset.targets is None else _values(test_set),
        )


def _values(dataset: Dataset) -> Array:
    """Targets as the user gave them."""
    assert dataset.target_scaler is not None
    values = dataset.target_scaler.centre + dataset.target_scaler.size * dataset.targets
    return values[:, 0] if dataset.single_target else values


def _splitter(cv: Any, y: Any, classes: bool) -> Any:
    """Folds of our own (a number of them, or None: by the number of rows), or those of a splitter."""
    if cv is None:
        return None
    if validation.is_number(cv):
        validation.check_number("cv", cv, at_least=2, integer=True)
        return int(cv)
    return check_cv(cv, y, classifier=classes)


def _held_out(
    data: _FrontierData, splitter: Any, groups: Any, dataset: Dataset, rng: np.random.Generator
) -> list[_FrontierFold]:
    """The parts that judge, each with rows to train on."""
    targets = targets_of(data.estimator)
    rows = checked_data.checked_dataset(clone(data.estimator), data.inner, data.y, data.weight, targets, merge=False)
    if splitter is None or isinstance(splitter, int):
        found = []
        for part in sizing.size_folds(dataset, rng, splitter):
            train, test = (np.isin(rows.keys, some.keys) for some in (part.train, part.test))
            share = float(part.train.counts.sum() / rows.counts[train].sum())
            share = 1.0 if abs(share - 1) < 1e-9 else share
            found.append(_FrontierFold.of(data, rows, rows.indices[train], rows.indices[test], share))
        return found
    found = []
    for number, (train, test) in enumerate(splitter.split(data.X, data.y, groups), 1):
        try:
            found.append(_FrontierFold.of(data, rows, np.sort(train), np.sort(test)))
        except ValueError as error:
            raise ValueError(f"part {number} of cv cannot be trained on: {error}") from error
        if not len(found[-1].y):
            raise ValueError(f"part {number} of cv holds out no row that counts; use another cv")
    return found


# --- scores ------------------------------------------------------------------------------------------------------

Score = Callable[[_FrontierFold, Any], FoldScore]


class _NoProbabilities(ValueError):
    """A scorer asks for what a model without probabilities does not have."""


def _judged(score: Score, plan: SizePlan, layered: Any, part: _FrontierFold, model: Model) -> FoldScore:
    """What a part says of a model of the path; with a layer for probabilities where ``layered`` has one."""
    if layered is not None:
        model = add_outputs_of_size(part.train, model, layered, plan, max(1, model.expansion.vectors.shape[0]))
    return score(part, with_model(part.estimator, part.train, model))


def _scorer(scoring: Any, model: Any, weighted: bool) -> Score:
    """What judges a fitted classifier on a part: its score, and the variance of that."""
    if scoring is None:
        return _missed if isinstance(model, KernelRegressor) else _right
    scorer = check_scoring(model, scoring=scoring)
    if not callable(scorer):
        raise ValueError(f"scoring={scoring!r} must be the name of one scorer, or a function of (estimator, X, y)")
    takes = inspect.signature(scorer).parameters
    if weighted and "sample_weight" not in takes and not any(p.kind == p.VAR_KEYWORD for p in takes.values()):
        raise ValueError(f"scoring={scoring!r} must take sample_weight where sample_weight is given")
    return partial(_scored, scorer, _name(scoring, model), weighted)


def _right(part: _FrontierFold, model: Any) -> FoldScore:
    """The share of rows that are right."""
    factors = dict(zip(part.train.classes.tolist(), part.train.class_weights, strict=True))
    weights = part.weights * np.array([factors.get(label, 1.0) for label in part.y.tolist()])
    return score_classes(output_values(model, part.X), *labels_and_votes(model), part.y, weights, part.keys)


def _missed(part: _FrontierFold, model: Any) -> FoldScore:
    """R^2."""
    targets, values = (found.reshape(len(part.y), -1) for found in (part.y, model.predict(part.X)))
    return score_targets(values, targets, part.weights, part.keys)


def _scored(scorer: Any, name: str, weighted: bool, part: _FrontierFold, model: Any) -> FoldScore:
    """The score, and the jackknife's variance: how it changes when some of the rows are left out."""

    def score(rows: Array) -> float:
        weights = {"sample_weight": part.weights[rows]} if weighted else {}
        try:
            return float(scorer(model, some_rows(part.X, rows), part.y[rows], **weights))
        except AttributeError as error:
            if hasattr(model, "predict_proba"):
                raise
            raise _NoProbabilities(
                f"scoring={name!r} cannot judge a {type(model).__name__} without probabilities ({error}); give an "
                "estimator that has them: estimator=SlimSVC(probability=True)"
            ) from error

    everyone = np.arange(len(part.y))
    of_numbers = part.train.targets is not None
    group = _groups(part, of_numbers)
    count = int(group.max()) + 1
    found = score(everyone)
    if np.isnan(found):
        labels = "numbers" if of_numbers else f"{np.unique(part.y).tolist()}, the model's {model.classes_.tolist()}"
        raise ValueError(
            f"scoring={name!r} is not a number on the rows held out in one of the parts; their classes are {labels}. "
            "Where rows of a class are few: use fewer parts, such as cv=2, or another scoring"
        )
    values = [score(everyone[group != g]) for g in range(count)] if count > 1 else []
    return FoldScore(found, (count - 1) * float(np.var(values)) if values else 0.0)


def _groups(part: _FrontierFold, of_numbers: bool = False) -> Array:
    """Rows dealt out within each class, equal rows together: no class is left without rows.

    The only row of a class (-1) is never left out.
    """
    group = np.full(len(part.y), -1)
    labels = np.zeros(len(part.y)) if of_numbers else part.y
    for label in np.unique(labels):
        mine = np.flatnonzero(labels == label)
        rank = np.unique(part.keys[mine], return_inverse=True)[1]
        if rank.max() > 0:
            group[mine] = rank % GROUPS
    return group


# --- fits --------------------------------------------------------------------------------------------------------


def _models(
    data: _FrontierData, plan: SizePlan, dataset: Dataset, report: Callable[[str], None] | None
) -> tuple[dict[int, Any], dict[int, float]]:
    """Fitted models on all rows, the smallest first, and the seconds of each."""
    models, seconds = {}, {}
    start = time.perf_counter()
    for size, model in plan.models(dataset):
        warn_unconverged(model, data.estimator.tol, spec_of(data.estimator).problems)
        mine = clone(classifier_of(data.outer)).set_params(n_vectors=size)
        model = add_outputs_of_size(dataset, model, spec_of(mine), plan, size)
        models[size] = data.whole(with_model(_knowing(mine, data.estimator), dataset, model))
        now = time.perf_counter()
        seconds[size], start = now - start, now
        if report is not None:
            report(f"all rows, {size} vectors")
    return dict(sorted(models.items())), dict(sorted(seconds.items()))


def _full_machine(
    data: _FrontierData,
    plan: SizePlan,
    parts: list[_FrontierFold],
    dataset: Dataset,
    score: Score,
    report: Callable[[str], None] | None,
) -> FullMachine | None:
    """The machine over all rows, with the costs that the rows held out like best; None where it has no score."""
    kind = _full_classes if dataset.targets is None else _full_values
    fit, costs, tubes = kind(data.estimator, dataset)

    def fitted(estimator: Any, setting: _Costs, rows: Dataset) -> Any:
        return fit(estimator, setting, _fixed_gamma(plan), rows.sample(FULL_ROWS, np.random.default_rng(plan.seed)))

    def judged(setting: _Costs) -> tuple[float, float, _Costs]:
        verdicts = [score(part, fitted(part.estimator, setting, part.train)) for part in parts]
        if report is not None:
            report(f"full machine, C={setting.C:g}")
        return (*sizing.mean_score(verdicts, plan.folds), setting)

    try:
        best = _best(judged(_Costs(C, tubes[0])) for C in costs)
        found, error, setting = _best([best, *(judged(replace(best[2], tube=tube)) for tube in tubes[1:])])
    except _NoProbabilities:
        warn("the full machine is left out: it has no probabilities for this scoring to judge. full=False is silent")
        return None
    start = time.perf_counter()
    machine = fitted(data.estimator, setting, dataset)
    return FullMachine(data.whole(machine), found, error, time.perf_counter() - start)


@dataclass(frozen=True)
class _Costs:
    """What errors cost a full machine: C and, of targets, the tube in which they cost nothing."""

    C: float
    tube: float = 0.0


def _best(judged: Iterable[tuple[float, float, _Costs]]) -> tuple[float, float, _Costs]:
    """The highest score; of equal ones, that of the lowest cost."""
    return max(judged, key=lambda one: (one[0], -one[2].C))


# A fit of an estimator's kind with these costs and this gamma to these rows, and costs and tubes to try.
_Full = tuple[Callable[[Any, _Costs, float, Dataset], Any], tuple[float, ...], tuple[float, ...]]


def _full_classes(model: Any, dataset: Dataset) -> _Full:
    """The hinge."""
    return _fit_classes, FULL_COSTS if isinstance(model.C, str) else (float(model.C),), (0.0,)


def _fit_classes(model: Any, setting: _Costs, gamma: float, rows: Dataset) -> Any:
    shared = ("kernel", "degree", "coef0", "class_weight", "multi_class", "n_jobs")
    machine = AnyNormSVC(C=setting.C, gamma=gamma, **{name: getattr(model, name) for name in shared})
    full = train_full(rows, validation.named_kernel(machine, rows), spec_of(machine))
    return with_model(_knowing(machine, model), rows, full)


def _full_values(model: Any, dataset: Dataset) -> _Full:
    """A tube around each target; costs are in the units that all rows have."""
    assert dataset.target_scaler is not None
    loss, unit = losses.resolve(model.loss, model.epsilon), dataset.target_scaler.size
    costs = FULL_COSTS if isinstance(model.C, str) else (float(model.C) * scaled_loss(loss, dataset)[1],)
    return partial(_fit_values, unit), costs, (float(loss.epsilon / unit[0]),) if loss.epsilon > 0 else FULL_TUBES


def _fit_values(unit: Array, model: Any, setting: _Costs, gamma: float, rows: Dataset) -> Any:
    """A machine for each target: its problem is the same in any unit, if cost and tube are in that unit, too."""
    targets = _values(rows)
    shared = {name: getattr(model, name) for name in ("kernel", "degree", "coef0", "n_jobs")}
    machines = []
    for size, y in zip(unit.tolist(), targets.reshape(rows.size, -1).T, strict=True):
        machine = SVR(C=setting.C * size, epsilon=setting.tube * size, gamma=gamma, **shared)
        machines.append(_fitted_svr(_knowing(machine, model), rows, y))
    if rows.single_target:
        return machines[0]
    together = MultiOutputRegressor(clone(machines[0]))
    together.estimators_ = machines
    return _knowing(together, model)


def _fitted_svr(machine: Any, rows: Dataset, y: Array) -> Any:
    """As `fit` would, of rows that have been checked; it numbers them as the user does."""
    local = replace(rows, indices=np.arange(rows.size), n_samples=rows.size)
    model, solutions = machine._solved(local, np.ascontiguousarray(y))
    machine._tell(solutions)
    machine._keep_rows(CheckedRows(local, y, local.X, None, local.indices, local.counts), model)
    machine.fit_status_ = int(not all(one.converged for one in solutions))
    machine.support_ = np.asarray(rows.indices)[machine.support_].astype(np.int32)
    return machine


def _fixed_gamma(plan: SizePlan) -> float:
    """The best gamma without learned scales, as far as the search has looked; else the one that all models have."""
    columns = [plan.table.get(name, ()) for name in ("error", "gamma", "scales")]
    fixed = [(error, gamma) for error, gamma, scales in zip(*columns, strict=True) if scales == "fixed"]
    return min((one for one in fixed if np.isfinite(one[0])), default=(0.0, plan.hyperparameters.gamma))[1]


def _knowing(model: Any, other: Any) -> Any:
    """A model that knows of its inputs what another knows."""
    vars(model).update({name: value for name, value in vars(other).items() if name in COLUMNS_KNOWN})
    return model
