"""Thousands of damaged and hostile files, each of which must be an error or a model that works.

``python tests/fuzz_files.py --mutations 10000 --seed 0`` prints what became of them. It runs in a process of its own,
with little memory, and ends with an error if a file makes anything happen but that.
"""

from __future__ import annotations

import argparse
import collections
import copy
import functools
import hashlib
import json
import os
import random
import re
import struct
import sys
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC as FullSVC
from sklearn.svm import OneClassSVM as FullOneClassSVM

from problems import blobs, three_classes
from slimsvm import SlimOneClass, SlimSVC, SlimSVR, bases, compress, estimators
from slimsvm.persistence import FileError, from_bytes, to_bytes
from slimsvm.persistence.container import ALIGNMENT, DIGEST, MAGIC, PREFIX, unpack

# What a model that makes no sense may answer with.
ORDINARY = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, NameError)
# What Python itself sees when code is run, found or made, or a file is opened.
FORBIDDEN = ("pickle.", "os.", "subprocess.", "exec", "compile", "import", "open", "socket.", "ctypes.", "marshal.")
MEMORY = 1 << 30  # beyond what is in use at the start

NASTY = [
    *(None, True, False, 0, 1, -1, 2, 3, 10**15, -(10**15), 2**31, 2**63, 10**40, 0.5, -0.0, 1e308, 5e-324),
    *("", "x", "ovo", "precomputed", "predict", "__class__", "__reduce__", "\ud800", "a" * 1000),
    *([], [[]], [0], [None], {}, {"tuple": []}, {"dict": []}, {"slice": [None, None, None]}, {"slice": [0, 10**15, 1]}),
    *(
        {"float": "nan"},
        {"float": "inf"},
        {"float": "-inf"},
        {"float": "1"},
        {"type": "numpy.float64"},
        {"dtype": "|O"},
    ),
    *(
        {"array": 0},
        {"array": 1},
        {"array": -1},
        {"array": 10**6},
        {"scalar": ["<f8", 1.0]},
        {"scalar": ["<i8", 2**70]},
    ),
    *({"dict": [[1, 2]]}, {"dict": [[[], 2]]}, {"tuple": ["a", None]}, {"type": "os.system"}, {"dtype": "<U0"}),
    {"objects": {"shape": [10**15], "values": []}},
    {"objects": {"shape": [2], "values": [{"tuple": [1]}, "b"]}},
    {"object": ["os.system", {}]},
    {"object": ["builtins.eval", {"source": "1"}]},
    {"object": ["sklearn.FunctionTransformer", {"func": "print"}]},
    {"object": ["sklearn.FeatureUnion", {"transformer_list": [{"tuple": ["a", "passthrough"]}] * 9}]},
    {"object": ["sklearn.PolynomialFeatures", {"degree": 40}]},
    {"object": ["sklearn.StandardScaler", {}]},
    {"object": ["sklearn.SVC", {}]},
    {"object": ["slimsvm.SlimSVC", {}]},
    {"object": ["slimsvm.kernels.Gaussian", {"gamma": -1.0}]},
    {"object": ["slimsvm.kernels.Polynomial", {"gamma": 1.0, "coef0": 0.0, "degree": 10**9}]},
    {"object": ["slimsvm.kernels.Precomputed", {"matrix": None}]},
    {"object": ["slimsvm.kernels.Function", {"function": "print"}]},
    {"object": ["slimsvm.Votes", {"pairs": True, "by_value": False, "zero_is_positive": True}]},
]
TYPES = [
    "|b1",
    "|i1",
    "<i4",
    "<i8",
    "<u8",
    "<f2",
    "<f4",
    "<f8",
    "<U1",
    "<U3",
    "|O",
    ">f8",
    "<c16",
    "<M8[s]",
    "f8",
    "<U0",
]
LENGTHS = [0, 1, 2, 3, 7, 2**31, 2**31 - 1, 2**62, 2**64, 10**15, -1, True, 1.0, None, "4"]


# --- files in pieces -----------------------------------------------------------------------------------------------


def split(data):
    """Header and the bytes of the arrays, to be changed."""
    text, arrays = _pieces(data)
    return json.loads(text), list(arrays)


@functools.cache
def _pieces(data):
    contents = unpack(data)
    length = PREFIX.unpack_from(data)[3]
    text = data[PREFIX.size : PREFIX.size + length]
    return text, tuple(data[slot.start : slot.end] for slot in contents.slots)


