"""The machines of Tables IV to IX and XI to XIII, trained on some splits of a set: rates, vectors, seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.preprocessing import MinMaxScaler

from slimsvm import AnyNormSVC, EmpiricalSVC

from .. import datasets
from ..recipe import Outcomes, Samples, Task
from .settings import L1, L2, LARGE, LINEAR, SETS, Setting, runs

SVM, SPARSE, OSV, NOSV = "SVM", "sparse", "OSV", "NOSV"
KERNEL_NORM, PIVOTED, BOTH = "sparse, kernel norm", "pivoted", "pivoted, kernel norm"
RATE, VECTORS, SECONDS, DISTINCT = "rate", "vectors", "seconds", "distinct"

AT_ONCE = 5  # splits of a task
QUICK = {name: AT_ONCE if name in LARGE else 2 * AT_ONCE for name in SETS}  # splits of quick mode
NEAR = 1e-3  # how far beyond the margin a row still counts as on it


def rbf_machines(setting: Setting, d: int, slack: str) -> dict[str, Any]:
    """All rows; the paper's sparse machine; ours: the kernel's own norm, with C of the first, and pivots."""
    keys: dict[str, Any] = {"gamma": setting.gamma / d, "slack": slack, "n_jobs": 1}
    paper: dict[str, Any] = {"C": setting.sparse_C, "regularizer": "identity", **keys}
    ours: dict[str, Any] = {"C": setting.C, "regularizer": "kernel", **keys}
    return {
        SVM: AnyNormSVC(C=setting.C, **keys),
        SPARSE: EmpiricalSVC(setting.eta, "order", **paper),
        KERNEL_NORM: EmpiricalSVC(setting.eta, "order", **ours),
        PIVOTED: EmpiricalSVC(setting.eta, "pivoted", **paper),
        BOTH: EmpiricalSVC(setting.eta, "pivoted", **ours),
    }


def linear_machines(setting: Setting, d: int, slack: str) -> dict[str, Any]:
    """OSV: the inputs are the features; NOSV: products with independent rows."""
    keys: dict[str, Any] = {"kernel": "linear", "slack": slack, "n_jobs": 1}
    return {
        SVM: AnyNormSVC(C=setting.C, **keys),
        OSV: EmpiricalSVC(selection="inputs", C=setting.C, regularizer="identity", **keys),
        NOSV: EmpiricalSVC(setting.eta, "order", C=setting.sparse_C, regularizer="identity", **keys),
    }


def prepared(data: datasets.Dataset, k: int) -> datasets.Split:
    """A split, inputs in [0, 1] by the training part, its rows one class after the other: -1, then 1.

    The order decides which rows are kept. The paper does not say it; of those that were tried, this one alone
    gives its numbers of vectors. Within a class rows of published splits stay as they are, which is at random.
    """
    split = data.split(k).mapped(MinMaxScaler())
    order = np.arange(len(split.y)) if split.original else np.random.RandomState(k).permutation(len(split.y))
    order = order[np.argsort(split.y[order], kind="stable")]
    return replace(split, X=split.X[order], y=split.y[order])


def support(model: Any, split: datasets.Split) -> int:
    """Training rows on or within the margin, each of equal rows counted.

    Rows of equal inputs and labels are one vector to the library. Where they are on the margin, how their
    multiplier is divided among them is not determined, and so is not the number of those above 0.
    """
    return int(np.sum(split.y * model.decision_function(split.X) <= 1 + NEAR))


def scores(model: Any, split: datasets.Split) -> dict[str, float]:
    """Percent of test rows that are right, vectors, and seconds for training and testing."""
    began = time.perf_counter()
    error = split.error(model.fit(split.X, split.y))
    seconds = time.perf_counter() - began
    return {RATE: 100 - error, DISTINCT: model.n_vectors_, SECONDS: seconds}


KINDS: Mapping[str, tuple[Mapping[str, Setting], Callable[..., dict[str, Any]], str]] = {
    "linear": (LINEAR, linear_machines, "l1"),
    "l1": (L1, rbf_machines, "l1"),
    "l2": (L2, rbf_machines, "l2"),
}


def trained(kind: str, name: str, first: int) -> list[dict[str, dict[str, float]]]:
    """Of each of some splits: the scores of each machine."""
    settings, machines, slack = KINDS[kind]
    data, found = datasets.load(name), []
    for k in range(first, first + AT_ONCE):
        split = prepared(data, k)
        models = machines(settings[name], split.d, slack)
        one = {machine: scores(model, split) for machine, model in models.items()}
        for machine, numbers in one.items():
            numbers[VECTORS] = support(models[machine], split) if machine == SVM else numbers[DISTINCT]
        found.append(one)
    return found


def training_tasks(kind: str) -> Iterator[Task]:
    for name in SETS:
        for first in range(0, runs(name), AT_ONCE):
            places = f"{name}, splits {first} to {first + AT_ONCE - 1}"
            yield Task(places, trained, (kind, name, first), (name,), quick=first < QUICK[name])


def samples(outcomes: Outcomes, columns: Mapping[str, tuple[str, str]]) -> Samples:
    """Of each column, which shows a number of a machine: one for each split of each set."""
    found: Samples = {}
    for task, splits in outcomes.items():
        name = task.split(",")[0]
        for split in splits:
            for column, (machine, number) in columns.items():
                found.setdefault((name, column), []).append(float(split[machine][number]))
    return found
