"""What every classifier here shares: validated input, several classes by binary machines, prediction."""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..dual.solve import Binary, DualSolution, Progress, solve_dual
from ..expansion import Expansion
from ..formulation import Array, Constraint, Slack
from ..parts import kernels
from . import validation


@dataclass(frozen=True)
class LabelledRows:
    """Training data: the rows that count (positive weight), their class numbers and weights."""

    X: Any
    classes: Array
    rows: Array  # of X
    codes: Array  # class number of each
    weights: Array  # sample weight times class weight
    sample_weight: Array | None  # as given, for all rows of X


@dataclass(frozen=True)
class TrainingSet:
    """Rows that count (positive weight), grouped by class: the rows of a class are one segment."""

    X: Any
    order: Array  # row of X at each position
    lengths: list[int]  # rows of each class
    weights: Array  # sample weight times class weight, by position


@dataclass(frozen=True)
class BinaryProblem:
    """One subproblem: which segments take part, and the sign of each of their rows."""

    label: str
    view: list[int]
    y: Array
    weights: Array
    positions: Array
    rows: Array  # of X


class ExpansionClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """A classifier whose decision values are an expansion over `vectors_`."""

    @abstractmethod
    def _check_params(self) -> None:
        """Raise ValueError for parameters that make no sense."""

    @abstractmethod
    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Fit; what fails here leaves the estimator as it was."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the machine.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; for ``kernel="precomputed"`` the square kernel matrix.
        y : array-like of shape (n_samples,)
            Class labels, of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weight 0 is the same as leaving the row out, weight k as k copies of it.

        Returns
        -------
        self
        """
        before = dict(vars(self))
        try:
            return self._fit(X, y, sample_weight)
        except BaseException:  # nothing is left half-done, not even by Ctrl-C
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def decision_function(self, X: Any) -> Array:
        """Signed scores; binary: positive means ``classes_[1]``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, otherwise (n_samples, n_classes), or one
        column for each pair of classes where ``decision_function_shape="ovo"``.
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return scores[:, 0]
        if self._one_vs_one and self.decision_function_shape == "ovr":
            return one_vs_rest_scores(scores, len(self.classes_))
        return scores

    def predict(self, X: Any) -> Array:
        """Class labels: the class with the highest score.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return self.classes_[(scores[:, 0] > 0).astype(np.intp)]
        if self._one_vs_one:
            scores = one_vs_rest_scores(scores, len(self.classes_))
        return self.classes_[scores.argmax(axis=1)]

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> LabelledRows:
        """Checked parameters and data: the rows that count, with class numbers and weights."""
        self._check_params()
        X, y = validation.check_data(self, X, y=y)
        validation.check_targets(y)
        precomputed = validation.is_precomputed(self.kernel)
        if precomputed and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"kernel='precomputed' needs the square matrix k(X, X) to fit; X has shape {X.shape}. "
                "Pass k(X_new, X_train) to predict"
            )
        if sp.issparse(X):
            X = X.toarray() if precomputed else canonical(X)
        weight = validation.sample_weights(self, sample_weight, X)
        rows = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
        classes, codes = np.unique(y[rows], return_inverse=True)
        if len(classes) < 2:
            left = "" if weight is None else " among the samples with a positive weight"
            raise ValueError(
                f"y has one class only{left} ({classes.tolist()[0]!r}); a classifier needs two classes or more"
            )
        weights = np.ones(len(rows)) if weight is None else weight[rows]
        weights = weights * validation.class_weights(self.class_weight, classes, codes, weights)[codes]
        return LabelledRows(X, classes, rows, codes, weights, weight)

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validation.check_data(self, X)
        if sp.issparse(X) != sp.issparse(self.vectors_) and self.kernel_.name == "callable":
            X = sp.csr_array(X) if sp.issparse(self.vectors_) else X.toarray()
        expansion = Expansion(self.kernel_, self.vectors_, self.vector_coef_, self.intercept_)
        return expansion.decision(X, validation.thread_count(self.n_jobs))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = validation.is_precomputed(self.kernel)
        return tags


def canonical(X: Any) -> Any:
    """CSR with each entry once."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def one_vs_rest_scores(pairs: Array, n_classes: int) -> Array:
    """One score for each class from one-vs-one scores: votes, and confidences that only break ties.

    ``pairs[:, p] > 0`` votes for the first class of pair p. Summed confidences are squeezed into (-1/3, 1/3),
    so that they never outweigh a vote.
    """
    first, second = _pair_members(n_classes)
    wins = (pairs > 0).astype(np.float64)
    votes = wins @ first + (1 - wins) @ second
    confidence = pairs @ (first - second)
    return votes + confidence / (3 * (np.abs(confidence) + 1))


@lru_cache(maxsize=16)
def _pair_members(n_classes: int) -> tuple[Array, Array]:
    """For each pair of classes, the first and the second as rows of indicators."""
    pairs = np.array(list(combinations(range(n_classes), 2)))
    eye = np.eye(n_classes)
    return eye[pairs[:, 0]], eye[pairs[:, 1]]


VOID = (
    "the decision function is zero as far as tol tells: with so few slacks counted, the weighted means of the two "
    "classes can meet, and f = 0 costs no more than any other. Raise the budget (or use slack='l1'), use a "
    "kernel that separates more, or lower tol if C is small"
)


