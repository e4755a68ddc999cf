"""What outlier detectors over few vectors share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import OutlierMixin

from ..linalg.arrays import Array
from ..model.voting import Votes
from .base import ExpansionModel, labels_beside, lazy_where_far

BORDER = 1e-12  # of the offset


def on_the_border_is_inside(intercept: Array) -> Array:
    """The intercept with which rows on the border are inside, whatever rounding says of them."""
    return intercept + BORDER * np.abs(intercept)


class Detector(OutlierMixin, ExpansionModel):
    """Values above zero are inside; ``offset_`` is what `score_samples` must exceed for that."""

    offset_: Array

    def _answers(self) -> tuple[Array, Votes]:
        return np.array([-1, 1]), Votes()

    @lazy_where_far
    def decision_function(self, X: Any) -> Array:
        """Values above zero are inside.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._snapshot()._scores(X)[:, 0]

    @lazy_where_far
    def score_samples(self, X: Any) -> Array:
        """Values without the offset: the larger, the more usual.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        fitted = self._snapshot()
        return fitted._scores(X)[:, 0] + fitted.offset_[0]

    @lazy_where_far
    def predict(self, X: Any) -> Array:
        """1 for rows inside, -1 for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        fitted = self._snapshot()
        scores = fitted._scores(X)
        labels, votes = fitted._answers()
        return labels_beside(scores, labels, votes.leaders(scores, 2))
