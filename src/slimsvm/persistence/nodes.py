"""Values as JSON and arrays, and back. What a file may hold is a closed list: nothing here runs what a file names."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..linalg.arrays import Array
from .checks import as_columns
from .container import NUMBERS, TEXT, FileError, Integers, storable
from .schema import ALLOWED, Form, form, form_of, hint, is_estimator

DEEPEST = 40
MOST_PATH = 200  # characters that say where a value is
MOST_KEYS = 10_000  # of a dictionary, that are no texts: others may all have the same hash

# Types that settings name, such as OneHotEncoder(dtype=np.float64).
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
SPARSE: dict[str, Any] = {"array": sp.csr_array, "matrix": sp.csr_matrix}
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class NodeWriter:
    """Makes nodes of JSON from values; arrays go to a list, which nodes number."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._open: list[int] = []  # objects that are being written, to see circles
        self._integers = Integers()

    def node(self, value: Any, path: str) -> Any:
        """A value as JSON; TypeError or ValueError says what cannot be saved and where it is."""
        plain = WRITERS.get(type(value))
        if plain is not None and plain[1]:
            return plain[0](self, value, path)
        with self._within(value, path):
            if plain is not None:
                return plain[0](self, value, path)
            if isinstance(value, np.generic):
                return self._scalar(value, path)
            if isinstance(value, np.dtype):
                return {"dtype": _code(value, path)}
            if isinstance(value, type) and value in TYPE_NAMES:
                return {"type": TYPE_NAMES[value]}
            columns = as_columns(value)
            if columns is not None:
                return self.node(columns, path)
            return self._object(value, path)

    @contextmanager
    def _within(self, value: Any, path: str) -> Any:
        if id(value) in self._open:
            raise ValueError(f"{path} holds itself: a .slim file cannot have circles")
        if len(self._open) >= DEEPEST:
            raise ValueError(f"{path} lies deeper than the {DEEPEST} levels that a .slim file can have")
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
        named = bool(value) and isinstance(value[0], str) and path.endswith("']")  # a step: its path has its name
        return {"tuple": [self.node(item, path if named else f"{path}[{k}]") for k, item in enumerate(value)]}

    def _dict(self, value: dict[Any, Any], path: str) -> dict[str, Any]:
        if sum(type(key) is not str for key in value) > MOST_KEYS:
            raise ValueError(f"{path} has more than {MOST_KEYS} keys that are no texts; a .slim file has no room")
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
        kind = "array" if isinstance(value, sp.sparray) else "matrix"
        parts = {name: self._array(getattr(value, name), path) for name in ("data", "indices", "indptr")}
        return {"sparse": {"kind": kind, "shape": list(map(int, value.shape))} | parts}

    def _scalar(self, value: np.generic, path: str) -> dict[str, Any]:
        code = "<U" if isinstance(value, np.str_) else value.dtype.newbyteorder("<").str
        if code not in SCALARS:
            raise TypeError(f"{path} is a {type(value).__name__}, which cannot be saved; {ALLOWED}")
        return {"scalar": [code, self.node(value.item(), path)]}

    def _object(self, value: Any, path: str) -> dict[str, Any]:
        found = form_of(value)
        if found is None:
            raise TypeError(f"{path} is {_described(value)}, which cannot be saved. {hint(value)}{ALLOWED}")
        return self.state(found, found.state(value), path)

    def state(self, found: Form, state: dict[str, Any], path: str) -> dict[str, Any]:
        """An object by the name of its class and its attributes, in order of their names."""
        nodes = {name: self.node(state[name], f"{path}.{name}") for name in sorted(state)}
        complaint = found.complaint(state)
        if complaint:
            raise ValueError(f"{path}: {complaint}")
        return {"object": [found.name, nodes]}


