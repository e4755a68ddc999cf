"""Learned vectors: the objective of the best classifier over Z, minimised over Z itself (Wu, Schoelkopf and Bakir).

    W(Z) = min_{beta,b}  1/2 beta'(k(Z, Z) + epsilon) beta + sum_i loss(k(x_i, Z) beta + b, y_i)

summed over the binary problems that share the vectors. At the minimum over (beta, b), with signed duals A,

    dW = -sum_o A_o' dk(X, Z) beta_o + 1/2 sum_o beta_o' dk(Z, Z) beta_o,

so the gradient needs the kernel's derivative only in weighted sums (`pullback`), never a tensor of them. One scale
for each input can be learned along: its derivative comes from the same sums over scaled rows and vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..linalg.arrays import Array, is_remote, to_memory
from ..linalg.lbfgs import lbfgs
from ..linalg.matrix import dot
from ..problem.bases import dense
from ..problem.kernels import Scaled
from ..problem.losses import squared
from ..problem.regularizers import KernelNorm, Regularizer
from ..rows.labels import Labels
from ..rows.memory import CoreFeatures, DenseFeatures, row_blocks
from ..rows.protocol import decision
from ..solvers.primal.interior import solve_interior
from ..solvers.primal.newton import newton
from ..solvers.primal.passes import Equations, Pull
from .selection import forward_rows

# With more rows than this, learning computes in float32.
LEARNING_FLOAT64_ROWS = 2000
MAX_DENSE_ENTRIES = (
    1 << 22
)  # entries up to which sparse rows are learned from as dense ones: much faster, the same vectors
MAX_REVIVAL_ROWS = (
    20_000  # that say which vectors are dead, and where they gain most; the last word on more is in float32
)
OVERFLOW_OBJECTIVE = 1e30  # as the objective of vectors so far out that numbers overflow
MAX_LOG_SCALE_CHANGE = 6.0  # from a scale of 1, either way: beyond, a line search may overflow
# An input whose scale is next to zero has no gradient left, neither in its scale nor in the vectors. In the first
# iterations, scales therefore stay above exp(-0.5) of their start: vectors that lie where clusters are do not show yet
# what an input is good for, if it counts only together with others.
EARLY_ITERATIONS = 30
EARLY_MAX_LOG_DECREASE = 0.5
# (initial scale, max log decrease from 1 in early iterations) of even and odd starts. Odd ones have a narrower kernel
# and free scales: a data set on which one kind ends in a bad local minimum is seldom one on which the other does.
INITIAL_SCALES = ((1.0, EARLY_MAX_LOG_DECREASE), (2.0, MAX_LOG_SCALE_CHANGE))
HALVING_FRACTIONS = (
    0.3,
    0.5,
)  # fractions of max_iter at which the worse half of the starts is dropped (successive halving)

Callback = Callable[[int, float], None]
ThreadCount = Callable[[], int]  # that may be used now


@dataclass(frozen=True)
class LearnedVectors:
    """Vectors, the scales of the inputs (None if they were not learned), and the coefficients over them
    as they were while learning (outputs x vectors), biases. ``value`` is W for each unit of cost.

    ``remaining_gain`` estimates the relative decrease of W that further iterations would give: the decrease in the last
    quarter of the iterations if max_iter ended them, else 0.
    """

    vectors: Array
    scales: Array | None
    coef: Array
    bias: Array
    value: float
    n_iter: int
    remaining_gain: float = 0.0


class Objective:
    """W(Z) and its gradient, divided by the sum of the costs, in units of the kernel's width.

    Variables are Z / unit, and the logarithms of the scales if they are learned. The last solution is kept: the
    next one, for slightly different vectors, starts there.
    """

    def __init__(
        self,
        kernel: Any,
        X: Any,
        labels: Labels,
        loss: Any,
        regularizer: Regularizer,
        count: int,
        scaled: bool,
        threads: int = 1,
        free: ThreadCount | None = None,
    ):
        self.kernel, self.X, self.labels = kernel, X, labels
        self.loss, self.regularizer, self.count, self.scaled = loss, regularizer, count, scaled
        self.threads, self.free = threads, free
        self.unit = kernel.length(X)
        self.size = X.shape[1]
        self.total = float(labels.totals.sum())
        self.machine: Array | None = None  # weights, as a solver has them

    def pack(self, Z: Array, scales: Array | None) -> Array:
        """Vectors and scales as one vector of variables."""
        parts = [np.ravel(Z / self.unit)]
        if self.scaled:
            parts.append(np.log(np.ones(self.size) if scales is None else scales))
        return np.concatenate(parts)

    def unpack(self, theta: Array) -> tuple[Array, Array | None]:
        """Vectors and scales."""
        Z = theta[: self.count * self.size].reshape(self.count, self.size) * self.unit
        return Z, np.exp(theta[self.count * self.size :]) if self.scaled else None

    def bounds(self, fall: float = MAX_LOG_SCALE_CHANGE) -> tuple[Array, Array] | None:
        """None for the vectors; the logarithms of the scales may fall by ``fall``."""
        if not self.scaled:
            return None
        free = np.full(self.count * self.size, np.inf)
        highest = np.full(self.size, MAX_LOG_SCALE_CHANGE)
        return np.append(-free, np.full(self.size, -fall)), np.append(free, highest)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient; a step so long that numbers overflow is no good."""
        value, gradient = self.at(theta)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return OVERFLOW_OBJECTIVE, np.zeros_like(theta)
        return value, gradient

    def at(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient, as far as numbers go."""
        Z, scales = self.unpack(theta)
        stretched = Z if scales is None else Z * scales
        value, beta, Kz, G, inner = self.pulled(Z, scales, stretched)
        if self.regularizer.follows_kernel:
            G = G + self.kernel.pullback(stretched, stretched, dot(beta, beta.T), Kz)
        parts = [np.ravel(G if scales is None else G * scales) * self.unit]
        if scales is not None:
            parts.append(inner + np.einsum("ij,ij->j", stretched, G))
        return value / self.total, np.concatenate(parts) / self.total

    def pulled(self, Z: Array, scales: Array | None, stretched: Array) -> tuple[float, Array, Array, Array, Array]:
        """W, the coefficients (vectors x outputs), the matrix of the scaled vectors, the rows' share of the gradient
        with respect to these, and of that with respect to the logarithms of the scales."""
        Kz = self.kernel(stretched, stretched)
        kernel = self.kernel if scales is None else Scaled(self.kernel, scales)
        X = self.X if scales is None else kernel.apply(self.X)
        K = self.kernel(X, stretched, out=np.empty((X.shape[0], len(Z)), dtype=X.dtype), threads=self.threads)
        value, A, beta = self.solve(K, Kz)
        used = np.flatnonzero(A.any(axis=1))
        Kx, Xu = K[used], X[used]
        W = -dot(A[used].astype(K.dtype, copy=False), beta.T.astype(K.dtype, copy=False), self.threads)
        G = self.kernel.pullback(Xu, stretched, W, Kx)
        inner = np.zeros(self.size)
        if scales is not None:
            Gx = self.kernel.pullback(stretched, Xu, W.T, Kx.T)
            product = Xu.multiply(Gx).sum(axis=0) if sp.issparse(Xu) else np.einsum("ij,ij->j", Xu, Gx)
            inner = np.asarray(product).ravel()
        return value, beta, Kz, G, inner

    def machines(self, Z: Array, scales: Array | None) -> tuple[float, Array, Array]:
        """W for each unit of cost, the coefficients (vectors x outputs) and biases, in float64."""
        kernel = self.kernel if scales is None else Scaled(self.kernel, scales)
        value, _, beta = self.solve(kernel(self.X, Z, threads=self.threads), kernel(Z, Z))
        assert self.machine is not None
        return value / self.total, beta, self.machine[:, -1].copy()

    def coefficients(self, Z: Array, scales: Array | None) -> Array:
        """Those of the machines, roughly."""
        return self.machines(Z, scales)[1]

    def solve(self, K: Array, Kz: Array) -> tuple[float, Array, Array]:
        """W, the signed duals and the coefficients (vectors x outputs) at fixed vectors."""
        T = self.regularizer.whitening(Kz)
        rows = DenseFeatures(dot(K, T.astype(K.dtype, copy=False), self.threads), self.labels)
        Y, C = self.labels.of(slice(None))
        if not self.loss.smooth:
            V, known, _ = solve_interior(rows, self.loss, np.arange(self.labels.outputs), 1e-9, 100)
            A = np.zeros(C.shape)
            for o, (members, duals) in enumerate(known):
                A[members, o] = duals
            F = decision(rows.P, V)
        else:
            V = newton(rows, self.loss, self.start(T.shape[1]), tol=1e-7, max_iter=50).V
            F = decision(rows.P, V)
            A = self.loss.duals(F, Y, C)
        self.machine = V
        value = 0.5 * float((V[:, :-1] ** 2).sum()) + float(self.loss.value(F, Y, C).sum())
        return value, A, dot(T, V[:, :-1].T)

    def start(self, features: int) -> Array | None:
        """The last weights, if there are as many."""
        return self.machine if self.machine is not None and self.machine.shape[1] == features + 1 else None

    def dead(self, Z: Array, scales: Array | None) -> Array:
        """Vectors far from every row, or with next to no coefficient in any output."""
        kernel = self.kernel if scales is None else Scaled(self.kernel, scales)
        some = self.X[:: -(-self.X.shape[0] // MAX_REVIVAL_ROWS)]
        K = kernel(some, Z, out=np.empty((some.shape[0], len(Z)), dtype=some.dtype), threads=self.threads)
        most = np.maximum(K.max(axis=0), -K.min(axis=0))
        sizes = np.maximum(kernel(Z, Z).diagonal(), np.finfo(float).tiny)
        say = np.abs(self.coefficients(Z, scales)).max(axis=1)
        return np.flatnonzero((most < 1e-3 * np.sqrt(sizes)) | (say < 1e-6 * say.max()))

    def best_rows(self, kernel: Any, count: int, given: Array, rng: np.random.Generator) -> Array:
        """Rows that gain most beside the given vectors."""
        loss = self.loss if self.loss.smooth else squared(self.loss)
        step = -(-self.X.shape[0] // MAX_REVIVAL_ROWS)
        X, labels = self.X[::step], self.labels.take(slice(None, None, step), step)
        return step * forward_rows(kernel, X, labels, count, rng, given, loss=loss, threads=self.threads)


class FusedObjective(Objective):
    """The same in passes of the core: for its kernels with a derivative, and piecewise quadratic losses."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        there = is_remote(self.X)
        home = self.X.looked if there else partial(CoreFeatures, self.X, threads=self.threads)
        self.rows: Any = home(self.labels, dtype=self.X.dtype, keep=2.0**62)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        if self.free is not None:
            self.rows.use(self.free())
        return super().__call__(theta)

    @staticmethod
    def serves(kernel: Any, loss: Any) -> bool:
        """Does the core have all that it takes?"""
        return kernel.core_slopes and loss.smooth and getattr(loss, "pieces", None) is not None

    def solved(self, rows: Any, Z: Array, scales: Array | None) -> tuple[Array, Array, Array]:
        """Weights, the coefficients (vectors x outputs) and the vectors' matrix at fixed vectors."""
        kernel = self.kernel if scales is None else Scaled(self.kernel, scales)
        added = getattr(self.regularizer, "on_diagonal", None)
        Kz = None if added is None else rows.look_whitened(kernel, Z, added)
        if Kz is None:
            Kz = kernel(Z, Z)
            rows.look(kernel, Z, self.regularizer.whitening(Kz))
        assert rows.seen is not None
        T = rows.seen[2]
        self.machine = newton(rows, self.loss, self.start(T.shape[1]), tol=1e-7, max_iter=50).V
        return self.machine, np.ascontiguousarray(dot(T, self.machine[:, :-1].T)), Kz

    def pulled(self, Z: Array, scales: Array | None, stretched: Array) -> tuple[float, Array, Array, Array, Array]:
        V, beta, Kz = self.solved(self.rows, Z, scales)
        losses, products, squares = self.rows.total(Pull(self.loss), V, beta, scales is not None)
        value = 0.5 * float((V[:, :-1] ** 2).sum()) + float(losses.sum())
        return value, beta, Kz, *self.kernel.gradients(products, squares, stretched)

    def machines(self, Z: Array, scales: Array | None) -> tuple[float, Array, Array]:
        # Vectors that are nearly dependent have features that float32 knows little of.
        rows = self.rows
        if rows.dtype != np.float64 and self.X.shape[0] <= MAX_REVIVAL_ROWS:
            X = to_memory(self.X)
            rows = CoreFeatures(X, self.labels, np.float64, self.threads)
        V, beta, _ = self.solved(rows, Z, scales)
        value, *_ = rows.total(Equations(self.loss), np.arange(len(V)), V)
        return (0.5 * float((V[:, :-1] ** 2).sum()) + float(value.sum())) / self.total, beta, V[:, -1].copy()

    def coefficients(self, Z: Array, scales: Array | None) -> Array:
        return self.solved(self.rows, Z, scales)[1]


def objective_for(kernel: Any, loss: Any) -> type[Objective]:
    """The quickest objective that serves."""
    return FusedObjective if FusedObjective.serves(kernel, loss) else Objective


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # vectors may be tried where numbers overflow
def learn(
    kernel: Any,
    X: Any,
    labels: Labels,
    start: Array | LearnedVectors | list[Array],
    loss: Any,
    rng: np.random.Generator,
    learn_scales: bool = False,
    max_iter: int = 100,
    regularizer: Regularizer | None = None,
    threads: int = 1,
    watch: Callback | None = None,
    free: ThreadCount | None = None,
    overwrite_x: bool = False,
    search_vectors: Sequence[LearnedVectors] = (),
) -> LearnedVectors:
    """Move vectors (and scales) from their start to a local minimum of W by L-BFGS.

    ``overwrite_x``: X may be changed. Several starts with the same number of vectors run for some iterations each, and
    the one with the lowest objective continues. ``search_vectors``, learned by the search on parts of these rows, are
    further candidates.

    A vector that contributes nothing has no gradient and would stay so: it is put where it gains most, and
    learning goes on.
    """
    if isinstance(start, LearnedVectors):
        runs = [start]
    else:
        starts = start if isinstance(start, list) else [start]
        runs = [LearnedVectors(Z, None, np.empty((0, len(Z))), np.empty(0), np.inf, 0) for Z in starts]
    if is_remote(X) and not FusedObjective.serves(kernel, loss):
        X = X[:]  # on a device; such kernels and losses have what learning needs in memory only
    centre, X = centre_rows(kernel, X, LEARNING_FLOAT64_ROWS, overwrite_x)
    runs = [replace(run, vectors=jitter_duplicates(run.vectors - centre, kernel, X, rng), n_iter=0) for run in runs]
    count = len(runs[0].vectors)
    regularizer = (KernelNorm() if regularizer is None else regularizer).among(kernel, X, True)
    objective = objective_for(kernel, loss)(kernel, X, labels, loss, regularizer, count, learn_scales, threads, free)

    def continued(run: LearnedVectors, until: int, early: tuple[float, float] = INITIAL_SCALES[0]) -> LearnedVectors:
        done = run.n_iter
        later = None if watch is None else lambda iteration, value: watch(done + iteration, value)
        found = minimize(objective, run.vectors, run.scales, rng, until - done, later, early)
        return replace(found, n_iter=done + found.n_iter)

    for part in HALVING_FRACTIONS:
        if len(runs) > 1:
            better = len(runs) // 2
            runs = [continued(run, int(part * max_iter), INITIAL_SCALES[k % 2]) for k, run in enumerate(runs)]
            for other in search_vectors:
                if len(other.vectors) == count:
                    value = minimize(objective, other.vectors - centre, other.scales, rng, 0).value
                    runs.append(replace(other, vectors=other.vectors - centre, value=value, n_iter=runs[0].n_iter))
            runs, search_vectors = sorted(runs, key=lambda run: run.value)[:better], ()
    found = continued(runs[0], max_iter)
    return replace(found, vectors=found.vectors + centre)


def minimize(
    objective: Objective,
    Z: Array,
    scales: Array | None,
    rng: np.random.Generator,
    max_iter: int,
    watch: Callback | None = None,
    early: tuple[float, float] = INITIAL_SCALES[0],
) -> LearnedVectors:
    """A local minimum of the objective by L-BFGS; dead vectors come to life again. ``early``: where new scales begin,
    and how far their logarithms may fall in the first iterations."""
    progress = _Progress(watch)
    limited = False
    objective.machine = None
    first = min(EARLY_ITERATIONS, max_iter // 2) if objective.scaled and scales is None else 0
    if first:
        begin, fall = early
        scales = np.full(objective.size, begin)
        theta, bounds = objective.pack(_revived(objective, Z, scales, rng), scales), objective.bounds(fall)
        Z, scales = objective.unpack(lbfgs(objective, theta, bounds, first, 3 * first, watch=progress).x)
    for _ in range(3 if max_iter else 0):
        Z = _revived(objective, Z, scales, rng)
        left = max_iter - progress.done
        found = lbfgs(
            objective, objective.pack(Z, scales), objective.bounds(), left, max_values=3 * max_iter, watch=progress
        )
        limited = found.limited
        Z, scales = objective.unpack(found.x)
        if progress.done >= max_iter or not len(_dead(objective, Z, scales)):
            break
    value, coef, bias = objective.machines(Z, scales)
    remaining_gain = progress.lately() if limited else 0.0
    return LearnedVectors(Z, scales, coef.T, bias, value, progress.done, remaining_gain)


class _Progress:
    """Counts iterations, and remembers how the objective fell."""

    def __init__(self, watch: Callback | None):
        self.watch = watch
        self.values: list[float] = []

    @property
    def done(self) -> int:
        return len(self.values)

    def __call__(self, value: float) -> None:
        self.values.append(value)
        if self.watch is not None:
            self.watch(self.done, self.values[-1])

    def lately(self) -> float:
        """The relative gain of the last quarter of the iterations."""
        if self.done < 2:
            return np.inf
        before = self.values[-1 - max(1, self.done // 4)]
        return (before - self.values[-1]) / max(abs(self.values[-1]), np.finfo(float).tiny)


def centre_rows(kernel: Any, X: Any, double_rows: int, overwrite_x: bool = False) -> tuple[Any, Any]:
    """A mean, and rows without it where the kernel depends on differences only: these then lose no digits.

    More rows than ``double_rows`` are in float32. ``overwrite_x``: in the place of X, if they have its type.
    """
    dtype = np.float32 if X.shape[0] > double_rows else np.float64
    if is_remote(X):
        return X.centred(kernel, dtype)
    if sp.issparse(X) and X.shape[0] * X.shape[1] <= MAX_DENSE_ENTRIES:
        X = X.toarray()
    if sp.issparse(X) or not kernel.translation_invariant:
        return 0.0, X.astype(dtype, copy=False)
    centre = X.mean(axis=0, dtype=np.float64)
    around = X if overwrite_x and X.dtype == dtype and X.flags.writeable else np.empty(X.shape, dtype=dtype)
    for some in row_blocks(X.shape[0], 8 * X.shape[1]):
        np.subtract(X[some], centre, out=around[some], dtype=np.float64, casting="same_kind")
    return centre, around


def jitter_duplicates(Z: Array, kernel: Any, X: Any, rng: np.random.Generator) -> Array:
    """Vectors of which no two are equal: equal ones would always move together."""
    Z = np.array(Z, dtype=np.float64)
    K = kernel(Z, Z)
    size = K.diagonal()
    with np.errstate(invalid="ignore", divide="ignore"):
        twin = np.tril(size[:, None] + size - 2 * K <= 1e-12 * (size[:, None] + size), -1).any(axis=1)
    if twin.any():
        X = X[:: -(-X.shape[0] // MAX_REVIVAL_ROWS)] if is_remote(X) else X
        spread = np.sqrt(np.maximum(np.asarray((X.power(2) if sp.issparse(X) else X**2).mean(axis=0)).ravel(), 0))
        Z[twin] += 0.1 * np.where(spread > 0, spread, 0.0) * rng.standard_normal((int(twin.sum()), Z.shape[1]))
    return Z


def _dead(objective: Objective, Z: Array, scales: Array | None) -> Array:
    return objective.dead(Z, scales) if len(Z) > 1 else np.empty(0, dtype=np.int64)


def _revived(objective: Objective, Z: Array, scales: Array | None, rng: np.random.Generator) -> Array:
    """Vectors with the dead ones replaced by rows that gain most."""
    dead = _dead(objective, Z, scales)
    if not len(dead):
        return Z
    kernel: Any = objective.kernel if scales is None else Scaled(objective.kernel, scales)
    rows = objective.best_rows(kernel, len(dead), np.delete(Z, dead, axis=0), rng)
    Z = Z.copy()
    Z[dead[: len(rows)]] = dense(objective.X[rows])
    objective.machine = None
    return Z
