"""Training of small machines: outputs for several classes, vectors in their place, coefficients over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from . import primal
from .bases import Basis, Choice, Problem, dense
from .features import features
from .formulation import Array, Kernel
from .kernels import Scaled
from .learning import Learned, Watch, epsilon_norm, learn
from .losses import Loss
from .regularizers import KernelNorm, Regularizer
from .reweighting import sparse_coefficients

__all__ = [
    "Coefficients",
    "Machines",
    "Placed",
    "Recipe",
    "TrainingRows",
    "fit_coefficients",
    "one_vs_one",
    "one_vs_rest",
    "place",
]


@dataclass(frozen=True)
class TrainingRows:
    """Rows with class numbers and weights. The rows of a precomputed kernel are row numbers."""

    X: Any
    codes: Array
    weights: Array
    n_classes: int
    threads: int

    def problem(self, kernel: Kernel, machines: Machines) -> Problem:
        """What vectors for these machines are chosen for."""
        return Problem(kernel, self.X, self.codes, machines.Y, machines.C, self.threads)

    def take(self, rows: Array) -> TrainingRows:
        """Some of the rows."""
        return TrainingRows(self.X[rows], self.codes[rows], self.weights[rows], self.n_classes, self.threads)


@dataclass(frozen=True)
class Machines:
    """Binary machines over the same rows: labels (+-1) and costs, rows x machines."""

    rows: Array | None  # None: all of them
    Y: Array
    C: Array


@dataclass(frozen=True)
class Coefficients:
    """Coefficients (machines x vectors) and biases, each machine with its certificate."""

    coef: Array
    bias: Array
    objective: Array
    gap: Array
    n_iter: Array


def one_vs_rest(codes: Array, n_classes: int, cost: Array) -> Machines:
    """Two classes: one machine. More: each class against the others."""
    positive = np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)
    Y = np.where(codes[:, None] == positive, 1.0, -1.0)
    return Machines(None, Y, np.repeat(cost[:, None], len(positive), axis=1))


def one_vs_one(codes: Array, n_classes: int, cost: Array) -> list[Machines]:
    """Each pair of classes; the first of the pair is positive."""
    pairs = []
    for i, j in combinations(range(n_classes), 2):
        rows = np.flatnonzero((codes == i) | (codes == j))
        pairs.append(Machines(rows, np.where(codes[rows, None] == i, 1.0, -1.0), cost[rows, None]))
    return pairs


def fit_coefficients(
    kernel: Kernel,
    X: Any,
    Z: Any,
    machines: Sequence[Machines],
    loss: Loss,
    regularizer: Regularizer,
    tol: float = 1e-8,
    max_iter: int = 100,
    dtype: Any = np.float64,
    threads: int = 1,
    memory: float = 2.0**30,
) -> Coefficients:
    """The best coefficients and biases of all machines over the vectors Z.

    Where float32 features do not lead to the gap that is asked for, float64 features do the rest.
    """
    if getattr(regularizer, "reweighted", False):
        return _reweighted(kernel, X, Z, machines, loss, regularizer, threads)
    T = regularizer.whitening(kernel(Z, Z))
    solved: list[primal.LinearSolution | None] = [None] * len(machines)
    for precision in dict.fromkeys((np.dtype(dtype), np.dtype(np.float64))):
        open_ = [k for k, s in enumerate(solved) if s is None or (s.gap > tol).any()]
        if not open_:
            break
        P = features(kernel, X, Z, T, precision, threads, memory)
        for k in open_:
            group, before = machines[k], solved[k]
            start = None if before is None else (before.w, before.bias)
            mine = P if group.rows is None else P.take(group.rows)
            # Both solvers converge so fast in the end that a margin costs next to nothing.
            solved[k] = primal.solve(mine, group.Y, group.C, loss, start, 1e-3 * tol, max_iter)
    done = [s for s in solved if s is not None]
    return Coefficients(
        np.ascontiguousarray((T @ np.hstack([s.w for s in done])).T),
        np.concatenate([s.bias for s in done]),
        np.concatenate([s.objective for s in done]),
        np.concatenate([s.gap for s in done]),
        np.concatenate([s.n_iter for s in done]),
    )


def _reweighted(
    kernel: Kernel, X: Any, Z: Any, machines: Sequence[Machines], loss: Loss, norm: Any, threads: int
) -> Coefficients:
    """Rounds of reweighting for each machine; coefficients of vectors that it drops are zero."""
    K, gram = kernel(X, Z, threads=threads), kernel(Z, Z)
    found = [
        sparse_coefficients(K if group.rows is None else K[group.rows], gram, group.Y[:, o], group.C[:, o], loss, norm)
        for group in machines
        for o in range(group.Y.shape[1])
    ]
    coef = np.zeros((len(found), len(gram)))
    for o, sparse in enumerate(found):
        coef[o, sparse.kept] = sparse.coef
    return Coefficients(
        coef, *(np.array([getattr(s, name) for s in found]) for name in ("bias", "objective", "gap", "n_iter"))
    )


@dataclass(frozen=True)
class Recipe:
    """How vectors are found: chosen by a basis, then learned from there if ``loss`` says for what."""

    count: int
    basis: Basis
    loss: Loss | None  # None: vectors stay where the basis put them
    regularizer: Regularizer | None  # None: the norm in the kernel's space
    iterations: int = 100

    def norm(self, kernel: Kernel, X: Any) -> Regularizer:
        """The regulariser; learned vectors may come close to each other, so their kernel norm has an epsilon."""
        if self.regularizer is not None:
            return self.regularizer
        return KernelNorm() if self.loss is None else epsilon_norm(kernel, X)


@dataclass(frozen=True)
class Placed:
    """Vectors in their place, and the kernel (with the scales of the inputs, if those were learned)."""

    kernel: Any
    choice: Choice
    learned: Learned | None = None


def place(
    recipe: Recipe,
    problem: Problem,
    rng: np.random.Generator,
    scaled: bool = False,
    start: Learned | Array | None = None,
    watch: Watch | None = None,
) -> Placed:
    """Vectors for a problem; learning may go on from an earlier result instead of the basis."""
    if recipe.loss is None:
        return Placed(problem.kernel, recipe.basis.choose(problem, recipe.count, rng))
    Z = start.vectors if isinstance(start, Learned) else start
    if Z is None:
        Z = dense(recipe.basis.choose(problem, recipe.count, rng).vectors)
    learned = learn(
        problem,
        Z,
        recipe.loss,
        rng,
        scales=start.scales if isinstance(start, Learned) else None,
        learn_scales=scaled,
        max_iter=recipe.iterations,
        regularizer=recipe.norm(problem.kernel, problem.X),
        watch=watch,
    )
    kernel: Any = problem.kernel if learned.scales is None else Scaled(problem.kernel, learned.scales)
    return Placed(kernel, Choice(learned.vectors), learned)
