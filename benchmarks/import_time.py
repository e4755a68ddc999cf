"""Time of `import slimsvm` over that of `import sklearn.svm`, which it needs: python -m benchmarks.import_time

Each import runs in a fresh process, the two in turns, with bytecode that an installation leaves behind and a warm
cache of the disk. On a busy machine, believe the time of the processor.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from statistics import median

BASE, OWN = "import sklearn.svm", "import slimsvm"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--modules", action="store_true", help="which modules cost most beyond sklearn.svm")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
        for statement in (BASE, OWN):  # writes the bytecode, warms the disk's cache
            seconds(statement, environment)
        turns = [(seconds(BASE, environment), seconds(OWN, environment)) for _ in range(arguments.turns)]
        for kind, what in enumerate(("on the clock", "of the processor")):
            base, own = (median(turn[which][kind] for turn in turns) * 1e3 for which in (0, 1))
            ratio = median(turn[1][kind] / turn[0][kind] for turn in turns)
            print(f"{what}: {BASE} {base:.0f} ms, {OWN} {own:.0f} ms, ratio {ratio:.3f} (medians of {len(turns)})")
        if arguments.modules:
            for name, milliseconds in slowest(environment):
                print(f"  {name}: {milliseconds:.1f} ms")


def seconds(statement: str, environment: dict[str, str]) -> list[float]:
    """On the clock, and of the processor; the interpreter's own start is not part of it."""
    code = (
        "from time import perf_counter, process_time\n"
        "clock, processor = perf_counter(), process_time()\n"
        f"{statement}\n"
        "print(perf_counter() - clock, process_time() - processor)"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    return [float(value) for value in run.stdout.split()]


def slowest(environment: dict[str, str], count: int = 15) -> list[tuple[str, float]]:
    """Modules that `import slimsvm` loads after `import sklearn.svm`, each without what it imports itself."""
    command = [sys.executable, "-X", "importtime", "-c", f"{BASE}; {OWN}"]
    log = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stderr
    lines = [line for line in log.splitlines() if line.startswith("import time:")][1:]
    rows = [line.removeprefix("import time:").split("|") for line in lines]
    times = [(name.strip(), float(own) / 1e3) for own, _, name in rows]
    after = [name for name, _ in times].index("sklearn.svm") + 1
    return sorted(times[after:], key=lambda row: -row[1])[:count]


if __name__ == "__main__":
    main()
