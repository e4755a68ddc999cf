"""The data sets of the papers, by name: from a folder, from OpenML, or made.

What can be had without a data folder:

- *made here*: ringnorm, twonorm and waveform by Breiman's definitions, Ripley's mixture (other draws from the same
  distributions as the published rows, always the same), and titanic, which a table of counts gives in full;
- *from OpenML*, by a number that fixes the version: a9a (1430), banana (1460), breast-cancer (13), colon (45087),
  diabetes (37), german (31), heart (53), image (36), mnist (554), splice (46), thyroid (40682), usps (41082);
- *by hand only*: flare-solar and lymphoma. No copy at OpenML is known that has all inputs papers used.

What is checked after a download: scikit-learn compares the file with the checksum that OpenML states; the numbers of
rows, inputs and labels must be those of the set; and where another copy of the raw values was at hand, a digest of the
converted rows is compared (a9a, breast-cancer, diabetes, german, heart, mnist, splice, thyroid): a difference gives a
warning. For banana, colon, image and usps no digest is known, as OpenML may have rounded or scaled the values. The
digest of the first download is kept beside the file in the cache, and each load compares with it.
"""

from __future__ import annotations

import difflib
import os
from typing import overload

import numpy as np

from . import made, openml
from .folder import VARIABLE, MissingData, find, folders, read
from .splits import Dataset, Split
from .table import ALL, RAETSCH, Facts

__all__ = ["RAETSCH", "Dataset", "MissingData", "Split", "available", "load", "names"]

Folder = str | os.PathLike[str] | None


def names() -> list[str]:
    """The names that :func:`load` takes.

    Returns
    -------
    list of str
        The 13 sets of Raetsch's benchmark (also in ``RAETSCH``), then ripley, usps, mnist, colon, lymphoma and a9a.
    """
    return list(ALL)


def available(name: str, *, folder: Folder = None) -> bool:
    """Can a set be loaded without the network?

    Parameters
    ----------
    name : str
        One of :func:`names`.
    folder : path, optional
        As for :func:`load`.

    Returns
    -------
    bool
        Is it in a data folder or in the cache, or is it made?

    Examples
    --------
    >>> from papers import datasets
    >>> datasets.available("twonorm")
    True
    """
    facts = _facts(name)
    return find(facts, folder) is not None or name in made.MAKERS or openml.is_cached(name)


@overload
def load(name: str, split: None = None, *, folder: Folder = None, download: bool = True) -> Dataset: ...
@overload
def load(name: str, split: int, *, folder: Folder = None, download: bool = True) -> Split: ...
def load(name: str, split: int | None = None, *, folder: Folder = None, download: bool = True) -> Dataset | Split:
    """Load a set, or one of its splits.

    Looked for in this order: a data folder; made, if the set is (see the head of this module); the cache of earlier
    downloads (``~/.cache/slimsvm``, or the folder that the environment variable ``SLIMSVM_CACHE`` names); OpenML.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    split : int, optional
        Number of the split, from 0. Published splits that are in the file come first, in their order; after these, and
        where there are none, splits are drawn at random with the sizes of the published ones, by name and number alone:
        the same in every run. colon and lymphoma have folds instead: splits 0 to 9 are one division into ten parts with
        equal shares of the classes, 10 to 19 the next. Without ``split``, all rows.
    folder : path, optional
        The data folder, with files NAME.npz that hold ``X``, ``y`` and possibly ``train_idx`` and ``test_idx`` (row
        numbers, one line for each split). Otherwise the folder that the environment variable ``SLIMSVM_DATA`` names, or
        ``../shared/data`` beside the current directory or the checkout of this project.
    download : bool, default=True
        May OpenML be asked? It needs pandas.

    Returns
    -------
    Dataset or Split
        ``Dataset``: ``X``, ``y``, ``source``, ``n_splits`` and ``split(k)``. ``Split``: ``X``, ``y``, ``X_test``,
        ``y_test``, ``original``, ``error(model)`` and ``mapped(scaler)``.

    Raises
    ------
    MissingData
        The set is not here and could not be downloaded. The message says where to get it and how to put it in place.
    ValueError
        There is no set of that name, or a file is not the set that its name says.

    Examples
    --------
    >>> from papers import datasets
    >>> from slimsvm import SlimSVC
    >>> twonorm = datasets.load("twonorm", split=3)
    >>> twonorm.X.shape, twonorm.X_test.shape
    ((400, 20), (7000, 20))
    >>> twonorm.error(SlimSVC(n_vectors=4, C=1, gamma=0.025).fit(twonorm.X, twonorm.y)) < 4
    True
    """
    found = _whole(_facts(name), folder, download)
    return found if split is None else found.split(split)


def _whole(facts: Facts, folder: Folder, download: bool) -> Dataset:
    path = find(facts, folder)
    if path is not None:
        return read(path, facts, f"the file {path}")
    if facts.name in made.MAKERS:
        X, y = made.MAKERS[facts.name]()
        none = np.empty((0, 0), dtype=int)
        return Dataset(facts.name, X, y, "made by its definition", facts.protocol, none, none)
    if facts.name not in openml.ORIGINS:
        raise MissingData(_missing(facts, folder, f"No copy at OpenML is known. {facts.elsewhere}"))
    kept = openml.cached(facts)
    if kept is not None:
        return kept
    if not download:
        raise MissingData(
            _missing(facts, folder, f"OpenML has it ({_page(facts)}), but was not asked: download=False.")
        )
    try:
        return openml.download(facts)
    except openml.Unusable as reason:
        text = f"OpenML has it ({_page(facts)}), but {reason}."
    raise MissingData(_missing(facts, folder, text))


def _page(facts: Facts) -> str:
    return f"https://www.openml.org/d/{openml.ORIGINS[facts.name].data_id}"


def _missing(facts: Facts, folder: Folder, reason: str) -> str:
    looked = ", ".join(map(str, folders(folder))) or "no data folder"
    labels = ", ".join(f"{label}: {count}" for label, count in facts.classes.items())
    return (
        f"The set {facts.name} is not here (looked in {looked}). {reason} To put it in place by hand, save "
        f"{facts.name}.npz with numpy.savez: X of shape ({facts.rows}, {facts.inputs}), y with the numbers of rows "
        f"{{{labels}}} and, if you have published splits, train_idx and test_idx with a line of row numbers for each; "
        f"then name its folder by folder=... or by the environment variable {VARIABLE}."
    )


def _facts(name: str) -> Facts:
    if name not in ALL:
        near = difflib.get_close_matches(str(name), ALL, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"There is no set {name!r}.{hint} The sets are {', '.join(ALL)}.")
    return ALL[name]
