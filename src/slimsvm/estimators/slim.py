"""The best classifier of a given number of vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import block_diag
from sklearn.utils import check_array

from ..formulation import Array
from ..parts import bases, kernels, losses, regularizers, slacks
from ..parts.bases import Problem, even_shares, stratified
from ..progress import ProgressLine
from ..vectors.search import COSTS, WIDTHS, Setting, Space, search
from ..vectors.search import ITERATIONS as SEARCH_ITERATIONS
from ..vectors.training import Coefficients, Machines, Placed, Recipe, TrainingRows, one_vs_rest, place
from .small_basis import Model, SmallBasisClassifier
from .validation import FLOATS, check_choice, check_number, check_number_or


class SlimSVC(SmallBasisClassifier):
    """The most accurate kernel classifier of at most ``n_vectors`` vectors.

    The vectors are no training rows: they are learned, together with the machine over them, so that 10 to 50 of them
    do what the hundreds or thousands of a full support vector machine do. ``C``, ``gamma`` and the scales of the
    inputs are found by a quick internal validation unless they are given.

    Parameters
    ----------
    n_vectors : int, default=20
        How many vectors the model keeps at most, all classes together. Fewer if there are fewer distinct rows.
    basis : {"learned", "forward", "kmeans", "random", "cholesky"}, array or basis object, default="learned"
        Where the vectors come from: learned (moved by gradients), training rows chosen one by one for what they gain,
        centres of clusters within each class, random training rows, training rows far from the span of the others; or
        an array with a row for each vector (``n_vectors`` is then not used).
    init : {"kmeans", "forward", "random", "cholesky"}, array or basis object, default="kmeans"
        Where learned vectors start.
    slack : {"l2", "l1"} or object of `slimsvm.losses`, default="l2"
        C/2 times the sum of squared slacks, or C times the sum of slacks.
    regularizer : {"kernel", "identity"} or object of `slimsvm.regularizers`, default="kernel"
        The norm of f in the kernel's space, or the sum of squared coefficients.
    C : "search" or float, default="search"
        Cost of slacks, above 0.
    gamma : {"search", "scale", "auto"} or float, default="search"
        Factor in the rbf, laplacian, poly and sigmoid kernels. "scale": ``1 / (n_features * X.var())``;
        "auto": ``1 / n_features``.
    scales : {"search", "fixed", "learned"}, default="search"
        One scale for each input, learned with the vectors, or the same for all. Inputs then count by their use; the
        scales are in ``kernel_.scales``.
    kernel : {"rbf", "linear", "poly", "laplacian", "sigmoid", "precomputed"}, function or kernel, default="rbf"
        Vectors are learned with the first four, or a kernel with a method ``pullback``; the others need a basis of
        training rows.
    degree : int, default=3
        Degree of the poly kernel.
    coef0 : float, default=0.0
        Constant in the poly and sigmoid kernels.
    class_weight : dict or "balanced", optional
        Factors of C by class.
    vectors : {"shared", "per_class"}, default="shared"
        More than two classes: all machines use the same vectors, or each class has its own (and is told from all
        others, ``multi_class="ovr"``).
    multi_class : {"ovo", "ovr"}, default="ovo"
        More than two classes: a machine for each pair of classes, or for each class against the others.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Scores for each class, or for each pair of classes (only where ``multi_class="ovo"``).
    smoothing : float, default=0.5
        With ``slack="l1"``, vectors are learned for a hinge whose corner is rounded over this width; the machine over
        them then gets the hinge itself. 0 learns with the hinge itself, as in [1]_: much slower, not better.
    learning_iter : "auto" or int, default="auto"
        Most iterations of learning. "auto": 100, or 200 where scales are learned too.
    learning_rows : "auto" or int, default="auto"
        Vectors are learned on at most this many rows, drawn from each class in proportion; the machine over them is
        then fitted to all rows. "auto": 600 for each vector, at least 20000 and at most 100000.
    tol : float, default=1e-6
        Relative duality gap to be reached by the machine over the vectors.
    max_iter : int, default=100
        Most iterations of the solver for it.
    cache_size : float, default=1000
        Megabytes for features; beyond, they are computed anew in each pass over the rows.
    n_jobs : int, optional
        Threads for kernel values; None is one, -1 means all cores.
    random_state : int, RandomState or None, default=0
        Seed of all draws: the same seed gives the same model. None draws anew in each fit.
    verbose : bool, default=False
        Show progress on standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    vectors_ : ndarray or sparse matrix of shape (n_vectors_, n_features_in_)
        Row numbers of the training set where the kernel is precomputed.
    vector_coef_ : ndarray of shape (n_outputs, n_vectors_)
        ``f = vector_coef_ @ k(vectors_, x) + intercept_``; one output for two classes, one for each
        pair of classes (positive means the first of the pair) or for each class otherwise.
    intercept_ : ndarray of shape (n_outputs,)
    support_ : ndarray of shape (n_vectors_,)
        Rows of the training set that `vectors_` are; only where they are rows.
    n_vectors_ : int
    objective_ : ndarray of shape (n_outputs,)
        Value of the problem that is minimised over coefficients and bias.
    duality_gap_ : ndarray of shape (n_outputs,)
        Proof of the solution: the objective is at most this fraction above the best possible one.
    n_iter_ : ndarray of shape (n_outputs,)
    kernel_ : kernel object
        The kernel with gamma made a number.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X had column names.
    search_results_ : dict
        What the internal validation tried: lists of ``C``, ``gamma``, ``scales`` with their ``error`` and ``loss``.
        Empty if nothing was to be found.
    C_ : float
        C as used.

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
        n_vectors: int = 20,
        basis: Any = "learned",
        *,
        init: Any = "kmeans",
        slack: Any = "l2",
        regularizer: Any = "kernel",
        C: float | str = "search",
        gamma: float | str = "search",
        scales: str = "search",
        kernel: Any = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        class_weight: Any = None,
        vectors: str = "shared",
        multi_class: str = "ovo",
        decision_function_shape: str = "ovr",
        smoothing: float = 0.5,
        learning_iter: int | str = "auto",
        learning_rows: int | str = "auto",
        tol: float = 1e-6,
        max_iter: int = 100,
        cache_size: float = 1000,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: bool = False,
    ):
        self.n_vectors = n_vectors
        self.basis = basis
        self.init = init
        self.slack = slack
        self.regularizer = regularizer
        self.C = C
        self.gamma = gamma
        self.scales = scales
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.class_weight = class_weight
        self.vectors = vectors
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.smoothing = smoothing
        self.learning_iter = learning_iter
        self.learning_rows = learning_rows
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_params(self) -> None:
        self._check_common()
        check_number("n_vectors", self.n_vectors, at_least=1, integer=True)
        check_number("smoothing", self.smoothing, at_least=0)
        check_number_or("learning_iter", self.learning_iter, "auto", at_least=0, integer=True)
        check_choice("scales", self.scales, ("search", "fixed", "learned"))
        check_choice("vectors", self.vectors, ("shared", "per_class"))
        check_number_or("C", self.C, "search", above=0)
        check_number_or("learning_rows", self.learning_rows, "auto", at_least=1, integer=True)
        if isinstance(self.gamma, str) and self.gamma not in ("search", "scale", "auto"):
            raise ValueError(f"gamma={self.gamma!r} must be 'search', 'scale', 'auto' or a positive number")
        name, basis = self._source()
        if self.scales == "learned" and not self._learned():
            raise ValueError(f"scales='learned' needs basis='learned'; basis={self.basis!r}")
        if self.scales == "learned" and self.vectors == "per_class":
            raise ValueError("scales='learned' needs vectors='shared'; vectors='per_class' has no scales")
        if not is_array(basis):
            bases.resolve(basis, name, ("learned",) if name == "basis" else ())

    def _learned(self) -> bool:
        return isinstance(self.basis, str) and self.basis == "learned"

    def _source(self) -> tuple[str, Any]:
        """Where vectors come from, or where learned ones start: the parameter's name and value."""
        return ("init", self.init) if self._learned() else ("basis", self.basis)

    def _scheme(self) -> str:
        return "ovr" if self.vectors == "per_class" else self.multi_class

    def _train(self, rows: TrainingRows, sample_weight: Array | None, lookup: Any) -> Model:
        rng = self._rng()
        recipe = self._recipe(rows, lookup)
        setting = self._setting(rows, sample_weight, lookup, recipe, rng)
        kernel = self._kernel(rows, sample_weight, lookup, setting.gamma)
        recipe = replace(recipe, iterations=self._learning_iter(setting.scaled))
        machines = one_vs_rest(rows.codes, rows.n_classes, setting.C * rows.weights)
        self.C_ = setting.C
        if self._scheme_of_vectors(rows) == "per_class":
            return self._train_per_class(rows, kernel, machines, recipe, rng)
        placed = self._place(rows.problem(kernel, machines), recipe, setting.scaled, rng)
        vectors = placed.choice.vectors
        fitted = self._coefficients(
            rows, placed.kernel, vectors, self._machines(rows, setting.C), recipe.norm(placed.kernel, rows.X)
        )
        return Model(placed.kernel, vectors, placed.choice.rows, fitted)

    def _train_per_class(self, rows: TrainingRows, kernel: Any, machines: Machines, recipe: Recipe, rng: Any) -> Model:
        """A machine for each class against the others, each over its own share of the vectors."""
        if recipe.count < rows.n_classes:
            raise ValueError(
                f"vectors='per_class' needs at least one vector for each class: n_vectors={recipe.count}, "
                f"{rows.n_classes} classes. Use vectors='shared' or more vectors"
            )
        parts = []
        shares = even_shares([len(rows.codes)] * rows.n_classes, recipe.count)
        for c, count in enumerate(shares):
            mine = Machines(None, machines.Y[:, [c]], machines.C[:, [c]])
            problem = Problem(kernel, rows.X, (rows.codes == c).astype(np.intp), mine.Y, mine.C, rows.threads)
            placed = self._place(problem, replace(recipe, count=count), False, rng)
            norm = recipe.norm(kernel, rows.X)
            parts.append((placed.choice, self._coefficients(rows, kernel, placed.choice.vectors, [mine], norm)))
        choices, fitted = zip(*parts, strict=True)
        stack = sp.vstack if sp.issparse(choices[0].vectors) else np.vstack
        chosen = [choice.rows for choice in choices]
        return Model(
            kernel,
            stack([choice.vectors for choice in choices]),
            None if any(r is None for r in chosen) else np.concatenate(chosen),
            Coefficients(
                block_diag(*(f.coef for f in fitted)),
                *(
                    np.concatenate([getattr(f, name) for f in fitted])
                    for name in ("bias", "objective", "gap", "n_iter")
                ),
            ),
        )

    def _place(self, problem: Problem, recipe: Recipe, scaled: bool, rng: Any) -> Placed:
        """Vectors, learned on some of the rows where those are many."""
        if recipe.loss is None:
            return place(recipe, problem, rng)
        some = stratified(problem.codes, self._most_learning_rows(recipe.count), rng)
        problem = problem if len(some) == len(problem.codes) else problem.take(some)
        line = ProgressLine(f"learning {recipe.count} vectors on {len(some)} rows") if self.verbose else None

        def watch(iteration: int, value: float) -> None:
            assert line is not None
            line.update(f"iteration {iteration}, objective {value:.6g}")

        placed = place(recipe, problem, rng, scaled, watch=watch if line else None)
        if line is not None and placed.learned is not None:
            line.finish(f"{placed.learned.n_iter} iterations, objective {placed.learned.value:.6g}")
        return placed

    def _learning_iter(self, scaled: bool) -> int:
        return (200 if scaled else 100) if isinstance(self.learning_iter, str) else int(self.learning_iter)

    def _most_learning_rows(self, count: int) -> int:
        if not isinstance(self.learning_rows, str):
            return int(self.learning_rows)
        # About four arrays of rows x vectors in float32 are held while learning.
        within_memory = int(self.cache_size * 2**20 / (16 * count))
        return max(5000, min(within_memory, int(np.clip(600 * count, 20000, 100000))))

    def _recipe(self, rows: TrainingRows, lookup: Any) -> Recipe:
        name, source = self._source()
        basis = bases.Given(self._given(source, rows, lookup)) if is_array(source) else bases.resolve(source, name)
        loss: Any = None
        if self._learned():
            if lookup is not None or (callable(self.kernel) and not hasattr(self.kernel, "pullback")):
                raise ValueError(
                    f"basis='learned' needs a kernel with a derivative (a method pullback); kernel={self.kernel!r} has "
                    "none. Use a basis of training rows: 'forward', 'random' or 'cholesky'"
                )
            loss = slacks.loss(self.slack)
            if not loss.smooth and self.smoothing > 0:
                loss = losses.HuberHinge(self.smoothing)
        elif lookup is not None and not getattr(basis, "keeps_rows", True):
            raise ValueError(
                f"basis={self.basis!r} makes vectors that are no training rows, which a precomputed kernel cannot "
                "compare; use 'forward', 'random' or 'cholesky'"
            )
        regularizer = None if self._kernel_norm() else regularizers.resolve(self.regularizer)
        return Recipe(self.n_vectors, basis, loss, regularizer)

    def _kernel_norm(self) -> bool:
        return isinstance(self.regularizer, str) and self.regularizer == "kernel"

    def _given(self, vectors: Any, rows: TrainingRows, lookup: Any) -> Any:
        """The user's vectors, checked."""
        name, _ = self._source()
        if lookup is not None:
            raise ValueError(
                f"{name} is an array, which a precomputed kernel cannot compare with; use basis='forward', 'random' or "
                "'cholesky'"
            )
        vectors = check_array(vectors, accept_sparse="csr", dtype=FLOATS, input_name=name, copy=True)
        if vectors.shape[1] != rows.X.shape[1]:
            raise ValueError(f"{name} has {vectors.shape[1]} columns, X has {rows.X.shape[1]}; they must be the same")
        if self._learned() and vectors.shape[0] > self.n_vectors:
            raise ValueError(f"init has {vectors.shape[0]} vectors, n_vectors={self.n_vectors}; give at most so many")
        return vectors

    def _setting(self, rows: TrainingRows, weight: Array | None, lookup: Any, recipe: Recipe, rng: Any) -> Setting:
        """C, gamma and scales: as given, or as found by validation."""
        has_gamma = isinstance(self.kernel, str) and self.kernel in ("rbf", "laplacian", "poly", "sigmoid")
        costs = COSTS if isinstance(self.C, str) else [float(self.C)]
        unit = kernels.scale_gamma("scale", rows.X, weight) if has_gamma else 1.0
        if not has_gamma:
            gammas: list[Any] = ["scale"]
        elif isinstance(self.gamma, str) and self.gamma == "search":
            gammas = [float(unit * factor) for factor in WIDTHS]
        else:
            gammas = [kernels.scale_gamma(self.gamma, rows.X, weight)]
        may_scale = recipe.loss is not None and self._scheme_of_vectors(rows) == "shared"
        scaled = {"fixed": [False], "learned": [True]}.get(self.scales, [False, True] if may_scale else [False])
        space = Space(costs, gammas, scaled, unit if len(gammas) > 1 else None)
        if space.size == 1:
            self.search_results_: dict[str, list[Any]] = {}
            return space.first()
        line = ProgressLine("search") if self.verbose else None
        found, self.search_results_ = search(
            space,
            lambda gamma: lookup or kernels.resolve(self.kernel, gamma, self.degree, self.coef0, rows.X, weight),
            rows,
            replace(recipe, iterations=min(SEARCH_ITERATIONS, self._learning_iter(False))),
            rng,
            line.update if line else None,
        )
        if line is not None:
            line.finish(f"C={found.C:g}, gamma={found.gamma}, scales {'learned' if found.scaled else 'fixed'}")
        return found

    def _scheme_of_vectors(self, rows: TrainingRows) -> str:
        # Given vectors are there for all.
        return "shared" if rows.n_classes == 2 or is_array(self._source()[1]) else self.vectors


def is_array(basis: Any) -> bool:
    """Vectors, rather than a name or a way to choose them?"""
    if isinstance(basis, np.ndarray) or sp.issparse(basis):  # an array has a method choose, too
        return True
    return not isinstance(basis, (str, type)) and not hasattr(basis, "choose") and hasattr(basis, "__len__")
