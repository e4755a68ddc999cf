"""Sets from OpenML: fetched once by scikit-learn, checked, and kept in a cache."""

from __future__ import annotations

import hashlib
import os
import warnings
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np

from slimsvm.linalg.arrays import Array
from slimsvm.utils.warnings import warn

from . import conversions as to
from .folder import checked, read
from .splits import Dataset
from .table import Facts

VARIABLE = "SLIMSVM_CACHE"


@dataclass(frozen=True)
class Origin:
    """A set at OpenML: its number fixes the version."""

    data_id: int
    convert: to.Convert
    note: str = ""
    train: tuple[int, ...] = ()  # rows of each class in the training part, if that comes first


NOT_COMPARED = "its values could not be compared with those that papers used"
ORIGINS = {
    "banana": Origin(1460, to.as_it_is, NOT_COMPARED),
    "breast-cancer": Origin(13, to.breast_cancer),
    "diabetes": Origin(37, to.to_unit_variance),
    "german": Origin(31, to.german),
    "heart": Origin(53, to.to_unit_variance),
    "image": Origin(36, to.image, NOT_COMPARED),
    "splice": Origin(46, to.splice),
    "thyroid": Origin(40682, to.thyroid),
    "usps": Origin(41082, to.grey_values, NOT_COMPARED, (1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644)),
    "mnist": Origin(554, to.as_it_is, train=(5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)),
    "colon": Origin(45087, to.as_it_is, NOT_COMPARED),
    "a9a": Origin(1430, to.as_it_is, train=(24720, 7841)),
}
# Of the converted rows, computed from copies of the raw values other than OpenML's.
DIGESTS = {
    "breast-cancer": "119819d8f1b53a7d950f515c97bdd8c000f2bf0a87cfca88fbbe8776b5146282",
    "diabetes": "2c33f562713fbe8e80a89da9ed4626bc9a5d8c3efaeba29560deefe5f186e590",
    "german": "a26caa0741df45974f5f3d6a9e58c8d0b40cf957e171c17a371aa4d6eee00c3e",
    "heart": "f54c1dc2b3738ca83e1cba26c262b55990b48f6a010609d06ae8003ef9c9437c",
    "splice": "0fd0fbae7a25bdf40e3eb97a4a7ca95b08bdf722c166e3c0d20ea5bca2a89ee7",
    "thyroid": "5571197523362ad797999e2ee5cd6c1fb213c6f20d348dcb096626f9624c12bc",
    "mnist": "53ca9f54cd7f6ef10418437482905dc1efd9d5215e975f63c99fc71aac03755d",
    "a9a": "699566f94befc0b19428fcd3ea055a873ea6c12a6622421564342204e7fea2f0",
}


class Unusable(Exception):
    """OpenML did not give the set; the text says why."""


def cache() -> Path:
    """The folder of files that were downloaded."""
    return Path(os.environ.get(VARIABLE) or "~/.cache/slimsvm").expanduser()


def cached(facts: Facts) -> Dataset | None:
    """The set from an earlier download, if there was one: the same rows as then."""
    path = cache() / f"{facts.name}.npz"
    if not path.is_file():
        return None
    found = read(path, facts, _source(ORIGINS[facts.name]))
    first = _digest_file(path)
    if not first.is_file() or digest(found.X, found.y) != first.read_text().strip():
        raise ValueError(f"{path} has changed since it was downloaded. Delete it, and it is downloaded again.")
    return found


def is_cached(name: str) -> bool:
    return name in ORIGINS and (cache() / f"{name}.npz").is_file()


def download(facts: Facts) -> Dataset:
    """The set from OpenML, which is kept in the cache."""
    origin = ORIGINS[facts.name]
    data, target = _fetched(origin.data_id)
    try:
        X, y = origin.convert(data, target, facts.classes)
        arrays = {"X": X, "y": y} | _published_split(facts, origin, y)
        found = checked(facts, arrays, _source(origin), "it")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise Unusable(f"what OpenML sent as {origin.data_id} is not this set ({error})") from error
    known = DIGESTS.get(facts.name)
    if known is not None and known != digest(found.X, found.y):
        warn(
            f"{facts.name} from OpenML ({origin.data_id}) has the right numbers of rows, inputs and labels, but "
            "not the values that papers used. Compare results with care.",
            UserWarning,
        )
    _keep(found)
    return found


def _source(origin: Origin) -> str:
    return f"OpenML {origin.data_id}" + (f" ({origin.note})" if origin.note else "")


def _fetched(data_id: int) -> tuple[Any, Any]:
    """Scikit-learn compares the file with the checksum that OpenML states."""
    from sklearn.datasets import fetch_openml

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of attempts that failed: what is raised in the end says more
            bunch = fetch_openml(data_id=data_id, as_frame="auto", parser="auto", cache=False, n_retries=1)
    except ImportError as error:
        raise Unusable(f"reading OpenML's files needs pandas: pip install pandas ({error})") from error
    except (OSError, HTTPException) as error:
        raise Unusable(f"OpenML could not be reached ({str(error) or type(error).__name__})") from error
    except ValueError as error:  # a wrong checksum, a set that was withdrawn
        raise Unusable(f"OpenML did not give it ({error})") from error
    return bunch.data, bunch.target


def _published_split(facts: Facts, origin: Origin, y: Array) -> dict[str, Array]:
    """First rows to train on, the others to test on, where the labels show that the rows are in that order."""
    n = sum(origin.train)
    if not n or [np.sum(y[:n] == label) for label in facts.classes] != list(origin.train):
        return {}
    return {"train_idx": np.arange(n)[None], "test_idx": np.arange(n, len(y))[None]}


def _keep(found: Dataset) -> None:
    folder = cache()
    path = folder / f"{found.name}.npz"
    now, first = digest(found.X, found.y), _digest_file(path)
    if first.is_file() and first.read_text().strip() != now:
        warn(f"OpenML gives other rows of {found.name} than when it was first downloaded.", UserWarning)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        with part.open("wb") as file:
            np.savez_compressed(file, X=found.X, y=found.y, train_idx=found.train_idx, test_idx=found.test_idx)
        first.write_text(f"{now}\n")
        os.replace(part, path)  # whole or not at all
    except OSError as error:
        warn(f"{found.name} is not kept in {folder} ({error}): set {VARIABLE} to a folder.", UserWarning)


def _digest_file(path: Path) -> Path:
    return path.with_suffix(".sha256")


def digest(X: Array, y: Array) -> str:
    """SHA-256 of all rows with six decimals and their labels, in any order."""
    rows = []
    for start in range(0, len(X), 4096):
        block = np.round(X[start : start + 4096].astype("<f8"), 6) + 0.0
        labels = y[start : start + 4096].astype("<i8")
        pairs = zip(block, labels, strict=True)
        rows += [hashlib.sha256(row.tobytes() + label.tobytes()).digest() for row, label in pairs]
    return hashlib.sha256(b"".join(sorted(rows))).hexdigest()
