"""The relevance vector machine for classification (Tipping; Tipping and Faul)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_expit

from ..linalg.arrays import Array
from ..model.inference import ProbabilityLayer
from ..model.probabilities import log_probabilities
from ..training.sparse import train_relevance_vectors
from . import validation
from .base import KernelClassifier, atomic
from .checked_data import checked_dataset
from .documentation import documented
from .targets import ClassTargets
from .validation import check_common


@documented
class RelevanceVectorClassifier(KernelClassifier):
    """Bayesian kernel classifier with few vectors and probabilities.

    Logistic regression over kernel columns in which every weight has a prior precision of its own. The precisions that
    make the data most likely (the evidence, in Laplace's approximation) are infinite for most vectors, which are then
    gone. There is no C to tune; the kernel's width matters all the more.

    Parameters
    ----------
    kernel : {<names>, "precomputed"}, function or kernel, default="rbf"
        A function gets two sets of rows and returns the matrix of kernel values. It need not be positive semidefinite.
    <gamma>
    <degree>
    class_weight : dict or "balanced", optional
        Factors of the sample weights by class. A row of weight k counts as k rows.
    tol : float, default=1e-3
        The fit ends when no single move (a vector added or deleted, or one precision changed) is found that raises the
        logarithm of the evidence by more than this. Candidates are tried one by one, those that promise most first;
        all of them, unless rows and vectors are many.
    max_iter : int, default=1000
        Most moves.
    <n_jobs>
    <verbose>

    Attributes
    ----------
    <vectors_>
    support_ : ndarray of shape (n_vectors_,)
        Rows of the training set that `vectors_` are. Of equal rows only the first is ever a vector.
    objective_ : ndarray of shape (n_outputs,)
        What is minimised: minus the logarithm of the evidence,
        ``log p(y | w) - 1/2 sum_j alpha_j w_j^2 + 1/2 sum_j log alpha_j - 1/2 log det H`` at the weights w that
        are most probable (bias included), where H is minus the matrix of second derivatives of the first two terms.
    precision_ : ndarray of shape (n_outputs, n_vectors_)
        Precisions alpha of the weights; infinite where an output does not use a vector.
    intercept_precision_ : ndarray of shape (n_outputs,)
    n_iter_ : ndarray of shape (n_outputs,)
        Moves.
    history_ : list of dict, one for each output
        Move by move ``"n_vectors"`` and ``"objective"``, which always falls.
    <kernel_>

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

    @documented
    @atomic
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model.

        <fit_classifier>
        """
        check_common(self, least_iter=1)
        dataset = checked_dataset(self, X, y, sample_weight, ClassTargets(self.class_weight))
        rows = dataset.sorted()
        kernel = validation.named_kernel(self, rows)
        model = train_relevance_vectors(rows, kernel, self.tol, self.max_iter, bool(self.verbose))
        validation.warn_of_inputs(self, dataset, model.expansion.kernel)
        return self._set_fitted(dataset, model)

    def _lacks_probabilities(self) -> None:
        return None

    def _log_probabilities(self, X: Any) -> Array:
        """Of the classes; several classes: of one against the others, made to sum to one."""
        scores = self._scores(X)
        # The shares p_k / sum p are the softmax of the logarithms of p, which are never infinite.
        return log_probabilities(scores if scores.shape[1] == 1 else log_expit(scores.astype(np.float64)))

    def _probability_layer(self) -> ProbabilityLayer:
        return ProbabilityLayer(self.vector_coef_, self.intercept_, shares=len(self.intercept_) > 1)
