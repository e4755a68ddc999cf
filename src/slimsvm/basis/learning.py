"""Learned vectors: the objective of the best classifier over Z, minimised over Z itself (Wu, Schoelkopf and Bakir).

    W(Z) = min_{beta,b}  1/2 beta'(k(Z, Z) + epsilon) beta + sum_i loss(k(x_i, Z) beta + b, y_i)

summed over the binary problems that share the vectors. At the minimum over (beta, b), with signed duals A,

    dW = -sum_o A_o' dk(X, Z) beta_o + 1/2 sum_o beta_o' dk(Z, Z) beta_o,

so the gradient needs the kernel's derivative only in weighted sums (`pullback`), never as a tensor. One scale for each
input can be learned, too; its derivative comes from the same sums over scaled rows and vectors.
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
from ..problem.losses import quadratic_pieces, smooth_surrogate
from ..problem.regularizers import KernelNorm, Regularizer
from ..rows.labels import Labels
from ..rows.memory import CoreFeatures, DenseFeatures, row_blocks
from ..rows.protocol import decision
from ..solvers.primal.interior import solve_interior
from ..solvers.primal.newton import newton
from ..solvers.primal.passes import Equations, Pull
from .selection import forward_rows

LEARNING_FLOAT64_ROWS = 2000  # with more rows learning computes in float32
MAX_DENSE_ENTRIES = 1 << 22  # sparse rows of up to this many entries are made dense: faster, the same vectors
MAX_REVIVAL_ROWS = 20_000  # rows on which dead vectors are detected and replaced in float64
OVERFLOW_OBJECTIVE = 1e30  # replaces the objective where numbers overflow
MAX_LOG_SCALE_CHANGE = 6.0  # from a scale of 1, up or down; beyond, a line search may overflow
# An input whose scale is almost 0 has no gradient, neither in its scale nor in the vectors. In the first iterations,
# scales therefore stay above exp(-0.5) times their start: initial vectors do not show yet whether an input is relevant
# that matters only in interaction with others.
EARLY_ITERATIONS = 30
EARLY_MAX_LOG_DECREASE = 0.5
# (initial scale, max log decrease from 1 in early iterations) of even and odd starts. Odd starts have a narrower kernel
# and free scales: the two kinds seldom end in a bad local minimum on the same data set.
INITIAL_SCALES = ((1.0, EARLY_MAX_LOG_DECREASE), (2.0, MAX_LOG_SCALE_CHANGE))
HALVING_FRACTIONS = (0.3, 0.5)  # of max_iter, after which the worse half of the starts is dropped (successive halving)

Callback = Callable[[int, float], None]  # (iteration, objective)
ThreadCount = Callable[[], int]  # the number of threads that may be used now


@dataclass(frozen=True)
class LearnedVectors:
    """Learned vectors, scales of the inputs (None if not learned), and the last coefficients (outputs x vectors) and
    biases. ``value`` is W divided by the sum of the costs.

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
    """W(Z) and its gradient, divided by the sum of the costs.

    Variables are Z in units of the kernel's length, and the logarithms of the scales if they are learned.
    """

    def __init__(
        self,
        kernel: Any,
        X: Any,
        labels: Labels,
        loss: Any,
        regularizer: Regularizer,
        count: int,
        learn_scales: bool,
        threads: int = 1,
        free_threads: ThreadCount | None = None,
    ):
        self.kernel, self.X, self.labels = kernel, X, labels
        self.loss, self.regularizer, self.count, self.learn_scales = loss, regularizer, count, learn_scales
        self.threads, self.free_threads = threads, free_threads
        self.unit = kernel.length(X)
        self.n_features = X.shape[1]
        self.total_cost = float(labels.totals.sum())
        self.weights: Array | None = None  # of the last solution, for a warm start

    def pack(self, Z: Array, scales: Array | None) -> Array:
        """Vectors and scales as one array of variables."""
        parts = [np.ravel(Z / self.unit)]
        if self.learn_scales:
            parts.append(np.log(np.ones(self.n_features) if scales is None else scales))
        return np.concatenate(parts)

    def unpack(self, theta: Array) -> tuple[Array, Array | None]:
        """Vectors and scales from the array of variables."""
        Z = theta[: self.count * self.n_features].reshape(self.count, self.n_features) * self.unit
        return Z, np.exp(theta[self.count * self.n_features :]) if self.learn_scales else None

    def bounds(self, fall: float = MAX_LOG_SCALE_CHANGE) -> tuple[Array, Array] | None:
        """Bounds of the variables: vectors are free; the logarithms of the scales may fall by ``fall``."""
        if not self.learn_scales:
            return None
        free = np.full(self.count * self.n_features, np.inf)
        highest = np.full(self.n_features, MAX_LOG_SCALE_CHANGE)
        return np.append(-free, np.full(self.n_features, -fall)), np.append(free, highest)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient; `OVERFLOW_OBJECTIVE` where numbers overflow, so that a line search steps back."""
        Z, scales = self.unpack(theta)
        scaled_Z = Z if scales is None else Z * scales
        value, beta, Kz, G, log_scale_gradient = self.row_gradients(Z, scales, scaled_Z)
        if self.regularizer.follows_kernel:
            G = G + self.kernel.pullback(scaled_Z, scaled_Z, dot(beta, beta.T), Kz)
        parts = [np.ravel(G if scales is None else G * scales) * self.unit]
        if scales is not None:
            parts.append(log_scale_gradient + np.einsum("ij,ij->j", scaled_Z, G))
        value, gradient = value / self.total_cost, np.concatenate(parts) / self.total_cost
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return OVERFLOW_OBJECTIVE, np.zeros_like(theta)
        return value, gradient

    def scaled_kernel(self, scales: Array | None) -> Any:
        return self.kernel if scales is None else Scaled(self.kernel, scales)

    def row_gradients(
        self, Z: Array, scales: Array | None, scaled_Z: Array
    ) -> tuple[float, Array, Array, Array, Array]:
        """W, the coefficients (vectors x outputs), the kernel matrix of the scaled vectors, and the rows' part of the
        gradients with respect to the scaled vectors and to the logarithms of the scales."""
        Kz = self.kernel(scaled_Z, scaled_Z)
        X = self.X if scales is None else self.scaled_kernel(scales).apply(self.X)
        K = self.kernel(X, scaled_Z, out=np.empty((X.shape[0], len(Z)), dtype=X.dtype), threads=self.threads)
        value, A, beta = self.solve(K, Kz)
        used = np.flatnonzero(A.any(axis=1))
        Kx, Xu = K[used], X[used]
        W = -dot(A[used].astype(K.dtype, copy=False), beta.T.astype(K.dtype, copy=False), self.threads)
        G = self.kernel.pullback(Xu, scaled_Z, W, Kx)
        log_scale_gradient = np.zeros(self.n_features)
        if scales is not None:
            Gx = self.kernel.pullback(scaled_Z, Xu, W.T, Kx.T)
            product = Xu.multiply(Gx).sum(axis=0) if sp.issparse(Xu) else np.einsum("ij,ij->j", Xu, Gx)
            log_scale_gradient = np.asarray(product).ravel()
        return value, beta, Kz, G, log_scale_gradient

    def solution(self, Z: Array, scales: Array | None) -> tuple[float, Array, Array]:
        """W divided by the sum of the costs, the coefficients (vectors x outputs) and biases, in float64."""
        kernel = self.scaled_kernel(scales)
        value, _, beta = self.solve(kernel(self.X, Z, threads=self.threads), kernel(Z, Z))
        assert self.weights is not None
        return value / self.total_cost, beta, self.weights[:, -1].copy()

    def coefficients(self, Z: Array, scales: Array | None) -> Array:
        """The coefficients (vectors x outputs), in the precision of the rows."""
        return self.solution(Z, scales)[1]

    def solve(self, K: Array, Kz: Array) -> tuple[float, Array, Array]:
        """W, the signed duals and the coefficients (vectors x outputs) at fixed vectors."""
        T = self.regularizer.whitening(Kz)
        rows = DenseFeatures(dot(K, T.astype(K.dtype, copy=False), self.threads), self.labels)
        Y, C = self.labels.of(slice(None))
        if not self.loss.smooth:
            V, solutions, _ = solve_interior(rows, self.loss, np.arange(self.labels.outputs), 1e-9, 100)
            A = np.zeros(C.shape)
            for o, (members, duals) in enumerate(solutions):
                A[members, o] = duals
            F = decision(rows.P, V)
        else:
            V = newton(rows, self.loss, self.warm_start(T.shape[1]), tol=1e-7, max_iter=50).V
            F = decision(rows.P, V)
            A = self.loss.duals(F, Y, C)
        self.weights = V
        value = 0.5 * float((V[:, :-1] ** 2).sum()) + float(self.loss.value(F, Y, C).sum())
        return value, A, dot(T, V[:, :-1].T)

    def warm_start(self, n_features: int) -> Array | None:
        """The weights of the last solution if their shape fits, else None."""
        return self.weights if self.weights is not None and self.weights.shape[1] == n_features + 1 else None

    def dead_vectors(self, Z: Array, scales: Array | None) -> Array:
        """Indices of the vectors that are far from every row, or have tiny coefficients in all outputs."""
        if len(Z) <= 1:
            return np.empty(0, dtype=np.int64)
        kernel = self.scaled_kernel(scales)
        X = self.X[:: -(-self.X.shape[0] // MAX_REVIVAL_ROWS)]
        K = kernel(X, Z, out=np.empty((X.shape[0], len(Z)), dtype=X.dtype), threads=self.threads)
        largest = np.maximum(K.max(axis=0), -K.min(axis=0))
        sizes = np.maximum(kernel(Z, Z).diagonal(), np.finfo(float).tiny)
        coef = np.abs(self.coefficients(Z, scales)).max(axis=1)
        return np.flatnonzero((largest < 1e-3 * np.sqrt(sizes)) | (coef < 1e-6 * coef.max()))

    def best_rows(self, kernel: Any, count: int, given: Array, rng: np.random.Generator) -> Array:
        """The rows that decrease the objective most as further vectors beside the given ones."""
        loss = self.loss if self.loss.smooth else smooth_surrogate(self.loss)
        step = -(-self.X.shape[0] // MAX_REVIVAL_ROWS)
        X, labels = self.X[::step], self.labels.take(slice(None, None, step), step)
        return step * forward_rows(kernel, X, labels, count, rng, given, loss=loss, threads=self.threads)


class FusedObjective(Objective):
    """The objective computed by the C++ core, for its differentiable kernels and piecewise quadratic losses."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        source = self.X.device_features if is_remote(self.X) else partial(CoreFeatures, self.X, threads=self.threads)
        self.rows: Any = source(self.labels, dtype=self.X.dtype, cache_bytes=2.0**62)

    def _solve_features(self, rows: Any, Z: Array, scales: Array | None) -> tuple[Array, Array, Array]:
        """Solve over fixed vectors: the weights, the coefficients (vectors x outputs) and the kernel matrix of the
        vectors."""
        kernel = self.scaled_kernel(scales)
        added = getattr(self.regularizer, "on_diagonal", None)
        Kz = None if added is None else rows.set_whitened_features(kernel, Z, added)
        if Kz is None:
            Kz = kernel(Z, Z)
            rows.set_features(kernel, Z, self.regularizer.whitening(Kz))
        assert rows.current_map is not None
        T = rows.current_map[2]
        self.weights = newton(rows, self.loss, self.warm_start(T.shape[1]), tol=1e-7, max_iter=50).V
        return self.weights, np.ascontiguousarray(dot(T, self.weights[:, :-1].T)), Kz

    def row_gradients(
        self, Z: Array, scales: Array | None, scaled_Z: Array
    ) -> tuple[float, Array, Array, Array, Array]:
        if self.free_threads is not None:
            self.rows.use_threads(self.free_threads())
        V, beta, Kz = self._solve_features(self.rows, Z, scales)
        losses, products, squares = self.rows.total(Pull(self.loss), V, beta, scales is not None)
        value = 0.5 * float((V[:, :-1] ** 2).sum()) + float(losses.sum())
        return value, beta, Kz, *self.kernel.gradients(products, squares, scaled_Z)

    def solution(self, Z: Array, scales: Array | None) -> tuple[float, Array, Array]:
        rows = self.rows
        # Features of nearly dependent vectors have few digits in float32.
        if rows.dtype != np.float64 and self.X.shape[0] <= MAX_REVIVAL_ROWS:
            rows = CoreFeatures(to_memory(self.X), self.labels, np.float64, self.threads)
        V, beta, _ = self._solve_features(rows, Z, scales)
        value, *_ = rows.total(Equations(self.loss), np.arange(len(V)), V)
        return (0.5 * float((V[:, :-1] ** 2).sum()) + float(value.sum())) / self.total_cost, beta, V[:, -1].copy()

    def coefficients(self, Z: Array, scales: Array | None) -> Array:
        return self._solve_features(self.rows, Z, scales)[1]


