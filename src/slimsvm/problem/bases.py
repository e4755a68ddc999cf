"""Bases: where the vectors of a small classifier come from.

A basis chooses training rows (`Choice.rows` then holds their numbers), learns vectors, or holds given ones. It calls
methods of the `Candidates`, which do the computation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp

from ..linalg.array_api import is_array_api, to_numpy
from ..linalg.arrays import Array
from .formulation import Part, lacking, named

__all__ = [
    "ALL",
    "AllRows",
    "Basis",
    "Candidates",
    "Choice",
    "Cholesky",
    "Forward",
    "Given",
    "Inputs",
    "KMeans",
    "Learned",
    "Random",
    "dense",
    "resolve",
]

# For ``Learned(rows="auto")``: rows times vectors, and the smallest and largest number of rows.
AUTO_WORK, AUTO_ROWS = 10_000_000, (100_000, 320_000)
MAX_LEARNING_FEATURES = 1 << 27  # features of the rows that vectors are learned on: half a gigabyte
INDEPENDENCE = 1e-10  # a row nearer to the span of others (squared, relative to k(x, x)) is a duplicate


@dataclass(frozen=True)
class Choice:
    """The chosen vectors, their row numbers in the user's data (None if they are no training rows), the kernel if its
    scales were learned too, and the result of learning."""

    vectors: Any
    rows: Array | None = None
    kernel: Any = None
    learned: Any = None


class Candidates(Protocol):
    """Training rows with methods that choose or learn vectors for all outputs; see `slimsvm.basis.selection`."""

    @property
    def kernel(self) -> Any:
        """The kernel."""

    @property
    def X(self) -> Any:
        """The rows."""

    def sample(self, most: int) -> Any:
        """The candidates restricted to a sample of at most ``most`` rows, stratified by class."""

    def choice(self, rows: Array) -> Choice:
        """The rows of these numbers as vectors."""

    def at_random(self) -> Array:
        """The numbers of all rows in random order."""

    def independent(self, eta: float, order: Array | None = None, most: int | None = None) -> Array:
        """Choose, in order, each row whose squared distance to the span of those chosen before is above ``eta``
        max k(x, x)."""

    def pivoted(self, eta: float, most: int) -> Array:
        """Choose rows one by one, each the farthest from the span of those before, until no squared distance is above
        ``eta`` max k(x, x)."""

    def forward(self, count: int, candidates: int | None) -> Array:
        """Choose rows one by one, each the one among ``candidates`` random rows that decreases the objective most."""

    def centres(self, count: int, max_iter: int) -> Array:
        """k-means centres within each class."""

    def learned(self, start: Basis, count: int, iterations: Any, smoothing: float, overwrite_x: bool = False) -> Choice:
        """Move vectors by gradient steps from ``start`` to decrease the objective of the best model over them.
        ``overwrite_x``: the rows are a temporary sample and may be overwritten."""


class Basis(Protocol):
    """A way to choose vectors."""

    keeps_rows: ClassVar[bool]  # whether the vectors are training rows
    learns: ClassVar[bool]  # whether the vectors are learned by gradient steps

    def choose(self, rows: Candidates, count: int) -> Choice:
        """Choose at most ``count`` vectors."""


@dataclass(frozen=True)
class AllRows(Part):
    """Every distinct row."""

    keeps_rows: ClassVar[bool] = True
    learns: ClassVar[bool] = False

    def choose(self, rows: Candidates, count: int) -> Choice:
        return rows.choice(rows.independent(INDEPENDENCE))


@dataclass(frozen=True)
class Random(Part):
    """Rows drawn at random, without duplicates; a row of weight 2 is as likely as two rows."""

    keeps_rows: ClassVar[bool] = True
    learns: ClassVar[bool] = False

    def choose(self, rows: Candidates, count: int) -> Choice:
        return rows.choice(rows.independent(INDEPENDENCE, rows.at_random(), count))


@dataclass(frozen=True)
class Cholesky(Part):
    """Rows that are linearly independent in the kernel's feature space, by incomplete Cholesky factorisation.

    Each row's squared distance to the span of those chosen before is above ``eta`` times the largest k(x, x).
    ``selection="order"`` goes through the rows in order; ``"pivoted"`` takes the farthest row first and needs fewer
    rows for the same eta.
    """

    eta: float = 1e-3
    selection: str = "order"
    keeps_rows: ClassVar[bool] = True
    learns: ClassVar[bool] = False

    def choose(self, rows: Candidates, count: int) -> Choice:
        eta = max(self.eta, INDEPENDENCE)
        pivoted = self.selection == "pivoted"
        return rows.choice(rows.pivoted(eta, count) if pivoted else rows.independent(eta, most=count))


@dataclass(frozen=True)
class Forward(Part):
    """Rows chosen one by one, each to decrease the objective most (Keerthi, Chapelle and DeCoste)."""

    candidates: int | None = 59
    most_rows: int = 20000
    keeps_rows: ClassVar[bool] = True
    learns: ClassVar[bool] = False

    def choose(self, rows: Candidates, count: int) -> Choice:
        some = rows.sample(self.most_rows)
        return some.choice(some.forward(count, self.candidates))


@dataclass(frozen=True)
class KMeans(Part):
    """Centres of clusters within each class."""

    most_rows: int = 10000
    max_iter: int = 15
    keeps_rows: ClassVar[bool] = False
    learns: ClassVar[bool] = False

    def choose(self, rows: Candidates, count: int) -> Choice:
        return Choice(rows.sample(self.most_rows).centres(count, self.max_iter))


@dataclass(frozen=True, eq=False)
class Given(Part):
    """The user's own vectors."""

    vectors: Any = None
    keeps_rows: ClassVar[bool] = False
    learns: ClassVar[bool] = False

    def choose(self, rows: Candidates, count: int) -> Choice:
        return Choice(self.vectors)


