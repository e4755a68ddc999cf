"""The methods of compression: reduced set, refit, margin and learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..basis.distillation import distill, distilled_coefficients
from ..basis.reduced_set import has_norm, reduced_set
from ..data.dataset import Dataset, ProblemGroup
from ..linalg.arrays import Array
from ..model.expansion import Expansion
from ..problem.bases import Learned, dense
from ..problem.losses import Hinge
from ..problem.regularizers import Identity, KernelNorm, Regularizer
from ..rows.labels import join_groups
from ..solvers.primal.coefficients import fit_coefficients
from ..utils.progress import Iterations
from .original import Original, distinct_rows, draw_rows, target_columns, unmerged_rows
from .tasks import DistillationTargets, PredictionTask

# Cost of deviations from the original's values, in units of its C. Chosen on test sets: see docs/compress.md.
DISTILLATION_COST = 5.0
EXACT_COST = 1e3  # in units of C, for values to be met exactly
MAX_ITERATIONS = {"reduced set": 100, "one problem": 100, "one-vs-rest": 60}
MAX_NEWTON_MULTIPLIES = 4e9  # of one Newton step while vectors move; with more, rows are sampled


@dataclass(frozen=True)
class Compressor:
    """Compresses one original; ``given_rows`` are the user's rows X, if any."""

    original: Original
    given_rows: Dataset | None = None
    seed: int = 0
    threads: int = 1
    verbose: bool = False

    @property
    def _kernel(self) -> Any:
        return self.original.expansion.kernel

    @cached_property
    def _has_norm(self) -> bool:
        """Whether the kernel defines a norm for the distance to the original."""
        return has_norm(self._kernel, self.original.expansion.vectors) and self.original.has_norms

    @property
    def _regularizer(self) -> Regularizer:
        """The norm of f in the kernel's space; if there is none, the sum of squared coefficients."""
        return KernelNorm() if self._has_norm else Identity()

    @cached_property
    def rows(self) -> Dataset:
        """The training rows: the given ones, or examples made from the original's vectors."""
        return self._examples if self.given_rows is None else self.given_rows

    @cached_property
    def _examples(self) -> Dataset:
        X = self.original.task.example_rows(self.original.expansion.vectors, self._rng())
        return unmerged_rows(X, np.ones(X.shape[0]))

    @cached_property
    def original_values(self) -> Array:
        """The original's decision values at the training rows."""
        return self.values(self.original.expansion, self.rows.X)

    @cached_property
    def units(self) -> Array:
        """The units in which errors of the outputs are summed: one for each output, or one for all."""
        return self.original.task.units(self.original_values, self.rows.counts)

    def values(self, expansion: Expansion, X: Any) -> Array:
        """Decision values (rows x outputs) of an expansion at rows X, in float64."""
        return expansion.decision(X.astype(np.float64, copy=False), self.threads)

    def agreement(self, small: Expansion) -> float:
        """Agreement of predictions with the original on the training rows."""
        return self.original.task.agreement(self.original_values, self.values(small, self.rows.X), self.rows.counts)

    def similarity(self, small: Expansion) -> float:
        """Similarity to the original on the training rows, the criterion for selecting models."""
        return self.original.task.similarity(self.original_values, self.values(small, self.rows.X), self.rows.counts)

    # --- the methods that users name ---

    def reduced_set(self, count: int, thorough: bool = True) -> Expansion:
        """The expansion over ``count`` vectors nearest to the original in the kernel's space, with the original's bias.

        ``thorough``: restarts for very few vectors; they do not help where the set is the start of another method.
        """
        original = self.original.expansion
        watch = self._watch(f"reduced set of {count} vectors")
        nearest = reduced_set(
            self._kernel,
            original.vectors,
            original.coef / self.units[:, None],
            count,
            self._rng(),
            MAX_ITERATIONS["reduced set"] if self._has_norm else 0,
            threads=self.threads,
            callback=watch,
            restarts=thorough,
        )
        if watch is not None:
            watch.finish(nearest.n_iter, nearest.value)
        # Vectors that cannot move stay rows of the original, sparse like these.
        fixed = not self._kernel.differentiable and sp.issparse(original.vectors)
        vectors = sp.csr_array(nearest.vectors) if fixed else nearest.vectors
        small = replace(original, vectors=vectors, coef=nearest.coef * self.units[:, None])
        if self._has_norm:
            return small
        # Without a norm, approximate the values at the original's vectors.
        F = self.values(original, original.vectors)
        exact = ProblemGroup(None, np.stack([F, F], axis=-1), np.full(F.shape, EXACT_COST * self.original.cost))
        return self._with_coefficients(small, original.vectors, DistillationTargets([exact], exact))

    def refit(self, count: int) -> Expansion:
        """The vectors of the reduced set with coefficients and biases fitted to labels."""
        small, rows = self.reduced_set(count), self.rows
        binary = self.original.task.binary_problems(rows, self._label_costs())
        if binary is None:
            return self.with_coefficients_from_labels(small)
        norm = self._regularizer.among(self._kernel, rows.X, True)
        fitted = fit_coefficients(
            self._kernel,
            rows.X,
            small.vectors,
            join_groups(binary, rows.X.shape[0]),
            Hinge(),
            norm,
            tol=1e-6,
            threads=self.threads,
        )
        return replace(small, coef=fitted.coef, bias=fitted.bias)

    def margin(self, count: int) -> Expansion:
        """The model most similar to the original among three candidates.

        These are a reduced set, the same vectors with coefficients fitted to the original's values, and vectors learned
        from these values. (With several classes, moving the vectors for one-vs-rest targets may make pairs worse.)
        """
        start = self.reduced_set(count, thorough=False)
        costs = DISTILLATION_COST * self.original.cost * self.rows.counts
        targets = self.original.task.targets_from_values(self.original_values, costs)
        candidates = [start, self._with_coefficients(start, self.rows.X, targets), self._distilled(start, targets)]
        return max(candidates, key=self.similarity)  # the first of equals

    def learn(self, count: int) -> Expansion:
        """Learn vectors and coefficients from labels, starting from a reduced set.

        Where the cost C is only estimated, also train with a penalty on the distance to the original, and keep the
        model that agrees with it on more rows."""
        start, targets = self.reduced_set(count, thorough=False), self._targets_from_labels()
        both = self.original.cost_is_estimated and not targets.near
        variants = [targets, replace(targets, near=True)] if both else [targets]
        return max((self._distilled(start, variant) for variant in variants), key=self.similarity)

    def with_coefficients_from_labels(self, small: Expansion) -> Expansion:
        """Fit coefficients over the same vectors to the labels of the training rows."""
        return self._with_coefficients(small, self.rows.X, self._targets_from_labels())

    # --- shared steps ---

    def _targets_from_labels(self) -> DistillationTargets:
        return self.original.task.targets_from_labels(self.rows, self._label_costs())

    def _label_costs(self) -> Array:
        return self.original.cost * self.rows.counts * self.original.task.class_weights(self.rows)

    def _distilled(self, start: Expansion, targets: DistillationTargets) -> Expansion:
        """Learn the vectors for the targets, on a sample if rows are many; then fit coefficients on all rows."""
        if self._kernel.differentiable:
            start = replace(start, vectors=self._moved_vectors(start, targets))
        return self._with_coefficients(start, self.rows.X, targets)

    def _moved_vectors(self, start: Expansion, targets: DistillationTargets) -> Array:
        rows, moving, count = self.rows, targets.moving, start.coef.shape[1]
        work = moving.Y.shape[1] * count**2
        size = int(min(Learned().most_rows(count), max(5000, MAX_NEWTON_MULTIPLIES / work)))
        some, counts = draw_rows(rows, size, self.original.task.strata(self.original_values), self._rng())
        C = moving.C[some] * (counts / rows.counts[some])[:, None]
        X, group = rows.X[some], ProblemGroup(None, moving.Y[some] / self.units[:, None], C)
        pull, squares = np.zeros(group.C.shape), 0.0
        if targets.near and not targets.one_vs_rest and self._has_norm:
            X, (group,), pull = self._with_original_vectors(X, [group])
            pull, squares = pull / self.units, float((self.original.norms / self.units**2).sum())
        used = _depend_on_vectors(group, pull)
        if not used.any():
            return dense(start.vectors)
        group, pull = ProblemGroup(None, group.Y[:, used], group.C[:, used]), pull[:, used]
        watch = self._watch(f"teaching {count} vectors on {len(some)} rows")
        learned = distill(
            self._kernel,
            X,
            group,
            pull,
            squares,
            dense(start.vectors),
            self._rng(),
            targets.loss,
            self._regularizer,
            MAX_ITERATIONS["one-vs-rest" if targets.one_vs_rest else "one problem"],
            threads=self.threads,
            callback=watch,
        )
        if watch is not None:
            watch.finish(learned.n_iter, learned.value)
        return learned.vectors

    def _with_coefficients(self, small: Expansion, X: Any, targets: DistillationTargets) -> Expansion:
        """Fit coefficients over fixed vectors to the targets."""
        groups = targets.outputs
        pull = np.zeros((X.shape[0], len(small.coef)))
        if targets.near and self._has_norm:
            X, groups, pull = self._with_original_vectors(X, groups)
        coef, bias = distilled_coefficients(
            self._kernel, X, small.vectors, groups, pull, small.bias, targets.loss, self._regularizer, self.threads
        )
        return replace(small, coef=coef, bias=bias)

    def _with_original_vectors(self, X: Any, groups: list[ProblemGroup]) -> tuple[Any, list[ProblemGroup], Array]:
        """Append the original's vectors to the rows, without targets; return also the coefficients of all rows, which
        pull the model towards the original."""
        original = self.original.expansion
        if X is original.vectors:
            return X, groups, original.coef.T
        n, m = X.shape[0], self.original.size
        stack = sp.vstack if sp.issparse(X) else np.vstack
        pull = np.vstack([np.zeros((n, len(original.coef))), original.coef.T])
        vectors = original.vectors.astype(X.dtype, copy=False)
        return stack([X, vectors]), [_with_free_rows(group, m) for group in groups], pull

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def _watch(self, label: str) -> Iterations | None:
        return Iterations(label) if self.verbose else None


