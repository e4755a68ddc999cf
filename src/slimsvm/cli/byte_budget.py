"""Fits a pipeline within a byte budget that includes the scaler."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from ..quantization.quantize import to_integers
from ..training.byte_budget import TooFewBytes
from .data import LabelledFrame
from .errors import CommandError
from .models import device_bytes, without_encoding

MAX_FITS = 5  # fits in the search for the largest model
# On a device a scaler is a gain and an offset per input, two bytes each. They replace the common gain and offset (eight
# bytes) of a model with fixed scales, or the gains per input and the common offset of a model with learned scales.
SCALED_INPUT, LEARNED_INPUT, COMMON = 4, 2, 8


def fitted(prototype: Any, rows: LabelledFrame, max_bytes: int | None) -> Any:
    """A fitted copy of the pipeline; with ``max_bytes``, the largest model found that stays within it, scaler included.

    The estimator's own ``max_bytes`` excludes the scaler, whose bytes depend on the inputs that the fitted model uses.
    """
    if max_bytes is None:
        return rows.fit(_copy(prototype))
    trials = BudgetTrials(prototype, rows, max_bytes)
    return trials.largest() or trials.smallest()


def _copy(prototype: Any, **settings: Any) -> Any:
    step = prototype.steps[-1][0]
    return clone(prototype).set_params(**{f"{step}__{name}": value for name, value in settings.items()})


class BudgetTrials:
    """Fits the pipeline with several values of the estimator's ``max_bytes``; keeps the largest within the budget."""

    def __init__(self, prototype: Any, rows: LabelledFrame, max_bytes: int):
        self.prototype, self.rows, self.max_bytes = prototype, rows, max_bytes
        self.fewest = self._fewest()
        self.best: Any = None
        self.best_bytes = 0

    def _fewest(self, **settings: Any) -> int:
        """Bytes of the estimator's smallest model, taken from the error of a fit with ``max_bytes=1``."""
        try:
            self.rows.fit(_copy(self.prototype, max_bytes=1, **settings))
        except TooFewBytes as error:
            return error.fewest
        return 1

    def _fit(self, left: int, **settings: Any) -> tuple[Any, int]:
        """Fit with ``max_bytes=left``, or the smallest model; return the model and its bytes with the scaler."""
        try:
            model = self.rows.fit(_copy(self.prototype, max_bytes=left, **settings))
        except TooFewBytes as error:  # vectors far from zero need more than the minimum
            return self._fit(error.fewest, **settings)
        size = device_bytes(model)
        if self.best_bytes < size <= self.max_bytes:
            self.best, self.best_bytes = model, size
        return model, size

    def largest(self) -> Any:
        """The largest model found within the budget by a bracketed search over ``max_bytes``; None if there is none."""
        fits, fits_not = self.fewest - 1, self.max_bytes + COMMON + 1
        left = max(self.fewest, self.max_bytes - self._scaling())
        for _ in range(MAX_FITS):
            if not fits < left < fits_not:
                left = (fits + fits_not) // 2
                if left <= fits:
                    break
            model, size = self._fit(left)
            if size > self.max_bytes:
                fits_not = left
            else:
                fits = left
                if not _would_grow(model, left, self.max_bytes - size):
                    break
            left += self.max_bytes - size
        return self.best

    def _scaling(self) -> int:
        """Estimated bytes of the scaler, in addition to those that the estimator counts."""
        first = _copy(self.prototype)[:-1].fit(self.rows.X)
        inputs = first.transform(self.rows.X.iloc[:1]).shape[1]
        if self._scales() == "fixed":
            return SCALED_INPUT * inputs - COMMON
        return (SCALED_INPUT - LEARNED_INPUT) * inputs - COMMON // 2

    def _scales(self) -> str:
        """The parameter ``scales`` of the estimator; "fixed" for outlier detectors, which do not have it."""
        return str(self.prototype[-1].get_params().get("scales", "fixed"))

    def smallest(self) -> Any:
        """The smallest model; CommandError if it exceeds the budget."""
        choices: list[dict[str, Any]] = [{}]
        if self._scales() == "search":
            choices.append({"scales": "learned"})  # only learned scales can drop inputs
        too_large = []
        for choice in choices:
            fewest = self._fewest(**choice)
            model, size = self._fit(fewest, **choice)
            if size <= self.max_bytes:
                return model
            too_large.append((size, model[-1].n_vectors_))
        size, vectors = min(too_large)
        raise CommandError(
            f"--bytes {self.max_bytes} are too few: the smallest model, of {vectors} vector{'s' * (vectors != 1)}, "
            f"takes {size} with the scaling of its inputs; give more bytes or fewer --columns"
        )


def _would_grow(model: Any, left: int, unused: int) -> bool:
    """Is a larger model possible? True if one more vector fits the unused bytes and did not fit ``max_bytes=left``."""
    estimator = model[-1]
    parts = to_integers(without_encoding(model)).parts()
    vector = (parts.get("vectors", 0) + parts.get("coefficients", 0)) // max(1, int(estimator.n_vectors_))
    return 0 < vector <= unused and int(estimator.model_bytes_) + vector > left
