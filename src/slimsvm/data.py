"""Labelled rows, and the binary problems over them: the one carrier of training data.

Equal rows of one class are one row that carries their weights: exact for every method here, where weight k means k
copies. Draws go by a number that depends on a row's contents alone, so neither the order of the rows nor the way in
which copies are written changes a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

from .formulation import Array

FEW_COLUMNS = 4096  # whose constants are kept
BLOCK = 1 << 16  # entries of X that are looked at together


@dataclass(frozen=True)
class Output:
    """One binary problem: a class against another one, or against all others."""

    positive: int
    negative: tuple[int, ...]

    @property
    def members(self) -> list[int]:
        """The classes that take part, in order."""
        return sorted((self.positive, *self.negative))


def outputs(n_classes: int, scheme: str) -> list[Output]:
    """Two classes: one problem. More: each pair of classes ("ovo"; the first of a pair is positive), or each class
    against the others ("ovr")."""
    if n_classes == 2:
        return [Output(1, (0,))]
    if scheme == "ovo":
        return [Output(i, (j,)) for i, j in combinations(range(n_classes), 2)]
    return [Output(c, tuple(k for k in range(n_classes) if k != c)) for c in range(n_classes)]


def sides(n_classes: int, wanted: list[Output]) -> Array:
    """Classes x problems: +1 and -1, or 0 where a class takes no part."""
    side = np.zeros((n_classes, len(wanted)))
    for o, output in enumerate(wanted):
        side[list(output.negative), o] = -1
        side[output.positive, o] = 1
    return side


@dataclass(frozen=True)
class Targets:
    """Labels (+-1, or 0 where a row takes no part) and costs of binary problems over the same rows: rows x problems."""

    rows: Array | None  # None: all of them
    Y: Array
    C: Array


@dataclass(frozen=True)
class Task:
    """Rows to learn from, each row of a class once, with the kernel as it was asked for.

    Rows that count nothing (weight 0) are left out. The rows of a precomputed kernel are row numbers.
    """

    X: Any
    codes: Array  # class number of each row
    counts: Array  # sample weights: how often a row counts
    factors: Array  # of the classes: their weights
    numbers: Array  # of the rows in the user's data: the first of its copies
    keys: Array  # numbers made from a row's contents: the order of all draws
    classes: Array  # labels
    kernel: Any
    n_samples: int  # rows of the user's data
    threads: int = 1

    @property
    def size(self) -> int:
        return len(self.codes)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def weights(self) -> Array:
        """Sample weight times class weight."""
        return self.counts * self.factors[self.codes]

    def take(self, rows: Array) -> Task:
        """Some of the rows."""
        X = self.X[rows] if sp.issparse(self.X) else np.ascontiguousarray(self.X[rows])
        mine = {name: getattr(self, name)[rows] for name in ("codes", "counts", "numbers", "keys")}
        return replace(self, X=X, **mine)

    def canonical(self) -> Array:
        """The rows in an order that does not depend on theirs."""
        return np.lexsort((self.codes, self.keys))

    def sorted(self) -> Task:
        """All rows in canonical order: for methods whose way depends on the last bits of sums."""
        return self.take(self.canonical())

    def sample(self, most: int, rng: np.random.Generator) -> Task:
        """At most ``most`` rows in canonical order, from each class in proportion and at least one of each.

        Rows are drawn by weight and then count so that every sum over rows is estimated without bias (Duffield, Lund
        and Thorup's priority sampling): rows of equal weight keep equal weights.
        """
        if self.size <= most:
            return self.sorted()
        order = self.canonical()
        codes, counts = self.codes[order], self.counts[order]
        priority = counts / (1 - rng.random(self.size))
        totals = np.bincount(codes, minlength=self.n_classes)
        shares = np.maximum(np.minimum(totals, 1), (totals * (most / self.size)).astype(int))
        while shares.sum() > max(most, np.count_nonzero(totals)):  # small classes have had more than their part
            shares[shares.argmax()] -= 1
        drawn, weight = np.zeros(self.size, dtype=bool), counts.copy()
        for c in np.flatnonzero(shares):
            mine = np.flatnonzero(codes == c)
            if shares[c] < len(mine):
                ranked = mine[np.argsort(-priority[mine], kind="stable")]
                weight[mine] = np.maximum(weight[mine], priority[ranked[shares[c]]])
                mine = ranked[: shares[c]]
            drawn[mine] = True
        kept = np.flatnonzero(drawn)
        return replace(self.take(order[kept]), counts=weight[kept] * (counts.sum() / weight[kept].sum()))

    def drawn_by_weight(self, rng: np.random.Generator) -> Array:
        """All rows, in random order: a row of twice the weight comes twice as likely first."""
        order = self.canonical()
        return order[np.argsort(rng.exponential(size=self.size) / self.counts[order], kind="stable")]

    def labels(self, wanted: list[Output]) -> Array:
        """Rows x problems: +1 and -1, or 0 where a row takes no part."""
        return sides(self.n_classes, wanted)[self.codes]

    def targets(self, wanted: list[Output], C: Array | float) -> list[Targets]:
        """Labels and costs (C for all problems, or one for each): problems over all rows together, others each over
        their own rows."""
        costs = np.broadcast_to(C, len(wanted))
        if all(len(output.members) == self.n_classes for output in wanted):
            return [Targets(None, self.labels(wanted), np.outer(self.weights, costs))]
        groups = []
        for output, cost in zip(wanted, costs, strict=True):
            rows, y, weights = self.binary(output)
            groups.append(Targets(rows, y[:, None], cost * weights[:, None]))
        return groups

    def binary(self, output: Output) -> tuple[Array, Array, Array]:
        """Rows of one problem, their labels (+-1) and weights."""
        rows = np.flatnonzero(np.isin(self.codes, output.members))
        codes = self.codes[rows]
        return rows, np.where(codes == output.positive, 1.0, -1.0), self.counts[rows] * self.factors[codes]

    def name(self, output: Output) -> str:
        """A problem in words, for the progress line."""
        if len(output.negative) > 1:
            return f"class {self.classes[output.positive]!s}"
        first, second = (self.classes[c] for c in output.members)
        return f"classes {first!s} and {second!s}"


# --- equal rows ------------------------------------------------------------------------------------------------


def merged(task: Task, contents: Any) -> Task:
    """Equal rows of a class as one, with the sum of their weights; in the order in which they first appear.

    ``contents`` are what makes rows equal: the rows themselves, or those of a kernel matrix. None: no two are.
    """
    if contents is None:
        return task
    group = same_rows(contents, task.keys, task.codes)
    if group is None:
        return task
    _, first = np.unique(group, return_index=True)
    return replace(task.take(first), counts=np.bincount(group, weights=task.counts))


def same_rows(X: Any, keys: Array, codes: Array | None = None) -> Array | None:
    """A number for each row, the same for equal rows (of one class), in the order in which they first appear; None if
    all rows differ. ``keys`` are those of `row_keys`."""
    ordered = np.sort(keys)
    if not (ordered[1:] == ordered[:-1]).any():
        return None
    codes = np.zeros(len(keys), dtype=np.intp) if codes is None else codes
    order = np.lexsort((codes, keys))  # stable: copies stay in the order in which they come
    again = np.append(False, (np.diff(keys[order]) == 0) & (np.diff(codes[order]) == 0))
    if not again.any():
        return None
    copies = np.flatnonzero(again)
    for some in np.array_split(copies, 1 + len(copies) * X.shape[1] // (16 * BLOCK)):
        a, b = X[order[some]], X[order[some - 1]]
        if (a != b).nnz if sp.issparse(X) else (a != b).any():  # two rows share a key: once in 10^19 / n^2 data sets
            return _slowly_same_rows(X, codes)
    label = np.empty(len(keys), dtype=np.intp)
    label[order] = np.cumsum(~again) - 1
    first = np.full(label.max() + 1, len(keys))
    np.minimum.at(first, label, np.arange(len(keys)))
    return np.argsort(np.argsort(first))[label]


def _slowly_same_rows(X: Any, codes: Array) -> Array:
    rows = X.toarray() if sp.issparse(X) else X
    seen: dict[bytes, int] = {}
    keys = (np.append(row + 0.0, code).tobytes() for row, code in zip(rows, codes, strict=True))
    return np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.intp)


def row_numbers(X: Any) -> Array:
    """A number for each row, the same for equal rows, in the order in which they first appear."""
    found = same_rows(X, row_keys(X))
    return np.arange(X.shape[0]) if found is None else found


def row_keys(X: Any) -> Array:
    """A 64-bit number for each row that depends on its contents alone: the same for float32, float64 and sparse."""
    constants = _few_constants()[: X.shape[1]] if X.shape[1] <= FEW_COLUMNS else _constants(X.shape[1])
    keys = np.empty(X.shape[0], dtype=np.uint64)
    for rows in _row_blocks(X):
        block = X[rows]
        if sp.issparse(block):
            sums = np.append(
                np.uint64(0), np.cumsum(_scrambled(block.data) * constants[block.indices], dtype=np.uint64)
            )
            keys[rows] = sums[block.indptr[1:]] - sums[block.indptr[:-1]]
        else:
            keys[rows] = (_scrambled(block) * constants).sum(axis=1, dtype=np.uint64)
    return _mixed(keys)


def _constants(count: int) -> Array:
    """An odd number for each column; the first ones are the same for any count."""
    numbers = np.random.default_rng(20).integers(1 << 63, size=count, dtype=np.uint64)
    return numbers * np.uint64(2) + np.uint64(1)


@lru_cache(maxsize=1)
def _few_constants() -> Array:
    return _constants(FEW_COLUMNS)


def _row_blocks(X: Any) -> Iterator[slice]:
    rows = max(1, BLOCK // max(1, X.shape[1]))
    return (slice(i, i + rows) for i in range(0, X.shape[0], rows))


def _scrambled(values: Array) -> Array:
    """The bits of floats, well mixed; 0 stays 0, and -0 is 0."""
    return _mixed(np.add(values, 0.0, dtype=np.float64, order="C").view(np.uint64))


def _mixed(bits: Array) -> Array:
    mixed = bits >> np.uint64(29)
    mixed ^= bits
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    return mixed
