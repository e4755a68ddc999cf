"""`to_onnx`: models as ONNX, alone or within a pipeline that skl2onnx converts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, is_classifier

from ..estimators import ALL, COMPRESSED, DETECTORS, FAMILY, REGRESSORS
from ..linalg.arrays import Array
from ..model.inference import InferenceModel, folded_scalers, inference_model, last_step
from . import pipelines
from .graph import ML, TYPES, Graph, Node
from .operators import DISTANCE_FORMS, Operators

OPSET = 18  # onnxruntime 1.14 and later run it
MIN_OPSET = 13
ML_OPSET = 3
DTYPES = {"float32": np.float32, "float64": np.float64}
# Options of the converter with their possible values, the default first. All but the last three are options of
# skl2onnx.
OPTIONS: dict[str, list[Any]] = {
    "zipmap": [True, False, "columns"],
    "nocl": [False, True],
    "output_class_labels": [False, True],
    "raw_scores": [False, True],
    "scores": [False, True],
    "arithmetic": ["float64", "float32"],
    "form": list(DISTANCE_FORMS),
}
MISSING = "{} is not installed, and {} needs it: pip install 'slimsvm[onnx]'"


def to_onnx(
    model: Any,
    X: Any = None,
    *,
    dtype: str = "float32",
    name: str | None = None,
    target_opset: int = OPSET,
    options: dict[str, Any] | None = None,
) -> Any:
    """A fitted model as ONNX, in plain operators.

    Classifiers have the outputs ``label``, ``scores`` (what `decision_function` gives; one column for two classes) and,
    where they were fitted, ``probabilities``. Outlier detectors have ``label`` (1 or -1) and ``scores``, regressors
    ``variable`` (a column for each target, named as skl2onnx names it). Any number of rows can be given at once.

    Parameters
    ----------
    model : fitted estimator of slimsvm, or Pipeline that ends in one
        With any kernel but a Python function. Scalers such as StandardScaler become part of the operators. Pipelines
        with other steps are converted by skl2onnx.
    X : array-like or DataFrame, optional
        Rows as the pipeline takes them, for the types of its columns, where skl2onnx converts it: each column of a
        DataFrame is an input. Without X there is one input with numbers for all columns.
    dtype : {"float32", "float64"}, default="float32"
        Type of numbers in the inputs and outputs.
    name : str, optional
        Of the graph; None: the name of the estimator's class.
    target_opset : int, default=18
        Version of the operators, at least 13.
    options : dict, optional
        ``zipmap``: False (default): probabilities are a table; True: a map from label to probability for each row;
        "columns": an output for each class. ``nocl``: True: labels are the numbers of the classes.
        ``output_class_labels``: True: an output ``class_labels`` with all labels. ``arithmetic``: "float64" (default)
        or "float32": what is computed with between inputs and outputs of type float32; "float32" is for accelerators
        that have no float64. ``form``: how squared distances are computed: "difference" needs memory for rows times
        vectors times inputs, "products" for rows times vectors; "auto" (default) is "products" in float64, where
        that loses no digits that show, and "difference" in float32.

    Returns
    -------
    onnx.ModelProto

    Notes
    -----
    Labels that are whole numbers (booleans and floats such as 1.0, too) come out as int64, all others as strings.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import SlimSVC, to_onnx
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> onnx_model = to_onnx(SlimSVC(n_vectors=6).fit(X, y))
    >>> [output.name for output in onnx_model.graph.output]
    ['label', 'scores']
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype={dtype!r} is not known; use one of {list(DTYPES)}")
    options = _checked_options(options)
    _import("onnx", "to_onnx")
    _check_opset(target_opset)
    scalers, estimator = last_step(model)
    pipelines.check_columns(model, X)
    name = name or type(estimator).__name__
    if _can_be_folded(scalers, estimator):
        proto = standalone_model(inference_model(model), DTYPES[dtype], name, target_opset, options)
    else:
        proto = _by_skl2onnx(model, estimator, X, dtype, name, target_opset, options)
    _describe(proto, estimator, inference_model(estimator), dtype)
    return proto


def _checked_options(options: dict[str, Any] | None) -> dict[str, Any]:
    """The options, completed by defaults, some of which differ from those of skl2onnx."""
    allowed = {key: values for key, values in OPTIONS.items() if key not in ("raw_scores", "scores")}
    for key, value in (options or {}).items():
        if key not in allowed:
            raise ValueError(f"options has {key!r}; {list(allowed)} are known")
        if value not in allowed[key]:
            raise ValueError(f"options has {key}={value!r}; use one of {allowed[key]}")
    defaults = {key: values[0] for key, values in OPTIONS.items()}
    return {**defaults, "zipmap": False, "scores": True, **(options or {})}


