"""A random estimator for a random problem, and the judge that knows its mathematics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import slimsvm
from slimsvm import bases, slacks

from . import data as datasets
from . import judge
from .exact import LONG, kernel_matrix

TOLERANCES = (None, None, 1e-3, 1e-6)  # None: the estimator's own


@dataclass(frozen=True)
class Case:
    """An estimator, what it is fitted to, and how to judge the result."""

    name: str
    text: str
    estimator: Any
    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    verdict: Callable[[Any], judge.Verdict]


def learned(iterations, init="kmeans"):
    """Learned vectors after a few iterations, as parameters of SlimSVC."""
    if hasattr(bases, "Learned"):
        return {"basis": bases.Learned(init=init, iterations=iterations)}
    return {"basis": "learned", "init": init, "learning_iter": iterations}


def epsilon(model, learns, X, kernel):
    """What the kernel norm adds to its diagonal: the model says it."""
    said = getattr(model, "regularizer_", None)
    if said is not None:
        return getattr(said, "epsilon", 0.0)
    if not learns:
        return 0.0
    diagonal = [kernel_matrix(kernel, X[i : i + 1], X[i : i + 1], model.kernel_)[0, 0] for i in range(X.shape[0])]
    return LONG(1e-6) * np.mean(diagonal)


class Draw:
    """Draws the settings that machines share."""

    def __init__(self, seed, number, most=300):
        self.rng = np.random.default_rng([seed, number])
        self.data = datasets.draw(self.rng, most)

    def one_of(self, *choices):
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, p):
        return bool(self.rng.random() < p)

    def power(self, low, high):
        """A number between 10^low and 10^high, of two digits."""
        return float(f"{10 ** self.rng.uniform(low, high):.1e}")

    def kernel(self, names=("rbf", "rbf", "rbf", "linear", "poly", "laplacian", "precomputed")):
        """Parameters of the kernel."""
        name = self.one_of(*names)
        params = {"kernel": name}
        if name in ("rbf", "laplacian", "poly", "sigmoid"):
            params["gamma"] = self.one_of("scale", "scale", self.power(-3, 2))
        if name == "poly":
            params |= {"degree": self.one_of(2, 3), "coef0": self.one_of(0.0, 1.0)}
        return params

    def class_weight(self):
        if self.chance(0.75):
            return {}
        return {"class_weight": self.one_of("balanced", {0: self.power(-3, 3)})}

    def tol(self):
        tol = self.one_of(*TOLERANCES)
        return {} if tol is None else {"tol": tol}

    def several(self):
        return {"multi_class": self.one_of("ovo", "ovr")}

    def cost(self):
        return {"C": self.power(-3, 6)}

    def rows(self, params):
        """What fit gets for this kernel."""
        if params["kernel"] == "precomputed":
            return datasets.integer_gram(self.rng, len(self.data.y))
        return self.data.X

    def case(self, estimator, params, verdict, weight="given"):
        X, weight = self.rows(params), self.data.weight if weight == "given" else weight
        text = f"{self.data.kind}, weights {'none' if weight is None else f'{weight.min():.1e}..{weight.max():.1e}'}"
        kernel = params["kernel"]

        def judged(model):
            return verdict(judge.Fitted(model, X, self.data.y, weight, kernel))

        return Case(type(estimator).__name__, text, estimator, X, self.data.y, weight, judged)


# --- Machines over all rows ---------------------------------------------------------------------------------


def _slack(draw):
    n = len(draw.data.y)
    size = min(float(f"{draw.rng.uniform(0.5, n):.3g}"), 60.0)
    return draw.one_of(
        slacks.OneNorm(),
        slacks.SquaredTwoNorm(),
        slacks.TwoNorm(),
        slacks.PNorm(draw.one_of(1.05, 1.2, 1.5, 3.0, 10.0, 100.0)),
        slacks.MaxNorm(),
        slacks.TopSum(size),
        slacks.TopTwoNorm(size),
        slacks.OneTwoNorm(float(f"{draw.rng.uniform(0.5, np.sqrt(n)):.3g}")),
        slacks.Mahalanobis(),
    )


def neighbours(n, rng):
    """A positive definite matrix whose inverse has no negative entries: a Laplacian and a multiple of the identity."""
    A = (rng.random((n, n)) < 2 / n).astype(float)
    A = np.triu(A, 1) + np.triu(A, 1).T
    return np.diag(A.sum(axis=1) + 0.5) - A


def _all_rows(draw, estimator, slack, constraint, params, weight="given"):
    scheme = params["multi_class"]
    return draw.case(estimator, params, lambda fitted: judge.all_rows(fitted, slack, constraint, scheme), weight)


def any_norm(draw):
    slack, constraint = _slack(draw), draw.one_of("inequality", "equality")
    params = {**draw.kernel(), **draw.several(), **draw.cost(), **draw.tol()}
    if isinstance(slack, slacks.Mahalanobis):
        slack = slacks.Mahalanobis(neighbours(len(draw.data.y), draw.rng))
        return _all_rows(draw, slimsvm.AnyNormSVC(slack, constraint, **params), slack, constraint, params, None)
    if not isinstance(slack, slacks.MaxNorm):  # which no weight of a class changes
        params |= draw.class_weight()
    return _all_rows(draw, slimsvm.AnyNormSVC(slack, constraint, **params), slack, constraint, params)


def budget(draw):
    params = {**draw.kernel(), **draw.several(), **draw.cost(), **draw.tol(), **draw.class_weight()}
    norm, size = draw.one_of("l1", "l2"), draw.one_of(draw.power(-0.3, 2), 5.0, 20.0)
    hard = draw.one_of(None, None, "select", "learn")
    if hard == "learn" and params["kernel"] == "precomputed":
        hard = "select"
    size = size if hard is None else max(1.0, min(size, 30.0))
    estimator = slimsvm.BudgetSVC(size, norm, hard, **params)
    if hard is None:
        slack = (slacks.TopSum if norm == "l1" else slacks.TopTwoNorm)(size)
        return _all_rows(draw, estimator, slack, "inequality", params)

    def verdict(fitted):
        added = epsilon(fitted.model, hard == "learn", fitted.X, fitted.kernel)
        found = judge.few_vectors(fitted, judge.LOSSES[norm], "kernel", added, params["multi_class"], fitted.model.C_)
        if fitted.model.n_vectors_ > size:
            found.wrong.append(f"{fitted.model.n_vectors_} vectors, budget {size:g}")
        return found

    return draw.case(estimator, params, verdict)


def least_squares(draw):
    params = {**draw.kernel(), **draw.several(), **draw.cost(), **draw.tol(), **draw.class_weight()}
    return _all_rows(draw, slimsvm.LeastSquaresSVC(**params), slacks.SquaredTwoNorm(), "equality", params)


def least_one_norm(draw):
    params = {**draw.kernel(), **draw.several(), **draw.cost(), **draw.tol(), **draw.class_weight()}
    return _all_rows(draw, slimsvm.LeastOneNormSVC(**params), slacks.OneNorm(), "equality", params)


# --- Machines over few vectors ------------------------------------------------------------------------------


def _few(draw, estimator, params, learns=False):
    def verdict(fitted):
        model = fitted.model
        added = epsilon(model, learns and params["regularizer"] == "kernel", fitted.X, fitted.kernel)
        cost = getattr(model, "C_", params.get("C"))
        slack = judge.LOSSES[params["slack"]]
        found = judge.few_vectors(fitted, slack, params["regularizer"], added, params["multi_class"], cost)
        most = params.get("n_vectors")
        if most is not None and model.n_vectors_ > most:
            found.wrong.append(f"{model.n_vectors_} vectors, n_vectors={most}")
        return found

    return draw.case(estimator, params, verdict)


def _shared(draw):
    parts = {"slack": draw.one_of("l1", "l2"), "regularizer": draw.one_of("kernel", "identity")}
    return {**parts, **draw.kernel(), **draw.several(), **draw.cost(), **draw.tol(), **draw.class_weight()}


def reduced(draw):
    params = {"n_vectors": draw.one_of(1, 5, 30), **_shared(draw)}
    return _few(draw, slimsvm.ReducedSVC(**params), params)


def empirical(draw):
    params = _shared(draw)
    selection = draw.one_of("order", "pivoted", *(["inputs"] if params["kernel"] == "linear" else []))
    return _few(draw, slimsvm.EmpiricalSVC(draw.power(-5, -0.5), selection, **params), params)


def slim(draw):
    params = {"n_vectors": draw.one_of(2, 6, 20), **_shared(draw)}
    learns = params["kernel"] != "precomputed" and draw.chance(0.6)
    if learns:
        params |= learned(draw.one_of(0, 5, 30), draw.one_of("kmeans", "forward", "random", "cholesky"))
        params["scales"] = draw.one_of("fixed", "learned")
    else:
        rows_only = params["kernel"] == "precomputed"
        params["basis"] = draw.one_of("forward", "random", "cholesky", *([] if rows_only else ["kmeans"]))
        params["scales"] = "fixed"
    if draw.chance(0.15):  # the search
        del params["C"]
        if params.get("gamma") == "scale":
            params["gamma"] = "search"
    return _few(draw, slimsvm.SlimSVC(**params), params, learns)


# --- Machines that find their size --------------------------------------------------------------------------


def lp(draw):
    params = {**draw.kernel(), **draw.several(), **draw.class_weight()}
    params |= {"C": draw.power(-2, 5), "variant": draw.one_of("exact", "exact", "diagonal")}
    if draw.chance(0.5):
        params["C_alpha"] = draw.power(-2, 1) * params["C"] if draw.chance(0.7) else draw.power(-3, 2)
    estimator = slimsvm.LpSVC(draw.one_of(0.0, 0.5, 1.0, 1.5, 2.0, np.inf), **params)
    return draw.case(estimator, params, lambda fitted: judge.lp(fitted, params["multi_class"]))


def relevance(draw):
    params = {
        **draw.kernel(("rbf", "rbf", "linear", "poly", "laplacian", "precomputed", "sigmoid")),
        **draw.class_weight(),
    }
    estimator = slimsvm.RelevanceVectorClassifier(**params, **draw.tol())
    return draw.case(estimator, params, judge.relevance)


MACHINES = {
    "AnyNormSVC": any_norm,
    "BudgetSVC": budget,
    "LeastSquaresSVC": least_squares,
    "LeastOneNormSVC": least_one_norm,
    "ReducedSVC": reduced,
    "EmpiricalSVC": empirical,
    "SlimSVC": slim,
    "LpSVC": lp,
    "RelevanceVectorClassifier": relevance,
}
# The norms are many: their machine gets a third of the problems.
TURNS = [name for name in MACHINES for _ in range(4 if name == "AnyNormSVC" else 1)]


def case(seed, number, only=None, rows=300):
    """Problem ``number`` of this seed, of at most so many rows: estimators take turns."""
    turns = TURNS if only is None else [only]
    return MACHINES[turns[number % len(turns)]](Draw(seed, number, rows))
