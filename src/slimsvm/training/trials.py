"""Trials of the hyperparameter search: short training runs on the training rows of a fold, scored on its test rows.

A trial is a pure function of its hyperparameters, its start and its fold. Trials that a search will need can therefore
run ahead on other threads without changing its result.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..basis.learning import LearnedVectors
from ..data.dataset import Dataset
from ..data.folds import Fold
from ..linalg.arrays import Array, is_remote
from ..linalg.matrix import dot
from ..problem import bases
from .spec import Hyperparameters, TrainingSpec, shortened

MAX_TRIAL_ROWS = 5000
TRIAL_ITERATIONS = 20
WARM_TRIAL_ITERATIONS = 10  # of a trial that starts from the vectors of another trial
SCALED_TRIAL_FACTOR = 3  # factor of iterations where scales are learned: overfitting shows late


@dataclass(frozen=True)
class TrialScore:
    """Mean error and mean loss on the test rows of a fold.

    ``wrong`` is the weight of each misclassified row, 0 for others. In regression the error is the mean loss, and
    ``wrong`` the weighted loss of each row.
    """

    error: float
    loss: float
    wrong: Array
    learned: LearnedVectors | None = None

    @property
    def standard_error(self) -> float:
        """The standard error of ``error`` if rows are independent."""
        return self.error * float(np.sqrt((self.wrong**2).sum())) / float(self.wrong.sum()) if self.error else 0.0


class TrialRunner:
    """Runs and caches the trials of a search in parallel threads."""

    def __init__(self, folds: list[Fold], spec: TrainingSpec, seed: int):
        self.folds, self.spec, self.seed = folds, spec, seed
        self.starts: dict[int, Future[Array]] = {}  # initial vectors by fold
        # By candidate and fold: the candidate whose vectors the trial started from, and its score.
        self.cache: dict[tuple[Hyperparameters, int], tuple[Hyperparameters | None, Future[TrialScore]]] = {}
        # Trials on a device would only wait for each other: run one at a time.
        self.threads = 1 if is_remote(folds[0].train.X) else folds[0].train.threads
        self.pool: ThreadPoolExecutor | None = None
        # Each trial with the trial for which it waits.
        self.jobs: list[tuple[Future[TrialScore], Future[TrialScore] | None]] = []

    def __enter__(self) -> TrialRunner:
        if self.threads > 1:
            self.pool = ThreadPoolExecutor(self.threads)
        return self

    def __exit__(self, *_: Any) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)

    def prefetch(self, trials: Iterable[tuple[Hyperparameters, Hyperparameters | None, int]]) -> None:
        """Start trials in the background: tuples of candidate, candidate whose vectors start it (or None), and fold."""
        if self.pool is None:
            return
        for params, near, fold in trials:
            if (params, fold) not in self.cache:
                before = self._cached(near, fold)
                self._prepare_start(fold, params)
                job = self.pool.submit(self._run, params, before, fold)
                self.jobs.append((job, before))
                self.cache[params, fold] = near, job

    def __call__(self, params: Hyperparameters, near: Hyperparameters | None, fold: int) -> TrialScore:
        """The score of a candidate on a fold; the trial starts from the vectors of ``near`` if given."""
        cached = self.cache.get((params, fold))
        if cached is None or cached[0] != near:
            self._prepare_start(fold, params)
            cached = near, _completed(self._run(params, self._cached(near, fold), fold))
            self.cache[params, fold] = cached
        return cached[1].result()

    def _cached(self, params: Hyperparameters | None, fold: int) -> Future[TrialScore] | None:
        return None if params is None else self.cache.get((params, fold), (None, None))[1]

    def _free_threads(self) -> int:
        """Threads for each trial that can run now."""
        ready = sum(not job.done() and (before is None or before.done()) for job, before in tuple(self.jobs))
        return max(1, self.threads // max(1, ready))

    def _prepare_start(self, fold: int, params: Hyperparameters) -> None:
        """Compute the initial vectors of a fold once, for all candidates."""
        if fold not in self.starts and self.spec.basis.learns:
            if self.pool is None:
                self.starts[fold] = _completed(self._initial_vectors(fold, params))
            else:
                self.starts[fold] = self.pool.submit(self._initial_vectors, fold, params)

    def _initial_vectors(self, fold: int, params: Hyperparameters) -> Array:
        candidates = self._candidates(params, self.folds[fold].train)
        basis = bases.resolve(self.spec.basis.init, "init")
        return bases.dense(basis.choose(candidates, self.spec.n_vectors).vectors)

    def _candidates(self, params: Hyperparameters, train: Dataset) -> Any:
        # One-vs-rest is enough to rank candidates, and cheaper than one-vs-one.
        rng = np.random.default_rng(self.seed)
        return replace(self.spec.candidates(train, params, rng), learning_outputs=None, progress=None)

    def _run(self, params: Hyperparameters, before: Future[TrialScore] | None, fold: int) -> TrialScore:
        spec = self.spec
        warm = None if before is None else before.result().learned
        train, test = replace(self.folds[fold].train, threads=self._free_threads()), self.folds[fold].test
        outputs = train.outputs("ovr")
        candidates = replace(self._candidates(params, train), free_threads=self._free_threads if self.pool else None)
        learned = None
        if spec.basis.learns:
            candidates = replace(candidates, start=warm or self.starts[fold].result())
            iterations = WARM_TRIAL_ITERATIONS if warm else TRIAL_ITERATIONS
            iterations *= SCALED_TRIAL_FACTOR if params.scaled else 1
            basis = shortened(spec.basis, iterations, rows=MAX_TRIAL_ROWS)
            choice = basis.choose(candidates, spec.n_vectors)
            learned = choice.learned
            coef, bias = learned.coef, learned.bias
        else:
            choice = spec.basis.choose(candidates, spec.n_vectors)
            fitted = replace(spec, tol=1e-3, scheme="ovr").fit_coefficients(candidates, choice)
            coef, bias = fitted.coef, fitted.bias
        kernel = choice.kernel or candidates.kernel
        if is_remote(test.X):
            F = test.X.decision(kernel, choice.vectors, coef, bias)
        else:
            F = dot(kernel(test.X, choice.vectors, threads=train.threads), coef.T, train.threads) + bias
        weights = test.weights / test.weights.sum()
        wrong = _misclassified(F, test) if test.targets is None else row_losses(F, test.targets, spec.loss)
        loss = spec.loss.value(F, test.labels(outputs), np.repeat(weights[:, None], len(outputs), axis=1))
        return TrialScore(float(dot(weights, wrong)), float(np.mean(loss)), weights * wrong, learned)


def _misclassified(F: Array, test: Dataset) -> Array:
    return (F[:, 0] > 0) != (test.codes == 1) if test.n_classes == 2 else F.argmax(axis=1) != test.codes


def row_losses(F: Array, targets: Array, loss: Any) -> Array:
    """The loss of each row, averaged over its targets."""
    flat = (1, -1)
    losses = loss.value(F.reshape(flat), targets.reshape(flat), np.ones((1, F.size)))
    return losses.reshape(F.shape).mean(axis=1)


def _completed(result: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(result)
    return future
