"""Values of primal and dual, and the gap between them: every `objective_` and `duality_gap_` comes from here."""

from __future__ import annotations

from typing import Any

import numpy as np

from .formulation import Array

TINY = np.finfo(float).tiny


def balanced(duals: Array) -> Array:
    """Signed duals (a vector, or a column for each machine) whose heavier side is scaled down: they sum to zero."""
    up, down = np.maximum(duals, 0).sum(axis=0), -np.minimum(duals, 0).sum(axis=0)
    least = np.minimum(up, down)
    return np.where(duals > 0, duals * (least / np.maximum(up, TINY)), duals * (least / np.maximum(down, TINY)))


def relative_gap(primal: Any, dual: Any) -> Any:
    """``(primal - dual) / dual``; infinite where the dual proves nothing."""
    positive = np.asarray(dual) > 0
    gap = np.where(positive, np.maximum(primal - dual, 0) / np.where(positive, dual, 1.0), np.inf)
    return gap if gap.ndim else float(gap)
