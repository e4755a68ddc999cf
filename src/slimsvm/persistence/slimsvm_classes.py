"""Estimators and parts of this library in a file: what they have, and how it must fit together.

A file may be hostile: what is checked here is all that prediction trusts, so that no array is read beyond its end and
nothing is allocated that the file did not bring.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from .. import estimators
from ..compression import Compression
from ..compression.tasks import Classification, OneClass, Regression
from ..data.dataset import Output
from ..data.reservoir import Reservoir
from ..estimators.base import MANY
from ..estimators.stream import Stream
from ..linalg.arrays import Array
from ..model.voting import Votes
from ..problem import bases, kernels, losses, regularizers, slacks
from ..training.sizes import Curve
from ..training.spec import Hyperparameters
from .checks import (
    COLUMNS,
    COUNT,
    DATA,
    FINITE,
    FLAG,
    FLOATS,
    INTEGERS,
    LABELS,
    NAMES,
    NOTHING,
    NUMBER,
    ROWS,
    TABLE,
    TEXT,
    THREADS,
    WHOLE,
    Check,
    finite,
    listed,
    of,
    shape_complaint,
    unless,
)
from .schema import Fits, Form, parameters, record
from .sklearn_classes import MACHINES, kind_of

MOST_PAIRED = 512  # classes: votes of all pairs take memory that grows with their third power
THINNEST = 64  # a sparse table of coefficients has at least one of so many
KERNELS = tuple(kind for kind in kernels.ALL if kind is not kernels.Function)
SPARSE_TABLE = Check("a sparse table of floats", lambda value: sp.issparse(value) and value.dtype == np.float64)

# What is there after a fit, in one estimator or another.
FITTED: dict[str, Check] = {
    "n_features_in_": COLUMNS,
    "feature_names_in_": NAMES,
    "classes_": LABELS,
    "kernel_": of(*KERNELS),
    "vectors_": ROWS,
    "n_vectors_": COUNT,
    "vector_coef_": TABLE | SPARSE_TABLE,
    "intercept_": FLOATS,
    "support_": INTEGERS,
    "objective_": FLOATS,
    "duality_gap_": FLOATS,
    "n_iter_": INTEGERS,
    "_votes": of(Votes),
    "_factors": FLOATS,
}
OF_CLASSES = ("classes_", "_votes", "_factors")
LAYER = {
    "probability_coef_": TABLE,
    "probability_intercept_": FLOATS,
    "probability_C_": NUMBER,
    "probability_gap_": NUMBER,
}
LEARNED = {"learning_iter_": COUNT, "learning_gain_left_": NUMBER, "regularizer_": of(*regularizers.ALL)}
MORE: dict[type, dict[str, Check]] = {
    estimators.SlimSVC: LAYER
    | LEARNED
    | {"C_": NUMBER, "search_results_": DATA, "multi_class_": TEXT, "frontier_": of(Curve)}
    | {"n_samples_seen_": WHOLE, "_setting": of(Hyperparameters), "stream_": of(Stream)},
    estimators.SlimSVR: LEARNED
    | {"C_": NUMBER, "search_results_": DATA, "frontier_": of(Curve), "residuals_": TABLE, "residual_weights_": FLOATS}
    | {"n_samples_seen_": WHOLE, "_setting": of(Hyperparameters), "stream_": of(Stream), "_single": FLAG},
    estimators.AnyNormSVC: {},
    estimators.BudgetSVC: LEARNED | {"C_": FLOATS},
    estimators.LeastSquaresSVC: {"loo_residuals_": TABLE},
    estimators.LeastOneNormSVC: {},
    estimators.EmpiricalSVC: LAYER | LEARNED,
    estimators.ReducedSVC: LAYER | LEARNED,
    estimators.LpSVC: LAYER | {"C_alpha_": NUMBER | FLOATS, "history_": DATA},
    estimators.RelevanceVectorClassifier: {"precision_": TABLE, "intercept_precision_": FLOATS, "history_": DATA},
}
WHOLE_NUMBERS = Check("a tuple of integers", lambda v: isinstance(v, tuple) and all(map(COUNT.holds, v)))
# Of the drop-in machines: scikit-learn's layout.
LAYOUT = {"n_support_": INTEGERS, "shape_fit_": WHOLE_NUMBERS, "fit_status_": COUNT}
PLATT = {name: LAYER[name] for name in ("probability_coef_", "probability_intercept_")} | {"_sigmoids": TABLE}
DROP_IN: tuple[type, ...] = (estimators.SVC, estimators.NuSVC)
MORE |= dict.fromkeys(DROP_IN, LAYOUT | PLATT | {"class_weight_": FLOATS})
COMPRESSED = {"_cost": FINITE, "compression_": of(Compression)}

# What an estimator has once it is fitted.
MODEL = {"n_features_in_", "kernel_", "vectors_", "n_vectors_", "vector_coef_", "intercept_"}


@cache
def own_forms() -> dict[str, Form]:
    """By the names that files use."""
    trained = [*map(_classifier, (*estimators.ALL, *DROP_IN)), *map(_regressor, estimators.REGRESSORS), *_machines()]
    found = [*_parts(), *_records(), *trained, *_compressed(), *_detectors()]
    return {one.name: one for one in found}


@cache
def own_names() -> dict[type, str]:
    """Names of this library's classes."""
    return {one.kind: name for name, one in own_forms().items()}