def joined(header, arrays, version=1, padding=b"\0"):
    """A file with a right checksum, whatever is in it."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    out = bytearray(PREFIX.pack(MAGIC, version, 0, len(text)) + text)
    for part in arrays:
        out += padding * (-len(out) % ALIGNMENT) + part
    return signed(bytes(out))


def signed(body):
    return body + hashlib.sha256(body).digest()


def places(node, found=None):
    """All (container, key) below a node."""
    found = [] if found is None else found
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        found.append((node, key))
        places(value, found)
    return found


class Held:
    """An array where it is used: its description, and its bytes."""

    def __init__(self, described, raw):
        self.described, self.raw = described, raw

    @classmethod
    def of(cls, values):
        values = np.ascontiguousarray(values)
        described = {"dtype": values.dtype.str, "shape": list(values.shape), "order": "C"}
        return cls(described, values.tobytes())

    def values(self):
        described = self.described
        return np.frombuffer(self.raw, described["dtype"]).reshape(described["shape"], order=described["order"])


def in_place(data):
    """The header, with arrays where they are used: parts can be left out and moved."""
    header, arrays = split(data)
    described = header.pop("arrays")
    for node, key in places(header["model"]):
        if key == "array":
            node[key] = Held(described[node[key]], arrays[node[key]])
    return header


def numbered(header):
    """The file of a header with arrays where they are used, in the order in which they are read."""
    held = []
    for node, key in places(header["model"]):
        if isinstance(node[key], Held):
            held.append(node[key])
            node[key] = len(held) - 1
    return joined(header | {"arrays": [one.described for one in held]}, [one.raw for one in held])


def objects(header):
    """All [name of the class, attributes]."""
    nodes = [({"": header["model"]}, ""), *places(header["model"])]
    return [node[key]["object"] for node, key in nodes if isinstance(node[key], dict) and "object" in node[key]]


# --- mutations -------------------------------------------------------------------------------------------------------


def flip(rng, data):
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def truncate(rng, data):
    return data[: rng.randrange(len(data))]


def insert(rng, data):
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.choice([1, 4, 8, 100])) + data[at:]


def splice(rng, data, other):
    a, b = rng.randrange(len(data)), rng.randrange(len(other))
    return data[:a] + other[b:]


def resigned(rng, data, other):
    """Bytes changed anywhere, and the checksum made right again."""
    change = rng.choice([flip, flip, flip, truncate, insert])
    return signed(change(rng, data[:-DIGEST]))


def changed_values(rng, data, other):
    """One place of the model, or a few."""
    header, arrays = split(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        container, key = rng.choice(places(header["model"]))
        kind = rng.random()
        if kind < 0.6:
            container[key] = copy.deepcopy(rng.choice(NASTY))
        elif kind < 0.75:
            if not isinstance(container, dict) or len(container) > 1:
                del container[key]
        elif kind < 0.9:
            theirs = rng.choice(places(split(other)[0]["model"]))
            container[key] = copy.deepcopy(theirs[0][theirs[1]])
        elif isinstance(container, dict):
            container[rng.choice(["transform", "predict", "__dict__", "_x", "memory", "steps", "n_jobs"])] = container[
                key
            ]
        else:
            container.append(copy.deepcopy(container[key]))
    return joined(header, arrays)


def changed_numbers(rng, data, other):
    """A number or text of the model, in its place: what a type check does not see."""
    header, arrays = split(data)
    here = [(c, k) for c, k in places(header["model"]) if isinstance(c[k], (int, float, str)) and c[k] is not True]
    container, key = rng.choice(here)
    value = container[key]
    if isinstance(value, str):
        container[key] = rng.choice(
            [container[k] for c, k in here if c is container and isinstance(c[k], str)] + ["ovr"]
        )
    else:
        container[key] = rng.choice([0, 1, -1, value + 1, value * 2, -value, 2**31, 2**31 + 1, 10**9, 1000])
    return joined(header, arrays)


def changed_arrays(rng, data, other):
    """Types and shapes of arrays, with bytes that fit or not."""
    header, arrays = split(data)
    at = rng.randrange(len(arrays))
    described = header["arrays"][at]
    shape, kind = described["shape"], rng.random()
    if kind < 0.2:
        described["dtype"] = rng.choice(TYPES)
    elif kind < 0.4 and shape:
        shape[rng.randrange(len(shape))] = rng.choice(LENGTHS)
    elif kind < 0.5:
        described["shape"] = rng.choice([shape[::-1], [*shape, 1], [1, *shape], [int(np.prod(shape))], [], [0, 10**9]])
    elif kind < 0.55:
        described["order"] = rng.choice(["F", "A", None, 0])
    elif kind < 0.8:  # as many bytes as they say
        shape = [rng.randrange(5) for _ in shape]
        described["shape"] = shape
        size = int(np.prod(shape)) * np.dtype(described["dtype"]).itemsize
        arrays[at] = (arrays[at] * (1 + size // max(1, len(arrays[at]))))[:size] if arrays[at] else bytes(size)
    elif kind < 0.9:
        other = rng.randrange(len(arrays))
        header["arrays"][at], header["arrays"][other] = header["arrays"][other], header["arrays"][at]
        arrays[at], arrays[other] = arrays[other], arrays[at]
    else:
        del header["arrays"][at]
        del arrays[at]
    return joined(header, arrays)


def changed_contents(rng, data, other):
    """Numbers of an array: not finite, far out, negative."""
    header, arrays = split(data)
    at = rng.randrange(len(arrays))
    dtype = np.dtype(header["arrays"][at]["dtype"])
    values = np.frombuffer(arrays[at], dtype).copy()
    if len(values):
        odd = {"f": [np.nan, np.inf, -np.inf, 1e300, 0.0], "U": [""], "b": [True]}.get(
            dtype.kind, [-1, 2**31 - 1, 0, 7]
        )
        with np.errstate(over="ignore"):
            values[rng.randrange(len(values))] = np.array(rng.choice(odd)).astype(dtype)
    arrays[at] = values.tobytes()
    return joined(header, arrays)


def sound_arrays(rng, data, other):
    """Arrays that are whole, and are not what the others need: empty, longer, of another type or axis, all alike."""
    header = in_place(data)
    here = [(node, key) for node, key in places(header["model"]) if isinstance(node[key], Held)]
    for node, key in rng.sample(here, min(len(here), rng.choice([1, 1, 2]))):
        values = node[key].values()
        with np.errstate(all="ignore"):
            node[key] = Held.of(rng.choice(WELL_FORMED_CHANGES)(rng, values))
    return numbered(header)


def _cut(rng, values):
    """Along one axis, maybe to nothing."""
    axis = rng.randrange(values.ndim) if values.ndim else None
    return values if axis is None else np.take(values, range(rng.randrange(values.shape[axis] + 1)), axis)


def _emptied(rng, values):
    axis = rng.randrange(values.ndim) if values.ndim else None
    return np.empty(0) if axis is None else np.take(values, [], axis)


def _alike(rng, values):
    odd = {"f": [np.nan, np.inf, 0.0, -1.0, 1e308], "U": ["", "a"], "b": [True, False]}.get(values.dtype.kind, [-1, 0])
    return np.full_like(values, rng.choice(odd))


WELL_FORMED_CHANGES = [
    _cut,
    _emptied,
    _emptied,
    _alike,
    lambda rng, values: np.repeat(values, 2, axis=None if values.ndim == 0 else rng.randrange(values.ndim)),
    lambda rng, values: (
        values.astype(rng.choice(TYPES[:10])) if values.dtype.kind in "bifu" else np.arange(values.size)
    ),
    lambda rng, values: rng.choice([values.T, values.ravel(), values[None], values[..., None]]),
]


def other_attributes(rng, data, other):
    """Attributes left out, in each other's places, of another model, or under the name of another class."""
    header, theirs = in_place(data), in_place(other)
    for _ in range(rng.choice([1, 1, 2])):
        node, donor = rng.choice(objects(header)), rng.choice(objects(theirs))
        state, names = node[1], list(node[1])
        kind = rng.random()
        if kind < 0.3 and names:
            del state[rng.choice(names)]
        elif kind < 0.55 and names:
            a, b = rng.choice(names), rng.choice(names)
            state[a], state[b] = copy.deepcopy(state[b]), copy.deepcopy(state[a])
        elif kind < 0.8 and donor[1]:
            name = rng.choice([name for name in names if name in donor[1]] or list(donor[1]))
            state[name] = copy.deepcopy(donor[1][name])
        elif kind < 0.9:
            node[0] = donor[0]
        else:
            node[0], node[1] = donor[0], {name: copy.deepcopy((state | donor[1])[name]) for name in donor[1]}
    return numbered(header)


