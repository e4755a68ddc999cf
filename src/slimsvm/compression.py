"""Compression of a fitted machine: an expansion over many vectors becomes one over few.

The vectors start as a reduced set (`vectors.reduced_set`): the expansion nearest to the original in the kernel's space.
They are then taught (`vectors.teaching`), near the original, what is known of its decisions: the values that it gives
to its own vectors, to rows X, or the labels y of those.

An `Original` is what is to be made small, whatever it was before; its goal says what its values mean, and so which
intervals the small machine is taught. Nothing here knows an estimator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .data import Targets, Task, row_keys, same_rows
from .expansion import Expansion
from .formulation import Array
from .goals import Goal, Lesson
from .linear import dot
from .parts.bases import Learned, dense
from .parts.losses import Hinge
from .parts.regularizers import Identity, KernelNorm, Regularizer
from .primal.coefficients import fit_coefficients
from .progress import Iterations
from .rows.labels import joined
from .vectors.reduced_set import has_norm, reduced_set, values
from .vectors.teaching import taught_coefficients, teach

# Cost of a row that the original teaches, in units of its own C. Chosen on test sets: see docs/compress.md.
TEACHING = 5.0
ITERATIONS = {"reduced set": 100, "one problem": 100, "all classes": 60}
EXACTLY = 1e3  # times C: the cost of a value that is to be met
# Multiplications of one Newton step of learning: rows are drawn where there are more.
MOST_WORK = 4e9


# --- what is to be made small --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Original:
    """A machine: its expansion, what its values mean, the cost C of its slacks; and the expansion as it was given, in
    which a vector may come twice."""

    expansion: Expansion
    goal: Goal
    cost: float
    given: Expansion

    @classmethod
    def of(cls, expansion: Expansion, goal: Goal, cost: float) -> Original:
        """Each vector once, in an order that does not depend on that of the training rows."""
        X, coef = expansion.vectors, np.asarray(expansion.coef, dtype=np.float64)
        used = np.flatnonzero(coef.any(axis=0))
        X, coef = X[used], coef[:, used]
        keys = row_keys(X)
        group = same_rows(X, keys)
        if group is not None:
            first = np.unique(group, return_index=True)[1]
            joined = np.zeros((len(coef), len(first)))
            np.add.at(joined.T, group, coef.T)
            X, coef, keys = X[first], joined, keys[first]
        order = np.argsort(keys, kind="stable")
        machine = replace(expansion, vectors=X[order], coef=np.ascontiguousarray(coef[:, order]))
        return cls(machine, goal, cost, expansion)

    @property
    def size(self) -> int:
        return self.expansion.coef.shape[1]

    @cached_property
    def norms(self) -> Array:
        """``|f_o|^2`` of each output."""
        machine = self.expansion
        return np.einsum("io,oi->o", values(machine.kernel, machine.vectors, machine.coef), machine.coef)


# --- rows that are known -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """Rows to teach on, each once, in an order of their own; labels where there are any."""

    X: Any
    counts: Array
    keys: Array
    y: Any = None

    @classmethod
    def of(cls, X: Any, counts: Array, y: Array | None = None) -> Known:
        """Rows that count; equal rows (with equal labels) are one row of their weights."""
        rows = np.flatnonzero(counts)
        X, counts, y = X[rows], counts[rows], None if y is None else y[rows]
        keys = row_keys(X)
        codes = None if y is None else np.unique(y, return_inverse=True)[1]
        group = same_rows(X, keys, codes)
        if group is not None:
            first = np.unique(group, return_index=True)[1]
            counts = np.bincount(group, weights=counts)
            X, keys, y = X[first], keys[first], None if y is None else y[first]
        order = np.lexsort((keys,) if y is None else (y, keys))
        return cls(X[order], counts[order], keys[order], None if y is None else y[order])

    def sample(self, most: int, codes: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Numbers of at most so many rows, from each group in proportion, and how often each then counts."""
        numbers = np.arange(len(codes))
        if len(numbers) <= most:
            return numbers, self.counts
        groups, codes = np.unique(codes, return_inverse=True)
        # The draw needs the keys of rows, not the rows.
        drawn = self.task(numbers[:, None], codes, np.ones(len(groups))).sample(most, rng)
        return drawn.numbers, drawn.counts

    def task(self, X: Any, codes: Array, factors: Array, threads: int = 1) -> Task:
        """Rows X in place of these, with classes and their weights."""
        numbers, classes = np.arange(len(codes)), np.arange(len(factors))
        return Task(X, codes, self.counts, factors, numbers, self.keys, classes, None, len(codes), threads)


