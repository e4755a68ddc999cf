"""Accuracy at equal bytes: small machines beside what is put on small devices instead, all quantised.

Half of the rows are for training, standardised on that half; `SlimSVC(max_bytes=...)` tunes itself, the others are
tuned on a part of that half. `rivals` says what is counted. Results are lines of a file (``--results``): a run that was
stopped goes on where it ended. ``--extract FOLDER`` writes the sets, ``--data FOLDER`` reads them where nothing else is
at hand.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from . import keel, parts, sets
from .parts import mean
from .problems import Array
from .report import Table
from .rivals import RIVALS, Fitted, Rival, protonn_missing
from .sets import Split

BUDGETS = [512, 2048, 8192]
MOST_ROWS = 10000
STORED = ["image", "splice", "german", "waveform", "ringnorm", "banana", "twonorm", "diabetes", "titanic"]
KEEL = ["magic", "phoneme", "spambase", "chess", "mushroom"]  # ring and twonorm are among the stored

Loader = Callable[[], tuple[Array, Array]]


@dataclass(frozen=True)
class Contest:
    """What is compared: models, sets, how they are divided and judged. Regression is another one."""

    title: str
    rivals: dict[str, Rival]
    problems: Callable[[Path | None], dict[str, Loader]]
    rows_of: Callable[[Loader, int], tuple[Array, Array]]
    halves: Callable[[Array, Array, int], Split]
    error: Callable[[Split, Fitted], float]
    shown: Callable[[float], str]  # an error as text
    near: float  # errors that differ by less are the same
    measured: str  # what is shown, in words
    budgets: list[int]
    most_rows: int
    quick: list[str]
    dtype: Any = np.float32  # of rows in files


# --- data ---------------------------------------------------------------------------------------


def problems(folder: Path | None = None) -> dict[str, Loader]:
    """Two-class sets by name: those of a folder, or all that are at hand."""
    if folder is not None:
        return {path.stem: lambda path=path: stored(path) for path in sorted(folder.glob("*.npz"))}
    found: dict[str, Loader] = {}
    if sets.present():
        found |= {name: lambda name=name: sets.whole(name) for name in STORED}
        found["usps-3-8"] = lambda: two_of(*sets.whole("usps"), 3, 8)
        found["usps-even-odd"] = lambda: even(*sets.whole("usps"))
    if keel.present():
        found |= {name: lambda name=name: keel.whole(name) for name in KEEL}
        found["letter-halves"] = lambda: below(*keel.whole("letter"), 13)
        found["optdigits-even-odd"] = lambda: even(*keel.whole("optdigits"))
        found["penbased-even-odd"] = lambda: even(*keel.whole("penbased"))
        found["satimage-halves"] = lambda: below(*keel.whole("satimage"), 3)
    found["cancer"] = lambda: datasets.load_breast_cancer(return_X_y=True)
    found["wine"] = lambda: against_rest(*datasets.load_wine(return_X_y=True), 1)
    found["digits-even-odd"] = lambda: even(*datasets.load_digits(return_X_y=True))
    return found


def stored(path: Path) -> tuple[Array, Array]:
    with np.load(path) as file:
        return file["X"].astype(np.float64), file["y"]


def two_of(X: Array, y: Array, first: int, second: int) -> tuple[Array, Array]:
    rows = (y == first) | (y == second)
    return X[rows], y[rows]


def against_rest(X: Array, y: Array, positive: int) -> tuple[Array, Array]:
    return X, np.where(y == positive, 1, -1)


def even(X: Array, y: Array) -> tuple[Array, Array]:
    return X, y % 2


def below(X: Array, y: Array, first: int) -> tuple[Array, Array]:
    return X, (y >= first).astype(int)


def rows_of(load: Loader, most: int) -> tuple[Array, Array]:
    """At most so many rows, classes in proportion; labels 0 and 1."""
    X, y = load()
    y = np.unique(y, return_inverse=True)[1]
    if len(y) > most:
        X, _, y, _ = train_test_split(X, y, train_size=most, stratify=y, random_state=0)
    return X, y


def halves(X: Array, y: Array, seed: int) -> Split:
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    return Split(X, y, X_test, y_test).mapped(StandardScaler())


CLASSES = Contest(
    title="Equal bytes",
    rivals=RIVALS,
    problems=problems,
    rows_of=rows_of,
    halves=halves,
    error=lambda part, model: part.error(model),
    shown=lambda error: f"{error:.2f}",
    near=0.2,
    measured="Test error, %",
    budgets=BUDGETS,
    most_rows=MOST_ROWS,
    quick=["cancer", "wine"],
)


def extract(contest: Contest, folder: Path, most: int) -> None:
    """All sets as files, for a machine that has none of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, load in contest.problems(None).items():
        X, y = contest.rows_of(load, most)
        y = y.astype(np.int8) if y.dtype.kind in "iu" else y
        np.savez_compressed(folder / f"{name}.npz", X=X.astype(contest.dtype), y=y)
        parts.say(f"{name}: {X.shape[0]} rows, {X.shape[1]} inputs")


# --- measuring ----------------------------------------------------------------------------------


