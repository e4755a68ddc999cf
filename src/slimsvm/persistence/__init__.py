"""Models in files without pickle: JSON and arrays with a checksum.

Reading a file runs no code from it.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path
from typing import Any

import numpy
import scipy
import sklearn

from .. import __version__
from ..utils.warnings import warn, without_control_characters
from .container import VERSION, Contents, FileError, pack, unpack
from .nodes import NodeReader, NodeWriter
from .schema import is_estimator
from .sklearn_classes import PREPROCESSING

__all__ = ["FileError", "describe", "load", "save"]

FORMAT = "slimsvm model"


def save(model: Any, path: Any, *, metadata: dict[str, Any] | None = None) -> None:
    """Save a model in one file, without pickle.

    Parameters
    ----------
    model : estimator
        An estimator of slimsvm, or a `Pipeline` of the usual preprocessing of scikit-learn with one, fitted or not.
    path : str, Path or binary file
        The file to write, usually named ``*.slim``. An existing file is replaced atomically, when the new one is
        complete.
    metadata : dict, optional
        Further facts for the file: texts, numbers, lists and dictionaries, as in JSON. `describe` returns them.

    See Also
    --------
    load : The model of a file.
    describe : Facts about a file.

    Notes
    -----
    The same model gives the same bytes. Code cannot be saved: a kernel that is a function, a class of your own, a
    function in a `FunctionTransformer` are errors, which say where they are.

    Examples
    --------
    >>> import io
    >>> from sklearn.datasets import make_moons
    >>> import slimsvm
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = slimsvm.SlimSVC(n_vectors=6, C=1.0, gamma=1.0, scales="fixed").fit(X, y)
    >>> file = io.BytesIO()  # or a path: slimsvm.save(model, "moons.slim")
    >>> slimsvm.save(model, file, metadata={"data": "two moons"})
    >>> _ = file.seek(0)
    >>> bool((slimsvm.load(file).decision_function(X) == model.decision_function(X)).all())
    True
    """
    data = to_bytes(model, metadata)
    if hasattr(path, "write"):
        _write(path, data)
        return
    try:
        _replace(Path(os.path.realpath(path)), data)
    except OSError as error:
        if error.filename is None:
            raise
        # Name the user's path, not the temporary file beside it.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def load(path: Any) -> Any:
    """The model of a file that `save` wrote.

    Parameters
    ----------
    path : str, Path or binary file

    Returns
    -------
    The estimator, as it was saved.

    Raises
    ------
    FileError
        For a file that is truncated, altered, foreign, or made by a newer version; it is a `ValueError`.

    See Also
    --------
    save : Writes such files.

    Notes
    -----
    Loading runs no code from the file: it holds numbers, texts and names from a closed list of classes, and all that
    prediction relies on is checked. A file of unknown origin can still hold a model whose predictions mislead.

    Examples
    --------
    >>> import io
    >>> import slimsvm
    >>> file = io.BytesIO()
    >>> slimsvm.save(slimsvm.AnyNormSVC("linf", C=2.0), file)
    >>> _ = file.seek(0)
    >>> slimsvm.load(file)
    AnyNormSVC(C=2.0, slack='linf')
    """
    return _with_name(path, lambda: from_bytes(_read(path)))


def describe(path: Any) -> dict[str, Any]:
    """Facts about a file, without loading the model.

    Parameters
    ----------
    path : str, Path or binary file

    Returns
    -------
    dict with ``class`` (of the model), ``steps`` (classes of a pipeline's steps, else empty), ``metadata``,
    ``format_version``, ``slimsvm_version``, ``versions`` (of the packages it was made with), ``sha256`` (the verified
    checksum) and ``bytes`` (the size of the file).

    See Also
    --------
    load : The model.

    Examples
    --------
    >>> import io
    >>> import slimsvm
    >>> file = io.BytesIO()
    >>> slimsvm.save(slimsvm.SlimSVC(), file, metadata={"made": "for an example"})
    >>> _ = file.seek(0)
    >>> about = slimsvm.persistence.describe(file)
    >>> about["class"], about["metadata"], about["format_version"]
    ('SlimSVC', {'made': 'for an example'}, 1)
    """
    return _with_name(path, lambda: _described(_contents(_read(path))))


# --- models and bytes --------------------------------------------------------------------------------------------


def to_bytes(model: Any, metadata: dict[str, Any] | None = None) -> bytes:
    """The contents of a model's file."""
    writer = NodeWriter()
    node = writer.node(model, type(model).__name__)
    if not is_estimator(model):
        raise TypeError(
            f"a {type(model).__name__} is no model; save takes an estimator of slimsvm, or a Pipeline that ends in one"
        )
    header = {"format": FORMAT, "versions": _versions(), "metadata": _checked_metadata(metadata), "model": node}
    return pack(header, writer.arrays)


def from_bytes(data: bytes) -> Any:
    """The model in the contents of a file; FileError if they are invalid."""
    contents = _contents(data)
    versions, now = contents.header["versions"], _versions()
    newer = _release(versions["slimsvm"]) > _release(now["slimsvm"])
    other_sklearn = _release(versions["scikit-learn"])[:2] != _release(now["scikit-learn"])[:2]
    reader = NodeReader(contents.arrays(), newer, other_sklearn)
    try:
        model = reader.model(contents.header["model"])
    except RecursionError:
        raise FileError("the model of the file lies too deep") from None
    if reader.ignored:
        warn(
            f"the file was made by slimsvm {versions['slimsvm']}, this is {now['slimsvm']}: it does not know "
            f"{', '.join(reader.ignored[:5])}, and leaves them out; upgrade to have all of the model"
        )
    if other_sklearn:
        _warn_of_versions(reader.classes, versions["scikit-learn"], now["scikit-learn"])
    return model


def _contents(data: bytes) -> Contents:
    contents = unpack(data)
    header = contents.header
    if header.keys() != {"format", "versions", "metadata", "model"} or header["format"] != FORMAT:
        raise FileError("the header is not that of a model")
    versions = header["versions"]
    if type(versions) is not dict or versions.keys() != _versions().keys():
        raise FileError("the header does not say which versions the file was made with")
    if not all(type(version) is str and len(version) < 50 for version in versions.values()):
        raise FileError("the versions that the file was made with are none")
    if type(header["metadata"]) is not dict:
        raise FileError("the metadata are no dictionary")
    return contents


def _described(contents: Contents) -> dict[str, Any]:
    header = contents.header
    name, steps = _names(header["model"])
    versions = {package: without_control_characters(version) for package, version in header["versions"].items()}
    return {
        "class": name,
        "steps": steps,
        "metadata": header["metadata"],
        "format_version": VERSION,
        "slimsvm_version": versions["slimsvm"],
        "versions": versions,
        "sha256": contents.digest,
        "bytes": len(contents.data),
    }


def _names(node: Any) -> tuple[str, list[str]]:
    """The class name of a model, and the class names of its pipeline steps."""
    match node:
        case {"object": ["sklearn.Pipeline", {"steps": list(steps)}]}:
            return "Pipeline", list(map(_step_name, steps))
        case {"object": [str(name), _]} if name != "sklearn.Pipeline":
            return _last(name), []
    raise FileError("the file holds no model")


def _step_name(step: Any) -> str:
    """The class name of a step, or the word in its place, such as "passthrough"."""
    match step:
        case {"tuple": [_, {"object": [str(name), *_]}, *_]}:
            return _last(name)
        case {"tuple": [_, word, *_]} if type(word) is not dict:
            return _last(str(word))
    raise FileError("the file holds no model")


def _last(name: str) -> str:
    return without_control_characters(name.rpartition(".")[2])


# --- metadata and versions -----------------------------------------------------------------------------------------


def _checked_metadata(metadata: Any) -> dict[str, Any]:
    if metadata is None:
        return {}
    if not isinstance(metadata, dict):
        raise TypeError(f"metadata must be a dictionary, not a {type(metadata).__name__}")
    return _as_json(metadata, "metadata", 0)


def _as_json(value: Any, path: str, depth: int) -> Any:
    if depth > 40:
        raise ValueError(f"{path} lies deeper than 40 levels, or holds itself")
    if type(value) is float and not abs(value) < float("inf"):
        raise ValueError(f"{path} is {value}, which JSON has not; use None or a text")
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) in (list, tuple):
        return [_as_json(item, f"{path}[{k}]", depth + 1) for k, item in enumerate(value)]
    if type(value) is dict and all(type(key) is str for key in value):
        return {key: _as_json(item, f"{path}[{key!r}]", depth + 1) for key, item in value.items()}
    what = "a dictionary with keys that are no texts" if type(value) is dict else f"a {type(value).__name__}"
    raise TypeError(f"{path} is {what}; metadata hold texts, numbers, lists and dictionaries, as JSON has them")