# --- the way -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compressor:
    """The ways to make one machine small; ``known`` are rows other than its vectors, if there are any."""

    original: Original
    known: Known | None = None
    seed: int = 0
    threads: int = 1
    verbose: bool = False

    @property
    def _kernel(self) -> Any:
        return self.original.expansion.kernel

    @cached_property
    def _has_norm(self) -> bool:
        """Is there a norm in which the small machine can be near the original?"""
        return has_norm(self._kernel, self.original.expansion.vectors) and bool((self.original.norms > 0).all())

    @property
    def _norm(self) -> Regularizer:
        """What coefficients pay for: without a norm of functions, their own squares."""
        return KernelNorm() if self._has_norm else Identity()

    @cached_property
    def rows(self) -> Known:
        """The rows to teach on."""
        return self._as_known(self._examples) if self.known is None else self.known

    @cached_property
    def _examples(self) -> Any:
        return self.original.goal.examples(self.original.expansion.vectors, self._rng())

    def _as_known(self, X: Any) -> Known:
        return Known(X, np.ones(X.shape[0]), row_keys(X))

    @cached_property
    def judged(self) -> Array:
        """The original's values of these rows."""
        return self.values(self.original.expansion, self.rows.X)

    def values(self, machine: Expansion, X: Any) -> Array:
        """Values of all outputs at rows X, in float64."""
        return machine.decision(X.astype(np.float64, copy=False), self.threads)

    def agreement(self, small: Expansion) -> float:
        """With the original, on the rows to teach on."""
        return self.original.goal.agreement(self.judged, self.values(small, self.rows.X), self.rows.counts)

    def knowing(self, rows: Task) -> Compressor:
        """The same, with other rows to teach on."""
        return replace(self, known=Known(rows.X, rows.counts, rows.keys, rows.codes), verbose=False)

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
            machine.coef,
            count,
            self._rng(),
            ITERATIONS["reduced set"] if self._has_norm else 0,
            threads=self.threads,
            watch=watch,
            thorough=thorough,
        )
        if watch is not None:
            watch.finish(found.n_iter, found.value)
        # Vectors that could not move are rows of the original, kept as it keeps them.
        still = not self._kernel.differentiable and sp.issparse(machine.vectors)
        small = replace(machine, vectors=sp.csr_array(found.vectors) if still else found.vectors, coef=found.coef)
        if self._has_norm:
            return small
        # Without a norm, values at the original's vectors are all that can be near.
        F = self.values(machine, machine.vectors)
        exact = Targets(None, np.stack([F, F], axis=-1), np.full(F.shape, EXACTLY * self.original.cost))
        return self._with_coefficients(small, self._as_known(machine.vectors), Lesson([exact], exact))

    def refit(self, count: int) -> Expansion:
        """The vectors of the reduced set; coefficients and biases fitted to rows with labels."""
        small, rows = self.reduced_set(count), self.rows
        binary = self.original.goal.binary(rows.y, self._label_costs())
        if binary is None:
            return self._with_coefficients(small, rows, self._lesson_of_labels())
        norm = self._norm.among(self._kernel, rows.X, True)
        found = fit_coefficients(
            self._kernel,
            rows.X,
            small.vectors,
            joined(binary, rows.X.shape[0]),
            Hinge(),
            norm,
            tol=1e-6,
            threads=self.threads,
        )
        return replace(small, coef=found.coef, bias=found.bias)

    def margin(self, count: int) -> Expansion:
        """A reduced set that is taught the original's own values of rows, where that makes it agree with more of them.

        Of several classes' vectors, which serve all pairs at once when they move, the start may be the better ones.
        """
        start = self.reduced_set(count, thorough=False)
        lesson = self.original.goal.taught(self.judged, TEACHING * self.original.cost * self.rows.counts)
        found = [start, self._with_coefficients(start, self.rows, lesson), self._taught(start, lesson)]
        return max(found, key=self.agreement)  # the first of the best

    def learn(self, count: int) -> Expansion:
        """A reduced set that is taught labels."""
        return self._taught(self.reduced_set(count, thorough=False), self._lesson_of_labels())

    # --- what they share ---

    def _lesson_of_labels(self) -> Lesson:
        goal, rows = self.original.goal, self.rows
        return goal.from_labels(rows.y, self._label_costs())

    def _label_costs(self) -> Array:
        return self.original.cost * self.rows.counts * self.original.goal.weights(self.rows.y)

    def _taught(self, start: Expansion, lesson: Lesson) -> Expansion:
        """Vectors moved for the lesson, on some of the rows where those are many; then coefficients on all rows."""
        if self._kernel.differentiable:
            start = replace(start, vectors=self._moved(start, lesson))
        return self._with_coefficients(start, self.rows, lesson)

    def _moved(self, start: Expansion, lesson: Lesson) -> Array:
        rows, moving, count = self.rows, lesson.moving, start.coef.shape[1]
        work = moving.Y.shape[1] * count**2
        most = int(min(Learned().most_rows(count), max(5000, MOST_WORK / work)))
        some, counts = rows.sample(most, self.original.goal.codes(self.judged), self._rng())
        C = moving.C[some] * (counts / rows.counts[some])[:, None]
        X, targets = rows.X[some], Targets(None, moving.Y[some], C)
        pull, squares = np.zeros(targets.C.shape), 0.0
        if lesson.near and not lesson.others and self._has_norm:
            X, (targets,), pull = self._beside(X, [targets])
            squares = float(self.original.norms.sum())
        watch = self._watch(f"teaching {count} vectors on {len(some)} rows")
        found = teach(
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
            watch=watch,
        )
        if watch is not None:
            watch.finish(found.n_iter, found.value)
        return found.vectors

    def _with_coefficients(self, small: Expansion, rows: Known, lesson: Lesson) -> Expansion:
        """The best coefficients over the vectors as they are."""
        X, lessons = rows.X, lesson.outputs
        pull = np.zeros((X.shape[0], len(small.coef)))
        if lesson.near and self._has_norm:
            X, lessons, pull = self._beside(X, lessons)
        coef, bias = taught_coefficients(
            self._kernel, X, small.vectors, lessons, pull, small.bias, lesson.loss, self._norm, self.threads
        )
        return replace(small, coef=coef, bias=bias)

    def _beside(self, X: Any, lessons: list[Targets]) -> tuple[Any, list[Targets], Array]:
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


