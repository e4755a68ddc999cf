"""Untuned `SlimSVR` with 20 vectors beside a full support vector machine with a grid of settings: R^2 on test halves.

The sets of `targets`; inputs and target are standardised on the training half. Results are lines of a file
(``--results``): a run that was stopped goes on where it ended.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold

from . import parts, targets
from .parts import mean
from .problems import Array
from .report import Table, number

COSTS = [0.3, 3, 30, 300]
WIDTHS = [0.03, 0.1, 0.3, 1, 3]  # gamma, times the number of inputs
TUBES = [0.01, 0.1, 0.3]  # epsilon, in standard deviations of the target
FEW = 1000  # rows up to which the whole grid sees all of them; beyond, settings drop out on part of the rows
TUNING_ROWS = 2000  # of the training half, for the grid; the best setting is fitted to all of it
MOST_STEPS = 100_000  # of a fit in the grid: costs that are far too large would take hours; the last fit has no limit
CLOSE = 0.02  # of R^2 that counts as the same
BAR = 0.8  # share of the sets that should be close


def tuned_svr(X: Array, y: Array, n_vectors: int) -> tuple[Any, int]:
    """C, gamma and epsilon by five folds."""
    from sklearn.svm import SVR

    grid = {"C": COSTS, "gamma": [width / X.shape[1] for width in WIDTHS], "epsilon": TUBES}
    folds = KFold(5, shuffle=True, random_state=0)
    tried = SVR(cache_size=500, max_iter=MOST_STEPS)
    if len(y) <= FEW:
        best = GridSearchCV(tried, grid, cv=folds, refit=False).fit(X, y).best_params_
    else:  # all settings on a ninth of the rows, a third of them on a third, seven on all
        from sklearn.experimental import enable_halving_search_cv  # noqa: F401
        from sklearn.model_selection import HalvingGridSearchCV

        some = np.random.default_rng(0).permutation(len(y))[:TUNING_ROWS]
        halving = HalvingGridSearchCV(
            tried, grid, cv=folds, factor=3, min_resources=len(some) // 9, refit=False, random_state=0
        )
        best = halving.fit(X[some], y[some]).best_params_
    model = SVR(cache_size=500, **best).fit(X, y)
    return model, len(model.support_)


def slim_svr(X: Array, y: Array, n_vectors: int) -> tuple[Any, int]:
    """Nothing said but the number of vectors."""
    from slimsvm import SlimSVR

    model = SlimSVR(n_vectors).fit(X, y)
    return model, int(model.n_vectors_)


MODELS = {"svr": tuned_svr, "slim": slim_svr}


def cell(one: tuple[str, int, str], n_vectors: int, folder: Path | None) -> dict[str, Any]:
    """R^2, vectors and seconds of one model on one division."""
    name, split, kind = one
    part = targets.halves(*targets.rows_of(targets.problems(folder)[name]), split)
    start = time.process_time()
    model, count = MODELS[kind](part.X, part.y, n_vectors)
    seconds = time.process_time() - start
    r2 = float(r2_score(part.y_test, model.predict(part.X_test)))
    shape = {"rows": len(part.y), "inputs": part.d}
    return {"set": name, "split": split, "model": kind, "r2": r2, "vectors": count, "cpu": seconds, **shape}


def key_of(result: dict[str, Any]) -> tuple[str, int, str]:
    return result["set"], result["split"], result["model"]


def run_all(todo: list[tuple], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for one in todo:
        [result] = parts.spread(cell, [one], 1, options.n_vectors, options.data)
        parts.say(f"{one}: {result['r2']:.4f}, {result['vectors']} vectors, {result['cpu']:.1f} s")
        yield result


def measure(options: argparse.Namespace) -> Iterator[Table]:
    """A row for each set, and how many are close."""
    if options.quick:
        options = parts.settled(options, splits=1, sets=["auto", "sinc", "diabetes"])
    options = parts.settled(options, splits=3, models=list(MODELS))
    names = parts.wanted(list(targets.problems(options.data)), options)
    wanted = [(name, split, model) for model in options.models for name in names for split in range(options.splits)]
    results = parts.kept(options.results, wanted, key_of, lambda todo: run_all(todo, options))
    if set(options.models) == set(MODELS):
        yield table(results, names, options)


def table(results: dict[tuple, dict[str, Any]], names: list[str], options: argparse.Namespace) -> Table:
    rows, close = [], 0
    for name in names:
        full, slim = ([results[name, split, kind] for split in range(options.splits)] for kind in MODELS)
        below = mean(f["r2"] for f in full) - mean(s["r2"] for s in slim)
        close += below <= CLOSE
        rows.append(
            [
                name,
                str(full[0]["rows"]),
                str(full[0]["inputs"]),
                f"{mean(f['r2'] for f in full):.3f}",
                f"{mean(f['vectors'] for f in full):.0f}",
                f"{mean(s['r2'] for s in slim):.3f}",
                f"{mean(s['vectors'] for s in slim):.0f}",
                f"{-below:+.3f}",
                "yes" if below <= CLOSE else "no",
                number(mean(f.get("cpu", np.nan) for f in full)),
                number(mean(s.get("cpu", np.nan) for s in slim)),
            ]
        )
    passed = "pass" if close >= BAR * len(names) else "FAIL"
    rows.append(["within", *[""] * 7, f"{close} of {len(names)}: {passed}", "", ""])
    header = ["set", "rows", "inputs", "tuned SVR", "vectors", "SlimSVR", "vectors", "difference", f"within {CLOSE:g}"]
    header += ["s tuned SVR", "s SlimSVR"]
    note = (
        f"R² on the other half, mean over {options.splits} random halves. SVR: scikit-learn's, best of "
        f"{len(COSTS) * len(WIDTHS) * len(TUBES)} settings (C, gamma, epsilon) by five folds of at most {TUNING_ROWS} "
        f"rows; beyond {FEW} rows by successive halving; fits of the grid end after {MOST_STEPS} steps. "
        f"SlimSVR({options.n_vectors}): default settings. s: training with the search, seconds of the processor, "
        f"one thread. Bar: {100 * BAR:.0f} % of the sets within {CLOSE:g}."
    )
    return Table("SlimSVR with default settings beside a tuned SVR", header, rows, note)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--n-vectors", type=int, default=20, help="vectors of SlimSVR; 20 unless said")
    parser.add_argument("--models", type=lambda text: text.split(","), help=f"some of {','.join(MODELS)}")
    parser.add_argument("--data", type=Path, help="folder with the sets as npz files")
    parser.add_argument("--results", type=Path, help="file of results, a line each: what is there is not run again")


def main(argv: list[str] | None = None) -> None:
    parser = parts.parser("benchmarks regression", __doc__)
    add_arguments(parser)
    parts.run(parser.parse_args(argv), "Regression", [measure])


if __name__ == "__main__":
    main()
