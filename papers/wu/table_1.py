"""Table 1: errors on seven sets with 5 % and 10 % of the vectors of a support vector machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import cross_val_predict
from sklearn.svm import SVC

from slimsvm import RelevanceVectorClassifier, compress

from .. import datasets
from ..recipe import Column, Outcomes, Printed, Recipe, Samples, Task, printed, proportion
from .digits import digit_tasks, together
from .methods import FixedPoints, folds, mrsvm, rsvm, rsvm_settings, slmc, slmc_hinge, slmc_squared
from .reasons import REASONS
from .settings import (
    ERROR,
    FIXED_POINTS,
    HINGE,
    ITERATIONS,
    MRS,
    MRSVM,
    PAPER,
    RATIOS,
    RS,
    RSVM,
    RVM_ERROR,
    RVM_SHARE,
    SETTINGS,
    SLMC,
    SQUARED,
    VECTORS,
    at,
    settings,
    share,
)

SPLITS = {name: 9 if name == "image" else 10 for name in SETTINGS}  # the tenth of image is not to be had
DRAWS, QUICK = 1, 3
RVM_WIDTHS = (0.1, 0.3, 1.0, 3.0)  # as parts of the SVM's gamma

# --- the six sets with splits ---------------------------------------------------------------------


def reduced(name: str, split: int) -> dict[str, dict[str, float]]:
    """The SVM and its reduced sets on one split."""
    data = datasets.load(name, split=split)
    svm = SVC(**settings(name)).fit(data.X, data.y)
    found = {VECTORS: float(len(svm.support_)), ERROR: data.error(svm)}
    for ratio in RATIOS:
        count = share(ratio, len(svm.support_))
        found[at(RS, ratio)] = data.error(compress(svm, count, method="reduced_set"))
        found[at(MRS, ratio)] = data.error(compress(svm, count, data.X, data.y, method="refit"))
        found[at(FIXED_POINTS, ratio)] = data.error(FixedPoints.of(svm, count))
    return {name: found}


def random_ones(name: str, split: int, draw: int) -> dict[str, dict[str, float]]:
    """Machines over random rows, or that start from them."""
    data = datasets.load(name, split=split)
    given = settings(name)
    vectors = len(SVC(**given).fit(data.X, data.y).support_)
    found = {}
    for ratio in RATIOS:
        count = share(ratio, vectors)
        chosen = rsvm_settings(data.X, data.y, count, given["gamma"], draw)
        machines = {
            RSVM: rsvm(count, draw, **chosen),
            MRSVM: mrsvm(count, draw, **chosen),
            SLMC: slmc(count, draw, **given),
            SQUARED: slmc_squared(count, draw, **given),
        }
        for method, model in machines.items():
            found[at(method, ratio)] = data.error(model.fit(data.X, data.y))
    return {name: found}


def hinge_itself(name: str, split: int) -> dict[str, dict[str, float]]:
    """Vectors learned for the hinge without a rounded corner."""
    data = datasets.load(name, split=split)
    given = settings(name)
    vectors = len(SVC(**given).fit(data.X, data.y).support_)
    models = {ratio: slmc_hinge(share(ratio, vectors), 0, **given) for ratio in RATIOS}
    return {name: {at(HINGE, ratio): data.error(model.fit(data.X, data.y)) for ratio, model in models.items()}}


def relevant(name: str, split: int, width: float) -> dict[str, Any]:
    """A relevance vector machine of one width: what five folds of the training rows say of it, and the test rows."""
    data = datasets.load(name, split=split)
    given = settings(name)
    model = RelevanceVectorClassifier(gamma=width * given["gamma"])
    answers = cross_val_predict(model, data.X, data.y, cv=folds())
    model.fit(data.X, data.y)
    vectors = len(SVC(**given).fit(data.X, data.y).support_)
    numbers = {RVM_SHARE: 100 * len(model.support_) / vectors, RVM_ERROR: data.error(model)}
    return {"set": name, "split": split, "held out": float(np.mean(answers != data.y)), "numbers": numbers}


def tasks() -> Iterator[Task]:
    """Sets with splits, then USPS."""
    for name, splits in SPLITS.items():
        for k in range(splits):
            quick = k < QUICK
            yield Task(f"{name}, split {k}, SVM and reduced sets", reduced, (name, k), (name,), quick)
            for draw in range(DRAWS):
                title = f"{name}, split {k}, random vectors and SLMC, draw {draw}"
                yield Task(title, random_ones, (name, k, draw), (name,), quick and draw == 0)
            yield Task(f"{name}, split {k}, SLMC for the hinge itself", hinge_itself, (name, k), (name,))
            for width in RVM_WIDTHS:
                title = f"{name}, split {k}, RVM, {width:g} of the SVM's gamma"
                yield Task(title, relevant, (name, k, width), (name,), quick and name in ("breast-cancer", "titanic"))
    yield from digit_tasks()


# --- cells ----------------------------------------------------------------------------------------


def gather(outcomes: Outcomes) -> Samples:
    """Errors as they are; of the relevance vector machines of a split, the one that five folds prefer; ten digits
    together."""
    found: Samples = {}

    def add(row: str, numbers: dict[str, float]) -> None:
        for column, number in numbers.items():
            found.setdefault((row, column), []).append(float(number))

    for one in outcomes.values():
        if "digit" not in one and "held out" not in one:
            for row, numbers in one.items():
                add(row, numbers)
    for one in _preferred([one for one in outcomes.values() if "held out" in one]):
        add(one["set"], one["numbers"])
    for ten in together([one for one in outcomes.values() if "digit" in one]):
        add("usps", ten["errors"])
        if ERROR in ten["errors"]:
            add("usps", {VECTORS: ten["SVM vectors"]})
        if RVM_ERROR in ten["errors"]:
            add("usps", {RVM_SHARE: 100 * ten["RVM vectors"] / ten["SVM vectors"]})
    return found


def _preferred(machines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each split the machine with the fewest errors on rows held out, the first of them where they are equal."""
    best: dict[tuple[str, int], dict[str, Any]] = {}
    for one in machines:
        place = one["set"], one["split"]
        if place not in best or one["held out"] < best[place]["held out"]:
            best[place] = one
    return list(best.values())


