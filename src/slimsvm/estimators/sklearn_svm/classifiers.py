"""The classifiers of `sklearn.svm`: `SVC` and `NuSVC`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ...linalg.arrays import Array
from ...linalg.matrix import dot
from ...model.voting import Votes
from ...problem import slacks
from ...solvers.dual.sklearn_svm import DualProblem, classification, nu_classification
from ...solvers.dual.training import Subproblem
from ...solvers.primal.refit import ClassProblem
from ...utils.warnings import warn
from .. import validation
from ..base import KernelClassifier, atomic, lazy_on_dask
from ..documentation import documented
from . import layout
from .probability import fit_sigmoids
from .rows import ONE_CLASS_LEFT, SvmClasses, SvmRows, checked_rows
from .training import SvmSpec, TrainedSvm, check_params, train_svm, warn_unsolved, warn_zero_functions

TIES_BY_VALUE = Votes(pairs=True, zero_is_positive=True)


class SvmClassifier(KernelClassifier):
    """One-vs-one classifier with scikit-learn's voting; subclasses define the binary problem."""

    class_weight: Any
    break_ties: Any
    probability: Any
    _one_class_left = ONE_CLASS_LEFT
    _remedy_for_zero = ""  # of the warning that decision functions are zero

    def _check_params(self) -> None:
        """Raise ValueError for parameters that make no sense."""
        check_params(self)
        validation.check_yes_or_no("break_ties", self.break_ties)

    def _spec(self) -> SvmSpec:
        """What is solved."""
        raise NotImplementedError

    @atomic
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; for ``kernel="precomputed"`` the square kernel matrix; for a function as kernel whatever that
            function takes.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C for each row: weight k is k copies. Rows of weight 0 or less are left out.

        Returns
        -------
        self
        """
        self._check_params()
        rows = checked_rows(self, X, y, sample_weight, SvmClasses(self.class_weight, self._one_class_left))
        self._set_svm(rows, train_svm(rows.dataset, self._spec()))

    def _set_svm(self, rows: SvmRows, trained: TrainedSvm) -> None:
        warn_unsolved(trained, self)
        warn_zero_functions(trained, self._remedy_for_zero)
        layout.set_svm(self, rows, trained)
        dataset = rows.dataset
        self.classes_, self.class_weight_, self._factors = dataset.classes, dataset.class_weights, dataset.class_weights
        # `predict` has the first of the classes with most votes, unless ties are broken by values.
        by_value = bool(self.break_ties) and self.decision_function_shape == "ovr"
        self._votes = TIES_BY_VALUE if by_value else Votes(pairs=True, by_value=False)
        if dataset.n_classes == 2:
            self._votes = Votes(zero_is_positive=True)
        if self._wants_probabilities():
            spec = self._spec()
            slopes, offsets, weights = fit_sigmoids(
                lambda train: train_svm(train, spec).model, dataset, trained.model.expansion
            )
            self.probability_coef_ = dot(weights * slopes, self.vector_coef_)
            self.probability_intercept_ = dot(weights, slopes * self.intercept_ + offsets)
            self._sigmoids = np.stack([slopes, offsets])

    def _decision_votes(self) -> Votes | None:
        return TIES_BY_VALUE if len(self.classes_) > 2 and self.decision_function_shape == "ovr" else None

    @lazy_on_dask
    def predict(self, X: Any) -> Array:
        """Class labels: the class with most votes of the pairs.

        Of classes with equally many votes the first, or with ``break_ties`` that of the highest score.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        return super().predict(X)

    _values = layout.svm_values
    _sparse = property(layout.is_sparse)
    _gamma = property(layout.gamma)
    support_vectors_ = property(layout.support_vectors)
    dual_coef_ = property(layout.dual_coef)
    coef_ = property(layout.linear_coef)

    # --- probabilities ---

    def _wants_probabilities(self) -> bool:
        return bool(self.probability) and self.probability != validation.NOT_SAID

    def _lacks_probabilities(self) -> str | None:
        return None if self._wants_probabilities() else "predict_proba is not available when probability=False"

    def _log_probabilities(self, X: Any) -> Array:
        check_is_fitted(self)
        if "probability_coef_" not in vars(self):
            raise NotFittedError("predict_proba is not available when fitted with probability=False")
        return super()._log_probabilities(X)

    # LIBSVM's numbers, p = 1 / (1 + exp(A f + B)); of two classes its f is that of the first.
    @property
    def probA_(self) -> Array:
        """Slopes of Platt's sigmoids, one for each pair of classes, as LIBSVM has them; deprecated by scikit-learn."""
        return -self._platt("probA_", 0)

    @property
    def probB_(self) -> Array:
        """Their offsets; deprecated by scikit-learn."""
        return self._platt("probB_", 1) * (1.0 if len(self.classes_) == 2 else -1.0)

    def _platt(self, name: str, which: int) -> Array:
        check_is_fitted(self)
        warn(f"Attribute `{name}` was deprecated by scikit-learn 1.9, which removes it in 1.11", FutureWarning)
        return self._sigmoids[which] if "probability_coef_" in vars(self) else np.empty(0)

    def __sklearn_tags__(self) -> Any:
        return layout.without_sparse_matrices(super().__sklearn_tags__())


