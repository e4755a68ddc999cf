"""A classifier of a given number of vectors, which are learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_array

from ..data import Task
from ..expansion import Model
from ..export.budget import Budget, size_of, train_within
from ..export.quantize import form_of
from ..namespaces import host, is_foreign
from ..notices import warn
from ..parts import bases, kernels
from ..progress import ProgressLine
from ..vectors import sizes
from ..vectors.search import Finding, Space, search, space_of
from ..vectors.training import Recipe, train
from .documentation import documented
from .stream import StreamClassifier
from .validation import FLOATS, check_choice, check_number, check_number_or, is_precomputed


@documented
class SlimSVC(StreamClassifier):
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
    gamma : {"search", "scale", "auto"} or float, default="search"
        Factor in the rbf, laplacian, poly and sigmoid kernels. "scale": ``1 / (n_features * X.var())``;
        "auto": ``1 / n_features``.
    scales : {"search", "fixed", "learned"}, default="search"
        One scale for each input, learned with the vectors, or the same for all. Inputs then count by their use; the
        scales are in ``kernel_.scales``.
    kernel : {"rbf", "linear", "poly", "laplacian", "sigmoid", "precomputed"}, function or kernel, default="rbf"
        Vectors are learned with the first four, or a kernel with a method ``pullback``; the others need a basis of
        training rows.
    <degree>
    <class_weight>
    multi_class : {"ovo", "ovr"}, default="ovo"
        More than two classes: a binary problem for each pair of classes, or for each class against the others; all of
        them over the same vectors. With ``max_bytes``, "ovo" stands for the better of the two at that size, found by
        validation.
    max_bytes : int, optional
        Bytes that the model may take on a device, in the place of ``n_vectors``: 8-bit vectors, 16-bit coefficients,
        and all else that it needs (`slimsvm.export.quantize`). The vectors are then numbers that 8 bits can hold, and
        the coefficients the best over them.
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
    support_ : ndarray of shape (n_vectors_,)
        Rows of the training set that `vectors_` are; only where they are rows.
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

    def _check_params(self) -> None:
        self._check_parts(gammas=("search", "scale", "auto"))
        self._check_memory()
        check_number_or("C", self.C, "search", above=0)
        check_number_or("n_vectors", self.n_vectors, "auto", at_least=1, integer=True)
        check_choice("scales", self.scales, ("search", "fixed", "learned"))
        basis = self._basis()
        self._check_budget(basis)
        if basis.learns:
            check_number("smoothing", basis.smoothing, at_least=0)
            check_number_or("iterations", basis.iterations, "auto", at_least=0, integer=True)
            check_number_or("rows", basis.rows, "auto", at_least=1, integer=True)
            bases.resolve(basis.init, "init")
            if not kernels.resolve(self.kernel).differentiable:
                raise ValueError(
                    f"basis='learned' needs a kernel with a derivative (a method pullback); kernel={self.kernel!r} has "
                    "none. Use a basis of training rows: 'forward', 'random' or 'cholesky'"
                )
        elif self.scales == "learned":
            raise ValueError(f"scales='learned' needs basis='learned'; basis={self.basis!r}")
        elif is_precomputed(self.kernel) and not basis.keeps_rows:
            raise ValueError(
                f"basis={self.basis!r} makes vectors that are not training rows, which a precomputed kernel cannot "
                "compare; use 'forward', 'random' or 'cholesky'"
            )

    def _check_budget(self, basis: Any) -> None:
        if self.max_bytes is None:
            return
        check_number("max_bytes", self.max_bytes, at_least=1, integer=True)
        form_of(kernels.resolve(self.kernel))
        given = basis.init if basis.learns else self.basis
        if bases.is_array(given):
            raise ValueError(
                f"max_bytes={self.max_bytes} chooses the number of vectors, but they are given as an array; leave out "
                "max_bytes, or let a basis choose: 'learned', 'forward', 'kmeans', 'random' or 'cholesky'"
            )

    def _check_apart(self) -> None:
        super()._check_apart()
        if self.max_bytes is not None:
            raise ValueError(
                f"max_bytes={self.max_bytes} chooses inputs and steps with all rows in memory; fit n_vectors to rows "
                "that are read a block at a time and quantize the model, or fit max_bytes to a sample"
            )

    def _basis(self) -> Any:
        return bases.resolve(self.basis)

    def _count(self, task: Task) -> int:
        return sizes.powers(1, task.n_classes)[-1] if self.n_vectors == "auto" else int(self.n_vectors)

    def _train(self, task: Task) -> Model:
        self.multi_class_ = self.multi_class
        if self.max_bytes is not None:
            return self._train_within(task)
        if self.n_vectors == "auto":
            return self._train_auto(task)
        rng = self._rng()
        recipe = self._recipe(task)
        found = self._found(task, recipe, self._space(task, recipe))
        self._setting = found.setting
        model = train(task, recipe, found.setting, rng)
        self._tell(model)
        model = replace(model, more=model.more | {"C_": found.setting.C, "search_results_": found.tried})
        return self._with_probabilities(task, model, recipe, found.setting, rng)

    def _train_within(self, task: Task) -> Model:
        """As many vectors as the bytes pay for."""
        assert self.max_bytes is not None
        rng = self._rng()
        recipe = self._recipe(task)
        line = ProgressLine("bytes") if self.verbose else None
        model, plan = train_within(
            Budget.of(self.max_bytes, recipe, task),
            task,
            recipe,
            self._space(task, recipe),
            lambda mine, among: self._found(task, mine, among),
            rng,
            line.update if line else None,
        )
        self.multi_class_, self._setting = plan.scheme, plan.setting
        count = model.expansion.vectors.shape[0]
        if line is not None:
            line.finish(f"{size_of(model)} of {self.max_bytes}, {count} vectors")
        self._tell(model)
        return self._with_probabilities(task, model, replace(recipe, count=count), plan.setting, rng)

    def _scheme(self) -> str:
        return vars(self).get("multi_class_", self.multi_class)

    def _train_auto(self, task: Task) -> Model:
        """As few vectors as do as well as any number of them."""
        floor = sizes.least_size(task.n_classes)
        plan = self._plan(task, sizes.powers(floor, task.n_classes))
        self._setting = plan.setting
        line = ProgressLine("sizes") if self.verbose else None
        curve = plan.judged(self._judge, line.update if line else None)
        size = curve.best(floor=floor)
        if line is not None:
            line.finish(f"{size} vectors do")
        model = plan.model(task, size)
        self._tell(model)
        model = replace(model, more=model.more | {"frontier_": curve})
        return self._of_path(task, plan, size, model)

    def _of_path(self, task: Task, plan: sizes.Plan, size: int, model: Model) -> Model:
        """A model of a path, with probabilities if they are asked for."""
        recipe = replace(self._recipe(task), count=size)
        return self._with_probabilities(task, model, recipe, plan.setting, np.random.default_rng(plan.seed))

    def _plan(self, task: Task, wanted: Sequence[int], hold_out: Callable[..., list[Any]] = sizes.parts) -> sizes.Plan:
        """How models of several sizes are to be made: settings for all of them, and the rows that judge."""
        rng = self._rng()
        recipe = self._recipe(task)
        held_out = hold_out(task, rng)
        possible = sizes.allowed_sizes(wanted, recipe, held_out)
        found = self._found(task, replace(recipe, count=sizes.middle(possible)), self._space(task, recipe))
        return sizes.Plan(self._recipe, found.setting, found.tried, possible, int(rng.integers(2**31)), held_out)

    def _judge(self, part: sizes.Part, model: Model) -> sizes.Verdict:
        """The share of rows held out that are right."""
        test, fitted = part.test, self._fitted(part.train, model)
        scores, labels = model.expansion.decision(test.X, test.threads), test.classes[test.codes]
        wrong, margins = fitted.classes_[fitted._winners(scores)] != labels, fitted._margins(scores, labels)
        return sizes.of_labels(wrong, margins, test.weights, len(np.unique(test.keys)))

    def _recipe(self, task: Task) -> Recipe:
        recipe = super()._recipe(task)
        basis = recipe.basis
        given = basis.init if basis.learns else getattr(basis, "vectors", None)
        if bases.is_array(given):
            vectors = self._checked(given, "init" if basis.learns else "basis", task)
            basis = replace(basis, init=vectors) if basis.learns else bases.Given(vectors)
        # More vectors than the kernel's space has dimensions would say nothing new.
        count = int(min(recipe.count, recipe.kernel_of(1.0).dimensions(task.X.shape[1])))
        return replace(recipe, basis=basis, count=count)

    def _checked(self, vectors: Any, name: str, task: Task) -> Any:
        """The user's own vectors."""
        auto = self.n_vectors == "auto"
        vectors = host(vectors) if is_foreign(vectors) else vectors
        vectors = check_array(vectors, accept_sparse="csr", dtype=FLOATS, input_name=name, copy=True)
        if vectors.shape[1] != task.X.shape[1]:
            raise ValueError(f"{name} has {vectors.shape[1]} columns, X has {task.X.shape[1]}; they must be the same")
        if name == "init" and vectors.shape[0] > self._count(task):
            most = f"n_vectors={self.n_vectors!r}" + (f", which is {self._count(task)} at most" if auto else "")
            raise ValueError(f"init has {vectors.shape[0]} vectors, {most}; give at most so many")
        if name == "init" and vectors.shape[0] < self._count(task) and not auto:
            warn(f"init has {vectors.shape[0]} vectors: the model has as many, not n_vectors={self.n_vectors}")
        return vectors

    def _space(self, task: Task, recipe: Recipe) -> Space:
        return space_of(task, self.C, self.gamma, self.scales, recipe)

    def _found(self, task: Task, recipe: Recipe, space: Space) -> Finding:
        """C, gamma and scales: as given, or as found by validation."""
        if space.settled:
            return Finding.given(space)
        line = ProgressLine("search") if self.verbose else None
        found = search(task, recipe, space, line.update if line else None)
        if line is not None:
            best = found.setting
            line.finish(f"C={best.C:g}, gamma={best.gamma:.4g}, scales {'learned' if best.scaled else 'fixed'}")
        return found
