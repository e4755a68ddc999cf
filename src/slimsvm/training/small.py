"""Training of a model over few vectors: choice of the vectors, then the optimal coefficients over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..basis.candidates import DatasetCandidates
from ..basis.learning import LearnedVectors
from ..data.dataset import Dataset
from ..model.expansion import Expansion, Model
from ..problem.bases import Choice
from ..utils.warnings import warn
from .spec import Hyperparameters, TrainingSpec

WARNED_GAIN = 0.02  # warn if the last iterations before max_iter gained more than this, relatively
WARNED_LOSS_GAIN = 2e-3  # and more than this in the mean loss, for targets of variance 1


def train(
    dataset: Dataset,
    spec: TrainingSpec,
    params: Hyperparameters,
    rng: np.random.Generator,
    quiet: bool = False,
    search_vectors: Sequence[LearnedVectors] = (),
) -> Model:
    """Choose vectors and fit optimal coefficients over them for the problems of the spec's scheme.

    ``quiet``: suppress the ConvergenceWarning. ``search_vectors``: vectors that the search learned with these
    hyperparameters, as further starts.
    """
    candidates = replace(spec.candidates(dataset, params, rng), search_vectors=search_vectors)
    return fit_over(spec, candidates, quiet)


def fit_over(spec: TrainingSpec, candidates: DatasetCandidates, quiet: bool = False) -> Model:
    """Choose vectors from candidates and fit optimal coefficients over them on all rows."""
    choice = spec.basis.choose(candidates, spec.n_vectors)
    if choice.learned is not None and not quiet:
        warn_if_unfinished(choice.learned, candidates.dataset)
    return fit_chosen(spec, candidates, choice)


def fit_chosen(spec: TrainingSpec, candidates: DatasetCandidates, choice: Choice) -> Model:
    """Fit optimal coefficients over chosen vectors on all rows."""
    fitted = spec.fit_coefficients(candidates, choice)
    expansion = Expansion(choice.kernel or candidates.kernel, choice.vectors, fitted.coef, fitted.bias)
    more: dict[str, Any] = {"regularizer_": fitted.regularizer}
    if choice.learned is not None:
        more |= {"learning_iter_": choice.learned.n_iter, "learning_gain_left_": choice.learned.remaining_gain}
    model = Model(expansion, choice.rows, fitted.objective, fitted.gap, fitted.n_iter, more, spec.scheme, fitted.limits)
    return model.without_idle_vectors() if spec.regularizer.reweighted else model


def warn_if_unfinished(learned: LearnedVectors, dataset: Dataset) -> None:
    """Warn if max_iter ended learning while the objective was still falling noticeably.

    In regression with little noise the objective may keep falling relatively although it is almost 0.
    """
    gain = learned.remaining_gain
    if not (gain > WARNED_GAIN and (dataset.targets is None or gain * learned.value > WARNED_LOSS_GAIN)):
        return
    # After a single iteration there is nothing to compare with.
    recently = f" (by {100 * gain:.1f} % in the last quarter of them)" if np.isfinite(gain) else ""
    warn(
        f"learning ended at its limit of {learned.n_iter} iterations while the objective still fell{recently}: "
        f"basis=Learned(iterations={2 * learned.n_iter}) may give a better model",
        ConvergenceWarning,
    )
