"""Converts values to JSON nodes and arrays, and back; only a closed list of types is stored, and reading runs no code.

A value that JSON can represent is its own node; any other value is a JSON object with one key, which names its type.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..linalg.arrays import Array
from . import sklearn_classes, slimsvm_classes  # noqa: F401  (they register what a file may hold)
from .checks import ANY_KIND, as_columns, is_array
from .container import MAX_AXES, NUMBERS, TEXT, FileError, Integers, storable
from .schema import ALLOWED, ClassSchema, State, advice, is_estimator, schema_named, schema_of

MAX_DEPTH = 40
MAX_PATH = 200  # characters of a path in error messages
MAX_OTHER_KEYS = 10_000  # keys of a dictionary that are not texts: they may all have the same hash

# Types that may be values of parameters, as in OneHotEncoder(dtype=np.float64).
TYPES: dict[str, type] = {kind.__name__: kind for kind in (bool, int, float, str, object)} | {
    f"numpy.{name}": getattr(np, name)
    for name in (
        *("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "str_", "object_"),
        *("number", "integer", "floating", "generic", "signedinteger", "unsignedinteger"),
    )
}
TYPE_NAMES = {kind: name for name, kind in TYPES.items()}
SCALARS = (*NUMBERS, "<U")
PYTHON_TYPES = {"b": bool, "i": int, "u": int, "f": float, "U": str}  # Python types of scalars, by dtype kind
SPARSE: dict[str, Any] = {"array": sp.csr_array, "matrix": sp.csr_matrix}
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
SAME_IN_JSON = (types.NoneType, bool, int, float, str)


# --- writing -----------------------------------------------------------------------------------------------------


class NodeWriter:
    """Converts values to JSON nodes; arrays are collected in a list, and nodes hold their indices."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._open: list[int] = []  # ids of objects being written, to detect cycles
        self._integers = Integers()

    def node(self, value: Any, path: str) -> Any:
        """The JSON node of a value; TypeError or ValueError name what cannot be saved and its path."""
        if type(value) in SIMPLE_WRITERS:
            return SIMPLE_WRITERS[type(value)](self, value, path)
        write = WRITERS.get(type(value), NodeWriter._other)
        with self._within(value, path):
            return write(self, value, path)

    @contextmanager
    def _within(self, value: Any, path: str) -> Iterator[None]:
        if id(value) in self._open:
            raise ValueError(f"{path} holds itself: a .slim file cannot have circles")
        if len(self._open) >= MAX_DEPTH:
            raise ValueError(f"{path} lies deeper than the {MAX_DEPTH} levels that a .slim file can have")
        self._open.append(id(value))
        yield
        self._open.pop()

    def _same(self, value: Any, path: str) -> Any:
        return value

    def _integer(self, value: int, path: str) -> int:
        bits = value.bit_length()
        complaint = self._integers.complaint(len(str(value)) if bits < 1000 else bits)
        if complaint:
            raise ValueError(f"{path}: a .slim file cannot have {complaint}")
        return value

    def _float(self, value: float, path: str) -> Any:
        return value if math.isfinite(value) else {"float": str(value)}

    def _list(self, value: Any, path: str) -> list[Any]:
        return [self.node(item, f"{path}[{_name(item, k)}]") for k, item in enumerate(value)]

    def _tuple(self, value: tuple[Any, ...], path: str) -> dict[str, Any]:
        named = path.endswith("']") and _is_step(value)  # the path has the step's name already
        return {"tuple": [self.node(item, path if named else f"{path}[{k}]") for k, item in enumerate(value)]}

    def _dict(self, value: dict[Any, Any], path: str) -> dict[str, Any]:
        if sum(type(key) is not str for key in value) > MAX_OTHER_KEYS:
            raise ValueError(f"{path} has more than {MAX_OTHER_KEYS} keys that are no texts; a .slim file has no room")
        pairs = [[self.node(k, f"a key of {path}"), self.node(v, f"{path}[{k!r}]")] for k, v in value.items()]
        return {"dict": pairs}

    def _slice(self, value: slice, path: str) -> dict[str, Any]:
        return {"slice": [self.node(end, path) for end in (value.start, value.stop, value.step)]}

    def _array(self, value: Array, path: str) -> dict[str, Any]:
        if value.dtype.kind == "O":
            values = [self.node(item, f"{path}[{k}]") for k, item in enumerate(value.ravel().tolist())]
            return {"objects": {"shape": list(value.shape), "values": values}}
        if not storable(value.dtype):
            raise TypeError(f"{path} is an array of type {value.dtype}, which cannot be saved; {ALLOWED}")
        self.arrays.append(np.asarray(value))
        return {"array": len(self.arrays) - 1}

    def _sparse(self, value: Any, path: str) -> dict[str, Any]:
        kind = next(name for name, made in SPARSE.items() if type(value) is made)
        parts = {name: self._array(getattr(value, name), path) for name in ("data", "indices", "indptr")}
        return {"sparse": {"kind": kind, "shape": list(map(int, value.shape))} | parts}

    def _other(self, value: Any, path: str) -> Any:
        match value:
            case np.generic():
                return self._scalar(value, path)
            case np.dtype():
                return {"dtype": _code(value, path)}
            case type() if value in TYPE_NAMES:
                return {"type": TYPE_NAMES[value]}
        columns = as_columns(value)
        return self._object(value, path) if columns is None else self.node(columns, path)

    def _scalar(self, value: np.generic, path: str) -> dict[str, Any]:
        code = "<U" if value.dtype.kind == "U" else value.dtype.newbyteorder("<").str
        if code not in SCALARS:
            raise TypeError(f"{path} is a {type(value).__name__}, which cannot be saved; {ALLOWED}")
        return {"scalar": [code, self.node(value.item(), path)]}

    def _object(self, value: Any, path: str) -> Any:
        """An object as its class name and its attributes, sorted by name."""
        schema = schema_of(value)
        if schema is None:
            raise TypeError(f"{path} is {_described(value)}, which cannot be saved. {advice(value)}{ALLOWED}")
        state = schema.state(value)
        nodes = {name: self.node(state[name], f"{path}.{name}") for name in sorted(state)}
        complaint = schema.complaint(state)
        if complaint:
            raise ValueError(f"{path}: {complaint}")
        return {"object": [schema.name, nodes]}


