"""One problem from start to verdict, and many of them with a line of progress and a summary."""

from __future__ import annotations

import argparse
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import slimsvm
from longdouble import long

from .machines import MACHINES, case

SLOW = 20.0  # seconds that a fit of up to 300 rows may take
PATIENCE = 25.0  # then it is stopped
PACKAGE = str(Path(slimsvm.__file__).parent)


@dataclass
class Result:
    """What became of one problem."""

    name: str
    text: str
    wrong: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    warned: bool = False
    refused: str = ""
    seconds: float = 0.0


@contextmanager
def time_limit(seconds):
    """TimeoutError after so many seconds of computing, where the platform has such alarms."""

    def stop(signum, frame):
        raise TimeoutError

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def attempt(problem):
    """Fit and judge. A fit that warned of its gap may miss it; nothing else is forgiven."""
    result = Result(problem.name, f"{problem.estimator!r} on {problem.text}".replace("\n", " "))
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as caught, time_limit(PATIENCE):
        warnings.simplefilter("always")
        try:
            model = problem.estimator.fit(problem.X, problem.y, problem.weight)
        except TimeoutError:
            result.wrong.append(f"slow: stopped after {PATIENCE:g} s")
            return result
        except ValueError as error:  # LinAlgError is one, too
            if type(error) is ValueError:
                result.refused = str(error)
            else:
                result.wrong.append(f"{type(error).__name__}: {error}; {where(error)}")
            return result
        except Exception as error:
            result.wrong.append(f"{type(error).__name__}: {error}; {where(error)}")
            return result
    # A busy machine is no reason to fail.
    result.seconds = min(time.perf_counter() - wall, time.process_time() - cpu)
    result.warned = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    if result.seconds > SLOW:
        result.wrong.append(f"slow: {result.seconds:.0f} s")
    noises = {str(w.message) for w in caught if w.category is RuntimeWarning and w.filename.startswith(PACKAGE)}
    result.wrong += [f"RuntimeWarning: {noise}" for noise in sorted(noises)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict = problem.verdict(model)
    if not result.warned:
        result.wrong += verdict.wrong
        result.undecided += verdict.undecided
    elif not all(np.isfinite(long(getattr(model, name))).all() for name in problem.numbers):
        result.wrong.append("a model that is not finite")
    return result


def where(error):
    """The last line of the package in a traceback."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(PACKAGE)]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "outside slimsvm"


def command(seed, number, only=None, rows=300):
    """What repeats a problem."""
    others = (f" --only {only}" if only else "") + (f" --rows {rows}" if rows != 300 else "")
    return f'make fuzz ARGS="--seed {seed} --first {number} --problems 1 --show{others}"'


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--rows", type=int, default=300, help="most rows of a problem")
    parser.add_argument("--only", choices=sorted(MACHINES), help="one estimator")
    parser.add_argument("--show", action="store_true", help="print each problem")
    options = parser.parse_args(arguments)
    return summarise(run(options), options)


def run(options):
    """All problems, in one process."""
    found: list[tuple[int, Result]] = []
    failures = 0
    for number in range(options.first, options.first + options.problems):
        result = attempt(case(options.seed, number, options.only, options.rows))
        found.append((number, result))
        failures += bool(result.wrong)
        if options.show:
            print(number, result.text, *result.wrong, *result.undecided, sep="\n    ", flush=True)
        elif result.wrong:
            print(f"\r{number}: {result.name}: {result.wrong[0]}", flush=True)
        print(f"\r{len(found)} of {options.problems}, {failures} failures", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def summarise(found, options):
    """Counts for each estimator, and each failure with the command that repeats it."""
    wrong = [(number, r) for number, r in found if r.wrong]
    for number, r in wrong:
        print(f"\n{r.name}: {command(options.seed, number, options.only, options.rows)}")
        print(f"  {r.text}")
        for line in r.wrong:
            print(f"  {line}")
    refusals = Counter((r.name, r.refused) for _, r in found if r.refused)
    for (name, message), count in refusals.most_common():
        print(f"\nrefused {count} times, {name}: {message}")
    print(f"\n{'':28}{'problems':>9}{'failures':>9}{'warned':>9}{'refused':>9}{'undecided':>10}{'slowest':>9}")
    for name in MACHINES:
        mine = [r for _, r in found if r.name == name]
        if mine:
            counts = (len(mine), *(sum(bool(getattr(r, k)) for r in mine) for k in ("wrong", "warned", "refused")))
            undecided = sum(bool(r.undecided) for r in mine)
            slowest = max(r.seconds for r in mine)
            print(f"{name:28}{counts[0]:9}{counts[1]:9}{counts[2]:9}{counts[3]:9}{undecided:10}{slowest:8.1f}s")
    return 1 if wrong else 0
