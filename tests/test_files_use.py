"""Saving and loading as users do it: paths, metadata, and what cannot be saved."""

from __future__ import annotations

import io
import os
import stat
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

import slimsvm
from kept_files import slim
from problems import blobs, cosine_plus_one
from slimsvm import AnyNormSVC, SlimSVC, kernels
from slimsvm.persistence import FileError, describe, to_bytes
from test_files import again, check, same

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of fits, which end early here

X, Y = blobs(60)


@pytest.fixture(scope="module")
def model():
    return slim().fit(X, Y)


def test_paths_and_open_files(model, tmp_path):
    for path in (tmp_path / "a.slim", str(tmp_path / "b.slim")):
        assert slimsvm.save(model, path) is None
        assert same(slimsvm.load(path), model)
    file = io.BytesIO()
    slimsvm.save(model, file)
    assert file.getvalue() == (tmp_path / "a.slim").read_bytes() == (tmp_path / "b.slim").read_bytes()
    file.seek(0)
    assert same(slimsvm.load(file), model)
    with open(tmp_path / "a.slim", encoding="latin-1") as text, pytest.raises(TypeError, match="binary"):
        slimsvm.load(text)
    with pytest.raises(TypeError, match=r"open it in binary mode: open\(path, 'wb'\)"):
        slimsvm.save(model, io.StringIO())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.slim", "b.slim"]


def test_a_file_is_replaced_at_once(model, tmp_path, monkeypatch):
    path = tmp_path / "m.slim"
    slimsvm.save(model, path)
    before = path.read_bytes()
    os.chmod(path, 0o640)

    def full(descriptor):
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="no space"):
            slimsvm.save(AnyNormSVC(), path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(TypeError):
        slimsvm.save(AnyNormSVC(kernel=cosine_plus_one), path)
    assert path.read_bytes() == before
    link = tmp_path / "link.slim"
    link.symlink_to(path)
    slimsvm.save(AnyNormSVC(), link)
    assert link.is_symlink()
    assert same(slimsvm.load(path), AnyNormSVC())
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_no_such_file_and_a_folder(model, tmp_path):
    with pytest.raises(FileNotFoundError):
        slimsvm.load(tmp_path / "none.slim")
    with pytest.raises(FileNotFoundError) as raised:
        slimsvm.save(model, tmp_path / "none" / "m.slim")
    assert raised.value.filename == str(tmp_path / "none" / "m.slim")
    assert ".part" not in str(raised.value)
    for action in (slimsvm.load, describe, lambda path: slimsvm.save(model, path)):
        with pytest.raises((IsADirectoryError, PermissionError)):
            action(tmp_path)


def test_the_same_model_gives_the_same_bytes(model):
    assert to_bytes(model) == to_bytes(slim().fit(X, Y)) == to_bytes(again(model))
    assert to_bytes(model, {"a": 1}) != to_bytes(model)


def test_describe(model, tmp_path):
    metadata = {"columns": ["a", "b"], "seed": 0, "nested": {"x": [1.5, None, True, "ü"]}}
    slimsvm.save(make_pipeline(StandardScaler(), model), tmp_path / "m.slim", metadata=metadata)
    about = describe(tmp_path / "m.slim")
    assert about["metadata"] == metadata
    assert (about["class"], about["steps"]) == ("Pipeline", ["StandardScaler", "SlimSVC"])
    assert about["format_version"] == 1
    assert about["slimsvm_version"] == slimsvm.__version__
    assert about["bytes"] == (tmp_path / "m.slim").stat().st_size
    assert (tmp_path / "m.slim").read_bytes().hex().endswith(about["sha256"])
    assert len(about["sha256"]) == 64
    slimsvm.save(model, tmp_path / "n.slim")
    about = describe(tmp_path / "n.slim")
    assert (about["class"], about["steps"], about["metadata"]) == ("SlimSVC", [], {})


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ("text", "must be a dictionary"),
        ({"a": {1: 2}}, r"metadata\['a'\].*keys that are no texts"),
        ({"a": [np.float64(1.0)]}, r"metadata\['a'\]\[0\] is a float64"),
        ({"a": float("nan")}, "JSON has not"),
        ({"a": {1, 2}}, "is a set"),
    ],
)
def test_metadata_that_json_has_not(model, metadata, words):
    with pytest.raises((TypeError, ValueError), match=words):
        to_bytes(model, metadata)


