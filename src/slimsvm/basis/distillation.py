"""Distillation: an expansion over few vectors Z (the student) approximates a given one (the teacher).

The teacher is ``f_o = sum_i a_oi k(x_i, .) + c_o``, the student ``g_o = sum_j beta_j k(z_j, .) + b``. The objective is

    W(Z) = min_{beta,b}  1/2 |f - g|^2 + epsilon/2 |beta|^2 + sum_i loss(g(x_i), [lower_i, upper_i]),

where the norm leaves out biases: a reduced set (`reduced_set`) with a loss on values outside of intervals. With
whitened features P = k(X, Z) T, the projection of f has the weights ``u = P'a``. In the variable ``w - u`` the problem
is linear with intervals shifted by ``P u``; its signed duals are those of the intervals plus the a_i. With a = 0 the
first term is the norm of g.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..data.dataset import ProblemGroup
from ..linalg.arrays import Array
from ..linalg.matrix import dot
from ..problem.formulation import Kernel
from ..problem.losses import Between
from ..problem.regularizers import KernelNorm, Regularizer
from ..rows.labels import RowLabels
from ..rows.memory import DenseFeatures
from ..rows.protocol import decision
from ..solvers.primal.newton import newton
from .learning import (
    LEARNING_FLOAT64_ROWS,
    Callback,
    LearnedVectors,
    Objective,
    centre_rows,
    initial,
    jitter_duplicates,
    minimize,
)
from .reduced_set import greedy_rows

QUADRATIC: Between = Between()


class DistillationObjective(Objective):
    """W(Z) and its gradient; ``teacher_coef`` holds the a_oi (rows x outputs), ``squared_norm`` is the sum of
    ``|f_o|^2``."""

    def __init__(
        self,
        kernel: Any,
        X: Any,
        targets: ProblemGroup,
        teacher_coef: Array,
        squared_norm: float,
        loss: Between,
        regularizer: Regularizer,
        count: int,
        threads: int = 1,
    ):
        super().__init__(kernel, X, RowLabels(targets.Y, targets.C), loss, regularizer, count, False, threads)
        self.Y, self.C, self.teacher_coef, self.squared_norm = targets.Y, targets.C, teacher_coef, squared_norm

    def solve(self, K: Array, Kz: Array) -> tuple[float, Array, Array]:
        T = self.regularizer.whitening(Kz)
        P = dot(K, T.astype(K.dtype, copy=False), self.threads)
        u = dot(P.T, self.teacher_coef.astype(K.dtype, copy=False)).astype(np.float64)
        shifted = self.Y - dot(P, u.astype(K.dtype, copy=False))[..., None]
        rows = DenseFeatures(P, RowLabels(shifted, self.C))
        state = newton(rows, self.loss, self.warm_start(T.shape[1]), tol=1e-7, max_iter=50)
        self.weights = state.V
        F = decision(P, state.V)
        losses = float(self.loss.value(F, shifted, self.C).sum())
        value = 0.5 * float((state.w**2).sum()) + 0.5 * (self.squared_norm - float((u**2).sum())) + losses
        return value, self.loss.duals(F, shifted, self.C) + self.teacher_coef, dot(T, state.w + u)

    def best_rows(self, kernel: Any, count: int, given: Array, rng: np.random.Generator) -> Array:
        """Rows chosen greedily for the function whose coefficients are the duals, as for a reduced set."""
        _, duals, _ = self.solve(kernel(self.X, given, threads=self.threads), kernel(given, given))
        return greedy_rows(kernel, self.X, duals.T, count, given=given, threads=self.threads)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # vectors may be tried where numbers overflow
def distill(
    kernel: Any,
    X: Any,
    targets: ProblemGroup,
    teacher_coef: Array,
    squared_norm: float,
    start: Array,
    rng: np.random.Generator,
    loss: Between = QUADRATIC,
    regularizer: Regularizer | None = None,
    max_iter: int = 100,
    threads: int = 1,
    callback: Callback | None = None,
) -> LearnedVectors:
    """Move vectors from their start to a local minimum of W; ``targets.Y`` are intervals (rows x outputs x 2)."""
    centre, X = centre_rows(kernel, X, LEARNING_FLOAT64_ROWS)
    Z = jitter_duplicates(start - centre, kernel, X, rng)
    regularizer = (KernelNorm() if regularizer is None else regularizer).among(kernel, X, True)
    objective = DistillationObjective(
        kernel, X, targets, teacher_coef, squared_norm, loss, regularizer, len(Z), threads
    )
    found = minimize(objective, initial(Z), rng, max_iter, callback)
    return replace(found, vectors=found.vectors + centre)


def distilled_coefficients(
    kernel: Kernel,
    X: Any,
    Z: Any,
    targets: Sequence[ProblemGroup],
    teacher_coef: Array,
    bias: Array,
    loss: Any = QUADRATIC,
    regularizer: Regularizer | None = None,
    threads: int = 1,
) -> tuple[Array, Array]:
    """Optimal coefficients (outputs x vectors) and biases over fixed vectors, in float64.

    Each group of targets has one or more consecutive outputs and its own rows. A bias on which no row depends is kept.
    """
    T = (KernelNorm() if regularizer is None else regularizer).among(kernel, X, True).whitening(kernel(Z, Z))
    P = dot(kernel(X, Z, threads=threads), T, threads)
    u = dot(P.T, teacher_coef)
    shift = dot(P, u)
    w, b, first = np.empty_like(u), np.array(bias, dtype=np.float64), 0
    for group in targets:
        o = slice(first, first + group.Y.shape[1])
        rows = slice(None) if group.rows is None else group.rows
        start = np.hstack([np.zeros_like(u[:, o]).T, b[o, None]])
        labels = RowLabels(group.Y - shift[rows, o][..., None], group.C)
        state = newton(DenseFeatures(P[rows], labels), loss, start, tol=1e-10, max_iter=100)
        w[:, o], b[o], first = u[:, o] + state.w, state.bias, o.stop
    return np.ascontiguousarray(dot(T, w).T), b
