"""Machines over few vectors on rows of every kind, for tests of passes: exact numbers, and bounds of rounding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

import kernel_table
from slimsvm import _core, kernels, losses
from slimsvm.rows.labels import ClassLabels, RowLabels, TargetLabels
from slimsvm.rows.memory import CoreFeatures, LazyFeatures
from slimsvm.rows.protocol import decision

SCALES = np.array([0.5, 2.0, 1.0, 0.25, 1.5, 0.75])
KERNELS = kernel_table.examples() | {
    "rbf": kernels.Gaussian(0.2),
    "laplacian": kernels.Laplacian(0.15),
    "sigmoid": kernels.Sigmoid(0.2, 0.1),
    "cube": kernels.Polynomial(0.3, 1.0, 3),
    "constant": kernels.Polynomial(0.3, 1.0, 0),
}
RADIAL = [name for name in KERNELS if KERNELS[name].translation_invariant]
KERNELS |= {f"scaled {name}": kernels.Scaled(KERNELS[name], SCALES) for name in (*RADIAL, "cube")}
LOSSES = {type(loss).__name__: loss for loss in (make() for make in (*losses.ALL, *losses.FOR_TARGETS))}
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards": lambda X: np.ascontiguousarray(X[::-1])[::-1],
    "csr": sp.csr_array,
    "csr64": lambda X: wide_index(sp.csr_array(X)),
}
INPUTS = len(SCALES)


def core_loss(loss):
    """As the core knows it."""
    return _core.QuadraticLoss(*loss.pieces)


def wide_index(X):
    """The same with indices of 64 bits."""
    return sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)


def dense(X):
    """In float64."""
    return (X.toarray() if sp.issparse(X) else np.asarray(X)).astype(np.float64)


def kernel_sizes(kernel: Any, X, Z):
    """Of the terms that a kernel value is made of: times the unit of rounding, how well it is known."""
    inner, scales = kernel.unscaled
    return kernel_table.value_sizes(inner.name, X * scales, Z * scales, **inner.get_params())


@dataclass(frozen=True)
class Problem:
    """Rows as the core gets them, the same in float64, and machines over features k(X, Z) T."""

    kernel: Any
    X: Any
    labels: Any
    Z: Any
    T: np.ndarray
    loss: Any
    V: np.ndarray
    D: np.ndarray
    t: np.ndarray
    dtype: Any

    def fused(self, threads=1, keep=2.0**30, labels=None):
        rows = CoreFeatures(self.X, self.labels if labels is None else labels, self.dtype, threads, keep)
        return rows.set_features(self.kernel, self.Z, self.T)

    @property
    def plain(self):
        """The same in numpy and float64."""
        return LazyFeatures(self.kernel, dense(self.X), self.labels, dense(self.Z), self.T)

    @property
    def unit(self):
        """Of rounding. A number that a pass gives is a sum of sums: over inputs, vectors, features, then up to 128 rows
        before they go on in float64. Each partial sum is rounded once: errors of k of them, which are independent, are
        about k^1/2 units of the sum of absolute values, and hardly ever more than four times that."""
        terms = self.X.shape[1] + sum(self.T.shape) + 128
        return 4 * np.sqrt(terms) * np.finfo(self.dtype).eps

    @cached_property
    def feature_sizes(self):
        return kernel_sizes(self.kernel, dense(self.X), dense(self.Z)) @ np.abs(self.T)

    def value_sizes(self, V):
        """Of what decision values, and their differences from 1, are made of: rows x outputs."""
        Y = np.abs(self.labels.of(slice(None))[0]).max()
        return self.feature_sizes @ np.abs(V[:, :-1]).T + np.abs(V[:, -1]) + max(Y, 1)

    @property
    def steepness(self):
        width = self.loss.pieces[0]
        return 1 / width if width else 1.0

    def dual_sizes(self, which, sizes):
        """Duals are slopes of a loss: their errors those of the decision values times the curvature."""
        return self.labels.of(slice(None), which)[1] * self.steepness * sizes


def make(
    kernel="rbf",
    loss="SquaredHinge",
    dtype=np.float64,
    n=257,
    outputs=3,
    vectors=7,
    features=5,
    layout="C",
    data=None,
    given="rows",
    codes=np.int32,
    broadcast=False,
    plain=False,
    seed=0,
):
    """A problem of any kind. Rows on a corner of the loss, whose side rounding decides, take no part."""
    kernel, loss = KERNELS.get(kernel, kernel), LOSSES.get(loss, loss)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, INPUTS)) if data is None else data(rng, n)
    X[np.abs(X) < 0.4] = 0
    X = X.astype(dtype)
    Z = X[rng.integers(n, size=vectors)].astype(np.float64) + 0.3 * rng.normal(size=(vectors, X.shape[1]))
    T = np.eye(vectors) if plain else np.triu(rng.normal(size=(vectors, features)))
    X = LAYOUTS[layout](X)
    width = T.shape[1] + 1
    V, D = (0.4 * rng.normal(size=(outputs, width)) for _ in range(2))
    t = rng.uniform(0, 2, size=(outputs, 3))
    given = "targets" if losses.reads_targets(loss) else given
    labels = labels_of(rng, n, outputs, given, codes, broadcast)
    problem = Problem(kernel, X, labels, Z, T, loss, V, D, t, np.dtype(dtype))
    risky = on_corners(problem)
    if given == "rows":
        labels = RowLabels(np.where(risky, 0.0, labels.Y), np.where(risky, 0.0, labels.C))
    elif given == "targets":
        labels.targets[risky] += 0.05
    else:  # the last class takes no part in anything
        labels.codes[risky.any(axis=1)] = outputs + 1
    return Problem(kernel, X, labels, Z, T, loss, V, D, t, np.dtype(dtype))


def labels_of(rng, n, outputs, given, codes, broadcast):
    """Rows that take no part in some output among them; one class against another, or given for each row."""
    if given == "rows":
        Y = np.where(rng.random((n, outputs)) < 0.5, -1.0, 1.0) * (rng.random((n, outputs)) < 0.8)
        return RowLabels(Y, np.abs(Y) * rng.uniform(0.1, 3, size=(n, outputs)))
    if given == "targets":
        counts = np.broadcast_to(1.5, n) if broadcast else rng.uniform(0.5, 2, n)
        return TargetLabels(rng.normal(size=(n, outputs)), counts, rng.uniform(0.1, 3, size=outputs))
    side = np.zeros((outputs + 2, outputs))
    side[np.arange(outputs), np.arange(outputs)], side[np.arange(outputs) + 1, np.arange(outputs)] = 1, -1
    cost = np.abs(side) * rng.uniform(0.1, 3, size=side.shape)
    counts = np.broadcast_to(1.5, n) if broadcast else rng.uniform(0.5, 2, n)
    return ClassLabels(rng.integers(len(side), size=n).astype(codes), counts, side, cost)


def on_corners(problem):
    """Rows x outputs: where a decision value that some pass looks at is within its rounding of a corner of the loss."""
    width, least, most, tube, targets = (*problem.loss.pieces, 0.0, False)[:5]
    with np.errstate(invalid="ignore"):
        ends = np.array([least, most]) * width
    corners = [0.0] if width == 0 else [end for end in ends if np.isfinite(end)]
    corners = [s * (tube + abs(c)) for c in (0.0, *corners) for s in (-1, 1)] if targets else corners
    P = np.vstack([block.features() for block in problem.plain.blocks()])
    Y = problem.labels.of(slice(None))[0]
    risky = np.zeros(Y.shape, dtype=bool)
    for k in range(-1, problem.t.shape[1]):
        V = problem.V if k < 0 else problem.V + problem.t[:, [k]] * problem.D
        F, sizes = decision(P, V), problem.value_sizes(np.abs(problem.V) + 2 * np.abs(problem.D))
        short = Y - F if targets else 1 - Y * F
        for corner in corners:
            risky |= (np.abs(short - corner) <= 2 * problem.unit * sizes) & (Y != 0)
    return risky