def test_metadata_that_hold_themselves(model):
    metadata = {}
    metadata["again"] = metadata
    with pytest.raises(ValueError, match="holds itself"):
        to_bytes(model, metadata)


# --- what cannot be saved --------------------------------------------------------------------------------------------


class OwnKernel(kernels.Base):
    """A class of a user."""


class OwnSVC(AnyNormSVC):
    """A class of a user."""


REFUSED = {
    "a function for kernel": (AnyNormSVC(kernel=cosine_plus_one), "AnyNormSVC.kernel is the function cosine_plus_one"),
    "a kernel of one's own": (AnyNormSVC(kernel=OwnKernel()), "AnyNormSVC.kernel is .*OwnKernel.*class of your own"),
    "an estimator of one's own": (OwnSVC(), "OwnSVC is an object of the class OwnSVC.*class of your own is code"),
    "a fitted kernel function": (AnyNormSVC(kernel=cosine_plus_one).fit(X, Y), "AnyNormSVC.kernel"),
    "a function as a step": (
        make_pipeline(FunctionTransformer(np.log1p), AnyNormSVC()),
        r"Pipeline.steps\['functiontransformer'\].func is the function log1p",
    ),
    "SVC": (SVC().fit(X, Y), "slimsvm.compress"),
    "a pipeline with SVC to be fitted": (
        make_pipeline(StandardScaler(), SVC()),
        r"Pipeline.steps must be a list, each",
    ),
    "a pipeline with SVC": (make_pipeline(StandardScaler(), SVC().fit(X, Y)), r"steps\['svc'\].*slimsvm.compress"),
    "random numbers": (SlimSVC(random_state=np.random.RandomState(0)), "SlimSVC.random_state.*Use an integer"),
    "no model": ([1, 2, 3], "a list is no model"),
    "a part": (kernels.Gaussian(), "a Gaussian is no model"),
    "a class": (AnyNormSVC, "the class AnyNormSVC"),
    "complex numbers": (AnyNormSVC(class_weight=np.array([1j])), "array of type complex128"),
    "times": (AnyNormSVC(class_weight=np.array(["2020"], dtype="M8[D]")), "array of type datetime64"),
    "a set": (AnyNormSVC(class_weight={1, 2}), "AnyNormSVC.class_weight is an object of the class set"),
    "a long integer": (AnyNormSVC(class_weight=10**5000), "an integer of"),
    "sparse columns": (SlimSVC(basis=sp.csc_array(X)), "SlimSVC.basis is .*csc_array"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    model, words = REFUSED[name]
    with pytest.raises((TypeError, ValueError), match=words):
        to_bytes(model)


def test_own_attributes_belong_into_metadata(model):
    mine = clone(model).fit(X, Y)
    mine.note = "best so far"
    with pytest.raises(ValueError, match=r"'note'.*metadata"):
        to_bytes(mine)


def test_circles():
    weights = {}
    weights["again"] = [weights]
    with pytest.raises(ValueError, match="holds itself"):
        to_bytes(AnyNormSVC(class_weight=weights))
    deep = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(ValueError, match="deeper"):
        to_bytes(AnyNormSVC(class_weight=deep))


def test_a_search_and_a_frontier_have_models_to_save(model):
    search = GridSearchCV(AnyNormSVC(), {"C": [1.0]}, cv=2).fit(X, Y)
    with pytest.raises(TypeError, match="best_estimator_"):
        to_bytes(search)
    check(search.best_estimator_, X)
    curve = slimsvm.frontier(X, Y, sizes=(2, 4), estimator=slim())
    with pytest.raises(TypeError, match=r"frontier\.best\(\)"):
        to_bytes(curve)
    for found in (curve.best(), *curve.models.values()):
        check(found, X)


def test_skops_reads_the_same_models(model):
    """What the documentation sends people to for other pipelines."""
    sio = pytest.importorskip("skops.io")
    data = sio.dumps(model)
    loaded = sio.loads(data, trusted=sio.get_untrusted_types(data=data))
    assert same(loaded.decision_function(X), model.decision_function(X))


def test_loading_is_quiet(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again(make_pipeline(StandardScaler().fit(X), model))


def test_an_error_names_the_file(tmp_path):
    path = tmp_path / "m.slim"
    path.write_bytes(b"hello")
    with pytest.raises(FileError, match=r"m\.slim: the file is not a \.slim file"):
        slimsvm.load(path)