def cell(
    contest: Contest, name: str, split: int, budget: int, rival: str, folder: Path | None, most: int
) -> dict[str, Any]:
    """Error on the test rows, and bytes of one model."""
    part = contest.halves(*contest.rows_of(contest.problems(folder)[name], most), split)
    model = contest.rivals[rival](budget, part.X, part.y)
    if model.n_bytes > budget and rival == "slim":
        raise RuntimeError(f"{rival} takes {model.n_bytes} bytes of {budget} on {name}")
    return {
        "set": name,
        "split": split,
        "budget": budget,
        "rival": rival,
        "error": contest.error(part, model),
        "bytes": int(model.n_bytes),
        "fits": bool(model.n_bytes <= budget),
    }


def run_all(contest: Contest, cells: list[tuple], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Results as they come."""
    done = Parallel(n_jobs=options.n_jobs, return_as="generator_unordered")(
        delayed(parts.quietly)(cell, contest, *one, options.data, options.rows) for one in cells
    )
    for k, result in enumerate(done, 1):
        parts.say(
            f"{k}/{len(cells)} {result['set']} {result['split']} {result['budget']} {result['rival']}: "
            f"{contest.shown(result['error'])} ({result['bytes']} bytes)"
        )
        yield result


def key_of(result: dict[str, Any]) -> tuple:
    return result["set"], result["split"], result["budget"], result["rival"]


def measure(options: argparse.Namespace, contest: Contest = CLASSES) -> Iterator[Table]:
    """A table for each budget, a row for each set, the best model marked; then how often slim is near the best."""
    if options.quick:
        options = parts.settled(options, splits=1, budgets=contest.budgets[:1], sets=contest.quick)
    options = parts.settled(options, splits=3, budgets=contest.budgets, rows=contest.most_rows)
    names = parts.wanted(list(contest.problems(options.data)), options)
    rivals = usable(contest, options.rivals or list(contest.rivals))
    wanted = [(n, s, b, r) for n in names for s in range(options.splits) for b in options.budgets for r in rivals]
    results = parts.kept(options.results, wanted, key_of, lambda todo: run_all(contest, todo, options))
    yield from tables(contest, results, names, rivals, options)


def tables(
    contest: Contest,
    results: dict[tuple, dict[str, Any]],
    names: list[str],
    rivals: list[str],
    options: argparse.Namespace,
) -> Iterator[Table]:
    near, cells, against = 0, 0, []
    for budget in options.budgets:
        rows = []
        for name in names:
            errors, sizes = {}, {}
            for rival in rivals:
                mine = [results[name, split, budget, rival] for split in range(options.splits)]
                errors[rival] = mean(r["error"] for r in mine) if all(r["fits"] for r in mine) else np.inf
                sizes[rival] = mean(r["bytes"] for r in mine)
            least = min(errors.values())
            if "slim" in errors:
                cells += 1
                near += errors["slim"] <= least + contest.near + 1e-9
                if "protonn" in errors and np.isfinite(errors["protonn"]):
                    against.append((errors["slim"] - errors["protonn"], name, budget))
            marks = {r: " *" if e == least else "" for r, e in errors.items()}
            shown = [contest.shown(e) + marks[r] if np.isfinite(e) else "–" for r, e in errors.items()]
            rows.append([name, f"{sizes.get('slim', np.nan):.0f}", *shown])
        note = f"{contest.measured}, mean over {options.splits} random halves. * best; – does not fit."
        yield Table(f"{budget} bytes", ["set", "bytes of slim", *rivals], rows, note)
    if cells:
        share = f"{near} of {cells} cells ({100 * near / cells:.0f} %)"
        rows = [[f"slim best, or within {contest.near:g} of the best", share]]
        if against:
            worst = max(against)
            rows.append(["worst against ProtoNN", f"{worst[0]:+.2f} points ({worst[1]}, {worst[2]} bytes)"])
            rows.append(["more than 0.3 points worse than ProtoNN", f"{sum(a[0] > 0.3 for a in against)} cells"])
        yield Table("In all", ["", ""], rows)


def usable(contest: Contest, rivals: list[str]) -> list[str]:
    unknown = sorted(set(rivals) - set(contest.rivals))
    if unknown:
        sys.exit(f"unknown rivals: {', '.join(unknown)}; choose from {', '.join(contest.rivals)}")
    problem = protonn_missing()
    if "protonn" in rivals and problem:
        parts.say(f"{problem}. It is left out.")
        return [name for name in rivals if name != "protonn"]
    return rivals


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--budgets", type=lambda text: [int(t) for t in text.split(",")], help="bytes, e.g. 512,2048")
    parser.add_argument(
        "--rivals", type=lambda text: text.split(","), help=f"some of {','.join(RIVALS)} (regression: all but the last)"
    )
    parser.add_argument("--data", type=Path, help="folder with the sets as npz files, made by --extract")
    parser.add_argument("--extract", type=Path, help="write all sets that are at hand to a folder, and end")
    parser.add_argument("--results", type=Path, help="file of results, a line each: what is there is not run again")
    parser.add_argument("--rows", type=int, help="most rows of a set, both halves together")


def main(argv: list[str] | None = None, contest: Contest = CLASSES, name: str = "benchmarks.equal_bytes") -> None:
    parser = parts.parser(name, __doc__)
    add_arguments(parser)
    options = parser.parse_args(argv)
    if options.extract is not None:
        extract(contest, options.extract, options.rows or contest.most_rows)
        return
    parts.run(options, contest.title, [partial(measure, contest=contest)])


if __name__ == "__main__":
    main()
