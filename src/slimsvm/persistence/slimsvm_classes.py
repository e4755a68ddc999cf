"""Schemas of this library's classes: their attributes, and how these must fit together.

A file may be hostile: the checks cover all that prediction relies on, so that no array is read out of bounds and no
small file makes prediction allocate much memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
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
from ..estimators.base import MIN_SPARSE_COEFFICIENTS, KernelModel
from ..linalg.arrays import Array
from ..model.voting import Votes
from ..problem import bases, kernels, losses, regularizers, slacks
from ..problem.formulation import Part
from ..training.sizes import Curve
from ..training.spec import Hyperparameters
from ..training.streaming import Stream
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
    is_finite,
    list_of,
    of,
    shape_complaint,
    unless,
)
from .schema import ADVICE, ClassSchema, Complaint, State, no_complaint, parameters, record, register
from .sklearn_classes import ONLY_UNFITTED, kind_of

MAX_PAIRED_CLASSES = 512  # votes of all pairs take memory cubic in the number of classes
MAX_TABLE_RATIO = 64  # entries of a sparse matrix of coefficients per nonzero
KERNELS = tuple(kind for kind in kernels.ALL if kind is not kernels.Function)
SPARSE_TABLE = Check("a sparse table of floats", lambda value: sp.issparse(value) and value.dtype == np.float64)
COUNTS = Check("a tuple of integers", lambda v: isinstance(v, tuple) and all(map(COUNT.holds, v)))


# --- parts of a formulation ----------------------------------------------------------------------------------------

FAMILIES = {
    "kernels": KERNELS,
    "slacks": slacks.ALL,
    "losses": (*losses.ALL, *losses.FOR_TARGETS),
    "regularizers": regularizers.ALL,
    "bases": bases.ALL,
}
# Checks of fields that hold another part of a formulation.
INNER_PARTS: dict[type, dict[str, Check]] = {
    kernels.Scaled: {"kernel": of(*KERNELS)},
    bases.Learned: {"init": DATA | of(*bases.ALL)},
    regularizers.ReweightedNorm: {"base": of(*regularizers.ALL)},
}


def kernel_complaint(kernel: Any, inputs: int) -> str:
    """The error message for the kernel of a fitted model; empty if it is valid."""
    match kernel:
        case kernels.Precomputed():
            return unless(kernel.matrix is None, "the kernel of a fitted model has a matrix")
        case kernels.Scaled():
            return _scales_complaint(kernel.scales, inputs) or kernel_complaint(kernel.kernel, inputs)
    try:
        numbers = [np.isfinite(float(value)) for value in kernel.get_params().values()]
        kernel.core()
    except (TypeError, ValueError, OverflowError) as error:
        return f"its kernel makes no sense: {str(error)[:200]}"
    return unless(all(numbers), "a number of the kernel is not finite")


def _scales_complaint(scales: Any, inputs: int) -> str:
    try:
        scales = np.asarray(scales, dtype=np.float64)
    except (TypeError, ValueError):
        return "the scales of the inputs are no numbers"
    if scales.shape not in ((), (inputs,)) or not np.isfinite(scales).all():
        return f"there are not {inputs} finite scales, one for each input"
    return ""


# --- records -----------------------------------------------------------------------------------------------------


def _reservoir_complaint(state: State) -> str:
    X, codes, classes = state["X"], state["codes"], len(state["totals"])
    same = [len(state[name]) == len(codes) for name in ("weights", "numbers", "priorities")]
    if X.ndim != 2 or X.shape[0] != len(codes) or not all(same) or len(state["dropped"]) != classes:
        return "its arrays are not of the same length"
    targets = state["targets"]
    if targets is not None and (len(targets) != len(codes) or not is_finite(targets)):
        return "its targets are not those of its rows, or not finite"
    if state["seen"] < len(codes):
        return "it has more rows than came"
    if not len(codes) or codes.min() < 0 or codes.max() >= classes:
        return "it has no rows, or rows of classes that it has not"
    numbers = [state[name] for name in ("weights", "priorities", "totals", "dropped")]
    return "" if all(map(is_finite, [X, *numbers])) and state["weights"].min() > 0 else "its rows are not all finite"


RECORDS = [
    record("slimsvm.Votes", Votes, pairs=FLAG, by_value=FLAG, zero_is_positive=FLAG),
    record("slimsvm.Output", Output, positive=COUNT, negative=COUNTS),
    record(
        "slimsvm.Classes",
        Classification,
        factors=FLOATS,
        problems=list_of(of(Output)),
        votes=of(Votes),
        shown=NOTHING | of(Votes),
    ),
    record("slimsvm.Values", Regression, epsilon=NUMBER),
    record("slimsvm.Inside", OneClass, border=NUMBER),
    record("slimsvm.Setting", Hyperparameters, C=FINITE, gamma=FINITE, scaled=FLAG),
    replace(
        record(
            "slimsvm.Reservoir",
            Reservoir,
            X=ROWS,
            codes=INTEGERS,
            weights=FLOATS,
            numbers=INTEGERS,
            priorities=FLOATS,
            seed=COUNT,
            recent=FLAG,
            seen=WHOLE,
            totals=FLOATS,
            dropped=FLOATS,
            targets=TABLE | NOTHING,
        ),
        complain=_reservoir_complaint,
    ),
    record(
        "slimsvm.Stream",
        Stream,
        memory=of(Reservoir),
        **dict.fromkeys(("waits_for", "fitted", "known", "searched", "searched_rows"), WHOLE),
    ),
    record("slimsvm.Curve", Curve, sizes=COUNTS, scores=FLOATS, standard_errors=FLOATS, behind=FLOATS),
    record(
        "slimsvm.Compression",
        Compression,
        method=TEXT,
        agreement_on_X=NOTHING | NUMBER,
        distances=FLOATS,
        note=TEXT,
        **dict.fromkeys(("vectors_before", "vectors_after", "bytes_before", "bytes_after"), WHOLE),
        **dict.fromkeys(("agreement_on_vectors", "distance", "speedup"), NUMBER),
    ),
]


# --- what fitted estimators have -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attributes:
    """Fitted attributes that occur together: a check of each, and a check of how they fit each other and the vectors.

    ``needed``: a fitted estimator must have all of them.
    """

    checks: dict[str, Check]
    complaint: Complaint = no_complaint
    needed: bool = False


def _expansion_complaint(state: State) -> str:
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
        or _sparse_complaint(coef)
        or _finite_complaint(coef, bias, vectors)
    )


def _vectors_complaint(vectors: Any, kernel: Any, inputs: int) -> str:
    """``vectors_`` must be row numbers for a precomputed kernel, and rows of numbers for all others."""
    if not kernel.keeps_rows:
        is_table = vectors.ndim == 2 and vectors.shape[1] == inputs
        return unless(is_table, f"vectors_ are not rows of {inputs} inputs")
    within = vectors.ndim == 1 and (not len(vectors) or (vectors.min() >= 0 and vectors.max() < inputs))
    return unless(within, f"vectors_ are not numbers of {inputs} training rows")


def _sparse_complaint(coef: Any) -> str:
    """Coefficients become dense on loading: a small file must not make a large array."""
    if sp.issparse(coef) and coef.shape[0] * coef.shape[1] > MAX_TABLE_RATIO * coef.nnz:
        return "too many of the coefficients are zero for a sparse table"
    return ""


def _finite_complaint(*arrays: Any) -> str:
    return unless(all(map(is_finite, arrays)), "vectors, coefficients or biases are not finite")


def _layer_complaint(state: State) -> str:
    """The probability layer must have one output for two classes, otherwise one for each class."""
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


def _sigmoids_complaint(state: State) -> str:
    if "_sigmoids" not in state:
        return ""
    return shape_complaint("_sigmoids", state["_sigmoids"], (2, len(state["intercept_"])))


def _classes_complaint(state: State) -> str:
    return _votes_complaint(len(state["classes_"]), state["_votes"], state["_factors"], len(state["intercept_"]))


def _votes_complaint(classes: int, votes: Votes, factors: Array, outputs: int) -> str:
    if classes < 2:
        return "it has fewer than two classes"
    if votes.pairs and classes > MAX_PAIRED_CLASSES:
        return f"votes of the pairs of {classes} classes take too much memory; use multi_class='ovr'"
    needed = 1 if classes == 2 else classes * (classes - 1) // 2 if votes.pairs else classes
    if outputs != needed:
        return f"it has {outputs} outputs; {classes} classes need {needed}"
    return shape_complaint("the weights of the classes", factors, (classes,))


def _compressed_classes_complaint(state: State) -> str:
    task, classes, outputs = state["_goal"], len(state["classes_"]), len(state["intercept_"])
    return (
        _votes_complaint(classes, task.votes, task.factors, outputs)
        or unless(task.shown is None or task.shown.pairs == task.votes.pairs, "its votes and its scores differ in kind")
        or unless(_are_problems(task.problems, classes, task.votes.pairs), "its binary problems are not those of votes")
    )


def _are_problems(problems: list[Output], classes: int, pairs: bool) -> bool:
    """Are these the problems of `slimsvm.data.dataset.outputs`? Compared one by one, as all may not fit in memory."""
    if classes == 2:
        return problems == [Output(1, (0,))]
    if pairs:
        expected = combinations(range(classes), 2)
        same = ((p.positive, *p.negative) == pair for p, pair in zip(problems, expected, strict=False))
        return len(problems) == classes * (classes - 1) // 2 and all(same)
    return len(problems) == classes and all(
        p.positive == c and len(p.negative) == classes - 1 and p.negative == tuple(k for k in range(classes) if k != c)
        for c, p in enumerate(problems)
    )


def _targets_complaint(state: State) -> str:
    outputs = len(state["intercept_"])
    return unless(outputs == 1 or not state.get("_single", True), f"it has {outputs} outputs for one target")


def _one_output_complaint(state: State) -> str:
    offset = state.get("offset_")
    return unless(len(state["intercept_"]) == 1, "it must have one output") or (
        "" if offset is None else shape_complaint("offset_", offset, (1,))
    )


def _residuals_complaint(state: State) -> str:
    residuals, weights = state.get("residuals_"), state.get("residual_weights_")
    if residuals is None and weights is None:
        return ""
    if residuals is None or weights is None:
        return "it has residuals without weights, or weights without residuals"
    return shape_complaint("residuals_", residuals, (len(weights), len(state["intercept_"]))) or unless(
        is_finite(residuals) and is_finite(weights), "its residuals are not finite"
    )


def _stream_complaint(state: State) -> str:
    """Rows in the memory of a stream must have the inputs and labels of the model."""
    if "stream_" not in state:
        return ""
    memory, inputs = state["stream_"].memory, state["n_features_in_"]
    if "classes_" not in state and (memory.targets is None or memory.targets.shape[1] != len(state["intercept_"])):
        return "its rows in memory have other targets than the model"
    if memory.X.shape[1] != inputs:
        return f"its rows in memory have {memory.X.shape[1]} inputs, and the model {inputs}"
    classes = state["classes_"].shape if "classes_" in state else (1,)
    return shape_complaint("what is known of the classes of the stream", memory.totals, classes)


def _layout_complaint(state: State) -> str:
    """In scikit-learn's layout, vectors are sorted by class."""
    sizes, count = state["n_support_"], state["vectors_"].shape[0]
    classes = len(state["classes_"]) if "classes_" in state else 1
    return (
        shape_complaint("support_", state["support_"], (count,))
        or shape_complaint("n_support_", sizes, (classes,))
        or unless(sum(map(int, sizes)) == count and sizes.min() >= 0, f"n_support_ does not sum to {count}")
    )


