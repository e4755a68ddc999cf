"""Fits and the threads of BLAS: these are a setting of the whole process, which fits neither change nor depend on.

The tests themselves run with one thread, so the fits are in processes of their own.
"""

from __future__ import annotations

import json
import sys

import pytest

from test_process import SANITIZED, run

SCRIPT = """
import hashlib, json, sys, threading, time, warnings
from pathlib import Path

import numpy as np
import scipy.linalg
from problems import blobs, three_classes
from threadpoolctl import ThreadpoolController
from slimsvm import (
    AnyNormSVC, BudgetSVC, EmpiricalSVC, LeastOneNormSVC, LeastSquaresSVC, LpSVC, ReducedSVC, RelevanceVectorClassifier,
    SlimSVC, bases, compress, frontier, regularizers, slacks,
)

warnings.simplefilter("ignore")
jobs = {"n_jobs": int(sys.argv[1])}
large, rows = blobs(12_000, d=6, seed=1), blobs(1200, seed=2)
wide, three = blobs(700, d=256, seed=3), three_classes(700)
small = rows[0][:400], rows[1][:400]
plain, learned = {"C": 1.0, "gamma": 0.3, "scales": "fixed", **jobs}, bases.Learned(iterations=4)
ovo = {**plain, "multi_class": "ovo"}
cases = {
    "slim": lambda: SlimSVC(100, learned, **plain).fit(*large),
    "wide": lambda: SlimSVC(60, learned, **{**plain, "gamma": 0.01}).fit(*wide),
    "search": lambda: SlimSVC(8, **jobs).fit(*small),
    "hinge": lambda: SlimSVC(40, learned, slack="l1", **plain).fit(*rows),
    "laplacian": lambda: SlimSVC(40, learned, kernel="laplacian", **plain).fit(*rows),
    "forward": lambda: SlimSVC(25, "forward", **plain).fit(*rows),
    "pairs": lambda: SlimSVC(30, learned, **ovo).fit(*three),
    "probability": lambda: SlimSVC(30, "kmeans", probability=True, **plain).fit(*three),
    "reduced": lambda: ReducedSVC(80, gamma=0.3, **jobs).fit(*large),
    "empirical": lambda: EmpiricalSVC(0.05, gamma=0.3, **jobs).fit(*rows),
    "reweighted": lambda: ReducedSVC(60, gamma=0.3, regularizer=regularizers.ReweightedNorm(), **jobs).fit(*rows),
    "compressed": lambda: compress(AnyNormSVC(gamma=0.3).fit(*rows), 20, X=rows[0], **jobs),
    "any norm": lambda: AnyNormSVC(gamma=0.3, slack=slacks.TwoNorm(), **jobs).fit(*rows),
    "budget": lambda: BudgetSVC(8, hard="select", gamma=0.3, **jobs).fit(*small),
    "least squares": lambda: LeastSquaresSVC(gamma=0.3, **jobs).fit(*rows),
    "least one norm": lambda: LeastOneNormSVC(gamma=0.3, **jobs).fit(*small),
    "lp": lambda: LpSVC(0.5, gamma=0.3, **jobs).fit(*small),
    "relevance": lambda: RelevanceVectorClassifier(gamma=0.3, **jobs).fit(*small),
}
libraries = ThreadpoolController()

def settings():
    return [(pool["filepath"], pool["num_threads"]) for pool in libraries.info()]

def worked():
    '''Processor time of each thread but this one so far, if the system tells.'''
    own = threading.get_native_id()
    tasks = [task for task in Path("/proc/self/task").glob("*") if int(task.name) != own]
    return {task.name: int((task / "schedstat").read_text().split()[0]) for task in tasks}

def at_rest():
    '''The same, when nothing happens any more: idle threads of BLAS look around for a while before they sleep.'''
    before, now = None, worked()
    end = time.monotonic() + 20
    while before != now and time.monotonic() < end:
        time.sleep(0.1)
        before, now = now, worked()
    return now

class Watch(threading.Thread):
    def run(self):
        self.seen, self.ended = set(), False
        while not self.ended:
            self.seen.add(tuple(settings()))
            time.sleep(0.002)

def digest(model):
    numbers = [np.ascontiguousarray(v) for k, v in sorted(vars(model).items()) if k.endswith("_")
               and isinstance(v, np.ndarray) and v.dtype.kind == "f"]
    return hashlib.sha256(b"".join(map(bytes, numbers))).hexdigest()

first, before, found = settings(), at_rest(), {}
for name, fit in cases.items():
    watch = Watch()
    watch.start()
    model = fit()
    watch.ended = True
    watch.join()
    now = worked()
    woken = [task for task in before if now.get(task, before[task]) != before[task]]
    found[name] = {"bits": digest(model), "woken": len(woken), "changed": watch.seen != {tuple(first)}}
    before = at_rest() if woken else before
print(json.dumps({"fits": found, "asleep": len(before), "threads": max((n for _, n in first), default=1)}))
"""

CASES = [line.split('"')[1] for line in SCRIPT.splitlines() if line.startswith('    "') and ": lambda" in line]


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """Models and their threads, by n_jobs and the threads of BLAS."""
    path = tmp_path_factory.mktemp("fits")
    return {
        (jobs, threads): json.loads(
            run(SCRIPT, path, jobs, OPENBLAS_NUM_THREADS=threads, OMP_NUM_THREADS=threads, MKL_NUM_THREADS=threads)
        )
        for jobs, threads in (("1", "4"), ("2", "4"), ("1", "1"))
    }


@pytest.mark.skipif(SANITIZED, reason="takes minutes")
@pytest.mark.parametrize("case", CASES)
def test_models_do_not_depend_on_the_threads_of_blas(case, fits):
    """Bit for bit, and whatever n_jobs."""
    assert len({found["fits"][case]["bits"] for found in fits.values()}) == 1


@pytest.mark.skipif(SANITIZED, reason="takes minutes")
@pytest.mark.parametrize("case", CASES)
def test_fits_change_no_setting_of_the_process(case, fits):
    assert not any(found["fits"][case]["changed"] for found in fits.values())


@pytest.mark.skipif(SANITIZED or not sys.platform.startswith("linux"), reason="needs /proc")
@pytest.mark.parametrize("case", CASES)
def test_threads_of_blas_stay_asleep(case, fits):
    """Nothing uses threads that were not asked for: those that BLAS started with the process do not run."""
    found = fits["1", "4"]
    if found["threads"] < 2 or not found["asleep"]:
        pytest.skip("BLAS has no threads of its own here")
    assert not any(fits[jobs, "4"]["fits"][case]["woken"] for jobs in "12")
