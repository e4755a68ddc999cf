"""Class probabilities from the values of a logistic or softmax layer."""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit, log_softmax

from ..linalg.arrays import Array

TIE_MARGIN = 1e-12  # the log-probabilities of tied classes are this much below the winner's


def log_probabilities(F: Array) -> Array:
    """Logarithms of the class probabilities: log-sigmoids of one output (two classes), or log-softmax of one per class.

    They are finite for finite values.
    """
    F = np.asarray(F, dtype=np.float64)
    return np.hstack([log_expit(-F), log_expit(F)]) if F.shape[1] == 1 else log_softmax(F, axis=1)


def align_with_winners(winners: Array, log_p: Array) -> Array:
    """Project each row's probabilities onto the distributions in which no class is likelier than the row's winner.

    The projection (in squared distance) replaces the probabilities of the winner and of the k likeliest other
    classes by their mean, with the k that makes this mean largest.
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
