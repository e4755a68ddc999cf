"""How regressors are judged."""

from __future__ import annotations

import numpy as np

from ..linalg.arrays import Array


def r2_of(targets: Array, values: Array, weights: Array) -> tuple[float, Array]:
    """R^2, the mean over the targets, and what each row takes from it: they sum to ``1 - R^2`` by their shares."""
    share = (weights / weights.sum())[:, None]
    spread = (share * (targets - (share * targets).sum(axis=0)) ** 2).sum(axis=0)
    missed = ((targets - values) ** 2 / np.where(spread > 0, spread, 1.0)).mean(axis=1)
    return 1 - float((share[:, 0] * missed).sum()), missed