@dataclass(frozen=True)
class Inputs(Part):
    """One vector along each input: with the linear kernel, the inputs themselves are the features."""

    keeps_rows: ClassVar[bool] = False
    learns: ClassVar[bool] = False

    def choose(self, rows: Candidates, count: int) -> Choice:
        return Choice(np.eye(rows.X.shape[1]))


@dataclass(frozen=True, eq=False)
class Learned(Part):
    """Vectors moved by gradients, together with the coefficients over them (Wu, Schoelkopf and Bakir).

    Parameters
    ----------
    init : {"kmeans", "forward", "random", "cholesky"}, array or basis object, default="kmeans"
        Where the vectors start. With learned scales, and for regression, learning also starts from random rows (for
        regression from rows far from each other, too) and keeps the start with the lowest objective, unless ``init``
        is an array.
    iterations : "auto" or int, default="auto"
        The maximal number of iterations on the same rows. "auto": 100; 200 where scales are learned too, and for
        regression.
    rows : "auto" or int, default="auto"
        Vectors are learned on at most this many rows, drawn from each class in proportion; the coefficients
        are then fitted to all rows. Most of the iterations use a part of these rows, the last ones all of them.
        "auto": 10 million for all vectors together, but at least 100000 rows and at most 320000; fewer where
        vectors are so many that their features would take much memory.
    smoothing : float, default=0.5
        With ``slack="l1"``, vectors are learned for a hinge whose corner is rounded over this width; the
        coefficients are then fitted with the hinge itself. 0 learns with the hinge itself, as in the paper: much
        slower, not better.
    """

    init: Any = "kmeans"
    iterations: int | str = "auto"
    rows: int | str = "auto"
    smoothing: float = 0.5
    keeps_rows: ClassVar[bool] = False
    learns: ClassVar[bool] = True

    def choose(self, rows: Candidates, count: int) -> Choice:
        start = resolve(self.init, "init")
        if start.learns:
            raise ValueError(f"init={self.init!r}: learned vectors must start somewhere; use 'kmeans' or 'forward'")
        some = rows.sample(self.most_rows(count))  # a copy of its rows
        return some.learned(start, count, self.iterations, self.smoothing, overwrite_x=True)

    def most_rows(self, count: int) -> int:
        """The maximal number of rows on which ``count`` vectors are learned."""
        if not isinstance(self.rows, str):
            return int(self.rows)
        wanted = int(np.clip(AUTO_WORK // count, *AUTO_ROWS))
        return max(5000, min(wanted, MAX_LEARNING_FEATURES // count))


ALL: tuple[type, ...] = (AllRows, Random, Cholesky, Forward, KMeans, Given, Inputs, Learned)

_BY_NAME: dict[str, Any] = {
    "learned": Learned,
    "random": Random,
    "cholesky": lambda: Cholesky(INDEPENDENCE, "pivoted"),
    "forward": Forward,
    "kmeans": KMeans,
}


def resolve(basis: Any, parameter: str = "basis") -> Any:
    """The basis for a name, an array of vectors or an object."""
    if is_array(basis):
        return Given(to_numpy(basis))
    kind = named(basis, _BY_NAME)
    if kind is not None:
        return kind()
    if not isinstance(basis, type) and callable(getattr(basis, "choose", None)):
        lacks = lacking(basis, ("keeps_rows", "learns"))
        if lacks:
            raise ValueError(f"{parameter}={basis!r} must say {' and '.join(lacks)}: a class attribute, True or False")
        return basis
    names = [name for name in _BY_NAME if name != "learned" or parameter == "basis"]
    raise ValueError(
        f"{parameter}={basis!r} is not known; use one of {names}, an array of vectors or an object of slimsvm.bases"
    )


def is_array(basis: Any) -> bool:
    """Whether the basis is an array of vectors, not a name or a basis object."""
    if isinstance(basis, np.ndarray) or sp.issparse(basis) or is_array_api(basis):  # arrays have a method choose, too
        return True
    return not isinstance(basis, (str, type)) and lacking(basis, ("choose", "__len__")) == ["choose"]


def dense(vectors: Any) -> Array:
    """Vectors as a float64 array."""
    return np.asarray(vectors.toarray() if sp.issparse(vectors) else vectors, dtype=np.float64)
