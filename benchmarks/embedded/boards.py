"""Small processors: programs compiled for them, their bytes, and answers with instructions from emulated boards.

Instructions are counted by qemu: with ``-icount shift=6`` an instruction takes 64 ns of the emulated time, which is more
than a tick of SysTick, so that the ticks of a call say how many instructions it had. They are no clock cycles: a real
Cortex-M takes one to two for most of them. simavr counts the cycles of an AVR.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Array = np.ndarray
SUPPORT = Path(__file__).parent / "support"
SMALL = ["-Os", "-ffunction-sections", "-fdata-sections"]
PATIENCE = 240  # seconds for a compiler or an emulator
NANOSECONDS = 64  # of the emulated time, for an instruction
PACKAGES = {
    "arm-none-eabi-gcc": "gcc-arm-none-eabi libnewlib-arm-none-eabi",
    "qemu-system-arm": "qemu-system-arm",
    "avr-gcc": "gcc-avr avr-libc",
    "simavr": "simavr",
}
ENTRIES = {
    "float": ("float", "int answer(const float *x) { return model_predict(x); }"),
    "int16": ("int16_t", "int answer(const int16_t *x) { return model_predict_int16(x); }"),
    "readings": ("int16_t", "int answer(const int16_t *x) { return model_predict_readings(x); }"),
}


KINDS = {"float": np.float32, "double": np.float64, "int16_t": np.int16}


class DoesNotFit(RuntimeError):
    """A compiler or linker refused: its last words."""


@dataclass(frozen=True)
class Board:
    """A processor, and the machine that stands for it."""

    name: str
    flags: tuple[str, ...]
    machine: str = ""
    clock: float = 0.0  # of SysTick, Hz
    prefix: str = "arm-none-eabi-"

    @property
    def tools(self) -> tuple[str, str]:
        """Compiler and emulator."""
        return f"{self.prefix}gcc", "qemu-system-arm" if self.machine else "simavr"

    def missing(self) -> list[str]:
        """Of these two, what is not installed."""
        return [tool for tool in self.tools if shutil.which(tool) is None]


M0 = Board("Cortex-M0", ("-mthumb", "-mcpu=cortex-m0"), "microbit", 16e6)
M3 = Board("Cortex-M3", ("-mthumb", "-mcpu=cortex-m3"), "mps2-an385", 25e6)
M4 = Board("Cortex-M4F", ("-mthumb", "-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"), "mps2-an386", 25e6)
AVR = Board("ATmega328P", ("-mmcu=atmega328p",), prefix="avr-")
CORTEX = (M0, M3, M4)


@dataclass(frozen=True)
class Unit:
    """A translation unit with ``int answer(const ROW *)``."""

    source: str
    row: str = "float"
    headers: tuple[tuple[str, str], ...] = ()
    suffix: str = ".c"
    flags: tuple[str, ...] = ()


def unit_of(header: str, entry: str = "float") -> Unit:
    """A header of `slimsvm.to_c` and one of its entries."""
    row, answer = ENTRIES[entry]
    return Unit(f'#include "model.h"\n{answer}\n', row, (("model.h", header),))


@dataclass(frozen=True)
class Run:
    """What a board said."""

    answers: Array
    cost: float  # instructions a row (AVR: cycles)


def called(command: list[str], folder: Path) -> str:
    """Its output; an error has the last words that say something."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise DoesNotFit(f"{command[0]} was not done after {PATIENCE} s") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        full = [line for line in lines if re.search("overflow|will not fit|not within region", line)]
        said = full or [line for line in lines if "error" in line] or lines[-1:]
        raise DoesNotFit(said[0].strip() if said else f"{command[0]} ended with {done.returncode}")
    return done.stdout + done.stderr


def compiled(board: Board, unit: Unit, folder: Path, *more: str) -> Path:
    """The object of a unit."""
    for name, text in unit.headers:
        (folder / name).write_text(text)
    source = folder / f"unit{unit.suffix}"
    source.write_text(unit.source)
    compiler = board.prefix + ("g++" if unit.suffix == ".cpp" else "gcc")
    standard = [] if unit.suffix == ".cpp" else ["-std=c99"]
    command = [compiler, *standard, *SMALL, *board.flags, *unit.flags, *more, "-I", ".", "-c", source.name]
    called(command, folder)
    return folder / "unit.o"


def object_bytes(board: Board, unit: Unit) -> int:
    """Code, constants and initial values in one object: all that it brings into the flash by itself."""
    with tempfile.TemporaryDirectory() as name:
        made = compiled(board, unit, Path(name))
        lines = called([f"{board.prefix}size", "-A", made.name], Path(name)).splitlines()
    parts = [line.split()[:2] for line in lines if line.startswith((".text", ".rodata", ".data", ".progmem"))]
    return sum(int(size) for _, size in parts)


