"""Novelty detection from a given number of vectors, taught by a one-class machine over the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..compression import Compression, Compressor, Original, WeightedRows, agreeing_on_unseen, small_version
from ..compression.tasks import OneClass
from ..data.dataset import Dataset
from ..linalg.array_api import to_numpy
from ..linalg.arrays import Array
from ..model.expansion import Expansion
from ..problem import kernels
from ..problem.bases import dense
from ..quantization.quantize import fixed_point_form
from ..rows.remote import RemoteRows, RowBlock
from ..solvers.dual.one_class import train_one_class
from ..solvers.dual.programs import SolverOptions
from ..solvers.dual.sklearn_svm import SvmSolution
from ..training.byte_budget import TooFewBytes
from ..training.full import INDEFINITE_WARNING
from ..utils.threads import thread_count
from ..utils.warnings import warn
from . import checked_data, validation
from .adapters import SourceModel, source_model
from .base import OutlierDetector, atomic, including_border
from .documentation import documented
from .targets import NoTargets

MOST_ROWS = 20_000  # that teach: the border of so many is that of more, and a machine over all of them is dear
MOST_VECTORS = 300  # of a byte budget


@documented
class SlimOneClass(OutlierDetector):
    """Novelty detector of at most ``n_vectors`` vectors.

    A one-class support vector machine is trained on the rows, and the vectors and coefficients of the small model are
    learned such that it gives the rows the same values: see :doc:`/outliers`.

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
        Value of the problem of the large machine that taught this one: an upper bound on the optimum.
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
            arrays on a device: those that teach come here.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), optional
            Weight 0 is the same as leaving the row out, weight k as k copies of it.

        Returns
        -------
        self
        """
        self._check_params()
        dataset = checked_data.remote_dataset(self, X, None, sample_weight, NoTargets(), lambda: None)
        try:
            rows: Any = self._rows_here(X, sample_weight) if dataset is None else FarRows(dataset)
            self._fit_to(rows)
        finally:
            if dataset is not None:
                dataset.X.close()

    def _rows_here(self, X: Any, sample_weight: Any) -> WeightedRows:
        X, sample_weight = (to_numpy(v) for v in (X, sample_weight))
        X = validation.check_data(self, X, y="no_validation")
        X = sp.csr_array(validation.canonical(X)) if sp.issparse(X) else X
        weight = validation.sample_weights(self, sample_weight, X)
        return WeightedRows.of(X, np.ones(X.shape[0]) if weight is None else weight)

    def _fit_to(self, rows: Any) -> None:
        gamma = kernels.scale_gamma(self.gamma, rows.X, rows.counts) if kernels.takes_gamma(self.kernel) else 1.0
        kernel = kernels.resolve(self.kernel, gamma, self.degree, self.coef0)
        names = getattr(self, "feature_names_in_", None)
        complaints = [
            validation.scale_complaint(rows.X, self.kernel, names),
            validation.kernel_complaint(kernel, rows.X),
        ]
        for complaint in filter(None, complaints):
            warn(complaint)
        self._learn(rows, kernel)

    def _learn(self, rows: Any, kernel: Any) -> None:
        """Fitted attributes."""
        seed = int(check_random_state(self.random_state).randint(2**31))
        threads = thread_count(self.n_jobs)
        some = rows.drawn(MOST_ROWS, np.random.default_rng(seed)).in_double()
        original, large = self._large(some, kernel, threads)
        _warn_of(large, self.tol)
        compressor = Compressor(original, some, seed, threads, bool(self.verbose))
        small, used, note = self._small(compressor, lambda rows: self._large(rows, kernel, threads)[0])
        self.compression_ = Compression.of(compressor, small, used, note)
        self._keep(small, rows)
        self.objective_, self.duality_gap_ = np.array([large.objective]), np.array([large.gap])
        self.n_iter_ = np.array([max(1, large.n_iter)])

    def _large(self, rows: WeightedRows, kernel: Any, threads: int) -> tuple[Original, SvmSolution]:
        """The machine over all of these rows."""
        cache = int(min(self.cache_size, 2.0**30) * 2**20)
        limits = SolverOptions(self.tol, min(self.max_iter, 2**62), False, None)
        machine, found = train_one_class(
            kernel, rows.X, rows.counts, self.nu, limits, cache, threads, bool(self.verbose)
        )
        return Original.of(machine, OneClass(found.violation), 1.0), found

    def _small(
        self, compressor: Compressor, machine_over: Callable[[WeightedRows], Original]
    ) -> tuple[Expansion, str, str]:
        """As many vectors as are asked for, as agree, or as bytes pay for."""
        if self.max_bytes is None and isinstance(self.n_vectors, str):
            return agreeing_on_unseen(compressor, compressor.rows, "margin", self.agreement, machine_over)
        if self.max_bytes is None:
            return small_version(compressor, "margin", self.n_vectors, self.agreement)
        kernel, inputs = compressor.original.expansion.kernel, compressor.rows.X.shape[1]
        form = fixed_point_form(kernel)

        def least(count: int) -> int:
            return sum(form.least_parts(count, inputs, inputs, 1, False, False).values())

        if least(1) > self.max_bytes:
            raise TooFewBytes(self.max_bytes, "a detector", least(1), inputs, False)
        each = max(1, least(2) - least(1))
        count = min(MOST_VECTORS, 1 + (self.max_bytes - least(1)) // each)
        while True:
            found = small_version(compressor, "margin", count, self.agreement)
            excess = sum(form.parts(kernel, dense(found[0].vectors), 1, False).values()) - self.max_bytes
            if excess <= 0 or count == 1:
                return found
            # Vectors far out need steps or offsets of their own, which cost bytes: then fewer of them.
            count = max(1, count - 1 - excess // each)

    def _keep(self, small: Expansion, rows: Any) -> None:
        small = replace(small, vectors=small.vectors.astype(rows.X.dtype, copy=False))
        self.kernel_, self.vectors_ = small.kernel.fitted(small.vectors)
        self.n_vectors_ = self.vectors_.shape[0]
        self.vector_coef_, self.intercept_ = small.coef, small.bias
        if self.contamination is not None:
            machine = replace(small, bias=np.zeros(1))
            self.intercept_ = -threshold(*_scored(rows, machine, thread_count(self.n_jobs)), self.contamination)
        self.intercept_ = including_border(self.intercept_)
        self.offset_ = -self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _warn_of(found: SvmSolution, tol: float) -> None:
    """Of a large machine that is not solved."""
    if found.indefinite:
        warn(INDEFINITE_WARNING.format("a pair of points has negative curvature"))
    elif not found.converged:
        warn(
            f"the large machine has a relative duality gap of {found.gap:.2e}, asked for tol={tol:g}. Scale the "
            "features, raise max_iter or raise tol",
            ConvergenceWarning,
        )


@dataclass(frozen=True)
class FarRows:
    """Rows that are not in memory, as `WeightedRows` has those that are."""

    dataset: Dataset

    @property
    def X(self) -> Any:
        return self.dataset.X

    @property
    def counts(self) -> Any:
        return self.dataset.counts

    def drawn(self, most: int, rng: np.random.Generator) -> WeightedRows:
        """At most so many rows, by weight: the same as of rows in memory."""
        some = self.dataset.sample(most, rng).in_memory()
        return WeightedRows(some.X, np.array(some.counts), some.keys)


def _scored(rows: Any, machine: Expansion, threads: int) -> tuple[Array, Array]:
    """Values of all rows, and what the rows count."""
    if not isinstance(rows.X, RemoteRows):
        return machine.decision(rows.X, threads)[:, 0], rows.counts
    scores, counts = zip(*rows.X.map_blocks(_scores, machine), strict=True)
    return np.concatenate(scores), np.concatenate(counts)


def _scores(piece: RowBlock, machine: Expansion) -> tuple[Array, Array]:
    X = piece.X[:] if isinstance(piece.X, RemoteRows) else piece.X  # a block may be on a device
    return machine.decision(X, 1)[:, 0], np.array(piece.counts)


def threshold(scores: Array, counts: Array, share: float) -> Array:
    """The number below which so much of the rows' weight is: halfway between two scores, the nearest there is."""
    order = np.argsort(scores, kind="stable")
    scores, below = scores[order], np.cumsum(counts[order])
    apart = np.append(scores[1:] > scores[:-1], True)  # rows of one score are on one side
    ends = np.append(-1, np.flatnonzero(apart))  # before the first of them none is below
    weight = np.append(0.0, below[ends[1:]])
    k = ends[np.abs(weight - share * below[-1]).argmin()]
    under = scores[k] if k >= 0 else scores[0] - 1
    above = scores[k + 1] if k + 1 < len(scores) else scores[k] + 1
    return np.array([0.5 * (under + above)])


@source_model.register(SlimOneClass)
def _slim(model: Any) -> SourceModel:
    """A small one can be made smaller."""
    return SourceModel(model._expansion(), OneClass(), 1.0)
