"""A regressor of a given number of vectors, which are learned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..data.dataset import Dataset
from ..linalg.array_api import asarray_like, is_array_api, namespace
from ..linalg.arrays import Array
from ..model.expansion import Model
from ..problem import losses
from ..rows.dask_partitions import is_dask
from ..solvers.primal.refit import Refit, TargetProblem
from ..training import sizes
from ..training.intervals import held_out_residuals, residual_quantiles
from ..training.search import SearchSpace, search_space
from ..training.spec import Hyperparameters, TrainingSpec
from ..training.trials import Fold
from .base import available_if
from .documentation import documented
from .regressor import r2_of
from .stream_regressor import StreamRegressor
from .validation import check_number, check_yes_or_no, is_number
from .within_bytes import WithinBytes


def _check_intervals(model: Any) -> None:
    reason = model._lacks_intervals()
    if reason:
        raise AttributeError(reason)


@documented
class SlimSVR(WithinBytes, StreamRegressor):
    """Kernel regression from at most ``n_vectors`` vectors, made as accurate as learning can make it.

    The vectors are not training rows: they are learned, together with the coefficients over them, so that 10 to 50 of
    them do what hundreds or thousands do for a support vector machine. Several targets share the vectors. ``C``,
    ``gamma`` and the scales of the inputs are found by a quick internal validation unless they are given.

    Parameters
    ----------
    n_vectors : int or "auto", default=20
        How many vectors the model keeps at most, all targets together. Fewer if there are fewer distinct rows. "auto":
        as few as do as well as any number up to 128, by validation; see `slimsvm.frontier`. Not used where
        ``max_bytes`` is given.
    basis : {"learned", "forward", "kmeans", "random", "cholesky"}, array or basis object, default="learned"
        Where the vectors come from: learned (moved by gradients), training rows chosen one by one for what they gain,
        centres of clusters, random training rows, training rows far from the span of the others; or an array with a
        row for each vector (``n_vectors`` is then not used). `slimsvm.bases.Learned` has the finer settings of
        learning: ``basis=Learned(init="forward", iterations=300)``.
    loss : {"squared_error", "epsilon_insensitive", "squared_epsilon_insensitive", "huber"} or object of \