def stack_bytes(board: Board, unit: Unit) -> int:
    """The frames of the deepest calls within the unit; those of libraries are not known."""
    with tempfile.TemporaryDirectory() as name:
        compiled(board, unit, Path(name), "-fstack-usage", "-fcallgraph-info=su")
        calls, own = _call_graph((Path(name) / "unit.ci").read_text())

    def deepest(function: str) -> int:
        return own.get(function, 0) + max((deepest(other) for other in calls.get(function, ())), default=0)

    return max(map(deepest, own), default=0)


def _call_graph(text: str) -> tuple[dict[str, set[str]], dict[str, int]]:
    """Who calls whom, and the frames of those that are defined, from what gcc writes."""
    calls: dict[str, set[str]] = {}
    for source, target in re.findall(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"', text):
        calls.setdefault(source, set()).add(target)
    frames = re.findall(r'node: \{ title: "([^"]+)" label: "[^"]*?\\n(\d+) bytes', text)
    return calls, {title: int(size) for title, size in frames}


def linked(board: Board, unit: Unit, length: int, folder: Path) -> Path:
    """The program that answers rows, with what it needs of the libraries and nothing else."""
    compiled(board, unit, folder)
    row = [f"-DROW={unit.row}", f"-DLENGTH={length}"]
    if board is AVR:
        main = [str(SUPPORT / "avr.c")]
        linking = ["-Wl,--defsym=__TEXT_REGION_LENGTH__=32K", "-Wl,--defsym=__DATA_REGION_LENGTH__=2K"]
    else:
        main = [str(SUPPORT / "cortex_m.c"), str(SUPPORT / "startup.c")]
        linking = ["-nostartfiles", "-specs=nano.specs", "-T", str(SUPPORT / "cortex_m.ld")]
    ending = ["-Wl,--gc-sections", "-lm", "-o", "program.elf"]
    command = [board.tools[0], "-std=gnu99", *SMALL, *board.flags, *row, "-I", ".", *main, "unit.o", *linking, *ending]
    called(command, folder)
    return folder / "program.elf"


def linked_bytes(board: Board, unit: Unit, length: int) -> int:
    """Flash of the program, less that of the same program with an empty answer."""
    empty = Unit(f"#include <stdint.h>\nint answer(const {unit.row} *x) {{ (void)x; return 0; }}\n", unit.row)

    def flash(some: Unit) -> int:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if board is AVR:
                (folder / "rows.h").write_text(_rows_in_flash(np.zeros((1, length)), unit.row))
            program = linked(board, some, length, folder)
            text, data, *_ = called([f"{board.prefix}size", program.name], folder).splitlines()[1].split()
        return int(text) + int(data)

    return flash(unit) - flash(empty)


def run(board: Board, unit: Unit, X: Array) -> Run:
    """Answers of an emulated board, and what a row takes."""
    with tempfile.TemporaryDirectory() as name:
        return (_run_avr if board is AVR else _run_cortex)(board, unit, X, Path(name))


def _run_cortex(board: Board, unit: Unit, X: Array, folder: Path) -> Run:
    program = linked(board, unit, X.shape[1], folder)
    kind = KINDS[unit.row]
    (folder / "rows").write_bytes(np.ascontiguousarray(X, dtype=kind).tobytes())
    command = ["qemu-system-arm", "-M", board.machine, "-nographic", "-monitor", "none", "-serial", "none"]
    counted = ["-semihosting-config", "enable=on,target=native", "-icount", f"shift={NANOSECONDS.bit_length() - 1}"]
    called([*command, *counted, "-kernel", program.name], folder)
    found = np.fromfile(folder / "answers", dtype=np.uint32).reshape(-1, 2)
    if len(found) != len(X):
        raise RuntimeError(f"{board.name} answered {len(found)} of {len(X)} rows")
    ticks = NANOSECONDS * 1e-9 * board.clock
    return Run(found[:, 0].astype(np.int32), float(found[:, 1].mean()) / ticks)


def _rows_in_flash(X: Array, row: str) -> str:
    numbers = ", ".join(f"{v:.9g}" for v in np.asarray(X, dtype=np.float32).ravel())
    return f"#define ROWS {len(X)}\nstatic const {row} rows[] PROGMEM = {{{numbers}}};\n"


def _run_avr(board: Board, unit: Unit, X: Array, folder: Path) -> Run:
    (folder / "rows.h").write_text(_rows_in_flash(X, unit.row))
    program = linked(board, unit, X.shape[1], folder)
    said = called(["simavr", "-m", "atmega328p", "-f", "16000000", program.name], folder)
    found = np.array(re.findall(r"(\d+) (\d+)\.?\n", said), dtype=int).reshape(-1, 2)
    if len(found) != len(X):
        raise RuntimeError(f"{board.name} answered {len(found)} of {len(X)} rows")
    return Run(found[:, 0], 64 * float(found[:, 1].mean()))