def _depend_on_vectors(targets: ProblemGroup, pull: Array) -> Array:
    """Mask of the outputs for which no constant is optimal: intervals without common point, or a nonzero original."""
    return (targets.Y[..., 0].max(axis=0) > targets.Y[..., 1].min(axis=0)) | pull.any(axis=0)


def _with_free_rows(targets: ProblemGroup, count: int) -> ProblemGroup:
    """Append ``count`` rows without targets: their interval is unbounded."""
    if targets.rows is not None:
        return targets
    n_outputs = targets.Y.shape[1]
    free = np.broadcast_to(np.array([-np.inf, np.inf]), (count, n_outputs, 2))
    costs = np.concatenate([targets.C, np.zeros((count, n_outputs))])
    return ProblemGroup(None, np.concatenate([targets.Y, free]), costs)


@dataclass(frozen=True)
class RegressionRefit:
    """Refits a regressor's coefficients over other vectors to targets; see `slimsvm.solvers.primal.refit.Refit`."""

    task: PredictionTask
    cost: float

    def coefficients(self, machine: Any, kernel: Any, Z: Array, X: Array, y: Array) -> tuple[Array, Array]:
        before = replace(machine.expansion, kernel=kernel)
        rows = distinct_rows(X, np.ones(len(X)), targets=target_columns(y, len(before.bias)))
        compressor = Compressor(Original.of(before, self.task, self.cost), rows)
        refitted = compressor.with_coefficients_from_labels(replace(before, vectors=Z))
        return refitted.coef, refitted.bias


METHODS: dict[str, Callable[[Compressor, int], Expansion]] = {
    "reduced_set": Compressor.reduced_set,
    "refit": Compressor.refit,
    "margin": Compressor.margin,
    "learn": Compressor.learn,
}
