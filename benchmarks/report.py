"""Tables from results: one per metric, the ratios, and the bars the library has set itself."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isfinite, isnan, nan

from .competitors import CACHE_MB, COMPETITORS, TOL
from .machine import Rates
from .measure import Result

EQUAL = 1e-6  # relative difference of dual values that counts as the same objective
OURS = "slimsvm"


@dataclass(frozen=True)
class Table:
    """A titled table of text."""

    title: str
    header: list[str]
    rows: list[list[str]]
    note: str = ""

    def markdown(self) -> str:
        lines = [
            f"## {self.title}",
            "",
            row_markdown(self.header),
            "|---|" + "---:|" * (len(self.header) - 1),
        ]
        lines += [row_markdown(row) for row in self.rows]
        return "\n".join([*lines, "", self.note]).rstrip() + "\n"

    def show(self) -> None:
        """On the terminal, with rich where it is installed."""
        try:
            from rich.console import Console
            from rich.table import Table as RichTable
        except ImportError:
            print(self.markdown())
            return
        table = RichTable(title=self.title, caption=self.note or None, title_justify="left", caption_justify="left")
        for number, name in enumerate(self.header):
            table.add_column(name, justify="right" if number else "left", overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        console = Console()
        if not console.is_terminal:
            console.width = 150
        console.print(table)


def row_markdown(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


@dataclass(frozen=True)
class Outcome:
    """A problem's facts, and its results by competitor and by number of threads."""

    name: str
    n: int
    d: int
    C: float
    gamma: float
    source: str
    data_mb: float
    results: dict[int, dict[str, Result]]

    def get(self, name: str, n_jobs: int = 1) -> Result:
        return self.results.get(n_jobs, {}).get(name, Result())

    def best_dual(self) -> float:
        found = [r.quality.dual for by_name in self.results.values() for r in by_name.values() if r.quality]
        return max(found, default=nan)

    def shortfall(self, name: str, n_jobs: int = 1) -> float:
        """Relative distance of the dual value to the best one of this problem."""
        quality = self.get(name, n_jobs).quality
        return (self.best_dual() - quality.dual) / abs(self.best_dual()) if quality else nan

    def reaches(self, name: str, n_jobs: int = 1) -> bool:
        return self.shortfall(name, n_jobs) <= EQUAL

    def faster(self, key: str, than: str | None, n_jobs: int = 1) -> float:
        """How many times faster we are: at fits and single rows by time, at prediction by rows per second."""
        if than is None:
            return nan
        ours, theirs = self.get(OURS, n_jobs).median(key), self.get(than, n_jobs).median(key)
        return ours / theirs if key.startswith("rows") else theirs / ours

    def better_intelex(self, n_jobs: int = 1) -> str | None:
        """The faster intelex among those that reach the objective; where none does, the faster of both."""
        ran = [name for name in ("intelex32", "intelex64") if self.get(name, n_jobs).rounds]
        fair = [name for name in ran if self.reaches(name, n_jobs)] or ran
        return min(fair, key=lambda name: self.get(name, n_jobs).median("fit"), default=None)


# --- numbers as text ----------------------------------------------------------------------------


def number(value: float, digits: int = 3) -> str:
    return "–" if isnan(value) else f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}"


def times(value: float) -> str:
    return "–" if isnan(value) else f"{value:.2f}×" if value < 10 else f"{value:.1f}×"


def seconds(value: float) -> str:
    return (
        "–" if isnan(value) else f"{value:.2f}" if value >= 10 else f"{value:.3f}" if value >= 0.1 else f"{value:.5f}"
    )


# --- tables -------------------------------------------------------------------------------------