# Writers by the exact type of a value: for values that contain no others, and for the rest.
SIMPLE_WRITERS: dict[type, Callable[[NodeWriter, Any, str], Any]] = {
    types.NoneType: NodeWriter._same,
    bool: NodeWriter._same,
    str: NodeWriter._same,
    int: NodeWriter._integer,
    float: NodeWriter._float,
}
WRITERS: dict[type, Callable[[NodeWriter, Any, str], Any]] = {
    list: NodeWriter._list,
    tuple: NodeWriter._tuple,
    dict: NodeWriter._dict,
    slice: NodeWriter._slice,
    np.ndarray: NodeWriter._array,
    np.memmap: NodeWriter._array,
    sp.csr_array: NodeWriter._sparse,
    sp.csr_matrix: NodeWriter._sparse,
}


def _is_step(item: Any) -> bool:
    """Is it a tuple that begins with a name, like a step of a pipeline?"""
    return isinstance(item, tuple) and bool(item) and isinstance(item[0], str)


def _name(item: Any, number: int) -> str:
    """The key of an item in a path: the name of a pipeline step, otherwise the index."""
    return repr(item[0]) if _is_step(item) else str(number)


def _code(dtype: np.dtype[Any], path: str) -> str:
    if dtype.kind == "O" or storable(dtype):
        return dtype.newbyteorder("<").str
    raise TypeError(f"{path} is the type {dtype}, which cannot be saved; {ALLOWED}")


def _described(value: Any) -> str:
    match value:
        case types.FunctionType() | types.BuiltinFunctionType() | types.MethodType() | np.ufunc():
            return f"the function {value.__name__}"
        case type():
            return f"the class {value.__name__}"
    kind = type(value)
    origin = "" if kind.__module__ == "builtins" else f" (of {kind.__module__})"
    return f"an object of the class {kind.__name__}{origin}"


# --- reading -----------------------------------------------------------------------------------------------------