def _versions() -> dict[str, str]:
    """Versions of the packages that models depend on."""
    return {
        "slimsvm": __version__,
        "scikit-learn": sklearn.__version__,
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
    }


def _release(version: str) -> tuple[int, ...]:
    """A version as a tuple of numbers, for comparison."""
    numbers = re.match(r"\d{1,9}(\.\d{1,9}){0,5}", version)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()


def _warn_of_versions(classes: list[str], made: str, now: str) -> None:
    """Warn about classes of scikit-learn in the file, whose attributes change between versions."""
    theirs = sorted({name.rpartition(".")[2] for name in classes if name.startswith("sklearn.")} & PREPROCESSING.keys())
    if theirs:
        warn(
            f"the file was made with scikit-learn {made}, this is {now}: {', '.join(theirs)} may work differently; "
            "compare a few predictions, or load it with the older version"
        )


# --- files -------------------------------------------------------------------------------------------------------


def _read(path: Any) -> bytes:
    if hasattr(path, "read"):
        data = path.read()
        if not isinstance(data, bytes):
            raise TypeError("the file is open as text; open it in binary mode: open(path, 'rb')")
        return data
    with open(path, "rb") as file:
        start = file.read(64)  # check the magic bytes first: another file may be endless
        return start + file.read() if start.startswith(b"\x93SLIMSVM") else start


def _write(file: Any, data: bytes) -> None:
    try:
        file.write(data)
    except TypeError as error:
        raise TypeError("the file takes no bytes; open it in binary mode: open(path, 'wb')") from error


def _with_name(path: Any, action: Any) -> Any:
    """Run ``action``; errors name the file."""
    try:
        return action()
    except FileError as error:
        where = "" if hasattr(path, "read") else f"{os.fspath(path)}: "
        raise FileError(f"{where}{error}") from None


def _replace(path: Path, data: bytes) -> None:
    """Replace a file atomically: after a crash it is the old one or the new one."""
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):  # a folder is an error; a pipe or device is written to
        path.write_bytes(data)
        return
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.chmod(part, stat.S_IMODE(path.stat().st_mode))
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