EXPANSION = Attributes(
    {
        "n_features_in_": COLUMNS,
        "kernel_": of(*KERNELS),
        "vectors_": ROWS,
        "n_vectors_": COUNT,
        "vector_coef_": TABLE | SPARSE_TABLE,
        "intercept_": FLOATS,
    },
    _expansion_complaint,
    needed=True,
)
COLUMN_NAMES = Attributes({"feature_names_in_": NAMES})
SOLUTION = Attributes({"objective_": FLOATS, "duality_gap_": FLOATS, "n_iter_": INTEGERS})
ITERATIONS = Attributes({"n_iter_": WHOLE})
SUPPORT = Attributes({"support_": INTEGERS})
LAYOUT = Attributes(
    {"support_": INTEGERS, "n_support_": INTEGERS, "shape_fit_": COUNTS, "fit_status_": COUNT},
    _layout_complaint,
    needed=True,
)
CLASSES = Attributes({"classes_": LABELS, "_votes": of(Votes), "_factors": FLOATS}, _classes_complaint, needed=True)
CLASS_WEIGHTS = Attributes({"class_weight_": FLOATS})
LAYER = Attributes({"probability_coef_": TABLE, "probability_intercept_": FLOATS}, _layer_complaint)
LAYER_FIT = Attributes({"probability_C_": NUMBER, "probability_gap_": NUMBER})
SIGMOIDS = Attributes({"_sigmoids": TABLE}, _sigmoids_complaint)
LEARNING = Attributes({"learning_iter_": COUNT, "learning_gain_left_": NUMBER, "regularizer_": of(*regularizers.ALL)})
SEARCH = Attributes({"C_": NUMBER, "search_results_": DATA, "frontier_": of(Curve)})
STREAM = Attributes(
    {"n_samples_seen_": WHOLE, "_setting": of(Hyperparameters), "stream_": of(Stream)}, _stream_complaint
)
TARGETS = Attributes({"_single": FLAG}, _targets_complaint, needed=True)
RESIDUALS = Attributes({"residuals_": TABLE, "residual_weights_": FLOATS}, _residuals_complaint)
ONE_OUTPUT = Attributes({}, _one_output_complaint)
OFFSET = Attributes({"offset_": FLOATS}, _one_output_complaint, needed=True)
COMPRESSION = Attributes({"compression_": of(Compression)}, needed=True)
COST = Attributes({"_cost": FINITE}, needed=True)