class NodeReader:
    """Converts JSON nodes to values; the arrays that nodes refer to must each be used once, in order."""

    def __init__(self, arrays: list[Array], newer: bool, other_sklearn: bool):
        self.classes: list[str] = []  # class names of all objects read
        self.ignored: list[str] = []  # attributes that only a newer version has
        self._arrays, self._used, self._newer, self._other_sklearn = arrays, 0, newer, other_sklearn

    def model(self, node: Any) -> Any:
        """The model in the root node of a file."""
        match node:
            case {"object": _}:
                model = self.value(node, "model", 0)
            case _:
                raise FileError("the file holds no model")
        if not is_estimator(model):
            raise FileError(f"the file holds a {type(model).__name__}, which is no model")
        if self._used != len(self._arrays):
            raise FileError(f"the model uses {self._used} arrays; the file has {len(self._arrays)}")
        return model

    def value(self, node: Any, path: str, depth: int) -> Any:
        """The value of a node; ``path`` and ``depth`` say where it is in the file."""
        if type(node) in SAME_IN_JSON:
            return node
        if depth > 3 * MAX_DEPTH:  # a value takes up to three levels of JSON
            raise FileError(f"{path} lies deeper than {MAX_DEPTH} levels")
        if type(node) is list:
            return self._values(node, path, depth)
        if len(node) != 1:
            raise FileError(f"{path} is a JSON object with {len(node)} keys; it must be one, which says what it is")
        ((tag, body),) = node.items()
        if tag not in READERS:
            raise FileError(f"{path} is of the kind {tag[:40]!r}, which is not known")
        return READERS[tag](self, body, path, depth + 1)

    def _values(self, body: Any, path: str, depth: int) -> list[Any]:
        if type(body) is not list:
            raise FileError(f"{path} must be a list")
        path = path[-MAX_PATH:]  # long paths of many values would take long
        return [self.value(item, f"{path}[{k}]", depth + 1) for k, item in enumerate(body)]

    def _float(self, body: Any, path: str, depth: int) -> float:
        return _chosen(NOT_FINITE, body, path)

    def _tuple(self, body: Any, path: str, depth: int) -> tuple[Any, ...]:
        return tuple(self._values(body, path, depth))

    def _dict(self, body: Any, path: str, depth: int) -> dict[Any, Any]:
        values: dict[Any, Any] = {}
        others = 0
        for pair in body if type(body) is list else [None]:
            match pair:
                case [key_node, value_node]:
                    key = self.value(key_node, f"a key of {path}", depth)
                case _:
                    raise FileError(f"{path} must be a list of keys with their values")
            others += type(key) is not str
            if others > MAX_OTHER_KEYS or not _is_key(key) or key in values:
                raise FileError(f"{path} has a key that cannot be one, twice the same, or too many")
            values[key] = self.value(value_node, f"{path}[{_cut(key)}]", depth)
        return values

    def _slice(self, body: Any, path: str, depth: int) -> slice:
        ends = self._values(body, path, depth)
        if len(ends) != 3 or not all(end is None or isinstance(end, (int, str, np.integer)) for end in ends):
            raise FileError(f"{path} is not a slice")
        return slice(*ends)

    def _array(self, body: Any, path: str, depth: int) -> Array:
        if type(body) is not int or body != self._used or self._used >= len(self._arrays):
            raise FileError(f"{path} must be the array number {self._used}, or there are not so many")
        self._used += 1
        return self._arrays[self._used - 1]

    def _objects(self, body: Any, path: str, depth: int) -> Array:
        nodes, shape = _members(body, ("values", "shape"), path)
        values = self._values(nodes, path, depth)
        if not _is_shape(shape) or math.prod(shape) != len(values):
            raise FileError(f"{path} has another shape than values")
        flat = np.empty(len(values), dtype=object)
        for k, value in enumerate(values):
            flat[k] = value
        return flat.reshape(shape)

    def _scalar(self, body: Any, path: str, depth: int) -> np.generic:
        match body:
            case [str(code), node] if code in SCALARS:
                value = self.value(node, path, depth)
            case _:
                raise FileError(f"{path} is not a number of numpy")
        if type(value) is not PYTHON_TYPES[np.dtype(code).kind]:
            raise FileError(f"{path} is not of the type {code}")
        try:
            return np.str_(value) if code == "<U" else np.dtype(code).newbyteorder("=").type(value)
        except OverflowError:
            raise FileError(f"{path} is too large for its type {code}") from None

    def _sparse(self, body: Any, path: str, depth: int) -> Any:
        *nodes, name, shape = _members(body, ("data", "indices", "indptr", "kind", "shape"), path)
        data, indices, indptr = (self.value(node, path, depth) for node in nodes)
        kind = _chosen(SPARSE, name, path)
        complaint = _csr_complaint(data, indices, indptr, shape)
        if complaint:
            raise FileError(f"{path} is no sparse matrix: {complaint}")
        return kind((data, indices, indptr), shape=tuple(shape))

    def _type(self, body: Any, path: str, depth: int) -> type:
        return _chosen(TYPES, body, path)

    def _dtype(self, body: Any, path: str, depth: int) -> np.dtype[Any]:
        match body:
            case "|O":
                return np.dtype(object)
            case str() if body in NUMBERS or TEXT.fullmatch(body):
                return np.dtype(body).newbyteorder("=")
        raise FileError(f"{path} is a type of arrays that is not known")

    def _object(self, body: Any, path: str, depth: int) -> Any:
        match body:
            case [name, dict(nodes)]:
                schema = schema_named(name)
            case _:
                raise FileError(f"{path} is not the name of a class with attributes")
        if schema is None:
            raise FileError(f"{path} is of the class {_cut(name)}, which is not in slimsvm's list")
        self.classes.append(schema.name)
        state = {attribute: self.value(node, f"{path}.{_cut(attribute)}", depth) for attribute, node in nodes.items()}
        state = self._of_this_version(schema, state)
        complaint = schema.complaint(state)
        if complaint:
            raise FileError(f"{path}: {complaint}")
        return schema.make(state)

    def _of_this_version(self, schema: ClassSchema, state: State) -> State:
        """The attributes without those of newer versions, with defaults of parameters that older files lack."""
        for name in schema.unknown(state) if self._newer else ():
            self.ignored.append(f"{schema.kind.__name__}.{_cut(name)}")
            del state[name]
        return schema.defaults() | (schema.upgrade(state) if self._other_sklearn else state)


