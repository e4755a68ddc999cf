"""Combines the decision values of binary problems into a class: one-vs-one votes with ties, or the largest value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .. import _core
from ..data.dataset import class_signs, outputs
from ..linalg.array_api import asarray_like, cast, is_array_api, namespace, widest_float
from ..linalg.arrays import Array
from ..linalg.matrix import dot


@dataclass(frozen=True)
class Votes:
    """The rule that turns decision values (rows x problems) into a class.

    For two classes the sign of the one value decides. For several classes the largest value wins or, with ``pairs``,
    the class with most one-vs-one votes. Ties of votes go to the class with the largest sum of values or, without
    ``by_value``, to the first class. With ``zero_is_positive`` the value 0 counts as positive.
    """

    pairs: bool = False
    by_value: bool = True
    zero_is_positive: bool = False

    def scores(self, F: Array, n_classes: int) -> Array:
        """A score for each class; the largest score wins, the first class among equals.

        Sums of values are squeezed into (-1/3, 1/3) and added to the votes: they break ties but never outweigh a vote.
        """
        if F.shape[1] == 1:
            wins = self._wins(F)
            return cast(namespace(F).concat([~wins, wins], axis=1), widest_float(F))
        if not self.pairs:
            return F
        if is_array_api(F):
            return self._pair_scores(F, n_classes)
        F = np.ascontiguousarray(F, dtype=np.float64)
        return _core.pair_scores(F, n_classes, self.by_value, self.zero_is_positive)

    def leaders(self, F: Array, n_classes: int) -> Array:
        """The class number with the highest score in each row."""
        if F.shape[1] == 1:
            return cast(self._wins(F)[:, 0], np.intp if isinstance(F, np.ndarray) else namespace(F).int64)
        return namespace(F).argmax(self.scores(F, n_classes), axis=1)

    def winners(self, F: Array, n_classes: int) -> Array:
        """The class numbers of `leaders`, with exact ties: also for integer values of any size."""
        if F.shape[1] == 1 or not self.pairs:
            return self.leaders(F, n_classes)
        votes, sums = self._counted(F, n_classes)
        if not self.by_value:
            return votes.argmax(axis=1)
        behind = votes < votes.max(axis=1, keepdims=True)
        return np.ma.masked_array(sums, behind).argmax(axis=1)

    def _wins(self, F: Array) -> Array:
        return F >= 0 if self.zero_is_positive else F > 0

    def _pair_scores(self, F: Any, n_classes: int) -> Any:
        """`_core.pair_scores`, computed on the device of F."""
        F = cast(F, widest_float(F))
        side = asarray_like(F, _sides_of_pairs(n_classes), F.dtype)
        votes = (cast(self._wins(F), F.dtype) - 0.5) @ side + (n_classes - 1) / 2
        sums = F @ side
        return votes + sums / (3 * (namespace(F).abs(sums) + 1)) if self.by_value else votes

    def _counted(self, F: Array, n_classes: int) -> tuple[Array, Array]:
        """The votes and the sums of values of each class."""
        side = _sides_of_pairs(n_classes)
        sums = dot(F, side.astype(F.dtype) if F.dtype.kind == "i" else side)
        return dot(np.where(self._wins(F), 1.0, -1.0), side) / 2 + (n_classes - 1) / 2, sums


@lru_cache(maxsize=16)
def _sides_of_pairs(n_classes: int) -> Array:
    """The sign of each class in each pair (pairs x classes): +1 for the first of a pair, -1 for the second."""
    return np.ascontiguousarray(class_signs(n_classes, outputs(n_classes, "ovo")).T)
