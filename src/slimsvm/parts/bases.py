"""Bases: the vectors over which a small machine is expanded.

A basis chooses among training rows (then `Choice.rows` says which), makes vectors of its own, or is given. Learned
vectors start from one of these (see `learning`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from sklearn.cluster import KMeans as Lloyd

from ..formulation import Array, Kernel, Part
from ..primal.newton import newton
from ..primal.passes import Stored
from .losses import SmoothLoss, SquaredHinge
from .regularizers import inverse_root

__all__ = [
    "ALL",
    "AllRows",
    "Basis",
    "Choice",
    "Cholesky",
    "Forward",
    "Given",
    "Inputs",
    "KMeans",
    "Problem",
    "Random",
    "even_shares",
    "forward_rows",
    "independent_rows",
    "pivoted_factor",
    "pivoted_rows",
    "resolve",
    "row_numbers",
    "stratified",
]

# Rows nearer to the span of the vectors than this (relative to k(x, x)) count as duplicates.
SAME = 1e-10


@dataclass(frozen=True)
class Problem:
    """What the vectors are for: rows, their class numbers, and the machines (outputs) that will share the vectors."""

    kernel: Kernel
    X: Any
    codes: Array  # class number of each row
    Y: Array  # rows x outputs: +-1, or 0 where a row takes no part
    C: Array  # rows x outputs: cost, 0 where a row takes no part
    threads: int = 1

    def take(self, rows: Array) -> Problem:
        """The same machines over some of the rows."""
        return Problem(self.kernel, self.X[rows], self.codes[rows], self.Y[rows], self.C[rows], self.threads)


@dataclass(frozen=True)
class Choice:
    """Vectors, and which rows they are (None if they are not training rows)."""

    vectors: Any
    rows: Array | None = None


class Basis(Protocol):
    """A way to choose vectors."""

    keeps_rows: ClassVar[bool]  # are the vectors training rows?

    def choose(self, problem: Problem, count: int, rng: np.random.Generator) -> Choice:
        """At most ``count`` vectors."""


# --- Cholesky factorisations: rows that are independent of each other ------------------------------


def independent_rows(kernel: Kernel, X: Any, eta: float, order: Array | None = None, most: int | None = None) -> Array:
    """Rows, met in order, whose squared distance to the span of those kept before is above ``eta``.

    A block of rows is compared with all rows kept so far at once (one product, one triangular solve); what is left
    of it is eliminated within the block. The rows are those of the row by row definition.
    """
    order = np.arange(X.shape[0]) if order is None else order
    most = len(order) if most is None else most
    kept = np.empty(0, dtype=np.int64)
    L = np.zeros((0, 0))
    for begin in range(0, len(order), 256):
        rows = order[begin : begin + 256]
        known = np.zeros((0, len(rows)))
        if len(kept):
            known = solve_triangular(L, kernel(X[kept], X[rows]), lower=True)
        rest = kernel.diagonal(X[rows]) - np.einsum("ij,ij->j", known, known)
        alive = np.flatnonzero(rest > eta)
        rows, known = rows[alive], known[:, alive]
        chosen, own = _eliminate(kernel(X[rows], X[rows]) - known.T @ known, rest[alive], eta, most - len(kept))
        if len(chosen):
            L = np.block([[L, np.zeros((len(kept), len(chosen)))], [known[:, chosen].T, own]])
            kept = np.append(kept, rows[chosen])
        if len(kept) >= most:
            break
    return kept


def _eliminate(residual: Array, rest: Array, eta: float, most: int) -> tuple[list[int], Array]:
    """Rows of one block to keep, and their part of the Cholesky factor."""
    columns = np.empty((min(most, len(rest)), len(rest)))
    chosen: list[int] = []
    for a in range(len(rest)):
        if rest[a] > eta and len(chosen) < most:
            k = len(chosen)
            columns[k] = (residual[a] - columns[:k, a] @ columns[:k]) / np.sqrt(rest[a])
            columns[k, a] = np.sqrt(rest[a])
            rest = rest - columns[k] ** 2
            chosen.append(a)
    return chosen, np.tril(columns[: len(chosen), chosen].T)


def pivoted_rows(kernel: Kernel, X: Any, eta: float, most: int, threads: int = 1) -> Array:
    """Rows chosen one by one, always the one farthest from the span of those before, until none is above ``eta``."""
    return pivoted_factor(kernel, X, eta, most, threads)[0]


def pivoted_factor(kernel: Kernel, X: Any, eta: float, most: int, threads: int = 1) -> tuple[Array, Array, Array]:
    """The rows of `pivoted_rows`, the factor G (rank x rows of X) with ``k(X, X) ~ G'G``, and the diagonal's rest."""
    rest = kernel.diagonal(X)
    G = np.empty((min(most, len(rest)), len(rest)))
    kept: list[int] = []
    while len(kept) < len(G):
        p = int(rest.argmax())
        if rest[p] <= eta:
            break
        k = len(kept)
        G[k] = (kernel(X, X[[p]], threads=threads)[:, 0] - G[:k, p] @ G[:k]) / np.sqrt(rest[p])
        rest = np.maximum(rest - G[k] ** 2, 0)
        rest[p] = 0
        kept.append(p)
    return np.array(kept, dtype=np.int64), G[: len(kept)], rest


# --- forward selection ---------------------------------------------------------------------------


def forward_rows(
    problem: Problem,
    count: int,
    rng: np.random.Generator,
    given: Any = None,
    pool: Array | None = None,
    candidates: int | None = 59,
    loss: SmoothLoss | None = None,
) -> Array:
    """Rows added one by one to the ``given`` vectors, each the best of some candidates drawn from the pool.

    A candidate's part outside the span of the vectors so far is one more feature; one Newton step along it alone
    gains ``g^2 / 2h``, summed over outputs: that is its score. The machine is solved again after each choice.
    """
    kernel, X, Y, C = problem.kernel, problem.X, problem.Y, problem.C
    loss = SquaredHinge() if loss is None else loss
    pool = np.arange(X.shape[0]) if pool is None else pool
    size = kernel.diagonal(X[pool])
    free = np.ones(len(pool), dtype=bool)
    few = X.shape[0] * len(pool) <= 1 << 22
    columns = kernel(X, X[pool], threads=problem.threads) if few else None
    P = np.empty((X.shape[0], count + (0 if given is None else given.shape[0])))
    m = 0
    if given is not None and given.shape[0]:
        T = inverse_root(kernel(given, given))
        m = T.shape[1]
        P[:, :m] = kernel(X, given, threads=problem.threads) @ T
    w, bias = np.zeros((m, Y.shape[1])), np.zeros(Y.shape[1])
    rows: list[int] = []
    while len(rows) < count:
        state = newton(Stored(P[:, :m]), Y, C, loss, (w, bias), tol=1e-4, max_iter=20)
        A, H = loss.duals(state.F, Y, C), loss.curvature(state.F, Y, C)
        drawn = np.flatnonzero(free)
        if candidates is not None and len(drawn) > candidates:
            drawn = np.sort(rng.choice(drawn, candidates, replace=False))
        known = P[pool[drawn], :m]
        rest = size[drawn] - np.einsum("ij,ij->i", known, known)
        apart = rest > SAME * size[drawn]
        free[drawn[~apart]] = False
        drawn, known, rest = drawn[apart], known[apart], rest[apart]
        if not len(drawn):
            if free.any():
                continue
            break
        K = kernel(X, X[pool[drawn]], threads=problem.threads) if columns is None else columns[:, drawn]
        Q = (K - P[:, :m] @ known.T) / np.sqrt(rest)
        score = ((Q.T @ A) ** 2 / (1 + (Q**2).T @ H)).sum(axis=1)
        best = int(score.argmax())
        P[:, m] = Q[:, best]
        m += 1
        w, bias = np.vstack([state.w, np.zeros((1, Y.shape[1]))]), state.bias
        free[drawn[best]] = False
        rows.append(int(pool[drawn[best]]))
    return np.array(rows, dtype=np.int64)


# --- the bases -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AllRows(Part):
    """Every distinct row."""

    keeps_rows: ClassVar[bool] = True

    def choose(self, problem: Problem, count: int, rng: np.random.Generator) -> Choice:
        return _rows(problem, independent_rows(problem.kernel, problem.X, _absolute(problem, SAME)))


@dataclass(frozen=True)
class Random(Part):
    """Rows drawn at random, without duplicates."""

    keeps_rows: ClassVar[bool] = True

    def choose(self, problem: Problem, count: int, rng: np.random.Generator) -> Choice:
        order = rng.permutation(problem.X.shape[0])
        return _rows(problem, independent_rows(problem.kernel, problem.X, _absolute(problem, SAME), order, count))


@dataclass(frozen=True)
class Cholesky(Part):
    """Rows that are independent in the kernel's space: their distance to the span of the others is above eta.

    ``eta`` is relative to the largest k(x, x). ``selection="order"`` takes rows as they come, ``"pivoted"`` the
    farthest first, which needs fewer of them for the same eta.
    """

    eta: float = 1e-3
    selection: str = "order"
    keeps_rows: ClassVar[bool] = True

    def choose(self, problem: Problem, count: int, rng: np.random.Generator) -> Choice:
        eta = _absolute(problem, max(self.eta, SAME))
        if self.selection == "pivoted":
            return _rows(problem, pivoted_rows(problem.kernel, problem.X, eta, count, problem.threads))
        return _rows(problem, independent_rows(problem.kernel, problem.X, eta, most=count))


@dataclass(frozen=True)
class Forward(Part):
    """Rows chosen one by one for what they gain in the objective (Keerthi, Chapelle and DeCoste)."""

    candidates: int = 59
    most_rows: int = 20000
    keeps_rows: ClassVar[bool] = True

    def choose(self, problem: Problem, count: int, rng: np.random.Generator) -> Choice:
        subset = stratified(problem.codes, self.most_rows, rng)
        rows = forward_rows(problem.take(subset), count, rng, candidates=self.candidates)
        return _rows(problem, subset[rows])


@dataclass(frozen=True)
class KMeans(Part):
    """Centres of clusters within each class."""

    most_rows: int = 10000
    max_iter: int = 15
    keeps_rows: ClassVar[bool] = False

    def choose(self, problem: Problem, count: int, rng: np.random.Generator) -> Choice:
        subset = stratified(problem.codes, self.most_rows, rng)
        codes = problem.codes[subset]
        classes = np.unique(codes)
        groups = [subset[codes == c] for c in classes] if count >= len(classes) else [subset]
        centres = [
            self._centres(problem.X[rows], problem.C[rows].max(axis=1), k, rng)
            for rows, k in zip(groups, even_shares([len(g) for g in groups], count), strict=True)
        ]
        return Choice(np.unique(np.vstack(centres), axis=0))

    def _centres(self, X: Any, weight: Array, count: int, rng: np.random.Generator) -> Array:
        distinct = _distinct(X)
        if len(distinct) <= count:
            return dense(X[distinct])
        lloyd = Lloyd(count, n_init=1, max_iter=self.max_iter, random_state=int(rng.integers(2**31)))
        return lloyd.fit(X, sample_weight=weight / weight.max()).cluster_centers_.astype(np.float64)


@dataclass(frozen=True)
class Given(Part):
    """The user's own vectors."""

    vectors: Any = field(default=None)
    keeps_rows: ClassVar[bool] = False

    def choose(self, problem: Problem, count: int, rng: np.random.Generator) -> Choice:
        return Choice(self.vectors)


