"""Files that are no models, that are damaged, and that were made to do harm."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

import slimsvm
from fuzz_files import Held, in_place, joined, numbered, signed, split
from kept_files import FOLDER, answers
from problems import blobs
from slimsvm import SVC, AnyNormSVC, SlimSVC
from slimsvm.persistence import FileError, describe, from_bytes, to_bytes

X, Y = blobs(60)
MODEL = AnyNormSVC(gamma=0.3).fit(X, Y)
DATA = to_bytes(MODEL)
KEPT = FOLDER / "format1"


def test_thousands_of_mutations():
    """Each is an error or a model that works: never a crash, a hang, much memory, or code that runs."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", Path(__file__).parent / "fuzz_files.py", "--mutations", "7000"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr


# --- files of other kinds ----------------------------------------------------------------------------------------


class Bomb:
    """Unpickled, it runs code."""

    def __reduce__(self):
        return os.system, ("exit 1",)


def _zip():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("model.json", "{}")
    return file.getvalue()


def _npy():
    file = io.BytesIO()
    np.save(file, np.array([Bomb()], dtype=object))
    return file.getvalue()


FOREIGN = {
    "empty": (b"", "is empty"),
    "text": (b"hello", "not a .slim file"),
    "pickle": (pickle.dumps(Bomb()), "a pickle, which load never runs"),
    "zip": (_zip(), "ZIP"),
    "npy of objects": (_npy(), "numpy"),
    "magic alone": (DATA[:8], "truncated"),
    "prefix alone": (DATA[:24], "checksum"),
    "half": (DATA[: len(DATA) // 2], "checksum"),
    "one byte less": (DATA[:-1], "checksum"),
    "one byte more": (DATA + b"\0", "checksum"),
    "twice": (DATA + DATA, "checksum"),
    "a newer format": (joined(*split(DATA), version=2), "newer slimsvm: its format is 2.*upgrade"),
    "format 0": (joined(*split(DATA), version=0), "make no sense"),
    "a pickle with our first bytes": (signed(DATA[:24] + pickle.dumps(Bomb())), "header"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files(name, tmp_path):
    data, words = FOREIGN[name]
    path = tmp_path / "m.slim"
    path.write_bytes(data)
    for read in (slimsvm.load, describe):
        with pytest.raises(FileError, match=words):
            read(path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no device without an end")
def test_a_file_without_an_end():
    with pytest.raises(FileError, match="not a"):
        slimsvm.load("/dev/zero")


def test_every_truncation_and_every_byte():
    for length in range(len(DATA)):
        with pytest.raises(FileError):
            from_bytes(DATA[:length])
    for place in range(len(DATA)):
        with pytest.raises(FileError):
            from_bytes(DATA[:place] + bytes([DATA[place] ^ 1]) + DATA[place + 1 :])


# --- files with a right checksum ---------------------------------------------------------------------------------


def changed(change, model=MODEL):
    """A file whose header was changed, with a right checksum."""
    header, arrays = split(to_bytes(model))
    return joined(change(header, arrays) or header, arrays)


def state(header):
    """The attributes of the model."""
    return header["model"]["object"][1]


def setting(**values):
    """Attributes of the model with other values."""
    return lambda header, arrays: state(header).update(values)


def shaped(name, shape):
    """An array of the model with another shape."""

    def change(header, arrays):
        header["arrays"][state(header)[name]["array"]]["shape"] = shape

    return change


def object_(name, **attributes):
    return {"object": [name, attributes]}


def text(change):
    """A header with another text."""
    return lambda header, arrays: change(json.dumps(header)).encode()


def degree(words):
    """A header with these words for a number."""
    return text(lambda header: header.replace('"degree": 3', f'"degree": {words}', 1))


HOSTILE = {
    "a class that is not in the list": (setting(kernel_=object_("os.system", command="exit 1")), "os.system.*list"),
    "a class of a module": (setting(kernel_=object_("sklearn.utils.parse_version")), "not in slimsvm's list"),
    "a kernel that is code": (setting(kernel_=object_("slimsvm.kernels.Function", function="print")), "list"),
    "a class in the wrong place": (setting(kernel_=object_("sklearn.StandardScaler")), "kernel_ must be"),
    "a method hidden": (setting(predict=[1]), "no attribute 'predict'"),
    "a class attribute": (setting(__class__="x"), "no attribute '__class__'"),
    "a type that can be called": (setting(kernel_={"type": "builtins.eval"}), "one of"),
    "a shape without bytes": (shaped("vectors_", [10**9, 10**5]), "longer than the file|too large"),
    "a shape beyond all": (shaped("vectors_", [10**15, 4]), "not possible"),
    "an endless empty shape": (shaped("vectors_", [0, 2**31]), "behind the last array|longer"),
    "a negative shape": (shaped("vectors_", [-1, 4]), "not possible"),
    "objects without values": (setting(n_iter_={"objects": {"shape": [10**9], "values": []}}), "another shape"),
    "an array used twice": (setting(intercept_={"array": 0}), "must be the array number"),
    "an array not used": (setting(objective_=None), "array number|must be"),
    "not fitted in part": (lambda header, arrays: state(header).pop("kernel_") and None, "has no kernel_"),
    "gamma below zero": (setting(kernel_=object_("slimsvm.kernels.Gaussian", gamma=-1.0)), "gamma"),
    "gamma a text": (setting(kernel_=object_("slimsvm.kernels.Gaussian", gamma="x")), "kernel makes no sense"),
    "another kind of vectors": (setting(kernel_=object_("slimsvm.kernels.Precomputed", matrix=None)), "training rows"),
    "too many scales": (
        setting(kernel_=object_("slimsvm.kernels.Scaled", kernel=object_("slimsvm.kernels.Linear"), scales=[1.0] * 9)),
        "4 finite scales",
    ),
    "pairs of two classes": (setting(n_vectors_=3), "vectors, and says 3"),
    "more inputs than the vectors have": (setting(n_features_in_=5), "rows of 5 inputs"),
    "a million processes": (setting(n_jobs=10**6), "n_jobs must be"),
    "NaN": (degree("NaN"), "NaN is no number"),
    "infinity": (degree("1e999"), "too large"),
    "a number of many digits": (degree("9" * 5000), "5000 digits"),
    "deep lists": (degree("[" * 500 + "]" * 500), "deeper"),
    "very deep lists": (degree("[" * 10**6 + "]" * 10**6), "not valid JSON"),
    "a key twice": (text(lambda header: header.replace('"C":', '"C": 1, "C":', 1)), "twice"),
    "no JSON": (text(lambda header: header + "x"), "not valid JSON"),
    "a list for a header": (text(lambda header: "[]"), "not a JSON object"),
    "another program's": (lambda header, arrays: header.update(format="x"), "not that of a model"),
    "many long integers": (setting(class_weight=[10**30 + k for k in range(2000)]), "more than 1000 integers"),
    "many keys, which may have one hash": (
        setting(class_weight={"dict": [[k << 40, 0] for k in range(20_000)]}),
        "too many",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(name):
    change, words = HOSTILE[name]
    with pytest.raises(FileError, match=words):
        from_bytes(changed(change))


LAYOUTS = {
    "empty": np.array([], np.int32),
    "of three classes": np.array([20, 20, 20], np.int32),
    "negative": np.array([-1, 1], np.int32),
    "beyond 64 bits": np.array([2**63, 2**63], np.uint64),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_vectors_of_each_class(name):
    header = in_place(to_bytes(SVC(gamma=0.3).fit(X, Y)))
    state(header)["n_support_"]["array"] = Held.of(LAYOUTS[name])
    with pytest.raises(FileError, match="n_support_"):
        from_bytes(numbered(header))


STEPS = {
    "too few scales": lambda scaler: scaler["scale_"].update(array=Held.of(np.ones(2))),
    "scales in words": lambda scaler: scaler["scale_"].update(array=Held.of(np.array(list("abcd")))),
    "no scales": lambda scaler: scaler.pop("scale_"),
}


@pytest.mark.parametrize("name", STEPS)
def test_preprocessing_that_could_not_answer(name):
    header = in_place(to_bytes(make_pipeline(StandardScaler(), AnyNormSVC()).fit(X, Y)))
    STEPS[name](state(header)["steps"][0]["tuple"][1]["object"][1])
    with pytest.raises(FileError, match="StandardScaler"):
        from_bytes(numbered(header))


def test_a_model_in_the_place_of_a_transformer():
    header = in_place(to_bytes(make_pipeline(StandardScaler(), AnyNormSVC())))
    state(header)["steps"].reverse()
    with pytest.raises(FileError, match="AnyNormSVC is in the place of a transformer"):
        from_bytes(numbered(header))


def test_names_in_a_file_do_not_steer_a_terminal():
    def change(header, arrays):
        header["model"]["object"][0] = "slimsvm.\x1b[31mred\x9b\u202e\ud800"
        header["versions"]["scipy"] = "1\x1b[2J"

    data = changed(change)
    about = describe(io.BytesIO(data))
    assert about["class"] == "?[31mred???"
    assert about["versions"]["scipy"] == "1?[2J"
    with pytest.raises(FileError, match=r"class slimsvm\.\?\[31mred\?\?\?, which is not"):
        from_bytes(data)


def test_padding_and_order_of_arrays():
    header, arrays = split(DATA)
    with pytest.raises(FileError, match="between"):
        from_bytes(joined(header, [arrays[0], *arrays[1:]], padding=b"x"))
    with pytest.raises(FileError, match="behind the last"):
        from_bytes(joined(header, [*arrays, b"12345678"]))


@pytest.mark.parametrize("part", ["indices", "indptr"])
@pytest.mark.parametrize("value", [-1, 4, 2**30])
def test_sparse_vectors_that_point_elsewhere(part, value):
    """The core and scipy would read there."""
    data = (KEPT / "sparse.slim").read_bytes()
    header, arrays = split(data)
    number = state(header)["vectors_"]["sparse"][part]["array"]
    values = np.frombuffer(arrays[number], np.int32).copy()
    values[len(values) // 2] = value
    arrays[number] = values.tobytes()
    with pytest.raises(FileError, match="no sparse matrix"):
        from_bytes(joined(header, arrays))


def test_a_sparse_table_of_coefficients_stays_small():
    """Zeros that a file does not hold must not become memory."""

    def thin(header, arrays):
        count = 1_000_000
        shapes = {"vectors_": ([count, 4], "<f4"), "intercept_": ([count], "<f8")}
        for name, (shape, dtype) in shapes.items():
            number = state(header)[name]["array"]
            header["arrays"][number] = {"dtype": dtype, "shape": shape, "order": "C"}
            arrays[number] = bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize)

    header, arrays = split(DATA)
    thin(header, arrays)
    number = state(header)["vector_coef_"]["array"]
    parts = {"data": np.ones(1), "indices": np.zeros(1, np.int32), "indptr": np.ones(10**6 + 1, np.int32)}
    parts["indptr"][0] = 0
    state(header)["n_vectors_"] = 10**6
    state(header)["vector_coef_"] = {
        "sparse": {"kind": "array", "shape": [10**6, 10**6]}
        | {name: {"array": number + k} for k, name in enumerate(parts)}
    }
    header["arrays"][number : number + 1] = [
        {"dtype": part.dtype.str, "shape": [len(part)], "order": "C"} for part in parts.values()
    ]
    arrays[number : number + 1] = [part.tobytes() for part in parts.values()]
    for name, node in state(header).items():
        if isinstance(node, dict) and node.get("array", -1) > number and name > "vector_coef_":
            node["array"] += 2
    with pytest.raises(FileError, match="zero for a sparse table"):
        from_bytes(joined(header, arrays))


def test_a_pipeline_that_doubles_its_columns():
    """Sixty steps of a few bytes would make 2^60 columns."""
    twice = object_("sklearn.FeatureUnion", transformer_list=[{"tuple": [name, "passthrough"]} for name in "ab"])
    steps = [{"tuple": [f"step{k}", twice]} for k in range(60)]
    header = json.loads(json.dumps(split(to_bytes(make_pipeline(StandardScaler(), SlimSVC())))[0]))
    header["model"] = object_("sklearn.Pipeline", steps=steps)
    with pytest.raises(FileError, match="10000 columns of one"):
        from_bytes(joined(header, []))


def test_polynomials_without_end():
    model = make_pipeline(PolynomialFeatures(2), AnyNormSVC()).fit(X, Y)
    for values in ({"_max_degree": 1000}, {"n_output_features_": 10**12}, {"_n_out_full": 10**9}, {"_min_degree": 9}):

        def change(header, arrays, values=values):
            state(header)["steps"][0]["tuple"][1]["object"][1].update(values)

        with pytest.raises(FileError, match="PolynomialFeatures"):
            from_bytes(changed(change, model))

    def without(header, arrays):
        step = state(header)["steps"][0]["tuple"][1]["object"][1]
        step["_n_out_full"] = 10**9
        del step["n_output_features_"]

    with pytest.raises(FileError, match="fitted in part"):
        from_bytes(changed(without, model))


ENCODERS = {
    "more columns": {"_n_features_outs": [10**9] * 4},
    "fewer columns": {"_n_features_outs": [1] * 4},
    "one not dropped": {"_drop_idx_after_grouping": {"objects": {"shape": [4], "values": [99] * 4}}},
    "a group that is none": {"_infrequent_enabled": True},
    "no groups": {"_infrequent_indices": None, "_infrequent_enabled": True},
    "no categories": {"categories_": [{"objects": {"shape": [0], "values": []}}] * 4},
}


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_that_would_write_elsewhere(name, sparse):
    """scikit-learn would make a matrix with numbers beyond its end."""
    encoder = OneHotEncoder(categories=[np.arange(-9.0, 10.0).astype(object)] * 4, drop="first", sparse_output=sparse)
    model = make_pipeline(encoder, AnyNormSVC()).fit(np.round(X).astype(object), Y)

    def change(header, arrays):
        state(header)["steps"][0]["tuple"][1]["object"][1].update(ENCODERS[name])

    with pytest.raises(FileError, match="OneHotEncoder"):
        from_bytes(changed(change, model))


def test_categories_out_of_order():
    """They are searched as if they were in order: a place beyond the last would be found."""
    data = to_bytes(make_pipeline(OneHotEncoder(), AnyNormSVC()).fit(np.round(X), Y))
    header, arrays = split(data)
    number = state(header)["steps"][0]["tuple"][1]["object"][1]["categories_"][0]["array"]
    arrays[number] = np.frombuffer(arrays[number])[::-1].tobytes()
    with pytest.raises(FileError, match="not in order"):
        from_bytes(joined(header, arrays))


def test_a_folder_of_pickles_for_a_cache():
    def change(header, arrays):
        state(header)["memory"] = "/tmp"

    with pytest.raises(FileError, match="memory must be None"):
        from_bytes(changed(change, make_pipeline(StandardScaler(), AnyNormSVC())))


# --- files of older versions -------------------------------------------------------------------------------------

OLD = sorted(path.relative_to(FOLDER) for path in FOLDER.glob("*/*.slim"))


def test_kept_files_are_there():
    assert len(OLD) >= 12


@pytest.mark.parametrize("path", OLD, ids=str)
@pytest.mark.filterwarnings("ignore:the file was made with scikit-learn")
def test_kept_files(path):
    """Files of every format that there was load, and say what they said."""
    kept = json.loads((FOLDER / path).with_suffix(".json").read_text())
    rows = np.array(kept["rows"], dtype=kept["dtype"])
    model = slimsvm.load(FOLDER / path)
    said = answers(model, rows)
    assert said.keys() == kept["answers"].keys()
    tolerance = 1e-5 if rows.dtype == np.float32 else 1e-9  # other processors round differently
    for method, values in said.items():
        expected = np.array(kept["answers"][method])
        if values.dtype.kind == "f":
            np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(values, expected)
    about = describe(FOLDER / path)
    assert about["metadata"] == {"name": path.stem}
    assert about["class"] == type(model).__name__
