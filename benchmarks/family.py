"""Drop-in classes beside those of `sklearn.svm`: fits at equal dual value, and predictions.

The same problem and parameters for both, one thread, in turns; ratios are of the processor's time, above 1 slimsvm is
faster. `duals` computes both dual values and gaps. Results are lines of a file (``--results``): a run that was stopped
goes on where it ended. ``--write`` puts the tables into ``FAMILY.md``.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import svm
from sklearn.datasets import make_friedman1, make_moons
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from . import duals, parts, sets
from .problems import Array
from .report import Table, number, times

PAGE = Path(__file__).with_name("FAMILY.md")
SIZES = [100, 500, 2000, 5000, 10000]
N_TEST = 1000
LARGE, LARGEST = 2e5, 1e6  # n C of NuSVR and of SVR from which on scikit-learn takes minutes to hours: left out
EQUAL = 1e-6  # relative difference of dual values that counts as the same
SHORT, LONG, MOST = 2.0, 8.0, 40  # seconds of turns; a fit beyond LONG is measured once; turns

# --- problems -----------------------------------------------------------------------------------


@cache
def friedman(n: int) -> tuple[Array, Array]:
    X, y = make_friedman1(n, noise=1.0, random_state=0)
    return scale(X), scale(y)


@cache
def moons(n: int) -> tuple[Array, Array]:
    return make_moons(n, noise=0.2, random_state=0)


@cache
def gaussians(n: int) -> tuple[Array, Array]:
    return sets.gaussians(n, 0, np.float64)


@cache
def stored(name: str, positive: Callable[[Array], Array], n: int) -> tuple[Array, Array]:
    """Rows of a stored set, drawn."""
    X, y = sets.whole(name)
    some = np.random.default_rng(0).permutation(len(y))[:n]
    return X[some], positive(y[some])


def even(y: Array) -> Array:
    return y % 2


def signs(y: Array) -> Array:
    return (y > 0).astype(int)


DATA: dict[str, Callable[[int], tuple[Array, Array]]] = {
    "friedman": friedman,
    "moons": moons,
    "gaussians": gaussians,
    "usps": partial(stored, "usps", even),
    "a9a": partial(stored, "a9a", signs),
}


class Cell(NamedTuple):
    """A machine, the data it is fitted to, and one parameter."""

    machine: str
    data: str
    n: int
    parameter: str
    value: float

    def problem(self) -> tuple[Array, Array, Array, dict[str, float]]:
        """Rows to fit on, their answers, rows to predict, all parameters."""
        X, y = DATA[self.data](self.n + N_TEST)
        n = min(self.n, len(y) - N_TEST)
        gamma = float(1 / (X.shape[1] * X[:n].var()))
        return X[:n], y[:n], X[n:], {"gamma": gamma, self.parameter: self.value}


def cells() -> list[Cell]:
    """All of them, small ones first."""
    here = sets.present()
    classes = ["moons", *(["a9a", "usps"] if here else [])]
    rows = ["moons", "gaussians", *(["usps"] if here else [])]
    shares = {"moons": [0.1, 0.5], "a9a": [0.2, 0.4], "usps": [0.05, 0.3]}  # of NuSVC; classes of a9a allow 0.48
    found = []
    for n in SIZES:
        found += [Cell("SVR", "friedman", n, "C", C) for C in (1.0, 10.0, 100.0) if n * C < LARGEST]
        found += [Cell("NuSVR", "friedman", n, "C", C) for C in (1.0, 10.0, 100.0) if n * C <= LARGE]
        found += [Cell("NuSVC", data, n, "nu", nu) for data in classes for nu in shares[data]]
        found += [Cell("OneClassSVM", data, n, "nu", nu) for data in rows for nu in (0.05, 0.1, 0.5)]
        found += [Cell("SVC", data, n, "C", C) for data in classes for C in (1.0, 10.0)]
    return found


# --- measuring ----------------------------------------------------------------------------------


def processor_time(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def in_turns(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[list[float], list[float], Any, Any]:
    """Processor's seconds of both, and what they gave first; another one begins each time."""
    gc.collect()
    spent: tuple[list[float], list[float]] = ([], [])
    first: dict[int, Any] = {}
    while len(spent[0]) < MOST and (not spent[0] or (sum(spent[1]) < SHORT and spent[1][0] < LONG)):
        for k in (0, 1) if len(spent[0]) % 2 else (1, 0):
            seconds, result = processor_time((ours, theirs)[k])
            spent[k].append(seconds)
            first.setdefault(k, result)
    return *spent, first[0], first[1]


def measure_cell(cell: Cell) -> dict[str, Any]:
    import slimsvm

    X, y, X_test, params = cell.problem()
    make = {"ours": getattr(slimsvm, cell.machine), "theirs": getattr(svm, cell.machine)}
    for one in make.values():  # what is imported or set up on first use
        one(**params).fit(X[:100], y[:100]).predict(X_test[:5])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours, theirs, mine, other = in_turns(
            lambda: make["ours"](**params).fit(X, y), lambda: make["theirs"](**params).fit(X, y)
        )
    predict = in_turns(lambda: mine.predict(X_test), lambda: other.predict(X_test))
    value, their_value = (duals.judge(model, X, y, params["gamma"]) for model in (mine, other))
    return {
        **cell._asdict(),
        "ours": statistics.median(ours),
        "theirs": statistics.median(theirs),
        "least ours": min(ours),
        "least theirs": min(theirs),
        "turns": len(ours),
        "dual": value.dual,
        "their dual": their_value.dual,
        "gap": value.gap,
        "their gap": their_value.gap,
        "told gap": float(np.max(mine.duality_gap_)),
        "vectors": len(mine.support_),
        "their vectors": len(other.support_),
        "predict": statistics.median(predict[0]),
        "their predict": statistics.median(predict[1]),
        "rows": len(X),
        "warnings": sorted({str(w.message)[:200] for w in caught}),
    }