@dataclass(frozen=True)
class Inputs(Part):
    """One vector along each input: with the linear kernel, the inputs themselves are the features."""

    keeps_rows: ClassVar[bool] = False

    def choose(self, problem: Problem, count: int, rng: np.random.Generator) -> Choice:
        return Choice(np.eye(problem.X.shape[1]))


ALL: tuple[type, ...] = (AllRows, Random, Cholesky, Forward, KMeans, Given, Inputs)

_BY_NAME: dict[str, Any] = {
    "random": Random,
    "cholesky": lambda: Cholesky(SAME, "pivoted"),
    "forward": Forward,
    "kmeans": KMeans,
}


def resolve(basis: Any, parameter: str = "basis", more: tuple[str, ...] = ()) -> Basis:
    """The basis for a name, an array of vectors or an object."""
    if isinstance(basis, str):
        if basis in _BY_NAME:
            return _BY_NAME[basis]()
    elif not isinstance(basis, type) and callable(getattr(basis, "choose", None)):
        return basis
    names = [*more, *sorted(_BY_NAME)]
    raise ValueError(
        f"{parameter}={basis!r} is not known; use one of {names}, an array of vectors or an object of slimsvm.bases"
    )


def stratified(codes: Array, most: int, rng: np.random.Generator) -> Array:
    """At most ``most`` rows, drawn from each class in proportion, at least one from each; in order."""
    if len(codes) <= most:
        return np.arange(len(codes))
    counts = np.bincount(codes)
    shares = np.maximum(np.minimum(counts, 1), (counts * (most / len(codes))).astype(int))
    chosen = [rng.choice(np.flatnonzero(codes == c), k, replace=False) for c, k in enumerate(shares) if k]
    return np.sort(np.concatenate(chosen))