def changed_json(rng, data, other):
    """What JSON can do by itself."""
    header, arrays = split(data)
    text = json.dumps(header)
    at = rng.choice([i for i, letter in enumerate(text) if letter in ":,["]) + 1
    odd = [
        "NaN",
        "Infinity",
        "1e999",
        "9" * 5000,
        "[" * 100000,
        '{"a":' * 3000,
        "\\",
        '"\\udc00"',
        "-0",
        "{}",
        '"a":1,',
    ]
    return joined((text[:at] + rng.choice(odd) + text[at:]).encode(), arrays)


def changed_frame(rng, data, other):
    """Versions, lengths, padding."""
    header, arrays = split(data)
    kind = rng.randrange(5)
    if kind == 0:
        return joined(header, arrays, version=rng.choice([0, 2, 2**32 - 1]))
    if kind == 1:
        out = bytearray(data)
        struct.pack_into("<Q", out, 16, rng.choice([0, 1, 2**63, 2**64 - 1, len(data), rng.randrange(len(data))]))
        return signed(bytes(out[:-DIGEST]))
    if kind == 2:
        return joined(header, arrays, padding=b"\1")
    if kind == 3:
        return joined(header, [*arrays, rng.randbytes(9)])
    header[rng.choice(["format", "versions", "metadata", "model", "arrays", "more"])] = copy.deepcopy(rng.choice(NASTY))
    return joined(header, arrays)


