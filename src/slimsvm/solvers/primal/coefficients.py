"""Optimal coefficients of several outputs over the same vectors, with a certificate for each output."""

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

MAX_KEPT_KERNEL_BYTES = 1 << 23  # of kernel values that are kept for a second pass
MAX_KEPT_DUALS = 1 << 22  # duals that are kept from one pass to the next

# Where the classes are separable, margins that miss 1 by rounding may cost more than a tiny norm: f scaled up slightly
# has no such cost.
STRETCHES = (1e-13, 1e-11, 1e-9, 1e-8, 1e-7)


@dataclass(frozen=True)
class Coefficients:
    """Coefficients (outputs x vectors) and biases, each output with its certificate.

    Objective and gap are those of exactly these coefficients under ``regularizer``: the requested one, with a jitter
    where R is singular up to rounding. ``limits`` has the reason why each output ended: "" (it is solved),
    "max_iter=..." or "rounding".
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
    """Fit coefficients and biases of all outputs over the vectors Z; ``near`` are those to start from.

    If ``dtype`` is float32, outputs are first solved in float32 features, at half the cost. The gap is always that of
    the model in float64; outputs whose gap is above ``tol`` are solved again in float64 features.
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
    # Usually one pass is enough: kernel values are kept only if they are few.
    n, m = X.shape[0], len(gram)
    memory_of_plain = memory if 8 * n * m < MAX_KEPT_KERNEL_BYTES else 0
    plain = feature_source(kernel, X, labels, as_float64(Z), np.eye(m), np.float64, threads, memory_of_plain)
    start = None if near is None or not loss.smooth else basis.weights(*near)
    best: Fitted | None = None
    for precision in dict.fromkeys((np.dtype(dtype), np.dtype(np.float64))):
        open_ = np.arange(labels.outputs) if best is None else np.flatnonzero(best.open(tol, max_iter))
        if not len(open_):
            break
        with np.errstate(over="ignore", invalid="ignore"):  # large kernel values may overflow float32
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
    """Solutions of outputs in one precision: weights (outputs x features + 1), the same as coefficients (outputs x
    vectors + 1), and the certificate of these."""

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
        """A copy in which the outputs ``o`` are replaced."""
        parts = [part.copy() for part in self._parts()]
        for part, new in zip(parts, others._parts(), strict=True):
            part[o] = new
        return Fitted(*parts)

    def _parts(self) -> tuple[Array, ...]:
        return self.V, self.coef, self.objective, self.gap, self.n_iter

    def or_better(self, other: Fitted) -> Fitted:
        """For each output the solution with the smaller gap; ``n_iter`` is that of ``other``, the later one."""
        late = other.gap < self.gap
        late |= ~np.isfinite(self.gap) & (other.objective <= self.objective)
        return replace(self.put(np.flatnonzero(late), other.take(np.flatnonzero(late))), n_iter=other.n_iter)


@dataclass(frozen=True)
class _Fit:
    """Solves outputs over whitened features and certifies them over kernel values.

    ``plain`` are the rows with kernel values in float64 as features. ``rough``: the whitened features are float32.
    """

    basis: RegularizedBasis
    labels: Labels
    loss: Any
    plain: FeatureSource
    rough: bool

    def __call__(
        self, rows: FeatureSource, which: Array, before: Fitted | None, tol: float, max_iter: int, start: Array | None
    ) -> Fitted:
        """Solve over whitened features, starting from ``before`` or ``start`` if given."""
        used = np.zeros(len(which), dtype=int) if before is None else before.n_iter
        start = start if before is None else before.V
        # Both solvers converge so fast at the end that a smaller tolerance costs next to nothing.
        # float32 gets half of the steps at most: it may be too inaccurate to converge.
        need, left = (np.inf, (max_iter + 1) // 2) if self.rough else (0.5 * tol, max_iter - int(used.max()))
        if self.rough and self.loss.smooth:  # the certificate uses float64 kernel values
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
        """Known duals for the certificate.

        Those of a smooth loss come from whitened float64 features, because sums of large kernel values may cancel.
        """
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
                members = np.flatnonzero(c)  # few of the rows, where outputs are pairs of classes
                part.append((block.first + members, a[members]))
        return [tuple(np.concatenate(pieces) for pieces in zip(*part, strict=True)) for part in parts]

    def others(self, which: Array, V: Array) -> Iterator[Array]:
        """Weights that may be better where rounding matters: slightly scaled up, or zero except for the bias."""
        for stretch in STRETCHES:
            yield V * (1 + stretch)
        total = sum(self.plain.map_blocks(_signed_costs, which))
        mean = np.asarray(total) / self.plain.labels.totals[which]
        for bias in (mean, np.sign(mean)):
            yield np.hstack([np.zeros((len(V), V.shape[1] - 1)), bias[:, None]])

    def proved(self, which: Array, V: Array, known_duals: Any, n_iter: Array) -> Fitted:
        """Coefficients for these weights, with their certificate."""
        coef = np.hstack([dot(V[:, :-1], self.basis.T.T), V[:, -1:]])
        proof = certify_rows(self.plain, self.loss, which, coef, self.basis, known_duals)
        return Fitted(V, coef, proof.primal, proof.gap, n_iter)


def _signed_costs(block: Any, which: Array) -> Array:
    Y, C = block.labels(which)
    return to_numpy(namespace(C).sum(C * Y, axis=0))


def _reweighted(
    kernel: Kernel, X: Any, Z: Any, labels: Labels, loss: Loss, norm: Any, tol: float, threads: int
) -> Coefficients:
    """Fit each output by rounds of reweighting; coefficients of the vectors it drops are zero."""
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
