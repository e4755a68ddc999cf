"""A list of ONNX operators and constants, written later into a model of its own or into a larger one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..linalg.arrays import Array

TYPES = {"float32": 1, "int64": 7, "string": 8, "float64": 11}  # type numbers of ONNX
ML = "ai.onnx.ml"  # the domain of the operators of classical machine learning


@dataclass(frozen=True)
class Node:
    """One operator."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    domain: str


class Graph:
    """Operators and constants without duplicates: adding an operator again returns the existing value.

    Values are referred to by name. ``dtype`` is the default type of floats, ``opset`` the version of the operators.
    """

    def __init__(self, dtype: Any, opset: int):
        self.dtype = np.dtype(dtype)
        self.opset = opset
        self.nodes: list[Node] = []
        self.constants: dict[str, Array] = {}
        self._values: dict[Any, Any] = {}
        self._names: dict[str, int] = {}

    def rounded(self, values: Any) -> Array:
        """Numbers in the float type of the graph; ValueError if they overflow."""
        values = np.asarray(values, dtype=np.float64)
        with np.errstate(over="ignore"):
            rounded = values.astype(self.dtype)
        if not np.isfinite(rounded).all():
            largest = float(np.abs(values).max())
            raise ValueError(f"the model has numbers up to {largest:.3g}, too large for {self.dtype}; use 'float64'")
        return rounded

    def constant(self, values: Any, name: str, dtype: Any = None) -> str:
        """Add a constant; floats get ``dtype`` or the type of the graph, integers and strings keep their types."""
        values = np.asarray(values)
        if values.dtype.kind == "f":
            values = self.rounded(values) if dtype is None else values.astype(dtype)
        key = (values.dtype.str, values.shape, values.tobytes())
        if key not in self._values:
            self._values[key] = self._fresh(name)
            self.constants[self._values[key]] = values
        return self._values[key]

    def many(self, op: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> tuple[str, ...]:
        """Add an operator and return the names of its outputs."""
        key = (op, inputs, domain, repr(sorted(attributes.items())))
        if key not in self._values:
            names = tuple(self._fresh(op.lower()) for _ in range(outputs))
            self.nodes.append(Node(op, inputs, names, attributes, domain))
            self._values[key] = names
        return self._values[key]

    def __call__(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add an operator and return the name of its output."""
        return self.many(op, *inputs, domain=domain, **attributes)[0]

    def reduce(self, op: str, x: str, axis: int, keep: bool = True) -> str:
        """Add a reduction such as ReduceMax; before opset 18 its axes are an attribute, not an input."""
        if op == "ReduceSum" or self.opset >= 18:
            return self(op, x, self.axis(axis), keepdims=int(keep))
        return self(op, x, axes=[axis], keepdims=int(keep))

    def cast(self, x: str, dtype: Any) -> str:
        return self("Cast", x, to=TYPES[np.dtype(dtype).name])

    def axis(self, number: int) -> str:
        return self.constant(np.array([number], dtype=np.int64), "axis")

    def _fresh(self, name: str) -> str:
        count = self._names[name] = self._names.get(name, -1) + 1
        return f"{name}_{count}" if count else name

    def write_to(
        self,
        names: dict[str, str],
        results: Iterable[tuple[str, str]],
        unique: Callable[[str], str],
        add_constant: Callable[[str, Array], None],
        add_node: Callable[[Node], None],
    ) -> None:
        """Write constants and operators into a model, by the functions given.

        ``names`` maps values that the model has already to their names there, ``results`` are pairs of a value and its
        output name, and ``unique`` makes all other names.
        """
        names, copies = dict(names), []
        for value, name in results:
            if value in names or value in self.constants:
                copies.append((value, name))
            else:
                names[value] = name
        for value, array in self.constants.items():
            names[value] = unique(value)
            add_constant(names[value], array)
        for node in self.nodes:
            for value in node.outputs:
                names.setdefault(value, unique(value))
            inputs, outputs = (tuple(names[value] for value in part) for part in (node.inputs, node.outputs))
            add_node(Node(node.op, inputs, outputs, node.attributes, node.domain))
        for value, name in copies:
            add_node(Node("Identity", (names[value],), (name,), {}, ""))