def objective_for(kernel: Any, loss: Any) -> type[Objective]:
    """The fastest objective class for a kernel and a loss."""
    in_core = kernel.core_slopes and loss.smooth and quadratic_pieces(loss) is not None
    return FusedObjective if in_core else Objective


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # line searches may try vectors where numbers overflow
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
    callback: Callback | None = None,
    free_threads: ThreadCount | None = None,
    overwrite_x: bool = False,
    search_vectors: Sequence[LearnedVectors] = (),
) -> LearnedVectors:
    """Move vectors (and scales) from their start to a local minimum of W by L-BFGS.

    Several starts with the same number of vectors run for some iterations each, and the one with the lowest objective
    continues; ``search_vectors``, learned by the search on parts of these rows, are further starts. A vector that
    contributes nothing has no gradient: it is replaced by the row that decreases W most. ``overwrite_x``: X may be
    changed.
    """
    runs = [
        run if isinstance(run, LearnedVectors) else initial(run)
        for run in (start if isinstance(start, list) else [start])
    ]
    kind = objective_for(kernel, loss)
    if is_remote(X) and kind is Objective:
        X = X[:]  # rows on a device are copied: this objective needs them in memory
    centre, X = centre_rows(kernel, X, LEARNING_FLOAT64_ROWS, overwrite_x)
    runs = [replace(run, vectors=jitter_duplicates(run.vectors - centre, kernel, X, rng), n_iter=0) for run in runs]
    count = len(runs[0].vectors)
    regularizer = (KernelNorm() if regularizer is None else regularizer).among(kernel, X, True)
    objective = kind(kernel, X, labels, loss, regularizer, count, learn_scales, threads, free_threads)
    others = [replace(run, vectors=run.vectors - centre) for run in search_vectors if len(run.vectors) == count]
    for fraction in HALVING_FRACTIONS:
        if len(runs) > 1:
            n_kept, until = len(runs) // 2, int(fraction * max_iter)
            runs = [minimize(objective, run, rng, until, callback, INITIAL_SCALES[k % 2]) for k, run in enumerate(runs)]
            for other in others:
                value = minimize(objective, replace(other, n_iter=0), rng, 0).value
                runs.append(replace(other, value=value, n_iter=runs[0].n_iter))
            runs, others = sorted(runs, key=lambda run: run.value)[:n_kept], []
    best = minimize(objective, runs[0], rng, max_iter, callback)
    return replace(best, vectors=best.vectors + centre)