def _padded(targets: Targets, more: int) -> Targets:
    """With so many rows behind that may have any value."""
    if targets.rows is not None:
        return targets
    outputs = targets.Y.shape[1]
    free = np.broadcast_to(np.array([-np.inf, np.inf]), (more, outputs, 2))
    return Targets(None, np.concatenate([targets.Y, free]), np.concatenate([targets.C, np.zeros((more, outputs))]))


METHODS: dict[str, Callable[[Compressor, int], Expansion]] = {
    "reduced_set": Compressor.reduced_set,
    "refit": Compressor.refit,
    "margin": Compressor.margin,
    "learn": Compressor.learn,
}


def weight_vectors(original: Original) -> Expansion | None:
    """The same function over one weight vector for each output, or fewer, where the kernel is a plain product."""
    machine = original.expansion
    inputs = machine.vectors.shape[1]
    if machine.kernel.dimensions(inputs) > inputs:
        return None
    # k(., z) is linear in z: sum_i a_i k(., x_i) = k(., sum_i a_i x_i).
    weights = dense(dot(machine.vectors.T, machine.coef.T)).T
    if len(weights) <= inputs:
        return replace(machine, vectors=weights, coef=np.eye(len(weights)))
    return replace(machine, vectors=np.eye(inputs), coef=weights)


