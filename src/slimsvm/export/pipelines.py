"""Converts pipelines by skl2onnx: types of their inputs, and errors that name the step that failed."""

from __future__ import annotations

from typing import Any

import numpy as np

UNKNOWN_COLUMN = "column name"  # in errors of skl2onnx about an unknown column


def check_columns(model: Any, X: Any) -> None:
    """Raise ValueError unless X is a table with the columns that the model takes."""
    if X is None:
        return
    shape, n_features = np.shape(X), getattr(model, "n_features_in_", None)
    if len(shape) != 2:
        raise ValueError(f"X has the shape {shape}; give a table with a line for each row")
    if n_features is not None and shape[1] != n_features:
        raise ValueError(f"X has {shape[1]} columns, the model takes {n_features}; give rows as the model takes them")
    names = column_names(X)
    missing = [name for name in getattr(model, "feature_names_in_", ()) if name not in names] if names else []
    if missing:
        raise ValueError(
            f"X has no columns {missing[:5]}, which the model was fitted with; its columns are {names[:20]}"
        )


def column_names(X: Any) -> list[Any]:
    """Names of the columns of a table; none for arrays."""
    return list(getattr(X, "columns", ()))


def convert(model: Any, X: Any, dtype: str, name: str, target_opset: int, options: dict[Any, Any]) -> Any:
    """Convert a pipeline to ONNX; ValueError says which step skl2onnx cannot convert, and what to try."""
    from skl2onnx import convert_sklearn

    inputs = initial_types(model, X, dtype)
    try:
        return convert_sklearn(model, name, inputs, target_opset=target_opset, options=options)
    except Exception as error:  # converters can raise anything
        if UNKNOWN_COLUMN in str(error) and not column_names(X):
            given = "" if X is None else f", and X is a {type(X).__name__} without names"
            raise ValueError(
                f"the pipeline takes columns by their names{given}: give some rows as a DataFrame with these columns, "
                "to_onnx(pipeline, X)"
            ) from error
        failed = _failed(model, inputs, target_opset)
        if failed is None:
            raise
        number, reason = failed
        label, step = model.steps[number]
        other = 'Try dtype="float32", or export' if dtype == "float64" else "Export"
        raise ValueError(
            f"skl2onnx cannot convert the step {label!r} ({type(step).__name__}) with dtype={dtype!r}: "
            f"{_first_line(reason)}. {other} the steps after it, to_onnx(pipeline[{number + 1}:]), and do those up "
            "to it before"
        ) from error


def _failed(model: Any, inputs: list[tuple[str, Any]], target_opset: int) -> tuple[int, Exception] | None:
    """The index and error of the first step before the last that skl2onnx cannot convert; None if it converts all."""
    from skl2onnx import convert_sklearn

    for number in range(len(model.steps) - 1):
        try:
            convert_sklearn(model[: number + 1], "steps", inputs, target_opset=target_opset)
        except Exception as error:
            return number, error
    return None


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).strip().rstrip(".")


def initial_types(model: Any, X: Any, dtype: str) -> list[tuple[str, Any]]:
    """Names and types of the inputs of a pipeline."""
    from skl2onnx.common import data_types as types

    number = {"float32": types.FloatTensorType, "float64": types.DoubleTensorType}[dtype]
    if X is None:
        return [("X", number([None, model.n_features_in_]))]
    kinds = {"f": number, "i": types.Int64TensorType, "u": types.Int64TensorType, "b": types.BooleanTensorType}
    if column_names(X):
        columns = [(str(key), np.asarray(X[key]).dtype.kind) for key in column_names(X)]
        return [(key, kinds.get(kind, types.StringTensorType)([None, 1])) for key, kind in columns]
    kind = X.dtype.kind if hasattr(X, "dtype") else np.asarray(X).dtype.kind
    return [("X", (number if kind in "fiub" else types.StringTensorType)([None, np.shape(X)[1]]))]
