"""A classifier of a given number of vectors, which are learned."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..data.dataset import Dataset
from ..model.expansion import Model
from ..problem import regularizers, slacks
from ..solvers.primal.refit import ClassProblem
from ..training.slim import SlimSpec, train_slim
from .base import KernelClassifier, atomic, available_if
from .checked_data import training_data
from .documentation import documented
from .slim_parameters import check_remote, check_slim, slim_spec
from .streams import ClassStream, check_stream_kernel, partial_fit
from .targets import ClassTargets
from .validation import check_common, factors_of, is_precomputed, warn_of_inputs


def _check_streams(model: Any) -> None:
    if model.max_bytes is not None and not is_precomputed(model.kernel):
        raise AttributeError(
            f"no partial_fit with max_bytes={model.max_bytes}, which is for fit. Leave it out and set n_vectors; "
            "model_bytes_ says what that takes"
        )
    check_stream_kernel(model)


@documented
class SlimSVC(KernelClassifier):
    """Kernel classifier of at most ``n_vectors`` vectors, made as accurate as learning can make it.

    The vectors are not training rows: they are learned, together with the coefficients over them, so that 10 to 50 of
    them do what hundreds or thousands do for a support vector machine. ``C``, ``gamma`` and the scales of the inputs
    are found by a quick internal validation unless they are given.

    Parameters
    ----------
    n_vectors : int or "auto", default=20
        How many vectors the model keeps at most, all classes together. Fewer if there are fewer distinct rows. "auto":
        as few as do as well as any number up to 128, by validation; see `slimsvm.frontier`. Not used where
        ``max_bytes`` is given.
    basis : {"learned", "forward", "kmeans", "random", "cholesky"}, array or basis object, default="learned"
        Where the vectors come from: learned (moved by gradients), training rows chosen one by one for what they gain,
        centres of clusters within each class, random training rows, training rows far from the span of the others; or
        an array with a row for each vector (``n_vectors`` is then not used). `slimsvm.bases.Learned` has the finer
        settings of learning: ``basis=Learned(init="forward", iterations=300)``.
    <regularizer>
    C : "search" or float, default="search"
        Cost of slacks, above 0.
    <gamma_to_search>
    <scales>
    <kernel_to_learn>
    <degree>
    <class_weight>
    multi_class : {"ovo", "ovr"}, default="ovo"
        More than two classes: a binary problem for each pair of classes, or for each class against the others; all of
        them over the same vectors. With ``max_bytes``, "ovo" stands for the better of the two at that size, found by
        validation.
    <max_bytes>
    memory : int, default=20000
        Rows of a stream that `partial_fit` keeps at most. Not used in `fit`.
    recent : bool, default=False
        Which rows `partial_fit` keeps: a random sample of all that came, or the last ones. For streams whose rows or
        labels change with time; ``memory`` then says how far back it looks, such as 5000 rows.
    <probability>
    <primal_tol>
    <n_jobs>
    <random_state>
    <verbose>

    Attributes
    ----------
    <vectors_>
    <support_of_rows_>
    <small_objective_>
    <probability_coef_>
    <kernel_>
    search_results_ : dict
        What the internal validation tried: lists of ``C``, ``gamma``, ``scales`` with their mean ``error`` and ``loss``
        on rows held out, and on how many ``folds``: the best get a second look, others end early. Empty if nothing was
        to be found.
    C_ : float
        C as used.
    multi_class_ : str
        "ovo" or "ovr", as used.
    frontier_ : object
        Only with ``n_vectors="auto"``: ``sizes`` that were tried, ``scores`` (the share of rows held out that was
        right, by weight) and their ``standard_errors``.
    <learning_>
    <stream_>

    References
    ----------
    .. [1] M. Wu, B. Schoelkopf, G. Bakir. Building Sparse Large Margin Classifiers. ICML 2005.
    .. [2] S. S. Keerthi, O. Chapelle, D. DeCoste. Building Support Vector Machines with Reduced Classifier Complexity.
       JMLR 7, 2006.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import SlimSVC
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> clf = SlimSVC(n_vectors=8).fit(X, y)
    >>> clf.n_vectors_, bool(clf.score(X, y) > 0.95)
    (8, True)
    """

    def __init__(
        self,
        n_vectors: int | str = 20,
        basis: Any = "learned",
        *,
        slack: Any = "l2",
        regularizer: Any = "kernel",
        C: float | str = "search",
        gamma: float | str = "search",
        scales: str = "search",
        kernel: Any = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        class_weight: Any = None,
        multi_class: str = "ovo",
        max_bytes: int | None = None,
        memory: int = 20000,
        recent: bool = False,
        probability: bool = False,
        tol: float = 1e-6,
        max_iter: int = 100,
        cache_size: float = 1000,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: bool = False,
    ):
        self.n_vectors = n_vectors
        self.basis = basis
        self.slack = slack
        self.regularizer = regularizer
        self.C = C
        self.gamma = gamma
        self.scales = scales
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.max_bytes = max_bytes
        self.memory = memory
        self.recent = recent
        self.probability = probability
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

        <fit_classifier_anywhere>
        """
        spec, targets = self._spec(), ClassTargets(self.class_weight)
        may_be_remote = partial(check_remote, self, spec.basis)
        with training_data(self, X, y, sample_weight, targets, check_remote=may_be_remote) as dataset:
            model = train_slim(dataset, spec)
            warn_of_inputs(self, dataset, model.expansion.kernel)
        return self._set_fitted(dataset, model.with_attributes(multi_class_=model.scheme))

    @available_if(_check_streams)
    @documented
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Go on with a block of rows: the next one of a stream.

        <partial_fit>

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The next rows.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like, optional
            All labels that will ever come. Needed in the first call, unless the first rows have them all. A class is
            not predicted before it has come.
        sample_weight : array-like of shape (n_samples,), optional
            Rows are kept, and count, by their weights.

        Returns
        -------
        self

        Notes
        -----
        The model is made anew when a twentieth of the rows in memory are new to it, or a class is: calls of a few rows
        only fill the memory meanwhile. After `fit`, the model of `fit` stays until the memory has as many rows as
        `fit` had, or is full. `fit` forgets all that came before.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from slimsvm import SlimSVC
        >>> X, y = make_moons(2000, noise=0.2, random_state=0)
        >>> clf = SlimSVC(n_vectors=8, memory=1000)
        >>> for start in range(0, 2000, 500):
        ...     rows = slice(start, start + 500)
        ...     clf = clf.partial_fit(X[rows], y[rows], classes=[0, 1])
        >>> clf.n_samples_seen_, clf.stream_.memory.size, bool(clf.score(X, y) > 0.95)
        (2000, 1000, True)
        """
        return partial_fit(self, ClassStream(self.class_weight, classes), X, y, sample_weight)

    def _spec(self) -> SlimSpec:
        """The parameters for training; ValueError for those that make no sense."""
        check_common(self, least_iter=1, gammas=("search", "scale", "auto"))
        regularizers.resolve(self.regularizer)
        loss = slacks.loss(self.slack)
        check_slim(self)
        return slim_spec(self, loss, scheme=self.multi_class, probability=bool(self.probability))

    def _set_fitted(self, dataset: Dataset, model: Model) -> Any:
        self.n_samples_seen_ = dataset.n_samples
        return super()._set_fitted(dataset, model)

    def _refit_problem(self) -> ClassProblem:
        factors = partial(factors_of, self)
        return ClassProblem(self.C_, factors, slacks.loss(self.slack), self.regularizer_, self.tol, self.max_iter)
