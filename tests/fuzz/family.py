"""The machines of `sklearn.svm`: costs over fourteen orders of magnitude, tubes and shares up to their ends."""

from __future__ import annotations

import numpy as np

import kernel_table
import slimsvm
from longdouble import LONG, long

from . import data as datasets
from . import family_judge
from .drawing import Case, Draw


class Targets(Draw):
    """Rows with numbers to fit."""

    def rows_with_answers(self, most):
        return datasets.draw_targets(self.rng, most)


def kernel(draw):
    """Its parameters; gamma may be of any size."""
    params = draw.kernel(("rbf", "rbf", *kernel_table.default_first(semidefinite=True, in_sklearn=True), "precomputed"))
    if "gamma" in params and draw.chance(0.2):
        params["gamma"] = draw.power(-8, 6)
    return params


def share(draw):
    """nu: ordinary, or near one of its ends."""
    return draw.one_of(0.5, 0.1, 0.9, 1.0, draw.power(-6, 0), 1 - draw.power(-9, -1))


def scales(X, weight):
    """What gamma="scale" may mean, 1 / (inputs times variance): with rows counted once, or by their weights."""
    X = long(X)
    for w in (np.ones(len(X), dtype=LONG), np.ones(len(X), dtype=LONG) if weight is None else long(weight)):
        share = w[:, None] / (w.sum() * X.shape[1])
        mean = (share * X).sum()
        variance = (share * (X - mean) ** 2).sum()
        yield 1 / (X.shape[1] * variance) if variance > 1e-32 * mean**2 else LONG(1)


def gamma_is_as_asked(params, kernel, X, weight):
    asked = params.get("gamma")
    if asked is None:
        return []
    allowed = scales(X, weight) if asked == "scale" else [asked]
    used = kernel.gamma
    if any(abs(used - one) <= 1e-6 * one for one in allowed):
        return []
    return [f"gamma is {used:.10g}, asked for {asked}"]


def case(draw, estimator, params, judged, y):
    X, weight = draw.rows(params), draw.data.weight
    text = f"{draw.data.kind}, weights {'none' if weight is None else f'{weight.min():.1e}..{weight.max():.1e}'}"

    def verdict(model):
        found = judged(family_judge.Fitted(model, X, y, weight, params["kernel"]))
        found.wrong += gamma_is_as_asked(params, model.kernel_, X, weight)
        return found

    return Case(type(estimator).__name__, text, estimator, X, y, weight, verdict, ("dual_coef_", "intercept_"))


def svr(draw):
    size = float(abs(draw.data.y).max())
    epsilon = draw.one_of(0.1, 0.0, draw.power(-8, 0) * size, draw.power(0, 3) * size)
    params = {**kernel(draw), **draw.tol(), "C": draw.power(-6, 8), "epsilon": epsilon}
    return case(draw, slimsvm.SVR(**params), params, family_judge.regression, draw.data.y)


def nu_svr(draw):
    params = {**kernel(draw), **draw.tol(), "C": draw.power(-6, 8), "nu": share(draw)}
    return case(draw, slimsvm.NuSVR(**params), params, family_judge.nu_regression, draw.data.y)


def one_class(draw):
    params = {**kernel(draw), **draw.tol(), "nu": share(draw)}
    return case(draw, slimsvm.OneClassSVM(**params), params, family_judge.one_class, None)


def svc(draw):
    params = {**kernel(draw), **draw.tol(), "C": draw.power(-6, 8)}
    return case(draw, slimsvm.SVC(**params), params, family_judge.classification, (draw.data.y > 0).astype(int))


def nu_svc(draw):
    """Two classes; nu up to what the lighter one allows, sometimes beyond."""
    y = (draw.data.y > 0).astype(int)
    weight = draw.data.weight
    lighter = min((y == c).sum() if weight is None else weight[y == c].sum() for c in (0, 1))
    most = 2 * lighter / (len(y) if weight is None else weight.sum())
    nu = min(1.0, max(1e-9, float(share(draw) * most * draw.one_of(1, 1, 1, 1, 1.2))))
    params = {**kernel(draw), **draw.tol(), "nu": nu}
    return case(draw, slimsvm.NuSVC(**params), params, family_judge.nu_classification, y)


TARGETS = {"SVR": Targets, "NuSVR": Targets, "OneClassSVM": Targets}  # the others have classes
FAMILY = {"SVR": svr, "NuSVR": nu_svr, "OneClassSVM": one_class, "NuSVC": nu_svc, "SVC": svc}
