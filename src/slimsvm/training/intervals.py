"""Residuals of rows that shaped neither vectors nor coefficients, and the intervals that they give (split and
cross-conformal prediction: Vovk, Gammerman and Shafer; Barber, Candes, Ramdas and Tibshirani)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..data.dataset import Dataset
from ..linalg.arrays import Array
from ..model.expansion import Expansion
from .probabilities import calibration_splits
from .small import train
from .spec import Hyperparameters, TrainingSpec
from .trials import MAX_TRIAL_ROWS

MIN_RESIDUAL = 1e-9  # residuals of targets of variance 1 that are as good as none


def held_out_residuals(
    dataset: Dataset, spec: TrainingSpec, params: Hyperparameters, rng: np.random.Generator, final: Expansion
) -> tuple[Array, Array]:
    """Sizes of residuals (rows x targets), and what each row counts, of models that were learned without these rows.

    Learning ends in one of many places, some better than others: where that of the final model is worse than those of
    the others by what rows that both know say, its residuals are taken to be larger by as much. Where each row stands
    for so many copies that none is new to a model, all rows judge the model that knows them.
    """
    seed = int(rng.integers(2**31))
    basis = (
        replace(spec.basis, rows=MAX_TRIAL_ROWS) if spec.basis.learns and dataset.size > MAX_TRIAL_ROWS else spec.basis
    )
    spec = replace(spec, basis=basis, verbose=False)
    found, worse = [], []
    for learned, judging in calibration_splits(dataset, rng) or [(dataset.in_memory(), dataset.in_memory())]:
        model = train(learned, spec, params, np.random.default_rng(seed), quiet=True)
        missed = np.abs(_residuals(judging, model.expansion))
        worse.append(_mean_size(learned, final) / np.maximum(_mean_size(learned, model.expansion), MIN_RESIDUAL))
        # Of rows that were drawn, each counts once at most: more would make few rows look like many.
        drawn = learned.size + judging.size < dataset.n_distinct
        found.append((missed, judging.counts * (min(1.0, judging.size / judging.total) if drawn else 1.0)))
    missed, counts = (np.concatenate(part) for part in zip(*found, strict=True))
    return missed * np.maximum(np.median(worse, axis=0), 1.0), counts


def _residuals(rows: Dataset, machine: Expansion) -> Array:
    return rows.targets - machine.decision(rows.X, rows.threads)


def _mean_size(rows: Dataset, machine: Expansion) -> Array:
    """The root of the mean square of residuals, of each target."""
    return np.sqrt(np.average(_residuals(rows, machine) ** 2, axis=0, weights=rows.counts))


def residual_quantiles(residuals: Array, counts: Array, coverage: float) -> Array:
    """Of each target: the least size that a new row's residual keeps to with this probability, if it is like the
    others: residuals up to it count as much as that part of all rows and the new one. Infinite where
    rows are too few."""
    found = np.full(residuals.shape[1], np.inf)
    need = coverage * (counts.sum() + 1)
    for o, column in enumerate(residuals.T):
        order = np.argsort(column, kind="stable")
        enough = np.flatnonzero(np.cumsum(counts[order]) >= need * (1 - 1e-12))
        if len(enough):
            found[o] = column[order[enough[0]]]
    return found
