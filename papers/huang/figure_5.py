"""Figure 5: vectors that are left after each round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..recipe import Column, Outcomes, Printed, Recipe, Samples, Task
from ..result import Result
from .paper import PAPER
from .pictures import BLUE
from .sets import ALL, L0, fold, machine, original
from .table_5 import CHOSEN

FOLDS = 5
LARGE = 2000  # rows, beyond which matrices of all rows against all rows are slow
TICKS = (3, 10, 30, 100, 300, 1000, 3000)
ROUNDS, ROWS, FIVE, END = "rounds", "rows", "vectors after 5 rounds, %", "vectors at the end"


def history(name: str, part: int) -> dict[str, Any]:
    """Vectors round by round, beginning with all rows."""
    split, setting = fold(name, 0, part), CHOSEN[name][L0]
    if len(split.y) > LARGE:
        fast = machine(L0, setting, split.d).fit(split.X, split.y)
        return {"set": name, "fold": part, "vectors": [len(split.y), *fast.history_[0]["n_vectors"].tolist()]}
    return {"set": name, "fold": part, "vectors": original(L0, setting, split.d).fit(split.X, split.y).history_}


def tasks() -> Iterator[Task]:
    for name, one in ALL.items():
        for part in range(min(FOLDS, one.folds)):
            quick = part < 2 and name != "twonorm"
            yield Task(f"{name}, fold {part}", history, (name, part), (name,), quick)


def gather(outcomes: Outcomes) -> Samples:
    found: Samples = {}
    for outcome in outcomes.values():
        left = outcome["vectors"]
        numbers = {
            ROUNDS: len(left) - 1,
            ROWS: left[0],
            FIVE: 100 * left[min(5, len(left) - 1)] / left[0],
            END: left[-1],
        }
        for column, number in numbers.items():
            found.setdefault((outcome["set"], column), []).append(float(number))
    return found


def draw(figure: Any, result: Result) -> None:
    """A panel for each set: the first fold, on a logarithmic scale."""
    first = {one["set"]: one["vectors"] for one in result.outcomes.values() if one["fold"] == 0}
    figure.set_size_inches(9.5, 2.3 * ((len(first) + 3) // 4))
    axes = figure.subplots((len(first) + 3) // 4, 4, squeeze=False).ravel()
    for ax, (name, left) in zip(axes, first.items(), strict=False):
        ax.plot(range(len(left)), left, "o-", color=BLUE, markersize=3, linewidth=1)
        ax.set_yscale("log")
        ticks = [tick for tick in TICKS if 0.5 * max(left[-1], 1) <= tick <= 2 * left[0]]
        ax.set_yticks(ticks, [str(tick) for tick in ticks])
        ax.minorticks_off()
        ax.set_title(f"{name}: {left[0]} to {left[-1]}", fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8)
    for ax in axes[len(first) :]:
        ax.set_visible(False)
    figure.supxlabel("round", fontsize=9)
    figure.supylabel("vectors", fontsize=9)


FIGURE_5 = Recipe(
    name="huang-figure-5",
    paper=PAPER,
    title="Figure 5: vectors left after each round",
    protocol=(
        "The paper's algorithm at the settings of Table 5, until no coefficient changes by more than 1e-4, at most "
        "100 rounds; copies of a row are all counted. twonorm: `LpSVC`, which begins with a kernel matrix of low rank "
        "and may extrapolate rounds. The picture has the first fold of each set, the numbers five folds. The text "
        "says: around 50 rounds for Solar, within 20 for all others, most vectors gone after five. Rounds depend on "
        "settings that the paper does not tell, and are not judged."
    ),
    tasks=tasks,
    columns=(Column(ROUNDS, step=1, judged=False), Column(ROWS, step=1), Column(FIVE), Column(END)),
    rows=tuple(ALL),
    printed={(name, ROUNDS): Printed(50 if name == "flare-solar" else 20) for name in ALL},
    gather=gather,
    draw=draw,
)
