"""Preprocessing of scikit-learn in a file: the classes, and what in them could do harm.

Their attributes are data and a few known objects. Which ones there are differs between versions of scikit-learn: names
are free where they do not hide a part of the class. What is looked at is what a small file could make large.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

import numpy as np

from ..linalg.arrays import Array
from ..utils.sklearn_private import svm_class
from .checks import COLUMNS, COUNT, DATA, FLAG, INTEGERS, LABELS, NAMES, NOTHING, TEXT, WORKERS, Check, listed, one_of
from .schema import Form, imported, is_estimator, parameters

MODULES = {
    "Pipeline": "sklearn.pipeline",
    "FeatureUnion": "sklearn.pipeline",
    "ColumnTransformer": "sklearn.compose",
    "make_column_selector": "sklearn.compose",
    "SimpleImputer": "sklearn.impute",
    "MissingIndicator": "sklearn.impute",
    "PCA": "sklearn.decomposition",
    "TruncatedSVD": "sklearn.decomposition",
    "VarianceThreshold": "sklearn.feature_selection",
} | dict.fromkeys(
    (
        *("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Normalizer", "Binarizer"),
        *("OneHotEncoder", "OrdinalEncoder", "LabelEncoder", "KBinsDiscretizer", "PolynomialFeatures"),
        *("PowerTransformer", "QuantileTransformer", "FunctionTransformer"),
    ),
    "sklearn.preprocessing",
)
# What a compressed model was made from: parameters only.
MACHINES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")

MOST_COLUMNS = 1_000_000  # that PolynomialFeatures makes
MOST_DEGREE = 1_000
MOST_BRANCHES = 10_000  # of transformers beside each other, one after the other


def kind_of(name: str) -> Any:
    """The class; None where this version of scikit-learn has none."""
    return svm_class(name) if name in MACHINES else imported(MODULES[name], name)


@cache
def _known(name: str) -> Form | None:
    kind = kind_of(name)
    if kind is None:
        return None
    special, fits = SPECIAL.get(name, {}), partial(_fitted_complaint, name)
    params = parameters(kind, **{"n_jobs": WORKERS} | special)
    if name in MACHINES:
        return Form(f"sklearn.{name}", kind, params, {name: DATA for name in vars(kind()) if name not in params})
    rest = {attribute: check for attribute, check in special.items() if attribute not in params}
    return Form(f"sklearn.{name}", kind, params, FITTED | rest, DATA, fits, renewed=partial(_renewed, name))


# Attributes that files of older versions of scikit-learn lack, and those that have the same value.
RENEWED = {"SimpleImputer": {"_fill_dtype": "_fit_dtype"}}


def _renewed(name: str, state: dict[str, Any]) -> dict[str, Any]:
    return {new: state[old] for new, old in RENEWED.get(name, {}).items() if old in state} | state


def sklearn_form(name: str) -> Form | None:
    """The form of a class of scikit-learn, by its name."""
    return _known(name) if name in MODULES or name in MACHINES else None


FITTED = {
    "n_features_in_": COLUMNS,
    "feature_names_in_": NAMES,
    "_sklearn_output_config": Check(
        "{'transform': 'default', 'pandas' or 'polars'}",
        lambda v: isinstance(v, dict) and v in ({"transform": how} for how in ("default", "pandas", "polars")),
    ),
}


# --- objects within objects ----------------------------------------------------------------------------------------


def _is_step(value: Any) -> bool:
    """An estimator of the list, or a word in the place of one."""
    if value is None or isinstance(value, str):
        return value in (None, "passthrough", "drop")
    return is_estimator(value)


def _is_columns(value: Any) -> bool:
    return DATA.holds(value) or type(value) is kind_of("make_column_selector")


def _is_named(value: Any, parts: int) -> bool:
    """(name, step) or (name, step, columns)."""
    if not isinstance(value, (tuple, list)) or len(value) != parts:
        return False
    return isinstance(value[0], str) and _is_step(value[1]) and all(map(_is_columns, value[2:]))


STEP = Check("an estimator of the list, 'drop' or 'passthrough'", _is_step)
STEPS = listed(Check("a name with an estimator of the list", lambda value: _is_named(value, 2)))
CHOICE = Check("a name with an estimator of the list and columns", lambda value: _is_named(value, 3))
CHOICES = listed(CHOICE)
IDENTITY = Check(
    "None: a function is code, and only a FunctionTransformer without one, which passes rows on, can be saved",
    lambda value: value is None,
)
NO_CACHE = Check(
    "None: a folder whose pickles a later fit would run is not saved (pipeline.set_params(memory=None))",
    lambda value: value is None,
)


def _a(name: str) -> Check:
    """An object of a class of the list."""
    return Check(f"a {name}", lambda value: type(value) is kind_of(name))


SPECIAL: dict[str, dict[str, Check]] = {
    "Pipeline": {"steps": STEPS, "memory": NO_CACHE},
    "FeatureUnion": {"transformer_list": STEPS},
    "ColumnTransformer": {
        "transformers": CHOICES,
        "transformers_": CHOICES,
        "remainder": STEP,
        "_remainder": CHOICE,
    },
    "FunctionTransformer": {
        "func": IDENTITY,
        "inverse_func": IDENTITY,
        "feature_names_out": NOTHING | one_of("one-to-one"),
    },
    "PowerTransformer": {"_scaler": _a("StandardScaler")},
    "QuantileTransformer": {"output_distribution": one_of("uniform", "normal")},
    "KBinsDiscretizer": {"_encoder": _a("OneHotEncoder")},
    "SimpleImputer": {"indicator_": NOTHING | _a("MissingIndicator")},
    "OneHotEncoder": {
        "feature_name_combiner": TEXT,
        "categories_": listed(LABELS),
        "_n_features_outs": listed(COUNT),
        "_infrequent_enabled": FLAG,
    },
    "OrdinalEncoder": {"categories_": listed(LABELS)},
    "PolynomialFeatures": {
        "n_output_features_": COUNT,
        "_n_out_full": COUNT,
        "_min_degree": COUNT,
        "_max_degree": COUNT,
        "interaction_only": FLAG,
        "include_bias": FLAG,
    },
}


# --- what was learned ----------------------------------------------------------------------------------------------

# Arrays of fitted objects and their axes: axes with the same letter have the same length; n = number of inputs. Scalers
# may have None instead, where they neither move nor scale.
AXES: dict[str, dict[str, str]] = {
    "StandardScaler": {"mean_": "n", "scale_": "n"},
    "MinMaxScaler": {"min_": "n", "scale_": "n"},
    "MaxAbsScaler": {"scale_": "n"},
    "RobustScaler": {"center_": "n", "scale_": "n"},
    "PCA": {"mean_": "n", "components_": "kn", "explained_variance_": "k"},
    "TruncatedSVD": {"components_": "kn"},
    "VarianceThreshold": {"variances_": "n"},
    "SimpleImputer": {"statistics_": "n"},
    "MissingIndicator": {"features_": "k"},
    "KBinsDiscretizer": {"n_bins_": "n", "bin_edges_": "n"},
    "QuantileTransformer": {"references_": "k", "quantiles_": "kn"},
    "PowerTransformer": {"lambdas_": "n"},
}
# What else transformers use.
NEEDED = {
    "OneHotEncoder": ("categories_", "_n_features_outs", "_infrequent_enabled", "_drop_idx_after_grouping"),
    "OrdinalEncoder": ("categories_", "_missing_indices"),
}
MAY_HOLD_OBJECTS = ("SimpleImputer", "KBinsDiscretizer")


def _fitted_complaint(name: str, state: dict[str, Any]) -> str:
    """Check that fitted attributes are all present, or all absent."""
    return _arrays_complaint(name, state) or FITS.get(name, lambda state: "")(state)


def _arrays_complaint(name: str, state: dict[str, Any]) -> str:
    axes = AXES.get(name, {})
    lengths = {"n": state.get("n_features_in_")}
    learned = (*axes, *NEEDED.get(name, ()))
    if lengths["n"] is None and not any(attribute in state for attribute in learned):
        return ""
    if lengths["n"] is None or not all(attribute in state for attribute in learned):
        return f"{name} is fitted in part"
    for attribute, letters in axes.items():
        value = state[attribute]
        if value is None and name.endswith("Scaler"):
            continue
        kinds = "biufO" if name in MAY_HOLD_OBJECTS else "biuf"
        if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
            return f"{name}.{attribute} must be an array of numbers"
        wanted = tuple(lengths.setdefault(letter, size) for letter, size in zip(letters, value.shape, strict=False))
        if value.ndim != len(letters) or value.shape != wanted:
            return f"{name}.{attribute} has the shape {value.shape}, which does not fit to {lengths['n']} inputs"
    return ""


def _bins_complaint(state: dict[str, Any]) -> str:
    for edges, count in zip(state.get("bin_edges_", ()), state.get("n_bins_", ()), strict=False):
        if not (isinstance(edges, np.ndarray) and edges.dtype.kind == "f" and edges.shape == (count + 1,)):
            return "KBinsDiscretizer has bins without their edges"
    encodes = "bin_edges_" in state and state["encode"] != "ordinal"
    return "KBinsDiscretizer is fitted in part" if encodes and "_encoder" not in state else ""


def _ordinal_complaint(state: dict[str, Any]) -> str:
    categories = state.get("categories_")
    if categories is not None and len(categories) != state.get("n_features_in_"):
        return "OrdinalEncoder is fitted in part"
    return "" if all(map(_is_in_order, categories or ())) else "OrdinalEncoder has categories that are not in order"


# --- what a small file could make large ----------------------------------------------------------------------------


def branches(value: Any) -> int:
    """How many times a column may come out of a step."""
    name = type(value).__name__
    if name == "Pipeline":
        return math.prod(branches(step) for _, step in value.steps)
    if name == "FeatureUnion":
        return sum(branches(step) for _, step in value.transformer_list)
    if name == "ColumnTransformer":
        choices = vars(value).get("transformers_", value.transformers)
        return sum(branches(step) for _, step, _ in choices) + branches(value.remainder)
    return 1


def _branches_complaint(steps: list[Any], many: Callable[[Any], int]) -> str:
    if many(branches(step) for step in steps) <= MOST_BRANCHES:
        return ""
    return f"it makes more than {MOST_BRANCHES} columns of one"


def _transform_complaint(steps: Iterable[Any]) -> str:
    """Steps before the last must be transformers, and so must all that stand side by side."""
    wrong = [type(step).__name__ for step in steps if is_estimator(step) and not hasattr(type(step), "transform")]
    return f"a {wrong[0]} is in the place of a transformer" if wrong else ""


def _pipeline_complaint(state: dict[str, Any]) -> str:
    if not state["steps"]:
        return "Pipeline.steps is empty"
    return _transform_complaint(step for _, step in state["steps"][:-1]) or _branches_complaint(
        [step for _, step in state["steps"]], math.prod
    )


def _union_complaint(state: dict[str, Any]) -> str:
    steps = [step for _, step in state["transformer_list"]]
    return _transform_complaint(steps) or _branches_complaint(steps, sum)


def _columns_complaint(state: dict[str, Any]) -> str:
    choices = state.get("transformers_", state["transformers"])
    steps = [*(step for _, step, _ in choices), state["remainder"]]
    if "transformers_" in state and "sparse_output_" not in state and any(step != "drop" for step in steps):
        return "ColumnTransformer is fitted in part"
    return _transform_complaint(steps) or _branches_complaint(steps, sum)


def _polynomial_complaint(state: dict[str, Any]) -> str:
    """Columns and degree are as many as they say, and not too many."""
    names = ("n_features_in_", "_min_degree", "_max_degree", "_n_out_full", "n_output_features_")
    if not any(name in state for name in names):
        return ""
    if not all(name in state for name in names):
        return "PolynomialFeatures is fitted in part"
    inputs, least, most, full, made = (int(state[name]) for name in names)
    if most > MOST_DEGREE or full > MOST_COLUMNS:
        return f"PolynomialFeatures of degree {most} makes {full} columns; at most {MOST_COLUMNS} are allowed"
    columns = 0
    for degree in range(most + 1):
        columns += math.comb(inputs if state["interaction_only"] else inputs + degree - 1, degree)
        if columns > MOST_COLUMNS + 1:
            return f"PolynomialFeatures makes more than {MOST_COLUMNS} columns"
    if least > most or made > full or abs(full - columns) > 1:
        return "PolynomialFeatures has other columns than its degree makes"
    return ""


def _one_hot_complaint(state: dict[str, Any]) -> str:
    """Every category has its column.

    The encoder writes into a sparse matrix at places that follow from these attributes, and scipy does not look whether
    they are within it.
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
    wanted = [_columns_of(*one) for one in zip(categories, groups, rare, dropped, strict=True)]
    if None in wanted or columns != wanted:
        return "OneHotEncoder has other columns than its categories make"
    return ""


def _is_in_order(categories: Array) -> bool:
    """Numbers that rise, NaN last; texts and objects are in any order."""
    if categories.dtype.kind in "OU":
        return len(categories) > 0
    known = categories[:-1] if len(categories) and categories[-1] != categories[-1] else categories
    return len(categories) > 0 and bool((known[:-1] < known[1:]).all()) and bool((known == known).all())


def _is_one_each(values: Any, count: int) -> bool:
    """One for each input?"""
    one_axis = isinstance(values, list) or (isinstance(values, np.ndarray) and values.ndim == 1)
    return one_axis and len(values) == count


def _columns_of(categories: Array, groups: Any, rare: Any, dropped: Any) -> int | None:
    """Columns that an input becomes; None if its groups, or the one that is left out, make no sense."""
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


FITS: dict[str, Callable[[dict[str, Any]], str]] = {
    "Pipeline": _pipeline_complaint,
    "FeatureUnion": _union_complaint,
    "ColumnTransformer": _columns_complaint,
    "PolynomialFeatures": _polynomial_complaint,
    "OneHotEncoder": _one_hot_complaint,
    "OrdinalEncoder": _ordinal_complaint,
    "KBinsDiscretizer": _bins_complaint,
}
