"""Predicts one row in about a microsecond: the model is checked once, and calls only compute."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import log_expit
from sklearn.utils.metaestimators import available_if

from ..linalg.arrays import Array
from ..model.probabilities import align_with_winners, log_probabilities
from ..problem.bases import dense
from .expansion import Expansion
from .inference import InferenceModel, ProbabilityLayer, inference_model, last_step

ROW_DTYPES = (np.dtype(np.float64), np.dtype(np.float32))


def _has_probabilities(predictor: Any) -> bool:
    if predictor._model.layer is None:
        raise AttributeError("the model has no probabilities; fit it with probability=True, and make another Predictor")
    return True


class Predictor:
    """A fitted model for one row at a time: about a microsecond where `predict` of the model takes many.

    The model is checked once, when the predictor is made. After that a call only checks the length and the type of the
    row.

    Parameters
    ----------
    model : fitted estimator of slimsvm, or Pipeline of scalers that ends in one
        Scalers that treat each input by itself, such as `StandardScaler`, become part of the arithmetic. The
        predictor copies what it needs: the model may be fitted again, changed or deleted.

    Attributes
    ----------
    classes_ : ndarray or None
        Labels, as the model has them: -1 and 1 for an outlier detector, None for a regressor.
    n_features_in_ : int
        Numbers in a row.

    Notes
    -----
    Rows are not checked for NaN or infinite values, whose predictions mean nothing. Column names are ignored: inputs
    come in the order in which the model was fitted.

    The core evaluates all kernels except Python functions and ``"precomputed"``, which run at NumPy's speed. With a
    kernel of the core, dense vectors and no pipeline, predictions are the model's bit for bit. Otherwise they differ
    from the model's by rounding.

    One row is a 1-D array of float64 or float32, also `array.array` and `memoryview`. Lists, integers and 2-D arrays
    are taken too, with more work.

    Threads may share a predictor. It can be pickled, and the copy does not need the model.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import Predictor, SlimSVC
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> clf = SlimSVC(n_vectors=6).fit(X, y)
    >>> fast = Predictor(clf)
    >>> bool(fast.predict(X[0]) == clf.predict(X[:1])[0])
    True
    >>> bool(fast.decision_function(X[0]) == clf.decision_function(X[:1])[0])
    True
    """

    def __init__(self, model: Any):
        inference = inference_model(model)
        given = last_step(model)[1]._expansion()
        vectors = dense(given.vectors) if sp.issparse(given.vectors) else given.vectors
        expansion = Expansion(given.kernel, _own(vectors), _own(given.coef), _own(given.bias))
        self._prepare(replace(inference, expansion=expansion, layer=_own_layer(inference.layer)))

    @classmethod
    def _of(cls, model: InferenceModel) -> Predictor:
        predictor = object.__new__(cls)
        predictor._prepare(model)
        return predictor

    def __reduce__(self) -> Any:
        return self._of, (self._model,)

    def _prepare(self, model: InferenceModel) -> None:
        self._model = model
        self.classes_ = model.classes
        self.n_features_in_ = model.n_inputs
        self._labels = None if model.classes is None else list(model.classes)  # faster than an array
        self._row = self._row_model(model.expansion)
        if model.votes is not None:
            self._row.decide(self._n_classes, *astuple(model.votes))
        if model.shown is not None:
            self._row.show_scores(*astuple(model.shown))
        self._stacked = None if model.layer is None else _stacked(model.expansion, model.layer)
        self._odds_row: Any = None if self._stacked is None else self._row_model(self._stacked)

    def _row_model(self, expansion: Expansion) -> Any:
        model = expansion.kernel.row_model(expansion.vectors, expansion.coef, expansion.bias)
        if model is not None and self._model.inputs.folded:
            model.standardise(self._model.inputs.mean, self._model.inputs.scale)
        return _PythonRowModel() if model is None else model

    @property
    def _n_classes(self) -> int:
        return len(self._labels or ())

    def predict(self, X: Any) -> Any:
        """The label of a row, or of each of several rows; for a regressor the value.

        Parameters
        ----------
        X : array of shape (n_features,) or (n_rows, n_features)

        Returns
        -------
        One label, or an array of shape (n_rows,).
        """
        if self._labels is None:
            return self._shown(X)
        number = self._row.winner(X)
        return self._predicted(self._checked(X)) if number is None else self._labels[number]

    def decision_function(self, X: Any) -> Any:
        """The model's `decision_function`.

        Parameters
        ----------
        X : array of shape (n_features,) or (n_rows, n_features)

        Returns
        -------
        For one row a float, or an array where there is a score for each class or pair of classes; for several rows an
        array with an entry for each.
        """
        if self._labels is None:
            raise AttributeError("a regressor has no decision_function; predict gives its values")
        return self._shown(X)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, if the model has them; NumPy computes them in some tens of microseconds.

        Parameters
        ----------
        X : array of shape (n_features,) or (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_classes,) or (n_rows, n_classes), in the order of ``classes_``.
        """
        layer, stacked = self._model.layer, self._stacked
        assert layer is not None
        assert stacked is not None
        values = self._odds_row.values(X)
        if values is None:
            X = self._checked(X)
            values = self._odds_row.values(X)
        row = values is not None or X.ndim == 1
        F = self._decided(X, stacked) if values is None else values[None]
        scores, odds = F[:, : -len(layer.bias)], F[:, -len(layer.bias) :]
        log_p = log_probabilities(log_expit(odds) if layer.shares else odds)
        if scores.shape[1]:
            log_p = align_with_winners(self._winners(scores), log_p)
        p = np.exp(log_p)
        return p[0] if row else p

    def _shown(self, X: Any) -> Any:
        shown = self._row.shown(X)
        return self._computed(self._checked(X)) if shown is None else shown

    def _computed(self, X: Array) -> Any:
        """`decision_function` for input that needed conversion, or several rows."""
        shown = self._row.shown(X)
        if shown is not None:
            return shown
        F, votes = self._decided(X, self._model.expansion), self._model.shown
        F = F if votes is None else votes.scores(F, self._n_classes)
        F = F[:, 0] if F.shape[1] == 1 else F
        return F[0] if X.ndim == 1 else F

    def _predicted(self, X: Array) -> Any:
        """`predict` for input that needed conversion, or several rows."""
        assert self._labels is not None
        assert self.classes_ is not None
        number = self._row.winner(X)
        if number is not None:
            return self._labels[number]
        labels = self.classes_[self._winners(self._decided(X, self._model.expansion))]
        return labels[0] if X.ndim == 1 else labels

    def _winners(self, F: Array) -> Array:
        assert self._model.votes is not None
        return self._model.votes.leaders(F, self._n_classes)

    def _decided(self, X: Array, expansion: Expansion) -> Array:
        """Decision values of a 2-D array, or of one row where Python evaluates the kernel."""
        X = np.atleast_2d(X)
        return expansion.decision(self._model.inputs(X) if self._model.inputs.folded else X)

    def _checked(self, X: Any) -> Array:
        """One row or several as a float64 or float32 array, checked for shape and type."""
        if sp.issparse(X):
            raise TypeError("a Predictor takes dense rows; give X.toarray(), or use the model itself")
        given = np.asarray(X)
        if given.ndim not in (1, 2) or given.shape[-1] != self.n_features_in_:
            raise ValueError(
                f"X has the shape {given.shape}; a row of this model is an array of {self.n_features_in_} numbers, "
                f"several rows have the shape (n_rows, {self.n_features_in_})"
            )
        if given.dtype.kind not in "fiub":
            raise TypeError(f"X has the type {given.dtype}; give float64 or float32, as X.astype(float)")
        return given if given.dtype in ROW_DTYPES else given.astype(np.float64)

    def __repr__(self) -> str:
        expansion = self._model.expansion
        size = f"{expansion.coef.shape[1]} vectors of {self.n_features_in_} inputs"
        return f"<Predictor: {size}, kernel {expansion.kernel.name!r}>"


class _PythonRowModel:
    """Placeholder for the core's row model where Python evaluates the kernel: it returns None for every row."""

    def winner(self, row: Any) -> None:
        return None

    shown = values = winner

    def decide(self, *votes: Any) -> None:
        """No-op."""

    show_scores = decide


def _own(array: Array) -> Array:
    """A read-only copy in C order."""
    kept = np.array(array, order="C")
    kept.flags.writeable = False
    return kept


def _own_layer(layer: ProbabilityLayer | None) -> ProbabilityLayer | None:
    return None if layer is None else replace(layer, coef=_own(layer.coef), bias=_own(layer.bias))


def _stacked(expansion: Expansion, layer: ProbabilityLayer) -> Expansion:
    """Outputs of the expansion and of the probability layer in one expansion; only the layer if both have the same
    coefficients."""
    if np.array_equal(layer.coef, expansion.coef):
        return replace(expansion, coef=layer.coef, bias=layer.bias)
    coef, bias = np.vstack([expansion.coef, layer.coef]), np.append(expansion.bias, layer.bias)
    return replace(expansion, coef=coef, bias=bias)