def dense(vectors: Any) -> Array:
    """Vectors as a float64 array."""
    return np.asarray(vectors.toarray() if sp.issparse(vectors) else vectors, dtype=np.float64)


def _rows(problem: Problem, rows: Array) -> Choice:
    return Choice(problem.X[rows], rows)


def _absolute(problem: Problem, eta: float) -> float:
    return eta * float(problem.kernel.diagonal(problem.X).max())


def even_shares(sizes: list[int], count: int) -> list[int]:
    """``count`` split evenly over groups; what a group is too small for goes to the others."""
    shares = [0] * len(sizes)
    for _ in range(min(count, sum(sizes))):
        open_ = [g for g in range(len(sizes)) if shares[g] < sizes[g]]
        g = min(open_, key=lambda g: (shares[g], -sizes[g]))
        shares[g] += 1
    return shares


def _distinct(X: Any) -> Array:
    """Row numbers of the first of each set of equal rows."""
    return np.unique(row_numbers(X), return_index=True)[1]


def row_numbers(X: Any) -> Array:
    """A number for each row, the same for equal rows, in the order in which they first appear."""
    if sp.issparse(X):
        X = X.copy()
        X.eliminate_zeros()
        ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        keys = (X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in ends)
    else:
        keys = (row.tobytes() for row in X + X.dtype.type(0))  # -0.0 becomes 0.0
    seen: dict[bytes, int] = {}
    return np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.int64)
