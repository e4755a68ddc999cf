"""Table 4: accuracy, vectors and test time on eight sets, settings chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from slimsvm.linalg.arrays import Array

from ..recipe import Column, Outcomes, Recipe, Samples, Task, printed
from . import reasons
from .paper import PAPER
from .sets import ALL, FAST, L0, MERGED, RVM, SVM, fold, measure, settings

MACHINES = (SVM, L0, RVM)
RIGHT, VECTORS, SECONDS = "right, %", "vectors", "test, s"
OTHER_FOLDS = "{}, chosen on the other folds"
EQUAL_ROWS, FAST_RVM = "{}, equal rows as one", "{}, fast RVM"
RATIO = "mean, in % of the SVM's"
FACTS = ("right", "vectors", "test")


def column(machine: str, what: str) -> str:
    return f"{machine} {what}"


# --- tasks ------------------------------------------------------------------------------------------


def part_of_grid(name: str, division: int, part: int, width: float) -> dict[str, Any]:
    """All machines on one fold, at all settings with this width."""
    split = fold(name, division, part)
    scores: dict[str, list[Any]] = {}
    for machine, setting in settings(name, width):
        found = measure(ALL[name], split, machine, setting)
        scores.setdefault(machine, []).append([*setting, *(found[fact] for fact in FACTS)])
    return {"set": name, "division": division, "fold": part, "scores": scores}


QUICK = {"titanic": 2, "colon": 1}  # divisions


def tasks() -> Iterator[Task]:
    for name, one in ALL.items():
        for division in range(one.divisions):
            for part in range(one.folds):
                for width in one.widths:
                    title = f"{name}, division {division}, fold {part}, width {width:g}"
                    quick = division < QUICK.get(name, 0)
                    yield Task(title, part_of_grid, (name, division, part, width), (name,), quick)


# --- from scores to cells --------------------------------------------------------------------------


def tables(outcomes: Outcomes) -> dict[tuple[str, str], list[Array]]:
    """For each set and machine: of each division that is complete an array, folds x settings x facts."""
    found: dict[tuple[str, int, str], dict[int, list[Any]]] = {}
    for outcome in outcomes.values():
        for machine, scores in outcome["scores"].items():
            parts = found.setdefault((outcome["set"], outcome["division"], machine), {})
            parts.setdefault(outcome["fold"], []).extend(scores)
    whole: dict[tuple[str, str], list[Array]] = {}
    for (name, _, machine), parts in sorted(found.items()):
        wanted = sum(m == machine for width in ALL[name].widths for m, _ in settings(name, width))
        if len(parts) == ALL[name].folds and all(len(scores) == wanted for scores in parts.values()):
            ordered = [sorted(parts[part], key=lambda score: score[:3]) for part in sorted(parts)]
            whole.setdefault((name, machine), []).append(np.array(ordered, dtype=float)[:, :, 3:])
    return whole


def best(scores: Array) -> int:
    """The setting that is right most often; of equals that with the fewest vectors."""
    right, vectors, _ = scores.mean(axis=0).T
    good = np.flatnonzero(right >= right.max() - 1e-9)
    return int(good[vectors[good].argmin()])


def on_the_same_folds(scores: Array) -> Array:
    """Means over the folds at the setting that has the best mean over these folds: how the paper seems to have done."""
    return scores[:, best(scores)].mean(axis=0)


def on_the_other_folds(scores: Array) -> Array:
    """Means over the folds, each at the setting that is best on the others."""
    chosen = [scores[k, best(np.delete(scores, k, axis=0))] for k in range(len(scores))]
    return np.mean(chosen, axis=0)


def gather(outcomes: Outcomes) -> Samples:
    """A sample is one division: a cross-validation with its choice of settings, of which the paper had one."""
    found: Samples = {}
    means: dict[tuple[str, str], list[Array]] = {}
    for (name, machine), divisions in tables(outcomes).items():
        row, of = _place(name, machine)
        means[name, machine] = [on_the_same_folds(scores) for scores in divisions]
        _put(found, row, of, means[name, machine])
        _put(found, OTHER_FOLDS.format(row), of, [on_the_other_folds(scores) for scores in divisions])
    return {**found, **_ratios(means)}


def _place(name: str, machine: str) -> tuple[str, str]:
    """Row of the table, and whose columns."""
    beside = {MERGED: (EQUAL_ROWS, L0), FAST: (FAST_RVM, RVM)}
    text, of = beside.get(machine, ("{}", machine))
    return text.format(name), of


def _put(found: Samples, row: str, machine: str, means: Sequence[Array]) -> None:
    for what, numbers in zip((RIGHT, VECTORS, SECONDS), np.transpose(means), strict=True):
        found[row, column(machine, what)] = [float(number) for number in numbers]


def _ratios(means: dict[tuple[str, str], list[Array]]) -> Samples:
    """The last row of the table, where all sets are there."""
    if any((name, machine) not in means for name in ALL for machine in MACHINES):
        return {}
    count = min(len(divisions) for divisions in means.values())
    found: Samples = {}
    for machine in MACHINES[1:]:
        shares = [
            np.mean([100 * means[name, machine][k] / means[name, SVM][k] for name in ALL], axis=0) for k in range(count)
        ]
        _put(found, RATIO, machine, shares)
    return found


# --- the table ---------------------------------------------------------------------------------------

ORDER = [column(machine, what) for machine in MACHINES for what in (RIGHT, VECTORS, SECONDS)]
COLUMNS = (
    Column(column(SVM, RIGHT), "high", 0.01),
    Column(column(SVM, VECTORS)),  # fewer are not better: they come with the setting
    Column(column(L0, RIGHT), "high", 0.01),
    Column(column(L0, VECTORS), "low", 0.1),
    Column(column(RVM, RIGHT), "high", 0.01),
    Column(column(RVM, VECTORS), "low", 0.1),
    *(Column(column(machine, SECONDS), step=0.0001, judged=False) for machine in MACHINES),
)
ROWS = [
    row
    for name, one in ALL.items()
    for base in (name, *[EQUAL_ROWS.format(name)] * one.copies, *[FAST_RVM.format(name)] * one.small)
    for row in (base, OTHER_FOLDS.format(base))
]

TABLE_4 = Recipe(
    name="huang-table-4",
    paper=PAPER,
    title="Table 4: eight sets",
    protocol=(
        "Ten folds (twonorm: five) with equal shares of the classes, drawn five times (twonorm: three); the paper has "
        "one such division, and a run is one here. Inputs standardised in the training part, colon's after a "
        "logarithm. gamma x inputs in 0.03, 0.1, 0.3, 1 (twonorm: to 0.3; colon and lymphoma: 0.003 to 0.3); C in 1, "
        "10, 100; C_alpha / C in 0.03, 0.1, 0.3, 1: the paper's grids are not known. The paper seems to choose "
        "settings on the folds that it reports; the first row of a set does so, of equal settings it takes that with "
        "the fewest vectors. The second row is honest: the setting of each fold is chosen on the others. The L0 "
        "machine of flare-solar and titanic counts all copies of a row as the paper's algorithm does; `LpSVC`, for "
        "which equal rows are one, has rows of its own. The RVM of thyroid, colon and lymphoma is Tipping's first "
        "algorithm, which the paper used; elsewhere, and in rows of its own, it is `RelevanceVectorClassifier`."
    ),
    tasks=tasks,
    columns=COLUMNS,
    rows=(*ROWS, RATIO),
    # The scan has colon's accuracies upside down: 86.67, which agrees with the row of mean ratios.
    printed=printed(
        ORDER,
        {
            "diabetes": (76.31, 363.0, 0.0035, 76.95, 8.1, 0.0004, 76.82, 10.9, 0.0004),
            "flare-solar": (67.36, 819.9, 0.0153, 67.37, 7.3, 0.0004, 62.23, 268.7, 0.0059),
            "german": (76.40, 504.3, 0.0092, 76.20, 17.0, 0.0006, 76.20, 25.9, 0.0008),
            "thyroid": (96.82, 26.9, 0.0003, 96.82, 7.2, 0.0002, 96.82, 5.0, 0.0002),
            "titanic": (78.86, 1981.0, 0.123, 78.82, 256.7, 0.0131, 77.81, 1768.92, 0.1100),
            "twonorm": (97.70, 537.4, 0.2116, 97.81, 16.6, 0.0059, 97.47, 39.2, 0.0150),
            "colon": (86.67, 41.4, 0.0033, 86.67, 4.5, 0.0008, 86.67, 5.2, 0.0011),
            "lymphoma": (93.30, 70.2, 0.0121, 93.33, 10.9, 0.0028, 93.30, 8.2, 0.0026),
            RATIO: (None, None, None, 100.09, 9.46, 18.51, 98.90, 22.54, 34.59),
        },
    ),
    runs=1,
    gather=gather,
    reasons=reasons.TABLE_4,
)
