"""Coefficients of machines that share their vectors, each with its certificate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..certificate import Basis, of_expansion
from ..data import Targets
from ..formulation import Array, Kernel
from ..parts.losses import Loss
from ..parts.regularizers import Regularizer
from ..sparse.reweighting import sparse_coefficients
from . import solve as primal
from .passes import Exact, Features, double, features

# Where the classes are apart, what is left of the hinge on margins that miss 1 by rounding may outweigh a tiny norm:
# a slightly larger f has none of it.
STRETCHES = (1e-13, 1e-11, 1e-9, 1e-8, 1e-7)


@dataclass(frozen=True)
class Coefficients:
    """Coefficients (machines x vectors) and biases, each machine with its certificate.

    Objective and gap are those of the model with exactly these numbers, under ``regularizer``: the one that was asked
    for, with a jitter where rounding would otherwise decide what R is. ``limits`` says of each machine what ended it:
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
        """Which machines are solved."""
        return np.array([not limit for limit in self.limits], dtype=bool)


def fit_coefficients(
    kernel: Kernel,
    X: Any,
    Z: Any,
    machines: Sequence[Targets],
    loss: Loss,
    regularizer: Regularizer,
    tol: float = 1e-8,
    max_iter: int = 100,
    dtype: Any = np.float64,
    threads: int = 1,
    memory: float = 2.0**30,
) -> Coefficients:
    """The best coefficients and biases of all machines over the vectors Z.

    float32 features find most of it at half the price; what counts is the gap of the model in float64. Where that is
    above ``tol``, float64 features do the rest.
    """
    if regularizer.reweighted:
        return _reweighted(kernel, X, Z, machines, loss, regularizer, tol, threads)
    gram = kernel(double(Z), double(Z))
    if not np.isfinite(gram).all():
        raise ValueError(
            "kernel values of the vectors are infinite or NaN: scale the features, or lower gamma or degree"
        )
    norm = regularizer.settled(gram)
    basis = Basis.of(norm, gram)
    exact = Exact(kernel, X, Z, threads)
    if len(machines) > 1:
        exact = exact.kept(memory)
    found: list[Fitted | None] = [None] * len(machines)
    for precision in dict.fromkeys((np.dtype(dtype), np.dtype(np.float64))):
        open_ = [k for k, f in enumerate(found) if f is None or f.open(tol, max_iter)]
        if not open_:
            break
        with np.errstate(over="ignore", invalid="ignore"):  # float32 may be too short for large kernel values
            P = features(kernel, X, Z, basis.T, precision, threads, memory)
            for k in open_:
                rows = machines[k].rows
                fit = _Fit(basis, machines[k], loss, exact, precision == np.float32)
                found[k] = fit(P if rows is None else P.take(rows), found[k], tol, max_iter)
    done = [f for f in found if f is not None]
    joined = [np.concatenate([getattr(f, name) for f in done]) for name in ("bias", "objective", "gap", "n_iter")]
    if not np.isfinite(joined[1]).all():
        raise ValueError("kernel values of the rows are too large: scale the features, or lower gamma or degree")
    limits = tuple(
        "" if gap <= tol else f"max_iter={max_iter}" if used >= max_iter else "rounding"
        for gap, used in zip(joined[2], joined[3], strict=True)
    )
    return Coefficients(
        np.ascontiguousarray(np.hstack([f.coef for f in done]).T), *joined, limits=limits, regularizer=norm
    )


@dataclass(frozen=True)
class Fitted:
    """Machines solved in some precision: weights, the coefficients (vectors x machines) they mean, and their proof."""

    w: Array
    coef: Array
    bias: Array
    objective: Array
    gap: Array
    n_iter: Array

    def open(self, tol: float, max_iter: int) -> bool:
        """Is there something to do, and may it be done?"""
        return bool(((self.gap > tol) & (self.n_iter < max_iter)).any())

    def or_better(self, other: Fitted) -> Fitted:
        """The better of both for each machine; ``other`` came after this one and counts its steps too."""
        late = other.gap < self.gap
        late |= ~np.isfinite(self.gap) & (other.objective <= self.objective)

        def chosen(name: str) -> Array:
            return np.where(late, getattr(other, name), getattr(self, name))

        return Fitted(
            chosen("w"), chosen("coef"), chosen("bias"), chosen("objective"), chosen("gap"), n_iter=other.n_iter
        )


@dataclass(frozen=True)
class _Fit:
    """One group of machines over one set of rows.

    ``rough``: features are in float32.
    """

    basis: Basis
    group: Targets
    loss: Any
    exact: Exact
    rough: bool

    def __call__(self, P: Features, before: Fitted | None, tol: float, max_iter: int) -> Fitted:
        """Solved over the features P, from an earlier result if there is one."""
        Y, C = self.group.Y, self.group.C
        used = np.zeros(Y.shape[1], dtype=int) if before is None else before.n_iter
        start = None if before is None else (before.w, before.bias)
        # Both solvers converge so fast in the end that a margin costs next to nothing.
        # float32 gets half of the steps at most: it may be too short to get anywhere.
        need, left = (np.inf, (max_iter + 1) // 2) if self.rough else (0.5 * tol, max_iter - int(used.max()))
        s = primal.solve(P, Y, C, self.loss, start, 1e-3 * tol, left, need)
        # A smooth loss has better duals at exact decision values than at those of float32 features.
        duals = None if self.loss.smooth and self.rough else s.duals
        now = self.proved(s.w, s.bias, duals, used + s.n_iter)
        for w, bias in () if self.rough else self.others(s.w, s.bias):
            if not now.open(tol, max_iter):
                break
            now = now.or_better(self.proved(w, bias, duals, now.n_iter))
        return now if before is None else before.or_better(now)

    def others(self, w: Array, bias: Array) -> Iterator[tuple[Array, Array]]:
        """What may be better where rounding is felt: slightly larger functions, and none but the bias."""
        for stretch in STRETCHES:
            yield w * (1 + stretch), bias * (1 + stretch)
        mean = (self.group.C * self.group.Y).sum(axis=0) / self.group.C.sum(axis=0)
        yield 0 * w, mean
        yield 0 * w, np.sign(mean)

    def proved(self, w: Array, bias: Array, duals: Array | None, n_iter: Array) -> Fitted:
        """The model with these weights, and its certificate."""
        Y, C, coef = self.group.Y, self.group.C, self.basis.T @ w
        objective, gap = of_expansion(
            self.exact.blocks(self.group.rows), self.basis, self.loss, Y, C, coef, bias, duals
        )
        return Fitted(w, coef, bias, objective, gap, n_iter)


def _reweighted(
    kernel: Kernel, X: Any, Z: Any, machines: Sequence[Targets], loss: Loss, norm: Any, tol: float, threads: int
) -> Coefficients:
    """Rounds of reweighting for each machine; coefficients of vectors that it drops are zero."""
    K, gram = kernel(X, Z, threads=threads), kernel(Z, Z)
    found = [
        sparse_coefficients(
            K if group.rows is None else K[group.rows], gram, group.Y[:, o], group.C[:, o], loss, norm, tol
        )
        for group in machines
        for o in range(group.Y.shape[1])
    ]
    coef = np.zeros((len(found), len(gram)))
    for o, sparse in enumerate(found):
        coef[o, sparse.kept] = sparse.coef
    return Coefficients(
        coef,
        *(np.array([getattr(s, name) for s in found]) for name in ("bias", "objective", "gap", "n_iter")),
        limits=tuple(
            f"max_iter={norm.max_iter}" if not s.converged else "rounding" if s.gap > tol else "" for s in found
        ),
        regularizer=norm,
    )
