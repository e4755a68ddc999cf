"""The ways to make a machine small."""

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
from ..data.duplicates import row_keys
from ..linalg.arrays import Array
from ..model.expansion import Expansion
from ..problem.bases import Learned, dense
from ..problem.losses import Hinge
from ..problem.regularizers import Identity, KernelNorm, Regularizer
from ..rows.labels import join_groups
from ..solvers.primal.coefficients import fit_coefficients
from ..utils.progress import Iterations
from .original import Original, WeightedRows, in_columns
from .tasks import DistillationTargets, PredictionTask

# Cost of a row that the original teaches, in units of its own C. Chosen on test sets: see docs/compress.md.
TEACHING = 5.0
ITERATIONS = {"reduced set": 100, "one problem": 100, "all classes": 60}
EXACTLY = 1e3  # times C: the cost of a value that is to be met
# Multiplications of one Newton step of learning: rows are drawn where there are more.
MOST_WORK = 4e9


@dataclass(frozen=True)
class Compressor:
    """The ways to make one machine small; ``known`` are rows other than its vectors, if there are any."""

    original: Original
    known: WeightedRows | None = None
    seed: int = 0
    threads: int = 1
    verbose: bool = False

    @property
    def _kernel(self) -> Any:
        return self.original.expansion.kernel

    @cached_property
    def _has_norm(self) -> bool:
        """Is there a norm in which the small machine can be near the original?"""
        return has_norm(self._kernel, self.original.expansion.vectors) and self.original.has_norms

    @property
    def _norm(self) -> Regularizer:
        """What coefficients pay for: without a norm of functions, their own squares."""
        return KernelNorm() if self._has_norm else Identity()

    @cached_property
    def rows(self) -> WeightedRows:
        """The rows to teach on."""
        return self._as_known(self._examples) if self.known is None else self.known

    @cached_property
    def _examples(self) -> Any:
        return self.original.goal.examples(self.original.expansion.vectors, self._rng())

    def _as_known(self, X: Any) -> WeightedRows:
        return WeightedRows(X, np.ones(X.shape[0]), row_keys(X))

    @cached_property
    def judged(self) -> Array:
        """The original's values of these rows."""
        return self.values(self.original.expansion, self.rows.X)

    @cached_property
    def units(self) -> Array:
        """What outputs are measured in where vectors serve all of them: one for each, or for all."""
        return self.original.goal.units(self.judged, self.rows.counts)

    def values(self, machine: Expansion, X: Any) -> Array:
        """Values of all outputs at rows X, in float64."""
        return machine.decision(X.astype(np.float64, copy=False), self.threads)

    def agreement(self, small: Expansion) -> float:
        """With the original, on the rows to teach on."""
        return self.original.goal.agreement(self.judged, self.values(small, self.rows.X), self.rows.counts)

    def likeness(self, small: Expansion) -> float:
        """To the original, on the same rows."""
        return self.original.goal.likeness(self.judged, self.values(small, self.rows.X), self.rows.counts)

    def knowing(self, rows: Dataset) -> Compressor:
        """The same, with other rows to teach on."""
        return replace(self, known=WeightedRows(rows.X, rows.counts, rows.keys, rows.codes), verbose=False)

    # --- the methods that users name ---

    def reduced_set(self, count: int, thorough: bool = True) -> Expansion:
        """The expansion of so many vectors that is nearest in the kernel's space; the bias is the original's.

        For teaching, the nearest of very few vectors is no better a start: ``thorough`` is for the set itself.
        """
        machine = self.original.expansion
        watch = self._watch(f"reduced set of {count} vectors")
        found = reduced_set(
            self._kernel,
            machine.vectors,
            machine.coef / self.units[:, None],
            count,
            self._rng(),
            ITERATIONS["reduced set"] if self._has_norm else 0,
            threads=self.threads,
            callback=watch,
            restarts=thorough,
        )
        if watch is not None:
            watch.finish(found.n_iter, found.value)
        # Vectors that could not move are rows of the original, kept as it keeps them.
        still = not self._kernel.differentiable and sp.issparse(machine.vectors)
        vectors = sp.csr_array(found.vectors) if still else found.vectors
        small = replace(machine, vectors=vectors, coef=found.coef * self.units[:, None])
        if self._has_norm:
            return small
        # Without a norm, values at the original's vectors are all that can be near.
        F = self.values(machine, machine.vectors)
        exact = ProblemGroup(None, np.stack([F, F], axis=-1), np.full(F.shape, EXACTLY * self.original.cost))
        return self._with_coefficients(small, self._as_known(machine.vectors), DistillationTargets([exact], exact))

    def refit(self, count: int) -> Expansion:
        """The vectors of the reduced set; coefficients and biases fitted to rows with labels."""
        small, rows = self.reduced_set(count), self.rows
        binary = self.original.goal.binary(rows.y, self._label_costs())
        if binary is None:
            return self.relearned(small)
        norm = self._norm.among(self._kernel, rows.X, True)
        found = fit_coefficients(
            self._kernel,
            rows.X,
            small.vectors,
            join_groups(binary, rows.X.shape[0]),
            Hinge(),
            norm,
            tol=1e-6,
            threads=self.threads,
        )
        return replace(small, coef=found.coef, bias=found.bias)

    def margin(self, count: int) -> Expansion:
        """A reduced set that is taught the original's own values of rows, where that makes it more like it.

        Of several classes' vectors, which serve all pairs at once when they move, the start may be the better ones.
        """
        start = self.reduced_set(count, thorough=False)
        lesson = self.original.goal.taught(self.judged, TEACHING * self.original.cost * self.rows.counts)
        found = [start, self._with_coefficients(start, self.rows, lesson), self._taught(start, lesson)]
        return max(found, key=self.likeness)  # the first of the best

    def learn(self, count: int) -> Expansion:
        """A reduced set that is taught labels.

        Where their cost is estimated, also train with a penalty for leaving the original, and keep the model that
        agrees with it on more rows.
        """
        start, lesson = self.reduced_set(count, thorough=False), self._lesson_of_labels()
        both = self.original.cost_is_estimated and not lesson.near
        lessons = [lesson, replace(lesson, near=True)] if both else [lesson]
        return max((self._taught(start, lesson) for lesson in lessons), key=self.likeness)

    def relearned(self, small: Expansion) -> Expansion:
        """The best coefficients over these vectors by the labels of the rows."""
        return self._with_coefficients(small, self.rows, self._lesson_of_labels())

    # --- what they share ---

    def _lesson_of_labels(self) -> DistillationTargets:
        goal, rows = self.original.goal, self.rows
        return goal.from_labels(rows.y, self._label_costs())

    def _label_costs(self) -> Array:
        return self.original.cost * self.rows.counts * self.original.goal.weights(self.rows.y)

    def _taught(self, start: Expansion, lesson: DistillationTargets) -> Expansion:
        """Vectors moved for the lesson, on some of the rows where those are many; then coefficients on all rows."""
        if self._kernel.differentiable:
            start = replace(start, vectors=self._moved(start, lesson))
        return self._with_coefficients(start, self.rows, lesson)

    def _moved(self, start: Expansion, lesson: DistillationTargets) -> Array:
        rows, moving, count = self.rows, lesson.moving, start.coef.shape[1]
        work = moving.Y.shape[1] * count**2
        most = int(min(Learned().most_rows(count), max(5000, MOST_WORK / work)))
        some, counts = rows.sample(most, self.original.goal.codes(self.judged), self._rng())
        C = moving.C[some] * (counts / rows.counts[some])[:, None]
        X, targets = rows.X[some], ProblemGroup(None, moving.Y[some] / self.units[:, None], C)
        pull, squares = np.zeros(targets.C.shape), 0.0
        if lesson.near and not lesson.others and self._has_norm:
            X, (targets,), pull = self._beside(X, [targets])
            pull, squares = pull / self.units, float((self.original.norms / self.units**2).sum())
        places = _not_constant(targets, pull)
        if not places.any():
            return dense(start.vectors)
        targets, pull = ProblemGroup(None, targets.Y[:, places], targets.C[:, places]), pull[:, places]
        watch = self._watch(f"teaching {count} vectors on {len(some)} rows")
        found = distill(
            self._kernel,
            X,
            targets,
            pull,
            squares,
            dense(start.vectors),
            self._rng(),
            lesson.loss,
            self._norm,
            ITERATIONS["all classes" if lesson.others else "one problem"],
            threads=self.threads,
            callback=watch,
        )
        if watch is not None:
            watch.finish(found.n_iter, found.value)
        return found.vectors

    def _with_coefficients(self, small: Expansion, rows: WeightedRows, lesson: DistillationTargets) -> Expansion:
        """The best coefficients over the vectors as they are."""
        X, lessons = rows.X, lesson.outputs
        pull = np.zeros((X.shape[0], len(small.coef)))
        if lesson.near and self._has_norm:
            X, lessons, pull = self._beside(X, lessons)
        coef, bias = distilled_coefficients(
            self._kernel, X, small.vectors, lessons, pull, small.bias, lesson.loss, self._norm, self.threads
        )
        return replace(small, coef=coef, bias=bias)

    def _beside(self, X: Any, lessons: list[ProblemGroup]) -> tuple[Any, list[ProblemGroup], Array]:
        """Rows, and behind them the original's vectors, which teach nothing but hold it near; their coefficients."""
        machine = self.original.expansion
        if X is machine.vectors:
            return X, lessons, machine.coef.T
        n, m = X.shape[0], self.original.size
        stack = sp.vstack if sp.issparse(X) else np.vstack
        pull = np.vstack([np.zeros((n, len(machine.coef))), machine.coef.T])
        return stack([X, machine.vectors.astype(X.dtype, copy=False)]), [_padded(t, m) for t in lessons], pull

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def _watch(self, label: str) -> Iterations | None:
        return Iterations(label) if self.verbose else None