# How a type is written, and whether it can hold nothing else.
WRITERS: dict[type, tuple[Callable[[NodeWriter, Any, str], Any], bool]] = {
    type(None): (NodeWriter._same, True),
    bool: (NodeWriter._same, True),
    str: (NodeWriter._same, True),
    int: (NodeWriter._integer, True),
    float: (NodeWriter._float, True),
    list: (NodeWriter._list, False),
    tuple: (NodeWriter._tuple, False),
    dict: (NodeWriter._dict, False),
    slice: (NodeWriter._slice, False),
    np.ndarray: (NodeWriter._array, False),
    np.memmap: (NodeWriter._array, False),
    sp.csr_array: (NodeWriter._sparse, False),
    sp.csr_matrix: (NodeWriter._sparse, False),
}


def _name(item: Any, number: int) -> str:
    """A step of a pipeline by its name."""
    return repr(item[0]) if isinstance(item, tuple) and item and isinstance(item[0], str) else str(number)


def _code(dtype: np.dtype[Any], path: str) -> str:
    if dtype.kind == "O" or storable(dtype):
        return dtype.newbyteorder("<").str
    raise TypeError(f"{path} is the type {dtype}, which cannot be saved; {ALLOWED}")


def _described(value: Any) -> str:
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc)):
        return f"the function {getattr(value, '__name__', '')}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value)
    own = "" if kind.__module__ == "builtins" else f" (of {kind.__module__})"
    return f"an object of the class {kind.__name__}{own}"


# --- reading -----------------------------------------------------------------------------------------------------