# --- parts -------------------------------------------------------------------------------------------------------


def _parts() -> Iterable[Form]:
    families = {
        "kernels": KERNELS,
        "slacks": slacks.ALL,
        "losses": (*losses.ALL, *losses.FOR_TARGETS),
        "regularizers": regularizers.ALL,
        "bases": bases.ALL,
    }
    # Fields that hold another part.
    inner: dict[type, dict[str, Check]] = {
        kernels.Scaled: {"kernel": of(*KERNELS)},
        kernels.Precomputed: {"matrix": DATA},
        bases.Learned: {"init": DATA | of(*bases.ALL)},
        regularizers.ReweightedNorm: {"base": of(*regularizers.ALL)},
    }
    for family, kinds in families.items():
        for kind in kinds:
            yield record(kind, f"slimsvm.{family}.{kind.__name__}", **inner.get(kind, {}))


def kernel_complaint(kernel: Any, inputs: int) -> str:
    """What is wrong with the kernel of a fitted model."""
    if isinstance(kernel, kernels.Precomputed):
        return "" if kernel.matrix is None else "the kernel of a fitted model has a matrix"
    if isinstance(kernel, kernels.Scaled):
        return _scales_complaint(kernel.scales, inputs) or kernel_complaint(kernel.kernel, inputs)
    try:
        numbers = [np.isfinite(float(value)) for value in kernel.get_params().values()]
        kernel.core()
    except (TypeError, ValueError, OverflowError) as error:
        return f"its kernel makes no sense: {str(error)[:200]}"
    return "" if all(numbers) else "a number of the kernel is not finite"


def _scales_complaint(scales: Any, inputs: int) -> str:
    try:
        scales = np.asarray(scales, dtype=np.float64)
    except (TypeError, ValueError):
        return "the scales of the inputs are no numbers"
    if scales.shape not in ((), (inputs,)) or not np.isfinite(scales).all():
        return f"there are not {inputs} finite scales, one for each input"
    return ""


# --- records -----------------------------------------------------------------------------------------------------