def initial(Z: Array) -> LearnedVectors:
    """Initial vectors as `LearnedVectors`, without scales and coefficients."""
    return LearnedVectors(Z, None, np.empty((0, len(Z))), np.empty(0), np.inf, 0)


def minimize(
    objective: Objective,
    start: LearnedVectors,
    rng: np.random.Generator,
    max_iter: int,
    callback: Callback | None = None,
    early: tuple[float, float] = INITIAL_SCALES[0],
) -> LearnedVectors:
    """Minimise the objective locally by L-BFGS; dead vectors are replaced by rows.

    ``max_iter`` includes the iterations of the start. ``early``: the initial value of new scales, and the maximum
    decrease of their logarithms in the first iterations.
    """
    values: list[float] = []
    max_iter -= start.n_iter

    def watch(value: float) -> None:
        values.append(value)
        if callback is not None:
            callback(start.n_iter + len(values), value)

    Z, scales, limited = start.vectors, start.scales, False
    objective.weights = None
    first = min(EARLY_ITERATIONS, max_iter // 2) if objective.learn_scales and scales is None else 0
    if first:
        scales = np.full(objective.n_features, early[0])
        theta, bounds = objective.pack(_revived(objective, Z, scales, rng), scales), objective.bounds(early[1])
        Z, scales = objective.unpack(lbfgs(objective, theta, bounds, first, 3 * first, watch=watch).x)
    for _ in range(3 if max_iter else 0):
        Z = _revived(objective, Z, scales, rng)
        theta, left = objective.pack(Z, scales), max_iter - len(values)
        found = lbfgs(objective, theta, objective.bounds(), left, max_values=3 * max_iter, watch=watch)
        limited = found.limited
        Z, scales = objective.unpack(found.x)
        if len(values) >= max_iter or not len(objective.dead_vectors(Z, scales)):
            break
    value, coef, bias = objective.solution(Z, scales)
    gain = _recent_gain(values) if limited else 0.0
    return LearnedVectors(Z, scales, coef.T, bias, value, start.n_iter + len(values), gain)


def _recent_gain(values: list[float]) -> float:
    """The relative decrease of the objective in the last quarter of the iterations."""
    if len(values) < 2:
        return np.inf
    before = values[-1 - max(1, len(values) // 4)]
    return (before - values[-1]) / max(abs(values[-1]), np.finfo(float).tiny)


def centre_rows(kernel: Any, X: Any, max_float64_rows: int, overwrite_x: bool = False) -> tuple[Any, Any]:
    """The mean of the rows and the centred rows, which lose no digits, if the kernel is translation-invariant; else 0
    and the rows.

    More than ``max_float64_rows`` rows become float32. ``overwrite_x``: centre in place if X has the right type.
    """
    dtype = np.float32 if X.shape[0] > max_float64_rows else np.float64
    if is_remote(X):
        return X.centred(kernel, dtype)
    if sp.issparse(X) and X.shape[0] * X.shape[1] <= MAX_DENSE_ENTRIES:
        X = X.toarray()
    if sp.issparse(X) or not kernel.translation_invariant:
        return 0.0, X.astype(dtype, copy=False)
    centre = X.mean(axis=0, dtype=np.float64)
    centred = X if overwrite_x and X.dtype == dtype and X.flags.writeable else np.empty(X.shape, dtype=dtype)
    for rows in row_blocks(X.shape[0], 8 * X.shape[1]):
        np.subtract(X[rows], centre, out=centred[rows], dtype=np.float64, casting="same_kind")
    return centre, centred


def jitter_duplicates(Z: Array, kernel: Any, X: Any, rng: np.random.Generator) -> Array:
    """Move duplicate vectors by random steps: equal vectors would have equal gradients forever."""
    Z = np.array(Z, dtype=np.float64)
    K = kernel(Z, Z)
    size = K.diagonal()
    with np.errstate(invalid="ignore", divide="ignore"):
        is_copy = np.tril(size[:, None] + size - 2 * K <= 1e-12 * (size[:, None] + size), -1).any(axis=1)
    if is_copy.any():
        X = X[:: -(-X.shape[0] // MAX_REVIVAL_ROWS)] if is_remote(X) else X
        spread = np.sqrt(np.maximum(np.asarray((X.power(2) if sp.issparse(X) else X**2).mean(axis=0)).ravel(), 0))
        Z[is_copy] += 0.1 * np.where(spread > 0, spread, 0.0) * rng.standard_normal((int(is_copy.sum()), Z.shape[1]))
    return Z


def _revived(objective: Objective, Z: Array, scales: Array | None, rng: np.random.Generator) -> Array:
    """Replace dead vectors by the rows that decrease the objective most."""
    dead = objective.dead_vectors(Z, scales)
    if not len(dead):
        return Z
    rows = objective.best_rows(objective.scaled_kernel(scales), len(dead), np.delete(Z, dead, axis=0), rng)
    Z = Z.copy()
    Z[dead[: len(rows)]] = dense(objective.X[rows])
    objective.weights = None
    return Z