def key_of(result: dict[str, Any]) -> Cell:
    return Cell(*(result[name] for name in Cell._fields))


def run_all(todo: list[Cell]) -> Iterator[dict[str, Any]]:
    for cell in todo:
        with threadpool_limits(1):
            result = measure_cell(cell)
        parts.say(f"{tuple(cell)}: {fit_ratio(result):.2f}, dual {ahead(result):+.1e}")
        yield result


# --- tables -------------------------------------------------------------------------------------


def fit_ratio(result: dict[str, Any]) -> float:
    return result["theirs"] / result["ours"]


def ahead(result: dict[str, Any]) -> float:
    """How far our dual value is above theirs, relative."""
    return (result["dual"] - result["their dual"]) / abs(result["their dual"])


BARS: list[tuple[str, int, int, float]] = [  # machine, rows from, to, ratio
    ("SVR", 5000, 10**9, 3.0),
    ("NuSVR", 2000, 10**9, 2.0),
    ("NuSVC", 2000, 10**9, 2.0),
    ("OneClassSVM", 2000, 10**9, 2.0),
    *((machine, 0, 500, 1.0) for machine in ("SVR", "NuSVR", "NuSVC", "OneClassSVM", "SVC")),
]


def text(cell: Cell) -> str:
    return f"{cell.data}, {cell.n} rows, {cell.parameter} = {cell.value:g}"


def bars(results: dict[Cell, dict[str, Any]]) -> Table:
    rows = []
    for machine, low, high, needed in BARS:
        mine = {cell: fit_ratio(r) for cell, r in results.items() if cell.machine == machine and low <= cell.n <= high}
        if not mine:
            continue
        worst = min(mine, key=mine.__getitem__)
        missed = sum(ratio < needed for ratio in mine.values())
        which = f"n ≥ {low}" if low else f"n ≤ {high}"
        verdict = "pass" if not missed else f"{missed} of {len(mine)} cells miss"
        middle = times(statistics.median(mine.values()))
        rows.append([f"{machine}, {which}", f"≥ {needed:g}", middle, times(mine[worst]), text(worst), verdict])
    behind = {cell: -ahead(r) for cell, r in results.items()}
    worst = max(behind, key=behind.__getitem__)
    missed = sum(b > EQUAL for b in behind.values())
    verdict = "pass" if not missed else f"{missed} of {len(behind)} cells miss"
    rows.append(["dual value below theirs", f"≤ {EQUAL:g}", "", f"{behind[worst]:.1e}", text(worst), verdict])
    header = ["bar", "needed", "median", "worst", "decided by", "verdict"]
    return Table("Bars", header, rows, "How many times faster a fit is, one thread.")


def table(machine: str, results: dict[Cell, dict[str, Any]]) -> Table:
    rows = []
    for cell, r in results.items():
        if cell.machine != machine:
            continue
        mark = "" if ahead(r) >= -EQUAL else " *"
        rows.append(
            [
                f"{cell.data}, {cell.parameter} = {cell.value:g}",
                str(r["rows"]),
                number(1e3 * r["theirs"]),
                number(1e3 * r["ours"]),
                times(fit_ratio(r)),
                times(r["least theirs"] / r["least ours"]),
                f"{ahead(r):+.1e}{mark}",
                f"{r['gap']:.1e}",
                f"{r['told gap']:.1e}",
                f"{r['their gap']:.1e}",
                str(r["vectors"]),
                str(r["their vectors"]),
                times(r["their predict"] / r["predict"]),
            ]
        )
    header = ["problem", "rows", "scikit-learn, ms", "slimsvm, ms", "ratio", "of the quickest", "dual above theirs"]
    header += ["gap", "gap it tells", "their gap", "vectors", "their vectors", "predict, ratio"]
    note = (
        "Processor's time, medians of turns (one where a fit takes long); relative dual values and gaps in float64. "
        f"* our dual value is more than {EQUAL:g} below theirs. predict: {N_TEST} rows."
    )
    return Table(machine, header, rows, note)


def measure(options: argparse.Namespace) -> Iterator[Table]:
    if not sets.present():
        parts.say(f"{sets.ABSENT} Without a9a and usps:")
    wanted = [cell for cell in cells() if not options.quick or cell.n <= 500]
    wanted = [cell for cell in wanted if not options.machines or cell.machine in options.machines]
    results = parts.kept(options.results, wanted, key_of, run_all)
    yield bars(results)
    for machine in dict.fromkeys(cell.machine for cell in results):
        yield table(machine, results)
    told = [[f"{cell.machine}, {text(cell)}", message] for cell, r in results.items() for message in r["warnings"]]
    if told:
        yield Table("Warnings, of both", ["problem", "message"], told)


def main(argv: list[str] | None = None) -> None:
    parser = parts.parser("benchmarks family", __doc__, sets=False)
    parser.add_argument("--machines", type=lambda text: text.split(","), help=f"some of {','.join(duals.JUDGES)}")
    parser.add_argument("--results", type=Path, help="file of results, a line each: what is there is not run again")
    parser.add_argument("--write", action="store_true", help=f"the tables into {PAGE.name}")
    options = parser.parse_args(argv)
    if options.write:
        options.output = PAGE
    parts.run(options, "Drop-in classes beside those of scikit-learn", [measure])


if __name__ == "__main__":
    main()
