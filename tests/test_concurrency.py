"""Fits and predictions in several threads at once, and in a child process."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone

from problems import blobs, three_classes
from slimsvm import (
    AnyNormSVC,
    BudgetSVC,
    EmpiricalSVC,
    LeastOneNormSVC,
    LeastSquaresSVC,
    LpSVC,
    ReducedSVC,
    RelevanceVectorClassifier,
    SlimSVC,
)
from test_process import SANITIZED, run

MODELS = {
    "any norm": AnyNormSVC(gamma=0.5),
    "budget": BudgetSVC(8, hard="select", gamma=0.5),
    "least squares": LeastSquaresSVC(gamma=0.5),
    "least one norm": LeastOneNormSVC(gamma=0.5),
    "empirical": EmpiricalSVC(0.05, gamma=0.5),
    "reduced": ReducedSVC(6, gamma=0.5),
    "slim": SlimSVC(6, "kmeans", C=1.0, gamma=0.5, scales="fixed"),
    "lp": LpSVC(gamma=0.5),
    "relevance": RelevanceVectorClassifier(gamma=0.5),
}
every_model = pytest.mark.parametrize("model", MODELS)


@pytest.fixture
def frequent_switches():
    """Threads take turns far more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


BLAS = """
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.linalg
import sklearn.cluster
import threadpoolctl

from slimsvm import ReducedSVC, SlimSVC

class Meeting:
    def __init__(self, reached, awaited):
        self.reached, self.awaited = reached, awaited

    def __call__(self, X, Z):
        if not self.reached.is_set():
            self.reached.set()
            self.awaited.wait(5)
        return X @ Z.T

def threads():
    return {pool["filepath"]: pool["num_threads"] for pool in threadpoolctl.threadpool_info()}

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
y = X[:, 0] > 0
first, second, done = threading.Event(), threading.Event(), threading.Event()

def earlier():
    ReducedSVC(5, kernel=Meeting(first, second)).fit(X, y)
    done.set()

def later():
    first.wait(5)
    ReducedSVC(5, kernel=Meeting(second, done)).fit(X, y)

before = threads()
assert any(count == 2 for count in before.values()), before
with ThreadPoolExecutor(2) as pool:
    for task in [pool.submit(earlier), pool.submit(later)]:
        task.result()
assert threads() == before, (before, threads())
with ThreadPoolExecutor(2) as pool:
    models = [SlimSVC(4, C=1.0, gamma=0.5, scales="fixed") for _ in range(6)]
    list(pool.map(lambda model: model.fit(X, y), models))
assert threads() == before, (before, threads())
"""


def test_fits_in_threads_leave_the_settings_of_blas(tmp_path):
    """The second fit begins within the first and ends after it: whatever it finds set must not stay.

    A process of its own, as the tests have settings of their own.
    """
    run(BLAS, tmp_path, OPENBLAS_NUM_THREADS="2", OMP_NUM_THREADS="2")


@every_model
def test_one_estimator_fitted_in_four_threads(model, frequent_switches):
    """The same data: nothing is lost, and the model is the one that a single fit gives."""
    X, y = three_classes(60)
    alone = clone(MODELS[model]).fit(X, y)
    shared = clone(MODELS[model])
    for _ in range(3):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: shared.fit(X, y), range(8)))
        np.testing.assert_array_equal(shared.decision_function(X), alone.decision_function(X))
        assert set(vars(shared)) == set(vars(alone))


@every_model
def test_one_estimator_fitted_to_different_data_is_one_of_the_models(model, frequent_switches):
    problems = [blobs(50, d=2, seed=seed) for seed in range(4)]
    X = problems[0][0]
    expected = [clone(MODELS[model]).fit(*problem).decision_function(X) for problem in problems]
    shared = clone(MODELS[model])
    for _ in range(3):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda problem: shared.fit(*problem), problems))
        found = shared.decision_function(X)
        assert any(np.array_equal(found, one) for one in expected)


@every_model
def test_predictions_during_a_refit_are_of_the_old_model_or_the_new(model, frequent_switches):
    """Models of two and three classes, of many vectors and few: anything mixed is an error or another number."""
    two, three = blobs(40, d=2), three_classes(90)
    X = three[0]
    models = [clone(MODELS[model]).fit(*problem) for problem in (two, three)]
    scores = [one.decision_function(X) for one in models]
    labels = [one.predict(X) for one in models]
    shared = clone(MODELS[model]).fit(*two)
    stop = threading.Event()

    def refit():
        for round_ in range(20):
            shared.fit(*(two if round_ % 2 else three))
        stop.set()

    with ThreadPoolExecutor(2) as pool:
        task = pool.submit(refit)
        while not stop.is_set() and not task.done():
            found = shared.decision_function(X)
            assert any(np.array_equal(found, one) for one in scores)
            found = shared.predict(X)
            assert any(np.array_equal(found, one) for one in labels)
        task.result()


FORK = """
import os, signal, sys, time
import numpy as np
from problems import blobs
from slimsvm import AnyNormSVC, LpSVC, SlimSVC

X, y = blobs(3000, d=3)
few = slice(0, 600)
models = {
    "slim default": lambda: SlimSVC(5).fit(X[few], y[few]),
    "slim": lambda: SlimSVC(8, C=1.0, gamma=0.5, scales="fixed", n_jobs=2).fit(X, y),
    "any norm": lambda: AnyNormSVC(gamma=0.5, n_jobs=2).fit(X, y),
    "lp": lambda: LpSVC(gamma=0.5).fit(X[few], y[few]),
}
fit = models[sys.argv[1]]
here = fit().decision_function(X)
child = os.fork()
if child == 0:
    np.save(sys.argv[2], fit().decision_function(X))
    os._exit(0)
end = time.monotonic() + 60
while time.monotonic() < end:
    pid, status = os.waitpid(child, os.WNOHANG)
    if pid:
        assert status == 0, status
        np.testing.assert_array_equal(np.load(sys.argv[2]), here)
        sys.exit(0)
    time.sleep(0.05)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
sys.exit("the fit in the child did not end")
"""


@pytest.mark.skipif(sys.platform == "win32" or SANITIZED, reason="needs fork")
@pytest.mark.parametrize("model", ["slim default", "slim", "any norm", "lp"])
def test_a_fit_after_a_fork(model, tmp_path):
    """Fit, fork, fit in the child: it ends, with the same model."""
    run(FORK, tmp_path, model, tmp_path / "scores.npy", OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2")