class AllPointsClassifier(ExpansionClassifier):
    """Trains on every point through the dual; subclasses say which slack norm, with which constraint."""

    @abstractmethod
    def _norm(self) -> tuple[Slack, Constraint]:
        """The slack norm and the constraint; ValueError for parameters that make no sense."""

    def _check_params(self) -> None:
        """Raise ValueError for parameters that make no sense."""
        validation.check_number("C", self.C, above=0)
        validation.check_common(self, least_iter=-1)
        validation.check_choice("precision", self.precision, ("float32", "float64"))
        slack, _ = self._norm()
        if self.class_weight is not None and not slack.counts_rows:
            raise ValueError(
                f"class_weight={self.class_weight!r} would change nothing with {slack!r}, where a row counts the same "
                "however often it occurs; leave it out, or use another slack"
            )

    def _accuracy(self) -> float:
        """The gap to be reached."""
        return self.tol

    def _solve(self, machine: Any, problems: list[BinaryProblem], n_samples: int) -> list[DualSolution]:
        """Solve the binary problems over the machine."""
        slack, constraint = self._norm()
        solutions = []
        for problem in problems:
            binary = Binary(problem.y, slack.at(problem.rows, n_samples), float(self.C), problem.weights, constraint)
            progress = Progress(problem.label) if self.verbose else None
            double_rows = self.precision == "float64"
            limit = min(self.max_iter, 2**62)
            solutions.append(solve_dual(machine, problem.view, binary, self._accuracy(), limit, double_rows, progress))
        return solutions

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        labelled = self._labelled(X, y, sample_weight)
        X, weight, classes = labelled.X, labelled.sample_weight, labelled.classes
        precomputed = validation.is_precomputed(self.kernel)
        training = _by_class(labelled)
        kernel = kernels.resolve(self.kernel, self.gamma, self.degree, self.coef0, X, weight)
        complaint = validation.kernel_complaint(kernel, X)
        threads = validation.thread_count(self.n_jobs)
        machine = kernel.machine(
            X, training.order, training.lengths, int(min(self.cache_size, 2.0**30) * 2**20), threads
        )
        problems = binary_problems(training, classes, self.multi_class)
        solutions = self._solve(machine, problems, X.shape[0])
        if complaint is None and any(s.indefinite for s in solutions):
            complaint = validation.INDEFINITE.format("a pair of points has negative curvature")
        if complaint is not None:
            warnings.warn(complaint, stacklevel=3)
        self._warn_if_unsolved(solutions)
        if any(s.void and s.converged for s in solutions):
            warnings.warn(VOID, stacklevel=3)
        self.classes_ = classes
        self.kernel_ = copy(kernel)  # the user's own object may change
        self._one_vs_one = len(classes) > 2 and self.multi_class == "ovo"
        self._keep(training, problems, solutions, precomputed)
        return self

    def _warn_if_unsolved(self, solutions: list[DualSolution]) -> None:
        unsolved = [s for s in solutions if not s.converged]
        if unsolved:
            worst = max(unsolved, key=lambda s: s.gap)
            limited = 0 <= self.max_iter <= worst.n_iter
            reason = f"max_iter={self.max_iter} ended the fit" if limited else "the fit got no further"
            remedy = "raise max_iter" if limited else "raise cache_size"
            warnings.warn(
                f"{reason} in {len(unsolved)} of {len(solutions)} binary problems: relative duality gap "
                f"{worst.gap:.2e}, asked for tol={self.tol:g}. Scale the features, lower C, {remedy} or raise tol",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _keep(
        self,
        training: TrainingSet,
        problems: list[BinaryProblem],
        solutions: list[DualSolution],
        precomputed: bool,
    ) -> None:
        """Fitted attributes: each vector once, whatever the number of binary problems it serves."""
        used = np.zeros(len(training.order), dtype=bool)
        for problem, solution in zip(problems, solutions, strict=True):
            used[problem.positions[solution.duals != 0]] = True
        kept = np.flatnonzero(used)
        place = np.cumsum(used) - 1
        self.vector_coef_ = np.zeros((len(problems), len(kept)))
        for o, (problem, solution) in enumerate(zip(problems, solutions, strict=True)):
            vectors = solution.duals != 0
            self.vector_coef_[o, place[problem.positions[vectors]]] = solution.duals[vectors]
        self.support_ = training.order[kept]
        self.vectors_ = self.support_ if precomputed else training.X[self.support_]
        self.n_vectors_ = len(kept)
        self.intercept_ = np.array([s.bias for s in solutions])
        self.objective_ = np.array([s.objective for s in solutions])
        self.duality_gap_ = np.array([s.gap for s in solutions])
        self.n_iter_ = np.array([s.n_iter for s in solutions])


def _by_class(labelled: LabelledRows) -> TrainingSet:
    order = np.argsort(labelled.codes, kind="stable")
    lengths = np.bincount(labelled.codes, minlength=len(labelled.classes)).tolist()
    return TrainingSet(labelled.X, labelled.rows[order].astype(np.int64), lengths, labelled.weights[order])


def binary_problems(training: TrainingSet, classes: Array, multi_class: str) -> list[BinaryProblem]:
    """Two classes: one problem. More: each pair of classes, or each class against the others."""
    k = len(classes)
    every = list(range(k))
    if k == 2 or multi_class == "ovr":
        group = np.repeat(every, training.lengths)
        positives = [1] if k == 2 else every

        def label(c: int) -> str:
            return f"classes {classes[0]!s} and {classes[1]!s}" if k == 2 else f"class {classes[c]!s}"

        n = len(group)
        return [
            BinaryProblem(
                label(c), every, np.where(group == c, 1.0, -1.0), training.weights, np.arange(n), training.order
            )
            for c in positives
        ]
    problems = []
    members = np.split(np.arange(len(training.order)), np.cumsum(training.lengths)[:-1])
    for i, j in combinations(every, 2):
        positions = np.concatenate([members[i], members[j]])
        y = np.ones(len(positions))
        y[len(members[i]) :] = -1
        pair = f"classes {classes[i]!s} and {classes[j]!s}"
        problems.append(
            BinaryProblem(pair, [i, j], y, training.weights[positions], positions, training.order[positions])
        )
    return problems