def _import(package: str, user: str) -> Any:
    """Import an optional package; ImportError says how to install it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise ImportError(MISSING.format(package, user)) from error


def _check_opset(target_opset: Any) -> None:
    from onnx.defs import onnx_opset_version

    if not isinstance(target_opset, (int, np.integer)) or not MIN_OPSET <= target_opset <= onnx_opset_version():
        raise ValueError(
            f"target_opset={target_opset!r} must be an integer from {MIN_OPSET} to {onnx_opset_version()}, the "
            "newest that the installed onnx knows"
        )


def _can_be_folded(scalers: list[Any], estimator: Any) -> bool:
    """Do all steps before the estimator just shift and scale single inputs?"""
    if not scalers:
        return True
    try:
        folded_scalers(scalers, estimator.n_features_in_)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        return False
    return True


# --- outputs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """An output of an ONNX model: its name, how it is computed, and its type.

    ``kind`` is "label", "number" or "maps"; ``columns`` is None for one value per row, ``rows`` False for a constant.
    """

    name: str
    compute: Callable[[Operators, Array], str]
    kind: str = "number"
    columns: int | None = None
    rows: bool = True


def results(inference: InferenceModel, options: dict[str, Any]) -> list[Result]:
    """The outputs of an ONNX model with these options."""
    if inference.classes is None:
        return [Result("variable", lambda ops, labels: ops.answers(), columns=len(inference.expansion.bias))]
    width = len(inference.expansion.bias)
    if inference.shown is not None:
        width = len(inference.classes)
    label = Result("label", lambda ops, labels: ops.label(labels), "label")
    scores = Result("scores", lambda ops, labels: ops.scores(), columns=width)
    if options["scores"]:
        return [label, scores, *_probabilities(inference, options), *_class_labels(inference, options)]
    if inference.layer is None or options["raw_scores"]:
        table = Result("scores", lambda ops, labels: ops.class_scores(), columns=max(2, width))
        return [label, table, *_class_labels(inference, options)]
    if options["zipmap"] is not False:  # names as skl2onnx has them
        label = Result("output_label", label.compute, "label")
    return [label, *_probabilities(inference, options), *_class_labels(inference, options)]


def _probabilities(inference: InferenceModel, options: dict[str, Any]) -> list[Result]:
    assert inference.classes is not None
    if inference.layer is None:
        return []
    if options["zipmap"] is True:
        name = "probabilities" if options["scores"] else "output_probability"
        return [Result(name, lambda ops, labels: ops.maps(ops.probabilities(), labels), "maps")]
    if options["zipmap"] == "columns":
        return [_column(number, name) for number, name in enumerate(_column_names(inference.classes, options["nocl"]))]
    return [Result("probabilities", lambda ops, labels: ops.probabilities(), columns=len(inference.classes))]


def _column(number: int, name: str) -> Result:
    return Result(name, lambda ops, labels: ops.column(ops.probabilities(), number))


def _column_names(classes: Array, nocl: bool) -> list[str]:
    labels = labels_of(classes, nocl)
    return [f"{'i' if labels.dtype.kind == 'i' else 's'}{label}" for label in labels.tolist()]


def _class_labels(inference: InferenceModel, options: dict[str, Any]) -> list[Result]:
    if not options["output_class_labels"]:
        return []
    if inference.layer is not None and not options["raw_scores"] and options["zipmap"] is not False:
        raise ValueError("output_class_labels=True needs zipmap=False: maps and columns have the labels already")

    def constant(ops: Operators, labels: Array) -> str:
        return ops.graph.constant(labels, "classes")

    return [Result("class_labels", constant, "label", rows=False)]


def labels_of(classes: Array | None, nocl: bool = False) -> Array:
    """Labels in a type of ONNX: int64 or strings; class numbers with ``nocl`` or for regressors."""
    if classes is None or nocl:
        return np.arange(0 if classes is None else len(classes))
    labels = classes.tolist()
    if all(_is_whole(label) for label in labels):
        return np.array([int(label) for label in labels], dtype=np.int64)
    return np.array([str(label) for label in labels])


def _is_whole(label: Any) -> bool:
    """Is the label a whole number within int64?"""
    return isinstance(label, (bool, int, float)) and -(2**63) <= label < 2**63 and float(label).is_integer()


# --- a model of its own -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ComputedGraph:
    """A graph that computes outputs from the rows ``X``, and the names of these outputs in it."""

    graph: Graph
    labels: Array
    values: list[str]

    @classmethod
    def of(
        cls, inference: InferenceModel, outputs: list[Result], input_type: Any, opset: int, options: dict[str, Any]
    ) -> ComputedGraph:
        """Build the graph; ``input_type`` is the dtype of X. Outputs are float32 unless it is float64."""
        input_type = np.dtype(input_type)
        dtype = input_type if input_type == np.float64 else np.dtype(np.float32)
        graph = Graph(np.float64 if dtype == np.float64 else options["arithmetic"], opset)
        x = "X" if graph.dtype == input_type else graph.cast("X", graph.dtype)
        operators = Operators(inference, graph, x, dtype, options["form"])
        labels = labels_of(inference.classes, options["nocl"])
        return cls(graph, labels, [result.compute(operators, labels) for result in outputs])


def standalone_model(inference: InferenceModel, dtype: Any, name: str, opset: int, options: dict[str, Any]) -> Any:
    from onnx import checker, helper, numpy_helper

    outputs = results(inference, options)
    computed = ComputedGraph.of(inference, outputs, dtype, opset, options)
    nodes, constants = [], []

    def add_constant(name: str, array: Array) -> None:
        constants.append(numpy_helper.from_array(array.astype(object) if array.dtype.kind == "U" else array, name))

    def add_node(node: Node) -> None:
        attributes = {key: node.attributes[key] for key in sorted(node.attributes)}
        made = helper.make_node(node.op, node.inputs, node.outputs, node.outputs[0], domain=node.domain, **attributes)
        nodes.append(made)

    named = [(value, result.name) for value, result in zip(computed.values, outputs, strict=True)]
    taken = {"X", *(result.name for result in outputs)}
    computed.graph.write_to(
        {"X": "X"}, named, lambda name: f"{name}_value" if name in taken else name, add_constant, add_node
    )
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    rows = helper.make_tensor_value_info("X", number, ["N", inference.n_inputs])
    infos = [_value_info(result, number, computed.labels) for result in outputs]
    imports = [helper.make_opsetid("", opset)]
    if any(node.domain == ML for node in nodes):
        imports.append(helper.make_opsetid(ML, ML_OPSET))
    proto = helper.make_model(
        helper.make_graph(nodes, name, [rows], infos, constants),
        opset_imports=imports,
        ir_version=helper.find_min_ir_version_for(imports),
    )
    checker.check_model(proto, full_check=True)
    return proto


def _value_info(result: Result, number: int, labels: Array) -> Any:
    from onnx import TensorProto, helper

    label = TensorProto.INT64 if labels.dtype.kind == "i" else TensorProto.STRING
    if result.kind == "maps":
        entry = helper.make_map_type_proto(label, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
        return helper.make_value_info(result.name, helper.make_sequence_type_proto(entry))
    kind = label if result.kind == "label" else number
    return helper.make_tensor_value_info(result.name, kind, _shape(result, "N", labels))


def _shape(result: Result, rows: Any, labels: Array) -> list[Any]:
    if not result.rows:
        return [len(labels)]
    return [rows] if result.columns is None else [rows, result.columns]


def _describe(proto: Any, estimator: Any, inference: InferenceModel, dtype: str) -> None:
    """Write metadata about the model into its ONNX file."""
    from onnx import helper

    kind, vectors = type(estimator).__name__, len(inference.expansion.vectors)
    proto.producer_name, proto.producer_version = "slimsvm", version("slimsvm")
    proto.doc_string = f"{kind} of slimsvm, kernel {inference.expansion.kernel.name}, vectors: {vectors}"
    facts = {
        "slimsvm_version": version("slimsvm"),
        "estimator": kind,
        "kernel": inference.expansion.kernel.name,
        "n_vectors": str(vectors),
        "dtype": dtype,
    }
    if inference.classes is not None:
        facts["classes"] = json.dumps(labels_of(inference.classes).tolist(), ensure_ascii=False)
    if inference.names is not None:
        facts["feature_names"] = json.dumps(list(inference.names), ensure_ascii=False)
    helper.set_model_props(proto, facts)


# --- skl2onnx ---------------------------------------------------------------------------------------------------------


def register() -> None:
    """Register all estimators of this library with skl2onnx, so that it converts pipelines that end in one.

    Its options for classifiers are those of `SVC`: ``zipmap``, ``nocl``, ``output_class_labels`` and ``raw_scores``.
    Without probabilities, or with ``raw_scores=True``, the second output is ``scores``, with two columns for two
    classes. ``scores=True`` gives scores and probabilities, as `to_onnx` does. ``arithmetic`` and ``form`` are those
    of `to_onnx`.

    Examples
    --------
    >>> import slimsvm.export.onnx
    >>> slimsvm.export.onnx.register()
    """
    skl2onnx = _import("skl2onnx", "the conversion of pipelines")
    for kind in (*ALL, *REGRESSORS, *FAMILY, *COMPRESSED, *DETECTORS):
        skl2onnx.update_registered_converter(
            kind, f"Slimsvm{kind.__name__}", _shapes, _convert, parser=_parse, options=_options_for(kind)
        )


def _options_for(kind: type) -> dict[str, list[Any]]:
    """The options of an estimator class; regressors and outlier detectors have two."""
    return OPTIONS if issubclass(kind, ClassifierMixin) else {key: OPTIONS[key] for key in ("arithmetic", "form")}


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare the operator of an estimator and its outputs to skl2onnx."""
    from skl2onnx._supported_operators import sklearn_operator_name_map

    inference, options = inference_model(model), _options(scope, model)
    operator = scope.declare_local_operator(sklearn_operator_name_map[type(model)], model)
    operator.inputs = inputs
    operator.slimsvm_results = results(inference, options)
    labels = labels_of(inference.classes, options["nocl"])
    for result in operator.slimsvm_results:
        operator.outputs.append(scope.declare_local_variable(result.name, _type(result, operator, labels)))
    return operator.outputs


