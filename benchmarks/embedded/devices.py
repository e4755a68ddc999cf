"""What models take on processors, and whether these answer as Python does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm import to_c
from slimsvm.export import quantize

from ..report import Table
from . import boards
from .boards import AVR, CORTEX, Board, DoesNotFit, Unit, unit_of
from .models import BAR, Case

MOST_BYTES, LEAST_SAME = 6144, 99.5  # of 3 against 8, 20 vectors, int8, on Cortex-M0
AVR_ROWS = 4  # lie in its flash, beside the model
HEADER = ["model", "form", "object B", "linked B", "stack B", "{what} a row", "answers", "labels as in Python %"]
CORTEX_NOTE = (
    "-Os -mthumb -ffunction-sections -fdata-sections. Object: code, constants and data of one unit with the one entry; "
    "linked: the program (newlib-nano, --gc-sections) less the same program with an empty entry, so with what it "
    "needs of libm and soft floats; stack: deepest frames of the unit. Instructions: mean over the test rows, qemu "
    "{machine}, -icount, counted by SysTick. Answers: those that the device gives for test rows, compared with what "
    "Python says that it will (float32: the model's own labels)."
)
AVR_NOTE = (
    "-Os, avr-libc; tables in flash (PROGMEM). Clock cycles: simavr, timer 1, to 64 cycles, mean of "
    f"{AVR_ROWS} test rows. ATmega328P: 32 KB of flash, 2 KB of RAM."
)


@dataclass(frozen=True)
class Form:
    """A model in C, called in one way: rows as it takes them, and the class numbers that must come back."""

    name: str
    unit: Unit
    rows: np.ndarray
    expected: np.ndarray
    labels: np.ndarray  # class numbers that the model gives in Python

    @property
    def same(self) -> float:
        """Percent of rows that keep their label."""
        return 100 * float(np.mean(self.expected == self.labels))


def forms(case: Case) -> list[Form]:
    """float32; int8 with rows in floats; int8 with rows in integers."""
    model, X = case.model, case.split.X_test
    small = quantize(model)
    own, integers = (np.searchsorted(model.classes_, found.predict(X)) for found in (model, small))
    float32, int8 = str(to_c(model)), str(to_c(model, dtype="int8"))
    return [
        Form("float32", unit_of(float32), X, own, own),
        Form("int8, float rows", unit_of(int8), X, integers, own),
        Form("int8, int16 rows", unit_of(int8, "int16"), small.grid.rows(np.asarray(X)), integers, own),
    ]


def measured(board: Board, case: Case, form: Form) -> list[str]:
    """A line of the table."""

    def number(measure: Callable[..., int], *arguments: Any) -> str:
        try:
            return f"{measure(*arguments):,}"
        except DoesNotFit:
            return "–"

    line = [case.name, form.name]
    line.append(number(boards.object_bytes, board, form.unit))
    line.append(number(boards.linked_bytes, board, form.unit, form.rows.shape[1]))
    line.append("–" if board is AVR else number(boards.stack_bytes, board, form.unit))
    rows, expected = form.rows, form.expected
    if board is AVR:
        rows, expected = rows[:AVR_ROWS], expected[:AVR_ROWS]
    if board.missing():
        return [*line, "–", "–", f"{form.same:.1f}"]
    try:
        found = boards.run(board, form.unit, rows)
    except DoesNotFit as error:
        return [*line, "–", f"does not fit: {short(error)}", f"{form.same:.1f}"]
    equal = int(np.sum(found.answers == expected))
    return [*line, f"{found.cost:,.0f}", f"{equal} of {len(rows)} equal", f"{form.same:.1f}"]


def short(error: Exception) -> str:
    return str(error).rpartition(": ")[2][:60]


def tables(found: Iterable[Case]) -> Iterator[Table]:
    """One for each processor whose compiler is here, and the bar."""
    found = [(case, forms(case)) for case in found]
    for board in (*CORTEX, AVR):
        if board.tools[0] in board.missing():
            continue
        what = "cycles" if board is AVR else "instructions"
        rows = [measured(board, case, form) for case, several in found for form in several]
        note = AVR_NOTE if board is AVR else CORTEX_NOTE.format(machine=board.machine)
        yield Table(board.name, [cell.format(what=what) for cell in HEADER], rows, note)
    if not boards.M0.missing():
        yield from bar(found)


def bar(found: list[tuple[Case, list[Form]]]) -> Iterator[Table]:
    """Bytes of 3 against 8: both entries in one object, each alone, and labels."""
    rows = []
    for case, (_, rows_in_floats, in_integers) in found:
        if BAR not in case.name:
            continue
        other = in_integers.unit.source.split("\n", 1)[1].replace("answer", "answer_integers")
        both = Unit(rows_in_floats.unit.source + other, headers=rows_in_floats.unit.headers)
        sizes = [boards.object_bytes(boards.M0, unit) for unit in (rows_in_floats.unit, in_integers.unit, both)]
        same = rows_in_floats.same
        met = "yes" if sizes[-1] <= MOST_BYTES and same >= LEAST_SAME else "no"
        rows.append([case.name, *(f"{size:,}" for size in sizes), f"{same:.2f}", str(len(rows_in_floats.rows)), met])
    header = ["model, int8", "float entry B", "int16 entry B", "both B", "same labels %", "rows", "met"]
    if rows:
        yield Table(f"Bar: {MOST_BYTES:,} bytes on Cortex-M0, {LEAST_SAME} % of labels", header, rows, "Objects, -Os.")