def tables(outcomes: list[Outcome], names: list[str], rates: Rates, threads: list[int]) -> list[Table]:
    """Everything that is reported, the verdict first."""
    found = [bars(outcomes), ratios(outcomes, rates), problem_table(outcomes)]
    for n_jobs in threads:
        some = [name for name in names if n_jobs == 1 or COMPETITORS[name].threads]
        found.append(fit_table(outcomes, some, n_jobs))
    found.append(objective_table(outcomes, names))
    metrics: list[tuple[str, Callable[[Result], str], str]] = [
        (
            "True relative duality gap",
            gap_text,
            f"(P - D) / D in float64 with the best bias; ! above tol = {TOL:g}.",
        ),
        ("Support vectors", lambda r: number(r.quality.n_vectors if r.quality else nan, 6), ""),
        (
            "Memory of the fit, MB",
            lambda r: number(r.peak_mb),
            "Peak above the process with libraries and data loaded, first fit of a fresh process.",
        ),
        ("Prediction, rows/s, float64 rows", lambda r: number(r.median("rows64")), ""),
        (
            "Prediction, rows/s, float32 rows",
            lambda r: number(r.median("rows32")),
            "LIBSVM's nodes are float64 and built before the clock starts.",
        ),
        (
            "Prediction of a single row, µs",
            lambda r: number(1e6 * r.median("latency")),
            "float64 rows; LIBSVM's nodes built before.",
        ),
    ]
    for title, cell, note in metrics:
        rows = [[o.name, *(cell(o.get(name)) for name in names)] for o in outcomes]
        found.append(Table(title, ["problem", *titles(names)], rows, note))
    return found


def titles(names: list[str]) -> list[str]:
    return [COMPETITORS[name].title for name in names]


def gap_text(result: Result) -> str:
    if result.quality is None:
        return "–"
    return f"{result.quality.gap:.1e}" + (" !" if result.quality.gap > TOL else "")


def problem_table(outcomes: list[Outcome]) -> Table:
    rows = [[o.name, str(o.n), str(o.d), f"{o.C:g}", f"{o.gamma:.4g}", o.source, f"{o.data_mb:.1f}"] for o in outcomes]
    header = ["problem", "n", "d", "C", "gamma", "data", "MB"]
    return Table("Problems", header, rows, "Binary, RBF. look-alike: generated, since the real data are not here.")


def fit_table(outcomes: list[Outcome], names: list[str], n_jobs: int) -> Table:
    def cell(o: Outcome, name: str) -> str:
        result = o.get(name, n_jobs)
        if result.error:
            return "failed"
        flag = "" if not result.rounds or o.reaches(name, n_jobs) else " *"
        return seconds(result.median("fit")) + flag

    rows = [[o.name, *(cell(o, name) for name in names)] for o in outcomes]
    spreads = [
        max(r["fit"] for r in result.rounds) / min(r["fit"] for r in result.rounds)
        for o in outcomes
        for result in o.results.get(n_jobs, {}).values()
        if len(result.rounds) > 1
    ]
    spread = f" Slowest / fastest round of a fit: median {statistics.median(spreads):.2f}." if spreads else ""
    header = ["problem", *titles(names)]
    if n_jobs > 1:
        header.append("slimsvm: 1 thread / this")
        for row, o in zip(rows, outcomes, strict=True):
            row.append(times(o.get(OURS).median("fit") / o.get(OURS, n_jobs).median("fit")))
    title = f"Fit, seconds, {n_jobs} thread{'s' * (n_jobs > 1)}"
    note = f"Median of the rounds. * dual value more than {EQUAL:g} (relative) below the best.{spread}"
    return Table(title, header, rows, note)


def objective_table(outcomes: list[Outcome], names: list[str]) -> Table:
    def cell(o: Outcome, name: str) -> str:
        quality = o.get(name).quality
        if quality is None:
            return "–"
        flags = "" if o.reaches(name) else " *"
        if quality.infeasibility > EQUAL:
            flags += f" (infeasible {quality.infeasibility:.0e})"
        return f"{o.shortfall(name):.1e}{flags}"

    rows = [[o.name, f"{o.best_dual():.9g}", *(cell(o, name) for name in names)] for o in outcomes]
    note = (
        f"D = sum |a| - a'Ka / 2 in float64 at duals made feasible. * more than {EQUAL:g} below the best. "
        "infeasible: how far they missed sum or box before."
    )
    return Table("Dual value: relative distance to the best", ["problem", "best D", *titles(names)], rows, note)


def ratios(outcomes: list[Outcome], rates: Rates) -> Table:
    header = ["problem", "fit vs SVC", "fit vs LIBSVM", "fit vs intelex", "which", "times the floor"]
    header += ["predict vs SVC", "predict f32 vs SVC", "single row vs SVC", "same objective"]
    columns = [ratio_values(o, rates) for o in outcomes]
    rows = []
    for o, values in zip(outcomes, columns, strict=True):
        which = o.better_intelex() or "–"
        flag = "" if which == "–" or o.reaches(which) else " *"
        same = "yes" if o.reaches(OURS) else "no" if o.get(OURS).quality else "–"
        cells = [times(v) for v in values]
        rows.append([o.name, *cells[:3], which + flag, *cells[3:], same])
    middle = [times(median(column)) for column in zip(*columns, strict=True)]
    rows.append(["median", *middle[:3], "", *middle[3:], ""])
    note = (
        "How many times faster slimsvm (float32 rows) is, one thread. intelex: the faster of float32 and "
        "float64 that reaches the objective (*: none does; the faster of both). Floor: n_SV n (2d/GEMM + "
        "1/exp + 4 bytes/bandwidth), each final vector's kernel row computed once."
    )
    return Table("slimsvm against the others", header, rows, note)