# --- the table ------------------------------------------------------------------------------------

METHODS = (RS, MRS, RSVM, MRSVM, SLMC)
_NUMBERS = (VECTORS, ERROR, *(at(method, ratio) for ratio in RATIOS for method in METHODS), RVM_SHARE, RVM_ERROR)
_TEST_ROWS = 2007

# Both RVM columns are Tipping's numbers, which the paper quotes.
_ROWS: dict[str, tuple[float, ...]] = {
    "usps": (2683, 4.3, 4.9, 4.9, 11.6, 11.5, 4.9, 4.7, 4.8, 8.2, 8.0, 4.7, 11.8, 5.1),
    "banana": (86.7, 11.8, 39.4, 27.6, 29.9, 28.1, 16.5, 21.9, 17.5, 17.5, 16.9, 11.0, 13.2, 10.8),
    "breast-cancer": (112.8, 28.6, 28.8, 28.8, 29.5, 29.4, 27.9, 27.9, 29.0, 31.0, 30.3, 27.9, 5.6, 29.9),
    "titanic": (70.6, 22.1, 37.4, 23.9, 24.5, 24.8, 26.4, 26.6, 22.6, 22.9, 23.9, 22.4, 92.5, 23.0),
    "waveform": (158.9, 9.9, 9.9, 10.0, 15.1, 14.7, 9.9, 10.0, 9.9, 11.6, 11.8, 9.9, 9.2, 10.9),
    "german": (408.2, 22.5, 22.9, 22.5, 23.6, 23.9, 22.3, 22.9, 22.6, 24.5, 23.7, 22.9, 3.1, 22.2),
    "image": (172.1, 2.8, 37.6, 19.4, 23.6, 20.7, 5.2, 18.3, 6.9, 14.2, 12.7, 3.6, 20.1, 3.9),
}


def _printed(row: str, column: str, number: float) -> Printed:
    if row == "usps" and column not in (VECTORS, RVM_SHARE):
        return proportion(number, _TEST_ROWS)
    return Printed(number)


PROTOCOL = (
    "Original splits 1 to 10 of Rätsch (image: 1 to 9), rows as stored, C and width of the SVM as he gives them; what"
    " starts from random rows starts once on each split. USPS: ten machines, each one digit against all "
    "others, C = 10, gamma = 1/128, images blurred by 0.75 pixels, which the paper does not say: without it there are"
    " far more support vectors. RS: the nearest set that joint descent finds, MRS: the same vectors. RSVM: random "
    "rows, as many from each class. The paper does not say so; this was chosen after seeing that it fits USPS, where "
    "rows drawn from all alike give errors of 17.3 and 9.6 % (MRSVM: 17.3 and 9.8). C in 0.1 ... 10⁵ and gamma in 0.1 "
    "... 10 times the SVM's by five folds of each training part. MRSVM with the same C, gamma and vectors. SLMC: C "
    f"and gamma of the SVM, at most {ITERATIONS} iterations "
    "for a hinge with a rounded corner, then coefficients for the hinge. RVM: gamma in 0.1, 0.3, 1, 3 times the SVM's"
    " by five folds of each training part (USPS: the SVM's gamma, every fourth row a candidate); the paper quotes "
    "Tipping. Beside them, and not in the paper: the reduced set one vector at a time by fixed points, as programs of"
    " the time did; SLMC for the squared hinge, and for the hinge itself."
)


def _columns() -> Iterator[Column]:
    yield Column(VECTORS)
    yield Column(ERROR, "low")
    yield Column(RVM_SHARE, "low")
    yield Column(RVM_ERROR, "low")
    for method in (*METHODS, SQUARED, FIXED_POINTS, HINGE):
        yield from (Column(at(method, ratio), "low") for ratio in RATIOS)


TABLE_1 = Recipe(
    name="wu-table-1",
    paper=PAPER,
    title="Table 1: seven sets, 5 % and 10 % of the vectors",
    protocol=PROTOCOL,
    tasks=tasks,
    columns=tuple(_columns()),
    rows=tuple(_ROWS),
    printed=printed(
        _NUMBERS,
        {
            row: [_printed(row, column, number) for column, number in zip(_NUMBERS, numbers, strict=True)]
            for row, numbers in _ROWS.items()
        },
    ),
    runs=10,
    gather=gather,
    reasons=REASONS,
)