def _records() -> list[Form]:
    yes_or_no = {"pairs": FLAG, "by_value": FLAG, "zero_is_positive": FLAG}
    counts = dict.fromkeys(("vectors_before", "vectors_after", "bytes_before", "bytes_after"), WHOLE)
    numbers = dict.fromkeys(("agreement_on_vectors", "distance", "speedup"), NUMBER)
    return [
        record(Votes, "slimsvm.Votes", **yes_or_no),
        record(Output, "slimsvm.Output", positive=COUNT, negative=WHOLE_NUMBERS),
        record(
            Classification,
            "slimsvm.Classes",
            factors=FLOATS,
            problems=listed(of(Output)),
            votes=of(Votes),
            shown=NOTHING | of(Votes),
        ),
        record(Regression, "slimsvm.Values", epsilon=NUMBER),
        record(OneClass, "slimsvm.Inside", border=NUMBER),
        *_streams(),
        record(Curve, "slimsvm.Curve", sizes=WHOLE_NUMBERS, scores=FLOATS, standard_errors=FLOATS, behind=FLOATS),
        record(
            Compression,
            "slimsvm.Compression",
            method=TEXT,
            agreement_on_X=NOTHING | NUMBER,
            distances=FLOATS,
            note=TEXT,
            **counts,
            **numbers,
        ),
    ]


def _streams() -> list[Form]:
    """What `partial_fit` goes on from: it trusts these rows, as they were checked when they came."""
    whole = dict.fromkeys(("waits_for", "fitted", "known", "searched", "searched_rows"), WHOLE)
    rows = {"X": ROWS, "codes": INTEGERS, "weights": FLOATS, "numbers": INTEGERS, "priorities": FLOATS}
    rows |= {"targets": TABLE | NOTHING}
    known = {"seed": COUNT, "recent": FLAG, "seen": WHOLE, "totals": FLOATS, "dropped": FLOATS}
    memory = record(Reservoir, "slimsvm.Reservoir", **rows, **known)
    return [
        record(Hyperparameters, "slimsvm.Setting", C=FINITE, gamma=FINITE, scaled=FLAG),
        replace(memory, fits=_memory_complaint),
        record(Stream, "slimsvm.Stream", memory=of(Reservoir), **whole),
    ]


def _memory_complaint(state: dict[str, Any]) -> str:
    X, codes, classes = state["X"], state["codes"], len(state["totals"])
    same = [len(state[name]) == len(codes) for name in ("weights", "numbers", "priorities")]
    if X.ndim != 2 or X.shape[0] != len(codes) or not all(same) or len(state["dropped"]) != classes:
        return "its arrays are not of the same length"
    targets = state["targets"]
    if targets is not None and (len(targets) != len(codes) or not finite(targets)):
        return "its targets are not those of its rows, or not finite"
    if state["seen"] < len(codes):
        return "it has more rows than came"
    if not len(codes) or codes.min() < 0 or codes.max() >= classes:
        return "it has no rows, or rows of classes that it has not"
    numbers = [state[name] for name in ("weights", "priorities", "totals", "dropped")]
    return "" if all(map(finite, [X, *numbers])) and state["weights"].min() > 0 else "its rows are not all finite"


# --- estimators --------------------------------------------------------------------------------------------------


def _classifier(kind: type) -> Form:
    layout = LAYOUT.keys() | {"support_"} if LAYOUT.keys() <= MORE[kind].keys() else set()
    return _estimator(kind, FITTED, {*OF_CLASSES, *layout}, _classifier_complaint)


def _regressor(kind: type) -> Form:
    common = {name: check for name, check in FITTED.items() if name not in OF_CLASSES}
    return _estimator(kind, common, {"_single"}, _regressor_complaint)


def _estimator(kind: type, common: dict[str, Check], own: set[str], complaint: Fits) -> Form:
    parts = {
        "kernel": DATA | of(*KERNELS),
        "slack": DATA | of(*slacks.ALL, *losses.ALL),
        "loss": DATA | of(*losses.FOR_TARGETS),
        "regularizer": DATA | of(*regularizers.ALL),
        "basis": DATA | of(*bases.ALL),
        "n_jobs": THREADS,
    }
    fitted = common | MORE[kind]
    return Form(
        f"slimsvm.{kind.__name__}",
        kind,
        parameters(kind, **parts),
        fitted,
        fits=partial(_fitted_complaint, MODEL | own, fitted, complaint),
        kept=_with_thin_table,
        made=_with_full_table,
    )


