"""Probabilities of classes from the values of a logistic or softmax layer."""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit, log_softmax

from ..linalg.arrays import Array

TIE_MARGIN = 1e-12  # between the log-probabilities of the winner and of classes that tie with it


def log_probabilities(F: Array) -> Array:
    """Logarithms of the classes' probabilities, from the values of one output (two classes) or of one for each class.

    None is minus infinity as long as the values are finite.
    """
    F = np.asarray(F, dtype=np.float64)
    return np.hstack([log_expit(-F), log_expit(F)]) if F.shape[1] == 1 else log_softmax(F, axis=1)


def align_with_winners(winners: Array, log_p: Array) -> Array:
    """The nearest distributions (in squared distance) in which no class is likelier than the row's winner.

    The winner shares evenly with the classes above it: all of them get the mean of as many of the largest as make that
    mean largest.
    """
    rows = np.flatnonzero(log_p.argmax(axis=1) != winners)
    if not len(rows):
        return log_p
    own = np.arange(len(rows)), winners[rows]
    p = np.exp(log_p[rows])
    others = p.copy()
    others[own] = 0
    others = -np.sort(-others, axis=1)[:, :-1]
    means = (p[own][:, None] + np.cumsum(others, axis=1)) / np.arange(2, p.shape[1] + 1)
    level = np.log(means.max(axis=1))
    moved = np.minimum(log_p[rows], level[:, None] - TIE_MARGIN)
    moved[own] = level
    led = log_p.copy()
    led[rows] = moved
    return led
