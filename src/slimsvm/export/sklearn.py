"""`to_sklearn`: models as fitted `SVC`, `SVR` or `OneClassSVM`, for tools that accept only these."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_outlier_detector
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from ..data.dataset import outputs
from ..linalg.arrays import Array
from ..model.inference import InferenceModel, inference_model, last_step
from ..problem.kernels import Gaussian, Linear, Polynomial, Sigmoid
from ..utils.sklearn_private import fill_libsvm

KERNELS = (Gaussian, Linear, Polynomial, Sigmoid)  # kernels that SVC implements
SAME_NAME = {kind.__name__: kind for kind in (SVC, NuSVC, SVR, NuSVR, OneClassSVM)}  # also names of slimsvm's classes


def to_sklearn(model: Any) -> Any:
    """A fitted model as a fitted SVM of scikit-learn, for tools that accept only these.

    Parameters
    ----------
    model : fitted estimator of slimsvm, or Pipeline that ends in one
        With the kernel rbf (learned scales too), linear, poly or sigmoid.

    Returns
    -------
    `SVC`, `SVR` or `OneClassSVM`, fitted, with the same predictions (`NuSVC` and `NuSVR` from those of slimsvm); or a
    `Pipeline`: with the same earlier steps, or with a `StandardScaler` in front that applies the learned scales of an
    rbf kernel. Probabilities are left out.

    Notes
    -----
    `SVC` stores its vectors by class: with several classes, a vector that more than one of them uses is repeated, up to
    ``n_classes - 1`` times. A classifier with one decision value per class becomes pairwise classifiers whose values
    are differences of these: `predict` is the same, and scores are votes.

    Predictions differ where a decision value is exactly 0, which `SVC` counts for the other class; and, for
    ``decision_function_shape="ovo"``, where classes have equally many votes: `SVC` predicts the first of them.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import SlimSVC, to_sklearn
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> clf = SlimSVC(n_vectors=6, gamma=2.0, scales="fixed").fit(X, y)
    >>> svc = to_sklearn(clf)
    >>> type(svc).__name__, svc.support_vectors_.shape, bool((svc.predict(X) == clf.predict(X)).all())
    ('SVC', (6, 2), True)
    """
    _, estimator = last_step(model)
    made = _sklearn_svm(estimator)
    if not isinstance(model, Pipeline):
        return made
    last = made.steps if isinstance(made, Pipeline) else [(model.steps[-1][0], made)]
    return Pipeline([*model.steps[:-1], *last], memory=model.memory, verbose=model.verbose)


def _sklearn_svm(estimator: Any) -> Any:
    inference = inference_model(estimator)
    if inference.classes is None and len(inference.expansion.bias) > 1:
        raise ValueError(
            f"{type(estimator).__name__} has {len(inference.expansion.bias)} targets, SVR has one; use to_onnx or "
            "to_c, or fit a model for each target"
        )
    kernel, scales = inference.expansion.kernel.unscaled
    if type(kernel) not in KERNELS:
        known = [kind.name for kind in KERNELS]
        raise ValueError(
            f"kernel {kernel.name!r} is none that SVC computes by itself; {known} are. Use to_onnx or to_c, or "
            "fit with one of these"
        )
    Z, scales = inference.expansion.vectors, np.broadcast_to(scales, inference.n_inputs)
    settings = {"kernel": kernel.name, "gamma": "scale", **kernel.get_params()}
    names = getattr(estimator, "feature_names_in_", None)
    if not kernel.translation_invariant:  # scales can go into the vectors: (s x).(s z) = x.(s^2 z)
        return _filled(inference, Z * scales**2, settings, estimator, names)
    if (scales == scales[0]).all() and scales[0]:
        settings["gamma"] *= float(scales[0]) ** 2
        return _filled(inference, Z, settings, estimator, names)
    steps = [("scales", _scaling(scales, names)), ("svm", _filled(inference, Z * scales, settings, estimator, None))]
    return Pipeline(steps)


def _scaling(scales: Array, names: Any) -> StandardScaler:
    """A fitted StandardScaler that multiplies inputs by ``scales``; for scale 0 it divides by infinity."""
    scaler = StandardScaler(with_mean=False).fit(np.eye(1, len(scales)))
    with np.errstate(divide="ignore"):
        scaler.scale_ = 1 / scales
    scaler.var_ = scaler.scale_**2
    if names is not None:
        scaler.feature_names_in_ = names
    return scaler


def _filled(inference: InferenceModel, Z: Array, settings: dict[str, Any], estimator: Any, names: Any) -> Any:
    """A fitted `SVC`, `SVR` or `OneClassSVM` with these vectors."""
    coef, bias = inference.expansion.coef, inference.expansion.bias
    if not len(Z):  # libsvm needs at least one vector
        Z, coef = np.zeros((1, inference.n_inputs)), np.zeros((len(bias), 1))
    kind, sizes = SAME_NAME.get(type(estimator).__name__), [len(Z), len(Z)]
    settings |= {"C": C} if (C := _cost(estimator)) else {}
    if kind is not None:
        params = estimator.get_params()
        settings |= {name: params[name] for name in ("nu", "epsilon") if name in params}
    if inference.classes is None:
        made = (kind or SVR)(**settings)
    elif is_outlier_detector(estimator):
        settings.pop("C", None)
        made = OneClassSVM(**settings)
    else:
        made = (kind or SVC)(**settings, **_ties(inference))
        coef, bias, own, sizes = _by_class(inference, coef, _below_zero(inference, coef, bias))
        Z = Z[own]
    _fit_few_rows(made, inference)
    # With two classes, libsvm's values are positive for the first.
    sign = -1 if inference.classes is not None and not is_outlier_detector(estimator) and len(bias) == 1 else 1
    made.support_vectors_ = np.ascontiguousarray(Z, dtype=np.float64)
    made.support_ = np.arange(len(Z), dtype=np.int32)
    made.shape_fit_ = Z.shape
    fill_libsvm(made, coef, bias, sizes, sign)
    if is_outlier_detector(made):
        made.offset_ = -made.intercept_
    if names is not None:
        made.feature_names_in_ = names
    return made


def _cost(estimator: Any) -> float | None:
    """The fitted C; None if it is not a number."""
    C = getattr(estimator, "C_", estimator.get_params().get("C"))
    return float(C) if isinstance(C, (int, float, np.number)) else None


def _fit_few_rows(made: Any, inference: InferenceModel) -> None:
    """Fit a few rows, so that all attributes of this version of scikit-learn exist."""
    y = np.arange(2.0) if inference.classes is None else inference.classes
    n, d = len(y), inference.n_inputs
    made.fit(np.eye(n, d) if n <= d else np.arange(n)[:, None] * np.eye(1, d), y)


def _ties(inference: InferenceModel) -> dict[str, Any]:
    """Parameters with which `SVC` counts votes and breaks ties as the model does."""
    votes, shown = inference.votes, inference.shown
    assert votes is not None
    if len(inference.expansion.bias) == 1 or (votes.pairs and shown is None):
        return {"decision_function_shape": "ovr" if len(inference.expansion.bias) == 1 else "ovo"}
    return {"decision_function_shape": "ovr", "break_ties": votes.by_value}


def _below_zero(inference: InferenceModel, coef: Array, bias: Array) -> Array:
    """Biases, made slightly negative where f = 0 everywhere, because `SVC` predicts the other class at exactly 0."""
    votes = inference.votes
    assert votes is not None
    if votes.zero_is_positive or (len(bias) > 1 and not (votes.pairs and votes.by_value)):
        return bias
    return np.where(coef.any(axis=1) | (bias != 0), bias, -np.finfo(np.float64).tiny)


def _by_class(inference: InferenceModel, coef: Array, bias: Array) -> tuple[Array, Array, Array, list[int]]:
    """Coefficients, biases, vector numbers and numbers of vectors per class, in the layout of `SVC`.

    There, a vector belongs to one class and has a coefficient for each pair of this class with another. A coefficient
    goes to the class that it votes for, so that vectors that are training rows occur once.
    """
    assert inference.classes is not None
    assert inference.votes is not None
    n = len(inference.classes)
    if len(bias) == 1:
        own = np.argsort(coef[0] > 0, kind="stable")
        return coef[:, own], bias, own, [int((coef <= 0).sum()), int((coef > 0).sum())]
    pairs = [(problem.positive, problem.negative[0]) for problem in outputs(n, "ovo")]
    first, second = np.array(pairs).T
    if not inference.votes.pairs:
        coef, bias = coef[first] - coef[second], bias[first] - bias[second]
    owner = _owners(coef, first, second, n)
    blocks, numbers, sizes = [], [], []
    for k in range(n):
        of_class = np.flatnonzero(((owner == k) & (coef != 0)).any(axis=0))
        block = np.zeros((n - 1, len(of_class)))
        for p in np.flatnonzero((first == k) | (second == k)):
            other = second[p] - 1 if first[p] == k else first[p]
            block[other] = np.where(owner[p, of_class] == k, coef[p, of_class], 0)
        blocks.append(block)
        numbers.append(of_class)
        sizes.append(len(of_class))
    return np.hstack(blocks), bias, np.concatenate(numbers), sizes


def _owners(coef: Array, first: Array, second: Array, n: int) -> Array:
    """The class that each coefficient (pairs x vectors) belongs to.

    If a vector would belong to all classes, the last class gives its coefficients to the other class of each pair.
    """
    owner = np.where(coef > 0, first[:, None], second[:, None])
    used = np.stack([((owner == k) & (coef != 0)).any(axis=0) for k in range(n)])
    everywhere = used.all(axis=0)
    return np.where(everywhere & (owner == n - 1), first[:, None], owner)
