"""Novelty detection with a given number of vectors: a one-class model over the rows is compressed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..compression.one_class import OneClassSpec, SmallOneClass, in_canonical_order, train_one_class
from ..compression.tasks import OneClass
from ..data.dataset import Dataset
from ..problem import kernels
from ..quantization.quantize import fixed_point_form
from ..solvers.dual.programs import SolverOptions
from ..solvers.dual.sklearn_svm import SvmSolution
from ..training.full import INDEFINITE_WARNING
from ..utils.threads import thread_count
from ..utils.warnings import warn
from . import checked_data, validation
from .adapters import SourceModel, source_model
from .base import OutlierDetector, atomic, including_border
from .documentation import documented
from .targets import NoTargets


@documented
class SlimOneClass(OutlierDetector):
    """Novelty detector of at most ``n_vectors`` vectors.

    A one-class support vector machine is trained on the rows, and compressed: vectors and coefficients of the small
    model are learned such that it gives the rows the same values, see :doc:`/outliers`.

    Parameters
    ----------
    n_vectors : int, float or "auto", default=20
        How many vectors the model keeps at most; a fraction between 0 and 1 of those that the large machine has; or as
        few as reach ``agreement``, which takes several times as long. Not used where ``max_bytes`` is given.
    nu : float, default=0.1
        Share of the rows that the large machine leaves outside at most, and that are its vectors at least; above 0, at
        most 1. (`sklearn.svm.OneClassSVM` has 0.5, with which half of all rows are outliers.)
    contamination : float, optional
        Share of the training rows that is to be outside, above 0 and at most 0.5: ``offset_`` is set on the rows such
        that it is. None: the border of the large machine, which leaves more rows like these outside than ``nu`` says
        where rows are few.
    <kernel_of_rows>
    <gamma>
    <degree>
    max_bytes : int, optional
        Bytes that the model may take on a device (``model_bytes_``), in the place of ``n_vectors``: as many vectors as
        they pay for. With the kernels <fixed point>.
    agreement : float, default=0.99
        For ``n_vectors="auto"``: the share of rows, of those that neither has seen, on the same side as for the large
        machine; measured on parts of the rows, with machines over the others.
    tol : float, default=1e-3
        The large machine is trained until the relative duality gap and the violation of the optimality conditions are
        at most this.
    max_iter : int, default=-1
        Most SMO steps for it; -1: no limit.
    cache_size : float, default=400
        Megabytes for its kernel rows.
    <n_jobs>
    random_state : int, RandomState or None, default=0
        Seed of all draws: the same seed gives the same model, whatever the order of the rows. Of more than 20,000
        distinct rows so many are drawn, by weight.
    <verbose>

    Attributes
    ----------
    <vectors_of_one_output>
    offset_ : ndarray of shape (1,)
        ``decision_function(X) = score_samples(X) - offset_``.
    <model_bytes_>
    <kernel_>
    compression_ : `slimsvm.compression.Compression`
        Report: vectors and bytes (float32) of the large machine and of the small one, and how well they agree. A row on
        the border of the large machine, as far as its tolerance tells, agrees on either side. ``contamination`` moves
        the offset after that.
    objective_ : ndarray of shape (1,)
        Value of the large machine's problem: an upper bound on the optimum.
        ``duality_gap_`` says how far that can be, rounding errors of this value included.
    duality_gap_ : ndarray of shape (1,)
        Proof of that machine: its objective is at most this fraction above the best possible one. It says nothing of
        the small model; ``compression_`` does.
    n_iter_ : ndarray of shape (1,)
        Steps of its solver.

    See Also
    --------
    compress : Makes a fitted `OneClassSVM` small.

    References
    ----------
    .. [1] B. Schoelkopf, J. C. Platt, J. Shawe-Taylor, A. J. Smola, R. C. Williamson. Estimating the Support of a
       High-Dimensional Distribution. Neural Computation 13, 2001.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import SlimOneClass
    >>> X, _ = make_moons(500, noise=0.1, random_state=0)
    >>> detector = SlimOneClass(n_vectors=10).fit(X)
    >>> detector.predict([[0.0, 1.0], [3.0, 3.0]]).tolist()
    [1, -1]
    """

    def __init__(
        self,
        n_vectors: int | float | str = 20,
        *,
        nu: float = 0.1,
        contamination: float | None = None,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        max_bytes: int | None = None,
        agreement: float = 0.99,
        tol: float = 1e-3,
        max_iter: int = -1,
        cache_size: float = 400,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: bool = False,
    ):
        self.n_vectors = n_vectors
        self.nu = nu
        self.contamination = contamination
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.max_bytes = max_bytes
        self.agreement = agreement
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_params(self) -> None:
        validation.check_size(self.n_vectors)
        validation.check_share("nu", self.nu)
        validation.check_share("agreement", self.agreement)
        if self.contamination is not None:
            validation.check_share("contamination", self.contamination, most=0.5)
        validation.check_common(self, least_iter=-1)
        if validation.is_precomputed(self.kernel):
            raise ValueError(
                "kernel='precomputed' says nothing of vectors that are no training rows; pass the kernel itself, as a "
                "name or as a function k(X, Z)"
            )
        if self.max_bytes is not None:
            validation.check_number("max_bytes", self.max_bytes, at_least=1, integer=True)
            fixed_point_form(kernels.resolve(self.kernel))

    @atomic
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the detector.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, most of them usual ones. Also rows of files, see `slimsvm.rows`, dask arrays and dataframes, and
            arrays on a device: those that it is trained on come into memory.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), optional
            Weight 0 is the same as leaving the row out, weight k as k copies of it.

        Returns
        -------
        self
        """
        self._check_params()
        with checked_data.training_data(
            self, X, None, sample_weight, NoTargets(), check_remote=lambda: None
        ) as dataset:
            rows = in_canonical_order(dataset)
            self._set_one_class(train_one_class(rows, self._checked_kernel(rows), self._spec()))

    def _checked_kernel(self, rows: Dataset) -> Any:
        """The kernel with gamma as a number; warn where it or the scale of the columns is odd."""
        gamma = kernels.scale_gamma(self.gamma, rows.X, rows.counts) if kernels.takes_gamma(self.kernel) else 1.0
        kernel = kernels.resolve(self.kernel, gamma, self.degree, self.coef0)
        names = vars(self).get("feature_names_in_")
        complaints = [
            validation.scale_complaint(rows.X, self.kernel, names),
            validation.kernel_complaint(kernel, rows.X),
        ]
        for complaint in filter(None, complaints):
            warn(complaint)
        return kernel

    def _spec(self) -> OneClassSpec:
        return OneClassSpec(
            n_vectors=self.n_vectors,
            nu=self.nu,
            contamination=self.contamination,
            max_bytes=self.max_bytes,
            agreement=self.agreement,
            options=SolverOptions(self.tol, min(self.max_iter, 2**62), False, None),
            cache_bytes=int(min(self.cache_size, 2.0**30) * 2**20),
            seed=int(check_random_state(self.random_state).randint(2**31)),
            threads=thread_count(self.n_jobs),
            verbose=bool(self.verbose),
        )

    def _set_one_class(self, fitted: SmallOneClass) -> None:
        large, small = fitted.large, fitted.expansion
        _warn_unsolved(large, self.tol)
        self._set_expansion(replace(small, bias=including_border(small.bias)))
        self.offset_ = -self.intercept_
        self.compression_ = fitted.compression
        self.objective_, self.duality_gap_ = np.array([large.objective]), np.array([large.gap])
        self.n_iter_ = np.array([max(1, large.n_iter)])


def _warn_unsolved(large: SvmSolution, tol: float) -> None:
    if large.indefinite:
        warn(INDEFINITE_WARNING.format("a pair of points has negative curvature"))
    elif not large.converged:
        warn(
            f"the large machine has a relative duality gap of {large.gap:.2e}, asked for tol={tol:g}. Scale the "
            "features, raise max_iter or raise tol",
            ConvergenceWarning,
        )


@source_model.register(SlimOneClass)
def _slim_one_class(model: Any) -> SourceModel:
    """A small model can be compressed further."""
    return SourceModel(model._expansion(), OneClass(), 1.0)
