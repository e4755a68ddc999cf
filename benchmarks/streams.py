"""`SlimSVC.partial_fit` on streams: beside a fit on all rows, and beside random features with stochastic gradients.

a9a and Gaussians in blocks, and teachers that change: what is kept decides. Each row is seen once; scores on a
changing stream are those of each block before it is learned from.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier

from papers import datasets
from slimsvm import SlimSVC

from . import parts, sets
from .parts import percent
from .problems import Array
from .report import Table

VECTORS = 30
LAST = 20  # blocks of a changing stream that are reported
TURNS = {"gradual": lambda part: np.pi * part, "abrupt": lambda part: np.where(part < 0.5, 0, np.pi / 2)}


class RandomFeatures:
    """300 random features and averaged stochastic gradients: what scikit-learn has for such streams."""

    def __init__(self, seed: int):
        self.features = RBFSampler(gamma="scale", n_components=300, random_state=seed)
        self.machine = SGDClassifier(average=True, random_state=seed)

    def partial_fit(self, X: Array, y: Array, classes: Array) -> None:
        if not hasattr(self.machine, "coef_"):
            self.features.fit(X)
        self.machine.partial_fit(self.features.transform(X), y, classes=classes)

    def score(self, X: Array, y: Array) -> float:
        return self.machine.score(self.features.transform(X), y)


def slim(**options: Any) -> Callable[[int], Any]:
    return lambda seed: SlimSVC(VECTORS, random_state=seed, **options)


def fed(model: Any, X: Array, y: Array, size: int) -> tuple[Array, Array]:
    """Seconds (of the processor) for each block, and its score before it was learned from."""
    classes, seconds, scores = np.unique(y), [], []
    for start in range(0, len(y), size):
        rows = slice(start, start + size)
        if start:
            scores.append(100 * model.score(X[rows], y[rows]))
        begin = time.process_time()
        model.partial_fit(X[rows], y[rows], classes=classes)
        seconds.append(time.process_time() - begin)
    return np.array(seconds), np.array(scores)


# --- streams that stay the same ------------------------------------------------------------------


def compared(title: str, split: sets.Split, size: int, seeds: int, note: str) -> Table:
    """Streams in another order for each seed, and a fit on all rows."""
    kinds = {
        "SlimSVC, memory 20,000": slim(),
        "SlimSVC, memory 5,000": slim(memory=5000),
        "RBFSampler(300), SGD": RandomFeatures,
    }
    rows = []
    for name, make in kinds.items():
        right, total, usual, most, end = [], [], [], [], []
        for seed in range(seeds):
            order = np.random.default_rng(seed).permutation(len(split.y))
            model = make(seed)
            seconds, _ = fed(model, split.X[order], split.y[order], size)
            right.append(100 * model.score(split.X_test, split.y_test))
            total.append(seconds.sum())
            usual.append(np.median(seconds))
            most.append(seconds.max())
            end.append(seconds[-len(seconds) // 4 :].mean())
        cells = [f"{1000 * parts.mean(values):.0f}" for values in (usual, most, end)]
        rows.append([name, percent(right, 2), f"{parts.mean(total):.1f}", *cells])
        parts.say(f"{title}: {rows[-1]}")
    right, total = [], []
    for seed in range(seeds):
        begin = time.process_time()
        model = slim()(seed).fit(split.X, split.y)
        total.append(time.process_time() - begin)
        right.append(100 * model.score(split.X_test, split.y_test))
    rows.append(["SlimSVC.fit, all rows", percent(right, 2), f"{parts.mean(total):.1f}", "", "", ""])
    header = ["", "% right", "s in all", "ms a block: median", "highest", "mean of the last quarter"]
    return Table(title, header, rows, note)


def same(options: argparse.Namespace) -> Iterator[Table]:
    """a9a and Gaussians."""
    seeds = 1 if options.quick else options.splits or 3
    if datasets.available("a9a"):
        split = next(sets.splits("a9a"))
        size = -(-len(split.y) // 33)
        note = f"{len(split.y):,} rows in 33 blocks, orders and seeds 0 to {seeds - 1}; {VECTORS} vectors."
        yield compared("a9a in 33 blocks", split, size, seeds, note)
    n = 20_000 if options.quick else 400_000
    split = sets.Split(*sets.gaussians(n, 0), *sets.gaussians(20_000, 1))
    note = f"{n:,} rows of {sets.D} inputs in blocks of 2,000, two classes of {sets.CENTRES} Gaussians each."
    yield compared("Gaussians", split, 2000, 1, note)


# --- streams that change -------------------------------------------------------------------------


def teacher(n: int, seed: int, turn: Callable[[Array], Array], d: int = 10, centres: int = 20) -> tuple[Array, Array]:
    """Labels by which of two sets of centres has more kernels at a point, one of 20 wrong; the centres move."""
    ends = np.random.default_rng(7).normal(size=(2, 2 * centres, d))
    rng = np.random.default_rng([7, seed])
    X, y = rng.normal(size=(n, d)), np.empty(n, dtype=int)
    for rows in np.array_split(np.arange(n), max(1, n // 500)):
        angle = turn(rows.mean() / n)
        places = ends[0] * np.cos(angle) + ends[1] * np.sin(angle)
        K = np.exp(-0.25 * ((X[rows, None] - places) ** 2).sum(axis=2))
        y[rows] = K[:, :centres].sum(axis=1) > K[:, centres:].sum(axis=1)
    return X, np.where(rng.random(n) < 0.05, 1 - y, y)


def changing(options: argparse.Namespace) -> Iterator[Table]:
    """Two ways to change."""
    n, seeds = (20_000, 1) if options.quick else (60_000, options.splits or 3)
    kinds: dict[str, Callable[[int], Any]] = {
        "SlimSVC, a sample of all rows": slim(),
        **{f"SlimSVC, recent {most:,}": slim(memory=most, recent=True) for most in (2000, 5000, 10_000)},
        "RBFSampler(300), SGD": RandomFeatures,
    }
    rows = []
    for name, make in kinds.items():
        cells = []
        for turn in TURNS.values():
            whole, last, after = [], [], []
            for seed in range(seeds):
                _, scores = fed(make(seed), *teacher(n, seed, turn), 1000)
                whole.append(scores.mean())
                last.append(scores[-LAST:].mean())
                after.append(scores[len(scores) // 2 :][5:10].mean())
            cells += [percent(whole), percent(last)] + ([percent(after)] if turn is TURNS["abrupt"] else [])
        rows.append([name, *cells])
        parts.say(f"changing: {rows[-1]}")
    header = ["% right, before a block is learned", "gradual: all", "gradual: last 20 blocks"]
    header += ["abrupt: all", "abrupt: last 20 blocks", "abrupt: blocks 6 to 10 after the change"]
    note = (
        f"{n:,} rows of 10 inputs in blocks of 1,000, seeds 0 to {seeds - 1}, {VECTORS} vectors; 95 % at most can be "
        "right. Gradual: 40 centres move half around; abrupt: all are exchanged after half of the rows."
    )
    yield Table("Teachers that change", header, rows, note)


def main(argv: list[str] | None = None) -> None:
    options = parts.parser("benchmarks.streams", __doc__, sets=False).parse_args(argv)
    parts.run(options, "Streams", [same, changing])


if __name__ == "__main__":
    main()