def ratio_values(o: Outcome, rates: Rates) -> list[float]:
    ours = o.get(OURS)
    floor = rates.floor(ours.quality.n_vectors, o.n, o.d) if ours.quality else nan
    fits = [o.faster("fit", than) for than in ("svc", "libsvm", o.better_intelex())]
    return [
        *fits,
        ours.median("fit") / floor,
        *(o.faster(key, "svc") for key in ("rows64", "rows32", "latency")),
    ]


def median(values: Iterable[float]) -> float:
    finite = [v for v in values if isfinite(v)]
    return statistics.median(finite) if finite else nan


# --- bars ---------------------------------------------------------------------------------------


def bars(outcomes: list[Outcome]) -> Table:
    """Pass or fail of what the project has promised, each with the problem that decides."""
    large = [o for o in outcomes if o.n >= 5000]
    tiny = [o for o in outcomes if o.n <= 300]
    huge = [o for o in outcomes if o.n >= 30000]

    def fit(than: str) -> Callable[[Outcome], float]:
        return lambda o: o.faster("fit", o.better_intelex() if than == "intelex" else than)

    def spare(o: Outcome) -> float:
        """MB left below data + cache + 100; the data are in memory before the fit."""
        return CACHE_MB + 100 - o.get(OURS).peak_mb

    def gap(o: Outcome) -> float:
        quality = o.get(OURS).quality
        return quality.gap if quality else nan

    rows = [
        bar("fit vs SVC, n ≥ 5k, every problem", large, fit("svc"), at_least=2.5),
        bar("fit vs SVC, n ≥ 5k, median", large, fit("svc"), at_least=6, middle=True),
        bar("fit vs the better intelex, every problem", outcomes, fit("intelex"), at_least=1.3),
        bar("fit vs the better intelex, median", outcomes, fit("intelex"), at_least=2, middle=True),
        bar("fit vs SVC, n ≤ 300, every problem", tiny, fit("svc"), at_least=1),
        bar(
            "predict rows/s vs SVC, float64 rows, every problem",
            outcomes,
            lambda o: o.faster("rows64", "svc"),
            at_least=8,
        ),
        bar("dual value below the best", outcomes, lambda o: o.shortfall(OURS), at_most=EQUAL, text="{:.1e}"),
        bar("true float64 gap", outcomes, gap, at_most=TOL, text="{:.1e}"),
        bar("memory at n ≥ 30k: MB left of data + cache + 100", huge, spare, at_least=0, text="{:.0f}"),
    ]
    return Table(
        "Bars",
        ["bar", "needed", "measured", "decided by", "verdict"],
        rows,
        "One thread, slimsvm with float32 rows.",
    )


def bar(
    title: str,
    outcomes: list[Outcome],
    value: Callable[[Outcome], float],
    at_least: float | None = None,
    at_most: float | None = None,
    middle: bool = False,
    text: str = "{:.2f}×",
) -> list[str]:
    """The worst value over the problems (or the median) against its bound."""
    needed = f"≥ {at_least:g}" if at_least is not None else f"≤ {at_most:g}"
    failed = [o.name for o in outcomes if o.get(OURS).error]
    if failed:
        return [title, needed, "–", ", ".join(failed), "FAIL: no result"]
    values = {o.name: v for o in outcomes if isfinite(v := value(o))}
    if not values:
        return [title, needed, "–", "–", "not measured"]
    if middle:
        found, name = statistics.median(values.values()), f"{len(values)} problems"
    else:
        name = (min if at_least is not None else max)(values, key=values.__getitem__)
        found = values[name]
    passed = found >= at_least if at_least is not None else found <= at_most
    left_out = len(outcomes) - len(values)
    verdict = ("pass" if passed else "FAIL") + (f" ({left_out} not measured)" if left_out else "")
    return [title, needed, text.format(found), name, verdict]