def _machines() -> Iterable[Form]:
    """Drop-in machines without classes."""
    left_out = ("classes_", "_votes", "_factors")
    common = {name: check for name, check in FITTED.items() if name not in left_out} | LAYOUT | {"n_iter_": WHOLE}
    for kind in (estimators.SVR, estimators.NuSVR, estimators.OneClassSVM):
        offset = {"offset_": FLOATS} if kind is estimators.OneClassSVM else {}
        fitted = common | offset
        needed = MODEL | LAYOUT.keys() | offset.keys() | {"support_"}
        yield Form(
            f"slimsvm.{kind.__name__}",
            kind,
            parameters(kind, kernel=DATA | of(*KERNELS), n_jobs=THREADS),
            fitted,
            fits=partial(_fitted_complaint, needed, fitted, _machine_complaint),
        )


def _compressed() -> Iterable[Form]:
    left_out = (*OF_CLASSES, "support_", "objective_", "duality_gap_", "n_iter_")
    common = {name: check for name, check in FITTED.items() if name not in left_out} | COMPRESSED
    ours = (*estimators.ALL, *estimators.REGRESSORS, *estimators.FAMILY, *estimators.COMPRESSED, *estimators.DETECTORS)
    estimator = NOTHING | of(*map(kind_of, MACHINES), *ours)
    needed = MODEL | {"_goal", "_cost", "compression_"}
    own: dict[type, tuple[dict[str, Check], Fits]] = {
        estimators.CompressedClassifier: (
            LAYER | {"classes_": LABELS, "_goal": of(Classification)},
            _compressed_classifier_complaint,
        ),
        estimators.CompressedRegressor: ({"_goal": of(Regression), "_single": FLAG}, _values_complaint),
        estimators.CompressedOutlierDetector: ({"_goal": of(OneClass), "offset_": FLOATS}, _one_output_complaint),
    }
    for kind, (more, complaint) in own.items():
        special = needed | {name for name in ("classes_", "offset_") if name in more}
        yield Form(
            f"slimsvm.{kind.__name__}",
            kind,
            parameters(kind, estimator=estimator, n_jobs=THREADS),
            common | more,
            fits=partial(_fitted_complaint, special, common | more, complaint),
            kept=_without_fitted_original,
            made=_with_full_table,
        )


def _detectors() -> Iterable[Form]:
    left_out = ("classes_", "_votes", "_factors", "support_")
    fitted = {name: check for name, check in FITTED.items() if name not in left_out}
    fitted |= {"offset_": FLOATS, "compression_": of(Compression)}
    for kind in estimators.DETECTORS:
        yield Form(
            f"slimsvm.{kind.__name__}",
            kind,
            parameters(kind, kernel=DATA | of(*KERNELS), n_jobs=THREADS),
            fitted,
            fits=partial(_fitted_complaint, MODEL | {"offset_", "compression_"}, fitted, _one_output_complaint),
        )


def _with_thin_table(state: dict[str, Any]) -> dict[str, Any]:
    """Coefficients that are mostly zero, as those of many pairs of classes are, take less room in sparse form."""
    coef = state.get("vector_coef_")
    if isinstance(coef, np.ndarray) and coef.size >= MANY:
        used = np.count_nonzero(coef)
        if coef.size / THINNEST <= used < coef.size / 3:
            return state | {"vector_coef_": sp.csr_array(coef)}
    return state


def _without_fitted_original(state: dict[str, Any]) -> dict[str, Any]:
    """What a fit would start from is kept by its parameters: that is all that a fit would use."""
    estimator = state.get("estimator")
    return _with_thin_table(state | {"estimator": None if estimator is None else clone(estimator)})