def _not_constant(targets: ProblemGroup, pull: Array) -> Array:
    """Outputs for which it matters where vectors are: no constant is in all intervals, or a function is to be near."""
    return (targets.Y[..., 0].max(axis=0) > targets.Y[..., 1].min(axis=0)) | pull.any(axis=0)


def _padded(targets: ProblemGroup, more: int) -> ProblemGroup:
    """With so many rows behind that may have any value."""
    if targets.rows is not None:
        return targets
    outputs = targets.Y.shape[1]
    free = np.broadcast_to(np.array([-np.inf, np.inf]), (more, outputs, 2))
    return ProblemGroup(None, np.concatenate([targets.Y, free]), np.concatenate([targets.C, np.zeros((more, outputs))]))


@dataclass(frozen=True)
class Relearned:
    """Coefficients of a regressor over other vectors, by targets of rows: `slimsvm.solvers.primal.refit.Refit`."""

    goal: PredictionTask
    cost: float

    def coefficients(self, machine: Any, kernel: Any, Z: Array, X: Array, y: Array) -> tuple[Array, Array]:
        before = replace(machine.expansion, kernel=kernel)
        known = WeightedRows.of(X, np.ones(len(X)), in_columns(y, len(before.bias)))
        compressor = Compressor(Original.of(before, self.goal, self.cost), known)
        found = compressor.relearned(replace(before, vectors=Z))
        return found.coef, found.bias


METHODS: dict[str, Callable[[Compressor, int], Expansion]] = {
    "reduced_set": Compressor.reduced_set,
    "refit": Compressor.refit,
    "margin": Compressor.margin,
    "learn": Compressor.learn,
}