def _task(kind: type) -> Attributes:
    """The prediction task of a compressed model."""
    return Attributes({"_goal": of(kind)}, needed=True)


TRAINED = (SOLUTION, SUPPORT, CLASSES)
FITTED_ATTRIBUTES: dict[type, tuple[Attributes, ...]] = {
    estimators.SlimSVC: (LAYER, LAYER_FIT, *TRAINED, LEARNING, SEARCH, STREAM, Attributes({"multi_class_": TEXT})),
    estimators.AnyNormSVC: TRAINED,
    estimators.BudgetSVC: (*TRAINED, LEARNING, Attributes({"C_": FLOATS})),
    estimators.LeastSquaresSVC: (*TRAINED, Attributes({"loo_residuals_": TABLE})),
    estimators.LeastOneNormSVC: TRAINED,
    estimators.EmpiricalSVC: (LAYER, LAYER_FIT, *TRAINED, LEARNING),
    estimators.ReducedSVC: (LAYER, LAYER_FIT, *TRAINED, LEARNING),
    estimators.LpSVC: (LAYER, LAYER_FIT, *TRAINED, Attributes({"C_alpha_": NUMBER | FLOATS, "history_": DATA})),
    estimators.RelevanceVectorClassifier: (
        *TRAINED,
        Attributes({"precision_": TABLE, "intercept_precision_": FLOATS, "history_": DATA}),
    ),
    estimators.SlimSVR: (SOLUTION, SUPPORT, TARGETS, RESIDUALS, LEARNING, SEARCH, STREAM),
    estimators.SVC: (LAYER, SIGMOIDS, SOLUTION, CLASSES, CLASS_WEIGHTS, LAYOUT),
    estimators.NuSVC: (LAYER, SIGMOIDS, SOLUTION, CLASSES, CLASS_WEIGHTS, LAYOUT),
    estimators.SVR: (SOLUTION, ITERATIONS, ONE_OUTPUT, LAYOUT),
    estimators.NuSVR: (SOLUTION, ITERATIONS, ONE_OUTPUT, LAYOUT),
    estimators.OneClassSVM: (SOLUTION, ITERATIONS, OFFSET, LAYOUT),
    estimators.CompressedClassifier: (
        *(LAYER, LAYER_FIT, COMPRESSION, COST, _task(Classification)),
        Attributes({"classes_": LABELS}, _compressed_classes_complaint, needed=True),
    ),
    estimators.CompressedRegressor: (COMPRESSION, COST, _task(Regression), replace(TARGETS, needed=False)),
    estimators.CompressedOutlierDetector: (COMPRESSION, COST, _task(OneClass), OFFSET),
    estimators.SlimOneClass: (SOLUTION, OFFSET, COMPRESSION),
}
PARAMETERS = {
    "kernel": DATA | of(*KERNELS),
    "slack": DATA | of(*slacks.ALL, *losses.ALL),
    "loss": DATA | of(*losses.FOR_TARGETS),
    "regularizer": DATA | of(*regularizers.ALL),
    "basis": DATA | of(*bases.ALL),
    "estimator": NOTHING | of(*map(kind_of, ONLY_UNFITTED), *FITTED_ATTRIBUTES),
    "n_jobs": THREADS,
}