def _with_full_table(state: dict[str, Any]) -> dict[str, Any]:
    coef: Any = state.get("vector_coef_")
    return state | {"vector_coef_": coef.toarray()} if sp.issparse(coef) else state


# --- how attributes fit together -----------------------------------------------------------------------------------


def _fitted_complaint(needed: set[str], known: Iterable[str], more: Fits, state: dict[str, Any]) -> str:
    """All of a model, or nothing of it."""
    there = [name for name in known if name in state]
    if not there:
        return ""
    missing = sorted(needed - state.keys())
    if missing:
        return f"it is fitted, but has no {missing[0]}"
    return _expansion_complaint(state) or _layer_complaint(state) or more(state)


def _expansion_complaint(state: dict[str, Any]) -> str:
    inputs, kernel, vectors = state["n_features_in_"], state["kernel_"], state["vectors_"]
    coef, bias = state["vector_coef_"], state["intercept_"]
    names = state.get("feature_names_in_")
    if names is not None and len(names) != inputs:
        return f"it has {inputs} inputs, and {len(names)} names for them"
    count, outputs = vectors.shape[0], len(bias)
    return (
        kernel_complaint(kernel, inputs)
        or _vectors_complaint(vectors, kernel, inputs)
        or unless(count == state["n_vectors_"], f"it has {count} vectors, and says {state['n_vectors_']}")
        or shape_complaint("vector_coef_", coef, (outputs, count))
        or unless(outputs > 0, "it has no outputs")
        or _thin_complaint(coef)
        or _finite_complaint(coef, bias, vectors)
    )


def _vectors_complaint(vectors: Any, kernel: Any, inputs: int) -> str:
    """Row numbers for a precomputed kernel, rows for all others."""
    if not kernel.keeps_rows:
        same = vectors.ndim == 2 and vectors.shape[1] == inputs
        return "" if same else f"vectors_ are not rows of {inputs} inputs"
    within = vectors.ndim == 1 and (not len(vectors) or (vectors.min() >= 0 and vectors.max() < inputs))
    return "" if within else f"vectors_ are not numbers of {inputs} training rows"


def _thin_complaint(coef: Any) -> str:
    """A sparse table becomes a full one: it must not be a small file's large one."""
    if sp.issparse(coef) and coef.shape[0] * coef.shape[1] > THINNEST * coef.nnz:
        return "too many of the coefficients are zero for a sparse table"
    return ""


def _finite_complaint(*arrays: Any) -> str:
    return "" if all(map(finite, arrays)) else "vectors, coefficients or biases are not finite"


def _layer_complaint(state: dict[str, Any]) -> str:
    """Of probabilities: one output for two classes, else one for each class."""
    coef, bias = state.get("probability_coef_"), state.get("probability_intercept_")
    if coef is None and bias is None:
        return ""
    if coef is None or bias is None or "classes_" not in state:
        return "its probabilities lack coefficients, biases or classes"
    outputs = 1 if len(state["classes_"]) == 2 else len(state["classes_"])
    return (
        shape_complaint("probability_coef_", coef, (outputs, state["vectors_"].shape[0]))
        or shape_complaint("probability_intercept_", bias, (outputs,))
        or _finite_complaint(coef, bias)
    )


def _classifier_complaint(state: dict[str, Any]) -> str:
    return (
        _votes_complaint(len(state["classes_"]), state["_votes"], state["_factors"], len(state["intercept_"]))
        or _stream_complaint(state)
        or _layout_complaint(state, len(state["classes_"]))
    )


def _machine_complaint(state: dict[str, Any]) -> str:
    return _one_output_complaint(state) or _layout_complaint(state, 1)