BLIND = [
    lambda rng, data, other: flip(rng, data),
    lambda rng, data, other: truncate(rng, data),
    lambda rng, data, other: insert(rng, data),
    splice,
]
KNOWING = [
    *(resigned, changed_values, changed_values, changed_numbers, changed_numbers, changed_arrays),
    *(changed_arrays, changed_contents, changed_contents, changed_json, changed_frame),
    *(sound_arrays, sound_arrays, sound_arrays, other_attributes, other_attributes, other_attributes),
]


# --- the run ---------------------------------------------------------------------------------------------------------


class Watch:
    """Sees what Python reports of code and files."""

    def __init__(self):
        self.on, self.seen = False, []
        sys.addaudithook(self._hear)

    def _hear(self, event, details):
        counts_cores = event == "open" and str(details[0]).startswith(("/sys/", "/proc/"))
        of_joblib = event == "compile" and re.fullmatch(r"b'2 \* -?\d+'", str(details[0]))  # its "2 * n_jobs"
        if self.on and event.startswith(FORBIDDEN) and not counts_cores and not of_joblib:
            self.seen.append((event, repr(details)[:200]))


MOST_INPUTS = 10_000
METHODS = ("predict", "decision_function", "predict_proba", "score_samples", "predict_interval", "transform")
LAYOUT = ("support_vectors_", "dual_coef_", "coef_", "probA_", "probB_", "model_bytes_")


def use(model, X):
    """Every answer of a model, what it shows of itself, and its parameters."""
    for method in METHODS:
        if hasattr(model, method):
            getattr(model, method)(X)
    for name in LAYOUT:
        getattr(model, name, None)
    model.get_params()


def proper(model, X):
    """The rows, or others where a model takes another number of inputs; None where it takes too many to try."""
    inputs = getattr(model, "n_features_in_", X.shape[1])
    if X.shape[1] == inputs:
        return X
    return np.ones((2, inputs), dtype=X.dtype) if inputs <= MOST_INPUTS else None


def outcome(data, X, watch):
    """What became of a file, in a word."""
    watch.on = True
    try:
        try:
            model = from_bytes(data)
        except FileError as error:
            return "error" if str(error) else "an error without words"
        except Exception as error:
            return f"load raised {type(error).__name__}: {error}"
        try:
            rows = proper(model, X)
            if rows is None:
                return "a model that was not asked"
            use(model, rows)
        except NotFittedError:
            return "a model that cannot answer"
        except Exception as error:
            if isinstance(error, ORDINARY) and type(model).__module__.startswith("sklearn."):
                return "a model that cannot answer"
            return f"predict raised {type(error).__name__}: {error}"
        return "a model that answers"
    finally:
        watch.on = False


