"""Prediction intervals from residuals of held-out rows: split and cross-conformal prediction.

Vovk, Gammerman and Shafer; Barber, Candes, Ramdas and Tibshirani.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..data.dataset import Dataset
from ..data.folds import Fold
from ..linalg.arrays import Array
from ..model.expansion import Expansion
from .probabilities import calibration_splits
from .small import train
from .spec import Hyperparameters, TrainingSpec
from .trials import MAX_TRIAL_ROWS

MIN_RESIDUAL = 1e-9  # lower bound of root mean squares, for targets of variance 1


def held_out_residuals(
    dataset: Dataset, spec: TrainingSpec, params: Hyperparameters, rng: np.random.Generator, final: Expansion
) -> tuple[Array, Array]:
    """Absolute residuals (rows x targets) of held-out rows by models of the other rows, and the weights of the rows.

    Learning ends in one of many local minima. Where the final model has larger residuals than a fold's model on the
    fold's training rows, the residuals are enlarged by that ratio. Where most rows are duplicates, nothing can be held
    out: residuals are those of the training rows.
    """
    seed = int(rng.integers(2**31))
    basis = spec.basis
    if basis.learns and dataset.size > MAX_TRIAL_ROWS:
        basis = replace(basis, rows=MAX_TRIAL_ROWS)
    spec = replace(spec, basis=basis, verbose=False)
    residuals, counts, ratios = [], [], []
    for fold in calibration_splits(dataset, rng) or [Fold(dataset.in_memory(), dataset.in_memory())]:
        train_rows, test = fold.train, fold.test
        model = train(train_rows, spec, params, np.random.default_rng(seed), quiet=True)
        residuals.append(np.abs(_residuals(test, model.expansion)))
        ratios.append(
            _root_mean_square(train_rows, final)
            / np.maximum(_root_mean_square(train_rows, model.expansion), MIN_RESIDUAL)
        )
        # A drawn row counts once at most: larger weights would make few rows look like many.
        is_sample = train_rows.size + test.size < dataset.n_distinct
        counts.append(test.counts * (min(1.0, test.size / test.total) if is_sample else 1.0))
    return np.concatenate(residuals) * np.maximum(np.median(ratios, axis=0), 1.0), np.concatenate(counts)


def _residuals(rows: Dataset, expansion: Expansion) -> Array:
    return rows.targets - expansion.decision(rows.X, rows.threads)


def _root_mean_square(rows: Dataset, expansion: Expansion) -> Array:
    """The root mean square residual of each target."""
    return np.sqrt(np.average(_residuals(rows, expansion) ** 2, axis=0, weights=rows.counts))


def residual_quantiles(residuals: Array, counts: Array, coverage: float) -> Array:
    """The conformal quantile of the absolute residuals of each target at this coverage; infinite if rows are too
    few."""
    bounds = np.full(residuals.shape[1], np.inf)
    needed = coverage * (counts.sum() + 1)
    for o, column in enumerate(residuals.T):
        order = np.argsort(column, kind="stable")
        enough = np.flatnonzero(np.cumsum(counts[order]) >= needed * (1 - 1e-12))
        if len(enough):
            bounds[o] = column[order[enough[0]]]
    return bounds