def _layout_complaint(state: dict[str, Any], classes: int) -> str:
    """Vectors belong to classes, in order."""
    if "n_support_" not in state:
        return ""
    sizes, count = state["n_support_"], state["vectors_"].shape[0]
    sigmoids = state.get("_sigmoids")
    return (
        shape_complaint("support_", state["support_"], (count,))
        or shape_complaint("n_support_", sizes, (classes,))
        or unless(sum(map(int, sizes)) == count and sizes.min() >= 0, f"n_support_ does not sum to {count}")
        or ("" if sigmoids is None else shape_complaint("_sigmoids", sigmoids, (2, len(state["intercept_"]))))
    )


def _regressor_complaint(state: dict[str, Any]) -> str:
    outputs, residuals, weights = len(state["intercept_"]), state.get("residuals_"), state.get("residual_weights_")
    if state["_single"] and outputs != 1:
        return f"it has {outputs} outputs for one target"
    if "stream_" in state:
        targets = state["stream_"].memory.targets
        if targets is None or targets.shape[1] != outputs:
            return "its rows in memory have other targets than the model"
    if (residuals is None) != (weights is None):
        return "it has residuals without weights, or weights without residuals"
    if residuals is not None and weights is not None:
        wrong = shape_complaint("residuals_", residuals, (len(weights), outputs))
        if wrong or not finite(residuals) or not finite(weights):
            return wrong or "its residuals are not finite"
    return _stream_complaint(state)


def _stream_complaint(state: dict[str, Any]) -> str:
    """Rows in memory are like those that the model is for."""
    if "stream_" not in state:
        return ""
    memory, inputs = state["stream_"].memory, state["n_features_in_"]
    if memory.X.shape[1] != inputs:
        return f"its rows in memory have {memory.X.shape[1]} inputs, and the model {inputs}"
    classes = state["classes_"].shape if "classes_" in state else (1,)
    return shape_complaint("what is known of the classes of the stream", memory.totals, classes)


def _votes_complaint(classes: int, votes: Votes, factors: Array, outputs: int) -> str:
    if classes < 2:
        return "it has fewer than two classes"
    if votes.pairs and classes > MOST_PAIRED:
        return f"votes of the pairs of {classes} classes take too much memory; use multi_class='ovr'"
    wanted = 1 if classes == 2 else classes * (classes - 1) // 2 if votes.pairs else classes
    if outputs != wanted:
        return f"it has {outputs} outputs; {classes} classes need {wanted}"
    return shape_complaint("the weights of the classes", factors, (classes,))


def _compressed_classifier_complaint(state: dict[str, Any]) -> str:
    goal, classes, outputs = state["_goal"], len(state["classes_"]), len(state["intercept_"])
    return (
        _votes_complaint(classes, goal.votes, goal.factors, outputs)
        or unless(goal.shown is None or goal.shown.pairs == goal.votes.pairs, "its votes and its scores differ in kind")
        or unless(_are_problems(goal.problems, classes, goal.votes.pairs), "its binary problems are not those of votes")
    )


def _are_problems(problems: list[Output], classes: int, pairs: bool) -> bool:
    """Are these `slimsvm.data.outputs`? One by one: to make them all may take more memory than there is."""
    if classes == 2:
        return problems == [Output(1, (0,))]
    if pairs:
        wanted = combinations(range(classes), 2)
        same = ((p.positive, *p.negative) == pair for p, pair in zip(problems, wanted, strict=False))
        return len(problems) == classes * (classes - 1) // 2 and all(same)
    return len(problems) == classes and all(
        p.positive == c and len(p.negative) == classes - 1 and p.negative == tuple(k for k in range(classes) if k != c)
        for c, p in enumerate(problems)
    )


def _values_complaint(state: dict[str, Any]) -> str:
    outputs = len(state["intercept_"])
    return f"it has {outputs} outputs for one target" if state.get("_single", True) and outputs != 1 else ""


def _one_output_complaint(state: dict[str, Any]) -> str:
    offset = state.get("offset_")
    return unless(len(state["intercept_"]) == 1, "it must have one output") or (
        "" if offset is None else shape_complaint("offset_", offset, (1,))
    )
