"""Training of sparse models over all rows: `LpSVC` and `RelevanceVectorClassifier`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..data.dataset import Dataset, Output, outputs
from ..model.expansion import Expansion, Model, join_outputs
from ..solvers.sparse.lp import train_lp
from ..solvers.sparse.relevance import RelevanceSolution, train_relevance
from ..solvers.sparse.reweighting import SparseSolution
from ..utils.progress import ProgressLine
from ..utils.warnings import warn
from .slim import with_probabilities

Watch = Callable[[int, int, float], None]


@dataclass(frozen=True)
class PenaltySpec:
    """The checked parameters of an `LpSVC`."""

    p: float
    C: float
    C_alpha: float
    variant: str
    scheme: str
    tol: float
    max_iter: int
    probability: bool
    verbose: bool


def train_penalised(dataset: Dataset, kernel: Any, spec: PenaltySpec) -> Model:
    """Train the model of `LpSVC` on rows in canonical order."""
    problems = outputs(dataset.n_classes, spec.scheme)
    solutions = [_solve_penalised(dataset, kernel, output, spec, spec.verbose) for output in problems]
    _warn_of_penalised(solutions, spec)
    kept, coef = join_outputs([s.kept for s in solutions], [s.coef for s in solutions], dataset.indices)
    columns = {name: np.array([getattr(s, name) for s in solutions]) for name in ("bias", "objective", "gap", "n_iter")}
    model = Model(
        Expansion(kernel, dataset.X[kept], coef, columns["bias"]),
        dataset.indices[kept],
        columns["objective"],
        columns["gap"],
        columns["n_iter"],
        {"history_": [s.history for s in solutions], "C_alpha_": spec.C_alpha},
        scheme=spec.scheme,
    )
    if not spec.probability:
        return model

    def learn(train: Dataset) -> tuple[Any, Any]:
        kept = [_solve_penalised(train, kernel, output, spec, False).kept for output in problems]
        return kernel, train.X[np.unique(np.concatenate(kept))]

    rng = np.random.default_rng(0)
    return with_probabilities(dataset, model, spec.C, learn, rng, spec.tol, verbose=spec.verbose)


def _solve_penalised(dataset: Dataset, kernel: Any, output: Output, spec: PenaltySpec, verbose: bool) -> SparseSolution:
    """Solve one binary problem; the vectors of its solution are row numbers of the dataset."""
    rows, y, weights = dataset.binary(output)
    line, watch = _progress(dataset, output, verbose, "round {}, {} vectors, objective {:.6g}")
    solution = train_lp(
        kernel,
        dataset.X[rows],
        y,
        spec.C * weights,
        spec.p,
        spec.C_alpha,
        spec.variant,
        spec.tol,
        spec.max_iter,
        dataset.threads,
        watch,
    )
    if line is not None:
        line.finish(f"{solution.n_iter} rounds, {len(solution.kept)} vectors, objective {solution.objective:.6g}")
    return solution.of_rows(rows)


def _progress(dataset: Dataset, output: Output, verbose: bool, words: str) -> tuple[ProgressLine | None, Watch | None]:
    """The progress line of a binary problem and the callback that updates it."""
    if not verbose:
        return None, None
    line = ProgressLine(dataset.name(output))
    return line, lambda *numbers: line.update(words.format(*numbers))


def _warn_of_penalised(solutions: list[SparseSolution], spec: PenaltySpec) -> None:
    unsettled = sum(not s.converged for s in solutions)
    unsolved = sum(s.gap > spec.tol for s in solutions)
    worst = f"the largest relative duality gap is {max(s.gap for s in solutions):.1e}, tol={spec.tol:g}"
    if unsettled:
        warn(
            f"max_iter={spec.max_iter} ended {unsettled} of {len(solutions)} binary problems before they converged "
            f"({worst}); raise max_iter or tol, or lower C_alpha",
            ConvergenceWarning,
        )
    elif unsolved:
        warn(
            f"rounding errors ended {unsolved} of {len(solutions)} binary problems before they were solved: {worst}; "
            "scale the features, lower C or raise tol",
            ConvergenceWarning,
        )
    empty = sum(len(s.kept) == 0 for s in solutions)
    if empty:
        warn(
            f"C_alpha={spec.C_alpha:g} leaves no vectors in {empty} of {len(solutions)} binary problems, which now "
            f"always answer the more frequent class; lower C_alpha or raise C (C={spec.C:g})"
        )


def train_relevance_vectors(dataset: Dataset, kernel: Any, tol: float, max_iter: int, verbose: bool) -> Model:
    """Train the model of `RelevanceVectorClassifier` on rows in canonical order."""
    problems = outputs(dataset.n_classes, "ovr")
    solutions = [_solve_relevance(dataset, kernel, output, tol, max_iter, verbose) for output in problems]
    _warn_of_relevance(solutions, tol, max_iter)
    kept = [s.kept for s in solutions]
    _, variance = join_outputs(kept, [1 / s.precision[1:] for s in solutions], dataset.indices)
    rows, coef = join_outputs(kept, [s.coef for s in solutions], dataset.indices)
    precision = np.divide(1.0, variance, out=np.full(variance.shape, np.inf), where=variance > 0)
    return Model(
        Expansion(kernel, dataset.X[rows], coef, np.array([s.bias for s in solutions])),
        dataset.indices[rows],
        np.array([-s.evidence for s in solutions]),
        None,  # no dual, so no gap
        np.array([s.n_iter for s in solutions]),
        {
            "history_": [s.history for s in solutions],
            "precision_": precision,
            "intercept_precision_": np.array([s.precision[0] for s in solutions]),
        },
        scheme="ovr",
    )


def _solve_relevance(
    dataset: Dataset, kernel: Any, output: Output, tol: float, max_iter: int, verbose: bool
) -> RelevanceSolution:
    rows, y, weights = dataset.binary(output)
    line, watch = _progress(dataset, output, verbose, "move {}, {} vectors, log evidence {:.6g}")
    solution = train_relevance(kernel, dataset.X[rows], y, weights, tol, max_iter, dataset.threads, watch)
    if line is not None:
        line.finish(f"{solution.n_iter} moves, {len(solution.kept)} vectors, log evidence {solution.evidence:.6g}")
    return solution


def _warn_of_relevance(solutions: list[RelevanceSolution], tol: float, max_iter: int) -> None:
    unsettled = sum(not s.converged for s in solutions)
    if unsettled:
        warn(
            f"max_iter={max_iter} ended {unsettled} of {len(solutions)} binary problems before they converged; "
            "raise max_iter or tol",
            ConvergenceWarning,
        )
    refused = sum(s.refused and s.converged for s in solutions)
    if refused:
        warn(
            f"rounding ended the fit in {refused} of {len(solutions)} binary problems: vectors depend so much on each "
            "other that the evidence of better models cannot be computed. Scale the features or change the kernel",
            ConvergenceWarning,
        )
    untried = sum(s.untried and s.converged and not s.refused for s in solutions)
    if untried:
        warn(
            f"the limit of work ended the fit in {untried} of {len(solutions)} binary problems before every vector and "
            "candidate was tried: a change of one of them may raise the log evidence by more than "
            f"tol={tol:g}. The model can be used; for a complete search raise tol or fit fewer rows",
            ConvergenceWarning,
        )
    empty = sum(not len(s.kept) for s in solutions)
    if empty:
        warn(
            f"no vector raises the evidence in {empty} of {len(solutions)} binary problems, which now give every row "
            "the same answer; try another gamma or kernel, or more data"
        )
