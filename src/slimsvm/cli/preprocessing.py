"""The pipeline of the command: imputation, one-hot encoding and scaling as the inputs need them, then the estimator.

For numbers without missing values the steps are ``scale`` and ``classifier`` (or ``regressor``, ``detector``); a C
export then folds the scaler into the model. Otherwise a step ``encode`` comes first, and ``pipeline[1:]`` is a scaler
and an estimator over the encoded inputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .inputs import CATEGORY, NUMBER, ModelInputs

FILLED = "filled"  # numeric columns with missing values


def pipeline(inputs: ModelInputs, step: str, estimator: Any) -> Any:
    """An unfitted pipeline for these inputs."""
    steps = [("scale", StandardScaler()), (step, estimator)]
    return Pipeline(steps if inputs.plain else [("encode", _encoder(inputs)), *steps])


def _encoder(inputs: ModelInputs) -> Any:
    """Median imputation for numbers, one-hot encoding for categories (one 0/1 input for two categories).

    A missing category is the empty text, a category of its own. Unknown categories are encoded as zeros.
    """
    numbers, categories = inputs.of_kind(NUMBER), inputs.of_kind(CATEGORY)
    one_hot = OneHotEncoder(drop="if_binary", handle_unknown="ignore", sparse_output=False)
    steps = [
        (NUMBER, "passthrough", [column.name for column in numbers if not column.missing]),
        (FILLED, SimpleImputer(strategy="median"), [column.name for column in numbers if column.missing]),
        (CATEGORY, one_hot, [column.name for column in categories]),
    ]
    return ColumnTransformer([step for step in steps if step[2]], verbose_feature_names_out=False)


def steps_of(model: Any) -> list[tuple[str, Any]]:
    """Names and steps of a pipeline; any other model is one step with an empty name."""
    return model.steps if isinstance(model, Pipeline) else [("", model)]


def encoder_of(model: Any) -> Any:
    """The fitted step ``encode`` of a pipeline; None if it has none."""
    return dict(steps_of(model)).get("encode")


def words(inputs: ModelInputs, model: Any = None) -> list[str]:
    """Describe the preprocessing of the columns."""
    numbers, categories = inputs.of_kind(NUMBER), inputs.of_kind(CATEGORY)
    gaps = [column.name for column in numbers if column.missing]
    lines = []
    if gaps:
        lines.append(f"median for missing numbers: {', '.join(gaps)}")
    if categories:
        made = "" if model is None else f" ({_counted(_encoded(model))})"
        lines.append(f"an input for each category{made}: {', '.join(column.name for column in categories)}")
    return [*lines, "each input scaled to mean 0, deviation 1"]


def _counted(inputs: int) -> str:
    return f"{inputs} input{'s' if inputs != 1 else ''}"


def _encoded(model: Any) -> int:
    return sum(len(one) - (len(one) == 2) for one in model["encode"].named_transformers_[CATEGORY].categories_)


def recipes(model: Any) -> list[str]:
    """For each input after ``encode``, in order, how it is computed from the columns."""
    encode = encoder_of(model)
    made: list[str] = []
    for kind, step, names in encode.transformers_:
        if kind == NUMBER:
            made += names
        elif kind == FILLED:
            made += [f"{name}, or {step.statistics_[k]:.9g} where missing" for k, name in enumerate(names)]
        elif kind == CATEGORY:
            for name, categories, dropped in zip(names, step.categories_, step.drop_idx_, strict=True):
                kept = [value for k, value in enumerate(categories) if k != dropped]
                made += [f"1 where {name} is {_shown(value)}, else 0" for value in kept]
    return made


def _shown(category: str) -> str:
    return repr(str(category)) if category != "" else "missing"


def unknown(model: Any, rows: Any) -> list[str]:
    """Notes on categories of the rows that training did not have."""
    transformers = getattr(encoder_of(model), "transformers_", [])
    names: Any = next((names for kind, _, names in transformers if kind == CATEGORY), None)
    if names is None:
        return []
    encode = encoder_of(model)
    notes = []
    for name, categories in zip(names, encode.named_transformers_[CATEGORY].categories_, strict=True):
        new = ~np.isin(rows[name].to_numpy(dtype=str), np.asarray(categories, dtype=str))
        if new.any():
            first = ", ".join(_shown(value) for value in sorted(set(rows[name][new]))[:3])
            notes.append(
                f"column {name!r} has categories that the model does not know ({first}) in {int(new.sum())} rows"
            )
    return notes
