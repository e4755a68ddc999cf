"""Coefficients of outputs that share their vectors, each with its certificate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...linalg.array_api import namespace, to_numpy
from ...linalg.arrays import Array, as_float64
from ...linalg.matrix import dot
from ...problem.formulation import Kernel
from ...problem.losses import Loss
from ...problem.regularizers import Regularizer
from ...rows.labels import Labels
from ...rows.memory import feature_source
from ...rows.protocol import FeatureSource
from ..certificate import RegularizedBasis, certify_rows
from ..sparse.reweighting import sparse_coefficients
from . import solve as primal
from .newton import newton

MAX_KEPT_KERNEL_BYTES = 1 << 23  # bytes of kernel values that are kept for a second look
MAX_KEPT_DUALS = 1 << 22  # that are kept from one pass to the next

# Where the classes are apart, what is left of the hinge on margins that miss 1 by rounding may outweigh a tiny norm:
# a slightly larger f has none of it.
STRETCHES = (1e-13, 1e-11, 1e-9, 1e-8, 1e-7)


@dataclass(frozen=True)
class Coefficients:
    """Coefficients (outputs x vectors) and biases, each output with its certificate.

    Objective and gap are those of the model with exactly these numbers, under ``regularizer``: the one that was asked
    for, with a jitter where rounding would otherwise decide what R is. ``limits`` says of each output what ended it:
    "" (it is solved), "max_iter=..." or "rounding".
    """

    coef: Array
    bias: Array
    objective: Array
    gap: Array
    n_iter: Array
    limits: tuple[str, ...] = field(default=(), kw_only=True)
    regularizer: Any = field(default=None, kw_only=True)

    @property
    def converged(self) -> Array:
        """Which outputs are solved."""
        return np.array([not limit for limit in self.limits], dtype=bool)


def fit_coefficients(
    kernel: Kernel,
    X: Any,
    Z: Any,
    labels: Labels,
    loss: Loss,
    regularizer: Regularizer,
    tol: float = 1e-8,
    max_iter: int = 100,
    dtype: Any = np.float64,
    threads: int = 1,
    memory: float = 2.0**30,
    near: tuple[Array, Array] | None = None,
) -> Coefficients:
    """The best coefficients and biases of all outputs over the vectors Z; ``near`` are some not far from them.

    float32 features find most of it at half the price; what counts is the gap of the model in float64. Where that is
    above ``tol``, float64 features do the rest.
    """
    if regularizer.reweighted:
        return _reweighted(kernel, X, Z, labels, loss, regularizer, tol, threads)
    gram = kernel(as_float64(Z), as_float64(Z))
    if not np.isfinite(gram).all():
        raise ValueError(
            "kernel values of the vectors are infinite or NaN: scale the features, or lower gamma or degree"
        )
    norm = regularizer.settled(gram)
    basis = RegularizedBasis.of(norm, gram)
    # Looked at once where all goes well: nothing is kept, unless it costs next to nothing.
    n, m = X.shape[0], len(gram)
    memory_of_plain = memory if 8 * n * m < MAX_KEPT_KERNEL_BYTES else 0
    plain = feature_source(kernel, X, labels, as_float64(Z), np.eye(m), np.float64, threads, memory_of_plain)
    start = None if near is None or not loss.smooth else basis.weights(*near)
    best: Fitted | None = None
    for precision in dict.fromkeys((np.dtype(dtype), np.dtype(np.float64))):
        open_ = np.arange(labels.outputs) if best is None else np.flatnonzero(best.open(tol, max_iter))
        if not len(open_):
            break
        with np.errstate(over="ignore", invalid="ignore"):  # float32 may be too short for large kernel values
            rows = feature_source(kernel, X, labels, Z, basis.T, precision, threads, memory)
            fit = _Fit(basis, labels, loss, plain, precision == np.float32)
            now = fit(rows, open_, None if best is None else best.take(open_), tol, max_iter, start)
            best = now if best is None else best.put(open_, now)
    assert best is not None
    if not np.isfinite(best.objective).all():
        raise ValueError("kernel values of the rows are too large: scale the features, or lower gamma or degree")
    limits = tuple(
        "" if gap <= tol else f"max_iter={max_iter}" if used >= max_iter else "rounding"
        for gap, used in zip(best.gap, best.n_iter, strict=True)
    )
    coef, bias = np.ascontiguousarray(best.coef[:, :-1]), best.coef[:, -1].copy()
    return Coefficients(coef, bias, best.objective, best.gap, best.n_iter, limits=limits, regularizer=norm)


@dataclass(frozen=True)
class Fitted:
    """Outputs solved in some precision: weights (outputs x features + 1), the coefficients that they mean (outputs
    x vectors + 1), and the proof of these."""

    V: Array
    coef: Array
    objective: Array
    gap: Array
    n_iter: Array

    def open(self, tol: float, max_iter: int) -> Array:
        """Which outputs miss the tolerance and have steps left."""
        return (self.gap > tol) & (self.n_iter < max_iter)

    def take(self, o: Array) -> Fitted:
        """Some of the outputs."""
        return Fitted(*(part[o] for part in self._parts()))

    def put(self, o: Array, others: Fitted) -> Fitted:
        """With some of the outputs replaced."""
        parts = [part.copy() for part in self._parts()]
        for part, new in zip(parts, others._parts(), strict=True):
            part[o] = new
        return Fitted(*parts)

    def _parts(self) -> tuple[Array, ...]:
        return self.V, self.coef, self.objective, self.gap, self.n_iter

    def or_better(self, other: Fitted) -> Fitted:
        """The better of both for each output; ``other`` came after this one and counts its steps too."""
        late = other.gap < self.gap
        late |= ~np.isfinite(self.gap) & (other.objective <= self.objective)
        return replace(self.put(np.flatnonzero(late), other.take(np.flatnonzero(late))), n_iter=other.n_iter)


@dataclass(frozen=True)
class _Fit:
    """Outputs over the same rows.

    ``plain`` are the rows with the values of the kernel in float64 as features. ``rough``: others are in float32.
    """

    basis: RegularizedBasis
    labels: Labels
    loss: Any
    plain: FeatureSource
    rough: bool

    def __call__(
        self, rows: FeatureSource, which: Array, before: Fitted | None, tol: float, max_iter: int, start: Array | None
    ) -> Fitted:
        """Solved over whitened features, from an earlier result or a start if there is one."""
        used = np.zeros(len(which), dtype=int) if before is None else before.n_iter
        start = start if before is None else before.V
        # Both solvers converge so fast in the end that a margin costs next to nothing.
        # float32 gets half of the steps at most: it may be too short to get anywhere.
        need, left = (np.inf, (max_iter + 1) // 2) if self.rough else (0.5 * tol, max_iter - int(used.max()))
        if self.rough and self.loss.smooth:  # exact kernel values will tell how good it is
            state = newton(rows, self.loss, start, 1e-3 * tol, min(left, 30), which)
            return self.proved(which, state.V, (), used + state.n_iter)
        s = primal.solve(rows, self.loss, start, 1e-3 * tol, left, need, which)
        known_duals = self.duals(rows, which, s)
        now = self.proved(which, s.V, known_duals, used + s.n_iter)
        for V in () if self.rough else self.others(which, s.V):
            if not now.open(tol, max_iter).any():
                break
            now = now.or_better(self.proved(which, V, known_duals, now.n_iter))
        return now if before is None else before.or_better(now)

    def duals(self, rows: FeatureSource, which: Array, best: primal.LinearSolution) -> Any:
        """What is known of the duals. Those of a smooth loss are best at whitened features in float64, where kernel
        values are so large that sums of them cancel."""
        n = rows.shape[0]
        if not self.loss.smooth or any(len(duals) for _, duals in best.known_duals):
            return best.known_duals
        if rows.is_remote or n * len(which) > MAX_KEPT_DUALS:
            return ()
        parts: list[list[tuple[Array, Array]]] = [[] for _ in which]
        for block in rows.blocks():
            Y, C = block.labels(which)
            A = self.loss.duals(block.values(which, best.V), Y, C)
            for part, a, c in zip(parts, A.T, C.T, strict=True):
                members = np.flatnonzero(c)  # few of the rows, where outputs are for pairs of classes
                part.append((block.first + members, a[members]))
        return [tuple(np.concatenate(pieces) for pieces in zip(*part, strict=True)) for part in parts]

    def others(self, which: Array, V: Array) -> Iterator[Array]:
        """What may be better where rounding is felt: slightly larger functions, and none but the bias."""
        for stretch in STRETCHES:
            yield V * (1 + stretch)
        total = sum(self.plain.map_blocks(_signed_costs, which))
        mean = np.asarray(total) / self.plain.labels.totals[which]
        for bias in (mean, np.sign(mean)):
            yield np.hstack([np.zeros((len(V), V.shape[1] - 1)), bias[:, None]])

    def proved(self, which: Array, V: Array, known_duals: Any, n_iter: Array) -> Fitted:
        """The model with these weights, and its certificate."""
        coef = np.hstack([dot(V[:, :-1], self.basis.T.T), V[:, -1:]])
        proof = certify_rows(self.plain, self.loss, which, coef, self.basis, known_duals)
        return Fitted(V, coef, proof.primal, proof.gap, n_iter)


def _signed_costs(block: Any, which: Array) -> Array:
    Y, C = block.labels(which)
    return to_numpy(namespace(C).sum(C * Y, axis=0))


def _reweighted(
    kernel: Kernel, X: Any, Z: Any, labels: Labels, loss: Loss, norm: Any, tol: float, threads: int
) -> Coefficients:
    """Rounds of reweighting for each output; coefficients of vectors that it drops are zero."""
    K, gram = kernel(X, Z, threads=threads), kernel(Z, Z)
    solutions = []
    for o in range(labels.outputs):
        part = labels.members(o)
        rows = slice(None) if part is None else part
        Y, C = labels.of(rows, np.array([o]))
        solutions.append(sparse_coefficients(K[rows], gram, Y[:, 0], C[:, 0], loss, norm, tol))
    coef = np.zeros((len(solutions), len(gram)))
    for o, sparse in enumerate(solutions):
        coef[o, sparse.kept] = sparse.coef
    numbers = zip(*((s.bias, s.objective, s.gap, s.n_iter) for s in solutions), strict=True)
    return Coefficients(
        coef,
        *map(np.array, numbers),
        limits=tuple(
            f"max_iter={norm.max_iter}" if not s.converged else "rounding" if s.gap > tol else "" for s in solutions
        ),
        regularizer=norm,
    )
