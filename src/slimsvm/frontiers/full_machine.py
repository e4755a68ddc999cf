"""The support vector machine over all rows, as the reference of a frontier."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.multioutput import MultiOutputRegressor

from ..data.dataset import Dataset
from ..estimators import validation
from ..estimators.any_norm import AnyNormSVC
from ..estimators.base import with_model
from ..estimators.sklearn_svm import SVR
from ..estimators.sklearn_svm.rows import SvmRows
from ..estimators.sklearn_svm.training import train_svm
from ..estimators.slim_parameters import spec_of
from ..linalg.arrays import Array
from ..problem import losses
from ..training.full import train_full
from ..training.sizes import SizePlan, mean_score
from ..training.slim import scaled_loss
from ..utils.warnings import warn
from .folds import FrontierData, FrontierFold, user_targets, with_columns
from .result import FullMachine
from .scorers import NoProbabilities, Scorer

FULL_COSTS = (1.0, 10.0, 100.0)  # tried if C is searched; in regression in units of the targets' standard deviation
FULL_TUBES = (0.1, 0.03, 0.3)  # tried widths of the tube in the same units; the first is used while C is searched
MAX_FULL_ROWS = 10_000  # training rows


@dataclass(frozen=True)
class _Costs:
    """C and, in regression, epsilon, the width of the tube."""

    C: float
    tube: float = 0.0


Fit = Callable[[Any, _Costs, float, Dataset], Any]  # (estimator, costs, gamma, rows) -> fitted model


def fit_full_machine(
    data: FrontierData,
    plan: SizePlan,
    folds: Sequence[FrontierFold],
    dataset: Dataset,
    score: Scorer,
    report: Callable[[str], None] | None,
) -> FullMachine | None:
    """Fit the model over all rows with the C (and tube) that score best on held-out rows; None if it has no score."""
    prepare = _classification if dataset.targets is None else _regression
    fit, costs, tubes = prepare(data.estimator, dataset)
    gamma = _gamma_without_scales(plan)

    def fitted(estimator: Any, costs: _Costs, rows: Dataset) -> Any:
        return fit(estimator, costs, gamma, rows.sample(MAX_FULL_ROWS, np.random.default_rng(plan.seed)))

    def scored(costs: _Costs) -> tuple[float, float, _Costs]:
        scores = [score(fold, fitted(fold.estimator, costs, fold.train)) for fold in folds]
        if report is not None:
            report(f"full machine, C={costs.C:g}")
        return (*mean_score(scores, plan.folds), costs)

    try:
        best = _best(scored(_Costs(C, tubes[0])) for C in costs)
        mean, error, chosen = _best([best, *(scored(replace(best[2], tube=tube)) for tube in tubes[1:])])
    except NoProbabilities:
        warn("the full machine is left out: it has no probabilities for this scoring to judge. full=False is silent")
        return None
    start = time.perf_counter()
    machine = fitted(data.estimator, chosen, dataset)
    return FullMachine(data.in_pipeline(machine), mean, error, time.perf_counter() - start)


def _best(scored: Iterable[tuple[float, float, _Costs]]) -> tuple[float, float, _Costs]:
    """The entry with the highest score; of equal scores, with the lowest cost."""
    return max(scored, key=lambda one: (one[0], -one[2].C))


def _gamma_without_scales(plan: SizePlan) -> float:
    """The best gamma without learned scales; if the search tried none, the gamma of the plan."""
    columns = [plan.table.get(name, ()) for name in ("error", "gamma", "scales")]
    fixed = [(error, gamma) for error, gamma, scales in zip(*columns, strict=True) if scales == "fixed"]
    return min((one for one in fixed if np.isfinite(one[0])), default=(0.0, plan.hyperparameters.gamma))[1]


def _parameters(model: Any, *names: str) -> dict[str, Any]:
    params = model.get_params(deep=False)
    return {name: params[name] for name in ("kernel", "degree", "coef0", "n_jobs", *names)}


def _classification(model: Any, dataset: Dataset) -> tuple[Fit, tuple[float, ...], tuple[float, ...]]:
    """The fit function of the hinge-loss classifier, and values of C and of the tube to try."""
    return _fit_classifier, FULL_COSTS if model.C == "search" else (float(model.C),), (0.0,)


def _fit_classifier(model: Any, costs: _Costs, gamma: float, rows: Dataset) -> Any:
    machine = AnyNormSVC(C=costs.C, gamma=gamma, **_parameters(model, "class_weight", "multi_class"))
    full = train_full(rows, validation.named_kernel(machine, rows), spec_of(machine))
    return with_model(with_columns(machine, model), rows, full)


def _regression(model: Any, dataset: Dataset) -> tuple[Fit, tuple[float, ...], tuple[float, ...]]:
    """The fit function of one SVR for each target, and values of C and of the tube to try."""
    assert dataset.target_scaler is not None
    loss, unit = losses.resolve(model.loss, model.epsilon), dataset.target_scaler.size
    costs = FULL_COSTS if model.C == "search" else (float(model.C) * scaled_loss(loss, dataset)[1],)
    return partial(_fit_regressors, unit), costs, (float(loss.epsilon / unit[0]),) if loss.epsilon > 0 else FULL_TUBES


def _fit_regressors(unit: Array, model: Any, costs: _Costs, gamma: float, rows: Dataset) -> Any:
    """Fit one SVR for each target, with C and tube converted to the units of the target."""
    machines = []
    for size, y in zip(unit.tolist(), user_targets(rows).reshape(rows.size, -1).T, strict=True):
        machine = SVR(C=costs.C * size, epsilon=costs.tube * size, gamma=gamma, **_parameters(model))
        machines.append(_fit_svr(with_columns(machine, model), rows, y))
    if rows.single_target:
        return machines[0]
    together = MultiOutputRegressor(clone(machines[0]))
    together.estimators_ = machines
    return with_columns(together, model)


def _fit_svr(machine: Any, rows: Dataset, y: Array) -> Any:
    """`SVR.fit` without checks of rows; `support_` are indices of the user's rows."""
    target: dict[str, Any] = {"targets": np.ascontiguousarray(y)[:, None], "target_scaler": None}
    local = SvmRows(replace(rows, indices=np.arange(rows.size), n_samples=rows.size, **target), rows.X)
    machine._set_svm(local, train_svm(local.dataset, machine._spec()))
    machine.support_ = np.asarray(rows.indices)[machine.support_].astype(np.int32)
    return machine
