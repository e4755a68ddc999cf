"""Training of a small one-class model: a model over all rows is trained and then compressed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.dataset import Dataset
from ..linalg.arrays import Array, is_remote
from ..model.expansion import Expansion
from ..problem.bases import dense
from ..quantization.quantize import fixed_point_form
from ..rows.remote import RowBlock
from ..solvers.dual.one_class import train_one_class as train_large_model
from ..solvers.dual.programs import SolverOptions
from ..solvers.dual.sklearn_svm import SvmSolution
from ..training.byte_budget import TooFewBytes
from .holdout import small_model_by_holdout
from .methods import Compressor
from .original import Original
from .report import Compression
from .sizes import SmallModel, small_model
from .tasks import OneClass

MAX_TRAINING_ROWS = 20_000  # with more rows a sample is drawn: the border hardly changes, and training is expensive
MAX_VECTORS_IN_BUDGET = 300


@dataclass(frozen=True)
class OneClassSpec:
    """The checked parameters of `SlimOneClass`."""

    n_vectors: Any
    nu: float
    contamination: float | None
    max_bytes: int | None
    agreement: float
    options: SolverOptions
    cache_bytes: int
    seed: int
    threads: int
    verbose: bool


@dataclass(frozen=True)
class SmallOneClass:
    """A small one-class model, the report of its compression, and the solution of the model over all rows."""

    expansion: Expansion
    compression: Compression
    large: SvmSolution


def in_canonical_order(rows: Dataset) -> Dataset:
    """Rows in memory sorted by their contents; remote rows stay as they are."""
    if is_remote(rows.X):
        return rows
    rows = rows.sorted()
    return replace(rows, X=sp.csr_array(rows.X)) if sp.issparse(rows.X) else rows


def train_one_class(rows: Dataset, kernel: Any, spec: OneClassSpec) -> SmallOneClass:
    """Train a one-class model on (a sample of) the rows, compress it, and set its offset."""
    sample = rows.sample(MAX_TRAINING_ROWS, np.random.default_rng(spec.seed)).in_memory()
    sample = replace(sample, X=sample.X.astype(np.float64, copy=False), counts=np.array(sample.counts))
    original, large = _large_model(sample, kernel, spec)
    compressor = Compressor(original, sample, spec.seed, spec.threads, spec.verbose)
    small = _small_model(compressor, spec)
    f = replace(small.expansion, vectors=small.expansion.vectors.astype(rows.X.dtype, copy=False))
    if spec.contamination is not None:
        scores, counts = _scores(rows, replace(f, bias=np.zeros(1)), spec.threads)
        f = replace(f, bias=-threshold(scores, counts, spec.contamination))
    return SmallOneClass(f, Compression.of(compressor, small), large)


def _large_model(rows: Dataset, kernel: Any, spec: OneClassSpec) -> tuple[Original, SvmSolution]:
    """Train the one-class model over all of these rows."""
    expansion, solution = train_large_model(
        kernel, rows.X, rows.counts, spec.nu, spec.options, spec.cache_bytes, spec.threads, spec.verbose
    )
    return Original.of(expansion, OneClass(solution.violation), 1.0), solution


def _small_model(compressor: Compressor, spec: OneClassSpec) -> SmallModel:
    """Compress to a number of vectors, to as few as agree with the original, or to as many as fit in the byte
    budget."""
    kernel, rows = compressor.original.expansion.kernel, compressor.rows
    if spec.max_bytes is None and isinstance(spec.n_vectors, str):
        return small_model_by_holdout(
            compressor, rows, "margin", spec.agreement, lambda seen: _large_model(seen, kernel, spec)[0]
        )
    if spec.max_bytes is None:
        return small_model(compressor, "margin", spec.n_vectors, spec.agreement)
    n_inputs, form = rows.X.shape[1], fixed_point_form(kernel)

    def min_bytes(count: int) -> int:
        return sum(form.least_parts(count, n_inputs, n_inputs, 1, False, False).values())

    if min_bytes(1) > spec.max_bytes:
        raise TooFewBytes(spec.max_bytes, "a detector", min_bytes(1), n_inputs, False)
    bytes_per_vector = max(1, min_bytes(2) - min_bytes(1))
    count = min(MAX_VECTORS_IN_BUDGET, 1 + (spec.max_bytes - min_bytes(1)) // bytes_per_vector)
    while True:
        small = small_model(compressor, "margin", count, spec.agreement)
        excess = sum(form.parts(kernel, dense(small.expansion.vectors), 1, False).values()) - spec.max_bytes
        if excess <= 0 or count == 1:
            return small
        # Outlying vectors need steps or offsets of their own, which cost bytes: keep fewer vectors.
        count = max(1, count - 1 - excess // bytes_per_vector)


def _scores(rows: Dataset, expansion: Expansion, threads: int) -> tuple[Array, Array]:
    """Decision values of all rows, and their counts."""
    if not is_remote(rows.X):
        return expansion.decision(rows.X, threads)[:, 0], rows.counts
    scores, counts = zip(*rows.X.map_blocks(_block_scores, expansion), strict=True)
    return np.concatenate(scores), np.concatenate(counts)


def _block_scores(block: RowBlock, expansion: Expansion) -> tuple[Array, Array]:
    X = block.X[:] if is_remote(block.X) else block.X  # a block may be on a device
    return expansion.decision(X, 1)[:, 0], np.array(block.counts)


def threshold(scores: Array, counts: Array, share: float) -> Array:
    """The weighted quantile of the scores at ``share``, rounded to a midpoint between two different scores."""
    order = np.argsort(scores, kind="stable")
    scores, cumulative = scores[order], np.cumsum(counts[order])
    is_last = np.append(scores[1:] > scores[:-1], True)  # rows with equal scores stay together
    last = np.append(-1, np.flatnonzero(is_last))  # -1: no row is below
    weight_below = np.append(0.0, cumulative[last[1:]])
    k = last[np.abs(weight_below - share * cumulative[-1]).argmin()]
    below = scores[k] if k >= 0 else scores[0] - 1
    above = scores[k + 1] if k + 1 < len(scores) else scores[k] + 1
    return np.array([0.5 * (below + above)])