class NodeReader:
    """Makes values from nodes of JSON and the arrays that they number, each of which is used once and in order."""

    def __init__(self, arrays: list[Array], newer: bool, other_sklearn: bool):
        self.classes: list[str] = []  # of all objects
        self.ignored: list[str] = []  # attributes that a newer version has, and this one has not
        self._arrays, self._used, self._newer, self._other_sklearn = arrays, 0, newer, other_sklearn

    def model(self, node: Any) -> Any:
        """The object of a file."""
        if not isinstance(node, dict) or "object" not in node:
            raise FileError("the file holds no model")
        found = self.value(node, "model", 0)
        if not is_estimator(found):
            raise FileError(f"the file holds a {type(found).__name__}, which is no model")
        if self._used != len(self._arrays):
            raise FileError(f"the model uses {self._used} arrays; the file has {len(self._arrays)}")
        return found

    def value(self, node: Any, path: str, depth: int) -> Any:
        """A node's value; ``path`` and ``depth`` are where it is."""
        if node is None or isinstance(node, (bool, int, float, str)):
            return node
        if depth > 3 * DEEPEST:  # of JSON, of which a value takes up to three
            raise FileError(f"{path} lies deeper than {DEEPEST} levels")
        if isinstance(node, list):
            return self._values(node, path, depth)
        if len(node) != 1:
            raise FileError(f"{path} is a JSON object with {len(node)} keys; it must be one, which says what it is")
        ((tag, body),) = node.items()
        if tag not in READERS:
            raise FileError(f"{path} is of the kind {tag[:40]!r}, which is not known")
        return READERS[tag](self, body, path, depth + 1)

    def _values(self, body: Any, path: str, depth: int) -> list[Any]:
        if not isinstance(body, list):
            raise FileError(f"{path} must be a list")
        path = path[-MOST_PATH:]  # a long one for each of many values would take long
        return [self.value(item, f"{path}[{k}]", depth + 1) for k, item in enumerate(body)]

    def _float(self, body: Any, path: str, depth: int) -> float:
        return _chosen(NOT_FINITE, body, path)

    def _tuple(self, body: Any, path: str, depth: int) -> tuple[Any, ...]:
        return tuple(self._values(body, path, depth))

    def _dict(self, body: Any, path: str, depth: int) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        others = 0
        for pair in body if isinstance(body, list) else [None]:
            if not isinstance(pair, list) or len(pair) != 2:
                raise FileError(f"{path} must be a list of keys with their values")
            key = self.value(pair[0], f"a key of {path}", depth)
            others += type(key) is not str
            if others > MOST_KEYS or not _is_key(key) or key in found:
                raise FileError(f"{path} has a key that cannot be one, twice the same, or too many")
            found[key] = self.value(pair[1], f"{path}[{_cut(key)}]", depth)
        return found

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
        values, shape = _members(body, ("values", "shape"), path)
        found = self._values(values, path, depth)
        if not _is_shape(shape) or math.prod(shape) != len(found):
            raise FileError(f"{path} has another shape than values")
        flat = np.empty(len(found), dtype=object)
        for k, value in enumerate(found):
            flat[k] = value
        return flat.reshape(shape)

    def _scalar(self, body: Any, path: str, depth: int) -> np.generic:
        if not isinstance(body, list) or len(body) != 2 or not isinstance(body[0], str) or body[0] not in SCALARS:
            raise FileError(f"{path} is not a number of numpy")
        code, value = body[0], self.value(body[1], path, depth)
        kinds = {"b": bool, "i": int, "u": int, "f": float, "U": str}
        if type(value) is not kinds[np.dtype(code).kind]:
            raise FileError(f"{path} is not of the type {code}")
        try:
            made = np.str_(value) if code == "<U" else np.dtype(code).newbyteorder("=").type(value)
        except OverflowError:
            raise FileError(f"{path} is too large for its type {code}") from None
        return made

    def _sparse(self, body: Any, path: str, depth: int) -> Any:
        parts = _members(body, ("data", "indices", "indptr", "kind", "shape"), path)
        data, indices, indptr = (self.value(part, path, depth) for part in parts[:3])
        kind, shape = _chosen(SPARSE, parts[3], path), parts[4]
        complaint = _csr_complaint(data, indices, indptr, shape)
        if complaint:
            raise FileError(f"{path} is no sparse matrix: {complaint}")
        return kind((data, indices, indptr), shape=tuple(shape))

    def _type(self, body: Any, path: str, depth: int) -> type:
        return _chosen(TYPES, body, path)

    def _dtype(self, body: Any, path: str, depth: int) -> np.dtype[Any]:
        if body == "|O":
            return np.dtype(object)
        if not isinstance(body, str) or (body not in NUMBERS and not TEXT.fullmatch(body)):
            raise FileError(f"{path} is a type of arrays that is not known")
        return np.dtype(body).newbyteorder("=")

    def _object(self, body: Any, path: str, depth: int) -> Any:
        if not isinstance(body, list) or len(body) != 2 or not isinstance(body[1], dict):
            raise FileError(f"{path} is not the name of a class with attributes")
        found = form(body[0])
        if found is None:
            raise FileError(f"{path} is of the class {_cut(body[0])}, which is not in slimsvm's list")
        self.classes.append(found.name)
        state = {name: self.value(node, f"{path}.{_cut(name)}", depth) for name, node in body[1].items()}
        for name in found.unknown(state) if self._newer else ():
            self.ignored.append(f"{found.kind.__name__}.{_cut(name)}")
            del state[name]
        state = found.defaults() | (found.renewed(state) if self._other_sklearn else state)
        complaint = found.complaint(state)
        if complaint:
            raise FileError(f"{path}: {complaint}")
        return found.make(state)


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
    if not isinstance(name, str) or name not in table:
        raise FileError(f"{path} must be one of {list(table)}")
    return table[name]


def _members(body: Any, names: tuple[str, ...], path: str) -> list[Any]:
    if not isinstance(body, dict) or body.keys() != set(names):
        raise FileError(f"{path} must have {', '.join(names)}, and nothing else")
    return [body[name] for name in names]


def _is_key(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_key, value))
    return value is None or isinstance(value, (bool, int, float, str, np.generic))


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, list) and len(shape) <= 8 and all(type(n) is int and 0 <= n < 1 << 31 for n in shape)


def _csr_complaint(data: Any, indices: Any, indptr: Any, shape: Any) -> str:
    """What scipy and the core would read beyond the end of an array for."""
    if not _is_shape(shape) or len(shape) != 2:
        return "its shape is not one"
    if not all(isinstance(part, np.ndarray) and part.ndim == 1 for part in (data, indices, indptr)):
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
