"""What was measured beside what is printed."""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from .recipe import Cell, Column, Outcomes, Printed, Recipe

LIMIT = 2.0  # standard errors: what is nearer is the same
ABREAST = 4  # columns of a table that stand beside each other


@dataclass(frozen=True)
class Compared:
    """A cell: the paper's number, ours, and how far they are apart."""

    row: str
    column: Column
    paper: Printed | None
    samples: tuple[float, ...]
    runs: int | None = None  # behind a printed number
    reason: str = ""

    @property
    def ours(self) -> float:
        """The mean over the runs."""
        return statistics.fmean(self.samples)

    @property
    def deviation(self) -> float | None:
        """Over the runs; that of the paper where there is one run."""
        if len(self.samples) > 1:
            return statistics.stdev(self.samples)
        return self.paper.deviation if self.paper is not None else None

    @property
    def standard_error(self) -> float | None:
        """Of our mean."""
        return None if self.deviation is None else self.deviation / math.sqrt(len(self.samples))

    @property
    def difference(self) -> float | None:
        """Ours less the paper's in standard errors of the difference; what rounding may have hidden does not count.

        A paper that prints no deviation is taken to have ours.
        """
        if self.paper is None or self.deviation is None or not self.column.judged:
            return None
        theirs = self.deviation if self.paper.deviation is None else self.paper.deviation
        runs = self.paper.runs or self.runs or len(self.samples)
        doubt = math.sqrt(self.deviation**2 / len(self.samples) + theirs**2 / runs)
        apart = self.ours - self.paper.value
        size = max(0.0, abs(apart) - self.column.step / 2 - 1e-9 * abs(self.ours))
        if size == 0:
            return 0.0
        return math.copysign(size / doubt if doubt > 0 else math.inf, apart)

    @property
    def verdict(self) -> str:
        """same: within two standard errors; better; beyond: neither. Nothing where there is nothing to compare."""
        difference = self.difference
        if difference is None:
            return ""
        if abs(difference) <= LIMIT:
            return "same"
        better = {"low": difference < 0, "high": difference > 0, None: False}[self.column.better]
        return "better" if better else "beyond"


