"""Table 5: training times."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import fmean

from ..recipe import Column, Outcomes, Recipe, Samples, Task, by_row_and_column, printed
from .originals import TippingRVM
from .paper import PAPER
from .sets import ALL, L0, RVM, SVM, Setting, fold, machine

# Settings that Table 4 often chooses; the RVM has a width alone.
CHOSEN: dict[str, dict[str, Setting]] = {
    "diabetes": {SVM: (0.1, 10, 0), L0: (0.1, 10, 0.3), RVM: (0.3, 0, 0)},
    "flare-solar": {SVM: (0.1, 10, 0), L0: (0.1, 10, 0.1), RVM: (0.1, 0, 0)},
    "german": {SVM: (0.3, 1, 0), L0: (0.1, 10, 0.1), RVM: (0.3, 0, 0)},
    "thyroid": {SVM: (0.3, 100, 0), L0: (1, 10, 0.03), RVM: (1, 0, 0)},
    "titanic": {SVM: (1, 10, 0), L0: (1, 10, 0.03), RVM: (1, 0, 0)},
    "twonorm": {SVM: (0.1, 1, 0), L0: (0.1, 1, 0.3), RVM: (0.1, 0, 0)},
    "colon": {SVM: (0.1, 10, 0), L0: (0.1, 10, 0.1), RVM: (0.1, 0, 0)},
    "lymphoma": {SVM: (0.1, 10, 0), L0: (0.1, 10, 0.1), RVM: (0.1, 0, 0)},
}
FOLDS = 3
FAST = "RVM, fast"
KINDS = {SVM: SVM, L0: L0, RVM: RVM, FAST: RVM}  # columns, and the machine whose settings they have
LARGE = ("titanic", "twonorm")  # on which Tipping's first algorithm takes minutes
FASTER, FASTER_THAN_FAST = "L0 is faster than RVM, times", "than RVM, fast, times"
MEAN = "mean"


def seconds(name: str, part: int, kind: str) -> dict[str, dict[str, float]]:
    """Of one fit."""
    split, setting = fold(name, 0, part), CHOSEN[name][KINDS[kind]]
    model = TippingRVM(setting[0] / split.d) if kind == RVM else machine(KINDS[kind], setting, split.d)
    began = time.perf_counter()
    model.fit(split.X, split.y)
    return {name: {kind: time.perf_counter() - began}}


def tasks() -> Iterator[Task]:
    for name in ALL:
        for part in range(FOLDS):
            for kind in KINDS:
                if kind != RVM or name not in LARGE:
                    quick = part == 0 and name in ("diabetes", "thyroid", "titanic", "colon")
                    yield Task(f"{name}, fold {part}, {kind}", seconds, (name, part, kind), (name,), quick)


def gather(outcomes: Outcomes) -> Samples:
    """Seconds, and how many times faster the L0 machine is: the ratio of means, and its mean over the sets."""
    found = by_row_and_column(outcomes)
    ratios: Samples = {}
    for kind, column in ((RVM, FASTER), (FAST, FASTER_THAN_FAST)):
        for name in ALL:
            if (name, kind) in found and (name, L0) in found:
                ratios[name, column] = [fmean(found[name, kind]) / fmean(found[name, L0])]
        if ratios:
            ratios[MEAN, column] = [fmean(numbers[0] for (_, of), numbers in ratios.items() if of == column)]
    return {**found, **ratios}


def theirs(svm: float, sparse: float, rvm: float) -> tuple[float, ...]:
    return svm, sparse, rvm, rvm / sparse


TABLE_5 = Recipe(
    name="huang-table-5",
    paper=PAPER,
    title="Table 5: training times",
    protocol=(
        "Seconds of one fit, at settings that Table 4 often chooses, on three folds; machines and programs are others "
        "than the paper's, so nothing is judged. SVM: scikit-learn; L0: `LpSVC`, for which equal rows are one; RVM: "
        "Tipping's first algorithm as the paper has it, left out where it takes minutes; RVM, fast: "
        "`RelevanceVectorClassifier`. The paper prints the mean ratio, 7.16; those of the sets follow from its times. "
        "Our means are over the sets measured."
    ),
    tasks=tasks,
    columns=(
        *(Column(kind, step=0.01, judged=False) for kind in KINDS),
        Column(FASTER, step=0.1, judged=False),
        Column(FASTER_THAN_FAST, step=0.1, judged=False),
    ),
    rows=(*ALL, MEAN),
    printed=printed(
        (SVM, L0, RVM, FASTER),
        {
            "diabetes": theirs(0.49, 4.85, 13.63),
            "flare-solar": theirs(0.96, 17.51, 166.69),
            "german": theirs(0.79, 10.74, 34.25),
            "thyroid": theirs(0.02, 0.28, 0.86),
            "titanic": theirs(1.69, 44.86, 1104.00),
            "twonorm": theirs(17.90, 717.80, 8082.97),
            "colon": theirs(0.01, 0.12, 0.18),
            "lymphoma": theirs(0.08, 0.28, 0.41),
            MEAN: (None, None, None, 7.16),
        },
    ),
    gather=gather,
)
