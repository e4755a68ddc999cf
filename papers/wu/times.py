"""Section 7.8: training times and iterations."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from sklearn.svm import SVC

from slimsvm import RelevanceVectorClassifier, compress

from .. import datasets
from ..recipe import Column, Outcomes, Recipe, Samples, Task, printed
from .digits import DIGITS, against_rest
from .methods import slmc
from .settings import PAPER, USPS_SETTINGS, settings, share

RATIO = 0.1
SECONDS, LEARNING = "training, s", "iterations of learning"
SPLITS = 10
SVM_ROWS = {"usps": "USPS, SVM", "banana": "banana, SVM"}
USPS_SLMC, USPS_RS, BANANA_SLMC, BANANA_RVM = "USPS, SLMC", "USPS, RS", "banana, SLMC", "banana, RVM"


def timed(model: Any, *rows: Any) -> tuple[float, Any]:
    """Processor time of a fit, and the model."""
    began = time.process_time()
    model.fit(*rows)
    return time.process_time() - began, model


def banana(split: int) -> dict[str, dict[str, float]]:
    """One split."""
    data = datasets.load("banana", split=split)
    given = settings("banana")
    seconds, svm = timed(SVC(**given), data.X, data.y)
    found = {SVM_ROWS["banana"]: {SECONDS: seconds}}
    seconds, model = timed(slmc(share(RATIO, len(svm.support_)), split, **given), data.X, data.y)
    found[BANANA_SLMC] = {SECONDS: seconds, LEARNING: model.learning_iter_}
    seconds, _ = timed(RelevanceVectorClassifier(gamma=given["gamma"]), data.X, data.y)
    return {**found, BANANA_RVM: {SECONDS: seconds}}


def usps(digit: int) -> dict[str, dict[str, float]]:
    """One of ten machines."""
    data = against_rest(digit)
    whole, svm = timed(SVC(**USPS_SETTINGS), data.X, data.y)
    count = share(RATIO, len(svm.support_))
    learning, model = timed(slmc(count, 0, **USPS_SETTINGS), data.X, data.y)
    began = time.process_time()
    compress(svm, count, method="reduced_set")
    return {
        SVM_ROWS["usps"]: {SECONDS: whole},
        USPS_SLMC: {SECONDS: learning, LEARNING: model.learning_iter_},
        USPS_RS: {SECONDS: time.process_time() - began},
    }


def tasks() -> Iterator[Task]:
    for split in range(SPLITS):
        yield Task(f"banana, split {split}", banana, (split,), ("banana",), quick=split < 3)
    for digit in range(DIGITS):
        yield Task(f"usps, digit {digit}", usps, (digit,), ("usps",))


def gather(outcomes: Outcomes) -> Samples:
    """Seconds of ten digits are added; numbers of iterations, and seconds of splits, are runs."""
    found: Samples = {}
    digits: dict[str, list[float]] = {}
    for name, outcome in outcomes.items():
        for row, numbers in outcome.items():
            for column, number in numbers.items():
                if column == SECONDS and name.startswith("usps"):
                    digits.setdefault(row, []).append(float(number))
                else:
                    found.setdefault((row, column), []).append(float(number))
    found.update({(row, SECONDS): [sum(parts)] for row, parts in digits.items() if len(parts) == DIGITS})
    return found


TIMES = Recipe(
    name="wu-times",
    paper=PAPER,
    title="Section 7.8: training times",
    protocol=(
        "Processor time of one core, 10 % of the vectors. USPS: all ten machines, blurred images; banana: mean of ten "
        "splits. The paper: a Pentium 4 of 3 GHz, SLMC in C++, RS and RVM in Matlab, which of its two sizes is not "
        "said. Machines are twenty years apart, so that seconds are not judged; that SLMC takes less time than the RVM "
        "on banana can be. The paper needed 20 to 200 iterations."
    ),
    tasks=tasks,
    columns=(Column(SECONDS, "low", step=0.001, judged=False), Column(LEARNING, step=1)),
    rows=(USPS_SLMC, USPS_RS, SVM_ROWS["usps"], BANANA_SLMC, BANANA_RVM, SVM_ROWS["banana"]),
    printed=printed((SECONDS,), {USPS_SLMC: (24840,), USPS_RS: (8280,), BANANA_SLMC: (1.5,), BANANA_RVM: (5,)}),
    runs=1,
    gather=gather,
    row_name="machine",
)