def _options(scope: Any, model: Any) -> dict[str, Any]:
    """The values of all options of an estimator. Outlier detectors always have scores."""
    defaults = {key: values[0] for key, values in OPTIONS.items()}
    return {**defaults, "scores": not is_classifier(model), **scope.get_options(model)}


def _results(operator: Any, inference: InferenceModel, options: dict[str, Any]) -> list[Result]:
    """The outputs that `_parse` declared; the two default ones if another estimator's converter declared them."""
    declared = getattr(operator, "slimsvm_results", None)
    return declared or results(inference, {**options, "zipmap": False, "output_class_labels": False})


def _input_type(operator: Any) -> Any:
    """The numpy type of an operator's input."""
    from skl2onnx.common.data_types import guess_numpy_type

    return guess_numpy_type(operator.inputs[0].type)


def _type(result: Result, operator: Any, labels: Array) -> Any:
    """The skl2onnx type of an output."""
    from skl2onnx.common import data_types as types

    label = types.Int64TensorType if labels.dtype.kind == "i" else types.StringTensorType
    if result.kind == "maps":
        return types.SequenceType(types.DictionaryType(label([1]), types.FloatTensorType([1])))
    number = types.DoubleTensorType if _input_type(operator) == np.float64 else types.FloatTensorType
    shape = _shape(result, operator.inputs[0].get_first_dimension(), labels)
    return (label if result.kind == "label" else number)(shape)


