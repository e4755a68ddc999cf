"""Schemas of the preprocessing classes of scikit-learn, with checks of attributes that could do harm.

Attributes are plain data and a few known objects. Their names differ between versions of scikit-learn, so any name is
allowed that does not shadow one of the class. The checks reject inconsistent arrays, and small files that would make
large outputs.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from ..linalg.arrays import Array
from ..utils.sklearn_private import svm_class
from .checks import (
    ANY_KIND,
    COLUMNS,
    COUNT,
    DATA,
    FLAG,
    INTEGERS,
    LABELS,
    NAMES,
    NOTHING,
    TEXT,
    WORKERS,
    Check,
    is_array,
    list_of,
    one_of,
    unless,
)
from .schema import ClassSchema, Complaint, State, is_estimator, no_complaint, parameters, register_sklearn

# Originals of compressed models: only their parameters are saved.
ONLY_UNFITTED = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")

MAX_COLUMNS = 1_000_000  # output columns of PolynomialFeatures
MAX_DEGREE = 1_000
MAX_BRANCHES = 10_000  # copies of a column that nested and parallel transformers make


# --- objects within objects ----------------------------------------------------------------------------------------


def _is_step(value: Any) -> bool:
    """Is it an estimator of the list, or a word in its place, such as "passthrough"?"""
    return value in (None, "passthrough", "drop") if value is None or TEXT.holds(value) else is_estimator(value)


def _is_columns(value: Any) -> bool:
    return DATA.holds(value) or type(value) is kind_of("make_column_selector")


def _is_named(value: Any, parts: int) -> bool:
    """Is it (name, step) or, with ``parts=3``, (name, step, columns)?"""
    if not isinstance(value, (tuple, list)) or len(value) != parts:
        return False
    return TEXT.holds(value[0]) and _is_step(value[1]) and all(map(_is_columns, value[2:]))


STEP = Check("an estimator of the list, 'drop' or 'passthrough'", _is_step)
STEPS = list_of(Check("a name with an estimator of the list", lambda value: _is_named(value, 2)))
CHOICE = Check("a name with an estimator of the list and columns", lambda value: _is_named(value, 3))
CHOICES = list_of(CHOICE)
IDENTITY = Check(
    "None: a function is code, and only a FunctionTransformer without one, which passes rows on, can be saved",
    NOTHING.holds,
)
NO_CACHE = Check(
    "None: a folder whose pickles a later fit would run is not saved (pipeline.set_params(memory=None))", NOTHING.holds
)


def _a(name: str) -> Check:
    """The check for an object of this class of the list."""
    return Check(f"a {name}", lambda value: type(value) is kind_of(name))


# --- fitted attributes ---------------------------------------------------------------------------------------------


def _arrays_complaint(name: str, state: State) -> str:
    """Fitted arrays must be all present or all absent, and have consistent lengths."""
    about = PREPROCESSING[name]
    inputs = state.get("n_features_in_")
    learned = (*about.axes, *about.needed)
    if inputs is None and not any(attribute in state for attribute in learned):
        return ""
    if inputs is None or not all(attribute in state for attribute in learned):
        return f"{name} is fitted in part"
    lengths = {"n": inputs}
    for attribute, letters in about.axes.items():
        value = state[attribute]
        if value is None and name.endswith("Scaler"):
            continue
        if not is_array(value, "biufO" if about.holds_objects else "biuf"):
            return f"{name}.{attribute} must be an array of numbers"
        shape = tuple(lengths.setdefault(letter, size) for letter, size in zip(letters, value.shape, strict=False))
        if value.ndim != len(letters) or value.shape != shape:
            return f"{name}.{attribute} has the shape {value.shape}, which does not fit to {inputs} inputs"
    return ""


def _bins_complaint(state: State) -> str:
    for edges, count in zip(state.get("bin_edges_", ()), state.get("n_bins_", ()), strict=False):
        if not is_array(edges, "f") or edges.shape != (count + 1,):
            return "KBinsDiscretizer has bins without their edges"
    encodes = "bin_edges_" in state and state["encode"] != "ordinal"
    return "KBinsDiscretizer is fitted in part" if encodes and "_encoder" not in state else ""


def _ordinal_complaint(state: State) -> str:
    categories = state.get("categories_")
    if categories is not None and len(categories) != state.get("n_features_in_"):
        return "OrdinalEncoder is fitted in part"
    in_order = all(map(_is_in_order, categories or ()))
    return unless(in_order, "OrdinalEncoder has categories that are not in order")


# --- what a small file could make large ----------------------------------------------------------------------------


def branches(value: Any) -> int:
    """The largest number of copies of a column that a step can output."""
    match type(value).__name__:
        case "Pipeline":
            return math.prod(branches(step) for _, step in value.steps)
        case "FeatureUnion":
            return sum(branches(step) for _, step in value.transformer_list)
        case "ColumnTransformer":
            choices = vars(value).get("transformers_", value.transformers)
            return sum(branches(step) for _, step, _ in choices) + branches(value.remainder)
    return 1


def _branches_complaint(steps: list[Any], many: Callable[[Any], int]) -> str:
    few = many(branches(step) for step in steps) <= MAX_BRANCHES
    return unless(few, f"it makes more than {MAX_BRANCHES} columns of one")


def _transform_complaint(steps: Iterable[Any]) -> str:
    """Steps before the last of a pipeline, and all parallel steps, must be transformers."""
    wrong = [type(step).__name__ for step in steps if is_estimator(step) and not hasattr(type(step), "transform")]
    return f"a {wrong[0]} is in the place of a transformer" if wrong else ""


def _pipeline_complaint(state: State) -> str:
    if not state["steps"]:
        return "Pipeline.steps is empty"
    return _transform_complaint(step for _, step in state["steps"][:-1]) or _branches_complaint(
        [step for _, step in state["steps"]], math.prod
    )


def _union_complaint(state: State) -> str:
    steps = [step for _, step in state["transformer_list"]]
    return _transform_complaint(steps) or _branches_complaint(steps, sum)


def _columns_complaint(state: State) -> str:
    choices: Any = state.get("transformers_", state["transformers"])
    steps = [*(step for _, step, _ in choices), state["remainder"]]
    if "transformers_" in state and "sparse_output_" not in state and any(step != "drop" for step in steps):
        return "ColumnTransformer is fitted in part"
    return _transform_complaint(steps) or _branches_complaint(steps, sum)


def _polynomial_complaint(state: State) -> str:
    """The number of columns must be the one that follows from the degree, and at most MAX_COLUMNS."""
    names = ("n_features_in_", "_min_degree", "_max_degree", "_n_out_full", "n_output_features_")
    if not any(name in state for name in names):
        return ""
    if not all(name in state for name in names):
        return "PolynomialFeatures is fitted in part"
    inputs, low, high, full, made = (int(state[name]) for name in names)
    if high > MAX_DEGREE or full > MAX_COLUMNS:
        return f"PolynomialFeatures of degree {high} makes {full} columns; at most {MAX_COLUMNS} are allowed"
    columns = 0
    for degree in range(high + 1):
        columns += math.comb(inputs if state["interaction_only"] else inputs + degree - 1, degree)
        if columns > MAX_COLUMNS + 1:
            return f"PolynomialFeatures makes more than {MAX_COLUMNS} columns"
    if low > high or made > full or abs(full - columns) > 1:
        return "PolynomialFeatures has other columns than its degree makes"
    return ""


def _one_hot_complaint(state: State) -> str:
    """Every category must have its column.

    The encoder writes into a sparse matrix at positions computed from these attributes, and scipy does not check that
    they are within the matrix.
    """
    categories, columns = state.get("categories_"), state.get("_n_features_outs")
    if categories is None and columns is None:
        return ""
    if categories is None or columns is None or len(categories) != state.get("n_features_in_"):
        return "OneHotEncoder is fitted in part"
    if not all(map(_is_in_order, categories)):
        return "OneHotEncoder has categories that are numbers, but not in order"
    count = len(categories)
    grouped = state.get("_infrequent_enabled", False)
    none = [None] * count
    groups: Any = state.get("_default_to_infrequent_mappings") if grouped else none
    rare: Any = state.get("_infrequent_indices") if grouped else none
    dropped = none if state.get("_drop_idx_after_grouping") is None else state["_drop_idx_after_grouping"]
    if not all(_is_one_each(values, count) for values in (groups, rare, dropped)):
        return "OneHotEncoder has not one list of groups for each input"
    expected = [_columns_of(*one) for one in zip(categories, groups, rare, dropped, strict=True)]
    if None in expected or columns != expected:
        return "OneHotEncoder has other columns than its categories make"
    return ""


def _is_in_order(categories: Array) -> bool:
    """Are numeric categories strictly increasing, NaN last? Texts and objects may be in any order."""
    if categories.dtype.kind in "OU":
        return len(categories) > 0
    numbers = categories[:-1] if len(categories) and categories[-1] != categories[-1] else categories
    return len(categories) > 0 and bool((numbers[:-1] < numbers[1:]).all()) and bool((numbers == numbers).all())


def _is_one_each(values: Any, count: int) -> bool:
    """Is it a list or vector with one value per input?"""
    return (isinstance(values, list) or is_array(values, ANY_KIND, 1)) and len(values) == count


def _columns_of(categories: Array, groups: Any, rare: Any, dropped: Any) -> int | None:
    """The number of columns of an encoded input; None if its groups or its dropped category are inconsistent."""
    size = len(categories)
    if (groups is None) != (rare is None):
        return None
    if groups is not None:
        if not all(INTEGERS.holds(one) and len(one) and one.min() >= 0 for one in (groups, rare)):
            return None
        if len(groups) != size or rare.max() >= size:
            return None
        size = int(groups.max()) + 1
    if size > len(categories) or (dropped is not None and not (COUNT.holds(dropped) and dropped < size)):
        return None
    return size if dropped is None else size - 1


# --- the list ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SklearnClass:
    """A class of scikit-learn: its module, special attributes, and the attributes of a fitted object.

    ``axes`` maps fitted arrays to letters of their axes: axes of the same letter have equal lengths; n is the number of
    inputs. Scalers have None for arrays that they do not use. ``needed`` are other attributes that ``transform`` uses.
    ``renamed`` maps attributes that files of older versions lack to attributes of the same value.
    """

    module: str
    special: dict[str, Check] = field(default_factory=dict)
    axes: dict[str, str] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    complaint: Complaint = no_complaint
    holds_objects: bool = False
    renamed: dict[str, str] = field(default_factory=dict)


PREPROCESSING = {
    "Pipeline": SklearnClass("pipeline", {"steps": STEPS, "memory": NO_CACHE}, complaint=_pipeline_complaint),
    "FeatureUnion": SklearnClass("pipeline", {"transformer_list": STEPS}, complaint=_union_complaint),
    "ColumnTransformer": SklearnClass(
        "compose",
        {"transformers": CHOICES, "transformers_": CHOICES, "remainder": STEP, "_remainder": CHOICE},
        complaint=_columns_complaint,
    ),
    "make_column_selector": SklearnClass("compose"),
    "SimpleImputer": SklearnClass(
        "impute",
        {"indicator_": NOTHING | _a("MissingIndicator")},
        {"statistics_": "n"},
        holds_objects=True,
        renamed={"_fill_dtype": "_fit_dtype"},
    ),
    "MissingIndicator": SklearnClass("impute", axes={"features_": "k"}),
    "PCA": SklearnClass("decomposition", axes={"mean_": "n", "components_": "kn", "explained_variance_": "k"}),
    "TruncatedSVD": SklearnClass("decomposition", axes={"components_": "kn"}),
    "VarianceThreshold": SklearnClass("feature_selection", axes={"variances_": "n"}),
    "StandardScaler": SklearnClass("preprocessing", axes={"mean_": "n", "scale_": "n"}),
    "MinMaxScaler": SklearnClass("preprocessing", axes={"min_": "n", "scale_": "n"}),
    "MaxAbsScaler": SklearnClass("preprocessing", axes={"scale_": "n"}),
    "RobustScaler": SklearnClass("preprocessing", axes={"center_": "n", "scale_": "n"}),
    "Normalizer": SklearnClass("preprocessing"),
    "Binarizer": SklearnClass("preprocessing"),
    "LabelEncoder": SklearnClass("preprocessing"),
    "OneHotEncoder": SklearnClass(
        "preprocessing",
        {
            "feature_name_combiner": TEXT,
            "categories_": list_of(LABELS),
            "_n_features_outs": list_of(COUNT),
            "_infrequent_enabled": FLAG,
        },
        needed=("categories_", "_n_features_outs", "_infrequent_enabled", "_drop_idx_after_grouping"),
        complaint=_one_hot_complaint,
    ),
    "OrdinalEncoder": SklearnClass(
        "preprocessing",
        {"categories_": list_of(LABELS)},
        needed=("categories_", "_missing_indices"),
        complaint=_ordinal_complaint,
    ),
    "KBinsDiscretizer": SklearnClass(
        "preprocessing",
        {"_encoder": _a("OneHotEncoder")},
        {"n_bins_": "n", "bin_edges_": "n"},
        complaint=_bins_complaint,
        holds_objects=True,
    ),
    "PolynomialFeatures": SklearnClass(
        "preprocessing",
        dict.fromkeys(("n_output_features_", "_n_out_full", "_min_degree", "_max_degree"), COUNT)
        | {"interaction_only": FLAG, "include_bias": FLAG},
        complaint=_polynomial_complaint,
    ),
    "PowerTransformer": SklearnClass("preprocessing", {"_scaler": _a("StandardScaler")}, {"lambdas_": "n"}),
    "QuantileTransformer": SklearnClass(
        "preprocessing",
        {"output_distribution": one_of("uniform", "normal")},
        {"references_": "k", "quantiles_": "kn"},
    ),
    "FunctionTransformer": SklearnClass(
        "preprocessing",
        {"func": IDENTITY, "inverse_func": IDENTITY, "feature_names_out": NOTHING | one_of("one-to-one")},
    ),
}
COMMON_FITTED = {
    "n_features_in_": COLUMNS,
    "feature_names_in_": NAMES,
    "_sklearn_output_config": Check(
        "{'transform': 'default', 'pandas' or 'polars'}",
        lambda v: isinstance(v, dict) and v in ({"transform": how} for how in ("default", "pandas", "polars")),
    ),
}


def kind_of(name: str) -> Any:
    """The class of this name; None if this version of scikit-learn does not have it."""
    if name in ONLY_UNFITTED:
        return svm_class(name)
    return getattr(importlib.import_module(f"sklearn.{PREPROCESSING[name].module}"), name, None)


@cache
def _schema(name: str) -> ClassSchema | None:
    kind, about = kind_of(name), PREPROCESSING[name]
    if kind is None:
        return None
    params = parameters(kind, {"n_jobs": WORKERS} | about.special)
    return ClassSchema(
        f"sklearn.{name}",
        kind,
        params,
        COMMON_FITTED | {attribute: check for attribute, check in about.special.items() if attribute not in params},
        DATA,
        lambda state: _arrays_complaint(name, state) or about.complaint(state),
        upgrade=lambda state: {new: state[old] for new, old in about.renamed.items() if old in state} | state,
    )


@cache
def _unfitted_schema(name: str) -> ClassSchema:
    kind = kind_of(name)
    params = parameters(kind, {"n_jobs": WORKERS})
    internal = {attribute: DATA for attribute in vars(kind()) if attribute not in params}
    return ClassSchema(f"sklearn.{name}", kind, params, internal, only_unfitted=True)


for _name in PREPROCESSING:
    register_sklearn(_name, partial(_schema, _name))
for _name in ONLY_UNFITTED:
    register_sklearn(_name, partial(_unfitted_schema, _name))