@dataclass(frozen=True)
class Result:
    """A table or a figure as measured.

    Attributes
    ----------
    recipe : Recipe
    outcomes : mapping
        What the tasks returned, by their names.
    of : int
        How many tasks there are in all.
    left_out : dict
        Sets that could not be had, and why.
    seconds : float
        Time of all tasks together, one after the other.
    """

    recipe: Recipe
    outcomes: Outcomes
    of: int
    left_out: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def cells(self) -> list[Compared]:
        """All cells with numbers of ours, row by row."""
        samples = self.recipe.gather(self.outcomes)
        rows = list(dict.fromkeys([*self.recipe.rows, *(row for row, _ in samples)]))
        columns = {column.name: column for column in self.recipe.columns}
        unknown = sorted({column for _, column in samples} - set(columns))
        if unknown:
            raise ValueError(f"{self.recipe.name}: the tasks return columns {unknown} that the recipe does not have")
        found = [self._compared((row, column), tuple(numbers), columns) for (row, column), numbers in samples.items()]
        places = list(columns)
        return sorted(found, key=lambda cell: (rows.index(cell.row), places.index(cell.column.name)))

    def _compared(self, place: Cell, samples: tuple[float, ...], columns: dict[str, Column]) -> Compared:
        recipe = self.recipe
        reasons = (why for (row, name), why in recipe.reasons.items() if _fits(place, row, name))
        return Compared(place[0], columns[place[1]], recipe.printed.get(place), samples, recipe.runs, next(reasons, ""))

    def counts(self) -> dict[str, int]:
        """How many cells are the same as in the paper, better and beyond."""
        verdicts = [cell.verdict for cell in self.cells]
        return {name: verdicts.count(name) for name in ("same", "better", "beyond")}

    def beyond(self) -> list[Compared]:
        """Cells more than two standard errors from the paper, and not better."""
        return [cell for cell in self.cells if cell.verdict == "beyond"]

    # --- as text ---

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of text: for each column the paper's number, ours, and the difference."""
        return self._shown(self.recipe.columns)

    def tables(self) -> list[tuple[list[str], list[list[str]]]]:
        """The same in parts of a few columns, which a page or a screen has room for."""
        columns = self.recipe.columns
        parts = [self._shown(columns[k : k + ABREAST]) for k in range(0, len(columns), ABREAST)]
        return [(header, rows) for header, rows in parts if rows]

    def markdown(self) -> str:
        """Title, tables, and the cells that are beyond, each with its reason."""
        recipe = self.recipe
        lines = [f"## {recipe.title}", "", recipe.protocol, "", f"`python -m papers {recipe.name}`: {self._done()}", ""]
        for header, rows in self.tables():
            lines += [_row(header), _row(["---", *["---:"] * (len(header) - 1)]), *map(_row, rows), ""]
        if any(cell.verdict for cell in self.cells):
            lines += [self.summary(), ""]
        for cell in self.beyond():
            apart = f"{cell.difference:+.1f} standard errors"
            why = cell.reason or "not explained"
            lines.append(f"- {cell.row}, {cell.column.name} ({apart}): {why}")
        lines += [f"- left out: {why}" for why in self.left_out.values()]
        return "\n".join(lines).rstrip() + "\n"

    def summary(self) -> str:
        """A sentence about all cells."""
        counts = self.counts()
        total = sum(counts.values())
        return (
            f"Of {total} numbers {counts['same']} are within {LIMIT:g} standard errors of the paper, "
            f"{counts['better']} are better, {counts['beyond']} are neither."
        )

    def csv(self) -> str:
        """A line for each cell."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        names = ["row", "column", "paper", "ours", "standard error", "runs", "difference", "verdict", "reason"]
        writer.writerow(names)
        for cell in self.cells:
            facts = [cell.paper and cell.paper.value, cell.ours, cell.standard_error, len(cell.samples)]
            numbers = ["" if value is None else f"{value:.6g}" for value in (*facts, cell.difference)]
            reason = cell.reason if cell.verdict == "beyond" else ""
            writer.writerow([cell.row, cell.column.name, *numbers, cell.verdict, reason])
        return file.getvalue()

    def _done(self) -> str:
        done = len(self.outcomes)
        return (
            f"{done} of {self.of} tasks, {self.seconds:.0f} s of one core"
            if done < self.of
            else (f"all {done} tasks, {self.seconds:.0f} s of one core")
        )

    def _shown(self, columns: Sequence[Column]) -> tuple[list[str], list[list[str]]]:
        cells = {(cell.row, cell.column.name): cell for cell in self.cells if cell.column in columns}
        compared = {column.name for column in columns if any(name == column.name for _, name in self.recipe.printed)}
        header = [self.recipe.row_name]
        for column in columns:
            beside = [f"{column.name}: paper", "ours", *["apart"] * column.judged]
            header += beside if column.name in compared else [column.name]
        rows = []
        for row in dict.fromkeys(row for row, _ in cells):
            texts = [row]
            for column in columns:
                texts += _texts(cells.get((row, column.name)), column, column.name in compared)
            rows.append(texts)
        return header, rows


def _fits(place: Cell, row: str, column: str) -> bool:
    return fnmatchcase(place[0], row) and fnmatchcase(place[1], column)


def _texts(cell: Compared | None, column: Column, compared: bool) -> list[str]:
    """The paper's number, ours with its standard error, and the difference; ours alone where nothing is printed."""
    if cell is None:
        return ["–"] * (2 + column.judged if compared else 1)
    digits = max(0, -math.floor(math.log10(column.step)))
    ours = f"{cell.ours:.{digits}f}"
    if cell.standard_error is not None and len(cell.samples) > 1:
        ours += f" ± {cell.standard_error:.{digits + 1}f}"
    if not compared:
        return [ours]
    mark = {"better": " better", "beyond": " *"}.get(cell.verdict, "")
    apart = "–" if cell.difference is None else f"{cell.difference:+.1f}{mark}"
    theirs = "–" if cell.paper is None else f"{cell.paper.value:.{digits}f}"
    return [theirs, ours, *[apart] * column.judged]


def _row(cells: Sequence[Any]) -> str:
    return "| " + " | ".join(str(cell).replace("|", r"\|") for cell in cells) + " |"
