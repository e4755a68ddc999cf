"""A regressor of a given number of vectors, which are learned."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..data.dataset import Dataset
from ..linalg.array_api import asarray_like, is_array_api, namespace
from ..linalg.arrays import Array
from ..model.expansion import Model
from ..problem import losses, regularizers
from ..rows.dask_partitions import is_dask
from ..solvers.primal.refit import Refit, TargetProblem
from ..training.intervals import residual_quantiles
from ..training.slim import SlimSpec, in_user_units, train_slim
from .base import KernelRegressor, atomic, available_if
from .checked_data import training_data
from .documentation import documented
from .slim_parameters import check_remote, check_slim, slim_spec
from .streams import TargetStream, check_stream_kernel, partial_fit
from .targets import RegressionTargets
from .validation import check_common, check_number, check_yes_or_no, is_number, warn_of_inputs


def _check_intervals(model: Any) -> None:
    state = vars(model)
    if "residuals_" not in state and not (model.intervals and "vectors_" not in state):
        raise AttributeError("SlimSVR has no intervals without intervals=True: set it, and fit again")


@documented
class SlimSVR(KernelRegressor):
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
    <scales>
    <kernel_to_learn>
    <degree>
    <max_bytes>
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
    <support_of_rows_>
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
    <learning_>
    <stream_>

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

    @documented
    @atomic
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model.

        <fit_regressor_anywhere>
        """
        spec, targets = self._spec(), self._targets()
        may_be_remote = partial(check_remote, self, spec.basis)
        with training_data(self, X, y, sample_weight, targets, check_remote=may_be_remote) as dataset:
            model = train_slim(dataset, spec)
            warn_of_inputs(self, dataset, model.expansion.kernel)
        return self._set_fitted(dataset, model)

    @available_if(check_stream_kernel)
    @documented
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Go on with a block of rows: the next one of a stream.

        <partial_fit>

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The next rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            Rows are kept, and count, by their weights.

        Returns
        -------
        self

        Notes
        -----
        The model is made anew when a twentieth of the rows in memory are new to it: calls of a few rows only fill the
        memory meanwhile. After `fit`, the model of `fit` stays until the memory has as many rows as `fit` had, or is
        full. `fit` forgets all that came before.

        Examples
        --------
        >>> from sklearn.datasets import make_friedman1
        >>> from slimsvm import SlimSVR
        >>> X, y = make_friedman1(2000, noise=1.0, random_state=0)
        >>> model = SlimSVR(n_vectors=10, memory=1000)
        >>> for start in range(0, 2000, 500):
        ...     model = model.partial_fit(X[start : start + 500], y[start : start + 500])
        >>> model.n_samples_seen_, model.stream_.memory.size, bool(model.score(X, y) > 0.9)
        (2000, 1000, True)
        """
        return partial_fit(self, TargetStream(self._targets()), X, y, sample_weight)

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

    def _spec(self) -> SlimSpec:
        """The parameters for training; ValueError for those that make no sense."""
        check_common(self, least_iter=1, gammas=("search", "scale", "auto"))
        regularizers.resolve(self.regularizer)
        check_slim(self)
        check_number("epsilon", self.epsilon, at_least=0)
        check_yes_or_no("intervals", self.intervals)
        loss = losses.resolve(self.loss, self.epsilon)
        return slim_spec(self, loss, intervals=bool(self.intervals), problems="targets")

    def _targets(self) -> RegressionTargets:
        return RegressionTargets(not losses.resolve(self.loss, self.epsilon).scale_invariant)

    def _set_fitted(self, dataset: Dataset, model: Model) -> Any:
        """In the user's units."""
        self.n_samples_seen_ = dataset.n_samples
        loss = losses.resolve(self.loss, self.epsilon)
        return super()._set_fitted(dataset, in_user_units(model, dataset, loss, self.C))

    def _refit_problem(self) -> Refit:
        loss = losses.resolve(self.loss, self.epsilon)
        return TargetProblem(self.C_, loss, self.regularizer_, self.tol, self.max_iter)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