def _limit_memory():
    """Where that is possible: a file that asks for more is found out."""
    size = Path("/proc/self/statm")
    if not size.exists() or "asan" in os.environ.get("LD_PRELOAD", ""):
        return
    import resource

    used = int(size.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


ALLOWED_OUTCOMES = ("error", "a model that was not asked", "a model that cannot answer", "a model that answers")


def kept(folder):
    """Files of a folder by name, with rows to predict."""
    files = {path.stem: path.read_bytes() for path in sorted(folder.glob("*.slim"))}
    rows = {name: json.loads((folder / f"{name}.json").read_text()) for name in files}
    return {name: (data, np.array(rows[name]["rows"], rows[name]["dtype"])[:5]) for name, data in files.items()}


def made():
    """Files of every estimator, and of what only some fits leave: streams, sizes, searches, residuals."""
    X, y = blobs(40)
    X3, y3 = three_classes(40)
    few = {"n_vectors": 3, "basis": bases.Learned(iterations=1), "C": 1.0, "gamma": 0.4, "scales": "fixed"}
    slim = {"C": 1.0, "gamma": 0.4, "scales": "fixed"}
    own = {SlimSVC: few, estimators.ReducedSVC: {"n_vectors": 5}, estimators.EmpiricalSVC: {"eta": 0.2}}
    found = {}
    for kind in (*estimators.ALL, *estimators.FAMILY):
        model = kind(**own.get(kind, {}))
        if "probability" in model.get_params() and kind not in (estimators.SVC, estimators.NuSVC):
            model.set_params(probability=True)
        labels = y3 if hasattr(kind, "decision_function") else X3[:, 0]
        found[kind.__name__] = model.fit(X3) if kind is estimators.OneClassSVM else model.fit(X3, labels), X3
    found |= {
        "two classes": (estimators.SVC(kernel="linear", probability=True).fit(X, y), X),
        "targets": (SlimSVR(3, **slim).fit(X, X[:, :2]), X),
        "intervals": (SlimSVR(3, intervals=True, **slim).fit(X, X[:, 0]), X),
        "stream": (SlimSVC(**few).partial_fit(X3, y3, classes=range(4)), X3),
        "stream of targets": (SlimSVR(3, **slim).partial_fit(X, X[:, :2]), X),
        "search": (SlimSVC(3, bases.Learned(iterations=1)).fit(X, y), X),
        "detector": (SlimOneClass(3).fit(X), X),
        "pairs": (compress(FullSVC().fit(X3, y3), 4, X3), X3),
        "outliers": (compress(FullOneClassSVM().fit(X), 4), X),
    }
    return {name: (to_bytes(model), rows[:5]) for name, (model, rows) in found.items()}


def run(folder, mutations, seed, slowest=5.0):
    """Counts of what became of files; the mutations that must not be, in words."""
    corpus = kept(folder) | made()
    files, rows = ({name: one[k] for name, one in corpus.items()} for k in range(2))
    for name, data in files.items():  # whatever is imported late is imported now
        use(from_bytes(data), rows[name])
    use(from_bytes(files["columns"]).set_params(columns__n_jobs=2), rows["columns"])
    _limit_memory()
    rng, watch = random.Random(seed), Watch()
    names, counts, bad = list(files), collections.Counter(), []
    for number in range(mutations):
        name, other = rng.choice(names), rng.choice(names)
        blind = number % 5 == 0
        change = rng.choice(BLIND if blind else KNOWING)
        data = change(rng, files[name], files[other])
        start = time.process_time()
        found = outcome(data, rows[name], watch)
        late = time.process_time() - start > slowest
        counts[found if found in ALLOWED_OUTCOMES else "bad"] += 1
        unnoticed = blind and found != "error" and data not in files.values()
        if found not in ALLOWED_OUTCOMES or watch.seen or late or unnoticed:
            what = f"{watch.seen}{' slow' if late else ''}{' unnoticed' if unnoticed else ''}"
            bad.append(f"number {number}, {name}, {getattr(change, '__name__', change)}: {found} {what}")
            watch.seen.clear()
    return counts, bad


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent / "data" / "format1")
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    with joblib.parallel_config("threading"):  # a pipeline may say n_jobs=2, which is no code of the file
        counts, bad = run(chosen.folder, chosen.mutations, chosen.seed)
    print(dict(counts))
    print("\n".join(bad[:20]))
    sys.exit(1 if bad else 0)
