"""The size that `slimsvm.frontier` chooses, and its test error beside that of the largest model and of a full machine.

Halves of each set, standardised on the first, which is all that the choice sees; errors are those on the other half.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler

from slimsvm import frontier

from . import keel, parts, sets
from .parts import mean, percent
from .report import Table
from .sets import Split

STORED = ["splice", "image", "banana", "waveform"]
FROM_KEEL = ["magic", "phoneme", "spambase", "satimage"]
CLOSE = 0.3  # points of error that the chosen size may lose


def halves(name: str, count: int) -> Iterator[tuple[int, Split]]:
    """Random halves, standardised, each with its seed."""
    X, y = keel.whole(name) if name in FROM_KEEL else sets.whole(name)
    for seed in range(count):
        order = np.random.default_rng(seed).permutation(len(y))
        first, second = order[: len(y) // 2], order[len(y) // 2 :]
        yield seed, Split(X[first], y[first], X[second], y[second]).mapped(StandardScaler())


def compare(item: tuple[int, Split]) -> dict[str, float]:
    """Errors of all sizes on one split, and what was chosen."""
    seed, split = item
    start = time.process_time()
    found = frontier(split.X, split.y, random_state=seed)
    seconds = time.process_time() - start
    errors = {f"error {size}": split.error(model) for size, model in found.models.items()}
    return errors | {
        "size": found.best_size(),
        "chosen": split.error(found.best()),
        "largest": split.error(found.models[found.sizes[-1]]),
        "best score": split.error(found.best(within=0)),
        "best score size": found.best_size(0),
        "full": split.error(found.full.model if found.full else None),
        "full vectors": found.full.vectors if found.full else 0,
        "seconds": seconds,
    }


def measure(options: argparse.Namespace) -> Iterator[Table]:
    """A row for each set, and how many are close."""
    names = [*(STORED if sets.present() else []), *(FROM_KEEL if keel.present() else [])]
    if not names:
        print(sets.ABSENT)
        return
    if options.quick:
        options = parts.settled(options, splits=1, sets=names[:1])
    names = parts.wanted(names, options)
    rows, close = [], 0
    for name in names:
        found = parts.spread(compare, halves(name, options.splits or 1), options.n_jobs)
        worse = mean(f["chosen"] - f["largest"] for f in found)
        close += worse <= CLOSE
        row = [name, str(len(found)), " ".join(f"{f['size']:.0f}" for f in found)]
        row += [percent((f[key] for f in found), 2) for key in ("chosen", "largest")]
        row += [f"{worse:+.2f}", f"{mean(f['best score'] - f['largest'] for f in found):+.2f}"]
        row += [percent((f["full"] for f in found), 2), f"{mean(f['full vectors'] for f in found):.0f}"]
        rows.append([*row, f"{mean(f['seconds'] for f in found):.1f}"])
        parts.say(f"{name}: {worse:+.2f}")
    rows.append(["within", "", "", "", "", f"{close} of {len(names)}", "", "", "", ""])
    header = ["set", "splits", "chosen size", "error there", "error at 128", "difference", "best score"]
    header += ["full machine", "its vectors", "CPU s"]
    note = (
        "Test error, %, on halves that no fit has seen. Default settings. Best score: the difference to 128 "
        "vectors of the size with the best score, within=0."
    )
    yield Table("Size chosen by the frontier", header, rows, note)


def measure_time(options: argparse.Namespace) -> Iterator[Table]:
    """Seconds for many rows."""
    n = 1000 if options.quick else 10_000
    X, y = make_classification(n, 50, n_informative=20, n_redundant=10, n_clusters_per_class=4, random_state=0)
    start = time.process_time(), time.perf_counter()
    found: Any = parts.quietly(frontier, X, y)
    used = time.process_time() - start[0], time.perf_counter() - start[1]
    row = [f"{n} x 50", str(found.best_size()), f"{used[0]:.1f}", f"{used[1]:.1f}"]
    yield Table(
        "Time, one thread", ["rows", "chosen size", "CPU s", "s"], [row], "Sizes 2 to 128, full machine included."
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Those of all parts are enough."""


def main(argv: list[str] | None = None) -> None:
    parser = parts.parser("benchmarks.frontier", __doc__)
    options = parser.parse_args(argv)
    parts.run(options, "Frontier", [measure, measure_time])


if __name__ == "__main__":
    main()