def _shapes(operator: Any) -> None:
    """Set the types and shapes of the declared outputs."""
    model = operator.raw_operator
    inference, options = inference_model(model), _options(operator.scope_inst, model)
    labels = labels_of(inference.classes, options["nocl"])
    for variable, result in zip(operator.outputs, _results(operator, inference, options), strict=True):
        variable.set_type(_type(result, operator, labels))


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Write the operators of an estimator into skl2onnx's container."""
    if container.target_opset < MIN_OPSET:
        raise ValueError(f"target_opset={container.target_opset} is too old; use at least {MIN_OPSET}")
    model = operator.raw_operator
    inference, options = inference_model(model), _options(operator.scope_inst, model)
    outputs = _results(operator, inference, options)
    computed = ComputedGraph.of(inference, outputs, _input_type(operator), container.target_opset, options)

    def add_constant(name: str, array: Array) -> None:
        strings = array.dtype.kind == "U"
        kind = TYPES["string" if strings else array.dtype.name]
        content = [label.encode() for label in array.tolist()] if strings else array.ravel().tolist()
        container.add_initializer(name, kind, list(array.shape), content)

    def add_node(node: Node) -> None:
        name = scope.get_unique_operator_name(node.op)
        container.add_node(
            node.op, list(node.inputs), list(node.outputs), op_domain=node.domain, name=name, **node.attributes
        )

    inputs = {"X": operator.inputs[0].full_name}
    values = [(value, variable.full_name) for value, variable in zip(computed.values, operator.outputs, strict=True)]
    computed.graph.write_to(inputs, values, scope.get_unique_variable_name, add_constant, add_node)


def _by_skl2onnx(
    model: Any, estimator: Any, X: Any, dtype: str, name: str, target_opset: int, options: dict[str, Any]
) -> Any:
    _import("skl2onnx", "a pipeline with steps other than scalers")
    register()
    allowed = {key: value for key, value in options.items() if key in _options_for(type(estimator))}
    return pipelines.convert(model, X, dtype, name, target_opset, {id(estimator): allowed})
