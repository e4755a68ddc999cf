"""``python -m benchmarks``: run the problems, print the tables, write them as Markdown.

``python -m benchmarks small`` (or one of its parts): the machines with few vectors.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

from .competitors import CACHE_MB, COMPETITORS, TOL, Competitor
from .machine import Rates, facts, measure_rates
from .measure import run_problem
from .norms import table as norms_table
from .pages import publish
from .problems import PROBLEMS, QUICK
from .report import Outcome, Table, tables

PARTS = {  # of "small"
    "defaults": "defaults",
    "grid": "grid",
    "bytes": "equal_bytes",
    "scale": "scale",
    "sparse": "sparse",
    "probability": "probability",
    "frontier": "frontier",
    "compression": "compression",
}
APART = {  # pages of their own
    "regression": "regression",
    "regression-bytes": "regression_bytes",
    "family": "family",
}

MORE = (
    f"Machines with few vectors: small for all of {', '.join(PARTS)}, or one of them, then its options. "
    f"Regression and the classes of scikit-learn: {', '.join(APART)}, then its options."
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="slimsvm beside its peers", epilog=MORE)
    parser.add_argument("--quick", action="store_true", help="one round of the problems with n <= 3000")
    parser.add_argument("--problems", type=names_of(PROBLEMS), help=f"some of: {','.join(PROBLEMS)}")
    parser.add_argument(
        "--competitors",
        type=names_of(COMPETITORS),
        default=[name for name, c in COMPETITORS.items() if c.default],
        help=f"some of: {','.join(COMPETITORS)}, or all; all but svc200 unless said",
    )
    parser.add_argument("--repeats", type=positive, help="rounds (3; 1 with --quick); 1 for fits beyond 10 s")
    parser.add_argument(
        "--n-jobs",
        type=threads,
        default=[1],
        help="threads, e.g. 1,2: more than one adds a table of fit times",
    )
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one round of one competitor")
    parser.add_argument("--output", type=Path, help="Markdown file, e.g. benchmarks/RESULTS.md")
    return parser.parse_args()


def names_of(table: dict) -> type:
    """Reads "a,b" (or "all") as keys of a table."""

    def names(text: str) -> list[str]:
        chosen = list(table) if text == "all" else text.split(",")
        unknown = [name for name in chosen if name not in table]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; choose from {', '.join(table)}")
        return chosen

    return names


def positive(text: str) -> int:
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{value} is below 1")
    return value


def threads(text: str) -> list[int]:
    return sorted({1, *(positive(part) for part in text.split(","))})


def present(names: list[str]) -> list[Competitor]:
    """Those that are installed; the others are named."""
    found = []
    for name in names:
        if problem := COMPETITORS[name].missing():
            say(problem)
        else:
            found.append(COMPETITORS[name])
    return found


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(options: argparse.Namespace, competitors: list[Competitor]) -> list[Outcome]:
    repeats = options.repeats or (1 if options.quick else 3)
    outcomes = []
    for name in options.problems or (QUICK if options.quick else PROBLEMS):
        problem = PROBLEMS[name]
        results = {}
        for n_jobs in options.n_jobs:
            some = [c for c in competitors if n_jobs == 1 or c.threads]
            if some:
                results[n_jobs] = run_problem(problem, some, n_jobs, repeats, options.timeout, say)
        data = problem.load()
        n, d = data.X.shape
        bytes_ = data.X.nbytes if hasattr(data.X, "nbytes") else data.X.data.nbytes + data.X.indices.nbytes
        outcomes.append(Outcome(name, n, d, problem.C, problem.width(), data.source, bytes_ / 2**20, results))
        problem.forget()
    return outcomes


def machine_table(competitors: list[Competitor], rates: Rates) -> Table:
    rows = [[key, value] for key, value in facts().items()]
    rows += [["packages", ", ".join(dict.fromkeys(c.version() for c in competitors))]]
    rows += [
        ["GEMM, one thread", f"{rates.gemm32 / 1e9:.0f} GFlop/s float32, {rates.gemm64 / 1e9:.0f} float64"],
        ["exp, one thread", f"{rates.exp32 / 1e9:.2f} G/s float32"],
        ["memory, one thread", f"{rates.bandwidth / 1e9:.1f} GB/s"],
        ["settings", f"one thread unless said, tol {TOL:g}, cache {CACHE_MB} MB for all (svc200: 200 MB)"],
    ]
    return Table("Machine", ["", ""], rows)


def warning_table(outcomes: list[Outcome]) -> Table | None:
    rows = [
        [o.name, f"{name}, {n_jobs}", text]
        for o in outcomes
        for n_jobs, by_name in o.results.items()
        for name, result in by_name.items()
        for text in [*result.warnings, *([f"failed: {result.error}"] if result.error else [])]
    ]
    return Table("Warnings and failures", ["problem", "competitor, threads", "message"], rows) if rows else None


def run_parts(name: str, argv: list[str]) -> None:
    """One of the parts, or all of them."""
    from . import parts

    if name in PARTS | APART:
        importlib.import_module(f".{(PARTS | APART)[name]}", __package__).main(argv)
        return
    modules = [importlib.import_module(f".{module}", __package__) for module in PARTS.values()]
    parser = parts.parser("benchmarks small", "Machines with few vectors: accuracy, bytes, scale.", sets=False)
    for module in modules:
        module.add_arguments(parser)
    parts.run(parser.parse_args(argv), "Machines with few vectors", [module.measure for module in modules])


def main() -> None:
    if sys.argv[1:2] and sys.argv[1] in ("small", *PARTS, *APART):
        run_parts(sys.argv[1], sys.argv[2:])
        return
    options = arguments()
    competitors = present(options.competitors)
    if not competitors:
        sys.exit("no competitor is installed")
    start = time.perf_counter()
    rates = measure_rates()
    machine = machine_table(competitors, rates)
    outcomes = run(options, competitors)
    found = tables(outcomes, [c.name for c in competitors], rates, options.n_jobs)
    if not options.problems:
        found.append(norms_table(1 if options.quick else 5))
    found = [machine, *found, *filter(None, [warning_table(outcomes)])]
    for table in found:
        table.show()
    elapsed = time.perf_counter() - start
    say(f"{elapsed:.0f} s in all")
    if options.output:
        title = "Fits and predictions beside other libraries"
        publish(options.output, title, "python -m benchmarks", elapsed / 60, found)


if __name__ == "__main__":
    main()
