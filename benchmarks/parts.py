"""What the parts of the benchmark share: options, the work spread over splits, tables shown and written."""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from .pages import machine_table, publish
from .report import Table

Measure = Callable[[argparse.Namespace], Iterable[Table]]


def parser(name: str, about: str | None, sets: bool = True) -> argparse.ArgumentParser:
    """The options that every part has; ``sets``: can some of the sets be chosen?"""
    command = f"python -m {name}"
    found = argparse.ArgumentParser(prog=command, description=(about or "").split("\n")[0])
    found.set_defaults(command=command, sets=None)
    found.add_argument("--quick", action="store_true", help="a small version, to see that everything runs")
    found.add_argument("--splits", type=int, help="the first so many splits of each set; all unless said")
    if sets:
        found.add_argument("--sets", type=lambda text: text.split(","), help="some of the sets, e.g. image,splice")
    found.add_argument("--n-jobs", type=int, default=1, help="processes, each with its own splits; 1 to trust times")
    found.add_argument("--output", type=Path, help="Markdown file for the tables")
    return found


def run(options: argparse.Namespace, title: str, measures: Iterable[Measure]) -> None:
    """Show each table as soon as it is there; write all of them in the end."""
    start = time.perf_counter()
    # Tables are of the settings that they state, limits of learning included.
    warnings.filterwarnings("ignore", "learning ended at its limit")
    found = [machine_table()]
    for measure in measures:
        for table in measure(options):
            table.show()
            found.append(table)
    elapsed = time.perf_counter() - start
    say(f"{elapsed:.0f} s in all")
    if options.output:
        publish(options.output, title, options.command, elapsed / 60, found)


def settled(options: argparse.Namespace, **values: Any) -> argparse.Namespace:
    """The options with these values where nothing was said."""
    missing = {key: value for key, value in values.items() if getattr(options, key) is None}
    return argparse.Namespace(**(vars(options) | missing))


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def spread(work: Callable[..., Any], items: Iterable[Any], n_jobs: int, *rest: Any) -> list[Any]:
    """``work(item, *rest)`` for all items, each in one thread."""
    return Parallel(n_jobs=n_jobs)(delayed(quietly)(work, item, *rest) for item in items)


def kept(
    path: Path | None,
    wanted: Iterable[tuple],
    key_of: Callable[[dict[str, Any]], tuple],
    work: Callable[[list[tuple]], Iterable[dict[str, Any]]],
) -> dict[tuple, dict[str, Any]]:
    """What is wanted, by key. Lines of a file are what was done before; ``work`` does the rest, and adds its lines."""
    results: dict[tuple, dict[str, Any]] = {}
    if path is not None and path.exists():
        lines = path.read_text(encoding="utf-8").splitlines()
        results = {key_of(result): result for result in (json.loads(line) for line in lines if line.strip())}
    wanted = list(wanted)
    for result in work([one for one in wanted if one not in results]):
        results[key_of(result)] = result
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
    return {one: results[one] for one in wanted}


def quietly(work: Callable[..., Any], *arguments: Any) -> Any:
    """One thread; warnings of other libraries that do not converge are left out."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "learning ended at its limit")  # other processes too
        warnings.filterwarnings("ignore", category=ConvergenceWarning, module="sklearn")
        return work(*arguments)


def wanted(names: Sequence[str], options: argparse.Namespace) -> list[str]:
    """The sets that were asked for."""
    if not options.sets:
        return list(names)
    unknown = sorted(set(options.sets) - set(names))
    if unknown:
        sys.exit(f"unknown sets: {', '.join(unknown)}; choose from {', '.join(names)}")
    return [name for name in names if name in options.sets]


def mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def percent(values: Iterable[float], digits: int = 1) -> str:
    """Mean, and standard deviation where there are several."""
    found = list(values)
    text = f"{np.mean(found):.{digits}f}"
    return text if len(found) == 1 else f"{text} ± {np.std(found, ddof=1):.{digits}f}"
