"""Models in C on small processors: bytes, stack, instructions and answers; speed here; other generators of C."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import time
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning

from ..machine import facts
from ..pages import publish
from ..parts import say
from ..report import Table
from . import devices, rivals, speed
from .boards import PACKAGES
from .models import cases

PAGE = Path(__file__).parents[1] / "EMBEDDED.md"
TOOLS = ("arm-none-eabi-gcc", "avr-gcc", "qemu-system-arm", "simavr", "gcc", "clang")
HELD = {"simavr": ("dpkg-query", "-W", "-f", "simavr ${Version}", "simavr")}  # it does not tell its version


def tools() -> Table:
    """The machine, and what compiled and ran."""
    found = [[key, value] for key, value in facts().items()]
    for tool in TOOLS:
        command = HELD.get(tool, (tool, "--version"))
        if shutil.which(tool) is None or shutil.which(command[0]) is None:
            continue
        said = subprocess.run(command, capture_output=True, text=True)
        found.append([tool, (said.stdout or said.stderr).splitlines()[0] if said.returncode == 0 else "installed"])
    found.append(["slimsvm, scikit-learn", f"{version('slimsvm')}, {version('scikit-learn')}"])
    return Table("Machine and tools", ["", ""], found)


def measured(options: argparse.Namespace) -> Iterator[Table]:
    """All tables that can be made here."""
    wanted = options.parts
    if "devices" in wanted:
        yield from devices.tables(cases(options.quick))
    if "speed" in wanted:
        yield from speed.tables(options.quick)
    if "rivals" in wanted:
        yield from rivals.tables(options.quick)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.embedded", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.parent.name}/{PAGE.name}")
    parser.add_argument("--quick", action="store_true", help="one small model, to see that everything runs")
    parser.add_argument("--parts", nargs="+", choices=("devices", "speed", "rivals"), help="some parts only")
    parser.set_defaults(parts=("devices", "speed", "rivals"))
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore", ConvergenceWarning)
    missing = [f"{tool} (Debian: {package})" for tool, package in PACKAGES.items() if shutil.which(tool) is None]
    if missing:
        say(f"not installed, and left out: {', '.join(missing)}")
    start, found = time.perf_counter(), [tools()]
    for table in measured(options):
        table.show()
        found.append(table)
    minutes = (time.perf_counter() - start) / 60
    say(f"{minutes:.1f} minutes in all")
    if options.write:
        publish(PAGE, "On small processors", "make embedded ARGS=--write", minutes, found)


if __name__ == "__main__":
    main()
