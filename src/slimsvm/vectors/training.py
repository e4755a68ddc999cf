"""Training of small machines: outputs for several classes, vectors in their place, coefficients over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..formulation import Array, Kernel
from ..parts.bases import Basis, Choice, Problem, dense
from ..parts.kernels import Scaled
from ..parts.losses import Loss
from ..parts.regularizers import KernelNorm, Regularizer
from ..primal.coefficients import Coefficients, Machines, fit_coefficients, one_vs_one, one_vs_rest
from .learning import Learned, Watch, epsilon_norm, learn

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
