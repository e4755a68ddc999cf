"""Probabilities of a model over all rows: Platt's sigmoids of decision values of held-out rows.

Values of training rows would give overconfident probabilities, so each fold's model is fitted without its test rows.
Each pair of classes has its sigmoid, ``log p_i / p_j = a f + b``. Of several classes these are more equations
than unknowns: log-probabilities are their least-squares solution, ``log p_i = t/k sum_j (a f + b)_ij`` up to a
constant, with a common factor t that makes the labels most likely. That is an expansion over the vectors again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp

from ...data.dataset import Dataset, class_signs, outputs
from ...linalg.arrays import Array
from ...linalg.matrix import dot
from ...model.expansion import Expansion, Model
from ...training.probabilities import calibration_splits

MAX_NEWTON_STEPS = 100
GRADIENT_TOL = 1e-10  # times the sum of the weights
MIN_STEP_SIZE = 1e-10


def fit_sigmoids(train: Callable[[Dataset], Model], dataset: Dataset, model: Expansion) -> tuple[Array, Array, Array]:
    """Slopes and offsets of the pairs' sigmoids, and the weights of their log-odds in each output of the layer."""
    values = _held_out_values(train, dataset)
    if values is None or len(np.unique(values.codes)) < dataset.n_classes:  # too few rows
        values = replace(dataset, X=model.decision(dataset.X, dataset.threads), duplicates=None)
    problems = outputs(dataset.n_classes, "ovo")
    labels, weights = values.labels(problems), values.weights
    fits = [sigmoid(F, y, weights * (y != 0)) for F, y in zip(values.X.T, labels.T, strict=True)]
    slopes, offsets = np.array(fits).T
    if dataset.n_classes == 2:
        return slopes, offsets, np.ones((1, 1))
    signs = class_signs(dataset.n_classes, problems) / dataset.n_classes
    return slopes, offsets, signs * _temperature(dot(values.X * slopes + offsets, signs.T), values.codes, weights)


def sigmoid(f: Array, y: Array, weights: Array) -> tuple[float, float]:
    """a and b of ``p(y = 1) = 1 / (1 + exp(-(a f + b)))``, most likely for smoothed labels.

    One more row of each class with each label keeps probabilities off 0 and 1 (Platt 2000; Lin, Lin and Weng 2007).
    """
    scale = float(np.abs(f[weights > 0]).max(initial=0.0)) or 1.0
    x = np.stack([f / scale, np.ones(len(f))])
    positive, negative = weights[y > 0].sum(), weights[y < 0].sum()
    target = np.where(y > 0, (positive + 1) / (positive + 2), 1 / (negative + 2))

    def loss(ab: Array) -> float:
        z = ab @ x
        return float(weights @ (np.logaddexp(0, z) - target * z))

    ab = np.array([0.0, np.log((positive + 1) / (negative + 1))])
    value = loss(ab)
    for _ in range(MAX_NEWTON_STEPS):
        p = expit(ab @ x)
        gradient = x @ (weights * (p - target))
        if np.abs(gradient).max() <= GRADIENT_TOL * (positive + negative):
            break
        hessian = (x * (weights * p * (1 - p))) @ x.T
        step = -np.linalg.solve(hessian + 1e-12 * (1 + np.trace(hessian)) * np.eye(2), gradient)
        size = 1.0
        while size > MIN_STEP_SIZE and loss(ab + size * step) > value + 1e-4 * size * float(gradient @ step):
            size /= 2
        if size <= MIN_STEP_SIZE:
            break
        ab = ab + size * step
        value = loss(ab)
    return float(ab[0]) / scale, float(ab[1])


def _temperature(logits: Array, codes: Array, weights: Array) -> float:
    """The factor of log-probabilities that makes the labels most likely (Guo et al. 2017)."""
    rows = np.arange(len(codes))

    def loss(exponent: float) -> float:
        scaled = np.exp(exponent) * logits
        return float(weights @ (logsumexp(scaled, axis=1) - scaled[rows, codes]))

    return float(np.exp(minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded").x))


def _held_out_values(train: Callable[[Dataset], Model], dataset: Dataset) -> Dataset | None:
    """Held-out rows with their decision values as features, by models fitted without them; None if folds are
    impossible."""
    folds = calibration_splits(dataset, np.random.default_rng(0))
    if not folds:
        return None
    values = np.concatenate([train(fold.train).expansion.decision(fold.test.X, dataset.threads) for fold in folds])
    tests = [fold.test for fold in folds]
    return replace(
        dataset,
        X=values,
        codes=np.concatenate([test.codes for test in tests]),
        counts=np.concatenate([test.counts for test in tests]),
        indices=np.concatenate([np.asarray(test.indices) for test in tests]),
        keys=np.concatenate([test.keys for test in tests]),
        duplicates=None,
    )
