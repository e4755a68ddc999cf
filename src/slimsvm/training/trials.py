"""Trials of a search: each a short run of learning on the training rows of a fold, judged on its other rows.

A trial is a pure function of its params, of where it starts and of its fold. So those that a search will ask for can
run ahead on other threads: the search takes its way as if they had run when they are asked for, and ends with the same
choice.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..basis.learning import LearnedVectors
from ..data.dataset import Dataset
from ..linalg.arrays import Array, is_remote
from ..linalg.matrix import dot
from ..problem import bases
from .spec import Hyperparameters, TrainingSpec

MAX_TRIAL_ROWS = 5000
TRIAL_ITERATIONS = 20  # of a trial run
WARM_TRIAL_ITERATIONS = 10  # of one that starts where another ended
SCALED_TRIAL_FACTOR = 3  # times as many where scales are learned, too: they overfit late, and a run must show it


@dataclass
class Fold:
    """Rows to train on, rows to validate on, and where learning starts."""

    train: Dataset
    test: Dataset
    start: Future[Array] | Array | None = None


@dataclass(frozen=True)
class TrialScore:
    """Mean error and mean loss on the rows held out; of each of these rows its weight where it was wrong, else 0. Of
    targets the loss is all there is: the error is the same, and a row is as wrong as it costs."""

    error: float
    loss: float
    wrong: Array
    learned: LearnedVectors | None = None

    @property
    def doubt(self) -> float:
        """The standard error of the error, as errors of different rows have nothing to do with each other."""
        return self.error * float(np.sqrt((self.wrong**2).sum())) / float(self.wrong.sum()) if self.error else 0.0


class TrialRunner:
    """All trials of a search, on the threads that its rows may use."""

    def __init__(self, folds: list[Fold], spec: TrainingSpec, seed: int):
        self.folds, self.spec, self.seed = folds, spec, seed
        self.known: dict[
            tuple[Hyperparameters, int], tuple[Hyperparameters | None, Future[TrialScore] | TrialScore]
        ] = {}
        # A device works on one trial after the other: several at a time only wait for each other.
        self.threads = 1 if is_remote(folds[0].train.X) else folds[0].train.threads
        self.pool: ThreadPoolExecutor | None = None
        self.jobs: list[
            tuple[Future[TrialScore], Future[TrialScore] | None]
        ] = []  # each with the one that it waits for

    def __enter__(self) -> TrialRunner:
        if self.threads > 1:
            self.pool = ThreadPoolExecutor(self.threads)
        return self

    def __exit__(self, *_: Any) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)

    def _share(self) -> int:
        """Threads for a trial at this moment: as many as there are for each that may be under way."""
        ready = sum(not job.done() and (before is None or before.done()) for job, before in tuple(self.jobs))
        return max(1, self.threads // max(1, ready))

    def expect(self, wanted: Iterable[tuple[Hyperparameters, Hyperparameters | None, int]]) -> None:
        """Start trials ahead: settings, where they start (None: anew, else where another one ended) and folds."""
        if self.pool is None:
            return
        for params, near, fold in wanted:
            if (params, fold) not in self.known:
                _, before = (None, None) if near is None else self.known.get((near, fold), (None, None))
                self.prepare(fold, params)
                job = self.pool.submit(self._run, params, before, fold)
                self.jobs.append((job, before if isinstance(before, Future) else None))
                self.known[params, fold] = near, job

    def __call__(self, params: Hyperparameters, near: Hyperparameters | None, fold: int) -> TrialScore:
        """The score of a candidate on a fold."""
        found = self.known.get((params, fold))
        if found is None or found[0] != near:
            before = None if near is None else self.known.get((near, fold))
            self.prepare(fold, params)
            found = near, self._run(params, before[1] if before else None, fold)
        trial = _done(found[1])
        self.known[params, fold] = near, trial
        return trial

    def prepare(self, fold: int, params: Hyperparameters) -> None:
        """Where learning starts on a fold: the same for all settings."""
        here = self.folds[fold]
        if here.start is None and self.spec.basis.learns:
            if self.pool is None:
                here.start = self._start(fold, params)
            else:
                here.start = self.pool.submit(self._start, fold, params)

    def _start(self, fold: int, params: Hyperparameters) -> Array:
        candidates = self._candidates(params, self.folds[fold].train)
        return bases.dense(bases.resolve(self.spec.basis.init, "init").choose(candidates, self.spec.n_vectors).vectors)

    def _candidates(self, params: Hyperparameters, train: Dataset) -> Any:
        # One machine for each class is enough to tell settings apart, and cheaper than one for each pair.
        rng = np.random.default_rng(self.seed)
        return replace(self.spec.candidates(train, params, rng), taught=None, watch=None)

    def _run(self, params: Hyperparameters, before: Future[TrialScore] | TrialScore | None, fold: int) -> TrialScore:
        here, spec = self.folds[fold], self.spec
        warm = None if before is None else _done(before).learned
        train, test = replace(here.train, threads=self._share()), here.test
        rest = train.outputs("ovr")
        candidates = replace(self._candidates(params, train), free=self._share if self.pool else None)
        learned = None
        if spec.basis.learns:
            candidates = replace(candidates, start=warm or _done(here.start))
            choice = _short(spec.basis, params.scaled, warm is not None).choose(candidates, spec.n_vectors)
            learned = choice.learned
            coef, bias = learned.coef, learned.bias
        else:
            choice = spec.basis.choose(candidates, spec.n_vectors)
            fitted = replace(spec, tol=1e-3).fit_coefficients(train, choice, candidates, rest)
            coef, bias = fitted.coef, fitted.bias
        kernel = choice.kernel or candidates.kernel
        if is_remote(test.X):
            F = test.X.decision(kernel, choice.vectors, coef, bias)
        else:
            F = dot(kernel(test.X, choice.vectors, threads=train.threads), coef.T, train.threads) + bias
        share = test.weights / test.weights.sum()
        wrong = _misclassified(F, test) if test.targets is None else row_losses(F, test.targets, spec.loss)
        loss = spec.loss.value(F, test.labels(rest), np.repeat(share[:, None], len(rest), axis=1))
        return TrialScore(float(dot(share, wrong)), float(np.mean(loss)), share * wrong, learned)


def _misclassified(F: Array, test: Dataset) -> Array:
    return (F[:, 0] > 0) != (test.codes == 1) if test.n_classes == 2 else F.argmax(axis=1) != test.codes


def row_losses(F: Array, targets: Array, loss: Any) -> Array:
    """The loss of each row, the mean over its targets."""
    flat = (1, -1)
    each = loss.value(F.reshape(flat), targets.reshape(flat), np.ones((1, F.size)))
    return each.reshape(F.shape).mean(axis=1)


def _done(work: Any) -> Any:
    """What it gave, when it is done, if it is done by another thread."""
    return work.result() if isinstance(work, Future) else work


def _short(basis: Any, scaled: bool, warm: bool) -> Any:
    """A trial run."""
    steps = (WARM_TRIAL_ITERATIONS if warm else TRIAL_ITERATIONS) * (SCALED_TRIAL_FACTOR if scaled else 1)
    most = steps if isinstance(basis.iterations, str) else min(steps, int(basis.iterations))
    return replace(basis, iterations=most, rows=MAX_TRIAL_ROWS)
