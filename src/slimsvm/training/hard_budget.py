"""Training of `BudgetSVC` with a hard limit on the number of vectors: its costs come from the soft problem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..basis.candidates import DatasetCandidates
from ..data.dataset import Dataset, outputs
from ..linalg.arrays import Array
from ..linalg.matrix import dot
from ..model.expansion import Model
from ..problem import bases, regularizers, slacks
from ..solvers.dual.solve import DualSolution
from ..solvers.dual.training import Subproblem, subproblems
from ..utils.warnings import warn
from .full import FullSpec, solve_full
from .small import fit_over
from .spec import TrainingSpec

# Kernel values between candidates and rows; with more rows, a random subset of them are candidates.
MAX_CANDIDATE_VALUES = 1 << 22
# Largest C in units of 1 / k(x, x). At higher costs a model over few vectors overfits.
MAX_SCALED_COST = 30.0


def train_hard_budget(
    dataset: Dataset, kernel: Any, spec: FullSpec, budget: float, norm: str, learn: bool, rng: np.random.Generator
) -> Model:
    """Train on rows in canonical order: solve the soft problems, then equivalent ones over ``budget`` shared
    vectors."""
    # Equal costs come from small differences between slacks: solve accurately.
    full, solutions = solve_full(dataset, kernel, replace(spec, tol=min(spec.tol, 1e-5)))
    loss, problem_outputs = slacks.loss(norm), outputs(dataset.n_classes, spec.scheme)
    short = 1 - dataset.labels(problem_outputs) * full.expansion.decision(dataset.X, dataset.threads)
    _, problems = subproblems(dataset, problem_outputs)
    most = MAX_SCALED_COST / max(float(kernel.diagonal(dataset.X).mean()), np.finfo(float).tiny)
    costs = [
        min(most, equal_cost(problem, solution, short[problem.rows, o], float(spec.C), budget, norm))
        for o, (problem, solution) in enumerate(zip(problems, solutions, strict=True))
    ]
    # All rows are candidates, not only the support vectors: these lie at the border, good vectors do not.
    basis: Any = bases.Forward(max(59, MAX_CANDIDATE_VALUES // dataset.size), dataset.size)
    if learn:
        basis = bases.Learned(init=basis, rows=dataset.size)
    regularizer = regularizers.KernelNorm().among(kernel, dataset.X, basis.learns)
    small = TrainingSpec(int(budget), basis, loss, regularizer, lambda gamma: kernel, spec.scheme, min(spec.tol, 1e-6))
    candidates = DatasetCandidates(dataset, kernel, problem_outputs, np.array(costs), loss, regularizer, rng)
    model = fit_over(small, candidates)
    assert model.gap is not None
    if (model.gap > spec.tol).any():
        warn(
            f"the problem over {len(model.expansion.coef.T)} vectors is not solved: relative duality gap "
            f"{model.gap.max():.2e}, asked for tol={spec.tol:g}. Scale the features or lower C",
            ConvergenceWarning,
        )
    return model.with_attributes(C_=np.array(costs))


def equal_cost(problem: Subproblem, solution: DualSolution, short: Array, C: float, budget: float, norm: str) -> float:
    """C of the (squared) hinge problem that has the same solution up to scale; ``short`` is ``1 - y f`` of each row.

    Only slacks above a threshold t count; measured from there, margins are 1 - t instead of 1. Dividing f by
    that gives a problem with margins 1, where duals are C / (1 - t), or proportional to the slacks.
    """
    slack = np.maximum(short, 0)
    if norm == "l1":
        order = np.argsort(-slack, kind="stable")
        reached = np.cumsum(problem.weights[order]) >= budget
        t = float(slack[order][reached.argmax()]) if reached.any() else 0.0
        return C / max(1 - t, 1e-3)
    idle = slack[solution.duals == 0]
    above = np.maximum(slack - (idle.max() if len(idle) else 0.0), 0)
    size = float(np.sqrt(dot(problem.weights, above**2)))
    return C / size if size > 0 else 1e6 * C