READERS: dict[str, Callable[[NodeReader, Any, str, int], Any]] = {
    "float": NodeReader._float,
    "tuple": NodeReader._tuple,
    "dict": NodeReader._dict,
    "slice": NodeReader._slice,
    "array": NodeReader._array,
    "objects": NodeReader._objects,
    "scalar": NodeReader._scalar,
    "sparse": NodeReader._sparse,
    "type": NodeReader._type,
    "dtype": NodeReader._dtype,
    "object": NodeReader._object,
}


def _cut(value: Any) -> str:
    return str(value)[:60]


def _chosen(table: dict[str, Any], name: Any, path: str) -> Any:
    if type(name) is not str or name not in table:
        raise FileError(f"{path} must be one of {list(table)}")
    return table[name]


def _members(body: Any, names: tuple[str, ...], path: str) -> list[Any]:
    if type(body) is not dict or body.keys() != set(names):
        raise FileError(f"{path} must have {', '.join(names)}, and nothing else")
    return [body[name] for name in names]


def _is_key(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_key, value))
    return isinstance(value, (*SAME_IN_JSON, np.generic))


def _is_shape(shape: Any) -> bool:
    return type(shape) is list and len(shape) <= MAX_AXES and all(type(n) is int and 0 <= n < 1 << 31 for n in shape)


def _csr_complaint(data: Any, indices: Any, indptr: Any, shape: Any) -> str:
    """What is wrong with a CSR matrix that scipy or the core would read out of bounds; empty if it is valid."""
    if not _is_shape(shape) or len(shape) != 2:
        return "its shape is not one"
    if not all(is_array(part, ANY_KIND, 1) for part in (data, indices, indptr)):
        return "its parts are no arrays of one axis"
    if data.dtype.kind not in "bifu" or indices.dtype != indptr.dtype or indices.dtype not in (np.int32, np.int64):
        return "its parts are of other types than numbers and indices"
    if len(indptr) != shape[0] + 1 or indptr[0] != 0 or indptr[-1] != len(indices) or len(data) != len(indices):
        return "its parts are not as long as they must be"
    if (indptr[1:] < indptr[:-1]).any():
        return "its rows are not in order"
    if len(indices) and (indices.min() < 0 or indices.max() >= shape[1]):
        return "it has numbers in columns that it has not"
    return ""
