"""The relevance vector machine for classification (Tipping; Tipping and Faul)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import expit, log_expit
from sklearn.exceptions import ConvergenceWarning

from ..formulation import Array
from ..progress import ProgressLine
from ..sparse.relevance import Relevant, train_relevance
from ..vectors.training import Coefficients, TrainingRows, one_vs_rest
from .small_basis import Model, SmallBasisClassifier
from .validation import check_number, thread_count


class RelevanceVectorClassifier(SmallBasisClassifier):
    """Bayesian kernel classifier with few vectors and probabilities.

    Logistic regression over kernel columns in which every weight has a prior precision of its own. The precisions that
    make the data most likely (the evidence, in Laplace's approximation) are infinite for most vectors, which are then
    gone. There is no C to tune; the kernel's width matters all the more.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"}, function or kernel, default="rbf"
        A function gets two sets of rows and returns the matrix of kernel values. It need not be positive semidefinite.
    gamma : {"scale", "auto"} or float, default="scale"
        Factor in the rbf, laplacian, poly and sigmoid kernels. "scale": ``1 / (n_features * X.var())``;
        "auto": ``1 / n_features``.
    degree : int, default=3
        Degree of the poly kernel.
    coef0 : float, default=0.0
        Constant in the poly and sigmoid kernels.
    class_weight : dict or "balanced", optional
        Factors of the sample weights by class. A row of weight k counts as k rows.
    tol : float, default=1e-3
        The fit ends when no single move (a vector added or deleted, or one precision changed) is found that raises the
        logarithm of the evidence by more than this. Candidates are tried one by one, those that promise most first;
        all of them, unless rows and vectors are many.
    max_iter : int, default=1000
        Most moves.
    n_jobs : int, optional
        Threads for kernel values; None is one, -1 means all cores.
    verbose : bool, default=False
        Show moves, vectors and evidence on standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    vectors_ : ndarray or sparse matrix of shape (n_vectors_, n_features_in_)
        Row numbers of the training set where the kernel is precomputed.
    vector_coef_ : ndarray of shape (n_outputs, n_vectors_)
        ``f = vector_coef_ @ k(vectors_, x) + intercept_``, the logarithm of the odds; one output for two classes,
        otherwise one for each class against the others.
    intercept_ : ndarray of shape (n_outputs,)
    support_ : ndarray of shape (n_vectors_,)
        Rows of the training set that `vectors_` are. Of equal rows only the first is ever a vector.
    n_vectors_ : int
    objective_ : ndarray of shape (n_outputs,)
        What is minimised: minus the logarithm of the evidence,
        ``log p(y | w) - 1/2 sum_j alpha_j w_j^2 + 1/2 sum_j log alpha_j - 1/2 log det H`` at the most probable weights
        w (bias included), where H is minus the matrix of second derivatives of the first two terms.
    precision_ : ndarray of shape (n_outputs, n_vectors_)
        Precisions alpha of the weights; infinite where an output does not use a vector.
    intercept_precision_ : ndarray of shape (n_outputs,)
    n_iter_ : ndarray of shape (n_outputs,)
        Moves.
    history_ : list of dict, one for each output
        Move by move ``"n_vectors"`` and ``"objective"``, which always falls.
    kernel_ : kernel object
        The kernel with gamma made a number.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X had column names.

    Notes
    -----
    Every training row is a candidate up to about 4000 rows; beyond, candidates are thinned out evenly, so that no more
    than 16 million kernel values are kept.

    References
    ----------
    .. [1] M. E. Tipping. Sparse Bayesian Learning and the Relevance Vector Machine. JMLR 1, 2001.
    .. [2] M. E. Tipping, A. C. Faul. Fast Marginal Likelihood Maximisation for Sparse Bayesian Models. AISTATS 2003.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import RelevanceVectorClassifier
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> clf = RelevanceVectorClassifier(gamma=2).fit(X, y)
    >>> clf.n_vectors_ < 20, bool(clf.score(X, y) > 0.95)
    (True, True)
    >>> clf.predict_proba(X[:3]).shape
    (3, 2)
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes; several classes: those of one against the others, made to sum to one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), in the order of ``classes_``.
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return np.hstack([expit(-scores), expit(scores)])
        logarithms = log_expit(scores)  # which do not all vanish
        shares = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)

    def _check_params(self) -> None:
        check_number("coef0", self.coef0)
        check_number("tol", self.tol, above=0)
        check_number("max_iter", self.max_iter, at_least=1, integer=True)
        thread_count(self.n_jobs)

    def _scheme(self) -> str:
        return "ovr"

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        super()._fit(X, y, sample_weight)
        del self.duality_gap_  # there is no dual
        return self

    def _train(self, rows: TrainingRows, sample_weight: Array | None, lookup: Any) -> Model:
        kernel = self._kernel(rows, sample_weight, lookup, self.gamma)
        machines = one_vs_rest(rows.codes, rows.n_classes, rows.weights)
        found = [self._one(rows, kernel, machines.Y[:, o], o + 1) for o in range(machines.Y.shape[1])]
        unsettled = sum(not r.converged for r in found)
        if unsettled:
            warnings.warn(
                f"max_iter={self.max_iter} ended {unsettled} of {len(found)} machines before they came to rest; raise "
                "max_iter or tol",
                ConvergenceWarning,
                stacklevel=5,
            )
        empty = sum(not len(r.kept) for r in found)
        if empty:
            warnings.warn(
                f"no vector raises the evidence in {empty} of {len(found)} machines, which now give every row the same "
                "answer; try another gamma or kernel, or more data",
                stacklevel=5,
            )
        self.history_ = [r.history for r in found]
        kept = np.unique(np.concatenate([r.kept for r in found]))
        coef, self.precision_ = np.zeros((len(found), len(kept))), np.full((len(found), len(kept)), np.inf)
        self.intercept_precision_ = np.array([r.precision[0] for r in found])
        for o, r in enumerate(found):
            place = np.searchsorted(kept, r.kept)
            coef[o, place], self.precision_[o, place] = r.coef, r.precision[1:]
        fitted = Coefficients(
            coef,
            np.array([r.bias for r in found]),
            np.array([-r.evidence for r in found]),
            np.zeros(len(found)),
            np.array([r.n_iter for r in found]),
        )
        return Model(kernel, rows.X[kept], kept, fitted)

    def _one(self, rows: TrainingRows, kernel: Any, y: Array, number: int) -> Relevant:
        line = ProgressLine(f"machine {number}") if self.verbose else None

        def watch(move: int, vectors: int, evidence: float) -> None:
            assert line is not None
            line.update(f"move {move}, {vectors} vectors, log evidence {evidence:.6g}")

        found = train_relevance(
            kernel, rows.X, y, rows.weights, self.tol, self.max_iter, rows.threads, watch if line else None
        )
        if line is not None:
            line.finish(f"{found.n_iter} moves, {len(found.kept)} vectors, log evidence {found.evidence:.6g}")
        return found

    def _warn_if_unsolved(self, fitted: Coefficients) -> None:
        """`_train` has said it."""
