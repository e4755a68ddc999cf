"""Preprocessing of scikit-learn in a file: the classes, and what in them could do harm.

Their attributes are data and a few known objects. Which ones there are differs between versions of scikit-learn: names
are free where they do not hide a part of the class. What is looked at is what a small file could make large.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from .checks import COLUMNS, COUNT, DATA, FLAG, LABELS, NAMES, NOTHING, TEXT, WORKERS, Check, listed, one_of
from .forms import Form, imported, is_estimator, parameters

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
    return imported("sklearn.svm" if name in MACHINES else MODULES[name], name)


@cache
def _known(name: str) -> Form | None:
    kind = kind_of(name)
    if kind is None:
        return None
    special, fits = SPECIAL.get(name, {}), FITS.get(name, lambda state: "")
    params = parameters(kind, **{"n_jobs": WORKERS} | special)
    if name in MACHINES:
        return Form(f"sklearn.{name}", kind, params, {name: DATA for name in vars(kind()) if name not in params})
    rest = {attribute: check for attribute, check in special.items() if attribute not in params}
    return Form(f"sklearn.{name}", kind, params, FITTED | rest, DATA, fits)


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
    "KBinsDiscretizer": {"_encoder": _a("OneHotEncoder")},
    "SimpleImputer": {"indicator_": NOTHING | _a("MissingIndicator")},
    "OneHotEncoder": {"feature_name_combiner": TEXT, "categories_": listed(LABELS)},
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


def _pipeline_complaint(state: dict[str, Any]) -> str:
    if not state["steps"]:
        return "Pipeline.steps is empty"
    return _branches_complaint([step for _, step in state["steps"]], math.prod)


def _union_complaint(state: dict[str, Any]) -> str:
    return _branches_complaint([step for _, step in state["transformer_list"]], sum)


def _columns_complaint(state: dict[str, Any]) -> str:
    choices = state.get("transformers_", state["transformers"])
    return _branches_complaint([*(step for _, step, _ in choices), state["remainder"]], sum)


def _polynomial_complaint(state: dict[str, Any]) -> str:
    """Columns and degree are as many as they say, and not too many."""
    if "n_output_features_" not in state:
        return ""
    names = ("n_features_in_", "_min_degree", "_max_degree", "_n_out_full")
    if any(name not in state for name in names):
        return "PolynomialFeatures is fitted in part"
    inputs, least, most, full = (int(state[name]) for name in names)
    if most > MOST_DEGREE or full > MOST_COLUMNS:
        return f"PolynomialFeatures of degree {most} makes {full} columns; at most {MOST_COLUMNS} are allowed"
    columns = 0
    for degree in range(most + 1):
        columns += math.comb(inputs if state["interaction_only"] else inputs + degree - 1, degree)
        if columns > MOST_COLUMNS + 1:
            return f"PolynomialFeatures makes more than {MOST_COLUMNS} columns"
    made = int(state["n_output_features_"])
    if least > most or made > full or abs(full - columns) > 1:
        return "PolynomialFeatures has other columns than its degree makes"
    return ""


def _one_hot_complaint(state: dict[str, Any]) -> str:
    """No more columns than categories."""
    categories, columns = state.get("categories_"), state.get("_n_features_outs")
    if categories is None and columns is None:
        return ""
    if categories is None or not isinstance(columns, list):
        return "OneHotEncoder is fitted in part"
    same = len(columns) == len(categories) and all(map(COUNT.holds, columns))
    if not same or any(made > len(one) for made, one in zip(columns, categories, strict=True)):
        return "OneHotEncoder makes more columns than it has categories"
    return ""


FITS: dict[str, Callable[[dict[str, Any]], str]] = {
    "Pipeline": _pipeline_complaint,
    "FeatureUnion": _union_complaint,
    "ColumnTransformer": _columns_complaint,
    "PolynomialFeatures": _polynomial_complaint,
    "OneHotEncoder": _one_hot_complaint,
}