@documented
class SVC(SvmClassifier):
    """Support vector classifier: `sklearn.svm.SVC`, solved to a certified duality gap.

    Minimises ``1/2 |f|^2 + C sum_i w_i max(0, 1 - y_i (f(x_i) + b))`` for each pair of classes.

    Parameters
    ----------
    C : float, default=1.0
        Cost of slacks, above 0; ``inf``: no slack is allowed.
    <kernel>
    <degree_first>
    <family>
    <family_classes>

    Attributes
    ----------
    <family_layout>
    <family_class_layout>
    <objective_>
    <kernel_>

    See Also
    --------
    SlimSVC : the same with few vectors.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import SVC
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> clf = SVC(C=10).fit(X, y)
    >>> clf.dual_coef_.shape == (1, len(clf.support_)), bool(clf.duality_gap_[0] <= 1e-3)
    (True, True)
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = False,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_params(self) -> None:
        super()._check_params()
        validation.check_cost(self.C)

    def _spec(self) -> SvmSpec:
        return SvmSpec.of(self, lambda problem, C: classification(problem.y, C, problem.weights), self.C)

    def _refit_problem(self) -> ClassProblem:
        return ClassProblem(self.C, partial(validation.factors_of, self), slacks.loss("l1"), tol=self.tol)


@documented
class NuSVC(SvmClassifier):
    """Support vector classifier with a bound on the part of margin errors: `sklearn.svm.NuSVC`, with a certificate.

    Minimises ``1/2 |f|^2 - nu r + 1/n sum_i max(0, r - y_i (f(x_i) + b))`` over f, b and the margin r for each pair of
    classes, and divides f and b by r.

    Parameters
    ----------
    nu : float, default=0.5
        At most this part of the rows are on the wrong side of the margin, and at least this part are vectors; above 0,
        and at most twice the part of the smaller class.
    <kernel>
    <degree_first>
    <family>
    <family_classes>

    Attributes
    ----------
    <family_layout>
    <family_class_layout>
    <objective_>
    <kernel_>

    Notes
    -----
    As in scikit-learn, ``class_weight`` changes nothing: this problem has no C.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import NuSVC
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> clf = NuSVC(nu=0.2).fit(X, y)
    >>> bool(clf.n_support_.sum() >= 0.2 * 200), bool(clf.score(X, y) > 0.9)
    (True, True)
    """

    _one_class_left = f"specified nu is infeasible. {ONE_CLASS_LEFT}"
    _remedy_for_zero = "; or raise nu: these rows cannot be separated with so few errors"

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = False,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_params(self) -> None:
        super()._check_params()
        validation.check_share("nu", self.nu)

    def _spec(self) -> SvmSpec:
        def formulation(problem: Subproblem, C: float) -> DualProblem:
            counts = np.asarray(problem.dataset.counts)[problem.rows]  # no C that weights of classes would change
            return nu_classification(problem.y, float(self.nu), counts)

        return SvmSpec.of(self, formulation)