def _estimator(kind: type, *groups: Attributes) -> ClassSchema:
    groups = (EXPANSION, COLUMN_NAMES, *groups)
    fitted = {name: check for group in groups for name, check in group.checks.items()}
    needed = {name for group in groups if group.needed for name in group.checks}

    def complain(state: State) -> str:
        """An estimator must have all needed fitted attributes or none."""
        if not fitted.keys() & state.keys():
            return ""
        missing = sorted(needed - state.keys())
        if missing:
            return f"it is fitted, but has no {missing[0]}"
        return next(filter(None, (group.complaint(state) for group in groups)), "")

    return ClassSchema(
        f"slimsvm.{kind.__name__}",
        kind,
        parameters(kind, PARAMETERS),
        fitted,
        complain=complain,
        before_writing=_shortened,
        after_reading=_with_dense_coefficients,
    )


def _shortened(state: State) -> State:
    """The attributes to write: coefficients that are mostly zero (as for many pairs of classes) as a sparse matrix, and
    the estimator of a compressed model unfitted, as a fit uses only its parameters.
    """
    coef: Any = state.get("vector_coef_")
    estimator = state.get("estimator")
    used = np.count_nonzero(coef) if isinstance(coef, np.ndarray) and coef.size >= MIN_SPARSE_COEFFICIENTS else 0
    if used and coef.size / MAX_TABLE_RATIO <= used < coef.size / 3:
        state = state | {"vector_coef_": sp.csr_array(coef)}
    return state if estimator is None else state | {"estimator": clone(estimator)}


def _with_dense_coefficients(state: State) -> State:
    coef: Any = state.get("vector_coef_")
    return state | {"vector_coef_": coef.toarray()} if sp.issparse(coef) else state


def _schemas() -> Iterable[ClassSchema]:
    for family, kinds in FAMILIES.items():
        for kind in kinds:
            yield record(f"slimsvm.{family}.{kind.__name__}", kind, **INNER_PARTS.get(kind, {}))
    yield from RECORDS
    for kind, groups in FITTED_ATTRIBUTES.items():
        yield _estimator(kind, *groups)


for _schema in _schemas():
    register(_schema)
ADVICE.update(dict.fromkeys((Part.__name__, KernelModel.__name__), "A class of your own is code. "))