`slimsvm.losses`, default="squared_error"
        What a residual r costs: ``r^2 / 2``; ``(|r| - epsilon)_+``, as in scikit-learn's SVR; half the square of that;
        or half the square up to ``|r| = epsilon`` and straight from there, divided by epsilon, so that outliers count
        less.
    epsilon : float, default=0.1
        Of the loss, in units of y. Not used with squared errors.
    regularizer : {"kernel", "identity"} or object of `slimsvm.regularizers`, default="kernel"
        The norm of f in the kernel's space, or the sum of squared coefficients.
    C : "search" or float, default="search"
        Cost of residuals, above 0: ``1/2 |f|^2 + C sum loss`` is minimised, in units of y.
    <gamma_to_search>
    scales : {"search", "fixed", "learned"}, default="search"
        One scale for each input, learned with the vectors, or the same for all. Inputs then count by their use; the
        scales are in ``kernel_.scales``.
    <kernel_to_learn>
    <degree>
    max_bytes : int, optional
        Bytes that the model may take on a device, in the place of ``n_vectors``: 8-bit vectors, 16-bit coefficients,
        and all else that it needs (`slimsvm.export.quantize`). The vectors are then numbers that 8 bits can hold, and
        the coefficients the best over them.
    memory : int, default=20000
        Rows of a stream that `partial_fit` keeps at most. Not used in `fit`.
    recent : bool, default=False
        Which rows `partial_fit` keeps: a random sample of all that came, or the last ones. For streams whose rows or
        targets change with time; ``memory`` then says how far back it looks, such as 5000 rows.
    intervals : bool, default=False
        Whether `fit` prepares `predict_interval`: models are learned without some of the rows, which then say how large
        residuals are. It takes a few times as long.
    <primal_tol>
    <n_jobs>
    <random_state>
    <verbose>

    Attributes
    ----------
    <vectors_>
    support_ : ndarray of shape (n_vectors_,)
        Rows of the training set that `vectors_` are; only where they are rows.
    <small_objective_>
    <kernel_>
    search_results_ : dict
        What the internal validation tried: lists of ``C``, ``gamma``, ``scales`` with their mean ``loss`` on rows held
        out (of targets of variance 1), and on how many ``folds``: the best get a second look, others end early. Empty
        if nothing was to be found.
    C_ : float
        C as used.
    frontier_ : object
        Only with ``n_vectors="auto"``: ``sizes`` that were tried, ``scores`` (R^2 on rows held out) and their
        ``standard_errors``.
    residuals_ : ndarray of shape (n_rows, n_outputs)
        Only with ``intervals=True``: sizes of residuals of rows that shaped neither vectors nor coefficients.
    residual_weights_ : ndarray of shape (n_rows,)
        What these rows count.
    learning_iter_ : int
        Iterations of learning, where vectors were learned.
    learning_gain_left_ : float
        What learning may have left: the relative gain of its last quarter of iterations where their limit ended it
        (with a warning from 0.02 on), else 0.
    n_samples_seen_ : int
        Rows that `fit` or all calls of `partial_fit` were given.
    stream_ : object
        Only after `partial_fit`: the rows in memory, ``stream_.memory.X``, and what else it needs to go on.
        ``objective_`` and ``duality_gap_`` are about these rows.

    See Also
    --------
    SlimSVC : The same for classes.
    CompressedRegressor : A small version of a regressor that was fitted before.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from slimsvm import SlimSVR
    >>> X, y = make_friedman1(500, noise=1.0, random_state=0)
    >>> model = SlimSVR(n_vectors=15).fit(X, y)
    >>> model.n_vectors_, bool(model.score(X, y) > 0.94)
    (15, True)
    """

    problems = "targets"

    def __init__(
        self,
        n_vectors: int | str = 20,
        basis: Any = "learned",
        *,
        loss: Any = "squared_error",
        epsilon: float = 0.1,
        regularizer: Any = "kernel",
        C: float | str = "search",
        gamma: float | str = "search",
        scales: str = "search",
        kernel: Any = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        max_bytes: int | None = None,
        memory: int = 20000,
        recent: bool = False,
        intervals: bool = False,
        tol: float = 1e-6,
        max_iter: int = 100,
        cache_size: float = 1000,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: bool = False,
    ):
        self.n_vectors = n_vectors
        self.basis = basis
        self.loss = loss
        self.epsilon = epsilon
        self.regularizer = regularizer
        self.C = C
        self.gamma = gamma
        self.scales = scales
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.max_bytes = max_bytes
        self.memory = memory
        self.recent = recent
        self.intervals = intervals
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_params(self) -> None:
        super()._check_params()
        check_number("epsilon", self.epsilon, at_least=0)
        check_yes_or_no("intervals", self.intervals)
        losses.of_targets(self.loss, self.epsilon)

    @property
    def units_alike(self) -> bool:
        return not losses.of_targets(self.loss, self.epsilon).without_unit

    def _loss(self, dataset: Dataset) -> Any:
        return self._measured_loss(dataset)[0]

    def _measured_loss(self, dataset: Dataset) -> tuple[Any, float]:
        """The loss in the task's units, and what a cost in the user's units is there."""
        assert dataset.units is not None
        size = float(dataset.units.size[0])  # all are the same, or the loss has no unit
        loss, factor = losses.of_targets(self.loss, self.epsilon).in_units(size)
        return loss, factor / size**2

    def _setting_for(self, dataset: Dataset) -> Hyperparameters:
        cost = self._space(dataset, self._recipe(dataset)).C
        return self._setting if cost is None else replace(self._setting, C=cost)

    def _space(self, dataset: Dataset, spec: TrainingSpec) -> SearchSpace:
        cost = self.C if isinstance(self.C, str) else losses.few_digits(self.C * self._measured_loss(dataset)[1])
        return search_space(dataset, cost, self.gamma, self.scales, spec)

    def _finished(
        self, dataset: Dataset, model: Model, spec: TrainingSpec, setting: Hyperparameters, rng: np.random.Generator
    ) -> Model:
        if not self.intervals:
            return model
        missed, counts = held_out_residuals(dataset, spec, setting, rng, model.expansion)
        return replace(model, more=model.more | {"residuals_": missed, "residual_weights_": counts})

    def _set_fitted(self, dataset: Dataset, model: Model, scheme: str = "") -> Any:
        assert dataset.units is not None
        unit, more = self._measured_loss(dataset)[1], dict(model.more)
        if "residuals_" in more:
            more["residuals_"] = dataset.units.size * more["residuals_"]
        if "C_" in more:
            more["C_"] = more["C_"] / unit if isinstance(self.C, str) else float(self.C)
        if "search_results_" in more:
            tried = {name: part for name, part in more["search_results_"].items() if name != "error"}
            more["search_results_"] = tried | ({"C": [C / unit for C in tried["C"]]} if tried else {})
        return super()._set_fitted(dataset, replace(model, more=more))

    def _refit_problem(self) -> Refit:
        loss = losses.of_targets(self.loss, self.epsilon)
        return TargetProblem(self.C_, loss, self.regularizer_, self.tol, self.max_iter)

    def _judge(self, part: Fold, model: Model) -> sizes.FoldScore:
        test = part.test
        score, missed = r2_of(test.targets, model.expansion.decision(test.X, test.threads), test.weights)
        return sizes.regression_score(score, missed, test.weights, len(np.unique(test.keys)))

    @available_if(_check_intervals)
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Intervals that hold the true values of new rows with a given probability, if these are like the old ones.

        They are as wide as residuals of rows that had no part in the vectors and coefficients say (conformal
        prediction): nothing is assumed of their distribution. All rows get the same width.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        coverage : float, default=0.9
            The probability, between 0 and 1. Of several targets each one's interval has it.

        Returns
        -------
        ndarray of shape (n_samples, 2), or (n_samples, n_outputs, 2) where y had columns: lower and upper ends. They
        are infinite where rows are too few to tell.

        Examples
        --------
        >>> from sklearn.datasets import make_friedman1
        >>> from slimsvm import SlimSVR
        >>> X, y = make_friedman1(700, noise=1.0, random_state=0)
        >>> model = SlimSVR(10, intervals=True).fit(X[:500], y[:500])
        >>> low, high = model.predict_interval(X[500:], coverage=0.8).T
        >>> bool(0.7 < ((low <= y[500:]) & (y[500:] <= high)).mean() < 0.9)
        True
        """
        fitted = self._snapshot()
        if not (is_number(coverage) and 0 < coverage < 1):
            raise ValueError(f"coverage={coverage!r} must be a number between 0 and 1")
        values = fitted.predict(X)
        reach = residual_quantiles(fitted.residuals_, fitted.residual_weights_, float(coverage))
        reach = reach[0] if fitted._single else reach
        if is_dask(values):
            from dask.array import stack

            return stack([values - reach, values + reach], axis=-1)
        reach = asarray_like(values, reach, values.dtype) if is_array_api(values) else reach
        return namespace(values).stack([values - reach, values + reach], axis=-1)

    def _lacks_intervals(self) -> str | None:
        """Why there are none, in words; None if there are."""
        if hasattr(self, "residuals_") or (self.intervals and not hasattr(self, "vectors_")):
            return None
        return "SlimSVR has no intervals without intervals=True: set it, and fit again"
