"""Binary problems of several classes, solved in one call of the core: the same solutions as one by one."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from problems import cosine_plus_one
from slimsvm import AnyNormSVC, BudgetSVC, kernels, slacks
from slimsvm.solvers.dual import batch

TESTS = Path(__file__).parent
SETTINGS = [
    ("l1", "inequality"),
    ("l1", "equality"),
    ("l2", "inequality"),
    ("l2", "equality"),
    (slacks.MaxNorm(), "inequality"),
    (slacks.TopSum(8), "inequality"),
    (slacks.TopSum(8), "equality"),
    (slacks.TopTwoNorm(8), "inequality"),  # with a ball or without, by problem
]


@dataclass(frozen=True)
class OwnOneNorm(slacks.OneNorm):
    """Inherits, and does not say that its set tells all: certified in Python."""


@dataclass(frozen=True)
class OwnSquares(slacks.SquaredTwoNorm):
    """Likewise."""


def classes(n=150, count=6, seed=0):
    """Overlapping groups of different sizes."""
    rng = np.random.default_rng(seed)
    y = np.sort(rng.choice(count, n, p=np.arange(1, count + 1) / (count * (count + 1) / 2)))
    return rng.standard_normal((count, 4))[y] * 1.5 + rng.standard_normal((n, 4)), y


def state(model):
    names = ("vector_coef_", "intercept_", "support_", "objective_", "duality_gap_", "n_iter_")
    return {name: getattr(model, name) for name in names}


def assert_same(one, other):
    one, other = state(one), state(other)
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
@pytest.mark.parametrize(("slack", "constraint"), SETTINGS, ids=str)
def test_together_or_one_by_one(slack, constraint, scheme, monkeypatch):
    X, y = classes()
    model = AnyNormSVC(slack, constraint, C=3.0, multi_class=scheme).fit(X, y)
    monkeypatch.setattr(batch, "MAX_VARIABLES_AT_ONCE", 1)
    assert_same(model, AnyNormSVC(slack, constraint, C=3.0, multi_class=scheme).fit(X, y))


@pytest.mark.parametrize("C", [1e-2, 3.0, 1e4])
@pytest.mark.parametrize("constraint", ["inequality", "equality"])
@pytest.mark.parametrize(("slack", "own"), [("l1", OwnOneNorm()), ("l2", OwnSquares())])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_certificate_of_the_core_is_that_of_the_norm(slack, own, constraint, C, kernel):
    X, y = classes()
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    settings = {"constraint": constraint, "C": C, "kernel": kernel, "class_weight": {0: 2.0, 3: 0.5}}
    here = AnyNormSVC(slack, **settings).fit(X, y, weight)
    there = AnyNormSVC(own, **settings).fit(X, y, weight)
    for name in ("vector_coef_", "support_", "n_iter_"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name), err_msg=name)
    np.testing.assert_allclose(here.intercept_, there.intercept_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(here.objective_, there.objective_, rtol=1e-9)
    np.testing.assert_allclose(here.duality_gap_, there.duality_gap_, rtol=1e-6, atol=1e-9)


def test_classes_that_inherit_are_asked_themselves():
    @dataclass(frozen=True)
    class Twice(slacks.OneNorm):
        def value(self, slack_values, weights, constraint):
            return 2 * super().value(slack_values, weights, constraint)

    X, y = classes()
    with pytest.warns(ConvergenceWarning):  # value and set contradict each other: no gap can close
        AnyNormSVC(Twice()).fit(X, y)


KERNELS = {
    "rbf": lambda X: ({"kernel": "rbf"}, X),
    "sparse": lambda X: ({"kernel": "linear"}, sp.csr_array(np.where(np.abs(X) < 1, 0, X))),
    "float32": lambda X: ({"kernel": "poly"}, X.astype(np.float32)),
    "precomputed": lambda X: ({"kernel": "precomputed"}, np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 4)),
    "callable": lambda X: ({"kernel": cosine_plus_one}, X),
    "object": lambda X: ({"kernel": kernels.Scaled(kernels.Gaussian(0.2), (1.0, 2.0, 0.5, 1.0))}, X),
}


@pytest.mark.parametrize("slack", ["l1", "l2", slacks.TopSum(8)], ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_any_number_of_threads(name, slack):
    X, y = classes()
    settings, X = KERNELS[name](X)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    models = [
        AnyNormSVC(slack, C=2.0, class_weight="balanced", n_jobs=jobs, **settings).fit(X, y, weight)
        for jobs in (1, 2, 3)
    ]
    assert_same(models[0], models[1])
    assert_same(models[0], models[2])
    assert (models[0].duality_gap_ <= models[0].tol).all()


def test_precomputed_and_callable_are_the_kernel_that_they_compute():
    X, y = classes()
    gram = kernels.Gaussian(0.3)(X, X)
    whole = AnyNormSVC(gamma=0.3, tol=1e-8).fit(X, y)
    given = AnyNormSVC(kernel="precomputed", tol=1e-8).fit(gram, y)
    called = AnyNormSVC(kernel=lambda A, B: kernels.Gaussian(0.3)(A, B), tol=1e-8).fit(X, y)
    for other in (given, called):
        np.testing.assert_allclose(other.objective_, whole.objective_, rtol=1e-7)
        np.testing.assert_array_equal(other.support_, whole.support_)


def test_weights_are_copies():
    X, y = classes(90)
    weight = np.random.default_rng(2).integers(0, 4, len(y))
    copies = np.repeat(np.arange(len(y)), weight)
    weighted = AnyNormSVC(C=2.0, gamma=0.3).fit(X, y, weight)
    repeated = AnyNormSVC(C=2.0, gamma=0.3).fit(X[copies], y[copies])
    np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-10)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-8)


def test_rows_that_do_not_fit_into_the_cache():
    X, y = classes(300)
    wide, narrow = (AnyNormSVC(C=2.0, tol=1e-6, cache_size=size).fit(X, y) for size in (400, 0.05))
    np.testing.assert_allclose(narrow.objective_, wide.objective_, rtol=2e-6)
    assert (narrow.duality_gap_ <= 1e-6).all()


@pytest.mark.filterwarnings("ignore:the fit got no further")
@pytest.mark.parametrize("scale", [1, 100])
def test_problems_left_open_go_on_alone(scale):
    """Rounding is most of the gap: what the core leaves open, Python certifies, the same to the last digit."""
    X, y = classes(80, count=4)
    models = [AnyNormSVC(slack, kernel="linear", C=1e5, tol=1e-8).fit(scale * X, y) for slack in ("l1", OwnOneNorm())]
    np.testing.assert_array_equal(models[0].vector_coef_, models[1].vector_coef_)
    np.testing.assert_allclose(models[0].duality_gap_, models[1].duality_gap_, rtol=1e-2)
    assert scale > 1 or (models[0].duality_gap_ <= 1e-8).all()


@pytest.mark.parametrize("slack", ["l1", slacks.TopSum(8)], ids=str)
def test_verbose_has_a_line_for_each_problem(slack, capsys):
    X, y = classes()
    model = AnyNormSVC(slack, n_jobs=2).fit(X, y)
    told = AnyNormSVC(slack, n_jobs=2, verbose=True).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 15
    assert lines[0].startswith("classes 0 and 1: ")
    assert all("gap" in line for line in lines)
    assert_same(model, told)


def test_warning_counts_the_problems():
    X, y = classes()
    with pytest.warns(ConvergenceWarning, match="max_iter=1 ended the fit in 1[0-5] of 15 binary problems"):
        AnyNormSVC(max_iter=1, n_jobs=2).fit(X, y)


def test_budget_that_is_void_is_told():
    X, y = classes()
    with pytest.warns(UserWarning, match="the decision function is zero"):
        BudgetSVC(4, kernel="linear", C=10.0, n_jobs=2).fit(np.random.default_rng(0).standard_normal(X.shape), y)


def test_errors_of_a_kernel_come_through():
    def broken(A, B):
        raise RuntimeError("no value today")

    X, y = classes()
    for jobs in (1, 2):
        with pytest.raises(RuntimeError, match="no value today"):
            AnyNormSVC(kernel=broken, n_jobs=jobs).fit(X, y)


def core_call(machine, problems, **changes):
    """`solve_all` over (view, y) of problems with C = 1."""
    y = np.concatenate([p[1] for p in problems])
    given = {
        "views": [p[0] for p in problems],
        "lengths": [len(p[1]) for p in problems],
        "linear": y,
        "lower": np.minimum(y, 0),
        "upper": np.maximum(y, 0),
        "ridge": np.zeros(len(y)),
        "side": None,
        "totals": np.full(len(problems), np.inf),
        "tolerance": 1e-3,
        "max_steps": np.full(len(problems), -1),
        "certify": True,
    }
    return machine.solve_all(**(given | changes))


@pytest.fixture
def pairs():
    X, y = classes(count=3)
    lengths = np.bincount(y).tolist()
    problems = [([a, b], np.repeat([1.0, -1.0], [lengths[a], lengths[b]])) for a in range(3) for b in range(3) if a < b]
    return lambda: kernels.Gaussian(0.3).training_matrix(X, np.arange(len(y)), lengths, 1 << 24, 1), problems


def test_core_solves_each_as_it_solves_one(pairs):
    make, problems = pairs
    found = core_call(make(), problems)
    machine, begin = make(), 0
    for k, (view, y) in enumerate(problems):
        one = machine.solve(view, y, np.minimum(y, 0), np.maximum(y, 0), 0 * y, None, np.inf, 1e-3)
        end = begin + len(y)
        np.testing.assert_array_equal(found["duals"][begin:end], one["duals"])
        np.testing.assert_array_equal(found["product"][begin:end], one["product"])
        assert found["steps"][k] == one["steps"]
        assert found["certified"][k]
        begin = end


@pytest.mark.parametrize(
    "changes",
    [
        {"lengths": [1, 2, 3]},
        {"lengths": [10**6, 1, 1]},
        {"totals": np.ones(3)},
        {"max_steps": np.array([1])},
        {"ridge": np.zeros(2)},
        {"views": [[0, 1], [0, 2], [0, 1]]},
    ],
    ids=str,
)
def test_core_refuses_arrays_that_do_not_fit(pairs, changes):
    make, problems = pairs
    with pytest.raises(ValueError):
        core_call(make(), problems, **changes)


INTERRUPT = """
import os, signal, sys, threading, time
import numpy as np
from slimsvm import AnyNormSVC

rng = np.random.default_rng(0)
X, y = rng.standard_normal((4000, 5)), np.repeat(np.arange(20), 200)
model = AnyNormSVC(C=1e6, tol=1e-9, gamma=0.02, n_jobs=int(sys.argv[1]))
sent = []

def press():
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)

threading.Timer(1.0, press).start()
try:
    model.fit(X, y)
except KeyboardInterrupt:
    print("waited", time.perf_counter() - sent[0])
print("fitted", hasattr(model, "classes_"))
print("score", AnyNormSVC(n_jobs=2).fit(X[::20], y[::20]).score(X[::20], y[::20]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_ends_all_problems(jobs, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(INTERRUPT)
    done = subprocess.run(
        [sys.executable, str(script), str(jobs)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert "waited" in lines, "the fit was not interrupted"
    slow = "asan" in os.environ.get("LD_PRELOAD", "")
    assert float(lines["waited"]) < (20.0 if slow else 2.0)
    assert lines["fitted"] == "False"
