"""The relevance vector machine for classification (Tipping; Tipping and Faul)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_expit
from sklearn.exceptions import ConvergenceWarning

from ..data.dataset import Dataset, Output, outputs
from ..linalg.arrays import Array
from ..model.expansion import Expansion, Model, join_outputs
from ..model.inference import ProbabilityLayer
from ..model.probabilities import log_probabilities
from ..solvers.sparse.relevance import RelevanceSolution, train_relevance
from ..utils.progress import ProgressLine
from ..utils.warnings import warn
from .documentation import documented
from .trained import ExpansionClassifier
from .validation import check_common, named_kernel


@documented
class RelevanceVectorClassifier(ExpansionClassifier):
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

    def _lacks_probabilities(self) -> None:
        return None

    def _log_probabilities(self, X: Any) -> Array:
        """Of the classes; several classes: of one against the others, made to sum to one."""
        scores = self._scores(X)
        # The shares p_k / sum p are the softmax of the logarithms of p, which are never infinite.
        return log_probabilities(scores if scores.shape[1] == 1 else log_expit(scores.astype(np.float64)))

    def _probability_layer(self) -> ProbabilityLayer:
        return ProbabilityLayer(self.vector_coef_, self.intercept_, shares=len(self.intercept_) > 1)

    def _check_params(self) -> None:
        check_common(self, least_iter=1)

    def _scheme(self) -> str:
        return "ovr"

    def _train(self, dataset: Dataset) -> Model:
        dataset = dataset.sorted()
        kernel = named_kernel(self, dataset)
        found = [self._one(dataset, kernel, output) for output in outputs(dataset.n_classes, "ovr")]
        self._tell(found)
        kept, coef = join_outputs([r.kept for r in found], [r.coef for r in found], dataset.numbers)
        _, variance = join_outputs([r.kept for r in found], [1 / r.precision[1:] for r in found], dataset.numbers)
        precision = np.divide(1.0, variance, out=np.full(variance.shape, np.inf), where=variance > 0)
        return Model(
            Expansion(kernel, dataset.X[kept], coef, np.array([r.bias for r in found])),
            dataset.numbers[kept],
            np.array([-r.evidence for r in found]),
            None,  # there is no dual
            np.array([r.n_iter for r in found]),
            {
                "history_": [r.history for r in found],
                "precision_": precision,
                "intercept_precision_": np.array([r.precision[0] for r in found]),
            },
        )

    def _one(self, dataset: Dataset, kernel: Any, output: Output) -> RelevanceSolution:
        rows, y, weights = dataset.binary(output)
        line = ProgressLine(dataset.name(output)) if self.verbose else None

        def watch(move: int, vectors: int, evidence: float) -> None:
            assert line is not None
            line.update(f"move {move}, {vectors} vectors, log evidence {evidence:.6g}")

        found = train_relevance(
            kernel, dataset.X[rows], y, weights, self.tol, self.max_iter, dataset.threads, watch if line else None
        )
        if line is not None:
            line.finish(f"{found.n_iter} moves, {len(found.kept)} vectors, log evidence {found.evidence:.6g}")
        return found

    def _tell(self, found: list[RelevanceSolution]) -> None:
        """Warnings about what was found."""
        unsettled = sum(not r.converged for r in found)
        if unsettled:
            warn(
                f"max_iter={self.max_iter} ended {unsettled} of {len(found)} binary problems before they converged; "
                "raise max_iter or tol",
                ConvergenceWarning,
            )
        refused = sum(r.refused and r.converged for r in found)
        if refused:
            warn(
                f"rounding ended the fit in {refused} of {len(found)} binary problems: vectors depend so much on each "
                "other that the evidence of better models cannot be computed. Scale the features or change the kernel",
                ConvergenceWarning,
            )
        untried = sum(r.untried and r.converged and not r.refused for r in found)
        if untried:
            warn(
                f"the limit of work ended the fit in {untried} of {len(found)} binary problems before every vector and "
                "candidate was tried: a change of one of them may raise the log evidence by more than "
                f"tol={self.tol:g}. The model can be used; for a complete search raise tol or fit fewer rows",
                ConvergenceWarning,
            )
        empty = sum(not len(r.kept) for r in found)
        if empty:
            warn(
                f"no vector raises the evidence in {empty} of {len(found)} binary problems, which now give every row "
                "the same answer; try another gamma or kernel, or more data"
            )
