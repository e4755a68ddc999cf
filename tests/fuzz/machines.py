"""A random estimator for a random problem, and the judge that knows its mathematics."""

from __future__ import annotations

import numpy as np

import kernel_table
import slack_table
import slimsvm
from longdouble import LONG
from slimsvm import bases, slacks

from . import interior, judge
from .drawing import Draw
from .exact import kernel_matrix
from .family import FAMILY, TARGETS, Targets


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


# --- Machines over all rows ---------------------------------------------------------------------------------


def _slack(draw):
    n = len(draw.data.y)
    size = min(float(f"{draw.rng.uniform(0.5, n):.3g}"), 60.0)
    entries = slack_table.ENTRIES.values()
    return draw.one_of(*(entry.drawn(draw, n, size) if entry.drawn else entry.examples[0] for entry in entries))


def neighbours(n, rng):
    """A positive definite matrix whose inverse has no negative entries: a Laplacian and a multiple of the identity."""
    A = (rng.random((n, n)) < 2 / n).astype(float)
    A = np.triu(A, 1) + np.triu(A, 1).T
    return np.diag(A.sum(axis=1) + 0.5) - A


def metric(draw, constraint):
    """A norm of slacks of related rows, for rows that are in or out: any metric where slacks may have any sign."""
    n, weight = len(draw.data.y), None if draw.data.weight is None else (draw.data.weight > 0).astype(float)
    if constraint == "inequality" or draw.chance(0.3):
        return slacks.Mahalanobis(neighbours(n, draw.rng)), weight
    A = draw.rng.standard_normal((n, n))
    sizes = 10 ** (draw.one_of(0, 0, 2) * draw.rng.uniform(-1, 1, n))
    M = A @ A.T / n + draw.power(-6, 0) * np.eye(n)
    return slacks.Mahalanobis(M * np.outer(sizes, sizes)), weight


def _all_rows(draw, estimator, slack, constraint, params, weight="given"):
    scheme = params["multi_class"]
    return draw.case(estimator, params, lambda fitted: judge.all_rows(fitted, slack, constraint, scheme), weight)


def any_norm(draw):
    slack, constraint = _slack(draw), draw.one_of("inequality", "equality")
    params = {**draw.kernel(), **draw.several(), **draw.cost(), **draw.tol()}
    if isinstance(slack, slacks.Mahalanobis):
        slack, weight = metric(draw, constraint)
        return _all_rows(draw, slimsvm.AnyNormSVC(slack, constraint, **params), slack, constraint, params, weight)
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
    params |= draw.one_of({}, {"cache_size": draw.power(-4, -1)})  # the matrix does not fit
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


def given_vectors(draw, count):
    """Some of the rows, or others of any size."""
    X = draw.data.X
    if draw.chance(0.5):
        rows = X[np.sort(draw.rng.permutation(X.shape[0])[:count])]
        return rows.toarray() if hasattr(rows, "toarray") else rows
    return draw.power(-3, 7) * draw.rng.standard_normal((count, X.shape[1]))


def slim(draw):
    params = {"n_vectors": draw.one_of(1, 2, 6, 20), **_shared(draw)}
    given = params["kernel"] != "precomputed" and draw.chance(0.15)
    learns = params["kernel"] != "precomputed" and not given and draw.chance(0.6)
    if given:
        params |= {"basis": given_vectors(draw, params["n_vectors"]), "scales": "fixed"}
    elif learns:
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


def slim_regression(draw):
    """Losses that are two hinges each: their shape, and the tube in which residuals cost nothing."""
    y = draw.data.y
    size = float(np.std(y)) or 1.0
    epsilon = draw.one_of(0.1, 1.0, draw.power(-6, 1)) * size
    loss = draw.one_of("squared_error", "squared_error", "epsilon_insensitive", "squared_epsilon_insensitive", "huber")
    params = {"n_vectors": draw.one_of(2, 6, 20), "loss": loss, "epsilon": epsilon}
    params |= {"regularizer": draw.one_of("kernel", "identity"), **draw.kernel(), **draw.tol()}
    params["C"] = draw.power(-3, 6) * (1 / size if loss in ("epsilon_insensitive", "huber") else 1.0)
    learns = params["kernel"] != "precomputed" and draw.chance(0.6)
    if learns:
        params |= learned(draw.one_of(0, 5, 30), draw.one_of("kmeans", "random", "cholesky"))
        params["scales"] = draw.one_of("fixed", "learned")
    else:
        params |= {"basis": draw.one_of("random", "cholesky"), "scales": "fixed"}
    if draw.chance(0.15):  # the search
        del params["C"]
        if params.get("gamma") == "scale":
            params["gamma"] = "search"
    shapes = {
        "squared_error": (interior.SQUARED, 0.0),
        "epsilon_insensitive": (interior.HINGE, epsilon),
        "squared_epsilon_insensitive": (interior.SQUARED, epsilon),
        "huber": (interior.huber(epsilon), 0.0),
    }

    def verdict(fitted):
        added = epsilon_of(fitted, learns and params["regularizer"] == "kernel")
        found = judge.few_vectors_for_targets(fitted, *shapes[loss], added)
        if fitted.model.n_vectors_ > params["n_vectors"]:
            found.wrong.append(f"{fitted.model.n_vectors_} vectors, n_vectors={params['n_vectors']}")
        return found

    return draw.case(slimsvm.SlimSVR(**params), params, verdict)


def epsilon_of(fitted, learns):
    return epsilon(fitted.model, learns, fitted.X, fitted.kernel)


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
        **draw.kernel(
            (
                "rbf",
                *kernel_table.default_first(semidefinite=True),
                "precomputed",
                *kernel_table.names(semidefinite=False),
            )
        ),
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
    "SlimSVR": slim_regression,
    **FAMILY,
}
# The norms are many: their machine gets a third of the problems.
TURNS = [name for name in MACHINES for _ in range(4 if name == "AnyNormSVC" else 1)]


def case(seed, number, only=None, rows=300):
    """Problem ``number`` of this seed, of at most so many rows: estimators take turns."""
    turns = TURNS if only is None else [only]
    name = turns[number % len(turns)]
    return MACHINES[name]((TARGETS | {"SlimSVR": Targets}).get(name, Draw)(seed, number, rows))