def smallest(
    compressor: Compressor, method: Callable[[Compressor, int], Expansion], agreement: float
) -> tuple[Expansion, bool]:
    """The smallest of the sizes tried that agrees with the original so far; if none does, the largest, and False.

    Sizes double, up to half of the original's, until one agrees; then the gap to the last that does not is halved,
    down to an eighth of the size.
    """
    most = max(1, compressor.original.size // 2)
    low, size = 0, min(2, most)
    while True:
        best = method(compressor, size)
        if compressor.agreement(best) >= agreement:
            break
        if size == most:
            return best, False
        low, size = size, min(2 * size, most)
    while size - low > max(1, size // 8):
        middle = (low + size) // 2
        small = method(compressor, middle)
        if compressor.agreement(small) >= agreement:
            best, size = small, middle
        else:
            low = middle
    return best, True


# --- the report --------------------------------------------------------------------------------------------------


def multiply_adds(machine: Expansion) -> int:
    """Of one row: a product with each vector, and one for each coefficient that is not zero."""
    vectors = machine.vectors
    return int((vectors.nnz if sp.issparse(vectors) else vectors.size) + np.count_nonzero(machine.coef))


def distances(original: Original, small: Expansion) -> tuple[Array, float]:
    """``|f - g| / |f|`` in the kernel's space, biases aside, of each output and of all together; NaN without a norm."""
    machine = original.expansion
    v = dot(machine.kernel(small.vectors, machine.vectors), machine.coef.T)
    beta = small.coef.T
    own = (beta * dot(machine.kernel(small.vectors, small.vectors), beta)).sum(axis=0)
    norms = original.norms
    squares = np.maximum(norms - 2 * (beta * v).sum(axis=0) + own, 0)
    if not norms.any() and not squares.any():
        return np.zeros(len(norms)), 0.0
    if not has_norm(machine.kernel, machine.vectors) or not (norms > 0).all():
        return np.full(len(norms), np.nan), np.nan
    return np.sqrt(squares / norms), float(np.sqrt(squares.sum() / norms.sum()))


@dataclass(frozen=True)
class Compression:
    """What compression did: `print` shows it in words.

    Attributes
    ----------
    method : str
        "reduced_set", "refit", "margin" or "learn"; "exact" where the small model is the same function.
    vectors_before, vectors_after : int
        Vectors of the original and of the small model.
    bytes_before, bytes_after : int
        Four bytes a number (float32), of both: vectors, coefficients that are not zero, biases. In integers the small
        model takes about a quarter: ``model_bytes_`` of the estimator, as `slimsvm.export.quantize` makes it.
    agreement_on_vectors : float
        With the original on its own vectors: the part of them with the same answer; R^2 for regression. They lie where
        the decision is close: on other rows agreement is usually better.
    agreement_on_X : float or None
        The same on the rows X, where they were given.
    distance : float
        ``|f - g| / |f|`` in the kernel's space, all outputs together. It does not predict the error.
    distances : ndarray of shape (n_outputs,)
        The same for each output.
    speedup : float
        Ratio of the multiply-adds of one prediction, not a time.
    note : str
        What else is to be said; often empty.
    """

    method: str
    vectors_before: int
    vectors_after: int
    bytes_before: int
    bytes_after: int
    agreement_on_vectors: float
    agreement_on_X: float | None
    distance: float
    distances: Array
    speedup: float
    note: str = ""

    @classmethod
    def of(cls, compressor: Compressor, small: Expansion, method: str, note: str) -> Compression:
        """The report on a small machine."""
        original = compressor.original
        goal, machine = original.goal, original.expansion
        before, after = (compressor.values(m, machine.vectors) for m in (machine, small))
        each, together = distances(original, small)
        return cls(
            method,
            original.given.vectors.shape[0],
            small.coef.shape[1],
            original.given.float_bytes,
            small.float_bytes,
            goal.agreement(before, after, np.ones(original.size)) if original.size else 1.0,
            None if compressor.known is None else compressor.agreement(small),
            together,
            each,
            max(1, multiply_adds(original.given)) / max(1, multiply_adds(small)),
            note,
        )

    def __str__(self) -> str:
        on_X = "" if self.agreement_on_X is None else f", {100 * self.agreement_on_X:.2f} % on X"
        lines = [
            f"{self.vectors_before} vectors -> {self.vectors_after} ({self.method})",
            f"{self.bytes_before} bytes -> {self.bytes_after} (float32)",
            f"agreement with the original: {100 * self.agreement_on_vectors:.2f} % on its own vectors{on_X}",
            f"distance in the kernel's space: {self.distance:.3g} of its norm",
            f"multiply-adds of a prediction: {self.speedup:.1f} times fewer",
        ]
        return "\n".join([*lines, self.note] if self.note else lines)
